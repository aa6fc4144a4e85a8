//! Names of a cluster, from objects to what they stand for.

#![allow(clippy::unwrap_used)]

use std::net::IpAddr;
use zonda_cluster::object::{
    Endpoint, EndpointSlice, Endpoints, Namespace, ObjectName, Pod, Port, Protocol, Service,
    ServiceImport, ServiceKind,
};
use zonda_cluster::{
    AddressMatch, Builder, Change, Cluster, ClusterMatch, ExternalNames, Kind, Options, PodNames,
};
use zonda_wire::Name;
use zonda_zone::{HashSeed, LookupName};

const SEED: HashSeed = HashSeed(7);

/// The name of an object in namespace `shop`.
fn id(name: &str) -> ObjectName {
    ObjectName { namespace: "shop".to_owned(), name: name.to_owned() }
}

/// A port of TCP.
fn port(name: &str, number: u16) -> Port {
    Port { name: name.to_owned(), protocol: Protocol::Tcp, number: Some(number) }
}

/// A service with two ports.
fn service(name: &str, kind: ServiceKind) -> Change {
    let ports = vec![port("http", 80), port("admin", 81)];
    let (external_ips, external_names) = (Vec::new(), Vec::new());
    Change::Service(Service { id: id(name), kind, ports, external_ips, external_names })
}

/// A slice of a service: addresses, host names and topology zones of endpoints that are ready.
fn slice(name: &str, service: &str, endpoints: &[[&str; 3]]) -> Change {
    let mut all = Endpoints::default();
    for [address, hostname, zone] in endpoints {
        let (address, pod) = (address.parse().unwrap(), &*format!("pod-of-{hostname}"));
        all.push(Endpoint { address, hostname, pod, zone, ready: true });
    }
    Change::EndpointSlice(EndpointSlice {
        id: id(name),
        service: service.to_owned(),
        source_cluster: String::new(),
        is_imported: false,
        ports: vec![port("http", 80)],
        endpoints: all,
        trigger_time: None,
    })
}

/// A cluster of these objects, and of namespace `shop`.
fn cluster(options: Options, changes: impl IntoIterator<Item = Change>) -> Builder {
    let apex: Name = "cluster.local".parse().unwrap();
    let mut builder = Builder::new(&apex, SEED, options);
    let namespace = Namespace { name: "shop".to_owned(), opts_out_of_autopath: false };
    builder.apply(Change::Namespace(namespace));
    changes.into_iter().for_each(|change| builder.apply(change));
    builder
}

/// What a name below the apex stands for: addresses and targets as text.
fn told(cluster: &Cluster, name: &str) -> String {
    let name: Name = format!("{name}.cluster.local").parse().unwrap();
    let name = LookupName::new(name.as_wire(), SEED);
    match cluster.find(&name) {
        ClusterMatch::InData => "data".to_owned(),
        ClusterMatch::Empty => "empty".to_owned(),
        ClusterMatch::Missing => "missing".to_owned(),
        ClusterMatch::Address(address) => address.to_string(),
        ClusterMatch::Service(found) => {
            let of_endpoints =
                || found.endpoint_addresses(false).chain(found.endpoint_addresses(true)).collect();
            let addresses = found.own_addresses().map_or_else(of_endpoints, <[_]>::to_vec);
            let mut parts: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
            let written = found.each_target(|labels, port| {
                let label = text(labels);
                parts.push(format!("{label}:{port}/{}", found.weight()));
                Ok::<(), ()>(())
            });
            written.unwrap();
            parts.join(" ")
        }
    }
}

/// Labels in wire form as text.
fn text(labels: &[u8]) -> String {
    let labels = zonda_wire::name::labels(labels).map(String::from_utf8_lossy);
    labels.collect::<Vec<_>>().join(".")
}

