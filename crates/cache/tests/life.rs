//! The life of an answer: fresh, due, stale, gone; and what holds for all types of a name.

#![allow(clippy::unwrap_used)]

mod common;

use common::{addresses, answer, find, key, lifetime, name};
use zonda_cache::persist::{self, Clocks};
use zonda_cache::policy::Limits;
use zonda_cache::{
    Ancestor, Answer, BYTES_MIN, CUTS_MAX, Cache, Content, DENIES_BELOW, Failure, Freshness, Hit,
    InsertError, Key, Kind, Lifetime, Onward, Policy, REFRESH_SECS, Variant,
};
use zonda_wire::{Ede, Type};

/// Returns the TTL of the first record.
fn ttl((_, body): &(Hit, Vec<u8>)) -> u32 {
    u32::from_be_bytes(body[6..10].try_into().unwrap())
}

/// Returns a cache with one positive answer, stored at 1000 for 100 seconds, and 1000 more as
/// stale.
fn with_one(key: &Key<'_>) -> Cache {
    let cache = Cache::new(BYTES_MIN);
    cache.insert(key, &answer(&addresses(9, 100, 0)), lifetime(1000, 100)).unwrap();
    cache
}

/// Returns the denial of a name: an SOA record of the root.
fn denial() -> Answer<'static> {
    const SOA: &[u8] =
        b"\0\0\x06\0\x01\0\0\0\x3c\0\x16\0\0\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0\x05";
    let flags = 3 | DENIES_BELOW;
    Answer { kind: Kind::NxDomain, flags, onward: None, ede: None, counts: [0, 1, 0], body: SOA }
}

/// Returns all names above a name, the one nearest to the root first.
fn above_of(name: &[u8]) -> Vec<Ancestor> {
    let (mut above, mut skip) = (Vec::new(), 0);
    while name[skip] > 0 {
        skip += 1 + usize::from(name[skip]);
        above.insert(0, skip);
    }
    let ancestor = |(labels, skip): (usize, usize)| Ancestor {
        labels,
        skip,
        hash: common::hash(&name[skip..]),
    };
    above.into_iter().enumerate().skip(1).map(ancestor).collect() // the root exists
}

/// Whether a name is known not to exist because one above does not.
fn is_denied(cache: &Cache, name: &[u8], now_secs: u32) -> bool {
    cache.find_cut(&key(name), above_of(name), now_secs, &mut [0; 200]).is_some()
}

#[test]
fn an_answer_ages_becomes_stale_and_vanishes() {
    let name = name("a.example");
    let cache = with_one(&key(&name));
    for (now_secs, expected) in [
        (1000, Some((100, false))),
        (1099, Some((1, false))),
        (1100, Some((30, true))),
        (2099, Some((30, true))),
        (2100, None),
    ] {
        let found = find(&cache, &key(&name), now_secs);
        assert_eq!(found.as_ref().map(|it| (ttl(it), it.0.is_stale)), expected, "{now_secs}");
        let Some((_, body)) = found else { continue };
        let ttls: Vec<_> = body.chunks(16).map(|record| &record[6..10]).collect();
        assert!(ttls.len() == 9 && ttls.iter().all(|it| it == &ttls[0]));
    }
}

#[test]
fn only_a_popular_answer_in_its_last_tenth_is_due_and_one_caller_gets_it() {
    let name = name("a.example");
    let key = key(&name);
    let cache = with_one(&key);
    let due = |now_secs| find(&cache, &key, now_secs).unwrap().0.refresh_due;
    assert_eq!([1095, 1095, 1095].map(due), [false, false, true], "popular at the third hit");
    assert_eq!([1000, 1089, 1090, 1099].map(due), [false, false, true, true]);
    let hit = find(&cache, &key, 1095).unwrap().0;
    let claims = [1095, 1095, 1096].map(|now_secs| cache.claim_refresh(&key, &hit, now_secs));
    assert_eq!(claims, [true, false, false]);
    assert!(!due(1096), "somebody has it");
    assert!(due(1095 + REFRESH_SECS), "who claimed it did not come back");
    cache.insert(&key, &answer(&addresses(1, 100, 1)), lifetime(1097, 100)).unwrap();
    assert!(!due(1098) && due(1196), "replaced, and as popular as before");
}

