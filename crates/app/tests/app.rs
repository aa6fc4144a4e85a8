//! Apps as programs hold them, asked over sockets and without.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use zonda::{
    A, App, Cache, Ede, Event, Message, OwnedQuery, Query, Rcode, Reply, Running, Source, Txt,
    Type, Vary, zone_from_file,
};
use zonda_testkit::process::free_port;

/// Returns a query for a name, with an OPT record.
fn question(name: &str, qtype: Type) -> Vec<u8> {
    let name: zonda::Name = name.parse().unwrap();
    let mut message = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\x01".to_vec();
    message.extend_from_slice(name.as_wire());
    message.extend_from_slice(&qtype.0.to_be_bytes());
    message.extend_from_slice(b"\0\x01\0\0\x29\x04\xd0\0\0\0\0\0\0");
    message
}

/// Returns an app that listens on a free port.
fn app() -> App {
    App::new().listen("127.0.0.1:0").workers(1)
}

/// Returns the reply to a question over UDP.
fn ask(running: &Running, name: &str, qtype: Type) -> Option<Message> {
    ask_within(running, name, qtype, Duration::from_secs(20))
}

/// Returns the reply to a question over UDP; nothing in that time is silence.
fn ask_within(running: &Running, name: &str, qtype: Type, wait: Duration) -> Option<Message> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(wait)).unwrap();
    socket.send_to(&question(name, qtype), running.addresses()[0]).unwrap();
    let mut buffer = [0; 4096];
    let len = socket.recv(&mut buffer).ok()?;
    Some(Message::parse(&buffer[..len]).unwrap())
}

/// Response code and data of a reply, as text.
fn told(reply: Option<&Message>) -> String {
    let Some(reply) = reply else { return "silence".into() };
    let mut text = Rcode(reply.flags & 0xf).to_string();
    for record in &reply.records {
        text += &format!(" {} {} {:?}", record.owner, record.rtype, record.rdata);
    }
    text
}

/// Checks what is answered over UDP to each question.
fn check(running: &Running, questions: &[(&str, Type, &str)]) {
    for (name, qtype, expected) in questions {
        let wait = if *expected == "silence" { 500 } else { 20_000 };
        let reply = ask_within(running, name, *qtype, Duration::from_millis(wait));
        assert_eq!(told(reply.as_ref()), *expected, "{name} {qtype}");
    }
}

#[test]
fn a_handler_answers_its_names_and_zones_answer_the_rest() {
    let file = std::env::temp_dir().join(format!("zonda-app-{}.zone", std::process::id()));
    let soa = "@ 300 SOA ns hostmaster 1 2 3 4 5\n@ 300 NS ns\nns 300 A 192.0.2.53\n";
    std::fs::write(&file, format!("{soa}a 300 A 192.0.2.9\na 300 TXT zone\n")).unwrap();
    let app = app()
        .zone("example.org", &file)
        .handle("a.example.org/A", |_: &Query, reply: &mut Reply| {
            reply.answer(A::new([192, 0, 2, 1]).ttl(60))
        })
        .handle(":user.users.example.com", |query: &Query, reply: &mut Reply| {
            reply.answer(Txt::new(query.capture("user").unwrap()))
        });
    let running = app.start_blocking().unwrap();
    check(
        &running,
        &[
            ("a.example.org", Type::A, "NOERROR a.example.org. A [192, 0, 2, 1]"),
            ("a.example.org", Type::TXT, "NOERROR a.example.org. TXT [4, 122, 111, 110, 101]"),
            ("ns.example.org", Type::A, "NOERROR ns.example.org. A [192, 0, 2, 53]"),
            (
                "Ann.users.example.com",
                Type::TXT,
                "NOERROR Ann.users.example.com. TXT [3, 97, 110, 110]",
            ),
            ("users.example.com", Type::TXT, "NOERROR"),
            ("example.com", Type::TXT, "REFUSED"),
        ],
    );
    running.stop_blocking().unwrap();
    std::fs::remove_file(file).unwrap();
}

#[test]
fn a_zone_is_served_from_a_file_that_is_there() {
    let file = std::env::temp_dir().join(format!("zonda-file-{}.zone", std::process::id()));
    let missing = zone_from_file(&file).unwrap_err().to_string();
    assert!(missing.contains("No such file") && missing.contains("zonda-file-"), "{missing}");
    let directory = zone_from_file(std::env::temp_dir()).unwrap_err().to_string();
    assert!(directory.contains("directory"), "{directory}");

    std::fs::write(&file, "@ 300 SOA ns h 1 2 3 4 5\n@ 300 NS ns\nns 300 A 192.0.2.53\n").unwrap();
    let app = app().zone("example.org", zone_from_file(&file).unwrap());
    let running = app.start_blocking().unwrap();
    let expected = "NOERROR ns.example.org. A [192, 0, 2, 53]";
    check(&running, &[("ns.example.org", Type::A, expected)]);
    running.stop_blocking().unwrap();
    std::fs::remove_file(file).unwrap();
}

#[test]
fn a_panic_of_a_handler_is_servfail_and_the_next_query_is_answered() {
    let app = app()
        .handle("bad.example", |_: &Query, _: &mut Reply| -> () { panic!("a mistake") })
        .handle("error.example", |_: &Query, _: &mut Reply| Err::<(), _>("no database"))
        .handle("good.example", |_: &Query, reply: &mut Reply| {
            reply.answer(A::new([192, 0, 2, 1]))
        });
    let running = app.start_blocking().unwrap();
    check(
        &running,
        &[
            ("bad.example", Type::A, "SERVFAIL"),
            ("error.example", Type::A, "SERVFAIL"),
            ("good.example", Type::A, "NOERROR good.example. A [192, 0, 2, 1]"),
        ],
    );
    running.stop_blocking().unwrap();
}

