//! The zones as they are at a moment, for all that read: metrics, the admin interface, reloads.

use crate::edit::EditError;
use crate::forwards::Forwards;
use crate::load::LoadError;
use crate::load_time::LoadTime;
use crate::numbers::{Number, QueryCounts};
use crate::units::UnitKey;
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use zonda_config::SerialRule;
use zonda_engine::VersionOrigin;
use zonda_engine::access::AccessList;
use zonda_engine::name_table::{NameTable, NamedValue};
use zonda_engine::zones::{Source, ZoneEntry, ZoneExpiry};
use zonda_wire::Name;
use zonda_zone::Zone;

/// A zone, served or not.
#[derive(Clone)]
pub struct KnownZone {
    /// The entry that the snapshot holds.
    pub entry: Arc<ZoneEntry>,
    /// The unit that the zone is from.
    pub unit: Arc<UnitKey>,
    /// The number under which the zone's queries are counted.
    pub number: Number,
    /// The zone's life: a random number that stays while the server has the zone, so that versions
    /// of a zone that is removed and created anew are told from those of the former one.
    pub life: u32,
    /// The number of records of the served version.
    pub records: u32,
    /// When that version was loaded.
    pub loaded: Option<LoadTime>,
    /// Why the last attempt to load failed.
    pub error: Option<Box<LoadError>>,
    /// How the zone's serial rises, if it can be changed while it is served.
    pub writable: Option<SerialRule>,
}

impl NamedValue for KnownZone {
    fn name(&self) -> &Name {
        &self.entry.apex
    }
}

impl KnownZone {
    /// The data that is served.
    pub fn data(&self) -> Option<&Arc<Zone>> {
        match &self.entry.source {
            Source::Data(zone) => Some(zone),
            Source::Cluster(cluster) => Some(&cluster.data),
            _ => None,
        }
    }

    /// How the serial of the zone rises when it is changed.
    ///
    /// # Errors
    /// When the zone cannot be changed.
    pub fn serial_rule(&self) -> Result<SerialRule, EditError> {
        let zone = || self.entry.apex.to_lowercase();
        self.writable.ok_or_else(|| match self.unit.origin() {
            VersionOrigin::Transfer => EditError::OfPrimaries(zone()),
            _ => EditError::NotWritable(zone()),
        })
    }

    /// Whether an entry with these data and this access list would be the entry that it has.
    pub fn is_same(
        &self,
        data: Option<&Arc<Zone>>,
        access: Option<&AccessList>,
        expiry: Option<&Arc<ZoneExpiry>>,
    ) -> bool {
        let has_data = match (self.data(), data) {
            (Some(own), Some(data)) => Arc::ptr_eq(own, data),
            (own, data) => own.is_none() && data.is_none(),
        };
        let has_expiry = match (&self.entry.expiry, expiry) {
            (Some(own), Some(expiry)) => Arc::ptr_eq(own, expiry),
            (own, expiry) => own.is_none() && expiry.is_none(),
        };
        has_data && has_expiry && self.entry.access.as_deref() == access
    }

    /// The path of its file; an empty one where it has none.
    pub fn path(&self) -> Cow<'_, Path> {
        self.unit.path()
    }
}

/// A file or directory that could not be read.
pub struct FileFailure {
    /// The error for which the zone could not be read.
    pub error: LoadError,
    /// Whether zones from there are served because they could be read before.
    pub is_served: bool,
}

/// The zones at a moment.
pub struct ZoneSetView {
    /// The zones with data, by name.
    pub zones: NameTable<KnownZone>,
    /// The zones that upstreams answer for.
    pub forwards: Arc<Forwards>,
    /// The counts of queries by zone.
    pub counts: QueryCounts,
    /// Files and directories that could not be read.
    pub failures: Arc<Vec<FileFailure>>,
    /// The zones that take no updates and edits for now, by their names in lower case, and since
    /// when, in seconds since 1970.
    pub frozen: Arc<HashMap<Name, u64>>,
}

impl ZoneSetView {
    /// All zones with data, in no particular order.
    pub fn zones(&self) -> impl Iterator<Item = &KnownZone> {
        self.zones.iter().map(|zone| &**zone)
    }

    /// The number of zones with data.
    pub fn zone_count(&self) -> usize {
        self.zones.len()
    }

    /// A zone by its name.
    pub fn zone(&self, name: &Name) -> Option<&KnownZone> {
        self.zones.value(name).map(|zone| &**zone)
    }

    /// Zones that upstreams answer for.
    pub fn forwards(&self) -> &Forwards {
        &self.forwards
    }

    /// Queries for each zone so far, each name once: a zone with the name of a forwarded one, in
    /// front of it or at other listeners, counts with that.
    pub fn queries(&self) -> Vec<(u64, &Name)> {
        let mut forwarded = HashMap::<&Name, u64>::new();
        for forward in self.forwards.iter() {
            let apex = &forward.entry.apex;
            let same = self.zone(apex).filter(|_| !forwarded.contains_key(apex));
            let same = same.map_or(0, |zone| self.counts.queries(zone.number));
            *forwarded.entry(apex).or_default() += self.counts.queries(forward.number) + same;
        }
        let others = self.zones().filter(|zone| !forwarded.contains_key(&zone.entry.apex));
        let others = others.map(|zone| (self.counts.queries(zone.number), &zone.entry.apex));
        let mut queries: Vec<_> = others.collect();
        queries.extend(forwarded.into_iter().map(|(name, queries)| (queries, name)));
        queries
    }

    /// Queries for zones that are gone.
    pub fn queries_gone(&self) -> u64 {
        self.counts.queries_gone()
    }

    /// Files and directories that could not be read.
    pub fn failures(&self) -> impl Iterator<Item = &FileFailure> {
        self.failures.iter()
    }
}
