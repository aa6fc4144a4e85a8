//! From records to a snapshot.
//!
//! 1. *Group*: each record joins the others of its owner; every name between an owner and the apex
//!    gets a group too, so that empty non-terminals exist (rfc4592#2.2.2).
//! 2. *Classify*: which groups lie at or below a delegation or a DNAME.
//! 3. *Lay out*: one node per group, in order of first appearance, then the slots that find them.
//!
//! Takes time linear in the number of records, and memory that is given back at the end.

use super::node::{ALIGNMENT, NODE_HEADER, SET_HEADER, node_flag};
use super::slots::Slots;
use super::{Denial, Zone};
use crate::lookup_name::{HashSeed, LookupName};
use crate::records::{Record, Records};
use std::borrow::Cow;
use std::fmt;
use zonda_wire::{Name, Type, name, rdata};

/// Why records do not make a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// There is no SOA record at the apex.
    NoSoa,
    /// An owner has records of which one must be alone: a CNAME beside other data (rfc2181#10.1),
    /// several CNAME, several DNAME (rfc6672#2.4), or several SOA records.
    NotAlone(Name, Type),
    /// A set, a node or the zone is larger than the snapshot's form can hold.
    TooLarge,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSoa => f.write_str("the zone has no SOA record at its apex"),
            Self::NotAlone(owner, rtype) => {
                write!(f, "{owner} {rtype} must be alone, remove it or what stands beside it")
            }
            Self::TooLarge => {
                f.write_str("the zone has over 16 GiB, or 65535 records of one name and type")
            }
        }
    }
}

impl std::error::Error for BuildError {}

/// Builds the zone of `apex` from its records; records outside it are left out.
///
/// # Errors
/// When the zone could not be served.
pub fn build(apex: &Name, records: &Records, seed: HashSeed) -> Result<Zone, BuildError> {
    let mut groups = Groups::new(apex, records, seed);
    groups.collect()?;
    groups.classify();
    let layout = groups.lay_out()?;
    let apex = apex.to_lowercase().as_wire().into();
    let mut zone = Zone::new(apex, layout.slots, layout.arena).ok_or(BuildError::NoSoa)?;
    zone.denial = Denial::index(&zone, &layout.places);
    Ok(zone)
}

/// No record, or no group.
const NONE: u32 = u32::MAX;

/// All records of one owner.
struct Group {
    hash: u64,
    /// A record of the owner, to read the name from; of a descendant for an empty non-terminal.
    named_by: u32,
    /// How many labels of that record's owner to leave out.
    skipped_labels: u8,
    flags: u8,
    /// Holds NSEC3 records and their signatures alone: such names do not exist for a question
    /// (rfc5155#7.2.8).
    only_nsec3: bool,
    /// The group of the name without its first label; itself at the apex.
    parent: u32,
    /// First and last record in the chain; [`NONE`] when empty.
    first: u32,
    last: u32,
}

/// The groups of a zone while it is built.
struct Groups<'r> {
    records: &'r Records,
    apex: LookupName,
    seed: HashSeed,
    groups: Vec<Group>,
    /// The record behind each record in its owner's chain.
    next: Vec<u32>,
    /// Finds groups by hash; places are group numbers.
    slots: Slots,
    has_cuts: bool,
}

/// What laying out yields.
struct Layout {
    slots: Slots,
    arena: Vec<u8>,
    /// The node of each group.
    places: Vec<u32>,
}

impl<'r> Groups<'r> {
    fn new(apex: &Name, records: &'r Records, seed: HashSeed) -> Self {
        let apex = LookupName::new(apex.as_wire(), seed);
        let next = vec![NONE; records.len()];
        let slots = Slots::default();
        Self { records, apex, seed, groups: Vec::new(), next, slots, has_cuts: false }
    }

