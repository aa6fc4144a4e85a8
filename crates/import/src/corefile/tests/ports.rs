//! Server blocks at different ports and addresses.

use super::{error, lost, of, says, told, with_files};
use crate::{Effect, Import};

/// Returns the sections with a header: each the lines of it, without those that they come from, and
/// those of sections inside of it.
fn sections(import: &Import, header: &str) -> Vec<String> {
    let mut sections: Vec<String> = Vec::new();
    let mut is_inside = false;
    for line in import.toml.lines().filter(|line| !line.is_empty()) {
        let line = line.split("  #").next().unwrap();
        if line.starts_with("[[") || line.starts_with('[') && !line.starts_with("[zone.") {
            is_inside = line == header;
            sections.extend(is_inside.then(String::new));
        } else if let (true, Some(section)) = (is_inside, sections.last_mut()) {
            let space = if section.is_empty() { "" } else { " " };
            section.push_str(space);
            section.push_str(line);
        }
    }
    sections
}

/// Returns the zones, each with all its keys but those of access.
fn zones(import: &Import) -> Vec<String> {
    let zones = sections(import, "[[zone]]").into_iter();
    zones.map(|zone| zone.replace(" access = [\"allow any\"]", "")).collect()
}

/// A server block at 127.0.0.1.
fn block(keys: &str, lines: &str) -> String {
    format!("{keys} {{\n bind 127.0.0.1\n {lines}\n}}\n")
}

/// Imports server blocks at 127.0.0.1.
fn of_blocks(blocks: &[(&str, &str)]) -> Import {
    of(&blocks.iter().map(|(keys, lines)| block(keys, lines)).collect::<String>())
}

#[test]
fn three_ports_with_other_zones_are_listeners_of_these_zones() {
    let import = of_blocks(&[
        ("a:53", "file a"),
        ("b:54", "forward . 192.0.2.1"),
        (".:55", "forward . 192.0.2.2"),
    ]);
    assert_eq!(
        zones(&import),
        [
            "name = \".\" listen = [\"127.0.0.1:55\"] [zone.forward] to = [\"192.0.2.2\"]",
            "name = \"a\" listen = [\"127.0.0.1:53\"] file = \"/etc/a\"",
            "name = \"b\" listen = [\"127.0.0.1:54\"] [zone.forward] to = [\"192.0.2.1\"]",
        ]
    );
    let listeners: Vec<String> = sections(&import, "[[listen]]");
    assert_eq!(listeners, [53, 54, 55].map(|port| format!("address = \"127.0.0.1:{port}\"")));
    assert_eq!(lost(&import), [0; 0]);
}

#[test]
fn the_root_is_forwarded_to_other_servers_at_another_port() {
    let import = of_blocks(&[(".:53", "forward . 192.0.2.1"), (".:54", "forward . 192.0.2.2")]);
    assert_eq!(
        zones(&import),
        [
            "name = \".\" listen = [\"127.0.0.1:53\"] [zone.forward] to = [\"192.0.2.1\"]",
            "name = \".\" listen = [\"127.0.0.1:54\"] [zone.forward] to = [\"192.0.2.2\"]",
        ]
    );
    assert_eq!(lost(&import), [0; 0]);
}

#[test]
fn a_zone_that_all_ports_have_is_written_once_and_without_listeners() {
    let import = of_blocks(&[("a:53 a:54", "file a"), ("b:54", "file b")]);
    let expected = [
        "name = \"a\" file = \"/etc/a\"",
        "name = \"b\" listen = [\"127.0.0.1:54\"] file = \"/etc/b\"",
    ];
    assert_eq!(zones(&import), expected);
    let apart = of_blocks(&[("a:53", "file a"), ("a:54", "file a"), ("b:54", "file b")]);
    assert_eq!(zones(&apart), expected, "blocks that are written alike");
    assert_eq!((lost(&import), lost(&apart)), (vec![], vec![]));
}

#[test]
fn a_file_of_a_zone_at_two_ports_is_no_needless_line() {
    let import = of_blocks(&[("a:53 a:54", "file a")]);
    assert!(import.report.is_empty(), "{:?}", import.report);
}

