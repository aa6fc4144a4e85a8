//! Zones of external addresses of a real Kubernetes API server's services, beside CoreDNS.

use crate::real_cluster::{await_answers, comparison_of};
use crate::server::Server;
use serde_json::{Value, json};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use zonda_testkit::cluster::{
    ApiClient, ApiServer, CoreDns, Endpoint, Port, cluster_service, endpoint_slice,
    external_service, headless_service, namespace, reverse_name,
};
use zonda_testkit::differential::{AcceptedDifference, Difference};
use zonda_testkit::{Question, ask};

/// Types that each name is asked for.
const TYPES: [&str; 8] = ["A", "AAAA", "SRV", "TXT", "CNAME", "PTR", "NS", "SOA"];
/// Services of each kind.
const SERVICES: usize = 48;
/// Time until both servers know all services.
const KNOWN: Duration = Duration::from_secs(30);

/// Zonda with two zones of external names; endpoints have names in the second.
fn zonda_of(kubeconfig: &Path) -> Server {
    let kubeconfig = kubeconfig.display();
    let zone = |name: &str, keys: &str| {
        format!(
            "[[zone]]\nname = \"{name}\"\n[zone.kubernetes]\nkubeconfig = \"{kubeconfig}\"\n\
             external = true\n{keys}\n"
        )
    };
    let first = zone("outside.test", "reverse = [\"0.0.0.0/0\", \"::/0\"]");
    let second = "external-headless = true\nexternal-apex = \"ns\"\nttl = \"30s\"";
    Server::start(&[], &(first + &zone("headless.test", second)))
}

/// CoreDNS with the same zones.
fn core_dns_of(kubeconfig: &Path) -> CoreDns {
    let kubeconfig = kubeconfig.display();
    // SRV records have the TTL of `kubernetes` there, all other records that of `k8s_external`.
    let block = |zones: &str, ttl: &str, options: &str| {
        format!(
            "{zones} {{\n  bind 127.0.0.1\n  errors\n  kubernetes cluster.local {{\n    \
             kubeconfig {kubeconfig}\n    {ttl}\n  }}\n  k8s_external {zones} {{\n    \
             {options}\n  }}\n}}\n"
        )
    };
    let first = block("outside.test in-addr.arpa ip6.arpa", "", "");
    let second = block("headless.test", "ttl 30", "headless\n    apex ns\n    ttl 30");
    CoreDns::start(&(first + &second), Path::new("/"), &["outside.test.", "headless.test."])
}

/// External addresses and host names of the services, by what is left of their numbers.
fn external(number: usize) -> (Vec<String>, Vec<Value>) {
    let own = format!("192.0.2.{number}");
    match number % 8 {
        0 => (vec![own], vec![]),
        1 => (vec![own, format!("2001:db8::{number}")], vec![]),
        2 => (vec!["192.0.2.200".to_owned()], vec![]),
        3 => (vec![], vec![json!({ "ip": own })]),
        4 => (vec![own], vec![json!({ "ip": format!("198.51.100.{number}") })]),
        5 => (vec![], vec![json!({ "hostname": format!("lb{number}.example.com") })]),
        _ => (vec![], vec![]),
    }
}

/// Creates services of all kinds with endpoints. Returns the names to ask for below each zone, and
/// the addresses to ask for in reverse.
fn populate(client: &ApiClient) -> (Vec<String>, Vec<String>) {
    client.create_all(&[namespace("shop"), namespace("empty")]);
    let (http, dns) = (Port::tcp("http", 80), Port::udp("dns", 53));
    let mut names: Vec<String> = ["", "dns", "ns1.dns", "x.ns1.dns", "ns", "ns1.ns", "shop"]
        .into_iter()
        .chain(["empty", "none", "x.empty", "x.shop", "x.y.z.s0.shop", "far.shop"])
        .map(str::to_owned)
        .collect();
    let mut addresses = vec!["192.0.2.250".to_owned(), "10.244.0.0".to_owned()];
    client.create(&external_service("shop", "far", "far.example.com"));
    for number in 0..SERVICES {
        let name = format!("s{number}");
        let ports: &[Port] = match number / 8 % 3 {
            0 => &[http],
            1 => &[http, dns],
            _ => &[],
        };
        let mut service = match number / 24 {
            0 if !ports.is_empty() => cluster_service("shop", &name, &["IPv4"], ports),
            _ => headless_service("shop", &name, ports),
        };
        let (ips, ingress) = external(number);
        if !ips.is_empty() {
            service["spec"]["externalIPs"] = json!(ips);
        }
        let is_balanced = !ingress.is_empty() && service["spec"]["clusterIP"].is_null();
        if is_balanced {
            service["spec"]["type"] = json!("LoadBalancer");
        }
        client.create(&service);
        if is_balanced {
            client.patch_status(&service, &json!({"loadBalancer": {"ingress": ingress}}));
        }
        let pods = [
            Endpoint::new(&format!("10.244.{number}.1")).hostname("a"),
            Endpoint::new(&format!("10.244.{number}.2")),
            Endpoint::new(&format!("10.244.{number}.3")).unready(),
        ];
        client.create(&endpoint_slice("shop", &format!("{name}-1"), &name, ports, &pods));
        addresses.extend(ips);
        addresses.extend(ingress.iter().filter_map(|it| Some(it["ip"].as_str()?.to_owned())));
        addresses.push(format!("10.244.{number}.1"));
        let dashed = format!("10-244-{number}-2");
        for label in ["_http._tcp", "_dns._udp", "_dns._tcp", "http.tcp", "a", &dashed, "b", "_tcp"]
        {
            names.push(format!("{label}.{name}.shop"));
        }
        names.push(format!("{name}.shop"));
        names.push(format!("{name}.empty"));
    }
    (names, addresses)
}

