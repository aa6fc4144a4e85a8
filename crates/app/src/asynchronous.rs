//! Runs asynchronous code in a runtime of its own.
//!
//! Code is begun where its query was taken, as most of it has an answer at once; only what has to
//! wait gets a task. Code that computes for long is begun in tasks, each of which renews that.

use crate::from_query::{AsyncContext, SharedStates};
use crate::handler::AsyncHandler;
use crate::into_reply::{IntoReply, conclude};
use crate::owned::{Notes, OwnedQuery};
use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::io;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, mpsc};
use zonda_engine::code::{Ending, Guard, Guards, NO_HANDLER, Pattern, Reply, Route, panic_message};
use zonda_engine::{HandlerOutcome, Reason};
use zonda_netio::process::{allowed_cpus, available_cpus, be_nice, pin_thread};
use zonda_runtime::{RuntimeConfig, Ticket};
use zonda_server::{LogBudget, RuntimeHandle};

/// Default time that asynchronous code has for a query: clients repeat the query, or ask another
/// server, after some 2 to 5 seconds.
const DEADLINE: Duration = Duration::from_secs(5);
/// Default limit of queries that wait for asynchronous code: some 10 MB of queries.
const WAITING_MAX: usize = 65_536;
/// Queries that are taken at once, and replies that are sent at once.
const BATCH_MAX: usize = 256;

/// Code that takes longer than this until it answers or waits is begun in tasks: more than a task
/// costs, and other threads may have those.
const BEGIN_MAX: Duration = Duration::from_micros(5);
/// For so many queries: it may have been the machine that took long.
const LONG_FOR: u32 = 256;
/// How long queries that were taken together are begun one after the other; the rest get tasks.
const BATCH_TIME_MAX: Duration = Duration::from_micros(200);

/// A reply under way.
type ReplyFuture = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// Asynchronous code and its names.
pub(crate) struct AsyncCode {
    pattern: Arc<Pattern>,
    function: Box<dyn Fn(OwnedQuery) -> ReplyFuture + Send + Sync>,
    /// Whether only other code calls this: it came after middleware or is middleware itself.
    is_deferred: bool,
    /// Number of queries that still begin in tasks, as the code or middleware took too long.
    in_tasks: AtomicU32,
}

impl AsyncCode {
    /// Makes a function that answers the names of a pattern.
    pub(crate) fn new<M: 'static, H>(pattern: Pattern, handler: H, states: SharedStates) -> Self
    where
        H: AsyncHandler<M>,
        H::Future: Send + 'static,
        H::Output: IntoReply,
    {
        let pattern = Arc::new(pattern);
        let (handler, own) = (Arc::new(handler), Arc::clone(&pattern));
        let function = move |query: OwnedQuery| {
            let (handler, own, states) = (Arc::clone(&handler), Arc::clone(&own), states.clone());
            Box::pin(answer(handler, query, own, states)) as ReplyFuture
        };
        let function = Box::new(function);
        // The first call shows how long it takes.
        Self { pattern, function, is_deferred: false, in_tasks: AtomicU32::new(1) }
    }

    /// Marks the code as called by other code, to which it defers queries.
    pub(crate) fn deferred(self) -> Self {
        Self { is_deferred: true, ..self }
    }
}

/// Has a handler for a pattern answer a query, with the values that it takes.
async fn answer<M, H>(
    handler: Arc<H>,
    query: OwnedQuery,
    pattern: Arc<Pattern>,
    states: SharedStates,
) -> Reply
where
    H: AsyncHandler<M>,
    H::Output: IntoReply,
{
    let (mut reply, asked) = (Reply::default(), query.clone());
    let context = AsyncContext::of(&asked, states.get());
    let values = match H::values(&context).await {
        Ok(values) => values,
        Err(refusal) => {
            let returned = refusal.into_returned();
            conclude(returned, pattern.as_str(), &context.to_context(), &mut reply);
            return reply;
        }
    };
    let returned = handler.call(query, values).await;
    conclude(returned, pattern.as_str(), &context.to_context(), &mut reply);
    reply
}

/// All asynchronous code by its number.
#[derive(Default)]
pub(crate) struct AsyncTable {
    known: HashMap<u32, Arc<AsyncCode>>,
    /// Middleware that all queries pass first, in this order.
    pub(crate) middleware: Vec<AsyncCode>,
    /// Code that was removed, and when; queries may still be on their way to it.
    leaving: VecDeque<(Instant, u32)>,
    next: u32,
}

impl AsyncTable {
    /// Adds code; returns its number.
    pub(crate) fn add(&mut self, code: AsyncCode) -> u32 {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.known.insert(number, Arc::new(code));
        number
    }

