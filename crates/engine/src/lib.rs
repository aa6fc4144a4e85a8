//! From the bytes of a query to the bytes of its reply.
//!
//! ```text
//! Message ─► Query ─► plan: access ► cookie ► … ► zone ► rate ─► epilogue ─► the same buffer
//! ```
//!
//! An [`Engine`] belongs to one thread. It never blocks, reads no clock, allocates nothing once it
//! exists and takes no lock: what workers share is a [`Snapshot`] that is swapped whole, and the
//! table of the rate stage, which is made of atomics.
//!
//! Deliberately absent: sockets, files, and the way snapshots come to be.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod access;
pub mod code;
mod context;
pub mod counters;
mod deferral;
mod epilogue;
pub mod gate;

mod hot;
mod message;
mod plan;
mod reason;
mod resumption;
mod snapshot;
mod source;
pub mod zones;

pub use deferral::{Deferral, GOES_ON, LEADS_OUT, Outcome, QueueId, To, UpstreamAnswer};
pub use epilogue::TEXT_BYTES_MAX;
pub use message::{Batch, Message, Now, Peer, Single, Transport};
pub use reason::Reason;
pub use resumption::{DeferredQuery, HandlerOutcome, Resumption};
pub use snapshot::{Settings, Snapshot};
pub use source::data::alias_of;

use access::Access;
use arc_swap::{ArcSwap, Guard};
use code::{History, Tags, Watch};
use context::{Context, Verdict, Worker};
use counters::{Counters, OPCODES};
use hot::{Answer, Hit, HotAnswers, Key, Meta, Rotation};
use std::sync::Arc;
use std::time::Duration;
use zonda_wire::query::{HEADER_BYTES, UDP_BYTES_MIN, flag};
use zonda_wire::{Class, Fault, Opcode, Places, Query, Rcode, Reply};
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
    hot: HotAnswers,
    /// Messages that are looked up together: as many as there ever were, with room for [`STRIDE`].
    prepared: Vec<Prepared>,
    /// Told of every query.
    observers: Vec<Box<dyn Observer>>,
}

/// Is told of every message and what became of it: the query log.
///
/// Called on the answer path: must neither block nor take long.
pub trait Observer: Send {
    /// A message was answered or dropped.
    fn observe(&mut self, event: &Event<'_>);
}

impl<F: FnMut(&Event<'_>) + Send> Observer for F {
    fn observe(&mut self, event: &Event<'_>) {
        self(event);
    }
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
    /// How long it has waited for others; no clock is read for what is answered at once.
    pub waited: Duration,
    /// What the user's code has noted about it.
    pub tags: &'e Tags,
}

/// A message between being read and being answered.
struct Prepared {
    query: Query,
    fault: Option<Fault>,
    name: LookupName,
    /// The key of its answer among those given before.
    key: Option<Key>,
    hit: Option<Hit>,
    zone: Option<ZoneMatch>,
    /// Where the name's node probably lies.
    place: Option<u32>,
    /// What was read there, only so that it is read.
    touched: u64,
}

impl Default for Prepared {
    fn default() -> Self {
        let query = Query::default();
        Self {
            query,
            fault: None,
            name: LookupName::default(),
            key: None,
            hit: None,
            zone: None,
            place: None,
            touched: 0,
        }
    }
}

impl Prepared {
    /// Reads the message of `len` octets and hashes its name.
    #[inline]
    fn read(&mut self, buffer: &[u8], len: usize, snapshot: &Snapshot, hot: &HotAnswers) {
        self.fault = self.query.read(&buffer[..len]).err();
        (self.key, self.hit, self.zone, self.place) = (None, None, None, None);
        let seed = snapshot.zones.seed();
        match usize::from(self.query.name_end) {
            HEADER_BYTES => self.name.set(&[0], seed),
            end => self.name.set_from(&buffer[HEADER_BYTES..], end - HEADER_BYTES, seed),
        }
        if self.fault.is_some() {
            return;
        }
        if self.query.qclass == Class::IN {
            let key = Key::new(&self.query, &self.name);
            self.key = Some(key);
            self.hit = hot.find(key, &self.name, snapshot.generation);
        }
        match self.hit {
            Some(hit) => self.zone = Some(hit.zone),
            None => self.zone = snapshot.zones.find_answering(&self.name, self.query.qtype),
        }
    }

