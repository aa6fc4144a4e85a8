//! What a server is expected to answer, and whether a reply says so.
//!
//! A file has a line for each question, with its RCODE, and below it an indented line for each
//! record of the answer section:
//!
//! ```text
//! www.example.com A NOERROR
//!   www.example.com CNAME host.example.com
//!   host.example.com A 192.0.2.1
//! nothing.example.com A NXDOMAIN
//! ```
//!
//! Names are absolute. A TTL and the class `IN` may stand before a record's type. Neither TTLs nor
//! the order of records nor the case of names matter. Deliberately absent: the other sections.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use zonda_wire::query::HEADER_BYTES;
use zonda_wire::rdata::{self, Token};
use zonda_wire::{Class, Message, Name, Rcode, Section, Type, message, name};

use super::check::Header;
use super::queries::{QueriesError, input};

/// The expected replies, by question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpectedReplies {
    /// Answers in the order of the file; never empty once it was read.
    answers: Vec<Answer>,
    /// Places of the replies, by question: its name in wire form and lower case, and the type's
    /// octets.
    places: HashMap<Vec<u8>, usize>,
}

/// The expected answer to one question.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    /// The response code.
    rcode: Rcode,
    /// All records of the answer section, in ascending order.
    records: Vec<Record>,
}

/// A record but for its TTL.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Record {
    /// Owner in wire form and lower case.
    owner: Vec<u8>,
    /// Type of the record.
    rtype: Type,
    /// Class of the record.
    class: Class,
    /// Record data in canonical form.
    rdata: Vec<u8>,
}

impl ExpectedReplies {
    /// Reads a file, perhaps compressed by gzip.
    ///
    /// # Errors
    /// What cannot be read, with file and line.
    pub fn read(path: &Path) -> Result<Self, QueriesError> {
        let file = input::open(path);
        let file = file.map_err(|error| QueriesError::File(path.to_owned(), error))?;
        let mut expected = Self::default();
        input::each_line(file, path, |line| expected.take_line(line), Err)?;
        if expected.answers.is_empty() {
            return Err(QueriesError::Empty(path.to_owned()));
        }
        expected.answers.iter_mut().for_each(|answer| answer.records.sort_unstable());
        Ok(expected)
    }

    /// Whether the sound reply to `query`, whose header was read, says what is expected. Nothing is
    /// expected of questions that the file has not, nor of the records of a truncated reply.
    pub(super) fn is_expected(&self, query: &[u8], reply: &[u8], header: Header) -> bool {
        let place = key_of(query).and_then(|key| self.places.get(&key));
        let Some(answer) = place.map(|place| &self.answers[*place]) else { return true };
        let is_same = || Record::answering(reply).is_some_and(|found| found == answer.records);
        header.rcode == answer.rcode && (header.is_truncated || is_same())
    }

    /// Returns the question of a query whose reply is not what is expected, and how the two differ.
    pub(super) fn difference(&self, query: &[u8], reply: &[u8], header: Header) -> String {
        let question =
            Message::parse(query).ok().and_then(|query| query.questions.into_iter().next());
        let question = question.map_or_else(String::new, |it| format!("{} {}", it.name, it.qtype));
        let place = key_of(query).and_then(|key| self.places.get(&key));
        let Some(answer) = place.map(|place| &self.answers[*place]) else { return question };
        if header.rcode != answer.rcode {
            return format!("{question}: expected {}, got {}", answer.rcode, header.rcode);
        }
        let Some(found) = Record::answering(reply) else {
            return format!("{question}: the records cannot be read");
        };
        let only = |these: &[Record], those: &[Record], what: &str| -> Vec<String> {
            let alone = these.iter().filter(|record| !those.contains(record));
            alone.map(|record| format!("{what} {record}")).collect()
        };
        let mut parts = only(&answer.records, &found, "missing:");
        parts.extend(only(&found, &answer.records, "not expected:"));
        if parts.is_empty() {
            parts.push("a record is there more than once".to_owned());
        }
        let more = parts.len().saturating_sub(DIFFERENCES_MAX);
        parts.truncate(DIFFERENCES_MAX);
        if more > 0 {
            parts.push(format!("{more} more"));
        }
        format!("{question}: {}", parts.join("; "))
    }

    /// Takes a line in.
    fn take_line(&mut self, line: &str) -> Result<(), String> {
        let tokens = tokens(line)?;
        if tokens.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if !line.starts_with([' ', '\t']) {
            return self.ask(&tokens);
        }
        let answer = self.answers.last_mut().ok_or("expected a question before its answer")?;
        answer.records.push(Record::parse(&tokens)?);
        Ok(())
    }

