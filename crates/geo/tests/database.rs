//! Databases in MaxMind's format: its official test databases, damaged ones, and flat ones.

#![allow(clippy::unwrap_used)]

mod any_database;
mod common;

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use common::mmdb_writer::{Data, Writer};
use maxminddb::{Reader, WithinOptions, path};
use zonda_geo::{Continent, Coordinates, CountryCode, Database, Location};

/// Returns the path of a file of test data.
fn data_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Opens one of MaxMind's test databases.
fn open(name: &str) -> Database {
    Database::open(&data_file(name)).unwrap()
}

/// Returns the location of an address and its scope.
fn locate<'a>(database: &'a Database, address: &str) -> (&'a Location, u8) {
    database.locate(address.parse().unwrap())
}

/// Returns the code of a country.
fn country(code: &str) -> Option<CountryCode> {
    Some(code.parse().unwrap())
}

#[test]
fn a_city_database_tells_city_region_country_continent_and_coordinates() {
    let database = open("GeoLite2-City-Test.mmdb");
    assert_eq!(database.kind(), "GeoLite2-City");
    assert!(database.built_at_secs() > 1_500_000_000);
    let london = Location {
        site: None,
        continent: Some(Continent::Europe),
        country: country("GB"),
        subdivisions: Box::new([Box::from("ENG")]),
        city: Some("London".into()),
        city_id: Some(2_643_743),
        asn: None,
        coordinates: Coordinates::new(51.5142, -0.0931),
    };
    assert_eq!(locate(&database, "81.2.69.142"), (&london, 31));
    assert_eq!(locate(&database, "::ffff:81.2.69.142"), (&london, 31));
    let (japan, scope) = locate(&database, "2001:218::1");
    assert_eq!((japan.country, japan.continent, scope), (country("JP"), Some(Continent::Asia), 32));
    assert_eq!((japan.city.as_deref(), japan.subdivisions.len()), (None, 0));
    assert_eq!(locate(&database, "127.0.0.1").0, &Location::default());
}

#[test]
fn country_asn_and_enterprise_databases_tell_what_they_have() {
    let (britain, _) = locate(&open("GeoLite2-Country-Test.mmdb"), "81.2.69.142").clone_parts();
    assert_eq!((britain.country, britain.continent), (country("GB"), Some(Continent::Europe)));
    let (telstra, scope) = locate(&open("GeoLite2-ASN-Test.mmdb"), "1.128.0.1").clone_parts();
    assert_eq!((telstra.asn, telstra.country, scope), (Some(1221), None, 11));
    let (chatham, _) = locate(&open("GeoIP2-Enterprise-Test.mmdb"), "74.209.24.1").clone_parts();
    assert_eq!(chatham.city.as_deref(), Some("Chatham"));
    assert!(chatham.asn.is_some(), "among the traits");
}

/// Ends the borrow of a database that lives for one line.
trait CloneParts {
    /// Returns the location by value.
    fn clone_parts(self) -> (Location, u8);
}

impl CloneParts for (&Location, u8) {
    fn clone_parts(self) -> (Location, u8) {
        (self.0.clone(), self.1)
    }
}

#[test]
fn each_network_has_the_location_that_the_reader_of_maxmind_finds() {
    for name in ["GeoLite2-City-Test", "GeoLite2-Country-Test", "GeoIP2-Enterprise-Test"] {
        let file = data_file(&format!("{name}.mmdb"));
        let (database, octets) = (Database::open(&file).unwrap(), fs::read(&file).unwrap());
        let reader = Reader::from_source(&octets[..]).unwrap();
        let mut count = 0;
        for found in reader.networks(WithinOptions::default()).unwrap() {
            let found = found.unwrap();
            let network = found.network().unwrap();
            for address in [network.network(), network.broadcast()] {
                let (location, scope) = database.locate(address);
                let code: Option<String> =
                    found.decode_path(&path!["country", "iso_code"]).unwrap();
                let registered = path!["registered_country", "iso_code"];
                let code = code.or(found.decode_path(&registered).unwrap());
                assert_eq!(location.country.map(|country| country.to_string()), code, "{address}");
                let latitude: Option<f64> =
                    found.decode_path(&path!["location", "latitude"]).unwrap();
                assert_eq!(location.coordinates.map(Coordinates::latitude), latitude, "{address}");
                let city: Option<String> =
                    found.decode_path(&path!["city", "names", "en"]).unwrap();
                assert_eq!(location.city.as_deref(), city.as_deref(), "{address}");
                assert!(scope <= network.prefix(), "{address} {scope} {network}");
            }
            count += 1;
        }
        assert!(count > 30, "{name} has {count} networks");
    }
}

