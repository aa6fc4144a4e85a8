//! Steering that is carried over: pools, where clients and members are, and the zones with the
//! steered names.
//!
//! Each reader of another server's configuration fills a [`Configuration`]; its form in a
//! `zonda.toml` is here ([`mod@write`]), with all spellings in [`keys`].

pub mod keys;
mod write;

use crate::document::Value;
use crate::error::Place;
use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// A configuration under way.
#[derive(Default)]
pub struct Configuration {
    /// Addresses on which queries are answered.
    pub listeners: Vec<(SocketAddr, Option<Place>)>,
    /// Keys of sections that exist once.
    pub settings: Vec<Setting>,
    /// Networks, sites and the database of locations.
    pub geo: Geo,
    /// All pools, in the order of the file.
    pub pools: Pools,
    /// All zones, in the order of the file.
    pub zones: Vec<Zone>,
}

/// A key of a section that exists once.
pub struct Setting {
    /// Header of the section without its brackets.
    pub section: &'static str,
    /// Name of the key.
    pub key: &'static str,
    /// Value of the key.
    pub value: Value,
    /// Place that the value comes from.
    pub origin: Place,
}

/// Where clients are.
#[derive(Default)]
pub struct Geo {
    /// Path of the database.
    pub database: Option<(String, Place)>,
    /// Path of the file of latencies.
    pub latencies: Option<(String, Place)>,
    /// Site of clients whose location no site serves.
    pub default_site: Option<(String, Place)>,
    /// Networks whose site is known.
    pub networks: Vec<Network>,
    /// Sites with the places that they serve.
    pub sites: Vec<Site>,
}

/// A network whose site is known.
pub struct Network {
    /// Address and length, as in the other configuration.
    pub prefix: String,
    /// Name of the site.
    pub site: String,
    /// Place that the network comes from.
    pub origin: Place,
}

/// A site, and the places that it serves.
#[derive(Default)]
pub struct Site {
    /// Name of the site.
    pub name: String,
    /// Place that the site comes from.
    pub origin: Option<Place>,
    /// Codes of continents.
    pub continents: Vec<String>,
    /// Codes of countries.
    pub countries: Vec<String>,
    /// Codes of subdivisions, each behind its country's: `US-CA`.
    pub subdivisions: Vec<String>,
    /// Names of cities, each behind its country's code: `FR-Paris`.
    pub cities: Vec<String>,
    /// Latitude and longitude in degrees.
    pub at: Option<(f64, f64)>,
}

/// Pools, no two of one name.
#[derive(Default)]
pub struct Pools {
    list: Vec<Pool>,
    names: HashSet<String>,
}

/// A pool.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// Name of the pool, unique in the file.
    pub name: String,
    /// Place that the pool comes from.
    pub origin: Place,
    /// Chain of filters, in the words of [`keys::filter`].
    pub choose: Vec<&'static str>,
    /// Members of the pool, at least one.
    pub members: Vec<Member>,
    /// Check of all members; without one they are up.
    pub check: Option<Check>,
    /// What happens when no member is up, in the words of [`keys::when_all_down`].
    pub when_all_down: &'static str,
    /// Number of members in an answer; none: all of them.
    pub answers: Option<u32>,
    /// Lowest and highest TTL, seconds; written as near as a pool can have them.
    pub ttl: Option<(u32, u32)>,
    /// Number of members below which the pool counts as down.
    pub up_min: Option<u32>,
}

/// A member of a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// What the member answers with.
    pub target: Target,
    /// Site of the member.
    pub site: Option<String>,
    /// Share of the member; none: 1.
    pub weight: Option<u32>,
    /// Rank of the member; none: the first.
    pub priority: Option<u32>,
    /// Place that the member comes from.
    pub origin: Place,
}

/// What a member answers with.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// An A or AAAA record.
    Address(IpAddr),
    /// The answer of another pool.
    Pool(String),
    /// Record data in the form of zone files.
    Data(String),
}

