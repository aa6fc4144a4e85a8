//! Configurations and their imports. Every result must be one that `zonda` loads.
#![allow(clippy::unwrap_used)]

use super::import;
use crate::{Effect, Files, Import, ImportError};
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::Path;
use zonda_config::{Config, Flags};

/// Files that lie nowhere.
struct Memory<'t>(HashMap<&'t Path, &'t str>);

impl Files for Memory<'_> {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        let text = self.0.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(text.as_bytes().to_vec())
    }

    fn list(&mut self, folder: &Path) -> io::Result<Vec<String>> {
        let inside = self.0.keys().filter_map(|path| path.strip_prefix(folder).ok());
        let names = inside.filter_map(|path| path.iter().next()?.to_str());
        let names: BTreeSet<_> = names.map(str::to_owned).collect();
        if names.is_empty() {
            Err(io::ErrorKind::NotFound.into())
        } else {
            Ok(Vec::from_iter(names))
        }
    }
}

/// Imports `named.conf` of these files.
fn imported(files: &[(&str, &str)]) -> Result<Import, ImportError> {
    let files = files.iter().map(|(path, text)| (Path::new(*path), *text)).collect();
    import(Path::new("/etc/bind/named.conf"), &mut Memory(files))
}

/// Imports a configuration of one file; the result is loaded, and returned without comments.
fn toml(text: &str) -> String {
    let import = imported(&[("/etc/bind/named.conf", text)]).unwrap();
    loads(&import.toml);
    let plain = import.toml.lines().filter_map(|line| {
        let line = line.split("  # ").next().unwrap_or_default();
        (!line.starts_with('#') && !line.is_empty()).then_some(line)
    });
    plain.map(|line| format!("{line}\n")).collect()
}

/// Loads a configuration; what is wrong with it fails the test.
fn loads(toml: &str) -> Config {
    let file = std::env::temp_dir().join(format!(
        "zonda-import-{}-{:?}.toml",
        std::process::id(),
        std::thread::current().id()
    ));
    std::fs::write(&file, toml).unwrap();
    let loaded = Config::load(Some(&file), [], &Flags::default());
    std::fs::remove_file(&file).unwrap();
    match loaded {
        Ok(loaded) => loaded.config,
        Err(errors) => {
            let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
            panic!("{toml}\n{}", errors.join("\n"));
        }
    }
}

/// Returns the notes of an import, one a line, without the one that every forwarding configuration
/// gets.
fn left(text: &str) -> Vec<String> {
    let mut left = all_left(text);
    left.retain(|line| !line.contains(": differs: stale-answer-enable: `no` where"));
    left
}

/// Returns what stays behind, a line each.
fn all_left(text: &str) -> Vec<String> {
    let import = imported(&[("/etc/bind/named.conf", text)]).unwrap();
    loads(&import.toml);
    import.report.iter().map(ToString::to_string).collect()
}

/// Fails unless each of these lines is in the text.
fn has(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|found| found == *line), "no {line}\nin\n{text}");
    }
}

#[test]
fn a_configuration_that_only_forwards_is_carried_over_whole() {
    let text = "
options {
    directory \"/var/cache/bind\";
    recursion yes;
    allow-query { any; };
    allow-recursion { any; };
    listen-on port 5300 { any; };
    listen-on-v6 { none; };
    dnssec-validation no;
    forward only;
};
statistics-channels { inet 127.0.0.1 port 8080 allow { 127.0.0.1; }; };
zone \"localhost\" { type master; file \"/etc/bind/db.local\"; };
zone \"internal.example.\" IN { type forward; forwarders { 192.0.2.1; 192.0.2.2 port 54; }; };
zone \".\" { type forward; forwarders port 5353 { 2001:db8::1; 192.0.2.3 port 53; }; };
";
    let expected = r#"version = 1
root = "/etc/bind"
[[listen]]
address = "0.0.0.0:5300"
[[zone]]
name = "localhost"
file = "/etc/bind/db.local"
[[zone]]
name = "internal.example"
access = ["allow any"]
[zone.forward]
to = ["192.0.2.1", "192.0.2.2:54"]
[[zone]]
name = "."
access = ["allow any"]
[zone.forward]
to = ["[2001:db8::1]:5353", "192.0.2.3"]
[special-names]
forward = ["."]
[admin]
bind-statistics = "127.0.0.1:8080"
"#;
    assert_eq!(toml(text), expected);
    let left = left(text);
    assert_eq!(left, ["/etc/bind/named.conf:9: needless: dnssec-validation no: it is always so"]);
}

#[test]
fn each_key_names_the_line_it_comes_from() {
    let main = "include \"named.conf.options\";\nzone a { type primary; file \"a.db\"; };";
    let options = "options {\n directory \"/srv\";\n max-cache-ttl 1h;\n};";
    let files = [("/etc/bind/named.conf", main), ("/etc/bind/named.conf.options", options)];
    let toml = imported(&files).unwrap().toml;
    has(
        &toml,
        &[
            "ttl-max = \"3600s\"  # /etc/bind/named.conf.options:3",
            "name = \"a\"  # /etc/bind/named.conf:2",
            "file = \"/srv/a.db\"  # /etc/bind/named.conf:2",
        ],
    );
}

#[test]
fn files_to_include_can_be_given_by_a_pattern() {
    let zone = |name| format!("zone {name} {{ type primary; file \"{name}\"; }};");
    let [a, b, c] = ["a", "b", "c"].map(zone);
    let files = |main| {
        let files = [
            ("/etc/bind/named.conf", main),
            ("/etc/bind/zones/b.conf", &*b),
            ("/etc/bind/zones/a.conf", &a),
            ("/etc/bind/zones/.hidden.conf", "}"),
            ("/etc/bind/zones/b.conf.old", "}"),
            ("/etc/bind/more/deep/c.conf", &c),
            ("/etc/bind/more/other/d.txt", "}"),
        ];
        imported(&files)
    };
    let import = files("include \"zones/*.conf\"; include \"/etc/bind/m?re/*/[a-c].conf\";");
    let toml = import.unwrap().toml;
    let names: Vec<_> = toml.lines().filter_map(|line| line.strip_prefix("name = ")).collect();
    assert_eq!(
        names,
        [
            "\"a\"  # /etc/bind/zones/a.conf:1",
            "\"b\"  # /etc/bind/zones/b.conf:1",
            "\"c\"  # /etc/bind/more/deep/c.conf:1",
        ]
    );
    assert!(files("include \"more/*/c.conf\";").unwrap().toml.contains("deep/c.conf:1"));
    let error = files("\ninclude \"zones/*.cont\";").unwrap_err().to_string();
    assert_eq!(error, "/etc/bind/named.conf:2:1: /etc/bind/zones/*.cont: entity not found");
}

