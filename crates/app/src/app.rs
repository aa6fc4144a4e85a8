//! An app: what it answers from, and the server that it becomes.

use crate::asynchronous::{AsyncCode, AsyncLimits, AsyncTable, Tasks};
use crate::error::Error;
use crate::handler::{AsyncAnswer, HandlerResult};
use crate::logger::{self, Logger};
use crate::owned::OwnedQuery;
use crate::running::Running;
use crate::store::Store;
use std::collections::HashSet;
use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::num::NonZero;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use zonda_config::{Config, Flags};
use zonda_engine::code::{
    Cache, Elsewhere, Guard, Handler, Pattern, Query, Reply, Route, Source, Stage,
};
use zonda_server::{
    Code, Options, Program, Server, Texts, failed_in_code, read_config, zones_in_code,
};
use zonda_wire::Name;

/// A DNS server under construction.
///
/// Methods that take text which may be wrong return no error: [`start`](Self::start) reports all
/// mistakes at once.
#[derive(Default)]
pub struct App {
    config: Option<PathBuf>,
    flags: Flags,
    forward: Vec<String>,
    metrics: Option<SocketAddr>,
    /// Zones that are given as text, by their names in lower case.
    texts: Texts,
    /// Zones that follow stores, by their names in lower case.
    stores: Vec<(Name, Arc<dyn Store>)>,
    routes: Vec<Route<Handler>>,
    middleware: Vec<Arc<dyn Stage>>,
    guards: Vec<Route<Guard>>,
    cache: Option<Arc<dyn Cache>>,
    asynchronous: AsyncTable,
    limits: AsyncLimits,
    loggers: Vec<Arc<dyn Logger>>,
    /// Whether the app starts without zones that cannot be loaded.
    allows_failed_zones: bool,
    mistakes: Vec<Error>,
}

// What is behind a trait object or a lock would make the compiler list the server's parts where a
// program catches panics. Each method adds a finished value as its last step.
impl UnwindSafe for App {}
impl RefUnwindSafe for App {}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let routes: Vec<&str> = self.routes.iter().map(|route| route.pattern.as_str()).collect();
        f.debug_struct("App")
            .field("config", &self.config)
            .field("listen", &self.flags.listen)
            .field("routes", &routes)
            .finish_non_exhaustive()
    }
}

impl App {
    /// Makes an app that answers nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the settings and zones of a configuration file, as `zonda serve --config` does.
    pub fn config(&mut self, file: impl AsRef<Path>) -> &mut Self {
        self.config = Some(file.as_ref().to_owned());
        self
    }

    /// Answers on an address, such as `127.0.0.1:5300` or `[::1]:5300`, instead of those in the
    /// configuration file; port 0 is a free one. May be called more than once.
    pub fn listen(&mut self, address: impl ToString) -> &mut Self {
        self.flags.listen.push(address.to_string());
        self
    }

    /// Listens on no address, whatever the configuration file says: queries come by
    /// [`Running::query`] and the methods beside it alone, as in tests. A later call of
    /// [`listen`](Self::listen) takes this back.
    pub fn listen_nowhere(&mut self) -> &mut Self {
        self.flags.listen.clear();
        self.flags.listen_nowhere = true;
        self
    }

    /// Sets the number of threads that answer UDP; 0, the default, is one for each CPU.
    pub fn workers(&mut self, count: u16) -> &mut Self {
        self.flags.workers = Some(count.to_string());
        self
    }

    /// Serves a zone from a master file, or from JSON if the file's name ends in `.json`: give it
    /// the file's path, or what [`zone_from_file`](crate::zone_from_file) makes of that.
    pub fn zone(&mut self, name: &str, file: impl AsRef<Path>) -> &mut Self {
        self.flags.zones.push(format!("{name}={}", file.as_ref().display()));
        self
    }

