//! Listeners that come and go while the server runs.

use crate::server::{BINARY, Load, ask_once, http, wait_until, zone};
use std::collections::HashMap;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;
use zonda_testkit::process::{Folder, Process, free_port};
use zonda_testkit::{Question, ask};

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
