//! Real name servers, configured with the same zones as Zonda.

use std::fmt::{self, Write as _};
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use crate::differential::Contestant;
use crate::process::{Folder, Process, installed, start_on_free_port};

/// The servers that the kit can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PeerKind {
    /// NSD of NLnet Labs.
    Nsd,
    /// Knot DNS of CZ.NIC.
    Knot,
    /// BIND 9 of ISC.
    Bind,
    /// PowerDNS with its bind backend.
    Pdns,
}

impl PeerKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Nsd, Self::Knot, Self::Bind, Self::Pdns];

    /// Returns the program that is run.
    fn program(self) -> &'static str {
        match self {
            Self::Nsd => "nsd",
            Self::Knot => "knotd",
            Self::Bind => "named",
            Self::Pdns => "pdns_server",
        }
    }
}

impl fmt::Display for PeerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nsd => "NSD",
            Self::Knot => "Knot",
            Self::Bind => "BIND",
            Self::Pdns => "PowerDNS",
        })
    }
}

/// A running peer.
pub struct Peer {
    /// Kind of the server.
    pub kind: PeerKind,
    /// The running program.
    pub process: Process,
    /// Address of the server, over UDP and TCP.
    pub address: SocketAddr,
    _folder: Folder,
}

impl Peer {
    /// Starts a server with these zones, given as (name, text), and waits until it answers.
    ///
    /// # Panics
    /// When it is not installed, or refuses a zone; the message says what its log says.
    pub fn start(kind: PeerKind, zones: &[(&str, &str)]) -> Self {
        let program = kind.program();
        let path = installed(program).unwrap_or_else(|| {
            panic!("{program} is not installed: `make packages` installs what the tests need")
        });
        let folder = Folder::new(program);
        let files: Vec<ZoneFile<'_>> = zones
            .iter()
            .enumerate()
            .map(|(number, (name, text))| {
                let path = folder.write(&format!("{number}.zone"), text);
                ZoneFile { name: name.trim_end_matches('.'), path }
            })
            .collect();
        let names: Vec<&str> = zones.iter().map(|(name, _)| *name).collect();
        let (process, address) = start_on_free_port(program, &folder, &names, |folder, port| {
            let mut command = Command::new(&path);
            match kind {
                PeerKind::Nsd => nsd(&mut command, folder, port, &files),
                PeerKind::Knot => knot(&mut command, folder, port, &files),
                PeerKind::Bind => command = bind(&path, folder, port, &files),
                PeerKind::Pdns => pdns(&mut command, folder, port, &files),
            }
            command
        });
        Self { kind, process, address, _folder: folder }
    }

    /// Returns the peer as one that is asked.
    pub fn contestant(&self) -> Contestant {
        Contestant { name: self.kind.to_string(), address: self.address }
    }
}

/// A zone as the peers' configurations name it.
struct ZoneFile<'a> {
    /// Name without the dot at the end; empty for the root.
    name: &'a str,
    path: PathBuf,
}

impl ZoneFile<'_> {
    /// Returns the name, or a dot for the root.
    fn text(&self) -> &str {
        if self.name.is_empty() { "." } else { self.name }
    }
}

/// Writes one line or block of configuration for each zone.
fn per_zone(zones: &[ZoneFile<'_>], block: impl Fn(&str, String) -> String) -> String {
    zones.iter().fold(String::new(), |mut text, zone| {
        let _ = writeln!(text, "{}", block(zone.text(), zone.path.display().to_string()));
        text
    })
}

fn nsd(command: &mut Command, folder: &Folder, port: u16, zones: &[ZoneFile<'_>]) {
    let own = folder.path().display();
    let zones = per_zone(zones, |n, file| format!("zone:\n  name: \"{n}\"\n  zonefile: {file}"));
    let text = format!(
        "server:\n  ip-address: 127.0.0.1@{port}\n  server-count: 1\n  username: \"\"\n  \
         chroot: \"\"\n  zonesdir: {own}\n  database: \"\"\n  pidfile: {own}/nsd.pid\n  \
         xfrdfile: {own}/xfrd.state\n  zonelistfile: {own}/zone.list\n  rrl-ratelimit: 0\n\
         remote-control:\n  control-enable: no\n{zones}"
    );
    command.arg("-d").arg("-c").arg(folder.write("nsd.conf", text));
}

fn knot(command: &mut Command, folder: &Folder, port: u16, zones: &[ZoneFile<'_>]) {
    let own = folder.path().display();
    let zones = per_zone(zones, |n, file| format!("  - domain: \"{n}\"\n    file: {file}"));
    let text = format!(
        "server:\n  listen: 127.0.0.1@{port}\n  rundir: {own}\n  udp-workers: 1\n  \
         tcp-workers: 1\n  background-workers: 1\nlog:\n  - target: stderr\n    any: warning\n\
         database:\n  storage: {own}\ntemplate:\n  - id: default\n    storage: {own}\n    \
         zonefile-load: whole\n    zonefile-sync: -1\n    journal-content: none\nzone:\n{zones}"
    );
    command.arg("-c").arg(folder.write("knot.conf", text));
}

/// Debian confines `/usr/sbin/named` to its own folders (AppArmor), so a copy is run.
fn bind(program: &PathBuf, folder: &Folder, port: u16, zones: &[ZoneFile<'_>]) -> Command {
    let own = folder.path().display();
    let zones =
        per_zone(zones, |n, file| format!("zone \"{n}\" {{ type primary; file \"{file}\"; }};"));
    let text = format!(
        "options {{ directory \"{own}\"; listen-on port {port} {{ 127.0.0.1; }}; \
         listen-on-v6 {{ none; }}; recursion no; pid-file \"{own}/named.pid\"; \
         session-keyfile \"{own}/session.key\"; dnssec-validation no; notify no; \
         empty-zones-enable no; check-names primary ignore; }}; controls {{}};\n{zones}"
    );
    let copy = folder.path().join("named");
    fs::copy(program, &copy).expect("a file in a folder of our own is writable");
    let mut command = Command::new(copy);
    command.args(["-g", "-n", "1", "-c"]).arg(folder.write("named.conf", text));
    command
}

fn pdns(command: &mut Command, folder: &Folder, port: u16, zones: &[ZoneFile<'_>]) {
    let own = folder.path().display();
    let zones =
        per_zone(zones, |n, file| format!("zone \"{n}\" {{ type native; file \"{file}\"; }};"));
    let list = folder.write("bind.conf", zones);
    let text = format!(
        "launch=bind\nbind-config={}\nlocal-address=127.0.0.1\nlocal-port={port}\n\
         socket-dir={own}\nguardian=no\ndaemon=no\nreceiver-threads=1\nloglevel=4\n\
         security-poll-suffix=\nany-to-tcp=no\ndname-processing=yes\n",
        list.display()
    );
    folder.write("pdns.conf", text);
    command.arg(format!("--config-dir={own}"));
}
