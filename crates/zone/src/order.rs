//! The canonical order of records (rfc4034#6): by owner, SOA first, then type, then data.
//!
//! Names of a zone share their end, and sorting compares few octets: the first eight that tell
//! names apart go beside each record's index, and whole names are looked at only where those tie.

use crate::records::{Record, Records};
use std::borrow::Cow;
use std::cmp::Ordering;
use zonda_wire::{Type, name, rdata};

/// Indexes of all records in canonical order; equal records keep the order they were read in.
#[must_use]
pub fn canonical(records: &Records) -> Vec<u32> {
    let shared = shared_end(records);
    let mut keyed: Vec<(u64, u32)> = (0..)
        .zip(records.iter())
        .map(|(index, record)| (sort_key(&record.owner[..record.owner.len() - shared]), index))
        .collect();
    keyed.sort_unstable_by(|a, b| {
        let whole = || compare(&records.get(a.1 as usize), &records.get(b.1 as usize));
        a.0.cmp(&b.0).then_with(whole).then(a.1.cmp(&b.1))
    });
    keyed.into_iter().map(|(_, index)| index).collect()
}

/// Returns the records in canonical order without duplicates; of equal records the first one read
/// stays.
#[must_use]
pub fn canonical_without_duplicates(records: &Records) -> Vec<u32> {
    let mut order = canonical(records);
    order.dedup_by(|later, earlier| {
        let (one, two) = (records.get(*earlier as usize), records.get(*later as usize));
        is_duplicate(&one, &two)
    });
    order
}

/// Whether two records are the same but for their TTLs and the case of names.
#[must_use]
pub fn is_duplicate(one: &Record<'_>, two: &Record<'_>) -> bool {
    compare(one, two) == Ordering::Equal
}

/// Owner, type, data.
fn compare(one: &Record<'_>, two: &Record<'_>) -> Ordering {
    let owners = || match one.owner == two.owner {
        true => Ordering::Equal,
        false => name::canonical_cmp(one.owner, two.owner),
    };
    owners().then_with(|| rank(one.rtype).cmp(&rank(two.rtype))).then_with(|| {
        canonical_data(one).cmp(&canonical_data(two)) // of one type now
    })
}

/// Where a type stands among those of its owner.
pub(crate) fn rank(rtype: Type) -> u16 {
    if rtype == Type::SOA { 0 } else { rtype.0 }
}

/// The data with its names in lower case, as far as canonical form asks for it (rfc4034#6.2).
fn canonical_data<'r>(record: &Record<'r>) -> Cow<'r, [u8]> {
    let mut data = Cow::Borrowed(record.rdata);
    for name in rdata::names(record.rtype, record.rdata) {
        if name.name_use != rdata::NameUse::Verbatim {
            data.to_mut()[name.offset..name.offset + name.len].make_ascii_lowercase();
        }
    }
    data
}

/// The octets of the longest name that all owners are at or below.
fn shared_end(records: &Records) -> usize {
    let mut owners = records.iter().map(|record| record.owner);
    let mut shared = owners.next().unwrap_or(&[0]);
    for owner in owners {
        while !name::is_at_or_below(owner, shared) {
            shared = name::parent(shared).unwrap_or(&[0]);
        }
    }
    shared.len()
}

/// Eight octets that order names as canonical order does, as far as they go.
///
/// `labels` are those before the shared end. They are taken from the right, each octet one higher
/// than it is and each label ended by 0, so that a label sorts before those that it begins.
fn sort_key(labels: &[u8]) -> u64 {
    let mut starts = [0_u8; name::LABELS_MAX];
    let (mut count, mut at) = (0, 0);
    while let Some(&len) = labels.get(at) {
        starts[count] = at as u8; // a name has at most 255 octets
        count += 1;
        at += 1 + usize::from(len);
    }
    let mut key = [0; 8];
    let mut room = key.iter_mut();
    for &start in starts[..count].iter().rev() {
        let start = usize::from(start);
        let label = &labels[start + 1..start + 1 + usize::from(labels[start])];
        for octet in label {
            let Some(place) = room.next() else { return u64::from_be_bytes(key) };
            *place = octet.to_ascii_lowercase().saturating_add(1);
            if *octet >= 254 {
                return u64::from_be_bytes(key); // 254 and 255 look the same
            }
        }
        room.next(); // 0 already
    }
    u64::from_be_bytes(key)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use zonda_wire::Name;

    /// Records of type A for these owners.
    fn records(owners: &[&str]) -> Records {
        let mut records = Records::default();
        for owner in owners {
            let owner: Name = owner.parse().unwrap();
            let record = Record { owner: owner.as_wire(), rtype: Type::A, ttl: 1, rdata: &[1; 4] };
            records.push(record, 1).unwrap();
        }
        records
    }

    #[test]
    fn the_key_never_contradicts_canonical_order() {
        let mut owners = vec!["example.".to_owned(), "a.example.".to_owned()];
        for octet in [0, 1, 42, 65, 97, 98, 122, 200, 253, 254, 255] {
            for more in ["", "a", "B", r"\000", r"\254", r"\255", "longer-than-eight"] {
                owners.push(format!(r"\{octet:03}{more}.example."));
                owners.push(format!(r"{more}x.\{octet:03}.example."));
                owners.push(format!(r"z.{more}y.\{octet:03}{more}.example."));
            }
        }
        let owners: Vec<&str> = owners.iter().map(String::as_str).collect();
        let records = records(&owners);
        let order = canonical(&records);
        let sorted = order.windows(2).all(|pair| {
            let [one, two] = [pair[0], pair[1]].map(|index| records.get(index as usize).owner);
            name::canonical_cmp(one, two) != Ordering::Greater
        });
        assert!(sorted);
        assert_eq!(order.len(), records.len());
    }

    #[test]
    fn names_that_share_nothing_are_ordered_too() {
        let records = records(&["b.org", ".", "a.com", "org", "B.org"]);
        assert_eq!(canonical(&records), [1, 2, 3, 0, 4]);
        assert_eq!(canonical_without_duplicates(&records), [1, 2, 3, 0]);
    }
}