#[test]
fn more_records_than_a_message_holds_are_servfail_without_any_whatever_is_added_then() {
    let app = app()
        .handle("many.example", |_: &Query, reply: &mut Reply| {
            for _ in 0..20_000 {
                reply.answer(A::new([192, 0, 2, 1]));
            }
            reply.additional(Txt::new("more"));
            reply.no_data();
        })
        .handle("all.example", |_: &Query, reply: &mut Reply| {
            reply.answers((0..20_000).map(|_| A::new([192, 0, 2, 1])));
        })
        .handle("cleared.example", |_: &Query, reply: &mut Reply| {
            reply.answers((0..20_000).map(|_| A::new([192, 0, 2, 1])));
            reply.clear();
            reply.answer(A::new([192, 0, 2, 2]));
        });
    let running = app.start_blocking().unwrap();
    check(
        &running,
        &[
            ("many.example", Type::A, "SERVFAIL"),
            ("all.example", Type::A, "SERVFAIL"),
            ("cleared.example", Type::A, "NOERROR cleared.example. A [192, 0, 2, 2]"),
        ],
    );
    running.stop_blocking().unwrap();
}

#[test]
fn handlers_are_replaced_and_removed_however_their_pattern_is_written() {
    let app = app()
        .handle("Live.Example./TXT|A", |_: &Query, reply: &mut Reply| reply.answer(Txt::new("0")));
    let running = app.start_blocking().unwrap();
    let one = |_: &Query, reply: &mut Reply| reply.answer(Txt::new("1"));
    running.handle("live.example/A|TXT", one).unwrap();
    assert_eq!(text(ask(&running, "live.example", Type::TXT)), "1");
    assert!(running.remove_handler("LIVE.example/TXT|A").unwrap());
    check(&running, &[("live.example", Type::TXT, "REFUSED")]);
    assert!(!running.remove_handler("live.example/A|TXT").unwrap());
    running.stop_blocking().unwrap();
}

#[test]
fn asynchronous_code_that_stops_its_app_answers_first() {
    let mut app = app();
    let shared = Arc::new(Mutex::new(None::<Running>));
    let own = Arc::clone(&shared);
    app = app.handle_async("stop.example", move |_: OwnedQuery| {
        let own = Arc::clone(&own);
        async move {
            let running = own.lock().unwrap().take().unwrap();
            running.stop().await.unwrap();
            Txt::new("it stops")
        }
    });
    let running = app.start_blocking().unwrap();
    let address = running.addresses()[0];
    *shared.lock().unwrap() = Some(running);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let asked = Instant::now();
    socket.send_to(&question("stop.example", Type::TXT), address).unwrap();
    let mut buffer = [0; 512];
    let len = socket.recv(&mut buffer).unwrap();
    assert_eq!(text(Some(Message::parse(&buffer[..len]).unwrap())), "it stops");
    assert!(asked.elapsed() < Duration::from_secs(4), "{:?}", asked.elapsed()); // the deadline is 5
    while UdpSocket::bind(address).is_err() {
        assert!(asked.elapsed() < Duration::from_secs(15), "it has not stopped");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn asynchronous_code_answers_and_its_failures_are_servfail() {
    let mut app = app()
        .deadline(Duration::from_millis(200))
        .handle_async("slow.example", |query: OwnedQuery| async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let mut reply = Reply::default();
            reply.answer(Txt::new(query.qtype().to_string()));
            reply
        })
        .handle_async("panics.example", |_: OwnedQuery| async { panic!("a mistake") as Reply })
        .handle_async("fails.example", async || Err::<Reply, _>("no database"))
        .handle_async("late.example", |_: OwnedQuery| async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Reply::default()
        })
        .handle_async("passes.example", |_: OwnedQuery| async { Reply::default() });
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("when it is dropped");
        }
    }
    app = app.handle_async("bomb.example", |_: OwnedQuery| {
        let bomb = Bomb;
        std::future::poll_fn(move |_| {
            let _ = &bomb;
            std::task::Poll::Ready(Reply::default())
        })
    });
    let running = app.start_blocking().unwrap();
    let asked = Instant::now();
    check(
        &running,
        &[
            ("slow.example", Type::TXT, "NOERROR slow.example. TXT [3, 84, 88, 84]"),
            ("panics.example", Type::A, "SERVFAIL"),
            ("fails.example", Type::A, "SERVFAIL"),
            ("bomb.example", Type::A, "SERVFAIL"),
            ("bomb.example", Type::A, "SERVFAIL"), // in a task first, then without
            ("late.example", Type::A, "SERVFAIL"),
            ("passes.example", Type::A, "NOERROR"),
            ("example", Type::A, "REFUSED"),
        ],
    );
    assert!(asked.elapsed() < Duration::from_secs(15));
    running.stop_blocking().unwrap();
}

/// Returns what the system says of each of so many threads that asynchronous code runs on: the
/// niceness, and the first CPU that it may use. Each query holds up its thread until all threads
/// have had one, except the first query, which shows that the code takes long, so that the rest are
/// begun in tasks.
fn threads_of_code(count: usize, prepare: impl FnOnce(App) -> App) -> Vec<(i64, usize)> {
    let app = prepare(app().deadline(Duration::from_secs(20)));
    let seen = Arc::new(Mutex::new(HashMap::new()));
    let (own, was_asked) = (Arc::clone(&seen), AtomicBool::new(false));
    let app = app.handle_async("*.example", move |_: OwnedQuery| {
        let (seen, is_first) = (Arc::clone(&own), !was_asked.swap(true, Ordering::Relaxed));
        async move {
            thread::sleep(Duration::from_millis(1));
            if is_first {
                return Reply::default();
            }
            seen.lock().unwrap().insert(thread::current().id(), of_this_thread());
            let limit = Instant::now() + Duration::from_secs(5);
            while seen.lock().unwrap().len() < count && Instant::now() < limit {
                thread::sleep(Duration::from_millis(1));
            }
            Reply::default()
        }
    });
    let running = app.start_blocking().unwrap();
    assert!(ask(&running, "first.example", Type::A).is_some());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    socket.connect(running.addresses()[0]).unwrap();
    let queries = (0..200).map(|number| question(&format!("name{number}.example"), Type::A));
    queries.for_each(|query| _ = socket.send(&query).unwrap());
    (0..200).for_each(|_| _ = socket.recv(&mut [0; 512]).unwrap());
    running.stop_blocking().unwrap();
    seen.lock().unwrap().values().copied().collect()
}

