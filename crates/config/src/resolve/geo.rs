//! Sites, and what tells where clients are.

use super::geo_files::{PresentStamp, ReadFiles, stamp};
use crate::Config;
use crate::error::{Contradiction, GeoMistake, Origin, SITES_MAX};
use crate::geo_keys::{GeoKeys, GeoNetworkKeys, GeoSiteKeys};
use crate::load::Layers;
use crate::reader::{Reader, Session};
use crate::section::Keys;
use crate::unknown::nearest;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use zonda_balance::geography::{GeoFiles, Geography, LocationDatabase, Site};
use zonda_balance::{Filter, MapSource, SiteMap};
use zonda_geo::{City, Continent, Coordinates, Database, DatabaseError, SiteId};

/// Most maps for the sites of single pools; further pools share a map for all sites.
const MAPS_MAX: usize = 32;

/// What was read from files and made of it, as long as a configuration uses it: a reload uses what
/// has not changed. With a database of all addresses, each takes seconds to make.
static IN_USE: Mutex<InUse> = Mutex::new(InUse { databases: Vec::new(), maps: Vec::new() });

/// What configurations use.
struct InUse {
    databases: Vec<(Vec<PathBuf>, u64, Weak<Database>)>,
    maps: Vec<Weak<SiteMap>>,
}

/// The sites that were read, while pools are read that name them.
pub(super) struct Sites {
    geography: Geography,
    numbers: HashMap<String, u16>,
    /// The files of networks and latencies, which are read when all sites are known, and the place
    /// of the key.
    files: Option<(GeoFiles, Origin)>,
    /// Whether the configuration lists sites, so that other names are slips.
    has_list: bool,
    /// The sites of networks, and the default one.
    of_networks: HashSet<u16>,
}

/// The maps of a configuration's pools.
pub(super) struct Maps {
    geography: Arc<Geography>,
    of_networks: HashSet<u16>,
    maps: Vec<Arc<SiteMap>>,
}

/// How a pool's members are chosen by their sites: the place of that among the filters, and the
/// steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SiteStep {
    /// The number of filters before it.
    pub place: usize,
    /// Whether `geo` is a step.
    pub by_place: bool,
    /// Whether `nearest` is a step.
    pub by_distance: bool,
    /// Whether `learned-latency` is a step.
    pub by_latency: bool,
}

impl SiteStep {
    /// Whether it is `geo` alone, after so many filters, so that an order of sites may follow.
    pub fn is_geo_at(self, place: usize) -> bool {
        self.by_place && !self.by_distance && !self.by_latency && self.place == place
    }

    /// The word of the step that decides last.
    fn word(self) -> &'static str {
        match (self.by_latency, self.by_distance) {
            (true, _) => "learned-latency",
            (false, true) => "nearest",
            (false, false) => "geo",
        }
    }
}

