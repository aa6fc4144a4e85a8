//! How code ends a query, and what keeps it from saying so.

use super::elsewhere::Elsewhere;
use std::fmt::{self, Display};

/// The end that code gives to a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// The query goes on as it would without the code.
    #[default]
    PassOn,
    /// The draft is the reply.
    Reply,
    /// There is no reply.
    Drop,
    /// Code elsewhere is to answer.
    Defer(Elsewhere),
}

/// A record more would make a reply longer than a message can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overfull;

impl Display for Overfull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a reply has at most 65,535 octets")
    }
}

impl std::error::Error for Overfull {}
