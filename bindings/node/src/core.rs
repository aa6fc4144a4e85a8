//! The server as JavaScript holds it.

mod code;
mod log;
mod options;
mod queries;
mod zones;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use napi::bindgen_prelude::{Buffer, BufferSlice, Function};
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi_derive::napi;
use zonda_engine::code::HandlerReply;
use zonda_runtime::Runtime;
use zonda_server::{
    Code, CodeUpdates, LogReader, ProgramConfig, ProgramError, RuntimeHandle, Server, Stores, Texts,
};
use zonda_wire::Name;

use crate::batch;
use crate::own_store::{Calls, OwnStore};
use crate::server::{self, RunningServer};
use crate::table::Table;
use options::start;

/// Queries that one call takes: replies to the first must not wait for all the rest.
const TAKE_MAX: usize = 512;
/// Octets that are kept for what is taken next: many of the usual batches, and few of the longest.
const TAKEN_OCTETS_KEPT: usize = 1 << 20;
/// How long stopping waits before it looks again whether the server, or a reload, has ended.
const STOP_INTERVAL: Duration = Duration::from_millis(5);

/// Options of an app when it is made.
#[napi(object)]
pub struct CoreOptions {
    /// Addresses and ports; `udp://` or `tcp://` before one leaves the other out.
    pub listen: Vec<String>,
    /// There are no addresses, and none by default.
    pub listens_nowhere: bool,
    /// The configuration file.
    pub config: Option<String>,
    /// Names of zones and their files.
    pub zones: Vec<Vec<String>>,
    /// Servers that are asked for all other names.
    pub forward: Vec<String>,
    /// Threads that answer UDP.
    pub workers: Option<u32>,
    /// Time that handlers have, milliseconds.
    pub deadline: Option<f64>,
    /// Queries that may wait for handlers.
    pub waiting_max: Option<u32>,
    /// The address of metrics.
    pub metrics: Option<String>,
    /// Level of the log: `error`, `warn`, `info`, `debug`, or `off`.
    pub log: Option<String>,
    /// Whether other processes answer on the same addresses.
    pub shares_addresses: bool,
    /// Whether the app starts without zones that cannot be loaded; not unless it is said.
    pub allows_failed_zones: Option<bool>,
}

/// A zone, or a file or directory of zones, that could not be loaded.
#[napi(object)]
pub struct FailedZone {
    /// The zone's name; nothing for a file or directory of zones whose names are not known.
    pub name: Option<String>,
    /// Whether a former version is served.
    pub is_served: bool,
    /// What is wrong.
    pub error: String,
}

/// An error of the core, of which JavaScript makes one of its own.
#[napi(object)]
pub struct CoreError {
    /// Code by which programs tell errors apart.
    pub code: String,
    /// What is wrong.
    pub message: String,
    /// The system's number of the error.
    pub errno: Option<i32>,
    /// The address that cannot be listened on.
    pub address: Option<String>,
    /// The port that cannot be listened on.
    pub port: Option<u16>,
}

impl From<ProgramError> for CoreError {
    fn from(error: ProgramError) -> Self {
        let (place, errno) = error.listen.unzip();
        Self {
            code: error.code.as_str().to_owned(),
            message: error.text,
            errno,
            address: place.map(|place| place.ip().to_string()),
            port: place.map(|place| place.port()),
        }
    }
}

/// Something that was asked for has ended.
#[napi(object)]
pub struct Event {
    /// Token that JavaScript chose for the operation.
    pub token: u32,
    /// Why the operation has failed.
    pub error: Option<CoreError>,
    /// The reply, if it was a query; nothing for silence.
    pub reply: Option<Buffer>,
}

/// A reply that could not be sent.
#[napi(object)]
pub struct ReplyMistake {
    /// Place of the query in the batch.
    pub place: u32,
    /// What is wrong.
    pub what: String,
    /// Number of the section that has the wrong record; nothing if the whole reply is wrong.
    pub section: Option<u32>,
    /// Place of the wrong record in its section, without OPT records.
    pub index: Option<u32>,
}

