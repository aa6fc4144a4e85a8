//! The update processor, which reads and answers messages that change zones for the publisher.

use super::queue::{Batch, UpdateCounters, UpdateQueue};
use super::recent::{MessageId, RecentUpdates};
use super::relay::{RelayPool, RelayRefusal, RelayedUpdate};
use super::request::{UpdateChange, UpdateRequest, UpdateResult, ZoneUpdates};
use crate::edit::EditError;
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use zonda_deferral::faults::survives;
use zonda_deferral::{Clock, Deferred, Replies, Responder};
use zonda_engine::grant::UpdateSender;
use zonda_engine::{Now, Reason, Snapshot, UpdateOutcome};
use zonda_wire::query::HEADER_BYTES;
use zonda_wire::{Name, Rcode, UpdateMessage, UpdateReadError};
use zonda_zone::LookupName;

/// Reads and answers the messages that the publisher carries out.
pub trait Updates: Send {
    /// Takes the messages that wait, and reads them; none if none waits.
    fn begin(&mut self) -> Option<UpdateBatch>;

    /// Answers messages with what became of those that were carried out: one result for each
    /// request of each zone.
    fn finish(&mut self, updates: UpdateBatch, results: &[Vec<UpdateResult>]);

    /// Answers messages that wait SERVFAIL, as the publisher takes none any more.
    fn abandon(&mut self);
}

/// The update processor, which the publisher and the thread that forwards messages share.
pub type SharedUpdates = Arc<Mutex<dyn Updates>>;

/// The update processor, from which messages are taken until this is dropped: those that wait then
/// are answered SERVFAIL.
pub struct OpenUpdates(pub SharedUpdates);

impl Drop for OpenUpdates {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).abandon();
    }
}

/// Reads messages that change zones, and answers them.
pub struct UpdateProcessor<R> {
    /// The queue of messages.
    pub queue: Arc<UpdateQueue>,
    /// The snapshot, which has the names of keys.
    pub snapshot: Arc<ArcSwap<Snapshot>>,
    /// Tells the time.
    pub clock: Clock,
    /// Writes the replies.
    pub replies: Replies<R>,
    /// The messages of the last minutes.
    pub recent: RecentUpdates,
}

impl<R: Responder> UpdateProcessor<R> {
    /// A processor whose replies a responder writes, and the queue of its messages.
    pub fn new(
        snapshot: &Arc<ArcSwap<Snapshot>>,
        clock: Clock,
        responder: R,
    ) -> (Arc<Mutex<Self>>, Arc<UpdateQueue>) {
        let queue = Arc::<UpdateQueue>::default();
        let processor = Self {
            queue: Arc::clone(&queue),
            snapshot: Arc::clone(snapshot),
            clock,
            replies: Replies::new(responder),
            recent: RecentUpdates::default(),
        };
        (Arc::new(Mutex::new(processor)), queue)
    }
}

/// Messages that were read, and are not answered yet.
pub struct UpdateBatch {
    /// The messages to be carried out, by zone.
    pub zones: Vec<ZoneUpdates>,
    /// The messages, in the order in which they came.
    batch: Batch,
    /// What is to become of each of them.
    steps: Vec<(Step, Facts)>,
}

/// A message on its way.
enum Step {
    /// The message waits for the publisher: the place of its zone, and its place among those.
    Sent(usize, usize),
    /// The message was sent before, at this place of the same batch.
    SameAs(usize),
    /// The message was answered before, within the last seconds.
    Repeated(UpdateResult),
    /// The message is not carried out.
    Done(UpdateResult),
}

/// The facts about a message that its line in the log tells.
struct Facts {
    zone: Name,
    key: String,
    prerequisites: usize,
    updates: usize,
}

impl<R: Responder> Updates for UpdateProcessor<R> {
    fn begin(&mut self) -> Option<UpdateBatch> {
        let batch = self.queue.take()?;
        self.queue.counters.batches.fetch_add(1, Relaxed);
        let (mut zones, mut steps) = (Vec::<ZoneUpdates>::new(), Vec::<(Step, Facts)>::new());
        let (mut places, now) = (HashMap::<MessageId, usize>::new(), self.clock.now());
        for (place, message) in batch.messages.iter().enumerate() {
            let mut step = (Step::Done(failed()), Facts::none());
            // A panic costs the message at hand alone.
            let _ = survives(|| {
                let id = self.recent.id_of(message);
                let first = id.map_or(place, |id| *places.entry(id).or_insert(place));
                step = match (first, self.recent.find(message, now)) {
                    (first, _) if first < place => (Step::SameAs(first), Facts::none()),
                    (_, Some(outcome)) => {
                        let result = UpdateResult { outcome, change: None };
                        (Step::Repeated(result), Facts::none())
                    }
                    (_, None) => self.prepare(message, &mut zones),
                };
            });
            steps.push(step);
        }
        Some(UpdateBatch { zones, batch, steps })
    }

