//! What `zonda bench load` prints, beside what dnsperf prints and on a terminal.

#![allow(clippy::unwrap_used)]

use std::ffi::OsStr;
use std::net::UdpSocket;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use zonda_testkit::process::{Folder, required};

/// Answers everything with NXDOMAIN until it is dropped.
struct Server {
    /// The port of the server.
    port: String,
    /// Tells the thread to end.
    stop: Arc<AtomicBool>,
    /// The thread that answers.
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let port = socket.local_addr().unwrap().port().to_string();
        let stop = Arc::<AtomicBool>::default();
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut buffer = [0; 512];
            while !stopped.load(Ordering::Relaxed) {
                let Ok((len, peer)) = socket.recv_from(&mut buffer) else { continue };
                (buffer[2], buffer[3]) = (buffer[2] | 0x80, 3);
                let _ = socket.send_to(&buffer[..len], peer);
            }
        });
        Self { port, stop, thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

/// Runs a program to its end.
fn run(program: impl AsRef<OsStr>, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).env_remove("ZONDA").output().unwrap()
}

/// Text with every number as 0 and what was typed left out; equal neighbours are one line.
fn masked(output: &Output) -> String {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let mut lines: Vec<String> = text.lines().map(mask).collect();
    lines.dedup();
    lines.join("\n")
}

/// A line with every number as 0.
fn mask(line: &str) -> String {
    if let Some((head, _)) = line.split_once("Command line: ") {
        return head.to_owned();
    }
    let mut masked = String::new();
    for octet in line.chars() {
        match octet {
            '0'..='9' if masked.ends_with('0') => {}
            '0'..='9' => masked.push('0'),
            _ => masked.push(octet),
        }
    }
    // As many digits as there are: a day of the month may have a blank for one.
    masked.replace("  0 0:0:0 0", " 0 0:0:0 0")
}

#[test]
fn the_text_is_dnsperfs_but_for_the_numbers() {
    let Some(dnsperf) = required("dnsperf") else { return };
    let (server, folder) = (Server::start(), Folder::new("dnsperf-text"));
    let queries = folder.write("queries.txt", "a.test A\nb.test AAAA\n").display().to_string();
    let common = ["-s", "127.0.0.1", "-p", &server.port, "-d", &queries];
    let ours = ["bench", "load", "--format", "dnsperf"];
    for ends in [&["-n", "1"][..], &["-n", "3"], &["-l", "0.2"], &["-l", "2.3", "-S", "1"]] {
        let theirs = run(&dnsperf, &[&common, ends].concat());
        let ours = run(env!("CARGO_BIN_EXE_zonda"), &[&ours[..], &common, ends].concat());
        assert_eq!(masked(&ours), masked(&theirs), "{ends:?}");
        assert!(ours.stderr.is_empty());
    }
}

#[test]
fn intervals_are_told_where_nothing_reads_the_outcome() {
    let (server, folder) = (Server::start(), Folder::new("intervals"));
    let queries = folder.write("queries.txt", "a.test A\n").display().to_string();
    let arguments = ["bench", "load", "-p", &server.port, "-d", &queries, "--rate", "100"];
    let arguments = [&arguments[..], &["-l", "2.3", "-S", "1", "--format", "json"]].concat();
    let output = run(env!("CARGO_BIN_EXE_zonda"), &arguments);
    let lines = String::from_utf8(output.stderr).unwrap();
    assert!((1..=4).contains(&lines.lines().count()), "{lines}");
    assert!(lines.lines().all(|line| mask(line) == "0.0: 0.0"), "{lines}");
}

#[test]
fn a_bar_is_drawn_on_a_terminal_and_gone_at_the_end() {
    let Some(script) = required("script") else { return };
    let (server, folder) = (Server::start(), Folder::new("bar"));
    let queries = folder.write("queries.txt", "a.test A\n").display().to_string();
    let (zonda, port) = (env!("CARGO_BIN_EXE_zonda"), &server.port);
    let command = format!("{zonda} bench load -p {port} -d {queries} --rate 100 -l 2.5");
    let log = folder.path().join("log").display().to_string();
    let output = run(script, &["-qec", &command, &log]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    assert!(text.contains(" of 100 queries/s, 0.000 % lost, p99 "), "{text:?}");
    let (_, after) = text.rsplit_once(" s left, ").unwrap();
    assert!(after.contains("\u{1b}[2K"), "the bar's line is erased: {after:?}");
    assert!(after.contains("sent "), "{after:?}");
}
