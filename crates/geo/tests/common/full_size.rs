//! Networks in the numbers and shapes of a full database of cities: no real one may be passed on.

use std::net::{Ipv4Addr, Ipv6Addr};

use zonda_geo::Prefix;

use super::Random;
use super::mmdb_writer::{Data, Writer};

/// IPv4 networks of a full database.
const V4_COUNT: usize = 3_500_000;
/// IPv6 networks of a full database.
const V6_COUNT: usize = 1_500_000;
/// First and last address of those that are routed.
const V4_ROUTED: (u64, u64) = (0x0100_0000, 0xdfff_ffff);
/// The blocks of which registries give networks of 32 bits to providers.
const V6_REGISTRIES: [u128; 7] = [0x2001, 0x2400, 0x2600, 0x2800, 0x2a00, 0x2a10, 0x2c00];

/// Makes a share of a full database, 1.0 being 5 million networks, those of IPv4 first; each has a
/// number below `values`. Neighbours in a provider's network have the same number at times.
pub fn networks(random: &mut Random, share: f64, values: usize) -> Vec<(Prefix, u32)> {
    let mut list = v4_networks(random, (V4_COUNT as f64 * share) as usize, values);
    v6_networks(random, (V6_COUNT as f64 * share) as usize, values, &mut list);
    list
}

/// Writes networks into a file, each with one of `count` records of cities by its number.
pub fn database(networks: &[(Prefix, u32)], count: usize, random: &mut Random) -> Vec<u8> {
    let mut writer = Writer::new("GeoLite2-City", 6, 28);
    let countries = ["DE", "GB", "US", "JP", "BR", "ZA", "AU", "IN"];
    let places: Vec<u32> = (0..count)
        .map(|number| {
            let city = format!("City {number}");
            let degrees = |random: &mut Random, range: usize| {
                random.below(range * 10_000) as f64 / 10_000.0 - range as f64 / 2.0
            };
            writer.record(&Data::Map(vec![
                ("city", Data::Map(vec![("names", Data::Map(vec![("en", Data::Text(&city))]))])),
                ("country", Data::Map(vec![("iso_code", Data::Text(countries[number % 8]))])),
                (
                    "location",
                    Data::Map(vec![
                        ("latitude", Data::Double(degrees(random, 180))),
                        ("longitude", Data::Double(degrees(random, 360))),
                    ]),
                ),
            ]))
        })
        .collect();
    let mut networks = networks.to_vec();
    networks.sort_by_key(|(network, _)| network.length());
    networks.iter().for_each(|&(network, number)| writer.insert(network, places[number as usize]));
    writer.finish()
}

/// Divides the routed addresses into blocks: half of the networks are longer than 24 bits, as those
/// of providers in cities are, and few are short.
fn v4_networks(random: &mut Random, count: usize, values: usize) -> Vec<(Prefix, u32)> {
    let (first, last) = V4_ROUTED;
    let mut list = Vec::with_capacity(count);
    let mut at = first;
    while list.len() < count && at <= last {
        let remaining = (last - at) / (count - list.len()) as u64;
        // Short where the blocks so far were below the average that is left.
        let shortest = 64 - remaining.leading_zeros().min(63);
        let wanted = (shortest + 4).saturating_sub(random.below(14) as u32).min(20);
        let block_bits = wanted.min(at.trailing_zeros());
        let address = Ipv4Addr::from(at as u32).into();
        let value = random.below(values) as u32;
        list.extend(Prefix::new(address, 32 - block_bits as u8).map(|prefix| (prefix, value)));
        at += 1 << block_bits;
    }
    list
}

/// Gives providers networks of 32 bits, and each some of 36 to 56 bits within.
fn v6_networks(random: &mut Random, count: usize, values: usize, list: &mut Vec<(Prefix, u32)>) {
    let end = list.len() + count;
    while list.len() < end {
        let registry = V6_REGISTRIES[random.below(V6_REGISTRIES.len())];
        let provider = registry << 112 | (random.below(1 << 14) as u128) << 96;
        let mut push = |address: u128, length: u8, value: usize| {
            let prefix = Prefix::new(Ipv6Addr::from(address).into(), length);
            list.extend(prefix.map(|prefix| (prefix, value as u32)));
        };
        push(provider, 32, random.below(values));
        for _ in 0..random.below(50) {
            let length = [36, 40, 44, 48, 48, 48, 48, 56][random.below(8)];
            let within = u128::from(random.next() >> 32) << 64;
            push(provider | within, length, random.below(values));
        }
    }
    list.truncate(end);
}
