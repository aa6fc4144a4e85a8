//! Objects made of a snapshot, from which the same names can be built again.

use crate::address;
use crate::builder::Change;
use crate::cluster::{Cluster, PodNames};
use crate::object::{
    Endpoint, EndpointSlice, Endpoints, Namespace, ObjectName, Pod, Port, Service, ServiceImport,
    ServiceKind,
};
use crate::service::{Addresses, PortRecord, ServiceRecord, SliceRecord};
use std::collections::{BTreeMap, HashMap};
use zonda_wire::name;

impl Cluster {
    /// Calls a function with objects from which a builder with the same options makes the same
    /// names, until the function returns an error. `aliases` are those of
    /// [`Builder::aliases`](crate::Builder::aliases).
    ///
    /// The objects are not those that the snapshot was made of: slices and pods have other names,
    /// and what names do not need is absent.
    ///
    /// # Errors
    /// That of the function.
    pub fn each_object<E>(
        &self,
        aliases: &BTreeMap<String, String>,
        mut call: impl FnMut(Change) -> Result<(), E>,
    ) -> Result<(), E> {
        for namespace in self.namespaces.values() {
            let name = text(&namespace.label);
            let opts_out_of_autopath = namespace.opts_out_of_autopath;
            call(Change::Namespace(Namespace { name, opts_out_of_autopath }))?;
        }
        let is_imported = self.options().is_multicluster;
        let kinds = (is_imported, self.options().external.is_some());
        for service in self.services.values() {
            let Some(id) = id(service) else { continue };
            if let Some(change) = service_object(service, &id, kinds, aliases) {
                call(change)?;
            }
            for (number, slice) in service.slices.iter().enumerate() {
                let slice = slice_object(&slice.slice, &id, number, is_imported);
                call(Change::EndpointSlice(slice))?;
            }
        }
        if self.options().pods == PodNames::Verified {
            return self.each_pod(call);
        }
        Ok(())
    }

    /// Calls a function with a pod for each address of one.
    fn each_pod<E>(&self, mut call: impl FnMut(Change) -> Result<(), E>) -> Result<(), E> {
        let seed = self.frame.seed;
        let namespaces = self.namespaces.values();
        let namespaces: HashMap<u64, String> =
            namespaces.map(|it| (address::hash_label(&it.label, seed), text(&it.label))).collect();
        for (number, pod) in self.pods.values().enumerate() {
            // Without its namespace, a pod has no name.
            let Some(namespace) = namespaces.get(&pod.namespace).cloned() else { continue };
            let id = ObjectName { namespace, name: format!("pod-{number}") };
            let (addresses, is_on_host_network) = (vec![pod.address], pod.is_of_host);
            call(Change::Pod(Pod { id, addresses, is_on_host_network }))?;
        }
        Ok(())
    }
}

/// A label as text.
fn text(label: &[u8]) -> String {
    String::from_utf8_lossy(label).into_owned()
}

/// The namespace and the name of a service.
fn id(service: &ServiceRecord) -> Option<ObjectName> {
    let mut labels = name::labels(&service.labels).map(text);
    let (name, namespace) = (labels.next()?, labels.next()?);
    Some(ObjectName { namespace, name })
}

/// The object of a service, or of an import of one; none if only slices of it are known.
fn service_object(
    service: &ServiceRecord,
    id: &ObjectName,
    (is_imported, is_external): (bool, bool),
    aliases: &BTreeMap<String, String>,
) -> Option<Change> {
    let (id, ports) = (id.clone(), ports(&service.ports));
    let is_headless = service.addresses == Addresses::OfEndpoints;
    if is_imported {
        let addresses = match &service.addresses {
            Addresses::Unknown => return None,
            Addresses::Own(own) => own.to_vec(),
            Addresses::OfEndpoints | Addresses::Alias => Vec::new(),
        };
        let import = ServiceImport { id, addresses, is_headless, ports };
        return Some(Change::ServiceImport(import));
    }
    let (external_ips, external_names) = (Vec::new(), Vec::new());
    let kind = match &service.addresses {
        Addresses::Unknown => return None,
        Addresses::Own(own) if is_external => {
            let (kind, external_ips) = (ServiceKind::ClusterIp(Vec::new()), own.to_vec());
            return Some(Change::Service(Service {
                id,
                kind,
                ports,
                external_ips,
                external_names,
            }));
        }
        Addresses::Alias if is_external => {
            let target = aliases.get(&crate::data::text_of(&service.labels))?.clone();
            let (kind, external_names) = (ServiceKind::ClusterIp(Vec::new()), vec![target]);
            return Some(Change::Service(Service {
                id,
                kind,
                ports,
                external_ips,
                external_names,
            }));
        }
        Addresses::Own(own) => ServiceKind::ClusterIp(own.to_vec()),
        Addresses::OfEndpoints => ServiceKind::Headless,
        Addresses::Alias => {
            ServiceKind::ExternalName(aliases.get(&crate::data::text_of(&service.labels))?.clone())
        }
    };
    Some(Change::Service(Service { id, kind, ports, external_ips, external_names }))
}

/// The object of the slice of a service with a number.
fn slice_object(
    slice: &SliceRecord,
    service: &ObjectName,
    number: usize,
    is_imported: bool,
) -> EndpointSlice {
    let mut endpoints = Endpoints::default();
    for endpoint in &slice.endpoints {
        let (hostname, zone) = (text(slice.hostname(endpoint)), text(slice.zone(endpoint)));
        let (address, hostname, zone) = (endpoint.address, &*hostname, &*zone);
        endpoints.push(Endpoint { address, hostname, pod: "", zone, ready: true });
    }
    let name = format!("{}-{number}", service.name);
    EndpointSlice {
        id: ObjectName { namespace: service.namespace.clone(), name },
        service: service.name.clone(),
        source_cluster: text(&slice.cluster),
        is_imported,
        ports: ports(&slice.ports),
        endpoints,
        trigger_time: None,
    }
}

/// The objects of ports.
fn ports(records: &[PortRecord]) -> Vec<Port> {
    let port = |record: &PortRecord| Port {
        name: text(&record.name),
        protocol: record.protocol,
        number: record.number,
    };
    records.iter().map(port).collect()
}
