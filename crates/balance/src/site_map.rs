//! Which sites a client is sent to, in which order.
//!
//! ```text
//! table    address → class
//! classes  class → tiers, the one that is preferred first
//! tiers    tier → sites
//! ```
//!
//! A map is made for the sites that a pool has members at: networks whose clients prefer these
//! sites in one order are one network of the table, and scopes (rfc7871#7.2.1) are as wide as they
//! can be.

use crate::geography::{Geography, Level, NetworkKey, Site};
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;
use zonda_geo::{Location, Prefix, PrefixTable, SiteId, TooManyPrefixes, distance_km};

/// Sites that a client prefers by their distance; all sites behind them are equal.
pub const NEAREST_MAX: usize = 16;

/// Microseconds that a round trip takes at least, where only the distance is known.
const LATENCY_MIN_MICROS: f64 = 2000.0;
/// Microseconds of a round trip for each kilometre: light in fibre, on ways half as long again as
/// the great circle.
const MICROS_PER_KM: f64 = 15.0;

/// What a map is made from. Equal sources make equal maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapSource {
    /// The sites, and where clients are.
    pub geography: Arc<Geography>,
    /// The sites that matter, by number in ascending order.
    pub sites: Vec<u16>,
    /// Whether sites are preferred that serve the client's place.
    pub by_place: bool,
    /// Whether sites are preferred that are near to the client.
    pub by_distance: bool,
    /// Whether sites are preferred that the client reaches soon.
    pub by_latency: bool,
}

/// A network that is told apart, its site, and the latencies from it.
type OwnNetwork = (Prefix, Option<u16>, Vec<(u16, u32)>);

/// The sites that the clients of each network prefer.
#[derive(Debug)]
pub struct SiteMap {
    source: MapSource,
    table: PrefixTable,
    classes: Box<[Box<[u32]>]>,
    tiers: Box<[Box<[u16]>]>,
}

impl PartialEq for SiteMap {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for SiteMap {}

/// Values by number, each once.
#[derive(Debug)]
struct Numbered<T>(HashMap<T, u32>, Vec<T>);

impl<T: Clone + Eq + Hash> Numbered<T> {
    /// The number of a value.
    fn number(&mut self, value: T) -> u32 {
        if let Some(number) = self.0.get(&value) {
            return *number;
        }
        let number = self.1.len() as u32; // memory ends before
        self.1.push(value.clone());
        self.0.insert(value, number);
        number
    }
}

impl SiteMap {
    /// Makes the map. With a database of all addresses this takes seconds and is the work of a
    /// thread that no query waits for.
    ///
    /// # Errors
    /// When there are too many networks for a table.
    pub fn compile(source: MapSource) -> Result<Self, TooManyPrefixes> {
        let mut tiers = Numbered(HashMap::new(), Vec::new());
        let mut classes = Numbered(HashMap::new(), Vec::new());
        let geography = &source.geography;
        let database = geography.database.as_ref().map(|it| &*it.locations);
        let own = source.own_networks();
        let numbered = own.iter().zip(0..).map(|((prefix, ..), number)| (*prefix, SiteId(number)));
        let numbered: Vec<(Prefix, SiteId)> = numbered.collect();
        let table = PrefixTable::compile(database, &numbered, |location| {
            let preferred = match location.site.and_then(|number| own.get(number.0 as usize)) {
                Some((_, site, latencies)) => {
                    let site = site.map(|site| SiteId(site.into()));
                    source.preferred(&Location { site, ..location.clone() }, latencies)
                }
                None => source.preferred(location, &[]),
            };
            let numbers: Vec<u32> = preferred.into_iter().map(|tier| tiers.number(tier)).collect();
            classes.number(numbers)
        })?;
        let classes = classes.1.into_iter().map(Vec::into_boxed_slice).collect();
        let tiers = tiers.1.into_iter().map(Vec::into_boxed_slice).collect();
        Ok(Self { source, table, classes, tiers })
    }

