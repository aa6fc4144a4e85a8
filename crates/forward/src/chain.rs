//! Chains of aliases that lead from one zone that others answer for into another.
//!
//! Upstreams are believed in what they say of their own zone only. Where an answer ends with an
//! alias of a name in another zone, the query waits once more, for those who answer for that one,
//! and is answered with all that was fetched for it.
//!
//! Deliberately absent: aliases in our own data on the way, which the engine follows, and from
//! which a chain leads nowhere else.

use zonda_cache::Onward;
use zonda_deferral::Responder;
use zonda_engine::zones::Source;
use zonda_engine::{Deferral, Now, Reason, To, UpstreamAnswer};
use zonda_upstream::{AnswerError, rebinding};
use zonda_wire::response::Response;
use zonda_wire::{Rcode, Type};

use crate::answers::failure;
use crate::fetch_key::FetchKey;
use crate::pending::PendingQuery;
use crate::thread::Forwarder;

/// What was fetched for a query so far, and what comes next.
#[derive(Debug)]
pub struct Chain {
    /// What was fetched.
    legs: Vec<Leg>,
    /// The name to ask for next, in lower case.
    pub(crate) next: Box<[u8]>,
}

/// An answer that ends with an alias of a name in another zone.
#[derive(Debug)]
struct Leg {
    /// Who was asked.
    from: To,
    /// The name that it was asked for, in lower case.
    name: Box<[u8]>,
    /// The answer.
    message: Vec<u8>,
}

/// What follows from an answer that ends with an alias of a name in another zone.
enum Step {
    /// Others are asked for this name.
    Ask(Deferral, Box<[u8]>),
    /// The client gets what there is.
    End,
}

impl<R: Responder, F: FnMut() -> R> Forwarder<R, F> {
    /// Answers a query with what was fetched for it, or has others fetch what is missing.
    pub(crate) fn deliver(
        &mut self,
        mut query: PendingQuery,
        fetched: &UpstreamAnswer<'_>,
        now: Now,
    ) {
        if !fetched.goes_on && query.chain.is_none() {
            return self.replies.answer(query.query, fetched, now);
        }
        let qtype = query.query.deferral.query.qtype;
        let step = match fetched.goes_on {
            true => self.step(&query, fetched, qtype),
            false => Ok(Step::End),
        };
        match step {
            Ok(Step::Ask(deferral, next)) => {
                let (from, name) = (query.query.deferral.to, fetched.name.into());
                let leg = Leg { from, name, message: fetched.message(qtype) };
                let mut legs = query.chain.take().map(|chain| chain.legs).unwrap_or_default();
                legs.push(leg);
                query.query.deferral = deferral;
                query.chain = Some(Box::new(Chain { legs, next }));
                self.config.forwarders.pass_on(query);
            }
            Ok(Step::End) => match query.chain.take() {
                Some(chain) if !fetched.name.is_empty() => {
                    self.deliver_chain(query, *chain, (fetched, qtype), now);
                }
                _ => self.replies.answer(query.query, fetched, now),
            },
            Err(unfit) => {
                let text = unfit.to_string();
                self.replies.answer(query.query, &failure(Reason::UpstreamInvalid, &text), now);
            }
        }
    }

    /// Answers a query with all that was fetched for it, the last of which is new.
    fn deliver_chain(
        &mut self,
        query: PendingQuery,
        chain: Chain,
        (last, qtype): (&UpstreamAnswer<'_>, Type),
        now: Now,
    ) {
        let name = chain.legs.first().map(|leg| leg.name.clone()).unwrap_or_default();
        let message = last.message(qtype);
        if has_private_address(&message) && self.are_public(&chain) {
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
            return self.replies.answer(query.query, &blocked, now);
        }
        let mut messages: Vec<_> = chain.legs.into_iter().map(|leg| leg.message).collect();
        messages.push(message);
        match self.reader.join(&messages, last.goes_on) {
            Ok((counts, body)) => {
                // Nobody says of the whole that it was validated.
                let whole = UpstreamAnswer {
                    name: &name,
                    counts,
                    body: &body,
                    is_authentic: false,
                    ..*last
                };
                self.replies.answer(query.query, &whole, now);
            }
            Err(unfit) => {
                let text = unfit.to_string();
                self.replies.answer(query.query, &failure(Reason::UpstreamInvalid, &text), now);
            }
        }
    }

    /// Whether a name on the way must not lead to private addresses, whatever those may have that
    /// it is an alias of: who owns it would choose the machine that browsers talk to.
    fn are_public(&self, chain: &Chain) -> bool {
        let is_public = |leg: &Leg| {
            let To::Forward(number) = leg.from else { return false };
            let known = self.groups.get(&number);
            known.is_some_and(|known| !known.group.may_be_private(&leg.name))
        };
        chain.legs.iter().any(is_public)
    }

    /// What follows from an answer that ends with an alias of a name in another zone.
    fn step(
        &self,
        query: &PendingQuery,
        fetched: &UpstreamAnswer<'_>,
        qtype: Type,
    ) -> Result<Step, AnswerError> {
        let Some(target) = last_alias(fetched, qtype) else { return Ok(Step::End) };
        let snapshot = self.config.snapshot.load();
        let Some((zone, name_hash)) = snapshot.zones.answering(&target, qtype) else {
            return Ok(Step::End);
        };
        let Source::Forward(forward) = &zone.source else { return Ok(Step::End) };
        if To::Forward(forward.number) == query.query.deferral.to
            || !zone.allows(query.query.peer.address.ip())
        {
            return Ok(Step::End);
        }
        let legs = query.chain.as_ref().map_or(&[] as &[Leg], |chain| &chain.legs[..]);
        if *target == *fetched.name || legs.iter().any(|leg| *leg.name == *target) {
            return Err(AnswerError::Loop);
        }
        if legs.len() + 1 >= usize::from(self.share.chain_max) {
            return Err(AnswerError::LongChain);
        }
        let to = To::Forward(forward.number);
        let history = query.query.deferral.history.clone();
        let asked = query.query.deferral.query;
        let deferral = Deferral { history, query: asked, ..Deferral::new(to, name_hash) };
        Ok(Step::Ask(deferral, target))
    }

    /// Whether a kept answer that leads into another zone still does: zones may have changed since.
    pub(crate) fn leads_on(
        &self,
        wanted: &FetchKey,
        onward: Option<Onward>,
        kept: &UpstreamAnswer<'_>,
    ) -> bool {
        let Some(onward) = onward else { return true };
        let Some(target) = last_alias(kept, wanted.qtype) else { return false };
        let snapshot = self.config.snapshot.load();
        snapshot.zones.answering(&target, wanted.qtype).is_some_and(|(zone, _)| {
            match &zone.source {
                Source::Forward(forward) => {
                    onward == Onward::Others && forward.number != wanted.group
                }
                _ => onward == Onward::Here,
            }
        })
    }
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
