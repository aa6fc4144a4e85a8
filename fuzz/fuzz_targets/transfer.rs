//! Any octets read as the reply to a question for a zone transfer, and as a zone's file: no panic.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/secondary/tests/any_transfer/mod.rs"]
mod any_transfer;

fuzz_target!(|octets: &[u8]| any_transfer::check(octets));