#[test]
fn a_file_at_two_of_three_ports_is_one_zone_with_two_listeners() {
    let import = of_blocks(&[
        ("a:53 a:55", "file a"),
        (".:53", "forward . 192.0.2.1"),
        (".:54", "forward . 192.0.2.1"),
    ]);
    assert_eq!(
        zones(&import),
        [
            "name = \".\" listen = [\"127.0.0.1:53\", \"127.0.0.1:54\"] [zone.forward] \
             to = [\"192.0.2.1\"]",
            "name = \"a\" listen = [\"127.0.0.1:53\", \"127.0.0.1:55\"] file = \"/etc/a\"",
        ]
    );
    assert_eq!(lost(&import), [0; 0]);
}

#[test]
fn a_zone_is_of_a_file_at_one_port_and_forwarded_at_another() {
    let import = of_blocks(&[("a:53", "file a"), ("a:54", "forward . 192.0.2.1")]);
    assert_eq!(
        zones(&import),
        [
            "name = \"a\" listen = [\"127.0.0.1:53\"] file = \"/etc/a\"",
            "name = \"a\" listen = [\"127.0.0.1:54\"] [zone.forward] to = [\"192.0.2.1\"]",
        ]
    );
    assert_eq!(lost(&import), [0; 0]);
}

#[test]
fn two_zones_of_a_name_that_have_data_of_their_own_are_lost() {
    let hosts = "hosts h {\n  fallthrough\n }\n forward . 192.0.2.1";
    for (first, second) in [
        ("file a", "file b"),
        ("file a", hosts),
        (hosts, "secondary {\n  transfer from 192.0.2.7\n }"),
        ("kubernetes", "file a"),
        ("kubernetes", "kubernetes {\n  pods verified\n }"),
        ("file a\n transfer {\n  to *\n }", "file a"),
    ] {
        let import = of_blocks(&[("a:53", first), ("a:54", second), ("b:54", "file b")]);
        let line = u32::try_from(block("", first).lines().count()).unwrap() + 3;
        assert_eq!(lost(&import), [line], "{first}, {second}: {:?}", import.report);
        let zones = zones(&import);
        assert!(zones[0].starts_with("name = \"a\" listen = [\"127.0.0.1:53\"]"), "{zones:?}");
        assert_eq!(zones.len(), 2, "{zones:?}");
        let why = &told(&import, line)[0];
        assert!(why.starts_with("/etc/Corefile:3 has other data"), "{why}");
        assert!(why.contains("write `forward`"), "{why}");
    }
}

#[test]
fn a_reverse_zone_of_a_cluster_is_data_of_its_own() {
    let cluster = ("c.l:53 10.in-addr.arpa:53", "kubernetes c.l 10.in-addr.arpa");
    let import = of_blocks(&[cluster, ("10.in-addr.arpa:54", "file ten")]);
    assert_eq!(lost(&import), [7]);
    let import = of_blocks(&[cluster, ("10.in-addr.arpa:54", "forward . 192.0.2.1")]);
    assert_eq!(lost(&import), [0; 0]);
}

#[test]
fn rules_and_templates_have_the_listeners_of_their_block() {
    let rules = "rewrite name exact x.a y.a\n template IN A {\n  rcode NXDOMAIN\n }\n file a";
    let import = of_blocks(&[("a:53", rules), ("a:54", "forward . 192.0.2.1")]);
    let rule = "listen = [\"127.0.0.1:53\"] exact = \"x.a.\" to = \"y.a.\"";
    assert_eq!(sections(&import, "[[rewrite]]"), [format!("zone = \"a\" {rule}")]);
    let template = "zones = [\"a\"] listen = [\"127.0.0.1:53\"] qtype = \"A\" rcode = \"NXDOMAIN\"";
    assert_eq!(sections(&import, "[[template]]"), [template]);
    assert_eq!(lost(&import), [0; 0]);
}

#[test]
fn a_rule_has_one_section_for_all_ports_with_the_same_names_of_its_block() {
    let rule = "rewrite ttl suffix .x 30\n forward . 192.0.2.1";
    let import = of_blocks(&[(".:53 .:54 .:55", rule), ("a:55", "file a")]);
    let changes = "suffix = \".x.\" ttl = \"30\"";
    assert_eq!(
        sections(&import, "[[rewrite]]"),
        [
            format!("listen = [\"127.0.0.1:53\", \"127.0.0.1:54\"] {changes}"),
            format!("listen = [\"127.0.0.1:55\"] except = [\"a\"] {changes}"),
        ]
    );
    let import = of_blocks(&[(".:53 .:54", rule), ("a:54", "forward . 192.0.2.2")]);
    assert_eq!(sections(&import, "[[rewrite]]").len(), 2);
    let import =
        of_blocks(&[("a:53 a:54", "header {\n  response set ra\n }\n file a"), (".:54", rule)]);
    assert!(sections(&import, "[[rewrite]]")[0].starts_with("zone = \"a\" set-flags"));
}

