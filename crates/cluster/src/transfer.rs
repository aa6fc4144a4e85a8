//! All records of a cluster, for transfers of its zones to secondaries.
//!
//! | of | records |
//! |---|---|
//! | a service with addresses | A, AAAA, and SRV of all ports; SRV at the names of its ports |
//! | a headless service | the same of its endpoints; A and AAAA at the name of each |
//! | an address in a reverse zone | PTR |
//!
//! Names of pods, and of the endpoints of services with addresses, are left out, as CoreDNS leaves
//! them out: the former may be any address.

use crate::cluster::{Cluster, namespace_of};
use crate::service::{Addresses, EndpointFilter, Selection, ServiceRecord};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::IpAddr;
use zonda_wire::name::{NAME_BYTES_MAX, is_at_or_below};
use zonda_wire::{Name, Type};
use zonda_zone::Record;

/// Takes a record; an error ends the walk.
type Take<'t, E> = dyn FnMut(Record<'_>) -> Result<(), E> + 't;

impl Cluster {
    /// Calls a function with each record of the zone of services, without the zone's own data,
    /// until it returns an error.
    ///
    /// # Errors
    /// That of the function.
    pub fn each_record<E>(&self, take: &mut Take<'_, E>) -> Result<(), E> {
        self.services.values().try_for_each(|service| match self.has_records(service) {
            true => self.each_record_of(service, take),
            false => Ok(()),
        })
    }

    /// Calls a function with the names of addresses in a reverse zone, until it returns an error.
    ///
    /// # Errors
    /// That of the function.
    pub fn each_pointer_record<E>(&self, zone: &Name, take: &mut Take<'_, E>) -> Result<(), E> {
        let mut addresses = BTreeSet::new();
        for service in self.services.values() {
            if let Addresses::Own(own) = &service.addresses {
                addresses.extend(own);
            }
            let slices = service.slices.iter().flat_map(|it| it.slice.endpoints.iter());
            addresses.extend(slices.map(|endpoint| endpoint.address));
        }
        for address in addresses {
            let Some(owner) = reversed(address) else { continue };
            if !is_at_or_below(owner.as_wire(), zone.as_wire()) {
                continue;
            }
            self.each_pointer(address, |labels, service| {
                let Some(name) = self.name_of(&[labels, service]) else { return Ok(()) };
                let (owner, ttl) = (owner.as_wire(), self.options().ttl);
                take(Record { owner, rtype: Type::PTR, ttl, rdata: &name })
            })?;
        }
        Ok(())
    }

    /// Whether names of a service exist, and have records that the zone's own data lack.
    fn has_records(&self, service: &ServiceRecord) -> bool {
        let is_empty = self.options().ignores_empty_services && !service.has_endpoints();
        self.is_exposed(namespace_of(&service.labels))
            && match &service.addresses {
                Addresses::Unknown | Addresses::Alias => false,
                Addresses::Own(own) if own.is_empty() => {
                    let external = self.options().external.as_ref();
                    external.is_some_and(|external| external.has_endpoints)
                }
                Addresses::Own(_) => !is_empty,
                Addresses::OfEndpoints => service.has_endpoints(),
            }
    }

    /// Calls a function with each record of a service.
    fn each_record_of<E>(&self, service: &ServiceRecord, take: &mut Take<'_, E>) -> Result<(), E> {
        let ttl = self.options().ttl;
        let all = Selection { service, port: None, endpoints: EndpointFilter::All };
        let Some(owner) = self.name_of(&[&service.labels]) else { return Ok(()) };
        match all.own_addresses() {
            Some([]) => return self.each_endpoint_record(service, take),
            Some(own) => own.iter().try_for_each(|it| take_address(&owner, *it, ttl, take))?,
            None => {
                let families = [false, true].into_iter();
                let mut addresses = families.flat_map(|is_v6| all.endpoint_addresses(is_v6));
                addresses.try_for_each(|it| take_address(&owner, it, ttl, take))?;
                all.each_target_address(|labels, address| {
                    match self.name_of(&[labels, &service.labels]) {
                        Some(owner) => take_address(&owner, address, ttl, take),
                        None => Ok(()),
                    }
                })?;
            }
        }
        self.take_targets(&owner, all, take)?;
        let of_slices = service.slices.iter().flat_map(|it| it.slice.ports.iter());
        let own = service.ports.iter().filter(|_| all.own_addresses().is_some());
        let of_slices = of_slices.filter(|_| all.own_addresses().is_none());
        let ports: BTreeSet<(&[u8], &[u8])> = own
            .chain(of_slices)
            .filter(|port| !port.name.is_empty())
            .map(|port| (&*port.name, port.protocol.label()))
            .collect();
        for (port, protocol) in ports {
            let labels = [port, protocol].map(label_of).concat();
            let Some(owner) = self.name_of(&[&labels, &service.labels]) else { continue };
            self.take_targets(&owner, Selection { port: Some([port, protocol]), ..all }, take)?;
        }
        Ok(())
    }

