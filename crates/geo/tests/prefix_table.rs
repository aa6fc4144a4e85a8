//! Tables of prefixes, held against a list that is searched from end to end.

#![allow(clippy::unwrap_used)]

mod common;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use common::Random;
use zonda_geo::{BATCH_MAX, Match, Prefix, PrefixTable};

/// Value of addresses in no prefix.
const OTHERWISE: u32 = 1000;

/// The same look-ups as a table's, by the definition.
struct NaiveTable {
    prefixes: Vec<(Prefix, u32)>,
}

impl NaiveTable {
    /// Finds the value of the longest prefix around an address.
    fn value(&self, address: IpAddr) -> u32 {
        let around = self.prefixes.iter().filter(|(prefix, _)| prefix.contains(address));
        around.max_by_key(|(prefix, _)| prefix.length()).map_or(OTHERWISE, |&(_, value)| value)
    }

    /// Tells whether all addresses of a prefix have one value: they can differ only where a prefix
    /// of the list starts or ends.
    fn is_uniform(&self, block: Prefix) -> bool {
        let value = self.value(block.address());
        let ends =
            self.prefixes.iter().flat_map(|&(prefix, _)| [Some(first(prefix)), behind(prefix)]);
        let within = ends.flatten().map(|number| address(number, block.address().is_ipv4()));
        within.filter(|edge| block.contains(*edge)).all(|edge| self.value(edge) == value)
    }
}

/// Returns an address as a number.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u32::from(v4).into(),
        IpAddr::V6(v6) => v6.into(),
    }
}

/// Returns the address of a number.
fn address(number: u128, is_v4: bool) -> IpAddr {
    if is_v4 { Ipv4Addr::from(number as u32).into() } else { Ipv6Addr::from(number).into() }
}

/// Returns the first address of a prefix as a number.
fn first(prefix: Prefix) -> u128 {
    number(prefix.address())
}

/// Returns the number of the first address behind a prefix, if there is one.
fn behind(prefix: Prefix) -> Option<u128> {
    let bits = if prefix.address().is_ipv4() { 32 } else { 128 };
    let size = 1u128.checked_shl(bits - u32::from(prefix.length()))?;
    let behind = first(prefix).checked_add(size)?;
    (bits == 128 || behind <= u128::from(u32::MAX)).then_some(behind)
}

/// Makes up prefixes within and beside one another, of few values so that neighbours are equal.
fn random_prefixes(random: &mut Random, count: usize, is_v4: bool) -> Vec<(Prefix, u32)> {
    let bits: u8 = if is_v4 { 32 } else { 128 };
    let mut list: Vec<(Prefix, u32)> = Vec::new();
    for _ in 0..count {
        let length = random.below(usize::from(bits) + 1) as u8;
        let value = random.below(4) as u32;
        let mut base =
            (u128::from(random.next()) << 64 | u128::from(random.next())) >> (128 - bits);
        if let Some(&(near, _)) = list.get(random.below(2 * list.len() + 1)) {
            // Near a prefix of the list: within it, or its neighbour.
            let kept =
                1u128.checked_shl(u32::from(bits - near.length())).map_or(0, |size| size - 1);
            base = first(near) | base & kept;
            if random.below(2) == 0 {
                let flipped = near.length().saturating_sub(1 + random.below(3) as u8);
                base ^= 1u128 << (bits - 1 - flipped.min(bits - 1));
            }
        }
        list.extend(Prefix::new(address(base, is_v4), length).map(|prefix| (prefix, value)));
    }
    list
}

