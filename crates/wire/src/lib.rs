//! DNS messages: names, codes, record data, queries and replies.
//!
//! Deliberately absent: sockets, clocks, allocation on the answer path, and any policy.

pub mod code;
pub mod name;

pub use code::{Class, Ede, Opcode, Rcode, Type};
pub use name::{Name, NameError};
