//! Queries for names that other servers hold: deferred, then resumed.
#![allow(clippy::unwrap_used)]

use arc_swap::ArcSwap;
use std::path::Path;
use std::sync::Arc;
use zonda_cache::{Answer, Cache, DENIES_BELOW, Failure, Key, Kind, Lifetime, Onward, Policy};
use zonda_engine::access::{Access, AccessList};
use zonda_engine::code::History;
use zonda_engine::zones::{Forward, Source, ZoneEntry, ZoneTable};
use zonda_engine::{
    Deferral, DeferredQuery, Engine, Now, Outcome, Peer, Reason, Resumption, Settings, Snapshot,
    To, Transport, UpstreamAnswer,
    gate::rate::{RateSettings, RateTable},
};
use zonda_wire::message::Message;
use zonda_wire::{Class, Name, Rcode, Type};
use zonda_zone::{HashSeed, LookupName, build, file};

const SEED: HashSeed = HashSeed(1);
const NOW: Now = Now::new(1, 1);
/// RD, as clients set it that want recursion.
const RECURSION_DESIRED: u16 = 0x0100;

/// An engine with data of `example`, which forwards all other names.
fn engine() -> Engine {
    engine_with(Arc::new(Cache::new(1 << 20)))
}

/// Makes an engine with cached answers of upstreams.
fn engine_with(cache: Arc<Cache>) -> Engine {
    engine_set(cache, Settings::default())
}

/// Makes an engine with settings.
fn engine_set(cache: Arc<Cache>, settings: Settings) -> Engine {
    let forward = Arc::new(Forward {
        number: 7,
        cache,
        options: None,
        nxdomain_cut: true,
        overlays: Vec::new(),
    });
    let apex: Name = "example".parse().unwrap();
    let (records, _) = file::read_text(
        b"$TTL 60\n@ SOA a a 1 2 3 4 5\n@ NS a\na A 192.0.2.1\nsub NS ns.sub\nns.sub A 192.0.2.2\n\
          $GENERATE 1-14 c$ CNAME c${1}\nc15 CNAME www.example.net.\nalias CNAME a\n",
        Path::new("zone"),
        &apex,
        &file::Options::default(),
    );
    let data = Source::Data(Arc::new(build(&apex, &records, SEED).unwrap()));
    let entries = [(apex, data), (Name::root(), Source::Forward(forward))];
    let entry = |(number, (apex, source))| Arc::new(ZoneEntry::new(apex, source, None, number));
    let zones = ZoneTable::new((0..).zip(entries).map(entry).collect(), SEED);
    let snapshot = Snapshot { settings: Arc::new(settings), ..Snapshot::of(zones) };
    Engine::new(Arc::new(ArcSwap::from_pointee(snapshot)), Arc::default())
}

/// A client over UDP.
fn peer() -> Peer {
    Peer::new(([127, 0, 0, 1], 5300).into(), Transport::Udp, 0)
}

/// The octets of a query, with an OPT record.
fn query(id: u16, flags: u16, name: &str, qtype: Type) -> Vec<u8> {
    let name: Name = name.parse().unwrap();
    let header = [id, flags, 1, 0, 0, 1].map(u16::to_be_bytes).concat();
    let opt = [0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0];
    [&header, name.as_wire(), &qtype.0.to_be_bytes(), &[0, 1], &opt].concat()
}

/// What the engine makes of a query, and the reply.
fn ask(engine: &mut Engine, query: &[u8]) -> (Outcome, Option<Message>) {
    let mut buffer = [0; 1232];
    buffer[..query.len()].copy_from_slice(query);
    let outcome = engine.answer(NOW, &peer(), &mut buffer, query.len());
    if let Outcome::Deferred(_) = outcome {
        assert_eq!(buffer[..query.len()], *query, "a deferred query is left as it was");
    }
    let octets = outcome.reply_bytes();
    (outcome, (octets > 0).then(|| Message::parse(&buffer[..octets]).unwrap()))
}

