//! Loggers: the user's code that gets every query with its outcome.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use zonda_engine::code::Tags;
use zonda_engine::{Now, Peer, Reason, Reuse};
use zonda_wire::query::flag;
use zonda_wire::{Rcode, Type};

/// Code of the user's that gets every query with its outcome.
///
/// It is called by the thread that has answered the query, which it must not keep: no files, no
/// sockets, no locks that other threads hold for long. A channel is well if sending never waits. A
/// panic is caught and logged.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be used as a logger",
    label = "expected a logger",
    note = "a logger implements `zonda::Logger`, as functions of `&zonda::Event` do"
)]
pub trait Logger: Send + Sync {
    /// Takes note of a query that was answered or dropped.
    fn log(&self, event: &Event<'_>);
}

impl<F: Fn(&Event<'_>) + Send + Sync> Logger for F {
    fn log(&self, event: &Event<'_>) {
        self(event);
    }
}

/// A query that was answered or dropped, as a [`Logger`] gets it.
pub struct Event<'e> {
    /// The time of the reply.
    pub now: Now,
    /// The client that sent the query.
    pub peer: &'e Peer,
    /// The header and the EDNS record of the message, and the type and class asked for. Its former
    /// place for programs, which have methods instead.
    #[doc(hidden)]
    #[deprecated(note = "`qtype`, `dnssec_ok`, `checking_disabled` and `recursion_desired` say \
                         what it says")]
    pub query: &'e zonda_wire::Query,
    /// The name asked for in lower case, wire form; empty if the message has none.
    pub name: &'e [u8],
    /// The response code of the reply; `None` if none was sent.
    pub rcode: Option<Rcode>,
    /// The reason for the reply or its absence.
    pub reason: Reason,
    /// Whether the worker may reuse the reply; `None` if none was sent.
    reuse: Option<Reuse>,
    /// The octets of the reply; 0 if none was sent.
    pub reply_bytes: usize,
    /// The time for which the query waited for upstreams and code; zero for one that was answered
    /// at once, as no clock is read for it.
    pub waited: Duration,
    /// What the user's code has noted about the query. Its former place for programs.
    #[doc(hidden)]
    #[deprecated(note = "it is called `tags()`")]
    pub tags: &'e Tags,
}

impl fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("name", &self.name.escape_ascii().to_string())
            .field("qtype", &self.qtype())
            .field("rcode", &self.rcode)
            .field("reply_bytes", &self.reply_bytes)
            .field("waited", &self.waited)
            .finish_non_exhaustive()
    }
}

impl<'e> Event<'e> {
    /// Makes the event of what the engine reports.
    #[expect(deprecated, reason = "programs may read the fields for one more version")]
    fn new(event: &zonda_engine::Event<'e>) -> Self {
        let zonda_engine::Event { now, peer, query, name, rcode, reason, .. } = *event;
        let zonda_engine::Event { reuse, reply_bytes, waited, tags, .. } = *event;
        Self { now, peer, query, name, rcode, reason, reuse, reply_bytes, waited, tags }
    }

    /// Returns the header and the EDNS record of the message, and the type and class asked for.
    #[expect(deprecated, reason = "programs may read the field for one more version")]
    fn wire(&self) -> &'e zonda_wire::Query {
        self.query
    }

    /// Returns the type asked for; `Type(0)` if the message could not be read so far.
    #[must_use]
    pub fn qtype(&self) -> Type {
        self.wire().qtype
    }

    /// Whether the client asked for DNSSEC records (DO).
    #[must_use]
    pub fn dnssec_ok(&self) -> bool {
        self.wire().dnssec_ok()
    }

    /// Whether the client asked for data that failed DNSSEC validation, too (CD).
    #[must_use]
    pub fn checking_disabled(&self) -> bool {
        self.wire().flags & flag::CD != 0
    }

    /// Whether the client asked for recursion (RD).
    #[must_use]
    pub fn recursion_desired(&self) -> bool {
        self.wire().flags & flag::RD != 0
    }

    /// Returns why the worker makes the reply anew for each such query; nothing if it keeps the
    /// reply in its hot table when it is asked for repeatedly, or if no reply was sent.
    #[must_use]
    pub fn not_reused(&self) -> Option<&'static str> {
        match self.reuse? {
            Reuse::Hot(_) => None,
            Reuse::No(reason) => Some(reason.text()),
        }
    }

    /// Returns what middleware and handlers have noted about the query with
    /// [`Reply::tag`](crate::Reply::tag): keys and values, in the order in which they were noted.
    #[expect(deprecated, reason = "programs may read the field for one more version")]
    pub fn tags(&self) -> impl Iterator<Item = (&'e str, &'e str)> + use<'e> {
        self.tags.iter()
    }
}

/// Makes the server's logger of the user's.
pub(crate) fn adapt(logger: Arc<dyn Logger>) -> Arc<dyn zonda_server::Logger> {
    Arc::new(move |event: &zonda_engine::Event<'_>| logger.log(&Event::new(event)))
}
