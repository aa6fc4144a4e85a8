//! Any octets read as a journal, and as the records of one: nothing is read that is not whole.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/journal/tests/any_journal/mod.rs"]
mod any_journal;

fuzz_target!(|octets: &[u8]| any_journal::check(octets));
