//! Configurations of OpenGSLB, and what is made of their parts.
#![allow(clippy::unwrap_used)]

use super::report::GROUPS;
use crate::memory::Memory;
use crate::{Import, opengslb};
use std::collections::HashSet;
use std::path::Path;

const PATH: &str = "/etc/opengslb.yaml";

fn import_files(files: &[(&str, &str)]) -> Result<Import, String> {
    let import = opengslb::import(Path::new(files[0].0), &mut Memory(files));
    import.map_err(|error| error.to_string())
}

fn import(text: &str) -> Import {
    import_files(&[(PATH, text)]).unwrap()
}

/// The configuration of a domain with these servers, of the region `eu`, and keys.
fn domain(servers: &[&str], keys: &str) -> String {
    let servers: String = servers
        .iter()
        .map(|server| format!("  - {{ service: www.example.com, {server} }}\n"))
        .collect();
    format!(
        "regions:\n- name: eu\n  servers:\n{servers}domains:\n\
         - {{ name: www.example.com, regions: [eu]{keys} }}\n"
    )
}

/// The values of a key in a `zonda.toml`, without the places that they come from.
fn values(import: &Import, key: &str) -> Vec<String> {
    let start = format!("{key} = ");
    let lines = import.toml.lines().filter_map(|line| line.strip_prefix(&start));
    lines.map(|line| line.split("  #").next().unwrap().to_owned()).collect()
}

#[test]
fn every_key_is_explained_once() {
    let mut seen = HashSet::new();
    for key in GROUPS.iter().flat_map(|(_, _, keys)| *keys) {
        assert!(seen.insert(key), "{key}");
    }
    assert_eq!(seen.len(), 100, "the keys of OpenGSLB 1.1.9");
}

#[test]
fn each_algorithm_becomes_its_filters() {
    for (algorithm, choose) in [
        ("round-robin", "[\"round-robin\"]"),
        ("rr", "[\"round-robin\"]"),
        ("Weight", "[\"weighted\"]"),
        ("active-standby", "[\"failover\"]"),
        ("geo", "[\"geo\", \"round-robin\"]"),
        ("latency", "[\"latency\"]"),
        ("learned-latency", "[\"learned-latency\"]"),
    ] {
        let keys = format!(", routing_algorithm: {algorithm}");
        let import = import(&domain(&["address: 192.0.2.1"], &keys));
        assert_eq!(values(&import, "choose"), [choose], "{algorithm}");
    }
}

#[test]
fn files_that_include_each_other_without_end_are_an_error() {
    let files =
        [("/etc/a.yaml", "includes: [b/*.yaml]\n"), ("/etc/b/b.yaml", "includes:\n- ../a.yaml\n")];
    let error = import_files(&files).unwrap_err();
    assert!(error.starts_with("/etc/b/b.yaml:2:3: "), "{error}");
    let own = import_files(&[("/etc/a.yaml", "includes: [a.yaml]")]).unwrap_err();
    assert_eq!(own, "/etc/a.yaml:1:12: /etc/a.yaml is included already, by this file or around it");
}

#[test]
fn files_may_include_each_other_ten_times() {
    let names: Vec<String> = (0..12).map(|number| format!("/etc/{number}.yaml")).collect();
    let texts: Vec<String> = (1..13).map(|number| format!("includes: [{number}.yaml]")).collect();
    let mut files: Vec<(&str, &str)> =
        names.iter().zip(&texts).map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let error = import_files(&files).unwrap_err();
    assert_eq!(error, "/etc/10.yaml:1:12: files that include each other: at most 10 can be read");
    files[10].1 = "regions: []";
    assert!(import_files(&files).is_ok());
}

#[test]
fn a_name_that_is_given_twice_is_an_error_across_files() {
    let files = [
        ("/etc/a.yaml", "includes: ['**/*.yml']\nregions: [{ name: eu }]\n"),
        ("/etc/x/y/b.yml", "regions:\n- name: eu\n"),
    ];
    let expected = "/etc/x/y/b.yml:2:9: the region eu is given already, at /etc/a.yaml:2";
    assert_eq!(import_files(&files).unwrap_err(), expected);
    let two = "{ name: www.example.com, regions: [eu] }";
    let text = format!("regions: [{{ name: eu }}]\ndomains:\n- {two}\n- {two}\n");
    let error = import_files(&[(PATH, &text)]).unwrap_err();
    assert!(error.contains(":4:11: the domain www.example.com is given already"), "{error}");
}

