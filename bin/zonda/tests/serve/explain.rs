//! Why a client gets the answer that it gets, told by a running server.

use crate::server::{Server, run, text};
use serde_json::Value;
use std::collections::BTreeSet;
use zonda_testkit::process::Folder;
use zonda_testkit::upstream::{Reply, always, say};
use zonda_testkit::{Question, Upstream, ask};

const ZONE: &str = "$TTL 300\n@ SOA ns h 1 7200 3600 1209600 60\n@ NS ns\nns A 192.0.2.1\n\
                    alias CNAME www\ntext TXT hello\n*.apps A 192.0.2.3\n";

/// A server with a zone of data, one that is forwarded, and pools that decide by the client.
struct Explained {
    server: Server,
    upstream: Upstream,
    _folder: Folder,
}

impl Explained {
    fn start() -> Self {
        let folder = Folder::new("explained");
        folder.write("explained.zone", ZONE);
        let upstream = Upstream::start([always().then([say(Reply::address(7))])]);
        let (path, root) = (folder.path(), std::env::temp_dir());
        let keys = format!(
            "root = {root:?}\nstate = {:?}\n\
             [geo]\nnetworks = [{{ prefix = \"10.0.0.0/9\", site = \"lon\" }}, {{ prefix = \
             \"10.128.0.0/9\", site = \"nyc\" }}]\n\
             [[pool]]\nname = \"web\"\nchoose = [\"failover\", \"geo\", \"hash\"]\nmembers = [\
             {{ address = \"192.0.2.10\", site = \"lon\" }}, {{ address = \"192.0.2.11\", site = \
             \"lon\" }}, {{ address = \"192.0.2.12\", site = \"nyc\" }}, {{ address = \
             \"192.0.2.13\", site = \"nyc\", priority = 2 }}]\n\
             [[pool]]\nname = \"outer\"\nchoose = \"in-order\"\nmembers = [{{ pool = \"web\" }}]\n\
             [[pool]]\nname = \"down\"\nwhen-all-down = \"servfail\"\nmembers = [{{ address = \
             \"192.0.2.20\" }}]\n\
             [[zone]]\nname = \"explained.test\"\nfile = {:?}\n\
             steer = {{ \"www A\" = \"outer\", \"down A\" = \"down\" }}\n\
             [[zone]]\nname = \"away.test\"\n[zone.forward]\nto = [\"{}\"]\n",
            path.join("state"),
            path.join("explained.zone"),
            upstream.address,
        );
        let server = Server::start(&[], &keys);
        Self { server, upstream, _folder: folder }
    }

    /// What is explained of a query.
    fn explain(&self, words: &[&str]) -> Value {
        let socket = self.server.socket();
        let output = run(&[&["explain"], words, &["--json", "--socket", &*socket]].concat());
        let (out, error) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{error}");
        serde_json::from_str(&out).unwrap()
    }

    /// The text of a step.
    fn step(explanation: &Value, step: &str) -> String {
        let steps = explanation["steps"].as_array().unwrap();
        let found = steps.iter().find(|it| it["step"] == step);
        let found = found.unwrap_or_else(|| panic!("no step {step}: {explanation:#}"));
        found["text"].as_str().unwrap().to_owned()
    }
}

/// The records of an explanation, as a set.
fn records(explanation: &Value) -> BTreeSet<String> {
    let records = explanation["answer"].as_array().unwrap();
    records.iter().map(|record| record.as_str().unwrap().to_owned()).collect()
}

#[test]
fn each_filter_tells_what_it_left_and_why() {
    let explained = Explained::start();
    let found = explained.explain(&["alias.explained.test", "--client", "10.200.3.4"]);
    let step = |step| Explained::step(&found, step);
    assert!(step("pool").starts_with("outer answers for www.explained.test. A"));
    assert!(step("failover").contains("priority 1: 3 of 4 members"));
    assert_eq!(
        step("geo"),
        "10.128.0.0/9 is at nyc → nyc: 1 of 3 members: 192.0.2.12 (/9)",
        "{found:#}"
    );
    assert_eq!(step("only"), "pool web");
    assert_eq!(found["reason"], "steered");
    assert_eq!(found["scope"], 9);
    assert!(step("resolver").contains("10.128.0.0/9"));
    assert!(step("ttl").starts_with("60 s: `ttl-max` of web"), "{found:#}");
    assert!(step("hot").contains("a pool chooses"));
    let lon = explained.explain(&["www.explained.test", "A", "--client", "10.1.2.3"]);
    assert!(Explained::step(&lon, "hash").starts_with("the client's /24 among 2 members → "));
    assert_eq!(lon["scope"], 24);
}

