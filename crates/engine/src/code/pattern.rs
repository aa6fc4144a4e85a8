//! Patterns of names and types, as programs write them.
//!
//! | pattern | names |
//! |---|---|
//! | `example.org` | this one |
//! | `*.example.org` | all below it, at any depth, but not itself |
//! | `*` | all |
//! | `:user.example.org` | those of one label more; the label can be asked for as `user` |
//! | `example.org/A\|AAAA` | this one, for questions of these types only |
//!
//! `*` and `:` mean this only at the start of the first and of any label; `\*`, `\:`, `\/` and the
//! escapes of presentation format (rfc1035#5.1) stand for the octets themselves.
//!
//! Patterns are equal that mean the same, however they are written: in upper or lower case, with or
//! without the final dot, with types in whatever order.

use std::fmt;
use std::str::FromStr;
use zonda_wire::name::{self, NameError, Presentation};
use zonda_wire::{Name, Type};
use zonda_zone::{HashSeed, LookupName};

/// A pattern of names and types.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// The pattern as it was written.
    text: Box<str>,
    /// Whether the pattern begins with `*`.
    is_open: bool,
    /// The labels behind the `*`, the first one first.
    labels: Box<[Label]>,
    /// The types by their numbers, none twice; empty for all.
    types: Box<[Type]>,
}

impl PartialEq for Pattern {
    /// Compares what is matched and captured, not how that is written.
    fn eq(&self, other: &Self) -> bool {
        let Self { text: _, is_open, labels, types } = self;
        (is_open, labels, types) == (&other.is_open, &other.labels, &other.types)
    }
}

impl Eq for Pattern {}

/// A label of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Label {
    /// Exactly this label, in lower case and without its length.
    Literal(Box<[u8]>),
    /// Any, to be asked for under a name.
    Capture(Box<str>),
}

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatternError {
    /// The labels make no name.
    Name(NameError),
    /// A label that is not the first is `*`.
    Star,
    /// What follows a `:` is no word of letters, digits, `-` and `_`.
    Capture(String),
    /// Two labels are captured under one name.
    CapturedTwice(String),
    /// What follows the `/` is no type.
    Type(String),
    /// A suffix of a router has a `*`.
    SuffixWithStar,
    /// A suffix of a router has types.
    SuffixWithTypes,
    /// A suffix of a router is the root.
    RootSuffix,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(f),
            Self::Star => f.write_str(
                "`*` stands for labels only at the start of a pattern; write `\\*` for the label",
            ),
            Self::Capture(word) => write!(
                f,
                "`:{word}` captures a label under a name of letters, digits, `-` and `_`; write \
                 `\\:` for the character"
            ),
            Self::CapturedTwice(word) => write!(f, "two labels are captured as `:{word}`"),
            Self::Type(text) => write!(
                f,
                "`{text}` is not a record type: write types as in `/A|AAAA`, and `\\/` for the \
                 character"
            ),
            Self::SuffixWithStar => f.write_str(
                "patterns stand in front of the suffix of a router, and `*` only at the start of a \
                 pattern: leave `*.` out of the suffix",
            ),
            Self::SuffixWithTypes => f.write_str(
                "the suffix of a router has no types: its patterns say them, as `www/A` does",
            ),
            Self::RootSuffix => f.write_str(
                "the suffix of a router is a name such as `eu.example`: patterns of all names are \
                 the app's own",
            ),
        }
    }
}

impl std::error::Error for PatternError {}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let (names, types) = match find_plain(text, '/') {
            Some(at) => (&text[..at], types(&text[at + 1..])?),
            None => (text, Vec::new()),
        };
        let (is_open, names) = match names {
            "*" | "*." => (true, "."),
            _ => names.strip_prefix("*.").map_or((false, names), |below| (true, below)),
        };
        let labels = labels(names)?;
        Ok(Self { text: text.into(), is_open, labels: labels.into(), types: types.into() })
    }
}

/// Where the character `wanted` stands without a backslash in front of it.
fn find_plain(text: &str, wanted: char) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, character)| {
        let found = character == wanted && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        found.then_some(at)
    })
}

/// The types of a filter, by their numbers.
fn types(text: &str) -> Result<Vec<Type>, PatternError> {
    let known = |text: &str| {
        let text = text.trim();
        let upper = text.to_ascii_uppercase();
        upper.parse().map_err(|_| PatternError::Type(text.to_owned()))
    };
    let mut types: Vec<Type> = text.split('|').map(known).collect::<Result<_, _>>()?;
    types.sort_unstable_by_key(|rtype| rtype.0);
    types.dedup();
    Ok(types)
}

