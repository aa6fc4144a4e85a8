//! Any octets read as a database, by the tests and by the fuzz target `geo_database`.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use zonda_geo::{Database, Location, PrefixTable};

/// Reads octets as a database; of one that is read, a table of its locations agrees with it.
pub fn check(octets: &[u8]) {
    let Ok(database) = Database::from_bytes("any", octets) else { return };
    let mut numbers: HashMap<Location, u32> = HashMap::new();
    let table = PrefixTable::compile(Some(&database), &[], |location| {
        let next = numbers.len() as u32;
        *numbers.entry(location.clone()).or_insert(next)
    });
    let table = table.expect("without own networks there are not too many");
    for chunk in octets.chunks(16) {
        let mut address = [0; 16];
        address[..chunk.len()].copy_from_slice(chunk);
        let number = u128::from_be_bytes(address);
        for address in [IpAddr::V4(Ipv4Addr::from(number as u32)), Ipv6Addr::from(number).into()] {
            let (location, scope) = database.locate(address);
            let found = table.lookup(address);
            assert_eq!((found.value, found.scope), (numbers[location], scope), "{address}");
        }
    }
}
