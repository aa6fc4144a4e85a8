//! The last check of a server's certificate.
//!
//! QUIC says neither why a certificate was not trusted nor whether TLS has resumed an earlier
//! session. Both follow from this: for a session that is resumed, no certificate is checked.

use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

/// Has another one verify certificates, and remembers what it has found.
#[derive(Debug)]
pub struct Witness {
    verifier: Arc<dyn ServerCertVerifier>,
    /// Result of the last check of a certificate; `None` when none was checked.
    last: Mutex<Option<Result<(), Error>>>,
}

impl Witness {
    /// Has seen nothing yet.
    pub fn new(verifier: Arc<dyn ServerCertVerifier>) -> Self {
        Self { verifier, last: Mutex::default() }
    }

    /// Returns what was found since the last call, if a certificate was looked at.
    pub fn take(&self) -> Option<Result<(), Error>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl ServerCertVerifier for Witness {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verifier = &self.verifier;
        let verdict =
            verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some(verdict.as_ref().map(|_| ()).map_err(Clone::clone));
        verdict
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
