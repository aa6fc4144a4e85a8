//! The fuzzer's corpus of catalogs, replayed, cut short and with single octets changed.
#![allow(clippy::unwrap_used)]

mod any_catalog;

use std::fs;
use std::path::Path;

#[test]
fn every_catalog_of_the_corpus_is_read_alike_by_changes_and_as_a_whole_cut_or_changed() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/catalog");
    let mut files = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let octets = fs::read(entry.unwrap().path()).unwrap();
        any_catalog::check(&octets);
        for end in (0..octets.len()).step_by(7) {
            any_catalog::check(&octets[..end]);
            let mut changed = octets.clone();
            changed[end] ^= 1;
            any_catalog::check(&changed);
        }
        files += 1;
    }
    assert!(files >= 3, "{files}");
}
