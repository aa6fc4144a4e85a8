//! A pool as it is configured.

use crate::site_map::SiteMap;
use std::sync::Arc;
use zonda_wire::Type;

/// A pool: members, and how one or several of them are chosen for a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// The members, in the order of the configuration.
    pub members: Vec<Member>,
    /// The filters that members pass one after the other.
    pub filters: Vec<Filter>,
    /// The order in which the members answer that the filters leave.
    pub order: Order,
    /// How many members a query is answered with.
    pub answers: Answers,
    /// What happens when no member that could answer is up.
    pub when_all_down: WhenAllDown,
    /// The records of the members, for each type that names are steered for.
    pub records: Vec<Records>,
}

/// A member of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// A number that is the member's on every server and after every start: clients are assigned by
    /// it where a filter goes by their hash.
    pub identity: u64,
    /// The share of the queries that the member gets, relative to the other members; 0: only when
    /// no other is up.
    pub weight: u32,
    /// The rank of the member; members with the lowest number among those that are up answer.
    pub priority: u32,
    /// The number of the pool that the member is, if it is one.
    pub pool: Option<u32>,
    /// The number of the site that the member is at.
    pub site: Option<u16>,
}

/// The records that members answer with for one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Records {
    /// The type of the records.
    pub rtype: Type,
    /// The RDATA of each member in wire form, names uncompressed; none for a member that has no
    /// record of the type, such as an IPv6 address for A. Of a member that is a pool it is none, or
    /// empty if that pool has no record of the type.
    pub rdatas: Vec<Option<Box<[u8]>>>,
}

/// A step that leaves fewer members to choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Members of the lowest priority number remain.
    Failover,
    /// Members remain whose latency is at most 1 ms and a quarter above the least; all if none has
    /// a latency.
    Latency,
    /// Members with a load between the marks take less of the queries, and those at the higher one
    /// nothing.
    Load(LoadMarks),
    /// Members remain at the sites of the best tier for the client that has any; all if none of the
    /// client's tiers has. A pool has at most one such filter.
    Sites(Arc<SiteMap>),
}

/// The loads between which a member takes less and less of the queries that come to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadMarks {
    /// The load, in percent, up to which the member takes all of them.
    pub low: u32,
    /// The load, in percent, from which on the member takes none; above the lower one.
    pub high: u32,
}

impl LoadMarks {
    /// The share that a member with this load, in percent, takes: from 1 to 0.
    #[must_use]
    pub fn share_taken(self, load: u32) -> f64 {
        if load <= self.low {
            return 1.0;
        }
        let above =
            f64::from(load - self.low) / f64::from(self.high.saturating_sub(self.low).max(1));
        (1.0 - above).max(0.0)
    }
}

/// The order in which the members that are left answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Each is the first equally often.
    RoundRobin,
    /// The first is chosen at random, by weight.
    Weighted,
    /// The first is chosen by the hash of the client's network, cut to so many bits.
    HashClient {
        /// Bits of an IPv4 network, at most 32.
        v4: u8,
        /// Bits of an IPv6 network, at most 64.
        v6: u8,
    },
    /// The first is chosen by the hash of the name asked for.
    HashName,
    /// The order of the configuration.
    AsConfigured,
}

/// How many members a query is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// So many, at most [`ANSWERS_MAX`](crate::ANSWERS_MAX).
    Some(u8),
    /// All that the filters have left.
    All,
}

/// What happens when no member that could answer is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenAllDown {
    /// All members count as up.
    All,
    /// The members count as up that were up last.
    LastHealthy,
    /// Another pool answers.
    Pool(u32),
    /// The reply is SERVFAIL.
    ServFail,
    /// The reply says that there are no records.
    NoData,
    /// The reply is REFUSED.
    Refused,
}
