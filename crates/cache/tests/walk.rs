//! Looking through the cache, and forgetting by name.

#![allow(clippy::unwrap_used)]

mod common;

use common::{addresses, answer, find, key, lifetime, name};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use zonda_cache::{Cache, InsertError, Key};
use zonda_wire::{Message, Type};

/// Ends the writers, also when a test fails.
struct Stops<'s>(&'s AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Returns a cache with an answer for each name.
fn filled(names: &[Vec<u8>]) -> Cache {
    let cache = Cache::new(8 << 20);
    for name in names {
        let body = addresses(1 + name.len() as u16 % 3, 60, common::hash(name));
        cache.insert(&key(name), &answer(&body), lifetime(5, 60)).unwrap();
    }
    cache
}

#[test]
fn every_answer_is_shown_as_it_was_stored() {
    let names: Vec<_> = (0..5_000).map(|i| name(&format!("host{i}.example"))).collect();
    let cache = filled(&names);
    let mut seen = BTreeSet::new();
    cache.for_each(|entry| {
        assert_eq!((entry.qtype, entry.source), (Some(Type::A), 0));
        assert_eq!((entry.stored_at, entry.expires_at, entry.stale_until), (5, 65, 665));
        let records = 1 + entry.name.len() as u16 % 3;
        assert_eq!(entry.answer.body, addresses(records, 60, common::hash(entry.name)));
        assert!(seen.insert(entry.name.to_vec()));
    });
    assert_eq!(seen.len() as u64, cache.stats().entries);
}

#[test]
fn a_name_and_a_tree_are_forgotten() {
    let texts = ["example", "a.example", "b.a.example", "ba.example", "a.test"];
    let names = texts.map(name);
    let cache = filled(&names);
    let other = Key { qtype: Type::AAAA, ..key(&names[1]) };
    cache.insert(&other, &answer(&addresses(1, 60, 0)), lifetime(5, 60)).unwrap();
    let there = || names.iter().map(|name| find(&cache, &key(name), 5).is_some());
    assert_eq!(cache.remove_name(&name("a.example")), 2);
    assert!(there().eq([true, false, true, true, true]));
    assert_eq!(cache.remove_name(&name("a.example")), 0);
    assert_eq!(cache.remove_tree(&name("a.example")), 1);
    assert!(there().eq([true, false, false, true, true]));
    assert_eq!(cache.remove_tree(&name("example")), 2);
    assert!(there().eq([false, false, false, false, true]));
    assert_eq!((cache.remove_tree(&name(".")), cache.stats().entries), (1, 0));
}

#[test]
fn the_answers_for_a_name_are_shown_of_every_type() {
    let names = ["www.example", "other.example"].map(name);
    let cache = filled(&names);
    let other = Key { qtype: Type::AAAA, ..key(&names[0]) };
    cache.insert(&other, &answer(&addresses(1, 60, 0)), lifetime(5, 60)).unwrap();
    let signed = Key { dnssec_ok: true, ..key(&names[0]) };
    cache.insert(&signed, &answer(&addresses(1, 60, 0)), lifetime(5, 60)).unwrap();
    let mut seen = Vec::new();
    cache.for_each_type(&key(&names[0]), |entry| seen.extend(entry.qtype));
    seen.sort_by_key(|qtype| qtype.0);
    assert_eq!(seen, [Type::A, Type::AAAA]);
    cache.for_each_type(&key(&name("no.example")), |entry| panic!("{entry:?}"));
}

#[test]
fn an_answer_is_shown_as_a_message_with_the_ttls_of_the_present() {
    let names = [name("www.example")];
    let cache = filled(&names);
    for (now_secs, ttl) in [(5, 60), (35, 30), (64, 1), (65, 30)] {
        let mut shown = 0;
        cache.for_each_type(&key(&names[0]), |entry| {
            let message = Message::parse(&entry.to_message(now_secs)).unwrap();
            assert_eq!(message.questions[0].name.as_wire(), names[0]);
            let ttls: Vec<u32> = message.records.iter().map(|record| record.ttl).collect();
            assert!(!ttls.is_empty() && ttls.iter().all(|it| *it == ttl), "{now_secs}: {ttls:?}");
            shown += 1;
        });
        assert_eq!(shown, 1);
    }
}

#[test]
fn an_answer_fetched_before_a_flush_is_not_inserted() {
    let cache = filled(&[]);
    let name = name("www.example");
    let insert = |asked| {
        let body = addresses(1, 60, 0);
        cache.insert_since(asked, &key(&name), &answer(&body), lifetime(5, 60))
    };
    let before = cache.flushes();
    assert_eq!(insert(before), Ok(()));
    for forget in [
        |cache: &Cache| cache.clear(),
        |cache: &Cache| {
            cache.remove_name(b"\0");
        },
    ] {
        let before = cache.flushes();
        forget(&cache);
        assert_eq!(insert(before), Err(InsertError::Flushed));
        assert_eq!(insert(cache.flushes()), Ok(()));
    }
}

#[test]
fn a_walk_among_writers_misses_nothing_that_stays() {
    let names: Vec<_> = (0..3_000).map(|i| name(&format!("host{i}.example"))).collect();
    let cache = Cache::new(1 << 20);
    let store = |name: &Vec<u8>| {
        let body = addresses(1, 60, 0);
        cache.insert(&key(name), &answer(&body), lifetime(5, 60)).unwrap();
    };
    names.iter().for_each(store);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        // So few are written over and over that nothing else is dropped, but all goes round.
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                names[..50].iter().for_each(store);
            }
        });
        let _stops = Stops(&stop);
        for _ in 0..20 {
            let mut seen = BTreeSet::new();
            cache.for_each(|entry| {
                seen.insert(entry.name.to_vec());
            });
            let there = |name: &&Vec<u8>| find(&cache, &key(name), 5).is_some();
            let missed = names[50..].iter().filter(there).filter(|name| !seen.contains(*name));
            assert_eq!(missed.count(), 0);
        }
    });
}
