//! Objects of a cluster as scenario files have them, a line for each.
//!
//! ```text
//! namespace shop
//! service shop/web 10.96.0.1,fd00::1 http:80 dns:53/udp   also: `headless`, `=NAME` of an alias
//! service shop/web 10.96.0.1 http:80 @192.0.2.1 @lb.example   external addresses and host names
//! slice shop/web-1 of web http:80 at 10.1.0.1/host=a/zone=z/pod=p 10.1.0.2/unready
//! slice shop/far-1 of web from east http:80 at 10.1.0.1   an imported one
//! import shop/web 10.97.0.1 http:80                       also: `headless`
//! pod shop/p 10.1.0.5
//! ```

use std::net::IpAddr;
use zonda_cluster::object::{
    Endpoint, EndpointSlice, Namespace, ObjectName, Pod, Port, Protocol, Service, ServiceImport,
    ServiceKind,
};
use zonda_cluster::{Builder, Change, ExternalNames, Options, PodNames};
use zonda_wire::Name;
use zonda_zone::HashSeed;

/// The cluster of a scenario.
pub struct ScenarioCluster {
    /// The objects so far.
    pub builder: Builder,
    /// The apex of the names.
    pub apex: Name,
    /// The zones of the addresses' names.
    pub reverse: Vec<Name>,
    /// Whether names that it lacks are left to the zone around it.
    pub falls_through: bool,
    /// The address of the server.
    pub own: IpAddr,
    /// When its objects have changed last, seconds since 1970.
    pub changed: u32,
}

impl ScenarioCluster {
    /// A cluster of these options, without objects.
    pub fn new(options: &str, seed: HashSeed) -> Self {
        let mut words = options.split_whitespace();
        let apex: Name = words.next().unwrap().parse().unwrap();
        let (mut options, mut reverse, mut falls_through) = (Options::default(), Vec::new(), false);
        let (mut own, mut changed) = (IpAddr::from([192, 0, 2, 53]), 1);
        for word in words {
            match word.split_once('=').unwrap_or((word, "")) {
                ("ttl", ttl) => options.ttl = ttl.parse().unwrap(),
                ("pods", "insecure") => options.pods = PodNames::Insecure,
                ("pods", "verified") => options.pods = PodNames::Verified,
                ("ignore-empty-services", _) => options.ignores_empty_services = true,
                ("endpoint-pod-names", _) => options.has_pod_labels = true,
                ("zonal", _) => options.has_zones = true,
                ("external", label) => {
                    let label = if label.is_empty() { "dns" } else { label };
                    let server_label = label.to_owned();
                    options.external = Some(ExternalNames { server_label, has_endpoints: false });
                }
                ("external-headless", _) => {
                    let external = options.external.as_mut();
                    external.unwrap().has_endpoints = true;
                }
                ("multicluster", _) => options.is_multicluster = true,
                ("namespaces", names) => {
                    options.namespaces = names.split(',').map(str::to_owned).collect();
                }
                ("namespace-labels", _) => options.exposes_known_namespaces = true,
                ("kube-dns", _) => options.is_kube_dns = true,
                ("reverse", names) => {
                    reverse = names.split(',').map(|it| it.parse().unwrap()).collect();
                }
                ("fall-through", _) => falls_through = true,
                ("own", address) => own = address.parse().unwrap(),
                ("changed", seconds) => changed = seconds.parse().unwrap(),
                _ => panic!("unknown option {word}"),
            }
        }
        let builder = Builder::new(&apex, seed, options);
        Self { builder, apex, reverse, falls_through, own, changed }
    }

