//! What a query to an upstream is sent for.

/// A fetch by its place in the table of fetches and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FetchId {
    /// The place of the fetch in the table.
    pub(crate) place: usize,
    /// The number that tells it from other fetches that had its place before.
    pub(crate) number: u64,
}

/// One query of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The fetch that the query belongs to.
    pub fetch: FetchId,
    /// The index of the query among those of the fetch.
    pub index: u8,
    /// The upstream that it is sent to, by its place in the group.
    pub upstream: u8,
}

/// A query for which no client waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probe {
    /// The number of the group.
    pub group: u32,
    /// The upstream that it is sent to, by its place in the group.
    pub upstream: usize,
    /// The time at which it is sent; nanoseconds of the monotonic clock.
    pub sent_at: u64,
}

/// The purpose of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// To answer clients.
    Fetch(Attempt),
    /// To find whether an upstream is back.
    Probe(Probe),
    /// To find whether questions to an upstream come back to this server.
    Check(Probe),
}
