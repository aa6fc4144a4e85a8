//! The times of the signatures of messages that have changed zones, so that a copy of a message of
//! before the start is not carried out again (rfc8945#10).
//!
//! What came since the start is known message by message (`update::recent`). Of what came before,
//! each entry of the journal has the time of the latest signature so far.

use crate::edit::entry::read;
use zonda_journal::Journal;

/// The times of the signatures of messages that have changed zones, seconds since 1970.
#[derive(Debug, Default)]
pub struct KnownSignatures {
    /// The latest one of before the journal was opened; 0 if there is none.
    pub before_start: u64,
    /// The latest one so far.
    pub latest: u64,
}

impl KnownSignatures {
    /// What a journal that was just opened knows.
    pub(super) fn of(journal: &Journal) -> Self {
        let newest = journal.newest_of_all().map_or(Ok(Vec::new()), read);
        let latest = match newest {
            Ok(edits) => edits.last().map_or(0, |edit| edit.signed_until),
            Err(_) => crate::load::unix_secs().into(), // whatever was signed before is doubtful
        };
        Self { before_start: latest, latest }
    }

    /// Whether a message with a signature of a time may have been carried out before the start;
    /// the time is 0 for one without a signature.
    pub fn may_know(&self, signed_secs: u64) -> bool {
        signed_secs > 0 && signed_secs <= self.before_start
    }

    /// Notes the time of the signature of a message that changes a zone.
    pub fn note(&mut self, signed_secs: u64) {
        self.latest = self.latest.max(signed_secs);
    }
}
