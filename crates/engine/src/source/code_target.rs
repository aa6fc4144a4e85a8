//! Code that answers for the target of an alias.
//!
//! A source says by [`Verdict::GoesOn`] that the answer which it has written ends with an alias of
//! a name that code has, or may have. The query is then asked anew for that name, as rfc1034#4.3.2
//! has it in step 3a, and what is answered is put behind the alias:
//!
//! ```text
//! source ─ aliases ─► GoesOn ─► query for the target ─► code ─┬─ answered ─► one reply of all
//!                        ▲                              │     └─ passed on ─► zone of the target
//!                        └── its answer is an alias ────┴─ elsewhere ─► deferred, with a prelude
//! ```
//! The query for the target is a message like any: it takes the place of the client's in the
//! buffer, so that code, caches of code and runtimes see nothing but a query for that name. The
//! records so far wait in the worker's memory, or beside a query that is deferred, as its
//! [`Prelude`]. Code that was called for one name is not called again for it when the query is
//! resumed.
//!
//! The response code is that of the last name (rfc6604#3), AA speaks of the first one. A reply that
//! code drops is not sent; a failure of code is SERVFAIL behind the aliases. What this server or
//! its access lists refuse to answer for the target is left to the client, which gets the aliases
//! alone, as it does where a chain is too long or leads to one of its names again, and where guards
//! in the worker are for the target: they have seen another name.
//!
//! Signatures of aliases in zone data stay, and what code says has none.
//!
//! # Invariants
//! - Each step of a chain adds an alias to the reply, or is the last one, and behind [`CHAIN_MAX`]
//!   aliases there is none.
//! - No such reply gets into the hot table. The handler cache has what code has said under the name
//!   that it has said it for, without the aliases that led there.
//!
//! Deliberately absent: following aliases in upstreams' answers to code, as their query was written
//! over when they are read; middleware for all names, which sees the name asked for, and the reply
//! when it is whole.

use super::chain;
use crate::answer::Answer;
use crate::ask::Ask;
use crate::code::History;
use crate::gate::access;
use crate::prelude::{Prelude, PreludeFacts};
use crate::reason::Reason;
use crate::resumption::{Progress, Resumption};
use crate::reuse::{NotReused, Reuse};
use crate::target_memory::TargetMemory;
use crate::verdict::{Flow, Verdict};
use crate::worker::{CHAIN_MAX, Worker};
use crate::zones::{Source, ZoneEntry};
use std::ops::ControlFlow::Break;
use zonda_wire::query::{HEADER_BYTES, flag};
use zonda_wire::{Query, Rcode, Section, Type};
use zonda_zone::Start;

/// Most octets of the beginning of a reply that waits, as many as most replies over UDP may have:
/// what waits is to be small. Behind a longer one, the target is left to the client.
const PRELUDE_BYTES_MAX: usize = 1232;

/// What has answered a query for a target, in the order of the plan.
const BEHIND_CODE: [fn(&Ask<'_>, &mut Answer<'_>, &mut Worker) -> Flow; 3] =
    [access::by_zone, chain::from_templates, chain::answer];

/// The answer depends on what code says each time.
const REUSE: Reuse = Reuse::No(NotReused::CodeTarget);

/// Has code go on with an answer that was written for this reason, and that ends with an alias of a
/// name which code may have.
#[cold]
pub fn follow(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    reason: Reason,
) -> Verdict {
    let mut memory = worker.target_memory.take().unwrap_or_default();
    std::mem::swap(&mut memory.asked, &mut worker.kept_query);
    worker.kept_query.clear();
    let question = ..ask.query.question_end();
    let is_kept = !memory.asked.is_empty()
        && memory.asked.get(question) == answer.reply.buffer().get(question);
    debug_assert!(is_kept, "a query is kept before its alias is written");
    let verdict = match is_kept {
        true => {
            let facts = facts_of(answer, reason);
            memory.text.clear();
            memory.text.extend_from_slice(&worker.body[..answer.text_bytes]);
            memory.records.clear();
            memory.message.clear();
            Target { ask, answer, worker, memory: &mut memory, facts }.follow()
        }
        false => Verdict::Reply(Rcode::NOERROR, reason, REUSE),
    };
    worker.target_memory = Some(memory);
    verdict
}