/// Whether the reply of Zonda says that the name does not exist, and that of CoreDNS does not.
fn is_denied(it: &Difference) -> bool {
    it.ours.rcode_text() == "NXDOMAIN" && it.theirs.rcode_text() == "NOERROR"
}

/// The labels of a name below the zone.
fn labels(it: &Difference) -> Vec<String> {
    let name = it.question.name.to_ascii_lowercase();
    let below = name.strip_suffix(".outside.test.").or(name.strip_suffix(".headless.test."));
    let labels = below.unwrap_or_default().split('.').map(str::to_owned);
    labels.filter(|label| !label.is_empty()).collect()
}

/// Number of the type CNAME.
const CNAME: u16 = 5;

/// Differences from CoreDNS, as docs/kubernetes.md has them.
const ACCEPTED: &[AcceptedDifference] = &[
    AcceptedDifference {
        name: "names of endpoints do not exist where the service has external addresses",
        applies: |it, _| is_denied(it) && labels(it).len() == 3,
    },
    AcceptedDifference {
        name: "a name above others that exist is not NXDOMAIN",
        applies: |it, _| {
            let (ours, theirs) = (it.ours.rcode_text(), it.theirs.rcode_text());
            ours == "NOERROR" && theirs != "NOERROR" && it.ours.answer.is_empty()
        },
    },
    AcceptedDifference {
        name: "names of ports lie below the protocol's, which is no endpoint",
        applies: |it, _| {
            let is_protocol = labels(it).first().is_some_and(|label| label == "_tcp");
            is_protocol && it.ours.answer.is_empty() && it.ours.rcode_text() == "NOERROR"
        },
    },
    AcceptedDifference {
        name: "a namespace that does not exist has no name",
        applies: |it, _| is_denied(it) && labels(it) == ["none"],
    },
    AcceptedDifference {
        name: "a service that is called by a host name is an alias for all types",
        applies: |it, _| it.ours.answer.first().is_some_and(|first| first.record_type == CNAME),
    },
    AcceptedDifference {
        name: "a port of a service that is called by a host name has SRV records only",
        applies: |it, _| {
            let first = it.theirs.answer.first();
            it.ours.answer.is_empty() && first.is_some_and(|it| it.record_type == CNAME)
        },
    },
    AcceptedDifference {
        name: "ports of such a service have underscores",
        applies: |it, _| is_denied(it) && labels(it).first().is_some_and(|it| it == "http"),
    },
    AcceptedDifference {
        name: "the server of the zone has the address that reaches the API",
        applies: |it, _| {
            let name = it.question.name.to_ascii_lowercase();
            let is_apex = labels(it).is_empty();
            name.starts_with("ns1.") && it.theirs.answer.is_empty()
                || is_apex && it.theirs.additional.is_empty()
        },
    },
];

#[test]
fn external_names_are_those_of_coredns() {
    let api = ApiServer::start();
    let (names, addresses) = populate(api.client());
    let server = zonda_of(api.kubeconfig_file());
    let core_dns = core_dns_of(api.kubeconfig_file());
    await_answers(&server, "s0.shop.outside.test", "A", &["192.0.2.0"]);
    await_answers(&server, "s3.shop.headless.test", "A", &["192.0.2.3"]);
    let limit = Instant::now() + KNOWN;
    let last = Question::new("s3.shop.headless.test", "A");
    while ask(core_dns.address, &last).is_ok_and(|reply| reply.answer.is_empty()) {
        assert!(Instant::now() < limit, "CoreDNS does not know the services");
        thread::sleep(Duration::from_millis(50));
    }
    let reversed = addresses.iter().map(|it| reverse_name(it.parse().unwrap()) + ".");
    let below = |zone: &'static str| {
        let name = move |name: &String| format!("{name}.{zone}").trim_start_matches('.').to_owned();
        names.iter().map(name)
    };
    let all: Vec<String> = below("outside.test.").chain(below("headless.test.")).collect();
    let questions: Vec<Question> = all
        .into_iter()
        .chain(reversed)
        .flat_map(|name| TYPES.map(|record_type| Question::new(&name, record_type).edns(4096)))
        .collect();
    let outcome = comparison_of(&server, &core_dns, ACCEPTED).compare("outside.test", &questions);
    println!("{} questions: {}", outcome.questions, outcome.report());
    assert!(outcome.differences.is_empty(), "{}", outcome.report());
}