/// The names of an address.
fn pointers(cluster: &Cluster, address: &str) -> Vec<String> {
    let address: IpAddr = address.parse().unwrap();
    let mut names = Vec::new();
    let written = cluster.each_pointer(address, |labels, service| {
        names.push(text(&[labels, service].concat()));
        Ok::<(), ()>(())
    });
    written.unwrap();
    names.sort();
    names
}

/// A headless service with endpoints in two slices, of which one host name has two addresses.
fn headless() -> [Change; 3] {
    [
        service("db", ServiceKind::Headless),
        slice("db-4", "db", &[["10.1.0.1", "a", "east"], ["10.1.0.2", "", "west"]]),
        slice("db-6", "db", &[["fd00::1", "a", "east"]]),
    ]
}

#[test]
fn a_service_has_its_addresses_and_ports() {
    let own = vec!["10.0.0.1".parse().unwrap()];
    let cluster = cluster(Options::default(), [service("web", ServiceKind::ClusterIp(own))]);
    let cluster = { cluster }.snapshot();
    assert_eq!(told(&cluster, "web.shop.svc"), "10.0.0.1 :80/50 :81/50");
    assert_eq!(told(&cluster, "_http._tcp.web.shop.svc"), "10.0.0.1 :80/100");
    assert_eq!(told(&cluster, "http.tcp.web.shop.svc"), "10.0.0.1 :80/100");
    assert_eq!(told(&cluster, "_http._udp.web.shop.svc"), "missing");
    assert_eq!(told(&cluster, "_tcp.web.shop.svc"), "empty");
    assert_eq!(told(&cluster, "x.y.z.web.shop.svc"), "missing");
    assert_eq!([told(&cluster, "svc"), told(&cluster, "shop.svc")], ["empty", "empty"]);
    assert_eq!(told(&cluster, "none.svc"), "missing");
    assert_eq!(pointers(&cluster, "10.0.0.1"), ["web.shop"]);
}

#[test]
fn a_headless_service_has_each_endpoint_once_whatever_its_slices() {
    let cluster = cluster(Options::default(), headless()).snapshot();
    let all = "10.1.0.1 10.1.0.2 fd00::1 a:80/33 10-1-0-2:80/33";
    assert_eq!(told(&cluster, "db.shop.svc"), all);
    assert_eq!(told(&cluster, "a.db.shop.svc"), "10.1.0.1 fd00::1 a:80/50");
    assert_eq!(told(&cluster, "10-1-0-2.db.shop.svc"), "10.1.0.2 10-1-0-2:80/100");
    assert_eq!(told(&cluster, "10-1-0-1.db.shop.svc"), "missing");
    assert_eq!(pointers(&cluster, "10.1.0.2"), ["10-1-0-2.db.shop"]);
    assert_eq!(pointers(&cluster, "10.1.0.9"), [""; 0]);
}

#[test]
fn endpoints_of_one_slice_that_share_a_host_name_are_one_target() {
    let endpoints = [["10.1.0.1", "a", ""], ["10.1.0.2", "a", ""]];
    let changes = [service("db", ServiceKind::Headless), slice("db-4", "db", &endpoints)];
    let cluster = cluster(Options::default(), changes).snapshot();
    assert_eq!(told(&cluster, "db.shop.svc"), "10.1.0.1 10.1.0.2 a:80/50");
    assert_eq!(told(&cluster, "a.db.shop.svc"), "10.1.0.1 10.1.0.2 a:80/50");
}

#[test]
fn endpoints_that_lie_in_several_slices_have_the_ports_of_all_of_them() {
    let own_port = |name: &str, port: Port| {
        let Change::EndpointSlice(it) = slice(name, "db", &[["10.1.0.1", "", ""]]) else {
            panic!()
        };
        Change::EndpointSlice(EndpointSlice { ports: vec![port], ..it })
    };
    // Whichever of the two comes first.
    for names in [["db-1", "db-2"], ["db-2", "db-1"]] {
        let changes = [
            service("db", ServiceKind::Headless),
            own_port(names[0], port("http", 80)),
            own_port(names[1], port("metrics", 9090)),
        ];
        let cluster = cluster(Options::default(), changes).snapshot();
        assert_eq!(told(&cluster, "_http._tcp.db.shop.svc"), "10.1.0.1 10-1-0-1:80/100");
        assert_eq!(told(&cluster, "_metrics._tcp.db.shop.svc"), "10.1.0.1 10-1-0-1:9090/100");
        let mut all: Vec<String> =
            told(&cluster, "db.shop.svc").split(' ').map(str::to_owned).collect();
        all.sort();
        assert_eq!(all, ["10-1-0-1:80/50", "10-1-0-1:9090/50", "10.1.0.1"]);
    }
}

