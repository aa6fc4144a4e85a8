//! The fuzzer's corpus of what targets send, replayed, cut short and with single octets changed.

#![allow(clippy::unwrap_used)]

mod any_reply;

use std::fs;
use std::path::Path;

#[test]
fn no_reply_of_the_corpus_is_misread_whole_truncated_or_mutated() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/probe_reply");
    let files: Vec<_> = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 10);
    for file in files {
        let octets = fs::read(file).unwrap();
        any_reply::check(&octets);
        for at in 0..octets.len() {
            any_reply::check(&octets[..at]);
            for changed in [0, 1, 0x7f, 0x80, 0x84, 0xff] {
                let mut wrong = octets.clone();
                wrong[at] = changed;
                any_reply::check(&wrong);
            }
        }
    }
}
