//! The ConfigMap of kube-dns in a directory: zones that are forwarded, and upstreams of all else.
//!
//! Kubernetes replaces the files of a mounted ConfigMap by one change of a symbolic link, so that
//! they are never half written. What they say becomes zones of the configuration; a ConfigMap that
//! cannot be used changes nothing.
//!
//! Deliberately absent: `federations`, which Kubernetes has not had since 1.17.

use crate::access::Access;
use crate::error::Origin;
use crate::keys::ForwardKeys;
use crate::reader::{RawValue, Reader, Session};
use crate::resolve::{forward, stamp};
use crate::section::Keys;
use crate::value::ServerAddress;
use crate::{Config, Forward, Source, Zone, ZoneTerms};
#[cfg(feature = "file")]
use serde_json::value::RawValue as RawJson;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zonda_upstream::{Host, Upstream};
use zonda_wire::Name;

/// The file of zones that are forwarded.
const STUB_DOMAINS: &str = "stubDomains";
/// The file of upstreams for all other names.
const UPSTREAMS: &str = "upstreamNameservers";
/// Octets of a file that are read: Kubernetes allows no larger ConfigMap.
const FILE_OCTETS_MAX: u64 = 1 << 20;
/// Zones of a ConfigMap at most.
const ZONES_MAX: usize = 1000;
/// Upstreams for all other names at most, as kube-dns has it.
const UPSTREAMS_MAX: usize = 3;

/// An error of a ConfigMap.
#[derive(Debug)]
pub struct ConfigMapError {
    /// Path of the file.
    pub path: PathBuf,
    /// Line and column of the mistake, from 1; none if it is the file as a whole.
    pub place: Option<(usize, usize)>,
    /// The mistake at that place.
    pub mistake: ConfigMapMistake,
}

/// A mistake in a ConfigMap.
#[derive(Debug)]
pub enum ConfigMapMistake {
    /// A file that cannot be read.
    Unreadable(io::Error),
    /// A file that is larger than any ConfigMap.
    TooLarge,
    /// Text that is not the JSON it should be.
    Json(String),
    /// A key of `stubDomains` that is no name of a zone, and why.
    ZoneName(String, String),
    /// A zone's servers that cannot be asked, and why.
    Servers(String),
    /// A zone that the configuration has itself.
    Taken(Name),
    /// More of something than there may be, which is named, with the most that is allowed.
    Many(&'static str, usize),
}

impl fmt::Display for ConfigMapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.path.display())?;
        if let Some((line, column)) = self.place {
            write!(f, "{line}:{column}:")?;
        }
        match &self.mistake {
            ConfigMapMistake::Unreadable(error) => write!(f, " cannot be read: {error}"),
            ConfigMapMistake::TooLarge => write!(f, " has over {FILE_OCTETS_MAX} octets"),
            ConfigMapMistake::Json(error) => write!(f, " {error}"),
            ConfigMapMistake::ZoneName(text, why) => {
                write!(f, " \"{}\" is no zone to forward: {why}", text.escape_debug())
            }
            ConfigMapMistake::Servers(why) => write!(f, " {why}"),
            ConfigMapMistake::Taken(zone) => {
                write!(f, " {zone} is a zone of the server's own configuration, which counts")
            }
            ConfigMapMistake::Many(what, most) => write!(f, " keep at most {most} {what}"),
        }
    }
}

impl std::error::Error for ConfigMapError {}

/// A ConfigMap that is followed, and what of it is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeDns {
    /// The directory in which the ConfigMap is mounted.
    pub directory: PathBuf,
    /// The servers that resolve the names of upstreams.
    bootstrap: Vec<ServerAddress>,
    /// Addresses on which this server listens.
    listens_on: Vec<SocketAddr>,
    /// The state of the files when they were read last.
    stamp: u64,
    /// Whether they could not be used then.
    is_broken: bool,
    /// What the ConfigMap said when it could be used last.
    content: Content,
    /// The names of the zones that it has added.
    added: Vec<Name>,
    /// The zone `.` of the configuration itself, whose upstreams it has replaced.
    replaced: Option<Box<Zone>>,
}

/// What a ConfigMap says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Content {
    /// The zones that are forwarded.
    zones: Vec<StubDomain>,
    /// How all other names are forwarded, if it says so.
    upstreams: Option<Arc<Forward>>,
}

/// A zone of a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StubDomain {
    /// The zone's apex, in lower case.
    name: Name,
    /// Line and column of the zone's servers.
    place: Option<(usize, usize)>,
    /// How the zone is forwarded.
    forward: Arc<Forward>,
}

