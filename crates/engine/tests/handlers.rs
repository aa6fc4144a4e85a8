//! The user's code between queries and zones, without sockets.
#![allow(clippy::unwrap_used)]

use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use zonda_cache::{Answer, Kind, Lifetime};
use zonda_engine::code::{
    Cache, Elsewhere, Ending, Handler, HandlerQuery, HandlerReply, Handlers, History, NO_HANDLER,
    Route, Stage, Vary,
};
use zonda_engine::counters::Counter;
use zonda_engine::zones::{Forward, Source, ZoneEntry, ZoneTable};
use zonda_engine::{
    AnswerBelow, Deferral, DeferredQuery, Engine, HandlerOutcome, NotReused, Now, Outcome, Peer,
    Reason, Resumption, Reuse, Settings, Snapshot, To, Transport, UpstreamAnswer,
    gate::rate::{RateSettings, RateTable},
};
use zonda_wire::message::Message;
use zonda_wire::{Class, Ede, Name, Rcode, Section, Type};
use zonda_zone::{HashSeed, LookupName, build, file};

const SEED: HashSeed = HashSeed(1);
const NOW: Now = Now::new(1, 1);
const AA: u16 = 0x0400;
const TC: u16 = 0x0200;

/// Holds `example` itself, with this code in front of it.
fn engine(
    routes: Vec<Route<Handler>>,
    middleware: Vec<Arc<dyn Stage>>,
    runtime: Option<u16>,
) -> Engine {
    engine_with(Handlers::new(routes, middleware, runtime, SEED))
}

/// Makes an engine with these handlers.
fn engine_with(handlers: Handlers) -> Engine {
    let text = "$TTL 60\n@ SOA a a 1 2 3 4 5\n@ NS a\na A 192.0.2.1\nb A 192.0.2.2\n";
    engine_over(vec![("example", data("example", text))], handlers)
}

/// The data of a zone.
fn data(apex: &str, text: &str) -> Source {
    let (apex, options) = (apex.parse().unwrap(), file::Options::default());
    let (records, _) = file::read_text(text.as_bytes(), Path::new("zone"), &apex, &options);
    Source::Data(Arc::new(build(&apex, &records, SEED).unwrap()))
}

/// Holds these zones, with this code in front of them.
fn engine_over(zones: Vec<(&str, Source)>, handlers: Handlers) -> Engine {
    engine_set(zones, handlers, Settings::default())
}

/// Makes an engine with settings.
fn engine_set(zones: Vec<(&str, Source)>, handlers: Handlers, settings: Settings) -> Engine {
    let snapshot = snapshot(zones, handlers, settings);
    Engine::new(Arc::new(ArcSwap::from_pointee(snapshot)), Arc::default())
}

/// These zones, with this code in front of them, and settings.
fn snapshot(zones: Vec<(&str, Source)>, handlers: Handlers, settings: Settings) -> Snapshot {
    let entry = |(number, (apex, source)): (u32, (&str, Source))| {
        let apex = apex.parse().unwrap();
        Arc::new(ZoneEntry::new(apex, source, None, number))
    };
    let zones = ZoneTable::new((0..).zip(zones).map(entry).collect(), SEED);
    let handlers = Some(Arc::new(handlers));
    Snapshot { handlers, settings: Arc::new(settings), ..Snapshot::of(zones) }
}

/// A route to code in the worker.
fn here(
    pattern: &str,
    code: impl Fn(&HandlerQuery<'_>, &mut HandlerReply) + Send + Sync + 'static,
) -> Route<Handler> {
    Route { pattern: pattern.parse().unwrap(), handler: Handler::Here(Arc::new(code)) }
}

/// A route to code elsewhere.
fn elsewhere(pattern: &str, handler: u32) -> Route<Handler> {
    let handler = Handler::Elsewhere(Elsewhere { runtime: 3, handler });
    Route { pattern: pattern.parse().unwrap(), handler }
}

/// A client.
fn peer(transport: Transport) -> Peer {
    Peer::new(([192, 0, 2, 99], 5300).into(), transport, 0)
}

/// The octets of a query, with an OPT record.
fn query(name: &str, qtype: Type) -> Vec<u8> {
    let name: Name = name.parse().unwrap();
    let header = [7_u16, 0x0100, 1, 0, 0, 1].map(u16::to_be_bytes).concat();
    let opt = [0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0];
    [&header, name.as_wire(), &qtype.0.to_be_bytes(), &[0, 1], &opt].concat()
}

/// What becomes of a query over a transport.
fn ask_over(transport: Transport, engine: &mut Engine, name: &str, qtype: Type) -> String {
    let (query, mut buffer) = (query(name, qtype), vec![0; 65_535]);
    buffer[..query.len()].copy_from_slice(&query);
    let outcome = engine.answer(NOW, &peer(transport), &mut buffer, query.len());
    told(outcome, &buffer)
}

/// What becomes of a query over UDP.
fn ask(engine: &mut Engine, name: &str, qtype: Type) -> String {
    ask_over(Transport::Udp, engine, name, qtype)
}

/// What becomes of a query that code number 5 elsewhere has been asked for.
fn supply(engine: &mut Engine, name: &str, qtype: Type, supplied: HandlerOutcome<'_>) -> String {
    let (query, mut buffer) = (query(name, qtype), vec![0; 65_535]);
    buffer[..query.len()].copy_from_slice(&query);
    let peer = peer(Transport::Udp);
    let code = Some(Elsewhere { runtime: 3, handler: 5 });
    let history = History { code, ..History::default() };
    let (peer, history, len) = (&peer, &history, query.len());
    let waiting = DeferredQuery { query: None, peer, history, buffer: &mut buffer, len };
    let outcome = engine.resume(NOW, waiting, Resumption::Code(supplied));
    told(outcome, &buffer)
}

/// An outcome as text: flags, response code, records by section, extended errors.
fn told(outcome: Outcome, buffer: &[u8]) -> String {
    let len = match outcome {
        Outcome::Reply(len) => len,
        Outcome::Silence => return "silence".into(),
        Outcome::Deferred(deferral) => match deferral.to {
            To::Code(to) => return format!("deferred to {} of {}", to.handler, to.runtime),
            To::Forward(_) => return "deferred to a forwarder".into(),
            To::Transfer => return "transfer".into(),
            To::Update | To::Relay => return "update".into(),
        },
    };
    let reply = Message::parse(&buffer[..len]).unwrap();
    let mut text = Rcode(reply.flags & 0xf).to_string();
    text += if reply.has(AA) { " aa" } else { "" };
    text += if reply.has(TC) { " tc" } else { "" };
    for record in &reply.records {
        text += &format!(" {:?}:{}{}", record.section, record.owner, record.rtype);
        text += &format!("={}", record.rdata.iter().map(|it| it.to_string()).collect::<String>());
    }
    for (code, data) in reply.opt.iter().flat_map(|opt| &opt.options) {
        assert_eq!(*code, 15);
        text += &format!(" ({})", String::from_utf8_lossy(&data[2..]));
    }
    text
}

/// Adds an address record of the name asked for.
fn push(draft: &mut HandlerReply, section: Section, last: u8) {
    draft.push(section, &[], (Type::A, 60), &[192, 0, 2, last]).unwrap();
    draft.reply(Rcode::NOERROR);
}

#[test]
fn records_stand_in_their_sections_in_whatever_order_they_were_added() {
    let code = |_: &HandlerQuery<'_>, draft: &mut HandlerReply| {
        for (section, last) in
            [(Section::Additional, 3), (Section::Authority, 2), (Section::Answer, 1)]
        {
            push(draft, section, last);
        }
    };
    let mut engine = engine(vec![here("*", code)], Vec::new(), None);
    assert_eq!(
        ask(&mut engine, "X.test", Type::A),
        "NOERROR aa Answer:X.test.A=192021 Authority:X.test.A=192022 Additional:X.test.A=192023"
    );
    assert_eq!(
        ask(&mut engine, ".", Type::A),
        "NOERROR aa Answer:.A=192021 Authority:.A=192022 Additional:.A=192023"
    );
}

