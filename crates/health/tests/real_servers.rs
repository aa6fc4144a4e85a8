//! Probes of real servers: NSD, Unbound with nghttp2, OpenSSL.

#![allow(clippy::unwrap_used)]

mod common;

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::time::{Duration, Instant};

use common::certificates::{Authority, NAME};
use common::{probe, words};
use zonda_health::{
    DnsCheck, Fault, HttpCheck, HttpVersion, Identity, Kind, TlsSettings, Transport,
};
use zonda_testkit::process::{Folder, Process, free_port, installed, start_on_free_port};
use zonda_testkit::{Peer, PeerKind};
use zonda_wire::{Name, Rcode, Type};

/// The zone of NSD.
const ZONE: &str = "@ 3600 SOA ns hostmaster 1 2 3 4 5\n@ 3600 NS ns\nns 3600 A 192.0.2.53\n\
                    www 60 CNAME web\nweb 60 A 192.0.2.1\nweb 60 AAAA 2001:db8::1\n";

/// Returns a check by a question of this name and type.
fn dns(name: &str, qtype: Type, address: Option<&str>) -> DnsCheck {
    let name = Name::parse(name.as_bytes(), b"\0").unwrap();
    DnsCheck { address: address.map(|it| it.parse().unwrap()), ..DnsCheck::new(name, qtype) }
}

#[tokio::test]
async fn nsd_is_asked_over_udp_and_tcp_and_an_alias_is_followed_in_its_answer() {
    let nsd = Peer::start(PeerKind::Nsd, &[("example.com.", ZONE)]);
    for (check, told) in [
        (dns("example.com.", Type::SOA, None), "DNS response NOERROR"),
        (dns("WWW.example.com.", Type::A, Some("192.0.2.1")), "DNS response NOERROR"),
        (dns("www.example.com.", Type::AAAA, Some("2001:db8::1")), "DNS response NOERROR"),
        (
            dns("www.example.com.", Type::A, Some("192.0.2.2")),
            "FAULT the expected address is not in the DNS response",
        ),
        (dns("none.example.com.", Type::A, None), "FAULT DNS response NXDOMAIN"),
        (dns("example.org.", Type::A, None), "FAULT DNS response REFUSED"),
    ] {
        for transport in [Transport::Udp, Transport::Tcp] {
            let check = Kind::Dns(DnsCheck { transport, ..check.clone() });
            assert_eq!(words(&probe(nsd.address, check).await), told, "{transport:?}");
        }
    }
    let refused = DnsCheck { rcodes: vec![Rcode::REFUSED], ..dns("example.org.", Type::A, None) };
    assert!(probe(nsd.address, Kind::Dns(refused)).await.is_ok());
}

#[tokio::test]
async fn unbound_is_asked_by_http_2() {
    let program = installed("unbound").expect("`make packages` installs what the tests need");
    let (folder, authority) = (Folder::new("unbound"), Authority::new());
    let identity = authority.sign(NAME, 2999);
    folder.write("certificate.pem", &identity.certificate);
    folder.write("key.pem", &identity.key);
    let https_port = free_port();
    let (_process, _) = start_on_free_port("unbound", &folder, &["example."], |folder, port| {
        let own = folder.path().display();
        let text = format!(
            "server:\n interface: 127.0.0.1@{port}\n interface: 127.0.0.1@{https_port}\n \
             https-port: {https_port}\n http-endpoint: \"/dns-query\"\n \
             tls-service-key: \"{own}/key.pem\"\n tls-service-pem: \"{own}/certificate.pem\"\n \
             username: \"\"\n chroot: \"\"\n directory: \"{own}\"\n pidfile: \"\"\n \
             use-syslog: no\n do-daemonize: no\n num-threads: 1\n module-config: \"iterator\"\n \
             local-zone: \"example.\" static\n \
             local-data: \"example. SOA ns.example. hostmaster.example. 1 2 3 4 5\"\n\
             remote-control:\n control-enable: no\n"
        );
        let file = folder.write("unbound.conf", text);
        let mut command = Command::new(&program);
        command.args(["-d", "-c"]).arg(file);
        command
    });
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, https_port));
    let check = |path: &str| {
        let check = HttpCheck::new(path).unwrap().with_version(HttpVersion::Http2);
        check.with_tls(authority.settings()).with_host(NAME).unwrap()
    };
    let outcome = probe(address, Kind::Http(check("/elsewhere"))).await;
    assert_eq!(outcome, Err(Fault::Status(404)));
    let expected = check("/elsewhere").with_statuses(&[404..=404]).unwrap();
    let told = words(&probe(address, Kind::Http(expected)).await);
    assert!(told.starts_with("HTTP status 404, certificate ends in"), "{told}");
    let http_1 = Kind::Http(check("/elsewhere").with_version(HttpVersion::Http1));
    assert!(probe(address, http_1).await.is_err(), "Unbound speaks HTTP/2 alone");
}

/// Starts OpenSSL's server, which answers requests with a page about the connection.
async fn openssl(
    identity: &common::certificates::Identity,
    more: &[&str],
) -> (Process, SocketAddr, Folder) {
    let program = installed("openssl").expect("`make packages` installs what the tests need");
    let folder = Folder::new("openssl");
    let port = free_port();
    let certificate = folder.write("certificate.pem", &identity.certificate);
    let key = folder.write("key.pem", &identity.key);
    let mut command = Command::new(program);
    command.args(["s_server", "-www", "-accept", &format!("127.0.0.1:{port}"), "-cert"]);
    command.arg(certificate).arg("-key").arg(key).args(more);
    let process = Process::start(&command, &folder.path().join("log")).unwrap();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let begun = Instant::now();
    while probe(address, Kind::Tcp).await.is_err() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{}", process.log(""));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    (process, address, folder)
}

#[tokio::test]
async fn openssl_is_asked_by_https_with_tls_1_2_and_1_3() {
    let authority = Authority::new();
    for version in ["-tls1_2", "-tls1_3"] {
        let (_process, address, _folder) = openssl(&authority.sign(NAME, 2999), &[version]).await;
        let check = |text| {
            let check = HttpCheck::new("/").unwrap().with_tls(authority.settings());
            Kind::Http(check.with_text(text).unwrap())
        };
        let told = words(&probe(address, check("Cipher")).await);
        assert!(told.starts_with("HTTP status 200, certificate ends in"), "{version}: {told}");
        assert_eq!(probe(address, check("no such text")).await, Err(Fault::Text));
    }
}

#[tokio::test]
async fn openssl_requires_a_certificate_and_gets_it() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let folder = Folder::new("clients");
    let roots = folder.write("clients.pem", &clients.pem);
    let more = ["-Verify", "2", "-verify_return_error", "-CAfile", roots.to_str().unwrap()];
    let (_process, address, _folder) = openssl(&authority.sign(NAME, 2999), &more).await;
    let https = |tls: TlsSettings| Kind::Http(HttpCheck::new("/").unwrap().with_tls(tls));
    let outcome = probe(address, https(authority.settings())).await;
    assert!(matches!(outcome, Err(Fault::Handshake(_) | Fault::Closed(_))), "{outcome:?}");
    let own = clients.sign("prober.example", 2999);
    let identity = Identity::in_pem(own.certificate.as_bytes(), own.key.as_bytes()).unwrap();
    let told = words(&probe(address, https(authority.settings().with_identity(identity))).await);
    assert!(told.starts_with("HTTP status 200"), "{told}");
}
