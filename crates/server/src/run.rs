//! The running server.

use crate::admin;
use crate::alias_expansion::expand_aliases;
use crate::alias_targets::AliasTargets;
use crate::cache_file::{self, CacheFile};
use crate::check::tell_all_mistakes;
use crate::control::{Control, ControlParts, ReadConfig};
use crate::edit::flush::flush_in_background;
use crate::engine_counters::{EngineCounters, EngineMaker};
use crate::engines::{Engines, HANDLER_ENGINES, engine_maker};
use crate::failed_zones::failed_zones;
use crate::feed::stores::{StoreFeeds, Stores};
use crate::handover;
use crate::listen::{self, InheritedSockets, Sockets};
use crate::listeners::{Listeners, StoppedListeners};
use crate::load::LoadError;
use crate::log;
use crate::look_schedule::LookSchedule;
use crate::node_local::{ClaimedInterface, KeptInterface, NodeInterface};
use crate::program::{ConfigWatch, Logger, OwnQueries, Program, RuntimeHandle, SetLogLevel};
use crate::publish::{FirstLoad, Publisher, PublisherHandle, ServerState};
use crate::query_log::QueryLog;
use crate::rights;
use crate::serve_error::ServeError;
use crate::settle::{self, StartPhase};
use crate::signals::{SignalStreams, Signals, caught, passed};
use crate::steering::checks::{self, ChecksHandle};
use crate::stop::Stop;
use crate::texts::{Texts, with_steered};
use crate::threads::{self, ListenerStarter, ThreadHandles, lazily, tcp_config};
use crate::unit_states::UnitStates;
use crate::update;
use crate::update::processor::UpdateProcessor;
use crate::watchdog::Watchdog;
use crate::zone_set_view::KnownZone;
use arc_swap::ArcSwap;
use std::collections::HashSet;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::signal::unix::Signal;
use tokio::sync::mpsc;
use zonda_config::Config;
use zonda_deferral::faults::Failure;
use zonda_deferral::{Clock, Deferrals, LazyResponder};
use zonda_engine::counters::Counters;
use zonda_engine::{Engine, QueueId, Snapshot};
use zonda_forward::{ForwarderConfig, ForwarderThread, Forwarders, Inbox, stop_forwarders};
use zonda_netio::supervisor::{self, State};
use zonda_netio::{memory, process};
use zonda_runtime::{
    Answerer, Deadlines, Runtime as CodeRuntime, RuntimeConfig, Watchdog as Looks,
};
use zonda_transport::tcp::{self, ExpandAliases, TcpServer};
use zonda_transport::udp::stop_workers;
use zonda_wire::Name;

/// How long stopping may take before what is left is abandoned.
const STOP_MAX: Duration = Duration::from_secs(10);
/// Longest time for stopping after a hand-over, when TCP connections are served on for a while.
const HANDED_OVER_MAX: Duration = Duration::from_secs(20);
/// How long forwarders have at least, also if code has taken all of that time.
const FORWARDERS_MAX: Duration = Duration::from_secs(1);
/// Threads of the I/O runtime, on which TCP and the admin interface run.
const IO_THREADS_MAX: usize = 4;
/// How often zones are taken out of service that were in step with their stores too long ago.
const EXPIRY_INTERVAL: Duration = Duration::from_millis(500);

/// What [`serve`] needs.
pub struct Options {
    /// The configuration to begin with.
    pub config: Config,
    /// Reads the configuration anew, for a reload; an error is text for the administrator.
    pub read_config: ReadConfig,
    /// Whether to take the sockets of the server that now runs, which then ends.
    pub take_over: bool,
    /// The user's code.
    pub program: Program,
}

/// Runs the server until it is told to stop, as a process of its own: settings of the allocator
/// and what is given back once it answers are the process's.
///
/// # Errors
/// When it cannot start, or must end because workers fail.
pub fn serve(options: Options) -> Result<(), ServeError> {
    memory::map_large_allocations();
    run(options, Signals::Handled, |_| memory::give_back_stack())
}