    /// Takes the object of a line.
    pub fn add(&mut self, line: &str) {
        let mut words = line.split_whitespace().peekable();
        let (kind, id) = (words.next().unwrap(), words.next().unwrap());
        if kind == "namespace" {
            let namespace = Namespace { name: id.to_owned(), opts_out_of_autopath: false };
            return self.builder.apply(Change::Namespace(namespace));
        }
        let id = object_name(id);
        self.builder.apply(match kind {
            "service" => {
                let kind = match words.next().unwrap() {
                    "headless" => ServiceKind::Headless,
                    text => match text.strip_prefix('=') {
                        Some(target) => ServiceKind::ExternalName(target.to_owned()),
                        None => ServiceKind::ClusterIp(addresses(text)),
                    },
                };
                let words: Vec<&str> = words.collect();
                let (external, ports): (Vec<&str>, Vec<&str>) =
                    words.into_iter().partition(|word| word.starts_with('@'));
                let ports = ports.into_iter().map(port).collect();
                let (mut external_ips, mut external_names) = (Vec::new(), Vec::new());
                for text in external.iter().map(|word| &word[1..]) {
                    match text.parse() {
                        Ok(address) => external_ips.push(address),
                        Err(_) => external_names.push(text.to_owned()),
                    }
                }
                Change::Service(Service { id, kind, ports, external_ips, external_names })
            }
            "import" => {
                let text = words.next().unwrap();
                let is_headless = text == "headless";
                let addresses = if is_headless { Vec::new() } else { addresses(text) };
                let ports = words.map(port).collect();
                Change::ServiceImport(ServiceImport { id, addresses, is_headless, ports })
            }
            "pod" => {
                let addresses = words.map(|it| it.parse().unwrap()).collect();
                Change::Pod(Pod { id, addresses, is_on_host_network: false })
            }
            "slice" => {
                assert_eq!(words.next(), Some("of"), "{line}");
                let service = words.next().unwrap().to_owned();
                let is_imported = words.next_if_eq(&"from").is_some();
                let source_cluster =
                    if is_imported { words.next().unwrap().to_owned() } else { String::new() };
                let ports = words.by_ref().take_while(|it| *it != "at").map(port).collect();
                let endpoints = words.map(endpoint).collect();
                let trigger_time = None;
                Change::EndpointSlice(EndpointSlice {
                    id,
                    service,
                    source_cluster,
                    is_imported,
                    ports,
                    endpoints,
                    trigger_time,
                })
            }
            _ => panic!("unknown object {line}"),
        });
    }
}

/// Reads `NAMESPACE/NAME`.
fn object_name(text: &str) -> ObjectName {
    let (namespace, name) = text.split_once('/').unwrap();
    ObjectName { namespace: namespace.to_owned(), name: name.to_owned() }
}

/// Reads addresses with commas between them.
fn addresses(text: &str) -> Vec<IpAddr> {
    text.split(',').map(|it| it.parse().unwrap()).collect()
}

/// Reads `NAME:NUMBER/PROTOCOL`; the protocol is TCP if there is none.
fn port(text: &str) -> Port {
    let (name, rest) = text.split_once(':').unwrap();
    let (number, protocol) = rest.split_once('/').unwrap_or((rest, "tcp"));
    let protocol = match protocol {
        "tcp" => Protocol::Tcp,
        "udp" => Protocol::Udp,
        _ => Protocol::Sctp,
    };
    Port { name: name.to_owned(), protocol, number: Some(number.parse().unwrap()) }
}

/// Reads an address, and what the endpoint has beside it.
fn endpoint(text: &str) -> Endpoint<'_> {
    let mut parts = text.split('/');
    let mut endpoint = Endpoint {
        address: parts.next().unwrap().parse().unwrap(),
        hostname: "",
        pod: "",
        zone: "",
        ready: true,
    };
    for part in parts {
        match part.split_once('=').unwrap_or((part, "")) {
            ("host", name) => endpoint.hostname = name,
            ("pod", name) => endpoint.pod = name,
            ("zone", name) => endpoint.zone = name,
            ("unready", _) => endpoint.ready = false,
            _ => panic!("unknown part {part}"),
        }
    }
    endpoint
}
