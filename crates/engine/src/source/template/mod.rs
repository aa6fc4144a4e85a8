//! Templates as a source: records that are made from the question.

use crate::answer::Answer;
use crate::ask::Ask;
use crate::code::call;
use crate::reason::Reason;
use crate::reuse::NotReused;
use crate::verdict::{Flow, Verdict, reply};
use crate::worker::Worker;
use std::ops::ControlFlow::{Break, Continue};
use zonda_rewrite::Templates;
use zonda_rewrite::template::{Outcome, TemplateQuestion};
use zonda_wire::query::flag;
use zonda_wire::{Ede, Rcode, Section, Type};

/// A check whether an answer that ends with an alias of the worker's target cannot be written
/// before something else is fetched, of which it then takes note.
type WaitCheck = fn(&Ask<'_>, &mut Answer<'_>, &mut Worker) -> bool;

/// Answers by the first template that is for the question, if there is any; waits before it does so
/// for what its alias leads to.
#[inline]
pub fn answer(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    must_wait: WaitCheck,
) -> Flow {
    match &ask.snapshot.settings.templates {
        None => Continue(()),
        Some(templates) => answer_by(ask, answer, worker, (templates, must_wait)),
    }
}

/// Answers by the first of these templates that is for the question.
#[inline(never)] // it would only make the path of zone data longer
fn answer_by(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    (templates, must_wait): (&Templates, WaitCheck),
) -> Flow {
    let question = TemplateQuestion {
        name: ask.name.as_wire(),
        qtype: ask.query.qtype,
        client: ask.peer.address,
        protocol: ask.peer.transport.name(),
    };
    let Some(outcome) = templates.answer(question, &mut worker.target) else {
        return Continue(());
    };
    let Outcome::Reply { rcode, error, records } = outcome else {
        return reply(Rcode::SERVFAIL, Reason::TemplateFailed, NotReused::Template);
    };
    let mut filled = worker.take_handler_reply();
    filled.clear();
    let is_whole = records.iter().all(|record| {
        let fixed = (record.rtype, record.ttl);
        filled.push(record.section, &record.owner, fixed, &record.rdata).is_ok()
    });
    if let Some((code, text)) = error {
        filled.extended_error(Ede(code), text);
    }
    // A reply lies over its query: one that has begun could not wait any more.
    let alias = records.last().filter(|record| record.rtype == Type::CNAME);
    let is_followed = rcode == Rcode::NOERROR
        && matches!(ask.query.qtype, Type::A | Type::AAAA)
        && records.iter().all(|record| record.section == Section::Answer);
    if let Some(alias) = alias.filter(|_| is_whole && is_followed) {
        worker.target.clear();
        worker.target.extend_from_slice(&alias.rdata);
        if must_wait(ask, answer, worker) {
            worker.put_handler_reply(filled);
            return Break(Verdict::Defer);
        }
    }
    if is_whole {
        call::write(ask, answer, worker, (&filled, None));
    }
    if rcode == Rcode::SERVFAIL {
        answer.flags &= !flag::AA;
    }
    worker.put_handler_reply(filled);
    match is_whole {
        true => reply(rcode, Reason::Templated, NotReused::Template),
        false => reply(Rcode::SERVFAIL, Reason::TemplateFailed, NotReused::Template),
    }
}
