//! Messages of objects, of events and of failures.

use super::MAGIC;
use super::fields::{Fields, Value};
use crate::decode::{Decoded, ListMetadata, Status, WatchEvent, time};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use zonda_cluster::object::{
    Endpoint, EndpointSlice, Endpoints, Namespace, ObjectName, Pod, Port, Protocol, Service,
    ServiceKind,
};
use zonda_cluster::{Change, Kind};

/// A message is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message in Protocol Buffers is cut off or of another kind")
    }
}

impl std::error::Error for Malformed {}

/// The name of an object and its version.
#[derive(Default)]
struct Identity<'m> {
    name: &'m str,
    namespace: &'m str,
    version: &'m str,
}

impl Identity<'_> {
    /// The name of the object.
    fn id(&self) -> ObjectName {
        ObjectName { namespace: self.namespace.to_owned(), name: self.name.to_owned() }
    }
}

/// Reads the metadata of an object; calls a function with each label (field 11) and annotation
/// (field 12), and with the time of its deletion (field 9).
fn identity<'m>(
    mut metadata: Fields<'m>,
    mut other: impl FnMut(u64, &'m [u8]) -> Result<(), Malformed>,
) -> Result<Identity<'m>, Malformed> {
    let mut identity = Identity::default();
    while let Some((number, value)) = metadata.next()? {
        match number {
            1 => identity.name = value.text()?,
            3 => identity.namespace = value.text()?,
            6 => identity.version = value.text()?,
            9 | LABEL | ANNOTATION => other(number, value.octets()?)?,
            _ => {}
        }
    }
    Ok(identity)
}

/// The number of the field of a label in metadata.
const LABEL: u64 = 11;
/// The number of the field of an annotation in metadata.
const ANNOTATION: u64 = 12;

/// Reads a label or an annotation: its key and its value, as octets.
fn pair(entry: &[u8]) -> Result<(&[u8], Value<'_>), Malformed> {
    let (mut fields, mut key, mut text) = (Fields(entry), &[][..], Value::Octets(&[]));
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => key = value.octets()?,
            2 => text = value,
            _ => {}
        }
    }
    Ok((key, text))
}

/// Returns the message of an object: without its envelope, if it has one.
fn message(octets: &[u8]) -> Result<Fields<'_>, Malformed> {
    let Some(envelope) = octets.strip_prefix(MAGIC) else { return Ok(Fields(octets)) };
    let (mut fields, mut raw) = (Fields(envelope), Fields(&[]));
    while let Some((number, value)) = fields.next()? {
        if number == 2 {
            raw = value.fields()?;
        }
    }
    Ok(raw)
}

