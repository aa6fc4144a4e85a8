//! What operators ask for besides changes of records: refreshes, NOTIFY, and freezing.

use crate::control::Control;
use crate::edit::EditError;
use crate::edit::frozen::FreezeError;
use crate::feed::catalogs::ConfirmError;
use crate::feed::secondaries::RefreshReport;
use crate::feed::secondary_schedule::Prompt;
use std::fmt;
use std::net::SocketAddr;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use zonda_wire::Name;

/// How long a request waits for a refresh; a transfer that takes longer goes on.
const REFRESH_WAIT: Duration = Duration::from_secs(20);

/// Why something that an operator has asked for was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// The server has no zone of this name.
    NoSuchZone(Name),
    /// The zone is not transferred from primaries.
    NotSecondary(Name),
    /// The zone has no primary with a version that can be taken, as this text says.
    NotRefreshed(Name, String),
    /// The zone is followed no more, or its refresh was given up.
    Abandoned(Name),
    /// No servers are notified of the zone.
    NoReceivers(Name),
    /// The zone has no data that servers could be notified of.
    NotLoaded(Name),
    /// The zone takes no updates and edits in any case.
    NotWritable(Name),
    /// What was asked for could not be kept on the disk, as this text says.
    NotKept(String),
    /// A successor is taking over.
    HandedOver,
    /// No version of the catalog with this name is taken by being confirmed.
    NotConfirmed(Name, ConfirmError),
    /// The thread that publishes zones has failed.
    PublisherFailed,
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchZone(zone) => EditError::NoSuchZone(zone.clone()).fmt(f),
            Self::NotLoaded(zone) => write!(
                f,
                "zone {zone} is not loaded, so that there is no version to tell of; `zonda zone \
                 show {zone}` says why"
            ),
            Self::NotSecondary(zone) => write!(
                f,
                "zone {zone} is not transferred from primaries: `[zone.secondary]` in its section \
                 would name them; `zonda zone reload {zone}` reads it from its source"
            ),
            Self::NotRefreshed(zone, error) => {
                write!(f, "zone {zone} stays as it was: {error}")
            }
            Self::Abandoned(zone) => write!(
                f,
                "the refresh of zone {zone} was given up, as the zone has other settings by now, \
                 or the server stops; see the log, and repeat the request"
            ),
            Self::NoReceivers(zone) => write!(
                f,
                "no servers are notified of zone {zone}: name them in `notify` of its `transfer`"
            ),
            Self::NotWritable(zone) => write!(
                f,
                "zone {zone} takes no updates and edits in any case: it has neither `update` nor \
                 `writable = true`"
            ),
            Self::NotKept(error) => f.write_str(error),
            Self::HandedOver => f.write_str(
                "another process is taking over from this server: repeat the request in a moment",
            ),
            Self::NotConfirmed(zone, error) => match error {
                ConfirmError::NotCatalog => write!(
                    f,
                    "zone {zone} is no catalog whose members are served: a [[catalog]] of its name \
                     would have them served"
                ),
                ConfirmError::NothingRefused => {
                    write!(f, "no version of {zone} waits to be confirmed")
                }
                ConfirmError::OtherSerial(serial) => write!(
                    f,
                    "the version of {zone} that waits has serial {serial}: look at that, and \
                     confirm it"
                ),
                ConfirmError::OtherFault(fault) => {
                    write!(f, "the version of {zone} cannot be confirmed: {fault}")
                }
            },
            Self::PublisherFailed => EditError::PublisherFailed.fmt(f),
        }
    }
}

impl std::error::Error for CommandError {}

