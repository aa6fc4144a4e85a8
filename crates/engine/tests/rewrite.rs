//! Rules that change questions, and templates: queries and replies in octets, without sockets.
#![allow(clippy::unwrap_used)]

use arc_swap::ArcSwap;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex};
use zonda_cache::Cache;
use zonda_engine::access::{Access, AccessList};
use zonda_engine::zones::{Forward, Source, ZoneEntry, ZoneTable};
use zonda_engine::{
    Batch, Checkpoint, Deferral, DeferredQuery, Engine, Event, Now, Outcome, Peer, Reason,
    Resumption, Settings, Snapshot, Transport, UpstreamAnswer,
};
use zonda_rewrite::{
    FallThrough, MatchKind, NameMatch, Replacement, RewriteRule, RewriteRules, Scope, Template,
    Templates,
};
use zonda_wire::message::Message;
use zonda_wire::query::flag;
use zonda_wire::rdata::Presentation;
use zonda_wire::{Name, Query, Rcode, Type};
use zonda_zone::{HashSeed, build, file};

const SEED: HashSeed = HashSeed(1);
const NOW: Now = Now::new(1, 1);

/// A rule for names.
fn rule(kind: MatchKind, text: &str, to: &str) -> RewriteRule {
    let name = Some(NameMatch { kind, text: text.to_owned() });
    RewriteRule { name, to: Some(to.to_owned()), maps_back: true, ..RewriteRule::new() }
}

/// Makes an engine with data of `new`, which forwards `net`.
fn engine(rules: Vec<RewriteRule>, templates: Vec<Template>) -> Engine {
    let rewrites = RewriteRules::new(rules).unwrap();
    engine_with(Settings {
        rewrites: Some(Arc::new(rewrites)),
        templates: Some(Arc::new(Templates::new(templates).unwrap())),
        ..Settings::default()
    })
}

/// Makes an engine with the same zones and with these settings.
fn engine_with(settings: Settings) -> Engine {
    let mut text = "$TTL 60\n@ SOA a a 1 2 3 4 5\n@ NS a\na A 192.0.2.1\nalias CNAME a\n\
        mx MX 5 a\nv4 A 192.0.2.4\n@ DNSKEY 257 3 13 AAAA\n\
        sig A 192.0.2.5\nsig RRSIG A 13 2 60 20380101000000 20200101000000 1 new. AAAA\n"
        .to_owned();
    writeln!(text, "cn CNAME bbb.{0}.new.", "b".repeat(63)).unwrap();
    for number in 0..60 {
        writeln!(text, "many A 192.0.2.{number}").unwrap();
    }
    let apex: Name = "new".parse().unwrap();
    let options = file::Options::default();
    let (records, _) = file::read_text(text.as_bytes(), Path::new("zone"), &apex, &options);
    let data = Source::Data(Arc::new(build(&apex, &records, SEED).unwrap()));
    let cache = Arc::new(Cache::new(1 << 20));
    let forward =
        Forward { number: 7, cache, options: None, nxdomain_cut: true, overlays: Vec::new() };
    let net: Name = "net".parse().unwrap();
    let entries = [(apex, data), (net, Source::Forward(Arc::new(forward)))];
    let entry = |(number, (apex, source))| Arc::new(ZoneEntry::new(apex, source, None, number));
    let snapshot = Snapshot {
        settings: Arc::new(settings),
        ..Snapshot::of(ZoneTable::new((0..).zip(entries).map(entry).collect(), SEED))
    };
    Engine::new(Arc::new(ArcSwap::from_pointee(snapshot)), Arc::default())
}

/// A client over a transport.
fn peer(transport: Transport) -> Peer {
    Peer::new(([127, 0, 0, 1], 5300).into(), transport, 0)
}

/// The octets of a query, with an OPT record for 512 octets.
fn query(name: &str, qtype: Type) -> Vec<u8> {
    let name: Name = name.parse().unwrap();
    let header = [7_u16, flag::RD, 1, 0, 0, 1].map(u16::to_be_bytes).concat();
    let opt = [0, 0, 41, 2, 0, 0, 0, 0, 0, 0, 0];
    [&header, name.as_wire(), &qtype.0.to_be_bytes(), &[0, 1], &opt].concat()
}