/// A check of members.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What is done to see whether a member is up.
    pub probe: Probe,
    /// Port that HTTP goes to; none: the scheme's.
    pub port: Option<u16>,
    /// Address that is checked in place of the member's.
    pub address: Option<IpAddr>,
    /// Name of the server that HTTP asks for.
    pub host: Option<String>,
    /// Status codes of HTTP that are success; empty: the default.
    pub status: Vec<String>,
    /// Headers of the request, each with its name.
    pub headers: Vec<String>,
    /// Text that the body must have.
    pub contains: Option<String>,
    /// Time between two checks.
    pub interval: Option<Duration>,
    /// Time that a check may take; as `rise`, `fall` and `interval`, written as near as can be.
    pub timeout: Option<Duration>,
    /// Successes in a row after which a member is up.
    pub rise: Option<u32>,
    /// Failures in a row after which a member is down.
    pub fall: Option<u32>,
    /// Address that checks come from.
    pub source: Option<IpAddr>,
}

/// What is done to see whether a member is up.
#[derive(Clone, Debug, PartialEq)]
pub enum Probe {
    /// A connection to this port.
    Tcp(u16),
    /// A request for this path.
    Http(String),
    /// A request over TLS for this path.
    Https(String),
    /// A program with these arguments.
    Program(Vec<String>),
    /// The content of this file.
    File(String),
}

/// A zone with steered names.
pub struct Zone {
    /// Name of the zone, without its final dot.
    pub name: String,
    /// Place that the zone comes from.
    pub origin: Place,
    /// Path of the zone's file.
    pub file: String,
    /// Steered names with their types (`www A,AAAA`), and the pool of each.
    pub steer: Vec<(String, String)>,
}

impl Pool {
    /// Makes a pool of these members that answers with one of them in turn.
    pub fn new(name: &str, origin: &Place, members: Vec<Member>) -> Self {
        Self {
            name: name.to_owned(),
            origin: origin.clone(),
            choose: vec![keys::filter::ROUND_ROBIN],
            members,
            check: None,
            when_all_down: keys::when_all_down::ALL,
            answers: Some(1),
            ttl: None,
            up_min: None,
        }
    }

    /// Whether two pools treat their members alike.
    pub fn is_like(&self, other: &Self) -> bool {
        let bare = |pool: &Self| Self {
            name: String::new(),
            members: Vec::new(),
            origin: self.origin.clone(),
            ..pool.clone()
        };
        bare(self) == bare(other)
    }
}

impl Member {
    /// Makes a member without site, weight and priority.
    pub fn new(target: Target, origin: &Place) -> Self {
        Self { target, site: None, weight: None, priority: None, origin: origin.clone() }
    }
}

impl Check {
    /// Makes a check with the server's defaults.
    pub fn new(probe: Probe) -> Self {
        Self {
            probe,
            port: None,
            address: None,
            host: None,
            status: Vec::new(),
            headers: Vec::new(),
            contains: None,
            interval: None,
            timeout: None,
            rise: None,
            fall: None,
            source: None,
        }
    }
}

impl Pools {
    /// Adds a pool, under another name if its own is taken; returns its name.
    pub fn add(&mut self, mut pool: Pool) -> String {
        let plain = |c: char| match c {
            c if c.is_ascii_alphanumeric() || "._-".contains(c) => c.to_ascii_lowercase(),
            _ => '-',
        };
        let base: String = pool.name.chars().map(plain).collect();
        let base = if base.is_empty() { "pool".to_owned() } else { base };
        pool.name.clone_from(&base);
        for number in 2.. {
            if self.names.insert(pool.name.clone()) {
                break;
            }
            pool.name = format!("{base}-{number}");
        }
        let name = pool.name.clone();
        self.list.push(pool);
        name
    }

    /// Returns all pools.
    pub fn all(&self) -> &[Pool] {
        &self.list
    }
}

impl Geo {
    /// Returns the site of a name, which is added if there is none.
    pub fn site(&mut self, name: &str) -> &mut Site {
        let index = self.sites.iter().position(|site| site.name == name).unwrap_or_else(|| {
            self.sites.push(Site { name: name.to_owned(), ..Site::default() });
            self.sites.len() - 1
        });
        &mut self.sites[index]
    }
}

/// Returns the path of the file of a zone with this name.
pub fn zone_file(name: &str) -> String {
    let mut path = "zones/".to_owned();
    for c in name.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || "._-".contains(c) => {
                path.push(c.to_ascii_lowercase())
            }
            c => path.push_str(&format!("%{:02x}", u32::from(c))),
        }
    }
    path.push_str(if name == "." || name.is_empty() { "root.zone" } else { ".zone" });
    path
}
