//! Patterns of names, and what takes their place.

use crate::error::RuleError;
use crate::regex::bytes::{Captures, Regex, RegexBuilder};
use crate::text;
use std::fmt;
use zonda_wire::Name;

/// Octets of a pattern.
pub const PATTERN_BYTES_MAX: usize = 10_000;
/// Octets of memory that a compiled regular expression takes.
const COMPILED_BYTES_MAX: usize = 1 << 20;

/// How a text is compared with a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatchKind {
    /// The text is the whole name.
    #[default]
    Exact,
    /// The name begins with the text.
    Prefix,
    /// The name ends with the text.
    Suffix,
    /// The name has the text somewhere.
    Substring,
    /// The text is a regular expression.
    Regex,
}

/// A text, and how it is compared with names: these are in lower case, with their final dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameMatch {
    /// The kind of comparison.
    pub kind: MatchKind,
    /// Text to compare.
    pub text: String,
}

/// A regular expression, and what takes the place of a name that it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The regular expression.
    pub pattern: String,
    /// The new name, in which `{1}` stands for the first group.
    pub to: String,
}

/// Compiles a regular expression for names in ASCII.
pub fn compile(pattern: &str) -> Result<Regex, RuleError> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(RuleError::LongPattern(PATTERN_BYTES_MAX));
    }
    let builder = &mut RegexBuilder::new(pattern);
    Ok(builder.unicode(false).size_limit(COMPILED_BYTES_MAX).build()?)
}

/// A pattern that was compiled.
pub enum Matcher {
    /// The whole name, in wire form.
    Exact(Name),
    /// A beginning of the name's text.
    Prefix(Box<[u8]>),
    /// The end of the name's text.
    Suffix(Box<[u8]>),
    /// A part of the name's text.
    Substring(Box<[u8]>),
    /// A regular expression.
    Regex(Regex),
}

impl Matcher {
    /// Compiles a pattern; that of a whole name or an end has a final dot, written or not.
    pub fn new(pattern: &NameMatch) -> Result<Self, RuleError> {
        let text = pattern.text.to_ascii_lowercase();
        if text.len() > PATTERN_BYTES_MAX {
            return Err(RuleError::LongPattern(PATTERN_BYTES_MAX));
        }
        Ok(match pattern.kind {
            MatchKind::Exact => Self::Exact(text.parse()?),
            MatchKind::Prefix => Self::Prefix(text.into_bytes().into()),
            MatchKind::Suffix => Self::Suffix(with_dot(text).into_bytes().into()),
            MatchKind::Substring => Self::Substring(text.into_bytes().into()),
            MatchKind::Regex => Self::Regex(compile(&pattern.text)?),
        })
    }

    /// Returns the whole labels that each name that matches ends with, in wire form: a look at them
    /// is cheaper than one at the text.
    pub fn tail(&self) -> Option<Vec<u8>> {
        let end = match self {
            Self::Suffix(end) => end.to_vec(),
            Self::Regex(regex) => literal_end(regex.as_str())?.into_bytes(),
            Self::Exact(_) | Self::Prefix(_) | Self::Substring(_) => return None,
        };
        let dot = end.iter().position(|octet| *octet == b'.')?;
        let labels = end.get(dot + 1..).filter(|labels| labels.len() > 1)?;
        let mut wire = Vec::new();
        text::read(labels, &mut wire).then_some(wire)
    }

    /// Whether a name matches, in wire form and as text.
    pub fn matches(&self, wire: &[u8], text: &[u8]) -> bool {
        match self {
            Self::Exact(name) => name.as_wire().eq_ignore_ascii_case(wire),
            Self::Prefix(start) => text.starts_with(start),
            Self::Suffix(end) => text.ends_with(end),
            Self::Substring(part) => find(text, part).is_some(),
            Self::Regex(regex) => regex.is_match(text),
        }
    }

