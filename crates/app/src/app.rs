//! An app under construction: what it answers from.

use crate::asynchronous::{AsyncCode, AsyncLimits, AsyncTable};
use crate::error::Error;
use crate::from_query::{Check, Context, SharedStates, States};
use crate::handler::{AsyncHandler, Handler};
use crate::into_reply::{IntoReply, error_handler};
use crate::logger::Logger;
use crate::router::Router;
use crate::routes::{AppRoute, parse, worker_code};
use crate::store::Store;
use std::fmt;
use std::net::SocketAddr;
use std::num::NonZero;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use zonda_config::Flags;
use zonda_engine::code::{
    Cache, Elsewhere, Guard, Handler as RouteHandler, Pattern, Query, Reply, Route, Source, Stage,
};
use zonda_server::Texts;
use zonda_wire::Name;

/// A DNS server under construction.
///
/// Each method takes the app and returns it, so that calls may be chained. Methods that take text
/// which may be wrong return no error: [`start`](Self::start) reports all mistakes at once.
#[derive(Default)]
#[must_use = "an app answers nothing until it is started"]
pub struct App {
    pub(crate) config: Option<PathBuf>,
    pub(crate) flags: Flags,
    pub(crate) forward: Vec<String>,
    pub(crate) metrics: Option<SocketAddr>,
    /// Zones that are given as text, by their names in lower case.
    pub(crate) texts: Texts,
    /// Zones that follow stores, by their names in lower case.
    pub(crate) stores: Vec<(Name, Arc<dyn Store>)>,
    pub(crate) routes: Vec<AppRoute>,
    /// What asynchronous code without a route takes.
    pub(crate) checks: Vec<Check>,
    pub(crate) middleware: Vec<Arc<dyn Stage>>,
    pub(crate) guards: Vec<Route<Guard>>,
    /// What asynchronous middleware for patterns takes.
    pub(crate) guard_checks: Vec<(Pattern, Check)>,
    pub(crate) cache: Option<Arc<dyn Cache>>,
    pub(crate) asynchronous: AsyncTable,
    pub(crate) limits: AsyncLimits,
    pub(crate) loggers: Vec<Arc<dyn Logger>>,
    /// Values that handlers share.
    pub(crate) states: States,
    /// Where handlers find these values, once the app starts.
    pub(crate) shared_states: SharedStates,
    /// Whether other processes answer on the same addresses.
    pub(crate) reuses_port: bool,
    /// Whether the app starts without zones that cannot be loaded.
    pub(crate) allows_failed_zones: bool,
    pub(crate) mistakes: Vec<Error>,
}

// What is behind a trait object or a lock would make the compiler list the server's parts where a
// program catches panics. Each method adds a finished value as its last step.
impl UnwindSafe for App {}
impl RefUnwindSafe for App {}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let routes: Vec<&str> = self.routes.iter().map(|it| it.route.pattern.as_str()).collect();
        f.debug_struct("App")
            .field("config", &self.config)
            .field("listen", &self.flags.listen)
            .field("routes", &routes)
            .finish_non_exhaustive()
    }
}

impl App {
    /// Makes an app that answers nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the settings and zones of a configuration file, as `zonda serve --config` does.
    pub fn config(mut self, file: impl AsRef<Path>) -> Self {
        self.config = Some(file.as_ref().to_owned());
        self
    }

    /// Answers on an address, such as `127.0.0.1:5300` or `[::1]:5300`, instead of those in the
    /// configuration file; port 0 is a free one. May be called more than once.
    pub fn listen(mut self, address: impl ToString) -> Self {
        self.flags.listen.push(address.to_string());
        self
    }

    /// Listens on no address, whatever the configuration file says: queries come by
    /// [`Running::query`](crate::Running::query) and the methods beside it alone, as in tests. A
    /// later call of [`listen`](Self::listen) takes this back.
    pub fn listen_nowhere(mut self) -> Self {
        self.flags.listen.clear();
        self.flags.listen_nowhere = true;
        self
    }

    /// Sets the number of threads that answer UDP; 0, the default, is one for each CPU.
    pub fn workers(mut self, count: u16) -> Self {
        self.flags.workers = Some(count.to_string());
        self
    }

    /// Lets other processes of the program answer on the same addresses, which the system then
    /// spreads clients over; each process says so. Connections that wait in the queue of one when
    /// it ends are lost.
    pub fn reuse_port(mut self) -> Self {
        self.reuses_port = true;
        self
    }

