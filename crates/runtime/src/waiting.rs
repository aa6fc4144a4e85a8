//! What waits for the user's code, in the order in which it came.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use zonda_deferral::Deferred;
use zonda_engine::AnswerBelow;

/// Octets of a query that take one place; longer ones take several, so that what waits is bounded
/// in octets, too. Queries of resolvers are shorter.
pub const PLACE_BYTES: usize = 512;

/// Octets of the longest answer that is kept with a query: a longer one, which few clients take
/// over UDP, is made again. So the memory of what is kept is bounded by the number of queries that
/// wait.
const ANSWER_BYTES_MAX: usize = 1232;

/// Stands for a query that waits. Never the same for two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

impl Ticket {
    /// The ticket of a slot that has been used `uses` times.
    fn new(slot: u32, uses: u32) -> Self {
        Self(u64::from(uses) << 32 | u64::from(slot))
    }

    /// The slot, and how many times it had been used.
    fn parts(self) -> (usize, u32) {
        (self.0 as u32 as usize, (self.0 >> 32) as u32)
    }
}

/// Queries that wait.
#[derive(Debug, Default)]
pub(crate) struct WaitingQueries {
    slots: Vec<Slot>,
    /// Places that the queries take, of [`PLACE_BYTES`] octets each.
    places: usize,
    /// Slots without a query.
    free: Vec<u32>,
    /// The queries that no code has seen yet.
    fresh: VecDeque<Ticket>,
    /// When which of them has waited long enough, nanoseconds of the monotonic clock; first the
    /// next one. Some may have been answered since.
    deadlines: VecDeque<(u64, Ticket)>,
    /// The deadlines before that of a query that was added earlier: of queries that other code has
    /// had.
    early: BinaryHeap<Reverse<(u64, Ticket)>>,
}

/// Places that a query takes, at least 1.
fn places(query: &Deferred) -> usize {
    let prelude = &query.deferral.history.prelude;
    let prelude_bytes = prelude.as_ref().map_or(0, |prelude| prelude.memory_bytes());
    (query.query.len() + prelude_bytes).div_ceil(PLACE_BYTES).max(1)
}

/// Room for a query.
#[derive(Debug, Default)]
struct Slot {
    query: Option<Deferred>,
    /// The answer to the query that its code was shown, if it has asked for that.
    below: Option<AnswerBelow>,
    /// Number of queries that the slot has held.
    uses: u32,
}

impl WaitingQueries {
    /// Returns the number of waiting queries.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether one more may wait where there are so many places.
    pub(crate) fn has_room(&self, query: &Deferred, places_max: usize) -> bool {
        self.places == 0 || self.places + places(query) <= places_max
    }

