//! Commands to the running server.
//!
//! | file | what |
//! |---|---|
//! | `explain` | why a client gets the answer that it gets |
//! | `pool` | pools and their members |
//! | `records` | the records of zones, read and changed |
//! | `show` | what the server answers, as people read it |
//! | `table` | columns, times and octets |
//! | `transfer` | transfers of zones that run |
//! | `zone` | the zones of the server |
//! | `zone_results` | what commands about one zone have done |

mod explain;
mod pool;
mod records;
mod show;
mod table;
mod transfer;
mod zone;
mod zone_results;

pub use explain::Explain;
pub use pool::Pool;
pub use transfer::Transfer;
pub use zone::Zone;

use crate::cli::environment;
use crate::output::{self, Failure};
use clap::{Args, Subcommand};
use serde_json::Value;
use show::Show;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use zonda_server::client::{self, answers, ask, ask_with, encoded};

/// How long `zonda ready` waits for the server: a container runs it every ten seconds.
const READY_MAX: Duration = Duration::from_secs(5);

/// How to reach the server.
#[derive(Args)]
struct Target {
    /// The server's admin socket (default: `$ZONDA_ADMIN_SOCKET`, else the only
    /// one found where servers put it)
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// How to reach the server, and how to show what it answers.
#[derive(Args)]
struct AdminConnection {
    #[command(flatten)]
    target: Target,
    /// Print what the server answers as it is: JSON, as described in docs/admin.md
    #[arg(long)]
    json: bool,
}

impl Target {
    /// The server's socket.
    fn socket(self) -> Result<PathBuf, String> {
        self.path()
    }

    /// Returns the path of the socket, for further requests.
    fn path(&self) -> Result<PathBuf, String> {
        self.socket.clone().or_else(named_socket).map_or_else(only_socket, Ok)
    }
}

impl AdminConnection {
    /// Asks the server and prints its answer: a table, or JSON. A failure of the server is told on
    /// standard error.
    fn ask(self, method: &str, path: &str, show: Show) -> ExitCode {
        output::end(self.try_ask(method, path, None, show).map(exit_code))
    }

    /// Sends the server a request, and prints its answer likewise. What was accepted, and is not
    /// done, is a failure.
    fn ask_for_all(self, method: &str, path: &str, show: Show) -> ExitCode {
        let done = |status| ExitCode::from(u8::from(status != 200));
        output::end(self.try_ask(method, path, None, show).map(done))
    }

    /// Sends the server a request with a body, which is JSON, and prints its answer likewise.
    fn send(self, method: &str, path: &str, body: &Value, show: Show) -> ExitCode {
        output::end(self.try_ask(method, path, Some(&body.to_string()), show).map(exit_code))
    }

    /// Sends a request and prints the answer; returns its status.
    fn try_ask(
        self,
        method: &str,
        path: &str,
        body: Option<&str>,
        show: Show,
    ) -> Result<u16, Failure> {
        let socket = self.target.socket()?;
        let answer = match body {
            Some(body) => ask_with(&socket, (method, path), &[], body),
            None => ask(&socket, method, path),
        };
        let answer = answer.map_err(|error| error.to_string())?;
        let body = &answer.body;
        let value: Option<Value> = serde_json::from_str(body).ok().filter(|_| !self.json);
        let mut text = Vec::new();
        let problem = value.as_ref().and_then(|value| value["detail"].as_str());
        match &value {
            Some(_) if problem.is_some() => text.extend(problem.unwrap_or_default().bytes()),
            Some(value) => show(value, &mut text).map_err(|error| error.to_string())?,
            None => text.extend(body.as_bytes()),
        }
        if (200..300).contains(&answer.status) {
            let text = printable(&String::from_utf8_lossy(&text));
            output::print(|out| out.write_all(text.as_bytes()))?;
        } else {
            printable(&String::from_utf8_lossy(&text)).lines().for_each(output::line);
        }
        Ok(answer.status)
    }
}

/// The exit code for the status of an answer.
fn exit_code(status: u16) -> ExitCode {
    ExitCode::from(u8::from(!(200..300).contains(&status)))
}

/// An answer without what a terminal would take for commands.
fn printable(answer: &str) -> String {
    let mut printable = String::with_capacity(answer.len());
    for character in answer.chars() {
        match character {
            '\n' | '\t' => printable.push(character),
            it if it.is_control() => printable.extend(it.escape_default()),
            it => printable.push(it),
        }
    }
    printable
}

/// The socket that the environment names, for the server too.
fn named_socket() -> Option<PathBuf> {
    std::env::var_os("ZONDA_ADMIN_SOCKET").map(PathBuf::from)
}

/// The socket of the only server that runs here.
fn only_socket() -> Result<PathBuf, String> {
    let mut found = zonda_config::find_sockets(environment());
    // Any user may be able to put a socket into the working directory; the other folders belong to
    // the system.
    let working = std::env::current_dir().ok();
    found.retain(|socket| answers(socket, socket.parent() != working.as_deref()));
    match found.len() {
        0 => Err("no running server found; name its admin socket with --socket".to_owned()),
        1 => Ok(found.remove(0)),
        _ => {
            let list: Vec<_> =
                found.iter().map(|path| format!("  --socket {}", path.display())).collect();
            Err(format!("several servers run here; choose one:\n{}", list.join("\n")))
        }
    }
}

/// Reload changed zones and the configuration
///
/// The exit code is 1 when something could not be loaded: its former version stays in force. `zonda
/// zone reload` loads one zone, changed or not.
#[derive(Args)]
pub struct Reload {
    #[command(flatten)]
    asked: AdminConnection,
}

impl Reload {
    /// Reloads.
    pub fn run(self) -> ExitCode {
        self.asked.ask("POST", "/v1/reload", show::reload)
    }
}

/// Show the state of the server
#[derive(Args)]
pub struct Status {
    #[command(flatten)]
    asked: AdminConnection,
}

impl Status {
    /// Shows it.
    pub fn run(self) -> ExitCode {
        self.asked.ask("GET", "/v1/status", show::status)
    }
}

/// Tell by the exit code whether the server is ready: 0, 1 if not, 2 if it cannot be asked
///
/// Ready means that every zone is served and every thread does its work; otherwise the reasons are
/// printed, a line each. For health checks of containers, in which there is no other program.
#[derive(Args)]
#[command(after_help = "\
Examples:
  zonda ready
  HEALTHCHECK CMD [\"/usr/bin/zonda\", \"ready\"]     # in a Dockerfile")]
