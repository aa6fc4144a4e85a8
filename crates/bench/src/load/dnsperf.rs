//! An outcome in the layout of dnsperf 2.x, for scripts that read that.

use std::io::{self, Write};

use super::Outcome;

/// RCODEs by number, the order in which they are shown.
const RCODES: u8 = 16;

/// Prints an outcome.
///
/// # Errors
/// When `out` cannot be written to.
pub fn print(outcome: &Outcome, out: &mut impl Write) -> io::Result<()> {
    let traffic = &outcome.traffic;
    let percent = |count: u64, whole: u64| 100.0 * count as f64 / whole.max(1) as f64;
    let of_sent = |count| percent(count, traffic.sent);
    let (completed, lost) = (traffic.completed, traffic.lost);
    let codes = (0..RCODES).filter_map(|number| {
        let name = zonda_wire::Rcode(number.into()).to_string();
        let count = *traffic.rcodes.get(&name)?;
        Some(format!("{name} {count} ({:.2}%)", percent(count, completed)))
    });
    let codes: Vec<String> = codes.collect();
    let average = |octets: u64, count: u64| octets / count.max(1);
    let request = average(outcome.sent_octets, traffic.sent);
    let response = average(outcome.completed_octets, completed);
    let latency = &outcome.latency;
    let secs = |micros: f64| micros / 1e6;
    writeln!(out, "Statistics:\n")?;
    writeln!(out, "  Queries sent:         {}", traffic.sent)?;
    writeln!(out, "  Queries completed:    {completed} ({:.2}%)", of_sent(completed))?;
    writeln!(out, "  Queries lost:         {lost} ({:.2}%)\n", of_sent(lost))?;
    writeln!(out, "  Response codes:       {}", codes.join(", "))?;
    writeln!(out, "  Average packet size:  request {request}, response {response}")?;
    writeln!(out, "  Run time (s):         {:.6}", outcome.seconds)?;
    writeln!(out, "  Queries per second:   {:.6}\n", outcome.rate())?;
    writeln!(
        out,
        "  Average Latency (s):  {:.6} (min {:.6}, max {:.6})",
        secs(latency.mean),
        secs(latency.min),
        secs(latency.max)
    )?;
    if completed > 1 {
        writeln!(out, "  Latency StdDev (s):   {:.6}", secs(latency.deviation))?;
    }
    writeln!(out)
}
