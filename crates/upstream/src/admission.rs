//! Which queries may wait for an upstream when there are too many.
//!
//! Places are handed out freely while there are some. When all are taken, a question gets the place
//! of an older one, whose client has waited longest and will ask again soonest:
//! - of its own client, if that holds its share already: all places divided by all clients;
//! - else the oldest place of a client that holds more than its share, of the [`SEARCHED_MAX`]
//!   oldest places; else the oldest of all.
//!
//! So a client that asks for more than it can be given only evicts its own questions.
//!
//! Deliberately absent: what a client is. The caller hashes an address, or the network it is in.
//!
//! # Invariants
//! - Never more places are held than there are, or than were held when they became fewer; a
//!   question that is admitted always gets one.
//! - Each place that was handed out is given back by [`Admission::release`], or returned as
//!   evicted.

use crate::numbers::UntrustedKeyMap;

/// How many of the oldest places are searched for one above its client's share: the time that an
/// arrival costs is bounded.
const SEARCHED_MAX: usize = 32;
/// The index of no place.
const NONE: u32 = u32::MAX;

/// A place that is held, until it is released or its query is evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// Index of the place.
    place: u32,
    /// Number of questions that held the place before, modulo 2³².
    turn: u32,
}

impl Ticket {
    /// Returns which place it is, counted from 0: there are no more than were ever held at once.
    #[must_use]
    pub fn place(self) -> usize {
        self.place as usize
    }
}

/// A place in the line, in two lists: of all places, and of those of its client, by age.
#[derive(Clone, Copy, Debug)]
struct Place {
    client: u64,
    turn: u32,
    held: bool,
    /// Neighbours among all places.
    all: Links,
    /// Neighbours among the client's places.
    own: Links,
}

/// Neighbours in a list.
#[derive(Clone, Copy, Debug)]
struct Links {
    older: u32,
    newer: u32,
}

/// The links of a place without neighbours.
const ALONE: Links = Links { older: NONE, newer: NONE };

/// The ends of a list.
#[derive(Clone, Copy, Debug)]
struct Line {
    oldest: u32,
    newest: u32,
    count: u32,
}

/// A list without places.
const EMPTY: Line = Line { oldest: NONE, newest: NONE, count: 0 };

/// One of the two lists of a place.
#[derive(Clone, Copy)]
enum List {
    /// The list of all places.
    All,
    /// The list of the client's places.
    Own,
}

/// The places of waiting queries, shared among clients.
#[derive(Debug)]
pub struct Admission {
    places: Vec<Place>,
    /// Most places, 1 to 2³² − 1.
    places_max: u32,
    /// Places that are free again.
    free: Vec<u32>,
    /// All held places.
    all: Line,
    /// The held places of each client that holds any.
    clients: UntrustedKeyMap<u64, Line>,
    /// Counters of questions.
    pub counters: Counters,
}

/// How many questions came and went. Admitted ones are released, evicted, or still wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Questions that got a place.
    pub admitted: u64,
    /// Questions evicted for a newer one of the same client.
    pub dropped_own: u64,
    /// Questions evicted for one of another client.
    pub dropped_other: u64,
}

impl Admission {
    /// Makes a line of so many places; none counts as one.
    #[must_use]
    pub fn new(places_max: u32) -> Self {
        Self {
            places: Vec::new(),
            places_max: places_max.clamp(1, NONE - 1),
            free: Vec::new(),
            all: EMPTY,
            clients: UntrustedKeyMap::default(),
            counters: Counters::default(),
        }
    }

    /// Changes the number of places; none counts as one. Questions beyond it keep their places
    /// until they end or are evicted.
    pub fn resize(&mut self, places_max: u32) {
        self.places_max = places_max.clamp(1, NONE - 1);
    }

    /// Returns how many questions wait.
    #[must_use]
    pub fn held(&self) -> u32 {
        self.all.count
    }

    /// Admits a question of a client; also returns the ticket that was evicted for it, if any. The
    /// caller must end what waited under that ticket, which is void.
    pub fn admit(&mut self, client: u64) -> (Ticket, Option<Ticket>) {
        self.counters.admitted += 1;
        let dropped = (self.all.count >= self.places_max).then(|| self.drop_for(client));
        let place = self.free.pop().unwrap_or_else(|| {
            let (turn, held) = (0, false);
            self.places.push(Place { client, turn, held, all: ALONE, own: ALONE });
            (self.places.len() - 1) as u32 // fewer than 2³² by places_max
        });
        let slot = &mut self.places[place as usize];
        (slot.client, slot.held) = (client, true);
        let ticket = Ticket { place, turn: slot.turn };
        self.append(List::All, place);
        self.append(List::Own, place);
        (ticket, dropped)
    }

