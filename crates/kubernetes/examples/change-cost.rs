//! Tells what changes of endpoint slices cost without a network: decoding, taking, and publishing
//! them: `change-cost [json|protobuf] [SERVICES] [PODS] [CHANGES]`.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "../tests/messages/mod.rs"]
mod messages;

use serde_json::json;
use std::net::Ipv4Addr;
use std::time::Instant;
use zonda_cluster::{Builder, Change, Cluster, HashSeed, Kind, Options};
use zonda_kubernetes::decode::{self, Decoded, WatchEvent};
use zonda_kubernetes::protobuf;

/// Changes that are published together.
const GATHERED: usize = 20;

/// The numbers of the pods of a service.
fn pods_of(service: usize, services: usize, pods: usize) -> std::ops::Range<usize> {
    pods * (service - 1) / services + 1..pods * service / services + 1
}

/// An address of a number.
fn address(start: u32, number: usize) -> Ipv4Addr {
    Ipv4Addr::from(start + number as u32)
}

/// An event with the slice of a service, as an API server writes it; the first endpoint has an
/// address of its own.
fn event(service: usize, pods: std::ops::Range<usize>, first: Option<Ipv4Addr>) -> String {
    let (name, first_pod) = (format!("s{service}"), pods.start);
    let endpoints = pods.map(|pod| {
        let own = first.filter(|_| pod == first_pod);
        let address = own.unwrap_or_else(|| address(0x0a80_0000, pod));
        json!({
            "addresses": [address],
            "conditions": { "ready": true, "serving": true, "terminating": false },
            "nodeName": format!("node-{:04}", pod / 30),
            "targetRef": {
                "kind": "Pod",
                "namespace": "default",
                "name": format!("{name}-6d4cf56db6-{pod:05x}"),
                "uid": format!("00000000-0000-4000-9000-{pod:012x}"),
            },
            "zone": format!("zone-{}", ["a", "b", "c"][pod % 3]),
        })
    });
    let object = json!({
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {
            "name": format!("{name}-00000"),
            "namespace": "default",
            "uid": format!("00000000-0000-4000-8000-{service:012x}"),
            "resourceVersion": "123456",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                "app": name,
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
                "kubernetes.io/service-name": name,
            },
        },
        "addressType": "IPv4",
        "endpoints": endpoints.collect::<Vec<_>>(),
        "ports": [{ "name": "http", "protocol": "TCP", "port": 8080 }],
    });
    format!("{{\"type\":\"MODIFIED\",\"object\":{object}}}")
}

/// The CPU time of this process, µs.
fn cpu_micros() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse::<f64>().unwrap() / 1000.0
}

/// Decodes an event in one of the forms.
fn decoded(is_json: bool, octets: &[u8]) -> Change {
    let event = match is_json {
        true => decode::event(Kind::EndpointSlice, octets).unwrap(),
        false => protobuf::decode::event(Kind::EndpointSlice, octets).unwrap(),
    };
    match event {
        WatchEvent::Object(Decoded::Change(change), _) => *change,
        other => panic!("{other:?}"),
    }
}

/// Fills a builder with services, each with a slice of its pods.
fn fill(builder: &mut Builder, services: usize, pods: usize) {
    for service in 1..=services {
        let event = event(service, pods_of(service, services, pods), None);
        builder.apply(decoded(true, event.as_bytes()));
        let json = json!({
            "metadata": { "name": format!("s{service}"), "namespace": "default" },
            "spec": {
                "clusterIP": address(0x0a60_0100, service),
                "ports": [{ "name": "http", "port": 80 }],
            },
        });
        let json = json.to_string();
        builder.apply(decode::object(Kind::Service, json.as_bytes()).unwrap().0);
    }
}

/// An event in Protocol Buffers, without its length.
fn message(json: &str) -> Vec<u8> {
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    messages::event("MODIFIED", "EndpointSlice", &json["object"])[4..].to_vec()
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let is_json = arguments.next().is_some_and(|form| form == "json");
    let mut arguments = arguments.map(|it| it.parse::<usize>().unwrap());
    let services = arguments.next().unwrap_or(8200);
    let pods = arguments.next().unwrap_or(150_000);
    let changes = arguments.next().unwrap_or(20_000);
    let apex = "cluster.local".parse().unwrap();
    let mut builder = Builder::new(&apex, HashSeed(7), Options::default());
    fill(&mut builder, services, pods);
    let mut in_force: Cluster = builder.snapshot();
    let events = (0..changes).map(|number| {
        let service = 1 + number % services;
        let first = address(0x0ad0_0000, number);
        let event = event(service, pods_of(service, services, pods), Some(first));
        if is_json { event.into_bytes() } else { message(&event) }
    });
    let events: Vec<Vec<u8>> = events.collect();
    println!("{} octets an event", events.iter().map(Vec::len).sum::<usize>() / changes);
    let before = cpu_micros();
    events.iter().for_each(|event| drop(decoded(is_json, event)));
    println!("decode alone {:.1} µs", (cpu_micros() - before) / changes as f64);
    let mut spent = [0.0; 3];
    for events in events.chunks(GATHERED) {
        for event in events {
            let before = Instant::now();
            let change = decoded(is_json, event);
            spent[0] += before.elapsed().as_secs_f64();
            let before = Instant::now();
            builder.apply(change);
            spent[1] += before.elapsed().as_secs_f64();
        }
        let before = Instant::now();
        in_force = builder.snapshot();
        spent[2] += before.elapsed().as_secs_f64();
    }
    let [decode, apply, publish] = spent.map(|it| it * 1e6 / changes as f64);
    println!("decode {decode:.1}, apply {apply:.1}, publish {publish:.1} µs");
    println!("{:?}", in_force.counts());
}
