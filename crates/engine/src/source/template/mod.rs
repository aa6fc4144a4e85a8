//! Templates as a source: records that are made from the question.

use crate::answer::Answer;
use crate::ask::Ask;
use crate::code::call;
use crate::reason::Reason;
use crate::reuse::NotReused;
use crate::verdict::{Flow, reply};
use crate::worker::Worker;
use std::ops::ControlFlow::Continue;
use zonda_rewrite::Templates;
use zonda_rewrite::template::{Outcome, TemplateQuestion};
use zonda_wire::query::flag;
use zonda_wire::{Ede, Rcode};

/// Answers by the first template that is for the question, if there is any.
#[inline]
pub fn answer(ask: &Ask<'_>, answer: &mut Answer<'_>, worker: &mut Worker) -> Flow {
    match &ask.snapshot.settings.templates {
        None => Continue(()),
        Some(templates) => answer_by(ask, answer, worker, templates),
    }
}

/// Answers by the first of these templates that is for the question.
#[inline(never)] // it would only make the path of zone data longer
fn answer_by(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    templates: &Templates,
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
    let mut filled = std::mem::take(&mut worker.handler_reply);
    filled.clear();
    let is_whole = records.iter().all(|record| {
        let fixed = (record.rtype, record.ttl);
        filled.push(record.section, &record.owner, fixed, &record.rdata).is_ok()
    });
    if let Some((code, text)) = error {
        filled.extended_error(Ede(code), text);
    }
    if is_whole {
        call::write(answer, worker, &filled);
    }
    if rcode == Rcode::SERVFAIL {
        answer.flags &= !flag::AA;
    }
    worker.handler_reply = filled;
    match is_whole {
        true => reply(rcode, Reason::Templated, NotReused::Template),
        false => reply(Rcode::SERVFAIL, Reason::TemplateFailed, NotReused::Template),
    }
}
