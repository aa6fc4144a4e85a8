//! Ctrl-C and SIGTERM while `zonda bench` measures.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use zonda_testkit::process::Folder;

/// A suite that would take hours.
const SUITE: &str = r#"
name = "long"
title = "One name"
servers = ["reflector"]
seconds = 0.2
rounds = 100000
warm_up_secs = 0.1

[[workload]]
name = "one"
roles = ["authoritative"]
ready = ["www.a.test A"]

[[workload.queries]]
mix = [{ text = "www.a.test A" }]
"#;

/// Starts `zonda bench` with these arguments.
fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
    command.arg("bench").args(arguments).env_remove("ZONDA");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Sends a signal.
fn signal(name: &str, child: &Child) {
    let process = child.id().to_string();
    assert!(Command::new("kill").args(["-s", name, &process]).status().unwrap().success());
}

/// A server on a free port, and a file that asks it for something.
fn server(folder: &Folder) -> (UdpSocket, String, String) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let port = socket.local_addr().unwrap().port().to_string();
    (socket, port, folder.write("queries.txt", "a.test A\n").display().to_string())
}

/// Answers until `child` has ended, and calls `act` when it has asked for the `count`th time.
fn answer(socket: &UdpSocket, child: &mut Child, count: usize, act: impl Fn(&Child)) {
    let (mut seen, mut buffer) = (0, [0; 512]);
    let limit = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < limit, "it goes on");
        let Ok((len, peer)) = socket.recv_from(&mut buffer) else { continue };
        buffer[2] |= 0x80;
        socket.send_to(&buffer[..len], peer).unwrap();
        seen += 1;
        if seen == count {
            act(child);
        }
    }
}

/// What a command that has ended has said: exit code, output, errors.
fn said(child: Child) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[test]
fn the_first_signal_ends_a_run_with_its_summary_and_its_exit_code() {
    let folder = Folder::new("interrupt-load");
    let (socket, port, queries) = server(&folder);
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let mut child =
            start(&["load", "-p", &port, "-d", &queries, "-l", "3600", "--format", "json"]);
        answer(&socket, &mut child, 1000, |child| signal(name, child));
        let (found, text, errors) = said(child);
        assert_eq!(found, Some(code), "{errors}");
        let whole: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!(whole["interrupted"], true);
        assert!(whole["traffic"]["completed"].as_u64().unwrap() >= 900, "{whole}");
        assert_eq!(whole["traffic"]["lost"], 0, "{whole}");
    }
}

#[test]
fn the_second_signal_ends_it_at_once() {
    let folder = Folder::new("interrupt-twice");
    let (socket, port, queries) = server(&folder);
    let mut child = start(&["load", "-p", &port, "-d", &queries, "-l", "3600", "-t", "3600"]);
    socket.recv(&mut [0; 512]).unwrap();
    let limit = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() && Instant::now() < limit {
        signal("INT", &child);
        thread::sleep(Duration::from_millis(100));
    }
    let (found, text, _) = said(child);
    assert_eq!((found, text.as_str()), (Some(130), ""));
}

#[test]
fn signals_that_come_together_as_from_timeout_are_one() {
    let folder = Folder::new("interrupt-together");
    let (socket, port, queries) = server(&folder);
    let mut child = start(&["load", "-p", &port, "-d", &queries, "-l", "3600"]);
    answer(&socket, &mut child, 1000, |child| {
        let id = child.id();
        let both = format!("kill -s INT {id}; kill -s TERM {id}");
        assert!(Command::new("sh").args(["-c", &both]).status().unwrap().success());
    });
    let (found, text, errors) = said(child);
    // Two threads may take them, so that the second one is handled first.
    assert!(matches!(found, Some(130 | 143)), "{found:?} {errors}");
    assert!(text.starts_with("interrupted before its end\n"), "{text}");
}

#[test]
fn replies_that_are_waited_for_after_the_signal_are_told() {
    let folder = Folder::new("interrupt-waiting");
    let (socket, port, queries) = server(&folder);
    let child = start(&["load", "-p", &port, "-d", &queries, "-l", "3600", "-q", "3", "-t", "4"]);
    socket.recv(&mut [0; 512]).unwrap();
    signal("INT", &child);
    let (found, _, errors) = said(child);
    assert_eq!(found, Some(130));
    let begin = "zonda: waiting up to 4s for 3 replies; interrupt again";
    assert!(errors.starts_with(begin), "{errors}");
}

#[test]
fn a_ramp_tells_the_rate_that_it_has_found_so_far() {
    let folder = Folder::new("interrupt-ramp");
    let (socket, port, queries) = server(&folder);
    let arguments = ["ramp", "-p", &port, "-d", &queries, "--from", "100", "--step", "0.5"];
    let generous = ["--max-loss", "50%", "--max-p99", "5s"];
    let mut child = start(&[&arguments[..], &generous].concat());
    answer(&socket, &mut child, 70, |child| signal("INT", child));
    let (found, text, errors) = said(child);
    assert_eq!(found, Some(130), "{errors}");
    let last = text.lines().last();
    assert_eq!(last, Some("highest rate held before the interruption: 100 queries per second"));
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.lines().nth(1).unwrap().contains("  held"), "{text}");
    assert!(errors.starts_with("100 queries per second: held"), "{errors}");
}

#[test]
fn a_suite_keeps_the_rounds_that_were_whole() {
    let folder = Folder::new("interrupt-suite");
    let suite = folder.write("long.toml", SUITE).display().to_string();
    let json = folder.path().join("run.json").display().to_string();
    let mut child = start(&["suite", &suite, "--max-foreign", "100", "--json", &json]);
    let mut steps = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut seen = Vec::new();
    while !seen.last().is_some_and(|line: &String| line.contains("round 2")) {
        seen.push(steps.next().unwrap_or_else(|| panic!("{seen:?}")).unwrap());
    }
    signal("INT", &child);
    let rest = thread::spawn(move || steps.map_while(Result::ok).collect::<Vec<_>>());
    let (found, text, _) = said(child);
    assert_eq!(found, Some(130), "{:?}", rest.join());
    assert!(text.contains("reflector"), "{text}");
    let run: serde_json::Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    let rounds = run["cells"][0]["rounds"].as_array().unwrap().clone();
    assert!(rounds.len() >= 2);
    assert!(rounds.iter().all(|round| round["seconds"].as_f64().unwrap() > 0.15), "{rounds:?}");
}
