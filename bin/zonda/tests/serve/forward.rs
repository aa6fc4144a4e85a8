//! Names that other servers answer for.

use super::server::{Server, ask_once, wait_until, zone};
use serde_json::Value;
use std::collections::HashSet;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};
use zonda_testkit::process::{Folder, free_port};
use zonda_testkit::upstream::{
    Gate, ReceivedQuery, Record, Reply, Rule, always, say, tell, until, wait, when,
};
use zonda_testkit::{Message, Peer, PeerKind, Question, Upstream, Zonda, ask};

/// A server for `.` with these keys of `[zone.forward]`, and a zone of its own.
struct Forwarder {
    zonda: Zonda,
    _folder: Folder,
}

impl Forwarder {
    fn start(upstreams: &[SocketAddr], keys: &str) -> Self {
        let folder = Folder::new("forward");
        let to: Vec<String> = upstreams.iter().map(|address| format!("\"{address}\"")).collect();
        let config = format!(
            "version = 1\n[[zone]]\nname = \".\"\n[zone.forward]\nto = [{}]\n{keys}\n\
             [admin]\naddress = \"off\"\nsocket = \"off\"\n",
            to.join(", ")
        );
        let config = folder.write("zonda.toml", config);
        let arguments = ["--config", config.to_str().unwrap()];
        let own = zone(1);
        let zonda = Zonda::start(env!("CARGO_BIN_EXE_zonda"), &[("example.org", &own)], &arguments);
        Self { zonda, _folder: folder }
    }

    fn ask(&self, name: &str, rtype: &str) -> Message {
        ask(self.zonda.address, &recursive(name, rtype)).unwrap()
    }

    /// Asks for these names once each, one after the other, and returns how long each answer took;
    /// every one must come, and be an answer.
    fn times(&self, names: std::ops::Range<u32>) -> Vec<Duration> {
        let time = |number| {
            let start = Instant::now();
            let question = recursive(&format!("name{number}.example.net"), "A");
            let rcode = ask_once(self.zonda.address, &question);
            assert!(matches!(rcode, Ok(0)), "{number}: {rcode:?}");
            start.elapsed()
        };
        names.map(time).collect()
    }
}

/// A question as clients ask it that want recursion.
fn recursive(name: &str, rtype: &str) -> Question {
    Question::new(name, rtype).recursive().edns(1232)
}

/// What an upstream does that answers with the address 192.0.2.`octet`.
fn answers(octet: u8) -> [Rule; 1] {
    [always().then([say(Reply::address(octet))])]
}

/// What an upstream does that has this response code for everything.
fn fails(rcode: u8) -> [Rule; 1] {
    [always().then([say(Reply::rcode(rcode))])]
}

/// The data of the only record of an answer.
fn data(message: &Message) -> String {
    let [record] = &message.answer[..] else { panic!("{message:?}") };
    record.data.text.clone()
}

/// The extended error that comes with a reply.
fn extended_error(message: &Message) -> Option<u16> {
    let options = &message.edns.as_ref()?.options;
    let (_, data) = options.iter().find(|(code, _)| *code == 15)?;
    Some(u16::from_be_bytes([data[0], data[1]]))
}

#[test]
fn each_query_to_an_upstream_has_the_options_of_its_zone() {
    let has_option = |asked: &ReceivedQuery| {
        let own = asked.options.iter().filter(|(code, _)| *code > 12);
        own.eq(&[(65518, b"abcd".to_vec()), (65519, Vec::new())])
    };
    let upstream = Upstream::start(vec![
        when(move |asked| has_option(asked) && !asked.tcp).then([say(Reply::address(1))]),
        when(has_option).then([say(Reply::address(2))]),
        always().then([say(Reply::rcode(5))]),
    ]);
    let options = "options = [\"65518 0x61626364\", \"65519\"]";
    let forwarder = Forwarder::start(&[upstream.address], options);
    assert_eq!(data(&forwarder.ask("a.example.net", "A")), "192.0.2.1");
    let config = format!(
        "{options}\n[[zone]]\nname = \"tcp.test\"\nforward = {{ to = \
        [\"tcp://{}\"], options = [\"65518 0x61626364\", \"65519\"] }}",
        upstream.address
    );
    let forwarder = Forwarder::start(&[upstream.address], &config);
    assert_eq!(data(&forwarder.ask("a.tcp.test", "A")), "192.0.2.2");
}

