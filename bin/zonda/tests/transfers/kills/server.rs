//! A server that is killed, and started again on the port that it had.

use crate::primary::records;
use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use zonda_testkit::Question;
use zonda_testkit::client::exchange;
use zonda_testkit::generate::Random;
use zonda_testkit::network::SmallDisk;
use zonda_testkit::process::{Folder, Process, free_port};
use zonda_wire::{Message, Rcode, Section, Type};

/// How long a server may take to answer, and to have what another one has.
const LIMIT: Duration = Duration::from_secs(60);
/// Lines of a log that speak of what a kill must not do.
const FAULTS: [&str; 4] = ["damaged", "panicked", "is lost", "its file cannot be read"];
/// A zone that each server has from a file, and so answers for as soon as it answers at all.
const OWN: &str = "own.test";

/// A server that is killed, and started again on the port that it had.
pub struct Victim {
    process: Option<Process>,
    pub address: SocketAddr,
    /// Gone before the folder that it lies in is removed.
    pub disk: Option<SmallDisk>,
    pub folder: Folder,
}

impl Victim {
    /// An address for a server that is started later.
    pub fn address() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], free_port()))
    }

    /// Starts a server at an address with more of a configuration, and files by their names.
    pub fn start(address: SocketAddr, more: &str, files: &[(&str, &str)]) -> Self {
        Self::start_in(Folder::new("victim"), None, (address, more, files))
    }

    /// Starts a server whose state directory is a disk of so many MiB.
    pub fn start_on_small_disk(
        mib: u32,
        address: SocketAddr,
        more: &str,
        files: &[(&str, &str)],
    ) -> Self {
        let folder = Folder::new("small-disk");
        let disk = SmallDisk::mount(folder.path().join("state"), mib);
        Self::start_in(folder, Some(disk), (address, more, files))
    }

    /// Starts a server in a folder.
    fn start_in(
        folder: Folder,
        disk: Option<SmallDisk>,
        (address, more, files): (SocketAddr, &str, &[(&str, &str)]),
    ) -> Self {
        // A directory of zones, for configurations that name it.
        fs::create_dir(folder.path().join("zones")).unwrap();
        files.iter().for_each(|(name, text)| _ = folder.write(name, text));
        folder.write("own.zone", "$TTL 60\n@ SOA ns host 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n");
        // Often, so that kills meet it, or never, so that it makes no room.
        let flush = if disk.is_some() { "1d" } else { "1s" };
        let config = format!(
            "version = 1\nstate = \"state\"\nflush-interval = \"{flush}\"\n[admin]\n\
             address = \"off\"\nsocket = \"admin.sock\"\n[[zone]]\n\
             name = \"{OWN}\"\nfile = \"own.zone\"\n{more}"
        );
        folder.write("zonda.toml", config);
        let mut server = Self { process: None, address, disk, folder };
        server.restart();
        server
    }

    /// The running server.
    pub fn process(&self) -> &Process {
        self.process.as_ref().unwrap()
    }

    /// Kills the server as a crash would, at times once more while it starts, and starts it again.
    pub fn crash(&mut self, random: &mut Random) {
        self.kill();
        if random.one_in(4) {
            self.begin();
            thread::sleep(Duration::from_micros(random.below(150_000) as u64));
            self.kill();
        }
        self.restart();
    }

    /// Kills the server.
    fn kill(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        // The server is a child of the process that was started.
        let id = process.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        let children = children.unwrap_or_default();
        process.signal("KILL");
        let limit = Instant::now() + LIMIT;
        while !(process.ended() && children.split_whitespace().all(has_ended)) {
            assert!(Instant::now() < limit, "a killed process does not end");
            thread::sleep(Duration::from_millis(1));
        }
        self.check_log();
    }

    /// Starts the server; it may end at once.
    fn begin(&mut self) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
        command.arg("serve").arg("--config").arg(self.folder.path().join("zonda.toml"));
        command.args(["--listen", &self.address.to_string()]);
        self.process = Some(Process::start(&command, &self.folder.path().join("log")).unwrap());
    }

    /// Starts the server, and waits until it answers. A client of another test may have the port; a
    /// server that was killed as soon as it was started may not have ended yet.
    fn restart(&mut self) {
        let limit = Instant::now() + LIMIT;
        self.begin();
        while self.serial(OWN).is_none() {
            assert!(Instant::now() < limit, "it does not answer: {}", self.log());
            thread::sleep(Duration::from_millis(5));
            if self.process.as_mut().unwrap().ended() {
                let log = self.log();
                let is_taken =
                    ["in use", "another server answers"].iter().any(|it| log.contains(it));
                assert!(is_taken, "it has ended: {log}");
                thread::sleep(Duration::from_millis(50));
                self.begin();
            }
        }
        self.check_log();
    }

    /// Fails if the log speaks of damage.
    fn check_log(&self) {
        let log = self.log();
        let fault = log.lines().find(|line| FAULTS.iter().any(|fault| line.contains(fault)));
        assert!(fault.is_none(), "{fault:?} in {log}");
    }

    /// What the server has logged since it was started last.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The serial that the server has of a zone; none if it does not answer for that.
    pub fn serial(&self, zone: &str) -> Option<u32> {
        let soa = self.soa(zone)?;
        let record = soa.records.iter().find(|record| record.section == Section::Answer)?;
        let octets = record.rdata.len().checked_sub(20).and_then(|at| record.rdata.get(at..))?;
        Some(u32::from_be_bytes(*octets.first_chunk()?))
    }

    /// The response code that the server has for a zone.
    pub fn rcode(&self, zone: &str) -> Option<Rcode> {
        self.soa(zone).map(|reply| reply.rcode())
    }

    /// What the server says about the SOA record of a zone.
    fn soa(&self, zone: &str) -> Option<Message> {
        let question = Question::new(zone, "SOA").to_bytes(1);
        let reply = Message::parse(&exchange(self.address, &question, false).ok()?).ok()?;
        let soa = |it: &&zonda_wire::message::Question| it.qtype == Type::SOA;
        reply.questions.first().filter(soa).is_some().then_some(reply)
    }

    /// The records that the server has of a zone.
    pub fn records(&self, zone: &str) -> Vec<String> {
        let records = records(self.address, zone, &[]);
        assert!(!records.is_empty(), "no transfer of {zone}: {}", self.log());
        records
    }
}

/// Whether a process has ended, though its parent may not have asked for its end yet.
fn has_ended(id: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    status.is_empty() || status.contains("State:\tZ") || status.contains("State:\tX")
}

/// Waits until something holds.
pub fn wait_for(what: &str, server: &Victim, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < limit, "{what}: {}", server.log());
        thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until a secondary has the version that its primary has, which does not change any more,
/// and compares all records.
pub fn compare(primary: &Victim, secondary: &Victim, zone: &str) {
    let wanted = primary.serial(zone);
    assert!(wanted.is_some(), "{}", primary.log());
    wait_for("the secondary follows", secondary, || secondary.serial(zone) == wanted);
    assert_eq!(secondary.records(zone), primary.records(zone));
}