/// An [`Event`] before JavaScript sees it.
struct CoreEvent {
    token: u32,
    error: Option<ProgramError>,
    reply: Option<Vec<u8>>,
}

/// Calls JavaScript, from any thread.
type Wake = Box<dyn Fn() + Send + Sync>;

/// Reports to JavaScript that the server has stopped, with the reason if it had to.
type OnClose = Box<dyn FnOnce(Option<ProgramError>) + Send>;

/// What the threads of a core share.
#[derive(Default)]
struct Shared {
    /// The server, from when it has started until it has stopped.
    started: Mutex<Option<StartedServer>>,
    events: Mutex<Vec<CoreEvent>>,
    /// Keeps the process alive, as long as it is there.
    wake: Mutex<Option<Wake>>,
    /// There from the start until the server has stopped.
    closed: Mutex<Option<OnClose>>,
    /// The log, while JavaScript reads it, and whether it was woken for what it has not read yet.
    log: Mutex<Option<Arc<LogReader>>>,
    is_log_due: AtomicBool,
    /// Whether JavaScript has forgotten the app, perhaps while it starts.
    is_gone: AtomicBool,
}

/// A server that runs.
struct StartedServer {
    /// There while it stops, too: handlers that are waited for ask it what is below them.
    running: Arc<Server>,
    /// What it is configured with.
    config: ProgramConfig,
    /// Whether the server was asked to stop.
    is_stopping: bool,
    handle: RuntimeHandle,
    draft: HandlerReply,
    /// Queries that were taken and that JavaScript has not got yet, and whether there are more.
    taken: (Vec<u8>, bool),
}

/// What one app of JavaScript is made of.
#[napi]
pub struct Core {
    shared: Arc<Shared>,
    options: CoreOptions,
    /// What the server is started with.
    code: Code,
    /// Changes of the routes of the code while the server runs.
    updates: Option<CodeUpdates>,
    /// Records that workers answer from.
    table: Arc<Table>,
    /// Zones that are given as text, and those that follow stores.
    texts: Arc<Mutex<Texts>>,
    /// What the latter follow, until the app has started.
    stores: Arc<Mutex<Stores>>,
    /// Stores that are written in JavaScript, by their numbers, and the number of the next one.
    own_stores: HashMap<u32, Weak<OwnStore>>,
    next_store: u32,
    /// What these are asked.
    calls: Arc<Calls>,
    /// Waits for replies to queries of the program itself.
    waiting: OnceLock<tokio::runtime::Runtime>,
}

/// Locks what is whole after every statement, so that a panic elsewhere does not matter.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An error for JavaScript.
pub fn error(what: impl ToString) -> napi::Error {
    napi::Error::from_reason(what.to_string())
}

impl Shared {
    /// Wakes JavaScript to take queries or events.
    fn wake(&self) {
        if let Some(wake) = &*lock(&self.wake) {
            wake();
        }
    }

    /// Queues the event for an operation that has ended.
    fn tell(&self, ended: CoreEvent) {
        lock(&self.events).push(ended);
        self.wake();
    }

    /// Queues the event for an operation that has ended without a reply.
    fn tell_end(&self, token: u32, error: Option<ProgramError>) {
        self.tell_end_with(token, error, None);
    }

    /// Queues the event for an operation that has ended, with its result.
    fn tell_end_with(&self, token: u32, error: Option<ProgramError>, reply: Option<Vec<u8>>) {
        self.tell(CoreEvent { token, error, reply });
    }

    /// Queues the event for a start that has failed, behind which nothing calls JavaScript. That
    /// may start the app anew as soon as it knows, so that all else is done before.
    fn tell_failed_start(&self, token: u32, error: ProgramError) {
        *lock(&self.closed) = None;
        let wake = lock(&self.wake).take();
        lock(&self.events).push(CoreEvent { token, error: Some(error), reply: None });
        if let Some(wake) = wake {
            wake();
        }
    }

    /// The server, for the first caller that stops it.
    fn to_stop(&self) -> Option<Arc<Server>> {
        let mut started = lock(&self.started);
        let started = started.as_mut()?;
        let is_first = !std::mem::replace(&mut started.is_stopping, true);
        is_first.then(|| Arc::clone(&started.running))
    }