#[test]
fn what_opengslb_would_not_take_is_an_error_with_its_place() {
    for (text, expected) in [
        ("regions: 5", ":1:10: expected a list, found `5`"),
        ("- a", ":1:1: expected keys, found a list"),
        ("a: [", ":2:1: this is not YAML: "),
        ("regions: [{ servers: [] }]", ":1:11: `name` is missing"),
        ("domains: [{ name: a..b, regions: [x] }]", ":1:19: `a..b`: the name has an empty label"),
        ("domains: [{ name: a }]", ":1:11: `regions` is missing"),
        ("domains: [{ name: a, regions: [x] }]", ":1:32: there is no region \"x\""),
        (
            "domains: [{ name: a, regions: [x], routing_algorithm: best }]",
            ":1:55: expected `round-robin`, `weighted`",
        ),
        (
            "regions: [{ name: x, servers: [{ address: www.example, service: a }] }]",
            ":1:43: expected an IP address, found `www.example`",
        ),
        ("dns: { listen_address: nowhere }", ":1:24: expected an address and a port"),
        (
            "overwatch: { geolocation: { custom_mappings: [{ cidr: 10/8, region: x }] } }",
            ":1:55: expected a network such as 192.0.2.0/24, found `10/8`",
        ),
    ] {
        let error = import_files(&[(PATH, text)]).err().unwrap_or_default();
        assert!(error.starts_with(&format!("{PATH}{expected}")), "{text}: {error}");
    }
}

#[test]
fn a_health_check_that_differs_by_server_makes_a_pool_for_each_way() {
    let ports = ["address: 192.0.2.1, port: 81", "address: 192.0.2.2, port: 82"];
    let flat = import(&domain(&["address: 192.0.2.1", "address: 192.0.2.2"], ""));
    assert_eq!(values(&flat, "name").len(), 2, "{}", flat.toml);
    let nested = import(&domain(&ports, ", routing_algorithm: failover"));
    let names = values(&nested, "name");
    let own = ["\"www.example.com-eu\"", "\"www.example.com-eu-2\"", "\"www.example.com\""];
    assert_eq!(names[..3], own, "{}", nested.toml);
    let members = nested.toml.lines().filter(|line| line.contains("{ pool = "));
    let ranks: Vec<_> = members.map(|line| line.contains("priority = 1")).collect();
    assert_eq!(ranks, [true, false]);
}

#[test]
fn servers_of_both_families_that_are_checked_in_several_ways_have_a_pool_for_each_family() {
    let servers =
        ["address: 192.0.2.1", "address: 192.0.2.2, port: 81", "address: \"2001:db8::1\""];
    let import = import(&domain(&servers, ""));
    let steer = values(&import, "steer");
    let expected = "{ \"@ A\" = \"www.example.com-v4\", \"@ AAAA\" = \"www.example.com-v6\" }";
    assert_eq!(steer, [expected], "{}", import.toml);
}

#[test]
fn the_last_region_that_declares_a_country_has_it() {
    let text = "regions:\n- { name: a, countries: [de, fr] }\n- { name: b, countries: [DE] }\n";
    let import = import(text);
    assert!(import.toml.contains("{ name = \"a\", countries = [\"FR\"] }"), "{}", import.toml);
    assert!(import.toml.contains("{ name = \"b\", countries = [\"DE\"] }"), "{}", import.toml);
}

#[test]
fn when_all_are_down_the_answer_is_servfail_unless_the_last_ones_are_asked_for() {
    let one = domain(&["address: 192.0.2.1"], "");
    assert_eq!(values(&import(&one), "when-all-down"), ["\"servfail\""]);
    let last = format!("dns: {{ return_last_healthy: true }}\n{one}");
    assert_eq!(values(&import(&last), "when-all-down"), ["\"last-healthy\""]);
}

#[test]
fn a_service_is_compared_without_case_and_final_dot() {
    let text = domain(&["address: 192.0.2.1"], "").replace("name: www", "name: WWW");
    let text = text.replace("service: www.example.com", "service: Www.Example.com.");
    assert_eq!(values(&import(&text), "choose").len(), 1);
}
