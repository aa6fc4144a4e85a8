//! Why the server of an app cannot run.

use std::error::Error;
use std::net::SocketAddr;
use std::{fmt, io};

/// Why an address cannot be listened on.
#[derive(Debug)]
pub struct ListenError {
    /// The address, the reason and what to do, as text for the administrator.
    pub(crate) text: String,
    /// The address that cannot be listened on, with the error of the system, if it gave one.
    pub(crate) system: Option<(SocketAddr, io::Error)>,
}

impl ListenError {
    /// Returns the address that cannot be listened on, if the system gave an error for one.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.system.as_ref().map(|(address, _)| *address)
    }

    /// Returns the code of the error: that of the system for the three that programs act on.
    fn code(&self) -> &'static str {
        match self.system.as_ref().map(|(_, error)| error.kind()) {
            Some(io::ErrorKind::AddrInUse) => "EADDRINUSE",
            Some(io::ErrorKind::AddrNotAvailable) => "EADDRNOTAVAIL",
            Some(io::ErrorKind::PermissionDenied) => "EACCES",
            _ => "ZONDA_SERVER",
        }
    }
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for ListenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.system.as_ref().map(|(_, error)| error as _)
    }
}

/// Why a server cannot start, or had to stop.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// A socket could not be had; the text says at which address, why, and what to do.
    Listen(ListenError),
    /// The sockets of the former server could not be had; the text says why, and what to do.
    HandOver(String),
    /// The system allows fewer open descriptors than any server needs; the text has the numbers.
    Descriptors(String),
    /// The rights of root could not be given up; the text says why.
    Privileges(String),
    /// The metrics or the admin interface could not be started; the text says why.
    Admin(String),
    /// Another server uses the journal of writable zones; the text says which.
    State(String),
    /// The runtime or a thread could not be started.
    Start(io::Error),
    /// A worker failed too often; the text is its name.
    Worker(String),
    /// These threads had ended before the server was told to stop.
    Down(Vec<String>),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen(error) => error.fmt(f),
            Self::HandOver(text)
            | Self::Descriptors(text)
            | Self::Privileges(text)
            | Self::Admin(text)
            | Self::State(text) => f.write_str(text),
            Self::Start(error) => write!(f, "cannot start: {error}"),
            Self::Worker(name) => {
                write!(f, "{name} failed too often; the server has stopped")
            }
            Self::Down(names) => {
                let names = names.join(", ");
                write!(f, "threads that had ended before the stop: {names}; see the log")
            }
        }
    }
}

impl Error for ServeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Listen(error) => error.source(), // its text is this one's
            Self::Start(error) => Some(error),
            _ => None,
        }
    }
}

impl ServeError {
    /// Returns the code of the error, as [`Error::code`](crate::Error::code) does.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Listen(error) => error.code(),
            _ => "ZONDA_SERVER",
        }
    }
}
