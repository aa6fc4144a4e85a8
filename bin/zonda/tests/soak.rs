//! `zonda bench soak` against servers that keep what they use, leak, and end.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Read;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use zonda_testkit::process::{Folder, free_port};

/// Answers everything; keeps 16 KiB of each query and opens a file for each tenth.
const LEAKING: &str = r#"
use Socket;
socket(S, PF_INET, SOCK_DGRAM, 17) or die;
bind(S, sockaddr_in(0, INADDR_LOOPBACK)) or die;
$| = 1;
print((sockaddr_in(getsockname(S)))[0], "\n");
while (my $peer = recv(S, my $query, 512, 0)) {
    vec($query, 2, 8) |= 0x80;
    push @leak, "x" x 16384;
    if (@leak % 10 == 0) { open(my $file, "<", "/dev/null"); push @files, $file; }
    send(S, $query, 0, $peer);
}
"#;

/// The zone of a server under test.
const ZONE: &str = "$ORIGIN a.test.\n$TTL 60\n@ IN SOA ns h 1 7200 3600 1209600 60\n\
    @ IN NS ns\nns IN A 127.0.0.1\n";

/// A process that ends with its test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the server that leaks; returns its port, too.
fn leaking() -> (Server, String) {
    let mut command = Command::new("perl");
    let child = command.args(["-e", LEAKING]).stdout(Stdio::piped()).spawn().unwrap();
    let mut server = Server(child);
    let (mut port, mut octet) = (String::new(), [0]);
    let output = server.0.stdout.as_mut().unwrap();
    while output.read(&mut octet).unwrap() == 1 && octet[0] != b'\n' {
        port.push(char::from(octet[0]));
    }
    (server, port)
}

/// Runs `zonda bench soak` at 100 queries a second.
fn soak(folder: &Folder, port: &str, arguments: &[&str]) -> Command {
    soak_at("100", folder, port, arguments)
}

/// Runs `zonda bench soak` at so many queries a second.
fn soak_at(rate: &str, folder: &Folder, port: &str, arguments: &[&str]) -> Command {
    let queries = folder.write("queries.txt", "a.test SOA\n");
    let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
    command.args(["bench", "soak", "-p", port, "--rate", rate, "-d"]).arg(queries);
    command.args(arguments).env_remove("ZONDA");
    command
}

/// What a command says: exit code, output, errors.
fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_leak_is_found_and_breaks_its_limits() {
    let (folder, (server, port)) = (Folder::new("soak-leak"), leaking());
    let json = folder.path().join("samples.jsonl");
    let mut command = soak(&folder, &port, &["-l", "12s", "--every", "1s", "--json"]);
    command.arg(&json).args(["--max-rss-drift", "1G", "--max-descriptor-drift", "100"]);
    let (code, text, errors) = said(&command.output().unwrap());
    assert_eq!(code, Some(1), "{text}{errors}");
    assert!(errors.contains("memory rises by ") && errors.contains("descriptors rises by "));
    let line = text.lines().find(|line| line.starts_with("memory ")).unwrap();
    assert!(line.ends_with("  rises"), "{text}");
    // 100 times 16 KiB a second are 5625 MiB an hour.
    let (slope, unit) = line.split_once('+').unwrap().1.split_once(' ').unwrap();
    assert!(unit.starts_with("MiB "), "{text}");
    let slope: f64 = slope.replace(',', "").parse().unwrap();
    assert!((4000.0..8000.0).contains(&slope), "{text}");
    let samples = fs::read_to_string(&json).unwrap();
    assert!(samples.lines().count() >= 8, "{samples}");
    for sample in samples.lines() {
        let sample: serde_json::Value = serde_json::from_str(sample).unwrap();
        assert!(sample["server"]["resident_octets"].as_u64().unwrap() > 1 << 20);
    }
    drop(server);
}

