//! The names of a cluster below one apex, and what they answer.
//!
//! | name below the apex | answers |
//! |---|---|
//! | `SERVICE.NAMESPACE.svc` | addresses of the service or of its endpoints; SRV of all ports |
//! | `_PORT._PROTOCOL.SERVICE.NAMESPACE.svc` | these, of one port |
//! | `ENDPOINT.SERVICE.NAMESPACE.svc` | the addresses of the endpoints of that label |
//! | `ENDPOINT.CLUSTER.SERVICE.NAMESPACE.svc` | likewise, in a set of clusters |
//! | `ZONE.pin._zone.SERVICE.NAMESPACE.svc` | endpoints of a topology zone; `prefer`: or else all |
//! | `1-2-3-4.NAMESPACE.pod` | the address in the label |
//!
//! Names of external addresses lie below `SERVICE.NAMESPACE`, without `svc`.
//!
//! # Invariants
//! - A snapshot never changes; its clones share their memory.
//! - What stands in the zone's own data (the apex, `dns-version`, `ns.dns`, services that are
//!   aliases) is left to those.

use crate::address::{self, Reversed};
use crate::search::{self, NamespaceRecord};
use crate::service::{Addresses, EndpointFilter, Selection, ServiceRecord};
use crate::table::Table;
use crate::versions::Versions;
use std::net::IpAddr;
use std::sync::Arc;
use zonda_wire::Name;
use zonda_zone::{HashSeed, LookupName};

/// An address of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PodAddress {
    /// The hash of the namespace's label.
    pub namespace: u64,
    /// Address of the pod, or of its host.
    pub address: IpAddr,
    /// Whether the address is that of the pod's host.
    pub is_of_host: bool,
}

/// Which names of pods exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodNames {
    /// No name of a pod.
    #[default]
    Disabled,
    /// Every address in a namespace that exists.
    Insecure,
    /// The addresses of pods that exist.
    Verified,
}

/// How services have names by which they are found from outside of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalNames {
    /// The label below which names of the zone's servers lie, in lower case.
    pub server_label: String,
    /// Whether services without external addresses have the names of their endpoints.
    pub has_endpoints: bool,
}

/// What decides which names there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The TTL of all answers, seconds.
    pub ttl: u32,
    /// Which names of pods exist.
    pub pods: PodNames,
    /// Whether a service with addresses of its own does not exist while no endpoint is ready.
    pub ignores_empty_services: bool,
    /// Whether endpoints without a host name are called by their pods.
    pub has_pod_labels: bool,
    /// Whether names of topology zones exist.
    pub has_zones: bool,
    /// Whether services are imported from a set of clusters.
    pub is_multicluster: bool,
    /// How services have their external addresses in place of those in the cluster, if they do.
    pub external: Option<ExternalNames>,
    /// The namespaces whose names exist; all of them if the list is empty.
    pub namespaces: Vec<String>,
    /// Whether names of services exist only in namespaces that are known, because only some are
    /// followed.
    pub exposes_known_namespaces: bool,
    /// Whether answers are those of kube-dns: SRV with priority and weight 10, and names of
    /// addresses only for services and endpoints with a host name.
    pub is_kube_dns: bool,
    /// The search domains of hosts, if the search paths of pods are followed.
    pub search_domains: Option<Vec<Name>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ttl: 5,
            pods: PodNames::Disabled,
            ignores_empty_services: false,
            has_pod_labels: false,
            has_zones: false,
            is_multicluster: false,
            external: None,
            namespaces: Vec::new(),
            exposes_known_namespaces: false,
            is_kube_dns: false,
            search_domains: None,
        }
    }
}

/// What all snapshots of a cluster have in common.
#[derive(Debug)]
pub(crate) struct Frame {
    /// The apex in lower case.
    pub apex: Name,
    /// The number of labels of the apex.
    pub apex_labels: usize,
    /// The seed of all hashes.
    pub seed: HashSeed,
    /// What decides which names there are.
    pub options: Options,
    /// The domains that follow the first one of search paths; empty if those are not followed.
    pub search_path: Vec<Name>,
}