    /// Forgets code that no route leads to from now on, once the deadline of its last queries has
    /// passed.
    pub(crate) fn remove(&mut self, number: u32, deadline: Duration) {
        while let Some((since, former)) = self.leaving.front()
            && since.elapsed() >= deadline
        {
            self.known.remove(former);
            self.leaving.pop_front();
        }
        self.leaving.push_back((Instant::now(), number));
    }
}

/// Limits of asynchronous code.
#[derive(Debug)]
pub(crate) struct AsyncLimits {
    /// Time that code has for a query.
    pub(crate) deadline: Duration,
    /// Number of queries that may wait for code.
    pub(crate) waiting_max: usize,
    /// Number of threads; `None` for as many as leave a CPU to the workers, and at least two,
    /// so that code that computes for long keeps no other code waiting.
    pub(crate) threads: Option<NonZero<u16>>,
    /// Niceness of the threads, 0 to 19.
    pub(crate) niceness: i8,
}

impl Default for AsyncLimits {
    fn default() -> Self {
        Self { deadline: DEADLINE, waiting_max: WAITING_MAX, threads: None, niceness: 0 }
    }
}

/// Returns the number of threads, and what each does first.
fn threads(limits: &AsyncLimits) -> (usize, impl Fn() + Send + Sync + 'static) {
    let (cpus, available) = (allowed_cpus().unwrap_or_default(), available_cpus());
    // What threads use of a quota, other threads lack, whichever CPUs they run on.
    let has_quota = available < cpus.len();
    let usual = (available - 1).max(if has_quota { 1 } else { 2 });
    let number = limits.threads.map_or(usual, |it| it.get().into());
    let is_left = limits.threads.is_none() && cpus.len() > 1;
    let used = if is_left { cpus[1..].to_vec() } else { Vec::new() };
    let niceness = limits.niceness;
    let begin = move || {
        let is_used = if is_left { pin_thread(&used) } else { Ok(()) };
        let is_nice = if niceness > 0 { be_nice(niceness) } else { Ok(()) };
        if let Err(error) = is_used.and(is_nice) {
            tracing::warn!(%error, "asynchronous code may keep other threads from a CPU");
        }
    };
    (number, begin)
}

/// The runtime that asynchronous code runs in; ends when it is dropped.
pub(crate) struct Tasks {
    table: Arc<Mutex<AsyncTable>>,
    deadline: Duration,
    /// The runtime of the threads; taken when the code ends.
    runtime: Option<tokio::runtime::Runtime>,
}

impl Drop for Tasks {
    /// Ends code that still runs at its next await, without waiting: this may be asynchronous code
    /// itself.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Called with what the code answers its queries with.
type Start = Box<dyn FnOnce(Vec<RuntimeHandle>) + Send>;

impl Tasks {
    /// Starts a runtime for all code, and for those of `guards` that wait; returns the
    /// configuration of its queue as well, and what takes the queue's handle when the server runs.
    pub(crate) fn start(
        table: AsyncTable,
        guards: Vec<Route<Guard>>,
        limits: &AsyncLimits,
    ) -> io::Result<(Self, RuntimeConfig, Start)> {
        let &AsyncLimits { deadline, waiting_max, .. } = limits;
        let (threads, begin) = threads(limits);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("handlers")
            .on_thread_start(begin)
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
        let table = Arc::new(Mutex::new(table));
        let known = Arc::clone(&table);
        let start = move |handles: Vec<RuntimeHandle>| {
            if let Some(handle_of_server) = handles.into_iter().next() {
                handle.spawn(serve((known, Guards::alone(guards)), handle_of_server, fresh));
            }
        };
        let tasks = Self { table, deadline, runtime: Some(runtime) };
        Ok((tasks, config, Box::new(start)))
    }

    /// Whether the calling thread is one of the runtime's.
    pub(crate) fn is_current(&self) -> bool {
        let own = self.runtime.as_ref().map(|runtime| runtime.handle().id());
        let current = tokio::runtime::Handle::try_current().ok();
        current.is_some_and(|current| Some(current.id()) == own)
    }

    /// Adds code; returns its number.
    pub(crate) fn add(&self, code: AsyncCode) -> u32 {
        lock(&self.table).add(code)
    }

    /// Returns what forgets code of a number when it is called.
    pub(crate) fn remover(&self) -> impl Fn(u32) + Clone + Send + use<> {
        let (table, deadline) = (Arc::clone(&self.table), self.deadline);
        move |number| lock(&table).remove(number, deadline)
    }

    /// Returns what waits for SIGINT or SIGTERM, in whichever runtime.
    ///
    /// # Errors
    /// When the system refuses to deliver one.
    pub(crate) fn signalled(&self) -> io::Result<impl Future<Output = ()> + Send + use<>> {
        let _entered = self.runtime.as_ref().map(tokio::runtime::Runtime::enter);
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        Ok(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        })
    }
}

