//! Addresses: where queries are answered, and where statistics are served.

use super::acl::{self, Clients, Words};
use super::clauses::Clauses;
use super::statement::{Cursor, Statement};
use super::{Importer, Listener};
use crate::document::Effect;
use crate::error::{ImportError, Place};
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// All addresses of the machine.
const ANY_V4: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
/// The unspecified IPv6 address.
const ANY_V6: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
/// The port of DNS.
const DNS_PORT: u16 = 53;
/// The port of named's statistics.
const STATISTICS_PORT: u16 = 80;
/// Words of rules of a listener for clients that named ignores.
const IGNORED: Words = ("drop", "allow", "allow any");

impl<'s> Importer<'s> {
    /// Reads `listen-on`, `listen-on-v6`, `port` and `blackhole`.
    pub(super) fn listeners(&mut self, options: &mut Clauses<'s>) -> Result<(), ImportError> {
        let port = match options.take("port")? {
            Some(mut cursor) => cursor.parsed("a port")?,
            None => DNS_PORT,
        };
        let access = self.listener_access(options)?;
        for (keyword, wildcard) in [("listen-on", ANY_V4), ("listen-on-v6", ANY_V6)] {
            let all = options.take_all(keyword);
            if all.is_empty() {
                self.listen(SocketAddr::new(wildcard, port), None);
            }
            for cursor in all {
                self.listen_on(cursor, port, wildcard)?;
            }
        }
        let wildcards: HashSet<SocketAddr> = self
            .listeners
            .iter()
            .map(|it| it.address)
            .filter(|it| it.ip().is_unspecified())
            .collect();
        let wildcard =
            |address: SocketAddr| SocketAddr::new(unspecified(address.ip()), address.port());
        // Beside a wildcard address, other addresses of its kind would be bound twice.
        self.listeners.retain(|it| {
            it.address.ip().is_unspecified() || !wildcards.contains(&wildcard(it.address))
        });
        let mut seen = HashSet::new();
        self.listeners.retain(|listener| seen.insert(listener.address));
        for listener in &mut self.listeners {
            listener.access.clone_from(&access);
        }
        Ok(())
    }

    /// Returns the clients that are answered on any listener: those of the only view, without those
    /// in `blackhole`. Nothing where that is all of them.
    fn listener_access(
        &mut self,
        options: &mut Clauses<'s>,
    ) -> Result<Option<(Vec<String>, Place)>, ImportError> {
        let view = self.view_clients.take().filter(|(rules, _)| rules != &["allow any"]);
        let Some(mut cursor) = options.take("blackhole")? else { return Ok(view) };
        let rules = self.acls.rules(cursor.block("`{`")?)?;
        cursor.end()?;
        if rules.is_empty() {
            return Ok(view);
        }
        let mut ignored = acl::written(&rules, IGNORED);
        let Some((served, place)) = view else {
            return Ok(Some((ignored, cursor.statement().place().clone())));
        };
        ignored.pop_if(|last| last == "allow any");
        if ignored.iter().any(|rule| !rule.starts_with("drop ")) {
            let why = "it excludes somebody, which cannot be said beside `match-clients`";
            self.leave(cursor, Effect::Lost, why);
            return Ok(Some((served, place)));
        }
        ignored.extend(served);
        Ok(Some((ignored, place)))
    }

    /// Reads one `listen-on`.
    fn listen_on(
        &mut self,
        mut cursor: Cursor<'s>,
        port: u16,
        wildcard: IpAddr,
    ) -> Result<(), ImportError> {
        let port = if cursor.passes("port") { cursor.parsed("a port")? } else { port };
        for keyword in ["proxy", "tls", "http"] {
            if cursor.passes(keyword) {
                self.leave(cursor, Effect::Lost, "clients are answered over UDP and TCP only");
                return Ok(());
            }
        }
        let list = cursor.block("`{`")?;
        cursor.end()?;
        for element in list {
            for address in self.listen_addresses(element, wildcard)? {
                self.listen(SocketAddr::new(address, port), Some(cursor));
            }
        }
        Ok(())
    }