#[test]
fn what_is_explained_is_what_is_served() {
    let explained = Explained::start();
    let mut number = 12_345_u32;
    let mut next = || {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (number >> 8) as u8
    };
    let names = ["www", "alias", "text", "none", "x.apps", "@", "ns", "x.text"];
    let types = ["A", "AAAA", "TXT", "SOA", "CNAME", "NS"];
    for _ in 0..150 {
        let name = match names[usize::from(next()) % names.len()] {
            "@" => "explained.test".to_owned(),
            name => format!("{name}.explained.test"),
        };
        let rtype = types[usize::from(next()) % types.len()];
        let octets = [10, next(), next()];
        let network = format!("{}.{}.{}.0/24", octets[0], octets[1], octets[2]);
        let found = explained.explain(&[&name, rtype, "--subnet", &network]);
        let option = [&[0, 1, 24, 0][..], &octets].concat();
        let question = Question::new(&name, rtype).option(8, &option);
        let reply = ask(explained.server.zonda.address, &question).unwrap();
        let served = reply.answer.iter().chain(&reply.authority).chain(&reply.additional);
        let served: BTreeSet<String> = served.map(ToString::to_string).collect();
        assert_eq!(records(&found), served, "{name} {rtype} {network}: {found:#}");
        assert_eq!(found["rcode"].as_str(), Some(&*reply.rcode_text()));
        let options = reply.edns.unwrap().options;
        let scope = options.iter().find(|(code, _)| *code == 8).map(|(_, data)| data[3]);
        assert_eq!(found["scope"].as_u64(), scope.map(u64::from), "{name} {rtype} {network}");
    }
}

#[test]
fn explaining_asks_no_upstream_and_counts_nothing() {
    let explained = Explained::start();
    let queries = || {
        let page = explained.server.get("/metrics").1;
        let lines = page.lines().filter(|line| line.starts_with("zonda_replies_total"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let before = queries();
    let found = explained.explain(&["www.away.test", "A"]);
    let forward = Explained::step(&found, "forward");
    assert!(forward.contains(&format!("asked would be {}", explained.upstream.address)));
    assert_eq!(explained.upstream.asked(), 0);
    assert_eq!(queries(), before);
    let question = Question::new("www.away.test", "A").recursive();
    ask(explained.server.zonda.address, &question).unwrap();
    let kept = explained.explain(&["www.away.test", "A"]);
    assert_eq!(Explained::step(&kept, "source"), "the answer cache");
    assert_eq!(kept["reason"], "cached");
    assert_eq!(explained.upstream.asked(), 1);
}

#[test]
fn a_pool_that_is_down_and_a_client_that_is_refused_are_told() {
    let explained = Explained::start();
    let socket = explained.server.socket();
    assert!(run(&["pool", "down", "down/*", "--socket", &*socket]).status.success());
    let found = explained.explain(&["down.explained.test", "A"]);
    assert_eq!(Explained::step(&found, "end"), "servfail: no member is up");
    assert_eq!((&found["reason"], &found["rcode"]), (&"pool_down".into(), &"SERVFAIL".into()));
    let refused = explained.explain(&["www.away.test", "A", "--client", "198.51.100.1"]);
    assert_eq!(refused["reason"], "access_refused");
}

#[test]
fn mistakes_in_the_question_are_told_with_their_remedy() {
    let explained = Explained::start();
    let socket = explained.server.socket();
    let error = |words: &[&str]| {
        let output = run(&[&["explain", "www.test"], words, &["--socket", &*socket]].concat());
        assert!(!output.status.success());
        text(&output.stderr)
    };
    assert!(error(&["--client", "10.0.0"]).contains("write an address"));
    assert!(error(&["--subnet", "10.1.2.3/8"]).contains("the network is 10.0.0.0/8"));
    assert!(error(&["--listener", "192.0.2.1:53"]).contains("no listener 192.0.2.1:53; there are"));
    assert!(error(&["--transport", "pigeon"]).contains("udp or tcp"));
    assert!(error(&["NOTYPE"]).contains("NOTYPE"));
}
