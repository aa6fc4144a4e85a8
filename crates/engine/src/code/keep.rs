//! For how long, and to which clients, a reply of code may be given again.

use super::reply::Reply;

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

impl Reply {
    /// Adds the looks of other code at the client, which has left the query to the code of this
    /// reply. If one of them has looked and says no scope, all that is told counts.
    #[doc(hidden)]
    pub fn add_looks(&mut self, other: &Self) {
        let says_nothing = |reply: &Self| reply.saw_client && reply.scope.is_none();
        self.scope = match says_nothing(self) || says_nothing(other) {
            true => None,
            false => self.scope.max(other.scope),
        };
        self.saw_client |= other.saw_client;
    }

    /// Returns the number of bits of the client's network that the reply depends on, of which the
    /// query tells so many.
    pub(crate) fn scope_of(&self, told_bits: u8) -> u8 {
        let varies = self.keep.is_some_and(|keep| keep.vary != Vary::Nothing);
        match self.scope {
            Some(scope) => scope,
            None if self.saw_client || varies => told_bits,
            None => 0,
        }
    }
}
