//! Ramp: which rate a server holds, and how its latency grows until then.
//!
//! Rates rise by doubling until a step breaks a limit; then the span between the last rate that was
//! held and the first that was not is halved until it is small. Every step is a run on a schedule,
//! so that a server that falls behind shows it. A generator that falls behind breaks the same
//! limits: each step says which of the two fell behind.

use std::time::Duration;

use crate::data::Traffic;
use crate::load::limits::{BrokenLimit, Limits};
use crate::load::{self, End, LoadError, Mode, Outcome, Plan, Progress};

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    /// The first rate; queries per second, more than 0.
    pub from: f64,
    /// No rate is higher; at least `from`.
    pub to: f64,
    /// Duration of each step.
    pub step: Duration,
    /// Limits that a server must keep to hold a rate.
    pub limits: Limits,
    /// The search ends when the span is smaller than this share of its lower end; more than 0.
    pub precision: f64,
}

/// A run at one rate.
#[derive(Clone, Debug)]
pub struct Step {
    /// Queries per second, as scheduled.
    pub rate: f64,
    /// Result of the run.
    pub outcome: Outcome,
    /// Limits that were broken; none when the rate was held.
    pub broken: Vec<BrokenLimit>,
}

impl Step {
    /// Whether the server held the rate.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.broken.is_empty()
    }

    /// Whether the rate was not held and the server would have held it for all that is known: the
    /// generator was late, or had no room for replies, and every limit that broke is due to that.
    #[must_use]
    pub fn is_broken_by_generator(&self) -> bool {
        let Self { outcome, broken, .. } = self;
        let Traffic { sent, unsent, dropped_by_generator, .. } = outcome.traffic;
        let own_unsent = if outcome.is_generator_late() { unsent } else { 0 };
        let own_loss = (dropped_by_generator + own_unsent) as f64 / (sent + unsent).max(1) as f64;
        let lateness = outcome.lateness.as_ref().and_then(|lateness| lateness.percentile(99.0));
        let micros = |micros: f64| Duration::from_secs_f64(micros.max(0.0) / 1e6);
        let is_generators = |broken: &BrokenLimit| match broken {
            BrokenLimit::Loss(loss, limit) => loss - own_loss <= *limit,
            BrokenLimit::Unanswered(share, _) => share - own_loss <= 0.01,
            BrokenLimit::P99(found, limit) => {
                let own = lateness.map_or(Duration::ZERO, micros);
                outcome.is_generator_late() && found.saturating_sub(own) <= *limit
            }
            _ => false,
        };
        !broken.is_empty() && broken.iter().all(is_generators)
    }
}

