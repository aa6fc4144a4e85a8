//! Names whose records are chosen among the members of a pool.
//!
//! ```text
//! slots    u64 per slot, open addressing: upper half of the hash u32 | place of the entry + 1 u32
//! entries  per name: its hash, and places in what follows
//! octets   the names in lower case, wire form
//! pools    type and number of the pool, per steered set
//! ```
//!
//! # Invariants
//! - A table of steered names never changes. When the state of a member changes, another
//!   [`Steering`] has the same names, and other plans: no zone and no hot entry changes.
//! - A reply that a pool has written is never put into the hot table.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use zonda_balance::PoolPlan;
use zonda_wire::{Name, Type, name};
use zonda_zone::{HashSeed, LookupName};

/// The names that are steered, and the pools that they are steered by.
pub struct Steering {
    /// The names of all zones.
    pub names: Arc<SteeredNames>,
    /// The plan of each pool, by its number.
    pub pools: Box<[Arc<PoolPlan>]>,
    /// What pools and members are called, by the number of the pool; none if no client is told.
    pub labels: Option<Arc<[PoolLabels]>>,
}

/// What a pool and its members are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolLabels {
    /// The name of the pool.
    pub pool: Box<str>,
    /// The names of its members.
    pub members: Box<[Box<str>]>,
}

impl Steering {
    /// Brings the plan of a pool into the processor's cache.
    #[inline]
    pub(crate) fn touch(&self, pool: u32) -> u64 {
        self.pools.get(pool as usize).map_or(0, |plan| u64::from(plan.ttl))
    }

    /// Brings the members of a pool into the processor's cache.
    #[inline]
    pub(crate) fn touch_members(&self, pool: u32) -> u64 {
        self.pools.get(pool as usize).map_or(0, |plan| plan.touch())
    }
}

/// The names that are steered, and the names between them and the apexes of their zones.
pub struct SteeredNames {
    slots: Box<[u64]>,
    entries: Box<[Entry]>,
    octets: Box<[u8]>,
    pools: Box<[(Type, u32)]>,
}

/// A name that is steered or has one below it.
struct Entry {
    hash: u64,
    /// The place of the name's octets.
    name: u32,
    name_bytes: u8,
    /// The octets of the name of the zone.
    zone_bytes: u8,
    has_wildcard: bool,
    /// The place of the pools of the name, and behind them those of the wildcard below it.
    pools: u32,
    /// The number of pools of the name: none for a name in between.
    own: u16,
    /// The number of pools of the wildcard.
    of_wildcard: u16,
}

/// A rule: the name and type of a zone that a pool answers for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SteeredSet {
    /// The name, which may begin with `*`, at or below the zone's.
    pub name: Name,
    /// The name of the zone.
    pub zone: Name,
    /// The type that is steered.
    pub rtype: Type,
    /// The number of the pool.
    pub pool: u32,
}

/// What is known about a name that is steered, or that lies above or below one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteeredMatch<'s> {
    /// The name is steered for these types; for none if only a name below it is.
    Exact(&'s [(Type, u32)]),
    /// A wildcard stands for the name, which is steered for these types. Its closest encloser
    /// begins at this label.
    Wildcard(usize, &'s [(Type, u32)]),
    /// The closest encloser of the name begins at this label, and no wildcard is below it.
    Missing(usize),
}

/// The pools of a name while the table is made.
#[derive(Default)]
struct NewName {
    zone_bytes: u8,
    pools: Vec<(Type, u32)>,
    wildcard: Option<Vec<(Type, u32)>>,
}

impl SteeredNames {
    /// The names of these rules. Of two for the same name and type, the first one counts.
    #[must_use]
    pub fn new(rules: &[SteeredSet], seed: HashSeed) -> Self {
        let mut names = BTreeMap::<Vec<u8>, NewName>::new();
        for rule in rules {
            let (owner, zone) = (rule.name.to_lowercase(), rule.zone.to_lowercase());
            let zone_bytes = zone.as_wire().len();
            let is_wildcard = owner.as_wire().starts_with(b"\x01*");
            let mut place = Some(owner.as_wire());
            if is_wildcard {
                place = name::parent(owner.as_wire());
            }
            let mut pool = Some((rule.rtype, rule.pool));
            while let Some(wire) = place.filter(|wire| wire.len() >= zone_bytes) {
                let entry = names.entry(wire.to_vec()).or_default();
                entry.zone_bytes = entry.zone_bytes.max(zone_bytes as u8); // at most 255 octets
                if let Some(pool) = pool.take() {
                    let pools = match is_wildcard {
                        true => entry.wildcard.get_or_insert_default(),
                        false => &mut entry.pools,
                    };
                    if !pools.iter().any(|(rtype, _)| *rtype == pool.0) {
                        pools.push(pool);
                    }
                }
                place = name::parent(wire);
            }
        }
        Self::of_names(names, seed)
    }

    /// The table of these names, in lower case and wire form.
    fn of_names(names: BTreeMap<Vec<u8>, NewName>, seed: HashSeed) -> Self {
        let mut slots = vec![0_u64; (names.len() * 2).next_power_of_two()];
        let (mut entries, mut octets, mut pools) = (Vec::new(), Vec::new(), Vec::new());
        for (wire, new) in names {
            let hash = LookupName::new(&wire, seed).hash(0);
            let of_wildcard = new.wildcard.as_deref().unwrap_or_default();
            entries.push(Entry {
                hash,
                name: octets.len() as u32, // the configuration is far below 4 GiB
                name_bytes: wire.len() as u8,
                zone_bytes: new.zone_bytes,
                has_wildcard: new.wildcard.is_some(),
                pools: pools.len() as u32,
                own: new.pools.len() as u16, // at most one for each type
                of_wildcard: of_wildcard.len() as u16,
            });
            octets.extend_from_slice(&wire);
            pools.extend_from_slice(&new.pools);
            pools.extend_from_slice(of_wildcard);
            let mask = slots.len() - 1;
            let mut slot = hash as usize & mask;
            while slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            slots[slot] = hash >> 32 << 32 | entries.len() as u64;
        }
        Self {
            slots: slots.into(),
            entries: entries.into(),
            octets: octets.into(),
            pools: pools.into(),
        }
    }

    /// What is known about a name below or at the apex of a zone with so many octets, down from the
    /// label at which its closest encloser in the zone's data begins; none if the zone's data alone
    /// decide.
    #[inline]
    #[must_use]
    pub fn find(
        &self,
        name: &LookupName,
        zone_bytes: usize,
        encloser: usize,
    ) -> Option<SteeredMatch<'_>> {
        for label in 0..=encloser {
            let Some(entry) = self.entry(name.hash(label), name.suffix(label)) else { continue };
            if usize::from(entry.zone_bytes) != zone_bytes {
                return None;
            }
            return match label {
                0 => Some(SteeredMatch::Exact(&self.pools[entry.own()])),
                _ if entry.has_wildcard => {
                    Some(SteeredMatch::Wildcard(label, &self.pools[entry.of_wildcard()]))
                }
                _ if label < encloser => Some(SteeredMatch::Missing(label)),
                _ => None,
            };
        }
        None
    }

    /// The number of the first pool of a name that is steered itself, in whichever zone.
    #[inline]
    #[must_use]
    pub fn first_pool(&self, name: &LookupName) -> Option<u32> {
        let entry = self.entry(name.hash(0), name.suffix(0))?;
        self.pools[entry.own()].first().map(|(_, pool)| *pool)
    }

    /// The entry of a name with this hash.
    #[inline]
    fn entry(&self, hash: u64, name: &[u8]) -> Option<&Entry> {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let taken = self.slots[slot];
            if taken == 0 {
                return None;
            }
            if taken >> 32 == hash >> 32 {
                let entry = &self.entries[(taken as u32 - 1) as usize];
                let octets = &self.octets[entry.name as usize..][..usize::from(entry.name_bytes)];
                if entry.hash == hash && octets == name {
                    return Some(entry);
                }
            }
            slot = (slot + 1) & mask;
        }
    }
}