    /// Frees the place of a question that was answered; false when it was evicted before.
    pub fn release(&mut self, ticket: Ticket) -> bool {
        let holds = self
            .places
            .get(ticket.place as usize)
            .is_some_and(|place| place.held && place.turn == ticket.turn);
        if holds {
            self.vacate(ticket.place);
        }
        holds
    }

    /// Evicts a question in favour of one of a client although the line is not full: the fetch that
    /// both wait for takes no more. `None` if nothing waits.
    pub fn make_room(&mut self, client: u64) -> Option<Ticket> {
        (self.all.count > 0).then(|| self.drop_for(client))
    }

    /// Makes room for a question of a client in a line that is full, or as good as full.
    fn drop_for(&mut self, client: u64) -> Ticket {
        let own = self.clients.get(&client).copied().unwrap_or(EMPTY);
        let clients = self.clients.len() as u32 + u32::from(own.count == 0); // ≤ places + 1
        let share = (self.places_max.min(self.all.count) / clients).max(1);
        let place = if own.count >= share {
            self.counters.dropped_own += 1;
            own.oldest
        } else {
            self.counters.dropped_other += 1;
            self.oldest_above(share).unwrap_or(self.all.oldest)
        };
        let ticket = Ticket { place, turn: self.places[place as usize].turn };
        self.vacate(place);
        ticket
    }

    /// Returns the oldest place of a client that holds more than a share, if it is among the oldest
    /// of all, of which there is one at least.
    fn oldest_above(&self, share: u32) -> Option<u32> {
        let newer = |&place: &u32| Some(self.places[place as usize].all.newer);
        let next = |place: &u32| newer(place).filter(|&place| place != NONE);
        let by_age = std::iter::successors(Some(self.all.oldest), next);
        by_age.take(SEARCHED_MAX).find(|&place| {
            let client = self.places[place as usize].client;
            self.clients.get(&client).is_some_and(|line| line.count > share)
        })
    }

    /// Takes a held place out of both lists.
    fn vacate(&mut self, place: u32) {
        self.unlink(List::All, place);
        self.unlink(List::Own, place);
        let slot = &mut self.places[place as usize];
        slot.held = false;
        slot.turn = slot.turn.wrapping_add(1);
        self.free.push(place);
    }

    /// Puts a place at the new end of a list.
    fn append(&mut self, list: List, place: u32) {
        let client = self.places[place as usize].client;
        let line = match list {
            List::All => &mut self.all,
            List::Own => self.clients.entry(client).or_insert(EMPTY),
        };
        let before = std::mem::replace(&mut line.newest, place);
        if before == NONE {
            line.oldest = place;
        }
        line.count += 1;
        *self.links(list, place) = Links { older: before, newer: NONE };
        if before != NONE {
            self.links(list, before).newer = place;
        }
    }

    /// Takes a place out of a list; a client without places is forgotten.
    fn unlink(&mut self, list: List, place: u32) {
        let Links { older, newer } = *self.links(list, place);
        if older != NONE {
            self.links(list, older).newer = newer;
        }
        if newer != NONE {
            self.links(list, newer).older = older;
        }
        let client = self.places[place as usize].client;
        let line = match list {
            List::All => &mut self.all,
            List::Own => self.clients.entry(client).or_insert(EMPTY),
        };
        if older == NONE {
            line.oldest = newer;
        }
        if newer == NONE {
            line.newest = older;
        }
        line.count -= 1;
        if matches!(list, List::Own) && line.count == 0 {
            self.clients.remove(&client);
        }
    }