    /// Former name of [`reuse_port`](Self::reuse_port).
    #[deprecated(note = "it is called `reuse_port`")]
    pub fn shares_addresses(self) -> Self {
        self.reuse_port()
    }

    /// Serves a zone from a master file, or from JSON if the file's name ends in `.json`: give it
    /// the file's path, or what [`zone_from_file`](crate::zone_from_file) makes of that.
    pub fn zone(mut self, name: &str, file: impl AsRef<Path>) -> Self {
        self.flags.zones.push(format!("{name}={}", file.as_ref().display()));
        self
    }

    /// Serves a zone from the text of a master file, as if a file held it.
    /// [`Running::set_zone_text`](crate::Running::set_zone_text) replaces it.
    pub fn zone_text(mut self, name: &str, text: impl Into<Arc<str>>) -> Self {
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
    /// [`Running::failed_zones`](crate::Running::failed_zones) returns them with the reasons.
    pub fn allow_failed_zones(mut self) -> Self {
        self.allows_failed_zones = true;
        self
    }

    /// Serves a zone with the records of a store, and follows its changes. A program that writes to
    /// the store keeps an `Arc` of it.
    ///
    /// If the store cannot be reached within 3 seconds when the app starts, queries for the zone
    /// are answered SERVFAIL until it can; if it cannot be reached later, the zone keeps its
    /// records. Both are logged.
    pub fn store(mut self, zone: &str, store: impl Store + 'static) -> Self {
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
    pub fn forward(mut self, server: impl ToString) -> Self {
        self.forward.push(server.to_string());
        self
    }

    /// Serves metrics for Prometheus on an address, in place of that of the configuration file:
    /// `/metrics`, `/health`, `/ready` and `/v1/version`; nothing can be changed there. An address
    /// that is not loopback needs a token in the configuration file, which clients then have to
    /// send.
    pub fn metrics(mut self, address: impl Into<SocketAddr>) -> Self {
        self.metrics = Some(address.into());
        self
    }

    /// Passes all queries through a function that runs in the workers, before handlers and zones,
    /// and behind middleware that was added before. It takes and returns what a
    /// [handler](Self::handle) does: what it returns, or puts into its reply, is sent; a query
    /// whose reply it leaves as it is goes on. [`Query::set_state`] leaves a value for the code
    /// behind it.
    ///
    /// [`after`](Self::after) adds a function that sees replies, and [`stage`](Self::stage) code
    /// that sees both.
    ///
    /// ```
    /// # use std::collections::HashSet;
    /// # use zonda::{App, Name, Rcode, State};
    /// let app = App::new().state(HashSet::<Name>::new()).middleware(
    ///     |name: Name, blocked: State<HashSet<Name>>| {
    ///         blocked.contains(&name).then_some(Rcode::REFUSED)
    ///     },
    /// );
    /// ```
    pub fn middleware<M: 'static, H>(mut self, function: H) -> Self
    where
        H: Handler<M>,
        H::Output: IntoReply,
    {
        self.checks.push(H::check);
        let stage = worker_code("*".to_owned(), function, self.shared_states.clone());
        self.stage(stage)
    }

    /// Passes queries for the names of a pattern through a function, as
    /// [`middleware`](Self::middleware) does: behind that for all queries, that of a wider pattern
    /// first. It makes no name exist, and hides no handler and no zone. [`Query::capture`] and
    /// [`Captures`](crate::Captures) have what its own pattern captures.
    pub fn middleware_for<M: 'static, H>(self, pattern: &str, function: H) -> Self
    where
        H: Handler<M>,
        H::Output: IntoReply,
    {
        self.guard_by(&[pattern], function)
    }

    /// Passes queries for the names of patterns, which capture the same labels, through one
    /// function.
    pub(crate) fn guard_by<M: 'static, H>(
        mut self,
        patterns: &[impl AsRef<str>],
        function: H,
    ) -> Self
    where
        H: Handler<M>,
        H::Output: IntoReply,
    {
        let known = patterns.iter().filter_map(|it| it.as_ref().parse().ok());
        self.guard_checks.extend(known.map(|pattern: Pattern| (pattern, H::check as Check)));
        let text = patterns.last().map(|it| it.as_ref().to_owned()).unwrap_or_default();
        let stage = worker_code(text, function, self.shared_states.clone());
        self.guard(patterns, Arc::new(stage))
    }

    /// Passes all queries and replies through a [`Stage`], behind middleware that was added before.
    pub fn stage(mut self, stage: impl Stage + 'static) -> Self {
        self.middleware.push(Arc::new(stage));
        self
    }

    /// Passes queries for the names of a pattern, and their replies, through a [`Stage`]; in the
    /// order of [`middleware_for`](Self::middleware_for).
    pub fn stage_for(self, pattern: &str, stage: impl Stage + 'static) -> Self {
        self.guard(&[pattern], Arc::new(stage))
    }

    /// Passes queries for the names of patterns, and their replies, through one middleware.
    pub(crate) fn guard(
        mut self,
        patterns: &[impl AsRef<str>],
        middleware: Arc<dyn Stage>,
    ) -> Self {
        for text in patterns {
            if let Some(pattern) = self.pattern(text.as_ref()) {
                let handler = Guard::Here(Arc::clone(&middleware));
                self.guards.push(Route { pattern, handler });
            }
        }
        self
    }

    /// Passes all queries through a function that may wait, before handlers and zones; what it
    /// returns is sent, unless that leaves the reply as it is. Every query then goes through the
    /// app's runtime, which costs several times what an answer from a zone does, and no reply of a
    /// handler is cached.
    pub fn middleware_async<M: 'static, H>(mut self, function: H) -> Self
    where
        H: AsyncHandler<M>,
        H::Future: Send + 'static,
        H::Output: IntoReply,
    {
        let code = self.without_route(function);
        self.asynchronous.middleware.push(code);
        self
    }

    /// Passes queries for the names of a pattern through a function that may wait, before their
    /// handlers and zones: behind all [`middleware_async`](Self::middleware_async), that of a wider
    /// pattern first. It makes no name exist, and hides no handler and no zone. What it returns is
    /// sent, unless that leaves the reply as it is.
    ///
    /// ```
    /// # use zonda::{App, OwnedQuery, Rcode, State};
    /// # struct Accounts;
    /// # impl Accounts {
    /// #     async fn know(&self, _: std::net::IpAddr) -> bool { true }
    /// # }
    /// let app = App::new().state(Accounts).middleware_for_async(
    ///     "*.internal.example",
    ///     async |query: OwnedQuery, accounts: State<Accounts>| {
    ///         let is_known = accounts.know(query.client().ip()).await;
    ///         (!is_known).then_some(Rcode::REFUSED)
    ///     },
    /// );
    /// ```
    pub fn middleware_for_async<M: 'static, H>(self, pattern: &str, function: H) -> Self
    where
        H: AsyncHandler<M>,
        H::Future: Send + 'static,
        H::Output: IntoReply,
    {
        self.guard_async(&[pattern], function)
    }

    /// Passes queries for the names of patterns, which capture the same labels, through one
    /// function that may wait.
    pub(crate) fn guard_async<M: 'static, H>(
        mut self,
        patterns: &[impl AsRef<str>],
        function: H,
    ) -> Self
    where
        H: AsyncHandler<M>,
        H::Future: Send + 'static,
        H::Output: IntoReply,
    {
        let patterns: Vec<_> = patterns.iter().filter_map(|it| self.pattern(it.as_ref())).collect();
        let Some(last) = patterns.last() else { return self };
        let code = AsyncCode::new(last.clone(), function, self.shared_states.clone());
        let handler = self.asynchronous.add(code);
        for pattern in patterns {
            self.guard_checks.push((pattern.clone(), H::check));
            let handler = Guard::Elsewhere(Elsewhere { runtime: 0, handler });
            self.guards.push(Route { pattern, handler });
        }
        self
    }

