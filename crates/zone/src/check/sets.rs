//! Records of one name.

use super::Findings;
use super::problem::{AliasFault, CheckProblem};
use super::view::{Owner, View};
use crate::order;
use crate::records::Record;
use crate::rules::{OwnerKind, OwnerRule, SINGLE_TYPES, owner_rules};
use zonda_wire::Type;
use zonda_wire::query::HEADER_BYTES;
use zonda_wire::rdata::{self, NameUse};

/// Records of other zones.
pub(super) fn outside_zone(view: &View<'_>, findings: &mut Findings<'_>) {
    for &index in &view.outside {
        findings.record(index, CheckProblem::OutsideZone);
    }
}

/// What each name must keep to by itself.
pub(super) fn owner_rules_are_broken(owner: Owner<'_>, findings: &mut Findings<'_>) {
    let several = |rtype: Type| {
        let mut records = owner.of(rtype);
        let first = records.next().map(|(_, record)| record);
        let is_new = move |(_, record): &(u32, Record<'_>)| {
            first.is_some_and(|first| !order::is_duplicate(&first, record))
        };
        records.filter(is_new)
    };
    let sets = owner.types().map(|(_, rtype)| match SINGLE_TYPES.contains(&rtype) {
        true => (rtype, 1 + several(rtype).count()),
        false => (rtype, 1), // no rule asks for more
    });
    let kind = OwnerKind { is_apex: owner.is_apex(), is_wildcard: owner.is_wildcard() };
    owner_rules(kind, sets, |rule| {
        let mut report = |(index, _)| findings.record(index, CheckProblem::Owner(rule));
        match rule {
            OwnerRule::SeveralOfOne(rtype) => several(rtype).for_each(report),
            OwnerRule::SoaNotAtApex => owner.of(Type::SOA).for_each(report),
            rule => owner.of(rule.rtype()).take(1).for_each(&mut report),
        }
    });
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

/// An ALIAS record stands in for addresses that its name does not have.
pub(super) fn alias_has_no_effect(owner: Owner<'_>, findings: &mut Findings<'_>) {
    if owner.is_hidden() {
        return;
    }
    for (index, record) in owner.of(Type::ALIAS) {
        let mut report = |fault| findings.record(index, CheckProblem::Alias(fault));
        if owner.view.is_signed {
            report(AliasFault::SignedZone);
        }
        for rtype in [Type::A, Type::AAAA].into_iter().filter(|rtype| owner.has(*rtype)) {
            report(AliasFault::BesideAddress(rtype));
        }
        if record.rdata.eq_ignore_ascii_case(owner.name()) {
            report(AliasFault::Itself);
        }
    }
}
