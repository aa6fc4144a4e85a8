//! JSON text looked at in place: values stay text until they are read.
//!
//! A value knows where it stands, because it borrows from the text of the file.

use super::problem::JsonFault;
use serde::Deserializer as _;
use serde::de::{Deserialize, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// The text of one JSON value.
#[derive(Clone, Copy)]
pub(super) struct Json<'t>(&'t str);

/// A fault and where in the file it is.
pub(super) struct LocatedFault<'t> {
    /// The text from the fault on.
    pub(super) at: &'t str,
    /// Members and indexes that lead there from the value that was read.
    pub(super) path: String,
    pub(super) fault: JsonFault,
}

impl<'t> LocatedFault<'t> {
    /// The same fault, its path beginning at the value that holds this one as `step`.
    pub(super) fn within(mut self, step: &str) -> Self {
        let is_end = step.is_empty() || self.path.is_empty();
        let dot = if is_end || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{step}{dot}{}", self.path);
        self
    }
}

/// Reads the value that the text of a file is.
pub(super) fn parse(text: &str) -> Result<Json<'_>, LocatedFault<'_>> {
    let read: Result<&RawValue, _> = serde_json::from_str(text);
    read.map(|raw| Json(raw.get())).map_err(|error| syntax(text, &error))
}

impl<'t> Json<'t> {
    /// The text.
    pub(super) fn text(self) -> &'t str {
        self.0
    }

    /// Returns a fault of this value.
    pub(super) fn wrong(self, fault: JsonFault) -> LocatedFault<'t> {
        LocatedFault { at: self.0, path: String::new(), fault }
    }

    /// Returns the fault that this value should be something else.
    pub(super) fn expected(self, what: &'static str) -> LocatedFault<'t> {
        self.wrong(JsonFault::Expected(what))
    }

    /// Whether the value is `null`.
    pub(super) fn is_null(self) -> bool {
        self.0 == "null"
    }

    /// Whether the value begins as objects (`{`), lists (`[`) or strings (`"`) do.
    pub(super) fn begins(self, with: char) -> bool {
        self.0.starts_with(with)
    }

    /// Hands over the members of an object, in the order in which they stand.
    pub(super) fn members(
        self,
        take: impl FnMut(Cow<'t, str>, Json<'t>) -> Result<(), LocatedFault<'t>>,
    ) -> Result<(), LocatedFault<'t>> {
        if !self.begins('{') {
            return Err(self.expected("an object"));
        }
        let mut result = Ok(());
        let visitor = Members { take, result: &mut result };
        let read = serde_json::Deserializer::from_str(self.0).deserialize_map(visitor);
        result.and(read.map_err(|error| syntax(self.0, &error)))
    }

    /// Hands over the elements of a list, each with its index.
    pub(super) fn elements(
        self,
        take: impl FnMut(usize, Json<'t>) -> Result<(), LocatedFault<'t>>,
    ) -> Result<(), LocatedFault<'t>> {
        if !self.begins('[') {
            return Err(self.expected("a list"));
        }
        let mut result = Ok(());
        let visitor = Elements { take, result: &mut result };
        let read = serde_json::Deserializer::from_str(self.0).deserialize_seq(visitor);
        result.and(read.map_err(|error| syntax(self.0, &error)))
    }

    /// The content of a string.
    pub(super) fn string(self) -> Result<Cow<'t, str>, LocatedFault<'t>> {
        if !self.begins('"') {
            return Err(self.expected("a string"));
        }
        let read = Text::deserialize(&mut serde_json::Deserializer::from_str(self.0));
        read.map(|text| text.0).map_err(|error| syntax(self.0, &error))
    }

    /// The content of a string, or the digits of a number.
    pub(super) fn word(self) -> Result<Cow<'t, str>, LocatedFault<'t>> {
        match self.0.as_bytes().first() {
            Some(b'"') => self.string(),
            Some(b'0'..=b'9' | b'-') => Ok(Cow::Borrowed(self.0)),
            _ => Err(self.expected("a string or a number")),
        }
    }

    /// A whole number in a range; `true` counts as 1 and `false` as 0.
    pub(super) fn number(self, min: i64, max: i64) -> Result<i64, LocatedFault<'t>> {
        let number = match self.0 {
            "true" => Some(1),
            "false" => Some(0),
            digits => digits.parse().ok(),
        };
        number
            .filter(|number| (min..=max).contains(number))
            .ok_or_else(|| self.wrong(JsonFault::Number { min, max }))
    }
}

/// What serde_json says of a text, without the place, which is known in the file's terms.
fn syntax<'t>(text: &'t str, error: &serde_json::Error) -> LocatedFault<'t> {
    let said = error.to_string();
    let what = said.rsplit_once(" at line ").map_or(&said[..], |(what, _)| what);
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    let before = lines.map(str::len).sum::<usize>() + error.column().saturating_sub(1);
    let at = text.get(before..).unwrap_or(&text[text.len()..]);
    LocatedFault { at, path: String::new(), fault: JsonFault::Syntax(what.into()) }
}

/// Text of a string, borrowed where it holds no escapes.
struct Text<'t>(Cow<'t, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

/// Walks over an object; the first fault is kept, the rest of the object is then skipped.
struct Members<'a, 't, F> {
    take: F,
    result: &'a mut Result<(), LocatedFault<'t>>,
}

impl<'t, F> Visitor<'t> for Members<'_, 't, F>
where
    F: FnMut(Cow<'t, str>, Json<'t>) -> Result<(), LocatedFault<'t>>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'t>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some((key, value)) = map.next_entry::<Text<'t>, &RawValue>()? {
            if self.result.is_ok() {
                *self.result = (self.take)(key.0, Json(value.get()));
            }
        }
        Ok(())
    }
}

/// Walks over a list, as [`Members`] does over an object.
struct Elements<'a, 't, F> {
    take: F,
    result: &'a mut Result<(), LocatedFault<'t>>,
}

impl<'t, F> Visitor<'t> for Elements<'_, 't, F>
where
    F: FnMut(usize, Json<'t>) -> Result<(), LocatedFault<'t>>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'t>>(mut self, mut list: A) -> Result<(), A::Error> {
        let mut index = 0;
        while let Some(value) = list.next_element::<&RawValue>()? {
            if self.result.is_ok() {
                *self.result = (self.take)(index, Json(value.get()));
            }
            index += 1;
        }
        Ok(())
    }
}
