//! What to ask about a cluster: every name that its objects make, and names that are wrong.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;

use crate::client::{Question, name_bytes};
use crate::generate::Random;

/// Types that are asked at the name of a service.
const SERVICE_TYPES: &[&str] = &["A", "AAAA", "SRV", "TXT", "CNAME", "NS"];
/// Types that are asked at the name of an endpoint, a port or a pod.
const ADDRESS_TYPES: &[&str] = &["A", "AAAA", "SRV"];
/// Types that are asked at names above services.
const UPPER_TYPES: &[&str] = &["A", "AAAA", "TXT", "SRV", "NS", "SOA"];
/// Types of which one is asked at a wrong name.
const WRONG_TYPES: &[&str] = &["A", "AAAA", "SRV", "PTR", "TXT", "CNAME", "NS", "SOA", "MX"];
/// Label of a slice with the service whose endpoints it has.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";
/// Label of an imported slice with the service whose endpoints it has.
const IMPORT_LABEL: &str = "multicluster.kubernetes.io/service-name";
/// Label of an imported slice with the cluster that it is from.
const CLUSTER_LABEL: &str = "multicluster.kubernetes.io/source-cluster";
/// Buffer size of most questions: large answers come whole, without TCP.
const UDP_SIZE: u16 = 4096;
/// One question of so many is without EDNS, and one is in another case.
const RARELY: usize = 8;
/// Octets of the longest name (rfc1035#2.3.4).
const NAME_OCTETS_MAX: usize = 255;
/// Octets of the longest label (rfc1035#2.3.4).
const LABEL_OCTETS_MAX: usize = 63;

/// Zones in which a cluster's names are, without dots at their ends.
#[derive(Clone, Copy, Debug)]
pub struct ClusterZones<'a> {
    /// Zone of services and pods, such as `cluster.local`.
    pub cluster: &'a str,
    /// Zone of service imports, such as `clusterset.local`; empty for none.
    pub multicluster: &'a str,
}

/// Returns questions about everything that these objects (as the API server lists them) give a
/// name, and about as many wrong names as `wrong` says; the order and the wrong names depend on the
/// seed alone.
pub fn questions(
    objects: &[Value],
    zones: ClusterZones<'_>,
    wrong: usize,
    seed: u64,
) -> Vec<Question> {
    let mut list = NameList { zones, entries: BTreeSet::new(), namespaces: Vec::new() };
    list.add_zone(zones.cluster);
    if !zones.multicluster.is_empty() {
        list.add_zone(zones.multicluster);
    }
    for object in objects {
        match text(&object["kind"]) {
            "Namespace" => list.add_namespace(object),
            "Service" => list.add_service(object, zones.cluster, &object["spec"]["clusterIPs"]),
            "ServiceImport" if !zones.multicluster.is_empty() => {
                list.add_service(object, zones.multicluster, &object["spec"]["ips"]);
            }
            "EndpointSlice" => list.add_slice(object),
            "Pod" => list.add_pod(object),
            _ => {}
        }
    }
    let mut random = Random::new(seed);
    let right: Vec<_> = list.entries.into_iter().collect();
    let source = WrongNames { zone: zones.cluster, right: &right, namespaces: &list.namespaces };
    let wrong: Vec<_> = (0..wrong).map(|_| source.draw(&mut random)).collect();
    let all = right.iter().cloned().chain(wrong).filter(|(name, _)| fits(name));
    all.map(|(name, record_type)| question(&name, record_type, &mut random)).collect()
}

/// Names that exist, with the types to ask.
struct NameList<'a> {
    zones: ClusterZones<'a>,
    /// Names and types, each pair once.
    entries: BTreeSet<(String, &'static str)>,
    namespaces: Vec<String>,
}

