//! A run in the layout of dnsperf 2.x, for scripts that read that.
//!
//! Deliberately absent: a line for each query that was lost, and what dnsperf prints of
//! connections.

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use zonda_netio::clock::LocalTime;

use super::tally::{OTHER_RCODES, RCODES};
use super::{Outcome, Plan};

/// Prints what comes before a run; `command` is what was typed.
///
/// # Errors
/// When `out` cannot be written to.
pub fn print_head(plan: &Plan, command: &[String], out: &mut impl Write) -> io::Result<()> {
    let started = LocalTime::of(since_1970_secs() as i64);
    let time = plan.end.after.map(|after| format!("{:.6} seconds", after.as_secs_f64()));
    let runs = plan.end.runs.map(|runs| {
        let plural = if runs == 1 { "" } else { "s" };
        format!("{runs} run{plural} through file")
    });
    let count = plan.end.count.map(|count| format!("{count} queries"));
    let ends: Vec<String> = [time, runs, count].into_iter().flatten().collect();
    writeln!(out, "DNS Performance Testing Tool")?;
    writeln!(out, "Version {}\n", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "[Status] Command line: {}", command.join(" "))?;
    let sent = if plan.queries.are_updates() { "updates" } else { "queries" };
    writeln!(out, "[Status] Sending {sent} (to {})", plan.server)?;
    writeln!(out, "[Status] Started at: {started}")?;
    writeln!(out, "[Status] Stopping after {}", ends.join(" or "))
}

/// Prints how many queries were answered a second, in an interval that has just ended.
///
/// # Errors
/// When `out` cannot be written to.
pub fn print_interval(rate: f64, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{:.6}: {rate:.6}", since_1970_secs())
}

/// Seconds since 1970.
fn since_1970_secs() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Prints what comes after a run.
///
/// # Errors
/// When `out` cannot be written to.
pub fn print_end(plan: &Plan, outcome: &Outcome, out: &mut impl Write) -> io::Result<()> {
    let why = match outcome {
        Outcome { is_interrupted: true, .. } => "interruption",
        _ if outcome.traffic.sent == plan.count() => "end of file",
        _ => "time limit",
    };
    writeln!(out, "[Status] Testing complete ({why})\n")?;
    let sent = if plan.queries.are_updates() { "Updates" } else { "Queries" };
    print_statistics(outcome, sent, out)
}

/// Prints what a run of queries or updates came to; `sent` is the word for them.
fn print_statistics(outcome: &Outcome, sent: &str, out: &mut impl Write) -> io::Result<()> {
    let traffic = &outcome.traffic;
    let percent = |count: u64, whole: u64| 100.0 * count as f64 / whole.max(1) as f64;
    let of_sent = |count| percent(count, traffic.sent);
    let (completed, lost) = (traffic.completed, traffic.lost);
    // In the order of numbers, with those that need the bits of OPT, which dnsperf leaves out.
    let names = (0..RCODES as u16).map(|number| zonda_wire::Rcode(number).to_string());
    let codes = names.chain([OTHER_RCODES.to_owned()]).filter_map(|name| {
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
    writeln!(out, "  {sent} sent:         {}", traffic.sent)?;
    writeln!(out, "  {sent} completed:    {completed} ({:.2}%)", of_sent(completed))?;
    writeln!(out, "  {sent} lost:         {lost} ({:.2}%)\n", of_sent(lost))?;
    writeln!(out, "  Response codes:       {}", codes.join(", "))?;
    writeln!(out, "  Average packet size:  request {request}, response {response}")?;
    writeln!(out, "  Run time (s):         {:.6}", outcome.seconds)?;
    writeln!(out, "  {sent} per second:   {:.6}\n", outcome.rate())?;
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
