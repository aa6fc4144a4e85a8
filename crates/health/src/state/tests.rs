use super::*;
use crate::outcome::Proof;

/// Time between two probes of these tests.
const INTERVAL: Duration = Duration::from_secs(5);

/// A target with a clock that goes on by an interval with each probe.
struct Simulation {
    now: u64,
    health: Health,
}

impl Simulation {
    /// Returns a target that has not been probed yet.
    fn new(thresholds: Thresholds) -> Self {
        let now = 1_000_000_000;
        Self { now, health: Health::new(now, thresholds) }
    }

    /// Probes once; returns whether the state changed.
    fn probe(&mut self, is_success: bool) -> bool {
        self.now += nanos(INTERVAL);
        let took = Duration::from_millis(3);
        self.health.record(self.now, took, outcome(is_success)).is_some()
    }

    /// Probes with `+` for a success and `-` for a failure; returns the state behind each: `U`,
    /// `D`, or `?`.
    fn probes(&mut self, results: &str) -> String {
        let state = |result| {
            self.probe(result == '+');
            match self.health.state() {
                State::Up => 'U',
                State::Down => 'D',
                State::Unknown => '?',
            }
        };
        results.chars().map(state).collect()
    }
}

/// Returns the outcome of a probe.
fn outcome(is_success: bool) -> Outcome {
    if is_success { Ok(Proof::Connection.into()) } else { Err(Fault::Refused) }
}

/// Returns thresholds without damping.
fn thresholds(rise: u32, fall: u32, start: Start) -> Thresholds {
    Thresholds { rise, fall, start, damping: None }
}

#[test]
fn rise_successes_and_fall_failures_in_a_row_change_the_state() {
    let mut target = Simulation::new(thresholds(2, 3, Start::Up));
    assert_eq!(target.probes("+--+---+-++"), "UUUUUUDDDDU");
    assert_eq!(target.health.changes_total(), 3);
}

#[test]
fn a_first_result_that_agrees_with_start_decides_and_one_that_does_not_is_counted() {
    for (start, results, states) in [
        (Start::Up, "--+", "??U"),
        (Start::Up, "---", "??D"),
        (Start::Down, "+-+", "?DD"),
        (Start::Down, "++", "?U"),
    ] {
        let mut target = Simulation::new(thresholds(2, 3, start));
        assert_eq!(target.health.counts_as_up(), start == Start::Up);
        assert_eq!(target.probes(results), states, "{start:?} {results}");
    }
}

#[test]
fn thresholds_of_zero_are_those_of_one() {
    let mut target = Simulation::new(thresholds(0, 0, Start::Up));
    assert_eq!(target.probes("+-+-"), "UDUD");
}

#[test]
fn a_state_has_its_beginning_the_last_result_and_the_result_that_decided() {
    let mut target = Simulation::new(thresholds(1, 2, Start::Up));
    target.probes("+-");
    assert_eq!((target.health.state(), target.health.failures()), (State::Up, 1));
    target.probes("-");
    let decided_at = target.now;
    target.probes("--");
    let health = &target.health;
    assert_eq!((health.state(), health.since(), health.failures()), (State::Down, decided_at, 4));
    let last = health.last().unwrap();
    assert_eq!((last.at, last.took), (target.now, Duration::from_millis(3)));
    let change = health.changes().next_back().unwrap();
    assert_eq!((change.from, change.to, change.at), (State::Up, State::Down, decided_at));
    assert_eq!(change.why, Err(Fault::Refused));
}

#[test]
fn the_last_hundred_changes_are_stored_and_all_are_counted() {
    let mut target = Simulation::new(thresholds(1, 1, Start::Up));
    target.probes(&"+-".repeat(80));
    assert_eq!(target.health.changes_total(), 160);
    let changes: Vec<_> = target.health.changes().collect();
    assert_eq!(changes.len(), CHANGES_KEPT);
    assert!(changes.windows(2).all(|pair| pair[0].at < pair[1].at));
    assert_eq!(changes[CHANGES_KEPT - 1].at, target.now);
}

#[test]
fn the_earliest_change_is_the_remaining_probes_times_the_interval() {
    let mut target = Simulation::new(thresholds(2, 3, Start::Up));
    let earliest = |target: &Simulation| target.health.earliest_change(INTERVAL) / 5;
    assert_eq!(earliest(&target), Duration::from_secs(2), "the first probe comes at once");
    for (result, intervals) in
        [(true, 3), (false, 2), (false, 1), (true, 3), (false, 2), (false, 1), (false, 2)]
    {
        target.probe(result);
        assert_eq!(earliest(&target), Duration::from_secs(intervals));
    }
    target.probe(true);
    assert_eq!(earliest(&target), Duration::from_secs(1));
}

