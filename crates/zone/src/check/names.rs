//! Names that records lead to, and names that are hosts.

use super::Findings;
use super::problem::{CheckProblem, Server};
use super::view::{Owner, Target};
use crate::records::Record;
use zonda_wire::{Name, Type, name, rdata};

/// Mail and other services are found by the addresses of their hosts (rfc2181#10.3, rfc2782).
pub(super) fn mx_and_srv_targets(owner: Owner<'_>, findings: &mut Findings<'_>) {
    if owner.is_hidden() {
        return;
    }
    for (index, record) in owner.of(Type::MX).chain(owner.of(Type::SRV)) {
        let Some(target) = target_of(&record).filter(|target| *target != [0]) else { continue };
        let found = owner.view.target(target);
        if let Some(problem) = target_problem(found, target, Server::Other) {
            findings.record(index, problem);
        }
    }
}

/// What is wrong with a target, if something is.
pub(super) fn target_problem(found: Target, target: &[u8], server: Server) -> Option<CheckProblem> {
    let target = || name_of(target);
    match found {
        Target::Outside | Target::Address | Target::NoGlue => None,
        Target::Alias => Some(CheckProblem::TargetIsAlias(target(), server)),
        Target::BelowDname => Some(CheckProblem::TargetBelowDname(target(), server)),
        Target::NoAddress => Some(CheckProblem::TargetWithoutAddress(target(), server)),
    }
}

/// Owners of addresses and mail are hosts (rfc1123#2.1); a wildcard stands for hosts.
pub(super) fn owner_is_no_host(owner: Owner<'_>, findings: &mut Findings<'_>) {
    let for_hosts = |rtype: Type| matches!(rtype, Type::A | Type::AAAA | Type::MX);
    let Some((index, _)) = owner.types().find(|(_, rtype)| for_hosts(*rtype)) else { return };
    let name = owner.name();
    let host = if owner.is_wildcard() { name::parent(name).unwrap_or(name) } else { name };
    if !is_host(host) {
        findings.record(index, CheckProblem::OwnerIsNoHost);
    }
}

/// Servers are hosts, and not addresses.
pub(super) fn target_is_no_host(owner: Owner<'_>, findings: &mut Findings<'_>) {
    let servers = owner.of(Type::NS).chain(owner.of(Type::MX)).chain(owner.of(Type::SRV));
    for (index, record) in servers {
        let Some(target) = target_of(&record) else { continue };
        if is_address(target, owner.view.apex) {
            findings.record(index, CheckProblem::TargetIsAddress(name_of(target)));
        } else if !is_host(target) {
            findings.record(index, CheckProblem::TargetIsNoHost(name_of(target)));
        }
    }
}

/// The name that a record leads to: the last one in its data.
fn target_of<'r>(record: &Record<'r>) -> Option<&'r [u8]> {
    let name = rdata::names(record.rtype, record.rdata).last()?;
    record.rdata.get(name.offset..name.offset + name.len)
}

/// Whether all labels are letters, digits and inner hyphens.
fn is_host(name: &[u8]) -> bool {
    name::labels(name).all(|label| {
        let inner = |octet: &u8| octet.is_ascii_alphanumeric() || *octet == b'-';
        label.iter().all(inner) && !label.starts_with(b"-") && !label.ends_with(b"-")
    })
}

/// Whether a name is four numbers, with or without the apex behind.
fn is_address(name: &[u8], apex: &[u8]) -> bool {
    let relative = name.len().saturating_sub(apex.len());
    let head = if name::is_at_or_below(name, apex) { &name[..relative] } else { name };
    let mut labels = 0;
    let are_numbers = name::labels(head).all(|label| {
        labels += 1;
        str::from_utf8(label).is_ok_and(|text| text.parse::<u8>().is_ok())
    });
    are_numbers && labels == 4
}

/// A name of a record, to be shown.
pub(super) fn name_of(wire: &[u8]) -> Name {
    Name::from_wire(wire).unwrap_or_else(|_| Name::root()) // records hold whole names
}
