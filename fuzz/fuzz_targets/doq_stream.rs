//! Any octets of a stream of DNS over QUIC: refused, or taken as the one message that they are.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/client/tests/any_doq_stream/mod.rs"]
mod any_doq_stream;

fuzz_target!(|octets: &[u8]| any_doq_stream::check(octets));
