//! Targets, their probes and when these are due, without tasks and without a clock.
//!
//! # Invariants
//! - Each probe stands in the queue with the time at which it is due, whether it is under way or
//!   not. It may stand there with other times as well, which are passed over: at most once for each
//!   look at a pushed value.
//! - A probe is under way once at most.
//! - Each id has one probe, and each probe has an id.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use super::{
    Assignment, AssignmentCause, AssignmentError, Observation, Push, TargetId, TargetStatus,
};
use crate::check::{Kind, Target};
use crate::outcome::{Fault, Outcome, Proof};
use crate::probe::{Probe, TlsConfigs};
use crate::random::Random;
use crate::state::{Health, LastResult, State};

/// The part of the interval by which a probe is early or late at most.
const JITTER_PART: u64 = 20;
/// Time that each new target adds to that over which first probes are spread.
const FIRST_SPREAD: Duration = Duration::from_millis(1);
/// Characters of a pushed text that are stored.
const PUSHED_CHARS_MAX: usize = 200;
/// The shortest interval.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// The name of a probe, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProbeKey(u64);

/// What makes two probes the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Schedule {
    target: Target,
    interval: Duration,
    timeout: Duration,
}

/// A probe and the targets that share it.
#[derive(Debug)]
struct Entry {
    probe: Arc<Probe>,
    interval: Duration,
    timeout: Duration,
    ids: Vec<TargetId>,
    is_running: bool,
    /// Time at which the probe is due, nanoseconds.
    due: u64,
    /// The pushed value that stands for a probe, if the check takes one.
    pushed: Option<PushedValue>,
}

/// The value that stands for a probe.
#[derive(Debug, Default)]
struct PushedValue {
    /// Time at which the value expires; `None` before the first.
    expires_at: Option<u64>,
}

impl Entry {
    /// Returns the interval that a change of state needs for each result; none where a pushed value
    /// may come at any time.
    fn result_interval(&self) -> Duration {
        if self.pushed.is_some() { Duration::ZERO } else { self.interval }
    }

    /// Makes the observation of a result.
    fn observation(
        &self,
        id: TargetId,
        health: &Health,
        from: Option<State>,
    ) -> Option<Observation> {
        let LastResult { at, took, outcome } = health.last()?.clone();
        Some(Observation {
            id,
            at,
            took,
            outcome,
            state: health.state(),
            changed_from: from,
            counts_as_up: health.counts_as_up(),
            earliest_change: health.earliest_change(self.result_interval()),
        })
    }
}

/// A target of the caller.
#[derive(Debug)]
struct Subject {
    key: ProbeKey,
    health: Health,
}

/// A probe that is to start.
pub struct Start {
    /// Name of the probe.
    pub key: ProbeKey,
    /// The probe itself.
    pub probe: Arc<Probe>,
    /// Time after which it has failed.
    pub timeout: Duration,
    /// The right to be under way.
    pub permit: OwnedSemaphorePermit,
}

/// What to wait for when no probe can start now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// For other targets, as there is none.
    Nothing,
    /// For this time, at which a probe is due.
    At(u64),
    /// For the end of a probe, as there are too many under way.
    Permit,
}

/// All targets of a prober.
#[derive(Debug)]
pub struct Table {
    probes: HashMap<ProbeKey, Entry>,
    keys: HashMap<Schedule, ProbeKey>,
    subjects: HashMap<TargetId, Subject>,
    /// The probes that take pushed values, by the name of the value.
    names: HashMap<Box<str>, Vec<ProbeKey>>,
    /// When each probe is due, the next one first.
    queue: BinaryHeap<Reverse<(u64, ProbeKey)>>,
    next_key: u64,
    random: Random,
    /// Number of probes left out as the one before was under way still.
    skipped: u64,
}

impl Table {
    /// Makes a table without targets.
    pub fn new(random: Random) -> Self {
        Self {
            probes: HashMap::new(),
            keys: HashMap::new(),
            subjects: HashMap::new(),
            names: HashMap::new(),
            queue: BinaryHeap::new(),
            next_key: 0,
            random,
            skipped: 0,
        }
    }

