//! Pages whose addresses come and go while the server runs.

use super::{Server, address, command, is_closed, listeners, says, write};
use crate::server::{BINARY, http, wait_until};
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output};
use std::time::Duration;
use zonda_testkit::process::{Folder, Process, free_port};
use zonda_testkit::upstream::{Reply, always, say};
use zonda_testkit::{Question, Upstream, ask};

impl Server {
    /// Has the server read a configuration with these listeners, and keys of the admin interface
    /// beside its address and socket.
    fn configure(&self, dns: &[SocketAddr], keys: &str) -> Output {
        self.write_pages(dns, keys);
        self.run(&["reload"])
    }

    /// Writes such a configuration.
    fn write_pages(&self, dns: &[SocketAddr], keys: &str) {
        write(&self.folder, self.admin, &listeners(dns)); // [admin] is at its end
        let file = self.folder.path().join("zonda.toml");
        write!(OpenOptions::new().append(true).open(file).unwrap(), "{keys}").unwrap();
    }
}

/// The key that names addresses of a page.
fn key(name: &str, addresses: &[SocketAddr]) -> String {
    let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    format!("{name} = {addresses:?}\n")
}

/// The status with which an address answers a page; none if nothing listens there.
fn page(address: SocketAddr, path: &str) -> Option<u16> {
    TcpStream::connect(address).ok()?;
    Some(http(address, &format!("GET {path} HTTP/1.1\r\n")).0)
}

#[test]
fn addresses_of_pages_come_and_go_at_a_reload() {
    let [dns, one, other] = [(); 3].map(|()| address());
    let server = Server::start(&[dns]);
    let pages = ["/health", "/ready", "/metrics"];
    let (none, no, yes) = ([None; 3], Some(404), Some(200));
    for (health, ready, metrics, expected) in [
        (&[][..], &[][..], &[][..], [none, none]),
        (&[one], &[], &[], [[yes, no, no], none]),
        (&[one], &[one, other], &[], [[yes, yes, no], [no, yes, no]]),
        (&[other], &[one], &[other], [[no, yes, no], [yes, no, yes]]),
        (&[other], &[], &[], [none, [yes, no, no]]),
        (&[], &[], &[one], [[no, no, yes], none]),
        (&[], &[], &[], [none, none]),
    ] {
        let lists = [("health", health), ("ready", ready), ("metrics", metrics)];
        let keys = lists.map(|(name, addresses)| key(name, addresses)).concat();
        let output = server.configure(&[dns], &keys);
        assert!(output.status.success(), "{output:?}");
        let found = [one, other].map(|address| pages.map(|path| page(address, path)));
        assert_eq!(found, expected, "{keys}");
    }
    let log = server.process.log("");
    assert!(!log.contains("next start") && !log.contains(" ERROR "), "{log}");
}

#[test]
fn a_page_that_cannot_be_bound_leaves_the_former_configuration_and_its_pages_in_force() {
    let [dns, new_dns, former, free] = [(); 4].map(|()| address());
    let server = Server::start(&[dns]);
    assert!(server.configure(&[dns], &key("health", &[former])).status.success());
    // Addresses are bound in their order: this one after that which is free.
    let taken = TcpListener::bind("127.0.0.2:0").unwrap();
    let place = taken.local_addr().unwrap();
    let keys = key("health", &[free]) + &key("ready", &[place]);
    let next = [dns, new_dns];
    for _ in 0..2 {
        let output = server.configure(&next, &keys);
        let text = String::from_utf8(output.stderr).unwrap();
        let file = std::fs::read_to_string(server.folder.path().join("zonda.toml")).unwrap();
        let line = file.lines().position(|line| line.starts_with("ready")).unwrap() + 1;
        let told = format!("zonda.toml:{line}:9: cannot bind {place} for `ready` of [admin]: ");
        assert!(!output.status.success() && text.contains(&told), "{text}");
        assert!(text.contains("choose another address"), "{text}");
        assert_eq!([page(former, "/health"), page(free, "/health")], [Some(200), None]);
        assert_eq!(says(dns), ["NOERROR", "NOERROR"]);
        assert!(is_closed(new_dns));
    }
    drop(taken);
    let output = server.configure(&next, &keys);
    assert!(output.status.success(), "{output:?}");
    let found = [(former, "/health"), (free, "/health"), (place, "/ready")];
    assert_eq!(found.map(|(address, path)| page(address, path)), [None, Some(200), Some(200)]);
    assert_eq!(says(new_dns), ["NOERROR", "NOERROR"]);
}

