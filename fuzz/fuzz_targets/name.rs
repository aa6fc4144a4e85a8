//! Any octets read as a name, in wire form and as text.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/wire/tests/any_name/mod.rs"]
mod any_name;

fuzz_target!(|octets: &[u8]| any_name::check(octets));