impl NameList<'_> {
    /// Adds a name with these types.
    fn add(&mut self, name: &str, types: &[&'static str]) {
        self.entries.extend(types.iter().map(|record_type| (name.to_owned(), *record_type)));
    }

    /// Adds the reverse name of an address.
    fn add_reverse(&mut self, address: &str) {
        if let Ok(address) = address.parse() {
            self.add(&reverse_name(address), &["PTR", "A"]);
        }
    }

    /// Adds the names that each zone of a cluster has.
    fn add_zone(&mut self, zone: &str) {
        self.add(zone, UPPER_TYPES);
        for label in ["svc", "pod", "dns-version", "ns.dns", "dns", "nx"] {
            self.add(&format!("{label}.{zone}"), UPPER_TYPES);
        }
    }

    /// Adds a namespace, below which services and pods are.
    fn add_namespace(&mut self, object: &Value) {
        let name = text(&object["metadata"]["name"]);
        self.namespaces.push(name.to_owned());
        for zone in [self.zones.cluster, self.zones.multicluster] {
            if !zone.is_empty() {
                self.add(&format!("{name}.svc.{zone}"), UPPER_TYPES);
                self.add(&format!("{name}.pod.{zone}"), UPPER_TYPES);
            }
        }
    }

    /// Adds a service with its ports and these addresses.
    fn add_service(&mut self, object: &Value, zone: &str, addresses: &Value) {
        let metadata = &object["metadata"];
        let name = service_name(text(&metadata["name"]), text(&metadata["namespace"]), zone);
        self.add(&name, SERVICE_TYPES);
        self.add_ports(&name, &object["spec"]["ports"]);
        for address in items(addresses) {
            self.add_reverse(text(address));
        }
    }

    /// Adds ports below a service's name: right, without underscores, and of another protocol.
    fn add_ports(&mut self, service: &str, ports: &Value) {
        for port in items(ports) {
            let protocol = text(&port["protocol"]).to_lowercase();
            let other = if protocol == "tcp" { "udp" } else { "tcp" };
            let name = match text(&port["name"]) {
                "" => port["port"].to_string(),
                name => name.to_owned(),
            };
            self.add(&format!("_{name}._{protocol}.{service}"), &["SRV", "A", "AAAA", "TXT"]);
            self.add(&format!("{name}.{protocol}.{service}"), &["SRV", "A"]);
            self.add(&format!("_{name}._{other}.{service}"), &["SRV"]);
        }
    }

    /// Adds the endpoints of a slice, by each label that one may have.
    fn add_slice(&mut self, object: &Value) {
        let metadata = &object["metadata"];
        let (labels, namespace) = (&metadata["labels"], text(&metadata["namespace"]));
        let import = text(&labels[IMPORT_LABEL]);
        let (service, zone) = match import {
            "" => (text(&labels[SERVICE_LABEL]), self.zones.cluster),
            import => (import, self.zones.multicluster),
        };
        if service.is_empty() || zone.is_empty() {
            return;
        }
        let service = service_name(service, namespace, zone);
        self.add_ports(&service, &object["ports"]);
        let cluster = text(&labels[CLUSTER_LABEL]);
        for endpoint in items(&object["endpoints"]) {
            let addresses = items(&endpoint["addresses"]).iter().map(text);
            let mut names: Vec<String> = addresses.clone().map(dashed).collect();
            let further = [&endpoint["hostname"], &endpoint["targetRef"]["name"]];
            names.extend(further.map(text).map(str::to_owned));
            for name in names.iter().filter(|name| !name.is_empty()) {
                self.add(&format!("{name}.{service}"), ADDRESS_TYPES);
                if !cluster.is_empty() {
                    self.add(&format!("{name}.{cluster}.{service}"), ADDRESS_TYPES);
                }
            }
            // CoreDNS takes an imported endpoint's PTR record from a label that the slice does not
            // have, fails to encode the name and sends nothing.
            if import.is_empty() {
                addresses.for_each(|address| self.add_reverse(address));
            }
        }
    }

    /// Adds a pod by each of its addresses.
    fn add_pod(&mut self, object: &Value) {
        let (zone, namespace) = (self.zones.cluster, text(&object["metadata"]["namespace"]));
        for address in items(&object["status"]["podIPs"]) {
            let address = text(&address["ip"]);
            self.add(&format!("{}.{namespace}.pod.{zone}", dashed(address)), ADDRESS_TYPES);
            self.add_reverse(address);
        }
    }
}

/// What wrong names are made from.
struct WrongNames<'a> {
    zone: &'a str,
    /// Names that exist; never empty.
    right: &'a [(String, &'static str)],
    namespaces: &'a [String],
}

