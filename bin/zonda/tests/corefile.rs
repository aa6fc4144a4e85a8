//! A Corefile in CoreDNS, and what was made of it in Zonda, answer alike.
//!
//! Corefiles are drawn at random: server blocks, `forward` with exceptions, `hosts` with fall
//! through and `file`, `rewrite` and `template`, for names of two letters. Each source gives
//! addresses of its own, by which it is known where an answer comes from.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use zonda_testkit::cluster::CoreDns;
use zonda_testkit::process::{Folder, Process, start_on_free_port};
use zonda_testkit::upstream::{Reply, always, say};
use zonda_testkit::{Question, Upstream, ask};

const ZONDA: &str = env!("CARGO_BIN_EXE_zonda");
/// Corefiles that are compared; those that Zonda refuses do not count.
const ROUNDS: usize = 20;
/// Corefiles that are drawn at most.
const DRAWN_MAX: u64 = 4000;
/// Zones of a Corefile that is compared, at least.
const ZONES_MIN: usize = 4;
/// Names at which blocks and sources begin.
const ZONES: [&str; 9] =
    [".", "aa", "bb", "aa.aa", "bb.aa", "aa.bb", "bb.bb.aa", "aa.bb.aa", "aa.aa.bb.aa"];

/// Draws numbers (xorshift), the same ones for the same seed.
struct Random(u64);

impl Random {
    /// Draws a number below another.
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }

    /// Draws a zone.
    fn zone(&mut self) -> &'static str {
        ZONES[self.below(ZONES.len())]
    }
}

/// Draws a Corefile, with files in a folder.
fn corefile(random: &mut Random, folder: &Folder, upstreams: &[Upstream]) -> String {
    let mut text = String::new();
    let mut keys = BTreeSet::new();
    let mut number = 0;
    for _ in 0..2 + random.below(4) {
        let key = random.zone();
        if !keys.insert(key) {
            continue;
        }
        writeln!(text, "{key} {{\n    bind 127.0.0.1").unwrap();
        if random.below(2) == 0 {
            number += 1;
            hosts(&mut text, random, (key, number), folder);
        }
        for _ in 0..random.below(3) {
            number += 1;
            let zone = if random.below(2) == 0 { key } else { random.zone() };
            let name = folder.write(&format!("db.{number}"), zone_file(number));
            writeln!(text, "    file {} {zone}", name.display()).unwrap();
        }
        for _ in 0..random.below(3) {
            let address = upstreams[random.below(upstreams.len())].address;
            let from = if random.below(2) == 0 { "." } else { random.zone() };
            write!(text, "    forward {from} {address} {{\n        max_fails 0\n").unwrap();
            if random.below(3) == 0 {
                writeln!(text, "        except {}", random.zone()).unwrap();
            }
            text.push_str("    }\n");
        }
        for _ in 0..random.below(4) {
            rule(&mut text, random, key);
        }
        for _ in 0..random.below(3) {
            number += 1;
            template(&mut text, random, (key, number));
        }
        text.push_str("}\n");
    }
    text
}

