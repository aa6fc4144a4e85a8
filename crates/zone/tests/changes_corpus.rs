//! The fuzzer's corpus of changes, replayed, cut and with flipped bits.

#![allow(clippy::unwrap_used)]

mod any_change;

use std::fs;
use std::path::Path;

#[test]
fn no_change_of_the_corpus_does_harm_whole_cut_or_altered() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/zone_change");
    let files: Vec<_> = fs::read_dir(folder).unwrap().collect();
    assert!(files.len() >= 10, "the corpus is there");
    for file in files {
        let octets = fs::read(file.unwrap().path()).unwrap();
        any_change::check(&octets);
        for at in 0..octets.len() {
            any_change::check(&octets[..at]);
            let mut altered = octets.clone();
            altered[at] ^= 1 << (at % 8);
            any_change::check(&altered);
        }
    }
}
