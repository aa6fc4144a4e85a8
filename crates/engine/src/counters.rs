//! What a worker counts.
//!
//! Each worker has counters of its own and is the only one that writes them; readers add up the
//! workers'. They add up as follows: the sum over [`Counters::reasons`] is the number of messages
//! received; the sum over [`Counters::replies`] is that less the reasons of silence
//! (`not_a_query`, `access_dropped`, `rate_dropped`, `handler_dropped`). What code asks to see what
//! would become of a query is in none of them; that query is.

use crate::labels::{LabelTable, OTHER_ZONE, SERVERS_MAX};
use crate::message::{Peer, Transport};
use crate::reason::Reason;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use zonda_wire::{Query, Rcode, Type};

/// A number that one thread raises and any may read.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Raises the number. Only its owner may call this: it costs no more than an ordinary addition
    /// because it does not guard against a second writer.
    #[inline]
    pub fn add(&self, by: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(by), Relaxed);
    }

    /// The number.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Types that are counted one by one; all other types are counted together.
pub const TYPES: [Type; 19] = [
    Type::A,
    Type::NS,
    Type::CNAME,
    Type::SOA,
    Type::PTR,
    Type::MX,
    Type::TXT,
    Type::AAAA,
    Type::SRV,
    Type::NAPTR,
    Type::DS,
    Type::DNSKEY,
    Type::TLSA,
    Type::SVCB,
    Type::HTTPS,
    Type::AXFR,
    Type::IXFR,
    Type::ANY,
    Type::CAA,
];

/// The place of a type among the counted ones.
const TYPE_PLACES: [u8; 258] = {
    let mut places = [TYPES.len() as u8; 258];
    let mut place = 0;
    while place < TYPES.len() {
        places[TYPES[place].0 as usize] = place as u8;
        place += 1;
    }
    places
};

/// The place of a type among [`TYPES`]; the length of that list for any other type.
#[inline]
#[must_use]
pub fn type_place(rtype: Type) -> usize {
    let place = TYPE_PLACES.get(usize::from(rtype.0)).copied();
    usize::from(place.unwrap_or(TYPES.len() as u8))
}

/// Response codes that are counted by themselves: 0 to 10, BADVERS, BADCOOKIE.
pub const RCODES: [Rcode; 13] = [
    Rcode::NOERROR,
    Rcode::FORMERR,
    Rcode::SERVFAIL,
    Rcode::NXDOMAIN,
    Rcode::NOTIMP,
    Rcode::REFUSED,
    Rcode::YXDOMAIN,
    Rcode::YXRRSET,
    Rcode::NXRRSET,
    Rcode::NOTAUTH,
    Rcode::NOTZONE,
    Rcode::BADVERS,
    Rcode::BADCOOKIE,
];

/// The place of a response code among [`RCODES`].
#[inline]
fn rcode_place(rcode: Rcode) -> usize {
    match rcode.0 {
        plain @ 0..=10 => usize::from(plain),
        16 => 11,
        _ => 12,
    }
}

/// Operations that the header can tell apart (rfc1035#4.1.1).
pub const OPCODES: usize = 16;

/// Upper bounds of the latency histogram's buckets, nanoseconds; one more bucket takes the rest.
pub const LATENCY_BOUNDS: [u64; 11] = [
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    5_000_000,
    25_000_000,
    100_000_000,
    1_000_000_000,
];

/// Zones whose counters lie in the first chunk; each further chunk has twice as many as its
/// predecessor, so that few zones need little memory and many need few chunks.
const FIRST_CHUNK_ZONES: usize = 64;
/// Chunks there can be: counters for more than four million zones.
const CHUNKS_MAX: usize = 17;
/// Most zones that are counted by themselves.
pub const ZONES_MAX: usize = FIRST_CHUNK_ZONES * ((1 << CHUNKS_MAX) - 1);

/// Families of client addresses: IPv4, IPv6.
pub const FAMILIES: usize = 2;

/// The counters of one server and one zone.
#[derive(Default)]
pub struct LabelCounters {
    /// Messages by transport, family of the client's address, and type (in the order of [`TYPES`],
    /// the last place for all other types).
    pub requests: [[[Counter; TYPES.len() + 1]; FAMILIES]; Transport::ALL.len()],
    /// Messages that ask for DNSSEC records.
    pub dnssec_ok: Counter,
    /// Replies by response code, in the order of [`RCODES`].
    pub rcodes: [Counter; RCODES.len()],
}

