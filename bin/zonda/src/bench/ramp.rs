//! `zonda bench ramp`: the highest rate that a server holds.

use super::interrupt::Interrupt;
use super::progress::Bar;
use super::target::Target;
use crate::output;
use clap::Args;
use serde_json::json;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use zonda_bench::load::limits::{self, Limits};
use zonda_bench::load::{self, Mode};
use zonda_bench::ramp::{self, Event, Step};
use zonda_bench::report::time;

/// Percentiles that are shown.
const SHOWN: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

/// The percentile of lateness that is shown.
const LATENESS: f64 = 99.9;

/// Raise the rate until the server cannot hold it
#[derive(Args)]
#[command(after_help = "\
Examples:
  zonda bench ramp -s 127.0.0.1 -p 5300 -d queries.txt
  zonda bench ramp -p 5300 -d queries.txt --from 5000 --max-p99 1ms

A rate is held when loss and the 99th percentile of latency stay within their limits. Rates double
until one is not held; then the span to the last one that was is halved until it is small. The table
has all of them by rate, with the 99.9th percentile of how late the generator was; where a limit
broke by its fault, the table says so. Ctrl-C and SIGTERM end the search early, with what was found
and exit code 130 or 143. Exit code 1 says that the first rate was not held, and 2 that nothing can
be said of the server.")]
pub struct Ramp {
    #[command(flatten)]
    target: Target,
    /// Begin with N queries a second
    #[arg(long, value_name = "N", default_value = "1000", allow_negative_numbers = true,
        value_parser = limits::parse_rate)]
    from: f64,
    /// Go no higher than N queries a second
    #[arg(long, value_name = "N", default_value = "10000000", allow_negative_numbers = true,
        value_parser = limits::parse_rate)]
    to: f64,
    /// Length of time for which each rate is held
    #[arg(long, value_name = "TIME", default_value = "5s",
        value_parser = limits::parse_time_above_0)]
    step: Duration,
    /// End when the rate is known to within this share
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = limits::parse_share)]
    precision: f64,
    /// Most queries that may be lost
    #[arg(long, value_name = "SHARE", default_value = "0.1%", value_parser = limits::parse_share)]
    max_loss: f64,
    /// Longest 99th percentile of latency
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = limits::parse_time)]
    max_p99: Duration,
    /// Write all steps and the rate that was found as JSON to a file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Ramp {
    /// Searches.
    pub fn run(self) -> ExitCode {
        super::exit_code(self.try_run())
    }

    /// Searches, and prints all steps and the rate that was found; each step is told as it is done.
    fn try_run(self) -> Result<ExitCode, String> {
        if self.from > self.to {
            return Err(format!("--from {} is more than --to {}", self.from, self.to));
        }
        if self.precision <= 0.0 {
            return Err("--precision must be above 0".to_owned());
        }
        let (loss_max, p99_max) = (Some(self.max_loss), Some(self.max_p99));
        let limits = Limits { loss_max, p99_max, ..Limits::default() };
        let Self { from, to, step, precision, .. } = self;
        let ramp = ramp::Ramp { from, to, step, limits, precision };
        let mut plan = self.target.plan(Mode::Open { rate: from })?;
        let interrupt = Interrupt::watch()?;
        plan.stop = Arc::clone(&interrupt.stop);
        let mut bar: Option<Bar> = None;
        let steps = ramp::run(&plan, &ramp, &mut |event| match event {
            Event::Start(plan) => bar = Some(Bar::new(plan, &interrupt)),
            Event::Second(progress) => bar.iter().for_each(|bar| bar.show(progress)),
            Event::Step(step) => {
                bar.take().iter().for_each(Bar::clear);
                let (rate, word) = (step.rate, word(step));
                output::line(format_args!("{rate:.0} queries per second: {word}"));
            }
        });
        bar.iter().for_each(Bar::clear);
        let steps = steps.map_err(|error| error.to_string())?;
        self.keep(&steps, plan.is_stopped())?;
        output::print(|out| print_steps(&steps, out))?;
        let end_of_generator = ramp::end_of_generator(&steps);
        let highest = match (ramp::highest_held(&steps), end_of_generator) {
            (None, _) if plan.is_stopped() => return Ok(interrupt.exit_code()),
            (None, None) => {
                return Ok(super::broken("the server did not hold the first rate; see --from"));
            }
            (None, Some(rate)) => {
                return Err(format!("the generator was not up to {rate:.0} queries per second"));
            }
            (Some(highest), _) => highest,
        };
        let so_far = if plan.is_stopped() { " before the interruption" } else { "" };
        output::print(|out| {
            writeln!(out, "highest rate held{so_far}: {highest:.0} queries per second")?;
            let Some(rate) = end_of_generator else { return Ok(()) };
            writeln!(out, "the server may hold more: at {rate:.0}, the generator was at its end")
        })?;
        Ok(interrupt.exit_code())
    }
}

impl Ramp {
    /// Writes the steps to a file, if one is given.
    fn keep(&self, steps: &[Step], is_interrupted: bool) -> Result<(), String> {
        let Some(path) = &self.json else { return Ok(()) };
        let step = |step: &Step| {
            let broken: Vec<String> = step.broken.iter().map(ToString::to_string).collect();
            json!({
                "rate": step.rate,
                "is_held": step.is_held(),
                "is_broken_by_generator": step.is_broken_by_generator(),
                "broken": broken,
                "outcome": load::json::whole(&step.outcome),
            })
        };
        let steps_json: Vec<_> = steps.iter().map(step).collect();
        let whole = json!({
            "interrupted": is_interrupted,
            "highest_rate_held": ramp::highest_held(steps),
            "end_of_generator": ramp::end_of_generator(steps),
            "steps": steps_json,
        });
        let name = |error| format!("{}: {error}", path.display());
        fs::write(path, format!("{whole}\n")).map_err(name)
    }
}

/// Prints the table of steps.
fn print_steps(steps: &[Step], out: &mut impl Write) -> io::Result<()> {
    write!(out, "{:>10} {:>10} {:>9}", "rate", "answered", "lost %")?;
    SHOWN.iter().try_for_each(|percent| write!(out, " {:>10}", format!("p{percent}")))?;
    writeln!(out, " {:>10}", "late")?;
    steps.iter().try_for_each(|step| print_step(step, out))
}

/// Prints a step.
fn print_step(step: &Step, out: &mut impl Write) -> io::Result<()> {
    let outcome = &step.outcome;
    let (answered, loss) = (outcome.rate(), 100.0 * outcome.loss());
    write!(out, "{:>10.0} {answered:>10.0} {loss:>9.3}", step.rate)?;
    let latencies = SHOWN.map(|percent| outcome.latency.percentile(percent));
    let lateness = outcome.lateness.as_ref().and_then(|lateness| lateness.percentile(LATENESS));
    for micros in latencies.into_iter().chain([lateness]) {
        let micros = micros.map_or_else(|| "–".to_owned(), time);
        write!(out, " {micros:>10}")?;
    }
    writeln!(out, "  {}", word(step))
}

/// Returns the result of a step in a word.
fn word(step: &Step) -> &'static str {
    match (step.is_held(), step.outcome.is_generator_late()) {
        (true, false) => "held",
        (true, true) => "held; the generator was late",
        (false, _) if step.is_broken_by_generator() => "not held, by the generator's fault",
        (false, false) => "not held",
        (false, true) => "not held; the generator was late, too",
    }
}
