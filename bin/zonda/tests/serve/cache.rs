//! Answers of other servers that are kept: across restarts, for all to see, until told otherwise.

use super::server::{Server, run, text, wait_until};
use std::fs;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};
use zonda_testkit::process::{Folder, Process};
use zonda_testkit::{Message, Question, ask};

/// A server over UDP that notes what it is asked, and can be made to say nothing.
struct Upstream {
    address: SocketAddr,
    queries: Arc<Mutex<Vec<Vec<u8>>>>,
    is_on: Arc<AtomicBool>,
}

impl Upstream {
    /// `script` makes a message of a query; an empty one is not sent.
    fn start(script: impl Fn(&[u8]) -> Vec<u8> + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let (queries, is_on) = (Arc::<Mutex<Vec<_>>>::default(), Arc::new(AtomicBool::new(true)));
        let (noted, switch) = (Arc::clone(&queries), Arc::clone(&is_on));
        thread::spawn(move || {
            let mut query = [0; 4096];
            while let Ok((len, client)) = socket.recv_from(&mut query) {
                noted.lock().unwrap().push(query[..len].to_vec());
                let message = script(&query[..len]);
                if switch.load(SeqCst) && !message.is_empty() {
                    let _ = socket.send_to(&message, client);
                }
            }
        });
        Self { address, queries, is_on }
    }

    /// An upstream that answers every question with an A record.
    fn usual() -> Self {
        Self::start(|query| answer(query, 0x8180, &[A]))
    }

    fn asked(&self) -> usize {
        self.queries.lock().unwrap().len()
    }

    /// The part of a configuration that makes it the one to ask, with keys of `[cache]`. On a busy
    /// machine, it may take longer than the time after which a query is usually repeated, and tests
    /// count what it is asked.
    fn keys(&self, cache: &str) -> String {
        let address = self.address;
        format!(
            "[cache]\n{cache}\n[[zone]]\nname = \".\"\nforward.to = \"{address}\"\n\
             forward.repeat-after-min = \"1s\""
        )
    }
}

/// An A record of the question's name with a TTL of an hour.
const A: &[u8] = b"\xc0\x0c\0\x01\0\x01\0\0\x0e\x10\0\x04\xc0\0\x02\x07";
/// An SOA record of the root with a TTL and a minimum of an hour.
const SOA: &[u8] =
    b"\0\0\x06\0\x01\0\0\x0e\x10\0\x16\0\0\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\x0e\x10";

/// A response with these flags: the records are the answer, or with NXDOMAIN the authority.
fn answer(query: &[u8], flags: u16, records: &[&[u8]]) -> Vec<u8> {
    let name = query[12..].iter().position(|octet| *octet == 0).unwrap();
    let mut message = query[..12 + name + 5].to_vec();
    message[2..4].copy_from_slice(&flags.to_be_bytes());
    message[6..12].fill(0);
    message[if flags & 15 == 3 { 9 } else { 7 }] = records.len() as u8;
    records.iter().for_each(|record| message.extend_from_slice(record));
    message
}

/// A response that denies the name.
fn denial(query: &[u8]) -> Vec<u8> {
    answer(query, 0x8183, &[SOA])
}

/// Returns the response with the client's cookie, and one of the server.
fn with_cookie(query: &[u8], mut response: Vec<u8>) -> Vec<u8> {
    let mut options = query.windows(4).zip(query.windows(12));
    let (_, option) = options.find(|(head, _)| head[..3] == [0, 10, 0]).expect("a cookie is sent");
    response[11] = 1;
    response.extend(b"\0\0\x29\x04\xd0\0\0\0\0\0\x14\0\x0a\0\x10");
    response.extend_from_slice(&option[4..]);
    response.extend(b"a server");
    response
}

/// A question as clients ask it that want recursion.
fn recursive(name: &str, rtype: &str) -> Question {
    Question::new(name, rtype).recursive().edns(1232)
}

impl Server {
    fn ask(&self, question: &Question) -> Message {
        ask(self.zonda.address, question).unwrap()
    }

    /// The response code, or nothing if no answer comes at once.
    fn address_of(&self, name: &str) -> String {
        let reply = self.ask(&recursive(name, "A"));
        reply.answer.first().map_or(reply.rcode_text(), |record| record.data.text.clone())
    }

    /// Ends the server and starts another with the same configuration.
    pub fn restart(&mut self) {
        self.zonda.process.signal("TERM");
        self.wait_for_end();
        self.start_again(&[]);
    }