    /// Brings the slot of the name's node, or of its kept answer, into the processor's cache.
    #[inline]
    fn touch_slot(&mut self, snapshot: &Snapshot) {
        let Some(zone) = self.zone.filter(|_| self.hit.is_none()) else { return };
        match &snapshot.zones.get(zone.index).source {
            Source::Data(data) => self.place = data.probable_place(&self.name),
            Source::Forward(forward) => {
                let key = forward.cache_key(&self.query, &self.name);
                self.touched = forward.cache.touch(&key);
            }
            Source::Local(_) | Source::Excepted | Source::Unavailable => {}
        }
    }

    /// Brings the name's node, or its kept answer, into the processor's cache.
    #[inline]
    fn touch_node(&mut self, snapshot: &Snapshot) {
        let Some(zone) = self.zone.filter(|_| self.hit.is_none()) else { return };
        match (&snapshot.zones.get(zone.index).source, self.place) {
            (Source::Data(data), Some(place)) => self.touched = data.touch(place).into(),
            (Source::Forward(forward), _) => {
                let key = forward.cache_key(&self.query, &self.name);
                self.touched = forward.cache.touch_entry(&key);
            }
            _ => {}
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
            hot: HotAnswers::default(),
            prepared: Vec::with_capacity(STRIDE),
            observers: Vec::new(),
        }
    }