#[test]
fn an_address_has_every_host_name_that_endpoints_give_it() {
    let one_slice = vec![slice("db-1", "db", &[["10.1.0.1", "a", ""], ["10.1.0.1", "b", ""]])];
    let two_slices = vec![
        slice("db-1", "db", &[["10.1.0.1", "a", ""]]),
        slice("db-2", "db", &[["10.1.0.1", "b", ""]]),
    ];
    for slices in [one_slice, two_slices] {
        let changes = std::iter::once(service("db", ServiceKind::Headless)).chain(slices);
        let cluster = cluster(Options::default(), changes).snapshot();
        assert_eq!(told(&cluster, "a.db.shop.svc"), "10.1.0.1 a:80/100");
        assert_eq!(told(&cluster, "b.db.shop.svc"), "10.1.0.1 b:80/100");
        let mut all: Vec<String> =
            told(&cluster, "db.shop.svc").split(' ').map(str::to_owned).collect();
        all.sort();
        assert_eq!(all, ["10.1.0.1", "a:80/50", "b:80/50"]);
        assert_eq!(pointers(&cluster, "10.1.0.1"), ["a.db.shop", "b.db.shop"]);
    }
}

#[test]
fn a_host_name_in_several_topology_zones_is_a_target_in_each() {
    let changes = [
        service("db", ServiceKind::Headless),
        slice("db-1", "db", &[["10.1.0.1", "a", "east"], ["10.1.0.2", "a", "west"]]),
    ];
    let options = Options { has_zones: true, ..Options::default() };
    let cluster = cluster(options, changes).snapshot();
    assert_eq!(told(&cluster, "east.pin._zone.db.shop.svc"), "10.1.0.1 a:80/100");
    assert_eq!(told(&cluster, "west.pin._zone.db.shop.svc"), "10.1.0.2 a:80/100");
    assert_eq!(told(&cluster, "db.shop.svc"), "10.1.0.1 10.1.0.2 a:80/50");
}

#[test]
fn an_endpoint_whose_host_name_is_no_label_is_called_by_its_address() {
    let long = "a".repeat(64);
    for hostname in ["a.b", &long] {
        let changes = [
            service("db", ServiceKind::Headless),
            slice("db-1", "db", &[["10.1.0.1", hostname, ""]]),
        ];
        let cluster = cluster(Options::default(), changes).snapshot();
        assert_eq!(told(&cluster, "db.shop.svc"), "10.1.0.1 10-1-0-1:80/100", "{hostname}");
        assert_eq!(told(&cluster, "10-1-0-1.db.shop.svc"), "10.1.0.1 10-1-0-1:80/100");
    }
}

#[test]
fn slices_may_come_before_their_service_and_stay_behind_it() {
    let [service, first, second] = headless();
    let mut builder = cluster(Options::default(), [first, second]);
    assert_eq!(told(&builder.snapshot(), "db.shop.svc"), "missing");
    assert_eq!(pointers(&builder.snapshot(), "10.1.0.1"), [""; 0]);
    builder.apply(service.clone());
    assert!(told(&builder.snapshot(), "db.shop.svc").starts_with("10.1.0.1 "));
    builder.apply(Change::Gone(Kind::Service, id("db")));
    assert_eq!(told(&builder.snapshot(), "db.shop.svc"), "missing");
    builder.apply(service);
    builder.apply(Change::Gone(Kind::EndpointSlice, id("db-4")));
    assert_eq!(told(&builder.snapshot(), "db.shop.svc"), "fd00::1 a:80/100");
    assert_eq!(pointers(&builder.snapshot(), "10.1.0.1"), [""; 0]);
    builder.apply(Change::Gone(Kind::EndpointSlice, id("db-6")));
    assert_eq!(told(&builder.snapshot(), "db.shop.svc"), "missing");
}

