//! TLS to databases: which servers are trusted.
//!
//! The public roots are those of Mozilla, built in, as for upstreams: a container often has none.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(feature = "postgres")]
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

/// Which servers are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Servers whose certificate is for their name and leads to a public root.
    PublicRoots,
    /// Servers whose certificate is for their name and leads to a root in this file of PEM form.
    File(PathBuf),
    /// Any server, for a connection that might as well not be encrypted.
    #[cfg(feature = "postgres")]
    Any,
}

impl Trust {
    /// Checks whether there can be a connection.
    ///
    /// # Errors
    /// When the file cannot be read, or has no certificate.
    pub fn check(&self) -> io::Result<()> {
        self.client().map(drop)
    }

    /// Returns the settings of a connection. The file is read each time, so that its new roots
    /// count for the next connection.
    ///
    /// # Errors
    /// When the file cannot be read, or has no certificate.
    pub fn client(&self) -> io::Result<ClientConfig> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("the provider has ciphers for all versions that were built in");
        let roots = match self {
            Self::PublicRoots => RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() },
            Self::File(file) => roots(file)?,
            #[cfg(feature = "postgres")]
            Self::Any => {
                let any = Arc::new(AnyCertificate(provider));
                let builder = builder.dangerous().with_custom_certificate_verifier(any);
                return Ok(builder.with_no_client_auth());
            }
        };
        Ok(builder.with_root_certificates(roots).with_no_client_auth())
    }
}

/// Reads the roots of a file.
fn roots(file: &Path) -> io::Result<RootCertStore> {
    let wrong = |why: &str| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{}: {why}", file.display()))
    };
    let pem = std::fs::read(file)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|_| wrong("it is not in PEM form"))?;
        roots.add(certificate).map_err(|_| wrong("a certificate in it cannot be read"))?;
    }
    if roots.is_empty() { Err(wrong("there is no certificate in it")) } else { Ok(roots) }
}

/// Returns the name or the address that a certificate must be for.
///
/// # Errors
/// When no server can have the name.
pub(crate) fn server_name(host: &str) -> io::Result<ServerName<'static>> {
    ServerName::try_from(host.to_owned()).map_err(|_| {
        let why = format!("no certificate can be for `{host}`");
        io::Error::new(io::ErrorKind::InvalidInput, why)
    })
}

/// Takes the certificate of any server that has its private key.
#[cfg(feature = "postgres")]
#[derive(Debug)]
struct AnyCertificate(Arc<rustls::crypto::CryptoProvider>);

#[cfg(feature = "postgres")]
impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: rustls::pki_types::UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
