//! For how long, and to which clients, a reply of code may be given again.

/// How long an answer may be given again, and to which clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// How long an answer may be given again, seconds.
    pub ttl_secs: u32,
    /// The facts that must be alike in the queries that get the answer.
    pub vary: Vary,
}

/// The facts that an answer depends on besides the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Vary {
    /// The answer depends on nothing but the question: it is for every client.
    Nothing = 0,
    /// The client's address, and the network that it tells (rfc7871), if it tells one.
    Client = 1,
    /// The client's network, which are the first 24 bits of an IPv4, 56 bits of an IPv6 address,
    /// and the one that it tells.
    Subnet = 2,
}

impl Vary {
    /// All of them, in the order in which they are tried.
    pub(super) const ALL: [Self; 3] = [Self::Nothing, Self::Client, Self::Subnet];
}