#[test]
fn the_table_of_continents_agrees_with_the_database() {
    let octets = fs::read(data_file("GeoLite2-Country-Test.mmdb")).unwrap();
    let reader = Reader::from_source(&octets[..]).unwrap();
    let mut seen = 0;
    for found in reader.networks(WithinOptions::default()).unwrap() {
        let found = found.unwrap();
        let code: Option<&str> = found.decode_path(&path!["country", "iso_code"]).unwrap();
        let continent: Option<&str> = found.decode_path(&path!["continent", "code"]).unwrap();
        if let Some((code, continent)) = code.zip(continent) {
            let own = Continent::of_country(code.parse().unwrap()).unwrap();
            assert_eq!(own.as_str(), continent, "{code}");
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen}");
}

#[test]
fn a_tree_of_ipv6_alone_tells_its_locations() {
    let error = Database::open(&data_file("MaxMind-DB-no-ipv4-search-tree.mmdb")).unwrap_err();
    assert!(error.to_string().contains("without countries"), "{error}");
    let mut writer = Writer::new("Test", 6, 24);
    let place = writer.record(&Data::Map(vec![("country_code", Data::Text("SE"))]));
    writer.insert("::/64".parse().unwrap(), place);
    let database = Database::from_bytes("test", &writer.finish()).unwrap();
    assert_eq!(locate(&database, "192.0.2.1").0.country, country("SE"));
    assert_eq!(locate(&database, "::1").0.country, country("SE"));
    assert_eq!(locate(&database, "2001:db8::1").0.country, None);
}

#[test]
fn flat_databases_tell_their_locations() {
    let flat = [
        vec![("country_code", Data::Text("gb"))],
        vec![("country", Data::Text("GB")), ("continent", Data::Text("EU"))],
        vec![
            ("country_code", Data::Text("GB")),
            ("city", Data::Text("London")),
            ("latitude", Data::Text("51.5")),
            ("longitude", Data::Double(-0.1)),
            ("asn", Data::Text("AS64496")),
        ],
        vec![("autonomous_system_number", Data::U32(64496))],
    ];
    for (index, entries) in flat.into_iter().enumerate() {
        for (ip_version, record_bits) in [(4, 24), (4, 28), (6, 28), (6, 32)] {
            let mut writer = Writer::new("Test", ip_version, record_bits);
            let place = writer.record(&Data::Map(entries.iter().map(copy).collect()));
            writer.insert("192.0.2.0/24".parse().unwrap(), place);
            let database = Database::from_bytes("test", &writer.finish()).unwrap();
            let (location, scope) = locate(&database, "192.0.2.1");
            assert_eq!(scope, 24);
            if index < 3 {
                assert_eq!(location.country, country("GB"));
                assert_eq!(location.continent, Some(Continent::Europe), "{index}");
            }
            if index == 2 {
                assert_eq!(location.city.as_deref(), Some("London"));
                assert_eq!(location.coordinates, Coordinates::new(51.5, -0.1));
            }
            if index >= 2 {
                assert_eq!(location.asn, Some(64496));
            }
            assert_eq!(locate(&database, "192.0.3.0").0, &Location::default());
        }
    }
}

/// Returns an entry of a flat record once more.
fn copy<'a>((key, data): &(&'a str, Data<'a>)) -> (&'a str, Data<'a>) {
    (
        key,
        match data {
            Data::Text(text) => Data::Text(text),
            Data::Double(number) => Data::Double(*number),
            Data::U32(number) => Data::U32(*number),
            _ => unreachable!("flat records have no other data"),
        },
    )
}

#[test]
fn other_names_of_ipv4_addresses_have_no_location() {
    let mut writer = Writer::new("Test", 6, 28);
    let place = writer.record(&Data::Map(vec![("country_code", Data::Text("SE"))]));
    writer.insert("192.0.2.0/24".parse().unwrap(), place);
    writer.alias("2002::/16".parse().unwrap());
    let database = Database::from_bytes("test", &writer.finish()).unwrap();
    assert_eq!(locate(&database, "192.0.2.1").0.country, country("SE"));
    assert_eq!(locate(&database, "2002:c000:201::").0, &Location::default());
}