impl WrongNames<'_> {
    /// Returns a name that is wrong, most of the time, made from a right one.
    fn draw(&self, random: &mut Random) -> (String, &'static str) {
        let record_type = *random.pick(WRONG_TYPES);
        let (name, _) = random.pick(self.right);
        let (first, rest) = name.split_once('.').unwrap_or((name, ""));
        let wrong = match random.below(12) {
            0 => format!("nx.{name}"),
            1 => rest.to_owned(),
            2 => format!("x{name}"),
            3 => match rest.split_once('.') {
                Some((second, rest)) => format!("{second}.{first}.{rest}"),
                None => format!("{first}.{first}"),
            },
            4 => name.replacen(".svc.", ".pod.", 1),
            5 => name.replacen(".svc.", ".any.", 1),
            6 => format!("{first}.{name}"),
            7 => {
                let namespace = self.namespaces.get(random.below(self.namespaces.len().max(1)));
                let namespace = namespace.map_or("nx", String::as_str);
                let address = dashed(&random_address(random).to_string());
                format!("{address}.{namespace}.pod.{}", self.zone)
            }
            8 => reverse_name(random_address(random)),
            9 => format!("_nx._tcp.{name}"),
            10 => format!("*.{rest}"),
            _ => format!("{}.{rest}", first.get(..first.len().min(1)).unwrap_or("x")),
        };
        (if wrong.is_empty() { "nx".to_owned() } else { wrong }, record_type)
    }
}

/// Makes a question: most with EDNS, few without, few in another case.
fn question(name: &str, record_type: &str, random: &mut Random) -> Question {
    let name = if random.one_in(RARELY) { name.to_uppercase() } else { name.to_owned() };
    let question = Question::new(&format!("{name}."), record_type);
    if random.one_in(RARELY) { question } else { question.edns(UDP_SIZE) }
}

/// Whether a name can be asked.
fn fits(name: &str) -> bool {
    let labels_fit = name.split('.').all(|it| !it.is_empty() && it.len() <= LABEL_OCTETS_MAX);
    labels_fit && name_bytes(name).len() <= NAME_OCTETS_MAX
}

/// Returns the name of a service.
fn service_name(name: &str, namespace: &str, zone: &str) -> String {
    format!("{name}.{namespace}.svc.{zone}")
}

/// Returns an address as a label.
fn dashed(address: &str) -> String {
    let label = address.replace(['.', ':'], "-");
    if label.ends_with('-') { label + "0" } else { label }
}

/// Returns an address of the ranges that clusters use.
fn random_address(random: &mut Random) -> IpAddr {
    let [a, b, c, d, ..] = random.bits().to_le_bytes();
    match a % 4 {
        0 => IpAddr::from([0xfd00, 0x10, 0x96, 0, 0, 0, 0, u16::from_le_bytes([c, d])]),
        1 => IpAddr::from([10, 96, 0, d]),
        _ => IpAddr::from([10, b, c, d]),
    }
}

/// Returns the name below which an address has its PTR record, without the dot at the end.
pub fn reverse_name(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(address) => {
            let nibble = |octet: u8| format!("{:x}.{:x}.", octet & 15, octet >> 4);
            let nibbles: String = address.octets().into_iter().rev().map(nibble).collect();
            nibbles + "ip6.arpa"
        }
    }
}

/// Returns a string of an object; empty if it is none.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the items of a list; none if it is no list.
fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Endpoint, Port, endpoint_slice, headless_service, namespace};

    /// Zones of the tests.
    const ZONES: ClusterZones<'_> = ClusterZones { cluster: "c.test", multicluster: "" };

    /// Returns the questions as text.
    fn asked(wrong: usize, seed: u64) -> Vec<String> {
        let ports = [Port::tcp("http", 80)];
        let endpoints = [Endpoint::new("fd00::").hostname("a")];
        let objects = [
            namespace("n"),
            headless_service("n", "s", &ports),
            endpoint_slice("n", "s-1", "s", &ports, &endpoints),
        ];
        let list = questions(&objects, ZONES, wrong, seed);
        list.iter().map(|question| format!("{question}").to_lowercase()).collect()
    }

    #[test]
    fn every_name_of_an_endpoint_is_asked() {
        let list = asked(0, 1);
        let reverse = format!("{}d.f.ip6.arpa. ptr", "0.".repeat(30));
        let names = [
            "a.s.n.svc.c.test. aaaa",
            "fd00--0.s.n.svc.c.test. a",
            "_http._tcp.s.n.svc.c.test. srv",
        ];
        for name in names.into_iter().chain([reverse.as_str()]) {
            assert!(list.iter().any(|it| it.starts_with(name)), "{name} is not in {list:#?}");
        }
    }

    #[test]
    fn wrong_names_depend_on_the_seed_alone() {
        assert_eq!(asked(50, 7), asked(50, 7));
        assert_ne!(asked(50, 7), asked(50, 8));
    }

    #[test]
    fn reverse_names_end_in_their_family_s_zone() {
        assert_eq!(reverse_name([10, 1, 2, 3].into()), "3.2.1.10.in-addr.arpa");
    }
}
