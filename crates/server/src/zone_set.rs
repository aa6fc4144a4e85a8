//! The zones as the control side knows them, and the snapshots made from them.
//!
//! # Invariants
//! - A zone that was served once is served until nothing in the configuration and the directories
//!   stands for it any more, whatever becomes of its file.
//! - A name belongs to one unit; the first that has it.

use crate::forwards::Forwards;
use crate::load::{LoadError, LoadedUnit, LoadedZone};
use crate::local::LocalNames;
use crate::numbers::{Number, Numbers};
use crate::settings::access;
use crate::stamp::Stamp;
use crate::units::{Content, Survey, Unit, UnitKey, already_served, survey};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use zonda_config::{Access, Config, Zone as ZoneConfig};
use zonda_engine::access::AccessList;
use zonda_engine::counters::Counters;
use zonda_engine::zones::{Source, ZoneEntry, ZoneTable};
use zonda_wire::Name;
use zonda_zone::{HashSeed, Zone};

/// All zones of the server.
pub struct ZoneSet {
    seed: HashSeed,
    units: HashMap<Arc<UnitKey>, KnownUnit>,
    /// By name in lower case.
    zones: HashMap<Name, KnownZone>,
    numbers: Numbers,
    /// Zones that other servers answer for.
    forwards: Forwards,
    /// What they do not answer for.
    local_names: LocalNames,
    /// Whether either changed since the last table was made.
    forwards_changed: bool,
    /// Zones with data of which that table has copies, for names that others except.
    lent: HashSet<Name>,
    /// Directories that could not be read when they were last looked at.
    unreadable: Vec<(PathBuf, LoadError)>,
    /// Files that were left out when they were last looked at, and why.
    ignored: HashSet<String>,
    /// The access list that was converted last; most zones of a configuration share one.
    last_access: Option<(Arc<Access>, Arc<AccessList>)>,
}

/// A unit and what it was when it was last loaded.
struct KnownUnit {
    unit: Unit,
    stamps: Vec<Stamp>,
    /// Its zones, in lower case.
    zones: Vec<Name>,
    /// Why not even the names of all its zones are known; those it had before stay.
    failure: Option<LoadError>,
    /// Whether they were known once.
    was_known: bool,
    /// Whether anything in it could not be loaded.
    failed: bool,
}

/// A zone, served or not.
pub struct KnownZone {
    /// What the snapshot holds.
    pub entry: Arc<ZoneEntry>,
    /// Where it is from.
    unit: Arc<UnitKey>,
    number: Number,
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
            _ => None,
        }
    }

    /// Whether it has single names in front of a zone that is forwarded, if there is one.
    fn is_hosts(&self) -> bool {
        matches!(self.unit.content, Content::Hosts(_))
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.unit.path
    }
}

/// A file or directory that could not be read.
pub struct Failure<'c> {
    /// Why.
    pub error: &'c LoadError,
    /// Whether zones from there are served because they could be read before.
    pub is_served: bool,
}

/// What a reload did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Zones that are served in a new version, or for the first time.
    pub loaded: Vec<Name>,
    /// Zones that are not served any more.
    pub removed: Vec<Name>,
    /// What is wrong with zones and files that could not be loaded.
    pub failed: Vec<String>,
    /// Whether anything in the snapshot differs.
    pub changed: bool,
    /// Whether names came or went.
    names_changed: bool,
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
enum Step {
    Keep,
    /// Nothing is new but who may ask.
    Admit,
    Load,
}

/// What is to be done to bring the zones up to date with the configuration and the files.
pub struct Plan {
    units: Vec<(Unit, Step)>,
    gone: Vec<Arc<UnitKey>>,
    unreadable: Vec<(PathBuf, LoadError)>,
    ignored: Vec<String>,
    /// Whether failures are reported that were reported before: somebody asked.
    is_asked: bool,
}

impl Plan {
    /// The units to load, in the order in which [`ZoneSet::apply`] wants the results.
    pub fn stale(&self) -> Vec<&Unit> {
        let stale = self.units.iter().filter(|(_, step)| *step == Step::Load);
        stale.map(|(unit, _)| unit).collect()
    }
}

