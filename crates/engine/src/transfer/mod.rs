//! Transfers of whole zones (rfc5936), and of what changed in them (rfc1995).
//!
//! ```text
//! query ─ gates ─► answer: zone, rights, place ─► Transfer ─► connection
//!                                                    └ next(): one message when the client has
//!                                                      taken the former ones
//! ```
//!
//! The rights come before the number of transfers that may run at once, so that clients without
//! rights cannot use that up. A client that asks for changes gets the SOA record if it is up to
//! date, the changes if the zone's history reaches back to its version, and else the whole zone
//! (rfc1995#4).

mod content;
mod error;
mod expansion;
mod history;
mod state;
mod stream;

pub use content::WholeZoneReason;
pub use error::TransferError;
pub use history::{HistoryLimits, VersionMark, VersionOrigin, ZoneHistory};
pub use state::{RefusedTransfer, RunningTransfer, TransferCounts, TransferRefusal};
pub use state::{TransferSettings, TransferState};
pub use stream::Transfer;

use crate::answer::Answer;
use crate::ask::Ask;
use crate::message::Transport;
use crate::reason::Reason;
use crate::resumption::Resumption;
use crate::reuse::{NotReused, Reuse};
use crate::verdict::Verdict;
use crate::worker::Worker;
use crate::zones::{Source, ZoneEntry};
use state::CountedClient;
use std::sync::Arc;
use zonda_wire::query::flag;
use zonda_wire::stream::ixfr_base;
use zonda_wire::tsig::{QuerySignature, StreamSigner};
use zonda_wire::{Class, Owner, Rcode, Section, Type};
use zonda_zone::{Zone, is_greater};

/// The reply to a question for a transfer depends on the client.
const REUSE: Reuse = Reuse::No(NotReused::Gate);

/// Answers a question for a transfer.
#[cold]
pub fn answer(ask: &Ask<'_>, answer: &mut Answer<'_>, worker: &mut Worker) -> Verdict {
    let refusal = Verdict::Reply(Rcode::REFUSED, Reason::TransferRefused, REUSE);
    let is_clients = matches!(ask.progress.resumption, Resumption::New);
    if !is_clients || worker.refuses_transfers || ask.progress.change().is_some() {
        return refusal; // code that looks below itself, or a rule, would see no zone
    }
    let Some(entry) = ask.zone.filter(|zone| zone.apex.as_wire() == ask.name.as_wire()) else {
        return Verdict::Reply(Rcode::NOTAUTH, Reason::NoZone, REUSE); // rfc5936#2.2.1
    };
    let state = &ask.snapshot.settings.transfers.state;
    let key = ask.signature.and_then(QuerySignature::proven_key);
    let list = entry.access.as_ref();
    if !list.is_some_and(|list| list.allows_transfer(ask.peer.address.ip(), key)) {
        state.note_refused();
        tell_refusal(ask, entry, TransferRefusal::NoRight);
        return refusal;
    }
    let zone = match data_of(entry) {
        Ok(zone) => zone,
        Err(reason @ (Reason::ZoneUnavailable | Reason::ZoneExpired)) => {
            return Verdict::Reply(Rcode::SERVFAIL, reason, REUSE);
        }
        Err(_) => return refusal,
    };
    let expands = list.is_some_and(|list| list.transfers.expands_aliases);
    let mut changes = None;
    if ask.query.qtype == Type::IXFR {
        let Some(serial) = ixfr_base(ask.query, answer.reply.buffer()) else {
            return Verdict::Reply(Rcode::FORMERR, Reason::FormatError, REUSE); // rfc1995#3
        };
        if !is_greater(zone.serial(), serial) || ask.peer.transport == Transport::Udp {
            return current(ask, answer, zone);
        }
        let history = match (&entry.history, expands) {
            (_, true) => Err(WholeZoneReason::AliasesExpanded),
            (None, false) => Err(WholeZoneReason::NoHistory),
            (Some(history), false) => Ok(Arc::clone(history)),
        };
        changes = Some((serial, history));
    } else if ask.peer.transport == Transport::Udp {
        answer.flags |= flag::TC; // rfc5936#4.2 has no transfers over UDP
        return Verdict::Reply(Rcode::NOERROR, Reason::TransferOverUdp, REUSE);
    }
    let settings = &ask.snapshot.settings;
    let bounds = (settings.transfers.at_once, settings.transfers.at_once_per_client);
    let client = CountedClient::new(key, ask.peer.address.ip());
    let slot = match state.begin(bounds, client) {
        Ok(slot) => slot,
        Err(refusal) => {
            tell_refusal(ask, entry, refusal);
            return Verdict::Reply(Rcode::SERVFAIL, Reason::TransferBusy, REUSE);
        }
    };
    let key = key.and_then(|id| settings.keys.get(id));
    let signer = key.zip(ask.signature).map(|(key, it)| StreamSigner::new(Arc::clone(key), it));
    let cluster = match &entry.source {
        Source::Cluster(names) => Some(Arc::clone(names)),
        _ => None,
    };
    let has_aliases = zone.has_aliases();
    let zone = (entry.apex.clone(), Arc::clone(zone));
    let (from, history) = changes.unzip();
    let mut transfer = Transfer::new(ask, answer.reply.buffer(), zone, (signer, from), slot);
    if let Some(history) = history {
        transfer = transfer.with_changes(history);
    }
    let transfer = transfer.with_cluster(cluster).with_expansion(expands && has_aliases);
    worker.transfer = Some(Box::new(transfer));
    Verdict::Transfer
}

/// Tells that a client does not get a transfer. Over UDP, where addresses can be forged, it is only
/// counted.
fn tell_refusal(ask: &Ask<'_>, entry: &ZoneEntry, refusal: TransferRefusal) {
    if ask.peer.transport == Transport::Udp {
        return;
    }
    let settings = &ask.snapshot.settings;
    let key = ask.signature.and_then(QuerySignature::proven_key);
    (settings.transfers.note_refusal)(&RefusedTransfer {
        apex: &entry.apex,
        peer: ask.peer.address,
        key: key.and_then(|id| settings.keys.get(id)).map(|key| key.name()),
        qtype: ask.query.qtype,
        refusal,
    });
}

/// The data of a zone that can be transferred; of a cluster, those of its apex, with the serial.
fn data_of(entry: &ZoneEntry) -> Result<&Arc<Zone>, Reason> {
    match &entry.source {
        Source::Data(zone) => Ok(zone),
        Source::Local(local) => Ok(&local.zone),
        // A secondary would deny names that are not known yet.
        Source::Cluster(names) if names.is_stale => Err(Reason::ZoneUnavailable),
        Source::Cluster(names) => Ok(&names.data),
        Source::Unavailable(reason) => Err(*reason),
        Source::Forward(_) | Source::Excepted => Err(Reason::TransferRefused),
    }
}

/// The reply to a client that has the version in force, or asks over UDP: its SOA record alone
/// (rfc1995#2, #4).
fn current(ask: &Ask<'_>, answer: &mut Answer<'_>, zone: &Zone) -> Verdict {
    let (soa, _) = zone.soa();
    answer.flags |= flag::AA;
    let owner = Owner::Name(ask.name.as_wire());
    let fixed = (Type::SOA, Class::IN, soa.ttl);
    if answer.reply.record(Section::Answer, owner, fixed, soa.first()).is_err() {
        answer.flags |= flag::TC;
    }
    Verdict::Reply(Rcode::NOERROR, Reason::Answered, REUSE)
}
