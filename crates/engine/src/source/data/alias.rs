//! Aliases in zone data of names that other servers answer for.
//!
//! What they say is fetched under the name that the chain leads to, and written behind the chain
//! when the query is resumed.

use super::write::Writer;
use crate::code::claim::has_exact_route;
use crate::deferral::{UpstreamAnswer, write_message};
use crate::reuse::NotReused;
use crate::snapshot::Snapshot;
use crate::worker::{CHAIN_MAX, Worker};
use crate::zones::{Source, ZoneMatch};
use zonda_wire::query::flag;
use zonda_wire::response::Response;
use zonda_wire::{Full, Owner, Type, name};
use zonda_zone::{LookupName, LookupResult, Zone};

/// Returns the forwarded zone into which the aliases from a name lead, and the name that they lead
/// to; none if there are no aliases, or they end elsewhere, also at code, which the client then
/// asks.
pub(super) fn forwarded_target(
    snapshot: &Snapshot,
    name: &LookupName,
    qtype: Type,
) -> Option<(ZoneMatch, LookupName)> {
    if matches!(qtype, Type::ANY | Type::RRSIG | Type::NSEC | Type::CNAME) {
        return None;
    }
    let mut name = name.clone();
    let mut found = snapshot.zones.find_answering(&name, qtype)?;
    for _ in 0..CHAIN_MAX {
        let zone = data_of(&snapshot.zones.get(found.index).source)?;
        let node = match zone.find(&name, qtype == Type::DS) {
            LookupResult::Exact(node) | LookupResult::Wildcard { node, .. } => node,
            LookupResult::Missing { .. } | LookupResult::Referral(_) | LookupResult::Dname(_) => {
                return None;
            }
        };
        let target = node.set(Type::CNAME).filter(|_| node.set(qtype).is_none())?.first();
        name.set(target, snapshot.zones.seed());
        let stays = name::is_at_or_below(target, zone.apex()) && !snapshot.settings.cross_zone;
        if stays {
            continue;
        }
        found = snapshot.zones.find_answering(&name, qtype)?;
        match &snapshot.zones.get(found.index).source {
            Source::Forward(_) if has_exact_route(snapshot, &name, qtype) => return None,
            Source::Forward(_) => return Some((found, name)),
            _ if snapshot.settings.cross_zone => {}
            _ => return None,
        }
    }
    None
}

/// The data of this server that a zone has: they may be those of a larger zone that lends them.
/// Overlays in front of them are for clients that ask for these names, and do not count.
pub(super) fn data_of(source: &Source) -> Option<&Zone> {
    match source {
        Source::Data(zone) => Some(zone),
        Source::Local(local) => Some(&local.zone),
        Source::Cluster(zone) => Some(&zone.data),
        Source::Forward(_) | Source::Excepted | Source::Unavailable(_) => None,
    }
}

/// Writes what upstreams answered for the name that a chain leads to.
pub(super) fn append(
    writer: &mut Writer<'_, '_, '_>,
    fetched: &UpstreamAnswer<'_>,
) -> Result<(), Full> {
    writer.answer.flags |= flag::RA;
    writer.reuse.forbid(NotReused::Forwarded);
    let Worker { message, owner, rdata, .. } = &mut *writer.worker;
    write_message((fetched.name, writer.ask.query.qtype), fetched.counts, fetched.body, message);
    let records = Response::parse(message).ok();
    let records = records.iter().flat_map(Response::records);
    for record in records {
        owner.clear();
        rdata.clear();
        if record.owner_into(owner).and(record.rdata_into(rdata)).is_ok() {
            let fixed = (record.rtype, record.class, record.ttl);
            writer.answer.reply.record(record.section, Owner::Name(owner), fixed, rdata)?;
        }
    }
    Ok(())
}
