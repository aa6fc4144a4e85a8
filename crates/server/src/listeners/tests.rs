#![allow(clippy::unwrap_used)]

use super::*;
use crate::engine_counters::EngineMaker;
use crate::listen::{InheritedSockets, listen};
use crate::threads::{ThreadHandles, lazily, tcp_config};
use crate::watchdog::Watchdog;
use arc_swap::ArcSwap;
use std::net::{TcpListener, UdpSocket as StdSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use zonda_config::Flags;
use zonda_deferral::faults::Failure;
use zonda_deferral::{Clock, Deferrals};
use zonda_engine::zones::ZoneTable;
use zonda_engine::{Engine, Snapshot};
use zonda_netio::share_port;
use zonda_transport::tcp::TcpServer;
use zonda_zone::HashSeed;

/// The listeners of a server without zones.
struct Server {
    listeners: Listeners,
    config: Config,
    _runtime: Runtime,
    _failures: mpsc::Receiver<Failure>,
}

/// An address that is free.
fn address() -> SocketAddr {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap()
}

/// A configuration with listeners at these addresses, of two workers each.
fn config(addresses: &[SocketAddr]) -> Config {
    let listen = addresses.iter().map(ToString::to_string).collect();
    let flags = Flags { listen, listen_nowhere: true, ..Flags::default() };
    let mut config = Config::load(None, [], &flags).unwrap().config;
    config.listeners.iter_mut().for_each(|listener| listener.workers = 2);
    config
}

impl Server {
    /// Starts listeners at addresses. The worker that makes the first engine waits for the gate.
    fn start(addresses: &[SocketAddr], gate: &Arc<Mutex<()>>) -> Self {
        Self::start_with(addresses, gate, InheritedSockets::default())
    }

    /// Starts listeners, some with sockets that another process handed over.
    fn start_with(
        addresses: &[SocketAddr],
        gate: &Arc<Mutex<()>>,
        found: InheritedSockets,
    ) -> Self {
        let (config, runtime) = (config(addresses), Runtime::new().unwrap());
        let table = ZoneTable::new(Vec::new(), HashSeed(1));
        let snapshot = Arc::new(ArcSwap::from_pointee(Snapshot::of(table)));
        let (passed, made) = (Arc::clone(gate), AtomicUsize::new(0));
        let make_engine: EngineMaker = Arc::new(move |counters| {
            if made.fetch_add(1, Ordering::SeqCst) == 0 {
                drop(passed.lock().unwrap());
            }
            Engine::new(Arc::clone(&snapshot), Arc::clone(counters))
        });
        let (clock, (failed, failures)) = (Clock::start(), mpsc::channel(1));
        let make = Arc::clone(&make_engine);
        let tcp = TcpServer::new(
            tcp_config(&config),
            1,
            clock,
            move |_| lazily(&make, &Arc::default()),
            (Deferrals::default(), Box::new(|_, _| Ok(None))),
            failed.clone(),
        );
        let handles = ThreadHandles::new(clock, Deferrals::default(), false, failed);
        let (watchdog, handle) = (Arc::<Watchdog>::default(), runtime.handle().clone());
        let starter = ListenerStarter { runtime: handle, make_engine, handles, tcp, watchdog };
        let sockets = listen(&config.listeners, found, false).unwrap();
        let of_config = (sockets, &config);
        let counters = (&[] as &[_], EngineCounters::new(0));
        let listeners =
            Listeners::start(starter, of_config, counters, (false, Duration::ZERO)).unwrap();
        Self { listeners, config, _runtime: runtime, _failures: failures }
    }

    /// The configuration with listeners at other addresses, in their places.
    fn next(&self, addresses: &[SocketAddr]) -> Config {
        let mut next = config(addresses);
        next.place_listeners(&self.config, |place| self.listeners.is_free(place));
        next
    }
}

/// Whether no socket has an address.
fn is_free(address: SocketAddr) -> bool {
    StdSocket::bind(address).is_ok() && TcpListener::bind(address).is_ok()
}

/// Whether a query to an address is answered.
fn is_answered(address: SocketAddr) -> bool {
    let client = StdSocket::bind("127.0.0.1:0").unwrap();
    client.connect(address).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    let query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01";
    client.send(query).is_ok() && client.recv(&mut [0; 512]).is_ok()
}

#[test]
fn a_configuration_that_does_not_come_into_force_leaves_the_listeners_that_there_were() {
    let [stays, gone, new] = [(); 3].map(|()| address());
    let server = Server::start(&[stays, gone], &Arc::default());
    let next = server.next(&[stays, new]);
    let bound = server.listeners.bind(&next).unwrap();
    let closed = server.listeners.close_those_gone(&next, &bound);
    assert!(is_free(gone) && !is_free(new) && is_answered(stays));
    assert_eq!(server.listeners.start_bound(bound, &server.config), [""; 0]);
    assert!(is_free(new), "it is not in the configuration");
    server.listeners.restore(closed, &server.config);
    assert!(is_answered(gone) && is_answered(stays));
    let addresses: Vec<_> = server.listeners.addresses().into_iter().flatten().collect();
    assert_eq!((addresses, server.listeners.worker_count()), (vec![stays, gone], 4));
}

#[test]
fn a_listener_that_is_not_started_leaves_no_port_shared() {
    let single = address();
    let wildcard = SocketAddr::from(([0; 4], single.port()));
    let server = Server::start(&[single], &Arc::default());
    let bound = server.listeners.bind(&server.next(&[single, wildcard])).unwrap();
    let state = server.listeners.lock();
    let tcp = state.places[0].open.as_ref().unwrap().sockets.tcp.clone().unwrap();
    drop(state);
    assert!(!share_port(tcp.as_fd(), true).unwrap(), "it is shared while the other is bound");
    assert_eq!(server.listeners.start_bound(bound, &server.config), [""; 0]);
    assert!(share_port(tcp.as_fd(), true).unwrap(), "it was not shared any more");
}

#[test]
fn an_address_that_cannot_be_bound_leaves_none_bound() {
    let [stays, new] = [(); 2].map(|()| address());
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server::start(&[stays], &Arc::default());
    let next = server.next(&[stays, new, taken.local_addr().unwrap()]);
    assert!(server.listeners.bind(&next).is_err());
    assert!(is_free(new) && is_answered(stays));
}

#[test]
fn a_worker_that_stops_late_keeps_no_socket_but_its_own() {
    let (own, gate) = (address(), Arc::<Mutex<()>>::default());
    let held = gate.lock().unwrap();
    let server = Server::start(&[own], &gate);
    let next = server.next(&[]);
    let _ = server.listeners.close_those_gone(&next, &server.listeners.bind(&next).unwrap());
    let open = || {
        let state = server.listeners.lock();
        let former = state.places[0].former.iter().flat_map(|former| &former.sockets);
        former.filter(|socket| socket.strong_count() > 0).count()
    };
    assert_eq!((open(), server.listeners.worker_count()), (1, 1));
    drop(held);
    let end = Instant::now() + Duration::from_secs(5);
    while server.listeners.worker_count() > 0 && Instant::now() < end {
        thread::sleep(LOOK);
    }
    assert!(open() == 0 && is_free(own));
    let bound = server.listeners.bind(&server.config).unwrap();
    assert_eq!(server.listeners.start_bound(bound, &server.config), [""; 0]);
    assert!(is_answered(own));
    let state = server.listeners.lock();
    assert!(state.places[0].late.is_empty() && state.meters.len() == 2);
    assert_eq!(server.listeners.counters.all().len(), 2, "engines count where others did");
}

#[test]
fn a_server_that_stops_waits_for_workers_that_a_reload_is_stopping() {
    let (own, gate) = (address(), Arc::<Mutex<()>>::default());
    let held = gate.lock().unwrap();
    let server = Server::start(&[own], &gate);
    let listeners = &server.listeners;
    let soon = || Instant::now() + Duration::from_secs(3);
    thread::scope(|scope| {
        scope.spawn(|| listeners.close(&[0], (STOP_MAX, Duration::ZERO)));
        let end = soon();
        while !listeners.addresses().iter().all(Option::is_none) && Instant::now() < end {
            thread::sleep(LOOK);
        }
        let stopped = listeners.stop(tcp::Stop::Now);
        assert!(stopped.workers.is_empty(), "the reload has them");
        assert!(!listeners.await_closings(Instant::now() + 2 * LOOK));
        drop(held);
        assert!(listeners.await_closings(soon()));
    });
}

#[test]
fn a_wildcard_that_takes_the_queries_of_a_single_address_does_not_wait_for_its_workers() {
    let (single, gate) = (address(), Arc::<Mutex<()>>::default());
    let wildcard = SocketAddr::from(([0; 4], single.port()));
    let held = gate.lock().unwrap();
    let server = Server::start(&[single], &gate);
    let next = server.next(&[wildcard]);
    let (bound, start) = (server.listeners.bind(&next).unwrap(), Instant::now());
    let _ = server.listeners.close_those_gone(&next, &bound);
    let took = start.elapsed();
    drop(held);
    assert!(took < DRAIN_MAX, "{took:?}");
    assert_eq!(server.listeners.start_bound(bound, &next), Vec::<String>::new());
    assert!(is_answered(single));
}

#[test]
fn an_address_is_not_bound_while_a_former_socket_of_another_process_receives() {
    let (own, gate) = (address(), Arc::<Mutex<()>>::default());
    let handed_over =
        vec![StdSocket::bind(own).unwrap().into(), TcpListener::bind(own).unwrap().into()];
    let held = gate.lock().unwrap();
    let server = Server::start_with(&[own], &gate, InheritedSockets::adopt(handed_over));
    server.listeners.close(&[0], (Duration::ZERO, Duration::ZERO));
    let refused = server.listeners.bind(&server.config).err();
    assert!(refused.is_some_and(|error| error.contains("reload later")));
    drop(held);
    let end = Instant::now() + Duration::from_secs(5);
    while server.listeners.worker_count() > 0 && Instant::now() < end {
        thread::sleep(LOOK);
    }
    assert!(server.listeners.bind(&server.config).is_ok());
}

#[test]
fn an_address_that_comes_back_is_answered_on_at_the_sockets_that_a_supervisor_keeps_open() {
    let own = address();
    let of_supervisor = listen(&config(&[own]).listeners, InheritedSockets::default(), false);
    let of_supervisor = of_supervisor.unwrap().remove(0);
    let given = of_supervisor.descriptors().map(|it| it.try_clone_to_owned().unwrap()).collect();
    let found = InheritedSockets::adopt(given).of_supervisor();
    let server = Server::start_with(&[own], &Arc::default(), found);
    for _ in 0..2 {
        server.listeners.close(&[0], (STOP_MAX, DRAIN_MAX));
        let bound = server.listeners.bind(&server.config).unwrap();
        assert_eq!(server.listeners.start_bound(bound, &server.config), [""; 0]);
        // Each from a new port, by which the kernel chooses a socket.
        assert_eq!((0..40).filter(|_| !is_answered(own)).count(), 0);
    }
}

#[test]
fn a_wildcard_waits_for_the_tcp_socket_of_a_single_address_that_was_closed() {
    let single = address();
    let wildcard = SocketAddr::from(([0; 4], single.port()));
    let server = Server::start(&[single], &Arc::default());
    let state = server.listeners.lock();
    let held = state.places[0].open.as_ref().unwrap().sockets.tcp.clone();
    drop(state);
    server.listeners.close(&[0], (STOP_MAX, Duration::ZERO));
    let release = thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        drop(held);
    });
    let bound = server.listeners.bind(&server.next(&[wildcard]));
    release.join().unwrap();
    assert!(bound.is_ok(), "{:?}", bound.err());
}

#[test]
fn no_listener_comes_or_goes_while_a_successor_may_take_over() {
    let [own, new] = [(); 2].map(|()| address());
    let server = Server::start(&[own], &Arc::default());
    assert_eq!(server.listeners.offer().unwrap().len(), 3, "of two workers and TCP");
    for addresses in [&[][..], &[own, new], &[new]] {
        let refused = server.listeners.bind(&server.next(addresses));
        assert!(refused.is_err_and(|error| error.contains("a successor is taking over")));
    }
    assert!(server.listeners.bind(&server.next(&[own])).is_ok());
    server.listeners.end_offer();
    assert!(server.listeners.bind(&server.next(&[own, new])).is_ok());
}