/// An event during a search.
pub enum Event<'a> {
    /// A step begins, with this plan.
    Start(&'a Plan),
    /// A second of the step is over.
    Second(&'a Progress),
    /// A whole step is over.
    Step(&'a Step),
}

/// Searches the highest rate that is held; `watch` gets its events. Returns all steps by rate,
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

/// Returns the highest rate that was held below every rate that was not.
#[must_use]
pub fn highest_held(steps: &[Step]) -> Option<f64> {
    steps.iter().take_while(|step| step.is_held()).last().map(|step| step.rate)
}

/// Returns the lowest rate that was not held, if that was the generator's fault: the server may
/// hold it.
#[must_use]
pub fn end_of_generator(steps: &[Step]) -> Option<f64> {
    let first = steps.iter().find(|step| !step.is_held())?;
    first.is_broken_by_generator().then_some(first.rate)
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
    /// The lowest rate that was not held.
    failed: Option<f64>,
    /// The rate to try; nothing at the end.
    next: Option<f64>,
    /// Highest rate; see [`Ramp::to`].
    to: f64,
    /// Precision of the search; see [`Ramp::precision`].
    precision: f64,
}

impl Search {
    /// A search at the beginning of a ramp.
    fn new(ramp: &Ramp) -> Self {
        let Ramp { from, to, precision, .. } = *ramp;
        Self { held: 0.0, failed: None, next: Some(from), to, precision }
    }

    /// Returns the rate to try.
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
    use crate::data::Latency;
    use crate::load::outcome::Gatherer;

    /// Returns the rates that are tried at a server that holds up to `capacity`.
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

    /// Returns a step of which one query in a hundred was lost and that broke these limits.
    fn step(rate: f64, broken: &[BrokenLimit], change: impl Fn(&mut Outcome)) -> Step {
        let tail = |micros| {
            let percentiles = vec![(99.0, micros / 2.0), (99.9, micros)];
            Latency { percentiles, ..Latency::default() }
        };
        let mut outcome = Gatherer::new(0).finish(&[], 1.0);
        outcome.traffic = Traffic { sent: 1000, completed: 990, lost: 10, ..Traffic::default() };
        (outcome.latency, outcome.lateness) = (tail(1000.0), Some(tail(10.0)));
        change(&mut outcome);
        Step { rate, outcome, broken: broken.to_vec() }
    }

    #[test]
    fn a_limit_that_the_generator_broke_is_not_the_servers_fault() {
        let loss = BrokenLimit::Loss(0.01, 0.0015);
        let p99 = BrokenLimit::P99(Duration::from_micros(500), Duration::from_micros(250));
        let late = |outcome: &mut Outcome| {
            let lateness = outcome.lateness.as_mut().expect("it is set");
            lateness.percentiles = vec![(99.0, 300.0), (99.9, 600.0)];
        };
        let drop =
            |count| move |outcome: &mut Outcome| outcome.traffic.dropped_by_generator = count;
        let both = |outcome: &mut Outcome| {
            late(outcome);
            drop(10)(outcome);
        };
        let is_generators = |broken: &[BrokenLimit], change: &dyn Fn(&mut Outcome)| {
            step(1.0, broken, change).is_broken_by_generator()
        };
        assert!(!is_generators(&[], &both));
        assert!(is_generators(&[p99], &late) && !is_generators(&[p99], &drop(10)));
        let tight = BrokenLimit::P99(Duration::from_micros(500), Duration::from_micros(1));
        assert!(!is_generators(&[tight], &late), "without it, the limit would be broken, too");
        assert!(is_generators(&[loss], &drop(9)) && !is_generators(&[loss], &drop(8)));
        assert!(!is_generators(&[loss], &late));
        assert!(is_generators(&[loss, p99], &both) && !is_generators(&[loss, p99], &late));
        assert!(!is_generators(&[BrokenLimit::NoReply], &both));
        let unanswered = BrokenLimit::Unanswered(0.0185, Duration::from_millis(10));
        assert!(is_generators(&[unanswered], &drop(9)) && !is_generators(&[unanswered], &drop(8)));
        let unsent = |outcome: &mut Outcome| outcome.traffic.unsent = 250;
        let unsent_late = |outcome: &mut Outcome| {
            late(outcome);
            unsent(outcome);
        };
        let loss = BrokenLimit::Loss(0.2, 0.0015);
        assert!(is_generators(&[loss], &unsent_late) && !is_generators(&[loss], &unsent));
    }

    #[test]
    fn the_search_is_at_the_generators_end_when_its_first_failure_is() {
        let p99 = BrokenLimit::P99(Duration::from_micros(500), Duration::from_micros(250));
        let late = |outcome: &mut Outcome| outcome.lateness = Some(outcome.latency.clone());
        let (held, lost) = (step(1.0, &[], |_| {}), step(2.0, &[p99], |_| {}));
        let spoiled = step(3.0, &[p99], late);
        assert_eq!(end_of_generator(&[held.clone(), spoiled.clone()]), Some(3.0));
        assert_eq!(end_of_generator(&[held.clone(), lost, spoiled]), None);
        assert_eq!(end_of_generator(&[held]), None);
    }
}
