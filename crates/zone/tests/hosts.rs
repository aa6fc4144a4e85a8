//! Hosts files as people write them, and the fuzzer's corpus, replayed.
#![allow(clippy::unwrap_used)]

mod any_hosts;

use std::fs;
use std::path::Path;
use zonda_wire::{Name, name, rdata};
use zonda_zone::hosts::{self, Terms};

/// The records of a text but the SOA record, a line each, and what is wrong with it.
fn read(text: &str, apex: &str) -> (Vec<String>, String) {
    let apex: Name = apex.parse().unwrap();
    let (records, diagnostics) =
        hosts::read_text(text.as_bytes(), Path::new("hosts"), &apex, Terms::default());
    let line = |record: zonda_zone::Record<'_>| {
        let data = rdata::Presentation { rtype: record.rtype, rdata: record.rdata };
        format!("{} {} {data}", name::Presentation(record.owner), record.rtype)
    };
    (records.iter().skip(1).map(line).collect(), diagnostics.to_string())
}

#[test]
fn each_name_of_a_line_has_its_address_and_the_first_is_found_in_reverse() {
    let text =
        "# names\n192.0.2.7\tPrinter.example.org printer # upstairs\r\n\n  2001:db8::7 printer";
    let (records, wrong) = read(text, ".");
    assert_eq!(wrong, "");
    let v6 = "7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.";
    let reverse = format!("{v6} PTR printer.");
    let expected = [
        "Printer.example.org. A 192.0.2.7",
        "7.2.0.192.in-addr.arpa. PTR Printer.example.org.",
        "printer. A 192.0.2.7",
        "printer. AAAA 2001:db8::7",
        &*reverse,
    ];
    assert_eq!(records, expected);
}

#[test]
fn the_first_line_of_an_address_names_it() {
    let (records, _) = read("0.0.0.0 ads.example\n0.0.0.0 more.example", ".");
    assert_eq!(records.iter().filter(|record| record.contains("PTR")).count(), 1);
}

#[test]
fn what_lies_outside_the_zone_is_left_out() {
    let (records, wrong) = read("192.0.2.7 a.example.org b.example.net", "example.org");
    assert_eq!((records, wrong), (vec!["a.example.org. A 192.0.2.7".to_owned()], String::new()));
}

#[test]
fn every_wrong_line_is_told_with_its_place() {
    let text = "192.0.2.256 a\n192.0.2.1\n192.0.2.1 a b..c\nfe80::1%lo0 localhost\n192.0.2.2 d";
    let (records, wrong) = read(text, ".");
    let expected = [
        "hosts:1:1: error: expected an IP address: write one, or # before a comment",
        "hosts:2:1: error: the address has no name: write one behind it",
        "hosts:3:13: error: `b..c` is not a name: the name has an empty label (two dots in a row, \
         or a leading dot)",
    ];
    assert_eq!(wrong.lines().collect::<Vec<_>>(), expected);
    assert!(records.contains(&"d. A 192.0.2.2".to_owned()), "reading goes on");
}

#[test]
fn a_file_that_is_not_there_is_told() {
    let (_, diagnostics) =
        hosts::read(Path::new("/nonexistent/hosts"), &Name::root(), Terms::default());
    let told = diagnostics.to_string();
    assert_eq!(told, "/nonexistent/hosts: error: cannot be read: no such file or directory\n");
}

#[test]
fn no_text_of_the_corpus_does_harm_nor_its_pieces() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/hosts");
    let texts: Vec<Vec<u8>> = fs::read_dir(directory)
        .unwrap()
        .map(|file| fs::read(file.unwrap().path()).unwrap())
        .collect();
    assert!(texts.len() >= 5);
    for text in &texts {
        any_hosts::check(text);
        for other in &texts {
            for cut in 0..text.len().min(200) {
                any_hosts::check(&[&text[..cut], &other[cut.min(other.len())..]].concat());
            }
        }
    }
}
