//! `zonda transfer`: transfers of zones, to clients and from primaries.

use super::show::{items, number, text};
use super::{AdminConnection, table};
use clap::{Args, Subcommand};
use serde_json::Value;
use std::io::{self, Write};
use std::process::ExitCode;

/// List the transfers of zones that run
#[derive(Args)]
pub struct Transfer {
    #[command(subcommand)]
    command: TransferCommand,
}

/// Commands about transfers.
#[derive(Subcommand)]
enum TransferCommand {
    /// List the transfers that run, to clients and from primaries
    ///
    /// Those that wait for memory are listed as well. The log has a line for each one that has
    /// ended.
    #[command(
        visible_alias = "list",
        after_help = "\
Examples:
  zonda transfer ls"
    )]
    Ls {
        #[command(flatten)]
        admin: AdminConnection,
    },
}

impl Transfer {
    /// Does what the subcommand says.
    pub fn run(self) -> ExitCode {
        match self.command {
            TransferCommand::Ls { admin } => admin.ask("GET", "/v1/transfers", transfers),
        }
    }
}

/// Prints the transfers that run, and how many have ended.
fn transfers(answer: &Value, mut out: &mut dyn Write) -> io::Result<()> {
    let octets = |it: &Value| it["bytes"].as_u64().map_or_else(super::show::dash, table::octets);
    let to_clients = items(&answer["to_clients"]).iter().map(|it| {
        let what = format!("{} of the {}", text(it, "asked"), text(it, "sent"));
        let peer = format!("to {}", text(it, "client"));
        let (seconds, records) = (number(it, "seconds"), number(it, "records"));
        vec![text(it, "zone"), peer, what, number(it, "serial"), seconds, records, octets(it)]
    });
    let from_primaries = items(&answer["from_primaries"]).iter().map(|it| {
        let (what, peer) = (text(it, "asked"), format!("from {}", text(it, "primary")));
        let [serial, seconds, records] =
            ["serial", "seconds", "records"].map(|key| number(it, key));
        vec![text(it, "zone"), peer, what, serial, seconds, records, octets(it)]
    });
    let waiting = items(&answer["waiting"]).iter().map(|it| {
        let (peer, what) = (format!("from {}", text(it, "primary")), "waits for memory".to_owned());
        let dash = super::show::dash;
        vec![text(it, "zone"), peer, what, dash(), number(it, "seconds"), dash(), octets(it)]
    });
    let mut rows: Vec<Vec<String>> = to_clients.chain(from_primaries).chain(waiting).collect();
    if rows.is_empty() {
        writeln!(out, "no transfer runs")?;
    } else {
        let head = ["zone", "peer", "asked", "serial", "seconds", "records", "size"];
        rows.insert(0, head.map(str::to_owned).to_vec());
        table::write(&mut out, &rows)?;
    }
    let totals = &answer["totals"];
    for (key, what) in [("to_clients", "to clients"), ("from_primaries", "from primaries")] {
        let [completed, failed] = ["completed", "failed"].map(|it| number(&totals[key], it));
        writeln!(out, "{what} so far: {completed} completed, {failed} failed")?;
    }
    Ok(())
}
