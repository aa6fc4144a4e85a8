//! What a forwarder thread counts.

use zonda_deferral::SharedCounter;
use zonda_engine::counters::TYPES;

/// Counters of one forwarder thread. Those of each upstream are in its reports.
#[derive(Debug, Default)]
pub struct ForwarderCounters {
    /// Deferred queries taken.
    pub received: SharedCounter,
    /// Queries that were answered with what was cached meanwhile.
    pub kept: SharedCounter,
    /// Queries for which a fetch was begun.
    pub fetched: SharedCounter,
    /// Queries that waited for a fetch that was under way already.
    pub coalesced: SharedCounter,
    /// Queries that were rejected because too much is being fetched.
    pub turned_away: SharedCounter,
    /// Queries that gave their place to a newer one of the same client.
    pub dropped_own: SharedCounter,
    /// Queries that gave their place to one of another client.
    pub dropped_other: SharedCounter,
    /// Answers that were passed on.
    pub answered: SharedCounter,
    /// Messages that were not believed: they belong to no query, or another question.
    pub ignored: SharedCounter,
    /// Errors that the network (ICMP) told of queries.
    pub icmp_errors: SharedCounter,
    /// Receive calls that failed for another reason, for each of which a port was closed.
    pub receive_errors: SharedCounter,
    /// Ports that were closed since a forger may know them.
    pub forgery_suspected: SharedCounter,
    /// Ports that were closed while queries waited there, since there may be no more.
    pub ports_closed_early: SharedCounter,
    /// Queries and probes for which the system had no port, as it lacked descriptors or memory.
    pub without_port: SharedCounter,
    /// Ports that are open now.
    pub ports: SharedCounter,
    /// Fetches whose clients were told that no upstream answered in time.
    pub timed_out: SharedCounter,
    /// Fetches whose clients were told that no upstream would answer.
    pub failed: SharedCounter,
    /// Probes sent to upstreams that are not up.
    pub probes: SharedCounter,
    /// Fetches for which no query waits: that replace an answer before it expires, or that are of
    /// an ALIAS record's target.
    pub prefetched: SharedCounter,
    /// Replies with answers that had expired.
    pub stale: SharedCounter,
    /// Queries to upstreams, without probes, by the place of their type.
    pub sent_types: [SharedCounter; TYPES.len() + 1],
    /// Queries that wait now.
    pub waiting: SharedCounter,
    /// Fetches under way now that were not answered yet.
    pub fetching: SharedCounter,
}
