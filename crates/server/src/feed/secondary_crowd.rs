//! Bounds on the sets and names of zones from primaries.
//!
//! A reply with a set is as long as the set, and a name with many types is searched for the one
//! that a query asks for, so that a primary could make each answer costly (CVE-2024-1737).

use std::collections::{HashMap, HashSet};
use zonda_secondary::Fault;
use zonda_wire::{Name, Type};
use zonda_zone::{Diff, Zone};

/// The bounds on a set and on a name.
#[derive(Clone, Copy, Debug)]
pub struct CrowdLimits {
    /// Most records of a set; of signatures, of those over one type.
    pub records_per_set: usize,
    /// Most sets of a name, those of signatures not counted.
    pub types_per_name: usize,
}

impl CrowdLimits {
    /// Looks at a version of a zone: at the names to which changes that led to it add records, or
    /// at all names.
    ///
    /// # Errors
    /// The first set or name that is over a limit.
    pub fn check(&self, zone: &Zone, changes: Option<&[Diff]>) -> Result<(), Fault> {
        let Some(changes) = changes else {
            return zone.nodes().try_for_each(|node| {
                let sets = node.sets().map(|set| (set.rtype, usize::from(set.count)));
                self.check_sets(sets, || [node.relative_owner(), zone.apex()].concat())
            });
        };
        let added = changes.iter().flat_map(|change| change.added.iter());
        let owners: HashSet<&[u8]> = added.map(|record| record.owner).collect();
        owners.into_iter().try_for_each(|owner| {
            let Ok(name) = Name::from_wire(owner) else { return Ok(()) }; // it was taken as one
            let mut sets: HashMap<(Type, Option<[u8; 2]>), usize> = HashMap::new();
            for record in zone.records_at(&name) {
                let covered = record.rdata.first_chunk().filter(|_| record.rtype == Type::RRSIG);
                *sets.entry((record.rtype, covered.copied())).or_default() += 1;
            }
            let sets = sets.into_iter().map(|((rtype, _), count)| (rtype, count));
            self.check_sets(sets, || owner.to_vec())
        })
    }

    /// Fails for a name with sets of these types and numbers of records that is over a limit.
    fn check_sets(
        &self,
        sets: impl Iterator<Item = (Type, usize)>,
        owner: impl Fn() -> Vec<u8>,
    ) -> Result<(), Fault> {
        let name = || Name::from_wire(&owner()).unwrap_or_else(|_| Name::root());
        let mut types = 0;
        for (rtype, count) in sets {
            types += usize::from(rtype != Type::RRSIG);
            if count > self.records_per_set {
                return Err(Fault::TooManyOfSet(name(), rtype, self.records_per_set));
            }
        }
        match types > self.types_per_name {
            true => Err(Fault::TooManyTypes(name(), self.types_per_name)),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use zonda_zone::file::{Options, read_text};
    use zonda_zone::{HashSeed, build};

    const LIMITS: CrowdLimits = CrowdLimits { records_per_set: 3, types_per_name: 4 };

    /// A zone with more lines.
    fn zone(more: &str) -> Zone {
        let apex: Name = "example.org".parse().unwrap();
        let text = format!("$TTL 60\n@ SOA ns host 7 1 1 1 1\n@ NS ns\n{more}");
        let (records, _) = read_text(text.as_bytes(), "text".as_ref(), &apex, &Options::default());
        build(&apex, &records, HashSeed::random()).unwrap()
    }

    /// So many addresses of a name.
    fn addresses(owner: &str, count: u8) -> String {
        (0..count).map(|octet| format!("{owner} A 192.0.2.{octet}\n")).collect()
    }

    /// So many types at a name.
    fn types(owner: &str, count: u16) -> String {
        (0..count).map(|number| format!("{owner} TYPE{} \\# 0\n", 65300 + number)).collect()
    }

    /// What is said of a version.
    fn check(zone: &Zone, changes: Option<&[Diff]>) -> String {
        LIMITS.check(zone, changes).err().map(|fault| fault.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_set_with_as_many_records_as_it_may_have_is_taken_and_one_more_is_not() {
        assert_eq!(check(&zone(&addresses("www", 3)), None), "");
        let said = check(&zone(&addresses("www", 4)), None);
        assert!(said.starts_with("www.example.org. has more than 3 records of type A"), "{said}");
    }

    #[test]
    fn a_name_with_as_many_types_as_it_may_have_is_taken_and_one_more_is_not() {
        assert_eq!(check(&zone(&types("www", 4)), None), "");
        let said = check(&zone(&types("www", 5)), None);
        assert!(said.starts_with("www.example.org. has records of more than 4 types"), "{said}");
        let said = check(&zone(&types("@", 3)), None);
        assert!(said.starts_with("example.org. has records of more"), "{said}");
    }

    #[test]
    fn changes_have_the_names_looked_at_to_which_they_add_records() {
        let before = zone(&addresses("old", 4));
        let after = |more: &str| zone(&(addresses("old", 4) + more));
        let said = |after: &Zone| {
            let diff = before.diff_within(after, usize::MAX).unwrap();
            check(after, Some(&[diff]))
        };
        assert_eq!(said(&after(&addresses("www", 3))), "", "the rest was taken before");
        assert_ne!(said(&after(&addresses("www", 4))), "");
        assert_ne!(said(&after(&types("www", 5))), "");
    }
}
