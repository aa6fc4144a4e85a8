//! Configurations of gdnsd, and what is made of their parts.
#![allow(clippy::unwrap_used)]

use crate::memory::Memory;
use crate::{Import, gdnsd};
use std::path::Path;

const PATH: &str = "/g/config";

fn import_files(config: &str, zone: &str, more: &[(&str, &str)]) -> Result<Import, String> {
    let zone = format!("@ SOA a b 1 2 3 4 5\n{zone}\n");
    let mut files = vec![(PATH, config), ("/g/zones/example.com", &*zone)];
    files.extend(more);
    let import = gdnsd::import(Path::new(PATH), &mut Memory(&files));
    import.map_err(|error| error.to_string())
}

/// Imports these plugins with a zone that has these records.
fn import(plugins: &str, zone: &str) -> Import {
    import_files(&format!("plugins => {{ {plugins} }}"), zone, &[]).unwrap()
}

/// The values of a key in a `zonda.toml`, without the places that they come from.
fn values(import: &Import, key: &str) -> Vec<String> {
    let start = format!("{key} = ");
    let lines = import.toml.lines().filter_map(|line| line.strip_prefix(&start));
    lines.map(|line| line.split("  #").next().unwrap().to_owned()).collect()
}

/// The members of all pools, without their places.
fn members(import: &Import) -> Vec<String> {
    let lines = import.toml.lines().filter_map(|line| line.strip_prefix("    { "));
    lines.map(|line| line.split(" }").next().unwrap().to_owned()).collect()
}

const WEB: &str = "multifo => { web => [ 192.0.2.1, 192.0.2.2 ] }";

#[test]
fn ttls_are_those_of_the_record_within_the_limits_of_the_options() {
    for (options, ttl, expected) in [
        ("", "300/30 ", ["\"30s\"", "\"300s\""]),
        ("", "300 ", ["\"150s\"", "\"300s\""]),
        ("", "30M/1H ", ["\"1800s\"", "\"1800s\""]),
        ("", "6/1 ", ["\"5s\"", "\"6s\""]),
        ("", "", ["\"43200s\"", "\"86400s\""]),
        ("zones_default_ttl => 60", "", ["\"30s\"", "\"60s\""]),
        ("min_ttl => 20, max_ttl => 100", "300/1 ", ["\"20s\"", "\"100s\""]),
    ] {
        let config = format!("options => {{ {options} }} plugins => {{ {WEB} }}");
        let import = import_files(&config, &format!("www {ttl}DYNA multifo!web"), &[]).unwrap();
        let found = ["ttl-min", "ttl-max"].map(|key| values(&import, key).remove(0));
        assert_eq!(found, expected, "{options} {ttl}");
    }
}

#[test]
fn families_that_are_treated_alike_share_a_pool() {
    let set = "addrs_v4 => { a => 192.0.2.1 }";
    let alike = format!("multifo => {{ web => {{ {set} addrs_v6 => {{ a => 2001:db8::1 }} }} }}");
    let import = import_files(&format!("plugins => {{ {alike} }}"), "www DYNA multifo!web", &[]);
    assert_eq!(values(&import.unwrap(), "steer"), ["{ \"www A,AAAA\" = \"web\" }"]);
    let other = format!(
        "service_types => {{ t => {{ plugin => tcp_connect port => 25 }} }} plugins => {{ \
         multifo => {{ web => {{ {set} addrs_v6 => {{ service_types => t, a => 2001:db8::1 }} }} \
         }} }}"
    );
    let import = import_files(&other, "www DYNA multifo!web", &[]).unwrap();
    let expected = "{ \"www A\" = \"web-v4\", \"www AAAA\" = \"web-v6\" }";
    assert_eq!(values(&import, "steer"), [expected]);
}

#[test]
fn a_datacenter_of_which_many_must_be_up_is_a_pool_of_its_own() {
    let meta = |addresses: &str| {
        format!(
            "metafo => {{ resources => {{ w => {{ datacenters => [ a b ] dcmap => {{ \
             a => [ {addresses} ] b => 198.51.100.1 }} }} }} }}"
        )
    };
    let flat = import(&meta("192.0.2.1 192.0.2.2"), "www DYNA metafo!w");
    let expected = [
        "address = \"192.0.2.1\", priority = 1",
        "address = \"192.0.2.2\", priority = 1",
        "address = \"198.51.100.1\", priority = 2",
    ];
    assert_eq!(members(&flat), expected);
    let nested = import(&meta("192.0.2.1 192.0.2.2 192.0.2.3"), "www DYNA metafo!w");
    assert_eq!(values(&nested, "up-min"), ["2"]);
    let outer = members(&nested).split_off(4);
    assert_eq!(outer, ["pool = \"w-a\", priority = 1", "pool = \"w-b\", priority = 2"]);
}

