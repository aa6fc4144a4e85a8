//! The chart and the manifests for Kubernetes, tried with Helm, kubectl and a real API server.
//!
//! Nothing runs in the pods: there are no nodes. Held here is what the API server can know: that it
//! takes every object to the last field, what the account may do, which standard the pods meet, and
//! that the commands of the page on the installation do what the page says.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use zonda_testkit::cluster::{ApiServer, ClusterClients, namespace, service_import_definition};
use zonda_testkit::process::Folder;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Page whose commands are run.
const PAGE: &str = "docs/kubernetes-install.md";
/// What renders the chart, before its values.
const TEMPLATE: &str = "helm template zonda packaging/helm/zonda --namespace kube-system";
/// The account of the chart's pods.
const ACCOUNT: &str = "system:serviceaccount:kube-system:zonda";

/// Values that change which objects and fields are rendered.
const VARIANTS: &[&str] = &[
    "",
    "--set service.clusterIP=10.96.0.77 --set service.ipFamilyPolicy=PreferDualStack",
    "--set service.create=false --set corefile.configMap=coredns \
     --set corefile.customConfigMap=coredns-custom",
    "--set-string corefile.text='.:53 { whoami }' --set corefile.healthPort=0 \
     --set corefile.readyPort=0 --set corefile.metricsPort=0",
    "--set snapshot.type=hostPath --set kubernetes.options.pods=verified \
     --set rbac.kubeDnsConfigMap=true --set replicas=null",
    "--set snapshot.type=none --set metrics.tokenSecret=zonda-metrics \
     --set metrics.serviceMonitor=true --set forward=null",
    "--set autoscaling.enabled=true --set autoscaling.queryRate=20k --set-string image.tag=2 \
     --set image.pullSecrets={registry}",
    "--set-string config='version = 1' --set preStopSleepSeconds=0 \
     --set podDisruptionBudget.maxUnavailable=null --set podLabels.team=dns",
    "--set mode=node-local --set nodeLocal.upstream=10.96.0.10",
    "--set mode=node-local --set nodeLocal.upstream=fd00:10:96::a \
     --set nodeLocal.address=fe80::53 --set metrics.tokenSecret=zonda-metrics",
];

/// Values that are refused, and a part of the reason.
const REFUSALS: &[(&str, &str)] = &[
    ("--set kubernetes.zones=cluster.local", "zones"),
    ("--set mode=node-local", "nodeLocal.upstream is missing"),
    ("--set corefile.text=x --set corefile.configMap=y", "exclude each other"),
    ("--set config=x --set corefile.configMap=y", "exclude each other"),
    ("--set metrics.serviceMonitor=true", "needs metrics.tokenSecret"),
    ("--set autoscaling.enabled=true --set autoscaling.cpuUtilization=0", "cpuUtilization"),
    ("--set kubernetes.options.snapshot=x", "is set by the value snapshot"),
];

/// Makes a folder from which the paths of the pages lead into the repository.
fn folder() -> Folder {
    let folder = Folder::new("packaging");
    symlink(Path::new(ROOT).join("packaging"), folder.path().join("packaging")).unwrap();
    folder
}

#[test]
fn real_cluster_manifests_are_what_the_chart_renders() {
    let script = Path::new(ROOT).join("scripts/render-manifests");
    let output = Command::new(script).arg("--check").output().unwrap();
    let [printed, said] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    assert!(output.status.success(), "{printed}{said}");
}

#[test]
fn real_cluster_api_server_takes_every_field_that_the_chart_renders() {
    let (api, folder) = (ApiServer::start(), folder());
    api.client().define(&service_monitor_definition());
    let clients = ClusterClients::new(&api, folder.path());
    let take = "kubectl apply --dry-run=server --validate=strict -f -";
    for values in VARIANTS {
        let taken = clients.output(&format!("{TEMPLATE} {values} > it.yaml\n{take} < it.yaml"));
        assert!(taken.contains("/zonda"), "{values}:\n{taken}");
    }
    let lint = clients.output("helm lint packaging/helm/zonda");
    assert!(lint.contains("0 chart(s) failed"), "{lint}");
    // What a mistake looks like, so that the test is known to find one.
    let wrong =
        clients.run(&format!("{TEMPLATE} | sed s/maxSurge/maxSurges/ > it.yaml\n{take} < it.yaml"));
    assert!(!wrong.status.success());
}

