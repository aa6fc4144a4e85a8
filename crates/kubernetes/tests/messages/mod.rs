//! Objects in JSON as messages in Protocol Buffers, with the numbers of the fields that the API's
//! `generated.proto` files have.

// Each test uses a part of it.
#![allow(dead_code, clippy::unwrap_used)]

use serde_json::Value;

/// The number and the kind of a field of a message: `string`, `int`, `bool`, `map`, or a message.
fn field_of(message: &str, key: &str) -> Option<(u64, &'static str)> {
    Some(match (message, key) {
        ("Meta", "name") => (1, "string"),
        ("Meta", "generateName") => (2, "string"),
        ("Meta", "namespace") => (3, "string"),
        ("Meta", "uid") => (5, "string"),
        ("Meta", "resourceVersion") => (6, "string"),
        ("Meta", "generation") => (7, "int"),
        ("Meta", "creationTimestamp") => (8, "Time"),
        ("Meta", "deletionTimestamp") => (9, "Time"),
        ("Meta", "labels") => (11, "map"),
        ("Meta", "annotations") => (12, "map"),
        ("ListMeta", "resourceVersion") => (2, "string"),
        ("ListMeta", "continue") => (3, "string"),
        ("ListMeta", "remainingItemCount") => (4, "int"),
        ("Status", "message") => (3, "string"),
        ("Status", "code") => (6, "int"),
        ("EndpointSlice", "endpoints") => (2, "Endpoint"),
        ("EndpointSlice", "ports") | ("ServiceSpec", "ports") => match message {
            "EndpointSlice" => (3, "Port"),
            _ => (1, "Port"),
        },
        ("EndpointSlice", "addressType") => (4, "string"),
        ("Endpoint", "addresses") => (1, "string"),
        ("Endpoint", "conditions") => (2, "Conditions"),
        ("Endpoint", "hostname") => (3, "string"),
        ("Endpoint", "targetRef") => (4, "Reference"),
        ("Endpoint", "nodeName") => (6, "string"),
        ("Endpoint", "zone") => (7, "string"),
        ("Conditions", "ready") => (1, "bool"),
        ("Conditions", "serving") => (2, "bool"),
        ("Conditions", "terminating") => (3, "bool"),
        ("Reference", "kind") => (1, "string"),
        ("Reference", "namespace") => (2, "string"),
        ("Reference", "name") => (3, "string"),
        ("Reference", "uid") => (4, "string"),
        ("Port", "name") => (1, "string"),
        ("Port", "protocol") => (2, "string"),
        ("Port", "port") => (3, "int"),
        ("Service", "spec") => (2, "ServiceSpec"),
        ("Service", "status") => (3, "ServiceStatus"),
        ("ServiceSpec", "clusterIP") => (3, "string"),
        ("ServiceSpec", "type") => (4, "string"),
        ("ServiceSpec", "externalIPs") => (5, "string"),
        ("ServiceSpec", "externalName") => (10, "string"),
        ("ServiceSpec", "clusterIPs") => (18, "string"),
        ("ServiceStatus", "loadBalancer") => (1, "LoadBalancer"),
        ("LoadBalancer", "ingress") => (1, "Ingress"),
        ("Ingress", "ip") | ("PodIp", "ip") => (1, "string"),
        ("Ingress", "hostname") => (2, "string"),
        ("Pod", "spec") => (2, "PodSpec"),
        ("PodSpec", "hostNetwork") => (11, "bool"),
        ("Pod", "status") => (3, "PodStatus"),
        ("PodStatus", "phase") => (1, "string"),
        ("PodStatus", "podIP") => (6, "string"),
        ("PodStatus", "podIPs") => (12, "PodIp"),
        (_, "metadata") => (1, "Meta"),
        _ => return None,
    })
}

/// Adds a number of up to ten octets.
fn push_varint(octets: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        octets.push(number as u8 | 0x80);
        number >>= 7;
    }
    octets.push(number as u8);
}

/// Adds a field that consists of octets.
pub fn push_octets(message: &mut Vec<u8>, number: u64, octets: &[u8]) {
    push_varint(message, number << 3 | 2);
    push_varint(message, octets.len() as u64);
    message.extend_from_slice(octets);
}

/// Adds a field of a kind, once for each element of an array.
fn push_field(message: &mut Vec<u8>, number: u64, kind: &str, value: &Value) {
    match (kind, value) {
        (_, Value::Null) => {}
        (_, Value::Array(values)) => {
            values.iter().for_each(|value| push_field(message, number, kind, value));
        }
        ("map", Value::Object(entries)) => {
            for (key, value) in entries {
                let mut entry = Vec::new();
                push_octets(&mut entry, 1, key.as_bytes());
                push_octets(&mut entry, 2, value.as_str().unwrap().as_bytes());
                push_octets(message, number, &entry);
            }
        }
        ("Time", _) => push_octets(message, number, b"\x08\x80\xf5\xd5\xca\x06"),
        ("int", Value::Number(value)) => {
            push_varint(message, number << 3);
            push_varint(message, value.as_i64().unwrap() as u64);
        }
        ("bool", Value::Bool(value)) => message.extend([(number as u8) << 3, u8::from(*value)]),
        ("string", Value::String(text)) => push_octets(message, number, text.as_bytes()),
        (kind, value) => push_octets(message, number, &self::message(kind, value)),
    }
}

/// The message of a kind for an object in JSON, with a field that no client knows.
pub fn message(kind: &str, json: &Value) -> Vec<u8> {
    let mut message = Vec::new();
    for (key, value) in json.as_object().unwrap() {
        if let Some((number, kind)) = field_of(kind, key) {
            push_field(&mut message, number, kind, value);
        }
    }
    push_octets(&mut message, 1000, b"\xff\xff");
    message
}

/// A message in its envelope.
pub fn enveloped(message: &[u8]) -> Vec<u8> {
    let mut envelope = b"k8s\0".to_vec();
    push_octets(&mut envelope, 1, b"\x0a\x02v1\x12\x01X");
    push_octets(&mut envelope, 2, message);
    push_octets(&mut envelope, 3, b"");
    push_octets(&mut envelope, 4, b"");
    envelope
}

/// A list of objects of a kind, with its metadata.
pub fn list(kind: &str, metadata: &Value, items: &[Value]) -> Vec<u8> {
    let mut list = Vec::new();
    push_octets(&mut list, 1, &message("ListMeta", metadata));
    items.iter().for_each(|item| push_octets(&mut list, 2, &message(kind, item)));
    enveloped(&list)
}

/// An event of a watch with an object of a kind.
pub fn event(word: &str, kind: &str, object: &Value) -> Vec<u8> {
    let (mut extension, mut event) = (Vec::new(), Vec::new());
    push_octets(&mut extension, 1, &enveloped(&message(kind, object)));
    push_octets(&mut event, 1, word.as_bytes());
    push_octets(&mut event, 2, &extension);
    let mut framed = (event.len() as u32).to_be_bytes().to_vec();
    framed.extend(event);
    framed
}
