//! Objects of the API in JSON, decoded into those that names need.

use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::ops::Deref;
use std::time::{Duration, SystemTime};
use zonda_cluster::object::{
    Endpoint, EndpointSlice, Endpoints, Namespace, ObjectName, Pod, Port, Protocol, Service,
    ServiceImport, ServiceKind,
};
use zonda_cluster::{Change, Kind};

/// A text, which borrows from the JSON that it was decoded from if nothing in it is escaped.
#[derive(Default)]
struct Text<'j>(Cow<'j, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<Text<'_>> for String {
    fn from(text: Text<'_>) -> Self {
        text.0.into_owned()
    }
}

impl<'de: 'j, 'j> Deserialize<'de> for Text<'j> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'j> de::Visitor<'j> for Visitor {
            type Value = Text<'j>;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'j str) -> Result<Text<'j>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'j>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

/// What every object has.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'j"))]
struct Metadata<'j> {
    name: Text<'j>,
    namespace: Text<'j>,
    resource_version: Text<'j>,
    labels: Option<Labels<'j>>,
    annotations: Option<Annotations<'j>>,
    deletion_timestamp: Option<Text<'j>>,
}

impl Metadata<'_> {
    /// The name of the object.
    fn id(&self) -> ObjectName {
        ObjectName { namespace: (*self.namespace).to_owned(), name: (*self.name).to_owned() }
    }
}

/// The labels that names depend on.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'j"))]
struct Labels<'j> {
    #[serde(rename = "kubernetes.io/service-name")]
    service: Option<Text<'j>>,
    #[serde(rename = "multicluster.kubernetes.io/service-name")]
    import: Option<Text<'j>>,
    #[serde(rename = "multicluster.kubernetes.io/source-cluster")]
    cluster: Option<Text<'j>>,
}

/// The annotations that matter here.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'j"))]
struct Annotations<'j> {
    /// When a change of a slice was triggered.
    #[serde(rename = "endpoints.kubernetes.io/last-change-trigger-time")]
    trigger_time: Option<Text<'j>>,
    /// Whether the bookmark stands behind the objects of a streamed list.
    #[serde(rename = "k8s.io/initial-events-end")]
    is_end: Option<Text<'j>>,
    /// Whether search paths of a namespace may be shortened.
    #[serde(rename = "zonda/autopath")]
    autopath: Option<Text<'j>>,
}

#[derive(Deserialize)]
#[serde(bound(
    deserialize = "'de: 'j, S: Deserialize<'de> + Default, T: Deserialize<'de> + Default"
))]
struct Object<'j, S, T = IgnoredStatus> {
    metadata: Metadata<'j>,
    #[serde(default)]
    spec: S,
    #[serde(default)]
    status: T,
}

#[derive(Default, Deserialize)]
struct IgnoredStatus {}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'j"))]
struct ServiceSpec<'j> {
    #[serde(rename = "type")]
    kind: Text<'j>,
    #[serde(rename = "clusterIP")]
    cluster_ip: Text<'j>,
    #[serde(rename = "clusterIPs")]
    cluster_ips: Option<Vec<Text<'j>>>,
    #[serde(rename = "externalIPs")]
    external_ips: Option<Vec<Text<'j>>>,
    external_name: Text<'j>,
    ports: Option<Vec<JsonPort<'j>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'j"))]
struct ServiceStatus<'j> {
    load_balancer: LoadBalancer<'j>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'j"))]
struct LoadBalancer<'j> {
    ingress: Option<Vec<Ingress<'j>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'j"))]
struct Ingress<'j> {
    ip: Text<'j>,
    hostname: Text<'j>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'j"))]
struct JsonPort<'j> {
    name: Option<Text<'j>>,
    protocol: Option<Text<'j>>,
    port: Option<u16>,
}

impl From<JsonPort<'_>> for Port {
    fn from(port: JsonPort<'_>) -> Self {
        let protocol = match port.protocol.as_deref() {
            Some("UDP") => Protocol::Udp,
            Some("SCTP") => Protocol::Sctp,
            _ => Protocol::Tcp,
        };
        Self { name: port.name.unwrap_or_default().into(), protocol, number: port.port }
    }
}

/// The ports of an object.
fn ports(ports: Option<Vec<JsonPort<'_>>>) -> Vec<Port> {
    ports.into_iter().flatten().map(Port::from).collect()
}

