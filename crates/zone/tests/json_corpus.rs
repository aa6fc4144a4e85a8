//! The fuzzer's corpora: JSON zones replayed and spoilt, master files turned into JSON and back.

#![allow(clippy::unwrap_used)]

mod any_json;

use std::fs;
use std::path::Path;
use zonda_wire::Name;
use zonda_zone::file::{self, Options};
use zonda_zone::{JsonZone, print};

/// The texts of a corpus.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let files = fs::read_dir(directory).unwrap();
    let texts: Vec<_> = files.map(|file| fs::read(file.unwrap().path()).unwrap()).collect();
    assert!(!texts.is_empty());
    texts
}

#[test]
fn no_json_of_the_corpus_does_harm_whole_cut_or_changed() {
    for text in corpus("json_zone") {
        any_json::check(&text);
        for at in (0..text.len()).step_by(13) {
            any_json::check(&text[..at]);
            for changed in b"\"{[]},:\\0-\xff\n" {
                let mut wrong = text.clone();
                wrong[at] = *changed;
                any_json::check(&wrong);
            }
        }
    }
}

#[test]
fn records_of_every_master_file_of_the_corpus_go_through_json_and_print_the_same() {
    let name: Name = "example.org".parse().unwrap();
    for text in corpus("zone_file") {
        let options = Options { generate_max: 1000, ..Options::default() };
        let (records, _) = file::read_text(&text, Path::new("z"), &name, &options);
        any_json::check_written(&[JsonZone {
            name: name.clone(),
            sha: None,
            records,
            errors: None,
        }]);
    }
}

#[test]
fn what_was_printed_prints_the_same_again() {
    let name: Name = "example.org".parse().unwrap();
    for text in corpus("zone_file") {
        let read = |text: &[u8]| {
            let options = Options { generate_max: 1000, ..Options::default() };
            let (records, _) = file::read_text(text, Path::new("z"), &name, &options);
            let mut printed = Vec::new();
            print::print(&records, &mut printed).unwrap();
            String::from_utf8(printed).unwrap()
        };
        let printed = read(&text);
        assert_eq!(read(printed.as_bytes()), printed);
    }
}
