//! `forward FROM TO… { … }`.

use super::Importer;
use super::key;
use super::lexer::Token;
use super::parser::Line;
use super::setting::duration;
use super::source::{FallThrough, Kind, Source, ZoneKey};
use crate::document::Effect::{Differs, Lost, Needless};
use crate::document::Value;
use crate::error::{ImportError, Place, Problem};
use crate::tree::fail;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use zonda_wire::Name;

/// Upstreams of one line, those of its files included.
const UPSTREAMS_MAX: usize = 100;
/// Queries that may wait for an upstream.
const OUTSTANDING_MAX: u64 = 1_000_000;
/// Times between two probes.
const PROBE_INTERVAL: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));
/// The file of the system's own upstreams.
const SYSTEM_FILE: &str = "/etc/resolv.conf";

/// An upstream as it is read.
struct Upstream {
    /// Scheme with `://`; empty for UDP and TCP.
    scheme: &'static str,
    /// Address or name, with a port if it has one.
    host: String,
    /// Path of HTTPS with its slash; empty without one.
    path: String,
    /// Name that the certificate must have; empty if it is not said.
    certificate_name: String,
    /// Whether the host is a name.
    is_name: bool,
}

/// A line being read.
struct Forward {
    upstreams: Vec<Upstream>,
    /// Files that name more of them.
    files: Vec<String>,
    except: Vec<Name>,
    keys: Vec<ZoneKey>,
    servername: String,
    forces_tcp: bool,
    has_policy: bool,
    resolvers: Vec<String>,
    /// Place of an option that leaves answers to a later `forward`.
    next: Option<Place>,
}

