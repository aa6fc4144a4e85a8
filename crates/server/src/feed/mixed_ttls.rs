//! Sets of a transfer whose records have different times to live: all get the least of them
//! (rfc2181#5.2), and the log says so, as the primary answers otherwise.

use std::collections::{BTreeMap, HashSet};
use zonda_wire::{Name, Type};
use zonda_zone::{Diff, Records, Zone};

/// Counts the sets of a whole zone in which a record has another TTL than the one in front of it,
/// as primaries send the records of a set together.
pub fn in_zone(records: &Records) -> usize {
    let (mut count, mut last, mut is_mixed) = (0, None, false);
    for record in records.iter().filter(|record| record.rtype != Type::RRSIG) {
        let set = (record.rtype, record.owner);
        match last {
            Some((former, ttl)) if former == set => is_mixed |= ttl != record.ttl,
            _ => {
                count += usize::from(std::mem::take(&mut is_mixed));
            }
        }
        last = Some((set, record.ttl));
    }
    count + usize::from(is_mixed)
}

/// Counts the sets for which changes bring a record with another TTL than the set then has, or than
/// the records have that stay in it.
pub fn in_changes(former: &Zone, next: &Zone, changes: &[Diff]) -> usize {
    let (mut count, mut seen) = (0, HashSet::new());
    for change in changes.iter().rev() {
        let mut sets: BTreeMap<(&[u8], Type), (u32, usize)> = BTreeMap::new();
        for record in change.added.iter().filter(|record| record.rtype != Type::RRSIG) {
            let (ttl_max, _) = sets.entry((record.owner, record.rtype)).or_default();
            *ttl_max = record.ttl.max(*ttl_max);
        }
        for record in change.removed.iter() {
            if let Some((_, removed)) = sets.get_mut(&(record.owner, record.rtype)) {
                *removed += 1;
            }
        }
        for ((owner, rtype), (ttl_max, removed)) in sets {
            if !seen.insert((owner, rtype)) {
                continue; // a later change of the set tells more
            }
            let Some((ttl, _)) = set(next, owner, rtype) else { continue };
            // What stays is known of the version in front of a single change alone.
            let stays = set(former, owner, rtype).filter(|_| changes.len() == 1);
            let has_other = stays.is_some_and(|(old, records)| records > removed && old != ttl);
            count += usize::from(ttl_max != ttl || has_other);
        }
    }
    count
}

/// The TTL of a set, and the number of its records.
fn set(zone: &Zone, owner: &[u8], rtype: Type) -> Option<(u32, usize)> {
    let set = zone.set_at(owner, rtype)?;
    Some((set.ttl, usize::from(set.count)))
}

/// Tells in the log that sets of a transfer had records with different TTLs, if some had.
pub fn tell(zone: &Name, sets: usize) {
    if sets > 0 {
        tracing::warn!(
            %zone,
            sets,
            "records of a set had different TTLs at the primary: all have the least of them here"
        );
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use zonda_zone::file::{Options, read_text};
    use zonda_zone::{HashSeed, build};

    /// The records of a zone with some more.
    fn records(more: &str) -> Records {
        let text = format!("@ 60 SOA ns host 7 1 1 1 1\n@ 60 NS ns\nns 60 A 192.0.2.1\n{more}");
        let apex = "example.org".parse().unwrap();
        read_text(text.as_bytes(), "text".as_ref(), &apex, &Options::default()).0
    }

    /// The zone with these records.
    fn zone(records: &Records) -> Zone {
        build(&"example.org".parse().unwrap(), records, HashSeed::random()).unwrap()
    }

    #[test]
    fn sets_of_a_zone_with_several_ttls_are_counted_once_each() {
        assert_eq!(in_zone(&records("a 60 A 192.0.2.1\na 60 A 192.0.2.2\na 5 TXT t\n")), 0);
        let mixed = "a 60 A 192.0.2.1\na 30 A 192.0.2.2\na 60 A 192.0.2.3\nb 1 A 192.0.2.1\n";
        assert_eq!(in_zone(&records(mixed)), 1);
        assert_eq!(in_zone(&records("a 60 A 192.0.2.1\na 30 A 192.0.2.2\n")), 1, "at the end");
    }

    #[test]
    fn sets_that_changes_leave_with_several_ttls_are_counted() {
        let former = zone(&records("a 60 A 192.0.2.1\n"));
        for (added, expected) in [
            ("a 60 A 192.0.2.2\n", 0),
            ("a 300 A 192.0.2.2\n", 1),
            ("a 10 A 192.0.2.2\n", 1),
            ("b 10 A 192.0.2.2\nb 20 A 192.0.2.3\n", 1),
            ("b 10 A 192.0.2.2\nb 10 A 192.0.2.3\n", 0),
        ] {
            let all = records(added);
            let mut change = Diff { from: 7, to: 7, ..Diff::default() };
            all.iter().skip(3).for_each(|record| _ = change.added.push(record, 0));
            let next = former.with(&former.changes_of(&change).unwrap()).unwrap().0;
            assert_eq!(in_changes(&former, &next, &[change]), expected, "{added}");
        }
    }
}
