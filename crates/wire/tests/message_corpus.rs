//! The fuzzer's corpus of messages, replayed, cut short and with single octets changed.

#![allow(clippy::unwrap_used)]

mod any_message;

use std::fs;
use std::path::Path;

#[test]
fn no_message_of_the_corpus_panics_whole_truncated_or_mutated() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/message");
    let files: Vec<_> = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 5);
    for file in files {
        let octets = fs::read(file).unwrap();
        any_message::check(&octets);
        for at in 0..octets.len() {
            any_message::check(&octets[..at]);
            for changed in [0, 1, 12, 0x3f, 0x40, 0xc0, 0xff] {
                let mut wrong = octets.clone();
                wrong[at] = changed;
                any_message::check(&wrong);
            }
        }
    }
}
