//! Which clients may connect, and which connections have to go when there is no room.
//!
//! At the limit, a connection makes room for the new one, in this order:
//! 1. the oldest that never had a whole message, or has had part of one for
//!    [`HALF_SENT_NANOS`] or longer;
//! 2. the one that has been idle longest;
//! 3. the oldest that never had a whole message, however young it is.
//!
//! If all have work, the new one is refused.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use zonda_deferral::SharedCounter;

/// How long a client has to send a message before its connection goes first. A whole query is in
/// one segment, so that this is time enough to send it anew where the first was lost.
const HALF_SENT_NANOS: u64 = 500_000_000;
/// How many times as many connections an IPv6 /48, a site of many networks, may have as a client.
const SITE_CLIENTS: usize = 10;
/// Connections to be evicted that one look at all of them finds, so that a full server under attack
/// does not look at all for each new connection.
const FOUND_MAX: usize = 64;

/// All open connections, of DNS or of another protocol. The lock is taken when a connection opens
/// and when it closes.
pub struct Admission {
    /// Bound on all connections, at least 1.
    total_max: AtomicUsize,
    /// Bound per client, at least 1.
    per_client_max: AtomicUsize,
    /// The connections that are open.
    table: Mutex<Table>,
}

/// Connections that a bound kept out or closed.
#[derive(Debug, Default)]
pub struct AdmissionCounters {
    /// Closed at once: all places were taken, and the connections there had work.
    pub refused_total: SharedCounter,
    /// Closed at once: the client had as many open as it may have, or its IPv6 /48 ten times as
    /// many.
    pub refused_client: SharedCounter,
    /// Closed to make room for a new one: without a whole message, or idle.
    pub evicted: SharedCounter,
}

/// What the lock guards.
#[derive(Default)]
struct Table {
    /// Open connections by number; at most `total_max` and those evicted that have not closed yet.
    open: HashMap<u64, Arc<Seat>>,
    /// Connections of each client and each IPv6 site; no entry for 0.
    clients: HashMap<Client, usize>,
    /// Evicted connections that are still in `open`.
    leaving: usize,
    /// Number of the next connection.
    next: u64,
    /// Connections that were half-sent at the last look at all, and their states, the oldest last.
    half_sent: Vec<(u64, Arc<Seat>)>,
}

/// What connections are counted by.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Client {
    /// An IPv4 address, or an IPv6 /64, which a client has to itself.
    Host(IpAddr),
    /// An IPv6 /48, which holds 65,536 networks of /64.
    Site(Ipv6Addr),
}

/// What admission and a connection both see.
struct Seat {
    /// An [`Activity`] as a word, [`BUSY`] or [`LEAVING`].
    state: AtomicU64,
    /// Told when the connection has to go.
    evicted: Notify,
}

/// What a connection that may have to go is doing, and since when: nanoseconds of the server's
/// clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// The connection was opened, and no whole message has come.
    Opened(u64),
    /// Part of a message has come.
    HalfSent(u64),
    /// All that has come is answered.
    Idle(u64),
}

/// A connection that has work.
const BUSY: u64 = u64::MAX;
/// A connection that was told to go.
const LEAVING: u64 = u64::MAX - 4;

impl Activity {
    /// Time in the upper 62 bits, kind in the lower two, of which 3 is none.
    fn word(self) -> u64 {
        let (since, kind) = match self {
            Self::Opened(since) => (since, 0),
            Self::HalfSent(since) => (since, 1),
            Self::Idle(since) => (since, 2),
        };
        since << 2 | kind // nanoseconds of 146 years
    }

    /// Reads the activity from a word; none if the connection has work or was told to close.
    fn of(word: u64) -> Option<Self> {
        let since = word >> 2;
        match word & 3 {
            0 => Some(Self::Opened(since)),
            1 => Some(Self::HalfSent(since)),
            2 => Some(Self::Idle(since)),
            _ => None,
        }
    }