#[test]
fn forwarders_of_the_options_are_for_all_names_that_no_zone_holds() {
    let all = toml("options { forwarders { 192.0.2.1; }; forward only; };");
    has(&all, &["name = \".\"", "to = [\"192.0.2.1\"]"]);
    let none = toml("options { forwarders { 192.0.2.1; }; recursion no; };");
    assert!(!none.contains("[[zone]]"), "{none}");
    let own = "options { forwarders { 192.0.2.1; }; };
        zone \".\" { type forward; forward only; forwarders { 192.0.2.2; }; };";
    assert!(!toml(own).contains("192.0.2.1\""));
}

#[test]
fn servers_used_over_tls_are_still_used_over_tls() {
    let text = "tls known { remote-hostname \"dns.example.net\"; prefer-server-ciphers yes; };
        tls unknown { };
        zone a { type forward; forward only; forwarders { 192.0.2.1; 192.0.2.2 tls known;
        192.0.2.3 port 54 tls unknown; 2001:db8::1 tls ephemeral; }; };
        zone b { type forward; forward only; forwarders port 8853 tls known { 192.0.2.1; }; };";
    has(
        &toml(text),
        &[
            "    \"tls://192.0.2.2#dns.example.net\",",
            "    \"tls://192.0.2.3:54\",",
            "    \"tls://2001:db8::1\",",
            "to = [\"tls://192.0.2.1:8853#dns.example.net\"]",
        ],
    );
    assert_eq!(left(text).len(), 3);
    let error = imported(&[("/etc/bind/named.conf", "options { forwarders { ::1 tls t; }; };")]);
    let expected = "/etc/bind/named.conf:1:32: there is no tls \"t\"";
    assert_eq!(error.unwrap_err().to_string(), expected);
}

#[test]
fn a_server_that_stands_twice_in_a_list_is_written_once() {
    let text = "zone a { type forward; forward only; forwarders {
        192.0.2.1; 2001:db8::1; 192.0.2.1 port 53;\n2001:DB8:0::1; 192.0.2.1 port 54; }; };";
    has(&toml(text), &["to = [\"192.0.2.1\", \"2001:db8::1\", \"192.0.2.1:54\"]"]);
    let why = "this server stands there already";
    let told = |line, what| format!("/etc/bind/named.conf:{line}: needless: {what}: {why}");
    assert_eq!(left(text), [told(2, "192.0.2.1 port 53"), told(3, "2001:DB8:0::1")]);
}

