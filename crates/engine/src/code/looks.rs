//! Which clients the code of a reply has told apart.

use super::keep::Vary;
use super::reply::Reply;

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
