//! The listeners that run: their sockets, UDP workers and TCP tasks. They come and go at reloads.
//!
//! A listener has a place, its number in the configuration in force, which its queries carry.
//!
//! ```text
//! reload ─► load zones ─► bind new ones ─► close those gone ─► publish ─► start new ones
//! ```
//!
//! What could fail comes first, so that a reload that fails changes nothing, and what takes long
//! comes before sockets are bound: queries that reach a new one meanwhile wait in it. What a
//! listener has received that is closed is answered from the configuration that it was part of,
//! before another one is published. Its sockets receive no more from then on, so that no query is
//! lost to another listener that has the address, or all addresses: but for those that another
//! process may have, too.
//!
//! Deliberately absent: how sockets are bound (`listen`), which listener has which place
//! (`zonda_config`), and other numbers of workers for a listener that goes on: those of sockets
//! that another process may have, too, go on receiving, and a datagram that comes between the last
//! look at such a socket and its end would be lost.
//!
//! # Invariants
//! - No count ever falls: those of a worker that has ended go into a sum, and a new worker goes on
//!   counting in the engine's counters of one that has ended.
//! - A place is not given to another address while queries that came to the former may wait.
//! - Nothing here keeps a socket open of a listener that is closed, but one that a supervisor keeps
//!   open anyway: its workers and the queries that wait do.

mod meter;
mod place;
#[cfg(test)]
mod tests;

use crate::engine_counters::EngineCounters;
use crate::listen::{InheritedSockets, ListenError, Sockets, listen_more, overlaps};
use crate::shared_ports::SharedPorts;
use crate::threads::{ListenerStarter, TcpTask};
use meter::Meter;
pub use meter::UdpCounts;
use place::{CountedWorker, FormerListener, Place, RunningListener};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};
use zonda_config::{Config, Listener};
use zonda_engine::counters::Counters;
use zonda_transport::tcp;
use zonda_transport::udp::{UdpCounters, UdpWorker, stop_workers};

/// The least time for which a place stays unused after its listener was closed: longer than
/// upstreams are waited for, also along a chain of aliases.
const REST_MIN: Duration = Duration::from_secs(3600);
/// How long workers of a listener that is closed are waited for.
const STOP_MAX: Duration = Duration::from_secs(5);
/// How long workers are waited for where a new socket gets queries already that were answered
/// before: to a single address beside a wildcard, say. A worker that does not run the user's code
/// stops far sooner.
const SHARED_STOP_MAX: Duration = Duration::from_millis(100);
/// How long queries that wait for code or other servers, and connections, are waited for before the
/// configuration is published that lacks their listener: new listeners are not answered on
/// meanwhile. Nearly all upstreams answer in that time; queries that wait longer are refused.
const DRAIN_MAX: Duration = Duration::from_secs(1);
/// How long an address is waited for whose listener was closed before: replies that are sent later
/// keep its sockets.
const REBIND_MAX: Duration = Duration::from_secs(2);
/// How often it is looked meanwhile.
const LOOK: Duration = Duration::from_millis(5);

/// Why no address comes or goes while a successor has the sockets, too, and may take over.
pub const OFFERED: &str = "a successor is taking over the sockets, and reads the configuration by \
                           itself: reload once it has, or has failed";

/// The places, and what counts.
#[derive(Default)]
struct State {
    places: Vec<Place>,
    /// Counters of all workers that have not ended.
    meters: Vec<Meter>,
    /// What workers have counted that have ended.
    ended: UdpCounts,
    /// Counters of engines of workers that have ended.
    unused: Vec<Arc<Counters>>,
    /// The number of workers so far, by which they are named.
    started: usize,
    /// The number of reloads and failed starts whose workers are being stopped.
    closings: usize,
    /// Whether the server stops, so that no listener is started any more.
    is_stopping: bool,
    /// Whether a successor has the sockets, too, and may take over.
    is_offered: bool,
    /// Handles on the sockets that a supervisor keeps open, each with its address in the
    /// configuration: where a listener comes back, its sockets are these, as a share of its queries
    /// would go on to them beside new ones.
    supervised: Vec<(SocketAddr, Sockets)>,
}