#[test]
fn an_answer_too_large_for_udp_is_truncated_whole_and_comes_over_tcp() {
    let code = |_: &HandlerQuery<'_>, draft: &mut HandlerReply| {
        for last in 0..200 {
            push(draft, Section::Answer, last);
        }
    };
    let mut engine = engine(vec![here("*", code)], Vec::new(), None);
    assert_eq!(ask(&mut engine, "x.test", Type::A), "NOERROR aa tc");
    let over_tcp = ask_over(Transport::Tcp, &mut engine, "x.test", Type::A);
    assert_eq!(over_tcp.matches("Answer").count(), 200);
}

#[test]
fn names_that_code_answers_are_counted_one_by_one_and_those_it_denies_by_the_zone() {
    let code = |asked: &HandlerQuery<'_>, draft: &mut HandlerReply| {
        if asked.name().as_wire().starts_with(b"\x04miss") {
            (draft.rcode, draft.ending) = (Rcode::NXDOMAIN, Ending::Reply);
        } else {
            push(draft, Section::Answer, 1);
        }
    };
    let rate = RateSettings::new(20, 1, 0, (24, 56), Vec::new(), RateTable::new(4096));
    let settings = Settings { rate: Some(rate), ..Settings::default() };
    let routes = vec![here("*.example", code)];
    let mut engine = engine_set(
        vec![("example", data("example", "$TTL 60\n@ SOA a a 1 2 3 4 5\n@ NS a.test.\n"))],
        Handlers::new(routes, Vec::new(), None, SEED),
        settings,
    );
    let mut answered = |name: fn(usize) -> String| {
        let replies = (0..100).map(|number| ask(&mut engine, &name(number), Type::A));
        replies.filter(|reply| reply != "silence").count()
    };
    assert_eq!(answered(|number| format!("name{number}.example")), 100);
    assert_eq!(answered(|_| "www.example".to_owned()), 20);
    assert_eq!(answered(|number| format!("miss.name{number}.example")), 20);
}

#[test]
fn what_does_not_fit_of_the_additional_section_is_left_out() {
    let code = |_: &HandlerQuery<'_>, draft: &mut HandlerReply| {
        push(draft, Section::Answer, 1);
        for last in 0..200 {
            push(draft, Section::Additional, last);
        }
    };
    let mut engine = engine(vec![here("*", code)], Vec::new(), None);
    let reply = ask(&mut engine, "x.test", Type::A);
    assert!(reply.starts_with("NOERROR aa Answer"), "{reply}");
    assert!((50..100).contains(&reply.matches("Additional").count()), "{reply}");
}

#[test]
fn code_that_passes_on_leaves_the_query_to_the_zones() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let code = move |_: &HandlerQuery<'_>, _: &mut HandlerReply| {
        _ = counted.fetch_add(1, Ordering::Relaxed)
    };
    let mut engine = engine(vec![here("a.example", code)], Vec::new(), None);
    for _ in 0..3 {
        // Also when the zone's answer is among those that are kept.
        assert_eq!(ask(&mut engine, "a.example", Type::A), "NOERROR aa Answer:a.example.A=192021");
    }
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    assert_eq!(ask(&mut engine, "b.example", Type::A), "NOERROR aa Answer:b.example.A=192022");
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[test]
fn a_query_for_code_elsewhere_is_deferred_and_answered_with_what_that_supplies() {
    let mut engine = engine(vec![elsewhere("a.example", 5)], Vec::new(), None);
    assert_eq!(ask(&mut engine, "a.example", Type::A), "deferred to 5 of 3");
    let mut draft = HandlerReply::default();
    let of = |draft: &HandlerReply, engine: &mut Engine| {
        supply(engine, "a.example", Type::A, HandlerOutcome::Reply(draft))
    };
    assert_eq!(of(&draft, &mut engine), "NOERROR aa Answer:a.example.A=192021"); // the zone's
    push(&mut draft, Section::Answer, 7);
    assert_eq!(of(&draft, &mut engine), "NOERROR aa Answer:a.example.A=192027");
    draft.refused();
    draft.clear_records();
    assert_eq!(of(&draft, &mut engine), "REFUSED");
    draft.ending = Ending::Drop;
    assert_eq!(of(&draft, &mut engine), "silence");
    let late = HandlerOutcome::Failed(Reason::HandlerTimeout);
    assert_eq!(
        supply(&mut engine, "a.example", Type::A, late),
        "SERVFAIL (the code that answers for this name did not answer in time)"
    );
}

#[test]
fn every_query_goes_to_a_runtime_that_has_middleware() {
    let mut engine = engine(vec![elsewhere("a.example", 5)], Vec::new(), Some(3));
    assert_eq!(ask(&mut engine, "a.example", Type::A), "deferred to 5 of 3");
    assert_eq!(ask(&mut engine, "b.example", Type::A), format!("deferred to {NO_HANDLER} of 3"));
    let passed_on = HandlerOutcome::Reply(&HandlerReply::default());
    assert_eq!(
        supply(&mut engine, "b.example", Type::A, passed_on),
        "NOERROR aa Answer:b.example.A=192022"
    );
}

/// Middleware that adds a record to every reply, or panics.
struct Adds(u8);

impl Stage for Adds {
    fn after(&self, _: &HandlerQuery<'_>, draft: &mut HandlerReply) {
        assert!(self.0 < 200, "told to");
        push(draft, Section::Additional, self.0);
    }
}

#[test]
fn replies_pass_middleware_in_the_opposite_order_each_time_they_are_given() {
    let middleware: Vec<Arc<dyn Stage>> = vec![Arc::new(Adds(8)), Arc::new(Adds(9))];
    let mut engine = engine(Vec::new(), middleware, None);
    for _ in 0..3 {
        assert_eq!(
            ask(&mut engine, "a.example", Type::A),
            "NOERROR aa Answer:a.example.A=192021 Additional:a.example.A=192029 \
             Additional:a.example.A=192028"
        );
    }
}

/// Middleware that tags queries and puts the tags, and how long a query has waited, into replies.
struct Tells;

impl Stage for Tells {
    fn before(&self, asked: &HandlerQuery<'_>, draft: &mut HandlerReply) {
        draft.tag("type", asked.qtype());
    }

