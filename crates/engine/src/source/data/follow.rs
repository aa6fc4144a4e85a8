//! Which sources a chain of aliases may be followed into.

use super::alias::{data_of, forwarded_target};
use super::write::Writer;
use crate::ask::Ask;
use crate::deferral::{Deferral, To};
use crate::reason::Reason;
use crate::reuse::NotReused;
use crate::zones::{ClusterZone, Source, ZoneEntry};
use zonda_wire::Rcode;
use zonda_wire::query::flag;
use zonda_zone::Zone;

/// Whether aliases lead from the name asked for to one that is forwarded, and the client may have
/// it looked up; notes what to fetch, then.
#[inline(never)] // it would only make the path of zone data longer
pub fn must_fetch_target(writer: &mut Writer<'_, '_, '_>) -> bool {
    let ask = writer.ask;
    let Some((found, name)) = forwarded_target(ask.snapshot, ask.name, ask.query.qtype) else {
        return false;
    };
    let entry = ask.snapshot.zones.get(found.index);
    let Source::Forward(forward) = &entry.source else { return false };
    writer.reuse.forbid(NotReused::Recursion); // other clients get the aliases alone
    writer.worker.deferral =
        Deferral { is_alias: true, ..Deferral::new(To::Forward(forward.number), name.hash(0)) };
    ask.query.flags & flag::RD != 0 && is_allowed(ask, entry)
}

/// A zone with data, and the cluster whose names it has, if it has such.
pub type ZoneData<'s> = (&'s Zone, Option<&'s ClusterZone>);

/// The zone data that hold the name at a hop; none if there are none, or none that the client may
/// see.
pub fn zone_of<'s>(writer: &mut Writer<'_, 's, '_>, hop: usize) -> Option<ZoneData<'s>> {
    let ask = writer.ask;
    let snapshot = ask.snapshot;
    let found = snapshot.zones.find_answering(writer.name(hop), ask.query.qtype)?;
    let entry = snapshot.zones.get(found.index);
    let is_allowed = is_allowed(ask, entry);
    let data = data_of(&entry.source).filter(|_| is_allowed);
    let is_restricted = entry.access.as_ref().is_some_and(|list| list.restricts_queries());
    if !is_allowed || data.is_some() && is_restricted {
        writer.reuse.forbid(NotReused::AccessList);
    } else if ask.zone.is_none_or(|own| own.version() != entry.version()) {
        writer.reuse.forbid(NotReused::OtherZone);
    }
    let cluster = match &entry.source {
        Source::Cluster(zone) => Some(&**zone),
        _ => None,
    };
    data.map(|data| (data, cluster))
}

/// How a chain ends that upstreams have answered and that leads to a name at a hop of which nothing
/// is said: as it was if this client may not be told, else with a failure.
pub fn end_of_chain(
    writer: &Writer<'_, '_, '_>,
    hop: usize,
    end: (Rcode, Reason),
) -> (Rcode, Reason) {
    let (ask, zones) = (writer.ask, &writer.ask.snapshot.zones);
    let found = zones.find_answering(writer.name(hop), ask.query.qtype);
    let entry = found.map(|zone| zones.get(zone.index));
    match entry.map(|entry| (&entry.source, is_allowed(ask, entry))) {
        Some((Source::Unavailable(reason), true)) => (Rcode::SERVFAIL, *reason),
        // They would have been asked, had the zones not changed meanwhile.
        Some((Source::Forward(_), true)) | None => (Rcode::SERVFAIL, Reason::UpstreamFailed),
        Some(_) => end,
    }
}

/// Whether the client may ask for what a zone holds.
pub(super) fn is_allowed(ask: &Ask<'_>, entry: &ZoneEntry) -> bool {
    entry.allows(ask.peer.address.ip(), ask.signature, ask.question_type())
}
