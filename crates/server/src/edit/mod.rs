//! Changes of zones while they are served: which are asked for, and why one is refused.

pub mod counters;
pub mod entry;
pub mod flush;
pub mod frozen;
pub mod journal;
pub mod versions;
pub mod zone_digest;
pub mod zones;

use std::fmt;
use zonda_engine::VersionOrigin;
use zonda_wire::Name;
use zonda_zone::{ChangeError, SetChange};

/// A change of a zone that a client, a store or a program asks for. It takes effect whole or not at
/// all.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The zone's name.
    pub zone: Name,
    /// The sets that change, in this order.
    pub sets: Vec<SetChange>,
    /// The serial that the zone must have before the change.
    pub if_serial: Option<u32>,
    /// The [life](crate::zone_set_view::KnownZone::life) in which the zone must be.
    pub if_life: Option<u32>,
    /// Whether the difference is only found, and nothing changed.
    pub is_dry_run: bool,
    /// What asks for the change.
    pub origin: VersionOrigin,
}

/// Why an edit was not carried out; the zone is as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditError {
    /// The server has no zone of this name.
    NoSuchZone(Name),
    /// The zone has no data: it was never loaded.
    NotLoaded(Name),
    /// The configuration does not let the zone be changed.
    NotWritable(Name),
    /// The zone is transferred from primaries, where it can be changed.
    OfPrimaries(Name),
    /// The zone is frozen: an operator has it take no updates and edits.
    Frozen(Name),
    /// No version of the zone with this serial is held.
    NoSuchVersion(Name, u32),
    /// The version with this serial is the one in force.
    IsInForce(u32),
    /// The file of the zone and earlier edits contradict each other, as this text says.
    Conflict(String),
    /// The journal cannot take the edit, as this text says.
    Journal(String),
    /// A successor is taking over.
    HandedOver,
    /// The zone has another serial than the edit asks for: this one.
    SerialIs(u32),
    /// The zone was created anew, or the server started again, since the client has seen it.
    IsAnother,
    /// A change breaks a rule.
    Refused(ChangeError),
    /// The thread that publishes zones has failed.
    PublisherFailed,
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchZone(zone) => write!(
                f,
                "the server has no zone {zone}; `zonda zone list` lists those that it has"
            ),
            Self::NotLoaded(zone) => write!(
                f,
                "zone {zone} is not loaded, so that it cannot be changed; `zonda zone show {zone}` \
                 says why"
            ),
            Self::NotWritable(zone) => write!(
                f,
                "zone {zone} cannot be changed while it is served: if its records come from a \
                 file, write `writable = true` in its [[zone]] section, or start the server with \
                 --writable, and reload"
            ),
            Self::OfPrimaries(zone) => write!(
                f,
                "zone {zone} is transferred from primaries and cannot be changed here: change it \
                 at its primary; `zonda zone refresh {zone}` fetches what has changed there"
            ),
            Self::Frozen(zone) => write!(
                f,
                "zone {zone} is frozen, so that it takes no updates and edits: `zonda zone thaw \
                 {zone}` lets it take them again"
            ),
            Self::NoSuchVersion(zone, serial) => write!(
                f,
                "no version {serial} of zone {zone} is held: `zonda zone history {zone}` lists \
                 those that are"
            ),
            Self::IsInForce(serial) => write!(f, "version {serial} is in force already"),
            Self::Conflict(text) => write!(f, "the zone takes no edits now: {text}"),
            Self::Journal(text) => {
                write!(f, "the edit could not be kept, and was not made: {text}")
            }
            Self::HandedOver => f.write_str(
                "another process is taking over from this server: repeat the edit in a moment",
            ),
            Self::SerialIs(serial) => write!(
                f,
                "the zone has changed: its serial is {serial}; read it again, and repeat the change"
            ),
            Self::IsAnother => f.write_str(
                "the zone was created anew, or the server started again, since it was read; read \
                 it again, and repeat the change",
            ),
            Self::Refused(error) => error.fmt(f),
            Self::PublisherFailed => {
                f.write_str("the thread that publishes zones has failed; see the log")
            }
        }
    }
}

impl std::error::Error for EditError {}
