//! A Kubernetes API server with the objects of a workload, as a process on this machine.
//!
//! Objects are written into etcd, below the API server, which starts when they are there: a
//! hundred thousand take seconds that way and many minutes through the API. There are no
//! controllers.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fmt, thread};

use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde::Deserialize;
use serde_json::{Value, json};
use zonda_cluster::Kind as ObjectKind;
use zonda_kubernetes::await_lists;

use super::ground::Ground;
use super::place::Place;
use crate::server::locate::locate;
use crate::server::running::free_port;
use crate::server::{Kind, LocatedProgram, MissingServer, Role, RunningServer, StartError};
use crate::template::{TemplateError, Values};

/// How etcd is found and started.
const STORE: &str = include_str!("../../../../bench/kubernetes/etcd.toml");
/// How the API server is found and started.
const API: &str = include_str!("../../../../bench/kubernetes/kube-apiserver.toml");
/// Name of the variable whose kubeconfig leads to an API server that is there already.
const KUBECONFIG: &str = "ZONDA_BENCH_KUBECONFIG";
/// How long etcd may take until it answers, and to answer.
const STORE_LIMIT: Duration = Duration::from_secs(60);
/// How long the API server may take until it takes connections, and then until it has sent all
/// objects.
const API_LIMIT: Duration = Duration::from_secs(120);
/// Objects that are written in one transaction.
const OBJECTS_AT_ONCE: usize = 500;
/// The most endpoints of a slice, as the controller of slices has it.
const ENDPOINTS_MAX: u64 = 100;
/// Address before that of the first service: 10.96.1.0, behind what the API takes for itself.
const SERVICES_START: u32 = 0x0a60_0100;
/// Address before that of the first endpoint: 10.128.0.0.
const ENDPOINTS_START: u32 = 0x0a80_0000;
/// Octets in front of a point of the curve P-256 in a public key of X.509.
const P256_HEAD: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// Topology zones of endpoints.
const TOPOLOGY_ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];

/// The objects of a cluster: services `s1` and so on in the namespace `default`, each with a
/// cluster address, a port and endpoints. Both numbers are templates.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objects {
    /// Number of the services.
    pub services: String,
    /// Number of the pods, all of them endpoints of services, as evenly as can be.
    pub pods: String,
}

impl Objects {
    /// Returns the numbers of services and of pods at a place.
    fn numbers(&self, place: &Place) -> Result<[u64; 2], TemplateError> {
        let number = |text: &str| {
            let filled = place.values.fill(text)?;
            filled.parse().map_err(|_| TemplateError::Unknown(filled))
        };
        Ok([number(&self.services)?, number(&self.pods)?])
    }
}

/// A running API server and the etcd below it; dropping it ends both.
pub struct Api {
    /// The configuration of clients.
    pub kubeconfig: PathBuf,
    /// API server and etcd, in the order in which they end; none where they run elsewhere.
    _servers: Option<[RunningServer; 2]>,
}

impl Api {
    /// Starts an API server that has these objects, in an empty folder.
    ///
    /// # Errors
    /// When a program is missing or does not come up.
    pub fn start(
        objects: &Objects,
        place: &Place,
        ground: &Ground,
        folder: &Path,
    ) -> Result<Self, ApiError> {
        let [services, pods] = objects.numbers(place)?;
        if let Some(kubeconfig) = std::env::var_os(KUBECONFIG) {
            return Ok(Self { kubeconfig: kubeconfig.into(), _servers: None });
        }
        let (store_port, api_port) = (free_port()?, free_port()?);
        let mut values = Values::default();
        values.set("port", store_port);
        values.set("peer_port", free_port()?);
        let mut store = start(STORE, "store", &values, &folder.join("etcd"), ground)?;
        wait(STORE_LIMIT, &mut store, || is_store_up(store_port))?;
        let mut writer = Writer::new(store_port);
        each_object(services, pods, |key, object| writer.put(&key, &object))?;
        writer.flush()?;
        let folder = folder.join("api");
        fs::create_dir_all(&folder)?;
        write_account_key(&folder)?;
        values.set("port", api_port);
        values.set("store_port", store_port);
        let mut api = start(API, "api", &values, &folder, ground)?;
        let is_up = || TcpStream::connect((Ipv4Addr::LOCALHOST, api_port)).is_ok();
        wait(API_LIMIT, &mut api, is_up)?;
        let kubeconfig = folder.join("kubeconfig");
        // It refuses lists while it starts, and its first lists take longer than later ones:
        // neither is a part of a server's start.
        let kinds = [ObjectKind::Namespace, ObjectKind::Service, ObjectKind::EndpointSlice];
        let place = zonda_kubernetes::Place::Kubeconfig(kubeconfig.clone(), None);
        await_lists(&place, &kinds, API_LIMIT).map_err(io::Error::other)?;
        Ok(Self { kubeconfig, _servers: Some([api, store]) })
    }
}

