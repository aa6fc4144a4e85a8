//! Zones with the names of a real Kubernetes API server's objects, beside CoreDNS.

use crate::server::{Server, wait_until};
use serde_json::json;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use zonda_testkit::cluster::{
    ApiClient, ApiOptions, ApiServer, ClusterComparison, ClusterZones, CoreDns, Endpoint,
    EtcdBuild, Port, cluster_service, endpoint_slice, external_service, headless_service,
    imported_slice, namespace, pod, pod_status, service_import, service_import_definition,
    without_serials,
};
use zonda_testkit::differential::{AcceptedDifference, Contestant, Difference, Part};
use zonda_testkit::message::{Record, name_text};
use zonda_testkit::process::Folder;
use zonda_testkit::rdata::type_text;
use zonda_testkit::upstream::{self, Reply, always, say, when};
use zonda_testkit::{Question, Upstream, ask};

/// The zones that both servers have.
pub const ZONES: ClusterZones<'_> =
    ClusterZones { cluster: "cluster.local", multicluster: "clusterset.local" };

/// A server with the names of a cluster.
fn zonda(api: &ApiServer) -> Server {
    zonda_of(api.kubeconfig_file())
}

/// A server with the names of the cluster that a kubeconfig leads to.
pub fn zonda_of(kubeconfig: &Path) -> Server {
    let kubeconfig = kubeconfig.display();
    Server::start(
        &[],
        &format!(
            "[[zone]]\nname = \"cluster.local\"\n[zone.kubernetes]\nkubeconfig = \"{kubeconfig}\"\n\
             pods = \"verified\"\nreverse = [\"0.0.0.0/0\", \"::/0\"]\n[[zone]]\nname = \
             \"clusterset.local\"\n[zone.kubernetes]\nkubeconfig = \"{kubeconfig}\"\n\
             multicluster = true\n"
        ),
    )
}

/// CoreDNS with the names of the cluster that a kubeconfig leads to.
pub fn core_dns_of(kubeconfig: &Path) -> CoreDns {
    let kubeconfig = kubeconfig.display();
    let corefile = format!(
        "cluster.local clusterset.local in-addr.arpa ip6.arpa {{\n  bind 127.0.0.1\n  errors\n  \
         kubernetes cluster.local clusterset.local in-addr.arpa ip6.arpa {{\n    kubeconfig \
         {kubeconfig}\n    pods verified\n    multicluster clusterset.local\n  }}\n}}\n"
    );
    CoreDns::start(&corefile, Path::new("/"), &["cluster.local."])
}

/// Creates a service of each kind, with endpoints, and a pod with addresses.
pub fn populate(client: &ApiClient) {
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
        service_import("shop", "web", &["10.7.0.1"], &[http, dns]),
        service_import("shop", "db", &[], &[http]),
        service_import("shop", "six", &["fd00:7::1"], &[http]),
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
    let imported = |network: &str| {
        [
            Endpoint::new(&format!("{network}.1")).hostname("a"),
            Endpoint::new(&format!("{network}.2")),
        ]
    };
    client.create_all(&[
        slice("web-1", "web", &[Endpoint::new("10.244.0.9")]),
        slice("db-4", "db", &named),
        slice("db-6", "db", &[Endpoint::new("fd00:244::1").hostname("db-0")]),
        slice("away-1", "away", &[Endpoint::new("10.244.0.4").unready()]),
        endpoint_slice("shop", "portless-1", "portless", &[], &[Endpoint::new("10.244.0.7")]),
        imported_slice(slice("db-east", "db", &imported("10.8.0")), "east"),
        imported_slice(slice("db-west", "db", &imported("10.9.0")), "west"),
    ]);
    let web = pod("shop", "web-0");
    client.create(&web);
    client.patch_status(&web, &pod_status(&["10.244.0.9", "fd00:244::9"]));
}

/// A server that forwards all names beside those of a cluster, with further keys of that.
fn zonda_that_forwards(api: &ApiServer, upstream: &Upstream, (zone, keys): (&str, &str)) -> Server {
    let (kubeconfig, to) = (api.kubeconfig_file().display(), upstream.address);
    let config = format!(
        "[[zone]]\nname = \".\"\nforward.to = \"{to}\"\n[[zone]]\nname = \"{zone}\"\n\
         [zone.kubernetes]\nkubeconfig = \"{kubeconfig}\"\nreverse = [\"0.0.0.0/0\"]\n{keys}\n"
    );
    Server::start(&[("own.example", OWN)], &config)
}

