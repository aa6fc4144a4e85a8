//! What a configuration makes of answers.

use crate::server::{BINARY, Server, ask_once, wait_until, zone};
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::time::Duration;
use zonda_testkit::client::receive;
use zonda_testkit::process::{Folder, Process, free_port};
use zonda_testkit::{Question, Zonda, ask};

#[test]
fn json_zones_are_served_beside_master_files() {
    let zones = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/zones");
    let json = zones.canonicalize().unwrap().join("example.net.json");
    let net = format!("example.net={}", json.display());
    let missing = format!("other.test={}", json.display());
    let first = zone(1);
    let arguments = ["--zone", &net, "--zone", &missing];
    let zonda = Zonda::start(BINARY, &[("example.org", &first)], &arguments);
    let rcode = |name: &str| ask(zonda.address, &Question::new(name, "SOA")).unwrap().rcode_text();
    assert_eq!(rcode("example.net"), "NOERROR");
    assert_eq!(rcode("example.org"), "NOERROR");
    assert_eq!(rcode("other.test"), "SERVFAIL");
    assert!(zonda.process.log_soon("no zone other.test.").contains("example.net.json"));
}

#[test]
fn the_query_log_has_a_line_for_each_query() {
    let folder = Folder::new("log");
    let path = folder.path().join("queries.log");
    let server = Server::start(&[], &format!("[query-log]\noutput = {path:?}"));
    ask(server.zonda.address, &Question::new("wWw.example.org", "TXT")).unwrap();
    ask(server.zonda.address, &Question::new("other.test", "AAAA").over_tcp()).unwrap();
    let lines = || fs::read_to_string(&path).unwrap_or_default();
    wait_until("both lines are written", || lines().contains("other.test."));
    let lines = lines();
    assert!(lines.contains(" udp www.example.org. IN TXT NOERROR answered "), "{lines}");
    assert!(lines.contains(" tcp other.test. IN AAAA REFUSED no_zone "), "{lines}");
    fs::rename(&path, folder.path().join("old.log")).unwrap();
    server.zonda.process.signal("HUP");
    wait_until("the file is made anew", || path.exists());
}

#[test]
fn the_query_log_goes_to_standard_error_where_its_link_in_dev_is_named() {
    let server = Server::start(&[], "[query-log]\noutput = \"/dev/stderr\"");
    server.rcode("other.test", "AAAA");
    let line = server.zonda.process.log_soon(" udp other.test. IN AAAA REFUSED no_zone ");
    assert!(!line.is_empty());
}

#[test]
fn the_query_log_can_be_json() {
    let folder = Folder::new("log");
    let path = folder.path().join("queries.log");
    let keys = format!("[query-log]\noutput = {path:?}\nformat = \"json\"");
    let server = Server::start(&[], &keys);
    server.rcode("other.test", "AAAA");
    let lines = || fs::read_to_string(&path).unwrap_or_default();
    wait_until("the line is written", || lines().contains("\"name\":\"other.test.\""));
    assert!(lines().lines().all(|line| line.starts_with("{\"bytes\":") && line.ends_with('}')));
}

#[test]
fn the_query_log_has_the_outcomes_and_names_that_are_to_be_logged() {
    let folder = Folder::new("log");
    let path = folder.path().join("queries.log");
    let keys = format!(
        "[query-log]\noutput = {path:?}\noutcomes = [\"denial\", \"error\"]\n\
         except = [\"quiet.test\"]"
    );
    let server = Server::start(&[], &keys);
    for (name, rtype) in [
        ("www.example.org", "TXT"),
        ("www.example.org", "MX"),
        ("missing.example.org", "A"),
        ("a.quiet.test", "A"),
        ("www.example.org", "TXT"), // from the answers given before
        ("other.test", "A"),
    ] {
        server.rcode(name, rtype);
    }
    let lines = || fs::read_to_string(&path).unwrap_or_default();
    wait_until("the last line is written", || lines().contains("other.test."));
    let logged: Vec<String> = lines()
        .lines()
        .map(|line| line.split(' ').skip(3).take(4).collect::<Vec<_>>().join(" "))
        .collect();
    let expected = [
        "www.example.org. IN MX NOERROR",
        "missing.example.org. IN A NXDOMAIN",
        "other.test. IN A REFUSED",
    ];
    assert_eq!(logged, expected);
}

#[test]
fn access_lists_of_listener_and_zone_decide_who_is_answered() {
    let keys = "[access]\nnobody = [\"refuse any\"]\n\
                [[zone]]\nname = \"private.test\"\nfile = \"0.zone\"\naccess = [\"nobody\"]\n\
                [[zone]]\nname = \"secret.test\"\nfile = \"0.zone\"\naccess = [\"drop any\"]";
    let server = Server::start(&[], keys);
    let rcode = |name: &str| {
        ask(server.zonda.address, &Question::new(name, "A").edns(1232)).map(|it| it.rcode_text())
    };
    assert_eq!(rcode("ns.example.org").unwrap(), "NOERROR");
    assert_eq!(rcode("ns.private.test").unwrap(), "REFUSED");
    assert!(rcode("ns.secret.test").is_err(), "silence");
}

#[test]
fn rate_limiting_drops_and_slips_what_one_network_asks_too_often() {
    let server =
        Server::start(&[], "[rate-limit]\nresponses-per-second = 5\nwindow = \"1s\"\nslip = 2");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.zonda.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let query = Question::new("www.example.org", "TXT").to_bytes(1);
    (0..100).for_each(|_| assert!(socket.send(&query).is_ok()));
    let (mut whole, mut truncated, mut reply) = (0, 0, [0; 512]);
    while receive(&socket, &mut reply).is_ok() {
        if reply[2] & 2 == 0 { whole += 1 } else { truncated += 1 }
    }
    assert!((5..12).contains(&whole), "{whole} replies in full");
    assert!((35..50).contains(&truncated), "{truncated} truncated replies");
    assert_eq!(server.metric("zonda_queries_total{reason=\"rate_slipped\"}"), f64::from(truncated));
    let over_tcp = ask(server.zonda.address, &Question::new("www.example.org", "TXT").over_tcp());
    assert_eq!(over_tcp.unwrap().rcode_text(), "NOERROR");
}

#[test]
fn a_reply_on_a_wildcard_listener_comes_from_the_address_that_was_asked() {
    let port = free_port();
    let folder = Folder::new("wildcard");
    let file = folder.write("zone", zone(1));
    let mut command = Command::new(BINARY);
    command.args(["serve", "--listen", &format!("0.0.0.0:{port}"), "--zone"]);
    command.arg(format!("example.org={}", file.display()));
    command.env("ZONDA_ADMIN_ADDRESS", "off").env("ZONDA_ADMIN_SOCKET", "off");
    let log = folder.path().join("log");
    let _process = Process::start(&command, &log).unwrap();
    for address in ["127.0.0.1", "127.0.0.2", "127.1.2.3"] {
        let server: SocketAddr = format!("{address}:{port}").parse().unwrap();
        // A connected socket takes datagrams from that address alone.
        wait_until(address, || ask_once(server, &Question::new("ns.example.org", "A")).is_ok());
    }
}