/// The counters of one worker.
pub struct Counters {
    /// Messages by what became of them, in the order of [`Reason::ALL`].
    pub reasons: [Counter; Reason::ALL.len()],
    /// Replies by transport, type (in the order of [`TYPES`], the last place for all other types)
    /// and response code (in the order of [`RCODES`]).
    pub replies: [[[Counter; RCODES.len()]; TYPES.len() + 1]; Transport::ALL.len()],
    /// Replies by transport and bucket of [`LATENCY_BOUNDS`].
    pub latency: [[Counter; LATENCY_BOUNDS.len() + 1]; Transport::ALL.len()],
    /// Sum of the latencies by transport, nanoseconds.
    pub latency_nanos: [Counter; Transport::ALL.len()],
    /// Messages from clients with IPv6 addresses, but for those that were not looked at.
    pub from_v6: Counter,
    /// Operations other than a query, by their code.
    pub opcodes: [Counter; OPCODES],
    /// Answers of other servers that the name exists, without a record.
    pub forwarded_nodata: Counter,
    /// Replies that were truncated.
    pub truncated: Counter,
    /// Octets of received queries.
    pub query_bytes: Counter,
    /// Octets of sent replies.
    pub reply_bytes: Counter,
    /// Chunks of counters of zones, made as zones are.
    zones: [OnceLock<Box<[Counter]>>; CHUNKS_MAX],
    /// Counters by labels: for each server, those of all places of zones. Made when a configuration
    /// asks for them.
    labels: [OnceLock<Box<[LabelCounters]>>; SERVERS_MAX],
    /// The number of servers whose counters by labels there are to be.
    wanted_servers: AtomicUsize,
    /// Whether nothing counts here yet, so that counters of zones are not made.
    is_idle: AtomicBool,
    /// The number of zones that there is to be room for.
    wanted_zones: AtomicUsize,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            reasons: std::array::from_fn(|_| Counter::default()),
            replies: Default::default(),
            latency: Default::default(),
            latency_nanos: Default::default(),
            from_v6: Counter::default(),
            opcodes: Default::default(),
            forwarded_nodata: Counter::default(),
            truncated: Counter::default(),
            query_bytes: Counter::default(),
            reply_bytes: Counter::default(),
            zones: std::array::from_fn(|_| OnceLock::new()),
            labels: std::array::from_fn(|_| OnceLock::new()),
            wanted_servers: AtomicUsize::new(0),
            is_idle: AtomicBool::new(false),
            wanted_zones: AtomicUsize::new(0),
        }
    }
}

impl Counters {
    /// The counters of an engine that is made when it has to answer, which may be never: until it
    /// [begins](Self::begin), they have no room for zones.
    #[must_use]
    pub fn idle() -> Self {
        Self { is_idle: AtomicBool::new(true), ..Self::default() }
    }

    /// Makes room for what an engine that was idle will count.
    pub(crate) fn begin(&self) {
        if self.is_idle.swap(false, SeqCst) {
            self.make_zones(self.wanted_zones.load(SeqCst));
            self.make_labels(self.wanted_servers.load(SeqCst));
        }
    }

    /// Makes room to count by labels at `servers` places of servers, at most [`SERVERS_MAX`].
    /// Called before a snapshot that counts so is published.
    pub fn reserve_labels(&self, servers: usize) {
        self.wanted_servers.fetch_max(servers, SeqCst);
        if !self.is_idle.load(SeqCst) {
            self.make_labels(servers);
        }
    }

    /// Makes the counters by labels that are missing.
    fn make_labels(&self, servers: usize) {
        for counters in self.labels.iter().take(servers) {
            counters.get_or_init(|| (0..=OTHER_ZONE).map(|_| LabelCounters::default()).collect());
        }
    }

    /// The counters by labels of a server and a zone, by their places; `None` if there are none.
    #[inline]
    #[must_use]
    pub fn labelled(&self, server: usize, zone: usize) -> Option<&LabelCounters> {
        self.labels.get(server)?.get()?.get(zone)
    }

    /// Counts a message by labels; `rcode` is that of its reply, if it gets one. The name, in wire
    /// form, and the type are those that the client asks for.
    pub(crate) fn label(
        &self,
        table: &LabelTable,
        (peer, query): (&Peer, &Query),
        (name, qtype): (&[u8], Type),
        rcode: Option<Rcode>,
    ) {
        let places = (table.server(peer.listener), table.zone(name));
        let Some(counters) = self.labelled(places.0, places.1) else { return };
        let family = usize::from(!peer.address.ip().to_canonical().is_ipv4());
        counters.requests[peer.transport as usize][family][type_place(qtype)].add(1);
        if query.dnssec_ok() {
            counters.dnssec_ok.add(1);
        }
        if let Some(rcode) = rcode {
            counters.rcodes[rcode_place(rcode)].add(1);
        }
    }