/// Runs the server until it is told to stop; tells `ready` when it answers.
pub(crate) fn run(
    options: Options,
    signals: Signals,
    ready: impl FnOnce(&Arc<Control>),
) -> Result<(), ServeError> {
    let Options { config, read_config, take_over, program } = options;
    let ports_max = rights::raise_descriptor_limit(&config).map_err(ServeError::Descriptors)?;
    let inherited = rights::inherited_sockets(signals).map_err(ServeError::Start)?;
    let mut found = InheritedSockets::adopt(inherited).of_supervisor();
    let former = if take_over {
        let (former, descriptors) = handover::ask(&config).map_err(ServeError::HandOver)?;
        found = InheritedSockets::adopt(descriptors);
        Some(former)
    } else {
        None
    };
    let interface =
        ClaimedInterface::claim(config.node_local.as_ref()).map_err(ServeError::NodeLocal)?;
    let admin = admin::bind(&config.admin, &mut found).map_err(ServeError::Admin)?;
    let is_shared = program.shares_addresses;
    let sockets =
        listen::listen(&config.listeners, found, is_shared).map_err(ServeError::Listen)?;
    rights::give_up(&config, signals).map_err(ServeError::Privileges)?;
    log::start_writer().map_err(ServeError::Start)?; // a thread has the rights of its parent
    let cpus = process::available_cpus();
    let executors = cpus.min(IO_THREADS_MAX);
    let runtime = runtime(executors).map_err(ServeError::Start)?;
    let _context = runtime.enter();
    // From here on, so that a request to reload does not end a server that still loads.
    let caught = SignalStreams::of(signals).map_err(ServeError::Start)?;
    let workers: usize = sockets.iter().map(|sockets| sockets.udp.len()).sum();
    let handlers = HANDLER_ENGINES + program.runtimes.len();
    let engines = Engines { workers, executors, forwarders: executors, handlers, ports_max };
    let counters = EngineCounters::new(engines.count());
    let Program { code, runtimes, start, loggers, required_zones, texts, stores, .. } = program;
    let texts = with_steered(texts, &config);
    let own = (code, &texts, &stores);
    let first =
        Publisher::load(config, own, Arc::clone(&counters), cpus).map_err(ServeError::State)?;
    require(&first.state(), &required_zones, &texts)?;
    let zones = (texts, stores);
    let interface_of_server = interface.as_ref().map(ClaimedInterface::own);
    let sockets = (interface_of_server, sockets, is_shared);
    let config = (read_config, program.config_watch, program.log_level);
    let parts = Parts { sockets, first, counters, engines, config, runtimes, loggers, zones };
    // A process whose signals are handled here is Zonda's own.
    let settling = (signals == Signals::Handled).then(StartPhase::default);
    let (mut running, handles) = Running::start(&runtime, parts, settling)?;
    let control = Arc::clone(&running.control);
    let admin = admin::serve(admin, &control).map_err(ServeError::Start)?;
    // Last, as a start that fails leaves the interface as it was.
    let keep = |it: ClaimedInterface| it.keep(&control.watchdog);
    running.interface = interface.map(keep).transpose().map_err(ServeError::Start)?;
    if let Some(former) = former {
        former.release();
    }
    announce(&control, admin.address);
    if let Some(start) = start {
        start(handles);
    }
    ready(&control);
    let _ = supervisor::notify(State::Ready);
    let reason = runtime.block_on(running.wait(caught));
    let down = control.watchdog.down();
    let _ = supervisor::notify(State::Stopping);
    if matches!(reason, Ok(Stop::TakenOver)) {
        admin.stop(); // the sockets are the successor's now
        control.pages.stop();
        running.stop(&runtime, tcp::Stop::HandedOver);
    } else {
        running.stop(&runtime, tcp::Stop::Now);
        admin.remove_sockets();
    }
    runtime.shutdown_timeout(Duration::from_secs(1));
    control.pages.end(); // the program may keep `control`
    reason?;
    if down.is_empty() { Ok(()) } else { Err(ServeError::Down(down)) }
}

/// Refuses to start without zones that a program needs.
fn require(state: &ServerState, zones: &HashSet<Name>, texts: &Texts) -> Result<(), ServeError> {
    let mut failed = failed_zones(state.zone_set());
    failed.retain(|it| it.name.as_ref().is_some_and(|name| zones.contains(name)));
    if failed.is_empty() {
        return Ok(());
    }
    tell_all_mistakes(&mut failed, state.config(), texts);
    Err(ServeError::Zones(failed))
}

