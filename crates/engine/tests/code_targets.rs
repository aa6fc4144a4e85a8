//! Code that answers for the target of an alias, here and elsewhere, without sockets.
#![allow(clippy::unwrap_used)]

use arc_swap::ArcSwap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use zonda_balance::{Answers, Member, MemberState, Order, Pool, Records, WhenAllDown};
use zonda_engine::access::{Access, AccessList};
use zonda_engine::code::{
    Elsewhere, Ending, Guard, Handler, HandlerQuery, HandlerReply, Handlers, NO_HANDLER, Route,
    Stage, Vary,
};
use zonda_engine::steering::{SteeredNames, SteeredSet, Steering};
use zonda_engine::zones::{Forward, Source, ZoneEntry, ZoneTable};
use zonda_engine::{
    DeferredQuery, Engine, HandlerOutcome, Now, Outcome, Peer, Reason, Resumption, Settings,
    Snapshot, To, Transport, UpstreamAnswer,
};
use zonda_rewrite::{
    FallThrough, MatchKind, NameMatch, RewriteRule, RewriteRules, Scope, Template, Templates,
};
use zonda_wire::message::Message;
use zonda_wire::query::{Query, flag};
use zonda_wire::{Name, Rcode, Section, Type};
use zonda_zone::{HashSeed, build, file};

const SEED: HashSeed = HashSeed(1);
const NOW: Now = Now::new(1, 1);

/// Records of `example`, of which some are aliases of names that code has.
const EXAMPLE: &str = "$TTL 60\n@ SOA a a 1 2 3 4 5\n@ NS a\na A 192.0.2.1\n\
    to-code CNAME code\nto-far CNAME Far.Test.\nto-chain CNAME one.chain.test.\n\
    to-loop CNAME loop.test.\nto-number CNAME 1.count.test.\nto-private CNAME x.private.test.\n\
    to-public CNAME x.public.test.\nto-net CNAME a.net.test.\nto-guarded CNAME guarded.test.\n\
    a-loop CNAME b-loop\nb-loop CNAME c-loop.test.\ntree DNAME tree.test.\n\
    *.wild CNAME far.test.\n";

/// The settings, zones and code of an engine.
struct Setup {
    settings: Settings,
    handlers: Handlers,
    steering: Option<Arc<Steering>>,
}

impl Setup {
    /// Code with these routes.
    fn of(routes: Vec<Route<Handler>>) -> Self {
        let handlers = Handlers::new(routes, Vec::new(), None, SEED);
        Self { settings: Settings::default(), handlers, steering: None }
    }

    /// An engine over `example`, over a zone that the client may not query, one that it may, and
    /// one that is forwarded.
    fn engine(self) -> Engine {
        self.engine_over(EXAMPLE)
    }

    /// An engine over this text of `example`, and the other zones.
    fn engine_over(self, text: &str) -> Engine {
        let closed = AccessList { otherwise: Access::Refuse, ..AccessList::open() };
        let cache = Arc::new(zonda_cache::Cache::new(1 << 20));
        let overlays = Vec::new();
        let forward = Forward { number: 7, cache, options: None, nxdomain_cut: true, overlays };
        let soa = "$TTL 60\n@ SOA a a 1 2 3 4 5\n@ NS a\nx A 192.0.2.66\n";
        let entries = [
            ("example", data("example", text), None),
            ("private.test", data("private.test", soa), Some(Arc::new(closed))),
            ("public.test", data("public.test", soa), None),
            ("net.test", Source::Forward(Arc::new(forward)), None),
        ];
        let entry = |(number, (apex, source, access)): (u32, (&str, _, _))| {
            Arc::new(ZoneEntry::new(apex.parse().unwrap(), source, access, number))
        };
        let zones = ZoneTable::new((0..).zip(entries).map(entry).collect(), SEED);
        let (handlers, settings) = (Some(Arc::new(self.handlers)), Arc::new(self.settings));
        let steering = self.steering;
        let snapshot = Snapshot { handlers, settings, steering, ..Snapshot::of(zones) };
        Engine::new(Arc::new(ArcSwap::from_pointee(snapshot)), Arc::default())
    }
}

/// An engine over the zones, with code of these routes.
fn engine(routes: Vec<Route<Handler>>) -> Engine {
    Setup::of(routes).engine()
}

/// The data of a zone.
fn data(apex: &str, text: &str) -> Source {
    let (apex, options) = (apex.parse().unwrap(), file::Options::default());
    let (records, _) = file::read_text(text.as_bytes(), Path::new("zone"), &apex, &options);
    Source::Data(Arc::new(build(&apex, &records, SEED).unwrap()))
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
    here(pattern, move |_, reply| push(reply, last))
}