    /// Begins a question.
    fn ask(&mut self, tokens: &[Token<'_>]) -> Result<(), String> {
        let [name, qtype, rcode] = tokens else {
            return Err("expected a name, a type and an RCODE; records are indented".to_owned());
        };
        let mut key = name_of(name)?;
        key.extend_from_slice(&type_of(qtype)?.0.to_be_bytes());
        let text = lossy(rcode);
        let rcode = Rcode::from_mnemonic(&text);
        let rcode = rcode.ok_or_else(|| format!("{text}: not an RCODE"))?;
        if self.places.insert(key, self.answers.len()).is_some() {
            return Err("the question has an answer already".to_owned());
        }
        self.answers.push(Answer { rcode, records: Vec::new() });
        Ok(())
    }
}

impl Record {
    /// Reads an owner, perhaps a TTL and a class, a type and data.
    fn parse(tokens: &[Token<'_>]) -> Result<Self, String> {
        let expected = "expected a name, a type and data";
        let (owner, rest) = tokens.split_first().ok_or(expected)?;
        let is_ignored = |token: &&Token<'_>| {
            rdata::number::ttl(token.text).is_some() || token.text.eq_ignore_ascii_case(b"IN")
        };
        let ignored = rest.iter().take(2).take_while(is_ignored).count();
        let (rtype, data) = rest[ignored..].split_first().ok_or(expected)?;
        let (owner, rtype) = (name_of(owner)?, type_of(rtype)?);
        let mut rdata = Vec::new();
        rdata::parse(rtype, data, &[0], &mut rdata).map_err(|error| error.to_string())?;
        rdata::make_canonical(rtype, &mut rdata);
        Ok(Self { owner, rtype, class: Class::IN, rdata })
    }

    /// Returns the records of a reply's answer section in ascending order; nothing if it is
    /// malformed.
    fn answering(reply: &[u8]) -> Option<Vec<Self>> {
        let message = Message::parse(reply).ok()?;
        let mut records: Vec<Self> = message.section(Section::Answer).map(Self::of).collect();
        records.sort_unstable();
        Some(records)
    }

    /// Makes a record of a message.
    fn of(record: &message::Record) -> Self {
        let message::Record { rtype, class, .. } = *record;
        let mut rdata = record.rdata.clone();
        rdata::make_canonical(rtype, &mut rdata);
        Self { owner: record.owner.as_wire().to_ascii_lowercase(), rtype, class, rdata }
    }
}

/// Most differences that are reported of one reply.
const DIFFERENCES_MAX: usize = 4;

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owner =
            Name::from_wire(&self.owner).map_or_else(|_| String::new(), |it| it.to_string());
        let data = rdata::Presentation { rtype: self.rtype, rdata: &self.rdata };
        write!(f, "{owner} {} {data}", self.rtype)
    }
}

/// Returns a query's question as a key of [`ExpectedReplies::places`].
fn key_of(query: &[u8]) -> Option<Vec<u8>> {
    let question = query.get(HEADER_BYTES..)?;
    let len = name::wire_len(question)?;
    let mut key = question.get(..len + size_of::<u16>())?.to_vec();
    key[..len].make_ascii_lowercase(); // length octets are below b'A'
    Some(key)
}

/// Returns a word's text.
fn lossy(token: &Token<'_>) -> String {
    String::from_utf8_lossy(token.text).into_owned()
}

/// Returns the name that a word is, in wire form and lower case.
fn name_of(token: &Token<'_>) -> Result<Vec<u8>, String> {
    let name = Name::parse(token.text, &[0]).map_err(|error| format!("{}: {error}", lossy(token)));
    Ok(name?.to_lowercase().as_wire().to_vec())
}

/// Returns the type that a word is.
fn type_of(token: &Token<'_>) -> Result<Type, String> {
    Type::from_text(token.text).ok_or_else(|| format!("{}: not a record type", lossy(token)))
}

/// Returns the words and quoted strings of a line, to its end or to a comment.
fn tokens(line: &str) -> Result<Vec<Token<'_>>, String> {
    let octets = line.as_bytes();
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(first) = octets.get(at).filter(|first| **first != b';') {
        if first.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let quoted = *first == b'"';
        let start = at + usize::from(quoted);
        let len = token_len(&octets[start..], quoted).ok_or("a quoted string has no end")?;
        let glued = at > 0 && !octets[at - 1].is_ascii_whitespace();
        tokens.push(Token { text: &octets[start..start + len], quoted, glued, at });
        at = start + len + usize::from(quoted);
    }
    Ok(tokens)
}

