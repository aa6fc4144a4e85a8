//! Dynamic updates (rfc2136): which clients may change a zone, and what they are told.
//!
//! ```text
//! message ─ gates ─► answer: zone, class, any right ─► To::Update ─► what changes zones
//!                                                                        │
//! reply ◄─ answer: response code, reason, text ◄── UpdateOutcome ◄───────┘
//! ```
//! Those for zones of primaries are left to [`To::Relay`], which forwards them as they came; their
//! records are judged by the primary.
//!
//! A message of a client that may change nothing in the zone costs a reply and no more. What the
//! records of all other messages ask for is judged where the zone is changed, against the version
//! that is changed.
//!
//! Deliberately absent: reading the records, prerequisites, the change itself.

use crate::answer::Answer;
use crate::ask::Ask;
use crate::deferral::{Deferral, To};
use crate::reason::Reason;
use crate::resumption::Resumption;
use crate::reuse::{NotReused, Reuse};
use crate::verdict::Verdict;
use crate::worker::Worker;
use crate::zones::{Source, ZoneEntry};
use zonda_wire::tsig::{KeyId, QuerySignature, SignatureCheck};
use zonda_wire::{Class, Ede, Opcode, Rcode, Type};

/// How many seconds the signature of an update may differ from the time of the server, if its
/// client does not allow less: for that long, a captured message has to be known again.
pub const UPDATE_FUDGE_SECS: u16 = 300;
/// The reply to an update depends on the client.
const REUSE: Reuse = Reuse::No(NotReused::Gate);

/// Answers an update, or defers it to what changes zones.
#[cold]
pub fn answer(ask: &Ask<'_>, answer: &mut Answer<'_>, worker: &mut Worker) -> Verdict {
    match ask.progress.resumption {
        Resumption::New => judge(ask, answer, worker),
        Resumption::Update(outcome) => {
            answer.set_text(&mut worker.body, outcome.text.as_bytes());
            if answer.text_bytes > 0 {
                answer.ede = outcome.reason.ede(outcome.rcode).or(Some(Ede::OTHER));
            }
            Verdict::Reply(outcome.rcode, outcome.reason, REUSE)
        }
        // The queue had no room, which is told as code that is busy.
        Resumption::Code(_) => Verdict::Reply(Rcode::SERVFAIL, Reason::UpdateBusy, REUSE),
        // Code that looks below itself would change a zone by that.
        Resumption::Below | Resumption::Upstream(_) => refuse(Rcode::REFUSED),
    }
}

/// Looks at the zone section of an update, and whether the client may change anything.
fn judge(ask: &Ask<'_>, answer: &mut Answer<'_>, worker: &mut Worker) -> Verdict {
    let (ztype, class) = (ask.query.qtype, ask.query.qclass);
    // rfc2136#3.1.1
    if ztype != Type::SOA || matches!(class, Class::ANY | Class::NONE | Class(0)) {
        return Verdict::Reply(Rcode::FORMERR, Reason::FormatError, REUSE);
    }
    let zone = ask.zone.filter(|zone| zone.apex.as_wire() == ask.name.as_wire());
    let zone = zone.filter(|_| class == Class::IN);
    let Some(zone) = zone.filter(|zone| is_authoritative(zone)) else {
        return Verdict::Reply(Rcode::NOTAUTH, Reason::NoZone, REUSE); // rfc2136#3.1.2
    };
    let key = ask.signature.and_then(QuerySignature::proven_key);
    if is_relayed(ask, key) {
        worker.deferral = Deferral::new(To::Relay, 0);
        return Verdict::Defer;
    }
    let grants = zone.access.as_ref().map_or(&[][..], |access| &access.updates);
    let client = ask.peer.address.ip();
    if !grants.iter().any(|grant| grant.is_for(client, key)) {
        if zone.access.as_ref().is_some_and(|access| access.has_primaries()) {
            let text = b"this server is a secondary of the zone: send the update to its primary";
            answer.set_text(&mut worker.body, text);
        }
        return refuse(Rcode::REFUSED);
    }
    if let Source::Unavailable(reason) = zone.source {
        return Verdict::Reply(Rcode::SERVFAIL, reason, REUSE);
    }
    worker.deferral = Deferral::new(To::Update, 0);
    Verdict::Defer
}

/// Defers an update by a key that is not known here, if it is for a zone of primaries and those of
/// its client are forwarded whatever key they have: the primary may know the key.
#[cold]
pub fn relay_unknown(ask: &Ask<'_>, worker: &mut Worker) -> Option<Verdict> {
    let check = ask.signature?.check;
    let is_update = ask.query.opcode() == Opcode::UPDATE;
    let is_sound = (ask.query.qtype, ask.query.qclass) == (Type::SOA, Class::IN);
    if !is_update || !is_sound || check != SignatureCheck::UnknownKey || !is_relayed(ask, None) {
        return None;
    }
    worker.deferral = Deferral::new(To::Relay, 0);
    Some(Verdict::Defer)
}

/// Whether updates of the client, whose signature by a key is sound if it has one, are forwarded to
/// the primaries of the zone that has the name of the query.
fn is_relayed(ask: &Ask<'_>, key: Option<KeyId>) -> bool {
    let zone = ask.snapshot.zones.with_apex(ask.name);
    let relay = zone.and_then(|zone| zone.access.as_ref()?.transfers.relay.as_ref());
    relay.is_some_and(|relay| relay.is_for(ask.peer.address.ip(), key))
}

/// Whether this server answers for a zone by itself.
fn is_authoritative(zone: &ZoneEntry) -> bool {
    !matches!(zone.source, Source::Forward(_) | Source::Excepted)
}

/// The reply to an update that the client may not send.
fn refuse(rcode: Rcode) -> Verdict {
    Verdict::Reply(rcode, Reason::UpdateRefused, REUSE)
}