/// A route to code in the worker that answers with an alias.
fn leads(pattern: &str, target: &'static str) -> Route<Handler> {
    here(pattern, move |_, reply| alias(reply, target))
}

/// A route to code elsewhere, of this number.
fn elsewhere(pattern: &str, handler: u32) -> Route<Handler> {
    let handler = Handler::Elsewhere(Elsewhere { runtime: 3, handler });
    Route { pattern: pattern.parse().unwrap(), handler }
}

/// Adds an address of the name asked for.
fn push(reply: &mut HandlerReply, last: u8) {
    reply.push(Section::Answer, &[], (Type::A, 60), &[192, 0, 2, last]).unwrap();
    reply.reply(Rcode::NOERROR);
}

/// Adds an alias of a name.
fn alias(reply: &mut HandlerReply, target: &str) {
    let target: Name = target.parse().unwrap();
    reply.push(Section::Answer, &[], (Type::CNAME, 60), target.as_wire()).unwrap();
    reply.reply(Rcode::NOERROR);
}

/// A reply of code elsewhere.
fn reply(fill: impl FnOnce(&mut HandlerReply)) -> HandlerReply {
    let mut reply = HandlerReply::default();
    fill(&mut reply);
    reply
}

/// A client over a transport.
fn peer(transport: Transport) -> Peer {
    Peer::new(([192, 0, 2, 99], 5300).into(), transport, 0)
}

/// The octets of a query with an OPT record that has a client subnet, and DO if that is wanted.
fn query(name: &str, dnssec_ok: bool) -> Vec<u8> {
    let name: Name = name.parse().unwrap();
    let header = [7_u16, flag::RD, 1, 0, 0, 1].map(u16::to_be_bytes).concat();
    let opt = [0, 0, 41, 0x04, 0xd0, 0, 0, u8::from(dnssec_ok) << 7, 0, 0, 11];
    let subnet = [0, 8, 0, 7, 0, 1, 24, 0, 198, 51, 100];
    let question = [name.as_wire(), &[0, 1, 0, 1]].concat();
    [&header[..], &question, &opt, &subnet].concat()
}

/// A query on its way: its octets, and what has become of it.
struct AskedQuery {
    peer: Peer,
    message: Vec<u8>,
    outcome: Outcome,
    buffer: Vec<u8>,
}

impl AskedQuery {
    /// Asks a query.
    fn new(engine: &mut Engine, transport: Transport, message: Vec<u8>) -> Self {
        let (peer, mut buffer) = (peer(transport), vec![0; 65_535]);
        buffer[..message.len()].copy_from_slice(&message);
        let outcome = engine.answer(NOW, &peer, &mut buffer, message.len());
        Self { peer, message, outcome, buffer }
    }

    /// Goes on with the query, which was deferred.
    fn resume(&mut self, engine: &mut Engine, resumption: Resumption<'_>) {
        let Outcome::Deferred(deferral) = self.outcome.clone() else { panic!("{}", self.told()) };
        self.message = deferral.octets.as_deref().unwrap_or(&self.message).to_vec();
        self.buffer[..self.message.len()].copy_from_slice(&self.message);
        let (peer, buffer, len) = (&self.peer, &mut self.buffer[..], self.message.len());
        assert_eq!(Query::parse(&self.message).unwrap(), deferral.query, "as its octets are read");
        let (history, query) = (&deferral.history, Some(&deferral.query));
        let waiting = DeferredQuery { peer, history, buffer, len, query };
        self.outcome = engine.resume(NOW, waiting, resumption);
    }

    /// Goes on with the reply of code elsewhere.
    fn supply(&mut self, engine: &mut Engine, reply: &HandlerReply) -> String {
        self.resume(engine, Resumption::Code(HandlerOutcome::Reply(reply)));
        self.told()
    }

