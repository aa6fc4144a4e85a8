//! Any octets read as a capture or as lines of queries: no panic, and only queries come of them.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/bench/tests/any_capture/mod.rs"]
mod any_capture;

fuzz_target!(|octets: &[u8]| {
    any_capture::check(octets);
});
