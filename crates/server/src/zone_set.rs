//! The zones as their one owner, the publisher, has them, and the tables made from them.
//!
//! # Invariants
//! - A zone that was served once is served until nothing in the configuration and the directories
//!   stands for it any more, whatever becomes of its file.
//! - A name belongs to one unit; the first that has it.
//! - No change costs more than what it changes, for each view, whatever the number of zones; one
//!   that comes or goes above a forwarded or special name costs as much as there are forwarded and
//!   special ones, and one of the views themselves as much as there are zones.

mod announcement;
#[cfg(all(test, feature = "whole"))]
mod aside_tests;
mod fed;
pub mod fed_zone;
mod history;
pub mod listings;
mod outcome;
pub mod tables;
mod update;
mod version;
mod view_table;

use crate::edit::frozen::FrozenZones;
use crate::edit::journal::{EditJournal, KeptChanges, mark_now, policy};
use crate::edit::zone_digest::with_sound_digest;
use crate::edit::{Edit, EditError};
use crate::engine_counters::EngineCounters;
use crate::feed::Update;
use crate::forwards::Forwards;
use crate::load::{LoadError, LoadedUnit};
use crate::load_time::LoadTime;
use crate::local::LocalNames;
use crate::notify::Cause;
use crate::numbers::{Number, Numbers};
use crate::settings::{ServedSettings, SettingsBuilder, access};
use crate::unit_states::{KnownUnit, Plan, Step, UnitStates};
use crate::units::{Content, Unit, UnitKey, already_served};
use crate::views::ViewList;
use crate::zone_set_view::{FileFailure, KnownZone, ZoneSetView};
use fed_zone::FedZone;
use listings::ListingChanges;
pub use outcome::Outcome;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use version::{Version, narrow};
use view_table::ViewTable;
use zonda_config::{Access, Config};
use zonda_engine::access::AccessList;
use zonda_engine::name_table::NameTableOwner;
use zonda_engine::zones::{Source, ZoneEntry};
use zonda_engine::{Reason, Settings, ZoneHistory};
use zonda_wire::Name;
use zonda_zone::{ChangeSet, Diff, HashSeed, Serial, Zone, random_octets};

/// A zone as it is in force, and what the journal has of its changes.
pub type ZoneAndChanges = (Arc<KnownZone>, Option<KeptChanges>);

/// All zones of the server.
pub struct ZoneSet {
    seed: HashSeed,
    zones: NameTableOwner<KnownZone>,
    /// The zones of all listeners, and behind them those of each view.
    tables: Vec<ViewTable>,
    /// The views, where zones, rules or templates are at some listeners only.
    views: ViewList,
    /// Whether a panic may have kept tables or settings from being what the views say.
    is_doubtful: bool,
    /// Whether a zone has come into a table, or left it, since the last were made.
    names_changed: bool,
    numbers: Numbers,
    /// Zones that upstreams answer for.
    forwards: Arc<Forwards>,
    /// Names that upstreams do not answer for.
    local_names: LocalNames,
    failures: Arc<Vec<FileFailure>>,
    /// Zones whose feeds send updates by themselves, by their names in lower case.
    fed: HashMap<Name, FedZone>,
    /// The journal of writable zones.
    pub journal: EditJournal,
    /// The zones that take no updates and edits for now.
    pub frozen: FrozenZones,
    /// The zones that catalogs list otherwise than before.
    pub listings: ListingChanges,
    /// Zones with new versions of which servers are to be notified once they are published.
    pub announced: HashMap<Name, Cause>,
    /// The access list that was converted last; most zones of a configuration share one.
    last_access: Option<(Arc<Access>, Arc<AccessList>)>,
    /// The source and the terms of the zone of a feed that was added last, as most such zones have
    /// the same.
    last_fed_unit: Option<Arc<Unit>>,
}

