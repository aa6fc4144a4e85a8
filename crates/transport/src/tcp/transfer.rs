//! A transfer on its way to the client of a connection.

use super::connection::End;
use zonda_engine::{Now, Transfer, TransferError, WholeZoneReason};

/// Octets that are written at once: some four messages.
const WRITE_BYTES: usize = 64 << 10;

/// Appends messages to `output` until there are enough for one write; false if there are none, and
/// the client has all.
pub(super) fn write(
    transfer: &mut Transfer,
    now: Now,
    output: &mut Vec<u8>,
) -> Result<bool, TransferError> {
    output.reserve(WRITE_BYTES);
    while output.len() < WRITE_BYTES && transfer.next(now, output)? {
        if transfer.is_made() {
            break; // whole only when the client has taken this
        }
    }
    Ok(!output.is_empty())
}

/// Logs a transfer that is whole.
pub(super) fn log_success(transfer: &Transfer, now: Now) {
    let (facts, [messages, octets, records]) = (Facts::of(transfer, now), transfer.sent());
    tracing::info!(
        zone = %transfer.apex(),
        peer = %transfer.peer().address,
        key = facts.key,
        transport = "tcp",
        asked = %transfer.qtype(),
        sent = facts.sent,
        from = transfer.from(),
        serial = transfer.serial(),
        messages,
        records,
        octets,
        seconds = facts.seconds,
        fallback = facts.fallback,
        "a zone was transferred"
    );
}

/// Logs a transfer that has ended before it was whole.
pub(super) fn log_failure(transfer: &Transfer, now: Now, end: &End) {
    let (facts, [messages, octets, records]) = (Facts::of(transfer, now), transfer.sent());
    tracing::warn!(
        zone = %transfer.apex(),
        peer = %transfer.peer().address,
        key = facts.key,
        transport = "tcp",
        asked = %transfer.qtype(),
        sent = facts.sent,
        from = transfer.from(),
        serial = transfer.serial(),
        messages,
        records,
        octets,
        seconds = facts.seconds,
        fallback = facts.fallback,
        error = reason(end),
        "a transfer has ended before the zone was whole"
    );
}

/// What a line of the log says besides.
struct Facts {
    /// The name of the key, or `none`.
    key: String,
    /// What is sent: the zone, or what changed.
    sent: &'static str,
    /// How long the transfer has taken.
    seconds: f64,
    /// Why the zone is sent where changes were asked for.
    fallback: Option<&'static str>,
}

impl Facts {
    /// The facts about a transfer at a time.
    fn of(transfer: &Transfer, now: Now) -> Self {
        let key = transfer.key().map_or_else(|| "none".to_owned(), ToString::to_string);
        let sent = if transfer.is_changes() { "changes" } else { "zone" };
        let seconds = (transfer.nanos_at(now) / 1_000_000) as f64 / 1000.0;
        Self { key, sent, seconds, fallback: transfer.fallback().map(WholeZoneReason::name) }
    }
}

/// Why a transfer ends with its connection.
fn reason(end: &End) -> String {
    match end {
        End::Transfer(error) => error.to_string(),
        End::WriteTimeout => {
            "the client has taken nothing for as long as `write-timeout` of [tcp] says".to_owned()
        }
        End::Stopped => "the server stops".to_owned(),
        _ => "the client has closed the connection".to_owned(),
    }
}
