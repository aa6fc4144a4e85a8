//! Dynamic updates as text (rfc2136), in the blocks that dnsperf takes: a line with the zone's
//! name, lines with prerequisites and changes, and the line `send`.
//!
//! | line | meaning |
//! |---|---|
//! | `require NAME [TYPE [DATA]]` | the name, RRset or record must exist |
//! | `prohibit NAME [TYPE]` | the name or RRset must not exist |
//! | `add NAME TTL TYPE DATA` | adds a record |
//! | `delete NAME [TYPE [DATA]]` | deletes a name, RRset or record |
//!
//! Names without a final dot end at the zone's name, but for that name itself. `;` and `#` begin a
//! comment.

use std::io::BufRead;
use std::path::Path;

use zonda_wire::message::{Message, Opt, Question, Record};
use zonda_wire::query::flag;
use zonda_wire::{Class, Name, Opcode, Section, Type, rdata};

use super::{QueriesError, QueryList, input};

/// Octets of the longest message; what is longer fits into no transport.
const MESSAGE_OCTETS_MAX: usize = 65_535;

/// Adds the updates of all blocks that come from `path`; `on_bad` decides on lines that are wrong.
/// A block with such a line is left out.
pub fn parse(
    lines: impl BufRead,
    path: &Path,
    opt: Option<&Opt>,
    gathering: &mut QueryList,
    mut on_bad: impl FnMut(QueriesError) -> Result<(), QueriesError>,
) -> Result<(), QueriesError> {
    let mut block = Block::None;
    let take = |line: &str| {
        let result = parse_line(line, opt, &mut block, gathering);
        if result.is_err() && line.trim() != "send" {
            block = Block::Wrong; // up to its `send`
        }
        result
    };
    input::each_line(lines, path, take, &mut on_bad)?;
    match block {
        Block::None => Ok(()),
        _ => on_bad(QueriesError::Format(path.to_owned(), "the last update lacks its line `send`")),
    }
}

/// What the next line belongs to.
enum Block {
    /// No update: a zone's name comes next.
    None,
    /// An update under way.
    Update(Message),
    /// An update with a line that is wrong, which is not sent.
    Wrong,
}

/// Reads a line.
fn parse_line(
    line: &str,
    opt: Option<&Opt>,
    block: &mut Block,
    gathering: &mut QueryList,
) -> Result<(), String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with([';', '#']) {
        return Ok(());
    }
    match (&mut *block, line) {
        (Block::None, zone) => *block = Block::Update(empty_update(zone, opt)?),
        (_, "send") => {
            if let Block::Update(message) = std::mem::replace(block, Block::None) {
                let octets = message.to_wire();
                if octets.len() > MESSAGE_OCTETS_MAX {
                    return Err(format!("the update has more than {MESSAGE_OCTETS_MAX} octets"));
                }
                gathering.add(&octets);
            }
        }
        (Block::Update(message), line) => {
            let record = parse_record(line, &message.questions[0].name)?;
            message.records.push(record);
        }
        (Block::Wrong, _) => {}
    }
    Ok(())
}

/// Returns an update of a zone that changes nothing.
fn empty_update(zone: &str, opt: Option<&Opt>) -> Result<Message, String> {
    let name: Name = zone.parse().map_err(|error| format!("{zone}: {error}"))?;
    let flags = u16::from(Opcode::UPDATE.0) << flag::OPCODE.trailing_zeros();
    let mut update = Message::new(0, flags, Question::new(name, Type::SOA));
    update.opt = opt.cloned();
    Ok(update)
}

/// Reads a prerequisite or a change, as a record of its section (rfc2136#2.4, #2.5).
fn parse_record(line: &str, zone: &Name) -> Result<Record, String> {
    let (verb, rest) = next_word(line);
    let (name, mut rest) = next_word(rest);
    let section = match verb {
        "require" | "prohibit" => Section::Answer,
        "add" | "delete" => Section::Authority,
        _ => return Err(format!("expected require, prohibit, add, delete or send, not {verb}")),
    };
    if name.is_empty() {
        return Err(format!("expected a name after {verb}"));
    }
    let owner = owner(name, zone).map_err(|error| format!("{name}: {error}"))?;
    let mut ttl = 0;
    if verb == "add" {
        let (word, after) = next_word(rest);
        ttl = word.parse().map_err(|_| format!("expected a TTL in seconds, not `{word}`"))?;
        rest = after;
    }
    let (word, data) = next_word(rest);
    let rtype = match word {
        "" => Type::ANY,
        word => word.parse().map_err(|_| format!("{word}: not a record type"))?,
    };
    let class = match (verb, data) {
        ("add", _) => Class::IN,
        ("prohibit", "") => Class::NONE,
        ("prohibit", _) => return Err("records cannot be prohibited, only RRsets".to_owned()),
        (_, "") => Class::ANY,
        ("require", _) => Class::IN,
        _ => Class::NONE,
    };
    let mut rdata = Vec::new();
    if !data.is_empty() || verb == "add" {
        let tokens = rdata::tokens(data.as_bytes()).ok_or("a quote is not closed")?;
        rdata::parse(rtype, &tokens, zone.as_wire(), &mut rdata)
            .map_err(|error| format!("{word}: {}", error.error))?;
    }
    let mut record = Record::new(section, owner, rtype, ttl, rdata);
    record.class = class;
    Ok(record)
}