/// Goes on with a query that has waited for the answer to a target, behind its prelude. The query
/// for the target lies in the worker's memory.
#[cold]
pub fn resume(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    prelude: &Prelude,
) -> Verdict {
    let mut memory = worker.target_memory.take().unwrap_or_default();
    memory.asked.clear();
    memory.asked.extend_from_slice(&prelude.query);
    memory.text.clear();
    memory.text.extend_from_slice(&prelude.text);
    memory.records.clear();
    let facts = prelude.facts;
    let is_whole = answer.reply.append_body([&prelude.body], prelude.counts).is_ok();
    let mut target = Target { ask, answer, worker, memory: &mut memory, facts };
    let verdict = match is_whole && target.take_records().is_some() {
        true => target.resume(),
        false => Verdict::Reply(Rcode::SERVFAIL, Reason::HandlerFailed, REUSE),
    };
    worker.target_memory = Some(memory);
    verdict
}

/// The facts about a reply that was written for a reason.
fn facts_of(answer: &Answer<'_>, reason: Reason) -> PreludeFacts {
    let Answer { flags, answering_label, ede, .. } = *answer;
    PreludeFacts { flags, answering_label, reason, ede }
}

/// A reply behind whose aliases a target is answered.
struct Target<'t, 's, 'b> {
    /// The query of the client.
    ask: &'t Ask<'s>,
    /// The reply under way: that to the client, or to the query for the target.
    answer: &'t mut Answer<'b>,
    /// The state of the worker.
    worker: &'t mut Worker,
    /// The records so far, and the query for the target.
    memory: &'t mut TargetMemory,
    /// The facts about the first part of the reply.
    facts: PreludeFacts,
}

