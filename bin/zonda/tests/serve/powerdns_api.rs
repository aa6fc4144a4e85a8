//! PowerDNS's API: which clients are answered, and what becomes of their changes.

use super::edits::{JSON, try_send, writable};
use super::server::{Server, zone};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::Duration;
use zonda_testkit::process::Folder;
use zonda_testkit::{Question, ask};

/// The key of all servers in these tests.
pub const KEY: &str = "correct-horse-battery";
/// The path of the zones.
pub const ZONES: &str = "/api/v1/servers/localhost/zones";

/// A server with the API, whose zone `example.org` can be changed, and on which clients create
/// zones in a folder.
pub fn server(folder: &Folder, keys: &str) -> Server {
    let zones = folder.path().join("zones");
    writable(&format!("{keys}[admin]\npowerdns-api-key = \"{KEY}\"\nzones = {zones:?}\n"))
}

/// Sends a request over TCP with header fields; status and body of the answer.
pub fn request(
    address: SocketAddr,
    (method, path): (&str, &str),
    fields: &str,
    body: &str,
) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // In 1.0, an answer in pieces ends with the connection.
    let head = format!("{method} {path} HTTP/1.0\r\nhost: localhost\r\n{fields}");
    let length = body.len();
    stream.write_all(format!("{head}content-length: {length}\r\n\r\n{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), body.to_owned())
}

/// Sends a request with the key, as a client of PowerDNS does; the body as JSON, if it is that.
pub fn send(address: SocketAddr, method: &str, path: &str, body: &str) -> (u16, Value) {
    let fields = format!("x-api-key: {KEY}\r\n");
    let (status, body) = request(address, (method, path), &fields, body);
    (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
}

/// Changes RRsets of `example.org`.
fn patch(server: &Server, rrsets: &Value) -> (u16, Value) {
    let body = json!({ "rrsets": rrsets }).to_string();
    send(server.admin, "PATCH", &format!("{ZONES}/example.org."), &body)
}

/// An element about the addresses of a name of `example.org`.
fn addresses(name: &str, changetype: &str, addresses: &[&str]) -> Value {
    let records: Vec<_> = addresses.iter().map(|it| json!({ "content": it })).collect();
    json!({ "name": format!("{name}.example.org."), "type": "A", "ttl": 60,
        "changetype": changetype, "records": records })
}

/// The serial of `example.org`.
fn serial(server: &Server) -> u64 {
    let path = format!("{ZONES}/example.org.?rrsets=false");
    send(server.admin, "GET", &path, "").1["serial"].as_u64().unwrap()
}

#[test]
fn without_a_configured_key_there_is_no_such_path() {
    let server = writable("");
    for path in ["/api", "/api/v1/servers", ZONES] {
        let fields = format!("x-api-key: {KEY}\r\n");
        assert_eq!(request(server.admin, ("GET", path), &fields, "").0, 404, "{path}");
        assert_eq!(server.get(path).0, 404, "{path}");
    }
}

#[test]
fn the_key_opens_the_api_over_tcp_and_nothing_else() {
    let folder = Folder::new("powerdns");
    let server = server(&folder, "");
    let status = |path: &str, fields: &str| request(server.admin, ("GET", path), fields, "").0;
    for fields in [
        "",
        "x-api-key: \r\n",
        "x-api-key: correct-horse-batterx\r\n",
        "x-api-key: correct-horse-batter\r\n",
        "x-api-key: correct-horse-battery1\r\n",
        "authorization: Bearer correct-horse-battery\r\n",
    ] {
        for path in ["/api", "/api/v1/servers/localhost", ZONES, "/api/nothing"] {
            assert_eq!(status(path, fields), 401, "{path} {fields}");
        }
    }
    let key = "x-api-key: correct-horse-battery\r\n";
    assert_eq!(status(ZONES, key), 200);
    assert_eq!(status("/api/nothing", key), 404);
    assert_eq!(status("/v1/status", key), 401);
    assert_eq!(status("/metrics", key), 200, "as without it");
    assert_eq!(server.get(ZONES).0, 200, "the socket's owner may do everything");
    let rrsets = json!({ "rrsets": [addresses("x", "REPLACE", &["192.0.2.1"])] }).to_string();
    let target = ("PATCH", &*format!("{ZONES}/example.org."));
    let of_page = format!("{key}origin: http://evil.example\r\n");
    assert_eq!(request(server.admin, target, &of_page, &rrsets).0, 403);
    assert_eq!(request(server.admin, target, key, &rrsets).0, 204);
}

#[test]
fn the_tokens_do_not_open_the_api() {
    let keys = format!(
        "[admin]\npowerdns-api-key = \"{KEY}\"\ntoken = \"token-of-the-operator\"\n\
         read-token = \"token-of-the-reader-\"\n"
    );
    let server = writable(&keys);
    for token in ["token-of-the-operator", "token-of-the-reader-"] {
        let fields = format!("authorization: Bearer {token}\r\n");
        assert_eq!(request(server.admin, ("GET", "/v1/zones"), &fields, "").0, 200);
        assert_eq!(request(server.admin, ("GET", ZONES), &fields, "").0, 401);
    }
    assert_eq!(send(server.admin, "GET", ZONES, "").0, 200);
}

#[test]
fn one_request_is_one_version_or_none() {
    let folder = Folder::new("powerdns");
    let server = server(&folder, "");
    let text = json!({ "name": "x.example.org.", "type": "TXT", "ttl": 60,
        "changetype": "REPLACE", "records": [{ "content": "\"a b\"" }] });
    let both = json!([addresses("x", "REPLACE", &["192.0.2.7", "192.0.2.8"]), text]);
    assert_eq!(patch(&server, &both), (204, "".into()));
    let reply = ask(server.zonda.address, &Question::new("x.example.org", "A")).unwrap();
    assert_eq!((reply.answer.len(), serial(&server)), (2, 2));
    assert_eq!(patch(&server, &both).0, 204);
    assert_eq!(serial(&server), 2, "nothing has changed");
    let wrong = json!([
        addresses("y", "REPLACE", &["192.0.2.9"]),
        { "name": "x.example.org.", "type": "CNAME", "ttl": 60, "changetype": "REPLACE",
          "records": [{ "content": "www.example.org." }] }
    ]);
    let (status, error) = patch(&server, &wrong);
    let error = error["error"].as_str().unwrap();
    assert!(status == 422 && error.starts_with("RRset x.example.org. IN "), "{status} {error}");
    assert_eq!(server.rcode("y.example.org", "A"), "NXDOMAIN");
    assert_eq!(serial(&server), 2);
    assert_eq!(
        patch(
            &server,
            &json!([{ "name": "example.org.", "type": "SOA",
        "changetype": "DELETE" }])
        )
        .0,
        422
    );
}

#[test]
fn clients_that_extend_a_set_at_the_same_time_lose_no_record() {
    const CLIENTS: usize = 8;
    const EACH: usize = 5;
    let folder = Folder::new("powerdns");
    let server = server(&folder, "");
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let server = &server;
            scope.spawn(move || {
                for number in 0..EACH {
                    let address = format!("192.0.2.{}", client * EACH + number);
                    let mut status = 503;
                    while status == 503 {
                        let extend = addresses("many", "EXTEND", &[&address]);
                        status = patch(server, &json!([extend])).0;
                    }
                    assert_eq!(status, 204);
                }
            });
        }
    });
    let path = format!("{ZONES}/example.org.?rrset_name=many.example.org.&rrset_type=A");
    let (_, zone) = send(server.admin, "GET", &path, "");
    assert_eq!(zone["rrsets"][0]["records"].as_array().unwrap().len(), CLIENTS * EACH);
    assert_eq!(zone["serial"], 1 + CLIENTS * EACH);
    let prune = addresses("many", "PRUNE", &["192.0.2.0"]);
    assert_eq!(patch(&server, &json!([prune])).0, 204);
    let (_, zone) = send(server.admin, "GET", &path, "");
    assert_eq!(zone["rrsets"][0]["records"].as_array().unwrap().len(), CLIENTS * EACH - 1);
}

