//! Zones that a program gives as text or has follow its stores, while the server runs.

use super::Control;
use crate::feed::stores::wait_for_first_load;
use crate::load::load_text;
use std::sync::{Arc, MutexGuard, PoisonError};
use zonda_store::Store;
use zonda_wire::Name;

impl Control {
    /// Waits until no other change of the program's zones is made.
    fn lock_program_zones(&self) -> MutexGuard<'_, ()> {
        self.updating.lock().unwrap_or_else(PoisonError::into_inner) // it protects nothing itself
    }

    /// Serves a zone, whose name is in lower case, from a text of the program that was checked.
    /// Blocks until it is served.
    ///
    /// # Errors
    /// When the zone has another source.
    pub fn set_text(&self, name: &Name, text: &str) -> Result<(), String> {
        let _one_at_a_time = self.lock_program_zones();
        let state = self.state();
        let update = load_text(name, text, (&state.zone_set, state.seed));
        drop(state);
        let set = self.publisher.set_text(name, update).map_err(|error| error.to_string())?;
        set.map_err(|other| format!("zone {name} is already served from {other}"))
    }

    /// Serves a zone, whose name is in lower case, from a store of the program, in place of a
    /// former store. Blocks until the store is loaded, for at most three seconds.
    ///
    /// # Errors
    /// When the zone has another source; or when its feed cannot start, as the server ends or the
    /// system has no thread for it: the zone is out of service then.
    pub fn set_store(&self, name: &Name, store: Arc<dyn Store>) -> Result<(), String> {
        let one_at_a_time = self.lock_program_zones();
        let added = self.publisher.add_store(name).map_err(|error| error.to_string())?;
        added.map_err(|other| format!("zone {name} is already served from {other}"))?;
        let followed = self.stores.add(name, store).map_err(|error| {
            let _ = self.publisher.remove_of_program(name); // the log has why it fails
            format!("zone {name}: its store cannot be followed: {error}")
        })?;
        drop(one_at_a_time); // a store that is away delays no other change
        wait_for_first_load(&followed);
        Ok(())
    }

    /// Takes a zone, whose name is in lower case, out of service that the program has given as text
    /// or that follows a store of it; returns whether there was one. Blocks.
    ///
    /// # Errors
    /// When the publisher fails, or the system has no thread for the feeds of other stores.
    pub fn remove_of_program(&self, name: &Name) -> Result<bool, String> {
        let _one_at_a_time = self.lock_program_zones();
        let removed = self.publisher.remove_of_program(name).map_err(|error| error.to_string())?;
        let unfollowed = self.stores.remove(name);
        unfollowed.map_err(|error| format!("zone {name}: cannot start a thread: {error}"))?;
        Ok(removed)
    }
}
