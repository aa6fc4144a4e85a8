//! A zone whose feed sends updates by itself.

use super::version::Version;
use crate::units::{TEXT, Unit};
use std::sync::Arc;
use zonda_config::Access;
use zonda_wire::Name;

/// What names a zone whose feed sends updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FedOwner {
    /// The configuration of the server.
    Configuration,
    /// The program that the server is part of.
    Program,
    /// A catalog zone; the configuration goes before it.
    Catalog,
}

/// A zone as its feed has it. What the feed has sent is what the server has of the zone, so that it
/// is in memory once, unless a file serves the zone instead.
pub struct FedZone {
    /// Where the records come from, and the terms under which they are served; most zones of a
    /// source have one.
    pub unit: Arc<Unit>,
    /// What the feed has sent, while a file serves the zone instead.
    pub aside: Option<Box<Version>>,
    /// What names the zone.
    pub owner: FedOwner,
    /// The number of the feed whose updates are taken; 0 for texts of the program.
    pub feed: u64,
    /// Whether the log says that a file serves the zone instead.
    pub is_left_out: bool,
}

/// A zone that is to be served from what a feed sends.
pub struct NewFedZone {
    /// The zone's apex, in lower case.
    pub name: Name,
    /// Where the records come from, as messages call it.
    pub source: Arc<str>,
    /// The clients that may ask for the zone; all if there is none.
    pub access: Option<Arc<Access>>,
    /// What names the zone.
    pub owner: FedOwner,
    /// Whether names in front of the forwarded zone around are answered while there are no data.
    pub hosts_first: bool,
}

impl NewFedZone {
    /// A zone of a store that the program has.
    pub fn of_store(name: Name) -> Self {
        Self::of_program(name, "store of the program".into())
    }

    /// A zone whose master file is a text of the program.
    pub fn of_text(name: Name) -> Self {
        Self::of_program(name, TEXT.into())
    }

    /// A zone that the program has given.
    fn of_program(name: Name, source: Arc<str>) -> Self {
        Self { name, source, access: None, owner: FedOwner::Program, hosts_first: false }
    }
}
