//! Where the entries of each zone lie in the file: 16 octets of memory for each.

use std::collections::{HashMap, VecDeque};

/// How much of a zone's history is kept beside the changes that its file lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryLimit {
    /// Entries of a zone that are kept at most.
    pub versions: usize,
    /// Octets that the records of a zone's entries have in the file at most.
    pub octets: u64,
}

/// The serials that a zone's entries lead from and to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Serials {
    /// The serial before the oldest entry.
    pub first: u32,
    /// The serial after the newest entry.
    pub last: u32,
}

/// The place of an entry in the file.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The offset of the record.
    pub offset: u64,
    /// The serial before the change; the one after it is that of the next place.
    pub from: u32,
    /// The octets of the record, which [`crate::PAYLOAD_OCTETS_MAX`] keeps below 2³².
    pub octets: u32,
}

/// The entries of a zone, oldest first; none once all are dropped, until the file is rewritten.
#[derive(Clone, Debug, Default)]
pub struct ZoneEntries {
    places: VecDeque<Place>,
    /// The serial after the newest entry.
    last: u32,
    /// How many of the oldest entries the zone's file holds, too.
    released: usize,
    /// The octets of all records.
    octets: u64,
}

impl ZoneEntries {
    /// Returns the places of the entries from the newest one on that begins with a serial; none if
    /// the serial is that of the last entry's end, `None` if it is unknown.
    pub fn places_from(&self, serial: u32) -> Option<Vec<Place>> {
        if serial == self.last {
            return Some(Vec::new());
        }
        let start = self.places.iter().rposition(|place| place.from == serial)?;
        Some(self.places.range(start..).copied().collect())
    }

    /// Returns the serial that the next entry begins with, for a zone without entries, too: the
    /// file has the dropped ones, and the next entry is read behind them.
    pub fn last(&self) -> u32 {
        self.last
    }

    /// Returns the serials that the entries lead from and to.
    pub fn serials(&self) -> Option<Serials> {
        Some(Serials { first: self.places.front()?.from, last: self.last })
    }

    /// Returns the serial up to which the zone's file holds the changes, if some entries are left
    /// of them.
    pub fn released(&self) -> Option<u32> {
        let first = self.places.get(self.released).map(|place| place.from);
        (self.released > 0).then(|| first.unwrap_or(self.last))
    }

    /// Returns the serial before the oldest change that the zone's file lacks, and the places of
    /// all such changes.
    pub fn unreleased(&self) -> Option<(u32, Vec<Place>)> {
        let first = self.places.get(self.released)?.from;
        Some((first, self.places.range(self.released..).copied().collect()))
    }

    /// Returns how many entries the zone's file lacks.
    pub fn unreleased_count(&self) -> usize {
        self.places.len() - self.released
    }

    /// Returns the place of the newest entry.
    pub fn newest(&self) -> Option<Place> {
        self.places.back().copied()
    }

    /// Returns the places of all entries.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        self.places.iter()
    }
}

/// The places of all entries, by zone.
#[derive(Debug, Default)]
pub struct Index {
    /// The entries of each zone, by its name in wire form, in lower case.
    zones: HashMap<Box<[u8]>, ZoneEntries>,
    /// Entries of all zones.
    entries: u64,
    /// Octets of all entries' records.
    octets: u64,
    /// Zones with entries that their files lack.
    unreleased_zones: usize,
}

impl Index {
    /// Returns the entries of a zone, if the file has any of it.
    pub fn zone(&self, zone: &[u8]) -> Option<&ZoneEntries> {
        self.zones.get(zone)
    }

    /// Returns all zones that the file has entries of, in no order.
    pub fn zones(&self) -> impl Iterator<Item = (&[u8], &ZoneEntries)> {
        self.zones.iter().map(|(name, zone)| (&**name, zone))
    }

    /// Returns how many zones have entries.
    pub fn zone_count(&self) -> usize {
        self.zones.values().filter(|zone| !zone.places.is_empty()).count()
    }

    /// Returns the number of entries.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Returns the octets of all entries' records.
    pub fn octets(&self) -> u64 {
        self.octets
    }

    /// Returns how many zones have entries that their files lack.
    pub fn unreleased_zones(&self) -> usize {
        self.unreleased_zones
    }

    /// Adds an entry, and returns whether it continues the zone's last one. One that does not is
    /// not added.
    pub fn push(&mut self, zone: &[u8], place: Place, to: u32) -> bool {
        if !self.zones.contains_key(zone) {
            self.zones.insert(zone.into(), ZoneEntries { last: place.from, ..Default::default() });
        }
        let Some(entries) = self.zones.get_mut(zone) else { return false };
        if entries.last != place.from {
            return false;
        }
        self.unreleased_zones += usize::from(entries.released == entries.places.len());
        entries.places.push_back(place);
        entries.last = to;
        entries.octets += u64::from(place.octets);
        self.entries += 1;
        self.octets += u64::from(place.octets);
        true
    }