impl State {
    /// Whether a listener is answered on at a place.
    fn is_open(&self, place: usize) -> bool {
        self.places.get(place).is_some_and(|it| it.open.is_some())
    }

    /// Adds what a worker has counted to what those have that have ended.
    fn settle(&mut self, worker: &Arc<UdpCounters>) {
        let of_worker = |meter: &mut Meter| Arc::ptr_eq(&meter.counters, worker);
        let ended: Vec<_> = self.meters.extract_if(.., of_worker).collect();
        ended.iter().for_each(|meter| self.ended.add(meter));
    }

    /// Notes a worker that did not stop in time: it goes on counting, and its socket is its own.
    fn note_late(&mut self, place: usize, late: CountedWorker) {
        let of_worker = |meter: &&mut Meter| Arc::ptr_eq(&meter.counters, late.0.counters());
        for meter in self.meters.iter_mut().filter(of_worker) {
            self.ended.dropped += meter.dropped();
            meter.socket = Weak::new();
        }
        self.places[place].late.push(late);
    }

    /// Forgets what is over of listeners that were closed.
    fn forget_former(&mut self) {
        let mut ended = Vec::new();
        for place in &mut self.places {
            place.former.retain(|former| !former.is_over());
            ended.extend(place.late.extract_if(.., |(worker, _)| worker.has_ended()));
        }
        for (worker, engine) in ended {
            self.settle(worker.counters());
            self.unused.push(engine);
        }
    }
}

/// Owner of all listeners that run.
pub struct Listeners {
    starter: ListenerStarter,
    counters: Arc<EngineCounters>,
    /// Whether other processes may bind the same addresses.
    is_shared: bool,
    /// How long a place stays unused after its listener was closed.
    rest: Duration,
    state: Mutex<State>,
}

/// Sockets that are bound for listeners.
pub struct BoundListeners {
    /// The sockets, each with the place of its listener.
    sockets: Vec<(usize, Sockets)>,
    /// Whether one of the addresses overlaps one that is answered on, whose queries it may get.
    has_overlap: bool,
    /// Sockets that share their ports for these, which ends where none is started.
    shared: SharedPorts,
}

/// The places of listeners that a reload has closed.
#[must_use = "they are closed, whether or not the configuration comes into force"]
pub struct ClosedListeners(Vec<usize>);

/// What is to be waited for when the server stops.
pub struct StoppedListeners {
    /// The UDP workers of all listeners.
    pub workers: Vec<UdpWorker>,
    /// The tasks of TCP, which have been told to stop.
    pub tasks: Vec<TcpTask>,
}

impl Listeners {
    /// Starts the listeners that a server begins with, by their places. Their workers count in
    /// `first`, which are among `counters`. If `is_shared`, other processes may bind the same
    /// addresses; code has queries wait for as long as `patience`.
    ///
    /// # Errors
    /// When a thread or descriptor cannot be had.
    pub fn start(
        starter: ListenerStarter,
        (sockets, config): (Vec<Sockets>, &Config),
        (first, counters): (&[Arc<Counters>], Arc<EngineCounters>),
        (is_shared, patience): (bool, Duration),
    ) -> io::Result<Self> {
        // The last of them are taken first.
        let state = State { unused: first.iter().rev().cloned().collect(), ..State::default() };
        let (rest, state) = (REST_MIN.max(patience.saturating_mul(2)), Mutex::new(state));
        let listeners = Self { starter, counters, is_shared, rest, state };
        for (place, (sockets, listener)) in sockets.into_iter().zip(&config.listeners).enumerate() {
            if sockets.is_supervised {
                let kept = sockets.try_clone()?;
                listeners.lock().supervised.push((listener.address, kept));
            }
            listeners.start_one(place, listener, sockets)?;
        }
        Ok(listeners)
    }

