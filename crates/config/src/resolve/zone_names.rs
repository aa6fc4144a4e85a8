//! The names that zones have taken, and the listeners that they are at.

use crate::access::Access;
use crate::error::{Contradiction, Origin, PlaceMistake};
use crate::reader::Reader;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use zonda_wire::Name;

/// Reports listeners that a section names and the server does not have.
pub(super) fn check_listeners(
    reader: &mut Reader<'_, '_>,
    named: &[SocketAddr],
    listens_on: &[SocketAddr],
) {
    if named.is_empty() && reader.is_set("listen") {
        reader.contradict(Some("listen"), Contradiction::Place(PlaceMistake::Nowhere));
    }
    for address in named.iter().filter(|address| !listens_on.contains(address)) {
        let mistake = PlaceMistake::NoListener(*address, listens_on.to_vec());
        reader.contradict(Some("listen"), Contradiction::Place(mistake));
    }
}

/// Where a zone is, and whether it has data.
#[derive(Clone, Default)]
pub(super) struct ZonePlace {
    /// The listeners that the zone is at; none: all of them.
    pub listeners: Vec<SocketAddr>,
    /// Whether the zone has data of its own, or names in front of a forwarded zone.
    pub has_data: bool,
}

impl ZonePlace {
    /// Whether a query can come to both zones.
    fn meets(&self, other: &Self) -> bool {
        let (one, other) = (&self.listeners, &other.listeners);
        one.is_empty() || other.is_empty() || one.iter().any(|it| other.contains(it))
    }
}

/// The names of the zones read so far.
#[derive(Default)]
pub(super) struct TakenNames {
    /// The zones of each name in lower case, and the places where the name was given.
    zones: HashMap<Name, Vec<(Origin, ZonePlace)>>,
}

impl TakenNames {
    /// Notes that a zone has this name; false if one that was given outside of the file takes its
    /// place. A second zone of a name is reported, unless it is at other listeners.
    pub fn take(&mut self, reader: &mut Reader<'_, '_>, name: Name, place: &ZonePlace) -> bool {
        let origin = reader.origin_of("name");
        let known = self.zones.entry(name.clone()).or_default();
        if origin.is_file() && known.iter().any(|(first, _)| !first.is_file()) {
            return false;
        }
        let mistake = known.iter().find_map(|(first, other)| {
            let data_twice = place.has_data && other.has_data;
            if place.meets(other) {
                Some(Contradiction::ZoneTwice(name.clone(), first.clone()))
            } else {
                data_twice.then(|| {
                    let twice = PlaceMistake::DataTwice(name.clone(), first.clone());
                    Contradiction::Place(twice)
                })
            }
        });
        match mistake {
            Some(mistake) => reader.contradict(Some("name"), mistake),
            None => known.push((origin, place.clone())),
        }
        true
    }
}

/// Restricts zones to listeners. Zones in a row often share an access list, and so do they then.
#[derive(Default)]
pub(super) struct Restriction {
    /// The access list of the last zone, and its listeners.
    last: (Option<Arc<Access>>, Vec<SocketAddr>),
    /// What was made of them.
    made: Option<Arc<Access>>,
}

impl Restriction {
    /// Returns an access list with the listeners that the zone is at.
    pub fn restrict(
        &mut self,
        access: Option<Arc<Access>>,
        listeners: Vec<SocketAddr>,
    ) -> Option<Arc<Access>> {
        if listeners.is_empty() {
            return access;
        }
        let zone = (access, listeners);
        if self.made.is_none() || self.last != zone {
            let mut made = zone.0.as_deref().cloned().unwrap_or_else(Access::open);
            made.listeners = Some(zone.1.as_slice().into());
            (self.last, self.made) = (zone, Some(Arc::new(made)));
        }
        self.made.clone()
    }
}
