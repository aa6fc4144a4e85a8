//! Listeners that come and go while the server runs.

mod pages;
mod watched_files;

use crate::server::{BINARY, Load, ask_once, http, wait_until, zone};
use std::collections::HashMap;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Output};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::thread;
use std::time::{Duration, Instant};
use zonda_testkit::process::{Folder, Process, free_port};
use zonda_testkit::upstream::{Record, Reply, always, say, wait, when};
use zonda_testkit::{Question, Upstream, ask};

/// A server with a zone, and listeners that change.
struct Server {
    process: Process,
    admin: SocketAddr,
    folder: Folder,
}

impl Server {
    /// Starts a server with listeners at these addresses.
    fn start(addresses: &[SocketAddr]) -> Self {
        Self::start_with(&listeners(addresses))
    }

    /// Starts a server with such sections beside those of its zone and the admin interface.
    fn start_with(sections: &str) -> Self {
        let folder = Folder::new("listener-changes");
        folder.write("example.org.zone", zone(1));
        let admin = address();
        write(&folder, admin, sections);
        let process = Process::start(&command(&folder, &[]), &folder.path().join("log")).unwrap();
        let server = Self { process, admin, folder };
        wait_until(&format!("the server is ready: {}", server.process.log("")), || {
            server.run(&["ready"]).status.success()
        });
        server
    }

    /// Has the server read a configuration with these sections.
    fn try_reload(&self, sections: &str) -> Output {
        write(&self.folder, self.admin, sections);
        self.run(&["reload"])
    }

    /// Has the server listen at these addresses.
    fn reload(&self, addresses: &[SocketAddr]) {
        let output = self.try_reload(&listeners(addresses));
        assert!(output.status.success(), "{output:?}");
    }

    /// What `zonda` says to a command that the server carries out.
    fn run(&self, arguments: &[&str]) -> Output {
        let socket = self.folder.path().join("admin.sock");
        Command::new(BINARY).args(arguments).arg("--socket").arg(socket).output().unwrap()
    }

    /// All counters, by name and labels.
    fn counters(&self) -> HashMap<String, f64> {
        let page = http(self.admin, "GET /metrics HTTP/1.1\r\n").1;
        let value = |line: &str| {
            let (name, value) = line.rsplit_once(' ')?;
            let (metric, _) = name.split_once('{').unwrap_or((name, ""));
            metric.ends_with("_total").then(|| Some((name.to_owned(), value.parse().ok()?)))?
        };
        page.lines().filter_map(value).collect()
    }
}

/// An address that is free.
fn address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], free_port()))
}

/// The sections of listeners.
fn listeners(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(|address| format!("[[listen]]\naddress = \"{address}\"\n")).collect()
}

/// Writes the configuration. Sections that have a zone stand in place of the zone.
fn write(folder: &Folder, admin: SocketAddr, sections: &str) {
    let socket = folder.path().join("admin.sock");
    let zone = match sections.contains("[[zone]]") {
        true => "",
        false => "[[zone]]\nname = \"example.org\"\nfile = \"example.org.zone\"\n",
    };
    let admin = format!("[admin]\naddress = \"{admin}\"\nsocket = {socket:?}\n");
    folder.write("zonda.toml", format!("version = 1\n{sections}{zone}{admin}"));
}

/// The command that starts a server in a folder.
fn command(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(["serve", "--config"]).arg(folder.path().join("zonda.toml")).args(arguments);
    command
}

/// What an address answers over UDP and TCP: the response code, or that there is no answer.
fn says(address: SocketAddr) -> [String; 2] {
    let question = Question::new("www.example.org", "TXT").edns(1232);
    [question.clone(), question.over_tcp()].map(|question| {
        ask(address, &question).map_or_else(|_| "nothing".to_owned(), |it| it.rcode_text())
    })
}

/// Whether nothing listens at an address.
fn is_closed(address: SocketAddr) -> bool {
    let question = Question::new("www.example.org", "TXT");
    ask_once(address, &question).is_err() && TcpStream::connect(address).is_err()
}

