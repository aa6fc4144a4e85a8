//! The thread that has targets probed and publishes what changes.

use super::lookups::Lookups;
use super::overrides::{ForcedState, MemberName, Override, matches, unix_seconds};
use super::states::MemberChange;
use super::{CheckMessages, Message, SharedStates};
use crate::publish::PublisherHandle;
use crate::state_directory;
use crate::watchdog::Watchdog;
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use zonda_health::{Limits, Observation, Outcome, Prober};

/// The name of the thread.
const THREAD: &str = "checks";
/// How long an operator's request waits until the answers are what it says.
const PUBLISH_MAX: Duration = Duration::from_secs(5);
/// Results that are taken together before what they change is published.
const BATCH_MAX: usize = 1024;

/// The checks of members, for the rest of the server.
#[derive(Clone)]
pub struct ChecksHandle {
    /// Probes the members.
    pub prober: Prober,
    /// The states of the members.
    pub states: SharedStates,
    messages: Sender<Message>,
    /// Held while overrides change, so that the file has what is in force.
    writing: Arc<Mutex<()>>,
    start: Instant,
}

impl ChecksHandle {
    /// Notes what an operator says about the members that a pattern `POOL/MEMBER` stands for, or
    /// takes back what was said, in the file of a state directory and then in the answers. Returns
    /// the members; none if the pattern stands for none. Blocks.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing has changed.
    pub fn set_override(
        &self,
        pattern: &str,
        said: Option<&Override>,
        (directory, action): (&Path, Value),
    ) -> io::Result<Vec<MemberName>> {
        let alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let (members, mut overrides) = {
            let states = self.states.lock();
            let is_meant =
                |(pool, member): &MemberName| matches(pattern, &format!("{pool}/{member}"));
            (states.member_names().filter(is_meant).collect::<Vec<_>>(), states.overrides().clone())
        };
        if members.is_empty() {
            return Ok(members);
        }
        overrides.set(&members, said, action);
        overrides.write(directory)?;
        let now = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.states.lock().set_overrides(overrides, (unix_seconds(), now));
        drop(alone); // the thread of the checks may be waiting for it
        let (sender, published) = sync_channel(1);
        if self.messages.send(Message::Publish(sender)).is_ok() {
            let _ = published.recv_timeout(PUBLISH_MAX); // else the log says why
        }
        Ok(members)
    }

    /// Notes loads, in percent, of the members that patterns `POOL/MEMBER` stand for, for so long,
    /// and has what they change be published soon; returns the number of members of each pattern.
    pub fn set_loads(&self, loads: &[(String, u32)], lasts: Duration) -> Vec<usize> {
        let until = self.start.elapsed().saturating_add(lasts).as_nanos();
        let until = u64::try_from(until).unwrap_or(u64::MAX);
        let counts = self.states.lock().set_loads(loads, until);
        let _ = self.messages.send(Message::Loaded); // without the thread nothing is steered
        counts
    }

    /// Ends the thread, and with it the probes.
    pub fn stop(&self) {
        let _ = self.prober.set_targets(Vec::new()); // no target is always possible
        let _ = self.messages.send(Message::Stop); // else it has ended
    }
}

/// The thread's work.
struct Checks {
    states: SharedStates,
    prober: Prober,
    publisher: PublisherHandle,
    /// The time from which the times of states count.
    start: Instant,
    /// Held while overrides change.
    writing: Arc<Mutex<()>>,
    /// Has names of members looked up.
    lookups: Lookups,
    /// When time changes the state of a member next.
    next_step: Option<Instant>,
}

/// Prepares the thread, whose probes run on the I/O runtime. The thread starts with the first pool:
/// a server without pools has none.
pub fn start(
    started_with: CheckMessages,
    publisher: PublisherHandle,
    runtime: &Handle,
    watchdog: &Arc<Watchdog>,
) -> ChecksHandle {
    let CheckMessages { states, sender, messages, first_pool } = started_with;
    let observed = sender.clone();
    let prober = Prober::new(runtime, Limits::default(), move |observation: &Observation| {
        let _ = observed.send(Message::Observed(observation.clone())); // else all ends
    });
    let start = Instant::now();
    let handle = ChecksHandle {
        prober: prober.clone(),
        states: states.clone(),
        messages: sender,
        writing: Arc::default(),
        start,
    };
    let writing = Arc::clone(&handle.writing);
    let watchdog = Arc::clone(watchdog);
    let lookups = Lookups::new(runtime.clone(), handle.messages.clone());
    runtime.spawn(async move {
        first_pool.notified().await;
        let next_step = None;
        let mut checks = Checks { states, prober, publisher, start, writing, lookups, next_step };
        let thread = watchdog.spawn(THREAD, move || {
            checks.configure();
            checks.run(&messages);
            true // it was told to
        });
        if let Err(error) = thread {
            tracing::error!(%error, "members are not checked");
        }
    });
    handle
}

