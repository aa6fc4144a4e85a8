//! Answers from zone data (rfc1034#4.3.2).
//!
//! A question walks through at most [`CHAIN_MAX`](crate::worker::CHAIN_MAX) names: its own and the
//! targets of the CNAME and DNAME records that it meets. The last name decides the response code
//! (rfc6604#3).

mod additional;
mod alias;
mod cluster;
mod follow;
mod proof;
mod search_path;
mod steered;
mod walk;
mod write;

pub use cluster::is_of_cluster;
pub use search_path::fetched_name;

use crate::answer::Answer;
use crate::ask::Ask;
use crate::reason::Reason;
use crate::reuse::{NotReused, Reuse};
use crate::verdict::Verdict;
use crate::worker::Worker;
use crate::zones::ClusterZone;
use cluster::ClusterAnswer;
use follow::ZoneData;
use walk::Walk;
use write::Writer;
use zonda_cluster::ClusterMatch;
use zonda_wire::query::flag;
use zonda_wire::{Full, Rcode, Type};
use zonda_zone::Zone;

/// Answers the query from zone data.
#[inline(never)] // the reply to a name in no zone needs none of the memory that this takes
pub fn answer<'s>(
    ask: &Ask<'s>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    zone: &'s Zone,
) -> Verdict {
    let reuse = match ask.query.qtype {
        Type::ANY => Reuse::No(NotReused::Any),
        _ => Reuse::AS_IT_IS,
    };
    begin(Writer { ask, answer, worker, reuse }, (zone, None), None)
}

/// Answers the query from the names of a cluster.
#[inline(never)] // it would only make the path of zone data longer
pub fn answer_from_cluster<'s>(
    ask: &Ask<'s>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    zone: &'s ClusterZone,
) -> Verdict {
    let reuse = cluster::reuse(ask, zone);
    let found = cluster::find(ask, zone);
    let mut writer = Writer { ask, answer, worker, reuse };
    let data = (&*zone.data, Some(zone));
    let Some(ClusterMatch::Service(found)) = found else { return begin(writer, data, found) };
    let (mut records, _) = ClusterAnswer::new(&mut writer, 0, zone);
    match records.service_records(found) {
        Ok(true) => {
            writer.answer.flags |= flag::AA;
            Verdict::Reply(Rcode::NOERROR, Reason::Answered, writer.reuse)
        }
        Ok(false) => {
            let mut walk = Walk::new(writer, data);
            let ended = walk.end_without_data();
            verdict_of(&mut walk, ended)
        }
        Err(Full) => {
            writer.answer.flags |= flag::TC;
            Verdict::Reply(Rcode::NOERROR, Reason::Answered, Reuse::No(NotReused::Truncated))
        }
    }
}

/// Walks from the name asked for, in a zone; `found` is what it stands for in a cluster.
#[inline(always)] // there are two calls, of which one is on the shortest path
fn begin<'s>(
    writer: Writer<'_, 's, '_>,
    zone: ZoneData<'s>,
    found: Option<ClusterMatch<'s>>,
) -> Verdict {
    writer.worker.proven.clear();
    let mut walk = Walk::new(writer, zone);
    walk.found = found;
    let ended = walk.run();
    verdict_of(&mut walk, ended)
}

/// How a query ends whose walk has ended so: cut off if the reply had no room.
#[inline(always)] // on the shortest path
fn verdict_of(walk: &mut Walk<'_, '_, '_>, ended: Result<Verdict, Full>) -> Verdict {
    ended.unwrap_or_else(|Full| {
        walk.writer.answer.flags |= flag::TC;
        Verdict::Reply(walk.rcode, walk.reason, Reuse::No(NotReused::Truncated))
    })
}

/// Continues, in zone data, the chain of an answer of upstreams that was written, and that ends
/// with an alias of a name in a zone of this server: its data win over theirs.
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
    let ended = walk.run();
    walk.writer.answer.flags = flags; // AA speaks of the name asked for
    match ended {
        Ok(Verdict::Reply(rcode, _, _)) => Verdict::Reply(rcode, reason, REUSE),
        Ok(verdict) => verdict,
        Err(Full) => {
            walk.writer.answer.flags |= flag::TC;
            Verdict::Reply(walk.rcode, reason, REUSE)
        }
    }
}