    /// Removes all entries of a zone.
    pub fn forget(&mut self, zone: &[u8]) {
        if let Some(gone) = self.zones.remove(zone) {
            self.unreleased_zones -= usize::from(gone.released < gone.places.len());
            self.entries -= gone.places.len() as u64;
            self.octets -= gone.octets;
        }
    }

    /// Lets the entries of a zone up to a serial be dropped; whether the serial is known.
    pub fn release(&mut self, zone: &[u8], serial: u32, bound: HistoryLimit) -> bool {
        let Some(entries) = self.zones.get_mut(zone) else { return false };
        let known = match serial == entries.last {
            true => Some(entries.places.len()),
            false => entries.places.iter().rposition(|place| place.from == serial),
        };
        let Some(released) = known else { return false };
        let had = entries.released < entries.places.len();
        entries.released = entries.released.max(released);
        let has = entries.released < entries.places.len();
        self.unreleased_zones -= usize::from(had && !has);
        self.drop_oldest(zone, bound);
        true
    }

    /// Drops released entries of a zone, oldest first, until the bound holds.
    pub fn drop_oldest(&mut self, zone: &[u8], bound: HistoryLimit) {
        let Some(entries) = self.zones.get_mut(zone) else { return };
        while entries.released > 0
            && (entries.places.len() > bound.versions || entries.octets > bound.octets)
        {
            let Some(gone) = entries.places.pop_front() else { break };
            entries.released -= 1;
            entries.octets -= u64::from(gone.octets);
            self.entries -= 1;
            self.octets -= u64::from(gone.octets);
        }
    }

    /// Gives each entry its place in a new file that has these entries alone: `moved` maps the
    /// offset of each, in ascending order, to the new one.
    pub fn relocate(&mut self, moved: &[(u64, u64)]) {
        self.zones.retain(|_, zone| !zone.places.is_empty());
        for place in self.zones.values_mut().flat_map(|zone| &mut zone.places) {
            if let Ok(at) = moved.binary_search_by_key(&place.offset, |(from, _)| *from) {
                place.offset = moved[at].1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: HistoryLimit = HistoryLimit { versions: 3, octets: 1000 };

    fn index(octets: &[u32]) -> Index {
        let mut index = Index::default();
        for (from, octets) in (0..).zip(octets) {
            let place = Place { offset: u64::from(from), from, octets: *octets };
            assert!(index.push(b"\0", place, from + 1));
        }
        index
    }

    fn first(index: &Index) -> Option<u32> {
        index.zone(b"\0").and_then(ZoneEntries::serials).map(|serials| serials.first)
    }

    #[test]
    fn an_entry_has_sixteen_octets_in_memory() {
        assert_eq!(size_of::<Place>(), 16);
    }

    #[test]
    fn entries_that_the_zone_file_lacks_are_kept_whatever_the_bound() {
        let mut index = index(&[500; 8]);
        index.drop_oldest(b"\0", BOUND);
        assert_eq!(first(&index), Some(0));
        assert!(index.release(b"\0", 2, BOUND));
        assert_eq!((first(&index), index.entries(), index.octets()), (Some(2), 6, 3000));
    }

    #[test]
    fn released_entries_are_kept_within_versions_and_octets() {
        let mut many = index(&[100; 8]);
        assert!(many.release(b"\0", 8, BOUND));
        assert_eq!(first(&many), Some(5));
        let mut long = index(&[400; 4]);
        assert!(long.release(b"\0", 4, BOUND));
        assert_eq!(first(&long), Some(2));
        let mut too_long = index(&[2000]);
        assert!(too_long.release(b"\0", 1, BOUND));
        assert_eq!((first(&too_long), too_long.octets(), too_long.zone_count()), (None, 0, 0));
    }

    #[test]
    fn a_serial_that_the_journal_does_not_know_releases_nothing() {
        let mut index = index(&[500; 8]);
        assert!(!index.release(b"\0", 9, BOUND));
        assert!(!index.release(b"\x01a\0", 1, BOUND));
        assert_eq!(first(&index), Some(0));
    }

    #[test]
    fn a_serial_that_came_twice_means_the_newer_version() {
        let mut index = Index::default();
        for (offset, from, to) in [(0, 1, 2), (1, 2, 1), (2, 1, 3)] {
            assert!(index.push(b"\0", Place { offset, from, octets: 9 }, to));
        }
        let places = index.zone(b"\0").and_then(|zone| zone.places_from(1));
        assert_eq!(places.map(|it| it.iter().map(|place| place.offset).collect()), Some(vec![2]));
    }
}
