//! `zonda bench`, as it is typed.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use zonda_testkit::process::{Folder, required};

/// Two zones' worth of work that is over in a few seconds.
const SUITE: &str = r#"
name = "small"
title = "One zone"
servers = ["reflector", "zonda", "knot"]
seconds = 0.5
rounds = 2
warm_up_secs = 0.1

[[workload]]
name = "one"
roles = ["authoritative"]
ready = ["www.a.test A"]
latency = { percents = [50] }
settings = { clients = "4", outstanding = "50" }

[[workload.zones]]
name = "a.test"
text = """
$ORIGIN a.test.
$TTL 60
@ IN SOA ns h 1 7200 3600 1209600 60
@ IN NS ns
ns IN A 127.0.0.1
www IN A 127.0.0.1
"""

[[workload.queries]]
mix = [{ text = "www.a.test A" }]

[[workload.queries]]
mix = [{ text = "nowhere.a.test A" }]
"#;

fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
    command.arg("bench").args(arguments).env_remove("ZONDA").output().unwrap()
}

#[test]
fn the_list_has_every_suite() {
    let output = bench(&["suite", "--list"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    for suite in [
        "dinodns-coredns",
        "erldns",
        "bind-forward",
        "scale",
        "gslb",
        "cluster",
        "handlers",
        "replication",
    ] {
        assert!(text.contains(&format!("{suite}: ")), "{text}");
    }
}

#[test]
fn what_is_not_there_is_told_in_one_line() {
    for (arguments, said) in [
        (&["suite", "no-such-suite"][..], "zonda: no suite `no-such-suite`; there are "),
        (&["suite", "none.toml"], "zonda: none.toml: No such file"),
        (&["suite", "erldns", "--against", "djbdns"], "zonda: erldns: no server `djbdns`; "),
    ] {
        let output = bench(arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.starts_with(said) && text.lines().count() == 1, "{text}");
    }
}

/// A socket that never answers, its port, and a file that asks it for something.
fn silent(folder: &Folder) -> (std::net::UdpSocket, String, String) {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port().to_string();
    (socket, port, folder.write("queries.txt", "a.test A\n").display().to_string())
}

#[test]
fn a_broken_limit_and_what_cannot_be_run_end_with_different_codes() {
    let folder = Folder::new("codes");
    let (_socket, port, queries) = silent(&folder);
    let load = ["load", "-p", &port, "-d", &queries, "-t", "100ms"];
    for (arguments, code, said) in [
        (&["--max-loss", "0"][..], 1, "limits broken: lost 100 %"),
        (&[], 0, ""),
        (&["--cpus", "4095"], 2, "CPU 4095: there is none of that number"),
        (&["-a", "::1"], 2, "-a ::1: not of the family of the server's address, 127.0.0.1"),
        (&["-a", "192.0.2.1"], 2, "-a 192.0.2.1: this machine has no such address"),
        (&["-s", "127.0.0.1:53"], 2, "127.0.0.1:53: give address and port by themselves"),
        (&["--expect", "nofile"], 2, "nofile: No such file"),
        (&["-q", "0"], 2, "-q must be at least one query for each thread"),
        (&["--rate", "-5"], 2, "expected queries per second, a number above 0"),
        (&["--rate", "abc"], 2, "expected queries per second, a number above 0"),
        (&["-l", "0"], 2, "must be more than 0"),
        (&["-n", "0"], 2, "invalid value '0'"),
        (&["-c", "0"], 2, "must be a whole number above 0"),
        (&["-E", "8"], 2, "expected a code, a colon"),
        (&["--type", "AAAA"], 2, "cannot be used with"),
        (&["--max-loss", "1"], 2, "expected a share with its %"),
    ] {
        let output = bench(&[&load[..], arguments].concat());
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(text.contains(said), "{arguments:?}: {text}");
    }
}

#[test]
fn a_time_is_seconds_or_has_a_unit_for_every_flag() {
    let folder = Folder::new("times");
    let (_socket, port, queries) = silent(&folder);
    for time in ["0.2", "0.2s", "200ms", "200000us"] {
        let common = ["-p", &port, "-d", &queries, "-t", time];
        let load = ["load", "-l", time, "--linger", time, "--max-p99", time];
        let ramp = ["ramp", "--step", time, "--from", "10", "--to", "10", "--max-p99", time];
        let soak = ["soak", "-l", time, "--every", "1", "--max-p99", time];
        for command in [&load[..], &ramp, &soak] {
            let output = bench(&[command, &common[..]].concat());
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{command:?}: {said}");
        }
    }
}

#[test]
fn a_suite_that_cannot_be_measured_is_no_success() {
    let folder = Folder::new("unmeasured");
    let suite = folder.write("small.toml", SUITE).display().to_string();
    let elsewhere = bench(&["suite", &suite, "--server-cpus", "4095"]);
    let said = String::from_utf8(elsewhere.stderr).unwrap();
    assert_eq!(elsewhere.status.code(), Some(2), "{said}");
    assert!(said.contains("there is no CPU 4095 to use; there are 0"), "{said}");
    let part = bench(&["suite", &suite, "--pace", "dnsperf", "--seconds", "0.5"]);
    assert_eq!(part.status.code(), Some(2));

    // It ends at once, and answers nothing.
    let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
    command.args(["bench", "suite", &suite, "--against", "zonda", "--rounds", "1"]);
    command.args(["--seconds", "100ms", "--max-foreign", "100"]).env("ZONDA", "/bin/false");
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.lines().last().unwrap().starts_with("zonda: small: nothing was measured: "));
}

#[test]
fn bad_lines_are_left_out_only_where_that_is_asked_for() {
    let folder = Folder::new("bad-lines");
    let (_socket, port, _) = silent(&folder);
    let queries = folder.write("bad.txt", "a.test A\nb.test\n").display().to_string();
    let load = ["load", "-p", &port, "-d", &queries, "-t", "100ms", "--format", "json"];
    let refused = bench(&load);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(said.contains("bad.txt:2: expected a type") && said.contains("--skip-bad-lines"));
    let output = bench(&[&load[..], &["--skip-bad-lines"]].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("1 lines are left out as they are wrong, the first: "), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    let whole: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(whole["traffic"]["sent"], 1, "{whole}");
}

#[test]
fn a_port_without_a_server_is_said_to_be_one() {
    let folder = Folder::new("nobody");
    let (socket, port, queries) = silent(&folder);
    drop(socket);
    let output = bench(&["load", "-p", &port, "-d", &queries, "-t", "0.2"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("no process listens on that port"), "{text}");
    assert!(text.contains("– per answer"), "{text}");
}

#[test]
fn a_ramp_writes_its_steps_as_json() {
    let folder = Folder::new("ramp-json");
    let (_socket, port, queries) = silent(&folder);
    let json = folder.path().join("ramp.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
    command.args(["bench", "ramp", "-p", &port, "-d", &queries, "--step", "200ms", "-t", "200ms"]);
    let output = command.args(["--from", "50", "--json"]).arg(&json).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let found: serde_json::Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert_eq!(found["highest_rate_held"], serde_json::Value::Null, "{found}");
    assert_eq!(found["steps"][0]["is_held"], false, "{found}");
    assert!(found["steps"][0]["outcome"]["traffic"]["sent"].as_u64().unwrap() > 0, "{found}");
}

#[test]
fn a_ramp_is_a_table_by_rate_with_a_word_for_each_step() {
    let folder = Folder::new("ramp");
    let queries = folder.write("queries.txt", "a.test A\n").display().to_string();
    // It reads nothing, so that every rate is the server's to lose.
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port().to_string();
    let ramp = ["ramp", "-p", &port, "-d", &queries, "--step", "0.2", "-t", "0.3"];
    let output = bench(&[&ramp[..], &["--from", "100", "--to", "400", "--max-p99", "1s"]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with("p99.9       late"), "{text}");
    assert!(lines.len() == 2 && lines[1].ends_with("  not held"), "{text}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("100 queries per second: not held\nzonda: the server did"), "{said}");
}

#[test]
fn a_suite_is_measured_from_start_to_end_and_leaves_nothing() {
    let folder = Folder::new("suite");
    let suite = folder.write("small.toml", SUITE);
    let [json, html] = ["run.json", "run.html"].map(|name| folder.path().join(name));
    let temporary = folder.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
    command.args(["bench", "suite", "--max-foreign", "100", "--json"]).arg(&json);
    command.arg("--html").arg(&html).arg(&suite);
    let output = command.env_remove("ZONDA").env("TMPDIR", &temporary).output().unwrap();
    let (text, steps) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{steps}");
    assert!(text.contains("zonda") && text.contains("CPU µs/query"), "{text}");

    let run: serde_json::Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    // Reflector, Zonda and, where it is installed, Knot.
    let servers = 3 - run["skipped"].as_array().unwrap().len();
    assert!(servers >= 2, "{steps}");
    assert_eq!(run["cells"].as_array().unwrap().len(), servers, "{steps}");
    assert!(fs::read_to_string(&html).unwrap().contains("</html>"));
    assert!(
        steps.contains(" rounds of 0.5 s each: about ") && steps.contains("[100 %, 0 s left] ")
    );
    for cell in run["cells"].as_array().unwrap() {
        assert_eq!(cell["rounds"].as_array().unwrap().len(), 2, "{steps}");
        assert_eq!(cell["latency_at"].as_array().unwrap().len(), 2, "{steps}");
        for round in cell["rounds"].as_array().unwrap() {
            assert!(round["traffic"]["completed"].as_u64().unwrap() > 100, "{round}");
            assert!(round["cpu_system_secs"].as_f64().unwrap() > 0.0, "{round}");
        }
    }
    assert!(fs::read_dir(&temporary).unwrap().next().is_none());
    assert!(!processes_name(&temporary.display().to_string()));
    is_shown(&folder, &json);
    is_compared(&folder, &json, run);
}

#[test]
fn dnsperf_asks_in_the_place_of_the_generator() {
    if required("dnsperf").is_none() {
        return;
    }
    let folder = Folder::new("by-dnsperf");
    let suite = folder.write("small.toml", SUITE);
    let json = folder.path().join("run.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
    command.args(["bench", "suite", "--max-foreign", "100", "--pace", "dnsperf", "--seconds", "1"]);
    command.args(["--rounds", "1", "--against", "zonda", "--json"]).arg(&json).arg(&suite);
    let output = command.env_remove("ZONDA").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let run: serde_json::Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert!(run["method"]["pace"].as_str().unwrap().starts_with("dnsperf 2."), "{run}");
    for cell in run["cells"].as_array().unwrap() {
        let round = &cell["rounds"][0];
        let (traffic, latency) = (&round["traffic"], &round["latency"]);
        assert!(traffic["completed"].as_u64().unwrap() > 100, "{round}");
        let rcodes = traffic["rcodes"].as_object().unwrap().values();
        assert_eq!(traffic["completed"], rcodes.map(|n| n.as_u64().unwrap()).sum::<u64>());
        assert!(latency["mean"].as_f64().unwrap() > 0.0, "{round}");
        assert!(latency["percentiles"].as_array().unwrap().is_empty(), "{round}");
        // The CPU time of the load is measured apart from that of the server.
        assert!(round["load_cpu_secs"].as_f64().unwrap() > 0.05, "{round}");
    }
}

/// One run becomes a page or tables, several become pages with an index.
fn is_shown(folder: &Folder, json: &Path) {
    let (page, pages) = (folder.path().join("run.html"), folder.path().join("pages"));
    let (json, page_text) = (json.to_str().unwrap(), page.to_str().unwrap());
    assert!(bench(&["report", json, "--html", page_text]).status.success());
    assert!(fs::read_to_string(page).unwrap().contains("</html>"));
    let text = String::from_utf8(bench(&["report", json]).stdout).unwrap();
    assert!(text.contains("In short"), "{text}");

    let other = folder.path().join("other.json");
    fs::copy(json, &other).unwrap();
    let (other, pages_text) = (other.to_str().unwrap(), pages.to_str().unwrap());
    assert!(bench(&["report", json, other, "--html", pages_text]).status.success());
    let index = fs::read_to_string(pages.join("index.html")).unwrap();
    for name in ["run.html", "other.html"] {
        assert!(index.contains(name) && pages.join(name).exists(), "{index}");
    }
    let clash = bench(&["report", json, json, "--html", pages_text]);
    assert!(String::from_utf8(clash.stderr).unwrap().contains("is named run.html, too"));
}

/// Has every round cost the same, a hair apart, and the machine quiet: what else ran here meanwhile
/// is not what is tested.
fn be_steady(run: &mut serde_json::Value) {
    for cell in run["cells"].as_array_mut().unwrap() {
        for (number, round) in cell["rounds"].as_array_mut().unwrap().iter_mut().enumerate() {
            let answered = round["traffic"]["completed"].as_f64().unwrap();
            round["cpu_user_secs"] = 0.0.into();
            round["cpu_system_secs"] = (answered * (4e-6 + number as f64 * 1e-9)).into();
            round["seconds"] = (answered / 1e5).into();
            round["foreign_cpu"] = 0.0.into();
        }
    }
}

/// The exit code of a comparison tells whether something became worse.
fn is_compared(folder: &Folder, json: &Path, mut run: serde_json::Value) {
    let disturbed = |share: f64, run: &serde_json::Value| {
        let mut run = run.clone();
        run["cells"][0]["rounds"][0]["foreign_cpu"] = share.into();
        folder.write("disturbed.json", run.to_string()).to_str().unwrap().to_owned()
    };
    be_steady(&mut run);
    fs::write(json, run.to_string()).unwrap();
    let json = json.to_str().unwrap();
    assert_eq!(bench(&["compare", json, json]).status.code(), Some(0));
    let refused = bench(&["compare", json, &disturbed(0.5, &run)]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("disturbed.json: Other processes used") && said.lines().count() == 1);
    let told = bench(&["compare", json, &disturbed(0.5, &run), "--disturbed-anyway"]);
    assert_eq!(told.status.code(), Some(0));
    assert!(String::from_utf8(told.stdout).unwrap().contains("differs: later run: Other"));

    for round in run["cells"][1]["rounds"].as_array_mut().unwrap() {
        round["cpu_system_secs"] = (round["cpu_system_secs"].as_f64().unwrap() * 3.0).into();
    }
    let worse = folder.write("worse.json", run.to_string());
    let worse = worse.to_str().unwrap();
    let found = bench(&["compare", json, worse]);
    assert_eq!(found.status.code(), Some(1));
    assert!(String::from_utf8(found.stdout).unwrap().contains("worse   "));
    assert_eq!(bench(&["compare", worse, json]).status.code(), Some(0));

    run["cells"].as_array_mut().unwrap().pop();
    let fewer = folder.write("fewer.json", run.to_string());
    let found = bench(&["compare", json, fewer.to_str().unwrap()]);
    assert_eq!(found.status.code(), Some(1));
    let text = String::from_utf8(found.stdout).unwrap();
    assert!(text.contains(": is not in the later run\n"), "{text}");

    run["cells"] = serde_json::json!([]);
    let empty = folder.write("empty.json", run.to_string());
    run["format"] = 99.into();
    let newer = folder.write("newer.json", run.to_string());
    for (path, said) in [(empty, "run one suite twice"), (newer, "this version reads form")] {
        let found = bench(&["compare", json, path.to_str().unwrap()]);
        assert_eq!(found.status.code(), Some(2));
        assert!(String::from_utf8(found.stderr).unwrap().contains(said));
    }
}

/// Whether a process has this text in its command line.
fn processes_name(text: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).contains(text))
}

/// An address chosen by each algorithm, for clients of a hundred networks.
const CHOICES: &str = r#"
name = "choices"
title = "Algorithms"
servers = ["reflector", "gdnsd", "zonda"]
seconds = 0.2
rounds = 1
warm_up_secs = 0.1

[[workload]]
name = "algorithms"
roles = ["gslb"]
ready = ["app1.${algorithm}.gslb.example.com A", "app${services}.${algorithm}.gslb.example.com A"]
settings = { services = "3", subnets = "100" }
places = [
  { algorithm = "round-robin" },
  { algorithm = "weighted" },
  { algorithm = "failover" },
  { algorithm = "geo" },
]
[[workload.queries]]
to = "${services}"
mix = [{ text = "app${n}.${algorithm}.gslb.example.com A" }]

[[workload]]
name = "hash"
like = "algorithms"
servers = ["zonda"]
places = [{ algorithm = "hash" }]

[[workload]]
name = "members"
like = "algorithms"
roles = ["gslb-members"]
servers = ["zonda"]
settings = { services = "1", members = "300" }
places = [{ algorithm = "weighted" }, { algorithm = "hash" }]
"#;

#[test]
fn real_peers_and_pools_answer_every_query_for_a_choice() {
    let folder = Folder::new("choices");
    let suite = folder.write("choices.toml", CHOICES);
    let json = folder.path().join("run.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
    command.args(["bench", "suite", "--max-foreign", "100", "--json"]).arg(&json).arg(&suite);
    let output = command.env_remove("ZONDA").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let run: serde_json::Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    let cells = run["cells"].as_array().unwrap();
    for cell in cells {
        let rcodes = cell["rounds"][0]["traffic"]["rcodes"].as_object();
        let rcodes = rcodes.unwrap_or_else(|| panic!("{cell:#}"));
        assert_eq!(rcodes.keys().collect::<Vec<_>>(), ["NOERROR"], "{cell:#}");
    }
    let of = |server: &str| cells.iter().filter(|cell| cell["server"] == server).count();
    assert_eq!([of("zonda"), of("gdnsd")], [7, 4]);
}