    /// Binds the addresses that a configuration, whose listeners have their places, has and that
    /// are not answered on.
    ///
    /// # Errors
    /// Why one of them cannot be bound, and then none is, or why no listener can come or go.
    pub fn bind(&self, config: &Config) -> Result<BoundListeners, String> {
        if config.listeners.len() > usize::from(u16::MAX) {
            return Err("too many listeners have come and gone: restart the server".to_owned());
        }
        let state = self.lock();
        let open = config.open_listeners();
        let new: Vec<_> = open.filter(|(place, _)| !state.is_open(*place)).collect();
        let is_offered = state.is_offered;
        drop(state);
        if is_offered && !(new.is_empty() && self.gone(config).is_empty()) {
            return Err(OFFERED.to_owned());
        }
        match self.await_former_sockets(&new) {
            Some(address) => Err(format!(
                "queries that were sent to {address} before still wait for an answer, and their \
                 sockets, which another process handed over, would get new ones: reload later"
            )),
            None => self.bind_all(&new),
        }
    }

    /// Waits for former sockets that might get queries in place of new ones, but not for long.
    /// Returns the address of a listener that would lose queries so if it were bound now.
    fn await_former_sockets(&self, new: &[(usize, &Listener)]) -> Option<SocketAddr> {
        let start = Instant::now();
        let is_met = |it: &(usize, &Listener), receiving| {
            self.has_former(it.1, receiving) && !self.is_supervised(it.1.address)
        };
        while new.iter().any(|it| is_met(it, false)) && start.elapsed() < REBIND_MAX {
            thread::sleep(LOOK);
        }
        new.iter().find(|it| is_met(it, true)).map(|(_, listener)| listener.address)
    }

    /// Binds the addresses of listeners that are to be at these places.
    fn bind_all(&self, new: &[(usize, &Listener)]) -> Result<BoundListeners, String> {
        let listeners: Vec<&Listener> = new.iter().map(|(_, listener)| *listener).collect();
        let (running, start) = (self.running(), Instant::now());
        let sockets = loop {
            let found = self.supervised(&listeners).map_err(|error| error.to_string())?;
            match listen_more(&listeners, &running, found, self.is_shared) {
                Err(error) if self.was_closed(&error, new) && start.elapsed() < REBIND_MAX => {
                    thread::sleep(LOOK);
                }
                sockets => break sockets,
            }
        };
        let (sockets, shared) =
            sockets.map_err(|error| format!("{error}{}", hint(&error, &running)))?;
        let overlaps_running =
            |it: &&Listener| running.iter().any(|(address, _)| overlaps(*address, it.address));
        let has_overlap = listeners.iter().any(overlaps_running);
        let sockets = new.iter().map(|(place, _)| *place).zip(sockets).collect();
        Ok(BoundListeners { sockets, has_overlap, shared })
    }

    /// Closes the listeners that a configuration, which is not in force yet, has closed: what they
    /// have received is answered, and what waits for code or other servers is waited for a while,
    /// but not where a socket that is `bound` gets queries meanwhile that were answered before.
    pub fn close_those_gone(&self, config: &Config, bound: &BoundListeners) -> ClosedListeners {
        let gone = self.gone(config);
        match bound.has_overlap {
            true => self.close(&gone, (SHARED_STOP_MAX, Duration::ZERO)),
            false => self.close(&gone, (STOP_MAX, DRAIN_MAX)),
        }
        ClosedListeners(gone)
    }

    /// Starts listeners with their sockets, those that the configuration in force has. Returns what
    /// could not be started.
    pub fn start_bound(&self, bound: BoundListeners, config: &Config) -> Vec<String> {
        let (mut failed, mut is_one_started) = (Vec::new(), false);
        for (place, sockets) in bound.sockets {
            let listener = config.listeners.get(place).filter(|it| !it.is_closed);
            let Some(listener) = listener else { continue };
            let address = sockets.address().unwrap_or(listener.address);
            match self.start_one(place, listener, sockets) {
                Ok(true) => {
                    is_one_started = true;
                    tracing::info!(%address, "listening");
                }
                Ok(false) => {} // the server stops
                Err(error) => failed.push(format!("{address} is not answered on: {error}")),
            }
        }
        if is_one_started {
            bound.shared.keep();
        }
        failed
    }

