//! `zonda zone`: the zones of the running server.

use super::{AdminConnection, show};
use clap::{Args, Subcommand};
use std::process::ExitCode;
use zonda_server::client::encoded;

/// List, show or reload the zones of the running server
///
/// For zone files, which need no server, see `zonda file`.
#[derive(Args)]
pub struct Zone {
    #[command(subcommand)]
    command: ZoneCommand,
}

/// What is done with the zones.
#[derive(Subcommand)]
enum ZoneCommand {
    /// List the zones, with serial, records and what is wrong with them
    ///
    /// The state is `served`, `stale` (served as it was before its file became wrong) or `not
    /// served`.
    #[command(after_help = "\
Examples:
  zonda zone list
  zonda zone list --limit 20 --after example.com")]
    List {
        /// List at most this many
        #[arg(long, value_name = "N", default_value_t = 1000)]
        limit: usize,
        /// List zones behind this one
        #[arg(long, value_name = "NAME")]
        after: Option<String>,
        #[command(flatten)]
        admin: AdminConnection,
    },
    /// Show one zone: its state, serial, records and file, and what is wrong with it
    ///
    /// The exit code is 1 when the server has no such zone.
    #[command(after_help = "\
Examples:
  zonda zone show example.com")]
    Show {
        /// The zone
        #[arg(value_name = "NAME")]
        zone: String,
        #[command(flatten)]
        admin: AdminConnection,
    },
    /// Load one zone anew, whether its file has changed or not
    ///
    /// The exit code is 1 when it could not be loaded: its former version stays in force. `zonda
    /// reload` loads the configuration and every zone that has changed.
    #[command(after_help = "\
Examples:
  zonda zone reload example.com")]
    Reload {
        /// The zone
        #[arg(value_name = "NAME")]
        zone: String,
        #[command(flatten)]
        admin: AdminConnection,
    },
}

impl Zone {
    /// Does what the subcommand says.
    pub fn run(self) -> ExitCode {
        match self.command {
            ZoneCommand::List { limit, after, admin } => {
                let after =
                    after.map_or(String::new(), |name| format!("&after={}", encoded(&name)));
                admin.ask("GET", &format!("/v1/zones?limit={limit}{after}"), show::zones)
            }
            ZoneCommand::Show { zone, admin } => {
                admin.ask("GET", &format!("/v1/zones/{}", encoded(&zone)), show::zone)
            }
            ZoneCommand::Reload { zone, admin } => {
                admin.ask("POST", &format!("/v1/reload?zone={}", encoded(&zone)), show::reload)
            }
        }
    }
}
