//! Who may connect, and who has to go when there is no room.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::{TcpConfig, TcpCounters};

/// All open connections. The lock is taken when a connection opens and when it closes.
pub(super) struct Admission {
    /// Bound on all connections.
    total_max: usize,
    /// Bound per client.
    per_client_max: usize,
    /// Who is connected.
    table: Mutex<Table>,
}

/// What the lock guards.
#[derive(Default)]
struct Table {
    /// Open connections by number; at most `total_max` and those evicted that have not closed yet.
    open: HashMap<u64, Arc<Seat>>,
    /// Connections of each client; no entry for 0.
    clients: HashMap<IpAddr, usize>,
    /// Evicted connections that are still in `open`.
    leaving: usize,
    /// Number of the next connection.
    next: u64,
}

/// What admission and a connection both see.
#[derive(Default)]
struct Seat {
    /// When it became idle, in nanoseconds of the server's clock; [`BUSY`] while it is not.
    idle_since: AtomicU64,
    /// Told when the connection has to go.
    evicted: Notify,
}

/// A connection that has work.
const BUSY: u64 = u64::MAX;
/// A connection that was told to go.
const LEAVING: u64 = u64::MAX - 1;

impl Admission {
    /// Nobody is connected.
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            total_max: config.connections_max.max(1),
            per_client_max: config.connections_per_client_max.max(1),
            table: Mutex::default(),
        }
    }

    /// Takes in a connection of `ip` unless that breaks a limit, which is counted.
    pub(super) fn admit(self: &Arc<Self>, ip: IpAddr, counters: &TcpCounters) -> Option<Ticket> {
        let client = client(ip);
        let mut table = self.table();
        if table.clients.get(&client).is_some_and(|&count| count >= self.per_client_max) {
            counters.refused_client.add(1);
            return None;
        }
        if table.open.len() - table.leaving >= self.total_max {
            if !table.evict_longest_idle() {
                counters.refused_total.add(1);
                return None;
            }
            counters.evicted.add(1);
        }
        *table.clients.entry(client).or_default() += 1;
        let number = table.next;
        table.next += 1;
        let seat = Arc::new(Seat { idle_since: AtomicU64::new(BUSY), evicted: Notify::new() });
        table.open.insert(number, Arc::clone(&seat));
        drop(table);
        Some(Ticket { admission: Arc::clone(self), number, client, seat })
    }

    /// Connections open now.
    pub(super) fn open(&self) -> usize {
        self.table().open.len()
    }

    /// Locks the table, which no panic can leave half changed.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Tells the connection that has been idle longest to go; whether there was one.
    ///
    /// Looks at all, some microseconds for a thousand, which only a full server pays.
    fn evict_longest_idle(&mut self) -> bool {
        let idle = self.open.values().map(|seat| (seat.idle_since.load(Ordering::Relaxed), seat));
        let longest = idle.filter(|(since, _)| *since < LEAVING).min_by_key(|(since, _)| *since);
        let Some((since, seat)) = longest else { return false };
        // It may have begun to work meanwhile; then it stays, and the newcomer does not.
        let (old, new) = (since, LEAVING);
        let order = Ordering::Relaxed;
        if seat.idle_since.compare_exchange(old, new, order, order).is_err() {
            return false;
        }
        seat.evicted.notify_one();
        self.leaving += 1;
        true
    }
}

/// A connection's place; gives it back when dropped.
pub(super) struct Ticket {
    /// Where the place is.
    admission: Arc<Admission>,
    /// Which one.
    number: u64,
    /// Whose.
    client: IpAddr,
    /// Shared with admission.
    seat: Arc<Seat>,
}

impl Ticket {
    /// Says that the connection has nothing to do since `nanos`: it may be evicted.
    pub(super) fn set_idle(&self, nanos: u64) {
        self.seat.idle_since.store(nanos.min(LEAVING - 1), Ordering::Relaxed);
    }

    /// Says that the connection has work; false if it was told to go before.
    pub(super) fn set_busy(&self) -> bool {
        let order = Ordering::Relaxed;
        let idle = |since| (since != LEAVING).then_some(BUSY);
        self.seat.idle_since.fetch_update(order, order, idle).is_ok()
    }

    /// Waits until the connection has to go.
    pub(super) async fn evicted(&self) {
        self.seat.evicted.notified().await;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut table = self.admission.table();
        table.open.remove(&self.number);
        if self.seat.idle_since.load(Ordering::Relaxed) == LEAVING {
            table.leaving -= 1;
        }
        if let Some(count) = table.clients.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                table.clients.remove(&self.client);
            }
        }
    }
}

/// The unit of the limit per client: an address, or the /64 that an IPv6 client has to itself.
fn client(ip: IpAddr) -> IpAddr {
    const SUBNET: u128 = !(u64::MAX as u128);
    match ip {
        IpAddr::V4(_) => ip,
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & SUBNET).into(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Admission with these limits.
    fn admission(total: usize, per_client: usize) -> (Arc<Admission>, TcpCounters) {
        let config = TcpConfig {
            connections_max: total,
            connections_per_client_max: per_client,
            ..TcpConfig::default()
        };
        (Arc::new(Admission::new(&config)), TcpCounters::default())
    }

    #[test]
    fn one_client_gets_no_more_than_its_share_whatever_its_address_in_the_subnet() {
        let (admission, counters) = admission(10, 2);
        let admit = |ip: &str| admission.admit(ip.parse().unwrap(), &counters);
        let held = [admit("2001:db8::1"), admit("2001:db8::2"), admit("2001:db8:0:1::1")];
        assert!(held.iter().all(Option::is_some));
        assert!(admit("2001:db8::3").is_none());
        assert!(admit("192.0.2.1").is_some());
        assert_eq!((counters.refused_client.get(), admission.open()), (1, 3));
        drop(held);
        assert!(admit("2001:db8::3").is_some());
        assert_eq!((admission.open(), admission.table().clients.len()), (0, 0));
    }

    #[tokio::test]
    async fn the_longest_idle_connection_makes_room_and_busy_ones_stay() {
        let (admission, counters) = admission(3, 10);
        let admit = || admission.admit("192.0.2.1".parse().unwrap(), &counters);
        let held = [admit().unwrap(), admit().unwrap(), admit().unwrap()];
        assert!(admit().is_none());
        held[0].set_idle(200);
        held[1].set_idle(100);
        let fourth = admit().unwrap();
        held[1].evicted().await;
        assert!(!held[1].set_busy());
        assert!(held[0].set_busy());
        assert!(admit().is_none());
        assert_eq!((counters.evicted.get(), counters.refused_total.get()), (1, 2));
        drop((held, fourth));
        assert_eq!((admission.open(), admission.table().leaving), (0, 0));
    }
}
