//! Records of one name.

use super::Findings;
use super::problem::CheckProblem;
use super::view::{Owner, View};
use crate::order;
use zonda_wire::Type;

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

/// A set has one TTL (rfc2181#5.2); signatures have that of what they sign (rfc4034#3).
pub(super) fn ttls_differ(owner: Owner<'_>, findings: &mut Findings<'_>) {
    for (first, rtype) in owner.types().filter(|(_, rtype)| *rtype != Type::RRSIG) {
        let ttl = findings.records.get(first as usize).ttl;
        if let Some((index, _)) = owner.of(rtype).find(|(_, record)| record.ttl != ttl) {
            findings.record(index, CheckProblem::TtlsDiffer(ttl));
        }
    }
}
