//! Objects of the API in JSON, decoded into those that names need.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};
use zonda_cluster::object::{
    Endpoint, EndpointSlice, Namespace, ObjectName, Pod, Port, Protocol, Service, ServiceImport,
    ServiceKind,
};
use zonda_cluster::{Change, Kind};

/// The label that tells the service of a slice.
pub(crate) const SERVICE_LABEL: &str = "kubernetes.io/service-name";
/// The label that tells the service of a slice that is imported.
pub(crate) const IMPORT_LABEL: &str = "multicluster.kubernetes.io/service-name";
/// The label that tells the cluster that a slice comes from.
pub(crate) const CLUSTER_LABEL: &str = "multicluster.kubernetes.io/source-cluster";
/// The annotation that tells when a change of a slice was triggered.
const TRIGGER_ANNOTATION: &str = "endpoints.kubernetes.io/last-change-trigger-time";
/// The annotation of the bookmark behind the objects of a streamed list.
const END_ANNOTATION: &str = "k8s.io/initial-events-end";
/// The annotation by which a namespace keeps its search paths from being shortened.
pub(crate) const AUTOPATH_ANNOTATION: &str = "zonda/autopath";

/// What every object has.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Metadata {
    name: String,
    namespace: String,
    /// The version of the object, or of the list.
    pub resource_version: String,
    /// What asks for the next page of a list; empty on the last.
    #[serde(rename = "continue")]
    pub continuation: String,
    labels: Option<HashMap<String, String>>,
    annotations: Option<HashMap<String, String>>,
    deletion_timestamp: Option<String>,
}

impl Metadata {
    /// The name of the object.
    fn id(&self) -> ObjectName {
        ObjectName { namespace: self.namespace.clone(), name: self.name.clone() }
    }

    /// The value of a label; an empty one if there is none.
    fn label(&self, label: &str) -> &str {
        self.labels.as_ref().and_then(|labels| labels.get(label)).map_or("", |value| value)
    }

    /// The value of an annotation, if there is one.
    fn annotation(&self, annotation: &str) -> Option<&str> {
        Some(self.annotations.as_ref()?.get(annotation)?)
    }
}

#[derive(Deserialize)]
struct Object<S, T = IgnoredStatus> {
    metadata: Metadata,
    #[serde(default)]
    spec: S,
    #[serde(default)]
    status: T,
}