#[test]
fn resources_that_refer_to_each_other_in_a_circle_are_an_error() {
    let plugins = "metafo => { resources => { w => { datacenters => a dcmap => { \
        a => %metafo!w } } } }";
    let config = format!("plugins => {{ {plugins} }}");
    let error = import_files(&config, "www DYNA metafo!w", &[]).unwrap_err();
    let expected = "resources that refer to each other: at most 16 can be read";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn what_gdnsd_would_not_take_is_an_error_with_its_place() {
    for (config, record, expected) in [
        ("other => {}", "", "/g/config:1:1: expected `options`, `service_types` or `plugins`"),
        ("plugins => {}", "www DYNA multifo!web", "/g/zones/example.com:2:10: expected a resource"),
        ("plugins => {}", "www DYNA", "/g/zones/example.com:2:1: expected the name of a plugin"),
        (
            "plugins => { static => { x => x.example. } }",
            "www DYNA static!x",
            "/g/zones/example.com:2:10: expected a resource with addresses, or DYNC",
        ),
        (
            "plugins => { multifo => { web => { up_thresh => 2, a => 192.0.2.1 } } }",
            "www DYNA multifo!web",
            "/g/config:1:49: expected a share above 0, at most 1, found `2`",
        ),
        (
            "plugins => { multifo => { web => { service_types => x, a => 192.0.2.1 } } }",
            "www DYNA multifo!web",
            "/g/config:1:53: expected a service type, found `x`",
        ),
        (
            "plugins => { weighted => { web => { a => 192.0.2.1 } } }",
            "www DYNA weighted!web",
            "/g/config:1:42: expected an address or a name, and a weight",
        ),
        (
            "plugins => { multifo => { web => { a => www } } }",
            "www DYNA multifo!web",
            "/g/config:1:41: expected an address, or a name with its final dot, found `www`",
        ),
        ("options => { listen => x }", "", "/g/config:1:24: expected an address such as"),
    ] {
        let error = import_files(config, record, &[]).err().unwrap_or_default();
        assert!(error.starts_with(expected), "{config}: {error}");
    }
}

#[test]
fn networks_may_stand_in_a_file_of_their_own() {
    let config = "plugins => { geoip => { maps => { m => { datacenters => [ a b ], nets => n } } \
        resources => { w => { map => m dcmap => { a => 192.0.2.1 b => 192.0.2.2 } } } } }";
    let nets = [("/g/geoip/n", "10.0.0.0/8 => [ b a ]\n2001:db8::/32 => a")];
    let import = import_files(config, "www DYNA geoip!w", &nets).unwrap();
    let networks = &members(&import)[..2];
    let expected =
        ["prefix = \"10.0.0.0/8\", site = \"b\"", "prefix = \"2001:db8::/32\", site = \"a\""];
    assert_eq!(networks, expected);
    assert_eq!(values(&import, "choose"), ["[\"geo\", \"failover\"]"]);
}

#[test]
fn coordinates_of_sites_choose_the_nearest() {
    let plugins = "geoip => { maps => { m => { geoip2_db => x.mmdb datacenters => [ a b ] \
        auto_dc_coords => { a => [ 50.1, 8.7 ], b => [ 40, -74 ] } } } \
        resources => { w => { map => m dcmap => { a => 192.0.2.1 b => 192.0.2.2 } } } }";
    let import = import(plugins, "www DYNA geoip!w");
    let sites = &members(&import)[..2];
    assert_eq!(sites[0], "name = \"a\", latitude = 50.1, longitude = 8.7");
    assert_eq!(sites[1], "name = \"b\", latitude = 40.0, longitude = -74.0");
    assert_eq!(values(&import, "choose"), ["[\"nearest\", \"failover\"]"]);
    assert_eq!(values(&import, "database"), ["\"/g/geoip/x.mmdb\""]);
}

#[test]
fn listeners_are_one_several_all_or_keys() {
    for (listen, expected) in [
        ("", vec!["\"0.0.0.0:53\"", "\"[::]:53\""]),
        ("listen => 192.0.2.1, dns_port => 5300", vec!["\"192.0.2.1:5300\""]),
        ("listen => any", vec!["\"0.0.0.0:53\"", "\"[::]:53\""]),
        ("listen => [ 192.0.2.1:54 ::1 ]", vec!["\"192.0.2.1:54\"", "\"[::1]:53\""]),
        (
            "listen => { 192.0.2.1 => {}, 192.0.2.2:5301 => { tcp_proxy => true } }",
            vec!["\"192.0.2.1:53\""],
        ),
    ] {
        let import = import_files(&format!("options => {{ {listen} }}"), "", &[]).unwrap();
        assert_eq!(values(&import, "address"), expected, "{listen}");
    }
}

#[test]
fn zones_are_named_by_their_files() {
    let zone = "@ SOA a b 1 2 3 4 5\n";
    let files =
        [("/g/zones/2.0-25@2.0.192.in-addr.arpa", zone), ("/g/zones/.hidden", "not a zone (")];
    let import = import_files("", "", &files).unwrap();
    assert_eq!(values(&import, "name"), ["\"2.0-25/2.0.192.in-addr.arpa\"", "\"example.com\""]);
    let names: Vec<_> = import.files.iter().map(|file| file.path.to_str().unwrap()).collect();
    assert_eq!(names, ["zones/2.0-25%2f2.0.192.in-addr.arpa.zone", "zones/example.com.zone"]);
}
