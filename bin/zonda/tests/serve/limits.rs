//! Limits of forwarding and of the cache: each is what the configuration says, not what it is by
//! default.

use super::hostile::recursive;
use super::server::{Server, wait_until};
use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use zonda_testkit::paced::{QueryResults, ask_at_pace};
use zonda_testkit::upstream::{ReceivedQuery, Record, Reply, Rule, always, say, wait, when};
use zonda_testkit::{Message, Upstream, ask};

/// The type number of SOA, which probes ask for.
const SOA: u16 = 6;

/// A server that forwards all names.
struct Forwarder {
    server: Server,
    /// What `to` says.
    to: String,
}

impl Forwarder {
    /// Starts a server with these upstreams and further lines, the first of which are keys of
    /// `[zone.forward]`.
    fn start(upstreams: &[SocketAddr], lines: &str) -> Self {
        let to: Vec<String> = upstreams.iter().map(|address| format!("\"{address}\"")).collect();
        Self::start_to(&to.join(", "), lines)
    }

    /// Starts a server with upstreams as the configuration writes them.
    fn start_to(to: &str, lines: &str) -> Self {
        Self { server: Server::start(&[], &config(to, lines)), to: to.to_owned() }
    }

    /// Changes the lines behind `to`.
    fn reload(&self, lines: &str) {
        self.server.configure(&config(&self.to, lines));
        let (status, body) = self.server.post("/v1/reload");
        assert_eq!(status, 200, "{body}");
    }

    /// Asks once.
    fn ask(&self, name: &str) -> Message {
        ask(self.server.zonda.address, &recursive(name, "A")).unwrap()
    }

    /// Asks for so many names that begin with `first`, each once.
    fn ask_many(&self, first: &str, count: usize, a_second: u32) -> QueryResults {
        let questions = (0..count).map(|it| recursive(&format!("{first}{it}.example.net"), "A"));
        ask_at_pace(self.server.zonda.address, Ipv4Addr::LOCALHOST, a_second, questions)
    }

    /// The sum of a metric of the upstreams over those with these labels.
    fn sum(&self, name: &str, labels: &str) -> f64 {
        let page = self.server.get("/metrics").1;
        let lines = page.lines().filter(|line| line.starts_with(name) && line.contains(labels));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    }

    /// How many threads see upstreams in a state.
    fn threads_that_see(&self, state: &str) -> f64 {
        self.sum("zonda_upstream_state{", &format!("state=\"{state}\""))
    }

    /// How many threads forward.
    fn threads(&self) -> usize {
        ["up", "suspect", "down"].map(|state| self.threads_that_see(state)).iter().sum::<f64>()
            as usize
    }

    /// Queries that gave their place to newer ones of the same client.
    fn dropped(&self) -> f64 {
        self.server.metric("zonda_forward_dropped_total{newer_of=\"same_client\"}")
    }
}

/// The configuration of a server that forwards all names.
fn config(to: &str, lines: &str) -> String {
    format!("[[zone]]\nname = \".\"\n[zone.forward]\nto = [{to}]\n{lines}")
}

/// An upstream that says nothing.
fn silent() -> Upstream {
    Upstream::start([])
}

/// An upstream that answers nearly always within 2 to 4 ms, and one of 30 queries after 100 ms.
fn slow_at_times() -> [Rule; 2] {
    let slow = when(|asked| asked.number % 30 == 29).then([wait(100..101), say(Reply::address(7))]);
    [slow, always().then([wait(2..4), say(Reply::address(7))])]
}

/// The extended error that comes with a reply.
fn extended_error(message: &Message) -> Option<u16> {
    let options = &message.edns.as_ref()?.options;
    let (_, data) = options.iter().find(|(code, _)| *code == 15)?;
    Some(u16::from_be_bytes([data[0], data[1]]))
}

/// An upstream without script, which notes where queries come from and how long an answer they
/// want, and says that no name exists.
struct Listener {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<(u16, u16)>>>,
}

