//! Any octets as a message that changes a zone: the zone is one afterwards, and no panic.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/zone/tests/any_update/mod.rs"]
mod any_update;

fuzz_target!(|octets: &[u8]| any_update::check(octets));
