//! What tells two versions of a zone apart: record by record, as transfers and journals hold it.

use super::canonical;
use super::change::{ChangeError, ChangeRule, ChangeSet, Rdatas, Serial, SetChange};
use super::node::{Node, type_covered};
use super::record_set::{RecordSet, sets_of};
use super::sort_form::{OwnerName, SortForm};
use super::{TooLarge, Zone};
use crate::lookup_name::LookupName;
use crate::order::rank;
use crate::records::{Record, Records};
use std::collections::BTreeMap;
use std::fmt;
use zonda_wire::{Name, Type, name};

/// The difference between two versions of a zone (rfc1995#4): the records that one has and the
/// other has not, each in canonical order, an SOA record first. Records whose time to live, or the
/// case of a letter, has changed are among both.
#[derive(Clone, Default)]
pub struct Diff {
    /// The serial of the version that the difference starts from.
    pub from: u32,
    /// The serial of the version that it leads to.
    pub to: u32,
    /// The records that only the former version has.
    pub removed: Records,
    /// The records that only the latter version has.
    pub added: Records,
}

impl Diff {
    /// Whether the versions have the same records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty()
    }

    /// The octets of memory that the records take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.removed.bytes() + self.added.bytes()
    }

    /// The difference in the other direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { from: self.to, to: self.from, removed: self.added, added: self.removed }
    }
}

impl PartialEq for Diff {
    fn eq(&self, other: &Self) -> bool {
        (self.from, self.to) == (other.from, other.to)
            && self.removed.iter().eq(other.removed.iter())
            && self.added.iter().eq(other.added.iter())
    }
}

impl fmt::Debug for Diff {
    /// Writes the records as lines that begin with `-` or `+`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} -> {}", self.from, self.to)?;
        for (sign, records) in [('-', &self.removed), ('+', &self.added)] {
            for Record { owner, rtype, ttl, rdata } in records.iter() {
                let owner = name::Presentation(owner);
                let data = zonda_wire::rdata::Presentation { rtype, rdata };
                writeln!(f, "{sign} {owner} {ttl} {rtype} {data}")?;
            }
        }
        Ok(())
    }
}

