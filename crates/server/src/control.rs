//! What the running server can be asked and told.

mod in_force;
mod program_zones;
mod retries;

use crate::admin::{Counters as AdminCounters, PageServers};
use crate::cache_file::CacheFile;
use crate::edit::{Edit, EditError};
use crate::engine_counters::EngineCounters;
use crate::feed::store_state::StoreState;
use crate::feed::stores::StoreFeeds;
use crate::handover::{self, Hooks, Offer};
use crate::listeners::Listeners;
use crate::node_local::NodeInterface;
use crate::program::{ConfigWatch, LastReading, LongCallWatch, OwnQueries, SetLogLevel};
use crate::publish::{PublisherHandle, ServerState};
use crate::query_log::QueryLog;
use crate::steering::checks::ChecksHandle;
use crate::stop::Stop;
use crate::texts::Texts;
use crate::unit_states::{Scope, UnitStates};
use crate::update::queue::UpdateQueue;
use crate::watchdog::Watchdog;
use crate::zone_set::Outcome;
use arc_swap::ArcSwap;
use retries::Retries;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::{Notify, mpsc};
use zonda_config::{Config, Source};
use zonda_deferral::{Clock, Deferrals, LazyResponder};
use zonda_engine::{Engine, Snapshot};
use zonda_forward::{ForwarderCounters, Forwarders};
use zonda_netio::supervisor::{self, State};
use zonda_runtime::Runtime;
use zonda_transport::tcp::TcpServer;
use zonda_wire::Name;
use zonda_zone::Diff;

/// The looks at watched files, as the watchdog knows them.
const WATCH: &str = "watch";
/// The reloads that a signal asks for, as the watchdog knows them.
const RELOAD: &str = "reload";

/// How long a command waits until a store was read.
const STORE_MAX: Duration = Duration::from_secs(5);
/// How often it is looked whether that has happened.
const STORE_LOOK: Duration = Duration::from_millis(10);

/// Reads the configuration anew.
pub type ReadConfig = Box<dyn Fn() -> Result<Config, String> + Send + Sync>;

/// What a [`Control`] is made of.
pub struct ControlParts {
    /// The thread that owns the zones and the configuration, and the states of the files that zones
    /// were loaded from.
    pub publisher: (PublisherHandle, UnitStates),
    /// What reads the configuration anew, tells whether files have changed that it is made of, if
    /// they are followed, and sets the level of the server's own log, if it has one.
    pub config: (ReadConfig, Option<ConfigWatch>, Option<SetLogLevel>),
    /// The counters of all engines.
    pub counters: Arc<EngineCounters>,
    /// The TCP server.
    pub tcp: Arc<TcpServer<LazyResponder<Engine>>>,
    /// The counters of all forwarder threads.
    pub forwarders: Vec<Arc<ForwarderCounters>>,
    /// The queue of all forwarder threads.
    pub forwarder_queue: Forwarders,
    /// The user's code that does not run in the workers, by the numbers of its runtimes.
    pub runtimes: Arc<[Arc<Runtime>]>,
    /// The queues of deferred queries.
    pub deferrals: Deferrals,
    /// The queue of messages that change zones.
    pub updates: Arc<UpdateQueue>,
    /// Answers queries of the process itself.
    pub own_queries: OwnQueries,
    /// What watches code that runs in workers.
    pub long_calls: Arc<LongCallWatch>,
    /// The listeners that run.
    pub listeners: Listeners,
    /// The interface that the server has made, if it has.
    pub interface: Option<Arc<NodeInterface>>,
    /// The log of queries, which are logged or not.
    pub query_log: QueryLog,
    /// Tells the time as all threads do.
    pub clock: Clock,
    /// The file of the cache, if there is one.
    pub cache_file: Option<Arc<CacheFile>>,
    /// The feeds of zones that follow stores.
    pub stores: StoreFeeds,
    /// The texts that zones of the program were started with.
    pub texts: Texts,
    /// The snapshot that workers answer from, which the publisher replaces.
    pub snapshot: Arc<ArcSwap<Snapshot>>,
    /// The checks of members of pools.
    pub checks: Option<ChecksHandle>,
    /// What is known of the threads that live as long as the server.
    pub watchdog: Arc<Watchdog>,
    /// Asks the server to stop.
    pub stop_request: mpsc::Sender<Stop>,
}