    /// Returns the addresses that an element stands for.
    fn listen_addresses(
        &mut self,
        element: &'s Statement,
        wildcard: IpAddr,
    ) -> Result<Vec<IpAddr>, ImportError> {
        if element.keyword() == "localhost" {
            return Ok(vec![wildcard]); // any address of the machine
        }
        let mut addresses = Vec::new();
        for rule in self.acls.rules(std::slice::from_ref(element))? {
            match (rule.who, rule.matches) {
                (Clients::Any, true) => addresses.push(wildcard),
                (Clients::Any, false) => break,
                (Clients::Network(network), true) if network.is_single() => {
                    if network.address.is_ipv4() == wildcard.is_ipv4() {
                        addresses.push(network.address);
                    }
                }
                _ => {
                    let why = "[[listen]] needs the address itself, in place of who matches it";
                    self.leave(element.cursor(), Effect::Lost, why);
                    break;
                }
            }
        }
        Ok(addresses)
    }

    /// Adds a listener.
    fn listen(&mut self, address: SocketAddr, from: Option<Cursor<'s>>) {
        let origin = from.map(|cursor| cursor.statement().place().clone());
        self.listeners.push(Listener { address, origin, access: None });
    }

    /// Reads `statistics-channels`, of which one can be carried over.
    pub(super) fn statistics_channels(&mut self, top: &mut Clauses<'s>) -> Result<(), ImportError> {
        let mut is_first = true;
        for mut cursor in top.take_all("statistics-channels") {
            let channels = cursor.block("`{`")?;
            cursor.end()?;
            for channel in channels {
                if is_first {
                    self.statistics_channel(channel.cursor())?;
                } else {
                    self.leave(channel.cursor(), Effect::Lost, "there can be one such address");
                }
                is_first = false;
            }
        }
        Ok(())
    }

    /// Reads `inet ADDRESS port PORT allow { … }`.
    fn statistics_channel(&mut self, mut cursor: Cursor<'s>) -> Result<(), ImportError> {
        if !cursor.passes("inet") {
            return Err(cursor.expected("`inet`"));
        }
        const ADDRESS: &str = "an address or `*`";
        let address = cursor.value(ADDRESS, |word| match word {
            "*" => Some(ANY_V4),
            word => word.parse().ok(),
        })?;
        let port = match cursor.passes("port") {
            true => cursor.value("a port or `*`", |word| match word {
                "*" => Some(STATISTICS_PORT),
                word => word.parse().ok(),
            })?,
            false => STATISTICS_PORT,
        };
        let allowed = if cursor.passes("allow") { Some(cursor.block("`{`")?) } else { None };
        cursor.end()?;
        let at = SocketAddr::new(address, port).to_string();
        self.set(("admin", "bind-statistics"), at.as_str(), cursor);
        let clients = match allowed {
            Some(list) => self.clients(cursor, list)?,
            None => vec!["0.0.0.0/0".to_owned(), "::/0".to_owned()],
        };
        if !address.is_loopback() && !clients.is_empty() {
            self.set(("admin", "bind-statistics-clients"), &clients[..], cursor);
        }
        Ok(())
    }

    /// Returns the networks of a list that excludes no client.
    pub(super) fn clients(
        &mut self,
        cursor: Cursor<'s>,
        list: &'s [Statement],
    ) -> Result<Vec<String>, ImportError> {
        let everyone = ["0.0.0.0/0", "::/0"].map(str::to_owned);
        let mut clients = Vec::new();
        for rule in self.acls.rules(list)? {
            match (rule.who, rule.matches) {
                (Clients::Network(network), true) => clients.push(network.to_string()),
                (Clients::Any, true) => clients.extend(everyone.clone()),
                (Clients::Any, false) => break,
                _ => {
                    let why = "this list cannot exclude anybody: name those whom it is for";
                    self.leave(cursor, Effect::Lost, why);
                    return Ok(Vec::new());
                }
            }
        }
        Ok(clients)
    }
}

/// Returns the wildcard address of an address's kind.
fn unspecified(address: IpAddr) -> IpAddr {
    if address.is_ipv4() { ANY_V4 } else { ANY_V6 }
}