    /// What the map was made from.
    #[must_use]
    pub fn source(&self) -> &MapSource {
        &self.source
    }

    /// The sites of each tier, by the number of the tier.
    #[must_use]
    pub fn tiers(&self) -> &[Box<[u16]>] {
        &self.tiers
    }

    /// The tiers that the client with an address prefers, the best first, and how many bits of the
    /// address decide that.
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: IpAddr) -> (&[u32], u8) {
        let found = self.table.lookup(address);
        (self.classes.get(found.value as usize).map_or(&[], |tiers| tiers), found.scope)
    }

    /// Octets of memory that the map takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        let classes: usize = self.classes.iter().map(|tiers| tiers.len() * 4 + 16).sum();
        let tiers: usize = self.tiers.iter().map(|sites| sites.len() * 2 + 16).sum();
        self.table.memory() + classes + tiers
    }
}

impl MapSource {
    /// The networks that are told apart whatever the database says, each with its site, if it is at
    /// one, and with the latencies from it.
    fn own_networks(&self) -> Vec<OwnNetwork> {
        let geography = &*self.geography;
        let mut own = BTreeMap::new();
        if self.by_latency {
            for NetworkKey { address, length } in geography.latencies.networks.keys() {
                own.extend(Prefix::new(*address, *length).map(|it| (NetworkKey::from(it), it)));
            }
        }
        let mut sites = BTreeMap::new();
        for (prefix, site) in &geography.networks {
            own.insert(NetworkKey::from(*prefix), *prefix);
            sites.insert(NetworkKey::from(*prefix), site.0 as u16); // a configuration has fewer
        }
        let site_around = |prefix: Prefix| {
            let lengths = (0..=prefix.length()).rev();
            let mut networks = lengths.filter_map(|it| Prefix::new(prefix.address(), it));
            networks.find_map(|it| sites.get(&NetworkKey::from(it)).copied())
        };
        let network = |prefix: Prefix| {
            let latencies = match self.by_latency {
                true => geography.latencies.around(prefix),
                false => Vec::new(),
            };
            (prefix, site_around(prefix), latencies)
        };
        own.into_values().map(network).collect()
    }

    /// The sites that the clients of a location prefer, the best tier first; to some sites, a
    /// latency in microseconds was measured. Sites in no tier are equal to them.
    #[must_use]
    pub fn preferred(&self, location: &Location, latencies: &[(u16, u32)]) -> Vec<Vec<u16>> {
        let geography = &*self.geography;
        let mut left = self.sites.clone();
        let mut tiers = Vec::new();
        let at_site;
        let mut location = location;
        if let Some(SiteId(site)) = location.site {
            let site = site as u16; // a configuration has fewer
            if !self.by_latency || latencies.is_empty() {
                let chosen = left.extract_if(.., |it| *it == site).collect();
                self.add(chosen, &mut tiers, |_| None);
            }
            at_site = geography.sites.get(usize::from(site)).map(Site::location);
            location = at_site.as_ref().unwrap_or(location);
        }
        let rank = |site: u16| self.rank(site, location, latencies);
        if self.by_place {
            for level in Level::ALL {
                let serves =
                    |it: &mut u16| geography.sites[usize::from(*it)].serves(location, level);
                let chosen = left.extract_if(.., serves).collect();
                self.add(chosen, &mut tiers, rank);
            }
        }
        if self.by_distance || self.by_latency {
            let chosen = left.extract_if(.., |it| rank(*it).is_some()).collect();
            self.add(chosen, &mut tiers, rank);
            tiers.truncate(NEAREST_MAX);
        }
        if let Some(default) = geography.default_site {
            let chosen = left.extract_if(.., |it| *it == default).collect();
            self.add(chosen, &mut tiers, |_| None);
        }
        tiers
    }