/// A zone with an alias of a service.
const OWN: &str = "$TTL 60\n@ SOA ns host 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n\
                   web CNAME db-0.db.shop.svc.cluster.local.\n";

/// The data of all answers, sorted, or the response code if there are none.
fn answers(server: &Server, name: &str, record_type: &str) -> Vec<String> {
    answers_at(server.zonda.address, name, record_type)
}

/// The data of all answers of a server, sorted, or the response code if there are none.
pub fn answers_at(server: SocketAddr, name: &str, record_type: &str) -> Vec<String> {
    let question = Question::new(name, record_type).edns(1232).recursive();
    let reply = ask(server, &question).unwrap();
    let mut data: Vec<String> =
        reply.answer.iter().map(|record| record.data.text.clone()).collect();
    data.sort();
    if data.is_empty() { vec![reply.rcode_text()] } else { data }
}

/// Waits until a name has these answers.
pub fn await_answers(server: &Server, name: &str, record_type: &str, expected: &[&str]) {
    let what = format!("{name} {record_type} is {expected:?}");
    wait_until(&what, || answers(server, name, record_type) == expected);
}

/// Number of the type NS.
const NS: u16 = 2;
/// Number of the type SOA.
const SOA: u16 = 6;
/// Number of the type SRV.
const SRV: u16 = 33;
/// Number of the type CNAME.
const CNAME: u16 = 5;
/// Number of the type PTR.
const PTR: u16 = 12;
/// Number of the type TXT.
const TXT: u16 = 16;
/// Number of the type A.
const A: u16 = 1;
/// Number of the type AAAA.
const AAAA: u16 = 28;

/// Response codes of both replies.
fn codes(difference: &Difference) -> (String, String) {
    (difference.ours.rcode_text(), difference.theirs.rcode_text())
}

/// Whether a question is one of those whose name exists without records of the type, and which
/// CoreDNS denies: TXT at the apex and at namespaces, types other than TXT at `dns-version` and
/// other than PTR at names of addresses that have one, `dns` above `ns.dns`, networks in reverse
/// zones, and `_tcp` in front of a service.
fn lacks_the_type(it: &Difference) -> bool {
    let question = &it.question;
    let name = question.name.to_ascii_lowercase();
    let labels: Vec<&str> = name.trim_end_matches('.').split('.').collect();
    let of_address = match labels[..] {
        [.., "in-addr", "arpa"] => Some(6),
        [.., "ip6", "arpa"] => Some(34),
        _ => None,
    };
    if let Some(of_address) = of_address {
        let has_pointer = || it.ask_peer(&question.name, "PTR").answer.iter().any(is_of(PTR));
        return labels.len() < of_address || question.record_type != PTR && has_pointer();
    }
    match labels[..] {
        ["cluster" | "clusterset", "local"] | ["svc" | "pod", _, "local"] => {
            question.record_type == TXT
        }
        [_, "svc" | "pod", "cluster" | "clusterset", "local"] => question.record_type == TXT,
        ["dns-version", _, "local"] => question.record_type != TXT,
        ["dns", _, "local"] => true,
        ["_tcp" | "_udp" | "_sctp", _, _, "svc", _, "local"] => true,
        _ => false,
    }
}

/// Whether a record is of a type.
fn is_of(record_type: u16) -> impl Fn(&Record) -> bool {
    move |record| record.record_type == record_type
}

/// Whether Zonda says what is said of the servers of a zone of which no service has an endpoint
/// here: NS is `ns.dns`, with the address of this server and no other.
fn names_this_server(it: &Difference) -> bool {
    let name = it.question.name.to_ascii_lowercase();
    let (zone, is_apex) = name.strip_prefix("ns.dns.").map_or((&*name, true), |it| (it, false));
    if !["cluster.local.", "clusterset.local."].contains(&zone) {
        return false;
    }
    let server = format!("ns.dns.{zone}");
    let has = |record: &Record, owner: &str, data: &str| {
        name_text(&record.owner) == owner && record.data.text == data
    };
    let is_address = |it: &Record| is_of(A)(it) && has(it, &server, "127.0.0.1");
    let is_server = |it: &Record| is_of(NS)(it) && has(it, zone, &server);
    let (answer, additional) = (&it.ours.answer[..], &it.ours.additional[..]);
    let is_right = match (is_apex, it.question.record_type) {
        (true, NS) => {
            matches!((answer, additional), ([ns], [a]) if is_server(ns) && is_address(a))
        }
        (true, _) => false,
        (false, A) => matches!(answer, [a] if is_address(a)),
        (false, _) => answer.is_empty(),
    };
    it.ours.rcode_text() == "NOERROR" && is_right
}

