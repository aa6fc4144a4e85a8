//! The upstreams that answer for a zone, as they are configured, and what bounds all of them.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use zonda_cache::{Cache, Policy};
use zonda_client::Connections;
use zonda_engine::UpstreamOptions;
use zonda_upstream::Settings;
use zonda_wire::{Name, name};

use crate::loops::Loops;
use crate::state_log::StateLog;

/// The zone that logs and reports name for upstreams that look up targets of ALIAS records.
const ALIAS_RESOLVER: &str = "alias-resolver";

/// The servers that answer for a zone.
pub struct Group {
    /// The zone's name; its SOA record is what a probe asks for that was answered nothing yet.
    pub apex: Name,
    /// Whether the upstreams look up targets of ALIAS records: they are asked for names of any
    /// zone, and no forwarded zone's upstreams are asked for the rest of a chain that they answer.
    pub is_alias_resolver: bool,
    /// A listener of the zone's [view](zonda_engine::Views), by the listener's place in the
    /// configuration: answers lead to other zones of the view. [`u16::MAX`] if it is of no view.
    pub listener: u16,
    /// The addresses of the view's listeners, as logs and reports have them, if it is of a view.
    pub view: Option<Box<str>>,
    /// The upstreams of the zone; at least one.
    pub servers: Vec<Server>,
    /// The rules by which an upstream is chosen, and how long things may take.
    pub settings: Settings,
    /// How the upstreams are asked over UDP.
    pub manner: Manner,
    /// EDNS options of each query.
    pub options: Arc<UpstreamOptions>,
    /// How long their answers are kept.
    pub policy: Policy,
    /// The cache that their answers go into.
    pub cache: Arc<Cache>,
    /// Upstreams that lead back to this server.
    pub loops: Loops,
    /// The state of the upstreams that the log has reported last.
    pub state_log: Arc<StateLog>,
    /// If their answers must not hold private addresses: the names that may have some.
    pub private_names: Option<Vec<Name>>,
}

/// How servers are asked over UDP.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Octets of the largest answer that is asked for, 512 to 4096.
    pub udp_bytes: u16,
    /// Ports of each thread to each address that are open at a time; at least 1.
    pub ports_max: u16,
    /// Queries that leave from the same port if they are sent together, at least 1; more only where
    /// ports are scarce.
    pub port_queries_max: u32,
}

impl Group {
    /// The zone in the words of logs and reports: its name, with the listeners of its view if it is
    /// of one, or the key of the resolver for ALIAS records.
    pub fn label(&self) -> String {
        match &self.view {
            _ if self.is_alias_resolver => ALIAS_RESOLVER.to_owned(),
            Some(listeners) => format!("{} at {listeners}", self.apex),
            None => self.apex.to_string(),
        }
    }

    /// Whether a name may have private addresses.
    pub(crate) fn may_be_private(&self, name: &[u8]) -> bool {
        let holds =
            |names: &Vec<Name>| names.iter().any(|it| name::is_at_or_below(name, it.as_wire()));
        self.private_names.as_ref().is_none_or(holds)
    }
}

/// An upstream, as all forwarder threads see it.
#[derive(Clone)]
pub struct Server {
    /// The upstream as the configuration writes it.
    pub name: Arc<str>,
    /// The upstream is asked over UDP, and over connections only what was truncated.
    pub over_udp: bool,
    /// The upstream is believed when it says that it has validated an answer.
    pub is_trusted: bool,
    /// The upstream's addresses, and the connections to it.
    pub connections: Arc<Connections>,
}

impl Server {
    /// Returns the upstream's address; nothing while its name was resolved to none.
    pub fn address(&self) -> Option<SocketAddr> {
        self.connections.address()
    }
}

/// All groups.
#[derive(Default)]
pub struct Groups {
    /// The groups by the number of their [`Forward`](zonda_engine::zones::Forward). Groups that
    /// have the same number, one after the other, have the same upstreams.
    pub by_number: HashMap<u32, Arc<Group>>,
    /// How much is taken on for all of them.
    pub bounds: Bounds,
}

/// How much is taken on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Queries that wait at once, at least 1. Even if each of the default is asked as often as can
    /// be, that is less than upstreams take by default, so that this bound bites before theirs: it
    /// drops the oldest, they refuse all.
    pub waiting_max: u32,
    /// Queries that wait for the same answer at once, at least 1: dropping the oldest of all
    /// searches these.
    pub waiting_per_answer_max: u32,
    /// Answers of upstreams that one answer is put together of, at least 1. Each has up to 16
    /// links.
    pub chain_max: u8,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { waiting_max: 16_384, waiting_per_answer_max: 1024, chain_max: 8 }
    }
}

impl Bounds {
    /// What one of so many threads takes on: names are shared out among them equally, but all
    /// queries for the same answer wait for the same thread.
    pub(crate) fn share(self, threads: u32) -> Self {
        let waiting_max = self.waiting_max.div_ceil(threads);
        let waiting_per_answer_max = self.waiting_per_answer_max.min(waiting_max);
        Self { waiting_max, waiting_per_answer_max, ..self }
    }

    /// Fetches at once. Fetches for which no query waits any more go on for a while, so that they
    /// can be more than the queries that wait.
    pub(crate) fn fetches_max(self) -> usize {
        4 * self.waiting_max as usize
    }
}
