//! The threads of the server: UDP workers and TCP of a listener, forwarders.

use crate::engine_counters::EngineMaker;
use crate::update::queue::UpdateQueue;
use crate::watchdog::Watchdog;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use zonda_config::Config;
use zonda_deferral::faults::Failure;
use zonda_deferral::{Clock, Deferrals, LazyResponder, Queue};
use zonda_engine::Engine;
use zonda_engine::counters::Counters;
use zonda_forward::{ForwarderConfig, ForwarderThread, Forwarders, Inbox};
use zonda_netio::UdpSocket;
use zonda_runtime::Runtime as CodeRuntime;
use zonda_transport::tcp::{self, TcpConfig, TcpServer};
use zonda_transport::udp::{UdpConfig, UdpWorker};

/// Handles that each thread of the server is given when it starts.
pub struct ThreadHandles {
    /// Tells the time.
    pub clock: Clock,
    /// Where deferred queries go.
    pub deferrals: Deferrals,
    /// Whether the user's code runs in threads of its own.
    pub is_beside_code: bool,
    /// Channel on which a thread reports that it has given up.
    pub failed: mpsc::Sender<Failure>,
}

impl ThreadHandles {
    /// Handles of a server, which has code outside of the workers or not.
    pub fn new(
        clock: Clock,
        deferrals: Deferrals,
        is_beside_code: bool,
        failed: mpsc::Sender<Failure>,
    ) -> Self {
        Self { clock, deferrals, is_beside_code, failed }
    }
}

/// The bounds of TCP as the transport reads them.
pub fn tcp_config(config: &Config) -> TcpConfig {
    let tcp = &config.tcp;
    TcpConfig {
        connections_max: tcp.connections_max as usize,
        connections_per_client_max: tcp.connections_per_client as usize,
        queries_max: u64::from(tcp.queries_per_connection),
        idle_max: tcp.idle_timeout,
        read_max: tcp.message_timeout,
        write_max: tcp.write_timeout,
    }
}

/// What starts the workers and the TCP task of a listener.
pub struct ListenerStarter {
    /// The runtime of TCP connections.
    pub runtime: Handle,
    /// What makes the engines of workers.
    pub make_engine: EngineMaker,
    /// What each worker is given.
    pub handles: ThreadHandles,
    /// The server of all TCP connections.
    pub tcp: Arc<TcpServer<LazyResponder<Engine>>>,
    /// What watches the tasks.
    pub watchdog: Arc<Watchdog>,
}

/// The task that accepts and serves the TCP connections of a listener.
pub struct TcpTask {
    stop: watch::Sender<tcp::Stop>,
    task: JoinHandle<()>,
}

impl TcpTask {
    /// Has the task end once its connections have.
    pub fn stop(&self, how: tcp::Stop) {
        let _ = self.stop.send(how); // gone only if the task has ended
    }

    /// Whether the task has ended.
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// Waits until the task has ended.
    pub async fn ended(self) {
        let _ = self.task.await; // what a panic did is in the watchdog
    }
}

impl ListenerStarter {
    /// Starts the worker of a socket of a listener, under a name; it counts in `counters`.
    pub fn start_worker(
        &self,
        (name, listener): (String, u16),
        socket: &Arc<UdpSocket>,
        counters: &Arc<Counters>,
    ) -> io::Result<UdpWorker> {
        let is_beside_code = self.handles.is_beside_code;
        let config = UdpConfig { name, listener, is_beside_code, ..UdpConfig::default() };
        let (make_engine, counters) = (Arc::clone(&self.make_engine), Arc::clone(counters));
        UdpWorker::spawn(
            Arc::clone(socket),
            config,
            self.handles.clock,
            move || make_engine(&counters),
            self.handles.deferrals.clone(),
            self.handles.failed.clone(),
        )
    }

    /// Serves TCP on the socket of a listener. Only the caller keeps that open: it is closed once
    /// the task was told to stop and the caller has dropped it.
    pub fn start_tcp(&self, listener: u16, socket: &Arc<TcpListener>) -> TcpTask {
        let (stop, is_stopped) = watch::channel(tcp::Stop::No);
        let (server, socket) = (Arc::clone(&self.tcp), Arc::downgrade(socket));
        let work = move || {
            let (server, is_stopped) = (Arc::clone(&server), is_stopped.clone());
            let socket = socket.upgrade().map(|socket| socket.try_clone());
            async move {
                let served = match socket {
                    Some(Ok(socket)) => server.serve(socket, listener, is_stopped).await,
                    Some(Err(error)) => Err(error),
                    None => Ok(()), // closed since
                };
                let failure = served.inspect_err(|error| tracing::error!(%error, "no TCP"));
                failure.is_ok()
            }
        };
        let kept = Arc::clone(&self.watchdog).keep(format!("tcp-{listener}"), work);
        TcpTask { stop, task: self.runtime.spawn(kept) }
    }
}

/// Starts a forwarder thread for each of `counters`.
pub fn start_forwarders(
    config: impl Fn(usize, Arc<Inbox>, Forwarders) -> ForwarderConfig,
    make_engine: &EngineMaker,
    counters: &[Arc<Counters>],
    failed: &mpsc::Sender<Failure>,
) -> io::Result<(Forwarders, Vec<ForwarderThread>)> {
    let inboxes = counters.iter().map(|_| Inbox::new()).collect::<io::Result<Vec<_>>>()?;
    let (forwarders, mut threads) = (Forwarders::new(inboxes.clone()), Vec::new());
    for (number, (inbox, counters)) in inboxes.into_iter().zip(counters).enumerate() {
        let (make_engine, counters) = (Arc::clone(make_engine), Arc::clone(counters));
        let make = move || lazily(&make_engine, &counters);
        let config = config(number, inbox, forwarders.clone());
        threads.push(ForwarderThread::spawn(config, make, failed.clone())?);
    }
    Ok((forwarders, threads))
}

/// An engine that counts in `counters`, made when it has to answer.
pub fn lazily(make_engine: &EngineMaker, counters: &Arc<Counters>) -> LazyResponder<Engine> {
    let (make_engine, counters) = (Arc::clone(make_engine), Arc::clone(counters));
    LazyResponder::new(move || make_engine(&counters))
}

/// The queues of deferred queries: of the forwarder threads, of messages that change zones, then of
/// each runtime of code.
pub fn queues(
    forwarders: &Forwarders,
    updates: &Arc<UpdateQueue>,
    runtimes: &[Arc<CodeRuntime>],
) -> Vec<Arc<dyn Queue>> {
    let updates = Arc::clone(updates) as Arc<dyn Queue>;
    let mut queues: Vec<Arc<dyn Queue>> = vec![Arc::new(forwarders.clone()), updates];
    queues.extend(runtimes.iter().map(|it| Arc::clone(it) as Arc<dyn Queue>));
    queues
}