#[test]
fn a_reload_adds_a_listener_and_removes_another_without_losing_a_query_elsewhere() {
    let [stays, one, other] = [(); 3].map(|()| address());
    let server = Server::start(&[one, stays]);
    let load = [false, false, true].map(|tcp| Load::start(stays, tcp));
    for (gone, new) in [(one, other), (other, one), (one, other)] {
        server.reload(&[new, stays]);
        assert_eq!(says(new), ["NOERROR", "NOERROR"], "{}", server.process.log(""));
        wait_until("the former one is closed", || is_closed(gone));
        let status = String::from_utf8(server.run(&["status"]).stdout).unwrap();
        assert!(status.contains(&new.to_string()), "{status}");
        assert!(!status.contains(&gone.to_string()), "{status}");
    }
    thread::sleep(Duration::from_millis(100));
    load.into_iter().for_each(|load| load.finish(20));
    let log = server.process.log("");
    assert!(!log.contains("next start") && !log.contains(" ERROR "), "{log}");
}

#[test]
fn a_listener_that_is_removed_answers_what_its_socket_has_received() {
    let [stays, gone] = [(); 2].map(|()| address());
    let server = Server::start(&[stays, gone]);
    let query = Question::new("www.example.org", "TXT").to_bytes(1);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(gone).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    server.process.signal("STOP");
    (0..200).for_each(|_| assert_eq!(socket.send(&query).unwrap(), query.len()));
    write(&server.folder, server.admin, &listeners(&[stays]));
    server.process.signal("HUP");
    server.process.signal("CONT");
    let mut reply = [0; 512];
    let answered = (0..200).take_while(|_| socket.recv(&mut reply).is_ok()).count();
    assert_eq!(answered, 200);
    wait_until("it is closed", || is_closed(gone));
}

#[test]
fn a_connection_to_a_listener_that_is_removed_is_closed() {
    let [stays, gone] = [(); 2].map(|()| address());
    let server = Server::start(&[stays, gone]);
    let [mut open, mut kept] = [gone, stays].map(|it| TcpStream::connect(it).unwrap());
    server.reload(&[stays]);
    open.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    assert_eq!(open.read(&mut [0]).unwrap(), 0, "the server has ended the connection");
    kept.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(kept.read(&mut [0]).is_err(), "the connection to another listener is open");
    // An address that comes back is answered on at once.
    server.reload(&[gone, stays]);
    assert_eq!(says(gone), ["NOERROR", "NOERROR"]);
}

#[test]
fn an_address_that_is_taken_leaves_the_configuration_in_force_and_is_told() {
    let [stays, gone, free] = [(); 3].map(|()| address());
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = taken.local_addr().unwrap();
    let server = Server::start(&[stays, gone]);
    let next = listeners(&[free, place]) + "[identity]\nversion = \"next\"\n";
    let output = server.try_reload(&next);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && text.contains(&format!("cannot listen on {place}")),
        "{text}"
    );
    assert!(text.contains("another program has it"), "{text}");
    for (address, expected) in [(stays, "NOERROR"), (gone, "NOERROR"), (free, "nothing")] {
        assert_eq!(says(address), [expected; 2], "{address}");
    }
    drop(taken);
    let output = server.try_reload(&next);
    assert!(output.status.success(), "{output:?}");
    assert_eq!([place, free].map(says), [["NOERROR"; 2]; 2]);
    wait_until("the former ones are closed", || is_closed(stays) && is_closed(gone));
}

#[test]
fn no_counter_falls_when_listeners_come_and_go() {
    let [stays, one, other] = [(); 3].map(|()| address());
    let with = |addresses: &[SocketAddr]| {
        listeners(addresses)
            + "[metrics]\nzones = [\"example.org\"]\ncoredns-names = true\n\
               coredns-zones = [\"example.org\"]\n"
    };
    let server = Server::start_with(&with(&[stays, one]));
    let (mut former, mut queries) = (server.counters(), 0);
    for addresses in [[stays, other], [stays, one], [other, stays]] {
        assert!(server.try_reload(&with(&addresses)).status.success());
        for address in addresses {
            assert_eq!(says(address), ["NOERROR", "NOERROR"]);
            queries += 2;
        }
        let counters = server.counters();
        for (name, value) in &former {
            let now = counters.get(name).copied();
            assert!(now.is_some_and(|now| now >= *value), "{name} was {value} and is {now:?}");
        }
        let of = |name: &str| {
            let named = counters.iter().filter(|(known, _)| known.starts_with(name));
            named.map(|(_, value)| *value).sum::<f64>()
        };
        assert_eq!(of("zonda_queries_total"), f64::from(queries));
        assert_eq!(of("zonda_zone_queries_total{zone=\"example.org"), f64::from(queries));
        assert_eq!(of("coredns_dns_requests_total"), f64::from(queries));
        former = counters;
    }
    let of_server = |address| {
        let label = format!("coredns_dns_requests_total{{server=\"dns://{address}\"");
        let named = former.iter().filter(|(name, _)| name.starts_with(&label));
        named.map(|(_, value)| *value).sum::<f64>()
    };
    assert_eq!([stays, one, other].map(of_server), [6.0, 2.0, 4.0], "{former:?}");
}