#[test]
fn objects_that_a_list_lacks_are_gone_when_it_has_ended() {
    let mut builder = cluster(Options::default(), headless());
    builder.begin_list(Kind::EndpointSlice, "");
    builder.apply(slice("db-6", "db", &[["fd00::1", "a", "east"]]));
    assert!(told(&builder.snapshot(), "db.shop.svc").starts_with("10.1.0.1 "), "not yet");
    builder.end_list(Kind::EndpointSlice, "");
    assert_eq!(told(&builder.snapshot(), "db.shop.svc"), "fd00::1 a:80/100");
}

#[test]
fn a_list_of_one_namespace_takes_no_object_of_another_away() {
    let namespaces = ["other", "shop"].map(str::to_owned).to_vec();
    let options = Options { namespaces: namespaces.clone(), ..Options::default() };
    let mut builder = cluster(options, Vec::new()).with_lists_of(namespaces);
    for object in headless() {
        builder.apply(object);
    }
    let all = told(&builder.snapshot(), "db.shop.svc");
    builder.begin_list(Kind::EndpointSlice, "other");
    builder.end_list(Kind::EndpointSlice, "other");
    assert_eq!(told(&builder.snapshot(), "db.shop.svc"), all);
    builder.begin_list(Kind::EndpointSlice, "shop");
    builder.begin_list(Kind::EndpointSlice, "other");
    builder.apply(slice("db-6", "db", &[["fd00::1", "a", "east"]]));
    builder.end_list(Kind::EndpointSlice, "other");
    assert_eq!(told(&builder.snapshot(), "db.shop.svc"), all, "that of its namespace goes on");
    builder.end_list(Kind::EndpointSlice, "shop");
    assert_eq!(told(&builder.snapshot(), "db.shop.svc"), "fd00::1 a:80/100");
}

#[test]
fn an_object_that_a_list_has_and_that_cannot_be_read_stays_as_it_was() {
    let mut builder = cluster(Options::default(), headless());
    builder.begin_list(Kind::EndpointSlice, "");
    builder.keep(Kind::EndpointSlice, &id("db-6"));
    builder.keep(Kind::EndpointSlice, &id("never-known"));
    builder.end_list(Kind::EndpointSlice, "");
    assert_eq!(told(&builder.snapshot(), "db.shop.svc"), "fd00::1 a:80/100");
}

#[test]
fn a_snapshot_keeps_what_it_has_while_objects_change() {
    let mut builder = cluster(Options::default(), headless());
    let former = builder.snapshot();
    builder.apply(slice("db-4", "db", &[["10.1.0.3", "a", "east"]]));
    assert!(told(&builder.snapshot(), "a.db.shop.svc").starts_with("10.1.0.3 "));
    assert!(told(&former, "a.db.shop.svc").starts_with("10.1.0.1 "));
    assert_eq!(pointers(&former, "10.1.0.1"), ["a.db.shop"]);
    assert_eq!(pointers(&builder.snapshot(), "10.1.0.1"), [""; 0]);
}

#[test]
fn names_of_pods_exist_as_the_options_say() {
    let pod = Pod {
        id: id("p"),
        addresses: vec!["10.1.0.5".parse().unwrap()],
        is_on_host_network: false,
    };
    for (pods, existing, other) in [
        (PodNames::Disabled, "missing", "missing"),
        (PodNames::Insecure, "10.1.0.5", "10.9.9.9"),
        (PodNames::Verified, "10.1.0.5", "missing"),
    ] {
        let options = Options { pods, ..Options::default() };
        let cluster = cluster(options, [Change::Pod(pod.clone())]).snapshot();
        assert_eq!(told(&cluster, "10-1-0-5.shop.pod"), existing, "{pods:?}");
        assert_eq!(told(&cluster, "10-9-9-9.shop.pod"), other, "{pods:?}");
        assert_eq!(told(&cluster, "10-1-0-5.none.pod"), "missing", "{pods:?}");
    }
}

