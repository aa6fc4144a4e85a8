//! Transfers, updates and secondary zones, as `zonda bench` measures them.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Output};

use serde_json::Value;
use zonda_testkit::process::{Folder, Process, start_on_free_port};

/// A zone of a thousand records, and what is done with it. `SERVERS` and `PRIMARY` are replaced.
const SUITE: &str = r#"
name = "small"
title = "Replication of a small zone"
servers = [SERVERS]
seconds = 0.5
rounds = 2
warm_up_secs = 0

[[workload]]
name = "out"
roles = ["primary"]
task = "transfer-out"
ready = ["h1.big.test A", "h1000.big.test A"]
queries = [{ mix = [{ text = "big.test AXFR" }] }]
aims = [{ figure = "cpu-micros", most = 1e9 }, { figure = "rate", least = 1e9 }]

[[workload.zones]]
name = "big.test"
text = """
$ORIGIN big.test.
$TTL 3600
@ IN SOA ns.big.test. h.big.test. 1 7200 3600 1209600 3600
@ IN NS ns.big.test.
ns IN A 127.0.0.1
"""
records = [{ to = "1000", mix = [{ text = "h${n} IN A ${ip}" }] }]

[[workload]]
name = "beside"
like = "out"
task = "queries"
beside_transfers = "big.test"
settings = { rate = "1000" }
queries = [{ to = "1000", mix = [{ text = "h${n}.big.test A" }] }]

[[workload]]
name = "updates"
like = "out"
servers = [UPDATED]
task = "updates"
restart = true
settings = { clients = "10", outstanding = "10" }
queries = [
  { to = "1000", mix = [{ text = "big.test\ndelete h${n} A\nadd h${n} 60 A 192.0.2.1\nsend" }] },
  { to = "1000", mix = [{ text = "big.test\ndelete h${n} A\nadd h${n} 60 A 192.0.2.2\nsend" }] },
]

[[workload]]
name = "in"
roles = ["secondary"]
servers = [SECONDARIES]
task = "transfer-in"
settings = { primary = "zonda" }
ready = ["h1.big.test A", "h1000.big.test A"]
queries = [{ mix = [{ text = "big.test SOA" }] }]
zones = [{ name = "big.test" }]

[workload.upstream]
server = "${primary}"
role = "primary"
notifies = true

[[workload.upstream.zones]]
name = "big.test"
text = """
$ORIGIN big.test.
$TTL 3600
@ IN SOA ns.big.test. h.big.test. 1 7200 3600 1209600 3600
@ IN NS ns.big.test.
ns IN A 127.0.0.1
"""
records = [{ to = "1000", mix = [{ text = "h${n} IN A ${ip}" }] }]

[[workload]]
name = "changes"
like = "in"
task = "propagation"
settings = { rate = "50" }
places = [PRIMARIES]
queries = [{ to = "1000", mix = [{ text = "big.test\nadd new 60 A ${ip}\nsend" }] }]

[[workload]]
name = "zones"
roles = ["secondary"]
servers = [MANY]
task = "transfer-in"
restart = false
any_zone_primary = true
ready = ["www.z1.test A", "www.z300.test A"]
zones = [{ name = "z${n}.test", to = "300" }]
queries = [{ to = "300", mix = [{ text = "z${n}.test SOA" }] }]

[[workload]]
name = "disk"
like = "zones"
task = "restart"

[[workload]]
name = "notified"
like = "zones"
task = "notify"
"#;

/// The names of servers in a list of TOML.
fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

