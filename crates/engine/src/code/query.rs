//! Queries as the user's code sees them.

use super::pattern::Pattern;
use super::query_state::QueryState;
use crate::message::{Now, Peer, Transport};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;
use zonda_wire::query::{HEADER_BYTES, Query as WireQuery, flag};
use zonda_wire::{Name, SubnetOption, Type};
use zonda_zone::LookupName;

/// Where the name asked for begins in a message.
const NAME_START: usize = HEADER_BYTES;

/// A query as code sees it.
pub struct Query<'a> {
    /// The time. Its former place for programs, which have a method instead.
    #[doc(hidden)]
    #[deprecated(note = "it is called `now()`")]
    pub now: Now,
    /// When the query was received; nanoseconds of the monotonic clock.
    pub(super) received_nanos: u64,
    /// The client, and the way in which it asks.
    pub(super) peer: &'a Peer,
    /// The header and the EDNS record of the message, and the type and class asked for. Its former
    /// place for programs, which have methods instead.
    #[doc(hidden)]
    #[deprecated(note = "`qtype`, `dnssec_ok`, `recursion_desired`, `checking_disabled` and \
                         `udp_size` say what it says")]
    pub query: &'a WireQuery,
    /// The name asked for, in lower case. Its former place for programs, which have a method
    /// instead.
    #[doc(hidden)]
    #[deprecated(note = "it is called `name()`")]
    pub name: &'a LookupName,
    /// The message as it came; octets without meaning may follow it.
    pub(super) message: &'a [u8],
    /// The network for which a resolver asks, if that is believed.
    pub(super) client_subnet: Option<SubnetOption>,
    /// Whether something was read that other clients may have otherwise.
    pub(super) saw_client: Cell<bool>,
    /// The values that code has left for the code behind it.
    pub(super) state: RefCell<QueryState>,
    /// The pattern of the route that was taken; none in middleware for all names. Its former place
    /// for programs, which have a method instead.
    #[doc(hidden)]
    #[deprecated(note = "it is called `pattern()`")]
    pub pattern: Option<&'a Pattern>,
}

impl fmt::Debug for Query<'_> {
    /// Writes what does not differ between clients.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query")
            .field("name", &format_args!("{}", self.name()))
            .field("qtype", &self.qtype())
            .field("pattern", &self.pattern().map(Pattern::as_str))
            .finish_non_exhaustive()
    }
}

impl<'a> Query<'a> {
    /// Whether code has read data of the query that differ between clients.
    pub(crate) fn saw_client(&self) -> bool {
        self.saw_client.get()
    }

