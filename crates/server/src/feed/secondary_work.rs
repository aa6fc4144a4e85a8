//! What one refresh of a zone of primaries leaves to the next.

use super::secondary_refused::RefusedVersions;
use super::secondary_zone::now_secs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zonda_secondary::{FileState, KeptPlace};
use zonda_zone::Zone;

/// The least time from one check of a zone that expires soon to the next.
const BEFORE_EXPIRY_MIN: Duration = Duration::from_secs(1);

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
    pub records: usize,
    /// The primary that it came from; none where that is not known.
    pub source: Option<Arc<SocketAddr>>,
    /// The feed by which it was published.
    pub published_by: u64,
    /// Number of refreshes that failed since the last one that did not, or since expiry.
    pub failures: u32,
    /// The seconds since 1970 at which the zone was last in step with a primary, and expires.
    pub agreed: (u64, u64),
    /// Whether the whole zone is transferred, whatever its serial, as an operator has asked for it.
    pub takes_any_serial: bool,
    /// What most zones do not have; none where there is nothing of it.
    rare: Option<Box<RareWork>>,
}

/// What a zone has that has expired, whose versions were refused, or whose transfer waits.
#[derive(Default)]
pub struct RareWork {
    /// The data of the SOA record of the version that has expired.
    pub expired_soa: Option<Box<[u8]>>,
    /// Versions of primaries that were refused.
    pub refused: RefusedVersions,
    /// The primary that is asked for the whole zone, as it did not send changes of it, and until
    /// when.
    pub without_changes: Option<Box<(SocketAddr, Instant)>>,
    /// The transfer that waits for memory, if one does.
    pub wait: Option<Box<MemoryWait>>,
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
    /// Whether the primary has sent no changes at all.
    pub is_without_changes: bool,
    /// How long that has taken, which is part of the time that one transfer may take.
    pub spent: Duration,
}

impl ZoneWork {
    /// The primary that the version came from; none where that is not known.
    pub fn source(&self) -> Option<SocketAddr> {
        self.source.as_deref().copied()
    }

    /// What most zones do not have, if there is anything of it.
    pub fn rare(&self) -> Option<&RareWork> {
        self.rare.as_deref()
    }

    /// What most zones do not have, for a change; takes memory until [`Self::settle`].
    pub fn rare_mut(&mut self) -> &mut RareWork {
        self.rare.get_or_insert_default()
    }

    /// Gives memory back that is not needed any more.
    pub fn settle(&mut self) {
        self.rare = self.rare.take().filter(|rare| !rare.is_empty());
    }

    /// A time from one check of the zone to the next, shortened so that the zone is checked several
    /// times before it expires.
    pub fn before_expiry(&self, time: Duration) -> Duration {
        if self.zone.is_none() {
            return time;
        }
        let left = Duration::from_secs(self.agreed.1.saturating_sub(now_secs()));
        time.min((left / 2).max(BEFORE_EXPIRY_MIN))
    }
}

impl RareWork {
    /// Whether there is nothing of it.
    fn is_empty(&self) -> bool {
        let Self { expired_soa, refused, without_changes, wait } = self;
        let has_version = expired_soa.is_some() || !refused.is_empty();
        !has_version && without_changes.is_none() && wait.is_none()
    }
}