    /// Opens listeners again that were closed for a configuration that has not come into force:
    /// `config` is. What cannot be opened is logged.
    pub fn restore(&self, closed: ClosedListeners, config: &Config) {
        let ClosedListeners(closed) = closed;
        let again = config.open_listeners().filter(|(place, _)| closed.contains(place));
        let again: Vec<_> = again.collect();
        let _ = self.await_former_sockets(&again); // some queries lost are better than all
        let failed = match self.bind_all(&again) {
            Ok(bound) => self.start_bound(bound, config),
            Err(error) => vec![error],
        };
        for error in failed {
            tracing::error!(error, "a listener that was closed is not opened again");
        }
    }

    /// Whether a place may be given to another address.
    pub fn is_free(&self, place: usize) -> bool {
        self.lock().places.get(place).is_some_and(|place| {
            let has_rested = place.closed_at.is_none_or(|at| at.elapsed() > self.rest);
            place.open.is_none() && has_rested && place.is_over()
        })
    }

    /// The address of each listener, by place; none where it is closed, or the machine lacks the
    /// family of addresses.
    pub fn addresses(&self) -> Vec<Option<SocketAddr>> {
        let address = |place: &Place| place.open.as_ref()?.sockets.address();
        self.lock().places.iter().map(address).collect()
    }

    /// The address that was answered on last at each place.
    pub fn last_addresses(&self) -> Vec<Option<SocketAddr>> {
        self.lock().places.iter().map(|place| place.last_address).collect()
    }

    /// Descriptors of all sockets that are answered on, for a successor. No listener comes or goes
    /// from now on, until [the offer ends](Self::end_offer).
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn offer(&self) -> io::Result<Vec<OwnedFd>> {
        self.lock().is_offered = true;
        let running = self.running();
        let all = running.iter().flat_map(|(_, sockets)| sockets.descriptors());
        all.map(|descriptor| descriptor.try_clone_to_owned()).collect()
    }

    /// Whether a successor has the sockets, too, and may take over.
    pub fn is_offered(&self) -> bool {
        self.lock().is_offered
    }

    /// Notes that the successor has gone away.
    pub fn end_offer(&self) {
        self.lock().is_offered = false;
    }

    /// What all UDP workers have done so far.
    pub fn udp_counts(&self) -> UdpCounts {
        let state = self.lock();
        let mut counts = state.ended;
        state.meters.iter().for_each(|meter| counts.add(meter));
        counts
    }

    /// The number of UDP workers, with those that have not stopped in time.
    pub fn worker_count(&self) -> usize {
        let workers = |place: &Place| {
            let late = place.late.iter().filter(|(worker, _)| !worker.has_ended());
            late.count() + place.open.as_ref().map_or(0, |listener| listener.workers.len())
        };
        self.lock().places.iter().map(workers).sum()
    }

    /// Stops all listeners for good, but leaves their sockets open: what they have received is
    /// still to be answered. Connections stop as `how` says.
    pub fn stop(&self, how: tcp::Stop) -> StoppedListeners {
        let mut state = self.lock();
        state.is_stopping = true;
        let (mut workers, mut tasks) = (Vec::new(), Vec::new());
        for place in &mut state.places {
            workers.extend(place.late.drain(..).map(|(worker, _)| worker));
            tasks.extend(place.former.iter_mut().filter_map(|former| former.tcp.take()));
            if let Some(listener) = &mut place.open {
                workers.extend(listener.workers.drain(..).map(|(worker, _)| worker));
                tasks.extend(listener.tcp.take());
            }
        }
        tasks.iter().for_each(|task: &TcpTask| task.stop(how));
        StoppedListeners { workers, tasks }
    }