/// Writes a `rewrite` that often stays in its block.
fn rule(text: &mut String, random: &mut Random, key: &str) {
    let zone = if random.below(3) == 0 { random.zone() } else { key };
    let zone = zone.trim_matches('.');
    let [from, to] = [0, 1].map(|_| ["h", "q", "x", "q.cc", "z"][random.below(5)]);
    let below = |label: &str| format!("{label}.{zone}").trim_matches('.').to_owned();
    let (from_name, to_name) = (below(from), below(to));
    let escaped = zone.replace('.', "[.]");
    let end = if escaped.is_empty() { "$".to_owned() } else { format!("[.]{escaped}[.]$") };
    let target = if zone.is_empty() { String::new() } else { format!(".{zone}") };
    let answer = [" answer auto", ""][random.below(2)];
    let mode = ["", "stop ", "continue "][random.below(3)];
    let kinds = [
        format!("name {from_name} {to_name}"),
        format!("name exact {from_name} {to_name}"),
        format!("name prefix {from}. {to}.{answer}"),
        format!("name suffix .{from_name} .{to_name}{answer}"),
        format!("name suffix {from_name} {to_name}{answer}"),
        format!("name substring {from}. {to}.{answer}"),
        format!("name regex ^{from}[.](.*){end} {to}.{{1}}{target}{answer}"),
        format!(
            "name regex ^(.)[.]cc{end} {{1}}{target} answer name ^(.)[.](.*)[.]$ {{1}}.cc.{{2}}"
        ),
        format!("name regex (.*)[.](bb|aa){end} {{0}}{{0}}{{0}}{{0}}{{0}}{{0}}{{0}}{answer}"),
        "type TXT A".to_owned(),
        format!("ttl suffix {from_name} {}", ["7", "20-30", "-3", "90-"][random.below(4)]),
        format!(
            "rcode suffix .{from_name} {}",
            ["NXDOMAIN NOERROR", "SERVFAIL REFUSED"][answer.len() % 2]
        ),
    ];
    let kind = &kinds[random.below(kinds.len())];
    writeln!(text, "    rewrite {mode}{kind}").unwrap();
}

/// Writes a `template` with addresses by its number.
fn template(text: &mut String, random: &mut Random, (key, number): (&str, usize)) {
    let zone = if random.below(2) == 0 { key } else { random.zone() };
    let qtype = ["A", "ANY", "TXT"][random.below(3)];
    writeln!(text, "    template IN {qtype} {zone} {{").unwrap();
    match random.below(3) {
        0 => {}
        1 => writeln!(text, "        match ^q[.](.*[.])?bb[.]").unwrap(),
        _ => writeln!(text, "        match \"^(?P<first>[a-z])[.]\" ^(?P<first>x)").unwrap(),
    }
    match random.below(4) {
        0 => writeln!(text, "        rcode NXDOMAIN").unwrap(),
        1 => writeln!(text, "        answer \"{{{{ .Name }}}} 60 IN A 192.0.2.{number}\"").unwrap(),
        2 => {
            let answer = "{{ .Name }} 60 IN TXT {{ .Type }} {{ .Zone }} {{ index .Match 0 }}";
            writeln!(text, "        answer \"{answer}\"").unwrap();
        }
        _ => writeln!(text, "        answer \"{{{{ .Group.first }}}} IN A 192.0.2.1\"").unwrap(),
    }
    match random.below(4) {
        0 => {}
        1 => writeln!(text, "        fallthrough {}", random.zone()).unwrap(),
        _ => writeln!(text, "        fallthrough").unwrap(),
    }
    text.push_str("    }\n");
}

/// Writes a `hosts` with a file of two names in its zone.
fn hosts(text: &mut String, random: &mut Random, (key, number): (&str, usize), folder: &Folder) {
    let zone = if random.below(2) == 0 { key } else { random.zone() };
    let mut entries = String::new();
    for name in ZONES.iter().filter(|name| **name != ".") {
        if random.below(2) == 0 {
            writeln!(entries, "203.0.113.{number} h.{name}").unwrap();
        }
    }
    entries.push_str("203.0.113.200 h.nothing\n");
    let file = folder.write(&format!("hosts.{number}"), entries);
    writeln!(text, "    hosts {} {zone} {{", file.display()).unwrap();
    match random.below(4) {
        0 => {}
        1 => writeln!(text, "        fallthrough {}", random.zone()).unwrap(),
        _ => writeln!(text, "        fallthrough").unwrap(),
    }
    text.push_str("    }\n");
}

/// The records of a zone file, with addresses by its number.
fn zone_file(number: usize) -> String {
    let address = format!("198.51.100.{number}");
    format!(
        "@ 60 SOA ns.example. host.example. 1 7200 3600 1209600 60\n@ 60 NS ns.example.\n\
        @ 60 A {address}\nq 60 A {address}\nh 60 A {address}\n"
    )
}

