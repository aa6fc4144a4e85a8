//! ALIAS records, whose targets the server looks up: at a resolver of their own, at the upstreams
//! of a forwarded zone, and when neither answers.

use super::server::{Server, run, text, wait_until};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};
use zonda_testkit::upstream::{Record, Reply, always, say, tell, when};
use zonda_testkit::{Message, Peer, PeerKind, Question, Resolver, Upstream, ask};

/// A zone with ALIAS records at its apex and below.
const ZONE: &str = "$TTL 300\n@ SOA ns host 7 7200 3600 1209600 60\n@ NS ns\nns A 192.0.2.1\n\
    @ ALIAS lb.example.net.\nwww CNAME @\nshop ALIAS lb.example.net.\n\
    deep ALIAS www\nwords TYPE65401 \\# 12 026c62 076578616d706c65 00\n\
    a ANAME missing.example.net.\ncdn ALIAS cdn.example.net.\nhost A 192.0.2.2\n";

/// A server with the zone and a resolver for its targets, which it asks for clients alone, with
/// more keys.
fn start(resolver: SocketAddr, keys: &str) -> Server {
    let answers = format!("alias-resolver = [\"{resolver}\"]\nalias-refresh = false");
    let keys = format!("[answers]\n{answers}\n{keys}");
    Server::start(&[("zone.example", ZONE)], &keys)
}

/// An upstream with addresses of any name, which live for so many seconds.
fn addresses(ttl: u32) -> Upstream {
    let missing = Reply::rcode(3).authority(Record::soa("example.net", 60));
    Upstream::start([
        when(|asked| asked.name.starts_with("missing.")).then([say(missing)]),
        always().then([say(Reply::empty().answer(Record::address(7).ttl(ttl)))]),
    ])
}

/// The reply to a client that wants no recursion, such as a resolver.
fn reply(server: &Server, name: &str) -> Message {
    ask(server.zonda.address, &Question::new(name, "A").edns(1232)).unwrap()
}

/// The data of the answer.
fn data(message: &Message) -> Vec<&str> {
    message.answer.iter().map(|record| &*record.data.text).collect()
}

/// The info codes of a reply's extended errors.
fn errors(message: &Message) -> Vec<u8> {
    let options = &message.edns.as_ref().unwrap().options;
    options.iter().filter(|(code, _)| *code == 15).map(|(_, data)| data[1]).collect()
}

#[test]
fn a_target_is_looked_up_once_for_all_names_and_clients_that_lead_to_it() {
    let upstream = addresses(60);
    let server = start(upstream.address, "");
    for (name, expected) in [
        ("zone.example", vec!["192.0.2.7"]),
        ("shop.zone.example", vec!["192.0.2.7"]),
        ("www.zone.example", vec!["zone.example.", "192.0.2.7"]),
        ("deep.zone.example", vec!["192.0.2.7"]),
    ] {
        let reply = reply(&server, name);
        assert_eq!((reply.rcode_text(), data(&reply)), ("NOERROR".to_owned(), expected), "{name}");
        assert_eq!(reply.flags & 0x0480, 0x0400, "AA, not RA");
    }
    let question = Question::new("zone.example", "A").edns(1232);
    assert_eq!(
        data(&ask(server.zonda.address, &question.clone().dnssec()).unwrap()),
        ["192.0.2.7"]
    );
    assert_eq!(data(&ask(server.zonda.address, &question.over_tcp()).unwrap()), ["192.0.2.7"]);
    assert_eq!(upstream.asked(), 1, "the answer cache has it");
    assert!(!reply(&server, "lb.example.net").rcode_text().contains("NOERROR"), "no client may");
}

#[test]
fn a_target_without_addresses_is_nodata_and_words_of_other_servers_are_read() {
    let upstream = addresses(60);
    let server = start(upstream.address, "");
    let missing = reply(&server, "a.zone.example");
    let counts = (missing.answer.len(), missing.authority.len());
    assert_eq!((missing.rcode_text(), counts), ("NOERROR".to_owned(), (0, 1)));
    let question = Question::new("words.zone.example", "TYPE65401");
    let stored = ask(server.zonda.address, &question).unwrap();
    assert_eq!(stored.answer.len(), 1, "the record itself");
}

