//! A record as a line of a zone file, for programs.

use std::fmt;
use std::path::Path;
use zonda_wire::{Name, Type};
use zonda_zone::file::FileProblem;
use zonda_zone::{Problem, file};

/// The longest time to live, seconds (rfc2181#8).
const TTL_SECS_MAX: u32 = i32::MAX as u32;
/// What is said of a longer one.
const TTL_TOO_HIGH: &str = "the time to live is beyond 2147483647 seconds";

/// A record that was read from a line: owner, type, time to live and data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordLine {
    /// The owner in the case of the line; `None` for `@` where no origin was given.
    pub owner: Option<Name>,
    /// The record type.
    pub rtype: Type,
    /// The time to live, seconds.
    pub ttl_secs: u32,
    /// The data in uncompressed wire form.
    pub rdata: Vec<u8>,
}

/// Why a text is no record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordLineError {
    /// The first error of the reader of zone files.
    Wrong(String),
    /// The text has several records.
    Several,
    /// The text has no record.
    Nothing,
}

impl fmt::Display for RecordLineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong(what) => f.write_str(what),
            Self::Several => f.write_str("the text has several records"),
            Self::Nothing => f.write_str("the text has no record"),
        }
    }
}

impl std::error::Error for RecordLineError {}

impl RecordLine {
    /// Reads a line such as `www 300 IN A 192.0.2.1`, as a zone file has it. Names without a final
    /// dot end at `origin`, or at the root; a record without a time to live has `ttl_secs`.
    ///
    /// # Errors
    /// When the text is not one record.
    pub fn read(text: &str, origin: Option<&Name>, ttl_secs: u32) -> Result<Self, RecordLineError> {
        let text = text.strip_suffix('\n').unwrap_or(text);
        let wrong = |what: &str| Err(RecordLineError::Wrong(what.to_owned()));
        if text.lines().any(|line| line.starts_with('$')) {
            return wrong("the text has a directive, and is to be a record alone");
        }
        if ttl_secs > TTL_SECS_MAX {
            return wrong(TTL_TOO_HIGH);
        }
        let is_blank =
            |line: &&str| line.trim_start().is_empty() || line.trim_start().starts_with(';');
        let first = text.lines().find(|line| !is_blank(line)).unwrap_or_default();
        let is_nameless = origin.is_none() && first.split_whitespace().next() == Some("@");
        let file = format!("$TTL {ttl_secs}\n{text}\n");
        let (root, options) =
            (Name::root(), file::Options { generate_max: 1, ..Default::default() });
        let origin = origin.unwrap_or(&root);
        let label = Path::new("record"); // without a root, nothing can be included
        let (records, diagnostics) = file::read_text(file.as_bytes(), label, origin, &options);
        if let Some(errors) = diagnostics.errors() {
            return Err(RecordLineError::Wrong(errors.first.problem.to_string()));
        }
        if diagnostics.iter().any(|it| it.problem == Problem::File(FileProblem::TtlTooHigh)) {
            return wrong(TTL_TOO_HIGH);
        }
        let mut records = records.iter();
        let record = records.next().ok_or(RecordLineError::Nothing)?;
        if records.next().is_some() {
            return Err(RecordLineError::Several);
        }
        let owner = Name::from_wire(record.owner).ok().filter(|_| !is_nameless);
        let (rtype, rdata) = (record.rtype, record.rdata.to_vec());
        Ok(Self { owner, rtype, ttl_secs: record.ttl, rdata })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what a line is, written out, or what is wrong with it.
    fn read(text: &str, origin: Option<&str>) -> Result<String, String> {
        let origin = origin.map(|name| name.parse::<Name>().unwrap());
        let line =
            RecordLine::read(text, origin.as_ref(), 300).map_err(|error| error.to_string())?;
        let owner = line.owner.map_or("@".to_owned(), |owner| owner.to_string());
        let data = zonda_wire::rdata::Presentation { rtype: line.rtype, rdata: &line.rdata };
        Ok(format!("{owner} {} IN {} {data}", line.ttl_secs, line.rtype))
    }

    #[test]
    fn a_line_is_read_as_in_a_zone_file_with_an_origin_and_a_time_to_live() {
        let origin = Some("example.org");
        let cases = [
            ("www 60 IN A 192.0.2.1", origin, "www.example.org. 60 IN A 192.0.2.1"),
            ("www IN 1h A 192.0.2.1", origin, "www.example.org. 3600 IN A 192.0.2.1"),
            ("@ MX 10 mx ; the first", origin, "example.org. 300 IN MX 10 mx.example.org."),
            ("www.example.net. CNAME a\n", origin, "www.example.net. 300 IN CNAME a.example.org."),
            ("a TXT ( \"x\"\n \"y\" )", origin, "a.example.org. 300 IN TXT \"x\" \"y\""),
            ("www.example A 192.0.2.1", None, "www.example. 300 IN A 192.0.2.1"),
            ("@ 5 A 192.0.2.1", None, "@ 5 IN A 192.0.2.1"),
            ("; a note\n@ 5 A 192.0.2.1", None, "@ 5 IN A 192.0.2.1"),
            (". 5 NS a.example.", None, ". 5 IN NS a.example."),
        ];
        for (text, origin, expected) in cases {
            assert_eq!(read(text, origin).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_not_one_record_is_an_error_that_says_why() {
        assert_eq!(read("", None), Err("the text has no record".to_owned()));
        assert_eq!(read("; nothing", None), Err("the text has no record".to_owned()));
        let two = "a A 192.0.2.1\nb A 192.0.2.2";
        assert_eq!(read(two, None), Err("the text has several records".to_owned()));
        for wrong in [
            "a A 192.0.2",
            "a A",
            "a..b A 192.0.2.1",
            "a CH A 192.0.2.1",
            "$INCLUDE x",
            "$TTL 60\n@ A 192.0.2.1",
            "a 3000000000 A 192.0.2.1",
        ] {
            let error = read(wrong, None).unwrap_err();
            assert!(error.len() > 10, "{wrong}: {error}");
        }
    }
}