#[test]
fn zones_at_some_listeners_move_to_a_new_one() {
    let [stays, gone, new] = [(); 3].map(|()| address());
    let with = |addresses: &[SocketAddr], own: SocketAddr| {
        let zone = "[[zone]]\nname = \"example.org\"\nfile = \"example.org.zone\"\n";
        listeners(addresses) + &format!("{zone}listen = [\"{own}\"]\n")
    };
    let server = Server::start_with(&with(&[gone, stays], gone));
    assert_eq!([gone, stays].map(says), [["NOERROR"; 2], ["REFUSED"; 2]]);
    let output = server.try_reload(&with(&[stays, new], new));
    assert!(output.status.success(), "{output:?}");
    assert_eq!([new, stays].map(says), [["NOERROR"; 2], ["REFUSED"; 2]]);
    wait_until("the former one is closed", || is_closed(gone));
    let explain = |address: SocketAddr| {
        let (name, listener) = ("www.example.org", address.to_string());
        let output = server.run(&["explain", name, "TXT", "--listener", &listener]);
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    assert!(explain(new).contains("example.org. is the longest match"), "{}", explain(new));
    let told = explain(gone);
    assert!(told.contains(&format!("no listener {gone}; there are: {stays}, {new}")), "{told}");
}

#[test]
fn a_successor_gets_the_sockets_of_a_listener_that_a_reload_has_added() {
    let [first, new] = [(); 2].map(|()| address());
    let mut server = Server::start(&[first]);
    server.reload(&[new]);
    let load = [false, false, true].map(|tcp| Load::start(new, tcp));
    for number in 0..2 {
        let log = server.folder.path().join(format!("{number}.log"));
        let next = Process::start(&command(&server.folder, &["--take-over"]), &log).unwrap();
        wait_until("the former server ends", || server.process.ended());
        server.process = next;
        let log = server.process.log("");
        assert!(!log.contains("not in the configuration"), "{log}");
    }
    thread::sleep(Duration::from_millis(200));
    load.into_iter().for_each(|load| load.finish(20));
    assert!(is_closed(first));
}

#[test]
fn a_single_address_comes_beside_all_addresses_of_its_port_and_goes_again() {
    let port = free_port();
    let [all, own] = ["0.0.0.0", "127.0.0.1"].map(|ip| format!("{ip}:{port}").parse().unwrap());
    let other = SocketAddr::from(([127, 0, 0, 2], port));
    let server = Server::start(&[all]);
    for addresses in [&[own, all][..], &[all], &[own, all], &[own], &[own, all]] {
        server.reload(addresses);
        assert_eq!(says(own), ["NOERROR", "NOERROR"], "{addresses:?}");
        match addresses.contains(&all) {
            true => assert_eq!(says(other), ["NOERROR", "NOERROR"], "{addresses:?}"),
            false => wait_until("other addresses are closed", || is_closed(other)),
        }
    }
}

#[test]
fn other_threads_and_protocols_of_a_listener_wait_for_the_next_start() {
    let [stays, new] = [(); 2].map(|()| address());
    let server = Server::start(&[stays]);
    let keys = "workers = 3\ntcp = false\n";
    let next = listeners(&[stays]) + keys + &listeners(&[new]) + keys;
    assert!(server.try_reload(&next).status.success());
    assert_eq!(says(stays), ["NOERROR", "NOERROR"]);
    assert_eq!(says(new), ["NOERROR", "nothing"]);
    let log = server.process.log("take effect at the next start");
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(server.try_reload(&listeners(&[stays])).status.success());
    let log = server.process.log("take effect at the next start");
    assert_eq!(log.lines().count(), 1, "a listener that is gone waits for nothing: {log}");
}

/// The sections of listeners with four workers each.
fn with_workers(addresses: &[SocketAddr]) -> String {
    let listener = |it: &SocketAddr| format!("[[listen]]\naddress = \"{it}\"\nworkers = 4\n");
    addresses.iter().map(listener).collect()
}

/// The sections of a zone that is forwarded.
fn forwarded(zone: &str, upstream: &Upstream, keys: &str) -> String {
    let to = upstream.address;
    format!("[[zone]]\nname = \"{zone}\"\n{keys}[zone.forward]\nto = [\"{to}\"]\n")
}

/// An upstream that has an address for each name, after seconds if the name begins with `slow`.
fn upstream(octet: u8) -> Upstream {
    let slow = when(|query| query.name.starts_with("slow"));
    Upstream::start([
        slow.then([wait(3000..3001), say(Reply::address(octet))]),
        always().then([say(Reply::address(octet))]),
    ])
}

/// Asks for many names, each from a new port, and without trying again: what was not answered.
fn ask_many(address: SocketAddr, label: &str) -> Vec<String> {
    let ask = |number: u32| {
        let question = Question::new(&format!("{label}-{number}.example"), "A").recursive();
        match ask_once(address, &question) {
            Ok(0) => None,
            other => Some(format!("{number}: {other:?}")),
        }
    };
    (0..200).filter_map(ask).collect()
}

/// Sends a query to be forwarded, and waits until an upstream has it.
fn send_slow(address: SocketAddr, upstream: &Upstream) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let asked = upstream.asked();
    let query = Question::new("slow.example", "A").recursive().to_bytes(1);
    socket.send_to(&query, address).unwrap();
    wait_until("the upstream is asked", || upstream.asked() > asked);
    socket
}

