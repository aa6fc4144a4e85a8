//! Any octets read as a database of locations: an error or a database whose table agrees with it.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/geo/tests/any_database/mod.rs"]
mod any_database;

fuzz_target!(|octets: &[u8]| any_database::check(octets));