/// Starts one of the two programs, on the CPUs of the load.
fn start(
    kind: &str,
    role: &str,
    values: &Values,
    folder: &Path,
    ground: &Ground,
) -> Result<RunningServer, ApiError> {
    let (kind, role, located) = program(kind, role)?;
    fs::create_dir_all(folder)?;
    Ok(RunningServer::start(&kind, &located, &role, values, folder, &ground.load_cpus)?)
}

/// Returns how a program is started, and where it is.
fn program(kind: &str, role: &str) -> Result<(Kind, Role, LocatedProgram), ApiError> {
    let kind = Kind::parse(kind).expect("a test reads the files of both programs");
    let located = locate(&kind).map_err(ApiError::Missing)?;
    let role = kind.roles[role].clone();
    Ok((kind, role, located))
}

/// Waits until something is so.
fn wait(
    limit: Duration,
    server: &mut RunningServer,
    is_so: impl Fn() -> bool,
) -> Result<(), StartError> {
    let begin = Instant::now();
    while !is_so() {
        if server.has_ended() {
            return Err(StartError::Ended(server.last_words()));
        }
        if begin.elapsed() > limit {
            return Err(StartError::Silent(limit, server.last_words()));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Writes a new key for the tokens of accounts, which nothing uses, in its two halves.
fn write_account_key(folder: &Path) -> io::Result<()> {
    let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
    let unfit = |_| io::Error::other("no key can be made");
    let pair = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(unfit)?;
    let key = EcdsaKeyPair::from_pkcs8(algorithm, pair.as_ref(), &random);
    let key = key.map_err(|_| io::Error::other("the new key cannot be read"))?;
    let public = [P256_HEAD, key.public_key().as_ref()].concat();
    for (file, kind, octets) in [
        ("account.pem", "PRIVATE KEY", pair.as_ref()),
        ("account-public.pem", "PUBLIC KEY", &public),
    ] {
        let text = to_base64(octets);
        let pem = format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n");
        fs::write(folder.join(file), pem)?;
    }
    Ok(())
}

/// Calls a function with each object and the key below which etcd has it.
fn each_object(
    services: u64,
    pods: u64,
    mut call: impl FnMut(String, Value) -> io::Result<()>,
) -> io::Result<()> {
    let own = metadata("", "default", 0);
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": own,
        "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}});
    call("namespaces/default".to_owned(), space)?;
    call("pods/default/client".to_owned(), client_pod())?;
    for number in 1..=services {
        let name = format!("s{number}");
        let address = ip4(SERVICES_START, number);
        call(format!("ipaddresses/{address}"), ip_address(&address, &name))?;
        call(format!("services/specs/default/{name}"), service(&name, number, &address))?;
        let end = pods * number / services;
        for first in (pods * (number - 1) / services..end).step_by(ENDPOINTS_MAX as usize) {
            let numbers = first + 1..=end.min(first + ENDPOINTS_MAX);
            let slice_name = format!("{name}-{first:05x}");
            let slice = slice(&slice_name, &name, number, numbers);
            call(format!("endpointslices/default/{slice_name}"), slice)?;
        }
    }
    Ok(())
}

/// Returns the metadata of an object; `number` makes its identity.
fn metadata(namespace: &str, name: &str, number: u64) -> Value {
    let mut metadata = json!({
        "name": name,
        "uid": format!("00000000-0000-4000-8000-{number:012x}"),
        "creationTimestamp": "2026-01-01T00:00:00Z",
    });
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    metadata
}

/// Returns a pod with the address of the load generator, which autopath of CoreDNS looks for.
fn client_pod() -> Value {
    let containers = [json!({"name": "client", "image": "example.org/client"})];
    let addresses = [json!({"ip": "127.0.0.1"})];
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata("default", "client", 0),
        "spec": {"containers": containers, "nodeName": "node-0000"},
        "status": {"phase": "Running", "podIP": "127.0.0.1", "podIPs": addresses}})
}

/// Returns the allocation of a service's address.
fn ip_address(address: &str, service: &str) -> Value {
    let mut metadata = metadata("", address, 0);
    metadata["labels"] = json!({
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    });
    let parent =
        json!({"group": "", "resource": "services", "namespace": "default", "name": service});
    json!({"apiVersion": "networking.k8s.io/v1", "kind": "IPAddress", "metadata": metadata,
        "spec": {"parentRef": parent}})
}

/// Returns a service with this address.
fn service(name: &str, number: u64, address: &str) -> Value {
    let mut metadata = metadata("default", name, number);
    metadata["labels"] = json!({"app": name});
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "type": "ClusterIP",
            "clusterIP": address,
            "clusterIPs": [address],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
            "ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080}],
            "selector": {"app": name},
            "sessionAffinity": "None",
        },
        "status": {"loadBalancer": {}},
    })
}

