//! Any octets as versions of a catalog zone.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/secondary/tests/any_catalog/mod.rs"]
mod any_catalog;

fuzz_target!(|octets: &[u8]| any_catalog::check(octets));