    /// Gives the server no time to end.
    pub fn kill(&mut self) {
        self.zonda.process.signal("KILL");
        self.wait_for_end();
    }

    /// Waits until no process has its sockets.
    fn wait_for_end(&mut self) {
        wait_until("the server ends", || {
            self.zonda.process.ended() && TcpStream::connect(self.admin).is_err()
        });
    }

    /// Starts another with the same configuration.
    pub fn start_again(&mut self, arguments: &[&str]) {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let log = format!("{}.log", COUNT.fetch_add(1, SeqCst));
        let log = self.folder.path().join(log);
        let mut successor = Process::start(&self.command(arguments), &log).unwrap();
        let question = Question::new("www.example.org", "TXT");
        wait_until("the next one answers", || {
            assert!(!successor.ended(), "{}", successor.log(""));
            ask(self.zonda.address, &question).is_ok()
        });
        self.zonda.process = successor;
    }
}

/// A folder for a cache file, and the keys of `[cache]` that name it.
fn persistent() -> (Folder, PathBuf, String) {
    let folder = Folder::new("cache-file");
    let path = folder.path().join("cache");
    let keys = format!("persist = {path:?}\npersist-interval = \"1s\"");
    (folder, path, keys)
}

/// The extended error that comes with a reply: its code and its text.
fn extended_error(message: &Message) -> Option<(u16, String)> {
    let options = &message.edns.as_ref()?.options;
    let (_, data) = options.iter().find(|(code, _)| *code == 15)?;
    let (code, text) = data.split_first_chunk().unwrap();
    Some((u16::from_be_bytes(*code), String::from_utf8(text.to_vec()).unwrap()))
}

#[test]
fn a_restarted_server_answers_from_its_cache_without_any_upstream() {
    let (_folder, path, keys) = persistent();
    let upstream = Upstream::usual();
    let mut server = Server::start(&[], &upstream.keys(&keys));
    let names: Vec<String> = (0..100).map(|i| format!("name{i}.example.net")).collect();
    names.iter().for_each(|name| assert_eq!(server.address_of(name), "192.0.2.7"));
    upstream.is_on.store(false, SeqCst);
    let asked = upstream.asked();
    let written = "zonda_cache_file_writes_total{result=\"written\"}";
    wait_until("the file is written", || server.metric(written) >= 1.0);
    let now = UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    let age = now - server.metric("zonda_cache_file_timestamp_seconds");
    assert!((-1.0..60.0).contains(&age), "{age} s");
    server.restart();
    names.iter().for_each(|name| assert_eq!(server.address_of(name), "192.0.2.7"));
    assert_eq!(upstream.asked(), asked);
    let log = server.zonda.process.log_soon("answers read");
    assert!(log.contains(&format!("path={} count=100", path.display())), "{log}");
}

#[test]
fn a_zone_that_is_configured_otherwise_does_not_begin_with_answers_of_before() {
    let (_folder, _, keys) = persistent();
    let (former, next) = (Upstream::usual(), Upstream::usual());
    let mut server = Server::start(&[], &former.keys(&keys));
    server.address_of("www.example.net");
    server.configure(&next.keys(&keys));
    server.restart();
    server.address_of("www.example.net");
    assert_eq!((former.asked(), next.asked()), (1, 1));
}

#[test]
fn a_server_killed_while_it_writes_its_cache_starts_with_what_it_had() {
    let (folder, _, keys) = persistent();
    let upstream = Upstream::usual();
    let mut server = Server::start(&[], &upstream.keys(&keys));
    let name = |i: usize| format!("name{i}.example.net");
    (0..3000).for_each(|i| assert_eq!(server.address_of(&name(i)), "192.0.2.7"));
    server.restart(); // now all of them are in the file
    let being_written = || {
        let entries = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|it| it == "new")).collect::<Vec<_>>()
    };
    let mut half_written = 0;
    for turn in 0..300 {
        if turn >= 30 && half_written > 0 {
            break; // beside other programs, the moment is met more rarely
        }
        server.address_of(&format!("turn{turn}.example.net")); // or nothing would be written
        being_written().into_iter().for_each(|left| fs::remove_file(left).unwrap());
        server.zonda.process.signal("TERM");
        while being_written().is_empty() && !server.zonda.process.ended() {
            std::hint::spin_loop(); // it is written within milliseconds
        }
        thread::sleep(Duration::from_micros(100 * (turn % 30)));
        server.kill();
        half_written += being_written().len();
        server.start_again(&[]);
        let asked = upstream.asked();
        (0..50).for_each(|i| assert_eq!(server.address_of(&name(i * 60)), "192.0.2.7"));
        assert_eq!(upstream.asked(), asked, "turn {turn}: {}", server.zonda.process.log("cache"));
    }
    assert!(half_written > 0, "it was never killed while it wrote");
}

