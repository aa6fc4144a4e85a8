//! The same requests to PowerDNS and to Zonda: codes and bodies are the same, but for differences
//! that `docs/powerdns-api.md` tells.

use super::powerdns_api::{KEY, ZONES, send, server};
use super::server::wait_until;
use serde_json::{Value, json};
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use zonda_testkit::process::{Folder, Process, bounded, free_port, has_required, required};

/// What makes PowerDNS's database.
const SCHEMA: &str = "/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql";
/// The zone of all requests.
const ZONE: &str = "example.net.";

/// A running PowerDNS whose zones are in a database.
struct PowerDns {
    api: SocketAddr,
    _process: Process,
    _folder: Folder,
}

impl PowerDns {
    fn start() -> Self {
        let folder = Folder::new("pdns");
        let database = folder.path().join("zones.sqlite3");
        let script = "import sqlite3, sys\n\
            sqlite3.connect(sys.argv[1]).executescript(open(sys.argv[2]).read())\n";
        let made = bounded(required("python3").unwrap())
            .args(["-c", script, database.to_str().unwrap(), SCHEMA])
            .status()
            .unwrap();
        assert!(made.success(), "is pdns-backend-sqlite3 installed? `make packages` installs it");
        let api = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let own = folder.path().display();
        let config = format!(
            "launch=gsqlite3\ngsqlite3-database={}\nlocal-address=127.0.0.1\nlocal-port={}\n\
             socket-dir={own}\nguardian=no\ndaemon=no\nloglevel=4\nsecurity-poll-suffix=\n\
             webserver=yes\nwebserver-address=127.0.0.1\nwebserver-port={}\n\
             webserver-allow-from=127.0.0.1\napi=yes\napi-key={KEY}\n\
             zone-cache-refresh-interval=0\n",
            database.display(),
            free_port(),
            api.port()
        );
        folder.write("pdns.conf", config);
        let mut command = Command::new(required("pdns_server").unwrap());
        command.arg(format!("--config-dir={own}"));
        let process = Process::start(&command, &folder.path().join("log")).unwrap();
        wait_until("PowerDNS answers", || TcpStream::connect(api).is_ok());
        Self { api, _process: process, _folder: folder }
    }
}

/// How much of two answers is the same.
#[derive(Clone, Copy, Debug)]
enum Same {
    /// The code and the body, but for serials.
    All,
    /// The code, and that the body is an error.
    Code,
    /// The codes differ as the documentation says: Zonda's and PowerDNS's.
    Neither(u16, u16),
}
use Same::{All, Code, Neither};

/// A body without what differs between any two servers: serials, and the order of RRsets.
fn normal(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(zones) = body.as_array_mut() {
        zones.iter_mut().for_each(|zone| *zone = normal(zone));
        zones.sort_by_key(|zone| zone.to_string());
    }
    let Some(zone) = body.as_object_mut() else { return body };
    for (key, value) in [
        ("serial", json!(0)),
        ("edited_serial", json!(0)),
        // It says how PowerDNS counts serials.
        ("soa_edit_api", json!("")),
        // A newer PowerDNS has other servers that may add zones under another name.
        ("version", json!("")),
    ] {
        zone.entry(key).and_modify(|it| *it = value);
    }
    if zone.get("type") == Some(&json!("SOA")) {
        let records = zone.get_mut("records").and_then(Value::as_array_mut);
        for record in records.into_iter().flatten() {
            let content = record["content"].as_str().unwrap();
            let words = content.split(' ').enumerate();
            let words = words.map(|(place, word)| if place == 2 { "0" } else { word });
            record["content"] = words.collect::<Vec<_>>().join(" ").into();
        }
    }
    if let Some(records) = zone.get_mut("records").and_then(Value::as_array_mut) {
        records.sort_by_key(|record| record.to_string());
    }
    if let Some(sets) = zone.get_mut("rrsets") {
        *sets = normal(sets);
    }
    body
}

