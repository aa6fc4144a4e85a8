//! Probes over TLS: which certificates are accepted, and why all else is refused.

#![allow(clippy::unwrap_used)]

mod common;

use common::certificates::{Authority, NAME, https_server};
use common::{Manner, SHORT, http_server, probe, probe_within, relay, words};
use zonda_health::{
    Distrust, Fault, HttpCheck, HttpVersion, Identity, Kind, Probe, Roots, Step, TlsError,
    TlsSettings, Trust,
};

/// Returns a check by HTTPS with these settings.
fn https(tls: TlsSettings) -> Kind {
    Kind::Http(HttpCheck::new("/health").unwrap().with_tls(tls))
}

#[tokio::test]
async fn a_trusted_certificate_is_a_success_that_tells_when_it_ends() {
    let authority = Authority::new();
    let address = https_server(authority.sign(NAME, 2999).acceptor(b"http/1.1", None)).await;
    for kind in [https(authority.settings()), Kind::Tls(authority.settings())] {
        let success = probe(address, kind).await.unwrap();
        assert!(success.certificate_days.unwrap() > 300_000, "{success}");
    }
    let check = HttpCheck::new("/").unwrap().with_host(&format!("{NAME}:8443")).unwrap();
    let check = check.with_tls(TlsSettings::new(authority.trust()));
    assert!(probe(address, Kind::Http(check)).await.is_ok(), "the host is the name");
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_told_with_its_reason() {
    let authority = Authority::new();
    for (name, year, distrust) in
        [(NAME, 2021, Distrust::Expired), ("other.example", 2999, Distrust::OtherName)]
    {
        let address = https_server(authority.sign(name, year).acceptor(b"http/1.1", None)).await;
        let outcome = probe(address, https(authority.settings())).await;
        assert_eq!(outcome, Err(Fault::Certificate(distrust)));
        assert!(
            probe(address, https(TlsSettings::new(Trust::Any))).await.is_ok(),
            "without verification"
        );
    }
    let address = https_server(authority.sign(NAME, 2999).acceptor(b"http/1.1", None)).await;
    let public = TlsSettings::default().with_name(NAME).unwrap();
    for settings in [Authority::new().settings(), public] {
        let outcome = probe(address, https(settings)).await;
        assert_eq!(outcome, Err(Fault::Certificate(Distrust::UnknownIssuer)));
    }
    let outcome = probe(address, https(TlsSettings::new(authority.trust()))).await;
    assert_eq!(outcome, Err(Fault::Certificate(Distrust::OtherName)), "127.0.0.1 is not in it");
}

#[tokio::test]
async fn a_certificate_that_ends_soon_fails_where_days_are_required() {
    let authority = Authority::new();
    let address = https_server(authority.sign(NAME, 2027).acceptor(b"http/1.1", None)).await;
    let days = probe(address, https(authority.settings())).await.unwrap().certificate_days.unwrap();
    let days_min = u16::try_from(days).unwrap();
    let settings = authority.settings().with_days_min(days_min);
    assert!(probe(address, Kind::Tls(settings.clone())).await.is_ok());
    let settings = settings.with_days_min(days_min + 1);
    let outcome = probe(address, Kind::Tls(settings)).await;
    assert_eq!(outcome, Err(Fault::CertificateEnds(days)));
}

#[tokio::test]
async fn a_target_that_requires_a_certificate_gets_it() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let acceptor = authority.sign(NAME, 2999).acceptor(b"http/1.1", Some(&clients));
    let address = https_server(acceptor).await;
    let outcome = probe(address, https(authority.settings())).await;
    assert!(matches!(outcome, Err(Fault::Handshake(_) | Fault::Closed(_))), "{outcome:?}");
    let own = clients.sign("prober.example", 2999);
    let identity = Identity::in_pem(own.certificate.as_bytes(), own.key.as_bytes()).unwrap();
    let settings = authority.settings().with_identity(identity);
    assert!(probe(address, https(settings)).await.is_ok());
}

#[tokio::test]
async fn a_handshake_that_fails_is_told_apart_from_a_reply() {
    let authority = Authority::new();
    let behind = https_server(authority.sign(NAME, 2999).acceptor(b"http/1.1", None)).await;
    let check = || https(authority.settings());
    let silent = relay(behind, Manner::Silent).await;
    let outcome = probe_within(silent, check(), SHORT).await;
    assert_eq!(outcome, Err(Fault::Timeout(Step::Handshake)));
    for octets in [0, 100] {
        let cut = relay(behind, Manner::CutAfter(octets)).await;
        assert_eq!(probe(cut, check()).await, Err(Fault::Closed(Step::Handshake)), "{octets}");
    }
    let (plain, _) = http_server("HTTP/1.1 400 Bad\r\n\r\n").await;
    let outcome = probe_within(plain, check(), SHORT).await;
    assert!(matches!(outcome, Err(Fault::Timeout(Step::Handshake) | Fault::Handshake(_))));
}

#[tokio::test]
async fn http_2_is_agreed_on_or_the_target_is_down() {
    let authority = Authority::new();
    let check = HttpCheck::new("/").unwrap().with_tls(authority.settings());
    let check = Kind::Http(check.with_version(HttpVersion::Http2));
    let only_http_1 = https_server(authority.sign(NAME, 2999).acceptor(b"http/1.1", None)).await;
    let outcome = probe(only_http_1, check.clone()).await;
    assert!(matches!(outcome, Err(Fault::Handshake(_))), "{outcome:?}");
    let acceptor = authority.sign(NAME, 2999).acceptor(b"h2", None);
    let address = common::server("127.0.0.1:0", move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let stream = acceptor.accept(stream).await.unwrap();
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                let response = http::Response::builder().status(204).body(()).unwrap();
                respond.send_response(response, true).unwrap();
            }
        }
    })
    .await;
    let told = words(&probe(address, check).await);
    assert!(told.starts_with("HTTP status 204, certificate ends in"), "{told}");
}

#[test]
fn files_that_cannot_be_used_are_told_with_the_reason() {
    let authority = Authority::new();
    let (one, other) = (authority.sign(NAME, 2999), authority.sign(NAME, 2999));
    let bad = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert_eq!(Roots::in_pem(b"").unwrap_err(), TlsError::NoCertificate);
    assert_eq!(Roots::in_pem(bad.as_bytes()).unwrap_err(), TlsError::Certificate);
    let identity = |certificate: &str, key: &str| {
        Identity::in_pem(certificate.as_bytes(), key.as_bytes()).map(drop)
    };
    assert_eq!(identity(&one.certificate, &one.key), Ok(()));
    assert_eq!(identity(&one.certificate, &other.key), Err(TlsError::OtherKey));
    assert_eq!(identity(&one.certificate, ""), Err(TlsError::Key));
    assert_eq!(TlsSettings::default().with_name("a b").unwrap_err(), TlsError::Name);
    let with_key = Identity::in_pem(one.certificate.as_bytes(), one.key.as_bytes()).unwrap();
    assert!(!format!("{with_key:?}").contains(one.key.lines().nth(1).unwrap()));
}

#[test]
fn a_probe_can_be_moved_between_threads() {
    fn assert_send<T: Send>(_: &T) {}
    let target = common::target("127.0.0.1:1".parse().unwrap(), https(TlsSettings::default()));
    let probe = Probe::new(&target).unwrap();
    let run = probe.run(SHORT);
    assert_send(&run);
    let octets = size_of_val(&run);
    assert!(octets <= 3072, "{octets} octets: 4,000 probes under way are to fit into memory");
}