impl KubeDns {
    /// A ConfigMap that has not been read.
    pub(crate) fn new(
        directory: PathBuf,
        bootstrap: Vec<ServerAddress>,
        listens_on: Vec<SocketAddr>,
    ) -> Self {
        let (content, added, replaced) = (Content::default(), Vec::new(), None);
        let (stamp, is_broken) = (0, false);
        Self { directory, bootstrap, listens_on, stamp, is_broken, content, added, replaced }
    }

    /// Number of zones that the ConfigMap has in force, and of upstreams for all other names.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let upstreams = self.content.upstreams.as_ref().map_or(0, |it| it.keys.to.len());
        (self.content.zones.len(), upstreams)
    }

    /// Whether the ConfigMap could not be used when it was read last.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// A number for the state that the files have now.
    fn present_stamp(&self) -> u64 {
        stamp(&[self.directory.join(STUB_DOMAINS), self.directory.join(UPSTREAMS)])
    }

    /// Reads no files, as no configuration has a ConfigMap.
    #[cfg(not(feature = "file"))]
    fn read(&self) -> Result<Content, ConfigMapError> {
        Ok(Content::default())
    }

    /// Reads the files.
    #[cfg(feature = "file")]
    fn read(&self) -> Result<Content, ConfigMapError> {
        if let Err(error) = std::fs::read_dir(&self.directory) {
            let (path, mistake) = (self.directory.clone(), ConfigMapMistake::Unreadable(error));
            return Err(ConfigMapError { path, place: None, mistake });
        }
        let mut content = Content::default();
        let path = self.directory.join(STUB_DOMAINS);
        if let Some(text) = read(&path)? {
            content.zones = self.zones(&text, &path)?;
        }
        let path = self.directory.join(UPSTREAMS);
        if let Some(text) = read(&path)? {
            content.upstreams = self.upstreams(&text, &path)?;
        }
        Ok(content)
    }

    /// Reads the zones that are forwarded.
    #[cfg(feature = "file")]
    fn zones(&self, text: &str, path: &Path) -> Result<Vec<StubDomain>, ConfigMapError> {
        let domains: BTreeMap<String, &RawJson> =
            serde_json::from_str(text).map_err(|error| json_error(path, text, text, &error))?;
        let mut zones: Vec<StubDomain> = Vec::new();
        for (domain, servers) in &domains {
            let servers = servers.get();
            let place = place(text, servers, 0);
            let fail = |mistake| ConfigMapError { path: path.to_owned(), place, mistake };
            if zones.len() == ZONES_MAX {
                return Err(fail(ConfigMapMistake::Many("zones", ZONES_MAX)));
            }
            let no_zone = |why| fail(ConfigMapMistake::ZoneName(domain.clone(), why));
            let name = zone_name(domain).map_err(no_zone)?;
            if zones.iter().any(|it| it.name == name) {
                return Err(no_zone("it is given twice".to_owned()));
            }
            let servers: Vec<String> = serde_json::from_str(servers)
                .map_err(|error| json_error(path, text, servers, &error))?;
            let forward = self.forward(&name, &servers);
            let forward = forward.map_err(|why| fail(ConfigMapMistake::Servers(why)))?;
            zones.push(StubDomain { name, place, forward: Arc::new(forward) });
        }
        Ok(zones)
    }

    /// Reads the upstreams of all other names; none for an empty list.
    #[cfg(feature = "file")]
    fn upstreams(&self, text: &str, path: &Path) -> Result<Option<Arc<Forward>>, ConfigMapError> {
        let servers: Vec<String> =
            serde_json::from_str(text).map_err(|error| json_error(path, text, text, &error))?;
        let fail = |mistake| {
            let place = place(text, text.trim_start(), 0);
            ConfigMapError { path: path.to_owned(), place, mistake }
        };
        match servers.len() {
            0 => Ok(None),
            1..=UPSTREAMS_MAX => match self.forward(&Name::root(), &servers) {
                Ok(forward) => Ok(Some(Arc::new(forward))),
                Err(why) => Err(fail(ConfigMapMistake::Servers(why))),
            },
            _ => Err(fail(ConfigMapMistake::Many("upstreams", UPSTREAMS_MAX))),
        }
    }

    /// How a zone is forwarded to servers, or what is wrong with them: as if it had been written in
    /// the configuration file.
    fn forward(&self, zone: &Name, servers: &[String]) -> Result<Forward, String> {
        if let Some(several) = servers.iter().find(|server| server.contains(',')) {
            return Err(format!("\"{}\" is not one server", several.escape_debug()));
        }
        let is_name = |server: &String| {
            server.parse::<Upstream>().is_ok_and(|it| matches!(it.host, Host::Name(_)))
        };
        if let Some(server) = servers.iter().find(|it| self.bootstrap.is_empty() && is_name(it)) {
            let server = server.escape_debug();
            return Err(format!(
                "\"{server}\" is a name; write a server that knows its address as `bootstrap` in \
                 [kube-dns]"
            ));
        }
        let to = servers.join(",");
        let bootstrap: Vec<String> = self.bootstrap.iter().map(|it| it.0.to_string()).collect();
        let bootstrap = bootstrap.join(",");
        let mut given = vec![("to", RawValue { text: &to, origin: Origin::Default })];
        if servers.iter().any(is_name) {
            given.push(("bootstrap", RawValue { text: &bootstrap, origin: Origin::Default }));
        }
        let mut session = Session::new(None, Vec::new(), None);
        let section = &ForwardKeys::SECTION;
        let mut reader = Reader::new(&mut session, section, None, given, Origin::Default);
        let read = forward::read(&mut reader, Some(zone), &self.listens_on);
        match (read, &session.errors[..]) {
            (Some(forward), []) => Ok(forward),
            (_, errors) => {
                let why = errors.iter().map(|error| error.problem.to_string());
                Err(why.collect::<Vec<_>>().join("; "))
            }
        }
    }
}