    /// Returns the text of the new name for a name that matches; nothing for one that does not.
    pub fn replace(&self, wire: &[u8], text: &[u8], to: &NewText) -> Option<Vec<u8>> {
        let literal = to.literal();
        match self {
            Self::Exact(_) => self.matches(wire, text).then(|| literal.to_vec()),
            Self::Prefix(start) => {
                text.strip_prefix(&start[..]).map(|rest| [literal, rest].concat())
            }
            Self::Suffix(end) => text.strip_suffix(&end[..]).map(|rest| [rest, literal].concat()),
            Self::Substring(part) => replace_all(text, part, literal),
            Self::Regex(regex) => regex.captures(text).map(|groups| to.filled(&groups)),
        }
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exact(_) => "exact",
            Self::Prefix(_) => "prefix",
            Self::Suffix(_) => "suffix",
            Self::Substring(_) => "substring",
            Self::Regex(_) => "regex",
        })
    }
}

/// Returns a text with a final dot.
pub fn with_dot(mut text: String) -> String {
    if !text.ends_with('.') {
        text.push('.');
    }
    text
}

/// Returns where a text has a part.
fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    if part.is_empty() {
        return Some(0);
    }
    text.windows(part.len()).position(|window| window == part)
}

/// Returns a text with other octets in place of each part; nothing if it has none.
fn replace_all(text: &[u8], part: &[u8], to: &[u8]) -> Option<Vec<u8>> {
    let mut at = find(text, part).filter(|_| !part.is_empty())?;
    let (mut rest, mut made) = (text, Vec::with_capacity(text.len() + to.len()));
    loop {
        made.extend_from_slice(&rest[..at]);
        made.extend_from_slice(to);
        rest = &rest[at + part.len()..];
        match find(rest, part) {
            Some(next) => at = next,
            None => break,
        }
    }
    made.extend_from_slice(rest);
    Some(made)
}

/// Returns the text that each name ends with that a regular expression matches, as far as that is
/// easily seen.
fn literal_end(pattern: &str) -> Option<String> {
    let flags = pattern.replace("(?i)", "").replace("(?:", "(").replace("(?P<", "(");
    if flags.contains('|') || flags.contains("(?") || flags.contains("\\Q") {
        return None;
    }
    let mut rest = pattern.strip_suffix('$').filter(|rest| !ends_with_escape(rest))?;
    let mut end = Vec::new();
    while let Some(last) = rest.chars().next_back() {
        let before = &rest[..rest.len() - last.len_utf8()];
        let is_escaped = ends_with_escape(before);
        match last {
            '.' if is_escaped => rest = &before[..before.len() - 1],
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' if !is_escaped => rest = before,
            _ => break,
        }
        end.push(last.to_ascii_lowercase());
    }
    Some(end.into_iter().rev().collect())
}

/// Whether a pattern ends with a backslash that escapes what follows.
fn ends_with_escape(pattern: &str) -> bool {
    pattern.bytes().rev().take_while(|octet| *octet == b'\\').count() % 2 == 1
}

/// A new name, in which groups of a regular expression may stand.
#[derive(Debug)]
pub struct NewText {
    /// Texts, each before a group, and the last behind them.
    pieces: Vec<(Box<[u8]>, usize)>,
    /// Text behind the last group.
    end: Box<[u8]>,
}

impl NewText {
    /// Makes a text in which `{1}` stands for the first group, and `{0}` for the whole name.
    pub fn of_groups(text: &str, regex: &Regex) -> Result<Self, RuleError> {
        let (mut pieces, mut rest) = (Vec::new(), text);
        let mut literal = String::new();
        while let Some((before, behind)) = rest.split_once('{') {
            literal.push_str(before);
            let number = behind.split_once('}');
            match number.and_then(|(number, rest)| Some((number.parse::<usize>().ok()?, rest))) {
                Some((number, _)) if number >= regex.captures_len() => {
                    return Err(RuleError::Group(number));
                }
                Some((number, behind)) => {
                    let before = std::mem::take(&mut literal).to_ascii_lowercase();
                    pieces.push((before.into_bytes().into(), number));
                    rest = behind;
                }
                None => {
                    literal.push('{');
                    rest = behind;
                }
            }
        }
        literal.push_str(rest);
        Ok(Self { pieces, end: literal.to_ascii_lowercase().into_bytes().into() })
    }

