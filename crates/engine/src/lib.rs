//! From the bytes of a query to the bytes of its reply.
//!
//! ```text
//! Message ─► Query::parse ─► plan: access ► cookie ► … ► zone ► rate ─► epilogue ─► the same buffer
//! ```
//!
//! An [`Engine`] belongs to one thread. It never blocks, reads no clock, allocates nothing once it
//! exists and takes no lock: what workers share is a [`Snapshot`] that is swapped whole, and the
//! table of the rate stage, which is made of atomics.
//!
//! Deliberately absent: sockets, files, and the way snapshots come to be.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod access;
mod context;
pub mod counters;
mod epilogue;
mod message;
mod plan;
mod reason;
mod snapshot;
pub mod stage;
pub mod zones;

pub use message::{Batch, Message, Now, Peer, Transport};
pub use reason::Reason;
pub use snapshot::{Settings, Snapshot};

use arc_swap::{ArcSwap, Guard};
use context::{Context, Verdict, Worker};
use counters::Counters;
use message::Single;
use std::sync::Arc;
use zonda_wire::query::UDP_BYTES_MIN;
use zonda_wire::{Fault, Opcode, Places, Query, Rcode, Reply, Type};
use zonda_zone::LookupName;
use zones::{Source, ZoneMatch};

/// Messages that are looked up together. More would leave the first-level cache, fewer would wait
/// for memory one after the other.
const STRIDE: usize = 16;

/// Answers queries. One per thread.
pub struct Engine {
    snapshot: Arc<ArcSwap<Snapshot>>,
    counters: Arc<Counters>,
    worker: Worker,
    places: Places,
    prepared: Box<[Prepared; STRIDE]>,
    /// Told of every query, if somebody listens.
    observer: Option<Box<dyn Observer>>,
}

/// Is told of every message and what became of it: the query log.
///
/// Called on the answer path: must neither block nor take long.
pub trait Observer: Send {
    /// A message was answered or dropped.
    fn observe(&mut self, event: &Event<'_>);
}

/// What an [`Observer`] is told.
pub struct Event<'e> {
    /// The time.
    pub now: Now,
    /// Who asked.
    pub peer: &'e Peer,
    /// The query, as far as it could be read.
    pub query: &'e Query,
    /// The name asked for in lower case, wire form.
    pub name: &'e [u8],
    /// The response code; `None` for silence.
    pub rcode: Option<Rcode>,
    /// What became of it.
    pub reason: Reason,
    /// Octets of the reply.
    pub reply_bytes: usize,
}

/// A message between being read and being answered.
struct Prepared {
    query: Result<Query, (Query, Fault)>,
    name: LookupName,
    zone: Option<ZoneMatch>,
    /// Where the name's node probably lies.
    place: Option<u32>,
    /// What was read there, only so that it is read.
    touched: u8,
}

impl Default for Prepared {
    fn default() -> Self {
        let query = Query::parse(&[]);
        Self { query, name: LookupName::default(), zone: None, place: None, touched: 0 }
    }
}

impl Prepared {
    /// Reads a message and hashes its name.
    #[inline]
    fn read(&mut self, message: &[u8], snapshot: &Snapshot) {
        self.query = Query::parse(message);
        self.zone = None;
        self.place = None;
        let (Ok(query) | Err((query, _))) = &self.query;
        let has_question = query.question_end() > zonda_wire::query::HEADER_BYTES;
        let name_end = usize::from(query.name_end);
        let wire =
            if has_question { &message[zonda_wire::query::HEADER_BYTES..name_end] } else { &[0] };
        self.name.set(wire, snapshot.zones.seed());
        if self.query.is_ok() && has_question {
            let is_ds = self.query.as_ref().is_ok_and(|query| query.qtype == Type::DS);
            self.find_zone(snapshot, is_ds);
        }
    }

    /// Finds the zone that holds the name, and brings the slot of its node into the cache. DS
    /// records lie above the cut (rfc4035#3.1.4.1).
    #[inline]
    fn find_zone(&mut self, snapshot: &Snapshot, is_ds: bool) {
        let labels = self.name.label_count();
        let mut found = snapshot.zones.find(&self.name, labels);
        if is_ds && labels > 0 && found.is_some_and(|zone| usize::from(zone.labels) == labels) {
            found = snapshot.zones.find(&self.name, labels - 1).or(found);
        }
        self.zone = found;
        if let Some(zone) = found
            && let Source::Data(data) = &snapshot.zones.get(zone.index).source
        {
            self.place = data.probable_place(&self.name);
        }
    }

    /// Brings the name's node into the cache.
    #[inline]
    fn touch(&mut self, snapshot: &Snapshot) {
        if let (Some(zone), Some(place)) = (self.zone, self.place)
            && let Source::Data(data) = &snapshot.zones.get(zone.index).source
        {
            self.touched = data.touch(place);
        }
    }
}

impl Engine {
    /// An engine that answers from whatever `snapshot` holds and counts in `counters`, which no
    /// other engine may share.
    #[must_use]
    pub fn new(snapshot: Arc<ArcSwap<Snapshot>>, counters: Arc<Counters>) -> Self {
        Self {
            snapshot,
            counters,
            worker: Worker::default(),
            places: Places::default(),
            prepared: Box::new(std::array::from_fn(|_| Prepared::default())),
            observer: None,
        }
    }