/// Returns how many CPUs the calling thread may use, as a list of ranges says.
fn allowed_cpus() -> usize {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let ranges =
        list.trim().split(',').map(|range| range.split_once('-').unwrap_or((range, range)));
    let number = |text: &str| text.parse::<usize>().unwrap();
    ranges.map(|(first, last)| number(last) - number(first) + 1).sum()
}

/// Returns the niceness of the calling thread, and the first CPU that it may use.
fn of_this_thread() -> (i64, usize) {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/thread-self/{file}")).unwrap();
    // The 19th field; the second one is a name, in parentheses (proc_pid_stat(5)).
    let stat = read("stat");
    let niceness = stat.rsplit(')').next().unwrap().split_whitespace().nth(16).unwrap();
    let status = read("status");
    let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let first = cpus.trim().split(['-', ',']).next().unwrap();
    (niceness.parse().unwrap(), first.parse().unwrap())
}

#[test]
fn asynchronous_code_has_as_many_threads_as_the_program_says_and_as_nice_ones() {
    let seen = threads_of_code(3, |app| app.async_threads(3).async_niceness(7));
    let (niceness, first_cpu) = of_this_thread();
    assert_eq!(seen, [(niceness.max(7), first_cpu); 3]);
}

#[test]
fn asynchronous_code_leaves_the_first_cpu_free_by_default() {
    let cpus = thread::available_parallelism().unwrap().get();
    let (niceness, first_cpu) = of_this_thread();
    // A quota of CPU time counts where it is less than the CPUs.
    let count = (cpus - 1).max(if cpus < allowed_cpus() { 1 } else { 2 });
    for prepare in [|app: App| app, |app: App| app.async_threads(0)] {
        let seen = threads_of_code(count, prepare);
        assert_eq!(seen.len(), count, "of {cpus} CPUs");
        let stays_away = |it: &(i64, usize)| it.0 == niceness && it.1 > first_cpu;
        assert!(seen.iter().all(stays_away) || cpus == 1, "{seen:?}");
    }
}

#[test]
fn more_queries_than_may_wait_are_servfail() {
    let app = app()
        .waiting_max(2)
        .deadline(Duration::from_secs(5))
        .handle_async("*.example", |_: OwnedQuery| std::future::pending::<Reply>());
    let running = app.start_blocking().unwrap();
    check(&running, &[("a.example", Type::A, "silence"), ("b.example", Type::A, "silence")]);
    check(&running, &[("c.example", Type::A, "SERVFAIL")]);
    running.stop_blocking().unwrap();
}

#[test]
fn middleware_sees_queries_and_replies_and_may_change_them() {
    let app = app()
        .middleware(|query: &Query, reply: &mut Reply| {
            if query.name().label(0) == b"blocked" {
                reply.extended_error(Ede::BLOCKED, "on the list");
                reply.nxdomain();
            }
            if query.name().label(0) == b"dropped" {
                reply.drop();
            }
        })
        .after(|_: &Query, reply: &mut Reply| reply.additional(Txt::new("seen")))
        .handle("*.example", |_: &Query, reply: &mut Reply| reply.answer(A::new([192, 0, 2, 1])));
    let running = app.start_blocking().unwrap();
    check(
        &running,
        &[
            ("blocked.example", Type::A, "NXDOMAIN blocked.example. TXT [4, 115, 101, 101, 110]"),
            ("dropped.example", Type::A, "silence"),
            (
                "a.example",
                Type::A,
                "NOERROR a.example. A [192, 0, 2, 1] a.example. TXT [4, 115, 101, 101, 110]",
            ),
            ("example", Type::A, "NOERROR example. TXT [4, 115, 101, 101, 110]"),
            ("other", Type::A, "REFUSED other. TXT [4, 115, 101, 101, 110]"),
        ],
    );
    let blocked = ask(&running, "blocked.example", Type::A).unwrap();
    assert!(blocked.opt.unwrap().options.contains(&(15, b"\0\x0fon the list".to_vec())));
    running.stop_blocking().unwrap();
}

#[test]
fn an_app_answers_queries_without_sockets() {
    let app = app()
        .handle("sync.example", |_: &Query, reply: &mut Reply| reply.answer(A::new([192, 0, 2, 1])))
        .handle_async("async.example", |query: OwnedQuery| async move {
            let mut reply = Reply::default();
            reply.answer(Txt::new(query.client().to_string()));
            reply
        });
    let running = app.start_blocking().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let reply = running.query_message(&question("sync.example", Type::A)).await.unwrap();
        let reply = Message::parse(&reply).unwrap();
        assert_eq!(told(Some(&reply)), "NOERROR sync.example. A [192, 0, 2, 1]");
        let client = Some("192.0.2.7:53".parse().unwrap());
        let reply = running.query_message_from(&question("async.example", Type::TXT), client).await;
        let reply = Message::parse(&reply.unwrap()).unwrap();
        assert_eq!(&reply.records[0].rdata[1..], b"192.0.2.7:53");
    });
    running.stop_blocking().unwrap();
}

/// Replies with the client's address, for names below its own.
struct ClientOfSubdomain;

impl Source for ClientOfSubdomain {
    fn answer(&self, query: &Query, reply: &mut Reply) {
        if query.qtype() == Type::TXT {
            reply.answer(Txt::new(query.name().label_count().to_string()));
        }
    }
}

