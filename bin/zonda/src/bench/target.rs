//! The server to load and the queries to send, for all commands that load one; flags as dnsperf
//! has them.

use crate::output;
use crate::query::key::key_of;
use clap::{Args, ValueEnum};
use std::io::{self, ErrorKind, IsTerminal};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use zonda_bench::load::limits;
use zonda_bench::load::{
    Form, Lines, Mode, Names, Omissions, Pace, Plan, Queries, QueriesError, Transport,
};
use zonda_wire::tsig::Key;
use zonda_wire::{Opcode, Type};

/// The server to load, and the queries that it is sent.
#[derive(Args)]
pub struct Target {
    /// The server's address or name
    #[arg(short = 's', value_name = "SERVER", default_value = "127.0.0.1")]
    server: String,
    /// The server's port
    #[arg(short = 'p', value_name = "PORT", default_value_t = 53,
        value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Use addresses of this family only
    #[arg(short = 'f', value_name = "FAMILY")]
    family: Option<Family>,
    /// How to send
    #[arg(short = 'm', value_name = "udp|tcp", default_value = "udp", value_parser = transport)]
    mode: Transport,
    /// Send from this address
    #[arg(short = 'a', value_name = "ADDRESS")]
    local: Option<IpAddr>,
    /// Send from this port, and those above it if there are several clients
    #[arg(short = 'x', value_name = "PORT", default_value_t = 0)]
    local_port: u16,
    /// A file with a name and a type on each line, or a capture whose questions are asked (pcap),
    /// perhaps compressed (gzip); - is standard input
    #[arg(short = 'd', value_name = "FILE", default_value = "-")]
    queries: PathBuf,
    /// Send dynamic updates: the file has blocks of lines, as dnsperf takes them: a zone's name,
    /// then `require NAME [TYPE [DATA]]`, `prohibit NAME [TYPE]`, `add NAME TTL TYPE DATA`,
    /// `delete NAME [TYPE [DATA]]`, and `send`
    #[arg(short = 'u', conflicts_with = "names")]
    updates: bool,
    /// Leave out lines of the file that are wrong, as dnsperf does, and tell how many
    #[arg(long)]
    skip_bad_lines: bool,
    /// Ask for random names instead: zipf:EXPONENT:COUNT.NAME (some often, most seldom),
    /// uniform:COUNT.NAME (1.NAME to COUNT.NAME, all equally often) or random:NAME (a new one each)
    #[arg(long, value_name = "SPEC", value_parser = Names::parse, conflicts_with = "queries")]
    names: Option<Names>,
    /// Types for which --names asks, all equally often
    #[arg(long = "type", value_name = "TYPE,...", value_delimiter = ',', default_value = "A",
        value_parser = record_type, requires = "names", conflicts_with = "queries")]
    types: Vec<Type>,
    /// Draw other names; the same seed draws the same ones in the same order
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        requires = "names",
        conflicts_with = "queries"
    )]
    seed: u64,
    /// Clients, each with a socket, over all threads; each thread has one at least
    #[arg(short = 'c', value_name = "N", default_value_t = 1, value_parser = count)]
    clients: usize,
    /// Threads that send queries
    #[arg(short = 'T', value_name = "N", default_value_t = 1, value_parser = count)]
    threads: usize,
    /// Socket buffers, in kilobytes; large, so that what is lost was not lost here (dnsperf leaves
    /// them to the system)
    #[arg(short = 'b', value_name = "N", default_value_t = 4096)]
    buffer: usize,
    /// After how long without reply a query is lost
    #[arg(short = 't', value_name = "TIME", default_value = "5s",
        value_parser = limits::parse_time_above_0)]
    timeout: Duration,
    /// Send an OPT record (EDNS)
    #[arg(short = 'e')]
    edns: bool,
    /// Send this EDNS option, its value in hexadecimal (repeatable)
    #[arg(short = 'E', value_name = "CODE:VALUE", value_parser = edns_option)]
    option: Vec<(u16, Vec<u8>)>,
    /// Ask for signatures and proofs (DO)
    #[arg(short = 'D')]
    dnssec: bool,
    /// Sign queries with a key (TSIG): NAME:SECRET, for hmac-sha256, or ALGORITHM:NAME:SECRET. The
    /// signatures of replies are not verified, as dnsperf does not. Other users of the machine can
    /// see the secret
    #[arg(short = 'y', value_name = "KEY", value_parser = key_of)]
    key: Option<Key>,
    /// How many queries one call sends
    #[arg(long, value_enum, default_value = "batch")]
    pace: PaceName,
    /// Let the kernel cut queries of one length from one message; not for comparing servers
    #[arg(long, conflicts_with = "pace")]
    segment: bool,
    /// Keep the threads on these CPUs
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    cpus: Vec<usize>,
    /// With a rate, stay awake on these CPUs before a query is due, so that it leaves in time; for
    /// CPUs that no server uses
    #[arg(long, requires = "cpus")]
    spin: bool,
    /// Allow more than 100 queries a second to a server outside of private networks
    #[arg(long)]
    i_own_this_server: bool,
}

