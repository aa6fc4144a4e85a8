//! Units to zones, several at a time, each by one thread.

use crate::stamp::Stamp;
use crate::units::{Content, Unit};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};
use zonda_wire::Name;
use zonda_zone::diagnostic::{Diagnostics, Severity};
use zonda_zone::{HashSeed, Records, Zone, build, check, file, json};

/// Memory above which a zone is moved into huge pages.
const HUGE_BYTES: usize = 8 << 20;
/// Records up to which a zone is checked whenever it is loaded; larger ones would be served late.
const CHECKED_MAX: usize = 100_000;
/// Diagnostics of a zone that are logged.
const LOGGED_MAX: usize = 20;

/// What became of a unit.
pub struct LoadedUnit {
    /// The files that were read, as they were before.
    pub stamps: Vec<Stamp>,
    /// The zones in it, each or why there is none; an error when they cannot even be named.
    pub zones: Result<Vec<NamedZone>, LoadError>,
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
    let started = SystemTime::now();
    let path = &unit.key.path;
    let mut stamps = vec![Stamp::of(path, started)]; // before it is read: no change is missed
    let (zones, diagnostics) = read(unit);
    let included = zones.iter().flat_map(|(_, records)| records.files());
    stamps.extend(included.filter(|file| file != path).map(|file| Stamp::of(file, started)));
    let fault = report(&diagnostics).err().or_else(|| lacks_zone(unit, &zones));
    let zones = match (fault, unit.key.content.only_zone()) {
        (None, _) => Ok(zones
            .into_iter()
            .map(|(name, records)| {
                let zone = make(&name, &records, seed);
                (name, zone)
            })
            .collect()),
        (Some(error), Some(name)) => Ok(vec![(name.clone(), Err(error))]),
        (Some(error), None) => Err(error),
    };
    LoadedUnit { stamps, zones }
}

/// Reads the zones of a unit.
pub fn read(unit: &Unit) -> (Vec<(Name, Records)>, Diagnostics) {
    let path = &unit.key.path;
    match &unit.key.content {
        Content::Master(name) => {
            let root = Some(unit.root.to_path_buf());
            let options = file::Options { root, ..file::Options::default() };
            let (records, diagnostics) = file::read(path, name, &options);
            (vec![(name.clone(), records)], diagnostics)
        }
        Content::Json(only) => {
            let only = only.as_ref().map(Name::to_lowercase);
            let (zones, diagnostics) = json::read(path);
            let zones = zones.into_iter().map(|zone| (zone.name, zone.records));
            let wanted =
                |name: &Name| only.as_ref().is_none_or(|only| *only == name.to_lowercase());
            (zones.filter(|(name, _)| wanted(name)).collect(), diagnostics)
        }
    }
}

/// The error that a file without the zone it is named for makes.
pub fn lacks_zone(unit: &Unit, zones: &[(Name, Records)]) -> Option<LoadError> {
    let name = unit.key.content.only_zone().filter(|_| zones.is_empty())?;
    let path = unit.key.path.display();
    let first = format!("{path}:0:0: error: there is no zone {name} in this file");
    Some(LoadError { first, count: 1 })
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
pub fn unix_secs() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

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
