//! The fuzzer's corpus of what an API server sends, replayed, cut short and with octets changed.

#![allow(clippy::unwrap_used)]

mod any_objects;

use std::fs;
use std::path::Path;

#[test]
fn nothing_of_the_corpus_panics_whole_cut_short_or_changed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/cluster_objects");
    let files: Vec<_> = fs::read_dir(folder).unwrap().collect();
    assert!(files.len() > 10, "the corpus is there");
    for file in files {
        let mut octets = fs::read(file.unwrap().path()).unwrap();
        any_objects::check(&octets);
        (0..octets.len()).step_by(13).for_each(|len| any_objects::check(&octets[..len]));
        for place in (0..octets.len()).step_by(11) {
            let kept = octets[place];
            for changed in [b'"', b'{', b']', b'\\', b'\n', kept ^ 1, 0, 0xff, kept.wrapping_add(1)]
            {
                octets[place] = changed;
                any_objects::check(&octets);
            }
            octets[place] = kept;
        }
    }
}
