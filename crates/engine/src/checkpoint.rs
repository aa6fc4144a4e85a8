//! What a query has passed before it was deferred to upstreams.

use crate::zones::{ZoneMatch, ZoneTable};

/// How far a query had come that was deferred to upstreams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checkpoint {
    /// The query was found to be for a zone whose upstreams are asked, once it had passed all gates
    /// and overlays.
    Zone(ZoneCheckpoint),
    /// A template has answered with an alias of this name, in wire form, which is asked for.
    Target(Box<[u8]>),
    /// An ALIAS record leads to this name, in wire form, whose addresses are asked for.
    AliasTarget(Box<[u8]>),
}

/// The zone that a deferred query was found to be for, and the state of the server that this
/// depended on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneCheckpoint {
    /// The generation of the snapshot: of its settings, its code, and the names of its zones.
    pub(crate) generation: u64,
    /// The version of the zone's entry: of its access list and its overlays.
    pub(crate) version: u64,
    /// The zone that holds the name of the question.
    pub(crate) zone: ZoneMatch,
}

impl Checkpoint {
    /// The zone, unless something has changed that the query might not pass once more; none if the
    /// query waits for a target.
    pub(crate) fn zone(&self, generation: u64, zones: &ZoneTable) -> Option<ZoneMatch> {
        let Self::Zone(passed) = self else { return None };
        let is_in_force = passed.generation == generation
            && zones.get(passed.zone.index).version() == passed.version;
        is_in_force.then_some(passed.zone)
    }

    /// The target of a template's alias or of an ALIAS record, in wire form, if the query waits for
    /// that.
    #[must_use]
    pub fn target(&self) -> Option<&[u8]> {
        match self {
            Self::Zone(_) => None,
            Self::Target(name) | Self::AliasTarget(name) => Some(name),
        }
    }

    /// Whether the query waits for the addresses of an ALIAS record's target, which this server
    /// wants to know, whatever its client may ask for.
    #[must_use]
    pub fn is_of_alias_record(&self) -> bool {
        matches!(self, Self::AliasTarget(_))
    }
}
