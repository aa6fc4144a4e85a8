#![allow(clippy::unwrap_used)]
use crate::corefile::import;
use crate::memory::Memory;
use crate::{Effect, Import, ImportError};
use std::path::Path;

mod ports;

/// Imports a Corefile beside other files.
fn with_files(text: &str, files: &[(&str, &str)]) -> Result<Import, ImportError> {
    let mut all = vec![("/etc/Corefile", text), ("/etc/hostname", "node")];
    all.extend(files);
    let environment = |name: &str| match name {
        "SERVER" => Some("192.0.2.9".to_owned()),
        "ZONE" => Some("env.example".to_owned()),
        _ => None,
    };
    import(Path::new("/etc/Corefile"), &mut Memory(&all), &environment)
}

fn of(text: &str) -> Import {
    with_files(text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the words of an error.
fn error(text: &str) -> String {
    match with_files(text, &[("/etc/zones/a.db", "")]) {
        Ok(import) => panic!("{text}\n{}", import.toml),
        Err(error) => error.to_string(),
    }
}

/// Returns the zones, each with its first source: `NAME source`.
fn zones(import: &Import) -> Vec<String> {
    let mut zones: Vec<String> = Vec::new();
    for line in import.toml.lines() {
        let line = line.split("  #").next().unwrap();
        if let Some(name) = line.strip_prefix("name = ") {
            zones.push(name.trim_matches('"').to_owned());
        } else if let Some(zone) = zones.last_mut() {
            for key in ["hosts = ", "file = ", "to = ", "except = ", "access = "] {
                if line.starts_with(key) && line != "access = [\"allow any\"]" {
                    zone.push(' ');
                    zone.push_str(&line[key.len()..]);
                }
            }
        }
    }
    zones
}

/// Returns the lines that are lost.
fn lost(import: &Import) -> Vec<u32> {
    import.losses().map(|line| line.place.line).collect()
}

/// Whether the report has a line with an effect.
fn says(import: &Import, line: u32, effect: Effect) -> bool {
    import.report.iter().any(|it| it.place.line == line && it.effect == effect)
}

#[test]
fn the_longest_zone_of_a_block_decides_whatever_other_blocks_have_below_it() {
    let import = of("a.b {\n forward . 192.0.2.1\n}\n. {\n file db x.a.b\n file db y.b\n \
        forward c 192.0.2.3\n forward . 192.0.2.2\n}\n");
    let expected =
        [". [\"192.0.2.2\"]", "c [\"192.0.2.3\"]", "a.b [\"192.0.2.1\"]", "y.b \"/etc/db\""];
    assert_eq!(zones(&import), expected);
    assert!(says(&import, 5, Effect::Needless)); // in CoreDNS, too, a.b has its names
    assert_eq!(lost(&import), [0; 0]);
}

#[test]
fn of_several_forwards_the_first_that_has_the_name_is_asked() {
    let import = of(". {\n forward a 192.0.2.1\n forward . 192.0.2.2\n forward b 192.0.2.3\n}\n");
    assert_eq!(zones(&import), [". [\"192.0.2.2\"]", "a [\"192.0.2.1\"]"]);
    assert!(says(&import, 4, Effect::Needless));
}

#[test]
fn of_several_files_that_of_the_longest_zone_counts_and_the_last_of_one() {
    let import = of("a {\n file x\n file y b.a\n file z a\n forward . 192.0.2.1\n}\n");
    assert_eq!(zones(&import), ["a \"/etc/z\"", "b.a \"/etc/y\""]);
    assert!(says(&import, 2, Effect::Needless) && says(&import, 5, Effect::Needless));
}

#[test]
fn excepted_names_go_to_the_next_plugin_or_are_left_out() {
    let import = of(". {\n forward . 192.0.2.1 {\n  except a b\n }\n forward a 192.0.2.2\n}\n");
    assert_eq!(zones(&import), [". [\"192.0.2.1\"] [\"b\"]", "a [\"192.0.2.2\"]"]);
}

#[test]
fn a_block_without_a_source_is_left_out_of_the_zone_around_it() {
    let import = of(". {\n forward . 192.0.2.1\n}\na.b {\n errors\n}\n");
    assert_eq!(zones(&import), [". [\"192.0.2.1\"] [\"a.b\"]"]);
    let import = of("b {\n file db\n}\na.b {\n errors\n}\n");
    assert_eq!(lost(&import), [4]); // a zone of a file has no exceptions
}

#[test]
fn hosts_come_before_upstreams_where_their_names_fall_through() {
    let import = of(". {\n hosts h a {\n  fallthrough\n }\n forward . 192.0.2.1\n}\n");
    assert_eq!(zones(&import), [". [\"192.0.2.1\"]", "a \"/etc/h\" [\"192.0.2.1\"]"]);
    let import = of(". {\n hosts h {\n  fallthrough b\n }\n forward . 192.0.2.1\n}\n");
    assert_eq!(zones(&import), [". \"/etc/h\"", "b \"/etc/h\" [\"192.0.2.1\"]"]);
    assert!(says(&import, 2, Effect::Differs)); // NXDOMAIN outside of b
}

#[test]
fn inline_hosts_make_a_file_with_those_of_the_file_that_they_do_not_replace() {
    let text = ". {\n hosts h {\n  10.0.0.1 A.x b.x\n  fallthrough\n }\n forward . 192.0.2.1\n}\n";
    let import = with_files(text, &[("/etc/h", "# no\n10.0.0.2 a.x c.x # no\n10.0.0.3 b.x\n")]);
    let import = import.unwrap();
    let expected = "# /etc/Corefile:2: hosts\n10.0.0.1 A.x b.x\n10.0.0.2 c.x\n";
    assert_eq!(import.files[0].text, expected);
    assert!(import.toml.contains("hosts = \"hosts/1.hosts\""), "{}", import.toml);
}

#[test]
fn networks_as_keys_are_reverse_zones() {
    let import = of("10.1.2.0/23 2001:db8::/33 {\n forward . 192.0.2.1\n}\n");
    let zones = zones(&import);
    assert_eq!(zones.len(), 2 + 8);
    assert!(zones.iter().any(|zone| zone.starts_with("3.1.10.in-addr.arpa ")), "{zones:?}");
    assert!(zones.iter().any(|zone| zone.starts_with("7.8.b.d.0.1.0.0.2.ip6.arpa ")), "{zones:?}");
}

#[test]
fn a_zone_that_is_served_twice_at_an_address_is_an_error() {
    let twice = error("a {\n file x\n}\na b {\n file y\n}\n");
    assert!(twice.starts_with("/etc/Corefile:4:1: `a` at 0.0.0.0:53 is given already"), "{twice}");
}

#[test]
fn a_forward_that_another_one_leaves_answers_to_in_coredns_is_lost_with_it() {
    let text = ". {\n forward . 192.0.2.1 {\n  next NXDOMAIN\n }\n forward . 192.0.2.2\n}\n";
    let import = of(text);
    assert_eq!(lost(&import), [3, 5]);
    let report: Vec<String> = import.report.iter().map(ToString::to_string).collect();
    let second = report.iter().find(|it| it.starts_with("/etc/Corefile:5")).unwrap();
    assert!(second.ends_with("in CoreDNS, /etc/Corefile:3 leaves answers to it"), "{second}");
    let alone = of(". {\n forward . 192.0.2.1\n forward . 192.0.2.2\n}\n");
    assert_eq!(lost(&alone), [0; 0]);
}

#[test]
fn whoami_has_the_names_that_no_other_plugin_of_its_block_has() {
    let import = of(". {\n file db e.org\n whoami\n}\nsub.e.org a.test {\n file db a.test\n}\n");
    let (_, template) = import.toml.split_once("[[template]]").unwrap();
    assert!(template.contains("zones = [\".\"]"), "{template}");
    assert!(template.contains("except = [\"a.test\", \"e.org\"]"), "{template}");
    // A forward before it answers for all names.
    let none = of(". {\n forward . 192.0.2.1\n whoami\n}\n");
    assert!(!none.toml.contains("[[template]]"), "{}", none.toml);
    for lost_with in ["hosts h {\n  fallthrough\n }", "acl {\n  block net 10.0.0.0/8\n }"] {
        let import = of(&format!(". {{\n {lost_with}\n whoami\n}}\n"));
        assert!(!lost(&import).is_empty(), "{lost_with}");
    }
}

#[test]
fn zones_are_transferred_to_the_clients_of_the_longest_rule() {
    let import = of(". {\n file db e.org\n file db sub.e.org\n transfer {\n  to *\n }\n \
        transfer sub.e.org {\n  to 192.0.2.7:53 fe80::1\n }\n}\n");
    assert_eq!(lost(&import), [0; 0]);
    let (whole, sub) = import.toml.split_once("name = \"sub.e.org\"").unwrap();
    assert!(whole.contains("transfer.to = [\"0.0.0.0/0\", \"::/0\"]"), "{whole}");
    assert!(sub.contains("transfer.to = [\"192.0.2.7\", \"fe80::1\"]"), "{sub}");
    for wrong in ["transfer {\n }", "transfer {\n  to\n }", "transfer {\n  to nowhere\n }"] {
        error(&format!(". {{\n {wrong}\n}}\n"));
    }
}

#[test]
fn options_of_queries_become_those_of_the_blocks_upstreams() {
    let text = |rules: &str| format!(". {{\n{rules}\n forward . 192.0.2.1\n}}\n");
    let import = of(&text(" rewrite edns0 local set 0xffee abcd\n rewrite name a.test b.test"));
    assert!(import.toml.contains("options = [\"65518 0x61626364\"]"), "{}", import.toml);
    assert!(!import.toml.contains("[[rewrite]]"), "the first rule is the last for all queries");
    assert!(says(&import, 3, Effect::Needless));
    let both = " rewrite continue edns0 local append 65001 0x00ff\n rewrite name a.test b.test";
    let import = of(&text(both));
    assert!(import.toml.contains("options = [\"65001 0x00ff\"]"), "{}", import.toml);
    assert!(import.toml.contains("[[rewrite]]"), "{}", import.toml);
    for lost_rule in ["local set 10 0x00", "local set 0xffee {geoip/city/name}"] {
        assert_eq!(lost(&of(&text(&format!(" rewrite edns0 {lost_rule}")))), [2], "{lost_rule}");
    }
    assert!(says(&of(&text(" rewrite edns0 local unset 0xffee")), 2, Effect::Needless));
    let alone = of("a.test {\n file db\n rewrite edns0 local set 0xffee 0x00\n}\n");
    assert!(says(&alone, 3, Effect::Needless), "{:?}", alone.report);
    for wrong in [
        "local set",
        "local set 0xfffff 0x00",
        "local set 1 0x0",
        "local set 0xffee {client}",
        "local unset",
        "local unset 0xffee 0x00",
        "other set 1 2",
        "nsid",
        "nsid set 0x00",
        "subnet set 24",
        "subnet set 33 56",
        "subnet set 24 129",
        "subnet unset 24 56",
        "local put 0xffee 0x00",
    ] {
        error(&text(&format!(" rewrite edns0 {wrong}")));
    }
}

/// The options of queries that a block has with these rules `edns0`, all but the last of which go
/// on.
fn options_with(rules: &[&str]) -> (Vec<String>, Import) {
    let mut text = ". {\n".to_owned();
    for (place, rule) in rules.iter().enumerate() {
        let mode = if place + 1 < rules.len() { "continue " } else { "" };
        text +=
            &format!(" rewrite {mode}edns0 {rule} revert\n").replace("unset 1 revert", "unset 1");
    }
    let import = of(&(text + " forward . 192.0.2.1\n}\n"));
    let list = import.toml.split_once("options = [").and_then(|it| it.1.split_once(']'));
    let options = list.map_or("", |it| it.0).split(", ").map(|option| option.trim_matches('"'));
    (options.map(str::to_owned).collect(), import)
}

#[test]
fn each_variable_of_an_option_has_its_name() {
    for (rule, option) in [
        ("local set 1 {qname}", "1 {name}"),
        ("local append 1 {qtype}", "1 {type}"),
        ("local set 1 {client_ip}", "1 {client-address}"),
        ("local set 1 {client_port}", "1 {client-port}"),
        ("local set 1 {protocol}", "1 {transport}"),
        ("local set 1 {server_ip}", "1 {server-address}"),
        ("local replace 0xffee {server_port}", "65518 {server-port} if-present"),
        ("nsid set", "3 0x"),
        ("nsid replace", "3 0x if-present"),
        ("subnet set 24 56", "8 {client-subnet 24 56}"),
        ("SUBNET APPEND 0 128", "8 {client-subnet 0 128}"),
    ] {
        let (options, import) = options_with(&[rule]);
        assert_eq!((options, lost(&import)), (vec![option.to_owned()], Vec::new()), "{rule}");
    }
}

#[test]
fn a_cluster_without_endpoints_has_none_in_its_own_zone_and_outside_and_keeps_imported_ones() {
    let import = of("c.local m.local x.org {\n kubernetes c.local m.local {\n  noendpoints\n  \
                     multicluster m.local\n }\n k8s_external x.org {\n  headless\n }\n}\n");
    let zones: Vec<&str> = import.toml.split("[[zone]]").skip(1).collect();
    let without = |zone: &&&str| zone.contains("endpoints = false");
    let named = |zone: &&&str| zone.contains("m.local");
    assert_eq!(zones.iter().filter(without).count(), 2, "{}", import.toml);
    assert!(!zones.iter().filter(named).any(|zone| without(&zone)), "{}", import.toml);
    assert!(says(&import, 7, Effect::Needless) && lost(&import).is_empty(), "{:?}", import.report);
    let empty = of("c.local {\n kubernetes c.local {\n  ignore empty_service\n  noendpoints\n  \
                    endpoint_pod_names\n }\n}\n");
    assert!(lost(&empty) == [3] && says(&empty, 5, Effect::Needless), "{:?}", empty.report);
}

/// The keys of a section of what was made of a Corefile, without their lines.
fn section(import: &Import, name: &str) -> Vec<String> {
    let rest = import.toml.split_once(&format!("\n[{name}]\n")).map_or("", |it| it.1);
    let lines = rest.lines().take_while(|line| !line.is_empty());
    lines.map(|line| line.split("  #").next().unwrap().to_owned()).collect()
}

#[test]
fn queries_are_logged_that_the_blocks_and_classes_of_log_say() {
    let of = |text: &str| {
        let import = of(text);
        assert!(lost(&import).is_empty(), "{:?}", import.report);
        (section(&import, "query-log"), import)
    };
    for (text, expected) in [
        (". {\n log\n forward . 192.0.2.1\n}\n", &["output = \"stdout\""][..]),
        (
            ". {\n log . {\n  class error\n }\n forward . 192.0.2.1\n}\n",
            &["output = \"stdout\"", "outcomes = [\"error\"]"],
        ),
        (
            ". {\n log\n forward . 192.0.2.1\n}\na.b {\n file db\n}\n",
            &["output = \"stdout\"", "except = [\"a.b\"]"],
        ),
        (
            ". {\n forward . 192.0.2.1\n}\na.b {\n file d\n log {\n  class denial success\n }\n}\n",
            &["output = \"stdout\"", "outcomes = [\"success\", \"denial\"]", "zones = [\"a.b\"]"],
        ),
        (
            "a b {\n log a {\n  class all\n }\n file db\n}\n",
            &["output = \"stdout\"", "zones = [\"a\"]"],
        ),
    ] {
        let (found, import) = of(text);
        assert_eq!(found, expected, "{text}");
        let told = import.report.iter().any(|it| it.what.starts_with("log"));
        let has_classes = text.contains("class") && !text.contains("class all");
        assert_eq!(told, has_classes, "{:?}", import.report);
    }
    let (_, import) = of(". {\n log {\n  class error\n }\n forward . 192.0.2.1\n}\n\
                          a {\n log\n file db\n}\n");
    assert!(says(&import, 2, Effect::Differs), "{:?}", import.report);
    let (_, import) = of(". {\n log . \"{remote} {name}\"\n forward . 192.0.2.1\n}\n");
    assert!(says(&import, 2, Effect::Differs), "{:?}", import.report);
}

#[test]
fn each_block_has_its_own_times_in_the_cache_if_they_differ() {
    let times = |cache: &str| format!(" forward . 192.0.2.1\n {cache}\n}}\n");
    let alike = of(&format!(". {{\n{}a {{\n{}", times("cache 30"), times("cache 30")));
    assert!(section(&alike, "cache").contains(&"ttl-max = \"30s\"".to_owned()), "{}", alike.toml);
    assert_eq!(alike.toml.matches("\nttl-max").count(), 1, "{}", alike.toml);
    let apart = of(&format!(". {{\n{}a {{\n{}", times("cache 30"), times("cache 60")));
    let zones: Vec<&str> = apart.toml.split("[zone.forward]").skip(1).collect();
    let has = |place: usize, key: &str| zones[place].contains(&format!("\n{key}"));
    assert!(has(0, "ttl-max = \"30s\"") && has(1, "ttl-max = \"60s\""), "{}", apart.toml);
    assert!(!apart.report.iter().any(|it| it.why.contains("for all blocks")), "{:?}", apart.report);
    let none = of(". {\n forward . 192.0.2.1\n cache {\n  disable denial\n }\n}\n");
    assert!(lost(&none).is_empty(), "{:?}", none.report);
    assert!(none.toml.contains("\nnegative-ttl-max = \"0s\""), "{}", none.toml);
    let twice =
        of(". {\n forward . 192.0.2.1\n cache {\n  serve_stale 1h\n  serve_stale 2h\n }\n}\n");
    assert_eq!(twice.toml.matches("\nstale = ").count(), 1, "{}", twice.toml);
    assert!(twice.toml.contains("\nstale = \"7200s\""), "{}", twice.toml);
    let part = of(". {\n forward . 192.0.2.1\n cache {\n  disable denial a.b\n }\n}\n");
    assert_eq!(lost(&part), [4]);
}

#[test]
fn a_hosts_file_has_the_ttl_of_its_line_and_no_names_of_addresses_where_that_says_so() {
    let hosts = |options: &str| of(&format!(". {{\n hosts /etc/h {{\n{options} }}\n}}\n"));
    assert!(hosts("").toml.contains("hosts-ttl = \"3600s\""));
    let import = hosts("  ttl 30\n  no_reverse\n");
    assert!(import.toml.contains("hosts-ttl = \"30s\""), "{}", import.toml);
    assert!(import.toml.contains("hosts-reverse = false"), "{}", import.toml);
    assert!(lost(&import).is_empty() && !says(&import, 3, Effect::Differs), "{:?}", import.report);
}

#[test]
fn rules_for_one_option_work_upon_each_other_in_their_order() {
    for (rules, expected) in [
        (&["local set 1 0x61", "local set 1 0x62"][..], &["1 0x62"][..]),
        (&["local set 1 0x61", "local replace 1 0x62"], &["1 0x62"]),
        (&["local replace 1 0x61", "local replace 1 0x62"], &["1 0x62 if-present"]),
        (&["local replace 1 0x61", "local set 1 0x62"], &["1 0x62"]),
        (&["local set 1 0x61", "local append 1 0x62"], &["1 0x61", "1 0x62"]),
        (&["local set 1 0x61", "local append 1 {qname}"], &["1 0x61"]),
        (&["subnet set 24 56", "subnet append 16 48"], &["8 {client-subnet 24 56}"]),
        (&["subnet set 24 56", "subnet set 16 48"], &["8 {client-subnet 16 48}"]),
        (&["local set 1 0x61", "nsid set", "local unset 1"], &["3 0x"]),
    ] {
        let (options, import) = options_with(rules);
        assert_eq!(options, expected, "{rules:?}");
        assert!(lost(&import).is_empty(), "{rules:?}");
    }
    let (_, import) = options_with(&["local replace 1 0x61", "local append 1 {qname}"]);
    assert_eq!(lost(&import), [3]);
    let stopped = of(". {\n rewrite edns0 local set 10 0x00\n rewrite name a b\n \
                      forward . 192.0.2.1\n}\n");
    assert!(!stopped.toml.contains("[[rewrite]]"), "a rule that is lost ends them all the same");
    let (options, import) = options_with(&["local unset 1", "local replace 1 0x61"]);
    assert!(options == [""] && says(&import, 3, Effect::Needless), "{options:?}");
    let appended = of(". {\n rewrite edns0 subnet append 24 56 revert\n rewrite name a b\n \
                       forward . 192.0.2.1\n}\n");
    assert!(!appended.toml.contains("[[rewrite]]") && says(&appended, 2, Effect::Differs));
    let of_server = |bind: &str| {
        of(&format!(
            ". {{\n{bind} rewrite edns0 local set 1 {{server_ip}} revert\n \
                     rewrite name a b\n forward . 192.0.2.1\n}}\n"
        ))
    };
    let (of_all, of_one) = (of_server(""), of_server(" bind 192.0.2.53\n"));
    assert!(says(&of_all, 2, Effect::Differs) && of_all.toml.contains("[[rewrite]]"));
    assert!(!says(&of_one, 3, Effect::Differs) && !of_one.toml.contains("[[rewrite]]"));
    let of_question = of(". {\n rewrite continue edns0 local set 1 {qname} revert\n \
                          rewrite name a b\n forward . 192.0.2.1\n}\n");
    assert!(says(&of_question, 2, Effect::Differs), "the upstream is asked for another name");
    let ended = ". {\n rewrite edns0 local replace 1 0x61 revert\n rewrite name a b\n \
                 forward . 192.0.2.1\n}\n";
    assert!(says(&of(ended), 2, Effect::Differs), "the rule below is met all the same");
}

#[test]
fn access_rules_are_for_the_zones_that_they_name() {
    let import =
        of(". {\n acl a {\n  block net 10.0.0.0/8\n }\n acl {\n  drop net 192.0.2.7\n }\n \
        forward . 192.0.2.1\n}\n");
    let expected = [
        ". [\"drop 192.0.2.7\", \"allow any\"] [\"192.0.2.1\"]",
        "a [\"refuse 10.0.0.0/8\", \"drop 192.0.2.7\", \"allow any\"] [\"192.0.2.1\"]",
    ];
    assert_eq!(zones(&import), expected);
    let import = of(". {\n acl {\n  filter net 10.0.0.0/8\n }\n forward . 192.0.2.1\n}\n");
    assert_eq!(zones(&import), [". [\"filter 10.0.0.0/8\", \"allow any\"] [\"192.0.2.1\"]"]);
    assert_eq!(lost(&import), [0; 0]);
    let by_type = of(". {\n acl {\n  filter type aaaa HINFO\n  block type ANY\n }\n \
        forward . 192.0.2.1\n}\n");
    let expected = ". [\"filter any type AAAA HINFO\", \"refuse any type ANY\", \"allow any\"] \
        [\"192.0.2.1\"]";
    assert_eq!((zones(&by_type), lost(&by_type)), (vec![expected.to_owned()], vec![]));
    let all = of(". {\n acl {\n  drop type A * net 192.0.2.7\n }\n forward . 192.0.2.1\n}\n");
    assert_eq!(zones(&all), [". [\"drop 192.0.2.7\", \"allow any\"] [\"192.0.2.1\"]"]);
    let some = of(". {\n acl {\n  allow type ANY net *\n  block\n }\n forward . 192.0.2.1\n}\n");
    let expected = [". [\"allow any type ANY\", \"refuse any\"] [\"192.0.2.1\"]"];
    assert_eq!(zones(&some), expected);
    error(". {\n acl {\n  block type NONE1\n }\n forward . 192.0.2.1\n}\n");
}

#[test]
fn access_rules_for_transfers_and_for_types_that_are_rewritten_are_lost() {
    let of = |plugins: &str| lost(&of(&format!(". {{\n{plugins} forward . 192.0.2.1\n}}\n")));
    assert_eq!(of(" acl {\n  block type AXFR net *\n  block type A IXFR\n }\n"), [3, 4]);
    assert_eq!(of(" rewrite type ANY HINFO\n acl {\n  block type ANY\n }\n"), [4]);
    assert_eq!(of(" acl {\n  block type ANY\n }\n rewrite type ANY HINFO\n"), [5]);
    assert_eq!(of(" acl {\n  block\n }\n rewrite type ANY HINFO\n"), [0; 0]);
}

#[test]
fn access_rules_of_a_block_without_zones_are_lost() {
    let text = "e.org {\n acl {\n  block net 10.0.0.0/8\n }\n \
        template IN A {\n  answer \"{{ .Name }} 60 IN A 192.0.2.1\"\n }\n}\n";
    assert_eq!(lost(&of(text)), [3]);
}

#[test]
fn a_cluster_takes_its_reverse_zones_and_what_falls_through_goes_around() {
    let import =
        of(". {\n kubernetes c.l 10.0.0.0/8 2001:db8::/32 {\n  fallthrough in-addr.arpa\n }\n \
        forward . 192.0.2.1\n}\n");
    assert_eq!(lost(&import), [0; 0]);
    assert!(
        import.toml.contains("reverse = [\"10.0.0.0/8\", \"2001:db8::/32\"]"),
        "{}",
        import.toml
    );
    assert!(import.toml.contains("fall-through-zones = [\"in-addr.arpa\"]"), "{}", import.toml);
    // Another zone for the same names cannot stand behind a cluster.
    let import = of("c.l {\n kubernetes {\n  fallthrough\n }\n forward . 192.0.2.1\n}\n");
    assert_eq!(lost(&import), [2]);
}

#[test]
fn zones_of_imported_services_follow_these_alone() {
    let import = of(". {\n kubernetes c.l cs.l 10.0.0.0/8 {\n  pods verified\n  \
        multicluster cs.l\n }\n}\n");
    assert_eq!(lost(&import), [0; 0]);
    let (own, imported) = import.toml.split_once("name = \"cs.l\"").unwrap();
    assert!(own.contains("pods = \"verified\"") && own.contains("reverse ="), "{own}");
    assert!(imported.contains("multicluster = true"), "{imported}");
    assert!(!imported.contains("pods =") && !imported.contains("reverse ="), "{imported}");
}

#[test]
fn external_names_of_a_cluster_are_a_zone_of_their_own() {
    let import = of(". {\n k8s_external e.org 192.in-addr.arpa {\n  apex ns\n  ttl 30\n  \
        headless\n  fallthrough\n }\n kubernetes c.l 10.in-addr.arpa {\n  kubeconfig k ctx\n  \
        namespaces a b\n  pods insecure\n }\n}\n");
    assert_eq!(lost(&import), [0; 0], "{}", import.toml);
    let (own, external) = import.toml.split_once("name = \"e.org\"").unwrap();
    assert!(own.contains("pods = \"insecure\"") && !own.contains("external"), "{own}");
    for line in [
        "external = true",
        "external-headless = true",
        "external-apex = \"ns\"",
        "ttl = \"30s\"",
        "fall-through = true",
        "context = \"ctx\"",
        "namespaces = [\"a\", \"b\"]",
        "reverse = [\"192.0.0.0/8\"]",
    ] {
        assert!(external.contains(line), "{line} in {external}");
    }
    assert!(!external.contains("pods"), "{external}");
}

#[test]
fn parts_of_external_names_that_are_lost_are_told_by_their_lines() {
    let text = "c.l e.org {\n kubernetes c.l\n k8s_external e.org {\n  apex a.b\n  other\n }\n}\n";
    assert_eq!(lost(&of(text)), [4, 5]);
    let reverse = "c.l in-addr.arpa {\n kubernetes c.l\n k8s_external in-addr.arpa\n}\n";
    assert_eq!(lost(&of(reverse)), [3]);
    assert!(with_files("e.org {\n k8s_external\n}\n", &[]).is_err());
}

#[test]
fn search_paths_are_of_the_cluster_and_not_of_its_external_names() {
    let text = "c.l e.org {\n k8s_external e.org\n kubernetes c.l\n autopath @kubernetes\n}\n";
    let import = of(text);
    assert_eq!(import.toml.matches("autopath = true").count(), 1, "{}", import.toml);
    let (own, _) = import.toml.split_once("name = \"e.org\"").unwrap();
    assert!(own.contains("autopath = true"), "{own}");
}

#[test]
fn how_the_api_is_reached_is_taken_as_coredns_takes_it() {
    let import = of("c.l {\n autopath @kubernetes\n kubernetes {\n  fallthrough\n }\n}\n");
    assert!(!import.toml.contains("autopath"), "{}", import.toml);
    assert_eq!(lost(&import), [2]);
    let import = of("c.l {\n autopath @kubernetes\n kubernetes\n}\n");
    assert!(import.toml.contains("autopath = true"), "{}", import.toml);
    assert!(!import.toml.contains("search-domains"), "{}", import.toml);
    assert_eq!(lost(&of("x.org {\n autopath @erratic\n}\n")), [2]);
    let import = of("c.l {\n kubernetes {\n  kubeconfig k ctx\n  endpoint https://192.0.2.1\n  \
        tls a b c\n }\n}\n");
    assert!(import.toml.contains("context = \"ctx\""), "{}", import.toml);
    assert!(!import.toml.contains("endpoint"), "{}", import.toml);
    assert_eq!(lost(&of("c.l {\n kubernetes {\n  tls a b c\n }\n}\n")), [3]);
}

#[test]
fn upstreams_of_all_kinds_are_written_as_zonda_has_them() {
    let to = |text: &str| zones(&of(&format!(". {{\n forward . {text}\n}}\n"))).remove(0);
    for (text, expected) in [
        ("192.0.2.1:53 dns://[::1]:54 2001:db8::1", r#"["192.0.2.1", "[::1]:54", "2001:db8::1"]"#),
        ("tls://[::1]%a.b:8853", r#"["tls://[::1]:8853#a.b"]"#),
        ("192.0.2.1 {\n force_tcp\n }", r#"["tcp://192.0.2.1"]"#),
        ("https://192.0.2.1/q {\n tls_servername n.\n }", r#"["https://192.0.2.1/q#n"]"#),
        ("ns.x {\n resolver 192.0.2.5\n }", r#"["ns.x"]"#),
        ("{$SERVER}", r#"["192.0.2.9"]"#),
        ("{%SERVER%}:{$NONE}54", r#"["192.0.2.9:54"]"#),
    ] {
        assert_eq!(to(text), format!(". {expected}"), "{text}");
    }
    assert_eq!(lost(&of(". {\n forward . grpc://192.0.2.1\n}\n")), [2, 2]);
}

#[test]
fn files_that_name_servers_are_followed_beside_upstreams() {
    let text = "a {\n forward . resolv 192.0.2.1 ./more {\n  force_tcp\n }\n}\n";
    let import = with_files(text, &[("/etc/resolv", "nameserver 192.0.2.7\n")]).unwrap();
    assert_eq!(zones(&import), ["a [\"tcp://192.0.2.1\"]"]);
    for key in ["resolv-conf = [\"/etc/resolv\", \"/etc/./more\"]  #", "resolv-conf-tcp = true  #"]
    {
        assert!(import.toml.contains(key), "{key}: {}", import.toml);
    }
    assert!(with_files(text, &[]).is_err(), "without the file, `resolv` is no address");
}

#[test]
fn names_of_upstreams_are_looked_up_by_the_servers_of_the_machine() {
    let files = [("/etc/resolv.conf", "search x\nnameserver 192.0.2.7 # a\n")];
    let import = with_files("a {\n forward . tls://ns.x\n}\n", &files).unwrap();
    assert!(import.toml.contains("bootstrap = [\"192.0.2.7\"]"), "{}", import.toml);
    let told = import.report.iter().any(|line| line.why.contains("has now: 192.0.2.7"));
    assert!(told, "{:?}", import.report);
}

#[test]
fn pages_have_the_addresses_of_the_corefile_and_metrics_the_names_of_coredns() {
    let text = "a {\n file x\n health\n ready 192.0.2.9:8181\n prometheus\n}\nb {\n file y\n \
        health :8081 {\n  lameduck 5s\n }\n reload\n}\n";
    let import = of(text);
    for key in [
        "health = [\"0.0.0.0:8080\", \"[::]:8080\", \"0.0.0.0:8081\", \"[::]:8081\"]  #",
        "ready = [\"192.0.2.9:8181\"]  #",
        "metrics = [\"127.0.0.1:9153\"]  #",
        "address = \"off\"  #",
        "coredns-names = true  #",
        "coredns-zones = [\"a\", \"b\"]  # /etc/Corefile:5",
        "lameduck = \"5s\"  #",
    ] {
        assert!(import.toml.contains(key), "{key}: {}", import.toml);
    }
    assert_eq!(lost(&import), [0; 0]);
    let root_alone = of(". {\n prometheus\n forward . 192.0.2.1\n}\n");
    assert!(!root_alone.toml.contains("coredns-zones"), "{}", root_alone.toml);
    assert!(import.is_followed && !of("a {\n file x\n}\n").is_followed);
    assert_eq!(lost(&of("a {\n file x\n health node.example:80\n}\n")), [3]);
}

#[test]
fn snippets_take_arguments_and_patterns_without_a_file_are_told() {
    let text = "(up) {\n forward . {args[1]} {args[0]}\n}\n{$ZONE} {\n import up 192.0.2.1 \
        192.0.2.2\n import none/*.x\n}\nimport zones/*.c\n";
    let import = with_files(text, &[("/etc/zones/a.c", "a {\n file x\n}\n"), ("/etc/none/y", "")]);
    let import = import.unwrap();
    assert_eq!(zones(&import), ["a \"/etc/x\"", "env.example [\"192.0.2.2\", \"192.0.2.1\"]"]);
    assert!(says(&import, 6, Effect::Needless));
}

#[test]
fn what_is_wrong_is_told_with_file_line_and_column() {
    for (text, expected) in [
        ("a {\n file x", "/etc/Corefile:2:7: expected `}`, found the end of the file"),
        ("a {\n file x\n}\n}\n", "/etc/Corefile:4:1: expected the name of a zone, found `}`"),
        ("a, {\n}\n", "/etc/Corefile:1:4: expected the name of a zone behind the comma, found `{`"),
        ("a {\n log \"x\n}\n", "/etc/Corefile:2:6: the string that begins here does not end"),
        ("a {\n import none\n}\n", "/etc/Corefile:2:9: /etc/none: entity not found"),
        (
            "a {\n import\n}\n",
            "/etc/Corefile:2:2: expected `import` with the path of a file or a \
            snippet, found `import`",
        ),
        (
            "(s) {\n import s\n}\n. {\n import s\n}\n",
            "/etc/Corefile:2:2: imports: at most 1000 can be read",
        ),
        (
            "(s) {\n}\n(s) {\n}\n",
            "/etc/Corefile:3:1: the snippet `s` is given already, at \
            /etc/Corefile:1",
        ),
        (
            "(s) {\n cache {args[0]}\n}\n. {\n import s\n}\n",
            "/etc/Corefile:2:8: expected one of the 0 arguments of the import, found `{args[0]}`",
        ),
        ("x://a {\n}\n", "/etc/Corefile:1:1: expected `dns://`, found `x://a`"),
        (
            "10.0.0.0/33 {\n}\n",
            "/etc/Corefile:1:1: expected a network such as 10.0.0.0/8, found \
            `10.0.0.0/33`",
        ),
        (
            ". {\n kubernetes c {\n  ttl 4000\n }\n}\n",
            "/etc/Corefile:3:7: expected 0 to 3600 \
            seconds, found `4000`",
        ),
        (
            ". {\n a {\n b {\n c {\n d {\n e {\n f {\n g {\n h {\n",
            "/etc/Corefile:9:4: blocks within \
            each other: at most 8 can be read",
        ),
    ] {
        assert_eq!(error(text), expected, "{text}");
    }
}

#[test]
fn a_comment_a_continued_line_and_a_string_are_read_as_they_are_meant() {
    let import = of("# a {\n. { # b\n forward . \\\n  192.0.2.1 # c\n chaos \"v # 1\\\"\"\n}\n");
    assert_eq!(zones(&import), [". [\"192.0.2.1\"]"]);
    assert!(import.toml.contains("version = \"v # 1\\\"\"  # /etc/Corefile:5"), "{}", import.toml);
}

#[test]
fn authors_are_told_if_the_line_names_them() {
    let text = |words: &str| format!(". {{\n chaos {words}\n forward . 192.0.2.1\n}}\n");
    let import = of(&text("v \"Ada L\" Bob"));
    assert!(import.toml.contains("authors = [\"Ada L\", \"Bob\"]  #"), "{}", import.toml);
    assert!(!import.report.iter().any(|line| line.place.line == 2 && line.why.contains("authors")));
    assert!(says(&of(&text("v")), 2, Effect::Differs));
}

#[test]
fn an_alias_of_a_template_is_lost_only_beside_records_behind_the_answer() {
    let text = |more: &str| {
        let answer = "  answer \"{{ .Name }} 60 IN CNAME b.example.\"\n";
        format!(". {{\n template IN A a {{\n{answer}{more} }}\n forward . 192.0.2.1\n}}\n")
    };
    assert_eq!(lost(&of(&text(""))), [0; 0]);
    let import = of(&text("  additional \"b.example. 60 IN A 192.0.2.7\"\n"));
    assert_eq!(lost(&import), [2]);
}

#[test]
fn a_file_of_one_block_needs_no_braces() {
    let import = of(".:5300\nforward . 192.0.2.1\ncache {\n success 9984 60\n}\n");
    assert!(import.toml.contains("address = \"0.0.0.0:5300\""), "{}", import.toml);
    assert!(import.toml.contains("ttl-max = \"60s\""), "{}", import.toml);
}

#[test]
fn templates_and_rules_are_for_the_names_whose_queries_their_block_gets() {
    let text = ". {\n template IN A a.b . {\n  answer \"{{ .Name }} 60 IN A 192.0.2.7\"\n }\n \
        rewrite stop name suffix .x .y\n forward . 192.0.2.1\n}\n\
        c.a.b {\n forward . 192.0.2.1\n}\n";
    let import = of(text);
    assert_eq!(lost(&import), [0_u32; 0]);
    for part in [
        "zones = [\"a.b\"]\nexcept = [\"c.a.b\"]\nqtype = \"A\"",
        "zones = [\".\"]\nexcept = [\"c.a.b\"]\n",
        "[[rewrite]]  # /etc/Corefile:5\nexcept = [\"c.a.b\"]\nsuffix = \".x.\"\nto = \".y.\"\n\
         restore = false\n",
    ] {
        assert!(import.toml.contains(part), "{part} in {}", import.toml);
    }
    let inner = "a.b {\n template ANY ANY {\n  rcode NXDOMAIN\n }\n forward . 192.0.2.1\n}\n";
    let import = of(&format!(". {{\n forward . 192.0.2.1\n}}\n{inner}"));
    assert!(import.toml.contains("zones = [\"a.b\"]\nrcode = \"NXDOMAIN\"\n"), "{}", import.toml);
}

#[test]
fn a_rule_that_leads_into_another_block_is_lost_and_one_that_may_do_so_is_told() {
    let rule = |words: &str| {
        of(&format!("a {{\n rewrite {words}\n forward . 192.0.2.1\n}}\nb {{\n file db\n}}\n"))
    };
    for (words, is_lost, is_told) in [
        ("name exact x.a y.a", false, false),
        ("name exact x.a y.b", true, false),
        ("name exact x.a y.c", true, false),
        ("name suffix .x.a .a answer auto", false, false),
        ("name regex ^(.*)[.]a[.]$ {1}.b", true, false),
        ("name regex ^(.*)[.]a[.]$ x{1}", false, true),
        ("name substring x. y.", false, true),
        ("edns0 local replace 0xffee 0x61", false, false),
        ("cname exact x. y.", true, false),
        ("name regex (?=x) y", true, false),
        ("rcode exact x.a NXDOMAIN BADVERS", true, false),
        ("continue type ANY A", false, false),
    ] {
        let import = rule(words);
        assert_eq!(lost(&import), vec![2; usize::from(is_lost)], "{words}");
        let told = import.report.iter().any(|it| it.why.contains("another server block are"));
        assert_eq!(told, is_told, "{words}");
    }
}

#[test]
fn files_of_a_directory_are_a_directory_or_named_one_by_one() {
    let text = ". {\n auto {\n  directory z (.*)\\.zone {1}\n }\n}\n";
    assert!(of(text).toml.contains("directory = \"/etc/z\""));
    let text = ". {\n auto {\n  directory z\n }\n}\n";
    let import = with_files(text, &[("/etc/z/db.a.b", ""), ("/etc/z/other", "")]).unwrap();
    assert_eq!(zones(&import), ["a.b \"/etc/z/db.a.b\""]);
}

/// Returns what is told of a line.
fn told(import: &Import, line: u32) -> Vec<String> {
    let of_line = import.report.iter().filter(|it| it.place.line == line);
    of_line.map(|it| it.why.clone()).collect()
}

/// Imports a Corefile that has the search path of a file followed.
fn with_search_path(arguments: &str, file: &str) -> Import {
    let text = format!("c.l x.org {{\n kubernetes c.l\n autopath {arguments}\n}}\n");
    with_files(&text, &[("/etc/resolv", file)]).unwrap()
}

#[test]
fn search_paths_beside_names_that_fall_through_are_lost_for_that_reason() {
    let text = "c.l {\n autopath @kubernetes\n kubernetes {\n  fallthrough\n }\n}\n";
    let import = of(text);
    assert_eq!(lost(&import), [2]);
    assert!(
        told(&import, 2)[0].contains("`fallthrough` of /etc/Corefile:3"),
        "{:?}",
        import.report
    );
    let import = of("x.org {\n autopath @kubernetes\n}\n");
    assert!(told(&import, 2)[0].contains("no cluster"), "{:?}", import.report);
}

#[test]
fn a_search_path_of_a_file_is_followed_where_it_is_that_of_pods() {
    let of_pods = "nameserver 192.0.2.7\nsearch Shop.svc.c.l svc.c.l c.l lan x.org\noptions n\n";
    for arguments in ["/etc/resolv", "resolv", "c.l /etc/resolv", ". resolv"] {
        let import = with_search_path(arguments, of_pods);
        assert!(import.toml.contains("autopath = true"), "{arguments}: {}", import.toml);
        let domains = "search-domains = [\"lan\", \"x.org\"]";
        assert!(import.toml.contains(domains), "{arguments}: {}", import.toml);
        assert_eq!(lost(&import), [0; 0], "{arguments}");
        assert!(says(&import, 3, Effect::Differs), "of namespace `shop` alone in CoreDNS");
        assert!(told(&import, 3)[0].contains("shop.svc.c.l alone"), "{:?}", import.report);
    }
    let import = with_search_path("/etc/resolv", "search a.svc.c.l svc.c.l c.l\n");
    assert!(import.toml.contains("search-domains = [\".\"]"), "{}", import.toml);
}

#[test]
fn a_search_path_of_a_file_that_is_not_that_of_pods_is_lost() {
    for file in [
        "search x.org\n",
        "search svc.c.l c.l\n",
        "search shop.svc.c.l\n",
        "search shop.svc.c.l lan svc.c.l c.l\n",
        "domain x.org\n",
        "nameserver 192.0.2.7\n",
        "search shop.svc.c.l svc.c.l c.l\ndomain x.org\n",
    ] {
        let import = with_search_path("/etc/resolv", file);
        assert!(!import.toml.contains("autopath"), "{file}: {}", import.toml);
        assert_eq!(lost(&import), [3], "{file}: {:?}", import.report);
    }
    let of_pods = "search shop.svc.c.l svc.c.l c.l\n";
    for (arguments, file) in [("y.org resolv", of_pods), ("resolv", "search other.org\n")] {
        let import = with_search_path(arguments, file);
        assert!(!import.toml.contains("autopath"), "{arguments}: {}", import.toml);
        assert!(says(&import, 3, Effect::Needless), "no name of the zones ends there");
    }
}

#[test]
fn flags_of_a_header_without_a_selector_are_those_of_replies() {
    let import = of("a {\n file x\n header {\n  set ra aa\n  clear AA\n }\n}\n");
    assert_eq!(lost(&import), [0; 0]);
    for key in ["set-flags = [\"RA\"]", "clear-flags = [\"AA\"]"] {
        assert!(import.toml.contains(key), "{key}: {}", import.toml);
    }
    assert!(says(&import, 4, Effect::Differs), "newer versions of CoreDNS refuse it");
}

#[test]
fn the_first_header_of_a_block_counts_alone() {
    let text = "a {\n file x\n header {\n  response set ra\n }\n header {\n  response set aa\n \
        }\n}\n";
    let import = of(text);
    assert!(import.toml.contains("\"RA\"") && !import.toml.contains("\"AA\""), "{}", import.toml);
    assert!(says(&import, 6, Effect::Needless));
}

#[test]
fn a_header_that_coredns_refuses_is_an_error_with_its_line() {
    for (option, expected) in [
        ("response set", "/etc/Corefile:4:3: expected `aa`, `ra` or `rd`"),
        ("set", "/etc/Corefile:4:3: expected `aa`, `ra` or `rd`"),
        ("response", "/etc/Corefile:4:3: expected `set` or `clear`"),
        ("reply set ra", "/etc/Corefile:4:3: expected `query` or `response`"),
        ("response turn ra", "/etc/Corefile:4:12: expected `set` or `clear`"),
        ("response set qr", "/etc/Corefile:4:16: expected `aa`, `ra` or `rd`"),
        ("query set qr", "/etc/Corefile:4:13: expected `aa`, `ra` or `rd`"),
    ] {
        let told = error(&format!("a {{\n file x\n header {{\n  {option}\n }}\n}}\n"));
        assert!(told.starts_with(expected), "{option}: {told}");
    }
    assert!(error("a {\n file x\n header\n}\n").starts_with("/etc/Corefile:3:2: "));
}

#[test]
fn a_second_forward_is_never_left_out_without_a_word() {
    let unreached = |text: &str, line| {
        let import = of(text);
        assert!(says(&import, line, Effect::Needless), "{text}: {:?}", import.report);
        import
    };
    let same = unreached("a {\n forward . 192.0.2.1\n forward . 192.0.2.2\n}\n", 3);
    assert_eq!(zones(&same), ["a [\"192.0.2.1\"]"]);
    unreached("a {\n forward . 192.0.2.1\n forward a 192.0.2.2\n}\n", 3);
    let wider = of("a {\n forward b.a 192.0.2.1\n forward . 192.0.2.2\n}\n");
    assert_eq!(zones(&wider), ["a [\"192.0.2.2\"]", "b.a [\"192.0.2.1\"]"]);
    let text = "a {\n forward . 192.0.2.1 {\n  except b.a\n }\n forward . 192.0.2.2\n}\n";
    assert_eq!(zones(&of(text)), ["a [\"192.0.2.1\"]", "b.a [\"192.0.2.2\"]"]);
}

#[test]
fn hosts_come_before_a_cluster_where_they_come_before_the_upstreams_around_it() {
    let import = of(". {\n hosts h {\n  fallthrough\n }\n kubernetes c.l 10.0.0.0/8\n \
        forward . 192.0.2.1\n}\n");
    assert_eq!(
        import.toml.matches("hosts-first = true  # /etc/Corefile:2").count(),
        1,
        "{}",
        import.toml
    );
    assert_eq!(lost(&import), [0; 0], "{:?}", import.report);
    for text in [
        ". {\n hosts h c.l {\n  fallthrough\n }\n kubernetes c.l\n forward . 192.0.2.1\n}\n",
        "c.l {\n hosts h {\n  fallthrough\n }\n kubernetes\n}\n",
    ] {
        let import = of(text);
        assert!(!import.toml.contains("hosts-first"), "{}", import.toml);
        assert_eq!(lost(&import), [2], "{:?}", import.report);
    }
}

#[test]
fn expired_answers_are_given_as_serve_stale_says() {
    let stale = |words: &str| {
        let text =
            format!(". {{\n forward . 192.0.2.1\n cache {{\n  serve_stale{words}\n }}\n}}\n");
        with_files(&text, &[])
    };
    for (words, age, after, ttl) in [
        ("", "1h", "0s", "1s"),
        (" 2h", "2h", "0s", "1s"),
        (" 1h immediate", "1h", "0s", "1s"),
        (" 1h immediate 30s", "1h", "0s", "30s"),
        (" 1h verify 500ms 7s", "1h", "500 ms", "7s"),
    ] {
        let toml = stale(words).unwrap().toml;
        let age = if age == "2h" { "7200s" } else { "3600s" };
        for key in [
            format!("stale = \"{age}\""),
            format!("stale-after = \"{after}\""),
            format!("stale-ttl = \"{ttl}\""),
        ] {
            assert!(toml.contains(&key), "{words}: {key}\n{toml}");
        }
    }
    assert!(!stale(" 1h verify").unwrap().toml.contains("stale-after"), "until upstreams fail");
    assert!(says(&stale(" 1h").unwrap(), 4, Effect::Differs), "no TTL of 0");
    assert!(!says(&stale(" 1h immediate 30s").unwrap(), 4, Effect::Differs));
    assert!(says(&stale(" 1h immediate 30s 5s").unwrap(), 4, Effect::Differs));
    for wrong in [" 1h verified", " 1h immediate 1s 1s 1s", " 1h verify soon", " immediate"] {
        assert!(stale(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn answers_are_cached_for_as_long_as_coredns_caches_them_at_least() {
    let mins = |block: &str| {
        let import = of(&format!(". {{\n forward . 192.0.2.1\n cache{block}\n}}\n"));
        let line = |key: &str| {
            let line = import.toml.lines().find(|line| line.starts_with(key));
            line.unwrap().split("  #").next().unwrap().replace(key, "")
        };
        (line("ttl-min = "), line("negative-ttl-min = "))
    };
    let times = |one: &str, two: &str| (format!("\"{one}\""), format!("\"{two}\""));
    assert_eq!(mins(""), times("5s", "5s"));
    assert_eq!(mins(" 3"), times("3s", "3s"));
    assert_eq!(mins(" {\n  success 9984 60 0\n  denial 9984 30 10\n }"), times("0s", "10s"));
}

#[test]
fn options_without_a_counterpart_are_told_by_their_lines_and_never_ignored() {
    let forwarded = |plugin: &str| of(&format!(". {{\n forward . 192.0.2.1\n {plugin}\n}}\n"));
    let import = of(". {\n forward . 192.0.2.1 {\n  read_timeout 3s\n }\n}\n");
    assert!(says(&import, 3, Effect::Differs) && lost(&import).is_empty(), "{:?}", import.report);
    let import = of("a {\n file db {\n  reload_by_mtime\n }\n}\n");
    assert!(says(&import, 3, Effect::Needless), "{:?}", import.report);
    assert_eq!(lost(&forwarded("cache {\n  serve_stale_policy prefer_positive\n }")), [4]);
    let import = forwarded("prometheus {\n  runtime_metrics\n }");
    assert!(says(&import, 4, Effect::Differs) && lost(&import).is_empty(), "{:?}", import.report);
    assert_eq!(lost(&forwarded("prometheus {\n  tls web.yml\n }")), [4]);
    let prefix = |import: Import| told(&import, 3).iter().any(|it| it.contains("localhost.NAME"));
    assert!(prefix(forwarded("local")) && prefix(forwarded("local {\n  localhost_prefix on\n }")));
    assert!(!prefix(forwarded("local {\n  localhost_prefix off\n }")));
    error(". {\n forward . 192.0.2.1\n local {\n  localhost_prefix maybe\n }\n}\n");
    let option = |end: &str| forwarded(&format!("rewrite edns0 local set 65001 0x61{end}"));
    assert!(says(&option(""), 3, Effect::Differs) && !says(&option(" revert"), 3, Effect::Differs));
    assert_eq!(option("").toml.matches("65001 0x61").count(), 1);
    assert_eq!(option(" revert").toml.matches("65001 0x61").count(), 1);
    error(". {\n forward . 192.0.2.1\n rewrite edns0 local set 65001 0x61 more\n}\n");
}
