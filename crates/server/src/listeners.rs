//! The listeners that run: their sockets, UDP workers and TCP tasks. They come and go at reloads.
//!
//! A listener has a place, its number in the configuration in force, which its queries carry.
//!
//! ```text
//! reload ─► bind (new sockets) ─► publish the configuration ─► start new ones ─► stop those gone
//! ```
//!
//! What could fail comes first, so that a reload that fails changes nothing. Queries that reach a
//! new socket meanwhile wait in it. A worker that is stopped answers what its socket has received.
//!
//! Deliberately absent: how sockets are bound (`listen`), which listener has which place
//! (`zonda_config`), and other numbers of workers for a listener that goes on: a datagram that
//! comes between the last look at a socket and its end would be lost.
//!
//! # Invariants
//! - No count ever falls: those of a worker that has ended go into a sum, and a new worker goes on
//!   counting in the engine's counters of one that has ended.
//! - A place is not given to another address while queries that came to the former may wait.

use crate::engine_counters::EngineCounters;
use crate::listen::{ListenError, Sockets, listen_more, overlaps};
use crate::threads::{ListenerStarter, TcpTask};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use zonda_config::{Config, Listener};
use zonda_engine::counters::Counters;
use zonda_netio::UdpSocket;
use zonda_transport::tcp;
use zonda_transport::udp::{UdpCounters, UdpWorker, stop_workers};

/// How long a place stays unused after its listener has been closed: longer than a query waits for
/// code or other servers.
const PLACE_REST: Duration = Duration::from_secs(300);
/// How long workers of a listener that is closed are waited for.
const STOP_MAX: Duration = Duration::from_secs(5);
/// How long an address is waited for whose listener was closed before: replies that are sent later
/// keep its sockets.
const REBIND_MAX: Duration = Duration::from_secs(2);
/// How often it is tried again meanwhile.
const REBIND_LOOK: Duration = Duration::from_millis(20);

/// What all UDP workers have done so far, those that have ended as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpCounts {
    /// Receive calls that returned datagrams.
    pub batches: u64,
    /// Replies that the kernel refused.
    pub refused: u64,
    /// Receive calls that failed.
    pub receive_errors: u64,
    /// Panics of engines.
    pub panics: u64,
    /// Datagrams for which receive buffers had no room.
    pub dropped: u64,
}

impl UdpCounts {
    /// Adds what a worker and the kernel have counted.
    fn add(&mut self, meter: &Meter) {
        self.batches += meter.counters.batches.get();
        self.refused += meter.counters.refused.get();
        self.receive_errors += meter.counters.receive_errors.get();
        self.panics += meter.counters.panics.get();
        self.dropped += meter.socket.dropped().map_or(0, u64::from);
    }
}

/// What counts for one worker.
struct Meter {
    counters: Arc<UdpCounters>,
    socket: Arc<UdpSocket>,
}

/// A listener that runs.
struct RunningListener {
    /// The address in the configuration, where the port may be 0.
    address: SocketAddr,
    sockets: Sockets,
    /// The workers, each with the counters of its engine.
    workers: Vec<(UdpWorker, Arc<Counters>)>,
    tcp: Option<TcpTask>,
}

/// What is at a place.
enum Place {
    /// A listener is answered on.
    Open(RunningListener),
    /// A listener was closed at this moment; its connections may still be served.
    Closed(Instant, Option<TcpTask>),
}

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
    /// Whether the server stops, so that no listener is started any more.
    is_stopping: bool,
}

/// Owner of all listeners that run.
pub struct Listeners {
    starter: ListenerStarter,
    counters: Arc<EngineCounters>,
    /// Whether other processes may bind the same addresses.
    is_shared: bool,
    state: Mutex<State>,
}

/// Sockets that are bound for listeners at these places.
pub struct BoundListeners(Vec<(usize, Sockets)>);

/// What is to be waited for when the server stops.
pub struct StoppedListeners {
    /// The UDP workers of all listeners.
    pub workers: Vec<UdpWorker>,
    /// The tasks of TCP, which have been told to stop.
    pub tasks: Vec<TcpTask>,
}