/// Whether Zonda answers by the alias that CoreDNS has at the name, and with the records of the
/// type that CoreDNS has where it leads to.
fn is_by_the_alias(it: &Difference) -> bool {
    let Some((alias, rest)) = it.ours.answer.split_first().filter(|it| is_of(CNAME)(it.0)) else {
        return false;
    };
    let lines =
        |records: &[Record]| records.iter().map(Record::to_string).collect::<BTreeSet<String>>();
    let own = it.ask_peer(&it.question.name, "CNAME").answer;
    let is_same = own.iter().find(|own| is_of(CNAME)(own)).map(Record::to_string);
    let record_type = type_text(it.question.record_type);
    it.ours.rcode_text() == "NOERROR"
        && is_same == Some(alias.to_string())
        && lines(rest) == lines(&it.ask_peer(&alias.data.text, &record_type).answer)
}

/// Whether Zonda alone says NXDOMAIN.
fn is_denied(difference: &Difference) -> bool {
    codes(difference) == ("NXDOMAIN".to_owned(), "NOERROR".to_owned())
}

/// Differences from CoreDNS, as docs/kubernetes.md has them.
pub const ACCEPTED: &[AcceptedDifference] = &[
    AcceptedDifference {
        name: "a name that exists is never NXDOMAIN for want of a type",
        applies: |it, _| {
            let is_denied = codes(it) == ("NOERROR".to_owned(), "NXDOMAIN".to_owned());
            is_denied && it.ours.answer.is_empty() && lacks_the_type(it)
        },
    },
    AcceptedDifference {
        name: "SOA of a name that does not exist is NXDOMAIN",
        applies: |it, _| {
            // CoreDNS denies other types at the name of an address, and PTR where there is none.
            let is_known = || it.ask_peer(&it.question.name, "PTR").rcode_text() != "NXDOMAIN";
            is_denied(it) && it.question.record_type == SOA && !is_known()
        },
    },
    AcceptedDifference {
        name: "the servers of the zone are ns.dns, with the address of this server",
        applies: |it, _| it.theirs.answer.is_empty() && names_this_server(it),
    },
    AcceptedDifference {
        name: "no name lies below a pod's or an address's",
        applies: |it, _| {
            let name = it.question.name.to_ascii_lowercase();
            let labels = name.trim_end_matches('.').split('.').count();
            let is_below = name.contains(".pod.") && labels > 5
                || name.ends_with(".in-addr.arpa.") && labels > 6
                || name.ends_with(".ip6.arpa.") && labels > 34;
            is_denied(it) && is_below
        },
    },
    AcceptedDifference {
        name: "a port without a name has no name",
        applies: |it, _| is_denied(it) && it.question.name.starts_with("_._"),
    },
    AcceptedDifference {
        name: "an alias stands for all types",
        applies: |it, _| it.theirs.answer.is_empty() && is_by_the_alias(it),
    },
    AcceptedDifference {
        name: "pods have no SRV records",
        applies: |it, _| {
            let name = it.question.name.to_ascii_lowercase();
            let has_no_port = |record: &Record| {
                let data = record.data.text.to_ascii_lowercase();
                data.ends_with(&format!(" 0 {name}"))
            };
            let are_found = codes(it) == ("NOERROR".to_owned(), "NOERROR".to_owned());
            are_found
                && name.contains(".pod.")
                && it.question.record_type == SRV
                && it.ours.answer.is_empty()
                && it.theirs.answer.iter().all(has_no_port)
        },
    },
    AcceptedDifference {
        name: "every address of a pod has its name",
        applies: |it, _| {
            // The second address of the one pod that has two.
            let name = it.question.name.to_ascii_lowercase();
            let is_address = |it: &Record| it.data.text == "fd00:244::9";
            let is_right = match (it.question.record_type, &it.ours.answer[..]) {
                (AAAA, answer) => matches!(answer, [it] if is_address(it)),
                (_, answer) => answer.is_empty(),
            };
            codes(it) == ("NOERROR".to_owned(), "NXDOMAIN".to_owned())
                && is_right
                && name == "fd00-244--9.shop.pod.cluster.local."
        },
    },
    AcceptedDifference {
        name: "addresses of targets that do not fit are left out",
        applies: |it, part| {
            let is_part = |part: &Record| {
                it.theirs.additional.iter().any(|other| other.to_string() == part.to_string())
            };
            // Over UDP at most 1,232 octets are sent, whatever the client takes.
            let is_short = !it.question.tcp && it.question.record_type == SRV;
            part == Part::Additional && is_short && it.ours.additional.iter().all(is_part)
        },
    },
];

