//! The records of one owner, sorted into the sets of its node.

use super::BuildError;
use super::node::{NodeWriter, SetOrder, set_order};
use crate::records::Record;
use crate::release::free_in_steps;
use crate::rules::{OwnerKind, OwnerRule, binding_rule};
use std::borrow::Cow;
use std::mem;
use zonda_wire::{Name, Type, rdata};

/// Rdata in the form in which it is compared (rfc4034#6.2); nearly always as it stands.
pub(crate) fn canonical(rtype: Type, rdata: &[u8]) -> Cow<'_, [u8]> {
    let has_upper_case = || rdata.iter().any(u8::is_ascii_uppercase);
    if rdata::names(rtype, rdata).next().is_none() || !has_upper_case() {
        return rdata.into();
    }
    let mut lower = rdata.to_vec();
    rdata::make_canonical(rtype, &mut lower);
    lower.into()
}

/// Octets of memory that each record of an owner takes while these are sorted: its place among
/// them, half of which the sort takes once more.
pub(super) const SORTED_BYTES: usize = size_of::<(SetOrder, Record<'_>)>() * 3 / 2;

/// Sorts the records of one owner into sets.
pub(super) struct RecordSorter<'r> {
    /// Whether the zone has a key; if not, its signatures lie where no set has them behind it.
    is_signed: bool,
    /// The records of the present owner.
    records: Vec<(SetOrder, Record<'r>)>,
}

impl Drop for RecordSorter<'_> {
    fn drop(&mut self) {
        free_in_steps(mem::take(&mut self.records));
    }
}

impl<'r> RecordSorter<'r> {
    /// A sorter without records, for a zone with or without a key.
    pub(super) fn new(is_signed: bool) -> Self {
        Self { is_signed, records: Vec::new() }
    }

    /// Adds a record of the present owner.
    pub(super) fn add(&mut self, record: Record<'r>) {
        self.records.push((set_order(record.rtype, record.rdata, self.is_signed), record));
    }

    /// Writes the sets of the present owner; the next record is that of another. The TTL of a set
    /// is the smallest of its records' (rfc2181#5.2). Errors name the owner with what follows the
    /// owners that the records were added with: nothing, or the apex.
    ///
    /// # Errors
    /// When answers would be ambiguous, or a set is too large.
    pub(super) fn write(
        &mut self,
        writer: &mut NodeWriter<'_>,
        is_apex: bool,
        behind_owner: &[u8],
    ) -> Result<(), BuildError> {
        let mut records = mem::take(&mut self.records);
        if records.len() > 1 {
            let key = |(order, record): &(SetOrder, Record<'r>)| {
                (*order, canonical(record.rtype, record.rdata))
            };
            records.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| key(a).cmp(&key(b))));
            records.dedup_by(|a, b| key(a) == key(b)); // of equal ones, the first stays
            check_owner(&records, is_apex, behind_owner)?;
        }
        for set in records.chunk_by(|a, b| a.0 == b.0) {
            let ttl = set.iter().map(|(_, record)| record.ttl).min().unwrap_or(0);
            let rdatas = set.iter().map(|(_, record)| record.rdata);
            writer.set(set[0].1.rtype, ttl, rdatas)?;
        }
        records.clear();
        self.records = records;
        Ok(())
    }
}

/// Refuses an owner whose answers would be ambiguous.
fn check_owner(
    records: &[(SetOrder, Record<'_>)],
    is_apex: bool,
    behind_owner: &[u8],
) -> Result<(), BuildError> {
    let sets = records.chunk_by(|a, b| a.0 == b.0).map(|set| (set[0].1.rtype, set.len()));
    let is_wildcard = records[0].1.owner.starts_with(b"\x01*");
    let alone = match binding_rule(OwnerKind { is_apex, is_wildcard }, sets) {
        None => return Ok(()),
        Some(OwnerRule::SeveralOfOne(rtype)) => rtype,
        Some(_) => Type::CNAME,
    };
    let owner = [records[0].1.owner, behind_owner].concat();
    let owner = Name::from_wire(&owner).map_err(|_| BuildError::TooLarge)?;
    Err(BuildError::NotAlone(owner, alone))
}
