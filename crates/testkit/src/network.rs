//! Networks that tests have to themselves: namespaces of the kernel, with a loopback interface
//! alone, which end with the test.

use std::env;
use std::process::Command;

/// The variable that says that a test runs in a network of its own.
const INSIDE: &str = "ZONDA_TEST_NETWORK";
/// Calls of unshare(1) that make a network: as root, or as a user that becomes root in it.
const CALLS: [&str; 2] = ["-n", "-rn"];

/// Runs a test again, whose name is given with its modules, in a network of its own; whether this
/// is that run. Where it is not permitted, the test is left out with a message.
///
/// # Panics
/// When the test fails there.
#[must_use]
pub fn is_own_network(test: &str) -> bool {
    if env::var_os(INSIDE).is_some() {
        ip("link set lo up");
        return true;
    }
    let permits = |call: &&&str| {
        let status = Command::new("unshare").args([**call, "true"]).status();
        status.is_ok_and(|status| status.success())
    };
    let Some(call) = CALLS.iter().find(permits) else {
        eprintln!("{test} is left out: this user may not have a network of its own");
        return false;
    };
    let program = env::current_exe().expect("the test is a program");
    let mut run = Command::new("unshare");
    run.arg(call).arg(program).args(["--exact", test, "--nocapture"]).env(INSIDE, "1");
    let output = run.output().expect("unshare was there a moment ago");
    let told = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("1 passed"), "in a network of its own:\n{told}{errors}");
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
