//! What handlers take of queries and apps, and what becomes of the values that they return.

#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use zonda::{
    A, Any, App, AsyncContext, AsyncFromQuery, Captures, ClientSubnet, Cname, Context, Definition,
    Error, Event, Failure, FromQuery, IntoReply, Message, Name, OwnedQuery, Query, Rcode, Refusal,
    Reply, Running, Section, State, Transport, Txt, Type, Vary,
};

/// Returns the reply of a running app to a query of a client at an address.
fn ask_from(running: &Running, client: &str, name: &str, qtype: Type) -> Message {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(running.query_from(client, name, qtype)).unwrap()
}

/// Returns the reply of a running app.
fn ask(running: &Running, name: &str, qtype: Type) -> Message {
    ask_from(running, "192.0.2.7:5353", name, qtype)
}

/// Response code of a reply, and the types and texts of its answers.
fn told(reply: &Message) -> String {
    let mut text = reply.rcode().to_string();
    for record in &reply.records {
        let data = format!(" {} {:?}", record.rtype, record.rdata);
        text += &data;
    }
    text
}

/// A reply of the program's own kind.
struct Referral;

impl IntoReply for Referral {
    fn into_reply(self, reply: &mut Reply) -> Result<(), Failure> {
        reply.authoritative(false);
        reply.authority(zonda::Ns::new("ns.example").map_err(Failure::new)?);
        Ok(())
    }
}

#[test]
fn each_value_that_a_handler_returns_makes_its_reply() {
    let one = || A::new([192, 0, 2, 1]);
    let app = App::new()
        .listen_nowhere()
        .handle("nothing.example", || {})
        .handle("record.example", move || one().ttl(5))
        .handle("any.example", || Any::new(Type::TXT, "a"))
        .handle("records.example", move || vec![one(), A::new([192, 0, 2, 2])])
        .handle("array.example", move || [one()])
        .handle("empty.example", Vec::<A>::new)
        .handle("some.example", move || Some(one()))
        .handle("none.example", || None::<A>)
        .handle("rcode.example", || Rcode::NXDOMAIN)
        .handle("refused.example", || Rcode::REFUSED)
        .handle("reply.example", || {
            let mut reply = Reply::default();
            reply.answer(Txt::new("a"));
            reply
        })
        .handle("ok.example", || Ok::<_, Error>(Some(Txt::new("a"))))
        .handle("error.example", || Err::<A, _>("no database"))
        .handle("own.example", || Referral)
        .handle("both.example", |_: &Query, reply: &mut Reply| {
            reply.answer(A::new([192, 0, 2, 1]));
            Txt::new("a")
        });
    let running = app.start_blocking().unwrap();
    for (name, expected) in [
        ("nothing", "NOERROR"), // no zone has it
        ("record", "NOERROR A [192, 0, 2, 1]"),
        ("any", "NOERROR TXT [1, 97]"),
        ("records", "NOERROR A [192, 0, 2, 1] A [192, 0, 2, 2]"),
        ("array", "NOERROR A [192, 0, 2, 1]"),
        ("empty", "NOERROR"),
        ("some", "NOERROR A [192, 0, 2, 1]"),
        ("none", "NOERROR"),
        ("rcode", "NXDOMAIN"),
        ("refused", "REFUSED"),
        ("reply", "NOERROR TXT [1, 97]"),
        ("ok", "NOERROR TXT [1, 97]"),
        ("error", "SERVFAIL"),
        ("own", "NOERROR NS [2, 110, 115, 7, 101, 120, 97, 109, 112, 108, 101, 0]"),
        ("both", "NOERROR A [192, 0, 2, 1] TXT [1, 97]"),
    ] {
        assert_eq!(told(&ask(&running, &format!("{name}.example"), Type::A)), expected, "{name}");
    }
    assert_eq!(
        A::all_in(&ask(&running, "record.example", Type::A)),
        [one().ttl(5).of("record.example".parse().unwrap())]
    );
    /// Authoritative answer.
    const AA: u16 = 0x0400;
    let is_authoritative = |name| ask(&running, name, Type::A).has(AA);
    assert_eq!(["rcode.example", "refused.example"].map(is_authoritative), [true, false]);
    running.stop_blocking().unwrap();
}