/// The texts that are addresses.
fn addresses(texts: Option<Vec<Text<'_>>>) -> Vec<IpAddr> {
    texts.into_iter().flatten().filter_map(|text| text.parse().ok()).collect()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'j"))]
struct JsonSlice<'j> {
    metadata: Metadata<'j>,
    #[serde(default)]
    address_type: Text<'j>,
    #[serde(default)]
    endpoints: Option<Vec<JsonEndpoint<'j>>>,
    #[serde(default)]
    ports: Option<Vec<JsonPort<'j>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'j"))]
struct JsonEndpoint<'j> {
    addresses: Option<Vec<Text<'j>>>,
    conditions: Option<Conditions>,
    hostname: Option<Text<'j>>,
    target_ref: Option<TargetRef<'j>>,
    zone: Option<Text<'j>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Conditions {
    ready: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'j"))]
struct TargetRef<'j> {
    kind: Text<'j>,
    name: Text<'j>,
}

#[derive(Default, Deserialize)]
struct NoSpec {}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodSpec {
    host_network: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'j"))]
struct PodStatus<'j> {
    phase: Text<'j>,
    #[serde(rename = "podIP")]
    pod_ip: Text<'j>,
    #[serde(rename = "podIPs")]
    pod_ips: Option<Vec<PodAddress<'j>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'j"))]
struct PodAddress<'j> {
    ip: Text<'j>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'j"))]
struct ImportSpec<'j> {
    #[serde(rename = "type")]
    kind: Text<'j>,
    ips: Option<Vec<Text<'j>>>,
    ports: Option<Vec<JsonPort<'j>>>,
}

/// An object as far as it could be decoded.
#[derive(Debug)]
pub enum Decoded {
    /// The object itself, or that it is gone.
    Change(Box<Change>),
    /// The name of an object of which more cannot be decoded, and why.
    Undecodable(ObjectName, String),
}

