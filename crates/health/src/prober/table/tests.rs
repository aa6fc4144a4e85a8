use std::net::Ipv4Addr;

use tokio::sync::Semaphore;

use super::*;
use crate::check::{Check, Kind, PushCheck};
use crate::outcome::{Fault, Proof};
use crate::prober::Timing;
use crate::state::{Start as StartState, State, Thresholds};

/// A second in nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// A table with a clock that the test sets.
struct Simulation {
    now: u64,
    table: Table,
    permits: Arc<Semaphore>,
    /// What was observed by looks at pushed values.
    looks: Vec<Observation>,
}

impl Simulation {
    /// Returns a table without targets.
    fn new(concurrent_max: usize) -> Self {
        let permits = Arc::new(Semaphore::new(concurrent_max));
        Self {
            now: 1_000 * SECOND,
            table: Table::new(Random::seeded(7)),
            permits,
            looks: Vec::new(),
        }
    }

    /// Replaces the targets.
    fn assign(&mut self, assignments: Vec<Assignment>) {
        self.table.assign(self.now, assignments).unwrap();
    }

    /// Starts what is due now.
    fn start(&mut self) -> (Vec<Start>, Next) {
        let mut starts = Vec::new();
        let permits = Arc::clone(&self.permits);
        let permit = || Arc::clone(&permits).try_acquire_owned().ok();
        let next = self.table.start_due(self.now, permit, &mut starts, &mut self.looks);
        (starts, next)
    }

    /// Ends a probe.
    fn finish(&mut self, start: Start, outcome: &Outcome) -> Vec<Observation> {
        let mut observations = Vec::new();
        let took = Duration::from_millis(1);
        self.table.finish(start.key, self.now, took, outcome, &mut observations);
        observations
    }

    /// Goes on until a time; probes end at once, so. Returns all observations.
    fn run(&mut self, until: u64, outcome: &Outcome) -> Vec<Observation> {
        let mut observations = Vec::new();
        loop {
            let (starts, next) = self.start();
            for start in starts {
                observations.extend(self.finish(start, outcome));
            }
            match next {
                Next::At(due) if due <= until => self.now = due,
                Next::Permit => {}
                _ => break self.now = until,
            }
        }
        observations
    }
}

/// Returns an assignment of a target with this last octet of its address.
fn assignment(id: u64, octet: u8) -> Assignment {
    let check = Arc::new(Check::from(Kind::Tcp));
    let target = Target { address: Ipv4Addr::new(192, 0, 2, octet).into(), port: 80, check };
    Assignment { id: TargetId(id), target, timing: Timing::default() }
}

/// Returns what a healthy target gives.
fn success() -> Outcome {
    Ok(Proof::Connection.into())
}

#[test]
fn a_target_of_several_ids_is_probed_once_and_each_id_has_its_thresholds() {
    let mut simulation = Simulation::new(10);
    let strict = Thresholds { rise: 1, fall: 1, start: StartState::Up, damping: None };
    let mut other = assignment(2, 1);
    other.timing.thresholds = strict;
    // The same target at another interval is another probe.
    let mut often = assignment(3, 1);
    often.timing.interval = Duration::from_secs(1);
    simulation.assign(vec![assignment(1, 1), other, often]);
    assert_eq!((simulation.table.target_count(), simulation.table.probe_count()), (3, 2));
    simulation.now += SECOND;
    let (starts, _) = simulation.start();
    assert_eq!(starts.len(), 2);
    let mut states: Vec<_> = starts
        .into_iter()
        .flat_map(|start| simulation.finish(start, &Err(Fault::Refused)))
        .map(|it| (it.id.0, it.state))
        .collect();
    states.sort_by_key(|it| it.0);
    assert_eq!(states, [(1, State::Unknown), (2, State::Down), (3, State::Unknown)]);
}

#[test]
fn first_probes_are_spread_and_all_targets_are_probed_at_their_interval() {
    let mut simulation = Simulation::new(10_000);
    let begun = simulation.now;
    let check = Arc::new(Check::from(Kind::Tcp));
    let assign = |id: u16| {
        let address = Ipv4Addr::from(0x0a00_0000 + u32::from(id)).into();
        let target = Target { address, port: 80, check: Arc::clone(&check) };
        Assignment { id: TargetId(id.into()), target, timing: Timing::default() }
    };
    simulation.assign((0..2_000).map(assign).collect());
    let first = simulation.run(begun + SECOND, &success());
    assert!((900..1_100).contains(&first.len()), "2,000 within 2 s: {}", first.len());
    let all = simulation.run(begun + 1_000 * SECOND, &success());
    let all = [first, all].concat();
    assert!((398_000..402_000).contains(&all.len()), "{}", all.len());
    let mut times = vec![Vec::new(); 2_000];
    all.iter().for_each(|it| times[it.id.0 as usize].push(it.at));
    for times in times {
        for pair in times.windows(2) {
            let interval = pair[1] - pair[0];
            assert!((4_750_000_000..=5_250_000_000).contains(&interval), "{interval}");
        }
    }
}

