//! Commands to the running server.

use crate::cli::environment;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use zonda_server::client::{answers, ask, encoded};

/// How to reach the server.
#[derive(Args)]
struct Target {
    /// The server's admin socket (default: `$ZONDA_ADMIN_SOCKET`, else the only
    /// one found where servers put it)
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

impl Target {
    /// Asks the server and prints its answer.
    fn ask(self, method: &str, path: &str) -> ExitCode {
        let socket = match self.socket.or_else(named_socket).map_or_else(only_socket, Ok) {
            Ok(socket) => socket,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        };
        match ask(&socket, method, path) {
            Ok(answer) if (200..300).contains(&answer.status) => {
                print!("{}", printable(&answer.body));
                ExitCode::SUCCESS
            }
            Ok(answer) => {
                eprint!("{}", printable(&answer.body));
                ExitCode::FAILURE
            }
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        }
    }
}

/// The socket that the environment names, for the server too.
fn named_socket() -> Option<PathBuf> {
    std::env::var_os("ZONDA_ADMIN_SOCKET").map(PathBuf::from)
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

/// The socket of the only server that runs here.
fn only_socket() -> Result<PathBuf, String> {
    let mut found = zonda_config::find_sockets(environment());
    // Any user may be able to put a socket into the working directory; the others are the system's.
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

/// Load changed zones and the configuration anew
#[derive(Args)]
pub struct Reload {
    /// Load this zone only, changed or not
    zone: Option<String>,
    #[command(flatten)]
    target: Target,
}

impl Reload {
    /// Reloads.
    pub fn run(self) -> ExitCode {
        match self.zone {
            Some(zone) => self.target.ask("POST", &format!("/v1/reload?zone={}", encoded(&zone))),
            None => self.target.ask("POST", "/v1/reload"),
        }
    }
}

/// Show how the server is
#[derive(Args)]
pub struct Status {
    #[command(flatten)]
    target: Target,
}

impl Status {
    /// Shows it.
    pub fn run(self) -> ExitCode {
        self.target.ask("GET", "/v1/status")
    }
}

/// Show what the server has counted
#[derive(Args)]
pub struct Stats {
    #[command(flatten)]
    target: Target,
}

impl Stats {
    /// Shows it.
    pub fn run(self) -> ExitCode {
        self.target.ask("GET", "/v1/stats")
    }
}

/// List the zones, with serial, records and what is wrong with them
#[derive(Args)]
pub struct Zones {
    /// Show this zone only
    zone: Option<String>,
    /// List at most this many
    #[arg(long, value_name = "N", default_value_t = 1000)]
    limit: usize,
    /// List zones behind this one
    #[arg(long, value_name = "NAME")]
    after: Option<String>,
    #[command(flatten)]
    target: Target,
}

impl Zones {
    /// Lists them.
    pub fn run(self) -> ExitCode {
        let after = self.after.map_or(String::new(), |name| format!("&after={}", encoded(&name)));
        match self.zone {
            Some(zone) => self.target.ask("GET", &format!("/v1/zones/{}", encoded(&zone))),
            None => self.target.ask("GET", &format!("/v1/zones?limit={}{after}", self.limit)),
        }
    }
}

/// Show or forget what is kept of a name that other servers answer for
#[derive(Args)]
pub struct Cache {
    #[command(subcommand)]
    command: CacheCommand,
}

/// What is done with the cache.
#[derive(Subcommand)]
enum CacheCommand {
    /// Show the answers that are kept for a name
    Show {
        /// The name
        name: String,
        #[command(flatten)]
        target: Target,
    },
    /// Forget the answers that are kept for a name
    Flush {
        /// The name
        name: String,
        /// Forget those for all names below it, too; "." is everything
        #[arg(long)]
        tree: bool,
        #[command(flatten)]
        target: Target,
    },
}

impl Cache {
    /// Shows or forgets.
    pub fn run(self) -> ExitCode {
        match self.command {
            CacheCommand::Show { name, target } => {
                target.ask("GET", &format!("/v1/cache?name={}", encoded(&name)))
            }
            CacheCommand::Flush { name, tree, target } => {
                let tree = if tree { "?tree" } else { "" };
                target.ask("DELETE", &format!("/v1/cache/{}{tree}", encoded(&name)))
            }
        }
    }
}

/// Stop the server once all received queries are answered
#[derive(Args)]
pub struct Stop {
    #[command(flatten)]
    target: Target,
}

impl Stop {
    /// Stops it.
    pub fn run(self) -> ExitCode {
        self.target.ask("POST", "/v1/stop")
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