/// Returns the metadata of an object, which are the first field of each.
fn metadata(mut object: Fields<'_>) -> Result<Fields<'_>, Malformed> {
    while let Some((number, value)) = object.next()? {
        if number == 1 {
            return value.fields();
        }
    }
    Err(Malformed)
}

/// Decodes an object of a kind, with its envelope or without, and its version; one with a name and
/// with other fields that are wrong fails alone.
///
/// # Errors
/// When it has no metadata of an object, so that what sends it is no API server.
pub fn any_object(kind: Kind, octets: &[u8]) -> Result<(Decoded, String), Malformed> {
    let object = message(octets)?;
    if let Ok((change, version)) = self::object(kind, object.clone()) {
        return Ok((Decoded::Change(Box::new(change)), version));
    }
    let identity = identity(metadata(object)?, |_, _| Ok(()))?;
    let why = Malformed.to_string();
    Ok((Decoded::Undecodable(identity.id(), why), identity.version.to_owned()))
}

/// Decodes an object of a kind, and its version.
fn object(kind: Kind, object: Fields<'_>) -> Result<(Change, String), Malformed> {
    match kind {
        Kind::Service => service(object),
        Kind::EndpointSlice => slice(object),
        Kind::Namespace => namespace(object),
        Kind::Pod => pod(object),
        Kind::ServiceImport => Err(Malformed), // objects of this kind exist in JSON alone
    }
}

/// Decodes a service.
fn service(mut object: Fields<'_>) -> Result<(Change, String), Malformed> {
    let (mut known, mut spec, mut status) = (None, Fields(&[]), Fields(&[]));
    while let Some((number, value)) = object.next()? {
        match number {
            1 => known = Some(identity(value.fields()?, |_, _| Ok(()))?),
            2 => spec = value.fields()?,
            3 => status = value.fields()?,
            _ => {}
        }
    }
    let known = known.ok_or(Malformed)?;
    let (mut kind, mut target, mut own, mut several) = ("", "", "", Vec::new());
    let (mut ports, mut external_ips, mut external_names) = (Vec::new(), Vec::new(), Vec::new());
    while let Some((number, value)) = spec.next()? {
        match number {
            1 => ports.push(port(value.fields()?)?),
            3 => own = value.text()?,
            4 => kind = value.text()?,
            5 => external_ips.extend(parsed::<IpAddr>(value)),
            10 => target = value.text()?,
            18 => several.push(value.text()?),
            _ => {}
        }
    }
    if several.is_empty() {
        several.push(own);
    }
    while let Some((number, value)) = status.next()? {
        if number == 1 {
            ingress(value.fields()?, &mut external_ips, &mut external_names)?;
        }
    }
    let kind = match kind {
        "ExternalName" => ServiceKind::ExternalName(target.to_owned()),
        _ if several.contains(&"None") => ServiceKind::Headless,
        _ => ServiceKind::ClusterIp(several.iter().filter_map(|it| it.parse().ok()).collect()),
    };
    let service = Service { id: known.id(), kind, ports, external_ips, external_names };
    Ok((Change::Service(service), known.version.to_owned()))
}

/// Reads the state of a load balancer: the addresses and names that lead to a service.
fn ingress(
    mut balancer: Fields<'_>,
    addresses: &mut Vec<IpAddr>,
    names: &mut Vec<String>,
) -> Result<(), Malformed> {
    while let Some((number, value)) = balancer.next()? {
        let mut fields = if number == 1 { value.fields()? } else { continue };
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => addresses.extend(parsed::<IpAddr>(value)),
                2 => names.extend(Some(value.text()?.to_owned()).filter(|it| !it.is_empty())),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Reads what is written as text; none if it is another text.
fn parsed<T: FromStr>(value: Value<'_>) -> Option<T> {
    value.text().ok()?.parse().ok()
}

/// Decodes a port of a service or a slice, whose first three fields are the same.
fn port(mut fields: Fields<'_>) -> Result<Port, Malformed> {
    let mut port = Port { name: String::new(), protocol: Protocol::Tcp, number: None };
    while let Some((field, value)) = fields.next()? {
        match field {
            1 => port.name = value.text()?.to_owned(),
            2 => {
                port.protocol = match value.octets()? {
                    b"UDP" => Protocol::Udp,
                    b"SCTP" => Protocol::Sctp,
                    _ => Protocol::Tcp,
                };
            }
            3 => port.number = Some(u16::try_from(value.number()?).map_err(|_| Malformed)?),
            _ => {}
        }
    }
    Ok(port)
}

/// Decodes a slice.
fn slice(object: Fields<'_>) -> Result<(Change, String), Malformed> {
    let (mut known, mut family, mut ports, mut count) = (None, &b""[..], Vec::new(), 0);
    let (mut service, mut import, mut source_cluster) = ("", "", "");
    let (mut trigger_time, mut fields) = (None, object.clone());
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => {
                known = Some(identity(value.fields()?, |field, entry| {
                    if field != LABEL && field != ANNOTATION {
                        return Ok(());
                    }
                    let (key, value) = pair(entry)?;
                    match (field, key) {
                        (LABEL, b"kubernetes.io/service-name") => service = value.text()?,
                        (LABEL, b"multicluster.kubernetes.io/service-name") => {
                            import = value.text()?;
                        }
                        (LABEL, b"multicluster.kubernetes.io/source-cluster") => {
                            source_cluster = value.text()?;
                        }
                        (ANNOTATION, b"endpoints.kubernetes.io/last-change-trigger-time") => {
                            trigger_time = time(value.text()?);
                        }
                        _ => {}
                    }
                    Ok(())
                })?);
            }
            2 => count += 1,
            3 => ports.push(port(value.fields()?)?),
            4 => family = value.octets()?,
            _ => {}
        }
    }
    let known = known.ok_or(Malformed)?;
    let slice = EndpointSlice {
        id: known.id(),
        service: if import.is_empty() { service } else { import }.to_owned(),
        source_cluster: source_cluster.to_owned(),
        is_imported: !import.is_empty(),
        ports,
        endpoints: endpoints(object, count, family)?,
        trigger_time,
    };
    Ok((Change::EndpointSlice(slice), known.version.to_owned()))
}

/// Octets for which there is room in the texts of an endpoint: a name of a pod and a zone.
const TEXT_BYTES: usize = 32;
/// Endpoints for which there is room at once; the API allows a thousand.
const ENDPOINTS_AT_ONCE: usize = 1000;

/// Decodes the endpoints of a slice, so many, of a family of addresses; those of another family are
/// left out.
fn endpoints(mut slice: Fields<'_>, count: usize, family: &[u8]) -> Result<Endpoints, Malformed> {
    let is_v6 = family == b"IPv6";
    let has_addresses = is_v6 || family == b"IPv4";
    let room = count.min(ENDPOINTS_AT_ONCE);
    let mut endpoints = Endpoints::with_capacity(room, room * TEXT_BYTES);
    while let Some((number, value)) = slice.next()? {
        if number != 2 {
            continue;
        }
        let (all, mut fields) = (value.fields()?, value.fields()?);
        let (mut hostname, mut pod, mut zone, mut ready) = ("", "", "", true);
        while let Some((number, value)) = fields.next()? {
            match number {
                2 => ready = is_ready(value.fields()?)?,
                3 => hostname = value.text()?,
                4 => pod = pod_of(value.fields()?)?,
                7 => zone = value.text()?,
                _ => {}
            }
        }
        let mut fields = all;
        while let Some((number, value)) = fields.next()? {
            let address = (number == 1).then(|| parsed::<IpAddr>(value)).flatten();
            let address = address.filter(|it| has_addresses && it.is_ipv6() == is_v6);
            if let Some(address) = address {
                endpoints.push(Endpoint { address, hostname, pod, zone, ready });
            }
        }
    }
    Ok(endpoints)
}

/// Reads from the conditions of an endpoint whether it is ready, which it is unless they deny it.
fn is_ready(mut conditions: Fields<'_>) -> Result<bool, Malformed> {
    let mut is_ready = true;
    while let Some((number, value)) = conditions.next()? {
        if number == 1 {
            is_ready = value.number()? != 0;
        }
    }
    Ok(is_ready)
}

/// Returns the name of the pod that a reference is to; empty if it is to something else.
fn pod_of(mut reference: Fields<'_>) -> Result<&str, Malformed> {
    let (mut kind, mut name) = (&b""[..], "");
    while let Some((number, value)) = reference.next()? {
        match number {
            1 => kind = value.octets()?,
            3 => name = value.text()?,
            _ => {}
        }
    }
    Ok(if kind == b"Pod" { name } else { "" })
}

/// Decodes a namespace.
fn namespace(object: Fields<'_>) -> Result<(Change, String), Malformed> {
    let mut opts_out_of_autopath = false;
    let known = identity(metadata(object)?, |field, entry| {
        if field == ANNOTATION {
            let (key, value) = pair(entry)?;
            opts_out_of_autopath |= key == b"zonda/autopath" && value.octets()? == b"false";
        }
        Ok(())
    })?;
    let namespace = Namespace { name: known.name.to_owned(), opts_out_of_autopath };
    Ok((Change::Namespace(namespace), known.version.to_owned()))
}

/// Decodes a pod. One that has ended or terminates has no name.
fn pod(mut object: Fields<'_>) -> Result<(Change, String), Malformed> {
    let (mut known, mut is_gone, mut is_on_host_network) = (None, false, false);
    let mut status = Fields(&[]);
    while let Some((number, value)) = object.next()? {
        match number {
            1 => {
                known = Some(identity(value.fields()?, |field, _| {
                    is_gone |= field == 9;
                    Ok(())
                })?);
            }
            2 => {
                let mut spec = value.fields()?;
                while let Some((number, value)) = spec.next()? {
                    if number == 11 {
                        is_on_host_network = value.number()? != 0;
                    }
                }
            }
            3 => status = value.fields()?,
            _ => {}
        }
    }
    let known = known.ok_or(Malformed)?;
    let (mut own, mut addresses, mut has_several) = (None, Vec::new(), false);
    while let Some((number, value)) = status.next()? {
        match number {
            1 => is_gone |= matches!(value.octets()?, b"Succeeded" | b"Failed"),
            6 => own = parsed::<IpAddr>(value),
            12 => {
                has_several = true;
                let mut fields = value.fields()?;
                while let Some((number, value)) = fields.next()? {
                    addresses.extend((number == 1).then(|| parsed::<IpAddr>(value)).flatten());
                }
            }
            _ => {}
        }
    }
    if !has_several {
        addresses.extend(own);
    }
    if is_gone {
        addresses.clear();
    }
    let pod = Pod { id: known.id(), addresses, is_on_host_network };
    Ok((Change::Pod(pod), known.version.to_owned()))
}

/// Decodes an event of a watch for objects of a kind.
///
/// # Errors
/// When it is no such event.
pub fn event(kind: Kind, event: &[u8]) -> Result<WatchEvent, Malformed> {
    let (mut fields, mut word, mut object) = (message(event)?, &b""[..], None);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => word = value.octets()?,
            2 => object = Some(value.fields()?),
            _ => {}
        }
    }
    let (mut extension, mut object) = (object.ok_or(Malformed)?, &[][..]);
    while let Some((number, value)) = extension.next()? {
        if number == 1 {
            object = value.octets()?;
        }
    }
    match word {
        b"ERROR" => {
            let status = status(object)?;
            Ok(WatchEvent::Error(status.code, status.message))
        }
        b"BOOKMARK" => {
            let mut is_end = false;
            let known = identity(metadata(message(object)?)?, |field, entry| {
                if field == ANNOTATION {
                    let (key, value) = pair(entry)?;
                    is_end |= key == b"k8s.io/initial-events-end" && value.octets()? == b"true";
                }
                Ok(())
            })?;
            Ok(WatchEvent::Bookmark(known.version.to_owned(), is_end))
        }
        b"DELETED" => {
            let known = identity(metadata(message(object)?)?, |_, _| Ok(()))?;
            let gone = Decoded::Change(Box::new(Change::Gone(kind, known.id())));
            Ok(WatchEvent::Object(gone, known.version.to_owned()))
        }
        _ => {
            let (object, version) = any_object(kind, object)?;
            Ok(WatchEvent::Object(object, version))
        }
    }
}

/// Decodes the metadata of a list.
///
/// # Errors
/// When it is none.
pub fn list_metadata(metadata: &[u8]) -> Result<ListMetadata, Malformed> {
    let (mut fields, mut list) = (Fields(metadata), ListMetadata::default());
    while let Some((number, value)) = fields.next()? {
        match number {
            2 => list.resource_version = value.text()?.to_owned(),
            3 => list.continuation = value.text()?.to_owned(),
            _ => {}
        }
    }
    Ok(list)
}

/// Decodes a failure as the API reports it.
///
/// # Errors
/// When it is none.
pub fn status(octets: &[u8]) -> Result<Status, Malformed> {
    let (mut fields, mut status) = (message(octets)?, Status::default());
    while let Some((number, value)) = fields.next()? {
        match number {
            3 => status.message = value.text()?.to_owned(),
            6 => status.code = u16::try_from(value.number()?).map_err(|_| Malformed)?,
            _ => {}
        }
    }
    Ok(status)
}
