//! What a server that forwards answers itself, and questions that come back to it.

use super::server::{BINARY, Server, run, text, wait_until};
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use zonda_config::{Config, Flags};
use zonda_testkit::client::name_bytes;
use zonda_testkit::process::Folder;
use zonda_testkit::upstream::{Record, Reply, always, say};
use zonda_testkit::{Message, Question, Upstream, ask};

/// A server that does what the test says with each query, over UDP.
struct Scripted {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl Scripted {
    /// `script` makes messages of the number of a query and its octets.
    fn start(script: impl Fn(usize, &[u8]) -> Vec<Vec<u8>> + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let asked = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&asked);
        thread::spawn(move || {
            let mut query = [0; 4096];
            while let Ok((len, client)) = socket.recv_from(&mut query) {
                let number = counted.fetch_add(1, Ordering::SeqCst);
                for message in script(number, &query[..len]) {
                    let _ = socket.send_to(&message, client);
                }
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// A question as clients ask it that want recursion.
fn recursive(name: &str, rtype: &str) -> Question {
    Question::new(name, rtype).recursive().edns(1232)
}

/// An answer to a query: an A record with this last octet, that lives for `ttl` seconds.
fn answer(query: &[u8], octet: u8, ttl: u8) -> Vec<u8> {
    let name = query[12..].iter().position(|octet| *octet == 0).unwrap();
    let mut message = query[..12 + name + 5].to_vec();
    message[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
    message.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, ttl, 0, 4, 192, 0, 2, octet]);
    message
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

/// An upstream that has one address for all names.
fn upstream(octet: u8) -> Scripted {
    Scripted::start(move |_, query| vec![answer(query, octet, 60)])
}

/// A configuration that forwards `.` with these keys, and has these sections.
fn forwarding(to: SocketAddr, keys: &str, sections: &str) -> String {
    format!("[[zone]]\nname = \".\"\n[zone.forward]\nto = \"{to}\"\n{keys}\n{sections}\n")
}

/// The reply to a client that wants recursion.
fn reply(server: &Server, name: &str, rtype: &str) -> Message {
    ask(server.zonda.address, &recursive(name, rtype)).unwrap()
}

/// The response code alone.
fn rcode(server: &Server, name: &str, rtype: &str) -> String {
    reply(server, name, rtype).rcode_text()
}

/// The bits RA and AA of a reply.
fn ra_and_aa(reply: &Message) -> (bool, bool) {
    (reply.flags & 0x80 != 0, reply.flags & 0x400 != 0)
}

#[test]
fn special_names_are_answered_at_home_and_others_forwarded() {
    let upstream = upstream(7);
    let server = Server::start(&[], &forwarding(upstream.address, "", ""));
    let local = reply(&server, "localhost", "A");
    assert_eq!((data(&local), ra_and_aa(&local)), ("127.0.0.1".to_owned(), (true, true)));
    assert_eq!(data(&reply(&server, "a.LOCALHOST", "AAAA")), "::1");
    assert_eq!(data(&reply(&server, "1.0.0.127.in-addr.arpa", "PTR")), "localhost.");
    let v6 = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa";
    assert_eq!(data(&reply(&server, v6, "PTR")), "localhost.");
    for name in ["x.invalid", "a.onion", "nas.local", "nas.home.arpa", "x.alt"] {
        let missing = reply(&server, name, "A");
        assert_eq!((missing.rcode_text(), missing.authority.len()), ("NXDOMAIN".to_owned(), 1));
    }
    for name in ["5.1.168.192.in-addr.arpa", "1.0.16.172.in-addr.arpa", "1.9.e.f.ip6.arpa"] {
        assert_eq!(rcode(&server, name, "PTR"), "NXDOMAIN", "{name}");
    }
    assert_eq!(rcode(&server, "_dns.resolver.arpa", "SVCB"), "NOERROR");
    assert_eq!(upstream.asked(), 0);
    let forwarded = ["a.test", "www.example", "ipv4only.arpa", "1.0.15.172.in-addr.arpa"];
    for name in forwarded {
        assert_eq!(data(&reply(&server, name, "A")), "192.0.2.7", "{name}");
    }
    assert_eq!(upstream.asked(), forwarded.len());
}

#[test]
fn every_special_zone_is_answered_at_home_and_its_ds_record_asked_of_others() {
    const DS: u16 = 43;
    let nothing = Reply::empty().authority(Record::soa("example.net", 60).of("."));
    let upstream = Upstream::start([always().then([say(nothing)])]);
    let server = Server::start(&[], &forwarding(upstream.address, "", ""));
    let special = Config::load(None, [], &Flags::default()).unwrap().config.special_names;
    assert!(special.len() > 100, "{special:?}");
    for name in special.iter().map(ToString::to_string) {
        let soa = reply(&server, &name, "SOA");
        assert_eq!((soa.rcode_text(), soa.answer.len()), ("NOERROR".to_owned(), 1), "{name}");
        assert_eq!(ra_and_aa(&soa), (true, true), "{name}");
        let ds = reply(&server, &name, "DS");
        assert_eq!((ds.rcode_text(), ra_and_aa(&ds)), ("NOERROR".to_owned(), (true, false)));
        assert_eq!(upstream.count(|asked| asked.name == name && asked.record_type == DS), 1);
    }
    assert_eq!(upstream.asked(), special.len());
}

#[test]
fn which_special_names_are_answered_is_for_the_user_to_say() {
    let sections = "[special-names]\nforward = [\"168.192.in-addr.arpa\"]\nanswer = [\"test\"]";
    let (all, own) = (upstream(7), upstream(8));
    let zones = format!(
        "{}[[zone]]\nname = \"local\"\nforward.to = \"{to}\"\n\
         [[zone]]\nname = \"172.in-addr.arpa\"\nforward.to = \"{to}\"\n{sections}",
        forwarding(all.address, "", ""),
        to = own.address
    );
    let server = Server::start(&[], &zones);
    assert_eq!(data(&reply(&server, "5.1.168.192.in-addr.arpa", "A")), "192.0.2.7");
    assert_eq!(rcode(&server, "www.test", "A"), "NXDOMAIN");
    assert_eq!(data(&reply(&server, "nas.local", "A")), "192.0.2.8");
    assert_eq!(data(&reply(&server, "1.0.16.172.in-addr.arpa", "A")), "192.0.2.8");
    assert_eq!(rcode(&server, "1.0.0.10.in-addr.arpa", "A"), "NXDOMAIN");
    server.configure(&forwarding(all.address, "", "[special-names]\nforward = [\".\"]"));
    assert_eq!(server.post("/v1/reload").0, 200);
    assert_eq!(data(&reply(&server, "localhost", "A")), "192.0.2.7");
}

#[test]
fn a_server_that_forwards_only_some_names_has_no_special_ones() {
    let upstream = upstream(7);
    let zone = format!("[[zone]]\nname = \"example.net\"\nforward.to = \"{}\"", upstream.address);
    let server = Server::start(&[], &zone);
    assert_eq!(rcode(&server, "localhost", "A"), "REFUSED");
}

#[test]
fn excepted_names_belong_to_whatever_zone_holds_them_besides() {
    let (all, corp) = (upstream(7), upstream(8));
    let except = "except = [\"internal.example.com\", \"example.org\"]";
    let zones = format!(
        "{}[[zone]]\nname = \"example.net\"\n[zone.forward]\nto = \"{}\"\n\
         except = [\"public.example.net\"]",
        forwarding(all.address, except, ""),
        corp.address
    );
    let server = Server::start(&[], &zones);
    let refused = reply(&server, "host.internal.example.com", "A");
    assert_eq!((refused.rcode_text(), extended_error(&refused)), ("REFUSED".to_owned(), Some(20)));
    assert_eq!(rcode(&server, "internal.EXAMPLE.com", "A"), "REFUSED");
    assert_eq!(all.asked(), 0);
    assert_eq!(data(&reply(&server, "example.com", "A")), "192.0.2.7");
    assert_eq!(rcode(&server, "www.example.org", "TXT"), "NOERROR", "a zone of our own");
    assert_eq!(data(&reply(&server, "www.example.net", "A")), "192.0.2.8");
    assert_eq!(data(&reply(&server, "www.public.example.net", "A")), "192.0.2.7");
}

#[test]
fn a_name_that_several_zones_except_belongs_to_none_of_them() {
    let (all, corp) = (upstream(7), upstream(8));
    let zones = format!(
        "[[zone]]\nname = \"example.net\"\n[zone.forward]\nto = \"{}\"\n\
         except = [\"private.example.net\", \"public.example.net\"]\n{}",
        corp.address,
        forwarding(all.address, "except = [\"private.Example.net\", \"held.example.net\"]", "")
    );
    let server = Server::start(&[], &zones);
    assert_eq!(rcode(&server, "www.private.example.net", "A"), "REFUSED");
    assert_eq!(data(&reply(&server, "www.public.example.net", "A")), "192.0.2.7");
    assert_eq!(data(&reply(&server, "www.held.example.net", "A")), "192.0.2.8");
}

#[test]
fn an_excepted_name_follows_the_zone_that_holds_it_when_that_is_loaded_anew() {
    let (upstream, folder) = (upstream(7), Folder::new("own"));
    let path = folder.write("example.com.zone", "broken");
    let config = |access: &str| {
        format!(
            "root = {:?}\n[[zone]]\nname = \"example.com\"\nfile = {path:?}\n\
             access = [\"{access} any\"]\n[[zone]]\nname = \"dev.example.com\"\n\
             [zone.forward]\nto = \"{}\"\n\
             except = [\"www.dev.example.com\"]\n",
            folder.path().parent().unwrap(),
            upstream.address
        )
    };
    let server = Server::start(&[], &config("allow"));
    assert_eq!(rcode(&server, "www.dev.example.com", "A"), "SERVFAIL");
    for octet in [20, 21] {
        let text = format!(
            "$TTL 60\n@ SOA ns host {octet} 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n\
             www.dev A 192.0.2.{octet}\n"
        );
        fs::write(&path, text).unwrap();
        assert_eq!(server.post("/v1/reload").0, 200);
        let expected = format!("192.0.2.{octet}");
        assert_eq!(data(&reply(&server, "www.dev.example.com", "A")), expected);
    }
    server.configure(&config("refuse"));
    assert_eq!(server.post("/v1/reload").0, 200);
    assert_eq!(rcode(&server, "www.dev.example.com", "A"), "REFUSED");
    assert_eq!(data(&reply(&server, "other.dev.example.com", "A")), "192.0.2.7");
}

#[test]
fn a_hosts_file_goes_before_other_servers_and_is_read_again_when_it_changes() {
    let upstream = upstream(7);
    let folder = Folder::new("hosts");
    let first = "192.0.2.20 printer.example.com printer\n2001:db8::20 printer.example.com\n\
                 192.168.1.5 nas.home.arpa\n";
    let path = folder.write("hosts", first);
    let config = format!(
        "watch-interval = \"100 ms\"\n[[zone]]\nname = \".\"\nhosts = {path:?}\n\
         [zone.forward]\nto = \"{}\"",
        upstream.address
    );
    let server = Server::start(&[], &config);
    let v4 = reply(&server, "Printer.example.com", "A");
    assert_eq!((data(&v4), ra_and_aa(&v4)), ("192.0.2.20".to_owned(), (true, true)));
    assert_eq!(data(&reply(&server, "printer", "A")), "192.0.2.20");
    assert_eq!(data(&reply(&server, "printer.example.com", "AAAA")), "2001:db8::20");
    assert_eq!(data(&reply(&server, "20.2.0.192.in-addr.arpa", "PTR")), "printer.example.com.");
    assert_eq!(data(&reply(&server, "nas.home.arpa", "A")), "192.168.1.5");
    assert_eq!(data(&reply(&server, "5.1.168.192.in-addr.arpa", "PTR")), "nas.home.arpa.");
    let other_type = reply(&server, "printer.example.com", "MX");
    let codes = (other_type.rcode_text(), other_type.authority.len());
    assert_eq!(codes, ("NOERROR".to_owned(), 1));
    assert_eq!(upstream.asked(), 0);
    for name in ["example.com", "x.printer.example.com", "com"] {
        assert_eq!(data(&reply(&server, name, "A")), "192.0.2.7", "{name}");
    }
    fs::write(&path, "192.0.2.21 printer\nnonsense\n").unwrap();
    let place = format!("{}:2:1: ", path.display());
    wait_until("the log tells the wrong line", || server.zonda.process.log("").contains(&place));
    assert_eq!(data(&reply(&server, "printer", "A")), "192.0.2.20", "the last good ones are kept");
    fs::write(&path, "192.0.2.21 printer\n").unwrap();
    wait_until("the new address", || data(&reply(&server, "printer", "A")) == "192.0.2.21");
    assert_eq!(data(&reply(&server, "printer.example.com", "A")), "192.0.2.7");
}

#[test]
fn a_zone_can_be_a_hosts_file_alone() {
    let folder = Folder::new("hosts");
    let path = folder.write("lan", "192.0.2.20 printer.lan\n192.0.2.21 elsewhere.example.com\n");
    let server = Server::start(&[], &format!("[[zone]]\nname = \"lan\"\nhosts = {path:?}"));
    assert_eq!(data(&reply(&server, "printer.lan", "A")), "192.0.2.20");
    assert_eq!(rcode(&server, "other.lan", "A"), "NXDOMAIN");
    assert_eq!(rcode(&server, "elsewhere.example.com", "A"), "REFUSED");
}

#[test]
fn a_reload_takes_over_the_ttl_of_a_hosts_file_and_whether_addresses_have_names() {
    let folder = Folder::new("hosts");
    let path = folder.write("lan", "192.0.2.20 printer.lan\n");
    let zones = |more: &str| {
        let zone = |name| format!("[[zone]]\nname = \"{name}\"\nhosts = {path:?}\n{more}\n");
        zone("lan") + &zone("2.0.192.in-addr.arpa")
    };
    let server = Server::start(&[], &zones(""));
    let printer = || reply(&server, "printer.lan", "A").answer[0].ttl;
    let named = || rcode(&server, "20.2.0.192.in-addr.arpa", "PTR");
    assert_eq!((printer(), named()), (60, "NOERROR".to_owned()));
    server.configure(&zones("hosts-ttl = \"30s\"\nhosts-reverse = false"));
    assert_eq!(server.post("/v1/reload").0, 200);
    assert_eq!((printer(), named()), (30, "NXDOMAIN".to_owned()));
}

#[test]
fn overridden_names_have_the_addresses_of_the_configuration() {
    let upstream = upstream(7);
    let sections = "[override]\n\"www.example.com\" = [\"192.0.2.30\", \"2001:db8::30\"]\n\
                    \"*.dev.example.com\" = \"127.0.0.1\"\n\"nas.local\" = \"192.0.2.31\"\n\
                    \"own.dev.example.com\" = \"192.0.2.32\"";
    let server = Server::start(&[], &forwarding(upstream.address, "", sections));
    let www = reply(&server, "WWW.example.com", "A");
    assert_eq!((data(&www), extended_error(&www)), ("192.0.2.30".to_owned(), Some(4)));
    assert_eq!(data(&reply(&server, "www.example.com", "AAAA")), "2001:db8::30");
    assert!(reply(&server, "www.example.com", "HTTPS").answer.is_empty());
    assert_eq!(data(&reply(&server, "a.b.dev.example.com", "A")), "127.0.0.1");
    assert_eq!(data(&reply(&server, "own.dev.example.com", "A")), "192.0.2.32");
    assert_eq!(data(&reply(&server, "a.own.dev.example.com", "A")), "127.0.0.1");
    assert_eq!(data(&reply(&server, "nas.local", "A")), "192.0.2.31");
    assert_eq!(upstream.asked(), 0);
    assert_eq!(data(&reply(&server, "dev.example.com", "A")), "192.0.2.7");
    server.configure(&forwarding(upstream.address, "", ""));
    assert_eq!(server.post("/v1/reload").0, 200);
    assert_eq!(data(&reply(&server, "www.example.com", "A")), "192.0.2.7");
}

#[test]
fn a_server_that_would_forward_to_itself_does_not_start() {
    let own = "127.0.0.1:5399";
    for listen in [own, "0.0.0.0:5399", "[::]:5399"] {
        let output = run(&["check", "--listen", listen, "--forward", own]);
        let told = text(&output.stderr) + &text(&output.stdout);
        assert!(!output.status.success() && told.contains("is this server"), "{told}");
    }
    let sound = run(&["check", "--listen", own, "--forward", "127.0.0.1:5398"]);
    assert!(sound.status.success(), "{}", text(&sound.stderr));
    assert!(BINARY.ends_with("zonda"));
}

#[test]
fn questions_that_come_back_by_way_of_another_server_are_noticed_and_stopped() {
    let sound = upstream(7);
    let first = Server::start(&[], &forwarding(sound.address, "", ""));
    let second = Server::start(&[], &forwarding(first.zonda.address, "", ""));
    assert_eq!(data(&reply(&second, "name.example.com", "A")), "192.0.2.7");
    first.configure(&forwarding(second.zonda.address, "", ""));
    assert_eq!(first.post("/v1/reload").0, 200);
    let mut number = 0;
    let start = Instant::now();
    wait_until("the loop to be noticed", || {
        number += 1;
        let reply = reply(&first, &format!("name{number}.example.net"), "A");
        assert_eq!(reply.rcode_text(), "SERVFAIL");
        first.zonda.process.log("loop: ").contains("come back to this server")
            || second.zonda.process.log("loop: ").contains("come back to this server")
    });
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
    let told = "come back to this server";
    let trouble = |server: &Server| server.get("/v1/upstreams").1.contains(told);
    assert!(trouble(&first) || trouble(&second));
    let sent = |server: &Server| {
        let page = server.get("/metrics").1;
        let lines = page.lines().filter(|line| line.starts_with("zonda_upstream_queries_total{"));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum::<f64>()
    };
    let before = sent(&first) + sent(&second);
    let start = Instant::now();
    for number in 0..200 {
        let reply = reply(&first, &format!("later{number}.example.net"), "A");
        assert_eq!(reply.rcode_text(), "SERVFAIL");
        assert!(matches!(extended_error(&reply), Some(22 | 23)), "{reply:?}");
    }
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    let after = sent(&first) + sent(&second);
    // One for each question at each server, sent or given up at once, and some for probes.
    assert!(after - before <= 500.0, "{before} queries before, {after} after");
    first.configure(&forwarding(sound.address, "", ""));
    assert_eq!(first.post("/v1/reload").0, 200);
    let mut is_over = false; // probes of an upstream that was down are up to 16 seconds apart
    for number in 0..60 {
        is_over = rcode(&second, &format!("again{number}.example.net"), "A") == "NOERROR";
        if is_over {
            break;
        }
        thread::sleep(Duration::from_millis(500));
    }
    assert!(is_over, "{}", second.get("/v1/upstreams").1);
}

#[test]
fn private_addresses_are_kept_from_clients_but_of_names_that_may_have_them() {
    let hostile = Scripted::start(|_, query| {
        let mut message = answer(query, 5, 60);
        let end = message.len();
        message[end - 4..end - 1].copy_from_slice(&[192, 168, 1]);
        vec![message]
    });
    let keys = "rebinding-protection = true\nprivate-names = [\"home.example.com\"]";
    let server = Server::start(&[], &forwarding(hostile.address, keys, ""));
    for _ in 0..2 {
        let blocked = reply(&server, "www.example.net", "A");
        assert_eq!((blocked.rcode_text(), blocked.answer.len()), ("NOERROR".to_owned(), 0));
        assert_eq!(extended_error(&blocked), Some(15));
    }
    assert_eq!(hostile.asked(), 1, "the second time from the cache");
    assert_eq!(data(&reply(&server, "nas.Home.example.com", "A")), "192.168.1.5");
    server.configure(&forwarding(hostile.address, "", ""));
    assert_eq!(server.post("/v1/reload").0, 200);
    assert_eq!(data(&reply(&server, "www.example.net", "A")), "192.168.1.5");
}

/// A record of a chain: an alias of a name, that of the question or one that was written before.
fn alias(owner: &[u8], target: &str) -> Vec<u8> {
    let target = name_bytes(target);
    let len = (target.len() as u16).to_be_bytes();
    [owner, &[0, 5, 0, 1, 0, 0, 0, 60], &len, &target].concat()
}

#[test]
fn an_alias_of_a_name_of_ours_in_an_answer_of_others_is_answered_from_our_zone() {
    let upstream = Scripted::start(|_, query| {
        // An alias, and what is said of its target: 192.0.2.66.
        let mut message = answer(query, 66, 60);
        let address = message.split_off(message.len() - 16);
        message.extend(alias(&[0xc0, 12], "ns.example.org"));
        message.extend(name_bytes("ns.example.org"));
        message.extend(&address[2..]);
        message[7] = 2;
        vec![message]
    });
    let server = Server::start(&[], &forwarding(upstream.address, "", ""));
    for reason in ["just fetched", "kept"] {
        let reply = reply(&server, "www.example.com", "A");
        let texts: Vec<_> = reply.answer.iter().map(|record| &*record.data.text).collect();
        assert_eq!(texts, ["ns.example.org.", "192.0.2.1"], "{reason}");
        assert_eq!(ra_and_aa(&reply), (true, false));
    }
    let no_data = reply(&server, "www.example.com", "AAAA");
    assert_eq!((no_data.answer.len(), no_data.authority.len()), (1, 1));
}

#[test]
fn an_alias_in_our_zone_of_a_name_that_is_forwarded_is_followed_for_who_wants_recursion() {
    let upstream = Scripted::start(|_, query| match query[13..17].eq_ignore_ascii_case(b"fail") {
        true => Vec::new(),
        false => vec![answer(query, 7, 60)],
    });
    let zone = "$TTL 60\n@ SOA ns host 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n\
                one CNAME www.example.com.\ntwo CNAME one\n* CNAME one\n\
                none CNAME fail.example.com.\n";
    let keys = "timeout = \"300 ms\"";
    let server = Server::start(&[("example.net", zone)], &forwarding(upstream.address, keys, ""));
    for (name, links) in [("one", 1), ("two", 2), ("any", 2), ("One", 1), ("two", 2)] {
        let reply = reply(&server, &format!("{name}.example.net"), "A");
        assert_eq!(reply.answer.len(), links + 1, "{reply:?}");
        let last = reply.answer.last().unwrap();
        assert_eq!((&*last.data.text, ra_and_aa(&reply)), ("192.0.2.7", (true, true)));
    }
    assert_eq!(upstream.asked(), 1);
    let alone = ask(server.zonda.address, &Question::new("two.example.net", "A")).unwrap();
    assert_eq!((alone.rcode_text(), alone.answer.len()), ("NOERROR".to_owned(), 2));
    let failed = reply(&server, "none.example.net", "A");
    assert_eq!((failed.rcode_text(), failed.answer.len()), ("SERVFAIL".to_owned(), 1));
    assert_eq!(reply(&server, "one.example.net", "CNAME").answer.len(), 1);
}

#[test]
fn below_a_delegation_of_ours_others_are_asked_if_the_name_is_a_forwarded_zone() {
    let upstream = upstream(7);
    let zone = "$TTL 60\n@ SOA ns host 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n\
                sub NS ns.sub\nns.sub A 192.0.2.2\nasked NS ns.asked\nns.asked A 192.0.2.3\n";
    let asked = format!(
        "{}\n[[zone]]\nname = \"asked.example.net\"\nforward.to = \"{}\"\n",
        forwarding(upstream.address, "", ""),
        upstream.address
    );
    let server = Server::start(&[("example.net", zone)], &asked);
    for name in ["sub.example.net", "www.sub.example.net"] {
        let referral = reply(&server, name, "A");
        assert_eq!((referral.rcode_text(), referral.answer.len()), ("NOERROR".to_owned(), 0));
        assert_eq!(referral.authority[0].owner, b"\x03sub\x07example\x03net\0");
        assert_eq!(ra_and_aa(&referral), (true, false));
    }
    assert_eq!(upstream.asked(), 0);
    assert_eq!(data(&reply(&server, "www.asked.example.net", "A")), "192.0.2.7");
}