/// Sends a request to both, and compares the answers.
fn compare(both: [SocketAddr; 2], (method, path): (&str, &str), body: &str, same: Same) {
    let [(own, own_body), (their, their_body)] =
        both.map(|address| send(address, method, path, body));
    let about =
        format!("{method} {path} {body}\nZonda: {own} {own_body}\nPowerDNS: {their} {their_body}");
    match same {
        Neither(expected, expected_of_peer) => {
            assert_eq!((own, their), (expected, expected_of_peer), "{about}");
        }
        Code => {
            assert_eq!(own, their, "{about}");
            assert!(own_body["error"].is_string(), "{about}");
        }
        All => {
            assert_eq!(own, their, "{about}");
            assert!(normal(&own_body) == normal(&their_body), "{about}");
        }
    }
}

/// A change of one RRset of the zone.
fn change(name: &str, rtype: &str, changetype: &str, contents: &[&str]) -> Value {
    let records: Vec<_> =
        contents.iter().map(|it| json!({ "content": it, "disabled": false })).collect();
    json!({ "name": format!("{name}.{ZONE}"), "type": rtype, "ttl": 300, "changetype": changetype,
        "records": records })
}

/// Both servers with the zone; what the first of them needs lies in the folder.
fn both(folder: &Folder) -> (super::server::Server, PowerDns, [SocketAddr; 2]) {
    let (zonda, powerdns) = (server(folder, ""), PowerDns::start());
    let both = [zonda.admin, powerdns.api];
    let zone = json!({ "name": ZONE, "kind": "Native", "soa_edit_api": "INCREASE",
        "nameservers": [], "rrsets": [
            { "name": ZONE, "type": "SOA", "ttl": 3600, "records":
                [{ "content": "ns1.example.org. host.example.org. 7 7200 1800 1209600 300",
                   "disabled": false }] },
            { "name": ZONE, "type": "NS", "ttl": 3600, "records":
                [{ "content": "ns1.example.org.", "disabled": false },
                 { "content": "ns2.example.org.", "disabled": false }] }] });
    compare(both, ("POST", ZONES), &zone.to_string(), All);
    (zonda, powerdns, both)
}