    /// Answers what was received, and stops: what handlers ask for is answered until the server has
    /// ended.
    fn stop(&self, server: Arc<Server>, calls: &Calls) -> Result<(), ProgramError> {
        server.stop_stores();
        calls.close(); // a store that has not answered until now is waited for no longer
        server.request_stop();
        while !server.is_finished() {
            std::thread::sleep(STOP_INTERVAL);
        }
        *lock(&self.started) = None;
        let mut server = server;
        loop {
            match Arc::try_unwrap(server) {
                Ok(server) => return server.wait().map_err(|error| (&error).into()),
                Err(shared) => server = shared, // a reload is under way
            }
            std::thread::sleep(STOP_INTERVAL);
        }
    }

    /// Stops the server, unless that is under way or done, and reports that to JavaScript, which is
    /// not called any more afterwards.
    fn close(&self, calls: &Calls) -> Option<Result<(), ProgramError>> {
        let server = self.to_stop()?;
        let stopped = self.stop(server, calls);
        self.tell_closed(stopped.as_ref().err().cloned());
        Some(stopped)
    }

    /// Reports to JavaScript that the server has stopped.
    fn tell_closed(&self, error: Option<ProgramError>) {
        if let Some(closed) = lock(&self.closed).take() {
            closed(error);
        }
    }

    /// The server, unless it does not run.
    fn running(&self) -> napi::Result<Arc<Server>> {
        let started = lock(&self.started);
        let running = started.as_ref().map(|started| Arc::clone(&started.running));
        running.ok_or_else(|| error("the app has not started, or has stopped"))
    }

    /// The server and what it is configured with, unless it does not run.
    fn to_configure(&self) -> napi::Result<(Arc<Server>, ProgramConfig)> {
        let started = lock(&self.started);
        let both = |it: &StartedServer| (Arc::clone(&it.running), it.config.clone());
        started.as_ref().map(both).ok_or_else(|| error("the app has not started, or has stopped"))
    }

    /// The server and what waits for JavaScript, unless it does not run.
    fn running_and_runtime(&self) -> napi::Result<(Arc<Server>, Arc<Runtime>)> {
        let started = lock(&self.started);
        let both = |it: &StartedServer| (Arc::clone(&it.running), Arc::clone(&it.handle.runtime));
        started.as_ref().map(both).ok_or_else(|| error("the app has not started, or has stopped"))
    }
}

#[napi]
impl Core {
    /// One that is to be started.
    #[napi(constructor)]
    pub fn new(options: CoreOptions) -> napi::Result<Self> {
        log::install(options.log.as_deref())?;
        let shared = Arc::<Shared>::default();
        let of_stores = Arc::clone(&shared);
        Ok(Self {
            options,
            code: Code::default(),
            updates: None,
            table: Arc::default(),
            texts: Arc::default(),
            stores: Arc::default(),
            own_stores: HashMap::new(),
            next_store: 0,
            calls: Arc::new(Calls::new(move || of_stores.wake())),
            waiting: OnceLock::new(),
            shared,
        })
    }

    /// Gives a name of the table records, as they stand in replies, in place of those that it had.
    ///
    /// # Errors
    /// What is wrong with the name or a record; the name then has no records.
    #[napi]
    pub fn set_records(&self, name: String, records: &[u8]) -> napi::Result<()> {
        let name = name.parse::<Name>().map_err(error)?;
        let mut draft = HandlerReply::default();
        let read = batch::read_records(records, &mut draft);
        if read.is_err() {
            draft.clear();
        }
        self.table.set(&name, &draft);
        read.map_err(error)
    }

    /// Forgets all names of the table.
    #[napi]
    pub fn clear_records(&self) {
        self.table.clear();
    }

    /// Adds a zone, before it starts.
    #[napi]
    pub fn add_zone(&mut self, name: String, file: String) {
        self.options.zones.push(vec![name, file]);
    }

    /// Adds an address that is listened on, before it starts.
    #[napi]
    pub fn add_listen(&mut self, address: String) {
        self.options.listens_nowhere = false;
        self.options.listen.push(address);
    }