#[test]
fn none_leaves_a_query_to_the_zone_and_no_records_do_not() {
    let zone = "@ 60 SOA ns h 1 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.53\nwww 60 A 192.0.2.80\n";
    let app = App::new()
        .listen_nowhere()
        .zone_text("example", zone)
        .handle("www.example", || None::<A>)
        .handle("ns.example", Vec::<A>::new);
    let running = app.start_blocking().unwrap();
    assert_eq!(told(&ask(&running, "www.example", Type::A)), "NOERROR A [192, 0, 2, 80]");
    assert_eq!(told(&ask(&running, "ns.example", Type::A)), "NOERROR");
    running.stop_blocking().unwrap();
}

#[test]
fn a_returned_nxdomain_is_that_of_the_method() {
    let zone = "@ 60 SOA ns h 1 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.53\n";
    let soa = || zonda::Soa::new("ns.b.example", "h.b.example", 1, 2, 3, 4, 5).unwrap();
    let app = App::new()
        .listen_nowhere()
        .zone_text("example", zone)
        .handle("a.example", || Rcode::NXDOMAIN)
        .handle("b.example", |_: &Query, reply: &mut Reply| reply.nxdomain())
        .handle_async("c.example", async || Rcode::NXDOMAIN)
        .handle("d.example", move |_: &Query, reply: &mut Reply| {
            reply.answer(A::new([192, 0, 2, 1]));
            reply.authority(soa());
            Rcode::NXDOMAIN
        });
    let running = app.start_blocking().unwrap();
    let sections = |name: &str| {
        let reply = ask(&running, name, Type::A);
        assert_eq!(reply.rcode(), Rcode::NXDOMAIN, "{name}");
        let records = reply.records.iter().map(|it| (it.section, it.rtype));
        records.collect::<Vec<_>>()
    };
    for name in ["a.example", "c.example"] {
        assert_eq!(sections(name), sections("b.example"), "{name}");
    }
    assert_eq!(sections("d.example"), [(Section::Authority, Type::SOA)]);
    running.stop_blocking().unwrap();
}

/// The text of all values that a handler takes, for handlers of both kinds.
fn text_of(
    qtype: Type,
    name: Name,
    Captures([user, team]): Captures<2>,
    address: SocketAddr,
) -> String {
    format!("{qtype} {name} {user} {team} {address}")
}

#[test]
fn handlers_of_both_kinds_take_values_of_the_query() {
    let app = App::new()
        .listen_nowhere()
        .handle(
            ":user.:team.sync.example",
            |qtype: Type, name: Name, labels: Captures<2>, address: SocketAddr| {
                Txt::new(text_of(qtype, name, labels, address))
            },
        )
        .handle_async(
            ":user.:team.async.example",
            async |query: OwnedQuery, name: Name, labels: Captures<2>, address: SocketAddr| {
                Txt::new(text_of(query.qtype(), name, labels, address))
            },
        )
        .handle("other.example", |query: &Query, ip: IpAddr, transport: Transport| {
            Txt::new(format!("{} {ip} {transport:?}", query.qtype()))
        })
        .handle("subnet.example", |subnet: Option<ClientSubnet>| {
            Txt::new(subnet.map_or("none".to_owned(), |subnet| subnet.to_string()))
        });
    let running = app.start_blocking().unwrap();
    for (name, expected) in [
        (r"Ann.a\.b.Sync.example", r"TXT ann.a\.b.sync.example. ann a\.b 192.0.2.7:5353"),
        (r"Ann.a\.b.Async.example", r"TXT ann.a\.b.async.example. ann a\.b 192.0.2.7:5353"),
        ("other.example", "TXT 192.0.2.7 Tcp"),
        ("subnet.example", "none"),
    ] {
        let texts = Txt::all_in(&ask(&running, name, Type::TXT));
        assert_eq!(texts[0].strings, [expected.as_bytes()], "{name}");
    }
    running.stop_blocking().unwrap();
}

#[test]
fn an_async_query_has_its_name_in_lower_case_and_as_it_was_sent() {
    let app = App::new().listen_nowhere().handle_async("*.example", async |query: OwnedQuery| {
        Txt::new(format!("{} {}", query.name(), query.original_name()))
    });
    let running = app.start_blocking().unwrap();
    let texts = Txt::all_in(&ask(&running, "A.Example", Type::TXT));
    assert_eq!(texts[0].strings, [b"a.example. A.Example."]);
    running.stop_blocking().unwrap();
}

