//! Zones: those of the flags or the variables first, then those of the file.

use super::access::Lists;
use super::bounds;
use crate::access::Access;
use crate::error::{Contradiction, LocalMistake, Origin, Problem};
use crate::keys::{ForwardKeys, ZoneKeys};
use crate::load::Layers;
use crate::mistake::Mistake;
use crate::reader::{RawValue, Reader, Session};
use crate::section::Keys;
use crate::value::ServerAddress;
use crate::{ForwardZone, Listener, Source, Zone};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use toml::de::DeTable;
use zonda_client::{Tls, Trust, Url};
use zonda_upstream::pool::UPSTREAMS_MAX;
use zonda_upstream::{Host, Upstream};
use zonda_wire::{Name, name};

/// Reads all zones. They must not leave `root` or, if it is unset, the directory of the file that
/// names them.
pub(super) fn read<'a>(
    layers: &Layers<'a>,
    session: &mut Session<'a>,
    lists: &mut Lists,
    root: Option<PathBuf>,
    listeners: &[(Listener, Origin)],
) -> (Vec<Zone>, Vec<ForwardZone>) {
    let section = &ZoneKeys::SECTION;
    let working_directory = std::env::current_dir().unwrap_or_default();
    let (taken, zones, forwards) = (HashMap::new(), Vec::new(), Vec::new());
    let listens_on = listeners.iter().map(|(listener, _)| listener.address).collect();
    let mut found = Zones { lists, listens_on, working_directory, taken, zones, forwards };
    let directory = session.source.map_or(Path::new(""), |source| source.directory());
    let file_root: Arc<Path> = found.absolute(root.as_deref().unwrap_or(directory)).into();
    for given in layers.elements(section) {
        let origin = given.origin.clone();
        let Some((name, path)) = given.text.split_once('=') else {
            refuse(session, &given);
            continue;
        };
        let root = match (&root, Path::new(path).parent()) {
            (None, Some(directory)) => found.absolute(directory).into(),
            _ => file_root.clone(),
        };
        let source = if is_json(path) { "json" } else { "file" };
        let by_user = |text| RawValue { text, origin: origin.clone() };
        let given = vec![("name", by_user(name)), (source, by_user(path))];
        found.read(&mut Reader::new(session, section, None, given, origin), root, None);
    }
    if let Some(to) = layers.forward() {
        let origin = to.origin.clone();
        let given = vec![("name", RawValue { text: ".", origin: origin.clone() })];
        let mut reader = Reader::new(session, section, None, given, origin);
        found.read(&mut reader, file_root.clone(), Some(to));
    }
    for (table, origin) in layers.tables(section) {
        let mut reader = Reader::new(session, section, Some(table), Vec::new(), origin);
        found.read(&mut reader, file_root.clone(), None);
    }
    (found.zones, found.forwards)
}

/// Which certificates are trusted; none after a mistake, which is then reported.
fn trust(reader: &mut Reader<'_, '_>, keys: &ForwardKeys) -> Option<Trust> {
    let trust = match (&keys.ca_file, &keys.pins[..]) {
        (None, []) => Trust::PublicRoots,
        (None, pins) => Trust::Pins(pins.iter().map(|pin| pin.0).collect()),
        (Some(path), []) => roots(reader, path)?,
        (Some(_), _) => {
            reader.contradict(Some("pins"), Contradiction::Servers(Mistake::TrustTwice));
            return None;
        }
    };
    let mut encrypted = keys.to.iter().filter(|to| to.transport.is_encrypted()).peekable();
    if encrypted.peek().is_none() && trust != Trust::PublicRoots {
        let key = if keys.ca_file.is_some() { "ca-file" } else { "pins" };
        reader.contradict(Some(key), Contradiction::Servers(Mistake::NothingEncrypted(key)));
    }
    if encrypted.peek().is_none() && keys.trust_ad {
        let mistake = Mistake::NothingEncrypted("trust-ad");
        reader.contradict(Some("trust-ad"), Contradiction::Servers(mistake));
    }
    for upstream in encrypted {
        let subject = upstream.certificate_subject();
        let mistake = if Tls::new(&subject, &trust).is_err() {
            Mistake::NoCertificateName(subject)
        } else if Url::new(&subject, upstream.port, &upstream.path).is_none() {
            Mistake::NoUrl(upstream.path.clone())
        } else {
            continue;
        };
        reader.contradict(Some("to"), Contradiction::Servers(mistake));
    }
    Some(trust)
}

/// The certificates in a file, as roots.
fn roots(reader: &mut Reader<'_, '_>, path: &Path) -> Option<Trust> {
    let pem = match std::fs::read(path) {
        Ok(pem) => pem,
        Err(error) => {
            reader.fail(Some("ca-file"), Problem::Unreadable(path.to_owned(), error));
            return None;
        }
    };
    match Trust::in_pem(&pem) {
        Ok(trust) => Some(trust),
        Err(error) => {
            let mistake = Mistake::Certificates(path.to_owned(), error);
            reader.contradict(Some("ca-file"), Contradiction::Servers(mistake));
            None
        }
    }
}