impl Listeners {
    /// Starts the listeners that a server begins with, by their places. Their workers count in
    /// `first`, which are among `counters`.
    ///
    /// # Errors
    /// When a thread or descriptor cannot be had.
    pub fn start(
        starter: ListenerStarter,
        (sockets, config): (Vec<Sockets>, &Config),
        (first, counters): (&[Arc<Counters>], Arc<EngineCounters>),
        is_shared: bool,
    ) -> io::Result<Self> {
        // The last of them are taken first.
        let state = State { unused: first.iter().rev().cloned().collect(), ..State::default() };
        let listeners = Self { starter, counters, is_shared, state: Mutex::new(state) };
        for (place, (sockets, listener)) in sockets.into_iter().zip(&config.listeners).enumerate() {
            listeners.start_one(place, listener, sockets)?;
        }
        Ok(listeners)
    }

    /// Binds the addresses that a configuration, whose listeners have their places, has and that
    /// are not answered on.
    ///
    /// # Errors
    /// Why one of them cannot be bound; then none is.
    pub fn bind(&self, config: &Config) -> Result<BoundListeners, String> {
        let new: Vec<(usize, &Listener)> = {
            let state = self.lock();
            let is_open = |place: usize| matches!(state.places.get(place), Some(Place::Open(_)));
            config.open_listeners().filter(|(place, _)| !is_open(*place)).collect()
        };
        if config.listeners.len() > usize::from(u16::MAX) {
            return Err("too many listeners have come and gone: restart the server".to_owned());
        }
        let listeners: Vec<&Listener> = new.iter().map(|(_, listener)| *listener).collect();
        let (running, start) = (self.running(), Instant::now());
        let sockets = loop {
            match listen_more(&listeners, &running, self.is_shared) {
                Err(error) if self.was_closed(&error, &new) && start.elapsed() < REBIND_MAX => {
                    thread::sleep(REBIND_LOOK);
                }
                sockets => break sockets,
            }
        };
        let sockets = sockets.map_err(|error| format!("{error}{}", hint(&error, &running)))?;
        Ok(BoundListeners(new.iter().map(|(place, _)| *place).zip(sockets).collect()))
    }

    /// Starts listeners with their sockets, and stops those that the configuration, which is in
    /// force by now, has closed. Returns what could not be started.
    pub fn follow(&self, bound: BoundListeners, config: &Config) -> Vec<String> {
        let mut failed = Vec::new();
        for (place, sockets) in bound.0 {
            let Some(listener) = config.listeners.get(place) else { continue };
            let address = sockets.address().unwrap_or(listener.address);
            match self.start_one(place, listener, sockets) {
                Ok(()) => tracing::info!(%address, "listening"),
                Err(error) => failed.push(format!("{address} is not answered on: {error}")),
            }
        }
        let closed = config.listeners.iter().enumerate().filter(|(_, it)| it.is_closed);
        closed.for_each(|(place, _)| self.stop_one(place));
        failed
    }

    /// Whether a place may be given to another address.
    pub fn is_free(&self, place: usize) -> bool {
        match self.lock().places.get(place) {
            Some(Place::Closed(since, task)) => {
                since.elapsed() > PLACE_REST && task.as_ref().is_none_or(TcpTask::is_finished)
            }
            Some(Place::Open(_)) | None => false,
        }
    }

    /// The address of each listener, by place; none where it is closed, or the machine lacks the
    /// family of addresses.
    pub fn addresses(&self) -> Vec<Option<SocketAddr>> {
        let address = |place: &Place| match place {
            Place::Open(listener) => listener.sockets.address(),
            Place::Closed(..) => None,
        };
        self.lock().places.iter().map(address).collect()
    }