#[test]
fn options_change_which_names_there_are() {
    let own = || ServiceKind::ClusterIp(vec!["10.0.0.1".parse().unwrap()]);
    let empty = Options { ignores_empty_services: true, ..Options::default() };
    let cluster_of = |options, changes: Vec<Change>| cluster(options, changes).snapshot();
    let cluster = cluster_of(empty, vec![service("web", own())]);
    assert_eq!(told(&cluster, "web.shop.svc"), "missing");
    let elsewhere = Options { namespaces: vec!["other".to_owned()], ..Options::default() };
    let cluster = cluster_of(elsewhere, vec![service("web", own())]);
    assert_eq!([told(&cluster, "web.shop.svc"), told(&cluster, "shop.svc")], ["missing"; 2]);
    assert_eq!(pointers(&cluster, "10.0.0.1"), [""; 0]);
    let zonal = Options { has_zones: true, ..Options::default() };
    let cluster = cluster_of(zonal, headless().into());
    assert!(told(&cluster, "west.pin._zone.db.shop.svc").starts_with("10.1.0.2 "));
    assert_eq!(told(&cluster, "north.pin._zone.db.shop.svc"), "empty");
    assert_eq!(told(&cluster, "a.west.pin._zone.db.shop.svc"), "empty");
    let endpoints = [["10.1.0.7", "", "us.east-1.a"], ["10.1.0.8", "", "us"]];
    let changes = vec![service("db", ServiceKind::Headless), slice("db-4", "db", &endpoints)];
    let dotted = cluster_of(Options { has_zones: true, ..Options::default() }, changes);
    assert!(told(&dotted, "us.east-1.a.pin._zone.db.shop.svc").starts_with("10.1.0.7 10-1"));
    assert!(told(&dotted, "us.pin._zone.db.shop.svc").starts_with("10.1.0.8 10-1"));
    assert_eq!(told(&dotted, "us.east-1.pin._zone.db.shop.svc"), "empty");
    assert!(told(&cluster, "north.prefer._zone.db.shop.svc").starts_with("10.1.0.1 "));
    let by_pods = Options { has_pod_labels: true, ..Options::default() };
    let cluster = cluster_of(by_pods, headless().into());
    assert!(told(&cluster, "pod-of-.db.shop.svc").starts_with("10.1.0.2 "));
    let kube_dns = Options { is_kube_dns: true, ..Options::default() };
    let cluster = cluster_of(kube_dns, headless().into());
    assert_eq!(pointers(&cluster, "10.1.0.2"), [""; 0]);
    assert_eq!(pointers(&cluster, "10.1.0.1"), ["a.db.shop"]);
}

#[test]
fn a_slice_that_is_sent_again_as_it_was_changes_nothing() {
    let mut builder = cluster(Options::default(), headless());
    let again = |endpoints: &[[&str; 3]]| slice("db-9", "db", endpoints);
    let endpoints = [["10.1.0.9", "x", "east"], ["10.1.0.8", "", "west"]];
    assert!(builder.take(&again(&endpoints)), "a slice that is new");
    assert!(!builder.take(&again(&endpoints)));
    for other in [
        [["10.1.0.9", "x", "east"], ["10.1.0.7", "", "west"]],
        [["10.1.0.9", "y", "east"], ["10.1.0.7", "", "west"]],
        [["10.1.0.9", "y", "east"], ["10.1.0.7", "", "east"]],
    ] {
        assert!(builder.take(&again(&other)), "{other:?}");
    }
    builder.begin_list(Kind::EndpointSlice, "");
    assert!(!builder.take(&again(&[["10.1.0.9", "y", "east"], ["10.1.0.7", "", "east"]])));
    builder.end_list(Kind::EndpointSlice, "");
    let kept = builder.snapshot();
    assert!(told(&kept, "y.db.shop.svc").starts_with("10.1.0.9 "), "the list has it still");
    assert_eq!(pointers(&kept, "10.1.0.8"), [""; 0]);
}