/// Returns the first word of a line, and what follows it.
fn next_word(line: &str) -> (&str, &str) {
    let line = line.trim_start();
    let end = line.find(|letter: char| letter.is_ascii_whitespace()).unwrap_or(line.len());
    let (word, rest) = line.split_at(end);
    (word, rest.trim_start())
}

/// Returns an owner name, which ends at the zone's name.
fn owner(name: &str, zone: &Name) -> Result<Name, zonda_wire::NameError> {
    match name {
        "@" => Ok(zone.clone()),
        name => Name::parse(name.as_bytes(), zone.as_wire()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::load::queries::Lines;
    use crate::load::{Form, Queries};

    /// The form of updates.
    fn form() -> Form {
        Form { operation: Opcode::UPDATE, ..Form::default() }
    }

    /// The updates of a text, as a server reads them.
    fn updates(text: &str, form: &Form) -> Vec<Message> {
        let queries = Queries::from_lines(text, form).unwrap();
        let message = |place| {
            let octets = queries.message(place, &mut Vec::new()).to_vec();
            Message::parse(&octets).unwrap()
        };
        (0..queries.count() as u32).map(message).collect()
    }

    #[test]
    fn each_line_of_a_block_is_a_record_of_its_section_and_class() {
        let text = "; comment\nexample.com\nrequire a\nrequire a A\nrequire a A 192.0.2.1\n\
            prohibit x\nprohibit x.example.com. A\n\nadd new 60 MX 10 mail\n\
            delete y A 192.0.2.2\ndelete z A\n  delete w  \nsend\n";
        let all = updates(text, &form());
        let [update] = &all[..] else { panic!("{all:?}") };
        assert_eq!((update.opcode(), update.flags), (Opcode::UPDATE, 0x2800));
        assert_eq!(update.questions[0].name.to_string(), "example.com.");
        assert_eq!((update.questions[0].qtype, &update.opt), (Type::SOA, &None));
        let text = |record: &Record| {
            let Record { section, owner, rtype, class, ttl, rdata, .. } = record;
            let section = if *section == Section::Answer { "need" } else { "change" };
            format!("{section} {owner} {class} {rtype} {ttl} {}", rdata.len())
        };
        let found: Vec<String> = update.records.iter().map(text).collect();
        let expected = [
            "need a.example.com. ANY ANY 0 0",
            "need a.example.com. ANY A 0 0",
            "need a.example.com. IN A 0 4",
            "need x.example.com. NONE ANY 0 0",
            "need x.example.com. NONE A 0 0",
            "change new.example.com. IN MX 60 20",
            "change y.example.com. NONE A 0 4",
            "change z.example.com. ANY A 0 0",
            "change w.example.com. ANY ANY 0 0",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn blocks_are_messages_in_their_order_and_have_the_opt_record_of_the_form() {
        let text = "a.test\nadd x 1 A 192.0.2.1\nsend\nb.test.\ndelete @ TXT\nsend";
        let form = Form { edns: true, ..form() };
        let all = updates(text, &form);
        let zones: Vec<String> = all.iter().map(|it| it.questions[0].name.to_string()).collect();
        assert_eq!(zones, ["a.test.", "b.test."]);
        assert!(all.iter().all(|it| it.opt.is_some()));
        assert_eq!(all[1].records[0].owner.to_string(), "b.test.");
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        let complaint = |text| Queries::from_lines(text, &form()).unwrap_err().to_string();
        for (text, said) in [
            ("a.test\nput x\n", "queries:2: expected require, prohibit, add, delete or send"),
            ("a..test\n", "queries:1: a..test:"),
            ("a.test\nadd x A 192.0.2.1\nsend", "queries:2: expected a TTL in seconds, not `A`"),
            ("a.test\nadd x 60 A\nsend", "queries:2: A: "),
            ("a.test\nadd x 60 WHAT 1\nsend", "queries:2: WHAT: not a record type"),
            ("a.test\nprohibit x A 192.0.2.1\nsend", "queries:2: records cannot be prohibited"),
            ("a.test\ndelete\nsend", "queries:2: expected a name after delete"),
            ("a.test\ndelete x TXT \"a\nsend", "queries:2: a quote is not closed"),
            ("a.test\ndelete x\n", "queries: the last update lacks its line `send`"),
            ("; nothing\n", "queries: holds no query"),
        ] {
            assert!(complaint(text).starts_with(said), "{text:?}: {}", complaint(text));
        }
    }

    #[test]
    fn an_update_with_a_wrong_line_is_left_out_whole() {
        let text = "a.test\nadd x 60 A what\nadd x 60 A 192.0.2.1\nsend\na.test\ndelete y\nsend\n";
        let reader = text.as_bytes();
        let gathered = Queries::gather(reader, Path::new("f"), &form(), Lines::SkipBad).unwrap();
        assert_eq!((gathered.0.count(), gathered.1.bad_lines), (1, 1));
    }

    #[test]
    fn an_update_longer_than_a_message_is_refused() {
        let mut text = "a.test\n".to_owned();
        for number in 0..2500 {
            text += &format!("add n{number} 60 A 192.0.2.1\n");
        }
        let said = Queries::from_lines(&(text + "send\n"), &form()).unwrap_err().to_string();
        assert!(said.contains("more than 65535 octets"), "{said}");
    }
}
