//! The zones as the control side knows them, and the snapshots made from them.
//!
//! # Invariants
//! - A zone that was served once is served until its unit is gone, whatever becomes of its file.
//! - A name belongs to one unit; the first that has it.

use crate::load::{self, LoadError, LoadedUnit, LoadedZone, Stamp, Unit};
use crate::settings::access;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;
use zonda_config::Config;
use zonda_engine::zones::{Source, ZoneEntry, ZoneTable};
use zonda_wire::Name;
use zonda_zone::{HashSeed, Zone};

/// All zones of the server.
pub struct Catalog {
    seed: HashSeed,
    units: Vec<KnownUnit>,
    /// By name in lower case.
    zones: HashMap<Name, KnownZone>,
    /// Numbers of zones that are gone.
    free_numbers: Vec<u32>,
    next_number: u32,
    /// Units that failed as a whole, by file.
    failures: HashMap<PathBuf, LoadError>,
}

/// A unit and what it was when it was last looked at.
struct KnownUnit {
    unit: Unit,
    stamps: Vec<Stamp>,
    /// Its zones, in lower case.
    zones: Vec<Name>,
}

/// A zone, served or not.
pub struct KnownZone {
    /// What the snapshot holds.
    pub entry: Arc<ZoneEntry>,
    /// Its file.
    pub path: PathBuf,
    /// How many records the served version has.
    pub records: usize,
    /// When that was loaded.
    pub loaded: Option<SystemTime>,
    /// Why the last attempt to load failed.
    pub error: Option<LoadError>,
}

impl KnownZone {
    /// The data that is served.
    pub fn data(&self) -> Option<&Arc<Zone>> {
        match &self.entry.source {
            Source::Data(zone) => Some(zone),
            Source::Unavailable => None,
        }
    }
}

/// What a reload did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Zones that are served in a new version, or for the first time.
    pub loaded: Vec<Name>,
    /// Zones that are not served any more.
    pub removed: Vec<Name>,
    /// Zones that could not be loaded, and files of which none could.
    pub failed: Vec<String>,
    /// Whether anything in the snapshot differs.
    pub changed: bool,
    /// Whether names came or went.
    names_changed: bool,
}

/// Which units a reload looks at.
#[derive(Clone, Copy)]
pub enum Scope<'n> {
    /// Those whose files changed.
    Changed,
    /// Those whose files changed and are watched.
    Watched,
    /// The unit of one zone, changed or not.
    Zone(&'n Name),
}

/// All units of a configuration, and which of them to load.
pub struct Plan {
    units: Vec<(Unit, bool)>,
}

impl Plan {
    /// The units to load, in the order in which [`Catalog::apply`] wants the results.
    pub fn stale(&self) -> Vec<&Unit> {
        self.units.iter().filter(|(_, stale)| *stale).map(|(unit, _)| unit).collect()
    }
}

impl Catalog {
    /// No zones yet.
    pub fn new(seed: HashSeed) -> Self {
        Self {
            seed,
            units: Vec::new(),
            zones: HashMap::new(),
            free_numbers: Vec::new(),
            next_number: 0,
            failures: HashMap::new(),
        }
    }

    /// All zones, in no particular order.
    pub fn zones(&self) -> impl Iterator<Item = &KnownZone> {
        self.zones.values()
    }

    /// A zone by its name.
    pub fn zone(&self, name: &Name) -> Option<&KnownZone> {
        self.zones.get(&name.to_lowercase())
    }

    /// Files of which nothing could be loaded, with the reasons.
    pub fn failures(&self) -> impl Iterator<Item = (&PathBuf, &LoadError)> {
        self.failures.iter()
    }

    /// The lowest number that no zone has.
    pub fn numbers(&self) -> usize {
        self.next_number as usize
    }

    /// What has to be loaded to bring the zones up to date with the configuration and the files.
    pub fn plan(&self, config: &Config, scope: Scope<'_>) -> Plan {
        let known: HashMap<&Unit, &KnownUnit> =
            self.units.iter().map(|it| (&it.unit, it)).collect();
        let units = load::units(&config.zones).into_iter().map(|unit| {
            let stale = known.get(&unit).is_none_or(|known| is_stale(known, config.watch, scope));
            (unit, stale)
        });
        Plan { units: units.collect() }
    }

    /// Carries out a plan, with what was loaded for it.
    pub fn apply(&mut self, plan: Plan, loaded: Vec<LoadedUnit>) -> Outcome {
        let mut outcome = Outcome::default();
        let mut known: HashMap<Unit, KnownUnit> =
            self.units.drain(..).map(|known| (known.unit.clone(), known)).collect();
        let mut stale = Vec::new();
        for (unit, is_stale) in plan.units {
            let known = known.remove(&unit);
            let new = || KnownUnit { unit, stamps: Vec::new(), zones: Vec::new() };
            match known {
                Some(known) if !is_stale => self.units.push(known),
                known => stale.push(known.unwrap_or_else(new)),
            }
        }
        for gone in known.into_values() {
            gone.zones.iter().for_each(|name| self.remove(name, &mut outcome));
            self.failures.remove(&gone.unit.path);
        }
        for (unit, loaded) in stale.into_iter().zip(loaded) {
            self.take(unit, loaded, &mut outcome);
        }
        outcome
    }