#[test]
fn aliases_are_told_once_after_each_change() {
    let target = |text: &str| ServiceKind::ExternalName(text.to_owned());
    let mut builder = cluster(Options::default(), [service("far", target("a.example"))]);
    assert!(builder.has_new_aliases());
    assert_eq!(builder.aliases().get("far.shop").map(String::as_str), Some("a.example"));
    builder.apply(service("far", target("a.example")));
    assert!(!builder.has_new_aliases());
    assert_eq!(told(&builder.snapshot(), "far.shop.svc"), "data");
    assert_eq!(told(&builder.snapshot(), "x.far.shop.svc"), "missing");
    builder.apply(Change::Gone(Kind::Service, id("far")));
    assert!(builder.has_new_aliases() && builder.aliases().is_empty());
}

#[test]
fn the_services_that_have_this_server_as_an_endpoint_are_the_servers_of_the_zone() {
    let own = Some("10.1.0.1".parse().unwrap());
    let apex: Name = "cluster.local".parse().unwrap();
    let mut builder = cluster(Options::default(), []);
    let text = builder.data_text(&apex, 7, own);
    assert!(text.contains("@ IN NS ns.dns\nns.dns IN A 10.1.0.1\n"), "{text}");
    let addresses = ServiceKind::ClusterIp(vec!["10.0.0.10".parse().unwrap()]);
    builder.apply(service("dns", addresses));
    builder.apply(slice("dns-4", "dns", &[["10.1.0.1", "", ""], ["10.1.0.2", "", ""]]));
    headless().into_iter().for_each(|change| builder.apply(change));
    let text = builder.data_text(&apex, 7, own);
    let names = ["a.db.shop.svc.cluster.local.", "dns.shop.svc.cluster.local."];
    names.iter().for_each(|it| assert!(text.contains(&format!("@ IN NS {it}\n")), "{text}"));
    assert!(text.contains("dns.shop.svc IN A 10.0.0.10\n"), "{text}");
    let reverse: Name = "10.in-addr.arpa".parse().unwrap();
    let text = builder.data_text(&reverse, 7, own);
    assert!(!text.contains("svc IN A") && text.contains("NS dns.shop.svc.cluster.local."));
}

#[test]
fn imports_have_endpoints_that_are_called_by_their_cluster_too() {
    let import = |name: &str, addresses: &[&str]| {
        Change::ServiceImport(ServiceImport {
            id: id(name),
            addresses: addresses.iter().map(|it| it.parse().unwrap()).collect(),
            is_headless: addresses.is_empty(),
            ports: vec![port("http", 80)],
        })
    };
    let of_cluster = |cluster: &str, address: &str| {
        let Change::EndpointSlice(it) = slice(cluster, "db", &[[address, "a", ""]]) else {
            panic!()
        };
        let source_cluster = cluster.to_owned();
        Change::EndpointSlice(EndpointSlice { source_cluster, is_imported: true, ..it })
    };
    let changes = [
        import("web", &["10.7.0.1"]),
        import("db", &[]),
        of_cluster("east", "10.8.0.1"),
        of_cluster("west", "10.9.0.1"),
        slice("db-own", "db", &[["10.1.0.1", "a", ""]]),
    ];
    let options = Options { is_multicluster: true, ..Options::default() };
    let cluster = cluster(options, changes).snapshot();
    assert_eq!(told(&cluster, "web.shop.svc"), "10.7.0.1 :80/100");
    let mut all: Vec<String> =
        told(&cluster, "db.shop.svc").split(' ').map(str::to_owned).collect();
    all.sort();
    assert_eq!(all, ["10.8.0.1", "10.9.0.1", "a.east:80/50", "a.west:80/50"]);
    assert_eq!(told(&cluster, "a.east.db.shop.svc"), "10.8.0.1 a.east:80/100");
    assert_eq!(told(&cluster, "a.db.shop.svc"), "missing");
    assert_eq!(pointers(&cluster, "10.9.0.1"), ["a.west.db.shop"]);
}

