//! Objects, lists and watches in Protocol Buffers.

#![allow(clippy::unwrap_used, clippy::panic)]

mod messages;
mod scripted;

use messages::{enveloped, event, list, message, push_octets};
use scripted::{follow_place, is_stream, is_watch, write_octets};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use zonda_cluster::{Change, Kind};
use zonda_kubernetes::decode::{self, Decoded, WatchEvent};
use zonda_kubernetes::protobuf;
use zonda_kubernetes::protobuf::decode::Malformed;
use zonda_kubernetes::protobuf::split::{EventSplitter, ListSplitter};
use zonda_kubernetes::split::{OBJECT_BYTES_MAX, Piece, TooLarge};
use zonda_kubernetes::{ConnectError, Place};

/// The kinds of objects that there are in Protocol Buffers.
const KINDS: [(Kind, &str); 4] = [
    (Kind::Service, "Service"),
    (Kind::EndpointSlice, "EndpointSlice"),
    (Kind::Namespace, "Namespace"),
    (Kind::Pod, "Pod"),
];

/// What was decoded, as text.
fn told((decoded, version): (Decoded, String)) -> String {
    match decoded {
        Decoded::Change(change) => format!("{change:?} at {version:?}"),
        Decoded::Undecodable(id, _) => format!("{id:?} at {version:?}"),
    }
}

/// The objects in JSON of the corpus of the fuzzer, by the names of their files.
fn corpus() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/cluster_objects");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let objects = files.filter_map(|file| {
        let json = serde_json::from_slice::<Value>(&fs::read(&file).unwrap()).ok()?;
        json.get("metadata")?.get("name")?;
        Some((file.file_name()?.to_string_lossy().into_owned(), json))
    });
    objects.collect()
}

#[test]
fn an_object_says_the_same_in_json_and_in_protocol_buffers() {
    let (mut objects, mut compared) = (corpus(), 0);
    objects.push(("all".to_owned(), slice_with_all()));
    for (file, json) in objects {
        let text = serde_json::to_vec(&json).unwrap();
        for (kind, word) in KINDS {
            let Ok(expected) = decode::any_object(kind, &text) else { continue };
            if !matches!(expected.0, Decoded::Change(_)) {
                continue;
            }
            let expected = told(expected);
            let message = message(word, &json);
            for octets in [&enveloped(&message), &message] {
                let found = protobuf::decode::any_object(kind, octets).unwrap();
                assert_eq!(told(found), expected, "{file} as {word}");
            }
            compared += 1;
        }
    }
    assert!(compared > 20, "only {compared} objects of the corpus were compared");
}

/// A slice with every field that is read.
fn slice_with_all() -> Value {
    json!({
        "metadata": {
            "name": "web-1", "namespace": "shop", "resourceVersion": "77",
            "labels": { "kubernetes.io/service-name": "web", "other": "x" },
            "annotations": {
                "endpoints.kubernetes.io/last-change-trigger-time": "2026-11-24T10:58:35.5Z"
            },
        },
        "addressType": "IPv4",
        "endpoints": [
            { "addresses": ["10.0.0.1", "10.0.0.2", "fd00::1", "x"], "hostname": "a", "zone": "z",
              "targetRef": { "kind": "Pod", "name": "web-0", "uid": "u" },
              "conditions": { "serving": true } },
            { "addresses": ["10.0.0.3"], "conditions": { "ready": false },
              "targetRef": { "kind": "Node", "name": "n" }, "zone": "z" },
        ],
        "ports": [{ "name": "dns", "protocol": "UDP", "port": 53 }, { "name": "all" }],
    })
}

#[test]
fn an_object_with_a_name_and_a_wrong_field_fails_alone() {
    let metadata = json!({ "metadata": { "name": "a", "namespace": "n", "resourceVersion": "7" } });
    for (number, octets) in [(2, &b"\x08"[..]), (3, b"\x18\xff\xff\xff\xff\x0f"), (3, b"\x0a\x09x")]
    {
        let mut slice = message("EndpointSlice", &metadata);
        push_octets(&mut slice, number, octets);
        let (decoded, version) = protobuf::decode::any_object(Kind::EndpointSlice, &slice).unwrap();
        let Decoded::Undecodable(id, _) = decoded else { panic!("{decoded:?}") };
        assert_eq!((&*id.namespace, &*id.name, &*version), ("n", "a", "7"));
    }
    for octets in [&b""[..], b"k8s\0", b"\x12\x00", b"\x0a\x05x", b"\x0a\x03\x0a\x01\xff"] {
        assert!(protobuf::decode::any_object(Kind::Service, octets).is_err(), "{octets:?}");
    }
}

#[test]
fn events_are_changes_bookmarks_and_errors() {
    let read = |word: &str, kind: &str, json: Value| {
        protobuf::decode::event(Kind::Namespace, &event(word, kind, &json)[4..]).unwrap()
    };
    let named = json!({ "metadata": { "name": "a", "resourceVersion": "7" } });
    let added = read("ADDED", "Namespace", named.clone());
    let WatchEvent::Object(Decoded::Change(change), version) = added else { panic!() };
    assert!(matches!(*change, Change::Namespace(_)) && version == "7");
    let gone = read("DELETED", "Namespace", named);
    let WatchEvent::Object(Decoded::Change(change), _) = gone else { panic!() };
    assert!(matches!(*change, Change::Gone(Kind::Namespace, id) if id.name == "a"));
    let metadata = json!({ "resourceVersion": "9" });
    let mark = read("BOOKMARK", "Namespace", json!({ "metadata": metadata }));
    assert!(matches!(mark, WatchEvent::Bookmark(version, false) if version == "9"));
    let error = read("ERROR", "Status", json!({ "code": 410, "message": "too old" }));
    assert!(matches!(error, WatchEvent::Error(410, text) if text == "too old"));
    assert_eq!(protobuf::decode::event(Kind::Pod, b"").unwrap_err(), Malformed);
}