#[test]
fn a_rule_that_leads_into_another_block_at_one_of_its_ports_is_lost() {
    let rule = "rewrite name exact x.b y.a\n forward . 192.0.2.1";
    assert_eq!(lost(&of_blocks(&[(".:53 .:54", rule), ("b:53", "file b")])), [0; 0]);
    let import = of_blocks(&[(".:53 .:54", rule), ("b:53", "file b"), ("a:54", "file a")]);
    assert_eq!(lost(&import), [3]);
}

#[test]
fn both_addresses_of_a_block_are_listeners_of_its_zones() {
    let import = of(
        "a {\n bind 127.0.0.1 ::1\n file a\n}\nb {\n bind 127.0.0.1 ::1 127.0.0.2\n file b\n}\n",
    );
    assert_eq!(
        zones(&import),
        [
            "name = \"a\" listen = [\"127.0.0.1:53\", \"[::1]:53\"] file = \"/etc/a\"",
            "name = \"b\" file = \"/etc/b\"",
        ]
    );
    assert_eq!(sections(&import, "[[listen]]").len(), 3);
    assert_eq!(lost(&import), [0; 0]);
}

#[test]
fn one_address_beside_all_of_its_port_is_a_listener_where_its_zones_differ() {
    let import = of("a {\n bind 127.0.0.1\n file a\n}\nb {\n file b\n}\n");
    assert_eq!(lost(&import), [0; 0]);
    let addresses = ["127.0.0.1:53", "0.0.0.0:53", "[::]:53"];
    let addresses = addresses.map(|address| format!("address = \"{address}\""));
    assert_eq!(sections(&import, "[[listen]]"), addresses);
    assert_eq!(
        zones(&import),
        [
            "name = \"a\" listen = [\"127.0.0.1:53\"] file = \"/etc/a\"",
            "name = \"b\" listen = [\"0.0.0.0:53\", \"[::]:53\"] file = \"/etc/b\"",
        ]
    );
    let same = of("a {\n bind 0.0.0.0 127.0.0.1\n file a\n}\n");
    assert_eq!(lost(&same), [0; 0]);
    assert_eq!(sections(&same, "[[listen]]"), ["address = \"0.0.0.0:53\""]);
}

#[test]
fn zones_are_in_the_order_of_their_names_and_then_of_their_listeners() {
    let blocks = [
        ("b:54", "forward . 192.0.2.1"),
        ("c.a:53", "file c"),
        ("b:53", "forward . 192.0.2.2"),
        ("a:53 a:55", "file a"),
        ("b:55", "forward . 192.0.2.3"),
    ];
    let first = of_blocks(&blocks);
    let names: Vec<String> =
        zones(&first).iter().map(|it| it[..it.find(']').unwrap()].into()).collect();
    let at = |name: &str, ports: &str| format!("name = \"{name}\" listen = [{ports}");
    assert_eq!(
        names,
        [
            at("a", "\"127.0.0.1:53\", \"127.0.0.1:55\""),
            at("b", "\"127.0.0.1:54\""),
            at("b", "\"127.0.0.1:53\""),
            at("b", "\"127.0.0.1:55\""),
            at("c.a", "\"127.0.0.1:53\""),
        ]
    );
    for _ in 0..20 {
        assert_eq!(of_blocks(&blocks).toml, first.toml);
    }
}

#[test]
fn clients_are_told_their_addresses_at_the_ports_of_the_block_around_the_zones_there() {
    let import = of_blocks(&[(".:53 .:54", "whoami"), ("a:54", "file a")]);
    let templates = sections(&import, "[[template]]");
    assert!(templates[0].starts_with("zones = [\".\"] listen = [\"127.0.0.1:53\"] additional"));
    let except = "zones = [\".\"] listen = [\"127.0.0.1:54\"] except = [\"a\"] additional";
    assert!(templates[1].starts_with(except), "{templates:?}");
}

