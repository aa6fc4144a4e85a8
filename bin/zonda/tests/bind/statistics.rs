//! Zonda's statistics are those of named: a figure that both have is in the same place, of the same
//! type, and, where both did the same, the same number.

use super::named::{get, start_edited, start_imported, start_named};
use serde_json::Value;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};
use zonda_testkit::process::{Folder, free_port};
use zonda_testkit::upstream::{Record, Reply, always, say, when};
use zonda_testkit::{Peer, PeerKind, Question, Upstream, ask};

/// What both count alike, of what the questions below lead to.
const SAME: &[&str] = &[
    "/opcodes/QUERY",
    "/opcodes/STATUS",
    "/rcodes/NOERROR",
    "/rcodes/NXDOMAIN",
    "/rcodes/SERVFAIL",
    "/rcodes/REFUSED",
    "/rcodes/BADVERS",
    "/qtypes/A",
    "/qtypes/MX",
    "/qtypes/TXT",
    "/qtypes/AXFR",
    "/qtypes/Others",
    "/nsstats/Requestv4",
    "/nsstats/ReqBadEDNSVer",
    "/nsstats/ReqTCP",
    "/nsstats/Response",
    "/nsstats/QrySuccess",
    "/nsstats/QryNxrrset",
    "/nsstats/QryNXDOMAIN",
    "/nsstats/QrySERVFAIL",
    "/nsstats/QryFailure",
    "/nsstats/XfrRej",
    "/nsstats/QryRecursion",
    "/nsstats/QryTCP",
    "/nsstats/QryUDP",
    "/nsstats/QryAuthAns",
    "/nsstats/QryNoauthAns",
    "/views/_default/resolver/qtypes/A",
    "/views/_default/resolver/qtypes/MX",
    "/views/_default/resolver/qtypes/TXT",
    "/views/_default/resolver/qtypes/Others",
    "/views/_default/resolver/stats/Queryv4",
    "/views/_default/resolver/stats/Responsev4",
    "/views/_default/resolver/stats/NXDOMAIN",
    "/views/_default/resolver/stats/REFUSED",
    "/views/_default/resolver/stats/Truncated",
    "/views/_default/resolver/stats/Retry",
    "/views/_default/resolver/cache/TXT",
    "/views/_default/resolver/cache/!Others",
    "/views/_default/resolver/cache/!MX",
    "/views/_default/resolver/cache/NXDOMAIN",
    "/views/_default/resolver/cachestats/QueryHits",
    "/views/_default/resolver/cachestats/QueryMisses",
];

/// Figures that named has after the same questions and Zonda does not count:
/// docs/coming-from-bind.md names each. What stands before a star is the beginning of many.
const NOT_OURS: &[&str] = &[
    "/memory/*",
    "/nsstats/RecQryRej",
    "/nsstats/ReqEdns0",
    "/nsstats/RespEDNS0",
    "/nsstats/TCPConnHighWater",
    "/rcodes/1*",
    "/rcodes/2*",
    "/rcodes/RESERVED*",
    "/sockstats/*",
    "/taskmgr/default-quantum",
    "/taskmgr/tasks",
    "/traffic",
    "/views/_bind",
    "/views/_default/resolver/adb",
    "/views/_default/resolver/cache/NS",
    "/views/_default/resolver/cachestats/CacheNSECNodes",
    "/views/_default/resolver/cachestats/CoveringNSEC",
    "/views/_default/resolver/cachestats/HeapMem*",
    "/views/_default/resolver/cachestats/TreeMemMax",
    "/views/_default/resolver/cachestats/TreeMemTotal",
    "/views/_default/resolver/stats/BucketSize",
    "/views/_default/resolver/stats/ClientCookieOut",
];