/// Returns the table, for a moment.
fn lock(table: &Mutex<AsyncTable>) -> MutexGuard<'_, AsyncTable> {
    table.lock().unwrap_or_else(PoisonError::into_inner) // a table is whole after any panic
}

/// Has code answer queries, as they come, until the runtime ends.
async fn serve(
    (table, guards): (Arc<Mutex<AsyncTable>>, Guards),
    handle: RuntimeHandle,
    fresh: Arc<Notify>,
) {
    let RuntimeHandle { runtime, mut answerer } = handle;
    // Bounded by what may wait.
    let (answered, mut answers) = mpsc::unbounded_channel::<(Ticket, Option<Reply>)>();
    let mut batch = Vec::with_capacity(BATCH_MAX);
    let mut ended = Vec::with_capacity(BATCH_MAX);
    let middleware = Arc::new(std::mem::take(&mut lock(&table).middleware));
    loop {
        tokio::select! {
            () = fresh.notified() => {
                let mut queries = Vec::new();
                let more = {
                    let table = lock(&table);
                    runtime.take(BATCH_MAX, |ticket, handler, deferred| {
                        let code = table.known.get(&handler).cloned();
                        // Of code that was taken away when the query was on its way.
                        let is_known = code.is_some() || handler == NO_HANDLER;
                        let query = OwnedQuery::new(deferred).filter(|_| is_known);
                        let history = &deferred.deferral.history;
                        let has_passed = history.has_passed_middleware;
                        let with_code = query.map(|query| {
                            let numbers = match history.is_guarded && !has_passed {
                                true => guards.numbers_of(query.name().as_wire(), query.qtype()),
                                false => Vec::new(), // of no guard, without an allocation
                            };
                            let known = |number: &u32| table.known.get(number).cloned();
                            let guards = numbers.iter().filter_map(known).collect();
                            WithCode { query, code, guards, has_passed }
                        });
                        queries.push((ticket, with_code));
                    })
                };
                let until = Instant::now() + BATCH_TIME_MAX;
                for (ticket, with_code) in queries {
                    let begun = with_code.map(|it| begin(it, &middleware, until));
                    match begun.unwrap_or(Progress::Ended(None)) {
                        // Taken out when all are sent: until then, each may still be late.
                        Progress::Ended(draft) => ended.push((ticket, draft)),
                        Progress::Waits(answering) => {
                            let answered = answered.clone();
                            let pending = PendingReply { ticket, draft: None, answered };
                            tokio::spawn(pending.by(answering));
                        }
                    }
                }
                for (ticket, draft) in ended.drain(..) {
                    answerer.answer(&runtime, ticket, supplied(&draft));
                }
                answerer.send();
                if more {
                    fresh.notify_one();
                }
                give_way().await; // to tasks, also when there always is more
            }
            count = answers.recv_many(&mut batch, BATCH_MAX) => {
                debug_assert!(count > 0, "this task has a sender too");
                for (ticket, draft) in batch.drain(..) {
                    answerer.answer(&runtime, ticket, supplied(&draft));
                }
                answerer.send();
            }
        }
    }
}

/// Lets tasks run that are ready. Tokio's own `yield_now` would have this one wait until its thread
/// has nothing else to do, which code may keep for long; so, another thread can take it over.
async fn give_way() {
    let mut has_waited = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Returns the outcome of a query for the runtime; without a reply, the code has failed.
fn supplied(draft: &Option<Reply>) -> HandlerOutcome<'_> {
    match draft {
        Some(draft) => HandlerOutcome::Reply(draft),
        None => HandlerOutcome::Failed(Reason::HandlerFailed),
    }
}

/// A query, and the code that it passes.
struct WithCode {
    query: OwnedQuery,
    /// The code of its name, if there is any.
    code: Option<Arc<AsyncCode>>,
    /// The middleware for its name, in this order.
    guards: Vec<Arc<AsyncCode>>,
    /// Whether it has passed all middleware before.
    has_passed: bool,
}

/// How far code has come with a query.
enum Progress {
    /// The code has answered, or panicked.
    Ended(Option<Reply>),
    /// The code waits, and continues in a task.
    Waits(Pin<Box<dyn Future<Output = Option<Reply>> + Send>>),
}

