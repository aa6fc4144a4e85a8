//! Addresses of primaries, each in memory once: a primary may have a hundred thousand zones, and an
//! address takes 32 octets.

use super::store_feed::lock;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

/// Addresses that are kept before those that no zone has any more are looked for.
const SWEEP_MIN: usize = 16;

/// The addresses of primaries that zones have in common.
#[derive(Default)]
pub struct SharedAddresses(Mutex<KnownAddresses>);

/// The addresses that are known, under a lock.
#[derive(Default)]
struct KnownAddresses {
    /// The addresses, also some that no zone has any more.
    all: HashSet<Arc<SocketAddr>>,
    /// The number of addresses at which those that no zone has are removed next: twice as many as
    /// were left the last time, so that this costs each new address no more than a few steps.
    sweep_at: usize,
}

impl SharedAddresses {
    /// Returns an address, which is the same piece of memory for all zones.
    pub fn shared(&self, address: SocketAddr) -> Arc<SocketAddr> {
        let mut known = lock(&self.0);
        if let Some(known) = known.all.get(&address) {
            return Arc::clone(known);
        }
        if known.all.len() >= known.sweep_at.max(SWEEP_MIN) {
            known.sweep();
        }
        let address = Arc::new(address);
        known.all.insert(Arc::clone(&address));
        address
    }
}

impl KnownAddresses {
    /// Removes the addresses that no zone has any more, as after reloads.
    fn sweep(&mut self) {
        self.all.retain(|address| Arc::strong_count(address) > 1);
        self.sweep_at = (2 * self.all.len()).max(SWEEP_MIN);
        self.all.shrink_to(self.sweep_at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_kept_once_and_for_as_long_as_a_zone_has_it() {
        let addresses = SharedAddresses::default();
        let address = |port| SocketAddr::from(([192, 0, 2, 1], port));
        let one = addresses.shared(address(1));
        assert!(Arc::ptr_eq(&one, &addresses.shared(address(1))));
        (0..10_000).for_each(|port| drop(addresses.shared(address(port))));
        assert!(Arc::ptr_eq(&one, &addresses.shared(address(1))));
        assert!(lock(&addresses.0).all.len() <= SWEEP_MIN, "no zone has the others");
    }

    #[test]
    fn addresses_that_zones_have_are_looked_through_once_for_each_doubling() {
        let addresses = SharedAddresses::default();
        let (mut kept, mut sweeps, mut sweep_at) = (Vec::new(), 0, 0);
        for port in 0..10_000 {
            kept.push(addresses.shared(SocketAddr::from(([192, 0, 2, 1], port))));
            let next = lock(&addresses.0).sweep_at;
            sweeps += usize::from(std::mem::replace(&mut sweep_at, next) != next);
        }
        assert_eq!(sweeps, 10, "at 16, 32, and so on up to 8192");
        drop(kept);
        (0..10_000).for_each(|port| {
            drop(addresses.shared(SocketAddr::from(([192, 0, 2, 2], port))));
        });
        let known = lock(&addresses.0);
        assert!(known.sweep_at == SWEEP_MIN && known.all.capacity() < 100, "memory is given back");
    }
}
