//! Loads a configuration: finds what was given, refuses unknown keys, reads every section.

use crate::document::Source;
use crate::effective::Effective;
use crate::error::{ConfigError, Origin, Problem, Warning};
use crate::keys::StoreKeys;
use crate::reader::{RawValue, Session};
use crate::resolve::resolve;
use crate::section::{Keys, Kind, Section, split_list};
use crate::toml::de::DeTable;
use crate::{Config, unknown};
use std::collections::BTreeMap;
use std::path::Path;

/// Lines that are not TOML which are reported one by one; a file with more of them is something
/// else.
const FAULTS_TOLD_MAX: usize = 5;

/// Settings of the command line, as the user wrote them.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--listen ADDRESS`, any number; they take the place of the file's listeners.
    pub listen: Vec<String>,
    /// Listen nowhere: for programs that ask themselves. Addresses in `listen` win over it.
    pub listen_nowhere: bool,
    /// `--zone NAME=FILE`, any number; they come before the file's zones.
    pub zones: Vec<String>,
    /// `--store NAME=URL`, any number; they come before the file's zones.
    pub stores: Vec<String>,
    /// `--forward ADDRESS`, any number, separated by commas; they answer for the zone `.`. What
    /// begins with `/`, `./` or `../` is a file that names them.
    pub forward: Option<String>,
    /// `--kubernetes NAME`, the zone of a cluster in which, or with whose kubeconfig, the server
    /// runs.
    pub kubernetes: Option<String>,
    /// `--steer NAME=ADDRESS:PORT,…`, any number; names that pools of these members answer for.
    pub steer: Vec<String>,
    /// `--check KIND:WHAT`, how the members of `steer` are checked.
    pub check: Option<String>,
    /// Whether the flag `--writable` says that the zones in `zones` can be changed.
    pub writable: bool,
    /// Text of the flag `--workers N`.
    pub workers: Option<String>,
    /// Text of the flag `--state DIR`.
    pub state: Option<String>,
    /// `--print-config`: keep what [`LoadedConfig::effective`] prints.
    pub print_config: bool,
}

/// A sound configuration, and what there is to say about it.
#[derive(Debug)]
pub struct LoadedConfig {
    /// The valid configuration.
    pub config: Config,
    /// Advice to the administrator.
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
    ) -> Result<LoadedConfig, Vec<ConfigError>> {
        refuse_files(file)?;
        let source = file.map(Source::read).transpose().map_err(|error| vec![error])?;
        Self::load_source(source.as_ref(), &environment.into_iter().collect(), flags)
    }

    /// Makes a configuration as [`Config::load`] does, of a text in place of that of the file at
    /// `path`.
    ///
    /// # Errors
    /// All that is wrong with any of them.
    pub fn load_text(
        (path, text): (&Path, String),
        environment: impl IntoIterator<Item = (String, String)>,
        flags: &Flags,
    ) -> Result<LoadedConfig, Vec<ConfigError>> {
        refuse_files(Some(path))?;
        let source = Source::new(path, text);
        Self::load_source(Some(&source), &environment.into_iter().collect(), flags)
    }

    /// [`Config::load`] once the file is read.
    pub(crate) fn load_source(
        source: Option<&Source>,
        environment: &BTreeMap<String, String>,
        flags: &Flags,
    ) -> Result<LoadedConfig, Vec<ConfigError>> {
        let mut errors = Vec::new();
        let table = source.map(|source| source.parse(&mut errors));
        if let Some(source) = source.filter(|it| !errors.is_empty() && it.looks_like_a_zone()) {
            return Err(vec![source.zone_file()]);
        }
        if !errors.is_empty() {
            errors.sort_by_key(|error| error.origin.place());
            // One mistake makes several of the rest of its line.
            errors.dedup_by_key(|error| error.origin.place().0);
            let more = errors.len().saturating_sub(FAULTS_TOLD_MAX);
            errors.truncate(FAULTS_TOLD_MAX);
            if let Some(last) = errors.last().filter(|_| more > 0) {
                let (origin, problem) = (last.origin.clone(), Problem::MoreSyntax(more));
                errors.push(ConfigError { origin, problem });
            }
            return Err(errors); // what else is wrong in half a table would mislead
        }
        let file = source.zip(table.as_ref());
        if let Some((source, table)) = file {
            unknown::refuse_keys(source, table, &mut errors);
            if !table.contains_key("version") {
                let origin = source.origin(0);
                errors.push(ConfigError { origin, problem: Problem::NoVersion });
            }
        }
        unknown::refuse_variables(environment, &mut errors);
        let effective = flags.print_config.then(Effective::default);
        let forward = ForwardTexts::of(environment, flags);
        let given = Layers { file, environment, flags, forward: forward.as_ref() };
        let mut session = Session::new(source, errors, effective);
        let resolved = resolve(&given, &mut session);
        let Session { mut errors, effective, .. } = session;
        match resolved {
            Some((config, warnings)) if errors.is_empty() => {
                Ok(LoadedConfig { config, warnings, effective })
            }
            _ => {
                errors.sort_by_key(|error| error.origin.place());
                Err(errors)
            }
        }
    }
}

/// Refuses a file if this program was built without configuration files.
fn refuse_files(file: Option<&Path>) -> Result<(), Vec<ConfigError>> {
    match file {
        Some(path) if cfg!(not(feature = "file")) => {
            let problem = Problem::NoFiles(path.to_owned());
            Err(vec![ConfigError { origin: Origin::Flag("--config"), problem }])
        }
        _ => Ok(()),
    }
}

