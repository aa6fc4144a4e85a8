//! Servers as child processes that never outlive their test.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{Question, ask};

/// Seconds after which `timeout` ends a server whose test could not: it was killed itself.
const LIFETIME_SECS: &str = "1800";
/// How long a server has between SIGTERM and SIGKILL.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a server may take until it answers for all its zones.
const START_LIMIT: Duration = Duration::from_secs(30);
/// Lines of a server's log that are shown when it does not come up.
const LOG_LINES: usize = 30;
/// How often a server is started again on other ports, when another process took them meanwhile.
const START_TRIES: usize = 4;

/// A folder that is removed with its content when dropped.
pub struct Folder(PathBuf);

impl Folder {
    /// Makes an empty folder; `name` explains one that is left over.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        let path = env::temp_dir().join(format!("zonda-test-{process}-{number}-{name}"));
        fs::create_dir_all(&path).expect("the folder for temporary files is writable");
        Self(path)
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file and returns its path.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).expect("a file in a folder of our own is writable");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running server: a process group of its own, ended when dropped, also when a test panics.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program in the foreground, its output in the file `log`.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(command: &Command, log: &Path) -> io::Result<Self> {
        let output = File::create(log)?;
        let mut bounded = Command::new("timeout");
        bounded.args(["--kill-after=5", LIFETIME_SECS]).arg(command.get_program());
        bounded.args(command.get_args()).process_group(0).stdin(Stdio::null());
        // Settings of another server are none of this one (those of tests have no such prefix).
        let inherited = env::vars_os().map(|(key, _)| key);
        for key in inherited.filter(|key| key.as_encoded_bytes().starts_with(b"ZONDA_")) {
            bounded.env_remove(key);
        }
        bounded.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
        let child = bounded.stdout(output.try_clone()?).stderr(output).spawn()?;
        Ok(Self { child, log: log.to_owned() })
    }

    /// Process id of the group's leader, which is `timeout`; the server is its child.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process has ended by itself.
    pub fn ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends a signal, such as `HUP`, to every process of the group.
    pub fn signal(&self, name: &str) {
        // Without unsafe code, the program `kill` is the way to a process group.
        let group = format!("-{}", self.child.id());
        let _ =
            Command::new("kill").args(["-s", name, "--", &group]).stderr(Stdio::null()).status();
    }

    /// Returns the lines as [`log`](Self::log) does, once there is such a line, or ten seconds have
    /// passed: what is said after the first query was answered may come late on a busy machine.
    pub fn log_soon(&self, about: &str) -> String {
        let limit = Instant::now() + Duration::from_secs(10);
        while self.log(about).is_empty() && Instant::now() < limit {
            thread::sleep(Duration::from_millis(5));
        }
        self.log(about)
    }

    /// Returns the last lines of what it has said that contain this text; an empty one is in every
    /// line.
    pub fn log(&self, about: &str) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(about)).collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal("TERM");
        let limit = Instant::now() + STOP_TIMEOUT;
        while !self.ended() && Instant::now() < limit {
            thread::sleep(Duration::from_millis(5));
        }
        self.signal("KILL");
        let _ = self.child.wait();
    }
}

/// Ports that [`free_port`] picks from: below those that Linux gives, by default, to every program
/// that asks for any, so that no client takes one between its choice and its use.
const PORTS: Range<u32> = 10_000..32_000;

/// Returns a port of 127.0.0.1 that is free at the moment, over UDP and TCP. Each process begins
/// its search at another port.
///
/// # Panics
/// When there is none.
pub fn free_port() -> u16 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let is_free = |port: &u16| {
        let address = (Ipv4Addr::LOCALHOST, *port);
        TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok()
    };
    let begin = std::process::id().wrapping_mul(13_841); // neighbours are far apart
    let next = || begin.wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed));
    let mut ports = PORTS.map(|_| (PORTS.start + next() % PORTS.len() as u32) as u16);
    ports.find(is_free).expect("one of many ports of 127.0.0.1 is free")
}