/// Tells the administrator what runs and how to try it.
fn announce(control: &Control, metrics: Option<SocketAddr>) {
    let state = control.state();
    let zones: Vec<_> = state.zone_set().zones().collect();
    let without_data = || zones.iter().filter(|zone| zone.data().is_none());
    let is_awaited = |zone: &&&KnownZone| zone.error.as_deref().is_some_and(LoadError::is_awaited);
    let awaited = without_data().filter(is_awaited).count();
    let failed = without_data().count() - awaited;
    let addresses = control.addresses();
    for address in &addresses {
        tracing::info!(%address, "listening");
    }
    if let Some(address) = metrics {
        tracing::info!(url = format!("http://{address}/metrics"), "metrics");
    }
    let served = zones.len() - failed - awaited;
    let forwards = state.config().forwards().count();
    for (zone, forward) in state.config().forwards() {
        let to: Vec<String> = forward.keys.to.iter().map(ToString::to_string).collect();
        let name = zone.name.as_ref().map(ToString::to_string).unwrap_or_default();
        tracing::info!(zone = name, upstreams = to.join(", "), "forwarding");
    }
    if let Some(resolver) = &state.config().alias_resolver {
        let to: Vec<String> = resolver.keys.to.iter().map(ToString::to_string).collect();
        tracing::info!(upstreams = to.join(", "), "looking up targets of ALIAS records");
    }
    let files = state.zone_set().failures().count();
    let some = |count: usize| Some(count).filter(|count| *count > 0);
    let (awaited, not_loaded, files_with_errors) = (some(awaited), some(failed), some(files));
    if not_loaded.is_some() || files_with_errors.is_some() {
        let zones = served;
        tracing::error!(
            zones,
            awaited,
            not_loaded,
            files_with_errors,
            "serving; the errors above say what is not"
        );
    } else if served > 0 || awaited.is_some() || forwards == 0 {
        tracing::info!(zones = served, awaited, "serving");
    }
    let first = zones
        .iter()
        .filter(|zone| zone.data().is_some())
        .map(|zone| &zone.entry.apex)
        .min_by_key(|apex| apex.as_wire());
    if let (Some(address), Some(apex)) = (addresses.first(), first) {
        let host = if address.ip().is_unspecified() {
            "127.0.0.1".to_owned()
        } else {
            address.ip().to_string()
        };
        let command = format!("dig @{host} -p {} {apex} SOA", address.port());
        tracing::info!(command, "try");
    }
}

/// Starts the publisher, and the thread that has members of pools checked.
fn start_publisher(
    mut first: FirstLoad,
    runtime: &Handle,
    watchdog: &Arc<Watchdog>,
) -> io::Result<((PublisherHandle, UnitStates), Option<ChecksHandle>)> {
    let checks = first.take_checks();
    let publisher = first.start(watchdog)?;
    let start = |it| checks::start(it, publisher.0.clone(), runtime, watchdog);
    let checks = checks.map(start);
    Ok((publisher, checks))
}

/// The I/O runtime.
fn runtime(threads: usize) -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(threads).thread_name("io").enable_all().build()
}

/// The parts of a server that are started.
struct Parts {
    /// The interface that sockets are on, if it is the server's, all sockets, and whether other
    /// processes may bind the same addresses.
    sockets: (Option<Arc<NodeInterface>>, Vec<Sockets>, bool),
    first: FirstLoad,
    counters: Arc<EngineCounters>,
    engines: Engines,
    /// What reads the configuration anew, tells when to, and sets the level of the server's log.
    config: (ReadConfig, Option<ConfigWatch>, Option<SetLogLevel>),
    runtimes: Vec<RuntimeConfig>,
    loggers: Vec<Arc<dyn Logger>>,
    /// Zones of the program.
    zones: (Texts, Stores),
}

/// All that was started.
struct Running {
    control: Arc<Control>,
    interface: Option<KeptInterface>,
    forwarders: Vec<ForwarderThread>,
    aliases: AliasTargets,
    deadlines: Option<Deadlines>,
    failures: tokio::sync::Mutex<mpsc::Receiver<Failure>>,
    stop_requests: tokio::sync::Mutex<mpsc::Receiver<Stop>>,
}

