//! The numbers under which workers count the queries of zones.
//!
//! The number of a zone that is gone is given to another one later; what was counted under it until
//! then is remembered, so that no query is counted for the wrong zone and none is forgotten.

use crate::engine_counters::EngineCounters;
use std::collections::VecDeque;
use std::sync::Arc;
use zonda_engine::counters::Counter;

/// The number of a zone, without octets between its parts, as each of a million zones has one.
#[derive(Clone, Copy, Debug)]
#[repr(Rust, packed(4))]
pub struct Number {
    /// The zone's place in the counters of each engine.
    pub place: u32,
    /// Queries counted for the zones that had the number before.
    before: u64,
}

/// Gives out numbers and knows what was counted under them.
pub struct Numbers {
    /// The counters of all engines.
    engines: Arc<EngineCounters>,
    /// The lowest place that was never given out.
    next: u32,
    free: Vec<Number>,
    /// Given back, but perhaps still counted under by workers that read former snapshots.
    retiring: VecDeque<Number>,
    /// Queries for zones that are gone and whose numbers are free or given out again.
    gone: u64,
}

/// The counts of queries by zone, at any moment after a table of the zones was made.
pub struct QueryCounts {
    engines: Arc<EngineCounters>,
    retiring: Vec<Number>,
    gone: u64,
}

impl Numbers {
    /// A table of numbers in which no zone has one yet.
    pub fn new(engines: Arc<EngineCounters>) -> Self {
        let (free, retiring) = (Vec::new(), VecDeque::new());
        Self { engines, next: 0, free, retiring, gone: 0 }
    }

    /// A number for a new zone. Call [`Self::make_room`] before workers see it.
    pub fn take(&mut self) -> Number {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            Number { place: self.next - 1, before: 0 }
        })
    }

    /// Takes back the number of a zone that the next snapshot lacks.
    pub fn give_back(&mut self, number: Number) {
        self.retiring.push_back(number);
    }

    /// The number of zones that are gone from the next snapshot, but perhaps not from all.
    pub fn retiring(&self) -> usize {
        self.retiring.len()
    }

    /// Notes that no worker has a snapshot any more that has the first `count` of these zones.
    pub fn note_dropped(&mut self, count: usize) {
        for number in self.retiring.drain(..count.min(self.retiring.len())) {
            let before = counted(&self.engines, number.place);
            self.gone += before.saturating_sub(number.before);
            self.free.push(Number { place: number.place, before });
        }
    }

    /// Makes room to count under all numbers.
    pub fn make_room(&self) {
        self.engines.reserve_zones(self.next as usize);
    }

    /// Makes room to count by labels at so many places of servers.
    pub fn make_label_room(&self, servers: usize) {
        self.engines.reserve_labels(servers);
    }

    /// Returns the counts so far, which go on until the next table is made.
    pub fn counts(&self) -> QueryCounts {
        let retiring = self.retiring.iter().copied().collect();
        QueryCounts { engines: Arc::clone(&self.engines), retiring, gone: self.gone }
    }
}

impl QueryCounts {
    /// Queries for the zone that has the number.
    pub fn queries(&self, number: Number) -> u64 {
        counted(&self.engines, number.place).saturating_sub(number.before)
    }

    /// Queries for zones that are gone.
    pub fn queries_gone(&self) -> u64 {
        self.gone + self.retiring.iter().map(|number| self.queries(*number)).sum::<u64>()
    }
}

/// All that was ever counted at a place.
fn counted(engines: &EngineCounters, place: u32) -> u64 {
    engines.all().iter().filter_map(|counters| counters.zone(place)).map(Counter::get).sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use zonda_engine::counters::Counters;

    #[test]
    fn a_number_that_is_given_out_again_starts_at_zero_and_forgets_nothing() {
        let engines = vec![Arc::<Counters>::default(), Arc::default()];
        let mut numbers = Numbers::new(EngineCounters::of(engines.clone()));
        let count = |by| engines.iter().for_each(|it| it.zone(0).unwrap().add(by));
        let first = numbers.take();
        numbers.make_room();
        count(3);
        assert_eq!((numbers.counts().queries(first), numbers.counts().queries_gone()), (6, 0));
        numbers.give_back(first);
        assert_eq!(numbers.take().place, 1, "workers may still count under the first");
        count(1);
        numbers.note_dropped(1);
        assert_eq!(numbers.counts().queries_gone(), 8);
        let second = numbers.take();
        assert_eq!(
            (second.place, numbers.counts().queries(second), numbers.counts().queries_gone()),
            (0, 0, 8)
        );
        count(2);
        assert_eq!((numbers.counts().queries(second), numbers.counts().queries_gone()), (4, 8));
    }
}
