//! All of the user's code that is in force.

use super::cache::Cache;
use super::dependence::Dependences;
use super::handler::Handler;
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
    /// The runtime whose middleware every query passes, with or without a route.
    pub middleware_runtime: Option<u16>,
    /// Where the user keeps answers of routes.
    pub users_cache: Option<Arc<dyn Cache>>,
    /// Answers that may be given again without asking the code.
    pub(super) cache: zonda_cache::Cache,
    /// What the kept answers of each route depend on.
    pub(super) dependences: Box<[Dependences]>,
    /// Told of panics.
    panic_log: Option<PanicLog>,
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
        let panic_log = None;
        Self { routes, middleware, middleware_runtime, users_cache, cache, dependences, panic_log }
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
    /// Middleware, which all queries pass.
    Middleware,
    /// Where the user keeps answers.
    Cache,
}