impl Control {
    /// Has the primaries of a zone asked at once; with `is_whole`, transfers the whole zone
    /// whatever its serial. Blocks until that is done; none if it takes long and goes on.
    ///
    /// # Errors
    /// When the zone was not refreshed.
    pub fn refresh_zone(
        &self,
        name: &Name,
        is_whole: bool,
    ) -> Result<Option<RefreshReport>, CommandError> {
        let name = name.to_lowercase();
        let prompt = if is_whole { Prompt::Retransfer } else { Prompt::Refresh };
        let Some(report) = self.stores.secondaries.refresh(&name, prompt) else {
            return Err(match self.state().zone_set.zone(&name) {
                Some(_) => CommandError::NotSecondary(name),
                None => CommandError::NoSuchZone(name),
            });
        };
        match report.recv_timeout(REFRESH_WAIT) {
            Ok(RefreshReport { error: Some(error), .. }) => {
                Err(CommandError::NotRefreshed(name, error))
            }
            Ok(report) => Ok(Some(report)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(CommandError::Abandoned(name)),
        }
    }

    /// Takes the version of a catalog with a serial though it removes many members; returns the
    /// number of members that are left. Blocks.
    ///
    /// # Errors
    /// When no such version waits for that.
    pub fn confirm_catalog(&self, name: &Name, serial: u32) -> Result<usize, CommandError> {
        let name = name.to_lowercase();
        let confirmed = self.stores.catalogs.confirm(&name, serial);
        confirmed.map_err(|error| CommandError::NotConfirmed(name, error))
    }

    /// Has the receivers of a zone told of its version once more; returns its serial and their
    /// addresses.
    ///
    /// # Errors
    /// When there is nothing to tell, or no server to tell it to.
    pub fn notify_receivers(&self, name: &Name) -> Result<(u32, Vec<SocketAddr>), CommandError> {
        let (name, state) = (name.to_lowercase(), self.state());
        let zone = state.zone_set.zone(&name);
        let zone = zone.ok_or_else(|| CommandError::NoSuchZone(name.clone()))?;
        let access = zone.entry.access.as_ref();
        let receivers = access.map_or(&[][..], |access| &access.transfers.notify);
        if receivers.is_empty() {
            return Err(CommandError::NoReceivers(name));
        }
        let data = zone.data().ok_or_else(|| CommandError::NotLoaded(name.clone()))?;
        let told = self.publisher().announce_again(&name);
        told.map_err(|_| CommandError::PublisherFailed)?;
        Ok((data.serial(), receivers.iter().map(|it| it.address).collect()))
    }

    /// Has a zone take no updates and edits until it is thawed; returns whether that is new. Blocks
    /// until it is on the disk.
    ///
    /// # Errors
    /// When the zone takes none in any case, or it could not be kept on the disk.
    pub fn freeze_zone(&self, name: &Name) -> Result<bool, CommandError> {
        let (name, state) = (name.to_lowercase(), self.state());
        let zone = state.zone_set.zone(&name);
        let zone = zone.ok_or_else(|| CommandError::NoSuchZone(name.clone()))?;
        if zone.writable.is_none() {
            return Err(CommandError::NotWritable(name));
        }
        self.set_frozen(&name, true)
    }

    /// Has a zone take updates and edits again; returns whether that is new. Blocks until it is on
    /// the disk.
    ///
    /// # Errors
    /// When there is no such zone, it takes none in any case and is not frozen, or it could not be
    /// kept on the disk.
    pub fn thaw_zone(&self, name: &Name) -> Result<bool, CommandError> {
        let (name, state) = (name.to_lowercase(), self.state());
        if !state.zone_set.frozen.contains_key(&name) {
            match state.zone_set.zone(&name) {
                None => return Err(CommandError::NoSuchZone(name)),
                Some(zone) if zone.writable.is_none() => {
                    return Err(CommandError::NotWritable(name));
                }
                Some(_) => {}
            }
        }
        self.set_frozen(&name, false)
    }

    /// Freezes or thaws a zone, and tells that in the log.
    fn set_frozen(&self, name: &Name, is_frozen: bool) -> Result<bool, CommandError> {
        let set = self.publisher().set_frozen(name, is_frozen);
        let is_new = set.map_err(|_| CommandError::PublisherFailed)?;
        let is_new = is_new.map_err(|error| match error {
            FreezeError::NotKept(text) => CommandError::NotKept(text),
            FreezeError::HandedOver => CommandError::HandedOver,
        })?;
        match (is_new, is_frozen) {
            (true, true) => tracing::info!(zone = %name, "a zone takes no updates and edits"),
            (true, false) => tracing::info!(zone = %name, "a zone takes updates and edits again"),
            (false, _) => {}
        }
        Ok(is_new)
    }
}
