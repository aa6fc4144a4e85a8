//! `transfer [ZONES…] { to ADDRESS… }`: the clients that zones are transferred to.

use super::parser::Line;
use super::source::Kind;
use super::table::ZoneEntry;
use super::{Block, Importer, key};
use crate::document::Effect::{Differs, Lost, Needless};
use crate::error::{ImportError, Place};
use std::net::{IpAddr, SocketAddr};
use zonda_wire::Name;

/// What is said of clients that CoreDNS sends a message when a zone changes.
const NO_NOTIFY: &str =
    "the clients are not notified of changes: they ask when the refresh time of the zone is over";

/// The clients that some zones are transferred to.
pub struct TransferRule {
    /// Zones of the rule: it is for those in them.
    pub zones: Vec<Name>,
    /// Clients, as `transfer` of a zone has them.
    pub to: Vec<String>,
    /// Line of the rule.
    pub place: Place,
    /// Words of the line, for messages.
    pub what: String,
}

impl Importer<'_> {
    /// Reads `transfer`.
    pub(super) fn transfer(&mut self, line: &Line) -> Result<(), ImportError> {
        let zones = match line.arguments() {
            [] => self.current().zones(),
            zones => key::all_zones(zones)?,
        };
        let mut to = Vec::new();
        for option in &line.block {
            match option.name() {
                "to" => self.transfer_clients(option, &mut to)?,
                "source" => self.leave(option, Needless, "no messages are sent to secondaries"),
                _ => self.lose_option(option),
            }
        }
        if to.is_empty() {
            return Err(line.expected("`to` with an address in the block"));
        }
        self.add_transfer(line, zones, to);
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
                let mut clients = Vec::new();
                let why = "it is taken as the plugin `transfer`, which CoreDNS now demands";
                self.leave(option, Differs, why);
                self.transfer_words(option, 1, &mut clients)?;
                self.add_transfer(option, zones, clients);
            }
            _ => self.leave(option, Lost, "zones are not fetched from other servers"),
        }
        Ok(())
    }

    /// Reads the clients of a line.
    fn transfer_clients(&mut self, line: &Line, to: &mut Vec<String>) -> Result<(), ImportError> {
        if line.arguments().is_empty() {
            return Err(line.expected("an address or `*`"));
        }
        self.transfer_words(line, 0, to)
    }

    /// Reads the clients of a line behind some words.
    fn transfer_words(
        &mut self,
        line: &Line,
        behind: usize,
        to: &mut Vec<String>,
    ) -> Result<(), ImportError> {
        let mut is_notified = false;
        for word in line.arguments().iter().skip(behind) {
            let mut add = |client: String| {
                if !to.contains(&client) {
                    to.push(client);
                }
            };
            if word.is("*") {
                ["0.0.0.0/0", "::/0"].map(str::to_owned).into_iter().for_each(add);
                continue;
            }
            let text = word.text.as_str();
            let host = text.trim_start_matches('[').trim_end_matches(']');
            let address = host.parse::<IpAddr>().ok();
            let address = address.or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()));
            add(address.ok_or_else(|| word.expected("an address or `*`"))?.to_string());
            is_notified = true;
        }
        if is_notified {
            self.leave(line, Differs, NO_NOTIFY);
        }
        Ok(())
    }

    /// Adds a rule to the block that is being read.
    fn add_transfer(&mut self, line: &Line, zones: Vec<Name>, to: Vec<String>) {
        let (place, what) = (line.place().clone(), line.summary());
        self.current().transfers.push(TransferRule { zones, to, place, what });
    }

    /// Reports rules that are for no zone which can be transferred.
    pub(super) fn check_transfers(&mut self) {
        let mut reports = Vec::new();
        for (number, block) in self.blocks.iter().enumerate() {
            for (at, rule) in block.transfers.iter().enumerate() {
                let is_used = |entry: &&ZoneEntry| {
                    let is_own = entry.pieces.first().is_some_and(|it| it.block == number);
                    is_own && transfer_of(block, entry).is_some_and(|it| it.0 == at)
                };
                let has_directory = self.directories.iter().any(|it| it.block == number);
                if !self.zones.iter().any(|entry| is_used(&entry)) && !has_directory {
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
