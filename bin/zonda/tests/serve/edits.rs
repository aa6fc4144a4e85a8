//! Changing zones while they are served: by command, over HTTP, and when the server is killed.

use crate::server::{BINARY, Server, run, text, wait_until};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};
use zonda_testkit::process::{Folder, Process};
use zonda_testkit::{Question, ask};

/// A server whose zone `example.org` can be changed.
pub fn writable(keys: &str) -> Server {
    let folder = std::env::temp_dir();
    let state = folder.join(format!("zonda-state-{}-{}", std::process::id(), next()));
    let server = Server::start_with(&[], keys, &["--writable", "--state", state.to_str().unwrap()]);
    fs::write(server.folder.path().join("state"), state.to_str().unwrap()).unwrap();
    server
}

/// A number that no other call in this process gets.
fn next() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, SeqCst)
}

/// The state directory of a server.
pub fn state(server: &Server) -> PathBuf {
    fs::read_to_string(server.folder.path().join("state")).unwrap().into()
}

/// Runs `zonda zone` on a server; its exit code, and all that it has printed.
pub fn command(server: &Server, arguments: &[&str]) -> (i32, String) {
    let socket = server.socket();
    let output = run(&[&["zone"], arguments, &["--socket", &socket]].concat());
    (output.status.code().unwrap(), text(&output.stdout) + &text(&output.stderr))
}

/// Sends a request with a body; status and body of the answer, nothing if the server is away.
pub fn try_send(
    socket: &Path,
    (method, path): (&str, &str),
    fields: &str,
    body: &[u8],
) -> Option<(u16, String)> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-length: {length}\r\n{fields}\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    let _ = stream.write_all(body); // a body that is refused is not read to its end
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head[9..12].parse().unwrap(), body.to_owned()))
}

pub const JSON: &str = "content-type: application/json\r\n";

