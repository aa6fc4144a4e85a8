//! Flags of dnsperf, given to dnsperf and to `zonda bench load`: the server must see the same.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write;
use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use zonda_testkit::process::{Folder, free_port, required};
use zonda_wire::Message;

/// Queries in the file.
const QUERIES: usize = 200;

/// A query as the server saw it.
#[derive(Clone)]
struct ReceivedQuery {
    /// Moment at which the query came.
    at: Instant,
    /// The client that sent it.
    peer: SocketAddr,
    /// The octets of the query but for the ID.
    octets: Vec<u8>,
}

/// A server that takes notes, and answers with NXDOMAIN if it answers.
struct Server {
    /// The port of the server.
    port: String,
    /// What has come since it was last asked.
    seen: Arc<Mutex<Vec<ReceivedQuery>>>,
    /// Tells the thread to end.
    stop: Arc<AtomicBool>,
    /// The thread that answers.
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(is_answering: bool) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let port = socket.local_addr().unwrap().port().to_string();
        let (stop, seen) =
            (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<ReceivedQuery>>>::default());
        let (stopped, notes) = (Arc::clone(&stop), Arc::clone(&seen));
        let thread = thread::spawn(move || {
            let mut buffer = [0; 512];
            while !stopped.load(Ordering::Relaxed) {
                let Ok((len, peer)) = socket.recv_from(&mut buffer) else { continue };
                let octets = buffer[2..len].to_vec();
                notes.lock().unwrap().push(ReceivedQuery { at: Instant::now(), peer, octets });
                if is_answering {
                    (buffer[2], buffer[3]) = (buffer[2] | 0x80, 3);
                    socket.send_to(&buffer[..len], peer).unwrap();
                }
            }
        });
        Self { port, seen, stop, thread: Some(thread) }
    }

    /// Runs a program to its end; returns the queries that the server received.
    fn watch(&self, program: impl AsRef<OsStr>, arguments: &[&str]) -> Vec<ReceivedQuery> {
        self.seen.lock().unwrap().clear();
        let output = run(program, &[arguments, &["-s", "127.0.0.1", "-p", &self.port]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        std::mem::take(&mut *self.seen.lock().unwrap())
    }

    /// The queries that the server received from dnsperf and from `zonda bench`; nothing if dnsperf
    /// is missing and tests may do without it.
    fn watch_both(&self, flags: &[&str]) -> Option<[Vec<ReceivedQuery>; 2]> {
        let dnsperf = required("dnsperf")?;
        let folder = Folder::new("dnsperf-flags");
        let mut lines = String::new();
        for number in 0..QUERIES {
            let rtype = ["A", "AAAA", "MX"][number % 3];
            writeln!(lines, "n{number}.example {rtype}").unwrap();
        }
        let file = folder.write("queries.txt", lines).display().to_string();
        let flags = [flags, &["-d", &file]].concat();
        let theirs = self.watch(dnsperf, &flags);
        let ours = self.watch(ZONDA, &[&["bench", "load"], &flags[..]].concat());
        Some([theirs, ours])
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

/// The program under test.
const ZONDA: &str = env!("CARGO_BIN_EXE_zonda");

/// Runs a program to its end.
fn run(program: impl AsRef<OsStr>, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).env_remove("ZONDA").output().unwrap()
}

/// The queries in ascending order.
fn messages(seen: &[ReceivedQuery]) -> Vec<&[u8]> {
    let mut messages: Vec<&[u8]> = seen.iter().map(|one| &one.octets[..]).collect();
    messages.sort_unstable();
    messages
}

/// Returns the clients that have asked.
fn peers(seen: &[ReceivedQuery]) -> BTreeSet<SocketAddr> {
    seen.iter().map(|one| one.peer).collect()
}

/// From the first query to the last.
fn duration(seen: &[ReceivedQuery]) -> Duration {
    seen.last().unwrap().at - seen[0].at
}

#[test]
fn the_same_flags_send_the_same_queries_from_as_many_clients() {
    let server = Server::start(true);
    for flags in [
        &[][..],
        &["-n", "2"],
        &["-n", "2", "-l", "20"],
        &["-c", "4"],
        &["-c", "20", "-q", "5"],
        // Slowly, so that one thread does not send everything before the other has begun.
        &["-c", "4", "-T", "2", "-Q", "400"],
        &["-q", "1"],
        &["-t", "2"],
        &["-S", "1"],
        &["-b", "64"],
        &["-e"],
        &["-D"],
        &["-e", "-D"],
        &["-E", "10:0102030405060708"],
        &["-f", "inet"],
        &["-f", "any"],
        &["-m", "udp"],
    ] {
        let Some([theirs, ours]) = server.watch_both(flags) else { return };
        assert_eq!(messages(&ours), messages(&theirs), "{flags:?}");
        assert_eq!(peers(&ours).len(), peers(&theirs).len(), "{flags:?}");
    }
}

/// Each kind of line that an update may have.
const UPDATES: &str = "\
example.com
require a
require a A
require a A 192.0.2.1
prohibit x
prohibit x A
add new 3600 A 10.1.2.3
delete y A 10.1.2.3
delete z A
delete w
send
example.org.
add www.example.org. 60 AAAA 2001:db8::1
add mail 60 MX 10 host.example.net.
send
";

#[test]
fn the_same_file_of_updates_is_the_same_messages() {
    let Some(dnsperf) = required("dnsperf") else { return };
    let (server, folder) = (Server::start(true), Folder::new("dnsperf-updates"));
    let file = folder.write("updates.txt", UPDATES).display().to_string();
    let read = |seen: &[ReceivedQuery]| -> Vec<Message> {
        let whole = |octets: &&[u8]| Message::parse(&[&[0, 0], *octets].concat()).unwrap();
        messages(seen).iter().map(whole).collect()
    };
    for flags in [&["-u"][..], &["-u", "-e"], &["-u", "-n", "3"]] {
        let flags = [flags, &["-d", &file]].concat();
        let theirs = server.watch(&dnsperf, &flags);
        let ours = server.watch(ZONDA, &[&["bench", "load"], &flags[..]].concat());
        let (mut theirs, mut ours) = (read(&theirs), read(&ours));
        for messages in [&mut theirs, &mut ours] {
            messages.sort_by_key(|message| message.questions[0].name.to_string());
        }
        assert_eq!(ours, theirs, "{flags:?}");
    }
}

#[test]
fn queries_come_from_the_address_and_ports_that_were_asked_for() {
    let server = Server::start(true);
    let port = free_port().to_string();
    let flags = ["-a", "127.0.0.2", "-x", &port, "-c", "2"];
    let Some([theirs, ours]) = server.watch_both(&flags) else { return };
    assert_eq!(peers(&ours), peers(&theirs));
    assert!(peers(&ours).iter().all(|peer| peer.ip().to_string() == "127.0.0.2"));
}

#[test]
fn no_more_queries_wait_than_were_allowed_and_those_without_reply_make_room() {
    let server = Server::start(false);
    for (flags, count) in [
        (["-q", "7", "-t", "5", "-l", "0.5"], 7),
        // The second seven follow when the first are lost.
        (["-q", "7", "-t", "1", "-l", "1.8"], 14),
    ] {
        let Some([theirs, ours]) = server.watch_both(&flags) else { return };
        assert_eq!((ours.len(), theirs.len()), (count, count), "{flags:?}");
    }
}

#[test]
fn a_rate_holds_queries_back() {
    let server = Server::start(true);
    let Some(both) = server.watch_both(&["-Q", "400"]) else { return };
    for seen in both {
        assert_eq!(seen.len(), QUERIES);
        assert!(duration(&seen) > Duration::from_millis(400), "{:?}", duration(&seen));
    }
}

#[test]
fn help_is_given_and_what_is_not_there_is_refused_with_a_reason() {
    let help = run(ZONDA, &["bench", "load", "-h"]);
    assert!(help.status.success() && help.stderr.is_empty());
    for (flags, reason) in [
        (["-m", "dot"], "queries go over UDP or TCP"),
        (["-m", "doh"], "queries go over UDP or TCP"),
        (["-m", "doq"], "queries go over UDP or TCP"),
    ] {
        let output = run(ZONDA, &[&["bench", "load"], &flags[..]].concat());
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {text}");
        let line = text.lines().next().unwrap();
        assert!(line.starts_with("error: ") && line.contains(reason), "{flags:?}: {text}");
        assert!(line.ends_with("not there yet"), "{flags:?}: {text}");
    }
}
