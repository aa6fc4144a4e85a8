//! Signatures and proofs, as far as they can be judged without keys.

use super::Findings;
use super::names::name_of;
use super::problem::CheckProblem;
use super::view::{Owner, OwnerPosition, View};
use std::collections::{BTreeMap, BTreeSet};
use zonda_wire::rdata::{self, Kind, bitmap, schema};
use zonda_wire::{Type, name};

/// Signatures sign what is there, are made by this zone, and are valid now (rfc4035#2.2).
pub(super) fn signatures(owner: Owner<'_>, findings: &mut Findings<'_>) {
    let now = owner.view.now;
    for (index, record) in owner.of(Type::RRSIG) {
        let Some((head, rest)) = record.rdata.split_first_chunk::<18>() else { continue };
        let covered = Type(u16::from_be_bytes([head[0], head[1]]));
        let time =
            |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let signer = name::wire_len(rest).map_or(rest, |len| &rest[..len]);
        let labels = name::labels(owner.name()).count() - usize::from(owner.is_wildcard());
        if !owner.has(covered) {
            findings.record(index, CheckProblem::NothingSigned(covered));
        }
        if !signer.eq_ignore_ascii_case(owner.view.apex) && !owner.is_hidden() {
            findings.record(index, CheckProblem::ForeignSigner(name_of(signer)));
        }
        if usize::from(head[3]) > labels {
            findings.record(index, CheckProblem::TooManyLabels);
        }
        if is_before(time(8), now) {
            findings.record(index, CheckProblem::Expired(covered));
        } else if is_before(now, time(12)) {
            findings.record(index, CheckProblem::NotYetValid(covered));
        }
    }
}

/// Whether one time is before another, both modulo 2³² (rfc4034#3.1.5, rfc1982#3.2).
fn is_before(one: u32, two: u32) -> bool {
    (one.wrapping_sub(two) as i32) < 0
}

/// In a signed zone every set is signed (rfc4035#2.2).
pub(super) fn unsigned_sets(owner: Owner<'_>, findings: &mut Findings<'_>) {
    if !owner.view.is_signed {
        return;
    }
    let covered = owner.of(Type::RRSIG).filter_map(|(_, signature)| {
        signature.rdata.first_chunk().map(|covered| Type(u16::from_be_bytes(*covered)))
    });
    let covered: BTreeSet<Type> = covered.collect();
    for (index, rtype) in owner.types() {
        let is_due = rtype != Type::RRSIG && owner.is_authoritative_for(rtype);
        if is_due && !covered.contains(&rtype) {
            findings.record(index, CheckProblem::Unsigned(rtype));
        }
    }
}

/// NSEC records lead from name to name and back to the apex (rfc4034#4.1.1).
pub(super) fn nsec_chain_is_broken(view: &View<'_>, findings: &mut Findings<'_>) {
    let Some(apex) = view.find(view.apex).filter(|apex| apex.has(Type::NSEC)) else { return };
    let mut chain = view.owners().filter(|owner| !owner.is_hidden() && !owner.has(Type::NSEC3));
    let mut current = chain.next();
    while let Some(owner) = current {
        current = chain.next();
        let next = current.unwrap_or(apex).name();
        match owner.of(Type::NSEC).next() {
            None => findings.owner(owner, CheckProblem::NoNsec),
            Some((index, record)) => {
                let len = name::wire_len(record.rdata).unwrap_or(0);
                if !record.rdata[..len].eq_ignore_ascii_case(next) {
                    findings.record(index, CheckProblem::NsecNext(name_of(next)));
                }
            }
        }
    }
}

/// NSEC lists the types of its owner (rfc4034#4.1.2).
pub(super) fn nsec_types(owner: Owner<'_>, findings: &mut Findings<'_>) {
    let Some((index, record)) = owner.of(Type::NSEC).next() else { return };
    let len = name::wire_len(record.rdata).unwrap_or(record.rdata.len());
    let listed = bitmap::windowed_types(&record.rdata[len..]);
    let at_cut = |rtype: Type| matches!(rtype, Type::NS | Type::DS | Type::NSEC | Type::RRSIG);
    let is_cut = owner.position() == OwnerPosition::Cut;
    let mut present: Vec<Type> = owner.types().map(|(_, rtype)| rtype).collect();
    present.retain(|&rtype| !is_cut || at_cut(rtype));
    present.sort_unstable();
    let mut present = present.into_iter();
    let mut listed = listed;
    loop {
        match (listed.next(), present.next()) {
            (None, None) => return,
            (a, b) if a == b => {}
            (a, b) => {
                let first = a.into_iter().chain(b).min().unwrap_or(Type::NSEC);
                return findings.record(index, CheckProblem::NsecTypes(first));
            }
        }
    }
}

/// Iterations cost each answer time and hide nothing (rfc9276#3.1).
pub(super) fn nsec3_iterations(view: &View<'_>, findings: &mut Findings<'_>) {
    let Some(apex) = view.find(view.apex) else { return };
    for (index, record) in apex.of(Type::NSEC3PARAM) {
        if let [_, _, high, low, ..] = *record.rdata
            && (high, low) != (0, 0)
        {
            let iterations = u16::from_be_bytes([high, low]);
            findings.record(index, CheckProblem::Iterations(iterations));
        }
    }
}

/// NSEC3 records of the same parameters lead from hash to hash and around (rfc5155#7.1).
pub(super) fn nsec3_chain_is_broken(view: &View<'_>, findings: &mut Findings<'_>) {
    /// A link: the hash of the owner, that of the next one, and the record.
    struct Link<'v> {
        owner: &'v [u8],
        next: String,
        index: u32,
    }
    let mut chains: BTreeMap<&[u8], Vec<Link<'_>>> = BTreeMap::new();
    for (index, record) in view.owners().flat_map(|owner| owner.of(Type::NSEC3)) {
        let Some(schema) = schema::of(Type::NSEC3) else { return };
        let values = rdata::values(schema, record.rdata).map_while(Result::ok);
        let hash = values.into_iter().find(|value| value.field.kind == Kind::Base32ByLength);
        let (Some(hash), Some(owner)) = (hash, name::labels(record.owner).next()) else { continue };
        let next = rdata::FieldText { value: hash, rdata: record.rdata }.to_string();
        // Iterations and salt make a chain; flags may differ within it.
        let parameters = &record.rdata[2..hash.offset];
        chains.entry(parameters).or_default().push(Link { owner, next, index });
    }
    for chain in chains.values() {
        for (link, next) in chain.iter().zip(chain.iter().cycle().skip(1)) {
            if !link.next.as_bytes().eq_ignore_ascii_case(next.owner) {
                findings.record(link.index, CheckProblem::Nsec3Next);
            }
        }
    }
}
