//! `zonda bench load`: queries to one server, as fast as it answers or on a schedule.

use super::interrupt::Interrupt;
use super::progress::{Bar, Intervals};
use super::target::Target;
use crate::output;
use clap::{Args, ValueEnum};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use zonda_bench::load::limits::{self, Ceiling, Limits};
use zonda_bench::load::{self, End, ExpectedReplies, Mode, Outcome, Plan, dnsperf};

/// Send queries to a server and tell how it answered
#[derive(Args)]
#[command(after_help = "\
Examples:
  zonda bench load -s 127.0.0.1 -p 5300 -d queries.txt -l 10
  zonda bench load -p 5300 -d queries.txt -l 10 --rate 20000
  zonda bench load -p 5300 -d queries.txt -l 10 --rate 20000 --max-loss 0.1% --max-p99 2ms
  zonda bench load -p 5300 -d queries.txt --expect answers.txt --max-wrong 0
  zonda bench load -p 5300 --names zipf:1.1:1000000.example.com --type A,AAAA -l 10

Exit code 0 says that all limits were held, 1 that one was broken, and 2 that the run could not be
made. Ctrl-C and SIGTERM end it early, with its summary and exit code 130 or 143; a second one ends
it at once. A TIME is a number of seconds, or has a unit: 500us, 2ms, 1s, 30m, 6h.

Without --rate, a query is sent when an earlier one was answered: a slow server is asked less. With
--rate, queries are sent on a schedule and latency counts from the scheduled time.")]
pub struct Load {
    #[command(flatten)]
    target: Target,
    /// Go through the file at most N times (once, unless -l or --count is given)
    #[arg(short = 'n', value_name = "N", conflicts_with = "names",
        value_parser = clap::value_parser!(u64).range(1..))]
    runs: Option<u64>,
    /// Send for at most this long
    #[arg(short = 'l', value_name = "TIME", value_parser = limits::parse_time_above_0)]
    limit: Option<Duration>,
    /// Send at most N queries
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Queries that may wait for replies, over all clients
    #[arg(short = 'q', value_name = "N", default_value_t = 100, conflicts_with = "rate")]
    outstanding: usize,
    /// Send at most N queries a second
    #[arg(short = 'Q', value_name = "N", conflicts_with = "rate", allow_negative_numbers = true,
        value_parser = limits::parse_rate)]
    rate_max: Option<f64>,
    /// Print each N seconds how many queries were answered a second, as dnsperf does; to standard
    /// error, or with --format dnsperf to standard output
    #[arg(short = 'S', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    interval: Option<u64>,
    /// Count late and second replies for so long after the last query was answered or lost
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = limits::parse_time)]
    linger: Duration,
    /// Send N queries a second, whether the server keeps up or not
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = limits::parse_rate)]
    rate: Option<f64>,
    /// Fail when more than this share of queries is lost, or never sent though --rate has them,
    /// such as 0.1%
    #[arg(long, value_name = "SHARE", value_parser = limits::parse_share)]
    max_loss: Option<f64>,
    /// Fail when the 99th percentile of latency is longer than this, such as 2ms; a query without
    /// reply is slower than any
    #[arg(long, value_name = "TIME", value_parser = limits::parse_time)]
    max_p99: Option<Duration>,
    /// Hold replies to the answers in a file: a line with name, type and RCODE for each question,
    /// and below it an indented line for each record of the answer
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,
    /// Fail when more replies than this are wrong: no reply to their query, or not as --expect
    /// says; a number, or a share of the queries such as 0.1%
    #[arg(long, value_name = "N", value_parser = limits::parse_most)]
    max_wrong: Option<Ceiling>,
    /// How to print the outcome
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// How an outcome is printed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text for people
    Text,
    /// As dnsperf does
    Dnsperf,
    /// A line of JSON for each second, then one for the whole run
    Json,
}

impl Load {
    /// Sends.
    pub fn run(self) -> ExitCode {
        super::exit_code(self.try_run())
    }

