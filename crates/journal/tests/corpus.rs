//! The fuzzer's corpus of journals, replayed.

#![allow(clippy::unwrap_used)]

mod any_journal;

use std::fs;
use std::path::Path;

#[test]
fn no_journal_of_the_corpus_panics_whole_or_truncated() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/journal");
    let files: Vec<_> = fs::read_dir(folder).unwrap().collect();
    assert!(files.len() > 10, "the corpus is there");
    for file in files {
        let octets = fs::read(file.unwrap().path()).unwrap();
        any_journal::check(&octets);
        (0..octets.len()).step_by(7).for_each(|len| any_journal::check(&octets[..len]));
    }
}

#[test]
fn records_that_the_fuzzer_makes_are_whole() {
    let mut numbers = vec![0, 5, 0, 0, 0, 1, 0, 2, 0, 0, 3];
    numbers.extend_from_slice(b"\x03abc\0xyz");
    let file = any_journal::file(&numbers);
    let mut zones = Vec::new();
    let extent = zonda_journal::scan::read(&file[..], |place| {
        zones.push((place.zone.to_vec(), place.from, place.to));
        Ok(())
    });
    assert_eq!(zones, [(b"\x03abc\0".to_vec(), 1, 2)]);
    assert_eq!(extent.unwrap().octets, file.len() as u64);
}
