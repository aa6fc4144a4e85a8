//! A zone of primaries: what is known of it between two refreshes, its file, and its expiry.

use super::secondary_addresses::SharedAddresses;
use super::secondary_crowd::CrowdLimits;
use super::secondary_moment::Moment;
use super::secondary_state::{SecondaryCounters, SecondaryState, count};
use super::secondary_work::ZoneWork;
use super::{LoadedZone, Update};
use crate::load::{self, unix_secs};
use crate::load_error::LoadError;
use crate::publish::PublisherHandle;
use arc_swap::ArcSwapOption;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use zonda_config::SecondaryKeys;
use zonda_secondary::zone_file::KeptTimers;
use zonda_secondary::{
    Budget, FileState, Limits, MemberTag, Primary, TimerBounds, Timers, ZoneFile, removed,
};
use zonda_wire::Name;
use zonda_zone::{ChangeError, Diff, Zone};

/// What becomes of the file of a zone that is a member no more, or not like this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFate {
    /// The file stays.
    Stays,
    /// The file is set aside, in case the zone is to be the same member again.
    SetAside(MemberTag),
    /// The file is removed.
    Removed,
}

/// A zone that is transferred from primaries.
pub struct SecondaryZone {
    /// The zone's apex, in lower case.
    pub apex: Name,
    /// The terms under which the zone is followed.
    pub terms: Arc<FollowTerms>,
    /// How the zone follows its primaries, for all that read.
    pub state: Arc<SecondaryState>,
    /// Whether the zone is not to be followed any more, or not like this.
    pub is_gone: AtomicBool,
    /// The sender of the reload that waits until the file of the zone was read; dropped then.
    load_waiter: ArcSwapOption<SyncSender<()>>,
}

/// The terms under which zones are followed, which most zones of a server have in common.
#[derive(Clone)]
pub struct FollowTerms {
    /// The number by which the publisher knows the feed.
    pub number: u64,
    /// How the zones are transferred.
    pub keys: Arc<SecondaryKeys>,
    /// Whether a catalog lists the zones, and the configuration does not name them.
    pub is_member: bool,
    /// The primaries with their keys, at least one.
    pub primaries: Arc<[Primary]>,
}

/// What is told that the transfer of a zone waits for memory from now on, or does so no more.
pub type WaitListener = Box<dyn Fn(&Name, bool) + Send + Sync>;

/// What the threads of all zones share.
pub struct Surroundings {
    /// The publisher of zones.
    pub publisher: PublisherHandle,
    /// The directory of the zones' files; none where it cannot be had.
    directory: Option<Arc<Path>>,
    /// Why there is no directory, if there is none.
    no_directory: Option<Box<str>>,
    /// What all zones have done so far.
    pub counters: Arc<SecondaryCounters>,
    /// The memory of all transfers together.
    pub budget: Arc<Budget>,
    /// What is told of waits for that in the middle of transfers.
    pub note_wait: WaitListener,
    /// The addresses of primaries that zones have in common.
    pub addresses: SharedAddresses,
    /// The primaries that did not answer the last time.
    pub silent: Mutex<HashMap<SocketAddr, SilentPrimary>>,
    /// Primaries that do not know how to send changes, until when they are not asked for them.
    pub without_changes: Mutex<HashMap<SocketAddr, Instant>>,
    /// The moment before which no zone expires, seconds since 1970.
    next_expiry: AtomicU64,
    /// Whether all threads are to end.
    is_stopped: AtomicBool,
    /// What a thread reads while it writes a file.
    writing: RwLock<()>,
}

/// A primary that did not answer the last time.
pub struct SilentPrimary {
    /// The moment until which only zones that it says have changed have it asked.
    pub until: Instant,
    /// What went wrong, in words.
    pub error: String,
}

/// A version to be kept on the disk.
pub struct KeptVersion<'v> {
    /// The version of the zone.
    pub zone: &'v Zone,
    /// The changes that lead to it from the version in force; none where it came as a whole.
    pub changes: Option<&'v [Diff]>,
    /// The moments at which it was in step with a primary, and expires.
    pub agreed: (Moment, Moment),
    /// The primary that it came from.
    pub source: Option<SocketAddr>,
}