/// The name of a zone that is forwarded, or why it cannot be.
fn zone_name(text: &str) -> Result<Name, String> {
    let zone = text.parse::<Name>().map_err(|error| error.to_string())?.to_lowercase();
    if text.is_empty() || zone == Name::root() {
        return Err(format!("write the upstreams of all names in {UPSTREAMS}"));
    }
    Ok(zone)
}

/// Reads a file within bounds; none if it is not there or is empty.
fn read(path: &Path) -> Result<Option<String>, ConfigMapError> {
    let fail = |mistake| ConfigMapError { path: path.to_owned(), place: None, mistake };
    let mut text = String::new();
    let opened = std::fs::File::open(path);
    let read = opened.and_then(|file| file.take(FILE_OCTETS_MAX + 1).read_to_string(&mut text));
    match read {
        Ok(octets) if octets as u64 > FILE_OCTETS_MAX => Err(fail(ConfigMapMistake::TooLarge)),
        Ok(_) if text.trim().is_empty() => Ok(None),
        Ok(_) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(fail(ConfigMapMistake::Unreadable(error))),
    }
}

/// The error of a part of a text that is not the JSON it should be, at its place in the text.
#[cfg(feature = "file")]
fn json_error(path: &Path, text: &str, part: &str, error: &serde_json::Error) -> ConfigMapError {
    let told = error.to_string();
    let told = told.rsplit_once(" at line ").map_or(&*told, |(told, _)| told);
    let lines = part.split_inclusive('\n').take(error.line().saturating_sub(1));
    let before = lines.map(str::len).sum::<usize>() + error.column().saturating_sub(1);
    let mistake = ConfigMapMistake::Json(told.to_owned());
    ConfigMapError { path: path.to_owned(), place: place(text, part, before), mistake }
}

/// Line and column of an octet of a part of a text, which is counted from the beginning of the
/// part; none if that is no part of the text.
fn place(text: &str, part: &str, octet: usize) -> Option<(usize, usize)> {
    let offset = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize)? + octet;
    let before = text.as_bytes().get(..offset.min(text.len()))?;
    let line = before.iter().filter(|octet| **octet == b'\n').count() + 1;
    let start = before.iter().rposition(|octet| *octet == b'\n').map_or(0, |end| end + 1);
    let column = String::from_utf8_lossy(before.get(start..)?).chars().count() + 1;
    Some((line, column))
}

impl Config {
    /// Follows a ConfigMap from now on: reads it, and puts into force what it says. Returns what of
    /// it is not in force.
    pub(crate) fn follow_config_map(&mut self, kube_dns: KubeDns) -> Vec<ConfigMapError> {
        self.kube_dns = Some(kube_dns);
        self.read_config_map()
    }

    /// Whether the files of a ConfigMap have changed since they were read.
    #[must_use]
    pub fn has_changed_config_map(&self) -> bool {
        self.kube_dns.as_ref().is_some_and(|it| it.present_stamp() != it.stamp)
    }

    /// Returns this configuration with what a ConfigMap says now, and what of it is not in force. A
    /// ConfigMap that cannot be used leaves what it said before.
    #[must_use]
    pub fn with_present_config_map(&self) -> (Self, Vec<ConfigMapError>) {
        let mut config = self.clone();
        let errors = config.read_config_map();
        (config, errors)
    }

