//! Any octets from an upstream: judged, and what is kept of them can be written into a reply.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/upstream/tests/any_response/mod.rs"]
mod any_response;

fuzz_target!(|octets: &[u8]| any_response::check_any(octets));
