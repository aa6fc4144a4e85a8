//! Records as stores keep them, and what is wrong with them.

use std::fmt;
use zonda_wire::rdata::from_text;
use zonda_wire::{Name, Type};

/// The greatest time to live, seconds (rfc2181#8).
const TTL_SECS_MAX: u32 = i32::MAX as u32;
/// Characters of a wrong record that its error shows.
const SHOWN_MAX: usize = 80;

/// All records of one name and type, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordSet {
    /// The name, as in a zone file but always complete, with or without a final dot.
    pub owner: String,
    /// The type: its mnemonic, or `TYPE123`.
    pub rtype: String,
    /// Time to live, seconds, at most 2³¹ − 1.
    pub ttl_secs: u32,
    /// The data of each record, as in a zone file; names in it are complete.
    pub data: Vec<String>,
    /// Why the store cannot read the data.
    unreadable: Option<String>,
}

/// Records that are right, as a zone holds them.
#[derive(Debug)]
pub(super) struct ReadSet {
    /// The name, in lower case.
    pub owner: Name,
    /// Type of the records.
    pub rtype: Type,
    /// Time to live, seconds.
    pub ttl_secs: u32,
    /// The data of each, in wire form.
    pub data: Vec<Vec<u8>>,
}

/// A record that cannot be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// Owner and type, as the store has them.
    record: String,
    /// What is wrong.
    why: String,
}

impl RecordError {
    /// Of a record of this owner and type.
    fn new(owner: &str, rtype: &str, why: impl fmt::Display) -> Self {
        let record = format!("{} {}", shown(owner), shown(rtype));
        Self { record, why: why.to_string() }
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.record, self.why)
    }
}

impl std::error::Error for RecordError {}

impl RecordSet {
    /// Records of a name and a type, such as
    /// `RecordSet::new("www.example.org", "A", 300, ["192.0.2.1", "192.0.2.2"])`.
    pub fn new(
        owner: impl ToString,
        rtype: impl ToString,
        ttl_secs: u32,
        data: impl IntoIterator<Item = impl ToString>,
    ) -> Self {
        let data = data.into_iter().map(|data| data.to_string()).collect();
        let (owner, rtype) = (owner.to_string(), rtype.to_string());
        Self { owner, rtype, ttl_secs, data, unreadable: None }
    }

    /// Records that a store has in a form it cannot read; the log names them, and says why.
    pub fn unreadable(owner: impl ToString, rtype: impl ToString, why: impl ToString) -> Self {
        let none: [&str; 0] = [];
        Self { unreadable: Some(why.to_string()), ..Self::new(owner, rtype, 0, none) }
    }

    /// Returns the set with the owner in the one form that stores write: in lower case and without
    /// its final dot, and the type in capitals.
    ///
    /// # Errors
    /// The first record that could not be served; at least one is needed.
    pub fn normal(&self) -> Result<Self, RecordError> {
        let (read, wrong) = self.read()?;
        if let Some(error) = wrong.into_iter().next() {
            return Err(error);
        }
        if read.data.is_empty() {
            return Err(RecordError::new(&self.owner, &self.rtype, "there are no data"));
        }
        let owner = without_final_dot(&read.owner);
        Ok(Self { owner, rtype: read.rtype.to_string(), ..self.clone() })
    }

