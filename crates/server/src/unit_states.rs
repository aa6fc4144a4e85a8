//! The files that zones are loaded from, as they were when they were last loaded, and what a reload
//! has to do.
//!
//! The thread that reloads owns them and lends them to the publisher, so that files are looked at
//! while other changes are published.

use crate::load::{LoadError, LoadedUnit};
use crate::stamp::Stamp;
use crate::units::{Content, Survey, Unit, UnitKey, survey};
use crate::zone_set_view::{FileFailure, ZoneSetView};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zonda_config::Config;
use zonda_wire::Name;

/// All units, by their keys.
#[derive(Default)]
pub struct UnitStates {
    /// The units that were loaded, or that could not be.
    pub known: HashMap<Arc<UnitKey>, KnownUnit>,
    /// Directories that could not be read when they were last looked at.
    pub unreadable: Vec<(PathBuf, LoadError)>,
    /// Files that were left out when they were last looked at, and why.
    ignored: HashSet<String>,
}

/// A unit and what it was when it was last loaded.
pub struct KnownUnit {
    /// The unit as it was planned.
    pub unit: Unit,
    /// The states of its files.
    pub stamps: Vec<Stamp>,
    /// The names of its zones, in lower case.
    pub zones: Vec<Name>,
    /// Why not even the names of all its zones are known; those it had before stay.
    pub failure: Option<LoadError>,
    /// Whether the names of its zones were known once.
    pub was_known: bool,
    /// Whether anything in it could not be loaded.
    pub failed: bool,
}

/// Which units a reload loads.
#[derive(Clone, Copy)]
pub enum Scope<'n> {
    /// Those whose files changed, and those that could not be loaded before.
    Changed,
    /// Those whose files changed and are watched.
    Watched,
    /// The unit of one zone, changed or not.
    Zone(&'n Name),
}

/// What is to be done with a unit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The unit is as it was.
    Keep,
    /// Nothing is new but which clients may ask, and whether its zones can be changed.
    Admit,
    /// The unit is loaded anew.
    Load,
}

/// What is to be done to bring the zones up to date with the configuration and the files.
pub struct Plan {
    /// All units of the configuration, and what is to be done with each.
    pub units: Vec<(Unit, Step)>,
    /// Units that are not among them any more.
    pub gone: Vec<Arc<UnitKey>>,
    /// Directories that cannot be read.
    pub unreadable: Vec<(PathBuf, LoadError)>,
    /// Files that are left out, and why.
    pub ignored: Vec<String>,
    /// Whether failures are reported that were reported before, because someone asked.
    pub is_asked: bool,
    /// The number of updates of programs' zones that were known when the plan was made.
    pub updates: u64,
}

impl Plan {
    /// The units to load, in the order in which
    /// [`ZoneSet::apply`](crate::zone_set::ZoneSet::apply) wants the results.
    pub fn stale(&self) -> Vec<&Unit> {
        let stale = self.units.iter().filter(|(_, step)| *step == Step::Load);
        stale.map(|(unit, _)| unit).collect()
    }
}