    /// How soon it has to go: a lower rank goes before a higher one, and in a rank the oldest.
    fn rank(self, now: u64) -> Option<(Rank, u64)> {
        let is_overdue = |since| now.saturating_sub(since) >= HALF_SENT_NANOS;
        match self {
            Self::Opened(since) | Self::HalfSent(since) if is_overdue(since) => {
                Some((Rank::HalfSent, since))
            }
            Self::Idle(since) => Some((Rank::Idle, since)),
            Self::Opened(since) => Some((Rank::Opened, since)),
            Self::HalfSent(_) => None,
        }
    }
}

/// The order in which connections are closed to make room.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// The client has had time enough to send a message.
    HalfSent,
    /// The client may ask again.
    Idle,
    /// The client's first message may be on its way.
    Opened,
}

impl Admission {
    /// Places for `total_max` connections, at least 1, of which one client has `per_client_max` at
    /// most, at least 1.
    #[must_use]
    pub fn new(total_max: usize, per_client_max: usize) -> Arc<Self> {
        Arc::new(Self {
            total_max: AtomicUsize::new(total_max.max(1)),
            per_client_max: AtomicUsize::new(per_client_max.max(1)),
            table: Mutex::default(),
        })
    }

    /// Sets other bounds, each at least 1, which hold for clients that connect from now on: no
    /// connection is closed that is one too many by them, but for each new one, one is evicted.
    pub fn set_bounds(&self, total_max: usize, per_client_max: usize) {
        self.total_max.store(total_max.max(1), Ordering::Relaxed);
        self.per_client_max.store(per_client_max.max(1), Ordering::Relaxed);
    }

    /// Takes in a connection of a client unless that breaks a limit, which is counted; nanoseconds
    /// of the server's clock. A client without an address is bound by the places in all alone.
    pub fn admit(
        self: &Arc<Self>,
        client: Option<IpAddr>,
        now: u64,
        counters: &AdmissionCounters,
    ) -> Option<Ticket> {
        let ip = client.map(|ip| ip.to_canonical());
        let limits = [(ip.map(host), 1), (ip.and_then(site), SITE_CLIENTS)];
        let per_client_max = self.per_client_max.load(Ordering::Relaxed);
        let mut table = self.table();
        let is_full = |(client, times): (Option<Client>, usize)| {
            let open = client.and_then(|client| table.clients.get(&client));
            open.is_some_and(|&count| count >= per_client_max.saturating_mul(times))
        };
        if limits.into_iter().any(is_full) {
            counters.refused_client.add(1);
            return None;
        }
        if table.open.len() - table.leaving >= self.total_max.load(Ordering::Relaxed) {
            if !table.evict(now) {
                counters.refused_total.add(1);
                return None;
            }
            counters.evicted.add(1);
        }
        for client in limits.into_iter().filter_map(|(client, _)| client) {
            *table.clients.entry(client).or_default() += 1;
        }
        let number = table.next;
        table.next += 1;
        let state = AtomicU64::new(Activity::Opened(now).word());
        let seat = Arc::new(Seat { state, evicted: Notify::new() });
        table.open.insert(number, Arc::clone(&seat));
        drop(table);
        Some(Ticket { admission: Arc::clone(self), number, ip, seat })
    }

    /// Connections open now.
    #[must_use]
    pub fn open(&self) -> usize {
        self.table().open.len()
    }

    /// Locks the table, which no panic can leave half changed.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Tells the connection to go that has to go first; whether there was one.
    fn evict(&mut self, now: u64) -> bool {
        // Those found at the last look may have got work since, or have gone.
        while let Some((state, seat)) = self.half_sent.pop() {
            if self.tell(state, &seat) {
                return true;
            }
        }
        let Some((state, seat)) = self.find(now) else { return false };
        // It may have begun to work meanwhile; then it stays, and the new one is refused.
        self.tell(state, &seat)
    }

