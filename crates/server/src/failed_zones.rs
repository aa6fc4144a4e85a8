//! Zones that could not be loaded, as a program is told of them.

use std::fmt;

use zonda_wire::Name;

use crate::zone_set_view::ZoneSetView;

/// A zone, or a file or directory of zones, that could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedZone {
    /// The zone's name, in lower case; nothing where a file or directory of zones could not be read
    /// so far that the names of its zones are known.
    pub name: Option<Name>,
    /// Whether a former version is served.
    pub is_served: bool,
    /// The errors, a line for each, behind its place: `example.org.zone:3:5: error: …`.
    pub error: String,
}

impl fmt::Display for FailedZone {
    /// Writes what is wrong; the name of the zone, too, where no line has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) if !self.error.contains(&name.to_string()) => {
                write!(f, "zone {name}: {}", self.error)
            }
            _ => f.write_str(&self.error),
        }
    }
}

/// Writes zones that failed, a line or more for each.
#[must_use]
pub fn failed_text(failed: &[FailedZone]) -> String {
    failed.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The zones of which the last attempt to load failed, in the order of their names.
pub fn failed_zones(zone_set: &ZoneSetView) -> Vec<FailedZone> {
    let zones = zone_set.zones().filter_map(|zone| {
        let error = zone.error.as_ref()?.to_string();
        let (name, is_served) = (Some(zone.entry.apex.to_lowercase()), zone.data().is_some());
        Some(FailedZone { name, is_served, error })
    });
    let files = zone_set.failures().map(|failure| {
        let (is_served, error) = (failure.is_served, failure.error.to_string());
        FailedZone { name: None, is_served, error }
    });
    let mut failed: Vec<_> = zones.chain(files).collect();
    failed.sort_by_cached_key(|zone| {
        (zone.name.as_ref().map(ToString::to_string), zone.error.clone())
    });
    failed
}
