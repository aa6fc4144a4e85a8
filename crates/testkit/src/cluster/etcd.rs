//! etcd as a process: where an API server keeps its objects.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::built;
use crate::process::{Folder, free_port, installed};
use crate::restartable::RestartableServer;

/// How long etcd may take for a request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Where the program of etcd is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EtcdBuild {
    /// The version that this Kubernetes is released with.
    Released,
    /// The package of the distribution. Before 3.4.31 it lacks what streamed lists need.
    Distribution,
}

/// A running etcd with one member.
pub(super) struct Etcd {
    server: RestartableServer,
    build: EtcdBuild,
    /// Port on which the member would speak with other members.
    peer_port: u16,
}

impl Etcd {
    /// Starts an empty one.
    ///
    /// # Panics
    /// When it is not installed or does not come up.
    pub(super) fn start(build: EtcdBuild) -> Self {
        let peer_port = free_port();
        let command = |folder: &Folder, port| command(build, folder, port, peer_port);
        let server = RestartableServer::start("etcd", Folder::new("etcd"), command, is_up);
        Self { server, build, peer_port }
    }

    /// Returns the URL for clients.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.server.port)
    }

    /// Ends it and starts it again with its data, on its ports.
    ///
    /// # Panics
    /// When it does not come back.
    pub(super) fn restart(&mut self) {
        self.server.stop("TERM");
        let command = |folder: &Folder, port| command(self.build, folder, port, self.peer_port);
        let is_up = self.server.restart(command, is_up);
        assert!(is_up, "etcd does not come back:\n{}", self.server.log());
    }

    /// Forgets all but the present revision.
    ///
    /// # Panics
    /// When it is away.
    pub(super) fn compact(&self) {
        let port = self.server.port;
        let present = call(port, "/v3/kv/range", &json!({"key": "AA=="})).expect("etcd is there");
        let revision = present["header"]["revision"].clone();
        let request = json!({"revision": revision, "physical": true});
        let reply = call(port, "/v3/kv/compaction", &request).expect("etcd is there");
        // A revision that is compacted already is no fault.
        let is_done = reply["header"].is_object() || reply.to_string().contains("compacted");
        assert!(is_done, "etcd does not compact {revision}: {reply}");
    }
}

/// Returns how it is run.
fn command(build: EtcdBuild, folder: &Folder, port: u16, peer_port: u16) -> Command {
    let [client, peer] = [port, peer_port].map(|port| format!("http://127.0.0.1:{port}"));
    let mut command = match build {
        EtcdBuild::Released => Command::new(built("etcd")),
        EtcdBuild::Distribution => Command::new(installed("etcd").unwrap_or_else(|| {
            panic!("etcd is not installed: `make packages` installs what the tests need")
        })),
    };
    if build == EtcdBuild::Released {
        // What a test writes need not outlast the machine.
        command.arg("--unsafe-no-fsync");
    }
    command.arg("--data-dir").arg(folder.path().join("data"));
    command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
    command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
    command.args(["--initial-cluster", &format!("default={peer}"), "--log-level", "warn"]);
    command
}

/// Whether it answers on this port.
fn is_up(port: u16) -> bool {
    call(port, "/v3/kv/range", &json!({"key": "AA=="})).is_ok_and(|it| it["header"].is_object())
}

/// Calls a method of its API, which is offered in JSON too.
///
/// # Errors
/// When it is away.
fn call(port: u16, path: &str, request: &Value) -> io::Result<Value> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let body = request.to_string();
    let length = body.len();
    let head = format!("POST {path} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all((head + &body).as_bytes())?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    let (_, body) = response.split_once("\r\n\r\n").ok_or(io::ErrorKind::InvalidData)?;
    serde_json::from_str(body).map_err(io::Error::other)
}
