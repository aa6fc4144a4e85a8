//! The files that zones are loaded from, as they were when they were last loaded, and what a reload
//! has to do.
//!
//! The thread that reloads owns them and lends them to the publisher, so that files are looked at
//! while other changes are published.

use crate::directory_reader::DirectoryReader;
use crate::load::{LoadError, LoadedUnit};
use crate::stamp::{Stamp, Stamps};
use crate::units::{Survey, Unit, UnitKey, UnitTerms, survey};
use crate::zone_set_view::{FileFailure, ZoneSetView};
use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::SystemTime;
use zonda_config::{Config, Source};
use zonda_netio::process;
use zonda_wire::Name;

/// All units, by their keys.
#[derive(Default)]
pub struct UnitStates {
    /// The units that were loaded, or that could not be.
    pub known: KnownUnits,
    /// Directories that could not be read when they were last looked at.
    pub unreadable: Vec<(PathBuf, LoadError)>,
    /// Files that were left out when they were last looked at, and why.
    ignored: HashSet<String>,
    /// The directories as they were before they were last listed: while they stay so, and the
    /// configuration too, no unit comes or goes. `None` if that cannot be told from them.
    directories: Option<Vec<(PathBuf, Stamp)>>,
    /// Whether a plan is carried out; when the next one begins, whether a panic ended the last one.
    pub is_torn: bool,
}

/// What a survey found besides units.
pub struct Listing {
    /// Files that are left out, and why.
    pub ignored: Vec<String>,
    /// The directories as they were before; `None` if some could not be read.
    directories: Option<Vec<(PathBuf, Stamp)>>,
}

/// A set of units, found by the keys that they hold themselves.
#[derive(Default)]
pub struct KnownUnits(HashSet<ByKey>);

/// A unit that is found by its key.
struct ByKey(Box<KnownUnit>);

impl Borrow<UnitKey> for ByKey {
    fn borrow(&self) -> &UnitKey {
        &self.0.unit.key
    }
}

impl Hash for ByKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.unit.key.hash(state);
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.unit.key == other.0.unit.key
    }
}

impl Eq for ByKey {}

impl KnownUnits {
    /// The number of units.
    fn len(&self) -> usize {
        self.0.len()
    }

    /// Makes room for so many units if there are none yet, so that each key is hashed once.
    pub fn reserve_first(&mut self, count: usize) {
        if self.0.is_empty() {
            self.0.reserve(count);
        }
    }

    /// All units, in no particular order.
    fn iter(&self) -> impl Iterator<Item = &KnownUnit> {
        self.0.iter().map(|known| &*known.0)
    }

    /// A unit by its key.
    pub fn get(&self, key: &UnitKey) -> Option<&KnownUnit> {
        self.0.get(key).map(|known| &*known.0)
    }

    /// Takes a unit out.
    pub fn remove(&mut self, key: &UnitKey) -> Option<Box<KnownUnit>> {
        self.0.take(key).map(|known| known.0)
    }

    /// Puts a unit in place of the one with its key, if there is one.
    pub fn insert(&mut self, unit: Box<KnownUnit>) {
        self.0.replace(ByKey(unit));
    }
}

/// A unit and what it was when it was last loaded.
pub struct KnownUnit {
    /// The unit as it was planned.
    pub unit: Unit,
    /// The state of its own file; `None` if it has none.
    stamp: Option<Stamp>,
    /// Whether the names of its zones were known once.
    pub was_known: bool,
    /// Whether anything in it could not be loaded.
    pub failed: bool,
    /// Whether the unit has the only zone that its content can have, so that `rest` lists no zones.
    has_only_zone: bool,
    /// What most units do not have.
    rest: Option<Box<UnitRest>>,
}

/// More facts about a unit that is not the file of one zone without included files.
#[derive(Default)]
struct UnitRest {
    /// The states of other files that were read or wanted.
    included: Vec<(PathBuf, Stamp)>,
    /// The names of the unit's zones, in lower case.
    zones: Vec<Name>,
    /// Why not even the names of all its zones are known; those it had before stay.
    failure: Option<LoadError>,
}

/// Which units a reload loads.
#[derive(Clone, Copy)]
pub enum Scope<'n> {
    /// The units whose files changed, and those that could not be loaded before.
    Changed,
    /// The units whose files changed and are watched.
    Watched,
    /// The unit of one zone, changed or not.
    Zone(&'n Name),
}

/// The step to be done with a unit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The unit is as it was.
    Keep,
    /// Only the access list of the unit's zones is new, or whether they are writable.
    Admit,
    /// The unit is loaded anew.
    Load,
}

/// The steps that bring the zones up to date with the configuration and the files.
pub struct Plan {
    /// Units of the configuration, and what is to be done with each. Those that are not here stay
    /// as they are, too.
    pub units: Vec<(Unit, Step)>,
    /// Units that are no longer in the configuration.
    pub gone: Vec<Arc<UnitKey>>,
    /// Directories that cannot be read.
    pub unreadable: Vec<(PathBuf, LoadError)>,
    /// What the survey found besides; `None` without one, as units are those of the plan before.
    pub listing: Option<Listing>,
    /// Whether failures are reported that were reported before, because a reload was requested.
    pub is_asked: bool,
}

