//! Where the zone ends, and which servers serve it.

use super::Findings;
use super::names::{self, name_of};
use super::problem::{CheckProblem, Server};
use super::view::{Owner, OwnerPosition, Target, View};
use zonda_wire::Type;

/// A zone names its servers.
pub(super) fn no_apex_ns(view: &View<'_>, findings: &mut Findings<'_>) {
    if !view.find(view.apex).is_some_and(|apex| apex.has(Type::NS)) {
        findings.zone(view.apex, CheckProblem::NoApexNs);
    }
}

/// Records behind a delegation or a DNAME, but for glue.
pub(super) fn hidden(owner: Owner<'_>, findings: &mut Findings<'_>) {
    let is_glue = |rtype: Type| owner.is_ns_target() && matches!(rtype, Type::A | Type::AAAA);
    if owner.position() == OwnerPosition::Cut {
        let visible = [Type::NS, Type::DS, Type::NSEC, Type::RRSIG];
        let hides = |rtype: Type| !visible.contains(&rtype) && !is_glue(rtype);
        for (index, _) in owner.types().filter(|(_, rtype)| hides(*rtype)) {
            findings.record(index, CheckProblem::BesideDelegation);
        }
    }
    let Some(by) = owner.hidden_by() else { return };
    let rtype = if by.position() == OwnerPosition::Cut { Type::NS } else { Type::DNAME };
    for (index, _) in owner.types().filter(|&(_, of)| rtype == Type::DNAME || !is_glue(of)) {
        if is_denial(owner, index, findings) {
            continue;
        }
        findings.record(index, CheckProblem::Hidden { rtype, by: name_of(by.name()) });
    }
}

/// NSEC3 records and their signatures stand below the apex, even one with a DNAME (rfc6672#5.1).
fn is_denial(owner: Owner<'_>, index: u32, findings: &Findings<'_>) -> bool {
    let rtype = findings.records.get(index as usize).rtype;
    rtype == Type::NSEC3 || (rtype == Type::RRSIG && owner.has(Type::NSEC3))
}

/// Name servers are found by their addresses (rfc2181#10.3).
pub(super) fn ns_targets(owner: Owner<'_>, findings: &mut Findings<'_>) {
    if owner.is_hidden() {
        return;
    }
    let server = if owner.is_apex() { Server::Apex } else { Server::Other };
    for (index, record) in owner.of(Type::NS) {
        let target = owner.view.target(record.rdata);
        if target == Target::NoGlue {
            findings.record(index, CheckProblem::NoGlue(name_of(record.rdata)));
        } else if let Some(problem) = names::target_problem(target, record.rdata, server) {
            findings.record(index, problem);
        }
    }
}
