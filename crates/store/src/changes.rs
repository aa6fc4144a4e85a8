//! What changed in a store, and how it gets around in one process.

use super::{StoreError, Watch};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

/// Owners that are remembered one by one; above that it is cheaper to read all anew.
const OWNERS_MAX: usize = 1000;

/// The owners whose records may have changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Whether it may be any.
    all: bool,
    /// At most [`OWNERS_MAX`]; none if it may be any.
    owners: BTreeSet<String>,
}

impl Changes {
    /// Makes a list without changes.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Anything may have changed.
    #[must_use]
    pub fn all() -> Self {
        Self { all: true, owners: BTreeSet::new() }
    }

    /// Whether nothing changed.
    #[must_use]
    pub fn is_none(&self) -> bool {
        !self.all && self.owners.is_empty()
    }

    /// Adds an owner.
    pub fn add(&mut self, owner: impl Into<String>) {
        if self.all {
            return;
        }
        self.owners.insert(owner.into());
        if self.owners.len() > OWNERS_MAX {
            *self = Self::all();
        }
    }

    /// Adds other changes.
    pub fn merge(&mut self, other: Self) {
        if other.all {
            *self = Self::all();
        }
        other.owners.into_iter().for_each(|owner| self.add(owner));
    }

    /// The owners; nothing if it may be any.
    #[must_use]
    pub fn owners(&self) -> Option<&BTreeSet<String>> {
        (!self.all).then_some(&self.owners)
    }
}

/// Sends changes to all watches of a store in this process. For stores that see all changes
/// themselves.
#[derive(Default)]
pub struct Announcer {
    listeners: Mutex<Vec<Weak<Listener>>>,
}

/// What a watch has not heard yet.
#[derive(Default)]
struct Listener {
    changes: Mutex<Changes>,
    changed: Condvar,
}

impl fmt::Debug for Announcer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Announcer").finish_non_exhaustive()
    }
}

impl Announcer {
    /// Announces that records of an owner changed.
    pub fn announce(&self, owner: &str) {
        self.tell(|changes| changes.add(owner));
    }

    /// Announces that records of several owners changed; a watch hears of all at once.
    pub fn announce_many(&self, owners: &[&str]) {
        self.tell(|changes| owners.iter().for_each(|owner| changes.add(*owner)));
    }

    /// Announces that any records may have changed.
    pub fn announce_all(&self) {
        self.tell(|changes| *changes = Changes::all());
    }

    /// Notes for all watches what they have not heard yet.
    fn tell(&self, note: impl Fn(&mut Changes)) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| {
            let Some(listener) = listener.upgrade() else { return false };
            note(&mut listener.changes.lock().unwrap_or_else(PoisonError::into_inner));
            listener.changed.notify_all();
            true
        });
    }

    /// Hears what is announced from now on.
    #[must_use]
    pub fn watch(&self) -> Box<dyn Watch> {
        let listener = Arc::new(Listener::default());
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.push(Arc::downgrade(&listener));
        Box::new(LocalWatch(listener))
    }
}

/// A watch that hears an announcer.
struct LocalWatch(Arc<Listener>);

impl Watch for LocalWatch {
    fn wait(&mut self, patience: Duration) -> Result<Changes, StoreError> {
        let Listener { changes, changed } = &*self.0;
        let changes = changes.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(changes, patience, |changes| changes.is_none());
        let (mut changes, _) = waited.unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut changes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_owners_are_all() {
        let mut changes = Changes::none();
        assert!(changes.is_none());
        (0..OWNERS_MAX).for_each(|number| changes.add(number.to_string()));
        assert_eq!(changes.owners().map(BTreeSet::len), Some(OWNERS_MAX));
        let mut one = Changes::none();
        one.add("one more");
        changes.merge(one);
        assert_eq!(changes, Changes::all());
    }

    #[test]
    fn each_watch_gets_every_later_announcement_once() {
        let announcer = Announcer::default();
        announcer.announce("before");
        let (mut one, mut two) = (announcer.watch(), announcer.watch());
        announcer.announce("a");
        announcer.announce("a");
        for watch in [&mut one, &mut two] {
            let changes = watch.wait(Duration::ZERO).unwrap();
            assert_eq!(changes.owners().unwrap().iter().collect::<Vec<_>>(), ["a"]);
            assert!(watch.wait(Duration::ZERO).unwrap().is_none());
        }
        announcer.announce_all();
        announcer.announce("a");
        assert_eq!(one.wait(Duration::ZERO).unwrap(), Changes::all());
    }
}