impl ZoneSet {
    /// No zones yet; workers will count in `engines`.
    pub fn new(seed: HashSeed, engines: Arc<EngineCounters>, config: &Config) -> Self {
        Self {
            forwards: Arc::new(Forwards::new(config)),
            local_names: LocalNames::default(),
            seed,
            zones: NameTableOwner::new(seed),
            tables: vec![ViewTable::new(None, seed)],
            views: ViewList::default(),
            is_doubtful: false,
            names_changed: false,
            numbers: Numbers::new(engines),
            failures: Arc::default(),
            fed: HashMap::new(),
            journal: EditJournal::default(),
            frozen: FrozenZones::default(),
            listings: ListingChanges::default(),
            announced: HashMap::new(),
            last_access: None,
            last_fed_unit: None,
        }
    }

    /// The zones as they are now, for all that read.
    pub fn view(&self) -> ZoneSetView {
        ZoneSetView {
            zones: self.zones.table().clone(),
            forwards: Arc::clone(&self.forwards),
            counts: self.numbers.counts(),
            failures: Arc::clone(&self.failures),
            frozen: self.frozen.moments(),
        }
    }

    /// A zone by its name in lower case, and what the journal has of its changes.
    pub fn with_kept_changes(&self, name: &Name) -> Option<ZoneAndChanges> {
        let zone = Arc::clone(self.zone(name)?);
        let changes = zone.data().and_then(|data| self.journal.kept_changes(name, data));
        Some((zone, changes))
    }

    /// A zone by its name.
    fn zone(&self, name: &Name) -> Option<&Arc<KnownZone>> {
        self.zones.table().value(name)
    }

    /// Puts into force which zones upstreams answer for, and which zones are at which listeners;
    /// whether the next tables differ for it.
    pub fn set_forwards(&mut self, config: &Config) -> bool {
        let views = ViewList::new(config);
        let forwards = Arc::make_mut(&mut self.forwards);
        let mut is_changed = forwards.update(config, &views.zone_sets(), &mut self.numbers);
        is_changed |= self.local_names.update(config, self.seed);
        if is_changed {
            self.tables.iter_mut().for_each(ViewTable::note_forwards);
        }
        // Behind the forwarded zones, by which the tables of new views go.
        self.set_views(views) || is_changed
    }

    /// Makes the settings of the engine, among which are the upstreams that look up targets of
    /// ALIAS records, and makes room for what they have counted by labels.
    pub fn settings(&self, builder: &mut SettingsBuilder, config: &Config) -> ServedSettings {
        let alias_resolver = self.forwards.alias_resolver();
        let settings = Settings { alias_resolver, ..builder.settings(config) };
        if let Some(labels) = &settings.labels {
            self.numbers.make_label_room(labels.server_places());
        }
        ServedSettings::new(settings, config, &self.views)
    }

    /// Carries out a plan, with what was loaded for it.
    pub fn apply(
        &mut self,
        units: &mut UnitStates,
        plan: Plan,
        loaded: Vec<LoadedUnit>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        if plan.is_empty() {
            return outcome;
        }
        note_failures(units, plan.unreadable, plan.is_asked, &mut outcome);
        units.note_listing(plan.listing);
        // Zones that their units have no more. Another unit may take them over; the data of the
        // former stays until that is loaded.
        let mut orphans: HashSet<Name> = HashSet::new();
        for key in plan.gone {
            orphans.extend(units.known.remove(&key).into_iter().flat_map(|known| known.zones()));
        }
        if std::mem::replace(&mut units.is_torn, true) {
            orphans.extend(self.zones_of_no_unit(units, &plan.units));
        }
        let stale = plan.units.iter().filter(|(_, step)| *step == Step::Load);
        for ((unit, _), loaded) in stale.zip(&loaded) {
            orphans.extend(units.lost_names(&unit.key, loaded));
        }
        units.known.reserve_first(loaded.len());
        let mut loaded = loaded.into_iter();
        for (unit, step) in plan.units {
            match step {
                Step::Keep => {}
                Step::Admit => self.admit(units, unit, &mut outcome),
                Step::Load => {
                    if let Some(loaded) = loaded.next() {
                        self.take(units, unit, loaded, &mut orphans, &mut outcome);
                    }
                }
            }
        }
        orphans.iter().for_each(|name| self.remove(name, &mut outcome));
        self.failures = Arc::new(units.failures());
        units.is_torn = false;
        outcome
    }

