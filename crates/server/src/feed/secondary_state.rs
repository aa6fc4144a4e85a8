//! How zones follow their primaries, for all that read.

use super::secondary_moment::Moment;
use super::secondary_work::ZoneWork;
use crate::load::unix_secs;
#[cfg(feature = "whole")]
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zonda_engine::zones::ZoneExpiry;
use zonda_secondary::{Counts, Primary};
use zonda_wire::Name;

/// What all zones of primaries have done so far.
#[derive(Debug, Default)]
pub struct SecondaryCounters {
    /// Checks of a serial that a primary answered.
    pub checks: AtomicU64,
    /// Transfers of whole zones.
    pub whole: AtomicU64,
    /// Transfers of changes.
    pub changes: AtomicU64,
    /// Transfers that failed, from one primary each.
    pub failed_transfers: AtomicU64,
    /// Refreshes after which the zone was not known to be in step with any primary.
    pub failed_refreshes: AtomicU64,
    /// Octets of messages of transfers that were whole.
    pub octets: AtomicU64,
    /// Records in these messages.
    pub records: AtomicU64,
    /// NOTIFY messages that were taken, several for one zone before it is looked after as one.
    pub notices: AtomicU64,
    /// Zones that have expired.
    pub expired: AtomicU64,
    /// Zones now whose files are to be read.
    pub unread: AtomicU64,
    /// Zones now that primaries say have changed, and that wait for a thread.
    pub notified: AtomicU64,
    /// Zones now whose time has come, and that wait for a thread.
    pub waiting: AtomicU64,
    /// Zones now that threads look after.
    pub running: AtomicU64,
    /// Replies whose signature was wrong, or missing.
    pub signature_faults: AtomicU64,
    /// Whole zones that were asked for, as changes could not be taken.
    pub fallbacks: AtomicU64,
    /// Records that were left out, as they lie outside their zone.
    pub outside: AtomicU64,
}

/// What a primary has answered to the question for its serial, in the 24 octets that an allocation
/// has at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrimaryStatus {
    /// The address and port of the primary.
    pub address: Arc<SocketAddr>,
    /// The serial that the primary had when it was last known; 0 where it was never known.
    serial: u32,
    /// The moment at which the primary has answered with a serial last, if it has.
    answered_at: Moment,
    /// Why nothing that it has can be taken, in words: it has not answered with a serial, is
    /// outdated, or its version could not be transferred.
    error: Option<Box<Box<str>>>,
}

/// A transfer from a primary that runs.
#[derive(Debug)]
pub struct RunningIntake {
    /// The address and port of the primary.
    pub primary: SocketAddr,
    /// The name of the key that messages are signed with, if they are.
    pub key: Option<Name>,
    /// Whether changes were asked for, and not the whole zone.
    pub is_of_changes: bool,
    /// The serial of the version here, if there is one.
    pub from: Option<u32>,
    /// The moment at which the transfer began, seconds since 1970.
    pub began_at: u64,
    /// The serial of the version that the primary sends; more than `u32::MAX` before its SOA
    /// record has come.
    serial: AtomicU64,
    /// Messages so far.
    messages: AtomicU64,
    /// Records so far.
    records: AtomicU64,
    /// Octets of messages so far.
    octets: AtomicU64,
}

/// A transfer that waits for memory that other transfers have.
#[derive(Clone, Copy, Debug)]
pub struct MemoryWaitStatus {
    /// The address and port of the primary.
    pub primary: SocketAddr,
    /// The moment at which the wait began, seconds since 1970.
    pub since: u64,
    /// The octets of memory that the transfer is to have before it begins.
    pub octets: u64,
}

/// How a zone follows its primaries.
#[derive(Clone, Debug, Default)]
pub struct SecondaryStatus {
    /// The serial of the version here; none before the first transfer, and after expiry.
    pub serial: Option<u32>,
    /// The serial of the best primary that answered last.
    pub primary_serial: Option<u32>,
    /// What each primary has answered last, of those that were asked.
    pub primaries: Box<[PrimaryStatus]>,
    /// Number of versions that were transferred since the start.
    pub versions_taken: u32,
    /// The primary that the version came from, or that it was in step with, last.
    pub primary: Option<Arc<SocketAddr>>,
    /// The last moment at which the zone was in step with a primary, if it ever was.
    pub agreed_at: Moment,
    /// The moment at which the zone is refreshed next.
    pub next_refresh: Moment,
    /// The moment at which the zone expires; none where there is no zone.
    pub expires_at: Moment,
    /// Whether the zone has expired.
    pub is_expired: bool,
    /// What most zones do not have; none where there is nothing of it.
    rare: Option<Box<RareStatus>>,
}