    /// Puts every record into the group of its owner.
    fn collect(&mut self) -> Result<(), BuildError> {
        let mut owner = LookupName::default();
        let (mut last_owner, mut group): (&[u8], u32) = (&[], NONE);
        for (index, record) in self.records.iter().enumerate() {
            let index = u32::try_from(index).map_err(|_| BuildError::TooLarge)?;
            if record.owner != last_owner {
                last_owner = record.owner;
                group = NONE;
                if name::is_at_or_below(record.owner, self.apex.as_wire()) {
                    owner.set(record.owner, self.seed);
                    group = self.find_or_add(&owner, index);
                }
            }
            if group != NONE {
                self.add(group, index, record);
            }
        }
        Ok(())
    }

    /// Appends a record to a group's chain.
    fn add(&mut self, group: u32, index: u32, record: Record<'_>) {
        let is_apex = group == 0;
        let group = &mut self.groups[group as usize];
        let is_nsec3 = type_covered(record) == Type::NSEC3;
        group.only_nsec3 = is_nsec3 && (group.first == NONE || group.only_nsec3);
        match group.last {
            NONE => group.first = index,
            last => self.next[last as usize] = index,
        }
        group.last = index;
        match record.rtype {
            Type::NS if !is_apex => group.flags |= node_flag::CUT,
            Type::DNAME => group.flags |= node_flag::DNAME,
            _ => return,
        }
        self.has_cuts = true;
    }

    /// The group of `owner`, made with all its ancestors if it is new.
    fn find_or_add(&mut self, owner: &LookupName, named_by: u32) -> u32 {
        let depth = owner.label_count() - self.apex.label_count();
        if self.groups.is_empty() {
            self.push(owner.hash(depth), named_by, depth, 0);
        }
        // The nearest ancestor that has a group, itself included; the apex always has one.
        let found = (0..=depth).find_map(|label| Some((label, self.find(owner, label)?)));
        let (known, mut group) = found.unwrap_or((depth, 0));
        for label in (0..known).rev() {
            if owner.suffix(label).starts_with(b"\x01*") {
                self.groups[group as usize].flags |= node_flag::WILDCARD_CHILD;
            }
            group = self.push(owner.hash(label), named_by, label, group);
        }
        group
    }

    /// The group of the suffix of `owner` that begins at `label`.
    fn find(&self, owner: &LookupName, label: usize) -> Option<u32> {
        let wanted = owner.suffix(label);
        self.slots.find(owner.hash(label), |group| {
            self.group_name(&self.groups[group as usize]).eq_ignore_ascii_case(wanted)
        })
    }

    /// Adds an empty group; returns its number.
    fn push(&mut self, hash: u64, named_by: u32, label: usize, parent: u32) -> u32 {
        let number = self.groups.len() as u32; // at most one group per octet of the records
        let skipped_labels = label as u8; // a name has at most 127
        let group = Group {
            hash,
            named_by,
            skipped_labels,
            flags: 0,
            only_nsec3: false,
            parent,
            first: NONE,
            last: NONE,
        };
        self.groups.push(group);
        if self.slots.insert(hash, number).is_err() {
            let hashes = self.groups.iter().map(|group| group.hash);
            self.slots = Slots::with_all(self.groups.len() * 2, hashes.zip(0..));
        }
        number
    }

