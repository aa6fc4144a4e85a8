//! `zonda zone`: the zones of the running server.

use super::records::{self, Conditions, Options};
use super::{AdminConnection, show};
use clap::{Args, Subcommand};
use std::process::ExitCode;
use zonda_server::client::encoded;

/// List, show, change or reload the zones of the running server
///
/// For zone files, which need no server, see `zonda file`.
#[derive(Args)]
pub struct Zone {
    #[command(subcommand)]
    command: ZoneCommand,
}

/// Commands about zones.
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
        /// List the zones after this one
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
        /// The name of the zone
        #[arg(value_name = "NAME")]
        zone: String,
        #[command(flatten)]
        admin: AdminConnection,
    },
    /// Show the records of a name, or those of the whole zone
    ///
    /// They are printed as a master file has them. Without NAME, all records of the zone are
    /// printed, where the server has one zone or --zone names it. The exit code is 1 when there are
    /// none.
    #[command(after_help = "\
Examples:
  zonda zone get www.example.com
  zonda zone get example.com MX
  zonda zone get --zone example.com > example.com.zone")]
    Get {
        /// The name of the records
        name: Option<String>,
        /// The type of the records
        #[arg(value_name = "TYPE")]
        rtype: Option<String>,
        #[command(flatten)]
        options: Options,
    },
    /// Set the records of a name and type, in place of those it has
    ///
    /// The change is on the disk and in the answers when the command returns, and the difference is
    /// printed. The zone must be writable: `writable = true` in its section of the configuration,
    /// or `zonda serve --writable`. Names in DATA are complete, with or without a final dot.
    #[command(after_help = "\
Examples:
  zonda zone set www.example.com 300 A 192.0.2.1 192.0.2.2
  zonda zone set example.com 1h MX '10 mail.example.com' '20 backup.example.net'
  zonda zone set example.com 300 TXT 'v=spf1 mx -all'
  zonda zone set www.example.com 300 A 192.0.2.7 --dry-run")]
    Set {
        /// The name of the records
        name: String,
        /// The time to live of the records: seconds, or a number with s, m, h, d or w
        #[arg(value_name = "TTL", value_parser = ttl)]
        ttl: u32,
        /// The type of the records
        #[arg(value_name = "TYPE")]
        rtype: String,
        /// The data of each record, as a master file has them
        #[arg(value_name = "DATA", required = true)]
        data: Vec<String>,
        #[command(flatten)]
        conditions: Conditions,
        #[command(flatten)]
        options: Options,
    },
    /// Remove the records of a type, or all records, from a name
    ///
    /// Prints the difference, as `zonda zone set` does.
    #[command(after_help = "\
Examples:
  zonda zone unset www.example.com A
  zonda zone unset old.example.com")]
    Unset {
        /// The name of the records
        name: String,
        /// The type of the records; all, if it is left out
        #[arg(value_name = "TYPE")]
        rtype: Option<String>,
        #[command(flatten)]
        conditions: Conditions,
        #[command(flatten)]
        options: Options,
    },
    /// Show the changes that the file of a zone lacks
    #[command(after_help = "\
Examples:
  zonda zone diff example.com")]
    Diff {
        /// The zone; it may be left out where the server has one
        #[arg(value_name = "NAME")]
        name: Option<String>,
        #[command(flatten)]
        options: Options,
    },
    /// Write the changes of one zone, or of all, to the files
    ///
    /// The server does so itself every `flush-interval`, and when it stops. A file that was edited
    /// meanwhile keeps what was changed there; where it contradicts the changes, it is not written,
    /// and the exit code is 1.
    #[command(after_help = "\
Examples:
  zonda zone flush
  zonda zone flush example.com")]
    Flush {
        /// The name of the zone; all, if it is left out
        #[arg(value_name = "NAME")]
        name: Option<String>,
        #[command(flatten)]
        options: Options,
    },
    /// Load one zone anew, whether its file has changed or not
    ///
    /// The exit code is 1 when it could not be loaded: its former version stays in force. `zonda
    /// reload` loads the configuration and every zone that has changed.
    #[command(after_help = "\
Examples:
  zonda zone reload example.com")]
    Reload {
        /// The name of the zone
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
            ZoneCommand::Get { name, rtype, options } => {
                records::get(name.as_deref(), rtype.as_deref(), &options)
            }
            ZoneCommand::Set { name, ttl, rtype, data, conditions, options } => {
                records::set((&name, ttl, &rtype), &data, &conditions, &options)
            }
            ZoneCommand::Unset { name, rtype, conditions, options } => {
                records::unset(&name, rtype.as_deref(), &conditions, &options)
            }
            ZoneCommand::Diff { name, options } => records::diff(name.as_deref(), &options),
            ZoneCommand::Flush { name, options } => records::flush(name.as_deref(), &options),
            ZoneCommand::Reload { zone, admin } => {
                admin.ask("POST", &format!("/v1/reload?zone={}", encoded(&zone)), show::reload)
            }
        }
    }
}

/// Reads a time to live.
fn ttl(text: &str) -> Result<u32, String> {
    zonda_wire::rdata::number::ttl(text.as_bytes()).ok_or_else(|| {
        "expected seconds from 0 to 2147483647, or a number with a unit such as 1h".to_owned()
    })
}
