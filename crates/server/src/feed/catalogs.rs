//! The feed of catalogs: which zones are members of them, and so are transferred (rfc9432).
//!
//! ```text
//! publisher ─ something was published ─► thread ─ a catalog has another version ─► Membership
//!     ▲                                                                              │ steps
//!     └── zones, and the feed of zones of primaries ◄── MemberChange ◄───────────────┤
//!         file of the catalog's members ◄────────────────────────────────────────────┘
//! ```
//!
//! # Invariants
//! - A version costs what differs from the former one, whatever the number of members.
//! - A version that is broken, or that removes too much, changes nothing.
//! - What a member leaves on the disk is removed or set aside before the member's file says that it
//!   is gone, so that a crash between the two has that done once more.

use super::catalog_file::CatalogFile;
use super::catalog_maker::CatalogMakers;
use super::secondaries::{FileFate, MemberChange, NewMember, SecondaryFeeds};
use super::store_feed::lock;
use crate::publish::{PublisherHandle, ServerState};
use crate::units::CATALOG;
use arc_swap::ArcSwap;
#[cfg(feature = "whole")]
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use zonda_config::{Catalog, Config, MemberTemplate};
use zonda_secondary::membership::{MemberSteps, VersionFault};
use zonda_secondary::{Member, MemberStep, MemberTag, Membership, VersionLimits};
use zonda_wire::{Name, Type};
use zonda_zone::Zone;

/// How often the thread looks whether it is to end.
const LOOK: Duration = Duration::from_millis(500);
/// How often it is looked whether zones that are left out may become members.
const LEFT_OUT_LOOK: Duration = Duration::from_secs(10);
/// How often it is tried to follow members that could not be followed.
const BEHIND_LOOK: Duration = Duration::from_secs(1);
/// How often files of members are removed that were set aside too long ago.
const SWEEP: Duration = Duration::from_secs(5 * 60);
/// Zones that are left out which the log names for a version.
const LOGGED_MAX: usize = 10;

/// The states of catalogs, by their names in lower case.
pub type CatalogStates = HashMap<Name, CatalogState>;

/// How a catalog is followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogState {
    /// The serial of the version that was taken last; none before the first one.
    pub serial: Option<u32>,
    /// The number of zones that are members.
    pub members: usize,
    /// The number of zones that the version lists and that are no members: something else stands
    /// for them, or they are members of another catalog.
    pub left_out: usize,
    /// Why the version in force is not taken, if it is not.
    pub error: Option<String>,
}

impl CatalogState {
    /// The state as JSON.
    #[cfg(feature = "whole")]
    pub(crate) fn to_json(&self) -> Value {
        let Self { serial, members, left_out, error } = self;
        json!({ "serial": serial, "members": members, "left_out": left_out, "error": error })
    }
}

/// The feed of all catalogs.
pub struct CatalogFeeds {
    shared: Arc<Shared>,
}

/// What the thread shares with those that configure it.
struct Shared {
    publisher: PublisherHandle,
    secondaries: Arc<SecondaryFeeds>,
    work: Mutex<Work>,
    /// The states of catalogs, for readers.
    states: ArcSwap<CatalogStates>,
}

/// The catalogs and their members.
#[derive(Default)]
struct Work {
    /// The catalogs of the configuration.
    catalogs: Vec<Catalog>,
    /// Names of zones of the configuration, in lower case.
    configured: HashSet<Name>,
    membership: Membership,
    /// What is known of each catalog.
    known: HashMap<Name, KnownCatalog>,
    /// The catalogs that the server makes.
    makers: CatalogMakers,
    /// Whether there is a thread, which this tells to end.
    thread: Option<Arc<Mutex<bool>>>,
    /// When it was looked last whether zones that are left out may become members, or members were
    /// followed again.
    looked: Option<Instant>,
    /// Whether not all members could be followed as they should be.
    is_behind: bool,
    /// Whether zones may be served as those of catalogs that are members no more.
    may_have_strays: bool,
}

