//! gdnsd, whose plugins choose among addresses by their state and by the client's network.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use crate::process::{Folder, Process, installed, start_on_free_port};

/// The program, and what messages call it.
const PROGRAM: &str = "gdnsd";
/// The file with the states of all that is monitored as `told`.
const STATES: &str = "states";

/// A running gdnsd.
pub struct Gdnsd {
    /// The running program.
    pub process: Process,
    /// Address of the server, over UDP and TCP.
    pub address: SocketAddr,
    /// Folder of the server: its configuration, its sockets and its file of states.
    folder: Folder,
}

impl Gdnsd {
    /// Starts a server with one zone, given as (name, text), and these stanzas of `service_types`
    /// and `plugins`, and waits until it answers. What is monitored as `told` is in the state that
    /// `states` says, a line `NAME => DOWN` each, and up if it is not there.
    ///
    /// # Panics
    /// When it is not installed, or refuses its configuration; the message says what its log says.
    pub fn start(
        (zone, text): (&str, &str),
        service_types: &str,
        plugins: &str,
        states: &str,
    ) -> Self {
        let path = installed(PROGRAM).unwrap_or_else(|| {
            panic!("{PROGRAM} is not installed: `make packages` installs what the tests need")
        });
        let folder = Folder::new(PROGRAM);
        for name in ["zones", "run", "state", "geoip"] {
            std::fs::create_dir(folder.path().join(name)).expect("a new folder is empty");
        }
        folder.write(&format!("zones/{}", zone.trim_end_matches('.')), text);
        folder.write(STATES, states);
        let own = folder.path().display().to_string();
        let (process, address) = start_on_free_port(PROGRAM, &folder, &[zone], |folder, port| {
            let config = format!(
                "options => {{ listen => 127.0.0.1:{port}, run_dir => {own}/run,\n  \
                 state_dir => {own}/state, udp_threads => 1, tcp_threads => 1, min_ttl => 1 }}\n\
                 service_types => {{\n  told => {{ plugin => extfile, file => {own}/{STATES}, \
                 direct => true, interval => 2 }}\n{service_types}}}\n\
                 plugins => {{\n{plugins}}}\n"
            );
            folder.write("config", config);
            let mut command = Command::new(&path);
            command.arg("-c").arg(folder.path()).arg("start");
            command
        });
        Self { process, address, folder }
    }

    /// Says which states hold whatever monitoring finds, a line `NAME/SERVICE => STATE` each; the
    /// server reads them within a few seconds.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn override_states(&self, lines: &str) {
        let new: PathBuf = self.folder.write("state/new", lines);
        let file = self.folder.path().join("state/admin_state");
        std::fs::rename(new, file).expect("a file in a folder of our own is writable");
    }
}
