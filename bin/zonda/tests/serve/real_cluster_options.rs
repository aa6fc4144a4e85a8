//! Options of a cluster's zone, beside those of CoreDNS on the same objects.

use crate::real_cluster::{answers_at, comparison};
use crate::server::{Server, wait_until};
use serde_json::{Value, json};
use std::path::Path;
use zonda_testkit::cluster::{
    ApiClient, ApiServer, ClusterZones, CoreDns, Endpoint, Population, Port, cluster_service,
    endpoint_slice, headless_service, namespace, questions,
};
use zonda_testkit::differential::Difference;
use zonda_testkit::{Message, Question, ask};

/// The zone that both servers have.
const ZONES: ClusterZones<'_> = ClusterZones { cluster: "cluster.local", multicluster: "" };
/// Services of any kind.
const SERVICES: usize = 300;
/// Number of the type PTR.
const PTR: u16 = 12;
/// Number of the type SOA.
const SOA: u16 = 6;
/// Wrong names that are asked.
const WRONG_NAMES: usize = 1000;

/// The options of a run: lines of the plugin `kubernetes`, and keys of `[zone.kubernetes]`.
struct Options {
    core_dns: &'static str,
    zonda: &'static str,
}

/// The options that change which names exist, or what they answer.
const OPTIONS: &[Options] = &[
    Options {
        core_dns: "pods insecure\nttl 30\nnamespaces n0 shop",
        zonda: "pods = \"insecure\"\nttl = \"30s\"\nnamespaces = [\"n0\", \"shop\"]",
    },
    Options {
        core_dns: "pods insecure\nnamespace_labels dns=public",
        zonda: "pods = \"insecure\"\nnamespace-labels = \"dns=public\"",
    },
    Options {
        core_dns: "pods disabled\nlabels app in (web, db)",
        zonda: "pods = \"disabled\"\nlabels = \"app in (web, db)\"",
    },
    Options {
        core_dns: "pods verified\nendpoint_pod_names\nignore empty_service",
        zonda: "pods = \"verified\"\nendpoint-pod-names = true\nignore-empty-services = true",
    },
    Options { core_dns: "zonal", zonda: "zonal = true" },
    Options {
        core_dns: "pods insecure\nnoendpoints",
        zonda: "pods = \"insecure\"\nendpoints = false",
    },
];

/// Whether replies differ in names of an address alone that CoreDNS itself denies, as
/// docs/kubernetes.md has it: of namespaces and services that labels hide. Where an address has no
/// other name, it does not exist for Zonda, which a question for SOA shows too.
fn is_of_hidden_names(difference: &Difference, core_dns: &CoreDns) -> bool {
    let names = |reply: &Message| -> Vec<String> {
        reply.answer.iter().map(|record| record.data.text.clone()).collect()
    };
    let (ours, theirs) = (names(&difference.ours), names(&difference.theirs));
    let is_denied = |name: &String| {
        let question = Question::new(name, "A");
        ask(core_dns.address, &question).unwrap().rcode_text() == "NXDOMAIN"
    };
    if difference.question.record_type == SOA && difference.ours.rcode_text() == "NXDOMAIN" {
        let hidden = names(&difference.ask_peer(&difference.question.name, "PTR"));
        return !hidden.is_empty() && hidden.iter().all(is_denied);
    }
    let (shown, hidden): (Vec<_>, Vec<_>) =
        theirs.into_iter().partition(|name| ours.contains(name));
    difference.question.record_type == PTR
        && shown == ours
        && !hidden.is_empty()
        && hidden.iter().all(is_denied)
}

/// Whether CoreDNS alone denies the name of a namespace below `pod`, as docs/kubernetes.md has it:
/// no pod has a name.
fn is_namespace_of_no_pods(difference: &Difference) -> bool {
    let name = difference.question.name.to_ascii_lowercase();
    let labels: Vec<&str> = name.trim_end_matches('.').split('.').collect();
    let codes = (difference.ours.rcode_text(), difference.theirs.rcode_text());
    matches!(labels[..], [_, "pod", "cluster", "local"])
        && difference.ours.answer.is_empty()
        && codes == ("NOERROR".to_owned(), "NXDOMAIN".to_owned())
}

