//! What tests of connections share: certificates, questions, answers.

#![allow(dead_code, reason = "no test file uses all of it")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, PublicKeyData};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use zonda_client::{Protocol, Target, Tls, Trust};
use zonda_testkit::{Message, Question};

/// The name of all servers here.
pub const SERVER: &str = "dns.example";
/// The name that they answer for.
pub const NAME: &str = "www.example.";
/// The address in the answer.
pub const ANSWER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// A server's certificate from a CA of its own.
pub struct Identity {
    /// The CA's certificate, in PEM form.
    pub roots: String,
    /// The server's, in PEM form.
    pub certificate: String,
    /// Private key of the certificate, in PEM form.
    pub key: String,
    /// The hash of its public key.
    pub pin: [u8; 32],
}

impl Identity {
    /// Makes a certificate for a server of this name.
    pub fn new(name: &str) -> Self {
        let (ca_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let mut ca = CertificateParams::default();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let roots = ca.self_signed(&ca_key).unwrap().pem();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &Issuer::new(ca, ca_key)).unwrap().pem();
        let pin = ring::digest::digest(&ring::digest::SHA256, &key.subject_public_key_info());
        let pin = pin.as_ref().try_into().unwrap();
        Self { roots, certificate, key: key.serialize_pem(), pin }
    }

    /// Makes a configuration that trusts servers with this certificate.
    pub fn tls(&self) -> Arc<Tls> {
        self.tls_for(SERVER)
    }

    /// Makes a configuration that trusts this certificate for another name.
    pub fn tls_for(&self, name: &str) -> Arc<Tls> {
        Arc::new(Tls::new(name, &Trust::in_pem(self.roots.as_bytes()).unwrap()).unwrap())
    }

    /// Returns how a server with this certificate speaks TLS.
    pub fn server_config(&self, protocol: &[u8]) -> rustls::ServerConfig {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap();
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        config.alpn_protocols = vec![protocol.to_vec()];
        config
    }
}

/// Returns a server on a port of this machine.
pub fn target(address: SocketAddr, protocol: Protocol) -> Target {
    Target { address, protocol }
}

/// Returns a question for the address of [`NAME`].
pub fn query(id: u16) -> Vec<u8> {
    Question::new(NAME, "A").recursive().edns(1232).to_bytes(id)
}

/// Returns what a server answers to a query: [`ANSWER`] with this TTL.
pub fn answer(query: &[u8], ttl: u32) -> Vec<u8> {
    let mut answer = query.to_vec();
    let question_end = 12 + NAME.len() + 1 + 4;
    answer[2] |= 0x80; // QR
    answer[7] = 1; // a record
    let record = [&[0xc0, 12, 0, 1, 0, 1], &ttl.to_be_bytes()[..], &[0, 4], &ANSWER.octets()];
    answer.splice(question_end..question_end, record.concat());
    answer
}

/// Makes sure that a message is an answer with [`ANSWER`] and this id; returns its TTL.
#[track_caller]
pub fn assert_answers(message: &[u8], id: u16) -> u32 {
    let message = Message::parse(message).unwrap();
    assert_eq!(message.id, id);
    let records: Vec<String> = message.answer.iter().map(ToString::to_string).collect();
    assert!(records.len() == 1 && records[0].ends_with(" IN A 192.0.2.1"), "{records:?}");
    message.answer[0].ttl
}
