//! The own data of the zones of a cluster, as the text of a master file: the apex, the version of
//! the specification, and services that are aliases.

use crate::builder::Builder;
use crate::cluster::Cluster;
use crate::service::{Addresses, Selection, ServiceRecord};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::net::IpAddr;
use zonda_wire::Name;

/// The longest time for which a negative answer may be kept, seconds.
const NEGATIVE_TTL_MAX: u32 = 300;
/// Servers of a zone that are named at its apex.
const SERVERS_MAX: usize = 13;

impl Builder {
    /// Returns the text of the data of a zone of the cluster, or of a zone of its addresses.
    /// `own` is the address of this server, if it is known: the services that have it among their
    /// endpoints are the servers of the zone, or else `ns.dns` is.
    #[must_use]
    pub fn data_text(&mut self, zone: &Name, serial: u32, own: Option<IpAddr>) -> String {
        let cluster = self.snapshot();
        if let Some(external) = &cluster.options().external {
            return self.external_text(&cluster, (zone, &external.server_label), serial, own);
        }
        let ttl = cluster.options().ttl;
        let negative = ttl.min(NEGATIVE_TTL_MAX);
        let mut text = format!(
            "$TTL {ttl}\n@ {negative} IN SOA ns.dns hostmaster {serial} 7200 1800 86400 \
             {negative}\n"
        );
        let servers = own.map(|own| servers(&cluster, own)).unwrap_or_default();
        let apex = cluster.apex();
        // Writing to a text does not fail.
        for name in servers.keys() {
            let _ = writeln!(text, "@ IN NS {name}.svc.{apex}");
        }
        if servers.is_empty() {
            text.push_str("@ IN NS ns.dns\n");
        }
        own.into_iter().for_each(|own| write_address(&mut text, "ns.dns", own));
        if zone != apex {
            return text;
        }
        for (name, addresses) in &servers {
            addresses.iter().for_each(|it| write_address(&mut text, &format!("{name}.svc"), *it));
        }
        text.push_str("dns-version 28800 IN TXT \"1.1.0\"\n");
        self.write_aliases(&mut text, apex, |_, _, _| ());
        text
    }

    /// Writes the services that are aliases, and what a function adds for each: it gets the name
    /// of the service without what all names end in, its own name, and its target.
    fn write_aliases(
        &self,
        text: &mut String,
        apex: &Name,
        mut add: impl FnMut(&mut String, &str, (&Name, &Name)),
    ) {
        let infix = self.infix_text();
        for (service, target) in self.aliases() {
            let owner = format!("{service}{infix}{apex}").parse::<Name>();
            let target = target.trim_end_matches('.');
            let is_address = target.parse::<IpAddr>().is_ok();
            if let (Ok(owner), Ok(target), false) = (owner, target.parse::<Name>(), is_address) {
                let _ = writeln!(text, "{owner} IN CNAME {target}");
                add(text, service, (&owner, &target));
            }
        }
    }

    /// Returns the text of the data of a zone of external names, or of a zone of their addresses.
    fn external_text(
        &self,
        cluster: &Cluster,
        (zone, server): (&Name, &str),
        serial: u32,
        own: Option<IpAddr>,
    ) -> String {
        let (ttl, apex) = (cluster.options().ttl, cluster.apex());
        let mut text = format!(
            "$TTL {ttl}\n@ IN SOA ns1.{server} hostmaster.{server} {serial} 7200 1800 86400 {ttl}\n\
             @ IN NS ns1.{server}\n"
        );
        let addresses = own.map(|own| external_addresses(cluster, own)).unwrap_or_default();
        let label = format!("ns1.{server}");
        addresses.into_iter().for_each(|own| write_address(&mut text, &label, own));
        if zone != apex {
            return text;
        }
        self.write_aliases(&mut text, apex, |text, service, (owner, target)| {
            let Some(record) = self.service_of(service) else { return };
            let named = record.ports.iter().filter(|port| !port.name.is_empty());
            for (port, number) in named.filter_map(|port| Some((port, port.number?))) {
                let name = String::from_utf8_lossy(&port.name);
                let protocol = String::from_utf8_lossy(port.protocol.label());
                let owner = format!("_{name}._{protocol}.{owner}");
                if owner.parse::<Name>().is_ok() {
                    let _ = writeln!(text, "{owner} IN SRV 0 100 {number} {target}");
                }
            }
        });
        text
    }
}

/// Returns the external addresses of the services that have an endpoint at an address; that address
/// itself if no service has one.
fn external_addresses(cluster: &Cluster, own: IpAddr) -> BTreeSet<IpAddr> {
    let has_endpoint = |it: &&ServiceRecord| Selection::slices_at(it, own).next().is_some();
    let addresses =
        cluster.services_at(own).filter(has_endpoint).flat_map(|it| match &it.addresses {
            Addresses::Own(addresses) => addresses.to_vec(),
            Addresses::OfEndpoints => vec![own],
            Addresses::Unknown | Addresses::Alias => Vec::new(),
        });
    let mut found: BTreeSet<IpAddr> = addresses.take(SERVERS_MAX).collect();
    if found.is_empty() {
        found.insert(own);
    }
    found
}

/// Writes a record of an address.
fn write_address(text: &mut String, name: &str, address: IpAddr) {
    let family = if address.is_ipv4() { "A" } else { "AAAA" };
    let _ = writeln!(text, "{name} IN {family} {address}");
}

/// Returns the services with an endpoint at an address: their names without `svc` and the apex, and
/// their own addresses. Headless ones are called by that endpoint.
fn servers(cluster: &Cluster, own: IpAddr) -> BTreeMap<String, Vec<IpAddr>> {
    let mut servers = BTreeMap::new();
    for service in cluster.services_at(own) {
        if servers.len() >= SERVERS_MAX {
            break;
        }
        let mut endpoints = Selection::slices_at(service, own);
        let Some((slice, endpoint)) = endpoints.next() else { continue };
        let name = text_of(&service.labels);
        match &service.addresses {
            Addresses::Own(addresses) => _ = servers.insert(name, addresses.to_vec()),
            Addresses::OfEndpoints => {
                let label = slice.with_labels(endpoint, text_of);
                servers.insert(format!("{label}.{name}"), vec![own]);
            }
            Addresses::Unknown | Addresses::Alias => {}
        }
    }
    servers
}

/// Returns labels as text; those of the API have neither dots nor anything else to escape.
pub(crate) fn text_of(labels: &[u8]) -> String {
    let labels: Vec<_> = zonda_wire::name::labels(labels).map(String::from_utf8_lossy).collect();
    labels.join(".")
}