#[test]
fn a_listener_that_comes_back_answers_each_query_after_some_were_forwarded() {
    let [stays, own] = [(); 2].map(|()| address());
    let upstream = upstream(1);
    let with = |addresses: &[SocketAddr]| with_workers(addresses) + &forwarded(".", &upstream, "");
    let server = Server::start_with(&with(&[stays, own]));
    for round in 0..2 {
        assert_eq!(ask_many(own, &format!("before-{round}")), [""; 0]);
        assert!(server.try_reload(&with(&[stays])).status.success());
        assert!(is_closed(own));
        assert!(server.try_reload(&with(&[stays, own])).status.success());
        assert_eq!(ask_many(own, &format!("after-{round}")), [""; 0]);
    }
}

#[test]
fn all_addresses_get_the_queries_of_a_single_one_that_is_removed_while_others_wait() {
    let port = free_port();
    let [all, own] = ["0.0.0.0", "127.0.0.1"].map(|ip| format!("{ip}:{port}").parse().unwrap());
    let upstream = upstream(1);
    let with = |addresses: &[SocketAddr]| with_workers(addresses) + &forwarded(".", &upstream, "");
    let server = Server::start_with(&with(&[all, own]));
    assert_eq!(ask_many(own, "before"), [""; 0]);
    let client = send_slow(own, &upstream);
    assert!(server.try_reload(&with(&[all])).status.success());
    assert_eq!(ask_many(own, "removed"), [""; 0]);
    let mut reply = [0; 512];
    client.recv(&mut reply).unwrap();
    assert_eq!(reply[3] & 15, 5, "REFUSED: its listener is gone");
    assert_eq!(ask_many(own, "after"), [""; 0]);
}

#[test]
fn a_listener_comes_back_while_queries_to_the_former_one_wait() {
    let [stays, own] = [(); 2].map(|()| address());
    let upstream = upstream(1);
    let with = |addresses: &[SocketAddr]| with_workers(addresses) + &forwarded(".", &upstream, "");
    let server = Server::start_with(&with(&[stays, own]));
    let client = send_slow(own, &upstream);
    assert!(server.try_reload(&with(&[stays])).status.success());
    assert!(server.try_reload(&with(&[stays, own])).status.success());
    assert_eq!(ask_many(own, "back"), [""; 0]);
    client.recv(&mut [0; 512]).unwrap();
}

