//! Files to zones.
//!
//! A *unit* is a file that is loaded as a whole; a directory is as many units as it holds files.
//! Units are loaded in parallel, each by one thread.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};
use zonda_config::{Access, Source, Zone as ZoneConfig};
use zonda_wire::Name;
use zonda_zone::diagnostic::{Diagnostics, Severity};
use zonda_zone::{HashSeed, Records, Zone, build, check, file, json};

/// Memory above which a zone is moved into huge pages.
const HUGE_BYTES: usize = 8 << 20;

/// A file with zone data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unit {
    /// The file.
    pub path: PathBuf,
    /// What is in it.
    pub content: Content,
    /// The directory that included files must not leave.
    pub root: Arc<Path>,
    /// Who may ask for its zones.
    pub access: Option<Arc<Access>>,
    /// Whether the file is looked at even if watching is off.
    pub watched: bool,
}

/// What a unit's file holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// The master file of one zone.
    Master(Name),
    /// JSON: one zone, or all that are in it.
    Json(Option<Name>),
}

/// A state of a file, by which a change is noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    path: PathBuf,
    /// Inode, length and time of the last change; `None` when the file cannot be looked at.
    state: Option<(u64, u64, SystemTime)>,
}

impl Stamp {
    /// The present state of a file.
    fn of(path: &Path) -> Self {
        use std::os::unix::fs::MetadataExt;
        let state = fs::metadata(path).ok();
        let state = state.and_then(|it| Some((it.ino(), it.len(), it.modified().ok()?)));
        Self { path: path.to_owned(), state }
    }

    /// Whether the file is as it was.
    pub fn is_current(&self) -> bool {
        *self == Self::of(&self.path)
    }
}

/// What became of a unit.
pub struct LoadedUnit {
    /// The files that were read, as they were before.
    pub stamps: Vec<Stamp>,
    /// The zones in it, or why there are none.
    pub zones: Vec<(Name, Result<LoadedZone, LoadError>)>,
    /// What is wrong with the file as a whole, when its zones cannot even be named.
    pub failure: Option<LoadError>,
}

/// A zone that was read.
pub struct LoadedZone {
    /// The zone.
    pub zone: Zone,
    /// How many records it has.
    pub records: usize,
}

/// Why a zone was not loaded: the first error, and how many there are.
#[derive(Clone, Debug)]
pub struct LoadError {
    /// `file:line:column: …` of the first.
    pub first: String,
    /// All errors.
    pub count: u64,
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.count {
            0 | 1 => f.write_str(&self.first),
            count => write!(f, "{} (and {} more errors)", self.first, count - 1),
        }
    }
}

/// The units of configured zones. A directory that cannot be read has none, and is reported.
pub fn units(zones: &[ZoneConfig]) -> Vec<Unit> {
    let mut units = Vec::with_capacity(zones.len());
    for zone in zones {
        let unit = |path: &Path, content, watched| Unit {
            path: path.to_owned(),
            content,
            root: Arc::clone(&zone.root),
            access: zone.access.clone(),
            watched,
        };
        match &zone.source {
            Source::File { name, path } => {
                units.push(unit(path, Content::Master(name.clone()), false))
            }
            Source::Json { name, path } => {
                units.push(unit(path, Content::Json(name.clone()), false))
            }
            Source::Directory { path } => match directory(path) {
                Ok(files) => {
                    units.extend(files.iter().map(|(path, it)| unit(path, it.clone(), true)))
                }
                Err(error) => {
                    tracing::error!("{}: cannot read the directory: {error}", path.display())
                }
            },
        }
    }
    only_first_of_each_name(units)
}

/// The zone files of a directory, by the names of their zones.
fn directory(path: &Path) -> std::io::Result<Vec<(PathBuf, Content)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        let Some(name) = path.file_stem().and_then(|stem| stem.to_str()).map(str::parse::<Name>)
        else {
            continue;
        };
        let content = match (path.extension().and_then(|it| it.to_str()), name) {
            (Some("zone"), Ok(name)) => Content::Master(name),
            (Some("json"), Ok(name)) => Content::Json(Some(name)),
            (Some("zone" | "json"), Err(error)) => {
                tracing::warn!("{}: not a zone's name: {error}", path.display());
                continue;
            }
            _ => continue,
        };
        files.push((path, content));
    }
    files.sort_by(|a: &(PathBuf, Content), b| a.0.cmp(&b.0));
    Ok(files)
}

/// Leaves out units whose zone an earlier unit has.
fn only_first_of_each_name(units: Vec<Unit>) -> Vec<Unit> {
    let mut seen: HashMap<Name, PathBuf> = HashMap::with_capacity(units.len());
    let mut kept = Vec::with_capacity(units.len());
    for unit in units {
        if let Content::Master(name) | Content::Json(Some(name)) = &unit.content {
            if let Some(first) = seen.get(&name.to_lowercase()) {
                let (path, first) = (unit.path.display(), first.display());
                tracing::warn!("{path}: zone {name} is already served from {first}; ignored");
                continue;
            }
            seen.insert(name.to_lowercase(), unit.path.clone());
        }
        kept.push(unit);
    }
    kept
}

