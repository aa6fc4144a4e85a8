//! What a message does to a version of a zone: prerequisites, form, rights and changes are judged
//! against that one version.

use super::request::{UpdateRequest, UpdateResult};
use crate::edit::zone_digest::with_sound_digest;
use zonda_engine::Reason;
use zonda_engine::grant::{UpdateGrant, UpdateSender, is_never_granted};
use zonda_wire::query::HEADER_BYTES;
use zonda_wire::{Class, Name, Rcode, Type, UpdateRecord};
use zonda_zone::update::{UpdateFault, changes, check_prerequisites, check_updates};
use zonda_zone::{ChangeSet, Diff, Serial, SetChange, Zone};

/// The class of all zones.
const CLASS: Class = Class::IN;
/// Octets of a record beside its data: a pointer to its name, type, class, TTL, length.
const RECORD_BYTES: usize = 2 + 2 + 2 + 4 + 2;
/// Octets of a question beside its name: type, class.
const QUESTION_BYTES: usize = 2 + 2;
/// Octets of the longest message.
const MESSAGE_BYTES_MAX: usize = u16::MAX as usize;

/// Carries out a message; returns the next version of the zone, and what tells it from this one,
/// which may be nothing.
///
/// # Errors
/// The result of a message that is not carried out.
pub fn judge(
    zone: &Zone,
    grants: &[UpdateGrant],
    request: &UpdateRequest,
    serial: Serial,
) -> Result<(Zone, Diff), UpdateResult> {
    let UpdateRequest { sender, message } = request;
    if zone.is_signed() {
        let text = "the zone is signed elsewhere: change it there, as signatures would be wrong";
        let (rcode, reason) = (Rcode::REFUSED, Reason::UpdateRefused);
        return Err(UpdateResult::refused(rcode, reason, text.to_owned()));
    }
    // The order of rfc2136#3.2 to #3.4, but that the form is looked at before rights are, which
    // are rights to what a sound record says.
    check_prerequisites(zone, CLASS, &message.prerequisites).map_err(of_fault)?;
    check_updates(zone.apex(), CLASS, &message.updates).map_err(of_fault)?;
    let rights = Rights { grants, sender };
    message.updates.iter().try_for_each(|update| rights.check(zone, update))?;
    let sets = changes(zone, CLASS, &message.updates);
    sets.iter().try_for_each(|change| rights.check_count(zone, change))?;
    sets.iter().try_for_each(check_size)?;
    with_sound_digest(zone, &ChangeSet { sets, serial }, true).map_err(|error| {
        UpdateResult::refused(Rcode::SERVFAIL, Reason::UpdateFailed, error.to_string())
    })
}

/// The result of a message that is not as it should be, or of which a prerequisite is not met.
fn of_fault(fault: UpdateFault) -> UpdateResult {
    let reason = if fault.is_unmet() { Reason::UpdateUnmet } else { Reason::FormatError };
    UpdateResult::refused(fault.rcode(), reason, fault.to_string())
}

/// The rights of a client in a zone.
struct Rights<'g> {
    grants: &'g [UpdateGrant],
    sender: &'g UpdateSender,
}

impl Rights<'_> {
    /// Fails for an update that no right allows.
    fn check(&self, zone: &Zone, update: &UpdateRecord) -> Result<(), UpdateResult> {
        let UpdateRecord { owner, rtype, class, ttl, .. } = update;
        if *rtype == Type::ANY {
            return self.check_name(zone, owner);
        }
        let mut allowing = self.allowing(owner, *rtype).peekable();
        if allowing.peek().is_none() {
            return Err(refused(owner, *rtype, "this client may not change these records"));
        }
        match *class != CLASS || allowing.any(|grant| grant.allows_ttl(*ttl)) {
            true => Ok(()),
            false => Err(refused(owner, *rtype, "this client may not use this TTL")),
        }
    }

    /// Fails for a name all of whose records are to go, unless those of each type may go. What
    /// signing has made goes with the name.
    fn check_name(&self, zone: &Zone, owner: &Name) -> Result<(), UpdateResult> {
        let is_apex = owner.as_wire() == zone.apex();
        let stays = |rtype: Type| is_apex && matches!(rtype, Type::SOA | Type::NS);
        let goes = |rtype: &Type| !stays(*rtype) && !is_never_granted(*rtype);
        let may_not =
            |rtype: &Type| rtype.is_meta() || self.allowing(owner, *rtype).next().is_none();
        let mut types = zone.records_at(owner).map(|record| record.rtype).filter(goes);
        if let Some(rtype) = types.find(may_not) {
            return Err(refused(owner, rtype, "this client may not remove these records"));
        }
        match self.grants.iter().any(|grant| grant.covers(self.sender, owner)) {
            true => Ok(()),
            false => Err(refused(owner, Type::ANY, "this client may not change this name")),
        }
    }

    /// Fails for a set that gets more records than it had, and more than any right allows.
    fn check_count(&self, zone: &Zone, change: &SetChange) -> Result<(), UpdateResult> {
        let SetChange::Put { owner, rtype, ttl, data } = change else { return Ok(()) };
        let before = zone.records_at(owner).filter(|record| record.rtype == *rtype).count();
        let allows = |grant: &UpdateGrant| grant.allows_ttl(*ttl) && grant.allows_count(data.len());
        match data.len() <= before || self.allowing(owner, *rtype).any(allows) {
            true => Ok(()),
            false => Err(refused(owner, *rtype, "this client may not add as many records")),
        }
    }

    /// The rights that the client has to change records of a name and type.
    fn allowing<'a>(
        &'a self,
        owner: &'a Name,
        rtype: Type,
    ) -> impl Iterator<Item = &'a UpdateGrant> + 'a {
        self.grants.iter().filter(move |grant| grant.allows(self.sender, owner, rtype))
    }
}

/// Fails for a set that no message would have room for, as a set is sent whole (rfc2181#5).
fn check_size(change: &SetChange) -> Result<(), UpdateResult> {
    let SetChange::Put { owner, rtype, data, .. } = change else { return Ok(()) };
    let records: usize = data.iter().map(|data| RECORD_BYTES + data.len()).sum();
    match HEADER_BYTES + owner.as_wire().len() + QUESTION_BYTES + records {
        ..=MESSAGE_BYTES_MAX => Ok(()),
        _ => Err(refused(owner, *rtype, "the records of one type are more than 64 KiB")),
    }
}

/// The result of a message that its client may not send, and why.
fn refused(owner: &Name, rtype: Type, why: &str) -> UpdateResult {
    let text = format!("{owner} {rtype}: {why}");
    UpdateResult::refused(Rcode::REFUSED, Reason::UpdateRefused, text)
}