/// Sends JSON to a running server.
pub fn send(server: &Server, method: &str, path: &str, body: &str) -> (u16, Value) {
    let socket = server.socket();
    let answer = try_send(Path::new(&socket), (method, path), JSON, body.as_bytes());
    let (status, body) = answer.unwrap();
    (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
}

#[test]
fn a_name_is_changed_and_removed_by_one_command_each_which_prints_the_difference() {
    let server = writable("");
    assert_eq!(
        command(&server, &["set", "api.example.org", "300", "A", "192.0.2.7", "192.0.2.8"]),
        (
            0,
            "- example.org. 60 SOA ns.example.org. host.example.org. 1 7200 3600 1209600 60\n\
             + example.org. 60 SOA ns.example.org. host.example.org. 2 7200 3600 1209600 60\n\
             + api.example.org. 300 A 192.0.2.7\n\
             + api.example.org. 300 A 192.0.2.8\n\
             the serial rose from 1 to 2\n"
                .to_owned()
        )
    );
    let reply = ask(server.zonda.address, &Question::new("api.example.org", "A")).unwrap();
    assert_eq!(reply.answer.len(), 2);
    assert_eq!(
        command(&server, &["get", "api.example.org"]).1,
        "api.example.org.\t300\tIN\tA\t192.0.2.7\napi.example.org.\t300\tIN\tA\t192.0.2.8\n"
    );
    let (code, printed) = command(&server, &["unset", "api.example.org", "A", "--dry-run"]);
    assert_eq!((code, printed.lines().last()), (0, Some("the serial would rise from 2 to 3")));
    let (code, printed) = command(&server, &["unset", "api.example.org"]);
    assert_eq!((code, printed.lines().last()), (0, Some("the serial rose from 2 to 3")));
    assert_eq!(server.rcode("api.example.org", "A"), "NXDOMAIN");
    let (code, printed) = command(&server, &["unset", "api.example.org"]);
    assert_eq!((code, &*printed), (0, "nothing differs; the serial is 3\n"));
    assert_eq!(
        command(&server, &["get", "api.example.org"]),
        (1, "api.example.org. has no records\n".to_owned())
    );
}

#[test]
fn what_the_file_lacks_is_shown_and_written_to_it() {
    let server = writable("");
    let none = (0, "the files of all zones have all changes\n".to_owned());
    assert_eq!(command(&server, &["flush"]), none);
    command(&server, &["set", "note.example.org", "1h", "TXT", "two words"]);
    let (code, printed) = command(&server, &["diff"]);
    assert!(printed.contains("\n+ note.example.org. 3600 TXT \"two words\"\n"), "{printed}");
    assert_eq!((code, printed.lines().last()), (0, Some("the serial rose from 1 to 2")));
    assert!(!fs::read_to_string(server.zone_file()).unwrap().contains("note"));
    assert_eq!(command(&server, &["flush"]), (0, "example.org. 2\n".to_owned()));
    let file = fs::read_to_string(server.zone_file()).unwrap();
    assert!(file.contains("note.example.org.\t3600\tIN\tTXT\t\"two words\"\n"), "{file}");
    assert_eq!(command(&server, &["diff"]), (0, "nothing differs; the serial is 2\n".to_owned()));
    assert_eq!(command(&server, &["get"]).1.lines().count(), 6);
}

#[test]
fn a_flush_of_a_zone_that_an_option_names_writes_no_other_file() {
    let server = writable("");
    command(&server, &["set", "note.example.org", "1h", "TXT", "two words"]);
    let (code, printed) = command(&server, &["flush", "--zone", "example.net"]);
    assert_eq!(code, 1, "{printed}");
    assert!(!fs::read_to_string(server.zone_file()).unwrap().contains("note"));
    for name in ["flush", "diff"] {
        let (code, printed) = command(&server, &[name, "example.org", "--zone", "example.net"]);
        assert_eq!((code, &*printed), (2, "zonda: name the zone once, without --zone\n"));
    }
    let flushed = command(&server, &["flush", "--zone", "example.org"]);
    assert_eq!(flushed, (0, "example.org. 2\n".to_owned()));
}

#[test]
fn names_with_letters_beyond_ascii_are_those_that_queries_have() {
    let server = writable("");
    let (code, printed) = command(&server, &["set", "Bücher.example.org", "60", "A", "192.0.2.7"]);
    assert_eq!(code, 0, "{printed}");
    assert_eq!(server.rcode("xn--bcher-kva.example.org", "A"), "NOERROR");
    let (_, printed) = command(&server, &["get", "bücher.example.org"]);
    assert_eq!(printed, "xn--bcher-kva.example.org.\t60\tIN\tA\t192.0.2.7\n");
    assert_eq!(command(&server, &["unset", "bücher.example.org"]).0, 0);
    assert_eq!(server.rcode("xn--bcher-kva.example.org", "A"), "NXDOMAIN");
}

#[test]
fn commands_say_why_a_zone_was_not_changed_and_what_to_do() {
    let server = writable("");
    for (arguments, expected) in [
        (
            &["set", "www.example.org", "60", "CNAME", "ns.example.org"][..],
            "www.example.org. TXT: a name with a CNAME cannot have other records",
        ),
        (
            &["set", "www.example.org", "60", "A", "192.0.2.300"],
            "`192.0.2.300`: ip: expected an IPv4 address such as 192.0.2.1",
        ),
        (
            &["set", "www.example.org", "60", "MX", "10", "mail.example.org"],
            "`10`: exchange: expected data, found the end of the record; each DATA is a record: \
             write one of several words in quotation marks",
        ),
        (&["set", "www.example.org", "60", "LUA", "x"], "no type LUA: write one as A"),
        (&["unset", "example.org", "SOA"], "example.org. SOA: the zone would have no SOA record"),
        (
            &["set", "www.example.net", "60", "A", "192.0.2.1"],
            "zonda: the server has no zone with the name www.example.net; it has example.org.",
        ),
        (
            &["set", "ns.example.org", "60", "A", "192.0.2.1", "--if-serial", "9"],
            "the zone has changed: its serial is 1; read it again",
        ),
        (&["flush", "example.net"], "the server has no zone example.net."),
    ] {
        let (code, printed) = command(&server, arguments);
        assert!(printed.contains(expected) && code != 0, "{arguments:?}: {code} {printed}");
    }
    assert_eq!(command(&server, &["diff"]).1, "nothing differs; the serial is 1\n");
    let server = Server::start(&[], "");
    let (code, printed) = command(&server, &["set", "a.example.org", "60", "A", "192.0.2.1"]);
    assert!(
        printed.contains("if its records come from a file, write `writable = true` in"),
        "{printed}"
    );
    assert_eq!(code, 1);
}

#[test]
fn a_batch_takes_effect_whole_or_not_at_all_and_is_answered_with_the_difference() {
    let server = writable("");
    let path = "/v1/zones/example.org/rrsets";
    let batch = |second: &str| {
        format!(
            r#"{{"changes": [
                {{"name": "a.example.org", "type": "A", "ttl": 60, "records": ["192.0.2.1"]}},
                {{"name": "{second}", "type": "A", "ttl": 60, "records": [{{"ip": "192.0.2.2"}}]}}
            ]}}"#
        )
    };
    let (status, problem) = send(&server, "PATCH", path, &batch("b.example.net"));
    assert_eq!(
        (status, &problem["rrset"]["name"], &problem["rrset"]["type"]),
        (422, &"b.example.net".into(), &"A".into())
    );
    assert_eq!(problem["rule"], "the name is not in this zone");
    assert_eq!(server.rcode("a.example.org", "A"), "NXDOMAIN");
    let dry = format!("{path}?dry-run");
    let (status, found) = send(&server, "PATCH", &dry, &batch("b.example.org"));
    assert_eq!((status, &found["dry_run"], &found["to"]), (200, &true.into(), &2.into()));
    assert_eq!(server.rcode("a.example.org", "A"), "NXDOMAIN");
    let (status, made) = send(&server, "PATCH", path, &batch("b.example.org"));
    assert_eq!(
        (status, &made["added"], &made["removed"]),
        (200, &found["added"], &found["removed"])
    );
    assert_eq!(server.rcode("b.example.org", "A"), "NOERROR");
    let (_, gone) = send(&server, "DELETE", &format!("{path}/a.example.org/A"), "");
    assert_eq!(gone["removed"][1]["name"], "a.example.org");
}