impl Listener {
    fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (address, seen) = (socket.local_addr().unwrap(), Arc::<Mutex<Vec<_>>>::default());
        let noted = Arc::clone(&seen);
        thread::spawn(move || {
            let mut query = [0; 512];
            while let Ok((len, client)) = socket.recv_from(&mut query) {
                let edns = Message::parse(&query[..len]).unwrap().edns;
                let udp_size = edns.map_or(0, |edns| edns.udp_size);
                noted.lock().unwrap().push((client.port(), udp_size));
                let end = 12 + query[12..].iter().position(|octet| *octet == 0).unwrap() + 5;
                query[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0]);
                let _ = socket.send_to(&query[..end], client);
            }
        });
        Self { address, seen }
    }

    /// The ports that queries came from, and the lengths that they wanted, since this was last
    /// asked.
    fn take(&self) -> (HashSet<u16>, HashSet<u16>) {
        std::mem::take(&mut *self.seen.lock().unwrap()).into_iter().unzip()
    }
}

#[test]
fn so_many_queries_wait_as_the_configuration_says_and_the_oldest_gives_way() {
    let upstream = silent();
    let keys =
        |max| format!("timeout = \"2s\"\ndown-after = \"5m\"\n[forwarding]\nwaiting-max = {max}");
    let forwarder = Forwarder::start(&[upstream.address], &keys(40));
    let threads = forwarder.threads();
    let most = threads * 40_usize.div_ceil(threads);
    let seen = forwarder.ask_many("few", 200, 500);
    let waited = |seen: &QueryResults| {
        let times = seen.0.iter().map(|asked| asked.answer.unwrap().0);
        times.map(|time| time > Duration::from_millis(1500)).collect::<Vec<_>>()
    };
    let waited_here = waited(&seen);
    assert_eq!(waited_here.iter().filter(|waited| **waited).count(), most);
    assert!(waited_here[190..].iter().all(|waited| *waited), "the newest keep their places");
    assert_eq!(forwarder.dropped(), 200.0 - most as f64);
    forwarder.reload(&keys(1000));
    let seen = forwarder.ask_many("many", 200, 500);
    assert!(waited(&seen).iter().all(|waited| *waited), "there is room for all after a reload");
    assert_eq!(forwarder.dropped(), 200.0 - most as f64);
}

#[test]
fn so_many_queries_wait_for_one_answer_as_the_configuration_says() {
    let upstream = Upstream::start([always().then([wait(1000..1001), say(Reply::address(7))])]);
    let keys = "[forwarding]\nwaiting-per-answer-max = 5";
    let forwarder = Forwarder::start(&[upstream.address], keys);
    let questions = (0..50).map(|_| recursive("www.example.net", "A"));
    let address = forwarder.server.zonda.address;
    let seen = ask_at_pace(address, Ipv4Addr::LOCALHOST, 200, questions);
    let rcodes = seen.0.iter().map(|asked| asked.answer.unwrap().1);
    assert_eq!(rcodes.filter(|rcode| *rcode == 0).count(), 5);
    assert_eq!(forwarder.dropped(), 45.0);
}

#[test]
fn without_extra_queries_no_second_server_is_asked_only_because_the_first_is_slow() {
    let hedges = |share: &str| {
        let [first, second] = [0, 1].map(|_| Upstream::start(slow_at_times()));
        let keys = format!("extra-queries = \"{share}\"");
        let forwarder = Forwarder::start(&[first.address, second.address], &keys);
        forwarder.ask_many("name", 600, 300).check_all_answered();
        let hedges = forwarder.sum("zonda_upstream_queries_total{", "for=\"hedge\"");
        (hedges, forwarder.sum("zonda_upstream_hedges_won_total{", ""))
    };
    thread::scope(|scope| {
        let none = scope.spawn(|| hedges("0 %"));
        // A machine that does much else may answer none of them first.
        let wins = |(hedges, won): (f64, f64)| {
            assert!(won <= hedges, "{won} of {hedges}");
            won > 0.0
        };
        assert!((0..5).any(|_| wins(hedges("5 %"))));
        assert_eq!(none.join().unwrap(), (0.0, 0.0));
    });
}

