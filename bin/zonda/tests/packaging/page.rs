//! The page on the installation: its commands do what it says.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use zonda_testkit::cluster::{ApiServer, ClusterClients};

use crate::{ROOT, folder};

/// Page whose commands are run.
const PAGE: &str = "docs/kubernetes-install.md";

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
