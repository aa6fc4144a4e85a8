//! `zonda query`: asks a server, as dig does.
//!
//! | file | what |
//! |---|---|
//! | `request` | words of the command line to a question and settings |
//! | `exchange` | sending it, waiting, asking again |
//! | `text`, `json` | showing what came |
//! | `key` | the key that the query is signed with |
//! | `idn` | names with letters beyond ASCII |

mod exchange;
pub mod idn;
mod json;
pub mod key;
mod request;
mod text;

use crate::output::{self, Failure};
use clap::Args;
use request::{Form, OPTIONS, Request};
use std::net::IpAddr;
use std::process::ExitCode;
use zonda_wire::{Class, Type};

/// The help of `--port`; as a doc comment, rustdoc would take the address for a link.
const PORT_HELP: &str =
    "Ask this port, unless the server is written with one: @127.0.0.1:5300, @[::1]:5300";

/// Ask a server a question and show the reply
///
/// Without @SERVER the first name server of /etc/resolv.conf is asked, or 127.0.0.1. Asks over UDP,
/// and over TCP when the reply was cut off. The type is A unless given.
#[derive(Args)]
#[command(after_help = help())]
pub struct Query {
    /// In any order: @ and the server's address or name, the name to ask for, a type, a class, and
    /// options that begin with +
    #[arg(value_name = "@SERVER | NAME | TYPE | CLASS | +OPTION")]
    words: Vec<String>,
    /// The port to ask, unless the server is written with one.
    #[arg(short, long, default_value_t = 53, help = PORT_HELP)]
    port: u16,
    /// Ask over IPv4 only
    #[arg(short = '4', conflicts_with = "only_ipv6")]
    only_ipv4: bool,
    /// Ask over IPv6 only
    #[arg(short = '6')]
    only_ipv6: bool,
    /// Ask for the name of this address
    #[arg(short = 'x', long, value_name = "ADDRESS")]
    reverse: Option<IpAddr>,
    /// Ask for this type, even if it looks like a name
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    qtype: Option<Type>,
    /// Ask in this class: IN, CH (as in version.bind TXT), HS
    #[arg(short, long, value_name = "CLASS")]
    class: Option<Class>,
    /// Sign the query with this key, and verify the reply; hmac-sha256 unless an algorithm is
    /// given. The secret is in base 64, and other users may see it while the command runs
    #[arg(short = 'y', long = "key", value_name = key::FORM)]
    key: Option<String>,
}

impl Query {
    /// Asks.
    pub fn run(self) -> ExitCode {
        let asked = match Request::new(&self) {
            Ok(request) => request,
            Err(error) => return output::end(Err(Failure::NotRun(error))),
        };
        output::end(exchange::ask(&asked).and_then(|exchange| {
            output::print(|out| match asked.form {
                Form::Text => text::print(&exchange, &asked.shown, out),
                Form::Short => text::print_short(&exchange, out),
                Form::Json => json::print(&exchange, out),
            })?;
            match exchange.signature {
                Some(Err(fault)) => Err(Failure::Failed(format!("{}: {fault}", exchange.server))),
                _ => Ok(ExitCode::SUCCESS),
            }
        }))
    }
}

/// What follows the arguments in the help.
fn help() -> String {
    let mut help = String::from("Options behind +, most of which +no… turns off:\n");
    for option in OPTIONS {
        let name = format!("+{}{}", option.name, option.value);
        help.push_str(&format!("  {name:<18} {}\n", option.help));
    }
    help.push_str(
        "
Letters beyond ASCII are asked for as registries have them: bücher.example is xn--bcher-kva.example.

Exit code: 0 when a reply came, whatever it says; 1 when none came, or one whose signature is wrong
or missing though the query was signed; 2 for a wrong command line, or a
server's name without address.

Examples:
  zonda query @127.0.0.1:5300 www.example.com AAAA
  zonda query @192.0.2.53 www.example.com +noall +answer
  zonda query @192.0.2.53 example.com SOA +dnssec +norec
  zonda query @192.0.2.53 -x 192.0.2.10 +short
  zonda query @192.0.2.53 version.bind TXT CH
  zonda query @192.0.2.53 example.com SOA -y hmac-sha256:transfer.example:c2VjcmV0
  zonda query @192.0.2.53 example.com MX +json | jq '.answer[].data'",
    );
    help
}