#[test]
fn names_of_a_listener_that_is_removed_are_asked_of_no_upstream_of_others() {
    let [stays, own] = [(); 2].map(|()| address());
    let public = upstream(1);
    let to_inner = Reply::empty().answer(Record::alias("b.inner.example"));
    let private = Upstream::start([
        when(|query| query.name.starts_with("slow")).then([wait(2500..2501), say(to_inner)]),
        always().then([say(Reply::address(2))]),
    ]);
    let own_zones = ["private.example", "inner.example"].map(|zone| {
        let keys = format!("listen = [\"{own}\"]\n");
        forwarded(zone, &private, &keys)
    });
    let without = listeners(&[stays]) + &forwarded(".", &public, "");
    let with = listeners(&[stays, own]) + &forwarded(".", &public, "") + &own_zones.concat();
    let server = Server::start_with(&with);
    let (stop, asked) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        for thread in 0..2 {
            let (stop, asked) = (&stop, &asked);
            scope.spawn(move || {
                let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                for number in 0.. {
                    let name = format!("n{thread}-{number}.private.example");
                    let query = Question::new(&name, "A").recursive().to_bytes(1);
                    asked.fetch_add(u32::from(socket.send_to(&query, own).is_ok()), Relaxed);
                    thread::sleep(Duration::from_millis(2));
                    if stop.load(Relaxed) {
                        return;
                    }
                }
            });
        }
        for _ in 0..3 {
            let query = Question::new("slow.private.example", "A").recursive().to_bytes(1);
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            client.send_to(&query, own).unwrap();
            thread::sleep(Duration::from_millis(200));
            assert!(server.try_reload(&without).status.success());
            thread::sleep(Duration::from_millis(2500)); // for the alias that is on its way
            assert!(server.try_reload(&with).status.success());
        }
        stop.store(true, Relaxed);
    });
    assert!(asked.load(Relaxed) > 1000 && private.asked() > 100, "{asked:?}");
    let told: Vec<_> = public.log().into_iter().map(|query| query.name).collect();
    assert!(!told.iter().any(|name| name.ends_with(".example.")), "{told:?}");
}

#[test]
fn a_new_listener_is_bound_once_zones_are_loaded() {
    let [stays, new] = [(); 2].map(|()| address());
    let server = Server::start(&[stays]);
    let zone = zone(1) + &(0..80_000).map(|n| format!("n{n} A 192.0.2.1\n")).collect::<String>();
    server.folder.write("large.zone", zone);
    let large = "[[zone]]\nname = \"example.org\"\nfile = \"large.zone\"\n";
    let port = format!(":{:04X}", new.port());
    let is_bound = || {
        let sockets = std::fs::read_to_string("/proc/net/udp").unwrap();
        sockets.lines().any(|line| line.split(' ').any(|word| word.ends_with(&port)))
    };
    assert!(!is_bound());
    let start = Instant::now();
    let (bound, end) = thread::scope(|scope| {
        let reload = scope.spawn(|| {
            let output = server.try_reload(&(listeners(&[stays, new]) + large));
            assert!(output.status.success(), "{output:?}");
            start.elapsed()
        });
        wait_until("the address is bound", is_bound);
        (start.elapsed(), reload.join().unwrap())
    });
    assert!(bound > end / 2, "bound after {bound:?} of {end:?}");
    assert_eq!(says(new), ["NOERROR", "NOERROR"]);
}

#[test]
fn many_reloads_leave_no_descriptor_open() {
    let [stays, own] = [(); 2].map(|()| address());
    let upstream = upstream(1);
    let with = |addresses: &[SocketAddr]| listeners(addresses) + &forwarded(".", &upstream, "");
    let server = Server::start_with(&with(&[stays]));
    let descriptors = || {
        let folder = format!("/proc/{}/fd", server.process.id());
        let all = std::fs::read_dir(folder).unwrap().flatten();
        let all = all.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        all.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
    };
    let mut counts = Vec::new();
    for round in 0..12 {
        let own = if round % 3 == 0 { address() } else { own };
        assert!(server.try_reload(&with(&[stays, own])).status.success());
        for _ in 0..10 {
            let question = Question::new(&format!("n{round}.example"), "A").recursive();
            assert_eq!(ask_once(own, &question).unwrap(), 0);
        }
        assert!(server.try_reload(&with(&[stays])).status.success());
        counts.push(descriptors());
    }
    let (first, last) = (counts[2], counts[11]);
    assert!(last <= first + 2, "{counts:?}"); // a connection that ends, a port to the upstream
}

#[test]
fn a_server_without_listeners_gets_one() {
    let new = address();
    let server = Server::start_with("listen = []\n");
    server.reload(&[new]);
    assert_eq!(says(new), ["NOERROR", "NOERROR"]);
    assert!(server.try_reload("listen = []\n").status.success());
    assert!(is_closed(new));
}