#[test]
fn handlers_share_a_value_that_is_set_before_or_after_them() {
    let outside = Arc::new(Mutex::new(Vec::<String>::new()));
    let app = App::new()
        .listen_nowhere()
        .state(AtomicU32::new(7))
        .handle("sync.example", |_: &Query, reply: &mut Reply, count: State<AtomicU32>| {
            reply.answer(Txt::new(count.fetch_add(1, Ordering::Relaxed).to_string()));
        })
        .handle_async("async.example", async |State(count): State<AtomicU32>| {
            Txt::new(count.fetch_add(1, Ordering::Relaxed).to_string())
        })
        .handle("note.example", |query: &Query, notes: State<Arc<Mutex<Vec<String>>>>| {
            notes.lock().unwrap().push(query.qtype().to_string());
            Rcode::NOERROR
        })
        .state(Arc::clone(&outside));
    let running = app.start_blocking().unwrap();
    for (name, count) in [("sync.example", "7"), ("async.example", "8"), ("sync.example", "9")] {
        let texts = Txt::all_in(&ask(&running, name, Type::TXT));
        assert_eq!(texts[0].strings, [count.as_bytes()], "{name}");
    }
    ask(&running, "note.example", Type::MX);
    assert_eq!(*outside.lock().unwrap(), ["MX"]);
    running
        .handle("late.example", |count: State<AtomicU32>| {
            Txt::new(count.load(Ordering::Relaxed).to_string())
        })
        .unwrap();
    assert_eq!(Txt::all_in(&ask(&running, "late.example", Type::TXT))[0].strings, [b"10"]);
    running.stop_blocking().unwrap();
}

#[test]
fn a_start_tells_all_that_handlers_lack() {
    let app = App::new()
        .listen_nowhere()
        .state(1_u8)
        .handle("here.example", |_: State<u8>, _: State<u16>| {})
        .handle(":user.example", |_: Captures<2>| {})
        .handle_async("afar.example", async |_: State<u32>| Rcode::REFUSED)
        .middleware_async(async |_: State<u64>| {});
    let error = app.start_blocking().unwrap_err();
    assert_eq!(error.code(), "ZONDA_CONFIG");
    let told = error.to_string();
    let lines: Vec<_> = told.lines().collect();
    let expected = [
        "route `here.example`: the handler takes a `State<u16>`",
        "route `:user.example`: the handler takes `Captures<2>`",
        "route `afar.example`: the handler takes a `State<u32>`",
        "route `*`: the handler takes a `State<u64>`",
    ];
    assert_eq!(lines.len(), expected.len(), "{told}");
    for (line, beginning) in lines.iter().zip(expected) {
        assert!(line.starts_with(beginning), "{told}");
    }
}

#[test]
fn a_running_app_refuses_a_handler_that_lacks_something_and_keeps_the_former_one() {
    let app = App::new().listen_nowhere().handle("a.example", || Txt::new("former"));
    let running = app.start_blocking().unwrap();
    let refused = [
        running.handle("a.example", |_: State<u8>| Txt::new("later")),
        running.handle_async("a.example", async |_: Captures<1>| Txt::new("later")),
    ];
    for refused in refused {
        assert!(matches!(refused, Err(Error::Handler(..))), "{refused:?}");
    }
    assert_eq!(Txt::all_in(&ask(&running, "a.example", Type::TXT))[0].strings, [b"former"]);
    running.stop_blocking().unwrap();
}

/// The client's address and what the app calls it.
struct Client(String);

impl FromQuery for Client {
    fn from_query(context: &Context<'_>) -> Result<Self, Refusal> {
        let word = context.state::<&'static str>();
        Ok(Self(format!("{} {}", word.unwrap(), context.client().ip())))
    }

    fn check(definition: &Definition<'_>) -> Result<(), String> {
        let has_word = definition.has_state::<&'static str>();
        if has_word { Ok(()) } else { Err("the app has no word for clients".to_owned()) }
    }
}