#[test]
fn a_source_answers_its_name_and_all_names_below() {
    let app = app().source("source.example", ClientOfSubdomain);
    let running = app.start_blocking().unwrap();
    check(
        &running,
        &[
            ("source.example", Type::TXT, "NOERROR source.example. TXT [1, 50]"),
            ("a.b.source.example", Type::TXT, "NOERROR a.b.source.example. TXT [1, 52]"),
            ("a.b.source.example", Type::A, "NOERROR"),
            ("example", Type::TXT, "REFUSED"),
        ],
    );
    running.stop_blocking().unwrap();
}

#[test]
fn a_logger_gets_each_query_with_its_tags_and_duration() {
    let (sender, lines) = std::sync::mpsc::channel();
    let app = app()
        .handle("now.example", |_: &Query, reply: &mut Reply| {
            reply.tag("user", "anna");
            reply.answer(Txt::new("1"));
        })
        .handle("dropped.example", |_: &Query, reply: &mut Reply| reply.drop())
        .handle_async("later.example", |_: OwnedQuery| async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let mut reply = Reply::default();
            reply.tag("from", "afar");
            reply.nxdomain();
            reply
        })
        .logger(move |event: &Event| {
            let tags: Vec<_> = event.tags().map(|(key, value)| format!("{key}={value}")).collect();
            let waited = if event.waited.as_millis() >= 50 { "waited" } else { "at once" };
            let rcode = event.rcode.map_or("silence".to_owned(), |rcode| rcode.to_string());
            sender.send(format!("{} {rcode} {waited} {}", event.qtype(), tags.join(" "))).unwrap();
        });
    let running = app.start_blocking().unwrap();
    let next = |name| {
        ask_within(&running, name, Type::TXT, Duration::from_millis(500));
        lines.recv_timeout(Duration::from_secs(20)).unwrap()
    };
    assert_eq!(next("now.example"), "TXT NOERROR at once user=anna");
    assert_eq!(next("later.example"), "TXT NXDOMAIN waited from=afar");
    assert_eq!(next("dropped.example"), "TXT silence at once ");
    assert_eq!(next("nobody.example"), "TXT REFUSED at once ");
    running.stop_blocking().unwrap();
}

#[test]
fn a_logger_that_panics_costs_no_query() {
    let app = app()
        .handle("now.example", |_: &Query, reply: &mut Reply| reply.answer(Txt::new("1")))
        .handle_async("later.example", |_: OwnedQuery| async {
            let mut reply = Reply::default();
            reply.answer(Txt::new("2"));
            reply
        })
        .logger(|_: &Event| panic!("a mistake of the logger's"));
    let running = app.start_blocking().unwrap();
    for _ in 0..30 {
        assert_eq!(text(ask(&running, "now.example", Type::TXT)), "1");
        assert_eq!(text(ask(&running, "later.example", Type::TXT)), "2");
    }
    running.stop_blocking().unwrap();
}

#[test]
fn mistakes_are_reported_when_the_app_starts() {
    let error = |app: App| app.start_blocking().err().unwrap().to_string();
    let nothing = |_: &Query, _: &mut Reply| {};
    assert!(error(app().handle("a.*.example", nothing)).contains("a.*.example"));
    assert!(error(app().handle("example/BOGUS", nothing)).contains("BOGUS"));
    assert!(error(App::new().listen("nowhere")).contains("nowhere"));
}

/// Returns the text of the only record of a reply.
fn text(reply: Option<Message>) -> String {
    let reply = reply.unwrap();
    assert_eq!(reply.records.len(), 1, "{reply:?}");
    String::from_utf8_lossy(&reply.records[0].rdata[1..]).into_owned()
}

#[test]
fn a_cached_reply_is_sent_without_calling_code_for_its_lifetime() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = |vary: Option<Vary>, sees_client: bool| {
        let calls = Arc::clone(&calls);
        move |query: &Query, reply: &mut Reply| {
            if sees_client {
                let _ = query.client();
            }
            reply.answer(Txt::new(calls.fetch_add(1, Ordering::Relaxed).to_string()).ttl(9));
            if let Some(vary) = vary {
                reply.cache(60, vary);
            }
        }
    };
    let mut app = app()
        .handle("never.example", counted(None, false))
        .handle("all.example", counted(Some(Vary::Nothing), false))
        .handle("careless.example", counted(Some(Vary::Nothing), true))
        .handle("client.example", counted(Some(Vary::Client), true))
        .handle("subnet.example", counted(Some(Vary::Subnet), true));
    let count = Arc::clone(&calls);
    app = app.handle_async(":which.async.example", move |query: OwnedQuery| {
        let number = count.fetch_add(1, Ordering::Relaxed);
        async move {
            let is_careless = query.capture("which").unwrap() == b"careless";
            let mut reply = Reply::default();
            reply.answer(Txt::new(number.to_string()).ttl(9));
            reply.cache(60, if is_careless { Vary::Nothing } else { Vary::Client });
            let _ = query.client();
            reply
        }
    });
    let running = app.start_blocking().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ask_from = |client: &str, name: &str| {
        let client = Some(format!("{client}:53").parse().unwrap());
        let question = question(name, Type::TXT);
        let reply = runtime.block_on(running.query_message_from(&question, client));
        text(Message::parse(&reply.unwrap()).ok())
    };
    let (one, same_net, other) = ("192.0.2.65", "192.0.2.97", "198.51.100.1");
    for (name, shared) in [
        ("never.example", [false, false, false]),
        ("all.example", [true, true, true]),
        ("careless.example", [false, false, false]),
        ("client.example", [true, false, false]),
        ("subnet.example", [true, true, false]),
        ("careless.async.example", [false, false, false]),
        ("client.async.example", [true, false, false]),
    ] {
        let first = ask_from(one, name);
        let again = [one, same_net, other].map(|client| ask_from(client, name) == first);
        assert_eq!(again, shared, "{name}");
    }
    running.stop_blocking().unwrap();
}

