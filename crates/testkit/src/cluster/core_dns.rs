//! CoreDNS as a process.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{Question, ask};
use crate::cluster::built;
use crate::differential::Contestant;
use crate::process::{Folder, Process, start_on_free_port};

/// How long a server without zones may take until it answers anything.
const START_LIMIT: Duration = Duration::from_secs(30);

/// A running CoreDNS.
pub struct CoreDns {
    /// The running program.
    pub process: Process,
    /// Address of the server, over UDP and TCP.
    pub address: SocketAddr,
    _folder: Folder,
}

impl CoreDns {
    /// Starts a server with this Corefile and waits until it answers with authority for these
    /// zones, or anything at all if there are none.
    ///
    /// Server blocks that name no port are at the address; each has to say `bind 127.0.0.1`.
    /// `directory` is what relative paths of the Corefile begin at.
    ///
    /// # Panics
    /// When the program is not built, refuses the Corefile or does not come up.
    pub fn start(corefile: &str, directory: &Path, zones: &[&str]) -> Self {
        let program = built("coredns");
        let folder = Folder::new("coredns");
        let corefile = folder.write("Corefile", corefile);
        let (process, address) = start_on_free_port("coredns", &folder, zones, |_, port| {
            // `timeout`, which runs every server, has no option for its directory; env has.
            let mut command = Command::new("env");
            command.arg("--chdir").arg(directory).arg(&program);
            command.arg("-conf").arg(&corefile).args(["-dns.port", &port.to_string()]);
            command
        });
        let mut server = Self { process, address, _folder: folder };
        if zones.is_empty() {
            server.wait();
        }
        server
    }

    /// Waits until it answers.
    fn wait(&mut self) {
        let limit = Instant::now() + START_LIMIT;
        while ask(self.address, &Question::new(".", "NS")).is_err() {
            let is_over = self.process.ended() || Instant::now() > limit;
            assert!(!is_over, "coredns does not answer; its log:\n{}", self.process.log(""));
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the server as one that is asked.
    pub fn contestant(&self) -> Contestant {
        Contestant { name: "CoreDNS".to_owned(), address: self.address }
    }
}
