//! Answers from zone data (rfc1034#4.3.2).
//!
//! A question walks through at most [`CHAIN_MAX`](crate::worker::CHAIN_MAX) names: its own and the
//! targets of the CNAME and DNAME records that it meets. The last name decides the response code
//! (rfc6604#3).

mod additional;
mod alias;
mod cluster;
mod flatten;
mod follow;
mod onward;
mod proof;
mod search_path;
mod steered;
mod walk;
mod write;

pub use cluster::is_of_cluster;
pub use flatten::must_fetch_behind;
pub use onward::{continue_chain, follow_of_code, follow_written, must_fetch_written};
pub use search_path::fetched_name;

use crate::answer::Answer;
use crate::ask::Ask;
use crate::reason::Reason;
use crate::reuse::{NotReused, Reuse};
use crate::verdict::Verdict;
use crate::worker::Worker;
use crate::zones::ClusterZone;
use cluster::ClusterAnswer;
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
    worker.proven.clear();
    let mut walk = Walk::new(Writer { ask, answer, worker, reuse }, (zone, None));
    let ended = walk.run();
    verdict_of(&mut walk, ended)
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
    let Some(ClusterMatch::Service(found)) = found else {
        writer.worker.proven.clear();
        let mut walk = Walk::new(writer, data);
        walk.found = found;
        let ended = walk.run_apart();
        return verdict_of(&mut walk, ended);
    };
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

/// How a query ends whose walk has ended so: cut off if the reply had no room.
#[inline(always)] // on the shortest path
fn verdict_of(walk: &mut Walk<'_, '_, '_>, ended: Result<Verdict, Full>) -> Verdict {
    ended.unwrap_or_else(|Full| {
        walk.writer.answer.flags |= flag::TC;
        Verdict::Reply(walk.rcode, walk.reason, Reuse::No(NotReused::Truncated))
    })
}
