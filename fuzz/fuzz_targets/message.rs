//! Any octets read as a message: no panic, whole names, and printable text.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/wire/tests/any_message/mod.rs"]
mod any_message;

fuzz_target!(|octets: &[u8]| any_message::check(octets));
