//! What can be wrong with a rule or a template.

use crate::regex;
use std::fmt;
use zonda_wire::NameError;

/// A mistake in a rule or a template.
#[derive(Clone, Debug, PartialEq)]
pub enum RuleError {
    /// A regular expression that is wrong.
    Pattern(Box<regex::Error>),
    /// A pattern with more octets than this.
    LongPattern(usize),
    /// A group that the regular expression lacks.
    Group(usize),
    /// A text that must be a name, and is none.
    Name(NameError),
    /// A rule that changes nothing.
    Nothing,
    /// A new name without a pattern for the former.
    ToWithoutName,
    /// A range whose least number is above its greatest.
    EmptyRange(u32, u32),
    /// More rules or templates than this.
    Many(usize),
    /// A template's action that is not known: its text.
    Action(Box<str>),
    /// A `{{` without its `}}`.
    OpenAction,
    /// An `{{ if … }}` without its `{{ end }}`.
    OpenCondition,
    /// An action that belongs to a condition, and stands outside of any: its word.
    StrayAction(&'static str),
    /// More conditions inside one another than this.
    DeepConditions(usize),
    /// An action that compares texts with numbers: its text.
    Kinds(Box<str>),
    /// A group of a template that no pattern has.
    NamedGroup(Box<str>),
    /// A record that is wrong however the name is: its text.
    Record(Box<str>),
    /// Records beside a response code that is sent without them.
    RecordsOfFailure,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pattern(error) => {
                // The first line names the error; those before it draw the pattern.
                let text = error.to_string();
                let last = text.lines().last().unwrap_or_default();
                write!(f, "the regular expression is wrong: {}", last.trim_start_matches("error: "))
            }
            Self::LongPattern(most) => write!(f, "the pattern has more than {most} octets"),
            Self::Group(number) => {
                write!(f, "{{{number}}} stands for a group that the regular expression lacks")
            }
            Self::Name(error) => write!(f, "{error}"),
            Self::Nothing => f.write_str(
                "the rule changes nothing; write `to`, `to-qtype`, `to-qclass`, `owners`, \
                 `targets`, `ttl`, `to-rcode`, `set-flags` or `clear-flags`",
            ),
            Self::ToWithoutName => f.write_str(
                "`to` takes the place of a name; write `exact`, or another one, as well",
            ),
            Self::EmptyRange(least, most) => {
                write!(f, "{least} is more than {most}; write the lower number first")
            }
            Self::Many(most) => write!(f, "more than {most}; keep as many"),
            Self::Action(text) => write!(
                f,
                "`{{{{{}}}}}` is not known; a template can have .Name, .Zone, .Class, .Type, \
                 .Remote, .RemotePort, .RemoteType, .Protocol, .Question.Name, .Group.NAME, index \
                 .Group \"NAME\", index .Match NUMBER, parseInt TEXT BASE BITS, and `if`, `else` \
                 and `end` with and, or, not, eq, ne, lt, le, gt and ge",
                text.escape_debug()
            ),
            Self::OpenAction => f.write_str("`{{` without `}}`"),
            Self::OpenCondition => {
                f.write_str("`{{ if … }}` without `{{ end }}`; write that where it is to end")
            }
            Self::StrayAction(word) => {
                write!(f, "`{{{{ {word} }}}}` belongs to no `{{{{ if … }}}}`; remove it")
            }
            Self::DeepConditions(most) => {
                write!(f, "more than {most} conditions inside one another; keep as many")
            }
            Self::Kinds(text) => write!(
                f,
                "`{{{{{}}}}}` compares a text with a number; `parseInt TEXT 10 64` makes a number \
                 of a text",
                text.escape_debug()
            ),
            Self::NamedGroup(name) => {
                write!(f, "no regular expression has the group {}", name.escape_debug())
            }
            Self::Record(text) => write!(
                f,
                "{} is no record; write owner, TTL, class, type and data",
                text.escape_debug()
            ),
            Self::RecordsOfFailure => f.write_str("SERVFAIL is sent without records"),
        }
    }
}

impl std::error::Error for RuleError {}

impl From<regex::Error> for RuleError {
    fn from(error: regex::Error) -> Self {
        Self::Pattern(Box::new(error))
    }
}

impl From<NameError> for RuleError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}
