//! A query that outlives the call that brings it.

use std::net::SocketAddr;
use std::sync::Arc;
use zonda_engine::Transport;
use zonda_engine::handlers::Pattern;
use zonda_transport::Deferred;
use zonda_wire::{Name, Query, Type};

/// A query that asynchronous code keeps for as long as it needs.
#[derive(Clone, Debug)]
pub struct OwnedQuery {
    message: Arc<[u8]>,
    query: Query,
    name: Name,
    client: SocketAddr,
    transport: Transport,
    /// Of the route that was taken; none in middleware.
    pattern: Option<Arc<Pattern>>,
}

impl OwnedQuery {
    /// Of a query that waits; nothing if it is none, which workers do not let wait.
    pub(crate) fn new(deferred: &Deferred) -> Option<Self> {
        let query = Query::parse(&deferred.query).ok()?;
        let end = usize::from(query.name_end);
        let name = Name::from_wire(deferred.query.get(12..end)?).ok()?;
        Some(Self {
            message: deferred.query.as_slice().into(),
            query,
            name,
            client: deferred.peer.address,
            transport: deferred.peer.transport,
            pattern: None,
        })
    }

    /// The same on the route of a pattern.
    pub(crate) fn on(self, pattern: &Arc<Pattern>) -> Self {
        Self { pattern: Some(Arc::clone(pattern)), ..self }
    }

    /// The name asked for, in the case it came in.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The type asked for.
    #[must_use]
    pub fn qtype(&self) -> Type {
        self.query.qtype
    }

    /// The client's address and port.
    #[must_use]
    pub fn client(&self) -> SocketAddr {
        self.client
    }

    /// How it came.
    #[must_use]
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// Whether the client asks for DNSSEC records.
    #[must_use]
    pub fn dnssec_ok(&self) -> bool {
        self.query.dnssec_ok()
    }

    /// The options of its EDNS record: codes and data (rfc6891#6.1.2).
    pub fn options(&self) -> impl Iterator<Item = (u16, &[u8])> {
        self.query.options(&self.message)
    }

    /// The message as it came.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// The label that the route's pattern captured under a name, in lower case.
    #[must_use]
    pub fn capture(&self, word: &str) -> Option<Vec<u8>> {
        self.pattern.as_ref()?.captured_label(self.name.as_wire(), word)
    }
}