/// What a zone has while it is transferred, waits, or fails.
#[derive(Clone, Debug, Default)]
pub struct RareStatus {
    /// The transfer that runs, if any does.
    pub intake: Option<Arc<RunningIntake>>,
    /// The wait for memory of a transfer that has not begun, if one waits.
    pub memory_wait: Option<Box<MemoryWaitStatus>>,
    /// Why the file of the zone could not be written the last time, in words.
    pub disk_error: Option<Box<str>>,
    /// Why the last refresh failed, in words.
    pub error: Option<Box<str>>,
}

/// How a zone follows its primaries, shared by the threads that refresh it and all that read, also
/// while other settings of the zone come into force. There may be a hundred thousand of these.
#[derive(Default)]
pub struct SecondaryState {
    status: Mutex<SecondaryStatus>,
    /// What one refresh leaves to the next; one thread at a time looks after the zone.
    work: Mutex<ZoneWork>,
    /// When the zone expires, for those that answer queries.
    pub expiry: Arc<ZoneExpiry>,
    /// What is held from a change of the status until the publisher has what follows from it, so
    /// that updates of the zone arrive in the order of their changes.
    order: Mutex<()>,
}

impl RunningIntake {
    /// A transfer from a primary that begins now, of which nothing has come.
    pub fn new(primary: &Primary, is_of_changes: bool, from: Option<u32>) -> Self {
        let [messages, records, octets] = [(); 3].map(|()| AtomicU64::default());
        Self {
            primary: primary.address,
            key: primary.key.as_ref().map(|key| key.name().clone()),
            is_of_changes,
            from,
            began_at: unix_secs().into(),
            serial: AtomicU64::new(u64::MAX),
            messages,
            records,
            octets,
        }
    }

    /// Notes how much has come so far, and of the version with which serial.
    pub fn note(&self, counts: Counts, serial: Option<u32>) {
        if let Some(serial) = serial {
            self.serial.store(serial.into(), Relaxed);
        }
        self.messages.store(counts.messages, Relaxed);
        self.records.store(counts.records, Relaxed);
        self.octets.store(counts.octets, Relaxed);
    }

    /// The serial of the version that the primary sends, once its SOA record has come.
    pub fn serial(&self) -> Option<u32> {
        u32::try_from(self.serial.load(Relaxed)).ok()
    }

    /// The messages, records and octets that have come so far.
    pub fn received(&self) -> [u64; 3] {
        [&self.messages, &self.records, &self.octets].map(|count| count.load(Relaxed))
    }
}

impl PrimaryStatus {
    /// Makes the status of a primary that was never asked.
    fn new(address: Arc<SocketAddr>) -> Self {
        Self { address, serial: 0, answered_at: Moment::default(), error: None }
    }

    /// The serial that the primary had when it was last known.
    fn serial(&self) -> Option<u32> {
        (self.answered_at != Moment::default()).then_some(self.serial)
    }
}

impl SecondaryStatus {
    /// Whether the zone is served though it has not been in step with a primary for too long.
    pub fn is_overdue(&self) -> bool {
        self.serial.is_some() && !self.is_expired && self.expires_at.secs() <= unix_secs().into()
    }

    /// Whether the zone is served, was in step with a primary at the last refresh, and has this
    /// serial.
    pub fn is_in_step_at(&self, serial: u32) -> bool {
        self.serial == Some(serial) && !self.is_expired && self.error().is_none()
    }

    /// The moment at which the zone expires, seconds since 1970, if it is served.
    pub fn expiry(&self) -> Option<u64> {
        self.serial.and(Some(self.expires_at.secs()))
    }

    /// The transfer that runs, if any does.
    pub fn intake(&self) -> Option<Arc<RunningIntake>> {
        self.rare.as_ref()?.intake.clone()
    }

    /// The wait for memory of a transfer that has not begun, if one waits.
    pub fn memory_wait(&self) -> Option<MemoryWaitStatus> {
        self.rare.as_ref()?.memory_wait.as_deref().copied()
    }

    /// Why the file of the zone could not be written the last time, in words.
    pub fn disk_error(&self) -> Option<&str> {
        self.rare.as_ref()?.disk_error.as_deref()
    }

    /// Why the last refresh failed, in words.
    pub fn error(&self) -> Option<&str> {
        self.rare.as_ref()?.error.as_deref()
    }

