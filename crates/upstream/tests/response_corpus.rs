//! The fuzzer's corpus of responses, replayed, cut short and with single octets changed.

#![allow(clippy::unwrap_used)]

mod any_response;

use std::fs;
use std::path::Path;

#[test]
fn no_response_of_the_corpus_panics_whole_truncated_or_mutated() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/response");
    let files: Vec<_> = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 8);
    for file in files {
        let octets = fs::read(file).unwrap();
        any_response::check_any(&octets);
        for at in 0..octets.len() {
            any_response::check_any(&octets[..at]);
            for changed in [0, 1, 5, 12, 39, 46, 0x3f, 0x40, 0xc0, 0xff] {
                let mut wrong = octets.clone();
                wrong[at] = changed;
                any_response::check_any(&wrong);
            }
        }
    }
}
