//! Queries of one client that wait for their replies, found by message ID.
//!
//! IDs count up; one whose query still waits is passed over. The fate of a query stays written
//! until its ID is reused, so that a second reply and a late one are distinguished from a stray
//! one.
//!
//! Deliberately absent: clocks (callers pass nanoseconds) and what a reply says.
//!
//! # Invariants
//! - A query that waits has the place of its ID's low bits for itself, and is linked to the ones
//!   that were entered before and after it. So entering, answering and giving up cost the same
//!   however many places there are, and however many queries were answered meanwhile.
//! - Places are twice as many as queries that wait, or one for each ID.

/// IDs that there are.
const IDS: usize = 1 << 16;

/// Outcomes in an octet of [`Ledger::states`].
const STATES_PER_OCTET: usize = 4;

/// Fate of the query that had an ID last; two bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The ID was not used yet.
    Unused,
    /// The query waits for its reply.
    Waiting,
    /// Was answered in time.
    Answered,
    /// Was given up.
    Lost,
}

/// A query that waits, or room for one.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Time of sending, actual or scheduled; nanoseconds since the run began.
    sent_nanos: u64,
    /// Number of the query among all queries.
    query: u32,
    /// The whole ID.
    id: u16,
    /// The ID of the one that was entered before it, if it is not the oldest.
    older: u16,
    /// The ID of the one that was entered after it, if it is not the newest.
    newer: u16,
    /// Whether the place is taken.
    is_taken: bool,
}

/// To which query a reply belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// To a query that waits.
    Waiting {
        /// Number of the query.
        query: u32,
        /// Time of sending; nanoseconds since the run began.
        sent_nanos: u64,
    },
    /// To a query that was answered before.
    Duplicate,
    /// To a query that has expired.
    Late,
    /// To none of the queries.
    Unexpected,
}

/// The table of waiting queries.
pub struct Ledger {
    /// A power of two of places, at most [`IDS`]; there become more when more queries wait than
    /// ever before.
    places: Vec<Place>,
    /// Fate of the query that had each ID last.
    states: Box<[u8]>,
    /// The ID to try next.
    next_id: u16,
    /// Number of queries that wait.
    waiting: usize,
    /// Query that was entered first; without meaning when none waits.
    oldest: u16,
    /// Query that was entered last; without meaning when none waits.
    newest: u16,
}

impl Ledger {
    /// Makes room for `queries` at once without taking more memory later, clamped to the number of
    /// IDs.
    pub fn new(queries: usize) -> Self {
        const PLACES_MIN: usize = 1 << 8;
        let count = queries.saturating_mul(2).clamp(PLACES_MIN, IDS).next_power_of_two();
        Self {
            places: vec![Place::default(); count],
            states: vec![0; IDS / STATES_PER_OCTET].into(),
            next_id: 0,
            waiting: 0,
            oldest: 0,
            newest: 0,
        }
    }

    /// Queries that wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Queries for which there is room, at most; 0 when all IDs are taken.
    pub fn room(&self) -> usize {
        IDS - self.waiting
    }

    /// Enters a query and returns its ID. It was sent no earlier than those before it.
    ///
    /// # Panics
    /// If there is no [`Self::room`].
    pub fn enter(&mut self, query: u32, sent_nanos: u64) -> u16 {
        assert!(self.room() > 0, "callers ask for room first");
        if self.waiting * 2 >= self.places.len() && self.places.len() < IDS {
            self.grow();
        }
        while self.place(self.next_id).is_taken {
            self.next_id = self.next_id.wrapping_add(1);
        }
        let (id, older) = (self.next_id, self.newest);
        self.next_id = id.wrapping_add(1);
        *self.place(id) = Place { sent_nanos, query, id, older, newer: id, is_taken: true };
        if self.waiting == 0 {
            self.oldest = id;
        } else {
            let before = self.place(older);
            debug_assert!(before.sent_nanos <= sent_nanos, "queries are entered as they are sent");
            before.newer = id;
        }
        self.newest = id;
        self.waiting += 1;
        self.note(id, State::Waiting);
        id
    }

