//! Guards: middleware for the names of a pattern.
//!
//! A guard answers for no name: what a query that has passed it reaches is what it would reach
//! without it. A query passes the guards of all patterns that are for it, the one of the widest
//! pattern first, and only those.
//!
//! # Invariants
//! - Without guards, a query pays for none: whether there are any is known before it is looked at.

use super::elsewhere::Elsewhere;
use super::middleware::Stage;
use super::routes::{Route, Routes};
use std::sync::Arc;
use zonda_wire::Type;
use zonda_zone::{HashSeed, LookupName};

/// Middleware for the names of a pattern.
#[derive(Clone)]
pub enum Guard {
    /// Middleware in the worker.
    Here(Arc<dyn Stage>),
    /// Middleware of a runtime, which knows it by this number.
    Elsewhere(Elsewhere),
}

/// All guards that are in force.
pub struct Guards {
    /// Middleware in the worker.
    pub(crate) here: Routes<Arc<dyn Stage>>,
    /// Middleware of runtimes.
    elsewhere: Routes<Elsewhere>,
    /// The secret by which names are hashed.
    seed: HashSeed,
}

impl Guards {
    /// Guards in the order in which they were added, for names that are hashed with `seed`. Those
    /// of one pattern are passed in this order.
    #[must_use]
    pub fn new(guards: Vec<Route<Guard>>, seed: HashSeed) -> Self {
        let (mut here, mut elsewhere) = (Vec::new(), Vec::new());
        for Route { pattern, handler } in guards {
            match handler {
                Guard::Here(handler) => here.push(Route { pattern, handler }),
                Guard::Elsewhere(handler) => elsewhere.push(Route { pattern, handler }),
            }
        }
        Self { here: Routes::new(here, seed), elsewhere: Routes::new(elsewhere, seed), seed }
    }

    /// Guards as those of [`Guards::new`], for names that are hashed with a seed of their own.
    #[must_use]
    pub fn alone(guards: Vec<Route<Guard>>) -> Self {
        Self::new(guards, HashSeed::random())
    }

    /// Whether there is a guard in the worker.
    pub(super) fn has_here(&self) -> bool {
        !self.here.is_empty()
    }

    /// Whether a runtime has a guard.
    pub(super) fn has_elsewhere(&self) -> bool {
        !self.elsewhere.is_empty()
    }

    /// Returns the runtime whose guards a query passes, if there are any for it.
    pub(super) fn runtime_for(&self, name: &LookupName, qtype: Type) -> Option<u16> {
        self.elsewhere.find(name, qtype).map(|(_, guard)| guard.handler.runtime)
    }

    /// Returns the numbers of the guards of runtimes that a query for a name, in wire form, passes,
    /// in this order.
    #[must_use]
    pub fn numbers_of(&self, name: &[u8], qtype: Type) -> Vec<u32> {
        self.numbers_for(&LookupName::new(name, self.seed), qtype)
    }

    /// Returns the numbers of the guards of runtimes that a query passes, in this order.
    #[must_use]
    pub fn numbers_for(&self, name: &LookupName, qtype: Type) -> Vec<u32> {
        let mut places = Vec::new();
        self.elsewhere.find_all(name, qtype, &mut places);
        let guards = self.elsewhere.as_slice();
        places.into_iter().map(|place| guards[place].handler.handler).collect()
    }
}
