//! A version of a zone as feeds make it.

use crate::feed::Update;
use crate::load_error::LoadError;
use crate::load_time::LoadTime;
use crate::zone_set_view::KnownZone;
use std::sync::Arc;
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
    pub loaded: Option<LoadTime>,
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
    /// No version, of a zone whose feed has sent nothing yet.
    pub fn awaited() -> Self {
        Self { error: Some(LoadError::awaited().into()), ..Self::default() }
    }

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
                let (data, loaded) = (Some(new.zone), Some(LoadTime::now()));
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
                    self.loaded = Some(LoadTime::now());
                }
            }
            Update::Cluster(zone, services) => {
                let (data, loaded) = (Some(Arc::clone(&zone.data)), Some(LoadTime::now()));
                let (cluster, records) = (Some(zone), narrow(services));
                *self = Self { data, cluster, records, loaded, ..Self::default() };
            }
            Update::Unavailable(error) => self.error = Some(Box::new(error)),
            Update::Expires(expiry) => self.expiry = Some(expiry),
            Update::Expired(error) => {
                // Records of a file that are served instead later on have no more time than this.
                let (error, expiry) = (Some(Box::new(error)), self.expiry.take());
                *self = Self { error, expiry, is_expired: true, ..Self::default() };
            }
        }
        Ok(())
    }
}

/// A number of records, as a zone is remembered with it.
pub fn narrow(records: usize) -> u32 {
    u32::try_from(records).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::path::Path;
    use zonda_engine::zones::ZoneEntry;
    use zonda_wire::Name;
    use zonda_zone::file::{Options, read_text};
    use zonda_zone::{HashSeed, build};

    /// The seconds until a version expires that clients are told at a moment, if it has records of
    /// a file whose SOA record says 600.
    fn left(version: &Version, unix_secs: u32) -> Option<u32> {
        let apex: Name = "a.test".parse().unwrap();
        let text = b"@ 60 SOA ns host 7 1 1 600 1\n@ 60 NS ns\nns 60 A 192.0.2.1\n";
        let (records, _) = read_text(text, Path::new("text"), &apex, &Options::default());
        let data = Arc::new(build(&apex, &records, HashSeed(7)).unwrap());
        let entry = ZoneEntry::new(apex, Source::Data(data), None, 0);
        entry.with_expiry(version.expiry.clone()).expire_secs(unix_secs)
    }

    #[test]
    fn records_that_follow_an_expired_version_have_no_more_time_than_that_had() {
        let expiry = Arc::new(ZoneExpiry::default());
        let mut version = Version { expiry: Some(Arc::default()), ..Version::default() };
        assert_eq!(left(&version, 1000), None, "it is not known yet");
        version.take(Update::Expires(Arc::clone(&expiry))).unwrap();
        expiry.set(1300);
        assert_eq!(left(&version, 1000), Some(300));
        version.take(Update::Unavailable(LoadError::awaited())).unwrap();
        assert_eq!(left(&version, 1200), Some(100));
        version.take(Update::Expired(LoadError::awaited())).unwrap();
        assert_eq!(left(&version, 1400), Some(0));
    }
}
