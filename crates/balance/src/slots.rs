//! A member by the hash of a client, which few clients lose when a member goes.
//!
//! Every member has a slot of a table, by its identity. A client's hash gives a sequence of slots;
//! the first whose member is up is the client's. A member that goes leaves its own clients to those
//! behind it in their sequences, and gets them back when it returns; no other client moves. The
//! expected number of steps depends on the share of the slots whose members are up, not on the
//! number of members.

use crate::dice::{mix, share};

/// Most slots that are tried for one client, before one of the members that are up is taken.
const STEPS_MAX: u64 = 512;
/// Members that are up among which a client without a slot chooses by the greatest hash, which
/// moves as few clients; with more of them it is so rare that they may move.
const RANKED_MAX: usize = 64;
/// A slot without a member that is up.
const FREE: u32 = u32::MAX;

/// The members of a group by their slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slots {
    /// The index of a member in its group, and the share of the clients that come by that it takes,
    /// in units of 2⁻³².
    slots: Box<[(u32, u32)]>,
    /// The identities of the members of the group.
    identities: Box<[u64]>,
}

impl Slots {
    /// The slots of a group. `all` are the identities of all members that the group can have, so
    /// that slots stay where they are when some are down; `up` has those in the group, each with
    /// its weight.
    pub fn new(all: &[u64], up: &[(u64, u64)]) -> Self {
        let count = (all.len() * 3 / 2).next_power_of_two().max(2);
        let mut owners: Vec<Option<u64>> = vec![None; count];
        let mut sorted = all.to_vec();
        sorted.sort_unstable(); // the order in the configuration does not count
        sorted.dedup();
        let mut slots = vec![(FREE, 0); count];
        let weight_max = up.iter().map(|(_, weight)| *weight).max().unwrap_or(0).max(1);
        let mut places: Vec<(u64, usize)> = Vec::with_capacity(sorted.len());
        for identity in sorted {
            let mut slot = share(mix(identity) >> 32, count);
            while owners[slot].is_some() {
                slot = (slot + 1) % count;
            }
            owners[slot] = Some(identity);
            places.push((identity, slot));
        }
        for (index, (identity, weight)) in up.iter().enumerate() {
            if let Ok(place) = places.binary_search_by_key(identity, |(identity, _)| *identity) {
                let share = (u128::from(*weight) << 32) / u128::from(weight_max);
                slots[places[place].1] = (index as u32, share.min(u128::from(u32::MAX)) as u32);
            }
        }
        Self { slots: slots.into(), identities: up.iter().map(|(identity, _)| *identity).collect() }
    }

    /// The index, in its group, of the member for a client with this hash. The group has members.
    #[inline]
    pub fn choose(&self, client: u64) -> usize {
        let mut number = client;
        for _ in 0..STEPS_MAX {
            number = mix(number);
            let (index, taken) = self.slots[share(number >> 32, self.slots.len())];
            if index != FREE && number as u32 <= taken {
                return index as usize;
            }
        }
        self.without_slot(client)
    }

    /// The index of a member for a client that no slot was found for.
    #[cold]
    fn without_slot(&self, client: u64) -> usize {
        if self.identities.len() > RANKED_MAX {
            return share(mix(client) >> 32, self.identities.len());
        }
        let rank = |(_, identity): &(usize, &u64)| mix(client ^ mix(**identity));
        self.identities.iter().enumerate().max_by_key(rank).map_or(0, |(index, _)| index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The identities chosen for clients with the hashes from 0.
    fn owners(slots: &Slots, up: &[(u64, u64)], clients: u64) -> Vec<u64> {
        (0..clients).map(|client| up[slots.choose(mix(client))].0).collect()
    }

    fn members(count: u64) -> (Vec<u64>, Vec<(u64, u64)>) {
        let all: Vec<u64> = (0..count).map(|i| mix(i + 1000)).collect();
        (all.clone(), all.into_iter().map(|identity| (identity, 1)).collect())
    }

    #[test]
    fn only_the_clients_of_a_member_that_goes_move() {
        for count in [2, 10, 100, 1000] {
            let (all, up) = members(count);
            let before = owners(&Slots::new(&all, &up), &up, 20_000);
            let gone = up[1].0;
            let rest: Vec<_> = up.iter().copied().filter(|it| it.0 != gone).collect();
            let after = owners(&Slots::new(&all, &rest), &rest, 20_000);
            for (before, after) in before.iter().zip(&after) {
                assert!(before == after || *before == gone);
                assert_ne!(*after, gone);
            }
        }
    }

    #[test]
    fn clients_are_spread_evenly_and_by_weight() {
        let (all, mut up) = members(8);
        for weights in [[1; 8], [1, 2, 3, 4, 5, 6, 7, 8]] {
            up.iter_mut().zip(weights).for_each(|(member, weight)| member.1 = weight);
            let slots = Slots::new(&all, &up);
            let mut counts = [0.0_f64; 8];
            for client in 0..100_000 {
                counts[slots.choose(mix(client))] += 1.0;
            }
            let sum: u64 = weights.iter().sum();
            let expected = weights.map(|weight| 1e5 * weight as f64 / sum as f64);
            // Chi-square with 7 degrees of freedom: 24.3 is exceeded once in 1,000 times.
            let chi: f64 = counts.iter().zip(expected).map(|(n, e)| (n - e).powi(2) / e).sum();
            assert!(chi < 24.3, "{chi} {counts:?}");
        }
    }

    #[test]
    fn the_last_member_of_many_has_all_clients() {
        let (all, up) = members(10_000);
        let slots = Slots::new(&all, &up[..1]);
        assert!((0..100).all(|client| slots.choose(mix(client)) == 0));
    }

    #[test]
    fn the_order_of_members_does_not_count() {
        let (mut all, mut up) = members(20);
        let before = owners(&Slots::new(&all, &up), &up, 1000);
        all.reverse();
        up.rotate_left(7);
        assert_eq!(owners(&Slots::new(&all, &up), &up, 1000), before);
    }
}