/// A reply in words: question, response code, flags and records.
fn told(reply: &[u8]) -> String {
    let reply = Message::parse(reply).unwrap();
    let question = &reply.questions[0];
    let mut text = format!("{} {} {}", question.name, question.qtype, reply.rcode());
    for (bit, word) in [(flag::AA, " aa"), (flag::TC, " tc"), (flag::RA, " ra")] {
        text += if reply.has(bit) { word } else { "" };
    }
    for record in &reply.records {
        let data = Presentation { rtype: record.rtype, rdata: &record.rdata };
        write!(text, "; {} {} {} {data}", record.owner, record.ttl, record.rtype).unwrap();
    }
    assert!(reply.opt.is_some(), "the client has one");
    assert!(reply.has(flag::RD) && reply.id == 7);
    text
}

/// What becomes of a query over a transport.
fn ask_over(transport: Transport, engine: &mut Engine, name: &str, qtype: Type) -> String {
    let (query, mut buffer) = (query(name, qtype), vec![0; 65_535]);
    buffer[..query.len()].copy_from_slice(&query);
    match engine.answer(NOW, &peer(transport), &mut buffer, query.len()) {
        Outcome::Reply(len) => told(&buffer[..len]),
        outcome => format!("{outcome:?}"),
    }
}

/// What becomes of a query over UDP.
fn ask(engine: &mut Engine, name: &str, qtype: Type) -> String {
    ask_over(Transport::Udp, engine, name, qtype)
}

#[test]
fn the_reply_has_the_clients_question_and_its_names_also_from_the_hot_table() {
    let mut engine = engine(vec![rule(MatchKind::Suffix, ".old.example", ".new")], Vec::new());
    for _ in 0..4 {
        assert_eq!(
            ask(&mut engine, "A.Old.example", Type::A),
            "A.Old.example. A NOERROR aa; A.Old.example. 60 A 192.0.2.1"
        );
        assert_eq!(
            ask(&mut engine, "alias.old.example", Type::A),
            "alias.old.example. A NOERROR aa; alias.old.example. 60 CNAME a.old.example.; \
             a.old.example. 60 A 192.0.2.1"
        );
        assert_eq!(
            ask(&mut engine, "mx.old.example", Type::MX),
            "mx.old.example. MX NOERROR aa; mx.old.example. 60 MX 5 a.old.example.; \
             a.old.example. 60 A 192.0.2.1"
        );
        assert_eq!(
            ask(&mut engine, "none.old.example", Type::A),
            "none.old.example. A NXDOMAIN aa; new. 5 SOA a.old.example. a.new. 1 2 3 4 5"
        );
        assert_eq!(
            ask(&mut engine, "a.new", Type::A),
            "a.new. A NOERROR aa; a.new. 60 A 192.0.2.1"
        );
    }
}

#[test]
fn rules_go_on_where_they_do_not_stop_and_are_undone_in_reverse() {
    let mut first = rule(MatchKind::Exact, "one.test", "two.test");
    first.goes_on = true;
    let mut ttl = RewriteRule { ttl: Some((300, 400)), goes_on: true, ..RewriteRule::new() };
    ttl.name = Some(NameMatch { kind: MatchKind::Prefix, text: "two.".to_owned() });
    let second = rule(MatchKind::Regex, r"^two\.(test)\.$", "a.new.");
    let never = rule(MatchKind::Exact, "a.new", "v4.new");
    let mut engine = engine(vec![first, ttl, second, never], Vec::new());
    assert_eq!(
        ask(&mut engine, "one.test", Type::A),
        "one.test. A NOERROR aa; one.test. 300 A 192.0.2.1"
    );
    assert_eq!(
        ask(&mut engine, "two.test", Type::A),
        "two.test. A NOERROR aa; two.test. 300 A 192.0.2.1"
    );
    assert_eq!(ask(&mut engine, "a.new", Type::A), "a.new. A NOERROR aa; a.new. 60 A 192.0.2.4");
}