    fn after(&self, asked: &HandlerQuery<'_>, draft: &mut HandlerReply) {
        let tags: Vec<String> = draft.tags().map(|(key, value)| format!("{key}={value}")).collect();
        let text = format!("{} {}", tags.join(" "), asked.waited().as_secs());
        draft.extended_error(Ede::OTHER, &text);
    }
}

#[test]
fn tags_are_the_querys_whoever_notes_them_and_also_when_it_has_to_wait() {
    let tagged = |_: &HandlerQuery<'_>, draft: &mut HandlerReply| draft.tag("by", "the worker");
    let routes = vec![here("a.example", tagged), elsewhere("b.example", 1)];
    let mut engine = engine(routes, vec![Arc::new(Tells)], None);
    for _ in 0..2 {
        let reply = ask(&mut engine, "a.example", Type::A);
        assert_eq!(reply, "NOERROR aa Answer:a.example.A=192021 (type=A by=the worker 0)");
    }
    let (query, mut buffer) = (query("b.example", Type::A), vec![0; 65_535]);
    let mut given = HandlerReply::default();
    given.tag("by", "code elsewhere");
    buffer[..query.len()].copy_from_slice(&query);
    let peer = peer(Transport::Udp);
    let outcome = engine.answer(NOW, &peer, &mut buffer, query.len());
    let Outcome::Deferred(deferral) = outcome else { panic!("{outcome:?}") };
    let other = ask(&mut engine, "c.example", Type::MX);
    assert!(other.ends_with("(type=MX 0)"), "a query has none of another's tags: {other}");
    let later = Now::new(NOW.monotonic_nanos + 3_000_000_000, NOW.unix_secs);
    let history = &deferral.history;
    let supplied = HandlerOutcome::Reply(&given);
    let (peer, len) = (&peer, query.len());
    let waiting = DeferredQuery { query: None, peer, history, buffer: &mut buffer, len };
    let outcome = engine.resume(later, waiting, Resumption::Code(supplied));
    let reply = "NOERROR aa Answer:b.example.A=192022 (type=A by=code elsewhere 3)";
    assert_eq!(told(outcome, &buffer), reply);
}

#[test]
fn a_panic_in_middleware_is_servfail_without_the_records_of_the_answer() {
    let middleware: Vec<Arc<dyn Stage>> = vec![Arc::new(Adds(200))];
    let mut engine = engine(Vec::new(), middleware, None);
    assert_eq!(
        ask(&mut engine, "a.example", Type::A),
        "SERVFAIL (the code that answers for this name failed)"
    );
}

#[test]
fn a_kept_answer_still_says_which_error_it_has_but_not_its_text() {
    let code = |_: &HandlerQuery<'_>, draft: &mut HandlerReply| {
        draft.nxdomain();
        draft.extended_error(Ede::BLOCKED, "on the list");
        draft.cache(10, Vary::Nothing);
    };
    let mut engine = engine(vec![here("*", code)], Vec::new(), None);
    let mut error = || {
        let (query, mut buffer) = (query("x.test", Type::A), vec![0; 4096]);
        buffer[..query.len()].copy_from_slice(&query);
        let outcome = engine.answer(NOW, &peer(Transport::Udp), &mut buffer, query.len());
        let Outcome::Reply(len) = outcome else { panic!("{outcome:?}") };
        let reply = Message::parse(&buffer[..len]).unwrap();
        assert_eq!(reply.rcode(), Rcode::NXDOMAIN);
        reply.opt.unwrap().options
    };
    assert_eq!(error(), [(15, b"\0\x0fon the list".to_vec())]);
    assert_eq!(error(), [(15, b"\0\x0f".to_vec())]);
}

#[test]
fn a_kept_answer_ages_and_is_asked_for_again_when_it_has_expired() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let code = move |_: &HandlerQuery<'_>, draft: &mut HandlerReply| {
        counted.fetch_add(1, Ordering::Relaxed);
        push(draft, Section::Answer, 1);
        draft.cache(10, Vary::Nothing);
    };
    let mut engine = engine(vec![here("*", code)], Vec::new(), None);
    let mut ask_at = |secs: u64| {
        let (query, mut buffer) = (query("x.test", Type::A), vec![0; 4096]);
        buffer[..query.len()].copy_from_slice(&query);
        let now = Now::new(secs * 1_000_000_000, 1);
        let outcome = engine.answer(now, &peer(Transport::Udp), &mut buffer, query.len());
        let Outcome::Reply(len) = outcome else { panic!("{outcome:?}") };
        let reply = Message::parse(&buffer[..len]).unwrap();
        (reply.records[0].ttl, reply.has(AA), calls.load(Ordering::Relaxed))
    };
    assert_eq!(ask_at(100), (60, true, 1));
    assert_eq!(ask_at(104), (56, true, 1));
    assert_eq!(ask_at(111), (60, true, 2));
}

/// A cache that counts what it is told.
#[derive(Default)]
struct Notes {
    kept: Mutex<HashMap<Vec<u8>, (u64, HandlerReply)>>,
    told: AtomicU32,
}

impl Cache for Notes {
    fn lookup(&self, asked: &HandlerQuery<'_>, draft: &mut HandlerReply) {
        assert_ne!(asked.name().label(0), b"cursed", "told to");
        if let Some((since, kept)) = self.kept.lock().unwrap().get(&asked.cache_key()) {
            let age = asked.now().monotonic_nanos / 1_000_000_000 - since;
            draft.copy_aged(kept, age as u32);
        }
    }

    fn insert(&self, asked: &HandlerQuery<'_>, draft: &HandlerReply) {
        assert_ne!(asked.name().label(0), b"bad", "told to");
        self.told.fetch_add(1, Ordering::Relaxed);
        let since = asked.now().monotonic_nanos / 1_000_000_000;
        self.kept.lock().unwrap().insert(asked.cache_key(), (since, draft.clone()));
    }
}

/// An engine with a cache of the user's, and that cache.
fn engine_with_cache(
    routes: Vec<Route<Handler>>,
    middleware: Vec<Arc<dyn Stage>>,
    runtime: Option<u16>,
) -> (Engine, Arc<Notes>) {
    let notes = Arc::<Notes>::default();
    let cache: Arc<dyn Cache> = Arc::clone(&notes) as _;
    let handlers = Handlers::new(routes, middleware, runtime, SEED).with_cache(Some(cache));
    (engine_with(handlers), notes)
}