#[test]
fn a_stale_answer_is_due_for_refresh_without_earlier_queries() {
    let name = name("a.example");
    let cache = with_one(&key(&name));
    let hit = find(&cache, &key(&name), 1100).unwrap().0;
    assert!(hit.is_stale && hit.refresh_due);
    assert!(cache.claim_refresh(&key(&name), &hit, 1100));
    assert!(!find(&cache, &key(&name), 1101).unwrap().0.refresh_due);
}

#[test]
fn how_early_a_popular_answer_is_due_and_with_which_ttl_it_is_stale_can_be_chosen() {
    let name = name("a.example");
    let key = key(&name);
    let due_from = |prefetch_percent, prefetch_ttl_secs_min| {
        let stale_ttl_secs = 7;
        let freshness = Freshness { prefetch_percent, prefetch_ttl_secs_min, stale_ttl_secs };
        let cache = Cache::with(BYTES_MIN, freshness);
        cache.insert(&key, &answer(&addresses(9, 100, 0)), lifetime(1000, 100)).unwrap();
        (0..3).for_each(|_| assert!(find(&cache, &key, 1000).is_some())); // it is popular
        let due_at = (1000..=1100).find(|at| find(&cache, &key, *at).unwrap().0.refresh_due);
        assert_eq!(find(&cache, &key, 1100).map(|it| ttl(&it)), Some(7));
        let mut shown = Vec::new();
        cache.for_each(|entry| shown = entry.to_message(1100));
        assert!(shown.windows(4).any(|octets| octets == [0, 0, 0, 7]), "{shown:?}");
        due_at.unwrap()
    };
    assert_eq!(due_from(10, 5), 1090);
    assert_eq!(due_from(50, 5), 1050);
    assert_eq!(due_from(1, 100), 1099);
    assert_eq!(due_from(10, 101), 1100, "the TTL is too short");
    assert_eq!(due_from(0, 5), 1100, "never before it expires");
}

#[test]
fn a_new_freshness_holds_for_expired_answers_and_for_those_that_come() {
    let (former, later) = (name("a.example"), name("b.example"));
    let cache = with_one(&key(&former));
    let freshness = Freshness { prefetch_percent: 50, prefetch_ttl_secs_min: 5, stale_ttl_secs: 7 };
    cache.set_freshness(freshness);
    assert_eq!(find(&cache, &key(&former), 1100).map(|it| ttl(&it)), Some(7));
    cache.insert(&key(&later), &answer(&addresses(9, 100, 0)), lifetime(1000, 100)).unwrap();
    let due_at = |name: &Vec<u8>| {
        (0..3).for_each(|_| assert!(find(&cache, &key(name), 1000).is_some())); // it is popular
        (1000..=1100).find(|at| find(&cache, &key(name), *at).unwrap().0.refresh_due)
    };
    assert_eq!((due_at(&former), due_at(&later)), (Some(1090), Some(1050)));
}

#[test]
fn a_failure_does_not_make_a_fresh_answer_due_earlier() {
    let name = name("a.example");
    let cache = with_one(&key(&name));
    let failure = Failure { flags: 2, ede: None, text: b"" };
    cache.insert_failure(&key(&name), failure, Limits { secs_min: 1, secs_max: 1 }, 1000);
    let due = |now_secs| find(&cache, &key(&name), now_secs).unwrap().0.refresh_due;
    assert_eq!([1000, 1001, 1002, 1089, 1090].map(due), [false, false, false, false, true]);
}

