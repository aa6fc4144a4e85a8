//! What the configured zones come down to: files, and feeds of other sources.
//!
//! A *unit* is a file that is loaded as a whole; a directory is as many units as it holds files.

use crate::load_error::LoadError;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zonda_config::{Access, HostsTerms, SerialRule, Source, Zone as ZoneConfig};
use zonda_engine::VersionOrigin;
use zonda_wire::Name;
use zonda_zone::hosts;

/// The source of a zone that is transferred from primaries.
pub const PRIMARIES: &str = "primaries";
/// The beginning of the source of a zone that a catalog lists; the catalog's name follows.
pub const CATALOG: &str = "catalog ";
/// The source of a zone whose master file is a text of the program.
pub const TEXT: &str = "text of the program";

/// The key that tells a unit from every other. All zones of one feed's source have the same key.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct UnitKey {
    /// The file that is read.
    file: UnitFile,
    /// What the file holds.
    pub content: Content,
}

/// How the path of a unit's file is kept. A directory may hold a million of them.
#[derive(Debug, PartialEq, Eq, Hash)]
enum UnitFile {
    /// The whole path.
    Path(Box<Path>),
    /// The directory of a file that is named after its zone.
    Directory(Arc<Path>),
    /// No file: the records come from what these words name, such as a database.
    Feed(Arc<str>),
}

impl UnitKey {
    /// The key of a file.
    fn new(path: PathBuf, content: Content) -> Self {
        Self { file: UnitFile::Path(path.into()), content }
    }

    /// The key of zones whose records come from no file, but from what these words name. There may
    /// be a hundred thousand zones of one source, so that it is no zone's own.
    pub fn of_feed(source: Arc<str>) -> Self {
        Self { file: UnitFile::Feed(source), content: Content::Fed }
    }

    /// Whether the records of the zone come from no file.
    pub fn is_of_feed(&self) -> bool {
        matches!(self.content, Content::Fed)
    }

    /// Whether the zone is served because a catalog lists it.
    pub fn is_of_catalog(&self) -> bool {
        matches!(&self.file, UnitFile::Feed(source) if source.starts_with(CATALOG))
    }

    /// What makes the versions of the zone.
    pub fn origin(&self) -> VersionOrigin {
        match &self.file {
            UnitFile::Path(_) | UnitFile::Directory(_) => VersionOrigin::File,
            UnitFile::Feed(source) if **source == *PRIMARIES => VersionOrigin::Transfer,
            UnitFile::Feed(_) if self.is_of_catalog() => VersionOrigin::Transfer,
            UnitFile::Feed(source) if **source == *TEXT => VersionOrigin::Program,
            UnitFile::Feed(_) => VersionOrigin::Store,
        }
    }

    /// The key of a file that was found in a directory.
    fn in_directory(directory: &Arc<Path>, file_name: &OsStr, content: Content) -> Self {
        let key = Self { file: UnitFile::Directory(Arc::clone(directory)), content };
        match key.file_name().is_some_and(|name| *name == *file_name) {
            true => key,
            false => Self::new(directory.join(file_name), key.content),
        }
    }

    /// The name of a file that is named after its zone.
    fn file_name(&self) -> Option<String> {
        let mut name = String::new();
        self.write_file_name(&mut name)?;
        Some(name)
    }

    /// Appends that to a text.
    fn write_file_name(&self, out: &mut String) -> Option<()> {
        let name = self.content.only_zone()?;
        write!(out, "{name}").ok()?;
        if name.as_wire().len() > 1 {
            out.pop(); // the final dot
        }
        out.push_str(if let Content::Json(_) = self.content { ".json" } else { ".zone" });
        Some(())
    }

    /// The path of the file; an empty one where there is none.
    pub fn path(&self) -> Cow<'_, Path> {
        match &self.file {
            UnitFile::Feed(_) => Path::new("").into(),
            UnitFile::Path(path) => (**path).into(),
            UnitFile::Directory(directory) => {
                directory.join(self.file_name().unwrap_or_default()).into()
            }
        }
    }

    /// Writes the file's name over a text and returns its directory, if it is named after its zone.
    pub fn place(&self, name: &mut String) -> Option<&Arc<Path>> {
        let UnitFile::Directory(directory) = &self.file else { return None };
        name.clear();
        self.write_file_name(name)?;
        Some(directory)
    }

    /// The directory of the file.
    pub fn directory(&self) -> Option<&Path> {
        match &self.file {
            UnitFile::Path(path) => path.parent(),
            UnitFile::Directory(directory) => Some(directory),
            UnitFile::Feed(_) => None,
        }
    }
}

