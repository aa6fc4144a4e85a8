//! An outcome as lines of JSON: one for each second, then one for the whole run.

use std::io::{self, Write};

use serde_json::json;

use super::{Outcome, Second};

/// Prints an outcome.
///
/// # Errors
/// When `out` cannot be written to.
pub fn print(outcome: &Outcome, out: &mut impl Write) -> io::Result<()> {
    for Second { second, sent, completed, lost, latency } in &outcome.by_second {
        let line = json!({
            "second": second, "sent": sent, "completed": completed, "lost": lost,
            "latency_micros": latency,
        });
        writeln!(out, "{line}")?;
    }
    writeln!(out, "{}", whole(outcome))
}

/// Returns the whole run as one object.
#[must_use]
pub fn whole(outcome: &Outcome) -> serde_json::Value {
    json!({
        "interrupted": outcome.is_interrupted,
        "seconds": outcome.seconds,
        "rate": outcome.rate(),
        "traffic": outcome.traffic,
        "differences": outcome.differences,
        "refused": outcome.refused,
        "truncated": outcome.truncated,
        "sent_octets": outcome.sent_octets,
        "completed_octets": outcome.completed_octets,
        "latency_micros": outcome.latency,
        "lateness_micros": outcome.lateness,
        "generator_was_late": outcome.is_generator_late(),
        "latency_micros_by_rcode": outcome.latency_by_rcode,
        "small_buffer_octets": outcome.small_buffer_octets,
        "generator_cpu_secs": outcome.cpu_secs,
    })
}