#[test]
fn types_codes_flags_and_names_of_replies_change_as_a_rule_says() {
    let mut typed = RewriteRule { qtype: Some(Type::AAAA), ..RewriteRule::new() };
    (typed.to_type, typed.clear_flags, typed.set_flags) = (Some(Type::A), flag::AA, flag::RA);
    let mut failing = RewriteRule { qtype: Some(Type::TXT), ..RewriteRule::new() };
    failing.rcode = Some((Rcode::NXDOMAIN, Rcode::NOERROR));
    let mut mapped = rule(MatchKind::Exact, "m.test", "mx.new");
    let replacement =
        |pattern: &str, to: &str| Replacement { pattern: pattern.to_owned(), to: to.to_owned() };
    mapped.maps_back = false;
    mapped.owners = vec![replacement(r"^mx\.(.*)\.$", "m.{1}.changed")];
    mapped.targets = vec![replacement(r"^a\.new\.$", "b.new")];
    let mut engine = engine(vec![typed, failing, mapped], Vec::new());
    assert_eq!(
        ask(&mut engine, "v4.new", Type::AAAA),
        "v4.new. AAAA NOERROR ra; v4.new. 60 A 192.0.2.4"
    );
    assert_eq!(
        ask(&mut engine, "none.new", Type::TXT),
        "none.new. TXT NOERROR aa; new. 5 SOA a.new. a.new. 1 2 3 4 5"
    );
    assert_eq!(
        ask(&mut engine, "m.test", Type::MX),
        "m.test. MX NOERROR aa; m.new.changed. 60 MX 5 b.new.; a.new. 60 A 192.0.2.1"
    );
}

#[test]
fn a_name_that_becomes_none_is_servfail_and_a_reply_that_grows_too_long_is_truncated() {
    let long = format!("{}.", "a".repeat(60)).repeat(4);
    let rules = vec![
        rule(MatchKind::Prefix, "long.", &long),
        rule(MatchKind::Suffix, ".a-name-that-is-longer-than-the-other-one.test", ".new"),
    ];
    let mut engine = engine(rules, Vec::new());
    let name = "long.a-name-that-is-longer.test";
    assert_eq!(ask(&mut engine, name, Type::A), format!("{name}. A SERVFAIL"));
    let name = "many.a-name-that-is-longer-than-the-other-one.test";
    assert_eq!(ask(&mut engine, name, Type::A), format!("{name}. A NOERROR aa tc"));
    let whole = ask_over(Transport::Tcp, &mut engine, name, Type::A);
    assert_eq!(whole.matches(&format!("; {name}. 60 A 192.0.2.")).count(), 60, "{whole}");
}

#[test]
fn a_query_that_waits_for_upstreams_waits_with_its_new_question() {
    let mut engine = engine(vec![rule(MatchKind::Suffix, ".old.example", ".net")], Vec::new());
    let asked = query("WWW.old.example", Type::A);
    let mut buffer = vec![0; 1232];
    buffer[..asked.len()].copy_from_slice(&asked);
    let outcome = engine.answer(NOW, &peer(Transport::Udp), &mut buffer, asked.len());
    let Outcome::Deferred(Deferral { query: read, octets: Some(octets), history, .. }) = outcome
    else {
        panic!("{outcome:?}");
    };
    assert_eq!(octets[..], query("www.net", Type::A));
    assert_eq!(Query::parse(&octets).unwrap(), read);
    let (is_authentic, goes_on, text, name) = (true, false, &b""[..], &b"\x03www\x03net\0"[..]);
    let (rcode, counts, reason) = (Rcode::NOERROR, [1, 0, 0], Reason::Forwarded);
    let body = &b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x07"[..];
    let answer = UpstreamAnswer { name, rcode, is_authentic, counts, body, goes_on, reason, text };
    buffer[..octets.len()].copy_from_slice(&octets);
    let (peer, len) = (&peer(Transport::Udp), octets.len());
    let waiting =
        DeferredQuery { query: Some(&read), peer, history: &history, buffer: &mut buffer, len };
    let len = engine.resume(NOW, waiting, Resumption::Upstream(&answer)).reply_bytes();
    assert_eq!(
        told(&buffer[..len]),
        "WWW.old.example. A NOERROR ra; WWW.old.example. 60 A 192.0.2.7"
    );
    assert!(
        !Message::parse(&buffer[..len]).unwrap().has(flag::AD),
        "it was asked for another name"
    );
}

