//! Any text read as a hosts file: no panic, only valid records, of which a zone can be built.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/zone/tests/any_hosts/mod.rs"]
mod any_hosts;

fuzz_target!(|text: &[u8]| any_hosts::check(text));
