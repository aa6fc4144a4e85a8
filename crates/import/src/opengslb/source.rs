//! Regions, servers and domains of the files.

use super::files::File;
use crate::error::{ImportError, Place, Problem};
use crate::steering::{Check, Probe};
use crate::tree::{Node, fail};
use crate::value::{PlacedValue, duration, get, list, parsed, required, text, texts, value};
use std::net::IpAddr;
use std::time::Duration;
use zonda_wire::Name;

/// A region.
pub struct Region {
    /// Name of the region.
    pub name: PlacedValue<String>,
    /// Codes of countries whose clients belong to the region.
    pub countries: Vec<PlacedValue<String>>,
    /// Codes of continents whose clients belong to the region.
    pub continents: Vec<PlacedValue<String>>,
    /// Servers of all domains.
    pub servers: Vec<Server>,
}

/// A server of one domain in one region.
#[derive(Clone)]
pub struct Server {
    /// Address of the server.
    pub address: PlacedValue<IpAddr>,
    /// Name of the domain that the server is for, in lower case and without final dot.
    pub service: PlacedValue<String>,
    /// Weight of the server.
    pub weight: PlacedValue<u32>,
    /// Name of the region.
    pub region: String,
    /// Check of the server.
    pub check: Check,
}

/// A domain: a name that is steered.
pub struct Domain {
    /// Name in lower case, without its final dot.
    pub name: PlacedValue<String>,
    /// How a server is chosen.
    pub algorithm: PlacedValue<Algorithm>,
    /// Names of the regions whose servers are for it.
    pub regions: Vec<PlacedValue<String>>,
    /// TTL of its answers, seconds.
    pub ttl: Option<PlacedValue<u32>>,
}

/// A way to choose a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Each server in its turn.
    RoundRobin,
    /// A random server by weight.
    Weighted,
    /// The first server that is up.
    Failover,
    /// A server of the client's region.
    Geolocation,
    /// The server with the fastest checks.
    Latency,
    /// The server of the region that is fastest for the client's network.
    LearnedLatency,
}

impl Algorithm {
    /// Words for each algorithm.
    const WORDS: &[(&str, Self)] = &[
        ("round-robin", Self::RoundRobin),
        ("roundrobin", Self::RoundRobin),
        ("rr", Self::RoundRobin),
        ("weighted", Self::Weighted),
        ("weight", Self::Weighted),
        ("failover", Self::Failover),
        ("active-standby", Self::Failover),
        ("geolocation", Self::Geolocation),
        ("geo", Self::Geolocation),
        ("latency", Self::Latency),
        ("learned_latency", Self::LearnedLatency),
        ("learned-latency", Self::LearnedLatency),
    ];

    /// Reads an algorithm by any of its words.
    fn from_word(word: &str) -> Option<Self> {
        let word = word.to_ascii_lowercase();
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, algorithm)| *algorithm)
    }
}

/// Returns the regions of the files, and of an agent's file one of its own.
///
/// # Errors
/// When a value is not what it should be, or a name is given twice.
pub fn regions(files: &[File]) -> Result<Vec<Region>, ImportError> {
    let mut all: Vec<Region> = Vec::new();
    for file in files {
        for node in list(&file.root, "regions")? {
            let region = region(node)?;
            let (name, place) = &region.name;
            if let Some(first) = all.iter().find(|known| known.name.0 == *name) {
                let what = format!("the region {}", name.escape_debug());
                return Err(fail(place.clone(), Problem::Twice(what, first.name.1.clone())));
            }
            all.push(region);
        }
        all.extend(agent(&file.root)?.filter(|_| !file.is_included));
    }
    Ok(all)
}

/// Returns the domains of the files.
///
/// # Errors
/// When a value is not what it should be, or a name is given twice.
pub fn domains(files: &[File]) -> Result<Vec<Domain>, ImportError> {
    let mut all: Vec<Domain> = Vec::new();
    for file in files {
        for node in list(&file.root, "domains")? {
            let domain = domain(node)?;
            let (name, place) = &domain.name;
            if let Some(first) = all.iter().find(|known| known.name.0 == *name) {
                let what = format!("the domain {}", name.escape_debug());
                return Err(fail(place.clone(), Problem::Twice(what, first.name.1.clone())));
            }
            all.push(domain);
        }
    }
    Ok(all)
}

/// Reads a region.
fn region(node: &Node) -> Result<Region, ImportError> {
    let name = required(node, "name")?;
    let health = get(node, "health_check")?;
    let mut servers = Vec::new();
    for node in list(node, "servers")? {
        servers.push(server(node, &name.0, health)?);
    }
    let countries = texts(node, "countries")?;
    Ok(Region { name, countries, continents: texts(node, "continents")?, servers })
}