/// An address family.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Family {
    /// IPv4 addresses only.
    Inet,
    /// IPv6 addresses only.
    Inet6,
    /// Addresses of either family.
    Any,
}

/// How many queries one call sends.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PaceName {
    /// As many as are due
    Batch,
    /// One query with each call, as dnsperf does
    Dnsperf,
}

impl Target {
    /// A plan without an end.
    ///
    /// # Errors
    /// Why the queries cannot be read or the server not be found.
    pub fn plan(&self, mode: Mode) -> Result<Plan, String> {
        let form = Form {
            edns: self.edns,
            dnssec: self.dnssec,
            options: self.option.clone(),
            operation: if self.updates { Opcode::UPDATE } else { Opcode::QUERY },
            ..Form::default()
        };
        let server = self.resolve()?;
        let queries = match &self.names {
            Some(names) => Queries::generated(names.clone(), self.types.clone(), self.seed, &form),
            None => self.read(&form)?,
        };
        let mut plan = Plan::new(server, queries);
        plan.local = (self.local.is_some() || self.local_port > 0).then(|| self.local_of(server));
        plan.transport = self.mode;
        plan.key = self.key.clone().map(Arc::new);
        if let Some(local) = plan.local {
            check_local(local, server)?;
        }
        plan.threads = self.threads;
        plan.sockets = self.clients.max(self.threads);
        if self.clients > 1 && self.clients < self.threads {
            output::line(format_args!("zonda: {} clients, one for each thread", self.threads));
        }
        plan.mode = mode;
        plan.end.runs = None;
        plan.timeout = self.timeout;
        plan.pace = match self.pace {
            PaceName::Batch => Pace::Batch,
            PaceName::Dnsperf => Pace::Dnsperf,
        };
        plan.segment = self.segment;
        plan.cpus.clone_from(&self.cpus);
        plan.spin = self.spin;
        plan.buffer_octets = self.buffer.saturating_mul(1024);
        plan.is_own_server = self.i_own_this_server;
        Ok(plan)
    }

    /// Reads the file of queries, and tells what of it was left out.
    fn read(&self, form: &Form) -> Result<Queries, String> {
        if self.queries.as_os_str() == "-" && io::stdin().is_terminal() {
            let (what, form) = match self.updates {
                false => ("queries", "a name and a type a line"),
                true => ("updates", "blocks of lines"),
            };
            output::line(format_args!("zonda: reading {what} from the terminal, {form}; see -d"));
        }
        let lines = if self.skip_bad_lines { Lines::SkipBad } else { Lines::AllGood };
        let (queries, Omissions { bad_lines, first_bad, cut_packet, tcp_packets }) =
            Queries::read_some(&self.queries, form, lines).map_err(|error| match error {
                QueriesError::Line(..) => format!("{error} (--skip-bad-lines leaves such out)"),
                error => error.to_string(),
            })?;
        if let Some(first) = first_bad {
            output::line(format_args!(
                "zonda: {bad_lines} lines are left out as they are wrong, the first: {first}"
            ));
        }
        if let Some(packet) = cut_packet {
            let path = self.queries.display();
            output::line(format_args!(
                "zonda: {path}: cut short in packet {packet}, which is left out"
            ));
        }
        if tcp_packets > 0 {
            let path = self.queries.display();
            output::line(format_args!(
                "zonda: {path}: {tcp_packets} packets to port 53 over TCP are left out: only \
                 questions over UDP are read"
            ));
        }
        Ok(queries)
    }

