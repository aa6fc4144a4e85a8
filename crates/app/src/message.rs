//! Messages, as [`Running::query`](crate::Running::query) returns them, and their parts.

pub use zonda_wire::message::{Malformed, Message, Opt, Question, Record};
pub use zonda_wire::{Class, Opcode};
