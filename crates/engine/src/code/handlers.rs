//! All of the user's code that is in force.

use super::cache::Cache;
use super::dependence::Dependences;
use super::elsewhere::Elsewhere;
use super::guards::{Guard, Guards};
use super::handler::Handler;
use super::history::ResumePoint;
use super::middleware::Stage;
use super::pattern::Pattern;
use super::routes::{Route, Routes};
use std::any::Any;
use std::sync::Arc;
use zonda_wire::Type;
use zonda_zone::{HashSeed, LookupName};

/// All code that is in force.
pub struct Handlers {
    /// Routes: which code answers for which names.
    pub routes: Routes<Handler>,
    /// Middleware in the worker, which every query passes in this order, and every reply in the
    /// opposite one.
    pub middleware: Vec<Arc<dyn Stage>>,
    /// Middleware for the names of patterns, which queries pass behind that for all names.
    pub guards: Guards,
    /// The code of runtimes that queries pass before their handlers.
    runtimes_ahead: RuntimesAhead,
    /// Whether there is middleware in the worker, for all names or for those of a pattern.
    pub(crate) has_stages: bool,
    /// The runtime that itself calls the handlers behind one of its own that passes a query on.
    chaining_runtime: Option<u16>,
    /// Where the user keeps answers of routes.
    pub users_cache: Option<Arc<dyn Cache>>,
    /// Answers that may be given again without asking the code.
    pub(super) cache: zonda_cache::Cache,
    /// What the kept answers of each route depend on.
    pub(super) dependences: Box<[Dependences]>,
    /// Told of panics.
    panic_log: Option<PanicLog>,
}

/// The code of runtimes that queries pass before their handlers.
#[derive(Clone, Copy)]
enum RuntimesAhead {
    /// There is none.
    Nothing,
    /// The middleware of this runtime, which every query passes, with or without a route.
    ForAll(u16),
    /// Guards, for the names of their patterns.
    Guards,
}

