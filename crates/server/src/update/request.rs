//! Messages that change zones, as the publisher takes them.

use crate::edit::EditError;
use zonda_engine::grant::UpdateSender;
use zonda_engine::{Reason, UpdateOutcome};
use zonda_wire::{Name, Rcode, UpdateMessage};

/// A message that changes a zone, and its client.
#[derive(Clone, Debug)]
pub struct UpdateRequest {
    /// The client that has sent the message.
    pub sender: UpdateSender,
    /// The message, of class IN.
    pub message: UpdateMessage,
}

/// The messages for one zone that are carried out together, in their order.
#[derive(Clone, Debug)]
pub struct ZoneUpdates {
    /// The name of the zone in lower case.
    pub zone: Name,
    /// The messages, at least one.
    pub requests: Vec<UpdateRequest>,
}

/// What became of a message.
#[derive(Clone, Debug)]
pub struct UpdateResult {
    /// The reply to the client.
    pub outcome: UpdateOutcome,
    /// What has changed, if anything has.
    pub change: Option<UpdateChange>,
}

/// What a message has changed in a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdateChange {
    /// The serial of the version that was in force.
    pub from: u32,
    /// The serial of the zone with the change.
    pub to: u32,
    /// Records that were removed.
    pub removed: usize,
    /// Records that were added.
    pub added: usize,
}

impl UpdateResult {
    /// The result of a message that was carried out.
    pub fn done(change: Option<UpdateChange>) -> Self {
        let (rcode, reason, text) = (Rcode::NOERROR, Reason::Updated, String::new());
        Self { outcome: UpdateOutcome { rcode, reason, text }, change }
    }

    /// The result of a message that was not carried out.
    pub fn refused(rcode: Rcode, reason: Reason, text: String) -> Self {
        Self { outcome: UpdateOutcome { rcode, reason, text }, change: None }
    }

    /// The result of a message for a zone that cannot be changed now. What the operator is to do,
    /// and where files lie, is not told to clients.
    pub fn of_error(error: &EditError) -> Self {
        let (rcode, reason) = match error {
            EditError::NoSuchZone(_) => (Rcode::NOTAUTH, Reason::NoZone),
            EditError::NotWritable(_) | EditError::OfPrimaries(_) | EditError::Frozen(_) => {
                (Rcode::REFUSED, Reason::UpdateRefused)
            }
            _ => (Rcode::SERVFAIL, Reason::UpdateFailed),
        };
        let text = match error {
            EditError::NotWritable(_) | EditError::OfPrimaries(_) => {
                "the zone cannot be changed".to_owned()
            }
            EditError::Frozen(_) => "the zone is frozen: it takes no updates for now".to_owned(),
            EditError::Journal(_) => "the change could not be written to the disk".to_owned(),
            EditError::Conflict(_) => "the file of the zone contradicts earlier changes".to_owned(),
            error => error.to_string(),
        };
        Self::refused(rcode, reason, text)
    }

    /// Whether the result is the same for any version of the zone: the message is malformed.
    pub fn is_sure(&self) -> bool {
        self.outcome.reason == Reason::FormatError
    }

    /// Whether the client is told that the zone is as it wants it.
    pub fn is_done(&self) -> bool {
        self.outcome.rcode == Rcode::NOERROR
    }
}