    /// Sends the queries, and prints the results.
    fn try_run(self) -> Result<ExitCode, String> {
        let mut plan = self.plan()?;
        let interrupt = Interrupt::watch()?;
        plan.stop = Arc::clone(&interrupt.stop);
        if self.format == Format::Dnsperf {
            let command = command_line();
            output::print(|out| dnsperf::print_head(&plan, &command, out))?;
        }
        let outcome = self.send(&plan, &interrupt)?;
        output::print(|out| match self.format {
            Format::Text => load::text::print(&outcome, out),
            Format::Dnsperf => dnsperf::print_end(&plan, &outcome, out),
            Format::Json => load::json::print(&outcome, out),
        })?;
        Ok(self.broken_limits(&outcome).map_or(interrupt.exit_code(), |said| super::broken(&said)))
    }

    /// Sends the queries of the plan and shows the progress.
    fn send(&self, plan: &Plan, interrupt: &Interrupt) -> Result<Outcome, String> {
        let bar = Bar::new(plan, interrupt);
        let mut intervals = self.interval.map(Intervals::new);
        let mut printed = Ok(());
        let outcome = load::run(
            plan,
            Some(&mut |progress| {
                if let Some(intervals) = &mut intervals {
                    let result = bar.print_above(|| match self.format {
                        // Where dnsperf prints them.
                        Format::Dnsperf => output::print(|out| intervals.add(progress, out)),
                        _ => intervals.add(progress, &mut io::stderr()).map_err(|e| e.to_string()),
                    });
                    printed = std::mem::replace(&mut printed, Ok(())).and(result);
                }
                bar.show(progress);
            }),
        );
        bar.clear();
        printed?;
        outcome.map_err(|error| error.to_string())
    }

    /// The limits that were broken, in words.
    fn broken_limits(&self, outcome: &Outcome) -> Option<String> {
        let limits =
            Limits { loss_max: self.max_loss, p99_max: self.max_p99, wrong_max: self.max_wrong };
        let broken = limits.broken_by(outcome);
        let words: Vec<String> = broken.iter().map(ToString::to_string).collect();
        (!words.is_empty()).then(|| format!("limits broken: {}", words.join("; ")))
    }

    /// What the command line asks for.
    fn plan(&self) -> Result<Plan, String> {
        let mode = match self.rate {
            Some(rate) => Mode::Open { rate },
            None => Mode::Closed { outstanding: self.outstanding, rate_max: self.rate_max },
        };
        let mut plan = self.target.plan(mode)?;
        let is_bounded = self.limit.is_some() || self.count.is_some();
        if self.target.is_endless() && !is_bounded {
            return Err("--names has no end: say how long (-l) or how many (--count)".to_owned());
        }
        let runs = self.runs.or((!is_bounded).then_some(1));
        plan.end = End { after: self.limit, runs, count: self.count };
        plan.linger = self.linger;
        let expected = self.expect.as_deref().map(ExpectedReplies::read).transpose();
        plan.expected = expected.map_err(|error| error.to_string())?.map(Arc::new);
        Ok(plan)
    }
}

/// Returns the command line, the program by its name.
fn command_line() -> Vec<String> {
    let mut words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(program) = words.first_mut() {
        *program = program.rsplit('/').next().unwrap_or_default().to_owned();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    /// The flags alone.
    #[derive(Parser)]
    struct Command {
        /// The arguments of the load.
        #[command(flatten)]
        load: Load,
    }

    #[test]
    fn flags_that_a_schedule_would_ignore_are_refused_with_it() {
        let parse = |flags: &[&str]| Command::try_parse_from([&["load"][..], flags].concat());
        assert!(parse(&["--rate", "10"]).is_ok());
        for flag in ["-q", "-Q"] {
            assert!(parse(&[flag, "5"]).is_ok(), "{flag}");
            assert!(parse(&[flag, "5", "--rate", "10"]).is_err(), "{flag}");
        }
    }
}
