//! The counters of all engines, which grow with the workers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zonda_engine::Engine;
use zonda_engine::counters::Counters;

/// Makes an engine that counts in these counters.
pub type EngineMaker = Arc<dyn Fn(&Arc<Counters>) -> Engine + Send + Sync>;

/// The counters of all engines: a list that grows with the workers and never shrinks, so that no
/// sum ever falls.
pub struct EngineCounters(Mutex<CounterList>);

/// The counters, and what they have room for.
struct CounterList {
    /// All counters, of engines that are gone as well.
    all: Arc<[Arc<Counters>]>,
    /// The number of zones that there is to be room for.
    zones: usize,
    /// The number of servers whose counters by labels there are to be.
    servers: usize,
}

impl EngineCounters {
    /// Counters of so many engines.
    pub fn new(count: usize) -> Arc<Self> {
        Self::of((0..count).map(|_| Arc::new(Counters::idle())).collect())
    }

    /// A list of these counters.
    pub fn of(all: Vec<Arc<Counters>>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(CounterList { all: all.into(), zones: 0, servers: 0 })))
    }

    /// The counters of all engines that there have been so far.
    pub fn all(&self) -> Arc<[Arc<Counters>]> {
        Arc::clone(&self.lock().all)
    }

    /// Counters of another engine, with room for all that is counted by now.
    pub fn add(&self) -> Arc<Counters> {
        let mut list = self.lock();
        let counters = Arc::new(Counters::idle());
        counters.reserve_zones(list.zones);
        counters.reserve_labels(list.servers);
        list.all = list.all.iter().chain([&counters]).cloned().collect();
        counters
    }

    /// Makes room to count zones numbered below `zones`.
    pub fn reserve_zones(&self, zones: usize) {
        let mut list = self.lock();
        list.zones = zones;
        list.all.iter().for_each(|counters| counters.reserve_zones(zones));
    }

    /// Makes room to count by labels at so many places of servers.
    pub fn reserve_labels(&self, servers: usize) {
        let mut list = self.lock();
        list.servers = list.servers.max(servers);
        list.all.iter().for_each(|counters| counters.reserve_labels(servers));
    }

    /// The list, for a moment.
    fn lock(&self) -> MutexGuard<'_, CounterList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner) // the list is swapped whole
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use arc_swap::ArcSwap;
    use zonda_engine::Snapshot;
    use zonda_engine::zones::ZoneTable;
    use zonda_zone::HashSeed;

    #[test]
    fn counters_that_are_added_have_room_for_what_the_others_count() {
        let counters = EngineCounters::of(vec![Arc::default()]);
        counters.reserve_zones(100);
        counters.reserve_labels(2);
        let snapshot =
            Arc::new(ArcSwap::from_pointee(Snapshot::of(ZoneTable::new(Vec::new(), HashSeed(1)))));
        let added = counters.add();
        drop(Engine::new(snapshot, Arc::clone(&added))); // it begins to count
        assert!(added.zone(99).is_some() && added.labelled(1, 0).is_some());
        counters.reserve_zones(1000);
        assert!(added.zone(999).is_some());
        assert_eq!(counters.all().len(), 2);
    }
}