/// Decodes an object of a kind, and its version; one with a name and with other fields that are
/// wrong fails alone.
///
/// # Errors
/// When it has no metadata of an object, so that what sends it is no API server.
pub fn any_object(kind: Kind, json: &[u8]) -> Result<(Decoded, String), serde_json::Error> {
    let error = match object(kind, json) {
        Ok((change, version)) => return Ok((Decoded::Change(Box::new(change)), version)),
        Err(error) => error,
    };
    let Ok(OnlyId { metadata }) = serde_json::from_slice(json) else { return Err(error) };
    Ok((Decoded::Undecodable(metadata.id(), error.to_string()), metadata.resource_version))
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

impl IdMetadata {
    /// The name of the object.
    fn id(&self) -> ObjectName {
        ObjectName { namespace: self.namespace.clone(), name: self.name.clone() }
    }
}

/// Decodes an object of a kind, and its version.
///
/// # Errors
/// When it is no such object.
pub fn object(kind: Kind, json: &[u8]) -> Result<(Change, String), serde_json::Error> {
    let (change, version) = match kind {
        Kind::Service => {
            let mut object: Object<'_, ServiceSpec<'_>, ServiceStatus<'_>> =
                serde_json::from_slice(json)?;
            let version = std::mem::take(&mut object.metadata.resource_version);
            (Change::Service(service(object)), version)
        }
        Kind::EndpointSlice => {
            let mut object: JsonSlice<'_> = serde_json::from_slice(json)?;
            let version = std::mem::take(&mut object.metadata.resource_version);
            (Change::EndpointSlice(slice(object)), version)
        }
        Kind::Namespace => {
            let Object::<'_, NoSpec> { metadata, .. } = serde_json::from_slice(json)?;
            let autopath = metadata.annotations.and_then(|it| it.autopath);
            let opts_out_of_autopath = autopath.is_some_and(|text| &*text == "false");
            let namespace = Namespace { name: metadata.name.into(), opts_out_of_autopath };
            (Change::Namespace(namespace), metadata.resource_version)
        }
        Kind::Pod => {
            let mut object: Object<'_, PodSpec, PodStatus<'_>> = serde_json::from_slice(json)?;
            let version = std::mem::take(&mut object.metadata.resource_version);
            (Change::Pod(pod(object)), version)
        }
        Kind::ServiceImport => {
            let Object::<'_, ImportSpec<'_>> { metadata, spec, .. } = serde_json::from_slice(json)?;
            let import = ServiceImport {
                id: metadata.id(),
                addresses: addresses(spec.ips),
                is_headless: &*spec.kind == "Headless",
                ports: ports(spec.ports),
            };
            (Change::ServiceImport(import), metadata.resource_version)
        }
    };
    Ok((change, version.into()))
}

/// Decodes a service.
fn service(object: Object<'_, ServiceSpec<'_>, ServiceStatus<'_>>) -> Service {
    let (id, spec) = (object.metadata.id(), object.spec);
    let own = spec.cluster_ips.filter(|own| !own.is_empty());
    let own = own.unwrap_or_else(|| vec![spec.cluster_ip]);
    let kind = match &*spec.kind {
        "ExternalName" => ServiceKind::ExternalName(spec.external_name.into()),
        _ if own.iter().any(|address| &**address == "None") => ServiceKind::Headless,
        _ => ServiceKind::ClusterIp(addresses(Some(own))),
    };
    let ingress = object.status.load_balancer.ingress.unwrap_or_default();
    let mut external_ips = addresses(spec.external_ips);
    external_ips.extend(ingress.iter().filter_map(|it| it.ip.parse::<IpAddr>().ok()));
    let names =
        ingress.into_iter().map(|it| it.hostname.into()).filter(|it: &String| !it.is_empty());
    let external_names = names.collect();
    Service { id, kind, ports: ports(spec.ports), external_ips, external_names }
}

/// Decodes a slice.
fn slice(object: JsonSlice<'_>) -> EndpointSlice {
    let id = object.metadata.id();
    let labels = object.metadata.labels.unwrap_or_default();
    let annotations = object.metadata.annotations.unwrap_or_default();
    let import = labels.import.filter(|service| !service.is_empty());
    let is_imported = import.is_some();
    let is_v6 = &*object.address_type == "IPv6";
    let has_addresses = matches!(&*object.address_type, "IPv4" | "IPv6");
    let all = object.endpoints.unwrap_or_default();
    let mut endpoints = Endpoints::with_capacity(all.len(), 0);
    for endpoint in all {
        let pod = endpoint.target_ref.filter(|target| &*target.kind == "Pod");
        let (hostname, zone) = (endpoint.hostname.as_deref(), endpoint.zone.as_deref());
        let (hostname, zone) = (hostname.unwrap_or_default(), zone.unwrap_or_default());
        let pod = pod.as_ref().map_or("", |pod| &*pod.name);
        let ready = endpoint.conditions.unwrap_or_default().ready.unwrap_or(true);
        for address in addresses(endpoint.addresses) {
            if has_addresses && address.is_ipv6() == is_v6 {
                endpoints.push(Endpoint { address, hostname, pod, zone, ready });
            }
        }
    }
    EndpointSlice {
        id,
        service: import.or(labels.service).unwrap_or_default().into(),
        source_cluster: labels.cluster.unwrap_or_default().into(),
        is_imported,
        ports: ports(object.ports),
        endpoints,
        trigger_time: annotations.trigger_time.and_then(|text| time(&text)),
    }
}

/// Decodes a pod. One that has ended or terminates has no name.
fn pod(object: Object<'_, PodSpec, PodStatus<'_>>) -> Pod {
    let (id, status) = (object.metadata.id(), object.status);
    let is_on_host_network = object.spec.host_network.unwrap_or(false);
    let has_ended = matches!(&*status.phase, "Succeeded" | "Failed");
    let is_gone = has_ended || object.metadata.deletion_timestamp.is_some();
    let several = status.pod_ips.filter(|several| !several.is_empty());
    let several = several.map(|it| it.into_iter().map(|address| address.ip).collect());
    let texts = several.unwrap_or_else(|| vec![status.pod_ip]);
    let addresses = if is_gone { Vec::new() } else { addresses(Some(texts)) };
    Pod { id, addresses, is_on_host_network }
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

/// A bookmark of a watch.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'j"))]
struct Bookmark<'j> {
    metadata: Metadata<'j>,
}

/// The `metadata` of a list.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ListMetadata {
    /// The version of the list.
    pub resource_version: String,
    /// What asks for the next page; empty on the last.
    #[serde(rename = "continue")]
    pub continuation: String,
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
    if let Some(Ok((object, version))) = plain_object(json).map(|json| any_object(kind, json)) {
        return Ok(WatchEvent::Object(object, version));
    }
    let event: JsonEvent<'_> = serde_json::from_slice(json)?;
    let json = event.object.get().as_bytes();
    if event.kind == "ERROR" {
        let status: Status = serde_json::from_slice(json)?;
        return Ok(WatchEvent::Error(status.code, status.message));
    }
    if event.kind == "BOOKMARK" {
        let Bookmark { metadata } = serde_json::from_slice(json)?;
        let is_end = metadata.annotations.and_then(|it| it.is_end);
        let is_end = is_end.is_some_and(|text| &*text == "true");
        return Ok(WatchEvent::Bookmark(metadata.resource_version.into(), is_end));
    }
    let (object, version) = if event.kind == "DELETED" {
        let OnlyId { metadata } = serde_json::from_slice(json)?;
        let change = Box::new(Change::Gone(kind, metadata.id()));
        (Decoded::Change(change), metadata.resource_version)
    } else {
        any_object(kind, json)?
    };
    Ok(WatchEvent::Object(object, version))
}

