//! Prerequisites: what must hold in a zone for an update to be carried out (rfc2136#3.2).

use super::check_owner;
use super::fault::{FormatRule, UpdateFault};
use crate::snapshot::{Zone, canonical};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use zonda_wire::{Class, Name, Type, UpdateRecord, rdata};

/// The data of the records that a set must have, in canonical form.
type ExpectedSet<'m> = (&'m Name, BTreeSet<Cow<'m, [u8]>>);

/// Checks that all of `records` hold in a version of a zone, whose class is `class`, in the order
/// of the message: sets that are given record by record come last.
///
/// # Errors
/// The first that does not hold, or is not as it should be.
pub fn check_prerequisites(
    zone: &Zone,
    class: Class,
    records: &[UpdateRecord],
) -> Result<(), UpdateFault> {
    let mut expected: BTreeMap<(&[u8], Type), ExpectedSet<'_>> = BTreeMap::new();
    // rfc2136#3.2.5
    for record in records {
        let UpdateRecord { owner, rtype, .. } = record;
        if record.ttl != 0 {
            return Err(UpdateFault::format(record, FormatRule::Ttl));
        }
        check_owner(zone.apex(), record)?;
        let is_data = !rtype.is_meta() && *rtype != Type(0);
        if !is_data && (*rtype != Type::ANY || record.class == class) {
            return Err(UpdateFault::format(record, FormatRule::Type));
        }
        if record.class == class {
            if record.rdata.is_empty() && rdata::validate(*rtype, &record.rdata).is_err() {
                return Err(UpdateFault::format(record, FormatRule::NoData));
            }
            let set = expected.entry((owner.as_wire(), *rtype));
            let (_, data) = set.or_insert_with(|| (owner, BTreeSet::new()));
            data.insert(canonical(*rtype, &record.rdata));
            continue;
        }
        let must_exist = match record.class {
            Class::ANY => true,
            Class::NONE => false,
            _ => return Err(UpdateFault::format(record, FormatRule::Class)),
        };
        if !record.rdata.is_empty() {
            return Err(UpdateFault::format(record, FormatRule::Data));
        }
        // A name without records of its own is not in use, although names below it may be.
        let exists = zone.records_at(owner).any(|it| !is_data || it.rtype == *rtype);
        if exists != must_exist {
            let owner = owner.clone();
            return Err(match (must_exist, is_data) {
                (true, false) => UpdateFault::NameMissing(owner),
                (true, true) => UpdateFault::SetMissing(owner, *rtype),
                (false, false) => UpdateFault::NameExists(owner),
                (false, true) => UpdateFault::SetExists(owner, *rtype),
            });
        }
    }
    expected.into_iter().try_for_each(|((_, rtype), (owner, data))| {
        let mut present = zone.records_at(owner).filter(|it| it.rtype == rtype).peekable();
        if present.peek().is_none() {
            return Err(UpdateFault::SetMissing(owner.clone(), rtype));
        }
        let mut count = 0;
        let is_same = present.all(|it| {
            count += 1;
            data.contains(&canonical(rtype, it.rdata))
        });
        match is_same && count == data.len() {
            true => Ok(()),
            false => Err(UpdateFault::SetDiffers(owner.clone(), rtype)),
        }
    })
}