/// The reply to a deferred query.
fn resume(engine: &mut Engine, query: &[u8], fetched: &UpstreamAnswer<'_>) -> Message {
    let mut buffer = [0; 1232];
    buffer[..query.len()].copy_from_slice(query);
    let history = History::default();
    let (buffer, len, peer) = (&mut buffer, query.len(), &peer());
    let waiting = DeferredQuery { query: None, peer, history: &history, buffer, len };
    let octets = engine.resume(NOW, waiting, Resumption::Upstream(fetched)).reply_bytes();
    Message::parse(&buffer[..octets]).unwrap()
}

/// What was fetched, without words.
fn fetched<'b>(
    rcode: Rcode,
    (counts, body): ([u16; 3], &'b [u8]),
    reason: Reason,
) -> UpstreamAnswer<'b> {
    let (is_authentic, goes_on, text) = (false, false, b"".as_slice());
    UpstreamAnswer { name: &[], rcode, is_authentic, counts, body, goes_on, reason, text }
}

/// A body with one A record of the question's name.
const BODY: &[u8] = b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x07";

/// How many of 100 replies to these names are sent whole, at 20 a second.
fn sent_whole(
    name: impl Fn(usize) -> String,
    (rcode, counts, body): (Rcode, [u16; 3], &[u8]),
    reason: impl Fn(usize) -> Reason,
) -> usize {
    let rate = RateSettings::new(20, 1, 2, (24, 56), Vec::new(), RateTable::new(4096));
    let settings = Settings { rate: Some(rate), ..Settings::default() };
    let mut engine = engine_set(Arc::new(Cache::new(1 << 20)), settings);
    let mut is_whole = |number: usize| {
        let query = query(7, RECURSION_DESIRED, &name(number), Type::A);
        let mut buffer = [0; 1232];
        buffer[..query.len()].copy_from_slice(&query);
        let (fetched, history) =
            (fetched(rcode, (counts, body), reason(number)), History::default());
        let (peer, len) = (&peer(), query.len());
        let waiting =
            DeferredQuery { query: None, peer, history: &history, buffer: &mut buffer, len };
        let len = engine.resume(NOW, waiting, Resumption::Upstream(&fetched)).reply_bytes();
        len > 0 && Message::parse(&buffer[..len]).unwrap().rcode() == rcode && buffer[2] & 2 == 0
    };
    (0..100).filter(|&number| is_whole(number)).count()
}

#[test]
fn names_that_others_hold_are_counted_one_by_one_and_missing_ones_by_the_zone() {
    let each = |number: usize| format!("name{number}.example.net");
    let same = |_| "www.example.net".to_owned();
    let found = (Rcode::NOERROR, [1, 0, 0], BODY);
    for reason in [Reason::Forwarded, Reason::Cached, Reason::Stale] {
        assert_eq!(sent_whole(each, found, |_| reason), 100, "{reason:?}");
        assert_eq!(sent_whole(same, found, |_| reason), 20, "{reason:?}");
        let missing = (Rcode::NXDOMAIN, [0; 3], &[][..]);
        assert_eq!(sent_whole(each, missing, |_| reason), 20, "{reason:?}");
        let no_data = (Rcode::NOERROR, [0; 3], &[][..]);
        assert_eq!(sent_whole(each, no_data, |_| reason), 100, "{reason:?}: the names exist");
    }
    let by_turns = |number: usize| [Reason::Forwarded, Reason::Cached][number % 2];
    assert_eq!(sent_whole(same, found, by_turns), 20, "one count, whoever has the answer");
}

#[test]
fn a_name_that_others_hold_is_deferred_under_its_hash() {
    let mut engine = engine();
    let mut hash_of = |id, name, qtype| {
        let (outcome, _) = ask(&mut engine, &query(id, RECURSION_DESIRED, name, qtype));
        let Outcome::Deferred(Deferral { to: To::Forward(7), name_hash, is_alias: false, .. }) =
            outcome
        else {
            panic!("{outcome:?}");
        };
        name_hash
    };
    let hash = hash_of(1, "www.example.net", Type::A);
    assert_eq!(hash_of(2, "WWW.example.NET", Type::A), hash);
    assert_ne!(hash_of(1, "www2.example.net", Type::A), hash);
}

#[test]
fn a_name_of_our_own_is_not_deferred() {
    let (_, reply) = ask(&mut engine(), &query(1, RECURSION_DESIRED, "a.example", Type::A));
    assert_eq!(reply.unwrap().rcode(), Rcode::NOERROR);
}

