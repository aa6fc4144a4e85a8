//! Why the server of an app cannot run.

use std::{fmt, io};

/// Why a server cannot start, or had to stop.
#[derive(Debug)]
pub enum ServeError {
    /// A socket could not be had; the text says at which address, why, and what to do.
    Listen(String),
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
            Self::Listen(text)
            | Self::HandOver(text)
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

impl std::error::Error for ServeError {}
