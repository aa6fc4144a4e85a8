//! Transfers of the zones of a real Kubernetes API server's objects, beside CoreDNS.

use crate::real_cluster::{await_answers, populate};
use crate::server::{Server, wait_until};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};
use zonda_testkit::cluster::{ApiServer, CoreDns, Port, cluster_service};
use zonda_wire::{Message, Opcode};

/// Zonda with a zone of a cluster that it transfers.
fn zonda_of(api: &ApiServer) -> Server {
    let kubeconfig = api.kubeconfig_file().display();
    Server::start(
        &[],
        &format!(
            "[[zone]]\nname = \"cluster.local\"\ntransfer.to = [\"127.0.0.1\"]\n\
             [zone.kubernetes]\nkubeconfig = \"{kubeconfig}\"\nreverse = [\"10.0.0.0/8\"]\n"
        ),
    )
}

#[test]
fn a_server_is_notified_when_the_serial_of_a_clusters_zone_rises() {
    let api = ApiServer::start();
    populate(api.client());
    let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let (address, kubeconfig) = (receiver.local_addr().unwrap(), api.kubeconfig_file().display());
    let keys = format!(
        "[[zone]]\nname = \"cluster.local\"\n\
         transfer = {{ to = [\"127.0.0.1\"], notify = [\"{address}\"] }}\n\
         [zone.kubernetes]\nkubeconfig = \"{kubeconfig}\"\n"
    );
    let server = Server::start(&[], &keys);
    await_answers(&server, "db-0.db.shop.svc.cluster.local", "A", &["10.244.0.1"]);
    let next_serial = || {
        let mut octets = [0; 512];
        let (len, _) = receiver.recv_from(&mut octets).expect("a NOTIFY message");
        let message = Message::parse(&octets[..len]).unwrap();
        assert_eq!(message.opcode(), Opcode::NOTIFY);
        let soa = &message.records[0].rdata;
        u32::from_be_bytes(soa[soa.len() - 20..][..4].try_into().unwrap())
    };
    let first = next_serial();
    api.client().create(&cluster_service("shop", "one", &["IPv4"], &[Port::tcp("http", 80)]));
    // Messages about former serials may come again, as none is acknowledged.
    wait_until("a greater serial is announced", || next_serial() > first);
}

/// CoreDNS with the same zone.
fn core_dns_of(api: &ApiServer) -> CoreDns {
    let kubeconfig = api.kubeconfig_file().display();
    let corefile = format!(
        "cluster.local {{\n  bind 127.0.0.1\n  errors\n  transfer {{\n    to *\n  }}\n  \
         kubernetes cluster.local {{\n    kubeconfig {kubeconfig}\n  }}\n}}\n"
    );
    CoreDns::start(&corefile, Path::new("/"), &["cluster.local."])
}

/// Returns what `dig` prints of a transfer, one record a line.
fn transfer(server: SocketAddr, zone: &str, question: &str) -> Vec<String> {
    let mut dig = Command::new("dig");
    dig.args([&format!("@{}", server.ip()), "-p", &server.port().to_string()]);
    dig.args(["+noall", "+answer", "+time=5", zone, question]);
    let output = dig.output().expect("dig is installed (bind9-dnsutils)");
    let text = String::from_utf8_lossy(&output.stdout).to_lowercase();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().filter(|line| !line.starts_with(';')).map(words).collect()
}

/// The record without the weight of SRV, which differs: Zonda sends that of its answers.
fn without_weight(line: &str) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    if let [_, _, _, "srv", _, weight, ..] = &mut words[..] {
        *weight = "*";
    }
    words.join(" ")
}

/// The records of services in a transfer: neither SOA nor what each server says of itself.
fn records_of_services(lines: &[String]) -> BTreeSet<String> {
    let is_own = |line: &&String| {
        let name = line.split(' ').next().unwrap_or_default();
        matches!(name, "cluster.local." | "ns.dns.cluster.local." | "dns-version.cluster.local.")
    };
    lines.iter().filter(|line| !is_own(line)).map(|line| without_weight(line)).collect()
}

#[test]
fn a_transfer_has_the_records_that_that_of_coredns_has() {
    let api = ApiServer::start();
    populate(api.client());
    let (server, core_dns) = (zonda_of(&api), core_dns_of(&api));
    await_answers(&server, "db-0.db.shop.svc.cluster.local", "A", &["10.244.0.1"]);
    let theirs = || records_of_services(&transfer(core_dns.address, "cluster.local", "AXFR"));
    wait_until("CoreDNS has all services", || theirs().len() > 20);
    let (ours, theirs) = (transfer(server.zonda.address, "cluster.local", "AXFR"), theirs());
    assert!(ours[0].contains(" soa ") && ours.last() == ours.first(), "{ours:#?}");
    let ours = records_of_services(&ours);
    let missing: Vec<_> = theirs.difference(&ours).collect();
    // CoreDNS answers these, and leaves them out of transfers.
    let is_answered = |line: &&String| line.starts_with("db.shop.svc.cluster.local. 5 in srv ");
    let more: Vec<_> = ours.difference(&theirs).filter(|line| !is_answered(line)).collect();
    assert!(missing.is_empty() && more.is_empty(), "missing {missing:#?}, more {more:#?}");
}