pub struct Ready {
    #[command(flatten)]
    target: Target,
}

impl Ready {
    /// Asks.
    pub fn run(self) -> ExitCode {
        output::end(self.ask())
    }

    fn ask(self) -> Result<ExitCode, Failure> {
        let socket = self.target.socket()?;
        let answer = client::ask_within(&socket, "GET", "/ready", READY_MAX);
        let answer = answer.map_err(|error| error.to_string())?;
        output::print(|out| out.write_all(answer.body.as_bytes()))?;
        Ok(ExitCode::from(u8::from(answer.status != 200)))
    }
}

/// Show the counters of the server
#[derive(Args)]
pub struct Stats {
    #[command(flatten)]
    asked: AdminConnection,
}

impl Stats {
    /// Shows it.
    pub fn run(self) -> ExitCode {
        self.asked.ask("GET", "/v1/stats", show::stats)
    }
}

/// Show the servers that names are forwarded to
#[derive(Args)]
pub struct Upstream {
    #[command(subcommand)]
    command: UpstreamCommand,
}

/// Commands about upstreams.
#[derive(Subcommand)]
enum UpstreamCommand {
    /// List the servers that names are forwarded to, and how they answer
    #[command(after_help = "\
Examples:
  zonda upstream list")]
    List {
        #[command(flatten)]
        admin: AdminConnection,
    },
}

impl Upstream {
    /// Does what the subcommand says.
    pub fn run(self) -> ExitCode {
        match self.command {
            UpstreamCommand::List { admin } => admin.ask("GET", "/v1/upstreams", show::upstreams),
        }
    }
}

/// Show or remove the cached answers for a name
#[derive(Args)]
pub struct Cache {
    #[command(subcommand)]
    command: CacheCommand,
}

/// Commands about the answer cache.
#[derive(Subcommand)]
enum CacheCommand {
    /// Show the cached answers for a name
    Show {
        /// The name of the answers
        name: String,
        #[command(flatten)]
        asked: AdminConnection,
    },
    /// Remove the cached answers for a name
    Flush {
        /// The name of the answers
        name: String,
        /// Remove those for all names below it, too; "." is everything
        #[arg(long)]
        tree: bool,
        #[command(flatten)]
        asked: AdminConnection,
    },
}

impl Cache {
    /// Shows or forgets.
    pub fn run(self) -> ExitCode {
        match self.command {
            CacheCommand::Show { name, asked } => {
                asked.ask("GET", &format!("/v1/cache?name={}", encoded(&name)), show::kept_answers)
            }
            CacheCommand::Flush { name, tree, asked } => {
                let tree = if tree { "?tree" } else { "" };
                asked.ask("DELETE", &format!("/v1/cache/{}{tree}", encoded(&name)), show::forgotten)
            }
        }
    }
}

/// Stop the server once all received queries are answered
#[derive(Args)]
pub struct Stop {
    #[command(flatten)]
    asked: AdminConnection,
}

impl Stop {
    /// Stops the server.
    pub fn run(self) -> ExitCode {
        self.asked.ask("POST", "/v1/stop", show::stopping)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_gives_no_commands_to_the_terminal() {
        assert_eq!(printable("a\tb\n\u{1b}[2Jc\u{9b}é"), "a\tb\n\\u{1b}[2Jc\\u{9b}é");
    }
}