#[test]
fn an_answer_too_long_for_the_buffer_is_reported_but_not_copied() {
    let name = name("a.example");
    let cache = with_one(&key(&name));
    let mut out = [0xee; 9 * 16 - 1];
    let hit = cache.find(&key(&name), 1000, &mut out).unwrap();
    assert_eq!((hit.body_bytes, hit.counts), (9 * 16, [9, 0, 0]));
    assert_eq!(out, [0xee; 9 * 16 - 1]);
}

#[test]
fn failures_are_cached_longer_each_time_and_forgotten_after_a_while() {
    let name = name("a.example");
    let key = key(&name);
    let cache = Cache::new(BYTES_MIN);
    let backoff = Limits { secs_min: 1, secs_max: 300 };
    let failure = Failure { flags: 2, ede: Some(Ede::NETWORK_ERROR), text: b"" };
    let mut now_secs = 0;
    for expected in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
        assert_eq!(cache.insert_failure(&key, failure, backoff, now_secs), expected);
        let (hit, body) = find(&cache, &key, now_secs + expected - 1).unwrap();
        assert_eq!((hit.kind, hit.flags, hit.ede), (Kind::Failure, 2, failure.ede));
        assert!(body.is_empty() && !hit.refresh_due && !hit.is_stale);
        now_secs += expected;
        assert_eq!(find(&cache, &key, now_secs), None);
    }
    assert_eq!(cache.insert_failure(&key, failure, backoff, now_secs + 300), 1);
    cache.insert(&key, &answer(&addresses(1, 60, 0)), lifetime(now_secs, 60)).unwrap();
    assert_eq!(find(&cache, &key, now_secs).unwrap().0.kind, Kind::Positive);
}

#[test]
fn a_failure_says_why_in_few_words() {
    let name = name("a.example");
    let cache = Cache::new(BYTES_MIN);
    let backoff = Limits { secs_min: 5, secs_max: 5 };
    for (text, kept) in [(&b"192.0.2.1: timed out"[..], 20), (&[b'x'; 1000], 160), (b"", 0)] {
        let failure = Failure { flags: 2, ede: None, text };
        cache.insert_failure(&key(&name), failure, backoff, 0);
        let (hit, body) = find(&cache, &key(&name), 0).unwrap();
        assert_eq!((hit.kind, &body[..]), (Kind::Failure, &text[..kept]));
    }
}

#[test]
fn a_failure_leaves_a_stale_answer_and_puts_off_the_next_attempt() {
    let name = name("a.example");
    let key = key(&name);
    let cache = with_one(&key);
    let backoff = Limits { secs_min: 5, secs_max: 300 };
    let failure = Failure { flags: 2, ede: None, text: b"" };
    assert_eq!(cache.insert_failure(&key, failure, backoff, 1100), 5);
    for (now_secs, due) in [(1104, false), (1105, true)] {
        let hit = find(&cache, &key, now_secs).unwrap().0;
        assert_eq!((hit.kind, hit.is_stale, hit.refresh_due), (Kind::Positive, true, due));
    }
    assert_eq!(cache.insert_failure(&key, failure, backoff, 1105), 10);
    assert_eq!(cache.insert_failure(&key, failure, backoff, 2100), 5, "the answer is gone");
    assert_eq!(find(&cache, &key, 2100).unwrap().0.kind, Kind::Failure);
}