#[test]
fn zonda_itself_does_not_drift() {
    let folder = Folder::new("soak-zonda");
    let zone = format!("a.test={}", folder.write("a.test.zone", ZONE).display());
    let port = free_port(); // for TCP, too
    let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
    command.args(["serve", "--zone", &zone, "--listen", &format!("127.0.0.1:{port}")]);
    // The default port for metrics, socket and state may be another server's.
    command.env_remove("ZONDA").env("ZONDA_ADMIN_ADDRESS", "off").env("ZONDA_ADMIN_SOCKET", "off");
    command.env("ZONDA_STATE", folder.path().join("state"));
    let log = folder.path().join("log");
    let child = command.stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
    let _server = Server(child);
    let start = Instant::now();
    let is_up = || {
        let mut query = Command::new(env!("CARGO_BIN_EXE_zonda"));
        query.args(["query", "@127.0.0.1", "-p", &port.to_string(), "a.test", "SOA"]);
        query.output().is_ok_and(|output| output.status.success())
    };
    while !is_up() && start.elapsed() < Duration::from_secs(30) {
        thread::sleep(Duration::from_millis(50));
    }
    let told = || fs::read_to_string(&log).unwrap();
    assert!(is_up(), "the server is not up after {:?}:\n{}", start.elapsed(), told());
    // A server touches some of its memory when it is first asked.
    let mut warm_up = Command::new(env!("CARGO_BIN_EXE_zonda"));
    warm_up.args(["bench", "load", "-p", &port.to_string(), "-n", "50000", "-d"]);
    let queries = folder.write("warm.txt", "a.test SOA\n");
    assert!(warm_up.arg(queries).output().unwrap().status.success());
    // What the leaking one may not exceed, at twenty times its rate: 150 octets a query. Twelve
    // seconds are 3.4 MiB of that, more than a busy machine makes a worker touch for the first
    // time: it reads more queries at once then, up to all that it has buffers for.
    let limits = ["--max-rss-drift", "1G", "--max-descriptor-drift", "10"];
    let limits = [&["-l", "12s", "--every", "1s", "--max-loss", "50%"], &limits[..]].concat();
    let mut soak = soak_at("2000", &folder, &port.to_string(), &limits);
    let (code, text, errors) = said(&soak.output().unwrap());
    assert_eq!(code, Some(0), "{text}{errors}");
    assert!(text.lines().any(|line| line.starts_with("descriptors ")), "{text}");
}

#[test]
fn samples_survive_the_end_of_the_soak_and_it_ends_with_its_server() {
    let (folder, (mut server, port)) = (Folder::new("soak-ends"), leaking());
    let json = folder.path().join("samples.jsonl");
    let mut command = soak(&folder, &port, &["-l", "1h", "--every", "1s", "--json"]);
    command.arg(&json).stdout(Stdio::null()).stderr(Stdio::piped());
    let has_samples = |count| {
        let limit = Instant::now() + Duration::from_secs(30);
        while Instant::now() < limit {
            let samples = fs::read_to_string(&json).unwrap_or_default();
            if samples.ends_with('\n') && samples.lines().count() >= count {
                return true;
            }
            thread::sleep(Duration::from_millis(50));
        }
        false
    };
    let mut killed = command.spawn().unwrap();
    assert!(has_samples(2));
    killed.kill().unwrap();
    killed.wait().unwrap();
    let kept = fs::read_to_string(&json).unwrap();
    assert!(kept.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));

    let left = command.args(["-t", "1"]).spawn().unwrap();
    thread::sleep(Duration::from_millis(500));
    assert!(has_samples(1));
    server.0.kill().unwrap();
    let (code, _, errors) = said(&left.wait_with_output().unwrap());
    assert_eq!((code, errors.as_str()), (Some(1), "zonda: the server's process has ended\n"));
}

#[test]
fn what_cannot_be_known_is_refused_before_the_hours() {
    let folder = Folder::new("soak-refused");
    let (_server, port) = leaking();
    for (port, arguments, expected) in [
        ("1", &["--max-rss-drift", "1M"][..], "zonda: no process of this machine has that port"),
        (&port, &["-l", "30s", "--max-p99-drift", "1ms"], "zonda: a drift shows in 8 samples"),
    ] {
        let (code, _, errors) = said(&soak(&folder, port, arguments).output().unwrap());
        assert!(code == Some(2) && errors.starts_with(expected), "{errors}");
    }
}