    /// The zones that are from files, and from none that is known or planned: what a plan that was
    /// not carried out to its end has left behind.
    fn zones_of_no_unit(&self, units: &UnitStates, planned: &[(Unit, Step)]) -> Vec<Name> {
        let planned: HashSet<_> = planned.iter().map(|(unit, _)| &unit.key).collect();
        let zones = self.zones.table().iter().filter(|zone| {
            let is_of_unit = planned.contains(&zone.unit) || zone.unit.is_of_feed();
            !is_of_unit && units.known.get(&zone.unit).is_none()
        });
        zones.map(|zone| zone.entry.apex.clone()).collect()
    }

    /// Changes a zone, and returns what differs then, and the former version unless nothing does.
    /// The change is in the journal, but not committed.
    ///
    /// # Errors
    /// When the zone cannot be changed so; it is as it was then.
    pub fn edit(&mut self, edit: &Edit) -> Result<(Diff, Option<Arc<KnownZone>>), EditError> {
        let name = edit.zone.to_lowercase();
        let former = self.zone(&name).ok_or_else(|| EditError::NoSuchZone(name.clone()))?.clone();
        let rule = former.serial_rule()?;
        let data = former.data().ok_or_else(|| EditError::NotLoaded(name.clone()))?;
        self.journal.check(&name)?;
        if !edit.is_dry_run {
            self.frozen.check(&name)?;
        }
        if edit.if_life.is_some_and(|life| life != former.life) {
            return Err(EditError::IsAnother);
        }
        if edit.if_serial.is_some_and(|serial| serial != data.serial()) {
            return Err(EditError::SerialIs(data.serial()));
        }
        let changes = ChangeSet { sets: edit.sets.clone(), serial: Serial::Bump(policy(rule)) };
        let made = with_sound_digest(data, &changes, !edit.is_dry_run);
        let (zone, diff) = made.map_err(EditError::Refused)?;
        if edit.is_dry_run || diff.is_empty() {
            return Ok((diff, None));
        }
        let zone = Arc::new(zone);
        let mark = mark_now(edit.origin);
        self.journal.append(&name, (&diff, mark), (data, &zone))?;
        let records = former.records as usize + diff.added.len() - diff.removed.len();
        let records = narrow(records);
        let access = former.entry.access.clone();
        let history = history::of_edit(&former, (&diff, mark), history::limits(access.as_deref()));
        let (apex, source) = (&former.entry.apex, Source::Data(zone));
        let entry = Arc::new(entry(apex, source, access, former.number, history));
        let loaded = Some(LoadTime::now());
        self.put_zone(KnownZone { entry, records, loaded, ..KnownZone::clone(&former) });
        Ok((diff, Some(former)))
    }

    /// Puts the former version of a zone back, as an edit could not be written to the disk.
    pub fn restore(&mut self, former: &KnownZone) {
        self.put_zone(former.clone());
    }

    /// Puts into force what a unit says of its zones besides their data.
    fn admit(&mut self, units: &mut UnitStates, unit: Unit, outcome: &mut Outcome) {
        let Some(mut known) = units.known.remove(&unit.key) else { return };
        known.unit = unit;
        self.change_access(&known.unit, &known.zones(), outcome);
        units.known.insert(known);
    }

