//! A server in a thread of its own, for programs that hold one.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::check::{check_text, tell_all_mistakes};
use crate::control::Control;
use crate::edit::flush::FlushError;
use crate::edit::{Edit, EditError};
use crate::failed_zones::{FailedZone, failed_zones};
use crate::log;
use crate::program::{Code, OwnReply};
use crate::publish::Publishing;
use crate::run::{Options, run};
use crate::serve_error::ServeError;
use crate::signals::Signals;
use zonda_engine::code::{LookupName, Pattern, enclosing_soa};
use zonda_engine::{AnswerBelow, Peer, VersionOrigin};
use zonda_store::Store;
use zonda_wire::{Name, Type};
use zonda_zone::Diff;

/// A running server. Dropping it leaves the server running until the process ends.
pub struct Server {
    control: Arc<Control>,
    /// The thread of the server, until its end was waited for.
    thread: Mutex<Option<JoinHandle<Result<(), ServeError>>>>,
}

impl Server {
    /// Starts a server, which then answers; signals are left to the process.
    ///
    /// # Errors
    /// When it cannot start.
    pub fn start(mut options: Options) -> Result<Self, ServeError> {
        let (ready, started) = mpsc::sync_channel(1);
        let ended = options.program.ended.take();
        let thread = std::thread::Builder::new().name("zonda".to_owned()).spawn(move || {
            let mut has_started = false;
            let result = run(options, Signals::Ignored, |control| {
                has_started = true;
                let _ = ready.send(Arc::clone(control)); // gone only if the caller panicked
            });
            log::flush_log(); // the program may end the process now
            if let Some(ended) = ended.filter(|_| has_started) {
                ended();
            }
            drop(ready); // the caller waits for this where nothing has started
            result
        });
        let thread = thread.map_err(ServeError::Start)?;
        match started.recv() {
            Ok(control) => Ok(Self { control, thread: Mutex::new(Some(thread)) }),
            Err(_) => match thread.join() {
                Ok(Err(error)) => Err(error),
                Ok(Ok(())) | Err(_) => Err(ServeError::Worker("zonda".to_owned())),
            },
        }
    }

