//! Pools and the names that are steered to them.
//!
//! | file | what it holds |
//! |---|---|
//! | `member` | what is known about a member, and what it counts as |
//! | `states` | the states of all members, and the plans that follow from them |
//! | `overrides` | what operators have said about members, and the file that holds it |
//! | `lookups` | the names of members whose addresses are followed |
//! | `checks` | the thread that has targets probed and publishes what changes |
//!
//! The publisher has the names and the plans that workers read. The states are shared by the
//! publisher, which changes the pools at a reload, and the thread of the checks: each takes the
//! lock for a moment, and no query does.

pub mod checks;
mod lookups;
mod member;
pub mod overrides;
pub mod states;

use crate::state_directory;
use overrides::{Overrides, unix_seconds};
use states::PoolStates;
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use zonda_balance::PoolPlan;
use zonda_config::{Config, PoolConfig, SteerRule};
use zonda_engine::steering::{PoolLabels, SteeredNames, SteeredSet, Steering};
use zonda_health::Observation;
use zonda_wire::Name;
use zonda_zone::HashSeed;

/// What the thread of the checks is told.
pub enum Message {
    /// The pools have changed.
    Configured,
    /// A target was probed.
    Observed(Observation),
    /// Loads of members were told.
    Loaded,
    /// The name that a pool looks up has these addresses.
    Addresses(String, Vec<IpAddr>),
    /// Operators have said something about members; the sender waits until it is published.
    Publish(SyncSender<()>),
    /// The server stops.
    Stop,
}

/// What the thread of the checks is started with.
pub struct CheckMessages {
    /// The states of all members.
    pub states: SharedStates,
    /// Sends more messages to the thread.
    pub sender: Sender<Message>,
    /// The messages for the thread.
    pub messages: Receiver<Message>,
    /// Wakes what starts the thread once there are pools.
    pub first_pool: Arc<Notify>,
}

/// The states of all members, which several threads share.
#[derive(Clone, Default)]
pub struct SharedStates(Arc<Mutex<PoolStates>>);

impl SharedStates {
    /// Waits for the moment that another thread needs them.
    pub fn lock(&self) -> MutexGuard<'_, PoolStates> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pools as the publisher has them.
pub struct Pools {
    /// The rules that the names were made of, each with its zone.
    rules: Vec<(Name, SteerRule)>,
    names: Option<Arc<SteeredNames>>,
    states: SharedStates,
    /// What workers choose by; none if no name is steered.
    steering: Option<Arc<Steering>>,
    /// The zones of which was told that they are signed, so that their names are not steered.
    signed: HashSet<Name>,
    /// Whether it was looked for what operators have said before.
    is_restored: bool,
    checks: Sender<Message>,
    /// The messages, until the thread of the checks takes them.
    messages: Option<Receiver<Message>>,
    /// Wakes what starts that thread.
    first_pool: Arc<Notify>,
}

impl Default for Pools {
    fn default() -> Self {
        let (checks, messages) = channel();
        Self {
            rules: Vec::new(),
            names: None,
            states: SharedStates::default(),
            steering: None,
            signed: HashSet::new(),
            is_restored: false,
            checks,
            messages: Some(messages),
            first_pool: Arc::default(),
        }
    }
}

impl Pools {
    /// Reads what operators have said before, from the state directory of a configuration. A file
    /// that cannot be read is put aside, so that it is not written over.
    fn restore(&self, config: &Config) {
        let Ok(directory) = state_directory::path(config) else { return };
        match Overrides::read(&directory) {
            Ok(overrides) => self.states.lock().set_overrides(overrides, (unix_seconds(), 0)),
            Err(error) => {
                let path = directory.join(overrides::FILE);
                let aside = path.with_extension("json.broken");
                let _ = std::fs::rename(&path, &aside); // else it cannot be written either
                let path = aside.display();
                tracing::error!(%path, %error, "overrides of members are not in force");
            }
        }
    }