/// Runs the suite; returns its cells by workload and server.
fn run(
    folder: &Folder,
    [servers, updated, secondaries, many, primaries]: [&[&str]; 5],
) -> (BTreeMap<(String, String), Vec<Value>>, String) {
    let places: Vec<String> =
        primaries.iter().map(|name| format!("{{ primary = \"{name}\" }}")).collect();
    let text = SUITE
        .replace("SERVERS", &list(servers))
        .replace("UPDATED", &list(updated))
        .replace("SECONDARIES", &list(secondaries))
        .replace("MANY", &list(many))
        .replace("PRIMARIES", &places.join(", "));
    let suite = folder.write("small.toml", text);
    let json = folder.path().join("run.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
    command.args(["bench", "suite", "--max-foreign", "100", "--json"]).arg(&json).arg(&suite);
    let output = command.env_remove("ZONDA").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let run: Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    let mut cells: BTreeMap<(String, String), Vec<Value>> = BTreeMap::new();
    for cell in run["cells"].as_array().unwrap() {
        let name = |key: &str| cell[key].as_str().unwrap().to_owned();
        cells.entry((name("workload"), name("server"))).or_default().push(cell.clone());
    }
    let skipped = run["skipped"].as_array().unwrap();
    assert!(skipped.is_empty(), "{skipped:?}");
    (cells, String::from_utf8(output.stdout).unwrap())
}

/// Looks at each round of a cell: all was answered by NOERROR, and nothing lost.
fn check(cell: &Value, unit: Option<&str>) {
    assert_eq!(cell["unit"].as_str(), unit, "{cell:#}");
    assert_eq!(cell["unranked"], Value::Null, "{cell:#}");
    let rounds = cell["rounds"].as_array().unwrap();
    assert_eq!(rounds.len(), 2, "{cell:#}");
    for round in rounds {
        let traffic = &round["traffic"];
        assert!(traffic["completed"].as_u64().unwrap() > 0, "{cell:#}");
        assert_eq!(traffic["completed"], traffic["sent"], "{cell:#}");
        let rcodes = traffic["rcodes"].as_object().unwrap();
        assert_eq!(rcodes.keys().collect::<Vec<_>>(), ["NOERROR"], "{cell:#}");
        assert!(round["memory_peak_octets"].as_u64().unwrap() > 1 << 20, "{cell:#}");
    }
}

/// The number of queries in the first round of a cell.
fn completed(cell: &Value) -> u64 {
    cell["rounds"][0]["traffic"]["completed"].as_u64().unwrap()
}

#[test]
fn each_task_of_replication_is_measured_and_its_aims_are_judged() {
    let folder = Folder::new("replication");
    let zonda: &[&str] = &["zonda"];
    let (cells, text) = run(&folder, [zonda; 5]);
    let cell = |workload: &str| &cells[&(workload.to_owned(), "zonda".to_owned())][0];
    for (workload, unit) in [
        ("out", Some("transfer")),
        ("beside", None),
        ("updates", Some("update")),
        ("in", Some("zone")),
        ("changes", Some("change")),
        ("zones", Some("zone")),
        ("disk", Some("zone")),
        ("notified", Some("zone")),
    ] {
        check(cell(workload), unit);
    }
    assert!(completed(cell("out")) > 1 && completed(cell("updates")) > 20, "{text}");
    assert_eq!([completed(cell("in")), completed(cell("disk"))], [1, 300]);
    assert_eq!(completed(cell("notified")), 300);
    // A change is made only when the former one has come to the secondary, 50 a second at most.
    assert!((2..=26).contains(&completed(cell("changes"))), "{:#}", cell("changes"));
    assert!(text.contains("CPU µs/transfer") && text.contains("updates/s"), "{text}");
    assert!(text.contains("zonda is to reach: CPU time for each transfer, at most "), "{text}");
    assert!(text.contains("rate, at least 1,000,000,000/s: missed, "), "{text}");
}

#[test]
fn real_peers_transfer_take_updates_and_follow_primaries() {
    let folder = Folder::new("replication-peers");
    let all: &[&str] = &["zonda", "knot", "nsd", "bind", "pdns"];
    let updated: &[&str] = &["knot", "bind"];
    let secondaries: &[&str] = &["zonda", "knot", "nsd", "bind"];
    let many: &[&str] = &["knot", "bind"];
    let primaries: &[&str] = &["zonda", "knot", "bind"];
    let (cells, _) = run(&folder, [all, updated, secondaries, many, primaries]);
    for ((workload, _), cells) in &cells {
        let unit = match workload.as_str() {
            "out" => Some("transfer"),
            "updates" => Some("update"),
            "changes" => Some("change"),
            "beside" => None,
            _ => Some("zone"),
        };
        cells.iter().for_each(|cell| check(cell, unit));
    }
    let count = |workload: &str| {
        let own = cells.iter().filter(|((name, _), _)| name == workload);
        own.map(|(_, cells)| cells.len()).sum::<usize>()
    };
    let counts = ["out", "updates", "in", "changes", "notified"].map(count);
    assert_eq!(counts, [5, 2, 4, 12, 2]);
}

/// Updates for the zone of the next test, and one for a zone that is not served.
const UPDATES: &str = "\
up.test
prohibit new
add new 60 A 192.0.2.1
send

up.test
require new A 192.0.2.1
delete new A
add new 60 TXT \"a b\"
send
other.test
delete x
send
";

/// Runs `zonda bench`.
fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_zonda")).arg("bench").args(arguments).output().unwrap()
}

#[test]
fn blocks_of_a_file_are_updates_that_the_server_carries_out() {
    let folder = Folder::new("bench-updates");
    let zone = "@ 60 IN SOA ns host 7 7200 3600 1209600 60\n@ 60 IN NS ns\nns 60 IN A 192.0.2.1\n";
    folder.write("up.zone", zone);
    let program = env!("CARGO_BIN_EXE_zonda");
    let start = |folder: &Folder, port| {
        let text = format!(
            "version = 1\nstate = \"state\"\n[[listen]]\naddress = \"127.0.0.1:{port}\"\n\
             [admin]\naddress = \"off\"\n[[zone]]\nname = \"up.test\"\nfile = \"up.zone\"\n\
             update = [{{ from = \"127.0.0.1\", names = \"zone\" }}]\n"
        );
        let mut command = Command::new(program);
        command.arg("serve").arg("--config").arg(folder.write("zonda.toml", text));
        command
    };
    let (_server, address): (Process, _) =
        start_on_free_port(program, &folder, &["up.test."], start);
    let file = folder.write("updates.txt", UPDATES).display().to_string();
    let port = address.port().to_string();
    let load = ["load", "-u", "-p", &port, "-d", &file, "-q", "1", "--format", "json"];
    for rcodes in [r#"{"NOERROR":2,"NOTAUTH":1}"#, r#"{"NOTAUTH":1,"NXRRSET":1,"YXDOMAIN":1}"#] {
        let output = bench(&load);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let whole: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!(whole["traffic"]["rcodes"].to_string(), rcodes, "{whole:#}");
    }
    let refused = bench(&["load", "-u", "-p", &port, "--names", "random:a.test"]);
    assert_eq!(refused.status.code(), Some(2));
}
