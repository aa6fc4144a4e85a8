//! A DNS server as a library: zones, forwarding, and your own code.
//!
//! ```no_run
//! use zonda::{A, App};
//!
//! fn main() -> Result<(), zonda::Error> {
//!     App::new()
//!         .handle("*.example.com/A", || A::new([192, 0, 2, 1]).ttl(60))
//!         .zone("example.org", "example.org.zone")
//!         .listen("127.0.0.1:5300")
//!         .run()
//! }
//! ```
//!
//! [`App`] has all that a server answers from, [`Running`] what a program does with one that runs.
//! Handlers take [values of the query](FromQuery) and of the app ([`State`]), and return
//! [what makes a reply](IntoReply). Methods that wait do so in any runtime; `run` makes one.
//!
//! A query passes, in this order, all middleware, the handler of the most specific route that
//! matches its name, and the zones: those with data of their own and those that are forwarded. The
//! first of them that has an answer gives it.
//!
//! # Routes
//!
//! | pattern | names |
//! |---|---|
//! | `example.org` | this one |
//! | `*.example.org` | all names below this one, at any depth, but not this one |
//! | `*` | all names |
//! | `:user.example.org` | names of one label more; that label is one of [`Captures`] |
//! | `example.org/A\|AAAA` | this one, for questions of these types only |
//!
//! `*` and `:` mean this only at the start of the first and of any label; `\*`, `\:`, `\/` and the
//! escapes of presentation format stand for the characters themselves.
//!
//! If several routes match a name and type, the most specific one is taken. A route is more
//! specific than another one
//!
//! 1. if it has no `*`, and the other one has;
//! 2. if both have `*`, and it has more labels;
//! 3. if it spells out a label that the other one captures, at their first difference from the
//!    right;
//! 4. if it says for which types it is, and the other one does not;
//! 5. if it was added later.
//!
//! A query that no route matches is answered from the zones, as is one whose handler leaves the
//! reply unchanged. If the zones do not have the name either, a name that a route spells out, or
//! matches for other types, exists without data of the type (NODATA), and so do the names above it.
//!
//! # Code in the workers, and asynchronous code
//!
//! [`App::handle`] takes code that runs in a worker, the thread that received the query, and must
//! not delay it: no files, no sockets, no locks that other threads hold for long. A query whose
//! code panics is answered SERVFAIL, and the log names code whose call lasts for a second.
//! [`App::handle_async`] takes code that may wait; a query that it has not answered within
//! [`App::deadline`] is answered SERVFAIL.
//!
//! # Cargo features
//!
//! All but two are on by default. A program with `default-features = false` has handlers,
//! middleware, zones from master files and from text, stores in memory, and upstreams over UDP and
//! TCP; it compiles some 40 crates instead of 120, and none that needs a C compiler. What needs a
//! feature that is left out is an error that names the feature.
//!
//! | feature | what it adds |
//! |---|---|
//! | `server` | [`App::config`], [`App::metrics`], and the three features below |
//! | `encrypted` | upstreams over TLS, HTTPS and QUIC, databases over TLS |
//! | `dnssec` | zones that were signed with NSEC3; those with NSEC need no feature |
//! | `json` | zones in JSON files |
//! | `redb` | a store in a file: `RedbStore` |
//! | `redis` | a store in Redis or Valkey: `RedisStore`; not on by default |
//! | `postgres` | a store in PostgreSQL: `PostgresStore`; not on by default |

#![cfg_attr(test, allow(clippy::unwrap_used))]
#![warn(missing_debug_implementations)]

mod app;
mod asynchronous;
mod client_address;
mod error;
mod from_query;
pub mod handler;
mod into_reply;
mod logger;
pub mod message;
mod owned;
pub mod record;
mod router;
mod routes;
mod running;
mod running_zones;
mod serve_error;
mod start;
pub mod store;
mod zone_file;

pub use app::App;
pub use client_address::ClientAddress;
pub use error::Error;
pub use from_query::{
    AsyncContext, AsyncFromQuery, Captures, Context, Definition, FromQuery, Refusal, State,
};
pub use handler::{AsyncHandler, Handler};
pub use into_reply::{Failure, IntoReply};
pub use logger::{Event, Logger};
pub use owned::OwnedQuery;
pub use record::{
    A, Aaaa, Any, Caa, Cname, DataError, Dname, Dnskey, Ds, Https, Mx, Naptr, Ns, Ptr, Soa, Srv,
    Sshfp, SvcParam, Svcb, Tlsa, Txt, Uri,
};
pub use router::Router;
pub use running::Running;
pub use serve_error::{ListenError, ServeError};
#[cfg(feature = "postgres")]
pub use store::PostgresStore;
#[cfg(feature = "redb")]
pub use store::RedbStore;
#[cfg(feature = "redis")]
pub use store::RedisStore;
pub use store::{MemoryStore, RecordSet, Store};
/// The values that code has left with a query. Errors of the compiler name it.
#[doc(hidden)]
pub use zonda_engine::code::QueryState;
#[doc(inline)]
pub use zonda_engine::code::{
    Cache, Elsewhere, LookupName, NegativeCaching, Pattern, PatternError, Query, Record, Reply,
    Source, Stage, Vary,
};
pub use zonda_engine::{Now, Peer, Reason, Transport};
pub use zonda_server::FailedZone;
pub use zonda_wire::code::UnknownMnemonic;
pub use zonda_wire::{ClientSubnet, Cookie, Ede, Message, Name, NameError, Rcode, Section, Type};
pub use zone_file::{ZoneFile, zone_from_file};

/// Former name of [`DataError`].
#[deprecated(note = "it is called `DataError`")]
pub type TextError = DataError;

#[cfg(doctest)]
#[doc = include_str!("../pages/rust.md.in")]
struct Tutorial;

#[cfg(doctest)]
#[doc = include_str!("../pages/cookbook.md.in")]
struct Cookbook;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/coming-from-dnslib.md")]
struct ComingFromDnslib;

#[cfg(all(doctest, feature = "redb", feature = "redis", feature = "postgres"))]
#[doc = include_str!("../pages/stores.md.in")]
struct Stores;
