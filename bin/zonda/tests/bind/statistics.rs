//! Our statistics are those of named: what both have is in the same place, of the same type, and,
//! where both did the same, the same number.

use super::named::{get, start_imported, start_named};
use serde_json::Value;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};
use zonda_testkit::process::{Folder, free_port};
use zonda_testkit::{Peer, PeerKind, Question, Upstream, ask};

/// What both count alike, of what the questions below lead to.
const SAME: &[&str] = &[
    "/opcodes/QUERY",
    "/opcodes/STATUS",
    "/rcodes/NOERROR",
    "/rcodes/NXDOMAIN",
    "/rcodes/SERVFAIL",
    "/rcodes/BADVERS",
    "/qtypes/A",
    "/qtypes/MX",
    "/nsstats/Requestv4",
    "/nsstats/ReqBadEDNSVer",
    "/nsstats/ReqTCP",
    "/nsstats/Response",
    "/nsstats/QrySuccess",
    "/nsstats/QryNxrrset",
    "/nsstats/QryNXDOMAIN",
    "/nsstats/QrySERVFAIL",
    "/nsstats/QryRecursion",
    "/nsstats/QryTCP",
    "/nsstats/QryUDP",
    "/nsstats/QryAuthAns",
    "/nsstats/QryNoauthAns",
    "/views/_default/resolver/qtypes/A",
    "/views/_default/resolver/qtypes/MX",
    "/views/_default/resolver/stats/Queryv4",
    "/views/_default/resolver/stats/Responsev4",
    "/views/_default/resolver/stats/NXDOMAIN",
    "/views/_default/resolver/stats/QryRTT10",
    "/views/_default/resolver/cachestats/QueryHits",
    "/views/_default/resolver/cachestats/QueryMisses",
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
    ] {
        for _ in 0..times {
            ask(server, &question(name, rtype)).unwrap();
        }
    }
    ask(server, &Question::new("www.corp.example.net", "A").recursive().over_tcp()).unwrap();
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

/// What is wrong with our value beside that of named.
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

/// Counters that these questions raise with us and not with named, which leaves out zeros.
const ALSO_OURS: [&str; 0] = [];

/// A page of statistics.
fn page(address: SocketAddr, path: &str) -> Value {
    let (status, body) = get(address, path);
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

#[test]
fn real_peers_count_the_same_under_the_same_names() {
    let zone = "$TTL 300\n@ SOA ns host 1 7200 3600 1209600 60\n@ NS ns\nns A 192.0.2.1\n\
        www A 192.0.2.2\n";
    let peer = Peer::start(PeerKind::Nsd, &[("corp.example.net", zone)]);
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
             zone \"localhost\" {{ type primary; file \"/etc/bind/db.local\"; }};\n",
            theirs.port()
        );
        vec![("named.conf".to_owned(), text)]
    };
    let named = start_named(&["localhost"], files);
    let conf = named.folder.path().join("named.conf");
    let zonda = start_imported(&conf, &["localhost"], &ours.to_string());
    let before = [page(theirs, "/json/v1"), page(ours, "/json/v1")];
    exercise(named.address);
    exercise(zonda.address);
    let after = [page(theirs, "/json/v1"), page(ours, "/json/v1")];
    let mut wrong = Vec::new();
    compare("", &after[1], &after[0], &mut wrong);
    for pointer in SAME {
        let count = |page: &Value| page.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        let [theirs, ours] = [0, 1].map(|it| count(&after[it]) - count(&before[it]));
        if theirs != ours || theirs == 0 {
            wrong.push(format!("{pointer}: {ours} beside {theirs}"));
        }
    }
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
