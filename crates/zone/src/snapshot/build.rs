//! From records to a snapshot.
//!
//! 1. *Group*: the records of each owner are put together; every name between an owner and the apex
//!    gets a group too, so that empty non-terminals exist (rfc4592#2.2.2).
//! 2. *Classify*: which groups lie at or below a delegation or a DNAME.
//! 3. *Lay out*: one node per group, sorted into shards by the hash of its name.
//!
//! Takes time linear in the number of records, and memory that is given back at the end.

use super::directory::{Directory, Layout};
use super::directory_builder::DirectoryBuilder;
use super::node::{NodeWriter, node_flag, type_covered};
use super::record_sorter::RecordSorter;
use super::shard::ApexNode;
use super::slots::Slots;
use super::{HIDDEN, TooLarge, Zone};
use crate::lookup_name::{HashSeed, LookupName};
use crate::records::{Record, Records};
use crate::release::free_in_steps;
use std::fmt;
use std::mem;
use zonda_wire::{Name, Type, name};

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
    /// Absence is proven by NSEC3, which this program was built without.
    NoNsec3,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSoa => f.write_str("the zone has no SOA record at its apex"),
            Self::NotAlone(owner, rtype) => {
                write!(f, "{owner} {rtype} must be alone, remove it or what stands beside it")
            }
            Self::TooLarge => {
                f.write_str("the zone is too large, or has over 65535 records of one name and type")
            }
            Self::NoNsec3 => f.write_str(
                "the zone is signed with NSEC3, which this program was built without: switch on \
                 the feature `dnssec`",
            ),
        }
    }
}

impl std::error::Error for BuildError {}

impl From<TooLarge> for BuildError {
    fn from(_: TooLarge) -> Self {
        Self::TooLarge
    }
}

/// Builds the zone of `apex` from its records; records outside it are left out.
///
/// # Errors
/// When the zone could not be served.
pub fn build(apex: &Name, records: &Records, seed: HashSeed) -> Result<Zone, BuildError> {
    let mut groups = Groups::new(apex, records, seed);
    groups.collect()?;
    groups.classify();
    if !groups.apex_has(Type::SOA) {
        return Err(BuildError::NoSoa);
    }
    let is_nsec3 = groups.apex_has(Type::NSEC3PARAM) && groups.apex_has(Type::DNSKEY);
    if cfg!(not(feature = "nsec3")) && is_nsec3 {
        return Err(BuildError::NoNsec3);
    }
    let has_aliases = groups.groups.iter().any(|group| group.flags & node_flag::ALIAS != 0);
    let (apex_node, directory) = groups.lay_out()?;
    let names = groups.groups.len() - 1;
    let apex = (apex.to_lowercase(), seed);
    let zone = Zone::new(apex, ApexNode::new(&apex_node), (directory, names))?;
    Ok(Zone { has_aliases, ..zone }.with_proofs()?)
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

impl Drop for Groups<'_> {
    fn drop(&mut self) {
        free_in_steps(mem::take(&mut self.groups));
        free_in_steps(mem::take(&mut self.next));
    }
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
        let is_nsec3 = type_covered(record.rtype, record.rdata) == Type::NSEC3;
        group.only_nsec3 = is_nsec3 && (group.first == NONE || group.only_nsec3);
        match group.last {
            NONE => group.first = index,
            last => self.next[last as usize] = index,
        }
        group.last = index;
        match record.rtype {
            Type::NS if !is_apex => group.flags |= node_flag::CUT,
            Type::DNAME => group.flags |= node_flag::DNAME,
            Type::ALIAS => return group.flags |= node_flag::ALIAS,
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

    /// Writes the node of the apex, and all other nodes in their shards.
    fn lay_out(&self) -> Result<(Vec<u8>, Directory), BuildError> {
        let mut children = vec![0_u32; self.groups.len()];
        for group in &self.groups[1..] {
            children[group.parent as usize] += 1;
        }
        let is_signed = self.apex_has(Type::DNSKEY);
        let mut sorter = RecordSorter::new(is_signed);
        let mut apex_node = Vec::new();
        self.write(0, children[0], &mut sorter, &mut apex_node)?;
        let layout = Layout::for_names(self.groups.len() - 1);
        let mut builder = DirectoryBuilder::new(layout);
        for (number, group) in self.groups.iter().enumerate().skip(1) {
            let is_hidden = group.only_nsec3 && children[number] == 0;
            let hash = if is_hidden { group.hash ^ HIDDEN } else { group.hash };
            builder.push(hash, |out| self.write(number, children[number], &mut sorter, out))?;
        }
        free_in_steps(children);
        Ok((apex_node, builder.finish()?))
    }

    /// Appends the node of a group to a buffer.
    fn write(
        &self,
        number: usize,
        children: u32,
        sorter: &mut RecordSorter<'r>,
        out: &mut Vec<u8>,
    ) -> Result<(), BuildError> {
        let group = &self.groups[number];
        let is_hidden = group.only_nsec3 && children == 0;
        let hidden = if is_hidden { node_flag::NSEC3_ONLY } else { 0 };
        let mut writer = NodeWriter::begin(out, group.flags | hidden, self.relative_owner(group));
        let mut index = group.first;
        while index != NONE {
            sorter.add(self.records.get(index as usize));
            index = self.next[index as usize];
        }
        sorter.write(&mut writer, number == 0, &[])?;
        writer.end(children);
        Ok(())
    }

    /// Whether the apex has records of a type.
    fn apex_has(&self, rtype: Type) -> bool {
        let mut index = self.groups.first().map_or(NONE, |apex| apex.first);
        while index != NONE {
            if self.records.get(index as usize).rtype == rtype {
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