#[test]
fn a_cache_file_that_is_of_no_use_is_told_of_and_ignored() {
    let (folder, path, keys) = persistent();
    let upstream = Upstream::usual();
    let mut server = Server::start(&[], &upstream.keys(&keys));
    server.address_of("www.example.net");
    server.restart();
    let sound = fs::read(&path).unwrap();
    let mut changed = sound.clone();
    changed[60] ^= 1;
    let other_version = [b"zondaca9", &sound[8..]].concat();
    for (content, what) in [
        (&changed[..], "the cache file is corrupt"),
        (&sound[..sound.len() - 1], "the cache file is corrupt"),
        (&other_version, "the file is not a cache file of this version"),
        (b"", "the cache file is corrupt"),
    ] {
        server.kill();
        fs::write(&path, content).unwrap();
        let asked = upstream.asked();
        server.start_again(&[]);
        let line = format!("path={} error={what}", path.display());
        let log = server.zonda.process.log_soon(&line);
        assert!(log.contains("empty cache"), "{line}: {log}");
        assert_eq!(server.address_of("www.example.net"), "192.0.2.7");
        assert_eq!(upstream.asked(), asked + 1);
    }
    server.kill();
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    server.start_again(&[]);
    assert!(server.zonda.process.log_soon("not a regular file").contains("empty cache"));
    server.address_of("www.example.net");
    let failed = "zonda_cache_file_writes_total{result=\"failed\"}";
    wait_until("it is told that it cannot be written", || server.metric(failed) >= 1.0);
    drop(folder);
}

#[test]
fn a_successor_answers_from_the_cache_of_the_former_server() {
    let (_folder, _, keys) = persistent();
    let keys = keys.replace("1s", "1d");
    let upstream = Upstream::usual();
    let mut server = Server::start(&[], &upstream.keys(&keys));
    for turn in 0..3 {
        assert_eq!(server.address_of(&format!("name{turn}.example.net")), "192.0.2.7");
        let log = server.folder.path().join(format!("successor{turn}.log"));
        let successor = Process::start(&server.command(&["--take-over"]), &log).unwrap();
        wait_until("the former server ends", || server.zonda.process.ended());
        server.zonda.process = successor;
        let asked = upstream.asked();
        for before in 0..=turn {
            assert_eq!(server.address_of(&format!("name{before}.example.net")), "192.0.2.7");
        }
        assert_eq!(upstream.asked(), asked);
    }
}

#[test]
fn what_is_kept_of_a_name_is_shown_and_forgotten() {
    let (_folder, path, keys) = persistent();
    let upstream = Upstream::usual();
    let server = Server::start(&[], &upstream.keys(&keys));
    let fetched = || server.metric("zonda_forward_queries_total{led_to=\"fetch\"}");
    for name in ["www.example.net", "a.www.example.net", "example.net"] {
        server.address_of(name);
    }
    let (status, shown) = server.get("/v1/cache?name=WWW.example.net");
    assert_eq!(status, 200);
    for part in [
        "\"name\": \"www.example.net.\"",
        "\"type\": \"A\"",
        "\"kind\": \"positive\"",
        "\"rcode\": \"NOERROR\"",
        "\"stale\": false",
        "\"zone\": \".\"",
        "\"www.example.net. 3", // seconds of an hour, perhaps some less by now
        " IN A 192.0.2.7\"",
    ] {
        assert!(shown.contains(part), "no {part} in {shown}");
    }
    assert_eq!(shown.matches("\"type\"").count(), 1, "{shown}");
    assert_eq!(server.get("/v1/cache").0, 400);
    assert_eq!(server.get("/v1/cache?name=a..b").0, 400);
    assert_eq!(server.post("/v1/cache/www.example.net").0, 405);
    let delete = |path: &str| server.request("DELETE", &format!("/v1/cache/{path}"));
    assert_eq!(delete("WWW.example.net").1.trim(), "{\n  \"removed\": 1\n}");
    server.address_of("a.www.example.net");
    assert_eq!(fetched(), 3.0);
    server.address_of("www.example.net");
    assert_eq!(fetched(), 4.0);
    // Two files that were written one after the other may have the same time.
    let written = || fs::metadata(&path).map(|file| (file.ino(), file.mtime_nsec())).ok();
    let before = written();
    assert!(delete("www.example.net?tree").1.contains("\"removed\": 2"));
    wait_until("the file is written without them", || written() != before);
    let socket = server.socket();
    let output = |arguments: &[&str]| run(&[arguments, &["--socket", &socket]].concat());
    let shown = output(&["cache", "show", "example.net"]);
    assert!(text(&shown.stdout).contains("\n  example.net. 3"), "{}", text(&shown.stdout));
    let flushed = output(&["cache", "flush", ".", "--tree"]);
    assert!(text(&flushed.stdout).contains("answers forgotten: 1\n"), "{}", text(&flushed.stdout));
    let shown = output(&["cache", "show", "example.net"]);
    assert_eq!(text(&shown.stdout), "no answers are cached for example.net.\n");
    let shown = output(&["cache", "show", "example.net", "--json"]);
    assert!(text(&shown.stdout).contains("\"answers\": []"), "{}", text(&shown.stdout));
    let upstreams = text(&output(&["upstream", "list"]).stdout);
    assert!(upstreams.lines().count() == 2 && upstreams.contains(" up "), "{upstreams}");
}