#[test]
fn a_change_for_another_serial_is_refused_with_the_present_one() {
    let server = writable("");
    let (socket, path) = (server.socket(), "/v1/zones/example.org/rrsets/x.example.org/A");
    let put = |serial: &str| {
        let fields = format!("{JSON}if-match: {serial}\r\n");
        let body = br#"{"ttl": 60, "records": ["192.0.2.1"]}"#;
        try_send(Path::new(&socket), ("PUT", path), &fields, body).unwrap()
    };
    let (status, body) = put("7");
    let problem: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &problem["serial"]), (412, &1.into()));
    assert_eq!(put("W/x").0, 400);
    assert_eq!(put("1").0, 200);
    assert_eq!(put("1").0, 412);
    assert_eq!(put("*").0, 200);
}

#[test]
fn records_of_a_version_that_a_client_has_are_not_sent_again() {
    let server = writable("");
    let records = "/v1/zones/example.org/rrsets";
    let answer = |method: &str, path: &str, fields: &str, body: &str| {
        let mut stream = UnixStream::connect(server.socket()).unwrap();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: zonda\r\nconnection: close\r\n{fields}\
             content-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let tag = head.lines().find_map(|line| line.strip_prefix("etag: "));
        assert_eq!(head.contains("content-type: "), &head[9..12] != "304", "{head}");
        (head[9..12].to_owned(), tag.map(str::to_owned), body.len())
    };
    let get = |fields: &str| answer("GET", records, fields, "");
    let is_sent = |(status, tag, octets): (String, Option<String>, usize), serial: u32| {
        let tag = tag.unwrap();
        assert!(status == "200" && tag.starts_with(&format!("\"{serial}-")), "{status} {tag}");
        assert!(octets > 100, "{octets}");
        tag
    };
    let tag = is_sent(get(""), 1);
    for has in [&tag, &format!("W/{tag}"), &format!("\"7\", {tag}"), "*"] {
        let expected = ("304".to_owned(), Some(tag.clone()), 0);
        assert_eq!(get(&format!("if-none-match: {has}\r\n")), expected, "{has}");
    }
    is_sent(get("if-none-match: \"7\"\r\n"), 1);
    let page = format!("{records}?limit=1&after=ns.example.org");
    assert_eq!(answer("GET", &page, &format!("if-none-match: {tag}\r\n"), "").0, "304");
    let (path, body) =
        (format!("{records}/x.example.org/A"), r#"{"ttl":60,"records":["192.0.2.1"]}"#);
    let dry = answer("PUT", &format!("{path}?dry-run"), JSON, body);
    assert_eq!((&*dry.0, dry.1), ("200", None));
    let made = answer("PUT", &path, JSON, body);
    assert_eq!((&*made.0, made.1), ("200", None), "it answers with a difference");
    is_sent(get(&format!("if-none-match: {tag}\r\n")), 2);
    let none = answer("GET", &format!("{records}/none.example.org"), "if-none-match: *\r\n", "");
    assert_eq!((&*none.0, none.1), ("404", None));
}

#[test]
fn bodies_that_are_no_changes_are_refused_and_change_nothing() {
    let server = writable("");
    let socket = server.socket();
    let patch = |fields: &str, body: &[u8]| {
        let target = ("PATCH", "/v1/zones/example.org/rrsets");
        try_send(Path::new(&socket), target, fields, body).unwrap()
    };
    for (body, path) in [
        (&b""[..], ""),
        (b"\xff\xfe", ""),
        (b"[]", ""),
        (br#"{"changes": [{"name": 7}]}"#, "changes[0].name"),
        (
            br#"{"changes": [{"name": "a.example.org", "type": "A", "records": [{}]}]}"#,
            "changes[0]",
        ),
    ] {
        let (status, answer) = patch(JSON, body);
        let problem: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(status, 400, "{answer}");
        assert!(problem["path"].as_str().unwrap().starts_with(path), "{answer}");
    }
    let deep = [vec![b'['; 200_000], vec![b']'; 200_000]].concat();
    assert_eq!(patch(JSON, &deep).0, 400);
    assert_eq!(patch("content-type: text/plain\r\n", b"{}").0, 415);
    assert_eq!(patch("", b"{}").0, 415);
    let long = vec![b' '; (8 << 20) + 1];
    let refused =
        try_send(Path::new(&socket), ("PATCH", "/v1/zones/example.org/rrsets"), JSON, &long);
    assert!(refused.is_none_or(|(status, _)| status == 413));
    assert_eq!(command(&server, &["diff"]).1, "nothing differs; the serial is 1\n");
}

#[test]
fn fifty_clients_change_a_zone_at_once_and_all_changes_are_made() {
    let server = writable("");
    let clients: Vec<_> = (0..50)
        .map(|client| {
            let socket = server.socket();
            thread::spawn(move || {
                for number in 0..4 {
                    let name = format!("c{client}-{number}.example.org");
                    let path = format!("/v1/zones/example.org/rrsets/{name}/A");
                    let body = br#"{"ttl": 60, "records": ["192.0.2.1"]}"#;
                    let answer = try_send(Path::new(&socket), ("PUT", &path), JSON, body).unwrap();
                    assert_eq!(answer.0, 200, "{}", answer.1);
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    let (_, zone) = send(&server, "GET", "/v1/zones/example.org", "");
    assert_eq!((&zone["serial"], &zone["records"]), (&201.into(), &205.into()));
}

#[test]
fn a_successor_takes_over_the_edits_that_no_file_has() {
    let mut server = writable("");
    command(&server, &["set", "kept.example.org", "60", "A", "192.0.2.9"]);
    let log = server.folder.path().join("successor.log");
    let state = state(&server);
    let arguments = ["--writable", "--state", state.to_str().unwrap(), "--take-over"];
    let successor = Process::start(&server.command(&arguments), &log).unwrap();
    wait_until("the former server ends", || server.zonda.process.ended());
    server.zonda.process = successor;
    assert_eq!(server.rcode("kept.example.org", "A"), "NOERROR");
    let (code, printed) = command(&server, &["set", "more.example.org", "60", "A", "192.0.2.9"]);
    assert_eq!(code, 0, "{printed}");
    assert_eq!(command(&server, &["flush"]).0, 0);
    let _ = fs::remove_dir_all(state);
}

#[test]
fn a_zone_of_a_directory_is_written_to_its_file_and_no_other_is() {
    let folder = Folder::new("directory");
    let (zones, state) = (folder.path().join("zones"), folder.path().join("state"));
    fs::create_dir(&zones).unwrap();
    let text = crate::server::zone(1);
    let _ =
        ["a.test", "b.test"].map(|it| fs::write(zones.join(format!("{it}.zone")), &text).unwrap());
    let keys = format!(
        "state = {state:?}\nroot = {:?}\n[[zone]]\ndirectory = {zones:?}\nwritable = true\n",
        std::env::temp_dir()
    );
    let server = Server::start(&[], &keys);
    let (code, printed) = command(&server, &["set", "new.a.test", "60", "A", "192.0.2.9"]);
    assert_eq!(code, 0, "{printed}");
    let file = |name: &str| fs::read_to_string(zones.join(name)).unwrap();
    assert_eq!(file("a.test.zone"), text, "nothing is written before");
    assert_eq!(command(&server, &["flush"]), (0, "a.test. 2\n".to_owned()));
    assert!(file("a.test.zone").contains("new.a.test.\t60\tIN\tA\t192.0.2.9\n"));
    assert_eq!((file("a.test.zone.orig"), file("b.test.zone")), (text.clone(), text));
    let reload = run(&["reload", "--socket", &server.socket()]);
    assert!(reload.status.success(), "{}", text_of(&reload));
    // The first version is no zone, and the file is not taken for one that was edited by hand.
    assert_eq!(send(&server, "GET", "/v1/zones", "").1["total"], 3);
    assert_eq!(send(&server, "GET", "/v1/zones/a.test", "").1["serial"], 2);
    assert_eq!(server.rcode("new.a.test", "A"), "NOERROR");
}

/// All that a command has printed.
fn text_of(output: &std::process::Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn edits_that_arrive_while_a_successor_takes_over_are_acknowledged_and_kept_or_neither() {
    const CLIENTS: usize = 3;
    const SUCCESSORS: usize = 4;
    let mut server = writable("");
    let (socket, state) = (PathBuf::from(server.socket()), state(&server));
    let arguments = ["--writable", "--state", state.to_str().unwrap(), "--take-over"];
    let clients: Vec<Client> = (0..CLIENTS)
        .map(|_| Client { acknowledged: AtomicU64::new(0), sent: AtomicU64::new(0) })
        .collect();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        for (number, client) in clients.iter().enumerate() {
            let (socket, is_done) = (&socket, &is_done);
            scope.spawn(move || {
                while !is_done.load(SeqCst) {
                    let value = client.acknowledged.load(SeqCst) + 1;
                    client.sent.store(value, SeqCst);
                    match try_change(socket, number, value) {
                        Some((200, _)) => client.acknowledged.store(value, SeqCst),
                        // To be repeated: the successor has the journal, or the server has ended.
                        Some((503, _)) | None => thread::sleep(Duration::from_millis(1)),
                        Some((status, body)) => panic!("{status}: {body}"),
                    }
                }
            });
        }
        for round in 0..SUCCESSORS {
            let before: u64 = clients.iter().map(|it| it.acknowledged.load(SeqCst)).sum();
            let log = server.folder.path().join(format!("successor-{round}.log"));
            let successor = Process::start(&server.command(&arguments), &log).unwrap();
            wait_until("the former server ends", || server.zonda.process.ended());
            server.zonda.process = successor;
            wait_until("the successor takes edits", || {
                clients.iter().map(|it| it.acknowledged.load(SeqCst)).sum::<u64>() > before + 20
            });
        }
        is_done.store(true, SeqCst);
    });
    for (number, client) in clients.iter().enumerate() {
        let [a, b] =
            ["a", "b"].map(|owner| number_of(&server, &format!("{owner}{number}.example.org")));
        let (acknowledged, sent) = (client.acknowledged.load(SeqCst), client.sent.load(SeqCst));
        assert_eq!(a, b, "a change was made in part");
        assert!(
            (acknowledged..=sent).contains(&a),
            "{a}, acknowledged {acknowledged}, sent {sent}"
        );
    }
    let _ = fs::remove_dir_all(state);
}

#[test]
fn zones_are_created_and_removed_where_a_directory_is_named_for_them() {
    let folder = Folder::new("created");
    let zones = folder.path().join("zones");
    let state = folder.path().join("state");
    let server = Server::start(&[], &format!("state = {state:?}\n[admin]\nzones = {zones:?}\n"));
    let body = r#"{"name": "New.Example", "rrsets": [
        {"name": "new.example", "type": "NS", "ttl": 60, "records": ["ns.new.example"]},
        {"name": "ns.new.example", "type": "A", "ttl": 60, "records": ["192.0.2.1"]}]}"#;
    let (status, zone) = send(&server, "POST", "/v1/zones", body);
    assert_eq!((status, &zone["name"], &zone["serial"]), (201, &"new.example.".into(), &1.into()));
    assert_eq!(server.rcode("ns.new.example", "A"), "NOERROR");
    assert_eq!(command(&server, &["set", "www.new.example", "60", "A", "192.0.2.2"]).0, 0);
    assert_eq!(send(&server, "POST", "/v1/zones", body).0, 409);
    for (body, expected) in [
        (r#"{"name": "example.org"}"#, 409),
        (r#"{"name": "a/b.example"}"#, 422),
        (r#"{"name": "."}"#, 422),
        (
            r#"{"name": "b.example", "rrsets": [
                {"name": "c.example", "type": "A", "ttl": 1, "records": ["192.0.2.1"]}]}"#,
            422,
        ),
        (r#"{"name": "b.example", "records": []}"#, 400),
    ] {
        let (status, answer) = send(&server, "POST", "/v1/zones", body);
        assert_eq!(status, expected, "{body}: {answer}");
    }
    assert_eq!(fs::read_dir(&zones).unwrap().count(), 1, "nothing is left of what was refused");
    let (status, problem) = send(&server, "DELETE", "/v1/zones/example.org", "");
    assert_eq!(status, 409, "{problem}");
    assert_eq!(send(&server, "DELETE", "/v1/zones/new.example", "").0, 200);
    assert_eq!(server.rcode("ns.new.example", "A"), "REFUSED");
    assert_eq!(send(&server, "DELETE", "/v1/zones/new.example", "").0, 404);
    let (status, _) = send(&server, "POST", "/v1/zones", r#"{"name": "new.example"}"#);
    assert_eq!((status, &*server.rcode("www.new.example", "A")), (201, "NXDOMAIN"));
    assert_eq!(
        command(&server, &["get", "new.example", "SOA"]).1,
        "new.example.\t3600\tIN\tSOA\tlocalhost. hostmaster.new.example. 1 7200 1800 1209600 300\n"
    );
}

/// The entity tag of the records of a zone.
fn entity_tag(server: &Server, zone: &str) -> String {
    let mut stream = UnixStream::connect(server.socket()).unwrap();
    let request =
        format!("GET /v1/zones/{zone}/rrsets HTTP/1.1\r\nhost: zonda\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned()
}

#[test]
fn a_zone_that_is_created_anew_has_not_the_entity_tags_of_the_former_one() {
    let folder = Folder::new("created-anew");
    let (zones, state) = (folder.path().join("zones"), folder.path().join("state"));
    let server = Server::start(&[], &format!("state = {state:?}\n[admin]\nzones = {zones:?}\n"));
    let create = || send(&server, "POST", "/v1/zones", r#"{"name": "new.example"}"#);
    let put = |condition: &str| {
        let fields = format!("{JSON}if-match: {condition}\r\n");
        let path = "/v1/zones/new.example/rrsets/www.new.example/A";
        let body = br#"{"ttl": 60, "records": ["192.0.2.1"]}"#;
        try_send(Path::new(&server.socket()), ("PUT", path), &fields, body).unwrap()
    };
    assert_eq!(create().0, 201);
    let former = entity_tag(&server, "new.example");
    assert_eq!(send(&server, "DELETE", "/v1/zones/new.example", "").0, 200);
    let (_, zone) = create();
    assert_eq!(zone["serial"], 1, "as that of the former one");
    let tag = entity_tag(&server, "new.example");
    assert_ne!(tag, former);
    let (status, body) = put(&former);
    assert!(status == 412 && body.contains("created anew"), "{status} {body}");
    assert_eq!(put(&tag).0, 200);
    assert_eq!(put(&tag).0, 412, "the zone has changed");
    assert_eq!(put("2").0, 200, "a serial alone is of any zone");
}

#[test]
fn an_entity_tag_that_the_server_never_gave_matches_no_version() {
    let server = writable("");
    let put = |condition: &str| {
        let fields = format!("{JSON}if-match: {condition}\r\n");
        let path = "/v1/zones/example.org/rrsets/www.example.org/A";
        let body = br#"{"ttl": 60, "records": ["192.0.2.1"]}"#;
        try_send(Path::new(&server.socket()), ("PUT", path), &fields, body).unwrap()
    };
    let tag = entity_tag(&server, "example.org");
    let life = tag.trim_matches('"').split_once('-').unwrap().1;
    for other in
        ["1", "1-", "", "-1", "4294967297", "any", &format!("01-{life}"), &format!("1-0{life}")]
    {
        let (status, body) = put(&format!("\"{other}\""));
        assert_eq!(status, 412, "{other}: {body}");
        assert!(body.contains("a serial alone without quotation marks"), "{other}: {body}");
    }
    assert_eq!(put(&tag).0, 200);
}

#[test]
fn without_a_directory_for_them_no_zones_are_created() {
    let server = Server::start(&[], "");
    let (status, problem) = send(&server, "POST", "/v1/zones", r#"{"name": "new.example"}"#);
    assert_eq!(status, 409);
    assert!(problem["detail"].as_str().unwrap().contains("`zones = \"DIR\"` in [admin]"));
}

/// What a client that changes a zone knows of its last change.
struct Client {
    /// The number of the last change that was acknowledged.
    acknowledged: AtomicU64,
    /// The number of the last change that was sent.
    sent: AtomicU64,
}

/// Gives two sets a value, both or none; status and body of the answer, nothing if the server is
/// away.
fn try_change(socket: &Path, number: usize, value: u64) -> Option<(u16, String)> {
    let set = |owner: &str| {
        format!(
            r#"{{"name": "{owner}{number}.example.org", "type": "TXT", "ttl": 60,
                "records": ["\"{value}\""]}}"#
        )
    };
    let body = format!(r#"{{"changes": [{}, {}]}}"#, set("a"), set("b"));
    try_send(socket, ("PATCH", "/v1/zones/example.org/rrsets"), JSON, body.as_bytes())
}

/// Changes two sets together, again and again, until the server is away.
fn change_on(socket: &Path, number: usize, client: &Client) {
    loop {
        let value = client.sent.load(SeqCst) + 1;
        client.sent.store(value, SeqCst);
        match try_change(socket, number, value) {
            Some((200, _)) => client.acknowledged.store(value, SeqCst),
            Some((status, body)) => panic!("{status}: {body}"),
            None => return,
        }
        if value.is_multiple_of(16) && number == 0 {
            let _ = try_send(socket, ("POST", "/v1/flush"), "", b"");
        }
    }
}

/// The number in the text record of a name; 0 if it has none.
fn number_of(server: &Server, name: &str) -> u64 {
    let reply = ask(server.zonda.address, &Question::new(name, "TXT")).unwrap();
    let text = reply.answer.first().map(|record| record.data.text.clone());
    text.map_or(0, |text| text.trim_matches('"').parse().unwrap())
}

#[test]
fn a_server_that_is_killed_again_and_again_loses_no_acknowledged_change() {
    const CLIENTS: usize = 4;
    let kills = std::env::var("TEST_KILLS").map_or(300, |kills| kills.parse().unwrap());
    let mut server = writable("");
    let (socket, state) = (PathBuf::from(server.socket()), state(&server));
    let clients: Arc<Vec<Client>> = Arc::new(
        (0..CLIENTS)
            .map(|_| Client { acknowledged: AtomicU64::new(0), sent: AtomicU64::new(0) })
            .collect(),
    );
    let arguments = ["--writable", "--state", state.to_str().unwrap()];
    let mut random = 1_u64;
    for kill in 0..kills {
        let threads: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (clients, socket) = (Arc::clone(&clients), socket.clone());
                thread::spawn(move || change_on(&socket, number, &clients[number]))
            })
            .collect();
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        thread::sleep(Duration::from_micros(random >> 49)); // up to 33 ms
        server.zonda.process.signal("KILL");
        wait_until("the server is gone", || server.zonda.process.ended());
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let log_file = server.folder.path().join("again.log");
        let command = server.command(&arguments);
        server.zonda.process = Process::start(&command, &log_file).unwrap();
        let limit = Instant::now() + Duration::from_secs(20);
        let soa = Question::new("example.org", "SOA");
        while UnixStream::connect(&socket).is_err() || ask(server.zonda.address, &soa).is_err() {
            let log = server.zonda.process.log("");
            assert!(Instant::now() < limit, "not started after kill {kill}: {log}");
            if server.zonda.process.ended() {
                // Another test may have been given the port meanwhile, for a moment.
                assert!(log.to_lowercase().contains("in use"), "after kill {kill}: {log}");
                server.zonda.process = Process::start(&command, &log_file).unwrap();
            }
            thread::sleep(Duration::from_millis(1));
        }
        let serial = ask(server.zonda.address, &soa).unwrap().answer[0].data.text.clone();
        let serial = serial.split(' ').nth(2).and_then(|it| it.parse::<u64>().ok()).unwrap();
        let mut changes = 0;
        for (number, client) in clients.iter().enumerate() {
            let of = |owner| number_of(&server, &format!("{owner}{number}.example.org"));
            let (a, b) = (of("a"), of("b"));
            let (acknowledged, sent) = (client.acknowledged.load(SeqCst), client.sent.load(SeqCst));
            assert_eq!(a, b, "a change was made in part, after kill {kill}");
            assert!(
                (acknowledged..=sent).contains(&a),
                "client {number} after kill {kill}: {a}, acknowledged {acknowledged}, sent {sent}"
            );
            client.sent.store(a, SeqCst);
            client.acknowledged.store(a, SeqCst);
            changes += a;
        }
        assert_eq!(serial, 1 + changes, "nothing but changes raises the serial, after kill {kill}");
    }
    let changes: u64 = clients.iter().map(|client| client.sent.load(SeqCst)).sum();
    assert!(changes > kills, "only {changes} changes in {kills} rounds");
    let check = std::process::Command::new(BINARY)
        .args(["file", "check"])
        .arg(server.zone_file())
        .output()
        .unwrap();
    assert!(check.status.success() || !server.zone_file().exists(), "{}", text(&check.stdout));
    let _ = fs::remove_dir_all(state);
}
