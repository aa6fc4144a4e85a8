//! An app: what it answers from, and the server that it becomes.

use crate::asynchronous::{AsyncCode, Tasks};
use crate::error::Error;
use crate::handler::{AsyncAnswer, Ended};
use crate::owned::OwnedQuery;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use zonda_config::{Config, Flags};
use zonda_engine::handlers::{Asked, Draft, Elsewhere, Handler, Middleware, Pattern, Route};
use zonda_server::{Code, Options, OwnReply, Program, Server};

/// How long asynchronous code has time, unless it is told otherwise: clients ask again, or another
/// server, after some 2 to 5 seconds.
const DEADLINE: Duration = Duration::from_secs(5);
/// Queries that wait for asynchronous code at most, unless told otherwise: some 10 MB of queries.
const WAITING_MAX: usize = 65_536;

/// A DNS server under construction.
///
/// Methods that take text which may be wrong tell that when the app starts, all mistakes at once.
pub struct App {
    config: Option<PathBuf>,
    flags: Flags,
    forward: Vec<String>,
    metrics: Option<SocketAddr>,
    routes: Vec<Route<Handler>>,
    middleware: Vec<Arc<dyn Middleware>>,
    asynchronous: Vec<AsyncCode>,
    deadline: Duration,
    waiting_max: usize,
    mistakes: Vec<Error>,
}

impl Default for App {
    fn default() -> Self {
        Self {
            config: None,
            flags: Flags::default(),
            forward: Vec::new(),
            metrics: None,
            routes: Vec::new(),
            middleware: Vec::new(),
            asynchronous: Vec::new(),
            deadline: DEADLINE,
            waiting_max: WAITING_MAX,
            mistakes: Vec::new(),
        }
    }
}

impl App {
    /// An app that answers nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes over all that a configuration file says, as `zonda serve --config` does.
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

    /// How many threads answer UDP; 0, as is the default, is one for each CPU.
    pub fn workers(&mut self, count: u16) -> &mut Self {
        self.flags.workers = Some(count.to_string());
        self
    }

    /// Serves a zone from a master file, or from JSON if the file's name ends in `.json`.
    pub fn zone(&mut self, name: &str, file: impl AsRef<Path>) -> &mut Self {
        self.flags.zones.push(format!("{name}={}", file.as_ref().display()));
        self
    }

    /// Asks a server for all names that neither code nor zones have. May be called more than once.
    pub fn forward(&mut self, server: impl ToString) -> &mut Self {
        self.forward.push(server.to_string());
        self
    }

    /// Offers metrics for Prometheus, at `/metrics`, and the admin interface on an address, which must
    /// be a loopback address unless the configuration file has a token.
    pub fn metrics(&mut self, address: impl Into<SocketAddr>) -> &mut Self {
        self.metrics = Some(address.into());
        self
    }

    /// Has all queries and replies pass a middleware, behind those that were added before.
    ///
    /// A function of query and reply sees queries before they are answered; what it puts into the
    /// reply is sent. [`after`](Self::after) adds one that sees replies.
    pub fn middleware(&mut self, middleware: impl Middleware + 'static) -> &mut Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Has all replies pass a function, which may change them.
    pub fn after(
        &mut self,
        function: impl Fn(&Asked<'_>, &mut Draft) + Send + Sync + 'static,
    ) -> &mut Self {
        self.middleware(After(function))
    }

    /// Answers names with a function that runs in the workers.
    pub fn handle<E: Ended>(
        &mut self,
        pattern: &str,
        function: impl Fn(&Asked<'_>, &mut Draft) -> E + Send + Sync + 'static,
    ) -> &mut Self {
        let text = pattern.to_owned();
        let code = move |asked: &Asked<'_>, draft: &mut Draft| {
            let ended = function(asked, draft);
            ended.end(&text, draft);
        };
        if let Some(pattern) = self.pattern(pattern) {
            self.routes.push(Route { pattern, handler: Handler::Here(Arc::new(code)) });
        }
        self
    }

    /// Answers names with a function that may wait: for a database, or another service. It runs in
    /// a runtime of the app's own.
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
            // There are not as many handlers.
            let handler = u32::try_from(self.asynchronous.len()).unwrap_or(u32::MAX);
            self.asynchronous.push(AsyncCode::new(pattern.clone(), function));
            let handler = Handler::Elsewhere(Elsewhere { runtime: 0, handler });
            self.routes.push(Route { pattern, handler });
        }
        self
    }

