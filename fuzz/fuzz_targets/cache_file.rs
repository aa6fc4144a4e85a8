//! Any octets read as a cache file, and as the entries of one: nothing bad is kept, all good is.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/cache/tests/any_file/mod.rs"]
mod any_file;

fuzz_target!(|octets: &[u8]| any_file::check(octets));
