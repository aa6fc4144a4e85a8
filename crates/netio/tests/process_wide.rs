//! What changes the whole process is tried in a child: this program, started again for one test.
#![allow(clippy::unwrap_used)]

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::{env, fs, thread};

use zonda_netio::process::drop_privileges;
use zonda_netio::supervisor::take_descriptors;

/// Set in the child.
const CHILD: &str = "ZONDA_TEST_CHILD";

/// Runs the named test of this program alone in a child, through `sh`, which runs `before` first.
fn child(test: &str, before: &str) -> ExitStatus {
    let script = format!("{before} exec \"$@\"");
    Command::new("sh")
        .args(["-c", &script, "sh"])
        .arg(env::current_exe().unwrap())
        .args(["--exact", test, "--test-threads=1", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap()
        .status
}

#[test]
fn privileges_are_dropped_for_good() {
    let is_root =
        fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if !is_root {
        return;
    }
    if env::var_os(CHILD).is_none() {
        assert!(child("privileges_are_dropped_for_good", "").success());
        return;
    }
    drop_privileges("nobody", None).unwrap();
    drop_privileges("nobody", None).unwrap();
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let uids = status.lines().find(|line| line.starts_with("Uid:")).unwrap();
    assert!(uids.split_whitespace().skip(1).all(|uid| uid != "0"), "{uids}");
    assert!(drop_privileges("daemon", None).is_err());
    assert!(Command::new("true").uid(0).status().is_err());
}

#[test]
fn descriptors_for_another_process_are_left_alone() {
    const TEST: &str = "descriptors_for_another_process_are_left_alone";
    if env::var_os(CHILD).is_none() {
        assert!(child(TEST, "LISTEN_PID=1 LISTEN_FDS=1; export LISTEN_PID LISTEN_FDS;").success());
        return;
    }
    assert!(take_descriptors().unwrap().is_empty());
    assert!(env::var_os("LISTEN_FDS").is_some());
}

#[test]
fn descriptors_are_not_taken_while_threads_run() {
    const TEST: &str = "descriptors_are_not_taken_while_threads_run";
    if env::var_os(CHILD).is_none() {
        let before = "LISTEN_PID=$$ LISTEN_FDS=1; export LISTEN_PID LISTEN_FDS;";
        assert!(child(TEST, before).success());
        return;
    }
    let refused = thread::spawn(|| take_descriptors().unwrap_err()).join().unwrap();
    assert_eq!(refused.kind(), std::io::ErrorKind::ResourceBusy);
}
