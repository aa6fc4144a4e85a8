//! Addresses of primaries, each in memory once: a primary may have a hundred thousand zones, and an
//! address takes 32 octets.

use super::store_feed::lock;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

/// The addresses of primaries that zones have in common.
#[derive(Default)]
pub struct SharedAddresses(Mutex<HashSet<Arc<SocketAddr>>>);

impl SharedAddresses {
    /// Returns an address, which is the same piece of memory for all zones.
    pub fn shared(&self, address: SocketAddr) -> Arc<SocketAddr> {
        let mut known = lock(&self.0);
        if let Some(known) = known.get(&address) {
            return Arc::clone(known);
        }
        if known.len() >= known.capacity() {
            known.retain(|address| Arc::strong_count(address) > 1); // those of reloads before
        }
        let address = Arc::new(address);
        known.insert(Arc::clone(&address));
        address
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
        assert!(lock(&addresses.0).len() < 100, "no zone has the others");
    }
}
