//! The numbers under which workers count the queries of zones.
//!
//! The number of a zone that is gone is given to another one later; what was counted under it until
//! then is remembered, so that no query is counted for the wrong zone and none is forgotten.

use std::sync::Arc;
use zonda_engine::counters::{Counter, Counters};

/// The number of a zone.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// Its place in [`Counters`].
    pub place: u32,
    /// What was counted there for the zones that had it before.
    before: u64,
}

/// Gives out numbers and knows what was counted under them.
pub struct Numbers {
    /// The counters of all engines.
    engines: Vec<Arc<Counters>>,
    /// The lowest place that was never given out.
    next: u32,
    free: Vec<Number>,
    /// Given back, but perhaps still counted under until the next snapshot is published.
    retiring: Vec<Number>,
    /// Queries for zones that are gone, under numbers that others have now.
    gone: u64,
}

impl Numbers {
    /// No zone has a number yet.
    pub fn new(engines: Vec<Arc<Counters>>) -> Self {
        Self { engines, next: 0, free: Vec::new(), retiring: Vec::new(), gone: 0 }
    }

    /// A number for a new zone. Call [`Self::make_room`] before workers see it.
    pub fn take(&mut self) -> Number {
        let Some(former) = self.free.pop() else {
            self.next += 1;
            return Number { place: self.next - 1, before: 0 };
        };
        self.gone += self.queries(former);
        Number { place: former.place, before: self.counted(former.place) }
    }

    /// Takes back the number of a zone that the next snapshot lacks.
    pub fn give_back(&mut self, number: Number) {
        self.retiring.push(number);
    }

    /// Notes that no worker has an older snapshot any more.
    pub fn note_published(&mut self) {
        self.free.append(&mut self.retiring);
    }

    /// Makes room to count under all numbers.
    pub fn make_room(&self) {
        self.engines.iter().for_each(|counters| counters.reserve_zones(self.next as usize));
    }

    /// Queries for the zone that has the number.
    pub fn queries(&self, number: Number) -> u64 {
        self.counted(number.place).saturating_sub(number.before)
    }

    /// Queries for zones that are gone.
    pub fn queries_gone(&self) -> u64 {
        let unused = self.free.iter().chain(&self.retiring);
        self.gone + unused.map(|number| self.queries(*number)).sum::<u64>()
    }

    /// All that was ever counted at a place.
    fn counted(&self, place: u32) -> u64 {
        self.engines.iter().filter_map(|counters| counters.zone(place)).map(Counter::get).sum()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_number_that_is_given_out_again_starts_at_zero_and_forgets_nothing() {
        let engines = vec![Arc::<Counters>::default(), Arc::default()];
        let mut numbers = Numbers::new(engines.clone());
        let count = |by| engines.iter().for_each(|it| it.zone(0).unwrap().add(by));
        let first = numbers.take();
        numbers.make_room();
        count(3);
        assert_eq!((numbers.queries(first), numbers.queries_gone()), (6, 0));
        numbers.give_back(first);
        assert_eq!(numbers.take().place, 1, "workers may still count under the first");
        count(1);
        numbers.note_published();
        assert_eq!(numbers.queries_gone(), 8);
        let second = numbers.take();
        assert_eq!((second.place, numbers.queries(second), numbers.queries_gone()), (0, 0, 8));
        count(2);
        assert_eq!((numbers.queries(second), numbers.queries_gone()), (4, 8));
    }
}