    /// Whether queries wait that no code has seen.
    pub(crate) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Adds a query that waits until `deadline`.
    pub(crate) fn add(&mut self, query: Deferred, deadline: u64) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32 // bounded by the limit of the caller
        });
        self.places += places(&query);
        let Slot { query: place, uses, .. } = &mut self.slots[slot as usize];
        *place = Some(query);
        *uses = uses.wrapping_add(1);
        let ticket = Ticket::new(slot, *uses);
        self.fresh.push_back(ticket);
        match self.deadlines.back() {
            Some((last, _)) if deadline < *last => self.early.push(Reverse((deadline, ticket))),
            _ => self.deadlines.push_back((deadline, ticket)),
        }
    }

    /// The query that was added first of those that no code has seen.
    pub(crate) fn next_fresh(&mut self) -> Option<(Ticket, &Deferred)> {
        while let Some(ticket) = self.fresh.pop_front() {
            let (slot, uses) = ticket.parts();
            if self.slots[slot].uses == uses && self.slots[slot].query.is_some() {
                return self.slots[slot].query.as_ref().map(|query| (ticket, query));
            }
        }
        None
    }

    /// Returns a query, if it still waits.
    pub(crate) fn get(&self, ticket: Ticket) -> Option<&Deferred> {
        let (place, uses) = ticket.parts();
        self.slots.get(place).filter(|slot| slot.uses == uses)?.query.as_ref()
    }

    /// Keeps the answer to a query that its code was shown, unless it is long.
    pub(crate) fn keep(&mut self, ticket: Ticket, below: AnswerBelow) {
        let (place, uses) = ticket.parts();
        let slot = self.slots.get_mut(place).filter(|slot| slot.uses == uses);
        if let Some(Slot { query: Some(query), below: kept, .. }) = slot {
            query.deferral.note_below(&below);
            *kept = Some(below).filter(|below| below.message.len() <= ANSWER_BYTES_MAX);
        }
    }

    /// Takes a query out, if it still waits, and the answer that was kept for it.
    pub(crate) fn take(&mut self, ticket: Ticket) -> Option<(Deferred, Option<AnswerBelow>)> {
        let (place, uses) = ticket.parts();
        let slot = self.slots.get_mut(place).filter(|slot| slot.uses == uses)?;
        let (query, below) = (slot.query.take()?, slot.below.take());
        self.places -= places(&query);
        self.free.push(place as u32);
        self.forget_answered();
        Some((query, below))
    }

    /// Takes a query out that has waited until `now`.
    pub(crate) fn take_late(&mut self, now: u64) -> Option<Deferred> {
        self.forget_answered();
        let next = [self.deadlines.front(), self.early.peek().map(|Reverse(it)| it)];
        let (_, ticket) = *next.into_iter().flatten().find(|(deadline, _)| *deadline <= now)?;
        self.take(ticket).map(|(query, _)| query)
    }

    /// Drops the deadlines of queries that are gone, and the tickets of those that code, which may
    /// never ask again, has not seen.
    fn forget_answered(&mut self) {
        let Self { slots, fresh, deadlines, early, .. } = self;
        let waits = |ticket: &Ticket| {
            let (place, uses) = ticket.parts();
            slots[place].uses == uses && slots[place].query.is_some()
        };
        while deadlines.front().is_some_and(|(_, ticket)| !waits(ticket)) {
            deadlines.pop_front();
        }
        while early.peek().is_some_and(|Reverse((_, ticket))| !waits(ticket)) {
            early.pop();
        }
        while fresh.front().is_some_and(|ticket| !waits(ticket)) {
            fresh.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use tokio::sync::mpsc;
    use zonda_deferral::ReplyTo;
    use zonda_engine::{Deferral, Peer, To, Transport};

    /// A query of so many octets.
    fn query(octets: usize) -> Deferred {
        let address = ([192, 0, 2, 1], 53).into();
        let peer = Peer::new(address, Transport::Tcp, 0);
        let deferral = Deferral::new(To::Forward(0), 0);
        let reply_to = ReplyTo::Connection(mpsc::channel(1).0);
        Deferred { query: vec![0; octets], peer, deferral, reply_to }
    }

    #[test]
    fn a_long_query_takes_places_by_its_octets_and_waits_alone_if_need_be() {
        let mut waiting = WaitingQueries::default();
        assert!(waiting.has_room(&query(4096), 1), "or it could never be answered");
        for octets in [30, 2 * PLACE_BYTES] {
            waiting.add(query(octets), 7);
        }
        assert!(waiting.has_room(&query(PLACE_BYTES), 4));
        assert!(!waiting.has_room(&query(PLACE_BYTES + 1), 4));
        while waiting.take_late(7).is_some() {}
        assert_eq!((waiting.len(), waiting.places), (0, 0));
    }

    #[test]
    fn nothing_is_left_of_queries_that_code_never_asked_for() {
        let mut waiting = WaitingQueries::default();
        for at in 0..1000 {
            waiting.add(query(0), at);
            assert!(waiting.take_late(at).is_some());
        }
        assert_eq!((waiting.len(), waiting.fresh.len(), waiting.deadlines.len()), (0, 0, 0));
        assert!(!waiting.has_fresh());
    }

    #[test]
    fn a_query_with_an_earlier_deadline_than_those_before_it_is_late_first() {
        let mut waiting = WaitingQueries::default();
        for deadline in [7, 9, 3, 8, 5] {
            waiting.add(query(deadline), deadline as u64);
        }
        let mut late = |now| waiting.take_late(now).map(|query| query.query.len());
        assert_eq!(
            [late(2), late(4), late(4), late(6), late(6)],
            [None, Some(3), None, Some(5), None]
        );
        let mut rest = [late(9), late(9), late(9)];
        rest.sort_unstable();
        assert_eq!((rest, late(9)), ([Some(7), Some(8), Some(9)], None));
        assert!(waiting.deadlines.is_empty() && waiting.early.is_empty());
    }

    #[test]
    fn an_answer_is_kept_with_its_query_alone_unless_it_is_long() {
        let mut waiting = WaitingQueries::default();
        let below = |octets| AnswerBelow::new(vec![0; octets], None);
        for octets in [ANSWER_BYTES_MAX, ANSWER_BYTES_MAX + 1] {
            waiting.add(query(30), 7);
            let (ticket, _) = waiting.next_fresh().unwrap();
            waiting.keep(ticket, below(octets));
            let (_, kept) = waiting.take(ticket).unwrap();
            assert_eq!(kept.is_some(), octets <= ANSWER_BYTES_MAX);
            waiting.keep(ticket, below(1)); // late
            assert!(waiting.slots[0].below.is_none());
        }
        waiting.add(query(30), 7);
        let (ticket, _) = waiting.next_fresh().unwrap();
        assert!(waiting.take(ticket).unwrap().1.is_none(), "nor is that of a former query");
    }
}