impl ZoneSet {
    /// No zones yet; workers will count in `engines`.
    pub fn new(seed: HashSeed, engines: Vec<Arc<Counters>>, config: &Config) -> Self {
        Self {
            forwards: Forwards::new(config),
            local_names: LocalNames::default(),
            forwards_changed: false,
            lent: HashSet::new(),
            seed,
            units: HashMap::new(),
            zones: HashMap::new(),
            numbers: Numbers::new(engines),
            unreadable: Vec::new(),
            ignored: HashSet::new(),
            last_access: None,
        }
    }

    /// All zones, in no particular order.
    pub fn zones(&self) -> impl ExactSizeIterator<Item = &KnownZone> {
        self.zones.values()
    }

    /// A zone by its name.
    pub fn zone(&self, name: &Name) -> Option<&KnownZone> {
        self.zones.get(&name.to_lowercase())
    }

    /// Zones that other servers answer for.
    pub fn forwards(&self) -> &Forwards {
        &self.forwards
    }

    /// Puts into force which zones other servers answer for.
    pub fn set_forwards(&mut self, config: &Config) {
        self.forwards_changed |= self.forwards.update(config, &mut self.numbers);
        self.forwards_changed |= self.local_names.update(config, self.seed);
    }

    /// Queries for each zone so far.
    pub fn queries(&self) -> impl Iterator<Item = (u64, &Name)> {
        let zones = self.zones().map(|zone| (zone.number, &zone.entry.apex));
        let forwards = self.forwards.iter().map(|zone| (zone.number, &zone.entry.apex));
        zones.chain(forwards).map(|(number, apex)| (self.numbers.queries(number), apex))
    }

    /// Queries for zones that are gone.
    pub fn queries_gone(&self) -> u64 {
        self.numbers.queries_gone()
    }

