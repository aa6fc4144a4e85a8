//! What monitors see of edits, of the journal and of flushes.

use super::edit_requests::with_small_files;
use super::edits::{command, send, state, writable};
use super::server::{Server, run, text};
use serde_json::json;
use std::fs;
use std::process::Command;

/// The page that documents all metrics.
const DOCS: &str = include_str!("../../../../docs/metrics.md");

/// Gives a name a text of so many octets; the status of the answer.
fn put(server: &Server, name: &str, octets: usize) -> u16 {
    let body = json!({ "ttl": 60, "records": [format!("\"{}\"", "x".repeat(octets))] });
    let path = format!("/v1/zones/example.org/rrsets/{name}.example.org/TXT");
    send(server, "PUT", &path, &body.to_string()).0
}

/// The problems that the status of the server has.
fn problems(server: &Server) -> String {
    send(server, "GET", "/v1/status", "").1["problems"].to_string()
}

#[test]
fn edits_flushes_and_the_journal_are_counted() {
    let server = writable("");
    let unflushed = "zonda_zone_unflushed_changes{zone=\"example.org.\"}";
    assert_eq!(server.metric(unflushed), 0.0);
    let page = server.get("/metrics").1;
    assert!(!page.contains("zonda_last_flush_timestamp_seconds"), "there was no flush:\n{page}");
    let octets = server.metric("zonda_journal_bytes");
    for name in ["a", "b", "a"] {
        assert_eq!(put(&server, name, 100), 200);
    }
    assert_eq!(put(&server, "c.other", 1), 200);
    let (path, body) = ("/v1/zones/example.org/rrsets/www.example.org/CNAME", "a.");
    let body = json!({ "ttl": 60, "records": [body] }).to_string();
    assert_eq!(send(&server, "PUT", path, &body).0, 422);
    let (path, body) = ("/v1/zones/example.org/rrsets?dry-run", r#"{"changes": []}"#);
    assert_eq!(send(&server, "PATCH", path, body).0, 200);
    let other = "/v1/zones/example.net/rrsets/a.example.net/A";
    assert_eq!(send(&server, "DELETE", other, "").0, 404);
    for (name, value) in [
        ("zonda_edits_total{result=\"accepted\"}", 4.0),
        ("zonda_edits_total{result=\"refused\"}", 2.0),
        ("zonda_edits_total{result=\"failed\"}", 0.0),
        ("zonda_journal_writable", 1.0),
        ("zonda_journal_entries", 3.0),
        ("zonda_journal_commits_total{result=\"written\"}", 3.0),
        ("zonda_journal_commits_total{result=\"failed\"}", 0.0),
        ("zonda_flushes_total{result=\"written\"}", 0.0),
        ("zonda_zone_unflushed_changes{zone=\"other\"}", 0.0),
        (unflushed, 3.0),
    ] {
        assert_eq!(server.metric(name), value, "{name}");
    }
    assert!(server.metric("zonda_journal_bytes") > octets + 300.0);
    assert!(server.metric("zonda_journal_commit_seconds_total") > 0.0);
    assert_eq!(command(&server, &["flush"]).0, 0);
    assert_eq!(server.metric(unflushed), 0.0);
    assert_eq!(server.metric("zonda_flushes_total{result=\"written\"}"), 1.0);
    assert!(server.metric("zonda_last_flush_timestamp_seconds") > 1e9);
    let page = server.get("/metrics").1;
    let names = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    for name in names.filter_map(|line| line.split(' ').next()) {
        assert!(DOCS.contains(&format!("`{name}`")), "{name} is not documented");
    }
    let _ = fs::remove_dir_all(state(&server));
}

#[test]
fn a_file_that_cannot_be_written_counts_as_a_failed_flush() {
    let server = writable("");
    assert_eq!(put(&server, "a", 1), 200);
    let unfinished = server.zone_file().with_extension("zone.zonda-new");
    fs::create_dir(&unfinished).unwrap(); // the file cannot be made
    assert_eq!(command(&server, &["flush"]).0, 1);
    assert_eq!(server.metric("zonda_flushes_total{result=\"failed\"}"), 1.0);
    assert_eq!(server.metric("zonda_zone_unflushed_changes{zone=\"example.org.\"}"), 1.0);
    let _ = fs::remove_dir_all(state(&server));
}

#[test]
fn without_a_writable_zone_there_are_no_metrics_of_edits() {
    let server = Server::start(&[], "");
    let page = server.get("/metrics").1;
    assert!(!page.contains("zonda_journal") && !page.contains("zonda_edits"), "{page}");
}

#[test]
fn a_server_whose_journal_cannot_be_written_is_ready_and_says_so_until_an_edit_is_taken() {
    let (server, _folder) = with_small_files(8_000);
    let taken = (0..100).take_while(|it| put(&server, &format!("n{it}"), 200) == 200).count();
    assert!((5..99).contains(&taken), "{taken}");
    let seen = |server: &Server| {
        let count = |name: &str| server.metric(name);
        (
            server.get("/ready").0,
            server.rcode("ns.example.org", "A"),
            count("zonda_journal_writable"),
            count("zonda_edits_total{result=\"failed\"}"),
            count("zonda_journal_commits_total{result=\"failed\"}"),
            count("zonda_zone_unflushed_changes{zone=\"example.org.\"}"),
        )
    };
    let unflushed = taken as f64;
    assert_eq!(seen(&server), (200, "NOERROR".into(), 0.0, 1.0, 1.0, unflushed));
    let told = problems(&server);
    assert!(told.contains("refused") && told.contains("journal"), "{told}");
    let status = run(&["status", "--socket", &server.socket()]);
    assert!(text(&status.stdout).contains("journal"), "{}", text(&status.stdout));
    // The disk has room again.
    let pid = send(&server, "GET", "/v1/status", "").1["pid"].to_string();
    let raised = Command::new("prlimit").args(["--pid", &pid, "--fsize=unlimited:"]).status();
    assert!(raised.unwrap().success());
    assert_eq!(put(&server, "more", 200), 200);
    assert_eq!(seen(&server), (200, "NOERROR".into(), 1.0, 1.0, 1.0, unflushed + 1.0));
    assert_eq!(problems(&server), "[]");
}

#[test]
fn edits_are_refused_once_the_state_directory_was_removed_and_those_before_are_written_to_the_file()
{
    let server = writable("");
    assert_eq!(put(&server, "a", 1), 200);
    fs::remove_dir_all(state(&server)).unwrap();
    assert_eq!(put(&server, "b", 1), 507);
    assert_eq!(server.rcode("b.example.org", "TXT"), "NXDOMAIN");
    assert_eq!((server.get("/ready").0, server.metric("zonda_journal_writable")), (200, 0.0));
    let told = problems(&server);
    assert!(told.contains("removed") && told.contains("zonda zone flush"), "{told}");
    assert_eq!(command(&server, &["flush"]), (0, "example.org. 2\n".to_owned()));
    let file = fs::read_to_string(server.zone_file()).unwrap();
    assert!(file.contains("a.example.org.\t60\tIN\tTXT"), "{file}");
}
