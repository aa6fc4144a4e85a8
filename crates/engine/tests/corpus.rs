//! The fuzzer's corpus of queries, replayed, and cut and flipped at random.
#![allow(clippy::unwrap_used)]

mod any_query;

use std::fs;
use std::path::Path;

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/query");
    fs::read_dir(folder).unwrap().map(|file| fs::read(file.unwrap().path()).unwrap()).collect()
}

#[test]
fn no_query_of_the_corpus_does_harm() {
    let mut engine = any_query::engine();
    let corpus = corpus();
    assert!(corpus.len() > 10);
    corpus.iter().for_each(|octets| any_query::check(&mut engine, octets));
}

#[test]
fn queries_cut_short_or_flipped_do_no_harm() {
    let mut engine = any_query::engine();
    let mut state = 1_u64;
    let mut random = move |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    for octets in corpus() {
        for _ in 0..200 {
            let mut octets = octets.clone();
            octets.truncate(random(octets.len() + 1).max(12.min(octets.len())));
            for _ in 0..random(4) {
                let at = random(octets.len());
                if let Some(octet) = octets.get_mut(at) {
                    *octet = random(256) as u8;
                }
            }
            any_query::check(&mut engine, &octets);
        }
    }
}