    /// Changes which clients may ask for the zones of a unit to those that the unit says, and
    /// whether these zones can be changed.
    fn change_access(&mut self, unit: &Unit, zones: &[Name], outcome: &mut Outcome) {
        let access = self.access_list(unit);
        for name in zones {
            if let Some(zone) = self.zone(name).map(|zone| KnownZone::clone(zone)) {
                let data = zone.data().cloned(); // no unit has a cluster
                let limits = history::limits(access.as_deref());
                let history = data.as_ref();
                let history =
                    history.and_then(|it| history::of_next(&zone, (it, &zone.unit), limits));
                let source = match (&zone.entry.source, data) {
                    (Source::Unavailable(reason), _) => Source::Unavailable(*reason),
                    (_, Some(data)) => Source::Data(data),
                    (_, None) => Source::Unavailable(Reason::ZoneUnavailable),
                };
                let entry = entry(name, source, access.clone(), zone.number, history);
                let entry = Arc::new(entry);
                let writable = unit.terms.writable;
                self.put_zone(KnownZone { entry, writable, ..zone });
                outcome.changed = true;
            }
        }
    }

    /// Takes over what became of a unit.
    fn take(
        &mut self,
        units: &mut UnitStates,
        unit: Unit,
        loaded: LoadedUnit,
        orphans: &mut HashSet<Name>,
        outcome: &mut Outcome,
    ) {
        let key = Arc::clone(&unit.key);
        let (mut known, mut zones) = (KnownUnit::new(unit), Vec::new());
        if let Some(former) = units.known.remove(&key) {
            known.was_known = former.was_known;
            zones = former.zones();
            let now = loaded.names();
            zones.retain(|name| loaded.failure.is_some() && !now.contains(name));
        }
        match &loaded.failure {
            None => known.was_known = true,
            Some(error) => {
                tracing::error!(%error, "not all zones of a file were loaded");
                outcome.failed.push(error.to_string());
                self.change_access(&known.unit, &zones, outcome);
            }
        }
        let is_failure = |update: &Update| matches!(update, Update::Unavailable(_));
        let has_failed = loaded.zones.iter().any(|(_, update)| is_failure(update));
        known.failed = loaded.failure.is_some() || has_failed;
        known.note_load(loaded.stamps, loaded.failure);
        for (name, update) in loaded.zones {
            let name = name.to_lowercase();
            let other = self.zone(&name).filter(|it| it.unit != key && !it.unit.is_of_feed());
            if let (Some(other), false) = (other.cloned(), orphans.remove(&name)) {
                let reason = already_served(&key, &name, &other.unit);
                tracing::warn!(reason, "a source of a zone is left out");
                continue;
            }
            self.put(&known.unit, &name, update, outcome);
            zones.push(name);
        }
        known.set_zones(zones);
        units.known.insert(Box::new(known));
    }

    /// Puts what a file has in place of the former version of a zone, which stays if there is none.
    fn put(&mut self, unit: &Unit, name: &Name, update: Update, outcome: &mut Outcome) {
        let former = self.zone(name).cloned();
        former.iter().for_each(|former| self.set_aside(former));
        let mut version = former.as_deref().map(Version::of).unwrap_or_default();
        match update {
            Update::Replace(new) => {
                let served = version.data.clone().map(|data| (data, version.records as usize));
                let served = served.as_ref().map(|(data, records)| (data, *records));
                let merged = self.journal.merge(name, new, served, unit.terms.writable);
                warn_if_serial_went_back(version.data.as_deref(), &merged.data);
                match &merged.error {
                    Some(error) => outcome.failed.push(format!("{name}: {error}")),
                    // A zone that had failed, and is as it was before, is loaded again.
                    None if former.as_ref().is_some_and(|it| it.error.is_none())
                        && served.is_some_and(|(it, _)| Arc::ptr_eq(it, &merged.data)) =>
                    {
                        outcome.unchanged.push(name.clone());
                    }
                    None => outcome.loaded.push(name.clone()),
                }
                version = Version {
                    data: Some(merged.data),
                    records: narrow(merged.records),
                    loaded: Some(LoadTime::now()),
                    error: merged.error.map(Box::new),
                    ..Version::default()
                };
            }
            Update::Unavailable(failure) => {
                self.note_failure((unit, name), version.data.is_some(), &failure, outcome);
                version.error = Some(Box::new(failure));
            }
            _ => {} // no file has such
        }
        self.serve(unit, name, former.as_deref(), version, outcome);
    }