    /// Files and directories that could not be read.
    pub fn failures(&self) -> impl Iterator<Item = Failure<'_>> {
        let files = self.units.values().filter_map(|known| {
            let error = known.failure.as_ref()?;
            Some(Failure { error, is_served: known.was_known })
        });
        let directories = self.unreadable.iter().map(|(path, error)| {
            let is_served = self.units_in(path).next().is_some();
            Failure { error, is_served }
        });
        files.chain(directories)
    }

    /// The units that were found in a directory.
    fn units_in(&self, directory: &Path) -> impl Iterator<Item = &Unit> {
        let units = self.units.values().map(|known| &known.unit);
        units.filter(move |unit| unit.in_directory && unit.key.path.parent() == Some(directory))
    }

    /// What has to be done to bring the zones up to date with the configuration and the files.
    pub fn plan(&self, config: &Config, scope: Scope<'_>) -> Plan {
        let Survey { units, unreadable, ignored } = survey(&config.zones, |directory| {
            let mut units: Vec<_> = self.units_in(directory).cloned().collect();
            units.sort_by(|a, b| a.key.path.cmp(&b.key.path));
            units
        });
        let target = match scope {
            Scope::Zone(name) => self.zone(name).map(|zone| &zone.unit),
            Scope::Changed | Scope::Watched => None,
        };
        let is_stale = |known: &KnownUnit| match scope {
            Scope::Zone(_) => Some(&known.unit.key) == target,
            Scope::Watched if !config.watch && !known.unit.is_always_watched() => false,
            Scope::Watched => known.is_outdated(),
            Scope::Changed => known.failed || known.is_outdated(),
        };
        let mut known_units = 0;
        let units: Vec<_> = units
            .into_iter()
            .map(|unit| {
                let Some(known) = self.units.get(&unit.key) else { return (unit, Step::Load) };
                known_units += 1;
                let step = match (&unit, &known.unit) {
                    (new, old) if new.root != old.root || is_stale(known) => Step::Load,
                    (new, old) if new.access != old.access => Step::Admit,
                    (new, old) if new.in_directory != old.in_directory => Step::Admit,
                    _ => Step::Keep,
                };
                (unit, step)
            })
            .collect();
        let gone = if known_units == self.units.len() { Vec::new() } else { self.others(&units) };
        let is_asked = !matches!(scope, Scope::Watched);
        Plan { units, gone, unreadable, ignored, is_asked }
    }

    /// What has to be done to serve a zone from other data that a program gives; nothing if it is
    /// served from those.
    pub fn plan_given(&self, zone: &ZoneConfig) -> Option<Plan> {
        let mut unit = survey(std::slice::from_ref(zone), |_| Vec::new()).units.pop()?;
        unit.is_restless = true;
        let name = unit.key.content.only_zone()?;
        let is_former =
            |key: &&Arc<UnitKey>| matches!(&key.content, Content::Given(other, _) if other == name);
        let served = self.zone(name).map(|known| &known.unit).filter(is_former);
        let gone = served.or_else(|| self.units.keys().find(is_former)).cloned();
        if gone.as_ref() == Some(&unit.key) {
            return None;
        }
        let gone = gone.into_iter().collect();
        let (unreadable, ignored) = (self.unreadable.clone(), self.ignored.iter().cloned());
        let (units, ignored) = (vec![(unit, Step::Load)], ignored.collect());
        Some(Plan { units, gone, unreadable, ignored, is_asked: false })
    }

    /// The known units that are not among `units`.
    fn others(&self, units: &[(Unit, Step)]) -> Vec<Arc<UnitKey>> {
        let planned: HashSet<&UnitKey> = units.iter().map(|(unit, _)| &*unit.key).collect();
        self.units.keys().filter(|key| !planned.contains(&***key)).cloned().collect()
    }

    /// Carries out a plan, with what was loaded for it.
    pub fn apply(&mut self, plan: Plan, loaded: Vec<LoadedUnit>) -> Outcome {
        let mut outcome = Outcome::default();
        self.note_failures(plan.unreadable, plan.is_asked, &mut outcome);
        self.note_ignored(plan.ignored);
        // Zones that their units have no more. Another unit may take them over; the data of the
        // former stays until that is loaded.
        let mut orphans: HashSet<Name> = HashSet::new();
        for key in plan.gone {
            orphans.extend(self.units.remove(&key).into_iter().flat_map(|known| known.zones));
        }
        let (mut loaded, mut loads) = (loaded.into_iter(), Vec::new());
        for (unit, step) in plan.units {
            match step {
                Step::Keep => {}
                Step::Admit => self.admit(unit, &mut outcome),
                Step::Load => loads.extend(loaded.next().map(|loaded| (unit, loaded))),
            }
        }
        for (unit, loaded) in &loads {
            self.find_lost(&unit.key, loaded, &mut orphans);
        }
        for (unit, loaded) in loads {
            self.take(unit, loaded, &mut orphans, &mut outcome);
        }
        orphans.iter().for_each(|name| self.remove(name, &mut outcome));
        outcome
    }

    /// Notes which directories cannot be read.
    fn note_failures(
        &mut self,
        unreadable: Vec<(PathBuf, LoadError)>,
        is_asked: bool,
        outcome: &mut Outcome,
    ) {
        for failure in &unreadable {
            if is_asked || !self.unreadable.contains(failure) {
                tracing::error!("{}", failure.1);
                outcome.failed.push(failure.1.to_string());
            }
        }
        self.unreadable = unreadable;
    }

    /// Notes which files are left out, and logs those that are new.
    fn note_ignored(&mut self, ignored: Vec<String>) {
        for reason in ignored.iter().filter(|reason| !self.ignored.contains(*reason)) {
            tracing::warn!("{reason}");
        }
        self.ignored = ignored.into_iter().collect();
    }

    /// Puts into force what a unit says of its zones besides their data.
    fn admit(&mut self, unit: Unit, outcome: &mut Outcome) {
        let Some(mut known) = self.units.remove(&unit.key) else { return };
        known.unit = unit;
        self.change_access(&known, outcome);
        self.units.insert(Arc::clone(&known.unit.key), known);
    }

    /// Changes who may ask for the zones of a unit to whom the unit says.
    fn change_access(&mut self, known: &KnownUnit, outcome: &mut Outcome) {
        let access = self.access_list(&known.unit);
        for name in &known.zones {
            if let Some(zone) = self.zones.get_mut(name) {
                zone.entry = entry(name, zone.data().cloned(), access.clone(), zone.number);
                outcome.changed = true;
            }
        }
    }

    /// Finds the zones that a unit has no more.
    fn find_lost(&self, key: &Arc<UnitKey>, loaded: &LoadedUnit, orphans: &mut HashSet<Name>) {
        let (Some(known), None) = (self.units.get(key), &loaded.failure) else { return };
        let now = loaded.names();
        orphans.extend(known.zones.iter().filter(|name| !now.contains(*name)).cloned());
    }

    /// Takes over what became of a unit.
    fn take(
        &mut self,
        unit: Unit,
        loaded: LoadedUnit,
        orphans: &mut HashSet<Name>,
        outcome: &mut Outcome,
    ) {
        let key = Arc::clone(&unit.key);
        let mut known = KnownUnit::new(unit);
        if let Some(former) = self.units.remove(&key) {
            known.was_known = former.was_known;
            known.zones = former.zones;
            let now = loaded.names();
            known.zones.retain(|name| loaded.failure.is_some() && !now.contains(name));
        }
        known.stamps = loaded.stamps;
        match &loaded.failure {
            None => known.was_known = true,
            Some(error) => {
                tracing::error!("not all was loaded: {error}");
                outcome.failed.push(error.to_string());
                self.change_access(&known, outcome);
            }
        }
        known.failed = loaded.failure.is_some() || loaded.zones.iter().any(|(_, z)| z.is_err());
        known.failure = loaded.failure;
        for (name, zone) in loaded.zones {
            let name = name.to_lowercase();
            let other = self.zones.get(&name).filter(|zone| zone.unit != key);
            if let (Some(other), false) = (other, orphans.remove(&name)) {
                tracing::warn!("{}", already_served(&key.path, &name, other.path()));
                continue;
            }
            self.put(&known.unit, name.clone(), zone, outcome);
            known.zones.push(name);
        }
        self.units.insert(key, known);
    }

    /// Puts a zone in place of the former version, which stays if the new one failed.
    fn put(
        &mut self,
        unit: &Unit,
        name: Name,
        loaded: Result<LoadedZone, LoadError>,
        outcome: &mut Outcome,
    ) {
        let former = self.zones.remove(&name);
        outcome.changed = true;
        outcome.names_changed |= former.is_none();
        let number = former.as_ref().map_or_else(|| self.numbers.take(), |zone| zone.number);
        let (mut data, mut records, mut since, mut error) = match former {
            Some(former) => (former.data().cloned(), former.records, former.loaded, None),
            None => (None, 0, None, None),
        };
        match loaded {
            Ok(new) => {
                warn_if_serial_went_back(data.as_deref(), &new.zone);
                outcome.loaded.push(name.clone());
                (data, records) = (Some(Arc::new(new.zone)), new.records);
                since = Some(SystemTime::now());
            }
            Err(failure) => {
                let is_forwarded = self.forwards.iter().any(|it| it.entry.apex == name);
                let state = match data {
                    Some(_) => "its former version is still served",
                    None if is_forwarded => "all of it is forwarded",
                    None => "it is answered SERVFAIL",
                };
                if failure.is_awaited() {
                    tracing::debug!("zone {name} has no data yet, {state}");
                } else {
                    tracing::error!("zone {name} was not loaded, {state}: {failure}");
                    outcome.failed.push(format!("{name}: {failure}"));
                }
                error = Some(failure);
            }
        }
        let entry = entry(&name, data, self.access_list(unit), number);
        let unit = Arc::clone(&unit.key);
        self.forwards_changed |= matches!(unit.content, Content::Hosts(_));
        self.zones.insert(name, KnownZone { entry, unit, number, records, loaded: since, error });
    }

    /// Takes a zone away.
    fn remove(&mut self, name: &Name, outcome: &mut Outcome) {
        if let Some(zone) = self.zones.remove(name) {
            self.numbers.give_back(zone.number);
            outcome.removed.push(name.clone());
            outcome.changed = true;
            outcome.names_changed = true;
        }
    }

    /// The access list of a unit as the engine reads it.
    fn access_list(&mut self, unit: &Unit) -> Option<Arc<AccessList>> {
        let configured = unit.access.as_ref()?;
        if let Some((last, list)) = &self.last_access
            && last == configured
        {
            return Some(Arc::clone(list));
        }
        let list = Arc::new(access(configured));
        self.last_access = Some((Arc::clone(configured), Arc::clone(&list)));
        Some(list)
    }

    /// The table of all zones, for whose counting there is room from now on; parts of `former` are
    /// shared if the names are the same.
    pub fn table(&mut self, former: Option<&ZoneTable>, outcome: &Outcome) -> ZoneTable {
        self.numbers.make_room();
        let names_changed = std::mem::take(&mut self.forwards_changed) || outcome.names_changed;
        let is_usable = |former: &&ZoneTable| {
            !names_changed && self.lent.iter().all(|name| self.is_current(name, former))
        };
        let Some(former) = former.filter(is_usable) else {
            let hosts = self.hosts_of_forwards();
            let zones = self.zones.iter().filter(|(name, _)| !hosts.contains_key(name));
            let mut entries = zones.map(|(_, zone)| Arc::clone(&zone.entry)).collect();
            let loaded = hosts.into_iter().filter_map(|(name, data)| Some((name, data?)));
            let (forwards, loaded) = (&self.forwards, loaded.collect());
            let lent = self.local_names.add_forwards(&mut entries, forwards, &loaded);
            self.lent = lent;
            return ZoneTable::new(entries, self.seed);
        };
        let changed = self.zones.iter().filter_map(|(name, zone)| {
            let index = former.index_of(name)?;
            (!Arc::ptr_eq(former.get(index), &zone.entry)).then(|| (index, Arc::clone(&zone.entry)))
        });
        former.with_replaced(changed)
    }

    /// Whether a table has a zone as it is now.
    fn is_current(&self, name: &Name, table: &ZoneTable) -> bool {
        let (zone, index) = (self.zones.get(name), table.index_of(name));
        zone.zip(index).is_some_and(|(zone, index)| Arc::ptr_eq(table.get(index), &zone.entry))
    }

    /// The zones that lie in front of forwarded ones of the same name, as far as they were loaded.
    fn hosts_of_forwards(&self) -> HashMap<&Name, Option<Arc<Zone>>> {
        let zone = |apex| self.zones.get_key_value(apex).filter(|(_, zone)| zone.is_hosts());
        let zones = self.forwards.iter().filter_map(|forward| zone(&forward.entry.apex));
        zones.map(|(name, zone)| (name, zone.data().cloned())).collect()
    }

    /// Notes that no worker has an older table any more.
    pub fn note_published(&mut self) {
        self.numbers.note_published();
    }
}