    /// Tells `observer` of every query from now on.
    pub fn add_observer(&mut self, observer: Box<dyn Observer>) {
        self.observers.push(observer);
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Answers every message of a batch, all from the same snapshot.
    pub fn answer_batch<B: Batch>(&mut self, now: Now, batch: &mut B) {
        let snapshot: Guard<Arc<Snapshot>> = self.snapshot.load();
        let (mut first, mut query_bytes, mut reply_bytes) = (0, 0, 0);
        while first < batch.len() {
            let count = (batch.len() - first).min(STRIDE);
            self.make_room(count);
            // Passes so short that a processor runs several messages' at once, and waits for their
            // memory together.
            for (index, prepared) in self.prepared[..count].iter_mut().enumerate() {
                let message = batch.get(first + index);
                prepared.read(message.buffer, *message.len, &snapshot, &self.hot);
            }
            for prepared in &mut self.prepared[..count] {
                prepared.touch_slot(&snapshot);
            }
            for prepared in &mut self.prepared[..count] {
                prepared.touch_node(&snapshot);
            }
            for index in 0..count {
                let Message { peer, buffer, len } = batch.get(first + index);
                query_bytes += *len;
                let outcome = self.finish(now, &snapshot, index, peer, buffer, Progress::NEW);
                *len = outcome.reply_bytes();
                reply_bytes += *len;
                if let Outcome::Deferred(deferral) = outcome {
                    batch.defer(first + index, deferral);
                }
            }
            first += count;
        }
        self.counters.query_bytes.add(query_bytes as u64);
        self.counters.reply_bytes.add(reply_bytes as u64);
    }

    /// Makes room for `count` messages that are looked up together, at most [`STRIDE`].
    #[inline]
    fn make_room(&mut self, count: usize) {
        if self.prepared.len() < count {
            self.prepared.resize_with(count, Prepared::default); // within the capacity
        }
    }

    /// Answers one message of `len` octets in `buffer`, where the reply then lies.
    pub fn answer(&mut self, now: Now, peer: &Peer, buffer: &mut [u8], len: usize) -> Outcome {
        Single::answer(peer, buffer, len, |batch| self.answer_batch(now, batch))
    }

    /// Answers a query that was deferred. One that code has passed on may be deferred once more.
    pub fn resume(
        &mut self,
        now: Now,
        query: DeferredQuery<'_>,
        resumption: Resumption<'_>,
    ) -> Outcome {
        let DeferredQuery { peer, history, buffer, len } = query;
        let snapshot = self.snapshot.load();
        self.make_room(1);
        self.prepared[0].read(buffer, len, &snapshot, &self.hot);
        self.recall_tags(history, resumption);
        let progress = Progress { resumption, history: Some(history) };
        let outcome = self.finish(now, &snapshot, 0, *peer, buffer, progress);
        if progress.is_counted() {
            self.counters.reply_bytes.add(outcome.reply_bytes() as u64);
        }
        outcome
    }

    /// Answers a query of `len` octets in `buffer` as if code elsewhere had passed it on: what code
    /// sees that asks what would become of a query it has to answer. It is neither counted nor told
    /// to observers; the client's own query is.
    pub fn answer_below(
        &mut self,
        now: Now,
        peer: &Peer,
        buffer: &mut [u8],
        len: usize,
    ) -> Outcome {
        let (received_nanos, asked_by_code) = (now.monotonic_nanos, true);
        let history = &History { received_nanos, asked_by_code, ..History::default() };
        self.resume(now, DeferredQuery { peer, history, buffer, len }, Resumption::Below)
    }

    /// Brings back what code has noted about a query before it was deferred, and what code elsewhere
    /// has noted since.
    fn recall_tags(&mut self, history: &History, resumption: Resumption<'_>) {
        let tags = &mut self.worker.draft.tags;
        tags.clone_from(&history.tags);
        if let Resumption::Code(HandlerOutcome::Reply(filled)) = resumption {
            tags.extend(&filled.tags);
        }
    }

    /// Which of the user's code it calls at the moment.
    #[must_use]
    pub fn watch(&self) -> &Arc<Watch> {
        &self.worker.watch
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
        progress: Progress<'_>,
    ) -> Outcome {
        let prepared = &self.prepared[index];
        let query = &prepared.query;
        let reserved = epilogue::reserved_bytes(query, &snapshot.settings, peer.transport);
        let limit = reply_bytes_max(query, &snapshot.settings, peer.transport);
        let reply = Reply::new(buffer, query, limit.saturating_sub(reserved), &mut self.places);
        let received_nanos = progress.history.map_or(now.monotonic_nanos, |it| it.received_nanos);
        let mut cx = Context {
            now,
            received_nanos,
            peer: &peer,
            query,
            name: &prepared.name,
            zone: prepared.zone,
            answering_label: 0,
            snapshot,
            reply,
            flags: 0,
            cookie: None,
            address_proven: peer.transport == Transport::Tcp,
            worker: &mut self.worker,
            hot: &mut self.hot,
            hit: prepared.hit,
            keep: false,
            rotation: Rotation::default(),
            resumption: progress.resumption,
            history: progress.history,
            ede: None,
            text_bytes: 0,
        };
        let verdict = match prepared.fault {
            None => plan::run(&mut cx),
            Some(fault) => plan::refuse(&mut cx, fault),
        };
        let (sent, reason) = match verdict {
            Verdict::Defer => return Outcome::Deferred(deferral(&mut cx)),
            Verdict::Drop(reason) => (None, reason),
            Verdict::Reply(rcode, reason) => {
                if let (true, Some(key)) = (cx.keep, prepared.key) {
                    offer(&mut cx, key, rcode, reason);
                }
                cx.reply.set_limit(limit);
                let room = limit.saturating_sub(cx.reply.len());
                epilogue::write(&mut cx, rcode, reason, room);
                let flags = cx.flags | recursion_available(snapshot, &cx);
                let is_forwarded_nodata = is_forwarded_nodata(&cx, rcode, reason);
                let bytes = cx.reply.finish(query, flags, rcode);
                (Some(Sent { bytes, rcode, flags, is_forwarded_nodata }), reason)
            }
        };
        if progress.is_counted() {
            count(&self.counters, snapshot, prepared, &peer, sent, reason);
            if !self.observers.is_empty() {
                let waited = now.monotonic_nanos.saturating_sub(received_nanos);
                let event = Event {
                    now,
                    peer: &peer,
                    query,
                    name: prepared.name.as_wire(),
                    rcode: sent.map(|sent| sent.rcode),
                    reason,
                    reply_bytes: sent.map_or(0, |sent| sent.bytes),
                    waited: Duration::from_nanos(waited),
                    tags: &self.worker.draft.tags,
                };
                self.observers.iter_mut().for_each(|observer| observer.observe(&event));
            }
        }
        self.worker.draft.tags.clear();
        sent.map_or(Outcome::Silence, |sent| Outcome::Reply(sent.bytes))
    }
}

/// How far a query has come.
#[derive(Clone, Copy)]
struct Progress<'a> {
    /// What it was deferred for before.
    resumption: Resumption<'a>,
    /// The facts from before it was deferred; none if it is new.
    history: Option<&'a History>,
}

impl Progress<'_> {
    /// That of a query which has just been received.
    const NEW: Self = Self { resumption: Resumption::New, history: None };