#[test]
fn a_target_that_stays_keeps_its_state_and_its_place_also_under_another_id() {
    let mut simulation = Simulation::new(10);
    simulation.assign(vec![assignment(1, 1), assignment(2, 2)]);
    simulation.run(simulation.now + 60 * SECOND, &success());
    let since =
        |simulation: &Simulation, id| simulation.table.health(TargetId(id)).unwrap().since();
    let (first, second) = (since(&simulation, 1), since(&simulation, 2));
    let (_, next) = simulation.start();
    simulation.assign(vec![assignment(2, 1), assignment(1, 2), assignment(3, 2)]);
    assert_eq!((since(&simulation, 2), since(&simulation, 1)), (first, second));
    assert_eq!(since(&simulation, 3), second, "a second id of a target begins as the first is");
    assert_eq!(simulation.table.probe_count(), 2);
    assert_eq!(simulation.start().1, next);
    // Other thresholds leave the state as well, another target under the id does not.
    let mut changed = assignment(2, 1);
    changed.timing.thresholds.fall = 1;
    simulation.assign(vec![changed, assignment(1, 9)]);
    assert_eq!(since(&simulation, 2), first);
    assert_eq!(simulation.table.health(TargetId(1)).unwrap().state(), State::Unknown);
    assert!(simulation.table.health(TargetId(3)).is_none());
    let observed = simulation.run(simulation.now + 6 * SECOND, &Err(Fault::Refused));
    assert!(observed.iter().any(|it| it.id == TargetId(2) && it.state == State::Down));
}

#[test]
fn the_result_of_a_target_that_has_gone_is_dropped() {
    let mut simulation = Simulation::new(10);
    simulation.assign(vec![assignment(1, 1)]);
    simulation.now += SECOND;
    let (mut starts, _) = simulation.start();
    simulation.assign(vec![assignment(1, 2)]);
    assert!(simulation.finish(starts.remove(0), &success()).is_empty());
    simulation.assign(Vec::new());
    assert_eq!(simulation.start().1, Next::Nothing);
    assert_eq!(simulation.table.probe_count(), 0);
}

#[test]
fn a_probe_that_is_under_way_still_is_not_begun_again() {
    let mut simulation = Simulation::new(10);
    simulation.assign(vec![assignment(1, 1)]);
    simulation.now += SECOND;
    let (mut starts, _) = simulation.start();
    for skipped in 1..4 {
        simulation.now += 6 * SECOND;
        assert!(simulation.start().0.is_empty());
        assert_eq!(simulation.table.skipped(), skipped);
    }
    simulation.finish(starts.remove(0), &success());
    simulation.now += 6 * SECOND;
    assert_eq!(simulation.start().0.len(), 1);
}

#[test]
fn probes_beyond_the_limit_wait_for_the_end_of_another() {
    let mut simulation = Simulation::new(2);
    simulation.assign((1..=3).map(|octet| assignment(octet.into(), octet)).collect());
    simulation.now += SECOND;
    let (mut starts, next) = simulation.start();
    assert_eq!((starts.len(), next), (2, Next::Permit));
    assert!(simulation.start().0.is_empty());
    simulation.finish(starts.remove(0), &success());
    let (starts, next) = simulation.start();
    assert_eq!(starts.len(), 1);
    assert!(matches!(next, Next::At(_)), "{next:?}");
}

#[test]
fn two_assignments_of_one_id_are_refused_and_nothing_changes() {
    let mut simulation = Simulation::new(2);
    simulation.assign(vec![assignment(1, 1)]);
    let error = simulation.table.assign(0, vec![assignment(2, 2), assignment(2, 3)]).unwrap_err();
    assert_eq!(error.to_string(), "two targets have the id 2");
    assert!(simulation.table.health(TargetId(1)).is_some());
    assert!(simulation.table.health(TargetId(2)).is_none());
}

