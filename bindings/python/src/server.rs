//! The server, as Python's event loop drives it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use zonda_config::Config;
use zonda_engine::AnswerBelow;
use zonda_engine::code::{NO_HANDLER, Pattern};
use zonda_runtime::RuntimeConfig;
use zonda_server::{
    Code, CodeChange, CodeUpdates, ConfigChangeError, ErrorCode, FailedZone, Options, OwnReply,
    Program, ProgramConfig, ProgramError, RouteTable, ServeError, Server, Stores, failed_in_code,
    failed_text, zones_in_code,
};
use zonda_wire::Name;

use crate::batch::{Batches, WaitingQuery};
use crate::inbox::Inbox;
use crate::log;
use crate::number::shown;
use crate::pattern::check_pattern_text;
use crate::query::Query;
use crate::reply::Reply;
use crate::settings::Settings;
use crate::store::{self, zone_name};
use crate::wake::Wake;

pyo3::import_exception!(zonda.errors, ConfigError);
pyo3::import_exception!(zonda.errors, QueryError);
pyo3::import_exception!(zonda.errors, ServerError);
pyo3::import_exception!(zonda.errors, StateError);
pyo3::import_exception!(zonda.errors, ZoneError);

/// The number of the runtime that Python is.
const RUNTIME: u16 = 0;
/// Interval at which a stopping server is checked for its end.
const STOP_INTERVAL: Duration = Duration::from_millis(5);

/// A query as `take` gives it: the number of its handler, if it has one, those of the guards that
/// it passes, if there are any, and its reply.
type QueryAndReply<'py> = (Option<u32>, Option<Vec<u32>>, Bound<'py, Query>, Bound<'py, Reply>);

/// Patterns as Python writes them, and the numbers of their handlers or guards.
type NumberedRoutes = Vec<(String, u32)>;

/// Patterns of routes, by the numbers of their handlers.
type Patterns = Arc<RwLock<HashMap<u32, Arc<Pattern>>>>;

/// The server, while it runs.
pub type SharedServer = Arc<RwLock<Option<Arc<Server>>>>;

/// A server and its queries that wait for Python.
#[pyclass(frozen, module = "zonda._core")]
pub struct Core {
    wake: Arc<Wake>,
    inbox: Arc<Inbox>,
    /// Held while the server starts, so that a stop waits for that.
    starting: Mutex<()>,
    /// Whether the server is to stop, perhaps before it has started.
    is_given_up: AtomicBool,
    server: SharedServer,
    /// What the server is configured with, once it has started.
    config: Mutex<Option<ProgramConfig>>,
    /// Changes of routes while the server runs.
    updates: Mutex<Option<CodeUpdates>>,
    /// What queries are taken from, while the server runs; it holds sockets.
    batches: Mutex<Option<Batches>>,
    /// The patterns of routes that are in force, or are about to be.
    patterns: Patterns,
    /// The patterns of guards, by the numbers of these.
    guards: RwLock<HashMap<u32, Arc<Pattern>>>,
}

#[pymethods]
impl Core {
    /// One that is not started yet.
    #[new]
    fn new() -> PyResult<Self> {
        let wake = Arc::new(Wake::new()?);
        log::listen(&wake);
        Ok(Self {
            inbox: Arc::new(Inbox::new(Arc::clone(&wake))),
            wake,
            starting: Mutex::default(),
            is_given_up: AtomicBool::new(false),
            server: Arc::default(),
            config: Mutex::default(),
            updates: Mutex::default(),
            batches: Mutex::default(),
            patterns: Patterns::default(),
            guards: RwLock::default(),
        })
    }

    /// The descriptor that can be read from when `take`, `results` or `log_lines` has something.
    #[getter]
    fn wake_fd(&self) -> RawFd {
        self.wake.descriptor()
    }

