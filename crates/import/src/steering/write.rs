//! The `zonda.toml` of a configuration with steering.

use super::keys::{self, check, geo, pool};
use super::{Check, Configuration, Geo, Member, Pool, Probe, Site, Target, Zone};
use crate::document::{Document, Value, key};
use std::path::Path;
use std::time::Duration;

/// Highest `ttl-min` of a pool, seconds.
const TTL_MIN_MAX: u32 = 86_400;
/// Highest `ttl-max` of a pool, seconds.
const TTL_MAX_MAX: u32 = 604_800;
/// Shortest `interval` and `timeout` of a check.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Longest `interval` of a check.
const INTERVAL_MAX: Duration = Duration::from_secs(86_400);
/// Longest `timeout` of a check.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);
/// Highest `rise` and `fall` of a check.
const COUNT_MAX: u32 = 1000;
/// Steered names of a zone that are written in one line.
const SHORT_STEER: usize = 2;

impl Configuration {
    /// Writes the whole configuration, made of the file with this path.
    pub fn write(&self, path: &Path) -> String {
        let comment = format!(
            "Made by `zonda import {}`. Behind each key stands the line that it comes from.\n\
             `zonda check --config FILE` tells whether all is well; what was left out, the command \
             has told.",
            path.display()
        );
        let mut document = Document::new(&comment);
        for (address, origin) in &self.listeners {
            document.section("[[listen]]", None);
            document.key("address", &*address.to_string(), origin.as_ref());
        }
        self.geo.write(&mut document);
        for pool in self.pools.all() {
            pool.write(&mut document);
        }
        for zone in &self.zones {
            zone.write(&mut document);
        }
        self.write_settings(&mut document);
        document.into_text()
    }

    /// Writes the sections that exist once.
    fn write_settings(&self, document: &mut Document) {
        let mut sections: Vec<&str> = Vec::new();
        for setting in &self.settings {
            if !sections.contains(&setting.section) {
                sections.push(setting.section);
            }
        }
        for section in sections {
            document.section(&format!("[{section}]"), None);
            for setting in self.settings.iter().filter(|it| it.section == section) {
                document.key(setting.key, setting.value.clone(), Some(&setting.origin));
            }
        }
    }
}

impl Geo {
    /// Writes the section, if there is anything to say.
    fn write(&self, document: &mut Document) {
        let has_lists = !self.networks.is_empty() || !self.sites.is_empty();
        let has_files = self.database.is_some() || self.latencies.is_some();
        if !has_files && self.default_site.is_none() && !has_lists {
            return;
        }
        document.section(keys::GEO, None);
        if let Some((path, origin)) = &self.database {
            document.key(geo::DATABASE, &**path, Some(origin));
        }
        if let Some((path, origin)) = &self.latencies {
            document.key(geo::LATENCIES, &**path, Some(origin));
        }
        if let Some((site, origin)) = &self.default_site {
            document.key(geo::DEFAULT_SITE, &**site, Some(origin));
        }
        if !self.networks.is_empty() {
            let networks = self.networks.iter().map(|network| {
                let prefix = (geo::PREFIX, Value::from(&*network.prefix));
                let site = (geo::SITE, Value::from(&*network.site));
                (Value::table([prefix, site]), Some(network.origin.clone()))
            });
            document.key(geo::NETWORKS, Value::lines(networks), None);
        }
        if !self.sites.is_empty() {
            let sites = self.sites.iter().map(|site| (site.value(), site.origin.clone()));
            document.key(geo::SITES, Value::lines(sites), None);
        }
    }
}

impl Site {
    /// Returns the site as it is written.
    fn value(&self) -> Value {
        let mut pairs = vec![(keys::NAME, Value::from(&*self.name))];
        if let Some((latitude, longitude)) = self.at {
            pairs.push((geo::LATITUDE, Value::number(latitude)));
            pairs.push((geo::LONGITUDE, Value::number(longitude)));
        }
        let lists = [
            (geo::CONTINENTS, &self.continents),
            (geo::COUNTRIES, &self.countries),
            (geo::SUBDIVISIONS, &self.subdivisions),
            (geo::CITIES, &self.cities),
        ];
        for (key, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            pairs.push((key, texts(list)));
        }
        Value::table(pairs)
    }
}

