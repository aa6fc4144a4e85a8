//! Connections over TLS: which certificates they trust, and what they resume.
#![allow(clippy::unwrap_used)]

mod server;

use std::sync::Arc;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, PublicKeyData, date_time_ymd,
};
use ring::digest::{SHA256, digest};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use server::{Manner, Server, answer, query};
use tokio::time::sleep;
use zonda_client::{Connections, Distrust, Fault, Protocol, Tls, Trust};

/// A server with a certificate, and what a client needs to believe it.
struct CertifiedServer {
    server: Server,
    /// Certificate of the authority that signed.
    ca: String,
    /// The hash of the server's key.
    pin: [u8; 32],
}

/// Starts a server whose certificate is for this name or address, and ends in this year.
async fn certified(subject: &str, last_year: i32, manner: Manner) -> CertifiedServer {
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_pem = ca.self_signed(&ca_key).unwrap().pem();
    let issuer = Issuer::new(ca, ca_key);
    let key = KeyPair::generate().unwrap();
    let mut leaf = CertificateParams::new(vec![subject.to_owned()]).unwrap();
    leaf.not_before = date_time_ymd(2020, 1, 1);
    leaf.not_after = date_time_ymd(last_year, 1, 1);
    let certificate = leaf.signed_by(&key, &issuer).unwrap();
    let pin = digest(&SHA256, &key.subject_public_key_info()).as_ref().try_into().unwrap();
    let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config =
        ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .unwrap();
    CertifiedServer { server: Server::start(manner, Some(Arc::new(config))).await, ca: ca_pem, pin }
}

impl CertifiedServer {
    /// Connections to it as one of this name or address.
    fn connections(&self, subject: &str, trust: &Trust) -> Arc<Connections> {
        let tls = Tls::new(subject, trust).unwrap();
        Connections::new(Protocol::Tls(Arc::new(tls)), vec![self.server.address])
    }

    fn trust(&self) -> Trust {
        Trust::in_pem(self.ca.as_bytes()).unwrap()
    }
}

/// Result of a query.
async fn ask(connections: &Arc<Connections>) -> Result<(), Fault> {
    let query = query(7, "one");
    let message = connections.ask(&query).await?;
    assert_eq!(message, answer(&query, false));
    Ok(())
}

#[tokio::test]
async fn a_certificate_is_trusted_for_its_name_or_address_only() {
    for (subject, asked_as, believed) in [
        ("dns.example.net", "dns.example.net", true),
        ("127.0.0.1", "127.0.0.1", true),
        ("dns.example.net", "dns.example.org", false),
        ("dns.example.net", "127.0.0.1", false),
    ] {
        let certified = certified(subject, 2999, Manner::Prompt).await;
        let connections = certified.connections(asked_as, &certified.trust());
        let expected = match believed {
            true => Ok(()),
            false => Err(Fault::Certificate(Distrust::OtherName)),
        };
        assert_eq!(ask(&connections).await, expected, "{subject} {asked_as}");
        assert_eq!(connections.counts().fault, expected.err());
    }
}

#[tokio::test]
async fn an_expired_certificate_and_one_of_a_stranger_are_not_believed() {
    let expired = certified("dns.example.net", 2021, Manner::Prompt).await;
    let connections = expired.connections("dns.example.net", &expired.trust());
    assert_eq!(ask(&connections).await, Err(Fault::Certificate(Distrust::Expired)));

    let stranger = certified("dns.example.net", 2999, Manner::Prompt).await;
    for trust in [Trust::PublicRoots, expired.trust()] {
        let connections = stranger.connections("dns.example.net", &trust);
        assert_eq!(ask(&connections).await, Err(Fault::Certificate(Distrust::UnknownIssuer)));
    }
}

#[tokio::test]
async fn a_pinned_key_is_believed_whatever_the_certificate_says_and_no_other_is() {
    let certified = certified("dns.example.net", 2021, Manner::Prompt).await;
    let trust = Trust::Pins(vec![[0; 32], certified.pin]);
    assert_eq!(ask(&certified.connections("other.example", &trust)).await, Ok(()));
    let connections = certified.connections("dns.example.net", &Trust::Pins(vec![[0; 32]]));
    assert_eq!(ask(&connections).await, Err(Fault::Certificate(Distrust::OtherKey)));
}

#[tokio::test]
async fn sessions_are_resumed_and_nothing_is_lost_between_them() {
    let certified = certified("dns.example.net", 2999, Manner::Closing(2)).await;
    let connections = certified.connections("dns.example.net", &certified.trust());
    for _ in 0..6 {
        assert_eq!(ask(&connections).await, Ok(()));
        sleep(Duration::from_millis(20)).await;
    }
    let counts = connections.counts();
    assert_eq!((counts.opened, counts.resumed, counts.failed), (3, 2, 0));
}

#[tokio::test]
async fn a_server_without_tls_is_distinguished_from_one_with_a_wrong_certificate() {
    let server = Server::start(Manner::Prompt, None).await;
    let tls = Arc::new(Tls::new("dns.example.net", &Trust::PublicRoots).unwrap());
    let connections = Connections::new(Protocol::Tls(tls), vec![server.address]);
    let query = query(7, "one");
    let fault = tokio::time::timeout(Duration::from_secs(5), connections.ask(&query)).await;
    assert!(
        matches!(fault, Ok(Err(Fault::Handshake(_) | Fault::Closed | Fault::Late))),
        "{fault:?}"
    );
}

#[test]
fn a_file_without_certificates_is_reported() {
    for (text, expected) in [
        ("", "there is no certificate in it"),
        ("-----BEGIN CERTIFICATE-----\n!\n", "it is not in PEM form"),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "a certificate in it cannot be read",
        ),
    ] {
        assert_eq!(Trust::in_pem(text.as_bytes()).unwrap_err().to_string(), expected);
    }
}
