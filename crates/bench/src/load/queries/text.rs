//! Queries as lines of text: a name and a type each, `;` and `#` begin a comment.

use super::{Form, Gathering, Queries, QueriesError};
use std::path::Path;
use zonda_wire::{Name, Type};

/// Reads lines that came from `path`.
pub fn parse(octets: &[u8], form: &Form, path: &Path) -> Result<Queries, QueriesError> {
    let mut gathering = Gathering::new(form);
    for (index, line) in octets.split(|octet| *octet == b'\n').enumerate() {
        match parse_line(line) {
            Ok(Some((name, qtype))) => gathering.ask(name, qtype),
            Ok(None) => {}
            Err(what) => return Err(QueriesError::Line(path.to_owned(), index + 1, what)),
        }
    }
    gathering.finish().ok_or_else(|| QueriesError::Empty(path.to_owned()))
}

/// Reads a line; nothing if it is empty or a comment.
fn parse_line(line: &[u8]) -> Result<Option<(Name, Type)>, String> {
    let text =
        std::str::from_utf8(line).map_err(|_| "expected a name and a type, found no text")?;
    if text.starts_with([';', '#']) {
        return Ok(None);
    }
    let mut words = text.split_ascii_whitespace();
    let Some(name) = words.next() else { return Ok(None) };
    let qtype = words.next().ok_or_else(|| format!("expected a type after {name}"))?;
    let qtype = qtype.parse().map_err(|_| format!("{qtype}: not a record type"))?;
    if let Some(word) = words.next() {
        return Err(format!("expected a name and a type, found {word} after them"));
    }
    Ok(Some((name.parse().map_err(|error| format!("{name}: {error}"))?, qtype)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonda_wire::Message;

    #[test]
    fn lines_become_queries_in_their_order() {
        let text = "; comment\n\nexample.com A\n# another\nwww.Example.com. TYPE65\r\n";
        let queries = Queries::from_lines(text, &Form::default()).unwrap();
        assert_eq!(queries.count(), 2);
        let second = Message::parse(queries.message(1)).unwrap();
        assert_eq!(second.questions[0].name.to_string(), "www.Example.com.");
        assert_eq!(second.questions[0].qtype, Type(65));
        assert_eq!(second.flags, 0x0100);
        assert_eq!(second.opt, None);
    }

    #[test]
    fn the_form_is_that_of_all_queries() {
        let form = Form {
            dnssec: true,
            options: vec![(3, vec![1, 2])],
            recursion: false,
            ..Form::default()
        };
        let queries = Queries::from_lines("a. A", &form).unwrap();
        let message = Message::parse(queries.message(0)).unwrap();
        assert_eq!(message.flags, 0);
        let opt = message.opt.unwrap();
        assert!(opt.dnssec_ok());
        assert_eq!(opt.option(3), Some(&[1, 2][..]));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let complaint = |text| Queries::from_lines(text, &Form::default()).unwrap_err().to_string();
        assert_eq!(complaint("a. A\nb."), "queries:2: expected a type after b.");
        assert_eq!(complaint("a. NONE"), "queries:1: NONE: not a record type");
        assert!(complaint("a. A x").contains("found x"));
        assert!(complaint("a..b A").starts_with("queries:1: a..b:"));
        assert_eq!(complaint("; nothing\n"), "queries: holds no query");
    }
}