#[test]
fn when_upstreams_are_gone_the_last_addresses_are_given() {
    let upstream = addresses(1);
    let server = start(upstream.address, "[cache]\nstale = \"1h\"");
    assert_eq!(data(&reply(&server, "zone.example")), ["192.0.2.7"]);
    upstream.now_does([]);
    thread::sleep(Duration::from_millis(2100)); // the TTL, and the second it may last longer
    let start = Instant::now();
    let stale = reply(&server, "zone.example");
    assert_eq!((data(&stale), errors(&stale)), (vec!["192.0.2.7"], vec![3]));
    assert_eq!(stale.answer[0].ttl, 30, "stale-ttl");
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    assert!(server.metric("zonda_queries_total{reason=\"stale\"}") >= 1.0);
    let unknown = reply(&server, "cdn.zone.example");
    assert_eq!((unknown.rcode_text(), errors(&unknown).len()), ("SERVFAIL".to_owned(), 1));
}

#[test]
fn the_upstreams_of_a_forwarded_zone_are_asked_for_clients_that_may_not_ask_themselves() {
    let upstream = addresses(60);
    let keys = format!(
        "[[zone]]\nname = \".\"\nforward.to = \"{}\"\naccess = \"refuse any\"\n",
        upstream.address
    );
    let server = Server::start(&[("zone.example", ZONE)], &keys);
    assert_eq!(data(&reply(&server, "zone.example")), ["192.0.2.7"]);
    assert_eq!(data(&reply(&server, "www.zone.example")), ["zone.example.", "192.0.2.7"]);
    assert_eq!(server.rcode("lb.example.net", "A"), "REFUSED");
}

#[test]
fn a_chain_over_two_forwarded_zones_is_put_together_for_any_client() {
    let edge = addresses(60);
    let alias = Reply::empty().answer(Record::alias("edge.corp.test"));
    let all = Upstream::start([always().then([say(alias)])]);
    let keys = format!(
        "[answers]\nalias-refresh = false\n\
         [[zone]]\nname = \".\"\nforward.to = \"{}\"\naccess = \"refuse any\"\n\
         [[zone]]\nname = \"corp.test\"\nforward.to = \"{}\"\naccess = \"refuse any\"\n",
        all.address, edge.address
    );
    let server = Server::start(&[("zone.example", ZONE)], &keys);
    for reason in ["just fetched", "cached"] {
        assert_eq!(data(&reply(&server, "zone.example")), ["192.0.2.7"], "{reason}");
    }
    assert_eq!((all.asked(), edge.asked()), (1, 1));
}

#[test]
fn a_chain_that_leads_back_ends_in_the_zone_and_a_circle_fails() {
    let target = |name: &str| match name.split('.').next().unwrap() {
        "lb" => "host.zone.example",
        _ => "cdn.zone.example",
    };
    let upstream = Upstream::start([always()
        .then([tell(move |asked| Reply::empty().answer(Record::alias(target(&asked.name))))])]);
    let server = start(upstream.address, "");
    for reason in ["just fetched", "cached"] {
        assert_eq!(data(&reply(&server, "zone.example")), ["192.0.2.2"], "{reason}");
        let circle = reply(&server, "cdn.zone.example");
        assert_eq!(circle.rcode_text(), "SERVFAIL", "{reason}");
        assert_eq!(errors(&circle).len(), 1, "{reason}");
    }
}