#[test]
fn a_reply_with_another_type_or_code_is_not_authentic() {
    let by_type = RewriteRule { to_type: Some(Type::A), ..RewriteRule::new() };
    let by_code =
        RewriteRule { rcode: Some((Rcode::NOERROR, Rcode::NXDOMAIN)), ..RewriteRule::new() };
    for rule in [by_type, by_code] {
        let mut engine = engine(vec![rule], Vec::new());
        let mut asked = query("a.net", Type::AAAA);
        asked[3] |= flag::AD as u8; // AD is told to clients that ask for it (rfc6840#5.7)
        let mut buffer = vec![0; 1232];
        buffer[..asked.len()].copy_from_slice(&asked);
        let outcome = engine.answer(NOW, &peer(Transport::Udp), &mut buffer, asked.len());
        let Outcome::Deferred(Deferral { query: read, octets, history, .. }) = outcome else {
            panic!("{outcome:?}");
        };
        let octets = octets.map_or(asked, Vec::from);
        let (is_authentic, goes_on, text, name) = (true, false, &b""[..], &b"\x01a\x03net\0"[..]);
        let (rcode, counts, reason) = (Rcode::NOERROR, [0, 0, 0], Reason::Forwarded);
        let answer =
            UpstreamAnswer { name, rcode, is_authentic, counts, body: &[], goes_on, reason, text };
        buffer[..octets.len()].copy_from_slice(&octets);
        let (peer, len) = (&peer(Transport::Udp), octets.len());
        let waiting =
            DeferredQuery { query: Some(&read), peer, history: &history, buffer: &mut buffer, len };
        let len = engine.resume(NOW, waiting, Resumption::Upstream(&answer)).reply_bytes();
        let message = Message::parse(&buffer[..len]).unwrap();
        assert!(!message.has(flag::AD), "no signature covers the type or the code");
    }
}

#[test]
fn templates_answer_before_zones_and_see_the_new_name() {
    let scope = Scope { zone: "new".parse().unwrap(), except: Vec::new() };
    let template = Template {
        scopes: vec![scope],
        qtype: Some(Type::A),
        patterns: vec![r"^ip-([0-9]+)\.new\.$".to_owned()],
        answer: vec!["{{ .Name }} 5 IN A 192.0.2.{{ index .Match 1 }}".to_owned()],
        authority: Vec::new(),
        additional: Vec::new(),
        rcode: Rcode::NOERROR,
        error: None,
        fall_through: FallThrough::Zones(vec!["a.new".parse().unwrap()]),
        listeners: Vec::new(),
    };
    let rules = vec![rule(MatchKind::Suffix, ".old", ".new")];
    let mut engine = engine(rules, vec![template]);
    for (name, qtype, expected) in [
        ("ip-9.old", Type::A, "NOERROR aa; ip-9.old. 5 A 192.0.2.9"),
        ("ip-9.new", Type::A, "NOERROR aa; ip-9.new. 5 A 192.0.2.9"),
        ("ip-999.new", Type::A, "SERVFAIL"),
        ("a.new", Type::A, "NOERROR aa; a.new. 60 A 192.0.2.1"),
        ("v4.new", Type::A, "SERVFAIL"),
        ("v4.new", Type::MX, "NOERROR aa; new. 5 SOA a.new. a.new. 1 2 3 4 5"),
    ] {
        assert_eq!(ask(&mut engine, name, qtype), format!("{name}. {qtype} {expected}"));
    }
}

/// A template that makes each name in `tpl` an alias of what its first label says: `.` for `-`.
fn alias_template() -> Template {
    Template {
        scopes: vec![Scope { zone: "tpl".parse().unwrap(), except: Vec::new() }],
        qtype: None,
        patterns: vec![r"^([a-z]+)-([a-z]+)\.tpl\.$".to_owned()],
        answer: vec![
            "{{ .Name }} 5 IN CNAME {{ index .Match 1 }}.{{ index .Match 2 }}.".to_owned(),
        ],
        authority: Vec::new(),
        additional: Vec::new(),
        rcode: Rcode::NOERROR,
        error: None,
        fall_through: FallThrough::No,
        listeners: Vec::new(),
    }
}

