//! Ramp: which rate a server holds, and how its latency grows until then.
//!
//! Rates rise by doubling until a step breaks a limit; then the span between the last rate that was
//! held and the first that was not is halved until it is small. Every step is a run on a schedule,
//! so that a server that falls behind shows it.

use std::time::Duration;

use crate::load::limits::{Broken, Limits};
use crate::load::{self, End, LoadError, Mode, Outcome, Plan, Progress};

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    /// The first rate; queries per second, more than 0.
    pub from: f64,
    /// No rate is higher; at least `from`.
    pub to: f64,
    /// How long each rate is held.
    pub step: Duration,
    /// What a server must keep to hold a rate.
    pub limits: Limits,
    /// The search ends when the span is smaller than this share of its lower end; more than 0.
    pub precision: f64,
}

/// One rate.
#[derive(Clone, Debug)]
pub struct Step {
    /// Queries per second, as scheduled.
    pub rate: f64,
    /// What came of it.
    pub outcome: Outcome,
    /// The limits that it broke; none when the rate was held.
    pub broken: Vec<Broken>,
}

impl Step {
    /// Whether the server held the rate.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.broken.is_empty()
    }
}

/// What is told during a search.
pub enum Event<'a> {
    /// A step begins, with this plan.
    Start(&'a Plan),
    /// A second of it is over.
    Second(&'a Progress),
    /// All of it is.
    Step(&'a Step),
}

/// Searches the highest rate that is held; `watch` is told how it goes. Returns all steps by rate,
/// which is the curve of latency against load. When the plan is stopped, the step at which that
/// happens does not count.
///
/// # Errors
/// When a step cannot be run.
pub fn run(
    plan: &Plan,
    ramp: &Ramp,
    watch: &mut dyn FnMut(Event<'_>),
) -> Result<Vec<Step>, LoadError> {
    let mut steps = Vec::new();
    let mut search = Search::new(ramp);
    while let Some(rate) = search.rate() {
        let step = hold(plan, ramp, rate, watch)?;
        if step.outcome.is_interrupted {
            break;
        }
        watch(Event::Step(&step));
        search.learn(step.is_held());
        steps.push(step);
    }
    steps.sort_by(|one, other| one.rate.total_cmp(&other.rate));
    Ok(steps)
}

/// The highest rate that was held below every rate that was not.
#[must_use]
pub fn highest_held(steps: &[Step]) -> Option<f64> {
    steps.iter().take_while(|step| step.is_held()).last().map(|step| step.rate)
}

/// Runs one step.
fn hold(
    plan: &Plan,
    ramp: &Ramp,
    rate: f64,
    watch: &mut dyn FnMut(Event<'_>),
) -> Result<Step, LoadError> {
    let mut plan = plan.clone();
    plan.mode = Mode::Open { rate };
    plan.end = End { after: Some(ramp.step), ..End::default() };
    watch(Event::Start(&plan));
    let outcome = load::run(&plan, Some(&mut |second| watch(Event::Second(second))))?;
    let broken = ramp.limits.broken_by(&outcome);
    Ok(Step { rate, outcome, broken })
}

/// Where the search stands.
struct Search {
    /// The highest rate that was held; 0 at first.
    held: f64,
    /// The lowest that was not.
    failed: Option<f64>,
    /// The rate to try; nothing at the end.
    next: Option<f64>,
    /// See [`Ramp::to`].
    to: f64,
    /// See [`Ramp::precision`].
    precision: f64,
}

impl Search {
    /// At its beginning.
    fn new(ramp: &Ramp) -> Self {
        let Ramp { from, to, precision, .. } = *ramp;
        Self { held: 0.0, failed: None, next: Some(from), to, precision }
    }

    /// The rate to try.
    fn rate(&self) -> Option<f64> {
        self.next
    }

    /// Takes in whether that rate was held.
    fn learn(&mut self, is_held: bool) {
        let Some(rate) = self.next else { return };
        if is_held {
            self.held = rate;
        } else {
            self.failed = Some(rate);
        }
        self.next = match self.failed {
            None if rate < self.to => Some((rate * 2.0).min(self.to)),
            // A server that fails at the first rate is not looked at below it.
            Some(failed) if self.held > 0.0 && failed - self.held > self.held * self.precision => {
                Some(((self.held + failed) / 2.0).round())
            }
            _ => None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rates that are tried at a server that holds up to `capacity`.
    fn rates(capacity: f64) -> Vec<f64> {
        let ramp = Ramp {
            from: 1000.0,
            to: 20_000.0,
            step: Duration::from_secs(1),
            limits: Limits::default(),
            precision: 0.1,
        };
        let mut search = Search::new(&ramp);
        let mut tried = Vec::new();
        while let Some(rate) = search.rate() {
            tried.push(rate);
            search.learn(rate <= capacity);
        }
        tried
    }

    #[test]
    fn rates_double_until_one_is_not_held_and_close_in_from_there() {
        assert_eq!(rates(5100.0), [1000.0, 2000.0, 4000.0, 8000.0, 6000.0, 5000.0, 5500.0]);
    }

    #[test]
    fn the_search_ends_at_its_bounds() {
        assert_eq!(rates(10.0), [1000.0]);
        assert_eq!(rates(1e9), [1000.0, 2000.0, 4000.0, 8000.0, 16_000.0, 20_000.0]);
    }
}
