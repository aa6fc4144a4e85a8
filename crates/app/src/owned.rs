//! A query that outlives the call that brings it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use zonda_deferral::Deferred;
use zonda_engine::Transport;
use zonda_engine::code::Pattern;
use zonda_wire::name::labels;
use zonda_wire::query::flag;
use zonda_wire::{ClientSubnet, Cookie, Name, Query, Type};

/// Where the name asked for begins in a message: behind the header.
const NAME_START: usize = 12;

/// A query that asynchronous code may hold for as long as it needs.
#[derive(Clone, Debug)]
pub struct OwnedQuery {
    message: Arc<[u8]>,
    query: Query,
    /// The name asked for, in lower case.
    name: Name,
    client: SocketAddr,
    transport: Transport,
    /// Pattern of the route that the query was taken by; `None` in middleware.
    pattern: Option<Arc<Pattern>>,
    /// Whether code has read data which differ between clients, from the query or from a clone.
    saw_client: Arc<AtomicBool>,
}

impl OwnedQuery {
    /// Makes the query of a deferred one; `None` if the message is no query, which workers never
    /// defer.
    pub(crate) fn new(deferred: &Deferred) -> Option<Self> {
        let query = Query::parse(&deferred.query).ok()?;
        let end = usize::from(query.name_end);
        let name = Name::from_wire(deferred.query.get(NAME_START..end)?).ok()?.to_lowercase();
        Some(Self {
            message: deferred.query.as_slice().into(),
            query,
            name,
            client: deferred.peer.address,
            transport: deferred.peer.transport,
            pattern: None,
            saw_client: Arc::default(),
        })
    }

    /// Notes that code reads data which differ between clients.
    fn note_client(&self) {
        self.saw_client.store(true, Ordering::Relaxed);
    }

    /// Returns what becomes true when code reads data which differ between clients.
    pub(crate) fn saw_client(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.saw_client)
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

    /// Returns the name asked for as the client has sent it, in upper and lower case.
    #[must_use]
    pub fn original_name(&self) -> Name {
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

    /// Returns the label that the route's pattern captured under a name, in lower case.
    #[must_use]
    pub fn capture(&self, word: &str) -> Option<&[u8]> {
        let captured = self.pattern.as_ref()?.captured_label(self.name.as_wire(), word)?;
        labels(self.name.as_wire()).find(|label| **label == *captured) // or one that is equal
    }

    /// Returns the labels that the route's pattern captured, the first one first, in lower case.
    pub(crate) fn captures(&self) -> impl Iterator<Item = &[u8]> {
        let words = self.pattern.iter().flat_map(|pattern| pattern.words());
        words.filter_map(move |word| self.capture(word))
    }
}