    /// Returns the valid records and the faults of the rest; an error if none is valid.
    pub(super) fn read(&self) -> Result<(ReadSet, Vec<RecordError>), RecordError> {
        let wrong = |why: &dyn fmt::Display| RecordError::new(&self.owner, &self.rtype, why);
        if let Some(why) = &self.unreadable {
            return Err(wrong(why));
        }
        let owner: Name = self.owner.parse().map_err(|error| wrong(&error))?;
        let rtype: Type = self.rtype.parse().map_err(|error| wrong(&error))?;
        if rtype.is_meta() || rtype.0 == 0 {
            return Err(wrong(&"no record can have this type"));
        }
        if self.ttl_secs > TTL_SECS_MAX {
            return Err(wrong(&"its time to live is above 2147483647"));
        }
        let (mut data, mut errors) = (Vec::with_capacity(self.data.len()), Vec::new());
        for text in &self.data {
            match from_text(rtype, text) {
                Ok(rdata) => data.push(rdata),
                Err(error) => errors.push(wrong(&format!("`{}`: {error}", shown(text)))),
            }
        }
        let (owner, ttl_secs) = (owner.to_lowercase(), self.ttl_secs);
        Ok((ReadSet { owner, rtype, ttl_secs, data }, errors))
    }
}

/// Sets of records in the form that stores write.
pub(super) fn normal(sets: &[RecordSet]) -> Result<Vec<RecordSet>, RecordError> {
    sets.iter().map(RecordSet::normal).collect()
}

/// The owners of sets of records.
pub(super) fn owners(sets: &[RecordSet]) -> Vec<&str> {
    sets.iter().map(|set| set.owner.as_str()).collect()
}

/// An owner in the form that stores write: in lower case and without its final dot.
pub(super) fn normal_owner(owner: &str) -> Result<String, RecordError> {
    match owner.parse::<Name>() {
        Ok(name) => Ok(without_final_dot(&name.to_lowercase())),
        Err(error) => Err(RecordError::new(owner, "", error)),
    }
}

/// A name as text without its final dot; the root is a dot.
pub(super) fn without_final_dot(name: &Name) -> String {
    let mut text = name.to_string();
    if text.len() > 1 {
        text.pop();
    }
    text
}

/// Text of a stranger on one line, and not too much of it.
fn shown(text: &str) -> String {
    let mut shown = String::new();
    for character in text.chars().take(SHOWN_MAX) {
        match character.is_control() {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    if text.chars().nth(SHOWN_MAX).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_form_is_lower_case_without_a_final_dot() {
        let set = RecordSet::new("WWW.Example.org.", "a", 60, ["192.0.2.1"]).normal().unwrap();
        assert_eq!((&*set.owner, &*set.rtype), ("www.example.org", "A"));
        assert_eq!(normal_owner("."), Ok(".".to_owned()));
    }

    #[test]
    fn records_that_cannot_be_served_are_refused_with_a_reason() {
        let error = |set: RecordSet| set.normal().unwrap_err().to_string();
        let none: [&str; 0] = [];
        assert_eq!(
            error(RecordSet::new("a..b", "A", 60, ["192.0.2.1"])),
            "a..b A: the name has an empty label (two dots in a row, or a leading dot)"
        );
        assert!(error(RecordSet::new("a", "A", 60, ["192.0.2"])).starts_with("a A: `192.0.2`: "));
        assert!(error(RecordSet::new("a", "ANY", 60, ["x"])).contains("no record can have"));
        assert!(error(RecordSet::new("a", "A", 1 << 31, ["192.0.2.1"])).contains("time to live"));
        assert!(error(RecordSet::new("a", "A", 60, none)).contains("there are no data"));
        assert_eq!(error(RecordSet::unreadable("a", "A", "no JSON")), "a A: no JSON");
    }

    #[test]
    fn data_with_line_ends_are_one_record_or_none() {
        let set = RecordSet::new("a", "TXT", 60, ["one\n\"two\nlines\" ; $INCLUDE x"]);
        let (read, wrong) = set.read().unwrap();
        assert!(wrong.is_empty() && read.data.len() == 1, "{wrong:?}");
        assert!(read.data[0].starts_with(b"\x03one\x09two\nlines"), "{:?}", read.data[0]);
        let (read, wrong) =
            RecordSet::new("a", "A", 60, ["192.0.2.1\nb 300 A 192.0.2.2"]).read().unwrap();
        assert!(read.data.is_empty());
        assert!(!wrong[0].to_string().contains('\n'), "{}", wrong[0]);
    }
}