    /// What has become of the query: response code, flags, and the records by section, or the name
    /// for which it waits.
    fn told(&self) -> String {
        let len = match &self.outcome {
            Outcome::Reply(len) => *len,
            Outcome::Silence => return "silence".into(),
            Outcome::Deferred(deferral) => {
                let octets = deferral.octets.as_deref().unwrap_or(&self.message);
                let asked = Message::parse(octets).unwrap();
                assert_eq!(asked.opt.unwrap().options.len(), 1, "the client's option");
                let name = &asked.questions[0].name;
                return match deferral.to {
                    To::Code(to) if to.handler == NO_HANDLER => format!("{name} for no handler"),
                    To::Code(to) => format!("{name} for {}", to.handler),
                    To::Forward(number) => format!("{name} for upstreams {number}"),
                    other => format!("{other:?}"),
                };
            }
        };
        let reply = Message::parse(&self.buffer[..len]).unwrap();
        let mut text = reply.rcode().to_string();
        for (bit, word) in [(flag::AA, " aa"), (flag::TC, " tc"), (flag::AD, " ad")] {
            text += if reply.has(bit) { word } else { "" };
        }
        for record in &reply.records {
            let section = ["", "auth ", "add "][record.section as usize];
            text += &format!("; {section}{} {}", record.owner, record.rtype);
            if record.rtype == Type::A {
                text += &format!(" {}", record.rdata[3]);
            }
        }
        text
    }

    /// The question of the reply, and whether it has an OPT record.
    fn question(&self) -> (String, bool) {
        let reply = Message::parse(&self.buffer[..self.outcome.reply_bytes()]).unwrap();
        assert_eq!((reply.id, reply.has(flag::RD)), (7, true));
        (reply.questions[0].name.to_string(), reply.opt.is_some())
    }
}

/// Asks for the addresses of a name over TCP.
fn asked(engine: &mut Engine, name: &str) -> AskedQuery {
    AskedQuery::new(engine, Transport::Tcp, query(name, false))
}

/// What becomes of a query for the addresses of a name.
fn ask(engine: &mut Engine, name: &str) -> String {
    asked(engine, name).told()
}

#[test]
fn the_answer_of_code_follows_an_alias_in_zone_data() {
    let mut engine = engine(vec![answers("code.example", 7), answers("*.test", 8)]);
    for (name, expected) in [
        ("to-code.example", "to-code.example. CNAME; code.example. A 7"),
        ("to-far.example", "to-far.example. CNAME; Far.Test. A 8"),
        ("x.tree.example", "tree.example. DNAME; x.tree.example. CNAME; x.tree.test. A 8"),
        ("x.wild.example", "x.wild.example. CNAME; far.test. A 8"),
    ] {
        let asked = asked(&mut engine, name);
        assert_eq!(asked.told(), format!("NOERROR aa; {expected}"));
        assert_eq!(asked.question(), (format!("{name}."), true));
    }
}

#[test]
fn a_chain_leads_through_code_and_zone_data_and_ends_where_it_does() {
    let mut engine = engine(vec![
        leads("one.chain.test", "two.chain.test"),
        leads("two.chain.test", "to-code.example"),
        leads("start.test", "to-chain.example"),
        answers("code.example", 7),
    ]);
    let chain = "one.chain.test. CNAME; two.chain.test. CNAME; to-code.example. CNAME; \
                 code.example. A 7";
    for (name, before) in [
        ("one.chain.test", String::new()),
        ("to-chain.example", "to-chain.example. CNAME; ".into()),
        ("start.test", "start.test. CNAME; to-chain.example. CNAME; ".into()),
    ] {
        assert_eq!(ask(&mut engine, name), format!("NOERROR aa; {before}{chain}"), "{name}");
    }
}

#[test]
fn a_chain_that_leads_to_one_of_its_names_ends_there() {
    let mut engine = engine(vec![
        leads("loop.test", "LOOP.test"),
        leads("c-loop.test", "a-loop.example"),
        leads("d.test", "e.test"),
        leads("e.test", "d.test"),
    ]);
    let loops = "a-loop.example. CNAME; b-loop.example. CNAME; c-loop.test. CNAME";
    assert_eq!(ask(&mut engine, "a-loop.example"), format!("NOERROR aa; {loops}"));
    assert_eq!(ask(&mut engine, "d.test"), "NOERROR aa; d.test. CNAME; e.test. CNAME");
    assert_eq!(ask(&mut engine, "loop.test"), "NOERROR aa; loop.test. CNAME");
    assert_eq!(
        ask(&mut engine, "to-loop.example"),
        "NOERROR aa; to-loop.example. CNAME; loop.test. CNAME"
    );
}

#[test]
fn a_chain_of_code_has_sixteen_aliases_at_most() {
    let calls = Arc::<AtomicU32>::default();
    let counted = Arc::clone(&calls);
    let counts = here(":number.count.test", move |asked, reply| {
        counted.fetch_add(1, Ordering::Relaxed);
        let number: u32 = String::from_utf8_lossy(asked.name().label(0)).parse().unwrap();
        alias(reply, &format!("{}.count.test", number + 1));
    });
    let mut engine = engine(vec![counts]);
    let told = ask(&mut engine, "to-number.example");
    assert_eq!(told.matches("CNAME").count(), 16, "{told}");
    assert!(told.starts_with("NOERROR aa") && told.ends_with("15.count.test. CNAME"), "{told}");
    assert_eq!(calls.load(Ordering::Relaxed), 15);
}

