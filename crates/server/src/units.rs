//! What the configured zones come down to: files.
//!
//! A *unit* is a file that is loaded as a whole; a directory is as many units as it holds files.

use crate::load::LoadError;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zonda_config::{Access, ProgramContent, SerialRule, Source, Zone as ZoneConfig};
use zonda_wire::Name;

/// What tells a unit from all others.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct UnitKey {
    /// The file.
    pub path: PathBuf,
    /// What is in it.
    pub content: Content,
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
    /// Nothing, as the data of one zone are here.
    Given(Name, ProgramContent),
}

impl Content {
    /// The zone in the file, if there can be only one.
    pub fn only_zone(&self) -> Option<&Name> {
        match self {
            Self::Master(name) | Self::Hosts(name) | Self::Given(name, _) => Some(name),
            Self::Json(name) => name.as_ref(),
        }
    }
}

/// A file with zone data.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Which file, and what it is read as.
    pub key: Arc<UnitKey>,
    /// The directory that included files must not leave.
    pub root: Arc<Path>,
    /// Who may ask for its zones.
    pub access: Option<Arc<Access>>,
    /// How the serials of its zones rise, if they can be changed while they are served.
    pub writable: Option<SerialRule>,
    /// Whether it was found in a directory.
    pub in_directory: bool,
    /// Whether it changes so often that nobody wants to read what its checks say each time.
    pub is_restless: bool,
}

impl Unit {
    /// Whether its records are to be checked for what other servers expect of a zone.
    pub fn is_checked(&self) -> bool {
        !self.is_restless && !matches!(self.key.content, Content::Hosts(_))
    }

    /// Whether its file is looked at even if watching is off.
    pub fn is_always_watched(&self) -> bool {
        self.in_directory || matches!(self.key.content, Content::Hosts(_))
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

/// Looks which units there are. `known` tells the units that a directory had when it was last read;
/// it keeps them while it cannot be read.
pub fn survey(zones: &[ZoneConfig], known: impl Fn(&Path) -> Vec<Unit>) -> Survey {
    let mut survey = Survey { units: Vec::with_capacity(zones.len()), ..Survey::default() };
    for zone in zones {
        let unit = |path: PathBuf, content, in_directory| Unit {
            key: Arc::new(UnitKey { path, content }),
            root: Arc::clone(&zone.root),
            access: zone.access.clone(),
            writable: zone.writable,
            in_directory,
            is_restless: false,
        };
        let hosts =
            |path: &PathBuf, name: &Name| unit(path.clone(), Content::Hosts(name.clone()), false);
        match (&zone.source, &zone.name) {
            (Source::File(path), Some(name)) => {
                survey.units.push(unit(path.clone(), Content::Master(name.clone()), false));
            }
            (Source::Json(path), name) => {
                survey.units.push(unit(path.clone(), Content::Json(name.clone()), false));
            }
            (Source::Hosts(path), Some(name)) => survey.units.push(hosts(path, name)),
            (Source::Program { path, content }, Some(name)) => {
                let content = Content::Given(name.clone(), content.clone());
                survey.units.push(unit(path.clone(), content, false));
            }
            (Source::Directory(path), _) => match directory(path, &mut survey.ignored) {
                Ok(files) => {
                    let files = files.into_iter();
                    survey.units.extend(files.map(|(path, content)| unit(path, content, true)));
                }
                Err(error) => {
                    let first = format!("{}: cannot read the directory: {error}", path.display());
                    survey.unreadable.push((path.clone(), LoadError { first, count: 1 }));
                    survey.units.extend(known(path));
                }
            },
            (Source::Forward(_), Some(name)) => {
                // The clients of the zone are those of its upstreams.
                let in_front = zone.hosts.iter().map(|path| hosts(path, name));
                survey.units.extend(in_front.map(|unit| Unit { access: None, ..unit }));
            }
            // The configuration refuses these sources without a name.
            (
                Source::File(_) | Source::Hosts(_) | Source::Program { .. } | Source::Forward(_),
                None,
            ) => {}
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
                ignored.push(already_served(&unit.key.path, name, &first.path));
            }
            keep
        });
    }
}

/// Says that a zone is served from another file.
pub fn already_served(path: &Path, zone: &Name, other: &Path) -> String {
    let (path, other) = (path.display(), other.display());
    format!("{path}: zone {zone} is already served from {other}; ignored")
}

/// The zone files of a directory in the order of their names.
fn directory(path: &Path, ignored: &mut Vec<String>) -> io::Result<Vec<(PathBuf, Content)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        let content: fn(Name) -> Content = match extension {
            Some("zone") => Content::Master,
            Some("json") => |name| Content::Json(Some(name)),
            _ => continue,
        };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        match stem.parse::<Name>() {
            Ok(name) => {
                let content = content(name);
                files.push((path, content));
            }
            Err(error) => {
                let path = path.display();
                ignored.push(format!("{path}: {stem} is not the name of a zone: {error}; ignored"));
            }
        }
    }
    files.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(files)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn zone(name: Option<&str>, source: Source) -> ZoneConfig {
        let name = name.map(|name| name.parse().unwrap());
        let root = Path::new("/").into();
        ZoneConfig { name, source, hosts: None, root, writable: None, access: None }
    }

    fn file(name: &str, path: &str) -> ZoneConfig {
        zone(Some(name), Source::File(path.into()))
    }

    #[test]
    fn the_first_unit_of_a_zone_is_kept_whatever_the_case_of_its_name() {
        let survey = survey(&[file("a.test", "1"), file("A.test", "2")], |_| Vec::new());
        let paths: Vec<_> = survey.units.iter().map(|unit| &unit.key.path).collect();
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