#[test]
fn a_page_moves_between_one_address_and_all_addresses_of_a_port() {
    let (dns, port) = (address(), free_port());
    let [all, own] = [[0, 0, 0, 0], [127, 0, 0, 1]].map(|ip| SocketAddr::from((ip, port)));
    let other = SocketAddr::from(([127, 0, 0, 2], port));
    let server = Server::start(&[dns]);
    for (place, expected) in [(all, Some(200)), (own, None), (all, Some(200)), (own, None)] {
        let output = server.configure(&[dns], &key("health", &[place]));
        assert!(output.status.success(), "{place}: {output:?}");
        assert_eq!(page(own, "/health"), Some(200), "{place}");
        assert_eq!(page(other, "/health"), expected, "{place}");
    }
    // Both at once would fail at a start, and do so here.
    assert!(!server.configure(&[dns], &key("health", &[all, own])).status.success());
    assert_eq!([own, other].map(|it| page(it, "/health")), [Some(200), None]);
}

#[test]
fn a_page_at_the_address_of_the_interface_waits_for_the_next_start_and_all_else_does_not() {
    let [dns, new_dns, other] = [(); 3].map(|()| address());
    let server = Server::start(&[dns]);
    let all = SocketAddr::from(([0, 0, 0, 0], server.admin.port()));
    for place in [server.admin, all] {
        let keys = key("metrics", &[place, other]);
        let output = server.configure(&[dns, new_dns], &keys);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("`address` or `bind-statistics` of [admin] has it"), "{text}");
        assert_eq!(page(other, "/metrics"), None, "a start would fail, too");
        server.write_pages(&[dns, new_dns], &keys);
        let file = server.folder.path().join("zonda.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        let address = format!("address = \"{}\"", server.admin);
        std::fs::write(&file, text.replacen(&address, "address = \"off\"", 1)).unwrap();
        let output = server.run(&["reload"]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!([server.admin, other].map(|it| page(it, "/metrics")), [Some(200); 2]);
        assert_eq!(says(new_dns), ["NOERROR", "NOERROR"]);
        assert!(!server.process.log_soon(&format!("address={place}")).is_empty());
        assert!(server.configure(&[dns], "").status.success());
    }
}

#[test]
fn a_connection_to_a_page_that_is_gone_gets_it_no_more() {
    let [dns, one] = [(); 2].map(|()| address());
    let server = Server::start(&[dns]);
    assert!(server.configure(&[dns], &key("health", &[one])).status.success());
    let mut client = TcpStream::connect(one).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut status = || {
        client.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        let mut reply = [0; 1000];
        let octets = client.read(&mut reply).unwrap();
        String::from_utf8_lossy(&reply[9..octets.max(12)])[..3].to_owned()
    };
    assert_eq!(status(), "200");
    assert!(server.configure(&[dns], "").status.success());
    assert_eq!(status(), "404");
}

#[test]
fn a_thread_of_a_page_that_is_gone_is_shown_no_more() {
    let [dns, one] = [(); 2].map(|()| address());
    let server = Server::start(&[dns]);
    let name = format!("thread=\"admin-pages-{one}\"");
    let is_shown = || http(server.admin, "GET /metrics HTTP/1.1\r\n").1.contains(&name);
    for _ in 0..2 {
        assert!(server.configure(&[dns], &key("health", &[one])).status.success());
        assert!(is_shown());
        assert!(server.configure(&[dns], "").status.success());
        assert!(!is_shown());
    }
}