/// Holds a table against the definition at each edge of its prefixes and at random addresses.
fn check(naive: &NaiveTable, random: &mut Random, is_v4: bool, seed: u64) {
    let table = PrefixTable::new(naive.prefixes.iter().copied(), OTHERWISE).unwrap();
    let bits: u8 = if is_v4 { 32 } else { 128 };
    let edges = naive.prefixes.iter().flat_map(|&(prefix, _)| {
        let behind = behind(prefix);
        [Some(first(prefix)), behind, behind.map(|behind| behind - 1), first(prefix).checked_sub(1)]
    });
    let highest = u128::MAX >> (128 - bits);
    let mut addresses: Vec<u128> = edges.flatten().chain([0, highest]).collect();
    for _ in 0..32 {
        addresses.push((u128::from(random.next()) << 64 | u128::from(random.next())) & highest);
    }
    for at in addresses.into_iter().map(|number| address(number, is_v4)) {
        let Match { value, scope } = table.lookup(at);
        assert_eq!(value, naive.value(at), "seed {seed}: value of {at}");
        let block = Prefix::new(at, scope).unwrap();
        assert!(naive.is_uniform(block), "seed {seed}: {at} has scope {scope}, with other values");
        if let Some(wider) = scope.checked_sub(1).and_then(|scope| Prefix::new(at, scope)) {
            assert!(!naive.is_uniform(wider), "seed {seed}: {at} could have a scope below {scope}");
        }
    }
}

/// Checks tables of many sizes, each made of a seed that the failure names.
fn check_seeds(seeds: u64, is_v4: bool) {
    for seed in 0..seeds {
        let mut random = Random::new(seed);
        let count = random.below(60);
        let mut naive = NaiveTable { prefixes: random_prefixes(&mut random, count, is_v4) };
        // Of equal prefixes the table has the last; `max_by_key` as well.
        check(&naive, &mut random, is_v4, seed);
        naive.prefixes.reverse();
        check(&naive, &mut random, is_v4, seed);
    }
}

#[test]
fn ipv4_values_and_scopes_are_those_of_a_naive_table() {
    check_seeds(300, true);
}

#[test]
fn ipv6_values_and_scopes_are_those_of_a_naive_table() {
    check_seeds(200, false);
}

/// Each width of the direct index and each kind of node has its own edges, which come with many
/// prefixes only: fillers at every other place of a base.
#[test]
fn large_tables_have_the_values_and_scopes_of_a_naive_table() {
    for (base, index_bits) in [
        ("128.0.0.0/1", 9),
        ("128.0.0.0/1", 14),
        ("128.0.0.0/1", 17),
        ("10.0.0.0/18", 13),
        ("10.0.0.0/12", 15),
        ("8000::/1", 11),
        ("8000::/1", 17),
        ("2001:d00::/24", 13),
        ("2001:db8:1::/48", 13),
        ("2001:db8:1:2:3::/80", 15),
    ] {
        let base: Prefix = base.parse().unwrap();
        let (is_v4, length) = (base.address().is_ipv4(), base.length() + index_bits + 1);
        let bits = if is_v4 { 32 } else { 128 };
        let mut random = Random::new(index_bits.into());
        let within = |random: &mut Random| {
            let any = u128::from(random.next()) << 64 | u128::from(random.next());
            first(base) | any >> (128 - bits) >> base.length()
        };
        let mut naive = NaiveTable { prefixes: random_prefixes(&mut random, 20, is_v4) };
        for _ in 0..20 {
            let length = base.length() + random.below(usize::from(bits - base.length()) + 1) as u8;
            let prefix = Prefix::new(address(within(&mut random), is_v4), length).unwrap();
            naive.prefixes.push((prefix, random.below(4) as u32));
        }
        for index in 0..1u128 << index_bits {
            let start = first(base) | (index << 1 | 1) << (bits - length);
            let prefix = Prefix::new(address(start, is_v4), length).unwrap();
            naive.prefixes.push((prefix, 2000 + index as u32 % 2));
        }
        let table = PrefixTable::new(naive.prefixes.iter().copied(), OTHERWISE).unwrap();
        for round in 0..60 {
            let number = match round % 3 {
                0 => first(naive.prefixes[random.below(40)].0),
                1 => within(&mut random),
                _ => first(naive.prefixes[40 + random.below(1 << index_bits)].0),
            };
            let at = address(number, is_v4);
            let Match { value, scope } = table.lookup(at);
            assert_eq!(value, naive.value(at), "{base}: value of {at}");
            let block = Prefix::new(at, scope).unwrap();
            assert!(naive.is_uniform(block), "{base}: {at} has scope {scope}");
            if let Some(wider) = scope.checked_sub(1).and_then(|scope| Prefix::new(at, scope)) {
                assert!(!naive.is_uniform(wider), "{base}: {at} could have a scope below {scope}");
            }
        }
    }
}

