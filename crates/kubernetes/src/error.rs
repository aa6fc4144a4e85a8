//! What keeps this server from the API.

use crate::protobuf::decode::Malformed;
use crate::split::TooLarge;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Why the API cannot be asked, or what it answered.
#[derive(Debug)]
pub enum ConnectError {
    /// The environment of a pod is missing.
    NotInPod,
    /// A file cannot be read, for this reason.
    File(PathBuf, String),
    /// A kubeconfig cannot be understood, for this reason.
    Kubeconfig(PathBuf, String),
    /// A program that a kubeconfig names brings no credentials.
    Plugin(PathBuf, PluginError),
    /// A URL is none of HTTP or HTTPS.
    Url(String),
    /// A URL of plain HTTP to another machine, which would carry a token.
    PlainToken(String),
    /// No certificate is given that is to be trusted.
    NoRoots,
    /// A certificate or a key cannot be read, for this reason.
    Pem(String),
    /// TLS cannot be set up, for this reason.
    Tls(String),
    /// The API server cannot be reached, for this reason.
    Unreachable(String),
    /// A connection or what it carries has ended too soon, for this reason.
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
            Self::Plugin(command, error) => {
                write!(f, "`{}`, which the kubeconfig names, {error}", command.display())
            }
            Self::Url(url) => {
                write!(f, "`{url}` is no URL of an API server, such as https://192.0.2.1:6443")
            }
            Self::PlainToken(url) => write!(
                f,
                "the token of the account would be sent to {url} for all on the way to read: write \
                 `https://`, or reach the API through a proxy at a loopback address"
            ),
            Self::NoRoots => f.write_str(
                "no certificate is given that the API server's must chain to: name a `ca-file`",
            ),
            Self::Pem(error) => write!(f, "a certificate or key is no PEM: {error}"),
            Self::Tls(error) => write!(f, "TLS cannot be set up: {error}"),
            Self::Unreachable(error) | Self::Connection(error) => {
                write!(f, "no connection to the API server: {error}")
            }
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
            Self::Refused(404, text) => write!(
                f,
                "the API server does not know such objects (404), is their definition (CRD) \
                 installed? {text}"
            ),
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

impl From<Malformed> for ConnectError {
    fn from(error: Malformed) -> Self {
        Self::Decode(error.to_string())
    }
}

impl From<serde_json::Error> for ConnectError {
    fn from(error: serde_json::Error) -> Self {
        Self::Decode(error.to_string())
    }
}

/// Why a program brings no credentials.
#[derive(Debug)]
pub enum PluginError {
    /// The program cannot be started; with what the kubeconfig says of its installation.
    Start(io::Error, String),
    /// How the program ended cannot be known.
    Wait(io::Error),
    /// The program has not ended in this time.
    Timeout(Duration),
    /// The program printed more than so many octets.
    TooLong(u64),
    /// The program failed, with what it printed as errors.
    Exit(ExitStatus, String),
    /// The program printed what is no credential.
    Output(serde_json::Error),
    /// The program speaks the first version, instead of the second that the kubeconfig names.
    Version(String, String),
    /// The program printed an expiration that is no time in UTC.
    Expiration,
    /// The program printed neither a token nor a certificate with its key.
    NoCredential,
}

impl fmt::Display for PluginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(error, hint) if hint.is_empty() => {
                write!(f, "cannot be started: {error}; is it installed?")
            }
            Self::Start(error, hint) => write!(f, "cannot be started: {error}; {}", hint.trim()),
            Self::Wait(error) => write!(f, "has an unknown end: {error}"),
            Self::Timeout(limit) => write!(f, "has not ended after {} s", limit.as_secs()),
            Self::TooLong(limit) => write!(f, "prints more than {limit} octets"),
            Self::Exit(status, text) => write!(f, "fails ({status}): {text}"),
            Self::Output(error) => {
                // The words of the error may have parts of a credential.
                let (line, column) = (error.line(), error.column());
                write!(f, "prints no `ExecCredential`: it is wrong at line {line}, column {column}")
            }
            Self::Version(own, named) => {
                write!(f, "prints an object of `{own}`, not an `ExecCredential` of `{named}`")
            }
            Self::Expiration => {
                f.write_str("prints an `expirationTimestamp` that is not like 2026-01-31T12:00:00Z")
            }
            Self::NoCredential => {
                f.write_str("prints neither a token nor a client certificate with its key")
            }
        }
    }
}
