//! Where the network of a client is, and what follows from that for a pool.
//!
//! A [`PrefixTable`] tells the value of the longest prefix that an address lies in, and how far
//! around the address that value holds: the SCOPE PREFIX-LENGTH of an answer that depends on
//! nothing else (rfc7871#7.2.1).
//!
//! | module | what it holds |
//! |---|---|
//! | `prefix` | a network: an address and a length |
//! | `table` | from prefixes with values to a table that finds the value of an address |
//! | `location` | the place of a network: continent, country, region, city, coordinates |
//! | `continents` | the continent of each country |
//! | `cities` | cities by the codes that sites are named after |
//! | `database` | locations from files in MaxMind's format |
//! | `compile` | from locations and own networks to the table of one purpose |
//! | `distance` | distances on the globe, and which sites are near |
//! | `orders` | numbers for orders of sites |
//!
//! A [`Database`] is read once and tells the [`Location`] of an address.
//!
//! ```
//! use std::path::Path;
//! use zonda_geo::{Database, Orders, PrefixTable, Site, SiteId, nearest_order};
//! use zonda_geo::{Bias, Coordinates};
//!
//! let database = Database::open(Path::new("tests/data/GeoLite2-City-Test.mmdb"))?;
//! let networks = [("10.1.0.0/16".parse()?, SiteId(1))]; // this network belongs to the site lon
//! let site = |latitude, longitude| {
//!     let coordinates = Coordinates::new(latitude, longitude)?;
//!     Some(Site { coordinates, bias: Bias::default() })
//! };
//! let sites: Vec<Site> = [site(50.1, 8.7), site(51.5, -0.1)].into_iter().flatten().collect();
//! let mut orders = Orders::default();
//! let table = PrefixTable::compile(Some(&database), &networks, |location| {
//!     orders.number(&match (location.site, location.coordinates) {
//!         (Some(SiteId(site)), _) => vec![site as u16],
//!         (None, Some(from)) => nearest_order(from, &sites, 3),
//!         (None, None) => vec![0, 1],
//!     })
//! })?;
//! let found = table.lookup("81.2.69.142".parse()?);
//! assert_eq!(orders.order(found.value), Some(&[1u16, 0][..])); // London: lon, then fra
//! assert_eq!(found.scope, 31); // 81.2.69.140/31 has no location, and the other order
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Deliberately absent: sockets, clocks, threads, and pools: a value is a number whose meaning the
//! caller knows.

#![cfg_attr(
    not(feature = "databases"),
    allow(dead_code, unused_imports, reason = "databases alone have the location of each address")
)]

mod cities;
mod compile;
mod continents;
#[cfg(feature = "databases")]
mod database;
#[cfg(not(feature = "databases"))]
#[path = "no_database.rs"]
mod database;
mod distance;
mod location;
mod orders;
mod prefix;
mod table;

pub use cities::City;
pub use database::{DATABASE_OCTETS_MAX, Database, DatabaseError};
pub use distance::{Bias, Site, distance_km, nearest_order};
pub use location::{CodeError, Continent, Coordinates, CountryCode, Location, SiteId};
pub use orders::Orders;
pub use prefix::{Prefix, PrefixError};
pub use table::{BATCH_MAX, Match, PREFIXES_MAX, PrefixTable, TooManyPrefixes};