    /// The addresses that are answered on: in the order of the configuration at the start, and
    /// later by the places of listeners, which stay in a reload.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.control.addresses()
    }

    /// Answers a query in wire form as if a client at `address`, or one on this machine, had asked
    /// over TCP.
    #[must_use]
    pub fn query(&self, query: &[u8], address: Option<SocketAddr>) -> OwnReply {
        self.control.own_queries.ask(query, address)
    }

    /// Answers a query in wire form as if a client had asked over TCP and no runtime had code for
    /// it: for the code of runtimes that wants to see what would become of the query. It is counted
    /// and logged when the code has answered it, and not here. The runtime may
    /// [keep](zonda_runtime::Runtime::keep) the answer with the query, to send it as it is.
    #[must_use]
    pub fn query_below(&self, query: &[u8], client: Peer) -> OwnReply<AnswerBelow> {
        self.control.own_queries.ask_below(query, client)
    }

    /// Puts other code into force, from the next batch of queries on. The runtimes stay.
    pub fn set_code(&self, code: Code) {
        // The log has why it fails, and the watchdog.
        let _ = self.publish_code(code).wait();
    }

    /// Begins to answer queries with other code, behind what was begun before; returns what is
    /// waited for.
    pub fn publish_code(&self, code: Code) -> Publishing {
        self.control.publisher().publish_code(code)
    }

    /// Whether the calling thread is answering a query of the server's just now: it is code in a
    /// worker that asks.
    #[must_use]
    pub fn is_calling(&self) -> bool {
        self.control.long_calls.is_current()
    }

    /// Returns the numbers of a runtime's guards that a query for a name, in wire form, and a type
    /// passes, in this order.
    #[must_use]
    pub fn guard_numbers(&self, name: &[u8], qtype: Type) -> Vec<u32> {
        let snapshot = self.control.snapshot();
        let name = LookupName::new(name, snapshot.zones.seed());
        let handlers = snapshot.handlers.as_ref();
        handlers.map_or_else(Vec::new, |it| it.guards.numbers_for(&name, qtype))
    }

    /// Returns the number of a runtime's handler that is called for a query which the handler of a
    /// pattern has passed on; of the first one, without a pattern. The name is in wire form. None
    /// if there is no further one.
    #[must_use]
    pub fn next_handler(
        &self,
        (name, qtype): (&[u8], Type),
        passed: Option<&Pattern>,
        runtime: u16,
    ) -> Option<u32> {
        let snapshot = self.control.snapshot();
        let name = LookupName::new(name, snapshot.zones.seed());
        snapshot.handlers.as_ref()?.next_number((&name, qtype), passed, runtime)
    }

    /// Returns the SOA record of a negative reply of code, which resolvers are to keep for some
    /// seconds: the apex of the zone that holds the name, and the data of that zone's record with
    /// the seconds in place of its minimum (rfc2308#5). None if this server has no data of the
    /// zone, or not at all of its listeners. The name is in wire form.
    #[must_use]
    pub fn negative_soa(&self, name: &[u8], ttl_secs: u32) -> Option<(Name, Vec<u8>)> {
        let snapshot = self.control.snapshot();
        let name = LookupName::new(name, snapshot.zones.seed());
        let (mut rdata, mut found) = (Vec::new(), None);
        for (_, snapshot) in snapshot.with_listeners() {
            let entry = enclosing_soa(snapshot, &name, ttl_secs, &mut rdata)?;
            let apex = &*found.get_or_insert_with(|| entry.apex.clone());
            if *apex != entry.apex {
                return None; // which of them the client may know, only its listener tells
            }
        }
        found.map(|apex| (apex, rdata))
    }

    /// Changes a zone; returns what differs once that is published. Blocks.
    ///
    /// # Errors
    /// When the zone cannot be changed so; it is as it was then.
    pub fn edit(&self, edit: Edit) -> Result<Diff, EditError> {
        self.control.edit(edit)
    }

    /// Writes the changes of a zone that its file lacks into the file; the serial that the file has
    /// now, or nothing if it lacked no change. Blocks.
    ///
    /// # Errors
    /// When the file was not written.
    pub fn flush(&self, zone: &Name) -> Result<Option<u32>, FlushError> {
        self.control.flush(&zone.to_lowercase())
    }

    /// What the file of a zone lacks. Blocks.
    ///
    /// # Errors
    /// When the server has no such zone, or its journal cannot be read.
    pub fn unflushed_diff(&self, zone: &Name) -> Result<Diff, FlushError> {
        self.control.unflushed_diff(&zone.to_lowercase())
    }

    /// Reads the configuration and all changed zones anew, and those that could not be loaded
    /// before. Returns those that cannot be loaded now; the former version of each is served on, if
    /// there is one, and all else is in force.
    ///
    /// # Errors
    /// What is wrong with the configuration; the former one stays in force.
    pub fn reload(&self) -> Result<Vec<FailedZone>, String> {
        self.control.reload()?;
        let mut failed = self.failed_zones();
        if !failed.is_empty() {
            let config = Arc::clone(&self.control.state().config);
            tell_all_mistakes(&mut failed, &config, &self.control.texts);
        }
        Ok(failed)
    }

    /// The zones that could not be loaded when that was last tried, in the order of their names,
    /// and files and directories of zones that could not be read. Zones that follow stores or
    /// clusters are not among them.
    #[must_use]
    pub fn failed_zones(&self) -> Vec<FailedZone> {
        let state = self.control.state();
        let mut failed = failed_zones(state.zone_set());
        let is_of_store = |name: &Name| {
            let zone = state.zone_set().zone(name);
            zone.is_some_and(|zone| zone.unit.origin() == VersionOrigin::Store)
        };
        failed.retain(|zone| !zone.name.as_ref().is_some_and(is_of_store));
        failed
    }

    /// Serves a zone, whose name is in lower case, from the text of a master file, in place of the
    /// former one if there is one. Blocks until it is served.
    ///
    /// # Errors
    /// All that keeps the text from being served, or what the zone is served from instead; nothing
    /// is changed then.
    pub fn set_zone_text(&self, name: &Name, text: &str) -> Result<(), String> {
        self.refuse_store(name)?;
        check_text(name, text)?;
        self.control.set_text(name, text)
    }

    /// Takes a zone, whose name is in lower case, out of service that is given as text; returns
    /// whether there was one. Blocks.
    ///
    /// # Errors
    /// When the zone follows a store.
    pub fn remove_zone_text(&self, name: &Name) -> Result<bool, String> {
        self.refuse_store(name)?;
        self.control.remove_of_program(name)
    }

    /// Serves a zone, whose name is in lower case, from a store of the program, in place of a
    /// former store. Blocks until the store is read, for at most three seconds. Until it has
    /// records of a zone, queries are answered SERVFAIL, or with the records of the former store.
    ///
    /// # Errors
    /// What the zone is served from instead, or that its thread cannot start.
    pub fn set_zone_store(&self, name: &Name, store: Arc<dyn Store>) -> Result<(), String> {
        self.control.set_store(name, store)
    }

    /// Takes a zone, whose name is in lower case, out of service that is given as text or follows a
    /// store of the program; returns whether there was one. Blocks.
    ///
    /// # Errors
    /// When the server fails.
    pub fn remove_zone(&self, name: &Name) -> Result<bool, String> {
        self.control.remove_of_program(name)
    }

    /// What a zone, whose name is in lower case, is served from, if that is not a file.
    pub(crate) fn fed_source(&self, name: &Name) -> Option<String> {
        let state = self.control.state();
        let zone = state.zone_set.zone(name).filter(|zone| zone.unit.is_of_feed())?;
        Some(zone.unit.to_string())
    }

    /// Refuses a zone that follows a store.
    fn refuse_store(&self, name: &Name) -> Result<(), String> {
        match self.control.stores.state(name) {
            Some(_) => Err(format!("zone {name} follows a store; change its records there")),
            None => Ok(()),
        }
    }

    /// Whether a zone, whose name is in lower case, follows a store.
    #[must_use]
    pub fn follows_store(&self, name: &Name) -> bool {
        self.control.stores.state(name).is_some()
    }

    /// Follows no store any more: their zones stay as they are. A store that does not answer within
    /// a second is not waited for.
    pub fn stop_stores(&self) {
        self.control.stores.stop();
    }

    /// Whether the server has stopped, because it was asked to or had to.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        // Locked while its end is waited for.
        let thread = self.thread.try_lock();
        thread.is_ok_and(|thread| thread.as_ref().is_none_or(JoinHandle::is_finished))
    }

    /// Asks the server to stop, which [`wait`](Self::wait) waits for.
    pub fn request_stop(&self) {
        self.control.stop();
    }

    /// Waits until the server has stopped.
    ///
    /// # Errors
    /// When it had to.
    pub fn wait(self) -> Result<(), ServeError> {
        self.join()
    }

    /// Waits as [`wait`](Self::wait) does. Only the first of several calls is told why the server
    /// had to stop.
    ///
    /// # Errors
    /// When it had to.
    pub fn join(&self) -> Result<(), ServeError> {
        // Locked until the thread has ended, so that further calls wait, too.
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(thread) = thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|_| Err(ServeError::Worker("zonda".to_owned())))
    }

    /// Answers what was received, and stops.
    ///
    /// # Errors
    /// When it had stopped before, because it had to.
    pub fn stop(self) -> Result<(), ServeError> {
        self.request_stop();
        self.wait()
    }
}