impl Running {
    /// Starts workers, TCP and forwarder threads, and what is needed for the user's code.
    fn start(
        runtime: &Runtime,
        parts: Parts,
        settling: Option<StartPhase>,
    ) -> Result<(Self, Vec<RuntimeHandle>), ServeError> {
        let Parts { sockets, first, counters, engines, config, runtimes, loggers, zones } = parts;
        let (clock, watchdog) = (Clock::start(), Arc::<Watchdog>::default());
        let (snapshot, notices) = (Arc::clone(first.snapshot()), first.notices());
        let (publisher, checks) = start_publisher(first, runtime.handle(), &watchdog)?;
        let state = publisher.0.state(); // the zones of stores are in none of what is read of it
        let stores = StoreFeeds::start(publisher.0.clone(), &state.config, (zones.1, notices))?;
        let cache_file = open_cache(&state, clock, &watchdog)?;
        let (failed, failures) = mpsc::channel(engines.count().max(1));
        let query_log = QueryLog::open(&state.config.query_log, &watchdog)?;
        let all = counters.all();
        let [udp, executors, forwarders, handlers] = engines.split(&all);
        let (make_engine, long_calls) = engine_maker(&snapshot, query_log.clone(), loggers);
        let of_forwarder = forwarder_config(runtime.handle(), (&snapshot, &state), clock, engines);
        let (forwarder_queue, forwarders) =
            threads::start_forwarders(of_forwarder, &make_engine, forwarders, &failed)?;
        let (runtimes, patience) = code_runtimes(runtimes, clock);
        let ([overflow, own], handlers) = handlers.split_first_chunk().expect("HANDLER_ENGINES");
        let (processor, updates) =
            UpdateProcessor::new(&snapshot, clock, lazily(&make_engine, own));
        let queues = threads::queues(&forwarder_queue, &updates, &runtimes);
        let deferrals = Deferrals::new(queues, clock, lazily(&make_engine, overflow));
        let handles = ThreadHandles::new(clock, deferrals, !runtimes.is_empty(), failed);
        let watch = settle::watch(Arc::clone(&long_calls), settling);
        let handlers = Handlers::start(handlers, &runtimes, &make_engine, &handles, watch)?;
        let with = (&handles, expand_aliases(&snapshot, &forwarder_queue));
        let tcp = tcp_server(&state.config, (&make_engine, executors.to_vec()), with);
        let deferrals = handles.deferrals.clone();
        let starter = listener_starter(runtime, (make_engine, handles), (&tcp, &watchdog));
        let (sockets_of, own) = ((sockets.1, &*state.config), (udp, Arc::clone(&counters)));
        let listeners = Listeners::start(starter, sockets_of, own, (sockets.2, patience))?;
        let aliases = AliasTargets::start((&snapshot, &forwarder_queue), clock, &watchdog)?;
        update::thread::begin(&publisher.0, (&updates, processor), &watchdog)?; // last
        let (stop_request, stop_requests) = mpsc::channel(1);
        let control = Control::new(ControlParts {
            publisher,
            config,
            counters,
            tcp,
            forwarders: forwarders.iter().map(|thread| Arc::clone(thread.counters())).collect(),
            forwarder_queue,
            runtimes,
            deferrals,
            updates,
            own_queries: handlers.own_queries,
            long_calls,
            listeners,
            interface: sockets.0,
            query_log,
            clock,
            cache_file,
            stores,
            texts: zones.0,
            snapshot: Arc::clone(&snapshot),
            checks,
            watchdog,
            stop_request,
        });
        let running = Self {
            control,
            interface: None,
            forwarders,
            aliases,
            deadlines: handlers.deadlines,
            failures: tokio::sync::Mutex::new(failures),
            stop_requests: tokio::sync::Mutex::new(stop_requests),
        };
        Ok((running, handlers.handles))
    }

    /// Waits for a reason to stop, and then until load balancers have left the server; keeps the
    /// zones up to date meanwhile.
    async fn wait(&self, signals: SignalStreams) -> Result<Stop, ServeError> {
        let mut failures = self.failures.lock().await;
        let mut stop_requests = self.stop_requests.lock().await;
        let SignalStreams { mut hangup, mut terminate, mut interrupt } = signals;
        let mut is_left = std::pin::pin!(None);
        loop {
            let is_stopping = is_left.is_some();
            let (stop, reason) = tokio::select! {
                biased; // a successor that has the sockets outranks a signal
                Some(stop) = stop_requests.recv() => match stop {
                    Stop::Requested => (stop, "asked to"),
                    Stop::TakenOver => (stop, "a successor has taken over"),
                },
                Some(failure) = failures.recv() => return Err(ServeError::Worker(failure.worker)),
                // A supervisor may send it again; Ctrl-C is an operator's, and ends it.
                () = caught(&mut terminate), if !is_stopping => (Stop::Requested, "SIGTERM"),
                () = caught(&mut interrupt) => (Stop::Requested, "SIGINT"),
                () = passed(is_left.as_mut().as_pin_mut()), if is_stopping => {
                    (Stop::Requested, "lameduck is over")
                }
                never = self.keep_up_to_date(&mut hangup) => match never {},
            };
            let lameduck = self.control.state().config.admin.lameduck;
            if is_stopping || !reason.starts_with("SIG") || lameduck.is_zero() {
                tracing::info!(reason, "stopping");
                return Ok(stop);
            }
            self.control.is_stopping.store(true, Ordering::Relaxed);
            tracing::info!(reason, seconds = lameduck.as_secs_f32(), "stopping soon");
            is_left.set(Some(tokio::time::sleep(lameduck)));
        }
    }