#[test]
fn a_program_has_handlers_take_values_of_its_own_kind() {
    let handler = |Client(text): Client| Txt::new(text);
    let without = App::new().listen_nowhere().handle("a.example", handler);
    let error = without.start_blocking().unwrap_err().to_string();
    assert_eq!(error, "route `a.example`: the app has no word for clients");
    let with = App::new().listen_nowhere().state("host").handle("a.example", handler);
    let running = with.start_blocking().unwrap();
    let texts = Txt::all_in(&ask(&running, "a.example", Type::TXT));
    assert_eq!(texts[0].strings, [b"host 192.0.2.7"]);
    running.stop_blocking().unwrap();
}

/// A client that the program lets in.
struct Member(IpAddr);

impl FromQuery for Member {
    fn from_query(context: &Context<'_>) -> Result<Self, Refusal> {
        match context.client().ip() {
            ip if ip == IpAddr::from([192, 0, 2, 7]) => Ok(Self(ip)),
            ip if ip == IpAddr::from([192, 0, 2, 8]) => Err(Err::<(), _>("a mistake").into()),
            _ => Err(Rcode::REFUSED.into()),
        }
    }
}

#[test]
fn a_value_that_a_handler_takes_refuses_the_query_with_a_reply_of_its_own() {
    let calls = Arc::new(AtomicU32::new(0));
    let count = |calls: &Arc<AtomicU32>| {
        let calls = Arc::clone(calls);
        move || calls.fetch_add(1, Ordering::Relaxed)
    };
    let (here, afar) = (count(&calls), count(&calls));
    let app = App::new()
        .listen_nowhere()
        .handle("here.example", move |_: &Query, reply: &mut Reply, Member(ip): Member| {
            here();
            reply.answer(Txt::new(ip.to_string()));
        })
        .handle_async("afar.example", move |Member(ip): Member| {
            afar();
            async move { Txt::new(ip.to_string()) }
        });
    let running = app.start_blocking().unwrap();
    for name in ["here.example", "afar.example"] {
        let rcode = |client| ask_from(&running, client, name, Type::TXT).rcode();
        assert_eq!(rcode("192.0.2.9:1"), Rcode::REFUSED, "{name}");
        assert_eq!(rcode("192.0.2.8:1"), Rcode::SERVFAIL, "{name}");
        let texts = Txt::all_in(&ask(&running, name, Type::TXT));
        assert_eq!(texts[0].strings, [b"192.0.2.7"], "{name}");
    }
    assert_eq!(calls.load(Ordering::Relaxed), 2, "a handler is called for a member alone");
    running.stop_blocking().unwrap();
}

#[test]
fn the_reply_of_a_handler_that_takes_the_client_is_not_cached_for_all() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let cached = move |reply: &mut Reply| {
        counted.fetch_add(1, Ordering::Relaxed);
        reply.cache(60, Vary::Nothing);
    };
    let other = cached.clone();
    let app = App::new()
        .listen_nowhere()
        .handle("client.example", move |_: &Query, reply: &mut Reply, _: IpAddr| {
            cached(reply);
            A::new([192, 0, 2, 1])
        })
        .handle("type.example", move |_: &Query, reply: &mut Reply, _: Type| {
            other(reply);
            A::new([192, 0, 2, 1])
        });
    let running = app.start_blocking().unwrap();
    for (name, expected) in [("client.example", 3), ("type.example", 1)] {
        calls.store(0, Ordering::Relaxed);
        for client in ["192.0.2.1:53", "192.0.2.2:53", "192.0.2.3:53"] {
            ask_from(&running, client, name, Type::A);
        }
        assert_eq!(calls.load(Ordering::Relaxed), expected, "{name}");
    }
    running.stop_blocking().unwrap();
}

#[test]
fn a_returned_reply_keeps_the_tags_of_middleware() {
    let (sender, tags) = mpsc::channel();
    let app = App::new()
        .listen_nowhere()
        .middleware(|_: &Query, reply: &mut Reply| {
            reply.tag("stage", "middleware");
            reply.tag("user", "unknown");
        })
        .handle("a.example", || {
            let mut reply = Reply::default();
            reply.tag("user", "ann");
            reply.nxdomain();
            reply
        })
        .logger(move |event: &Event| {
            let mut tags: Vec<_> = event.tags().map(|(key, it)| format!("{key}={it}")).collect();
            tags.sort();
            sender.send(tags).unwrap();
        });
    let running = app.start_blocking().unwrap();
    assert_eq!(told(&ask(&running, "a.example", Type::A)), "NXDOMAIN");
    let tags = tags.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(tags, ["stage=middleware", "user=ann"]);
    running.stop_blocking().unwrap();
}