#[test]
fn nobody_is_asked_for_a_client_that_wants_no_recursion() {
    let (_, reply) = ask(&mut engine(), &query(1, 0, "www.example.net", Type::A));
    assert_eq!(reply.unwrap().rcode(), Rcode::REFUSED);
}

#[test]
fn a_resumed_query_gets_what_was_fetched_with_its_own_id_question_and_options() {
    let query = query(4711, RECURSION_DESIRED, "WWW.example.net", Type::A);
    let fetched = fetched(Rcode::NOERROR, ([1, 0, 0], BODY), Reason::Forwarded);
    let reply = resume(&mut engine(), &query, &fetched);
    assert_eq!((reply.id, reply.rcode()), (4711, Rcode::NOERROR));
    assert_eq!(reply.flags & 0x07f0, 0x0180, "RD and RA, neither AA, TC, AD nor CD");
    assert_eq!(reply.questions[0].name.to_string(), "WWW.example.net.");
    assert_eq!(reply.records[0].owner, reply.questions[0].name);
    assert_eq!(reply.records[0].rdata, [192, 0, 2, 7]);
    assert!(reply.opt.is_some());
}

#[test]
fn only_replies_to_queries_say_that_recursion_is_available() {
    const UPDATE: u16 = 5 << 11;
    for (flags, expected) in [(0, 0x0080), (UPDATE, 0)] {
        let (_, reply) = ask(&mut engine(), &query(1, flags, "www.example", Type::SOA));
        assert_eq!(reply.unwrap().flags & 0x0080, expected, "{flags:#06x}");
    }
}

#[test]
fn that_an_answer_was_validated_is_told_to_those_who_ask_for_it() {
    const AUTHENTIC: u16 = 0x0020;
    for (asked, is_authentic, told) in [
        (RECURSION_DESIRED, true, 0),
        (RECURSION_DESIRED | AUTHENTIC, true, AUTHENTIC),
        (RECURSION_DESIRED | AUTHENTIC, false, 0),
    ] {
        let query = query(1, asked, "www.example.net", Type::A);
        let fetched = fetched(Rcode::NOERROR, ([1, 0, 0], BODY), Reason::Forwarded);
        let fetched = UpstreamAnswer { is_authentic, ..fetched };
        let reply = resume(&mut engine(), &query, &fetched);
        assert_eq!(reply.flags & AUTHENTIC, told);
    }
}

#[test]
fn an_answer_that_does_not_fit_is_truncated() {
    let query = query(1, RECURSION_DESIRED, "www.example.net", Type::A);
    let body = BODY.repeat(100);
    let fetched = fetched(Rcode::NOERROR, ([100, 0, 0], &body), Reason::Forwarded);
    let reply = resume(&mut engine(), &query, &fetched);
    assert!(reply.has(0x0200));
    assert!(reply.records.is_empty() && reply.opt.is_some());
}

#[test]
fn a_failure_says_why() {
    let query = query(1, RECURSION_DESIRED, "www.example.net", Type::A);
    let failure = fetched(Rcode::SERVFAIL, ([0; 3], &[]), Reason::UpstreamTimeout);
    let fetched = UpstreamAnswer { text: b"192.0.2.1: timed out", ..failure };
    let reply = resume(&mut engine(), &query, &fetched);
    assert_eq!(reply.rcode(), Rcode::SERVFAIL);
    let no_reachable_authority = (15, b"\0\x16192.0.2.1: timed out".to_vec()); // rfc8914#4.23
    assert_eq!(reply.opt.unwrap().options, [no_reachable_authority]);
}

/// The name of the questions whose answers are kept.
fn kept_name() -> LookupName {
    let name: Name = "www.example.net".parse().unwrap();
    LookupName::new(name.as_wire(), SEED)
}

/// Under which the answer to a question for it is kept.
fn key(name: &LookupName, qtype: Type) -> Key<'_> {
    Key {
        name: name.as_wire(),
        hash: name.hash(0),
        qtype,
        qclass: Class::IN,
        source: 7,
        dnssec_ok: false,
        checking_disabled: false,
        variant: zonda_cache::Variant::default(),
    }
}