#[test]
fn that_a_name_does_not_exist_answers_every_type_until_the_name_appears() {
    let name = name("a.example");
    let [a, aaaa] = [Type::A, Type::AAAA].map(|qtype| Key { qtype, ..key(&name) });
    let life = |now_secs| Lifetime { now_secs, ttl_secs: 60, stale_secs: 100 };
    let cache = Cache::new(BYTES_MIN);
    cache.insert(&a, &denial(), life(0)).unwrap();
    let kind = |key: &Key<'_>, now_secs| find(&cache, key, now_secs).map(|(hit, _)| hit.kind);
    assert_eq!([kind(&a, 1), kind(&aaaa, 1)], [Some(Kind::NxDomain); 2]);
    assert_eq!(kind(&Key { source: 1, ..a }, 1), None);
    assert_eq!(kind(&Key { dnssec_ok: true, ..a }, 1), None);
    let hit = find(&cache, &aaaa, 60).unwrap().0;
    assert!(hit.refresh_due && cache.claim_refresh(&aaaa, &hit, 60));
    assert!(!find(&cache, &a, 60).unwrap().0.refresh_due, "one entry, one claim");

    cache.insert(&aaaa, &answer(&addresses(1, 60, 0)), life(2)).unwrap();
    assert_eq!([kind(&a, 3), kind(&aaaa, 3)], [None, Some(Kind::Positive)]);
    cache.insert(&a, &denial(), life(100)).unwrap();
    assert_eq!([kind(&a, 100), kind(&aaaa, 100)], [Some(Kind::NxDomain); 2], "fresh before stale");
    assert_eq!(kind(&aaaa, 161), Some(Kind::Positive), "both stale: the one asked for");
    assert!(cache.remove(&aaaa));
    assert_eq!([kind(&a, 100), kind(&aaaa, 100)], [None; 2]);
}

#[test]
fn that_a_name_does_not_exist_goes_before_a_failure_to_find_out() {
    let name = name("a.example");
    let [a, aaaa] = [Type::A, Type::AAAA].map(|qtype| Key { qtype, ..key(&name) });
    let cache = Cache::new(BYTES_MIN);
    let (failure, backoff) =
        (Failure { flags: 2, ede: None, text: b"late" }, Limits { secs_min: 300, secs_max: 300 });
    for key in [&a, &aaaa] {
        cache.insert_failure(key, failure, backoff, 0);
        assert_eq!(find(&cache, key, 0).unwrap().0.kind, Kind::Failure);
    }
    cache.insert(&a, &denial(), lifetime(1, 60)).unwrap();
    for key in [&a, &aaaa] {
        let (hit, body) = find(&cache, key, 1).unwrap();
        assert_eq!((hit.kind, &body[..]), (Kind::NxDomain, denial().body));
    }
    assert!(find(&cache, &a, 61).unwrap().0.is_stale, "its failure is forgotten");
    let (hit, body) = find(&cache, &aaaa, 61).unwrap();
    assert_eq!(
        (hit.kind, &body[..]),
        (Kind::Failure, &b"late"[..]),
        "a stale one does not go before it"
    );
}

#[test]
fn a_question_for_type_0_says_nothing_about_other_types_or_names_below() {
    let [above, below] = ["a.example", "b.a.example"].map(name);
    let none = Key { qtype: Type(0), ..key(&above) };
    let cache = Cache::new(BYTES_MIN);
    let failure = Failure { flags: 2, ede: None, text: b"" };
    cache.insert_failure(&none, failure, Limits { secs_min: 9, secs_max: 300 }, 0);
    let cname: &[u8] = b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x03\x01b\0";
    let body = [cname, denial().body].concat();
    let alias = Answer { counts: [1, 1, 0], body: &body, ..denial() };
    for answer in [alias, answer(&addresses(1, 60, 0)), denial()] {
        assert_eq!(cache.insert(&none, &answer, lifetime(0, 60)), Err(InsertError::NoType));
    }
    assert_eq!([find(&cache, &key(&above), 0), find(&cache, &none, 0)], [None, None]);
    let cut = cache.find_cut(&key(&below), above_of(&below), 0, &mut [0; 100]);
    assert_eq!(cut, None);
}

