//! Reads the keys of a section from what was given: flags, else environment, else file, else
//! default.

use crate::document::Source;
use crate::effective::Effective;
use crate::error::{ConfigError, Contradiction, Origin, Problem};
use crate::section::{Key, Section, Shape, split_list};
use crate::toml::Spanned;
use crate::toml::de::{DeTable, DeValue};
use crate::value::{Field, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;

/// The input and the results of one reading of the configuration.
pub(crate) struct Session<'a> {
    /// The file, if there is one.
    pub source: Option<&'a Source>,
    /// The errors found so far.
    pub errors: Vec<ConfigError>,
    /// All values read, if they are to be printed.
    pub effective: Option<Effective>,
    /// The codes of options that queries to upstreams have if the client's query has them.
    pub option_codes: BTreeSet<u16>,
}

impl<'a> Session<'a> {
    /// A session that reads a file, if there is one, and has found these errors before.
    pub fn new(
        source: Option<&'a Source>,
        errors: Vec<ConfigError>,
        effective: Option<Effective>,
    ) -> Self {
        Self { source, errors, effective, option_codes: BTreeSet::new() }
    }

    /// Reports a problem.
    pub fn fail(&mut self, origin: Origin, problem: Problem) {
        self.errors.push(ConfigError { origin, problem });
    }
}

/// A value given outside of the file, in the text form.
#[derive(Clone, Debug)]
pub(crate) struct RawValue<'a> {
    /// Text as it was written.
    pub text: &'a str,
    /// Place where the value was given.
    pub origin: Origin,
}

/// Reads one section, or one element of a section that repeats.
pub(crate) struct Reader<'s, 'a> {
    session: &'s mut Session<'a>,
    section: &'static Section,
    table: Option<&'a DeTable<'a>>,
    given: Vec<(&'static str, RawValue<'a>)>,
    /// The place of the section itself.
    origin: Origin,
}

/// One value to read, and where it stands.
struct Item<'a> {
    text: Cow<'a, str>,
    /// Shape of the value; none where everything is text.
    shape: Option<Shape>,
    /// Place of the section in the file.
    span: Option<std::ops::Range<usize>>,
}

impl<'s, 'a> Reader<'s, 'a> {
    /// Begins to read `section`; `given` takes precedence over `table`.
    pub fn new(
        session: &'s mut Session<'a>,
        section: &'static Section,
        table: Option<&'a DeTable<'a>>,
        given: Vec<(&'static str, RawValue<'a>)>,
        origin: Origin,
    ) -> Self {
        if let Some(effective) = &mut session.effective {
            effective.begin(section);
        }
        Self { session, section, table, given, origin }
    }

    /// Returns the file's table of a section nested in this one, and its place.
    pub fn nested(&self, section: &'static Section) -> Option<(&'a DeTable<'a>, Origin)> {
        let value = self.table?.get(section.place()?.1)?;
        let origin = self.session.source?.origin(value.span().start);
        Some((value.get_ref().as_table()?, origin))
    }

    /// Returns the file's tables of a section nested in this one that repeats, each with its place.
    pub fn nested_elements(&self, section: &'static Section) -> Vec<(&'a DeTable<'a>, Origin)> {
        let value = section.place().and_then(|(_, word)| self.table?.get(word));
        let elements = value.and_then(|value| value.get_ref().as_array()).into_iter().flatten();
        let source = self.session.source;
        let element = elements.filter_map(|element| {
            Some((element.get_ref().as_table()?, source?.origin(element.span().start)))
        });
        element.collect()
    }