/// The labels of a pattern without its `*`.
fn labels(text: &str) -> Result<Vec<Label>, PatternError> {
    let mut rest = text.strip_suffix('.').filter(|head| !ends_in_escape(head)).unwrap_or(text);
    let mut labels = Vec::new();
    let mut wire = Vec::new(); // with captures of one octet, the shortest name that can match
    while !rest.is_empty() {
        let end = find_plain(rest, '.').unwrap_or(rest.len());
        let label = label(&rest[..end])?;
        match &label {
            Label::Literal(octets) => {
                wire.push(octets.len() as u8); // at most 63
                wire.extend_from_slice(octets);
            }
            Label::Capture(word) => {
                let same = |other: &Label| matches!(other, Label::Capture(it) if it == word);
                if labels.iter().any(same) {
                    return Err(PatternError::CapturedTwice(word.to_string()));
                }
                wire.extend_from_slice(b"\x01:");
            }
        }
        labels.push(label);
        let Some(tail) = rest.get(end + 1..) else { break };
        rest = tail;
        if rest.is_empty() {
            return Err(PatternError::Name(NameError::EmptyLabel));
        }
    }
    if text.is_empty() {
        return Err(PatternError::Name(NameError::EmptyLabel));
    }
    wire.push(0);
    match name::wire_len(&wire) {
        Some(_) => Ok(labels),
        None => Err(PatternError::Name(NameError::TooLong)),
    }
}

/// Whether a text ends with a backslash that escapes what comes next.
fn ends_in_escape(text: &str) -> bool {
    text.bytes().rev().take_while(|&octet| octet == b'\\').count() % 2 == 1
}

/// Reads one label.
fn label(text: &str) -> Result<Label, PatternError> {
    if let Some(word) = text.strip_prefix(':') {
        let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_');
        return match !word.is_empty() && word.bytes().all(is_plain) {
            true => Ok(Label::Capture(word.into())),
            false => Err(PatternError::Capture(word.to_owned())),
        };
    }
    if text == "*" {
        return Err(PatternError::Star);
    }
    if text.is_empty() {
        return Err(PatternError::Name(NameError::EmptyLabel));
    }
    let name = Name::parse(text.as_bytes(), &[0]).map_err(PatternError::Name)?.to_lowercase();
    let octets = name::labels(name.as_wire()).next().unwrap_or_default();
    Ok(Label::Literal(octets.into()))
}

impl Label {
    /// The text that stands for it in a pattern.
    fn to_text(&self) -> String {
        let octets = match self {
            Self::Capture(word) => return format!(":{word}"),
            Self::Literal(octets) => octets,
        };
        let wire = [&[octets.len() as u8], &**octets, &[0]].concat(); // at most 63
        let text = Presentation(&wire).to_string();
        let text = text.strip_suffix('.').unwrap_or(&text).replace('/', r"\/");
        let is_special = text == "*" || text.starts_with(':');
        if is_special { format!(r"\{text}") } else { text }
    }
}

impl Pattern {
    /// Returns the pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The one text that all patterns have which are equal to it: in lower case, without final dot,
    /// the types by their numbers.
    #[must_use]
    pub fn canonical(&self) -> String {
        let mut labels: Vec<String> = self.labels.iter().map(Label::to_text).collect();
        if self.is_open {
            labels.insert(0, "*".to_owned());
        }
        let names = if labels.is_empty() { ".".to_owned() } else { labels.join(".") };
        let types: Vec<String> = self.types.iter().map(ToString::to_string).collect();
        if types.is_empty() { names } else { format!("{names}/{}", types.join("|")) }
    }

    /// Whether the pattern takes queries for a type.
    #[inline]
    #[must_use]
    pub fn takes(&self, qtype: Type) -> bool {
        self.types.is_empty() || self.types.contains(&qtype)
    }

    /// Whether the pattern matches a name.
    #[must_use]
    pub fn matches(&self, name: &LookupName) -> bool {
        let (count, own) = (name.label_count(), self.labels.len());
        let fits = if self.is_open { count > own || own == 0 } else { count == own };
        fits && self.ends_as(name, own)
    }

    /// Whether the pattern matches a name in wire form. Slower than [`matches`](Self::matches).
    #[doc(hidden)]
    #[must_use]
    pub fn matches_wire(&self, name: &[u8]) -> bool {
        /// No table is looked up by the hashes of this name.
        const SEED: HashSeed = HashSeed(0);
        self.matches(&LookupName::new(name, SEED))
    }

    /// Whether the pattern matches names below a name, and not that name.
    #[must_use]
    pub fn is_below(&self, name: &LookupName) -> bool {
        let (count, own) = (name.label_count(), self.labels.len());
        let fits = if self.is_open { count <= own } else { count < own };
        fits && self.ends_as(name, count)
    }