impl Sites {
    /// Reads where clients and sites are.
    pub fn read<'a>(layers: &Layers<'a>, session: &mut Session<'a>) -> Self {
        let mut sites = Self {
            geography: Geography::default(),
            numbers: HashMap::new(),
            files: None,
            has_list: false,
            of_networks: HashSet::new(),
        };
        let mut reader = super::open::<GeoKeys>(layers, session);
        let keys = GeoKeys::read(&mut reader);
        let lists = [&GeoSiteKeys::SECTION, &GeoNetworkKeys::SECTION];
        let [of_sites, of_networks] = lists.map(|section| reader.nested_elements(section));
        sites.has_list = !of_sites.is_empty();
        for (table, origin) in of_sites {
            let (section, element) = (&GeoSiteKeys::SECTION, (Some(table), origin));
            let mut reader = reader.nested_reader(section, element, Vec::new());
            if let Some(keys) = GeoSiteKeys::read(&mut reader) {
                sites.define(&mut reader, keys);
            }
        }
        let mut prefixes = HashSet::new();
        for (table, origin) in of_networks {
            let (section, element) = (&GeoNetworkKeys::SECTION, (Some(table), origin));
            let mut reader = reader.nested_reader(section, element, Vec::new());
            let Some(keys) = GeoNetworkKeys::read(&mut reader) else { continue };
            if !prefixes.insert(keys.prefix) {
                let mistake = GeoMistake::NetworkTwice(keys.prefix.to_string());
                reader.contradict(Some("prefix"), Contradiction::Geo(mistake));
            }
            if let Some(site) = sites.number(&mut reader, "site", &keys.site) {
                sites.geography.networks.push((keys.prefix, SiteId(u32::from(site))));
                sites.of_networks.insert(site);
            }
        }
        let Some(keys) = keys else { return sites };
        if let Some(name) = &keys.default_site {
            sites.geography.default_site = sites.number(&mut reader, "default-site", name);
            sites.of_networks.extend(sites.geography.default_site);
        }
        let files = GeoFiles {
            networks: keys.networks_file,
            latencies: keys.latencies_file,
            listed: std::mem::take(&mut sites.geography.networks),
            stamp: 0,
        };
        let key = if files.networks.is_some() { "networks-file" } else { "latencies-file" };
        sites.files = Some((files, reader.origin_of(key)));
        match database(keys.database) {
            Ok(database) => sites.geography.database = database,
            Err(error) => {
                let mistake = Contradiction::Geo(GeoMistake::Database(Box::new(error)));
                reader.contradict(Some("database"), mistake);
            }
        }
        sites
    }

    /// Adds a site of the list.
    fn define(&mut self, reader: &mut Reader<'_, '_>, keys: GeoSiteKeys) {
        let mut site = named(&keys.name);
        match (&keys.latitude, &keys.longitude) {
            (None, None) => {}
            (Some(latitude), Some(longitude)) => {
                let coordinates = Coordinates::new(latitude.value(), longitude.value());
                if coordinates.is_none() {
                    reader.contradict(None, Contradiction::Geo(GeoMistake::Coordinates));
                }
                let place = |coordinates| zonda_geo::Site { coordinates, bias: keys.bias.0 };
                site.place = coordinates.map(place);
            }
            _ => reader.contradict(None, Contradiction::Geo(GeoMistake::Coordinates)),
        }
        if let Some(place) = &mut site.place {
            place.bias = keys.bias.0;
        }
        let listed = Site {
            name: site.name.clone(),
            place: site.place,
            countries: keys.countries,
            continents: keys.continents,
            subdivisions: keys.subdivisions.into_iter().map(|code| code.0).collect(),
            cities: keys.cities.into_iter().map(|city| city.0).collect(),
            asns: keys.asns,
        };
        let site = if listed.serves_places() { listed } else { site };
        if self.numbers.contains_key(&keys.name) {
            let mistake = Contradiction::Geo(GeoMistake::SiteTwice(keys.name));
            return reader.contradict(Some("name"), mistake);
        }
        self.add(reader, site);
    }

    /// Adds a site; none if there are too many.
    fn add(&mut self, reader: &mut Reader<'_, '_>, site: Site) -> Option<u16> {
        let number = self.geography.sites.len();
        if number == SITES_MAX {
            reader.contradict(None, Contradiction::Geo(GeoMistake::TooManySites));
        }
        let number = u16::try_from(number).ok()?;
        self.numbers.insert(site.name.to_string(), number);
        self.geography.sites.push(site);
        Some(number)
    }

    /// The site that a member without one is by itself, whose name is the member's.
    pub fn of_member(&mut self, reader: &mut Reader<'_, '_>, name: &str) -> Option<u16> {
        match self.numbers.get(name) {
            Some(number) => Some(*number),
            None => self.add(reader, named(name)),
        }
    }

    /// The number of the site that a key names; none after a mistake, which is then reported.
    pub fn number(
        &mut self,
        reader: &mut Reader<'_, '_>,
        key: &'static str,
        name: &str,
    ) -> Option<u16> {
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        if self.has_list && City::of_code(name).is_none() {
            let near = nearest(name, self.numbers.keys().map(String::as_str));
            let mistake = GeoMistake::UnknownSite(name.to_owned(), near.map(str::to_owned));
            reader.contradict(Some(key), Contradiction::Geo(mistake));
            return None;
        }
        self.add(reader, named(name))
    }

    /// The maps of these sites, once all are known.
    pub fn into_maps(mut self, session: &mut Session<'_>) -> Maps {
        if let Some((files, origin)) = self.files.take()
            && let Err(mistake) = self.geography.read_files(files)
        {
            fail(session, &origin, mistake);
        }
        let geography = Arc::new(self.geography);
        Maps { geography, of_networks: self.of_networks, maps: Vec::new() }
    }
}

/// A site of which nothing is known but its name.
fn named(name: &str) -> Site {
    let city = City::of_code(name);
    let place = |city: City| zonda_geo::Site {
        coordinates: city.coordinates,
        bias: zonda_geo::Bias::default(),
    };
    let country = city.map(|city| city.country);
    Site {
        name: name.into(),
        place: city.map(place),
        countries: country.into_iter().collect(),
        continents: country.and_then(Continent::of_country).into_iter().collect(),
        ..Site::default()
    }
}

impl Maps {
    /// The sites, and what tells where clients are.
    pub fn geography(&self) -> Arc<Geography> {
        Arc::clone(&self.geography)
    }

