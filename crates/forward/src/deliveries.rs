//! Deliveries of answers, and chains of aliases that lead from one forwarded zone into another.
//!
//! Upstreams are believed in what they say of their own zone only. Where an answer ends with an
//! alias of a name in another zone, the query waits once more, for the upstreams of that one,
//! and is answered with all that was fetched for it.
//!
//! Deliberately absent: aliases in Zonda's own data on the way, which the engine follows, and from
//! which a chain leads nowhere else.

use std::sync::Arc;

use arc_swap::ArcSwap;
use zonda_cache::Onward;
use zonda_deferral::{Replies, Responder};
use zonda_engine::zones::Source;
use zonda_engine::{Checkpoint, Deferral, Now, Reason, Snapshot, To, UpstreamAnswer};
use zonda_upstream::{AnswerError, rebinding};
use zonda_wire::response::Response;
use zonda_wire::{Rcode, Type};

use crate::answers::failure;
use crate::body::BodyReader;
use crate::fetch_key::FetchKey;
use crate::inbox::Forwarders;
use crate::output::Output;
use crate::pending::{Chain, Leg, PendingQuery};
use crate::upstreams::Upstreams;

/// The next step after an answer that ends with an alias of a name in another zone.
enum Step {
    /// Other upstreams are asked for this name.
    Ask(Box<Deferral>, Box<[u8]>),
    /// The client gets the answer as far as it was fetched.
    End,
}

/// Answers queries, and passes those on whose answers lead to other upstreams.
pub struct Deliveries<R> {
    /// Writes and gathers the replies.
    replies: Replies<R>,
    /// Joins the answers of a chain.
    reader: BodyReader,
    /// The zones of this server, which win over what upstreams say of their names.
    snapshot: Arc<ArcSwap<Snapshot>>,
    /// All forwarder threads: a chain may lead to what another one fetches.
    forwarders: Forwarders,
}

impl<R: Responder> Deliveries<R> {
    /// Deliveries by `responder`; none yet.
    pub fn new(responder: R, snapshot: Arc<ArcSwap<Snapshot>>, forwarders: Forwarders) -> Self {
        Self { replies: Replies::new(responder), reader: BodyReader::new(), snapshot, forwarders }
    }

    /// Goes on with another responder, and without the replies that were gathered: after a panic.
    pub fn replace_responder(&mut self, responder: R) {
        self.replies = Replies::new(responder);
    }

    /// Exchanges the replies that were gathered for an output whose replies were sent.
    pub fn swap_output(&mut self, output: &mut Output) {
        self.replies.swap_batches(&mut output.replies, &mut output.spare);
    }

    /// Answers a query, or has it wait for the next name of its client's search path.
    fn answer(&mut self, query: PendingQuery, fetched: &UpstreamAnswer<'_>, now: Now) {
        if let Some(deferred) = self.replies.answer(*query.query, fetched, now) {
            self.forwarders.pass_on(deferred.into());
        }
    }

    /// Answers a query SERVFAIL, and says why.
    pub fn fail(&mut self, query: PendingQuery, reason: Reason, now: Now) {
        self.answer(query, &failure(reason, ""), now);
    }

    /// Answers a query with what was fetched for it, or has other upstreams asked for what is
    /// missing.
    pub fn deliver(
        &mut self,
        mut query: PendingQuery,
        fetched: &UpstreamAnswer<'_>,
        upstreams: &Upstreams,
        now: Now,
    ) {
        if !fetched.goes_on && query.chain.is_none() {
            return self.answer(query, fetched, now);
        }
        let qtype = query.query.deferral.query.qtype;
        let step = match fetched.goes_on {
            true => self.step(&query, (fetched, qtype), upstreams.share().chain_max),
            false => Ok(Step::End),
        };
        match step {
            Ok(Step::Ask(deferral, next)) => {
                let (from, name) = (query.query.deferral.to, fetched.name.into());
                let leg = Leg { from, name, message: fetched.message(qtype) };
                let mut legs = query.chain.take().map(|chain| chain.legs).unwrap_or_default();
                legs.push(leg);
                query.query.deferral = *deferral;
                query.chain = Some(Box::new(Chain { legs, next }));
                self.forwarders.pass_on(query);
            }
            Ok(Step::End) => match query.chain.take() {
                Some(chain) if !fetched.name.is_empty() => {
                    self.deliver_chain(query, *chain, (fetched, qtype), upstreams, now);
                }
                _ => self.answer(query, fetched, now),
            },
            Err(unfit) => {
                let text = unfit.to_string();
                self.answer(query, &failure(Reason::UpstreamInvalid, &text), now);
            }
        }
    }