/// Asks a server for all that is compared. Aliases are left out: named looks into its cache for
/// each name of a chain, Zonda once.
fn exercise(server: SocketAddr) {
    let question = |name: &str, rtype: &str| Question::new(name, rtype).recursive().edns(1232);
    for (name, rtype, times) in [
        ("www.corp.example.net", "A", 3),
        ("nothing.corp.example.net", "A", 2),
        ("www.corp.example.net", "MX", 2),
        ("localhost", "A", 2),
        ("localhost", "MX", 1),
        ("nothing.localhost", "A", 1),
        ("www.refused.example", "A", 1),
        ("big.corp.example.net", "TXT", 1),
        ("www.corp.example.net", "CAA", 1),
        ("www.closed.example", "A", 1),
    ] {
        for _ in 0..times {
            ask(server, &question(name, rtype)).unwrap();
        }
    }
    ask(server, &Question::new("www.corp.example.net", "A").recursive().over_tcp()).unwrap();
    ask(server, &Question::new("localhost", "AXFR").over_tcp()).unwrap();
    // Another version of EDNS, and another operation.
    let mut version = question("www.corp.example.net", "A").to_bytes(7);
    let end = version.len();
    version[end - 5] = 1;
    let mut status = Question::new("www.corp.example.net", "A").to_bytes(8);
    status[2] = 2 << 3;
    for query in [version, status] {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket.send_to(&query, server).unwrap();
        socket.recv(&mut [0; 512]).unwrap();
    }
}

/// How many answers of other servers were put into a class by the time that they took. Into which
/// is up to the machine.
fn times(page: &Value) -> u64 {
    let stats = page.pointer("/views/_default/resolver/stats").and_then(Value::as_object);
    let classes = stats.unwrap().iter().filter(|(name, _)| name.starts_with("QryRTT"));
    classes.filter_map(|(_, count)| count.as_u64()).sum()
}

/// Adds the paths of figures that named has and Zonda lacks, without the paths below them.
fn lacking(path: &str, ours: &Value, theirs: &Value, all: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (key, value) in theirs {
                let path = format!("{path}/{key}");
                match ours.get(key) {
                    Some(own) => lacking(&path, own, value, all),
                    None => all.push(path),
                }
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            for (ours, theirs) in ours.iter().zip(theirs) {
                lacking(&format!("{path}[]"), ours, theirs, all);
            }
        }
        _ => {}
    }
}

/// Adds how Zonda's value differs from that of named.
fn compare(path: &str, ours: &Value, theirs: &Value, wrong: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (key, value) in ours {
                let path = format!("{path}/{key}");
                match theirs.get(key) {
                    Some(other) => compare(&path, value, other, wrong),
                    None if ALSO_OURS.contains(&&*path) => {}
                    None => wrong.push(format!("{path}: only ours: {value}")),
                }
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            for (ours, theirs) in ours.iter().zip(theirs) {
                compare(&format!("{path}[]"), ours, theirs, wrong);
            }
        }
        (Value::String(_), Value::String(_)) => {}
        (Value::Number(ours), Value::Number(theirs)) if ours.is_u64() == theirs.is_u64() => {}
        _ => wrong.push(format!("{path}: {ours} beside {theirs}")),
    }
}

/// Counters that these questions raise in Zonda and not in named, which leaves out zeros.
const ALSO_OURS: [&str; 0] = [];