/// Appends all records of some sets.
pub(super) fn push_sets(
    records: &mut Records,
    owner: &[u8],
    sets: &[RecordSet<'_>],
) -> Result<(), TooLarge> {
    for set in sets {
        for rdata in &set.rdatas {
            push(records, owner, set, rdata)?;
        }
    }
    Ok(())
}

/// Appends a record of a set.
fn push(
    records: &mut Records,
    owner: &[u8],
    set: &RecordSet<'_>,
    rdata: &[u8],
) -> Result<(), TooLarge> {
    let record = Record { owner, rtype: set.rtype, ttl: set.ttl, rdata };
    records.push(record, 0).map_err(|_| TooLarge)
}

/// Writes a difference, owner by owner.
pub(super) struct DiffWriter {
    /// The difference as far as it was written.
    diff: Diff,
}

impl DiffWriter {
    /// Begins at the version with a serial, which stays unless an SOA record changes.
    pub(super) fn new(serial: u32) -> Self {
        Self { diff: Diff { from: serial, to: serial, ..Diff::default() } }
    }

    /// Appends what an owner's former and latter sets differ in.
    pub(super) fn owner(
        &mut self,
        owner: &[u8],
        old: &[RecordSet<'_>],
        new: &[RecordSet<'_>],
    ) -> Result<(), TooLarge> {
        only_in(&mut self.diff.removed, owner, old, new)?;
        only_in(&mut self.diff.added, owner, new, old)?;
        if let Some(soa) = new.iter().find(|set| set.rtype == Type::SOA)
            && old.iter().any(|set| set.rtype == Type::SOA && set != soa)
        {
            self.diff.to = super::change::serial_of(&soa.rdatas[0]);
        }
        Ok(())
    }

    /// The octets of memory that the difference takes so far.
    fn bytes(&self) -> usize {
        self.diff.bytes()
    }

    /// The difference.
    pub(super) fn finish(self) -> Diff {
        self.diff
    }
}

/// Appends the records that one version's sets of an owner have and the other's have not.
fn only_in(
    records: &mut Records,
    owner: &[u8],
    ones: &[RecordSet<'_>],
    others: &[RecordSet<'_>],
) -> Result<(), TooLarge> {
    for set in ones {
        let other = others.binary_search_by_key(&set.key(), RecordSet::key).map(|at| &others[at]);
        let other = other.ok().filter(|other| other.ttl == set.ttl);
        if other == Some(set) {
            continue;
        }
        for rdata in &set.rdatas {
            if !other.is_some_and(|other| holds(other, rdata)) {
                push(records, owner, set, rdata)?;
            }
        }
    }
    Ok(())
}

/// Whether a set has a record with exactly these data.
fn holds(set: &RecordSet<'_>, rdata: &[u8]) -> bool {
    place_in(set, rdata).is_ok_and(|at| set.rdatas[at] == rdata)
}

/// The place of a record in a set, the case of names in its data ignored.
fn place_in(set: &RecordSet<'_>, rdata: &[u8]) -> Result<usize, usize> {
    let wanted = canonical(set.rtype, rdata);
    set.rdatas.binary_search_by(|it| canonical(set.rtype, it).cmp(&wanted))
}

impl Zone {
    /// What tells another version of the zone from this one. Shards that both share are not read.
    ///
    /// # Errors
    /// When either has records of more than 4 GiB that the other has not.
    pub fn diff(&self, other: &Self) -> Result<Diff, TooLarge> {
        self.diff_within(other, usize::MAX)
    }

    /// What tells another version of the zone from this one, if it takes at most so many octets of
    /// memory. Shards that both share are not read.
    ///
    /// # Errors
    /// When the difference is larger.
    pub fn diff_within(&self, other: &Self, bytes_max: usize) -> Result<Diff, TooLarge> {
        /// Octets of the smallest record in a difference: its header, the root, and its place.
        const RECORD_BYTES_MIN: usize = 9 + 1 + 8;
        let names_max = bytes_max / RECORD_BYTES_MIN;
        let mut changed: Vec<(Option<Node<'_>>, Option<Node<'_>>)> = Vec::new();
        let (old, new) = (self.apex_node(), other.apex_node());
        if !old.has_records_of(new) {
            changed.push((Some(old), Some(new)));
        }
        let mut name = LookupName::default();
        for node in self.nodes_not_shared_with(other) {
            let found = other.node_named(&mut name, node)?;
            if !found.is_some_and(|found| found.has_records_of(node)) {
                changed.push((Some(node), found));
            }
            if changed.len() > names_max {
                return Err(TooLarge);
            }
        }
        for node in other.nodes_not_shared_with(self) {
            if self.node_named(&mut name, node)?.is_none() {
                changed.push((None, Some(node)));
            }
            if changed.len() > names_max {
                return Err(TooLarge);
            }
        }
        let relative = |(old, new): &(Option<Node<'_>>, Option<Node<'_>>)| {
            SortForm::new(old.or(*new).map_or(&[], |node| node.relative_owner()))
        };
        changed.sort_by_cached_key(|it| relative(it).as_octets().to_vec());
        let mut writer = DiffWriter::new(self.serial());
        for pair @ (old, new) in &changed {
            let owner = OwnerName::from_form(relative(pair).as_octets(), self.apex());
            writer.owner(owner.as_wire(), &sets_of(*old), &sets_of(*new))?;
            if writer.bytes() > bytes_max {
                return Err(TooLarge);
            }
        }
        Ok(writer.finish())
    }

    /// The changes that lead from this version of the zone to the one that a difference leads to.
    ///
    /// # Errors
    /// When the zone lacks a record that the difference removes, or has one that it adds: it is of
    /// another version.
    pub fn changes_of(&self, diff: &Diff) -> Result<ChangeSet, ChangeError> {
        let mut sets: BTreeMap<SetKey, Touched<'_>> = BTreeMap::new();
        for record in diff.removed.iter() {
            sets.entry(key_of(record)).or_default().removed.push(record);
        }
        for record in diff.added.iter() {
            sets.entry(key_of(record)).or_default().added.push(record);
        }
        let changes = sets.into_iter().map(|(key, touched)| self.set_change(key, &touched));
        Ok(ChangeSet { sets: changes.collect::<Result<_, _>>()?, serial: Serial::Exactly(diff.to) })
    }

    /// The change of a set that a difference touches.
    fn set_change(
        &self,
        (owner, rank, covered): SetKey,
        touched: &Touched<'_>,
    ) -> Result<SetChange, ChangeError> {
        let rtype = if rank == 0 { Type::SOA } else { Type(rank) };
        let refuse = |rule| ChangeError::new(&owner, rtype, rule);
        if !name::is_at_or_below(&owner, self.apex()) {
            return Err(refuse(ChangeRule::OutsideZone));
        }
        let node = self.any_node(&LookupName::new(&owner, self.seed));
        let present = sets_of(node).into_iter().find(|set| set.key() == (rank, covered));
        let mut data: BTreeMap<Vec<u8>, &[u8]> = BTreeMap::new();
        for rdata in present.iter().flat_map(|set| &set.rdatas) {
            data.insert(canonical(rtype, rdata).into_owned(), rdata);
        }
        for record in &touched.removed {
            let removed = data.remove(&*canonical(rtype, record.rdata));
            removed.ok_or_else(|| refuse(ChangeRule::NoSuchRecord))?;
        }
        // Records of one set have one TTL (rfc2181#5.2): the least of those that stay and those
        // that come, as of a set in a whole zone.
        let of_present = present.as_ref().map(|set| set.ttl).filter(|_| !data.is_empty());
        let ttls = touched.added.iter().map(|record| record.ttl).chain(of_present);
        let ttl = ttls.min().unwrap_or_default();
        for record in &touched.added {
            let key = canonical(rtype, record.rdata).into_owned();
            if data.insert(key, record.rdata).is_some() {
                return Err(refuse(ChangeRule::RecordExists));
            }
        }
        let name = Name::from_wire(&owner).map_err(|_| refuse(ChangeRule::OutsideZone))?;
        let data: Rdatas = data.into_values().map(Into::into).collect();
        Ok(match rtype {
            _ if !data.is_empty() => SetChange::Put { owner: name, rtype, ttl, data },
            Type::RRSIG => SetChange::RemoveSignatures { owner: name, covered: Type(covered) },
            _ => SetChange::Remove { owner: name, rtype },
        })
    }

    /// The nodes, but for the apex, of shards that another version does not share.
    fn nodes_not_shared_with<'z>(&'z self, other: &'z Self) -> impl Iterator<Item = Node<'z>> {
        let is_alike =
            self.directory.layout() == other.directory.layout() && self.seed == other.seed;
        let is_shared = move |index: u32| {
            let [one, two] = [self, other].map(|zone| zone.directory.shard(index).0);
            std::ptr::eq(one, two)
        };
        let shards = (0..).zip(self.directory.shards());
        shards
            .filter(move |(index, _)| !(is_alike && is_shared(*index)))
            .flat_map(|(_, shard)| shard.nodes().map(|(_, node)| node))
    }

    /// The node with the same name as one of another version.
    fn node_named(
        &self,
        name: &mut LookupName,
        node: Node<'_>,
    ) -> Result<Option<Node<'_>>, TooLarge> {
        let owner = OwnerName::new(node.relative_owner(), self.apex())?;
        name.set(owner.as_wire(), self.seed);
        Ok(self.any_node(name))
    }
}

/// What tells sets apart: the owner, [`rank`] of the type, and the type that signatures cover.
type SetKey = (Vec<u8>, u16, u16);

/// The records of a set that a difference touches.
#[derive(Default)]
struct Touched<'d> {
    /// The records that the difference removes.
    removed: Vec<Record<'d>>,
    /// The records that the difference adds.
    added: Vec<Record<'d>>,
}

/// The set that a record belongs to.
fn key_of(record: Record<'_>) -> SetKey {
    let covered = type_covered(record.rtype, record.rdata);
    (record.owner.to_ascii_lowercase(), rank(record.rtype), covered.0)
}