#[test]
fn access_lists_keep_their_names_and_their_order() {
    let text = "
acl office { 192.0.2.0/24; 10/8; };
acl \"most\" { !10.0.0.1; office; };
options { allow-query { !192.0.2.7; office; most; 2001:db8::/32; }; };
zone a { type primary; file \"a\"; };
zone b { type primary; file \"b\"; allow-query { any; }; };
";
    has(
        &toml(text),
        &[
            "office = [\"allow 192.0.2.0/24 10.0.0.0/8\"]",
            "    \"refuse 192.0.2.7\",",
            "    \"office\",",
            "    \"refuse 10.0.0.1\",",
            "    \"allow 192.0.2.0/24 10.0.0.0/8 2001:db8::/32\",",
            "    \"refuse any\",",
        ],
    );
    assert!(left(text)[0].starts_with("/etc/bind/named.conf:4: differs: most: whom it excludes"));
}

#[test]
fn a_list_that_excludes_at_the_end_of_another_is_the_same_in_rules() {
    let text = "acl most { !10.0.0.1; 10/8; };
        options { allow-query { 192.0.2.1; most; }; };
        zone a { type primary; file \"a\"; };";
    assert!(left(text).is_empty());
    let access =
        "access = [\"allow 192.0.2.1\", \"refuse 10.0.0.1\", \"allow 10.0.0.0/8\", \"refuse any\"]";
    has(&toml(text), &[access]);
}

#[test]
fn keys_of_clients_that_ask_are_left_out_and_admit_no_client() {
    let text = "options { allow-query { key k; }; }; zone a { type primary; file \"a\"; };";
    has(&toml(text), &["access = [\"refuse any\"]"]);
    assert_eq!(
        left(text),
        ["/etc/bind/named.conf:1: lost: key: no rule is made of it; write \"allow key NAME\" \
            into `access`"]
    );
}

#[test]
fn access_to_forwarded_names_follows_the_order_of_named() {
    let rules = |options: &str| {
        let text = format!("options {{ forward only; forwarders {{ 192.0.2.1; }}; {options} }};");
        let toml = toml(&text);
        toml.lines().find(|line| line.starts_with("access")).map(str::to_owned)
    };
    assert_eq!(rules(""), None); // loopback and private networks
    let query = "allow-query { 192.0.2.1; };";
    let cache = "allow-query-cache { 192.0.2.2; };";
    let recursion = "allow-recursion { 192.0.2.3; };";
    for (options, last) in
        [(query.to_owned(), 1), (format!("{query}{cache}"), 2), (format!("{query}{recursion}"), 3)]
    {
        let expected = format!("access = [\"allow 192.0.2.{last}\", \"refuse any\"]");
        assert_eq!(rules(&options), Some(expected));
    }
}

#[test]
fn forwarding_serves_clients_allowed_both_recursion_and_the_cache() {
    let office = "acl office { 10/8; 192.0.2.0/24; };";
    let rules = |recursion: &str, cache: &str| {
        let text = format!(
            "{office} options {{ forward only; forwarders {{ 192.0.2.1; }};
             allow-recursion {{ {recursion} }}; allow-query-cache {{ {cache} }}; }};"
        );
        let told = left(&text).concat();
        assert_eq!(told.is_empty(), recursion == "any;" || recursion == cache, "{told}");
        let toml = toml(&text);
        let access = toml.lines().find_map(|line| line.strip_prefix("access = "));
        access.unwrap().replace('"', "")
    };
    let any = "any;";
    assert_eq!(rules(any, "office;"), "[office, refuse any]");
    assert_eq!(rules("office;", any), "[office, refuse any]");
    assert_eq!(rules("office;", "office;"), "[office, refuse any]");
    assert_eq!(rules(any, any), "[allow any]");
    assert_eq!(rules("office;", "192.0.3.1;"), "[refuse any]");
    assert_eq!(rules("none;", any), "[refuse any]");
    assert_eq!(
        rules("office;", "10.1/16; 192.0.2.7; ::1;"),
        "[allow 10.1.0.0/16, refuse 10.0.0.0/8, allow 192.0.2.7, refuse any]"
    );
    assert_eq!(
        rules("!10.1.2.3; 10.1/16; ::/0;", "!10.1.3/24; office; 2001:db8::/32;"),
        "[refuse 10.1.2.3 10.1.3.0/24, allow 10.1.0.0/16 2001:db8::/32, refuse any]"
    );
}

#[test]
fn names_that_are_not_to_be_forwarded_are_excepted_from_all_zones_around_them() {
    let text = "options { forward only; forwarders { 192.0.2.1; }; };
        zone corp.example { type forward; forward only; forwarders { 192.0.2.2; }; };
        zone Home.corp.example { type forward; forwarders { }; };
        zone other.example { type forward; };";
    has(
        &toml(text),
        &[
            "except = [\"home.corp.example\"]",
            "except = [\"home.corp.example\", \"other.example\"]",
        ],
    );
    assert_eq!(left(text).len(), 2);
    let none =
        "options { forwarders { 192.0.2.1; }; }; zone \".\" { type forward; forwarders { }; };";
    assert!(!toml(none).contains("192.0.2.1"));
}

#[test]
fn names_of_zones_that_are_lost_are_not_forwarded() {
    for zone in [
        "type secondary; file \"s\";",
        "type secondary; primaries { 192.0.2.9 tls ephemeral; };",
        "type mirror;",
        "type stub; primaries { 192.0.2.9; };",
        "type static-stub; server-names { ns.example; };",
        "type primary;",
        "type primary; file \"raw.db\"; masterfile-format raw;",
        "in-view other;",
    ] {
        let text = format!(
            "options {{ forward only; forwarders {{ 192.0.2.1; }}; }};
             zone Corp.example {{ {zone} }};
             zone hq.corp.example {{ type forward; forward only; forwarders {{ 192.0.2.2; }}; }};"
        );
        has(&toml(&text), &["except = [\"corp.example\"]"]);
        let left = left(&text);
        let told = "its names are refused, and not forwarded";
        assert!(left.iter().any(|line| line.contains("lost: zone Corp.example: ")), "{left:?}");
        assert!(left.iter().any(|line| line.ends_with(told)), "{left:?}");
    }
    // All names are forwarded to the servers of the options.
    let text = "options { forward only; forwarders { 192.0.2.1; }; }; zone \".\" { type mirror; };";
    assert!(!toml(text).contains("except"));
    assert!(left(text).iter().all(|line| line.ends_with("copy its file, and serve that")));
    // Types for names that another server holds.
    let text = "options { forward only; forwarders { 192.0.2.1; }; };
        zone com { type delegation-only; }; zone \".\" { type hint; file \"h\"; };";
    assert!(!toml(text).contains("except"));
}

#[test]
fn names_of_zones_in_views_that_are_lost_are_not_forwarded() {
    let zone = |name: &str, kind: &str| format!("zone {name} IN {{ type {kind}; }};");
    let text = format!(
        "options {{ forward only; forwarders {{ 192.0.2.1; }}; }};
         view v in {{ {} {} {} }}; view w {{ {} {} }};",
        zone("a.example", "primary"),
        zone("\".\"", "hint"),
        zone("com", "delegation-only"),
        zone("A.example", "primary"),
        zone("b.example", "forward"),
    );
    has(&toml(&text), &["except = [\"a.example\", \"b.example\"]"]);
    assert!(left(&text).iter().all(|line| line.ends_with("refused here, and not forwarded")));
}

#[test]
fn forwarders_below_delegations_of_a_primary_zone_are_reported() {
    let zone = |servers| {
        format!("zone a.example {{ type primary; file \"a\"; forwarders {{ {servers} }}; }};")
    };
    let told = left(&zone("192.0.2.1;")).join("\n");
    assert!(told.contains("differs: forwarders") && told.contains("get referrals"), "{told}");
    assert_eq!(left(&zone("")), [""; 0], "nobody is asked there either");
}

/// Options that have a key, or are reported.
const OPTIONS: &str = "
options {
    max-cache-size 512m;
    max-cache-ttl 86400;
    max-ncache-ttl 2d;
    min-ncache-ttl 30;
    servfail-ttl 5;
    stale-answer-enable yes;
    max-stale-ttl 12h;
    stale-answer-ttl 1m;
    prefetch 0;
    recursive-clients 2000;
    max-clients-per-query 200;
    edns-udp-size 1220;
    stale-answer-client-timeout 500;
    resolver-query-timeout 8;
    max-udp-size 1400;
    tcp-clients 500;
    tcp-idle-timeout 300;
    answer-cookie no;
    cookie-secret \"00112233445566778899aabbccddeeff\";
    version \"none of \\\"yours\\\"\";
    server-id \"ns1\";
    rrset-order { order cyclic; };
    rate-limit { responses-per-second 20; slip 3; window 5; exempt-clients { 10/8; }; };
    blackhole { 203.0.113.0/24; };
    querylog yes;
    forward only; forwarders { 192.0.2.1; };
};
logging {
    channel q { file \"/var/log/q.log\" versions 3; severity info; };
    category queries { q; };
};
";

#[test]
fn options_become_keys_within_their_range() {
    has(
        &toml(OPTIONS),
        &[
            "access = [\"drop 203.0.113.0/24\", \"allow any\"]",
            "bytes = \"536870912 B\"",
            "ttl-max = \"86400s\"",
            "negative-ttl-max = \"86400s\"",
            "negative-ttl-min = \"30s\"",
            "failure-ttl-max = \"5s\"",
            "stale = \"43200s\"",
            "stale-ttl = \"60s\"",
            "prefetch = \"0 %\"",
            "waiting-max = 2000",
            "waiting-per-answer-max = 200",
            "buffer-size = 1220",
            "stale-after = \"500 ms\"",
            "timeout = \"8000 ms\"",
            "buffer-size = 1400",
            "connections-max = 500",
            "idle-timeout = \"30s\"",
            "cookies = false",
            "cookie-secrets = [\"00112233445566778899aabbccddeeff\"]",
            "version = \"none of \\\"yours\\\"\"",
            "server-id = \"ns1\"",
            "nsid = \"ns1\"",
            "rotate = true",
            "responses-per-second = 20",
            "exempt = [\"10.0.0.0/8\"]",
            "output = \"/var/log/q.log\"",
        ],
    );
    assert_eq!(
        left(OPTIONS),
        [
            "/etc/bind/named.conf:5: differs: max-ncache-ttl 2d: Zonda takes 1 to 86400",
            "/etc/bind/named.conf:31: differs: file /var/log/q.log versions 3: the file grows \
             until somebody moves it away, such as logrotate, and sends SIGHUP",
            "/etc/bind/named.conf:31: needless: severity info: each query is logged",
        ]
    );
}

#[test]
fn differences_of_the_query_log_are_reported_with_its_destination() {
    let channels = "channel plain { file \"q.log\"; };
        channel sized { file \"big.log\" versions 3 size 20m; print-time yes; severity notice; };
        channel system { syslog daemon; buffered no; }; channel screen { stderr; };
        channel drop { null; };";
    let log = |names: &str, querylog: &str| {
        let text = format!(
            "options {{ {querylog} }}; logging {{ {channels} category queries {{ {names} }}; }};"
        );
        let toml = toml(&text);
        let output = toml.lines().find_map(|line| line.strip_prefix("output = "));
        let told = left(&text).into_iter().map(|line| line.split(": ").nth(2).unwrap().to_owned());
        (output.map(|output| output.replace('"', "")), told.collect::<Vec<_>>().join(", "))
    };
    for (names, output, told) in [
        ("plain;", "/etc/bind/q.log", ""),
        ("sized;", "/etc/bind/big.log", "file big.log versions 3, print-time yes, severity notice"),
        ("system;", "stdout", "syslog daemon, buffered no"),
        ("system; plain;", "/etc/bind/q.log", "system"),
        ("null; plain; drop;", "/etc/bind/q.log", ""),
        ("screen;", "stdout", ""),
        ("default_stderr;", "stdout", ""),
        ("default_syslog;", "stdout", "default_syslog"),
        ("drop;", "off", ""),
        ("null;", "off", ""),
    ] {
        assert_eq!(log(names, ""), (Some(output.to_owned()), told.to_owned()), "{names}");
        assert_eq!(log(names, "querylog no;"), (None, String::new()), "{names}");
    }
}

#[test]
fn a_least_time_above_the_greatest_is_lowered_and_no_limit_is_the_highest() {
    let text = "options { forward only; forwarders { 192.0.2.1; };
        min-cache-ttl 60; max-cache-ttl 30; max-clients-per-query 0; prefetch 2 9; };";
    let expected = ["ttl-max = \"30s\"", "ttl-min = \"30s\"", "waiting-per-answer-max = 16384"];
    has(&toml(text), &expected);
    let left = left(text);
    assert_eq!(left[0], "/etc/bind/named.conf:2: differs: min-cache-ttl 60: Zonda takes 0 to 30");
    assert!(left[1].contains("differs: prefetch 2 9: "), "{left:?}");
    assert_eq!(left.len(), 2);
}

#[test]
fn no_more_may_wait_for_one_answer_than_altogether() {
    let limits = |limits: &str| {
        let text = format!("options {{ {limits} }};");
        let toml = toml(&text);
        let found = toml.lines().find_map(|line| line.strip_prefix("waiting-per-answer-max = "));
        (found.unwrap_or_default().to_owned(), left(&text).len())
    };
    assert_eq!(limits("recursive-clients 50; max-clients-per-query 0;"), ("50".to_owned(), 0));
    assert_eq!(limits("recursive-clients 50; max-clients-per-query 60;"), ("50".to_owned(), 1));
    assert_eq!(limits("recursive-clients 50;"), (String::new(), 0));
    assert_eq!(limits("max-clients-per-query 20000;"), ("16384".to_owned(), 1));
    let most = limits("recursive-clients 200000; max-clients-per-query 0;");
    assert_eq!(most, ("100000".to_owned(), 0));
    let usual = loads("version = 1\n").forwarding.waiting_max;
    assert_eq!(super::options::WAITING_DEFAULT, u64::from(usual));
}

#[test]
fn serving_stale_answers_is_reported_unless_named_did_too() {
    let told = |options: &str| {
        let text = format!("options {{\nforward only; forwarders {{ 192.0.2.1; }}; {options} }};");
        all_left(&text).into_iter().any(|line| {
            let start = "/etc/bind/named.conf:2: differs: stale-answer-enable: `no` where it is";
            line.starts_with(start)
        })
    };
    assert!(told(""));
    assert!(told("max-stale-ttl 1h;"));
    assert!(!told("stale-answer-enable yes;"));
    assert!(!told("stale-answer-enable no;"));
    assert!(!told("recursion no;"));
}

#[test]
fn the_certificates_of_a_zones_servers_must_lead_to_one_file_if_they_did() {
    let ca = concat!(env!("CARGO_MANIFEST_DIR"), "/../config/tests/errors/ca.pem");
    let zone = |servers: &str| {
        format!(
            "tls t {{ ca-file \"{ca}\"; }}; tls u {{ ca-file \"{ca}\"; remote-hostname \"a.b\"; }};
             tls other {{ ca-file \"other.pem\"; }};
             zone a {{ type forward; forward only; forwarders {{ {servers} }}; }};"
        )
    };
    let one = zone("192.0.2.1 tls t; 192.0.2.2 tls u; 192.0.2.3;");
    let to = "to = [\"tls://192.0.2.1\", \"tls://192.0.2.2#a.b\", \"192.0.2.3\"]";
    has(&toml(&one), &[to, &format!("ca-file = \"{ca}\"")]);
    assert_eq!(left(&one), [""; 0]);
    for several in ["192.0.2.1 tls t; 192.0.2.2 tls ephemeral;", "::2 tls t; ::3 tls other;"] {
        let several = zone(several);
        assert!(!toml(&several).contains("ca-file"));
        assert!(left(&several).iter().any(|line| line.contains("lost: ca-file ")), "{several}");
    }
    let none = zone("192.0.2.3;");
    assert!(!toml(&none).contains("ca-file") && left(&none).is_empty());
}

#[test]
fn a_zone_in_another_format_is_dropped_wherever_the_format_is_set() {
    let zones = "zone a { type primary; file \"a\"; };
        zone b { type primary; file \"b\"; masterfile-format text; };
        zone c { type primary; masterfile-format raw; file \"c\"; };";
    let lost = |options: &str| {
        let text = format!("options {{ {options} }}; {zones}");
        let names = toml(&text).matches("name = ").count();
        let left = left(&text);
        assert!(left.iter().all(|line| line.contains("use named-compilezone")), "{left:?}");
        assert_eq!(left.len() + names, 3);
        names
    };
    assert_eq!(lost(""), 2);
    assert_eq!(lost("masterfile-format text;"), 2);
    assert_eq!(lost("masterfile-format raw;"), 1);
}

#[test]
fn the_other_name_of_the_only_view_in_statistics_is_reported() {
    let statistics = "statistics-channels { inet 127.0.0.1; };";
    let view = |name: &str| format!("view {name} {{ zone a {{ type primary; file \"a\"; }}; }};");
    let told = "/etc/bind/named.conf:1: differs: view office: its statistics are those of the view \
                `_default`";
    assert_eq!(left(&format!("{} {statistics}", view("office"))), [told]);
    assert!(left(&view("office")).is_empty());
    assert!(left(&format!("{} {statistics}", view("_default"))).is_empty());
}

#[test]
fn a_limit_of_queries_for_each_server_is_not_called_needless() {
    let text = "options { fetches-per-server 200 drop; };";
    let told =
        ": differs: fetches-per-server 200 drop: `outstanding-max` in [zone.forward] is such a";
    assert!(left(text)[0].ends_with(&format!("{told} limit")), "{:?}", left(text));
    assert!(left("options { fetches-per-server 0; };")[0].contains(": needless: "));
}

#[test]
fn what_has_no_counterpart_is_listed_by_line() {
    let text = "
options { pid-file \"/run/named.pid\"; dnssec-validation auto; frobnicate yes; };
controls { inet 127.0.0.1 allow { localhost; } keys { rndc-key; }; };
zone \".\" { type hint; file \"/usr/share/dns/root.hints\"; };
zone s { type slave; masters { 192.0.2.1; }; file \"s\"; };
zone d { type primary; file \"d\"; dnssec-policy default; allow-update { any; }; };
zone f { type forward; forwarders { }; };
response-policy { };
";
    let import = imported(&[("/etc/bind/named.conf", text)]).unwrap();
    let left: Vec<_> =
        import.report.iter().map(|it| (it.place.line, it.effect, &*it.what)).collect();
    assert_eq!(
        left,
        [
            (2, Effect::Needless, "pid-file /run/named.pid"),
            (2, Effect::Differs, "dnssec-validation auto"),
            (2, Effect::Lost, "frobnicate yes"),
            (3, Effect::Needless, "controls"),
            (4, Effect::Differs, "zone ."),
            (5, Effect::Needless, "file s"),
            (6, Effect::Lost, "dnssec-policy default"),
            (7, Effect::Lost, "zone f"),
            (8, Effect::Lost, "response-policy"),
        ]
    );
}

#[test]
fn special_names_are_answered_where_named_answers_them() {
    let forwarded = |text: &str| {
        let toml = toml(text);
        let mut lines = toml.lines().skip_while(|line| *line != "[special-names]").skip(1);
        lines.next().map(str::to_owned)
    };
    let all = Some("forward = [\".\"]".to_owned());
    let servers = "forwarders { 192.0.2.1; };";
    assert_eq!(forwarded(&format!("options {{ {servers} }};")), None);
    assert_eq!(forwarded(&format!("options {{ {servers} forward only; }};")), all);
    let zone = format!("zone \".\" {{ type forward; forward only; {servers} }};");
    assert_eq!(forwarded(&zone), all);
    let none = "empty-zones-enable no;";
    assert_eq!(forwarded(&format!("options {{ {servers} {none} forward only; }};")), all);
    assert_eq!(forwarded(&format!("options {{ {servers} {none} }};")), all);
    let some = "disable-empty-zone \"10.IN-ADDR.ARPA\"; disable-empty-zone d.f.ip6.arpa.;";
    assert_eq!(
        forwarded(&format!("options {{ {servers} {some} }};")).unwrap(),
        "forward = [\"10.in-addr.arpa\", \"d.f.ip6.arpa\"]"
    );
}

#[test]
fn private_addresses_are_kept_away_where_named_does_so() {
    let text = "options { forwarders { 192.0.2.1; }; forward only;
        deny-answer-addresses { 10/8; } except-from { \"example.net\"; }; };";
    has(&toml(text), &["rebinding-protection = true", "private-names = [\"example.net\"]"]);
    assert!(left(text)[0].contains("differs: deny-answer-addresses: loopback"));
}

#[test]
fn a_single_view_counts_as_none_and_several_are_lost() {
    let one = "options { recursion no; };
        view v { match-clients { any; }; recursion yes; forward only; forwarders { 192.0.2.1; };
        zone a { type primary; file \"a\"; }; };";
    has(&toml(one), &["name = \"a\"", "name = \".\""]);
    let two = "view v { zone a { type primary; file \"a\"; }; }; view w { };";
    assert!(!toml(two).contains("[[zone]]"));
    assert_eq!(left(two).len(), 2);
}

#[test]
fn the_zones_of_a_view_are_for_its_clients_only() {
    let view = |conditions: &str| {
        format!("view v {{ {conditions} zone a {{ type primary; file \"a\"; }}; }};")
    };
    let limited = view("match-clients { 10/8; };");
    has(&toml(&limited), &["name = \"a\"", "access = [\"allow 10.0.0.0/8\", \"refuse any\"]"]);
    assert!(left(&limited).is_empty(), "{:?}", left(&limited));
    let listeners = toml(&limited).matches("address = ").count();
    assert_eq!(toml(&limited).matches("\"refuse any\"").count(), listeners);
    let dropped = format!("options {{ blackhole {{ 10.1/16; }}; }}; {limited}");
    let both = "access = [\"drop 10.1.0.0/16\", \"allow 10.0.0.0/8\", \"refuse any\"]";
    has(&toml(&dropped), &[both]);
    let none = view("match-clients { key office; };");
    has(&toml(&none), &["access = [\"refuse any\"]"]);
    for (condition, said) in [
        ("match-destinations { 192.0.2.1; };", "lost: match-destinations: run a server of its own"),
        ("match-recursive-only yes;", "lost: match-recursive-only yes: zones are served"),
    ] {
        let limited = view(condition);
        assert!(!toml(&limited).contains("[[zone]]"), "{condition}");
        let left = left(&limited);
        assert!(left.iter().any(|line| line.contains(said)), "{left:?}");
    }
    let unlimited = view("match-destinations { any; }; match-recursive-only no;");
    has(&toml(&unlimited), &["name = \"a\""]);
    assert!(!toml(&unlimited).contains("access"));
}

#[test]
fn listeners_are_addresses_and_a_wildcard_has_the_others() {
    let text = "options { port 54; listen-on { 192.0.2.1; 127.0.0.1; };
        listen-on port 53 { any; 192.0.2.1; }; listen-on-v6 { ::1; }; };";
    let toml = toml(text);
    let found: Vec<_> = toml.lines().filter(|line| line.starts_with("address")).collect();
    assert_eq!(
        found,
        [
            "address = \"192.0.2.1:54\"",
            "address = \"127.0.0.1:54\"",
            "address = \"0.0.0.0:53\"",
            "address = \"[::1]:54\"",
        ]
    );
    let lost = left("options { listen-on { 10/8; }; };");
    assert!(lost[0].contains("lost: 10/8: [[listen]] needs the address itself"), "{lost:?}");
}

#[test]
fn errors_name_file_line_and_what_was_expected() {
    for (text, said) in [
        (
            "options {\n recursion yes\n listen-on { any; };\n};",
            "3:2: expected `;`, found `listen-on`",
        ),
        ("options { recursion perhaps; };", "1:21: expected `yes` or `no`, found `perhaps`"),
        ("options {", "1:10: expected `}`, found the end of the file"),
        ("zone a { type primary; file \"a\" }", "1:33: expected `;`, found `}`"),
        ("};", "1:1: expected a statement, found `}`"),
        ("options { directory; };", "1:20: expected a directory, found `;`"),
        ("# x\nacl a { \"b;\n};", "2:9: the string that begins here does not end"),
        ("options { allow-query { office; }; };", "1:25: there is no acl \"office\""),
        (
            "options { allow-query { 10.0.0.1/8; }; };",
            "1:25: expected an address, or a network with no bits behind its prefix, \
             found `10.0.0.1/8`",
        ),
        (
            "acl a { b; }; acl b { a; }; options { allow-query { a; }; };",
            "1:23: access lists within each other (does one hold itself?): at most 32 can be read",
        ),
        (
            "zone a { type primery; };",
            "1:15: expected the type of a zone, such as `primary` or \
            `forward`, found `primery`",
        ),
        ("zone a..b { type primary; };", "1:6: expected the name of a zone, found `a..b`"),
        (
            "options { forwarders { dns.example; }; };",
            "1:24: expected the address of a server, found `dns.example`",
        ),
        (
            "zone a { type primary; file \"a\"; };\nzone A. { type primary; file \"a\"; };",
            "2:1: the zone a is given already, at /etc/bind/named.conf:1",
        ),
        ("include \"gone\";", "1:1: /etc/bind/gone: entity not found"),
        (
            "include \"named.conf\";",
            "1:1: blocks and files within each other: at most 64 can be read",
        ),
    ] {
        let error = imported(&[("/etc/bind/named.conf", text)]).unwrap_err();
        assert_eq!(error.to_string(), format!("/etc/bind/named.conf:{said}"), "{text}");
    }
}

#[test]
fn lists_that_grow_with_each_name_are_not_followed_for_ever() {
    let mut text = "acl a0 { 10/8; 11/8; };\n".to_owned();
    for number in 1..30 {
        let before = number - 1;
        text += &format!("acl a{number} {{ a{before}; !a{before}; a{before}; }};\n");
    }
    text += "options { allow-query { a29; }; }; zone a { type primary; file \"a\"; };";
    let error = imported(&[("/etc/bind/named.conf", &text)]).unwrap_err();
    assert!(error.to_string().ends_with("rules of an access list: at most 65536 can be read"));
}

#[test]
fn deep_blocks_are_refused_and_not_followed() {
    let text = "a ".to_owned() + &"{".repeat(100_000);
    let error = imported(&[("/etc/bind/named.conf", &text)]).unwrap_err();
    assert!(error.to_string().contains("blocks and files within each other"), "{error}");
}

#[test]
fn keys_transfers_and_primaries_are_carried_over() {
    let text = "
key Transfer.Example { algorithm HMAC-SHA256; secret \"c2VjcmV0\"; };
key rndc-key { algorithm hmac-sha256; secret \"eHh4\"; };
acl office { 192.0.2.0/24; 10.0.0.1; };
remote-servers hidden port 5353 { 198.51.100.1 key transfer.example; 2001:db8::1 port 53; };
options { allow-transfer { office; }; notify explicit; };
zone a.example {
    type primary; file \"a\";
    allow-transfer { key transfer.example; 192.0.2.7; };
    also-notify port 54 { 192.0.2.7; 192.0.2.8 port 53; };
};
zone b.example { type primary; file \"b\"; };
zone c.example {
    type secondary; file \"c\"; allow-transfer { any; };
    primaries { hidden; 203.0.113.1; };
    allow-notify { 203.0.113.9; }; max-refresh-time 1d;
    allow-update-forwarding { key transfer.example; 192.0.2.0/24; };
};
";
    let expected = r#"version = 1
root = "/etc/bind"
[[key]]
name = "transfer.example"
algorithm = "hmac-sha256"
secret = "c2VjcmV0"
[[zone]]
name = "a.example"
file = "/etc/bind/a"
transfer = { to = ["key transfer.example", "192.0.2.7"], notify = ["192.0.2.7:54", "192.0.2.8"] }
[[zone]]
name = "b.example"
file = "/etc/bind/b"
transfer = { to = ["192.0.2.0/24", "10.0.0.1"] }
[[zone]]
name = "c.example"
transfer = { to = ["0.0.0.0/0", "::/0"] }
[zone.secondary]
from = ["198.51.100.1:5353 key transfer.example", "2001:db8::1", "203.0.113.1"]
notify-from = ["203.0.113.9"]
update-from = ["key transfer.example", "192.0.2.0/24"]
refresh-max = "86400s"
"#;
    let zones = toml(text);
    assert_eq!(
        &zones[zones.find("[[key]]").unwrap()..],
        &expected[expected.find("[[key]]").unwrap()..]
    );
    let left = left(text);
    let told = ":3: needless: key rndc-key: no transfer is signed with it";
    assert!(left.iter().any(|line| line.contains(told)), "{left:?}");
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of statements and what becomes of each")]
fn rights_to_change_zones_are_carried_over() {
    let keys = "key k { algorithm hmac-sha256; secret \"c2VjcmV0\"; };
        key old { algorithm hmac-md5; secret \"eHh4\"; };";
    let zone =
        |clauses: &str| format!("{keys} zone z.example {{ type primary; file \"z\"; {clauses} }};");
    let right = |from: &str, more: &str| format!("{{ from = [{from}], names = {more} }}");
    let k = |more: &str| right("\"key k\"", more);
    let named = "types = [\"SOA\", \"NS\", \"DS\", \"DNAME\", \"DNSKEY\", \"CDS\", \
        \"CDNSKEY\", \"NSEC3PARAM\"]";
    let all =
        |from: &str| vec![right(from, "\"zone\""), right(from, &format!("\"zone\", {named}"))];
    let two = "records-per-type = 2";
    for (clauses, expected, told) in [
        ("allow-update { none; };", vec![], "needless: allow-update: it is always so"),
        ("allow-update { key k; 192.0.2.1; };", all("\"key k\", \"192.0.2.1\""), ""),
        ("allow-update { !192.0.2.66; key k; };", vec![], "differs: allow-update: clients that"),
        ("allow-update { !any; key k; };", vec![], "needless: allow-update: behind `none`"),
        (
            "update-policy { grant k zonesub PTR(2) ANY; };",
            vec![
                k(&format!("\"zone\", types = [\"PTR\"], {two}")),
                k(&format!("\"zone\", {named}")),
            ],
            ": rights add up",
        ),
        (
            "update-policy { grant k zonesub A(2); grant k name a.z.example A; };",
            vec![k(&format!("\"zone\", types = [\"A\"], {two}"))],
            ": rights add up",
        ),
        (
            "update-policy { grant k name a.z.example A(2); grant k name b.z.example A; };",
            vec![
                k(&format!("\"name a.z.example\", types = [\"A\"], {two}")),
                k("\"name b.z.example\", types = [\"A\"]"),
            ],
            "",
        ),
        (
            "update-policy { grant k zonesub ANY(2); };",
            vec![k(&format!("\"zone\", {two}")), k(&format!("\"zone\", {named}, {two}"))],
            "",
        ),
        (
            "update-policy { grant k zonesub A(0) TXT; };",
            vec![k("\"zone\", types = [\"TXT\"]")],
            ": a number is from 1",
        ),
        ("allow-update { key old; };", vec![], "lost: key old"),
        ("update-policy local;", vec![], "lost: update-policy local: named makes a key"),
        ("update-policy { grant k zonesub ANY; };", all("\"key k\""), ""),
        (
            "update-policy { grant k zonesub; };",
            vec![k("\"zone\"")],
            "differs: grant k zonesub: no types",
        ),
        (
            "update-policy { grant k subdomain dyn.Z.example. A AAAA; };",
            vec![k("\"subdomain dyn.z.example\", types = [\"A\", \"AAAA\"]")],
            "",
        ),
        (
            "update-policy { grant k subdomain example. TXT; };",
            vec![k("\"zone\", types = [\"TXT\"]")],
            "",
        ),
        (
            "update-policy { grant k name www.z.example A(2) TXT; };",
            vec![
                k("\"name www.z.example\", types = [\"A\"], records-per-type = 2"),
                k("\"name www.z.example\", types = [\"TXT\"]"),
            ],
            "",
        ),
        (
            "update-policy { grant k wildcard *.z.example A; };",
            vec![k("\"wildcard *.z.example\", types = [\"A\"]")],
            "",
        ),
        ("update-policy { grant k self k A; };", vec![k("\"self\", types = [\"A\"]")], ""),
        ("update-policy { grant k selfsub k A; };", vec![k("\"subdomain\", types = [\"A\"]")], ""),
        ("update-policy { grant k selfwild k A; };", vec![k("\"wildcard\", types = [\"A\"]")], ""),
        (
            "update-policy { grant * self * A; };",
            vec![],
            "lost: grant * self *: a right is for keys",
        ),
        (
            "update-policy { grant k tcp-self . PTR; };",
            vec![],
            "lost: grant k tcp-self .: there are no",
        ),
        (
            "update-policy { grant k name www.other A; };",
            vec![],
            "lost: grant k name www.other: the name",
        ),
        (
            "update-policy { grant k zonesub RRSIG; };",
            vec![],
            "lost: grant k zonesub RRSIG: no client",
        ),
        (
            "update-policy { grant k zonesub A; deny k zonesub TXT; grant k zonesub TXT; };",
            vec![k("\"zone\", types = [\"A\"]")],
            "lost: deny k zonesub TXT: nothing is denied",
        ),
    ] {
        let text = zone(clauses);
        let found = toml(&text);
        let found = found.lines().find(|line| line.starts_with("update"));
        let expected =
            (!expected.is_empty()).then(|| format!("update = [{}]", expected.join(", ")));
        assert_eq!(found, expected.as_deref(), "{clauses}");
        let left = left(&text);
        let is_told = left.iter().any(|line| line.contains(told)) || told.is_empty();
        assert!(is_told, "{clauses}\n{left:?}");
    }
    let text = "options { allow-update { 192.0.2.1; }; };
        zone z { type primary; file \"z\"; }; zone f { type forward; forwarders { 192.0.2.2; }; };";
    assert_eq!(toml(text).matches("update = ").count(), 1);
}

#[test]
fn what_transfers_cannot_say_is_listed() {
    let zone = |clauses: &str| format!("zone z {{ type primary; file \"z\"; {clauses} }};");
    for (clauses, written, told) in [
        ("allow-transfer { none; };", None, "needless: allow-transfer: it is always so"),
        (
            "allow-transfer { 192.0.2.1; !192.0.2.2; any; };",
            Some("transfer = { to = [\"192.0.2.1\"] }"),
            "differs: allow-transfer: clients that are excluded",
        ),
        (
            "allow-transfer { none; key k; };",
            None,
            "needless: allow-transfer: behind `none` no client",
        ),
        (
            "allow-transfer { !10.0.0.5; key k; };",
            None,
            "differs: allow-transfer: clients that are excluded cannot be said here: no address \
             and no key that follows",
        ),
        (
            "allow-transfer { !{ !10.0.0.0/8; !192.0.2.1; any; }; key k; };",
            Some("transfer = { to = [\"10.0.0.0/8 key k\", \"192.0.2.1 key k\"] }"),
            "",
        ),
        (
            "allow-transfer { !{ !10.0.0.0/8; any; }; 10.1.0.0/16; 192.0.2.1; key k; };",
            Some("transfer = { to = [\"10.1.0.0/16\", \"10.0.0.0/8 key k\"] }"),
            "",
        ),
        (
            "allow-transfer { !{ !10.0.0.0/8; any; }; any; key k; };",
            Some("transfer = { to = [\"10.0.0.0/8\"] }"),
            "",
        ),
        ("also-notify { 192.0.2.1; };", None, "lost: also-notify: no client may transfer the zone"),
        (
            "allow-transfer { 192.0.2.1; }; also-notify { 192.0.2.1; };",
            Some("transfer = { to = [\"192.0.2.1\"], notify = [\"192.0.2.1\"] }"),
            "differs: also-notify: the servers of the zone's NS records are not notified",
        ),
        ("notify yes;", None, "differs: notify yes: only the servers that"),
        (
            "allow-transfer { any; }; also-notify { 192.0.2.1; }; notify no;",
            Some("transfer = { to = [\"0.0.0.0/0\", \"::/0\"] }"),
            "",
        ),
        (
            "also-notify { 192.0.2.1 tls ephemeral; };",
            None,
            "lost: 192.0.2.1 tls ephemeral: zones are transferred over TCP",
        ),
    ] {
        let text =
            format!("key k {{ algorithm hmac-sha256; secret \"eHh4\"; }}; {}", zone(clauses));
        let found = toml(&text);
        let found = found.lines().find(|line| line.starts_with("transfer"));
        assert_eq!(found, written, "{clauses}");
        let left = left(&text);
        let is_told = left.iter().any(|line| line.contains(told)) || told.is_empty();
        assert!(is_told, "{clauses}\n{left:?}");
    }
    let md5 = "key old { algorithm hmac-md5; secret \"eHh4\"; };";
    let text = format!("{md5} {}", zone("allow-transfer { key old; };"));
    assert!(!toml(&text).contains("transfer"), "{}", toml(&text));
    let left = left(&text);
    assert!(left.iter().any(|it| it.contains("lost: key old: keys are for hmac-")), "{left:?}");
}

#[test]
fn a_transfer_by_an_unknown_key_is_an_error() {
    let text = "zone z { type primary; file \"z\"; allow-transfer { key none.example; }; };";
    let error = imported(&[("/etc/bind/named.conf", text)]).unwrap_err().to_string();
    assert!(error.ends_with(":1:55: there is no key \"none.example\""), "{error}");
    let text = "primaries a { b; }; primaries b { a; };
        zone z { type secondary; primaries { a; }; };";
    let error = imported(&[("/etc/bind/named.conf", text)]).unwrap_err().to_string();
    assert!(error.contains("lists of servers within each other"), "{error}");
}

#[test]
fn keys_of_algorithms_that_the_configuration_refuses_are_left() {
    for (algorithm, is_kept) in [
        ("hmac-sha1", true),
        ("hmac-sha224", true),
        ("HMAC-SHA256", true),
        ("hmac-sha256-128", false),
        ("hmac-sha512", true),
        ("hmac-md5", false),
    ] {
        let text = format!(
            "key k {{ algorithm {algorithm}; secret \"eHh4\"; }};
            zone z {{ type primary; file \"z\"; allow-transfer {{ key k; }}; }};"
        );
        assert_eq!(toml(&text).contains("transfer = "), is_kept, "{algorithm}");
    }
}

#[test]
fn least_times_stay_below_the_greatest_and_what_is_cut_is_told() {
    for (clauses, written, told) in [
        ("max-retry-time 20;", "retry-min = \"20s\"\nretry-max = \"20s\"\n", ""),
        ("max-refresh-time 1h;", "refresh-max = \"3600s\"\n", ""),
        (
            "min-refresh-time 2d;",
            "refresh-min = \"86400s\"\n",
            "differs: min-refresh-time 2d: `refresh-min` is from 1 to 86400 seconds",
        ),
        (
            "min-retry-time 50; max-retry-time 40;",
            "retry-min = \"40s\"\nretry-max = \"40s\"\n",
            "differs: min-retry-time 50: it is above the greatest",
        ),
    ] {
        let text = format!("zone z {{ type secondary; primaries {{ 192.0.2.1; }}; {clauses} }};");
        let found = toml(&text);
        assert!(found.ends_with(&format!("from = [\"192.0.2.1\"]\n{written}")), "{found}");
        let left = left(&text);
        let is_told = left.iter().any(|line| line.contains(told)) || told.is_empty();
        assert!(is_told, "{clauses}\n{left:?}");
    }
}

#[test]
fn lists_of_servers_that_name_each_other_twice_end_soon() {
    let mut text = "primaries l0 { 192.0.2.1; };".to_owned();
    for number in 1..30 {
        let before = number - 1;
        text += &format!("primaries l{number} {{ l{before}; l{before}; }};");
    }
    text += "zone z { type secondary; primaries { l29; }; };";
    let error = imported(&[("/etc/bind/named.conf", &text)]).unwrap_err().to_string();
    assert!(error.contains("servers and lists of one list of servers"), "{error}");
}
