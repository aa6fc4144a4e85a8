//! Queries and replies by the labels that CoreDNS has: server, zone, transport, family, type, code.

use crate::admin::metrics::page::{Label, Page};
use crate::control::Control;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use zonda_engine::Transport;
use zonda_engine::counters::{Counter, FAMILIES, LabelCounters, RCODES, TYPES};
use zonda_engine::labels::{LabelTable, NO_ZONE, OTHER_ZONE, SERVERS_MAX};
use zonda_wire::Type;

/// The families of addresses as CoreDNS numbers them.
const FAMILY_LABELS: [&str; FAMILIES] = ["1", "2"];
/// Types that are counted here and are `other` in CoreDNS.
const OTHER_TYPES: [Type; 4] = [Type::NAPTR, Type::TLSA, Type::SVCB, Type::CAA];

/// The label of one server and one zone, and their places.
pub struct Place {
    /// Name of the server, such as `dns://:53`.
    pub server: String,
    /// Name of the zone; `dropped` for names that no zone holds.
    pub zone: String,
    /// Numbers under which workers count: of the server, and of the zone.
    numbers: (usize, usize),
}

impl Place {
    /// Returns the labels that nearly all of CoreDNS's metrics begin with.
    pub fn labels(&self) -> [Label<'_>; 3] {
        [("server", &self.server), ("zone", &self.zone), ("view", "")]
    }

    /// Returns the sum of a counter over all engines.
    fn sum(&self, control: &Control, of: impl Fn(&LabelCounters) -> &Counter) -> u64 {
        let ((server, zone), engines) = (self.numbers, control.counters.all());
        let counters = engines.iter().filter_map(|it| it.labelled(server, zone));
        counters.map(|it| of(it).get()).sum()
    }
}

/// Returns all servers and zones that queries are counted by, those of former configurations too.
pub fn places(control: &Control) -> Vec<Place> {
    let Some(table) = labels(control) else { return Vec::new() };
    let mut all = Vec::new();
    for server in 0..table.server_places() {
        let name = server_name(control, &table, server);
        let names = table.names.iter().map(ToString::to_string);
        let zones = ["dropped".to_owned()].into_iter().chain(names);
        for (zone, text) in zones.chain(["other".to_owned()]).enumerate() {
            // The zones beyond those with places of their own have the last one.
            let is_last = zone == table.names.len() + 1;
            let zone = if is_last { OTHER_ZONE } else { zone };
            all.push(Place { server: name.clone(), zone: text, numbers: (server, zone) });
        }
    }
    all
}

/// Returns the names of all servers, those of former configurations too.
pub fn servers(control: &Control) -> Vec<String> {
    let Some(table) = labels(control) else { return Vec::new() };
    (0..table.server_places()).map(|server| server_name(control, &table, server)).collect()
}

/// Returns what queries are counted by.
fn labels(control: &Control) -> Option<Arc<LabelTable>> {
    control.snapshot.load().settings.labels.clone()
}

/// Returns the name of the server at a place: empty if several addresses share the last one, or a
/// port that the system has chosen is open no more.
fn server_name(control: &Control, table: &LabelTable, place: usize) -> String {
    let known = &table.servers_so_far;
    let is_shared = place + 1 == SERVERS_MAX && known.len() > SERVERS_MAX;
    let Some(address) = known.get(place).filter(|_| !is_shared) else { return String::new() };
    match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => format!("dns://:{}", address.port()),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => {
            let is_at = |server: &u8| usize::from(*server) == place;
            let bound = control.listeners.last_addresses();
            let bound = table.servers.iter().zip(bound).find(|(server, _)| is_at(server));
            bound.and_then(|(_, it)| it).map_or_else(String::new, |it| format!("dns://{it}"))
        }
        _ => format!("dns://{address}"),
    }
}

/// Writes the queries and replies of all places.
pub fn write(page: &mut Page, control: &Control) {
    let places = places(control);
    let name = "coredns_dns_requests_total";
    page.metric(name, "counter", "Queries.");
    places.iter().for_each(|place| requests(page, name, control, place));
    let name = "coredns_dns_do_requests_total";
    page.metric(name, "counter", "Queries for which DNSSEC records are wanted.");
    for place in &places {
        let count = place.sum(control, |it| &it.dnssec_ok);
        if count > 0 || !matches!(place.numbers.1, NO_ZONE | OTHER_ZONE) {
            page.value(name, &place.labels(), count);
        }
    }
    let name = "coredns_dns_responses_total";
    page.metric(name, "counter", "Replies, by response code.");
    for place in &places {
        for (code, rcode) in RCODES.iter().enumerate() {
            let count = place.sum(control, |it| &it.rcodes[code]);
            if count > 0 {
                let more = [("rcode", &*rcode.to_string()), ("plugin", "")];
                page.value(name, &[&place.labels()[..], &more].concat(), count);
            }
        }
    }
}

/// Writes the queries of a place, by transport, family and type.
fn requests(page: &mut Page, name: &str, control: &Control, place: &Place) {
    for (transport, at) in Transport::ALL.iter().zip(0..) {
        for (family, label) in FAMILY_LABELS.iter().enumerate() {
            let count = |it: usize| place.sum(control, |one| &one.requests[at][family][it]);
            let mut others = count(TYPES.len());
            let mut write = |text: &str, count: u64| {
                if count > 0 {
                    let more = [("proto", transport.name()), ("family", label), ("type", text)];
                    page.value(name, &[&place.labels()[..], &more].concat(), count);
                }
            };
            for (number, rtype) in TYPES.iter().enumerate() {
                match OTHER_TYPES.contains(rtype) {
                    true => others += count(number),
                    false => write(&rtype.to_string(), count(number)),
                }
            }
            write("other", others);
        }
    }
}

/// Returns the name of the server if there is one; empty if there are several.
pub fn only_server(control: &Control) -> String {
    match labels(control) {
        Some(table) if table.server_places() == 1 => server_name(control, &table, 0),
        _ => String::new(),
    }
}
