//! Why a server could not start, or ended.

use crate::edit::journal::InUse;
use crate::failed_zones::{FailedZone, failed_text};
use crate::handover::HandOverError;
use crate::listen::ListenError;
use crate::node_local::NodeLocalError;
use crate::rights::TooFewDescriptors;
use std::fmt;
use std::io;
use zonda_netio::privileges::PrivilegeError;

/// Why the server could not start, or ended.
#[derive(Debug)]
pub enum ServeError {
    /// A socket could not be had.
    Listen(ListenError),
    /// The interface of a node's own DNS cache could not be had.
    NodeLocal(NodeLocalError),
    /// The sockets of the former server could not be had.
    HandOver(HandOverError),
    /// The system allows fewer open descriptors than any server needs.
    Descriptors(TooFewDescriptors),
    /// The rights of root could not be given up.
    Privileges(PrivilegeError),
    /// The admin interface could not be started.
    Admin(String),
    /// Zones without which a program does not start could not be loaded.
    Zones(Vec<FailedZone>),
    /// Another server uses the journal of writable zones.
    State(InUse),
    /// The runtime or a thread could not be started.
    Start(io::Error),
    /// A worker gave up.
    Worker(String),
    /// The server was told to stop, and these threads had ended before.
    Down(Vec<String>),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen(error) => error.fmt(f),
            Self::NodeLocal(error) => error.fmt(f),
            Self::HandOver(error) => error.fmt(f),
            Self::Descriptors(error) => error.fmt(f),
            Self::Privileges(error) => error.fmt(f),
            Self::Admin(error) => f.write_str(error),
            Self::Zones(failed) => f.write_str(&failed_text(failed)),
            Self::State(error) => f.write_str(&error.0),
            Self::Start(error) => write!(f, "cannot start: {error}"),
            Self::Worker(name) => {
                write!(f, "{name} failed too often; the process ends to be restarted")
            }
            Self::Down(names) => {
                let names = names.join(", ");
                write!(f, "threads that had ended before the stop: {names}; see the log")
            }
        }
    }
}

impl std::error::Error for ServeError {}

impl From<io::Error> for ServeError {
    /// Errors of the system while the parts of the server are started.
    fn from(error: io::Error) -> Self {
        Self::Start(error)
    }
}
