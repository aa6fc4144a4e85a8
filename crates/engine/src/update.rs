//! Dynamic updates (rfc2136): which clients may change a zone, and what they are told.
//!
//! ```text
//! message ─ gates ─► answer: zone, class, any right ─► To::Update ─► what changes zones
//!                                                                        │
//! reply ◄─ answer: response code, reason, text ◄── UpdateOutcome ◄───────┘
//! ```
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
use zonda_wire::tsig::SignatureCheck;
use zonda_wire::{Class, Ede, Rcode, Type};

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
    let signature = ask.signature.filter(|it| it.check == SignatureCheck::Sound);
    let key = signature.and_then(|signature| signature.key);
    let grants = zone.access.as_ref().map_or(&[][..], |access| &access.updates);
    let client = ask.peer.address.ip();
    if !grants.iter().any(|grant| grant.is_for(client, key)) {
        let notify = ask.snapshot.settings.notify.as_ref();
        if notify.is_some_and(|table| table.zone(ask.name.as_wire()).is_some()) {
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

/// Whether this server answers for a zone by itself.
fn is_authoritative(zone: &ZoneEntry) -> bool {
    !matches!(zone.source, Source::Forward(_) | Source::Excepted)
}

/// The reply to an update that the client may not send.
fn refuse(rcode: Rcode) -> Verdict {
    Verdict::Reply(rcode, Reason::UpdateRefused, REUSE)
}
