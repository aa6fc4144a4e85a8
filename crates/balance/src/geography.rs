//! Where sites are and which clients they serve, as it is configured.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use zonda_geo::{Continent, CountryCode, Database, Location, Prefix, SiteId};

/// The sites of a configuration, and what tells where clients are. Equal geographies have equal
/// files, which says nothing of databases of the same state that were read twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Geography {
    /// The database that knows the location of an address.
    pub database: Option<LocationDatabase>,
    /// The sites, by number.
    pub sites: Vec<Site>,
    /// Networks whose site is known, whatever the database says; the longest prefix counts, and of
    /// equal prefixes the last.
    pub networks: Vec<(Prefix, SiteId)>,
    /// The latencies from networks to sites that were measured.
    pub latencies: Arc<Latencies>,
    /// The files that networks and latencies were read from.
    pub files: GeoFiles,
    /// The site of clients whose location no site serves.
    pub default_site: Option<u16>,
}

/// Files of networks and latencies, which programs change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GeoFiles {
    /// The file of networks: a prefix and a site on each line.
    pub networks: Option<PathBuf>,
    /// The file of latencies: a prefix, a site and milliseconds on each line.
    pub latencies: Option<PathBuf>,
    /// A number that is another one after each change of the files.
    pub stamp: u64,
    /// The networks that are not from a file.
    pub listed: Vec<(Prefix, SiteId)>,
}

/// Latencies from networks to sites, by network: the number of the site, and microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// The latencies of each network.
    pub networks: BTreeMap<NetworkKey, Vec<(u16, u32)>>,
}

/// A network in the order of families, addresses and lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NetworkKey {
    /// The first address of the network.
    pub address: IpAddr,
    /// The length of its prefix.
    pub length: u8,
}

impl From<Prefix> for NetworkKey {
    fn from(prefix: Prefix) -> Self {
        Self { address: prefix.address(), length: prefix.length() }
    }
}

impl Latencies {
    /// The latencies from the network of a prefix to all sites that any network around it has one
    /// for; of several, that of the longest prefix counts.
    #[must_use]
    pub fn around(&self, prefix: Prefix) -> Vec<(u16, u32)> {
        let mut found = Vec::<(u16, u32)>::new();
        if self.networks.is_empty() {
            return found;
        }
        for length in (0..=prefix.length()).rev() {
            let Some(around) = Prefix::new(prefix.address(), length) else { continue };
            let row = self.networks.get(&NetworkKey::from(around)).into_iter().flatten();
            for (site, micros) in row {
                if !found.iter().any(|(known, _)| known == site) {
                    found.push((*site, *micros));
                }
            }
        }
        found
    }
}

/// A database of locations, and the state of its files.
#[derive(Clone)]
pub struct LocationDatabase {
    /// The paths of the files.
    pub paths: Vec<PathBuf>,
    /// A number that is another one after each change of the files.
    pub stamp: u64,
    /// What was read of them.
    pub locations: Arc<Database>,
}

impl PartialEq for LocationDatabase {
    fn eq(&self, other: &Self) -> bool {
        (&self.paths, self.stamp) == (&other.paths, other.stamp)
    }
}

impl Eq for LocationDatabase {}

impl fmt::Debug for LocationDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of stamp {:016x}", self.paths, self.stamp)
    }
}

/// A site: a place that has members of pools, and the clients that it is meant for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// The name of the site.
    pub name: Box<str>,
    /// The place of the site on the globe, if it is known.
    pub place: Option<zonda_geo::Site>,
    /// The countries whose clients it serves.
    pub countries: Vec<CountryCode>,
    /// The continents whose clients it serves.
    pub continents: Vec<Continent>,
    /// The parts of countries whose clients it serves.
    pub subdivisions: Vec<Subdivision>,
    /// The cities whose clients it serves.
    pub cities: Vec<CityName>,
    /// The numbers of the autonomous systems whose clients it serves.
    pub asns: Vec<u32>,
}

/// A part of a country by its code of ISO 3166-2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subdivision {
    /// The country that it is part of.
    pub country: CountryCode,
    /// The part of the code behind the country's: `NY`.
    pub code: Box<str>,
}

/// A city by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CityName {
    /// The country that the city lies in; any if it is none.
    pub country: Option<CountryCode>,
    /// The name in English.
    pub name: Box<str>,
}

/// What a client and a site may have in common, the closest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// One autonomous system has both.
    System,
    /// One city has both.
    City,
    /// One part of a country has both.
    Subdivision,
    /// One country has both.
    Country,
    /// One continent has both.
    Continent,
}

impl Level {
    /// All levels, the closest first.
    pub const ALL: [Self; 5] =
        [Self::System, Self::City, Self::Subdivision, Self::Country, Self::Continent];
}

impl Site {
    /// Whether the site serves the clients of a location, at a level.
    #[must_use]
    pub fn serves(&self, location: &Location, level: Level) -> bool {
        match level {
            Level::System => location.asn.is_some_and(|asn| self.asns.contains(&asn)),
            Level::City => location.city.as_deref().is_some_and(|city| {
                self.cities.iter().any(|served| {
                    let country = served.country.or(location.country);
                    served.name.eq_ignore_ascii_case(city) && country == location.country
                })
            }),
            Level::Subdivision => self.subdivisions.iter().any(|served| {
                let has_code = |code: &str| served.code.eq_ignore_ascii_case(code);
                location.country == Some(served.country)
                    && location.subdivisions.iter().any(|code| has_code(code))
            }),
            Level::Country => {
                location.country.is_some_and(|country| self.countries.contains(&country))
            }
            Level::Continent => {
                location.continent.is_some_and(|continent| self.continents.contains(&continent))
            }
        }
    }

    /// Whether it is said of any clients that the site serves them, but for those of networks.
    #[must_use]
    pub fn serves_places(&self) -> bool {
        let served = [self.countries.len(), self.continents.len(), self.subdivisions.len()];
        served.iter().sum::<usize>() + self.cities.len() + self.asns.len() > 0
    }

    /// The location of clients that are at the site.
    #[must_use]
    pub fn location(&self) -> Location {
        let country = self.countries.first().copied();
        let continent = self.continents.first().copied();
        Location {
            country,
            continent: continent.or_else(|| country.and_then(Continent::of_country)),
            coordinates: self.place.map(|place| place.coordinates),
            ..Location::default()
        }
    }
}