    /// Adds a server that is asked for all other names, before it starts.
    #[napi]
    pub fn add_forward(&mut self, server: String) {
        self.options.forward.push(server);
    }

    /// Starts the server; an event of `token` follows when it answers. `wake` is called when
    /// queries or events wait, and `closed` once, when the server has stopped, with the reason if
    /// it had to.
    #[napi(catch_unwind)]
    pub fn start(
        &self,
        wake: Function<'_, (), ()>,
        closed: Function<'_, Option<CoreError>, ()>,
        token: u32,
    ) -> napi::Result<()> {
        let mut start = start(&self.options)?;
        start.texts = lock(&self.texts).clone();
        start.stores = lock(&self.stores).clone();
        let wake = wake.build_threadsafe_function().callee_handled::<false>().build()?;
        // A call fails only when the process ends.
        let wake = move || _ = wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
        *lock(&self.shared.wake) = Some(Box::new(wake));
        let closed = closed.build_threadsafe_function().callee_handled::<false>().build()?;
        let closed = move |why: Option<ProgramError>| {
            let why = why.map(CoreError::from);
            let _ = closed.call(why, ThreadsafeFunctionCallMode::NonBlocking);
        };
        *lock(&self.shared.closed) = Some(Box::new(closed));
        let of_workers = Arc::clone(&self.shared);
        start.runtime.wake = Box::new(move || of_workers.wake());
        start.code = self.code.clone();
        let (shared, calls) = (Arc::clone(&self.shared), Arc::clone(&self.calls));
        let stores = Arc::clone(&self.stores);
        let (of_ended, calls_of_ended) = (Arc::clone(&self.shared), Arc::clone(&self.calls));
        // By another thread, since the server's own ends with this.
        start.ended = Box::new(move || {
            let _ = in_thread(move || close_ended(&of_ended, &calls_of_ended));
        });
        calls.open();
        in_thread(move || {
            let started = server::start(start).map(|RunningServer { server, config, handle }| {
                let (running, is_stopping) = (Arc::new(server), false);
                let (draft, taken) = (HandlerReply::default(), (Vec::new(), false));
                *lock(&shared.started) =
                    Some(StartedServer { running, config, is_stopping, handle, draft, taken });
            });
            if let Err(error) = started {
                calls.close();
                return shared.tell_failed_start(token, error);
            }
            lock(&stores).clear(); // the server has them
            shared.tell_end(token, None);
            if shared.is_gone.load(Ordering::SeqCst) {
                let _ = shared.close(&calls); // no JavaScript is there to take the result
            } else if shared.running().is_ok_and(|server| server.is_finished()) {
                close_ended(&shared, &calls); // it ended before it was known to have started
            }
        })
    }

    /// Whether the server runs.
    #[napi]
    pub fn is_running(&self) -> bool {
        self.shared.running().is_ok()
    }

    /// The addresses that are answered on, in the order in which they were given.
    #[napi]
    pub fn addresses(&self) -> napi::Result<Vec<String>> {
        let addresses = self.shared.running()?.addresses();
        Ok(addresses.iter().map(ToString::to_string).collect())
    }

    /// The zones that could not be loaded when that was last tried, but for those of stores.
    ///
    /// # Errors
    /// When the server does not run.
    #[napi]
    pub fn failed_zones(&self) -> napi::Result<Vec<FailedZone>> {
        let failed = self.shared.running()?.failed_zones().into_iter();
        let told = |zone: zonda_server::FailedZone| FailedZone {
            name: zone.name.map(|name| name.to_string()),
            is_served: zone.is_served,
            error: zone.error,
        };
        Ok(failed.map(told).collect())
    }

