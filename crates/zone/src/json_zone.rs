//! What is read of a JSON file.

use crate::diagnostic::{Diagnostics, Errors};
use crate::records::Records;
use zonda_wire::Name;

/// What is in a JSON file.
pub struct JsonFile {
    /// The zones, as far as they could be read.
    pub zones: Vec<JsonZone>,
    /// Errors that belong to none of the zones: the file cannot be read, or a zone has no name.
    pub errors: Option<Errors>,
    /// All that is wrong.
    pub diagnostics: Diagnostics,
}

/// A zone of a JSON file.
pub struct JsonZone {
    /// Apex of the zone.
    pub name: Name,
    /// The name that the file's maker gives to this version.
    pub sha: Option<String>,
    /// The records, or those that could be read.
    pub records: Records,
    /// The errors that keep the zone from being read in whole.
    pub errors: Option<Errors>,
}

impl JsonZone {
    /// Whether nothing of it could be read, so that there is nothing more to say of it.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.errors.is_some() && self.records.is_empty()
    }
}