/// A page of statistics.
fn page(address: SocketAddr, path: &str) -> Value {
    let (status, body) = get(address, path);
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

/// A configuration that asks no upstream twice soon. Where a machine is busy, an answer may take
/// longer than the time after which Zonda usually asks again; named, which waits for 0.8 s, would
/// have asked less.
fn patient(toml: String) -> String {
    let section = "[zone.forward]\n";
    assert!(toml.contains(section), "{toml}");
    toml.replace(section, &format!("{section}repeat-after-min = \"1s\"\n"))
}

#[test]
fn real_peers_count_the_same_under_the_same_names() {
    let big = format!("\"{}\" ", "x".repeat(250)).repeat(8); // not for UDP
    let zone = format!(
        "$TTL 300\n@ SOA ns host 1 7200 3600 1209600 60\n@ NS ns\nns A 192.0.2.1\n\
         www A 192.0.2.2\nbig TXT {big}\n"
    );
    let peer = Peer::start(PeerKind::Nsd, &[("corp.example.net", &zone)]);
    let upstream = peer.address.port();
    let theirs = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let ours = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let files = |folder: &Path, port: u16| {
        let own = folder.display();
        let text = format!(
            "options {{ listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};\n\
             dnssec-validation no; directory \"{own}\"; pid-file \"{own}/named.pid\";\n\
             session-keyfile \"{own}/session.key\"; forward only;\n\
             forwarders {{ 127.0.0.1 port {upstream}; }}; }};\ncontrols {{}};\n\
             statistics-channels {{ inet 127.0.0.1 port {} allow {{ 127.0.0.1; }}; }};\n\
             zone \"localhost\" {{ type primary; file \"/etc/bind/db.local\";\n\
             allow-transfer {{ none; }}; }};\n\
             zone \"closed.example\" {{ type primary; file \"/etc/bind/db.local\";\n\
             allow-query {{ none; }}; }};\n",
            theirs.port()
        );
        vec![("named.conf".to_owned(), text)]
    };
    let named = start_named(&["localhost"], files);
    let conf = named.folder.path().join("named.conf");
    let zonda = start_edited(&conf, &["localhost"], &ours.to_string(), patient);
    let before = [page(theirs, "/json/v1"), page(ours, "/json/v1")];
    exercise(named.address);
    exercise(zonda.address);
    let after = [page(theirs, "/json/v1"), page(ours, "/json/v1")];
    let mut wrong = Vec::new();
    compare("", &after[1], &after[0], &mut wrong);
    let single = |pointer: &str, page: &Value| {
        page.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
    };
    let mut check = |what: &str, count: &dyn Fn(&Value) -> u64| {
        let [theirs, ours] = [0, 1].map(|it| count(&after[it]) - count(&before[it]));
        if theirs != ours || theirs == 0 {
            wrong.push(format!("{what}: {ours} beside {theirs}"));
        }
    };
    SAME.iter().for_each(|pointer| check(pointer, &|page: &Value| single(pointer, page)));
    // Answers that came over TCP, since they were too large for UDP, have no time in these
    // statistics.
    let over_tcp = single("/views/_default/resolver/stats/Truncated", &after[1]);
    let heard = [0, 1].map(|it| times(&after[it]) - times(&before[it]));
    if heard[0] != heard[1] + over_tcp {
        wrong.push(format!("the sum of QryRTT: {} and {over_tcp} beside {}", heard[1], heard[0]));
    }
    let mut absent = Vec::new();
    lacking("", &after[1], &after[0], &mut absent);
    let is_known = |path: &String| {
        NOT_OURS.iter().any(|known| match known.strip_suffix('*') {
            Some(start) => path.starts_with(start),
            None => path == known,
        })
    };
    // A class without a query is left out, and the classes depend on how busy the machine is.
    let is_class = |path: &String| path.contains("/resolver/stats/QryRTT");
    let unknown = absent.iter().filter(|path| !is_known(path) && !is_class(path));
    wrong.extend(unknown.map(|path| format!("{path}: only theirs")));
    assert!(wrong.is_empty(), "{}\nnamed: {:#}\nzonda: {:#}", wrong.join("\n"), after[0], after[1]);
    for path in
        ["/json/v1/server", "/json/v1/zones", "/json/v1/status", "/json/v1/net", "/json/v1/mem"]
    {
        let mut wrong = Vec::new();
        compare(path, &page(ours, path), &page(theirs, path), &mut wrong);
        assert!(wrong.is_empty(), "{path}: {wrong:?}");
    }
    assert_eq!(get(ours, "/json/v1/nothing").0, get(theirs, "/json/v1/nothing").0);
}

#[test]
fn queries_that_wait_are_counted_as_those_of_recursive_clients() {
    let silent = Upstream::start([]);
    let statistics = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let folder = Folder::new("waiting");
    let text = format!(
        "options {{ forward only; forwarders {{ 127.0.0.1 port {}; }}; }};\n\
         zone \"localhost\" {{ type primary; file \"/etc/bind/db.local\"; }};\n\
         statistics-channels {{ inet 127.0.0.1 port {} allow {{ 127.0.0.1; }}; }};\n",
        silent.address.port(),
        statistics.port()
    );
    let conf = folder.write("named.conf", text);
    let zonda = start_imported(&conf, &["localhost"], &statistics.to_string());
    let waiting = || page(statistics, "/json/v1/server").pointer("/nsstats/RecursClients").cloned();
    assert_eq!(waiting(), None);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for number in 0..3 {
        let question = Question::new(&format!("name{number}.example.net"), "A").recursive();
        socket.send_to(&question.to_bytes(number), zonda.address).unwrap();
    }
    let limit = Instant::now() + Duration::from_secs(2); // they are told of a failure after 5
    while waiting() != Some(3.into()) {
        assert!(Instant::now() < limit, "{:?}", waiting());
    }
}

/// What both count of upstreams that are wrong, though not alike: each tries again as it thinks
/// fit.
const OF_FAILURES: &[&str] = &[
    "/nsstats/TruncatedResp",
    "/nsstats/QrySERVFAIL",
    "/views/_default/resolver/stats/SERVFAIL",
    "/views/_default/resolver/stats/FORMERR",
    "/views/_default/resolver/stats/OtherError",
    "/views/_default/resolver/stats/EDNS0Fail",
    "/views/_default/resolver/stats/QueryTimeout",
    "/views/_default/resolver/stats/NumFetch",
];

#[test]
fn real_peers_count_what_is_wrong_with_upstreams_under_the_same_names() {
    let texts =
        (0..4).map(|number| Record::new("TXT", [&[250, number][..], &[b'x'; 249]].concat()));
    let forged = Reply::address(66).edited(|message| message[0] ^= 1);
    let upstream = Upstream::start([
        when(|asked| asked.name.starts_with("lost")).then([]),
        when(|asked| asked.name.starts_with("broken")).then([say(Reply::rcode(2))]),
        when(|asked| asked.name.starts_with("unknown")).then([say(Reply::rcode(4))]),
        when(|asked| asked.name.starts_with("wrong")).then([say(Reply::rcode(1))]),
        when(|asked| asked.edns && asked.name.starts_with("plain")).then([say(Reply::rcode(1))]),
        when(|asked| asked.name.starts_with("forged")).then([say(forged), say(Reply::address(7))]),
        when(|asked| asked.record_type == 16)
            .then([say(texts.fold(Reply::empty(), Reply::answer))]),
        always().then([say(Reply::address(7))]),
    ]);
    let theirs = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let ours = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let files = |folder: &Path, port: u16| {
        let own = folder.display();
        let text = format!(
            "options {{ listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};\n\
             dnssec-validation no; directory \"{own}\"; pid-file \"{own}/named.pid\";\n\
             session-keyfile \"{own}/session.key\"; forward only;\n\
             forwarders {{ 127.0.0.1 port {}; }}; }};\ncontrols {{}};\n\
             statistics-channels {{ inet 127.0.0.1 port {} allow {{ 127.0.0.1; }}; }};\n\
             zone \"localhost\" {{ type primary; file \"/etc/bind/db.local\"; }};\n",
            upstream.address.port(),
            theirs.port()
        );
        vec![("named.conf".to_owned(), text)]
    };
    let named = start_named(&["localhost"], files);
    let conf = named.folder.path().join("named.conf");
    let zonda = start_imported(&conf, &["localhost"], &ours.to_string());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for server in [named.address, zonda.address] {
        let names = ["broken", "unknown", "wrong", "plain", "forged", "lost"];
        let names = names.map(|name| Question::new(&format!("{name}.example.net"), "A"));
        let questions = names.map(|question| question.edns(1232));
        let long = Question::new("long.example.net", "TXT");
        for (id, question) in (0..).zip(questions.into_iter().chain([long])) {
            socket.send_to(&question.recursive().to_bytes(id), server).unwrap();
        }
    }
    let mut seen = [0, 1].map(|_| Vec::new());
    let limit = Instant::now() + Duration::from_secs(15);
    while seen.iter().any(|seen: &Vec<&str>| seen.len() < OF_FAILURES.len()) {
        for (address, seen) in [theirs, ours].into_iter().zip(&mut seen) {
            let page = page(address, "/json/v1");
            let counts = |it: &&&str| page.pointer(it).and_then(Value::as_u64).unwrap_or(0) > 0;
            let new = OF_FAILURES.iter().filter(|it| !seen.contains(*it)).filter(counts);
            let new: Vec<&str> = new.copied().collect();
            seen.extend(new);
        }
        assert!(Instant::now() < limit, "named counts {:?}, Zonda {:?}", seen[0], seen[1]);
    }
    // named drops what has another id without counting it.
    let mismatch = "/views/_default/resolver/stats/Mismatch";
    let page = page(ours, "/json/v1");
    assert!(page.pointer(mismatch).and_then(Value::as_u64) >= Some(1), "{page:#}");
}