    /// Makes a text without groups.
    pub fn plain(text: &str) -> Self {
        Self { pieces: Vec::new(), end: text.to_ascii_lowercase().into_bytes().into() }
    }

    /// Returns the text, without the groups.
    fn literal(&self) -> &[u8] {
        &self.end
    }

    /// Returns the text with the groups of a match.
    pub fn filled(&self, groups: &Captures<'_>) -> Vec<u8> {
        let mut made = Vec::new();
        for (before, number) in &self.pieces {
            made.extend_from_slice(before);
            made.extend_from_slice(groups.get(*number).map_or(&[][..], |group| group.as_bytes()));
        }
        made.extend_from_slice(&self.end);
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the name that takes the place of another.
    fn replaced(kind: MatchKind, pattern: &str, to: &str, name: &str) -> Option<String> {
        let matcher = Matcher::new(&NameMatch { kind, text: pattern.to_owned() }).unwrap();
        let to = match &matcher {
            Matcher::Regex(regex) => NewText::of_groups(to, regex).unwrap(),
            _ => NewText::plain(to),
        };
        let wire: Name = name.parse().unwrap();
        let made = matcher.replace(wire.as_wire(), name.as_bytes(), &to)?;
        if let Some(tail) = matcher.tail() {
            assert!(wire.as_wire().ends_with(&tail), "{pattern} {name}");
        }
        Some(String::from_utf8(made).unwrap())
    }

    #[test]
    fn each_kind_replaces_the_part_that_it_matches() {
        use MatchKind::{Exact, Prefix, Regex, Substring, Suffix};
        for (kind, pattern, to, name, expected) in [
            (Exact, "a.example", "b.test.", "a.example.", Some("b.test.")),
            (Exact, "a.example", "b.test.", "x.a.example.", None),
            (Prefix, "foo", "bar", "foo-1.example.", Some("bar-1.example.")),
            (Suffix, ".old.example", ".new.", "a.b.old.example.", Some("a.b.new.")),
            (Suffix, "old.example", "new.", "my-old.example.", Some("my-new.")),
            (Substring, "us-", "eu-", "us-1.us-2.test.", Some("eu-1.eu-2.test.")),
            (Substring, "xx", "eu-", "us-1.us-2.test.", None),
            (Regex, r"^(.*)\.(.*)\.old$", "{2}.{1}.new.", "a.b.old.", None),
            (Regex, r"^(.*)\.(.*)\.old\.$", "{2}.{1}.NEW.", "a.b.old.", Some("b.a.new.")),
            (Regex, "(?P<first>[a-z]+)[0-9]", "{1}-{0}-{x}.", "ab1.old.", Some("ab-ab1-{x}.")),
        ] {
            let made = replaced(kind, pattern, to, name);
            assert_eq!(made.as_deref(), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn the_end_of_a_regular_expression_is_found_where_it_is_literal() {
        for (pattern, expected) in [
            (r"^(.*)\.old\.example\.$", Some(".old.example.")),
            (r"(?i)x[.]Old\.$", Some("old.")),
            (r"a|b\.old\.$", None),
            (r"old\.example\.", None),
            (r"old\.exampl\d$", Some("")),
            (r"old\.ex(?x)a b$", None),
            (r"old\\$", Some("")),
            (r"old\$", None),
            (r"a{2}b$", Some("b")),
        ] {
            assert_eq!(literal_end(pattern).as_deref(), expected, "{pattern}");
        }
    }

    #[test]
    fn a_group_that_the_pattern_lacks_and_a_pattern_that_is_wrong_are_errors() {
        let regex = compile("(a)").unwrap();
        assert_eq!(NewText::of_groups("{2}", &regex).unwrap_err(), RuleError::Group(2));
        assert!(matches!(compile("(a"), Err(RuleError::Pattern(_))));
        assert!(matches!(compile("(a{1000}){1000}"), Err(RuleError::Pattern(_))));
    }
}