#[test]
fn an_alias_to_a_nonexistent_name_applies_to_its_own_type_only() {
    let name = name("a.example");
    let cname: &[u8] = b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x03\x01b\0";
    let body = [cname, denial().body].concat();
    let alias = Answer { counts: [1, 1, 0], body: &body, ..denial() };
    let cache = Cache::new(BYTES_MIN);
    cache.insert(&key(&name), &alias, lifetime(0, 60)).unwrap();
    assert!(find(&cache, &key(&name), 0).is_some());
    assert!(find(&cache, &Key { qtype: Type::AAAA, ..key(&name) }, 0).is_none());
}

#[test]
fn a_name_that_does_not_exist_answers_for_all_below_with_its_pointers_moved() {
    let [above, below] = ["gone.example", "a.b.gone.example"].map(name);
    // The root's SOA record, with its first name below `example`: offset 12 + 5.
    let mut soa = denial().body.to_vec();
    soa.splice(11..12, *b"\x02ns\xc0\x11");
    soa[10] += 4;
    let denied = Answer { body: &soa, ..denial() };
    let cache = Cache::new(BYTES_MIN);
    cache.insert(&key(&above), &denied, lifetime(0, 60)).unwrap();
    let mut out = [0; 100];
    assert!(cache.find(&key(&below), 0, &mut out).is_none());
    let hit = cache.find_cut(&key(&below), above_of(&below), 0, &mut out).unwrap();
    soa[15] += 4;
    assert_eq!((hit.kind, &out[..hit.body_bytes]), (Kind::NxDomain, &soa[..]));
    assert!(cache.find_cut(&key(&below), above_of(&below), 60, &mut out).is_none(), "stale");
    let other = Key { source: 1, ..key(&below) };
    assert!(cache.find_cut(&other, above_of(&below), 0, &mut out).is_none());
    assert!(cache.find_cut(&key(&above), above_of(&above), 0, &mut out).is_none());
}

#[test]
fn a_denial_that_may_be_forged_applies_to_its_own_name_only() {
    let [above, below] = ["gone.example", "a.gone.example"].map(name);
    let cache = Cache::new(BYTES_MIN);
    let doubtful = Answer { flags: 3, ..denial() };
    cache.insert(&key(&above), &doubtful, lifetime(0, 60)).unwrap();
    assert!(find(&cache, &key(&above), 0).is_some());
    assert!(!is_denied(&cache, &below, 0), "no denial at this depth was confirmed");
    cache.insert(&key(&name("lost.example")), &denial(), lifetime(0, 60)).unwrap();
    assert!(!is_denied(&cache, &below, 0), "another one was");
    cache.insert(&key(&above), &denial(), lifetime(0, 60)).unwrap();
    assert!(is_denied(&cache, &below, 0));
}

#[test]
fn a_name_that_does_not_exist_is_found_however_far_above_it_is_and_after_a_restart() {
    let address = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.b.a.0.0.0.0.a.2.ip6.arpa";
    let below = name(address);
    for denied in ["arpa", "2.ip6.arpa", "b.a.0.0.0.0.a.2.ip6.arpa", &address[6..]] {
        let cache = Cache::new(BYTES_MIN);
        for other in ["a.example", "b.c.d.e.f.g.h.i.j.example", "0.ip6.arpa"] {
            cache.insert(&key(&name(other)), &denial(), lifetime(0, 60)).unwrap();
        }
        assert!(!is_denied(&cache, &below, 0), "{denied}");
        cache.insert(&key(&name(denied)), &denial(), lifetime(0, 60)).unwrap();
        assert!(is_denied(&cache, &below, 59) && !is_denied(&cache, &below, 60), "{denied}");
        let (mut file, clocks) = (Vec::new(), Clocks { now_secs: 20, unix_secs: 7000 });
        persist::write(&cache, &mut file, clocks).unwrap();
        let (restarted, clocks) = (Cache::new(BYTES_MIN), Clocks { now_secs: 0, ..clocks });
        let hash = |_, name: &[u8]| Some(common::hash(name));
        persist::read(&restarted, &file[..], clocks, &|_| Policy::default(), hash).unwrap();
        assert!(is_denied(&restarted, &below, 39) && !is_denied(&restarted, &below, 40));
    }
}

