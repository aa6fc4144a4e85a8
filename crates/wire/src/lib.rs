//! DNS messages: names, codes, record data, queries and replies.
//!
//! Deliberately absent: sockets, clocks, allocation on the answer path, and any policy.

mod abridge;
pub mod client;
pub mod code;
pub mod message;
pub mod name;
pub mod query;
pub mod rdata;
pub mod reply;
pub mod response;
pub mod stream;
pub mod stream_message;
pub mod tsig;
pub mod update;

pub use abridge::ABRIDGED_BYTES_MAX;
pub use client::{ClientSubnet, Cookie, SubnetOption};
pub use code::{Class, Ede, Opcode, Rcode, Type};
pub use message::Message;
pub use name::{Name, NameError};
pub use query::{Edns, Fault, Query};
pub use reply::{Full, Owner, Places, Reply, Section};
pub use response::Response;
pub use stream::StreamWriter;
pub use stream_message::{StreamFault, StreamMessage, StreamRecord};
pub use update::{UpdateMessage, UpdateReadError, UpdateRecord};
