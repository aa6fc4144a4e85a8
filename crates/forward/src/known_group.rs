//! What one forwarder thread knows of the upstreams of a group.

use std::collections::BTreeMap;
use std::sync::Arc;

use zonda_upstream::health::{State, Trouble};
use zonda_upstream::{Admission, Member, Pool, Ticket};
use zonda_wire::{Rcode, Type};

use crate::cause::FetchId;
use crate::group::Group;
use crate::random;
use crate::state_log::{News, SeenState};

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

/// A group of upstreams with what one thread has learnt of it.
pub struct KnownGroup {
    /// The group as it is configured.
    pub group: Arc<Group>,
    /// The upstreams with what this thread has learnt of each.
    pub pool: Pool,
    /// How many of the answers of each upstream had which response code.
    pub rcodes: Vec<BTreeMap<u16, u64>>,
    /// How each upstream was when the log was last told.
    pub(crate) views: Vec<SeenState>,
    /// What each upstream has answered.
    proofs: Vec<Option<Proof>>,
    /// The admission of questions: the clients that the upstreams are asked for.
    line: Admission,
    /// What each place in that line is or was for.
    in_line: Vec<FetchId>,
    /// When the next probe is due, as far as a timer is set for it.
    pub probe_at: Option<u64>,
}

impl KnownGroup {
    /// A group of which nothing was learnt yet, for one of `threads` threads.
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

    /// Frees the place of a question that is not asked any more.
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

    /// Tells the log of upstreams that are in another state than when this was last called.
    pub fn log_changes(&mut self, now: u64) {
        for place in 0..self.pool.members.len() {
            if self.view(place) != self.views[place] {
                self.log_state(place, now);
            }
        }
    }

    /// Tells the log how an upstream is, unless it knows that.
    pub fn log_state(&mut self, place: usize, now: u64) {
        let view = self.view(place);
        let Some(before) = self.views.get_mut(place) else { return };
        let before = std::mem::replace(before, view);
        let Some(news) = self.group.state_log.note(place, before, view, now) else { return };
        let (zone, upstream) = (self.group.label(), &self.group.servers[place].name);
        let why = self.failure_text(place);
        match news {
            News::Back => tracing::info!(%zone, %upstream, "an upstream is up again"),
            News::Worse(State::Down) => tracing::warn!(
                %zone, %upstream, error = why,
                "an upstream is down: it is not asked until a probe is answered"
            ),
            News::Worse(_) => tracing::warn!(
                %zone, %upstream, error = why,
                "an upstream is suspect: it is asked only when no other is up"
            ),
        }
    }

    /// Tells the log that answers of an upstream may be forged, unless it was told so just before.
    pub fn log_forgery(&self, place: usize, now: u64) {
        if self.group.state_log.note_forgery(place, now) {
            tracing::warn!(
                zone = %self.group.label(),
                upstream = %self.group.servers[place].name,
                "answers of an upstream may be forged: many messages came to a port for which \
                 nothing waits there; the port is closed, and its queries are asked over TCP"
            );
        }
    }

    /// How this thread sees an upstream.
    fn view(&self, place: usize) -> SeenState {
        let health = &self.pool.members[place].health;
        let is_untrusted = health.trouble() == Some(Trouble::Untrusted);
        SeenState { state: health.state(), is_untrusted }
    }

    /// Returns in words why an upstream is not asked. For connections that cannot be made there are
    /// more details than for UDP.
    fn failure_text(&self, place: usize) -> String {
        let trouble = self.pool.members[place].health.trouble();
        let fault = match trouble {
            Some(Trouble::Untrusted | Trouble::Unreachable) => {
                self.group.servers[place].connections.counts().fault
            }
            _ => None,
        };
        let trouble = || trouble.map(|trouble| trouble.to_string());
        fault.map(|fault| fault.to_string()).or_else(trouble).unwrap_or_default()
    }
}

/// The report of a thread on the upstreams of a group.
#[derive(Debug)]
pub struct Report {
    /// The number of the group.
    pub group: u32,
    /// When this was told; nanoseconds of the monotonic clock.
    pub at: u64,
    /// The upstreams with what was learnt of each, in the order of the configuration.
    pub members: Vec<Member>,
    /// How many of the answers of each had which response code.
    pub rcodes: Vec<BTreeMap<u16, u64>>,
    /// Whether questions to each come back to this server.
    pub loops: Vec<bool>,
}
