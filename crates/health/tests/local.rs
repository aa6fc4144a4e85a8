//! Probes that ask this machine: programs, files, ICMP.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use common::{LONG, probe, probe_within, words};
use zonda_health::{CheckError, CommandCheck, Fault, FileCheck, Kind, Step};
use zonda_testkit::process::Folder;

/// An address that is given to programs.
const TARGET: &str = "[2001:db8::1]:8080";

/// Returns the words of what a program makes of the target.
async fn run(arguments: &[&str]) -> String {
    let check = Kind::Command(CommandCheck::new(arguments).unwrap());
    words(&probe(TARGET.parse().unwrap(), check).await)
}

#[tokio::test]
async fn the_exit_status_of_a_program_decides_and_its_first_line_is_told() {
    for (script, told) in [
        ("exit 0", "exit status 0"),
        ("echo 12 sessions; echo more", "exit status 0: 12 sessions"),
        ("echo no route >&2; exit 3", "FAULT exit status 3: no route"),
        ("printf 'a\\033[31mb\\n'; exit 1", "FAULT exit status 1: a[31mb"),
    ] {
        assert_eq!(run(&["sh", "-c", script]).await, told);
    }
    let killed = run(&["sh", "-c", "kill -9 $$"]).await;
    assert!(killed.starts_with("FAULT signal: 9"), "{killed}");
    let missing = run(&["no-such-program-at-all"]).await;
    assert!(missing.starts_with("FAULT \"no-such-program-at-all\" cannot be started: "));
}

#[tokio::test]
async fn a_program_gets_the_target_and_nothing_of_this_process() {
    let arguments = ["printf", "%s %s %s", "{address}", "[{address}]:{port}", "$HOME; echo"];
    let told = "exit status 0: 2001:db8::1 [2001:db8::1]:8080 $HOME; echo";
    assert_eq!(run(&arguments).await, told, "there is no shell");
    let environment = ["sh", "-c", "env | cut -d= -f1 | sort | tr '\\n' ' '"];
    let told = run(&environment).await;
    assert_eq!(told, "exit status 0: PATH PWD ZONDA_ADDRESS ZONDA_PORT", "PWD is the shell's own");
    assert_eq!(run(&["sh", "-c", "cat"]).await, "exit status 0", "there is no input");
    for bad in [&[][..], &[""], &["a", "b\0"]] {
        assert_eq!(CommandCheck::new(bad).unwrap_err(), CheckError::Command);
    }
}

#[tokio::test]
async fn endless_output_is_thrown_away() {
    let told = run(&["sh", "-c", "head -c 50000000 /dev/zero | tr '\\0' x; exit 1"]).await;
    assert_eq!(told, format!("FAULT exit status 1: {}", "x".repeat(200)));
}

/// Returns whether a process with this text in its arguments is there.
fn is_running(text: &str) -> bool {
    let has_text = |entry: fs::DirEntry| {
        let arguments = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&arguments).contains(text)
    };
    fs::read_dir("/proc").unwrap().flatten().any(has_text)
}

#[tokio::test]
async fn a_program_that_does_not_end_is_killed_with_all_it_has_started() {
    // A number of seconds that no other process sleeps for.
    let seconds = format!("86{}", std::process::id());
    let script = format!("sleep {seconds} & sleep {seconds}");
    let check = Kind::Command(CommandCheck::new(&["sh", "-c", &script]).unwrap());
    let begun = Instant::now();
    let outcome = probe_within(TARGET.parse().unwrap(), check, Duration::from_millis(300)).await;
    assert_eq!(outcome, Err(Fault::Timeout(Step::Reply)));
    assert!(begun.elapsed() < LONG);
    while is_running(&format!("sleep\0{seconds}")) {
        assert!(begun.elapsed() < LONG, "it is killed");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_program_that_leaves_another_behind_has_ended_all_the_same() {
    let begun = Instant::now();
    assert_eq!(run(&["sh", "-c", "sleep 3 & echo done"]).await, "exit status 0: done");
    assert!(begun.elapsed() < Duration::from_secs(2));
}

/// Returns the words of what a file makes of the target.
async fn read(path: impl AsRef<Path>) -> String {
    let check = Kind::File(FileCheck { path: PathBuf::from(path.as_ref()) });
    words(&probe(TARGET.parse().unwrap(), check).await)
}

#[tokio::test]
async fn the_first_line_of_a_file_decides() {
    let folder = Folder::new("health");
    for (content, told) in [
        ("up\n", "the file says up"),
        (" UP \r\nsince noon", "the file says up"),
        ("down", "FAULT the file says down"),
        ("", "FAULT the file says neither up nor down"),
        ("upwards", "FAULT the file says neither up nor down"),
    ] {
        assert_eq!(read(folder.write("state", content)).await, told, "{content:?}");
    }
    let missing = read(folder.path().join("none")).await;
    assert_eq!(missing, "FAULT the file cannot be read: entity not found");
    let told = read(folder.path()).await;
    assert_eq!(told, "FAULT the file cannot be read: invalid input parameter");
}

#[tokio::test]
async fn a_pipe_in_place_of_a_file_lets_no_probe_wait() {
    let folder = Folder::new("health");
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let told = read(&pipe).await;
    assert_eq!(told, "FAULT the file cannot be read: invalid input parameter");
}

/// Returns whether this process may have sockets for ICMP echo messages.
fn may_ping() -> bool {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ping_group_range").unwrap();
    let range: Vec<u32> = range.split_whitespace().map(|it| it.parse().unwrap()).collect();
    range[0] <= range[1]
}

#[tokio::test]
async fn an_echo_request_is_answered_or_the_reason_says_what_to_do() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let address: SocketAddr = address.parse().unwrap();
        let told = words(&probe(address, Kind::Icmp).await);
        match may_ping() {
            true => assert_eq!(told, "echo reply", "{address}"),
            false => assert!(told.contains("net.ipv4.ping_group_range"), "{told}"),
        }
    }
}

#[test]
fn an_echo_request_is_answered_where_the_system_permits_it() {
    // The test above, in a network of its own where it is permitted.
    let may_have_one = Command::new("unshare").args(["-rn", "true"]).status();
    if !may_have_one.is_ok_and(|status| status.success()) {
        return eprintln!("left out: this user may not have a network of its own");
    }
    let program = std::env::current_exe().unwrap();
    let test = "an_echo_request_is_answered_or_the_reason_says_what_to_do";
    let script = format!(
        "echo '0 0' > /proc/sys/net/ipv4/ping_group_range && ip link set lo up && \
         exec {} --exact {test}",
        program.display()
    );
    let output = Command::new("unshare").args(["-rn", "sh", "-c", &script]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("1 passed"), "{told}{errors}");
}