    /// Takes queries that wait, see `batch`, and writes them into a buffer from a place on. Returns
    /// their octets, and one more if more queries wait; 0 if none did. If they do not fit, they are
    /// kept for the next call, and the number is that of their octets, below 0.
    #[napi(catch_unwind)]
    pub fn take(&self, mut into: BufferSlice<'_>, from: u32) -> i32 {
        let mut started = lock(&self.shared.started);
        let Some(StartedServer { handle, running, taken: (queries, more), .. }) = started.as_mut()
        else {
            return 0;
        };
        if queries.is_empty() {
            *more = handle.runtime.take(TAKE_MAX, |ticket, handler, deferred| {
                let guards = |name: &[u8], qtype| running.guard_numbers(name, qtype);
                batch::write_query(queries, (ticket, handler), deferred, guards);
            });
        }
        let octets = queries.len() as i32; // at most 34 MB
        let from = from as usize;
        match into.get_mut(from..from + queries.len()) {
            None => -octets,
            Some(place) => {
                place.copy_from_slice(queries);
                queries.clear();
                queries.shrink_to(TAKEN_OCTETS_KEPT);
                octets | i32::from(*more)
            }
        }
    }

    /// Sends replies: see `batch`. Returns those that cannot be sent.
    #[napi(catch_unwind)]
    pub fn complete(&self, replies: &[u8]) -> Option<Vec<ReplyMistake>> {
        let mut started = lock(&self.shared.started);
        let StartedServer { handle, draft, .. } = started.as_mut()?;
        let RuntimeHandle { runtime, answerer } = handle;
        let mistakes = batch::read_replies(replies, draft, |ticket, supplied| {
            answerer.answer(runtime, ticket, supplied);
        });
        answerer.send();
        let told = |mistake: batch::Mistake| {
            let (section, index) = mistake.record.unzip();
            let number = |it: usize| it as u32; // a batch is far smaller than 4 GiB
            ReplyMistake {
                place: number(mistake.place),
                what: mistake.what,
                section: section.map(number),
                index: index.map(number),
            }
        };
        (!mistakes.is_empty()).then(|| mistakes.into_iter().map(told).collect())
    }

    /// What has ended since it was asked the last time.
    #[napi]
    pub fn events(&self) -> Vec<Event> {
        let ended = std::mem::take(&mut *lock(&self.shared.events));
        let event = |CoreEvent { token, error, reply }| Event {
            token,
            error: error.map(CoreError::from),
            reply: reply.map(Buffer::from),
        };
        ended.into_iter().map(event).collect()
    }

    /// Reads the configuration and changed zones anew; an event of `token` follows when that is
    /// done.
    ///
    /// # Errors
    /// When the server does not run.
    #[napi]
    pub fn reload(&self, token: u32) -> napi::Result<()> {
        let (running, shared) = (self.shared.running()?, Arc::clone(&self.shared));
        in_thread(move || {
            let reloaded = server::reload(&running);
            drop(running);
            shared.tell_end(token, reloaded.err());
        })
    }

    /// Answers what was received, and stops; an event of `token` follows when that is done. Nothing
    /// keeps the process alive then.
    ///
    /// # Errors
    /// When the server does not run, or stops already.
    #[napi]
    pub fn stop(&self, token: u32) -> napi::Result<()> {
        let (shared, calls) = (Arc::clone(&self.shared), Arc::clone(&self.calls));
        let to_stop = shared.to_stop();
        let server = to_stop.ok_or_else(|| error("the app has not started, or has stopped"))?;
        in_thread(move || {
            let stopped = shared.stop(server, &calls);
            shared.tell_closed(stopped.as_ref().err().cloned());
            shared.tell_end(token, stopped.err());
            *lock(&shared.wake) = None;
        })
    }
}

impl Drop for Core {
    /// A server whose JavaScript is gone, with the worker thread that it ran in, is of no use.
    fn drop(&mut self) {
        self.shared.is_gone.store(true, Ordering::SeqCst); // before: a start may be under way
        let _ = self.stop(0); // it may have stopped before
    }
}

/// Gives up what is left of a server that has ended, unless the program stops it at this moment.
fn close_ended(shared: &Shared, calls: &Calls) {
    if shared.close(calls).is_some() {
        *lock(&shared.wake) = None;
    }
}

/// Runs a function that takes long in a thread of its own.
fn in_thread(function: impl FnOnce() + Send + 'static) -> napi::Result<()> {
    let builder = std::thread::Builder::new().name("zonda-node".to_owned());
    builder.spawn(function).map(drop).map_err(error)
}