    /// Serves a zone from the text of a master file, as if a file held it.
    /// [`Running::set_zone_text`] replaces it.
    pub fn zone_text(&mut self, name: &str, text: impl Into<Arc<str>>) -> &mut Self {
        match name.parse::<Name>() {
            Ok(name) => {
                let name = name.to_lowercase();
                self.stores.retain(|(other, _)| *other != name);
                self.texts.insert(name, text.into());
            }
            Err(error) => self.mistakes.push(Error::Name(name.to_owned(), error)),
        }
        self
    }

    /// Lets the app start although zones that are given by [`zone`](Self::zone) and
    /// [`zone_text`](Self::zone_text) cannot be loaded, as zones of a configuration file never keep
    /// it from starting: queries for their names are answered SERVFAIL, and
    /// [`Running::failed_zones`] returns them with the reasons.
    pub fn allow_failed_zones(&mut self) -> &mut Self {
        self.allows_failed_zones = true;
        self
    }

    /// Serves a zone with the records of a store, and follows its changes. A program that writes to
    /// the store keeps an `Arc` of it.
    ///
    /// If the store cannot be reached within 3 seconds when the app starts, queries for the zone
    /// are answered SERVFAIL until it can; if it cannot be reached later, the zone keeps its
    /// records. Both are logged.
    pub fn store(&mut self, zone: &str, store: impl Store + 'static) -> &mut Self {
        match zone.parse::<Name>() {
            Ok(name) => {
                let name = name.to_lowercase();
                self.texts.remove(&name);
                self.stores.retain(|(other, _)| *other != name);
                self.stores.push((name, Arc::new(store)));
            }
            Err(error) => self.mistakes.push(Error::Name(zone.to_owned(), error)),
        }
        self
    }

    /// Forwards queries for names that neither code nor zones have to an upstream, such as
    /// `192.0.2.53`. May be called more than once.
    pub fn forward(&mut self, server: impl ToString) -> &mut Self {
        self.forward.push(server.to_string());
        self
    }

    /// Serves metrics for Prometheus on an address, in place of that of the configuration file:
    /// `/metrics`, `/health`, `/ready` and `/v1/version`; nothing can be changed there. An address
    /// that is not loopback needs a token in the configuration file, which clients then have to
    /// send.
    pub fn metrics(&mut self, address: impl Into<SocketAddr>) -> &mut Self {
        self.metrics = Some(address.into());
        self
    }