impl UnitStates {
    /// What has to be done to bring the zones up to date with the configuration and the files.
    /// `updates` programs' zones were updated before the configuration was read.
    pub fn plan(
        &mut self,
        zones: &ZoneSetView,
        config: &Config,
        scope: Scope<'_>,
        updates: u64,
    ) -> Plan {
        self.adopt_updates(zones);
        let Survey { units, unreadable, ignored } = survey(&config.zones, |directory| {
            let mut units: Vec<_> = self.units_in(directory).cloned().collect();
            units.sort_by(|a, b| a.key.path.cmp(&b.key.path));
            units
        });
        let target = match scope {
            Scope::Zone(name) => zones.zone(name).map(|zone| Arc::clone(&zone.unit)),
            Scope::Changed | Scope::Watched => None,
        };
        let is_stale = |known: &KnownUnit| match scope {
            Scope::Zone(_) => Some(&known.unit.key) == target.as_ref(),
            Scope::Watched if !config.watch && !known.unit.is_always_watched() => false,
            Scope::Watched => known.is_outdated(),
            Scope::Changed => known.failed || known.is_outdated(),
        };
        let mut known_units = 0;
        let units: Vec<_> = units
            .into_iter()
            .map(|mut unit| {
                if let Content::Given(name, _) = &unit.key.content
                    && let Some(zone) = zones.updated_since(name, updates)
                {
                    // Newer than what the configuration was read with.
                    unit.key = Arc::clone(&zone.unit);
                }
                let Some(known) = self.known.get(&unit.key) else { return (unit, Step::Load) };
                known_units += 1;
                let step = match (&unit, &known.unit) {
                    (new, old) if new.root != old.root || is_stale(known) => Step::Load,
                    (new, old) if new.access != old.access => Step::Admit,
                    (new, old) if new.writable != old.writable => Step::Admit,
                    (new, old) if new.in_directory != old.in_directory => Step::Admit,
                    _ => Step::Keep,
                };
                (unit, step)
            })
            .collect();
        let gone = if known_units == self.known.len() { Vec::new() } else { self.others(&units) };
        let is_asked = !matches!(scope, Scope::Watched);
        Plan { units, gone, unreadable, ignored, is_asked, updates: zones.update_count }
    }

    /// Takes over which data programs have given their zones since.
    fn adopt_updates(&mut self, zones: &ZoneSetView) {
        if zones.update_count == 0 {
            return;
        }
        let former = self.known.keys().filter_map(|key| match &key.content {
            Content::Given(name, _) => Some((name.to_lowercase(), Arc::clone(key))),
            _ => None,
        });
        for (name, former) in former.collect::<Vec<_>>() {
            let Some(zone) = zones.updated_since(&name, 0).filter(|it| it.unit != former) else {
                continue;
            };
            if let Some(mut known) = self.known.remove(&former) {
                known.unit.key = Arc::clone(&zone.unit);
                known.failed = zone.error.is_some();
                self.known.insert(Arc::clone(&zone.unit), known);
            }
        }
    }

    /// The units that were found in a directory.
    fn units_in(&self, directory: &Path) -> impl Iterator<Item = &Unit> {
        let units = self.known.values().map(|known| &known.unit);
        units.filter(move |unit| unit.in_directory && unit.key.path.parent() == Some(directory))
    }

    /// The known units that are not among `units`.
    fn others(&self, units: &[(Unit, Step)]) -> Vec<Arc<UnitKey>> {
        let planned: HashSet<&UnitKey> = units.iter().map(|(unit, _)| &*unit.key).collect();
        self.known.keys().filter(|key| !planned.contains(&***key)).cloned().collect()
    }

    /// Files and directories that could not be read.
    pub fn failures(&self) -> Vec<FileFailure> {
        let files = self.known.values().filter_map(|known| {
            let error = known.failure.clone()?;
            Some(FileFailure { error, is_served: known.was_known })
        });
        let directories = self.unreadable.iter().map(|(path, error)| {
            let is_served = self.units_in(path).next().is_some();
            FileFailure { error: error.clone(), is_served }
        });
        files.chain(directories).collect()
    }

    /// Notes which files are left out, and logs those that are new.
    pub fn note_ignored(&mut self, ignored: Vec<String>) {
        for reason in ignored.iter().filter(|reason| !self.ignored.contains(*reason)) {
            tracing::warn!("{reason}");
        }
        self.ignored = ignored.into_iter().collect();
    }

    /// The names of zones that a unit has no more.
    pub fn lost_names(&self, key: &Arc<UnitKey>, loaded: &LoadedUnit) -> Vec<Name> {
        let (Some(known), None) = (self.known.get(key), &loaded.failure) else {
            return Vec::new();
        };
        let now = loaded.names();
        known.zones.iter().filter(|name| !now.contains(*name)).cloned().collect()
    }
}

impl KnownUnit {
    /// A unit of which nothing was loaded yet.
    pub fn new(unit: Unit) -> Self {
        let (stamps, zones) = (Vec::new(), Vec::new());
        Self { unit, stamps, zones, failure: None, was_known: false, failed: false }
    }

    /// Whether a file of it changed since it was read.
    pub fn is_outdated(&self) -> bool {
        !self.stamps.iter().all(Stamp::is_current)
    }
}
