//! The SOA record by which resolvers cache a negative reply of code (rfc2308#5): that of the zone
//! which holds the name, or one that is made.

use super::made_soa::{NegativeSoa, write_made_soa};
use super::pattern::Pattern;
use crate::snapshot::Snapshot;
use crate::zones::{Source, ZoneEntry};
use zonda_zone::{LookupName, Zone};

/// Returns the zone of this server that holds a name, if it has data; writes the data of its SOA
/// record, with the seconds in place of its minimum, into `rdata`.
pub fn enclosing_soa<'s>(
    snapshot: &'s Snapshot,
    name: &LookupName,
    ttl_secs: u32,
    rdata: &mut Vec<u8>,
) -> Option<&'s ZoneEntry> {
    let entry = snapshot.zones.get(snapshot.zones.find(name, name.label_count())?.index);
    let zone: &Zone = match &entry.source {
        Source::Data(zone) => zone,
        Source::Local(local) => &local.zone,
        Source::Cluster(cluster) => &cluster.data,
        Source::Forward(_) | Source::Excepted | Source::Unavailable(_) => return None,
    };
    rdata.clear();
    rdata.extend_from_slice(zone.soa().0.first());
    *rdata.last_chunk_mut()? = ttl_secs.to_be_bytes();
    Some(entry)
}

/// Returns the SOA record of a negative reply to a query for a name, which the handler of a pattern
/// has made; its data are written into `rdata`.
pub(crate) fn negative_soa<'a>(
    snapshot: &'a Snapshot,
    name: &'a LookupName,
    (pattern, ttl_secs): (Option<&Pattern>, u32),
    rdata: &'a mut Vec<u8>,
) -> NegativeSoa<'a> {
    let apex = match enclosing_soa(snapshot, name, ttl_secs, rdata) {
        Some(entry) => entry.apex.as_wire(),
        None => {
            let spelled_out = pattern.map_or(0, Pattern::literal_labels);
            let apex = match spelled_out {
                0 => name.as_wire(), // a name above could be another server's
                labels => name.suffix(name.label_count().saturating_sub(labels)),
            };
            rdata.clear();
            write_made_soa(apex, ttl_secs, rdata);
            apex
        }
    };
    NegativeSoa { apex, ttl_secs, rdata }
}