    /// Replaces the targets; see [`Prober::set_targets`](super::Prober::set_targets).
    pub fn assign(
        &mut self,
        now: u64,
        assignments: Vec<Assignment>,
    ) -> Result<(), AssignmentError> {
        let new_probes = self.new_probes(&assignments)?;
        let spread = FIRST_SPREAD * u32::try_from(new_probes.len()).unwrap_or(u32::MAX);
        let old_subjects = std::mem::take(&mut self.subjects);
        let states = States::of(&old_subjects, &self.probes);
        let mut healths = Vec::with_capacity(assignments.len());
        for Assignment { id, target, timing } in &assignments {
            let mut health = match states.find(*id, target) {
                Some(health) => health.clone(),
                None => Health::new(now, timing.thresholds),
            };
            health.set_thresholds(timing.thresholds);
            healths.push(health);
        }
        self.probes.values_mut().for_each(|entry| entry.ids.clear());
        for (schedule, probe) in new_probes {
            let wait = match schedule.target.check.kind {
                Kind::Push(_) => nanos(schedule.interval), // for the first value
                _ => self.random.below(nanos(spread.min(schedule.interval))),
            };
            self.add(schedule, probe, now + wait);
        }
        for (Assignment { id, target, timing }, health) in assignments.into_iter().zip(healths) {
            let key = self.keys[&schedule(target, timing.interval, timing.timeout)];
            self.probes.get_mut(&key).expect("each key has its probe").ids.push(id);
            self.subjects.insert(id, Subject { key, health });
        }
        self.probes.retain(|_, entry| !entry.ids.is_empty());
        self.keys.retain(|_, key| self.probes.contains_key(key));
        self.queue.retain(|Reverse((_, key))| self.probes.contains_key(key));
        self.names.clear();
        for (key, entry) in &self.probes {
            if let Kind::Push(check) = &entry.probe.target().check.kind {
                self.names.entry(check.name.clone()).or_default().push(*key);
            }
        }
        Ok(())
    }

    /// Makes the probes that there are not yet.
    fn new_probes(
        &self,
        assignments: &[Assignment],
    ) -> Result<HashMap<Schedule, Probe>, AssignmentError> {
        let mut configs = TlsConfigs::default();
        let (mut ids, mut probes) = (HashSet::new(), HashMap::new());
        for Assignment { id, target, timing } in assignments {
            let error = |cause| AssignmentError { id: *id, cause };
            if !ids.insert(*id) {
                return Err(error(AssignmentCause::Duplicate));
            }
            let schedule = schedule(target.clone(), timing.interval, timing.timeout);
            if !self.keys.contains_key(&schedule) && !probes.contains_key(&schedule) {
                let probe = Probe::with_configs(target, &mut configs)
                    .map_err(|cause| error(AssignmentCause::Tls(cause)))?;
                probes.insert(schedule, probe);
            }
        }
        Ok(probes)
    }

    /// Adds a probe.
    fn add(&mut self, schedule: Schedule, probe: Probe, due: u64) {
        let key = ProbeKey(self.next_key);
        self.next_key += 1;
        let takes_value = matches!(schedule.target.check.kind, Kind::Push(_));
        let entry = Entry {
            probe: Arc::new(probe),
            interval: schedule.interval,
            timeout: schedule.timeout,
            ids: Vec::new(),
            is_running: false,
            due,
            pushed: takes_value.then(PushedValue::default),
        };
        self.probes.insert(key, entry);
        self.keys.insert(schedule, key);
        self.queue.push(Reverse((due, key)));
    }

    /// Starts the probes that are due, as many as get a permit, and looks at pushed values; returns
    /// what to wait for then.
    pub fn start_due(
        &mut self,
        now: u64,
        mut permit: impl FnMut() -> Option<OwnedSemaphorePermit>,
        starts: &mut Vec<Start>,
        observations: &mut Vec<Observation>,
    ) -> Next {
        while let Some(&Reverse((due, key))) = self.queue.peek() {
            if due > now {
                return Next::At(due);
            }
            let entry = self.probes.get_mut(&key).filter(|entry| entry.due == due);
            let Some(entry) = entry else {
                self.queue.pop();
                continue;
            };
            if entry.pushed.is_some() {
                self.queue.pop();
                self.look(key, now, observations);
                continue;
            }
            if entry.is_running {
                self.skipped += 1;
            } else {
                let Some(permit) = permit() else { return Next::Permit };
                entry.is_running = true;
                let (probe, timeout) = (Arc::clone(&entry.probe), entry.timeout);
                starts.push(Start { key, probe, timeout, permit });
            }
            let interval = nanos(entry.interval);
            self.queue.pop();
            let next = next_due(due, now, interval, &mut self.random);
            entry.due = next;
            self.queue.push(Reverse((next, key)));
        }
        Next::Nothing
    }

    /// Looks whether a pushed value has expired, or whether a target that was held may come up.
    fn look(&mut self, key: ProbeKey, now: u64, observations: &mut Vec<Observation>) {
        let Some(entry) = self.probes.get_mut(&key) else { return };
        let expires_at = entry.pushed.as_ref().and_then(|value| value.expires_at);
        let fault = match expires_at {
            None => Some(Fault::NeverPushed),
            Some(at) if at <= now => Some(Fault::Expired),
            Some(_) => None,
        };
        let interval_end = now.saturating_add(nanos(entry.interval));
        let ahead = expires_at.filter(|at| *at > now).unwrap_or(u64::MAX);
        entry.due = interval_end.min(ahead);
        self.queue.push(Reverse((entry.due, key)));
        let entry = &self.probes[&key];
        for id in &entry.ids {
            let Some(subject) = self.subjects.get_mut(id) else { continue };
            let health = &mut subject.health;
            let from = match &fault {
                Some(fault) => health.decide(now, Err(fault.clone())).map(|change| change.from),
                None => match health.pass_time(now).map(|change| change.from) {
                    None => continue,
                    change => change,
                },
            };
            observations.extend(entry.observation(*id, health, from));
        }
    }