#[test]
fn the_response_code_is_that_of_the_target_and_aa_that_of_the_name_asked_for() {
    let denies =
        |rcode| move |_: &HandlerQuery<'_>, reply: &mut HandlerReply| reply.deny(rcode, Type::A);
    for (code, expected) in [
        (here("code.example", denies(Rcode::NXDOMAIN)), "NXDOMAIN aa; to-code.example. CNAME"),
        (here("code.example", denies(Rcode::NOERROR)), "NOERROR aa; to-code.example. CNAME"),
        (
            here("code.example", |_, reply| {
                reply.cache_negative(9);
                reply.nxdomain();
            }),
            "NXDOMAIN aa; to-code.example. CNAME; auth example. SOA",
        ),
        (here("code.example", |_, reply| reply.refused()), "REFUSED aa; to-code.example. CNAME"),
        (
            here("code.example", |_, reply| reply.servfail("")),
            "SERVFAIL aa; to-code.example. CNAME",
        ),
        (here("code.example", |_, _| panic!("told to")), "SERVFAIL aa; to-code.example. CNAME"),
        (here("code.example", |_, reply| reply.drop()), "silence"),
    ] {
        assert_eq!(ask(&mut engine(vec![code]), "to-code.example"), expected);
    }
    let unsure = here("code.test", |_, reply| {
        alias(reply, "code.example");
        reply.authoritative(false);
    });
    let mut engine = engine(vec![unsure, answers("code.example", 7)]);
    assert_eq!(ask(&mut engine, "code.test"), "NOERROR; code.test. CNAME; code.example. A 7");
}

/// Leaves a query as it is.
fn leaves(_: &HandlerQuery<'_>, _: &mut HandlerReply) {}

#[test]
fn what_code_passes_on_goes_on_as_a_query_for_the_target_does() {
    let routes = || vec![here("*", leaves), here("code.example", leaves)];
    let mut engine = engine(routes());
    for (name, expected) in [
        ("to-code.example", "NOERROR aa; to-code.example. CNAME; auth example. SOA"),
        ("to-far.example", "NOERROR aa; to-far.example. CNAME"), // no zone has it
        ("to-private.example", "NOERROR aa; to-private.example. CNAME"), // the client may not
        ("to-public.example", "NOERROR aa; to-public.example. CNAME"), // without cross-zone
        ("to-net.example", "to-net.example. for upstreams 7"),
    ] {
        assert_eq!(ask(&mut engine, name), expected);
    }
    let settings = Settings { cross_zone: true, ..Settings::default() };
    let mut engine = Setup { settings, ..Setup::of(routes()) }.engine();
    let followed = "NOERROR aa; to-public.example. CNAME; x.public.test. A 66";
    assert_eq!(ask(&mut engine, "to-public.example"), followed);
    assert_eq!(ask(&mut engine, "to-private.example"), "NOERROR aa; to-private.example. CNAME");
}

#[test]
fn a_less_specific_handler_and_then_upstreams_get_what_the_code_of_a_target_passes_on() {
    let mut engine = engine(vec![here("a.net.test", leaves), elsewhere("*.net.test", 4)]);
    let mut asked = asked(&mut engine, "to-net.example");
    assert_eq!(asked.told(), "a.net.test. for 4");
    assert_eq!(asked.supply(&mut engine, &HandlerReply::default()), "a.net.test. for upstreams 7");
    let body = b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x05";
    let fetched = UpstreamAnswer {
        name: b"\x01a\x03net\x04test\0",
        rcode: Rcode::NOERROR,
        counts: [1, 0, 0],
        body,
        is_authentic: true,
        goes_on: false,
        reason: Reason::Forwarded,
        text: b"",
    };
    asked.resume(&mut engine, Resumption::Upstream(&fetched));
    assert_eq!(asked.told(), "NOERROR aa; to-net.example. CNAME; a.net.test. A 5");
    assert_eq!(asked.question(), ("to-net.example.".into(), true));
}

#[test]
fn a_query_waits_for_code_elsewhere_and_gets_the_alias_with_what_that_says() {
    let mut engine = engine(vec![elsewhere("far.test", 5)]);
    let mut after = |outcome: HandlerOutcome<'_>| {
        let mut asked = asked(&mut engine, "To-Far.example");
        assert_eq!(asked.told(), "Far.Test. for 5");
        asked.resume(&mut engine, Resumption::Code(outcome));
        if let Outcome::Reply(_) = asked.outcome {
            assert_eq!(asked.question(), ("To-Far.example.".into(), true));
        }
        asked.told()
    };
    let replies: [(HandlerReply, &str); 5] = [
        (reply(|it| push(it, 8)), "NOERROR aa; To-Far.example. CNAME; Far.Test. A 8"),
        (reply(HandlerReply::nxdomain), "NXDOMAIN aa; To-Far.example. CNAME"),
        (reply(HandlerReply::refused), "REFUSED aa; To-Far.example. CNAME"),
        (reply(HandlerReply::drop), "silence"),
        (HandlerReply::default(), "NOERROR aa; To-Far.example. CNAME"), // no zone has it
    ];
    for (reply, expected) in &replies {
        assert_eq!(after(HandlerOutcome::Reply(reply)), *expected, "{:?}", reply.ending);
    }
    let late = HandlerOutcome::Failed(Reason::HandlerTimeout);
    assert_eq!(after(late), "SERVFAIL aa; To-Far.example. CNAME");
    assert_eq!(replies[4].0.ending, Ending::PassOn);
}

