//! From zone set to snapshot: the one place where what workers see is swapped.

use crate::load::{self, LoadedUnit};
use crate::program::Code;
use crate::settings::Lasting;
use crate::zone_set::{Outcome, Plan, Scope, ZoneSet};
use arc_swap::ArcSwap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use zonda_config::{Config, Source, Zone as ZoneConfig};
use zonda_engine::Snapshot;
use zonda_engine::code::Handlers;
use zonda_engine::counters::Counters;
use zonda_engine::zones::ZoneTable;
use zonda_zone::HashSeed;

/// How long a worker may read one snapshot before it is left to free that.
const READ_MAX: Duration = Duration::from_secs(10);

/// Owns the configuration and the zones, and publishes them.
pub struct Publisher {
    config: Config,
    zone_set: ZoneSet,
    lasting: Lasting,
    snapshot: Arc<ArcSwap<Snapshot>>,
    handlers: Option<Arc<Handlers>>,
    seed: HashSeed,
    generation: u64,
    /// What happened so far.
    pub history: History,
}

/// Reloads so far.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Reloads that were asked for or that a changed file caused.
    pub reloads: u64,
    /// Reloads in which something could not be loaded.
    pub failed_reloads: u64,
    /// When the last one ended.
    pub last: Option<SystemTime>,
    /// What is wrong with the configuration that was read last, so that it is not in force.
    pub config_error: Option<String>,
}

impl Publisher {
    /// Loads all zones of `config`; workers will count in `engines`.
    pub fn load(config: Config, code: Code, engines: Vec<Arc<Counters>>, threads: usize) -> Self {
        let seed = HashSeed::random();
        let mut zone_set = ZoneSet::new(seed, engines, &config);
        zone_set.set_forwards(&config);
        let plan = zone_set.plan(&config, Scope::Changed);
        let loaded = load::load_all(&plan.stale(), seed, threads);
        let outcome = zone_set.apply(plan, loaded);
        let mut lasting = Lasting::default();
        let zones = zone_set.table(None, &outcome);
        let settings = lasting.settings(&config);
        let handlers = code.handlers(seed);
        let first = Snapshot { zones, handlers: handlers.clone(), settings, generation: 1 };
        let snapshot = Arc::new(ArcSwap::from_pointee(first));
        let history = History::default();
        zonda_netio::memory::give_back();
        Self { config, zone_set, lasting, snapshot, handlers, seed, generation: 1, history }
    }

    /// What workers answer from.
    pub fn snapshot(&self) -> &Arc<ArcSwap<Snapshot>> {
        &self.snapshot
    }

    /// The configuration in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The zones.
    pub fn zone_set(&self) -> &ZoneSet {
        &self.zone_set
    }

    /// The seed that new zones must be built with.
    pub fn seed(&self) -> HashSeed {
        self.seed
    }

    /// Puts into force what was loaded for a plan, with a new configuration if there is one.
    pub fn apply(
        &mut self,
        config: Option<Config>,
        plan: Plan,
        loaded: Vec<LoadedUnit>,
    ) -> Outcome {
        let new_settings = config.is_some();
        if let Some(next) = config {
            self.config.take_over(next);
            self.zone_set.set_forwards(&self.config);
        }
        let outcome = self.zone_set.apply(plan, loaded);
        if outcome.changed || new_settings {
            let former = self.snapshot.load_full();
            let zones = self.zone_set.table(Some(&former.zones), &outcome);
            drop(former);
            self.publish(zones);
        }
        outcome
    }

    /// Puts into force what was loaded for a zone that a program gives.
    pub fn apply_given(
        &mut self,
        zone: ZoneConfig,
        plan: Plan,
        loaded: Vec<LoadedUnit>,
    ) -> Outcome {
        let is_same = |other: &&mut ZoneConfig| match (&other.source, &zone.source) {
            (Source::Program { .. }, Source::Program { .. }) => other.name == zone.name,
            _ => false,
        };
        match self.config.zones.iter_mut().find(is_same) {
            Some(former) => *former = zone,
            None => self.config.zones.push(zone),
        }
        self.apply(None, plan, loaded)
    }

    /// Puts other code into force.
    pub fn set_code(&mut self, code: Code) {
        self.handlers = code.handlers(self.seed);
        let zones = self.snapshot.load().zones.with_replaced([]);
        self.publish(zones);
    }

    /// Notes that a reload ended.
    pub fn note_reload(&mut self, failed: bool) {
        self.history.reloads += 1;
        self.history.failed_reloads += u64::from(failed);
        self.history.last = Some(SystemTime::now());
    }

    /// Swaps in a new snapshot and frees the former one once no worker reads it, so that no worker
    /// ever has to. A worker holds a snapshot for the time of a batch.
    fn publish(&mut self, zones: ZoneTable) {
        self.generation += 1;
        let settings = self.lasting.settings(&self.config);
        let (handlers, generation) = (self.handlers.clone(), self.generation);
        let next = Snapshot { zones, handlers, settings, generation };
        let mut former = self.snapshot.swap(Arc::new(next));
        let deadline = Instant::now() + READ_MAX;
        while Arc::get_mut(&mut former).is_none() {
            if Instant::now() > deadline {
                tracing::error!("a worker has been busy for {READ_MAX:?} with one batch");
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
        self.zone_set.note_published();
        drop(former);
        zonda_netio::memory::give_back();
    }
}