#[test]
fn without_extra_queries_only_what_is_clearly_overdue_is_repeated() {
    let slow = when(|asked| asked.number % 20 == 19).then([wait(100..101), say(Reply::address(7))]);
    let mut asked = Vec::new();
    for share in ["0 %", "5 %"] {
        let upstream = Upstream::start([slow.clone(), always().then([say(Reply::address(7))])]);
        let keys = format!("extra-queries = \"{share}\"");
        let forwarder = Forwarder::start(&[upstream.address], &keys);
        (0..200).for_each(|number| _ = forwarder.ask(&format!("name{number}.example.net")));
        asked.push(upstream.asked());
    }
    // A machine that does much else may make some seem to be clearly overdue.
    assert!(asked[0] <= 203 && asked[1] >= 205, "{asked:?} queries for 200 questions");
}

#[test]
fn nothing_is_repeated_earlier_than_the_configuration_says() {
    let slowest = |keys: &str| {
        let lost = when(|asked| asked.number == 60).then([]);
        let upstream = Upstream::start([lost, always().then([say(Reply::address(7))])]);
        let forwarder = Forwarder::start(&[upstream.address], keys);
        let time = |number| {
            let start = Instant::now();
            let reply = forwarder.ask(&format!("name{number}.example.net"));
            assert_eq!(reply.rcode_text(), "NOERROR");
            start.elapsed()
        };
        (0..100).map(time).max().unwrap()
    };
    assert!(slowest("repeat-after-min = \"700 ms\"") >= Duration::from_millis(700));
    assert!(slowest("") < Duration::from_millis(700));
}

/// How many probes a silent upstream gets within two seconds after a single question, and whether
/// it is suspect then.
fn probes(keys: &str) -> (usize, bool) {
    let upstream = silent();
    let forwarder = Forwarder::start(&[upstream.address], &format!("timeout = \"300 ms\"\n{keys}"));
    assert_eq!(forwarder.ask("www.example.net").rcode_text(), "SERVFAIL");
    thread::sleep(Duration::from_secs(2));
    let is_probe = |asked: &ReceivedQuery| asked.record_type == SOA && asked.name == ".";
    (upstream.count(is_probe), forwarder.threads_that_see("suspect") > 0.0)
}

#[test]
fn a_server_is_suspect_after_so_many_overdue_answers_and_probed_as_often_as_is_said() {
    let often = "suspect-after = 1\nprobe-interval = \"100 ms\"\nprobe-interval-max = \"100 ms\"";
    let seldom = "suspect-after = 1\nprobe-interval = \"1m\"\nprobe-interval-max = \"1m\"";
    thread::scope(|scope| {
        let often = scope.spawn(|| probes(often));
        let seldom = scope.spawn(|| probes(seldom));
        assert_eq!(probes("suspect-after = 100"), (0, false));
        assert_eq!(seldom.join().unwrap(), (0, true));
        let (count, is_suspect) = often.join().unwrap();
        assert!((10..=24).contains(&count) && is_suspect, "{count} probes");
    });
}

#[test]
fn a_silent_server_is_down_as_soon_as_the_configuration_says() {
    let is_down_after = |keys: &str, limit: Duration| {
        let upstream = silent();
        let keys = format!("timeout = \"300 ms\"\n{keys}");
        let forwarder = Forwarder::start(&[upstream.address], &keys);
        let start = Instant::now();
        forwarder.ask_many("name", 100, 200);
        while forwarder.threads_that_see("down") == 0.0 {
            if start.elapsed() > limit {
                return None;
            }
            thread::sleep(Duration::from_millis(20));
        }
        Some(start.elapsed())
    };
    thread::scope(|scope| {
        let later = scope.spawn(|| is_down_after("down-after = \"5m\"", Duration::from_secs(5)));
        let soon = is_down_after("down-after = \"100 ms\"", Duration::from_secs(5)).unwrap();
        assert!(soon < Duration::from_millis(2500), "{soon:?}");
        assert_eq!(later.join().unwrap(), None);
    });
}

#[test]
fn queries_share_ports_and_want_answers_as_long_as_the_configuration_says() {
    let listener = Listener::start();
    let keys = |queries, size| format!("queries-per-port = {queries}\nbuffer-size = {size}");
    let forwarder = Forwarder::start(&[listener.address], &keys(1, 700));
    let ask_together = |first: &str| {
        forwarder.ask_many(first, 400, 100_000); // many of them come together
        let (ports, sizes) = listener.take();
        (ports.len(), sizes)
    };
    let (apart, sizes) = ask_together("name");
    assert!(apart > 380, "{apart} ports for 400 queries"); // some are drawn twice
    assert_eq!(sizes, HashSet::from([700]));
    forwarder.reload(&keys(64, 4096));
    let (together, sizes) = ask_together("other");
    assert!(together < apart * 3 / 4, "{together} ports for 400 queries");
    assert_eq!(sizes, HashSet::from([4096]));
}

