//! The fuzzer's corpus for master files, replayed, and cut and flipped at random.

#![allow(clippy::unwrap_used)]

mod any_text;

use std::fs;
use std::path::Path;

/// The texts of the corpus.
fn corpus() -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/zone_file");
    let files = fs::read_dir(directory).unwrap();
    files.map(|file| fs::read(file.unwrap().path()).unwrap()).collect()
}

/// Numbers that look random and are the same in every run (xorshift64).
struct Random(u64);

impl Random {
    /// A number below `bound`, which is not 0.
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

#[test]
fn no_text_of_the_corpus_does_harm() {
    let corpus = corpus();
    assert!(corpus.len() > 10);
    corpus.iter().for_each(|text| any_text::check(text));
}

#[test]
fn texts_of_the_corpus_put_together_wrongly_do_no_harm() {
    let corpus = corpus();
    let mut random = Random(0x5eed);
    for _ in 0..3000 {
        let (one, two) = (&corpus[random.below(corpus.len())], &corpus[random.below(corpus.len())]);
        let (head, tail) = (random.below(one.len() + 1), random.below(two.len() + 1));
        let mut text = [&one[..head], &two[tail..]].concat();
        for _ in 0..random.below(4) {
            let at = random.below(text.len() + 1);
            let octet = b"\n\"()\\;$@ \0.{"[random.below(12)];
            text.insert(at, octet);
        }
        any_text::check(&text);
    }
}
