//! What changes the whole process is tried in a child: this program, started again for one test.
#![allow(clippy::unwrap_used)]

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::{env, fs, thread};

use zonda_netio::privileges::{RetainedPrivileges, drop_privileges};
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

/// Whether the tests run as root, without which there is nothing to give up.
fn is_root() -> bool {
    zonda_netio::process::effective_user() == 0
}

#[test]
fn privileges_are_dropped_for_good() {
    if !is_root() {
        return;
    }
    if env::var_os(CHILD).is_none() {
        assert!(child("privileges_are_dropped_for_good", "").success());
        return;
    }
    assert_eq!(drop_privileges("nobody", None).unwrap(), RetainedPrivileges::default());
    assert_eq!(drop_privileges("nobody", None).unwrap(), RetainedPrivileges::default());
    let uids = status("Uid:");
    assert!(uids.split_whitespace().all(|uid| uid != "0"), "{uids}");
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(u64::from_str_radix(&status(set), 16), Ok(0), "{set}");
    }
    assert!(drop_privileges("daemon", None).is_err());
    assert!(Command::new("true").uid(0).status().is_err());
}

/// Returns what the system says of this thread on a line.
fn status(line: &str) -> String {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix(line)).unwrap();
    line.trim().to_owned()
}

#[test]
fn a_process_that_runs_as_the_user_already_keeps_no_rights_beside_that_to_low_ports() {
    const TEST: &str =
        "a_process_that_runs_as_the_user_already_keeps_no_rights_beside_that_to_low_ports";
    if !is_root() {
        return;
    }
    if env::var_os(CHILD).is_none() {
        let capabilities = "+dac_read_search,+sys_ptrace,+net_bind_service";
        let before = format!(
            "set -- setpriv --reuid nobody --regid nogroup --groups 42 --inh-caps {capabilities} \
             --ambient-caps {capabilities} \"$@\";"
        );
        assert!(child(TEST, &before).success());
        return;
    }
    assert_eq!(status("CapAmb:"), "0000000000080404", "all three, to begin with");
    assert_eq!(drop_privileges("nobody", None).unwrap(), RetainedPrivileges { groups: vec![42] });
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(status(set), "0000000000000400", "{set}");
    }
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
