//! `zonda pool`: pools, the states of their members, and what operators say about these.

use super::{AdminConnection, encoded, show, table};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::process::ExitCode;

/// Show pools, and take members out of service or back
#[derive(Args)]
pub struct Pool {
    #[command(subcommand)]
    command: PoolCommand,
}

/// Commands about pools.
#[derive(Subcommand)]
enum PoolCommand {
    /// List the pools and the states of their members
    #[command(after_help = "\
Examples:
  zonda pool list")]
    List {
        #[command(flatten)]
        admin: AdminConnection,
    },
    /// Show a pool, with the last changes of its members
    Show {
        /// The name of the pool
        name: String,
        #[command(flatten)]
        admin: AdminConnection,
    },
    /// Have members get no more clients, whatever their probes find
    #[command(after_help = "\
Examples:
  zonda pool drain web/192.0.2.10 --for 1h --reason \"new kernel\"
  zonda pool drain '*/192.0.2.*'
  zonda pool resume web/192.0.2.10")]
    Drain(Said),
    /// Have members count as down, whatever their probes find
    Down(Said),
    /// Have members count as up, whatever their probes find
    Up(Said),
    /// Have members answer only when no other member is up
    Hold(Said),
    /// Let the probes of members decide again
    Resume(Said),
    /// Say the state of members whose check is `pushed`: what a program outside has found
    #[command(after_help = "\
Examples:
  zonda pool push web/192.0.2.10 up --for 30s
  zonda pool push 'web/*' down --reason \"disk is full\"")]
    Push(PushedState),
    /// Say the load of members, which `load` in `choose` minds
    #[command(after_help = "\
Examples:
  zonda pool load web/192.0.2.10 83 --for 1m
  zonda pool load '*/192.0.2.10' 20")]
    Load(ToldLoad),
    /// Show what operators have said lately
    Log {
        #[command(flatten)]
        admin: AdminConnection,
    },
}

/// What an operator says about members.
#[derive(Args)]
struct Said {
    /// The member, as POOL/MEMBER; `*` stands for any text and `?` for a character
    member: String,
    /// How long it holds, such as 30m; until `zonda pool resume` without it
    #[arg(long = "for", value_name = "TIME")]
    lasts: Option<String>,
    /// Why, for those that ask later
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    admin: AdminConnection,
}

/// What a program has found of members.
#[derive(Args)]
struct PushedState {
    /// The member, as POOL/ADDRESS; POOL/* for all of a pool
    member: String,
    /// The state of the member
    #[arg(value_name = "up|down", value_parser = ["up", "down"])]
    state: String,
    /// How long it holds; the member is down then unless it is said again
    #[arg(long = "for", value_name = "TIME", default_value = "30s")]
    lasts: String,
    /// What was found, in words
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    admin: AdminConnection,
}

/// What a program has found of the load of members.
#[derive(Args)]
struct ToldLoad {
    /// The member, as POOL/MEMBER; `*` stands for any text and `?` for a character
    member: String,
    /// The load, in percent of what the member can take
    #[arg(value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    load: u32,
    /// How long it holds; the load is not known then unless it is said again
    #[arg(long = "for", value_name = "TIME", default_value = "1m")]
    lasts: String,
    #[command(flatten)]
    admin: AdminConnection,
}

impl Pool {
    /// Does what the subcommand says.
    pub fn run(self) -> ExitCode {
        match self.command {
            PoolCommand::List { admin } => admin.ask("GET", "/v1/pools", list),
            PoolCommand::Show { name, admin } => {
                admin.ask("GET", &format!("/v1/pools/{}", encoded(&name)), one)
            }
            PoolCommand::Drain(said) => said.send("drain"),
            PoolCommand::Down(said) => said.send("down"),
            PoolCommand::Up(said) => said.send("up"),
            PoolCommand::Hold(said) => said.send("hold"),
            PoolCommand::Resume(said) => said.send("resume"),
            PoolCommand::Push(pushed) => pushed.send(),
            PoolCommand::Load(told) => told.send(),
            PoolCommand::Log { admin } => admin.ask("GET", "/v1/pool-overrides", log),
        }
    }
}

impl PushedState {
    /// Has the server take note.
    fn send(self) -> ExitCode {
        let body = json!({
            "member": self.member,
            "up": self.state == "up",
            "for": self.lasts,
            "reason": self.reason,
        });
        self.admin.send("POST", "/v1/checks", &body, |answer, out| {
            let (count, lasts) = (show::number(answer, "members"), &answer["for_secs"]);
            writeln!(out, "members that take it, for {lasts} s: {count}")
        })
    }
}