/// Asks a forwarder from an address of loopback; returns the data of the only record.
fn ask_from(client: [u8; 4], forwarder: &Forwarder, name: &str) -> String {
    let socket = UdpSocket::bind((std::net::IpAddr::from(client), 0)).unwrap();
    socket.connect(forwarder.zonda.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket.send(&recursive(name, "A").edns(1232).to_bytes(7)).unwrap();
    let mut reply = [0; 512];
    let len = socket.recv(&mut reply).unwrap();
    data(&Message::parse(&reply[..len]).unwrap())
}

#[test]
fn clients_share_a_cached_answer_only_if_the_upstream_is_told_the_same_of_them() {
    for (option, code) in
        [("8 {client-subnet 24 56}", 8), ("65001 {client-address}", 65001), ("65001 {name}", 65001)]
    {
        let upstream = Upstream::start([always().then([tell(move |asked: &ReceivedQuery| {
            let told = asked.options.iter().find(|option| option.0 == code);
            // The octet in which networks of 24 bits differ here, or the length of the name.
            Reply::address(told.map_or(0, |(_, data)| match data.len() {
                7 => data[6],
                4 => data[2],
                len => u8::try_from(len).unwrap(),
            }))
        })])]);
        let forwarder = Forwarder::start(&[upstream.address], &format!("options = [\"{option}\"]"));
        let by_client = |octet: u8| match option {
            "65001 {name}" => "192.0.2.14".to_owned(),
            _ => format!("192.0.2.{octet}"),
        };
        for _ in 0..2 {
            for (client, octet) in [([127, 0, 1, 7], 1), ([127, 0, 2, 7], 2), ([127, 0, 1, 7], 1)] {
                let found = ask_from(client, &forwarder, "a.example.net");
                assert_eq!(found, by_client(octet), "{option} for {client:?}");
            }
        }
        let expected = if option.contains("client") { 2 } else { 1 };
        let asked = upstream.count(|asked| asked.name == "a.example.net.");
        assert_eq!(asked, expected, "{option}: answers were cached");
        if option.contains("client-subnet") {
            assert_eq!(ask_from([127, 0, 2, 9], &forwarder, "a.example.net"), by_client(2));
            let asked = upstream.count(|asked| asked.name == "a.example.net.");
            assert_eq!(asked, expected, "clients of one network share the answer");
        }
    }
}

#[test]
fn a_zone_may_have_times_in_the_cache_of_its_own() {
    let upstream = Upstream::start([
        when(|asked| asked.name.starts_with("no."))
            .then([say(Reply::rcode(3).authority(Record::soa("test", 300)))]),
        always().then([say(Reply::empty().answer(Record::address(1).ttl(300)))]),
    ]);
    let zone = |name: &str, keys: &str| {
        format!(
            "[[zone]]\nname = \"{name}\"\n[zone.forward]\nto = [\"{}\"]\n{keys}\n",
            upstream.address
        )
    };
    let zones = "negative-ttl-max = \"0s\"\n".to_owned()
        + &zone("a.test", "ttl-max = \"0s\"")
        + &zone("b.test", "ttl-max = \"100s\"");
    let forwarder = Forwarder::start(&[upstream.address], &zones);
    for (name, ttl, times) in [
        ("x.a.test", Some(300), 2),
        ("no.a.test", None, 1),
        ("x.b.test", Some(100), 1),
        ("x.c.test", Some(300), 1),
        ("no.c.test", None, 2),
    ] {
        for _ in 0..2 {
            let found = forwarder.ask(name, "A");
            assert_eq!(found.answer.first().map(|record| record.ttl), ttl, "{name}");
        }
        let asked = upstream.count(|asked| asked.name == format!("{name}."));
        assert_eq!(asked, times, "{name}");
    }
}

#[test]
fn clients_wait_together_and_get_expired_answers_by_what_the_upstream_is_told_of_them() {
    let gate = Gate::default();
    let told = |asked: &ReceivedQuery| {
        let option = asked.options.iter().find(|option| option.0 == 8);
        Reply::empty().answer(Record::address(option.map_or(0, |option| option.1[6])).ttl(1))
    };
    let upstream = Upstream::start([always().then([until(&gate), tell(told)])]);
    let options = "options = [\"8 {client-subnet 24 56}\"]\nstale-after = \"100 ms\"";
    let forwarder = Forwarder::start(&[upstream.address], options);
    let clients = [[127, 0, 1, 7], [127, 0, 1, 8], [127, 0, 2, 7], [127, 0, 2, 8]];
    let ask_all = |asked_min: usize| {
        thread::scope(|scope| {
            let forwarder = &forwarder;
            let ask = |client| scope.spawn(move || ask_from(client, forwarder, "a.example.net"));
            let asking: Vec<_> = clients.map(ask).into_iter().collect();
            wait_until("both networks are asked for", || {
                upstream.count(|asked| asked.name == "a.example.net.") >= asked_min
            });
            gate.open();
            asking.into_iter().map(|it| it.join().unwrap()).collect::<Vec<_>>()
        })
    };
    let by_network = ["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.2"];
    assert_eq!(ask_all(2), by_network);
    let asked = upstream.count(|asked| asked.name == "a.example.net.");
    assert_eq!(asked, 2, "clients of one network wait together");
    upstream.now_does([always().then([])]);
    thread::sleep(Duration::from_secs(2)); // the answers expire
    assert_eq!(ask_all(0), by_network, "each network has its own expired answer");
}

#[test]
fn an_option_of_the_client_is_replaced_and_never_passed_on() {
    let upstream = Upstream::start(answers(1));
    let options = "options = [\"65001 0x6f7572 if-present\"]";
    let forwarder = Forwarder::start(&[upstream.address], options);
    let of_client = |code: u16, name: &str| {
        let question = recursive(name, "A").edns(1232).option(code, b"theirs");
        ask(forwarder.zonda.address, &question).unwrap();
        let log = upstream.log();
        let asked = log.iter().rfind(|asked| asked.name == format!("{name}.")).unwrap();
        let own = asked.options.iter().filter(|option| option.0 > 12);
        own.cloned().collect::<Vec<_>>()
    };
    assert_eq!(of_client(65001, "a.example.net"), [(65001, b"our".to_vec())]);
    assert_eq!(of_client(65002, "b.example.net"), []);
    assert_eq!(of_client(65002, "a.example.net"), [], "the answer with the option is another one");
    // Of a long query, other options are not kept while it waits.
    let long = recursive("c.example.net", "A").edns(1232).option(65003, &[7; 600]);
    ask(forwarder.zonda.address, &long.option(65001, b"theirs")).unwrap();
    let log = upstream.log();
    let asked = log.iter().rfind(|asked| asked.name == "c.example.net.").unwrap();
    assert!(asked.options.contains(&(65001, b"our".to_vec())), "{:?}", asked.options);
}

#[test]
fn answers_of_a_real_server_are_passed_on_and_kept() {
    let long = "x".repeat(200);
    let upstream_zone = format!(
        "$TTL 60\n@ SOA ns host 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.2\n\
         alias CNAME www\n{}",
        (0..20).map(|number| format!("big TXT \"{number}{long}\"\n")).collect::<String>()
    );
    let upstream = Peer::start(PeerKind::Nsd, &[("example.net", &upstream_zone)]);
    let forwarder = Forwarder::start(&[upstream.address], "");
    let check = || {
        assert_eq!(data(&forwarder.ask("www.example.net", "A")), "192.0.2.2");
        assert_eq!(forwarder.ask("alias.example.net", "A").answer.len(), 2);
        let missing = forwarder.ask("missing.example.net", "A");
        assert_eq!((missing.rcode_text(), missing.authority.len()), ("NXDOMAIN".to_owned(), 1));
        let no_data = forwarder.ask("www.example.net", "AAAA");
        assert_eq!((no_data.rcode_text(), no_data.authority.len()), ("NOERROR".to_owned(), 1));
        let big = recursive("big.example.net", "TXT").over_tcp();
        assert_eq!(ask(forwarder.zonda.address, &big).unwrap().answer.len(), 20);
    };
    check();
    drop(upstream);
    check();
    assert_eq!(
        forwarder.ask("example.org", "SOA").rcode_text(),
        "NOERROR",
        "our own zone goes first"
    );
}

#[test]
fn a_dead_upstream_costs_a_client_less_than_300_ms() {
    let dead = UdpSocket::bind("127.0.0.1:0").unwrap(); // receives, and says nothing
    let alive = Upstream::start(answers(7));
    let forwarder = Forwarder::start(&[dead.local_addr().unwrap(), alive.address], "");
    for number in 0..20 {
        let start = Instant::now();
        assert_eq!(data(&forwarder.ask(&format!("name{number}.example.net"), "A")), "192.0.2.7");
        assert!(start.elapsed() < Duration::from_millis(300), "{:?}", start.elapsed());
    }
}

#[test]
fn a_client_is_told_why_there_is_no_answer() {
    let dead = UdpSocket::bind("127.0.0.1:0").unwrap();
    let forwarder = Forwarder::start(&[dead.local_addr().unwrap()], "timeout = \"300 ms\"");
    let start = Instant::now();
    let reply = forwarder.ask("www.example.net", "A");
    assert!((300..2000).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
    assert_eq!(reply.rcode_text(), "SERVFAIL");
    assert_eq!(extended_error(&reply), Some(22));
    let refusing = Upstream::start(fails(5));
    let forwarder = Forwarder::start(&[refusing.address], "");
    let start = Instant::now();
    let reply = forwarder.ask("www.example.net", "A");
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!((reply.rcode_text(), extended_error(&reply)), ("SERVFAIL".to_owned(), Some(23)));
}

#[test]
fn an_expired_answer_is_given_when_no_newer_can_be_had() {
    let briefly = Reply::empty().answer(Record::address(7).ttl(1));
    let once = Upstream::start([when(|asked| asked.number == 0).then([say(briefly)])]);
    let keys = "timeout = \"2s\"\nstale-after = \"200 ms\"";
    let forwarder = Forwarder::start(&[once.address], keys);
    assert_eq!(data(&forwarder.ask("www.example.net", "A")), "192.0.2.7");
    wait_until("the answer to expire and be given as such", || {
        let start = Instant::now();
        let reply = forwarder.ask("www.example.net", "A");
        assert_eq!(data(&reply), "192.0.2.7");
        let is_stale = extended_error(&reply) == Some(3);
        assert!(!is_stale || start.elapsed() >= Duration::from_millis(200));
        is_stale
    });
}

#[test]
fn equal_questions_wait_for_one_answer_together() {
    // Less than after what it would be asked again.
    let slow = Upstream::start([always().then([wait(60..61), say(Reply::address(7))])]);
    let forwarder = Forwarder::start(&[slow.address], "");
    let address = forwarder.zonda.address;
    let clients: Vec<_> = (0..20)
        .map(|number| {
            let name = if number % 2 == 0 { "www.example.net" } else { "WWW.Example.NET" };
            thread::spawn(move || ask(address, &recursive(name, "A")).unwrap())
        })
        .collect();
    for client in clients {
        assert_eq!(data(&client.join().unwrap()), "192.0.2.7");
    }
    assert_eq!(slow.asked(), 1);
}

#[test]
fn forwarding_takes_one_flag() {
    let upstream = Upstream::start(answers(7));
    let to = upstream.address.to_string();
    let own = zone(1);
    let zonda =
        Zonda::start(env!("CARGO_BIN_EXE_zonda"), &[("example.org", &own)], &["--forward", &to]);
    let reply = ask(zonda.address, &recursive("www.example.net", "A")).unwrap();
    assert_eq!(data(&reply), "192.0.2.7");
    let line = format!("forwarding zone=\".\" upstreams=\"{to}\"");
    wait_until("the log says so", || zonda.process.log("forwarding").contains(&line));
}

#[test]
fn one_of_two_upstreams_that_falls_silent_costs_no_query_and_is_soon_forgotten() {
    let (first, second) = (Upstream::start(answers(1)), Upstream::start(answers(2)));
    let forwarder = Forwarder::start(&[first.address, second.address], "policy = \"in-order\"");
    forwarder.times(0..200);
    first.now_does([]);
    let start = Instant::now();
    let slowest = forwarder.times(200..400).into_iter().max().unwrap();
    assert!(slowest < Duration::from_millis(500), "{slowest:?}");
    thread::sleep(Duration::from_secs(2).saturating_sub(start.elapsed()));
    let mut times = forwarder.times(400..800);
    times.sort();
    assert!(times[395] < Duration::from_millis(50), "p99: {:?}", times[395]);
    first.now_does(answers(1));
    let asked = first.asked();
    let mut number = 800;
    wait_until("the first to be preferred again", || {
        let name = format!("name{number}.example.net");
        number += 1;
        data(&forwarder.ask(&name, "A")) == "192.0.2.1"
    });
    assert!(first.asked() > asked);
}

#[test]
fn a_query_in_three_hundred_that_is_lost_is_not_seen_by_clients() {
    let is_lost = when(|asked| asked.number % 300 == 7).then([]);
    let [answered] = answers(7);
    let lossy = Upstream::start([is_lost, answered]);
    let forwarder = Forwarder::start(&[lossy.address], "");
    let slowest = forwarder.times(0..1500).into_iter().max().unwrap();
    assert!(slowest < Duration::from_millis(300), "{slowest:?}");
    assert!(lossy.asked() < 1600, "{} queries for 1500 questions", lossy.asked());
}

#[test]
fn upstreams_that_were_all_dead_are_found_to_be_back() {
    let (first, second) = (Upstream::start(answers(1)), Upstream::start(answers(2)));
    let keys = "timeout = \"400 ms\"";
    let forwarder = Forwarder::start(&[first.address, second.address], keys);
    forwarder.times(0..50);
    [&first, &second].iter().for_each(|it| it.now_does([]));
    let start = Instant::now();
    let mut number = 0;
    while start.elapsed() < Duration::from_secs(5) {
        let reply = forwarder.ask(&format!("dead{number}.example.net"), "A");
        assert_eq!(reply.rcode_text(), "SERVFAIL");
        assert_eq!(extended_error(&reply), Some(22));
        number += 1;
        thread::sleep(Duration::from_millis(50));
    }
    let kept = data(&forwarder.ask("name1.example.net", "A"));
    assert!(kept.starts_with("192.0.2."), "what is kept is given, but not {kept}");
    [&first, &second].iter().for_each(|it| it.now_does(answers(3)));
    let start = Instant::now();
    wait_until("an answer", || forwarder.ask("dead0.example.net", "A").rcode_text() == "NOERROR");
    assert!(start.elapsed() < Duration::from_secs(7), "{:?}", start.elapsed());
    for upstream in [&first, &second] {
        let lines = |what: &str| {
            let about = upstream.address.to_string();
            let log = forwarder.zonda.process.log(what);
            log.lines().filter(|line| line.contains(&about)).count()
        };
        wait_until("the log says that it is back", || lines("is up again") == 1);
        assert_eq!((lines("is suspect"), lines("is down")), (1, 1));
    }
}

#[test]
fn a_failure_of_one_upstream_is_made_good_by_another() {
    let failing = Upstream::start(fails(2));
    let sound = Upstream::start(answers(7));
    let forwarder = Forwarder::start(&[failing.address, sound.address], "policy = \"in-order\"");
    let slowest = forwarder.times(0..200).into_iter().max().unwrap();
    assert!(slowest < Duration::from_millis(200), "{slowest:?}");
    assert!(failing.asked() < 100, "it was asked {} times of 200", failing.asked());
}

#[test]
fn a_failure_is_remembered_for_a_while() {
    let failing = Upstream::start(fails(2));
    let forwarder = Forwarder::start(&[failing.address], "");
    wait_until("the failure to be told as one of before", || {
        let reply = forwarder.ask("www.example.net", "A");
        assert_eq!(reply.rcode_text(), "SERVFAIL");
        extended_error(&reply) == Some(13)
    });
}

#[test]
fn what_is_known_of_upstreams_is_told() {
    let script = Upstream::start(answers(7));
    let address = script.address;
    let keys = format!("[[zone]]\nname = \".\"\nforward.to = \"{address}\"");
    let server = Server::start(&[], &keys);
    for number in 0..10 {
        let question = recursive(&format!("name{number}.example.net"), "A");
        assert_eq!(data(&ask(server.zonda.address, &question).unwrap()), "192.0.2.7");
    }
    let labels = format!("zone=\".\",upstream=\"{address}\"");
    let metric = |name: &str, more: &str| server.metric(&format!("{name}{{{labels}{more}}}"));
    assert_eq!(metric("zonda_upstream_results_total", ",result=\"answered\""), 10.0);
    assert_eq!(metric("zonda_upstream_rcodes_total", ",rcode=\"NOERROR\""), 10.0);
    assert_eq!(metric("zonda_upstream_rtt_seconds_count", ""), 10.0);
    assert_eq!(metric("zonda_upstream_state", ",state=\"down\""), 0.0);
    assert!(metric("zonda_upstream_state", ",state=\"up\"") >= 1.0);
    let (status, list) = server.get("/v1/upstreams");
    assert_eq!(status, 200);
    let upstream = format!("\"upstream\": \"{address}\"");
    for part in [&*upstream, "\"answered\": 10", "\"trouble\": null"] {
        assert!(list.contains(part), "no {part} in {list}");
    }
    let list: Value = serde_json::from_str(&list).unwrap();
    let times = list["upstreams"][0]["rtt"].as_object().unwrap();
    assert_eq!(times["count"], 10);
    let counts: Vec<u64> = times["buckets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["count"].as_u64().unwrap())
        .collect();
    assert!(counts.is_sorted() && counts.last() == Some(&10), "{times:?}");
    let seconds = times["sum_seconds"].as_f64().unwrap();
    assert!(seconds > 0.0 && seconds < 10.0, "{times:?}");
    let trouble = |reason: &str| metric("zonda_upstream_trouble", &format!(",reason=\"{reason}\""));
    let reasons = ["silent", "unreachable", "lossy", "failing", "untrusted", "loop"];
    assert_eq!(reasons.map(trouble), [0.0; 6]);
    script.now_does(fails(5));
    for number in 0..100 {
        let question = recursive(&format!("failing{number}.example.net"), "A");
        assert_eq!(ask(server.zonda.address, &question).unwrap().rcode_text(), "SERVFAIL");
    }
    wait_until("the page tells that it fails", || trouble("failing") == 1.0);
    assert_eq!(reasons.map(trouble).iter().sum::<f64>(), 1.0);
}

#[test]
fn a_popular_answer_is_fetched_anew_before_it_expires() {
    let briefly = Reply::empty().answer(Record::address(7).ttl(5));
    let upstream = Upstream::start([always().then([say(briefly)])]);
    let keys = format!("[[zone]]\nname = \".\"\nforward.to = \"{}\"", upstream.address);
    let server = Server::start(&[], &keys);
    wait_until("it is fetched anew", || {
        let reply = ask(server.zonda.address, &recursive("www.example.net", "A")).unwrap();
        assert_eq!((data(&reply), extended_error(&reply)), ("192.0.2.7".to_owned(), None));
        server.metric("zonda_forward_prefetches_total") >= 1.0
    });
    wait_until("the upstream hears of it", || upstream.asked() >= 2);
}

#[test]
fn where_nobody_listens_the_next_upstream_is_asked_at_once() {
    let closed = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let sound = Upstream::start(answers(7));
    let forwarder = Forwarder::start(&[closed, sound.address], "policy = \"in-order\"");
    let mut times = forwarder.times(0..100);
    times.sort();
    // An answer of a server never heard would be overdue after 200 ms only.
    assert!(times[90] < Duration::from_millis(100), "{:?}", times[90]);
}

#[test]
fn queries_leave_from_many_ports_with_ids_and_letters_that_nobody_can_foresee() {
    let upstream = UdpSocket::bind("127.0.0.1:0").unwrap();
    let forwarder = Forwarder::start(&[upstream.local_addr().unwrap()], "");
    let seen = thread::spawn(move || {
        let (mut ports, mut ids, mut cases) = (HashSet::new(), HashSet::new(), HashSet::new());
        let mut query = [0; 512];
        while ids.len() < 200 {
            let (len, client) = upstream.recv_from(&mut query).unwrap();
            ports.insert(client.port());
            ids.insert([query[0], query[1]]);
            let end = 12 + query[12..].iter().position(|octet| *octet == 0).unwrap();
            cases.insert(query[end - 11..end].to_vec()); // of "example.net"
            let mut message = query[..len].to_vec();
            message.truncate(end + 5);
            message[2..12].copy_from_slice(&[0x81, 0x83, 0, 1, 0, 0, 0, 0, 0, 0]);
            upstream.send_to(&message, client).unwrap();
        }
        (ports.len(), cases.len())
    });
    for number in 0.. {
        let question = recursive(&format!("name{number}.example.net"), "A");
        let _ = ask_once(forwarder.zonda.address, &question);
        if seen.is_finished() {
            break;
        }
    }
    let (ports, cases) = seen.join().unwrap();
    assert!(ports > 180 && cases > 100, "{ports} ports, {cases} ways to write the name");
}

#[test]
fn upstreams_are_asked_over_ipv6_too() {
    let long = when(|asked| !asked.tcp && asked.name.starts_with("long"));
    let upstream = Upstream::start_over_ipv6([
        long.then([say(Reply::empty().truncated())]),
        always().then([say(Reply::address(7))]),
    ]);
    assert!(upstream.address.is_ipv6());
    let keys = format!("[[zone]]\nname = \".\"\nforward.to = \"{}\"\n", upstream.address);
    let server = Server::start(&[], &keys);
    for name in ["www.example.net", "long.example.net"] {
        assert_eq!(data(&ask(server.zonda.address, &recursive(name, "A")).unwrap()), "192.0.2.7");
    }
    assert_eq!(upstream.count(|asked| asked.tcp), 1);
    let counted = |what: &str| server.bind_count(&format!("/views/_default/resolver/stats/{what}"));
    assert!(counted("Queryv6") >= 3 && counted("Responsev6") >= 3); // the long answer took two
    assert_eq!(["Queryv4", "Responsev4"].map(counted), [0, 0]);
}

#[test]
fn clients_over_ipv6_are_counted_apart_where_bind_does_so() {
    let address = SocketAddr::from((Ipv6Addr::LOCALHOST, free_port()));
    let server = Server::start_with(&[], "", &["--listen", &address.to_string()]);
    let before = server.bind_count("/nsstats/Requestv4");
    for tcp in [false, true] {
        let question = Question { tcp, ..Question::new("www.example.org", "TXT") };
        assert_eq!(ask(address, &question).unwrap().rcode_text(), "NOERROR");
    }
    let counts = ["Requestv6", "Requestv4"].map(|it| server.bind_count(&format!("/nsstats/{it}")));
    assert_eq!(counts, [2, before]);
}

/// Which of two upstreams was asked for `name0.example.net` and so on, A and then AAAA, one at a
/// time.
fn asked_by_policy(policy: &str) -> Vec<[usize; 2]> {
    let upstreams = [Upstream::start(answers(1)), Upstream::start(answers(2))];
    let addresses = upstreams.each_ref().map(|it| it.address);
    let keys = format!("policy = \"{policy}\"\nextra-queries = \"0 %\"");
    let forwarder = Forwarder::start(&addresses, &keys);
    let mut asked = Vec::new();
    for number in 0..60 {
        let before = upstreams.each_ref().map(Upstream::asked);
        for rtype in ["A", "AAAA"] {
            forwarder.ask(&format!("name{number}.example.net"), rtype);
        }
        let after = upstreams.each_ref().map(Upstream::asked);
        asked.push([after[0] - before[0], after[1] - before[1]]);
    }
    asked
}

#[test]
fn who_is_asked_first_is_as_the_policy_says() {
    let share = |asked: &[[usize; 2]]| asked.iter().map(|it| it[0]).sum::<usize>();
    // Each thread has a turn of its own, and a machine that does much else may need a repeat.
    let in_turn = asked_by_policy("round-robin");
    assert!((54..=66).contains(&share(&in_turn)), "{in_turn:?}");
    let random = asked_by_policy("random");
    assert!((25..=95).contains(&share(&random)), "{random:?}");
    let split = random.iter().filter(|it| it[0] > 0 && it[1] > 0).count();
    assert!(split > 10, "the same name leads anywhere: {random:?}");
    let by_name = asked_by_policy("hash");
    assert!((25..=95).contains(&share(&by_name)), "{by_name:?}");
    let split = by_name.iter().filter(|it| it[0] > 0 && it[1] > 0).count();
    assert!(split <= 3, "a name has one upstream: {by_name:?}");
    let in_order = asked_by_policy("in-order");
    assert!(share(&in_order) >= 115, "{in_order:?}");
}

#[test]
fn what_waits_and_what_fails_is_counted() {
    let gate = Gate::default();
    let held = |asked: &ReceivedQuery| asked.name.starts_with("held");
    let upstream = Upstream::start([
        when(held).then([until(&gate), say(Reply::address(7))]),
        when(|asked| asked.name.starts_with("lost")).then([]),
        always().then([say(Reply::rcode(5))]),
    ]);
    let keys = format!(
        "[[zone]]\nname = \".\"\n[zone.forward]\nto = \"{}\"\ntimeout = \"3s\"\n\
         down-after = \"5m\"",
        upstream.address
    );
    let server = Server::start(&[], &keys);
    let counts = || {
        let names = ["waiting", "fetches", "failures_total{why=\"timeout\"}"];
        let names = names.into_iter().chain(["failures_total{why=\"failed\"}"]);
        names.map(|name| server.metric(&format!("zonda_forward_{name}"))).collect::<Vec<_>>()
    };
    assert_eq!(counts(), [0.0; 4]);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    for (id, name) in (0..).zip(["held0", "held0", "held1", "held2"]) {
        let question = recursive(&format!("{name}.example.net"), "A");
        client.send_to(&question.to_bytes(id), server.zonda.address).unwrap();
    }
    wait_until("all wait", || counts()[..2] == [4.0, 3.0]);
    gate.open();
    wait_until("nobody waits", || counts()[..2] == [0.0, 0.0]);
    let refused = ask(server.zonda.address, &recursive("refused.example.net", "A")).unwrap();
    assert_eq!(refused.rcode_text(), "SERVFAIL");
    assert_eq!(counts(), [0.0, 0.0, 0.0, 1.0]);
    let lost = ask_once(server.zonda.address, &recursive("lost.example.net", "A"));
    wait_until("it is given up", || counts()[2] == 1.0);
    drop(lost); // the client may not be as patient
}
