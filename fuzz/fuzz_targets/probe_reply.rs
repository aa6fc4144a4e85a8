//! Any octets from a target of health checks: a certificate, a message of gRPC, an echo reply, a
//! DNS response, or none of them.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/health/tests/any_reply/mod.rs"]
mod any_reply;

fuzz_target!(|octets: &[u8]| any_reply::check(octets));
