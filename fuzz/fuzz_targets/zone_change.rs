//! Any octets as changes of a zone: what is read can be made, undone, merged and kept.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/zone/tests/any_change/mod.rs"]
mod any_change;

fuzz_target!(|octets: &[u8]| any_change::check(octets));