/// The comparison of both servers.
pub fn comparison(server: &Server, core_dns: &CoreDns) -> ClusterComparison<'static> {
    comparison_of(server, core_dns, ACCEPTED)
}

/// The comparison of both servers, with these differences.
pub fn comparison_of<'a>(
    server: &Server,
    core_dns: &CoreDns,
    accepted: &'a [AcceptedDifference],
) -> ClusterComparison<'a> {
    let ours = Contestant { name: "Zonda".to_owned(), address: server.zonda.address };
    let theirs = core_dns.contestant();
    ClusterComparison { ours, theirs, view: without_serials, accepted }
}

/// Returns a number that the environment may set.
pub fn number_of(variable: &str, default: usize) -> usize {
    let set = std::env::var(variable).ok();
    set.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable} is no number")))
}

#[test]
fn changes_are_followed_across_restarts_and_expired_versions() {
    let mut api = ApiServer::start();
    populate(api.client());
    let server = zonda(&api);
    let name = "db-0.db.shop.svc.cluster.local";
    await_answers(&server, name, "A", &["10.244.0.1"]);

    api.kill_api();
    assert_eq!(answers(&server, name, "A"), ["10.244.0.1"], "the API server is away");
    api.start_api();
    let moved = [Endpoint::new("10.244.1.1").hostname("db-0")];
    api.client().replace(&endpoint_slice("shop", "db-4", "db", &[Port::tcp("http", 80)], &moved));
    await_answers(&server, name, "A", &["10.244.1.1"]);

    api.expire_versions();
    api.client().delete(&headless_service("shop", "portless", &[]));
    await_answers(&server, "portless.shop.svc.cluster.local", "A", &["NXDOMAIN"]);
    api.client().apply(&external_service("shop", "far", "farther.example.org"));
    await_answers(&server, "far.shop.svc.cluster.local", "CNAME", &["farther.example.org."]);
}

#[test]
fn names_are_servfail_until_all_objects_are_known_and_never_nxdomain() {
    let mut api = ApiServer::start();
    populate(api.client());
    api.kill_api();
    let server = zonda(&api);
    for name in ["web.shop.svc.cluster.local", "cluster.local", "1.0.244.10.in-addr.arpa"] {
        assert_eq!(answers(&server, name, "A"), ["SERVFAIL"], "{name}");
    }
    api.start_api();
    await_answers(&server, "db-0.db.shop.svc.cluster.local", "A", &["10.244.0.1"]);
}