    /// Whether its last labels fit the last ones of a name, which both have so many of.
    fn ends_as(&self, name: &LookupName, labels: usize) -> bool {
        let first = name.label_count() - labels;
        let own = &self.labels[self.labels.len() - labels..];
        own.iter().enumerate().all(|(place, label)| match label {
            Label::Literal(octets) => name.label(first + place) == &**octets,
            Label::Capture(_) => true,
        })
    }

    /// The labels of a name that it matches which were captured, in lower case, and under which
    /// names.
    pub fn captures<'n>(
        &'n self,
        name: &'n LookupName,
    ) -> impl Iterator<Item = (&'n str, &'n [u8])> {
        let first = name.label_count().saturating_sub(self.labels.len());
        let captured = move |(place, label): (usize, &'n Label)| match label {
            Label::Literal(_) => None,
            Label::Capture(word) => Some((&**word, name.label(first + place))),
        };
        self.labels.iter().enumerate().filter_map(captured)
    }

    /// The names under which labels are captured, the first label's first.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.labels.iter().filter_map(|label| match label {
            Label::Literal(_) => None,
            Label::Capture(word) => Some(&**word),
        })
    }

    /// The label, in lower case, of a name in wire form that it matches which was captured under
    /// `word`.
    #[must_use]
    pub fn captured_label(&self, name: &[u8], word: &str) -> Option<Vec<u8>> {
        let is_it = |label: &Label| matches!(label, Label::Capture(it) if &**it == word);
        let place = self.labels.iter().position(is_it)?;
        let first = name::labels(name).count().checked_sub(self.labels.len())?;
        name::labels(name).nth(first + place).map(<[u8]>::to_ascii_lowercase)
    }

    /// The number of labels behind its last capture, in which all names that match it end.
    pub(super) fn literal_labels(&self) -> usize {
        let is_literal = |label: &&Label| matches!(label, Label::Literal(_));
        self.labels.iter().rev().take_while(is_literal).count()
    }

    /// The name made of the labels behind its last capture, in which all that match it end.
    #[must_use]
    pub fn literal_suffix(&self) -> Name {
        let mut wire = Vec::new();
        let first = self.labels.len() - self.literal_labels();
        for label in &self.labels[first..] {
            if let Label::Literal(octets) = label {
                wire.push(octets.len() as u8); // at most 63
                wire.extend_from_slice(octets);
            }
        }
        wire.push(0);
        Name::from_wire(&wire).expect("a part of a name is a name")
    }

    /// Returns the name of the zone that a negative reply to a query for a name, in wire form, is
    /// from if no zone holds the name: what the pattern spells out behind its captures, or else the
    /// name itself. A name above could be another server's.
    #[doc(hidden)]
    #[must_use]
    pub fn zone_of(pattern: Option<&Self>, name: &[u8]) -> Name {
        let suffix = pattern.map(Self::literal_suffix);
        let spelled_out = suffix.filter(|suffix| suffix.as_wire().len() > 1);
        spelled_out.unwrap_or_else(|| Name::from_wire(name).unwrap_or_else(|_| Name::root()))
    }

    /// Checks a suffix that patterns are to leave out, as those of a router do.
    ///
    /// # Errors
    /// When no pattern can stand in front of it.
    pub fn check_suffix(text: &str) -> Result<(), PatternError> {
        let suffix: Self = text.parse()?;
        if !suffix.types.is_empty() {
            return Err(PatternError::SuffixWithTypes);
        }
        if suffix.is_open {
            return Err(PatternError::SuffixWithStar);
        }
        if suffix.labels.is_empty() {
            return Err(PatternError::RootSuffix);
        }
        format!("x.{text}").parse().map(|_: Self| ())
    }

    /// Whether the pattern matches one name alone.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        !self.is_open && self.labels.iter().all(|label| matches!(label, Label::Literal(_)))
    }

    /// Returns the rank of the pattern: of several that match a query, the one of the highest rank
    /// is taken.
    pub(super) fn rank(&self) -> Rank {
        let labels = if self.is_open { self.labels.len() as u8 } else { u8::MAX };
        let from_the_right = self.labels.iter().rev().enumerate();
        let literals = from_the_right
            .filter(|(_, label)| matches!(label, Label::Literal(_)))
            .fold(0, |literals, (place, _)| literals | 1 << (127 - place));
        Rank { labels, literals, has_types: !self.types.is_empty() }
    }
}

/// How close a pattern describes the names that it matches; what stands first decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// Number of labels that the pattern spells out or captures; without `*` all.
    pub(super) labels: u8,
    /// The labels that the pattern spells out, one bit each, the last one in the highest bit.
    pub(super) literals: u128,
    /// Whether the pattern says which types it is for.
    pub(super) has_types: bool,
}