#[test]
fn no_more_ports_are_open_than_the_configuration_says() {
    let upstream = silent();
    let forwarder = Forwarder::start(&[upstream.address], "ports = 16\ntimeout = \"2s\"");
    let threads = forwarder.threads();
    let seen = thread::scope(|scope| {
        let asking = scope.spawn(|| forwarder.ask_many("name", 1000, 1000));
        while !asking.is_finished() {
            let open = forwarder.server.metric("zonda_forward_ports");
            assert!(open <= 16.0 * threads as f64, "{open} ports of {threads} threads");
            thread::sleep(Duration::from_millis(50));
        }
        asking.join().unwrap()
    });
    assert_eq!(seen.lost(), 1000, "it is silent");
    let mut by_port: Vec<u16> = upstream.log().iter().map(|asked| asked.client.port()).collect();
    by_port.sort_unstable();
    let most = by_port.chunk_by(|a, b| a == b).map(<[_]>::len).max().unwrap();
    assert!((8..=128).contains(&most), "{most} queries of one port, which may be drawn twice");
    assert!(forwarder.server.metric("zonda_forward_ports_closed_early_total") >= 1.0);
}

#[test]
fn a_slow_server_loses_nothing_and_stays_up_though_its_ports_are_too_few() {
    let slow = always().then([wait(600..601), say(Reply::address(7))]);
    let upstream = Upstream::start([slow]);
    let keys = "ports = 16\nrepeat-after-min = \"1s\"\nextra-queries = \"0 %\"\n\
                suspect-after = 100";
    let forwarder = Forwarder::start(&[upstream.address], keys);
    // More than a thread's ports take: 8 of a query or a few, 8 of 64.
    let threads = forwarder.threads();
    let count = threads * 1500;
    let seen = forwarder.ask_many("name", count, 2 * count as u32);
    seen.check_all_answered();
    assert!(forwarder.server.metric("zonda_forward_ports_closed_early_total") >= 1.0);
    let ended = |result: &str| {
        forwarder.sum("zonda_upstream_results_total{", &format!("result=\"{result}\""))
    };
    wait_until("each query has ended", || forwarder.sum("zonda_upstream_outstanding{", "") == 0.0);
    let (lost, abandoned) = (ended("lost"), ended("abandoned"));
    assert!(abandoned >= 32.0, "{abandoned} lost their port");
    assert!(lost <= count as f64 / 100.0, "{lost} were lost, {abandoned} lost their port");
    assert_eq!(forwarder.threads_that_see("up") as usize, threads);
}

#[test]
fn so_many_connections_are_opened_as_the_configuration_says() {
    for (keys, opened) in [
        ("connections-max = 3\npipeline-max = 1", 3),
        ("connections-max = 1\npipeline-max = 1", 1),
        ("connections-max = 3", 1),
    ] {
        let slow = always().then([wait(50..51), say(Reply::address(7))]);
        let upstream = Upstream::start([slow]);
        let to = format!("\"tcp://{}\"", upstream.address);
        let forwarder = Forwarder::start_to(&to, keys);
        forwarder.ask_many("name", 20, 400).check_all_answered();
        let list = forwarder.server.get("/v1/upstreams").1;
        assert!(list.contains(&format!("\"opened\": {opened},")), "{keys}: {list}");
    }
}

#[test]
fn a_reload_with_other_limits_loses_neither_answers_nor_what_is_known_of_servers() {
    let upstream = Upstream::start([always().then([say(Reply::address(7))])]);
    let forwarder = Forwarder::start(&[upstream.address], "");
    let answered = || forwarder.sum("zonda_upstream_results_total{", "result=\"answered\"");
    let ask_all = || {
        let names = (0..20).map(|number| format!("name{number}.example.net"));
        names.for_each(|name| assert_eq!(forwarder.ask(&name).rcode_text(), "NOERROR"));
    };
    ask_all();
    for lines in ["ports = 16\nextra-queries = \"0 %\"", "connections-max = 2", ""] {
        forwarder.reload(lines);
        ask_all();
        assert_eq!((upstream.asked(), answered()), (20, 20.0), "{lines}");
    }
}

