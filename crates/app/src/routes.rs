//! Routes of an app: before it starts, and while it runs.
//!
//! While it runs, only what differs is told: a thread puts many routes into force, while the caller
//! goes on ([`CodeUpdates`]).

use crate::asynchronous::Tasks;
use crate::error::Error;
use crate::from_query::{Check, Context, Definition, SharedStates, States};
use crate::handler::Handler;
use crate::into_reply::{IntoReply, conclude};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use zonda_engine::code::{Elsewhere, Handler as RouteHandler, Pattern, Query, Reply, Route};
use zonda_server::{Code, CodeTable, CodeUpdates, Publishing, Server};

/// A route of an app, and what checks what its handler takes.
pub(crate) struct AppRoute {
    pub(crate) route: Route<RouteHandler>,
    pub(crate) check: Check,
}

impl AppRoute {
    /// Makes the route to a function that runs in the workers.
    pub(crate) fn in_workers<M: 'static, H>(
        pattern: Pattern,
        handler: H,
        states: SharedStates,
    ) -> Self
    where
        H: Handler<M>,
        H::Output: IntoReply,
    {
        let code = worker_code(pattern.as_str().to_owned(), handler, states);
        let route = Route { pattern, handler: RouteHandler::Here(Arc::new(code)) };
        Self { route, check: H::check }
    }

    /// Makes the route to asynchronous code of a number.
    pub(crate) fn in_runtime(pattern: Pattern, handler: u32, check: Check) -> Self {
        let handler = RouteHandler::Elsewhere(Elsewhere { runtime: 0, handler });
        Self { route: Route { pattern, handler }, check }
    }

    /// Checks what the handler takes.
    ///
    /// # Errors
    /// What the app or the pattern lacks.
    pub(crate) fn check(&self, states: &States) -> Result<(), Error> {
        check(&self.route.pattern, self.check, states)
    }
}

/// Returns the code that a worker calls for a function: it takes what that takes, and puts what
/// that returns into the reply. `pattern` stands in the log.
pub(crate) fn worker_code<M: 'static, H>(
    pattern: String,
    handler: H,
    states: SharedStates,
) -> impl Fn(&Query<'_>, &mut Reply) + Send + Sync + 'static
where
    H: Handler<M>,
    H::Output: IntoReply,
{
    move |query: &Query<'_>, reply: &mut Reply| {
        let context = Context::of(query, states.get());
        match handler.call(query, reply, &context) {
            Ok(returned) => conclude(returned, &pattern, &context, reply),
            Err(refusal) => conclude(refusal.into_returned(), &pattern, &context, reply),
        }
    }
}

/// Checks what a handler for a pattern takes.
///
/// # Errors
/// What the app or the pattern lacks.
pub(crate) fn check(pattern: &Pattern, check: Check, states: &States) -> Result<(), Error> {
    check(&Definition { pattern, states })
        .map_err(|lack| Error::Handler(pattern.as_str().to_owned(), lack))
}

/// Reads the pattern of a route.
pub(crate) fn parse(text: &str) -> Result<Pattern, Error> {
    text.parse().map_err(|error| Error::Pattern(text.to_owned(), error))
}

/// All code of an app that runs; its routes by the order in which they were added.
struct LiveCode {
    routes: BTreeMap<u64, Route<RouteHandler>>,
    /// Everything but routes, which stays as it was when the app started.
    fixed: Code,
}

/// Routes that are added and removed together.
struct RouteChange {
    removed: BTreeSet<u64>,
    added: BTreeMap<u64, Route<RouteHandler>>,
}

impl CodeTable for LiveCode {
    type Change = RouteChange;

    fn len_with(&self, change: &RouteChange) -> usize {
        self.routes.len() + self.fixed.guards.len() + change.added.len()
    }

    fn apply(&mut self, change: RouteChange) {
        for number in change.removed {
            self.routes.remove(&number);
        }
        self.routes.extend(change.added);
    }

    fn code(&self) -> Code {
        Code { routes: self.routes.values().cloned().collect(), ..self.fixed.clone() }
    }

    fn merge(earlier: &mut RouteChange, later: RouteChange) {
        for number in later.removed {
            // A route that is not in force yet has nothing to be removed from.
            if earlier.added.remove(&number).is_none() {
                earlier.removed.insert(number);
            }
        }
        earlier.added.extend(later.added);
    }
}

/// The routes of an app that runs, as the program changes them.
pub(crate) struct LiveRoutes {
    state: Mutex<State>,
    /// Number of changes that were made; read without the lock, which a caller holds that waits for
    /// the publisher.
    changes: AtomicU64,
    /// Number of changes that are in force.
    in_force: Arc<watch::Sender<u64>>,
}