/// An error of the program's own.
#[derive(Debug)]
struct DatabaseDown;

impl std::fmt::Display for DatabaseDown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the database is down")
    }
}

/// A value whose query a failing database refuses.
struct Row;

impl FromQuery for Row {
    fn from_query(_: &Context<'_>) -> Result<Self, Refusal> {
        Err(Err::<(), _>(DatabaseDown).into())
    }
}

#[test]
fn errors_of_handlers_are_answered_by_functions_for_their_types() {
    let app = App::new()
        .listen_nowhere()
        .handle("sync.example", |_: &Query, reply: &mut Reply| {
            reply.answer(A::new([192, 0, 2, 1])); // is not sent
            Err::<(), _>(DatabaseDown)
        })
        .handle_async("async.example", async || Err::<A, _>(DatabaseDown))
        .handle("value.example", |_: Row| A::new([192, 0, 2, 1]))
        .handle_async("async-value.example", async |_: Row| A::new([192, 0, 2, 1]))
        .middleware_for_async("guarded.example", async || Err::<(), _>(DatabaseDown))
        .handle("io.example", || Err::<A, _>(std::io::Error::other("no file")))
        .handle("text.example", || Err::<A, _>("secret"))
        .handle("no.example", || Err::<A, _>(5_u8))
        .handle("panics.example", || -> A { panic!("not an error") })
        .on_error(|_: &DatabaseDown, context: &Context<'_>, reply: &mut Reply| {
            reply.answer(Txt::new(format!("{} {}", context.name(), context.client().ip())));
        })
        .on_error(|_: &u8, _: &Context<'_>, _: &mut Reply| {}) // leaves it
        .on_error(|_: &std::io::Error, _: &Context<'_>, _: &mut Reply| Rcode::REFUSED)
        .on_error(|failure: &Failure, _: &Context<'_>, _: &mut Reply| {
            failure.downcast_ref::<&'static str>().map(|text| Txt::new(text.len().to_string()))
        });
    let running = app.start_blocking().unwrap();
    for name in ["sync", "async", "value", "async-value", "guarded"] {
        let name = format!("{name}.example");
        let texts = Txt::all_in(&ask(&running, &name, Type::TXT));
        assert_eq!(texts[0].strings, [format!("{name}. 192.0.2.7").as_bytes()], "{name}");
    }
    assert_eq!(ask(&running, "io.example", Type::A).rcode(), Rcode::REFUSED);
    assert_eq!(Txt::all_in(&ask(&running, "text.example", Type::TXT))[0].strings, [b"6"]);
    assert_eq!(told(&ask(&running, "no.example", Type::A)), "SERVFAIL");
    assert_eq!(told(&ask(&running, "panics.example", Type::A)), "SERVFAIL");
    running.stop_blocking().unwrap();
}

#[test]
fn a_function_for_errors_that_fails_itself_leaves_the_query_to_the_next_one() {
    let app = App::new()
        .listen_nowhere()
        .handle("a.example", || Err::<A, _>(DatabaseDown))
        .on_error(|_: &DatabaseDown, _: &Context<'_>, reply: &mut Reply| {
            reply.answer(A::new([192, 0, 2, 1])); // is not sent
            Err::<(), _>("no page either")
        })
        .on_error(|failure: &Failure, _: &Context<'_>, reply: &mut Reply| {
            reply.answer(Txt::new(failure.to_string()));
        });
    let running = app.start_blocking().unwrap();
    let reply = ask(&running, "a.example", Type::TXT);
    assert_eq!(reply.records.len(), 1, "{reply:?}");
    assert_eq!(Txt::all_in(&reply)[0].strings, [b"the database is down"]);
    running.stop_blocking().unwrap();
}

/// The account of the client, which is waited for.
struct Account(String);

impl AsyncFromQuery for Account {
    async fn from_query_async(context: &AsyncContext<'_>) -> Result<Self, Refusal> {
        tokio::task::yield_now().await; // a database
        match context.query().client().ip() {
            ip if ip == IpAddr::from([192, 0, 2, 7]) => Ok(Self("ann".to_owned())),
            ip if ip == IpAddr::from([192, 0, 2, 8]) => std::future::pending().await,
            _ => Err(Rcode::REFUSED.into()),
        }
    }