    /// Calls a function with the addresses of endpoints whose service has none to be reached at
    /// from outside.
    fn each_endpoint_record<E>(
        &self,
        service: &ServiceRecord,
        take: &mut Take<'_, E>,
    ) -> Result<(), E> {
        let mut all = BTreeSet::new();
        for slice in service.slices.iter().map(|it| &it.slice) {
            for endpoint in &slice.endpoints {
                let name = slice.with_labels(endpoint, |it| self.name_of(&[it, &service.labels]));
                all.extend(name.map(|name| (name, endpoint.address)));
            }
        }
        let ttl = self.options().ttl;
        all.into_iter().try_for_each(|(owner, address)| take_address(&owner, address, ttl, take))
    }

    /// Calls a function with the SRV records of a name.
    fn take_targets<E>(
        &self,
        owner: &[u8],
        found: Selection<'_>,
        take: &mut Take<'_, E>,
    ) -> Result<(), E> {
        let [priority, weight] = match self.options().is_kube_dns {
            true => [10, 10],
            false => [0, found.weight()],
        };
        let ttl = self.options().ttl;
        found.each_target(|labels, port| {
            let target = self.name_of(&[labels, &found.service.labels]);
            let Some(target) = target else { return Ok(()) };
            let numbers = [priority, weight, port].map(u16::to_be_bytes);
            let rdata = [numbers.as_flattened(), &target].concat();
            take(Record { owner, rtype: Type::SRV, ttl, rdata: &rdata })
        })
    }

    /// Returns the name of these labels in front of the infix and the apex; nothing if it is too
    /// long.
    fn name_of(&self, labels: &[&[u8]]) -> Option<Vec<u8>> {
        let name = [&labels.concat(), self.infix(), self.apex().as_wire()].concat();
        (name.len() <= NAME_BYTES_MAX).then_some(name)
    }
}

/// Returns a text as a label with an underscore in front; an empty one if it is too long for that.
fn label_of(text: &[u8]) -> Vec<u8> {
    match u8::try_from(text.len() + 1) {
        Ok(len @ ..64) => [&[len, b'_'], text].concat(),
        _ => Vec::new(),
    }
}

/// Calls a function with the record of an address.
fn take_address<E>(
    owner: &[u8],
    address: IpAddr,
    ttl: u32,
    take: &mut Take<'_, E>,
) -> Result<(), E> {
    match address {
        IpAddr::V4(it) => take(Record { owner, rtype: Type::A, ttl, rdata: &it.octets() }),
        IpAddr::V6(it) => take(Record { owner, rtype: Type::AAAA, ttl, rdata: &it.octets() }),
    }
}

/// Returns the name of an address in the reverse zones (rfc1035#3.5, rfc3596#2.5).
fn reversed(address: IpAddr) -> Option<Name> {
    let mut text = String::new();
    match address {
        IpAddr::V4(it) => {
            for octet in it.octets().iter().rev() {
                let _ = write!(text, "{octet}."); // never fails
            }
            text.push_str("in-addr.arpa");
        }
        IpAddr::V6(it) => {
            for octet in it.octets().iter().rev() {
                let _ = write!(text, "{:x}.{:x}.", octet & 0xf, octet >> 4);
            }
            text.push_str("ip6.arpa");
        }
    }
    text.parse().ok()
}