/// All names that are asked for.
fn names() -> Vec<String> {
    let mut names = Vec::new();
    for zone in ZONES.iter().map(|zone| zone.trim_matches('.')) {
        for label in ["", "q.", "h.", "x.", "q.cc."] {
            names.push(format!("{label}{zone}").trim_end_matches('.').to_owned());
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// Imports a Corefile; nothing if it has few zones, a line is lost, or the report says that sources
/// differ.
fn import(folder: &Folder) -> Option<String> {
    let (toml, said) = imported(folder);
    let is_other =
        said.lines().any(|line| line.contains(": lost: ") || line.contains(" come from "));
    (!is_other && toml.matches("[[zone]]").count() >= ZONES_MIN).then_some(toml)
}

/// Imports a Corefile; also returns the report.
fn imported(folder: &Folder) -> (String, String) {
    let output = Command::new(ZONDA)
        .args(["import", "--from", "coredns"])
        .arg(folder.path().join("Corefile"))
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
    (String::from_utf8(output.stdout).unwrap(), said)
}

/// Compares all names, and the texts that templates make where nothing else is asked for them;
/// returns those with different answers, and the number of records seen.
fn differences(corefile: &str, (core_dns, zonda): (SocketAddr, SocketAddr)) -> (String, usize) {
    let has_hosts = corefile.contains("hosts ");
    let has_others = has_hosts || corefile.contains("forward ");
    let types = if has_others { &["A"][..] } else { &["A", "TXT"] };
    let mut differences = String::new();
    let mut seen = BTreeSet::new();
    for (name, qtype) in names().iter().flat_map(|name| types.iter().map(move |it| (name, *it))) {
        let answer = |server| {
            let reply = ask(server, &Question::new(name, qtype).recursive()).unwrap();
            let record = |it: &zonda_testkit::message::Record| {
                format!("{:?} {} {}", it.owner, it.record_type, it.data.text)
            };
            // Where no plugin answers, CoreDNS says SERVFAIL; Zonda denies what a hosts file lacks.
            let rcode = match reply.rcode() {
                _ if has_hosts && reply.answer.is_empty() => 2,
                5 => 2,
                rcode => rcode,
            };
            (rcode, reply.answer.iter().map(record).collect::<BTreeSet<_>>())
        };
        let (expected, found) = (answer(core_dns), answer(zonda));
        seen.extend(expected.1.iter().cloned());
        if expected != found {
            writeln!(differences, "{name} {qtype}: CoreDNS {expected:?}, Zonda {found:?}").unwrap();
        }
    }
    (differences, seen.len())
}

/// Starts the server with a configuration, at a free port.
fn start_zonda(folder: &Folder, toml: &str) -> (Process, SocketAddr) {
    let toml_file = folder.write("zonda.toml", toml);
    let (mut zonda, address) = start_on_free_port("zonda", folder, &[], |_, port| {
        let mut command = Command::new(ZONDA);
        command.args(["serve", "--config"]).arg(&toml_file);
        command.args(["--listen", &format!("127.0.0.1:{port}")]);
        command.env("ZONDA_ADMIN_ADDRESS", "off").env("ZONDA_ADMIN_SOCKET", "off");
        command
    });
    for _ in 0..500 {
        if ask(address, &Question::new("q.aa", "A")).is_ok() {
            return (zonda, address);
        }
        assert!(!zonda.ended(), "{}\n{toml}", zonda.log(""));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("{}\n{toml}", zonda.log(""));
}

#[test]
fn real_cluster_dns_answers_as_its_imported_corefile() {
    let upstreams: Vec<Upstream> =
        (1..=4).map(|id| Upstream::start([always().then([say(Reply::address(id))])])).collect();
    let (mut compared, mut addresses) = (0, 0);
    for seed in 1..=DRAWN_MAX {
        if compared == ROUNDS {
            break;
        }
        let folder = Folder::new("corefile");
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let text = corefile(&mut random, &folder, &upstreams);
        folder.write("Corefile", &text);
        let Some(toml) = import(&folder) else { continue };
        let core_dns = CoreDns::start(&text, Path::new("/"), &[]);
        let (_zonda, address) = start_zonda(&folder, &toml);
        let (differences, seen) = differences(&text, (core_dns.address, address));
        assert!(differences.is_empty(), "seed {seed}:\n{text}\n{toml}\n{differences}");
        compared += 1;
        addresses += seen;
    }
    assert_eq!(compared, ROUNDS);
    assert!(addresses >= 3 * ROUNDS, "{addresses} sources have answered");
}

/// Rules `rewrite … edns0` of blocks, in their order.
const OPTION_RULES: [&[&str]; 6] = [
    &[
        "continue edns0 local set 65001 {qname}",
        "continue edns0 local append 65002 {qtype}",
        "continue edns0 local set 65003 {client_ip}",
        "continue edns0 local set 65004 {protocol}",
        "continue edns0 nsid set",
        "edns0 subnet set 24 56",
    ],
    &[
        "continue edns0 local set 65001 {server_ip}",
        "continue edns0 local set 65002 abc",
        "continue edns0 local set 65002 0x6465",
        "continue edns0 local append 65002 0x66",
        "edns0 local set 65003 {client_port}",
    ],
    &["continue edns0 local replace 65001 {qname}", "edns0 local replace 65002 0x61"],
    &["continue edns0 local replace 65001 0x61", "continue edns0 local set 65001 0x62"],
    &["continue edns0 local set 65001 0x61", "edns0 local unset 65001"],
    &["edns0 subnet append 13 0", "edns0 local set 65001 {qname}"],
];

/// The options that an upstream got with the last query for a name: codes and data, but the port of
/// the client, and what every server has of its own.
fn options_of(upstream: &Upstream, name: &str) -> Vec<(u16, String)> {
    let log = upstream.log();
    let asked = log.iter().rfind(|asked| asked.name == name).unwrap();
    let own = |option: &&(u16, Vec<u8>)| [3, 8].contains(&option.0) || option.0 > 65000;
    let options = asked.options.iter().filter(own).map(|(code, data)| {
        let is_port = data.len() == 2 && *code == 65003;
        (*code, if is_port { "a port".to_owned() } else { format!("{data:?}") })
    });
    let mut options: Vec<_> = options.collect();
    options.sort_unstable();
    options
}

#[test]
fn real_cluster_dns_tells_upstreams_the_options_that_its_imported_corefile_tells() {
    for rules in OPTION_RULES {
        let folder = Folder::new("options");
        let upstream = Upstream::start([always().then([say(Reply::address(1))])]);
        let rules: String =
            rules.iter().map(|rule| format!("    rewrite {rule} revert\n")).collect();
        let rules = rules.replace("unset 65001 revert", "unset 65001");
        let text =
            format!(". {{\n    bind 127.0.0.1\n{rules}    forward . {}\n}}\n", upstream.address);
        folder.write("Corefile", &text);
        let core_dns = CoreDns::start(&text, Path::new("/"), &[]);
        let (toml, said) = imported(&folder);
        assert!(!said.contains(": lost: "), "{said}");
        let (_zonda, address) = start_zonda(&folder, &toml);
        for (number, with_option) in [(1, true), (2, false)] {
            let question = |server| {
                let name = format!("{server}{number}.test");
                let question = Question::new(&name, "AAAA").recursive().edns(1232);
                let option = |question: Question| question.option(65001, b"of the client");
                if with_option { option(question) } else { question }
            };
            ask(core_dns.address, &question("a")).unwrap();
            ask(address, &question("b")).unwrap();
            let named = |server: &str| options_of(&upstream, &format!("{server}{number}.test."));
            let expected: Vec<_> = named("a")
                .into_iter()
                .map(|(code, data)| {
                    let name = format!("{:?}", format!("a{number}.test.").as_bytes());
                    let own = format!("{:?}", format!("b{number}.test.").as_bytes());
                    (code, data.replace(&name, &own))
                })
                .filter(|(_, data)| *data != format!("{:?}", b"of the client"))
                .collect();
            assert_eq!(named("b"), expected, "{text}, the option of the client: {with_option}");
        }
    }
}
