//! What is to change in a zone (rfc2136#3.4): the sets that a row of updates leads to.

use super::check_owner;
use super::fault::{FormatRule, UpdateFault};
use crate::rules::may_stand_beside_cname;
use crate::snapshot::{SetChange, TTL_MAX, Zone, canonical, is_greater, serial_of};
use std::collections::{BTreeMap, BTreeSet};
use zonda_wire::{Class, Name, Type, UpdateRecord, rdata};

/// Types of which a new record takes the place of the former one (rfc2136#3.4.2.2); a name has one
/// record of each at most.
const REPLACED: [Type; 5] = [Type::CNAME, Type::SOA, Type::DNAME, Type::NSEC3PARAM, Type::ALIAS];
/// Octets of an address and a protocol, which tell WKS records apart (rfc2136#3.4.2.2).
const WKS_KEY_BYTES: usize = 5;

/// Checks the form of updates before any takes effect.
///
/// # Errors
/// The first that is not as it should be.
pub fn check_updates(
    apex: &[u8],
    class: Class,
    records: &[UpdateRecord],
) -> Result<(), UpdateFault> {
    // rfc2136#3.4.1.3
    for record in records {
        check_owner(apex, record)?;
        check_form(class, record).map_err(|rule| UpdateFault::format(record, rule))?;
    }
    Ok(())
}

/// Checks the form of one update.
fn check_form(class: Class, record: &UpdateRecord) -> Result<(), FormatRule> {
    let UpdateRecord { rtype, ttl, .. } = record;
    let is_data = !rtype.is_meta() && *rtype != Type(0);
    if !is_data && (*rtype != Type::ANY || record.class != Class::ANY) {
        return Err(FormatRule::Type);
    }
    let lacks_data = record.rdata.is_empty() && rdata::validate(*rtype, &record.rdata).is_err();
    let is_added = record.class == class;
    let is_one = is_added || record.class == Class::NONE;
    if !is_one && record.class != Class::ANY {
        return Err(FormatRule::Class);
    }
    if is_added && *ttl > TTL_MAX {
        return Err(FormatRule::TtlTooLong);
    }
    if !is_added && *ttl != 0 {
        return Err(FormatRule::Ttl);
    }
    match is_one {
        true if lacks_data => Err(FormatRule::NoData),
        false if !record.rdata.is_empty() => Err(FormatRule::Data),
        _ => Ok(()),
    }
}

/// Returns the changes that updates of the right form amount to in a version of a zone, whose class
/// is `class`. What has no effect by the rules of updates is left out; a set may be among the
/// changes that is in the end as it was.
#[must_use]
pub fn changes(zone: &Zone, class: Class, updates: &[UpdateRecord]) -> Vec<SetChange> {
    let mut names: BTreeMap<&[u8], NameDraft> = BTreeMap::new();
    for update in updates {
        let owner = update.owner.as_wire();
        let draft = names.entry(owner).or_insert_with(|| NameDraft::of(zone, &update.owner));
        match update.class {
            it if it == class => draft.add(update),
            Class::ANY if update.rtype == Type::ANY => draft.clear(),
            Class::ANY => draft.remove_set(update.rtype),
            _ => draft.remove(update),
        }
    }
    names.into_values().flat_map(NameDraft::into_changes).collect()
}

/// The records of a name while updates are applied one by one.
struct NameDraft {
    owner: Name,
    is_apex: bool,
    /// The sets of the name; those of signatures have all types covered together.
    sets: BTreeMap<Type, SetDraft>,
    /// The types that the name had records of.
    former: BTreeSet<Type>,
    /// The types whose records have changed, if only for a while.
    changed: BTreeSet<Type>,
}

/// An RRset while updates are applied.
#[derive(Default)]
struct SetDraft {
    ttl: u32,
    /// The data of the records by their canonical forms.
    data: BTreeMap<Vec<u8>, Box<[u8]>>,
}