    /// Tells `observer` of every query from now on.
    pub fn set_observer(&mut self, observer: Option<Box<dyn Observer>>) {
        self.observer = observer;
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Answers every message of a batch, all from the same snapshot.
    pub fn answer_batch<B: Batch>(&mut self, now: Now, batch: &mut B) {
        let snapshot: Guard<Arc<Snapshot>> = self.snapshot.load();
        let mut first = 0;
        while first < batch.len() {
            let count = (batch.len() - first).min(STRIDE);
            // Three passes, so that the memory of all messages is fetched at the same time.
            for (index, prepared) in self.prepared[..count].iter_mut().enumerate() {
                let message = batch.get(first + index);
                prepared.read(&message.buffer[..*message.len], &snapshot);
            }
            for prepared in &mut self.prepared[..count] {
                prepared.touch(&snapshot);
            }
            for index in 0..count {
                let message = batch.get(first + index);
                let query_len = *message.len;
                self.counters.query_bytes.add(query_len as u64);
                *message.len = self.finish(now, &snapshot, index, message.peer, message.buffer);
                self.counters.reply_bytes.add(*message.len as u64);
            }
            first += count;
        }
    }

    /// Answers one message of `len` octets in `buffer`; returns the length of the reply that now
    /// is there, 0 for silence.
    pub fn answer(&mut self, now: Now, peer: &Peer, buffer: &mut [u8], len: usize) -> usize {
        let mut single = Single { peer, buffer, len };
        self.answer_batch(now, &mut single);
        single.len
    }

    /// Answers the prepared message `index`, which lies in `buffer`.
    #[inline]
    fn finish(
        &mut self,
        now: Now,
        snapshot: &Snapshot,
        index: usize,
        peer: Peer,
        buffer: &mut [u8],
    ) -> usize {
        let prepared = &self.prepared[index];
        let (Ok(query) | Err((query, _))) = &prepared.query;
        let reserved = epilogue::reserved_bytes(query, &snapshot.settings, peer.transport);
        let limit = reply_bytes_max(query, &snapshot.settings, peer.transport);
        self.worker.proven = [u32::MAX; 8];
        let reply = Reply::new(buffer, query, limit.saturating_sub(reserved), &mut self.places);
        let mut cx = Context {
            now,
            peer: &peer,
            query,
            name: &prepared.name,
            zone: prepared.zone,
            snapshot,
            reply,
            flags: 0,
            cookie: None,
            address_proven: peer.transport == Transport::Tcp,
            worker: &mut self.worker,
        };
        let verdict = match prepared.query {
            Ok(_) => plan::run(&mut cx),
            Err((_, fault)) => refuse_faulty(query, fault),
        };
        let (len, rcode, reason) = match verdict {
            Verdict::Drop(reason) => (0, None, reason),
            Verdict::Reply(rcode, reason) => {
                cx.reply.set_limit(limit);
                let room = limit.saturating_sub(cx.reply.len());
                epilogue::write_opt(&mut cx, rcode, reason, room);
                let flags = cx.flags;
                (cx.reply.finish(query, flags, rcode), Some((rcode, flags)), reason)
            }
        };
        let counters = &*self.counters;
        counters.reasons[reason as usize].add(1);
        if let Some((rcode, flags)) = rcode {
            counters.reply(peer.transport, query.qtype, rcode);
            if flags & zonda_wire::query::flag::TC != 0 {
                counters.truncated.add(1);
            }
        }
        if let Some(zone) = prepared.zone {
            let number = snapshot.zones.get(zone.index).number;
            if let Some(counter) = counters.zone(number) {
                counter.add(1);
            }
        }
        if let Some(observer) = &mut self.observer {
            let rcode = rcode.map(|(rcode, _)| rcode);
            let name = prepared.name.as_wire();
            observer.observe(&Event {
                now,
                peer: &peer,
                query,
                name,
                rcode,
                reason,
                reply_bytes: len,
            });
        }
        len
    }
}

/// The verdict on a message that is no well-formed query (rfc8906#3).
fn refuse_faulty(query: &Query, fault: Fault) -> Verdict {
    match fault {
        Fault::NotAQuery => Verdict::Drop(Reason::NotAQuery),
        _ if query.opcode() != Opcode::QUERY => match query.opcode() {
            Opcode::NOTIFY | Opcode::UPDATE => Verdict::Reply(Rcode::FORMERR, Reason::FormatError),
            _ => Verdict::Reply(Rcode::NOTIMP, Reason::NotImplemented),
        },
        Fault::NoQuestion(rcode) => Verdict::Reply(rcode, Reason::FormatError),
        Fault::Malformed => Verdict::Reply(Rcode::FORMERR, Reason::FormatError),
    }
}

/// The largest reply that may be sent (rfc6891#6.2.3 to #6.2.5).
#[inline]
fn reply_bytes_max(query: &Query, settings: &Settings, transport: Transport) -> usize {
    match (transport, query.edns) {
        (Transport::Tcp, _) => usize::from(u16::MAX),
        (Transport::Udp, None) => usize::from(UDP_BYTES_MIN),
        (Transport::Udp, Some(edns)) => {
            usize::from(edns.udp_bytes.min(settings.udp_bytes_max).max(UDP_BYTES_MIN))
        }
    }
}
