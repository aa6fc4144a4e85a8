//! TLS with the API server.

use crate::error::ConnectError;
use crate::settings::Trust;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// Returns the settings of TLS.
///
/// # Errors
/// When a certificate or the key cannot be read, or nothing is trusted.
pub fn tls_config(trust: Trust) -> Result<Arc<ClientConfig>, ConnectError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| ConnectError::Tls(error.to_string()))?;
    let builder = match trust.is_unchecked {
        true => builder
            .dangerous() // the kubeconfig says so
            .with_custom_certificate_verifier(Arc::new(Unchecked(provider))),
        false => {
            let pem = trust.ca.ok_or(ConnectError::NoRoots)?;
            let mut roots = RootCertStore::empty();
            for certificate in certificates(&pem)? {
                roots.add(certificate).map_err(|error| ConnectError::Tls(error.to_string()))?;
            }
            builder.with_root_certificates(roots)
        }
    };
    let config = match trust.client {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let key = PrivateKeyDer::from_pem_slice(&key);
            let key = key.map_err(|error| ConnectError::Pem(error.to_string()))?;
            builder
                .with_client_auth_cert(certificates(&certificate)?, key)
                .map_err(|error| ConnectError::Tls(error.to_string()))?
        }
    };
    Ok(Arc::new(config))
}

/// Returns the certificates of a text in PEM form; at least one.
fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, ConnectError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.map_err(|error| ConnectError::Pem(error.to_string()))?;
    if certificates.is_empty() { Err(ConnectError::NoRoots) } else { Ok(certificates) }
}

/// Accepts any certificate, of a server that has its key.
#[derive(Debug)]
struct Unchecked(Arc<CryptoProvider>);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
