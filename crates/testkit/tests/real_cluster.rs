//! The peers of cluster names, tried without Zonda: a Kubernetes API server and CoreDNS.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use zonda_testkit::cluster::{
    ApiClient, ApiOptions, ApiServer, ClusterComparison, ClusterZones, CoreDns, Endpoint,
    EtcdBuild, Population, Port, cluster_service, endpoint_slice, external_service,
    headless_service, imported_slice, namespace, pod, pod_status, reverse_name, service_import,
    service_import_definition, without_serials,
};
use zonda_testkit::{Message, Question, ask};

/// Zones that CoreDNS serves.
const ZONES: ClusterZones<'_> =
    ClusterZones { cluster: "cluster.local", multicluster: "clusterset.local" };
/// How long a change may take until CoreDNS answers with it.
const CHANGE_LIMIT: Duration = Duration::from_secs(30);

/// Starts CoreDNS on a cluster.
fn core_dns(api: &ApiServer) -> CoreDns {
    let kubeconfig = api.kubeconfig_file().display();
    let corefile = format!(
        "cluster.local clusterset.local in-addr.arpa ip6.arpa {{\n  bind 127.0.0.1\n  errors\n  \
         kubernetes cluster.local clusterset.local in-addr.arpa ip6.arpa {{\n    kubeconfig \
         {kubeconfig}\n    pods verified\n    multicluster clusterset.local\n  }}\n}}\n"
    );
    CoreDns::start(&corefile, Path::new("/"), &["cluster.local."])
}

/// Creates a service of each kind, with endpoints, and a pod with addresses.
fn populate(client: &ApiClient) {
    client.define(&service_import_definition());
    client.create(&namespace("shop"));
    let (http, dns) = (Port::tcp("http", 80), Port::udp("dns", 53));
    let (ip4, ip6) = (&["IPv4"][..], &["IPv4", "IPv6"][..]);
    client.create_all(&[
        cluster_service("shop", "web", ip6, &[http, dns]),
        cluster_service("shop", "old", ip4, &[Port::tcp("", 8080)]),
        headless_service("shop", "db", &[http]),
        headless_service("shop", "portless", &[]),
        headless_service("shop", "away", &[http]),
        external_service("shop", "far", "far.example.org"),
        external_service("shop", "near", "web.shop.svc.cluster.local"),
        service_import("shop", "web", &["10.7.0.1"], &[http]),
        service_import("shop", "db", &[], &[http]),
    ]);
    let named = [
        Endpoint::new("10.244.0.1").hostname("db-0"),
        Endpoint::new("10.244.0.2").hostname("db-1").zone("here"),
        Endpoint::new("10.244.0.3").pod("db-pod"),
        Endpoint::new("10.244.0.4").hostname("db-4").unready(),
    ];
    let slice = |name, service, endpoints: &[Endpoint]| {
        endpoint_slice("shop", name, service, &[http], endpoints)
    };
    client.create_all(&[
        slice("web-1", "web", &[Endpoint::new("10.244.0.9")]),
        slice("db-4", "db", &named),
        slice("db-6", "db", &[Endpoint::new("fd00:244::1").hostname("db-0")]),
        slice("away-1", "away", &[Endpoint::new("10.244.0.4").unready()]),
        endpoint_slice("shop", "portless-1", "portless", &[], &[Endpoint::new("10.244.0.7")]),
        imported_slice(slice("db-far", "db", &[Endpoint::new("10.8.0.1").hostname("a")]), "east"),
    ]);
    let web = pod("shop", "web-0");
    client.create(&web);
    client.patch_status(&web, &pod_status(&["10.244.0.9", "fd00:244::9"]));
}

/// Returns the data of all answers, sorted, or the response code if there are none.
fn answers(server: &CoreDns, name: &str, record_type: &str) -> Vec<String> {
    let reply = query(server, name, record_type);
    let mut data: Vec<String> =
        reply.answer.iter().map(|record| record.data.text.clone()).collect();
    data.sort();
    if data.is_empty() { vec![reply.rcode_text()] } else { data }
}

/// Asks one question.
fn query(server: &CoreDns, name: &str, record_type: &str) -> Message {
    ask(server.address, &Question::new(name, record_type).edns(1232)).expect("CoreDNS answers")
}