/// The running server's handle, shared by the admin interface and the main task.
pub struct Control {
    publisher: PublisherHandle,
    /// The states of files; held during a reload, so that there is one at a time.
    units: Mutex<UnitStates>,
    /// Lock held while a zone of the program is changed, so that no older text comes last.
    updating: Mutex<()>,
    /// Lock held while a request changes the files of networks and latencies.
    geo_files: Mutex<()>,
    /// Told after each reload of the configuration: what is watched may be other than before.
    pub reloaded: Notify,
    read_config: ReadConfig,
    /// The counters of all engines.
    pub counters: Arc<EngineCounters>,
    /// The TCP server.
    pub tcp: Arc<TcpServer<LazyResponder<Engine>>>,
    /// The counters of all forwarder threads.
    pub forwarders: Vec<Arc<ForwarderCounters>>,
    /// The queue of all forwarder threads.
    pub forwarder_queue: Forwarders,
    /// The user's code that does not run in the workers, by the numbers of its runtimes.
    pub runtimes: Arc<[Arc<Runtime>]>,
    /// The queues of deferred queries.
    pub deferrals: Deferrals,
    /// The queue of messages that change zones.
    pub updates: Arc<UpdateQueue>,
    /// Answers queries of the process itself.
    pub own_queries: OwnQueries,
    /// What watches code that runs in workers.
    pub long_calls: Arc<LongCallWatch>,
    /// The listeners that run.
    pub listeners: Listeners,
    /// The interface that the server has made, if it has.
    pub interface: Option<Arc<NodeInterface>>,
    /// The log of queries, which are logged or not.
    pub query_log: QueryLog,
    /// Tells the time as all threads do.
    pub clock: Clock,
    /// The file of the cache, if there is one.
    pub cache_file: Option<Arc<CacheFile>>,
    /// The feeds of zones that follow stores.
    pub stores: StoreFeeds,
    /// The texts that zones of the program were started with: all mistakes are told from them.
    pub texts: Texts,
    /// The snapshot that workers answer from, which the publisher replaces.
    pub snapshot: Arc<ArcSwap<Snapshot>>,
    /// The checks of members of pools.
    pub checks: Option<ChecksHandle>,
    /// What is known of the threads that live as long as the server.
    pub watchdog: Arc<Watchdog>,
    stop_request: mpsc::Sender<Stop>,
    /// Whether the server will stop soon, and load balancers should leave it.
    pub is_stopping: AtomicBool,
    /// Tells whether files have changed that the configuration is made of, if they are followed.
    config_watch: Option<ConfigWatch>,
    /// When a configuration is tried again that could not be put into force.
    retries: Retries,
    /// Sets the level of the server's own log; none where a program has the log.
    log_level: Option<SetLogLevel>,
    /// What was counted of connections to the admin interface.
    pub admin: AdminCounters,
    /// The addresses at which its pages are answered.
    pub pages: PageServers,
    /// The state of the files of the database of locations that was last found to be unusable, or
    /// taken over.
    refused_locations: AtomicU64,
    /// The state of the files of upstreams that was last looked at.
    known_server_files: AtomicU64,
    /// When the server started.
    pub started: Instant,
    /// When the server started, by the system clock.
    pub started_at: SystemTime,
}

/// What a reload did, or why there was none.
pub type ReloadResult = Result<Outcome, String>;

impl Control {
    /// A handle of its parts.
    pub fn new(parts: ControlParts) -> Arc<Self> {
        [WATCH, RELOAD].into_iter().for_each(|name| parts.watchdog.know(name));
        Arc::new(Self {
            publisher: parts.publisher.0,
            units: Mutex::new(parts.publisher.1),
            updating: Mutex::new(()),
            geo_files: Mutex::new(()),
            reloaded: Notify::new(),
            refused_locations: AtomicU64::new(0),
            known_server_files: AtomicU64::new(0),
            read_config: parts.config.0,
            counters: parts.counters,
            tcp: parts.tcp,
            forwarders: parts.forwarders,
            forwarder_queue: parts.forwarder_queue,
            runtimes: parts.runtimes,
            deferrals: parts.deferrals,
            updates: parts.updates,
            own_queries: parts.own_queries,
            long_calls: parts.long_calls,
            listeners: parts.listeners,
            interface: parts.interface,
            query_log: parts.query_log,
            clock: parts.clock,
            cache_file: parts.cache_file,
            stores: parts.stores,
            texts: parts.texts,
            snapshot: parts.snapshot,
            checks: parts.checks,
            watchdog: parts.watchdog,
            stop_request: parts.stop_request,
            is_stopping: AtomicBool::new(false),
            config_watch: parts.config.1,
            retries: Retries::default(),
            log_level: parts.config.2,
            admin: AdminCounters::default(),
            pages: PageServers::default(),
            started: Instant::now(),
            started_at: SystemTime::now(),
        })
    }

