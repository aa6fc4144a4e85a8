//! The chart, the manifests and the image for Kubernetes: that they are current, that a real API
//! server takes them, that Zonda takes the configurations in them, that the program can run in the
//! image, and that the page on them is true.
//!
//! Nothing runs in pods, as there are no nodes. Tests whose names begin with `real_cluster` need
//! Helm, kubectl and the API server, which `scripts/install-cluster-peers` builds.
#![allow(clippy::unwrap_used)]

mod configurations;
mod image;
mod node_cache;
mod objects;
mod page;

use std::os::unix::fs::symlink;
use std::path::Path;

use zonda_testkit::process::Folder;

/// The program under test.
const ZONDA: &str = env!("CARGO_BIN_EXE_zonda");
/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// What renders the chart, before its values.
const TEMPLATE: &str = "helm template zonda packaging/helm/zonda --namespace kube-system";
/// Values of a node's cache.
const NODE_CACHE: &str = "--set mode=node-local --set nodeLocal.upstream=10.96.0.10";
/// Values of a node's cache by the Corefile of NodeLocal DNSCache.
const NODE_CACHE_OF_COREFILE: &str = "--set mode=node-local --set ports.ready=0 \
    --set corefile.configMap=node-local-dns --set corefile.key=Corefile.base \
    --set nodeLocal.upstream=10.96.0.11 --set 'nodeLocal.addresses={169.254.20.10,10.96.0.10}'";
/// The Corefile in the manifest of NodeLocal DNSCache.
const NODE_COREFILE: &str =
    include_str!("../../../../crates/import/tests/corefile/nodelocal.corefile");

/// Values that change which objects and fields are rendered.
const VARIANTS: &[&str] = &[
    "",
    "--set service.clusterIP=10.96.0.77 --set service.ipFamilyPolicy=PreferDualStack",
    "--set service.create=false --set corefile.configMap=coredns \
     --set corefile.customConfigMap=coredns-custom --set kubernetes.pods=verified",
    "--set-string corefile.text='.:53 {\n forward . 192.0.2.1\n}' --set ports.health=0 \
     --set ports.ready=0 --set ports.metrics=0",
    "--set snapshot.type=hostPath --set kubernetes.pods=verified --set kubernetes.autopath=true \
     --set kubernetes.multicluster=clusterset.local --set replicas=null",
    "--set kubernetes.namespaces={shop} --set kubernetes.options.zonal=true \
     --set kubernetes.options.labels=dns=public --set kubernetes.reverse=null",
    "--set kind=DaemonSet --set service.internalTrafficPolicy=Local --set kubernetes.ttl=30s \
     --set-json 'access=[\"allow 100.64.0.0/10\",\"refuse any\"]' --set kubeDnsConfigMap=kube-dns",
    "--set snapshot.type=none --set metrics.corednsNames=false --set metrics.serviceMonitor=true \
     --set forward=null --set lameduck=0s",
    "--set autoscaling.enabled=true --set autoscaling.queryRate=20k --set-string image.tag=2 \
     --set image.pullSecrets={registry} --set 'forward={192.0.2.1,tls://192.0.2.4#dns.example}'",
    "--set proportional.enabled=true --set podDisruptionBudget.maxUnavailable=null",
    "--set-string config='version = 1' --set podLabels.team=dns --set ports.ready=0 \
     --set serviceAccount.create=false --set serviceAccount.name=dns",
    NODE_CACHE,
    NODE_CACHE_OF_COREFILE,
    "--set mode=node-local --set nodeLocal.upstream=fd00:10:96::a --set snapshot.type=none \
     --set 'nodeLocal.addresses={fd00::53,169.254.20.10}' --set nodeLocal.metricsPort=0 \
     --set nodeLocal.interface=dns0 --set kubeDnsConfigMap=node-dns --set workers=1",
];

/// Makes a folder from which the paths of the pages lead into the repository.
fn folder() -> Folder {
    let folder = Folder::new("packaging");
    symlink(Path::new(ROOT).join("packaging"), folder.path().join("packaging")).unwrap();
    folder
}

/// Returns the text of a file in a rendered ConfigMap, if it has one of this name.
fn file_of(manifest: &str, name: &str) -> Option<String> {
    let key = format!("  {name}: |");
    let mut lines = manifest.lines();
    lines.find(|line| *line == key)?;
    let lines = lines.take_while(|line| line.is_empty() || line.starts_with("    "));
    Some(lines.map(|line| format!("{}\n", line.get(4..).unwrap_or_default())).collect())
}

/// Returns the environment of a manifest's containers.
fn environment(manifest: &str) -> Vec<(&str, &str)> {
    let lines: Vec<_> = manifest.lines().map(str::trim).collect();
    let pairs = lines.windows(2).filter_map(|pair| {
        Some((
            pair[0].strip_prefix("- name: ")?,
            pair[1].strip_prefix("value: ")?.trim_matches('"'),
        ))
    });
    pairs.collect()
}