/// Returns the object of an event that adds or modifies it, if the event is spelt as the API
/// server spells it: the object is decoded without a look for its end.
fn plain_object(json: &[u8]) -> Option<&[u8]> {
    let heads: [&[u8]; 2] = [br#"{"type":"ADDED","object":"#, br#"{"type":"MODIFIED","object":"#];
    let object = heads.into_iter().find_map(|head| json.strip_prefix(head))?;
    object.trim_ascii_end().strip_suffix(b"}")
}

/// Decodes the `metadata` of a list.
///
/// # Errors
/// When it is none.
pub fn metadata(json: &[u8]) -> Result<ListMetadata, serde_json::Error> {
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
        let (Change::Service(service), _) = object(Kind::Service, json).unwrap() else { panic!() };
        let own = ["10.0.0.1", "fd00::1"].map(|text| text.parse().unwrap()).to_vec();
        assert_eq!(service.kind, ServiceKind::ClusterIp(own));
        assert_eq!((service.ports.len(), service.external_ips.len()), (1, 2));
        assert_eq!(service.external_names, ["lb.example"]);
        let json = br#"{"metadata":{"name":"db"},"spec":{"clusterIP":"None"}}"#;
        let (Change::Service(service), _) = object(Kind::Service, json).unwrap() else { panic!() };
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
        let (Change::EndpointSlice(slice), _) = object(Kind::EndpointSlice, json).unwrap() else {
            panic!()
        };
        let ready: Vec<bool> = slice.endpoints.iter().map(|endpoint| endpoint.ready).collect();
        assert_eq!((&*slice.service, &ready[..]), ("web", &[true, false, true][..]));
        assert_eq!(slice.endpoints.iter().nth(2).unwrap().pod, "web-0");
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
            match object(Kind::Pod, json.as_bytes()).unwrap().0 {
                Change::Pod(pod) => pod.addresses.len(),
                _ => panic!(),
            }
        };
        assert_eq!(of("", "Running"), 2);
        assert_eq!(of("", "Succeeded"), 0);
        assert_eq!(of(r#","deletionTimestamp":"2026-11-24T10:58:35Z""#, "Running"), 0);
    }

    #[test]
    fn a_pod_is_on_the_network_of_its_host_where_its_spec_says_so() {
        for (spec, expected) in [
            ("{}", false),
            (r#"{"hostNetwork":true,"x":[1]}"#, true),
            (r#"{"hostNetwork":null}"#, false),
        ] {
            let json = format!(
                r#"{{"metadata":{{"name":"p"}},"spec":{spec},"status":{{"podIP":"10.1.0.1"}}}}"#
            );
            let Change::Pod(pod) = object(Kind::Pod, json.as_bytes()).unwrap().0 else { panic!() };
            assert_eq!(pod.is_on_host_network, expected, "{spec}");
            let again = crate::encode::object(&Change::Pod(pod.clone())).unwrap().to_string();
            let again = crate::encode::read_object(again.as_bytes()).unwrap();
            let Some(Change::Pod(again)) = again else { panic!("{again:?}") };
            assert_eq!(again, pod, "as the snapshot file has it");
        }
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
        for other in [
            r#"{"type":"MODIFIED","object":{"metadata":{"name":"a","resourceVersion":"7"}} }"#,
            r#"{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"7"}},"x":{}}"#,
            r#"{"object":{"metadata":{"name":"\u0061","resourceVersion":"7"}},"type":"ADDED"}"#,
        ] {
            assert!(is_namespace(&read(other)), "{other}");
        }
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
        let Decoded::Undecodable(id, why) = any_object(Kind::ServiceImport, json).unwrap().0 else {
            panic!()
        };
        assert_eq!((&*id.namespace, &*id.name), ("n", "a"));
        assert!(why.contains("invalid type"), "{why}");
        let json = br#"{"metadata":{"name":"a","labels":[1]}}"#;
        assert!(matches!(any_object(Kind::Pod, json).unwrap().0, Decoded::Undecodable(..)));
        assert!(any_object(Kind::Pod, br#"{"metadata":{}}"#).is_ok(), "a pod without a name");
        assert!(any_object(Kind::Pod, b"[1]").is_err());
    }
}