#[test]
fn a_cache_of_the_users_answers_instead_of_code_here_and_elsewhere() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let code = move |_: &HandlerQuery<'_>, draft: &mut HandlerReply| {
        push(draft, Section::Answer, counted.fetch_add(1, Ordering::Relaxed) as u8);
        draft.extended_error(Ede::OTHER, "made");
        draft.tag("made", "once");
    };
    let routes = vec![here("*.here.test", code), elsewhere("*.afar.test", 5)];
    let (mut engine, notes) = engine_with_cache(routes, vec![Arc::new(Adds(8))], None);
    let first = ask(&mut engine, "a.here.test", Type::A);
    assert!(first.starts_with("NOERROR aa Answer:a.here.test.A=192020 Additional:"), "{first}");
    assert_eq!(ask(&mut engine, "A.here.test", Type::A), first.replace("a.h", "A.h"));
    assert!(ask(&mut engine, "a.here.test", Type::TXT).contains("192021"), "another question");
    assert_eq!((calls.load(Ordering::Relaxed), notes.told.load(Ordering::Relaxed)), (2, 2));
    assert_eq!(ask(&mut engine, "b.afar.test", Type::A), "deferred to 5 of 3");
    let mut draft = HandlerReply::default();
    push(&mut draft, Section::Answer, 7);
    let reply = supply(&mut engine, "b.afar.test", Type::A, HandlerOutcome::Reply(&draft));
    assert_eq!(ask(&mut engine, "b.afar.test", Type::A), reply);
    // What zones say is theirs.
    assert!(ask(&mut engine, "a.example", Type::A).starts_with("NOERROR aa Answer:a.example"));
    assert_eq!(notes.told.load(Ordering::Relaxed), 3);
}

#[test]
fn what_a_cache_gives_again_has_aged_and_has_none_of_the_tags_of_who_asked_first() {
    let code = |_: &HandlerQuery<'_>, draft: &mut HandlerReply| {
        push(draft, Section::Answer, 1);
        draft.tag("made", "now");
        assert_eq!(draft.shortest_ttl_secs(), Some(60));
    };
    let (mut engine, _) = engine_with_cache(vec![here("*.test", code)], Vec::new(), None);
    let tags = Arc::<Mutex<Vec<usize>>>::default();
    let seen = Arc::clone(&tags);
    engine.add_observer(Box::new(move |event: &zonda_engine::Event<'_>| {
        seen.lock().unwrap().push(event.tags.iter().count());
    }));
    let ttls = [100, 104, 190].map(|secs: u64| {
        let (query, mut buffer) = (query("x.test", Type::A), vec![0; 4096]);
        buffer[..query.len()].copy_from_slice(&query);
        let now = Now::new(secs * 1_000_000_000, 1);
        let outcome = engine.answer(now, &peer(Transport::Udp), &mut buffer, query.len());
        let Outcome::Reply(len) = outcome else { panic!("{outcome:?}") };
        Message::parse(&buffer[..len]).unwrap().records[0].ttl
    });
    assert_eq!(ttls, [60, 56, 0]);
    assert_eq!(*tags.lock().unwrap(), [1, 0, 0]);
    let handled = engine.counters().reasons[Reason::Handled as usize].get();
    let cached = engine.counters().reasons[Reason::HandlerCached as usize].get();
    assert_eq!((handled, cached), (1, 2));
}

/// Middleware that answers one name itself.
struct Blocks;

impl Stage for Blocks {
    fn before(&self, asked: &HandlerQuery<'_>, draft: &mut HandlerReply) {
        if asked.name().label(0) == b"blocked" {
            draft.nxdomain();
        }
    }
}

#[test]
fn a_cache_is_not_told_what_holds_for_one_query_only() {
    let code = |asked: &HandlerQuery<'_>, draft: &mut HandlerReply| {
        push(draft, Section::Answer, 1);
        match asked.name().label(0) {
            b"panics" => panic!("a mistake"),
            b"fails" => draft.servfail("no database"),
            b"refuses" => draft.refused(),
            b"silent" => draft.drop(),
            b"passes" => draft.pass_on(),
            b"cut" => draft.flags |= TC,
            b"client" => _ = asked.client(),
            b"varies" => draft.cache(60, Vary::Client),
            b"varies-knowing" => {
                let _ = asked.client();
                draft.cache(60, Vary::Subnet);
            }
            _ => {}
        }
    };
    let routes = vec![here("*.test", code), elsewhere("*.afar", 5)];
    let (mut engine, notes) = engine_with_cache(routes, vec![Arc::new(Blocks)], None);
    let mut check = |label: &str, count: u32| {
        ask(&mut engine, &format!("{label}.test"), Type::A);
        assert_eq!(notes.told.load(Ordering::Relaxed), count, "{label}");
    };
    for label in ["panics", "fails", "refuses", "silent", "passes", "cut", "client", "blocked"] {
        check(label, 0);
    }
    check("varies", 0);
    check("varies-knowing", 0);
    check("plain", 1);
    supply(&mut engine, "a.afar", Type::A, HandlerOutcome::Failed(Reason::HandlerTimeout));
    supply(&mut engine, "a.afar", Type::A, HandlerOutcome::Reply(&HandlerReply::default()));
    let mut knowing = HandlerReply::default();
    knowing.saw_client = true;
    push(&mut knowing, Section::Answer, 1);
    supply(&mut engine, "a.afar", Type::A, HandlerOutcome::Reply(&knowing));
    assert_eq!(notes.told.load(Ordering::Relaxed), 1);
}

#[test]
fn a_reply_that_varies_by_client_is_reused_for_a_name_of_any_length() {
    let calls = Arc::<AtomicU32>::default();
    let count = Arc::clone(&calls);
    let code = move |_: &HandlerQuery<'_>, reply: &mut HandlerReply| {
        count.fetch_add(1, Ordering::Relaxed);
        push(reply, Section::Answer, 7);
        reply.cache(60, Vary::Client);
    };
    let mut engine = engine(vec![here("*.test", code)], Vec::new(), None);
    let long = format!("{}{}.test", format!("{}.", "a".repeat(61)).repeat(3), "b".repeat(60));
    for name in ["short.test", &long] {
        calls.store(0, Ordering::Relaxed);
        let first = ask(&mut engine, name, Type::A);
        assert_eq!(ask(&mut engine, name, Type::A), first);
        assert_eq!(calls.load(Ordering::Relaxed), 1, "{} octets", name.len());
    }
}

/// What an engine says about reusing its replies, each for a first query.
fn reuse_told(engine: &mut Engine, qtype: Type, name: &str) -> Option<Reuse> {
    let told = Arc::<Mutex<Option<Reuse>>>::default();
    let shared = Arc::clone(&told);
    engine.add_observer(Box::new(move |event: &zonda_engine::Event<'_>| {
        *shared.lock().unwrap() = event.reuse;
    }));
    ask(engine, name, qtype);
    *told.lock().unwrap()
}

#[test]
fn an_observer_is_told_whether_a_reply_is_reused_and_why_not() {
    let answers = |_: &HandlerQuery<'_>, reply: &mut HandlerReply| push(reply, Section::Answer, 7);
    let mut engine = engine(vec![here("*.test", answers)], Vec::new(), None);
    for (name, qtype, reuse) in [
        ("a.example", Type::A, Reuse::Hot(0)),
        ("a.example", Type::ANY, Reuse::No(NotReused::Any)),
        ("a.example", Type::AXFR, Reuse::No(NotReused::Gate)),
        ("a.test", Type::A, Reuse::No(NotReused::Code)),
        ("elsewhere.invalid", Type::A, Reuse::No(NotReused::NoSource)),
    ] {
        assert_eq!(reuse_told(&mut engine, qtype, name), Some(reuse), "{name} {qtype}");
    }
    for _ in 0..2 {
        ask(&mut engine, "a.example", Type::A);
    }
    let hot = Reuse::No(NotReused::HotAlready);
    assert_eq!(reuse_told(&mut engine, Type::A, "a.example"), Some(hot));
}

