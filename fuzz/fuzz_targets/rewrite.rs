//! Any octets as a query that rules change, as the reply to it, and as the text of a template.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/rewrite/tests/any_input/mod.rs"]
mod any_input;

fuzz_target!(|octets: &[u8]| any_input::check(octets));