/// Octets of the token at the start of `text`; nothing if it is quoted and has no end.
fn token_len(text: &[u8], quoted: bool) -> Option<usize> {
    let mut is_escaped = false;
    let end = text.iter().position(|octet| {
        if std::mem::take(&mut is_escaped) {
            return false;
        }
        is_escaped = *octet == b'\\';
        *octet == b'"' || !quoted && (*octet == b';' || octet.is_ascii_whitespace())
    });
    if quoted { end } else { Some(end.unwrap_or(text.len())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Form, Queries, check};

    /// Reads lines as a file.
    fn read(lines: &str) -> Result<ExpectedReplies, String> {
        let mut expected = ExpectedReplies::default();
        let take = |line: &str| expected.take_line(line);
        let file = input::each_line(lines.as_bytes(), Path::new("answers"), take, Err);
        expected.answers.iter_mut().for_each(|answer| answer.records.sort_unstable());
        file.map(|()| expected).map_err(|error| error.to_string())
    }

    /// Whether a reply to `question` with these records is what is expected.
    fn judge(lines: &str, question: &str, flags: u16, answer: &[&str]) -> bool {
        let queries = Queries::from_lines(question, &Form::default()).unwrap();
        let query = queries.message(0, &mut Vec::new()).to_vec();
        let reply = reply(&query, flags, answer);
        let header = check::read(&reply, &query).unwrap();
        read(lines).unwrap().is_expected(&query, &reply, header)
    }

    /// Returns a reply to a query with these records.
    fn reply(query: &[u8], flags: u16, answer: &[&str]) -> Vec<u8> {
        let asked = Message::parse(query).unwrap();
        let record = |(ttl, text): (usize, &&str)| {
            let Record { owner, rtype, class, rdata } =
                Record::parse(&tokens(text).unwrap()).unwrap();
            let owner = Name::from_wire(&owner).unwrap();
            let (section, ttl) = (Section::Answer, ttl as u32);
            let mut record = message::Record::new(section, owner, rtype, ttl, rdata);
            record.class = class;
            record
        };
        let records = answer.iter().enumerate().map(record).collect();
        let mut reply = asked;
        reply.flags = 0x8100 | flags;
        reply.records = records;
        reply.to_wire()
    }

    const LINES: &str = "\
# of a zone
www.Example.com A NOERROR
  www.example.com CNAME host.example.com ; an alias
  host.example.com 3600 IN A 192.0.2.1
\thost.example.com A 192.0.2.2

text.example.com TXT NOERROR
  text.example.com TXT \"a; b\" c\\;d
mail.example.com A NOERROR
nothing.example.com A NXDOMAIN
";
    const ALIAS: &str = "www.example.com CNAME HOST.example.com";
    const ONE: &str = "host.example.com A 192.0.2.1";
    const TWO: &str = "host.example.com A 192.0.2.2";

    #[test]
    fn order_ttls_and_case_do_not_matter_and_all_else_does() {
        let judge = |answer: &[&str]| judge(LINES, "WWW.example.com A", 0, answer);
        assert!(judge(&[ALIAS, ONE, TWO]) && judge(&[TWO, ONE, ALIAS]));
        assert!(!judge(&[ALIAS, ONE]) && !judge(&[ALIAS, ONE, TWO, TWO]) && !judge(&[]));
        assert!(!judge(&[ALIAS, ONE, "host.example.com A 192.0.2.3"]));
        assert!(!judge(&[ALIAS, ONE, "other.example.com A 192.0.2.2"]));
    }

    #[test]
    fn rcodes_empty_answers_and_quoted_text_are_held_to_the_file() {
        let judge = |question, flags, answer: &[&str]| judge(LINES, question, flags, answer);
        assert!(judge("nothing.example.com A", 3, &[]));
        assert!(!judge("nothing.example.com A", 0, &[]));
        assert!(judge("mail.example.com A", 0, &[]));
        assert!(!judge("mail.example.com A", 0, &["mail.example.com A 192.0.2.1"]));
        let text = "text.example.com TXT \"a; b\" \"c;d\"";
        assert!(judge("text.example.com TXT", 0, &[text]));
    }

    #[test]
    fn nothing_is_expected_of_other_questions_nor_of_what_was_cut() {
        let judge = |question, flags, answer: &[&str]| judge(LINES, question, flags, answer);
        assert!(judge("www.example.com AAAA", 2, &[]) && judge("other.example A", 3, &[]));
        assert!(judge("www.example.com A", 0x0200, &[]));
        assert!(!judge("www.example.com A", 0x0202, &[]));
    }

    #[test]
    fn an_unexpected_reply_is_reported_with_missing_and_surplus_records() {
        let tell = |flags, answer: &[&str]| {
            let queries = Queries::from_lines("www.example.com A", &Form::default()).unwrap();
            let query = queries.message(0, &mut Vec::new()).to_vec();
            let reply = reply(&query, flags, answer);
            let header = check::read(&reply, &query).unwrap();
            read(LINES).unwrap().difference(&query, &reply, header)
        };
        assert_eq!(tell(3, &[]), "www.example.com. A: expected NOERROR, got NXDOMAIN");
        assert_eq!(
            tell(0, &[ALIAS, ONE, "host.example.com A 192.0.2.9"]),
            "www.example.com. A: missing: host.example.com. A 192.0.2.2; not expected: \
             host.example.com. A 192.0.2.9"
        );
        assert!(tell(0, &[ALIAS, ONE, TWO, TWO]).ends_with(": a record is there more than once"));
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        let complaint = |text| read(text).unwrap_err();
        assert!(complaint("\n  a. A 192.0.2.1").starts_with("answers:2: expected a question"));
        assert!(complaint("a. A").contains("an RCODE; records are indented"));
        assert!(complaint("a. A FINE").contains("FINE: not an RCODE"));
        assert!(complaint("a. B NOERROR").contains("B: not a record type"));
        assert!(complaint("a. A NOERROR\nA. A NXDOMAIN").starts_with("answers:2: the question"));
        assert!(complaint("a. A NOERROR\n a. A 192.0.2").starts_with("answers:2: "));
        assert!(complaint("a. TXT NOERROR\n a. TXT \"open").contains("has no end"));
    }
}
