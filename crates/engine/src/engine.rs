//! The engine: messages in, replies out.

use crate::answer::Answer;
use crate::answer_facts::AnswerFacts;
use crate::ask::Ask;
use crate::code::{History, Watch};
use crate::counters::Counters;
use crate::deferral::{Deferral, Outcome, To};
use crate::gate::access;
use crate::hot::{HotReply, Meta};
use crate::message::{Batch, Message, Now, Peer, Single, Transport};
use crate::observer::{Event, Observer, SentAnswer};
use crate::prepared::{PreparedQuery, RewrittenQuery};
use crate::reason::Reason;
use crate::resumption::{DeferredQuery, HandlerOutcome, Progress, Resumption};
use crate::reuse::Reuse;
use crate::sent_reply::{SentReply, count, is_forwarded_nodata};
use crate::snapshot::Snapshot;
use crate::transfer::Transfer;
use crate::verdict::Verdict;
use crate::worker::Worker;
use crate::{client_subnet, defer, epilogue, plan, signature};
use arc_swap::{ArcSwap, Guard};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use zonda_balance::Dice;
use zonda_rewrite::{RewriteRules, replace_question};
use zonda_wire::{Fault, Places, Query, Rcode, Reply};
use zonda_zone::Start;

/// Messages that are looked up together. More would leave the first-level cache, fewer would wait
/// for memory one after the other.
const STRIDE: usize = 16;

/// The gates and sources that a query passes on its way to a verdict.
type Plan = fn(&Ask<'_>, &mut Answer<'_>, &mut Worker) -> Verdict;

/// Answers queries. One per thread.
pub struct Engine {
    /// The snapshot in force, which the publisher replaces.
    snapshot: Arc<ArcSwap<Snapshot>>,
    /// The counters of this engine alone.
    counters: Arc<Counters>,
    /// State that outlives a query: the hot table and buffers.
    worker: Worker,
    /// The places of names in the reply under way.
    places: Places,
    /// Messages that are looked up together: as many as there ever were, with room for [`STRIDE`].
    prepared: Vec<PreparedQuery>,
    /// What rules have made of the messages at hand, if there are rules.
    rewritten: Vec<Option<RewrittenQuery>>,
    /// Text of a name that rules are tried on.
    text: Vec<u8>,
    /// The observers that are told of every query.
    observers: Vec<Box<dyn Observer>>,
    /// Whether an observer takes note of the batch at hand.
    is_observed: bool,
    /// The payload of an observer's panic, which goes on once the batch has its replies.
    observer_panic: Option<Box<dyn Any + Send>>,
    /// The facts about the last reply, if that was one that code has asked to see.
    facts: Option<AnswerFacts>,
}

impl Engine {
    /// An engine that answers from whatever `snapshot` holds and counts in `counters`, which no
    /// other engine may share.
    #[must_use]
    pub fn new(snapshot: Arc<ArcSwap<Snapshot>>, counters: Arc<Counters>) -> Self {
        /// The number of engines so far, so that each makes other choices.
        static ENGINES: AtomicU64 = AtomicU64::new(0);
        counters.begin();
        let number = ENGINES.fetch_add(1, Relaxed);
        let dice = Dice::new(snapshot.load().zones.seed().0 ^ number);
        Self {
            snapshot,
            counters,
            worker: Worker { dice, ..Worker::default() },
            places: Places::default(),
            prepared: Vec::with_capacity(STRIDE),
            rewritten: Vec::new(),
            text: Vec::new(),
            observers: Vec::new(),
            is_observed: false,
            observer_panic: None,
            facts: None,
        }
    }

    /// Tells `observer` of every query from now on.
    pub fn add_observer(&mut self, observer: Box<dyn Observer>) {
        self.observers.push(observer);
    }

    /// Refuses transfers from now on: there is no connection that takes their messages.
    pub fn refuse_transfers(&mut self) {
        self.worker.refuses_transfers = true;
    }

