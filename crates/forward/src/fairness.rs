//! Which query is evicted where no place is left.
//!
//! Deliberately absent: the places themselves. Queries that wait for upstreams share theirs more
//! exactly ([`Admission`](zonda_upstream::Admission)); this is for where there is no time to count.

use std::net::IpAddr;

/// How many of the queries that have a place are looked at.
const LOOKED_AT: usize = 16;

/// A client, among which places are shared out: an address, or with IPv6 the network of a host.
pub fn client(address: IpAddr) -> u64 {
    match address.to_canonical() {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => (u128::from(address) >> 64) as u64,
    }
}

/// Which of `count` queries gives its place to a newcomer: of a few chosen at random, one of the
/// client that has most of them. So a client that floods, and holds nearly all places, loses them.
///
/// `count` must not be 0.
pub fn place_to_evict(count: usize, random: u64, client_at: impl Fn(usize) -> u64) -> usize {
    let place = |step: usize| {
        let mixed = random.wrapping_add(step as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize % count
    };
    let places: [usize; LOOKED_AT] = std::array::from_fn(place);
    let clients = places.map(client_at);
    let has = |client: u64| clients.iter().filter(|&&other| other == client).count();
    let most = (0..LOOKED_AT).max_by_key(|&step| has(clients[step])).unwrap_or_default();
    places[most]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_told_apart_by_address_or_by_the_first_64_bits_of_it() {
        let of = |address: &str| address.parse().map(client);
        for (one, other, are_same) in [
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("::ffff:192.0.2.1", "::ffff:192.0.2.2", false),
            ("2001:db8:0:1::1", "2001:db8:0:1:ffff:ffff:ffff:ffff", true),
            ("2001:db8:0:1::1", "2001:db8:0:2::1", false),
            ("2001:db8:0:1::1", "2001:db8:1:1::1", false),
            ("fe80::1", "::1", false),
        ] {
            assert_eq!(of(one) == of(other), are_same, "{one} and {other}");
        }
    }

    #[test]
    fn a_client_that_floods_evicts_its_own_queries_and_not_those_of_another() {
        let (mut room, mut random) = (vec![1; 1000], 1_u64);
        for step in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let place = place_to_evict(room.len(), random, |place| room[place]);
            room[place] = if step % 200 == 0 { 2 } else { 1 };
        }
        assert_eq!(room.iter().filter(|&&client| client == 2).count(), 100);
    }

    #[test]
    fn the_one_client_that_asks_much_is_found_among_many() {
        let mut room: Vec<u64> = (0..1000).collect();
        room[500..].fill(7);
        for random in 0..1000 {
            let place = place_to_evict(room.len(), random, |place| room[place]);
            assert_eq!(room[place], 7);
        }
    }
}