    fn finish(&mut self, updates: UpdateBatch, results: &[Vec<UpdateResult>]) {
        let UpdateBatch { mut batch, steps, .. } = updates;
        let now = self.clock.now();
        let mut known = Vec::<UpdateResult>::new();
        for (step, facts) in steps {
            let Some(message) = batch.messages.pop_front() else { break }; // a step for each
            let is_new = matches!(step, Step::Sent(..) | Step::Done(_));
            let result = match step {
                Step::Sent(zone, place) => {
                    let result = results.get(zone).and_then(|results| results.get(place));
                    result.cloned().unwrap_or_else(failed)
                }
                Step::SameAs(first) => known.get(first).cloned().unwrap_or_else(failed),
                Step::Repeated(result) | Step::Done(result) => result,
            };
            let counters = &self.queue.counters;
            if is_new {
                count(counters, &result);
                // A program's subscriber of the log may panic: the reply tells what was done.
                let _ = survives(|| {
                    self.recent.note(&message, &result.outcome, now);
                    log(&message, &facts, &result, now);
                });
            } else {
                counters.repeated.fetch_add(1, Relaxed);
            }
            self.replies.answer_update(message, &result.outcome, now);
            known.push(result);
        }
        self.replies.send();
    }

    fn abandon(&mut self) {
        self.queue.abandon();
    }
}

impl<R: Responder> UpdateProcessor<R> {
    /// Has a message forwarded to the primaries of its zone.
    pub fn relay(&mut self, message: Deferred, pool: &RelayPool) {
        let primaries = {
            let (name, snapshot) = (zone_of(&message), self.snapshot.load());
            let zone = Name::from_wire(&name).ok().and_then(|name| {
                let name = LookupName::new(name.as_wire(), snapshot.zones.seed());
                snapshot.zones.with_apex(&name).cloned()
            });
            let access = zone.and_then(|zone| zone.access.clone());
            let relay = access.as_ref().and_then(|access| access.transfers.relay.as_ref());
            relay.map(|relay| relay.to.clone()).unwrap_or_default()
        };
        self.queue.begin_relay();
        if let Err((why, message)) = pool.forward(message, primaries) {
            self.queue.abandon_relay();
            let (counter, reason, text) = match why {
                RelayRefusal::Busy => (&self.queue.counters.busy, Reason::UpdateBusy, ""),
                RelayRefusal::Returned => {
                    let (zone, peer) = (shown_zone_of(&message), message.peer.address);
                    tracing::warn!(
                        %zone, %peer,
                        "an update has come back: its servers forward updates to each other"
                    );
                    let text = "the update has come back to this server, which forwards it";
                    (&self.queue.counters.relay_failed, Reason::UpdateFailed, text)
                }
            };
            counter.fetch_add(1, Relaxed);
            let outcome = UpdateOutcome { rcode: Rcode::SERVFAIL, reason, text: text.to_owned() };
            self.replies.answer_update(*message, &outcome, self.clock.now());
            self.replies.send();
        }
    }

    /// Answers a message that was forwarded.
    pub fn answer_relayed(&mut self, relayed: RelayedUpdate) {
        let RelayedUpdate { message, result } = relayed;
        let (counters, now) = (&self.queue.counters, self.clock.now());
        let (peer, transport) = (message.peer.address, message.peer.transport.name());
        let zone = shown_zone_of(&message);
        match result {
            Ok((reply, primary)) => {
                counters.relayed.fetch_add(1, Relaxed);
                let rcode = Rcode(reply.get(3).map_or(0, |octet| u16::from(octet & 0x0f)));
                tracing::info!(
                    %zone, %peer, transport, %primary, %rcode, "an update was forwarded"
                );
                let (reason, text) = (Reason::UpdateRelayed, String::new());
                let outcome = UpdateOutcome { rcode, reason, text };
                self.replies.relay_update(message, &outcome, &reply, now);
            }
            Err(error) => {
                counters.relay_failed.fetch_add(1, Relaxed);
                tracing::warn!(%zone, %peer, transport, error, "an update could not be forwarded");
                // Which addresses primaries have is not told to clients.
                let text = "no primary of the zone has replied".to_owned();
                let (rcode, reason) = (Rcode::SERVFAIL, Reason::UpdateFailed);
                let outcome = UpdateOutcome { rcode, reason, text };
                self.replies.answer_update(message, &outcome, now);
            }
        }
        self.replies.send();
    }