/// The time in seconds since 1970.
fn unix_time() -> u32 {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    u32::try_from(time.as_secs()).unwrap()
}

/// The response code that `dig` has for a question over TCP.
fn response_code(server: SocketAddr, name: &str, question: &str) -> String {
    let mut dig = Command::new("dig");
    dig.args([&format!("@{}", server.ip()), "-p", &server.port().to_string()]);
    dig.args(["+noall", "+comments", "+tcp", "+time=5", name, question]);
    let text = dig.output().expect("dig is installed (bind9-dnsutils)").stdout;
    let text = String::from_utf8(text).unwrap();
    let (_, rest) = text.split_once("status: ").unwrap_or_else(|| panic!("{text}"));
    rest.split(',').next().unwrap().to_owned()
}

#[test]
fn a_transfer_at_a_name_that_is_no_apex_is_notauth_whatever_coredns_makes_of_it() {
    let api = ApiServer::start();
    populate(api.client());
    let (server, closed) =
        (zonda_of(&api), crate::real_cluster::core_dns_of(api.kubeconfig_file()));
    await_answers(&server, "db-0.db.shop.svc.cluster.local", "A", &["10.244.0.1"]);
    for name in ["db-0.db.shop.svc.cluster.local", "nx.cluster.local"] {
        for question in ["AXFR", "IXFR=1"] {
            let code = |server| response_code(server, name, question);
            assert_eq!(code(server.zonda.address), "NOTAUTH", "{name} {question}");
            assert_eq!(code(closed.address), "REFUSED", "{name} {question}, CoreDNS");
        }
    }
    // With its plugin `transfer`, CoreDNS takes any name below the zone for the zone.
    let open = core_dns_of(&api);
    let is_moved = |line: &String| line.starts_with("web.shop.svc.nx.cluster.local. 5 in a ");
    wait_until("CoreDNS transfers the services below the name", || {
        transfer(open.address, "nx.cluster.local", "AXFR").iter().any(is_moved)
    });
}

#[test]
fn the_serial_of_a_transfer_follows_the_last_of_several_changes() {
    let api = ApiServer::start();
    populate(api.client());
    let server = zonda_of(&api);
    await_answers(&server, "db-0.db.shop.svc.cluster.local", "A", &["10.244.0.1"]);
    let serial = || {
        let lines = transfer(server.zonda.address, "cluster.local", "SOA");
        lines.first().and_then(|line| line.split(' ').nth(6)?.parse::<u32>().ok()).unwrap()
    };
    for name in ["one", "two", "three"] {
        let service = cluster_service("shop", name, &["IPv4"], &[Port::tcp("http", 80)]);
        api.client().create(&service);
    }
    let name = "three.shop.svc.cluster.local. ";
    let has_last = |lines: &[String]| lines.iter().any(|line| line.starts_with(name));
    wait_until("the last service is transferred", || {
        has_last(&transfer(server.zonda.address, "cluster.local", "AXFR"))
    });
    let before = serial();
    // A secondary that has this version, and asks for changes only, gets the SOA record alone once
    // no change is left that the serial does not tell.
    let changed = unix_time();
    api.client().create(&cluster_service("shop", "four", &["IPv4"], &[Port::tcp("http", 80)]));
    let is_new = |serial| serial > before && serial >= changed;
    wait_until("the serial rises to the time of the change", || is_new(serial()));
    let now = serial();
    let end = unix_time();
    assert!((changed..=end).contains(&now), "{now} is not from {changed} to {end}");
    let current = transfer(server.zonda.address, "cluster.local", &format!("IXFR={now}"));
    assert_eq!(current.len(), 1, "{current:#?}");
    let older = transfer(server.zonda.address, "cluster.local", &format!("IXFR={before}"));
    let whole = transfer(server.zonda.address, "cluster.local", "AXFR");
    assert!(whole.len() > 20 && whole[0].contains(" soa "), "{whole:#?}");
    assert_eq!(older, whole);
    let reverse = transfer(server.zonda.address, "10.in-addr.arpa", "AXFR");
    let pointer = "1.0.244.10.in-addr.arpa. 5 in ptr db-0.db.shop.svc.cluster.local.".to_owned();
    assert!(reverse.contains(&pointer), "{reverse:#?}");
}
