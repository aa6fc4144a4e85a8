//! What the cache takes from the system. One test alone in its process, because it looks at all of
//! the process's memory.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod common;

use common::{addresses, answer, key, lifetime, name};
use std::fs;
use zonda_cache::Cache;

/// Octets of the process that are in memory.
fn resident_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

#[test]
fn memory_is_taken_as_it_is_used_and_never_more_than_allowed() {
    const BYTES: usize = 128 << 20;
    let before = resident_bytes();
    let taken = || resident_bytes().saturating_sub(before);
    let cache = Cache::new(BYTES);
    assert!(taken() < 1 << 20, "empty: {}", taken());

    let names = 1_000_000;
    let insert = |number: usize| {
        let name = name(&format!("host{number:07}.example")); // 20 octets
        let body = addresses(1, 60, number as u64);
        cache.insert(&key(&name), &answer(&body), lifetime(0, 60)).unwrap();
    };
    (0..10_000).for_each(insert);
    println!("10,000 entries in {} octets", taken());
    assert!(taken() < 4 << 20, "10,000 entries: {}", taken());
    assert_eq!(cache.stats().entries, 10_000, "there is room for more");

    (10_000..names).for_each(insert);
    let entries = cache.stats().entries as usize;
    println!("{entries} entries in {} octets: {} each", taken(), taken() / entries);
    assert!(entries > names * 95 / 100, "{entries}");
    assert!(taken() / entries < 120, "{} octets for {entries}", taken());

    (names..3 * names / 2).for_each(insert);
    println!("full: {} entries in {} octets", cache.stats().entries, taken());
    assert!(taken() < BYTES + (1 << 20), "full: {}", taken());
}
