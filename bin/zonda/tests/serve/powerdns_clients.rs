//! Clients of PowerDNS's API: lego, which gets a certificate, and octoDNS, which plans once.

use super::powerdns_api::{KEY, server};
use super::server::{Server, wait_until};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use zonda_testkit::process::{Folder, Process, bounded, free_port, has_required, required};

/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The programs by which a certificate is got.
pub const LEGO: [&str; 3] = ["lego", "openssl", "pebble"];

/// Starts Let's Encrypt's test server, which asks a DNS server; its port and its certificate.
pub fn authority(folder: &Folder, dns: &Server) -> (Process, u16, PathBuf) {
    let [key, certificate] = ["key.pem", "certificate.pem"].map(|name| folder.path().join(name));
    let made = bounded(required("openssl").unwrap())
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let port = free_port();
    let config = format!(
        "{{\"pebble\": {{\"listenAddress\": \"127.0.0.1:{port}\", \"certificate\": \
         {certificate:?}, \"privateKey\": {key:?}, \"httpPort\": 1, \"tlsPort\": 1}}}}"
    );
    let config = folder.write("pebble.json", config);
    let mut command = Command::new(required("pebble").unwrap());
    command.arg("-config").arg(config).args(["-dnsserver", &dns.zonda.address.to_string()]);
    command.env("PEBBLE_VA_NOSLEEP", "1").env("PEBBLE_WFE_NONCEREJECT", "0");
    let process = Process::start(&command, &folder.path().join("pebble.log")).unwrap();
    wait_until("pebble answers", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    (process, port, certificate)
}

#[test]
fn real_peers_lego_gets_a_certificate_for_a_name_and_a_wildcard() {
    if !has_required(&LEGO) {
        return;
    }
    let folder = Folder::new("lego");
    let server = server(&folder, "");
    let (_authority, port, certificate) = authority(&folder, &server);
    let ended = bounded(required("lego").unwrap())
        .args(["--accept-tos", "--email", "you@example.org", "--domains", "example.org"])
        .args(["--domains", "*.example.org", "--dns", "pdns", "--dns.disable-cp", "--path"])
        .arg(folder.path().join("lego"))
        .args(["--server", &format!("https://127.0.0.1:{port}/dir")])
        .args(["--dns.resolvers", &server.zonda.address.to_string(), "run"])
        .env("LEGO_CA_CERTIFICATES", certificate)
        .env("PDNS_API_URL", format!("http://{}", server.admin))
        .env("PDNS_API_KEY", KEY)
        .env("PDNS_POLLING_INTERVAL", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    let issued = folder.path().join("lego/certificates/example.org.crt");
    assert!(std::fs::read_to_string(issued).unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
    assert_eq!(server.rcode("_acme-challenge.example.org", "TXT"), "NXDOMAIN", "it has cleaned up");
}

/// The program that brings zones from files to servers.
pub fn octodns() -> PathBuf {
    let script = format!("{ROOT}/scripts/install-python-clients");
    let installed = Command::new(script).output().unwrap();
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    Path::new(String::from_utf8(installed.stdout).unwrap().trim_end()).join("octodns-sync")
}

/// Records of the types that octoDNS writes into zones of PowerDNS.
pub const WANTED: &str = "
'':
  - { type: NS, ttl: 3600, values: [ns1.example.net., ns2.example.net.] }
  - { type: A, ttl: 300, values: [192.0.2.1, 192.0.2.2] }
  - { type: AAAA, value: '2001:db8::1' }
  - { type: MX, values: [{ preference: 10, exchange: mail.example.net. },
      { preference: 20, exchange: mail2.example.net. }] }
  - { type: CAA, values: [{ flags: 0, tag: issue, value: letsencrypt.org },
      { flags: 128, tag: iodef, value: 'mailto:host@example.net' }] }
  - { type: TXT, values: ['v=spf1 mx -all', 'semi\\; colon'] }
www: { type: CNAME, ttl: 60, value: example.net. }
'*.wild': { type: A, value: 192.0.2.3 }
sub: { type: NS, values: [ns.other.example.] }
host:
  - { type: SSHFP, value: { algorithm: 1, fingerprint_type: 1,
      fingerprint: abcdef0123456789abcdef0123456789abcdef01 } }
  - { type: LOC, value: { lat_degrees: 51, lat_minutes: 56, lat_seconds: 0.123, lat_direction: N,
      long_degrees: 5, long_minutes: 54, long_seconds: 0, long_direction: E, altitude: 4,
      size: 1, precision_horz: 10000, precision_vert: 10 } }
long: { type: TXT, value: 'LONG' }
_sip._tcp: { type: SRV, value: { priority: 1, weight: 2, port: 5060, target: sip.example.net. } }
_443._tcp: { type: TLSA, value: { certificate_usage: 3, selector: 1, matching_type: 1,
  certificate_association_data: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef } }
sip: { type: NAPTR, value: { order: 100, preference: 10, flags: U, service: E2U+sip,
  regexp: '!^.*$!sip:info@example.net!', replacement: . } }
secure: { type: DS, value: { key_tag: 60485, algorithm: 13, digest_type: 2,
  digest: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef } }
svc: { type: HTTPS, value: { svcpriority: 1, targetname: ., svcparams: { alpn: [h2, h3], port: 8443,
  ipv4hint: [192.0.2.1, 192.0.2.2] } } }
_http._tcp: { type: URI, value: { priority: 10, weight: 1, target: 'https://example.net/' } }
ptr: { type: PTR, value: host.example.net. }
";

#[test]
fn real_peers_octodns_writes_zones_once_and_plans_nothing_more() {
    let program = octodns();
    let folder = Folder::new("octodns");
    let server = server(&folder, "");
    std::fs::create_dir(folder.path().join("wanted")).unwrap();
    let long = "x".repeat(400);
    let wanted = WANTED.replace("LONG", &long);
    folder.write("wanted/example.net.yaml", &wanted);
    // The first zone is created, and the second one, which the server has, changed.
    folder.write("wanted/example.org.yaml", "www: { type: A, value: 192.0.2.77 }\n");
    let config = format!(
        "providers:\n  wanted: {{ class: octodns.provider.yaml.YamlProvider, directory: {}, \
         enforce_order: false, default_ttl: 120 }}\n  zonda: {{ class: \
         octodns_powerdns.PowerDnsProvider, host: 127.0.0.1, port: {}, api_key: {KEY} }}\n\
         zones:\n  \
         example.net.: {{ sources: [wanted], targets: [zonda], lenient: true }}\n  \
         example.org.: {{ sources: [wanted], targets: [zonda], lenient: true }}\n",
        folder.path().join("wanted").display(),
        server.admin.port()
    );
    let config = folder.write("octodns.yaml", config);
    let run = || {
        let ended = bounded(&program)
            .args(["--doit", "--force", "--config-file"])
            .arg(&config)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stdout).into_owned()
            + &String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{said}");
        said
    };
    let first = run();
    assert!(first.contains("* zonda (PowerDnsProvider)"), "{first}");
    assert_eq!(server.rcode("_443._tcp.example.net", "TLSA"), "NOERROR");
    assert_eq!(server.rcode("www.example.org", "A"), "NOERROR");
    assert_eq!(server.rcode("only1.example.org", "A"), "NXDOMAIN", "no file wants it");
    let again = run();
    assert!(again.contains("No changes were planned"), "{again}");
    folder.write("wanted/example.net.yaml", wanted.replace("192.0.2.2]", "192.0.2.22]"));
    let changed = run();
    assert!(changed.contains("Update"), "{changed}");
    let again = run();
    assert!(again.contains("No changes were planned"), "{again}");
}