impl Surroundings {
    /// What threads share that keep zones in a directory.
    pub fn new(
        publisher: PublisherHandle,
        directory: Result<PathBuf, String>,
        counters: Arc<SecondaryCounters>,
        (budget, note_wait): (Arc<Budget>, WaitListener),
    ) -> Self {
        Self {
            publisher,
            no_directory: directory.as_ref().err().map(|error| error.as_str().into()),
            directory: directory.ok().map(Into::into),
            counters,
            budget,
            note_wait,
            addresses: SharedAddresses::default(),
            silent: Mutex::default(),
            without_changes: Mutex::default(),
            next_expiry: AtomicU64::new(u64::MAX),
            is_stopped: AtomicBool::default(),
            writing: RwLock::default(),
        }
    }

    /// Removes the files of zones that are followed no more, or sets them aside; no thread writes
    /// them any more then. A file for which that fails is told in the log.
    pub fn forget(&self, zones: &[(Name, FileFate)]) {
        let Some(directory) = self.directory.as_ref().filter(|_| !zones.is_empty()) else { return };
        drop(self.writing.write().unwrap_or_else(PoisonError::into_inner));
        for (apex, fate) in zones {
            let is_aside = match fate {
                FileFate::Stays => continue,
                FileFate::Removed => false,
                FileFate::SetAside(tag) => removed::set_aside(directory, apex, *tag)
                    .inspect_err(|error| {
                        tracing::warn!(zone = %apex, %error, "the file of a zone is not set aside");
                    })
                    .is_ok(),
            };
            if is_aside {
                continue;
            }
            if let Err(error) = ZoneFile::new(Arc::clone(directory), apex).remove() {
                tracing::error!(zone = %apex, %error, "the file of a zone cannot be removed");
            }
        }
        // Where that fails, a crash may bring a file back, and the member with it as it was.
        let _ = std::fs::File::open(directory).and_then(|directory| directory.sync_all());
    }

    /// Takes back the files of members that were set aside; returns the zones that have one again.
    pub fn take_back(&self, zones: &[(Name, MemberTag)]) -> Vec<Name> {
        let Some(directory) = self.directory.as_ref() else { return Vec::new() };
        let has_file = |(apex, tag): &&(Name, MemberTag)| {
            let taken = removed::take_back(directory, apex, *tag).inspect_err(|error| {
                tracing::warn!(zone = %apex, %error, "the file of a zone is not taken back");
            });
            taken.unwrap_or(false)
        };
        zones.iter().filter(has_file).map(|(apex, _)| apex.clone()).collect()
    }

    /// Removes files that were set aside too long ago.
    pub fn sweep(&self) {
        let Some(directory) = self.directory.as_ref() else { return };
        match removed::sweep(directory) {
            Ok(0) => {}
            Ok(files) => tracing::info!(files, "files of zones that were members are removed"),
            Err(error) => {
                tracing::error!(%error, "files of zones that were members cannot be removed");
            }
        }
    }

    /// Notes when a zone expires; told once its status says so.
    pub fn note_expiry(&self, expires_at: u64) {
        self.next_expiry.fetch_min(expires_at, Relaxed);
    }

    /// Whether a zone may have expired; if so, each is to be looked at, and its expiry noted once
    /// more.
    pub fn may_have_expired(&self) -> bool {
        let is_due = self.next_expiry.load(Relaxed) <= now_secs();
        if is_due {
            self.next_expiry.store(u64::MAX, Relaxed);
        }
        is_due
    }

    /// Whether all threads are to end.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Relaxed)
    }

    /// Has all threads end; none writes a file any more when this returns.
    pub fn stop(&self) {
        self.is_stopped.store(true, Relaxed);
        drop(self.writing.write().unwrap_or_else(PoisonError::into_inner));
    }
}

