//! Queries as lines of text: a name and a type each, `;` and `#` begin a comment.

use super::{QueriesError, QueryList, input};
use std::io::BufRead;
use std::path::Path;
use zonda_wire::{Class, Type};

/// Adds the queries of all lines that come from `path`; `on_bad` decides on those that are wrong.
pub fn parse(
    lines: impl BufRead,
    path: &Path,
    gathering: &mut QueryList,
    on_bad: impl FnMut(QueriesError) -> Result<(), QueriesError>,
) -> Result<(), QueriesError> {
    input::each_line(lines, path, |line| parse_line(line, gathering), on_bad)
}

/// Adds the query of a line, if it is neither empty nor a comment.
fn parse_line(line: &str, gathering: &mut QueryList) -> Result<(), String> {
    let mut words = line.split_ascii_whitespace();
    let Some(name) = words.next().filter(|_| !line.starts_with([';', '#'])) else { return Ok(()) };
    let qtype = words.next().ok_or_else(|| format!("expected a type after {name}"))?;
    let qtype: Type = qtype.parse().map_err(|_| format!("{qtype}: not a record type"))?;
    if let Some(word) = words.next() {
        return Err(format!("expected a name and a type, found {word} after them"));
    }
    gathering.ask(name, qtype, Class::IN).map_err(|error| format!("{name}: {error}"))
}

#[cfg(test)]
mod tests {
    use crate::load::queries::Lines;
    use crate::load::{Form, Queries};
    use std::path::Path;
    use zonda_wire::{Message, Type};

    #[test]
    fn lines_become_queries_in_their_order() {
        let text = "; comment\n\nexample.com A\n# another\nwww.Example.com. TYPE65\r\n";
        let queries = Queries::from_lines(text, &Form::default()).unwrap();
        assert_eq!(queries.count(), 2);
        let second = Message::parse(queries.message(1, &mut Vec::new())).unwrap();
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
        let message = Message::parse(queries.message(0, &mut Vec::new())).unwrap();
        assert_eq!(message.flags, 0);
        let opt = message.opt.unwrap();
        assert!(opt.dnssec_ok());
        assert_eq!(opt.option(3), Some(&[1, 2][..]));
    }

    #[test]
    fn bad_lines_can_be_left_out_and_are_counted() {
        let mut lines = b"a. A\nb.\nc..d A\n\xff A\ne. AAAA x\nf. MX\n".to_vec();
        lines.extend_from_slice(format!("{} A\ng. A", "x".repeat(9000)).as_bytes());
        let file = std::env::temp_dir().join(format!("zonda-bad-lines-{}", std::process::id()));
        std::fs::write(&file, lines).unwrap();
        let (queries, left_out) =
            Queries::read_some(&file, &Form::default(), Lines::SkipBad).unwrap();
        std::fs::remove_file(&file).unwrap();
        let name = |place| {
            let message = Message::parse(queries.message(place, &mut Vec::new())).unwrap();
            message.questions[0].name.to_string()
        };
        assert_eq!((queries.count(), left_out.bad_lines), (3, 5), "{left_out:?}");
        assert_eq!([0, 1, 2].map(name), ["a.", "f.", "g."]);
        let first = left_out.first_bad.unwrap();
        assert!(first.ends_with(":2: expected a type after b."), "{first}");
    }

    #[test]
    fn files_of_other_formats_are_reported_with_a_program_that_reads_them() {
        for (start, said) in [
            (&b"\x0a\x0d\x0d\x0a\x1c\0\0\0"[..], "editcap -F pcap"),
            (b"\xfd7zXZ\0", "xz -dc"),
            (b"\x28\xb5\x2f\xfd\0", "zstd -dc"),
            (b"BZh9", "bzip2 -dc"),
        ] {
            let error = Queries::from_reader(start, Path::new("f"), &Form::default()).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        let complaint = |text| Queries::from_lines(text, &Form::default()).unwrap_err().to_string();
        assert_eq!(complaint("a. A\nb."), "queries:2: expected a type after b.");
        assert_eq!(complaint("a. NONE"), "queries:1: NONE: not a record type");
        assert!(complaint("a. A x").contains("found x"));
        assert!(complaint("a..b A").starts_with("queries:1: a..b:"));
        assert_eq!(complaint("; nothing\n"), "queries: holds no query");
        let long = format!("a. A\n{}", "x".repeat(5000));
        assert_eq!(complaint(&long), "queries:2: longer than 4096 octets");
    }
}