#[test]
fn a_hosts_file_stands_before_a_cluster_at_those_ports_where_it_stands_before_upstreams() {
    let hosts = "hosts h {\n  fallthrough\n }\n kubernetes c.l\n forward . 192.0.2.1";
    let import = of_blocks(&[(".:53 c.l:54", hosts)]);
    assert!(!lost(&import).is_empty());
    let import = of_blocks(&[(".:53 .:54", hosts), ("b:54", "file b")]);
    assert_eq!(lost(&import), [0; 0]);
    assert_eq!(import.toml.matches("hosts-first = true").count(), 1, "{}", import.toml);
}

#[test]
fn a_source_that_no_port_reaches_is_told_and_one_that_one_port_reaches_is_not() {
    let sources = "file db a\n forward . 192.0.2.1";
    let import = of_blocks(&[(".:53 .:54", sources), ("a:54", "file other a"), ("b:53", "file b")]);
    assert!(!says(&import, 3, Effect::Needless), "{:?}", import.report);
    let import = of_blocks(&[
        (".:53 .:54", sources),
        ("a:54", "forward . 192.0.2.2"),
        ("a:53", "forward . 192.0.2.3"),
    ]);
    assert!(says(&import, 3, Effect::Needless), "{:?}", import.report);
}

#[test]
fn a_line_is_told_once_for_all_ports() {
    let sources = "hosts h {\n  fallthrough\n }\n file db a";
    let import = of_blocks(&[("a:53 a:54", sources), ("b:54", "file b")]);
    assert_eq!(told(&import, 3).len(), 1, "{:?}", import.report);
}

#[test]
fn addresses_that_a_snippet_gives_to_two_ports_are_one_file() {
    let hosts = "hosts {\n  192.0.2.7 a.lan\n  fallthrough\n }\n forward . 192.0.2.1";
    let import = of_blocks(&[(".:53", hosts), (".:54", hosts), ("b:54", "file b")]);
    assert_eq!((lost(&import), import.files.len()), (vec![], 1));
    assert_eq!(zones(&import)[0].matches("listen").count(), 0, "{}", import.toml);
}

#[test]
fn directories_have_the_listeners_of_their_blocks_and_no_zone_in_common() {
    let auto = |folder: &str| format!("auto {{\n  directory {folder} (.*)\\.zone {{1}}\n }}");
    let text = block(".:53", &auto("x")) + &block(".:54", &auto("y"));
    let import = with_files(&text, &[("/etc/x/a.zone", ""), ("/etc/y/b.zone", "")]).unwrap();
    let at = |folder: &str, port: u16| {
        format!("directory = \"/etc/{folder}\" listen = [\"127.0.0.1:{port}\"]")
    };
    assert_eq!((zones(&import), lost(&import)), (vec![at("x", 53), at("y", 54)], vec![]));
    let import = with_files(&text, &[("/etc/x/a.zone", ""), ("/etc/y/a.zone", "")]).unwrap();
    assert_eq!(lost(&import), [10]);
    let text = block(".:53", &auto("x")) + &block("a:54", "file a");
    let import = with_files(&text, &[("/etc/x/a.zone", "")]).unwrap();
    assert_eq!(lost(&import), [9]);
    let text = block(".:53", &auto("x")) + &block(".:54", &auto("x")) + &block("b:54", "file b");
    let import = with_files(&text, &[("/etc/x/a.zone", "")]).unwrap();
    assert_eq!(lost(&import), [0; 0]);
    assert!(zones(&import).contains(&"directory = \"/etc/x\"".to_owned()), "{}", import.toml);
}

#[test]
fn special_names_that_one_port_alone_forwards_are_lost() {
    let with = |first: &str, second: &str| {
        let forward = |more: &str, server: &str| format!("forward . {server}{more}");
        let first = forward(first, "192.0.2.1");
        let second = forward(second, "192.0.2.2");
        lost(&of_blocks(&[(".:53", &first), (".:54", &second)]))
    };
    assert_eq!(with("\n local", "\n local"), [0; 0]);
    assert_eq!(with("", "\n local"), [8]);
    assert_eq!(with("\n local", ""), [4]);
}

