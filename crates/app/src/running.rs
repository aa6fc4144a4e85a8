//! A running app: queries to it, and changes of its code and its zones.

use crate::asynchronous::{AsyncCode, Tasks};
use crate::client_address::ClientAddress;
use crate::error::Error;
use crate::from_query::SharedStates;
use crate::handler::{AsyncHandler, Handler};
use crate::into_reply::IntoReply;
use crate::routes::{AppRoute, LiveRoutes, check, parse};
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use tokio::sync::{oneshot, watch};
use zonda_server::{Code, FailedZone, OwnReply, ProgramConfig, ServeError as ServerError, Server};
use zonda_wire::{Message, Name, Type};

/// A running app. Dropping it stops the server in the background, as [`stop`](Self::stop) does;
/// [`detach`](Self::detach) leaves the server running.
///
/// Parts of a program share it in an `Arc`, and each may stop it: handlers, too, which keep it from
/// being dropped until then. An app that has stopped has no addresses and sends no replies, and
/// what changes it is [`Error::Stopped`].
#[must_use = "an app stops when it is dropped"]
pub struct Running {
    /// What answers; nothing once the app stops or is detached.
    parts: Mutex<Option<Arc<Parts>>>,
    /// Whether the server has ended, for its own reasons or the program's.
    has_ended: watch::Receiver<bool>,
}

/// The parts of a running app, which threads share that do what blocks.
struct Parts {
    server: Arc<Server>,
    /// Code and the names that it answers for.
    routes: LiveRoutes,
    /// Runs asynchronous code.
    tasks: Tasks,
    /// What the server is configured with.
    config: ProgramConfig,
    /// Values that handlers share.
    states: SharedStates,
    /// Why the server had to end, once that was asked for.
    end: OnceLock<Option<ServerError>>,
}

// What is behind a trait object or a lock would make the compiler list the server's parts where a
// program catches panics. Methods change whole values, and take over locks that a panic has left.
impl UnwindSafe for Running {}
impl RefUnwindSafe for Running {}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("addresses", &self.addresses()).finish_non_exhaustive()
    }
}

impl Running {
    /// Makes the app of a server that has started with this code.
    pub(crate) fn new(
        server: Server,
        code: Code,
        tasks: Tasks,
        (config, states): (ProgramConfig, SharedStates),
        has_ended: watch::Receiver<bool>,
    ) -> Self {
        let server = Arc::new(server);
        let routes = LiveRoutes::new(code, &server);
        let end = OnceLock::new();
        let parts = Arc::new(Parts { server, routes, tasks, config, states, end });
        Self { parts: Mutex::new(Some(parts)), has_ended }
    }

