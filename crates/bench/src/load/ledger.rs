//! Queries of one client that wait for their replies, found by message ID.
//!
//! IDs count up, and an ID's low bits are its place in a table; a place whose query still waits is
//! passed over. What became of a query stays written until its place is taken again, so that a
//! second reply and a late one are told from a stray one.
//!
//! Deliberately absent: clocks (callers pass nanoseconds) and what a reply says.

/// What became of the query in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No query was here yet.
    Unused,
    /// Waits for its reply.
    Waiting,
    /// Was answered in time.
    Answered,
    /// Was given up.
    Lost,
}

/// A place in the table.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// When the query was sent, or should have been; nanoseconds since the run began.
    sent_nanos: u64,
    /// What was asked, by its number among all queries.
    query: u32,
    /// The whole ID.
    id: u16,
    /// What became of it.
    state: State,
}

/// To which query a reply belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// To one that waits.
    Waiting {
        /// What was asked.
        query: u32,
        /// When; nanoseconds since the run began.
        sent_nanos: u64,
    },
    /// To one that was answered before.
    Duplicate,
    /// To one that was given up.
    Late,
    /// To none.
    Unexpected,
}

/// The table.
pub struct Ledger {
    /// A power of two of places, at most 65 536.
    places: Vec<Place>,
    /// The ID to try next.
    next_id: u16,
    /// Queries that wait.
    waiting: usize,
}

impl Ledger {
    /// Room for `queries` at once, clamped to what IDs can tell apart, with space between so that
    /// a few slow ones are rarely in the way.
    pub fn new(queries: usize) -> Self {
        const PLACES_MIN: usize = 1 << 10;
        const PLACES_MAX: usize = 1 << 16;
        let count = queries.saturating_mul(4).clamp(PLACES_MIN, PLACES_MAX).next_power_of_two();
        let unused = Place { sent_nanos: 0, query: 0, id: 0, state: State::Unused };
        Self { places: vec![unused; count], next_id: 0, waiting: 0 }
    }

    /// Queries that wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Queries for which there is room, at most; 0 when all places are taken.
    pub fn room(&self) -> usize {
        self.places.len() - self.waiting
    }

    /// Enters a query and returns its ID.
    ///
    /// # Panics
    /// If there is no [`Self::room`].
    pub fn enter(&mut self, query: u32, sent_nanos: u64) -> u16 {
        assert!(self.room() > 0, "callers ask for room first");
        loop {
            let id = self.next_id;
            self.next_id = self.next_id.wrapping_add(1);
            let place = self.place(id);
            if place.state != State::Waiting {
                *place = Place { sent_nanos, query, id, state: State::Waiting };
                self.waiting += 1;
                return id;
            }
        }
    }

    /// Finds the query that a reply with this ID belongs to. Nothing changes.
    pub fn find(&mut self, id: u16) -> Match {
        let place = *self.place(id);
        match place.state {
            _ if place.id != id => Match::Unexpected,
            State::Unused => Match::Unexpected,
            State::Waiting => Match::Waiting { query: place.query, sent_nanos: place.sent_nanos },
            State::Answered => Match::Duplicate,
            State::Lost => Match::Late,
        }
    }

    /// Marks the query with this ID, which waits, as answered in time.
    pub fn answer(&mut self, id: u16) {
        self.settle(id, State::Answered);
    }

    /// Marks the query with this ID, which waits, as lost.
    pub fn give_up(&mut self, id: u16) {
        self.settle(id, State::Lost);
    }

    /// Gives up all queries sent before a moment; returns how many.
    pub fn give_up_before(&mut self, nanos: u64) -> u64 {
        let mut lost = 0;
        if self.waiting > 0 {
            for place in &mut self.places {
                if place.state == State::Waiting && place.sent_nanos < nanos {
                    place.state = State::Lost;
                    lost += 1;
                }
            }
        }
        self.waiting -= lost;
        lost as u64
    }

    /// Ends the wait of a query.
    fn settle(&mut self, id: u16, state: State) {
        let place = self.place(id);
        debug_assert!(place.id == id && place.state == State::Waiting, "it was found before");
        place.state = state;
        self.waiting -= 1;
    }

    /// The place of an ID.
    fn place(&mut self, id: u16) -> &mut Place {
        let mask = self.places.len() - 1;
        &mut self.places[usize::from(id) & mask]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_belongs_to_one_query_and_its_second_is_a_duplicate() {
        let mut ledger = Ledger::new(10);
        let id = ledger.enter(7, 1000);
        assert_eq!(ledger.find(id), Match::Waiting { query: 7, sent_nanos: 1000 });
        ledger.answer(id);
        assert_eq!(ledger.find(id), Match::Duplicate);
        assert_eq!(ledger.find(id.wrapping_add(1)), Match::Unexpected);
        assert_eq!(ledger.waiting(), 0);
    }

    #[test]
    fn a_reply_to_a_query_that_was_given_up_is_late() {
        let mut ledger = Ledger::new(10);
        let (old, young) = (ledger.enter(0, 1000), ledger.enter(1, 2000));
        assert_eq!(ledger.give_up_before(1500), 1);
        assert_eq!(ledger.find(old), Match::Late);
        assert!(matches!(ledger.find(young), Match::Waiting { .. }));
        assert_eq!(ledger.waiting(), 1);
    }

    #[test]
    fn a_place_whose_query_waits_is_passed_over_for_as_long_as_it_waits() {
        let mut ledger = Ledger::new(1);
        let slow = ledger.enter(42, 0);
        for number in 0..200_000 {
            let id = ledger.enter(number, 1);
            assert_ne!(id & 1023, slow & 1023);
            ledger.answer(id);
        }
        assert_eq!(ledger.find(slow), Match::Waiting { query: 42, sent_nanos: 0 });
        let stray = slow.wrapping_add(1024);
        assert_eq!(ledger.find(stray), Match::Unexpected);
    }

    #[test]
    fn every_place_can_be_taken() {
        let mut ledger = Ledger::new(usize::MAX);
        for number in 0..1 << 16 {
            ledger.enter(number, 0);
        }
        assert_eq!(ledger.room(), 0);
        assert_eq!(ledger.give_up_before(1), 1 << 16);
        assert_eq!(ledger.room(), 1 << 16);
    }
}
