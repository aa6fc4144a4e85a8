//! Digest of a zone's records, by which a version is recognized without having it.

use super::sort_form::OwnerName;
use super::{Diff, Zone};
use crate::records::{Record, Records};

/// Odd, its bits without a pattern: the fraction of the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Odd as well: the fraction of the square root of three.
const START: u64 = 0xbb67_ae85_84ca_a73b;

/// The sum of the hashes of all records of a version of a zone. Versions have the same digest if
/// they have the same records; other versions have it by chance once in 10¹⁹ times. It finds
/// accidents, not forgery.
///
/// As it is a sum, the digest of the next version follows from that of this one and from what
/// differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Digest {
    /// The digest as a number, for a file.
    #[must_use]
    pub fn to_u64(self) -> u64 {
        self.0
    }

    /// The digest that was such a number.
    #[must_use]
    pub fn from_u64(number: u64) -> Self {
        Self(number)
    }

    /// The digest of the version that a difference leads to from the version of this one.
    #[must_use]
    pub fn after(self, diff: &Diff) -> Self {
        let sum = |records: &Records| records.iter().map(hash).fold(0, u64::wrapping_add);
        Self(self.0.wrapping_sub(sum(&diff.removed)).wrapping_add(sum(&diff.added)))
    }
}

impl Zone {
    /// The digest of all records. Reads all of the zone, but does not sort it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut sum = 0_u64;
        for node in self.nodes() {
            // A name that was built has at most 255 octets.
            let Ok(owner) = OwnerName::new(node.relative_owner(), self.apex()) else { continue };
            for set in node.sets() {
                let (owner, rtype, ttl) = (owner.as_wire(), set.rtype, set.ttl);
                let records = set.rdatas().map(|rdata| Record { owner, rtype, ttl, rdata });
                sum = records.map(hash).fold(sum, u64::wrapping_add);
            }
        }
        Digest(sum)
    }
}

/// Hashes a record, its owner in lower case.
fn hash(record: Record<'_>) -> u64 {
    let Record { owner, rtype, ttl, rdata } = record;
    let (rtype, lengths) = (u64::from(rtype.0), (owner.len() << 16 | rdata.len()) as u64);
    let mut state = mix(START, rtype << 32 | u64::from(ttl));
    state = mix(state, lengths);
    for octets in [owner, rdata] {
        let (words, rest) = octets.as_chunks::<8>();
        for word in words {
            state = mix(state, u64::from_be_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        state = mix(state, u64::from_be_bytes(last));
    }
    mix(state, START)
}

/// Takes a word into the state of a hash: both halves of a product have something of all its bits.
fn mix(state: u64, word: u64) -> u64 {
    let product = u128::from(state ^ word ^ START) * u128::from(FACTOR);
    ((product >> 64) as u64 ^ product as u64).rotate_left(23).wrapping_add(state)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::lookup_name::HashSeed;
    use crate::snapshot::{ChangeSet, Serial, SerialPolicy, SetChange, build};
    use std::collections::HashSet;
    use zonda_wire::{Name, Type};

    /// A zone with so many names below it, and the same in another order if `is_reversed`.
    fn zone(count: u32, is_reversed: bool) -> Zone {
        let apex: Name = "example.org".parse().unwrap();
        let soa = [b"\0\0".as_slice(), &[0; 20]].concat();
        let mut owners: Vec<Name> =
            (0..count).map(|it| format!("h{it}.example.org").parse().unwrap()).collect();
        if is_reversed {
            owners.reverse();
        }
        let mut records = Records::default();
        let mut push = |owner: &Name, rtype, rdata: &[u8]| {
            records.push(Record { owner: owner.as_wire(), rtype, ttl: 60, rdata }, 0).unwrap();
        };
        push(&apex, Type::SOA, &soa);
        push(&apex, Type::NS, b"\0");
        owners.iter().for_each(|owner| push(owner, Type::A, &[192, 0, 2, 1]));
        build(&apex, &records, HashSeed::random()).unwrap()
    }

    #[test]
    fn the_digest_depends_on_the_records_alone() {
        let (one, other) = (zone(500, false), zone(500, true));
        assert_eq!(one.digest(), other.digest());
        assert_ne!(one.digest(), zone(499, false).digest());
    }

    #[test]
    fn the_digest_of_the_next_version_follows_from_what_differs() {
        let mut zone = zone(50, false);
        let mut digests = HashSet::from([zone.digest().to_u64()]);
        for step in 0..60_u8 {
            let owner: Name = format!("h{}.example.org", step % 20).parse().unwrap();
            let rtype = if step % 7 == 0 { Type::TXT } else { Type::A };
            let data: Vec<Box<[u8]>> = match rtype {
                Type::TXT => vec![Box::new([1, step])],
                _ => (0..=step % 3).map(|it| Box::from([192, 0, it, step])).collect(),
            };
            let set = match step % 5 {
                4 => SetChange::Remove { owner, rtype: Type::A },
                _ => SetChange::Put { owner, rtype, ttl: step.into(), data },
            };
            let serial = Serial::Bump(SerialPolicy::Increment);
            let (next, diff) = zone.with(&ChangeSet { sets: vec![set], serial }).unwrap();
            assert_eq!(zone.digest().after(&diff), next.digest(), "{diff:?}");
            assert_eq!(next.digest().after(&diff.clone().reversed()), zone.digest());
            if !diff.is_empty() {
                assert!(digests.insert(next.digest().to_u64()), "{diff:?}");
            }
            zone = next;
        }
    }

    #[test]
    fn each_changed_octet_of_a_record_has_another_hash() {
        let rdata = [7_u8; 20];
        let one = |owner: &[u8], rtype: u16, ttl, rdata: &[u8]| {
            hash(Record { owner, rtype: Type(rtype), ttl, rdata })
        };
        let mut hashes = vec![one(b"\x01a\0", 1, 60, &rdata), one(b"\x01b\0", 1, 60, &rdata)];
        hashes.extend([one(b"\x01a\0", 2, 60, &rdata), one(b"\x01a\0", 1, 61, &rdata)]);
        hashes.extend((0..20).map(|len| one(b"\x01a\0", 1, 60, &rdata[..len])));
        for (at, bit) in (0..20).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut changed = rdata;
            changed[at] ^= 1 << bit;
            hashes.push(one(b"\x01a\0", 1, 60, &changed));
        }
        let distinct: HashSet<u64> = hashes.iter().copied().collect();
        assert_eq!(distinct.len(), hashes.len());
    }
}
