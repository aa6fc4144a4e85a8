//! The zones of primaries that are followed, found by the apexes that they hold themselves: there
//! may be a hundred thousand of them, each name of which would take 16 octets more.

use super::secondary_zone::SecondaryZone;
use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use zonda_wire::Name;

/// A set of zones, of which no two have one apex.
#[derive(Default)]
pub struct SecondaryZones(HashSet<ByApex>);

/// A zone that is found by its apex.
struct ByApex(Arc<SecondaryZone>);

impl Borrow<Name> for ByApex {
    fn borrow(&self) -> &Name {
        &self.0.apex
    }
}

impl Hash for ByApex {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.apex.hash(state);
    }
}

impl PartialEq for ByApex {
    fn eq(&self, other: &Self) -> bool {
        self.0.apex == other.0.apex
    }
}

impl Eq for ByApex {}

impl SecondaryZones {
    /// A zone by its apex in lower case.
    pub fn get(&self, apex: &Name) -> Option<&Arc<SecondaryZone>> {
        self.0.get(apex).map(|zone| &zone.0)
    }

    /// Whether there is a zone with this apex in lower case.
    pub fn contains(&self, apex: &Name) -> bool {
        self.0.contains(apex)
    }

    /// Puts a zone in place of the one with its apex, if there is one.
    pub fn insert(&mut self, zone: Arc<SecondaryZone>) {
        self.0.replace(ByApex(zone));
    }

    /// Takes a zone out.
    pub fn remove(&mut self, apex: &Name) -> Option<Arc<SecondaryZone>> {
        self.0.take(apex).map(|zone| zone.0)
    }

    /// All zones, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<SecondaryZone>> {
        self.0.iter().map(|zone| &zone.0)
    }

    /// Takes all zones out.
    pub fn take_all(&mut self) -> impl Iterator<Item = Arc<SecondaryZone>> + use<> {
        std::mem::take(&mut self.0).into_iter().map(|zone| zone.0)
    }
}