/// Whether a zone's file holds JSON.
fn is_json(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "json")
}

/// Reports names that are excepted from a zone although they are not below its apex.
fn refuse_outside(reader: &mut Reader<'_, '_>, zone: &Name, except: &[Name]) {
    let apex = zone.as_wire();
    for name in except {
        let wire = name.as_wire();
        if wire.len() == apex.len() || !name::is_at_or_below(wire, apex) {
            let outside =
                Contradiction::Local(LocalMistake::ExceptOutside(name.clone(), zone.clone()));
            reader.contradict(Some("except"), outside);
        }
    }
}

/// Reports an upstream that is given a second time, perhaps in other words: it would be asked as if
/// there were two, and counted twice under one name.
fn refuse_twice(reader: &mut Reader<'_, '_>, upstreams: &[Upstream]) {
    let mut seen = HashSet::new();
    for upstream in upstreams {
        let host = match &upstream.host {
            Host::Address(address) => address.to_string(),
            Host::Name(name) => name.to_lowercase().to_string(),
        };
        let Upstream { transport, port, path, .. } = upstream;
        let subject = upstream.certificate_subject().to_ascii_lowercase();
        if !seen.insert((transport, host, port, path, subject)) {
            let mistake = Mistake::Twice(upstream.clone());
            reader.contradict(Some("to"), Contradiction::Servers(mistake));
        }
    }
}

/// Reports a zone that was not given as NAME=FILE.
fn refuse(session: &mut Session<'_>, given: &RawValue<'_>) {
    let problem = Problem::Value {
        key: "zone".to_owned(),
        found: format!("\"{}\"", given.text),
        form: "NAME=FILE, such as \"example.com=example.com.zone\"".to_owned(),
    };
    session.fail(given.origin.clone(), problem);
}

/// The zones read so far, and what it takes to read another.
struct Zones<'l> {
    lists: &'l mut Lists,
    /// Where this server can be asked.
    listens_on: Vec<SocketAddr>,
    working_directory: PathBuf,
    /// Where each name was given, in lower case.
    taken: HashMap<Name, Origin>,
    zones: Vec<Zone>,
    forwards: Vec<ForwardZone>,
}