    /// A group's name, in the case of the record that named it.
    fn group_name(&self, group: &Group) -> &'r [u8] {
        let mut wire = self.records.get(group.named_by as usize).owner;
        for _ in 0..group.skipped_labels {
            wire = name::parent(wire).expect("the label was there when the group was made");
        }
        wire
    }

    /// Marks what lies below delegations and DNAMEs; the topmost delegation counts.
    fn classify(&mut self) {
        if !self.has_cuts {
            return;
        }
        for number in 0..self.groups.len() {
            let (mut flags, mut above) = (0, number);
            while above != 0 {
                above = self.groups[above].parent as usize;
                match self.groups[above].flags & (node_flag::CUT | node_flag::DNAME) {
                    0 => {}
                    at if at & node_flag::CUT != 0 => flags = node_flag::BELOW_CUT,
                    _ => flags = node_flag::BELOW_DNAME,
                }
            }
            self.groups[number].flags |= flags;
        }
    }

    /// The group that a node's link leads to: the topmost delegation or DNAME above it.
    fn link(&self, number: usize) -> usize {
        let (mut above, mut found) = (number, number);
        while above != 0 {
            above = self.groups[above].parent as usize;
            if self.groups[above].flags & (node_flag::CUT | node_flag::DNAME) != 0 {
                found = above;
            }
        }
        found
    }

    /// Writes all nodes and the slots that find them.
    fn lay_out(&self) -> Result<Layout, BuildError> {
        let mut writer = NodeWriter { is_signed: self.is_signed(), ..NodeWriter::default() };
        let mut places = Vec::with_capacity(self.groups.len());
        for group in &self.groups {
            places.push(writer.begin(group.flags, self.relative_owner(group))?);
            let mut index = group.first;
            while index != NONE {
                writer.add(self.records.get(index as usize));
                index = self.next[index as usize];
            }
            writer.end()?;
        }
        for (number, group) in self.groups.iter().enumerate() {
            if group.flags & (node_flag::BELOW_CUT | node_flag::BELOW_DNAME) != 0 {
                writer.set_link(places[number], places[self.link(number)]);
            }
        }
        let nodes = self.groups.iter().zip(&places).filter(|(group, _)| !group.only_nsec3);
        let entries = nodes.map(|(group, &place)| (group.hash, place));
        let slots = Slots::with_all(self.groups.len(), entries);
        writer.arena.shrink_to_fit();
        Ok(Layout { slots, arena: writer.arena, places })
    }

    /// Whether the apex has a key.
    fn is_signed(&self) -> bool {
        let mut index = self.groups.first().map_or(NONE, |apex| apex.first);
        while index != NONE {
            if self.records.get(index as usize).rtype == Type::DNSKEY {
                return true;
            }
            index = self.next[index as usize];
        }
        false
    }

    /// The labels of a group's name above the apex.
    fn relative_owner(&self, group: &Group) -> &'r [u8] {
        let wire = self.group_name(group);
        &wire[..wire.len() - self.apex.as_wire().len()]
    }
}

/// The type of a record; for a signature that of the set it signs (rfc4034#3.1.1).
fn type_covered(record: Record<'_>) -> Type {
    match (record.rtype, record.rdata) {
        (Type::RRSIG, [high, low, ..]) => Type(u16::from_be_bytes([*high, *low])),
        (rtype, _) => rtype,
    }
}

/// Refuses an owner whose answers would be ambiguous.
fn refuse_company(records: &[Keyed<'_>]) -> Result<(), BuildError> {
    let Some(Keyed { record, .. }) = records.first().filter(|_| records.len() > 1) else {
        return Ok(());
    };
    let count = |wanted: Type| records.iter().filter(|it| it.record.rtype == wanted).count();
    // What may stand beside a CNAME: rfc4034#2.5, rfc3007#4.2, rfc2535#2.3.5.
    let allowed = [Type::RRSIG, Type::NSEC, Type::KEY, Type::SIG, Type::NXT];
    let beside = allowed.iter().map(|rtype| count(*rtype)).sum::<usize>();
    let alone = match (count(Type::CNAME), count(Type::SOA), count(Type::DNAME)) {
        (0, 0 | 1, 0 | 1) => return Ok(()),
        (1, 0, 0) if records.len() == 1 + beside => return Ok(()),
        (0, 0 | 1, _) => Type::DNAME,
        (0, _, _) => Type::SOA,
        _ => Type::CNAME,
    };
    let owner = Name::from_wire(record.owner).map_err(|_| BuildError::TooLarge)?;
    Err(BuildError::NotAlone(owner, alone))
}

/// Rdata in the form in which it is compared (rfc4034#6.2); nearly always as it stands.
fn canonical(record: Record<'_>) -> Cow<'_, [u8]> {
    let Record { rtype, rdata, .. } = record;
    let has_upper_case = || rdata.iter().any(u8::is_ascii_uppercase);
    if rdata::names(rtype, rdata).next().is_none() || !has_upper_case() {
        return rdata.into();
    }
    let mut lower = rdata.to_vec();
    rdata::make_canonical(rtype, &mut lower);
    lower.into()
}

/// Writes nodes into an arena.
#[derive(Default)]
struct NodeWriter<'r> {
    arena: Vec<u8>,
    node_at: usize,
    /// Whether the zone has a key; if not, its signatures are laid where no set has them behind it.
    is_signed: bool,
    /// The records of the present node.
    records: Vec<Keyed<'r>>,
}

/// A record with what decides its place among those of its owner.
struct Keyed<'r> {
    /// The type; for RRSIG the type covered, and then 1 so that it comes behind that. All zero for
    /// RRSIG in a zone without a key.
    order: (u16, u8),
    record: Record<'r>,
}