#[test]
fn an_alias_that_a_template_makes_is_followed_into_zones() {
    let mut engine = engine(Vec::new(), vec![alias_template()]);
    for (name, qtype, expected) in [
        ("a-new.tpl", Type::A, "5 CNAME a.new.; a.new. 60 A 192.0.2.1"),
        (
            "alias-new.tpl",
            Type::A,
            "5 CNAME alias.new.; alias.new. 60 CNAME a.new.; a.new. 60 A 192.0.2.1",
        ),
        ("a-new.tpl", Type::AAAA, "5 CNAME a.new.; new. 5 SOA a.new. a.new. 1 2 3 4 5"),
        ("a-new.tpl", Type::MX, "5 CNAME a.new."),
        ("a-org.tpl", Type::A, "5 CNAME a.org."),
    ] {
        let given = ask(&mut engine, name, qtype);
        assert_eq!(given, format!("{name}. {qtype} NOERROR aa; {name}. {expected}"));
    }
    assert_eq!(
        ask(&mut engine, "none-new.tpl", Type::A),
        "none-new.tpl. A NXDOMAIN aa; none-new.tpl. 5 CNAME none.new.; \
         new. 5 SOA a.new. a.new. 1 2 3 4 5"
    );
}

#[test]
fn an_alias_that_a_template_makes_is_fetched_from_upstreams() {
    let mut engine = engine(Vec::new(), vec![alias_template()]);
    let asked = query("www-net.tpl", Type::A);
    let mut buffer = vec![0; 1232];
    buffer[..asked.len()].copy_from_slice(&asked);
    let outcome = engine.answer(NOW, &peer(Transport::Udp), &mut buffer, asked.len());
    let Outcome::Deferred(Deferral { query: read, is_alias: true, history, .. }) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(buffer[..asked.len()], asked, "a query that waits is left as it was");
    let target = history.checkpoint.as_ref().and_then(Checkpoint::target);
    assert_eq!(target, Some(&b"\x03www\x03net\0"[..]));
    let (is_authentic, goes_on, text) = (true, false, &b""[..]);
    let (rcode, counts, reason) = (Rcode::NOERROR, [1, 0, 0], Reason::Forwarded);
    let body = &b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x07"[..];
    for (name, expected) in [
        (
            &b"\x03www\x03net\0"[..],
            " aa ra; www-net.tpl. 5 CNAME www.net.; www.net. 60 A 192.0.2.7",
        ),
        // The template has changed meanwhile.
        (&b"\x03old\x03net\0"[..], " aa; www-net.tpl. 5 CNAME www.net."),
    ] {
        let answer =
            UpstreamAnswer { name, rcode, is_authentic, counts, body, goes_on, reason, text };
        buffer[..asked.len()].copy_from_slice(&asked);
        let (peer, len) = (&peer(Transport::Udp), asked.len());
        let waiting =
            DeferredQuery { query: Some(&read), peer, history: &history, buffer: &mut buffer, len };
        let len = engine.resume(NOW, waiting, Resumption::Upstream(&answer)).reply_bytes();
        assert_eq!(told(&buffer[..len]), format!("www-net.tpl. A NOERROR{expected}"));
    }
}

#[test]
fn why_upstreams_have_failed_is_told_of_an_alias_that_a_template_makes() {
    let told = Template { error: Some((4, "forged".to_owned())), ..alias_template() };
    for template in [alias_template(), told] {
        let mut engine = engine(Vec::new(), vec![template]);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        engine.add_observer(Box::new(move |event: &Event<'_>| {
            noted.lock().unwrap().push(event.reason);
        }));
        let asked = query("www-net.tpl", Type::A);
        let mut buffer = vec![0; 1232];
        buffer[..asked.len()].copy_from_slice(&asked);
        let outcome = engine.answer(NOW, &peer(Transport::Udp), &mut buffer, asked.len());
        let Outcome::Deferred(Deferral { query: read, history, .. }) = outcome else {
            panic!("{outcome:?}");
        };
        let answer = UpstreamAnswer {
            name: b"\x03www\x03net\0",
            rcode: Rcode::SERVFAIL,
            is_authentic: false,
            counts: [0; 3],
            body: b"",
            goes_on: false,
            reason: Reason::UpstreamTimeout,
            text: b"192.0.2.1: timed out",
        };
        buffer[..asked.len()].copy_from_slice(&asked);
        let (peer, len) = (&peer(Transport::Udp), asked.len());
        let waiting =
            DeferredQuery { query: Some(&read), peer, history: &history, buffer: &mut buffer, len };
        let len = engine.resume(NOW, waiting, Resumption::Upstream(&answer)).reply_bytes();
        let reply = Message::parse(&buffer[..len]).unwrap();
        assert_eq!(reply.rcode(), Rcode::SERVFAIL);
        let error = reply.opt.as_ref().and_then(|opt| opt.option(15)).unwrap();
        assert_eq!(error, [&[0, 22][..], b"192.0.2.1: timed out"].concat(), "no authority");
        assert_eq!(seen.lock().unwrap().pop(), Some(Reason::UpstreamTimeout));
    }
}