#[test]
fn code_that_is_deferred_to_stays_when_handlers_come_and_go_and_passes_no_middleware_again() {
    let mut app = app();
    let passed = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&passed);
    app = app.deadline(Duration::from_millis(200));
    app = app.middleware_async(move |_: OwnedQuery| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Reply::default() }
    });
    let afar = app.deferred(|_: OwnedQuery| async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let mut reply = Reply::default();
        reply.answer(A::new([192, 0, 2, 7]));
        reply
    });
    app = app.handle("a.example", move |_: &Query, reply: &mut Reply| reply.defer_to(afar));
    let running = app.start_blocking().unwrap();
    let answer = [("a.example", Type::A, "NOERROR a.example. A [192, 0, 2, 7]")];
    for round in 1..=3 {
        check(&running, &answer);
        assert_eq!(passed.load(Ordering::SeqCst), round);
        running.handle("b.example", |_: &Query, reply: &mut Reply| reply.no_data()).unwrap();
        running.remove_handler("b.example").unwrap();
        thread::sleep(Duration::from_millis(250)); // longer than code that is gone is kept
    }
    running.stop_blocking().unwrap();
}

#[test]
fn code_that_computes_for_long_keeps_no_other_code_waiting() {
    let app = app()
        .handle_async("long.example", |_: OwnedQuery| async {
            thread::sleep(Duration::from_secs(2)); // as if it computed
            Reply::default()
        })
        .handle_async("short.example", |_: OwnedQuery| async { Reply::default() });
    let running = app.start_blocking().unwrap();
    let first = Instant::now();
    assert!(ask(&running, "long.example", Type::A).is_some());
    assert!(first.elapsed() >= Duration::from_secs(2));
    thread::scope(|scope| {
        let long = scope.spawn(|| ask(&running, "long.example", Type::A).unwrap());
        thread::sleep(Duration::from_millis(200));
        let asked = Instant::now();
        assert!(ask(&running, "short.example", Type::A).is_some());
        assert!(asked.elapsed() < Duration::from_millis(1500), "{:?}", asked.elapsed());
        assert!(!long.is_finished());
        long.join().unwrap();
    });
    running.stop_blocking().unwrap();
}

#[test]
fn middleware_of_a_pattern_that_computes_for_long_keeps_no_code_of_other_names_waiting() {
    let app = app()
        .middleware_for_async("*.long.example", |_: OwnedQuery| async {
            thread::sleep(Duration::from_secs(1)); // as if it computed
        })
        .handle_async("short.example", |_: OwnedQuery| async { Reply::default() });
    let running = app.start_blocking().unwrap();
    assert!(ask(&running, "a.long.example", Type::A).is_some(), "no handler is behind it");
    thread::scope(|scope| {
        let long = scope.spawn(|| ask(&running, "b.long.example", Type::A).unwrap());
        thread::sleep(Duration::from_millis(200));
        let asked = Instant::now();
        assert!(ask(&running, "short.example", Type::A).is_some());
        assert!(asked.elapsed() < Duration::from_millis(600), "{:?}", asked.elapsed());
        assert!(!long.is_finished());
        long.join().unwrap();
    });
    running.stop_blocking().unwrap();
}

#[test]
fn texts_are_put_into_force_while_the_configuration_is_being_edited() {
    let text =
        |last: u8| format!("@ 300 SOA ns h 1 2 3 4 5\n@ 300 NS ns\nns 300 A 192.0.2.{last}\n");
    let folder = zonda_testkit::process::Folder::new("texts");
    let file = folder.write("zonda.toml", "version = 1\n[admin]\nsocket = \"off\"\n");
    let app =
        app().config(&file).zone_text("example.org", text(1)).zone_text("example.com", text(1));
    let running = app.start_blocking().unwrap();
    folder.write("zonda.toml", "version = 1\nwrong = 1\n[admin]\nsocket = \"off\"\n");
    running.set_zone_text_blocking("example.org", text(2)).unwrap();
    running.set_zone_text_blocking("example.net", text(2)).unwrap();
    assert!(running.remove_zone_text_blocking("example.com").unwrap());
    assert!(!running.remove_zone_text_blocking("example.com").unwrap());
    assert!(running.reload_blocking().is_err());
    let second = "NOERROR ns.example.org. A [192, 0, 2, 2]";
    let net = "NOERROR example.net. NS [2, 110, 115, 7, 101, 120, 97, 109, 112, 108, 101, 3, 110, \
               101, 116, 0] ns.example.net. A [192, 0, 2, 2]";
    check(&running, &[("ns.example.org", Type::A, second), ("example.com", Type::NS, "REFUSED")]);
    folder.write("zonda.toml", "version = 1\n[admin]\nsocket = \"off\"\n");
    running.reload_blocking().unwrap();
    check(&running, &[("ns.example.org", Type::A, second), ("example.net", Type::NS, net)]);
    running.stop_blocking().unwrap();
}

#[test]
fn a_text_for_a_zone_with_a_file_is_refused_with_the_name_of_the_file() {
    let text = "@ 300 SOA ns h 1 2 3 4 5\n@ 300 NS ns\nns 300 A 192.0.2.1\n";
    let folder = zonda_testkit::process::Folder::new("texts");
    let file = folder.write("example.org.zone", text);
    let app = app().zone("example.org", &file);
    let running = app.start_blocking().unwrap();
    let error = running.set_zone_text_blocking("Example.org", text).unwrap_err().to_string();
    assert!(error.contains("already served from") && error.contains("org.zone"), "{error}");
    assert!(!running.remove_zone_text_blocking("example.org").unwrap());
    running.stop_blocking().unwrap();
}

