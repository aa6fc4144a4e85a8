//! Zones: those of the flags or the variables first, then those of the file.

use super::access::Lists;
use super::source::{FILE_SOURCES, FileSource, Written, forward, hosts};
use crate::access::Access;
use crate::error::{Contradiction, Origin, Problem};
use crate::keys::{ForwardKeys, ZoneKeys};
use crate::load::Layers;
use crate::reader::{RawValue, Reader, Session};
use crate::section::Keys;
use crate::{Listener, SerialRule, Source, Zone};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use toml::de::DeTable;
use zonda_wire::Name;

/// Reads all zones. They must not leave `root` or, if it is unset, the directory of the file that
/// names them.
pub(super) fn read<'a>(
    layers: &Layers<'a>,
    session: &mut Session<'a>,
    lists: &mut Lists,
    root: Option<PathBuf>,
    listeners: &[(Listener, Origin)],
) -> Vec<Zone> {
    let section = &ZoneKeys::SECTION;
    let working_directory = std::env::current_dir().unwrap_or_default();
    let (taken, zones) = (HashMap::new(), Vec::new());
    let listens_on = listeners.iter().map(|(listener, _)| listener.address).collect();
    let mut found = Zones { lists, listens_on, working_directory, taken, zones };
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
        let mut given = vec![("name", by_user(name)), (source, by_user(path))];
        if layers.flags.writable {
            let origin = Origin::Flag("--writable");
            given.push(("writable", RawValue { text: "true", origin }));
        }
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
    found.zones
}

/// Returns the zones of a directory in which clients create and remove zones.
pub(super) fn of_clients(directory: PathBuf) -> Zone {
    let root = directory.as_path().into();
    let (source, writable) = (Source::Directory(directory), Some(SerialRule::Increment));
    Zone { name: None, source, hosts: None, root, writable, access: None }
}

/// Whether a zone's file holds JSON.
fn is_json(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "json")
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
    /// Addresses on which this server listens.
    listens_on: Vec<SocketAddr>,
    working_directory: PathBuf,
    /// Place where each name was given, in lower case.
    taken: HashMap<Name, Origin>,
    zones: Vec<Zone>,
}

impl Zones<'_> {
    /// Reads a zone whose files must stay below `root`, and which is forwarded to the upstreams
    /// `to` if they are given.
    fn read<'a>(&mut self, reader: &mut Reader<'_, 'a>, root: Arc<Path>, to: Option<RawValue<'a>>) {
        let Some(keys) = ZoneKeys::read(reader) else { return };
        let nested = reader.nested(&ForwardKeys::SECTION);
        let is_forwarded = nested.is_some() || to.is_some();
        let given: Vec<&FileSource> =
            FILE_SOURCES.iter().filter(|source| (source.path)(&keys).is_some()).collect();
        // A hosts file lies in front of a forwarded zone; every other source excludes it.
        let is_overlay = |source: &&FileSource| is_forwarded && source.key == hosts::SOURCE.key;
        let sources = given.iter().copied().filter(|source| !is_overlay(source)).count();
        if is_forwarded {
            if sources > 0 {
                reader.contradict(None, Contradiction::SourceCount(sources + 1));
            }
            return self.read_forward(reader, keys, root, nested, to);
        }
        let &[source] = &given[..] else {
            return reader.contradict(None, Contradiction::SourceCount(sources));
        };
        if let Some(mistake) = source.name.mistake(keys.name.is_some()) {
            let key = keys.name.is_some().then_some("name");
            return reader.contradict(key, mistake);
        }
        let Some(path) = (source.path)(&keys).cloned() else { return };
        if !source.may_lie_anywhere && !self.absolute(&path).starts_with(&root) {
            let outside = Contradiction::OutsideRoot(path.clone(), root.to_path_buf());
            reader.contradict(Some(source.key), outside);
        }
        let can_be_written = match source.written {
            Written::Always => true,
            Written::WithName => keys.name.is_some(),
            Written::Never => false,
        };
        if keys.writable && !can_be_written {
            reader.contradict(Some("writable"), Contradiction::NotWritable(source.key));
        }
        let writable = keys.writable.then_some(keys.serial);
        let access = self.lists.resolve(reader, keys.access);
        let is_new = keys.name.as_ref().is_none_or(|name| self.take(reader, name.to_lowercase()));
        if is_new {
            let source = (source.make)(path);
            let name = keys.name;
            self.zones.push(Zone { name, source, hosts: None, root, writable, access });
        }
    }

    /// Reads a forwarded zone.
    fn read_forward<'a>(
        &mut self,
        reader: &mut Reader<'_, 'a>,
        keys: ZoneKeys,
        root: Arc<Path>,
        nested: Option<(&'a DeTable<'a>, Origin)>,
        to: Option<RawValue<'a>>,
    ) {
        if keys.name.is_none() {
            reader.contradict(None, Contradiction::ForwardWithoutName);
        }
        if keys.writable {
            reader.contradict(Some("writable"), Contradiction::NotWritable("forward"));
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
        let forward = forward::read(&mut reader, keys.name.as_ref(), &self.listens_on);
        if let (Some(name), Some(forward), true) = (keys.name, forward, is_new) {
            let (name, source) = (Some(name.to_lowercase()), Source::Forward(Arc::new(forward)));
            let hosts = keys.hosts;
            self.zones.push(Zone { name, source, hosts, root, writable: None, access });
        }
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

    /// Returns the path from `/`, its `.` and `..` resolved without asking the file system.
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