#[test]
fn a_query_waits_more_than_once_and_no_code_is_called_again_for_what_it_has_said() {
    let calls = Arc::<AtomicU32>::default();
    let counted = Arc::clone(&calls);
    let first = here("first.test", move |_, reply| {
        counted.fetch_add(1, Ordering::Relaxed);
        alias(reply, "one.chain.test");
    });
    let routes = vec![
        first,
        elsewhere("one.chain.test", 1),
        elsewhere("two.chain.test", 2),
        answers("code.example", 7),
    ];
    let mut engine = engine(routes);
    let mut asked = asked(&mut engine, "first.test");
    assert_eq!(asked.told(), "one.chain.test. for 1");
    let told = asked.supply(&mut engine, &reply(|it| alias(it, "two.chain.test")));
    assert_eq!(told, "two.chain.test. for 2");
    let told = asked.supply(&mut engine, &reply(|it| alias(it, "to-code.example")));
    let chain = "first.test. CNAME; one.chain.test. CNAME; two.chain.test. CNAME; \
                 to-code.example. CNAME; code.example. A 7";
    assert_eq!(told, format!("NOERROR aa; {chain}"));
    assert_eq!(asked.question(), ("first.test.".into(), true));
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[test]
fn no_such_answer_is_made_from_the_hot_table() {
    let calls = Arc::<AtomicU32>::default();
    let counted = Arc::clone(&calls);
    let code = here("code.example", move |_, reply| {
        push(reply, counted.fetch_add(1, Ordering::Relaxed) as u8);
    });
    let mut engine = engine(vec![code]);
    for number in 0..5 {
        let expected = format!("NOERROR aa; to-code.example. CNAME; code.example. A {number}");
        assert_eq!(ask(&mut engine, "to-code.example"), expected);
    }
}

#[test]
fn the_handler_cache_has_what_code_said_for_the_target_and_for_each_alias() {
    let calls = Arc::<AtomicU32>::default();
    let counted = Arc::clone(&calls);
    let code = here("code.example", move |_, reply| {
        push(reply, counted.fetch_add(1, Ordering::Relaxed) as u8);
        reply.cache(60, Vary::Nothing);
    });
    let kept = here("kept.test", |_, reply| {
        alias(reply, "code.example");
        reply.cache(60, Vary::Nothing);
    });
    let mut engine = engine(vec![code, kept]);
    for _ in 0..2 {
        for name in ["to-code.example", "kept.test"] {
            let expected = format!("NOERROR aa; {name}. CNAME; code.example. A 0");
            assert_eq!(ask(&mut engine, name), expected);
        }
        assert_eq!(ask(&mut engine, "code.example"), "NOERROR aa; code.example. A 0");
    }
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[test]
fn code_is_shown_a_query_for_the_target_with_the_options_of_the_client() {
    let code = here("code.example", |asked, reply| {
        let message = Query::parse(asked.message()).map_err(|(query, _)| query);
        let name = &asked.message()[12..usize::from(message.unwrap_or_else(|it| it).name_end)];
        assert_eq!((name, asked.name().as_wire()), (&b"\x04code\x07example\0"[..], name));
        assert_eq!(asked.options().count(), 1, "the client's");
        assert_eq!(asked.client().ip().to_string(), "192.0.2.99");
        push(reply, 7);
    });
    let mut engine = engine(vec![code]);
    let expected = "NOERROR aa; to-code.example. CNAME; code.example. A 7";
    assert_eq!(ask(&mut engine, "to-code.example"), expected);
}

#[test]
fn an_answer_that_is_too_large_for_udp_is_cut_off_whole_and_comes_over_tcp() {
    let code = || here("code.example", |_, reply| (0..100).for_each(|last| push(reply, last)));
    let mut engine = engine(vec![code()]);
    let over = |engine: &mut Engine, transport| {
        AskedQuery::new(engine, transport, query("to-code.example", false)).told()
    };
    assert!(over(&mut engine, Transport::Udp).starts_with("NOERROR aa tc"));
    assert_eq!(over(&mut engine, Transport::Tcp).matches(" A ").count(), 100);
}

/// Notes the names that it sees in the reply's tags.
struct Tells;

impl Stage for Tells {
    fn before(&self, asked: &HandlerQuery<'_>, reply: &mut HandlerReply) {
        reply.tag("before", asked.name());
    }

    fn after(&self, asked: &HandlerQuery<'_>, reply: &mut HandlerReply) {
        let before = reply.tags().map(|(_, name)| name.to_owned()).collect::<Vec<_>>();
        assert_eq!(before, [asked.name().to_string()], "it sees the name asked for alone");
        assert_eq!(reply.records().count(), 2, "it sees the whole reply");
        reply.push(Section::Additional, &[], (Type::A, 60), &[192, 0, 2, 9]).unwrap();
    }
}

#[test]
fn middleware_for_all_names_sees_the_query_and_the_whole_reply_once() {
    let routes = vec![answers("code.example", 7), elsewhere("far.test", 5)];
    let handlers = Handlers::new(routes, vec![Arc::new(Tells)], None, SEED);
    let mut engine = Setup { handlers, ..Setup::of(Vec::new()) }.engine();
    let whole = "NOERROR aa; to-code.example. CNAME; code.example. A 7; add to-code.example. A 9";
    assert_eq!(ask(&mut engine, "to-code.example"), whole);
    let mut asked = asked(&mut engine, "to-far.example");
    assert_eq!(
        asked.supply(&mut engine, &reply(|it| push(it, 8))),
        "NOERROR aa; to-far.example. CNAME; Far.Test. A 8; add to-far.example. A 9"
    );
}

#[test]
fn a_target_that_guards_in_the_worker_are_for_is_left_to_the_client() {
    let guard = Guard::Here(Arc::new(Tells));
    let guards = vec![Route { pattern: "guarded.test".parse().unwrap(), handler: guard }];
    let setup = Setup::of(vec![answers("guarded.test", 7)]);
    let handlers = setup.handlers.with_guards(guards, SEED);
    let mut engine = Setup { handlers, ..Setup::of(Vec::new()) }.engine();
    assert_eq!(ask(&mut engine, "to-guarded.example"), "NOERROR aa; to-guarded.example. CNAME");
}

#[test]
fn a_target_passes_middleware_elsewhere_as_a_query_for_it_does() {
    let routes = vec![elsewhere("far.test", 5)];
    let handlers = Handlers::new(routes, Vec::new(), Some(3), SEED);
    let mut engine = Setup { handlers, ..Setup::of(Vec::new()) }.engine();
    let mut asked = asked(&mut engine, "to-far.example");
    assert_eq!(asked.told(), "to-far.example. for no handler");
    assert_eq!(asked.supply(&mut engine, &HandlerReply::default()), "Far.Test. for 5");
    assert_eq!(
        asked.supply(&mut engine, &reply(|it| push(it, 8))),
        "NOERROR aa; to-far.example. CNAME; Far.Test. A 8"
    );
}

#[test]
fn the_alias_of_a_signed_zone_keeps_its_signatures_and_the_answer_of_code_has_none() {
    let signed = |owner: &str, covered: &str| {
        format!("{owner} RRSIG {covered} 15 2 60 20380101000000 20200101000000 1 example. AAAA\n")
    };
    let zone = format!(
        "$TTL 60\n@ SOA a a 1 2 3 4 5\n{}@ NS a\n{}@ DNSKEY 256 3 15 AAAA\n\
         to-code CNAME code\n{}",
        signed("@", "SOA"),
        signed("@", "NS"),
        signed("to-code", "CNAME"),
    );
    let mut engine = Setup::of(vec![answers("code.example", 7)]).engine_over(&zone);
    let told = AskedQuery::new(&mut engine, Transport::Tcp, query("to-code.example", true)).told();
    let records = "to-code.example. CNAME; to-code.example. RRSIG; code.example. A 7";
    assert_eq!(told, format!("NOERROR aa; {records}"));
    let told = AskedQuery::new(&mut engine, Transport::Tcp, query("to-code.example", false)).told();
    assert_eq!(told, "NOERROR aa; to-code.example. CNAME; code.example. A 7");
}

#[test]
fn the_answer_of_code_follows_the_alias_of_a_template() {
    let template = Template {
        scopes: vec![Scope { zone: "made.test".parse().unwrap(), except: Vec::new() }],
        qtype: None,
        patterns: Vec::new(),
        answer: vec!["{{ .Name }} 60 IN CNAME far.test.".into()],
        authority: Vec::new(),
        additional: Vec::new(),
        rcode: Rcode::NOERROR,
        error: None,
        fall_through: FallThrough::No,
        listeners: Vec::new(),
    };
    let templates = Some(Arc::new(Templates::new(vec![template]).unwrap()));
    let settings = Settings { templates, ..Settings::default() };
    let mut engine = Setup { settings, ..Setup::of(vec![elsewhere("far.test", 5)]) }.engine();
    let mut asked = asked(&mut engine, "a.made.test");
    assert_eq!(asked.told(), "far.test. for 5");
    assert_eq!(
        asked.supply(&mut engine, &reply(|it| push(it, 8))),
        "NOERROR aa; a.made.test. CNAME; far.test. A 8"
    );
}

/// A pool of two members, of which it chooses one by the client's network, that are both an alias
/// of `far.test` for `pool.example`.
fn steering() -> Steering {
    let target: Name = "far.test".parse().unwrap();
    let member = |identity| Member { identity, weight: 1, priority: 1, pool: None, site: None };
    let rdatas = vec![Some(target.as_wire().into()); 2];
    let pool = Pool {
        members: vec![member(1), member(2)],
        filters: Vec::new(),
        order: Order::HashClient { v4: 20, v6: 48 },
        answers: Answers::Some(1),
        when_all_down: WhenAllDown::ServFail,
        records: vec![Records { rtype: Type::CNAME, rdatas }],
    };
    let [name, zone] = ["pool.example", "example"].map(|name| name.parse().unwrap());
    let set = SteeredSet { name, zone, rtype: Type::CNAME, pool: 0 };
    let pools = vec![Arc::new(pool.compile(&[MemberState::UP; 2], 30, None))];
    Steering { names: Arc::new(SteeredNames::new(&[set], SEED)), pools: pools.into(), labels: None }
}

#[test]
fn the_answer_of_code_follows_the_alias_that_a_pool_has_chosen() {
    let steering = Some(Arc::new(steering()));
    let setup = Setup::of(vec![elsewhere("far.test", 5)]);
    let mut engine = Setup { steering, ..setup }.engine();
    let mut asked = asked(&mut engine, "pool.example");
    assert_eq!(asked.told(), "far.test. for 5");
    assert_eq!(
        asked.supply(&mut engine, &reply(|it| push(it, 8))),
        "NOERROR aa; pool.example. CNAME; far.test. A 8"
    );
    let reply = Message::parse(&asked.buffer[..asked.outcome.reply_bytes()]).unwrap();
    let (code, subnet) = &reply.opt.unwrap().options[0];
    assert_eq!((*code, subnet[3]), (8, 20), "the alias is one for the network that it is told for");
}

#[test]
fn a_query_that_waits_for_a_target_can_be_turned_into_the_one_of_its_client() {
    let mut engine = engine(vec![elsewhere("far.test", 5)]);
    let asked = asked(&mut engine, "to-far.example");
    let Outcome::Deferred(deferral) = &asked.outcome else { panic!("{}", asked.told()) };
    let mut octets = deferral.octets.as_deref().unwrap().to_vec();
    assert_ne!(octets, asked.message);
    let prelude = deferral.history.prelude.as_ref().unwrap();
    let question_end = prelude.restore_query(&mut octets);
    assert_eq!(octets, asked.message);
    assert_eq!(question_end, Query::parse(&asked.message).unwrap().question_end());
}

#[test]
fn code_is_shown_the_options_of_the_client_also_behind_what_has_waited() {
    let routes = vec![elsewhere("one.chain.test", 1), elsewhere("two.chain.test", 2)];
    let (mut engine, mut message) = (engine(routes), query("to-chain.example", false));
    let data_bytes = message.len() - 12;
    assert_eq!(message[data_bytes], 11, "of the options, the subnet's alone");
    message[data_bytes] += 5;
    message.extend(b"\xfd\xe9\0\x01x"); // one that this server knows nothing of
    let mut asked = AskedQuery::new(&mut engine, Transport::Tcp, message);
    let leads = reply(|it| alias(it, "two.chain.test"));
    asked.resume(&mut engine, Resumption::Code(HandlerOutcome::Reply(&leads)));
    let Outcome::Deferred(deferral) = &asked.outcome else { panic!("{}", asked.told()) };
    let shown = Message::parse(deferral.octets.as_deref().unwrap()).unwrap();
    let codes: Vec<u16> = shown.opt.unwrap().options.iter().map(|(code, _)| *code).collect();
    assert_eq!(
        (shown.questions[0].name.to_string(), codes),
        ("two.chain.test.".into(), vec![8, 65_001])
    );
}

#[test]
fn an_alias_that_code_gives_again_is_not_followed_again() {
    let calls = Arc::<AtomicU32>::default();
    let counted = Arc::clone(&calls);
    let again = |reply: &mut HandlerReply| {
        let [owner, target] = ["x.test", "again.test"].map(|it| it.parse::<Name>().unwrap());
        let fixed = (Type::CNAME, 60);
        reply.push(Section::Answer, owner.as_wire(), fixed, target.as_wire()).unwrap();
        reply.reply(Rcode::NOERROR);
    };
    let here = here("again.test", move |_, reply| {
        counted.fetch_add(1, Ordering::Relaxed);
        again(reply);
    });
    let told = "NOERROR aa; first.test. CNAME; x.test. CNAME";
    let first = || leads("first.test", "again.test");
    assert_eq!(ask(&mut engine(vec![first(), here]), "first.test"), told);
    assert_eq!(calls.load(Ordering::Relaxed), 2);

    let mut engine = engine(vec![first(), elsewhere("again.test", 4)]);
    let mut asked = asked(&mut engine, "first.test");
    let given = reply(again);
    assert_eq!(asked.supply(&mut engine, &given), "again.test. for 4");
    assert_eq!(asked.supply(&mut engine, &given), told);
}

#[test]
fn a_target_behind_a_long_beginning_is_left_to_the_client_where_it_would_have_to_wait() {
    let long = here("long.test", |_, reply| {
        for number in 0..20 {
            let owner: Name = format!("{number}{}.test", "x".repeat(50)).parse().unwrap();
            reply.push(Section::Answer, owner.as_wire(), (Type::TXT, 60), b"\x01x").unwrap();
        }
        alias(reply, "far.test");
    });
    let mut engine = engine(vec![long, elsewhere("far.test", 5)]);
    let told = ask(&mut engine, "long.test");
    assert!(told.ends_with("; long.test. CNAME") && told.matches(" TXT").count() == 20, "{told}");
}

#[test]
fn a_rewritten_query_that_waits_for_a_target_is_answered_with_the_clients_names() {
    let name = Some(NameMatch { kind: MatchKind::Suffix, text: ".old".to_owned() });
    let to = Some(".example".to_owned());
    let rule = RewriteRule { name, to, maps_back: true, ..RewriteRule::new() };
    let rewrites = Some(Arc::new(RewriteRules::new(vec![rule]).unwrap()));
    let settings = Settings { rewrites, ..Settings::default() };
    let mut engine = Setup { settings, ..Setup::of(vec![elsewhere("far.test", 5)]) }.engine();
    let mut asked = asked(&mut engine, "to-far.old");
    assert_eq!(asked.told(), "Far.Test. for 5");
    assert_eq!(
        asked.supply(&mut engine, &reply(|it| push(it, 8))),
        "NOERROR aa; to-far.old. CNAME; Far.Test. A 8"
    );
    assert_eq!(asked.question(), ("to-far.old.".into(), true));
}

#[test]
fn what_code_asks_to_see_below_it_has_the_answer_for_the_target_too() {
    let mut engine = engine(vec![answers("code.example", 7)]);
    let (query, mut buffer) = (query("to-code.example", false), vec![0; 65_535]);
    buffer[..query.len()].copy_from_slice(&query);
    let outcome = engine.answer_below(NOW, &peer(Transport::Tcp), &mut buffer, query.len());
    let below = AskedQuery { peer: peer(Transport::Tcp), message: query, outcome, buffer };
    assert_eq!(below.told(), "NOERROR aa; to-code.example. CNAME; code.example. A 7");
    assert!(engine.take_facts().is_some_and(|facts| facts.counts == [2, 0, 0]));
}