    /// Takes over the pools and rules of a configuration; whether anything is different.
    pub fn configure(&mut self, config: &Config, seed: HashSeed) -> bool {
        let rules = rules(config);
        if !config.pools.is_empty() && !std::mem::replace(&mut self.is_restored, true) {
            self.restore(config);
        }
        let has_changed = {
            let mut states = self.states.lock();
            states.set_directory(state_directory::path(config).ok());
            states.configure(&config.pools)
        };
        if has_changed {
            let _ = self.checks.send(Message::Configured); // without the thread nothing is checked
            self.first_pool.notify_one();
        }
        let tells = !config.edns.reasons_to.is_empty();
        let told = self.steering.as_ref().is_some_and(|steering| steering.labels.is_some());
        if rules != self.rules {
            let set = |(zone, rule): &(Name, SteerRule)| SteeredSet {
                name: rule.name.clone(),
                zone: zone.clone(),
                rtype: rule.rtype,
                pool: rule.pool,
            };
            let sets: Vec<SteeredSet> = rules.iter().map(set).collect();
            self.names = (!sets.is_empty()).then(|| Arc::new(SteeredNames::new(&sets, seed)));
            self.rules = rules;
        } else if !has_changed && (self.names.is_none() || tells == told) {
            return false;
        }
        let labels = tells.then(|| config.pools.iter().map(labels).collect());
        self.steering = self
            .names
            .clone()
            .map(|names| Arc::new(Steering { names, pools: self.states.lock().plans(), labels }));
        true
    }

    /// Puts plans in place of those of the pools with these numbers, if the pools are still those
    /// of this epoch; whether workers are to have them.
    pub fn replace(&mut self, epoch: u64, plans: Vec<(u32, Arc<PoolPlan>)>) -> bool {
        let Some(steering) = &self.steering else { return false };
        if self.states.lock().epoch() != epoch {
            return false; // the newer pools have their plans
        }
        let mut pools = steering.pools.clone();
        for (number, plan) in plans {
            if let Some(place) = pools.get_mut(number as usize) {
                *place = plan;
            }
        }
        let (names, labels) = (Arc::clone(&steering.names), steering.labels.clone());
        self.steering = Some(Arc::new(Steering { names, pools, labels }));
        true
    }

    /// Tells of zones that are signed and have names that would be steered otherwise, once for as
    /// long as that lasts.
    pub fn warn_of_signed_zones(&mut self, is_signed: impl Fn(&Name) -> bool) {
        let former = std::mem::take(&mut self.signed);
        for (zone, _) in &self.rules {
            if self.signed.contains(zone) || !is_signed(zone) {
                continue;
            }
            if !former.contains(zone) {
                tracing::warn!(%zone, "zone is signed: its names are not steered");
            }
            self.signed.insert(zone.clone());
        }
    }

    /// What workers choose by; none if no name is steered.
    pub fn steering(&self) -> Option<Arc<Steering>> {
        self.steering.clone()
    }

    /// What the thread of the checks is started with; none if that was taken before.
    pub fn take_messages(&mut self) -> Option<CheckMessages> {
        let messages = self.messages.take()?;
        let (states, sender) = (self.states.clone(), self.checks.clone());
        Some(CheckMessages { states, sender, messages, first_pool: Arc::clone(&self.first_pool) })
    }
}

/// What a pool and its members are called.
fn labels(config: &PoolConfig) -> PoolLabels {
    let members = config.members.iter().map(|member| (*member.name).into());
    PoolLabels { pool: (*config.name).into(), members: members.collect() }
}

/// The rules of all zones.
fn rules(config: &Config) -> Vec<(Name, SteerRule)> {
    let zones =
        config.zones.iter().filter_map(|zone| Some((zone.name.as_ref()?, &zone.terms.steer)));
    let of_zone = zones.flat_map(|(name, rules)| rules.iter().map(|it| (name.clone(), it.clone())));
    of_zone.chain(config.steered.iter().cloned()).collect()
}