    /// Starts the server. A route is a pattern and the number of its handler, or of its guard; with
    /// middleware, all queries come to Python. It is an exception if the server was given up.
    fn start(
        &self,
        py: Python<'_>,
        mut settings: Settings,
        routes: NumberedRoutes,
        guards: NumberedRoutes,
        middleware: bool,
    ) -> PyResult<()> {
        let mut table = RouteTable::new(RUNTIME);
        table.apply(self.change(Vec::new(), (routes, guards), middleware)?);
        let code = table.code();
        let server = Arc::downgrade(&self.server);
        *lock(&self.updates) = Some(CodeUpdates::new(table, move |code| {
            if let Some(server) = server.upgrade().and_then(|server| running(&server)) {
                server.set_code(code);
            }
        }));
        let stores = store::open(py, std::mem::take(&mut settings.stores))?;
        py.detach(|| {
            let _starting = lock(&self.starting);
            self.run(&settings, code, stores)
        })
    }

    /// Adds routes and guards, and removes the routes of handlers' numbers, while the server runs.
    /// Returns the number under which a result comes when that is in force; nothing if it is.
    fn change_code(
        &self,
        py: Python<'_>,
        removed: Vec<u32>,
        added: NumberedRoutes,
        guards: NumberedRoutes,
        middleware: bool,
    ) -> PyResult<Option<u64>> {
        let change = self.change(removed.clone(), (added, guards), middleware)?;
        let (inbox, patterns) = (Arc::clone(&self.inbox), Arc::clone(&self.patterns));
        let (number, no_longer) = (inbox.number(), removed.clone());
        let report = move || {
            forget(&patterns, &no_longer);
            inbox.give(number, None);
        };
        let is_done = py.detach(|| match &mut *lock(&self.updates) {
            Some(updates) => updates.change(change, report),
            None => true,
        });
        if is_done {
            forget(&self.patterns, &removed);
        }
        Ok((!is_done).then_some(number))
    }

    /// Has a query go on to the next handler behind the one that it has come to, whose pattern is
    /// its own from now on: that handler's number, or nothing if there is none.
    fn next_handler(&self, query: &Bound<'_, Query>) -> Option<u32> {
        let query = query.get();
        let (question, passed) = (query.question(), query.pattern_now());
        let server = self.server();
        let next = server?.next_handler(question, passed.as_deref(), RUNTIME)?;
        let patterns = self.patterns.read().unwrap_or_else(PoisonError::into_inner);
        query.go_on_to(Arc::clone(patterns.get(&next)?));
        Some(next)
    }

    /// Has a query capture the labels of the pattern of a guard, by its number, or those of its
    /// route again.
    fn enter_guard(&self, query: &Bound<'_, Query>, guard: Option<u32>) {
        let guards = self.guards.read().unwrap_or_else(PoisonError::into_inner);
        query.get().enter_guard(guard.and_then(|number| guards.get(&number).cloned()));
    }

