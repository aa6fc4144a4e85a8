//! What the cache does when the system refuses memory that its limit allows.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod common;

use common::{addresses, answer, key, lifetime, name};
use std::process::Command;
use zonda_cache::{Cache, InsertError};

/// Octets of the cache.
const CACHE_BYTES: usize = 4 << 30;
/// Octets of address space that the process may have: less than the cache may take.
const ADDRESS_SPACE_BYTES: usize = 1 << 30;

#[test]
fn memory_that_the_system_refuses_costs_answers_in_the_cache_and_not_the_process() {
    let program = std::env::current_exe().unwrap();
    let output = Command::new("sh")
        .args(["-c", "ulimit -v $0 && exec \"$1\" --ignored --exact in_little_address_space"])
        .arg((ADDRESS_SPACE_BYTES >> 10).to_string())
        .arg(program)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
#[ignore = "run by the test above, in a process with a limit"]
fn in_little_address_space() {
    let cache = Cache::new(CACHE_BYTES);
    let body = addresses(1, 60, 0);
    let insert = |number: usize| {
        let name = name(&format!("host{number}.example"));
        cache.insert(&key(&name), &answer(&body), lifetime(0, 60))
    };
    let results: Vec<_> = (0..10_000).map(insert).collect();
    let refused = results.iter().filter(|result| **result == Err(InsertError::NoMemory)).count();
    let inserted = results.iter().filter(|result| result.is_ok()).count();
    assert!(refused > 0, "the limit did not bite");
    assert!(inserted > 0, "nothing fits at all");
    assert_eq!(inserted + refused, results.len(), "{results:?}");
    assert_eq!(cache.stats().no_memory, refused as u64);
}