#[test]
fn a_client_that_the_listener_refuses_causes_no_work_of_rules() {
    let rcode = Some((Rcode::REFUSED, Rcode::NXDOMAIN));
    let by_code = RewriteRule { rcode, goes_on: true, ..RewriteRule::new() };
    let rules = vec![by_code, rule(MatchKind::Suffix, ".old.example", ".new")];
    let settings = Settings {
        rewrites: Some(Arc::new(RewriteRules::new(rules).unwrap())),
        listener_access: vec![Some(AccessList {
            rules: vec![],
            otherwise: Access::Refuse,
            ..AccessList::open()
        })],
        ..Settings::default()
    };
    let mut engine = engine_with(settings);
    assert_eq!(ask(&mut engine, "A.old.example", Type::A), "A.old.example. A REFUSED");
}

#[test]
fn observers_and_counters_see_the_reply_that_is_sent() {
    let mut by_code =
        RewriteRule { rcode: Some((Rcode::NXDOMAIN, Rcode::NOERROR)), ..RewriteRule::new() };
    by_code.goes_on = true;
    let ending = ".a-name-that-is-longer-than-the-other-one.test";
    let mut engine = engine(vec![by_code, rule(MatchKind::Suffix, ending, ".new")], Vec::new());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&seen);
    engine.add_observer(Box::new(move |event: &Event<'_>| {
        told.lock().unwrap().push((event.rcode.unwrap(), event.reply_bytes));
    }));
    for name in ["none", "many"] {
        let query = query(&format!("{name}{ending}"), Type::A);
        let mut buffer = vec![0; 1232];
        buffer[..query.len()].copy_from_slice(&query);
        let len = engine.answer(NOW, &peer(Transport::Udp), &mut buffer, query.len()).reply_bytes();
        assert_eq!(seen.lock().unwrap().pop(), Some((Rcode::NOERROR, len)), "{name}");
    }
    assert_eq!(engine.counters().truncated.get(), 1, "it grew too long only when it was changed");
}

/// Two messages that were received together, and how often the engine may look at them before the
/// batch panics once.
struct Pair<'a>(&'a mut [(Vec<u8>, usize); 2], usize);

impl Batch for Pair<'_> {
    fn len(&self) -> usize {
        2
    }

    fn get(&mut self, index: usize) -> zonda_engine::Message<'_> {
        self.1 = self.1.wrapping_sub(1);
        assert!(self.1 != 0, "a batch that fails");
        let (buffer, len) = &mut self.0[index];
        zonda_engine::Message { peer: peer(Transport::Udp), buffer, len }
    }

    fn defer(&mut self, _: usize, _: Deferral) {}
}

#[test]
fn after_a_panic_each_message_has_the_question_of_its_client_again() {
    let mut engine = engine(vec![rule(MatchKind::Suffix, ".old", ".quite.new")], Vec::new());
    let asked = ["one.old", "two.old"].map(|name| query(name, Type::A));
    let mut messages = asked.clone().map(|it| {
        let len = it.len();
        ([it, vec![0; 500]].concat(), len)
    });
    // It is looked at twice to read both, twice to rewrite both, and once to answer the first.
    let result = catch_unwind(AssertUnwindSafe(|| {
        engine.answer_batch(NOW, &mut Pair(&mut messages, 5));
    }));
    assert!(result.is_err());
    for ((message, len), asked) in messages.iter().zip(&asked) {
        let end = asked.len() - 11; // without its OPT record
        assert_eq!(message[12..end], asked[12..end]);
        assert_eq!(*len, asked.len(), "it has no reply yet");
    }
}