    /// Returns the header and the EDNS record of the message, and the type and class asked for.
    #[expect(deprecated, reason = "programs may read the field for one more version")]
    pub(super) fn wire(&self) -> &'a WireQuery {
        self.query
    }

    /// Returns the name asked for, in lower case.
    #[must_use]
    #[expect(deprecated, reason = "programs may read the field for one more version")]
    pub fn name(&self) -> &'a LookupName {
        self.name
    }

    /// Returns the name asked for as the client has sent it, in upper and lower case; in lower case
    /// in [`Stage::after`](super::Stage::after). As [`peer`](Self::peer): clients choose the
    /// letters by chance.
    #[must_use]
    pub fn original_name(&self) -> Name {
        self.saw_client.set(true);
        let name = self.name().as_wire();
        let sent = self.message.get(NAME_START..NAME_START + name.len());
        let sent = sent.filter(|sent| sent.eq_ignore_ascii_case(name)).unwrap_or(name);
        Name::from_wire(sent).unwrap_or_else(|_| Name::root()) // both are names
    }

    /// Returns the type asked for.
    #[must_use]
    pub fn qtype(&self) -> Type {
        self.wire().qtype
    }

    /// Whether the client asks for DNSSEC records (DO).
    #[must_use]
    pub fn dnssec_ok(&self) -> bool {
        self.wire().dnssec_ok()
    }

    /// Whether the client asks for data that failed DNSSEC validation, too (CD).
    #[must_use]
    pub fn checking_disabled(&self) -> bool {
        self.wire().flags & flag::CD != 0
    }

    /// Whether the client asks for recursion (RD); as [`peer`](Self::peer).
    #[must_use]
    pub fn recursion_desired(&self) -> bool {
        self.saw_client.set(true);
        self.wire().flags & flag::RD != 0
    }

    /// Returns the octets of the largest UDP message that the client takes, if its query has an
    /// EDNS record (rfc6891#6.2.3); as [`peer`](Self::peer).
    #[must_use]
    pub fn udp_size(&self) -> Option<u16> {
        self.saw_client.set(true);
        self.wire().edns.map(|edns| edns.udp_bytes)
    }

    /// Returns the time, which no clock is read for. A query that was deferred was received before.
    #[must_use]
    #[expect(deprecated, reason = "programs may read the field for one more version")]
    pub fn now(&self) -> Now {
        self.now
    }

    /// Returns how long ago the query was received: what it has waited for upstreams and other
    /// code. A query that is answered at once has waited for neither, and no clock is read for it.
    #[must_use]
    pub fn waited(&self) -> Duration {
        Duration::from_nanos(self.now().monotonic_nanos.saturating_sub(self.received_nanos))
    }

    /// Returns the client, and how it asks. A reply of code that reads this is cached only if
    /// [`Reply::cache`](super::Reply::cache) limits that to the client or to its network.
    #[must_use]
    pub fn peer(&self) -> &'a Peer {
        self.saw_client.set(true);
        self.peer
    }

    /// Returns the transport that the query came by; as [`peer`](Self::peer).
    #[must_use]
    pub fn transport(&self) -> Transport {
        self.peer().transport
    }

    /// The client's address and port; as [`peer`](Self::peer).
    #[must_use]
    pub fn client(&self) -> SocketAddr {
        self.peer().address
    }

    /// The message as it came, and perhaps octets without meaning behind it; as
    /// [`peer`](Self::peer). Empty in [`Stage::after`](super::Stage::after).
    #[must_use]
    pub fn message(&self) -> &'a [u8] {
        self.saw_client.set(true);
        self.message
    }

    /// The options of the query's EDNS record: codes and data (rfc6891#6.1.2); as
    /// [`peer`](Self::peer). None in [`Stage::after`](super::Stage::after).
    pub fn options(&self) -> impl Iterator<Item = (u16, &'a [u8])> {
        self.saw_client.set(true);
        self.wire().options(self.message)
    }

    /// Returns octets that are the same for queries which code answers alike, if it has not read
    /// the client's data: name, type, and whether the client wants DNSSEC records (DO) and checks
    /// them itself (CD).
    #[must_use]
    pub fn cache_key(&self) -> Vec<u8> {
        let marks = u8::from(self.dnssec_ok()) | u8::from(self.checking_disabled()) << 1;
        [&self.qtype().0.to_be_bytes()[..], &[marks], self.name().as_wire()].concat()
    }

    /// Returns the pattern of the route that the query was taken by, or of the middleware that sees
    /// it; none in middleware for all names.
    #[must_use]
    #[expect(deprecated, reason = "programs may read the field for one more version")]
    pub fn pattern(&self) -> Option<&'a Pattern> {
        self.pattern
    }

    /// Returns the labels that the pattern captured, the first one first: the name under which each
    /// was captured, and the label in lower case.
    pub fn params(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + use<'a> {
        let name = self.name();
        self.pattern().into_iter().flat_map(move |pattern| pattern.captures(name))
    }

    /// Returns the label that the pattern captured under a name, in lower case.
    #[must_use]
    pub fn capture(&self, word: &str) -> Option<&'a [u8]> {
        self.params().find(|(captured, _)| *captured == word).map(|(_, label)| label)
    }
}
