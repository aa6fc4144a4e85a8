//! How a server ends: told to, replaced, or killed.

use crate::server::{Load, Server, ask_once, run, wait_until};
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;
use zonda_testkit::Question;
use zonda_testkit::client::receive;
use zonda_testkit::process::{Folder, Process, free_port};

#[test]
fn a_stop_answers_what_was_received() {
    let server = Server::start(&[], "");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.zonda.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    let query = Question::new("www.example.org", "TXT").to_bytes(1);
    for _ in 0..200 {
        socket.send(&query).unwrap();
    }
    assert_eq!(server.post("/v1/stop").0, 200);
    let mut reply = [0; 512];
    let answered = (0..200).take_while(|_| receive(&socket, &mut reply).is_ok()).count();
    assert_eq!(answered, 200);
}

#[test]
fn a_termination_signal_answers_what_was_received_over_tcp() {
    let server = Server::start(&[], "");
    let mut stream = TcpStream::connect(server.zonda.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    let query = Question::new("www.example.org", "TXT").to_bytes(1);
    let framed = [&(query.len() as u16).to_be_bytes(), &*query].concat();
    stream.write_all(&framed.repeat(200)).unwrap();
    let mut first = [0];
    stream.read_exact(&mut first).unwrap(); // the connection is served
    server.zonda.process.signal("TERM");
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    let replies = [&first[..], &rest].concat();
    let (mut left, mut count) = (&replies[..], 0);
    while let [a, b, after @ ..] = left {
        left = &after[usize::from(u16::from_be_bytes([*a, *b]))..];
        count += 1;
    }
    assert_eq!(count, 200);
}

#[test]
fn successors_take_over_one_after_the_other_without_losing_a_query() {
    let mut server = Server::start(&[], "");
    let load = [false, false, true].map(|tcp| Load::start(server.zonda.address, tcp));
    for number in 0..3 {
        let log = server.folder.path().join(format!("{number}.log"));
        let successor = Process::start(&server.command(&["--take-over"]), &log).unwrap();
        wait_until("the former server ends", || server.zonda.process.ended());
        server.zonda.process = successor;
        assert_eq!(server.version(), "\"version 1\"", "{}", server.zonda.process.log(""));
        assert_eq!(server.get("/ready").0, 200, "the HTTP address moved too");
        assert!(run(&["status", "--socket", &server.socket()]).status.success());
    }
    thread::sleep(Duration::from_millis(200));
    load.into_iter().for_each(|load| load.finish(20));
}

#[test]
fn a_successor_that_cannot_start_changes_nothing() {
    let server = Server::start(&[], "");
    let load = Load::start(server.zonda.address, false);
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    for _ in 0..2 {
        let mut command = server.command(&["--take-over", "--listen", &listen]);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("cannot listen on"));
        assert!(run(&["status", "--socket", &server.socket()]).status.success());
    }
    load.finish(10);
}

#[test]
fn without_a_server_there_is_nothing_to_take_over() {
    let folder = Folder::new("alone");
    let socket = folder.path().join("admin.sock");
    let zone = folder.write("zone", crate::server::zone(1));
    let config = folder.write(
        "zonda.toml",
        format!(
            "version = 1\n[admin]\naddress = \"off\"\nsocket = {socket:?}\n\
             [[zone]]\nname = \"example.org\"\nfile = {zone:?}\n\
             [[listen]]\naddress = \"127.0.0.1:{}\"\n",
            free_port()
        ),
    );
    let output = run(&["serve", "--take-over", "--config", config.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("start without --take-over"), "{said}");
}

#[test]
fn a_killed_server_leaves_nothing_that_hinders_the_next() {
    let folder = Folder::new("killed");
    let path = folder.path().join("queries.log");
    let mut server = Server::start(&[], &format!("[query-log]\noutput = {path:?}"));
    let address = server.zonda.address;
    let flood = thread::spawn(move || flood(address));
    wait_until("there are lines", || fs::metadata(&path).is_ok_and(|file| file.len() > 100_000));
    server.zonda.process.signal("KILL");
    flood.join().unwrap();
    wait_until("it is gone", || server.zonda.process.ended());
    // The kill may come at any octet of a line; here it does.
    let half_a_line = "2026-01-01T00:00:00Z 127.0.0.1";
    OpenOptions::new().append(true).open(&path).unwrap().write_all(half_a_line.as_bytes()).unwrap();
    let log = server.folder.path().join("next.log");
    let next = Process::start(&server.command(&[]), &log).unwrap();
    let question = Question::new("www.example.org", "TXT");
    wait_until("the next one answers", || ask_once(address, &question).is_ok());
    assert!(run(&["status", "--socket", &server.socket()]).status.success());
    let is_alone = || {
        let text = fs::read_to_string(&path).unwrap();
        let (_, behind) = text.split_once(half_a_line).unwrap();
        behind.starts_with('\n') && behind[1..].contains("www.example.org.")
    };
    wait_until("lines follow that are not mixed with the half one", is_alone);
    drop(next);
}

/// Sends queries until the server listens no more.
fn flood(server: SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server).unwrap();
    let query = Question::new("www.example.org", "TXT").to_bytes(1);
    for _ in 0..2_000_000 {
        if socket.send(&query).is_err() {
            return; // the port is unreachable
        }
    }
}

#[test]
fn without_the_rights_of_root_it_reloads_and_stops_as_well() {
    if !run_as_root() {
        return; // only root has rights to give up
    }
    let mut server = Server::start(&[], "user = \"nobody\"");
    server.write_zone(&crate::server::zone(2));
    assert_eq!(server.post("/v1/reload").0, 200);
    assert_eq!(server.version(), "\"version 2\"");
    let status = server.get("/v1/status").1;
    let pid = status.lines().find_map(|line| line.trim().strip_prefix("\"pid\": ")).unwrap();
    let process = fs::read_to_string(format!("/proc/{}/status", pid.trim_end_matches(',')));
    let process = process.unwrap();
    let user = process.lines().find(|line| line.starts_with("Uid:")).unwrap();
    assert!(!user.split_whitespace().any(|id| id == "0"), "{user}");
    let log = server.folder.path().join("successor.log");
    let successor = Process::start(&server.command(&["--take-over"]), &log).unwrap();
    wait_until("the former server ends", || server.zonda.process.ended());
    server.zonda.process = successor;
    assert!(run(&["stop", "--socket", &server.socket()]).status.success());
    wait_until("the server ends", || server.zonda.process.ended());
}

/// Whether the test runs as root.
fn run_as_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0)
}
