//! Chains of aliases that begin in an answer which another source has written.

use super::alias::{append, data_of, forwarded_target};
use super::flatten::must_fetch_behind;
use super::follow::{self, is_allowed};
use super::walk::Walk;
use super::write::Writer;
use crate::answer::Answer;
use crate::ask::Ask;
use crate::checkpoint::Checkpoint;
use crate::code::History;
use crate::code::claim::{has_exact_route, has_route, is_of_code};
use crate::deferral::{Deferral, To};
use crate::kept_query;
use crate::reason::Reason;
use crate::reuse::{NotReused, Reuse};
use crate::snapshot::Snapshot;
use crate::verdict::Verdict;
use crate::worker::Worker;
use crate::zones::{Source, ZoneMatch};
use zonda_wire::query::flag;
use zonda_wire::{Full, Rcode, Type};
use zonda_zone::LookupName;

/// The source of what follows an alias that a template makes.
#[expect(
    clippy::large_enum_variant,
    reason = "a box would be an allocation for each query whose alias is forwarded"
)]
enum WrittenEnd {
    /// None: what follows is left to the client.
    Left,
    /// The data of this server.
    Data,
    /// The upstreams of this forwarded zone, which are asked for this name.
    Forwarded(ZoneMatch, LookupName),
}

/// Finds the source of what follows an alias of `target`.
fn end_of_written(snapshot: &Snapshot, target: LookupName, qtype: Type) -> WrittenEnd {
    let Some(found) = snapshot.zones.find_answering(&target, qtype) else {
        return WrittenEnd::Left;
    };
    match &snapshot.zones.get(found.index).source {
        Source::Forward(_) if has_exact_route(snapshot, &target, qtype) => WrittenEnd::Left,
        Source::Forward(_) => WrittenEnd::Forwarded(found, target),
        _ => forwarded_target(snapshot, &target, qtype)
            .map_or(WrittenEnd::Data, |(found, name)| WrittenEnd::Forwarded(found, name)),
    }
}

/// Whether the reply that a template makes has to wait because it ends with an alias of the
/// worker's target, which leads to upstreams or to a name with an ALIAS record; notes what to
/// fetch, then, and of the query, which code may be asked anew.
pub fn must_fetch_written(ask: &Ask<'_>, answer: &mut Answer<'_>, worker: &mut Worker) -> bool {
    let (snapshot, qtype) = (ask.snapshot, ask.query.qtype);
    kept_query::keep(ask, answer, worker);
    if ask.progress.upstream_answer().is_some() || !snapshot.zones.has_forwards() {
        return false;
    }
    let target = LookupName::new(&worker.target, snapshot.zones.seed());
    let (found, name) = match end_of_written(snapshot, target, qtype) {
        WrittenEnd::Left => return false,
        WrittenEnd::Data => return must_fetch_behind(ask, answer, worker),
        WrittenEnd::Forwarded(found, name) => (found, name),
    };
    let entry = snapshot.zones.get(found.index);
    let Source::Forward(forward) = &entry.source else { return false };
    let deferral = Deferral::new(To::Forward(forward.number), name.hash(0));
    let checkpoint = Some(Checkpoint::Target(name.as_wire().into()));
    let history = History { checkpoint, ..deferral.history.clone() };
    worker.deferral = Deferral { is_alias: true, history, ..deferral };
    ask.query.flags & flag::RD != 0 && is_allowed(ask, entry)
}

