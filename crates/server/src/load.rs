//! Units to zones, several at a time, each by one thread.

pub use crate::load_error::LoadError;

use crate::directory_reader::DirectoryReader;
use crate::feed::{LoadedZone, Update};
use crate::stamp::{Stamp, Stamps};
use crate::texts::read_text;
use crate::units::{Content, Unit};
use crate::zone_set_view::ZoneSetView;
use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use zonda_config::Config;
use zonda_wire::Name;
use zonda_zone::snapshot::ITERATIONS_MAX;
use zonda_zone::{
    BuildError, Diagnostics, HashSeed, HashedRecords, JsonFile, JsonZone, Records, Zone, build,
    check, file, hosts, json,
};

/// Memory above which a zone is moved into huge pages.
const HUGE_BYTES: usize = 8 << 20;
/// The pause behind each piece of a zone that was moved into huge pages. The kernel lets no thread
/// map memory meanwhile, some 6 ms each time; a thread that waited goes on in the pause.
const HUGE_PAGES_PAUSE: Duration = Duration::from_millis(2);
/// Records up to which a zone is checked whenever it is loaded; larger ones would be served late.
const CHECKED_MAX: usize = 100_000;
/// Most units that a thread takes at a time.
const PART: usize = 64;
/// Threads besides one for each CPU: files that are not in memory yet are read ahead, as many at a
/// time as disks like to be asked for.
const WAITING_THREADS: usize = 4;
/// Diagnostics of a zone that are logged.
const LOGGED_MAX: usize = 20;

/// A unit that was loaded, or its errors.
pub struct LoadedUnit {
    /// The states of the files that were read or wanted, as they were before.
    pub stamps: Stamps,
    /// The zones in it, each or why there is none.
    pub zones: LoadedZones,
    /// Why there may be more zones, not even the names of which are known.
    pub failure: Option<LoadError>,
}

impl LoadedUnit {
    /// Returns the names of the unit's zones, in lower case.
    pub fn names(&self) -> HashSet<Name> {
        self.zones.iter().map(|(name, _)| name.to_lowercase()).collect()
    }

    /// Returns the unit with its zones packed.
    fn packed(mut self) -> Self {
        let zones = self.zones.into_iter().map(|(name, update)| match update {
            Update::Replace(loaded) => (name, Update::Replace(loaded.packed())),
            update => (name, update),
        });
        self.zones = zones.collect();
        self
    }
}

/// The zones of a unit. Most units have one, which takes no memory of its own.
#[derive(Default)]
pub struct LoadedZones {
    first: Option<NamedZone>,
    others: Vec<NamedZone>,
}

impl LoadedZones {
    /// Returns all zones of the unit.
    pub fn iter(&self) -> impl Iterator<Item = &NamedZone> {
        self.first.iter().chain(&self.others)
    }
}

impl FromIterator<NamedZone> for LoadedZones {
    fn from_iter<I: IntoIterator<Item = NamedZone>>(zones: I) -> Self {
        let mut zones = zones.into_iter();
        Self { first: zones.next(), others: zones.collect() }
    }
}

impl IntoIterator for LoadedZones {
    type Item = NamedZone;
    type IntoIter =
        std::iter::Chain<std::option::IntoIter<NamedZone>, std::vec::IntoIter<NamedZone>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.others)
    }
}

/// The name of a zone, and what its file has for it.
pub type NamedZone = (Name, Update);