/// Path of a program; servers are in folders that are not in every user's PATH.
pub fn installed(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// How long a program may take that [`bounded`] runs, seconds.
const PROGRAM_SECS: &str = "180";

/// Returns a command that runs a program, and ends it when it takes too long, so that a test fails
/// in place of waiting for ever; its exit code is 124 then.
pub fn bounded(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", PROGRAM_SECS]).arg(program);
    command
}

/// The variable with the names, between commas, of what tests may do without: programs, and
/// `namespaces` of the kernel. `scripts/test-cluster --summary` tells what it names. It does not
/// begin with `ZONDA_`: a server takes such a variable for a setting that does not exist.
const WITHOUT: &str = "TEST_WITHOUT";

/// Returns where a program is that a test cannot do without; nothing when it is missing and
/// `TEST_WITHOUT` names it, as `TEST_WITHOUT=chromium,dnsperf` does: then the test is left out.
///
/// # Panics
/// When it is missing otherwise: a test that looks at nothing must not look passed.
pub fn required(program: &str) -> Option<PathBuf> {
    let without = env::var(WITHOUT).unwrap_or_default();
    required_unless(program, installed(program), &without)
}

/// Whether all of these programs are there, each as [`required`] has it.
pub fn has_required(programs: &[&str]) -> bool {
    programs.iter().all(|program| required(program).is_some())
}

/// Leaves a test out that needs namespaces of the kernel, which cannot be made here, if
/// `TEST_WITHOUT` names `namespaces`.
///
/// # Panics
/// When it does not: a test that looks at nothing must not look passed.
pub fn leave_out_without_namespaces(test: &str) {
    let without = env::var(WITHOUT).unwrap_or_default();
    assert!(
        is_spared("namespaces", &without),
        "{test}: no namespaces can be made here, and {WITHOUT}=namespaces leaves the test out"
    );
    println!("{test} is left out: no namespaces can be made here");
}

/// Whether something is in the list of what tests may do without.
fn is_spared(what: &str, without: &str) -> bool {
    without.split(',').any(|name| name.trim() == what)
}

/// Returns the path that was found, or fails unless the program is in `without`.
fn required_unless(program: &str, found: Option<PathBuf>, without: &str) -> Option<PathBuf> {
    assert!(
        found.is_some() || is_spared(program, without),
        "{program} is not installed: `make packages` installs what the tests need, and \
         {WITHOUT}={program} leaves out tests of it"
    );
    found
}

/// Starts a server on a free port and waits until it answers for every zone.
///
/// `command` gets the folder and the port. When the server ends at once, the port may have been
/// taken in between, so another is tried.
///
/// # Panics
/// When it does not come up; its log is part of the message.
pub fn start_on_free_port(
    what: &str,
    folder: &Folder,
    zones: &[&str],
    command: impl Fn(&Folder, u16) -> Command,
) -> (Process, SocketAddr) {
    let mut log = String::new();
    for _ in 0..START_TRIES {
        let port = free_port();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut process = Process::start(&command(folder, port), &folder.path().join("log"))
            .unwrap_or_else(|error| panic!("{what} cannot be started: {error}"));
        match wait_for_zones(&mut process, address, zones) {
            Ok(()) => return (process, address),
            Err(Delay::Ended) => log = process.log(""),
            Err(Delay::Zone(zone)) => {
                let about = zone.trim_end_matches('.');
                panic!("{what} does not answer for {zone}; its log:\n{}", process.log(about))
            }
        }
    }
    panic!("{what} ends at once; its log:\n{log}");
}

/// Why a server does not answer.
enum Delay {
    Ended,
    Zone(String),
}

/// Waits until each zone's SOA is answered with authority.
fn wait_for_zones(process: &mut Process, address: SocketAddr, zones: &[&str]) -> Result<(), Delay> {
    let limit = Instant::now() + START_LIMIT;
    for zone in zones {
        let question = Question::new(zone, "SOA").edns(1232);
        loop {
            if ask(address, &question).is_ok_and(|reply| reply.flags & 0x040f == 0x0400) {
                break;
            }
            if process.ended() {
                return Err(Delay::Ended);
            }
            if Instant::now() > limit {
                return Err(Delay::Zone((*zone).to_owned()));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
    Ok(())
}

/// Zonda as a process.
pub struct Zonda {
    /// The running program.
    pub process: Process,
    /// Address of the server, over UDP and TCP.
    pub address: SocketAddr,
    /// Holds the zone files; removed when dropped.
    pub folder: Folder,
}

impl Zonda {
    /// Starts `binary serve` with these zones, given as (name, text), and further arguments.
    ///
    /// Cargo knows the binary's path only in tests of its own package:
    /// `env!("CARGO_BIN_EXE_zonda")`.
    ///
    /// # Panics
    /// When it does not come up.
    pub fn start(binary: &str, zones: &[(&str, &str)], arguments: &[&str]) -> Self {
        let folder = Folder::new("zonda");
        let files: Vec<String> = zones
            .iter()
            .enumerate()
            .map(|(number, (name, text))| {
                let path = folder.write(&format!("{number}.zone"), text);
                format!("{name}={}", path.display())
            })
            .collect();
        let names: Vec<&str> = zones.iter().map(|(name, _)| *name).collect();
        let (process, address) = start_on_free_port("zonda", &folder, &names, |_, port| {
            let mut command = Command::new(binary);
            command.arg("serve").args(["--listen", &format!("127.0.0.1:{port}")]);
            command.args(files.iter().flat_map(|file| ["--zone", file]));
            command.args(arguments);
            command
        });
        Self { process, address, folder }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_excused_only_if_it_is_listed() {
        assert_eq!(required_unless("dnsperf", None, "chromium, dnsperf"), None);
        let found = Some(PathBuf::from("/usr/bin/dnsperf"));
        assert_eq!(required_unless("dnsperf", found.clone(), "dnsperf"), found);
        assert_eq!(required_unless("dnsperf", found.clone(), ""), found);
    }

    #[test]
    #[should_panic(expected = "TEST_WITHOUT=dnsperf leaves out tests of it")]
    fn a_missing_program_that_is_not_listed_is_a_failure() {
        required_unless("dnsperf", None, "chromium,perf");
    }
}
