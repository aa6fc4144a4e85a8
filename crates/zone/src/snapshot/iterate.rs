//! All records of a zone, in canonical order.

use super::cursor::RecordCursor;
use super::node::Node;
use super::node::type_covered;
use super::sort_form::{OwnerName, SortForm};
use super::sorted::{Sorted, Unsorted};
use super::{Set, Zone};
use crate::lookup_name::LookupName;
use crate::order::rank;
use crate::records::{Record, Records, TooManyRecords, octets_len, write_octets};
use zonda_wire::name::is_at_or_below;
use zonda_wire::{Name, Type};

/// Octets of records that are written at a time.
const WRITTEN_AT_A_TIME: usize = 64 << 10;

/// A record of a zone.
#[derive(Clone, Copy)]
pub struct ZoneRecord<'z> {
    /// The owner name, in lower case.
    pub owner: OwnerName,
    /// The record's type.
    pub rtype: Type,
    /// The time to live, seconds.
    pub ttl: u32,
    /// The record's data, without its length.
    pub rdata: &'z [u8],
}

impl ZoneRecord<'_> {
    /// The same record, its owner borrowed.
    #[must_use]
    pub fn as_record(&self) -> Record<'_> {
        let Self { owner, rtype, ttl, rdata } = self;
        Record { owner: owner.as_wire(), rtype: *rtype, ttl: *ttl, rdata }
    }
}

impl Zone {
    /// All records in canonical order (rfc4034#6), the SOA record first.
    ///
    /// The first call sorts the names, a million in about half a second; later ones, of later
    /// versions too, find them sorted.
    pub fn records(&self) -> impl Iterator<Item = ZoneRecord<'_>> {
        self.owners().flat_map(|(owner, node)| records_of(owner, node))
    }

    /// The records of the names that follow another one in canonical order, as
    /// [`records`](Self::records); the name is in wire form.
    pub fn records_behind<'z>(
        &'z self,
        name: &[u8],
    ) -> impl Iterator<Item = ZoneRecord<'z>> + use<'z> {
        let relative = name.len().checked_sub(self.apex().len()).map_or(name, |len| &name[..len]);
        let form = SortForm::new(relative);
        let mut names = self.order().from(form.as_octets()).peekable();
        names.next_if(|name| *name == form.as_octets());
        names.flat_map(|form| self.at_form(form)).flat_map(|(owner, node)| records_of(owner, node))
    }

    /// The records of one name, as [`records`](Self::records); none for a name outside the zone.
    pub fn records_at<'z>(&'z self, name: &Name) -> impl Iterator<Item = ZoneRecord<'z>> + use<'z> {
        let name = name.to_lowercase();
        let is_inside = is_at_or_below(name.as_wire(), self.apex());
        let relative = name.as_wire().len().checked_sub(self.apex().len()).filter(|_| is_inside);
        let found = relative.and_then(|len| match len {
            0 => Some((OwnerName::from_form(&[], self.apex()), self.apex_node())),
            len => self.at_form(SortForm::new(&name.as_wire()[..len]).as_octets()),
        });
        found.into_iter().flat_map(|(owner, node)| records_of(owner, node))
    }

    /// All names that have a node, in canonical order, the apex first; also those that have no
    /// records and those that no question finds.
    pub fn owners(&self) -> impl Iterator<Item = (OwnerName, Node<'_>)> {
        let apex = OwnerName::from_form(&[], self.apex());
        let below = self.order().iter().flat_map(|form| self.at_form(form));
        std::iter::once((apex, self.apex_node())).chain(below)
    }

    /// All records, in canonical order.
    ///
    /// # Errors
    /// When they take more than 4 GiB.
    pub fn to_records(&self) -> Result<Records, TooManyRecords> {
        let mut records = Records::with_capacity(self.bytes());
        self.records().try_for_each(|record| records.push(record.as_record(), 0))?;
        Ok(records)
    }

    /// The number of octets that [`write_unordered_records`](Self::write_unordered_records) writes.
    #[must_use]
    pub fn unordered_records_len(&self) -> u64 {
        let of_node = |node: Node<'_>| {
            let owner = node.relative_owner().len() + self.apex().len();
            let sets = node.sets().filter(|set| set.rtype != Type::SOA); // as a cursor has it
            let rdatas = sets.flat_map(|set| set.rdatas());
            rdatas.map(|rdata| octets_len(owner, rdata.len()) as u64).sum::<u64>()
        };
        let of_soa = octets_len(self.apex().len(), self.soa().0.first().len()) as u64;
        self.nodes().map(of_node).sum::<u64>() + of_soa
    }

    /// Writes all records in the form of [`Records::as_octets`], the SOA record first and the rest
    /// in no particular order, some at a time: nothing is sorted, no name is looked up, and little
    /// memory is used.
    ///
    /// # Errors
    /// Those of what takes the octets, which end it.
    pub fn write_unordered_records<E>(
        &self,
        mut write: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut octets = Vec::new();
        let (owner, (soa, _)) = (self.apex(), self.soa());
        let (ttl, rdata) = (soa.ttl, soa.first());
        write_octets(Record { owner, rtype: Type::SOA, ttl, rdata }, &mut octets);
        let mut cursor = RecordCursor::default();
        loop {
            let is_whole = self.take_records(&mut cursor, |owner, (rtype, ttl), rdata| {
                let has_room = octets.len() < WRITTEN_AT_A_TIME;
                if has_room {
                    write_octets(Record { owner, rtype, ttl, rdata }, &mut octets);
                }
                has_room
            });
            write(&octets)?;
            if is_whole {
                return Ok(());
            }
            octets.clear();
        }
    }

    /// The name and the node of a form that sorts.
    fn at_form(&self, form: &[u8]) -> Option<(OwnerName, Node<'_>)> {
        let owner = OwnerName::from_form(form, self.apex());
        let node = self.any_node(&LookupName::new(owner.as_wire(), self.seed))?;
        Some((owner, node))
    }

    /// The names below the apex in canonical order.
    fn order(&self) -> &Sorted {
        self.order.get_or_init(|| {
            let mut names = Unsorted::default();
            for node in self.nodes().skip(1) {
                let has_room = names.push(SortForm::new(node.relative_owner()).as_octets());
                debug_assert!(has_room, "a zone's names take less room than its records");
            }
            Box::new(names.sort())
        })
    }
}

/// The records of a node.
fn records_of<'z>(owner: OwnerName, node: Node<'z>) -> impl Iterator<Item = ZoneRecord<'z>> {
    let mut sets: Vec<Set<'z>> = node.sets().collect();
    sets.sort_by_key(|set| (rank(set.rtype), type_covered(set.rtype, set.first())));
    sets.into_iter().flat_map(move |set| {
        set.rdatas().map(move |rdata| {
            let Set { rtype, ttl, .. } = set;
            ZoneRecord { owner, rtype, ttl, rdata }
        })
    })
}
