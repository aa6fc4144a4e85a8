//! Deferring a query: what its deferral has to have for when the query is resumed.

use crate::answer::Answer;
use crate::ask::Ask;
use crate::checkpoint::{Checkpoint, ZoneCheckpoint};
use crate::code::History;
use crate::deferral::{Deferral, To};
use crate::prepared::PreparedQuery;
use crate::signature;
use crate::worker::Worker;
use zonda_wire::Fault;

/// Returns what a deferred query waits for, and the facts about it that are needed when it is
/// resumed.
#[cold]
pub(crate) fn deferral(
    ask: &Ask<'_>,
    answer: &Answer<'_>,
    worker: &mut Worker,
    prepared: &PreparedQuery,
) -> Deferral {
    let tags = std::mem::take(worker.tags_mut());
    let state = std::mem::take(worker.query_state_mut());
    let asked_by_code = ask.progress.history.is_some_and(|history| history.asked_by_code);
    let code = match worker.deferral.to {
        To::Code(elsewhere) => Some(elsewhere),
        To::Forward(_) | To::Transfer | To::Update | To::Relay => None,
    };
    let History { then, is_guarded, has_passed_middleware, search_step, .. } =
        worker.deferral.history;
    let target = worker.deferral.history.checkpoint.take();
    let prelude = worker.deferral.history.prelude.take();
    let checkpoint = match prelude {
        None => target.or_else(|| checkpoint(ask, &worker.deferral, prepared)),
        Some(_) => target,
    };
    let change = ask.progress.change().map(|change| Box::new(change.clone()));
    let history = History {
        received_nanos: ask.received_nanos(),
        tags,
        state,
        code,
        then,
        is_guarded,
        has_passed_middleware,
        asked_by_code,
        code_scope: answer.code_scope,
        checkpoint,
        prelude,
        change,
        signature: ask.signature.map(|signature| Box::new(*signature)),
        search_step,
        option_codes: ask.option_codes,
    };
    let rewritten = ask.progress.rewritten.map(|it| it.len);
    // Of a signed query, what was in front of its signature.
    let unsigned = prepared.signature.map(|_| prepared.signed_at).filter(|len| *len > 0);
    let octets = rewritten.or(unsigned).and_then(|len| answer.reply.buffer().get(..len));
    // What code is asked for the target of an alias has a question of its own.
    let of_target = worker.deferral.octets.take();
    let mut query = if of_target.is_some() { worker.deferral.query } else { *ask.query };
    let mut hides_subnet = false;
    if let Some(edns) = &mut query.edns
        && ask.client_subnet.is_none()
    {
        hides_subnet = edns.subnet_at > 0;
        edns.subnet_at = 0;
    }
    let octets = of_target.or_else(|| octets.map(Into::into));
    let Deferral { to, name_hash, is_alias, missed_at, .. } = worker.deferral;
    let signature_record = worker.deferral.signature_record.take();
    let deferral = Deferral {
        to,
        query,
        hides_subnet,
        name_hash,
        is_alias,
        missed_at,
        octets,
        signature_record,
        history,
    };
    match deferral.to {
        To::Relay => with_signature_record(deferral, answer.reply.buffer(), prepared),
        _ => deferral,
    }
}

/// Adds to the deferral of an update that is forwarded its TSIG record. One by a key that is not
/// known here is still counted in the message, and cut off now.
fn with_signature_record(
    mut deferral: Deferral,
    buffer: &[u8],
    prepared: &PreparedQuery,
) -> Deferral {
    if prepared.signature.is_none() {
        return deferral;
    }
    let (at, is_cut_off) = match prepared.fault {
        Some(Fault::Signed(at)) => (usize::from(at), false),
        _ => (prepared.signed_at, true),
    };
    if let (Some(message), Some(record)) = (buffer.get(..at), buffer.get(at..prepared.signed_end)) {
        let mut message: Box<[u8]> = message.into();
        if !is_cut_off {
            signature::uncount(&mut message);
        }
        (deferral.octets, deferral.signature_record) = (Some(message), Some(record.into()));
    }
    deferral
}

/// Returns the point that a query has passed that is deferred to the upstreams of the zone that
/// holds its name.
fn checkpoint(ask: &Ask<'_>, deferral: &Deferral, prepared: &PreparedQuery) -> Option<Checkpoint> {
    match deferral.to {
        To::Forward(_) if !deferral.is_alias => {}
        _ => return None,
    }
    let (generation, version) = (ask.snapshot.generation, ask.zone?.version());
    Some(Checkpoint::Zone(ZoneCheckpoint { generation, version, zone: prepared.zone? }))
}