    /// Waits for workers that a reload was stopping when the server was [stopped](Self::stop), and
    /// that answer what they have received; returns whether they have stopped in time.
    pub fn await_closings(&self, deadline: Instant) -> bool {
        while self.lock().closings > 0 {
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(LOOK);
        }
        true
    }

    /// Starts the workers and the TCP task of a listener, unless the server stops; returns whether.
    fn start_one(&self, place: usize, listener: &Listener, sockets: Sockets) -> io::Result<bool> {
        let number = u16::try_from(place).map_err(io::Error::other)?;
        let mut state = self.lock();
        if state.is_stopping {
            return Ok(false);
        }
        state.forget_former();
        let (address, tcp, last_address) =
            (listener.address, sockets.tcp.clone(), sockets.address());
        let mut running = RunningListener { address, sockets, workers: Vec::new(), tcp: None };
        let mut started = Ok(true);
        for socket in &running.sockets.udp {
            let counters = state.unused.pop().unwrap_or_else(|| self.counters.add());
            let name = format!("udp-{}", state.started);
            match self.starter.start_worker((name, number), socket, &counters) {
                Ok(worker) => {
                    state.started += 1;
                    let (of_worker, socket) =
                        (Arc::clone(worker.counters()), Arc::downgrade(socket));
                    state.meters.push(Meter { counters: of_worker, socket });
                    running.workers.push((worker, counters));
                }
                Err(error) => {
                    state.unused.push(counters);
                    started = Err(error);
                    break;
                }
            }
        }
        running.tcp = tcp.map(|socket| self.starter.start_tcp(number, &socket));
        if state.places.len() <= place {
            state.places.resize_with(place + 1, Place::default);
        }
        let at = &mut state.places[place];
        (at.open, at.last_address) = (Some(running), last_address);
        drop(state);
        if started.is_err() {
            self.close(&[place], (STOP_MAX, DRAIN_MAX)); // what has been started of it
        }
        started
    }

    /// Closes the listeners at places: they answer what they have received. Workers are waited for
    /// so long, and then queries that wait for code or other servers.
    fn close(&self, places: &[usize], (stop_max, drain_max): (Duration, Duration)) {
        let mut closing = self.take_open(places);
        if closing.is_empty() {
            return;
        }
        let (mut workers, mut engines) = (Vec::new(), Vec::new());
        for (place, listener) in &mut closing {
            for (worker, engine) in listener.workers.drain(..) {
                engines.push((*place, Arc::clone(worker.counters()), engine));
                workers.push(worker);
            }
        }
        let mut late = stop_workers(workers, Instant::now() + stop_max);
        let mut state = self.lock(); // metrics have been read meanwhile
        for (place, counters, engine) in engines {
            let of_engine = |worker: &mut UdpWorker| Arc::ptr_eq(worker.counters(), &counters);
            match late.extract_if(.., of_engine).next() {
                Some(worker) => state.note_late(place, (worker, engine)),
                None => {
                    state.settle(&counters);
                    state.unused.push(engine);
                }
            }
        }
        state.closings -= 1;
        drop(state);
        let addresses: Vec<_> = closing.iter().map(|(_, it)| it.last_address()).collect();
        drop(closing); // and with it the sockets, but for what waits
        self.await_former(places, drain_max);
        for address in addresses {
            tracing::info!(%address, "listening no more");
        }
    }

    /// Takes the listeners at places out of those that are answered on, which begins a closing, and
    /// has their sockets receive no more, and their connections end. Nothing is taken where the
    /// server stops.
    fn take_open(&self, places: &[usize]) -> Vec<(usize, RunningListener)> {
        let mut state = self.lock();
        if state.is_stopping {
            return Vec::new();
        }
        state.forget_former();
        let mut taken = Vec::new();
        for &number in places {
            let Some(place) = state.places.get_mut(number) else { continue };
            let Some(mut listener) = place.open.take() else { continue };
            listener.sockets.tcp = None; // the last one is that of the task now
            let tcp = listener.tcp.take();
            tcp.iter().for_each(|task| task.stop(tcp::Stop::Now));
            let is_receiving = !listener.sockets.end_receiving();
            let (address, sockets) = (listener.address, listener.sockets.udp.iter());
            let sockets = sockets.map(Arc::downgrade).collect();
            place.former.push(FormerListener { address, sockets, is_receiving, tcp });
            place.closed_at = Some(Instant::now());
            taken.push((number, listener));
        }
        state.closings += usize::from(!taken.is_empty());
        taken
    }