#[test]
fn a_reply_whose_names_grow_too_long_on_the_way_back_is_servfail() {
    let ending = format!(".{0}.{0}.{0}.test", "a".repeat(60));
    let mut engine = engine(vec![rule(MatchKind::Suffix, &ending, ".new")], Vec::new());
    let name = format!("cn{ending}");
    let reply = ask(&mut engine, &name, Type::CNAME);
    assert_eq!(reply, format!("{name}. CNAME SERVFAIL"));
    let reply = ask(&mut engine, &format!("a{ending}"), Type::A);
    assert_eq!(reply, format!("a{ending}. A NOERROR aa; a{ending}. 60 A 192.0.2.1"));
}

#[test]
fn signatures_are_left_out_where_they_do_not_fit_what_the_client_gets() {
    let same = RewriteRule { ttl: Some((300, 400)), ..rule(MatchKind::Exact, "s.test", "sig.new") };
    let ttl = RewriteRule { ttl: Some((0, 30)), ..RewriteRule::new() };
    let mut engine = engine(vec![same, ttl], Vec::new());
    let mut types = |name: &str| {
        let mut query = query(name, Type::A);
        let at = query.len() - 4;
        query[at] = 0x80; // DO
        let mut buffer = vec![0; 1232];
        buffer[..query.len()].copy_from_slice(&query);
        let len = engine.answer(NOW, &peer(Transport::Udp), &mut buffer, query.len()).reply_bytes();
        let reply = Message::parse(&buffer[..len]).unwrap();
        reply.records.iter().map(|it| it.rtype).collect::<Vec<_>>()
    };
    assert_eq!(types("sig.new"), [Type::A, Type::RRSIG], "the names are as they were signed");
    assert_eq!(types("s.test"), [Type::A]);
}

#[test]
fn a_rule_of_flags_alone_changes_no_more_than_the_header() {
    let rules = vec![
        RewriteRule { set_flags: flag::RA, goes_on: true, ..RewriteRule::new() },
        RewriteRule { clear_flags: flag::RA | flag::AA, ..RewriteRule::new() },
    ];
    let mut engine = engine(rules, Vec::new());
    for _ in 0..4 {
        let reply = ask(&mut engine, "A.new", Type::A);
        assert_eq!(reply, "A.new. A NOERROR ra; A.new. 60 A 192.0.2.1");
    }
    let asked = query("a.net", Type::A);
    let mut buffer = vec![0; 1232];
    buffer[..asked.len()].copy_from_slice(&asked);
    let outcome = engine.answer(NOW, &peer(Transport::Udp), &mut buffer, asked.len());
    let Outcome::Deferred(Deferral { query: read, history, .. }) = outcome else {
        panic!("{outcome:?}");
    };
    let (peer, len) = (&peer(Transport::Udp), asked.len());
    let waiting =
        DeferredQuery { query: Some(&read), peer, history: &history, buffer: &mut buffer, len };
    let answer = UpstreamAnswer {
        name: b"\x01a\x03net\0",
        rcode: Rcode::NXDOMAIN,
        is_authentic: false,
        counts: [0, 0, 0],
        body: &[],
        goes_on: false,
        reason: Reason::Forwarded,
        text: b"",
    };
    let len = engine.resume(NOW, waiting, Resumption::Upstream(&answer)).reply_bytes();
    assert_eq!(told(&buffer[..len]), "a.net. A NXDOMAIN ra");
}

#[test]
fn a_template_of_servfail_sends_its_extended_error() {
    let template = Template {
        scopes: vec![Scope::all()],
        qtype: None,
        patterns: Vec::new(),
        answer: Vec::new(),
        authority: Vec::new(),
        additional: Vec::new(),
        rcode: Rcode::SERVFAIL,
        error: Some((21, "not here".to_owned())),
        fall_through: FallThrough::No,
        listeners: Vec::new(),
    };
    let mut engine = engine(Vec::new(), vec![template]);
    let (query, mut buffer) = (query("a.new", Type::A), vec![0; 1232]);
    buffer[..query.len()].copy_from_slice(&query);
    let len = engine.answer(NOW, &peer(Transport::Udp), &mut buffer, query.len()).reply_bytes();
    assert_eq!(told(&buffer[..len]), "a.new. A SERVFAIL");
    let error = b"\0\x0f\0\x0a\0\x15not here"; // rfc8914#2
    assert!(buffer[..len].ends_with(error), "{:?}", &buffer[..len]);
}