impl Target<'_, '_, '_> {
    /// Follows the alias that ends the reply, and those that the answers to targets end with.
    fn follow(mut self) -> Verdict {
        if self.take_records().is_none() {
            return Verdict::Reply(Rcode::NOERROR, self.facts.reason, REUSE);
        }
        self.follow_taken()
    }

    /// Goes on with what has become of the query for a target.
    fn resume(mut self) -> Verdict {
        let message = std::mem::take(&mut self.memory.message);
        let is_entered = self.enter(&message);
        self.memory.message = message;
        if !is_entered {
            return self.end(LEFT);
        }
        match self.ask_target(self.ask.progress) {
            Verdict::GoesOn(_) if self.takes_alias() => self.follow_taken(),
            verdict => self.end(verdict),
        }
    }

    /// Follows the alias that ends the reply, whose records are taken already.
    fn follow_taken(mut self) -> Verdict {
        let received_nanos = self.ask.received_nanos();
        let asked_by_code = !self.ask.progress.is_counted();
        let history = History { received_nanos, asked_by_code, ..History::default() };
        let (resumption, history) = (Resumption::New, Some(&history));
        let progress = Progress { resumption, history, rewritten: None };
        loop {
            if !self.enter_next() {
                return self.end(LEFT);
            }
            match self.ask_target(&progress) {
                Verdict::GoesOn(_) if self.takes_alias() => {}
                verdict => return self.end(verdict),
            }
        }
    }

    /// Adds the records of the reply to those so far; whether there is an alias among them that was
    /// not there before. Without, code would be asked the same again and again.
    fn takes_alias(&mut self) -> bool {
        let before = self.alias_owners().count();
        self.take_records().is_some() && self.alias_owners().count() > before
    }

    /// The owners of the aliases so far.
    fn alias_owners(&self) -> impl Iterator<Item = &[u8]> {
        let records = self.memory.records.records();
        records
            .filter(|(section, _, rtype, ..)| *section == Section::Answer && *rtype == Type::CNAME)
            .map(|(_, owner, ..)| owner)
    }

    /// Adds the records of the reply to those so far, but for aliases and proofs that are there
    /// already; nothing if no message has room for them.
    fn take_records(&mut self) -> Option<()> {
        let TargetMemory { records, owner, .. } = &mut *self.memory;
        let data = &mut self.worker.rdata;
        for record in self.answer.reply.records() {
            owner.clear();
            data.clear();
            record.owner_into(owner).and(record.rdata_into(data)).ok()?;
            let (section, fixed) = (record.section, (record.rtype, record.ttl));
            let may_be_known = section == Section::Authority
                || matches!(record.rtype, Type::CNAME | Type::DNAME | Type::RRSIG);
            let is_known = may_be_known
                && records.records().any(|(known, of, rtype, _, rdata)| {
                    (known, of, rtype, rdata) == (section, &**owner, record.rtype, &**data)
                });
            if !is_known {
                records.push(section, owner, fixed, data).ok()?;
            }
        }
        Some(())
    }

    /// Puts the query for the target of the last alias in place of the one in the buffer; whether
    /// there is such a target, and it may be followed.
    fn enter_next(&mut self) -> bool {
        if !self.answer.reply.last_alias(&mut self.worker.target) || self.is_end_of_chain() {
            return false;
        }
        let mut message = std::mem::take(&mut self.memory.next);
        // What has waited has the options for code, which the client's query has left out since.
        let (former, name_end) = match self.memory.message.is_empty() {
            true => (&self.memory.asked, self.ask.query.name_end),
            false => (&self.memory.message, self.memory.query.name_end),
        };
        let rest = former.get(usize::from(name_end)..).unwrap_or_default();
        message.clear();
        message.extend_from_slice(former.get(..HEADER_BYTES).unwrap_or_default());
        message.extend_from_slice(&self.worker.target);
        message.extend_from_slice(rest);
        let is_entered = self.enter(&message);
        self.memory.next = std::mem::replace(&mut self.memory.message, message);
        is_entered
    }

    /// Whether the worker's target is a name of the chain, or there are too many of them.
    fn is_end_of_chain(&self) -> bool {
        let target = &self.worker.target;
        self.alias_owners().count() >= CHAIN_MAX
            || self.alias_owners().any(|owner| owner.eq_ignore_ascii_case(target))
    }

    /// Puts a query for a target in place of the one in the buffer, and reads it; whether it may be
    /// followed.
    fn enter(&mut self, message: &[u8]) -> bool {
        let snapshot = self.ask.snapshot;
        let Ok(query) = Query::parse(message) else { return false };
        let end = usize::from(query.name_end);
        let Some(name) = message.get(HEADER_BYTES..end) else { return false };
        self.memory.name.set(name, snapshot.zones.seed());
        self.memory.query = query;
        let handlers = snapshot.handlers.as_ref();
        let is_guarded =
            handlers.is_some_and(|it| it.has_guard_here(&self.memory.name, query.qtype));
        if is_guarded || self.answer.reply.restart(message, query.question_end()).is_err() {
            return false;
        }
        (self.answer.flags, self.answer.answering_label) = (0, 0);
        (self.answer.ede, self.answer.text_bytes) = (None, 0);
        true
    }

    /// Has the query for the target answered, which has come so far.
    fn ask_target(&mut self, progress: &Progress<'_>) -> Verdict {
        let TargetMemory { query, name, .. } = &*self.memory;
        let zones = &self.ask.snapshot.zones;
        let zone = zones.find_answering(name, query.qtype);
        let zone = zone.map(|zone| &**zones.get(zone.index));
        let (start, hit) = (&Start::NONE, None);
        let ask = &Ask { query, name, zone, start, hit, progress, ..*self.ask };
        if let Break(verdict) = chain::from_code(ask, self.answer, self.worker) {
            return verdict;
        }
        if !self.may_enter(zone) {
            return LEFT;
        }
        for source in BEHIND_CODE {
            if let Break(verdict) = source(ask, self.answer, self.worker) {
                return verdict;
            }
        }
        LEFT // the last source ends every query
    }

    /// Whether the chain may be followed into the zone that holds the target, for which code has
    /// not answered.
    fn may_enter(&self, zone: Option<&ZoneEntry>) -> bool {
        let Some(entry) = zone else { return true };
        let is_forwarded = matches!(entry.source, Source::Forward(_));
        let is_own = self.ask.zone.is_some_and(|own| own.version() == entry.version());
        let is_made = matches!(
            self.facts.reason,
            Reason::Handled | Reason::HandlerCached | Reason::Templated
        );
        is_forwarded || is_own || is_made || self.ask.snapshot.settings.cross_zone
    }

    /// Ends the query as that for the last target has ended.
    fn end(mut self, verdict: Verdict) -> Verdict {
        let is_of_code = |reason| matches!(reason, Reason::Handled | Reason::HandlerCached);
        match verdict {
            Verdict::Reply(Rcode::REFUSED, reason, _) if !is_of_code(reason) => self.end_left(),
            Verdict::Reply(rcode, reason, _) => {
                let PreludeFacts { flags: first, ede, .. } = self.facts;
                let last = self.answer.flags;
                if self.answer.ede.is_none() && self.answer.text_bytes == 0 {
                    self.answer.ede = ede;
                    self.answer.set_text(&mut self.worker.body, &self.memory.text);
                }
                let is_whole = self.take_records().is_some();
                // All of it is authentic, or nothing is said of that; AA is the first name's.
                let flags = first & !flag::AD | first & last & flag::AD;
                self.write_whole(flags | last & (flag::RA | flag::TC));
                self.answer.flags |= if is_whole { 0 } else { flag::TC };
                Verdict::Reply(rcode, reason, REUSE)
            }
            Verdict::Defer => self.wait(),
            Verdict::Drop(Reason::AccessDropped) | Verdict::GoesOn(_) | Verdict::Transfer => {
                self.end_left()
            }
            Verdict::Drop(_) => verdict,
        }
    }

    /// Ends with the aliases alone: what follows is left to the client.
    fn end_left(mut self) -> Verdict {
        let PreludeFacts { flags, reason, ede, .. } = self.facts;
        self.answer.ede = ede;
        self.answer.set_text(&mut self.worker.body, &self.memory.text);
        self.write_whole(flags);
        Verdict::Reply(Rcode::NOERROR, reason, REUSE)
    }

    /// Writes all records as the reply to the client's query, with these flags.
    fn write_whole(&mut self, flags: u16) {
        self.answer.answering_label = self.facts.answering_label;
        self.answer.flags = flags;
        let TargetMemory { asked, records, .. } = &*self.memory;
        let reply = &mut self.answer.reply;
        let written = reply
            .restart(asked, self.ask.query.question_end())
            .and_then(|()| records.write(reply, None));
        if written.is_err() {
            self.answer.flags |= flag::TC;
        }
    }

    /// Has the query wait for the answer to the target. What was written so far goes with it.
    fn wait(mut self) -> Verdict {
        self.write_whole(self.facts.flags);
        // A pool may have chosen the alias by the client's network, and does not choose again.
        self.answer.note_code(self.answer.bits_looked_at());
        let (body, counts) = (self.answer.reply.body(), self.answer.reply.counts());
        if self.answer.flags & flag::TC != 0 || body.len() > PRELUDE_BYTES_MAX {
            return self.end_left();
        }
        let TargetMemory { asked, message, query, text, .. } = &*self.memory;
        let mut asked_query = *self.ask.query;
        if self.ask.client_subnet.is_none()
            && let Some(edns) = &mut asked_query.edns
        {
            edns.subnet_at = 0; // it is not believed, as the query is kept that waits
        }
        let prelude = Prelude {
            query: asked_query.abridge(asked, 0).into(),
            body: body.into(),
            counts,
            facts: self.facts,
            text: text.as_slice().into(),
        };
        let deferral = &mut self.worker.deferral;
        deferral.query = *query;
        deferral.octets = Some(message.as_slice().into());
        deferral.history.prelude = Some(Box::new(prelude));
        Verdict::Defer
    }
}

/// The end of a query for a target whose answer is left to the client.
const LEFT: Verdict = Verdict::Reply(Rcode::REFUSED, Reason::NoZone, REUSE);
