//! The messages of the last seconds: a client that has not got its reply over UDP sends its message
//! again, and must be told what became of the first one.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use zonda_deferral::Deferred;
use zonda_engine::{Transport, UpdateOutcome};
use zonda_wire::Rcode;
use zonda_wire::tsig::QuerySignature;

/// How long a message is remembered.
const REMEMBERED: Duration = Duration::from_secs(10);
/// Messages that are remembered at most.
const MESSAGES_MAX: usize = 256;
/// Octets of the longest message that is remembered: what UDP brings.
const OCTETS_MAX: usize = 4096;

/// The messages of the last seconds, the oldest first.
#[derive(Default)]
pub struct RecentUpdates(VecDeque<RecentUpdate>);

/// A message, and what its client was told.
struct RecentUpdate {
    at: Instant,
    client: SocketAddr,
    octets: Vec<u8>,
    signature: Option<QuerySignature>,
    outcome: UpdateOutcome,
}

/// Whether two messages over UDP are one that was sent twice: the same octets, with the same id,
/// from the same port.
pub fn is_repeated(one: &Deferred, other: &Deferred) -> bool {
    one.peer.transport == Transport::Udp
        && other.peer.transport == Transport::Udp
        && one.peer.address == other.peer.address
        && one.query == other.query
        && one.deferral.history.signature == other.deferral.history.signature
}

impl RecentUpdates {
    /// Returns what the client of a message was told, if it has sent it before.
    pub fn find(&mut self, message: &Deferred, now: Instant) -> Option<&UpdateOutcome> {
        while self.0.front().is_some_and(|first| now - first.at > REMEMBERED) {
            self.0.pop_front();
        }
        if message.peer.transport != Transport::Udp {
            return None;
        }
        let signature = message.deferral.history.signature.as_deref();
        let found = self.0.iter().find(|it| {
            it.client == message.peer.address
                && it.octets == message.query
                && it.signature.as_ref() == signature
        });
        found.map(|it| &it.outcome)
    }

    /// Remembers what the client of a message is told.
    pub fn note(&mut self, message: &Deferred, outcome: &UpdateOutcome, now: Instant) {
        let is_long = message.query.len() > OCTETS_MAX;
        // What has failed may succeed when it is sent again.
        let has_failed = outcome.rcode == Rcode::SERVFAIL;
        if message.peer.transport != Transport::Udp || is_long || has_failed {
            return;
        }
        if self.0.len() == MESSAGES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(RecentUpdate {
            at: now,
            client: message.peer.address,
            octets: message.query.clone(),
            signature: message.deferral.history.signature.as_deref().copied(),
            outcome: outcome.clone(),
        });
    }
}