/// Returns a table of the listed prefixes.
fn table(list: &[(&str, u32)]) -> PrefixTable {
    let prefixes = list.iter().map(|&(prefix, value)| (prefix.parse().unwrap(), value));
    PrefixTable::new(prefixes, OTHERWISE).unwrap()
}

/// Looks an address up.
fn lookup(table: &PrefixTable, address: &str) -> (u32, u8) {
    let Match { value, scope } = table.lookup(address.parse().unwrap());
    (value, scope)
}

#[test]
fn a_table_of_no_prefix_has_one_value_for_all() {
    let table = table(&[]);
    assert_eq!(lookup(&table, "192.0.2.1"), (OTHERWISE, 0));
    assert_eq!(lookup(&table, "2001:db8::1"), (OTHERWISE, 0));
}

#[test]
fn the_longest_prefix_wins_whatever_the_order() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let list = [("10.0.0.0/8", 1), ("10.1.0.0/16", 2), ("10.1.2.3/32", 3)];
        let table = table(&order.map(|index| list[index]));
        assert_eq!(lookup(&table, "10.1.2.3"), (3, 32));
        assert_eq!(lookup(&table, "10.1.2.2"), (2, 32));
        assert_eq!(lookup(&table, "10.1.128.0"), (2, 17));
        assert_eq!(lookup(&table, "10.128.0.0"), (1, 9));
        assert_eq!(lookup(&table, "192.0.2.1"), (OTHERWISE, 1));
    }
}

#[test]
fn neighbours_of_equal_value_widen_the_scope() {
    let table = table(&[("192.0.2.0/25", 5), ("192.0.2.128/25", 5), ("192.0.3.0/24", 5)]);
    assert_eq!(lookup(&table, "192.0.2.1"), (5, 23));
    assert_eq!(lookup(&table, "192.0.3.255"), (5, 23));
    assert_eq!(lookup(&table, "192.0.1.255"), (OTHERWISE, 23));
}

#[test]
fn ipv4_mapped_addresses_are_looked_up_as_ipv4() {
    let table = table(&[("10.0.0.0/8", 1), ("::/0", 2), ("::ffff:11.0.0.0/104", 3)]);
    assert_eq!(lookup(&table, "::ffff:10.1.2.3"), (1, 8));
    assert_eq!(lookup(&table, "11.0.0.1"), (3, 8));
    assert_eq!(lookup(&table, "::ffff:192.0.2.1"), (OTHERWISE, 1));
    assert_eq!(lookup(&table, "2001:db8::1"), (2, 0));
}

#[test]
fn values_of_all_32_bits_are_kept() {
    let table = table(&[("10.0.0.0/8", u32::MAX), ("10.0.0.1/32", u32::MAX - 1)]);
    assert_eq!(lookup(&table, "10.0.0.1"), (u32::MAX - 1, 32));
    assert_eq!(lookup(&table, "10.0.0.2"), (u32::MAX, 31));
}

/// Touching is for the cache alone; each kind of record and each number of addresses has to do.
#[test]
fn touched_addresses_are_looked_up_as_before() {
    let mut random = Random::new(5);
    let mut prefixes = random_prefixes(&mut random, 40, true);
    prefixes.extend(random_prefixes(&mut random, 40, false));
    for index in 0..1u128 << 13 {
        let address = Ipv6Addr::from(0x2001_0db8 << 96 | (index << 1 | 1) << 80);
        prefixes.push((Prefix::new(address.into(), 48).unwrap(), index as u32));
    }
    let addresses: Vec<IpAddr> = prefixes.iter().map(|(prefix, _)| prefix.address()).collect();
    for prefixes in [&prefixes[..], &prefixes[..80], &[]] {
        let table = PrefixTable::new(prefixes.iter().copied(), OTHERWISE).unwrap();
        let found: Vec<Match> = addresses.iter().map(|address| table.lookup(*address)).collect();
        for count in [0, 1, BATCH_MAX, BATCH_MAX + 1] {
            addresses
                .chunks(count.max(1))
                .for_each(|batch| table.touch(&batch[..count.min(batch.len())]));
        }
        let again: Vec<Match> = addresses.iter().map(|address| table.lookup(*address)).collect();
        assert_eq!(found, again);
    }
}
