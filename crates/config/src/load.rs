//! Loads a configuration: finds what was given, refuses what nobody knows, reads every section.

use crate::Config;
use crate::document::Source;
use crate::effective::Effective;
use crate::error::{ConfigError, Origin, Problem, Suggestion, Warning, nearest};
use crate::keys::SECTIONS;
use crate::reader::{Given, Session};
use crate::resolve::resolve;
use crate::section::{Kind, Section, split_list};
use std::collections::BTreeMap;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Settings of the command line, as the user wrote them.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--listen ADDRESS`, any number; they take the place of the file's listeners.
    pub listen: Vec<String>,
    /// `--zone NAME=FILE`, any number; they come before the file's zones.
    pub zones: Vec<String>,
    /// `--workers N`.
    pub workers: Option<String>,
    /// `--print-config`: keep what [`Loaded::effective`] prints.
    pub print_config: bool,
}

/// A sound configuration, and what there is to say about it.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// What the administrator may want to change.
    pub warnings: Vec<Warning>,
    /// Every value with its origin; none unless [`Flags::print_config`] asks for it.
    pub effective: Option<Effective>,
}

impl Config {
    /// Makes a configuration of `file`, the process's `environment` and `flags`, of which the later
    /// ones win. Without a file, relative paths start from the working directory.
    ///
    /// # Errors
    /// All that is wrong with any of them.
    pub fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
        flags: &Flags,
    ) -> Result<Loaded, Vec<ConfigError>> {
        let source = file.map(Source::read).transpose().map_err(|error| vec![error])?;
        Self::load_source(source.as_ref(), &environment.into_iter().collect(), flags)
    }

    /// [`Config::load`] once the file is read.
    pub(crate) fn load_source(
        source: Option<&Source>,
        environment: &BTreeMap<String, String>,
        flags: &Flags,
    ) -> Result<Loaded, Vec<ConfigError>> {
        let mut errors = Vec::new();
        let table = source.map(|source| source.parse(&mut errors));
        if !errors.is_empty() {
            errors.sort_by_key(|error| error.origin.place());
            return Err(errors); // what else is wrong in half a table would mislead
        }
        let file = source.zip(table.as_ref());
        if let Some((source, table)) = file {
            refuse_unknown_keys(source, table, &mut errors);
        }
        refuse_unknown_variables(environment, &mut errors);
        let effective = flags.print_config.then(Effective::default);
        let given = Layers { file, environment, flags };
        let mut session = Session { source, errors, effective };
        let resolved = resolve(&given, &mut session);
        let Session { mut errors, effective, .. } = session;
        match resolved {
            Some((config, warnings)) if errors.is_empty() => {
                Ok(Loaded { config, warnings, effective })
            }
            _ => {
                errors.sort_by_key(|error| error.origin.place());
                Err(errors)
            }
        }
    }
}

/// All that was given, before it is read.
pub(crate) struct Layers<'a> {
    /// The file and its content.
    pub file: Option<(&'a Source, &'a DeTable<'a>)>,
    /// The process's environment.
    pub environment: &'a BTreeMap<String, String>,
    /// The command line.
    pub flags: &'a Flags,
}

impl<'a> Layers<'a> {
    /// The values of a section's keys given by flags and environment.
    pub fn given(&self, section: &'static Section) -> Vec<(&'static str, Given<'a>)> {
        let by_flag = |name| match (section.kind, name, &self.flags.workers) {
            (Kind::Top, "workers", Some(text)) => {
                Some(Given { text, origin: Origin::Flag("--workers") })
            }
            _ => None,
        };
        let by_variable = |variable: String| {
            let text = self.environment.get(&variable)?;
            Some(Given { text, origin: Origin::Environment(variable) })
        };
        let keys = section.keys.iter();
        keys.filter_map(|key| {
            let given = by_flag(key.name);
            let given = given.or_else(|| by_variable(section.variable(key)?));
            Some((key.name, given?))
        })
        .collect()
    }

    /// The elements of a section that repeats which flags give, or else the variable.
    pub fn elements(&self, section: &'static Section) -> Vec<Given<'a>> {
        let (flag, texts) = match section.name {
            "listen" => ("--listen", &self.flags.listen),
            _ => ("--zone", &self.flags.zones),
        };
        let by_flag = texts.iter().map(|text| Given { text, origin: Origin::Flag(flag) });
        let variable = format!("ZONDA_{}", section.name.to_uppercase());
        let by_variable = self.environment.get(&variable).map_or("", String::as_str);
        let by_variable = split_list(by_variable)
            .map(|text| Given { text, origin: Origin::Environment(variable.clone()) });
        if texts.is_empty() { by_variable.collect() } else { by_flag.collect() }
    }

    /// The file's table of a section, and its place.
    pub fn section(&self, section: &'static Section) -> (Option<&'a DeTable<'a>>, Origin) {
        let Some((source, table)) = self.file else { return (None, Origin::Default) };
        if section.kind == Kind::Top {
            return (Some(table), source.origin(0));
        }
        match table.get(section.name) {
            Some(value) => (value.get_ref().as_table(), source.origin(value.span().start)),
            None => (None, Origin::Default),
        }
    }

    /// The file's elements of a section that repeats, each with its place.
    pub fn tables(
        &self,
        section: &'static Section,
    ) -> impl Iterator<Item = (&'a DeTable<'a>, Origin)> + use<'a> {
        self.file.into_iter().flat_map(|(source, table)| {
            let value = table.get(section.name).and_then(|value| value.get_ref().as_array());
            let elements = value.into_iter().flat_map(|array| array.iter());
            elements.filter_map(|element| {
                Some((element.get_ref().as_table()?, source.origin(element.span().start)))
            })
        })
    }
}

/// Reports every key of the file that does not exist.
fn refuse_unknown_keys(source: &Source, table: &DeTable<'_>, errors: &mut Vec<ConfigError>) {
    let [top, sections @ ..] = SECTIONS else { return };
    if !table.contains_key("version") {
        errors.push(ConfigError { origin: source.origin(0), problem: Problem::NoVersion });
    }
    for (name, value) in table {
        let Some(section) = sections.iter().find(|section| name.get_ref() == section.name) else {
            refuse_unknown_key(source, top, name, errors);
            continue;
        };
        match (section.kind, value.get_ref()) {
            (Kind::Table, DeValue::Table(table)) => {
                for (name, _) in table {
                    refuse_unknown_key(source, section, name, errors);
                }
            }
            (Kind::Open, DeValue::Table(_)) => {}
            (Kind::Array, DeValue::Array(elements))
                if elements.iter().all(|element| element.get_ref().is_table()) =>
            {
                let tables = elements.iter().filter_map(|element| element.get_ref().as_table());
                for (name, _) in tables.flatten() {
                    refuse_unknown_key(source, section, name, errors);
                }
            }
            _ => errors.push(ConfigError {
                origin: source.origin(name.span().start),
                problem: Problem::NotSection(section),
            }),
        }
    }
}

/// Reports a key that `section` does not have.
fn refuse_unknown_key(
    source: &Source,
    section: &'static Section,
    name: &Spanned<std::borrow::Cow<'_, str>>,
    errors: &mut Vec<ConfigError>,
) {
    let key = name.get_ref();
    if section.key(key).is_some() {
        return;
    }
    let mut known: Vec<&'static str> = section.keys.iter().map(|key| key.name).collect();
    if section.kind == Kind::Top {
        known.extend(SECTIONS.iter().skip(1).map(|section| section.name));
    }
    let home = SECTIONS.iter().find(|section| section.key(key).is_some());
    let suggestion = match (home, nearest(key, known.iter().copied())) {
        (Some(home), _) => Suggestion::Elsewhere(home.header()),
        (None, Some(near)) => Suggestion::Nearest(near.to_owned()),
        (None, None) => Suggestion::AnyOf(known),
    };
    errors.push(ConfigError {
        origin: source.origin(name.span().start),
        problem: Problem::UnknownKey(key.to_string(), suggestion),
    });
}

/// Reports every variable that begins with `ZONDA_` and sets nothing.
fn refuse_unknown_variables(environment: &BTreeMap<String, String>, errors: &mut Vec<ConfigError>) {
    let ours = environment.keys().filter(|name| name.starts_with("ZONDA_"));
    let known = variables();
    for name in ours.filter(|name| !known.contains(name)) {
        let suggestion = match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => Suggestion::Nearest(near.to_owned()),
            None => Suggestion::Variable,
        };
        errors.push(ConfigError {
            origin: Origin::Environment(name.clone()),
            problem: Problem::UnknownVariable(suggestion),
        });
    }
}

/// Every variable that sets something.
pub(crate) fn variables() -> Vec<String> {
    let of_section = |section: &&'static Section| -> Vec<String> {
        match section.kind {
            Kind::Array => vec![format!("ZONDA_{}", section.name.to_uppercase())],
            _ => section.keys.iter().filter_map(|key| section.variable(key)).collect(),
        }
    };
    SECTIONS.iter().flat_map(of_section).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_makes_loading_panic() {
        let text = include_str!("../tests/errors/values.toml");
        for (cut, _) in text.char_indices() {
            for junk in ["", "\"", "[", "]]", "= {", "ä\u{0}", "\n\n"] {
                let text = format!("{}{junk}{}", &text[..cut], &text[cut..]);
                let source = Source::new(Path::new("zonda.toml"), text);
                let errors =
                    Config::load_source(Some(&source), &BTreeMap::new(), &Flags::default());
                assert!(errors.is_err());
            }
        }
    }
}