    /// Reloads when told to, and when watched files change.
    async fn keep_up_to_date(&self, hangup: &mut Option<Signal>) -> Infallible {
        let interval = || self.control.watch_interval();
        let mut looks =
            LookSchedule::new(Instant::now(), interval(), self.control.follows_config());
        let mut next_flush = self.control.next_flush();
        let mut next_expiry = tokio::time::Instant::now() + EXPIRY_INTERVAL;
        loop {
            let watches = self.control.watches();
            tokio::select! {
                () = caught(hangup) => self.control.hang_up().await,
                () = self.control.reloaded.notified() => {
                    looks.note_interval(Instant::now(), interval());
                }
                () = tokio::time::sleep_until(looks.next().into()), if watches => {
                    let start = Instant::now();
                    self.control.reload_watched(looks.are_all_due(start)).await;
                    looks.note(start, Instant::now(), interval());
                }
                () = tokio::time::sleep_until(next_flush) => {
                    flush_in_background(&self.control).await;
                    next_flush = self.control.next_flush();
                }
                () = tokio::time::sleep_until(next_expiry), if self.control.stores.may_expire() => {
                    let control = Arc::clone(&self.control);
                    // The publisher is waited for.
                    let _ = tokio::task::spawn_blocking(move || control.stores.expire()).await;
                    next_expiry = tokio::time::Instant::now() + EXPIRY_INTERVAL;
                }
            }
        }
    }

    /// Answers what was received, then stops.
    fn stop(self, runtime: &Runtime, how: tcp::Stop) {
        drop(self.aliases); // which has no fetch begun any more
        self.control.admin.end_waits();
        self.control.stores.end();
        self.control.checks.iter().for_each(ChecksHandle::stop);
        let is_handed_over = how == tcp::Stop::HandedOver;
        let cache_file = self.control.cache_file.as_ref();
        cache_file.inspect(|file| file.end()); // it is the successor's now, if there is one
        let deadline = Instant::now() + if is_handed_over { HANDED_OVER_MAX } else { STOP_MAX };
        let StoppedListeners { workers, tasks } = self.control.listeners.stop(how);
        let have_stopped = stop_workers(workers, deadline).is_empty();
        if !self.control.listeners.await_closings(deadline) || !have_stopped {
            tracing::error!("a worker did not stop in time");
        }
        let left = deadline.saturating_duration_since(Instant::now());
        runtime.block_on(async {
            let all = async {
                for task in tasks {
                    task.ended().await;
                }
            };
            if tokio::time::timeout(left, all).await.is_err() {
                tracing::error!("a TCP connection did not end in time");
            }
        });
        if !self.control.deferrals.await_idle(|queue| queue != QueueId::FORWARDERS, deadline) {
            tracing::error!("code or the disk did not let all queries be answered in time");
        }
        self.control.updates.close();
        let _ = self.control.publisher().end_updates(); // the watchdog has why it fails
        if let Some(deadlines) = self.deadlines {
            deadlines.stop();
        }
        // Last, as connections and code wait for what they fetch.
        let deadline = deadline.max(Instant::now() + FORWARDERS_MAX);
        if !stop_forwarders(self.forwarders, deadline) {
            tracing::error!("a forwarder did not stop in time");
        }
        if !is_handed_over {
            self.control.flush_all(); // what fails is logged, and stays in the journal
        }
        if let Some(interface) = self.interface {
            interface.end(); // last, as replies leave from its addresses
        }
        // The next server may start as soon as this one has stopped.
        let _ = self.control.publisher().hand_over_journal(); // the watchdog has why it fails
        self.control.flush_query_log();
        cache_file.filter(|_| !is_handed_over).inspect(|file| file.write());
    }
}

/// The runtimes of the user's code, and how long queries may wait for one of them.
fn code_runtimes(configs: Vec<RuntimeConfig>, clock: Clock) -> (Arc<[Arc<CodeRuntime>]>, Duration) {
    let patience = configs.iter().map(|it| it.patience_nanos).max().unwrap_or_default();
    let runtimes = configs.into_iter().map(|it| Arc::new(CodeRuntime::new(it, clock)));
    (runtimes.collect(), Duration::from_nanos(patience))
}

