//! Queries that are answered later, and where they go.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use zonda_engine::{Deferral, HandlerOutcome, Peer, Reason, To};
use zonda_netio::{ReplyPath, UdpSocket};
use zonda_wire::{ABRIDGED_BYTES_MAX, Query};

use crate::clock::Clock;
use crate::faults::survives;
use crate::forward::{Chain, Forwarders};
use crate::handlers::Runtime;
use crate::replies::{Replies, SocketReplies};
use crate::responder::Responder;

/// Octets of the longest query that is kept whole for code, as UDP brings it. Of a longer one, code
/// sees the options that fit into as many.
pub const CODE_BYTES_MAX: usize = 4096;

/// A query that is answered later.
#[derive(Debug)]
pub struct Deferred {
    /// What is [kept](kept_octets) of the query.
    pub query: Vec<u8>,
    /// Who asks.
    pub peer: Peer,
    /// What is to be fetched.
    pub deferral: Deferral,
    /// How the reply gets to the client.
    pub way: Way,
    /// What was fetched for it before, if that leads from one zone into another.
    pub chain: Option<Box<Chain>>,
}

/// What is kept of a query while it waits. Other servers are asked anew, so that header, question
/// and what the reply depends on are enough, [`ABRIDGED_BYTES_MAX`] octets; code may look at more,
/// and is shown [`CODE_BYTES_MAX`].
#[must_use]
pub fn kept_octets(message: &[u8], to: To) -> Vec<u8> {
    let (whole_max, others_max) = match to {
        To::Forward(_) => (ABRIDGED_BYTES_MAX, 0),
        To::Code(_) => (CODE_BYTES_MAX, CODE_BYTES_MAX - ABRIDGED_BYTES_MAX),
    };
    if message.len() <= whole_max {
        return message.to_vec();
    }
    // The engine has read all that it defers.
    let query = Query::parse(message).unwrap_or_else(|(query, _)| query);
    query.abridge(message, others_max)
}

impl Deferred {
    /// Has the query wait for something else.
    pub(crate) fn defer_again(&mut self, deferral: Deferral) {
        if self.query.len() > ABRIDGED_BYTES_MAX {
            self.query = kept_octets(&self.query, deferral.to);
        }
        self.deferral = deferral;
    }
}

/// How a reply gets to a client.
#[derive(Debug)]
pub enum Way {
    /// From the socket that the query came to.
    Udp(Arc<UdpSocket>, ReplyPath),
    /// To the task of the connection, without its length; nothing stands for no reply.
    Tcp(mpsc::Sender<Vec<u8>>),
}

/// Where queries go that are answered later, as those that receive them see it.
#[derive(Clone, Debug, Default)]
pub struct Deferrals {
    /// The threads that ask other servers.
    pub forwarders: Forwarders,
    /// The user's code that runs elsewhere, by the numbers of the runtimes.
    pub runtimes: Arc<[Arc<Runtime>]>,
    /// Answers what they have no room for; there if they are.
    overflow: Option<Overflow>,
    /// How many answerers have taken out what has not left yet.
    unsent: Arc<AtomicUsize>,
}

/// Replies of an answerer that have not left yet; dropped when they have.
pub(crate) struct Unsent(Arc<AtomicUsize>);

impl Drop for Unsent {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How often it is looked whether all queries for code were answered.
const IDLE_LOOK: Duration = Duration::from_millis(2);

impl From<Forwarders> for Deferrals {
    fn from(forwarders: Forwarders) -> Self {
        Self { forwarders, ..Self::default() }
    }
}

impl Deferrals {
    /// To forwarders and to runtimes; what these have no room for is answered by a responder that
    /// `make` makes.
    pub fn new<R: Responder>(
        forwarders: Forwarders,
        runtimes: Vec<Arc<Runtime>>,
        clock: Clock,
        make: impl FnOnce() -> R,
    ) -> Self {
        let is_needed = !runtimes.is_empty();
        let overflow = is_needed.then(|| {
            let replies = Replies::new(make());
            Overflow(Arc::new(Mutex::new(Refusals { replies, clock })))
        });
        Self { forwarders, runtimes: runtimes.into(), overflow, unsent: Arc::default() }
    }

    /// Notes that an answerer takes out queries.
    pub(crate) fn unsent(&self) -> Unsent {
        self.unsent.fetch_add(1, Ordering::SeqCst);
        Unsent(Arc::clone(&self.unsent))
    }

    /// Waits until no query waits for code, and all replies have left; whether that was before
    /// `deadline`. Whoever hands queries over must have stopped before.
    #[must_use]
    pub fn await_code(&self, deadline: Instant) -> bool {
        let is_sent = || self.unsent.load(Ordering::SeqCst) == 0;
        // Twice, as a query may be on its way from the list to an answerer between the two.
        while !(is_sent() && self.runtimes.iter().all(|it| it.is_idle()) && is_sent()) {
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(IDLE_LOOK);
        }
        true
    }