    /// Records a pushed value for the targets that take it; returns how many there are.
    pub fn push(
        &mut self,
        now: u64,
        push: &Push<'_>,
        observations: &mut Vec<Observation>,
    ) -> usize {
        let text: Box<str> = push.text.chars().take(PUSHED_CHARS_MAX).collect::<String>().into();
        let outcome = match push.is_up {
            true => Ok(Proof::Pushed(text).into()),
            false => Err(Fault::Pushed(text)),
        };
        let expires_at = now.saturating_add(nanos(push.expires_in));
        let before = observations.len();
        for key in self.names.get(push.name).into_iter().flatten() {
            let Some(entry) = self.probes.get_mut(key) else { continue };
            if push.address.is_some_and(|address| address != entry.probe.target().address) {
                continue;
            }
            entry.pushed = Some(PushedValue { expires_at: Some(expires_at) });
            if expires_at < entry.due {
                entry.due = expires_at;
                self.queue.push(Reverse((expires_at, *key)));
            }
            for id in &entry.ids {
                let Some(subject) = self.subjects.get_mut(id) else { continue };
                let health = &mut subject.health;
                let from = health.decide(now, outcome.clone()).map(|change| change.from);
                observations.extend(entry.observation(*id, health, from));
            }
        }
        observations.len() - before
    }

    /// Records the outcome of a probe for all its targets.
    pub fn finish(
        &mut self,
        key: ProbeKey,
        now: u64,
        took: Duration,
        outcome: &Outcome,
        observations: &mut Vec<Observation>,
    ) {
        let Some(entry) = self.probes.get_mut(&key) else { return };
        entry.is_running = false;
        for id in &entry.ids {
            let Some(subject) = self.subjects.get_mut(id) else { continue };
            let health = &mut subject.health;
            let from = health.record(now, took, outcome.clone()).map(|change| change.from);
            observations.extend(entry.observation(*id, health, from));
        }
    }

    /// Returns the health of a target.
    pub fn health(&self, id: TargetId) -> Option<&Health> {
        self.subjects.get(&id).map(|subject| &subject.health)
    }

    /// Returns all targets, in no order.
    pub fn statuses(&self) -> impl Iterator<Item = TargetStatus<'_>> {
        self.subjects.iter().filter_map(|(id, Subject { key, health })| {
            let entry = self.probes.get(key)?;
            let earliest_change = health.earliest_change(entry.result_interval());
            Some(TargetStatus { id: *id, target: entry.probe.target(), health, earliest_change })
        })
    }

    /// Returns the number of the caller's targets.
    pub fn target_count(&self) -> usize {
        self.subjects.len()
    }

    /// Returns the number of different probes.
    pub fn probe_count(&self) -> usize {
        self.probes.len()
    }

    /// Returns the number of probes that were left out.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }
}

/// The states of targets before they are replaced.
struct States<'t> {
    subjects: &'t HashMap<TargetId, Subject>,
    probes: &'t HashMap<ProbeKey, Entry>,
    /// One id of each target, for those whose id changes.
    ids: HashMap<&'t Target, TargetId>,
}

impl<'t> States<'t> {
    /// Returns the states of these targets.
    fn of(subjects: &'t HashMap<TargetId, Subject>, probes: &'t HashMap<ProbeKey, Entry>) -> Self {
        let first = |entry: &'t Entry| Some((entry.probe.target(), *entry.ids.first()?));
        Self { subjects, probes, ids: probes.values().filter_map(first).collect() }
    }

    /// Returns the state of a target, preferably under the same id.
    fn find(&self, id: TargetId, target: &Target) -> Option<&'t Health> {
        let is_same = |subject: &&Subject| {
            self.probes.get(&subject.key).is_some_and(|entry| entry.probe.target() == target)
        };
        let same_id = self.subjects.get(&id).filter(is_same);
        let subject = same_id.or_else(|| self.subjects.get(self.ids.get(target)?))?;
        Some(&subject.health)
    }
}

/// Returns what makes a probe the same as another.
fn schedule(target: Target, interval: Duration, timeout: Duration) -> Schedule {
    Schedule { target, interval: interval.max(INTERVAL_MIN), timeout }
}

/// Returns when a probe is due again: an interval after it was due, so that the average is right
/// whatever the jitter; after now, if that has passed.
fn next_due(due: u64, now: u64, interval: u64, random: &mut Random) -> u64 {
    let jitter = interval / JITTER_PART;
    let after = if due + interval > now { due } else { now };
    after + interval - jitter + random.below(2 * jitter + 1)
}

/// Returns a duration in nanoseconds, at most a century.
fn nanos(duration: Duration) -> u64 {
    const CENTURY_NANOS: u64 = 100 * 365 * 86_400 * 1_000_000_000;
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).min(CENTURY_NANOS)
}

#[cfg(test)]
mod tests;
