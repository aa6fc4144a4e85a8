//! The records of a response that a question can be about, and what each may be believed about.

use zonda_wire::response::{RecordView, Response};
use zonda_wire::{Class, Section, Type, name};

/// The records of a response that a question can be about.
pub(super) struct Sets<'r> {
    pub(super) response: &'r Response<'r>,
    pub(super) class: Class,
    pub(super) dnssec_ok: bool,
    /// The apex of the zone that the servers are asked for.
    pub(super) apex: &'r [u8],
}

impl<'r> Sets<'r> {
    /// Whether a name is of the zone that the servers are asked for, or of one below it.
    pub(super) fn is_inside(&self, name: &[u8]) -> bool {
        name::is_at_or_below(name, self.apex)
    }

    /// Whether the servers are trusted for a record of this owner.
    pub(super) fn may_say(&self, record: &RecordView<'_>, owner: &[u8]) -> bool {
        !speaks_of_others(record) || self.is_inside(owner)
    }

    /// Returns the records of a section that have the question's class.
    pub(super) fn section(
        &self,
        section: Section,
    ) -> impl Iterator<Item = RecordView<'r>> + use<'r> {
        let class = self.class;
        let records = self.response.records();
        records.filter(move |record| record.section == section && record.class == class)
    }
}

/// Whether a record is of a type that is asked for, which may be ANY.
pub(super) fn is_wanted(record: &RecordView<'_>, rtype: Type) -> bool {
    record.rtype == rtype || rtype == Type::ANY && !record.rtype.is_meta()
}

/// Types of records that cover more names than their owner: names below it, its zone, or all up to
/// the next.
const OF_OTHERS: [Type; 5] = [Type::DNAME, Type::SOA, Type::NS, Type::NSEC, Type::NSEC3];

/// Whether records of a type cover more names than their owner.
pub(super) fn speaks_beyond_owner(rtype: Type) -> bool {
    OF_OTHERS.contains(&rtype)
}

/// Whether a record covers more names than its owner, or is a signature over such a record.
fn speaks_of_others(record: &RecordView<'_>) -> bool {
    OF_OTHERS.iter().any(|&rtype| record.rtype == rtype || covers(record, rtype))
}

/// Returns the last field of an SOA record's data, seconds (rfc2308#4).
pub(super) fn soa_minimum(record: &RecordView<'_>) -> Option<u32> {
    record.raw.last_chunk().map(|field| u32::from_be_bytes(*field))
}

/// Whether a record is a signature over records of a type.
pub(super) fn covers(record: &RecordView<'_>, rtype: Type) -> bool {
    record.rtype == Type::RRSIG && record.raw.starts_with(&rtype.0.to_be_bytes())
}
