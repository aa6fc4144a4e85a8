//! `zonda bench load`: queries to one server, as fast as it answers or on a schedule.

use super::target::Target;
use crate::output;
use clap::Args;
use std::process::ExitCode;
use std::time::Duration;
use zonda_bench::load::{self, End, Mode, Plan};

/// Send queries to a server and tell how it answered
#[derive(Args)]
#[command(after_help = "\
Examples:
  zonda bench load -s 127.0.0.1 -p 5300 -d queries.txt -l 10
  zonda bench load -p 5300 -d queries.txt -l 10 --rate 20000

Without --rate, a query is sent when an earlier one was answered: a slow server is asked less. With
--rate, queries are sent on a schedule and latency counts from the scheduled time.")]
pub struct Load {
    #[command(flatten)]
    target: Target,
    /// Go through the file at most N times (once, unless -l or --count is given)
    #[arg(short = 'n', value_name = "N")]
    runs: Option<u64>,
    /// Send for at most this long
    #[arg(short = 'l', value_name = "SECONDS", value_parser = super::target::seconds)]
    limit: Option<Duration>,
    /// Send at most N queries
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Queries that may wait for replies, over all clients
    #[arg(short = 'q', value_name = "N", default_value_t = 100)]
    outstanding: usize,
    /// Send at most N queries a second
    #[arg(short = 'Q', value_name = "N", conflicts_with = "rate")]
    rate_max: Option<f64>,
    /// Send N queries a second, whether the server keeps up or not
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
}

impl Load {
    /// Sends.
    pub fn run(self) -> ExitCode {
        output::exit_code(self.try_run())
    }

    /// Sends, and prints what came of it.
    fn try_run(self) -> Result<ExitCode, String> {
        let plan = self.plan()?;
        let outcome = load::run(&plan, None).map_err(|error| error.to_string())?;
        output::print(|out| load::text::print(&outcome, out))?;
        Ok(ExitCode::SUCCESS)
    }

    /// What the command line asks for.
    fn plan(&self) -> Result<Plan, String> {
        let mode = match self.rate {
            Some(rate) => Mode::Open { rate },
            None => Mode::Closed { outstanding: self.outstanding, rate_max: self.rate_max },
        };
        let mut plan = self.target.plan(mode)?;
        let is_bounded = self.limit.is_some() || self.count.is_some();
        let runs = self.runs.or((!is_bounded).then_some(1));
        plan.end = End { after: self.limit, runs, count: self.count };
        Ok(plan)
    }
}