impl Entry {
    /// The places of the pools of the name.
    #[inline]
    fn own(&self) -> Range<usize> {
        let start = self.pools as usize;
        start..start + usize::from(self.own)
    }

    /// The places of the pools of the wildcard.
    #[inline]
    fn of_wildcard(&self) -> Range<usize> {
        let start = self.own().end;
        start..start + usize::from(self.of_wildcard)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SEED: HashSeed = HashSeed(1);

    /// What is known of a name in the zone `example`, whose closest encloser begins at a label.
    fn find(rules: &[&str], name: &str, encloser: usize) -> String {
        let rule = |(pool, name): (usize, &&str)| SteeredSet {
            name: name.parse().unwrap(),
            zone: "example".parse().unwrap(),
            rtype: Type::A,
            pool: pool as u32,
        };
        let rules: Vec<_> = rules.iter().enumerate().map(rule).collect();
        let names = SteeredNames::new(&rules, SEED);
        let name = LookupName::new(name.parse::<Name>().unwrap().as_wire(), SEED);
        match names.find(&name, 9, encloser) {
            Some(SteeredMatch::Exact(pools)) => format!("exact {}", pools.len()),
            Some(SteeredMatch::Wildcard(label, pools)) => {
                format!("wildcard at {label} of pool {}", pools[0].1)
            }
            Some(SteeredMatch::Missing(label)) => format!("missing below {label}"),
            None => "zone".to_owned(),
        }
    }

    #[test]
    fn a_steered_name_is_found_in_any_case_and_the_names_above_it_exist() {
        let rules = ["www.a.example", "example"];
        assert_eq!(find(&rules, "WWW.A.Example", 2), "exact 1");
        assert_eq!(find(&rules, "a.example", 1), "exact 0");
        assert_eq!(find(&rules, "example", 0), "exact 1");
        assert_eq!(find(&rules, "b.example", 1), "zone");
        assert_eq!(find(&rules, "x.a.example", 2), "missing below 1");
        assert_eq!(find(&rules, "x.a.example", 0), "zone");
    }

    #[test]
    fn a_steered_wildcard_stands_for_names_below_its_closest_encloser_only() {
        let rules = ["*.a.example", "www.b.a.example", "*.example"];
        assert_eq!(find(&rules, "x.a.example", 1), "wildcard at 1 of pool 0");
        assert_eq!(find(&rules, "x.y.a.example", 2), "wildcard at 2 of pool 0");
        assert_eq!(find(&rules, "x.b.a.example", 2), "missing below 1");
        assert_eq!(find(&rules, "x.example", 1), "wildcard at 1 of pool 2");
        assert_eq!(find(&rules, "x.c.example", 1), "zone"); // c.example is in the zone's data
    }

    #[test]
    fn names_of_another_zone_are_not_steered() {
        let rule = SteeredSet {
            name: "www.example".parse().unwrap(),
            zone: "example".parse().unwrap(),
            rtype: Type::A,
            pool: 0,
        };
        let names = SteeredNames::new(&[rule], SEED);
        let name = LookupName::new(b"\x03www\x07example\0", SEED);
        assert!(names.find(&name, 9, 0).is_some());
        assert_eq!(names.find(&name, 13, 0), None);
    }
}