#[test]
fn that_something_does_not_exist_is_kept_at_least_as_long_as_the_configuration_says() {
    let denial = Reply::rcode(3).authority(Record::soa("example.net", 1));
    let upstream = Upstream::start([always().then([say(denial)])]);
    let ttl = |keys: &str| {
        let forwarder = Forwarder::start(&[upstream.address], keys);
        let reply = forwarder.ask("www.example.net");
        assert_eq!(reply.rcode_text(), "NXDOMAIN");
        reply.authority[0].ttl
    };
    assert!(ttl("[cache]\nnegative-ttl-min = \"1h\"") > 3590);
    assert!(ttl("") <= 1);
}

#[test]
fn failures_are_kept_as_long_as_the_configuration_says() {
    let fetches = |keys: &str| {
        let upstream = Upstream::start([always().then([say(Reply::rcode(2))])]);
        let forwarder = Forwarder::start(&[upstream.address], keys);
        for pause in [0, 1100, 1100, 1100] {
            thread::sleep(Duration::from_millis(pause));
            assert_eq!(forwarder.ask("www.example.net").rcode_text(), "SERVFAIL");
        }
        // Not what the upstream was asked: a busy one is asked again.
        forwarder.sum("zonda_forward_queries_total{", "led_to=\"fetch\"")
    };
    thread::scope(|scope| {
        let long = scope.spawn(|| fetches("[cache]\nfailure-ttl-min = \"1m\""));
        let usual = scope.spawn(|| fetches(""));
        assert_eq!(fetches("[cache]\nfailure-ttl-max = \"1s\""), 4.0, "each time anew");
        assert_eq!(long.join().unwrap(), 1.0);
        assert!([2.0, 3.0].contains(&usual.join().unwrap()), "the second time for two seconds");
    });
}

#[test]
fn an_expired_answer_has_the_ttl_that_the_configuration_says() {
    let briefly = Reply::empty().answer(Record::address(7).ttl(1));
    let once = Upstream::start([when(|asked| asked.number == 0).then([say(briefly)])]);
    let keys = "timeout = \"2s\"\nstale-after = \"100 ms\"\n[cache]\nstale-ttl = \"7s\"";
    let forwarder = Forwarder::start(&[once.address], keys);
    let mut ttl = 0;
    wait_until("it expires and is given as such", || {
        let reply = forwarder.ask("www.example.net");
        ttl = reply.answer[0].ttl;
        extended_error(&reply) == Some(3)
    });
    assert_eq!(ttl, 7);
}

/// After how long an answer with a TTL of six seconds, asked for all the time, is fetched anew;
/// none if it has expired before.
fn refreshed_after(keys: &str) -> Option<Duration> {
    let six = Reply::empty().answer(Record::address(7).ttl(6));
    let upstream = Upstream::start([always().then([say(six)])]);
    let forwarder = Forwarder::start(&[upstream.address], &format!("[cache]\n{keys}"));
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(7500) {
        forwarder.ask("www.example.net");
        if forwarder.server.metric("zonda_forward_prefetches_total") > 0.0 {
            let refreshed = Some(start.elapsed());
            assert!(forwarder.server.bind_count("/nsstats/Prefetch") > 0);
            return refreshed;
        }
        thread::sleep(Duration::from_millis(20));
    }
    assert!(upstream.asked() >= 2, "it was fetched anew when it had expired");
    None
}

#[test]
fn popular_answers_are_fetched_anew_as_early_as_the_configuration_says() {
    thread::scope(|scope| {
        let never = scope.spawn(|| refreshed_after("prefetch = \"0 %\""));
        let too_short = scope.spawn(|| refreshed_after("prefetch-ttl-min = \"10s\""));
        let usual = scope.spawn(|| refreshed_after(""));
        let half = refreshed_after("prefetch = \"50 %\"").unwrap().as_millis();
        assert!((1900..4500).contains(&half), "{half} ms");
        let usual = usual.join().unwrap().unwrap().as_millis();
        assert!(usual >= 4000, "{usual} ms");
        assert_eq!(never.join().unwrap(), None);
        assert_eq!(too_short.join().unwrap(), None);
    });
}