    /// Takes over what became of a unit.
    fn take(&mut self, mut unit: KnownUnit, loaded: LoadedUnit, outcome: &mut Outcome) {
        unit.stamps = loaded.stamps;
        self.failures.remove(&unit.unit.path);
        if let Some(failure) = loaded.failure {
            outcome.failed.push(failure.to_string());
            self.failures.insert(unit.unit.path.clone(), failure);
            self.units.push(unit);
            return;
        }
        let before = std::mem::take(&mut unit.zones);
        for (name, zone) in loaded.zones {
            let key = name.to_lowercase();
            let taken = self.zones.get(&key).filter(|other| other.path != unit.unit.path);
            if let Some(other) = taken {
                let (path, other) = (unit.unit.path.display(), other.path.display());
                tracing::warn!("{path}: zone {name} is already served from {other}; ignored");
                continue;
            }
            self.put(&unit.unit, &key, zone, outcome);
            unit.zones.push(key);
        }
        let gone: Vec<_> = before.into_iter().filter(|name| !unit.zones.contains(name)).collect();
        gone.iter().for_each(|name| self.remove(name, outcome));
        self.units.push(unit);
    }

    /// Puts a zone in place of the former version, which stays if the new one failed.
    fn put(
        &mut self,
        unit: &Unit,
        name: &Name,
        loaded: Result<LoadedZone, LoadError>,
        outcome: &mut Outcome,
    ) {
        let former = self.zones.remove(name);
        outcome.names_changed |= former.is_none();
        let number = former.as_ref().map_or_else(|| self.number(), |zone| zone.entry.number);
        let mut next = KnownZone {
            entry: Arc::new(ZoneEntry {
                apex: name.clone(),
                source: Source::Unavailable,
                access: unit.access.as_deref().map(|list| Arc::new(access(list))),
                number,
            }),
            path: unit.path.clone(),
            records: 0,
            loaded: None,
            error: None,
        };
        let entry = Arc::get_mut(&mut next.entry).expect("made just now");
        match loaded {
            Ok(LoadedZone { zone, records }) => {
                warn_if_serial_went_back(former.as_ref(), &zone);
                outcome.loaded.push(name.clone());
                entry.source = Source::Data(Arc::new(zone));
                (next.records, next.loaded) = (records, Some(SystemTime::now()));
            }
            Err(error) => {
                outcome.failed.push(format!("{name}: {error}"));
                if let Some(former) = former {
                    if let Some(data) = former.data() {
                        entry.source = Source::Data(Arc::clone(data));
                    }
                    (next.records, next.loaded) = (former.records, former.loaded);
                }
                let state = match entry.source {
                    Source::Data(_) => "its former version is still served",
                    Source::Unavailable => "it is answered SERVFAIL",
                };
                tracing::error!("zone {name} was not loaded, {state}: {error}");
                next.error = Some(error);
            }
        }
        outcome.changed = true;
        self.zones.insert(name.clone(), next);
    }

    /// Takes a zone away.
    fn remove(&mut self, name: &Name, outcome: &mut Outcome) {
        if let Some(zone) = self.zones.remove(name) {
            self.free_numbers.push(zone.entry.number);
            outcome.removed.push(name.clone());
            outcome.changed = true;
            outcome.names_changed = true;
        }
    }

    /// A number for a new zone.
    fn number(&mut self) -> u32 {
        self.free_numbers.pop().unwrap_or_else(|| {
            self.next_number += 1;
            self.next_number - 1
        })
    }

    /// The table of all zones; parts of `former` are shared if the names are the same.
    pub fn table(&self, former: Option<&ZoneTable>, outcome: &Outcome) -> ZoneTable {
        let Some(former) = former.filter(|_| !outcome.names_changed) else {
            let entries = self.zones.values().map(|zone| Arc::clone(&zone.entry)).collect();
            return ZoneTable::new(entries, self.seed);
        };
        let changed = self.zones.iter().filter_map(|(name, zone)| {
            let index = former.index_of(name)?;
            (!Arc::ptr_eq(former.get(index), &zone.entry)).then(|| (index, Arc::clone(&zone.entry)))
        });
        former.with_replaced(changed)
    }
}

/// Whether a unit must be loaded again.
fn is_stale(known: &KnownUnit, watch: bool, scope: Scope<'_>) -> bool {
    match scope {
        Scope::Zone(name) => known.zones.contains(&name.to_lowercase()),
        Scope::Watched if !watch && !known.unit.watched => false,
        Scope::Changed | Scope::Watched => known.stamps.iter().any(|stamp| !stamp.is_current()),
    }
}

/// Warns of a serial that is lower than the former one: secondaries would not follow (rfc1982).
fn warn_if_serial_went_back(former: Option<&KnownZone>, zone: &Zone) {
    let Some(former) = former.and_then(KnownZone::data) else { return };
    let (old, new) = (former.serial(), zone.serial());
    if new != old && new.wrapping_sub(old) > i32::MAX as u32 {
        let name = zonda_wire::name::Presentation(zone.apex());
        tracing::warn!("zone {name}: serial went backwards from {old} to {new}");
    }
}
