//! What a transfer asks of the server while it runs, and tells it.

use crate::intake::Counts;
use zonda_zone::HashSeed;

/// What a transfer asks of the server while it runs, and tells it.
#[derive(Clone, Copy)]
pub struct TransferHooks<'h> {
    /// Returns whether the transfer is to end.
    pub is_stopped: &'h dyn Fn() -> bool,
    /// Is told that the transfer waits for memory from now on, and that it does so no more. The
    /// primary is not at fault meanwhile.
    pub note_wait: &'h dyn Fn(bool),
    /// Returns the octets of memory that the whole zone is expected to take. Called when changes
    /// were asked for and the whole zone comes.
    pub whole_zone_octets: &'h dyn Fn() -> u64,
    /// Is told with each message how much has come so far, and the serial of the version that the
    /// primary sends.
    pub note_progress: &'h dyn Fn(Counts, Option<u32>),
    /// The secret by which the server's zones hash names.
    pub seed: HashSeed,
}

impl TransferHooks<'_> {
    /// The hooks of a transfer that is not to end, tells nothing, and is expected to be small.
    pub const NONE: TransferHooks<'static> = TransferHooks {
        is_stopped: &|| false,
        note_wait: &|_| (),
        whole_zone_octets: &|| 0,
        note_progress: &|_, _| (),
        seed: HashSeed(0),
    };
}
