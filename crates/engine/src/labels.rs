//! Queries by the labels of CoreDNS's metrics: server, zone, transport, family, type, code.
//!
//! Servers and zones have places, small numbers under which each worker counts. A server without
//! such labels pays one branch a query.
//!
//! # Invariants
//! - A place stands for the same zone or server as long as the process runs, also after a reload:
//!   what was counted under it never counts for another one.
//! - The number of places is bounded, whatever the configuration lists.

use std::net::SocketAddr;
use zonda_wire::Name;

/// Servers that are told apart; those beyond share the last place.
pub const SERVERS_MAX: usize = 8;
/// Zones that are told apart while the process runs.
pub const ZONES_MAX: usize = 16;
/// Zones that are looked through for each query.
const LISTED_MAX: usize = 64;
/// The place of queries whose names none of the zones holds.
pub const NO_ZONE: usize = 0;
/// The place of all zones beyond [`ZONES_MAX`].
pub const OTHER_ZONE: usize = ZONES_MAX + 1;

/// The servers and zones that queries are counted by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelTable {
    /// Place of the server, by listener; below [`SERVERS_MAX`].
    pub servers: Vec<u8>,
    /// Zones in lower case with their places, those with most octets first.
    zones: Vec<(Name, u8)>,
    /// All zones that have had a place, in the order of the places from 1 on.
    pub names: Vec<Name>,
    /// All servers that have had a place, in the order of the places; those from the last place on
    /// share that. At most one more than [`SERVERS_MAX`].
    pub servers_so_far: Vec<SocketAddr>,
}

impl LabelTable {
    /// A table of servers by listener, and of zones in lower case, of which the first 64 count.
    /// `names` has the zones that had
    /// places before, and then all that have: at most [`ZONES_MAX`].
    #[must_use]
    pub fn new(servers: Vec<u8>, listed: &[Name], names: &mut Vec<Name>) -> Self {
        let mut zones = Vec::new();
        for zone in listed.iter().take(LISTED_MAX) {
            if !names.contains(zone) && names.len() < ZONES_MAX {
                names.push(zone.clone());
            }
            let place = names.iter().position(|it| it == zone).map_or(OTHER_ZONE, |it| it + 1);
            zones.push((zone.clone(), place as u8)); // at most OTHER_ZONE
        }
        zones.sort_by_key(|(zone, _)| std::cmp::Reverse(zone.as_wire().len()));
        Self { servers, zones, names: names.clone(), servers_so_far: Vec::new() }
    }

    /// The table with all servers that have had a place.
    #[must_use]
    pub fn with_servers_so_far(self, servers: &[SocketAddr]) -> Self {
        Self { servers_so_far: servers.to_vec(), ..self }
    }

    /// The number of places of servers that there must be counters for.
    #[must_use]
    pub fn server_places(&self) -> usize {
        let present = self.servers.iter().max().map_or(0, |place| usize::from(*place) + 1);
        present.max(self.servers_so_far.len().min(SERVERS_MAX))
    }

    /// The place of a listener's server, below [`SERVERS_MAX`].
    #[inline]
    #[must_use]
    pub fn server(&self, listener: u16) -> usize {
        let place = self.servers.get(usize::from(listener)).copied();
        place.map_or(SERVERS_MAX - 1, usize::from)
    }

    /// The place of the longest zone that holds a name in wire form; [`NO_ZONE`] if none does.
    #[must_use]
    pub fn zone(&self, mut name: &[u8]) -> usize {
        for (zone, place) in &self.zones {
            while name.len() > zone.as_wire().len()
                && let [len, rest @ ..] = name
                && let Some(rest) = rest.get(usize::from(*len)..)
            {
                name = rest;
            }
            if name.eq_ignore_ascii_case(zone.as_wire()) {
                return usize::from(*place);
            }
        }
        NO_ZONE
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    #[test]
    fn the_longest_zone_that_holds_a_name_counts() {
        let listed = [".", "example.org", "a.example.org", "example.net"].map(name);
        let table = LabelTable::new(vec![0, 0, 1], &listed, &mut Vec::new());
        for (asked, place) in [
            ("www.a.example.org", 3),
            ("A.example.ORG", 3),
            ("b.example.org", 2),
            ("notexample.org", 1),
            ("x.example.net", 4),
            (".", 1),
        ] {
            assert_eq!(table.zone(name(asked).as_wire()), place, "{asked}");
        }
        assert_eq!([0, 1, 2, 9].map(|it| table.server(it)), [0, 0, 1, SERVERS_MAX - 1]);
    }

    #[test]
    fn a_name_outside_all_zones_has_a_place_of_its_own() {
        let table = LabelTable::new(Vec::new(), &[name("example.org")], &mut Vec::new());
        assert_eq!(table.zone(name("org").as_wire()), NO_ZONE);
        assert_eq!(table.zone(name("example.net").as_wire()), NO_ZONE);
        assert_eq!(table.zone(&[]), NO_ZONE);
        assert_eq!(table.zone(b"\x3fabc"), NO_ZONE, "octets that are no name");
    }

    #[test]
    fn places_stay_with_their_zones_and_are_bounded() {
        let mut names = Vec::new();
        let first = LabelTable::new(Vec::new(), &[name("a"), name("b")], &mut names);
        let second = LabelTable::new(Vec::new(), &[name("c"), name("b")], &mut names);
        assert_eq!((first.zone(b"\x01b\0"), second.zone(b"\x01b\0")), (2, 2));
        assert_eq!((second.zone(b"\x01a\0"), second.zone(b"\x01c\0")), (NO_ZONE, 3));
        let many: Vec<Name> = (0..LISTED_MAX).map(|it| name(&format!("z{it}"))).collect();
        let table = LabelTable::new(Vec::new(), &many, &mut names);
        assert_eq!(names.len(), ZONES_MAX);
        assert_eq!(table.zone(name("www.z63").as_wire()), OTHER_ZONE);
    }
}