    /// Answers a query with all that was fetched for it, the last of which is new.
    fn deliver_chain(
        &mut self,
        query: PendingQuery,
        chain: Chain,
        (last, qtype): (&UpstreamAnswer<'_>, Type),
        upstreams: &Upstreams,
        now: Now,
    ) {
        let name = chain.legs.first().map(|leg| leg.name.clone()).unwrap_or_default();
        let message = last.message(qtype);
        if has_private_address(&message) && are_public(&chain, upstreams) {
            let (reason, body) = (Reason::Blocked, &[][..]);
            let blocked = UpstreamAnswer {
                name: &name,
                rcode: Rcode::NOERROR,
                counts: [0; 3],
                body,
                is_authentic: false,
                goes_on: false,
                reason,
                text: b"",
            };
            return self.answer(query, &blocked, now);
        }
        let mut messages: Vec<_> = chain.legs.into_iter().map(|leg| leg.message).collect();
        messages.push(message);
        match self.reader.join(&messages, last.goes_on) {
            Ok((counts, body)) => {
                // No upstream says of the whole that it was validated.
                let whole = UpstreamAnswer {
                    name: &name,
                    counts,
                    body: &body,
                    is_authentic: false,
                    ..*last
                };
                self.answer(query, &whole, now);
            }
            Err(unfit) => {
                let text = unfit.to_string();
                self.answer(query, &failure(Reason::UpstreamInvalid, &text), now);
            }
        }
    }

    /// Returns the next step after an answer that ends with an alias of a name in another zone.
    fn step(
        &self,
        query: &PendingQuery,
        (fetched, qtype): (&UpstreamAnswer<'_>, Type),
        chain_max: u8,
    ) -> Result<Step, AnswerError> {
        let Some(target) = last_alias(fetched, qtype) else { return Ok(Step::End) };
        let snapshot = self.snapshot.load();
        let zones = &snapshot.at(query.query.peer.listener).zones;
        let Some((zone, name_hash)) = zones.answering(&target, qtype) else {
            return Ok(Step::End);
        };
        let Source::Forward(forward) = &zone.source else { return Ok(Step::End) };
        let Deferral { to, history, .. } = &query.query.deferral;
        let checkpoint = history.checkpoint.as_ref();
        let (client, signature) = (query.query.peer.address.ip(), history.signature.as_deref());
        let may_ask = checkpoint.is_some_and(Checkpoint::is_of_alias_record)
            || zone.allows(client, signature, Some(qtype));
        if To::Forward(forward.number) == *to || !may_ask {
            return Ok(Step::End);
        }
        let legs = query.chain.as_ref().map_or(&[] as &[Leg], |chain| &chain.legs[..]);
        if *target == *fetched.name || legs.iter().any(|leg| *leg.name == *target) {
            return Err(AnswerError::Loop);
        }
        if legs.len() + 1 >= usize::from(chain_max) {
            return Err(AnswerError::LongChain);
        }
        let to = To::Forward(forward.number);
        let history = query.query.deferral.history.clone();
        let asked = query.query.deferral.query;
        let deferral = Deferral { history, query: asked, ..Deferral::new(to, name_hash) };
        Ok(Step::Ask(Box::new(deferral), target))
    }

    /// Whether a cached answer to a query that has come to a listener still leads into another
    /// zone, if it did: zones may have changed since.
    pub fn is_target_elsewhere(
        &self,
        (key, listener): (&FetchKey, u16),
        onward: Option<Onward>,
        cached: &UpstreamAnswer<'_>,
    ) -> bool {
        let Some(onward) = onward else { return true };
        let Some(target) = last_alias(cached, key.qtype) else { return false };
        let snapshot = self.snapshot.load();
        let zones = &snapshot.at(listener).zones;
        zones.answering(&target, key.qtype).is_some_and(|(zone, _)| match &zone.source {
            Source::Forward(forward) => onward == Onward::Others && forward.number != key.group,
            _ => onward == Onward::Here,
        })
    }
}

/// Whether a name on the way must not lead to private addresses, whatever those may have that it is
/// an alias of: its owner would choose the machine that browsers talk to.
fn are_public(chain: &Chain, upstreams: &Upstreams) -> bool {
    let is_public = |leg: &Leg| {
        let To::Forward(number) = leg.from else { return false };
        let known = upstreams.get(number);
        known.is_some_and(|known| !known.group.may_be_private(&leg.name))
    };
    chain.legs.iter().any(is_public)
}

/// Whether a record of a message holds a private address.
fn has_private_address(message: &[u8]) -> bool {
    let records = Response::parse(message).ok();
    let mut records = records.iter().flat_map(Response::records);
    records.any(|it| rebinding::has_private_address(it.rtype, it.raw))
}

/// The name that an answer ends with an alias of, in lower case.
fn last_alias(fetched: &UpstreamAnswer<'_>, qtype: Type) -> Option<Box<[u8]>> {
    let message = fetched.message(qtype);
    let mut target = Vec::new();
    let found = Response::parse(&message).ok()?.last_alias(&mut target);
    target.make_ascii_lowercase();
    found.then(|| target.into())
}
