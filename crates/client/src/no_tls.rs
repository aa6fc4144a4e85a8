//! What is encrypted, in a program without the feature `encrypted`: there are no settings of TLS,
//! so that each place that has some is never reached. The names are those of `tls` and of the
//! crates that it uses.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use crate::fault::Fault;

/// The SHA-256 hash of a public key in its certificate's form (SubjectPublicKeyInfo, rfc7469#2.4).
pub type Pin = [u8; 32];

/// Which servers are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Servers whose certificate leads to a public root.
    PublicRoots,
    /// Servers that have one of these keys.
    Pins(Vec<Pin>),
}

/// The settings of TLS with one server, of which there are none.
#[derive(Debug)]
pub struct Tls(Infallible);

/// Why there can be no TLS with a server: this program was built without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsError;

/// The error of a certificate, of which there is none.
#[derive(Clone, Debug, PartialEq)]
pub enum CertificateError {}

/// The URL of queries over HTTPS, of which there is none.
#[derive(Clone, Debug)]
pub(crate) enum Uri {}

/// A connection over HTTPS or QUIC, of which there is none.
#[derive(Debug)]
pub struct NoSession(Infallible);

/// The errors of TLS.
pub mod rustls {
    use std::fmt;

    /// An error of TLS, of which there is none.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Error {}

    impl fmt::Display for Error {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            match *self {}
        }
    }
}

impl Trust {
    /// Reads no certificates.
    ///
    /// # Errors
    /// Always: the feature is not there.
    pub fn in_pem(_pem: &[u8]) -> Result<Self, TlsError> {
        Err(TlsError)
    }
}

impl Tls {
    /// Makes no settings.
    ///
    /// # Errors
    /// Always: the feature is not there.
    pub fn new(_name: &str, _trust: &Trust) -> Result<Self, TlsError> {
        Err(TlsError)
    }

    /// Returns anything, as there are no settings to call this with.
    pub(crate) fn never<T>(&self) -> T {
        match self.0 {}
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "this program was built without TLS, HTTPS and QUIC: switch on the feature `encrypted`",
        )
    }
}

impl std::error::Error for TlsError {}

impl fmt::Display for CertificateError {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl FromStr for Uri {
    type Err = TlsError;

    fn from_str(_: &str) -> Result<Self, TlsError> {
        Err(TlsError)
    }
}

impl NoSession {
    /// Sends a query; see [`Session::ask`](crate::Session::ask).
    pub async fn ask(&self, _query: &[u8]) -> Result<Vec<u8>, Fault> {
        match self.0 {}
    }

    /// Says whether the server sent too much.
    pub fn is_flooded(&self) -> bool {
        match self.0 {}
    }

    /// Says whether queries are taken.
    pub fn is_open(&self) -> bool {
        match self.0 {}
    }

    /// Says whether the server seems dead.
    pub fn is_stalled(&self) -> bool {
        match self.0 {}
    }

    /// Counts waiting queries.
    pub fn waiting(&self) -> usize {
        match self.0 {}
    }

    /// Says whether TLS resumed a session.
    pub fn is_resumed(&self) -> bool {
        match self.0 {}
    }
}
