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
    for suite in
        ["dinodns-coredns", "erldns", "bind-forward", "scale", "gslb", "cluster", "handlers"]
    {
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
        assert!(!output.status.success());
        assert!(text.starts_with(said) && text.lines().count() == 1, "{text}");
    }
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
    assert!(lines[0].ends_with("p99.9 µs    late µs"), "{text}");
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
        // Its CPU time is not that of others.
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
