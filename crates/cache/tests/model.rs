//! One thread against a map that forgets nothing: what is found is what was stored last.

#![allow(clippy::unwrap_used)]

mod common;

use common::{addresses, answer, find, key, lifetime, name};
use std::collections::HashMap;
use zonda_cache::{BYTES_MIN, Cache, Key};
use zonda_testkit::generate::Random;
use zonda_wire::Type;

/// Questions that differ in one thing only, for one of `names` names.
fn question<'n>(random: &mut Random, names: &'n [Vec<u8>]) -> Key<'n> {
    let mut key = key(random.pick::<Vec<u8>>(names));
    match random.below(5) {
        0 => key.qtype = Type::AAAA,
        1 => key.source = 7,
        2 => key.dnssec_ok = true,
        3 => key.checking_disabled = true,
        _ => {}
    }
    key
}

#[test]
fn what_is_found_is_what_was_stored_last() {
    for (seed, names, records_max) in [(1, 40, 3), (2, 4_000, 30), (3, 20_000, 12), (4, 500, 900)] {
        let names: Vec<_> = (0..names).map(|i| name(&format!("host{i}.example"))).collect();
        let mut random = Random::new(seed);
        let cache = Cache::new(BYTES_MIN);
        let mut model = HashMap::new();
        let (mut found, mut looked) = (0_u32, 0_u32);
        for version in 0..60_000_u64 {
            let now_secs = (version / 100) as u32;
            let key = question(&mut random, &names);
            let tag = (key.name, key.qtype, key.source, key.dnssec_ok, key.checking_disabled);
            match random.below(8) {
                0 | 1 => {
                    let ttl_secs = 1 + random.below(400) as u32;
                    let body = addresses(1 + random.below(records_max) as u16, ttl_secs, version);
                    let kept = cache.insert(&key, &answer(&body), lifetime(now_secs, ttl_secs));
                    match kept {
                        Ok(()) => drop(model.insert(tag, (body, now_secs, ttl_secs))),
                        Err(_) => assert!(body.len() > 4_000, "{}", body.len()),
                    }
                }
                2 if version % 10 == 0 => {
                    let there = cache.remove(&key);
                    let known = model.remove(&tag);
                    assert!(known.is_some() || !there, "removed what nobody stored");
                }
                _ => {
                    looked += 1;
                    let Some((hit, body)) = find(&cache, &key, now_secs) else { continue };
                    let (stored, stored_at, ttl_secs) = model.get(&tag).expect("found, so stored");
                    let age = now_secs - stored_at;
                    assert_eq!(hit.is_stale, age >= *ttl_secs);
                    assert!(age < ttl_secs * 11);
                    let ttl = if hit.is_stale { 30 } else { ttl_secs - age };
                    let mut expected = stored.clone();
                    expected
                        .chunks_mut(16)
                        .for_each(|it| it[6..10].copy_from_slice(&ttl.to_be_bytes()));
                    assert_eq!(body, expected);
                    assert_eq!(usize::from(hit.counts[0]), body.len() / 16);
                    found += 1;
                }
            }
        }
        let stats = cache.stats();
        assert!(stats.entries <= model.len() as u64, "seed {seed}");
        assert!(stats.bytes <= BYTES_MIN as u64);
        assert!(found > looked / 200, "seed {seed}: {found} of {looked}");
    }
}

#[test]
fn all_is_found_that_fits() {
    let cache = Cache::new(4 << 20);
    let names: Vec<_> = (0..20_000).map(|i| name(&format!("host{i}.example.com"))).collect();
    for name in &names {
        let body = addresses(1, 60, common::hash(name));
        cache.insert(&key(name), &answer(&body), lifetime(0, 60)).unwrap();
    }
    let found = names.iter().filter(|name| find(&cache, &key(name), 1).is_some()).count();
    assert!(found > 19_900, "{found}");
    assert_eq!(cache.stats().entries, found as u64);
    cache.clear();
    assert_eq!(cache.stats().entries, 0);
    assert!(names.iter().all(|name| find(&cache, &key(name), 1).is_none()));
}

#[test]
fn replacing_over_and_over_drops_next_to_nothing_else() {
    let cache = Cache::new(1 << 20);
    let names: Vec<_> = (0..5_000).map(|i| name(&format!("host{i}.example.com"))).collect();
    let store = |name: &Vec<u8>, now_secs| {
        let body = addresses(1, 60, 0);
        cache.insert(&key(name), &answer(&body), lifetime(now_secs, 1_000)).unwrap();
    };
    names.iter().for_each(|name| store(name, 0));
    assert!(cache.stats().entries > 4_950);
    for now_secs in 0..200_000 {
        store(&names[now_secs as usize % 100], now_secs / 1_000);
    }
    let kept = cache.stats().entries; // the logs were written thirty times over meanwhile
    assert!(kept > 4_900, "{kept}");
}

#[test]
fn keys_chosen_to_collide_only_push_each_other_out() {
    let cache = Cache::new(BYTES_MIN);
    let names: Vec<_> = (0..100).map(|i| name(&format!("host{i}.example"))).collect();
    let body = addresses(1, 60, 0);
    let colliding = |name| Key { hash: 1, ..key(name) };
    for name in &names {
        cache.insert(&colliding(name), &answer(&body), lifetime(0, 60)).unwrap();
        assert!(find(&cache, &colliding(name), 0).is_some());
    }
    let found = names.iter().filter(|name| find(&cache, &colliding(name), 0).is_some()).count();
    assert_eq!((found, cache.stats().entries), (8, 8));
}