    /// Passes all queries and replies through middleware, behind that which was added before.
    ///
    /// A function of query and reply sees queries before they are answered; what it puts into the
    /// reply is sent. [`after`](Self::after) adds one that sees replies; a [`Stage`] may see both.
    pub fn middleware(&mut self, middleware: impl Stage + 'static) -> &mut Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Passes queries for the names of a pattern, and their replies, through middleware: behind the
    /// [middleware](Self::middleware) for all queries, that of a wider pattern first. It makes no
    /// name exist, and hides no handler and no zone. [`Query::capture`] has what its own pattern
    /// captures.
    pub fn middleware_for(&mut self, pattern: &str, middleware: impl Stage + 'static) -> &mut Self {
        if let Some(pattern) = self.pattern(pattern) {
            let handler = Guard::Here(Arc::new(middleware));
            self.guards.push(Route { pattern, handler });
        }
        self
    }

    /// Passes all queries through a function that may wait, before handlers and zones; what it puts
    /// into the reply is sent. Every query then goes through the app's runtime, which costs several
    /// times what an answer from a zone does, and no reply of a handler is cached.
    pub fn middleware_async<F, A>(
        &mut self,
        function: impl Fn(OwnedQuery) -> F + Send + Sync + 'static,
    ) -> &mut Self
    where
        F: Future<Output = A> + Send + 'static,
        A: AsyncAnswer + 'static,
    {
        let all = parse("*").expect("`*` is a pattern");
        self.asynchronous.middleware.push(AsyncCode::new(all, function));
        self
    }

    /// Caches replies of handlers and sources in a cache of the program's own, in place of one that
    /// was set before: the server looks a query up in it before it calls them, and inserts their
    /// replies. A program that shares the cache between apps, or empties it, keeps an `Arc` of it.
    /// The cache is not used with [`middleware_async`](Self::middleware_async).
    pub fn cache(&mut self, cache: impl Cache + 'static) -> &mut Self {
        self.cache = Some(Arc::new(cache));
        self
    }

    /// Passes every query and its outcome to a logger, in the thread that has answered it; beside
    /// the query log of the configuration file, if there is one.
    pub fn logger(&mut self, logger: impl Logger + 'static) -> &mut Self {
        self.loggers.push(Arc::new(logger));
        self
    }

    /// Passes all replies through a function, which may change them.
    pub fn after(
        &mut self,
        function: impl Fn(&Query<'_>, &mut Reply) + Send + Sync + 'static,
    ) -> &mut Self {
        self.middleware(After(function))
    }

    /// Answers names with a function that runs in the workers.
    pub fn handle<E: HandlerResult>(
        &mut self,
        pattern: &str,
        function: impl Fn(&Query<'_>, &mut Reply) -> E + Send + Sync + 'static,
    ) -> &mut Self {
        if let Some(pattern) = self.pattern(pattern) {
            self.routes.push(in_workers(pattern, function));
        }
        self
    }

    /// Answers a name and all names below it, at any depth, from a [`Source`]; queries whose reply
    /// it leaves unchanged are answered from the zones.
    pub fn source(&mut self, name: &str, source: impl Source + 'static) -> &mut Self {
        let source: Arc<dyn Source> = Arc::new(source);
        for text in [name.to_owned(), format!("*.{name}")] {
            if let Some(pattern) = self.pattern(&text) {
                let handler = Handler::Here(Arc::clone(&source));
                self.routes.push(Route { pattern, handler });
            }
        }
        self
    }

    /// Answers names with a function that may wait, such as for a database or for a service on the
    /// network. It runs in a runtime of the app's own.
    pub fn handle_async<F, A>(
        &mut self,
        pattern: &str,
        function: impl Fn(OwnedQuery) -> F + Send + Sync + 'static,
    ) -> &mut Self
    where
        F: Future<Output = A> + Send + 'static,
        A: AsyncAnswer + 'static,
    {
        if let Some(pattern) = self.pattern(pattern) {
            let number = self.asynchronous.add(AsyncCode::new(pattern.clone(), function));
            self.routes.push(in_runtime(pattern, number));
        }
        self
    }

    /// Adds a function that may wait and has no route: handlers and middleware that cannot answer
    /// at once hand queries to it with [`Reply::defer_to`](crate::Reply::defer_to).
    ///
    /// ```
    /// # use zonda::{App, OwnedQuery, Query, Reply, Txt};
    /// # let mut app = App::new();
    /// let look_up = app.deferred(|query: OwnedQuery| async move {
    ///     let mut reply = Reply::default();
    ///     reply.answer(Txt::new(format!("all about {}", query.name()))); // from a database
    ///     reply
    /// });
    /// app.handle("*.example.com/TXT", move |query: &Query, reply: &mut Reply| {
    ///     match query.name.label(0) {
    ///         b"www" => reply.answer(Txt::new("known")),
    ///         _ => reply.defer_to(look_up),
    ///     }
    /// });
    /// ```
    pub fn deferred<F, A>(
        &mut self,
        function: impl Fn(OwnedQuery) -> F + Send + Sync + 'static,
    ) -> Elsewhere
    where
        F: Future<Output = A> + Send + 'static,
        A: AsyncAnswer + 'static,
    {
        let all = parse("*").expect("`*` is a pattern");
        let handler = self.asynchronous.add(AsyncCode::new(all, function).deferred());
        Elsewhere { runtime: 0, handler }
    }

    /// Sets the time that asynchronous code has for a query, 5 seconds by default; a query that it
    /// has not answered by then is answered SERVFAIL.
    pub fn deadline(&mut self, deadline: Duration) -> &mut Self {
        self.limits.deadline = deadline;
        self
    }

    /// Sets how many queries may wait for asynchronous code, 65,536 by default; queries beyond that
    /// are answered SERVFAIL.
    pub fn waiting_max(&mut self, queries: usize) -> &mut Self {
        self.limits.waiting_max = queries;
        self
    }

    /// Sets the number of threads of asynchronous code, on whatever CPUs the system gives them.
    ///
    /// 0, the default, is one less than there are CPUs, but at least two. These threads stay away
    /// from the first CPU if there is another: code that computes for long then delays neither
    /// other code nor answers from zones. Under a quota of CPU time (cgroups), which all threads
    /// share, the default is one less than the CPUs of the quota, but at least one.
    pub fn async_threads(&mut self, count: u16) -> &mut Self {
        self.limits.threads = NonZero::new(count);
        self
    }

    /// Sets the niceness of the threads of asynchronous code, from 0, the default, to 19, with
    /// which they yield to all other threads that want their CPU; more counts as 19.
    ///
    /// On a machine with one CPU and no quota of its time, code that computes for long delays
    /// answers from zones by milliseconds, unless it has one thread ([`async_threads`]) of niceness
    /// 19. That thread gets next to nothing of a CPU that other threads keep busy.
    ///
    /// [`async_threads`]: Self::async_threads
    pub fn async_niceness(&mut self, niceness: u8) -> &mut Self {
        self.limits.niceness = niceness.min(19) as i8;
        self
    }

    /// Returns the pattern of a text; notes the mistake if the text is not a pattern.
    fn pattern(&mut self, text: &str) -> Option<Pattern> {
        parse(text).map_err(|error| self.mistakes.push(error)).ok()
    }

    /// Starts the server, which answers from then on. The app is empty afterwards.
    ///
    /// # Errors
    /// All mistakes in the app's definition: patterns, names, the configuration, zones that
    /// were given by [`zone`](Self::zone) and [`zone_text`](Self::zone_text) and cannot be loaded.
    /// Or why the server cannot start.
    pub fn start(&mut self) -> Result<Running, Error> {
        let app = std::mem::take(self);
        let mut flags = app.flags;
        flags.forward = (!app.forward.is_empty()).then(|| app.forward.join(","));
        let mut required_zones = zones_in_code(&flags, &app.texts);
        if app.allows_failed_zones {
            required_zones.clear();
        }
        let (config, metrics) = (app.config, app.metrics);
        let load = move || read_config(config.as_deref(), &flags, metrics);
        if !app.mistakes.is_empty() {
            return Err(all_mistakes(app.mistakes, load(), &app.texts, &required_zones));
        }
        let loaded = match load() {
            Ok(config) => config,
            wrong => return Err(all_mistakes(Vec::new(), wrong, &app.texts, &required_zones)),
        };
        let code = Code {
            routes: app.routes,
            middleware: app.middleware,
            guards: app.guards,
            middleware_runtime: (!app.asynchronous.middleware.is_empty()).then_some(0),
            cache: app.cache,
            ..Code::default()
        };
        let (tasks, runtime, start) =
            Tasks::start(app.asynchronous, &app.limits).map_err(Error::Thread)?;
        let program = Program {
            code: code.clone(),
            runtimes: vec![runtime],
            start: Some(start),
            texts: app.texts,
            stores: app.stores,
            required_zones,
            loggers: app.loggers.into_iter().map(logger::adapt).collect(),
            ..Program::default()
        };
        let read_config = Box::new(load);
        let options = Options { config: loaded, read_config, take_over: false, program };
        let server = Server::start(options).map_err(Error::of_server)?;
        Ok(Running { server, code: Mutex::new(code), tasks })
    }

    /// Runs the server until the process ends, or until a failure stops the server. It does not
    /// handle signals: [`run_until`](Self::run_until) can stop at one.
    ///
    /// Dropping the future stops the server, as [`Running::stop`] does, in a thread of its own.
    ///
    /// # Errors
    /// Those of [`start`](Self::start), and the failure that stopped the server.
    pub async fn run(&mut self) -> Result<(), Error> {
        self.run_until(std::future::pending()).await
    }

    /// Runs the server until `shutdown` completes, or until a failure stops the server; then stops
    /// as [`Running::stop`] does. Dropping the future does so, too, in a thread of its own.
    ///
    /// ```no_run
    /// # async fn serve(mut app: zonda::App) -> Result<(), zonda::Error> {
    /// app.run_until(async { _ = tokio::signal::ctrl_c().await }).await
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`start`](Self::start), and the failure that stopped the server.
    pub async fn run_until(&mut self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        let mut stops = StopsWhenDropped(Some(self.start()?));
        let ended = async {
            while stops.0.as_ref().is_some_and(|running| !running.server.is_finished()) {
                tokio::time::sleep(END_LOOK).await;
            }
        };
        tokio::select! {
            () = shutdown => {}
            () = ended => {}
        }
        let stop = move || stops.0.take().map_or(Ok(()), Running::stop);
        tokio::task::spawn_blocking(stop).await.unwrap_or_else(|error| {
            match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Ok(()), // the caller's runtime ends; what it dropped stops by itself
            }
        })
    }
}

/// Interval at which a running app is checked for a failure that has stopped its server.
const END_LOOK: Duration = Duration::from_millis(100);

/// A running app that is stopped when it is dropped.
struct StopsWhenDropped(Option<Running>);

impl Drop for StopsWhenDropped {
    fn drop(&mut self) {
        if let Some(running) = self.0.take() {
            // Without a thread left for it, it stops with the process.
            let _ = std::thread::Builder::new().name("stop".into()).spawn(|| running.stop());
        }
    }
}

/// Returns all mistakes of an app that does not start: those that were noted, what is wrong with
/// the configuration, and zones that cannot be loaded.
fn all_mistakes(
    mut mistakes: Vec<Error>,
    config: Result<Config, String>,
    texts: &Texts,
    required_zones: &HashSet<Name>,
) -> Error {
    let failed = failed_in_code(config.as_ref().ok(), texts, required_zones);
    mistakes.extend(config.err().map(Error::Config));
    if !failed.is_empty() {
        mistakes.push(Error::Zones(failed));
    }
    Error::all(mistakes)
}

/// Reads the pattern of a route.
pub(crate) fn parse(text: &str) -> Result<Pattern, Error> {
    text.parse().map_err(|error| Error::Pattern(text.to_owned(), error))
}

/// Returns the route to a function that runs in the workers.
pub(crate) fn in_workers<E: HandlerResult>(
    pattern: Pattern,
    function: impl Fn(&Query<'_>, &mut Reply) -> E + Send + Sync + 'static,
) -> Route<Handler> {
    let text = pattern.as_str().to_owned();
    let code = move |asked: &Query<'_>, draft: &mut Reply| {
        let ended = function(asked, draft);
        ended.end(&text, draft);
    };
    Route { pattern, handler: Handler::Here(Arc::new(code)) }
}

/// Returns the route to asynchronous code with this number.
pub(crate) fn in_runtime(pattern: Pattern, handler: u32) -> Route<Handler> {
    Route { pattern, handler: Handler::Elsewhere(Elsewhere { runtime: 0, handler }) }
}

/// Middleware of a function that sees replies.
struct After<F>(F);

impl<F: Fn(&Query<'_>, &mut Reply) + Send + Sync> Stage for After<F> {
    fn after(&self, asked: &Query<'_>, draft: &mut Reply) {
        (self.0)(asked, draft);
    }
}