#[test]
fn a_resolver_comes_goes_and_is_named_in_what_is_told_of_upstreams() {
    let upstream = addresses(60);
    let server = Server::start(&[("zone.example", ZONE)], "");
    let failed = reply(&server, "zone.example");
    assert_eq!((failed.rcode_text(), errors(&failed)), ("SERVFAIL".to_owned(), vec![0]));
    server.configure(&format!("[answers]\nalias-resolver = [\"{}\"]", upstream.address));
    assert_eq!(server.post("/v1/reload").0, 200);
    assert_eq!(data(&reply(&server, "zone.example")), ["192.0.2.7"]);
    let told = server.get("/v1/upstreams").1;
    assert!(told.contains("\"zone\": \"alias-resolver\""), "{told}");
    let kept = server.get("/v1/cache?name=lb.example.net").1;
    assert!(kept.contains("\"zone\": \"alias-resolver\""), "{kept}");
    server.configure("");
    assert_eq!(server.post("/v1/reload").0, 200);
    assert_eq!(reply(&server, "zone.example").rcode_text(), "SERVFAIL");
}

#[test]
fn a_record_without_an_upstream_is_told_by_its_line() {
    let server = Server::start(&[("zone.example", ZONE)], "");
    let log = server.zonda.process.log_soon("is SERVFAIL unless");
    assert!(log.contains(".zone:5:1: warning: is SERVFAIL unless"), "{log}");
    assert!(!log.contains(".zone:8:1: "), "a target in the zone needs no upstream: {log}");
    let upstream = addresses(60);
    let server = start(upstream.address, "");
    assert_eq!(server.zonda.process.log("SERVFAIL unless"), "");
}

#[test]
fn real_peers_resolve_the_targets_of_alias_records() {
    let zone = "$ORIGIN example.net.\n$TTL 60\n@ SOA ns host 1 7200 3600 1209600 60\n@ NS ns\n\
                ns A 198.51.100.9\nlb CNAME node\nnode A 198.51.100.1\nnode A 198.51.100.2\n\
                cdn TXT \"no address\"\n";
    let nsd = Peer::start(PeerKind::Nsd, &[("example.net", zone)]);
    let unbound = Resolver::unbound(nsd.address, "example.net");
    let server = start(unbound.address, "");
    for name in ["zone.example", "deep.zone.example"] {
        let reply = reply(&server, name);
        let mut addresses = data(&reply);
        addresses.retain(|it| !it.ends_with('.'));
        addresses.sort_unstable();
        assert_eq!(addresses, ["198.51.100.1", "198.51.100.2"], "{name}");
    }
    for name in ["cdn.zone.example", "a.zone.example"] {
        let none = reply(&server, name);
        assert_eq!((none.rcode_text(), none.authority.len()), ("NOERROR".to_owned(), 1), "{name}");
    }
    drop((nsd, unbound));
    assert_eq!(data(&reply(&server, "zone.example")).len(), 2, "what is known stays");
}

#[test]
fn an_explanation_tells_where_the_record_leads_and_who_would_be_asked() {
    let upstream = addresses(60);
    let server = start(upstream.address, "");
    let explain = ["explain", "zone.example", "A", "--socket", &*server.socket()];
    let told = text(&run(&explain).stdout).to_owned();
    assert!(told.contains("the ALIAS record leads to lb.example.net."), "{told}");
    assert!(told.contains(&format!("asked would be {}", upstream.address)), "{told}");
    assert_eq!(upstream.asked(), 0);
}

#[test]
fn targets_are_looked_up_and_kept_fresh_without_queries_while_a_zone_has_the_record() {
    let upstream = addresses(6);
    let keys = format!("[answers]\nalias-resolver = [\"{}\"]", upstream.address);
    let zone = "$TTL 300\n@ SOA ns host 7 7200 3600 1209600 60\n@ NS ns\nns A 192.0.2.1\n\
                www ALIAS lb.example.net.\n";
    let server = Server::start(&[("zone.example", zone)], &keys);
    let asked =
        |qtype: u16| upstream.count(|it| it.name == "lb.example.net." && it.record_type == qtype);
    wait_until("both types are looked up, and again", || asked(1) >= 2 && asked(28) >= 2);
    assert_eq!(data(&reply(&server, "www.zone.example")), ["192.0.2.7"]);
}