    /// Makes `wake_fd` silent, which comes before everything else that it was for, and takes
    /// queries: a list of (number of the handler, numbers of the guards, query, reply), and whether
    /// there are more.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyList>, bool)> {
        self.wake.clear();
        let (taken, more) =
            py.detach(|| lock(&self.batches).as_ref().map(Batches::take)).unwrap_or_default();
        let patterns = self.patterns.read().unwrap_or_else(PoisonError::into_inner);
        let waiting = |taken: WaitingQuery| -> PyResult<QueryAndReply<'py>> {
            let (ticket, handler, is_guarded) = (taken.ticket, taken.handler, taken.is_guarded);
            let pattern = patterns.get(&handler).cloned();
            let query = Query::new(taken, pattern, Arc::clone(&self.server));
            let guards = is_guarded.then(|| self.guards_of(&query));
            let query = Bound::new(py, query)?;
            let reply = Bound::new(py, Reply::new(ticket, query.clone().unbind()))?;
            Ok(((handler != NO_HANDLER).then_some(handler), guards, query, reply))
        };
        let list = taken.into_iter().map(waiting).collect::<PyResult<Vec<_>>>()?;
        Ok((PyList::new(py, list)?, more))
    }

    /// Sends replies; those that were sent before are passed over. Returns queries that a handler
    /// has left to the next one, as `take` does.
    fn complete<'py>(
        &self,
        py: Python<'py>,
        replies: &Bound<'py, PyList>,
    ) -> PyResult<Vec<QueryAndReply<'py>>> {
        let (mut given, mut left) = (Vec::with_capacity(replies.len()), Vec::new());
        for item in replies {
            let reply = item.cast::<Reply>()?;
            let query = reply.try_borrow()?.query_left(py);
            let next = query.and_then(|query| Some((self.next_handler(&query)?, query)));
            match next {
                Some((next, query)) => {
                    reply.try_borrow_mut()?.clear()?; // what was added is not the next one's
                    left.push((Some(next), None, query, reply.clone()));
                }
                None => given.extend(reply.try_borrow_mut()?.give()),
            }
        }
        py.detach(|| {
            if let Some(batches) = &*lock(&self.batches) {
                batches.complete(&given);
            }
        });
        Ok(left)
    }

    /// Has the reply be what the core answers where no handler does; returns the number under which
    /// that will come if it is not there yet. The core keeps it with the query, and sends it if the
    /// reply is not changed.
    fn below(
        &self,
        py: Python<'_>,
        query: &Bound<'_, Query>,
        reply: &Bound<'_, Reply>,
    ) -> PyResult<Option<u64>> {
        let (message, peer) = query.get().asked();
        let ticket = reply.try_borrow()?.ticket();
        let runtime = lock(&self.batches).as_ref().map(Batches::runtime);
        let keep = move |below: AnswerBelow| {
            let message = below.message.clone();
            if let (Some(runtime), Some(ticket)) = (runtime, ticket) {
                runtime.keep(ticket, below);
            }
            message
        };
        match py.detach(|| self.with_server(|server| server.query_below(message, peer)))? {
            OwnReply::Now(below) => {
                reply.try_borrow_mut()?.take_over(below.map(keep))?;
                Ok(None)
            }
            OwnReply::Later(later) => Ok(Some(self.inbox.expect(later, keep)?)),
        }
    }

    /// Asks a query in wire form, as a client at an address would over TCP: the reply, or the
    /// number under which it will come. `None` for both is silence.
    #[pyo3(signature = (message, client=None))]
    fn ask<'py>(
        &self,
        py: Python<'py>,
        message: &Bound<'py, PyAny>,
        client: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Option<Bound<'py, PyBytes>>, Option<u64>)> {
        let client = client.map(read_client).transpose()?;
        let message = message.extract::<&[u8]>().map_err(|_| {
            let text = format!("the message must be bytes, not {}", shown(message));
            QueryError::new_err(text)
        })?;
        match py.detach(|| self.with_server(|server| server.query(message, client)))? {
            OwnReply::Now(reply) => Ok((reply.map(|reply| PyBytes::new(py, &reply)), None)),
            OwnReply::Later(later) => Ok((None, Some(self.inbox.expect(later, |it| it)?))),
        }
    }

    /// The replies that came later, by their numbers; `None` is silence.
    fn results<'py>(&self, py: Python<'py>) -> Vec<(u64, Option<Bound<'py, PyBytes>>)> {
        let arrived = self.inbox.take().into_iter();
        arrived.map(|(number, reply)| (number, reply.map(|it| PyBytes::new(py, &it)))).collect()
    }

    /// The addresses and ports that are answered on, in the order in which they were given.
    fn addresses(&self) -> PyResult<Vec<(String, u16)>> {
        let addresses = self.with_server(Server::addresses)?;
        Ok(addresses.iter().map(|address| (address.ip().to_string(), address.port())).collect())
    }

    /// Reads the configuration and changed zones anew. An exception says what is wrong with the
    /// configuration, or which zones cannot be loaded: all else is then in force.
    fn reload(&self, py: Python<'_>) -> PyResult<()> {
        let failed = py.detach(|| self.with_server(Server::reload))?;
        match failed.map_err(ConfigError::new_err)? {
            failed if failed.is_empty() => Ok(()),
            failed => Err(ZoneError::new_err(failed_text(&failed))),
        }
    }

    /// The zones that could not be loaded when that was last tried: the name, if it is known,
    /// whether a former version is served, and what is wrong.
    fn failed_zones(&self, py: Python<'_>) -> PyResult<Vec<(Option<String>, bool, String)>> {
        let failed = py.detach(|| self.with_server(Server::failed_zones))?.into_iter();
        let told = |FailedZone { name, is_served, error, .. }| {
            (name.map(|name: Name| name.to_string()), is_served, error)
        };
        Ok(failed.map(told).collect())
    }

    /// Serves a zone from other text, or from text for the first time. What is wrong with it is an
    /// exception, and leaves the former version in service.
    fn set_zone_text(&self, py: Python<'_>, name: &str, text: &str) -> PyResult<()> {
        let name = self.own_zone_name(name)?;
        py.detach(|| {
            let set = self.with_server(|server| server.set_zone_text(&name, text))?;
            set.map_err(ZoneError::new_err)
        })
    }

    /// Takes a zone that is given as text out of service; whether there was one.
    fn remove_zone_text(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        let name = self.own_zone_name(name)?;
        py.detach(|| {
            let removed = self.with_server(|server| server.remove_zone_text(&name))?;
            removed.map_err(ZoneError::new_err)
        })
    }

    /// Serves a zone from a file, in place of a former file. What is wrong with it is an exception,
    /// and leaves the former version in service.
    fn set_zone_file(&self, py: Python<'_>, name: &str, file: PathBuf) -> PyResult<()> {
        let name = zone_name(name)?;
        self.reconfigure(py, |config, server| config.set_zone_file(server, &name, &file))
    }

    /// Serves a zone from a store, in place of a former store.
    fn set_zone_store(&self, zone: &str, store: &Bound<'_, PyAny>) -> PyResult<()> {
        let name = zone_name(zone)?;
        let opened = store::open_one(store, &name)?;
        store.py().detach(|| {
            let set = self.with_server(|server| server.set_zone_store(&name, opened))?;
            set.map_err(ZoneError::new_err)
        })
    }

    /// Takes a zone of the program out of service; whether there was one.
    fn remove_zone(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        let name = zone_name(name)?;
        self.reconfigure(py, |config, server| config.remove_zone(server, &name))
    }

    /// Asks these servers for all other names, in place of the former ones.
    fn set_forwards(&self, py: Python<'_>, servers: Vec<String>) -> PyResult<()> {
        self.reconfigure(py, |config, server| config.set_forwards(server, &servers))
    }

    /// Whether the server has ended, or was never started.
    fn is_finished(&self) -> bool {
        self.server().is_none_or(|server| server.is_finished())
    }

    /// Has a start that is under way, or comes later, end in an exception.
    fn give_up(&self) {
        self.is_given_up.store(true, Ordering::SeqCst);
    }

    /// Answers what was received, stops, and waits for that. If it is about to start, it never
    /// does.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.give_up();
        py.detach(|| {
            drop(lock(&self.starting)); // what was begun has ended, or stops by itself
            if let Some(server) = self.server() {
                server.stop_stores();
                server.request_stop();
            }
            while !self.is_finished() {
                thread::sleep(STOP_INTERVAL); // queries of its handlers are answered meanwhile
            }
            *lock(&self.batches) = None;
            let server = self.server.write().unwrap_or_else(PoisonError::into_inner).take();
            server.map_or(Ok(()), wait).map_err(|error| serve_error(&error))
        })
    }
}