impl fmt::Display for UnitKey {
    /// Writes the path of the file, or where the records come from.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            UnitFile::Feed(source) => f.write_str(source),
            _ => self.path().display().fmt(f),
        }
    }
}

/// What a unit's file holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// The master file of one zone.
    Master(Name),
    /// JSON: one zone, or all that are in it.
    Json(Option<Name>),
    /// Addresses and their names, of one zone.
    Hosts(Name),
    /// There is no file: a feed sends the records of each zone.
    Fed,
}

impl Content {
    /// The zone in the file, if there can be only one.
    pub fn only_zone(&self) -> Option<&Name> {
        match self {
            Self::Master(name) | Self::Hosts(name) => Some(name),
            Self::Json(name) => name.as_ref(),
            Self::Fed => None,
        }
    }
}

/// A file with zone data.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The key: the file, and the format it is read as.
    pub key: Arc<UnitKey>,
    /// The terms under which it is read and served; all files of a directory share them.
    pub terms: Arc<UnitTerms>,
}

/// The terms under which units are read and served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitTerms {
    /// The directory that included files must not leave.
    pub root: Arc<Path>,
    /// The clients that may ask for the zones; all if there is none.
    pub access: Option<Arc<Access>>,
    /// How the serials of the zones rise, if they can be changed while they are served.
    pub writable: Option<SerialRule>,
    /// Whether the file was found in a directory.
    pub in_directory: bool,
    /// What is made of the lines of a hosts file.
    pub hosts: hosts::Terms,
    /// Whether names in front of the forwarded zone around are answered while there are no data.
    pub hosts_first: bool,
}

impl Unit {
    /// Whether its records are to be checked for what other servers expect of a zone.
    pub fn is_checked(&self) -> bool {
        !matches!(self.key.content, Content::Hosts(_))
    }

    /// Whether its file is looked at even if watching is off.
    pub fn is_always_watched(&self) -> bool {
        self.terms.in_directory || matches!(self.key.content, Content::Hosts(_))
    }
}

/// The units of configured zones, and what is wrong with the list.
#[derive(Default)]
pub struct Survey {
    /// The units, no two for the same zone.
    pub units: Vec<Unit>,
    /// Directories that could not be read.
    pub unreadable: Vec<(PathBuf, LoadError)>,
    /// Files that are left out, and why.
    pub ignored: Vec<String>,
}

/// What is made of the lines of a hosts file, as the configuration says.
fn hosts_terms(configured: HostsTerms) -> hosts::Terms {
    let ttl_secs = u32::try_from(configured.ttl.as_secs()).unwrap_or(u32::MAX);
    hosts::Terms { ttl_secs, has_reverse: configured.has_reverse }
}

/// Looks which units there are. `known` tells the units that a directory had when it was last read;
/// it keeps them while it cannot be read.
pub fn survey(zones: &[ZoneConfig], known: impl Fn(&Path) -> Vec<Unit>) -> Survey {
    let mut survey = Survey { units: Vec::with_capacity(zones.len()), ..Survey::default() };
    for zone in zones {
        // The clients of a forwarded zone are those of its upstreams; names in front of it are at
        // its listeners all the same.
        let access = match zone.source {
            Source::Forward(_) => {
                zone.access.as_deref().and_then(Access::of_listeners).map(Arc::new)
            }
            _ => zone.access.clone(),
        };
        let root = Arc::clone(&zone.terms.root);
        let in_directory = matches!(zone.source, Source::Directory(_));
        let writable = zone.terms.writable;
        let hosts = hosts_terms(zone.terms.hosts_terms);
        let terms =
            Arc::new(UnitTerms { root, access, writable, in_directory, hosts, hosts_first: false });
        let of_key = |key| Unit { key: Arc::new(key), terms: Arc::clone(&terms) };
        let unit = |path: &PathBuf, content| of_key(UnitKey::new(path.clone(), content));
        let hosts = |path: &PathBuf, name: &Name| unit(path, Content::Hosts(name.clone()));
        match (&zone.source, &zone.name) {
            (Source::File(path), Some(name)) => {
                survey.units.push(unit(path, Content::Master(name.clone())));
            }
            (Source::Json(path), name) => {
                survey.units.push(unit(path, Content::Json(name.clone())));
            }
            (Source::Hosts(path), Some(name)) => survey.units.push(hosts(path, name)),
            (Source::Directory(path), _) => match directory(path, &mut survey.ignored) {
                Ok(keys) => survey.units.extend(keys.into_iter().map(of_key)),
                Err(error) => {
                    let first = format!("{}: cannot read the directory: {error}", path.display());
                    survey.unreadable.push((path.clone(), LoadError { first, count: 1 }));
                    survey.units.extend(known(path));
                }
            },
            (Source::Forward(_), Some(name)) => {
                survey.units.extend(zone.terms.hosts.iter().map(|path| hosts(path, name)));
            }
            // The configuration refuses these sources without a name.
            (Source::File(_) | Source::Hosts(_) | Source::Forward(_), None) => {}
            // Their feeds send the records.
            (Source::Store(_) | Source::Secondary(_), _) => {}
            (Source::Members(_) | Source::Kubernetes(_), _) => {}
        }
    }
    survey.keep_first_of_each_zone();
    survey
}