#[test]
fn names_at_too_many_addresses_are_an_error() {
    let ports: String = (0..300).map(|port| format!(".:{} ", 1000 + port)).collect();
    let files: String = (0..1000).map(|number| format!("file z{number} z{number}\n ")).collect();
    let text = block(&ports, &files) + &block("a:53", "file a");
    let told = error(&text);
    let expected = "/etc/Corefile:1:1: names of zones at each address: at most 200000 can be read";
    assert_eq!(told, expected);
    let alone = block(&ports, &files);
    assert_eq!(lost(&of(&alone)), [0; 0], "all listeners have the same zones");
}

#[test]
fn rules_at_too_many_addresses_are_an_error() {
    let ports: String = (0..1100).map(|port| format!(".:{} ", 1000 + port)).collect();
    let rules: String = (0..1000).map(|number| format!("rewrite name x{number} y\n ")).collect();
    let text = block(&ports, &(rules + "forward . 192.0.2.1")) + &block("a:53", "file a");
    let told = error(&text);
    assert!(told.ends_with("names and addresses of rules: at most 1000000 can be read"), "{told}");
}

/// Returns the sections that are there for queries to a port of 127.0.0.1, without `listen`.
fn sections_at(import: &Import, header: &str, port: u16) -> Vec<String> {
    let address = format!("\"127.0.0.1:{port}\"");
    let at = |section: String| match section.split_once("listen = [") {
        None => Some(section),
        Some((before, rest)) => {
            let (listen, rest) = rest.split_once("] ")?;
            listen.contains(&address).then(|| format!("{before}{rest}"))
        }
    };
    sections(import, header).into_iter().filter_map(at).collect()
}

/// Draws server blocks, each with the names and ports of its keys, and its lines. These name their
/// zones, as otherwise they have those of all keys, whatever the port.
fn drawn_blocks(seed: u64) -> Vec<(Vec<(&'static str, u16)>, String)> {
    const NAMES: [&str; 5] = [".", "a", "b.a", "c.b.a", "d"];
    const LINES: [&str; 8] = [
        "forward . 192.0.2.1",
        "forward . 192.0.2.2 {\n  except b.a\n }",
        "file db a\n forward . 192.0.2.1",
        "file db b.a d",
        "hosts h . {\n  fallthrough\n }\n forward . 192.0.2.1",
        "rewrite ttl suffix .x 30\n forward . 192.0.2.1",
        "template IN A . {\n  rcode NXDOMAIN\n }\n forward . 192.0.2.1",
        "errors",
    ];
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = |count: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 40).unwrap() % count
    };
    let mut keys: Vec<(&'static str, u16)> = Vec::new();
    for port in [53, 54, 55] {
        keys.extend(NAMES.iter().filter(|_| draw(2) == 0).map(|name| (*name, port)));
    }
    let mut blocks: Vec<(Vec<(&'static str, u16)>, String)> = Vec::new();
    for _ in 0..2 + draw(4) {
        blocks.push((Vec::new(), LINES[draw(LINES.len())].to_owned()));
    }
    for key in keys {
        let at = draw(blocks.len());
        blocks[at].0.push(key);
    }
    blocks
}

#[test]
fn each_port_has_what_a_corefile_of_this_port_alone_makes() {
    let mut compared = 0;
    for seed in 1..2000 {
        let blocks = drawn_blocks(seed);
        let text = |ports: &[u16]| -> String {
            let keys = |keys: &[(&str, u16)]| -> String {
                let here = keys.iter().filter(|(_, port)| ports.contains(port));
                here.map(|(name, port)| format!("{name}:{port} ")).collect()
            };
            let blocks = blocks.iter().map(|(all, lines)| (keys(all), lines));
            blocks.filter(|it| !it.0.is_empty()).map(|(keys, lines)| block(&keys, lines)).collect()
        };
        let all = of(&text(&[53, 54, 55]));
        if !lost(&all).is_empty() {
            continue;
        }
        for port in [53, 54, 55] {
            let alone = of(&text(&[port]));
            if sections(&alone, "[[listen]]").is_empty() {
                continue;
            }
            let whole = text(&[53, 54, 55]);
            for header in ["[[zone]]", "[[rewrite]]", "[[template]]"] {
                let mut expected = sections(&alone, header);
                let mut made = sections_at(&all, header, port);
                expected.sort();
                made.sort();
                assert_eq!(made, expected, "{seed}, port {port}:\n{whole}\n{}", all.toml);
            }
            compared += 1;
        }
    }
    assert!(compared > 500, "{compared}");
}
