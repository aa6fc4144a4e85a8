//! A version of a zone as feeds make it.

use crate::feed::Update;
use crate::load_error::LoadError;
use crate::zone_set_view::KnownZone;
use std::sync::Arc;
use std::time::SystemTime;
use zonda_engine::Reason;
use zonda_engine::zones::{ClusterZone, Source, ZoneExpiry};
use zonda_zone::{ChangeError, Diff, Zone};

/// A version of a zone, and how it came to be.
#[derive(Clone, Default)]
pub struct Version {
    /// The records; none where the zone is answered SERVFAIL.
    pub data: Option<Arc<Zone>>,
    /// The names of the cluster that the zone has besides, if it has such.
    pub cluster: Option<Arc<ClusterZone>>,
    /// The number of records, or of services.
    pub records: u32,
    /// When the version was loaded.
    pub loaded: Option<SystemTime>,
    /// Why there is no newer version.
    pub error: Option<Box<LoadError>>,
    /// Whether there are no records because the source was unavailable for too long.
    pub is_expired: bool,
    /// The changes that led to the records, the oldest first, which the zone's history is made of
    /// if there is no version before; empty where none are known.
    pub changes: Vec<Diff>,
    /// When the zone expires, if it is transferred from primaries.
    pub expiry: Option<Arc<ZoneExpiry>>,
}

impl Version {
    /// The version of a zone that is known.
    pub fn of(zone: &KnownZone) -> Self {
        let KnownZone { records, loaded, error, .. } = zone;
        let (records, loaded, error) = (*records, *loaded, error.clone());
        let cluster = match &zone.entry.source {
            Source::Cluster(cluster) => Some(Arc::clone(cluster)),
            _ => None,
        };
        let is_expired = matches!(zone.entry.source, Source::Unavailable(Reason::ZoneExpired));
        Self {
            data: zone.data().cloned(),
            cluster,
            records,
            loaded,
            error,
            is_expired,
            expiry: zone.entry.expiry.clone(),
            ..Self::default()
        }
    }

    /// Takes what a feed has.
    ///
    /// # Errors
    /// When the zone cannot be changed so; the version is as it was then.
    pub fn take(&mut self, update: Update) -> Result<(), ChangeError> {
        match update {
            Update::Replace(new) => {
                let (data, loaded) = (Some(new.zone), Some(SystemTime::now()));
                let (records, expiry) = (narrow(new.records), new.expiry);
                *self = Self { data, records, loaded, expiry, ..Self::default() };
            }
            Update::Kept(new, changes) => {
                self.take(Update::Replace(new))?;
                self.changes = changes;
            }
            Update::Change(changes) => {
                let Some(data) = &self.data else { return Ok(()) };
                let (zone, diff) = data.with(&changes)?;
                self.error = None;
                if !diff.is_empty() {
                    let records = self.records as usize + diff.added.len() - diff.removed.len();
                    (self.data, self.records) = (Some(Arc::new(zone)), narrow(records));
                    self.loaded = Some(SystemTime::now());
                }
            }
            Update::Cluster(zone, services) => {
                let (data, loaded) = (Some(Arc::clone(&zone.data)), Some(SystemTime::now()));
                let (cluster, records) = (Some(zone), narrow(services));
                *self = Self { data, cluster, records, loaded, ..Self::default() };
            }
            Update::Unavailable(error) => self.error = Some(Box::new(error)),
            Update::Expired(error) => {
                *self = Self { error: Some(Box::new(error)), is_expired: true, ..Self::default() };
            }
        }
        Ok(())
    }
}

/// A number of records, as a zone is remembered with it.
pub fn narrow(records: usize) -> u32 {
    u32::try_from(records).unwrap_or(u32::MAX)
}