#[test]
fn names_are_answered_from_the_snapshot_file_after_a_start_without_the_api() {
    let mut api = ApiServer::start();
    populate(api.client());
    let folder = Folder::new("cluster-snapshot");
    let (kubeconfig, file) =
        (api.kubeconfig_file().display().to_string(), folder.path().join("names"));
    let config = format!(
        "[[zone]]\nname = \".\"\nforward.to = \"127.0.0.1:9\"\n[[zone]]\nname = \"cluster.local\"\n\
         [zone.kubernetes]\nkubeconfig = \"{kubeconfig}\"\npods = \"verified\"\n\
         reverse = [\"10.0.0.0/8\"]\nfall-through = true\nsnapshot = \"{}\"\n",
        file.display()
    );
    let known = [
        ("db-0.db.shop.svc.cluster.local", "A", "10.244.0.1"),
        ("far.shop.svc.cluster.local", "CNAME", "far.example.org."),
        ("10-244-0-9.shop.pod.cluster.local", "A", "10.244.0.9"),
        ("1.0.244.10.in-addr.arpa", "PTR", "db-0.db.shop.svc.cluster.local."),
    ];
    let mut server = Server::start(&[], &config);
    for (name, record_type, answer) in known {
        await_answers(&server, name, record_type, &[answer]);
    }
    // Killed at any moment, a server leaves a whole file behind.
    wait_until("the snapshot is written", || file.exists());
    server.kill();
    api.kill_api();

    server.start_again(&[]);
    for (name, record_type, answer) in known {
        assert_eq!(answers(&server, name, record_type), [answer], "{name} from the file");
    }
    for name in ["new.shop.svc.cluster.local", "a.new.svc.cluster.local", "9.9.9.10.in-addr.arpa"] {
        assert_eq!(answers(&server, name, "A"), ["SERVFAIL"], "{name} may exist by now");
    }
    let ready = server.get("/ready").1;
    assert!(ready.starts_with("ready\nzone cluster.local. is stale: its names are those of 20"));
    assert!(
        server
            .get("/metrics")
            .1
            .contains("zonda_cluster_followed{zone=\"cluster.local.\",kind=\"services\"} 0\n")
    );
    let written = std::fs::read_to_string(&file).unwrap();
    server.restart();
    let same = std::fs::read_to_string(&file).unwrap() == written;
    assert!(same, "names of the file are not written again as if they were new");
    // Nor do they become new by a reload.
    server.configure(&config.replace("snapshot =", "ttl = \"6s\"\nsnapshot ="));
    assert_eq!(server.post("/v1/reload").0, 200);
    assert!(server.get("/ready").1.starts_with("ready\nzone cluster.local. is stale: "));
    let pods = "zonda_cluster_names{zone=\"cluster.local.\",of=\"pods\"} 2\n";
    assert!(server.get("/metrics").1.contains(pods), "{}", server.get("/metrics").1);

    api.start_api();
    let moved = [Endpoint::new("10.244.1.1").hostname("db-0")];
    api.client().replace(&endpoint_slice("shop", "db-4", "db", &[Port::tcp("http", 80)], &moved));
    await_answers(&server, "db-0.db.shop.svc.cluster.local", "A", &["10.244.1.1"]);
    await_answers(&server, "new.shop.svc.cluster.local", "A", &["NXDOMAIN"]);
    assert_eq!(server.get("/ready"), (200, "ready\n".to_owned()));
    let metrics = server.get("/metrics").1;
    for line in [
        "zonda_cluster_stale_timestamp_seconds{zone=\"cluster.local.\"} 0\n",
        "zonda_cluster_followed{zone=\"cluster.local.\",kind=\"endpointslices\"} 1\n",
        "zonda_cluster_names{zone=\"cluster.local.\",of=\"pods\"} 2\n",
    ] {
        assert!(metrics.contains(line), "{line} in:\n{metrics}");
    }

    api.kill_api();
    reload_with_other_keys(&server, &config, (&kubeconfig, &folder));
}

/// Reloads a server, whose API is away, with keys under which all, some or none of the names that
/// it knows may stay.
fn reload_with_other_keys(server: &Server, config: &str, (kubeconfig, folder): (&str, &Folder)) {
    // A server that knows all objects does not go back to what the file had.
    server.configure(&config.replace("snapshot =", "ttl = \"7s\"\nsnapshot ="));
    assert_eq!(server.post("/v1/reload").0, 200);
    assert_eq!(answers(server, "db-0.db.shop.svc.cluster.local", "A"), ["10.244.1.1"]);
    assert_eq!(answers(server, "new.shop.svc.cluster.local", "A"), ["NXDOMAIN"]);

    // The same cluster may have more names with other keys, and another one has other names.
    server.configure(&config.replace("snapshot =", "zonal = true\nsnapshot ="));
    assert_eq!(server.post("/v1/reload").0, 200);
    await_answers(server, "new.shop.svc.cluster.local", "A", &["SERVFAIL"]);
    assert_eq!(answers(server, "db-0.db.shop.svc.cluster.local", "A"), ["10.244.1.1"]);
    let other = folder.write("kubeconfig", std::fs::read(kubeconfig).unwrap());
    server.configure(&config.replace(kubeconfig, other.to_str().unwrap()));
    assert_eq!(server.post("/v1/reload").0, 200);
    await_answers(server, "db-0.db.shop.svc.cluster.local", "A", &["SERVFAIL"]);
    assert_eq!(answers(server, "1.1.244.10.in-addr.arpa", "PTR"), ["SERVFAIL"]);
}

