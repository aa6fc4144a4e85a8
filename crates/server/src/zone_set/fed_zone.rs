//! A zone whose feed sends updates by itself.

use super::version::Version;
use crate::units::Unit;
use std::sync::Arc;
use zonda_config::Access;
use zonda_wire::Name;

/// A zone as its feed has it.
#[derive(Clone)]
pub struct FedZone {
    /// Where the records come from, and the terms under which they are served.
    pub unit: Unit,
    /// What the feed has sent.
    pub version: Version,
    /// Whether the configuration names the zone, and not the program.
    pub is_configured: bool,
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
    /// Whether the configuration names the zone, and not the program.
    pub is_configured: bool,
}

impl NewFedZone {
    /// A zone of a store that the program has.
    pub fn of_store(name: Name) -> Self {
        Self { name, source: "store of the program".into(), access: None, is_configured: false }
    }

    /// A zone whose master file is a text of the program.
    pub fn of_text(name: Name) -> Self {
        Self { name, source: "text of the program".into(), access: None, is_configured: false }
    }
}