#[test]
fn no_change_comes_before_the_earliest_change() {
    for start in [Start::Up, Start::Down] {
        let mut target = Simulation::new(Thresholds {
            start,
            damping: Some(Damping {
                changes_max: 4,
                window: Duration::from_secs(300),
                stable: Duration::from_secs(40),
            }),
            ..Thresholds::default()
        });
        let mut random = 7_u32;
        let mut promise = 0;
        let mut held = 0;
        for _ in 0..20_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let counted_as_up = target.health.counts_as_up();
            // Runs of one result of some length, so that the state changes often.
            target.probe(random >> 30 != 0);
            if target.health.counts_as_up() != counted_as_up {
                assert!(target.now >= promise, "{} {promise}", target.now);
            }
            held += u32::from(target.health.held_until(target.now).is_some());
            promise = target.now + nanos(target.health.earliest_change(INTERVAL));
        }
        assert!(target.health.changes_total() > 100 && held > 100, "{start:?}: {held}");
    }
}

#[test]
fn a_target_that_flaps_is_held_down_until_it_is_stable() {
    let damping = Damping {
        changes_max: 4,
        window: Duration::from_secs(600),
        stable: Duration::from_secs(60),
    };
    let damped = Thresholds { damping: Some(damping), ..thresholds(1, 1, Start::Up) };
    let mut target = Simulation::new(damped);
    assert_eq!(target.probes("+-+-+"), "UDUDU", "the fourth change may still be up");
    assert_eq!(target.probes("-"), "D");
    // Held from here on: a success is no longer enough, and a failure begins the time anew.
    assert_eq!(target.probes("+++++-"), "DDDDDD");
    assert!(target.health.held_until(target.now).is_none(), "down for its own sake");
    assert_eq!(target.probes("+"), "D");
    let until = target.health.held_until(target.now).unwrap();
    assert_eq!(until, target.now + nanos(damping.stable));
    assert_eq!(target.health.earliest_change(INTERVAL), damping.stable);
    assert_eq!(target.probes("++++++++++++"), "DDDDDDDDDDDU");
    assert_eq!(target.now, until);
}

#[test]
fn changes_outside_the_window_are_forgotten() {
    let damping = Damping { changes_max: 2, window: Duration::from_secs(60), ..Damping::default() };
    let mut target =
        Simulation::new(Thresholds { damping: Some(damping), ..thresholds(1, 1, Start::Up) });
    assert_eq!(target.probes("+-"), "UD");
    assert_eq!(target.probes("-------------"), "DDDDDDDDDDDDD");
    assert_eq!(target.probes("+-"), "UD");
    assert_eq!(target.probes("+"), "D", "two changes within a minute");
}

#[test]
fn a_decision_needs_neither_rise_nor_fall_and_is_damped_all_the_same() {
    let damping = Damping { changes_max: 2, ..Damping::default() };
    let mut target =
        Simulation::new(Thresholds { damping: Some(damping), ..Thresholds::default() });
    let mut decide = |is_success, seconds: u64| {
        target.now += seconds * 1_000_000_000;
        target.health.decide(target.now, outcome(is_success)).map(|change| change.to)
    };
    assert_eq!(decide(true, 1), Some(State::Up));
    assert_eq!(decide(false, 1), Some(State::Down));
    assert_eq!(decide(true, 1), Some(State::Up));
    assert_eq!(decide(false, 1), Some(State::Down));
    assert_eq!(decide(true, 1), None);
    target.now += 119 * 1_000_000_000;
    assert!(target.health.pass_time(target.now).is_none());
    target.now += 1_000_000_000;
    let change = target.health.pass_time(target.now).map(|change| change.to);
    assert_eq!(change, Some(State::Up), "two minutes without a failure have passed");
}

#[test]
fn other_thresholds_leave_the_state_and_count_from_the_next_result_on() {
    let mut target = Simulation::new(thresholds(2, 3, Start::Up));
    target.probes("+--");
    target.health.set_thresholds(thresholds(2, 1, Start::Up));
    assert_eq!(target.health.state(), State::Up);
    assert_eq!(target.health.earliest_change(INTERVAL), INTERVAL);
    assert_eq!(target.probes("-"), "D");
}

#[test]
fn a_probe_that_this_machine_could_not_make_is_told_and_not_counted() {
    let mut target = Simulation::new(thresholds(1, 2, Start::Up));
    target.probes("+-");
    let local = || Err(Fault::Local("no socket for the probe".into()));
    for _ in 0..10 {
        assert!(target.health.record(target.now, Duration::ZERO, local()).is_none());
    }
    assert_eq!((target.health.state(), target.health.failures()), (State::Up, 1));
    assert_eq!(target.health.last().unwrap().outcome, local());
    assert_eq!(target.probes("-"), "D");
}