#[test]
fn an_api_that_cannot_stream_lists_is_followed_by_pages() {
    let etcd = EtcdBuild::Distribution;
    for options in [
        ApiOptions { streaming_lists: false, ..ApiOptions::default() },
        ApiOptions { etcd, ..ApiOptions::default() },
    ] {
        let api = ApiServer::start_with(options);
        populate(api.client());
        let services: Vec<_> = (0..300)
            .map(|number| headless_service("shop", &format!("many-{number}"), &[]))
            .collect();
        api.client().create_all(&services);
        let server = zonda(&api);
        await_answers(&server, "db-0.db.shop.svc.cluster.local", "A", &["10.244.0.1"]);
        api.client().apply(&external_service("shop", "far", "paged.example.org"));
        await_answers(&server, "far.shop.svc.cluster.local", "CNAME", &["paged.example.org."]);
    }
}

#[test]
fn a_change_is_answered_within_fifty_milliseconds_and_its_time_is_counted() {
    let api = ApiServer::start();
    populate(api.client());
    let server = zonda(&api);
    await_answers(&server, "db-0.db.shop.svc.cluster.local", "A", &["10.244.0.1"]);
    let mut times = Vec::new();
    for number in 1..=9 {
        let address = format!("10.244.2.{number}");
        let moved = [Endpoint::new(&address).hostname("db-0")];
        let mut slice = endpoint_slice("shop", "db-4", "db", &[Port::tcp("http", 80)], &moved);
        // As the controller of slices notes it.
        slice["metadata"]["annotations"] =
            json!({"endpoints.kubernetes.io/last-change-trigger-time": utc_now()});
        api.client().replace(&slice);
        let begin = Instant::now();
        await_answers(&server, "db-0.db.shop.svc.cluster.local", "A", &[&address]);
        times.push(begin.elapsed());
    }
    times.sort();
    println!("from the API's reply to the answer: {times:?}");
    assert!(times[4].as_millis() < 50, "{times:?}");
    let metrics = server.get("/metrics").1;
    let counted = "zonda_cluster_programming_seconds_count{zone=\"cluster.local.\"} 9\n";
    assert!(metrics.contains(counted), "{counted} in:\n{metrics}");
}

