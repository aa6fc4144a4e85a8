//! A zone of primaries: what is known of it between two refreshes, its file, and its expiry.

use super::secondary_state::{SecondaryCounters, SecondaryState, count};
use super::store_feed::lock;
use super::{LoadedZone, Update};
use crate::load::{self, unix_secs};
use crate::load_error::LoadError;
use crate::publish::PublisherHandle;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use zonda_config::SecondaryKeys;
use zonda_secondary::zone_file::KeptTimers;
use zonda_secondary::{Limits, Primary, TimerBounds, Timers, ZoneFile};
use zonda_wire::Name;
use zonda_zone::{ChangeError, Diff, Zone};

/// A zone that is transferred from primaries.
pub struct SecondaryZone {
    /// The zone's apex, in lower case.
    pub apex: Name,
    /// The number by which the publisher knows the feed.
    pub number: u64,
    /// How the zone is transferred.
    pub keys: Arc<SecondaryKeys>,
    /// The primaries with their keys, at least one.
    pub primaries: Vec<Primary>,
    /// How the zone follows its primaries, for all that read.
    pub state: Arc<SecondaryState>,
    /// Whether the zone is not to be followed any more.
    pub is_gone: AtomicBool,
    /// What one refresh leaves to the next; one thread at a time refreshes the zone.
    pub work: Mutex<ZoneWork>,
    /// Is dropped when the file was read.
    pub first: Mutex<Option<SyncSender<()>>>,
}

/// What one refresh of a zone leaves to the next.
#[derive(Default)]
pub struct ZoneWork {
    /// The file of the zone; none before it was read, or where there is no place for it.
    pub file: Option<ZoneFile>,
    /// Whether the file was read, or found missing.
    pub is_loaded: bool,
    /// The version in force.
    pub zone: Option<Arc<Zone>>,
    /// The number of its records.
    pub records: usize,
    /// Number of refreshes that failed since the last one that did not.
    pub failures: u32,
    /// The seconds since 1970 at which the zone was last in step with a primary, and expires.
    pub agreed: (u64, u64),
}

/// What the threads of all zones share.
pub struct Surroundings {
    /// The publisher of zones.
    pub publisher: PublisherHandle,
    /// The directory of the zones' files; none where it cannot be had.
    pub directory: Option<std::path::PathBuf>,
    /// What all zones have done so far.
    pub counters: Arc<SecondaryCounters>,
    /// Primaries that did not answer, until when they are asked last.
    pub silent: Mutex<std::collections::HashMap<SocketAddr, std::time::Instant>>,
    /// Primaries that do not know how to send changes, until when they are not asked for them.
    pub without_changes: Mutex<std::collections::HashMap<SocketAddr, std::time::Instant>>,
    /// Whether all threads are to end.
    pub is_stopped: AtomicBool,
}

impl SecondaryZone {
    /// The bounds of a transfer.
    pub fn limits(&self) -> Limits {
        Limits {
            octets_max: self.keys.size_max.0.into(),
            records_max: self.keys.records_max.into(),
            time_max: self.keys.time_max,
            idle_max: self.keys.idle_timeout,
        }
    }

    /// The timers of the version in force.
    pub fn timers(&self, work: &ZoneWork) -> Option<Timers> {
        let keys = &self.keys;
        let bounds = TimerBounds {
            refresh: (keys.refresh_min, keys.refresh_max),
            retry: (keys.retry_min, keys.retry_max),
        };
        work.zone.as_ref().map(|zone| Timers::of(zone.soa().0.first(), &bounds))
    }

