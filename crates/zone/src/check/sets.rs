//! Records of one name.

use super::Findings;
use super::problem::CheckProblem;
use super::view::{Owner, View};
use crate::order;
use crate::records::Record;
use zonda_wire::Type;
use zonda_wire::query::HEADER_BYTES;
use zonda_wire::rdata::{self, NameUse};

/// Records of other zones.
pub(super) fn outside_zone(view: &View<'_>, findings: &mut Findings<'_>) {
    for &index in &view.outside {
        findings.record(index, CheckProblem::OutsideZone);
    }
}

/// Types of which a name has one record (rfc2181#10.1, rfc6672#2.4).
pub(super) fn several_of_one(owner: Owner<'_>, findings: &mut Findings<'_>) {
    for rtype in [Type::SOA, Type::CNAME, Type::DNAME] {
        let mut records = owner.of(rtype);
        let Some((_, first)) = records.next() else { continue };
        for (index, _) in records.filter(|(_, record)| !order::is_duplicate(&first, record)) {
            findings.record(index, CheckProblem::SeveralOfOne(rtype));
        }
    }
}

/// A CNAME is alone, but for what signs it (rfc2181#10.1, rfc4034#2.5, rfc3007#4.2).
pub(super) fn alias_beside_other_data(owner: Owner<'_>, findings: &mut Findings<'_>) {
    if !owner.has(Type::CNAME) {
        return;
    }
    let allowed = [Type::CNAME, Type::RRSIG, Type::NSEC, Type::KEY, Type::SIG, Type::NXT];
    for (index, rtype) in owner.types().filter(|(_, rtype)| !allowed.contains(rtype)) {
        findings.record(index, CheckProblem::AliasBeside(rtype));
    }
}

/// A record that is written twice.
pub(super) fn duplicates(owner: Owner<'_>, findings: &mut Findings<'_>) {
    for ((first, one), (second, two)) in owner.records().zip(owner.records().skip(1)) {
        if order::is_duplicate(&one, &two) {
            let place = findings.place_of(first);
            findings.record(second, CheckProblem::Duplicate(place));
        }
    }
}

/// A message has at most 65 535 octets, and a set is sent whole (rfc2181#5, rfc1035#4.2.2).
pub(super) fn too_large(owner: Owner<'_>, findings: &mut Findings<'_>) {
    const FIXED: usize = 2 + 2 + 2 + 4 + 2; // a pointer, type, class, TTL, length
    for (first, rtype) in owner.types().filter(|(_, rtype)| *rtype != Type::RRSIG) {
        let octets = owner.of(rtype).map(|(_, record)| FIXED + least_bytes(&record)).sum::<usize>();
        let octets = HEADER_BYTES + owner.name().len() + 4 + octets;
        if octets > usize::from(u16::MAX) {
            findings.record(first, CheckProblem::SetTooLarge(octets));
        }
    }
}

/// The least octets that data takes in a message: a name that may be compressed is a pointer.
fn least_bytes(record: &Record<'_>) -> usize {
    let names = rdata::names(record.rtype, record.rdata);
    let compressed = names.filter(|name| name.name_use == NameUse::Compressed);
    record.rdata.len() - compressed.map(|name| name.len.saturating_sub(2)).sum::<usize>()
}

/// A set has one TTL (rfc2181#5.2); signatures have that of what they sign (rfc4034#3).
pub(super) fn ttls_differ(owner: Owner<'_>, findings: &mut Findings<'_>) {
    for (first, rtype) in owner.types().filter(|(_, rtype)| *rtype != Type::RRSIG) {
        let ttl = findings.records.get(first as usize).ttl;
        if let Some((index, _)) = owner.of(rtype).find(|(_, record)| record.ttl != ttl) {
            findings.record(index, CheckProblem::TtlsDiffer(ttl));
        }
    }
}
