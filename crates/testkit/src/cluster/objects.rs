//! Objects of a cluster in JSON, as manifests have them.

use serde_json::{Value, json};

/// Group and version of services of several clusters.
const MULTICLUSTER: &str = "multicluster.x-k8s.io/v1alpha1";

/// A port of a service or of endpoints.
#[derive(Clone, Copy, Debug)]
pub struct Port {
    /// Name of the port; empty for the only port of a service.
    pub name: &'static str,
    /// Number of the port.
    pub number: u16,
    /// Protocol: `TCP`, `UDP` or `SCTP`.
    pub protocol: &'static str,
}

impl Port {
    /// Makes a port of TCP.
    pub fn tcp(name: &'static str, number: u16) -> Self {
        Self { name, number, protocol: "TCP" }
    }

    /// Makes a port of UDP.
    pub fn udp(name: &'static str, number: u16) -> Self {
        Self { name, number, protocol: "UDP" }
    }

    /// Returns the port as objects have it.
    fn json(self) -> Value {
        let mut port = json!({"port": self.number, "protocol": self.protocol});
        if !self.name.is_empty() {
            port["name"] = json!(self.name);
        }
        port
    }
}

/// Returns ports as objects have them.
fn ports_json(ports: &[Port]) -> Vec<Value> {
    ports.iter().map(|port| port.json()).collect()
}

/// An endpoint of a slice.
#[derive(Clone, Debug, Default)]
pub struct Endpoint {
    /// Addresses of the endpoint, of the slice's family.
    pub addresses: Vec<String>,
    /// Hostname of the endpoint; empty for none.
    pub hostname: String,
    /// Name of the pod behind the endpoint; empty for none.
    pub pod: String,
    /// Topology zone of the endpoint; empty for none.
    pub zone: String,
    /// Whether the endpoint is not ready.
    pub is_unready: bool,
}

impl Endpoint {
    /// Makes a ready endpoint with one address.
    pub fn new(address: &str) -> Self {
        Self { addresses: vec![address.to_owned()], ..Self::default() }
    }

    /// Returns the endpoint with this hostname.
    #[must_use]
    pub fn hostname(self, hostname: &str) -> Self {
        Self { hostname: hostname.to_owned(), ..self }
    }

    /// Returns the endpoint with this pod behind it.
    #[must_use]
    pub fn pod(self, pod: &str) -> Self {
        Self { pod: pod.to_owned(), ..self }
    }

    /// Returns the endpoint in this topology zone.
    #[must_use]
    pub fn zone(self, zone: &str) -> Self {
        Self { zone: zone.to_owned(), ..self }
    }

    /// Returns the endpoint as not ready.
    #[must_use]
    pub fn unready(self) -> Self {
        Self { is_unready: true, ..self }
    }

    /// Returns the endpoint as slices have it.
    fn json(&self, namespace: &str) -> Value {
        let ready = json!({ "ready": !self.is_unready });
        let mut endpoint = json!({"addresses": self.addresses, "conditions": ready});
        if !self.hostname.is_empty() {
            endpoint["hostname"] = json!(self.hostname);
        }
        if !self.pod.is_empty() {
            endpoint["targetRef"] =
                json!({"kind": "Pod", "name": self.pod, "namespace": namespace});
        }
        if !self.zone.is_empty() {
            endpoint["zone"] = json!(self.zone);
        }
        endpoint
    }
}

/// Returns a namespace.
pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// Returns a service with this specification.
fn service(namespace: &str, name: &str, spec: Value) -> Value {
    let metadata = json!({"namespace": namespace, "name": name});
    json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
}

/// Returns a service with a cluster address of each of these families (`IPv4`, `IPv6`), which the
/// server chooses; it needs a port.
pub fn cluster_service(namespace: &str, name: &str, families: &[&str], ports: &[Port]) -> Value {
    let policy = if families.len() > 1 { "RequireDualStack" } else { "SingleStack" };
    let spec =
        json!({"ipFamilies": families, "ipFamilyPolicy": policy, "ports": ports_json(ports)});
    service(namespace, name, spec)
}

/// Returns a service whose addresses are those of its endpoints; it may do without ports.
pub fn headless_service(namespace: &str, name: &str, ports: &[Port]) -> Value {
    let policy = "RequireDualStack";
    let spec = json!({"clusterIP": "None", "ipFamilyPolicy": policy, "ports": ports_json(ports)});
    service(namespace, name, spec)
}

/// Returns a service that is another name.
pub fn external_service(namespace: &str, name: &str, target: &str) -> Value {
    service(namespace, name, json!({"type": "ExternalName", "externalName": target}))
}

/// Returns a slice of a service's endpoints, all of the family (`IPv4`, `IPv6`) of the first
/// one's first address.
pub fn endpoint_slice(
    namespace: &str,
    name: &str,
    service: &str,
    ports: &[Port],
    endpoints: &[Endpoint],
) -> Value {
    let first = endpoints.first().and_then(|endpoint| endpoint.addresses.first());
    let is_ip6 = first.is_some_and(|address| address.contains(':'));
    let endpoints: Vec<Value> = endpoints.iter().map(|one| one.json(namespace)).collect();
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "namespace": namespace,
            "name": name,
            "labels": {"kubernetes.io/service-name": service},
        },
        "addressType": if is_ip6 { "IPv6" } else { "IPv4" },
        "ports": ports_json(ports),
        "endpoints": endpoints,
    })
}

/// Returns a slice as one that came from another cluster for a service import.
pub fn imported_slice(mut slice: Value, cluster: &str) -> Value {
    let service = slice["metadata"]["labels"]["kubernetes.io/service-name"].take();
    slice["metadata"]["labels"] = json!({
        "multicluster.kubernetes.io/service-name": service,
        "multicluster.kubernetes.io/source-cluster": cluster,
    });
    slice
}

/// Returns a pod of one container, to which [`pod_status`] gives addresses.
pub fn pod(namespace: &str, name: &str) -> Value {
    let metadata = json!({"namespace": namespace, "name": name});
    let spec = json!({"containers": [{"name": "main", "image": "example.org/main"}]});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

/// Returns the status of a running pod with these addresses, at most one of each family.
pub fn pod_status(addresses: &[&str]) -> Value {
    let list: Vec<Value> = addresses.iter().map(|address| json!({ "ip": address })).collect();
    json!({"phase": "Running", "podIP": addresses.first(), "podIPs": list})
}

/// Returns the definition of service imports (KEP 1645), without the checks of their fields.
pub fn service_import_definition() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "serviceimports.multicluster.x-k8s.io",
            "annotations": {"api-approved.kubernetes.io": "https://kep.k8s.io/1645"},
        },
        "spec": {
            "group": "multicluster.x-k8s.io",
            "scope": "Namespaced",
            "names": {
                "kind": "ServiceImport",
                "listKind": "ServiceImportList",
                "plural": "serviceimports",
                "singular": "serviceimport",
            },
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

/// Returns an import of a service of other clusters; without addresses it is headless.
pub fn service_import(namespace: &str, name: &str, addresses: &[&str], ports: &[Port]) -> Value {
    let kind = if addresses.is_empty() { "Headless" } else { "ClusterSetIP" };
    json!({
        "apiVersion": MULTICLUSTER,
        "kind": "ServiceImport",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"type": kind, "ips": addresses, "ports": ports_json(ports)},
    })
}
