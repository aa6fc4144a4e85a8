//! Requests that change zones: what they refuse, and what becomes of many at once.

use super::edits::{JSON, command, send, state, try_send, writable};
use super::server::{BINARY, Server, wait_until, zone};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use zonda_testkit::Zonda;
use zonda_testkit::process::{Folder, Process, free_port};

/// The path of the address records of a name.
fn a(name: &str) -> String {
    format!("/v1/zones/example.org/rrsets/{name}.example.org/A")
}

/// One address record.
const ADDRESS: &str = r#"{"ttl": 60, "records": ["192.0.2.1"]}"#;

/// The serial of `example.org`.
fn serial(server: &Server) -> u64 {
    send(server, "GET", "/v1/zones/example.org", "").1["serial"].as_u64().unwrap()
}

#[test]
fn a_condition_that_cannot_be_read_changes_nothing() {
    let server = writable("");
    let socket = server.socket();
    for fields in [
        "if-match: \u{e9}\r\n",
        "if-match: \"1\"\r\nif-match: \"1\"\r\n",
        "if-match: \"1\", \"2\"\r\n",
        "if-match: \r\n",
        "if-match: \"1\r\n",
        "if-match: W/\"1\"\r\n",
        "if-match: -1\r\n",
        "if-match: 4294967297\r\n",
        "if-none-match: *\r\n",
    ] {
        let fields = format!("{JSON}{fields}");
        let target = ("PUT", &*a("x"));
        let (status, body) =
            try_send(Path::new(&socket), target, &fields, ADDRESS.as_bytes()).unwrap();
        assert_eq!(status, 400, "{fields}: {body}");
    }
    assert_eq!(serial(&server), 1);
}

#[test]
fn a_parameter_that_is_not_known_changes_nothing() {
    let server = writable("");
    for query in ["dryrun", "dry_run", "dry-run=no", "dry-run&now", "Dry-Run", "if-serial=7"] {
        let changes = json!({ "changes": [{
            "name": "x.example.org", "type": "A", "ttl": 60, "records": ["192.0.2.1"]
        }] });
        for (method, path, body) in [
            ("PUT", a("x"), ADDRESS.to_owned()),
            ("DELETE", a("ns"), String::new()),
            ("DELETE", "/v1/zones/example.org/rrsets/ns.example.org".to_owned(), String::new()),
            ("PATCH", "/v1/zones/example.org/rrsets".to_owned(), changes.to_string()),
        ] {
            let (status, problem) = send(&server, method, &format!("{path}?{query}"), &body);
            assert_eq!(status, 400, "{method} {path}?{query}: {problem}");
            assert!(problem["detail"].as_str().unwrap().contains("`dry-run`"), "{problem}");
        }
    }
    assert_eq!(serial(&server), 1);
}

#[test]
fn a_refused_record_is_named_beside_the_members_that_rfc_9457_defines() {
    let server = writable("");
    let (status, problem) =
        send(&server, "PUT", &a("www").replace("/A", "/CNAME"), r#"{"ttl":60,"records":["a."]}"#);
    assert_eq!(status, 422);
    assert_eq!(problem["rrset"], json!({ "name": "www.example.org", "type": "TXT" }));
    assert_eq!(problem["type"], Value::Null, "it would be the address of a kind of problem");
    assert!(problem["rule"].as_str().unwrap().starts_with("a name with a CNAME"), "{problem}");
}

#[test]
fn a_name_is_removed_while_other_clients_change_the_zone_all_the_time() {
    let server = writable("");
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        for client in 0..8 {
            let (server, is_done) = (&server, &is_done);
            scope.spawn(move || {
                for number in 0.. {
                    if is_done.load(Relaxed) {
                        break;
                    }
                    let body = format!(r#"{{"ttl": {number}, "records": ["192.0.2.1"]}}"#);
                    assert_eq!(send(server, "PUT", &a(&format!("c{client}")), &body).0, 200);
                }
            });
        }
        let removed: Vec<_> = (0..20)
            .map(|_| {
                send(&server, "PUT", &a("gone"), ADDRESS);
                let path = "/v1/zones/example.org/rrsets/gone.example.org";
                let (status, answer) = send(&server, "DELETE", path, "");
                let is_gone = send(&server, "GET", path, "").0 == 404;
                (status, is_gone, answer)
            })
            .collect();
        is_done.store(true, Relaxed);
        for (status, is_gone, answer) in removed {
            assert!(status == 200 && is_gone, "{status}: {answer}");
            assert!(answer["removed"].to_string().contains("gone.example.org"), "{answer}");
        }
    });
}

