//! Whether records fit together: what `named-checkzone`, `kzonecheck` and `ldns-verify-zone` find.
//!
//! Each check is a function in one of two lists. An *error* is what makes BIND or Knot refuse a
//! zone; the rest are warnings. Time is n log n in the number of records; memory is 24 octets for
//! each record and 13 for each owner while it runs.
//!
//! Deliberately absent: validation of signatures, which needs cryptography, and looking up names of
//! other zones, which needs a network.

mod delegation;
mod dnssec;
mod names;
mod problem;
mod sets;
mod soa;
mod view;

pub use problem::{AliasFault, CheckProblem, Server, SoaFault};

use crate::diagnostic::{Diagnostic, Diagnostics, Place, RecordName};
use crate::records::Records;
use std::path::Path;
use std::sync::Arc;
use view::{Owner, View};
use zonda_wire::{Name, Type, name};

/// Checks of the zone as a whole.
const OF_ZONE: &[fn(&View<'_>, &mut Findings<'_>)] = &[
    sets::outside_zone,
    soa::missing,
    delegation::no_apex_ns,
    dnssec::nsec_chain_is_broken,
    dnssec::nsec3_chain_is_broken,
    dnssec::nsec3_iterations,
];

/// Checks of an owner that is in the zone.
const OF_OWNER: &[fn(Owner<'_>, &mut Findings<'_>)] = &[
    sets::owner_rules_are_broken,
    soa::values,
    sets::duplicates,
    sets::ttls_differ,
    sets::too_large,
    sets::alias_has_no_effect,
    delegation::hidden,
    delegation::ns_targets,
    names::mx_and_srv_targets,
    names::owner_is_no_host,
    names::target_is_no_host,
    dnssec::signatures,
    dnssec::unsigned_sets,
    dnssec::nsec_types,
];

/// Checks the records of a zone. `now` is in seconds since 1970: signatures are judged by it.
#[must_use]
pub fn check(apex: &Name, records: &Records, now: u32) -> Diagnostics {
    let view = View::new(apex.as_wire(), records, now);
    let mut findings = Findings::new(records);
    OF_ZONE.iter().for_each(|check| check(&view, &mut findings));
    for owner in view.owners() {
        OF_OWNER.iter().for_each(|check| check(owner, &mut findings));
    }
    findings.diagnostics
}

/// Finds ALIAS records that lead out of their zone to names for which `is_looked_up` says that no
/// upstream can be asked; those names are in wire form.
#[must_use]
pub fn unresolved_aliases(
    apex: &Name,
    records: &Records,
    is_looked_up: impl Fn(&[u8]) -> bool,
) -> Diagnostics {
    let mut findings = Findings::new(records);
    for (index, record) in (0..).zip(records.iter()) {
        if record.rtype == Type::ALIAS
            && !name::is_at_or_below(record.rdata, apex.as_wire())
            && !is_looked_up(record.rdata)
        {
            findings.record(index, CheckProblem::Alias(AliasFault::NoUpstream));
        }
    }
    findings.diagnostics
}

/// The findings so far.
struct Findings<'r> {
    records: &'r Records,
    diagnostics: Diagnostics,
    /// The last file that something was found in.
    file: Arc<Path>,
}

impl<'r> Findings<'r> {
    /// Findings without an entry.
    fn new(records: &'r Records) -> Self {
        Self { records, diagnostics: Diagnostics::default(), file: Path::new("").into() }
    }

    /// A problem of a record.
    fn record(&mut self, index: u32, problem: CheckProblem) {
        let record = self.records.get(index as usize);
        self.add(index, record.owner, Some(record.rtype), problem);
    }

    /// A problem of an owner, told at its first record.
    fn owner(&mut self, owner: Owner<'_>, problem: CheckProblem) {
        self.add(owner.first(), owner.name(), None, problem);
    }

    /// A problem of the zone as a whole.
    fn zone(&mut self, apex: &[u8], problem: CheckProblem) {
        let file = self.records.files().next().unwrap_or(Path::new(""));
        let place = Place { file: file.into(), line: 0, column: 0 };
        self.push(place, apex, None, problem);
    }

    /// A problem at the place of a record.
    fn add(&mut self, index: u32, owner: &[u8], rtype: Option<Type>, problem: CheckProblem) {
        let place = self.place_of(index);
        self.push(place, owner, rtype, problem);
    }

    /// Where a record stands; it is meant as a whole, from its line's first octet.
    fn place_of(&mut self, index: u32) -> Place {
        let position = self.records.position(index as usize);
        if *self.file != *position.file {
            self.file = position.file.into();
        }
        Place { file: self.file.clone(), line: position.line, column: 1 }
    }

    /// A problem at a place.
    fn push(&mut self, place: Place, owner: &[u8], rtype: Option<Type>, problem: CheckProblem) {
        let record = Name::from_wire(owner).ok().map(|owner| RecordName { owner, rtype });
        let severity = problem.severity();
        self.diagnostics.push(Diagnostic { severity, place, record, problem: problem.into() });
    }
}
