//! The places of queries that wait: which clients have how many, and the fetch that each query
//! waits for.
//!
//! Deliberately absent: the queries themselves, which lie with their fetches.

use zonda_upstream::{Admission, Ticket};

use crate::cause::FetchId;

/// The places of all queries that wait for a forwarder thread.
pub struct Waiters {
    /// Shares out the places among clients.
    admission: Admission,
    /// The ticket that holds each place, and the fetch that its query waits for.
    places: Vec<Option<(Ticket, FetchId)>>,
}

/// A query that lost its place to a newer one.
pub struct Evicted {
    /// The right that the query had to wait.
    pub ticket: Ticket,
    /// The fetch that it waits for, if that is known.
    pub fetch: Option<FetchId>,
    /// Whether the newer query is of the same client.
    pub is_own: bool,
}

impl Waiters {
    /// As many places as given, all of them free.
    pub fn new(places_max: u32) -> Self {
        Self { admission: Admission::new(places_max), places: Vec::new() }
    }

    /// Changes the number of places.
    pub fn resize(&mut self, places_max: u32) {
        self.admission.resize(places_max);
    }

    /// Gives a place to a query of a client. If none is free, the oldest query of the client that
    /// has most loses its own.
    pub fn admit(&mut self, client: u64) -> (Ticket, Option<Evicted>) {
        let own_before = self.admission.counters.dropped_own;
        let (ticket, evicted) = self.admission.admit(client);
        let is_own = self.admission.counters.dropped_own > own_before;
        let evicted = evicted.map(|ticket| {
            let fetch = self.take_fetch(ticket);
            Evicted { ticket, fetch, is_own }
        });
        (ticket, evicted)
    }

    /// Notes the fetch that a query waits for.
    pub fn wait_for(&mut self, ticket: Ticket, fetch: FetchId) {
        let place = ticket.place();
        if self.places.len() <= place {
            self.places.resize(place + 1, None); // there are no more than ever waited at once
        }
        self.places[place] = Some((ticket, fetch));
    }

    /// Frees the place of a query that waits no longer.
    pub fn release(&mut self, ticket: Ticket) {
        self.admission.release(ticket);
        self.take_fetch(ticket);
    }

    /// How many places are held.
    pub fn held(&self) -> u32 {
        self.admission.held()
    }

    /// Gives up the memory of places that are free.
    pub fn shrink(&mut self) {
        while self.places.pop_if(|place| place.is_none()).is_some() {}
        self.places.shrink_to_fit();
    }

    /// Takes out the fetch that a query waited for.
    fn take_fetch(&mut self, ticket: Ticket) -> Option<FetchId> {
        let place = self.places.get_mut(ticket.place())?;
        Some(place.take_if(|(held, _)| *held == ticket)?.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_query_of_the_busiest_client_is_evicted_with_the_fetch_that_it_waits_for() {
        let mut waiters = Waiters::new(2);
        let fetch = |number| FetchId { place: 0, number };
        let (first, evicted) = waiters.admit(1);
        assert!(evicted.is_none());
        waiters.wait_for(first, fetch(7));
        let (second, _) = waiters.admit(1);
        waiters.wait_for(second, fetch(8));
        let evicted = waiters.admit(2).1;
        let evicted = evicted.map(|it| (it.ticket == first, it.fetch, it.is_own));
        assert_eq!(evicted, Some((true, Some(fetch(7)), false)));
        waiters.release(second);
        assert_eq!(waiters.held(), 1);
    }
}