#[test]
fn a_zone_given_as_text_is_replaced_while_it_is_served_and_survives_a_mistake() {
    let text = |last: u8| {
        format!("@ 300 SOA ns hostmaster 1 2 3 4 5\n@ 300 NS ns\nns 300 A 192.0.2.{last}\n")
    };
    let app = app().zone_text("Example.org", text(1));
    let running = app.start_blocking().unwrap();
    let answer = |last: u8| format!("NOERROR ns.example.org. A [192, 0, 2, {last}]");
    check(&running, &[("ns.example.org", Type::A, &answer(1))]);
    running.set_zone_text_blocking("example.org", text(2)).unwrap();
    check(&running, &[("ns.example.org", Type::A, &answer(2))]);
    let mistakes = format!("{}b 300 A 192.0.2\nc 300 AAAA ::x\n", text(3));
    let error = running.set_zone_text_blocking("Example.org", mistakes).unwrap_err().to_string();
    let lines: Vec<_> = error.lines().collect();
    assert_eq!(lines.len(), 2, "{error}");
    assert!(lines[0].starts_with("example.org. (of the program):4:"), "{error}");
    assert!(lines[1].starts_with("example.org. (of the program):5:"), "{error}");
    assert!(
        running.set_zone_text_blocking("example.net", "a 300 A 192.0.2.1\n").is_err(),
        "no SOA record"
    );
    running.reload_blocking().unwrap();
    check(&running, &[("ns.example.org", Type::A, &answer(2))]);
    check(&running, &[("a.example.net", Type::A, "REFUSED")]);
    running.set_zone_text_blocking("example.net", text(3)).unwrap();
    check(&running, &[("ns.example.net", Type::A, "NOERROR ns.example.net. A [192, 0, 2, 3]")]);
    assert!(running.remove_zone_text_blocking("example.org").unwrap());
    check(&running, &[("ns.example.org", Type::A, "REFUSED")]);
    running.stop_blocking().unwrap();
}

#[test]
fn handlers_are_replaced_while_they_are_called_without_a_query_lost() {
    let app =
        app().handle("name.example", |_: &Query, reply: &mut Reply| reply.answer(Txt::new("0")));
    let running = app.start_blocking().unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut asked = 0;
            while !stop.load(Ordering::Relaxed) {
                let number = text(ask(&running, "name.example", Type::TXT));
                assert!(number.parse::<u32>().is_ok(), "{number}");
                asked += 1;
            }
            asked
        });
        for round in 1..=20_u32 {
            if round % 2 == 0 {
                let number =
                    move |_: &Query, reply: &mut Reply| reply.answer(Txt::new(round.to_string()));
                running.handle("name.example", number).unwrap();
            } else {
                let number = move |_: OwnedQuery| async move {
                    let mut reply = Reply::default();
                    reply.answer(Txt::new(round.to_string()));
                    reply
                };
                running.handle_async("name.example", number).unwrap();
            }
            assert_eq!(text(ask(&running, "name.example", Type::TXT)), round.to_string());
        }
        stop.store(true, Ordering::Relaxed);
        assert!(asking.join().unwrap() > 0);
    });
    assert!(running.remove_handler("name.example").unwrap());
    check(&running, &[("name.example", Type::TXT, "REFUSED")]);
    running.stop_blocking().unwrap();
}

#[test]
fn asynchronous_middleware_comes_before_handlers_of_both_kinds_and_zones() {
    let app = app()
        .middleware_async(|query: OwnedQuery| async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let mut reply = Reply::default();
            if query.name().to_string().starts_with("blocked") {
                reply.nxdomain();
            }
            reply
        })
        .handle(":name.sync.example", |query: &Query, reply: &mut Reply| {
            reply.answer(Txt::new(query.capture("name").unwrap()))
        })
        .handle_async(":name.async.example", |query: OwnedQuery| async move {
            let mut reply = Reply::default();
            reply.answer(Txt::new(query.capture("name").unwrap()));
            reply
        })
        .zone_text("example.org", "@ 300 SOA ns h 1 2 3 4 5\n@ 300 NS ns\nns 300 A 192.0.2.1\n");
    let running = app.start_blocking().unwrap();
    check(
        &running,
        &[
            ("blocked.sync.example", Type::TXT, "NXDOMAIN"),
            ("blocked.async.example", Type::TXT, "NXDOMAIN"),
            ("blocked.example.org", Type::A, "NXDOMAIN"),
            ("a.sync.example", Type::TXT, "NOERROR a.sync.example. TXT [1, 97]"),
            ("b.async.example", Type::TXT, "NOERROR b.async.example. TXT [1, 98]"),
            ("ns.example.org", Type::A, "NOERROR ns.example.org. A [192, 0, 2, 1]"),
            ("example.net", Type::A, "REFUSED"),
        ],
    );
    running.stop_blocking().unwrap();
}

/// Answers for all apps that share it.
#[derive(Default)]
struct SharedCache(Mutex<HashMap<Vec<u8>, Reply>>);

impl Cache for SharedCache {
    fn lookup(&self, query: &Query, reply: &mut Reply) {
        if let Some(kept) = self.0.lock().unwrap().get(&query.cache_key()) {
            reply.copy_aged(kept, 1);
        }
    }

    fn insert(&self, query: &Query, reply: &Reply) {
        self.0.lock().unwrap().insert(query.cache_key(), reply.clone());
    }
}

#[test]
fn apps_share_a_cache_in_front_of_handlers_sources_and_asynchronous_code() {
    let cache = Arc::<SharedCache>::default();
    let start = |who: &'static str| {
        let app = app()
            .cache(Arc::clone(&cache))
            .deadline(Duration::from_millis(200))
            .handle("sync.example", move |_: &Query, reply: &mut Reply| {
                reply.answer(Txt::new(who));
            })
            .source("source.example", move |_: &Query, reply: &mut Reply| {
                reply.answer(Txt::new(who));
            })
            .handle_async(":what.async.example", move |query: OwnedQuery| async move {
                let mut reply = Reply::default();
                match query.capture("what").unwrap() {
                    b"late" => std::future::pending().await,
                    b"client" => reply.answer(Txt::new(format!("{who} {}", query.client().ip()))),
                    b"broken" => return Err("a mistake"),
                    _ => reply.answer(Txt::new(who)),
                }
                Ok(reply)
            });
        app.start_blocking().unwrap()
    };
    let (one, two) = (start("one"), start("two"));
    for (name, answers) in [
        ("sync.example", ["one", "one"]),
        ("a.source.example", ["one", "one"]),
        ("a.async.example", ["one", "one"]),
        ("client.async.example", ["one 127.0.0.1", "two 127.0.0.1"]),
    ] {
        assert_eq!([&one, &two].map(|app| text(ask(app, name, Type::TXT))), answers, "{name}");
    }
    check(&one, &[("late.async.example", Type::TXT, "SERVFAIL")]);
    check(&one, &[("broken.async.example", Type::TXT, "SERVFAIL")]);
    assert_eq!(cache.0.lock().unwrap().len(), 3);
    let ttl = |app: &Running| ask(app, "sync.example", Type::TXT).unwrap().records[0].ttl;
    assert_eq!((ttl(&one), ttl(&two)), (299, 299));
    one.stop_blocking().unwrap();
    two.stop_blocking().unwrap();
}