#[test]
fn of_the_depths_at_which_names_are_denied_the_eight_nearest_to_the_root_are_looked_at() {
    let below = name("a.b.c.d.e.f.g.h.i.j.k.l.m.example.net");
    let cache = Cache::new(BYTES_MIN);
    let deny = |name: &[u8], ttl_secs| {
        cache.insert(&key(name), &denial(), lifetime(0, ttl_secs)).unwrap();
    };
    // Other denials at the depths of three labels to ten.
    let others = name("no.g.h.i.j.k.l.m.example.net");
    let depths = above_of(&others).into_iter().skip(1).map(|it| {
        deny(&[&b"\x02no"[..], &others[it.skip..]].concat(), 10);
    });
    assert_eq!(depths.count(), CUTS_MAX);
    deny(&name("d.e.f.g.h.i.j.k.l.m.example.net"), 60);
    assert!(!is_denied(&cache, &below, 9), "the ninth depth");
    assert!(is_denied(&cache, &below, 10), "the others are forgotten");
}

#[test]
fn what_there_is_is_counted_by_kind_and_type() {
    let [host, alias, gone] = ["a.example", "b.example", "c.example"].map(name);
    let cache = Cache::new(BYTES_MIN);
    let typed = |name, qtype| Key { qtype: Type(qtype), ..key(name) };
    let body = addresses(1, 60, 0);
    let none = Answer { kind: Kind::NoData, flags: 0, ..denial() };
    for (key, answer) in [
        (typed(&host, 1), answer(&body)),
        (typed(&alias, 1), answer(&body)),
        (typed(&host, 65), answer(&body)),
        (typed(&host, 257), answer(&body)),
        (typed(&host, 28), none),
        (typed(&gone, 28), denial()),
    ] {
        cache.insert(&key, &answer, lifetime(0, 60)).unwrap();
    }
    let limits = Limits { secs_min: 9, secs_max: 300 };
    let failure = Failure { flags: 2, ede: None, text: b"" };
    cache.insert_failure(&typed(&alias, 2), failure, limits, 0);
    let counted = |cache: &Cache| {
        let told = |it: Content| (it.kind, it.qtype.map_or(0, |qtype| qtype.0), it.answers);
        cache.contents().iter().map(told).collect::<Vec<_>>()
    };
    let positive = |qtype, answers| (Kind::Positive, qtype, answers);
    let (denied, failed) = ((Kind::NxDomain, 0, 1), (Kind::Failure, 0, 1));
    let expected =
        [positive(1, 2), positive(65, 1), positive(0, 1), (Kind::NoData, 28, 1), denied, failed];
    assert_eq!(counted(&cache), expected);
    cache.insert(&typed(&alias, 1), &none, lifetime(0, 60)).unwrap(); // its address is gone
    cache.remove_name(&host);
    assert_eq!(counted(&cache), [(Kind::NoData, 1, 1), denied, failed]);
    cache.clear();
    assert_eq!(counted(&cache), []);
}

#[test]
fn expired_and_evicted_answers_are_counted_apart() {
    let cache = Cache::new(BYTES_MIN);
    let store = |number: u32, now_secs, lifetime: Lifetime| {
        let body = addresses(9, lifetime.ttl_secs, u64::from(number));
        let name = name(&format!("host{number}.example"));
        cache.insert(&key(&name), &answer(&body), Lifetime { now_secs, ..lifetime }).unwrap();
        assert!(find(&cache, &key(&name), now_secs).is_some()); // or it would leave soon
    };
    (0..500).for_each(|number| store(number, 0, lifetime(0, 5)));
    assert_eq!((cache.stats().expired, cache.stats().evictions), (0, 0));
    (500..5_000).for_each(|number| store(number, 100, lifetime(0, 1_000)));
    let stats = cache.stats();
    assert_eq!(stats.expired, 500);
    assert!(stats.evictions > 0);
    assert_eq!(stats.inserts, stats.entries + stats.expired + stats.evictions);
    assert!(cache.buckets() > 400);
}

