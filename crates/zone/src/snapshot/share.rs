//! A zone that was read again: [`Zone::sharing_with`].
//!
//! Shards are compared as octets first, which for most zones read again is all there is to it:
//! memory is read once, in order. A shard whose nodes lie in another order, since the file's
//! records do or since changes were made one by one, is compared node by node.

use super::node::Node;
use super::shard::Shard;
use super::{Directory, Zone};
use std::sync::Arc;

/// The part of a zone's shards, one in so many, that may differ for the rest to be shared. Where
/// more differ, little memory is shared, and the zone stays as it was built.
const DIFFERING_PART: usize = 4;

impl Zone {
    /// The zone as the version after `former`: with all of the former's memory in which nothing
    /// differs, and the former version itself if no record differs.
    #[must_use]
    pub fn sharing_with(self, former: &Arc<Self>) -> Arc<Self> {
        if self.apex != former.apex || self.seed != former.seed {
            return Arc::new(self);
        }
        let is_apex_same = self.apex_node().octets() == former.apex_node().octets();
        let (new, old) = (&self.directory, &former.directory);
        if new.layout() != old.layout() {
            // So many names that either layout would do, or another zone.
            let is_same = self.names == former.names
                && former.diff_within(&self, 0).is_ok_and(|difference| difference.is_empty());
            return if is_same { Arc::clone(former) } else { Arc::new(self) };
        }
        let differing = differing_shards(new, old);
        if differing.is_empty() && is_apex_same {
            return Arc::clone(former);
        }
        let shards = new.layout().shards() as usize;
        if shards == 1 || differing.len() * DIFFERING_PART > shards {
            return Arc::new(self);
        }
        let mut zone = self;
        // Where that fails, what was not shared yet stays as it was built.
        let _ = zone.directory.share_with(&former.directory, &differing);
        Arc::new(zone)
    }
}

/// The numbers of the shards of `new` that hold other nodes than those of `old`. Both have the same
/// layout.
fn differing_shards(new: &Directory, old: &Directory) -> Vec<u32> {
    let mask = new.layout().slot_mask;
    let pairs = (0..).zip(new.shards().zip(old.shards()));
    let differing = pairs.filter(|(_, (new, old))| !holds_the_same(*new, *old, mask));
    differing.map(|(index, _)| index).collect()
}

/// Whether two shards hold the same nodes, in whatever order.
fn holds_the_same(one: Shard<'_>, other: Shard<'_>, slot_mask: u32) -> bool {
    // What follows a packed shard is the apex's node.
    if other.0.get(..one.0.len()) == Some(one.0) {
        return true;
    }
    one.nodes().count() == other.nodes().count()
        && one.nodes().all(|(tag, node)| {
            let is_it = |octets| Node::new(octets).octets() == node.octets();
            other.find(slot_mask, tag.into(), is_it).is_some()
        })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::lookup_name::HashSeed;
    use crate::records::{Record, Records};
    use crate::snapshot::{ChangeSet, Serial, SetChange, build};
    use zonda_wire::{Name, Type};

    /// A zone with a name for each number, whose data are its two lowest octets and `data`'s.
    fn zone(numbers: impl Iterator<Item = u32>, data: impl Fn(u32) -> u8) -> Zone {
        let apex: Name = "example.org".parse().unwrap();
        let mut records = Records::default();
        let mut add = |owner: &Name, rtype, rdata: &[u8]| {
            let record = Record { owner: owner.as_wire(), rtype, ttl: 60, rdata };
            records.push(record, 0).unwrap();
        };
        add(&apex, Type::SOA, &[&[0, 0][..], &[0; 20]].concat());
        for number in numbers {
            let owner = format!("h{number}.example.org").parse().unwrap();
            add(&owner, Type::A, &[192, (number >> 8) as u8, number as u8, data(number)]);
        }
        build(&apex, &records, HashSeed(3)).unwrap()
    }

    /// The change that gives a name another address.
    fn change(number: u32, last: u8) -> ChangeSet {
        let owner = format!("h{number}.example.org").parse().unwrap();
        let data = vec![vec![192, (number >> 8) as u8, number as u8, last].into()];
        let sets = vec![SetChange::Put { owner, rtype: Type::A, ttl: 60, data }];
        ChangeSet { sets, serial: Serial::Keep }
    }

    /// The number of shards that two versions share.
    fn shared(one: &Zone, other: &Zone) -> usize {
        let pairs = one.directory.shards().zip(other.directory.shards());
        pairs.filter(|(one, other)| std::ptr::eq(one.0, other.0)).count()
    }

    #[test]
    fn a_zone_with_the_same_records_is_the_version_in_force_whatever_their_order() {
        for count in [0, 3, 200, 5000] {
            let former = Arc::new(zone(0..count, |_| 1));
            for again in [zone(0..count, |_| 1), zone((0..count).rev(), |_| 1)] {
                assert!(Arc::ptr_eq(&again.sharing_with(&former), &former), "{count}");
            }
        }
    }

    #[test]
    fn a_zone_that_was_changed_and_changed_back_is_known_again() {
        let first = zone(0..5000, |_| 1);
        let changed = first.with(&change(77, 9)).unwrap().0;
        let back = Arc::new(changed.with(&change(77, 1)).unwrap().0);
        assert!(Arc::ptr_eq(&first.sharing_with(&back), &back));
    }

    #[test]
    fn a_zone_that_grew_by_edits_is_known_again_though_it_would_be_built_otherwise() {
        let small = zone(0..8000, |_| 1);
        let mut sets = Vec::new();
        (8000..9000).for_each(|number| sets.extend(change(number, 1).sets));
        let grown = Arc::new(small.with(&ChangeSet { sets, serial: Serial::Keep }).unwrap().0);
        let again = zone(0..9000, |_| 1);
        assert_ne!(again.directory.layout(), grown.directory.layout());
        assert!(Arc::ptr_eq(&again.sharing_with(&grown), &grown));
        let other = zone(0..9000, |number| if number == 5 { 2 } else { 1 });
        let other = other.sharing_with(&grown);
        assert_eq!(grown.diff(&other).unwrap().added.len(), 1);
    }

    #[test]
    fn a_zone_in_which_little_differs_shares_the_rest_and_one_with_much_is_as_it_was_built() {
        let former = Arc::new(zone(0..20_000, |_| 1));
        let shards = former.directory.layout().shards() as usize;
        for (changed, is_shared) in [(1, true), (10, true), (2000, false)] {
            let data = |number| if number % (20_000 / changed) == 0 { 2 } else { 1 };
            let (expected, again) = (zone(0..20_000, data), zone(0..20_000, data));
            let again = again.sharing_with(&former);
            assert!(again.diff(&expected).unwrap().is_empty());
            assert_eq!(former.diff(&again).unwrap().added.len(), changed as usize);
            let least = if is_shared { shards - changed as usize } else { 0 };
            let count = shared(&former, &again);
            assert!(count >= least && (count > 0) == is_shared, "{changed}: {count}");
        }
    }

    #[test]
    fn a_zone_with_another_serial_alone_shares_all_shards_and_is_another_version() {
        let former = Arc::new(zone(0..5000, |_| 1));
        let bump = ChangeSet { sets: Vec::new(), serial: Serial::Exactly(7) };
        let again = zone(0..5000, |_| 1).with(&bump).unwrap().0.sharing_with(&former);
        assert_eq!((former.serial(), again.serial()), (0, 7));
        assert_eq!(shared(&former, &again), former.directory.layout().shards() as usize);
    }
}