#[test]
fn a_flush_is_not_undone_by_a_fetch_that_began_before() {
    let gate = Arc::new(AtomicBool::new(false));
    let open = Arc::clone(&gate);
    let upstream = Upstream::start(move |query| {
        while !open.load(SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
        answer(query, 0x8180, &[A])
    });
    let server = Server::start(&[], &upstream.keys(""));
    let address = server.zonda.address;
    let client = thread::spawn(move || ask(address, &recursive("www.example.net", "A")).unwrap());
    wait_until("it is fetched", || {
        server.metric("zonda_forward_queries_total{led_to=\"fetch\"}") > 0.0
    });
    assert_eq!(server.request("DELETE", "/v1/cache/example.net?tree").0, 200);
    gate.store(true, SeqCst);
    assert_eq!(client.join().unwrap().answer.len(), 1, "who waits is answered");
    assert!(server.get("/v1/cache?name=www.example.net").1.contains("\"answers\": []"));
    server.address_of("www.example.net");
    assert!(server.get("/v1/cache?name=www.example.net").1.contains("192.0.2.7"));
}

#[test]
fn nothing_is_asked_for_below_a_name_that_does_not_exist() {
    let confirmed: fn(&[u8]) -> Vec<u8> = |query| with_cookie(query, denial(query));
    // A denial that may have been forged says nothing of the names below.
    let cases = [("", 0, confirmed), ("nxdomain-cut = false", 2, confirmed), ("", 2, denial)];
    for (key, below, script) in cases {
        let upstream = Upstream::start(script);
        let server = Server::start(&[], &upstream.keys(key));
        assert_eq!(server.address_of("gone.example.net"), "NXDOMAIN");
        let asked = upstream.asked();
        for (name, rtype) in [("a.gone.example.net", "A"), ("b.a.GONE.example.net", "TXT")] {
            let reply = server.ask(&recursive(name, rtype));
            assert_eq!((reply.rcode_text(), reply.authority.len()), ("NXDOMAIN".to_owned(), 1));
        }
        assert_eq!(upstream.asked() - asked, below, "{key}");
        server.address_of("another.example.net");
        assert_eq!(upstream.asked() - asked, below + 1, "{key}");
        let shown = server.get("/v1/cache?name=x.gone.example.net").1;
        assert_eq!(shown.contains("\"name\": \"gone.example.net.\""), below == 0, "{shown}");
        // As far below as names are deep.
        let network = "b.a.0.0.0.0.a.2.ip6.arpa";
        assert_eq!(server.address_of(network), "NXDOMAIN");
        let asked = upstream.asked();
        let host = format!("{}{network}", "0.".repeat(24));
        assert_eq!(server.ask(&recursive(&host, "PTR")).rcode_text(), "NXDOMAIN");
        assert_eq!(upstream.asked() - asked, below / 2, "{key}");
    }
}

#[test]
fn an_upstream_cannot_make_an_answer_look_authentic_or_authoritative() {
    // AA, AD, CD and the bit that must be zero.
    let upstream = Upstream::start(|query| answer(query, 0x85f0, &[A]));
    let server = Server::start(&[], &upstream.keys(""));
    for turn in ["miss", "hit"] {
        for question in
            [recursive("www.example.net", "A"), recursive("www.example.net", "A").dnssec()]
        {
            let reply = server.ask(&question);
            assert_eq!(reply.flags_text(), "qr rd ra", "{turn}");
            assert_eq!(reply.flags & 0x0040, 0, "{turn}");
        }
    }
}

#[test]
fn signatures_are_for_those_who_want_them() {
    const RRSIG: &[u8] = b"\xc0\x0c\0\x2e\0\x01\0\0\x0e\x10\0\x17\0\x01\x08\x03\0\0\x0e\x10\
        \x70\0\0\0\x60\0\0\0\x12\x34\0abcd";
    let upstream = Upstream::start(|query| answer(query, 0x8180, &[A, RRSIG]));
    let server = Server::start(&[], &upstream.keys(""));
    for turn in ["miss", "hit"] {
        for (name, rtype) in [("www.example.net", "A"), ("other.example.net", "A")] {
            let plain = server.ask(&recursive(name, rtype));
            assert_eq!(plain.answer.len(), 1, "{turn} without DO");
            let signed = server.ask(&recursive(name, rtype).dnssec());
            assert_eq!(signed.answer.len(), 2, "{turn} with DO");
        }
    }
    assert_eq!(upstream.asked(), 4, "they are kept apart");
}

#[test]
fn a_clients_subnet_is_not_passed_on_and_the_answer_is_for_every_subnet() {
    let upstream = Upstream::usual();
    let server = Server::start(&[], &upstream.keys(""));
    for subnet in [&[0, 1, 24, 0, 198, 51, 100][..], &[0, 1, 24, 0, 203, 0, 113], &[0; 4]] {
        let reply = server.ask(&recursive("www.example.net", "A").option(8, subnet)); // rfc7871#6
        let options = reply.edns.unwrap().options;
        assert_eq!(options, [(8, subnet.to_vec())], "as it came, and for all");
        assert_eq!(upstream.asked(), 1, "and cached for all");
    }
    let plain = server.ask(&recursive("www.example.net", "A").option(3, &[]));
    assert_eq!((plain.edns.unwrap().options, upstream.asked()), (Vec::new(), 1));
    let queries = upstream.queries.lock().unwrap();
    assert!(!queries.is_empty());
    for query in &*queries {
        assert!(!query.windows(3).any(|octets| octets == [198, 51, 100]), "{query:?}");
        assert!(!query.windows(4).any(|octets| octets == [0, 8, 0, 7]), "{query:?}");
    }
}

#[test]
fn meta_types_are_asked_for_each_time() {
    let upstream = Upstream::usual();
    let server = Server::start(&[], &upstream.keys(""));
    let refused = [("TYPE250", 0), ("AXFR", 0), ("TYPE0", 0)];
    for (rtype, again) in [("A", 0), ("ANY", 1), ("TYPE128", 1)].into_iter().chain(refused) {
        server.ask(&recursive("www.example.net", rtype));
        let asked = upstream.asked();
        server.ask(&recursive("www.example.net", rtype));
        assert_eq!(upstream.asked() - asked, again, "{rtype}");
    }
}

#[test]
fn a_question_for_type_0_is_not_asked_and_does_no_harm_to_others_of_the_name() {
    let upstream = Upstream::start(|query| {
        let name = query[12..].iter().position(|octet| *octet == 0).unwrap();
        match query[12 + name + 1..][..2] {
            [0, 1] => answer(query, 0x8180, &[A]),
            _ => answer(query, 0x8185, &[]),
        }
    });
    let server = Server::start(&[], &upstream.keys(""));
    assert_eq!(server.ask(&recursive("example.net", "TYPE0")).rcode_text(), "FORMERR");
    assert_eq!(upstream.asked(), 0);
    assert_eq!(server.address_of("example.net"), "192.0.2.7");
    assert_eq!(server.address_of("www.example.net"), "192.0.2.7");
}

#[test]
fn signatures_alone_are_asked_for_each_time() {
    let upstream = Upstream::start(|query| {
        let head = b"\xc0\x0c\0\x2e\0\x01\0\0\x0e\x10\0\x14";
        let data = b"\0\x01\x08\x03\0\0\x0e\x10\x70\0\0\0\x60\0\0\0\0\x07\0!";
        answer(query, 0x8180, &[&[&head[..], data].concat()])
    });
    let server = Server::start(&[], &upstream.keys(""));
    for asked in 1..=2 {
        let reply = server.ask(&recursive("www.example.net", "RRSIG"));
        assert_eq!((reply.answer.len(), upstream.asked()), (1, asked));
    }
}

#[test]
fn a_truncated_answer_is_not_kept() {
    // The upstream does not listen over TCP, so that there is no whole answer.
    let upstream = Upstream::start(|query| answer(query, 0x8380, &[A]));
    let zone = format!(
        "[[zone]]\nname = \".\"\n[zone.forward]\nto = \"{}\"\ntimeout = \"300 ms\"",
        upstream.address
    );
    let server = Server::start(&[], &zone);
    let reply = server.ask(&recursive("www.example.net", "A"));
    assert_eq!((reply.rcode_text(), reply.answer.len()), ("SERVFAIL".to_owned(), 0));
    assert!(!server.get("/v1/cache?name=www.example.net").1.contains("positive"));
}

#[test]
fn a_failure_tells_what_became_of_the_question_at_each_server() {
    let silent = Upstream::start(|_| Vec::new());
    let refusing = Upstream::start(|query| answer(query, 0x8185, &[]));
    let zone = format!(
        "[[zone]]\nname = \".\"\n[zone.forward]\nto = [\"{}\", \"{}\"]\ntimeout = \"400 ms\"\n\
         policy = \"in-order\"",
        silent.address, refusing.address
    );
    let server = Server::start(&[], &zone);
    let reply = server.ask(&recursive("www.example.net", "A"));
    assert_eq!(reply.rcode_text(), "SERVFAIL");
    let (_, why) = extended_error(&reply).unwrap();
    let expected =
        format!("{}: timed out; {}: the answer was REFUSED", silent.address, refusing.address);
    assert_eq!(why, expected);
    let reply = server.ask(&recursive("www.example.net", "A"));
    assert_eq!(extended_error(&reply), Some((13, expected)), "it is kept with the failure");
    let reply = server.ask(&Question::new("www.example.net", "A").recursive());
    assert_eq!((reply.rcode_text(), reply.edns), ("SERVFAIL".to_owned(), None));
}

#[test]
fn stale_answers_and_refusals_say_what_they_are() {
    let upstream = Upstream::start(|query| match query[12 + 4].to_ascii_lowercase() {
        b'e' => answer(query, 0x8183, &[&soa_of_a_second()]),
        _ => answer(query, 0x8180, &[&[&A[..8], b"\0\x01", &A[10..]].concat()[..]]),
    });
    let zone = format!(
        "[[zone]]\nname = \".\"\naccess = [\"refuse 127.0.0.2\", \"allow any\"]\n[zone.forward]\n\
         to = \"{}\"\ntimeout = \"300 ms\"\nstale-after = \"100 ms\"",
        upstream.address
    );
    let server = Server::start(&[], &zone);
    for (name, rcode, code) in
        [("gone.example.net", "NXDOMAIN", 19), ("www.example.net", "NOERROR", 3)]
    {
        assert_eq!(server.ask(&recursive(name, "A")).rcode_text(), rcode);
        wait_until("it expires", || {
            upstream.is_on.store(false, SeqCst);
            let reply = server.ask(&recursive(name, "A"));
            assert_eq!(reply.rcode_text(), rcode);
            extended_error(&reply)
                == Some((code, "expired; no newer answer could be had".to_owned()))
        });
        upstream.is_on.store(true, SeqCst);
    }
    let not_recursive = Question::new("x.example.net", "A").edns(1232);
    let (code, why) = extended_error(&server.ask(&not_recursive)).unwrap();
    assert_eq!((code, &*why), (20, "not kept, and no recursion is desired"));
    let socket = UdpSocket::bind("127.0.0.2:0").unwrap();
    socket.connect(server.zonda.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    socket.send(&recursive("x.example.net", "A").to_bytes(1)).unwrap();
    let mut reply = [0; 512];
    let len = zonda_testkit::client::receive(&socket, &mut reply).unwrap();
    let reply = Message::parse(&reply[..len]).unwrap();
    assert_eq!(
        (reply.rcode_text(), reply.flags_text()),
        ("REFUSED".to_owned(), "qr rd".to_owned())
    );
    let refused = (18, "an access list refuses this client".to_owned());
    assert_eq!(extended_error(&reply), Some(refused));
}

/// Where BIND tells what its cache has done.
const OF_THE_CACHE: &str = "/views/_default/resolver/cachestats";

/// The SOA record of the root, good for a second.
fn soa_of_a_second() -> Vec<u8> {
    let mut soa = SOA.to_vec();
    soa[5..9].copy_from_slice(&1_u32.to_be_bytes());
    soa
}

#[test]
fn what_the_cache_had_is_counted() {
    let gate = Arc::new(AtomicBool::new(true));
    let open = Arc::clone(&gate);
    let upstream = Upstream::start(move |query| {
        while !open.load(SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
        match query[12 + 1].to_ascii_lowercase() {
            b'f' => answer(query, 0x8182, &[]),
            _ => answer(query, 0x8180, &[A]),
        }
    });
    let server = Server::start(&[], &upstream.keys("bytes = \"1 MiB\""));
    let found =
        |what: &str| server.metric(&format!("zonda_cache_queries_total{{found=\"{what}\"}}"));
    let counts = || ["answer", "stale", "failure", "nothing"].map(found);
    assert_eq!(counts(), [0.0; 4]);
    assert_eq!(server.metric("zonda_cache_bytes_max"), f64::from(1 << 20));
    server.address_of("www.example.net");
    assert_eq!(counts(), [0.0, 0.0, 0.0, 1.0]);
    (0..3).for_each(|_| drop(server.address_of("www.example.net")));
    assert_eq!(counts(), [3.0, 0.0, 0.0, 1.0]);
    (0..2).for_each(|_| drop(server.address_of("failing.example.net")));
    assert_eq!(counts(), [3.0, 0.0, 1.0, 2.0]);
    gate.store(false, SeqCst);
    let clients = (0..5).map(|_| {
        let address = server.zonda.address;
        thread::spawn(move || ask(address, &recursive("slow.example.net", "A")).unwrap())
    });
    let clients: Vec<_> = clients.collect();
    wait_until("all wait", || found("nothing") == 7.0);
    gate.store(true, SeqCst);
    clients.into_iter().for_each(|client| drop(client.join().unwrap()));
    assert_eq!(server.metric("zonda_forward_queries_total{led_to=\"coalesced\"}"), 4.0);
    assert_eq!(server.metric("zonda_forward_queries_total{led_to=\"fetch\"}"), 3.0);
    assert_eq!(server.metric("zonda_cache_evictions_total"), 0.0);
    let long = "x".repeat(60);
    (0..6000).for_each(|i| drop(server.address_of(&format!("{long}.{long}.name{i}.example.net"))));
    let (entries, evicted) =
        (server.metric("zonda_cache_entries"), server.metric("zonda_cache_evictions_total"));
    assert!(entries > 3000.0 && evicted > 1000.0, "{entries} kept, {evicted} evicted");
    assert_eq!(server.metric("zonda_cache_inserts_total"), entries + evicted);
    assert_eq!(server.metric("zonda_cache_expired_total"), 0.0);
    let deleted = |why: &str| server.bind_count(&format!("{OF_THE_CACHE}/Delete{why}"));
    assert_eq!((deleted("LRU") as f64, deleted("TTL")), (evicted, 0));
    assert!(server.metric("zonda_cache_bytes") <= f64::from(1 << 20));
}

#[test]
fn answers_that_have_had_their_time_are_counted_apart_from_those_that_make_room() {
    let upstream = Upstream::start(|query| answer(query, 0x8180, &[A]));
    let keys = "bytes = \"1 MiB\"\nttl-max = \"1s\"\nstale = \"0s\"";
    let server = Server::start(&[], &upstream.keys(keys));
    let long = "x".repeat(60);
    let ask_all = |first: &str, count: usize| {
        let name = |number| format!("{long}.{long}.{first}{number}.example.net");
        (0..count).for_each(|number| drop(server.address_of(&name(number))));
    };
    ask_all("early", 1500);
    thread::sleep(Duration::from_millis(2100));
    ask_all("late", 4500);
    let expired = server.metric("zonda_cache_expired_total");
    assert!(expired > 100.0, "{expired}");
    assert_eq!(server.bind_count(&format!("{OF_THE_CACHE}/DeleteTTL")) as f64, expired);
}