    /// Reads a message, and puts it among those for its zone.
    fn prepare(&self, message: &Deferred, zones: &mut Vec<ZoneUpdates>) -> (Step, Facts) {
        let signature = message.deferral.history.signature.as_deref();
        let id = signature.and_then(|signature| signature.key);
        let snapshot = self.snapshot.load();
        let key = id.and_then(|id| Some((id, snapshot.settings.keys.get(id)?.name().clone())));
        let key_name = key.as_ref().map_or_else(|| "none".to_owned(), |(_, name)| name.to_string());
        let read = match UpdateMessage::read(&message.query) {
            Ok(read) => read,
            Err(error) => {
                let (rcode, reason) = match error {
                    UpdateReadError::TooLarge => (Rcode::REFUSED, Reason::UpdateRefused),
                    _ => (Rcode::FORMERR, Reason::FormatError),
                };
                let result = UpdateResult::refused(rcode, reason, error.to_string());
                return (Step::Done(result), Facts { key: key_name, ..Facts::none() });
            }
        };
        let zone = read.zone.to_lowercase();
        let facts = Facts {
            zone: zone.clone(),
            key: key_name,
            prerequisites: read.prerequisites.len(),
            updates: read.updates.len(),
        };
        let sender = UpdateSender { client: message.peer.address.ip(), key };
        let request = UpdateRequest { sender, message: read };
        let place = zones.iter().position(|it| it.zone == zone).unwrap_or_else(|| {
            zones.push(ZoneUpdates { zone, requests: Vec::new() });
            zones.len() - 1
        });
        zones[place].requests.push(request);
        (Step::Sent(place, zones[place].requests.len() - 1), facts)
    }
}

/// The result of a message over which something has panicked.
fn failed() -> UpdateResult {
    UpdateResult::of_error(&EditError::PublisherFailed)
}

/// The name of the zone that a message is for, in lower case and wire form.
fn zone_of(message: &Deferred) -> Vec<u8> {
    let end = usize::from(message.deferral.query.name_end);
    message.query.get(HEADER_BYTES..end).unwrap_or_default().to_ascii_lowercase()
}

/// The name of the zone that a message is for, as the log has it.
fn shown_zone_of(message: &Deferred) -> Name {
    Name::from_wire(&zone_of(message)).unwrap_or_else(|_| Name::root())
}

impl Facts {
    /// The facts about a message that could not be read, or was sent before.
    fn none() -> Self {
        Self { zone: Name::root(), key: "none".to_owned(), prerequisites: 0, updates: 0 }
    }
}

/// Counts a message by what became of it.
fn count(counters: &UpdateCounters, result: &UpdateResult) {
    let counter = match (result.outcome.reason, &result.change) {
        (Reason::Updated, Some(_)) => &counters.changed,
        (Reason::Updated, None) => &counters.unchanged,
        (Reason::UpdateRefused, _) => &counters.refused,
        (Reason::UpdateUnmet, _) => &counters.unmet,
        (Reason::FormatError, _) => &counters.invalid,
        _ => &counters.failed,
    };
    counter.fetch_add(1, Relaxed);
}

/// Logs what became of a message.
fn log(message: &Deferred, facts: &Facts, result: &UpdateResult, now: Now) {
    let received = message.deferral.history.received_nanos;
    let seconds = (now.monotonic_nanos.saturating_sub(received) / 1000) as f64 / 1e6;
    let (zone, peer) = (&facts.zone, message.peer.address);
    let (key, transport) = (&facts.key, message.peer.transport.name());
    let (prerequisites, updates) = (facts.prerequisites, facts.updates);
    match result.change {
        Some(UpdateChange { from, to, removed, added }) => tracing::info!(
            %zone, %peer, key, transport, prerequisites, updates, removed, added, from,
            serial = to, seconds, "an update has changed a zone"
        ),
        None if result.is_done() => tracing::info!(
            %zone, %peer, key, transport, prerequisites, updates, seconds,
            "an update has changed nothing"
        ),
        None if result.outcome.reason == Reason::UpdateUnmet => tracing::info!(
            %zone, %peer, key, transport, prerequisites, updates, seconds,
            rcode = %result.outcome.rcode, error = result.outcome.text,
            "an update was not carried out"
        ),
        None => tracing::warn!(
            %zone, %peer, key, transport, prerequisites, updates, seconds,
            rcode = %result.outcome.rcode, error = result.outcome.text,
            "an update was not carried out"
        ),
    }
}
