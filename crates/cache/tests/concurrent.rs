//! Readers and writers at once: whatever is found belongs to its question, whole.

#![allow(clippy::unwrap_used)]

mod common;

use common::{addresses, answer, hash, key, lifetime, name};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread;
use std::time::{Duration, Instant};
use zonda_cache::{BYTES_MIN, Cache};
use zonda_testkit::generate::Random;

/// How long the threads run.
const DURATION: Duration = Duration::from_secs(3);
/// Names asked for; all together they need several times the cache.
const NAMES: usize = 6_000;

/// Returns the body that belongs to a name: its first record holds the number of records and the
/// version, from which all else follows.
fn body_of(name: &[u8], version: u64) -> Vec<u8> {
    let seed = hash(name) ^ version;
    let records = 1 + (seed % 40) as u16;
    let mut body = addresses(records, 60, seed);
    body[12..16].copy_from_slice(&(version as u32).to_be_bytes());
    body
}

/// Whether a body is one that was made for this name.
fn belongs(name: &[u8], body: &[u8]) -> bool {
    let version = u64::from(u32::from_be_bytes(body[12..16].try_into().unwrap()));
    body == body_of(name, version)
}

#[test]
fn no_reader_gets_a_torn_or_foreign_answer_while_the_logs_are_overwritten() {
    let cache = Cache::new(BYTES_MIN);
    let names: Vec<_> = (0..NAMES).map(|i| name(&format!("host{i}.example"))).collect();
    let stop = AtomicBool::new(false);
    let write = |seed: u64| {
        let mut random = Random::new(seed);
        let mut version = 0;
        while !stop.load(Relaxed) {
            version += 1;
            let name = random.pick(&names);
            let body = body_of(name, version);
            cache.insert(&key(name), &answer(&body), lifetime(0, 60)).unwrap();
            if random.one_in(1000) {
                cache.remove(&key(random.pick::<Vec<u8>>(&names)));
            }
            if random.one_in(100_000) {
                cache.clear();
            }
        }
        version
    };
    let read = |seed: u64| {
        let mut random = Random::new(seed);
        let (mut found, mut body) = (0_u64, vec![0; 4096]);
        while !stop.load(Relaxed) {
            // Few names often, so that entries move to the main log and round it.
            let skew = random.below(NAMES) * random.below(NAMES) / NAMES;
            let name = &names[skew];
            if let Some(hit) = cache.find(&key(name), 0, &mut body) {
                assert!(belongs(name, &body[..hit.body_bytes]), "{name:?}");
                found += 1;
            }
        }
        found
    };
    thread::scope(|scope| {
        let writers = [1, 2].map(|seed| scope.spawn(move || write(seed)));
        let readers = [3, 4].map(|seed| scope.spawn(move || read(seed)));
        let end = Instant::now() + DURATION;
        while Instant::now() < end {
            thread::sleep(Duration::from_millis(10));
            assert!(cache.stats().bytes <= BYTES_MIN as u64);
        }
        stop.store(true, Relaxed);
        let written: u64 = writers.map(|thread| thread.join().unwrap()).iter().sum();
        let found: u64 = readers.map(|thread| thread.join().unwrap()).iter().sum();
        assert!(written > 10_000 && found > 10_000, "{written} written, {found} found");
        assert!(cache.stats().ghost_hits > 0);
    });
}

#[test]
fn cached_answers_are_found_while_the_index_grows() {
    const KEPT: usize = 100_000;
    let cache = Cache::new(64 << 20); // room for all, in an index of a hundred times its first size
    let name = |number: usize| name(&format!("host{number}.example"));
    let stored = AtomicUsize::new(0);
    let read = |seed: u64| {
        let (mut random, mut body, mut looked) = (Random::new(seed), [0; 64], 0);
        loop {
            match stored.load(Acquire) {
                KEPT => return looked,
                0 => thread::yield_now(),
                count => {
                    let name = name(random.below(count));
                    assert!(cache.find(&key(&name), 0, &mut body).is_some(), "{name:?}");
                    looked += 1;
                }
            }
        }
    };
    let first_size = cache.buckets();
    thread::scope(|scope| {
        let readers = [1, 2].map(|seed| scope.spawn(move || read(seed)));
        for number in 0..KEPT {
            let body = addresses(1, 60, number as u64);
            cache.insert(&key(&name(number)), &answer(&body), lifetime(0, 60)).unwrap();
            stored.store(number + 1, Release);
        }
        assert!(readers.map(|reader| reader.join().unwrap()).iter().all(|looked| *looked > 1000));
    });
    assert!(cache.buckets() > 50 * first_size, "{} of {first_size}", cache.buckets());
}
