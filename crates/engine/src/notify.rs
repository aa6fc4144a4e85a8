//! NOTIFY: a primary says that a zone of this server's has changed (rfc1996).
//!
//! The reply is sent at once, and says nothing about what becomes of it. A zone stands in the
//! queue once, however many messages come for it, so that the queue is bounded by the number of
//! zones; where it is full nevertheless, the primary gets SERVFAIL and sends the message again.
//!
//! Deliberately absent: the serial that the message may have, which is a hint that anything could
//! have been written into, and what is done about a zone.

use crate::access::TransferRule;
use crate::answer::Answer;
use crate::ask::Ask;
use crate::reason::Reason;
use crate::reuse::NotReused;
use crate::verdict::{Flow, reply};
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Release};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use zonda_wire::query::flag;
use zonda_wire::tsig::SignatureCheck;
use zonda_wire::{Name, Rcode, Type};

/// The zones for which NOTIFY is taken, and where it goes.
pub struct NotifyTable {
    /// The zones, by their apexes in lower case and wire form.
    zones: HashMap<Box<[u8]>, Arc<NotifyZone>>,
    /// The queue of zones that have changed.
    queue: SyncSender<Notice>,
}

/// A zone for which NOTIFY is taken.
#[derive(Debug)]
pub struct NotifyZone {
    /// The apex of the zone, in lower case.
    apex: Name,
    /// The clients that may send NOTIFY: those for which any of these rules is.
    rules: Vec<TransferRule>,
    /// Whether the zone stands in the queue.
    is_queued: AtomicBool,
}

/// A zone that a primary says has changed.
#[derive(Debug)]
pub struct Notice {
    zone: Arc<NotifyZone>,
    /// The address of the primary.
    pub from: IpAddr,
}

impl Notice {
    /// Takes the zone out of the queue, so that it can stand there again; returns its apex.
    #[must_use]
    pub fn take(&self) -> &Name {
        self.zone.is_queued.store(false, Release);
        &self.zone.apex
    }
}

impl fmt::Debug for NotifyTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotifyTable").field("zones", &self.zones.len()).finish_non_exhaustive()
    }
}

/// A queue of zones that have changed, with this many places.
#[must_use]
pub fn queue(places: usize) -> (SyncSender<Notice>, Receiver<Notice>) {
    sync_channel(places)
}

impl NotifyTable {
    /// The table of zones, each with its apex in lower case and the clients that may send NOTIFY.
    #[must_use]
    pub fn new(
        zones: impl IntoIterator<Item = (Name, Vec<TransferRule>)>,
        queue: SyncSender<Notice>,
    ) -> Self {
        let zone = |(apex, rules): (Name, Vec<TransferRule>)| {
            let key = apex.as_wire().into();
            (key, Arc::new(NotifyZone { apex, rules, is_queued: AtomicBool::new(false) }))
        };
        Self { zones: zones.into_iter().map(zone).collect(), queue }
    }

    /// Queues a zone; whether there was room.
    fn queue(&self, zone: &Arc<NotifyZone>, from: IpAddr) -> bool {
        if zone.is_queued.swap(true, AcqRel) {
            return true;
        }
        let is_sent = self.queue.try_send(Notice { zone: Arc::clone(zone), from }).is_ok();
        if !is_sent {
            zone.is_queued.store(false, Release);
        }
        is_sent
    }
}

/// Answers a NOTIFY message.
#[cold]
pub fn answer(ask: &Ask<'_>, answer: &mut Answer<'_>) -> Flow {
    const GATE: NotReused = NotReused::Gate;
    let settings = &ask.snapshot.settings;
    let zone = settings
        .notify
        .as_ref()
        .and_then(|table| table.zones.get(ask.name.as_wire()).map(|zone| (table, zone)));
    let Some((table, zone)) = zone.filter(|_| ask.query.qtype == Type::SOA) else {
        let is_apex = ask.zone.is_some_and(|zone| zone.apex.as_wire() == ask.name.as_wire());
        return match is_apex {
            true => reply(Rcode::REFUSED, Reason::NotServed, GATE),
            false => reply(Rcode::NOTAUTH, Reason::NotServed, GATE), // rfc1996#3.10
        };
    };
    let signature = ask.signature.filter(|it| it.check == SignatureCheck::Sound);
    let key = signature.and_then(|signature| signature.key);
    let from = ask.peer.address.ip();
    if !zone.rules.iter().any(|rule| rule.is_for(from, key)) {
        return reply(Rcode::REFUSED, Reason::NotifyRefused, GATE);
    }
    if !table.queue(zone, from.to_canonical()) {
        return reply(Rcode::SERVFAIL, Reason::NotifyRefused, GATE);
    }
    answer.flags |= flag::AA;
    reply(Rcode::NOERROR, Reason::Notified, GATE)
}