impl Zones<'_> {
    /// Reads a zone whose files must stay below `root`, and for which the servers `to` answer if
    /// they are given.
    fn read<'a>(&mut self, reader: &mut Reader<'_, 'a>, root: Arc<Path>, to: Option<RawValue<'a>>) {
        let Some(keys) = ZoneKeys::read(reader) else { return };
        let nested = reader.nested(&ForwardKeys::SECTION);
        if nested.is_some() || to.is_some() {
            return self.read_forward(reader, keys, root, nested, to);
        }
        let name = keys.name.as_ref().map(Name::to_lowercase);
        let (key, source) = match (keys.file, keys.json, keys.directory, keys.hosts, keys.name) {
            (Some(path), None, None, None, Some(name)) => ("file", Source::File { name, path }),
            (None, Some(path), None, None, name) => ("json", Source::Json { name, path }),
            (None, None, Some(path), None, None) => ("directory", Source::Directory { path }),
            (None, None, None, Some(path), Some(name)) => ("hosts", Source::Hosts { name, path }),
            (Some(_), None, None, None, None) => {
                return reader.contradict(None, Contradiction::ZoneWithoutName);
            }
            (None, None, None, Some(_), None) => {
                return reader
                    .contradict(None, Contradiction::Local(LocalMistake::HostsWithoutName));
            }
            (None, None, Some(_), None, Some(_)) => {
                return reader.contradict(Some("name"), Contradiction::DirectoryWithName);
            }
            (file, json, directory, hosts, _) => {
                let sources = [file, json, directory, hosts].iter().flatten().count();
                return reader.contradict(None, Contradiction::SourceCount(sources));
            }
        };
        let may_lie_anywhere = matches!(source, Source::Hosts { .. }); // it includes no other file
        if !may_lie_anywhere && !self.absolute(source.path()).starts_with(&root) {
            let path = source.path().to_owned();
            reader.contradict(Some(key), Contradiction::OutsideRoot(path, root.to_path_buf()));
        }
        let access = self.lists.resolve(reader, keys.access);
        if name.is_none_or(|name| self.take(reader, name)) {
            self.zones.push(Zone { source, root, access });
        }
    }

    /// Reads a zone that other servers answer for.
    fn read_forward<'a>(
        &mut self,
        reader: &mut Reader<'_, 'a>,
        keys: ZoneKeys,
        root: Arc<Path>,
        nested: Option<(&'a DeTable<'a>, Origin)>,
        to: Option<RawValue<'a>>,
    ) {
        let others = [keys.file, keys.json, keys.directory].iter().flatten().count();
        if others > 0 {
            reader.contradict(None, Contradiction::SourceCount(others + 1));
        }
        if keys.name.is_none() {
            reader.contradict(None, Contradiction::ForwardWithoutName);
        }
        let private = keys.access.is_empty().then(Access::of_private_networks);
        let access = match private {
            Some(private) => Some(Arc::new(private)),
            None => self.lists.resolve(reader, keys.access),
        };
        let is_new = keys.name.as_ref().is_some_and(|name| self.take(reader, name.to_lowercase()));
        let given = to.map(|to| ("to", to)).into_iter().collect();
        let (table, origin) = match nested {
            Some((table, origin)) => (Some(table), origin),
            None => (None, reader.origin_of("name")),
        };
        let mut reader = reader.nested_reader(&ForwardKeys::SECTION, (table, origin), given);
        let Some(forward) = ForwardKeys::read(&mut reader) else { return };
        if let Some(zone) = &keys.name {
            refuse_outside(&mut reader, zone, &forward.except);
        }
        if forward.to.is_empty() {
            reader.contradict(None, Contradiction::Servers(Mistake::Nobody));
        }
        self.refuse_self(&mut reader, &forward.to);
        refuse_twice(&mut reader, &forward.to);
        bounds::forward(&mut reader, &forward);
        if forward.to.len() > UPSTREAMS_MAX {
            reader.contradict(Some("to"), Contradiction::Servers(Mistake::Many(forward.to.len())));
        }
        self.check_bootstrap(&mut reader, &forward);
        let Some(trust) = trust(&mut reader, &forward) else { return };
        if let (Some(name), Some(access), true) = (keys.name, access, is_new) {
            if let Some(path) = keys.hosts {
                let source = Source::Hosts { name: name.clone(), path };
                self.zones.push(Zone { source, root, access: None });
            }
            self.forwards.push(ForwardZone { name: name.to_lowercase(), forward, trust, access });
        }
    }

    /// Reports servers whose addresses cannot be looked up, or only by this server itself.
    fn check_bootstrap(&self, reader: &mut Reader<'_, '_>, keys: &ForwardKeys) {
        let names = keys.to.iter().filter_map(|to| match &to.host {
            Host::Name(name) => Some(name),
            Host::Address(_) => None,
        });
        let names: Vec<&Name> = names.collect();
        if let ([name, ..], true) = (&names[..], keys.bootstrap.is_empty()) {
            reader.contradict(
                Some("to"),
                Contradiction::Servers(Mistake::NoBootstrap((*name).clone())),
            );
        }
        if names.is_empty() && !keys.bootstrap.is_empty() {
            reader.contradict(
                Some("bootstrap"),
                Contradiction::Servers(Mistake::BootstrapForNothing),
            );
        }
        for ServerAddress(server) in &keys.bootstrap {
            if self.is_own_listener(*server) {
                reader.contradict(
                    Some("bootstrap"),
                    Contradiction::Servers(Mistake::BootstrapIsSelf(*server)),
                );
            }
        }
    }

    /// Reports an upstream that is this very server.
    fn refuse_self(&self, reader: &mut Reader<'_, '_>, upstreams: &[Upstream]) {
        let is_own_listener = |upstream: &&Upstream| match upstream.host {
            Host::Address(address) => self.is_own_listener(SocketAddr::new(address, upstream.port)),
            Host::Name(_) => false,
        };
        if let Some(own) = upstreams.iter().find(is_own_listener) {
            let mistake = LocalMistake::ForwardToSelf(own.clone());
            reader.contradict(Some("to"), Contradiction::Local(mistake));
        }
    }

    /// Whether an address is this very server's. Which addresses a wildcard stands for is known for
    /// loopback only; the rest is found when questions come back.
    fn is_own_listener(&self, server: SocketAddr) -> bool {
        let is_local = server.ip().is_loopback() || server.ip().is_unspecified();
        self.listens_on.iter().any(|own| {
            own.port() == server.port()
                && (own.ip() == server.ip() || own.ip().is_unspecified() && is_local)
        })
    }

    /// Notes that a zone has this name; false if one that was given outside of the file takes its
    /// place. A second zone of a name is reported.
    fn take(&mut self, reader: &mut Reader<'_, '_>, name: Name) -> bool {
        let origin = reader.origin_of("name");
        match self.taken.entry(name) {
            Entry::Vacant(entry) => _ = entry.insert(origin),
            Entry::Occupied(first) if !first.get().is_file() && origin.is_file() => return false,
            Entry::Occupied(first) => {
                let twice = Contradiction::ZoneTwice(first.key().clone(), first.get().clone());
                reader.contradict(Some("name"), twice);
            }
        }
        true
    }

    /// The path from `/`, its `.` and `..` resolved without asking the file system.
    fn absolute(&self, path: &Path) -> PathBuf {
        let mut clean = PathBuf::new();
        for component in self.working_directory.join(path).components() {
            match component {
                Component::ParentDir => _ = clean.pop(),
                component => clean.push(component),
            }
        }
        clean
    }
}