/// Returns a slice with endpoints of these numbers, as the controller of slices writes it.
fn slice(name: &str, service: &str, number: u64, endpoints: impl Iterator<Item = u64>) -> Value {
    let mut metadata = metadata("default", name, number);
    metadata["labels"] = json!({
        "app": service,
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        "kubernetes.io/service-name": service,
    });
    let endpoint = |endpoint: u64| {
        let zone = TOPOLOGY_ZONES[(endpoint % TOPOLOGY_ZONES.len() as u64) as usize];
        json!({
            "addresses": [ip4(ENDPOINTS_START, endpoint)],
            "conditions": {"ready": true, "serving": true, "terminating": false},
            "nodeName": format!("node-{:04}", endpoint / 30),
            "targetRef": {
                "kind": "Pod",
                "namespace": "default",
                "name": format!("{service}-6d4cf56db6-{endpoint:05x}"),
                "uid": format!("00000000-0000-4000-9000-{endpoint:012x}"),
            },
            "zone": zone,
        })
    };
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata,
        "addressType": "IPv4",
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
        "endpoints": endpoints.map(endpoint).collect::<Vec<_>>(),
    })
}

/// Returns the address of a number behind another one.
fn ip4(start: u32, number: u64) -> String {
    Ipv4Addr::from(start.wrapping_add(number as u32)).to_string()
}

/// Whether etcd answers on this port.
fn is_store_up(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .and_then(|mut stream| request(&mut stream, "/v3/kv/range", "{\"key\": \"AA==\"}"))
        .is_ok_and(|body| body.contains("header"))
}

/// Writes objects into etcd, many in a transaction.
struct Writer {
    port: u16,
    /// Operations of the next transaction in JSON.
    operations: String,
    /// Number of these operations.
    count: usize,
}

impl Writer {
    /// Makes a writer for the etcd on this port.
    fn new(port: u16) -> Self {
        Self { port, operations: String::new(), count: 0 }
    }

