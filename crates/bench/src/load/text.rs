//! An outcome for people.

use std::io::{self, Write};

use super::Outcome;
use crate::data::Latency;
use crate::report::time;

/// Percentiles that are shown.
const SHOWN: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// Prints an outcome.
///
/// # Errors
/// When `out` cannot be written to.
pub fn print(outcome: &Outcome, out: &mut impl Write) -> io::Result<()> {
    let traffic = &outcome.traffic;
    if outcome.is_interrupted {
        writeln!(out, "interrupted before its end")?;
    }
    let percent = |count: u64| 100.0 * count as f64 / traffic.sent.max(1) as f64;
    writeln!(out, "sent        {:>12}  in {:.3} s", traffic.sent, outcome.seconds)?;
    let (completed, lost) = (traffic.completed, traffic.lost);
    writeln!(out, "answered    {completed:>12}  {:.0} per second", outcome.rate())?;
    writeln!(out, "lost        {lost:>12}  {:.3} %", percent(lost))?;
    let oddities = [
        ("unsent", traffic.unsent, "due, but neither the server nor the generator kept up"),
        ("wrong", traffic.wrong, "not a reply to their query"),
        ("incorrect", traffic.incorrect, "answered, but not as expected"),
        ("reconnects", traffic.reconnects, "connections that the server had closed"),
        ("duplicate", traffic.duplicate, "second replies to one query"),
        ("late", traffic.late, "after the timeout"),
        ("unexpected", traffic.unexpected, "to no query"),
        ("truncated", outcome.truncated, "something was left out"),
        ("overrun", traffic.dropped_by_generator, "replies that the generator had no room for"),
        ("dropped", traffic.dropped_by_server, "queries that the server had no room for"),
    ];
    for (name, count, what) in oddities.into_iter().filter(|odd| odd.1 > 0) {
        writeln!(out, "{name:<11} {count:>12}  {what}")?;
    }
    for (rcode, count) in &traffic.rcodes {
        let share = 100.0 * *count as f64 / completed.max(1) as f64;
        writeln!(out, "{rcode:<11} {count:>12}  {share:.2} %")?;
    }
    for difference in &outcome.differences {
        writeln!(out, "  {difference}")?;
    }
    if traffic.incorrect > outcome.differences.len() as u64 {
        let more = traffic.incorrect - outcome.differences.len() as u64;
        writeln!(out, "  and {more} more that are not as expected")?;
    }
    if completed == 0 && outcome.refused > 0 {
        writeln!(out, "no process listens on that port: each query came back as undeliverable")?;
    }
    print_latency("latency", &outcome.latency, out)?;
    if let Some(lateness) = &outcome.lateness {
        print_latency("lateness", lateness, out)?;
    }
    if outcome.is_generator_late() {
        writeln!(out, "the generator was late: half of p99.9 or more is its own, see lateness")?;
    }
    if let Some(octets) = outcome.small_buffer_octets {
        writeln!(
            out,
            "receive buffers have {octets} octets, less than asked for (-b): the kernel grants no \
             more without root, see net.core.rmem_max; replies may be lost here"
        )?;
    }
    let each = match completed {
        0 => "–".to_owned(),
        _ => time(1e6 * outcome.cpu_secs / completed as f64),
    };
    writeln!(out, "generator   {:>12.3}  CPU seconds, {each} per answer", outcome.cpu_secs)
}

/// Prints times in a line, each in the unit that suits it.
fn print_latency(name: &str, latency: &Latency, out: &mut impl Write) -> io::Result<()> {
    if latency.percentiles.is_empty() {
        return writeln!(out, "{name:<11} {:>12}", "–");
    }
    write!(out, "{name:<11} {:>12}  average, {} least", time(latency.mean), time(latency.min))?;
    for (percent, micros) in latency.percentiles.iter().filter(|(one, _)| SHOWN.contains(one)) {
        write!(out, ", p{percent} {}", time(*micros))?;
    }
    writeln!(out, ", {} most", time(latency.max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::outcome::Gatherer;

    /// Returns what is printed of a run that was changed so.
    fn printed(change: impl Fn(&mut Outcome)) -> String {
        let mut outcome = Gatherer::new(0).finish(&[], 1.0);
        change(&mut outcome);
        let mut text = Vec::new();
        print(&outcome, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_run_without_an_answer_has_no_latency_and_says_if_no_process_listens() {
        let text = printed(|outcome| outcome.refused = 1);
        assert!(text.contains("no process listens on that port"), "{text}");
        assert!(text.contains("latency                –\n"), "{text}");
        assert!(text.ends_with("CPU seconds, – per answer\n"), "{text}");
    }

    #[test]
    fn times_are_in_the_unit_that_suits_them_and_differences_are_listed() {
        let text = printed(|outcome| {
            outcome.traffic.completed = 3;
            outcome.traffic.incorrect = 3;
            outcome.differences = vec!["a. A: expected NOERROR, got NXDOMAIN".to_owned()];
            outcome.latency.percentiles = vec![(99.9, 996_147.2)];
        });
        assert!(text.contains(", p99.9 996 ms, "), "{text}");
        assert!(text.contains("\n  a. A: expected NOERROR, got NXDOMAIN\n  and 2 more"), "{text}");
    }
}