/// What is known of a catalog.
struct KnownCatalog {
    /// Where members come from, as messages call it.
    source: Arc<str>,
    /// The file of the members.
    file: CatalogFile,
    /// The version that was looked at last.
    seen: Option<Arc<Zone>>,
    /// The version that was taken last.
    taken: Option<Arc<Zone>>,
    /// Why the version that was looked at last was not taken.
    fault: Option<VersionFault>,
}

/// Why a version of a catalog is not confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfirmError {
    /// The zone is no catalog whose members are served.
    NotCatalog,
    /// No version of the catalog is refused.
    NothingRefused,
    /// The version that is refused has another serial: this one.
    OtherSerial(u32),
    /// The version is refused for a reason that nothing but another version or configuration
    /// changes, as this text says.
    OtherFault(String),
}

impl CatalogFeeds {
    /// A feed without catalogs.
    pub fn new(publisher: PublisherHandle, secondaries: Arc<SecondaryFeeds>) -> Self {
        let (work, states) = (Mutex::default(), ArcSwap::default());
        Self { shared: Arc::new(Shared { publisher, secondaries, work, states }) }
    }

    /// Follows the catalogs of a configuration from now on, and only those; `first` is dropped once
    /// the files of the members were read that are known from the last start.
    ///
    /// # Errors
    /// When a thread cannot be had.
    pub fn follow(&self, config: &Config, first: &SyncSender<()>) -> io::Result<()> {
        let mut work = lock(&self.shared.work);
        let has_catalogs = !config.catalogs.is_empty() || config.made_catalogs().next().is_some();
        if !has_catalogs && work.thread.is_none() {
            return Ok(());
        }
        work.makers.configure(config, &self.shared.publisher);
        let configured = match config.catalogs.is_empty() && work.catalogs.is_empty() {
            true => Ok(()),
            false => self.shared.configure(&mut work, config, first),
        };
        work.is_behind = configured.is_err();
        if work.thread.is_none() {
            let is_stopped = Arc::<Mutex<bool>>::default();
            let (sender, told) = sync_channel(1);
            let _ = self.shared.publisher.watch(sender); // the watchdog has why it fails
            let (shared, stop) = (Arc::clone(&self.shared), Arc::clone(&is_stopped));
            let run = move || shared.run(&told, &stop);
            std::thread::Builder::new().name("zonda-catalogs".to_owned()).spawn(run)?;
            work.thread = Some(is_stopped);
        }
        work.looked = None;
        configured?; // the thread tries again
        self.shared.look(&mut work, first);
        Ok(())
    }

    /// The states of catalogs.
    pub fn states(&self) -> Arc<CatalogStates> {
        self.shared.states.load_full()
    }

    /// Takes the version of a catalog with a serial though it removes more members than it may, as
    /// an operator has confirmed; returns the number of members that are left.
    ///
    /// # Errors
    /// When no such version waits for that; nothing is changed.
    pub fn confirm(&self, name: &Name, serial: u32) -> Result<usize, ConfirmError> {
        let mut work = lock(&self.shared.work);
        let (first, _) = sync_channel(1);
        self.shared.look(&mut work, &first); // a later version may have come
        let state = self.shared.publisher.state();
        let catalog = work.catalogs.iter().find(|it| it.name == *name).cloned();
        let zone = state.zone_set.zone(name).and_then(|zone| zone.data());
        let known = work.known.get_mut(name);
        let (Some(catalog), Some(zone), Some(known)) = (catalog, zone, known) else {
            return Err(ConfirmError::NotCatalog);
        };
        match &known.fault {
            None => return Err(ConfirmError::NothingRefused),
            Some(VersionFault::TooManyRemovals(..)) if zone.serial() != serial => {
                return Err(ConfirmError::OtherSerial(zone.serial()));
            }
            Some(VersionFault::TooManyRemovals(..)) => known.seen = None,
            Some(fault) => return Err(ConfirmError::OtherFault(fault.to_string())),
        }
        tracing::info!(catalog = %name, serial, "an operator has confirmed a removal of members");
        self.shared.look_at(&mut work, (&catalog, None), (&state, zone), &first);
        self.shared.look(&mut work, &first);
        let fault = work.known.get(name).and_then(|known| known.fault.as_ref());
        match fault {
            None => Ok(work.membership.count(name)),
            Some(fault) => Err(ConfirmError::OtherFault(fault.to_string())),
        }
    }