#[test]
fn reverse_names_of_networks_exist_and_those_of_unknown_addresses_do_not() {
    let cluster = cluster(Options::default(), headless()).snapshot();
    let told = |name: &str| {
        let name: Name = name.parse().unwrap();
        cluster.find_address(&LookupName::new(name.as_wire(), SEED))
    };
    assert!(matches!(told("1.0.1.10.in-addr.arpa"), AddressMatch::Address(_)));
    assert!(matches!(told("9.0.1.10.in-addr.arpa"), AddressMatch::Missing));
    assert!(matches!(told("1.10.in-addr.arpa"), AddressMatch::Empty));
    assert!(matches!(told("ns.dns.10.in-addr.arpa"), AddressMatch::InData));
}

#[test]
fn external_names_are_those_of_the_objects_made_of_a_snapshot() {
    let external = |name: &str, kind, ips: &[&str], names: &[&str]| {
        let external_ips = ips.iter().map(|it| it.parse().unwrap()).collect();
        let external_names = names.iter().map(|it| (*it).to_owned()).collect();
        let (id, ports) = (id(name), vec![port("http", 80)]);
        Change::Service(Service { id, kind, ports, external_ips, external_names })
    };
    let own = || ServiceKind::ClusterIp(vec!["10.0.0.1".parse().unwrap()]);
    let names = ExternalNames { server_label: "dns".to_owned(), has_endpoints: true };
    let options = || Options { external: Some(names.clone()), ..Options::default() };
    let objects = [
        external("web", own(), &["192.0.2.1", "2001:db8::1"], &[]),
        external("named", own(), &[], &["lb.example"]),
        external("inner", own(), &[], &[]),
        external("db", ServiceKind::Headless, &[], &[]),
        slice("db-1", "db", &[["10.1.0.1", "a", ""]]),
        slice("inner-1", "inner", &[["10.1.0.2", "b", ""]]),
        external("far", ServiceKind::ExternalName("x.example".to_owned()), &[], &[]),
    ];
    let mut first = cluster(options(), objects);
    let mut second = cluster(options(), []);
    let snapshot = first.snapshot();
    let taken = snapshot.each_object(first.aliases(), |change| {
        second.apply(change);
        Ok::<(), ()>(())
    });
    taken.unwrap();
    for builder in [&mut first, &mut second] {
        let cluster = builder.snapshot();
        let expected = [
            ("web.shop", "192.0.2.1 2001:db8::1 :80/50"),
            ("_http._tcp.web.shop", "192.0.2.1 2001:db8::1 :80/50"),
            ("a.web.shop", "missing"),
            ("named.shop", "data"),
            ("inner.shop", ""),
            ("b.inner.shop", "10.1.0.2 b:80/100"),
            ("db.shop", "10.1.0.1 a:80/100"),
            ("far.shop", "missing"),
            ("ns1.dns", "data"),
        ];
        for (name, answer) in expected {
            assert_eq!(told(&cluster, name), answer, "{name}");
        }
        assert_eq!(pointers(&cluster, "192.0.2.1"), ["web.shop"]);
        assert!(pointers(&cluster, "10.1.0.1").is_empty());
        let text = builder.data_text(cluster.apex(), 1, None);
        assert!(text.contains("named.shop.cluster.local. IN CNAME lb.example."), "{text}");
        let port = "_http._tcp.named.shop.cluster.local. IN SRV 0 100 80 lb.example.";
        assert!(text.contains(port), "{text}");
    }
}