/// Loads units, several at a time; the results are in the order of the units. There are more
/// threads than these, which use the CPUs while some threads wait for files. Zones are compared
/// with those that are served. `config` is what they are loaded for.
pub fn load_all(
    units: &[&Unit],
    config: &Config,
    (served, seed): Base<'_>,
    threads: usize,
) -> Vec<LoadedUnit> {
    let load =
        |unit: &Unit, reader: &mut DirectoryReader| load(unit, config, (served, seed), reader);
    if units.len() <= PART && threads <= 1 || units.len() <= 1 {
        let mut reader = DirectoryReader::default();
        return units.iter().map(|unit| load(unit, &mut reader).packed()).collect();
    }
    let mut results: Vec<Option<LoadedUnit>> = Vec::with_capacity(units.len());
    results.resize_with(units.len(), || None);
    let threads = threads + WAITING_THREADS;
    let part = PART.min(units.len().div_ceil(threads));
    let parts = Mutex::new((0..).step_by(part).zip(units.chunks(part)));
    let (sender, loaded) = sync_channel(2 * threads);
    let work = |sender: SyncSender<(usize, Vec<LoadedUnit>)>| {
        let mut reader = DirectoryReader::default();
        loop {
            let next = parts.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((first, units)) = next else { return };
            let loaded = units.iter().map(|unit| load(unit, &mut reader)).collect();
            let _ = sender.send((first, loaded)); // the receiver waits for all
        }
    };
    // What the zones keep is allocated by this thread, without holes that reading leaves: to each
    // thread the allocator gives memory of its own.
    thread::scope(|scope| {
        for sender in std::iter::repeat_n(sender, threads.min(units.len())) {
            scope.spawn(|| work(sender));
        }
        for (first, loaded) in loaded {
            for (result, loaded) in results[first..].iter_mut().zip(loaded) {
                *result = Some(loaded.packed());
            }
        }
    });
    results.into_iter().map(|loaded| loaded.expect("every unit was taken by a thread")).collect()
}

/// The zones that are served, and the seed that new ones must be built with.
pub type Base<'z> = (&'z ZoneSetView, HashSeed);

/// Loads one unit.
fn load(unit: &Unit, config: &Config, base: Base<'_>, reader: &mut DirectoryReader) -> LoadedUnit {
    let started = SystemTime::now();
    let path = unit.key.path();
    // The state of a file is asked for before it is read, so that no change is missed.
    let (own, read) = match reader.read(&unit.key) {
        Some((text, metadata, scratch)) => {
            let read = read_opened(unit, (&path, text), std::mem::take(scratch));
            (Stamp::of_read(Some(&metadata), started), read)
        }
        None => (Stamp::of(&path, started), read(unit)),
    };
    let mut stamps = Stamps { own: Some(own), ..Stamps::NONE };
    let files = read.zones.iter().flat_map(|zone| zone.records.files());
    let included: BTreeSet<_> = files.filter(|file| file.as_os_str() != path.as_os_str()).collect();
    stamps.included.extend(included.into_iter().map(|it| (it.to_owned(), Stamp::of(it, started))));
    log(&read.diagnostics);
    let zones = read.zones.into_iter().map(|JsonZone { name, records, errors, .. }| {
        let is_looked_up = |target: &[u8]| config.looks_up_alias(target);
        log(&check::unresolved_aliases(&name, &records, is_looked_up));
        let zone = match errors {
            Some(errors) => Err(errors.into()),
            None => make(&name, &records, unit.is_checked(), base).map(|loaded| {
                // Here, where nothing waits, and not at the first edit.
                let digest = unit.terms.writable.map(|_| loaded.zone.digest());
                LoadedZone { digest, ..loaded }
            }),
        };
        reader.recycle(records);
        (name, zone.into())
    });
    LoadedUnit { stamps, zones: zones.collect(), failure: read.errors.map(LoadError::from) }
}

/// Reads the zones of a unit; a master file is a file with one zone.
pub fn read(unit: &Unit) -> JsonFile {
    let path = &*unit.key.path();
    let (zone, diagnostics) = match &unit.key.content {
        Content::Master(name) => {
            let (records, diagnostics) = file::read(path, name, &options(unit));
            let (name, errors) = (name.clone(), diagnostics.errors().cloned());
            (JsonZone { name, sha: None, records, errors }, diagnostics)
        }
        Content::Hosts(name) => {
            let (records, diagnostics) = hosts::read(path, name, unit.terms.hosts);
            let (name, errors) = (name.clone(), diagnostics.errors().cloned());
            (JsonZone { name, sha: None, records, errors }, diagnostics)
        }
        Content::Json(Some(name)) => {
            json::read_zone(path, name, unit.terms.in_directory.then_some(&*unit.terms.root))
        }
        Content::Json(None) => return json::read(path),
        // No plan has such a unit.
        Content::Fed => {
            let (zones, diagnostics) = (Vec::new(), Diagnostics::default());
            return JsonFile { zones, errors: None, diagnostics };
        }
    };
    JsonFile { zones: vec![zone], errors: None, diagnostics }
}