impl SecondaryZone {
    /// Makes a zone whose file was not read yet; `load_waiter` is dropped when that is done.
    pub fn new(apex: &Name, terms: Arc<FollowTerms>, load_waiter: &Arc<SyncSender<()>>) -> Self {
        let (apex, state) = (apex.clone(), Arc::default());
        let load_waiter = ArcSwapOption::new(Some(Arc::clone(load_waiter)));
        Self { apex, terms, state, is_gone: AtomicBool::default(), load_waiter }
    }

    /// Makes the same zone as another configuration has it: with the version in force, and its
    /// file. A thread that is still busy with this one ends no wait of the reload that has made
    /// the other.
    pub fn replaced_by(&self, new: Self) -> Self {
        self.is_gone.store(true, Relaxed);
        self.state.lock().primaries = Box::default(); // some may have gone
        Self { state: Arc::clone(&self.state), ..new }
    }

    /// The bounds of a transfer.
    pub fn limits(&self) -> Limits {
        Limits {
            octets_max: self.terms.keys.size_max.0.into(),
            records_max: self.terms.keys.records_max.into(),
            time_max: self.terms.keys.time_max,
            idle_max: self.terms.keys.idle_timeout,
        }
    }

    /// The bounds of the sets and names of the zone.
    pub fn crowd_limits(&self) -> CrowdLimits {
        let max = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX);
        CrowdLimits {
            records_per_set: max(self.terms.keys.records_per_set_max),
            types_per_name: max(self.terms.keys.types_per_name_max),
        }
    }

    /// The timers of the version in force, or of the one that has expired.
    pub fn timers(&self, work: &ZoneWork) -> Option<Timers> {
        match &work.zone {
            Some(zone) => Some(self.timers_of(zone.soa().0.first())),
            None => work.rare()?.expired_soa.as_ref().map(|soa| self.timers_of(soa)),
        }
    }

    /// The timers of an SOA record with these data.
    pub fn timers_of(&self, soa: &[u8]) -> Timers {
        let keys = &self.terms.keys;
        let bounds = TimerBounds {
            refresh: (keys.refresh_min, keys.refresh_max),
            retry: (keys.retry_min, keys.retry_max),
        };
        Timers::of(soa, &bounds)
    }

    /// Reads the file of the zone, and has the server serve what it holds, unless that has expired.
    pub fn load(&self, work: &mut ZoneWork, around: &Surroundings) {
        work.is_loaded = true;
        if let Some(directory) = &around.directory {
            let mut file = ZoneFile::new(Arc::clone(directory), &self.apex);
            let kept = file.read();
            work.file = file.state();
            match kept {
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(zone = %self.apex, %error, "the file of a zone cannot be read");
                }
                Ok(Some(kept)) => {
                    let state = around.publisher.state();
                    let served = (&state.zone_set, state.seed);
                    let made = load::make(&self.apex, &kept.records, false, served)
                        .map_err(|error| error.to_string())
                        .and_then(|it| with_changes(it, &kept.changes).map_err(|it| it.to_string()))
                        .map(LoadedZone::packed);
                    drop(state);
                    match made {
                        Ok(loaded) => {
                            let kept = (kept.timers, kept.torn, kept.changes);
                            return self.take_kept(work, loaded, kept, around);
                        }
                        Err(error) => {
                            work.file = FileState::default();
                            tracing::error!(zone = %self.apex, error, "a kept zone is not sound");
                        }
                    }
                }
            }
        }
        self.take_former(around);
    }

    /// Serves what the file holds, behind which some octets were torn.
    fn take_kept(
        &self,
        work: &mut ZoneWork,
        loaded: LoadedZone,
        (timers, torn, changes): (KeptTimers, u64, Vec<Diff>),
        around: &Surroundings,
    ) {
        let serial = loaded.zone.serial();
        if torn > 0 || timers.serial != serial {
            // What follows was not written whole, and was not served either.
            let (torn, zone) = (Some(torn).filter(|torn| *torn > 0), &self.apex);
            tracing::warn!(%zone, serial, torn, "the end of a zone's file is torn: it is cut off");
        }
        work.set_version(&loaded);
        work.agreed = (timers.agreed_at.into(), timers.expires_at.into());
        work.source = timers.source.map(|source| around.addresses.shared(source));
        if timers.expires_at <= now_secs() {
            self.note_overdue(work, around);
            return self.take_expiry(work);
        }
        self.publish(work, Update::Kept(loaded, changes), around);
    }

    /// Has records that are served from elsewhere, as from the file that the zone had before a
    /// reload, expire as well, in as long as their SOA record says.
    fn take_former(&self, around: &Surroundings) {
        let state = around.publisher.state();
        let served = state.zone_set.zone(&self.apex).filter(|zone| zone.unit.is_of_feed());
        let Some(served) = served.and_then(|zone| zone.data()) else { return };
        let expires_at = secs_from_now(self.timers_of(served.soa().0.first()).expire);
        let serial = served.serial();
        drop(state);
        let _in_order = self.state.in_order();
        {
            let mut status = self.state.lock();
            (status.serial, status.expires_at) = (Some(serial), expires_at.into());
        }
        self.state.expiry.set(expires_at);
        around.note_expiry(expires_at);
        let update = Update::Expires(Arc::clone(&self.state.expiry));
        // Where the publisher fails, the server says so by itself.
        let _ = around.publisher.update(&self.apex, self.terms.number, update);
    }

    /// Has the server take an update, and tells the state to all that read.
    pub fn publish(&self, work: &mut ZoneWork, update: Update, around: &Surroundings) {
        let _in_order = self.state.in_order();
        {
            let mut status = self.state.lock();
            status.serial = work.zone.as_ref().map(|zone| zone.serial());
            (status.agreed_at, status.expires_at) = work.agreed;
            status.is_expired = false;
        }
        let expires_at = work.agreed.1.secs();
        self.state.expiry.set(expires_at);
        around.note_expiry(expires_at);
        work.published_by = self.terms.number;
        let update = update.with_expiry(&self.state.expiry);
        // Where the publisher fails, the server says so by itself.
        if let Ok(Err(error)) = around.publisher.update(&self.apex, self.terms.number, update) {
            tracing::error!(zone = %self.apex, %error, "a version of a zone is refused");
        }
    }

    /// Has the server serve the version in force once more: it was shown as failing, or published
    /// by a feed that the publisher may not have listened to any more.
    pub fn publish_again(&self, work: &mut ZoneWork, around: &Surroundings) {
        if let Some(loaded) = work.version() {
            self.publish(work, Update::Replace(loaded), around);
        }
    }

    /// Takes the zone out of service if it is overdue, whatever a thread does with it just now.
    pub fn expire_if_overdue(&self, around: &Surroundings) {
        let _in_order = self.state.in_order();
        {
            let mut status = self.state.lock();
            if !status.is_overdue() {
                return;
            }
            (status.is_expired, status.serial) = (true, None);
            status.expires_at = Moment::default();
        }
        count(&around.counters.expired, 1);
        tracing::error!(zone = %self.apex, "a zone has expired: it is SERVFAIL");
        let first =
            "the zone has expired: no primary was in step for as long as its SOA record says";
        let error = LoadError { first: first.to_owned(), count: 0 };
        // Where the publisher fails, the server says so by itself.
        let _ = around.publisher.update(&self.apex, self.terms.number, Update::Expired(error));
    }

    /// Takes a version out of service that was overdue before it was served.
    fn note_overdue(&self, work: &ZoneWork, around: &Surroundings) {
        {
            let mut status = self.state.lock();
            status.serial = work.zone.as_ref().map(|zone| zone.serial());
            (status.agreed_at, status.expires_at) = (work.agreed.0, work.agreed.1.max(1.into()));
        }
        self.expire_if_overdue(around);
    }

    /// Begins a refresh: forgets a version that has expired, so that any serial is taken, and has
    /// one served that the publisher may not have taken.
    pub fn begin_refresh(&self, work: &mut ZoneWork, around: &Surroundings) {
        self.expire_if_overdue(around);
        let is_expired = self.state.lock().is_expired;
        match work.zone.is_some() {
            true if is_expired => self.take_expiry(work),
            true if work.published_by != self.terms.number => self.publish_again(work, around),
            _ => {}
        }
    }

    /// Forgets the version in force, which has expired.
    fn take_expiry(&self, work: &mut ZoneWork) {
        let soa = work.zone.take().map(|zone| zone.soa().0.first().into());
        if soa.is_some() {
            work.rare_mut().expired_soa = soa;
        }
        work.failures = 0;
    }

    /// Keeps a version, or what is new of its timers. It must be on the disk before it is served,
    /// so that no serial goes back after a crash.
    ///
    /// # Errors
    /// When the disk holds another version, which a start would serve, and does not take this one;
    /// or when all is to end.
    pub fn keep(
        &self,
        work: &mut ZoneWork,
        kept: &KeptVersion<'_>,
        around: &Surroundings,
    ) -> Result<(), String> {
        let _writing = around.writing.read().unwrap_or_else(PoisonError::into_inner);
        if self.is_over(around) {
            return Err("the server is stopping, or the zone has other settings".to_owned());
        }
        let Some(directory) = &around.directory else {
            self.state.lock().rare_mut().disk_error.clone_from(&around.no_directory);
            return Ok(());
        };
        let mut file = ZoneFile::known(Arc::clone(directory), &self.apex, work.file);
        let (agreed_at, expires_at) = (kept.agreed.0.secs(), kept.agreed.1.secs());
        let (serial, source) = (kept.zone.serial(), kept.source);
        let timers = KeptTimers { serial, agreed_at, expires_at, source };
        let error = write(&mut file, kept, timers).err().map(|error| error.to_string());
        work.file = file.state();
        let is_new = {
            let mut status = self.state.lock();
            let is_new = error.is_some() && status.disk_error() != error.as_deref();
            if let Some(error) = &error {
                status.rare_mut().disk_error = Some(error.as_str().into());
            } else if let Some(rare) = status.rare_if_any() {
                rare.disk_error = None;
            }
            is_new
        };
        let Some(error) = error else { return Ok(()) };
        if is_new {
            let path = file.path().display().to_string();
            tracing::error!(zone = %self.apex, path, error, "a zone cannot be kept on the disk");
        }
        let is_served = work.zone.as_ref().is_some_and(|zone| zone.serial() == serial);
        match !is_served && work.zone.is_some() && work.file.holds_version() {
            true => Err(format!("its version {serial} cannot be kept on the disk: {error}")),
            false => Ok(()),
        }
    }

    /// Ends the wait of the reload that has made this zone, as the file was read.
    pub fn end_load_wait(&self) {
        self.load_waiter.store(None);
    }

    /// Whether the zone is not to be followed any more.
    pub fn is_over(&self, around: &Surroundings) -> bool {
        self.is_gone.load(Relaxed) || around.is_stopped()
    }
}