/// Returns the region that an agent's file stands for: its backends.
fn agent(root: &Node) -> Result<Option<Region>, ImportError> {
    let Some(agent) = get(root, "agent")? else { return Ok(None) };
    let backends = list(agent, "backends")?;
    if backends.is_empty() {
        return Ok(None);
    }
    let name = match get(agent, "identity")? {
        Some(identity) => text(identity, "region")?,
        None => None,
    };
    let name = name.unwrap_or_else(|| ("agent".to_owned(), agent.place.clone()));
    let read = |node: &Node| server(node, &name.0, get(node, "health_check")?);
    let servers = backends.iter().map(read).collect::<Result<_, _>>()?;
    Ok(Some(Region { name, countries: Vec::new(), continents: Vec::new(), servers }))
}

/// Reads a server; `health` is the check of its region or its own.
fn server(node: &Node, region: &str, health: Option<&Node>) -> Result<Server, ImportError> {
    let Some(address) = parsed(node, "address", "an IP address")? else {
        return Err(fail(node.place.clone(), Problem::Missing("address")));
    };
    let service = required(node, "service")?;
    let port = parsed(node, "port", "a port")?.map_or(80, |(port, _)| port);
    let weight = parsed::<i64>(node, "weight", "a whole number")?;
    let clamped = |(weight, place): PlacedValue<i64>| (weight.clamp(0, 1000) as u32, place);
    let weight = weight.map_or((100, node.place.clone()), clamped);
    let host = text(node, "host")?.map(|(host, _)| host);
    let check = check(health, port, host)?;
    Ok(Server {
        address,
        service: (lower(&service.0), service.1),
        weight,
        region: region.to_owned(),
        check,
    })
}

/// Reads a check, of a server with this port and host.
fn check(node: Option<&Node>, port: u16, host: Option<String>) -> Result<Check, ImportError> {
    /// Time between two checks that is not given otherwise.
    const INTERVAL: Duration = Duration::from_secs(30);
    /// Time for a check that is not given otherwise.
    const TIMEOUT: Duration = Duration::from_secs(5);
    let mut check = Check::new(Probe::Http("/health".to_owned()));
    check.port = Some(port).filter(|port| *port != 80);
    check.host = host;
    check.interval = Some(INTERVAL);
    check.timeout = Some(TIMEOUT);
    (check.rise, check.fall) = (Some(2), Some(3));
    check.status = vec!["200-299".to_owned()];
    let Some(node) = node else { return Ok(check) };
    let kind = value(node, "type", "`http`, `https` or `tcp`", |word| match word {
        "http" => Some(0),
        "https" => Some(1),
        "tcp" => Some(2),
        _ => None,
    })?;
    let path = text(node, "path")?.map_or("/health".to_owned(), |(path, _)| path);
    check.probe = match kind {
        None | Some((0, _)) => Probe::Http(path),
        Some((1, _)) => {
            check.port = Some(port).filter(|port| *port != 443);
            Probe::Https(path)
        }
        Some(_) => {
            (check.port, check.host) = (None, None);
            check.status.clear();
            Probe::Tcp(port)
        }
    };
    if let Some((host, _)) = text(node, "host")?.filter(|_| !matches!(check.probe, Probe::Tcp(_))) {
        check.host = Some(host);
    }
    let time = |key, default| Ok::<_, ImportError>(duration(node, key)?.map_or(default, |it| it.0));
    check.interval = Some(time("interval", INTERVAL)?);
    check.timeout = Some(time("timeout", TIMEOUT)?);
    let count = |key, default| {
        let count = parsed::<u32>(node, key, "a whole number")?;
        Ok::<_, ImportError>(Some(count.map_or(default, |(count, _)| count).max(1)))
    };
    check.fall = count("failure_threshold", 3)?;
    check.rise = count("success_threshold", 2)?;
    Ok(check)
}

/// Reads a domain.
fn domain(node: &Node) -> Result<Domain, ImportError> {
    let (name, place) = required(node, "name")?;
    if let Err(why) = name.parse::<Name>() {
        return Err(fail(place, Problem::NotAName(name, why)));
    }
    let wanted = "`round-robin`, `weighted`, `failover`, `geolocation`, `latency` or \
        `learned_latency`";
    let algorithm = value(node, "routing_algorithm", wanted, Algorithm::from_word)?;
    let algorithm = algorithm.unwrap_or_else(|| (Algorithm::RoundRobin, place.clone()));
    let regions = texts(node, "regions")?;
    if regions.is_empty() {
        return Err(fail(node.place.clone(), Problem::Missing("regions")));
    }
    let ttl = parsed(node, "ttl", "a number of seconds")?;
    Ok(Domain { name: (lower(&name), place), algorithm, regions, ttl })
}

/// Returns a name in lower case, without its final dot.
pub fn lower(name: &str) -> String {
    if name == "." {
        return name.to_owned();
    }
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// Returns the error of a region that does not exist.
pub fn unknown_region(name: &str, place: &Place) -> ImportError {
    fail(place.clone(), Problem::UnknownRegion(name.to_owned()))
}
