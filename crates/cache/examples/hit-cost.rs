//! What a hit costs by the number of answers in the cache, and what an answer takes in memory.
//!
//! Linux only. `cargo run --release -p zonda-cache --example hit-cost [ENTRIES…]`.
//!
//! Names are asked for at random, one by one and in batches of 32 that touch first; the cost of
//! making up the questions is measured without the cache and taken off. Beside them, one name over
//! and over.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::hint::black_box;
use zonda_cache::{Answer, Cache, Key, Kind, Lifetime};
use zonda_wire::{Class, Type};

/// Questions of a measurement.
const QUESTIONS: usize = 4_000_000;
/// Questions that are touched together.
const BATCH: usize = 32;

/// A name of twenty octets: `host0000000.example`.
#[derive(Clone, Copy)]
struct Name([u8; 20]);

impl Name {
    fn new(number: usize) -> Self {
        let mut octets = *b"\x0bhost0000000\x07example";
        let mut rest = number;
        for digit in octets[5..12].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        Self(octets)
    }

    /// Returns the question for its addresses; `number` stands for the hash of the name.
    fn key(&self, number: usize) -> Key<'_> {
        Key {
            name: &self.0,
            hash: mixed(number as u64),
            qtype: Type::A,
            qclass: Class::IN,
            source: 0,
            dnssec_ok: false,
            checking_disabled: false,
            variant: zonda_cache::Variant::default(),
        }
    }
}

/// Bits without a pattern (SplitMix64).
fn mixed(number: u64) -> u64 {
    let z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Octets of the process that are in memory.
fn resident_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<usize>().ok());
    kib.unwrap_or(0) << 10
}

/// Processor time of this thread, which other load on the machine disturbs less than the clock.
fn cpu_nanos() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

/// Nanoseconds a question when batches of questions for one of `names` names are given to `ask`.
fn nanos(names: usize, batch: usize, mut ask: impl FnMut(&[(Name, usize)])) -> f64 {
    let mut questions = vec![(Name::new(0), 0); batch];
    let start = cpu_nanos();
    for first in (0..QUESTIONS).step_by(batch) {
        for (nth, question) in questions.iter_mut().enumerate() {
            let number = (mixed((first + nth) as u64 ^ 0x5eed) % names as u64) as usize;
            *question = (Name::new(number), number);
        }
        ask(black_box(&questions));
    }
    (cpu_nanos() - start) as f64 / QUESTIONS as f64
}

/// Fills a cache with `names` names and prints a line.
fn measure(names: usize) {
    let before = resident_bytes();
    let cache = Cache::new(names * 130);
    let body = b"\xc0\x0c\0\x01\0\x01\0\0\x0e\x10\0\x04\xc0\0\x02\x01";
    let answer =
        Answer { kind: Kind::Positive, flags: 0, onward: None, ede: None, counts: [1, 0, 0], body };
    let lifetime = Lifetime { now_secs: 0, ttl_secs: 3600, stale_secs: 0 };
    let start = cpu_nanos();
    for number in 0..names {
        let name = Name::new(number);
        cache.insert(&name.key(number), &answer, lifetime).unwrap();
    }
    let insert = (cpu_nanos() - start) as f64 / names as f64;
    let entries = cache.stats().entries as usize;
    let octets = resident_bytes().saturating_sub(before) / entries;

    let mut out = [0; 512];
    let (mut hits, mut asked) = (0, 0);
    let mut find = |questions: &[(Name, usize)]| {
        for (name, number) in questions {
            hits += usize::from(cache.find(&name.key(*number), 7, &mut out).is_some());
            asked += 1;
        }
    };
    let idle = |batch| {
        nanos(names, batch, |questions| {
            black_box(questions.len());
        })
    };
    let single = nanos(names, 1, &mut find) - idle(1);
    let hot = nanos(1, 1, &mut find) - idle(1);
    let batch = nanos(names, BATCH, |questions| {
        let touch = |(name, number): &(Name, usize)| cache.touch(&name.key(*number));
        black_box(questions.iter().map(touch).fold(0, |all, it| all | it));
        let touch = |(name, number): &(Name, usize)| cache.touch_entry(&name.key(*number));
        black_box(questions.iter().map(touch).fold(0, |all, it| all | it));
        find(questions);
    }) - idle(BATCH);
    println!(
        "{names:>9} {:>6.1} % {octets:>7} {insert:>10.0} {hot:>10.1} {single:>10.1} {batch:>10.1}",
        100.0 * hits as f64 / asked as f64
    );
}

fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|size| size.parse().ok()).collect();
    println!("    names     hits  octets  insert ns     one ns  random ns   batch ns");
    let usual = &[100, 10_000, 1_000_000, 10_000_000][..];
    let sizes = if sizes.is_empty() { usual } else { &sizes };
    sizes.iter().copied().for_each(measure);
}