    /// Follows no catalog any more; the thread changes nothing once this returns.
    pub fn stop(&self) {
        let work = std::mem::take(&mut *lock(&self.shared.work));
        work.thread.iter().for_each(|is_stopped| *lock(is_stopped) = true);
    }
}

impl Drop for CatalogFeeds {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    /// Looks at the catalogs whenever something was published, until told to end.
    fn run(&self, told: &Receiver<()>, is_stopped: &Mutex<bool>) {
        let mut swept: Option<Instant> = None;
        loop {
            if swept.is_none_or(|swept| swept.elapsed() > SWEEP) {
                swept = Some(Instant::now());
                self.secondaries.sweep();
            }
            if told.recv_timeout(LOOK) == Err(RecvTimeoutError::Disconnected) {
                std::thread::sleep(LOOK); // the publisher is down, or another thread is told
            }
            let mut work = lock(&self.work);
            if *lock(is_stopped) {
                return;
            }
            let (first, _) = sync_channel(1);
            // The log that the program writes may panic.
            let looked = catch_unwind(AssertUnwindSafe(|| self.look(&mut work, &first)));
            if looked.is_err() {
                tracing::error!("looking at a catalog has panicked");
            }
        }
    }

    /// Puts the catalogs of a configuration into force.
    fn configure(
        &self,
        work: &mut Work,
        config: &Config,
        first: &SyncSender<()>,
    ) -> io::Result<()> {
        self.secondaries.start_threads(&self.publisher, config)?; // before anything is noted
        let names: Vec<Name> = config.catalogs.iter().map(|it| it.name.clone()).collect();
        let configured = config.zones.iter().filter_map(|zone| zone.name.as_ref());
        work.configured = configured.map(Name::to_lowercase).collect();
        work.catalogs.clone_from(&config.catalogs);
        work.membership.order(&names);
        work.known.retain(|name, _| names.contains(name));
        for name in &names {
            let Some(known) = work.known.get_mut(name) else {
                let (file, records) = CatalogFile::open(config, name);
                for (zone, step) in work.membership.restore(name, &records) {
                    work.membership.carry_out(&zone, &step);
                }
                let source = format!("{CATALOG}{name}").into();
                let known = KnownCatalog { source, file, seen: None, taken: None, fault: None };
                work.known.insert(name.clone(), known);
                work.may_have_strays = true;
                continue;
            };
            if known.fault.is_some() {
                known.seen = None; // what is allowed may have changed
            }
        }
        let state = self.publisher.state();
        let steps = work.steps(work.membership.zones(), &state);
        let mut change = work.carry_out(&steps);
        let is_changed: HashSet<&Name> = steps.iter().map(|(zone, _)| zone).collect();
        let others = work.membership.members().filter(|(zone, _)| !is_changed.contains(zone));
        for (zone, member) in others {
            match work.new_member(zone, member) {
                Some(added) => change.added.push(added),
                // No section is for its groups.
                None => change.removed.push((zone.clone(), FileFate::Stays)),
            }
        }
        let changed = self.secondaries.change_members(&self.publisher, config, change, first);
        work.keep();
        changed
    }