#[test]
fn real_cluster_chart_refuses_values_that_contradict_each_other() {
    let (api, folder) = (ApiServer::start(), folder());
    let clients = ClusterClients::new(&api, folder.path());
    for (values, reason) in REFUSALS {
        let output = clients.run(&format!("{TEMPLATE} {values}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{values} is taken");
        assert!(said.contains(reason), "{values}: {said}");
    }
}

#[test]
fn real_cluster_account_may_read_only_what_its_zone_is_made_of() {
    let (api, folder) = (ApiServer::start(), folder());
    let clients = ClusterClients::new(&api, folder.path());
    let install = |values: &str| {
        let install = "helm upgrade --install zonda packaging/helm/zonda --namespace kube-system";
        clients.output(&format!("{install} {values}"))
    };
    let may = |verb: &str, what: &str| {
        let asked = format!("kubectl auth can-i {verb} {what} --all-namespaces --as {ACCOUNT}");
        clients.run(&asked).status.success()
    };
    let imports = "serviceimports.multicluster.x-k8s.io";
    api.client().define(&service_import_definition());
    install("");
    for what in ["services", "namespaces", "endpointslices.discovery.k8s.io"] {
        assert!(may("list", what) && may("watch", what), "{what}");
        for verb in ["get", "create", "update", "patch", "delete"] {
            assert!(!may(verb, what), "{verb} {what}");
        }
    }
    for what in ["pods", "secrets", "configmaps", "nodes", imports] {
        assert!(!may("list", what), "{what}");
    }
    install("--set kubernetes.options.pods=verified --set kubernetes.options.multicluster=true");
    assert!(may("list", "pods") && may("watch", "pods") && !may("get", "pods"));
    assert!(may("list", imports) && may("watch", imports));

    install("--set rbac.kubeDnsConfigMap=true");
    assert!(!may("list", "pods") && !may("list", "configmaps"));
    let may_here = |name: &str| {
        let asked = format!("kubectl auth can-i watch configmaps/{name} -n kube-system");
        clients.run(&format!("{asked} --as {ACCOUNT}")).status.success()
    };
    assert!(may_here("kube-dns") && !may_here("coredns"));
    install("--set rbac.create=false");
    assert!(!may("list", "services"));
}

#[test]
fn real_cluster_pods_meet_the_restricted_pod_security_standard() {
    let (api, folder) = (ApiServer::start(), folder());
    let clients = ClusterClients::new(&api, folder.path());
    let mut space = namespace("strict");
    space["metadata"]["labels"] = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    api.client().create(&space);
    let create = |values: &str, kind: &str| {
        let pod = pod_of(&clients, values, kind);
        let path = "/api/v1/namespaces/strict/pods?dryRun=All&fieldValidation=Strict";
        let reply = api.client().send("POST", path, Some(("application/json", &pod))).unwrap();
        (reply.status, reply.body)
    };
    for values in ["", "--set corefile.configMap=coredns"] {
        let (status, body) = create(values, "deployment");
        assert_eq!(status, 201, "{values}: {body}");
    }
    // A cache of a node is in the node's network as root, and has nothing else that is forbidden.
    let (status, body) = create(VARIANTS[8], "daemonset");
    assert_eq!(status, 403, "{body}");
    for allowed in ["privileged", "hostPath", "seccomp", "allowPrivilegeEscalation"] {
        assert!(!body.contains(allowed), "{body}");
    }
}

/// Returns the pod that a rendered Deployment or DaemonSet would make.
fn pod_of(clients: &ClusterClients, values: &str, kind: &str) -> Value {
    let template = format!("{TEMPLATE} {values} --show-only templates/{kind}.yaml > pod.yaml");
    let read = "kubectl create --dry-run=client -o json -f pod.yaml";
    let owner = clients.output(&format!("{template}\n{read}"));
    let mut pod = serde_json::from_str::<Value>(&owner).unwrap()["spec"]["template"].take();
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = json!("zonda-0");
    pod
}

#[test]
fn real_cluster_commands_of_the_page_on_installation_do_what_it_says() {
    let (api, folder) = (ApiServer::start(), folder());
    for object in core_dns_objects() {
        api.client().create(&object);
    }
    let clients = ClusterClients::new(&api, folder.path());
    let page = fs::read_to_string(Path::new(ROOT).join(PAGE)).unwrap();
    let (mut printed, mut commands) = (String::new(), 0);
    for (info, text) in blocks(&page) {
        match info.as_str() {
            "sh cluster" => {
                commands += 1;
                printed = clients.output(&text);
            }
            "text cluster" => assert_eq!(printed.trim_end(), text.trim_end(), "{PAGE}"),
            _ => {
                if let Some(name) = info.strip_prefix("yaml ") {
                    folder.write(name, text);
                }
            }
        }
    }
    assert!(commands >= 8, "{PAGE} has {commands} blocks of commands");
}

/// Returns the fenced blocks of a page: what stands behind the fence, and the text.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let body = lines.by_ref().take_while(|line| *line != "```");
        blocks.push((info.to_owned(), body.map(|line| format!("{line}\n")).collect()));
    }
    blocks
}

/// Returns what kubeadm installs of CoreDNS, as far as the page is about it.
fn core_dns_objects() -> Vec<Value> {
    let meta = |name: &str| json!({"name": name, "namespace": "kube-system"});
    let label = json!({"k8s-app": "kube-dns"});
    let ports = json!([
        {"name": "dns", "port": 53, "targetPort": 53, "protocol": "UDP"},
        {"name": "dns-tcp", "port": 53, "targetPort": 53, "protocol": "TCP"},
        {"name": "metrics", "port": 9153, "targetPort": 9153, "protocol": "TCP"},
    ]);
    let containers =
        json!([{"name": "coredns", "image": "registry.k8s.io/coredns/coredns:v1.12.1"}]);
    let template = json!({"metadata": {"labels": label}, "spec": {"containers": containers}});
    vec![
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("coredns"),
            "data": {"Corefile": ".:53 {\n    errors\n}\n"}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": meta("kube-dns"),
            "spec": {"clusterIP": "10.96.0.10", "selector": label, "ports": ports}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("coredns"),
            "spec": {"replicas": 2, "selector": {"matchLabels": label}, "template": template}}),
    ]
}

/// Returns a definition of the Prometheus operator's objects that takes any fields.
fn service_monitor_definition() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
        "spec": {
            "group": "monitoring.coreos.com",
            "scope": "Namespaced",
            "names": {"plural": "servicemonitors", "singular": "servicemonitor",
                "kind": "ServiceMonitor", "listKind": "ServiceMonitorList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}}],
        },
    })
}