/// Middleware that reads every record of a reply, and leaves the reply as it is.
struct Reads;

impl Stage for Reads {
    fn after(&self, _: &HandlerQuery<'_>, reply: &mut HandlerReply) {
        assert_eq!(reply.records().filter(|(_, _, rtype, ..)| *rtype == Type::OPT).count(), 0);
    }
}

#[test]
fn a_reply_that_middleware_leaves_as_it_is_leaves_as_the_zone_has_written_it() {
    let text = "$TTL 60\n@ SOA a a 1 2 3 4 5\n@ NS a\n@ MX 1 A\na A 192.0.2.1\n\
                $GENERATE 1-100 many A 192.0.2.$\nsub NS ns.sub\nns.sub A 192.0.2.2\n\
                alias CNAME Sub2.EXAMPLE.\nsub2 CNAME a\n";
    let over = |middleware| {
        let handlers = Handlers::new(Vec::new(), middleware, None, SEED);
        engine_over(vec![("example", data("example", text))], handlers)
    };
    let (mut bare, mut read) = (over(Vec::new()), over(vec![Arc::new(Reads) as _]));
    let octets = |engine: &mut Engine, transport, name: &str, qtype| {
        let (query, mut buffer) = (query(name, qtype), vec![0; 65_535]);
        buffer[..query.len()].copy_from_slice(&query);
        let len = engine.answer(NOW, &peer(transport), &mut buffer, query.len()).reply_bytes();
        buffer[..len].to_vec()
    };
    for (name, qtype) in [
        ("example", Type::SOA),
        ("EXAMPLE", Type::MX),
        ("Alias.example", Type::A),
        ("many.example", Type::A),
        ("x.sub.example", Type::A),
        ("missing.example", Type::A),
        ("a.example", Type::TXT),
        ("example", Type::ANY),
    ] {
        for transport in [Transport::Udp, Transport::Tcp, Transport::Udp, Transport::Udp] {
            let expected = octets(&mut bare, transport, name, qtype);
            assert_eq!(octets(&mut read, transport, name, qtype), expected, "{name} {qtype}");
        }
    }
    let hot = Some(Reuse::No(NotReused::HotAlready));
    assert_eq!(reuse_told(&mut read, Type::MX, "EXAMPLE"), hot, "not even made once more");
}

#[test]
fn an_answer_of_code_that_was_replaced_meanwhile_is_given_and_not_kept() {
    for (handler, is_kept) in [(5, true), (6, false)] {
        let routes = vec![elsewhere("*.afar", handler)];
        let (mut engine, notes) = engine_with_cache(routes, Vec::new(), None);
        let mut draft = HandlerReply::default();
        push(&mut draft, Section::Answer, 7);
        draft.cache(60, Vary::Nothing);
        let reply = supply(&mut engine, "a.afar", Type::A, HandlerOutcome::Reply(&draft));
        assert_eq!(reply, "NOERROR aa Answer:a.afar.A=192027");
        assert_eq!(notes.told.load(Ordering::Relaxed), u32::from(is_kept));
        notes.kept.lock().unwrap().clear();
        let again = ask(&mut engine, "a.afar", Type::A);
        assert_eq!(again == reply, is_kept, "{again}");
    }
}

#[test]
fn a_panic_in_a_cache_is_servfail_and_one_beside_middleware_elsewhere_is_never_asked() {
    let code = |_: &HandlerQuery<'_>, draft: &mut HandlerReply| push(draft, Section::Answer, 1);
    let routes = || vec![here("*.test", code), elsewhere("*.afar", 5)];
    let (mut engine, _) = engine_with_cache(routes(), Vec::new(), None);
    let failed = "SERVFAIL (the code that answers for this name failed)";
    assert_eq!(ask(&mut engine, "cursed.test", Type::A), failed);
    assert_eq!(ask(&mut engine, "bad.test", Type::A), failed);
    let mut draft = HandlerReply::default();
    push(&mut draft, Section::Answer, 7);
    assert_eq!(supply(&mut engine, "bad.afar", Type::A, HandlerOutcome::Reply(&draft)), failed);
    let (mut engine, notes) = engine_with_cache(routes(), Vec::new(), Some(3));
    let passed_on = HandlerOutcome::Reply(&HandlerReply::default());
    let reply = supply(&mut engine, "cursed.test", Type::A, passed_on);
    assert_eq!(reply, "NOERROR aa Answer:cursed.test.A=192021");
    supply(&mut engine, "a.afar", Type::A, HandlerOutcome::Reply(&draft));
    assert_eq!(notes.told.load(Ordering::Relaxed), 0);
}

#[test]
fn what_code_asks_to_see_what_becomes_of_a_query_is_neither_counted_nor_told() {
    let mut engine = engine(vec![elsewhere("a.example", 5)], Vec::new(), Some(3));
    let told = Arc::<AtomicU32>::default();
    let counted = Arc::clone(&told);
    engine.add_observer(Box::new(move |_: &zonda_engine::Event<'_>| {
        counted.fetch_add(1, Ordering::Relaxed);
    }));
    let (query, mut buffer) = (query("b.example", Type::A), vec![0; 4096]);
    let passed_on = HandlerReply::default();
    let mut go_on = |is_asked_by_code, engine: &mut Engine| {
        buffer[..query.len()].copy_from_slice(&query);
        let (peer, history, len) = (&peer(Transport::Tcp), &History::default(), query.len());
        if is_asked_by_code {
            return engine.answer_below(NOW, peer, &mut buffer, len);
        }
        let waiting = DeferredQuery { query: None, peer, history, buffer: &mut buffer, len };
        engine.resume(NOW, waiting, Resumption::Code(HandlerOutcome::Reply(&passed_on)))
    };
    let sums = |engine: &Engine| {
        let counters = engine.counters();
        let replies = counters.replies.iter().flatten().flatten();
        (
            counters.reasons.iter().map(Counter::get).sum::<u64>(),
            replies.map(Counter::get).sum::<u64>(),
            counters.reply_bytes.get(),
            told.load(Ordering::Relaxed),
        )
    };
    let Outcome::Reply(len) = go_on(true, &mut engine) else { panic!("the zone answers") };
    assert_eq!(sums(&engine), (0, 0, 0, 0));
    go_on(false, &mut engine);
    assert_eq!(sums(&engine), (1, 1, len as u64, 1));
}

