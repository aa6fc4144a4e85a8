//! Digests of zones (ZONEMD, rfc8976) that a change makes wrong.
//!
//! A digest covers the whole zone, and is of the version whose serial it has. The server calculates
//! none, so that each change made here would leave a wrong one, with which a secondary that checks
//! digests refuses every version from then on. A zone without a digest is taken by all of them.

use zonda_wire::Type;
use zonda_zone::{ChangeError, ChangeSet, Diff, SetChange, Zone};

/// Changes a zone as [`Zone::with`] does, and removes its digest in the same change unless the
/// change brings one of the version that it leads to; the log says so if `is_logged`.
///
/// # Errors
/// When the change breaks a rule.
pub fn with_sound_digest(
    zone: &Zone,
    changes: &ChangeSet,
    is_logged: bool,
) -> Result<(Zone, Diff), ChangeError> {
    let (next, diff) = zone.with(changes)?;
    if diff.is_empty() || !has_wrong_digest(&next, changes) {
        return Ok((next, diff));
    }
    if is_logged {
        tracing::warn!(
            zone = %zone.apex_name(),
            "a change would make the ZONEMD record of the zone wrong: the record is removed"
        );
    }
    let (mut changes, owner) = (changes.clone(), zone.apex_name());
    let signatures = SetChange::RemoveSignatures { owner: owner.clone(), covered: Type::ZONEMD };
    changes
        .sets
        .extend([SetChange::Remove { owner: owner.clone(), rtype: Type::ZONEMD }, signatures]);
    zone.with(&changes)
}

/// Whether the version after changes has a digest of another one.
fn has_wrong_digest(next: &Zone, changes: &ChangeSet) -> bool {
    let Some(digests) = next.apex_node().set(Type::ZONEMD) else { return false };
    let is_of_digest = |change: &&SetChange| {
        let is_at_apex = change.owner().as_wire().eq_ignore_ascii_case(next.apex());
        is_at_apex && change.rtype() == Type::ZONEMD
    };
    let is_given = changes.sets.iter().any(|change| is_of_digest(&change));
    let serial = next.serial().to_be_bytes(); // which the data begin with, rfc8976#2.2
    !is_given || !digests.rdatas().all(|rdata| rdata.starts_with(&serial))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use zonda_wire::{Name, rdata};
    use zonda_zone::file::{Options, read_text};
    use zonda_zone::{HashSeed, Serial, SerialPolicy, build};

    /// A digest of a version; not a right one.
    fn digest(serial: u32) -> String {
        format!("{serial} 1 1 {}", "ab".repeat(48))
    }

    /// A zone of serial 7 with a digest.
    fn zone() -> Zone {
        let apex: Name = "example.org".parse().unwrap();
        let text = format!("$TTL 60\n@ SOA ns host 7 1 1 1 1\n@ NS ns\n@ ZONEMD {}\n", digest(7));
        let (records, _) = read_text(text.as_bytes(), "text".as_ref(), &apex, &Options::default());
        build(&apex, &records, HashSeed::random()).unwrap()
    }

    /// A set of one record.
    fn put(owner: &str, rtype: Type, text: &str) -> SetChange {
        let data = vec![rdata::from_text(rtype, text).unwrap().into()];
        SetChange::Put { owner: owner.parse().unwrap(), rtype, ttl: 60, data }
    }

    /// The serials of the digests after changes.
    fn digests(sets: Vec<SetChange>) -> Vec<u8> {
        let changes = ChangeSet { sets, serial: Serial::Bump(SerialPolicy::Increment) };
        let (next, _) = with_sound_digest(&zone(), &changes, false).unwrap();
        let set = next.apex_node().set(Type::ZONEMD);
        set.iter().flat_map(|set| set.rdatas()).map(|rdata| rdata[3]).collect()
    }

    #[test]
    fn a_change_removes_the_digest_in_the_same_version() {
        let sets = vec![put("www.example.org", Type::A, "192.0.2.1")];
        let changes = ChangeSet { sets, serial: Serial::Bump(SerialPolicy::Increment) };
        let (next, diff) = with_sound_digest(&zone(), &changes, false).unwrap();
        assert!(next.apex_node().set(Type::ZONEMD).is_none());
        assert_eq!((next.serial(), diff.from, diff.to), (8, 7, 8));
        let removed = |rtype| diff.removed.iter().filter(|record| record.rtype == rtype).count();
        assert_eq!((removed(Type::SOA), removed(Type::ZONEMD), diff.removed.len()), (1, 1, 2));
    }

    #[test]
    fn a_change_that_changes_nothing_leaves_the_digest() {
        assert_eq!(digests(vec![put("example.org", Type::NS, "ns.example.org.")]), [7]);
    }

    #[test]
    fn a_digest_that_the_change_brings_stays_if_it_is_of_the_next_serial() {
        let with = |serial| {
            let www = put("www.example.org", Type::A, "192.0.2.1");
            digests(vec![www, put("Example.org", Type::ZONEMD, &digest(serial))])
        };
        assert_eq!(with(8), [8]);
        assert_eq!(with(9), [0; 0]);
    }
}