    /// Descriptors of all sockets that are answered on, to be handed over.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn descriptors(&self) -> io::Result<Vec<OwnedFd>> {
        let running = self.running();
        let all = running.iter().flat_map(|(_, sockets)| sockets.descriptors());
        all.map(|descriptor| descriptor.try_clone_to_owned()).collect()
    }

    /// What all UDP workers have done so far.
    pub fn udp_counts(&self) -> UdpCounts {
        let state = self.lock();
        let mut counts = state.ended;
        state.meters.iter().for_each(|meter| counts.add(meter));
        counts
    }

    /// The number of UDP workers.
    pub fn worker_count(&self) -> usize {
        let workers = |place: &Place| match place {
            Place::Open(listener) => listener.workers.len(),
            Place::Closed(..) => 0,
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
            match place {
                Place::Open(listener) => {
                    workers.extend(listener.workers.drain(..).map(|(worker, _)| worker));
                    tasks.extend(listener.tcp.take());
                }
                Place::Closed(_, task) => tasks.extend(task.take()),
            }
        }
        tasks.iter().for_each(|task: &TcpTask| task.stop(how));
        StoppedListeners { workers, tasks }
    }

    /// Starts the workers and the TCP task of a listener.
    fn start_one(&self, place: usize, listener: &Listener, sockets: Sockets) -> io::Result<()> {
        let number = u16::try_from(place).map_err(io::Error::other)?;
        let mut state = self.lock();
        if state.is_stopping {
            return Ok(());
        }
        let (address, tcp) = (listener.address, sockets.tcp.clone());
        let mut running = RunningListener { address, sockets, workers: Vec::new(), tcp: None };
        let sockets = running.sockets.udp.clone();
        let mut started = Ok(());
        for socket in sockets {
            let counters = state.unused.pop().unwrap_or_else(|| self.counters.add());
            let name = format!("udp-{}", state.started);
            match self.starter.start_worker((name, number), &socket, &counters) {
                Ok(worker) => {
                    state.started += 1;
                    state.meters.push(Meter { counters: Arc::clone(worker.counters()), socket });
                    running.workers.push((worker, counters));
                }
                Err(error) => {
                    started = Err(error);
                    break;
                }
            }
        }
        running.tcp = tcp.map(|socket| self.starter.start_tcp(number, &socket));
        if state.places.len() <= place {
            let now = Instant::now();
            state.places.resize_with(place + 1, || Place::Closed(now, None));
        }
        state.places[place] = Place::Open(running);
        drop(state);
        if started.is_err() {
            self.stop_one(place); // what has been started of it
        }
        started
    }

    /// Stops the listener at a place, if there is one: it answers what its sockets have received.
    fn stop_one(&self, place: usize) {
        let mut state = self.lock();
        let is_stopping = state.is_stopping;
        let open = state.places.get_mut(place).filter(|it| matches!(it, Place::Open(_)));
        let Some(at) = open.filter(|_| !is_stopping) else { return };
        let closed = Place::Closed(Instant::now(), None);
        let Place::Open(mut listener) = std::mem::replace(at, closed) else { return };
        if let Some(task) = listener.tcp.take() {
            task.stop(tcp::Stop::Now);
            *at = Place::Closed(Instant::now(), Some(task));
        }
        drop(state); // metrics are read meanwhile
        let RunningListener { sockets, address, workers, .. } = listener;
        let address = sockets.address().unwrap_or(address);
        drop(sockets); // the last one of TCP is that of the task now
        let (workers, engines): (Vec<_>, Vec<_>) = workers.into_iter().unzip();
        let counters: Vec<_> = workers.iter().map(|worker| Arc::clone(worker.counters())).collect();
        if !stop_workers(workers, Instant::now() + STOP_MAX) {
            // What it counts in is left to it.
            tracing::error!(%address, "a worker of a listener that is closed did not stop in time");
            return;
        }
        let mut state = self.lock();
        let has_ended = |meter: &Meter| counters.iter().any(|it| Arc::ptr_eq(it, &meter.counters));
        let (ended, meters): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.meters).into_iter().partition(has_ended);
        state.meters = meters;
        ended.iter().for_each(|meter| state.ended.add(meter));
        state.unused.extend(engines);
        tracing::info!(%address, "listening no more");
    }

    /// The listeners that are answered on: their addresses in the configuration, and sockets.
    fn running(&self) -> Vec<(SocketAddr, Sockets)> {
        let open = |place: &Place| match place {
            Place::Open(listener) => Some((listener.address, listener.sockets.clone())),
            Place::Closed(..) => None,
        };
        self.lock().places.iter().filter_map(open).collect()
    }

    /// Whether an address is taken that one of these listeners had before, perhaps by replies that
    /// are still to be sent.
    fn was_closed(&self, error: &ListenError, new: &[(usize, &Listener)]) -> bool {
        let places = self.lock().places.len();
        let mut former = new.iter().filter(|(place, _)| *place < places);
        error.is_taken() && former.any(|(_, listener)| listener.address == error.address())
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