#[test]
fn zones_are_created_shown_exported_and_removed() {
    let folder = Folder::new("powerdns");
    let server = server(&folder, "");
    let body = json!({ "name": "new.example.", "kind": "Native", "soa_edit_api": "INCREASE",
        "nameservers": ["ns1.example.org."], "rrsets": [
            { "name": "www.new.example.", "type": "A", "ttl": 300,
              "records": [{ "content": "192.0.2.1" }] }] });
    let (status, zone) = send(server.admin, "POST", ZONES, &body.to_string());
    assert_eq!(
        (status, &zone["id"], &zone["kind"]),
        (201, &"new.example.".into(), &"Native".into())
    );
    let sets: Vec<_> = zone["rrsets"].as_array().unwrap().iter().map(|it| &it["type"]).collect();
    assert_eq!(sets, ["SOA", "NS", "A"]);
    assert_eq!(server.rcode("www.new.example", "A"), "NOERROR");
    assert_eq!(send(server.admin, "POST", ZONES, &body.to_string()).0, 409);
    let (_, list) = send(server.admin, "GET", ZONES, "");
    let names: Vec<_> = list.as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["new.example.", "example.org."]);
    let (status, text) = send(server.admin, "GET", &format!("{ZONES}/NEW.example/export"), "");
    assert_eq!(status, 200);
    assert!(
        text.as_str().unwrap().ends_with("www.new.example.\t300\tIN\tA\t192.0.2.1\n"),
        "{text}"
    );
    let fields = format!("x-api-key: {KEY}\r\naccept: application/json\r\n");
    let target = ("GET", &*format!("{ZONES}/new.example./export"));
    let (_, as_json) = request(server.admin, target, &fields, "");
    let as_json: Value = serde_json::from_str(&as_json).unwrap();
    assert_eq!(as_json, json!({ "zone": text }));
    let path = format!("{ZONES}/new.example.");
    assert_eq!(send(server.admin, "DELETE", &path, "").0, 204);
    assert_eq!(server.rcode("www.new.example", "A"), "REFUSED");
    assert_eq!(send(server.admin, "DELETE", &path, "").0, 404);
    let (status, error) = send(server.admin, "DELETE", &format!("{ZONES}/example.org."), "");
    assert!(status == 422 && error["error"].as_str().unwrap().contains("configuration"), "{error}");
}

