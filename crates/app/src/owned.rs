//! A query that outlives the call that brings it.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zonda_deferral::Deferred;
use zonda_engine::Transport;
use zonda_engine::code::{Pattern, QueryState};
use zonda_wire::name::labels;
use zonda_wire::query::flag;
use zonda_wire::{ClientSubnet, Cookie, Name, Query, Type};

/// Where the name asked for begins in a message: behind the header.
const NAME_START: usize = 12;

/// A query that asynchronous code may hold for as long as it needs.
#[derive(Clone)]
pub struct OwnedQuery {
    message: Arc<[u8]>,
    query: Query,
    /// The name asked for, in lower case.
    name: Name,
    client: SocketAddr,
    transport: Transport,
    /// Pattern of the route that the query was taken by; `None` in middleware.
    pattern: Option<Arc<Pattern>>,
    /// What code does with the query, or with a clone of it.
    notes: Arc<Notes>,
}

/// What asynchronous code does with a query, besides its reply.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Whether code has read data which differ between clients.
    saw_client: AtomicBool,
    /// The values that code has left for the code behind it.
    state: Mutex<QueryState>,
}

impl Notes {
    /// Returns whether code has read data which differ between clients, and forgets it.
    pub(crate) fn take_saw_client(&self) -> bool {
        self.saw_client.swap(false, Ordering::Relaxed)
    }

    /// Returns the values that code has left with the query.
    pub(crate) fn state(&self) -> QueryState {
        self.lock().clone()
    }

    /// Locks the values, which are whole after any panic.
    fn lock(&self) -> MutexGuard<'_, QueryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for OwnedQuery {
    /// Writes what does not differ between clients.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedQuery")
            .field("name", &self.name)
            .field("qtype", &self.qtype())
            .field("pattern", &self.pattern().map(Pattern::as_str))
            .finish_non_exhaustive()
    }
}

impl OwnedQuery {
    /// Makes the query of a deferred one; `None` if the message is no query, which workers never
    /// defer.
    pub(crate) fn new(deferred: &Deferred) -> Option<Self> {
        let query = Query::parse(&deferred.query).ok()?;
        let end = usize::from(query.name_end);
        let name = Name::from_wire(deferred.query.get(NAME_START..end)?).ok()?.to_lowercase();
        let state = deferred.deferral.history.state.clone();
        Some(Self {
            message: deferred.query.as_slice().into(),
            query,
            name,
            client: deferred.peer.address,
            transport: deferred.peer.transport,
            pattern: None,
            notes: Arc::new(Notes { state: Mutex::new(state), ..Notes::default() }),
        })
    }

    /// Notes that code reads data which differ between clients.
    fn note_client(&self) {
        self.notes.saw_client.store(true, Ordering::Relaxed);
    }

    /// Returns what code does with the query besides its reply.
    pub(crate) fn notes(&self) -> Arc<Notes> {
        Arc::clone(&self.notes)
    }

    /// Leaves a value for the code behind this one, in place of one of the same type, as
    /// [`Query::set_state`](crate::Query::set_state) does.
    pub fn set_state<T: Send + Sync + 'static>(&self, value: T) {
        self.notes.lock().set(value);
    }

    /// Returns the value of a type that [`set_state`](Self::set_state) has left, if there is one;
    /// as [`client`](Self::client), as it may be the client's.
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.note_client();
        self.notes.lock().get()
    }

    /// Sets the pattern of the route that the query was taken by.
    pub(crate) fn on(self, pattern: &Arc<Pattern>) -> Self {
        Self { pattern: Some(Arc::clone(pattern)), ..self }
    }

    /// Returns the name asked for, in lower case.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Returns the name asked for as the client has sent it, in upper and lower case; as
    /// [`client`](Self::client), as clients choose the letters by chance.
    #[must_use]
    pub fn original_name(&self) -> Name {
        self.note_client();
        let sent = self.message.get(NAME_START..usize::from(self.query.name_end));
        let sent = sent.and_then(|wire| Name::from_wire(wire).ok());
        sent.unwrap_or_else(|| self.name.clone()) // `new` has read it
    }

    /// Returns the type asked for.
    #[must_use]
    pub fn qtype(&self) -> Type {
        self.query.qtype
    }

    /// Returns the client's address and port. A reply of code that reads this is cached only
    /// if [`Reply::cache`](crate::Reply::cache) limits that to the client or to its network.
    #[must_use]
    pub fn client(&self) -> SocketAddr {
        self.note_client();
        self.client
    }

    /// Returns the transport that the query came by; as [`client`](Self::client).
    #[must_use]
    pub fn transport(&self) -> Transport {
        self.note_client();
        self.transport
    }

    /// Whether the client asks for DNSSEC records (DO).
    #[must_use]
    pub fn dnssec_ok(&self) -> bool {
        self.query.dnssec_ok()
    }

    /// Whether the client asks for data that failed DNSSEC validation, too (CD).
    #[must_use]
    pub fn checking_disabled(&self) -> bool {
        self.query.flags & flag::CD != 0
    }

    /// Whether the client asks for recursion (RD); as [`client`](Self::client).
    #[must_use]
    pub fn recursion_desired(&self) -> bool {
        self.note_client();
        self.query.flags & flag::RD != 0
    }

    /// Returns the octets of the largest UDP message that the client takes, if its query has an
    /// EDNS record (rfc6891#6.2.3); as [`client`](Self::client).
    #[must_use]
    pub fn udp_size(&self) -> Option<u16> {
        self.note_client();
        self.query.edns.map(|edns| edns.udp_bytes)
    }

    /// Returns the options of the query's EDNS record: codes and data (rfc6891#6.1.2); as
    /// [`client`](Self::client).
    pub fn options(&self) -> impl Iterator<Item = (u16, &[u8])> {
        self.note_client();
        self.query.options(&self.message)
    }

    /// Returns the network for which a resolver asks (rfc7871), if the configuration has the
    /// server believe that resolver; as [`client`](Self::client). The reply repeats it with the
    /// [scope](crate::Reply::client_subnet_scope) that the code says.
    #[must_use]
    pub fn client_subnet(&self) -> Option<ClientSubnet> {
        self.query.client_subnet(self.message())
    }

    /// Returns the DNS cookies of the client and, from a former reply, of the server (rfc7873); as
    /// [`client`](Self::client).
    #[must_use]
    pub fn cookie(&self) -> Option<Cookie<'_>> {
        self.query.cookie(self.message())
    }

    /// Returns the message as it came; as [`client`](Self::client). A message of more than 4,096
    /// octets, which only TCP brings, lacks padding, all records but OPT, and options beyond that
    /// length.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        self.note_client();
        &self.message
    }

    /// Returns the pattern of the route that the query was taken by, or of the middleware that sees
    /// it; none in middleware for all names, and in code without a route.
    #[must_use]
    pub fn pattern(&self) -> Option<&Pattern> {
        self.pattern.as_deref()
    }

    /// Returns the labels that the pattern captured, the first one first: the name under which each
    /// was captured, and the label in lower case.
    pub fn params(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let words = self.pattern.iter().flat_map(|pattern| pattern.words());
        words.filter_map(move |word| Some((word, self.capture(word)?)))
    }

    /// Returns the label that the pattern captured under a name, in lower case.
    #[must_use]
    pub fn capture(&self, word: &str) -> Option<&[u8]> {
        let captured = self.pattern.as_ref()?.captured_label(self.name.as_wire(), word)?;
        labels(self.name.as_wire()).find(|label| **label == *captured) // or one that is equal
    }
}
