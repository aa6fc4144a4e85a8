//! A running app: queries to it, and changes of its code and its zones.

use crate::app::{in_runtime, in_workers, parse};
use crate::asynchronous::{AsyncCode, Tasks};
use crate::error::Error;
use crate::handler::{AsyncAnswer, HandlerResult};
use crate::owned::OwnedQuery;
use std::fmt;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, Mutex, PoisonError};
use zonda_engine::code::{Handler, Query, Reply, Route};
use zonda_server::{Code, FailedZone, OwnReply, Server};
use zonda_wire::{Message, Name, Type};

/// A running app. Dropping it leaves the server running until the process ends.
pub struct Running {
    pub(crate) server: Server,
    /// Code and the names that it answers for.
    pub(crate) code: Mutex<Code>,
    /// Runs asynchronous code.
    pub(crate) tasks: Tasks,
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
    /// Returns the addresses that the app listens on, in the order in which they were given.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.server.addresses()
    }

    /// Sends a query for a name and type without sockets, as a client on this machine would over
    /// TCP, and returns the reply.
    ///
    /// # Errors
    /// When the name is not valid, or no reply is sent.
    pub async fn query(&self, name: &str, qtype: Type) -> Result<Message, Error> {
        self.query_from((Ipv4Addr::LOCALHOST, 0).into(), name, qtype).await
    }

    /// Sends a query as [`query`](Self::query) does, as a client at `address` would.
    ///
    /// # Errors
    /// Those of [`query`](Self::query).
    pub async fn query_from(
        &self,
        address: SocketAddr,
        name: &str,
        qtype: Type,
    ) -> Result<Message, Error> {
        /// Recursion is desired; one question, and an OPT record behind it.
        const HEADER: &[u8] = b"\0\0\x01\0\0\x01\0\0\0\0\0\x01";
        /// EDNS with room for 1232 octets.
        const OPT: &[u8] = b"\0\0\x29\x04\xd0\0\0\0\0\0\0";
        let wrong = |error| Error::QueryName(name.to_owned(), error);
        let wire: Name = name.parse().map_err(wrong)?;
        let question = [wire.as_wire(), &qtype.0.to_be_bytes(), &[0, 1]].concat();
        let query = [HEADER, &question, OPT].concat();
        let reply = self.query_message_from(&query, Some(address)).await.ok_or(Error::Silence)?;
        Message::parse(&reply).map_err(|_| Error::Silence) // the core writes messages
    }

    /// Answers a query in wire form without sockets, as if a client on this machine had sent it
    /// over TCP; `None` if no reply is sent.
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
        match self.server.query(query, address) {
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

    /// Answers names with a function, as [`App::handle`](crate::App::handle) does, from now on and
    /// in place of one for the same pattern. Queries under way are answered by the function that
    /// they had reached.
    ///
    /// # Errors
    /// When the pattern is not valid.
    pub fn handle<E: HandlerResult>(
        &self,
        pattern: &str,
        function: impl Fn(&Query<'_>, &mut Reply) -> E + Send + Sync + 'static,
    ) -> Result<(), Error> {
        self.replace(in_workers(parse(pattern)?, function));
        Ok(())
    }

    /// Answers names with a function that may wait, as
    /// [`App::handle_async`](crate::App::handle_async) does, from now on and in place of one for
    /// the same pattern.
    ///
    /// # Errors
    /// When the pattern is not valid.
    pub fn handle_async<F, A>(
        &self,
        pattern: &str,
        function: impl Fn(OwnedQuery) -> F + Send + Sync + 'static,
    ) -> Result<(), Error>
    where
        F: Future<Output = A> + Send + 'static,
        A: AsyncAnswer + 'static,
    {
        let pattern = parse(pattern)?;
        let number = self.tasks.add(AsyncCode::new(pattern.clone(), function));
        self.replace(in_runtime(pattern, number));
        Ok(())
    }

    /// Removes the function that answers the names of a pattern; returns whether there was one.
    ///
    /// # Errors
    /// When the pattern is not valid.
    pub fn remove_handler(&self, pattern: &str) -> Result<bool, Error> {
        let pattern = parse(pattern)?;
        let mut code = self.code.lock().unwrap_or_else(PoisonError::into_inner);
        let before = code.routes.len();
        code.routes.retain(|route| route.pattern != pattern);
        let was_there = code.routes.len() < before;
        if was_there {
            self.put_into_force(&code);
        }
        Ok(was_there)
    }

    /// Adds a route in place of that for the same pattern.
    fn replace(&self, route: Route<Handler>) {
        let mut code = self.code.lock().unwrap_or_else(PoisonError::into_inner);
        code.routes.retain(|other| other.pattern != route.pattern);
        code.routes.push(route);
        self.put_into_force(&code);
    }

    /// Gives code to the server, and removes asynchronous code that no route leads to.
    fn put_into_force(&self, code: &Code) {
        self.server.set_code(code.clone());
        self.tasks.keep(|number| {
            code.routes.iter().any(|route| match route.handler {
                Handler::Elsewhere(elsewhere) => elsewhere.handler == number,
                Handler::Here(_) => false,
            })
        });
    }

    /// Serves a zone from other text, or from text for the first time. Blocks until it is served.
    ///
    /// # Errors
    /// When the name is not valid, or that of a zone that is served from a file or a store, or the
    /// text is wrong: then nothing is changed, and the former version stays in service.
    pub fn set_zone_text(&self, name: &str, text: impl Into<Arc<str>>) -> Result<(), Error> {
        let (known, text) = (self.text_name(name)?, text.into());
        self.server.set_zone_text(&known, &text).map_err(Error::ZoneText)
    }

    /// Takes a zone that is given as text out of service; returns whether there was one. Blocks as
    /// [`set_zone_text`](Self::set_zone_text).
    ///
    /// # Errors
    /// When the name is not valid, or that of a zone that follows a store.
    pub fn remove_zone_text(&self, name: &str) -> Result<bool, Error> {
        self.server.remove_zone_text(&self.text_name(name)?).map_err(Error::ZoneText)
    }

    /// Returns the name of a zone that may be given as text.
    fn text_name(&self, name: &str) -> Result<Name, Error> {
        let wrong = |error| Error::Name(name.to_owned(), error);
        let known = name.parse::<Name>().map_err(wrong)?.to_lowercase();
        match self.server.follows_store(&known) {
            true => Err(Error::ZoneText(format!(
                "zone {name}: its content comes from a store; change it there"
            ))),
            false => Ok(known),
        }
    }

    /// Loads the configuration, zones that have changed, and zones that could not be loaded before.
    ///
    /// # Errors
    /// What is wrong with the configuration: then the former one stays in force. Or
    /// [`Error::Zones`] with all zones that cannot be loaded, also those of the configuration file:
    /// the former version of each is served on, if there is one, and all else is in force.
    pub fn reload(&self) -> Result<(), Error> {
        let failed = self.server.reload().map_err(Error::Config)?;
        if failed.is_empty() { Ok(()) } else { Err(Error::Zones(failed)) }
    }

    /// Returns the zones that could not be loaded when that was last tried, in the order of their
    /// names, and files and directories of zones that could not be read. Zones that follow stores
    /// are not among them: see the log and the metrics for these.
    #[must_use]
    pub fn failed_zones(&self) -> Vec<FailedZone> {
        self.server.failed_zones()
    }

    /// Stops the server: it receives nothing more, and answers what it has received. Waits for
    /// asynchronous code that still answers, for at most 10 seconds; queries that it has not
    /// answered by then are answered SERVFAIL.
    ///
    /// Called by asynchronous code of the app, for which a query waits, the method returns at once,
    /// and the app stops in a thread of its own. Functions that run in the workers must not call
    /// it.
    ///
    /// # Errors
    /// The failure that had stopped the server before.
    pub fn stop(self) -> Result<(), Error> {
        if !self.tasks.is_current() {
            return self.stop_and_wait();
        }
        let stop = || {
            if let Err(error) = self.stop_and_wait() {
                tracing::error!(%error, "the app had stopped before it was asked to");
            }
        };
        let thread = std::thread::Builder::new().name("stop".into()).spawn(stop);
        thread.map(drop).map_err(Error::Thread)
    }

    /// Stops the server, and waits until it has stopped.
    fn stop_and_wait(self) -> Result<(), Error> {
        self.server.stop().map_err(Error::of_server)
    }
}
