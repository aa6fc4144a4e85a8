//! The section and keys of the answer cache.

use crate::section::section;
use crate::value::{Percent, Size};
use std::path::PathBuf;
use std::time::Duration;

section! {
    /// The cache of upstreams' answers. Changes of `bytes`, `persist` and `persist-interval` wait
    /// for a restart; those of all other keys hold for answers that come from then on.
    pub struct CacheKeys: Table "cache", Reload;

    /// Memory of the cache; it is allocated as the cache fills.
    bytes: Size = "256 MiB", from "1 MiB" to "3 GiB";
    /// The least time for which answers are cached, whatever their TTL, unless that is 0.
    ttl_min: Duration = "0s", from "0s" to "1h";
    /// The longest time for which answers are cached.
    ttl_max: Duration = "1d", from "1s" to "30d";
    /// The least time for negative answers (rfc2308#5), unless their TTL is 0.
    negative_ttl_min: Duration = "0s", from "0s" to "1h";
    /// The longest time for negative answers.
    negative_ttl_max: Duration = "3h", from "1s" to "1d";
    /// Time for which a first failure of all upstreams is cached. For each further failure in a
    /// row, it is twice as long (rfc9520#3.2).
    failure_ttl_min: Duration = "1s", from "1s" to "5m";
    /// The longest time for which a failure is cached. If no upstream could be reached at all, 5 s,
    /// unless the least is longer.
    failure_ttl_max: Duration = "5m", from "1s" to "5m";
    /// Time after its expiry for which an answer may still be used, when no upstream answers
    /// (rfc8767). 0 s: never.
    stale: Duration = "1d", from "0s" to "30d";
    /// The TTL of expired answers in replies (rfc8767#4).
    stale_ttl: Duration = "30s", from "1s" to "1h";
    /// The last part of its TTL in which an answer that clients got repeatedly is fetched again; no
    /// client waits for that. 0 %: only after it has expired.
    prefetch: Percent = "10 %", from "0 %" to "50 %";
    /// The shortest TTL of an answer that is fetched again before it expires.
    prefetch_ttl_min: Duration = "5s", from "2s" to "1d";
    /// Answer for all names below one that does not exist (rfc8020) without a query to upstreams,
    /// if the NXDOMAIN cannot be forged off-path: it came over TCP, TLS, HTTPS or QUIC, or with the
    /// cookie of the query. Turn it off for upstreams that deny names below which other names
    /// exist.
    nxdomain_cut: bool = "true";
    /// A file for the cache while the server does not run. Read at the start; written at the stop,
    /// at a hand-over, after a flush, and at an interval. Its directory must be writable by the
    /// server. Unset: the cache of a new server is empty.
    persist: Option<PathBuf>, like "/var/lib/zonda/cache";
    /// Interval at which the cache's file is written, if the cache has changed.
    persist_interval: Duration = "5m", from "1s" to "1d";
}
