//! The fuzzer's corpus of streams of DNS over QUIC, replayed, cut short and with single octets
//! changed.

#![allow(clippy::unwrap_used)]

mod any_doq_stream;

use std::fs;
use std::path::Path;

#[test]
fn no_stream_of_the_corpus_is_misread_whole_truncated_or_mutated() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/doq_stream");
    let files: Vec<_> = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 10);
    for file in files {
        let octets = fs::read(file).unwrap();
        any_doq_stream::check(&octets);
        for at in 0..octets.len() {
            any_doq_stream::check(&octets[..at]);
            for changed in [0, 1, 11, 12, 0x2d, 0xff] {
                let mut wrong = octets.clone();
                wrong[at] = changed;
                any_doq_stream::check(&wrong);
            }
        }
    }
}

#[test]
fn a_message_beyond_all_lengths_is_not_sent() {
    assert!(zonda_client::doq::frame(&[0; 65_536]).is_err());
    assert!(zonda_client::doq::frame(&[0]).is_err());
}
