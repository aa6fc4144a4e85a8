//! A store in memory: for tests, and for data that the program makes itself.

use super::record_set::{normal, normal_owner, owners};
use super::{Announcer, RecordSet, Store, StoreError, Watch};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use zonda_wire::{Name, Type};

/// A store that forgets all when the process ends.
#[derive(Default)]
pub struct MemoryStore {
    /// By owner and type in normal form.
    sets: Mutex<BTreeMap<(String, String), RecordSet>>,
    announcer: Announcer,
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("rrsets", &self.sets().len()).finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// A store without records.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The records, for a moment.
    fn sets(&self) -> MutexGuard<'_, BTreeMap<(String, String), RecordSet>> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner) // a map is whole after any panic
    }
}

impl Store for MemoryStore {
    fn load(&self, _: &Name) -> Result<Vec<RecordSet>, StoreError> {
        Ok(self.sets().values().cloned().collect())
    }

    fn get(&self, owner: &str) -> Result<Vec<RecordSet>, StoreError> {
        let owner = normal_owner(owner)?;
        let sets = self.sets();
        let from = sets.range((owner.clone(), String::new())..);
        Ok(from.take_while(|((other, _), _)| *other == owner).map(|(_, set)| set.clone()).collect())
    }

    fn set(&self, records: &RecordSet) -> Result<(), StoreError> {
        self.set_many(std::slice::from_ref(records))
    }

    fn set_many(&self, records: &[RecordSet]) -> Result<(), StoreError> {
        let records = normal(records)?;
        let key = |set: &RecordSet| (set.owner.clone(), set.rtype.clone());
        self.sets().extend(records.iter().map(|set| (key(set), set.clone())));
        self.announcer.announce_many(&owners(&records));
        Ok(())
    }

    fn remove(&self, owner: &str, rtype: Type) -> Result<bool, StoreError> {
        let owner = normal_owner(owner)?;
        let was_there = self.sets().remove(&(owner.clone(), rtype.to_string())).is_some();
        self.announcer.announce(&owner);
        Ok(was_there)
    }

    fn watch(&self, _: &Name) -> Result<Box<dyn Watch>, StoreError> {
        Ok(self.announcer.watch())
    }

    fn watch_all(&self, _: &[Name]) -> Result<Box<dyn Watch>, StoreError> {
        self.watch(&Name::root()) // a watch hears of all names
    }
}