/// Waits until a name has these answers.
fn wait_for(server: &CoreDns, name: &str, record_type: &str, expected: &[&str]) {
    let limit = Instant::now() + CHANGE_LIMIT;
    while answers(server, name, record_type) != expected {
        let found = answers(server, name, record_type);
        assert!(Instant::now() < limit, "{name} {record_type}: {found:?}, not {expected:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns an address that the API server gave to a service.
fn cluster_address(client: &ApiClient, name: &str, number: usize) -> String {
    let service = client.get(&format!("/api/v1/namespaces/shop/services/{name}")).json();
    service["spec"]["clusterIPs"][number].as_str().expect("a service has addresses").to_owned()
}

#[test]
fn real_cluster_names_of_every_kind_are_answered() {
    let api = ApiServer::start();
    populate(api.client());
    let server = core_dns(&api);
    let of = |name: &str, record_type| answers(&server, name, record_type);

    let [ip4, ip6] = [0, 1].map(|number| cluster_address(api.client(), "web", number));
    assert_eq!(of("web.shop.svc.cluster.local.", "A"), [ip4.as_str()]);
    let (ip4, ip6) = (ip4.parse().unwrap(), ip6.parse().unwrap());
    assert_eq!(of(&reverse_name(ip4), "PTR"), ["web.shop.svc.cluster.local."]);
    assert_eq!(of(&reverse_name(ip6), "PTR"), ["web.shop.svc.cluster.local."]);
    let srv = ["0 50 53 web.shop.svc.cluster.local."];
    assert_eq!(of("_dns._udp.web.shop.svc.cluster.local.", "SRV"), srv);

    let db = ["10.244.0.1", "10.244.0.2", "10.244.0.3"];
    assert_eq!(of("db.shop.svc.cluster.local.", "A"), db);
    assert_eq!(of("db-0.db.shop.svc.cluster.local.", "AAAA"), ["fd00:244::1"]);
    assert_eq!(of("10-244-0-3.db.shop.svc.cluster.local.", "A"), ["10.244.0.3"]);
    assert_eq!(of("portless.shop.svc.cluster.local.", "A"), ["10.244.0.7"]);
    assert_eq!(of("away.shop.svc.cluster.local.", "A"), ["NXDOMAIN"]);
    assert_eq!(of("far.shop.svc.cluster.local.", "CNAME"), ["far.example.org."]);
    assert_eq!(of("10-244-0-9.shop.pod.cluster.local.", "A"), ["10.244.0.9"]);
    assert_eq!(of("10-244-0-8.shop.pod.cluster.local.", "A"), ["NXDOMAIN"]);
    assert_eq!(of("web.shop.svc.clusterset.local.", "A"), ["10.7.0.1"]);
    assert_eq!(of("a.east.db.shop.svc.clusterset.local.", "A"), ["10.8.0.1"]);
    assert_eq!(of("dns-version.cluster.local.", "TXT"), ["\"1.1.0\""]);
}

#[test]
fn real_cluster_changes_are_followed_across_restarts_and_expired_versions() {
    let mut api = ApiServer::start();
    populate(api.client());
    let server = core_dns(&api);
    let name = "db-0.db.shop.svc.cluster.local.";
    wait_for(&server, name, "A", &["10.244.0.1"]);

    let begin = Instant::now();
    api.restart();
    println!("the API server and etcd were restarted in {:?}", begin.elapsed());
    let client = api.client();
    let moved = [Endpoint::new("10.244.1.1").hostname("db-0")];
    client.replace(&endpoint_slice("shop", "db-4", "db", &[Port::tcp("http", 80)], &moved));
    wait_for(&server, name, "A", &["10.244.1.1"]);

    api.expire_versions();
    let client = api.client();
    client.delete(&headless_service("shop", "portless", &[]));
    wait_for(&server, "portless.shop.svc.cluster.local.", "A", &["NXDOMAIN"]);
    client.apply(&external_service("shop", "far", "farther.example.org"));
    wait_for(&server, "far.shop.svc.cluster.local.", "CNAME", &["farther.example.org."]);
}

#[test]
fn real_cluster_names_are_answered_while_the_api_server_is_away() {
    let mut api = ApiServer::start();
    populate(api.client());
    let server = core_dns(&api);
    let (name, far) = ("db-0.db.shop.svc.cluster.local.", "far.shop.svc.cluster.local.");

    api.freeze_api();
    assert_eq!(answers(&server, name, "A"), ["10.244.0.1"]);
    api.thaw_api();
    api.client().apply(&external_service("shop", "far", "thawed.example.org"));
    wait_for(&server, far, "CNAME", &["thawed.example.org."]);

    api.kill_api();
    assert!(api.client().send("GET", "/readyz", None).is_err());
    assert_eq!(answers(&server, name, "A"), ["10.244.0.1"]);
    api.start_api();
    api.client().apply(&external_service("shop", "far", "back.example.org"));
    wait_for(&server, far, "CNAME", &["back.example.org."]);
}

/// Returns the code of the first event of a watch, which is an error's if it has one.
fn error_code(watch: &str) -> Option<u64> {
    let event: Value = serde_json::from_str(watch.lines().next()?).ok()?;
    (event["type"] == "ERROR").then(|| event["object"]["code"].as_u64())?
}

#[test]
fn real_cluster_old_versions_expire_by_compaction() {
    let path = "/api/v1/namespaces/default/configmaps";
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    let change = |client: &ApiClient, value: &str| {
        client.patch(&map, &json!({"data": {"key": value}}));
    };
    for watch_cache in [true, false] {
        let mut api = ApiServer::start_with(ApiOptions { watch_cache, ..ApiOptions::default() });
        api.client().create(&map);
        let old = api.client().resource_version(path);
        change(api.client(), "a");
        let exact = format!("{path}?resourceVersion={old}&resourceVersionMatch=Exact");
        assert_eq!(api.client().get(&exact).status, 200);
        assert_eq!(error_code(&api.client().watch(path, &old, 1).body), None);

        change(api.client(), "b");
        api.compact();
        assert_eq!(api.client().get(&exact).status, 410);
        if watch_cache {
            // The server still has the events in its memory.
            assert_eq!(error_code(&api.client().watch(path, &old, 1).body), None);
            api.expire_versions();
        }
        let watch = api.client().watch(path, &old, 1);
        assert_eq!((watch.status, error_code(&watch.body)), (200, Some(410)), "{}", watch.body);
    }
}

/// Returns what a streamed list of namespaces brings within two seconds.
fn streamed_list(api: &ApiServer) -> String {
    let query = "watch=true&sendInitialEvents=true&allowWatchBookmarks=true\
                 &resourceVersionMatch=NotOlderThan&timeoutSeconds=2";
    let reply = api.client().get(&format!("/api/v1/namespaces?{query}"));
    format!("{} {}", reply.status, reply.body)
}

/// What the bookmark after the last object of a streamed list has.
const END_OF_LIST: &str = "\"k8s.io/initial-events-end\":\"true\"";

#[test]
fn real_cluster_lists_are_streamed_unless_that_is_off() {
    let reply = streamed_list(&ApiServer::start());
    assert!(reply.starts_with("200 ") && reply.contains(END_OF_LIST), "{reply}");

    let options = ApiOptions { streaming_lists: false, ..ApiOptions::default() };
    let reply = streamed_list(&ApiServer::start_with(options));
    assert!(reply.starts_with("422 ") && reply.contains("forbidden"), "{reply}");
}

#[test]
fn real_cluster_runs_on_the_distributions_etcd_too() {
    let options = ApiOptions { etcd: EtcdBuild::Distribution, ..ApiOptions::default() };
    let api = ApiServer::start_with(options);
    api.client().create(&namespace("shop"));
    let names: Vec<Value> = api.client().list("/api/v1/namespaces");
    assert!(names.iter().any(|one| one["metadata"]["name"] == "shop"), "{names:?}");
    // An old etcd makes the server refuse by an event of the watch that is an error.
    let reply = streamed_list(&api);
    let is_refused = error_code(&reply["200 ".len()..]) == Some(500);
    assert!(is_refused || reply.contains(END_OF_LIST), "{reply}");
}

/// Returns a comparison of two instances of CoreDNS.
fn comparison(first: &CoreDns, second: &CoreDns) -> ClusterComparison<'static> {
    ClusterComparison {
        ours: first.contestant(),
        theirs: second.contestant(),
        view: without_serials,
        accepted: &[],
    }
}

#[test]
fn real_cluster_servers_agree_on_thousands_of_names_before_and_after_changes() {
    let api = ApiServer::start();
    populate(api.client());
    let begin = Instant::now();
    let mut population = Population::create(api.client(), 1000, 1);
    let objects = api.client().name_sources();
    println!("{} objects were created in {:?}", objects.len(), begin.elapsed());

    let (first, second) = (core_dns(&api), core_dns(&api));
    let comparison = comparison(&first, &second);
    let begin = Instant::now();
    let outcome = comparison.judge(&objects, ZONES, 2000, 1);
    println!("{} questions were asked in {:?}", outcome.questions, begin.elapsed());
    assert!(outcome.questions > 10_000, "{}", outcome.questions);

    let begin = Instant::now();
    (0..300).for_each(|_| population.change(api.client()));
    println!("300 changes were made in {:?}", begin.elapsed());
    api.client().apply(&external_service("shop", "far", "last.example.org"));
    for server in [&first, &second] {
        wait_for(server, "far.shop.svc.cluster.local.", "CNAME", &["last.example.org."]);
    }
    comparison.judge(&api.client().name_sources(), ZONES, 2000, 2);
}

#[test]
fn real_cluster_comparison_notices_a_server_that_lacks_a_change() {
    let (api, other) = (ApiServer::start(), ApiServer::start());
    populate(api.client());
    populate(other.client());
    other.client().apply(&external_service("shop", "far", "other.example.org"));
    let (first, second) = (core_dns(&api), core_dns(&other));
    wait_for(&second, "far.shop.svc.cluster.local.", "CNAME", &["other.example.org."]);
    let questions = [Question::new("far.shop.svc.cluster.local.", "CNAME")];
    let report = comparison(&first, &second).compare(ZONES.cluster, &questions).report();
    assert!(report.contains("far.example.org."), "{report}");
    assert!(report.contains("other.example.org."), "{report}");
}