#[test]
fn damaged_files_are_errors_that_name_the_file() {
    let mut count = 0;
    for entry in fs::read_dir(data_file("damaged")).unwrap() {
        let path = entry.unwrap().path();
        let error = Database::open(&path).expect_err(&path.display().to_string()).to_string();
        assert!(error.starts_with(&format!("{}: ", path.display())), "{error}");
        count += 1;
    }
    assert!(count > 20, "{count} files");
}

#[test]
fn a_file_cut_off_anywhere_is_an_error() {
    let octets = fs::read(data_file("GeoLite2-ASN-Test.mmdb")).unwrap();
    for length in (0..octets.len()).step_by(97) {
        assert!(Database::from_bytes("cut", &octets[..length]).is_err(), "{length} octets");
    }
}

#[test]
fn errors_say_what_to_do() {
    let error = |path: &str| Database::open(&data_file(path)).unwrap_err().to_string();
    assert!(error("absent.mmdb").contains("check the path"));
    assert!(error("README.md").contains("fetch it again"));
    let kind = error("GeoIP2-Connection-Type-Test.mmdb");
    assert!(kind.contains("type GeoIP2-Connection-Type") && kind.contains("use one of"), "{kind}");
}

/// Each node leads to the next one twice: 2¹²⁸ paths from few octets.
#[test]
fn a_tree_that_leads_to_a_node_twice_is_an_error() {
    let mut writer = Writer::new("Test", 6, 24);
    let place = writer.record(&Data::Map(vec![("country_code", Data::Text("SE"))]));
    writer.insert("::1/128".parse().unwrap(), place);
    let mut octets = writer.finish();
    for node in 0..127u8 {
        let from = usize::from(node) * 6;
        octets[from..from + 6].copy_from_slice(&[0, 0, node + 1, 0, 0, node + 1]);
    }
    let error = Database::from_bytes("test", &octets).unwrap_err().to_string();
    assert!(error.contains("leads to a node twice"), "{error}");
}

#[test]
fn octets_that_were_found_by_fuzzing_are_no_panic() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/geo_database");
    let mut count = 0;
    for entry in fs::read_dir(corpus).unwrap() {
        any_database::check(&fs::read(entry.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 10, "{count} files");
}

/// Changes octets of a good file at random places of each of its parts.
#[test]
fn changed_octets_of_a_good_file_are_no_panic() {
    let good = fs::read(data_file("GeoLite2-ASN-Test.mmdb")).unwrap();
    let mut random = common::Random::new(4);
    for _ in 0..300 {
        let mut octets = good.clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(octets.len());
            octets[at] = random.next() as u8;
        }
        any_database::check(&octets);
    }
}

/// Each network of either database starts and ends where the locations may differ.
#[test]
fn two_databases_together_tell_what_each_knows() {
    let names = ["GeoLite2-City-Test.mmdb", "GeoLite2-ASN-Test.mmdb"];
    let [city, asn] = names.map(open);
    let joined = city.joined(&asn);
    assert_eq!(joined.kind(), "GeoLite2-City and GeoLite2-ASN");
    let mut both = 0;
    for name in names {
        let octets = fs::read(data_file(name)).unwrap();
        let reader = Reader::from_source(&octets[..]).unwrap();
        for found in reader.networks(WithinOptions::default()).unwrap() {
            let network = found.unwrap().network().unwrap();
            for address in [network.network(), network.broadcast()] {
                let (city, city_scope) = city.locate(address);
                let (asn, asn_scope) = asn.locate(address);
                let (location, scope) = joined.locate(address);
                assert_eq!(location, &city.or(asn), "{address}");
                assert!(scope <= city_scope.max(asn_scope), "{address}");
                both += usize::from(location.asn.is_some() && location.country.is_some());
            }
        }
    }
    assert!(both > 0, "no network is in both databases");
}

#[test]
fn an_address_of_neither_family_tree_is_unknown() {
    let mut writer = Writer::new("Test", 4, 24);
    let place = writer.record(&Data::Map(vec![("country_code", Data::Text("SE"))]));
    writer.insert("0.0.0.0/0".parse().unwrap(), place);
    let database = Database::from_bytes("test", &writer.finish()).unwrap();
    let v6: IpAddr = "2001:db8::1".parse().unwrap();
    assert_eq!(database.locate(v6), (&Location::default(), 0));
    assert_eq!(locate(&database, "192.0.2.1").1, 0);
}
