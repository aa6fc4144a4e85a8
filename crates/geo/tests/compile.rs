//! Tables of what a caller says of locations and own networks.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::HashSet;
use std::net::IpAddr;
use std::path::Path;

use common::Random;
use common::mmdb_writer::{Data, Writer};
use zonda_geo::{Bias, Coordinates, Database, Location, Match, Orders, Prefix, PrefixTable, Site};
use zonda_geo::{SiteId, nearest_order};

/// Returns a network.
fn prefix(text: &str) -> Prefix {
    text.parse().unwrap()
}

/// Looks an address up.
fn lookup(table: &PrefixTable, address: &str) -> (u32, u8) {
    let Match { value, scope } = table.lookup(address.parse().unwrap());
    (value, scope)
}

/// Returns a database of networks with countries.
fn countries(networks: &[(&str, &str)]) -> Database {
    let mut writer = Writer::new("Test", 6, 28);
    for &(network, country) in networks {
        let place = writer.record(&Data::Map(vec![("country_code", Data::Text(country))]));
        writer.insert(prefix(network), place);
    }
    Database::from_bytes("test", &writer.finish()).unwrap()
}

/// Returns 100 and the number of a site, or a number for each of two countries.
fn classify(location: &Location) -> u32 {
    if let Some(SiteId(site)) = location.site {
        return 100 + site;
    }
    match location.country {
        Some(country) if country.as_str() == "SE" => 1,
        Some(country) if country.as_str() == "GB" => 2,
        _ => 0,
    }
}

#[test]
fn own_networks_win_over_longer_networks_of_the_database() {
    let database =
        countries(&[("10.0.0.0/8", "SE"), ("10.1.2.0/24", "GB"), ("2001:db8::/32", "GB")]);
    let own = [
        (prefix("10.1.0.0/16"), SiteId(7)),
        (prefix("10.1.128.0/24"), SiteId(8)),
        (prefix("2001:db8:1::/48"), SiteId(7)),
    ];
    let table = PrefixTable::compile(Some(&database), &own, classify).unwrap();
    assert_eq!(lookup(&table, "10.1.2.1"), (107, 17), "the /24 of the database lies within");
    assert_eq!(lookup(&table, "10.1.128.1"), (108, 24), "the longest own network wins");
    assert_eq!(lookup(&table, "10.2.0.1"), (1, 15));
    assert_eq!(lookup(&table, "2001:db8:1::1"), (107, 48));
    assert_eq!(lookup(&table, "2001:db8:2::1"), (2, 47));
    assert_eq!(lookup(&table, "192.0.2.1"), (0, 1));
}

#[test]
fn own_networks_need_no_database() {
    let own = [(prefix("10.1.0.0/16"), SiteId(7))];
    let table = PrefixTable::compile(None, &own, classify).unwrap();
    assert_eq!(lookup(&table, "10.1.2.1"), (107, 16));
    assert_eq!(lookup(&table, "192.0.2.1"), (0, 1));
    assert_eq!(lookup(&table, "2001:db8::1"), (0, 0));
}

#[test]
fn networks_that_are_the_same_to_the_caller_share_a_scope() {
    let database = countries(&[("10.0.0.0/9", "NO"), ("10.128.0.0/9", "FI"), ("11.0.0.0/8", "SE")]);
    let mut count = 0;
    let table = PrefixTable::compile(Some(&database), &[], |location| {
        count += 1;
        classify(location)
    });
    let table = table.unwrap();
    assert_eq!(count, 4, "once for each country and once for all other addresses");
    assert_eq!(lookup(&table, "11.0.0.1"), (1, 8));
    assert_eq!(lookup(&table, "10.0.0.1"), (0, 8));
    let table = PrefixTable::compile(Some(&database), &[], |_| 5).unwrap();
    assert_eq!(lookup(&table, "11.0.0.1"), (5, 0), "no filter looks at the client");
}

/// By the definition: what the database knows of the address, and the own network around it.
#[test]
fn each_address_has_the_class_of_its_own_network_and_of_its_location() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/GeoLite2-City-Test.mmdb");
    let database = Database::open(&data).unwrap();
    let mut random = Random::new(3);
    for round in 0..20 {
        let mut own = Vec::new();
        for site in 0..random.below(12) as u32 {
            let text = ["81.2.69.0", "89.160.0.0", "2001:218::", "10.0.0.0"][random.below(4)];
            let address: IpAddr = text.parse().unwrap();
            own.push((Prefix::new(address, random.below(33) as u8).unwrap(), SiteId(site)));
        }
        let mut classes: Vec<Location> = Vec::new();
        let table = PrefixTable::compile(Some(&database), &own, |location| {
            classes.push(location.clone());
            classes.len() as u32 - 1
        });
        let table = table.unwrap();
        assert_eq!(classes.iter().collect::<HashSet<_>>().len(), classes.len(), "asked once each");
        for text in ["81.2.69.142", "89.160.20.112", "2001:218::1", "10.0.0.1", "216.160.83.56"] {
            let address: IpAddr = text.parse().unwrap();
            let around = own.iter().filter(|(prefix, _)| prefix.contains(address));
            let site = around.max_by_key(|(prefix, _)| prefix.length());
            let site = site.map(|(_, site)| *site);
            let expected = Location { site, ..database.locate(address).0.clone() };
            let found = &classes[table.lookup(address).value as usize];
            assert_eq!(found, &expected, "round {round}: {address} with {own:?}");
        }
    }
}

/// What a pool that answers with the nearest sites does.
#[test]
fn a_table_of_orders_sends_clients_to_near_sites() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/GeoLite2-City-Test.mmdb");
    let database = Database::open(&data).unwrap();
    let site = |(latitude, longitude)| Site {
        coordinates: Coordinates::new(latitude, longitude).unwrap(),
        bias: Bias::default(),
    };
    let sites = [(50.11, 8.68), (51.51, -0.13), (40.71, -74.01)].map(site);
    let mut orders = Orders::default();
    let own = [(prefix("10.1.0.0/16"), SiteId(2))];
    let table = PrefixTable::compile(Some(&database), &own, |location| {
        let order = match (location.site, location.coordinates) {
            (Some(SiteId(site)), _) => vec![site as u16],
            (None, Some(from)) => nearest_order(from, &sites, 3),
            (None, None) => vec![0, 1, 2],
        };
        orders.number(&order)
    });
    let table = table.unwrap();
    let order = |address: &str| orders.order(lookup(&table, address).0).unwrap();
    assert_eq!(order("81.2.69.142"), [1, 0, 2], "London");
    assert_eq!(order("216.160.83.56"), [2, 1, 0], "Washington");
    assert_eq!(order("10.1.2.3"), [2]);
    assert_eq!(order("127.0.0.1"), [0, 1, 2]);
    assert!(orders.len() <= 8, "six orders of three sites, one of own networks: {}", orders.len());
}
