//! The user's code beside the server's own sources of answers.

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use arc_swap::ArcSwap;
use tokio::sync::mpsc;
use zonda_config::{Advice, Config, ConfigError, Flags, LogLevel, Origin, Problem, Warning};
use zonda_deferral::{Clock, Deferrals, Deferred, LazyResponder, ReplyTo, keep_octets};
use zonda_engine::code::{Cache, Callee, Guard, Handler, Handlers, Route, Stage, Watch};
use zonda_engine::{AnswerBelow, Engine, Event, Now, Outcome, Peer, Snapshot, Transport};
use zonda_runtime::{Answerer, LongCalls, Runtime, RuntimeConfig};
use zonda_wire::Name;
use zonda_zone::HashSeed;

use crate::check::{check_texts, check_zones};
use crate::failed_zones::FailedZone;
use crate::feed::stores::Stores;
use crate::log_budget::LogBudget;
use crate::texts::Texts;

/// Tells whether the configuration is to be read anew: files that it is made of have changed since
/// they were read last, or what was read is tried again.
pub type ConfigWatch = Box<dyn Fn(LastReading) -> bool + Send + Sync>;

/// What became of the configuration that was read last without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastReading {
    /// The configuration is in force.
    InForce,
    /// The configuration could not be put into force, and an earlier one is; or it is in force
    /// without one of its listeners, which could not be started.
    Refused,
    /// The configuration was refused, and is due to be tried again.
    Due,
}

/// Has the server's own log tell events from a level on.
pub type SetLogLevel = Box<dyn Fn(LogLevel) + Send + Sync>;

/// The user's code that a server is started with, and zones of it; by default none.
#[derive(Default)]
pub struct Program {
    /// The user's code, and the names for which it is called.
    pub code: Code,
    /// The runtimes of code that does not run in the workers, by their numbers.
    pub runtimes: Vec<RuntimeConfig>,
    /// Given to the runtimes once the server runs, in the order of their numbers.
    pub start: Option<Box<dyn FnOnce(Vec<RuntimeHandle>) + Send>>,
    /// Whether other processes of the program answer on the same addresses: the kernel then spreads
    /// clients over them. Connections that wait when one of them ends are lost.
    pub shares_addresses: bool,
    /// Zones whose master files are texts.
    pub texts: Texts,
    /// Zones that follow stores of the program.
    pub stores: Stores,
    /// Zones without which the server does not start, by their names in lower case.
    pub required_zones: HashSet<Name>,
    /// Told of every query, beside the query log of the configuration.
    pub loggers: Vec<Arc<dyn Logger>>,
    /// Has the configuration read anew when it tells that files have changed of which it is made,
    /// or is tried again; it is asked at each look at watched files.
    pub config_watch: Option<ConfigWatch>,
    /// Called when a reload has another level of the log in force; a program that writes the log
    /// itself has none.
    pub log_level: Option<SetLogLevel>,
    /// Called by the server's thread, as its last act, when the server has stopped: because the
    /// program or an administrator asked for that, or because it had to. Not called where the
    /// server could not start.
    pub ended: Option<Box<dyn FnOnce() + Send>>,
}