/// What a change has to know of those before.
struct State {
    /// The routes by the text that all equal patterns have.
    known: HashMap<String, KnownRoute>,
    updates: CodeUpdates<LiveCode>,
    /// Number of the route that is added next.
    next: u64,
}

/// A route that a later change may remove.
struct KnownRoute {
    number: u64,
    /// Number of its asynchronous code, if it has any.
    code: Option<u32>,
}

impl KnownRoute {
    /// Makes the entry of a route.
    fn new(number: u64, route: &Route<RouteHandler>) -> Self {
        let code = match route.handler {
            RouteHandler::Elsewhere(elsewhere) => Some(elsewhere.handler),
            RouteHandler::Here(_) => None,
        };
        Self { number, code }
    }
}

/// A change that is being put into force.
struct BegunChange<R> {
    /// What is waited for; none where a thread puts the change into force, and reports that.
    publishing: Option<Publishing>,
    /// Reports that the change is in force.
    report: R,
}

impl<R: FnOnce()> BegunChange<R> {
    /// Waits until the change is in force, unless a thread does that.
    ///
    /// # Errors
    /// When the publisher fails.
    fn finish(self) -> Result<(), Error> {
        let Some(publishing) = self.publishing else { return Ok(()) };
        let published = publishing.wait();
        (self.report)(); // also where it has failed, as nothing else will come of it
        published.map_err(|_| Error::Publisher)
    }
}

impl LiveRoutes {
    /// Makes those of a server that was started with this code.
    pub(crate) fn new(code: Code, server: &Arc<Server>) -> Self {
        let mut known = HashMap::with_capacity(code.routes.len());
        let mut routes = BTreeMap::new();
        let Code { routes: all, .. } = code;
        let fixed = Code { routes: Vec::new(), ..code };
        for (number, route) in (0..).zip(all) {
            let entry = KnownRoute::new(number, &route);
            if let Some(former) = known.insert(route.pattern.canonical(), entry) {
                routes.remove(&former.number); // the later one is called
            }
            routes.insert(number, route);
        }
        let next = known.values().map(|route| route.number + 1).max().unwrap_or(0);
        let server = Arc::downgrade(server);
        let updates = CodeUpdates::new(LiveCode { routes, fixed }, move |code| {
            let published = server.upgrade().map(|server| server.publish_code(code));
            published.unwrap_or_else(|| ().into())
        });
        let (state, changes) = (Mutex::new(State { known, updates, next }), AtomicU64::new(0));
        Self { state, changes, in_force: Arc::new(watch::Sender::new(0)) }
    }

    /// Locks the state, which is whole after every statement.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a route in place of that for the same pattern.
    ///
    /// # Errors
    /// When the publisher fails.
    pub(crate) fn put(&self, route: Route<RouteHandler>, tasks: &Tasks) -> Result<(), Error> {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        let entry = KnownRoute::new(number, &route);
        let former = state.known.insert(route.pattern.canonical(), entry);
        let begun = self.begin(&mut state, former, BTreeMap::from([(number, route)]), tasks);
        drop(state); // other changes are begun meanwhile
        begun.finish()
    }

    /// Removes the route for a pattern; returns whether there was one.
    ///
    /// # Errors
    /// When the publisher fails.
    pub(crate) fn remove(&self, pattern: &Pattern, tasks: &Tasks) -> Result<bool, Error> {
        let mut state = self.lock();
        let Some(former) = state.known.remove(&pattern.canonical()) else { return Ok(false) };
        let begun = self.begin(&mut state, Some(former), BTreeMap::new(), tasks);
        drop(state); // other changes are begun meanwhile
        begun.finish().map(|()| true)
    }

    /// Begins to put a change into force; its asynchronous code, which is called no more, is
    /// forgotten then.
    fn begin(
        &self,
        state: &mut State,
        former: Option<KnownRoute>,
        added: BTreeMap<u64, Route<RouteHandler>>,
        tasks: &Tasks,
    ) -> BegunChange<impl FnOnce() + use<>> {
        let number = self.changes.fetch_add(1, Ordering::SeqCst) + 1;
        let in_force = Arc::clone(&self.in_force);
        let code = former.as_ref().and_then(|route| route.code);
        let remove = tasks.remover();
        let report = move || {
            code.into_iter().for_each(&remove);
            in_force.send_modify(|last| *last = number.max(*last));
        };
        let removed = former.map(|route| route.number).into_iter().collect();
        let publishing = state.updates.begin(RouteChange { removed, added }, report.clone());
        BegunChange { publishing, report }
    }

    /// Waits until all changes that were made are in force.
    pub(crate) fn settled(&self) -> impl Future<Output = ()> + Send + use<> {
        let changes = self.changes.load(Ordering::SeqCst);
        let mut in_force = self.in_force.subscribe();
        async move {
            let _ = in_force.wait_for(|last| *last >= changes).await; // gone with the app
        }
    }
}
