//! Keys of the whole server: listeners, the log, the administrative interface, locations.

use super::Importer;
use crate::document::{Effect, Value};
use crate::error::ImportError;
use crate::steering::{Network, Setting};
use crate::tree::{Node, expected};
use crate::value::{PlacedValue, at, boolean, get, list, required, text, value};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Words of the log's levels in both servers.
const LEVELS: &[&str] = &["debug", "info", "warn", "error"];
/// Words of the log's formats in both servers.
const FORMATS: &[&str] = &["text", "json"];

impl Importer<'_> {
    /// Carries over all keys that are not of regions and domains.
    pub(super) fn settings(&mut self) -> Result<(), ImportError> {
        let Some(root) = self.sources.first().map(|file| &file.root) else { return Ok(()) };
        self.listener(root)?;
        self.log(root)?;
        self.admin(root)?;
        self.locations(root)
    }

    /// Takes the address on which queries are answered; that of an agent's file is none.
    fn listener(&mut self, root: &Node) -> Result<(), ImportError> {
        let dns = at(root, &["dns"])?;
        let address = match dns {
            Some(dns) => {
                value(dns, "listen_address", "an address and a port", |text| listener(text, 53))?
            }
            None => None,
        };
        let (address, origin) = match address {
            Some((address, place)) => (address, Some(place)),
            None if get(root, "domains")?.is_none() => return Ok(()),
            None => (SocketAddr::from((Ipv6Addr::UNSPECIFIED, 53)), None),
        };
        self.configuration.listeners.push((address, origin));
        Ok(())
    }

    /// Takes level and format of the log.
    fn log(&mut self, root: &Node) -> Result<(), ImportError> {
        let Some(logging) = get(root, "logging")? else { return Ok(()) };
        for (key, words) in [("level", LEVELS), ("format", FORMATS)] {
            let wanted = format!("one of {}", words.join(", "));
            let word = value(logging, key, &wanted, |text| {
                words.iter().find(|word| word.eq_ignore_ascii_case(text)).copied()
            })?;
            if let Some((word, origin)) = word {
                let value = Value::from(word);
                self.configuration.settings.push(Setting { section: "log", key, value, origin });
            }
        }
        Ok(())
    }

    /// Takes the address of the API, or else that of the metrics.
    fn admin(&mut self, root: &Node) -> Result<(), ImportError> {
        let mut taken: Option<SocketAddr> = None;
        for (section, default) in [("api", "127.0.0.1:8080"), ("metrics", ":9090")] {
            let Some(node) = get(root, section)? else { continue };
            let address =
                value(node, "address", "an address and a port", |text| listener(text, 8080))?;
            if !boolean(node, "enabled")?.is_some_and(|(is_on, _)| is_on) {
                continue;
            }
            let place = node.place.clone();
            let default = listener(default, 0).map(|address| (address, place.clone()));
            let Some((address, origin)) = address.or(default) else { continue };
            if let Some(first) = taken.filter(|first| *first != address) {
                let why = format!("there is one interface, at {first}");
                self.tell_key(&origin, Effect::Differs, &format!("{section}.address"), &why);
                continue;
            }
            if taken.is_some() {
                continue;
            }
            taken = Some(address);
            if !address.ip().is_loopback() {
                let why = "an address that is not loopback needs `token` in [admin]: write one";
                self.tell_key(&origin, Effect::Differs, &format!("{section}.address"), why);
            }
            let value = Value::from(&*address.to_string());
            let setting = Setting { section: "admin", key: "address", value, origin };
            self.configuration.settings.push(setting);
        }
        Ok(())
    }

    /// Takes the database of locations, the default region and the networks of regions.
    fn locations(&mut self, root: &Node) -> Result<(), ImportError> {
        let Some(node) = at(root, &["overwatch", "geolocation"])? else { return Ok(()) };
        let geo = &mut self.configuration.geo;
        geo.database = text(node, "database_path")?;
        geo.default_site = text(node, "default_region")?;
        for mapping in list(node, "custom_mappings")? {
            let (prefix, origin) = network(mapping)?;
            let (site, _) = required(mapping, "region")?;
            geo.networks.push(Network { prefix, site, origin });
        }
        if let Some((false, place)) = boolean(node, "ecs_enabled")? {
            let (value, origin) = (Value::from(false), place.clone());
            let setting = Setting { section: "edns", key: "client-subnet", value, origin };
            self.configuration.settings.push(setting);
            let why = "`client-subnet` in [edns]";
            self.tell_key(&place, Effect::Taken, "overwatch.geolocation.ecs_enabled", why);
        }
        Ok(())
    }
}

/// Reads the network of a mapping.
fn network(mapping: &Node) -> Result<PlacedValue<String>, ImportError> {
    let (prefix, place) = required(mapping, "cidr")?;
    match (is_network(&prefix), get(mapping, "cidr")?) {
        (false, Some(node)) => Err(expected(node, "a network such as 192.0.2.0/24")),
        _ => Ok((prefix, place)),
    }
}

/// Whether a text is an address with the length of a prefix.
fn is_network(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let (Ok(address), Ok(length)) = (address.parse::<IpAddr>(), length.parse::<u8>()) else {
        return false;
    };
    length <= if address.is_ipv4() { 32 } else { 128 }
}

/// Reads an address as Go does: `:53` and `host:port`, whose host may be empty.
fn listener(text: &str, port: u16) -> Option<SocketAddr> {
    if let Some(port) = text.strip_prefix(':') {
        return Some(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port.parse().ok()?)));
    }
    let text = text.replace("localhost:", "127.0.0.1:");
    text.parse().ok().or_else(|| Some(SocketAddr::new(text.parse().ok()?, port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_go_writes_them() {
        for (text, expected) in [
            (":53", Some("[::]:53")),
            ("0.0.0.0:5353", Some("0.0.0.0:5353")),
            ("[2001:db8::1]:53", Some("[2001:db8::1]:53")),
            ("localhost:8080", Some("127.0.0.1:8080")),
            ("192.0.2.1", Some("192.0.2.1:53")),
            ("dns.example:53", None),
        ] {
            assert_eq!(listener(text, 53).map(|it| it.to_string()).as_deref(), expected, "{text}");
        }
    }
}
