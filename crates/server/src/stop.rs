//! Requests to stop the server.

/// Why the server is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// An administrator has asked the server to stop.
    Requested,
    /// A successor answers from the sockets of this process.
    TakenOver,
}
