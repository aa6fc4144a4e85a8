//! Queries for names that other servers hold: deferred, then resumed.
#![allow(clippy::unwrap_used)]

use arc_swap::ArcSwap;
use std::path::Path;
use std::sync::Arc;
use zonda_cache::{Answer, Cache, Failure, Key, Kind, Lifetime, Policy};
use zonda_engine::zones::{Forward, Source, ZoneEntry, ZoneTable};
use zonda_engine::{
    Deferral, Engine, Fetched, Now, Outcome, Peer, Reason, Settings, Snapshot, Transport,
};
use zonda_wire::message::Message;
use zonda_wire::{Class, Name, Rcode, Type};
use zonda_zone::{HashSeed, LookupName, build, file};

const SEED: HashSeed = HashSeed(1);
const NOW: Now = Now { monotonic_nanos: 1, unix_secs: 1 };
/// RD, as clients set it that want recursion.
const RECURSION_DESIRED: u16 = 0x0100;

/// Holds `example` itself, and asks others for all else.
fn engine() -> Engine {
    engine_with(Arc::new(Cache::new(1 << 20)))
}

/// The same with answers of others that are kept.
fn engine_with(cache: Arc<Cache>) -> Engine {
    let forward = Arc::new(Forward { number: 7, cache });
    let apex: Name = "example".parse().unwrap();
    let (records, _) = file::read_text(
        b"$TTL 60\n@ SOA a a 1 2 3 4 5\n@ NS a\na A 192.0.2.1\n",
        Path::new("zone"),
        &apex,
        &file::Options::default(),
    );
    let data = Source::Data(Arc::new(build(&apex, &records, SEED).unwrap()));
    let entries = [(apex, data), (Name::root(), Source::Forward(forward))];
    let entry =
        |(number, (apex, source))| Arc::new(ZoneEntry { apex, source, access: None, number });
    let zones = ZoneTable::new((0..).zip(entries).map(entry).collect(), SEED);
    let snapshot = Snapshot { zones, settings: Settings::default(), generation: 1 };
    Engine::new(Arc::new(ArcSwap::from_pointee(snapshot)), Arc::default())
}

/// A client over UDP.
fn peer() -> Peer {
    Peer { address: ([127, 0, 0, 1], 5300).into(), transport: Transport::Udp, listener: 0 }
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
fn resume(engine: &mut Engine, query: &[u8], fetched: &Fetched<'_>) -> Message {
    let mut buffer = [0; 1232];
    buffer[..query.len()].copy_from_slice(query);
    let octets = engine.resume(NOW, &peer(), &mut buffer, query.len(), fetched);
    Message::parse(&buffer[..octets]).unwrap()
}

/// A body with one A record of the question's name.
const BODY: &[u8] = b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x07";

#[test]
fn a_name_that_others_hold_is_deferred_under_its_hash() {
    let mut engine = engine();
    let mut hash_of = |id, name, qtype| {
        let (outcome, _) = ask(&mut engine, &query(id, RECURSION_DESIRED, name, qtype));
        let Outcome::Deferred(Deferral { forward: 7, name_hash }) = outcome else {
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
    let fetched = Fetched {
        rcode: Rcode::NOERROR,
        is_authentic: false,
        counts: [1, 0, 0],
        body: BODY,
        reason: Reason::Forwarded,
    };
    let reply = resume(&mut engine(), &query, &fetched);
    assert_eq!((reply.id, reply.rcode()), (4711, Rcode::NOERROR));
    assert_eq!(reply.flags & 0x07f0, 0x0180, "RD and RA, neither AA, TC, AD nor CD");
    assert_eq!(reply.questions[0].name.to_string(), "WWW.example.net.");
    assert_eq!(reply.records[0].owner, reply.questions[0].name);
    assert_eq!(reply.records[0].rdata, [192, 0, 2, 7]);
    assert!(reply.opt.is_some());
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
        let fetched = Fetched {
            rcode: Rcode::NOERROR,
            is_authentic,
            counts: [1, 0, 0],
            body: BODY,
            reason: Reason::Forwarded,
        };
        let reply = resume(&mut engine(), &query, &fetched);
        assert_eq!(reply.flags & AUTHENTIC, told);
    }
}

#[test]
fn an_answer_that_does_not_fit_is_truncated() {
    let query = query(1, RECURSION_DESIRED, "www.example.net", Type::A);
    let body = BODY.repeat(100);
    let fetched = Fetched {
        rcode: Rcode::NOERROR,
        is_authentic: false,
        counts: [100, 0, 0],
        body: &body,
        reason: Reason::Forwarded,
    };
    let reply = resume(&mut engine(), &query, &fetched);
    assert!(reply.has(0x0200));
    assert!(reply.records.is_empty() && reply.opt.is_some());
}

#[test]
fn a_failure_says_why() {
    let query = query(1, RECURSION_DESIRED, "www.example.net", Type::A);
    let fetched = Fetched {
        rcode: Rcode::SERVFAIL,
        is_authentic: false,
        counts: [0; 3],
        body: &[],
        reason: Reason::UpstreamTimeout,
    };
    let reply = resume(&mut engine(), &query, &fetched);
    assert_eq!(reply.rcode(), Rcode::SERVFAIL);
    let no_reachable_authority = (15, vec![0, 22]); // rfc8914#4.23
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
    }
}

/// Keeps an answer that was fetched at the second 0 and lives for a minute.
fn keep(cache: &Cache, qtype: Type, kind: Kind, (flags, counts, body): (u16, [u16; 3], &[u8])) {
    let answer = Answer { kind, flags, ede: None, counts, body };
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
    let now = Now { monotonic_nanos: 10_000_000_000, unix_secs: 10 };
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
    let later = Now { monotonic_nanos: 60_000_000_000, unix_secs: 60 };
    assert!(is_deferred(&mut engine, later, &query(1, RECURSION_DESIRED, name, Type::A)));
}

#[test]
fn nobody_is_asked_again_a_moment_after_a_failure() {
    let cache = Arc::new(Cache::new(1 << 20));
    keep(&cache, Type::A, Kind::Positive, (0, [1, 0, 0], BODY));
    let failure = Failure { flags: Rcode::SERVFAIL.0, ede: None };
    for qtype in [Type::A, Type::TXT] {
        let limits = Policy::default().failure;
        cache.insert_failure(&key(&kept_name(), qtype), failure, limits, 100);
    }
    let mut engine = engine_with(cache);
    let mut ask_at = |secs: u32, qtype| {
        let query = query(1, RECURSION_DESIRED, "www.example.net", qtype);
        let mut buffer = [0; 1232];
        buffer[..query.len()].copy_from_slice(&query);
        let now = Now { monotonic_nanos: u64::from(secs) * 1_000_000_000, unix_secs: secs };
        let octets = engine.answer(now, &peer(), &mut buffer, query.len()).reply_bytes();
        (octets > 0).then(|| Message::parse(&buffer[..octets]).unwrap())
    };
    let stale = ask_at(100, Type::A).unwrap();
    assert_eq!((stale.rcode(), stale.records[0].ttl), (Rcode::NOERROR, 30));
    assert_eq!(stale.opt.unwrap().options, [(15, vec![0, 3])]);
    let failed = ask_at(100, Type::TXT).unwrap();
    assert_eq!(failed.rcode(), Rcode::SERVFAIL);
    assert_eq!(failed.opt.unwrap().options, [(15, vec![0, 13])]);
    assert!(ask_at(101, Type::A).is_none() && ask_at(101, Type::TXT).is_none());
}
