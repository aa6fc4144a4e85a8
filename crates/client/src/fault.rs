//! Why a query over a connection has no answer.

use std::fmt;
use std::io;
use std::time::Duration;

#[cfg(feature = "encrypted")]
use rustls::CertificateError;

#[cfg(not(feature = "encrypted"))]
use crate::tls::{CertificateError, rustls};

/// Why a query over a connection has no answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// No address is known for the server's name yet.
    NoAddress,
    /// The server refused the connection: no process listens there.
    Refused,
    /// The network says that there is no way, or the system has no socket left.
    Unreachable(io::ErrorKind),
    /// The server's certificate is not trusted.
    Certificate(Distrust),
    /// The two sides agree on no version, cipher or protocol, or one of them broke the rules.
    Handshake(rustls::Error),
    /// The connection was closed before the answer came.
    Closed,
    /// No connection could be made in time, or nothing was received for too long.
    Late,
    /// The status of HTTP is not 200.
    Http {
        /// Status code of the response.
        status: u16,
        /// Time for which the server wants no queries, if it says so.
        rest: Option<Duration>,
    },
    /// The HTTP response is no DNS message; its media type, perhaps shortened.
    MediaType(String),
    /// The server reset the stream, with a code of HTTP/2 or of DNS over QUIC (rfc9250#4.3).
    Aborted(u64),
    /// The server broke the rules of this protocol.
    Rules(&'static str),
    /// The response is no DNS message, or not of the announced kind.
    Malformed,
    /// As many queries wait for this server as may.
    Busy,
    /// The server sent many unsolicited octets, so that the connection was closed.
    Flood,
}

/// More was received over a connection than its queries need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flood;

impl fmt::Display for Flood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it sent too much unsolicited data")
    }
}

impl std::error::Error for Flood {}

/// Why a certificate is not trusted.
#[derive(Clone, Debug, PartialEq)]
pub enum Distrust {
    /// The certificate has expired.
    Expired,
    /// The certificate is not valid yet.
    NotYetValid,
    /// The certificate is for another name or address.
    OtherName,
    /// The certificate is signed by no trusted authority.
    UnknownIssuer,
    /// The certificate's key is none of the pinned ones.
    OtherKey,
    /// Something else, in the words of rustls.
    Other(CertificateError),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAddress => f.write_str("its address is not known yet"),
            Self::Refused => f.write_str("the connection was refused"),
            Self::Unreachable(kind) => write!(f, "it cannot be reached: {kind}"),
            Self::Certificate(distrust) => write!(f, "its certificate {distrust}"),
            Self::Handshake(error) => write!(f, "the TLS handshake failed: {error}"),
            Self::Closed => f.write_str("the connection was closed"),
            Self::Late => f.write_str("the connection was silent for too long"),
            Self::Http { status: status @ 300..400, .. } => {
                write!(f, "HTTP status {status}: redirections are not followed")
            }
            Self::Http { status, .. } => write!(f, "HTTP status {status}"),
            Self::MediaType(other) => write!(f, "the HTTP response has the media type {other:?}"),
            Self::Aborted(code) => write!(f, "it reset the stream, code {code}"),
            Self::Rules(protocol) => write!(f, "it breaks the rules of {protocol}"),
            Self::Malformed => f.write_str("the response is no DNS message"),
            Self::Busy => f.write_str("too many queries wait for it"),
            Self::Flood => Flood.fmt(f),
        }
    }
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => f.write_str("has expired"),
            Self::NotYetValid => f.write_str("is not valid yet"),
            Self::OtherName => f.write_str("is for another name"),
            Self::UnknownIssuer => f.write_str("is signed by no trusted authority"),
            Self::OtherKey => f.write_str("has none of the pinned keys"),
            Self::Other(error) => write!(f, "is wrong: {error}"),
        }
    }
}

impl std::error::Error for Fault {}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        #[cfg(feature = "encrypted")]
        if let Some(error) = error.get_ref().and_then(|it| it.downcast_ref::<rustls::Error>()) {
            return error.clone().into();
        }
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::TimedOut => Self::Late,
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::NotConnected => Self::Closed,
            kind => Self::Unreachable(kind),
        }
    }
}

#[cfg(feature = "encrypted")]
impl From<rustls::Error> for Fault {
    fn from(error: rustls::Error) -> Self {
        match error {
            rustls::Error::InvalidCertificate(error) => Self::Certificate(error.into()),
            error => Self::Handshake(error),
        }
    }
}

#[cfg(feature = "encrypted")]
impl From<CertificateError> for Distrust {
    fn from(error: CertificateError) -> Self {
        match error {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                Self::NotYetValid
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Self::OtherName
            }
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::UnknownIssuer,
            // Only this crate's check of pinned keys returns this error.
            CertificateError::ApplicationVerificationFailure => Self::OtherKey,
            error => Self::Other(error),
        }
    }
}
