//! How often an answer is there when it is asked for, beside caches of the same size that drop the
//! oldest (FIFO) or the least recently used (LRU).

#![allow(clippy::unwrap_used)]

mod common;

use common::{addresses, answer, key, lifetime, name};
use std::collections::{BTreeMap, HashMap};
use zonda_cache::{BYTES_MIN, Cache};
use zonda_testkit::generate::Random;

/// Names that are asked for at all.
const NAMES: usize = 200_000;
/// Questions of a trace.
const QUESTIONS: usize = 600_000;

/// Numbers of names by Zipf's law: the nth is asked for with a weight of 1 / n.
fn zipf(seed: u64) -> Vec<u32> {
    let mut sum = 0.0;
    let weights = (1..=NAMES).map(|rank| {
        sum += 1.0 / rank as f64;
        sum
    });
    let weights: Vec<f64> = weights.collect();
    let mut random = Random::new(seed);
    let draw = |_| {
        let at = random.bits() as f64 / u64::MAX as f64 * sum;
        weights.partition_point(|&weight| weight < at) as u32
    };
    (0..QUESTIONS).map(draw).collect()
}

/// Returns the share of a trace that Zonda's cache answers, and how many entries it held in the
/// end.
fn ours(cache: &Cache, trace: &[u32]) -> (f64, usize) {
    let mut hits = 0;
    let mut out = [0; 64];
    for number in trace {
        let name = name(&format!("name{number:07}.example.com"));
        if cache.find(&key(&name), 0, &mut out).is_some() {
            hits += 1;
        } else {
            let body = addresses(1, 60, u64::from(*number));
            cache.insert(&key(&name), &answer(&body), lifetime(0, 60)).unwrap();
        }
    }
    (f64::from(hits) / trace.len() as f64, cache.stats().entries as usize)
}

/// Returns the share that a cache of `size` entries answers, which drops the entry whose turn is
/// oldest; a hit gives an entry a new turn if `renews`.
fn by_turn(trace: &[u32], size: usize, renews: bool) -> f64 {
    let (mut turns, mut entries) = (BTreeMap::new(), HashMap::new());
    let mut hits = 0;
    for (turn, &number) in trace.iter().enumerate() {
        if let Some(former) = entries.get(&number).copied() {
            hits += 1;
            if !renews {
                continue;
            }
            turns.remove(&former);
        } else if entries.len() == size {
            let (_, oldest) = turns.pop_first().unwrap();
            entries.remove(&oldest);
        }
        turns.insert(turn, number);
        entries.insert(number, turn);
    }
    f64::from(hits) / trace.len() as f64
}

#[test]
fn popular_names_stay_longer_than_with_fifo_or_lru() {
    let trace = zipf(1);
    for bytes in [BYTES_MIN, 1 << 20, 4 << 20] {
        let (ours, entries) = ours(&Cache::new(bytes), &trace);
        // The other caches get what the same memory would hold without logs, index and ghosts: more
        // than Zonda's cache holds.
        let rivals = entries + entries / 20;
        let [fifo, lru] = [false, true].map(|renews| by_turn(&trace, rivals, renews));
        println!("{bytes} octets, {entries} entries: {ours:.4}, LRU {lru:.4}, FIFO {fifo:.4}");
        assert!(ours > fifo && ours >= lru, "{bytes}: {ours:.4}, LRU {lru:.4}, FIFO {fifo:.4}");
    }
}

#[test]
fn a_flood_of_names_asked_for_once_leaves_the_popular_ones() {
    let cache = Cache::new(1 << 20);
    let popular: Vec<u32> = (0..4_000).collect();
    for _ in 0..3 {
        ours(&cache, &popular);
    }
    let flood: Vec<u32> = (1_000_000..1_100_000).collect();
    assert_eq!(ours(&cache, &flood).0, 0.0);
    let (share, _) = ours(&cache, &popular);
    assert!(share > 0.9, "{share}");
}
