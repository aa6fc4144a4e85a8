//! The configuration in the manifests for Kubernetes does what the page says, and the probes in
//! them work.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use zonda_testkit::process::{Folder, start_on_free_port};
use zonda_testkit::{Question, Zonda, ask};

const ZONDA: &str = env!("CARGO_BIN_EXE_zonda");
const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/kubernetes");
/// A cluster's zone with a name whose TTL is short.
const CLUSTER: &str = "$TTL 1\n@ SOA ns.dns hostmaster 1 2h 30m 2w 5\n  NS ns.dns\n\
                       ns.dns A 10.96.0.10\nweb.shop.svc A 10.96.0.20\n";
/// Time after which answers of the zone have expired.
const EXPIRY: Duration = Duration::from_millis(1500);
/// How long a server may take until its commands work.
const START_LIMIT: Duration = Duration::from_secs(10);

/// Returns the `zonda.toml` of a manifest.
fn configuration(manifest: &str) -> String {
    let text = fs::read_to_string(Path::new(MANIFESTS).join(manifest)).unwrap();
    let lines = text.lines().skip_while(|line| *line != "  zonda.toml: |").skip(1);
    let lines = lines.take_while(|line| line.is_empty() || line.starts_with("    "));
    lines.map(|line| format!("{}\n", line.trim_start())).collect()
}

/// Returns the addresses of the answer to a question about a name of the zone.
fn addresses(server: SocketAddr) -> Vec<String> {
    let question = Question::new("web.shop.svc.cluster.local.", "A").recursive();
    let reply = ask(server, &question).unwrap();
    reply.answer.iter().map(|record| record.data.text.clone()).collect()
}

#[test]
fn node_local_cache_answers_its_probes_and_outlives_the_cluster_dns() {
    let cluster_dns = Zonda::start(ZONDA, &[("cluster.local", CLUSTER)], &[]);
    let folder = Folder::new("node-local");
    let socket = folder.path().join("zonda.sock");
    let text = configuration("zonda-node-local.yaml");
    let text = text.replace("tcp://10.96.0.10", &format!("tcp://{}", cluster_dns.address));
    let (process, address) = start_on_free_port("zonda", &folder, &[], |folder, port| {
        let listen = format!("127.0.0.1:{port}");
        let file = folder.write("zonda.toml", text.replace("169.254.20.10:53", &listen));
        let mut command = Command::new(ZONDA);
        command.args(["serve", "--config"]).arg(file).env("ZONDA_ADMIN_SOCKET", &socket);
        command
    });
    for command in ["status", "ready"] {
        let limit = Instant::now() + START_LIMIT;
        let mut probe = Command::new(ZONDA);
        probe.arg(command).env("ZONDA_ADMIN_SOCKET", &socket);
        while !probe.output().unwrap().status.success() {
            assert!(Instant::now() < limit, "zonda {command} fails:\n{}", process.log(""));
            thread::sleep(Duration::from_millis(20));
        }
    }
    assert_eq!(addresses(address), ["10.96.0.20"]);
    drop(cluster_dns);
    thread::sleep(EXPIRY);
    assert_eq!(addresses(address), ["10.96.0.20"]);
}