#[derive(Default, Deserialize)]
struct IgnoredStatus {}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ServiceSpec {
    #[serde(rename = "type")]
    kind: String,
    #[serde(rename = "clusterIP")]
    cluster_ip: String,
    #[serde(rename = "clusterIPs")]
    cluster_ips: Option<Vec<String>>,
    #[serde(rename = "externalIPs")]
    external_ips: Option<Vec<String>>,
    external_name: String,
    ports: Option<Vec<JsonPort>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ServiceStatus {
    load_balancer: LoadBalancer,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LoadBalancer {
    ingress: Option<Vec<Ingress>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Ingress {
    ip: String,
    hostname: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JsonPort {
    name: Option<String>,
    protocol: Option<String>,
    port: Option<u16>,
}

impl From<JsonPort> for Port {
    fn from(port: JsonPort) -> Self {
        let protocol = match port.protocol.as_deref() {
            Some("UDP") => Protocol::Udp,
            Some("SCTP") => Protocol::Sctp,
            _ => Protocol::Tcp,
        };
        Self { name: port.name.unwrap_or_default(), protocol, number: port.port }
    }
}

/// The ports of an object.
fn ports(ports: Option<Vec<JsonPort>>) -> Vec<Port> {
    ports.into_iter().flatten().map(Port::from).collect()
}

/// The texts that are addresses.
fn addresses(texts: Option<Vec<String>>) -> Vec<IpAddr> {
    texts.into_iter().flatten().filter_map(|text| text.parse().ok()).collect()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonSlice {
    metadata: Metadata,
    #[serde(default)]
    address_type: String,
    #[serde(default)]
    endpoints: Option<Vec<JsonEndpoint>>,
    #[serde(default)]
    ports: Option<Vec<JsonPort>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct JsonEndpoint {
    addresses: Option<Vec<String>>,
    conditions: Option<Conditions>,
    hostname: Option<String>,
    target_ref: Option<TargetRef>,
    zone: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Conditions {
    ready: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TargetRef {
    kind: String,
    name: String,
}

#[derive(Default, Deserialize)]
struct NoSpec {}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodStatus {
    phase: String,
    #[serde(rename = "podIP")]
    pod_ip: String,
    #[serde(rename = "podIPs")]
    pod_ips: Option<Vec<PodAddress>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodAddress {
    ip: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ImportSpec {
    #[serde(rename = "type")]
    kind: String,
    ips: Option<Vec<String>>,
    ports: Option<Vec<JsonPort>>,
}

/// An object as far as it could be decoded.
#[derive(Debug)]
pub enum Decoded {
    /// The object itself, or that it is gone.
    Change(Box<Change>),
    /// The name of an object of which more cannot be decoded, and why.
    Undecodable(ObjectName, String),
}

/// Decodes an object of a kind; one with a name and with other fields that are wrong fails alone.
///
/// # Errors
/// When it has no metadata of an object, so that what sends it is no API server.
pub fn any_object(kind: Kind, json: &[u8]) -> Result<Decoded, serde_json::Error> {
    let error = match object(kind, json) {
        Ok(change) => return Ok(Decoded::Change(Box::new(change))),
        Err(error) => error,
    };
    let Ok(OnlyId { metadata }) = serde_json::from_slice::<OnlyId>(json) else { return Err(error) };
    let id = ObjectName { namespace: metadata.namespace, name: metadata.name };
    Ok(Decoded::Undecodable(id, error.to_string()))
}

/// The name of an object, whatever else its metadata have.
#[derive(Deserialize)]
struct OnlyId {
    metadata: IdMetadata,
}

/// The part of the metadata that names an object.
#[derive(Deserialize)]
struct IdMetadata {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default, rename = "resourceVersion")]
    resource_version: String,
}

/// Decodes an object of a kind.
///
/// # Errors
/// When it is no such object.
pub fn object(kind: Kind, json: &[u8]) -> Result<Change, serde_json::Error> {
    Ok(match kind {
        Kind::Service => Change::Service(service(serde_json::from_slice(json)?)),
        Kind::EndpointSlice => Change::EndpointSlice(slice(serde_json::from_slice(json)?)),
        Kind::Namespace => {
            let object: Object<NoSpec> = serde_json::from_slice(json)?;
            let opts_out_of_autopath =
                object.metadata.annotation(AUTOPATH_ANNOTATION) == Some("false");
            Change::Namespace(Namespace { name: object.metadata.name, opts_out_of_autopath })
        }
        Kind::Pod => Change::Pod(pod(serde_json::from_slice(json)?)),
        Kind::ServiceImport => {
            let object: Object<ImportSpec> = serde_json::from_slice(json)?;
            let is_headless = object.spec.kind == "Headless";
            Change::ServiceImport(ServiceImport {
                id: object.metadata.id(),
                addresses: addresses(object.spec.ips),
                is_headless,
                ports: ports(object.spec.ports),
            })
        }
    })
}

/// Decodes a service.
fn service(object: Object<ServiceSpec, ServiceStatus>) -> Service {
    let (id, spec) = (object.metadata.id(), object.spec);
    let own = spec.cluster_ips.filter(|own| !own.is_empty());
    let own = own.unwrap_or_else(|| vec![spec.cluster_ip]);
    let kind = match &*spec.kind {
        "ExternalName" => ServiceKind::ExternalName(spec.external_name),
        _ if own.iter().any(|address| address == "None") => ServiceKind::Headless,
        _ => ServiceKind::ClusterIp(addresses(Some(own))),
    };
    let ingress = object.status.load_balancer.ingress.unwrap_or_default();
    let mut external_ips = addresses(spec.external_ips);
    external_ips.extend(ingress.iter().filter_map(|it| it.ip.parse::<IpAddr>().ok()));
    let names = ingress.into_iter().map(|it| it.hostname).filter(|name| !name.is_empty());
    let external_names = names.collect();
    Service { id, kind, ports: ports(spec.ports), external_ips, external_names }
}

/// Decodes a slice.
fn slice(object: JsonSlice) -> EndpointSlice {
    let metadata = &object.metadata;
    let is_imported = !metadata.label(IMPORT_LABEL).is_empty();
    let service = metadata.label(if is_imported { IMPORT_LABEL } else { SERVICE_LABEL });
    let is_v6 = object.address_type == "IPv6";
    let has_addresses = matches!(&*object.address_type, "IPv4" | "IPv6");
    let endpoint = |endpoint: JsonEndpoint| {
        let mut addresses = addresses(endpoint.addresses);
        addresses.retain(|address| has_addresses && address.is_ipv6() == is_v6);
        let pod = endpoint.target_ref.filter(|target| target.kind == "Pod");
        Endpoint {
            addresses,
            hostname: endpoint.hostname.unwrap_or_default(),
            pod: pod.map_or_else(String::new, |pod| pod.name),
            zone: endpoint.zone.unwrap_or_default(),
            ready: endpoint.conditions.unwrap_or_default().ready.unwrap_or(true),
        }
    };
    EndpointSlice {
        id: metadata.id(),
        service: service.to_owned(),
        source_cluster: metadata.label(CLUSTER_LABEL).to_owned(),
        is_imported,
        ports: ports(object.ports),
        endpoints: object.endpoints.into_iter().flatten().map(endpoint).collect(),
        trigger_time: metadata.annotation(TRIGGER_ANNOTATION).and_then(time),
    }
}

/// Decodes a pod. One that has ended or terminates has no name.
fn pod(object: Object<NoSpec, PodStatus>) -> Pod {
    let (id, status) = (object.metadata.id(), object.status);
    let has_ended = matches!(&*status.phase, "Succeeded" | "Failed");
    let is_gone = has_ended || object.metadata.deletion_timestamp.is_some();
    let several = status.pod_ips.filter(|several| !several.is_empty());
    let several = several.map(|it| it.into_iter().map(|address| address.ip).collect());
    let texts = several.unwrap_or_else(|| vec![status.pod_ip]);
    let addresses = if is_gone { Vec::new() } else { addresses(Some(texts)) };
    Pod { id, addresses }
}

/// Reads a time of rfc3339 in UTC.
pub fn time(text: &str) -> Option<SystemTime> {
    let (date, rest) = text.strip_suffix('Z')?.split_once('T')?;
    let number = |text: &str| text.parse::<u64>().ok();
    let mut date = date.split('-').map(number);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (clock, fraction) = rest.split_once('.').unwrap_or((rest, "0"));
    let mut clock = clock.split(':').map(number);
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let is_sound = (1970..3000).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 61;
    if !is_sound {
        return None;
    }
    // Days since 1970, of a year that begins with March (proleptic Gregorian calendar).
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    let days = year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - 719_468;
    let nanos: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second;
    Some(SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos.parse().ok()?))
}

/// An event of a watch.
#[derive(Debug)]
pub enum WatchEvent {
    /// A change of an object, and the version of all objects after it.
    Object(Decoded, String),
    /// The version of all objects; whether those of a streamed list have all been sent.
    Bookmark(String, bool),
    /// The watch cannot go on, with this code and text.
    Error(u16, String),
}

#[derive(Deserialize)]
struct JsonEvent<'j> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    object: &'j RawValue,
}

#[derive(Deserialize)]
struct OnlyMetadata {
    metadata: Metadata,
}

/// A failure as the API reports it.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Status {
    /// The code of HTTP.
    pub code: u16,
    /// The text for people.
    pub message: String,
}

/// Decodes an event of a watch for objects of a kind.
///
/// # Errors
/// When it is no such event.
pub fn event(kind: Kind, json: &[u8]) -> Result<WatchEvent, serde_json::Error> {
    let event: JsonEvent<'_> = serde_json::from_slice(json)?;
    let json = event.object.get().as_bytes();
    if event.kind == "ERROR" {
        let status: Status = serde_json::from_slice(json)?;
        return Ok(WatchEvent::Error(status.code, status.message));
    }
    if event.kind == "BOOKMARK" {
        let OnlyMetadata { metadata } = serde_json::from_slice(json)?;
        let is_end = metadata.annotation(END_ANNOTATION) == Some("true");
        return Ok(WatchEvent::Bookmark(metadata.resource_version, is_end));
    }
    let OnlyId { metadata } = serde_json::from_slice(json)?;
    let object = if event.kind == "DELETED" {
        let id = ObjectName { namespace: metadata.namespace, name: metadata.name };
        Decoded::Change(Box::new(Change::Gone(kind, id)))
    } else {
        any_object(kind, json)?
    };
    Ok(WatchEvent::Object(object, metadata.resource_version))
}

/// Decodes the `metadata` of a list.
///
/// # Errors
/// When it is none.
pub fn metadata(json: &[u8]) -> Result<Metadata, serde_json::Error> {
    serde_json::from_slice(json)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_service_has_its_addresses_ports_and_what_leads_to_it_from_outside() {
        let json =
            br#"{"metadata":{"name":"web","namespace":"shop"},"spec":{"clusterIP":"10.0.0.1",
            "clusterIPs":["10.0.0.1","fd00::1"],"externalIPs":["192.0.2.1"],"ports":[{"name":"http",
            "protocol":"TCP","port":80,"targetPort":"x"}],"type":"LoadBalancer"},
            "status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.2"},{"hostname":"lb.example"}]}}}"#;
        let Change::Service(service) = object(Kind::Service, json).unwrap() else { panic!() };
        let own = ["10.0.0.1", "fd00::1"].map(|text| text.parse().unwrap()).to_vec();
        assert_eq!(service.kind, ServiceKind::ClusterIp(own));
        assert_eq!((service.ports.len(), service.external_ips.len()), (1, 2));
        assert_eq!(service.external_names, ["lb.example"]);
        let json = br#"{"metadata":{"name":"db"},"spec":{"clusterIP":"None"}}"#;
        let Change::Service(service) = object(Kind::Service, json).unwrap() else { panic!() };
        assert_eq!(service.kind, ServiceKind::Headless);
    }

    #[test]
    fn an_endpoint_is_ready_unless_its_slice_says_that_it_is_not() {
        let json =
            br#"{"metadata":{"name":"s","namespace":"n","labels":{"kubernetes.io/service-name":
            "web"},"annotations":{"endpoints.kubernetes.io/last-change-trigger-time":
            "2026-11-24T10:58:35.5Z"}},"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"]},
            {"addresses":["10.0.0.2"],"conditions":{"ready":false}},{"addresses":["10.0.0.3"],
            "conditions":{"ready":null},"targetRef":{"kind":"Pod","name":"web-0"}}],"ports":null}"#;
        let Change::EndpointSlice(slice) = object(Kind::EndpointSlice, json).unwrap() else {
            panic!()
        };
        let ready: Vec<bool> = slice.endpoints.iter().map(|endpoint| endpoint.ready).collect();
        assert_eq!((&*slice.service, &ready[..]), ("web", &[true, false, true][..]));
        assert_eq!(slice.endpoints[2].pod, "web-0");
        let seconds = slice.trigger_time.unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(seconds, Duration::from_millis(1_795_517_915_500));
    }

    #[test]
    fn a_pod_that_ended_or_terminates_has_no_address() {
        let of = |metadata: &str, phase: &str| {
            let json = format!(
                r#"{{"metadata":{{"name":"p"{metadata}}},"spec":{{"x":1}},"status":{{"phase":
                "{phase}","podIPs":[{{"ip":"10.1.0.1"}},{{"ip":"fd00::2"}}]}}}}"#
            );
            match object(Kind::Pod, json.as_bytes()).unwrap() {
                Change::Pod(pod) => pod.addresses.len(),
                _ => panic!(),
            }
        };
        assert_eq!(of("", "Running"), 2);
        assert_eq!(of("", "Succeeded"), 0);
        assert_eq!(of(r#","deletionTimestamp":"2026-11-24T10:58:35Z""#, "Running"), 0);
    }

    #[test]
    fn events_are_changes_bookmarks_and_errors() {
        let read = |json: &str| event(Kind::Namespace, json.as_bytes()).unwrap();
        let added =
            read(r#"{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"7"}}}"#);
        let is_namespace = |it: &WatchEvent| match it {
            WatchEvent::Object(Decoded::Change(change), version) => {
                matches!(**change, Change::Namespace(_)) && version == "7"
            }
            _ => false,
        };
        assert!(is_namespace(&added));
        let gone =
            read(r#"{"type":"DELETED","object":{"metadata":{"name":"a","resourceVersion":"8"}}}"#);
        let WatchEvent::Object(Decoded::Change(gone), _) = gone else { panic!() };
        assert!(matches!(*gone, Change::Gone(Kind::Namespace, _)));
        let end = read(
            r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":
            {"k8s.io/initial-events-end":"true"}}}}"#,
        );
        assert!(matches!(end, WatchEvent::Bookmark(version, true) if version == "9"));
        let error = read(r#"{"type":"ERROR","object":{"code":410,"message":"too old"}}"#);
        assert!(matches!(error, WatchEvent::Error(410, _)));
        assert!(event(Kind::Service, b"{}").is_err());
    }

    #[test]
    fn an_object_with_a_name_and_a_wrong_field_fails_alone() {
        let json = br#"{"metadata":{"name":"a","namespace":"n"},"spec":{"ips":"10.0.0.1"}}"#;
        let Decoded::Undecodable(id, why) = any_object(Kind::ServiceImport, json).unwrap() else {
            panic!()
        };
        assert_eq!((&*id.namespace, &*id.name), ("n", "a"));
        assert!(why.contains("invalid type"), "{why}");
        let json = br#"{"metadata":{"name":"a","labels":[1]}}"#;
        assert!(matches!(any_object(Kind::Pod, json).unwrap(), Decoded::Undecodable(..)));
        assert!(any_object(Kind::Pod, br#"{"metadata":{}}"#).is_ok(), "a pod without a name");
        assert!(any_object(Kind::Pod, b"[1]").is_err());
    }
}