    /// Locks the parts, for a moment.
    fn lock(&self) -> MutexGuard<'_, Option<Arc<Parts>>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner) // they are there or not
    }

    /// Returns the parts of the app.
    ///
    /// # Errors
    /// When it has stopped.
    fn parts(&self) -> Result<Arc<Parts>, Error> {
        self.lock().clone().ok_or(Error::Stopped)
    }

    /// Returns the addresses that the app listens on, in the order in which they were given.
    /// A reload puts addresses that are new in the configuration file behind the former addresses,
    /// or at the places of addresses that are closed.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.parts().map_or_else(|_| Vec::new(), |parts| parts.server.addresses())
    }

    /// Sends a query for a name and type without sockets, as a client on this machine would over
    /// TCP, and returns the reply.
    ///
    /// # Errors
    /// When the name is not valid, or no reply is sent.
    pub async fn query(&self, name: &str, qtype: Type) -> Result<Message, Error> {
        self.query_from(Ipv4Addr::LOCALHOST, name, qtype).await
    }

    /// Sends a query as [`query`](Self::query) does, as a client at an address would: an
    /// [`IpAddr`](std::net::IpAddr), a [`SocketAddr`], or the text of one.
    ///
    /// # Errors
    /// Those of [`query`](Self::query), and a text that is not an address.
    pub async fn query_from(
        &self,
        client: impl ClientAddress,
        name: &str,
        qtype: Type,
    ) -> Result<Message, Error> {
        /// Recursion is desired; one question, and an OPT record behind it.
        const HEADER: &[u8] = b"\0\0\x01\0\0\x01\0\0\0\0\0\x01";
        /// EDNS with room for 1232 octets.
        const OPT: &[u8] = b"\0\0\x29\x04\xd0\0\0\0\0\0\0";
        let address = client.to_socket_addr()?;
        let wrong = |error| Error::QueryName(name.to_owned(), error);
        let wire: Name = name.parse().map_err(wrong)?;
        let question = [wire.as_wire(), &qtype.0.to_be_bytes(), &[0, 1]].concat();
        let query = [HEADER, &question, OPT].concat();
        let reply = self.query_message_from(&query, Some(address)).await.ok_or(Error::Silence)?;
        Message::parse(&reply).map_err(|_| Error::Silence) // the core writes messages
    }

    /// Answers a query in wire form without sockets, as if a client on this machine had sent it
    /// over TCP; `None` if no reply is sent. Changes of handlers that were made before are in force
    /// then.
    pub async fn query_message(&self, query: &[u8]) -> Option<Vec<u8>> {
        self.query_message_from(query, None).await
    }

    /// Answers as [`query_message`](Self::query_message) does, as if a client at `address` had sent
    /// the query.
    pub async fn query_message_from(
        &self,
        query: &[u8],
        address: Option<SocketAddr>,
    ) -> Option<Vec<u8>> {
        let parts = self.parts().ok()?;
        parts.routes.settled().await;
        match parts.server.query(query, address) {
            OwnReply::Now(reply) => reply,
            OwnReply::Later(mut reply) => reply.recv().await.filter(|reply| !reply.is_empty()),
        }
    }

    /// Former name of [`query`](Self::query).
    ///
    /// # Errors
    /// Those of [`query`](Self::query).
    #[deprecated(note = "it is called `query`")]
    pub async fn ask(&self, name: &str, qtype: Type) -> Result<Message, Error> {
        self.query(name, qtype).await
    }

    /// Former name of [`query_from`](Self::query_from).
    ///
    /// # Errors
    /// Those of [`query`](Self::query).
    #[deprecated(note = "it is called `query_from`")]
    pub async fn ask_from(
        &self,
        address: SocketAddr,
        name: &str,
        qtype: Type,
    ) -> Result<Message, Error> {
        self.query_from(address, name, qtype).await
    }

    /// Answers names with a function, as [`App::handle`](crate::App::handle) does, in place of one
    /// for the same pattern. Queries under way are answered by the function that they had reached.
    ///
    /// In an app of up to 256 handlers, the change is in force when the method returns; else a
    /// thread puts it into force within some milliseconds, together with other changes.
    /// [`settled`](Self::settled) waits for that.
    ///
    /// # Errors
    /// When the pattern is not valid, or the function takes what the app or the pattern lacks; or
    /// when the change could not be put into force.
    pub fn handle<M: 'static, H>(&self, pattern: &str, handler: H) -> Result<(), Error>
    where
        H: Handler<M>,
        H::Output: IntoReply,
    {
        let parts = self.parts()?;
        let route = AppRoute::in_workers(parse(pattern)?, handler, parts.states.clone());
        route.check(parts.states.get())?;
        parts.routes.put(route.route, &parts.tasks)
    }

    /// Answers names with a function that may wait, as
    /// [`App::handle_async`](crate::App::handle_async) does, in place of one for the same pattern;
    /// in force as with [`handle`](Self::handle).
    ///
    /// # Errors
    /// Those of [`handle`](Self::handle).
    pub fn handle_async<M: 'static, H>(&self, pattern: &str, handler: H) -> Result<(), Error>
    where
        H: AsyncHandler<M>,
        H::Future: Send + 'static,
        H::Output: IntoReply,
    {
        let (parts, pattern) = (self.parts()?, parse(pattern)?);
        check(&pattern, H::check, parts.states.get())?;
        let code = AsyncCode::new(pattern.clone(), handler, parts.states.clone());
        let route = AppRoute::in_runtime(pattern, parts.tasks.add(code), H::check);
        parts.routes.put(route.route, &parts.tasks)
    }

    /// Removes the function that answers the names of a pattern; returns whether there was one. In
    /// force as with [`handle`](Self::handle).
    ///
    /// # Errors
    /// When the pattern is not valid, or the change could not be put into force.
    pub fn remove_handler(&self, pattern: &str) -> Result<bool, Error> {
        let parts = self.parts()?;
        parts.routes.remove(&parse(pattern)?, &parts.tasks)
    }

    /// Waits until all changes of handlers that were made before are in force.
    pub async fn settled(&self) {
        if let Ok(parts) = self.parts() {
            parts.routes.settled().await;
        }
    }

    /// Loads the configuration, zones that have changed, and zones that could not be loaded before.
    /// Done to the end if the future is dropped.
    ///
    /// # Errors
    /// What is wrong with the configuration: then the former one stays in force. Or
    /// [`Error::Zones`] with all zones that cannot be loaded, also those of the configuration file:
    /// the former version of each is served on, if there is one, and all else is in force.
    pub async fn reload(&self) -> Result<(), Error> {
        self.blocking(|server, _| reload(server)).await?
    }

    /// Loads as [`reload`](Self::reload) does, and blocks.
    ///
    /// # Errors
    /// Those of [`reload`](Self::reload).
    pub fn reload_blocking(&self) -> Result<(), Error> {
        reload(&self.parts()?.server)
    }

    /// Returns the zones that could not be loaded when that was last tried, in the order of their
    /// names, and files and directories of zones that could not be read. Zones that follow stores
    /// or clusters are not among them: see the log and the metrics for these.
    #[must_use]
    pub fn failed_zones(&self) -> Vec<FailedZone> {
        self.parts().map_or_else(|_| Vec::new(), |parts| parts.server.failed_zones())
    }

    /// Waits until the server has stopped: because a failure made it stop, or an administrator
    /// ([`App::config`](crate::App::config)) or another part of the program asked for that.
    ///
    /// # Errors
    /// The failure that has stopped the server.
    pub async fn closed(&self) -> Result<(), Error> {
        let mut has_ended = self.has_ended.clone();
        let _ = has_ended.wait_for(|ended| *ended).await; // without a sender, it has ended too
        self.parts().map_or(Ok(()), |parts| parts.wait()) // a stop tells its caller of a failure
    }

    /// Stops the server: it receives nothing more, and answers what it has received. Waits for
    /// asynchronous code that still answers, for at most 10 seconds; queries that it has not
    /// answered by then are answered SERVFAIL. If the future is dropped, the server stops all the
    /// same. Of several calls, the first one waits.
    ///
    /// Called by a handler or middleware of the app, for which a query waits, the method returns at
    /// once, and the app stops in a thread of its own.
    ///
    /// # Errors
    /// The failure that had stopped the server before.
    pub fn stop(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let taken = self.taken();
        async move {
            let Some(parts) = taken.lock().take() else { return Ok(()) };
            if parts.is_calling() {
                parts.stop_in_background();
                return Ok(());
            }
            in_thread("stop", move || parts.stop()).await.map_err(Error::Thread)?
        }
    }

    /// Stops the server as [`stop`](Self::stop) does, and blocks, unless a handler or middleware of
    /// the app calls it.
    ///
    /// # Errors
    /// Those of [`stop`](Self::stop).
    pub fn stop_blocking(&self) -> Result<(), Error> {
        let Some(parts) = self.lock().take() else { return Ok(()) };
        if parts.is_calling() {
            parts.stop_in_background();
            return Ok(());
        }
        parts.stop()
    }

    /// Takes what answers; whatever becomes of that, it stops.
    fn taken(&self) -> Self {
        Self { parts: Mutex::new(self.lock().take()), has_ended: self.has_ended.clone() }
    }

    /// Leaves the server running until the process ends.
    pub fn detach(self) {
        std::mem::forget(self.lock().take()); // its threads and asynchronous code go on
    }

    /// Returns what waits for SIGINT or SIGTERM, in whichever runtime.
    ///
    /// # Errors
    /// When the system refuses to deliver one.
    pub(crate) fn signalled(&self) -> Result<impl Future<Output = ()> + Send + use<>, Error> {
        self.parts()?.tasks.signalled().map_err(Error::Thread)
    }

    /// Serves until `shutdown` completes, or the server has to stop; then stops.
    ///
    /// # Errors
    /// The failure that has stopped the server.
    pub(crate) async fn serve_until(self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        tokio::select! {
            () = shutdown => {}
            _ = self.closed() => {} // `stop` returns the failure, too
        }
        self.stop().await
    }

    /// Returns the server and what it is configured with, for changes.
    ///
    /// # Errors
    /// When the app has stopped.
    pub(crate) fn to_change(&self) -> Result<(Arc<Server>, ProgramConfig), Error> {
        self.parts().map(|parts| (Arc::clone(&parts.server), parts.config.clone()))
    }

    /// Does work that blocks, in a thread of its own.
    ///
    /// # Errors
    /// When there is no thread for it, or the app has stopped.
    pub(crate) async fn blocking<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Server, &ProgramConfig) -> R + Send + 'static,
    ) -> Result<R, Error> {
        let (server, config) = self.to_change()?;
        in_thread("change", move || work(&server, &config)).await.map_err(Error::Thread)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let parts = self.lock().take();
        if let Some(parts) = parts {
            parts.stop_in_background();
        }
    }
}