#[test]
fn real_peers_powerdns_describes_itself_and_its_zones_as_zonda_does() {
    if !has_required(&["pdns_server", "python3"]) {
        return;
    }
    let folder = Folder::new("powerdns");
    let (_zonda, _powerdns, both) = both(&folder);
    let get = |path: &str, same: Same| compare(both, ("GET", path), "", same);
    let zone = format!("{ZONES}/{ZONE}");
    for path in ["/api", "/api/v1", "/api/v1/servers", "/api/v1/servers/localhost"] {
        get(path, All);
    }
    get("/api/v1/servers/other", Neither(404, 404));
    get("/api/v1/servers/localhost/autoprimaries", All);
    get("/api/v1/servers/localhost/tsigkeys", All);
    get("/api/v1/servers/localhost/tsigkeys/none.", Neither(404, 404));
    for query in ["?zone=example.net.", "?zone=example.net.&dnssec=false", "?zone=nothing."] {
        get(&format!("{ZONES}{query}"), All);
    }
    get(&format!("{ZONES}?zone=example.net"), All);
    for query in [
        "",
        "?rrsets=false",
        "?rrsets=true",
        "?rrset_name=example.net.",
        "?rrset_name=example.net.&rrset_type=NS",
        "?rrset_name=example.net.&rrset_type=A",
        "?rrset_type=NS",
        "?rrset_name=nothing.example.net.",
        "?rrset_name=www.example.com.",
        "?rrsets=nonsense",
    ] {
        get(&format!("{zone}{query}"), All);
    }
    get(&format!("{ZONES}/EXAMPLE.net"), All);
    get(&format!("{ZONES}/example=2Enet."), All);
    for path in [
        "nothing.",
        "a=zz",
        "a=2",
        "nothing./export",
        "nothing./metadata",
        "nothing./cryptokeys",
        "example.net./nothing",
    ] {
        let status = if path.contains('=') { 400 } else { 404 };
        get(&format!("{ZONES}/{path}"), Neither(status, status));
    }
    get(&format!("{ZONES}/..bad"), Code);
    get(&format!("{zone}/cryptokeys"), All);
    get(&format!("{zone}/cryptokeys/1"), Neither(404, 404));
    get(&format!("{zone}/metadata/ALSO-NOTIFY"), All);
    for method in ["PUT", "DELETE"] {
        compare(both, (method, ZONES), "", Neither(405, 405));
    }
    compare(both, ("POST", &zone), "", Neither(405, 405));
    compare(both, ("PUT", &format!("{zone}/rectify")), "", All);
    compare(both, ("PUT", &format!("{zone}/notify")), "", All);
    compare(both, ("PUT", &format!("{zone}/axfr-retrieve")), "", Code);
    let flush = "/api/v1/servers/localhost/cache/flush";
    compare(both, ("PUT", &format!("{flush}?domain=a.example.net.")), "", All);
    compare(both, ("PUT", &format!("{flush}?domain=example.net")), "", All);
    compare(both, ("PUT", flush), "", All);
    for body in [
        r#"{"kind":"Native"}"#,
        r#"{"soa_edit_api":"INCREASE"}"#,
        "{}",
        r#"{"kind":"Native","masters":[],"dnssec":false,"account":""}"#,
    ] {
        compare(both, ("PUT", &zone), body, All);
    }
    compare(both, ("PUT", &zone), "x", Neither(400, 400));
}

#[test]
fn real_peers_powerdns_searches_as_zonda_does() {
    if !has_required(&["pdns_server", "python3"]) {
        return;
    }
    let folder = Folder::new("powerdns");
    let (_zonda, _powerdns, both) = both(&folder);
    let rrsets = [
        change("host7", "A", "REPLACE", &["198.51.100.7"]),
        change("alias", "CNAME", "REPLACE", &["host7.example.net."]),
    ];
    let body = json!({ "rrsets": rrsets }).to_string();
    compare(both, ("PATCH", &format!("{ZONES}/{ZONE}")), &body, All);
    for query in [
        "q=host7*&object_type=record",
        "q=*198.51.100*",
        "q=HOST7.example.net",
        "q=*host7.example.ne%3F",
        "q=*example.net&object_type=zone",
        "q=nothing",
        "q=*hello*&object_type=comment",
        "q=*example*&object_type=nonsense",
        "q=",
        "",
        "q=a&max=0",
    ] {
        let path = format!("/api/v1/servers/localhost/search-data?{query}");
        compare(both, ("GET", &path), "", All);
    }
}

