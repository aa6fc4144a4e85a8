//! What one refresh of a zone of primaries leaves to the next.

use super::LoadedZone;
use super::secondary_announced::AnnouncedVersion;
use super::secondary_moment::Moment;
use super::secondary_refused::RefusedVersions;
use crate::load::unix_secs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zonda_secondary::{ChangesLack, FileState, KeptPlace};
use zonda_zone::Zone;

/// The least time from one check of a zone that expires soon to the next.
const BEFORE_EXPIRY_MIN: Duration = Duration::from_secs(1);
/// How long a primary that sends no changes of a zone is not asked for them.
pub const WITHOUT_CHANGES: Duration = Duration::from_secs(3600);
/// How long it is not asked for them the first time that it may have been busy.
const WITHOUT_CHANGES_MIN: Duration = Duration::from_secs(60);
/// How many times as long it is not asked for them each further time.
const WITHOUT_CHANGES_FACTOR: u32 = 8;

/// What one refresh of a zone leaves to the next.
#[derive(Default)]
pub struct ZoneWork {
    /// What is known of the file of the zone.
    pub file: FileState,
    /// Whether the file was read, or found missing.
    pub is_loaded: bool,
    /// The version in force; none before the first transfer, and after expiry.
    pub zone: Option<Arc<Zone>>,
    /// The number of its records.
    records: u32,
    /// The primary that it came from; none where that is not known.
    pub source: Option<Arc<SocketAddr>>,
    /// The feed by which it was published.
    pub published_by: u64,
    /// Number of refreshes that failed since the last one that did not, or since expiry.
    pub failures: u16,
    /// The moments at which the zone was last in step with a primary, and expires.
    pub agreed: (Moment, Moment),
    /// Whether the whole zone is transferred, whatever its serial, as an operator has asked for it.
    pub takes_any_serial: bool,
    /// What most zones do not have; none where there is nothing of it.
    rare: Option<Box<RareWork>>,
}

/// What a zone has that has expired, whose versions were refused or are announced, or whose
/// transfer waits.
#[derive(Default)]
pub struct RareWork {
    /// The data of the SOA record of the version that has expired.
    pub expired_soa: Option<Box<[u8]>>,
    /// Versions of primaries that were refused.
    pub refused: RefusedVersions,
    /// The primary that is asked for the whole zone, as it did not send changes of it.
    pub without_changes: Option<Box<WithoutChanges>>,
    /// The primaries that nothing was taken from at the last refresh, and why, in words; of those
    /// that are outdated, the same words whatever their serials.
    pub passed_over: Box<[(SocketAddr, Box<str>)]>,
    /// The version that a primary has told of before it answers with it.
    pub announced: AnnouncedVersion,
    /// The transfer that waits for memory, if one does.
    pub wait: Option<Box<MemoryWait>>,
}

/// A primary that did not send changes of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithoutChanges {
    /// The address and port of the primary.
    pub primary: SocketAddr,
    /// The moment until which the primary is asked for the whole zone.
    pub until: Instant,
    /// How long it is asked for that; the next time that it may have been busy, for longer.
    pub pause: Duration,
}

/// What a transfer that waits to begin leaves to the next refresh, and one that has failed to that
/// from the next primary.
pub struct MemoryWait {
    /// The place of the transfer among all.
    pub kept: KeptPlace,
    /// The octets of memory that it is to have before it begins.
    pub octets: u64,
    /// The octets that changes are to have before they are asked for; 0 unless they have needed
    /// more than there were.
    pub of_changes: u64,
    /// The moment at which the primaries are asked though there is no room: the version in force
    /// may be theirs, or changes of it may need no room. None where there is no such version, or
    /// the transfer has not waited yet.
    pub check_at: Option<Instant>,
    /// The seconds since 1970 at which it began to wait; none where it has not.
    pub since: Option<u64>,
    /// The primary that it is to come from.
    pub primary: SocketAddr,
    /// Why the whole zone is to be asked for, if changes were and could not be taken.
    pub fallback: Option<Fallback>,
}

/// Why changes that were asked for were not taken, so that the whole zone is asked for.
pub struct Fallback {
    /// What is wrong with the changes, in words.
    pub error: String,
    /// What is known of why the primary has sent no changes at all; none where it has.
    pub without_changes: Option<ChangesLack>,
    /// How long that has taken, which is part of the time that one transfer may take.
    pub spent: Duration,
}

impl ZoneWork {
    /// Returns the version in force with the number of its records.
    pub fn version(&self) -> Option<LoadedZone> {
        let (zone, records) = (self.zone.clone()?, self.records as usize);
        Some(LoadedZone { zone, records, digest: None, expiry: None })
    }

    /// Notes a version as the one in force.
    pub fn set_version(&mut self, loaded: &LoadedZone) {
        self.zone = Some(Arc::clone(&loaded.zone));
        self.records = u32::try_from(loaded.records).unwrap_or(u32::MAX);
    }