#[test]
fn an_expired_entry_is_evicted_from_a_full_bucket_even_if_popular() {
    let name = name("a.example");
    let of_type = |qtype| Key { qtype: Type(qtype), ..key(&name) };
    let cache = Cache::new(BYTES_MIN);
    let body = addresses(1, 60, 0);
    let brief = Lifetime { now_secs: 0, ttl_secs: 10, stale_secs: 0 };
    for qtype in 1..=8 {
        let life = if qtype == 5 { brief } else { lifetime(0, 1000) };
        cache.insert(&of_type(qtype), &answer(&body), life).unwrap();
    }
    (0..3).for_each(|_| assert!(find(&cache, &of_type(5), 5).is_some()));
    cache.insert(&of_type(9), &answer(&body), lifetime(20, 1000)).unwrap();
    for qtype in [1, 2, 3, 4, 6, 7, 8, 9] {
        assert!(find(&cache, &of_type(qtype), 20).is_some(), "{qtype}");
    }
    assert_eq!((cache.stats().entries, cache.stats().evictions), (8, 0));
    cache.insert(&of_type(10), &answer(&body), lifetime(20, 1000)).unwrap();
    assert_eq!((cache.stats().entries, cache.stats().evictions), (8, 1), "none has expired");
}

#[test]
fn an_answer_is_found_for_its_own_variant_also_where_hashes_are_equal() {
    let cache = Cache::new(BYTES_MIN);
    let name = b"\x03www\x07example\0";
    let variant = |value| Variant { hash: 7, value };
    let key = |variant| Key { variant, ..key(name) };
    let lifetime = Lifetime { now_secs: 0, ttl_secs: 60, stale_secs: 0 };
    let values: [&[u8]; 3] = [b"\x01\xc0\0\x02\x01", b"\x01\xc0\0\x02\x02", &[9; 56]];
    for (flags, value) in (1..).zip(values) {
        let onward = (flags == 2).then_some(Onward::Others);
        let answer = Answer { flags, onward, ..denial() };
        cache.insert(&key(variant(value)), &answer, lifetime).unwrap();
    }
    let found = |variant| cache.find(&key(variant), 1, &mut [0; 512]);
    for (flags, value) in (1..).zip(values) {
        let hit = found(variant(value)).unwrap();
        let onward = (flags == 2).then_some(Onward::Others);
        assert_eq!((hit.flags, hit.onward), (flags, onward), "{value:?}");
    }
    assert_eq!(found(variant(b"\x01\xc0\0\x02\x03")), None);
    assert_eq!(found(Variant::default()), None);
}

#[test]
fn the_moment_at_which_nothing_was_found_passes_with_the_next_answer_for_the_name() {
    let (first, other) = (name("a.example"), name("b.example"));
    let cache = Cache::new(BYTES_MIN); // of one part
    let miss = |key: &Key<'_>| cache.find_or_moment(key, 1000, &mut [0; 200]).err();
    let any_type = Key { qtype: Type::MX, ..key(&first) };
    let moment = miss(&key(&first)).unwrap();
    assert_eq!((miss(&any_type), cache.inserts(&key(&first))), (Some(moment), moment));
    cache.insert(&any_type, &denial(), lifetime(1000, 100)).unwrap();
    assert_ne!(cache.inserts(&key(&first)), moment, "the name does not exist, for no type");
    let moment = miss(&key(&other)).unwrap();
    let backoff = Limits { secs_min: 1, secs_max: 60 };
    let failure = Failure { flags: 2, ede: None, text: b"" };
    cache.insert_failure(&key(&other), failure, backoff, 1000);
    assert_ne!(cache.inserts(&key(&other)), moment, "a failure is found, too");
    assert_eq!(miss(&key(&first)), None);
}
