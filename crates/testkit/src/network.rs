//! Networks and small disks that tests have to themselves: namespaces of the kernel, which end with
//! the test.

use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// The variable that says that a test runs in a network of its own.
const OWN_NETWORK: &str = "TEST_NETWORK";
/// Calls of unshare(1) that make a network: as root, or as a user that becomes root in it.
const NETWORK_CALLS: [&str; 2] = ["-n", "-rn"];
/// The variable that says that a test runs with mounts of its own.
const OWN_MOUNTS: &str = "TEST_MOUNTS";
/// Calls of unshare(1) that let a test mount, in the same way.
const MOUNT_CALLS: [&str; 2] = ["-m", "-rm"];

/// Runs a test again, whose name is given with its modules, in a network of its own; whether this
/// is that run. Where it is not permitted, the test is left out with a message.
///
/// # Panics
/// When the test fails there.
#[must_use]
pub fn is_own_network(test: &str) -> bool {
    let is_inside = is_apart(test, OWN_NETWORK, NETWORK_CALLS);
    if is_inside {
        ip("link set lo up");
    }
    is_inside
}

/// Does the same with mounts in place of a network, so that the test can mount a [`SmallDisk`].
///
/// # Panics
/// When the test fails there.
#[must_use]
pub fn has_own_mounts(test: &str) -> bool {
    is_apart(test, OWN_MOUNTS, MOUNT_CALLS)
}

/// A small disk, in memory, which is gone when dropped.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts a disk of so many MiB on a folder, which is made.
    ///
    /// # Panics
    /// When it cannot be mounted.
    pub fn mount(folder: PathBuf, mib: u32) -> Self {
        fs::create_dir_all(&folder).expect("a folder can be made in one of our own");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "small"]).arg(&folder);
        let output = mount.output().unwrap_or_else(|error| panic!("mount cannot be run: {error}"));
        assert!(output.status.success(), "mount: {}", String::from_utf8_lossy(&output.stderr));
        Self(folder)
    }

    /// Fills the disk to its last octet with a file, whose removal makes room.
    ///
    /// # Panics
    /// When the file cannot be made.
    pub fn fill(&self) -> PathBuf {
        let path = self.0.join("filler");
        let mut file = File::create(&path).expect("a file of no octets can be made");
        for block in [1 << 16, 1 << 12, 1 << 6, 1] {
            while file.write_all(&vec![7; block]).is_ok() {}
        }
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a process that ends may still have files there.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// Runs a test again in namespaces of its own, which one of the calls makes; whether this is that
/// run, which the variable says.
fn is_apart(test: &str, variable: &str, calls: [&str; 2]) -> bool {
    if env::var_os(variable).is_some() {
        return true;
    }
    let permits = |call: &&&str| {
        let status = Command::new("unshare").args([**call, "true"]).status();
        status.is_ok_and(|status| status.success())
    };
    let Some(call) = calls.iter().find(permits) else {
        eprintln!("{test} is left out: this user may not have namespaces of its own");
        return false;
    };
    let program = env::current_exe().expect("the test is a program");
    let mut run = Command::new("unshare");
    run.arg(call).arg(program).args(["--exact", test, "--nocapture"]).env(variable, "1");
    let output = run.output().expect("unshare was there a moment ago");
    let told = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("1 passed"), "in namespaces of its own:\n{told}{errors}");
    false
}

/// Runs ip(8) with these words; returns what it prints.
///
/// # Panics
/// When it fails.
pub fn ip(words: &str) -> String {
    let output = Command::new("ip").args(words.split(' ')).output();
    let output = output.unwrap_or_else(|error| panic!("ip cannot be run: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {words}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
