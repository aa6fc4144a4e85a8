//! Requests to stop the server.

/// Why the server is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// An administrator wants it.
    Requested,
    /// A successor answers from its sockets.
    TakenOver,
}
