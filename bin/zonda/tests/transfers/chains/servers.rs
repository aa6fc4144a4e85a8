//! Servers of the chain, each of which keeps its address when it is ended and started again.

use super::{FIRST, bulk, powerdns, version};
use crate::primaries::reload;
use crate::primary::KEY;
use crate::real_peers::{self, ZONE};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use zonda_testkit::process::{Folder, Process, free_port, has_required, required};
use zonda_testkit::{Question, ask};

/// How long a server may take to start, and to have what another one has.
pub const LIMIT: Duration = Duration::from_secs(60);

/// What starts a peer as a secondary on a port.
type Secondary = fn(&Path, &Folder, u16, SocketAddr) -> Command;

/// What starts a server on a port, with its files in a folder.
type Start = Box<dyn Fn(&Folder, u16) -> Command + Send + Sync>;

/// A server that keeps its address.
pub struct Server {
    pub address: SocketAddr,
    pub folder: Folder,
    process: Option<Process>,
    /// Whether versions have the records of [`bulk`], of a primary that takes no updates: they are
    /// made by its file.
    edited: Option<bool>,
    /// How often the server was started, each time with a log of its own.
    starts: usize,
    start: Start,
}

impl Server {
    /// Whether the programs of a test with a peer are there; the test is left out if they may be
    /// missing.
    pub fn has_programs_of(name: &str) -> bool {
        let peer: &[&str] = match name {
            "powerdns" => &["pdns_server", "pdnsutil", "python3"],
            "knot" => &["knotd"],
            "nsd" => &["nsd"],
            "zonda" => &[],
            _ => &["named"],
        };
        has_required(peer) && has_required(&["nsupdate", "dig"])
    }