/// Keeps an answer that was fetched at the second 0 and lives for a minute.
fn keep(cache: &Cache, qtype: Type, kind: Kind, (flags, counts, body): (u16, [u16; 3], &[u8])) {
    keep_onward(cache, qtype, kind, (flags, counts, body), None);
}

/// Keeps an answer whose chain goes on or not.
fn keep_onward(
    cache: &Cache,
    qtype: Type,
    kind: Kind,
    (flags, counts, body): (u16, [u16; 3], &[u8]),
    onward: Option<Onward>,
) {
    let answer = Answer { kind, flags, onward, ede: None, counts, body };
    let lifetime = Lifetime { now_secs: 0, ttl_secs: 60, stale_secs: 3600 };
    cache.insert(&key(&kept_name(), qtype), &answer, lifetime).unwrap();
}

#[test]
fn a_kept_answer_is_given_again_aged_with_the_id_and_case_of_the_question() {
    let cache = Arc::new(Cache::new(1 << 20));
    keep(&cache, Type::A, Kind::Positive, (0, [1, 0, 0], BODY));
    keep(&cache, Type::TXT, Kind::NxDomain, (3, [0; 3], &[]));
    let mut engine = engine_with(cache);
    let query_a = query(4711, RECURSION_DESIRED, "WWW.example.net", Type::A);
    let mut buffer = [0; 1232];
    buffer[..query_a.len()].copy_from_slice(&query_a);
    let now = Now::new(10_000_000_000, 10);
    let outcome = engine.answer(now, &peer(), &mut buffer, query_a.len());
    let reply = Message::parse(&buffer[..outcome.reply_bytes()]).unwrap();
    assert_eq!((reply.id, reply.flags & 0x07f0), (4711, 0x0180));
    assert_eq!(reply.questions[0].name.to_string(), "WWW.example.net.");
    assert_eq!((reply.records[0].ttl, &reply.records[0].rdata[..]), (50, &[192, 0, 2, 7][..]));
    assert!(reply.opt.is_some());
    let (_, reply) = ask(&mut engine, &query(1, 0, "www.example.net", Type::TXT));
    assert_eq!(reply.unwrap().rcode(), Rcode::NXDOMAIN, "what is there is told without RD too");
}

#[test]
fn a_kept_answer_is_not_for_another_question_nor_for_ever() {
    let cache = Arc::new(Cache::new(1 << 20));
    keep(&cache, Type::A, Kind::Positive, (0, [1, 0, 0], BODY));
    let mut engine = engine_with(cache);
    let is_deferred = |engine: &mut Engine, now, query: &[u8]| {
        let mut buffer = [0; 1232];
        buffer[..query.len()].copy_from_slice(query);
        let outcome = engine.answer(now, &peer(), &mut buffer, query.len());
        let is_deferred = matches!(outcome, Outcome::Deferred(_));
        assert!(!is_deferred || buffer[..query.len()] == *query, "it is left as it was");
        is_deferred
    };
    let name = "www.example.net";
    assert!(!is_deferred(&mut engine, NOW, &query(1, RECURSION_DESIRED, name, Type::A)));
    assert!(is_deferred(&mut engine, NOW, &query(1, RECURSION_DESIRED, name, Type::AAAA)));
    let checking_disabled = RECURSION_DESIRED | 0x0010;
    assert!(is_deferred(&mut engine, NOW, &query(1, checking_disabled, name, Type::A)));
    let mut dnssec_ok = query(1, RECURSION_DESIRED, name, Type::A);
    let flags_at = dnssec_ok.len() - 4;
    dnssec_ok[flags_at] = 0x80;
    assert!(is_deferred(&mut engine, NOW, &dnssec_ok));
    let later = Now::new(60_000_000_000, 60);
    assert!(is_deferred(&mut engine, later, &query(1, RECURSION_DESIRED, name, Type::A)));
}