    /// Returns what most zones do not have, if there is anything of it, to take something away.
    pub fn rare_if_any(&mut self) -> Option<&mut RareStatus> {
        self.rare.as_deref_mut()
    }

    /// Returns what most zones do not have, to add something; takes memory until [`Self::settle`].
    pub fn rare_mut(&mut self) -> &mut RareStatus {
        self.rare.get_or_insert_default()
    }

    /// Gives memory back that is not needed any more.
    pub fn settle(&mut self) {
        self.rare = self.rare.take().filter(|rare| !rare.is_empty());
    }

    /// Notes the serial that a primary has answered with, or why it has not.
    pub fn note_primary(&mut self, address: Arc<SocketAddr>, answer: Result<u32, &str>) {
        let place = self.primaries.iter().position(|it| it.address == address);
        let place = place.unwrap_or_else(|| {
            let known = std::mem::take(&mut self.primaries).into_iter();
            self.primaries = known.chain([PrimaryStatus::new(address)]).collect();
            self.primaries.len() - 1
        });
        let primary = &mut self.primaries[place];
        match answer {
            Ok(serial) => {
                let now = u64::from(unix_secs()).max(1);
                (primary.serial, primary.answered_at) = (serial, now.into());
                primary.error = None;
            }
            Err(error) => primary.error = Some(Box::new(error.into())),
        }
    }
}

impl RareStatus {
    /// Whether there is nothing of it.
    fn is_empty(&self) -> bool {
        let Self { intake, memory_wait, disk_error, error } = self;
        intake.is_none() && memory_wait.is_none() && disk_error.is_none() && error.is_none()
    }
}

impl SecondaryState {
    /// The status under its lock, which is held for no longer than to read or write it.
    pub fn lock(&self) -> MutexGuard<'_, SecondaryStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What one refresh leaves to the next, for the one thread that looks after the zone.
    pub fn work(&self) -> MutexGuard<'_, ZoneWork> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the publisher has the former update of the zone; held until it has the next.
    pub fn in_order(&self) -> MutexGuard<'_, ()> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The status as JSON; `time` writes moments.
    #[cfg(feature = "whole")]
    pub(crate) fn to_json(&self, time: impl Fn(u64) -> String) -> Value {
        let status = self.lock().clone();
        let moment = |secs: u64| (secs > 0).then(|| time(secs));
        let primary = |primary: &PrimaryStatus| {
            json!({
                "address": primary.address.to_string(),
                "serial": primary.serial(),
                "answered": moment(primary.answered_at.secs()),
                "error": primary.error,
            })
        };
        json!({
            "primary": status.primary.as_ref().map(|primary| primary.to_string()),
            "primary_serial": status.primary_serial,
            "primaries": status.primaries.iter().map(primary).collect::<Vec<_>>(),
            "in_step": moment(status.agreed_at.secs()),
            "next_refresh": moment(status.next_refresh.secs()),
            "expires": moment(status.expires_at.secs()),
            "expired": status.is_expired,
            "error": status.error(),
            "disk_error": status.disk_error(),
            "memory_wait": status.memory_wait().map(|wait| {
                json!({
                    "primary": wait.primary.to_string(),
                    "since": time(wait.since),
                    "bytes": wait.octets,
                })
            }),
        })
    }
}

/// How many zones are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecondaryCounts {
    /// Zones whose last refresh succeeded.
    pub current: u64,
    /// Zones that are served, and whose last refresh failed.
    pub failing: u64,
    /// Zones that were not transferred yet.
    pub awaited: u64,
    /// Zones that have expired.
    pub expired: u64,
    /// Zones of any state whose file could not be written the last time.
    pub unkept: u64,
    /// Zones of any state whose transfer waits for memory.
    pub waiting: u64,
}

impl SecondaryCounts {
    /// Counts zones by their states.
    pub fn of<'s>(states: impl Iterator<Item = &'s Arc<SecondaryState>>) -> Self {
        let mut counts = Self::default();
        for state in states {
            let status = state.lock();
            counts.unkept += u64::from(status.disk_error().is_some());
            counts.waiting += u64::from(status.memory_wait().is_some());
            match (status.is_expired, status.serial, status.error()) {
                (true, ..) => counts.expired += 1,
                (false, None, _) => counts.awaited += 1,
                (false, Some(_), Some(_)) => counts.failing += 1,
                (false, Some(_), None) => counts.current += 1,
            }
        }
        counts
    }
}

/// Adds to a counter.
pub fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Relaxed);
}