/// Units below which no further thread looks at their files: it would cost more than it saves.
const LOOKED_AT_MIN: usize = 1024;

/// The directories of a configuration as they are now.
fn directories(config: &Config) -> Vec<(PathBuf, Stamp)> {
    let now = SystemTime::now();
    let directories = config.zones.iter().filter_map(|zone| match &zone.source {
        Source::Directory(path) => Some((path.clone(), Stamp::of(path, now))),
        _ => None,
    });
    directories.collect()
}

impl Plan {
    /// Whether there is nothing to be done.
    pub fn is_empty(&self) -> bool {
        let has_work = self.units.iter().any(|(_, step)| *step != Step::Keep);
        !has_work && self.gone.is_empty() && self.unreadable.is_empty() && self.listing.is_none()
    }

    /// The units to load, in the order in which
    /// [`ZoneSet::apply`](crate::zone_set::ZoneSet::apply) wants the results.
    pub fn stale(&self) -> Vec<&Unit> {
        let stale = self.units.iter().filter(|(_, step)| *step == Step::Load);
        stale.map(|(unit, _)| unit).collect()
    }
}

impl UnitStates {
    /// What has to be done to bring the zones up to date with the configuration and the files.
    /// `in_force` is the configuration of the plan before.
    pub fn plan(
        &mut self,
        zones: &ZoneSetView,
        (config, in_force): (&Config, &Config),
        scope: Scope<'_>,
    ) -> Plan {
        let is_asked = !matches!(scope, Scope::Watched);
        let same_units = self.has_units_of(config, in_force);
        let stale = self.stale(zones, config, scope);
        if same_units {
            let mut units: Vec<_> =
                stale.iter().map(|known| (known.unit.clone(), Step::Load)).collect();
            units.sort_by_cached_key(|(unit, _)| unit.key.path().into_owned());
            let (gone, unreadable, listing) = (Vec::new(), Vec::new(), None);
            return Plan { units, gone, unreadable, listing, is_asked };
        }
        let stale: HashSet<*const UnitKey> =
            stale.iter().map(|known| Arc::as_ptr(&known.unit.key)).collect();
        let directories = directories(config);
        let Survey { units, unreadable, ignored } = survey(&config.zones, |directory| {
            let mut units: Vec<_> = self.units_in(directory).cloned().collect();
            units.sort_by_cached_key(|unit| unit.key.path().into_owned());
            units
        });
        let mut known_units = 0;
        let units: Vec<_> = units
            .into_iter()
            .map(|unit| {
                let Some(known) = self.known.get(&unit.key) else { return (unit, Step::Load) };
                known_units += 1;
                let is_stale = stale.contains(&Arc::as_ptr(&known.unit.key));
                let step = match (&unit, &known.unit) {
                    (new, old) if is_read_otherwise(&new.terms, &old.terms) || is_stale => {
                        Step::Load
                    }
                    (new, old) if new.terms != old.terms => Step::Admit,
                    _ => Step::Keep,
                };
                (unit, step)
            })
            .collect();
        let gone = if known_units == self.known.len() { Vec::new() } else { self.others(&units) };
        let directories = unreadable.is_empty().then_some(directories);
        let listing = Some(Listing { ignored, directories });
        Plan { units, gone, unreadable, listing, is_asked }
    }

    /// Whether a survey would find the units that are known.
    fn has_units_of(&self, config: &Config, in_force: &Config) -> bool {
        let Some(directories) = &self.directories else { return false };
        !self.is_torn
            && (std::ptr::eq(config, in_force) || config.zones == in_force.zones)
            && directories.iter().all(|(path, stamp)| stamp.is_current(path))
    }

    /// The units that are to be loaded anew, whatever else a plan does. Their files are looked at
    /// by several threads.
    fn stale(&self, zones: &ZoneSetView, config: &Config, scope: Scope<'_>) -> Vec<&KnownUnit> {
        if let Scope::Zone(name) = scope {
            let target = zones.zone(name).and_then(|zone| self.known.get(&zone.unit));
            return target.into_iter().collect();
        }
        let is_looked_at = |known: &&KnownUnit| match scope {
            Scope::Watched => config.watch || known.unit.is_always_watched(),
            Scope::Changed | Scope::Zone(_) => true,
        };
        let is_stale = |known: &KnownUnit, reader: &mut DirectoryReader| {
            known.failed && matches!(scope, Scope::Changed) || known.is_outdated(reader)
        };
        let units: Vec<&KnownUnit> = self.known.iter().filter(is_looked_at).collect();
        let look = |units: &[&'_ KnownUnit]| {
            let mut reader = DirectoryReader::default();
            let stale = units.iter().enumerate().filter(|(_, known)| is_stale(known, &mut reader));
            stale.map(|(index, _)| index).collect::<Vec<_>>()
        };
        let part = units.len().div_ceil(process::available_cpus()).max(LOOKED_AT_MIN);
        thread::scope(|scope| {
            let parts: Vec<_> = units.chunks(part).collect();
            let threads: Vec<_> = parts.iter().skip(1).map(|it| scope.spawn(|| look(it))).collect();
            let first = parts.first().map(|it| look(it)).unwrap_or_default();
            let others = threads.into_iter().map(|it| it.join().expect("it does not panic"));
            let found = [first].into_iter().chain(others);
            let found = parts.iter().zip(found);
            found.flat_map(|(part, found)| found.into_iter().map(|index| part[index])).collect()
        })
    }

