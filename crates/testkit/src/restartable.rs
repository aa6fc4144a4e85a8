//! Servers that go away and come back on the same port with what they had.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::process::{Folder, Process, free_port};

/// How long a server may take to come up.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How often a server is started again on another port, when another process took it meanwhile.
const START_TRIES: usize = 4;

/// A server that is started, stopped and started again on one port.
pub(crate) struct RestartableServer {
    name: &'static str,
    /// Folder of the server's files, the log among them.
    pub(crate) folder: Folder,
    /// Port of 127.0.0.1 that the server listens on.
    pub(crate) port: u16,
    process: Option<Process>,
}

impl RestartableServer {
    /// Starts a server on a free port.
    ///
    /// # Panics
    /// When it does not come up; the message has its log.
    pub(crate) fn start(
        name: &'static str,
        folder: Folder,
        command: impl Fn(&Folder, u16) -> Command,
        is_up: impl Fn(u16) -> bool,
    ) -> Self {
        let mut server = Self { name, folder, port: 0, process: None };
        for _ in 0..START_TRIES {
            server.port = free_port();
            if server.start_once(&command, &is_up) {
                return server;
            }
        }
        panic!("{name} ends at once; its log:\n{}", server.log());
    }

    /// Starts it on the port that it had; whether it came up. A process that has taken the port
    /// meanwhile, such as another test that looks for a free one, is waited for.
    pub(crate) fn restart(
        &mut self,
        command: impl Fn(&Folder, u16) -> Command,
        is_up: impl Fn(u16) -> bool,
    ) -> bool {
        let limit = Instant::now() + START_LIMIT;
        loop {
            if self.start_once(&command, &is_up) {
                return true;
            }
            let is_taken = self.log().to_ascii_lowercase().contains("address already in use");
            if !is_taken || Instant::now() > limit {
                return false;
            }
            thread::sleep(Duration::from_millis(250));
        }
    }

    /// Starts it on its port; whether it came up.
    fn start_once(
        &mut self,
        command: impl Fn(&Folder, u16) -> Command,
        is_up: impl Fn(u16) -> bool,
    ) -> bool {
        let log = self.folder.path().join("log");
        let mut process = Process::start(&command(&self.folder, self.port), &log)
            .unwrap_or_else(|error| panic!("{} cannot be started: {error}", self.name));
        let limit = Instant::now() + START_LIMIT;
        while !process.ended() {
            if is_up(self.port) {
                self.process = Some(process);
                return true;
            }
            assert!(Instant::now() < limit, "{} is silent:\n{}", self.name, self.log());
            thread::sleep(Duration::from_millis(20));
        }
        false
    }

    /// Returns the server's log.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Ends the server with this signal, and waits for the end.
    pub(crate) fn stop(&mut self, signal: &str) {
        let Some(mut process) = self.process.take() else { return };
        process.signal(signal);
        let limit = Instant::now() + START_LIMIT;
        while !process.ended() && Instant::now() < limit {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends a signal, such as `STOP`, to the server.
    pub(crate) fn signal(&self, name: &str) {
        if let Some(process) = &self.process {
            process.signal(name);
        }
    }
}