    fn check(definition: &Definition<'_>) -> Result<(), String> {
        let has_database = definition.has_state::<u8>();
        if has_database { Ok(()) } else { Err("the app has no database".to_owned()) }
    }
}

#[test]
fn an_asynchronous_handler_takes_values_that_are_waited_for() {
    let handler = async |query: OwnedQuery, Account(name): Account, qtype: Type| {
        Txt::new(format!("{name} {} {qtype}", query.name()))
    };
    let without = App::new().listen_nowhere().handle_async("a.example", handler);
    let error = without.start_blocking().unwrap_err().to_string();
    assert_eq!(error, "route `a.example`: the app has no database");
    let with = App::new()
        .listen_nowhere()
        .state(5_u8)
        .handle_async("a.example", handler)
        .middleware_for_async("*.guarded.example", async |_: Account| {})
        .handle("*.guarded.example", || Txt::new("let in"));
    let running = with.start_blocking().unwrap();
    let texts = Txt::all_in(&ask(&running, "a.example", Type::TXT));
    assert_eq!(texts[0].strings, [b"ann a.example. TXT"]);
    let texts = Txt::all_in(&ask(&running, "a.guarded.example", Type::TXT));
    assert_eq!(texts[0].strings, [b"let in"]);
    for name in ["a.example", "a.guarded.example"] {
        let rcode = ask_from(&running, "192.0.2.9:1", name, Type::TXT).rcode();
        assert_eq!(rcode, Rcode::REFUSED, "{name}");
    }
    running.stop_blocking().unwrap();
}

#[test]
fn a_query_whose_values_are_late_is_servfail_after_the_deadline() {
    let app = App::new()
        .listen_nowhere()
        .state(5_u8)
        .deadline(Duration::from_millis(200))
        .handle_async("a.example", async |_: Account| Txt::new("late"))
        .middleware_for_async("*.guarded.example", async |_: Account| {})
        .handle("*.guarded.example", || Txt::new("let in"));
    let running = app.start_blocking().unwrap();
    for name in ["a.example", "a.guarded.example"] {
        let rcode = ask_from(&running, "192.0.2.8:1", name, Type::TXT).rcode();
        assert_eq!(rcode, Rcode::SERVFAIL, "{name}");
    }
    running.stop_blocking().unwrap();
}

/// A zone of documentation's addresses.
const ZONE: &str = "@ 3600 SOA ns host 7 7200 900 1209600 300\n@ NS ns\nns A 192.0.2.9\n\
                    www 60 A 192.0.2.1\nwww 60 AAAA 2001:db8::1\nalias 60 CNAME www\n\
                    out 60 CNAME www.elsewhere.test.\nof-code 60 CNAME www.code.example.org.\n";

/// Apex, TTL and minimum of the SOA record of each reply's authority section, as text.
fn soa_of(reply: &Message) -> Vec<String> {
    let records = reply.records.iter().filter(|it| it.section == Section::Authority);
    let told = |record: &zonda::message::Record| {
        let minimum = record.rdata.last_chunk().copied().map(u32::from_be_bytes).unwrap();
        format!("{} {} {} {minimum}", record.owner, record.rtype, record.ttl)
    };
    records.map(told).collect()
}

/// Denies a name, for so many seconds.
fn deny(reply: &mut Reply, ttl_secs: u32) {
    reply.nxdomain();
    reply.cache_negative(ttl_secs);
}