    /// Returns the connection to close first, and notes those to close after it.
    ///
    /// Looks at all, some microseconds for a thousand.
    fn find(&mut self, now: u64) -> Option<(u64, Arc<Seat>)> {
        let mut first: Option<((Rank, u64), u64, &Arc<Seat>)> = None;
        let mut half_sent = Vec::new();
        for seat in self.open.values() {
            let state = seat.state.load(Ordering::Relaxed);
            let Some(rank) = Activity::of(state).and_then(|it| it.rank(now)) else { continue };
            if rank.0 == Rank::HalfSent {
                half_sent.push((rank.1, state, seat));
            }
            if first.is_none_or(|(least, ..)| rank < least) {
                first = Some((rank, state, seat));
            }
        }
        let first = first.map(|(_, state, seat)| (state, Arc::clone(seat)));
        half_sent.sort_unstable_by_key(|&(since, ..)| since);
        let others = half_sent.into_iter().skip(1).take(FOUND_MAX);
        self.half_sent = others.map(|(_, state, seat)| (state, Arc::clone(seat))).collect();
        self.half_sent.reverse();
        first
    }

    /// Tells a connection to go that was in this state; false if it is not any more.
    fn tell(&mut self, state: u64, seat: &Seat) -> bool {
        let order = Ordering::Relaxed;
        let is_told = seat.state.compare_exchange(state, LEAVING, order, order).is_ok();
        if is_told {
            seat.evicted.notify_one();
            self.leaving += 1;
        }
        is_told
    }

    /// Counts one connection fewer for a client.
    fn forget(&mut self, client: Client) {
        if let Some(count) = self.clients.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                self.clients.remove(&client);
            }
        }
    }
}

/// A connection's place; gives it back when dropped.
pub struct Ticket {
    /// The table that has the place.
    admission: Arc<Admission>,
    /// Number of the place.
    number: u64,
    /// Address of the client, if it has one.
    ip: Option<IpAddr>,
    /// Shared with admission.
    seat: Arc<Seat>,
}

impl Ticket {
    /// Records what the connection waits for, so that it may be evicted. False if it was told to
    /// close before.
    #[must_use]
    pub fn set_waiting(&self, activity: Activity) -> bool {
        self.set(activity.word())
    }

    /// Records that the connection has work; false if it was told to close before.
    #[must_use]
    pub fn set_busy(&self) -> bool {
        self.set(BUSY)
    }

    /// Sets the state unless the connection was told to go.
    fn set(&self, state: u64) -> bool {
        let order = Ordering::Relaxed;
        let stays = |old| (old != LEAVING).then_some(state);
        self.seat.state.fetch_update(order, order, stays).is_ok()
    }

    /// Waits until the connection has to go.
    pub async fn evicted(&self) {
        self.seat.evicted.notified().await;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut table = self.admission.table();
        table.open.remove(&self.number);
        // A thread that found the seat before must not evict it any more.
        if self.seat.state.swap(BUSY, Ordering::Relaxed) == LEAVING {
            table.leaving -= 1;
        }
        let counted = [self.ip.map(host), self.ip.and_then(site)];
        counted.into_iter().flatten().for_each(|client| table.forget(client));
    }
}

/// The unit of the limit per client.
fn host(ip: IpAddr) -> Client {
    match ip {
        IpAddr::V4(_) => Client::Host(ip),
        IpAddr::V6(ip) => Client::Host(network(ip, 64).into()),
    }
}

/// The IPv6 site that a client is in.
fn site(ip: IpAddr) -> Option<Client> {
    match ip {
        IpAddr::V4(_) => None,
        IpAddr::V6(ip) => Some(Client::Site(network(ip, 48))),
    }
}

