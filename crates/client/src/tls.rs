//! Which certificates are trusted, and what is stored to resume sessions.
//!
//! The public roots are those of Mozilla, built in, and not the system's: a container or a jail
//! often has none, a distribution may have added some, and a server that forwards should trust the
//! same wherever it runs. An administrator with a CA of their own gives its file.
//!
//! A pinned key replaces both the chain and the name (rfc7858#4.2): a server that proves to have
//! the key is trusted, even with a self-signed certificate.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ring::digest::{SHA256, digest};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use crate::verdict::Witness;

/// The SHA-256 hash of a public key in its certificate's form (SubjectPublicKeyInfo, rfc7469#2.4).
pub type Pin = [u8; 32];

/// Which servers are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Servers whose certificate leads to a public root.
    PublicRoots,
    /// Servers whose certificate leads to one of these roots.
    Roots(Vec<CertificateDer<'static>>),
    /// Servers that have one of these keys.
    Pins(Vec<Pin>),
}

impl Trust {
    /// Trust in the certificates of a PEM file.
    ///
    /// # Errors
    /// When there is none, or one cannot be read.
    pub fn in_pem(pem: &[u8]) -> Result<Self, TlsError> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let certificates = certificates.map_err(|_| TlsError::Pem)?;
        store(&certificates)?;
        Ok(Self::Roots(certificates))
    }
}

/// The settings of TLS with one server. They hold the sessions to be resumed, so that they are made
/// once for each server.
#[derive(Debug)]
pub struct Tls {
    /// Name that the certificate must show, also sent as the server's name (SNI).
    name: ServerName<'static>,
    /// Result of the last check of the server's certificate.
    witness: Arc<Witness>,
    /// TLS configuration without an application's protocol.
    config: Arc<ClientConfig>,
    /// The round-trip time of the last connection over QUIC, microseconds; 0 for none.
    round_trip_micros: AtomicU64,
}

/// Why there can be no TLS with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsError {
    /// The file of roots is no PEM.
    Pem,
    /// The file holds no certificate.
    NoRoots,
    /// One of the file's certificates cannot be read.
    Root,
    /// The name cannot be that of a server.
    Name,
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pem => f.write_str("it is not in PEM form"),
            Self::NoRoots => f.write_str("there is no certificate in it"),
            Self::Root => f.write_str("a certificate in it cannot be read"),
            Self::Name => f.write_str("no server can have this name"),
        }
    }
}

impl std::error::Error for TlsError {}

impl Tls {
    /// Returns what it takes for a server of this name or address.
    ///
    /// # Errors
    /// When the name cannot be a server's, or the roots cannot be read.
    pub fn new(name: &str, trust: &Trust) -> Result<Self, TlsError> {
        let name = ServerName::try_from(name.to_owned()).map_err(|_| TlsError::Name)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match trust {
            Trust::PublicRoots => {
                let roots = webpki_roots::TLS_SERVER_ROOTS.to_vec();
                verifier(RootCertStore { roots }, &provider)
            }
            Trust::Roots(roots) => verifier(store(roots)?, &provider),
            Trust::Pins(pins) => {
                Arc::new(PinnedKeys { pins: pins.clone(), provider: Arc::clone(&provider) })
            }
        };
        let witness = Arc::new(Witness::new(verifier));
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has ciphers for all versions that were built in")
            .dangerous() // only because it is not for rustls to choose the verifier
            .with_custom_certificate_verifier(Arc::clone(&witness) as _)
            .with_no_client_auth();
        let round_trip_micros = AtomicU64::new(0);
        Ok(Self { name, witness, config: Arc::new(config), round_trip_micros })
    }

    /// Returns what the certificate must show.
    pub fn name(&self) -> &ServerName<'static> {
        &self.name
    }

    /// Returns the TLS configuration without an application's protocol.
    pub fn config(&self) -> &Arc<ClientConfig> {
        &self.config
    }

    /// Returns the result of the last check of the certificate, once, if there was one.
    pub(crate) fn take_verdict(&self) -> Option<Result<(), Error>> {
        self.witness.take()
    }

    /// Returns the round-trip time of the last connection over QUIC, if it had any.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        let micros = self.round_trip_micros.load(Relaxed);
        (micros > 0).then(|| Duration::from_micros(micros))
    }

    /// Records the round-trip time of a connection over QUIC.
    pub(crate) fn note_round_trip(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.round_trip_micros.store(micros, Relaxed);
    }

    /// Returns the TLS configuration for an application's protocol. Sessions are stored in common.
    #[must_use]
    pub fn config_for(&self, protocol: &[u8]) -> ClientConfig {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = vec![protocol.to_vec()];
        config
    }
}

/// Verifies that certificates lead to one of the roots.
fn verifier(roots: RootCertStore, provider: &Arc<CryptoProvider>) -> Arc<WebPkiServerVerifier> {
    WebPkiServerVerifier::builder_with_provider(roots.into(), Arc::clone(provider))
        .build()
        .expect("there is a root, and no revocation list that could be wrong")
}

/// Certificates as roots.
fn store(certificates: &[CertificateDer<'static>]) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates {
        store.add(certificate.clone()).map_err(|_| TlsError::Root)?;
    }
    if store.is_empty() { Err(TlsError::NoRoots) } else { Ok(store) }
}

/// Trusts every server that has a pinned key.
#[derive(Debug)]
struct PinnedKeys {
    pins: Vec<Pin>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedKeys {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let key = ParsedCertificate::try_from(end_entity)?.subject_public_key_info();
        match self.pins.iter().any(|pin| pin == digest(&SHA256, &key).as_ref()) {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