impl Core {
    /// The server, if it runs. The lock is free again: some calls of the server take seconds.
    fn server(&self) -> Option<Arc<Server>> {
        running(&self.server)
    }

    /// What the running server says.
    fn with_server<T>(&self, call: impl FnOnce(&Server) -> T) -> PyResult<T> {
        let server = self.server();
        server.as_deref().map(call).ok_or_else(|| StateError::new_err("the app is not running"))
    }

    /// Changes what the running server is configured with.
    fn reconfigure<R: Send>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&ProgramConfig, &Server) -> Result<R, ConfigChangeError> + Send,
    ) -> PyResult<R> {
        py.detach(|| {
            let config = lock(&self.config).clone();
            let config = config.ok_or_else(|| StateError::new_err("the app is not running"))?;
            let changed = self.with_server(|server| change(&config, server))?;
            changed.map_err(|error| match error {
                ConfigChangeError::Config(text) => ConfigError::new_err(text),
                wrong => ZoneError::new_err(wrong.to_string()),
            })
        })
    }

    /// The name of a zone that may be given as text.
    fn own_zone_name(&self, name: &str) -> PyResult<Name> {
        let parsed = zone_name(name)?;
        match self.server().is_some_and(|server| server.follows_store(&parsed)) {
            true => Err(ZoneError::new_err(format!("zone {name:?} has what a store has"))),
            false => Ok(parsed),
        }
    }

    /// The numbers of the guards that a query passes.
    fn guards_of(&self, query: &Query) -> Vec<u32> {
        let (name, qtype) = query.question();
        self.server().map_or_else(Vec::new, |server| server.guard_numbers(name, qtype))
    }

    /// A change of routes and guards as the server takes it; the patterns of routes are kept for
    /// queries.
    fn change(
        &self,
        removed: Vec<u32>,
        (routes, guards): (NumberedRoutes, NumberedRoutes),
        has_middleware: bool,
    ) -> PyResult<CodeChange> {
        let mut patterns = self.patterns.write().unwrap_or_else(PoisonError::into_inner);
        let removed = removed.into_iter().collect();
        let mut change = CodeChange { removed, has_middleware, ..CodeChange::default() };
        for (text, handler) in routes {
            let pattern = check_pattern_text(&text)?;
            patterns.insert(handler, Arc::new(pattern.clone()));
            change.added.insert(handler, pattern);
        }
        let mut patterns = self.guards.write().unwrap_or_else(PoisonError::into_inner);
        for (text, guard) in guards {
            let pattern = check_pattern_text(&text)?;
            patterns.insert(guard, Arc::new(pattern.clone()));
            change.guards.insert(guard, pattern);
        }
        Ok(change)
    }

    /// Whether a start is still wanted.
    fn go_on(&self) -> PyResult<()> {
        match self.is_given_up.load(Ordering::SeqCst) {
            true => Err(StateError::new_err("the app was stopped before it had started")),
            false => Ok(()),
        }
    }

    /// Starts the server in a thread of its own.
    fn run(&self, settings: &Settings, code: Code, stores: Stores) -> PyResult<()> {
        let flags = settings.flags();
        let mut mistakes = Vec::new();
        let metrics = settings.metrics.as_deref().and_then(|text| {
            text.parse().map_err(|error| mistakes.push(format!("metrics: {error}"))).ok()
        });
        let patience = Duration::try_from_secs_f64(settings.deadline)
            .map_err(|_| mistakes.push(format!("deadline: {} is too long", settings.deadline)))
            .unwrap_or_default();
        let texts = settings.texts(&stores, &mut mistakes);
        let mut required_zones = zones_in_code(&flags, &texts);
        if settings.allow_failed_zones {
            required_zones.clear();
        }
        let changeable = ProgramConfig::new(settings.config.clone(), flags, metrics);
        let config = changeable.clone();
        let read_config = move || config.read();
        let all_mistakes = |mut mistakes: Vec<String>, config: Result<Config, String>| {
            let failed = failed_in_code(config.as_ref().ok(), &texts, &required_zones);
            mistakes.extend(config.err());
            mistakes.extend(failed.iter().map(ToString::to_string));
            ConfigError::new_err(mistakes.join("\n"))
        };
        if !mistakes.is_empty() {
            return Err(all_mistakes(mistakes, read_config()));
        }
        self.go_on()?;
        let config = match read_config() {
            Ok(config) => config,
            wrong => return Err(all_mistakes(mistakes, wrong)),
        };
        self.go_on()?;
        let wake = Arc::clone(&self.wake);
        let runtime = RuntimeConfig {
            waiting_max: settings.waiting_max,
            patience_nanos: u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX),
            wake: Box::new(move || wake.wake()),
        };
        let (give, given) = mpsc::channel();
        let start = Box::new(move |handles| _ = give.send(handles)); // the caller waits for it
        let program = Program {
            code,
            runtimes: vec![runtime],
            start: Some(start),
            shares_addresses: settings.reuse_port,
            texts,
            stores,
            required_zones,
            ..Program::default()
        };
        let read_config = Box::new(read_config);
        let options = Options { config, read_config, take_over: false, program };
        let server = Server::start(options).map_err(|error| serve_error(&error))?;
        if let Err(given_up) = self.go_on() {
            server.stop().map_err(|error| serve_error(&error))?;
            return Err(given_up);
        }
        if let Some(handle) =
            given.recv().ok().and_then(|handles: Vec<_>| handles.into_iter().next())
        {
            *lock(&self.batches) = Some(Batches::from(handle));
        }
        *lock(&self.config) = Some(changeable);
        *self.server.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(server));
        self.wake.wake(); // for what came before there was something to take it from
        Ok(())
    }
}