/// The first address of a network of so many bits, 1 to 128.
fn network(ip: Ipv6Addr, bits: u32) -> Ipv6Addr {
    Ipv6Addr::from_bits(ip.to_bits() & u128::MAX << (128 - bits))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Admission with these limits.
    fn admission(total: usize, per_client: usize) -> (Arc<Admission>, AdmissionCounters) {
        (Admission::new(total, per_client), AdmissionCounters::default())
    }

    #[test]
    fn one_client_gets_no_more_than_its_share_whatever_its_address_in_the_subnet() {
        let (admission, counters) = admission(10, 2);
        let admit = |ip: &str| admission.admit(ip.parse().ok(), 0, &counters);
        let held = [admit("2001:db8::1"), admit("2001:db8::2"), admit("2001:db8:0:1::1")];
        assert!(held.iter().all(Option::is_some));
        assert!(admit("2001:db8::3").is_none());
        assert!(admit("192.0.2.1").is_some());
        assert_eq!((counters.refused_client.get(), admission.open()), (1, 3));
        drop(held);
        assert!(admit("2001:db8::3").is_some());
        assert_eq!((admission.open(), admission.table().clients.len()), (0, 0));
    }

    #[test]
    fn an_ipv6_site_gets_the_share_of_ten_clients_however_many_networks_it_has() {
        let (admission, counters) = admission(1000, 2);
        let admit = |ip: String| admission.admit(ip.parse().ok(), 0, &counters);
        let held: Vec<_> = (0..30).map(|net| admit(format!("2001:db8:0:{net:x}::1"))).collect();
        assert_eq!(held.iter().flatten().count(), 20);
        assert_eq!(counters.refused_client.get(), 10);
        assert!(admit("2001:db8:1::1".to_owned()).is_some());
        drop(held);
        assert!(admission.table().clients.is_empty());
    }

    #[tokio::test]
    async fn the_longest_idle_connection_makes_room_and_busy_ones_stay() {
        let (admission, counters) = admission(3, 10);
        let admit = || admission.admit("192.0.2.1".parse().ok(), 1000, &counters);
        let held = [admit().unwrap(), admit().unwrap(), admit().unwrap()];
        assert!(held.iter().all(Ticket::set_busy));
        assert!(admit().is_none());
        assert!(held[0].set_waiting(Activity::Idle(200)));
        assert!(held[1].set_waiting(Activity::Idle(100)));
        let fourth = admit().unwrap();
        held[1].evicted().await;
        assert!(!held[1].set_busy() && !held[1].set_waiting(Activity::Idle(300)));
        assert!(held[0].set_busy() && fourth.set_busy());
        assert!(admit().is_none());
        assert_eq!((counters.evicted.get(), counters.refused_total.get()), (1, 2));
        drop((held, fourth));
        assert_eq!((admission.open(), admission.table().leaving), (0, 0));
    }

    #[test]
    fn half_sent_messages_go_before_idle_connections_and_new_connections_last() {
        let (admission, counters) = admission(5, 10);
        let now = 10 * HALF_SENT_NANOS;
        let admit = |at| admission.admit("192.0.2.1".parse().ok(), at, &counters).unwrap();
        let (silent, new) = (admit(now - 2 * HALF_SENT_NANOS), admit(now - 1));
        let others = [admit(now), admit(now), admit(now)];
        let [idle, half_sent, begun] = &others;
        assert!(idle.set_waiting(Activity::Idle(1)));
        assert!(half_sent.set_waiting(Activity::HalfSent(now - HALF_SENT_NANOS)));
        assert!(begun.set_waiting(Activity::HalfSent(now - 2)));
        let newcomers: Vec<_> = (0..4).map(|later| admit(now + later)).collect();
        for (place, gone) in [&silent, half_sent, idle, &new].into_iter().enumerate() {
            assert!(!gone.set_busy(), "{place} was to go");
        }
        assert!(begun.set_busy(), "its message has just begun");
        assert!(newcomers.iter().all(Ticket::set_busy));
        assert_eq!((counters.evicted.get(), counters.refused_total.get()), (4, 0));
    }

    #[test]
    fn a_connection_that_was_found_and_has_gone_or_works_since_is_not_told_to_go() {
        let (admission, counters) = admission(4, 10);
        let admit = |at| admission.admit("192.0.2.1".parse().ok(), at, &counters);
        let mut held: Vec<_> = (0..4).map(|at| admit(at).unwrap()).collect();
        let now = 10 * HALF_SENT_NANOS;
        assert!(admit(now).is_some_and(|it| it.set_busy()), "the first went, others were found");
        assert!(held[1].set_busy());
        held.remove(2);
        held.remove(0); // which had been told to
        let newer = [admit(now).unwrap(), admit(now).unwrap()];
        assert!(newer.iter().all(Ticket::set_busy));
        let last = admit(now).unwrap();
        assert!(last.set_busy() && held[0].set_busy() && !held[1].set_busy());
        assert!(admit(now).is_none());
        drop((held, newer, last));
        assert_eq!((admission.open(), admission.table().leaving), (0, 0));
    }
}