impl Parts {
    /// Whether this thread is one that a query of the app waits for: it runs asynchronous code, or
    /// is calling code in a worker.
    fn is_calling(&self) -> bool {
        self.tasks.is_current() || self.server.is_calling()
    }

    /// Waits until the server has ended.
    ///
    /// # Errors
    /// Why it had to.
    fn wait(&self) -> Result<(), Error> {
        let end = self.end.get_or_init(|| self.server.join().err());
        end.as_ref().map_or(Ok(()), |error| Err(Error::of_server(error)))
    }

    /// Stops the server, and waits until it has stopped.
    ///
    /// # Errors
    /// Why it had stopped before.
    fn stop(&self) -> Result<(), Error> {
        self.server.request_stop();
        self.wait()
    }

    /// Stops the server in a thread of its own, which keeps its parts until then.
    fn stop_in_background(self: Arc<Self>) {
        self.server.request_stop(); // also where there is no thread left
        let stop = move || {
            if let Err(error) = self.stop() {
                tracing::error!(%error, "the app had stopped before it was asked to");
            }
        };
        let _ = thread::Builder::new().name("stop".into()).spawn(stop);
    }
}

/// Loads what has changed.
///
/// # Errors
/// Those of [`Running::reload`].
fn reload(server: &Server) -> Result<(), Error> {
    let failed = server.reload().map_err(Error::Config)?;
    if failed.is_empty() { Ok(()) } else { Err(Error::Zones(failed)) }
}

/// Does work that blocks in a thread of its own, whichever runtime the caller has; it is done to
/// the end if the future is dropped. A panic of the work continues in the caller.
///
/// # Errors
/// When there is no thread for it.
pub(crate) async fn in_thread<R: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> R + Send + 'static,
) -> io::Result<R> {
    let (sender, result) = oneshot::channel();
    let work = move || {
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work))); // dropped if it is not awaited
    };
    thread::Builder::new().name(name.to_owned()).spawn(work)?;
    match result.await {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_) => Err(io::Error::other("the thread has ended")), // it sends whatever happens
    }
}
