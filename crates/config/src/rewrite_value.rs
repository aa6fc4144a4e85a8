//! Values of rules that change questions and replies, and of templates.

use crate::section::Shape;
use crate::value::Value;
use zonda_rewrite::Replacement;
use zonda_wire::query::flag;
use zonda_wire::{Class, Rcode, Type};

/// Octets of a pattern, and of a record's text.
const TEXT_BYTES_MAX: usize = 10_000;

/// A text that is compared with names, or takes the place of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern(pub String);

/// A record with places for what the question says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordText(pub String);

/// Texts differ in nothing but what they are called.
macro_rules! text {
    ($type:ident, $form:literal) => {
        impl Value for $type {
            fn form() -> String {
                $form.into()
            }

            fn from_text(text: &str) -> Option<Self> {
                (1..=TEXT_BYTES_MAX).contains(&text.len()).then(|| Self(text.to_owned()))
            }
        }
    };
}
text!(NamePattern, "text of 1 to 10,000 octets");
text!(RecordText, "a record, of 1 to 10,000 octets");

/// A regular expression, and the name that takes the place of one that it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetPattern(pub Replacement);

impl Value for TargetPattern {
    fn form() -> String {
        "a regular expression, a blank and a name, in which `{1}` stands for the first group".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        let (pattern, to) = text.trim().rsplit_once(' ')?;
        let (pattern, to) = (pattern.trim().to_owned(), to.to_owned());
        (text.len() <= TEXT_BYTES_MAX).then_some(Self(Replacement { pattern, to }))
    }
}

/// A type that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryType(pub Type);

impl Value for QueryType {
    fn form() -> String {
        "a type such as A, ANY or TYPE65280".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }
}

/// A class that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryClass(pub Class);

impl Value for QueryClass {
    fn form() -> String {
        "a class: IN, CH, HS or ANY".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }
}

/// A response code that a reply can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyRcode(pub Rcode);

impl Value for ReplyRcode {
    fn form() -> String {
        "a response code such as NOERROR, NXDOMAIN, SERVFAIL or REFUSED".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        let in_header = |rcode: &Rcode| rcode.0 <= 0xf; // the higher bits need OPT
        Rcode::from_mnemonic(text).filter(in_header).map(Self)
    }
}

/// A flag of a reply's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyFlag(pub u16);

impl Value for ReplyFlag {
    fn form() -> String {
        "AA, RA or RD".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        match text {
            "AA" => Some(Self(flag::AA)),
            "RA" => Some(Self(flag::RA)),
            "RD" => Some(Self(flag::RD)),
            _ => None,
        }
    }
}

/// The least and the greatest TTL, seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TtlRange(pub (u32, u32));

impl Value for TtlRange {
    const SHAPE: Shape = Shape::TextOrInteger;

    fn form() -> String {
        "a number of seconds, or a range such as \"30-300\", \"30-\" or \"-300\"".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        /// The greatest TTL there is (rfc2181#8).
        const TTL_MAX: u32 = i32::MAX as u32;
        let number = |text: &str, open: u32| match text.trim() {
            "" => Some(open),
            text => text.parse().ok().filter(|secs| *secs <= TTL_MAX),
        };
        let range = match text.split_once('-') {
            None => (number(text, 0)?, number(text, 0)?),
            Some((least, most)) => (number(least, 0)?, number(most, TTL_MAX)?),
        };
        (text.contains(|c: char| c.is_ascii_digit()) && range.0 <= range.1).then_some(Self(range))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_is_a_number_or_a_range_that_may_be_open() {
        for (text, expected) in [
            ("30", Some((30, 30))),
            ("30-60", Some((30, 60))),
            ("-60", Some((0, 60))),
            ("30-", Some((30, i32::MAX as u32))),
            ("-", None),
            ("60-30", None),
            ("", None),
            ("1m", None),
            ("4294967295", None),
        ] {
            assert_eq!(TtlRange::from_text(text).map(|it| it.0), expected, "{text}");
        }
    }
}