    /// Takes what is new of the catalogs.
    fn look(&self, work: &mut Work, first: &SyncSender<()>) {
        work.makers.look(&self.publisher);
        let state = self.publisher.state();
        for catalog in work.catalogs.clone() {
            let served = state.zone_set.zone(&catalog.name).and_then(|zone| zone.data());
            if let Some(zone) = served {
                // A reload has put zones and limits into force together, and is about to tell the
                // rest to this.
                let next = state.config.catalogs.iter().find(|it| it.name == catalog.name);
                let catalog = next.unwrap_or(&catalog);
                let share = Some(catalog.removals_max);
                self.look_at(work, (catalog, share), (&state, zone), first);
            }
        }
        let is_known = |it: &Catalog| work.known.get(&it.name).is_some_and(|it| it.taken.is_some());
        if work.may_have_strays && work.catalogs.iter().all(is_known) {
            work.may_have_strays = false;
            let state = self.publisher.state(); // with what was added just now
            let change = MemberChange { removed: work.strays(&state), ..MemberChange::default() };
            let changed =
                self.secondaries.change_members(&self.publisher, &state.config, change, first);
            work.is_behind |= changed.inspect_err(log_behind).is_err();
        }
        let wait = if work.is_behind { BEHIND_LOOK } else { LEFT_OUT_LOOK };
        let is_due = work.looked.is_none_or(|looked| looked.elapsed() > wait);
        if is_due && work.is_behind {
            work.looked = Some(Instant::now());
            let configured = self.configure(work, &state.config, first);
            work.is_behind = configured.inspect_err(log_behind).is_err();
        } else if is_due {
            work.looked = Some(Instant::now());
            self.read_again(work, &state, first);
            let waiting: Vec<Name> = work.membership.waiting().cloned().collect();
            let steps = work.steps(waiting, &state);
            self.change(work, &steps, &state, first);
            work.keep(); // what could not be written before
        }
        let states = work.states();
        if **self.states.load() != states {
            self.states.store(Arc::new(states));
        }
    }

    /// Reads the files of members again that could not be read. The members in them are members
    /// again, until it was looked at what the version in force changes of them.
    fn read_again(&self, work: &mut Work, state: &ServerState, first: &SyncSender<()>) {
        for name in work.catalogs.iter().map(|it| it.name.clone()).collect::<Vec<_>>() {
            let Some(known) = work.known.get_mut(&name) else { continue };
            if known.file.unread().is_none() {
                continue;
            }
            let Some(records) = known.file.read(&name) else { continue };
            (known.seen, known.taken) = (None, None);
            tracing::info!(catalog = %name, "the members of a catalog can be read again");
            let names: Vec<Name> = work.catalogs.iter().map(|it| it.name.clone()).collect();
            let others: Vec<Name> = names.iter().filter(|it| **it != name).cloned().collect();
            work.membership.order(&others); // what it lists is that of the file
            work.membership.order(&names);
            let mut steps = work.membership.restore(&name, &records);
            // A zone that was configured meanwhile is what its section says.
            let (configured, membership) = (&work.configured, &work.membership);
            let is_member = |zone: &Name| membership.member(zone).is_some();
            steps.retain(|(zone, _)| !is_taken((configured, state), zone, is_member(zone)));
            self.change(work, &steps, state, first);
        }
    }

