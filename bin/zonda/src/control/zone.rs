//! `zonda zone`: the zones of the running server.

use super::records::{self, Conditions, Options, VersionOptions};
use super::{AdminConnection, show, zone_results};
use clap::{Args, Subcommand};
use std::process::ExitCode;
use zonda_server::client::encoded;

/// List, show, change, refresh or reload the zones of the running server
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
    /// served`, with `frozen` where updates and edits are refused. Zones from primaries stand below
    /// once more: the serial that each primary has answered last, the next refresh, and expiry.
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
    /// Of a zone from primaries, what each of them has answered last, when the zone is refreshed
    /// next, and when it expires. The exit code is 1 when the server has no such zone.
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
    /// Ask the primaries of a zone at once whether they have a newer version
    ///
    /// Waits for the result, 20 seconds at most; a transfer that takes longer goes on. The exit
    /// code is 1 when no primary has a version that can be taken: the former one stays in force.
    #[command(after_help = "\
Examples:
  zonda zone refresh example.com")]
    Refresh(OfZone),
    /// Transfer a whole zone from its primary, whatever its serial
    ///
    /// For a zone whose records differ from those of the primary, or whose serial has gone back
    /// there: servers that transfer the zone from this one do not follow to a lower serial. Waits
    /// as `zonda zone refresh` does.
    #[command(after_help = "\
Examples:
  zonda zone retransfer example.com")]
    Retransfer(OfZone),
    /// Tell the servers of `notify` once more that a zone has its version
    #[command(after_help = "\
Examples:
  zonda zone notify example.com")]
    Notify(OfZone),
    /// Have a zone take no updates and edits until it is thawed
    ///
    /// Updates are REFUSED and edits fail, with the reason; the zone is answered as before, and
    /// changes of its file are taken over. It stays so after a reload and a restart.
    #[command(after_help = "\
Examples:
  zonda zone freeze example.com")]
    Freeze(OfZone),
    /// Have a frozen zone take updates and edits again
    #[command(after_help = "\
Examples:
  zonda zone thaw example.com")]
    Thaw(OfZone),
    /// List the versions of a zone that are held, the one in force first
    ///
    /// Held are the versions of writable zones, up to 100 behind the last flush, and those of zones
    /// with `transfer`, as `history` says.
    #[command(after_help = "\
Examples:
  zonda zone history example.com")]
    History(OfZone),
    /// Give a zone the records that an earlier version had
    ///
    /// The result is a new version with a greater serial, which is kept like an edit; the zone must
    /// be writable. Prints the difference. `zonda zone history` lists the versions.
    #[command(after_help = "\
Examples:
  zonda zone rollback example.com 2026112701
  zonda zone rollback example.com 2026112701 --dry-run")]
    Rollback {
        /// The name of the zone
        #[arg(value_name = "NAME")]
        zone: String,
        /// The serial of the version
        serial: u32,
        #[command(flatten)]
        version: VersionOptions,
        #[command(flatten)]
        admin: AdminConnection,
    },
    /// Take the version of a catalog though it removes more members than `removals-max`
    ///
    /// All that is kept of these members is removed as well. The log and `zonda zone show` tell
    /// which version waits, and why. The serial is given lest another version be confirmed.
    #[command(after_help = "\
Examples:
  zonda zone confirm catalog.example 2026112701")]
    Confirm {
        /// The name of the catalog
        #[arg(value_name = "NAME")]
        zone: String,
        /// The serial of the version
        serial: u32,
        #[command(flatten)]
        admin: AdminConnection,
    },
}

/// A zone, and how to reach the server.
#[derive(Args)]
struct OfZone {
    /// The name of the zone
    #[arg(value_name = "NAME")]
    zone: String,
    #[command(flatten)]
    admin: AdminConnection,
}

impl OfZone {
    /// Has the server do something with the zone, and prints what came of it.
    fn ask(self, method: &str, what: &str, show: show::Show) -> ExitCode {
        self.admin.ask(method, &format!("/v1/zones/{}/{what}", encoded(&self.zone)), show)
    }
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
            ZoneCommand::Refresh(zone) => zone.ask("POST", "refresh", zone_results::refreshed),
            ZoneCommand::Retransfer(zone) => {
                zone.ask("POST", "retransfer", zone_results::refreshed)
            }
            ZoneCommand::Notify(zone) => zone.ask("POST", "notify", zone_results::notified),
            ZoneCommand::Freeze(zone) => zone.ask("POST", "freeze", zone_results::frozen),
            ZoneCommand::Thaw(zone) => zone.ask("POST", "thaw", zone_results::frozen),
            ZoneCommand::History(zone) => zone.ask("GET", "history", zone_results::history),
            ZoneCommand::Rollback { zone, serial, version, admin } => {
                let parameters = version.parameters();
                let path = format!("/v1/zones/{}/rollback/{serial}{parameters}", encoded(&zone));
                admin.ask_for_all("POST", &path, records::difference)
            }
            ZoneCommand::Confirm { zone, serial, admin } => {
                let path = format!("/v1/zones/{}/confirm/{serial}", encoded(&zone));
                admin.ask("POST", &path, zone_results::confirmed)
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