#[test]
fn a_negative_reply_has_the_soa_record_of_the_zone_that_holds_the_name() {
    let app = App::new()
        .listen_nowhere()
        .zone_text("example.org", ZONE)
        .handle("sync.example.org", |_: &Query, reply: &mut Reply| deny(reply, 30))
        .handle_async("async.example.org", async || {
            let mut reply = Reply::default();
            deny(&mut reply, 31);
            reply
        })
        .handle("empty.example.org", |_: &Query, reply: &mut Reply| {
            reply.cache_negative(32);
            reply.no_data();
        })
        .middleware_for("ns.example.org", |_: &Query, reply: &mut Reply| deny(reply, 33));
    let running = app.start_blocking().unwrap();
    for (name, rcode, ttl_secs) in [
        ("sync.example.org", Rcode::NXDOMAIN, 30),
        ("async.example.org", Rcode::NXDOMAIN, 31),
        ("empty.example.org", Rcode::NOERROR, 32),
        ("ns.example.org", Rcode::NXDOMAIN, 33),
    ] {
        let reply = ask(&running, name, Type::A);
        assert_eq!(reply.rcode(), rcode, "{name}");
        assert_eq!(soa_of(&reply), [format!("example.org. SOA {ttl_secs} {ttl_secs}")], "{name}");
        let data = &reply.records[0].rdata;
        let serial = u32::from_be_bytes(data[data.len() - 20..][..4].try_into().unwrap());
        assert_eq!(serial, 7, "the record is the zone's");
    }
    running.stop_blocking().unwrap();
}

#[test]
fn a_negative_reply_outside_of_all_zones_has_an_soa_record_for_what_its_pattern_spells_out() {
    let app = App::new()
        .listen_nowhere()
        .handle(":user.users.test", |_: &Query, reply: &mut Reply| deny(reply, 30))
        .handle("*.names.test", |_: &Query, reply: &mut Reply| deny(reply, 31))
        .handle("one.test", |_: &Query, reply: &mut Reply| deny(reply, 32))
        .handle("*", |_: &Query, reply: &mut Reply| deny(reply, 33))
        .handle_async("*.async.test", async || {
            let mut reply = Reply::default();
            deny(&mut reply, 34);
            reply
        });
    let running = app.start_blocking().unwrap();
    for (name, soa) in [
        ("ann.users.test", "users.test. SOA 30 30"),
        ("a.b.names.test", "names.test. SOA 31 31"),
        ("one.test", "one.test. SOA 32 32"),
        ("two.test", "two.test. SOA 33 33"),
        ("a.b.async.test", "async.test. SOA 34 34"),
    ] {
        assert_eq!(soa_of(&ask(&running, name, Type::A)), [soa], "{name}");
    }
    running.stop_blocking().unwrap();
}

#[test]
fn a_reply_that_is_not_negative_or_has_an_soa_record_gets_no_other_one() {
    let soa = || zonda::Soa::new("ns.other.test", "host.other.test", 1, 2, 3, 4, 5).unwrap();
    let app = App::new()
        .listen_nowhere()
        .zone_text("example.org", ZONE)
        .handle("answer.example.org", |_: &Query, reply: &mut Reply| {
            reply.cache_negative(30);
            reply.answer(A::new([192, 0, 2, 1]));
        })
        .handle("failed.example.org", |_: &Query, reply: &mut Reply| {
            reply.cache_negative(30);
            reply.servfail("why");
        })
        .handle("referral.example.org", |_: &Query, reply: &mut Reply| {
            reply.cache_negative(30);
            reply.authority(zonda::Ns::new("ns.example").unwrap());
        })
        .handle("own.example.org", move |_: &Query, reply: &mut Reply| {
            deny(reply, 30);
            reply.authority(soa().ttl(5));
        });
    let running = app.start_blocking().unwrap();
    for name in ["answer.example.org", "failed.example.org"] {
        assert_eq!(soa_of(&ask(&running, name, Type::A)), Vec::<String>::new(), "{name}");
    }
    let authority = |name| {
        let reply = ask(&running, name, Type::A);
        let records = reply.records.iter().filter(|it| it.section == Section::Authority);
        records.map(|it| format!("{} {}", it.rtype, it.ttl)).collect::<Vec<_>>()
    };
    assert_eq!(authority("own.example.org"), ["SOA 5"]);
    assert_eq!(authority("referral.example.org").len(), 1);
    running.stop_blocking().unwrap();
}

#[test]
fn a_kept_negative_reply_has_its_soa_record_too() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let app = App::new().listen_nowhere().zone_text("example.org", ZONE).handle(
        "kept.example.org",
        move |_: &Query, reply: &mut Reply| {
            counted.fetch_add(1, Ordering::Relaxed);
            reply.cache(60, Vary::Nothing);
            deny(reply, 30);
        },
    );
    let running = app.start_blocking().unwrap();
    for _ in 0..3 {
        let soa = soa_of(&ask(&running, "kept.example.org", Type::A));
        assert_eq!(soa, ["example.org. SOA 30 30"]);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    running.stop_blocking().unwrap();
}

