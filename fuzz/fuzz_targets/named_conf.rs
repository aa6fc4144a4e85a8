//! Any octets read as a named.conf: no panic, bounded memory, and only TOML comes of them.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/import/tests/any_configuration/mod.rs"]
mod any_configuration;

fuzz_target!(|text: &[u8]| {
    if let Some(written) = any_configuration::check(text) {
        written.parse::<toml::Table>().expect("only TOML comes of it");
    }
});