/// Writes a version into the file of its zone: what is new of it, or all where that cannot follow
/// what the file holds.
fn write(file: &mut ZoneFile, kept: &KeptVersion<'_>, timers: KeptTimers) -> io::Result<()> {
    if let Some(changes) = kept.changes
        && !file.is_to_be_written_anew()
    {
        let appended = file.append(changes, timers);
        if appended.is_ok() || !file.is_to_be_written_anew() {
            return appended;
        }
    }
    // Sorting the names would be two fifths of what a transfer costs.
    file.replace_by(kept.zone, timers)
}

/// The zone after changes that follow each other.
///
/// # Errors
/// When it lacks a record that one removes, or has one that one adds.
pub fn with_changes(loaded: LoadedZone, changes: &[Diff]) -> Result<LoadedZone, ChangeError> {
    let (mut zone, mut records) = (loaded.zone, loaded.records);
    for change in changes {
        let set = zone.changes_of(change)?;
        zone = Arc::new(zone.with(&set)?.0);
        records = (records + change.added.len()).saturating_sub(change.removed.len());
    }
    Ok(LoadedZone { zone, records, digest: None, expiry: None })
}

/// The seconds since 1970.
pub fn now_secs() -> u64 {
    unix_secs().into()
}

/// A moment that is so many seconds from now, since 1970.
pub fn secs_from_now(time: Duration) -> u64 {
    now_secs() + time.as_secs()
}
