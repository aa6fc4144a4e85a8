//! Objects in JSON as the API has them, with no more than [`decode`](crate::decode) reads.

use serde::Deserialize;
use serde_json::{Value, json};
use std::net::IpAddr;
use zonda_cluster::object::{
    EndpointSlice, Namespace, ObjectName, Pod, Port, Protocol, Service, ServiceImport, ServiceKind,
};
use zonda_cluster::{Change, Kind};

/// The label that tells the service of a slice.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";
/// The label that tells the service of a slice that is imported.
const IMPORT_LABEL: &str = "multicluster.kubernetes.io/service-name";
/// The label that tells the cluster that a slice comes from.
const CLUSTER_LABEL: &str = "multicluster.kubernetes.io/source-cluster";
/// The annotation by which a namespace keeps its search paths from being shortened.
const AUTOPATH_ANNOTATION: &str = "zonda/autopath";

/// The words for the kinds of objects.
const KINDS: [(Kind, &str); 5] = [
    (Kind::Service, "Service"),
    (Kind::EndpointSlice, "EndpointSlice"),
    (Kind::Namespace, "Namespace"),
    (Kind::Pod, "Pod"),
    (Kind::ServiceImport, "ServiceImport"),
];

/// The kind of an object, as its JSON has it.
#[derive(Deserialize)]
struct KindOf {
    kind: String,
}

/// Returns an object as JSON, with its kind; none for news that an object is gone.
#[must_use]
pub fn object(change: &Change) -> Option<Value> {
    Some(match change {
        Change::Service(object) => service(object),
        Change::EndpointSlice(object) => slice(object),
        Change::Namespace(object) => namespace(object),
        Change::Pod(object) => pod(object),
        Change::ServiceImport(object) => import(object),
        Change::Gone(..) => return None,
    })
}

/// Decodes an object that has its kind in it; none if no names come from objects of that kind.
///
/// # Errors
/// When it is no such object.
pub fn read_object(json: &[u8]) -> Result<Option<Change>, serde_json::Error> {
    let KindOf { kind } = serde_json::from_slice(json)?;
    let kind = KINDS.iter().find(|(_, word)| *word == kind);
    kind.map(|(kind, _)| crate::decode::object(*kind, json).map(|it| it.0)).transpose()
}

/// The name of an object as its metadata.
fn metadata(id: &ObjectName) -> Value {
    json!({ "name": id.name, "namespace": id.namespace })
}

/// The JSON of ports.
fn ports(ports: &[Port]) -> Value {
    let protocol = |port: &Port| match port.protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
        Protocol::Sctp => "SCTP",
    };
    let port = |it: &Port| json!({ "name": it.name, "protocol": protocol(it), "port": it.number });
    ports.iter().map(port).collect()
}

/// The JSON of addresses.
fn addresses(addresses: &[IpAddr]) -> Value {
    addresses.iter().map(IpAddr::to_string).collect()
}

/// The JSON of a service.
fn service(object: &Service) -> Value {
    let mut spec = match &object.kind {
        ServiceKind::ClusterIp(own) => json!({ "clusterIPs": addresses(own) }),
        ServiceKind::Headless => json!({ "clusterIP": "None" }),
        ServiceKind::ExternalName(name) => json!({ "type": "ExternalName", "externalName": name }),
    };
    spec["ports"] = ports(&object.ports);
    let mut json = json!({ "kind": "Service", "metadata": metadata(&object.id), "spec": spec });
    if !object.external_ips.is_empty() {
        json["spec"]["externalIPs"] = addresses(&object.external_ips);
    }
    if !object.external_names.is_empty() {
        let ingress = object.external_names.iter().map(|name| json!({ "hostname": name }));
        json["status"]["loadBalancer"]["ingress"] = ingress.collect();
    }
    json
}

/// The JSON of a slice.
fn slice(object: &EndpointSlice) -> Value {
    let label = match object.is_imported {
        true => IMPORT_LABEL,
        false => SERVICE_LABEL,
    };
    let mut metadata = metadata(&object.id);
    metadata["labels"][label] = object.service.clone().into();
    if !object.source_cluster.is_empty() {
        metadata["labels"][CLUSTER_LABEL] = object.source_cluster.clone().into();
    }
    let endpoints = object.endpoints.iter().map(|endpoint| {
        let mut json = json!({ "addresses": addresses(&[endpoint.address]) });
        if !endpoint.hostname.is_empty() {
            json["hostname"] = endpoint.hostname.into();
        }
        if !endpoint.zone.is_empty() {
            json["zone"] = endpoint.zone.into();
        }
        if !endpoint.pod.is_empty() {
            json["targetRef"] = json!({ "kind": "Pod", "name": endpoint.pod });
        }
        if !endpoint.ready {
            json["conditions"] = json!({ "ready": false });
        }
        json
    });
    let is_v6 = object.endpoints.iter().next().is_some_and(|first| first.address.is_ipv6());
    json!({
        "kind": "EndpointSlice",
        "metadata": metadata,
        "addressType": if is_v6 { "IPv6" } else { "IPv4" },
        "endpoints": endpoints.collect::<Value>(),
        "ports": ports(&object.ports),
    })
}

/// The JSON of a namespace.
fn namespace(object: &Namespace) -> Value {
    let mut json = json!({ "kind": "Namespace", "metadata": { "name": object.name } });
    if object.opts_out_of_autopath {
        json["metadata"]["annotations"][AUTOPATH_ANNOTATION] = "false".into();
    }
    json
}

/// The JSON of a pod.
fn pod(object: &Pod) -> Value {
    let addresses = object.addresses.iter().map(|address| json!({ "ip": address.to_string() }));
    let mut json = json!({
        "kind": "Pod",
        "metadata": metadata(&object.id),
        "status": { "podIPs": addresses.collect::<Value>() },
    });
    if object.is_on_host_network {
        json["spec"] = json!({ "hostNetwork": true });
    }
    json
}

/// The JSON of an import.
fn import(object: &ServiceImport) -> Value {
    let kind = if object.is_headless { "Headless" } else { "ClusterSetIP" };
    json!({
        "kind": "ServiceImport",
        "metadata": metadata(&object.id),
        "spec": {
            "type": kind,
            "ips": addresses(&object.addresses),
            "ports": ports(&object.ports),
        },
    })
}
