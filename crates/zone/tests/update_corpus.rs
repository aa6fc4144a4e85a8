//! Replays the corpus of the fuzz target `update`, cut off and changed at every octet.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

mod any_update;

#[test]
fn no_octets_of_the_corpus_break_what_carries_out_updates() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/update");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let octets = fs::read(entry.unwrap().path()).unwrap();
        any_update::check(&octets);
        for at in 0..octets.len() {
            any_update::check(&octets[..at]);
            for bits in [0x01, 0x20, 0x80, 0xff] {
                let mut changed = octets.clone();
                changed[at] ^= bits;
                any_update::check(&changed);
            }
        }
        count += 1;
    }
    assert!(count >= 5, "{count}");
}
