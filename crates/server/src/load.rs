//! Units to zones, several at a time, each by one thread.

use crate::stamp::Stamp;
use crate::units::{Content, Unit};
use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};
use zonda_config::ProgramContent;
use zonda_wire::Name;
use zonda_zone::snapshot::ITERATIONS_MAX;
use zonda_zone::{
    Diagnostics, Errors, HashSeed, JsonFile, JsonZone, Records, Zone, build, check, file, hosts,
    json,
};

/// Memory above which a zone is moved into huge pages.
const HUGE_BYTES: usize = 8 << 20;
/// Records up to which a zone is checked whenever it is loaded; larger ones would be served late.
const CHECKED_MAX: usize = 100_000;
/// Diagnostics of a zone that are logged.
const LOGGED_MAX: usize = 20;

/// What became of a unit.
pub struct LoadedUnit {
    /// The files that were read or wanted, as they were before.
    pub stamps: Vec<Stamp>,
    /// The zones in it, each or why there is none.
    pub zones: Vec<NamedZone>,
    /// Why there may be more zones, not even the names of which are known.
    pub failure: Option<LoadError>,
}

impl LoadedUnit {
    /// The names of its zones, in lower case.
    pub fn names(&self) -> HashSet<Name> {
        self.zones.iter().map(|(name, _)| name.to_lowercase()).collect()
    }
}

/// A zone by its name, or why there is none.
pub type NamedZone = (Name, Result<LoadedZone, LoadError>);

/// A zone that was read.
pub struct LoadedZone {
    /// The zone.
    pub zone: Zone,
    /// How many records it has.
    pub records: usize,
}

/// Why a zone was not loaded: the first error, and how many there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// `file:line:column: …` of the first.
    pub first: String,
    /// All errors; none while the data are awaited.
    pub count: u64,
}

impl LoadError {
    /// That a zone has no data yet.
    fn awaited() -> Self {
        Self { first: "its data are awaited".to_owned(), count: 0 }
    }

    /// Whether the zone has no data yet, and nothing is wrong with them: the log tells why
    /// elsewhere.
    pub fn is_awaited(&self) -> bool {
        self.count == 0
    }
}

impl From<Errors> for LoadError {
    fn from(errors: Errors) -> Self {
        Self { first: errors.first.to_string(), count: errors.count }
    }
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.count {
            0 | 1 => f.write_str(&self.first),
            count => write!(f, "{} (and {} more errors)", self.first, count - 1),
        }
    }
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
    if let Content::Given(name, ProgramContent::Records(records)) = &unit.key.content {
        let zones = vec![(name.clone(), make(name, records, unit.is_checked(), seed))];
        return LoadedUnit { stamps: Vec::new(), zones, failure: None };
    }
    if let Content::Given(name, ProgramContent::Awaited) = &unit.key.content {
        let zones = vec![(name.clone(), Err(LoadError::awaited()))];
        return LoadedUnit { stamps: Vec::new(), zones, failure: None };
    }
    let started = SystemTime::now();
    let path = &unit.key.path;
    let mut stamps = vec![Stamp::of(path, started)]; // before it is read: no change is missed
    let read = read(unit);
    let files: BTreeSet<_> = read.zones.iter().flat_map(|zone| zone.records.files()).collect();
    let included = files.into_iter().filter(|file| file != path);
    stamps.extend(included.map(|file| Stamp::of(file, started)));
    log(&read.diagnostics);
    let zones = read.zones.into_iter().map(|JsonZone { name, records, errors, .. }| {
        let zone = match errors {
            Some(errors) => Err(errors.into()),
            None => make(&name, &records, unit.is_checked(), seed),
        };
        (name, zone)
    });
    LoadedUnit { stamps, zones: zones.collect(), failure: read.errors.map(LoadError::from) }
}

/// Reads the zones of a unit; a master file is a file with one zone.
pub fn read(unit: &Unit) -> JsonFile {
    let path = &unit.key.path;
    let (zone, diagnostics) = match &unit.key.content {
        Content::Master(name) => {
            let root = Some(unit.root.to_path_buf());
            let is_confined = unit.in_directory;
            let options = file::Options { root, is_confined, ..file::Options::default() };
            let (records, diagnostics) = file::read(path, name, &options);
            let (name, errors) = (name.clone(), diagnostics.errors().cloned());
            (JsonZone { name, sha: None, records, errors }, diagnostics)
        }
        Content::Given(name, ProgramContent::Text(text)) => {
            let options = file::Options::default(); // without a root, nothing can be included
            let (records, diagnostics) = file::read_text(text.as_bytes(), path, name, &options);
            let (name, errors) = (name.clone(), diagnostics.errors().cloned());
            (JsonZone { name, sha: None, records, errors }, diagnostics)
        }
        Content::Given(name, ProgramContent::Records(records)) => {
            let (name, records) = (name.clone(), Records::clone(records));
            (JsonZone { name, sha: None, records, errors: None }, Diagnostics::default())
        }
        Content::Given(name, ProgramContent::Awaited) => {
            let (name, records) = (name.clone(), Records::default());
            (JsonZone { name, sha: None, records, errors: None }, Diagnostics::default())
        }
        Content::Hosts(name) => {
            let (records, diagnostics) = hosts::read(path, name);
            let (name, errors) = (name.clone(), diagnostics.errors().cloned());
            (JsonZone { name, sha: None, records, errors }, diagnostics)
        }
        Content::Json(Some(name)) => {
            json::read_zone(path, name, unit.in_directory.then_some(&*unit.root))
        }
        Content::Json(None) => return json::read(path),
    };
    JsonFile { zones: vec![zone], errors: None, diagnostics }
}

/// Checks and builds a zone.
fn make(
    name: &Name,
    records: &Records,
    is_checked: bool,
    seed: HashSeed,
) -> Result<LoadedZone, LoadError> {
    let is_checked = is_checked && records.len() <= CHECKED_MAX;
    if is_checked {
        log(&check::check(name, records, unix_secs()));
    }
    let zone = build(name, records, seed)
        .map_err(|error| LoadError { first: format!("zone {name}: {error}"), count: 1 })?;
    let iterations = zone.nsec3_iterations();
    if !is_checked && iterations > 0 {
        let limit = ITERATIONS_MAX;
        tracing::warn!(zone = %name, iterations, limit, "iterated hashes of NSEC3 cost time");
    }
    if zone.bytes() > HUGE_BYTES {
        for memory in zone.memory() {
            // Only speed is lost where the kernel has no huge pages to give.
            let _ = zonda_netio::memory::use_huge_pages(memory);
        }
    }
    Ok(LoadedZone { zone, records: records.len() })
}

/// Seconds since 1970: signatures are judged by it.
pub fn unix_secs() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

/// Logs diagnostics, the first ones one by one. Whether a zone is served is not decided here.
fn log(diagnostics: &Diagnostics) {
    for diagnostic in diagnostics.iter().take(LOGGED_MAX) {
        tracing::warn!("{diagnostic}");
    }
    let all = diagnostics.error_count() + diagnostics.warning_count();
    if all > LOGGED_MAX as u64 {
        let more = all - LOGGED_MAX as u64;
        tracing::warn!("and {more} more errors and warnings; `zonda check` lists them");
    }
}