/// Reads the zone of a unit from the text of its master file, into the memory of other records.
fn read_opened(unit: &Unit, (path, text): (&Path, &[u8]), scratch: Records) -> JsonFile {
    let name = unit.key.content.only_zone().cloned().unwrap_or_else(Name::root);
    let (records, diagnostics) = file::read_opened(text, path, &name, &options(unit), scratch);
    let zone = JsonZone { name, sha: None, records, errors: diagnostics.errors().cloned() };
    JsonFile { zones: vec![zone], errors: None, diagnostics }
}

/// Which files the master file of a unit may include.
fn options(unit: &Unit) -> file::Options {
    let (root, is_confined) = (Some(unit.terms.root.to_path_buf()), unit.terms.in_directory);
    file::Options { root, is_confined, ..file::Options::default() }
}

/// Loads a zone whose master file is a text of the program.
pub fn load_text(name: &Name, text: &str, base: Base<'_>) -> Update {
    let (records, diagnostics) = read_text(name, text);
    log(&diagnostics);
    match diagnostics.errors() {
        Some(errors) => Update::Unavailable(errors.clone().into()),
        None => make(name, &records, true, base).map(LoadedZone::packed).into(),
    }
}

/// Checks and builds a zone, and compares it with the version in force.
///
/// # Errors
/// Why no zone can be built of the records.
pub fn make(
    name: &Name,
    records: &Records,
    is_checked: bool,
    (served, seed): Base<'_>,
) -> Result<LoadedZone, LoadError> {
    let is_checked = is_checked && records.len() <= CHECKED_MAX;
    if is_checked {
        log(&check::check(name, records, unix_secs()));
    }
    let zone = build(name, records, seed).map_err(|error| no_zone(name, &error))?;
    Ok(take_over(name, zone, (records.len(), is_checked), served))
}

/// Builds a zone of many records, which are freed while it grows, and compares it with the version
/// in force. It is not checked.
///
/// # Errors
/// Why no zone can be built of the records.
pub fn make_large(
    name: &Name,
    records: HashedRecords,
    served: &ZoneSetView,
) -> Result<LoadedZone, LoadError> {
    let count = records.len();
    let zone = records.build().map_err(|error| no_zone(name, &error))?;
    Ok(take_over(name, zone, (count, false), served))
}

/// The error of a zone that cannot be built.
fn no_zone(name: &Name, error: &BuildError) -> LoadError {
    LoadError { first: format!("zone {name}: {error}"), count: 1 }
}

/// Compares a zone that was built of so many records, checked or not, with the version in force.
fn take_over(
    name: &Name,
    zone: Zone,
    (records, is_checked): (usize, bool),
    served: &ZoneSetView,
) -> LoadedZone {
    let iterations = zone.nsec3_iterations();
    if !is_checked && iterations > 0 {
        let limit = ITERATIONS_MAX;
        tracing::warn!(zone = %name, iterations, limit, "iterated hashes of NSEC3 cost time");
    }
    let served = served.zone(name).and_then(|zone| zone.data());
    let zone = match served {
        Some(served) => zone.sharing_with(served),
        None => Arc::new(zone),
    };
    let is_new = served.is_none_or(|served| !Arc::ptr_eq(served, &zone));
    if is_new && zone.bytes() > HUGE_BYTES {
        for memory in zone.memory() {
            // Only speed is lost where the kernel has no huge pages to give.
            if zonda_netio::memory::use_huge_pages(memory).is_ok() {
                thread::sleep(HUGE_PAGES_PAUSE);
            }
        }
    }
    LoadedZone { zone, records, digest: None, expiry: None }
}

/// Returns the seconds since 1970, by which the times of signatures are checked.
pub fn unix_secs() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

/// Logs diagnostics, the first ones one by one. Whether a zone is served is not decided here.
fn log(diagnostics: &Diagnostics) {
    for diagnostic in diagnostics.iter().take(LOGGED_MAX) {
        tracing::warn!(%diagnostic, "zone data");
    }
    let all = diagnostics.error_count() + diagnostics.warning_count();
    if all > LOGGED_MAX as u64 {
        let more = all - LOGGED_MAX as u64;
        tracing::warn!(more, "zone data: more errors and warnings; `zonda check` lists them");
    }
}
