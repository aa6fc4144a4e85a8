//! RRsets while zones are changed and compared.

use super::TooLarge;
use super::canonical;
use super::change::ChangeRule;
use super::node::{Node, NodeWriter, set_order, type_covered};
use crate::order::rank;
use std::borrow::Cow;
use zonda_wire::{Type, rdata};

/// An RRset of some owner; the signatures over each type are a set of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordSet<'r> {
    /// The type of the records.
    pub(super) rtype: Type,
    /// The type that signatures cover; the records' own for other types.
    pub(super) covered: Type,
    /// The records' time to live, seconds.
    pub(super) ttl: u32,
    /// The records' data in canonical order, none twice; at least one.
    pub(super) rdatas: Vec<Cow<'r, [u8]>>,
}

impl<'r> RecordSet<'r> {
    /// The set of some data in any order.
    pub(super) fn new(rtype: Type, ttl: u32, data: &'r [Box<[u8]>]) -> Result<Self, ChangeRule> {
        let first = data.first().ok_or(ChangeRule::NoRecords)?;
        let covered = type_covered(rtype, first);
        for octets in data {
            if octets.len() > usize::from(u16::MAX) {
                return Err(ChangeRule::TooLarge);
            }
            rdata::validate(rtype, octets).map_err(ChangeRule::Data)?;
            if type_covered(rtype, octets) != covered {
                return Err(ChangeRule::SeveralCovered);
            }
        }
        let mut rdatas: Vec<Cow<'_, [u8]>> = data.iter().map(|it| Cow::Borrowed(&**it)).collect();
        if rdatas.len() > 1 {
            rdatas.sort_by_cached_key(|it| canonical(rtype, it).into_owned());
            rdatas.dedup_by(|a, b| canonical(rtype, a) == canonical(rtype, b));
        }
        match rdatas.len() > usize::from(u16::MAX) {
            true => Err(ChangeRule::TooLarge),
            false => Ok(Self { rtype, covered, ttl, rdatas }),
        }
    }

    /// What tells the sets of an owner apart, in the order in which they are printed: SOA first,
    /// then by type.
    pub(super) fn key(&self) -> (u16, u16) {
        (rank(self.rtype), self.covered.0)
    }
}

/// The sets of a node in the order of [`RecordSet::key`].
pub(super) fn sets_of<'z>(node: Option<Node<'z>>) -> Vec<RecordSet<'z>> {
    let mut sets: Vec<RecordSet<'z>> = node
        .into_iter()
        .flat_map(|node| node.sets())
        .map(|set| RecordSet {
            rtype: set.rtype,
            covered: type_covered(set.rtype, set.first()),
            ttl: set.ttl,
            rdatas: set.rdatas().map(Cow::Borrowed).collect(),
        })
        .collect();
    sets.sort_by_key(RecordSet::key);
    sets
}

/// Appends sets, in any order, to the node of their owner.
pub(super) fn write_sets(
    sets: &[RecordSet<'_>],
    is_signed: bool,
    writer: &mut NodeWriter<'_>,
) -> Result<(), TooLarge> {
    let mut sets: Vec<&RecordSet<'_>> = sets.iter().collect();
    sets.sort_by_key(|set| set_order(set.rtype, &set.rdatas[0], is_signed));
    for set in sets {
        writer.set(set.rtype, set.ttl, set.rdatas.iter().map(|it| &**it))?;
    }
    Ok(())
}