impl Checks {
    /// Does what it is told until the server ends.
    fn run(&mut self, messages: &Receiver<Message>) {
        loop {
            let first = match self.next_step {
                None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(next) => messages.recv_timeout(next.saturating_duration_since(Instant::now())),
            };
            match first {
                Ok(first) => {
                    let more = messages.try_iter().take(BATCH_MAX - 1);
                    if !self.take(std::iter::once(first).chain(more)) {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => self.publish(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Takes messages, and notes what they say; whether the thread is to go on.
    fn take(&mut self, messages: impl Iterator<Item = Message>) -> bool {
        let mut observations = Vec::new();
        let (mut is_configured, mut has_addresses) = (false, false);
        let mut waiting = Vec::new();
        for message in messages {
            match message {
                Message::Configured => is_configured = true,
                Message::Loaded => {} // what has changed is published below
                Message::Addresses(pool, addresses) => {
                    tracing::info!(pool, ?addresses, "a name has these addresses");
                    has_addresses |= self.states.lock().set_addresses(&pool, addresses);
                }
                Message::Observed(observation) => observations.push(observation),
                Message::Publish(sender) => waiting.push(sender),
                Message::Stop => return false,
            }
        }
        if is_configured || has_addresses {
            self.configure();
        }
        if has_addresses {
            self.publish_all();
        }
        let now = self.now();
        let mut changes = Vec::new();
        let derived = {
            let mut states = self.states.lock();
            for Observation { id, counts_as_up, earliest_change, outcome, took, .. } in observations
            {
                if outcome.is_ok() {
                    states.observe_latency(id, took);
                }
                let change = states.observe(id, (counts_as_up, earliest_change), now);
                changes.extend(change.map(|change| (change, outcome)));
            }
            states.take_derived()
        };
        changes.iter().for_each(|(change, outcome)| log(change, outcome));
        derived.iter().for_each(log_derived);
        self.publish();
        for sender in waiting {
            let _ = sender.try_send(()); // it may have waited long enough
        }
        // Not before: it writes a file, and a member that is down does not answer anyway.
        let went_down = changes.iter().map(|(change, _)| change).chain(&derived);
        self.hold(went_down.filter(|change| !change.is_up && change.is_resumed_by_hand));
        true
    }

    /// Has members that went down answer again only when an operator says so. Of a member that an
    /// operator has said something about, that stays.
    fn hold<'c>(&self, changes: impl Iterator<Item = &'c MemberChange>) {
        let members: Vec<MemberName> =
            changes.map(|change| (change.pool.clone(), change.member.clone())).collect();
        if members.is_empty() {
            return;
        }
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, mut states) = (unix_seconds(), self.states.lock());
        let (mut overrides, directory) = (states.overrides().clone(), states.directory());
        for (pool, member) in members {
            if overrides.of((&pool, &member), since).is_some() {
                continue;
            }
            let said = Override {
                state: ForcedState::Held,
                since,
                until: None,
                reason: "it went down, and `resume` is manual".to_owned(),
                by: "zonda".to_owned(),
            };
            let action = json!({
                "at": since,
                "member": format!("{pool}/{member}"),
                "state": said.state.word(),
                "until": null,
                "reason": said.reason,
                "by": said.by,
            });
            tracing::warn!(pool, member, "member waits for `zonda pool resume`");
            overrides.set(&[(pool, member)], Some(&said), action);
        }
        states.set_overrides(overrides.clone(), (since, self.now()));
        drop(states);
        let written = directory
            .ok_or_else(|| "there is no state directory".to_owned())
            .and_then(|path| state_directory::make(&path).map(|()| path))
            .and_then(|path| overrides.write(&path).map_err(|error| error.to_string()));
        if let Err(error) = written {
            tracing::error!(%error, "a restart will forget which members wait");
        }
    }

    /// Has the targets of the present pools probed, and takes over the states of those that were
    /// probed before.
    fn configure(&mut self) {
        let (targets, lookups) = {
            let states = self.states.lock();
            (states.targets(), states.lookups())
        };
        self.lookups.set(lookups);
        if let Err(error) = self.prober.set_targets(targets) {
            tracing::error!(%error, "members are not checked");
            return;
        }
        let mut known = Vec::new();
        self.prober.each(|it| {
            known.push((it.id, (it.health.counts_as_up(), it.earliest_change)));
        });
        let (now, mut states) = (self.now(), self.states.lock());
        for (id, state) in known {
            let _ = states.observe(id, state, now);
        }
    }

    /// Publishes the plans of all pools.
    fn publish_all(&self) {
        let (epoch, plans) = {
            let states = self.states.lock();
            (states.epoch(), states.plans())
        };
        let plans = plans.into_iter().enumerate().map(|(number, plan)| (number as u32, plan));
        let _ = self.publisher.replace_pools(epoch, plans.collect()); // its failure is logged
    }

    /// Publishes the plans of pools that have changed.
    fn publish(&mut self) {
        let now = self.now();
        let (epoch, plans, next) = {
            let mut states = self.states.lock();
            let next = states.pass_time(now, unix_seconds());
            (states.epoch(), states.take_stale(), next)
        };
        self.next_step = next.map(|next| Instant::now() + next);
        if !plans.is_empty() {
            let _ = self.publisher.replace_pools(epoch, plans); // its failure is logged
        }
    }

    /// Nanoseconds since the thread was started.
    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Tells the administrator that a member went up or down.
fn log(change: &MemberChange, outcome: &Outcome) {
    let MemberChange { pool, member, is_up, .. } = change;
    match outcome {
        Ok(success) if *is_up => {
            tracing::info!(pool, member, result = %success, "member is up");
        }
        Ok(success) => tracing::warn!(pool, member, result = %success, "member is held down"),
        Err(fault) => tracing::warn!(pool, member, error = %fault, "member is down"),
    }
}

/// Tells the administrator that a member went up or down whose state depends on those of pools or
/// of members.
fn log_derived(change: &MemberChange) {
    let MemberChange { pool, member, is_up, .. } = change;
    match is_up {
        true => tracing::info!(pool, member, "member is up, as what it depends on is"),
        false => tracing::warn!(pool, member, "member is down, as what it depends on is"),
    }
}
