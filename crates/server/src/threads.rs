//! The threads of the server: UDP workers, TCP, forwarders.

use crate::listen::Sockets;
use crate::update::queue::UpdateQueue;
use crate::watchdog::Watchdog;
use std::io;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use zonda_config::Config;
use zonda_deferral::faults::Failure;
use zonda_deferral::{Clock, Deferrals, LazyResponder, Queue};
use zonda_engine::Engine;
use zonda_engine::counters::Counters;
use zonda_forward::{ForwarderConfig, ForwarderThread, Forwarders, Inbox};
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

/// Starts a UDP worker for each socket; they count in `counters`.
pub fn start_workers(
    sockets: &[Sockets],
    counters: &[Arc<Counters>],
    make_engine: &(impl Fn(&Arc<Counters>) -> Engine + Clone + Send + 'static),
    handles: &ThreadHandles,
) -> io::Result<Vec<UdpWorker>> {
    let mut workers = Vec::new();
    let mut counters = counters.iter();
    for (listener, sockets) in (0..).zip(sockets) {
        for (socket, counters) in sockets.udp.iter().zip(counters.by_ref()) {
            let (name, is_beside_code) = (format!("udp-{}", workers.len()), handles.is_beside_code);
            let config = UdpConfig { name, listener, is_beside_code, ..UdpConfig::default() };
            let (make, counters) = (make_engine.clone(), Arc::clone(counters));
            let worker = UdpWorker::spawn(
                Arc::clone(socket),
                config,
                handles.clock,
                move || make(&counters),
                handles.deferrals.clone(),
                handles.failed.clone(),
            );
            workers.push(worker?);
        }
    }
    Ok(workers)
}

/// Starts a forwarder thread for each of `counters`.
pub fn start_forwarders(
    config: impl Fn(usize, Arc<Inbox>, Forwarders) -> ForwarderConfig,
    make_engine: &(impl Fn(&Arc<Counters>) -> Engine + Clone + Send + 'static),
    counters: &[Arc<Counters>],
    failed: &mpsc::Sender<Failure>,
) -> io::Result<(Forwarders, Vec<ForwarderThread>)> {
    let inboxes = counters.iter().map(|_| Inbox::new()).collect::<io::Result<Vec<_>>>()?;
    let (forwarders, mut threads) = (Forwarders::new(inboxes.clone()), Vec::new());
    for (number, (inbox, counters)) in inboxes.into_iter().zip(counters).enumerate() {
        let (make_engine, counters) = (make_engine.clone(), Arc::clone(counters));
        let make = move || lazily(&make_engine, &counters);
        let config = config(number, inbox, forwarders.clone());
        threads.push(ForwarderThread::spawn(config, make, failed.clone())?);
    }
    Ok((forwarders, threads))
}

/// An engine that counts in `counters`, made when it has to answer.
pub fn lazily(
    make_engine: &(impl Fn(&Arc<Counters>) -> Engine + Clone + Send + 'static),
    counters: &Arc<Counters>,
) -> LazyResponder<Engine> {
    let (make_engine, counters) = (make_engine.clone(), Arc::clone(counters));
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

/// Serves TCP on all listeners that have TCP.
pub fn serve_tcp(
    runtime: &Runtime,
    server: &Arc<TcpServer<LazyResponder<Engine>>>,
    sockets: &[Sockets],
    stop: &watch::Receiver<tcp::Stop>,
    watchdog: &Arc<Watchdog>,
) -> io::Result<Vec<JoinHandle<()>>> {
    let listening =
        (0..).zip(sockets).filter_map(|(listener, it)| Some((listener, it.tcp.as_ref()?)));
    listening
        .map(|(listener, socket)| {
            let (server, socket, stop) = (Arc::clone(server), socket.try_clone()?, stop.clone());
            let work = move || {
                let (server, socket, stop) =
                    (Arc::clone(&server), socket.try_clone(), stop.clone());
                async move {
                    let served = match socket {
                        Ok(socket) => server.serve(socket, listener, stop).await,
                        Err(error) => Err(error),
                    };
                    let failure = served.inspect_err(|error| tracing::error!(%error, "no TCP"));
                    failure.is_ok()
                }
            };
            Ok(runtime.spawn(Arc::clone(watchdog).keep(format!("tcp-{listener}"), work)))
        })
        .collect()
}