impl Pool {
    /// Writes the section of the pool.
    fn write(&self, document: &mut Document) {
        document.section(keys::POOL, None);
        document.key(keys::NAME, &*self.name, Some(&self.origin));
        let choose: Vec<String> = self.choose.iter().map(|&word| word.to_owned()).collect();
        document.key(pool::CHOOSE, texts(&choose), None);
        let has_sites = self.choose.iter().any(|word| keys::filter::BY_SITE.contains(word));
        let members = self.members.iter();
        let members = members.map(|it| (it.value(has_sites), Some(it.origin.clone())));
        document.key(pool::MEMBERS, Value::lines(members), None);
        if let Some(check) = &self.check {
            document.key(pool::CHECK, check.value(), None);
        }
        document.key(pool::WHEN_ALL_DOWN, self.when_all_down, None);
        match self.answers {
            Some(count) => document.key(pool::ANSWERS, u64::from(count), None),
            None => document.key(pool::ANSWERS, pool::ALL, None),
        }
        if let Some((lowest, highest)) = self.ttl {
            let (lowest, highest) = (lowest.clamp(1, TTL_MIN_MAX), highest.clamp(1, TTL_MAX_MAX));
            document.key(pool::TTL_MIN, &*format!("{lowest}s"), None);
            document.key(pool::TTL_MAX, &*format!("{highest}s"), None);
        }
        if let Some(count) = self.up_min {
            document.key(pool::UP_MIN, u64::from(count), None);
        }
    }
}

impl Member {
    /// Returns the member as it is written; its site is, where a filter looks at it.
    fn value(&self, has_sites: bool) -> Value {
        let mut pairs = vec![match &self.target {
            Target::Address(address) => (pool::ADDRESS, Value::from(&*address.to_string())),
            Target::Pool(name) => (pool::POOL, Value::from(&**name)),
            Target::Data(data) => (pool::DATA, Value::from(&**data)),
        }];
        if let Some(site) = self.site.as_ref().filter(|_| has_sites) {
            pairs.push((geo::SITE, Value::from(&**site)));
        }
        if let Some(weight) = self.weight {
            pairs.push((pool::WEIGHT, Value::from(u64::from(weight))));
        }
        if let Some(priority) = self.priority {
            pairs.push((pool::PRIORITY, Value::from(u64::from(priority))));
        }
        Value::table(pairs)
    }
}

impl Check {
    /// Returns the check as it is written.
    fn value(&self) -> Value {
        let mut pairs = vec![match &self.probe {
            Probe::Tcp(port) => (check::TCP, Value::from(u64::from(*port))),
            Probe::Http(path) => (check::HTTP, Value::from(&**path)),
            Probe::Https(path) => (check::HTTPS, Value::from(&**path)),
            Probe::Program(arguments) => (check::PROGRAM, texts(arguments)),
            Probe::File(path) => (check::FILE, Value::from(&**path)),
        }];
        let mut add = |key, value: Option<Value>| pairs.extend(value.map(|value| (key, value)));
        add(check::PORT, self.port.map(|port| Value::from(u64::from(port))));
        add(check::ADDRESS, self.address.map(|address| Value::from(&*address.to_string())));
        add(check::HOST, self.host.as_deref().map(Value::from));
        add(check::STATUS, (!self.status.is_empty()).then(|| texts(&self.status)));
        add(check::HEADERS, (!self.headers.is_empty()).then(|| texts(&self.headers)));
        add(check::CONTAINS, self.contains.as_deref().map(Value::from));
        add(check::INTERVAL, self.interval.map(|it| duration(it, INTERVAL_MAX)));
        add(check::TIMEOUT, self.timeout.map(|it| duration(it, TIMEOUT_MAX)));
        let count = |count: u32| Value::from(u64::from(count.min(COUNT_MAX)));
        add(check::RISE, self.rise.map(count));
        add(check::FALL, self.fall.map(count));
        add(check::SOURCE, self.source.map(|address| Value::from(&*address.to_string())));
        Value::table(pairs)
    }
}

impl Zone {
    /// Writes the section of the zone.
    fn write(&self, document: &mut Document) {
        document.section(keys::ZONE, None);
        document.key(keys::NAME, &*self.name, Some(&self.origin));
        document.key(keys::FILE, &*self.file, None);
        if self.steer.len() > SHORT_STEER {
            document.section(keys::ZONE_STEER, None);
            for (name, pool) in &self.steer {
                document.key(&key(name), &**pool, None);
            }
        } else if !self.steer.is_empty() {
            let pairs = self.steer.iter().map(|(name, pool)| (name, Value::from(&**pool)));
            document.key(keys::STEER, Value::table(pairs), None);
        }
    }
}

/// Makes a list of strings in one line.
fn texts(list: &[String]) -> Value {
    let list: Vec<Value> = list.iter().map(|text| Value::from(&**text)).collect();
    Value::from(list)
}

/// Makes a duration within its bounds, in seconds where that is exact.
fn duration(duration: Duration, longest: Duration) -> Value {
    let duration = duration.clamp(INTERVAL_MIN, longest);
    match duration.subsec_millis() {
        0 => Value::from(&*format!("{}s", duration.as_secs())),
        _ => Value::from(&*format!("{}ms", duration.as_millis())),
    }
}