impl<'r> NodeWriter<'r> {
    /// Begins a node; returns its place.
    fn begin(&mut self, flags: u8, relative_owner: &[u8]) -> Result<u32, BuildError> {
        self.arena.resize(self.arena.len().next_multiple_of(ALIGNMENT), 0);
        self.node_at = self.arena.len();
        let place = u32::try_from(self.node_at / ALIGNMENT).map_err(|_| BuildError::TooLarge)?;
        let len = relative_owner.len() as u8; // a name has at most 255 octets
        self.arena.extend_from_slice(&[flags, len, 0, 0, 0, 0, 0, 0]);
        debug_assert_eq!(self.arena.len(), self.node_at + NODE_HEADER);
        self.arena.extend(relative_owner.iter().map(u8::to_ascii_lowercase));
        Ok(place)
    }

    /// Adds a record to the present node.
    fn add(&mut self, record: Record<'r>) {
        let order = match record.rtype {
            Type::RRSIG if !self.is_signed => (0, 0),
            rtype => (type_covered(record).0, u8::from(rtype == Type::RRSIG)),
        };
        self.records.push(Keyed { order, record });
    }

    /// Writes the sets of the present node.
    fn end(&mut self) -> Result<(), BuildError> {
        let mut records = std::mem::take(&mut self.records);
        if records.len() > 1 {
            let key = |keyed: &Keyed<'r>| (keyed.order, canonical(keyed.record));
            records.sort_by(|a, b| key(a).cmp(&key(b))); // of equal ones, the first stays
            records.dedup_by(|a, b| key(a) == key(b));
        }
        refuse_company(&records)?;
        let mut sets = 0_u16;
        for set in records.chunk_by(|a, b| a.order == b.order) {
            self.write_set(set)?;
            sets = sets.checked_add(1).ok_or(BuildError::TooLarge)?;
        }
        self.arena[self.node_at + 2..self.node_at + 4].copy_from_slice(&sets.to_le_bytes());
        records.clear();
        self.records = records;
        Ok(())
    }

    /// Writes one set. Its TTL is the smallest of its records' (rfc2181#5.2).
    fn write_set(&mut self, set: &[Keyed<'r>]) -> Result<(), BuildError> {
        let count = u16::try_from(set.len()).map_err(|_| BuildError::TooLarge)?;
        let ttl = set.iter().map(|keyed| keyed.record.ttl).min().unwrap_or(0);
        let octets: usize = set.iter().map(|keyed| 2 + keyed.record.rdata.len()).sum();
        let mut header = [0; SET_HEADER];
        header[..2].copy_from_slice(&set[0].record.rtype.0.to_le_bytes());
        header[2..4].copy_from_slice(&count.to_le_bytes());
        header[4..8].copy_from_slice(&ttl.to_le_bytes());
        header[8..].copy_from_slice(&(octets as u32).to_le_bytes()); // below 2¹⁶ × 2¹⁶
        self.arena.extend_from_slice(&header);
        for Keyed { record, .. } in set {
            let len = record.rdata.len() as u16; // rdata is at most 65 535 octets
            self.arena.extend_from_slice(&len.to_le_bytes());
            self.arena.extend_from_slice(record.rdata);
        }
        Ok(())
    }

    /// Sets a node's link.
    fn set_link(&mut self, place: u32, target: u32) {
        let at = place as usize * ALIGNMENT + 4;
        self.arena[at..at + 4].copy_from_slice(&target.to_le_bytes());
    }
}
