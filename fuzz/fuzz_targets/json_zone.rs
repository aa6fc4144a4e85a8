//! Any text read as a JSON zone: no panic, only valid record data, and the same when written again.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/zone/tests/any_json/mod.rs"]
mod any_json;

fuzz_target!(|text: &[u8]| any_json::check(text));
