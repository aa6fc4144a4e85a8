//! Any octets read as a signed query: no panic, and no signature but the key's is sound.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/wire/tests/any_signature/mod.rs"]
mod any_signature;

fuzz_target!(|octets: &[u8]| any_signature::check(octets));