    /// An address for a server that is started later.
    pub fn free_address() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], free_port()))
    }

    /// Starts a server at an address.
    pub fn start(address: SocketAddr, folder: Folder, start: Start) -> Self {
        let (process, edited, starts) = (None, None, 0);
        let mut server = Self { address, folder, process, edited, starts, start };
        server.begin();
        server
    }

    /// Zonda as the primary, which tells a secondary of changes.
    pub fn zonda_primary(address: SocketAddr, notify: SocketAddr) -> Self {
        Self::zonda_primary_of(address, notify, (false, 1000))
    }

    /// Zonda as the primary, which keeps the changes of so many versions.
    pub fn zonda_primary_with_history(
        address: SocketAddr,
        notify: SocketAddr,
        versions: u32,
    ) -> Self {
        Self::zonda_primary_of(address, notify, (false, versions))
    }

    /// Zonda as the primary of a zone whose transfers have several messages.
    pub fn zonda_primary_with_bulk(address: SocketAddr, notify: SocketAddr) -> Self {
        Self::zonda_primary_of(address, notify, (true, 1000))
    }

    /// Zonda as the primary.
    fn zonda_primary_of(
        address: SocketAddr,
        notify: SocketAddr,
        (has_bulk, versions): (bool, u32),
    ) -> Self {
        let key = KEY.0;
        let zone = format!(
            "file = \"chain.zone\"\nhistory = {{ versions = {versions} }}\nupdate = [\
             {{ from = \"key {key}\", names = \"zone\" }}, \
             {{ from = \"key {key}\", names = \"zone\", types = [\"NS\"] }}]\n\
             transfer = {{ to = [\"key {key}\"], notify = [\"{notify} key {key}\"] }}\n"
        );
        Self::zonda(address, &zone, has_bulk)
    }

    /// Zonda as the primary of a zone that is edited as a file, which has this text first.
    pub fn zonda_file_primary(address: SocketAddr, notify: SocketAddr, text: &str) -> Self {
        let key = KEY.0;
        let zone = format!(
            "file = \"chain.zone\"\n\
             transfer = {{ to = [\"key {key}\"], notify = [\"{notify} key {key}\"] }}\n"
        );
        Self::zonda_with(Folder::new("chain-zonda"), address, (&zone, text))
    }

    /// Zonda as a secondary.
    pub fn zonda_secondary(address: SocketAddr, primary: SocketAddr) -> Self {
        let zone = format!(
            "transfer = {{ to = [\"127.0.0.1\"] }}\n[zone.secondary]\n\
             from = [\"{primary} key {}\"]\nrefresh-min = \"1s\"\nretry-min = \"1s\"\n",
            KEY.0
        );
        Self::zonda(address, &zone, false)
    }

    /// Zonda with more keys of the zone's section.
    fn zonda(address: SocketAddr, zone: &str, has_bulk: bool) -> Self {
        let text = zone_text(FIRST, has_bulk);
        Self::zonda_with(Folder::new("chain-zonda"), address, (zone, &text))
    }

    /// Zonda with more keys of the zone's section, and the text of a file.
    fn zonda_with(folder: Folder, address: SocketAddr, (zone, file): (&str, &str)) -> Self {
        folder.write("chain.zone", file);
        let text = format!(
            "version = 1\nstate = \"state\"\n[admin]\naddress = \"off\"\n\
             socket = \"admin.sock\"\n[[key]]\nname = \"{}\"\nsecret = \"{}\"\n\
             [[zone]]\nname = \"{ZONE}\"\n{zone}",
            KEY.0, KEY.1
        );
        folder.write("zonda.toml", text);
        let start = |folder: &Folder, port: u16| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
            command.arg("serve").arg("--config").arg(folder.path().join("zonda.toml"));
            command.args(["--listen", &format!("127.0.0.1:{port}")]);
            command
        };
        Self::start(address, folder, Box::new(start))
    }

    /// A peer as a secondary.
    pub fn secondary(name: &'static str, address: SocketAddr, primary: SocketAddr) -> Self {
        let folder = Folder::new(name);
        if name == "powerdns" {
            powerdns::write_secondary(&folder, primary);
            return Self::start(address, folder, Box::new(powerdns::command));
        }
        let (program, command): (_, Secondary) = match name {
            "knot" => ("knotd", real_peers::knot),
            "nsd" => ("nsd", real_peers::nsd),
            "bind-axfr" => ("named", real_peers::bind_secondary_by_axfr),
            _ => ("named", real_peers::bind_secondary),
        };
        let path = required(program).unwrap();
        let start = move |folder: &Folder, port| command(&path, folder, port, primary);
        Self::start(address, folder, Box::new(start))
    }

    /// A peer as the primary, which tells a secondary of changes.
    pub fn primary(name: &'static str, address: SocketAddr, notify: SocketAddr) -> Self {
        Self::primary_of(name, address, notify, false)
    }

    /// A peer as the primary of a zone whose transfers have several messages.
    pub fn primary_with_bulk(name: &'static str, address: SocketAddr, notify: SocketAddr) -> Self {
        Self::primary_of(name, address, notify, true)
    }

    /// A peer as the primary.
    fn primary_of(
        name: &'static str,
        address: SocketAddr,
        notify: SocketAddr,
        has_bulk: bool,
    ) -> Self {
        let folder = Folder::new(name);
        let zone = write_zone(&folder, has_bulk);
        if name == "powerdns" {
            powerdns::write_primary(&folder, &zone, notify);
            return Self::start(address, folder, Box::new(powerdns::command));
        }
        let start = move |folder: &Folder, port| match name {
            "knot" => knot_primary(folder, (port, notify), "zonefile-load: whole"),
            "nsd" => nsd_primary(folder, (port, notify)),
            _ => bind_primary(folder, (port, notify), BIND_UPDATES),
        };
        let edited = (name == "nsd").then_some(has_bulk);
        Self { edited, ..Self::start(address, folder, Box::new(start)) }
    }

    /// Makes the versions up to one by the file of the zone, if the server takes no updates;
    /// whether it has them now.
    pub fn edit_versions(&self, (from, to): (u32, u32)) -> bool {
        let Some(has_bulk) = self.edited else { return false };
        for serial in from + 1..=to {
            self.edit(&zone_text(serial, has_bulk));
            self.wait_for(serial);
        }
        true
    }

    /// A peer as the primary of a zone that is edited as a file, which has this text first.
    pub fn file_primary(
        name: &'static str,
        address: SocketAddr,
        notify: SocketAddr,
        text: &str,
    ) -> Self {
        let folder = Folder::new(name);
        folder.write("chain.zone", text);
        let start = move |folder: &Folder, port| match name {
            "knot" => knot_primary(folder, (port, notify), "zonefile-load: difference"),
            _ => bind_primary(folder, (port, notify), "ixfr-from-differences yes;"),
        };
        Self::start(address, folder, Box::new(start))
    }

    /// Has the server read the file of the zone, which has this text from now on.
    pub fn edit(&self, text: &str) {
        self.folder.write("chain.zone", text);
        reload(self.process.as_ref().unwrap());
    }

    /// Ends the server and starts it again.
    pub fn restart(&mut self) {
        self.restart_after(|| ());
    }

    /// Ends the server, and starts it again when something else has happened.
    pub fn restart_after(&mut self, meanwhile: impl FnOnce()) {
        self.process = None;
        meanwhile();
        self.begin();
    }

    /// Starts the server, and waits until it answers at all. A client of another test may have the
    /// port.
    fn begin(&mut self) {
        let limit = Instant::now() + LIMIT;
        let mut process = self.start_once();
        while ask(self.address, &Question::new(ZONE, "SOA")).is_err() {
            assert!(Instant::now() < limit, "it does not answer: {}", self.log());
            thread::sleep(Duration::from_millis(20));
            if process.ended() {
                thread::sleep(Duration::from_millis(50));
                process = self.start_once();
            }
        }
        self.process = Some(process);
    }

    /// Starts the server, which may end at once.
    fn start_once(&mut self) -> Process {
        let log = self.log_path(self.starts);
        self.starts += 1;
        Process::start(&(self.start)(&self.folder, self.address.port()), &log).unwrap()
    }

    /// The file with what the server logs behind a start.
    fn log_path(&self, start: usize) -> PathBuf {
        self.folder.path().join(format!("log-{start}"))
    }

    /// The serial that the server has.
    pub fn serial(&self) -> Option<u32> {
        let reply = ask(self.address, &Question::new(ZONE, "SOA")).ok()?;
        reply.answer.first()?.data.text.split_whitespace().nth(2)?.parse().ok()
    }

    /// Waits until the server has a serial.
    pub fn wait_for(&self, serial: u32) {
        let limit = Instant::now() + LIMIT;
        while self.serial() != Some(serial) {
            let has = self.serial();
            assert!(Instant::now() < limit, "{has:?} in place of {serial}: {}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// What the server has logged since it was started first.
    pub fn log(&self) -> String {
        let starts = 0..self.starts;
        starts.map(|start| fs::read_to_string(self.log_path(start)).unwrap_or_default()).collect()
    }
}

/// The key in BIND's section of the zone by which versions are made.
const BIND_UPDATES: &str = "allow-update { key \"transfer.example\"; };";

/// Writes the first version of the zone as a file.
fn write_zone(folder: &Folder, has_bulk: bool) -> PathBuf {
    folder.write("chain.zone", zone_text(FIRST, has_bulk))
}

/// A version of the zone as the text of a file.
fn zone_text(serial: u32, has_bulk: bool) -> String {
    let mut records: Vec<String> = version(serial).into_iter().collect();
    records.extend(bulk().into_iter().filter(|_| has_bulk));
    format!("$TTL 60\n{}\n", records.join("\n"))
}

/// Knot as the primary; its journal holds all versions.
fn knot_primary(folder: &Folder, (port, notify): (u16, SocketAddr), more: &str) -> Command {
    let own = folder.path().display();
    let text = format!(
        "server:\n  listen: 127.0.0.1@{port}\n  rundir: {own}\n  udp-workers: 1\n  \
         tcp-workers: 1\n  background-workers: 1\nlog:\n  - target: stderr\n    any: info\n\
         database:\n  storage: {own}\nkey:\n  - id: {key}\n    algorithm: hmac-sha256\n    \
         secret: {secret}\nremote:\n  - id: secondary\n    address: {}@{}\n    key: {key}\n\
         acl:\n  - id: keyed\n    address: 127.0.0.1\n    key: {key}\n    \
         action: [transfer, update]\nzone:\n  - domain: {ZONE}\n    storage: {own}\n    \
         file: chain.zone\n    acl: keyed\n    notify: secondary\n    zonefile-sync: -1\n    \
         journal-content: changes\n    journal-max-depth: 2000\n    {more}\n",
        notify.ip(),
        notify.port(),
        key = KEY.0,
        secret = KEY.1,
    );
    let mut command = Command::new(required("knotd").unwrap());
    command.arg("-c").arg(folder.write("knot.conf", text));
    command
}

/// NSD as the primary, which sends whole zones: it makes no changes of the files that it reads.
fn nsd_primary(folder: &Folder, (port, notify): (u16, SocketAddr)) -> Command {
    let own = folder.path().display();
    let text = format!(
        "server:\n  ip-address: 127.0.0.1@{port}\n  server-count: 1\n  username: \"\"\n  \
         chroot: \"\"\n  zonesdir: {own}\n  database: \"\"\n  pidfile: {own}/nsd.pid\n  \
         xfrdfile: {own}/xfrd.state\n  zonelistfile: {own}/zone.list\n  rrl-ratelimit: 0\n  \
         xfrdir: {own}\n  xfrd-reload-timeout: 0\n  verbosity: 2\nremote-control:\n  \
         control-enable: no\nkey:\n  name: {key}\n  algorithm: hmac-sha256\n  \
         secret: \"{secret}\"\nzone:\n  name: {ZONE}\n  zonefile: chain.zone\n  \
         provide-xfr: 127.0.0.1 {key}\n  notify: {}@{} {key}\n",
        notify.ip(),
        notify.port(),
        key = KEY.0,
        secret = KEY.1,
    );
    let mut command = Command::new(required("nsd").unwrap());
    command.arg("-d").arg("-c").arg(folder.write("nsd.conf", text));
    command
}

/// BIND as the primary.
fn bind_primary(folder: &Folder, (port, notify): (u16, SocketAddr), more: &str) -> Command {
    let zone = format!(
        "type primary; file \"chain.zone\"; {more} \
         notify explicit; notify-delay 0; also-notify {{ {} port {} key \"{key}\"; }};",
        notify.ip(),
        notify.port(),
        key = KEY.0
    );
    real_peers::bind(&required("named").unwrap(), folder, port, &zone)
}
