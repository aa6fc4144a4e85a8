//! Certificates of targets: right, expired, for another name, from an authority of their own.

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio_rustls::TlsAcceptor;
use zonda_health::{Roots, TlsSettings, Trust};

use super::{answer_http, server};

/// The name of all targets.
pub const NAME: &str = "www.example.com";

/// An authority that signs certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// The certificate of the authority, in PEM form.
    pub pem: String,
}

/// A certificate with its key.
pub struct Identity {
    /// The certificate, in PEM form.
    pub certificate: String,
    /// The private key, in PEM form.
    pub key: String,
}

impl Authority {
    /// Makes an authority.
    pub fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // OpenSSL takes a certificate whose issuer has its own name for self-signed.
        params.distinguished_name.push(DnType::CommonName, "An authority of tests");
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Signs a certificate for this name, valid through this year.
    pub fn sign(&self, name: &str, last_year: i32) -> Identity {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(last_year, 12, 31);
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Identity { certificate, key: key.serialize_pem() }
    }

    /// Returns settings of TLS that trust this authority for [`NAME`].
    pub fn settings(&self) -> TlsSettings {
        TlsSettings::new(self.trust()).with_name(NAME).unwrap()
    }

    /// Returns trust in this authority.
    pub fn trust(&self) -> Trust {
        Trust::Roots(Roots::in_pem(self.pem.as_bytes()).unwrap())
    }
}

impl Identity {
    /// Returns how a server with this certificate speaks TLS; with an authority of clients it
    /// requires their certificates.
    pub fn acceptor(&self, protocol: &[u8], clients: Option<&Authority>) -> TlsAcceptor {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chain = vec![CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap();
        let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = rustls::RootCertStore::empty();
                let root = CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap();
                roots.add(root).unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let mut config = builder.with_single_cert(chain, key).unwrap();
        config.alpn_protocols = vec![protocol.to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }
}

/// Starts a server of HTTPS that answers each request with 200.
pub async fn https_server(acceptor: TlsAcceptor) -> SocketAddr {
    server("127.0.0.1:0", move |stream| {
        let acceptor = acceptor.clone();
        async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                let response = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".to_vec();
                answer_http(stream, response, Arc::default()).await;
            }
        }
    })
    .await
}
