//! Queries made while they are sent: names below one name, drawn at random.
//!
//! A query depends on its place and the seed only, so that the question can be computed again when
//! the reply comes, and threads share nothing. Deliberately absent: a list of names.

use std::io::Write;

use zonda_wire::{Class, Name, Type, name};

use crate::random::Numbers;

use super::Form;
use super::frame::Frame;
use super::zipf::Zipf;

/// The most names among which is drawn; each number up to it is exact as `f64`.
const NAMES_MAX: u64 = 1 << 53;

/// Which names are drawn, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Names {
    /// Distribution of the first label.
    draw: Draw,
    /// Prefix of the number in the first label; empty for random labels.
    prefix: String,
    /// The name below which all of them are, in wire form.
    suffix: Vec<u8>,
}

/// How a first label is drawn.
#[derive(Clone, Debug, PartialEq)]
enum Draw {
    /// Numbers from 1, the small ones more often.
    Zipf(Zipf),
    /// Numbers from 1 to this one, all equally often.
    Uniform(u64),
    /// Sixteen hexadecimal digits, never the same ones twice.
    Random,
}

impl Names {
    /// Reads `zipf:EXPONENT:COUNT.NAME`, `uniform:COUNT.NAME` or `random:NAME`.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expected = "expected zipf:EXPONENT:COUNT.NAME, uniform:COUNT.NAME or random:NAME";
        let (kind, rest) = text.split_once(':').ok_or(expected)?;
        let (exponent, rest) = match kind {
            "zipf" => rest.split_once(':').ok_or(expected)?,
            "uniform" | "random" => ("", rest),
            _ => return Err(expected.to_owned()),
        };
        if kind == "random" {
            return Self::below(Draw::Random, "", rest, "0123456789abcdef");
        }
        let (label, suffix) = rest.split_once('.').ok_or(expected)?;
        let prefix = label.trim_end_matches(|digit: char| digit.is_ascii_digit());
        let number = &label[prefix.len()..];
        let count = number.parse().ok().filter(|count| (1..=NAMES_MAX).contains(count));
        let count =
            count.ok_or_else(|| format!("expected the number of names before .{suffix}"))?;
        let draw = match kind {
            "zipf" => {
                let zipf = exponent.parse().ok().and_then(|exponent| Zipf::new(exponent, count));
                Draw::Zipf(zipf.ok_or("expected an exponent above 0 and at most 10 behind zipf:")?)
            }
            _ => Draw::Uniform(count),
        };
        Self::below(draw, prefix, suffix, number)
    }

    /// Names below `suffix`, of which the longest begins with `prefix` and `label`.
    fn below(draw: Draw, prefix: &str, suffix: &str, label: &str) -> Result<Self, String> {
        let longest = format!("{prefix}{label}.{}", if suffix == "." { "" } else { suffix });
        let longest: Name = longest.parse().map_err(|error| format!("{longest}: {error}"))?;
        let suffix = name::parent(longest.as_wire()).expect("it has a first label").to_vec();
        Ok(Self { draw, prefix: prefix.to_owned(), suffix })
    }
}

/// Queries for such names.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedQueries {
    /// Octets around each question.
    frame: Frame,
    /// Names of the questions.
    names: Names,
    /// Types of the queries, equally frequent; never empty.
    types: Vec<Type>,
    /// Other seeds draw other names.
    seed: u64,
}

impl GeneratedQueries {
    /// Queries of a form for names and `types`, of which there is at least one.
    pub fn new(names: Names, types: Vec<Type>, seed: u64, form: &Form) -> Self {
        assert!(!types.is_empty(), "callers say for which types");
        Self { frame: Frame::new(form), names, types, seed }
    }

