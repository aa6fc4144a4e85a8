//! The fuzzer's corpus of captures, replayed, cut short and with single octets changed.

#![allow(clippy::unwrap_used)]

mod any_capture;

use std::fs;
use std::path::Path;

#[test]
fn every_capture_of_the_corpus_has_two_questions_and_does_no_harm_cut_or_changed() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/capture");
    let files: Vec<_> = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 7);
    for file in files {
        let octets = fs::read(&file).unwrap();
        assert_eq!(any_capture::check(&octets), 2, "{}", file.display());
        for at in 0..octets.len() {
            any_capture::check(&octets[..at]);
            for changed in [0, 1, 5, 12, 53, 0x3f, 0x40, 0x81, 0xc0, 0xff] {
                let mut wrong = octets.clone();
                wrong[at] = changed;
                any_capture::check(&wrong);
            }
        }
    }
}