/// The time, as annotations have it.
fn utc_now() -> String {
    let output = Command::new("date").args(["--utc", "+%FT%T.%6NZ"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn names_that_the_cluster_lacks_fall_through_to_upstreams_where_that_is_wanted() {
    let api = ApiServer::start();
    populate(api.client());
    let upstream = Upstream::start([always().then([say(Reply::address(7))])]);
    let of_upstream = ask(upstream.address, &Question::new("far.example.org", "A").recursive());
    let of_upstream = of_upstream.unwrap().answer[0].data.text.clone();
    let [known, unknown] = ["db-0.db", "none"].map(|it| format!("{it}.shop.svc.k8s.example.net"));
    let private = "9.9.9.10.in-addr.arpa";
    for (keys, name, address) in [
        ("", "NXDOMAIN", "NXDOMAIN"),
        ("fall-through = true", &*of_upstream, &*of_upstream),
        ("fall-through = true\nfall-through-zones = [\"in-addr.arpa\"]", "NXDOMAIN", &*of_upstream),
    ] {
        let server = zonda_that_forwards(&api, &upstream, ("k8s.example.net", keys));
        await_answers(&server, &known, "A", &["10.244.0.1"]);
        for _ in 0..2 {
            // The second time from the answer cache.
            assert_eq!(answers(&server, &unknown, "A"), [name], "{keys}");
            assert_eq!(answers(&server, private, "A"), [address], "{keys}");
        }
        assert_eq!(
            answers(&server, "1.0.244.10.in-addr.arpa", "PTR"),
            ["db-0.db.shop.svc.k8s.example.net."]
        );
    }
}

#[test]
fn aliases_lead_out_of_the_cluster_and_into_it() {
    let api = ApiServer::start();
    populate(api.client());
    let upstream = Upstream::start([always().then([say(Reply::address(7))])]);
    api.client().apply(&external_service("shop", "far", "far.example.net"));
    let server =
        zonda_that_forwards(&api, &upstream, ("cluster.local", "[answers]\ncross-zone = true"));
    await_answers(&server, "db-0.db.shop.svc.cluster.local", "A", &["10.244.0.1"]);
    let out = answers(&server, "far.shop.svc.cluster.local", "A");
    assert!(out.len() == 2 && out.contains(&"far.example.net.".to_owned()), "{out:?}");
    let within = answers(&server, "near.shop.svc.cluster.local", "A");
    let own = answers(&server, "web.shop.svc.cluster.local", "A");
    let alias = "web.shop.svc.cluster.local.".to_owned();
    assert_eq!(
        within.iter().cloned().collect::<BTreeSet<_>>(),
        BTreeSet::from_iter([own, vec![alias]].concat())
    );
    let into = answers(&server, "web.own.example", "A");
    assert!(into.contains(&"10.244.0.1".to_owned()), "{into:?}");
}

#[test]
fn a_truncated_answer_behind_an_external_name_is_had_over_tcp_and_truncated_for_the_client() {
    let api = ApiServer::start();
    populate(api.client());
    let addresses = (0..100_u32).map(|number| upstream::Record::new("A", number.to_be_bytes()));
    let upstream = Upstream::start([
        when(|asked| !asked.tcp).then([say(Reply::address(66).truncated())]),
        always().then([say(addresses.fold(Reply::empty(), Reply::answer))]),
    ]);
    api.client().apply(&external_service("shop", "far", "far.example.net"));
    let server =
        zonda_that_forwards(&api, &upstream, ("cluster.local", "[answers]\ncross-zone = true"));
    await_answers(&server, "db-0.db.shop.svc.cluster.local", "A", &["10.244.0.1"]);
    let question = Question::new("far.shop.svc.cluster.local", "A").recursive();
    let reply = ask(server.zonda.address, &question).unwrap();
    assert!(reply.truncated(), "{:?}", reply.answer);
    assert!(reply.answer.iter().all(|it| it.data.text != "192.0.2.66"), "{:?}", reply.answer);
    let reply = ask(server.zonda.address, &question.over_tcp()).unwrap();
    assert_eq!((reply.truncated(), reply.answer.len()), (false, 101));
}

#[test]
fn imports_are_followed_once_they_are_defined_and_one_that_is_wrong_stalls_no_other() {
    let api = ApiServer::start();
    let client = api.client();
    client.create(&namespace("shop"));
    let kubeconfig = api.kubeconfig_file().display();
    let config = format!(
        "[[zone]]\nname = \"clusterset.local\"\n[zone.kubernetes]\nkubeconfig = \
         \"{kubeconfig}\"\nmulticluster = true\n"
    );
    let server = Server::start(&[], &config);
    let name = "web.shop.svc.clusterset.local";
    wait_until("the log says what to install", || {
        server.zonda.process.log("").contains("is their definition (CRD) installed?")
    });
    assert_eq!(answers(&server, name, "A"), ["SERVFAIL"]);
    client.define(&service_import_definition());
    let mut wrong = service_import("shop", "wrong", &["10.7.0.9"], &[]);
    wrong["spec"]["ips"] = "10.7.0.9".into();
    client.create(&wrong);
    client.create(&service_import("shop", "web", &["10.7.0.1"], &[Port::tcp("http", 80)]));
    let limit = Instant::now() + Duration::from_secs(60); // it is asked again now and then
    while answers(&server, name, "A") != ["10.7.0.1"] && Instant::now() < limit {
        thread::sleep(Duration::from_millis(50));
    }
    await_answers(&server, name, "A", &["10.7.0.1"]);
    assert_eq!(answers(&server, "wrong.shop.svc.clusterset.local", "A"), ["NXDOMAIN"]);
    let log = server.zonda.process.log("");
    assert!(log.contains("cannot be decoded") && log.contains("name=\"wrong\""), "{log}");
}