    /// How long asynchronous code has time for a query; after that the answer is SERVFAIL. By
    /// default 5 seconds.
    pub fn deadline(&mut self, deadline: Duration) -> &mut Self {
        self.deadline = deadline;
        self
    }

    /// How many queries may wait for asynchronous code; more are answered SERVFAIL. By default
    /// 65,536.
    pub fn waiting_max(&mut self, queries: usize) -> &mut Self {
        self.waiting_max = queries;
        self
    }

    /// A pattern, or nothing if the text is none, which is noted.
    fn pattern(&mut self, text: &str) -> Option<Pattern> {
        match text.parse() {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                self.mistakes.push(Error::Pattern(text.to_owned(), error));
                None
            }
        }
    }

    /// Starts the server, which answers from then on. The app is empty afterwards.
    ///
    /// # Errors
    /// All that is wrong with what the app was told, or why the server cannot start.
    pub fn start(&mut self) -> Result<Running, Error> {
        let app = std::mem::take(self);
        if let Some(mistake) = app.mistakes.into_iter().next() {
            return Err(mistake);
        }
        let mut flags = app.flags;
        flags.forward = (!app.forward.is_empty()).then(|| app.forward.join(","));
        let (config, metrics) = (app.config, app.metrics);
        let load = move || load(config.as_deref(), &flags, metrics);
        let loaded = load().map_err(Error::Config)?;
        let code =
            Code { routes: app.routes, middleware: app.middleware, middleware_runtime: None };
        let mut program = Program { code, ..Program::default() };
        let mut tasks = None;
        if !app.asynchronous.is_empty() {
            let (started, runtime, start) =
                Tasks::start(app.asynchronous, app.deadline, app.waiting_max)
                    .map_err(Error::Thread)?;
            tasks = Some(started);
            program.runtimes.push(runtime);
            program.start = Some(start);
        }
        let read_config = Box::new(load);
        let options = Options { config: loaded, read_config, take_over: false, program };
        let server = Server::start(options).map_err(Error::Serve)?;
        Ok(Running { server, _tasks: tasks })
    }

    /// Runs the server until the process ends, or it must stop.
    ///
    /// # Errors
    /// As [`start`](Self::start), and when it must stop.
    pub async fn run(&mut self) -> Result<(), Error> {
        let running = self.start()?;
        while !running.server.is_finished() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        running.server.wait().map_err(Error::Serve)
    }
}

/// Reads the configuration; an error is all that is wrong with it, a line each.
fn load(file: Option<&Path>, flags: &Flags, metrics: Option<SocketAddr>) -> Result<Config, String> {
    let lines = |errors: Vec<zonda_config::ConfigError>| {
        errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let loaded = Config::load(file, [], flags).map_err(lines)?;
    loaded.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let mut config = loaded.config;
    if file.is_none() {
        config.admin.socket = None; // a program has its own ways; several apps may be in one
    }
    config.admin.address = metrics.or(config.admin.address.filter(|_| file.is_some()));
    Ok(config)
}

/// A function that sees replies.
struct After<F>(F);

impl<F: Fn(&Asked<'_>, &mut Draft) + Send + Sync> Middleware for After<F> {
    fn after(&self, asked: &Asked<'_>, draft: &mut Draft) {
        (self.0)(asked, draft);
    }
}

/// A running app. Dropping it leaves the server running until the process ends.
pub struct Running {
    server: Server,
    /// Runs asynchronous code.
    _tasks: Option<Tasks>,
}

impl Running {
    /// The addresses that are answered on, in the order in which they were given.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.server.addresses()
    }

    /// Answers a query in wire form, without sockets, as if a client on this machine had asked over
    /// TCP. `None` is silence.
    pub async fn query(&self, query: &[u8]) -> Option<Vec<u8>> {
        self.query_from(query, None).await
    }

    /// As [`query`](Self::query), as if a client at `address` had asked.
    pub async fn query_from(&self, query: &[u8], address: Option<SocketAddr>) -> Option<Vec<u8>> {
        match self.server.query(query, address) {
            OwnReply::Now(reply) => reply,
            OwnReply::Later(mut reply) => reply.recv().await.filter(|reply| !reply.is_empty()),
        }
    }

    /// Reads the configuration and changed zones anew.
    ///
    /// # Errors
    /// What is wrong with them; the former ones stay in force.
    pub fn reload(&self) -> Result<(), Error> {
        self.server.reload().map_err(Error::Config)
    }

    /// Answers what was received, and stops.
    ///
    /// # Errors
    /// When it had to stop before.
    pub fn stop(self) -> Result<(), Error> {
        self.server.stop().map_err(Error::Serve)
    }
}
