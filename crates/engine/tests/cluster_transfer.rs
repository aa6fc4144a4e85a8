//! Transfers of the zones of a cluster: which records they have.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)] // scenarios read more of it
mod cluster_objects;

use cluster_objects::ScenarioCluster;
use std::path::Path;
use std::sync::Arc;
use zonda_engine::zones::{ClusterNames, ClusterZone};
use zonda_wire::Name;
use zonda_wire::rdata::print::Presentation;
use zonda_zone::{HashSeed, build, file};

const SEED: HashSeed = HashSeed(1);

/// Returns the records of a zone of a cluster in the order of their names, without the SOA record.
fn records(options: &str, objects: &[&str], zone: &str) -> Vec<String> {
    let mut cluster = ScenarioCluster::new(options, SEED);
    objects.iter().for_each(|object| cluster.add(object));
    let apex: Name = zone.parse().unwrap();
    let text = cluster.builder.data_text(&apex, 7, Some(cluster.own));
    let options = file::Options::default();
    let (read, _) = file::read_text(text.as_bytes(), Path::new("zone"), &apex, &options);
    let data = Arc::new(build(&apex, &read, SEED).unwrap());
    let names = match apex == cluster.apex {
        true => ClusterNames::Services,
        false => ClusterNames::Addresses,
    };
    let cluster = cluster.builder.snapshot();
    let zone = ClusterZone {
        data,
        cluster,
        names,
        falls_through: false,
        hosts_first: false,
        is_stale: false,
    };
    let whole = zone.whole().unwrap();
    let line = |it: zonda_zone::ZoneRecord<'_>| {
        let data = Presentation { rtype: it.rtype, rdata: it.rdata };
        let record = it.as_record();
        format!("{} {} {} {data}", Name::from_wire(record.owner).unwrap(), it.ttl, it.rtype)
    };
    let mut lines: Vec<String> = whole.records().map(line).collect();
    lines.retain(|line| !line.contains(" SOA "));
    lines
}

/// Compares records with what is expected.
fn check(found: &[String], expected: &[&str]) {
    let missing: Vec<_> =
        expected.iter().filter(|it| !found.iter().any(|own| own == *it)).collect();
    let wrong: Vec<_> = found.iter().filter(|it| !expected.contains(&it.as_str())).collect();
    assert!(missing.is_empty() && wrong.is_empty(), "missing {missing:#?}, wrong {wrong:#?}");
    assert_eq!(found.len(), expected.len(), "{found:#?}");
}

#[test]
fn a_transfer_has_services_ports_endpoints_of_headless_services_and_aliases() {
    let found = records(
        "cluster.local pods=insecure",
        &[
            "namespace shop",
            "service shop/web 10.96.0.1,fd00::1 http:80 :81",
            "slice shop/web-1 of web http:80 at 10.1.0.9",
            "service shop/db headless sql:5432",
            "slice shop/db-1 of db sql:5432 at 10.1.0.1/host=a 10.1.0.2 10.1.0.3/unready",
            "slice shop/db-2 of db sql:5432 at 10.1.0.1/host=a fd00::2",
            "service shop/none headless sql:5432",
            "service shop/out =www.example.org",
            "pod shop/p 10.1.0.5",
        ],
        "cluster.local",
    );
    check(
        &found,
        &[
            "cluster.local. 5 NS ns.dns.cluster.local.",
            "ns.dns.cluster.local. 5 A 192.0.2.53",
            "dns-version.cluster.local. 28800 TXT \"1.1.0\"",
            "out.shop.svc.cluster.local. 5 CNAME www.example.org.",
            "web.shop.svc.cluster.local. 5 A 10.96.0.1",
            "web.shop.svc.cluster.local. 5 AAAA fd00::1",
            "web.shop.svc.cluster.local. 5 SRV 0 25 80 web.shop.svc.cluster.local.",
            "web.shop.svc.cluster.local. 5 SRV 0 25 81 web.shop.svc.cluster.local.",
            "_http._tcp.web.shop.svc.cluster.local. 5 SRV 0 50 80 web.shop.svc.cluster.local.",
            "db.shop.svc.cluster.local. 5 A 10.1.0.1",
            "db.shop.svc.cluster.local. 5 A 10.1.0.2",
            "db.shop.svc.cluster.local. 5 AAAA fd00::2",
            "db.shop.svc.cluster.local. 5 SRV 0 25 5432 a.db.shop.svc.cluster.local.",
            "db.shop.svc.cluster.local. 5 SRV 0 25 5432 10-1-0-2.db.shop.svc.cluster.local.",
            "db.shop.svc.cluster.local. 5 SRV 0 25 5432 fd00--2.db.shop.svc.cluster.local.",
            "_sql._tcp.db.shop.svc.cluster.local. 5 SRV 0 25 5432 a.db.shop.svc.cluster.local.",
            "_sql._tcp.db.shop.svc.cluster.local. 5 SRV 0 25 5432 \
             10-1-0-2.db.shop.svc.cluster.local.",
            "_sql._tcp.db.shop.svc.cluster.local. 5 SRV 0 25 5432 \
             fd00--2.db.shop.svc.cluster.local.",
            "a.db.shop.svc.cluster.local. 5 A 10.1.0.1",
            "10-1-0-2.db.shop.svc.cluster.local. 5 A 10.1.0.2",
            "fd00--2.db.shop.svc.cluster.local. 5 AAAA fd00::2",
        ],
    );
}