    /// The map for a pool whose members are at these sites.
    ///
    /// # Errors
    /// When the step cannot choose among these sites.
    pub fn map(&mut self, step: SiteStep, mut sites: Vec<u16>) -> Result<Arc<SiteMap>, GeoMistake> {
        let (geography, word) = (&self.geography, step.word());
        sites.sort_unstable();
        sites.dedup();
        if step.by_latency && geography.files.latencies.is_none() {
            return Err(GeoMistake::WithoutLatencies);
        }
        let knows_places = geography.database.is_some() || !geography.networks.is_empty();
        if !step.by_latency && !knows_places && geography.files.networks.is_none() {
            return Err(GeoMistake::Nowhere(word));
        }
        if sites.is_empty() {
            return Err(GeoMistake::WithoutSites(word));
        }
        for number in &sites {
            let site = &geography.sites[usize::from(*number)];
            let is_reached = step.by_latency
                || geography.files.networks.is_some()
                || step.by_place && site.serves_places()
                || step.by_distance && site.place.is_some()
                || self.of_networks.contains(number);
            if !is_reached {
                return Err(GeoMistake::Unreachable(word, site.name.to_string()));
            }
        }
        let SiteStep { by_place, by_distance, by_latency, .. } = step;
        let geography = Arc::clone(geography);
        let mut source = MapSource { geography, sites, by_place, by_distance, by_latency };
        if let Some(known) = self.maps.iter().find(|map| *map.source() == source) {
            return Ok(Arc::clone(known));
        }
        if self.maps.len() >= MAPS_MAX {
            source.sites = (0..self.geography.sites.len() as u16).collect(); // at most SITES_MAX
            if let Some(known) = self.maps.iter().find(|map| *map.source() == source) {
                return Ok(Arc::clone(known));
            }
        }
        let map = shared_map(source)?;
        self.maps.push(Arc::clone(&map));
        Ok(map)
    }
}

/// A map of the configuration in force, or a new one.
fn shared_map(source: MapSource) -> Result<Arc<SiteMap>, GeoMistake> {
    let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    in_use.maps.retain(|map| map.strong_count() > 0);
    let known = in_use.maps.iter().filter_map(Weak::upgrade).find(|map| *map.source() == source);
    if let Some(known) = known {
        return Ok(known);
    }
    let map = Arc::new(SiteMap::compile(source).map_err(GeoMistake::TooMany)?);
    in_use.maps.push(Arc::downgrade(&map));
    Ok(map)
}

/// The database in these files, which the configuration in force may have read before; none without
/// files.
fn database(paths: Vec<PathBuf>) -> Result<Option<LocationDatabase>, DatabaseError> {
    let Some((first, more)) = paths.split_first() else { return Ok(None) };
    let stamp = stamp(&paths);
    let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    in_use.databases.retain(|(_, _, database)| database.strong_count() > 0);
    let known = in_use.databases.iter().find(|it| (&it.0, it.1) == (&paths, stamp));
    if let Some(locations) = known.and_then(|(_, _, database)| database.upgrade()) {
        return Ok(Some(LocationDatabase { paths, stamp, locations }));
    }
    let mut locations = Database::open(first)?;
    for path in more {
        locations = locations.joined(&Database::open(path)?);
    }
    let locations = Arc::new(locations);
    in_use.databases.push((paths.clone(), stamp, Arc::downgrade(&locations)));
    Ok(Some(LocationDatabase { paths, stamp, locations }))
}

impl Config {
    /// Whether any file tells where clients are.
    #[must_use]
    pub fn has_location_files(&self) -> bool {
        let Geography { database, files, .. } = &*self.geography;
        database.is_some() || files.networks.is_some() || files.latencies.is_some()
    }

    /// A number for the state of the files that tell where clients are, if it is not the one that
    /// was read.
    #[must_use]
    pub fn changed_locations(&self) -> Option<u64> {
        let Geography { database, files, .. } = &*self.geography;
        let of_database = database.as_ref().map_or((0, 0), |it| (stamp(&it.paths), it.stamp));
        let now = (of_database.0, files.present_stamp());
        (now != (of_database.1, files.stamp)).then(|| now.0 ^ now.1.rotate_left(1))
    }

    /// This configuration with the database as its files have it now. Takes seconds where a
    /// database has all addresses.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub fn with_present_locations(&self) -> Result<Self, GeoMistake> {
        let mut geography = Geography::clone(&self.geography);
        let files = GeoFiles { stamp: 0, ..geography.files.clone() };
        geography.read_files(files)?;
        let paths = geography.database.take().map(|it| it.paths);
        geography.database = database(paths.unwrap_or_default())
            .map_err(|error| GeoMistake::Database(Box::new(error)))?;
        let mut config = Self { geography: Arc::new(geography), ..self.clone() };
        for filter in config.pools.iter_mut().flat_map(|it| &mut it.pool.filters) {
            if let Filter::Sites(map) = filter {
                let geography = Arc::clone(&config.geography);
                *map = shared_map(MapSource { geography, ..map.source().clone() })?;
            }
        }
        Ok(config)
    }
}

/// Reports a mistake of a pool at its place.
pub(super) fn fail(session: &mut Session<'_>, origin: &Origin, mistake: GeoMistake) {
    let problem = crate::error::Problem::Together(Contradiction::Geo(mistake));
    session.fail(origin.clone(), problem);
}