#[test]
fn nobody_is_asked_again_a_moment_after_a_failure() {
    let cache = Arc::new(Cache::new(1 << 20));
    keep(&cache, Type::A, Kind::Positive, (0, [1, 0, 0], BODY));
    let failure = Failure { flags: Rcode::SERVFAIL.0, ede: None, text: b"why" };
    for qtype in [Type::A, Type::TXT] {
        let limits = Policy::default().failure;
        cache.insert_failure(&key(&kept_name(), qtype), failure, limits, 100);
    }
    let mut engine = engine_with(cache);
    let mut ask_at = |secs: u32, qtype| {
        let query = query(1, RECURSION_DESIRED, "www.example.net", qtype);
        let mut buffer = [0; 1232];
        buffer[..query.len()].copy_from_slice(&query);
        let now = Now::new(u64::from(secs) * 1_000_000_000, secs);
        let octets = engine.answer(now, &peer(), &mut buffer, query.len()).reply_bytes();
        (octets > 0).then(|| Message::parse(&buffer[..octets]).unwrap())
    };
    let stale = ask_at(100, Type::A).unwrap();
    assert_eq!((stale.rcode(), stale.records[0].ttl), (Rcode::NOERROR, 30));
    let (code, data) = &stale.opt.unwrap().options[0];
    assert_eq!((code, &data[..9]), (&15, &b"\0\x03expired"[..]));
    let failed = ask_at(100, Type::TXT).unwrap();
    assert_eq!(failed.rcode(), Rcode::SERVFAIL);
    assert_eq!(failed.opt.unwrap().options, [(15, b"\0\x0dwhy".to_vec())]);
    assert!(ask_at(101, Type::A).is_none() && ask_at(101, Type::TXT).is_none());
}

#[test]
fn a_name_below_one_that_does_not_exist_does_not_exist_either_unless_it_is_known_to() {
    let cache = Arc::new(Cache::new(1 << 20));
    keep(&cache, Type::TXT, Kind::NxDomain, (3 | DENIES_BELOW, [0; 3], &[]));
    let mut engine = engine_with(Arc::clone(&cache));
    let mut rcode = |flags, name, qtype| {
        let (_, reply) = ask(&mut engine, &query(1, flags, name, qtype));
        reply.map(|reply| (reply.rcode(), reply.flags & 0x07f0))
    };
    let denied = Some((Rcode::NXDOMAIN, 0x0180));
    for (name, qtype) in [("a.www.example.net", Type::A), ("b.A.WWW.example.NET", Type::MX)] {
        assert_eq!(rcode(RECURSION_DESIRED, name, qtype), denied);
    }
    assert_eq!(rcode(0, "a.www.example.net", Type::A), Some((Rcode::NXDOMAIN, 0x0080)));
    assert_eq!(rcode(RECURSION_DESIRED, "awww.example.net", Type::A), None, "deferred");
    assert_eq!(rcode(RECURSION_DESIRED, "example.net", Type::A), None, "deferred");
    assert_eq!(rcode(RECURSION_DESIRED | 0x0010, "a.www.example.net", Type::A), None, "CD");
    let below: Name = "a.www.example.net".parse().unwrap();
    let below = LookupName::new(below.as_wire(), SEED);
    let own = Answer {
        kind: Kind::Positive,
        flags: 0,
        onward: None,
        ede: None,
        counts: [1, 0, 0],
        body: BODY,
    };
    let lifetime = Lifetime { now_secs: 0, ttl_secs: 60, stale_secs: 0 };
    cache.insert(&key(&below, Type::A), &own, lifetime).unwrap();
    let found = rcode(RECURSION_DESIRED, "a.www.example.net", Type::A);
    assert_eq!(found, Some((Rcode::NOERROR, 0x0180)), "an answer of its own goes first");
}

