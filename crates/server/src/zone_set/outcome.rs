//! What a reload, or an update of a feed, did.

use zonda_wire::Name;

/// What a reload did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Zones that are served in a new version, or for the first time.
    pub loaded: Vec<Name>,
    /// Zones that were read again and hold what is served already, so that nothing is published.
    pub unchanged: Vec<Name>,
    /// Zones that are not served any more.
    pub removed: Vec<Name>,
    /// The errors of zones and files that could not be loaded.
    pub failed: Vec<String>,
    /// Whether anything in the snapshot differs.
    pub changed: bool,
    /// Whether names came or went.
    pub names_changed: bool,
}

impl Outcome {
    /// Adds what else was done at the same time.
    pub fn add(&mut self, other: Self) {
        self.loaded.extend(other.loaded);
        self.unchanged.extend(other.unchanged);
        self.removed.extend(other.removed);
        self.failed.extend(other.failed);
        self.changed |= other.changed;
        self.names_changed |= other.names_changed;
    }

    /// Whether anything was loaded or removed, or could not be.
    pub fn is_worth_telling(&self) -> bool {
        self.changed || !self.unchanged.is_empty() || !self.failed.is_empty()
    }
}
