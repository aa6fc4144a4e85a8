//! A node's cache as its manifest starts it, in a network that the test has to itself.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use zonda_testkit::cluster::{ApiServer, ClusterClients};
use zonda_testkit::network::{ip, is_own_network};
use zonda_testkit::process::{Folder, Process};
use zonda_testkit::{Question, ask};

use crate::{
    NODE_CACHE_OF_COREFILE, NODE_COREFILE, ROOT, TEMPLATE, ZONDA, environment, file_of, folder,
};

/// A cluster's zone with a name whose TTL is short.
const CLUSTER: &str = "$TTL 1\n@ SOA ns.dns hostmaster 1 2h 30m 2w 5\n  NS ns.dns\n\
                       ns.dns A 10.96.0.10\nweb.shop.svc A 10.96.0.20\n";
/// Time after which answers of the zone have expired.
const EXPIRY: Duration = Duration::from_millis(1500);
/// How long a server may take until it answers.
const LIMIT: Duration = Duration::from_secs(20);

/// Returns the addresses of the answer to a question about a name of the zone.
fn addresses(server: SocketAddr) -> Vec<String> {
    let question = Question::new("web.shop.svc.cluster.local.", "A").recursive();
    let Ok(reply) = ask(server, &question) else { return Vec::new() };
    reply.answer.iter().map(|record| record.data.text.clone()).collect()
}

/// Returns what a page of the server says, or nothing while there is none.
fn page(address: &str, path: &str) -> String {
    let Ok(mut stream) = TcpStream::connect(address) else { return String::new() };
    let request = format!("GET {path} HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n");
    let _ = stream.write_all(request.as_bytes());
    std::io::read_to_string(stream).unwrap_or_default()
}

/// Waits until something holds.
fn wait_until(process: &Process, what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < limit, "{what}:\n{}", process.log(""));
        thread::sleep(Duration::from_millis(20));
    }
}

/// Starts the cluster's DNS at the address of a Service.
fn cluster_dns(folder: &Folder, address: &str) -> Process {
    ip(&format!("address add {address}/32 dev lo"));
    let zone = format!("cluster.local={}", folder.write("cluster.zone", CLUSTER).display());
    let mut command = Command::new(ZONDA);
    let listen = format!("{address}:53");
    command.args(["serve", "--workers", "1", "--listen", &listen, "--zone", &zone]);
    command.env("ZONDA_ADMIN_SOCKET", "off").env("ZONDA_ADMIN_ADDRESS", "off");
    Process::start(&command, &folder.path().join("cluster.log")).unwrap()
}

/// Starts the server of the manifest with no more rights than its container has.
fn node_cache(folder: &Folder) -> Process {
    let manifest = Path::new(ROOT).join("packaging/kubernetes/zonda-node-local.yaml");
    let manifest = fs::read_to_string(manifest).unwrap();
    assert!(manifest.contains("add: [NET_ADMIN, NET_BIND_SERVICE]"), "{manifest}");
    let mut text = file_of(&manifest, "zonda.toml").unwrap();
    for path in ["/var/lib/zonda", "/etc/kube-dns", "/etc/resolv.conf"] {
        assert!(text.contains(path), "{text}");
        let own = folder.path().join(path.rsplit('/').next().unwrap());
        text = text.replace(path, own.to_str().unwrap());
    }
    folder.write("resolv.conf", "nameserver 192.0.2.53\n");
    for name in ["zonda", "kube-dns"] {
        fs::create_dir_all(folder.path().join(name)).unwrap();
    }
    let file = folder.write("zonda.toml", text);
    start(folder, &["--config", file.to_str().unwrap()], &[])
}

/// Starts a server with the rights of a node's cache.
fn start(folder: &Folder, flags: &[&str], variables: &[(&str, &str)]) -> Process {
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-all,+net_admin,+net_bind_service", ZONDA, "serve"]);
    command.args(flags).envs(variables.iter().copied());
    command.env("ZONDA_ADMIN_SOCKET", folder.path().join("zonda.sock"));
    Process::start(&command, &folder.path().join("log")).unwrap()
}

#[test]
fn node_cache_of_the_manifest_answers_its_probes_and_outlives_the_cluster_dns() {
    let test = "node_cache_of_the_manifest_answers_its_probes_and_outlives_the_cluster_dns";
    if !is_own_network(&format!("node_cache::{test}")) {
        return;
    }
    let folder = Folder::new("node-cache");
    let cluster = cluster_dns(&folder, "10.96.0.10");
    let mut node = node_cache(&folder);
    let ok = |text: &str| text.starts_with("HTTP/1.1 200");
    wait_until(&node, "it is healthy", || ok(&page("169.254.20.10:8080", "/health")));
    wait_until(&node, "it is ready", || ok(&page("169.254.20.10:8181", "/ready")));
    let address = SocketAddr::from(([169, 254, 20, 10], 53));
    wait_until(&node, "it answers", || addresses(address) == ["10.96.0.20"]);
    let metrics = page("127.0.0.1:9253", "/metrics");
    assert!(ok(&metrics) && metrics.contains("coredns_dns_requests_total"), "{metrics}");

    drop(cluster);
    thread::sleep(EXPIRY);
    wait_until(&node, "it answers from its cache", || addresses(address) == ["10.96.0.20"]);
    node.signal("TERM");
    let limit = Instant::now() + LIMIT;
    while !node.ended() {
        assert!(Instant::now() < limit, "it does not end:\n{}", node.log(""));
        thread::sleep(Duration::from_millis(20));
    }
    assert!(!ip("link").contains("nodelocaldns"), "the interface is removed");
    // What the emptyDir keeps, a container that is started again answers at once.
    let again = node_cache(&folder);
    wait_until(&again, "it answers what it has kept", || addresses(address) == ["10.96.0.20"]);
}

#[test]
fn real_cluster_corefile_of_nodelocal_is_served_as_the_chart_starts_it() {
    let test = "real_cluster_corefile_of_nodelocal_is_served_as_the_chart_starts_it";
    if !is_own_network(&format!("node_cache::{test}")) {
        return;
    }
    let (api, folder) = (ApiServer::start(), folder());
    let clients = ClusterClients::new(&api, folder.path());
    let manifest = clients.output(&format!("{TEMPLATE} {NODE_CACHE_OF_COREFILE}"));
    let map = folder.path().join("kube-dns");
    fs::create_dir(&map).unwrap();
    let mut variables = environment(&manifest);
    let own = variables.iter_mut().find(|it| it.0 == "ZONDA_KUBE_DNS_CONFIG_MAP").unwrap();
    assert_eq!(own.1, "/etc/kube-dns");
    own.1 = map.to_str().unwrap();
    // What is replaced in its manifest before it is applied; NodeLocal DNSCache replaces the rest.
    let corefile = NODE_COREFILE.replace("__PILLAR__LOCAL__DNS__", "169.254.20.10");
    let corefile = corefile.replace("__PILLAR__DNS__SERVER__", "10.96.0.10");
    let corefile = folder.write("Corefile", corefile);
    let _cluster = cluster_dns(&folder, "10.96.0.11");
    let node = start(&folder, &["--corefile", corefile.to_str().unwrap()], &variables);
    let is_healthy = || page("169.254.20.10:8080", "/health").starts_with("HTTP/1.1 200");
    wait_until(&node, "it is healthy", is_healthy);
    for address in [[169, 254, 20, 10], [10, 96, 0, 10]] {
        let address = SocketAddr::from((address, 53));
        wait_until(&node, "it answers", || addresses(address) == ["10.96.0.20"]);
    }
}
