//! Runs asynchronous code in a runtime of its own.

use crate::handler::AsyncAnswer;
use crate::owned::OwnedQuery;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use zonda_engine::handlers::{Draft, Pattern};
use zonda_engine::{Reason, Supplied};
use zonda_server::RuntimeHandle;
use zonda_transport::handlers::{RuntimeConfig, Ticket};

/// Queries that are taken at once, and replies that are sent at once.
const BATCH_MAX: usize = 256;

/// A reply under way.
type Answering = Pin<Box<dyn Future<Output = Draft> + Send>>;

/// Asynchronous code and its names.
pub(crate) struct AsyncCode {
    pattern: Arc<Pattern>,
    function: Box<dyn Fn(OwnedQuery) -> Answering + Send + Sync>,
}

impl AsyncCode {
    /// A function that answers the names of a pattern.
    pub(crate) fn new<F, A>(
        pattern: Pattern,
        function: impl Fn(OwnedQuery) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = A> + Send + 'static,
        A: AsyncAnswer + 'static,
    {
        let pattern = Arc::new(pattern);
        let own = Arc::clone(&pattern);
        let function = move |query| {
            let (answering, pattern) = (function(query), Arc::clone(&own));
            let answering = async move { answering.await.into_reply(pattern.as_str()) };
            Box::pin(answering) as Answering
        };
        Self { pattern, function: Box::new(function) }
    }
}

/// The runtime that asynchronous code runs in; ends when it is dropped.
pub(crate) struct Tasks {
    _runtime: tokio::runtime::Runtime,
}

/// Called with what the code answers its queries with.
type Start = Box<dyn FnOnce(Vec<RuntimeHandle>) + Send>;

impl Tasks {
    /// Starts a runtime for all code; also returns how it is to be used, and what it is to be given
    /// when the server runs.
    pub(crate) fn start(
        code: Vec<AsyncCode>,
        deadline: Duration,
        waiting_max: usize,
    ) -> io::Result<(Self, RuntimeConfig, Start)> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("handlers")
            .enable_all()
            .build()?;
        let fresh = Arc::new(Notify::new());
        let wake = {
            let fresh = Arc::clone(&fresh);
            Box::new(move || fresh.notify_one())
        };
        let patience_nanos = u64::try_from(deadline.as_nanos()).unwrap_or(u64::MAX);
        let config = RuntimeConfig { waiting_max, patience_nanos, wake };
        let handle = runtime.handle().clone();
        let start = move |handles: Vec<RuntimeHandle>| {
            if let Some(handle_of_server) = handles.into_iter().next() {
                handle.spawn(serve(code.into(), handle_of_server, fresh));
            }
        };
        Ok((Self { _runtime: runtime }, config, Box::new(start)))
    }
}

/// Has code answer queries, as they come, until the runtime ends.
async fn serve(code: Arc<[AsyncCode]>, handle: RuntimeHandle, fresh: Arc<Notify>) {
    let RuntimeHandle { runtime, mut answerer } = handle;
    let (answered, mut answers) = mpsc::unbounded_channel::<(Ticket, Option<Draft>)>(); // bounded by what waits
    let mut batch = Vec::with_capacity(BATCH_MAX);
    loop {
        tokio::select! {
            () = fresh.notified() => {
                let mut queries = Vec::new();
                let more = runtime.take(BATCH_MAX, |ticket, handler, deferred| {
                    let code = code.get(handler as usize);
                    let query = code.and_then(|code| OwnedQuery::new(deferred, &code.pattern));
                    queries.push((ticket, handler as usize, query));
                });
                for (ticket, handler, query) in queries {
                    let answering = query.map(|query| (code[handler].function)(query));
                    tokio::spawn(answer(ticket, answering, answered.clone()));
                }
                if more {
                    fresh.notify_one();
                }
            }
            count = answers.recv_many(&mut batch, BATCH_MAX) => {
                debug_assert!(count > 0, "this task has a sender too");
                for (ticket, draft) in batch.drain(..) {
                    let supplied = match &draft {
                        Some(draft) => Supplied::Draft(draft),
                        None => Supplied::Failed(Reason::HandlerFailed),
                    };
                    answerer.answer(&runtime, ticket, supplied);
                }
                answerer.send();
            }
        }
    }
}

/// Waits for a reply and hands it over; a panic is none.
async fn answer(
    ticket: Ticket,
    answering: Option<Answering>,
    answered: mpsc::UnboundedSender<(Ticket, Option<Draft>)>,
) {
    let draft = match answering {
        Some(answering) => tokio::spawn(answering).await.ok(),
        None => None,
    };
    let _ = answered.send((ticket, draft)); // gone only when the runtime ends
}