    /// Returns the keys that the user has named in the file.
    pub fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.table.into_iter().flatten().map(|(name, _)| &**name.get_ref())
    }

    /// Returns a reader of a section nested in this one.
    pub fn nested_reader<'n>(
        &'n mut self,
        section: &'static Section,
        (table, origin): (Option<&'a DeTable<'a>>, Origin),
        given: Vec<(&'static str, RawValue<'a>)>,
    ) -> Reader<'n, 'a> {
        Reader::new(self.session, section, table, given, origin)
    }

    /// Reads `key`; none if what was given is wrong, which is then reported.
    pub fn read<F: Field>(&mut self, key: &'static Key) -> Option<F> {
        self.read_named(key.name, key)
    }

    /// Reads the value of `name`, which is described by `key`.
    pub fn read_named<F: Field>(&mut self, name: &str, key: &'static Key) -> Option<F> {
        let (items, origin) = self.find(name, key);
        let directory = self.directory_of(&origin);
        let mut values = Vec::with_capacity(items.len());
        let mut sound = true;
        for item in &items {
            let shape_fits = item.shape.is_none_or(|shape| key.shape.takes(shape));
            let value = F::Item::from_text(&item.text).filter(|v| shape_fits && within(key, v));
            match value {
                Some(value) => values.push(value.relative_to(directory)),
                None => {
                    self.refuse(name, key, item, &origin);
                    sound = false;
                }
            }
        }
        if let Some(effective) = &mut self.session.effective {
            let texts: Vec<&str> = items.iter().map(|item| &*item.text).collect();
            effective.record(key, name, &texts, &origin);
        }
        let field = if sound { F::gather(values) } else { return None };
        if field.is_none() {
            self.fail(None, Problem::Missing(self.section, key));
        }
        field
    }

    /// Notes what the unset `key` came out as.
    pub fn derive(&mut self, key: &str, path: Option<&Path>) {
        let (effective, key) = (&mut self.session.effective, self.section.key(key));
        if let (Some(effective), Some(key), Some(path)) = (effective, key, path) {
            effective.derive(key, &path.to_string_lossy());
        }
    }

    /// Reports a problem at the place of `key`, or of the section.
    pub fn fail(&mut self, key: Option<&str>, problem: Problem) {
        let origin = key.map_or_else(|| self.origin.clone(), |key| self.origin_of(key));
        self.session.fail(origin, problem);
    }

    /// Reports values that are wrong together at the place of `key`, or of the section.
    pub fn contradict(&mut self, key: Option<&str>, contradiction: Contradiction) {
        self.fail(key, Problem::Together(contradiction));
    }

    /// Notes codes of options that queries to upstreams have if the client's query has them;
    /// returns how many there are in all sections by now.
    pub fn note_option_codes(&mut self, codes: impl Iterator<Item = u16>) -> usize {
        self.session.option_codes.extend(codes);
        self.session.option_codes.len()
    }

    /// Place where the value of `key` came from; the section's place if it is not set.
    pub fn origin_of(&self, key: &str) -> Origin {
        if let Some((_, given)) = self.given.iter().find(|(name, _)| *name == key) {
            return given.origin.clone();
        }
        match (self.table.and_then(|table| table.get(key)), self.session.source) {
            (Some(value), Some(source)) => source.origin(value.span().start),
            _ => self.origin.clone(),
        }
    }

    /// Whether `key` is set.
    pub fn is_set(&self, key: &str) -> bool {
        self.given.iter().any(|(name, _)| *name == key)
            || self.table.is_some_and(|table| table.get(key).is_some())
    }

    /// Returns what was given for a key, and where; the default if nothing was.
    fn find(&self, name: &str, key: &'static Key) -> (Vec<Item<'a>>, Origin) {
        if let Some((_, given)) = self.given.iter().find(|(given, _)| *given == name) {
            return (items_of_text(key, given.text), given.origin.clone());
        }
        match (self.table.and_then(|table| table.get(name)), self.session.source) {
            (Some(value), Some(source)) => {
                (items_of_toml(key, value, source), source.origin(value.span().start))
            }
            _ => {
                let items = key.default.map(|text| items_of_text(key, text));
                (items.unwrap_or_default(), Origin::Default)
            }
        }
    }

    /// Reports a value that `key` cannot have.
    fn refuse(&mut self, name: &str, key: &'static Key, item: &Item<'_>, origin: &Origin) {
        let place = self.session.source.zip(item.span.clone());
        let found = match place {
            _ if key.secret => "the value given".to_owned(),
            Some((source, ref span)) => source.excerpt(span.clone()).to_owned(),
            None => format!("\"{}\"", item.text),
        };
        let found = match found.char_indices().nth(FOUND_CHARS_MAX) {
            Some((end, _)) => format!("{}…", &found[..end]),
            None => found,
        };
        let origin = place.map_or(origin.clone(), |(source, span)| source.origin(span.start));
        let problem = Problem::Value { key: name.to_owned(), found, form: key.form() };
        self.session.fail(origin, problem);
    }

    /// Returns the directory that a relative path given at `origin` starts from.
    fn directory_of(&self, origin: &Origin) -> &'a Path {
        match (origin, self.session.source) {
            (Origin::File { .. }, Some(source)) => source.directory(),
            _ => Path::new(""),
        }
    }
}

/// Most characters of a wrong value that an error repeats.
const FOUND_CHARS_MAX: usize = 60;

/// Returns the values that a text stands for.
fn items_of_text<'a>(key: &Key, text: &'a str) -> Vec<Item<'a>> {
    let item = |text: &'a str| Item { text: text.into(), shape: None, span: None };
    if key.many { split_list(text).map(item).collect() } else { vec![item(text)] }
}

/// Returns the values that a TOML value stands for.
fn items_of_toml<'a>(
    key: &Key,
    value: &'a Spanned<DeValue<'a>>,
    source: &'a Source,
) -> Vec<Item<'a>> {
    let item = |value: &'a Spanned<DeValue<'a>>| {
        let (text, shape) = source.text_form(value);
        Item { text, shape: Some(shape), span: Some(value.span()) }
    };
    match value.get_ref() {
        DeValue::Array(values) if key.many => values.iter().map(item).collect(),
        _ => vec![item(value)],
    }
}

/// Whether a value lies in the range of its key.
fn within<V: Value>(key: &Key, value: &V) -> bool {
    let bound = |text| V::from_text(text).and_then(|bound| bound.measure());
    match (key.range, value.measure()) {
        (Some((low, high)), Some(size)) => {
            bound(low).is_some_and(|low| low <= size)
                && bound(high).is_some_and(|high| size <= high)
        }
        _ => true,
    }
}
