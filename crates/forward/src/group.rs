//! The servers that answer for a zone: as they are configured, and as one thread knows them; and
//! what bounds all of them together.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

use zonda_cache::{Cache, Policy};
use zonda_client::Connections;
use zonda_upstream::{Admission, Member, Pool, Settings, Ticket};
use zonda_wire::{Name, Rcode, Type, name};

use crate::fetch::FetchId;
use crate::loops::Loops;
use crate::random;
use crate::state_log::{SeenState, StateLog};

/// The servers that answer for a zone.
pub struct Group {
    /// The zone's name; its SOA record is what a probe asks for that was answered nothing yet.
    pub apex: Name,
    /// They; at least one.
    pub servers: Vec<Server>,
    /// Whom of them to ask, and how long things may take.
    pub settings: Settings,
    /// How they are asked over UDP.
    pub manner: Manner,
    /// How long their answers are kept.
    pub policy: Policy,
    /// Where.
    pub cache: Arc<Cache>,
    /// Which of them lead back to this server.
    pub loops: Loops,
    /// What the log has said of them.
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
    /// Whether a name may have private addresses.
    pub(crate) fn may_be_private(&self, name: &[u8]) -> bool {
        let holds =
            |names: &Vec<Name>| names.iter().any(|it| name::is_at_or_below(name, it.as_wire()));
        self.private_names.as_ref().is_none_or(holds)
    }
}

/// A server, as all threads see it.
#[derive(Clone)]
pub struct Server {
    /// As the configuration writes it.
    pub name: Arc<str>,
    /// It is asked over UDP, and over connections only what was truncated.
    pub over_udp: bool,
    /// It is believed when it says that it has validated an answer.
    pub is_trusted: bool,
    /// Where it is, and the connections to it.
    pub connections: Arc<Connections>,
}

impl Server {
    /// Where it is; nothing while its name is not known to any address.
    pub fn address(&self) -> Option<SocketAddr> {
        self.connections.address()
    }
}

/// All groups.
#[derive(Default)]
pub struct Groups {
    /// By the number of their [`Forward`](zonda_engine::zones::Forward). Groups that have the same
    /// number, one after the other, have the same upstreams.
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
    /// Those of them that wait for the same answer, at least 1: dropping the oldest of all searches
    /// these.
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
    /// What one of so many threads takes on: names are shared out among them equally, but all who
    /// want the same answer wait for the same thread.
    pub(crate) fn share(self, threads: u32) -> Self {
        let waiting_max = self.waiting_max.div_ceil(threads);
        let waiting_per_answer_max = self.waiting_per_answer_max.min(waiting_max);
        Self { waiting_max, waiting_per_answer_max, ..self }
    }

    /// Fetches at once. Those that nobody waits for any more go on for a while, so that they can be
    /// more than the queries that wait.
    pub(crate) fn fetches_max(self) -> usize {
        4 * self.waiting_max as usize
    }
}

/// How long a question is held that an upstream has answered, before another one takes its place;
/// nanoseconds.
const PROOF_NANOS: u64 = 1_000_000_000;

/// A question that an upstream has answered.
#[derive(Clone, Debug)]
struct Proof {
    /// In wire form.
    name: Box<[u8]>,
    qtype: Type,
    /// When; nanoseconds of the monotonic clock.
    at: u64,
}

/// A group as one thread knows it.
pub struct KnownGroup {
    /// As it is configured.
    pub group: Arc<Group>,
    /// What is known of each upstream.
    pub pool: Pool,
    /// How many of the answers of each upstream had which response code.
    pub rcodes: Vec<BTreeMap<u16, u64>>,
    /// How each upstream was when the log was last told.
    pub(crate) views: Vec<SeenState>,
    /// What each upstream has answered.
    proofs: Vec<Option<Proof>>,
    /// For whom its upstreams are asked.
    line: Admission,
    /// What each place in that line is or was for.
    in_line: Vec<FetchId>,
    /// When the next probe is due, as far as a timer is set for it.
    pub probe_at: Option<u64>,
}

impl KnownGroup {
    /// One of which nothing is known yet, for one of so many threads.
    pub fn new(group: Arc<Group>, threads: u32) -> Self {
        let members = group.servers.iter().map(|server| {
            Member::new(!server.over_udp, random::secret()) // rfc7873#4.1
        });
        let pool = Pool::new(members.collect(), group.settings.share(threads));
        let rcodes = vec![BTreeMap::new(); pool.members.len()];
        let proofs = vec![None; pool.members.len()];
        let views = vec![SeenState::UP; pool.members.len()];
        let (line, in_line) = (Admission::new(u32::MAX), Vec::new());
        Self { group, pool, rcodes, views, proofs, line, in_line, probe_at: None }
    }

    /// Takes note of what an upstream has answered, so that it can be asked that to see whether it
    /// is back; once a second, as this costs memory.
    pub fn answered(&mut self, place: usize, name: &[u8], qtype: Type, now: u64) {
        let known = &mut self.proofs[place];
        if known.as_ref().is_none_or(|known| now.saturating_sub(known.at) >= PROOF_NANOS) {
            *known = Some(Proof { name: name.into(), qtype, at: now });
        }
    }

    /// A question that an upstream has answered last, or nearly so: name and type.
    pub fn proof(&self, place: usize) -> Option<(&[u8], Type)> {
        self.proofs[place].as_ref().map(|proof| (&*proof.name, proof.qtype))
    }

    /// Follows a group with the same upstreams that is configured otherwise; what is known of them
    /// stays.
    pub fn follow(&mut self, group: &Arc<Group>, threads: u32) {
        if !Arc::ptr_eq(&self.group, group) {
            debug_assert_eq!(self.group.servers.len(), group.servers.len());
            self.pool.follow(group.settings.share(threads));
            self.group = Arc::clone(group);
        }
    }

    /// Takes note that upstreams are asked for a client.
    pub fn enter(&mut self, client: u64, id: FetchId) -> Ticket {
        let (ticket, _) = self.line.admit(client); // there is always a place
        match self.in_line.get_mut(ticket.place()) {
            Some(place) => *place = id,
            None => self.in_line.push(id), // places are handed out one after the other
        }
        ticket
    }

    /// They are asked no more.
    pub fn leave(&mut self, ticket: Ticket) {
        self.line.release(ticket);
    }

    /// The fetch to end so that upstreams which can take no more are asked for a client, and
    /// whether it is for the same one.
    pub fn make_room(&mut self, client: u64) -> Option<(FetchId, bool)> {
        let own_before = self.line.counters.dropped_own;
        let ticket = self.line.make_room(client)?;
        let is_own = self.line.counters.dropped_own > own_before;
        Some((*self.in_line.get(ticket.place())?, is_own))
    }

    /// Whether questions to each upstream come back to this server.
    pub fn loops(&self, now: u64) -> Vec<bool> {
        (0..self.group.servers.len()).map(|place| self.group.loops.holds(place, now)).collect()
    }

    /// Counts the response code of an answer.
    pub fn count_rcode(&mut self, place: usize, rcode: Rcode) {
        *self.rcodes[place].entry(rcode.0).or_default() += 1;
    }
}

/// What a thread tells of the upstreams of a group.
#[derive(Debug)]
pub struct Report {
    /// The number of the group.
    pub group: u32,
    /// When this was told; nanoseconds of the monotonic clock.
    pub at: u64,
    /// What is known of each, in the order of the configuration.
    pub members: Vec<Member>,
    /// How many of the answers of each had which response code.
    pub rcodes: Vec<BTreeMap<u16, u64>>,
    /// Whether questions to each come back to this server.
    pub loops: Vec<bool>,
}
