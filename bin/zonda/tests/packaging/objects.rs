//! What a real API server knows of the rendered objects: that it takes every field, what the
//! account may do, and which standard the pods meet.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use zonda_testkit::cluster::{ApiServer, ClusterClients, namespace, service_import_definition};

use crate::{NODE_CACHE, ROOT, TEMPLATE, VARIANTS, folder};

/// The account of the chart's pods.
const ACCOUNT: &str = "system:serviceaccount:kube-system:zonda";

/// Values that are refused, and a part of the reason.
const REFUSALS: &[(&str, &str)] = &[
    ("--set kubernetes.zones=cluster.local", "zones"),
    ("--set mode=node-local", "nodeLocal.upstream is missing"),
    ("--set corefile.text=x --set corefile.configMap=y", "exclude each other"),
    ("--set config=x --set corefile.configMap=y", "exclude each other"),
    ("--set config=x --set kubeDnsConfigMap=y", "extraVolumes"),
    ("--set metrics.serviceMonitor=true --set ports.metrics=0", "needs ports.metrics"),
    ("--set metrics.serviceMonitor=true --set service.create=false", "needs service.create"),
    ("--set autoscaling.enabled=true --set autoscaling.cpuUtilization=0", "cpuUtilization"),
    ("--set autoscaling.enabled=true --set kind=DaemonSet", "kind Deployment"),
    ("--set autoscaling.enabled=true --set proportional.enabled=true", "exclude each other"),
    ("--set kubernetes.options.snapshot=x", "is a value of its own"),
];

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
    api.client().create(&namespace("shop"));
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
    api.client().create(&namespace("shop"));
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
    install("--set kubernetes.pods=verified --set kubernetes.multicluster=clusterset.local");
    assert!(may("list", "pods") && may("watch", "pods") && !may("get", "pods"));
    assert!(may("list", imports) && may("watch", imports));

    install("--set kubernetes.namespaces={shop}");
    assert!(!may("list", "services") && !may("list", "namespaces") && !may("list", "pods"));
    let may_in = |namespace: &str, what: &str| {
        let asked = format!("kubectl auth can-i watch {what} -n {namespace} --as {ACCOUNT}");
        clients.run(&asked).status.success()
    };
    assert!(may_in("shop", "services") && !may_in("kube-system", "services"));
    assert!(may_in("shop", "namespaces/shop") && !may_in("shop", "namespaces/kube-system"));
    install("--set kubernetes.namespaces={shop\\,kube-system}");
    assert!(may_in("shop", "services") && may_in("kube-system", "endpointslices"));
    assert!(!may("list", "services") && !may_in("default", "services"));
    assert!(may_in("shop", "namespaces/shop") && may_in("kube-system", "namespaces/kube-system"));
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
    for values in ["", "--set corefile.configMap=coredns", "--set kubernetes.autopath=true"] {
        let (status, body) = create(values, "deployment");
        assert_eq!(status, 201, "{values}: {body}");
    }
    // A cache of a node is in the node's network as root, and has nothing else that is forbidden.
    let (status, body) = create(NODE_CACHE, "daemonset");
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

#[test]
fn image_has_the_program_the_user_and_the_folders_of_the_pods() {
    let read = |path| fs::read_to_string(Path::new(ROOT).join(path)).unwrap();
    let (image, pods) = (read("packaging/Dockerfile"), read("packaging/kubernetes/zonda.yaml"));
    assert!(image.contains("\nENTRYPOINT [\"/usr/bin/zonda\"]\n"), "{image}");
    assert!(image.contains("/cc-debian12:nonroot@sha256:"), "its user is 65532:\n{image}");
    for folder in ["/run/zonda", "/var/lib/zonda"] {
        assert!(image.contains(&format!(" /image{folder}")), "{image}");
        assert!(pods.contains(&format!("mountPath: {folder}\n")), "{pods}");
    }
    assert!(pods.contains("runAsUser: 65532\n") && pods.contains("fsGroup: 65532\n"), "{pods}");
}