/// What leaves a query as it is.
fn leaves(_: &HandlerQuery<'_>, _: &mut HandlerReply) {}

#[test]
fn a_name_that_code_has_is_not_denied_by_its_zone_for_another_type_nor_is_one_above() {
    let mut routes = vec![here("z.example/A", leaves), here("*.open.x.example/A", leaves)];
    routes.push(elsewhere("*.x.example/TXT", 5));
    let mut engine = engine(routes, Vec::new(), None);
    let nodata = "NOERROR aa Authority:example.SOA=";
    for _ in 0..3 {
        // Also when the answer is among those that are kept.
        for name in ["z.example", "y.open.x.example", "open.x.example", "x.example"] {
            let reply = ask(&mut engine, name, Type::AAAA);
            assert!(reply.starts_with(nodata), "{name}: {reply}");
        }
        let left = ask(&mut engine, "z.example", Type::A);
        assert!(left.starts_with(nodata), "its name is spelled out: {left}");
        let other = ask(&mut engine, "y.example", Type::A);
        assert!(other.starts_with("NXDOMAIN aa Authority:example.SOA="), "{other}");
        assert!(ask(&mut engine, "a.example", Type::A).contains("Answer"), "the zone has it");
    }
    let nodata = engine.counters().reasons[Reason::NoData as usize].get();
    assert_eq!(nodata, 3 * 5);
}

#[test]
fn what_code_for_many_names_has_left_is_as_the_zone_says() {
    let routes = vec![here("*.here.example", leaves), elsewhere("*.afar.example/TXT", 5)];
    let mut engine = engine(routes, Vec::new(), None);
    let denied = "NXDOMAIN aa Authority:example.SOA=";
    let reply = ask(&mut engine, "a.here.example", Type::A);
    assert!(reply.starts_with(denied), "{reply}");
    let passed_on = HandlerOutcome::Reply(&HandlerReply::default());
    let reply = supply(&mut engine, "a.afar.example", Type::TXT, passed_on);
    assert!(reply.starts_with(denied), "{reply}");
}

#[test]
fn a_name_that_code_has_outside_of_all_zones_has_nothing_else_and_others_are_refused() {
    let routes = vec![here("a.test/A", leaves), here("*.b.c.test", leaves), here("*", leaves)];
    let mut engine = engine(routes, Vec::new(), None);
    for (name, qtype, told) in [
        ("a.test", Type::TXT, "NOERROR aa"),
        ("a.test", Type::A, "NOERROR aa"),
        ("x.b.c.test", Type::A, "NOERROR aa"),
        ("b.c.test", Type::A, "NOERROR aa"),
        ("c.test", Type::A, "REFUSED ()"),
        ("test", Type::NS, "REFUSED ()"),
        ("b.test", Type::A, "REFUSED ()"),
        (".", Type::NS, "REFUSED ()"),
    ] {
        assert_eq!(ask(&mut engine, name, qtype), told, "{name} {qtype}");
    }
}

#[test]
fn an_alias_in_a_zone_of_a_name_that_code_has_and_leaves_is_not_denied() {
    let text = "$TTL 60\n@ SOA a a 1 2 3 4 5\n@ NS a\nto-code CNAME code\nto-txt CNAME txt\n\
                txt TXT zone\nto-nobody CNAME nobody\nto-above CNAME above\n";
    let routes = vec![here("code.example/A", leaves), here("txt.example/A", leaves)];
    let routes = [routes, vec![here("x.above.example/A", leaves)]].concat();
    let handlers = Handlers::new(routes, Vec::new(), None, SEED);
    let mut engine = engine_over(vec![("example", data("example", text))], handlers);
    for (name, rcode, sections) in [
        ("to-code.example", "NOERROR", "Answer Authority"),
        ("to-txt.example", "NOERROR", "Answer Authority"),
        ("to-above.example", "NOERROR", "Answer Authority"),
        ("to-nobody.example", "NXDOMAIN", "Answer Authority"),
    ] {
        let reply = ask(&mut engine, name, Type::A);
        assert!(reply.starts_with(&format!("{rcode} aa Answer:{name}.CNAME=")), "{reply}");
        assert_eq!(reply.contains("Authority:example.SOA"), sections.contains("Auth"), "{reply}");
    }
}

#[test]
fn other_servers_are_not_asked_for_the_target_of_an_alias_that_code_has() {
    let text = "$TTL 60\n@ SOA a a 1 2 3 4 5\n@ NS a\nto-code CNAME a.corp.test.\n\
                to-open CNAME x.open.test.\nto-others CNAME www.test.\nto-txt CNAME txt.test.\n";
    let cache = Arc::new(zonda_cache::Cache::new(1 << 20));
    let forward =
        Forward { number: 7, cache, options: None, nxdomain_cut: true, overlays: Vec::new() };
    let others = Source::Forward(Arc::new(forward));
    let answers = |_: &HandlerQuery<'_>, draft: &mut HandlerReply| push(draft, Section::Answer, 7);
    let routes = vec![here("*", leaves), here("a.corp.test/A", answers)];
    let routes = [routes, vec![elsewhere("*.open.test", 5), here("txt.test/TXT", leaves)]].concat();
    let handlers = Handlers::new(routes, Vec::new(), None, SEED);
    let mut engine = engine_over(vec![("example", data("example", text)), (".", others)], handlers);
    let reply = ask(&mut engine, "to-code.example", Type::A);
    assert!(reply.starts_with("NOERROR aa Answer:to-code.example.CNAME="), "{reply}");
    assert!(reply.ends_with(" Answer:a.corp.test.A=192027"), "{reply}");
    // Code for many names, or for another type, may leave a query to the next handler.
    for name in ["to-others.example", "to-open.example", "to-txt.example"] {
        assert_eq!(ask(&mut engine, name, Type::A), "deferred to a forwarder", "{name}");
    }
}

/// What becomes of a query that was deferred, when that left it as it is.
fn left(engine: &mut Engine, name: &str) -> String {
    let (query, mut buffer) = (query(name, Type::A), vec![0; 65_535]);
    buffer[..query.len()].copy_from_slice(&query);
    let peer = peer(Transport::Udp);
    let Outcome::Deferred(deferral) = engine.answer(NOW, &peer, &mut buffer, query.len()) else {
        panic!("it is not deferred");
    };
    let (len, nothing) = (query.len(), HandlerReply::default());
    let supplied = HandlerOutcome::Reply(&nothing);
    let (peer, history) = (&peer, &deferral.history);
    let waiting = DeferredQuery { query: None, peer, history, buffer: &mut buffer, len };
    let outcome = engine.resume(NOW, waiting, Resumption::Code(supplied));
    told(outcome, &buffer)
}

/// Middleware that defers queries for names that begin so to code of this number, and tells all.
struct Defers(&'static [u8], u32);

impl Stage for Defers {
    fn before(&self, asked: &HandlerQuery<'_>, draft: &mut HandlerReply) {
        draft.tag(format!("seen by {}", self.1), "");
        if asked.name().label(0) == self.0 {
            draft.defer_to(Elsewhere { runtime: 3, handler: self.1 });
        }
    }

    fn after(&self, _: &HandlerQuery<'_>, draft: &mut HandlerReply) {
        let tags: Vec<&str> = draft.tags().map(|(key, _)| key).collect();
        let tags = tags.join(", ");
        draft.extended_error(Ede::OTHER, &tags);
    }
}

#[test]
fn what_middleware_defers_goes_on_behind_it_when_that_leaves_it() {
    let middleware: Vec<Arc<dyn Stage>> =
        vec![Arc::new(Defers(b"a", 1)), Arc::new(Defers(b"b", 2))];
    let answers = |_: &HandlerQuery<'_>, draft: &mut HandlerReply| push(draft, Section::Answer, 9);
    let mut engine = engine(vec![here("*.example", answers)], middleware, None);
    assert_eq!(ask(&mut engine, "a.example", Type::A), "deferred to 1 of 3");
    assert_eq!(ask(&mut engine, "b.example", Type::A), "deferred to 2 of 3");
    for name in ["a.example", "b.example"] {
        let answer = format!("NOERROR aa Answer:{name}.A=192029 (seen by 1, seen by 2)");
        assert_eq!(left(&mut engine, name), answer, "each has seen it once");
    }
    let mut draft = HandlerReply::default();
    push(&mut draft, Section::Answer, 7);
    let answered = supply(&mut engine, "a.example", Type::A, HandlerOutcome::Reply(&draft));
    assert!(answered.starts_with("NOERROR aa Answer:a.example.A=192027"), "{answered}");
}

#[test]
fn what_a_handler_defers_goes_to_the_zones_when_that_leaves_it_and_no_further() {
    let afar = Elsewhere { runtime: 3, handler: 5 };
    let defers = move |_: &HandlerQuery<'_>, draft: &mut HandlerReply| {
        push(draft, Section::Answer, 9); // which is not sent
        draft.defer_to(afar);
    };
    let mut engine = engine(vec![here("a.example", defers)], Vec::new(), None);
    assert_eq!(ask(&mut engine, "a.example", Type::A), "deferred to 5 of 3");
    assert_eq!(left(&mut engine, "a.example"), "NOERROR aa Answer:a.example.A=192021");
    let mut draft = HandlerReply::default();
    draft.defer_to(afar);
    let once_more = supply(&mut engine, "a.example", Type::A, HandlerOutcome::Reply(&draft));
    assert!(once_more.starts_with("SERVFAIL"), "{once_more}");
}

/// The types in the authority section of the reply to a query whose client wants DNSSEC records,
/// behind the response code.
fn proof(engine: &mut Engine, name: &str, qtype: Type) -> String {
    let (mut query, mut buffer) = (query(name, qtype), vec![0; 4096]);
    let flags = query.len() - 4;
    query[flags] = 0x80; // DO
    buffer[..query.len()].copy_from_slice(&query);
    let outcome = engine.answer(NOW, &peer(Transport::Tcp), &mut buffer, query.len());
    let Outcome::Reply(len) = outcome else { panic!("{outcome:?}") };
    let reply = Message::parse(&buffer[..len]).unwrap();
    let types: Vec<String> = reply.records.iter().map(|it| it.rtype.to_string()).collect();
    format!("{} {}", reply.rcode(), types.join(" "))
}

#[test]
fn a_signed_zone_proves_no_absence_of_a_name_that_code_has() {
    let signed = |covered: &str| {
        format!("RRSIG {covered} 15 1 60 20380101000000 20200101000000 1 example. AAAA\n")
    };
    let sets = [
        ("SOA", "a a 1 2 3 4 5"),
        ("NS", "a"),
        ("DNSKEY", "256 3 15 AAAA"),
        ("NSEC", "example. NS SOA RRSIG NSEC DNSKEY"),
    ];
    let sets = sets.map(|(rtype, rdata)| format!("@ {rtype} {rdata}\n@ {}", signed(rtype)));
    let zone = data("example", &format!("$TTL 60\n{}", sets.concat()));
    let handlers = Handlers::new(vec![here("z.example/A", leaves)], Vec::new(), None, SEED);
    let mut engine = engine_over(vec![("example", zone)], handlers);
    let denied = "NXDOMAIN SOA RRSIG NSEC RRSIG";
    assert_eq!(proof(&mut engine, "y.example", Type::AAAA), denied);
    assert_eq!(proof(&mut engine, "z.example", Type::AAAA), "NOERROR SOA RRSIG");
}

#[test]
fn a_name_that_code_has_is_not_denied_by_other_servers_for_another_type() {
    const SOA: &[u8] =
        b"\0\0\x06\0\x01\0\0\0\x3c\0\x16\0\0\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0\x05";
    const TXT: &[u8] = b"\0\0\x10\0\x01\0\0\0\x3c\0\x02\x01x";
    let routes = vec![here("*", leaves), here("*.corp.test/A", leaves)];
    let cache = Arc::new(zonda_cache::Cache::new(1 << 20));
    let forward = Forward {
        number: 7,
        cache: Arc::clone(&cache),
        options: None,
        nxdomain_cut: true,
        overlays: Vec::new(),
    };
    let zones = vec![(".", Source::Forward(Arc::new(forward)))];
    let mut engine = engine_over(zones, Handlers::new(routes, Vec::new(), None, SEED));
    let soa_and_proof = [SOA, TXT].concat(); // of any type
    let chain = [b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x03\x01x\0", SOA].concat();
    let bodies = [([0, 1, 0], SOA), ([0, 2, 0], &soa_and_proof), ([1, 1, 0], &chain)];
    let soa = "Authority:.SOA=0000010002000300040005";
    for (name, expected) in [
        ("y.corp.test", [format!("NOERROR {soa}"), "NOERROR".into()]),
        ("corp.test", [format!("NOERROR {soa}"), "NOERROR".into()]),
        ("nobody.test", [format!("NXDOMAIN {soa}"), format!("NXDOMAIN {soa} Authority:.TXT=1120")]),
    ] {
        for (expected, (counts, body)) in expected.iter().zip(bodies) {
            let reply = resume(&mut engine, name, (counts, body));
            assert_eq!(&reply, expected, "{name}");
            keep_denial(&cache, name, (counts, body));
            assert_eq!(&ask(&mut engine, name, Type::MX), expected, "{name}, kept");
        }
    }
    let (counts, body) = bodies[2];
    let reply = resume(&mut engine, "y.corp.test", (counts, body));
    assert!(
        reply.starts_with("NXDOMAIN Answer:"),
        "it is the alias's target that is denied: {reply}"
    );
}

/// What becomes of a query for MX to which other servers said that the name does not exist.
fn resume(engine: &mut Engine, name: &str, (counts, body): ([u16; 3], &[u8])) -> String {
    let (query, mut buffer) = (query(name, Type::MX), vec![0; 4096]);
    buffer[..query.len()].copy_from_slice(&query);
    let (rcode, reason, text) = (Rcode::NXDOMAIN, Reason::Forwarded, &[][..]);
    let (name, is_authentic, goes_on) = (&[][..], true, false);
    let fetched = UpstreamAnswer { name, rcode, counts, body, is_authentic, goes_on, reason, text };
    let (peer, history) = (peer(Transport::Udp), History::default());
    let (peer, history, len) = (&peer, &history, query.len());
    let waiting = DeferredQuery { query: None, peer, history, buffer: &mut buffer, len };
    let outcome = engine.resume(NOW, waiting, Resumption::Upstream(&fetched));
    told(outcome, &buffer)
}

/// Keeps what other servers said, that a name does not exist.
fn keep_denial(cache: &zonda_cache::Cache, name: &str, (counts, body): ([u16; 3], &[u8])) {
    let name: Name = name.parse().unwrap();
    let name = LookupName::new(name.as_wire(), SEED);
    let key = zonda_cache::Key {
        name: name.as_wire(),
        hash: name.hash(0),
        qtype: Type::MX,
        qclass: Class::IN,
        source: 7,
        dnssec_ok: false,
        checking_disabled: false,
        variant: zonda_cache::Variant::default(),
    };
    let flags = Rcode::NXDOMAIN.0;
    let answer = Answer { kind: Kind::NxDomain, flags, onward: None, ede: None, counts, body };
    let lifetime = Lifetime { now_secs: 0, ttl_secs: 60, stale_secs: 0 };
    cache.insert(&key, &answer, lifetime).unwrap();
}

/// A zone with an address, and with a set that takes a message of more than 512 octets.
fn zone_with_address(last: u8) -> Vec<(&'static str, Source)> {
    let texts: String = (0..8).map(|n| format!("large TXT {n}{}\n", "x".repeat(200))).collect();
    let head = "$TTL 60\n@ SOA a a 1 2 3 4 5\n@ NS a\n";
    let text = format!("{head}a A 192.0.2.{last}\nb A 192.0.2.8\nb AAAA 2001:db8::8\n{texts}");
    vec![("example", data("example", &text))]
}

/// What code is shown that asks what becomes of a query below it.
fn shown(engine: &mut Engine, name: &str, qtype: Type) -> AnswerBelow {
    let (query, mut buffer) = (query(name, qtype), vec![0; 65_535]);
    buffer[..query.len()].copy_from_slice(&query);
    let outcome = engine.answer_below(NOW, &peer(Transport::Tcp), &mut buffer, query.len());
    let Outcome::Reply(len) = outcome else { panic!("{name} is answered") };
    AnswerBelow::new(buffer[..len].to_vec(), engine.take_facts())
}

#[test]
fn an_answer_that_code_was_shown_is_sent_and_not_made_again_while_the_same_rules_are_in_force() {
    let snapshot_of = |last, generation| {
        let handlers = Handlers::new(Vec::new(), Vec::new(), Some(3), SEED);
        let snapshot = snapshot(zone_with_address(last), handlers, Settings::default());
        Arc::new(Snapshot { generation, ..snapshot })
    };
    let in_force = Arc::new(ArcSwap::new(snapshot_of(1, 1)));
    let mut engine = Engine::new(Arc::clone(&in_force), Arc::default());
    let below = shown(&mut engine, "a.example", Type::A);
    let mut sent = |below: &AnswerBelow| {
        supply(&mut engine, "a.example", Type::A, HandlerOutcome::AsAnswered(below))
    };
    assert_eq!(sent(&below), "NOERROR aa Answer:a.example.A=192021");
    in_force.store(snapshot_of(2, 1)); // what is made now has the other address
    assert_eq!(sent(&below), "NOERROR aa Answer:a.example.A=192021");
    in_force.store(snapshot_of(2, 2)); // the client may be one that is refused now
    assert_eq!(sent(&below), "NOERROR aa Answer:a.example.A=192022");
    in_force.store(snapshot_of(1, 1));
    let without_facts = AnswerBelow::new(below.message, None);
    in_force.store(snapshot_of(2, 1));
    assert_eq!(sent(&without_facts), "NOERROR aa Answer:a.example.A=192022");
    let counters = engine.counters();
    assert_eq!(counters.reasons[Reason::Answered as usize].get(), 4);
    assert_eq!(counters.reasons.iter().map(Counter::get).sum::<u64>(), 4);
}

#[test]
fn a_query_keeps_the_tags_of_code_that_leaves_the_answer_it_was_shown() {
    let query = query("a.example", Type::A);
    let mut deferral = Deferral::new(To::Forward(0), 0);
    deferral.query = zonda_wire::Query::parse(&query).unwrap();
    deferral.history.tags.set("user".into(), &"of middleware");
    let mut reply = HandlerReply::default();
    reply.tag("user", "ann");
    reply.tag("why", 7);
    deferral.note_code(&query, &reply);
    let tags: Vec<_> = deferral.history.tags.iter().collect();
    assert_eq!(tags, [("user", "ann"), ("why", "7")]);
}

#[test]
fn an_answer_that_code_was_shown_is_made_again_where_udp_has_another_one() {
    let handlers = Handlers::new(Vec::new(), Vec::new(), Some(3), SEED);
    let mut engine = engine_over(zone_with_address(1), handlers);
    for (name, qtype) in [("large.example", Type::TXT), ("b.example", Type::ANY)] {
        let below = shown(&mut engine, name, qtype);
        let passed_on = HandlerReply::default();
        let made = supply(&mut engine, name, qtype, HandlerOutcome::Reply(&passed_on));
        let sent = supply(&mut engine, name, qtype, HandlerOutcome::AsAnswered(&below));
        assert_eq!(sent, made, "{name}");
        assert!(sent.contains(" tc") != sent.contains("Answer"), "{sent}");
    }
    let below = shown(&mut engine, "a.example", Type::A);
    let other = supply(&mut engine, "large.example", Type::A, HandlerOutcome::AsAnswered(&below));
    assert!(!other.contains("192021"), "it answers another question: {other}");
}

#[test]
fn an_answer_that_code_was_shown_is_counted_against_the_share_of_its_client() {
    let rate = RateSettings::new(1, 1, 0, (24, 56), Vec::new(), RateTable::new(4096));
    let settings = Settings { rate: Some(rate), ..Settings::default() };
    let handlers = Handlers::new(Vec::new(), Vec::new(), Some(3), SEED);
    let mut engine = engine_set(zone_with_address(1), handlers, settings);
    for name in ["a.example", "none.example"] {
        let below = shown(&mut engine, name, Type::A);
        let mut sent = || supply(&mut engine, name, Type::A, HandlerOutcome::AsAnswered(&below));
        let replies: Vec<String> = (0..20).map(|_| sent()).collect();
        assert_ne!(replies[0], "silence", "{name}");
        assert_eq!(replies[19], "silence", "{name}");
    }
}

#[test]
fn middleware_in_the_worker_sees_a_reply_once_that_code_elsewhere_was_shown() {
    let counted = Arc::<AtomicU32>::default();
    struct Counts(Arc<AtomicU32>);
    impl Stage for Counts {
        fn after(&self, _: &HandlerQuery<'_>, draft: &mut HandlerReply) {
            self.0.fetch_add(1, Ordering::Relaxed);
            push(draft, Section::Additional, 9);
        }
    }
    let stage = Arc::new(Counts(Arc::clone(&counted)));
    let handlers = Handlers::new(Vec::new(), vec![stage as _], Some(3), SEED);
    let mut engine = engine_over(zone_with_address(1), handlers);
    let below = shown(&mut engine, "a.example", Type::A);
    let sent = supply(&mut engine, "a.example", Type::A, HandlerOutcome::AsAnswered(&below));
    assert_eq!(sent, "NOERROR aa Answer:a.example.A=192021 Additional:a.example.A=192029");
    assert_eq!(counted.load(Ordering::Relaxed), 2, "once for what is shown, once for what is sent");
}