    /// Waits until nothing is left of the listeners that were closed at places, but not for long.
    fn await_former(&self, places: &[usize], drain_max: Duration) {
        let deadline = Instant::now() + drain_max;
        let is_over = || {
            let state = self.lock();
            places.iter().filter_map(|it| state.places.get(*it)).all(Place::is_over)
        };
        while !is_over() {
            if Instant::now() >= deadline {
                tracing::warn!("queries to a listener that is closed still wait: they are refused");
                return;
            }
            thread::sleep(LOOK);
        }
    }

    /// The places of the listeners that are answered on and that a configuration has closed.
    fn gone(&self, config: &Config) -> Vec<usize> {
        let state = self.lock();
        let closed = config.listeners.iter().enumerate().filter(|(_, it)| it.is_closed);
        closed.map(|(place, _)| place).filter(|place| state.is_open(*place)).collect()
    }

    /// The listeners that are answered on: their addresses in the configuration, and sockets.
    fn running(&self) -> Vec<(SocketAddr, Sockets)> {
        let open = |place: &Place| {
            let listener = place.open.as_ref()?;
            Some((listener.address, listener.sockets.clone()))
        };
        self.lock().places.iter().filter_map(open).collect()
    }

    /// Whether a supervisor keeps the sockets of an address open.
    fn is_supervised(&self, address: SocketAddr) -> bool {
        self.lock().supervised.iter().any(|(it, _)| *it == address)
    }

    /// The sockets of listeners that a supervisor keeps open.
    fn supervised(&self, listeners: &[&Listener]) -> io::Result<InheritedSockets> {
        let (state, mut found) = (self.lock(), InheritedSockets::default().of_supervisor());
        let is_new = |address| listeners.iter().any(|listener| listener.address == address);
        for (_, sockets) in state.supervised.iter().filter(|(address, _)| is_new(*address)) {
            found.extend(sockets)?;
        }
        Ok(found)
    }

    /// Whether sockets are open of listeners that were closed, at the address of one or beside it:
    /// any, or only those that are `receiving`.
    fn has_former(&self, new: &Listener, receiving: bool) -> bool {
        let state = self.lock();
        let mut former = state.places.iter().flat_map(|place| &place.former);
        former.any(|it| (it.is_receiving || !receiving) && it.has_socket() && it.meets(new.address))
    }

    /// Whether an address is taken that one of these listeners had before, or that overlaps one of
    /// a listener that was closed: perhaps by what is still to be sent.
    fn was_closed(&self, error: &ListenError, new: &[(usize, &Listener)]) -> bool {
        let (state, address) = (self.lock(), error.address());
        let mut again = new.iter().filter(|(place, _)| *place < state.places.len());
        let mut former = state.places.iter().flat_map(|place| &place.former);
        let was_there = again.any(|(_, listener)| listener.address == address);
        error.is_taken() && (was_there || former.any(|it| it.meets(address)))
    }

    /// The places, for a moment, or while threads are started.
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic left at worst a listener that is not started.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What else there is to say about an address that a running server cannot bind.
fn hint(error: &ListenError, running: &[(SocketAddr, Sockets)]) -> &'static str {
    let shares_port = || running.iter().any(|(address, _)| overlaps(*address, error.address()));
    match error.is_denied() {
        true => "; a server that has given up the rights of root needs a restart for that",
        false if error.is_taken() && shares_port() => {
            "; or the sockets of this server at the port, which another user has bound, do not \
             share it: restart the server"
        }
        false => "",
    }
}