/// Is told what has panicked in a worker, and with which message. Called there: must not block.
pub type PanicLog = fn(Callee<'_>, &str);

/// Memory for answers of code that are given again, octets; none of it is used before there are
/// any.
const CACHE_BYTES: usize = 64 << 20;

impl Handlers {
    /// Code for names that are hashed with `seed`; routes and middleware in the order in which they
    /// were added.
    #[must_use]
    pub fn new(
        routes: Vec<Route<Handler>>,
        middleware: Vec<Arc<dyn Stage>>,
        middleware_runtime: Option<u16>,
        seed: HashSeed,
    ) -> Self {
        let dependences = routes.iter().map(|_| Dependences::default()).collect();
        let cache = zonda_cache::Cache::new(CACHE_BYTES);
        let (routes, users_cache) = (Routes::new(routes, seed), None);
        let (panic_log, chaining_runtime) = (None, None);
        let guards = Guards::new(Vec::new(), seed);
        let has_stages = !middleware.is_empty();
        let runtimes_ahead =
            middleware_runtime.map_or(RuntimesAhead::Nothing, RuntimesAhead::ForAll);
        Self {
            routes,
            middleware,
            guards,
            runtimes_ahead,
            has_stages,
            chaining_runtime,
            users_cache,
            cache,
            dependences,
            panic_log,
        }
    }

    /// Returns the handlers with guards, in the order in which they were added; names are hashed
    /// with `seed`.
    #[must_use]
    pub fn with_guards(mut self, guards: Vec<Route<Guard>>, seed: HashSeed) -> Self {
        self.guards = Guards::new(guards, seed);
        self.has_stages |= self.guards.has_here();
        if self.guards.has_elsewhere() && matches!(self.runtimes_ahead, RuntimesAhead::Nothing) {
            self.runtimes_ahead = RuntimesAhead::Guards;
        }
        self
    }

    /// Returns the handlers with a runtime that itself calls the handlers behind one of its own
    /// that passes a query on: what it leaves, all of them have left.
    #[must_use]
    pub fn with_chaining_runtime(self, chaining_runtime: Option<u16>) -> Self {
        Self { chaining_runtime, ..self }
    }

    /// Returns the runtime whose middleware or guards a query passes before its handlers, if there
    /// is one.
    #[inline]
    pub(crate) fn runtime_ahead(&self, name: &LookupName, qtype: Type) -> Option<u16> {
        match self.runtimes_ahead {
            RuntimesAhead::Nothing => None,
            RuntimesAhead::ForAll(runtime) => Some(runtime),
            RuntimesAhead::Guards => self.guards.runtime_for(name, qtype),
        }
    }

    /// Whether a query passes guards of a runtime.
    pub(crate) fn is_guarded(&self, name: &LookupName, qtype: Type) -> bool {
        self.guards.has_elsewhere() && self.guards.runtime_for(name, qtype).is_some()
    }

    /// Whether a query passes guards in the worker.
    pub(crate) fn has_guard_here(&self, name: &LookupName, qtype: Type) -> bool {
        self.guards.here.find(name, qtype).is_some()
    }

    /// Returns the point at which a query goes on that the handler of a route, which is elsewhere,
    /// passes on; `place` is the route's.
    pub(crate) fn resume_point(&self, elsewhere: Elsewhere, place: usize) -> ResumePoint {
        match self.chaining_runtime == Some(elsewhere.runtime) {
            true => ResumePoint::Handlers(None),
            false => ResumePoint::Handlers(Some(self.routes.passed(place))),
        }
    }

    /// Returns the number of the handler of a runtime that is called for a query which the handler
    /// of a pattern has passed on; of the first one, without a pattern. None if the query goes on
    /// elsewhere.
    #[must_use]
    pub fn next_number(
        &self,
        (name, qtype): (&LookupName, Type),
        passed: Option<&Pattern>,
        runtime: u16,
    ) -> Option<u32> {
        let passed = passed.map(|pattern| self.routes.passed_by(pattern));
        match self.routes.find_behind(name, qtype, passed)?.1.handler {
            Handler::Elsewhere(next) if next.runtime == runtime => Some(next.handler),
            _ => None,
        }
    }

    /// Returns the handlers with a log for panics of the code.
    #[must_use]
    pub fn with_panic_log(self, panic_log: PanicLog) -> Self {
        Self { panic_log: Some(panic_log), ..self }
    }

    /// Returns the handlers with a cache of the user's in front of the routes' code.
    #[must_use]
    pub fn with_cache(self, users_cache: Option<Arc<dyn Cache>>) -> Self {
        Self { users_cache, ..self }
    }

    /// Returns the code that a [`Call`](super::Call) with this place calls.
    #[must_use]
    pub fn callee(&self, place: usize) -> Callee<'_> {
        match self.routes.as_slice().get(place) {
            Some(route) => Callee::Handler(&route.pattern),
            None if place == self.cache_place() => Callee::Cache,
            None => Callee::Middleware,
        }
    }

    /// Returns the pattern of the handler that is called for a question.
    #[must_use]
    pub fn pattern_for(&self, name: &LookupName, qtype: Type) -> Option<&str> {
        self.routes.find(name, qtype).map(|(_, route)| route.pattern.as_str())
    }

    /// Tells of a panic of what a [`Call`](super::Call) with this place calls.
    #[cold]
    pub(crate) fn tell_panic(&self, place: usize, payload: &(dyn Any + Send)) {
        if let Some(tell) = self.panic_log {
            tell(self.callee(place), panic_message(payload));
        }
    }

    /// The place of calls of a middleware.
    pub(crate) fn middleware_place(&self, index: usize) -> usize {
        self.routes.len() + index
    }

    /// The place of calls of the user's cache.
    pub(crate) fn cache_place(&self) -> usize {
        self.middleware_place(self.middleware.len())
    }

    /// The place of calls of a guard.
    pub(crate) fn guard_place(&self, index: usize) -> usize {
        self.cache_place() + 1 + index
    }
}

/// Returns the message of a panic.
#[must_use]
pub fn panic_message(payload: &(dyn Any + Send)) -> &str {
    let written = payload.downcast_ref::<String>().map(String::as_str);
    written.or_else(|| payload.downcast_ref().copied()).unwrap_or("no message")
}

/// Code that a worker calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee<'h> {
    /// The handler of a route.
    Handler(&'h Pattern),
    /// Middleware, for all queries or for those of a pattern.
    Middleware,
    /// Where the user keeps answers.
    Cache,
}