impl KnownUnit {
    /// A unit of which nothing was loaded yet.
    fn new(unit: Unit) -> Self {
        let (stamps, zones) = (Vec::new(), Vec::new());
        Self { unit, stamps, zones, failure: None, was_known: false, failed: false }
    }

    /// Whether a file of it changed since it was read.
    fn is_outdated(&self) -> bool {
        !self.stamps.iter().all(Stamp::is_current)
    }
}

/// A zone as a snapshot holds it.
fn entry(
    apex: &Name,
    data: Option<Arc<Zone>>,
    access: Option<Arc<AccessList>>,
    number: Number,
) -> Arc<ZoneEntry> {
    let source = data.map_or(Source::Unavailable, Source::Data);
    Arc::new(ZoneEntry { apex: apex.clone(), source, access, number: number.place })
}

/// Warns of a serial that is lower than the former one: secondaries would not follow (rfc1982).
fn warn_if_serial_went_back(former: Option<&Zone>, zone: &Zone) {
    let Some(former) = former else { return };
    let (old, new) = (former.serial(), zone.serial());
    if new != old && new.wrapping_sub(old) > i32::MAX as u32 {
        let name = zonda_wire::name::Presentation(zone.apex());
        tracing::warn!("zone {name}: serial went backwards from {old} to {new}");
    }
}