/// Has code begin to answer a query, unless that is known to take long, or `until` has passed.
fn begin(with_code: WithCode, middleware: &Arc<Vec<AsyncCode>>, until: Instant) -> Progress {
    // The pace of guards is that of the code behind them, if there is any.
    let code = with_code.code.clone().or_else(|| with_code.guards.last().cloned());
    let mut answering = Box::pin(pass(with_code, Arc::clone(middleware)));
    let pace = Pace { code, middleware: Arc::clone(middleware) };
    let start = Instant::now();
    if start > until || pace.takes_task() {
        return Progress::Waits(Box::pin(async move {
            let mut is_first = true;
            poll_fn(|cx| {
                let start = std::mem::take(&mut is_first).then(Instant::now);
                let polled = answering.as_mut().poll(cx);
                start.inspect(|start| pace.note(start.elapsed()));
                polled
            })
            .await
        }));
    }
    // If it waits, the task that it goes on in polls it anew.
    let mut cx = Context::from_waker(Waker::noop());
    let polled = catch_unwind(AssertUnwindSafe(|| answering.as_mut().poll(&mut cx)));
    pace.note(start.elapsed());
    match polled {
        Ok(Poll::Ready(draft)) => Progress::Ended(draft),
        Ok(Poll::Pending) => Progress::Waits(answering),
        Err(_) => Progress::Ended(None), // what code leaves behind panicked when it was dropped
    }
}

/// The time that code takes to begin with a query.
struct Pace {
    /// The code of the query's name, or else the last guard that the query passes.
    code: Option<Arc<AsyncCode>>,
    middleware: Arc<Vec<AsyncCode>>,
}

impl Pace {
    /// Returns how many queries the code is still to begin in tasks; of middleware where there is
    /// no other.
    fn in_tasks(&self) -> Option<&AtomicU32> {
        self.code.as_deref().or(self.middleware.last()).map(|code| &code.in_tasks)
    }

    /// Whether the query is to be begun in a task.
    fn takes_task(&self) -> bool {
        let Some(left) = self.in_tasks() else { return false };
        let less = |left: u32| left.checked_sub(1);
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// Notes how long the code took to begin.
    fn note(&self, taken: Duration) {
        if taken > BEGIN_MAX {
            self.in_tasks().inspect(|left| left.store(LONG_FOR, Ordering::Relaxed));
        }
    }
}

/// A reply that is handed over when it is dropped, as it also is when its task ends early.
struct PendingReply {
    ticket: Ticket,
    /// The code's reply; `None` as long as it has not answered.
    draft: Option<Reply>,
    answered: mpsc::UnboundedSender<(Ticket, Option<Reply>)>,
}

impl PendingReply {
    /// Waits for the reply.
    async fn by(mut self, answering: impl Future<Output = Option<Reply>>) {
        self.draft = answering.await;
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        let _ = self.answered.send((self.ticket, self.draft.take())); // gone when the runtime ends
    }
}

/// Returns the reply of middleware or of the handler to a query, if there is one; `None` if the
/// code panics.
async fn pass(with_code: WithCode, middleware: Arc<Vec<AsyncCode>>) -> Option<Reply> {
    let notes = with_code.query.notes();
    let reply = pass_all(with_code, middleware, &notes).await?;
    Some(reply.with_query_state(notes.state()))
}

/// Returns the reply as [`pass`] does, without the values that code has left with the query.
async fn pass_all(
    WithCode { query, code, guards, has_passed }: WithCode,
    middleware: Arc<Vec<AsyncCode>>,
    notes: &Notes,
) -> Option<Reply> {
    let mut looks = Reply::default();
    let note = |draft: &mut Reply| draft.saw_client |= notes.take_saw_client();
    let has_passed = has_passed || code.as_ref().is_some_and(|code| code.is_deferred);
    let of_all = middleware.iter().map(|it| (it, query.clone()));
    let of_name = guards.iter().map(|it| (&**it, query.clone().on(&it.pattern)));
    for (code, query) in of_all.chain(of_name).filter(|_| !has_passed) {
        let mut draft = call(code, query, "a middleware").await?;
        note(&mut draft);
        if draft.ending != Ending::PassOn {
            draft.add_looks(&looks);
            return Some(draft);
        }
        looks.add_looks(&draft);
    }
    let Some(code) = code else { return Some(looks) };
    let query = if code.is_deferred { query } else { query.on(&code.pattern) };
    let mut draft = call(&code, query, "the handler").await?;
    note(&mut draft);
    draft.add_looks(&looks);
    Some(draft)
}

/// Returns the reply of code to a query; `None` if the code panics, which is logged.
async fn call(code: &AsyncCode, query: OwnedQuery, what: &str) -> Option<Reply> {
    static BUDGET: LogBudget = LogBudget::new();
    let mut answering = pin!(async { (code.function)(query).await });
    poll_fn(|cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| answering.as_mut().poll(cx)));
        let log = |payload: Box<dyn Any + Send>| {
            let (route, panic) = (code.pattern.as_str(), panic_message(&*payload));
            BUDGET.spend(|left_out| {
                tracing::error!(route, code = what, panic, left_out, "code panicked");
            });
        };
        match polled {
            Ok(polled) => polled.map(Some),
            Err(payload) => {
                log(payload);
                Poll::Ready(None)
            }
        }
    })
    .await
}
