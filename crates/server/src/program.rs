//! The user's code beside the server's own sources of answers.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use arc_swap::ArcSwap;
use tokio::sync::mpsc;
use zonda_engine::handlers::{Handler, Handlers, Middleware, Route, Watch};
use zonda_engine::{Engine, Outcome, Peer, Snapshot, Transport};
use zonda_transport::handlers::{Answerer, LongCalls, Runtime, RuntimeConfig};
use zonda_transport::{Clock, Deferrals, Deferred, Way};
use zonda_zone::HashSeed;

/// The code that a server is started with; by default none.
#[derive(Default)]
pub struct Program {
    /// What is called for which names.
    pub code: Code,
    /// The runtimes of code that does not run in the workers, by their numbers.
    pub runtimes: Vec<RuntimeConfig>,
    /// Given to the runtimes once the server runs, in the order of their numbers.
    pub start: Option<Box<dyn FnOnce(Vec<RuntimeHandle>) + Send>>,
}

/// What is called for which names.
#[derive(Clone, Default)]
pub struct Code {
    /// Handlers in the order in which they were added.
    pub routes: Vec<Route<Handler>>,
    /// What all queries pass.
    pub middleware: Vec<Arc<dyn Middleware>>,
    /// The runtime that has middleware of its own.
    pub middleware_runtime: Option<u16>,
}

/// What a runtime answers its queries with.
pub struct RuntimeHandle {
    /// What waits for it.
    pub runtime: Arc<Runtime>,
    /// Writes and sends replies.
    pub answerer: Answerer<Engine>,
}

impl Code {
    /// As workers use it, for names that are hashed with `seed`; nothing if there is no code.
    pub(crate) fn handlers(self, seed: HashSeed) -> Option<Arc<Handlers>> {
        let Self { routes, middleware, middleware_runtime } = self;
        let is_empty = routes.is_empty() && middleware.is_empty() && middleware_runtime.is_none();
        let handlers = || Handlers::new(routes, middleware, middleware_runtime, seed);
        (!is_empty).then(|| Arc::new(handlers()))
    }
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
    /// Of engines that answer from `snapshot`.
    pub(crate) fn new(snapshot: Arc<ArcSwap<Snapshot>>) -> Self {
        Self { engines: Mutex::default(), snapshot, long_calls: AtomicU64::new(0) }
    }

    /// Watches an engine for as long as it exists.
    pub(crate) fn add(&self, engine: &Engine) {
        let mut engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner);
        engines.retain(|watch| watch.strong_count() > 0);
        engines.push(Arc::downgrade(engine.watch()));
    }

    /// Says which code takes too long.
    pub(crate) fn look(&self, seen: &mut LongCalls) {
        let engines = self.engines.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let calls = engines.iter().map(|watch| watch.upgrade()?.call());
        for route in seen.look(calls, LOOKS_MAX) {
            self.long_calls.fetch_add(1, Ordering::Relaxed);
            let snapshot = self.snapshot.load();
            let handlers = snapshot.handlers.as_ref();
            let known = handlers.and_then(|handlers| handlers.routes.as_slice().get(route));
            let what = known.map_or("a middleware".to_owned(), |route| {
                format!("the handler of {}", route.pattern.as_str())
            });
            tracing::warn!(
                "{what} has been running for a second in a worker, whose other queries wait: make \
                 it shorter, or asynchronous"
            );
        }
    }
}

/// Answers queries that the process itself has.
pub(crate) struct OwnQueries {
    engine: Mutex<Engine>,
    clock: Clock,
    deferrals: Deferrals,
}

/// The reply to a query of the process itself.
#[derive(Debug)]
pub enum OwnReply {
    /// It; nothing for silence.
    Now(Option<Vec<u8>>),
    /// It will come, or the sender will go, which is silence.
    Later(mpsc::Receiver<Vec<u8>>),
}

/// Octets of the longest message.
const MESSAGE_MAX: usize = u16::MAX as usize;

impl OwnQueries {
    /// Answers with an engine of its own.
    pub(crate) fn new(engine: Engine, clock: Clock, deferrals: Deferrals) -> Self {
        Self { engine: Mutex::new(engine), clock, deferrals }
    }

    /// Asks a query, at most 65,535 octets, as a client at `address` would over TCP.
    pub(crate) fn ask(&self, query: &[u8], address: Option<SocketAddr>) -> OwnReply {
        let address = address.unwrap_or((Ipv4Addr::LOCALHOST, 0).into());
        let peer = Peer { address, transport: Transport::Tcp, listener: u16::MAX };
        let query = &query[..query.len().min(MESSAGE_MAX)];
        let mut buffer = vec![0; MESSAGE_MAX];
        buffer[..query.len()].copy_from_slice(query);
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = engine.answer(self.clock.now(), &peer, &mut buffer, query.len());
        drop(engine);
        match outcome {
            Outcome::Reply(len) => {
                buffer.truncate(len);
                OwnReply::Now(Some(buffer))
            }
            Outcome::Silence => OwnReply::Now(None),
            Outcome::Deferred(deferral) => {
                let (sender, receiver) = mpsc::channel(1);
                let (query, way) = (query.to_vec(), Way::Tcp(sender));
                self.deferrals.submit(&mut vec![Deferred { query, peer, deferral, way }]);
                OwnReply::Later(receiver)
            }
        }
    }
}