/// Is told of every query and what became of it.
///
/// Called by the thread that answers, which it must not keep: no files, no sockets, no locks that
/// another thread holds for long. A channel that is never waited for is well.
pub trait Logger: Send + Sync {
    /// Takes note of a query that was answered or dropped.
    fn log(&self, event: &Event<'_>);
}

impl<F: Fn(&Event<'_>) + Send + Sync> Logger for F {
    fn log(&self, event: &Event<'_>) {
        self(event);
    }
}

/// The user's code, and the names for which it is called.
#[derive(Clone, Default)]
pub struct Code {
    /// Handlers in the order in which they were added.
    pub routes: Vec<Route<Handler>>,
    /// What all queries pass.
    pub middleware: Vec<Arc<dyn Stage>>,
    /// What queries for the names of patterns pass.
    pub guards: Vec<Route<Guard>>,
    /// Number of the runtime that has middleware of its own for all queries.
    pub middleware_runtime: Option<u16>,
    /// Number of the runtime that itself calls the handlers behind one of its own.
    pub chaining_runtime: Option<u16>,
    /// Where the user keeps answers of handlers.
    pub cache: Option<Arc<dyn Cache>>,
}

/// The handle with which a runtime of the user's code answers its queries.
pub struct RuntimeHandle {
    /// The queries that wait for the runtime.
    pub runtime: Arc<Runtime>,
    /// Writes and sends replies.
    pub answerer: Answerer<Engine>,
}

/// The zones that a program gives as files, by `flags`, and as texts; in lower case. What is no
/// name is told when the configuration is read.
#[must_use]
pub fn zones_in_code(flags: &Flags, texts: &Texts) -> HashSet<Name> {
    let name = |zone: &String| zone.split_once('=')?.0.parse::<Name>().ok();
    let files = flags.zones.iter().filter_map(name).map(|name| name.to_lowercase());
    files.chain(texts.keys().cloned()).collect()
}

/// The zones among `required` that cannot be loaded, for a program that does not start for another
/// reason and tells all mistakes at once. Without a configuration, which would say where files lie,
/// only those are looked at that are given as text.
#[must_use]
pub fn failed_in_code(
    config: Option<&Config>,
    texts: &Texts,
    required: &HashSet<Name>,
) -> Vec<FailedZone> {
    let mut failed = config.map_or_else(Vec::new, |it| check_zones(&it.zones, required));
    failed.extend(check_texts(texts, required));
    failed.sort_by_cached_key(|zone| zone.name.as_ref().map(ToString::to_string));
    failed
}

/// Reads the configuration of a program: of a file, if it has one, of what `flags` say instead, and
/// with metrics at an address. What is asked at that address changes nothing, and is told nothing
/// but how the server is.
///
/// # Errors
/// All that is wrong with it, a line each.
pub fn read_config(
    file: Option<&Path>,
    flags: &Flags,
    metrics: Option<SocketAddr>,
) -> Result<Config, String> {
    let lines = |errors: Vec<ConfigError>| {
        errors.into_iter().map(option_error).collect::<Vec<_>>().join("\n")
    };
    let loaded = Config::load(file, [], flags).map_err(lines)?;
    // Code answers where there is no zone, and the program itself asks where there is no listener.
    let is_meant = |advice: &Advice| matches!(advice, Advice::NoZones | Advice::NoListeners);
    let warnings = loaded.warnings.iter().filter(|warning| !is_meant(&warning.advice));
    warnings.for_each(|warning| {
        tracing::warn!(warning = option_warning(warning, file), "configuration");
    });
    let mut config = loaded.config;
    if file.is_none() {
        config.admin.socket = None; // a program has its own ways; several apps may be in one
    }
    config.admin.is_metrics_only = metrics.is_some();
    config.admin.address = metrics.or(config.admin.address.filter(|_| file.is_some()));
    if let Some(address) = config.admin.address_without_token() {
        return Err(format!(
            "metrics: others can reach {address}, and no token is asked for; choose a loopback \
             address such as 127.0.0.1:9153, or a configuration file with a token in [admin]"
        ));
    }
    Ok(config)
}

/// What is wrong with the configuration of a program, which has options in place of flags, and
/// their names in place of keys.
fn option_error(error: ConfigError) -> String {
    let place = option_name(&error.origin);
    match &error.problem {
        Problem::ZoneFile(_) => format!(
            "{place}: this is a zone file, and not a configuration file; give it to `zone`, with \
             the name of the zone"
        ),
        Problem::Value { found, form, .. } if matches!(error.origin, Origin::Flag(_)) => {
            format!("{place}: it cannot be {found}; write {form}")
        }
        problem => format!("{place}: {problem}"),
    }
}

/// What a program may want to change in its configuration, which is in a file or in options.
fn option_warning(warning: &Warning, file: Option<&Path>) -> String {
    let place = option_name(&warning.origin);
    match &warning.advice {
        Advice::Unlimited(address) if file.is_none() => format!(
            "{place}: {address} can be reached from the Internet and used to flood others; have \
             `config` name a file that has `responses-per-second = 20` in [rate-limit]"
        ),
        advice => format!("{place}: {advice}"),
    }
}

/// What a program calls a place of its configuration: flags are options there.
fn option_name(origin: &Origin) -> String {
    match origin {
        Origin::Flag(flag) => flag.trim_start_matches('-').to_owned(),
        place => place.to_string(),
    }
}

impl Code {
    /// As workers use it, for names that are hashed with `seed`; nothing if there is no code.
    pub(crate) fn handlers(self, seed: HashSeed) -> Option<Arc<Handlers>> {
        let Self { routes, middleware, guards, middleware_runtime, chaining_runtime, cache } = self;
        let has_names = !routes.is_empty() || !guards.is_empty();
        if !has_names && middleware.is_empty() && middleware_runtime.is_none() {
            return None;
        }
        let handlers = Handlers::new(routes, middleware, middleware_runtime, seed)
            .with_guards(guards, seed)
            .with_chaining_runtime(chaining_runtime)
            .with_cache(cache)
            .with_panic_log(log_panic);
        Some(Arc::new(handlers))
    }
}

/// What code is called in the log.
fn name_of(callee: Callee<'_>) -> String {
    match callee {
        Callee::Handler(pattern) => format!("the handler of {}", pattern.as_str()),
        Callee::Cache => "the cache".to_owned(),
        Callee::Middleware => "a middleware".to_owned(),
    }
}

/// Logs a panic of code in a worker.
fn log_panic(callee: Callee<'_>, message: &str) {
    static BUDGET: LogBudget = LogBudget::new();
    let code = name_of(callee);
    BUDGET.spend(|left_out| tracing::error!(code, panic = message, left_out, "code panicked"));
}

/// Watches the code that runs in workers.
pub(crate) struct LongCallWatch {
    engines: Mutex<Vec<Weak<Watch>>>,
    snapshot: Arc<ArcSwap<Snapshot>>,
    /// Calls that took too long.
    pub(crate) long_calls: AtomicU64,
}

/// How many looks of the deadlines thread, 50 ms each, a call in a worker may last.
const LOOKS_MAX: u32 = 20;

impl LongCallWatch {
    /// A watch over engines that answer from `snapshot`.
    pub(crate) fn new(snapshot: Arc<ArcSwap<Snapshot>>) -> Self {
        Self { engines: Mutex::default(), snapshot, long_calls: AtomicU64::new(0) }
    }

