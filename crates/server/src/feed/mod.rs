//! Feeds: what brings the content of zones, each in its own time, and what they send.
//!
//! ```text
//! files, JSON, directories, hosts ── start, reload, watch ──┐
//! databases and stores of the program ── stores.rs ─────────┼─► Update ─► publisher ─► zone set
//! zones of primaries ── secondaries.rs ─────────────────────┤
//! members of catalogs ── catalogs.rs ── secondaries.rs ─────┤
//! objects of Kubernetes clusters ── clusters.rs ────────────┤
//! texts of the program ── Server::set_zone_text ────────────┘
//! ```
//!
//! A feed runs beside the publisher and sends it updates over the queue of all work, so that
//! nothing a source does, or fails to do, has queries or other zones wait.

mod catalog_file;
mod catalog_maker;
pub mod catalogs;
#[cfg(feature = "whole")]
mod change_times;
#[cfg(feature = "whole")]
mod cluster_feed;
#[cfg(feature = "whole")]
pub mod cluster_file;
#[cfg(feature = "whole")]
mod cluster_place;
#[cfg(feature = "whole")]
pub mod cluster_state;
#[cfg(feature = "whole")]
pub mod cluster_subjects;
#[cfg(feature = "whole")]
pub mod clusters;
#[cfg(not(feature = "whole"))]
#[path = "no_clusters.rs"]
pub mod clusters;
mod mixed_ttls;
pub mod open;
#[cfg(feature = "whole")]
mod search_domains;
pub mod secondaries;
mod secondary_addresses;
mod secondary_announced;
#[cfg(all(test, feature = "whole"))]
mod secondary_cost_tests;
mod secondary_crowd;
pub mod secondary_followed;
mod secondary_memory;
mod secondary_moment;
mod secondary_refresh;
mod secondary_refused;
pub mod secondary_schedule;
pub mod secondary_state;
mod secondary_transfer;
#[cfg(all(test, feature = "whole"))]
mod secondary_wait_tests;
mod secondary_work;
mod secondary_zone;
mod secondary_zones;
pub mod store_feed;
pub mod store_state;
pub mod stores;

use crate::load_error::LoadError;
use std::sync::Arc;
use zonda_engine::zones::{ClusterZone, ZoneExpiry};
use zonda_zone::{ChangeSet, Diff, Digest, Zone};

/// What a feed has for a zone.
pub enum Update {
    /// The zone has these records from now on, and no other records.
    Replace(LoadedZone),
    /// The zone has these records from now on, and these changes led to them, the oldest first.
    Kept(LoadedZone, Vec<Diff>),
    /// These changes of the version that is served.
    Change(ChangeSet),
    /// The zone has the names of a cluster as it is now, of so many services.
    Cluster(Arc<ClusterZone>, usize),
    /// The source has no records that can be served, for this reason; the zone keeps those that it
    /// has.
    Unavailable(LoadError),
    /// The zone, whose records came from elsewhere, expires at this moment unless the source has
    /// records until then.
    Expires(Arc<ZoneExpiry>),
    /// The source was unavailable for so long that the zone may not be served any more.
    Expired(LoadError),
}

impl Update {
    /// The same update of a zone that expires.
    pub fn with_expiry(self, expiry: &Arc<ZoneExpiry>) -> Self {
        let expiry = Some(Arc::clone(expiry));
        match self {
            Self::Replace(loaded) => Self::Replace(LoadedZone { expiry, ..loaded }),
            Self::Kept(loaded, changes) => Self::Kept(LoadedZone { expiry, ..loaded }, changes),
            update => update,
        }
    }
}

/// A zone that was read.
pub struct LoadedZone {
    /// The zone, which has all memory in which nothing differs from the version in force in common
    /// with it; that version itself if no record differs.
    pub zone: Arc<Zone>,
    /// How many records it has.
    pub records: usize,
    /// The digest of the records, for a zone that can be changed while it is served.
    pub digest: Option<Digest>,
    /// When the zone expires, if it is transferred from primaries.
    pub expiry: Option<Arc<ZoneExpiry>>,
}

impl LoadedZone {
    /// The same zone packed, unless other threads have it as well.
    pub fn packed(self) -> Self {
        match Arc::try_unwrap(self.zone) {
            Ok(zone) => Self { zone: Arc::new(zone.packed()), ..self },
            Err(zone) => Self { zone, ..self },
        }
    }
}

impl From<Result<LoadedZone, LoadError>> for Update {
    fn from(result: Result<LoadedZone, LoadError>) -> Self {
        match result {
            Ok(loaded) => Self::Replace(loaded),
            Err(error) => Self::Unavailable(error),
        }
    }
}