#[test]
fn of_clients_that_want_the_same_serial_one_changes_the_zone() {
    const CLIENTS: usize = 16;
    let server = writable("");
    let socket = server.socket();
    for round in 1..=10 {
        let start = Barrier::new(CLIENTS);
        let put = |client: usize| {
            let fields = format!("{JSON}if-match: {round}\r\n");
            let path = a(&format!("r{round}c{client}"));
            start.wait();
            try_send(Path::new(&socket), ("PUT", &path), &fields, ADDRESS.as_bytes()).unwrap()
        };
        let answers: Vec<(u16, String)> = thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS).map(|it| scope.spawn(move || put(it))).collect();
            clients.into_iter().map(|client| client.join().unwrap()).collect()
        });
        let count = |status| answers.iter().filter(|answer| answer.0 == status).count();
        assert_eq!((count(200), count(412)), (1, CLIENTS - 1), "round {round}: {answers:?}");
    }
    let (_, zone) = send(&server, "GET", "/v1/zones/example.org", "");
    assert_eq!((&zone["serial"], &zone["records"]), (&11.into(), &15.into()));
}

/// A program that becomes a server whose files have at most so many octets.
fn server_with_small_files(folder: &Folder, octets: usize) -> PathBuf {
    let text = format!(
        "#!/bin/sh\nexec env --ignore-signal=XFSZ prlimit --fsize={octets}: {BINARY} \
         \"$@\"\n"
    );
    let program = folder.write("zonda", text);
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    program
}

/// A server whose zone can be changed until its journal has some octets; and the directory of that.
pub fn with_small_files(octets: usize) -> (Server, Folder) {
    let folder = Folder::new("small-files");
    let program = server_with_small_files(&folder, octets);
    let state = folder.path().join("state");
    let arguments = ["--writable", "--state", state.to_str().unwrap()];
    let server = Server::start_program(program.to_str().unwrap(), &[], "", &arguments);
    (server, folder)
}

