//! Queries to other servers over connections: TCP, TLS.
//!
//! | file | what |
//! |---|---|
//! | `target` | the server that is queried, and its transport |
//! | `tls` | which certificates are trusted, and what is stored to resume sessions |
//! | `pool` | the connections to one server: reused, opened, counted |
//! | `session` | one connection, whatever its transport |
//! | `stream` | TCP and TLS: many queries at a time over one stream |
//! | `https` | HTTPS: many queries at a time over one HTTP/2 connection |
//! | `quic` | QUIC: a stream for each query |
//! | `doq` | what such a stream carries |
//! | `usage` | how a connection is used, and whether it seems to be dead |
//! | `intake` | how much a server may send beyond its answers |
//! | `verdict` | the last check of a server's certificate |
//! | `fault` | why a query over a connection has no answer |
//!
//! Everything runs on the caller's tokio runtime. A message goes in and comes out with the caller's
//! id; which id it has on its way is the session's business.
//!
//! Deliberately absent: whether an answer is accepted, which other server to query, and when to
//! repeat.

pub mod doq;
mod fault;
mod https;
mod intake;
mod pool;
mod quic;
mod session;
mod stream;
mod target;
mod tls;
mod usage;
mod verdict;

pub use fault::{Distrust, Fault, Flood};
pub use pool::{Connections, Counts, Limits};
pub use session::Session;
pub use target::{Protocol, Target, Url};
pub use tls::{Pin, Tls, TlsError, Trust};
