//! Zones that catalogs of this server list otherwise than before, so that what makes the catalogs
//! looks at these and not at all zones.

use crate::zone_set_view::KnownZone;
use std::collections::HashSet;
use zonda_wire::Name;

/// Names that are kept until the catalogs are made anew; where there are more, all zones are looked
/// at.
const NAMES_MAX: usize = 1 << 16;

/// The zones that came or went, or that another catalog or group lists, since that was asked last.
#[derive(Debug, Default)]
pub struct ListingChanges {
    /// The names of these zones in lower case; none of them where they were too many.
    pub names: HashSet<Name>,
    /// Whether there were too many names, so that any zone may be one of them.
    pub is_incomplete: bool,
    /// The number of changes so far.
    count: u64,
}

impl ListingChanges {
    /// Notes a zone as it was and as it is, of which one or the other may not be.
    pub fn note(&mut self, former: Option<&KnownZone>, next: Option<&KnownZone>) {
        let (Some(zone), true) = (former.or(next), differs(former, next)) else { return };
        self.count += 1;
        if self.names.len() < NAMES_MAX {
            self.names.insert(zone.entry.apex.to_lowercase());
        } else {
            (self.names, self.is_incomplete) = (HashSet::new(), true);
        }
    }

    /// Returns the number of changes so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Takes all that was noted.
    pub fn take(&mut self) -> Self {
        let next = Self { count: self.count, ..Self::default() };
        std::mem::replace(self, next)
    }
}

/// Whether a catalog lists one of two versions of a zone otherwise than the other.
fn differs(one: Option<&KnownZone>, other: Option<&KnownZone>) -> bool {
    let access = |zone: Option<&KnownZone>| zone.and_then(|zone| zone.entry.access.clone());
    match (access(one), access(other)) {
        (Some(one), Some(other)) => one.transfers.catalog != other.transfers.catalog,
        (None, None) => false,
        (Some(only), None) | (None, Some(only)) => only.transfers.catalog.is_some(),
    }
}