#[test]
fn an_edit_that_the_disk_does_not_take_is_refused_and_those_before_it_stay() {
    let (mut server, folder) = with_small_files(20_000);
    let put = |number: usize| {
        let body = json!({ "ttl": 60, "records": [format!("\"{}\"", "x".repeat(200))] });
        let path = a(&format!("n{number}")).replace("/A", "/TXT");
        send(&server, "PUT", &path, &body.to_string())
    };
    let taken = (0..200).take_while(|number| put(*number).0 == 200).count();
    assert!((10..190).contains(&taken), "{taken}");
    for _ in 0..3 {
        let (status, problem) = put(taken);
        assert_eq!(status, 507, "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("was not made") && detail.contains("journal"), "{problem}");
    }
    let name = |number: usize| format!("n{number}.example.org");
    let rcodes = |server: &Server| [taken - 1, taken].map(|it| server.rcode(&name(it), "TXT"));
    assert_eq!(rcodes(&server), ["NOERROR", "NXDOMAIN"]);
    assert_eq!(serial(&server), 1 + taken as u64);
    server.zonda.process.signal("KILL");
    wait_until("the server is gone", || server.zonda.process.ended());
    let state = folder.path().join("state");
    let again = server.command(&["--writable", "--state", state.to_str().unwrap()]);
    server.zonda.process = Process::start(&again, &folder.path().join("again.log")).unwrap();
    wait_until("the server is back", || {
        zonda_testkit::ask(
            server.zonda.address,
            &zonda_testkit::Question::new("example.org", "SOA"),
        )
        .is_ok()
    });
    assert_eq!(rcodes(&server), ["NOERROR", "NXDOMAIN"]);
    assert_eq!(command(&server, &["set", &name(taken), "60", "A", "192.0.2.1"]).0, 0);
}

#[test]
fn what_rests_on_an_edit_that_the_disk_did_not_take_is_not_acknowledged() {
    let (server, _folder) = with_small_files(300);
    let many: Vec<Value> = (0..20_000)
        .map(|it| {
            let name = format!("m{it}.example.org");
            json!({ "name": name, "type": "A", "ttl": 60, "records": ["192.0.2.1"] })
        })
        .collect();
    let long = json!({ "changes": many }).to_string();
    let body = json!({ "ttl": 60, "records": [format!("\"{}\"", "x".repeat(200))] }).to_string();
    let answers: Vec<(u16, Value)> = thread::scope(|scope| {
        // While the publisher is busy with this one, the next ones come to wait together.
        let path = "/v1/zones/example.org/rrsets?dry-run";
        scope.spawn(|| send(&server, "PATCH", path, &long));
        thread::sleep(Duration::from_millis(60));
        let put = || send(&server, "PUT", &a("x").replace("/A", "/TXT"), &body);
        let clients: Vec<_> = (0..6).map(|_| scope.spawn(put)).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    for (status, answer) in answers {
        assert_eq!(status, 507, "{answer}");
    }
    assert_eq!(server.rcode("x.example.org", "TXT"), "NXDOMAIN");
}

#[test]
fn with_a_damaged_journal_the_files_are_served_and_changes_refused_with_what_to_do() {
    let mut server = writable("");
    for number in 0..20 {
        assert_eq!(send(&server, "PUT", &a(&format!("n{number}")), ADDRESS).0, 200);
    }
    server.zonda.process.signal("KILL");
    wait_until("the server is gone", || server.zonda.process.ended());
    let journal = state(&server).join("journal");
    let mut octets = fs::read(&journal).unwrap();
    let middle = octets.len() / 2;
    octets[middle] ^= 1;
    fs::write(&journal, &octets).unwrap();
    let folder = Folder::new("damaged");
    let state = state(&server);
    let again = server.command(&["--writable", "--state", state.to_str().unwrap()]);
    server.zonda.process = Process::start(&again, &folder.path().join("again.log")).unwrap();
    wait_until("the server is back", || {
        let soa = zonda_testkit::Question::new("example.org", "SOA");
        zonda_testkit::ask(server.zonda.address, &soa).is_ok()
    });
    assert_eq!(server.rcode("ns.example.org", "A"), "NOERROR");
    assert_eq!(server.rcode("n0.example.org", "A"), "NXDOMAIN");
    let (code, printed) = command(&server, &["set", "x.example.org", "60", "A", "192.0.2.1"]);
    assert!(code == 1 && printed.contains("journal") && printed.contains("octet"), "{printed}");
    let status = send(&server, "GET", "/v1/status", "").1;
    assert!(status["problems"][0].as_str().unwrap().contains("journal"), "{status}");
    assert_eq!(fs::read(&journal).unwrap(), octets, "what is left of it is for its owner");
}

/// Sends JSON over TCP, with a token if there is one; the status of the answer.
fn over_tcp(to: SocketAddr, (method, path): (&str, &str), token: &str, body: &str) -> u16 {
    let mut stream = TcpStream::connect(to).unwrap();
    let token = match token {
        "" => String::new(),
        token => format!("authorization: Bearer {token}\r\n"),
    };
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{token}{JSON}\
         content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer); // the body of what is refused is not read
    answer.get(9..12).unwrap().parse().unwrap()
}

#[test]
fn zones_are_changed_over_tcp_with_the_write_token_alone() {
    let folder = Folder::new("tokens");
    let address: SocketAddr = format!("127.0.0.1:{}", free_port()).parse().unwrap();
    let zones = folder.path().join("zones");
    let config = folder.write(
        "zonda.toml",
        format!(
            "version = 1\n[admin]\naddress = \"{address}\"\ntoken = \"correct-horse-battery\"\n\
             read-token = \"staple-of-the-reader\"\nzones = {zones:?}\n"
        ),
    );
    let (first, state) = (zone(1), folder.path().join("state"));
    let arguments =
        ["--config", config.to_str().unwrap(), "--writable", "--state", state.to_str().unwrap()];
    let _zonda = Zonda::start(BINARY, &[("example.org", &*first)], &arguments);
    let changes = json!({ "changes": [] }).to_string();
    for (method, path, body) in [
        ("PUT", &*a("x"), ADDRESS),
        ("PUT", &format!("{}?dry-run", a("x")), ADDRESS),
        ("DELETE", &a("x"), ""),
        ("DELETE", "/v1/zones/example.org/rrsets/x.example.org", ""),
        ("PATCH", "/v1/zones/example.org/rrsets", &changes),
        ("POST", "/v1/flush", ""),
        ("POST", "/v1/zones", r#"{"name": "new.example"}"#),
        ("DELETE", "/v1/zones/new.example", ""),
    ] {
        let status = |token| over_tcp(address, (method, path), token, body);
        let refused = [status(""), status("wrong--horse-battery"), status("staple-of-the-reader")];
        assert_eq!(refused, [401, 401, 403], "{method} {path}");
        let status = status("correct-horse-battery");
        assert!(matches!(status, 200 | 201), "{method} {path}: {status}");
    }
    let path = "/v1/zones/example.org/diff";
    assert_eq!(over_tcp(address, ("GET", path), "staple-of-the-reader", ""), 200);
}

#[test]
fn hostile_bodies_are_refused_and_change_nothing() {
    let server = writable("");
    let socket = server.socket();
    let long = "9".repeat(10_000);
    let deep = |times| "{\"changes\":".repeat(times) + "[]" + &"}".repeat(times);
    let set = |rest: &str| {
        format!(r#"{{"changes": [{{"name": "x.example.org", "type": "A", "ttl": 1, {rest}}}]}}"#)
    };
    let bodies = [
        "\u{feff}{\"changes\": []}".to_owned(),
        "{\"changes\": [] } trailing".to_owned(),
        "{\"changes\": [], \"changes\": []}".to_owned(),
        deep(100_000),
        format!("{{\"changes\": [{}]}}", "[".repeat(100_000)),
        format!("{{{}\"changes\": []}}", "\"a\": 1, ".repeat(200_000)),
        set(r#""records": ["192.0.2.1", "192.0.2.1\u0000"]"#),
        set(r#""records": [{"ip": ["192.0.2.1"]}]"#),
        set(r#""records": [null]"#),
        set(r#""records": {"0": "192.0.2.1"}"#),
        set(r#""records": "192.0.2.1""#),
        set(r#""records": [], "records": ["192.0.2.1"]"#),
        set(r#""records": ["192.0.2.1"], "class": "CH""#),
        set(r#""records": ["192.0.2.1"]"#).replace("\"ttl\": 1", &format!("\"ttl\": {long}")),
        set(r#""records": ["192.0.2.1"]"#).replace("\"ttl\": 1", "\"ttl\": 1e400"),
        set(r#""records": ["192.0.2.1"]"#).replace("\"ttl\": 1", "\"ttl\": 1.5"),
        set(r#""records": ["192.0.2.1"]"#).replace("\"ttl\": 1", "\"ttl\": 2147483648"),
        set(r#""records": ["192.0.2.1"]"#).replace("x.example.org", &"a.".repeat(200)),
        set(r#""records": ["192.0.2.1"]"#).replace("x.example.org", "x..example.org"),
        set(r#""records": ["192.0.2.1"]"#).replace("x.example.org", r"\\300.example.org"),
        set(r#""records": ["192.0.2.1"]"#).replace("x.example.org", r"\ud800"),
        set(r#""records": ["192.0.2.1"]"#).replace("\"A\"", "\"AXFR\""),
        set(r#""records": ["\\# 4 c0000201 00"]"#),
        set(r#""records": ["\\# 65536 00"]"#),
    ];
    for body in &bodies {
        let target = ("PATCH", "/v1/zones/example.org/rrsets");
        let (status, answer) = try_send(Path::new(&socket), target, JSON, body.as_bytes()).unwrap();
        let shown = body.chars().take(150).collect::<String>();
        assert_eq!(status, 400, "{shown}: {answer}");
        assert!(answer.len() < 2000, "{shown}: an answer of {} octets", answer.len());
        let problem: Value = serde_json::from_str(&answer).unwrap();
        assert!(problem["path"].is_string() && problem["detail"].is_string(), "{answer}");
    }
    for path in ["/v1/zones/example.org/rrsets/%ff/A", "/v1/zones/%00/rrsets/a/A"] {
        let (status, answer) = send(&server, "PUT", path, ADDRESS);
        assert!((400..500).contains(&status), "{path}: {answer}");
    }
    assert_eq!(serial(&server), 1);
}

#[test]
fn a_dry_run_leaves_zone_and_journal_as_they_are() {
    let server = writable("");
    let journal = state(&server).join("journal");
    assert_eq!(send(&server, "PUT", &a("before"), ADDRESS).0, 200);
    let before = fs::read(&journal).unwrap();
    let dry = |method: &str, path: &str, body: &str| {
        let (status, answer) = send(&server, method, &format!("{path}?dry-run"), body);
        assert_eq!((status, &answer["from"], &answer["to"]), (200, &2.into(), &3.into()));
        assert_eq!(answer["dry_run"], true);
    };
    dry("PUT", &a("x"), ADDRESS);
    dry("DELETE", &a("before"), "");
    dry("DELETE", "/v1/zones/example.org/rrsets/before.example.org", "");
    assert_eq!(fs::read(&journal).unwrap(), before);
    assert_eq!(serial(&server), 2);
    assert_eq!(server.rcode("x.example.org", "A"), "NXDOMAIN");
    assert_eq!(server.rcode("before.example.org", "A"), "NOERROR");
}

#[test]
fn a_ds_record_is_put_into_the_zone_above_where_the_server_has_both() {
    let child = "$TTL 60\n@ SOA ns host 1 7200 3600 1209600 60\n@ NS ns\nns A 192.0.2.1\n";
    let folder = Folder::new("child");
    let state = folder.path().join("state");
    let arguments = ["--writable", "--state", state.to_str().unwrap()];
    let server = Server::start_with(&[("sub.example.org", child)], "", &arguments);
    assert_eq!(
        command(
            &server,
            &["set", "sub.example.org", "60", "ns", "ns.sub.example.org", "--zone", "example.org"]
        )
        .0,
        0
    );
    let digest = format!("1 13 2 {}", "ab".repeat(32));
    let (code, printed) = command(&server, &["set", "sub.example.org", "60", "ds", &digest]);
    assert_eq!(code, 0, "{printed}");
    assert!(printed.contains("+ example.org. 60 SOA"), "{printed}");
    let (code, printed) = command(&server, &["get", "sub.example.org", "DS"]);
    assert!(code == 0 && printed.contains("DS\t1 13 2 ABAB"), "{printed}");
    let (code, printed) = command(&server, &["unset", "sub.example.org", "DS"]);
    assert!(code == 0 && printed.contains("- sub.example.org. 60 DS"), "{printed}");
    let (code, printed) = command(&server, &["set", "sub.example.org", "60", "TXT", "child"]);
    assert!(code == 0 && printed.contains("+ sub.example.org. 60 SOA"), "{printed}");
}

#[test]
fn names_and_types_are_given_to_commands_as_master_files_have_them() {
    let server = writable("");
    for (name, rtype, data, shown) in [
        ("*.w.example.org", "a", "192.0.2.1", "+ *.w.example.org. 60 A 192.0.2.1\n"),
        ("a\\.b.example.org.", "AAAA", "2001:db8::1", "+ a\\.b.example.org. 60 AAAA 2001:db8::1\n"),
        ("Mixed.Example.ORG", "mx", "10 Mail.example.com", "+ mixed.example.org. 60 MX 10 "),
        ("a b.example.org", "TXT", "\"x;y\" z", "+ a\\032b.example.org. 60 TXT \"x;y\" \"z\"\n"),
        ("t.example.org", "TYPE65280", "\\# 2 abcd", "+ t.example.org. 60 TYPE65280 \\# 2 "),
        ("50%/x.example.org", "A", "192.0.2.1", "+ 50%/x.example.org. 60 A 192.0.2.1\n"),
    ] {
        let (code, printed) = command(&server, &["set", name, "60", rtype, data]);
        let lower = printed.to_lowercase();
        assert!(code == 0 && lower.contains(&shown.to_lowercase()), "{name}: {code} {printed}");
        let (code, printed) = command(&server, &["get", name, rtype]);
        assert_eq!(code, 0, "{name}: {printed}");
        let (code, printed) = command(&server, &["unset", name, rtype]);
        let gone = shown.replacen('+', "-", 1).to_lowercase();
        assert!(code == 0 && printed.to_lowercase().contains(&gone), "{name}: {printed}");
    }
}
