//! What a query has passed before it was deferred to upstreams.

use crate::zones::{ZoneMatch, ZoneTable};

/// The zone that a deferred query was found to be for, once it had passed all gates and overlays,
/// and the state of the server that this depended on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The generation of the snapshot: of its settings, its code, and the names of its zones.
    pub(crate) generation: u64,
    /// The version of the zone's entry: of its access list and its overlays.
    pub(crate) version: u64,
    /// The zone that holds the name of the question.
    pub(crate) zone: ZoneMatch,
}

impl Checkpoint {
    /// The zone, unless something has changed that the query might not pass once more.
    pub(crate) fn zone(&self, generation: u64, zones: &ZoneTable) -> Option<ZoneMatch> {
        let is_in_force =
            self.generation == generation && zones.get(self.zone.index).version() == self.version;
        is_in_force.then_some(self.zone)
    }
}
