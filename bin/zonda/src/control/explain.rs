//! `zonda explain`: why a client gets the answer that it gets.

use super::{AdminConnection, show};
use clap::Args;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::process::ExitCode;

/// Tell why a client gets the answer that it gets, step by step
///
/// The running server answers the query as if it had come from the client, and tells what decided:
/// the listener, access lists, the zone, the filters of a pool, the TTL, and which caches may keep
/// the reply. No upstream is asked and nothing is counted.
#[derive(Args)]
#[command(after_help = "\
Examples:
  zonda explain www.example.com A --client 203.0.113.7
  zonda explain www.example.com --client 192.0.2.53 --subnet 203.0.113.0/24
  zonda explain www.example.com MX --listener 192.0.2.1:53 --json")]
pub struct Explain {
    /// The name that is asked for
    name: String,
    /// The type that is asked for
    #[arg(value_name = "TYPE", default_value = "A")]
    rtype: String,
    /// The address that the query comes from
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    client: String,
    /// The network that the query names as the client's: what a resolver tells of its own client
    #[arg(long, value_name = "NETWORK")]
    subnet: Option<String>,
    /// The transport by which the query comes
    #[arg(long, value_name = "udp|tcp", default_value = "udp")]
    transport: String,
    /// The listener that the query comes to; without it, the first of the configuration
    #[arg(long, value_name = "ADDRESS:PORT")]
    listener: Option<String>,
    /// Ask for records of DNSSEC
    #[arg(long = "do")]
    dnssec: bool,
    #[command(flatten)]
    admin: AdminConnection,
}

impl Explain {
    /// Asks the server.
    pub fn run(self) -> ExitCode {
        let body = json!({
            "name": self.name,
            "type": self.rtype,
            "client": self.client,
            "subnet": self.subnet,
            "transport": self.transport,
            "listener": self.listener,
            "dnssec": self.dnssec,
        });
        self.admin.send("POST", "/v1/explain", &body, print)
    }
}

/// Prints the steps, and the records of the reply.
fn print(answer: &Value, out: &mut dyn Write) -> io::Result<()> {
    let steps = show::items(&answer["steps"]);
    let width = steps.iter().map(|step| show::text(step, "step").len()).max().unwrap_or(0);
    for step in steps {
        writeln!(out, "{:width$}  {}", show::text(step, "step"), show::text(step, "text"))?;
    }
    for record in show::items(&answer["answer"]) {
        writeln!(out, "{}", record.as_str().unwrap_or_default())?;
    }
    Ok(())
}
