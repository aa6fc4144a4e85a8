//! The fuzzer's corpus of names, replayed.
#![allow(clippy::unwrap_used)]

mod any_name;

use std::fs;
use std::path::Path;

#[test]
fn no_name_of_the_corpus_does_harm() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/name");
    let files: Vec<_> = fs::read_dir(folder).unwrap().collect();
    assert!(files.len() > 10);
    files.into_iter().for_each(|file| any_name::check(&fs::read(file.unwrap().path()).unwrap()));
}