    /// Sets a value that handlers take as a [`State`](crate::State), in place of one of the same
    /// type that was set before. A program that uses the value elsewhere, too, sets an `Arc` of it.
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.states.set(value);
        self
    }

    /// Has a function answer queries whose handler or asynchronous middleware has returned an error
    /// of a type, or taken a value that refuses the query with one. Errors of all types are a
    /// [`Failure`](crate::Failure). The function gets the error, the query and a reply, and returns
    /// [what makes a reply](crate::IntoReply).
    ///
    /// Several functions are tried in the order in which they were added. A query that none of them
    /// answers is SERVFAIL, and the log has the error; so are panics, and what is late.
    ///
    /// ```
    /// # use zonda::{App, Context, Reply, Txt};
    /// # use std::io;
    /// # fn text() -> io::Result<String> { Ok(String::new()) }
    /// let app = App::new()
    ///     .handle("a.example/TXT", || text().map(Txt::new))
    ///     .on_error(|error: &io::Error, _: &Context, reply: &mut Reply| {
    ///         if error.kind() == io::ErrorKind::NotFound {
    ///             reply.nxdomain();
    ///         }
    ///     });
    /// ```
    pub fn on_error<E: 'static, R: IntoReply>(
        mut self,
        function: impl Fn(&E, &Context<'_>, &mut Reply) -> R + Send + Sync + 'static,
    ) -> Self {
        self.states.error_handlers.push(error_handler(function));
        self
    }

    /// Caches replies of handlers and sources in a cache of the program's own, in place of one that
    /// was set before: the server looks a query up in it before it calls them, and inserts their
    /// replies. A program that shares the cache between apps, or empties it, keeps an `Arc` of it.
    /// The cache is not used with [`middleware_async`](Self::middleware_async).
    pub fn cache(mut self, cache: impl Cache + 'static) -> Self {
        self.cache = Some(Arc::new(cache));
        self
    }

    /// Passes every query and its outcome to a logger, in the thread that has answered it; beside
    /// the query log of the configuration file, if there is one.
    pub fn logger(mut self, logger: impl Logger + 'static) -> Self {
        self.loggers.push(Arc::new(logger));
        self
    }

    /// Passes all replies through a function, which may change them.
    pub fn after(self, function: impl Fn(&Query<'_>, &mut Reply) + Send + Sync + 'static) -> Self {
        self.stage(After(function))
    }

    /// Answers names with a function that runs in the workers. It takes what it needs: the query
    /// and its reply, or [values of the query](crate::FromQuery); and it may return
    /// [what makes a reply](crate::IntoReply).
    ///
    /// ```
    /// # use zonda::{A, App, Query, Reply, Txt};
    /// let app = App::new()
    ///     .handle("www.example/A", || A::new([192, 0, 2, 1]).ttl(60))
    ///     .handle("client.example/TXT", |query: &Query| Txt::new(query.client().to_string()))
    ///     .handle("*.example", |_: &Query, reply: &mut Reply| reply.refused());
    /// ```
    pub fn handle<M: 'static, H>(mut self, pattern: &str, handler: H) -> Self
    where
        H: Handler<M>,
        H::Output: IntoReply,
    {
        if let Some(pattern) = self.pattern(pattern) {
            let states = self.shared_states.clone();
            self.routes.push(AppRoute::in_workers(pattern, handler, states));
        }
        self
    }

    /// Adds handlers and middleware for the names below a suffix, which their patterns leave out:
    /// see [`Router`].
    ///
    /// ```
    /// # use zonda::{A, App, Query, Reply, Txt};
    /// let app = App::new().route("eu.example", |eu| {
    ///     eu.handle("www/A", || A::new([192, 0, 2, 1]))
    ///         .handle("@/TXT", || Txt::new("Europe"))
    ///         .middleware(|query: &Query, reply: &mut Reply| {
    ///             if !query.client().ip().is_loopback() {
    ///                 reply.refused();
    ///             }
    ///         })
    /// });
    /// ```
    pub fn route(mut self, suffix: &str, add: impl FnOnce(Router) -> Router) -> Self {
        match Pattern::check_suffix(suffix) {
            Ok(()) => add(Router::new(self, suffix)).into_app(),
            Err(error) => {
                self.mistakes.push(Error::Pattern(suffix.to_owned(), error));
                self
            }
        }
    }

    /// Answers a name and all names below it, at any depth, from a [`Source`]; queries whose reply
    /// it leaves unchanged are answered from the zones.
    pub fn source(mut self, name: &str, source: impl Source + 'static) -> Self {
        let source: Arc<dyn Source> = Arc::new(source);
        for text in [name.to_owned(), format!("*.{name}")] {
            if let Some(pattern) = self.pattern(&text) {
                let handler = RouteHandler::Here(Arc::clone(&source));
                let route = Route { pattern, handler };
                self.routes.push(AppRoute { route, check: |_| Ok(()) });
            }
        }
        self
    }

    /// Answers names with a function that may wait, such as for a database or for a service on the
    /// network. It runs in a runtime of the app's own, takes an
    /// [`OwnedQuery`](crate::OwnedQuery) or [values of the query](crate::FromQuery), and returns
    /// [what makes a reply](crate::IntoReply).
    ///
    /// ```
    /// # use zonda::{App, OwnedQuery, State, Txt};
    /// # struct Database;
    /// # impl Database {
    /// #     async fn text_of(&self, _: &zonda::Name) -> Result<String, std::io::Error> {
    /// #         Ok(String::new())
    /// #     }
    /// # }
    /// let app = App::new()
    ///     .state(Database)
    ///     .handle_async("*.example/TXT", async |query: OwnedQuery, database: State<Database>| {
    ///         database.text_of(query.name()).await.map(Txt::new)
    ///     });
    /// ```
    pub fn handle_async<M: 'static, H>(mut self, pattern: &str, handler: H) -> Self
    where
        H: AsyncHandler<M>,
        H::Future: Send + 'static,
        H::Output: IntoReply,
    {
        if let Some(pattern) = self.pattern(pattern) {
            let code = AsyncCode::new(pattern.clone(), handler, self.shared_states.clone());
            let number = self.asynchronous.add(code);
            self.routes.push(AppRoute::in_runtime(pattern, number, H::check));
        }
        self
    }

    /// Adds a function that may wait and has no route: handlers and middleware that cannot answer
    /// at once hand queries to it with [`Reply::defer_to`](crate::Reply::defer_to).
    ///
    /// ```
    /// # use zonda::{App, OwnedQuery, Query, Reply, Txt};
    /// let mut app = App::new();
    /// let look_up = app.deferred(async |query: OwnedQuery| {
    ///     Txt::new(format!("all about {}", query.name())) // from a database
    /// });
    /// let app = app.handle("*.example.com/TXT", move |query: &Query, reply: &mut Reply| {
    ///     match query.name().label(0) {
    ///         b"www" => reply.answer(Txt::new("known")),
    ///         _ => reply.defer_to(look_up),
    ///     }
    /// });
    /// ```
    pub fn deferred<M: 'static, H>(&mut self, function: H) -> Elsewhere
    where
        H: AsyncHandler<M>,
        H::Future: Send + 'static,
        H::Output: IntoReply,
    {
        let code = self.without_route(function).deferred();
        let handler = self.asynchronous.add(code);
        Elsewhere { runtime: 0, handler }
    }

    /// Makes asynchronous code without a route.
    fn without_route<M: 'static, H>(&mut self, function: H) -> AsyncCode
    where
        H: AsyncHandler<M>,
        H::Future: Send + 'static,
        H::Output: IntoReply,
    {
        self.checks.push(H::check);
        let all = parse("*").expect("`*` is a pattern");
        AsyncCode::new(all, function, self.shared_states.clone())
    }

    /// Sets the time that asynchronous code has for a query, 5 seconds by default; a query that it
    /// has not answered by then is answered SERVFAIL.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.limits.deadline = deadline;
        self
    }

    /// Sets how many queries may wait for asynchronous code, 65,536 by default; queries beyond that
    /// are answered SERVFAIL.
    pub fn waiting_max(mut self, queries: usize) -> Self {
        self.limits.waiting_max = queries;
        self
    }

    /// Sets the number of threads of asynchronous code, on whatever CPUs the system gives them.
    ///
    /// 0, the default, is one less than there are CPUs, but at least two. These threads stay away
    /// from the first CPU if there is another: code that computes for long then delays neither
    /// other code nor answers from zones. Under a quota of CPU time (cgroups), which all threads
    /// share, the default is one less than the CPUs of the quota, but at least one.
    pub fn async_threads(mut self, count: u16) -> Self {
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
    pub fn async_niceness(mut self, niceness: u8) -> Self {
        self.limits.niceness = niceness.min(19) as i8;
        self
    }

    /// Returns the pattern of a text; notes the mistake if the text is not a pattern.
    fn pattern(&mut self, text: &str) -> Option<Pattern> {
        parse(text).map_err(|error| self.mistakes.push(error)).ok()
    }
}

/// Middleware of a function that sees replies.
struct After<F>(F);

impl<F: Fn(&Query<'_>, &mut Reply) + Send + Sync> Stage for After<F> {
    fn after(&self, asked: &Query<'_>, draft: &mut Reply) {
        (self.0)(asked, draft);
    }
}