/// Returns the pieces of a list that comes in parts of so many octets.
fn pieces(octets: &[u8], step: usize) -> (Vec<String>, bool) {
    let (mut splitter, mut pieces) = (ListSplitter::default(), Vec::new());
    for part in octets.chunks(step) {
        let taken = splitter.take(part, |piece| {
            pieces.push(format!("{piece:?}"));
            Ok::<(), ConnectError>(())
        });
        taken.unwrap();
    }
    (pieces, splitter.is_at_end())
}

#[test]
fn a_list_is_cut_into_its_items_wherever_its_octets_are_cut() {
    let items = ["a", "b", "c"].map(|name| json!({ "metadata": { "name": name } }));
    let metadata = json!({ "resourceVersion": "5", "continue": "next" });
    let octets = list("Namespace", &metadata, &items);
    let mut expected = vec![format!("{:?}", Piece::Metadata(&message("ListMeta", &metadata)))];
    expected
        .extend(items.iter().map(|item| format!("{:?}", Piece::Item(&message("Namespace", item)))));
    for step in 1..=octets.len() {
        assert_eq!(pieces(&octets, step), (expected.clone(), true), "in parts of {step} octets");
    }
    let metadata = protobuf::decode::list_metadata(&message("ListMeta", &metadata)).unwrap();
    assert_eq!((&*metadata.resource_version, &*metadata.continuation), ("5", "next"));
    // What stands behind the list in its envelope may be absent, but nothing of the list.
    let end = octets.len() - 4;
    for len in 0..octets.len() {
        assert_eq!(pieces(&octets[..len], 7).1, [end, end + 2].contains(&len), "{len} octets");
    }
}

#[test]
fn a_watch_is_cut_into_events_wherever_its_octets_are_cut() {
    let texts: [&[u8]; 4] = [b"one", b"", b"three", &[7; 300]];
    let framed = texts.iter().flat_map(|it| [&(it.len() as u32).to_be_bytes()[..], it].concat());
    let octets: Vec<u8> = framed.chain(*b"\0\0\0\x09cut").collect();
    for step in 1..octets.len() {
        let (mut splitter, mut events) = (EventSplitter::default(), Vec::new());
        for part in octets.chunks(step) {
            let taken = splitter.take(part, |event| {
                events.push(event.to_vec());
                Ok::<(), TooLarge>(())
            });
            taken.unwrap();
        }
        assert_eq!(events, texts, "in parts of {step} octets");
    }
}

#[test]
fn what_is_longer_than_any_object_is_refused_before_it_comes() {
    let length = (OBJECT_BYTES_MAX as u32 + 1).to_be_bytes();
    let taken = EventSplitter::default().take(&length, |_| Ok::<(), TooLarge>(()));
    assert_eq!(taken, Err(TooLarge));
    let mut octets = b"k8s\0\x12\xff\xff\xff\xff\x0f".to_vec();
    octets.extend(b"\x12\xff\xff\xff\x7f");
    let taken = ListSplitter::default().take(&octets, |_| Ok::<(), ConnectError>(()));
    assert!(matches!(taken, Err(ConnectError::TooLarge(_))));
    // An item that is longer than the list that it is in, and what is no list at all.
    for octets in
        [&b"k8s\0\x12\x04\x12\x05ab"[..], b"{\"kind\":", b"k8s\0\x12\x01\x12", b"k8s\0\x0b"]
    {
        let taken = ListSplitter::default().take(octets, |_| Ok::<(), ConnectError>(()));
        assert!(matches!(taken, Err(ConnectError::Decode(_))), "{octets:?}");
    }
}

/// A namespace with a version.
fn named(name: &str, version: &str) -> Value {
    json!({ "metadata": { "name": name, "resourceVersion": version } })
}

#[test]
fn objects_are_followed_in_protocol_buffers_where_the_server_has_them() {
    let end = json!({ "metadata": { "resourceVersion": "5", "annotations": {
        "k8s.io/initial-events-end": "true" } } });
    let streamed = [
        event("ADDED", "Namespace", &named("a", "3")),
        event("BOOKMARK", "Namespace", &end),
        event("ADDED", "Namespace", &named("b", "6")),
        event("ERROR", "Status", &json!({ "code": 410, "message": "too old" })),
    ];
    let page = list("Namespace", &json!({ "resourceVersion": "8" }), &[named("c", "7")]);
    let script = move |number: usize, head: &str, stream: &mut std::net::TcpStream| {
        let accept = "application/vnd.kubernetes.protobuf,application/json";
        assert!(head.to_lowercase().contains(&format!("accept: {accept}\r\n")), "{head}");
        let path = head.split(' ').nth(1).unwrap();
        let refusal = enveloped(&message("Status", &json!({ "code": 422, "message": "no" })));
        match number {
            0 => write_octets(stream, "200 OK", &streamed.concat()),
            1 if is_stream(path) => write_octets(stream, "422 Unprocessable", &refusal),
            _ if is_watch(path) => write_octets(stream, "403 Forbidden", &refusal),
            _ => write_octets(stream, "200 OK", &page),
        }
    };
    let place = |url: &str| Place::Endpoint { url: url.to_owned(), ca: None, client: None };
    let mut followed = follow_place(script, place);
    followed.expect(&["begin", "+a", "synced", "connected", "+b"]);
    followed.expect_failure("too old");
    followed.expect(&["begin", "+c", "synced"]);
    followed.expect_failure("denies access (403), see the roles of the account: no");
}
