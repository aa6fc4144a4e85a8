//! Names that exist because code has them.

use super::routes::Claim;
use crate::snapshot::Snapshot;
use zonda_wire::Type;
use zonda_zone::LookupName;

/// Returns what the routes say about a name that no code has answered for and that no zone has.
pub fn claim(snapshot: &Snapshot, name: &LookupName, qtype: Type) -> Claim {
    let handlers = snapshot.handlers.as_ref();
    handlers.map_or(Claim::default(), |it| it.routes.claim(name, qtype))
}

/// Whether there is a route for a name and type.
pub fn has_route(snapshot: &Snapshot, name: &LookupName, qtype: Type) -> bool {
    snapshot.handlers.as_ref().is_some_and(|it| it.routes.find(name, qtype).is_some())
}

/// Whether code has a name, or may have it with a type.
pub fn is_of_code(snapshot: &Snapshot, name: &LookupName, qtype: Type) -> bool {
    has_route(snapshot, name, qtype) || claim(snapshot, name, qtype).is_own
}

/// Whether a route spells a name out and is for the type, so that no upstream is asked for that.
pub fn has_exact_route(snapshot: &Snapshot, name: &LookupName, qtype: Type) -> bool {
    let found = snapshot.handlers.as_ref().and_then(|it| it.routes.find(name, qtype));
    found.is_some_and(|(_, route)| route.pattern.is_exact())
}
