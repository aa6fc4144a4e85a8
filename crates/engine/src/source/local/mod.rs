//! Names that a server that forwards answers itself: special-use names, those of hosts files and
//! of the configuration.
//!
//! All of them are zone data, so that they are found and written as any. An *overlay* has single
//! names: what it lacks goes on to the zone behind it.

use crate::zones::Overlay;
use zonda_wire::Type;
use zonda_zone::{LookupName, LookupResult, Zone};

/// The first overlay that has a name.
#[inline]
pub fn overlay_of<'s>(name: &LookupName, overlays: &'s [Overlay]) -> Option<&'s Overlay> {
    overlays.iter().find(|overlay| has(&overlay.zone, name))
}

/// Whether a zone has records of its own for a name, be it by a wildcard.
fn has(zone: &Zone, name: &LookupName) -> bool {
    match zone.find(name, false) {
        LookupResult::Exact(node) | LookupResult::Wildcard { node, .. } => {
            node.sets().any(|set| set.rtype != Type::SOA)
        }
        LookupResult::Missing { .. } | LookupResult::Referral(_) | LookupResult::Dname(_) => false,
    }
}
