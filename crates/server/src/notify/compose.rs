//! Messages about the version of a zone in force, made and signed at the moment they are sent.

use super::message::announcement;
use super::schedule::Target;
use std::sync::Arc;
use std::time::SystemTime;
use zonda_engine::Snapshot;
use zonda_engine::access::NotifyReceiver;
use zonda_engine::zones::{Source, ZoneEntry};
use zonda_wire::Name;
use zonda_wire::tsig::ReplySignature;
use zonda_zone::{Zone, random_octets};

/// A message about a version of a zone.
pub struct Announcement {
    /// The id of the message.
    pub id: u16,
    /// The serial of the version.
    pub serial: u32,
    /// The message in wire form.
    pub octets: Vec<u8>,
    /// What the reply is checked with, if the message is signed.
    pub signature: Option<ReplySignature>,
}

/// Makes the message to a receiver about the version of a zone that a snapshot has, and signs it if
/// the receiver has a key; the time is in seconds since 1970. None if there is no such zone, or the
/// receiver is not told of it.
pub fn compose(target: &Target, snapshot: &Snapshot, unix_secs: u64) -> Option<Announcement> {
    let (entry, zone) = find(snapshot, &target.zone)?;
    let receiver = receivers(entry).iter().find(|it| it.address == target.receiver)?;
    let key = receiver.key.map(|key| snapshot.settings.keys.get(key));
    if matches!(key, Some(None)) {
        return None; // the configuration names no key that there is not
    }
    let id = u16::from_be_bytes(random_octets());
    let (soa, _) = zone.soa();
    let mut octets = announcement(id, &entry.apex, (soa.ttl, soa.first()));
    let signature = key
        .flatten()
        .and_then(|key| ReplySignature::sign_query(Arc::clone(key), &mut octets, unix_secs));
    Some(Announcement { id, serial: zone.serial(), octets, signature })
}

/// A zone with data of its own, and the data.
pub fn find<'s>(snapshot: &'s Snapshot, zone: &Name) -> Option<(&'s ZoneEntry, &'s Arc<Zone>)> {
    let entry = snapshot.zones.get(snapshot.zones.index_of(zone)?);
    match &entry.source {
        Source::Data(zone) => Some((entry, zone)),
        Source::Local(local) => Some((entry, &local.zone)),
        Source::Cluster(names) => Some((entry, &names.data)),
        _ => None,
    }
}

/// The servers that are told of new versions of a zone.
pub fn receivers(entry: &ZoneEntry) -> &[NotifyReceiver] {
    entry.access.as_ref().map_or(&[], |access| &access.transfers.notify)
}

/// The seconds since 1970.
pub fn unix_secs() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.as_secs())
}