/// The server of TCP connections, with an executor for each of these counters, whose engine is made
/// once it is needed and counts in them.
fn tcp_server(
    config: &Config,
    (make_engine, counters): (&EngineMaker, Vec<Arc<Counters>>),
    (handles, expand_aliases): (&ThreadHandles, Box<ExpandAliases>),
) -> Arc<TcpServer<LazyResponder<Engine>>> {
    let (limits, executors) = (tcp_config(config), counters.len());
    let make_engine = Arc::clone(make_engine);
    let make = move |executor: usize| lazily(&make_engine, &counters[executor]);
    let (deferrals, failed) = (handles.deferrals.clone(), handles.failed.clone());
    TcpServer::new(limits, executors, handles.clock, make, (deferrals, expand_aliases), failed)
}

/// What starts the workers and TCP of listeners.
fn listener_starter(
    runtime: &Runtime,
    (make_engine, handles): (EngineMaker, ThreadHandles),
    (tcp, watchdog): (&Arc<TcpServer<LazyResponder<Engine>>>, &Arc<Watchdog>),
) -> ListenerStarter {
    let (tcp, watchdog) = (Arc::clone(tcp), Arc::clone(watchdog));
    ListenerStarter { runtime: runtime.handle().clone(), make_engine, handles, tcp, watchdog }
}

/// What each forwarder thread is started with.
fn forwarder_config(
    runtime: &Handle,
    (snapshot, state): (&Arc<ArcSwap<Snapshot>>, &ServerState),
    clock: Clock,
    engines: Engines,
) -> impl Fn(usize, Arc<Inbox>, Forwarders) -> ForwarderConfig {
    let groups = state.zone_set.forwards().groups();
    let ports_max = engines.ports_max / engines.forwarders.max(1);
    move |number, inbox, forwarders| ForwarderConfig {
        name: format!("forward-{number}"),
        inbox,
        forwarders,
        snapshot: Arc::clone(snapshot),
        groups: Arc::clone(groups),
        clock,
        runtime: runtime.clone(),
        ports_max,
    }
}

/// The parts that the user's code needs, and queries of the process itself.
struct Handlers {
    own_queries: OwnQueries,
    /// The handles, one for each runtime.
    handles: Vec<RuntimeHandle>,
    /// The thread that looks after them, if there is code.
    deadlines: Option<Deadlines>,
}

impl Handlers {
    /// Starts the runtimes, with engines that count in `counters`.
    fn start(
        counters: &[Arc<Counters>],
        runtimes: &Arc<[Arc<CodeRuntime>]>,
        make_engine: &EngineMaker,
        handles: &ThreadHandles,
        watch: Looks,
    ) -> io::Result<Self> {
        let (clock, deferrals) = (handles.clock, &handles.deferrals);
        let mut counters = counters.iter();
        let mut next =
            || counters.next().expect("those of HANDLER_ENGINES, and one for each runtime");
        let own_queries = OwnQueries::new(lazily(make_engine, next()), clock, deferrals.clone());
        let answerer = Answerer::new(lazily(make_engine, next()), clock, deferrals.clone());
        let failed = handles.failed.clone();
        let deadlines = Deadlines::start(Arc::clone(runtimes), answerer, watch, failed)?;
        let handle = |runtime: &Arc<CodeRuntime>| RuntimeHandle {
            runtime: Arc::clone(runtime),
            answerer: Answerer::new(make_engine(next()), clock, deferrals.clone()),
        };
        let handles = runtimes.iter().map(handle).collect();
        Ok(Self { own_queries, handles, deadlines: Some(deadlines) })
    }
}

/// Reads the file of the cache, if there is one, and keeps it up to date from now on.
fn open_cache(
    state: &ServerState,
    clock: Clock,
    watchdog: &Arc<Watchdog>,
) -> io::Result<Option<Arc<CacheFile>>> {
    let keys = &state.config.cache;
    let Some(path) = keys.persist.clone() else { return Ok(None) };
    let forwards = state.zone_set.forwards();
    let cache = Arc::clone(forwards.cache());
    let sources: Vec<_> =
        forwards.iter_with_resolver().map(|it| (it.group_number(), *it.policy())).collect();
    cache_file::load(&path, &cache, &sources, state.seed, clock);
    CacheFile::keep(path, keys.persist_interval, cache, clock, watchdog).map(Some)
}