    /// Reads the file of the zone, and has the server serve what it holds, unless that has expired.
    pub fn load(&self, work: &mut ZoneWork, around: &Surroundings) {
        work.is_loaded = true;
        let Some(directory) = &around.directory else { return };
        let mut file = ZoneFile::new(directory, &self.apex);
        let kept = file.read();
        work.file = Some(file);
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
                    .and_then(|it| with_changes(it, &kept.changes).map_err(|it| it.to_string()));
                drop(state);
                match made {
                    Ok(loaded) => self.take_kept(work, loaded, kept.timers, around),
                    Err(error) => {
                        work.file = Some(ZoneFile::new(directory, &self.apex));
                        tracing::error!(zone = %self.apex, error, "a kept zone is not sound");
                    }
                }
            }
        }
    }

    /// Serves what the file holds.
    fn take_kept(
        &self,
        work: &mut ZoneWork,
        loaded: LoadedZone,
        timers: KeptTimers,
        around: &Surroundings,
    ) {
        (work.records, work.zone) = (loaded.records, Some(Arc::clone(&loaded.zone)));
        // Timers of another version: the last refresh was not written whole.
        work.agreed = (timers.agreed_at, timers.expires_at);
        if timers.expires_at <= now_secs() {
            return self.expire(work, around);
        }
        self.publish(work, Update::Replace(loaded), around);
    }

    /// Has the server take an update, and tells the state to all that read.
    pub fn publish(&self, work: &ZoneWork, update: Update, around: &Surroundings) {
        {
            let mut status = self.state.lock();
            status.serial = work.zone.as_ref().map(|zone| zone.serial());
            (status.agreed_at, status.expires_at) = work.agreed;
            if matches!(update, Update::Replace(_)) {
                status.is_expired = false;
            }
        }
        // Where the publisher fails, the server says so by itself.
        if let Ok(Err(error)) = around.publisher.update(&self.apex, self.number, update) {
            tracing::error!(zone = %self.apex, %error, "a version of a zone is refused");
        }
    }

    /// Takes the zone out of service if it is overdue; whether it was, and is now.
    pub fn expire_if_due(&self, work: &mut ZoneWork, around: &Surroundings) {
        if work.zone.is_some() && work.agreed.1 <= now_secs() {
            self.expire(work, around);
        }
    }

    /// Takes the zone out of service; any serial is taken from now on.
    fn expire(&self, work: &mut ZoneWork, around: &Surroundings) {
        work.zone = None;
        let first =
            "the zone has expired: no primary was in step for as long as its SOA record says";
        let error = LoadError { first: first.to_owned(), count: 0 };
        tracing::error!(zone = %self.apex, "a zone has expired: it is SERVFAIL");
        count(&around.counters.expired, 1);
        {
            let mut status = self.state.lock();
            (status.is_expired, status.expires_at) = (true, work.agreed.1);
        }
        self.publish(work, Update::Expired(error), around);
        self.state.lock().expires_at = 0;
    }

    /// Keeps a version: all of it, or the changes that lead to it.
    pub fn keep(&self, work: &mut ZoneWork, changes: &[Diff]) {
        let (Some(file), Some(zone)) = (&mut work.file, &work.zone) else { return };
        let (agreed_at, expires_at) = work.agreed;
        let timers = KeptTimers { serial: zone.serial(), agreed_at, expires_at };
        let is_whole = file.is_to_be_written_anew();
        let written = match is_whole {
            false => file.append(changes, timers),
            true => match zone.to_records() {
                Ok(records) => file.replace(&records, timers),
                Err(_) => Err(io::Error::other("the zone has over 4 GiB")),
            },
        };
        if let Err(error) = written {
            let path = file.path().display().to_string();
            // What it holds is not the version before the next changes any more.
            if let Some(directory) = file.path().parent() {
                *file = ZoneFile::new(directory, &self.apex);
            }
            tracing::error!(zone = %self.apex, path, %error, "a zone cannot be kept on the disk");
        }
    }

    /// Makes the whole zone be written at the next [`keep`](Self::keep).
    pub fn forget_file(&self, work: &mut ZoneWork) {
        if let Some(file) = &mut work.file
            && let Some(directory) = file.path().parent()
        {
            *file = ZoneFile::new(directory, &self.apex);
        }
    }

    /// Tells that the file was read.
    pub fn end_first(&self) {
        drop(lock(&self.first).take());
    }

    /// Whether the zone is not to be followed any more.
    pub fn is_over(&self, around: &Surroundings) -> bool {
        self.is_gone.load(Relaxed) || around.is_stopped.load(Relaxed)
    }
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
    Ok(LoadedZone { zone, records, digest: None })
}

/// The seconds since 1970.
pub fn now_secs() -> u64 {
    unix_secs().into()
}

/// A moment that is so many seconds from now, since 1970.
pub fn secs_from_now(time: Duration) -> u64 {
    now_secs() + time.as_secs()
}
