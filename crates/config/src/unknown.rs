//! Refuses keys and variables that do not exist, and says what they may have meant.

use crate::document::Source;
use crate::error::{ConfigError, Origin, Problem, Suggestion};
use crate::keys::SECTIONS;
use crate::section::{Kind, Section};
use crate::toml::Spanned;
use crate::toml::de::{DeTable, DeValue};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Reports every key and section of the file that does not exist.
pub(crate) fn refuse_keys(source: &Source, table: &DeTable<'_>, errors: &mut Vec<ConfigError>) {
    let [top, sections @ ..] = SECTIONS else { return };
    for (name, value) in table {
        let found = sections.iter().find(|section| name.get_ref() == section.name);
        let Some(section) = found.filter(|section| !section.kind.is_nested()) else {
            refuse_key(source, top, name, errors);
            continue;
        };
        let Some(tables) = tables(section, value.get_ref()) else {
            let origin = source.origin(name.span().start);
            errors.push(ConfigError { origin, problem: Problem::NotSection(section) });
            continue;
        };
        if section.kind != Kind::Open {
            for (name, value) in tables.into_iter().flatten() {
                match nested(section, name.get_ref()) {
                    Some(nested) => refuse_nested_keys(source, nested, value, errors),
                    None => refuse_key(source, section, name, errors),
                }
            }
        }
    }
}

/// Returns the section that stands in `section`, or in elements of it, under this name.
fn nested(section: &Section, name: &str) -> Option<&'static Section> {
    SECTIONS.iter().copied().find(|nested| nested.place() == Some((section.name, name)))
}

/// Reports every key of a nested section that does not exist.
fn refuse_nested_keys(
    source: &Source,
    section: &'static Section,
    value: &Spanned<DeValue<'_>>,
    errors: &mut Vec<ConfigError>,
) {
    match tables(section, value.get_ref()) {
        Some(_) if section.kind == Kind::NestedOpen => {}
        Some(tables) => tables
            .into_iter()
            .flatten()
            .for_each(|(name, _)| refuse_key(source, section, name, errors)),
        None => {
            let origin = source.origin(value.span().start);
            errors.push(ConfigError { origin, problem: Problem::NotSection(section) });
        }
    }
}

/// Returns the tables of a section; none if it is not written as its kind is.
fn tables<'a>(section: &Section, value: &'a DeValue<'a>) -> Option<Vec<&'a DeTable<'a>>> {
    let repeats = matches!(section.kind, Kind::Array | Kind::NestedArray);
    match value {
        DeValue::Table(table) if !repeats => Some(vec![table]),
        DeValue::Array(elements) if repeats => {
            elements.iter().map(|element| element.get_ref().as_table()).collect()
        }
        _ => None,
    }
}

/// Reports a key if `section` does not have it.
fn refuse_key(
    source: &Source,
    section: &'static Section,
    name: &Spanned<Cow<'_, str>>,
    errors: &mut Vec<ConfigError>,
) {
    let key = name.get_ref();
    if section.key(key).is_some() {
        return;
    }
    let mut known: Vec<&'static str> = section.keys.iter().map(|key| key.name).collect();
    if section.kind == Kind::Top {
        let sections = SECTIONS.iter().skip(1).filter(|section| !section.kind.is_nested());
        known.extend(sections.map(|section| section.name));
    }
    // A key of a section within another one is meant where it would stand beside that section.
    let is_near = |home: &&&Section| home.place().is_none_or(|(outer, _)| outer == section.name);
    let homes = SECTIONS.iter().filter(|section| section.key(key).is_some()).filter(is_near);
    let home = homes.min_by_key(|section| section.kind.is_nested()); // there it is less likely
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

/// Reports every variable that begins with `ZONDA_` and sets nothing, but for those by which
/// Kubernetes gives the addresses of Services.
pub(crate) fn refuse_variables(
    environment: &BTreeMap<String, String>,
    errors: &mut Vec<ConfigError>,
) {
    let ours = environment.iter().filter(|(name, _)| name.starts_with("ZONDA_"));
    let ours = ours.filter(|(name, value)| !is_of_service(name, value)).map(|(name, _)| name);
    let known: Vec<String> = SECTIONS.iter().flat_map(|section| section.variables()).collect();
    for name in ours.filter(|name| !known.contains(name)) {
        let near = nearest(name, known.iter().map(String::as_str));
        let suggestion =
            near.map_or(Suggestion::Variable, |near| Suggestion::Nearest(near.to_owned()));
        errors.push(ConfigError {
            origin: Origin::Environment(name.clone()),
            problem: Problem::UnknownVariable(suggestion),
        });
    }
}

/// Whether a variable is one that Kubernetes sets in every pod for a Service called `zonda` or
/// `zonda-…`: `ZONDA_SERVICE_HOST`, `ZONDA_SERVICE_PORT…`, `ZONDA_PORT=udp://…` and
/// `ZONDA_PORT_53_UDP…`.
fn is_of_service(name: &str, value: &str) -> bool {
    let numbered = name.split("_PORT_").skip(1).any(|rest| rest.starts_with(char::is_numeric));
    let is_address = name.ends_with("_PORT") && value.contains("://");
    name.ends_with("_SERVICE_HOST") || name.contains("_SERVICE_PORT") || numbered || is_address
}

/// Returns the name among `known` that `name` is most likely a slip of.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let slips_max = (name.chars().count() / 3).max(2);
    known
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(slips, _)| *slips <= slips_max)
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, candidate)| candidate)
}

/// Returns how many characters to insert, delete or replace to make one text the other
/// (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, &b) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