    /// Takes a version of a catalog that removes or resets no more than a share of its members, if
    /// there is one, unless the version was looked at before.
    fn look_at(
        &self,
        work: &mut Work,
        (catalog, removals_max): (&Catalog, Option<u8>),
        (state, zone): (&ServerState, &Arc<Zone>),
        first: &SyncSender<()>,
    ) {
        let name = &catalog.name;
        let Some(known) = work.known.get_mut(name) else { return };
        if known.seen.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, zone)) {
            return;
        }
        known.seen = Some(Arc::clone(zone));
        let former = known.taken.clone();
        let lacked_servers = former.as_ref().is_some_and(|it| has_no_servers(it));
        let versions = (former.as_deref(), &**zone);
        let members_max = usize::try_from(catalog.members_max).unwrap_or(usize::MAX);
        let limits = VersionLimits { removals_max, members_max };
        let configured = &work.configured;
        let is_taken = |zone: &Name, is_member| is_taken((configured, state), zone, is_member);
        let is_served =
            |member: &Member| member.catalog != *name || template(catalog, member).is_some();
        let taken = work.membership.take(name, versions, limits, (is_taken, is_served));
        let Some(known) = work.known.get_mut(name) else { return };
        let serial = zone.serial();
        match taken {
            Ok(steps) => {
                (known.taken, known.fault) = (Some(Arc::clone(zone)), None);
                self.change(work, &steps, state, first);
                let members = work.membership.count(name);
                let changed = steps.len();
                tracing::info!(catalog = %name, serial, members, changed, "a catalog is in force");
                if has_no_servers(zone) && !lacked_servers {
                    // rfc9432#4.1: one must be there, and what it says is of no interest.
                    tracing::warn!(
                        catalog = %name,
                        serial,
                        "a catalog has no NS record at its apex, as every zone must: other servers \
                         may refuse it; its producer should give it `NS invalid.`"
                    );
                }
                work.log_left_out(name);
            }
            Err(fault) => {
                let error = fault.to_string();
                known.fault = Some(fault);
                tracing::error!(
                    catalog = %name,
                    serial,
                    error,
                    "a version of a catalog is not taken: the members stay as they are"
                );
            }
        }
    }

    /// Does what becomes of some zones.
    fn change(
        &self,
        work: &mut Work,
        steps: &MemberSteps,
        state: &ServerState,
        first: &SyncSender<()>,
    ) {
        if steps.is_empty() {
            return;
        }
        let change = work.carry_out(steps);
        let changed =
            self.secondaries.change_members(&self.publisher, &state.config, change, first);
        work.is_behind |= changed.inspect_err(log_behind).is_err();
        work.keep();
    }
}

impl Work {
    /// What becomes of some zones.
    fn steps(&self, zones: Vec<Name>, state: &ServerState) -> MemberSteps {
        self.membership
            .steps(zones, |zone, is_member| is_taken((&self.configured, state), zone, is_member))
    }

    /// The zones that are served as those of catalogs, and are members no more: a successor that
    /// has gone away has removed them.
    fn strays(&self, state: &ServerState) -> Vec<(Name, FileFate)> {
        let zones = state.zone_set.zones().filter(|zone| zone.unit.is_of_catalog());
        let names = zones.map(|zone| zone.entry.apex.to_lowercase());
        let is_stray = |name: &Name| self.membership.member(name).is_none();
        names.filter(is_stray).map(|name| (name, FileFate::Stays)).collect()
    }

    /// Notes what becomes of some zones; returns what changes of the zones that are followed.
    fn carry_out(&mut self, steps: &MemberSteps) -> MemberChange {
        let mut change = MemberChange::default();
        for (zone, step) in steps {
            let former = self.membership.member(zone).cloned();
            self.membership.carry_out(zone, step);
            let now = self.membership.member(zone);
            for (name, known) in &mut self.known {
                let was = former.as_ref().filter(|member| member.catalog == *name);
                if was.is_some() || now.is_some_and(|member| member.catalog == *name) {
                    known.file.note(zone, was);
                }
            }
            let added = self.membership.member(zone).and_then(|next| self.new_member(zone, next));
            match step {
                MemberStep::Remove => {
                    let fate = former.as_ref().map_or(FileFate::Removed, |former| {
                        FileFate::SetAside(MemberTag::new(&former.catalog, &former.id))
                    });
                    change.removed.push((zone.clone(), fate));
                }
                MemberStep::Reset(_) => change.removed.push((zone.clone(), FileFate::Removed)),
                MemberStep::Yield => change.removed.push((zone.clone(), FileFate::Stays)),
                // No section is for its groups.
                MemberStep::Add(_) | MemberStep::Change(_) if added.is_none() => {
                    change.removed.push((zone.clone(), FileFate::Stays));
                }
                MemberStep::Add(next) => {
                    let tag = MemberTag::new(&next.catalog, &next.id);
                    change.returned.push((zone.clone(), tag));
                }
                MemberStep::Change(_) => {}
            }
            change.added.extend(added);
        }
        change
    }

