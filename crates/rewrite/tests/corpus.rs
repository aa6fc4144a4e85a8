//! The fuzzer's corpus of queries, replies and templates, replayed, cut short and changed.
#![allow(clippy::unwrap_used)]

mod any_input;

use std::fs;
use std::path::Path;

#[test]
fn no_octets_of_the_corpus_do_harm_whole_truncated_or_changed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/rewrite");
    let mut count = 0;
    for file in fs::read_dir(folder).unwrap() {
        let octets = fs::read(file.unwrap().path()).unwrap();
        any_input::check(&octets);
        for at in 0..octets.len() {
            any_input::check(&octets[..at]);
            for changed in [0, 1, b'a', b'.', b'{', b'}', 0xc0, 0xff] {
                let mut wrong = octets.clone();
                wrong[at] = changed;
                any_input::check(&wrong);
            }
        }
        count += 1;
    }
    assert!(count >= 6, "{count}");
}