impl ToldLoad {
    /// Has the server take note.
    fn send(self) -> ExitCode {
        let loads =
            [(self.member, json!(self.load))].into_iter().collect::<serde_json::Map<_, _>>();
        let body = json!({ "loads": loads, "for": self.lasts });
        self.admin.send("POST", "/v1/loads", &body, |answer, out| {
            let (count, lasts) = (show::number(answer, "members"), &answer["for_secs"]);
            writeln!(out, "members that have it, for {lasts} s: {count}")
        })
    }
}

impl Said {
    /// Has the server take note.
    fn send(self, state: &str) -> ExitCode {
        let body = json!({
            "member": self.member,
            "state": state,
            "for": self.lasts,
            "reason": self.reason,
        });
        self.admin.send("POST", "/v1/pool-overrides", &body, forced)
    }
}

/// Prints all pools.
fn list(answer: &Value, mut out: &mut dyn Write) -> io::Result<()> {
    let pools = show::items(&answer["pools"]);
    if pools.is_empty() {
        return writeln!(out, "there are no pools");
    }
    let head = ["pool", "member", "counts as", "probes", "weight", "priority", "last result"];
    let rows = pools.iter().flat_map(|pool| {
        show::items(&pool["members"]).iter().map(|member| {
            vec![
                show::text(pool, "name"),
                show::text(member, "name"),
                counts_as(member),
                show::text(member, "state"),
                show::number(member, "weight"),
                show::number(member, "priority"),
                show::text(&member["last"], "result"),
            ]
        })
    });
    let head = head.map(str::to_owned).to_vec();
    table::write(&mut out, &[head].into_iter().chain(rows).collect::<Vec<_>>())
}

/// What a member counts as: up or down, and why if an operator has said so.
fn counts_as(member: &Value) -> String {
    let state = if member["up"] == true { "up" } else { "down" };
    match (member["override"]["state"].as_str(), &member["held"]) {
        (Some(said), _) => format!("{state} ({said})"),
        (None, Value::Bool(true)) => format!("{state} (waits)"),
        (None, _) => state.to_owned(),
    }
}

/// Prints a pool.
fn one(pool: &Value, mut out: &mut dyn Write) -> io::Result<()> {
    list(&json!({ "pools": [pool] }), out)?;
    for member in show::items(&pool["members"]) {
        let said = &member["override"];
        if let Some(state) = said["state"].as_str() {
            let until = said["until"].as_u64().map_or_else(String::new, |until| {
                format!(" ({} left)", show::moment(until as f64).trim_start_matches("in "))
            });
            let (name, reason) = (show::text(member, "name"), show::text(said, "reason"));
            writeln!(out, "{name}: {state}{until}: {reason}")?;
        }
    }
    let changes = show::items(&pool["members"]).iter().flat_map(|member| {
        show::items(&member["changes"]).iter().map(|change| {
            let at = change["at"].as_f64().unwrap_or_default();
            let row = vec![
                show::moment(at),
                show::text(member, "name"),
                show::text(change, "to"),
                show::text(change, "result"),
            ];
            (at, row)
        })
    });
    let mut changes: Vec<(f64, Vec<String>)> = changes.collect();
    changes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let rows: Vec<Vec<String>> = changes.into_iter().map(|(_, row)| row).collect();
    if !rows.is_empty() {
        writeln!(out)?;
        let head = ["changed", "member", "to", "result"].map(str::to_owned).to_vec();
        table::write(&mut out, &[head].into_iter().chain(rows).collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Prints what has been said.
fn forced(answer: &Value, out: &mut dyn Write) -> io::Result<()> {
    for member in show::items(&answer["members"]).iter().filter_map(Value::as_str) {
        writeln!(out, "{member}: {}", show::text(answer, "state"))?;
    }
    Ok(())
}

/// Prints what operators have said lately.
fn log(answer: &Value, mut out: &mut dyn Write) -> io::Result<()> {
    let actions = show::items(&answer["actions"]);
    if actions.is_empty() {
        return writeln!(out, "no operator has said anything about members");
    }
    let head = ["at", "member", "state", "until", "by", "reason"].map(str::to_owned).to_vec();
    let time =
        |action: &Value, key: &str| action[key].as_f64().map_or_else(show::dash, show::moment);
    let rows = actions.iter().map(|action| {
        vec![
            time(action, "at"),
            show::text(action, "member"),
            show::text(action, "state"),
            time(action, "until"),
            show::text(action, "by"),
            show::text(action, "reason"),
        ]
    });
    table::write(&mut out, &[head].into_iter().chain(rows).collect::<Vec<_>>())
}