impl Importer<'_> {
    /// Reads `forward`.
    pub(super) fn forward(&mut self, line: &Line) -> Result<(), ImportError> {
        let Some((from, to)) = line.arguments().split_first() else {
            return Err(line.expected("the zone that is forwarded"));
        };
        if to.is_empty() {
            return Err(line.expected("the address of a server"));
        }
        let mut zones = key::zones(from)?;
        if zones.len() > 1 {
            let why = "CoreDNS forwards the first of these networks only";
            self.leave(line, Differs, why);
            zones.truncate(1);
        }
        let mut forward = Forward {
            upstreams: Vec::new(),
            files: Vec::new(),
            except: Vec::new(),
            keys: Vec::new(),
            servername: String::new(),
            forces_tcp: false,
            has_policy: false,
            resolvers: Vec::new(),
            next: None,
        };
        for token in to {
            self.add_upstreams(line, token, &mut forward)?;
        }
        if forward.upstreams.len() > UPSTREAMS_MAX {
            let problem = Problem::TooMuch("servers of a zone", UPSTREAMS_MAX);
            return Err(fail(line.place().clone(), problem));
        }
        for option in &line.block {
            self.forward_option(option, &mut forward)?;
        }
        self.add_forward(line, zones, forward)
    }

    /// Adds the source, once all its options are known.
    fn add_forward(
        &mut self,
        line: &Line,
        zones: Vec<Name>,
        mut forward: Forward,
    ) -> Result<(), ImportError> {
        if forward.upstreams.is_empty() && forward.files.is_empty() {
            self.leave(line, Lost, "there is no upstream that can be used");
            return Ok(());
        }
        let are_several = forward.upstreams.len() > 1 || !forward.files.is_empty();
        if are_several && !forward.has_policy {
            let why = "of several, the upstream that is expected to answer first is asked, where \
                CoreDNS draws one, unless `policy` says so";
            self.leave(line, Differs, why);
        }
        let mut to = Vec::new();
        let mut is_unnamed = false;
        for upstream in &mut forward.upstreams {
            let is_encrypted = !upstream.scheme.is_empty();
            if is_encrypted && upstream.certificate_name.is_empty() {
                upstream.certificate_name.clone_from(&forward.servername);
                is_unnamed |= forward.servername.is_empty() && !upstream.is_name;
            }
            to.push(upstream.written(forward.forces_tcp));
        }
        if is_unnamed {
            let why = "the certificate must be for the address, as there is no `tls_servername`";
            self.leave(line, Differs, why);
        }
        let place = line.place().clone();
        let mut keys = Vec::new();
        if !to.is_empty() {
            keys.push(("to", to[..].into(), place.clone()));
        }
        if !forward.files.is_empty() {
            keys.push(("resolv-conf", forward.files[..].into(), place.clone()));
            if forward.forces_tcp {
                keys.push(("resolv-conf-tcp", true.into(), place.clone()));
            }
        }
        if forward.upstreams.iter().any(|it| it.is_name) {
            if forward.resolvers.is_empty() {
                forward.resolvers = self.servers_of(line, Path::new(SYSTEM_FILE))?;
            }
            keys.push(("bootstrap", forward.resolvers[..].into(), place.clone()));
        }
        keys.append(&mut forward.keys);
        let what = line.summary();
        self.current().sources.push(Source {
            kind: Kind::Forward,
            zones,
            except: forward.except,
            fall_through: FallThrough::Never,
            place,
            what,
            file: PathBuf::new(),
            keys,
            next: forward.next,
        });
        Ok(())
    }

    /// Reads an option.
    fn forward_option(&mut self, option: &Line, to: &mut Forward) -> Result<(), ImportError> {
        let place = option.place().clone();
        match option.name() {
            "except" => to.except.extend(key::all_zones(option.arguments())?),
            "force_tcp" => to.forces_tcp = true,
            "prefer_udp" => self.leave(option, Needless, "an address alone means UDP first"),
            "policy" => {
                let argument = option.argument("a policy")?;
                let policy = match argument.text.as_str() {
                    "random" => "random",
                    "round_robin" => "round-robin",
                    "sequential" => "in-order",
                    _ => return Err(argument.expected("`random`, `round_robin` or `sequential`")),
                };
                to.has_policy = true;
                to.keys.push(("policy", policy.into(), place));
            }
            "tls_servername" => option.argument("a name")?.text.clone_into(&mut to.servername),
            "tls" => self.forward_tls(option, to),
            "max_concurrent" => {
                let number: u64 = option.parsed("a number")?;
                if number > 0 {
                    let number = self.within(option, number, (1, OUTSTANDING_MAX));
                    to.keys.push(("outstanding-max", number.into(), place));
                }
            }
            "health_check" => self.health_check(option, to)?,
            "next" | "next_on_nodata" => {
                let why = "an answer of an upstream is never left to another `forward`";
                self.leave(option, Lost, why);
                to.next.get_or_insert(place);
            }
            "failover" => {
                const ANSWERS: [&str; 3] = ["NOERROR", "NXDOMAIN", "YXDOMAIN"];
                let is_answer = |it: &Token| ANSWERS.iter().any(|answer| it.is(answer));
                match option.arguments().iter().any(is_answer) {
                    false => {
                        let why = "the next upstream is asked anyway; if all say so, clients get \
                            an expired answer or SERVFAIL";
                        self.leave(option, Differs, why);
                    }
                    true => {
                        let why = "the next upstream is asked after any code but NOERROR, \
                            NXDOMAIN and YXDOMAIN, which are answers";
                        self.leave(option, Lost, why);
                    }
                }
            }
            "resolver" => {
                for argument in option.arguments() {
                    let server = plain_address(&argument.text, 53);
                    to.resolvers.push(server.ok_or_else(|| argument.expected("an address"))?);
                }
            }
            "source_address" => {
                self.leave(option, Lost, "the system chooses the address that queries leave from");
            }
            name => match differences(name) {
                Some(why) => self.leave(option, Differs, why),
                None => self.lose_option(option),
            },
        }
        Ok(())
    }

    /// Reads `tls [CERTIFICATE KEY] [CA]`.
    fn forward_tls(&mut self, option: &Line, to: &mut Forward) {
        let (ca, is_client) = match option.arguments() {
            [] => (None, false),
            [ca] => (Some(ca), false),
            [_, _] => (None, true),
            [_, _, ca, ..] => (Some(ca), true),
        };
        if let Some(ca) = ca {
            let path = self.current().root.join(&ca.text);
            let path = path.to_string_lossy().into_owned();
            to.keys.push(("ca-file", path.as_str().into(), option.place().clone()));
        }
        if is_client {
            self.leave(option, Lost, "upstreams get no certificate of the client");
        }
    }

    /// Reads `health_check DURATION [no_rec] [domain NAME]`.
    fn health_check(&mut self, option: &Line, to: &mut Forward) -> Result<(), ImportError> {
        const WANTED: &str = "a duration such as `500ms`";
        let Some(first) = option.arguments().first() else { return Err(option.expected(WANTED)) };
        let time =
            crate::value::read_duration(&first.text).ok_or_else(|| first.expected(WANTED))?;
        let time = self.time_within(option, time, PROBE_INTERVAL);
        let value: Value = duration(time).as_str().into();
        to.keys.push(("probe-interval", value, option.place().clone()));
        if time > Duration::from_secs(16) {
            let value = duration(time);
            to.keys.push(("probe-interval-max", value.as_str().into(), option.place().clone()));
        }
        if option.arguments().len() > 1 {
            self.leave(option, Differs, "probes ask for `. NS`, recursion desired");
        }
        Ok(())
    }

    /// Adds what a word stands for: an upstream, or a file that names some.
    fn add_upstreams(
        &mut self,
        line: &Line,
        token: &Token,
        to: &mut Forward,
    ) -> Result<(), ImportError> {
        let (scheme, port, rest) = match token.text.split_once("://") {
            None => ("", 53, token.text.as_str()),
            Some(("dns", rest)) => ("", 53, rest),
            Some(("tls", rest)) => ("tls://", 853, rest),
            Some(("https", rest)) => ("https://", 443, rest),
            Some(_) => {
                self.leave(line, Lost, "CoreDNS knows the schemes dns, tls and https");
                return Ok(());
            }
        };
        let path = self.base.join(rest);
        let may_be_file = scheme.is_empty() && plain_address(rest, port).is_none();
        if may_be_file && (rest.contains('/') || self.files.read(&path).is_ok()) {
            to.files.push(path.to_string_lossy().into_owned());
            return Ok(());
        }
        let upstream = upstream(scheme, port, rest);
        to.upstreams.push(upstream.ok_or_else(|| token.expected("the address of a server"))?);
        Ok(())
    }

    /// Returns the servers that a file such as `/etc/resolv.conf` has now, to look names up.
    fn servers_of(&mut self, line: &Line, path: &Path) -> Result<Vec<String>, ImportError> {
        let at = |problem| fail(line.place().clone(), problem);
        let octets = self.files.read(path);
        let octets = octets.map_err(|error| at(Problem::Unreadable(path.to_owned(), error)))?;
        let text = String::from_utf8_lossy(&octets);
        let mut servers = Vec::new();
        for row in text.lines() {
            let mut words = row.split_ascii_whitespace();
            if let (Some("nameserver"), Some(address)) = (words.next(), words.next()) {
                servers.extend(plain_address(address, 53));
            }
        }
        let name = path.to_string_lossy().escape_debug().to_string();
        if servers.is_empty() {
            let (wanted, found) = (format!("a `nameserver` in {name}"), "none".to_owned());
            return Err(at(Problem::Expected { wanted, found }));
        }
        servers.truncate(UPSTREAMS_MAX);
        let why = format!(
            "names are looked up by the servers that {name} has now: {}",
            servers.join(", ")
        );
        self.leave(line, Differs, why);
        Ok(servers)
    }
}