/// Values of a shard of the services, which each query reads some of.
const SERVICES_LOAD: usize = 4;
/// Values of a shard of what few queries read.
const LOAD: usize = 32;

/// The names of a cluster at one moment.
#[derive(Clone)]
pub struct Cluster {
    /// What all snapshots have in common.
    pub(crate) frame: Arc<Frame>,
    /// The namespaces, by the hashes of their labels.
    pub(crate) namespaces: Table<NamespaceRecord, LOAD>,
    /// The services, by the hashes of their names.
    pub(crate) services: Table<Arc<ServiceRecord>, SERVICES_LOAD>,
    /// The hashes of services, by those of their addresses.
    pub(crate) addresses: Table<u64, LOAD>,
    /// The namespaces of pods and their addresses, by the hashes of the addresses.
    pub(crate) pods: Table<PodAddress, LOAD>,
    /// The versions of what names of services answer.
    pub(crate) versions: Versions,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub enum ClusterMatch<'n> {
    /// The zone's own data have the name.
    InData,
    /// The name exists, and has no records.
    Empty,
    /// The name does not exist.
    Missing,
    /// The name stands for a service, or for a part of it.
    Service(Selection<'n>),
    /// The name stands for an address.
    Address(IpAddr),
}

/// The names of an address.
#[derive(Clone, Copy, Debug)]
pub enum AddressMatch {
    /// The name stands for an address that services have.
    Address(IpAddr),
    /// Names below it may exist.
    Empty,
    /// The zone's own data may have the name: no address or network can have it.
    InData,
    /// The address has no name.
    Missing,
}

impl Cluster {
    /// A cluster without any object.
    #[must_use]
    pub fn new(apex: &Name, seed: HashSeed, options: Options) -> Self {
        let apex = apex.to_lowercase();
        let hosts = options.search_domains.as_deref();
        let search_path = hosts.map(|hosts| search::domains(&apex, hosts)).unwrap_or_default();
        let frame = Frame { apex_labels: apex.label_count(), apex, seed, options, search_path };
        Self {
            frame: Arc::new(frame),
            namespaces: Table::default(),
            services: Table::default(),
            addresses: Table::default(),
            pods: Table::default(),
            versions: Versions::default(),
        }
    }

    /// Returns the apex in lower case.
    #[inline]
    #[must_use]
    pub fn apex(&self) -> &Name {
        &self.frame.apex
    }

    /// Returns the seed of all hashes.
    #[must_use]
    pub fn seed(&self) -> HashSeed {
        self.frame.seed
    }

    /// Returns what decides which names there are.
    #[inline]
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.frame.options
    }

    /// Returns the numbers of services (those included of which only slices are known), of
    /// namespaces, of addresses with names, and of pods.
    #[must_use]
    pub fn counts(&self) -> [usize; 4] {
        let [services, namespaces] = [self.services.len(), self.namespaces.len()];
        [services, namespaces, self.addresses.len(), self.pods.len()]
    }

    /// Whether names of a namespace exist.
    fn has_namespace(&self, label: &[u8]) -> bool {
        self.is_known(label) && self.is_exposed(label)
    }

    /// Whether a namespace exists.
    fn is_known(&self, label: &[u8]) -> bool {
        let hash = address::hash_label(label, self.frame.seed);
        self.namespaces.all(hash).any(|it| *it.label == *label)
    }

    /// Whether names of a namespace may exist.
    pub(crate) fn is_exposed(&self, label: &[u8]) -> bool {
        let options = &self.frame.options;
        let is_listed = |it: &String| it.as_bytes() == label;
        (options.namespaces.is_empty() || options.namespaces.iter().any(is_listed))
            && (!options.exposes_known_namespaces || self.is_known(label))
    }

