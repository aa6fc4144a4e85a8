//! What must hold of any octets read as a cache file; shared with the fuzz target.

use zonda_cache::persist::{Clocks, read, write};
use zonda_cache::{BYTES_MIN, Cache, Policy};

/// When the file is read.
const CLOCKS: Clocks = Clocks { now_secs: 100, unix_secs: 1_000 };

/// Reads the octets as a file, and as the entries of a file whose checksums are right.
///
/// # Panics
/// When something does not hold.
pub fn check(octets: &[u8]) {
    check_file(octets);
    check_file(&sealed(octets));
}

/// Checks that what is taken from a file can be found, and written and taken again; of a bad one
/// nothing is.
fn check_file(octets: &[u8]) {
    let hash = |_, name: &[u8]| Some(checksum(7, name));
    let (cache, policy) = (Cache::new(BYTES_MIN), Policy::default());
    let Ok(count) = read(&cache, octets, CLOCKS, &|_| policy, hash) else {
        assert_eq!(cache.stats().entries, 0);
        return;
    };
    let entries = cache.stats().entries;
    assert!(entries <= count);
    let mut again = Vec::new();
    assert_eq!(write(&cache, &mut again, CLOCKS).ok(), Some(entries));
    let copy = Cache::new(2 * BYTES_MIN);
    assert_eq!(read(&copy, &again[..], CLOCKS, &|_| policy, hash).ok(), Some(entries));
}

/// Returns a file with these octets as its only block.
pub fn sealed(entries: &[u8]) -> Vec<u8> {
    let entries = &entries[..entries.len().min(64 << 10)];
    let mut file = [&b"zondaca2"[..], &990_u64.to_be_bytes()].concat();
    let mut sum = checksum(0, &file);
    file.extend_from_slice(&sum.to_be_bytes());
    for block in [entries, &[]] {
        sum = checksum(sum, block);
        file.extend_from_slice(&(block.len() as u32).to_be_bytes());
        file.extend_from_slice(&sum.to_be_bytes());
        file.extend_from_slice(block);
    }
    file
}

/// FNV-1a over a number and octets.
fn checksum(before: u64, octets: &[u8]) -> u64 {
    let octets = before.to_be_bytes().into_iter().chain(octets.iter().copied());
    octets.fold(0xcbf2_9ce4_8422_2325, |sum, octet| {
        (sum ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3)
    })
}
