//! All groups of upstreams, as one forwarder thread knows them.

use std::net::SocketAddr;
use std::sync::Arc;

use zonda_upstream::numbers::NumberMap;

use crate::group::{Bounds, Groups};
use crate::known_group::{KnownGroup, Report};

/// The groups, and how much this thread takes on for them.
pub struct Upstreams {
    /// The groups as they were configured when they were last looked at.
    configured: Arc<Groups>,
    /// The groups as this thread knows them, by their numbers.
    known: NumberMap<u32, KnownGroup>,
    /// This thread's share of the bounds of all forwarder threads.
    share: Bounds,
}

impl Upstreams {
    /// None, until [`follow`](Self::follow) brings some.
    pub fn new() -> Self {
        let (configured, known) = (Arc::default(), NumberMap::default());
        Self { configured, known, share: Bounds::default() }
    }

    /// Forgets the groups that are not configured any more, adds new ones, and takes over what is
    /// new about the rest; returns whether anything is new. `threads` is the number of forwarder
    /// threads.
    pub fn follow(&mut self, configured: Arc<Groups>, threads: u32) -> bool {
        if Arc::ptr_eq(&configured, &self.configured) {
            return false;
        }
        self.known.retain(|number, _| configured.by_number.contains_key(number));
        for (number, group) in &configured.by_number {
            let new = || KnownGroup::new(Arc::clone(group), threads);
            self.known.entry(*number).or_insert_with(new).follow(group, threads);
        }
        self.share = configured.bounds.share(threads);
        self.configured = configured;
        true
    }

    /// Returns a group as this thread knows it.
    pub fn get(&self, group: u32) -> Option<&KnownGroup> {
        self.known.get(&group)
    }

    /// Returns a group as this thread knows it, to be changed.
    pub fn get_mut(&mut self, group: u32) -> Option<&mut KnownGroup> {
        self.known.get_mut(&group)
    }

    /// How much this thread takes on.
    pub fn share(&self) -> Bounds {
        self.share
    }

    /// Whether an upstream has an address.
    pub fn have_address(&self, address: SocketAddr) -> bool {
        let mut servers = self.configured.by_number.values().flat_map(|group| &group.servers);
        servers.any(|server| server.connections.addresses().contains(&address))
    }

    /// Takes note that nothing came from an address, or that nothing can be sent there: upstreams
    /// that have other addresses are asked at the next one.
    pub fn pass_over(&self, address: SocketAddr) {
        let servers = self.known.values().flat_map(|known| &known.group.servers);
        for server in servers.filter(|server| server.over_udp) {
            server.connections.pass_over(address);
        }
    }

    /// Returns a report on all groups at a time; nanoseconds of the monotonic clock.
    pub fn report(&self, at: u64) -> Vec<Report> {
        let report = |(number, known): (&u32, &KnownGroup)| Report {
            group: *number,
            at,
            members: known.pool.members.clone(),
            rcodes: known.rcodes.clone(),
            loops: known.loops(at),
        };
        self.known.iter().map(report).collect()
    }
}
