//! Any octets read as a list of a cluster's API, as a watch of it, and as each of its objects.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/kubernetes/tests/any_objects/mod.rs"]
mod any_objects;

fuzz_target!(|octets: &[u8]| any_objects::check(octets));