    /// Watches an engine for as long as it exists.
    pub(crate) fn add(&self, engine: &Engine) {
        let mut engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
        engines.retain(|watch| watch.strong_count() > 0);
        engines.push(Arc::downgrade(engine.watch()));
    }

    /// Whether one of the engines is calling code in this thread.
    pub(crate) fn is_current(&self) -> bool {
        let engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
        engines.iter().filter_map(Weak::upgrade).any(|watch| watch.is_current())
    }

    /// Reports code that takes too long.
    pub(crate) fn look(&self, seen: &mut LongCalls) {
        let engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let calls = engines.iter().map(|watch| watch.upgrade()?.call());
        for route in seen.look(calls, LOOKS_MAX) {
            self.long_calls.fetch_add(1, Ordering::Relaxed);
            let snapshot = self.snapshot.load();
            let callee = snapshot.handlers.as_ref().map(|handlers| handlers.callee(route));
            let code = name_of(callee.unwrap_or(Callee::Middleware));
            tracing::warn!(
                code,
                "code has been running for a second in a worker, whose other queries wait: make \
                 it shorter, or asynchronous"
            );
        }
    }
}

/// Answers queries that the process itself has.
pub(crate) struct OwnQueries {
    /// An engine, and room for a query and then its reply; there once there was a query.
    engine: Mutex<(LazyResponder<Engine>, Vec<u8>)>,
    clock: Clock,
    deferrals: Deferrals,
}

/// The reply to a query of the process itself.
#[derive(Debug)]
pub enum OwnReply<T = Vec<u8>> {
    /// The reply; nothing for silence.
    Now(Option<T>),
    /// The reply comes later; when the sender is gone, there is none.
    Later(mpsc::Receiver<T>),
}

/// Octets of the longest message.
const MESSAGE_MAX: usize = u16::MAX as usize;

impl OwnQueries {
    /// A handle that answers with an engine of its own.
    pub(crate) fn new(engine: LazyResponder<Engine>, clock: Clock, deferrals: Deferrals) -> Self {
        Self { engine: Mutex::new((engine, Vec::new())), clock, deferrals }
    }

    /// Asks a query, at most 65,535 octets, as a client at `address` would over TCP.
    pub(crate) fn ask(&self, query: &[u8], address: Option<SocketAddr>) -> OwnReply {
        let address = address.unwrap_or((Ipv4Addr::LOCALHOST, 0).into());
        let peer = Peer::new(address, Transport::Tcp, u16::MAX);
        let reply = |message: &[u8], _: &mut Engine| message.to_vec();
        self.ask_with(query, peer, Engine::answer, reply, ReplyTo::Connection)
    }

    /// Asks a query as `peer` would over TCP, and what is answered where no code runs in front of
    /// it that does not run in the workers. Neither counted nor logged, which the query is that the
    /// code has to answer.
    pub(crate) fn ask_below(&self, query: &[u8], peer: Peer) -> OwnReply<AnswerBelow> {
        let mut peer = peer;
        peer.transport = Transport::Tcp; // neither truncated nor limited
        let below = |message: &[u8], engine: &mut Engine| {
            AnswerBelow::new(message.to_vec(), engine.take_facts())
        };
        self.ask_with(query, peer, Engine::answer_below, below, ReplyTo::Code)
    }

    /// Asks a query with a call of the engine. `reply` makes the reply of the message that the
    /// engine has written; one that comes later leaves by the way that `reply_to` names.
    fn ask_with<T>(
        &self,
        query: &[u8],
        peer: Peer,
        call: impl FnOnce(&mut Engine, Now, &Peer, &mut [u8], usize) -> Outcome,
        reply: impl FnOnce(&[u8], &mut Engine) -> T,
        reply_to: impl FnOnce(mpsc::Sender<T>) -> ReplyTo,
    ) -> OwnReply<T> {
        let query = &query[..query.len().min(MESSAGE_MAX)];
        let mut guard = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        let (engine, buffer) = &mut *guard;
        buffer.resize(MESSAGE_MAX, 0);
        buffer[..query.len()].copy_from_slice(query);
        engine.get().refuse_transfers();
        match call(engine.get(), self.clock.now(), &peer, buffer, query.len()) {
            Outcome::Reply(len) => OwnReply::Now(Some(reply(&buffer[..len], engine.get()))),
            Outcome::Silence => OwnReply::Now(None),
            Outcome::Deferred(mut deferral) => {
                drop(guard); // workers shall not wait for it
                let (sender, receiver) = mpsc::channel(1);
                let query = keep_octets(query, &mut deferral);
                let reply_to = reply_to(sender);
                let deferred = Deferred { query, peer, deferral, reply_to };
                self.deferrals.submit(&mut vec![deferred]);
                OwnReply::Later(receiver)
            }
        }
    }
}