    /// Returns the primary that the version came from; none where that is not known.
    pub fn source(&self) -> Option<SocketAddr> {
        self.source.as_deref().copied()
    }

    /// Returns what most zones do not have, if there is anything of it.
    pub fn rare(&self) -> Option<&RareWork> {
        self.rare.as_deref()
    }

    /// Returns what most zones do not have, if there is anything of it, to take something away.
    pub fn rare_if_any(&mut self) -> Option<&mut RareWork> {
        self.rare.as_deref_mut()
    }

    /// Returns what most zones do not have, to add something; takes memory until [`Self::settle`].
    pub fn rare_mut(&mut self) -> &mut RareWork {
        self.rare.get_or_insert_default()
    }

    /// Gives memory back that is not needed any more after a refresh at a moment.
    pub fn settle(&mut self, now: Instant) {
        let Some(rare) = &mut self.rare else { return };
        if self.zone.is_some() {
            rare.expired_soa = None;
        }
        // It is known for a while longer how long the pause was.
        rare.without_changes.take_if(|it| it.until + WITHOUT_CHANGES <= now);
        if rare.is_empty() {
            self.rare = None;
        }
    }

    /// Whether a primary is not to be asked for changes of the zone at a moment.
    pub fn is_without_changes(&self, primary: SocketAddr, now: Instant) -> bool {
        let without = self.rare().and_then(|rare| rare.without_changes.as_deref());
        without.is_some_and(|it| it.primary == primary && it.until > now)
    }

    /// Notes that a primary has sent no changes of the zone, so that it is not asked for them for a
    /// while: a short one where it may have been busy, and a longer one each time that it still
    /// sends none.
    pub fn note_without_changes(&mut self, primary: SocketAddr, lack: ChangesLack, now: Instant) {
        let known = self.rare_mut().without_changes.take().filter(|it| it.primary == primary);
        let again = known.map(|it| it.pause.saturating_mul(WITHOUT_CHANGES_FACTOR));
        let pause = match lack {
            ChangesLack::Possible => again.unwrap_or(WITHOUT_CHANGES_MIN).min(WITHOUT_CHANGES),
            ChangesLack::Certain => WITHOUT_CHANGES,
        };
        self.pause_changes(primary, pause, now);
    }

    /// Has a primary not asked for changes of the zone for a time.
    pub fn pause_changes(&mut self, primary: SocketAddr, pause: Duration, now: Instant) {
        let without = WithoutChanges { primary, until: now + pause, pause };
        self.rare_mut().without_changes = Some(without.into());
    }

    /// Notes that a primary has sent changes of the zone.
    pub fn note_changes(&mut self) {
        if let Some(rare) = self.rare_if_any() {
            rare.without_changes = None;
        }
    }

    /// A time from one check of the zone to the next, shortened so that the zone is checked several
    /// times before it expires.
    pub fn before_expiry(&self, time: Duration) -> Duration {
        if self.zone.is_none() {
            return time;
        }
        let left = Duration::from_secs(self.agreed.1.secs().saturating_sub(unix_secs().into()));
        time.min((left / 2).max(BEFORE_EXPIRY_MIN))
    }
}

impl RareWork {
    /// Whether there is nothing of it.
    fn is_empty(&self) -> bool {
        let Self { expired_soa, refused, without_changes, passed_over, announced, wait } = self;
        let has_version = expired_soa.is_some() || !refused.is_empty() || !announced.is_none();
        let has_primary = without_changes.is_some() || !passed_over.is_empty();
        !has_version && !has_primary && wait.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_primary_that_may_have_been_busy_is_asked_for_changes_again_soon_and_later_each_time() {
        let primary = SocketAddr::from(([192, 0, 2, 1], 53));
        let other = SocketAddr::from(([192, 0, 2, 2], 53));
        let (mut work, mut now) = (ZoneWork::default(), Instant::now());
        for pause in [60, 480, 3600, 3600].map(Duration::from_secs) {
            work.note_without_changes(primary, ChangesLack::Possible, now);
            let last = now + pause - Duration::from_millis(1);
            assert!(work.is_without_changes(primary, last), "{pause:?}");
            assert!(!work.is_without_changes(other, now));
            now += pause;
            assert!(!work.is_without_changes(primary, now), "{pause:?}");
            work.settle(now);
        }
        work.note_changes();
        work.note_without_changes(primary, ChangesLack::Possible, now);
        assert!(!work.is_without_changes(primary, now + WITHOUT_CHANGES_MIN), "it counts anew");
        work.settle(now + WITHOUT_CHANGES_MIN + WITHOUT_CHANGES);
        assert!(work.rare().is_none(), "nothing is kept for ever");
        work.note_without_changes(primary, ChangesLack::Certain, now);
        assert!(work.is_without_changes(primary, now + WITHOUT_CHANGES_MIN));
    }
}