    /// Whether it is a client's query, and not one that code asks to see what becomes of it.
    #[inline]
    fn is_counted(&self) -> bool {
        self.history.is_none_or(|history| !history.asked_by_code)
    }
}

/// A reply as it leaves.
#[derive(Clone, Copy)]
struct Sent {
    bytes: usize,
    rcode: Rcode,
    flags: u16,
    /// See [`is_forwarded_nodata`].
    is_forwarded_nodata: bool,
}

/// Whether it says that others have the name, but nothing of the type.
#[inline]
fn is_forwarded_nodata(cx: &Context<'_>, rcode: Rcode, reason: Reason) -> bool {
    matches!(reason, Reason::Cached | Reason::Forwarded | Reason::Stale)
        && rcode == Rcode::NOERROR
        && cx.reply.counts()[0] == 0
        && cx.flags & flag::TC == 0 // or there is too much
}

/// RA, if this client may have any name looked up, whoever answered for the one of this query
/// (rfc1035#4.1.1).
#[inline]
fn recursion_available(snapshot: &Snapshot, cx: &Context<'_>) -> u16 {
    let Some(zone) = snapshot.zones.recursion().filter(|_| cx.flags & flag::RA == 0) else {
        return 0;
    };
    let list = zone.access.as_ref();
    let is_for = list.is_none_or(|list| list.check(cx.peer.address.ip()) == Access::Allow);
    if is_for { flag::RA } else { 0 }
}

/// What a deferred query waits for, and what is to be told again when it is answered.
#[cold]
fn deferral(cx: &mut Context<'_>) -> Deferral {
    let tags = std::mem::take(&mut cx.worker.draft.tags);
    let asked_by_code = cx.history.is_some_and(|history| history.asked_by_code);
    let code = match cx.worker.deferral.to {
        To::Code(elsewhere) => Some(elsewhere),
        To::Forward(_) => None,
    };
    let (received_nanos, then) = (cx.received_nanos, cx.worker.deferral.history.then);
    let history = History { received_nanos, tags, code, then, asked_by_code };
    Deferral { history, ..cx.worker.deferral.clone() }
}

/// Offers the answer that a context holds to be kept.
fn offer(cx: &mut Context<'_>, key: Key, rcode: Rcode, reason: Reason) {
    let Some(zone) = cx.zone else { return };
    let meta = Meta {
        generation: cx.snapshot.generation,
        zone,
        answering_label: cx.answering_label,
        counts: cx.reply.counts(),
        flags: cx.flags,
        rcode,
        reason,
        rotation: cx.rotation,
    };
    cx.hot.offer(key, Answer { name: cx.name, body: cx.reply.body(), meta });
}

/// Counts what became of a message.
#[inline]
fn count(
    counters: &Counters,
    snapshot: &Snapshot,
    prepared: &Prepared,
    peer: &Peer,
    sent: Option<Sent>,
    reason: Reason,
) {
    counters.reasons[reason as usize].add(1);
    if peer.address.is_ipv6() || prepared.query.opcode() != Opcode::QUERY {
        count_other(counters, peer, prepared.query.opcode(), reason);
    }
    if let Some(sent) = sent {
        counters.reply(peer.transport, prepared.query.qtype, sent.rcode);
        if sent.flags & flag::TC != 0 {
            counters.truncated.add(1);
        }
        if sent.is_forwarded_nodata {
            counters.forwarded_nodata.add(1);
        }
    }
    if let Some(zone) = prepared.zone
        && let Some(counter) = counters.zone(snapshot.zones.get(zone.index).number)
    {
        counter.add(1);
    }
}

/// Counts what is not a query over IPv4.
#[inline(never)] // it would only make the path of those longer
fn count_other(counters: &Counters, peer: &Peer, opcode: Opcode, reason: Reason) {
    if matches!(reason, Reason::NotAQuery | Reason::AccessDropped) {
        return;
    }
    if peer.address.is_ipv6() {
        counters.from_v6.add(1);
    }
    if opcode != Opcode::QUERY {
        counters.opcodes[usize::from(opcode.0) % OPCODES].add(1);
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