#[test]
fn an_outstanding_query_too_many_goes_to_nobody() {
    let upstream = silent();
    let keys = |max| format!("timeout = \"1s\"\ndown-after = \"5m\"\noutstanding-max = {max}");
    let forwarder = Forwarder::start(&[upstream.address], &keys(8));
    let threads = forwarder.threads();
    let told_soon = |first: &str| {
        let seen = forwarder.ask_many(first, 60, 400).0;
        seen.iter().filter(|it| it.answer.unwrap().0 < Duration::from_millis(500)).count()
    };
    assert_eq!(told_soon("first"), 60 - threads * 8_usize.div_ceil(threads));
    forwarder.reload(&keys(1000));
    assert_eq!(told_soon("second"), 0, "after a reload there is room for all");
}

#[test]
fn a_query_without_a_place_gets_an_expired_answer_where_there_is_one() {
    let briefly = Reply::empty().answer(Record::address(7).ttl(1));
    let keys = "timeout = \"5s\"\nstale-after = \"1s\"\ndown-after = \"5m\"\n";
    // How many questions, for so many names, and what is scarce for them.
    for (count, names, scarce) in [
        (60, 60, "[forwarding]\nwaiting-max = 2"),
        (30, 1, "[forwarding]\nwaiting-per-answer-max = 2"),
        (20, 20, "outstanding-max = 1"),
    ] {
        let upstream = Upstream::start([always().then([say(briefly.clone())])]);
        let forwarder = Forwarder::start(&[upstream.address], &format!("{keys}{scarce}"));
        let name = |number: usize| format!("name{}.example.net", number % names);
        for number in 0..names {
            assert_eq!(forwarder.ask(&name(number)).rcode_text(), "NOERROR");
        }
        thread::sleep(Duration::from_millis(2100));
        upstream.now_does([]);
        let questions = (0..count).map(|number| recursive(&name(number), "A"));
        let address = forwarder.server.zonda.address;
        let seen = ask_at_pace(address, Ipv4Addr::LOCALHOST, 400, questions);
        seen.check_all_answered();
        let soon = seen.0.iter().filter(|it| it.answer.unwrap().0 < Duration::from_millis(500));
        assert!(soon.count() > 0, "{scarce}: some had no place");
        assert!(forwarder.dropped() > 0.0, "{scarce}");
        let given = forwarder.server.metric("zonda_cache_queries_total{found=\"stale\"}");
        assert_eq!(given, count as f64, "{scarce}");
        let counted = |what: &str| forwarder.server.bind_count(&format!("/nsstats/{what}"));
        assert_eq!(counted("QryUsedStale"), count as u64, "{scarce}");
        assert_eq!(counted("RecLimitDropped") as f64, forwarder.dropped(), "{scarce}");
    }
}

#[test]
fn a_fetch_too_many_is_not_begun_and_an_expired_answer_given_where_there_is_one() {
    let briefly = Reply::empty().answer(Record::address(7).ttl(1));
    let upstream = Upstream::start([always().then([say(briefly)])]);
    let keys = "timeout = \"5s\"\nstale-after = \"50 ms\"\ndown-after = \"5m\"\n\
                [forwarding]\nwaiting-max = 1";
    let forwarder = Forwarder::start(&[upstream.address], keys);
    let name = |number: usize| format!("name{number}.example.net");
    let held = 16 * forwarder.threads();
    (0..held).for_each(|number| assert_eq!(forwarder.ask(&name(number)).rcode_text(), "NOERROR"));
    thread::sleep(Duration::from_millis(2100));
    upstream.now_does([]);
    // No client waits for these fetches, as each gets the expired answer; the fetches go on.
    for number in 0..held {
        let reply = forwarder.ask(&name(number));
        assert_eq!((reply.rcode_text(), extended_error(&reply)), ("NOERROR".to_owned(), Some(3)));
    }
    let turned_away = forwarder.server.metric("zonda_forward_queries_total{led_to=\"busy\"}");
    assert!(turned_away > 0.0);
    let reply = forwarder.ask("new.example.net");
    assert_eq!((reply.rcode_text(), extended_error(&reply)), ("SERVFAIL".to_owned(), Some(0)));
}