    /// Hands over queries and leaves `deferred` empty.
    pub fn submit(&self, deferred: &mut Vec<Deferred>) {
        if !self.runtimes.is_empty() {
            self.submit_to_runtimes(deferred);
        }
        if !deferred.is_empty() {
            self.forwarders.submit(deferred);
        }
    }

    /// Hands over the queries that are for the user's code. Those that it has no room for are
    /// answered SERVFAIL.
    fn submit_to_runtimes(&self, deferred: &mut Vec<Deferred>) {
        let mut refused = Vec::new();
        for (number, runtime) in self.runtimes.iter().enumerate() {
            let last = self.runtimes.len() - 1; // which says of what is nowhere that it fails
            let is_for = |query: &mut Deferred| match query.deferral.to {
                To::Code(elsewhere) => usize::from(elsewhere.runtime).min(last) == number,
                To::Forward(_) => false,
            };
            runtime.put(deferred.extract_if(.., is_for), &mut refused);
        }
        if let (false, Some(overflow)) = (refused.is_empty(), &self.overflow) {
            overflow.refuse(refused, deferred);
        }
    }
}

/// Answers queries for which a runtime has no room, for all threads that receive any.
#[derive(Clone)]
struct Overflow(Arc<Mutex<dyn Refuse>>);

impl fmt::Debug for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Overflow")
    }
}

impl Overflow {
    /// Answers them. Replies are written by one thread at a time, and sent by all at once.
    #[cold]
    fn refuse(&self, queries: Vec<Deferred>, passed_on: &mut Vec<Deferred>) {
        let mut refuse = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let written = refuse.refuse(queries, passed_on);
        drop(refuse);
        for (socket, mut batch) in written {
            batch.send(&socket);
        }
    }
}

/// [`Refusals`] of any responder.
trait Refuse: Send {
    /// Writes replies to queries, but for those for which there is no code any more, and which
    /// others are to be asked for. A panic costs the query at hand its reply.
    fn refuse(
        &mut self,
        queries: Vec<Deferred>,
        passed_on: &mut Vec<Deferred>,
    ) -> Vec<SocketReplies>;
}

/// Writes replies to queries for which a runtime has no room.
struct Refusals<R> {
    replies: Replies<R>,
    clock: Clock,
}

impl<R: Responder> Refuse for Refusals<R> {
    fn refuse(
        &mut self,
        queries: Vec<Deferred>,
        passed_on: &mut Vec<Deferred>,
    ) -> Vec<SocketReplies> {
        let (now, busy) = (self.clock.now(), HandlerOutcome::Failed(Reason::HandlerBusy));
        for query in queries {
            let connection = match &query.way {
                Way::Tcp(connection) => Some(connection.clone()),
                Way::Udp(..) => None,
            };
            if !survives(|| passed_on.extend(self.replies.supply(query, busy, now))) {
                // It waits for something; it is only gone when the connection is.
                connection.inspect(|it| _ = it.try_send(Vec::new()));
            }
        }
        self.replies.take_batches()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonda_engine::code::Elsewhere;

    /// A query for `a A` with an OPT record that has these options.
    fn query(options: &[(u16, usize)]) -> Vec<u8> {
        let octets = options.iter().flat_map(|&(code, len)| {
            let head = [code.to_be_bytes(), (len as u16).to_be_bytes()].concat();
            [head, vec![7; len]].concat()
        });
        let octets: Vec<u8> = octets.collect();
        let head = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\x01\x01a\0\0\x01\0\x01\0\0\x29\x04\xd0\0\0\0\0";
        [&head[..], &(octets.len() as u16).to_be_bytes(), &octets].concat()
    }

    #[test]
    fn what_is_padded_waits_for_servers_in_few_octets_and_code_sees_what_it_may_need() {
        let (forward, code) = (To::Forward(7), To::Code(Elsewhere { runtime: 0, handler: 0 }));
        let usual = query(&[(10, 24), (12, 128)]);
        assert_eq!(kept_octets(&usual, forward), usual, "not worth the work");
        let padded = query(&[(65_001, 1000), (10, 24), (12, 60_000)]);
        assert_eq!(kept_octets(&padded, forward).len(), 19 + 11 + 28);
        assert_eq!(kept_octets(&padded, code).len(), 19 + 11 + 28 + 1004);
        let long = query(&[(65_001, 3000), (65_002, 3000)]);
        assert_eq!(kept_octets(&long, code).len(), 19 + 11 + 3004);
        let of_udp = query(&[(12, CODE_BYTES_MAX - 34)]);
        assert_eq!((of_udp.len(), kept_octets(&of_udp, code)), (CODE_BYTES_MAX, of_udp.clone()));
    }
}