    /// The labels between the namespace of a service and the apex, in wire form.
    #[inline]
    #[must_use]
    pub fn infix(&self) -> &'static [u8] {
        if self.frame.options.external.is_some() { b"" } else { b"\x03svc" }
    }

    /// The label of a name at which the service's name begins, if it is long enough.
    fn service_label(&self, name: &LookupName) -> Option<usize> {
        let labels = if self.frame.options.external.is_some() { 2 } else { 3 };
        name.label_count().checked_sub(self.frame.apex_labels + labels)
    }

    /// Brings what a name is looked up by into the processor's cache.
    #[inline(never)] // most servers have no cluster, and their path would be longer
    #[must_use]
    pub fn touch(&self, name: &LookupName) -> u64 {
        self.service_label(name).map_or(0, |label| self.services.touch(name.hash(label)))
    }

    /// Brings the service of a name into the processor's cache, with its labels and addresses.
    #[inline(never)] // most servers have no cluster, and their path would be longer
    #[must_use]
    pub fn touch_service(&self, name: &LookupName) -> u64 {
        let service = self.service_label(name).and_then(|label| self.service(name.hash(label)));
        service.map_or(0, |service| {
            let label = service.labels.first().map_or(0, |octet| u64::from(*octet));
            let Addresses::Own(own) = &service.addresses else { return label };
            label + own.first().map_or(0, |address| u64::from(address.is_ipv6()))
        })
    }

    /// Whether what names of services answer depends on the service alone, and on the zone's own
    /// data, so that a reply is right while its [version](Self::version_of) stays.
    #[inline]
    #[must_use]
    pub fn has_versions(&self) -> bool {
        !self.frame.options.exposes_known_namespaces
    }

    /// Whether the answer to a name that does not exist depends on the one service that the name is
    /// below or would be, and on the zone's own data: no search path leads to other names.
    #[must_use]
    pub fn is_denied_by_service(&self, name: &LookupName) -> bool {
        let infix = self.infix();
        let Some(label) = self.service_label(name) else { return false };
        let is_of_services = infix.is_empty() || name.suffix(label + 2).starts_with(infix);
        is_of_services && self.has_versions() && self.frame.search_path.is_empty()
    }

    /// Returns the version of what a name at or below that of a service answers: of its records or,
    /// if it has none, of the denial. A version stays until the answer may be another one, and no
    /// other service or cluster ever has it. None if the name is too short for that of a service.
    #[inline]
    #[must_use]
    pub fn version_of(&self, name: &LookupName, is_denial: bool) -> Option<u64> {
        let hash = name.hash(self.service_label(name)?);
        let versions = &self.versions;
        Some(if is_denial { versions.of_denial(hash) } else { versions.of_records(hash) })
    }

    /// Puts a service into the table, or removes it if nothing is known of it.
    pub(crate) fn set_service(&mut self, hash: u64, service: ServiceRecord) {
        match service.is_unknown() {
            true => self.services.remove(hash, |_| true),
            false => self.services.put(hash, Arc::new(service), |_| true),
        }
        self.versions.change(hash);
    }

    /// The service whose name has a hash, if there is one.
    #[inline]
    fn service(&self, hash: u64) -> Option<&ServiceRecord> {
        self.services.all(hash).next().map(|service| &**service)
    }

    /// Looks up a name at or below the apex.
    #[inline]
    #[must_use]
    pub fn find<'n>(&'n self, name: &'n LookupName) -> ClusterMatch<'n> {
        let Some(below) = name.label_count().checked_sub(self.frame.apex_labels) else {
            return ClusterMatch::Missing;
        };
        if below == 0 {
            return ClusterMatch::InData;
        }
        if let Some(external) = &self.frame.options.external {
            return match name.label(below - 1) {
                label if *label == *external.server_label.as_bytes() => ClusterMatch::InData,
                _ => self.find_service(name, below),
            };
        }
        match name.label(below - 1) {
            b"svc" => self.find_service(name, below - 1),
            b"pod" => self.find_pod(name, below - 1),
            _ => ClusterMatch::InData,
        }
    }

    /// Looks up a name of `below` labels below `svc`, or below the apex of external names.
    #[inline]
    fn find_service<'n>(&'n self, name: &'n LookupName, below: usize) -> ClusterMatch<'n> {
        match below {
            0 => return ClusterMatch::Empty,
            1 if self.has_namespace(name.label(0)) => return ClusterMatch::Empty,
            1 => return ClusterMatch::Missing,
            _ => {}
        }
        let Some(service) = self.service(name.hash(below - 2)) else {
            return ClusterMatch::Missing;
        };
        let is_it = name.suffix(below - 2).starts_with(&service.labels);
        if !is_it || !self.is_exposed(name.label(below - 1)) {
            return ClusterMatch::Missing;
        }
        let is_empty = self.frame.options.ignores_empty_services && !service.has_endpoints();
        match &service.addresses {
            Addresses::Unknown => return ClusterMatch::Missing,
            // Ports of a service that is called from outside by a name stand in the data, too.
            Addresses::Alias if below == 2 || self.frame.options.external.is_some() => {
                return ClusterMatch::InData;
            }
            Addresses::Alias => return ClusterMatch::Missing,
            Addresses::Own(_) if is_empty => return ClusterMatch::Missing,
            // It is there for the names of its endpoints only.
            Addresses::Own(own) if own.is_empty() && !service.has_endpoints() => {
                return ClusterMatch::Missing;
            }
            Addresses::Own(_) | Addresses::OfEndpoints => {}
        }
        self.find_in_service(service, name, below - 2)
    }

    /// Looks up a name of a service that has `labels` labels in front of the service's.
    #[inline]
    fn find_in_service<'n>(
        &'n self,
        service: &'n ServiceRecord,
        name: &'n LookupName,
        labels: usize,
    ) -> ClusterMatch<'n> {
        let options = &self.frame.options;
        let is_port = |label: usize| name.label(label).first() == Some(&b'_');
        let (port, endpoints) = match labels {
            0 => (None, EndpointFilter::All),
            1 => (None, EndpointFilter::of_label(name.label(0))),
            2 if options.is_multicluster && !is_port(0) && !is_port(1) => {
                (None, EndpointFilter::LabelInCluster(name.label(0), name.label(1)))
            }
            2 => (Some([name.label(0), name.label(1)]), EndpointFilter::All),
            _ => return self.find_in_zone(service, name, labels),
        };
        let is_label_of_cluster = options.is_multicluster && labels == 1;
        let is_hidden = labels == 1
            && options.external.as_ref().is_some_and(|external| {
                let has_own = matches!(&service.addresses, Addresses::Own(own) if !own.is_empty());
                has_own || !external.has_endpoints
            });
        let found = Selection { service, port, endpoints };
        if !is_label_of_cluster && !is_hidden && found.exists() {
            return ClusterMatch::Service(found);
        }
        // Names of ports lie below (rfc8020#2).
        let is_protocol = labels == 1 && is_port(0) && has_protocol(service, &name.label(0)[1..]);
        if is_protocol { ClusterMatch::Empty } else { ClusterMatch::Missing }
    }

    /// Looks up the endpoints of a service in a topology zone, whose name may have several labels.
    fn find_in_zone<'n>(
        &'n self,
        service: &'n ServiceRecord,
        name: &'n LookupName,
        labels: usize,
    ) -> ClusterMatch<'n> {
        let is_headless = service.addresses == Addresses::OfEndpoints;
        let is_zonal = self.frame.options.has_zones && is_headless;
        if !is_zonal || name.label(labels - 1) != b"_zone" || !service.has_endpoints() {
            return ClusterMatch::Missing;
        }
        let is_preference = match name.label(labels - 2) {
            b"pin" => false,
            b"prefer" => true,
            _ => return ClusterMatch::Missing,
        };
        let whole = name.suffix(0);
        let zone = &whole[..whole.len() - name.suffix(labels - 2).len()];
        let endpoints = EndpointFilter::Zone(zone);
        let found = Selection { service, port: None, endpoints };
        match found.exists() {
            true => ClusterMatch::Service(found),
            false if is_preference => {
                ClusterMatch::Service(Selection { endpoints: EndpointFilter::All, ..found })
            }
            false => ClusterMatch::Empty,
        }
    }

    /// Looks up a name below `pod`, which is its label number `below`.
    fn find_pod<'n>(&'n self, name: &'n LookupName, below: usize) -> ClusterMatch<'n> {
        match below {
            0 => return ClusterMatch::Empty,
            1 if self.has_namespace(name.label(0)) => return ClusterMatch::Empty,
            2 => {}
            _ => return ClusterMatch::Missing,
        }
        let namespace = name.label(1);
        let pod = address::from_dashed(name.label(0));
        let Some(pod) = pod.filter(|_| self.has_namespace(namespace)) else {
            return ClusterMatch::Missing;
        };
        let exists = match self.frame.options.pods {
            PodNames::Disabled => false,
            PodNames::Insecure => true,
            PodNames::Verified => {
                let (seed, namespace) =
                    (self.frame.seed, address::hash_label(namespace, self.frame.seed));
                let mut pods = self.pods.all(address::hash(pod, seed));
                pods.any(|it| (it.namespace, it.address) == (namespace, pod))
            }
        };
        if exists { ClusterMatch::Address(pod) } else { ClusterMatch::Missing }
    }

    /// Looks up a name below `in-addr.arpa` or `ip6.arpa`.
    #[must_use]
    pub fn find_address(&self, name: &LookupName) -> AddressMatch {
        match address::from_reversed(name) {
            Reversed::Address(found) => {
                let has_name = self.each_pointer(found, |_, _| Err(())).is_err();
                if has_name { AddressMatch::Address(found) } else { AddressMatch::Missing }
            }
            Reversed::Network => AddressMatch::Empty,
            Reversed::Nothing => AddressMatch::InData,
        }
    }

    /// Returns the services that have an address, or an endpoint there.
    pub(crate) fn services_at(
        &self,
        found: IpAddr,
    ) -> impl Iterator<Item = &ServiceRecord> + Clone {
        let services = self.addresses.all(address::hash(found, self.frame.seed));
        let services = services.filter_map(|hash| self.service(*hash));
        services.filter(|it| {
            it.addresses != Addresses::Unknown && self.is_exposed(namespace_of(&it.labels))
        })
    }

    /// Calls a function with the names of an address until it returns an error: the labels of an
    /// endpoint in wire form, empty for the service itself, and those of the service and its
    /// namespace.
    /// The name goes on with [`infix`](Self::infix) and the apex. That of a service excludes those
    /// of endpoints; an external address has the names of all its services.
    ///
    /// # Errors
    /// That of the function.
    pub fn each_pointer<E>(
        &self,
        found: IpAddr,
        mut call: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let services = self.services_at(found);
        let has_own = |it: &ServiceRecord| match &it.addresses {
            Addresses::Own(own) => own.contains(&found),
            _ => false,
        };
        if self.frame.options.external.is_some() {
            let mut owners = services.filter(|service| has_own(service));
            return owners.try_for_each(|service| call(&[], &service.labels));
        }
        let own = services.clone().find(|service| has_own(service));
        if let Some(service) = own {
            return call(&[], &service.labels);
        }
        for service in services {
            for (slice, endpoint) in Selection::slices_at(service, found) {
                if self.frame.options.is_kube_dns && slice.hostname(endpoint).is_empty() {
                    continue;
                }
                slice.with_labels(endpoint, |labels| call(labels, &service.labels))?;
            }
        }
        Ok(())
    }
}

/// Whether any port of a service has a protocol.
fn has_protocol(service: &ServiceRecord, label: &[u8]) -> bool {
    let of_slices = service.slices.iter().flat_map(|it| it.slice.ports.iter());
    let mut named = service.ports.iter().chain(of_slices).filter(|port| !port.name.is_empty());
    named.any(|port| port.protocol.label() == label)
}

/// Returns the label of the namespace among the labels of a service.
pub(crate) fn namespace_of(labels: &[u8]) -> &[u8] {
    let first = labels.first().map_or(0, |len| usize::from(*len));
    labels.get(first + 2..).unwrap_or_default()
}
