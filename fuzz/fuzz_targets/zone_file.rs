//! Any text read as a master file: no panic, bounded memory, and only valid record data.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/zone/tests/any_text/mod.rs"]
mod any_text;

fuzz_target!(|text: &[u8]| any_text::check(text));