#[test]
fn a_zone_is_created_from_the_text_of_a_master_file_that_generates_nothing() {
    let folder = Folder::new("powerdns");
    let server = server(&folder, "");
    let create = |text: &str| {
        let body = json!({ "name": "text.example.", "kind": "Master", "zone": text });
        send(server.admin, "POST", ZONES, &body.to_string())
    };
    for text in ["www A 192.0.2", "$GENERATE 1-9 n$ A 192.0.2.$", "$INCLUDE other.zone"] {
        let (status, error) = create(text);
        assert!(status == 422 && error["error"].is_string(), "{text}: {status} {error}");
    }
    let text = "$TTL 1h\n@ SOA ns host 7 1 1 1 1\n@ NS ns\nns A 192.0.2.1\nns A 192.0.2.2\n";
    let (status, zone) = create(text);
    assert_eq!((status, &zone["serial"]), (201, &7.into()), "{zone}");
    assert_eq!(zone["rrsets"][2]["records"].as_array().unwrap().len(), 2);
}

#[test]
fn a_zone_of_primaries_is_shown_as_slave_and_is_neither_empty_nor_changed() {
    let folder = Folder::new("powerdns");
    let keys = "[[zone]]\nname = \"slave.example\"\nsecondary.from = [\"127.0.0.1:9\"]\n";
    let server = server(&folder, keys);
    let (_, list) = send(server.admin, "GET", &format!("{ZONES}?zone=slave.example."), "");
    assert_eq!((&list[0]["kind"], &list[0]["serial"]), (&"Slave".into(), &0.into()));
    let path = format!("{ZONES}/slave.example.");
    let (status, error) = send(server.admin, "GET", &path, "");
    assert!(status == 422 && error["error"].is_string(), "{error}");
    assert_eq!(send(server.admin, "GET", &format!("{path}?rrsets=false"), "").0, 200);
    let body = json!({ "rrsets": [{ "name": "x.slave.example.", "type": "A",
        "changetype": "DELETE" }] });
    assert_eq!(send(server.admin, "PATCH", &path, &body.to_string()).0, 422);
    assert_eq!(send(server.admin, "PUT", &path, r#"{"kind": "Slave"}"#).0, 204);
    assert_eq!(send(server.admin, "PUT", &path, r#"{"kind": "Native"}"#).0, 422);
    assert_eq!(send(server.admin, "PUT", &format!("{path}/axfr-retrieve"), "").0, 200);
    assert_eq!(
        send(server.admin, "PUT", &format!("{ZONES}/example.org./axfr-retrieve"), "").0,
        422
    );
    let body = json!({ "name": "more.example.", "kind": "Slave", "masters": ["192.0.2.1"] });
    assert_eq!(send(server.admin, "POST", ZONES, &body.to_string()).0, 422);
}

#[test]
fn bodies_of_any_kind_are_answered_with_an_error() {
    let folder = Folder::new("powerdns");
    let server = server(&folder, "");
    let path = format!("{ZONES}/example.org.");
    let deep = "[".repeat(100_000);
    let many = format!("{{\"rrsets\": [{}1]}}", "{},".repeat(100_000));
    let large = format!("{{\"rrsets\": \"{}\"}}", "x".repeat(8 << 20));
    for (body, expected) in [
        ("", 400),
        ("x", 400),
        ("{\"rrsets\": [}", 400),
        (&deep, 400),
        ("null", 422),
        ("7", 422),
        ("[]", 422),
        ("{}", 422),
        ("{\"rrsets\": 7}", 422),
        ("{\"rrsets\": [[]]}", 422),
        (&many, 422),
        (&large, 413),
    ] {
        let (status, answer) = send(server.admin, "PATCH", &path, body);
        let shown = &body[..body.len().min(40)];
        assert_eq!(status, expected, "{shown}: {answer}");
        assert!(answer["error"].is_string(), "{shown}: {answer}");
    }
    assert_eq!(serial(&server), 1);
}

#[test]
fn secrets_of_keys_are_not_told() {
    let folder = Folder::new("powerdns");
    let secret = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
    let server =
        server(&folder, &format!("[[key]]\nname = \"k.example\"\nsecret = \"{secret}\"\n"));
    let path = "/api/v1/servers/localhost/tsigkeys";
    let expected = json!({ "algorithm": "hmac-sha256", "id": "k.example.", "key": "",
        "name": "k.example", "type": "TSIGKey" });
    assert_eq!(send(server.admin, "GET", path, ""), (200, json!([expected])));
    assert_eq!(send(server.admin, "GET", &format!("{path}/k.example."), ""), (200, expected));
    assert_eq!(send(server.admin, "GET", &format!("{path}/other."), "").0, 404);
    assert_eq!(send(server.admin, "DELETE", &format!("{path}/k.example."), "").0, 422);
}

#[test]
fn requests_over_the_socket_need_no_key() {
    let folder = Folder::new("powerdns");
    let server = server(&folder, "");
    let socket = server.socket();
    let body = json!({ "rrsets": [addresses("x", "REPLACE", &["192.0.2.1"])] }).to_string();
    let target = ("PATCH", &*format!("{ZONES}/example.org."));
    let (status, _) = try_send(Path::new(&socket), target, JSON, body.as_bytes()).unwrap();
    assert_eq!((status, &*server.rcode("x.example.org", "A")), (204, "NOERROR"));
}

#[test]
fn a_large_zone_is_sent_whole_and_takes_no_memory_while_a_client_takes_it_slowly() {
    const NAMES: usize = 100_000;
    const READ: usize = 1 << 20;
    let mut text = zone(1);
    for number in 0..NAMES {
        writeln!(text, "n{number} TXT \"a text of some length for number {number}\"").unwrap();
    }
    let server = Server::start(
        &[("large.test", &text)],
        &format!("[admin]\npowerdns-api-key = \"{KEY}\"\n"),
    );
    let path = format!("{ZONES}/large.test.");
    let whole = || send(server.admin, "GET", &path, "").1;
    let first = whole(); // which sorts the names, and they are kept
    let sets = first["rrsets"].as_array().unwrap();
    assert_eq!(sets.len(), NAMES + 5);
    assert_eq!(sets.last().unwrap()["name"], "www.large.test.");
    let before = server.process_status("VmRSS");
    let mut stream = TcpStream::connect(server.admin).unwrap();
    let head = format!("GET {path} HTTP/1.0\r\nhost: localhost\r\nx-api-key: {KEY}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut body = vec![0; READ];
    stream.read_exact(&mut body).unwrap();
    thread::sleep(Duration::from_millis(300));
    let grown = server.process_status("VmRSS").saturating_sub(before);
    assert!(grown < 4096, "{grown} kB, of a text of {} kB", first.to_string().len() >> 10);
    stream.read_to_end(&mut body).unwrap();
    let body = String::from_utf8(body).unwrap();
    let (_, body) = body.split_once("\r\n\r\n").unwrap();
    assert!(serde_json::from_str::<Value>(body).unwrap() == first);
}

#[test]
fn pieces_of_a_zone_are_of_one_version_while_it_changes() {
    const NAMES: usize = 20_000;
    let mut text = zone(1);
    (0..NAMES).for_each(|number| writeln!(text, "n{number} TXT \"{number:0200}\"").unwrap());
    let folder = Folder::new("powerdns");
    let keys = format!("[admin]\npowerdns-api-key = \"{KEY}\"\n");
    let arguments = ["--writable", "--state", folder.path().to_str().unwrap()];
    let server = Server::start_with(&[("large.test", &text)], &keys, &arguments);
    let path = format!("{ZONES}/large.test.");
    let mut stream = TcpStream::connect(server.admin).unwrap();
    let head = format!("GET {path} HTTP/1.0\r\nhost: localhost\r\nx-api-key: {KEY}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut body = vec![0; 1 << 10];
    stream.read_exact(&mut body).unwrap();
    let remove = json!({ "rrsets": [{ "name": "www.large.test.", "type": "TXT",
        "changetype": "DELETE" }] });
    assert_eq!(send(server.admin, "PATCH", &path, &remove.to_string()).0, 204);
    assert_eq!(server.rcode("www.large.test", "TXT"), "NXDOMAIN");
    stream.read_to_end(&mut body).unwrap();
    let body = String::from_utf8(body).unwrap();
    let zone: Value = serde_json::from_str(body.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(zone["serial"], 1);
    assert_eq!(zone["rrsets"].as_array().unwrap().last().unwrap()["name"], "www.large.test.");
}
