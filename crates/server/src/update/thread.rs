//! The thread that answers messages that change zones.

use super::queue::{UpdateCounters, UpdateQueue};
use super::recent::{MessageId, RecentUpdates};
use super::request::{UpdateChange, UpdateRequest, UpdateResult, ZoneUpdates};
use crate::publish::PublisherHandle;
use crate::watchdog::Watchdog;
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use zonda_deferral::{Clock, Deferred, Replies, Responder};
use zonda_engine::grant::UpdateSender;
use zonda_engine::{Now, Reason, Snapshot};
use zonda_wire::{Name, Rcode, UpdateMessage, UpdateReadError};

/// The name of the thread.
const THREAD: &str = "updates";

/// What the thread needs.
pub struct UpdateThread<R> {
    /// The queue of messages.
    pub queue: Arc<UpdateQueue>,
    /// The publisher, which changes zones.
    pub publisher: PublisherHandle,
    /// The snapshot, which has the names of keys.
    pub snapshot: Arc<ArcSwap<Snapshot>>,
    /// Tells the time.
    pub clock: Clock,
    /// Writes the replies.
    pub replies: Replies<R>,
    /// The messages of the last minutes.
    pub recent: RecentUpdates,
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

impl<R: Responder> UpdateThread<R> {
    /// Starts the thread, which ends when the queue is closed.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(mut self, watchdog: &Arc<Watchdog>) -> io::Result<()> {
        watchdog.spawn(THREAD, move || self.run()).map(drop)
    }

    /// Answers messages until the queue is closed, which is due.
    fn run(&mut self) -> bool {
        let queue = Arc::clone(&self.queue);
        while let Some(mut batch) = queue.take() {
            queue.counters.batches.fetch_add(1, Relaxed);
            self.answer(std::mem::take(&mut batch.messages));
        }
        true
    }

    /// Carries out messages together, and answers each.
    fn answer(&mut self, messages: Vec<Deferred>) {
        let (mut zones, mut steps) = (Vec::<ZoneUpdates>::new(), Vec::<(Step, Facts)>::new());
        let (mut places, now) = (HashMap::<MessageId, usize>::new(), self.clock.now());
        for (place, message) in messages.iter().enumerate() {
            let id = self.recent.id_of(message);
            let first = id.map_or(place, |id| *places.entry(id).or_insert(place));
            let (step, facts) = match (first, self.recent.find(message, now)) {
                (first, _) if first < place => (Step::SameAs(first), Facts::none()),
                (_, Some(outcome)) => {
                    let result = UpdateResult { outcome, change: None };
                    (Step::Repeated(result), Facts::none())
                }
                (_, None) => self.prepare(message, &mut zones),
            };
            steps.push((step, facts));
        }
        let failed = |_| {
            let text = "the thread that publishes zones has failed".to_owned();
            UpdateResult::refused(Rcode::SERVFAIL, Reason::UpdateFailed, text)
        };
        let counts: Vec<usize> = zones.iter().map(|zone| zone.requests.len()).collect();
        let results = match zones.is_empty() {
            true => Ok(Vec::new()),
            false => self.publisher.carry_out(zones),
        };
        let results = results.unwrap_or_else(|_| {
            counts.iter().map(|count| (0..*count).map(failed).collect()).collect()
        });
        let now = self.clock.now();
        let mut known = Vec::<UpdateResult>::new();
        for (message, (step, facts)) in messages.into_iter().zip(steps) {
            let is_new = matches!(step, Step::Sent(..) | Step::Done(_));
            let result = match step {
                Step::Sent(zone, place) => {
                    let result = results.get(zone).and_then(|results| results.get(place));
                    result.cloned().unwrap_or_else(|| failed(0))
                }
                Step::SameAs(first) => known.get(first).cloned().unwrap_or_else(|| failed(0)),
                Step::Repeated(result) | Step::Done(result) => result,
            };
            let counters = &self.queue.counters;
            if is_new {
                self.recent.note(&message, &result.outcome, now);
                count(counters, &result);
                log(&message, &facts, &result, now);
            } else {
                counters.repeated.fetch_add(1, Relaxed);
            }
            self.replies.answer_update(message, &result.outcome, now);
            known.push(result);
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
