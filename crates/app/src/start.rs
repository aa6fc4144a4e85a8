//! Starting an app, and serving until it is to stop.

use crate::app::App;
use crate::asynchronous::Tasks;
use crate::error::Error;
use crate::logger;
use crate::routes::{check, parse};
use crate::running::{Running, in_thread};
use std::collections::HashSet;
use std::future::Future;
use zonda_config::Config;
use zonda_server::{
    Code, Options, Program, ProgramConfig, Server, Texts, failed_in_code, zones_in_code,
};
use zonda_wire::Name;

impl App {
    /// Starts the server, which answers from then on, in whichever runtime. Dropping the future
    /// stops what has started.
    ///
    /// # Errors
    /// All mistakes in the app's definition: patterns, names, what handlers take, the
    /// configuration, zones that were given by [`zone`](Self::zone) and
    /// [`zone_text`](Self::zone_text) and cannot be loaded. Or why the server cannot start.
    pub async fn start(self) -> Result<Running, Error> {
        in_thread("start", || self.start_blocking()).await.map_err(Error::Thread)?
    }

    /// Starts the server as [`start`](Self::start) does, and blocks until it answers.
    ///
    /// # Errors
    /// Those of [`start`](Self::start).
    pub fn start_blocking(self) -> Result<Running, Error> {
        let mut app = self;
        let mut flags = app.flags;
        flags.forward = (!app.forward.is_empty()).then(|| app.forward.join(","));
        let mut required_zones = zones_in_code(&flags, &app.texts);
        if app.allows_failed_zones {
            required_zones.clear();
        }
        let lacks = app.routes.iter().filter_map(|route| route.check(&app.states).err());
        let all = parse("*")?;
        let of_others = app.checks.iter().filter_map(|it| check(&all, *it, &app.states).err());
        let of_guards = app.guard_checks.iter();
        let of_guards = of_guards.filter_map(|(at, it)| check(at, *it, &app.states).err());
        app.mistakes.extend(lacks.chain(of_others).chain(of_guards));
        let config = ProgramConfig::new(app.config, flags, app.metrics);
        let changeable = config.clone();
        let load = move || config.read();
        if !app.mistakes.is_empty() {
            return Err(all_mistakes(app.mistakes, load(), &app.texts, &required_zones));
        }
        let loaded = match load() {
            Ok(config) => config,
            wrong => return Err(all_mistakes(Vec::new(), wrong, &app.texts, &required_zones)),
        };
        app.shared_states.set(app.states);
        let code = Code {
            routes: app.routes.into_iter().map(|route| route.route).collect(),
            middleware: app.middleware,
            guards: app.guards,
            middleware_runtime: (!app.asynchronous.middleware.is_empty()).then_some(0),
            cache: app.cache,
            ..Code::default()
        };
        let (tasks, runtime, start) =
            Tasks::start(app.asynchronous, code.guards.clone(), &app.limits)
                .map_err(Error::Thread)?;
        let (ended, has_ended) = tokio::sync::watch::channel(false);
        let program = Program {
            code: code.clone(),
            runtimes: vec![runtime],
            start: Some(start),
            shares_addresses: app.reuses_port,
            texts: app.texts,
            stores: app.stores,
            required_zones,
            loggers: app.loggers.into_iter().map(logger::adapt).collect(),
            ended: Some(Box::new(move || _ = ended.send_replace(true))),
            ..Program::default()
        };
        let read_config = Box::new(load);
        let options = Options { config: loaded, read_config, take_over: false, program };
        let server = Server::start(options).map_err(|error| Error::of_server(&error))?;
        let program = (changeable, app.shared_states);
        Ok(Running::new(server, code, tasks, program, has_ended))
    }

    /// Serves until SIGINT or SIGTERM, or until a failure stops the server; then stops as
    /// [`Running::stop`] does. These signals end the process no longer by themselves, also when the
    /// app has stopped.
    ///
    /// Dropping the future stops the server, too, in a thread of its own.
    ///
    /// # Errors
    /// Those of [`start`](Self::start), and the failure that stopped the server.
    pub async fn serve(self) -> Result<(), Error> {
        let running = self.start().await?;
        let signalled = running.signalled()?;
        running.serve_until(signalled).await
    }

    /// Serves until `shutdown` completes, or until a failure stops the server; then stops as
    /// [`Running::stop`] does. Leaves signals to the program. Dropping the future stops the server,
    /// too, in a thread of its own.
    ///
    /// ```no_run
    /// # async fn serve(app: zonda::App) -> Result<(), zonda::Error> {
    /// app.serve_until(async { _ = tokio::signal::ctrl_c().await }).await
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`start`](Self::start), and the failure that stopped the server.
    pub async fn serve_until(self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        self.start().await?.serve_until(shutdown).await
    }

    /// Serves as [`serve`](Self::serve) does, and blocks: for programs without a runtime.
    ///
    /// ```no_run
    /// # use zonda::{App, Txt};
    /// fn main() -> Result<(), zonda::Error> {
    ///     App::new().handle("hello.example", || Txt::new("Hello")).listen("127.0.0.1:5300").run()
    /// }
    /// ```
    ///
    /// # Errors
    /// Those of [`serve`](Self::serve).
    ///
    /// # Panics
    /// In asynchronous code, which calls [`serve`](Self::serve).
    pub fn run(self) -> Result<(), Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.map_err(Error::Thread)?.block_on(self.serve())
    }

    /// Former name of [`serve_until`](Self::serve_until).
    ///
    /// # Errors
    /// Those of [`serve_until`](Self::serve_until).
    #[deprecated(note = "it is called `serve_until`")]
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        self.serve_until(shutdown).await
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