    /// How far a site is: kilometres that count, or microseconds; none if that is not known, or
    /// does not matter.
    fn rank(&self, site: u16, from: &Location, latencies: &[(u16, u32)]) -> Option<f64> {
        let place = self.geography.sites[usize::from(site)].place;
        let kilometres = || Some(distance_km(from.coordinates?, place?.coordinates));
        if self.by_latency {
            let measured = latencies.iter().find(|(known, _)| *known == site);
            let estimated = || kilometres().map(|km| LATENCY_MIN_MICROS + km * MICROS_PER_KM);
            return measured.map(|(_, micros)| f64::from(*micros)).or_else(estimated);
        }
        if self.by_distance { Some(place?.bias.apply(kilometres()?)) } else { None }
    }

    /// Adds sites as a tier behind all tiers, or as several in the order of their ranks; sites
    /// without a rank are behind those that have one.
    fn add(&self, chosen: Vec<u16>, tiers: &mut Vec<Vec<u16>>, rank: impl Fn(u16) -> Option<f64>) {
        let mut ranked: Vec<(f64, u16)> =
            chosen.iter().filter_map(|site| Some((rank(*site)?, *site))).collect();
        ranked.sort_by(|left, right| left.0.total_cmp(&right.0).then(left.1.cmp(&right.1)));
        tiers.extend(ranked.iter().take(NEAREST_MAX).map(|(_, site)| vec![*site]));
        let rest: Vec<u16> = chosen.into_iter().filter(|site| rank(*site).is_none()).collect();
        if !rest.is_empty() {
            tiers.push(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::geography::{Latencies, Subdivision};
    use zonda_geo::{Bias, City, Continent};

    /// A site named after a city, which serves that city's country and continent.
    fn site(code: &str) -> Site {
        let city = City::of_code(code).unwrap();
        let place = zonda_geo::Site { coordinates: city.coordinates, bias: Bias::default() };
        Site {
            name: code.into(),
            place: Some(place),
            countries: vec![city.country],
            continents: Continent::of_country(city.country).into_iter().collect(),
            ..Site::default()
        }
    }

    /// The sites that clients at a place prefer, of `fra`, `lon`, `nyc` and `sfo`.
    fn preferred((by_place, by_distance): (bool, bool), location: &Location) -> String {
        let mut sites: Vec<Site> = ["fra", "lon", "nyc", "sfo"].map(site).into();
        let code = "CA".into();
        sites[3].subdivisions.push(Subdivision { country: "US".parse().unwrap(), code });
        let geography = Geography { sites, default_site: Some(1), ..Geography::default() };
        let names = geography.sites.clone();
        let geography = Arc::new(geography);
        let sites = vec![0, 1, 2, 3];
        let source = MapSource { geography, sites, by_place, by_distance, by_latency: false };
        let tier = |tier: Vec<u16>| {
            let name = |site: &u16| names[usize::from(*site)].name.to_string();
            tier.iter().map(name).collect::<Vec<_>>().join("+")
        };
        source.preferred(location, &[]).into_iter().map(tier).collect::<Vec<_>>().join(" ")
    }

    /// A location at a city.
    fn at(code: &str) -> Location {
        let city = City::of_code(code).unwrap();
        Location {
            country: Some(city.country),
            continent: Continent::of_country(city.country),
            coordinates: Some(city.coordinates),
            ..Location::default()
        }
    }

    #[test]
    fn a_client_is_sent_to_the_sites_of_its_country_then_of_its_continent() {
        assert_eq!(preferred((true, false), &at("man")), "lon fra");
        assert_eq!(preferred((true, false), &at("lis")), "fra+lon");
        assert_eq!(preferred((true, false), &at("bos")), "nyc+sfo lon");
        assert_eq!(preferred((true, false), &at("tyo")), "lon", "the default");
        let california = Location { subdivisions: ["CA".into()].into(), ..at("lax") };
        assert_eq!(preferred((true, false), &california), "sfo nyc lon");
    }

    #[test]
    fn a_client_is_sent_to_the_nearest_site_then_to_the_next() {
        assert_eq!(preferred((false, true), &at("bos")), "nyc sfo lon fra");
        assert_eq!(preferred((false, true), &at("tyo")), "sfo fra lon nyc");
        assert_eq!(preferred((false, true), &Location::default()), "lon", "the default");
    }

    #[test]
    fn among_sites_of_one_country_the_nearest_comes_first() {
        assert_eq!(preferred((true, true), &at("lax")), "sfo nyc lon fra");
        assert_eq!(preferred((true, true), &at("bos")), "nyc sfo lon fra");
    }

    #[test]
    fn clients_of_an_own_network_are_where_its_site_is() {
        let own = |site| Location::of_site(SiteId(site));
        assert_eq!(preferred((true, false), &own(2)), "nyc sfo lon");
        assert_eq!(preferred((false, true), &own(3)), "sfo nyc lon fra");
        assert_eq!(preferred((true, false), &own(9)), "lon", "a site that the pool has not");
    }

    #[test]
    fn networks_that_prefer_the_same_sites_are_one() {
        let geography = Geography {
            sites: ["fra", "nyc"].map(site).into(),
            networks: vec![
                ("10.0.0.0/9".parse().unwrap(), SiteId(0)),
                ("10.128.0.0/9".parse().unwrap(), SiteId(0)),
                ("10.1.0.0/16".parse().unwrap(), SiteId(1)),
            ],
            ..Geography::default()
        };
        let geography = Arc::new(geography);
        let source = |sites| MapSource {
            geography: Arc::clone(&geography),
            sites,
            by_place: true,
            by_distance: false,
            by_latency: false,
        };
        let map = SiteMap::compile(source(vec![0, 1])).unwrap();
        let sites = |map: &SiteMap, address: &str| {
            let (tiers, scope) = map.lookup(address.parse().unwrap());
            (tiers.first().map(|tier| map.tiers()[*tier as usize].to_vec()), scope)
        };
        assert_eq!(sites(&map, "10.1.2.3"), (Some(vec![1]), 16));
        assert_eq!(sites(&map, "10.200.0.1"), (Some(vec![0]), 9));
        assert_eq!(sites(&map, "192.0.2.1"), (None, 1));
        let one = SiteMap::compile(source(vec![0])).unwrap();
        assert_eq!(sites(&one, "10.200.0.1"), (Some(vec![0]), 9));
        assert_eq!(sites(&one, "10.1.0.1").1, 16, "its clients are not where the site is");
        assert!(map == SiteMap::compile(source(vec![0, 1])).unwrap() && map != one);
    }

    #[test]
    fn a_client_is_sent_to_the_site_that_it_reaches_soonest() {
        let prefix = |text: &str| text.parse::<Prefix>().unwrap();
        let rows =
            [("10.1.0.0/16", vec![(0, 80_000), (1, 30_000)]), ("10.1.2.0/24", vec![(2, 20_000)])];
        let networks = rows.map(|(network, row)| (NetworkKey::from(prefix(network)), row));
        let latencies = Arc::new(Latencies { networks: networks.into() });
        let geography = Arc::new(Geography {
            sites: ["fra", "lon", "nyc"].map(site).into(),
            networks: vec![(prefix("10.9.0.0/16"), SiteId(0))],
            latencies,
            ..Geography::default()
        });
        let (sites, by_place, by_distance) = (vec![0, 1, 2], false, false);
        let source = MapSource { geography, sites, by_place, by_distance, by_latency: true };
        let map = SiteMap::compile(source).unwrap();
        let order = |address: &str| {
            let (tiers, scope) = map.lookup(address.parse().unwrap());
            let sites = tiers.iter().flat_map(|tier| map.tiers()[*tier as usize].to_vec());
            (sites.collect::<Vec<u16>>(), scope)
        };
        assert_eq!(order("10.1.2.3"), (vec![2, 1, 0], 24), "the longer prefix, and then the other");
        assert_eq!(order("10.1.3.1"), (vec![1, 0], 24), "no figure for nyc, and no place");
        assert_eq!(order("10.9.1.1"), (vec![0, 1, 2], 16), "at fra, by distance");
        assert_eq!(order("192.0.2.1").0, Vec::<u16>::new());
    }
}