/// Follows the alias that ends an answer which a template has made: into zones of this server, and
/// to what upstreams have said, for which the query has waited. Code goes on where it has the
/// target. One that this server does not answer for, or that the client may not ask for, is left to
/// the client.
pub fn follow_written(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    reason: Reason,
) -> Verdict {
    const REUSE: Reuse = Reuse::No(NotReused::Template);
    let end = Verdict::Reply(Rcode::NOERROR, reason, REUSE);
    let (snapshot, qtype) = (ask.snapshot, ask.query.qtype);
    if !answer.reply.last_alias(&mut worker.target) {
        return end;
    }
    let target = LookupName::new(&worker.target, snapshot.zones.seed());
    let is_of_code = is_of_code(snapshot, &target, qtype);
    let name = match end_of_written(snapshot, target, qtype) {
        WrittenEnd::Left if is_of_code => return Verdict::GoesOn(reason),
        WrittenEnd::Left => return end,
        WrittenEnd::Data => return continue_chain(ask, answer, worker, reason),
        WrittenEnd::Forwarded(_, name) => name,
    };
    let is_direct = name.as_wire().eq_ignore_ascii_case(&worker.target);
    let Some(fetched) = ask.progress.upstream_answer() else { return end };
    if !is_direct {
        return continue_chain(ask, answer, worker, reason);
    }
    if !fetched.is_for(name.as_wire()) {
        return end;
    }
    let (rcode, goes_on) = (fetched.rcode, fetched.goes_on);
    let mut writer = Writer { ask, answer, worker, reuse: REUSE };
    if append(&mut writer, fetched).is_err() {
        writer.answer.flags |= flag::TC;
        return end;
    }
    match goes_on {
        true => continue_chain(ask, answer, worker, reason),
        false if rcode == Rcode::SERVFAIL => {
            // Why upstreams have failed outranks what the template says of its answer.
            answer.ede = None;
            answer.set_text(&mut worker.body, fetched.text);
            Verdict::Reply(rcode, fetched.reason, REUSE)
        }
        false => Verdict::Reply(rcode, reason, REUSE),
    }
}

/// Follows the alias that ends an answer of code to code that has the target, or into zone data of
/// this server that the client may query. A target that upstreams would be asked for, or that this
/// server does not answer for, is left to the client.
#[inline(never)] // it would only make the path of other answers longer
pub fn follow_of_code(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    reason: Reason,
) -> Verdict {
    const REUSE: Reuse = Reuse::No(NotReused::Code);
    let end = Verdict::Reply(Rcode::NOERROR, reason, REUSE);
    let (snapshot, qtype) = (ask.snapshot, ask.query.qtype);
    if !answer.reply.last_alias(&mut worker.target) {
        return end;
    }
    let target = LookupName::new(&worker.target, snapshot.zones.seed());
    let found = snapshot.zones.find_answering(&target, qtype);
    let is_data = found.is_some_and(|it| data_of(&snapshot.zones.get(it.index).source).is_some());
    if has_route(snapshot, &target, qtype) || !is_data && is_of_code(snapshot, &target, qtype) {
        return Verdict::GoesOn(reason);
    }
    if !is_data {
        return end;
    }
    match continue_chain(ask, answer, worker, reason) {
        Verdict::Reply(rcode, reason, _) => Verdict::Reply(rcode, reason, REUSE),
        Verdict::GoesOn(_) => Verdict::GoesOn(reason),
        _ => end, // nothing waits behind what was written
    }
}

/// Continues, in zone data, the chain of an answer that was written, of upstreams or of a template,
/// and that ends with an alias of a name in a zone of this server: its data win over theirs.
#[inline(never)] // it would only make the path of zone data longer
pub fn continue_chain(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    reason: Reason,
) -> Verdict {
    const REUSE: Reuse = Reuse::No(NotReused::Forwarded);
    worker.proven.clear();
    let flags = answer.flags;
    if !answer.reply.last_alias(&mut worker.target) {
        return Verdict::Reply(Rcode::NOERROR, reason, REUSE);
    }
    worker.chain.set(0, &worker.target, ask.snapshot.zones.seed());
    let mut writer = Writer { ask, answer, worker, reuse: REUSE };
    let Some(zone) = follow::zone_of(&mut writer, 1) else {
        let (rcode, reason) = follow::end_of_chain(&writer, 1, (Rcode::NOERROR, reason));
        return Verdict::Reply(rcode, reason, REUSE);
    };
    let mut walk = Walk::behind_answer(writer, zone);
    let ended = walk.run_apart();
    walk.writer.answer.flags = flags; // AA speaks of the name asked for
    match ended {
        Ok(Verdict::Reply(Rcode::SERVFAIL, why, _)) => Verdict::Reply(Rcode::SERVFAIL, why, REUSE),
        Ok(Verdict::Reply(rcode, _, _)) => Verdict::Reply(rcode, reason, REUSE),
        Ok(Verdict::GoesOn(_)) => Verdict::GoesOn(reason),
        Ok(verdict) => verdict,
        Err(Full) => {
            walk.writer.answer.flags |= flag::TC;
            Verdict::Reply(walk.rcode, reason, REUSE)
        }
    }
}
