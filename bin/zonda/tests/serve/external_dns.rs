//! external-dns, which brings names of a cluster into zones by PowerDNS's API and by UPDATE.

use super::powerdns_api::{self, KEY};
use super::server::Server;
use super::update_providers::{self, SECRET};
use std::io::Write;
use std::process::Stdio;
use zonda_testkit::cluster::external_dns;
use zonda_testkit::process::{Folder, bounded};

/// Endpoints of some types, for names in ZONE.
const WANTED: &str = r#"[
{"dnsName": "web.ZONE", "recordType": "A", "recordTTL": 30,
 "targets": ["192.0.2.10", "192.0.2.11"]},
{"dnsName": "web.ZONE", "recordType": "AAAA", "targets": ["2001:db8::10"]},
{"dnsName": "*.apps.ZONE", "recordType": "A", "targets": ["192.0.2.12"]},
{"dnsName": "shop.ZONE", "recordType": "CNAME", "targets": ["web.ZONE"]}
]"#;
/// Endpoints of types that the provider for UPDATE writes but does not read: it writes them again
/// in each run, whatever the server is.
const MORE: &str = r#",
{"dnsName": "_http._tcp.ZONE", "recordType": "SRV", "targets": ["0 50 80 web.ZONE."]},
{"dnsName": "mail.ZONE", "recordType": "MX", "targets": ["10 web.ZONE"]}
]"#;

/// Has external-dns bring these endpoints to a server; what it changes.
fn synchronize(flags: &[String], endpoints: &str) -> String {
    let mut command = bounded(external_dns());
    command.args(["--source=fake", "--registry=txt", "--txt-owner-id=test", "--policy=sync"]);
    for kind in ["A", "AAAA", "CNAME", "SRV", "MX"] {
        command.args(["--managed-record-types", kind]);
    }
    command.args(flags).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(endpoints.as_bytes()).unwrap();
    let ended = child.wait_with_output().unwrap();
    let [printed, said] = [&ended.stdout, &ended.stderr].map(|it| String::from_utf8_lossy(it));
    assert!(ended.status.success(), "{printed}{said}");
    printed.trim().to_owned()
}

/// Brings endpoints to a zone, changes one, and takes all away; each run is repeated, and the
/// second one must find nothing to do.
fn check(server: &Server, wanted: &str, zone: &str, flags: &[String]) {
    const NOTHING: &str = r#"{"create":0,"delete":0,"update":0}"#;
    let wanted = wanted.replace("ZONE", zone);
    let endpoints: serde_json::Value = serde_json::from_str(&wanted).unwrap();
    let endpoints = endpoints.as_array().unwrap();
    let count = endpoints.len();
    let created = synchronize(flags, &wanted);
    assert_eq!(created, format!(r#"{{"create":{count},"delete":0,"update":0}}"#));
    for (name, qtype) in [("web", "A"), ("web", "AAAA"), ("any.apps", "A"), ("shop", "CNAME")] {
        assert_eq!(server.rcode(&format!("{name}.{zone}"), qtype), "NOERROR", "{name} {qtype}");
    }
    assert_eq!(synchronize(flags, &wanted), NOTHING);
    let changed = wanted.replace("192.0.2.11", "192.0.2.13");
    assert_eq!(synchronize(flags, &changed), r#"{"create":0,"delete":0,"update":1}"#);
    assert_eq!(synchronize(flags, &changed), NOTHING);
    let removed = format!(r#"{{"create":0,"delete":{count},"update":0}}"#);
    assert_eq!(synchronize(flags, "[]"), removed);
    assert_eq!(synchronize(flags, "[]"), NOTHING);
    for endpoint in endpoints {
        let name = endpoint["dnsName"].as_str().unwrap();
        assert_eq!(server.rcode(name, "A"), "NXDOMAIN", "{name} is gone");
    }
}

#[test]
fn real_cluster_external_dns_writes_names_by_powerdns_api_and_plans_nothing_more() {
    let folder = Folder::new("external-dns");
    let server = powerdns_api::server(&folder, "");
    let flags = [
        "--provider=pdns".to_owned(),
        format!("--pdns-server=http://{}", server.admin),
        format!("--pdns-api-key={KEY}"),
        "--domain-filter=example.org".to_owned(),
    ];
    let wanted = WANTED.trim_end_matches("\n]").to_owned() + MORE;
    check(&server, &wanted, "example.org", &flags);
}

#[test]
fn real_cluster_external_dns_writes_names_by_updates_and_plans_nothing_more() {
    let folder = Folder::new("external-dns-updates");
    let server = update_providers::server(&folder);
    let flags = [
        "--provider=rfc2136".to_owned(),
        "--rfc2136-host=127.0.0.1".to_owned(),
        format!("--rfc2136-port={}", server.zonda.address.port()),
        "--rfc2136-zone=example.net".to_owned(),
        "--rfc2136-axfr".to_owned(),
        "--rfc2136-tsig-keyname=dns.test".to_owned(),
        format!("--rfc2136-tsig-secret={SECRET}"),
        "--rfc2136-tsig-secret-alg=hmac-sha256".to_owned(),
        "--domain-filter=example.net".to_owned(),
    ];
    check(&server, WANTED, "example.net", &flags);
}