#[test]
fn a_transfer_has_no_names_that_the_options_hide() {
    let objects = [
        "namespace shop",
        "namespace other",
        "service shop/empty 10.96.0.2 http:80",
        "service other/web 10.96.0.3 http:80",
        "slice other/web-1 of web http:80 at 10.1.0.9",
    ];
    let options = "cluster.local ignore-empty-services namespaces=shop";
    let found = records(options, &objects, "cluster.local");
    check(
        &found,
        &[
            "cluster.local. 5 NS ns.dns.cluster.local.",
            "ns.dns.cluster.local. 5 A 192.0.2.53",
            "dns-version.cluster.local. 28800 TXT \"1.1.0\"",
        ],
    );
}

#[test]
fn a_transfer_has_no_names_of_topology_zones() {
    let objects = [
        "namespace shop",
        "service shop/db headless sql:5432",
        "slice shop/db-1 of db sql:5432 at 10.1.0.1/host=a/zone=east 10.1.0.2/zone=eu.west",
    ];
    let zonal = records("cluster.local zonal", &objects, "cluster.local");
    assert!(zonal.contains(&"a.db.shop.svc.cluster.local. 5 A 10.1.0.1".to_owned()), "{zonal:#?}");
    let plain = records("cluster.local", &objects, "cluster.local");
    let plain: Vec<_> = plain.iter().map(String::as_str).collect();
    check(&zonal, &plain);
    assert!(zonal.iter().all(|line| !line.contains("_zone")), "{zonal:#?}");
}

#[test]
fn a_transfer_of_a_reverse_zone_has_the_names_of_its_addresses() {
    let objects = [
        "namespace shop",
        "service shop/web 10.96.0.1,fd00::1 http:80",
        "slice shop/web-1 of web http:80 at 10.1.0.9/host=a 192.0.2.7",
    ];
    let options = "cluster.local reverse=10.in-addr.arpa,0.0.d.f.ip6.arpa";
    let found = records(options, &objects, "10.in-addr.arpa");
    check(
        &found,
        &[
            "10.in-addr.arpa. 5 NS ns.dns.10.in-addr.arpa.",
            "ns.dns.10.in-addr.arpa. 5 A 192.0.2.53",
            "1.0.96.10.in-addr.arpa. 5 PTR web.shop.svc.cluster.local.",
            "9.0.1.10.in-addr.arpa. 5 PTR a.web.shop.svc.cluster.local.",
        ],
    );
    let found = records(options, &objects, "0.0.d.f.ip6.arpa");
    let pointer =
        format!("1.{}0.0.d.f.ip6.arpa. 5 PTR web.shop.svc.cluster.local.", "0.".repeat(27));
    assert!(found.contains(&pointer), "{pointer} {found:#?}");
}

#[test]
fn a_transfer_of_external_names_has_external_addresses_and_headless_endpoints() {
    let objects = [
        "namespace shop",
        "service shop/web 10.96.0.1 http:80 @198.51.100.1",
        "slice shop/web-1 of web http:80 at 10.1.0.9",
        "service shop/db headless sql:5432",
        "slice shop/db-1 of db sql:5432 at 10.1.0.1/host=a",
        "service shop/inside 10.96.0.4 http:80",
        "slice shop/inside-1 of inside http:80 at 10.1.0.7",
    ];
    let found = records("example.org external external-headless", &objects, "example.org");
    check(
        &found,
        &[
            "example.org. 5 NS ns1.dns.example.org.",
            "ns1.dns.example.org. 5 A 192.0.2.53",
            "web.shop.example.org. 5 A 198.51.100.1",
            "web.shop.example.org. 5 SRV 0 100 80 web.shop.example.org.",
            "_http._tcp.web.shop.example.org. 5 SRV 0 100 80 web.shop.example.org.",
            "db.shop.example.org. 5 A 10.1.0.1",
            "db.shop.example.org. 5 SRV 0 100 5432 a.db.shop.example.org.",
            "_sql._tcp.db.shop.example.org. 5 SRV 0 100 5432 a.db.shop.example.org.",
            "a.db.shop.example.org. 5 A 10.1.0.1",
            "10-1-0-7.inside.shop.example.org. 5 A 10.1.0.7",
        ],
    );
}