    /// Finds the query that a reply with this ID belongs to.
    pub fn find(&self, id: u16) -> Match {
        match self.state(id) {
            State::Unused => Match::Unexpected,
            State::Waiting => {
                let place = &self.places[self.index(id)];
                Match::Waiting { query: place.query, sent_nanos: place.sent_nanos }
            }
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
        while self.waiting > 0 && self.place(self.oldest).sent_nanos < nanos {
            self.give_up(self.oldest);
            lost += 1;
        }
        lost
    }

    /// Ends the wait of a query.
    fn settle(&mut self, id: u16, state: State) {
        let place = self.place(id);
        debug_assert!(place.id == id && place.is_taken, "it was found before");
        place.is_taken = false;
        let (older, newer) = (place.older, place.newer);
        match (id == self.oldest, id == self.newest) {
            (true, true) => {}
            (true, false) => self.oldest = newer,
            (false, true) => self.newest = older,
            (false, false) => {
                self.place(older).newer = newer;
                self.place(newer).older = older;
            }
        }
        self.waiting -= 1;
        self.note(id, state);
    }

    /// Makes twice as many places. Those that differ in the low bits of their IDs go on to do so.
    fn grow(&mut self) {
        let wider = vec![Place::default(); self.places.len() * 2];
        let places = std::mem::replace(&mut self.places, wider);
        for place in places.into_iter().filter(|place| place.is_taken) {
            *self.place(place.id) = place;
        }
    }

    /// Returns where the place of an ID is.
    fn index(&self, id: u16) -> usize {
        usize::from(id) & (self.places.len() - 1)
    }

    /// Returns the place of an ID.
    fn place(&mut self, id: u16) -> &mut Place {
        let index = self.index(id);
        &mut self.places[index]
    }

    /// Returns the fate of the query that had an ID last.
    fn state(&self, id: u16) -> State {
        let (octet, shift) = bits_of(id);
        match self.states[octet] >> shift & 3 {
            0 => State::Unused,
            1 => State::Waiting,
            2 => State::Answered,
            _ => State::Lost,
        }
    }

    /// Writes the fate of the query that has an ID.
    fn note(&mut self, id: u16, state: State) {
        let (octet, shift) = bits_of(id);
        let octet = &mut self.states[octet];
        *octet = *octet & !(3 << shift) | (state as u8) << shift;
    }
}

/// Returns where the two bits of an ID are: the octet, and how far up.
fn bits_of(id: u16) -> (usize, usize) {
    let id = usize::from(id);
    (id / STATES_PER_OCTET, id % STATES_PER_OCTET * 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonda_netio::process::thread_cpu_time;

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
    fn a_reply_to_an_expired_query_is_late() {
        let mut ledger = Ledger::new(10);
        let (old, young) = (ledger.enter(0, 1000), ledger.enter(1, 2000));
        assert_eq!(ledger.give_up_before(1500), 1);
        assert_eq!(ledger.find(old), Match::Late);
        assert!(matches!(ledger.find(young), Match::Waiting { .. }));
        assert_eq!(ledger.waiting(), 1);
    }

    #[test]
    fn the_fate_of_a_query_is_known_until_its_id_is_reused() {
        let mut ledger = Ledger::new(1);
        let (lost, answered) = (ledger.enter(0, 0), ledger.enter(1, 1));
        ledger.give_up(lost);
        ledger.answer(answered);
        for number in 2..IDS as u32 {
            assert_eq!(ledger.find(lost), Match::Late, "{number}");
            assert_eq!(ledger.find(answered), Match::Duplicate, "{number}");
            let id = ledger.enter(number, 2);
            ledger.answer(id);
        }
        assert_eq!(ledger.enter(0, 3), lost);
        assert_eq!(ledger.find(lost), Match::Waiting { query: 0, sent_nanos: 3 });
        assert_eq!(ledger.find(answered), Match::Duplicate);
    }

    #[test]
    fn an_id_whose_query_waits_is_passed_over_for_as_long_as_it_waits() {
        let mut ledger = Ledger::new(1);
        let slow = ledger.enter(42, 0);
        for number in 0..200_000 {
            let id = ledger.enter(number, 1);
            assert_ne!(id, slow);
            ledger.answer(id);
        }
        assert_eq!(ledger.find(slow), Match::Waiting { query: 42, sent_nanos: 0 });
        assert_eq!(ledger.give_up_before(1), 1);
    }

    #[test]
    fn every_id_can_be_taken_by_a_ledger_that_was_small() {
        let mut ledger = Ledger::new(0);
        for number in 0..1 << 16 {
            assert_eq!(usize::from(ledger.enter(number, u64::from(number))), number as usize);
        }
        assert_eq!(ledger.room(), 0);
        let last = Match::Waiting { query: 65_535, sent_nanos: 65_535 };
        assert_eq!(ledger.find(65_535), last);
        assert_eq!(ledger.give_up_before(1 << 15), 1 << 15);
        assert_eq!((ledger.find(0), ledger.find(65_535)), (Match::Late, last));
        assert_eq!(ledger.give_up_before(1 << 16), 1 << 15);
        assert_eq!(ledger.room(), 1 << 16);
    }

    #[test]
    fn queries_are_given_up_in_the_order_in_which_they_were_sent() {
        let mut ledger = Ledger::new(0);
        let mut waiting: Vec<(u16, u64)> = Vec::new();
        let mut random = 1_u32;
        for round in 0..100_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if waiting.len() < 300 {
                waiting.push((ledger.enter(0, round), round));
            }
            if random >> 31 == 1 {
                let (id, _) = waiting.remove(random as usize % waiting.len());
                ledger.answer(id);
            }
            if round % 1000 == 0 {
                let is_young = |(_, sent_nanos): &(u16, u64)| *sent_nanos >= round - 200;
                let old = waiting.iter().filter(|one| round >= 200 && !is_young(one)).count();
                assert_eq!(ledger.give_up_before(round.saturating_sub(200)), old as u64);
                waiting.retain(|one| round < 200 || is_young(one));
            }
        }
        assert_eq!(ledger.waiting(), waiting.len());
    }

    #[test]
    fn giving_up_costs_the_same_whatever_the_number_of_places() {
        let mut ledger = Ledger::new(usize::MAX);
        assert_eq!(ledger.places.len(), IDS);
        ledger.enter(0, 1000);
        let before = thread_cpu_time().unwrap();
        for _ in 0..100_000 {
            assert_eq!(ledger.give_up_before(1000), 0);
        }
        // Looking at each place takes a hundred times as long.
        let took = thread_cpu_time().unwrap() - before;
        assert!(took.as_secs_f64() < 0.5, "{took:?}");
    }

    #[test]
    fn a_client_takes_little_memory_until_many_of_its_queries_wait() {
        let octets = |ledger: &Ledger| size_of_val(&*ledger.places) + ledger.states.len();
        let mut ledger = Ledger::new(0);
        for number in 0..200_000 {
            let id = ledger.enter(number, 0);
            if number > 100 {
                ledger.answer(id);
            }
        }
        assert_eq!(ledger.waiting(), 101);
        assert!(octets(&ledger) <= 24 << 10, "{}", octets(&ledger));
    }
}