/// The server, if it runs.
pub fn running(server: &SharedServer) -> Option<Arc<Server>> {
    server.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Waits until a server has stopped, and until no call of it is under way.
fn wait(mut server: Arc<Server>) -> Result<(), ServeError> {
    loop {
        match Arc::try_unwrap(server) {
            Ok(server) => return server.wait(),
            Err(shared) => server = shared,
        }
        thread::sleep(STOP_INTERVAL);
    }
}

/// What a lock protects, for a moment; all that are here are whole after any panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forgets the patterns of handlers that are called no longer.
fn forget(patterns: &Patterns, removed: &[u32]) {
    let mut patterns = patterns.write().unwrap_or_else(PoisonError::into_inner);
    removed.iter().for_each(|number| _ = patterns.remove(number));
}

/// The exception for a server that could not start or had to stop.
fn serve_error(error: &ServeError) -> PyErr {
    let ProgramError { code, text, listen } = error.into();
    match (code, listen, error) {
        (_, Some((_, errno)), _) => PyOSError::new_err((errno, text)),
        (ErrorCode::Zone, ..) => ZoneError::new_err(text),
        (.., ServeError::Listen(_)) => PyOSError::new_err(text),
        _ => ServerError::new_err(text),
    }
}

/// A client's address, with or without a port; also a pair of both, as of `App.addresses`.
fn read_client(client: &Bound<'_, PyAny>) -> PyResult<SocketAddr> {
    let parsed = match client.extract::<(String, u16)>() {
        Ok((address, port)) => address.parse().map(|ip| SocketAddr::new(ip, port)).ok(),
        Err(_) => client.extract::<&str>().ok().and_then(|text| {
            text.parse().ok().or_else(|| text.parse().ok().map(|ip| SocketAddr::new(ip, 0)))
        }),
    };
    parsed.ok_or_else(|| {
        let given = shown(client);
        let text = format!("the client must be an address such as \"192.0.2.7\", not {given}");
        QueryError::new_err(text)
    })
}

/// The lines that the core has logged: the number of the level, and the text.
#[pyfunction]
pub fn log_lines() -> Vec<log::Line> {
    log::take()
}