/// The answer that a name is an alias of another, in wire form.
fn alias(target: &[u8]) -> Vec<u8> {
    [b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0", &[target.len() as u8][..], target].concat()
}

#[test]
fn a_kept_answer_that_led_to_a_zone_of_ours_is_of_no_use_when_that_is_gone() {
    for (target, is_ours) in [(&b"\x01a\x07example\0"[..], true), (b"\x01a\x04gone\0", false)] {
        let cache = Arc::new(Cache::new(1 << 20));
        let kept = (0, [1, 0, 0], &alias(target)[..]);
        keep_onward(&cache, Type::A, Kind::Positive, kept, Some(Onward::Here));
        let mut engine = engine_with(cache);
        let (outcome, reply) =
            ask(&mut engine, &query(1, RECURSION_DESIRED, "www.example.net", Type::A));
        assert_eq!(reply.map(|reply| reply.records.len()), is_ours.then_some(2));
        assert_eq!(matches!(outcome, Outcome::Deferred(_)), !is_ours);
        let (_, reply) = ask(&mut engine, &query(1, 0, "www.example.net", Type::A));
        let rcode = if is_ours { Rcode::NOERROR } else { Rcode::REFUSED };
        assert_eq!(reply.unwrap().rcode(), rcode, "without RD");
    }
}

#[test]
fn an_answer_that_was_fetched_before_a_zone_of_ours_went_is_a_failure() {
    for (target, expected) in [
        (&b"\x01a\x07example\0"[..], (Rcode::NOERROR, 2)),
        (b"\x01a\x04gone\0", (Rcode::SERVFAIL, 1)),
    ] {
        let query = query(1, RECURSION_DESIRED, "www.example.net", Type::A);
        let body = alias(target);
        let fetched = fetched(Rcode::NOERROR, ([1, 0, 0], &body), Reason::Stale);
        let fetched = UpstreamAnswer { goes_on: true, ..fetched };
        let reply = resume(&mut engine(), &query, &fetched);
        assert_eq!((reply.rcode(), reply.records.len()), expected);
    }
}

#[test]
fn a_chain_through_other_servers_and_back_ends_where_any_chain_does() {
    let query = query(1, RECURSION_DESIRED, "c1.example", Type::A);
    for (target, records) in [(&b"\x05alias\x07example\0"[..], 16), (b"\x01a\x07example\0", 16)] {
        let body = alias(target);
        let fetched = fetched(Rcode::NOERROR, ([1, 0, 0], &body), Reason::Forwarded);
        let name = b"\x03www\x07example\x03net\0";
        let reply =
            resume(&mut engine(), &query, &UpstreamAnswer { name, goes_on: true, ..fetched });
        assert_eq!((reply.rcode(), reply.records.len()), (Rcode::NOERROR, records));
    }
}

/// The bits of a header that are not its codes, as dig names them.
fn bits(flags: u16) -> String {
    let names = [(0x0400, "aa"), (0x0200, "tc"), (0x0100, "rd"), (0x0080, "ra"), (0x0040, "z")];
    let names = names.iter().chain(&[(0x0020, "ad"), (0x0010, "cd")]);
    names.filter(|(bit, _)| flags & bit != 0).map(|(_, name)| *name).collect::<Vec<_>>().join(" ")
}

#[test]
fn header_bits_are_right_whatever_becomes_of_a_query() {
    const RD: u16 = RECURSION_DESIRED;
    const CD: u16 = 0x0010;
    const AD: u16 = 0x0020;
    let cache = Arc::new(Cache::new(1 << 20));
    let name = |text: &str| LookupName::new(text.parse::<Name>().unwrap().as_wire(), SEED);
    let store = |text: &str, ttl_secs| {
        let name = name(text);
        let answer = Answer {
            kind: Kind::Positive,
            flags: 0,
            onward: None,
            ede: None,
            counts: [1, 0, 0],
            body: BODY,
        };
        let lifetime = Lifetime { now_secs: 0, ttl_secs, stale_secs: 3600 };
        cache.insert(&key(&name, Type::A), &answer, lifetime).unwrap();
    };
    store("hit.test", 3600);
    store("stale.test", 1);
    let failure = Failure { flags: Rcode::SERVFAIL.0, ede: None, text: b"" };
    for text in ["stale.test", "failed.test"] {
        let backoff = zonda_cache::policy::Limits { secs_min: 60, secs_max: 60 };
        cache.insert_failure(&key(&name(text), Type::A), failure, backoff, 10);
    }
    let mut engine = engine_with(cache);
    let large = BODY.repeat(100);
    let now = Now::new(10_000_000_000, 10);
    for (asked, flags, rcode, expected) in [
        ("hit.test", RD, Rcode::NOERROR, "rd ra"),
        ("hit.test", RD | AD, Rcode::NOERROR, "rd ra"),
        ("hit.test", 0, Rcode::NOERROR, "ra"),
        ("stale.test", RD, Rcode::NOERROR, "rd ra"),
        ("failed.test", RD, Rcode::SERVFAIL, "rd ra"),
        ("miss.test", RD, Rcode::NOERROR, "rd ra"),
        ("miss.test", RD | CD, Rcode::NOERROR, "rd ra cd"),
        ("miss.test", RD | CD | AD, Rcode::NOERROR, "rd ra cd"),
        ("miss.test", 0, Rcode::REFUSED, "ra"),
        ("large.test", RD, Rcode::NOERROR, "tc rd ra"),
        ("failing.test", RD | CD, Rcode::SERVFAIL, "rd ra cd"),
        ("a.example", RD, Rcode::NOERROR, "aa rd ra"),
        ("a.example", CD | AD, Rcode::NOERROR, "aa ra cd"),
        ("no.example", RD, Rcode::NXDOMAIN, "aa rd ra"),
        ("sub.example", RD, Rcode::NOERROR, "rd ra"),
        ("x.sub.example", 0, Rcode::NOERROR, "ra"),
    ] {
        let query = query(1, flags, asked, Type::A);
        let mut buffer = [0; 1232];
        buffer[..query.len()].copy_from_slice(&query);
        let octets = match engine.answer(now, &peer(), &mut buffer, query.len()) {
            Outcome::Deferred(_) => {
                let (code, body) = match asked {
                    "failing.test" => (Rcode::SERVFAIL, ([0; 3], &[][..])),
                    "large.test" => (Rcode::NOERROR, ([100, 0, 0], &large[..])),
                    _ => (Rcode::NOERROR, ([1, 0, 0], BODY)),
                };
                let fetched = fetched(code, body, Reason::Forwarded);
                let (peer, history, len) = (&peer(), &History::default(), query.len());
                let waiting =
                    DeferredQuery { query: None, peer, history, buffer: &mut buffer, len };
                engine.resume(now, waiting, Resumption::Upstream(&fetched)).reply_bytes()
            }
            outcome => outcome.reply_bytes(),
        };
        let reply = Message::parse(&buffer[..octets]).unwrap();
        let told = (reply.rcode(), bits(reply.flags));
        assert_eq!(told, (rcode, expected.to_owned()), "{asked} {}", bits(flags));
    }
}

#[test]
fn recursion_is_not_available_to_strangers_nor_where_none_is_configured() {
    let apex: Name = "example".parse().unwrap();
    let text = b"$TTL 60\n@ SOA a a 1 2 3 4 5\n@ NS a\na A 192.0.2.1\n";
    let (records, _) = file::read_text(text, Path::new("zone"), &apex, &file::Options::default());
    let data = Arc::new(build(&apex, &records, SEED).unwrap());
    let own = AccessList { rules: Vec::new(), otherwise: Access::Refuse, ..AccessList::open() };
    for (forwarded, access, expected) in [
        (Some("."), None, "aa rd ra"),
        (Some("."), Some(own), "aa rd"),
        (Some("net"), None, "aa rd"),
        (None, None, "aa rd"),
    ] {
        let data = Source::Data(Arc::clone(&data));
        let mut entries = vec![Arc::new(ZoneEntry::new(apex.clone(), data, None, 0))];
        if let Some(name) = forwarded {
            let cache = Arc::new(Cache::new(1 << 20));
            let forward = Forward {
                number: 7,
                cache,
                options: None,
                nxdomain_cut: true,
                overlays: Vec::new(),
            };
            let source = Source::Forward(Arc::new(forward));
            let (apex, access) = (name.parse().unwrap(), access.map(Arc::new));
            entries.push(Arc::new(ZoneEntry::new(apex, source, access, 1)));
        }
        let zones = ZoneTable::new(entries, SEED);
        let snapshot = Snapshot::of(zones);
        let mut engine = Engine::new(Arc::new(ArcSwap::from_pointee(snapshot)), Arc::default());
        for _ in 0..3 {
            let (_, reply) = ask(&mut engine, &query(1, RECURSION_DESIRED, "a.example", Type::A));
            assert_eq!(bits(reply.unwrap().flags), expected, "{forwarded:?}");
        }
    }
}
