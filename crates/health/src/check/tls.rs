//! Settings of TLS for a check.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};

/// How a check uses TLS.
///
/// By default the certificate must lead to a public root and be for the host of the check, or for
/// the target's address where there is none. Sessions are never resumed, as that would leave out
/// the certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TlsSettings {
    /// Which certificates are trusted.
    pub(crate) trust: Trust,
    /// Name that is sent (SNI) and that the certificate must show; see [`TlsSettings::with_name`].
    pub(crate) name: Option<Box<str>>,
    /// Certificate of this side, for targets that require one.
    pub(crate) identity: Option<Identity>,
    /// Fewest days until the target's certificate ends; 0 for no requirement but that it has not.
    pub(crate) days_min: u16,
}

/// Which certificates are trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Trust {
    /// Certificates that lead to one of Mozilla's roots, which are built in.
    #[default]
    PublicRoots,
    /// Certificates that lead to one of these roots.
    Roots(Roots),
    /// Any certificate, for any name, also an expired one. Only for targets whose certificate says
    /// nothing.
    Any,
}

/// Root certificates of a PEM file.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Roots(Arc<[Vec<u8>]>);

/// A certificate with its key, which the probe shows to targets.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Certificates in DER form, that of this side first.
    chain: Arc<[Vec<u8>]>,
    /// Private key in PEM form.
    key: Arc<[u8]>,
}

/// Why there can be no TLS with these settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsError {
    /// The text is not in PEM form.
    Pem,
    /// The file holds no certificate.
    NoCertificate,
    /// One of the certificates cannot be read.
    Certificate,
    /// The private key is missing or cannot be read.
    Key,
    /// The key does not belong to the certificate, or is of a kind that is not supported.
    OtherKey,
    /// The name cannot be that of a server.
    Name,
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pem => f.write_str("it is not in PEM form"),
            Self::NoCertificate => f.write_str("there is no certificate in it"),
            Self::Certificate => f.write_str("a certificate in it cannot be read"),
            Self::Key => f.write_str("there is no private key in it that can be read"),
            Self::OtherKey => f.write_str("the key does not belong to the certificate"),
            Self::Name => f.write_str("no server can have this name"),
        }
    }
}

impl std::error::Error for TlsError {}

impl TlsSettings {
    /// Returns settings that trust these certificates.
    #[must_use]
    pub fn new(trust: Trust) -> Self {
        Self { trust, ..Self::default() }
    }

    /// Shows targets a certificate.
    #[must_use]
    pub fn with_identity(self, identity: Identity) -> Self {
        Self { identity: Some(identity), ..self }
    }

    /// Requires that the target's certificate does not end within so many days.
    #[must_use]
    pub fn with_days_min(self, days_min: u16) -> Self {
        Self { days_min, ..self }
    }

    /// Sets the name that is sent and that the certificate must show.
    ///
    /// # Errors
    /// When no server can have this name.
    pub fn with_name(self, name: &str) -> Result<Self, TlsError> {
        ServerName::try_from(name).map_err(|_| TlsError::Name)?;
        Ok(Self { name: Some(name.into()), ..self })
    }

    /// Returns the name that is sent and that the certificate must show, if it is set.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

impl Roots {
    /// Reads the certificates of a PEM file.
    ///
    /// # Errors
    /// When there is none, or one cannot be read.
    pub fn in_pem(pem: &[u8]) -> Result<Self, TlsError> {
        let roots = Self(chain_in_pem(pem)?);
        roots.store()?;
        Ok(roots)
    }

    /// Returns the roots in the form of rustls.
    pub(crate) fn store(&self) -> Result<rustls::RootCertStore, TlsError> {
        let mut store = rustls::RootCertStore::empty();
        for certificate in self.0.iter() {
            let certificate = CertificateDer::from(certificate.clone());
            store.add(certificate).map_err(|_| TlsError::Certificate)?;
        }
        Ok(store)
    }
}

impl Identity {
    /// Reads the certificates of one PEM file, this side's first, and the private key of another.
    ///
    /// # Errors
    /// When one of them is missing or cannot be read, or they do not belong together.
    pub fn in_pem(certificates: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let identity = Self { chain: chain_in_pem(certificates)?, key: key.into() };
        let (chain, key) = identity.parts()?;
        let provider = rustls::crypto::ring::default_provider();
        match rustls::sign::CertifiedKey::from_der(chain, key, &provider) {
            Ok(_) => Ok(identity),
            Err(_) => Err(TlsError::OtherKey),
        }
    }

    /// Returns the certificates and the key in the form of rustls.
    pub(crate) fn parts(
        &self,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
        let chain = self.chain.iter().cloned().map(CertificateDer::from).collect();
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|_| TlsError::Key)?;
        Ok((chain, key))
    }
}

/// Reads the certificates of a PEM file.
fn chain_in_pem(pem: &[u8]) -> Result<Arc<[Vec<u8>]>, TlsError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.map_err(|_| TlsError::Pem)?;
    match certificates.is_empty() {
        true => Err(TlsError::NoCertificate),
        false => Ok(certificates.iter().map(|it| it.to_vec()).collect()),
    }
}

impl fmt::Debug for Roots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Roots({})", self.0.len())
    }
}

/// Without the private key.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({} certificates)", self.chain.len())
    }
}