    /// Notes that a zone of a unit has no newer records.
    fn note_failure(
        &self,
        (unit, name): (&Unit, &Name),
        is_served: bool,
        why: &LoadError,
        outcome: &mut Outcome,
    ) {
        let state = match is_served {
            true => "its former version is still served",
            false if self.is_of_forwarded(unit, name) => "all of it is forwarded",
            false => "it is answered SERVFAIL",
        };
        if why.is_awaited() {
            tracing::debug!(zone = %name, state, "a zone has no data yet");
        } else {
            tracing::error!(zone = %name, state, error = %why, "a zone was not loaded");
            outcome.failed.push(format!("{name}: {why}"));
        }
    }

    /// Whether a unit has the names in front of a forwarded zone of this name.
    fn is_of_forwarded(&self, unit: &Unit, name: &Name) -> bool {
        let is_hosts = matches!(unit.key.content, Content::Hosts(_));
        let own = unit.terms.access.as_ref().and_then(|access| access.listeners.as_deref());
        is_hosts
            && self
                .forwards
                .iter()
                .any(|forward| forward.entry.apex == *name && forward.entry.listeners() == own)
    }

    /// Serves a version of a zone in place of the former one.
    fn serve(
        &mut self,
        unit: &Unit,
        name: &Name,
        former: Option<&KnownZone>,
        version: Version,
        outcome: &mut Outcome,
    ) {
        let Version { data, cluster, records, loaded, error, is_expired, changes, expiry } =
            version;
        outcome.names_changed |= former.is_none();
        let number = former.map_or_else(|| self.numbers.take(), |zone| zone.number);
        let life = former.map_or_else(|| u32::from_ne_bytes(random_octets()), |zone| zone.life);
        let access = self.access_list(unit);
        let reason = if is_expired { Reason::ZoneExpired } else { Reason::ZoneUnavailable };
        let same = former.filter(|former| {
            let has_other_reason =
                matches!(former.entry.source, Source::Unavailable(it) if it != reason);
            cluster.is_none()
                && !has_other_reason
                && former.is_same(data.as_ref(), access.as_deref(), expiry.as_ref())
        });
        outcome.changed |= same.is_none();
        let is_same = same.is_some();
        let entry = match same {
            Some(same) => Arc::clone(&same.entry),
            None => {
                let history = match (&cluster, &data) {
                    (None, Some(data)) => {
                        self.history(name, former, (data, &unit.key, changes), access.as_deref())
                    }
                    _ => None,
                };
                let source = cluster.map(Source::Cluster).or(data.map(Source::Data));
                let source = source.unwrap_or(Source::Unavailable(reason));
                let entry = entry(name, source, access, number, history);
                Arc::new(entry.with_expiry(expiry).with_hosts_first(unit.terms.hosts_first))
            }
        };
        let (writable, unit) = (unit.terms.writable, Arc::clone(&unit.key));
        let zone = KnownZone { entry, unit, number, life, records, loaded, error, writable };
        match is_same {
            true => drop(self.zones.put(Arc::new(zone))), // workers keep their hot answers
            false => self.put_zone(zone),
        }
    }

