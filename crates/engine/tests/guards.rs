//! Guards, which are middleware for the names of patterns, and handlers behind handlers.
#![allow(clippy::unwrap_used)]

use arc_swap::ArcSwap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use zonda_engine::code::{
    Elsewhere, Guard, Handler, HandlerQuery, HandlerReply, Handlers, NO_HANDLER, Route, Stage, Vary,
};
use zonda_engine::zones::{Source, ZoneEntry, ZoneTable};
use zonda_engine::{
    Deferral, DeferredQuery, Engine, HandlerOutcome, Now, Outcome, Peer, Resumption, Settings,
    Snapshot, To, Transport,
};
use zonda_wire::message::Message;
use zonda_wire::{Name, Rcode, Section, Type};
use zonda_zone::{HashSeed, LookupName, build, file};

const SEED: HashSeed = HashSeed(1);
const NOW: Now = Now::new(1, 1);
const PEER: Peer = Peer::new(
    std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 99)), 5300),
    Transport::Tcp,
    0,
);

/// An engine that holds the zone `zone.example`, with code in front of it.
fn engine(handlers: Handlers) -> Engine {
    let apex: Name = "zone.example".parse().unwrap();
    let text = "$TTL 60\n@ SOA a a 1 2 3 4 5\n@ NS a\na A 192.0.2.1\n";
    let (records, _) =
        file::read_text(text.as_bytes(), Path::new("zone"), &apex, &file::Options::default());
    let source = Source::Data(Arc::new(build(&apex, &records, SEED).unwrap()));
    let zones = ZoneTable::new(vec![Arc::new(ZoneEntry::new(apex, source, None, 0))], SEED);
    let (handlers, settings) = (Some(Arc::new(handlers)), Arc::new(Settings::default()));
    let snapshot = Snapshot { handlers, settings, ..Snapshot::of(zones) };
    Engine::new(Arc::new(ArcSwap::from_pointee(snapshot)), Arc::default())
}

/// Code with these routes and guards.
fn code(routes: Vec<Route<Handler>>, guards: Vec<Route<Guard>>) -> Handlers {
    Handlers::new(routes, Vec::new(), None, SEED).with_guards(guards, SEED)
}

