//! The fuzzer's corpora of configurations, replayed, cut short and with single octets changed.
#![allow(clippy::unwrap_used)]

mod any_configuration;
mod any_input;

use std::fs;
use std::path::{Path, PathBuf};
use zonda_config::{Config, Flags};

/// Returns the files of the corpus.
fn corpus() -> Vec<PathBuf> {
    files_of("named_conf")
}

/// Returns the files of the corpus of a fuzz target.
fn files_of(target: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).collect()
}

#[test]
fn no_configuration_of_the_corpus_panics_whole_truncated_or_mutated() {
    let files = corpus();
    assert!(files.len() >= 5);
    for file in files {
        let octets = fs::read(file).unwrap();
        for at in 0..octets.len() {
            any_configuration::check(&octets[..at]);
            for changed in *b"{};!\"/#*:0 \n\xff" {
                let mut wrong = octets.clone();
                wrong[at] = changed;
                any_configuration::check(&wrong);
            }
        }
    }
}

#[test]
fn what_comes_of_the_corpus_can_be_loaded() {
    let output = std::env::temp_dir().join(format!("zonda-import-{}.toml", std::process::id()));
    let mut loaded = 0;
    for file in corpus() {
        let octets = fs::read(&file).unwrap();
        let lines: Vec<_> = octets.split_inclusive(|octet| *octet == b'\n').collect();
        // Each line left out in turn gives another configuration.
        for left_out in 0..=lines.len() {
            let others = lines.iter().enumerate().filter(|(number, _)| *number != left_out);
            let text: Vec<u8> = others.flat_map(|(_, line)| line.iter().copied()).collect();
            let Some(toml) = any_configuration::check(&text) else { continue };
            fs::write(&output, &toml).unwrap();
            if let Err(errors) = Config::load(Some(&output), [], &Flags::default()) {
                let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
                panic!("{} without line {left_out}: {}\n{toml}", file.display(), errors.join("\n"));
            }
            loaded += 1;
        }
    }
    fs::remove_file(&output).unwrap();
    assert!(loaded > 50, "{loaded}");
}

#[test]
fn no_configuration_with_steering_panics_whole_truncated_or_mutated() {
    for (format, read) in any_input::FORMATS {
        let files = files_of(format);
        assert!(files.len() >= 3, "{format}");
        for file in files {
            let octets = fs::read(&file).unwrap();
            let whole = any_input::check(*read, &octets);
            let is_wrong = file.file_name().is_some_and(|name| name == "wrong");
            assert_eq!(whole.is_none(), is_wrong, "{}", file.display());
            for at in 0..octets.len() {
                any_input::check(*read, &octets[..at]);
                for changed in *b"{}[](),;'\"#*:0!\n\xff" {
                    let mut wrong = octets.clone();
                    wrong[at] = changed;
                    any_input::check(*read, &wrong);
                }
            }
        }
    }
}
