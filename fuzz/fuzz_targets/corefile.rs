//! Any octets read as a Corefile: no panic, bounded memory, and only TOML comes of them.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/import/tests/any_input/mod.rs"]
mod any_input;

fuzz_target!(|text: &[u8]| {
    let (_, read) = any_input::FORMATS[3];
    if let Some(written) = any_input::check(read, text) {
        written.parse::<toml::Table>().expect("only TOML comes of it");
    }
});