/// Returns what is different about an option.
fn differences(option: &str) -> Option<&'static str> {
    Some(match option {
        "max_fails" => {
            "the state of an upstream follows from its answers: suspect-after, down-after"
        }
        "expire" | "max_idle_conns" | "max_age" => {
            "connections are kept for as long as the upstream keeps them"
        }
        "max_connect_attempts" => "a query is repeated until `timeout` in [zone.forward]",
        "read_timeout" => {
            "how long an upstream may take follows from its answers, within `timeout` in \
                [zone.forward]"
        }
        "doh_method" => "HTTPS always uses POST",
        "failfast_all_unhealthy_upstreams" => {
            "upstreams that are down get probes only, and clients SERVFAIL or an expired answer"
        }
        _ => return None,
    })
}

/// Reads an upstream behind its scheme: `ADDRESS[%NAME][:PORT][/PATH]`.
fn upstream(scheme: &'static str, default_port: u16, text: &str) -> Option<Upstream> {
    let (text, path) = match text.find('/') {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let (text, certificate_name) = match text.split_once('%') {
        None => (text.to_owned(), String::new()),
        Some((address, name)) => match name.split_once(':') {
            Some((name, port)) => (format!("{address}:{port}"), name.to_owned()),
            None => (address.to_owned(), name.to_owned()),
        },
    };
    let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_graphic() && c != '#');
    if !is_plain(path) || (!certificate_name.is_empty() && scheme.is_empty()) {
        return None;
    }
    let (host, is_name) = match plain_address(&text, default_port) {
        Some(host) => (host, false),
        None => {
            let (host, port) = text.split_once(':').unwrap_or((&text, ""));
            let name: Name = host.parse().ok().filter(|name: &Name| name.label_count() > 0)?;
            let is_port = port.is_empty() || port.parse::<u16>().is_ok_and(|port| port > 0);
            let name = is_port.then(|| key::written(&name.to_lowercase()))?;
            (if port.is_empty() { name } else { format!("{name}:{port}") }, true)
        }
    };
    let name_is_one = certificate_name.is_empty() || certificate_name.parse::<Name>().is_ok();
    let path = path.to_owned();
    name_is_one.then_some(Upstream { scheme, host, path, certificate_name, is_name })
}

/// Returns an address as it is written, with its port if that is not the usual one.
fn plain_address(text: &str, usual_port: u16) -> Option<String> {
    let bare: Option<IpAddr> = text.parse().ok();
    let bracketed = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let bare = bare.or_else(|| Some(IpAddr::V6(bracketed?.parse::<Ipv6Addr>().ok()?)));
    let (ip, port) = match bare {
        Some(ip) => (ip, usual_port),
        None => {
            let address: SocketAddr = text.parse().ok()?;
            if let SocketAddr::V6(it) = address
                && it.scope_id() != 0
            {
                return None;
            }
            (address.ip(), address.port())
        }
    };
    match port {
        0 => None,
        port if port == usual_port => Some(ip.to_string()),
        port => Some(SocketAddr::new(ip, port).to_string()),
    }
}

impl Upstream {
    /// Returns the upstream as `to` has it.
    fn written(&self, forces_tcp: bool) -> String {
        let scheme = if self.scheme.is_empty() && forces_tcp { "tcp://" } else { self.scheme };
        let is_v6 = self.host.parse::<Ipv6Addr>().is_ok();
        let host = match is_v6 && !scheme.is_empty() {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        let name = self.certificate_name.trim_end_matches('.');
        let mark = if name.is_empty() || scheme == "tcp://" { "" } else { "#" };
        let name = if mark.is_empty() { "" } else { name };
        format!("{scheme}{host}{}{mark}{name}", self.path)
    }
}
