//! What keeps this server from the API.

use crate::split::TooLarge;
use std::fmt;
use std::path::PathBuf;

/// Why the API cannot be asked, or what it answered.
#[derive(Debug)]
pub enum ConnectError {
    /// The environment of a pod is missing.
    NotInPod,
    /// A file cannot be read, for this reason.
    File(PathBuf, String),
    /// A kubeconfig cannot be understood, for this reason.
    Kubeconfig(PathBuf, String),
    /// A URL is none of HTTP or HTTPS.
    Url(String),
    /// No certificate is given that is to be trusted.
    NoRoots,
    /// A certificate or a key cannot be read, for this reason.
    Pem(String),
    /// TLS cannot be set up, for this reason.
    Tls(String),
    /// There is no connection, for this reason.
    Connection(String),
    /// Nothing came in time; while this was awaited.
    Timeout(&'static str),
    /// The API refused a request with this code and text.
    Refused(u16, String),
    /// The version that was asked for is no longer there.
    Expired,
    /// The API sent what is no object.
    Decode(String),
    /// The API sent an object that is too large.
    TooLarge(TooLarge),
    /// The receiver of the events has ended.
    Ended,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInPod => f.write_str(
                "KUBERNETES_SERVICE_HOST is not set, so this is no pod: name a `kubeconfig` or an \
                 `endpoint`",
            ),
            Self::File(file, error) => write!(f, "{} cannot be read: {error}", file.display()),
            Self::Kubeconfig(file, error) => write!(f, "{}: {error}", file.display()),
            Self::Url(url) => {
                write!(f, "`{url}` is no URL of an API server, such as https://192.0.2.1:6443")
            }
            Self::NoRoots => f.write_str(
                "no certificate is given that the API server's must chain to: name a `ca-file`",
            ),
            Self::Pem(error) => write!(f, "a certificate or key is no PEM: {error}"),
            Self::Tls(error) => write!(f, "TLS cannot be set up: {error}"),
            Self::Connection(error) => write!(f, "no connection to the API server: {error}"),
            Self::Timeout(what) => write!(f, "the API server sent no {what} in time"),
            Self::Refused(401, text) => {
                write!(f, "the API server does not know this client (401): {text}")
            }
            Self::Refused(403, text) => {
                write!(
                    f,
                    "the API server denies access (403), see the roles of the account: {text}"
                )
            }
            Self::Refused(code, text) => write!(f, "the API server answers {code}: {text}"),
            Self::Expired => f.write_str("the version of the objects is too old"),
            Self::Decode(error) => write!(f, "the API server sends what is no object: {error}"),
            Self::TooLarge(error) => error.fmt(f),
            Self::Ended => f.write_str("the server stops"),
        }
    }
}

impl std::error::Error for ConnectError {}

impl From<TooLarge> for ConnectError {
    fn from(error: TooLarge) -> Self {
        Self::TooLarge(error)
    }
}

impl From<serde_json::Error> for ConnectError {
    fn from(error: serde_json::Error) -> Self {
        Self::Decode(error.to_string())
    }
}