    /// Writes the query at a place over what `out` holds.
    pub fn write(&self, place: u32, out: &mut Vec<u8>) {
        let mut numbers = Numbers::at(self.seed, place);
        out.clear();
        self.frame.begin(out);
        let length_at = out.len();
        out.push(0);
        out.extend_from_slice(self.names.prefix.as_bytes());
        let written = match &self.names.draw {
            Draw::Zipf(zipf) => write!(out, "{}", zipf.draw(|| numbers.fraction())),
            Draw::Uniform(count) => write!(out, "{}", 1 + numbers.below(*count)),
            Draw::Random => write!(out, "{:016x}", numbers.roll()),
        };
        written.expect("memory takes all octets");
        out[length_at] = (out.len() - length_at - 1) as u8; // at most 63, as `Names` has seen
        out.extend_from_slice(&self.names.suffix);
        let qtype = self.types[numbers.below(self.types.len() as u64) as usize];
        self.frame.end(qtype, Class::IN, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};
    use zonda_wire::Message;

    /// Names and types of the first queries, in lower case.
    fn ask(text: &str, types: &[Type], seed: u64, count: u32) -> Vec<(String, Type)> {
        let names = Names::parse(text).unwrap();
        let generated = GeneratedQueries::new(names, types.to_vec(), seed, &Form::default());
        let mut octets = Vec::new();
        let ask = |place| {
            generated.write(place, &mut octets);
            let question = Message::parse(&octets).unwrap().questions.remove(0);
            (question.name.to_string(), question.qtype)
        };
        (0..count).map(ask).collect()
    }

    #[test]
    fn names_depend_on_place_and_seed_only() {
        for text in ["zipf:1.1:1000.example.com", "uniform:h1000.example.", "random:example.com"] {
            assert_eq!(ask(text, &[Type::A], 1, 50), ask(text, &[Type::A], 1, 50));
            assert_ne!(ask(text, &[Type::A], 1, 50), ask(text, &[Type::A], 2, 50));
        }
        let (name, _) = &ask("uniform:h7.example.com", &[Type::A], 1, 1)[0];
        assert!(name.starts_with('h') && name.ends_with(".example.com."), "{name}");
        assert_eq!(ask("uniform:1..", &[Type::A], 1, 1)[0].0, "1.");
    }

    #[test]
    fn uniform_names_and_types_are_equally_frequent() {
        let mut counts = BTreeMap::new();
        for asked in ask("uniform:10.example", &[Type::A, Type::AAAA], 1, 40_000) {
            *counts.entry(asked).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.len(), 20);
        let square = |count: &u32| (f64::from(*count) - 2000.0).powi(2) / 2000.0;
        // 19 degrees of freedom; more than 43.8 has a probability of 0.001.
        assert!(counts.values().map(square).sum::<f64>() < 43.8, "{counts:?}");
    }

    #[test]
    fn random_labels_do_not_come_again() {
        let asked: BTreeSet<_> = ask("random:example", &[Type::A], 7, 20_000).into_iter().collect();
        assert_eq!(asked.len(), 20_000);
    }

    #[test]
    fn no_query_allocates_once_its_buffer_has_grown() {
        let names = Names::parse("zipf:1.1:1000000.example.com").unwrap();
        let generated = GeneratedQueries::new(names, vec![Type::A], 1, &Form::default());
        let mut octets = Vec::with_capacity(512);
        let before = octets.as_ptr();
        (0..1000).for_each(|place| generated.write(place, &mut octets));
        assert_eq!((octets.as_ptr(), octets.capacity()), (before, 512));
    }

    #[test]
    fn an_invalid_spec_is_reported() {
        let complaint = |text| Names::parse(text).unwrap_err();
        for text in ["example.com", "normal:1.example", "zipf:1000.example", "uniform:5"] {
            assert!(complaint(text).starts_with("expected zipf:"), "{text}");
        }
        assert!(complaint("uniform:example.com").contains("number of names"));
        assert!(complaint("uniform:0.example").contains("number of names"));
        assert!(complaint("zipf:0:9.example").contains("exponent"));
        assert!(complaint("random:a..b").contains("a..b"));
        assert!(complaint(&format!("random:{}", "abcdefg.".repeat(30))).contains("abcdefg"));
    }
}