    /// The thread that owns the zones and the configuration.
    pub fn publisher(&self) -> &PublisherHandle {
        &self.publisher
    }

    /// The zones and the configuration as they were published last.
    pub fn state(&self) -> Arc<ServerState> {
        self.publisher.state()
    }

    /// The addresses that are answered on, by the places of their listeners.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.addresses().into_iter().flatten().collect()
    }

    /// Asks the server to stop.
    pub fn stop(&self) {
        // A full channel holds the request already.
        let _ = self.stop_request.try_send(Stop::Requested);
    }

    /// Offers the sockets, with `others` that are not DNS, to a successor that asks on `listener`,
    /// until the offer ends.
    ///
    /// # Errors
    /// When a descriptor or a thread cannot be had.
    pub fn offer_sockets(
        self: &Arc<Self>,
        listener: UnixListener,
        others: &[BorrowedFd<'_>],
    ) -> io::Result<Offer> {
        let all = others.iter().copied().chain([listener.as_fd()]);
        let all: Vec<OwnedFd> = all.map(|it| it.try_clone_to_owned()).collect::<io::Result<_>>()?;
        let file = self.cache_file.clone();
        // The thread that waits for a successor keeps no server that has stopped.
        let [sockets, before, after] = [(); 3].map(|()| Arc::downgrade(self));
        let hooks = Hooks {
            sockets: Box::new(move || {
                let Some(control) = sockets.upgrade() else { return Ok(Vec::new()) };
                let _reload = control.units(); // one that runs brings its listeners to an end
                Ok([control.listeners.offer()?, control.pages.descriptors()?]
                    .into_iter()
                    .flatten()
                    .collect())
            }),
            before: Box::new(move || {
                if let Some(file) = &file {
                    file.write(); // so that the successor begins with what is kept now
                }
                if let Some(control) = before.upgrade() {
                    control.stores.hand_over(); // a file of redb has one user at a time
                    let _ = control.publisher.hand_over_journal(); // the watchdog has why it fails
                }
            }),
            after_failure: Box::new(move || {
                if let Some(control) = after.upgrade() {
                    control.listeners.end_offer();
                    let _ = control.publisher.take_back_journal(); // likewise
                    control.interface.iter().for_each(|it| it.take_back());
                    control.log_stores(control.stores.resume());
                }
            }),
        };
        handover::offer(listener, all, hooks, self.stop_request.clone(), &self.watchdog)
    }

    /// Reads the configuration and all changed zones anew. Blocks.
    ///
    /// # Errors
    /// What is wrong with the configuration; the former one stays in force.
    pub fn reload(&self) -> ReloadResult {
        let mut units = self.units();
        let _ = supervisor::notify(State::Reloading);
        let read = (self.read_config)().inspect_err(|_| self.retries.note_unreadable());
        let result = read.and_then(|mut config| {
            config.keep_config_map_of(&self.state().config);
            let running = Arc::clone(&self.state().config);
            self.place_listeners(&running, &mut config);
            Self::warn_of_restart(&running, &config);
            let outcome = self.put_into_force(&mut units, config);
            let is_whole = outcome.as_ref().is_ok_and(|(_, is_whole)| *is_whole);
            self.retries.note(is_whole, Instant::now());
            if let (true, Some(is_to_be_read)) = (is_whole, &self.config_watch) {
                // At once, as other readings may come before the next look, which sees changes.
                let _ = is_to_be_read(LastReading::InForce);
            }
            let (outcome, _) = outcome?;
            self.log_stores(self.stores.follow().map(drop));
            Ok(outcome)
        });
        let failed = result.as_ref().map_or(true, |outcome| !outcome.failed.is_empty());
        let config = result.as_ref().map(drop).map_err(Clone::clone);
        let _ = self.publisher.note_reload(failed, Some(config)); // the log has why it fails
        match &result {
            Ok(outcome) => log(outcome),
            Err(error) => {
                tracing::error!(error, "configuration not reloaded, the former stays in force");
            }
        }
        let _ = supervisor::notify(State::Ready);
        self.watchdog.note_round(RELOAD, true); // one that panicked may have come before
        self.reloaded.notify_one();
        result
    }

    /// Reads one zone anew, changed or not. Blocks.
    ///
    /// # Errors
    /// When the publisher fails.
    pub fn reload_zone(&self, name: &Name) -> ReloadResult {
        let outcome = match self.stores.state(&name.to_lowercase()) {
            Some(store) => self.read_store_again(name, &store),
            None => self.load_and_publish(&mut self.units(), None, Scope::Zone(name))?,
        };
        let _ = self.publisher.note_reload(!outcome.failed.is_empty(), None); // the log has why
        log(&outcome);
        Ok(outcome)
    }

    /// Has a zone's store read again, and waits for that, but not for long.
    fn read_store_again(&self, name: &Name, store: &StoreState) -> Outcome {
        let data = || self.state().zone_set.zone(name).and_then(|zone| zone.data().cloned());
        let (before, mut outcome) = (data(), Outcome::default());
        let request = store.loads_requested.fetch_add(1, Ordering::Relaxed) + 1;
        let asked = Instant::now();
        while store.loads_answered.load(Ordering::Relaxed) < request {
            if asked.elapsed() > STORE_MAX {
                let why = "its store has not been read for 5 seconds; the log tells why";
                outcome.failed.push(format!("{name}: {why}"));
                return outcome;
            }
            std::thread::sleep(STORE_LOOK);
        }
        let state = self.state();
        if let Some(error) = state.zone_set.zone(name).and_then(|zone| zone.error.as_ref()) {
            outcome.failed.push(format!("{name}: {error}"));
            return outcome;
        }
        let is_same = match (before, data()) {
            (Some(before), Some(now)) => Arc::ptr_eq(&before, &now),
            _ => false,
        };
        let names = if is_same { &mut outcome.unchanged } else { &mut outcome.loaded };
        names.push(name.clone());
        outcome
    }

    /// The states of files, for one reload at a time.
    pub(crate) fn units(&self) -> MutexGuard<'_, UnitStates> {
        // A panic during an earlier reload left at worst an older zone in place.
        self.units.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs why stores are not followed.
    fn log_stores(&self, followed: io::Result<()>) {
        if let Err(error) = followed {
            tracing::error!(%error, "some stores are not followed: cannot start a thread");
        }
    }

    /// Changes a zone; returns what differs once that is published. Blocks.
    ///
    /// # Errors
    /// When the zone cannot be changed so; it is as it was then.
    pub fn edit(&self, edit: Edit) -> Result<Diff, EditError> {
        self.publisher.edit(edit)
    }

    /// The snapshot that workers answer from.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Whether files are watched.
    pub fn watches(&self) -> bool {
        let state = self.state();
        let is_always_watched = |zone: &zonda_config::Zone| {
            matches!(zone.source, Source::Directory(_) | Source::Hosts(_))
                || zone.terms.hosts.is_some()
        };
        self.follows_config()
            || state.config.watch
            || state.config.has_location_files()
            || state.config.kube_dns.is_some()
            || state.config.has_server_files()
            || state.config.zones.iter().any(is_always_watched)
    }

    /// Whether the files are followed that the configuration is made of.
    pub fn follows_config(&self) -> bool {
        self.config_watch.is_some()
    }

    /// How often watched files are looked at.
    pub fn watch_interval(&self) -> Duration {
        self.state().config.watch_interval
    }

    /// When changes of writable zones are to be written to their files next.
    pub fn next_flush(&self) -> tokio::time::Instant {
        tokio::time::Instant::now() + self.state().config.flush_interval
    }

    /// Reloads what is watched and changed: the configuration, and other files if these `are_due`.
    pub async fn reload_watched(self: &Arc<Self>, are_due: bool) {
        let control = Arc::clone(self);
        let work = move || {
            let last = control.retries.last_reading(Instant::now());
            if control.config_watch.as_ref().is_some_and(|is_to_be_read| is_to_be_read(last)) {
                match last {
                    LastReading::Due => tracing::info!("the configuration is tried again"),
                    _ => tracing::info!("the configuration has changed"),
                }
                let _ = control.reload(); // what became of it is logged
                return;
            }
            if !are_due {
                return;
            }
            let mut units = match control.units.try_lock() {
                Ok(guard) => guard,
                // A panic during an earlier reload left at worst an older zone in place.
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            let config = control.config_of_present_files();
            let config = control.config_of_present_config_map(config);
            let outcome = control.load_and_publish(&mut units, config, Scope::Watched);
            let Ok(outcome) = outcome else { return }; // the log has why
            if outcome.is_worth_telling() {
                let failed = !outcome.failed.is_empty();
                let _ = control.publisher.note_reload(failed, None); // the log has why
                log(&outcome);
            }
        };
        let looked = tokio::task::spawn_blocking(work).await;
        self.watchdog.note_round(WATCH, looked.is_ok());
    }

    /// Waits until no other request changes the files of networks and latencies.
    pub fn lock_geo_files(&self) -> MutexGuard<'_, ()> {
        self.geo_files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over what the files tell now of where clients are. Blocks until it is published.
    ///
    /// # Errors
    /// When the publisher fails.
    pub fn reload_locations(&self) -> Result<(), String> {
        let mut units = self.units();
        let config = self.config_of_present_locations();
        let outcome = self.load_and_publish(&mut units, config, Scope::Watched)?;
        log(&outcome);
        Ok(())
    }

    /// A configuration, else the one in force, with what the ConfigMap of kube-dns says now, if
    /// that has changed.
    fn config_of_present_config_map(&self, config: Option<Config>) -> Option<Config> {
        let state = self.state();
        let base = config.as_ref().unwrap_or(&state.config);
        if !base.has_changed_config_map() {
            return config;
        }
        let (present, errors) = base.with_present_config_map();
        for error in &errors {
            tracing::error!(%error, "a part of the ConfigMap of kube-dns is not in force");
        }
        if let Some(kube_dns) = present.kube_dns.as_ref().filter(|it| !it.is_broken()) {
            let (stub_domains, upstreams) = kube_dns.counts();
            tracing::info!(stub_domains, upstreams, "the ConfigMap of kube-dns is in force");
        }
        Some(present)
    }

    /// The configuration with what its files of locations and upstreams say now, if they have
    /// changed and can be used.
    fn config_of_present_files(&self) -> Option<Config> {
        let config = self.config_of_present_locations();
        let state = self.state();
        let base = config.as_ref().unwrap_or(&state.config);
        let Some(stamp) = base.changed_server_files() else {
            self.known_server_files.store(0, Ordering::Relaxed);
            return config;
        };
        if self.known_server_files.swap(stamp, Ordering::Relaxed) == stamp {
            return config; // the log has what is wrong
        }
        let (present, errors) = base.with_present_servers();
        for error in &errors {
            tracing::error!(%error, "the upstreams that the file had before stay in force");
        }
        if present == *base {
            return config;
        }
        for ((zone, forward), (_, former)) in present.forwards().zip(base.forwards()) {
            let to = &forward.keys.to;
            if *to != former.keys.to {
                let zone = zone.name.as_ref().map(ToString::to_string).unwrap_or_default();
                let to: Vec<String> = to.iter().map(ToString::to_string).collect();
                tracing::info!(zone, upstreams = to.join(", "), "other upstreams are in force");
            }
        }
        Some(present)
    }

    /// The configuration with the database of locations as it is now, if its files have changed and
    /// can be used.
    fn config_of_present_locations(&self) -> Option<Config> {
        let state = self.state();
        let stamp = state.config.changed_locations()?;
        if self.refused_locations.swap(stamp, Ordering::Relaxed) == stamp {
            return None; // the log has why
        }
        match state.config.with_present_locations() {
            Ok(config) => {
                tracing::info!("changed files of [geo] are in force");
                Some(config)
            }
            Err(error) => {
                tracing::error!(%error, "what is known of locations stays in force");
                None
            }
        }
    }

    /// Does what SIGHUP asks for.
    pub async fn hang_up(self: &Arc<Self>) {
        let control = Arc::clone(self);
        let work = move || {
            control.query_log.reopen();
            let _ = control.reload(); // what became of it is logged
        };
        let reloaded = tokio::task::spawn_blocking(work).await;
        self.watchdog.note_round(RELOAD, reloaded.is_ok());
    }

    /// Waits until the query log is written.
    pub fn flush_query_log(&self) {
        self.query_log.flush();
    }
}

/// Logs what a reload did.
fn log(outcome: &Outcome) {
    let (loaded, unchanged) = (outcome.loaded.len(), outcome.unchanged.len());
    let (removed, failed) = (outcome.removed.len(), outcome.failed.len());
    tracing::info!(loaded, unchanged, removed, failed, "zones reloaded");
}