#[test]
fn a_schedule_that_is_far_behind_does_not_catch_up() {
    let mut random = Random::seeded(1);
    let next = next_due(SECOND, 100 * SECOND, 5 * SECOND, &mut random);
    assert!((104_750_000_000..=105_250_000_000).contains(&next), "{next}");
}

/// Returns an assignment that takes values of the name `deploy`.
fn pushed(id: u64, octet: u8) -> Assignment {
    let mut assignment = assignment(id, octet);
    let kind = Kind::Push(PushCheck { name: "deploy".into() });
    assignment.target.check = Arc::new(Check::from(kind));
    assignment
}

impl Simulation {
    /// Pushes a value that holds for some seconds; returns the states of the targets it is for.
    fn push(&mut self, is_up: bool, address: Option<&str>, seconds: u64) -> Vec<(u64, State)> {
        let address = address.map(|it| it.parse().unwrap());
        let expires_in = Duration::from_secs(seconds);
        let push = Push { name: "deploy", address, is_up, text: "", expires_in };
        let mut observations = Vec::new();
        self.table.push(self.now, &push, &mut observations);
        states(&observations)
    }

    /// Goes on until a time; returns the states that looks at pushed values brought.
    fn looks(&mut self, seconds: u64) -> Vec<(u64, State)> {
        self.looks.clear();
        self.run(self.now + seconds * SECOND, &success());
        states(&self.looks)
    }
}

/// Returns the states of observations, by id.
fn states(observations: &[Observation]) -> Vec<(u64, State)> {
    let mut states: Vec<_> = observations.iter().map(|it| (it.id.0, it.state)).collect();
    states.sort_by_key(|it| it.0);
    states
}

#[test]
fn a_pushed_value_decides_at_once_and_expires() {
    let mut simulation = Simulation::new(10);
    simulation.assign(vec![pushed(1, 1)]);
    assert_eq!(simulation.push(true, None, 12), [(1, State::Up)]);
    assert_eq!(simulation.looks(11), []);
    assert_eq!(simulation.push(true, None, 12), [(1, State::Up)], "in time");
    assert_eq!(simulation.looks(11), []);
    assert_eq!(simulation.looks(1), [(1, State::Down)], "the moment that it expires");
    assert_eq!(simulation.looks[0].outcome, Err(Fault::Expired));
    assert_eq!(simulation.push(true, None, 60), [(1, State::Up)]);
    assert_eq!(simulation.push(false, None, 60), [(1, State::Down)]);
}

#[test]
fn a_value_that_holds_for_less_than_the_interval_expires_in_time_as_well() {
    let mut simulation = Simulation::new(10);
    simulation.assign(vec![pushed(1, 1)]);
    for _ in 0..1_000 {
        assert_eq!(simulation.push(true, None, 1), [(1, State::Up)]);
    }
    assert!(simulation.table.queue.len() <= 2, "{}", simulation.table.queue.len());
    assert_eq!(simulation.looks(1), [(1, State::Down)]);
}

#[test]
fn a_value_that_was_never_pushed_makes_a_target_down_after_an_interval() {
    let mut simulation = Simulation::new(10);
    simulation.assign(vec![pushed(1, 1)]);
    assert_eq!(simulation.looks(4), []);
    assert_eq!(simulation.looks(2), [(1, State::Down)]);
    assert_eq!(simulation.looks[0].outcome, Err(Fault::NeverPushed));
}

#[test]
fn a_value_is_for_all_targets_of_the_check_or_for_one_address() {
    let mut simulation = Simulation::new(10);
    simulation.assign(vec![pushed(1, 1), pushed(2, 2), assignment(3, 1)]);
    assert_eq!(simulation.push(true, None, 60), [(1, State::Up), (2, State::Up)]);
    assert_eq!(simulation.push(false, Some("192.0.2.2"), 60), [(2, State::Down)]);
    assert_eq!(simulation.push(false, Some("192.0.2.9"), 60), []);
    simulation.assign(vec![assignment(3, 1)]);
    assert_eq!(simulation.push(true, None, 60), []);
}

#[test]
fn a_pushed_target_that_flaps_comes_up_once_it_was_stable() {
    let mut simulation = Simulation::new(10);
    simulation.assign(vec![pushed(1, 1)]);
    for _ in 0..10 {
        simulation.push(true, None, 600);
        simulation.push(false, None, 600);
    }
    assert_eq!(simulation.push(true, None, 600), [(1, State::Down)]);
    assert_eq!(simulation.looks(119), []);
    assert_eq!(simulation.looks(6), [(1, State::Up)]);
}
