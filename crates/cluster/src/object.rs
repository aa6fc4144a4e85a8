//! Objects of a cluster, cut down to what names need.
//!
//! A feed decodes an object of the API into one of these and drops it once the snapshot has taken
//! it, so that memory holds no object.

use std::net::IpAddr;
use std::time::SystemTime;

/// The name of an object within its namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectName {
    /// The namespace, as the API spells it.
    pub namespace: String,
    /// The name within the namespace, as the API spells it.
    pub name: String,
}

/// The transport protocol of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// TCP, which a port without a protocol has.
    Tcp,
    /// UDP, as ports of DNS have.
    Udp,
    /// SCTP, which few have.
    Sctp,
}

/// A port of a service or of an endpoint slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The name; empty if the port has none.
    pub name: String,
    /// The transport protocol.
    pub protocol: Protocol,
    /// The port's number; `None` in a slice whose ports are all ports.
    pub number: Option<u16>,
}

/// What kind of addresses a service has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceKind {
    /// Addresses of the service itself (`spec.clusterIPs`), in the API's order; at least one.
    ClusterIp(Vec<IpAddr>),
    /// None: the service's name has the addresses of its ready endpoints (`clusterIP: None`).
    Headless,
    /// The name of something outside (`spec.externalName`), as the API spells it.
    ExternalName(String),
}

/// A service (`v1`, `Service`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The service's namespace and name.
    pub id: ObjectName,
    /// The kind of the service's addresses.
    pub kind: ServiceKind,
    /// The ports, in the API's order.
    pub ports: Vec<Port>,
    /// External addresses: `spec.externalIPs` and the addresses of `status.loadBalancer.ingress`.
    pub external_ips: Vec<IpAddr>,
    /// Host names of `status.loadBalancer.ingress`.
    pub external_names: Vec<String>,
}

/// An endpoint of a slice at one of its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint<'e> {
    /// The address, of the slice's family; an endpoint with several stands there several times.
    pub address: IpAddr,
    /// The host name (`hostname`); empty if the endpoint has none.
    pub hostname: &'e str,
    /// The name of the pod (`targetRef` of kind `Pod`); empty if there is none.
    pub pod: &'e str,
    /// The topology zone (`zone`); empty if the endpoint has none.
    pub zone: &'e str,
    /// Whether the endpoint is ready (`conditions.ready`, true when absent). The API sets it for
    /// all endpoints of a service that publishes addresses that are not ready.
    pub ready: bool,
}

/// The place of a text among those of all endpoints: its start and its end.
type Place = (u32, u32);

/// An endpoint without its texts.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PlacedEndpoint {
    address: IpAddr,
    hostname: Place,
    pod: Place,
    zone: Place,
    ready: bool,
}

/// The endpoints of a slice, in the API's order. Their texts lie in one piece of memory, as a
/// change of a slice brings all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoints {
    texts: String,
    endpoints: Vec<PlacedEndpoint>,
}

impl Endpoints {
    /// No endpoints yet, with room for so many and for so many octets of their texts.
    #[must_use]
    pub fn with_capacity(endpoints: usize, text_bytes: usize) -> Self {
        let (texts, endpoints) = (String::with_capacity(text_bytes), Vec::with_capacity(endpoints));
        Self { texts, endpoints }
    }

    /// Returns the endpoints in their order.
    pub fn iter(&self) -> impl Iterator<Item = Endpoint<'_>> + Clone {
        self.endpoints.iter().map(|it| Endpoint {
            address: it.address,
            hostname: self.text(it.hostname),
            pod: self.text(it.pod),
            zone: self.text(it.zone),
            ready: it.ready,
        })
    }

    /// Returns the text at a place.
    fn text(&self, (start, end): Place) -> &str {
        self.texts.get(start as usize..end as usize).unwrap_or_default()
    }

    /// Adds an endpoint at the end.
    pub fn push(&mut self, endpoint: Endpoint<'_>) {
        // The addresses of an endpoint share its texts, and neighbours are often in one zone.
        let last = self.endpoints.last();
        let last = last.map(|it| (it.hostname, it.pod, it.zone)).unwrap_or_default();
        let placed = PlacedEndpoint {
            address: endpoint.address,
            hostname: self.place(last.0, endpoint.hostname),
            pod: self.place(last.1, endpoint.pod),
            zone: self.place(last.2, endpoint.zone),
            ready: endpoint.ready,
        };
        self.endpoints.push(placed);
    }

    /// Returns the place of a text, which is that of the former endpoint's if they are the same.
    fn place(&mut self, last: Place, text: &str) -> Place {
        if text.is_empty() {
            return (0, 0);
        }
        if self.text(last) == text {
            return last;
        }
        let start = self.texts.len();
        self.texts.push_str(text);
        let place = (u32::try_from(start).ok()).zip(u32::try_from(self.texts.len()).ok());
        place.unwrap_or_default() // an object has a few MiB at most
    }
}

impl<'e> FromIterator<Endpoint<'e>> for Endpoints {
    fn from_iter<I: IntoIterator<Item = Endpoint<'e>>>(endpoints: I) -> Self {
        let mut all = Self::default();
        endpoints.into_iter().for_each(|endpoint| all.push(endpoint));
        all
    }
}

/// A slice of the endpoints of a service (`discovery.k8s.io/v1`, `EndpointSlice`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointSlice {
    /// The slice's namespace and name.
    pub id: ObjectName,
    /// The service's name (label `kubernetes.io/service-name`, or
    /// `multicluster.kubernetes.io/service-name` of imported ones); empty if the slice has none.
    pub service: String,
    /// The cluster that an imported slice comes from (label
    /// `multicluster.kubernetes.io/source-cluster`); empty for slices of this cluster.
    pub source_cluster: String,
    /// Whether the slice has the multicluster label, so that it belongs to a service import.
    pub is_imported: bool,
    /// The ports of every endpoint of the slice.
    pub ports: Vec<Port>,
    /// The endpoints, in the API's order.
    pub endpoints: Endpoints,
    /// When the change that made this version of the slice was triggered (annotation
    /// `endpoints.kubernetes.io/last-change-trigger-time`).
    pub trigger_time: Option<SystemTime>,
}

/// A namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// The namespace's name.
    pub name: String,
    /// Whether annotation `zonda/autopath` is `false`: search paths of its pods are not shortened.
    pub opts_out_of_autopath: bool,
}

/// A pod, of which names need only addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// The pod's namespace and name.
    pub id: ObjectName,
    /// The addresses (`status.podIPs`); empty for a pod that terminates or has none yet.
    pub addresses: Vec<IpAddr>,
    /// Whether the addresses are those of the host (`spec.hostNetwork`), so that a query from one
    /// may be that of any process there.
    pub is_on_host_network: bool,
}

/// A service that is imported from a set of clusters (`multicluster.x-k8s.io/v1alpha1`,
/// `ServiceImport`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceImport {
    /// The import's namespace and name.
    pub id: ObjectName,
    /// The addresses of the set; empty for a headless import.
    pub addresses: Vec<IpAddr>,
    /// Whether the import has no address of its own (`type: Headless`).
    pub is_headless: bool,
    /// The ports, in the API's order.
    pub ports: Vec<Port>,
}