    /// Returns the neighbours of a place in a list.
    fn links(&mut self, list: List, place: u32) -> &mut Links {
        let slot = &mut self.places[place as usize];
        match list {
            List::All => &mut slot.all,
            List::Own => &mut slot.own,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Admits questions of clients in this order.
    fn fill(admission: &mut Admission, clients: &[u64]) -> Vec<Ticket> {
        clients.iter().map(|&client| admission.admit(client).0).collect()
    }

    /// Returns how many places a client holds.
    fn held(admission: &Admission, client: u64) -> u32 {
        admission.clients.get(&client).map_or(0, |line| line.count)
    }

    #[test]
    fn a_client_alone_gets_all_places_and_then_evicts_its_own_oldest_query() {
        let mut admission = Admission::new(3);
        let tickets = fill(&mut admission, &[1, 1, 1]);
        assert!(admission.release(tickets[1]) && !admission.release(tickets[1]));
        let (fourth, dropped) = admission.admit(1);
        assert_eq!((dropped, fourth.turn), (None, 1));
        assert_eq!(admission.admit(1).1, Some(tickets[0]));
        assert_eq!(admission.admit(1).1, Some(tickets[2]));
        assert_eq!(admission.admit(1).1, Some(fourth));
        assert!(!admission.release(tickets[0]));
    }

    #[test]
    fn a_greedy_client_gives_way_until_all_have_their_share() {
        let mut admission = Admission::new(12);
        fill(&mut admission, &[1; 12]);
        for _ in 0..100 {
            fill(&mut admission, &[1, 2, 3, 1]);
        }
        assert_eq!([1, 2, 3].map(|client| held(&admission, client)), [4, 4, 4]);
        assert_eq!(admission.held(), 12);
    }

    #[test]
    fn a_modest_client_keeps_its_places_while_another_floods() {
        let mut admission = Admission::new(10);
        let modest = fill(&mut admission, &[2, 2]);
        fill(&mut admission, &[1; 1000]);
        assert!(modest.iter().all(|&ticket| admission.release(ticket)));
        let counters = admission.counters;
        assert_eq!((counters.admitted, counters.dropped_other), (1002, 0));
        assert_eq!(counters.dropped_own, 1002 - 10);
    }

    #[test]
    fn a_smaller_bound_lets_waiting_queries_stay_until_answered_or_evicted() {
        let mut admission = Admission::new(4);
        let tickets = fill(&mut admission, &[1, 1, 1, 1]);
        admission.resize(2);
        let (fifth, dropped) = admission.admit(1);
        assert_eq!((dropped, admission.held()), (Some(tickets[0]), 4));
        assert!(tickets[1..].iter().all(|&ticket| admission.release(ticket)));
        assert_eq!((admission.admit(1).1, admission.admit(1).1), (None, Some(fifth)));
        admission.resize(3);
        assert_eq!((admission.admit(1).1, admission.held()), (None, 3));
    }

    #[test]
    fn a_line_that_is_not_full_has_the_greedy_make_room_first() {
        let mut admission = Admission::new(u32::MAX);
        assert_eq!(admission.make_room(1), None);
        let greedy = fill(&mut admission, &[1; 10]);
        let modest = fill(&mut admission, &[2, 3]);
        assert_eq!(admission.make_room(2), Some(greedy[0]));
        assert_eq!(admission.make_room(4), Some(greedy[1]));
        assert_eq!(admission.make_room(1), Some(greedy[2]));
        let counters = admission.counters;
        assert_eq!((counters.dropped_own, counters.dropped_other), (1, 2));
        assert!(modest.iter().all(|&ticket| admission.release(ticket)));
        assert_eq!(admission.make_room(1), Some(greedy[3]), "alone, it drives out its own");
    }

    #[test]
    fn where_each_client_holds_one_place_the_oldest_goes() {
        let mut admission = Admission::new(4);
        let tickets = fill(&mut admission, &[1, 2, 3, 4]);
        assert_eq!(admission.admit(5).1, Some(tickets[0]));
        assert_eq!(admission.admit(6).1, Some(tickets[1]));
        assert_eq!(admission.clients.len(), 4);
    }

    #[test]
    fn lists_stay_consistent_through_any_admissions_and_releases() {
        let (mut admission, mut random) = (Admission::new(50), 1_u64);
        let mut tickets = Vec::new();
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let draw = (random >> 33) as usize;
            if draw.is_multiple_of(3) && !tickets.is_empty() {
                let ticket = tickets.swap_remove(draw / 3 % tickets.len());
                assert!(admission.release(ticket));
            } else {
                let (ticket, dropped) = admission.admit((draw / 3 % 13) as u64);
                tickets.retain(|&it| Some(it) != dropped);
                tickets.push(ticket);
            }
            assert_eq!(admission.held() as usize, tickets.len());
            let counts: u32 = admission.clients.values().map(|line| line.count).sum();
            assert_eq!(counts, admission.held());
        }
        tickets.into_iter().for_each(|ticket| assert!(admission.release(ticket)));
        assert!(admission.clients.is_empty() && admission.all.oldest == NONE);
    }
}