    /// Makes room to count zones numbered below `zones`. Called before a snapshot with such zones
    /// is published, so that no worker ever has to.
    pub fn reserve_zones(&self, zones: usize) {
        // An engine that begins meanwhile sees the number, or this sees that it has begun.
        self.wanted_zones.store(zones, SeqCst);
        if !self.is_idle.load(SeqCst) {
            self.make_zones(zones);
        }
    }

    /// Makes the counters of zones numbered below `zones` that are missing.
    fn make_zones(&self, zones: usize) {
        let needed = |chunk: &usize| FIRST_CHUNK_ZONES * ((1 << chunk) - 1) < zones;
        for (chunk, counters) in (0..).zip(&self.zones).take_while(|(chunk, _)| needed(chunk)) {
            let count = FIRST_CHUNK_ZONES << chunk;
            counters.get_or_init(|| (0..count).map(|_| Counter::default()).collect());
        }
    }

    /// The counter of queries for a zone; `None` when there is no room for its number.
    #[inline]
    #[must_use]
    pub fn zone(&self, number: u32) -> Option<&Counter> {
        // Chunk c begins at FIRST · (2ᶜ − 1): with FIRST added, the highest bit is the chunk, and
        // the bits below it are the place in the chunk.
        let shifted = number as usize + FIRST_CHUNK_ZONES;
        let bit = shifted.ilog2();
        let chunk = (bit - FIRST_CHUNK_ZONES.ilog2()) as usize;
        self.zones.get(chunk)?.get()?.get(shifted - (1 << bit))
    }

    /// Counts a reply.
    #[inline]
    pub(crate) fn reply(&self, transport: Transport, qtype: Type, rcode: Rcode) {
        self.replies[transport as usize][type_place(qtype)][rcode_place(rcode)].add(1);
    }

    /// Counts `replies` that each took `nanos` from being received to being sent.
    pub fn observe_latency(&self, transport: Transport, nanos: u64, replies: u64) {
        let bucket = LATENCY_BOUNDS.partition_point(|bound| *bound < nanos);
        self.latency[transport as usize][bucket].add(replies);
        self.latency_nanos[transport as usize].add(nanos * replies);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counted_type_has_its_own_place() {
        for (place, rtype) in TYPES.iter().enumerate() {
            assert_eq!(usize::from(TYPE_PLACES[usize::from(rtype.0)]), place, "{rtype}");
        }
    }

    #[test]
    fn zones_are_counted_once_room_is_made() {
        let counters = Counters::default();
        assert!(counters.zone(5000).is_none());
        counters.reserve_zones(5001);
        counters.zone(5000).expect("room was made").add(2);
        assert_eq!(counters.zone(5000).map(Counter::get), Some(2));
        assert!(counters.zone(u32::MAX).is_none());
    }

    #[test]
    fn zones_are_not_counted_before_an_engine_begins_and_all_are_from_then_on() {
        let counters = Counters::idle();
        counters.reserve_zones(100);
        assert!(counters.zone(0).is_none());
        counters.begin();
        assert!(counters.zone(99).is_some());
        counters.reserve_zones(1000);
        assert!(counters.zone(999).is_some());
    }

    #[test]
    fn each_zone_has_a_counter_of_its_own() {
        let counters = Counters::default();
        for zones in [1, 64, 65, 192, 193, 10_000] {
            counters.reserve_zones(zones);
            assert!(counters.zone(zones as u32 - 1).is_some(), "{zones}");
        }
        (0..10_000).for_each(|zone| counters.zone(zone).expect("room was made").add(zone.into()));
        let counted = (0..10_000).map(|zone| counters.zone(zone).map(Counter::get));
        assert!(counted.eq((0..10_000).map(Some)));
    }

    #[test]
    fn few_zones_are_counted_in_little_memory_and_millions_have_room() {
        let counters = Counters::default();
        counters.reserve_zones(5);
        let made = counters.zones.iter().filter_map(OnceLock::get);
        assert_eq!(made.map(|chunk| chunk.len()).sum::<usize>(), FIRST_CHUNK_ZONES);
        assert!(size_of::<Counters>() < 8 << 10, "{}", size_of::<Counters>());
        const { assert!(ZONES_MAX > 4_000_000) };
    }
}
