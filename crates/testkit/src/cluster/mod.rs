//! A Kubernetes API server and CoreDNS as peers, and what to ask about the objects of a cluster.
//!
//! `scripts/install-cluster-peers` builds the programs once, into a folder that clones share. There
//! are no controllers: a test writes endpoint slices and the states of pods itself. Deliberately
//! absent: nodes, kubelets, networks.

mod api_client;
mod api_server;
mod certificates;
mod clients;
mod comparison;
mod core_dns;
mod etcd;
mod http;
mod link;
mod objects;
mod population;
mod questions;

use std::env;
use std::path::PathBuf;

pub use api_client::{ApiClient, ApiReply};
pub use api_server::{ApiOptions, ApiServer};
pub use clients::ClusterClients;
pub use comparison::{ClusterComparison, without_serials};
pub use core_dns::CoreDns;
pub use etcd::EtcdBuild;
pub use link::Link;
pub use objects::{
    Endpoint, Port, cluster_service, endpoint_slice, external_service, headless_service,
    imported_slice, namespace, pod, pod_status, service_import, service_import_definition,
};
pub use population::{Population, PopulationChange};
pub use questions::{ClusterZones, questions, reverse_name};

/// Module of the API server, with the version of Kubernetes.
const API_SERVER_MODULE: &str = include_str!("../../../../tests/cluster/apiserver/go.mod");
/// Module of etcd, with the version of etcd.
const ETCD_MODULE: &str = include_str!("../../../../tests/cluster/etcd/go.mod");
/// Module of CoreDNS, with the version of CoreDNS.
const CORE_DNS_MODULE: &str = include_str!("../../../../tests/cluster/coredns/go.mod");

/// Returns the folder of the built programs, as `scripts/install-cluster-peers --folder` says.
///
/// # Panics
/// When the environment has no home folder.
pub fn peers_folder() -> PathBuf {
    if let Some(folder) = env::var_os("CLUSTER_PEERS").filter(|folder| !folder.is_empty()) {
        return folder.into();
    }
    let caches = env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty());
    let caches = caches.map_or_else(
        || PathBuf::from(env::var_os("HOME").expect("a user has a home")).join(".cache"),
        PathBuf::from,
    );
    let kubernetes = required_version(API_SERVER_MODULE, "k8s.io/kubernetes");
    let core_dns = required_version(CORE_DNS_MODULE, "github.com/coredns/coredns");
    let etcd = required_version(ETCD_MODULE, "go.etcd.io/etcd/server/v3");
    let versions = format!("kubernetes-{kubernetes}-etcd-{etcd}-coredns-{core_dns}");
    caches.join("zonda/cluster-peers").join(versions)
}

/// Returns the path of a built program.
///
/// # Panics
/// When it is not built.
fn built(program: &str) -> PathBuf {
    let path = peers_folder().join(program);
    let found = path.is_file();
    assert!(found, "{} is missing: `make test-cluster` builds it", path.display());
    path
}

/// Returns the version of a module that a `go.mod` requires, without its `v`.
fn required_version<'a>(go_mod: &'a str, module: &str) -> &'a str {
    let line = |line: &'a str| {
        let line = line.trim_start();
        let rest = line.strip_prefix("require ").unwrap_or(line).strip_prefix(module)?;
        rest.strip_prefix(" v")?.split_whitespace().next()
    };
    go_mod.lines().find_map(line).expect("the go.mod names the program's module")
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;

    #[test]
    fn the_script_and_the_tests_agree_on_the_folder() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut script = Command::new(root.join("scripts/install-cluster-peers"));
        let said = script.arg("--folder").output().unwrap();
        let folder = String::from_utf8(said.stdout).unwrap();
        assert_eq!(folder.trim_end(), peers_folder().display().to_string());
    }
}