/// Loads units, several at a time; the results are in the order of the units.
pub fn load_all(units: &[&Unit], seed: HashSeed, threads: usize) -> Vec<LoadedUnit> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<LoadedUnit>>> =
        Mutex::new(std::iter::repeat_with(|| None).take(units.len()).collect());
    let work = || {
        while let Some((index, unit)) =
            Some(next.fetch_add(1, Relaxed)).and_then(|i| Some((i, units.get(i)?)))
        {
            let loaded = load(unit, seed);
            results.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(loaded);
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(units.len()) {
            scope.spawn(work);
        }
        work();
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_iter().map(|loaded| loaded.expect("every unit was taken by a thread")).collect()
}

/// Loads one unit.
fn load(unit: &Unit, seed: HashSeed) -> LoadedUnit {
    let mut stamps = vec![Stamp::of(&unit.path)]; // before it is read, so that no change is missed
    let (zones, diagnostics) = read(unit);
    let included = zones.iter().flat_map(|(_, records)| records.files());
    stamps.extend(included.filter(|path| *path != unit.path).map(Stamp::of));
    let error = report(&diagnostics).err();
    let zones = match (&unit.content, error) {
        (Content::Json(Some(name)), None) if zones.is_empty() => {
            let first = format!("{}: there is no zone {name} in this file", unit.path.display());
            vec![(name.clone(), Err(LoadError { first, count: 1 }))]
        }
        (_, None) => zones
            .into_iter()
            .map(|(name, records)| {
                let zone = make(&name, &records, seed);
                (name, zone)
            })
            .collect(),
        (Content::Master(name) | Content::Json(Some(name)), Some(error)) => {
            vec![(name.clone(), Err(error))]
        }
        (Content::Json(None), failure) => {
            return LoadedUnit { stamps, zones: Vec::new(), failure };
        }
    };
    LoadedUnit { stamps, zones, failure: None }
}

/// Reads the zones of a unit.
fn read(unit: &Unit) -> (Vec<(Name, Records)>, Diagnostics) {
    match &unit.content {
        Content::Master(name) => {
            let root = Some(unit.root.to_path_buf());
            let options = file::Options { root, ..file::Options::default() };
            let (records, diagnostics) = file::read(&unit.path, name, &options);
            (vec![(name.clone(), records)], diagnostics)
        }
        Content::Json(only) => {
            let (zones, diagnostics) = json::read(&unit.path);
            let wanted = |name: &Name| {
                only.as_ref().is_none_or(|only| only.to_lowercase() == name.to_lowercase())
            };
            let zones = zones.into_iter().map(|zone| (zone.name, zone.records));
            (zones.filter(|(name, _)| wanted(name)).collect(), diagnostics)
        }
    }
}

/// Checks and builds a zone.
fn make(name: &Name, records: &Records, seed: HashSeed) -> Result<LoadedZone, LoadError> {
    if records.len() <= CHECKED_MAX {
        log(&check::check(name, records, unix_secs()));
    }
    let zone = build(name, records, seed)
        .map_err(|error| LoadError { first: format!("zone {name}: {error}"), count: 1 })?;
    if zone.bytes() > HUGE_BYTES {
        let (slots, arena) = zone.memory();
        // Only speed is lost where the kernel has no huge pages to give.
        let _ = zonda_netio::memory::use_huge_pages(slots);
        let _ = zonda_netio::memory::use_huge_pages(arena);
    }
    Ok(LoadedZone { zone, records: records.len() })
}

/// Seconds since 1970: signatures are judged by it.
fn unix_secs() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

/// Records up to which a zone is checked whenever it is loaded; larger ones would be served late.
const CHECKED_MAX: usize = 100_000;
/// Diagnostics of a zone that are logged.
const LOGGED_MAX: usize = 20;

/// Logs what reading found; an error among it is the result.
fn report(diagnostics: &Diagnostics) -> Result<(), LoadError> {
    log(diagnostics);
    match diagnostics.iter().find(|diagnostic| diagnostic.severity == Severity::Error) {
        Some(first) => {
            Err(LoadError { first: first.to_string(), count: diagnostics.error_count() })
        }
        None => Ok(()),
    }
}

/// Logs diagnostics, the first ones one by one. Whether a zone is served is not decided here.
fn log(diagnostics: &Diagnostics) {
    for diagnostic in diagnostics.iter().take(LOGGED_MAX) {
        tracing::warn!("{diagnostic}");
    }
    let all = diagnostics.error_count() + diagnostics.warning_count();
    if all > LOGGED_MAX as u64 {
        let more = all - LOGGED_MAX as u64;
        tracing::warn!("and {more} more errors and warnings; `zonda check` tells them");
    }
}

/// What [`check()`] found.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckReport {
    /// Zones that were read.
    pub zones: u64,
    /// Errors: what keeps a zone from being served.
    pub errors: u64,
    /// Warnings.
    pub warnings: u64,
}

/// Reads all zones of a configuration and tells `print` of everything that is wrong, a line each.
pub fn check(config: &zonda_config::Config, print: &mut dyn FnMut(&str)) -> CheckReport {
    let mut report = CheckReport::default();
    let seed = HashSeed::random();
    for unit in units(&config.zones) {
        let (zones, diagnostics) = read(&unit);
        report.add(&diagnostics, print);
        for (name, records) in zones {
            report.zones += 1;
            let found = check::check(&name, &records, unix_secs());
            report.add(&found, print);
            if found.has_errors() {
                continue;
            }
            if let Err(error) = build(&name, &records, seed) {
                report.errors += 1;
                print(&format!("{}:0:0: error: zone {name}: {error}", unit.path.display()));
            }
        }
    }
    report
}

impl CheckReport {
    /// Counts and prints diagnostics.
    fn add(&mut self, diagnostics: &Diagnostics, print: &mut dyn FnMut(&str)) {
        self.errors += diagnostics.error_count();
        self.warnings += diagnostics.warning_count();
        diagnostics.iter().for_each(|diagnostic| print(&diagnostic.to_string()));
        if diagnostics.unlisted_count() > 0 {
            print(&format!("and {} more errors and warnings", diagnostics.unlisted_count()));
        }
    }
}