/// An alias for a minute.
fn alias(target: &str) -> Cname {
    Cname::new(target).unwrap().ttl(60)
}

/// An app with a zone, and handlers whose answers are aliases of names in the zone and elsewhere.
fn aliases() -> App {
    App::new()
        .listen_nowhere()
        .zone_text("example.org", ZONE)
        .handle("www.code.example.org", || A::new([198, 51, 100, 1]))
        .handle("sync.test", || alias("www.example.org"))
        .handle_async("async.test", async || alias("www.example.org"))
        .handle("chain.test", || alias("alias.example.org"))
        .handle("absent.test", || alias("absent.example.org"))
        .handle("out.test", || alias("out.example.org"))
        .handle("elsewhere.test", || alias("www.elsewhere.test"))
        .handle("to-code.test", || alias("www.code.example.org"))
        .handle("by-code.test", || alias("of-code.example.org"))
        .handle("denied.test", |_: &Query, reply: &mut Reply| {
            reply.answer(alias("www.example.org"));
            reply.nxdomain();
        })
        .handle("kept.test", |_: &Query, reply: &mut Reply| {
            reply.cache(60, Vary::Nothing);
            reply.answer(alias("www.example.org"));
        })
}

/// Response code of a reply, and owner and type of each record of its answer.
fn chain(reply: &Message) -> String {
    let answers = reply.records.iter().filter(|it| it.section == Section::Answer);
    let records = answers.map(|it| format!(" {} {}", it.owner, it.rtype));
    records.fold(reply.rcode().to_string(), |text, record| text + &record)
}

#[test]
fn an_alias_that_ends_the_answer_of_a_handler_is_followed_into_zones_and_to_handlers() {
    let running = aliases().start_blocking().unwrap();
    let www = "www.example.org. A";
    for (name, expected) in [
        ("sync.test", format!("NOERROR sync.test. CNAME {www}")),
        ("async.test", format!("NOERROR async.test. CNAME {www}")),
        ("chain.test", format!("NOERROR chain.test. CNAME alias.example.org. CNAME {www}")),
        ("absent.test", "NXDOMAIN absent.test. CNAME".to_owned()),
        ("to-code.test", "NOERROR to-code.test. CNAME www.code.example.org. A".to_owned()),
        (
            "by-code.test",
            "NOERROR by-code.test. CNAME of-code.example.org. CNAME www.code.example.org. A"
                .to_owned(),
        ),
        ("kept.test", format!("NOERROR kept.test. CNAME {www}")),
        ("kept.test", format!("NOERROR kept.test. CNAME {www}")), // from the handler cache
    ] {
        assert_eq!(chain(&ask(&running, name, Type::A)), expected, "{name}");
    }
    let absent = ask(&running, "absent.test", Type::A);
    assert_eq!(soa_of(&absent), ["example.org. SOA 300 300"]);
    assert_eq!(
        chain(&ask(&running, "sync.test", Type::AAAA)),
        "NOERROR sync.test. CNAME www.example.org. AAAA"
    );
    running
        .set_zone_text_blocking("example.org", ZONE.replace("192.0.2.1\n", "192.0.2.2\n"))
        .unwrap();
    let kept = ask(&running, "kept.test", Type::A);
    assert_eq!(kept.records[1].rdata, [192, 0, 2, 2], "the zone's records are not kept");
    running.stop_blocking().unwrap();
}

#[test]
fn an_alias_of_a_name_that_no_zone_and_no_handler_has_is_left_to_the_client() {
    let running = aliases().start_blocking().unwrap();
    for (name, expected) in [
        ("elsewhere.test", "NOERROR elsewhere.test. CNAME"),
        ("out.test", "NOERROR out.test. CNAME out.example.org. CNAME"),
        ("denied.test", "NXDOMAIN denied.test. CNAME"),
    ] {
        assert_eq!(chain(&ask(&running, name, Type::A)), expected, "{name}");
    }
    for qtype in [Type::TXT, Type::CNAME, Type::ANY] {
        assert_eq!(chain(&ask(&running, "sync.test", qtype)), "NOERROR sync.test. CNAME");
    }
    running.stop_blocking().unwrap();
}