/// Everything given as configuration, before it is read.
pub(crate) struct Layers<'a> {
    /// The file and its content.
    pub file: Option<(&'a Source, &'a DeTable<'a>)>,
    /// The process's environment.
    pub environment: &'a BTreeMap<String, String>,
    /// The command line.
    pub flags: &'a Flags,
    /// The servers of the zone `.` that were given outside of the file.
    forward: Option<&'a ForwardTexts>,
}

/// The servers of the zone `.` that flags give, or else the variable.
struct ForwardTexts {
    /// Addresses, separated by commas.
    to: String,
    /// Paths of files that name servers, separated by commas.
    files: String,
    /// The flag or the variable.
    origin: Origin,
}

impl ForwardTexts {
    /// Finds what was given, if anything was.
    fn of(environment: &BTreeMap<String, String>, flags: &Flags) -> Option<Self> {
        const VARIABLE: &str = "ZONDA_FORWARD";
        let (text, origin) = match &flags.forward {
            Some(text) => (text, Origin::Flag("--forward")),
            None => (environment.get(VARIABLE)?, Origin::Environment(VARIABLE.to_owned())),
        };
        let is_file = |item: &&str| ["/", "./", "../"].iter().any(|start| item.starts_with(start));
        let (files, to): (Vec<&str>, Vec<&str>) = split_list(text).partition(is_file);
        Some(Self { to: to.join(","), files: files.join(","), origin })
    }
}

impl<'a> Layers<'a> {
    /// Returns the values of a section's keys given by flags and environment.
    pub fn given(&self, section: &'static Section) -> Vec<(&'static str, RawValue<'a>)> {
        let by_flag = |name| {
            let (flag, text) = match (section.kind, name) {
                (Kind::Top, "workers") => ("--workers", &self.flags.workers),
                (Kind::Top, "state") => ("--state", &self.flags.state),
                _ => return None,
            };
            Some(RawValue { text: text.as_deref()?, origin: Origin::Flag(flag) })
        };
        let by_variable = |variable: String| {
            let text = self.environment.get(&variable)?;
            Some(RawValue { text, origin: Origin::Environment(variable) })
        };
        let keys = section.keys.iter();
        keys.filter_map(|key| {
            let given = by_flag(key.name);
            let given = given.or_else(|| by_variable(section.variable(key)?));
            Some((key.name, given?))
        })
        .collect()
    }

    /// Returns where the servers of the zone `.` come from if they were given outside of the file,
    /// and the keys of the zone's section that are set so.
    pub fn forward(&self) -> Option<(Origin, Vec<(&'static str, RawValue<'a>)>)> {
        let ForwardTexts { to, files, origin } = self.forward?;
        let given = [("to", to), ("resolv-conf", files)].into_iter();
        let value = |text| RawValue { text, origin: origin.clone() };
        // A text without any server is refused as one.
        let is_set =
            |(key, text): &(&str, &String)| !text.is_empty() || *key == "to" && files.is_empty();
        let keys = given.filter(is_set).map(|(key, text)| (key, value(text)));
        Some((origin.clone(), keys.collect()))
    }

    /// Returns the name of the cluster's zone that a flag gives, or else the variable.
    pub fn kubernetes(&self) -> Option<RawValue<'a>> {
        const VARIABLE: &str = "ZONDA_KUBERNETES";
        if let Some(text) = &self.flags.kubernetes {
            return Some(RawValue { text, origin: Origin::Flag("--kubernetes") });
        }
        let text = self.environment.get(VARIABLE)?;
        Some(RawValue { text, origin: Origin::Environment(VARIABLE.to_owned()) })
    }

    /// Returns the zones in databases that flags give, or else the variable.
    pub fn stores(&self) -> Vec<RawValue<'a>> {
        self.list(("--store", &self.flags.stores), &StoreKeys::SECTION)
    }

    /// Returns the elements of a section that repeats which flags give, or else the variable.
    pub fn elements(&self, section: &'static Section) -> Vec<RawValue<'a>> {
        let flag = match section.name {
            "listen" => ("--listen", &self.flags.listen[..]),
            _ => ("--zone", &self.flags.zones[..]),
        };
        self.list(flag, section)
    }

    /// Returns what was given by a flag, or else the items of the variable of a section.
    fn list(
        &self,
        (flag, texts): (&'static str, &'a [String]),
        section: &'static Section,
    ) -> Vec<RawValue<'a>> {
        let by_flag = texts.iter().map(|text| RawValue { text, origin: Origin::Flag(flag) });
        if !texts.is_empty() {
            return by_flag.collect();
        }
        let variables = section.variables().into_iter();
        let set = variables.filter_map(|name| Some((self.environment.get(&name)?, name)));
        set.flat_map(|(list, name)| {
            let origin = Origin::Environment(name);
            split_list(list).map(move |text| RawValue { text, origin: origin.clone() })
        })
        .collect()
    }

    /// Returns where it is said that a section which repeats has no elements: by the flag for that,
    /// or by an empty list in the file. Its elements, if there are any, win over the flag.
    pub fn none_of(&self, section: &'static Section) -> Option<Origin> {
        if section.name == "listen" && self.flags.listen_nowhere {
            return Some(Origin::Flag("listen_nowhere"));
        }
        let (source, table) = self.file?;
        let value = table.get(section.name)?;
        let is_empty = value.get_ref().as_array().is_some_and(|array| array.is_empty());
        is_empty.then(|| source.origin(value.span().start))
    }

    /// Returns the file's table of a section, and its place.
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

    /// Returns the file's elements of a section that repeats, each with its place.
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
