//! `options`: listeners, limits, and what has no counterpart.

use super::{Report, text_of};
use crate::document::{Effect, Value};
use crate::error::{ImportError, Place};
use crate::steering::{Configuration, Setting};
use crate::tree::{Content, Node, expected};
use crate::value::{boolean, elements, pairs, parsed};
use Effect::{Differs, Lost, Needless};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Limits that hold for all zones.
pub struct Limits {
    /// TTL of records before the first `$TTL`, seconds.
    pub zones_default_ttl: u32,
    /// Lowest TTL, seconds.
    pub min_ttl: u32,
    /// Highest TTL, seconds.
    pub max_ttl: u32,
}

/// Effect, reason, and the options that it is for.
type Group = (Effect, &'static str, &'static [&'static str]);

/// Options that are not carried over.
#[rustfmt::skip] // a list of words, filled like text
const GROUPS: &[Group] = &[
    (Needless, "Zonda finds its own measure for threads and memory", &[
        "tcp_threads", "udp_threads", "udp_rcvbuf", "udp_sndbuf", "tcp_backlog", "tcp_fastopen",
        "zones_rfc1035_threads", "lock_mem",
    ]),
    (Needless, "commands reach the server on the Unix socket admin.socket", &[
        "tcp_control", "run_dir",
    ]),
    (Needless, "`state` names such a directory, and has a default", &["state_dir"]),
    (Needless, "mistakes in a zone are errors, warnings are told", &["zones_strict_data"]),
    (Needless, "strings that were longer have been cut", &["disable_text_autosplit"]),
    (Differs, "`connections-max` in [tcp] is such a limit for the server", &[
        "tcp_clients_per_thread",
    ]),
    (Differs, "the TTL of negative answers is that of the SOA record", &["max_ncache_ttl"]),
    (Differs, "one size holds for IPv4 and IPv6", &["max_edns_response_v6"]),
    (Differs, "a CNAME is followed within its zone", &["experimental_no_chain"]),
    (Lost, "replies without cookies are as long as others", &["max_nocookie_response"]),
    (Lost, "`cookie-secrets` in [edns] are 16 octets each, written into the file", &[
        "cookie_key_file",
    ]),
    (Lost, "records for challenges are set by `zonda zone set`", &[
        "acme_challenge_ttl", "acme_challenge_dns_ttl",
    ]),
    (Lost, "there are no DSO sessions", &["disable_tcp_dso"]),
    (Lost, "replies are not padded, and there is no PROXY protocol", &["tcp_proxy", "tcp_pad"]),
];

/// Carries over the options; without any, gdnsd's defaults.
pub fn take(
    options: Option<&Node>,
    top: &Place,
    configuration: &mut Configuration,
    report: &mut Report,
) -> Result<Limits, ImportError> {
    let mut limits = Limits { zones_default_ttl: 86_400, min_ttl: 5, max_ttl: 3_600_000 };
    let empty = Node { place: top.clone(), content: Content::Map(Vec::new()) };
    let options = options.unwrap_or(&empty);
    let seconds = "a number of seconds";
    for (key, limit) in [
        ("zones_default_ttl", &mut limits.zones_default_ttl),
        ("min_ttl", &mut limits.min_ttl),
        ("max_ttl", &mut limits.max_ttl),
    ] {
        if let Some((value, _)) = parsed(options, key, seconds)? {
            *limit = value;
        }
    }
    limits.max_ttl = limits.max_ttl.max(limits.min_ttl);
    let port = parsed(options, "dns_port", "a port")?.map_or(53, |(port, _)| port);
    let mut has_listeners = false;
    for (key, place, node) in pairs(options)? {
        match key.as_str() {
            "listen" => {
                has_listeners = true;
                listeners(node, port, configuration, report)?;
            }
            "dns_port" | "zones_default_ttl" | "min_ttl" | "max_ttl" => {}
            _ => option(options, (key, place, node), configuration, report)?,
        }
    }
    if !has_listeners {
        any(port, None, configuration);
    }
    Ok(limits)
}

/// Carries over an option that is one key here, or reports it.
fn option(
    options: &Node,
    (key, place, node): (&str, &Place, &Node),
    configuration: &mut Configuration,
    report: &mut Report,
) -> Result<(), ImportError> {
    let mut set = |section, name, value| {
        let origin = place.clone();
        configuration.settings.push(Setting { section, key: name, value, origin });
    };
    let text = || text_of(node).ok_or_else(|| expected(node, "text"));
    match key {
        "nsid" => set("edns", "nsid", Value::from(&*format!("0x{}", text()?))),
        "nsid_ascii" => set("edns", "nsid", Value::from(text()?)),
        "chaos_response" => set("identity", "version", Value::from(text()?)),
        "max_edns_response" => {
            let size = parsed::<u64>(options, key, "a number of octets")?;
            let size = size.map_or(1232, |(size, _)| size);
            set("edns", "buffer-size", Value::from(size.clamp(512, 4096)));
        }
        "tcp_timeout" => {
            let secs = parsed::<u32>(options, key, "a number of seconds")?;
            let secs = secs.map_or(37, |(secs, _)| secs);
            set("tcp", "idle-timeout", Value::from(&*format!("{secs}s")));
        }
        "edns_client_subnet" => {
            let is_on = boolean(options, key)?.is_none_or(|(is_on, _)| is_on);
            set("edns", "client-subnet", Value::from(is_on));
        }
        "disable_cookies" => {
            let is_off = boolean(options, key)?.is_some_and(|(is_off, _)| is_off);
            set("edns", "cookies", Value::from(!is_off));
        }
        _ => {
            let known = GROUPS.iter().find(|(_, _, all)| all.contains(&key));
            let (effect, why) = known.map_or(
                (Lost, "there is no counterpart that this import knows"),
                |(effect, why, _)| (*effect, *why),
            );
            report.tell(place, effect, key, why);
        }
    }
    Ok(())
}

/// Carries over the addresses of `listen`: one, several, `any`, or keys with options.
fn listeners(
    node: &Node,
    port: u16,
    configuration: &mut Configuration,
    report: &mut Report,
) -> Result<(), ImportError> {
    let wanted = "an address such as 192.0.2.1, 192.0.2.1:53 or [2001:db8::1]:53";
    if let Content::Map(listeners) = &node.content {
        for (text, place, options) in listeners {
            let address = address(text, port).ok_or_else(|| expected(options, wanted))?;
            if boolean(options, "tcp_proxy")?.is_some_and(|(is_on, _)| is_on) {
                report.tell(place, Lost, text, "there is no PROXY protocol");
                continue;
            }
            for (key, place, _) in pairs(options)? {
                let why = "keys of [[listen]] and [tcp] have their own measure";
                report.tell(place, Needless, key, why);
            }
            configuration.listeners.push((address, Some(place.clone())));
        }
        return Ok(());
    }
    for node in elements(node) {
        match text_of(node) {
            Some("any") => any(port, Some(&node.place), configuration),
            text => {
                let address = text.and_then(|text| address(text, port));
                let address = address.ok_or_else(|| expected(node, wanted))?;
                configuration.listeners.push((address, Some(node.place.clone())));
            }
        }
    }
    Ok(())
}

/// Adds listeners on all addresses.
fn any(port: u16, origin: Option<&Place>, configuration: &mut Configuration) {
    for address in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)] {
        configuration.listeners.push((SocketAddr::new(address, port), origin.cloned()));
    }
}

/// Reads an address with or without a port.
fn address(text: &str, port: u16) -> Option<SocketAddr> {
    let alone = text.parse().ok().map(|address| SocketAddr::new(address, port));
    alone.or_else(|| text.parse().ok())
}