#[test]
fn stopping_waits_for_asynchronous_code_and_answers_its_queries() {
    let app = app().handle_async("slow.example", |_: OwnedQuery| async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let mut reply = Reply::default();
        reply.answer(A::new([192, 0, 2, 1]));
        reply
    });
    let running = app.start_blocking().unwrap();
    let (server, asked) = (running.addresses()[0], Instant::now());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket.send_to(&question("slow.example", Type::A), server).unwrap();
    thread::sleep(Duration::from_millis(100));
    running.stop_blocking().unwrap();
    assert!(asked.elapsed() >= Duration::from_millis(300));
    let mut buffer = [0; 512];
    let len = socket.recv(&mut buffer).unwrap();
    let reply = Message::parse(&buffer[..len]).unwrap();
    assert_eq!(told(Some(&reply)), "NOERROR slow.example. A [192, 0, 2, 1]");
}

/// Whether a server answers at an address.
fn is_up(server: SocketAddr) -> bool {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    socket.send(&question("a.example", Type::A)).is_ok() && socket.recv(&mut [0; 512]).is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_runs_until_stop_is_called_or_its_future_is_dropped() {
    for is_dropped in [false, true] {
        let server = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let app = App::new()
            .listen(server)
            .workers(1)
            .handle("a.example", |_: &Query, reply: &mut Reply| reply.nxdomain());
        let run = async move { app.serve_until(async { _ = stopped.await }).await.unwrap() };
        let running = tokio::spawn(run);
        let becomes = async |is_up_then: bool| {
            let since = Instant::now();
            while tokio::task::spawn_blocking(move || is_up(server)).await.unwrap() != is_up_then {
                assert!(since.elapsed() < Duration::from_secs(20), "up: {}", !is_up_then);
            }
        };
        becomes(true).await;
        match is_dropped {
            true => running.abort(),
            false => stop.send(()).unwrap(),
        }
        assert_eq!(running.await.is_ok(), !is_dropped);
        becomes(false).await;
    }
}

#[test]
fn an_app_without_listeners_answers_queries_without_sockets() {
    let app = App::new()
        .listen_nowhere()
        .handle("a.example", |_: &Query, reply: &mut Reply| reply.answer(A::new([192, 0, 2, 1])))
        .handle_async("b.example", |_: OwnedQuery| async { Reply::default() });
    let running = app.start_blocking().unwrap();
    assert!(running.addresses().is_empty());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let ask = |name| runtime.block_on(running.query(name, Type::A)).unwrap();
    assert_eq!(told(Some(&ask("a.example"))), "NOERROR a.example. A [192, 0, 2, 1]");
    assert_eq!(told(Some(&ask("b.example"))), "NOERROR");
    running.stop_blocking().unwrap();
}

#[test]
fn code_extends_the_zones_of_a_configuration_file() {
    let directory = std::env::temp_dir().join(format!("zonda-app-config-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let zone = "@ 300 SOA ns h 1 2 3 4 5\n@ 300 NS ns\nns 300 A 192.0.2.53\n";
    std::fs::write(directory.join("example.org.zone"), zone).unwrap();
    let config = "version = 1\nworkers = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
                  [[zone]]\nname = \"example.org\"\nfile = \"example.org.zone\"\n\
                  [admin]\naddress = \"off\"\nsocket = \"off\"\n";
    std::fs::write(directory.join("zonda.toml"), config).unwrap();
    let app = App::new()
        .config(directory.join("zonda.toml"))
        .handle("www.example.org/A", |_: &Query, reply: &mut Reply| {
            reply.answer(A::new([192, 0, 2, 1]))
        });
    let running = app.start_blocking().unwrap();
    check(
        &running,
        &[
            ("www.example.org", Type::A, "NOERROR www.example.org. A [192, 0, 2, 1]"),
            ("ns.example.org", Type::A, "NOERROR ns.example.org. A [192, 0, 2, 53]"),
            ("example.com", Type::A, "REFUSED"),
        ],
    );
    let other = ask(&running, "www.example.org", Type::AAAA).unwrap();
    assert_eq!(
        (other.rcode(), &*other.records[0].owner.to_string()),
        (Rcode::NOERROR, "example.org.")
    );
    running.stop_blocking().unwrap();
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn names_without_code_or_zone_are_forwarded() {
    let upstream = app()
        .handle("*.example", |_: &Query, reply: &mut Reply| {
            reply.answer(A::new([192, 0, 2, 7]).ttl(60));
        })
        .handle("none.example", |_: &Query, reply: &mut Reply| reply.nxdomain());
    let upstream = upstream.start_blocking().unwrap();
    let app = app()
        .forward(upstream.addresses()[0])
        .handle("blocked.example", |_: &Query, reply: &mut Reply| reply.nxdomain())
        .handle("plain.example", |_: &Query, reply: &mut Reply| {
            reply.answer(A::new([192, 0, 2, 1]));
            reply.authoritative(false);
        })
        .handle("none.example/TXT", |_: &Query, reply: &mut Reply| reply.answer(Txt::new("some")));
    let running = app.start_blocking().unwrap();
    check(
        &running,
        &[
            ("blocked.example", Type::A, "NXDOMAIN"),
            ("www.example", Type::A, "NOERROR www.example. A [192, 0, 2, 7]"),
            ("www.example", Type::A, "NOERROR www.example. A [192, 0, 2, 7]"),
            ("none.example", Type::TXT, "NOERROR none.example. TXT [4, 115, 111, 109, 101]"),
            ("none.example", Type::A, "NOERROR"), // but other servers deny it
        ],
    );
    /// Authoritative answer.
    const AA: u16 = 0x0400;
    assert!(ask(&running, "blocked.example", Type::A).unwrap().has(AA));
    assert!(!ask(&running, "plain.example", Type::A).unwrap().has(AA));
    assert!(!ask(&running, "www.example", Type::A).unwrap().has(AA));
    running.stop_blocking().unwrap();
    upstream.stop_blocking().unwrap();
}

/// Returns a question for TXT with an option that gives a network: family, source and scope prefix
/// length, octets of the address (rfc7871#6).
fn question_for(name: &str, option: &[u8]) -> Vec<u8> {
    let mut query = question(name, Type::TXT);
    let rdata = [&[0, 8, 0, option.len() as u8], option].concat();
    *query.last_mut().unwrap() = rdata.len() as u8;
    query.extend_from_slice(&rdata);
    query
}

#[test]
fn a_cached_reply_is_sent_only_to_clients_it_was_made_for() {
    let calls = Arc::new(AtomicU32::new(0));
    let mut app = app();
    for (name, vary) in [("client.example", Vary::Client), ("subnet.example", Vary::Subnet)] {
        let calls = Arc::clone(&calls);
        app = app.handle(name, move |query: &Query, reply: &mut Reply| {
            calls.fetch_add(1, Ordering::Relaxed);
            let told = query.client_subnet().map(|told| told.to_string());
            reply.answer(Txt::new(format!("{} {told:?}", query.client().ip())));
            reply.cache(60, vary);
        });
    }
    app = app.handle("*.example", |_: &Query, reply: &mut Reply| {
        reply.answer(Txt::new("another name"));
        reply.cache(60, Vary::Nothing);
    });
    let running = app.start_blocking().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let asked = |name: &str, client: &str, option: &[u8]| {
        let query = match option {
            [] => question(name, Type::TXT),
            option => question_for(name, option),
        };
        let client = format!("{client}:53").parse().unwrap();
        let reply = runtime.block_on(running.query_message_from(&query, Some(client))).unwrap();
        text(Message::parse(&reply).ok())
    };
    let clients = [
        ("10.0.0.7", &[][..], "10.0.0.7 None"),
        ("198.51.100.1", &[0, 1, 24, 0, 10, 0, 0], "198.51.100.1 Some(\"10.0.0.0/24\")"),
        ("198.51.100.1", &[0, 1, 24, 0, 10, 0, 1], "198.51.100.1 Some(\"10.0.1.0/24\")"),
        ("198.51.100.1", &[], "198.51.100.1 None"),
        ("203.0.113.1", &[0, 1, 24, 0, 10, 0, 0], "203.0.113.1 Some(\"10.0.0.0/24\")"),
    ];
    for name in ["client.example", "subnet.example"] {
        calls.store(0, Ordering::Relaxed);
        for (client, option, expected) in clients.iter().chain(&clients) {
            assert_eq!(asked(name, client, option), *expected, "{name}");
        }
        assert_eq!(calls.load(Ordering::Relaxed), 5, "{name}: each once, then kept");
        for labels in ["4-24-0a000000", "4-128-0a000007", "4-32-0a000007"] {
            asked(&format!("{labels}.{name}"), "10.0.0.9", &[]);
        }
        assert_eq!(asked(name, "10.0.0.7", &[]), "10.0.0.7 None", "{name}");
        // An option that holds no network is a format error, for which no code is called.
        let query = question_for(name, &[0, 1, 24, 0]);
        let reply = runtime.block_on(running.query_message(&query)).unwrap();
        assert_eq!(Message::parse(&reply).unwrap().rcode(), Rcode::FORMERR, "{name}");
        assert_eq!(calls.load(Ordering::Relaxed), 5, "{name}");
    }
    running.stop_blocking().unwrap();
}

#[test]
fn a_reply_for_a_network_is_cached_for_the_client_subnet_option() {
    let calls = AtomicU32::new(0);
    let app = app().handle("subnet.example", move |_: &Query, reply: &mut Reply| {
        reply.answer(Txt::new(calls.fetch_add(1, Ordering::Relaxed).to_string()));
        reply.cache(60, Vary::Subnet);
    });
    let running = app.start_blocking().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let asked_for = |option: &[u8]| {
        let query = question_for("subnet.example", option);
        let reply = runtime.block_on(running.query_message(&query)).unwrap();
        text(Message::parse(&reply).ok())
    };
    for (option, call) in [
        (&[0, 1, 24, 0, 192, 0, 2][..], "0"),
        (&[0, 1, 24, 0, 192, 0, 2], "0"),
        (&[0, 1, 24, 0, 192, 0, 3], "1"),
        (&[0, 1, 16, 0, 192, 0], "2"),
        (&[0, 1, 0, 0], "3"),
        (&[0, 2, 48, 0, 0x20, 1, 0xd, 0xb8, 0, 1], "4"),
        (&[0, 2, 48, 0, 0x20, 1, 0xd, 0xb8, 0, 1], "4"),
        (&[0, 1, 24, 0, 192, 0, 2], "0"),
    ] {
        assert_eq!(asked_for(option), call, "{option:?}");
    }
    let query = question_for("subnet.example", &[0, 7, 24, 0, 192, 0, 2]); // of no known family
    let reply = runtime.block_on(running.query_message(&query)).unwrap();
    assert_eq!(Message::parse(&reply).unwrap().rcode(), Rcode::FORMERR);
    running.stop_blocking().unwrap();
}
