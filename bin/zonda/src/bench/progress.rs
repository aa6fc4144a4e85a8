//! What is shown while queries are sent: a bar on a terminal, and lines each few seconds on demand.

use super::interrupt::Interrupt;
use crate::output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use zonda_bench::load::{Mode, Plan, Progress, dnsperf};
use zonda_bench::report::time;

/// Positions of the bar.
const STEPS: u64 = 1000;

/// A bar on standard error; nothing where that is no terminal.
pub struct Bar {
    /// The bar on the terminal.
    bar: ProgressBar,
    /// Time after which the run ends.
    after: Option<Duration>,
    /// Number of queries after which the run ends.
    count: u64,
    /// Queries per second that are asked for, if it has a schedule.
    rate: Option<f64>,
    /// Moment at which the run began.
    began: Instant,
    /// The number of the signal that has ended the sending; 0 before one has come.
    signal: Arc<AtomicUsize>,
    /// How long replies are waited for then.
    timeout: Duration,
    /// Whether a line has said that replies are waited for.
    has_said_waiting: Cell<bool>,
}

impl Bar {
    /// A bar for a run of this plan that begins now.
    pub fn new(plan: &Plan, interrupt: &Interrupt) -> Self {
        let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr());
        let style =
            ProgressStyle::with_template("{bar:12} {wide_msg}").expect("the template is sound");
        bar.set_style(style);
        let rate = match plan.mode {
            Mode::Open { rate } => Some(rate),
            Mode::Closed { .. } => None,
        };
        Self {
            bar,
            after: plan.end.after,
            count: plan.count(),
            rate,
            began: Instant::now(),
            signal: Arc::clone(&interrupt.signal),
            timeout: plan.timeout,
            has_said_waiting: Cell::new(false),
        }
    }

    /// Says once, after the first signal, that replies are waited for.
    fn say_waiting(&self, progress: &Progress) {
        let waiting = progress.sent.saturating_sub(progress.completed + progress.lost);
        let is_due = self.signal.load(Ordering::Relaxed) > 0 && waiting > 0;
        if is_due && !self.has_said_waiting.replace(true) {
            self.print_above(|| {
                output::line(format_args!(
                    "zonda: waiting up to {:?} for {waiting} replies; interrupt again to end at \
                     once",
                    self.timeout
                ));
            });
        }
    }

    /// Shows a second that is over, unless it is the last of a run, which is seldom whole.
    pub fn show(&self, progress: &Progress) {
        self.say_waiting(progress);
        let elapsed = self.began.elapsed().as_secs_f64();
        if elapsed < (progress.second.second + 1) as f64 {
            return;
        }
        let by_time = self.after.map_or(0.0, |after| elapsed / after.as_secs_f64());
        let by_count = progress.sent as f64 / self.count as f64;
        let done = by_time.max(by_count).clamp(f64::EPSILON, 1.0);
        let left = elapsed / done - elapsed;
        self.bar.set_position((done * STEPS as f64) as u64);
        self.bar.set_message(format!("{left:.0} s left, {}", words(progress, self.rate)));
    }

    /// Has something printed above the bar.
    pub fn print_above<R>(&self, print: impl FnOnce() -> R) -> R {
        self.bar.suspend(print)
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// A second in words; `rate` is what was asked for.
fn words(progress: &Progress, rate: Option<f64>) -> String {
    let second = &progress.second;
    let lost = 100.0 * progress.lost as f64 / progress.sent.max(1) as f64;
    let p99 = second.latency.percentile(99.0);
    let p99 = p99.map_or("no answer".to_owned(), |micros| format!("p99 {}", time(micros)));
    let asked = rate.map_or(String::new(), |rate| format!(" of {rate:.0}"));
    format!("{}{asked} queries/s, {lost:.3} % lost, {p99}", second.completed)
}

/// Counts answers of several seconds, for a line at the end of each such interval.
pub struct Intervals {
    /// Length of an interval, seconds.
    seconds: u64,
    /// When the first began.
    began: Instant,
    /// Answers in the present interval.
    completed: u64,
}

impl Intervals {
    /// The first begins now.
    pub fn new(seconds: u64) -> Self {
        Self { seconds, began: Instant::now(), completed: 0 }
    }

    /// Takes a second in; prints a line when it ends an interval. The last second of a run is
    /// seldom whole, and ends none then.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn add(&mut self, progress: &Progress, out: &mut impl Write) -> io::Result<()> {
        self.completed += progress.second.completed;
        let end = progress.second.second + 1;
        if !end.is_multiple_of(self.seconds) || self.began.elapsed() < Duration::from_secs(end) {
            return Ok(());
        }
        let completed = std::mem::take(&mut self.completed);
        dnsperf::print_interval(completed as f64 / self.seconds as f64, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonda_bench::data::Latency;
    use zonda_bench::load::{self, Second};

    /// A second with a thousand answers.
    fn progress(number: u64) -> Progress {
        let latency = Latency { percentiles: vec![(99.0, 123.4)], ..Latency::default() };
        let second = Second { second: number, sent: 1000, completed: 1000, lost: 0, latency };
        Progress { sent: 4000, completed: 3990, lost: 10, second, latencies: load::histogram() }
    }

    #[test]
    fn a_second_is_told_with_its_rate_loss_and_latency() {
        assert_eq!(words(&progress(3), None), "1000 queries/s, 0.250 % lost, p99 123 µs");
        let words = words(&progress(3), Some(2000.0));
        assert_eq!(words, "1000 of 2000 queries/s, 0.250 % lost, p99 123 µs");
    }

    #[test]
    fn an_interval_ends_with_its_last_whole_second() {
        let mut intervals = Intervals::new(2);
        intervals.began -= Duration::from_secs(5);
        let mut lines = Vec::new();
        for number in 0..6 {
            intervals.add(&progress(number), &mut lines).unwrap();
        }
        let lines = String::from_utf8(lines).unwrap();
        assert_eq!(lines.lines().count(), 2, "{lines}");
        assert!(lines.lines().all(|line| line.ends_with(": 1000.000000")), "{lines}");
    }
}
