//! What handlers take of queries and apps, and what becomes of the values that they return.

#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use zonda::{
    A, Any, App, Captures, ClientSubnet, Context, Definition, Error, Event, Failure, FromQuery,
    IntoReply, Message, Name, OwnedQuery, Query, Rcode, Reply, Running, State, Transport, Txt,
    Type, Vary,
};

/// Returns the reply of a running app to a query of a client at an address.
fn ask_from(running: &Running, client: &str, name: &str, qtype: Type) -> Message {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(running.query_from(client.parse().unwrap(), name, qtype)).unwrap()
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
    fn from_query(context: &Context<'_>) -> Self {
        let word = context.state::<&'static str>();
        Self(format!("{} {}", word.unwrap(), context.client().ip()))
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
