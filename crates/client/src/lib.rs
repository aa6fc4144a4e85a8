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
//! | `no_tls` | all that is encrypted, in a program without the feature `encrypted` |
//! | `fault` | why a query over a connection has no answer |
//!
//! Everything runs on the caller's tokio runtime. A message goes in and comes out with the caller's
//! id; which id it has on its way is the session's business.
//!
//! Deliberately absent: whether an answer is accepted, which other server to query, and when to
//! repeat.

#![cfg_attr(
    not(feature = "encrypted"),
    allow(dead_code, reason = "TCP needs less than HTTPS and QUIC")
)]

pub mod doq;
mod fault;
#[cfg(feature = "encrypted")]
mod https;
mod intake;
mod pool;
#[cfg(feature = "encrypted")]
mod quic;
mod session;
mod stream;
mod target;
#[cfg(feature = "encrypted")]
mod tls;
#[cfg(not(feature = "encrypted"))]
#[path = "no_tls.rs"]
mod tls;
#[cfg(feature = "encrypted")]
mod usage;
#[cfg(feature = "encrypted")]
mod verdict;

pub use fault::{Distrust, Fault, Flood};
pub use pool::{Connections, Counts, Limits};
pub use session::Session;
pub use target::{Protocol, Target, Url};
pub use tls::{Pin, Tls, TlsError, Trust};
