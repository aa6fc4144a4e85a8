//! `transfer [ZONES…] { to ADDRESS… }`: the clients that zones are transferred to.

use super::lexer::Token;
use super::parser::Line;
use super::source::Kind;
use super::table::ZoneEntry;
use super::{Block, Importer, key};
use crate::document::Effect::{Differs, Lost, Needless};
use crate::error::{ImportError, Place};
use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use zonda_wire::Name;

/// The clients that some zones are transferred to.
pub struct TransferRule {
    /// Zones of the rule: it is for those in them.
    pub zones: Vec<Name>,
    /// Clients, as `transfer` of a zone has them.
    pub to: Vec<String>,
    /// Servers that are notified of changes.
    pub notify: Vec<String>,
    /// Line of the rule.
    pub place: Place,
    /// Words of the line, for messages.
    pub what: String,
}

/// The clients of a rule.
#[derive(Default)]
struct Clients {
    /// Clients, as `transfer` of a zone has them.
    to: Vec<String>,
    /// Servers among them, which CoreDNS notifies of changes, with their ports.
    notify: Vec<String>,
}

impl Clients {
    /// Adds those of a line behind some words.
    fn add(&mut self, line: &Line, behind: usize) -> Result<(), ImportError> {
        let add = |all: &mut Vec<String>, client: String| {
            if !all.contains(&client) {
                all.push(client);
            }
        };
        for word in line.arguments().iter().skip(behind) {
            if word.is("*") {
                ["0.0.0.0/0", "::/0"].iter().for_each(|it| add(&mut self.to, (*it).to_owned()));
                continue;
            }
            let server = server(word).ok_or_else(|| word.expected("an address or `*`"))?;
            add(&mut self.to, server.ip().to_string());
            let is_usual = server.port() == PORT;
            let written = if is_usual { server.ip().to_string() } else { server.to_string() };
            add(&mut self.notify, written);
        }
        Ok(())
    }
}

/// The port of a server that is given without one.
pub const PORT: u16 = 53;

/// Reads the address of a server, perhaps with a port.
pub fn server(word: &Token) -> Option<SocketAddr> {
    let text = word.text.as_str();
    let host = text.trim_start_matches('[').trim_end_matches(']');
    match host.parse::<IpAddr>() {
        Ok(address) => Some(SocketAddr::new(address, PORT)),
        Err(_) => text.parse::<SocketAddr>().ok().filter(|it| it.port() > 0),
    }
}

impl Importer<'_> {
    /// Reads `transfer`.
    pub(super) fn transfer(&mut self, line: &Line) -> Result<(), ImportError> {
        let zones = match line.arguments() {
            [] => self.current().zones(),
            zones => key::all_zones(zones)?,
        };
        let mut clients = Clients::default();
        for option in &line.block {
            match option.name() {
                "to" if option.arguments().is_empty() => {
                    return Err(option.expected("an address or `*`"));
                }
                "to" => clients.add(option, 0)?,
                "source" => {
                    let why = "messages leave from the address that the system chooses";
                    self.leave(option, Differs, why);
                }
                _ => self.lose_option(option),
            }
        }
        if clients.to.is_empty() {
            return Err(line.expected("`to` with an address in the block"));
        }
        self.add_transfer(line, zones, clients);
        Ok(())
    }

    /// Reads `transfer to ADDRESS…` of a zone file or a cluster, which CoreDNS had before 1.8.
    pub(super) fn former_transfer(
        &mut self,
        option: &Line,
        zones: Vec<Name>,
    ) -> Result<(), ImportError> {
        match option.arguments() {
            [to, ..] if to.is("to") => {
                let mut clients = Clients::default();
                let why = "it is taken as the plugin `transfer`, which CoreDNS now demands";
                self.leave(option, Differs, why);
                clients.add(option, 1)?;
                self.add_transfer(option, zones, clients);
            }
            _ => self.leave(option, Lost, "write `secondary` for the zones of other servers"),
        }
        Ok(())
    }

    /// Adds a rule to the block that is being read.
    fn add_transfer(&mut self, line: &Line, zones: Vec<Name>, clients: Clients) {
        let Clients { to, notify } = clients;
        let (place, what) = (line.place().clone(), line.summary());
        self.current().transfers.push(TransferRule { zones, to, notify, place, what });
    }

    /// Reports rules that are for no zone which can be transferred.
    pub(super) fn check_transfers(&mut self) {
        let mut used: HashSet<(usize, usize)> = HashSet::new();
        for entry in &self.zones {
            let Some(number) = entry.pieces.first().map(|piece| piece.block) else { continue };
            let block = self.blocks.get(number);
            used.extend(block.and_then(|it| transfer_of(it, entry)).map(|rule| (number, rule.0)));
        }
        let directories: HashSet<usize> = self.directories.iter().map(|it| it.block).collect();
        let mut reports = Vec::new();
        for (number, block) in self.blocks.iter().enumerate() {
            for (at, rule) in block.transfers.iter().enumerate() {
                if !used.contains(&(number, at)) && !directories.contains(&number) {
                    reports.push((rule.place.clone(), rule.what.clone()));
                }
            }
        }
        for (place, what) in reports {
            let why = "no zone of a file or a cluster is transferred by it";
            self.leave_at(&place, Needless, what, why);
        }
    }
}

/// Returns the rule with the longest zone that holds that of an entry, with its number.
pub fn transfer_of<'b>(block: &'b Block, entry: &ZoneEntry) -> Option<(usize, &'b TransferRule)> {
    let kind = entry.pieces.first()?.kind;
    if !matches!(kind, Kind::File | Kind::Kubernetes) {
        return None;
    }
    let zones = block.transfers.iter().enumerate().flat_map(|(at, rule)| {
        let holds = |zone: &&Name| key::is_in(&entry.name, zone);
        rule.zones.iter().filter(holds).map(move |zone| (zone.label_count(), at, rule))
    });
    // Of rules for the same zone, the first counts.
    let longest = zones.max_by_key(|(labels, at, _)| (*labels, usize::MAX - at));
    longest.map(|(_, at, rule)| (at, rule))
}