    /// Draws from now on as any other engine with equal dice does: what the engine chooses can then
    /// be told step by step.
    pub fn set_dice(&mut self, dice: Dice) {
        self.worker.dice = dice;
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Answers every message of a batch, all from the same snapshot.
    pub fn answer_batch<B: Batch>(&mut self, now: Now, batch: &mut B) {
        let loaded: Guard<Arc<Snapshot>> = self.snapshot.load();
        let snapshot = loaded.of_batch(batch);
        self.is_observed = self.observers.iter().any(|observer| observer.is_active());
        let (mut first, mut query_bytes, mut reply_bytes) = (0, 0, 0);
        // What an earlier message leaves here is told from what a later one needs.
        let mut starts = [Start::NONE; STRIDE];
        while first < batch.len() {
            let count = (batch.len() - first).min(STRIDE);
            self.make_room(count);
            // Passes so short that a processor runs several messages' at once, and waits for their
            // memory together. A single message has none to wait for together with.
            for (index, prepared) in self.prepared[..count].iter_mut().enumerate() {
                let message = batch.get(first + index);
                prepared.read(message.buffer, *message.len, snapshot, &self.worker.hot);
                // A client that is not served shall cost nothing more.
                if let Some(Fault::Signed(at)) = prepared.fault
                    && access::depends_on_signature(snapshot, &message.peer)
                {
                    let record = &mut self.worker.signature_record;
                    let rest = (snapshot, &self.worker.hot);
                    let octets = (message.buffer, &mut *message.len);
                    query_bytes += *octets.1;
                    signature::check(prepared, octets, at.into(), rest, record, now);
                    query_bytes -= *message.len;
                }
            }
            let mut is_rewritten = false;
            if let Some(rules) = &snapshot.settings.rewrites {
                is_rewritten = self.rewrite((first, count), batch, snapshot, rules);
            }
            if count > 1 {
                for (prepared, start) in self.prepared[..count].iter_mut().zip(&mut starts) {
                    prepared.touch_slot(snapshot, start);
                }
                for (prepared, start) in self.prepared[..count].iter_mut().zip(&starts) {
                    prepared.touch_node(snapshot, start);
                }
                if let Some(steering) = &snapshot.steering {
                    let prepared = &mut self.prepared[..count];
                    prepared.iter_mut().for_each(|it| it.touch_pool(steering));
                    prepared.iter_mut().for_each(|it| it.touch_members(steering));
                }
            }
            for (index, start) in starts.iter().enumerate().take(count) {
                if is_rewritten {
                    let place = (first, index, start);
                    let (read, written) = self.finish_rewritten(now, snapshot, place, batch);
                    query_bytes += read;
                    reply_bytes += written;
                    continue;
                }
                let Message { peer, buffer, len } = batch.get(first + index);
                query_bytes += *len;
                let (place, steps) = ((index, start), (&Progress::NEW, plan::run));
                let mut outcome =
                    self.finish::<false>(now, snapshot, place, peer, &mut *buffer, steps);
                self.sign(index, snapshot, buffer, &mut outcome, now);
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
        self.end_observers_panic();
    }

    /// Goes on with an observer's panic, if there was one: the replies are whole.
    fn end_observers_panic(&mut self) {
        if let Some(payload) = self.observer_panic.take() {
            resume_unwind(payload);
        }
    }

    /// Tries rules on `count` messages of a batch, which are prepared; whether any was met.
    #[inline(never)] // most servers have none
    fn rewrite<B: Batch>(
        &mut self,
        (first, count): (usize, usize),
        batch: &mut B,
        snapshot: &Snapshot,
        rules: &Arc<RewriteRules>,
    ) -> bool {
        self.rewritten.clear();
        let rewrite_all = AssertUnwindSafe(|| {
            for (index, prepared) in self.prepared[..count].iter_mut().enumerate() {
                let Message { peer, buffer, len } = batch.get(first + index);
                let rest = (snapshot, &self.worker.hot);
                // A client that is not served shall cost nothing more.
                let signature = prepared.signature.as_ref();
                let is_served = access::is_served(snapshot, &peer, signature);
                let rewritten = is_served
                    .then(|| prepared.rewrite(rules, (buffer, *len), rest, &mut self.text))
                    .flatten();
                self.rewritten.push(rewritten);
            }
        });
        if let Err(payload) = catch_unwind(rewrite_all) {
            self.restore_questions(first, batch);
            resume_unwind(payload);
        }
        self.rewritten.iter().any(Option::is_some)
    }

    /// Answers the prepared message `index` of those that are looked up together, the first of
    /// which is message `first` of the batch, and of which rules have changed some. Returns the
    /// octets of the query and of the reply.
    #[inline(never)]
    fn finish_rewritten<B: Batch>(
        &mut self,
        now: Now,
        snapshot: &Snapshot,
        (first, index, start): (usize, usize, &Start<'_>),
        batch: &mut B,
    ) -> (usize, usize) {
        let rewritten = self.rewritten.get_mut(index).and_then(Option::take);
        let progress = &Progress { rewritten: rewritten.as_ref(), ..Progress::NEW };
        let plan: Plan = match &rewritten {
            Some(rewritten) if rewritten.is_invalid => plan::fail_rewrite,
            _ => plan::run,
        };
        let answer = AssertUnwindSafe(|| {
            let Message { peer, buffer, len } = batch.get(first + index);
            let query_bytes = *len;
            let (place, steps) = ((index, start), (progress, plan));
            let mut outcome = self.finish::<true>(now, snapshot, place, peer, &mut *buffer, steps);
            self.sign(index, snapshot, buffer, &mut outcome, now);
            *len = outcome.reply_bytes();
            (query_bytes, outcome)
        });
        match catch_unwind(answer) {
            Ok((query_bytes, outcome)) => {
                let reply_bytes = outcome.reply_bytes();
                if let Outcome::Deferred(deferral) = outcome {
                    batch.defer(first + index, deferral);
                }
                (query_bytes, reply_bytes)
            }
            Err(payload) => {
                if let Some(place) = self.rewritten.get_mut(index) {
                    *place = rewritten;
                }
                self.restore_questions(first, batch);
                resume_unwind(payload)
            }
        }
    }

    /// After a panic: puts the questions of the clients back into the messages that have no reply
    /// yet, so that a failure can be told to them. The first of the prepared messages is message
    /// `first` of the batch.
    #[cold]
    fn restore_questions<B: Batch>(&mut self, first: usize, batch: &mut B) {
        for (index, rewritten) in self.rewritten.drain(..).enumerate() {
            if let Some(it) = rewritten.filter(|it| it.change.has_question()) {
                let question_end = self.prepared[index].query.question_end();
                let buffer = batch.get(first + index).buffer;
                // It was there before, so there is room.
                let _ = replace_question(buffer, it.len, question_end, it.change.question());
            }
        }
    }

    /// Signs the reply to message `index`, if that was signed.
    #[inline]
    fn sign(
        &self,
        index: usize,
        snapshot: &Snapshot,
        buffer: &mut [u8],
        outcome: &mut Outcome,
        now: Now,
    ) {
        if let Some(signature) = &self.prepared[index].signature
            && let Outcome::Reply(len) = outcome
        {
            *len = signature::sign(signature, snapshot, (buffer, *len), now);
        }
    }

    /// Makes room for `count` messages that are looked up together, at most [`STRIDE`].
    #[inline]
    fn make_room(&mut self, count: usize) {
        if self.prepared.len() < count {
            self.prepared.resize_with(count, PreparedQuery::default); // within the capacity
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
        let DeferredQuery { peer, history, buffer, mut len, mut query } = query;
        let loaded = self.snapshot.load();
        let snapshot = loaded.at(peer.listener);
        self.is_observed = self.observers.iter().any(|observer| observer.is_active());
        self.make_room(1);
        let (prepared, hot) = (&mut self.prepared[0], &self.worker.hot);
        let (mut plan, mut zone): (Plan, _) = (plan::run, None);
        if let (Resumption::Upstream(_), Some(checkpoint)) = (resumption, &history.checkpoint) {
            zone = checkpoint.zone(snapshot.generation, &snapshot.zones);
        }
        if let Some(prelude) = &history.prelude {
            let memory = self.worker.target_memory.get_or_insert_default();
            len = prelude.bring_back(buffer, len, &mut memory.message);
            (plan, zone, query) = (plan::resume_target, None, None);
        } else if zone.is_some() {
            plan = plan::resume;
        }
        match query {
            Some(query) => prepared.recall((query, &buffer[..len]), zone, snapshot, hot),
            None => prepared.read(buffer, len, snapshot, hot),
        }
        (prepared.signature, prepared.signed_at) = (history.signature.as_deref().copied(), 0);
        self.recall_notes(history, resumption);
        let progress = &Progress { resumption, history: Some(history), rewritten: None };
        let (first, steps) = ((0, &Start::NONE), (progress, plan));
        let mut outcome = self.finish::<true>(now, snapshot, first, *peer, buffer, steps);
        self.sign(0, snapshot, buffer, &mut outcome, now);
        if progress.is_counted() {
            self.counters.reply_bytes.add(outcome.reply_bytes() as u64);
        }
        self.end_observers_panic();
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
        let query = DeferredQuery { peer, history, buffer, len, query: None };
        self.resume(now, query, Resumption::Below)
    }

    /// Takes out the facts about the last reply, if that was one that code has asked to see:
    /// [`AnswerBelow`](crate::AnswerBelow) keeps them with its octets.
    pub fn take_facts(&mut self) -> Option<AnswerFacts> {
        self.facts.take()
    }

    /// Takes out the transfer that the last query has begun: it was deferred to [`To::Transfer`].
    pub fn take_transfer(&mut self) -> Option<Box<Transfer>> {
        self.worker.transfer.take()
    }

    /// Brings back what code has noted about a query before it was deferred, and what code
    /// elsewhere has noted since.
    fn recall_notes(&mut self, history: &History, resumption: Resumption<'_>) {
        self.worker.tags_mut().clone_from(&history.tags);
        self.worker.query_state_mut().clone_from(&history.state);
        if let Resumption::Code(HandlerOutcome::Reply(filled)) = resumption {
            self.worker.tags_mut().extend(&filled.tags);
            self.worker.query_state_mut().extend(&filled.state);
        }
    }

    /// Returns the watch that shows which of the user's code the engine calls at the moment.
    #[must_use]
    pub fn watch(&self) -> &Arc<Watch> {
        &self.worker.watch
    }

    /// Answers the prepared message `index`, which lies in `buffer`, by the plan that it is to pass
    /// after its progress so far. `MAY_BE_REWRITTEN`: whether rules may have changed its question.
    #[inline]
    fn finish<const MAY_BE_REWRITTEN: bool>(
        &mut self,
        now: Now,
        snapshot: &Snapshot,
        (index, start): (usize, &Start<'_>),
        peer: Peer,
        buffer: &mut [u8],
        (progress, plan): (
            &Progress<'_>,
            impl Fn(&Ask<'_>, &mut Answer<'_>, &mut Worker) -> Verdict,
        ),
    ) -> Outcome {
        let prepared = &self.prepared[index];
        let query = &prepared.query;
        let settings = &*snapshot.settings;
        let client_subnet = client_subnet::believed(query, buffer, settings, &peer);
        let reserved = epilogue::reserved_bytes(query, &client_subnet, settings, peer.transport);
        let limit = signature::reply_bytes_max(prepared, snapshot, peer.transport);
        let option_codes = progress.option_codes(query, buffer, settings);
        let reply = Reply::new(buffer, query, limit.saturating_sub(reserved), &mut self.places);
        let ask = Ask {
            now,
            peer: &peer,
            query,
            client_subnet,
            option_codes,
            signature: prepared.signature.as_ref(),
            name: &prepared.name,
            zone: prepared.zone.map(|zone| &**snapshot.zones.get(zone.index)),
            start,
            snapshot,
            hit: prepared.hit.as_ref(),
            progress,
        };
        let mut answer = Answer::new(reply, peer.transport == Transport::Tcp);
        answer.code_scope = progress.code_scope(client_subnet);
        let verdict = match prepared.fault {
            None => plan(&ask, &mut answer, &mut self.worker),
            Some(fault) => plan::refuse(&ask, &mut answer, &mut self.worker, fault),
        };
        let (sent, reason) = match verdict {
            Verdict::Defer => {
                let worker = &mut self.worker;
                return Outcome::Deferred(defer::deferral(&ask, &answer, worker, prepared));
            }
            Verdict::Transfer => (Some(SentReply::TRANSFER), Reason::Transferred),
            // The plan has asked on behind an alias, and sends nothing else.
            Verdict::Drop(reason) | Verdict::GoesOn(reason) => (None, reason),
            Verdict::Reply(rcode, reason, reuse) => {
                debug_assert!(
                    answer.client_scope.is_none() || matches!(reuse, Reuse::No(_)),
                    "what depends on the client is not put into the hot table"
                );
                if let (Reuse::Hot(rotating), Some(key)) = (reuse, prepared.key)
                    && self.worker.hot.wants(key)
                {
                    let made = (rcode, reason, rotating);
                    insert_hot(&ask, &answer, &mut self.worker, prepared, made);
                }
                let made = (rcode, reason, reuse);
                let mut sent = send(&ask, &mut answer, &mut self.worker, limit, made);
                // Before counters and observers, which tell what the client gets.
                if MAY_BE_REWRITTEN && let Some(change) = progress.change() {
                    let buffer = answer.reply.buffer_mut();
                    sent.revert(change, buffer, limit, &mut self.worker.revert);
                }
                (Some(sent), reason)
            }
        };
        if progress.is_counted() {
            count(&self.counters, &ask, sent, reason);
            if self.is_observed {
                let end = observe(&mut self.observers, &ask, &answer, &self.worker, (sent, reason));
                self.observer_panic = end.err().or(self.observer_panic.take());
            }
        } else {
            self.facts = sent.map(|sent| facts(&ask, &answer, &self.worker, sent, reason));
        }
        self.worker.clear_notes();
        if reason == Reason::Transferred {
            return Outcome::Deferred(Deferral::new(To::Transfer, 0));
        }
        sent.map_or(Outcome::Silence, |sent| Outcome::Reply(sent.bytes))
    }
}

/// Finishes a reply of at most `limit` octets: what it says besides the answer is written.
#[inline(always)] // on the path of every query
fn send(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    limit: usize,
    (rcode, reason, reuse): (Rcode, Reason, Reuse),
) -> SentReply {
    answer.reply.set_limit(limit);
    let body_end = answer.reply.len();
    let room = limit.saturating_sub(body_end);
    let counts = answer.reply.counts();
    epilogue::write(ask, answer, worker, (rcode, reason), room);
    let flags = answer.flags | epilogue::recursion_available(ask, answer.flags);
    let is_forwarded_nodata = is_forwarded_nodata(answer, rcode, reason);
    let bytes = answer.reply.finish(ask.query, flags, rcode);
    SentReply { bytes, body_end, counts, rcode, flags, is_forwarded_nodata, reuse }
}

/// Tells all observers of a query, up to one that panics.
///
/// # Errors
/// The payload of a panic: the client's reply is whole, and is to be sent.
#[inline(never)] // most servers have none, and their path would be longer
fn observe(
    observers: &mut [Box<dyn Observer>],
    ask: &Ask<'_>,
    answer: &Answer<'_>,
    worker: &Worker,
    (sent, reason): (Option<SentReply>, Reason),
) -> Result<(), Box<dyn Any + Send>> {
    let waited = ask.now.monotonic_nanos.saturating_sub(ask.received_nanos());
    let change = ask.progress.change().filter(|change| change.has_question());
    let asked = change.map(|change| {
        let query = Query { qtype: change.qtype(), ..*ask.query };
        (change.name().to_ascii_lowercase(), query)
    });
    let (name, query) = match &asked {
        None => (ask.name.as_wire(), ask.query),
        Some((name, query)) => (&name[..], query),
    };
    let event = Event {
        now: ask.now,
        peer: ask.peer,
        query,
        name,
        rcode: sent.map(|sent| sent.rcode),
        reason,
        reuse: sent.map(|sent| sent.reuse),
        scope: answer.scope(),
        network: ask.client_network(),
        answer: sent.map(|_| SentAnswer::of(answer.reply.buffer())).unwrap_or_default(),
        reply_bytes: sent.map_or(0, |sent| sent.bytes),
        waited: Duration::from_nanos(waited),
        tags: worker.tags(),
    };
    let tell = || observers.iter_mut().for_each(|observer| observer.observe(&event));
    catch_unwind(AssertUnwindSafe(tell))
}

/// The facts about a reply that code has asked to see.
#[cold]
fn facts(
    ask: &Ask<'_>,
    answer: &Answer<'_>,
    worker: &Worker,
    sent: SentReply,
    reason: Reason,
) -> AnswerFacts {
    AnswerFacts {
        generation: ask.snapshot.generation,
        body: ask.query.question_end()..sent.body_end,
        counts: sent.counts,
        flags: answer.flags,
        rcode: sent.rcode,
        reason,
        ede: answer.ede,
        text: worker.body[..answer.text_bytes].into(),
        answering_label: answer.answering_label,
        bits_looked_at: answer.bits_looked_at(),
    }
}

/// Inserts a reply into the hot table.
#[inline(never)] // a question that is asked once has none
fn insert_hot(
    ask: &Ask<'_>,
    answer: &Answer<'_>,
    worker: &mut Worker,
    prepared: &PreparedQuery,
    (rcode, reason, rotating): (Rcode, Reason, u16),
) {
    let found = (prepared.key, prepared.zone, ask.zone);
    let (Some(key), Some(zone), Some(entry)) = found else { return };
    if answer.client_scope.is_some() {
        return; // the key does not know the client
    }
    let Some(version) = entry.version_of(ask.name, reason != Reason::Answered) else { return };
    let meta = Meta {
        generation: ask.snapshot.generation,
        version,
        zone,
        answering_label: answer.answering_label,
        counts: answer.reply.counts(),
        flags: answer.flags,
        rcode,
        reason,
        rotating,
    };
    worker.hot.insert(key, HotReply { name: ask.name, body: answer.reply.body(), meta });
}