impl NameDraft {
    /// The records that a name has.
    fn of(zone: &Zone, owner: &Name) -> Self {
        let mut sets: BTreeMap<Type, SetDraft> = BTreeMap::new();
        for record in zone.records_at(owner) {
            let set = sets.entry(record.rtype).or_default();
            set.ttl = record.ttl;
            set.data
                .insert(canonical(record.rtype, record.rdata).into_owned(), record.rdata.into());
        }
        let former = sets.keys().copied().collect();
        let is_apex = owner.as_wire() == zone.apex();
        Self { owner: owner.clone(), is_apex, sets, former, changed: BTreeSet::new() }
    }

    /// Adds a record (rfc2136#3.4.2.2).
    fn add(&mut self, update: &UpdateRecord) {
        let UpdateRecord { rtype, ttl, rdata, .. } = update;
        let is_ignored = match *rtype {
            Type::CNAME => self.sets.keys().any(|it| !may_stand_beside_cname(*it)),
            Type::SOA => !self.is_newer_soa(rdata),
            it => self.sets.contains_key(&Type::CNAME) && !may_stand_beside_cname(it),
        };
        if is_ignored {
            return;
        }
        self.changed.insert(*rtype);
        let set = self.sets.entry(*rtype).or_default();
        if REPLACED.contains(rtype) {
            set.data.clear();
        } else if let (Type::WKS, Some(key)) = (*rtype, rdata.get(..WKS_KEY_BYTES)) {
            set.data.retain(|_, data| data.get(..WKS_KEY_BYTES) != Some(key));
        }
        set.ttl = *ttl; // the records of a set have one TTL, rfc2181#5.2
        let canonical = canonical(*rtype, rdata).into_owned();
        set.data.entry(canonical).or_insert_with(|| rdata.clone());
    }

    /// Whether the name has an SOA record with a lower serial than this one.
    fn is_newer_soa(&self, rdata: &[u8]) -> bool {
        let present = self.sets.get(&Type::SOA).and_then(|set| set.data.values().next());
        present.is_some_and(|present| is_greater(serial_of(rdata), serial_of(present)))
    }

    /// Removes all records of the name; at the apex not those without which there is no zone
    /// (rfc2136#3.4.2.3).
    fn clear(&mut self) {
        let is_apex = self.is_apex;
        let is_kept = |rtype: Type| is_apex && matches!(rtype, Type::SOA | Type::NS);
        self.changed.extend(self.sets.keys().filter(|rtype| !is_kept(**rtype)));
        self.sets.retain(|rtype, _| is_kept(*rtype));
    }

    /// Removes the records of a type, with the same exception.
    fn remove_set(&mut self, rtype: Type) {
        if self.is_apex && matches!(rtype, Type::SOA | Type::NS) {
            return;
        }
        if self.sets.remove(&rtype).is_some() {
            self.changed.insert(rtype);
        }
    }

    /// Removes a record; not the SOA record, and not the last NS record of the apex
    /// (rfc2136#3.4.2.4).
    fn remove(&mut self, update: &UpdateRecord) {
        let rtype = update.rtype;
        let Some(set) = self.sets.get_mut(&rtype) else { return };
        let is_last_server = self.is_apex && rtype == Type::NS && set.data.len() == 1;
        if rtype == Type::SOA || is_last_server {
            return;
        }
        if set.data.remove(&*canonical(rtype, &update.rdata)).is_some() {
            self.changed.insert(rtype);
            if set.data.is_empty() {
                self.sets.remove(&rtype);
            }
        }
    }

    /// The changes that lead from the records that the name had to those that it has now.
    fn into_changes(self) -> Vec<SetChange> {
        let Self { owner, mut sets, former, changed, .. } = self;
        if sets.is_empty() && !former.is_empty() {
            return vec![SetChange::RemoveName { owner }];
        }
        let change = |rtype: Type| {
            let owner = owner.clone();
            match sets.remove(&rtype) {
                Some(SetDraft { ttl, data }) => {
                    let data = data.into_values().collect();
                    Some(SetChange::Put { owner, rtype, ttl, data })
                }
                None if former.contains(&rtype) => Some(SetChange::Remove { owner, rtype }),
                None => None,
            }
        };
        changed.into_iter().filter_map(change).collect()
    }
}
