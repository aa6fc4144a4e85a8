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
    let directory = session.source.map_or(Path::new(""), |source| source.directory());
    let file_root: Arc<Path> = absolute(root.as_deref().unwrap_or(directory)).into();
    let mut zones = Vec::new();
    let mut taken = HashMap::new();
    for given in layers.elements(section) {
        let origin = given.origin.clone();
        let Some((name, file)) = given.text.split_once('=') else {
            refuse(session, &given);
            continue;
        };
        let source = if is_json(file) { "json" } else { "file" };
        let given = vec![
            ("name", Given { text: name, origin: origin.clone() }),
            (source, Given { text: file, origin: origin.clone() }),
        ];
        let root = match &root {
            Some(_) => file_root.clone(),
            None => absolute(Path::new(file).parent().unwrap_or(Path::new(""))).into(),
        };
        let mut reader = Reader::new(session, section, None, given, origin);
        zones.extend(zone(&mut reader, lists, &mut taken, root));
    }
    for (table, origin) in layers.tables(section) {
        let mut reader = Reader::new(session, section, Some(table), Vec::new(), origin);
        zones.extend(zone(&mut reader, lists, &mut taken, file_root.clone()));
    }
    zones
}

/// Whether a zone's file holds JSON.
fn is_json(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|extension| extension == "json")
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

/// Reads one zone; none if it is wrong, or one given before takes its place.
fn zone(
    reader: &mut Reader<'_, '_>,
    lists: &mut Lists,
    taken: &mut HashMap<Name, Origin>,
    root: Arc<Path>,
) -> Option<Zone> {
    let keys = ZoneKeys::read(reader)?;
    let access = lists.resolve(reader, keys.access);
    let name = keys.name.as_ref().map(Name::to_lowercase);
    let (key, source) = match (keys.file, keys.json, keys.directory, keys.name) {
        (Some(path), None, None, Some(name)) => ("file", Source::File { name, path }),
        (None, Some(path), None, name) => ("json", Source::Json { name, path }),
        (None, None, Some(path), None) => ("directory", Source::Directory { path }),
        (file, json, directory, name) => {
            let sources = [file, json, directory.clone()].into_iter().flatten().count();
            reader.contradict(
                None,
                match (sources, directory, name) {
                    (1, Some(_), _) => Contradiction::DirectoryWithName,
                    (1, None, _) => Contradiction::ZoneWithoutName,
                    _ => Contradiction::SourceCount(sources),
                },
            );
            return None;
        }
    };
    if !absolute(source.path()).starts_with(&root) {
        let outside = Contradiction::OutsideRoot(source.path().to_owned(), root.to_path_buf());
        reader.contradict(Some(key), outside);
    }
    if let Some(name) = name {
        let origin = reader.origin_of("name");
        match taken.entry(name) {
            Entry::Vacant(entry) => _ = entry.insert(origin),
            Entry::Occupied(first) if first.get().line() == 0 && origin.line() > 0 => return None,
            Entry::Occupied(first) => {
                let (name, first) = (first.key().clone(), first.get().clone());
                reader.contradict(Some("name"), Contradiction::ZoneTwice(name, first));
            }
        }
    }
    Some(Zone { source, root, access })
}

/// The path from `/`, its `.` and `..` resolved without asking the file system.
fn absolute(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for component in absolute.components() {
        match component {
            Component::ParentDir => _ = clean.pop(),
            component => clean.push(component),
        }
    }
    clean
}