    /// The units that were found in a directory.
    fn units_in(&self, directory: &Path) -> impl Iterator<Item = &Unit> {
        let units = self.known.iter().map(|known| &known.unit);
        units.filter(move |unit| unit.terms.in_directory && unit.key.directory() == Some(directory))
    }

    /// The known units that are not among `units`.
    fn others(&self, units: &[(Unit, Step)]) -> Vec<Arc<UnitKey>> {
        let planned: HashSet<&UnitKey> = units.iter().map(|(unit, _)| &*unit.key).collect();
        let keys = self.known.iter().map(|known| &known.unit.key);
        keys.filter(|key| !planned.contains(&***key)).cloned().collect()
    }

    /// Files and directories that could not be read.
    pub fn failures(&self) -> Vec<FileFailure> {
        let files = self.known.iter().filter_map(|known| {
            let error = known.failure()?.clone();
            Some(FileFailure { error, is_served: known.was_known })
        });
        let directories = self.unreadable.iter().map(|(path, error)| {
            let is_served = self.units_in(path).next().is_some();
            FileFailure { error: error.clone(), is_served }
        });
        files.chain(directories).collect()
    }

    /// Notes what a survey found besides units, and logs which files are newly left out.
    pub fn note_listing(&mut self, listing: Option<Listing>) {
        let Some(Listing { ignored, directories }) = listing else { return };
        self.directories = directories;
        for reason in ignored.iter().filter(|reason| !self.ignored.contains(*reason)) {
            tracing::warn!(reason, "a file is left out");
        }
        self.ignored = ignored.into_iter().collect();
    }

    /// The names of zones that a unit has no more.
    pub fn lost_names(&self, key: &Arc<UnitKey>, loaded: &LoadedUnit) -> Vec<Name> {
        let (Some(known), None) = (self.known.get(key), &loaded.failure) else {
            return Vec::new();
        };
        let now = loaded.names();
        known.zones().into_iter().filter(|name| !now.contains(name)).collect()
    }
}

impl KnownUnit {
    /// A unit of which nothing was loaded yet.
    pub fn new(unit: Unit) -> Self {
        let (stamp, rest) = (None, None);
        Self { unit, stamp, was_known: false, failed: false, has_only_zone: false, rest }
    }

    /// Returns the names of the unit's zones, in lower case.
    pub fn zones(&self) -> Vec<Name> {
        match self.unit.key.content.only_zone().filter(|_| self.has_only_zone) {
            Some(name) => vec![name.to_lowercase()],
            None => self.rest.as_ref().map_or_else(Vec::new, |rest| rest.zones.clone()),
        }
    }

    /// Notes the names of its zones, in lower case.
    pub fn set_zones(&mut self, zones: Vec<Name>) {
        let only = self.unit.key.content.only_zone().map(Name::to_lowercase);
        self.has_only_zone = zones.len() == 1 && zones.first() == only.as_ref();
        let zones = if self.has_only_zone { Vec::new() } else { zones };
        if self.rest.is_some() || !zones.is_empty() {
            self.rest.get_or_insert_default().zones = zones;
        }
    }

    /// Why not even the names of all its zones are known.
    pub fn failure(&self) -> Option<&LoadError> {
        self.rest.as_ref()?.failure.as_ref()
    }

    /// Notes the states of its files, and why not even the names of all its zones are known.
    pub fn note_load(&mut self, stamps: Stamps, failure: Option<LoadError>) {
        self.stamp = stamps.own;
        if failure.is_some() || !stamps.included.is_empty() {
            let rest = self.rest.get_or_insert_default();
            (rest.included, rest.failure) = (stamps.included, failure);
        }
    }

    /// Notes the state of its own file, which the server has written with all that it included.
    pub fn note_written(&mut self, stamp: Stamp) {
        self.stamp = Some(stamp);
        if let Some(rest) = &mut self.rest {
            rest.included.clear();
        }
    }

    /// Whether a file of it changed since it was read.
    pub fn is_outdated(&self, reader: &mut DirectoryReader) -> bool {
        let own = self.stamp.is_none_or(|stamp| reader.is_current(&self.unit.key, stamp));
        let included = self.rest.iter().flat_map(|rest| &rest.included);
        !own || included.into_iter().any(|(path, stamp)| !stamp.is_current(path))
    }
}

/// Whether a file says something else under other terms.
fn is_read_otherwise(new: &UnitTerms, old: &UnitTerms) -> bool {
    (&new.root, new.hosts) != (&old.root, old.hosts)
}