#[test]
fn a_successor_gets_the_sockets_of_pages_that_a_reload_has_added_and_no_others() {
    let [dns, added, removed] = [(); 3].map(|()| address());
    let mut server = Server::start(&[dns]);
    assert!(server.configure(&[dns], &key("health", &[removed])).status.success());
    assert!(server.configure(&[dns], &key("health", &[added])).status.success());
    let log = server.folder.path().join("next.log");
    let next = Process::start(&command(&server.folder, &["--take-over"]), &log).unwrap();
    wait_until("the former server ends", || server.process.ended());
    server.process = next;
    assert_eq!([added, removed].map(|it| page(it, "/health")), [Some(200), None]);
    let log = server.process.log("");
    assert!(!log.contains("not in the configuration"), "{log}");
    assert!(server.configure(&[dns], &key("health", &[removed])).status.success());
    assert_eq!([added, removed].map(|it| page(it, "/health")), [None, Some(200)]);
}

#[test]
fn pages_of_a_followed_corefile_move_and_one_that_is_taken_is_told_by_its_line_and_tried_again() {
    let folder = Folder::new("corefile-pages");
    let upstream = Upstream::start([always().then([say(Reply::address(1))])]);
    let [dns, admin, one, other, metrics] = [(); 5].map(|()| address());
    let block = |plugins: &str| {
        let to = upstream.address;
        format!(".:53 {{\n reload\n forward . {to}\n{plugins}}}\n")
    };
    let file = folder.write("Corefile", block(&format!(" health {one}\n ready {one}\n")));
    let mut command = Command::new(BINARY);
    command.args(["serve", "--listen", &dns.to_string(), "--corefile"]).arg(&file);
    command.env("ZONDA_ADMIN_ADDRESS", admin.to_string());
    command.env("ZONDA_ADMIN_SOCKET", folder.path().join("admin.sock"));
    command.env("ZONDA_WATCH_INTERVAL", "100 ms");
    command.env("ZONDA_STATE", folder.path().join("state"));
    let process = Process::start(&command, &folder.path().join("log")).unwrap();
    wait_until("the page is answered", || page(one, "/health") == Some(200));
    let replace = |plugins: &str| {
        let new = folder.write("new", block(plugins));
        std::fs::rename(new, &file).unwrap();
    };
    replace(&format!(
        " health {other}\n ready {one}\n template ANY ANY no.example {{\n  rcode NXDOMAIN\n }}\n"
    ));
    wait_until("the page has moved", || page(other, "/health") == Some(200));
    assert_eq!([page(one, "/health"), page(one, "/ready")], [Some(404), Some(200)]);
    let denied = ask(dns, &Question::new("a.no.example", "A").recursive()).unwrap();
    assert_eq!(denied.rcode_text(), "NXDOMAIN", "all else is in force");
    let taken = TcpListener::bind("127.0.0.2:0").unwrap();
    let place = taken.local_addr().unwrap();
    replace(&format!(" health {one}\n ready {place}\n prometheus {metrics}\n"));
    wait_until("the page cannot be bound", || {
        process.log("").contains(&format!("Corefile:5:1: cannot bind {place} for `ready`"))
    });
    assert_eq!([page(one, "/ready"), page(other, "/health")], [Some(200); 2]);
    assert_eq!([page(metrics, "/metrics"), page(one, "/health")], [None, Some(404)]);
    drop(taken);
    wait_until("it is tried again", || page(place, "/ready") == Some(200));
    let found = [page(metrics, "/metrics"), page(one, "/health"), page(other, "/health")];
    assert_eq!(found, [Some(200), Some(200), None]);
}
