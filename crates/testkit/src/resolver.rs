//! Real resolvers that forward all questions to another server.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{Question, ask};
use crate::differential::Contestant;
use crate::process::{Folder, Process, installed, start_on_free_port};

/// How long one may take until it answers.
const START_LIMIT: Duration = Duration::from_secs(30);

/// A running resolver.
pub struct Resolver {
    /// Address of the resolver, over UDP and TCP.
    pub address: SocketAddr,
    _process: Process,
    _folder: Folder,
}

impl Resolver {
    /// Starts Unbound, which forwards to `upstream`, validates nothing, and knows no names itself,
    /// and waits until it answers for `name`.
    ///
    /// # Panics
    /// When it is not installed, or does not come up.
    pub fn unbound(upstream: SocketAddr, name: &str) -> Self {
        let program = installed("unbound").unwrap_or_else(|| {
            panic!("unbound is not installed: `make packages` installs what the tests need")
        });
        let folder = Folder::new("unbound");
        // Debian confines `/usr/sbin/unbound` to its own folders (AppArmor), so a copy is run.
        let copy = folder.path().join("unbound");
        fs::copy(program, &copy).expect("a file in a folder of our own is writable");
        let (process, address) = start_on_free_port("unbound", &folder, &[], |folder, port| {
            let mut command = Command::new(&copy);
            let text = configuration(folder, port, upstream);
            command.arg("-d").arg("-c").arg(folder.write("unbound.conf", text));
            command
        });
        wait_until_it_answers("unbound", &process, address, name);
        Self { address, _process: process, _folder: folder }
    }

    /// Starts BIND, which forwards to `upstream`, validates nothing, and knows no names itself, and
    /// waits until it answers for `name`.
    ///
    /// # Panics
    /// When it is not installed, or does not come up.
    pub fn bind(upstream: SocketAddr, name: &str) -> Self {
        let program = installed("named").unwrap_or_else(|| {
            panic!("named is not installed: `make packages` installs what the tests need")
        });
        let folder = Folder::new("named");
        // Debian confines `/usr/sbin/named` to its own folders (AppArmor), so a copy is run.
        let copy = folder.path().join("named");
        fs::copy(program, &copy).expect("a file in a folder of our own is writable");
        let (process, address) = start_on_free_port("named", &folder, &[], |folder, port| {
            let mut command = Command::new(&copy);
            let text = configuration_of_bind(folder, port, upstream);
            command.args(["-g", "-n", "1", "-c"]).arg(folder.write("named.conf", text));
            command
        });
        wait_until_it_answers("named", &process, address, name);
        Self { address, _process: process, _folder: folder }
    }

    /// Returns the resolver as one that is asked.
    pub fn contestant(&self) -> Contestant {
        Contestant { name: "Unbound".to_owned(), address: self.address }
    }
}

/// Waits until a resolver answers for a name.
fn wait_until_it_answers(program: &str, process: &Process, address: SocketAddr, name: &str) {
    let limit = Instant::now() + START_LIMIT;
    let question = Question::new(name, "SOA").recursive();
    while !ask(address, &question).is_ok_and(|reply| reply.rcode() == 0) {
        let log = || process.log("");
        assert!(Instant::now() < limit, "{program} does not answer; its log:\n{}", log());
        thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the configuration of BIND.
fn configuration_of_bind(folder: &Folder, port: u16, upstream: SocketAddr) -> String {
    let own = folder.path().display();
    let (host, upstream_port) = (upstream.ip(), upstream.port());
    format!(
        "options {{ directory \"{own}\"; listen-on port {port} {{ 127.0.0.1; }}; \
         listen-on-v6 {{ none; }}; recursion yes; pid-file \"{own}/named.pid\"; \
         session-keyfile \"{own}/session.key\"; dnssec-validation no; \
         empty-zones-enable no; forward only; \
         forwarders {{ {host} port {upstream_port}; }}; }}; controls {{}};\n"
    )
}

/// Returns the configuration of Unbound.
fn configuration(folder: &Folder, port: u16, upstream: SocketAddr) -> String {
    let own = folder.path().display();
    let (host, upstream_port) = (upstream.ip(), upstream.port());
    let local = ["test", "invalid", "onion", "localhost", "home.arpa"];
    let local = local.map(|name| format!("  local-zone: \"{name}.\" nodefault\n")).concat();
    format!(
        "server:\n  interface: 127.0.0.1@{port}\n  username: \"\"\n  chroot: \"\"\n  \
         directory: \"{own}\"\n  pidfile: \"\"\n  use-syslog: no\n  num-threads: 1\n  \
         do-not-query-localhost: no\n  module-config: \"iterator\"\n  minimal-responses: yes\n  \
         max-udp-size: 1232\n{local}remote-control:\n  control-enable: no\nforward-zone:\n  \
         name: \".\"\n  forward-addr: {host}@{upstream_port}\n"
    )
}