impl Survey {
    /// Leaves out units whose zone an earlier unit has.
    fn keep_first_of_each_zone(&mut self) {
        let mut seen: HashMap<Name, Arc<UnitKey>> = HashMap::with_capacity(self.units.len());
        let ignored = &mut self.ignored;
        self.units.retain(|unit| {
            let Some(name) = unit.key.content.only_zone() else { return true };
            let first = seen.entry(name.to_lowercase()).or_insert_with(|| Arc::clone(&unit.key));
            let keep = Arc::ptr_eq(first, &unit.key);
            if !keep {
                ignored.push(already_served(&unit.key, name, first));
            }
            keep
        });
    }
}

/// Returns the text that a zone is served from another source already.
pub fn already_served(unit: &UnitKey, zone: &Name, other: &UnitKey) -> String {
    format!("{unit}: zone {zone} is already served from {other}; ignored")
}

/// The zone files of a directory in the order of their names.
fn directory(path: &Path, ignored: &mut Vec<String>) -> io::Result<Vec<UnitKey>> {
    let directory: Arc<Path> = path.into();
    // All names in one piece of memory, each found by its place.
    let (mut names, mut places) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(path)? {
        let start = names.len();
        names.extend_from_slice(entry?.file_name().as_bytes());
        places.push(start..names.len());
    }
    places.sort_unstable_by(|a, b| names[a.clone()].cmp(&names[b.clone()]));
    let keys = places.into_iter().filter_map(|place| {
        let file = OsStr::from_bytes(&names[place]);
        let (stem, content): (_, fn(Name) -> Content) = match split_extension(file)? {
            (stem, b"zone") => (stem, Content::Master),
            (stem, b"json") => (stem, |name| Content::Json(Some(name))),
            _ => return None,
        };
        let stem = String::from_utf8_lossy(stem);
        match stem.parse::<Name>() {
            Ok(name) => Some(UnitKey::in_directory(&directory, file, content(name))),
            Err(error) => {
                let path = directory.join(file);
                let path = path.display();
                ignored.push(format!("{path}: {stem} is not the name of a zone: {error}; ignored"));
                None
            }
        }
    });
    Ok(keys.collect())
}

/// A file's name in front of its last dot, which does not begin the name, and behind it.
fn split_extension(file: &OsStr) -> Option<(&[u8], &[u8])> {
    let name = file.as_bytes();
    let dot = name.iter().rposition(|octet| *octet == b'.').filter(|dot| *dot > 0)?;
    Some((&name[..dot], &name[dot + 1..]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use zonda_config::ZoneTerms;

    fn zone(name: Option<&str>, source: Source) -> ZoneConfig {
        let name = name.map(|name| name.parse().unwrap());
        let root = Path::new("/").into();
        ZoneConfig { name, source, access: None, terms: ZoneTerms::new(root).into() }
    }

    fn file(name: &str, path: &str) -> ZoneConfig {
        zone(Some(name), Source::File(path.into()))
    }

    #[test]
    fn the_first_unit_of_a_zone_is_kept_whatever_the_case_of_its_name() {
        let survey = survey(&[file("a.test", "1"), file("A.test", "2")], |_| Vec::new());
        let paths: Vec<_> = survey.units.iter().map(|unit| unit.key.path()).collect();
        assert_eq!(paths, [Path::new("1")]);
        assert_eq!(survey.ignored, ["2: zone A.test. is already served from 1; ignored"]);
    }

    #[test]
    fn a_directory_keeps_its_units_while_it_cannot_be_read() {
        let known = survey(&[file("a.test", "gone/a.test.zone")], |_| Vec::new()).units;
        let directory = zone(None, Source::Directory("gone".into()));
        let survey = survey(&[directory], |path| {
            assert_eq!(path, Path::new("gone"));
            known.clone()
        });
        assert_eq!(survey.units.len(), 1);
        assert!(survey.unreadable[0].1.first.starts_with("gone: cannot read the directory: "));
    }
}
