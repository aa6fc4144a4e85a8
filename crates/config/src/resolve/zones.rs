//! Zones: those of the flags or the variable first, then those of the file.

use super::access::Lists;
use crate::error::{Contradiction, Origin, Problem};
use crate::keys::ZoneKeys;
use crate::load::Layers;
use crate::reader::{Given, Reader, Session};
use crate::section::Keys;
use crate::{Source, Zone};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use zonda_wire::Name;

/// Reads all zones. They must not leave `root` or, if it is unset, the directory of the file that
/// names them.
pub(super) fn read<'a>(
    layers: &Layers<'a>,
    session: &mut Session<'a>,
    lists: &mut Lists,
    root: Option<PathBuf>,
) -> Vec<Zone> {
    let section = &ZoneKeys::SECTION;
    let working_directory = std::env::current_dir().unwrap_or_default();
    let mut found = Zones { lists, working_directory, taken: HashMap::new(), zones: Vec::new() };
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
        let by_user = |text| Given { text, origin: origin.clone() };
        let given = vec![("name", by_user(name)), (source, by_user(path))];
        found.read(&mut Reader::new(session, section, None, given, origin), root);
    }
    for (table, origin) in layers.tables(section) {
        let mut reader = Reader::new(session, section, Some(table), Vec::new(), origin);
        found.read(&mut reader, file_root.clone());
    }
    found.zones
}

/// Whether a zone's file holds JSON.
fn is_json(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "json")
}

/// Reports a zone that was not given as NAME=FILE.
fn refuse(session: &mut Session<'_>, given: &Given<'_>) {
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
    working_directory: PathBuf,
    /// Where each name was given, in lower case.
    taken: HashMap<Name, Origin>,
    zones: Vec<Zone>,
}

impl Zones<'_> {
    /// Reads a zone whose files must stay below `root`.
    fn read(&mut self, reader: &mut Reader<'_, '_>, root: Arc<Path>) {
        let Some(keys) = ZoneKeys::read(reader) else { return };
        let name = keys.name.as_ref().map(Name::to_lowercase);
        let (key, source) = match (keys.file, keys.json, keys.directory, keys.name) {
            (Some(path), None, None, Some(name)) => ("file", Source::File { name, path }),
            (None, Some(path), None, name) => ("json", Source::Json { name, path }),
            (None, None, Some(path), None) => ("directory", Source::Directory { path }),
            (Some(_), None, None, None) => {
                return reader.contradict(None, Contradiction::ZoneWithoutName);
            }
            (None, None, Some(_), Some(_)) => {
                return reader.contradict(Some("name"), Contradiction::DirectoryWithName);
            }
            (file, json, directory, _) => {
                let sources = [file, json, directory].iter().flatten().count();
                return reader.contradict(None, Contradiction::SourceCount(sources));
            }
        };
        if !self.absolute(source.path()).starts_with(&root) {
            let path = source.path().to_owned();
            reader.contradict(Some(key), Contradiction::OutsideRoot(path, root.to_path_buf()));
        }
        let access = self.lists.resolve(reader, keys.access);
        if name.is_none_or(|name| self.take(reader, name)) {
            self.zones.push(Zone { source, root, access });
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