#[test]
fn real_peers_powerdns_changes_a_zone_as_zonda_does() {
    if !has_required(&["pdns_server", "python3"]) {
        return;
    }
    let folder = Folder::new("powerdns");
    let (_zonda, _powerdns, both) = both(&folder);
    let zone = format!("{ZONES}/{ZONE}");
    let patch = |rrsets: &[Value], same: Same| {
        let body = json!({ "rrsets": rrsets }).to_string();
        compare(both, ("PATCH", &zone), &body, same);
        compare(both, ("GET", &zone), "", All);
    };
    let one = |set: Value, same: Same| patch(&[set], same);
    one(change("www", "A", "REPLACE", &["192.0.2.1", "192.0.2.2"]), All);
    one(change("www", "AAAA", "REPLACE", &["2001:DB8:0:0:0:0:0:1"]), All);
    one(change("WWW", "a", "replace", &["192.0.2.9"]), All);
    one(change("www", "A", "REPLACE", &[]), All);
    one(change("nothing", "A", "DELETE", &[]), All);
    one(change("www", "AAAA", "DELETE", &["nonsense"]), All);
    let (replace, delete) =
        (change("d", "A", "REPLACE", &["192.0.2.1"]), change("d", "A", "DELETE", &[]));
    patch(&[replace.clone(), delete.clone()], All);
    patch(&[delete.clone(), replace.clone()], All);
    patch(&[replace.clone(), replace.clone()], All);
    patch(&[delete.clone(), delete], All);
    patch(
        &[change("e", "A", "REPLACE", &["192.0.2.3"]), change("e", "TXT", "REPLACE", &["no"])],
        All,
    );
    one(change("d", "ANY", "DELETE", &[]), All);
    one(change("alias", "CNAME", "REPLACE", &["www.example.org."]), All);
    one(change("alias", "A", "REPLACE", &["192.0.2.1"]), Code);
    one(change("two", "CNAME", "REPLACE", &["a.example.org.", "b.example.org."]), Code);
    one(change("*", "A", "REPLACE", &["192.0.2.1"]), All);
    one(change("_x._tcp", "SRV", "REPLACE", &["1 2 3 A.example."]), All);
    for (rtype, content) in [
        ("TXT", r#""a b" "c""#),
        ("TXT", r#""v=DKIM1; k=rsa; p=MIGf""#),
        ("TXT", r#""""#),
        ("MX", "10 MAIL.example.org."),
        ("CAA", r#"0 issue "letsencrypt.org""#),
        ("CAA", r#"0 issue ";""#),
        ("SSHFP", "1 1 ABCDEF0123456789ABCDEF0123456789ABCDEF01"),
        ("TLSA", "3 1 1 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
        ("NAPTR", r#"100 10 "U" "E2U+sip" "!^.*$!sip:info@example.com!" ."#),
        ("LOC", "51 56 0.123 N 5 54 0.000 E 4.00m 1.00m 10000.00m 10.00m"),
        ("HTTPS", "1 . alpn=h2,h3 port=8443"),
        ("SVCB", "1 foo.example. ipv4hint=192.0.2.1,192.0.2.2"),
        ("HINFO", r#""i386" "Linux""#),
        ("URI", r#"10 1 "https://example.org""#),
        ("RP", "a. b."),
        ("SPF", r#""v=spf1 -all""#),
        ("PTR", "a.b."),
        ("OPENPGPKEY", "AAAA"),
        ("EUI48", "00-11-22-33-44-55"),
    ] {
        one(change(&format!("of-{rtype}"), rtype, "REPLACE", &[content]), All);
    }
    compare(both, ("PATCH", &zone), r#"{"rrsets": []}"#, All);
}

#[test]
fn real_peers_powerdns_refuses_changes_as_zonda_does() {
    if !has_required(&["pdns_server", "python3"]) {
        return;
    }
    let folder = Folder::new("powerdns");
    let (_zonda, _powerdns, both) = both(&folder);
    let zone = format!("{ZONES}/{ZONE}");
    let patch = |body: &str, same: Same| compare(both, ("PATCH", &zone), body, same);
    for (body, same) in [("x", Neither(400, 400)), ("{}", All), ("[]", All)] {
        patch(body, same);
    }
    let one = |set: Value, same: Same| patch(&json!({ "rrsets": [set] }).to_string(), same);
    let a = |members: Value| {
        let mut set = json!({ "name": "a.example.net.", "type": "A", "ttl": 60,
            "changetype": "REPLACE", "records": [{ "content": "192.0.2.1" }] });
        for (key, value) in members.as_object().unwrap() {
            match value.is_null() {
                true => _ = set.as_object_mut().unwrap().remove(key),
                false => set[key] = value.clone(),
            }
        }
        set
    };
    one(json!("x"), All);
    for member in ["name", "type", "changetype", "records", "ttl"] {
        one(a(json!({ member: null })), All);
    }
    one(a(json!({ "changetype": "NONSENSE" })), All);
    one(a(json!({ "name": "a.example.net" })), All);
    one(a(json!({ "name": "" })), All);
    one(a(json!({ "name": "a..example.net." })), Code);
    one(a(json!({ "name": "a.example.com." })), All);
    one(a(json!({ "type": "NOPE" })), All);
    one(a(json!({ "records": ["192.0.2.1"] })), All);
    one(a(json!({ "records": [{ "disabled": false }] })), All);
    one(a(json!({ "records": [{ "content": "192.0.2.1", "disabled": "no" }] })), All);
    one(a(json!({ "records": [{ "content": "192.0.2.1" }, { "content": "192.0.2.1" }] })), All);
    one(a(json!({ "records": [{ "content": "nonsense" }] })), Code);
    for (rtype, content, same) in [
        ("TXT", "nonsense", All),
        ("MX", "10 mail.example.org", All),
        ("MX", "10 @", Code),
        ("MX", "10", Code),
        ("MX", "10 a. b.", Code),
        ("MX", "70000 a.", Code),
        ("CNAME", "www", All),
        ("NS", "ns", All),
        ("CAA", "0 issue letsencrypt.org", Code),
        ("HINFO", "i386 Linux", Code),
        ("AAAA", "192.0.2.1", Code),
    ] {
        one(a(json!({ "type": rtype, "records": [{ "content": content }] })), same);
    }
    // What `docs/powerdns-api.md` tells of differences.
    one(a(json!({ "records": [{ "content": "192.0.2.1", "disabled": true }] })), Neither(422, 204));
    one(a(json!({ "ttl": -1 })), Neither(422, 204));
    one(json!({ "name": ZONE, "type": "SOA", "changetype": "DELETE" }), Neither(422, 204));
    let nothing = format!("{ZONES}/nothing.");
    compare(both, ("PATCH", &nothing), r#"{"rrsets": []}"#, Neither(404, 404));
    compare(both, ("PUT", &nothing), r#"{"kind": "Native"}"#, Neither(404, 404));
    compare(both, ("DELETE", &nothing), "", Neither(404, 404));
}

#[test]
fn real_peers_powerdns_creates_and_removes_zones_as_zonda_does() {
    if !has_required(&["pdns_server", "python3"]) {
        return;
    }
    let folder = Folder::new("powerdns");
    let (zonda, _powerdns, both) = both(&folder);
    let post = |body: &str, same: Same| compare(both, ("POST", ZONES), body, same);
    post(&json!({ "name": ZONE, "kind": "Native" }).to_string(), Neither(409, 409));
    post(r#"{"name": "example.com", "kind": "Native"}"#, All);
    post(r#"{"kind": "Native"}"#, All);
    post("[]", All);
    post("x", Neither(400, 400));
    let servers = json!({ "name": "new.example.", "kind": "Native", "nameservers": ["ns1.test"] });
    post(&servers.to_string(), All);
    let zone = json!({ "name": "new.example.", "kind": "Native", "rrsets": [
        { "name": "new.example.", "type": "SOA", "ttl": 60,
          "records": [{ "content": "a.test. b.test. 7 1 2 3 4" }] },
        { "name": "www.new.example.", "type": "A", "ttl": 60,
          "records": [{ "content": "192.0.2.1" }, { "content": "192.0.2.2" }] }],
        "nameservers": ["ns1.test.", "ns2.test."] });
    post(&zone.to_string(), All);
    compare(both, ("GET", ZONES), "", Neither(200, 200));
    compare(both, ("DELETE", &format!("{ZONES}/new.example.")), "", All);
    compare(both, ("DELETE", &format!("{ZONES}/new.example.")), "", Neither(404, 404));
    let files = fs::read_dir(folder.path().join("zones")).unwrap().count();
    assert_eq!(files, 1, "that of {ZONE}");
    drop(zonda);
}