/// A route to code in the worker.
fn here(
    pattern: &str,
    code: impl Fn(&HandlerQuery<'_>, &mut HandlerReply) + Send + Sync + 'static,
) -> Route<Handler> {
    Route { pattern: pattern.parse().unwrap(), handler: Handler::Here(Arc::new(code)) }
}

/// A route to code in the worker that answers with an address.
fn answers(pattern: &str, last: u8) -> Route<Handler> {
    here(pattern, move |_, draft| push(draft, last))
}

/// A route to code of runtime 3.
fn elsewhere(pattern: &str, handler: u32) -> Route<Handler> {
    let handler = Handler::Elsewhere(Elsewhere { runtime: 3, handler });
    Route { pattern: pattern.parse().unwrap(), handler }
}

/// A guard of runtime 3.
fn guard_elsewhere(pattern: &str, handler: u32) -> Route<Guard> {
    let handler = Guard::Elsewhere(Elsewhere { runtime: 3, handler });
    Route { pattern: pattern.parse().unwrap(), handler }
}

/// Adds an address record of the name asked for.
fn push(draft: &mut HandlerReply, last: u8) {
    draft.push(Section::Answer, &[], (Type::A, 60), &[192, 0, 2, last]).unwrap();
    draft.reply(Rcode::NOERROR);
}

/// The notes that guards have taken.
type Notes = Arc<Mutex<Vec<String>>>;

/// Middleware that notes what it sees, with what its pattern has captured as `x`.
struct NotingStage(&'static str, Notes);

impl NotingStage {
    /// Takes note of a query or reply.
    fn note(&self, asked: &HandlerQuery<'_>, when: &str) {
        let x = asked.capture("x").map(|label| String::from_utf8_lossy(label).into_owned());
        let x = x.map_or_else(String::new, |x| format!(" x={x}"));
        self.1.lock().unwrap().push(format!("{} {when}{x}", self.0));
    }
}

impl Stage for NotingStage {
    fn before(&self, asked: &HandlerQuery<'_>, _: &mut HandlerReply) {
        self.note(asked, "before");
    }

    fn after(&self, asked: &HandlerQuery<'_>, _: &mut HandlerReply) {
        self.note(asked, "after");
    }
}

/// Guards in the worker of these patterns, and what they note, each under its pattern.
fn noting(patterns: &[&'static str]) -> (Vec<Route<Guard>>, Notes) {
    let notes = Notes::default();
    let guard = |pattern: &&'static str| {
        let handler = Guard::Here(Arc::new(NotingStage(pattern, Arc::clone(&notes))));
        Route { pattern: pattern.parse().unwrap(), handler }
    };
    (patterns.iter().map(guard).collect(), notes)
}

/// Takes out what was noted.
fn taken(notes: &Notes) -> Vec<String> {
    std::mem::take(&mut *notes.lock().unwrap())
}

/// The octets of a query for addresses.
fn query(name: &str) -> Vec<u8> {
    let name: Name = name.parse().unwrap();
    let header = [7_u16, 0x0100, 1, 0, 0, 0].map(u16::to_be_bytes).concat();
    [&header, name.as_wire(), &Type::A.0.to_be_bytes(), &[0, 1]].concat()
}

/// What becomes of a query.
fn outcome(engine: &mut Engine, name: &str) -> (Outcome, Vec<u8>) {
    let (query, mut buffer) = (query(name), vec![0; 65_535]);
    buffer[..query.len()].copy_from_slice(&query);
    (engine.answer(NOW, &PEER, &mut buffer, query.len()), buffer)
}

/// What becomes of a query, as text.
fn ask(engine: &mut Engine, name: &str) -> String {
    told(outcome(engine, name))
}

/// The deferral of a query.
fn deferred(engine: &mut Engine, name: &str) -> Deferral {
    match outcome(engine, name).0 {
        Outcome::Deferred(deferral) => deferral,
        other => panic!("{other:?}"),
    }
}

/// What becomes of a query that was deferred, when the code that it waits for has ended.
fn resumed(
    engine: &mut Engine,
    name: &str,
    deferral: &Deferral,
    reply: &HandlerReply,
) -> (Outcome, Vec<u8>) {
    let (query, mut buffer) = (query(name), vec![0; 65_535]);
    buffer[..query.len()].copy_from_slice(&query);
    let (history, len) = (&deferral.history, query.len());
    let waiting = DeferredQuery { query: None, peer: &PEER, history, buffer: &mut buffer, len };
    let resumption = Resumption::Code(HandlerOutcome::Reply(reply));
    (engine.resume(NOW, waiting, resumption), buffer)
}

/// An outcome as text: the response code and the last octets of addresses, or what it waits for.
fn told((outcome, buffer): (Outcome, Vec<u8>)) -> String {
    let len = match outcome {
        Outcome::Reply(len) => len,
        Outcome::Silence => return "silence".into(),
        Outcome::Deferred(deferral) => match deferral.to {
            To::Code(to) if to.handler == NO_HANDLER => return "deferred to no handler".into(),
            To::Code(to) => return format!("deferred to {}", to.handler),
            other => panic!("{other:?}"),
        },
    };
    let reply = Message::parse(&buffer[..len]).unwrap();
    let addresses = reply.section(Section::Answer).filter_map(|it| it.rdata.last());
    let addresses: String = addresses.map(|last| format!(" {last}")).collect();
    format!("{}{addresses}", reply.rcode())
}

#[test]
fn a_guard_sees_its_names_alone_and_hides_nothing_below_it() {
    let (guards, notes) = noting(&["*.eu.example", "*.zone.example", "only.test"]);
    let routes = vec![answers("*.example", 7), answers("zone.example/TXT", 8)];
    let mut engine = engine(code(routes, guards));
    for (name, reply, seen) in [
        ("www.eu.example", "NOERROR 7", &["*.eu.example before", "*.eu.example after"][..]),
        ("www.us.example", "NOERROR 7", &[]),
        ("only.test", "REFUSED", &["only.test before", "only.test after"]),
        ("eu.test", "REFUSED", &[]),
    ] {
        assert_eq!(ask(&mut engine, name), reply, "{name}");
        assert_eq!(taken(&notes), seen, "{name}");
    }
    let (guards, notes) = noting(&["*.zone.example"]);
    let mut engine = self::engine(code(Vec::new(), guards));
    for (name, reply) in [("a.zone.example", "NOERROR 1"), ("b.zone.example", "NXDOMAIN")] {
        for _ in 0..3 {
            assert_eq!(ask(&mut engine, name), reply, "{name}");
            assert_eq!(taken(&notes), ["*.zone.example before", "*.zone.example after"]);
        }
    }
    assert_eq!(ask(&mut engine, "zone.example"), "NOERROR");
    assert!(taken(&notes).is_empty());
}

#[test]
fn a_query_passes_the_guard_of_the_widest_pattern_first_and_its_reply_last() {
    let (guards, notes) = noting(&["a.:x.test", "*", "*.test/A", "*.test/TXT", "*.b.test", "*"]);
    let mut engine = engine(code(vec![answers("*", 1)], guards));
    assert_eq!(ask(&mut engine, "a.b.test"), "NOERROR 1");
    let order = ["*", "*", "*.test/A", "*.b.test", "a.:x.test"];
    let note = |pattern: &&str, when: &str| match *pattern {
        "a.:x.test" => format!("{pattern} {when} x=b"),
        pattern => format!("{pattern} {when}"),
    };
    let before = order.iter().map(|pattern| note(pattern, "before"));
    let after = order.iter().rev().map(|pattern| note(pattern, "after"));
    assert_eq!(taken(&notes), before.chain(after).collect::<Vec<_>>());
}

#[test]
fn a_guard_sees_replies_that_a_handler_has_kept() {
    let (guards, notes) = noting(&["*.test"]);
    let kept = here("*.test", |_, draft| {
        push(draft, 1);
        draft.cache(60, Vary::Nothing);
    });
    let mut engine = engine(code(vec![kept], guards));
    for _ in 0..3 {
        assert_eq!(ask(&mut engine, "a.test"), "NOERROR 1");
        assert_eq!(taken(&notes).len(), 2);
    }
}

/// Middleware that defers queries to code 9 of runtime 3, and marks those that it sees.
struct Defers;

impl Stage for Defers {
    fn before(&self, _: &HandlerQuery<'_>, draft: &mut HandlerReply) {
        draft.defer_to(Elsewhere { runtime: 3, handler: 9 });
    }
}

#[test]
fn a_query_that_a_guard_defers_goes_on_behind_that_guard() {
    let (mut guards, notes) = noting(&["*.test", "a.test"]);
    let handler = Guard::Here(Arc::new(Defers) as Arc<dyn Stage>);
    guards.push(Route { pattern: "*.a.test".parse().unwrap(), handler: handler.clone() });
    guards.push(Route { pattern: ":x.test".parse().unwrap(), handler });
    let mut engine = engine(code(vec![answers("*", 1)], guards));
    let deferral = deferred(&mut engine, "a.test");
    assert_eq!(taken(&notes), ["*.test before"]);
    let left = resumed(&mut engine, "a.test", &deferral, &HandlerReply::default());
    assert_eq!(told(left), "NOERROR 1");
    assert_eq!(taken(&notes), ["a.test before", "a.test after", "*.test after"]);
}

#[test]
fn a_guard_elsewhere_has_its_names_deferred_with_or_without_a_handler() {
    let routes = vec![elsewhere("*.example", 5), answers("here.eu.test", 1)];
    let guards = vec![
        guard_elsewhere("*.eu.example", 0),
        guard_elsewhere("*.eu.test", 1),
        guard_elsewhere("*.test/TXT", 2),
    ];
    let mut engine = engine(code(routes, guards));
    for (name, reply, is_guarded) in [
        ("www.eu.example", "deferred to 5", true),
        ("www.us.example", "deferred to 5", false),
        ("here.eu.test", "deferred to no handler", true),
        ("none.eu.test", "deferred to no handler", true),
    ] {
        assert_eq!(ask(&mut engine, name), reply, "{name}");
        assert_eq!(deferred(&mut engine, name).history.is_guarded, is_guarded, "{name}");
    }
    assert_eq!(ask(&mut engine, "www.us.test"), "REFUSED");
    for (name, reply) in [("here.eu.test", "NOERROR 1"), ("none.eu.test", "REFUSED")] {
        let deferral = deferred(&mut engine, name);
        let left = resumed(&mut engine, name, &deferral, &HandlerReply::default());
        assert_eq!(told(left), reply, "{name}");
    }
}

#[test]
fn a_reply_that_a_guard_elsewhere_has_seen_is_not_kept() {
    let guards = vec![guard_elsewhere("*.eu.example", 0)];
    let mut engine = engine(code(vec![elsewhere("*.example", 5)], guards));
    let mut kept = HandlerReply::default();
    push(&mut kept, 1);
    kept.cache(60, Vary::Nothing);
    for (name, then) in [("a.us.example", "NOERROR 1"), ("a.eu.example", "deferred to 5")] {
        let deferral = deferred(&mut engine, name);
        assert_eq!(told(resumed(&mut engine, name, &deferral, &kept)), "NOERROR 1");
        assert_eq!(ask(&mut engine, name), then);
    }
}

#[test]
fn guards_of_a_runtime_are_told_by_their_numbers_the_widest_first() {
    let guards = vec![
        guard_elsewhere("a.b.test", 0),
        guard_elsewhere("*", 1),
        guard_elsewhere("*.test/TXT", 2),
        guard_elsewhere("*.test", 3),
        guard_elsewhere("b.test", 4),
    ];
    let handlers = code(Vec::new(), guards);
    let name = LookupName::new("a.b.test".parse::<Name>().unwrap().as_wire(), SEED);
    assert_eq!(handlers.guards.numbers_for(&name, Type::A), [1, 3, 0]);
    assert_eq!(handlers.guards.numbers_for(&name, Type::TXT), [1, 3, 2, 0]);
}

#[test]
fn a_query_that_a_handler_passes_on_goes_to_that_of_the_next_wider_pattern() {
    let leaves = |pattern: &str| here(pattern, |_, _| {});
    let routes = vec![
        answers("*.test", 1),
        answers("*.b.test", 2),
        leaves("*.b.test"), // in place of the one before
        leaves("a.b.test"),
        leaves("a.b.test/A"),
        leaves("*.zone.example"),
    ];
    let mut engine = engine(code(routes, Vec::new()));
    for (name, reply) in [
        ("a.b.test", "NOERROR 1"),
        ("c.b.test", "NOERROR 1"),
        ("c.test", "NOERROR 1"),
        ("a.zone.example", "NOERROR 1"), // the zone's own
        ("b.zone.example", "NXDOMAIN"),
        ("test", "NOERROR"),
    ] {
        assert_eq!(ask(&mut engine, name), reply, "{name}");
    }
}

#[test]
fn a_reply_behind_a_handler_that_passes_on_is_not_kept() {
    let calls = Notes::default();
    let seen = Arc::clone(&calls);
    let routes = vec![
        here("a.test", move |_, _| seen.lock().unwrap().push("called".to_owned())),
        here("*.test", |_, draft| {
            push(draft, 1);
            draft.cache(60, Vary::Nothing);
        }),
    ];
    let mut engine = engine(code(routes, Vec::new()));
    for _ in 0..3 {
        assert_eq!(ask(&mut engine, "a.test"), "NOERROR 1");
        assert_eq!(taken(&calls), ["called"]);
    }
}

#[test]
fn handlers_in_workers_and_elsewhere_are_called_one_behind_the_other() {
    let routes = vec![
        answers("*", 1),
        elsewhere("*.test", 2),
        here("*.b.test", |_, _| {}),
        elsewhere("*.a.b.test", 3),
        elsewhere("x.a.b.test", 4),
    ];
    let mut engine = engine(code(routes, Vec::new()));
    let (name, left) = ("x.a.b.test", HandlerReply::default());
    let mut waits = deferred(&mut engine, name);
    let mut order = Vec::new();
    let answer = loop {
        let To::Code(to) = waits.to else { panic!("{waits:?}") };
        order.push((to.handler, waits.history.has_passed_middleware));
        match resumed(&mut engine, name, &waits, &left) {
            (Outcome::Deferred(deferral), _) => waits = deferral,
            other => break told(other),
        }
    };
    assert_eq!((order, &*answer), (vec![(4, false), (3, true), (2, true)], "NOERROR 1"));
    let mut reply = HandlerReply::default();
    push(&mut reply, 9);
    let waits = deferred(&mut engine, name);
    assert_eq!(told(resumed(&mut engine, name, &waits, &reply)), "NOERROR 9");
}

#[test]
fn what_a_runtime_leaves_that_calls_its_handlers_itself_goes_to_those_in_workers() {
    let routes = vec![answers("*", 1), elsewhere("*.test", 2), elsewhere("a.test", 3)];
    let handlers = code(routes, Vec::new()).with_chaining_runtime(Some(3));
    let name = LookupName::new("a.test".parse::<Name>().unwrap().as_wire(), SEED);
    let next = |passed: Option<&str>| {
        let passed = passed.map(|text| text.parse().unwrap());
        handlers.next_number((&name, Type::A), passed.as_ref(), 3)
    };
    assert_eq!([next(None), next(Some("a.test")), next(Some("*.test"))], [Some(3), Some(2), None]);
    assert_eq!(next(Some("b.test")), Some(2), "a handler of as close a pattern counts as passed");
    let mut engine = engine(handlers);
    let deferral = deferred(&mut engine, "a.test");
    let left = resumed(&mut engine, "a.test", &deferral, &HandlerReply::default());
    assert_eq!(told(left), "NOERROR 1");
}

#[test]
fn a_denial_by_middleware_takes_the_place_of_the_answer_but_for_aliases() {
    /// Middleware that denies the name asked for.
    struct Denies;
    impl Stage for Denies {
        fn after(&self, _: &HandlerQuery<'_>, draft: &mut HandlerReply) {
            draft.nxdomain();
            draft.push_soa_of(&"test".parse().unwrap(), 9);
        }
    }
    let alias = here("alias.test", |_, draft| {
        let target: Name = "to.test".parse().unwrap();
        draft.push(Section::Answer, &[], (Type::CNAME, 60), target.as_wire()).unwrap();
        draft.push(Section::Answer, target.as_wire(), (Type::A, 60), &[192, 0, 2, 1]).unwrap();
        draft.push_soa_of(&"other".parse().unwrap(), 5);
        draft.reply(Rcode::NOERROR);
    });
    let guard =
        Route { pattern: "*.test".parse().unwrap(), handler: Guard::Here(Arc::new(Denies)) };
    let mut engine = engine(code(vec![alias, answers("*", 1)], vec![guard]));
    for (name, expected) in [
        ("a.test", vec![(Section::Authority, "test.", Type::SOA)]),
        (
            "alias.test",
            vec![
                (Section::Answer, "alias.test.", Type::CNAME),
                (Section::Authority, "test.", Type::SOA),
            ],
        ),
    ] {
        let (Outcome::Reply(len), buffer) = outcome(&mut engine, name) else { panic!("{name}") };
        let reply = Message::parse(&buffer[..len]).unwrap();
        let records = reply.records.iter().map(|it| (it.section, it.owner.to_string(), it.rtype));
        let expected =
            expected.into_iter().map(|(section, owner, rtype)| (section, owner.to_owned(), rtype));
        assert_eq!(records.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{name}");
        assert_eq!(reply.rcode(), Rcode::NXDOMAIN);
    }
}