    /// Writes an object, now or with the next.
    fn put(&mut self, key: &str, object: &Value) -> io::Result<()> {
        let key = to_base64(format!("/registry/{key}").as_bytes());
        let value = to_base64(object.to_string().as_bytes());
        let comma = if self.count > 0 { "," } else { "" };
        // Writing to a text does not fail.
        let _ = write!(
            self.operations,
            "{comma}{{\"requestPut\":{{\"key\":\"{key}\",\"value\":\"{value}\"}}}}"
        );
        self.count += 1;
        if self.count < OBJECTS_AT_ONCE { Ok(()) } else { self.flush() }
    }

    /// Writes what is left.
    fn flush(&mut self) -> io::Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        let body = format!("{{\"success\":[{}]}}", self.operations);
        self.operations.clear();
        self.count = 0;
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        let reply = request(&mut stream, "/v3/kv/txn", &body)?;
        match reply.contains("\"succeeded\":true") {
            true => Ok(()),
            false => Err(io::Error::other(format!("etcd refuses objects: {reply}"))),
        }
    }
}

/// Sends a request to etcd's interface of HTTP, and returns the body of the response.
fn request(stream: &mut TcpStream, path: &str, body: &str) -> io::Result<String> {
    stream.set_read_timeout(Some(STORE_LIMIT))?;
    let length = body.len();
    let head = format!("POST {path} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    let (_, body) = response.split_once("\r\n\r\n").ok_or(io::ErrorKind::InvalidData)?;
    Ok(body.to_owned())
}

/// Encodes octets in base64 (rfc4648#4).
fn to_base64(octets: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(octets.len().div_ceil(3) * 4);
    for group in octets.chunks(3) {
        let octet = |place: usize| usize::from(group.get(place).copied().unwrap_or_default());
        let bits = octet(0) << 16 | octet(1) << 8 | octet(2);
        for place in 0..4 {
            let digit = DIGITS[bits >> (18 - 6 * place) & 63]; // 63 is the last
            text.push(if place <= group.len() { digit.into() } else { '=' });
        }
    }
    text
}

/// Why there is no API server.
#[derive(Debug)]
pub enum ApiError {
    /// A program is not installed.
    Missing(MissingServer),
    /// A number of objects is none.
    Template(TemplateError),
    /// A program does not come up.
    Start(StartError),
    /// A file, or the writing of objects.
    System(io::Error),
}

impl From<TemplateError> for ApiError {
    fn from(error: TemplateError) -> Self {
        Self::Template(error)
    }
}

impl From<StartError> for ApiError {
    fn from(error: StartError) -> Self {
        Self::Start(error)
    }
}

impl From<io::Error> for ApiError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(MissingServer(reason)) => f.write_str(reason),
            Self::Template(error) => error.fmt(f),
            Self::Start(error) => write!(f, "the API server or its etcd: {error}"),
            Self::System(error) => write!(f, "the API server or its etcd: {error}"),
        }
    }
}

impl std::error::Error for ApiError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_both_programs_are_read_and_have_their_roles() {
        for (text, role) in [(STORE, "store"), (API, "api")] {
            assert!(Kind::parse(text).unwrap().roles.contains_key(role), "{role}");
        }
    }

    #[test]
    fn objects_have_keys_and_as_many_endpoints_as_are_asked_for() {
        let (mut keys, mut endpoints) = (Vec::new(), 0);
        let take = |key: String, object: Value| {
            keys.push(key);
            endpoints += object["endpoints"].as_array().map_or(0, Vec::len);
            Ok(())
        };
        each_object(2, 300, take).unwrap();
        assert_eq!(endpoints, 300);
        assert_eq!(
            keys[..6],
            [
                "namespaces/default",
                "pods/default/client",
                "ipaddresses/10.96.1.1",
                "services/specs/default/s1",
                "endpointslices/default/s1-00000",
                "endpointslices/default/s1-00064",
            ]
        );
        assert_eq!(keys.len(), 10);
    }

    #[test]
    fn octets_are_encoded_in_base64() {
        let of = |text: &str| to_base64(text.as_bytes());
        assert_eq!(["", "f", "fo", "foo"].map(of), ["", "Zg==", "Zm8=", "Zm9v"]);
    }
}
