//! The own data of the zones of a cluster, as the text of a master file: the apex, the version of
//! the specification, and services that are aliases.

use crate::builder::Builder;
use crate::cluster::Cluster;
use crate::service::{Addresses, Selection};
use std::collections::BTreeMap;
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
        for (service, target) in self.aliases() {
            let owner = format!("{service}.svc.{apex}").parse::<Name>();
            let target = target.trim_end_matches('.');
            let is_address = target.parse::<IpAddr>().is_ok();
            if let (Ok(owner), Ok(target), false) = (owner, target.parse::<Name>(), is_address) {
                let _ = writeln!(text, "{owner} IN CNAME {target}");
            }
        }
        text
    }
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