    /// Keeps what a former configuration had of the same ConfigMap, if that cannot be used now.
    pub fn keep_config_map_of(&mut self, former: &Self) {
        let (Some(now), Some(before)) = (self.kube_dns.as_mut(), &former.kube_dns) else { return };
        if now.is_broken && now.directory == before.directory {
            now.content = before.content.clone();
            self.put_config_map_into_force(); // what of it is not in force was told before
        }
    }

    /// Reads the ConfigMap and puts into force what it says; returns what is not in force.
    fn read_config_map(&mut self) -> Vec<ConfigMapError> {
        let Some(kube_dns) = &mut self.kube_dns else { return Vec::new() };
        kube_dns.stamp = kube_dns.present_stamp(); // a change from now on is another state
        match kube_dns.read() {
            Ok(content) => {
                (kube_dns.content, kube_dns.is_broken) = (content, false);
                self.put_config_map_into_force()
            }
            Err(error) => {
                kube_dns.is_broken = true;
                vec![error]
            }
        }
    }

    /// Replaces the zones that a ConfigMap had by those that it has; returns those that are not in
    /// force, because the configuration has zones of their names itself.
    fn put_config_map_into_force(&mut self) -> Vec<ConfigMapError> {
        let Some(mut kube_dns) = self.kube_dns.take() else { return Vec::new() };
        let added = std::mem::take(&mut kube_dns.added);
        self.zones.retain(|zone| !zone.name.as_ref().is_some_and(|name| added.contains(name)));
        self.zones.extend(kube_dns.replaced.take().map(|zone| *zone));
        let root_place = self.zones.iter().position(|zone| is_at(zone, &Name::root()));
        let root = root_place.and_then(|place| self.zones.get(place));
        let access = match root {
            Some(Zone { source: Source::Forward(_), access, .. }) => access.clone(),
            _ => Some(Arc::new(Access::of_private_networks())),
        };
        let terms = Arc::new(ZoneTerms::new(kube_dns.directory.as_path().into()));
        let zone = |name: &Name, forward: &Arc<Forward>| Zone {
            name: Some(name.clone()),
            source: Source::Forward(Arc::clone(forward)),
            access: access.clone(),
            terms: Arc::clone(&terms),
        };
        let (mut errors, mut zones) = (Vec::new(), Vec::new());
        let taken = |file, place, name: &Name| ConfigMapError {
            path: kube_dns.directory.join(file),
            place,
            mistake: ConfigMapMistake::Taken(name.clone()),
        };
        for StubDomain { name, place, forward } in &kube_dns.content.zones {
            match self.has_zone(name) {
                true => errors.push(taken(STUB_DOMAINS, *place, name)),
                false => zones.push(zone(name, forward)),
            }
        }
        match (&kube_dns.content.upstreams, root, root_place) {
            (Some(forward), Some(Zone { source: Source::Forward(own), .. }), Some(place)) => {
                let forward = Arc::new(own.with_servers_of(forward));
                let own = self.zones.remove(place);
                let source = Source::Forward(forward);
                zones.push(Zone { source, ..own.clone() });
                kube_dns.replaced = Some(Box::new(own));
            }
            (Some(_), Some(_), _) => errors.push(taken(UPSTREAMS, None, &Name::root())),
            (Some(forward), None, _) => zones.push(zone(&Name::root(), forward)),
            (None, ..) => {}
        }
        kube_dns.added = zones.iter().filter_map(|zone| zone.name.clone()).collect();
        self.zones.extend(zones);
        self.kube_dns = Some(kube_dns);
        errors
    }

    /// Whether the configuration has a zone of this name, in lower case.
    fn has_zone(&self, name: &Name) -> bool {
        let is_reverse = |zone: &Zone| match &zone.source {
            Source::Kubernetes(keys) => keys.reverse_zones().contains(name),
            _ => false,
        };
        self.zones.iter().any(|zone| is_at(zone, name) || is_reverse(zone))
    }
}

/// Whether a zone has this name, in lower case.
fn is_at(zone: &Zone, apex: &Name) -> bool {
    zone.name.as_ref().is_some_and(|own| own.to_lowercase() == *apex)
}

impl Forward {
    /// Returns how a zone is forwarded in the same manner to the servers of another one.
    fn with_servers_of(&self, other: &Self) -> Self {
        let mut keys = self.keys.clone();
        keys.to.clone_from(&other.keys.to);
        keys.bootstrap.clone_from(&other.keys.bootstrap);
        keys.resolv_conf.clone_from(&other.keys.resolv_conf);
        keys.resolv_conf_tcp.clone_from(&other.keys.resolv_conf_tcp);
        let Self { own_servers, files_stamp, .. } = *other;
        Self { keys, trust: self.trust.clone(), own_servers, files_stamp }
    }
}