/// Creates services of any kind, of which some have labels, and one of each kind that an option
/// tells apart.
fn populate(client: &ApiClient) {
    Population::create(client, SERVICES, 7);
    client.create(&namespace("shop"));
    let http = [Port::tcp("http", 80)];
    let services = [
        cluster_service("shop", "web", &["IPv4"], &http),
        cluster_service("shop", "empty", &["IPv4"], &http),
        headless_service("shop", "db", &http),
    ];
    client.create_all(&services);
    let endpoints = [
        Endpoint::new("10.244.0.1").hostname("db-0").zone("zone-a"),
        Endpoint::new("10.244.0.2").pod("db-pod").zone("zone-b"),
        Endpoint::new("10.244.0.3").pod("db-far").zone("zone-c.east"),
        Endpoint::new("fd00:244::1").zone("zone-a").unready(),
    ];
    client.create_all(&[
        endpoint_slice("shop", "db-1", "db", &http, &endpoints[..3]),
        endpoint_slice("shop", "db-2", "db", &http, &endpoints[3..]),
        endpoint_slice("shop", "web-1", "web", &http, &endpoints[..1]),
        endpoint_slice("shop", "empty-1", "empty", &http, &endpoints[3..]),
    ]);
    for name in ["n0", "shop"] {
        let public = json!({"metadata": {"labels": {"dns": "public"}}});
        client.patch(&namespace(name), &public);
    }
    let labelled: Vec<Value> = client
        .name_sources()
        .into_iter()
        .filter(|object| object["kind"] != "Namespace")
        .enumerate()
        .filter_map(|(number, object)| {
            let app = ["web", "db", "other", ""][number % 4];
            (!app.is_empty()).then(|| json!([object, app]))
        })
        .collect();
    client.for_all(&labelled, |pair| {
        client.patch(&pair[0], &json!({"metadata": {"labels": {"app": pair[1]}}}))
    });
}

/// Questions about names of topology zones.
fn zonal_questions() -> Vec<Question> {
    let services = ["db.shop", "web.shop", "empty.shop", "none.shop", "s1.n0", "s2.n0"];
    let zones = ["zone-a", "zone-b", "ZONE-A", "zone-c.east", "east", "none"];
    let mut questions = Vec::new();
    for service in services {
        for zone in zones {
            for way in ["pin._zone", "prefer._zone", "other._zone", "pin.zone"] {
                let name = format!("{zone}.{way}.{service}.svc.cluster.local.");
                questions.extend(["A", "AAAA", "SRV", "TXT"].map(|it| Question::new(&name, it)));
            }
        }
    }
    questions
}

/// Zonda with options.
fn zonda_of(kubeconfig: &Path, keys: &str) -> Server {
    let kubeconfig = kubeconfig.display();
    let config = format!(
        "[[zone]]\nname = \"cluster.local\"\n[zone.kubernetes]\nkubeconfig = \"{kubeconfig}\"\n\
         reverse = [\"0.0.0.0/0\", \"::/0\"]\n{keys}\n"
    );
    Server::start(&[], &config)
}

/// CoreDNS with options.
fn core_dns_of(kubeconfig: &Path, lines: &str) -> CoreDns {
    let (kubeconfig, zones) = (kubeconfig.display(), "cluster.local in-addr.arpa ip6.arpa");
    let corefile = format!(
        "{zones} {{\n  bind 127.0.0.1\n  errors\n  kubernetes {zones} {{\n  kubeconfig \
         {kubeconfig}\n{lines}\n  }}\n}}\n"
    );
    CoreDns::start(&corefile, Path::new("/"), &["cluster.local."])
}

#[test]
fn names_under_each_option_are_those_of_coredns() {
    let api = ApiServer::start();
    populate(api.client());
    let objects = api.client().name_sources();
    for options in OPTIONS {
        let server = zonda_of(api.kubeconfig_file(), options.zonda);
        let core_dns = core_dns_of(api.kubeconfig_file(), options.core_dns);
        let is_known = || {
            let asked = ("dns-version.cluster.local.", "TXT");
            answers_at(server.zonda.address, asked.0, asked.1) == ["\"1.1.0\""]
        };
        wait_until("all objects are known", is_known);
        let comparison = comparison(&server, &core_dns);
        println!("{}", options.zonda);
        let questions = questions(&objects, ZONES, WRONG_NAMES, 3);
        let mut outcome = comparison.compare(ZONES.cluster, &questions);
        if options.core_dns.contains("labels") {
            outcome.differences.retain(|it| !is_of_hidden_names(it, &core_dns));
        }
        if !["pods insecure", "pods verified"].iter().any(|it| options.core_dns.contains(it)) {
            outcome.differences.retain(|it| !is_namespace_of_no_pods(it));
        }
        assert!(outcome.differences.is_empty(), "{}\n{}", options.zonda, outcome.report());
        assert!(outcome.questions > 3000, "{} questions", outcome.questions);
        let zonal = comparison.compare(ZONES.cluster, &zonal_questions());
        assert!(zonal.differences.is_empty(), "{}\n{}", options.zonda, zonal.report());
    }
}