    /// How a member is followed, unless no section is for its groups.
    fn new_member(&self, zone: &Name, member: &Member) -> Option<NewMember> {
        let catalog = self.catalogs.iter().find(|catalog| catalog.name == member.catalog)?;
        let template = template(catalog, member)?;
        let source = Arc::clone(&self.known.get(&member.catalog)?.source);
        let (secondary, access) = (Arc::clone(&template.secondary), template.access.clone());
        Some((zone.clone(), source, MemberTemplate { groups: Vec::new(), secondary, access }))
    }

    /// Has the disk hold the members as they are now; does nothing where it does.
    fn keep(&mut self) {
        for (catalog, known) in &mut self.known {
            known.file.keep(catalog, &self.membership);
        }
    }

    /// The states of all catalogs.
    fn states(&self) -> CatalogStates {
        let state = |(name, known): (&Name, &KnownCatalog)| {
            let members = self.membership.count(name);
            let listed = self.membership.catalog(name).map_or(0, zonda_secondary::Catalog::len);
            let state = CatalogState {
                serial: known.taken.as_ref().map(|zone| zone.serial()),
                members,
                left_out: listed.saturating_sub(members),
                error: known
                    .fault
                    .as_ref()
                    .map(ToString::to_string)
                    .or_else(|| known.file.unread()),
            };
            (name.clone(), state)
        };
        self.known.iter().map(state).collect()
    }

    /// Logs some zones that a catalog lists and that are not served as its members, though it does
    /// not say that they move to another catalog.
    fn log_left_out(&self, name: &Name) {
        let Some(listed) = self.membership.catalog(name) else { return };
        if listed.len() <= self.membership.count(name) {
            return;
        }
        let is_other = |zone: &&Name| {
            let moves = listed.listing(zone).is_some_and(|(_, it)| it.new_catalog.is_some());
            !moves && self.membership.member(zone).is_none_or(|it| it.catalog != *name)
        };
        let left_out = listed.zones().filter(is_other).count();
        for zone in listed.zones().filter(is_other).take(LOGGED_MAX) {
            tracing::warn!(
                catalog = %name,
                %zone,
                "a zone is no member: the configuration, or another catalog, has it"
            );
        }
        if left_out > 0 {
            tracing::warn!(catalog = %name, zones = left_out, "a catalog lists other zones");
        }
    }
}

/// Whether a zone has no NS record at its apex.
fn has_no_servers(zone: &Zone) -> bool {
    zone.apex_node().set(Type::NS).is_none()
}

/// Logs why members are not followed as they should be.
fn log_behind(error: &io::Error) {
    tracing::error!(%error, "not all members of catalogs are followed: it is tried again");
}

/// Whether something else of the server than a catalog stands for a zone, which is or is not a
/// member. A zone may be served as that of a catalog and be no member yet: where a successor has
/// gone away, what is known of members begins anew, and the zones are served on.
fn is_taken(
    (configured, state): (&HashSet<Name>, &ServerState),
    zone: &Name,
    is_member: bool,
) -> bool {
    let is_of_other = || state.zone_set.zone(zone).is_some_and(|it| !it.unit.is_of_catalog());
    configured.contains(zone) || !is_member && is_of_other()
}

/// How a catalog has a member served: by the first section that is for one of its groups, or else
/// by the one that is for all other members.
fn template<'c>(catalog: &'c Catalog, member: &Member) -> Option<&'c MemberTemplate> {
    let has = |group: &String| member.groups.iter().any(|own| **own == *group.as_bytes());
    let of_group = catalog.templates.iter().find(|template| template.groups.iter().any(has));
    of_group.or_else(|| catalog.templates.iter().find(|template| template.groups.is_empty()))
}

#[cfg(all(test, feature = "whole"))]
mod tests;
