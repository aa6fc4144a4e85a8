//! `zonda bench ramp`: the highest rate that a server holds.

use super::interrupt::Interrupt;
use super::progress::Bar;
use super::target::{self, Target};
use crate::output;
use clap::Args;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use zonda_bench::load::Mode;
use zonda_bench::load::limits::{self, Limits};
use zonda_bench::ramp::{self, Event, Step};

/// Percentiles that are shown.
const SHOWN: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

/// Raise the rate until the server cannot hold it
#[derive(Args)]
#[command(after_help = "\
Examples:
  zonda bench ramp -s 127.0.0.1 -p 5300 -d queries.txt
  zonda bench ramp -p 5300 -d queries.txt --from 5000 --max-p99 1ms

A rate is held when loss and the 99th percentile of latency stay within their limits. Rates double
until one is not held; then the span to the last one that was is halved until it is small. Ctrl-C
and SIGTERM end the search early, with what was found and exit code 130 or 143.")]
pub struct Ramp {
    #[command(flatten)]
    target: Target,
    /// Begin with N queries a second
    #[arg(long, value_name = "N", default_value_t = 1000.0)]
    from: f64,
    /// Go no higher than N queries a second
    #[arg(long, value_name = "N", default_value_t = 10_000_000.0)]
    to: f64,
    /// Hold each rate for so long
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = target::seconds)]
    step: Duration,
    /// End when the rate is known to within this share
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = limits::parse_share)]
    precision: f64,
    /// Most that may be lost
    #[arg(long, value_name = "SHARE", default_value = "0.1%", value_parser = limits::parse_share)]
    max_loss: f64,
    /// Longest 99th percentile of latency
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = limits::parse_time)]
    max_p99: Duration,
}

impl Ramp {
    /// Searches.
    pub fn run(self) -> ExitCode {
        output::exit_code(self.try_run())
    }

    /// Searches, and prints each step and the rate that was found.
    fn try_run(self) -> Result<ExitCode, String> {
        let bounds_are_sound = self.from > 0.0 && self.from <= self.to && self.precision > 0.0;
        if !bounds_are_sound {
            return Err("expected 0 < --from ≤ --to, and a --precision above 0".to_owned());
        }
        let (loss_max, p99_max) = (Some(self.max_loss), Some(self.max_p99));
        let limits = Limits { loss_max, p99_max, ..Limits::default() };
        let Self { from, to, step, precision, .. } = self;
        let ramp = ramp::Ramp { from, to, step, limits, precision };
        let mut plan = self.target.plan(Mode::Open { rate: from })?;
        let interrupt = Interrupt::watch()?;
        plan.stop = Arc::clone(&interrupt.stop);
        output::print(print_head)?;
        let mut printed = Ok(());
        let mut bar: Option<Bar> = None;
        let steps = ramp::run(&plan, &ramp, &mut |event| match event {
            Event::Start(plan) => bar = Some(Bar::new(plan)),
            Event::Second(progress) => bar.iter().for_each(|bar| bar.show(progress)),
            Event::Step(step) => {
                bar.take().iter().for_each(Bar::clear);
                let result = output::print(|out| print_step(step, out));
                printed = std::mem::replace(&mut printed, Ok(())).and(result);
            }
        });
        bar.iter().for_each(Bar::clear);
        let steps = steps.map_err(|error| error.to_string())?;
        printed?;
        let highest = ramp::highest_held(&steps);
        let highest = match highest {
            None if plan.is_stopped() => return Ok(interrupt.exit_code()),
            None => return Err("the server did not hold the first rate; see --from".to_owned()),
            Some(highest) => highest,
        };
        let so_far = if plan.is_stopped() { " before the interruption" } else { "" };
        output::print(|out| {
            writeln!(out, "highest rate held{so_far}: {highest:.0} queries per second")
        })?;
        Ok(interrupt.exit_code())
    }
}

/// Heads the table of steps.
fn print_head(out: &mut impl Write) -> io::Result<()> {
    write!(out, "{:>10} {:>10} {:>9}", "rate", "answered", "lost %")?;
    SHOWN.iter().try_for_each(|percent| write!(out, " {:>10}", format!("p{percent} µs")))?;
    writeln!(out)
}

/// Prints a step.
fn print_step(step: &Step, out: &mut impl Write) -> io::Result<()> {
    let outcome = &step.outcome;
    let (answered, loss) = (outcome.rate(), 100.0 * outcome.loss());
    write!(out, "{:>10.0} {answered:>10.0} {loss:>9.3}", step.rate)?;
    let shown = |(percent, _): &&(f64, f64)| SHOWN.contains(percent);
    for (_, micros) in outcome.latency.percentiles.iter().filter(shown) {
        write!(out, " {micros:>10.1}")?;
    }
    writeln!(out, "{}", if step.is_held() { "" } else { "  not held" })
}