    /// The history of the next version of a zone; of the first one, what feed or journal has.
    fn history(
        &self,
        name: &Name,
        former: Option<&KnownZone>,
        (data, unit, changes): (&Arc<Zone>, &UnitKey, Vec<Diff>),
        access: Option<&AccessList>,
    ) -> Option<Arc<ZoneHistory>> {
        let limits = history::limits(access);
        match former.filter(|former| former.data().is_some()) {
            Some(former) => history::of_next(former, (data, unit), limits),
            None if !changes.is_empty() => history::of_kept(changes, limits?),
            None => history::of_all(self.journal.changes_to(name, data), limits?),
        }
    }

    /// Puts a zone, and its entry into the table of workers.
    fn put_zone(&mut self, zone: KnownZone) {
        if let Some(cause) = self.announcement(&zone) {
            self.announced.insert(zone.entry.apex.clone(), cause);
        }
        self.listings.note(self.zones.table().value(&zone.entry.apex).map(|it| &**it), Some(&zone));
        for table in &mut self.tables {
            self.names_changed |= table.put(&zone, &self.forwards);
        }
        self.zones.put(Arc::new(zone));
    }

    /// Takes a zone away.
    fn remove(&mut self, name: &Name, outcome: &mut Outcome) {
        if let Some(zone) = self.zones.remove(name) {
            self.listings.note(Some(&zone), None);
            for table in &mut self.tables {
                self.names_changed |= table.remove(&zone, &self.forwards);
            }
            self.numbers.give_back(zone.number);
            outcome.removed.push(name.clone());
            outcome.changed = true;
            outcome.names_changed = true;
            self.fall_back_to_feed(name, Version::of(&zone), outcome);
        }
    }

    /// The access list of a unit as the engine reads it.
    fn access_list(&mut self, unit: &Unit) -> Option<Arc<AccessList>> {
        let configured = unit.terms.access.as_ref()?;
        if let Some((last, list)) = &self.last_access
            && last == configured
        {
            return Some(Arc::clone(list));
        }
        let list = Arc::new(access(configured));
        self.last_access = Some((Arc::clone(configured), Arc::clone(&list)));
        Some(list)
    }

    /// Has the next table made as if all had changed, as a panic may have hidden what has.
    pub fn note_panic(&mut self) {
        self.is_doubtful = true;
        self.tables.iter_mut().for_each(ViewTable::note_forwards);
    }

    /// The number of zones whose numbers workers of former snapshots may still count under.
    pub fn retiring(&self) -> usize {
        self.numbers.retiring()
    }

    /// Notes that no worker has a table any more that has the first `count` of these zones.
    pub fn note_dropped(&mut self, count: usize) {
        self.numbers.note_dropped(count);
    }
}

/// Notes which directories cannot be read.
fn note_failures(
    units: &mut UnitStates,
    unreadable: Vec<(PathBuf, LoadError)>,
    is_asked: bool,
    outcome: &mut Outcome,
) {
    for failure in &unreadable {
        if is_asked || !units.unreadable.contains(failure) {
            tracing::error!(error = %failure.1, "a directory cannot be read");
            outcome.failed.push(failure.1.to_string());
        }
    }
    units.unreadable = unreadable;
}

/// A zone as a snapshot holds it.
fn entry(
    apex: &Name,
    source: Source,
    access: Option<Arc<AccessList>>,
    number: Number,
    history: Option<Arc<ZoneHistory>>,
) -> ZoneEntry {
    // The zone's own name, of which there is one in memory.
    let apex = match &source {
        Source::Data(zone) => zone.apex_name(),
        _ => apex,
    };
    ZoneEntry::new(apex.clone(), source, access, number.place).with_history(history)
}

/// Warns of a serial that is lower than the former one: secondaries would not follow (rfc1982).
fn warn_if_serial_went_back(former: Option<&Zone>, zone: &Zone) {
    let Some(former) = former else { return };
    let (old, new) = (former.serial(), zone.serial());
    if new != old && new.wrapping_sub(old) > i32::MAX as u32 {
        let name = zonda_wire::name::Presentation(zone.apex());
        tracing::warn!(zone = %name, old, new, "the serial of a zone went backwards");
    }
}