    /// Whether the queries never end.
    pub fn is_endless(&self) -> bool {
        self.names.is_some()
    }

    /// The server's address.
    fn resolve(&self) -> Result<SocketAddr, String> {
        let found = (self.server.as_str(), self.port).to_socket_addrs();
        let suits = |address: &SocketAddr| match self.family {
            Some(Family::Inet) => address.is_ipv4(),
            Some(Family::Inet6) => address.is_ipv6(),
            Some(Family::Any) | None => true,
        };
        let found = found.ok().and_then(|mut addresses| addresses.find(suits));
        found.ok_or_else(|| match self.server.parse::<SocketAddr>() {
            Ok(both) => format!(
                "{}: give address and port by themselves: -s {} -p {}",
                self.server,
                both.ip(),
                both.port()
            ),
            Err(_) if self.family.is_some_and(|family| family != Family::Any) => {
                format!("{}: not an address of that family, nor a name that has one", self.server)
            }
            Err(_) => format!("{}: neither an address nor a name that has one", self.server),
        })
    }

    /// The address to send from.
    fn local_of(&self, server: SocketAddr) -> SocketAddr {
        let any = match server {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        SocketAddr::new(self.local.unwrap_or(any), self.local_port)
    }
}

/// Refuses an address that queries to `server` cannot be sent from.
fn check_local(local: SocketAddr, server: SocketAddr) -> Result<(), String> {
    let address = local.ip();
    if local.is_ipv4() != server.is_ipv4() {
        return Err(format!(
            "-a {address}: not of the family of the server's address, {}",
            server.ip()
        ));
    }
    let bound = UdpSocket::bind(SocketAddr::new(address, 0));
    bound.map(drop).map_err(|error| match error.kind() {
        ErrorKind::AddrNotAvailable => format!("-a {address}: this machine has no such address"),
        _ => format!("-a {address}: {error}"),
    })
}

/// Reads a number of clients or threads.
fn count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "must be a whole number above 0".to_owned())
}

/// Reads a record type.
fn record_type(text: &str) -> Result<Type, String> {
    text.parse().map_err(|_| "not a record type".to_owned())
}

/// Refuses unknown transports.
fn transport(text: &str) -> Result<Transport, String> {
    match text {
        "udp" => Ok(Transport::Udp),
        "tcp" => Ok(Transport::Tcp),
        "dot" | "doh" | "doq" => {
            Err("queries go over UDP or TCP; TLS, HTTPS and QUIC are not there yet".to_owned())
        }
        _ => Err("expected udp or tcp".to_owned()),
    }
}

/// Reads an EDNS option, such as `3:abcd`.
fn edns_option(text: &str) -> Result<(u16, Vec<u8>), String> {
    let expected = "expected a code, a colon and perhaps hexadecimal octets, such as 3: or 3:abcd";
    let (code, value) = text.split_once(':').ok_or(expected)?;
    let code = code.parse().map_err(|_| expected)?;
    let octets = value.as_bytes().chunks(2).map(|digits| {
        let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.len() == 2)?;
        u8::from_str_radix(digits, 16).ok()
    });
    let octets: Option<_> = octets.collect();
    Ok((code, octets.ok_or("expected an even number of hexadecimal digits")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_a_code_and_octets() {
        assert_eq!(edns_option("3:abCD"), Ok((3, vec![0xab, 0xcd])));
        assert_eq!(edns_option("3:"), Ok((3, vec![])));
        assert!(edns_option("3").is_err());
        assert!(edns_option("3:abc").is_err());
        assert!(edns_option("x:ab").is_err());
    }
}
