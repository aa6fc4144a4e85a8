//! A Corefile that is served as it is, and upstreams that a resolv.conf names.

use crate::server::{http, http_to, wait_until};
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};
use zonda_testkit::cluster::{
    ApiServer, CoreDns, Endpoint, Port, endpoint_slice, headless_service, namespace,
};
use zonda_testkit::process::{Folder, Process, free_port};
use zonda_testkit::upstream::{Reply, always, say};
use zonda_testkit::{Question, Upstream, ask};

const BINARY: &str = env!("CARGO_BIN_EXE_zonda");
/// The Corefile that kubeadm gives a cluster.
const KUBEADM: &str = include_str!("../../../../crates/import/tests/corefile/kubeadm.corefile");

/// An upstream that has this last octet of an address for every name.
fn upstream(octet: u8) -> Upstream {
    Upstream::start([always().then([say(Reply::address(octet))])])
}

/// A server under test, with pages at ports of their own.
struct Corefile {
    process: Process,
    dns: SocketAddr,
    health: SocketAddr,
    ready: SocketAddr,
    metrics: SocketAddr,
}

impl Corefile {
    /// Starts a server by a command, in which `DNS` stands for its address, with the pages of the
    /// Corefile at ports of loopback.
    fn start(folder: &Folder, shell: &Command) -> Self {
        let address = |()| SocketAddr::from(([127, 0, 0, 1], free_port()));
        let [dns, health, ready, metrics] = [(); 4].map(address);
        let mut command = Command::new(shell.get_program());
        let place = |it: &std::ffi::OsStr| it.to_str().unwrap().replace("DNS", &dns.to_string());
        command
            .args(shell.get_args().map(place))
            .envs(shell.get_envs().filter_map(|(key, value)| Some((key, value?))));
        command.env("ZONDA_ADMIN_HEALTH", health.to_string());
        command.env("ZONDA_ADMIN_READY", ready.to_string());
        command.env("ZONDA_ADMIN_METRICS", metrics.to_string());
        command.env("ZONDA_ADMIN_SOCKET", folder.path().join("admin.sock"));
        command.env("ZONDA_WATCH_INTERVAL", "100 ms");
        command.env("ZONDA_STATE", folder.path().join("state"));
        let process = Process::start(&command, &folder.path().join("log")).unwrap();
        Self { process, dns, health, ready, metrics }
    }

    /// Starts a server of the Corefile in a folder.
    fn serve(folder: &Folder) -> Self {
        let mut command = Command::new(BINARY);
        command.args(["serve", "--listen", "DNS", "--corefile"]);
        command.arg(folder.path().join("Corefile"));
        let server = Self::start(folder, &command);
        server.await_health();
        server
    }

    /// Waits until the process answers.
    fn await_health(&self) {
        wait_until(&format!("the server is up: {}", self.process.log("")), || {
            TcpStream::connect(self.health).is_ok() && self.page(self.health, "/health").0 == 200
        });
    }

    /// Asks for a page as the kubelet does: by the address, without any token.
    fn page(&self, address: SocketAddr, path: &str) -> (u16, String) {
        http_to(&address.to_string(), address, &format!("GET {path} HTTP/1.1\r\n"))
    }

    /// The data of the answer to a question for an address, or the response code.
    fn answer(&self, name: &str) -> String {
        let reply = ask(self.dns, &Question::new(name, "A").recursive()).unwrap();
        reply.answer.first().map_or_else(|| reply.rcode_text(), |it| it.data.text.clone())
    }

    /// Waits until a name has this answer.
    fn await_answer(&self, name: &str, expected: &str) {
        let what = format!("{name} is {expected}; {}", self.process.log(""));
        wait_until(&what, || self.answer(name) == expected);
    }
}

/// The address that an upstream gives.
fn address(octet: u8) -> String {
    format!("192.0.2.{octet}")
}

/// Replaces a file as the kubelet replaces that of a ConfigMap: by another one.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, path).unwrap();
}

/// Runs `zonda` to its end.
fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.arg("20").arg(BINARY).args(arguments).output().unwrap()
}

/// What a command says on standard error.
fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn servers_of_a_resolv_conf_are_followed_and_a_broken_file_leaves_the_last_good_ones() {
    let folder = Folder::new("resolv");
    let (first, second) = (upstream(1), upstream(2));
    let file = folder.write("resolv.conf", format!("nameserver {}\n", first.address));
    let mut command = Command::new(BINARY);
    command.args(["serve", "--listen", "DNS", "--forward"]).arg(&file);
    let server = Corefile::start(&folder, &command);
    server.await_health();
    assert_eq!(server.answer("a.example"), address(1));
    let broken = "search example.org\nnameserver 192.0.2\n";
    for (number, (text, told)) in [
        (broken, "resolv.conf:2: \\\"192.0.2\\\" is no address"),
        ("search example.org\n", "resolv.conf: there is no `nameserver ADDRESS`"),
    ]
    .into_iter()
    .enumerate()
    {
        replace(&file, text);
        let log = server.process.log_soon(&told.replace("\\\"", "\""));
        let log = if log.is_empty() { server.process.log_soon(told) } else { log };
        assert!(log.contains("stay in force"), "{log}\n{}", server.process.log(""));
        assert_eq!(server.answer(&format!("b{number}.example")), address(1));
    }
    fs::remove_file(&file).unwrap();
    assert!(!server.process.log_soon("No such file").is_empty());
    assert_eq!(server.answer("c.example"), address(1));
    replace(&file, &format!("nameserver {}\n", second.address));
    let mut number = 0;
    wait_until("the second server is asked", || {
        number += 1;
        server.answer(&format!("d{number}.example")) == address(2)
    });
    assert!(!server.process.log_soon("other upstreams are in force").is_empty());
}

#[test]
fn a_resolv_conf_without_a_server_is_refused_at_the_start_with_its_line() {
    let folder = Folder::new("resolv");
    let file = folder.write("resolv.conf", "options ndots:5\nnameserver none\n");
    let output = run(&["serve", "--forward", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let said = said(&output);
    assert!(said.starts_with("--forward: ") && said.contains("resolv.conf:2: "), "{said}");
}

#[test]
fn a_corefile_is_followed_with_its_imports_and_a_broken_one_leaves_the_last_good_one() {
    let folder = Folder::new("corefile");
    let (first, second) = (upstream(1), upstream(2));
    folder.write("common.conf", "health\nready\nreload\nerrors\n");
    let of = |to: &Upstream, more: &str| {
        format!(".:53 {{\n import common.conf\n forward . {}\n{more}}}\n", to.address)
    };
    let file = folder.write("Corefile", of(&first, ""));
    let server = Corefile::serve(&folder);
    assert_eq!(server.answer("a.example"), address(1));
    for (number, (text, told)) in [
        (of(&first, " erratic\n"), "Corefile:4: lost: erratic"),
        (of(&first, "} }\n"), "Corefile:4:"),
        (of(&first, " forward .\n"), "Corefile:4:2: expected the address of a server"),
    ]
    .into_iter()
    .enumerate()
    {
        replace(&file, &text);
        let log = server.process.log_soon(told);
        assert!(!log.is_empty(), "{told}: {}", server.process.log(""));
        assert_eq!(server.answer(&format!("b{number}.example")), address(1));
    }
    replace(&file, &of(&second, ""));
    let mut number = 0;
    wait_until("the second server is asked", || {
        number += 1;
        server.answer(&format!("c{number}.example")) == address(2)
    });
    // What is imported is followed as well.
    let denied =
        "health\nready\nreload\nerrors\ntemplate ANY ANY no.example {\n rcode NXDOMAIN\n}\n";
    replace(&folder.path().join("common.conf"), denied);
    server.await_answer("x.no.example", "NXDOMAIN");
}

#[test]
fn a_change_of_cache_in_a_corefile_needs_no_restart() {
    let folder = Folder::new("corefile");
    let upstream = upstream(1);
    let of = |secs: u32| {
        let to = upstream.address;
        format!(".:53 {{\n health\n reload\n forward . {to}\n cache {secs}\n}}\n")
    };
    let file = folder.write("Corefile", of(50));
    let server = Corefile::serve(&folder);
    let ttl =
        |name: &str| ask(server.dns, &Question::new(name, "A").recursive()).unwrap().answer[0].ttl;
    assert!((49..=50).contains(&ttl("a.example")));
    replace(&file, &of(20));
    let mut number = 0;
    wait_until("new answers are kept for 20 s", || {
        number += 1;
        ttl(&format!("b{number}.example")) <= 20
    });
    assert!(ttl("a.example") > 20, "what is cached stays");
    let log = server.process.log("");
    assert!(!log.contains("next start"), "{log}");
}

#[test]
fn a_followed_corefile_gets_a_block_at_a_new_port_and_another_address() {
    let folder = Folder::new("corefile");
    let (first, second) = (upstream(1), upstream(2));
    let [one, other] = [(); 2].map(|()| free_port());
    let block = |(ip, port): (&str, u16), upstream: &Upstream| {
        let to = upstream.address;
        format!(".:{port} {{\n bind {ip}\n health\n reload\n forward . {to}\n}}\n")
    };
    let file = folder.write("Corefile", block(("127.0.0.1", one), &first));
    let mut command = Command::new(BINARY);
    command.args(["serve", "--corefile"]).arg(folder.path().join("Corefile"));
    let server = Corefile::start(&folder, &command);
    server.await_health();
    let answers = |ip: &str, port: u16| {
        let question = Question::new("a.example", "A").recursive();
        let reply = ask(format!("{ip}:{port}").parse().unwrap(), &question);
        reply.ok().and_then(|reply| Some(reply.answer.first()?.data.text.clone()))
    };
    assert_eq!(answers("127.0.0.1", one), Some(address(1)));
    let both = block(("127.0.0.1", one), &first) + &block(("127.0.0.1", other), &second);
    replace(&file, &both);
    let second_answers = || answers("127.0.0.1", other) == Some(address(2));
    wait_until("the new port is answered on", second_answers);
    assert_eq!(answers("127.0.0.1", one), Some(address(1)));
    replace(&file, &block(("127.0.0.2", other), &second));
    wait_until("the address is another one", || answers("127.0.0.2", other) == Some(address(2)));
    wait_until("the former ones are closed", || {
        answers("127.0.0.1", one).is_none() && answers("127.0.0.1", other).is_none()
    });
    let log = server.process.log("");
    assert!(!log.contains("next start"), "{log}");
}

#[test]
fn a_followed_corefile_whose_address_is_taken_is_tried_again() {
    let folder = Folder::new("corefile");
    let (upstream, one) = (upstream(1), free_port());
    let block = |port: u16| {
        let to = upstream.address;
        format!(".:{port} {{\n bind 127.0.0.1\n health\n reload\n forward . {to}\n}}\n")
    };
    let file = folder.write("Corefile", block(one));
    let mut command = Command::new(BINARY);
    command.args(["serve", "--corefile"]).arg(folder.path().join("Corefile"));
    let server = Corefile::start(&folder, &command);
    server.await_health();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = taken.local_addr().unwrap().port();
    replace(&file, &(block(one) + &block(other)));
    wait_until("the address cannot be bound", || {
        server.process.log("").contains("cannot listen on")
    });
    drop(taken);
    let question = Question::new("a.example", "A").recursive();
    let answers = |port: u16| ask(([127, 0, 0, 1], port).into(), &question).is_ok();
    wait_until("the address is answered on", || answers(other));
    assert!(answers(one));
}

#[test]
fn rules_of_acl_with_types_are_for_questions_for_these() {
    let folder = Folder::new("corefile");
    let upstream = upstream(1);
    let rules = "filter type AAAA net 127.0.0.0/8\n block type TXT MX\n allow type SRV net *\n \
                 drop net 192.0.2.0/24\n";
    let to = upstream.address;
    folder.write(
        "Corefile",
        format!(".:53 {{\n health\n acl {{\n {rules} }}\n forward . {to}\n}}\n"),
    );
    let server = Corefile::serve(&folder);
    assert_eq!(server.answer("a.example"), address(1));
    for (qtype, expected) in [("AAAA", "NOERROR"), ("TXT", "REFUSED"), ("MX", "REFUSED")] {
        let reply = ask(server.dns, &Question::new("a.example", qtype).recursive()).unwrap();
        assert_eq!((&*reply.rcode_text(), reply.answer.len()), (expected, 0), "{qtype}");
    }
    assert_eq!(upstream.asked(), 1, "no other question has been forwarded");
}

#[test]
fn a_change_of_log_debug_and_timeouts_in_a_corefile_needs_no_restart() {
    let folder = Folder::new("corefile");
    let upstream = upstream(1);
    let of = |plugins: &str, more: &str| {
        let to = upstream.address;
        format!(".:53 {{\n health\n reload\n forward . {to}\n{plugins}}}\n{more}")
    };
    let file = folder.write("Corefile", of("", ""));
    let server = Corefile::serve(&folder);
    let mut number = 0;
    let mut is_logged = || {
        number += 1;
        let name = format!("a{number}.example");
        assert_eq!(server.answer(&name), address(1));
        thread::sleep(Duration::from_millis(20)); // the line is written by another thread
        !server.process.log(&format!(" udp {name}. IN A NOERROR ")).is_empty()
    };
    assert!(!is_logged());
    let idle_for = |server: &Corefile| {
        let (mut client, start) = (TcpStream::connect(server.dns).unwrap(), Instant::now());
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        assert_eq!(client.read(&mut [0]).unwrap(), 0, "the server has ended the connection");
        start.elapsed()
    };
    let all = " log\n debug\n timeouts {\n  idle 1s\n }\n";
    replace(&file, &of(all, ""));
    wait_until("queries are logged", &mut is_logged);
    let time = idle_for(&server);
    assert!((0.9..5.0).contains(&time.as_secs_f32()), "{time:?}, where ten seconds is the default");
    let secondary = "a.test:53 {\n secondary {\n  transfer from 127.0.0.1:1\n }\n}\n";
    replace(&file, &of(all, secondary));
    let log = server.process.log_soon("a zone has no data yet");
    assert!(log.contains("DEBUG"), "{log}{}", server.process.log(""));
    let details = || server.process.log("DEBUG");
    // What is taken out of the Corefile is no longer in force.
    replace(&file, &of("", ""));
    wait_until("queries are not logged", || (0..3).all(|_| !is_logged()));
    let former = details();
    replace(&file, &of("", secondary));
    wait_until("the zone is served again", || server.answer("a.test") == "SERVFAIL");
    assert_eq!(details(), former);
    let log = server.process.log("");
    assert!(!log.contains("next start"), "{log}");
}

#[test]
fn a_query_log_that_cannot_be_opened_leaves_the_configuration_in_force() {
    let folder = Folder::new("query-log");
    let (first, second) = (upstream(1), upstream(2));
    let of = |to: &Upstream, log: &Path| {
        let (to, log) = (to.address, log.display());
        format!(
            "version = 1\n[[zone]]\nname = \".\"\n[zone.forward]\nto = [\"{to}\"]\n\
             [query-log]\noutput = \"{log}\"\n"
        )
    };
    let [log, other] = ["queries", "others"].map(|name| folder.path().join(name));
    let file = folder.write("zonda.toml", of(&first, &log));
    let mut command = Command::new(BINARY);
    command.args(["serve", "--listen", "DNS", "--config", file.to_str().unwrap()]);
    let server = Corefile::start(&folder, &command);
    server.await_health();
    let wait_for_line = |log: &Path, name: &str, octet: u8| {
        assert_eq!(server.answer(name), address(octet));
        let is_there = || fs::read_to_string(log).unwrap_or_default().contains(name);
        wait_until("the query is logged", is_there);
    };
    wait_for_line(&log, "a.example", 1);
    replace(&file, &of(&second, &folder.path().join("missing/queries")));
    server.process.signal("HUP");
    assert!(!server.process.log_soon("the query log cannot be opened: ").is_empty());
    wait_for_line(&log, "b.example", 1);
    replace(&file, &of(&second, &other));
    server.process.signal("HUP");
    wait_until("the other file is there", || other.exists());
    let mut number = 0;
    wait_until("the second server is asked", || {
        number += 1;
        server.answer(&format!("c{number}.example")) == address(2)
    });
    // The log is changed when the configuration is in force.
    wait_until("queries are logged there", || {
        number += 1;
        let _ = server.answer(&format!("c{number}.example"));
        fs::read_to_string(&other).is_ok_and(|text| text.contains(".example"))
    });
    wait_for_line(&other, "d.example", 2);
    assert!(!fs::read_to_string(&log).unwrap().contains("d.example"));
}

#[test]
fn a_corefile_without_reload_is_read_anew_by_sighup_only() {
    let folder = Folder::new("corefile");
    let (first, second) = (upstream(1), upstream(2));
    let of = |to: &Upstream| format!(".:53 {{\n health\n forward . {}\n}}\n", to.address);
    let file = folder.write("Corefile", of(&first));
    let server = Corefile::serve(&folder);
    replace(&file, &of(&second));
    thread::sleep(Duration::from_millis(500));
    assert_eq!(server.answer("a.example"), address(1));
    server.process.signal("HUP");
    let mut number = 0;
    wait_until("the second server is asked", || {
        number += 1;
        server.answer(&format!("b{number}.example")) == address(2)
    });
}

#[test]
fn addresses_that_stand_in_a_corefile_are_served_where_nothing_can_be_written() {
    let folder = Folder::new("corefile");
    let upstream = upstream(1);
    let of = |octet: u8| {
        let to = upstream.address;
        format!(
            ".:53 {{\n health\n reload\n hosts {{\n  203.0.113.{octet} nas.lan\n  fallthrough\n \
             }}\n forward . {to}\n}}\n"
        )
    };
    let file = folder.write("Corefile", of(5));
    let server = Corefile::serve(&folder);
    assert_eq!(server.answer("nas.lan"), "203.0.113.5");
    assert_eq!(server.answer("a.example"), address(1));
    assert!(!folder.path().join("hosts").exists());
    replace(&file, &of(6));
    server.await_answer("nas.lan", "203.0.113.6");
}

#[test]
fn whoami_tells_a_client_its_address_and_port() {
    let folder = Folder::new("corefile");
    folder.write("db.e.org", "$TTL 60\n@ SOA ns host 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n");
    folder.write("Corefile", ".:53 {\n health\n file db.e.org e.org\n whoami\n}\n");
    let server = Corefile::serve(&folder);
    assert_eq!(server.answer("ns.e.org"), "192.0.2.1");
    for (name, owner) in [("a.example", "_udp.a.example."), (".", "_udp.")] {
        let reply = ask(server.dns, &Question::new(name, "MX")).unwrap();
        assert_eq!((reply.rcode_text(), reply.answer.len()), ("NOERROR".to_owned(), 0), "{name}");
        let [address, service] = &reply.additional[..] else { panic!("{reply:?}") };
        assert_eq!(address.data.text, "127.0.0.1");
        let service = service.to_string();
        let words: Vec<&str> = service.split_whitespace().collect();
        assert_eq!(words[0], owner, "{service}");
        let port: u16 = words[words.len() - 2].parse().unwrap();
        assert!(port != 0 && words.last() == Some(&"."), "{service}");
    }
    let question = Question::new("b.example", "A").over_tcp();
    let reply = ask(server.dns, &question).unwrap();
    assert!(reply.additional[1].to_string().starts_with("_tcp.b.example. "), "{reply:?}");
}

#[test]
fn the_target_of_a_templates_alias_is_asked_of_upstreams() {
    let folder = Folder::new("corefile");
    let upstream = upstream(7);
    let template = "template IN ANY go.example {\n  \
                    answer \"{{ .Name }} 60 IN CNAME www.far.example.\"\n }";
    let text = format!(".:53 {{\n health\n {template}\n forward . {}\n}}\n", upstream.address);
    folder.write("Corefile", text);
    let server = Corefile::serve(&folder);
    for _ in 0..2 {
        let question = Question::new("a.go.example", "A").recursive();
        let reply = ask(server.dns, &question).unwrap();
        let records: Vec<String> = reply.answer.iter().map(ToString::to_string).collect();
        assert_eq!(records.len(), 2, "{reply:?}");
        assert!(records[0].ends_with("CNAME www.far.example."), "{records:?}");
        assert!(records[1].starts_with("www.far.example. "), "{records:?}");
        assert!(records[1].ends_with(&address(7)), "{records:?}");
    }
    let asked = upstream.count(|query| query.name.trim_end_matches('.') == "www.far.example");
    assert_eq!(asked, 1, "the second answer is cached");
}

#[test]
fn a_corefile_with_lines_that_would_be_lost_is_refused_with_all_of_them() {
    let folder = Folder::new("corefile");
    let text = ".:53 {\n erratic\n forward . 192.0.2.1\n pprof\n}\n";
    let file = folder.write("Corefile", text);
    let path = file.to_str().unwrap();
    let served = run(&["serve", "--corefile", path]);
    assert_eq!(served.status.code(), Some(2));
    let imported = said(&run(&["import", path]));
    let lost: Vec<&str> = imported.lines().filter(|line| line.contains(": lost: ")).collect();
    assert_eq!(lost.len(), 2, "{imported}");
    let (told, served) = (lost.join("\n"), said(&served));
    assert!(served.starts_with(&told), "{served}");
    assert!(told.contains("Corefile:2: lost: erratic") && told.contains("Corefile:4: lost: pprof"));
}

#[test]
fn an_error_of_the_configuration_is_told_by_the_line_of_the_corefile() {
    let folder = Folder::new("corefile");
    let text = ".:53 {\n errors\n forward . tls://192.0.2.1 {\n  tls none.pem\n }\n}\n";
    let file = folder.write("Corefile", text);
    let output = run(&["serve", "--corefile", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let said = said(&output);
    assert!(said.contains("Corefile:4:1: ") && said.contains("none.pem"), "{said}");
    assert!(!said.contains(".toml"), "{said}");
    let checked = run(&["check", "--corefile", file.to_str().unwrap()]);
    assert_eq!(checked.status.code(), Some(1));
}

#[test]
fn a_server_that_is_to_stop_answers_for_the_time_of_lameduck_and_is_not_ready() {
    let folder = Folder::new("corefile");
    let upstream = upstream(1);
    let to = upstream.address;
    let text = format!(".:53 {{\n health {{\n  lameduck 3s\n }}\n ready\n forward . {to}\n}}\n");
    folder.write("Corefile", text);
    let mut server = Corefile::serve(&folder);
    assert_eq!(server.page(server.ready, "/ready"), (200, "OK".to_owned()));
    let start = Instant::now();
    server.process.signal("TERM");
    wait_until("the server says that it stops", || server.page(server.ready, "/ready").0 == 503);
    assert_eq!(server.page(server.health, "/health"), (200, "OK".to_owned()));
    assert_eq!(server.answer("a.example"), address(1));
    wait_until("the server has ended", || server.process.ended());
    assert!(start.elapsed() >= Duration::from_secs(3), "{:?}", start.elapsed());
}

#[test]
fn pages_are_answered_where_they_are_configured_and_nothing_else() {
    let folder = Folder::new("corefile");
    let upstream = upstream(1);
    folder
        .write("Corefile", format!(".:53 {{\n prometheus\n forward . {}\n}}\n", upstream.address));
    let server = Corefile::serve(&folder);
    let pages =
        [(server.health, "/health"), (server.ready, "/ready"), (server.metrics, "/metrics")];
    for (address, own) in pages {
        for path in ["/health", "/ready", "/metrics", "/v1/status", "/v1"] {
            let expected = if path == own { 200 } else { 404 };
            assert_eq!(server.page(address, path).0, expected, "{path} at the address of {own}");
        }
        assert_eq!(http(address, &format!("POST {own} HTTP/1.1\r\n")).0, 405);
        assert_eq!(http_to("evil.example", address, &format!("GET {own} HTTP/1.1\r\n")).0, 421);
    }
}

#[test]
fn metrics_have_the_names_of_coredns_and_add_up() {
    let folder = Folder::new("corefile");
    let upstream = upstream(1);
    let to = upstream.address;
    let block = |zone: &str| format!("{zone}:53 {{\n prometheus\n forward . {to}\n}}\n");
    folder.write("Corefile", block(".") + &block("corp.example"));
    let server = Corefile::serve(&folder);
    for name in ["a.example", "a.example", "b.example"] {
        server.answer(name);
    }
    let question = Question::new("www.Corp.example", "A").recursive().dnssec().over_tcp();
    ask(server.dns, &question).unwrap();
    let own = format!("server=\"dns://{}\"", server.dns);
    let of = |zone: &str| format!("{own},zone=\"{zone}\",view=\"\"");
    let (root, corp) = (of("."), of("corp.example."));
    let expected = [
        format!("coredns_dns_requests_total{{{root},proto=\"udp\",family=\"1\",type=\"A\"}} 3"),
        format!("coredns_dns_requests_total{{{corp},proto=\"tcp\",family=\"1\",type=\"A\"}} 1"),
        format!("coredns_dns_do_requests_total{{{root}}} 0"),
        format!("coredns_dns_do_requests_total{{{corp}}} 1"),
        format!("coredns_dns_responses_total{{{root},rcode=\"NOERROR\",plugin=\"\"}} 3"),
        format!("coredns_dns_responses_total{{{corp},rcode=\"NOERROR\",plugin=\"\"}} 1"),
        format!("coredns_plugin_enabled{{{root},name=\"forward\"}} 1"),
        format!("coredns_plugin_enabled{{{corp},name=\"prometheus\"}} 1"),
        format!("coredns_cache_hits_total{{{own},type=\"\",zones=\"\",view=\"\"}} 1"),
        format!("coredns_cache_misses_total{{{own},zones=\"\",view=\"\"}} 3"),
        format!("coredns_forward_requests_total{{to=\"{to}\"}} 3"),
        "coredns_panics_total 0".to_owned(),
    ];
    let mut page = String::new();
    wait_until("all replies are counted", || {
        page = server.page(server.metrics, "/metrics").1;
        expected[..2].iter().all(|line| page.contains(line))
    });
    for line in &expected {
        assert!(page.lines().any(|it| it == line), "{line} is not in\n{page}");
    }
    let mut names: Vec<&str> = page
        .lines()
        .filter(|it| !it.starts_with('#'))
        .filter_map(|it| it.rsplit_once(' '))
        .map(|it| it.0)
        .collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "a series stands twice");
}

#[test]
fn plugins_are_told_of_each_zone_also_of_those_whose_queries_are_counted_together() {
    let folder = Folder::new("corefile");
    let upstream = upstream(1);
    let to = upstream.address;
    let block =
        |number: usize| format!("z{number}.example:53 {{\n prometheus\n forward . {to}\n}}\n");
    folder.write("Corefile", (0..18).map(block).collect::<String>());
    let server = Corefile::serve(&folder);
    let page = server.page(server.metrics, "/metrics").1;
    let own = format!("server=\"dns://{}\"", server.dns);
    for number in 0..18 {
        let of = format!("{own},zone=\"z{number}.example.\",view=\"\",name=\"forward\"");
        let line = format!("coredns_plugin_enabled{{{of}}} 1");
        assert!(page.lines().any(|it| it == line), "{line} is not in\n{page}");
    }
}

#[test]
fn zones_keep_their_labels_when_others_come_and_go() {
    let folder = Folder::new("corefile");
    let upstream = upstream(1);
    let to = upstream.address;
    let of = |zones: &[&str]| -> String {
        let block =
            |zone: &&str| format!("{zone}:53 {{\n reload\n prometheus\n forward . {to}\n}}\n");
        zones.iter().map(block).collect()
    };
    let file = folder.write("Corefile", of(&["one.example", "two.example"]));
    let server = Corefile::serve(&folder);
    let count = |zone: &str, rcode: &str| {
        let labels = format!("zone=\"{zone}\",view=\"\",rcode=\"{rcode}\",plugin=\"\"");
        let page = server.page(server.metrics, "/metrics").1;
        let line = page.lines().find(|line| line.contains(&labels)).map(str::to_owned);
        line.and_then(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).unwrap_or(0)
    };
    server.answer("a.two.example");
    assert_eq!(server.answer("a.three.example"), "REFUSED");
    wait_until("both are counted", || {
        count("two.example.", "NOERROR") == 1 && count("dropped", "REFUSED") == 1
    });
    replace(&file, &of(&["two.example", "three.example"]));
    server.await_answer("b.three.example", &address(1));
    server.answer("b.two.example");
    wait_until("the zones are told apart", || {
        (count("two.example.", "NOERROR"), count("three.example.", "NOERROR")) == (2, 1)
    });
    assert_eq!(count("one.example.", "NOERROR"), 0);
}

#[test]
fn the_page_lists_all_metrics_that_have_names_of_coredns() {
    let folder = Folder::new("corefile");
    // A cluster that is not there, as some metrics speak of one.
    let cluster = "kubernetes cluster.local {\n  endpoint http://127.0.0.1:1\n }";
    let text = format!(".:53 {{\n prometheus\n {cluster}\n forward . 192.0.2.1\n}}\n");
    folder.write("Corefile", text);
    let server = Corefile::serve(&folder);
    let page = server.page(server.metrics, "/metrics").1;
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE coredns_"));
    let written: BTreeSet<&str> = types.filter_map(|it| it.split(' ').next()).collect();
    let docs = include_str!("../../../../docs/coming-from-coredns.md");
    let rows = docs.lines().filter(|line| line.starts_with("| `coredns_"));
    let firsts = rows.filter_map(|row| row.split('|').nth(1));
    let listed: BTreeSet<&str> =
        firsts.flat_map(|it| it.split('`').filter_map(|it| it.strip_prefix("coredns_"))).collect();
    assert_eq!(written, listed, "the metrics that there are, and those of the page");
}

#[test]
fn real_cluster_kubeadms_corefile_is_served_unchanged_in_what_looks_like_a_pod() {
    let api = ApiServer::start();
    api.client().create(&namespace("shop"));
    let ports = [Port::tcp("http", 80)];
    api.client().create(&headless_service("shop", "db", &ports));
    let endpoints = [Endpoint::new("10.244.0.1").hostname("db-0")];
    api.client().create(&endpoint_slice("shop", "db-4", "db", &ports, &endpoints));
    let (first, second) = (upstream(1), upstream(2));
    let folder = Folder::new("pod");
    let file = folder.write("Corefile", KUBEADM);
    folder.write("resolv.conf", format!("nameserver {}\n", first.address));
    let command = pod_command(&folder, &api, &format!("--corefile {}", file.display()));
    let server = Corefile::start(&folder, &command);
    server.await_health();
    // The probes of CoreDNS's Deployment.
    assert_eq!(server.page(server.health, "/health"), (200, "OK".to_owned()));
    wait_until(&format!("the server is ready: {}", server.process.log("")), || {
        server.page(server.ready, "/ready") == (200, "OK".to_owned())
    });
    server.await_answer("db-0.db.shop.svc.cluster.local", "10.244.0.1");
    assert_eq!(server.answer("none.shop.svc.cluster.local"), "NXDOMAIN");
    assert_eq!(server.answer("1-2-3-4.shop.pod.cluster.local"), "1.2.3.4");
    assert_eq!(server.answer("a.example"), address(1));
    let page = server.page(server.metrics, "/metrics").1;
    assert!(page.contains("\ncoredns_dns_requests_total{"), "{page}");
    // A change of resolv.conf in its place, as the kubelet binds it, then one of the Corefile.
    fs::write(folder.path().join("resolv.conf"), format!("nameserver {}\n", second.address))
        .unwrap();
    let mut number = 0;
    wait_until("the other server is asked", || {
        number += 1;
        server.answer(&format!("b{number}.example")) == address(2)
    });
    let denying = KUBEADM.replace(
        "    loop\n",
        "    loop\n    template ANY ANY no.example {\n        rcode NXDOMAIN\n    }\n",
    );
    replace(&folder.path().join("Corefile"), &denying);
    server.await_answer("x.no.example", "NXDOMAIN");
    assert_eq!(server.answer("db-0.db.shop.svc.cluster.local"), "10.244.0.1");
}

#[test]
fn real_cluster_names_are_kept_in_the_state_directory_for_a_start_without_the_api() {
    let mut api = ApiServer::start();
    api.client().create(&namespace("shop"));
    let ports = [Port::tcp("http", 80)];
    api.client().create(&headless_service("shop", "db", &ports));
    let endpoints = [Endpoint::new("10.244.0.1").hostname("db-0")];
    api.client().create(&endpoint_slice("shop", "db-4", "db", &ports, &endpoints));
    let upstream = upstream(1);
    let folder = Folder::new("kept");
    folder.write("resolv.conf", format!("nameserver {}\n", upstream.address));
    let corefile = folder.write("Corefile", KUBEADM);
    let by_flags = "--kubernetes cluster.local --forward /etc/resolv.conf".to_owned();
    let by_corefile = format!("--corefile {}", corefile.display());
    for arguments in [by_flags, by_corefile] {
        api.start_api();
        let server = Corefile::start(&folder, &pod_command(&folder, &api, &arguments));
        server.await_health();
        server.await_answer("db-0.db.shop.svc.cluster.local", "10.244.0.1");
        assert_eq!(server.answer("a.example"), address(1), "{arguments}");
        assert_eq!(server.answer("none.shop.svc.cluster.local"), "NXDOMAIN");
        assert_eq!(server.answer("1-2-3-4.shop.pod.cluster.local"), "1.2.3.4");
        let kept = || {
            let files = fs::read_dir(folder.path().join("state")).into_iter().flatten();
            let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
            names.filter(|name| name.ends_with(".snapshot")).collect::<Vec<String>>()
        };
        wait_until(&format!("the names are kept: {}", server.process.log("")), || {
            kept().len() == 1
        });
        assert!(kept()[0].starts_with("cluster-cluster.local-"), "{:?}", kept());
        server.process.signal("KILL");
        drop(server);
        api.kill_api();

        let server = Corefile::start(&folder, &pod_command(&folder, &api, &arguments));
        server.await_health();
        server.await_answer("db-0.db.shop.svc.cluster.local", "10.244.0.1");
        assert_eq!(server.answer("none.shop.svc.cluster.local"), "SERVFAIL", "{arguments}");
        let (code, text) = server.page(server.ready, "/ready");
        assert!(code == 200 && text.contains("is stale: its names are those of"), "{text}");
        drop(server);
        fs::remove_dir_all(folder.path().join("state")).unwrap();
    }
}

#[test]
fn real_cluster_a_state_directory_that_cannot_be_written_to_is_told_once() {
    let api = ApiServer::start();
    api.client().create(&namespace("shop"));
    let folder = Folder::new("unkept");
    folder.write("resolv.conf", "nameserver 192.0.2.53\n");
    folder.write("state", "a file");
    let text = KUBEADM.replace("cluster.local", "cluster.local cluster.example");
    let file = folder.write("Corefile", text);
    let server = Corefile::start(
        &folder,
        &pod_command(&folder, &api, &format!("--corefile {}", file.display())),
    );
    server.await_health();
    server.await_answer("none.shop.svc.cluster.local", "NXDOMAIN");
    server.process.signal("HUP");
    assert!(!server.process.log_soon("reload").is_empty(), "{}", server.process.log(""));
    server.await_answer("1-2-3-4.shop.pod.cluster.example", "1.2.3.4");
    let told = server.process.log("not kept for a start without the API server");
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn real_cluster_hosts_of_a_corefile_come_before_the_cluster_as_in_coredns() {
    let api = ApiServer::start();
    api.client().create(&namespace("shop"));
    let ports = [Port::tcp("http", 80)];
    api.client().create(&headless_service("shop", "db", &ports));
    let endpoints = [
        Endpoint::new("10.244.0.1").hostname("db-0"),
        Endpoint::new("10.244.0.2").hostname("db-1"),
    ];
    api.client().create(&endpoint_slice("shop", "db-4", "db", &ports, &endpoints));
    let (upstream, folder) = (upstream(1), Folder::new("hosts"));
    let hosts = "10.9.9.1 db-0.db.shop.svc.cluster.local\n10.9.9.2 new.cluster.local nas.lan\n";
    folder.write("node-hosts", hosts);
    let text = format!(
        ". {{\n bind 127.0.0.1\n kubernetes cluster.local in-addr.arpa {{\n  kubeconfig {}\n  \
         fallthrough in-addr.arpa\n }}\n hosts {} {{\n  fallthrough\n }}\n forward . {}\n}}\n",
        api.kubeconfig_file().display(),
        folder.path().join("node-hosts").display(),
        upstream.address
    );
    folder.write("Corefile", &text);
    let server = Corefile::serve(&folder);
    let core_dns = CoreDns::start(&text, Path::new("/"), &["cluster.local."]);
    let data = |server: SocketAddr, name: &str, rtype: &str| {
        let reply = ask(server, &Question::new(name, rtype).recursive()).unwrap();
        reply.answer.first().map_or_else(|| reply.rcode_text(), |it| it.data.text.clone())
    };
    for (name, rtype, expected) in [
        ("db-1.db.shop.svc.cluster.local", "A", "10.244.0.2"),
        ("db-0.db.shop.svc.cluster.local", "A", "10.9.9.1"),
        ("new.cluster.local", "A", "10.9.9.2"),
        ("nas.lan", "A", "10.9.9.2"),
        ("none.cluster.local", "A", "NXDOMAIN"),
        ("1.9.9.10.in-addr.arpa", "PTR", "db-0.db.shop.svc.cluster.local."),
        ("2.0.244.10.in-addr.arpa", "PTR", "db-1.db.shop.svc.cluster.local."),
        ("a.example", "A", "192.0.2.1"),
    ] {
        for (which, address) in [("zonda", server.dns), ("coredns", core_dns.address)] {
            let mut found = String::new();
            wait_until(&format!("{which} has {expected} for {name}"), || {
                found = data(address, name, rtype);
                found == expected
            });
        }
    }
}

#[test]
fn names_of_hosts_in_the_zone_of_a_cluster_are_answered_before_the_cluster_is_known() {
    let folder = Folder::new("hosts-unknown");
    folder.write("hosts", "10.9.9.2 new.cluster.local nas.lan\n");
    let text = format!(
        ". {{\n kubernetes cluster.local in-addr.arpa {{\n  endpoint http://127.0.0.1:{}\n  \
         fallthrough in-addr.arpa\n }}\n hosts {} {{\n  fallthrough\n }}\n forward . \
         127.0.0.1:{}\n}}\n",
        free_port(),
        folder.path().join("hosts").display(),
        free_port()
    );
    folder.write("Corefile", &text);
    let server = Corefile::serve(&folder);
    let of = |name: &str| server.answer(name);
    assert_eq!(of("new.cluster.local"), "10.9.9.2");
    assert_eq!(of("nas.lan"), "10.9.9.2");
    assert_eq!(of("none.cluster.local"), "SERVFAIL");
    let pointer = Question::new("2.9.9.10.in-addr.arpa", "PTR").recursive();
    let reply = ask(server.dns, &pointer).unwrap();
    assert_eq!(reply.answer[0].data.text, "new.cluster.local.");
}

#[test]
fn probes_at_the_default_ports_are_answered_where_nothing_can_be_written() {
    let folder = Folder::new("ports");
    folder.write("Corefile", KUBEADM);
    folder.write("resolv.conf", "nameserver 192.0.2.53\n");
    let here = folder.path().display();
    // A network of its own, in which all ports are free; an API server is not in it.
    let script = format!(
        "set -e; ip link set lo up; mount --rbind / /; \
         mount --bind {here}/resolv.conf /etc/resolv.conf; mount -o remount,ro,bind /; \
         mount -t tmpfs pod /run; mount -o remount,ro /run\n\
         KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT=1 \
         {BINARY} serve --corefile {here}/Corefile >&2 & server=$!\n\
         for try in $(seq 200); do curl -sf 127.0.0.1:8080/health >&2 && break; sleep 0.1; done\n\
         for page in 127.0.0.1:8080/health '[::1]:8080/health' 127.0.0.1:8181/ready; do\n\
         curl -sg -w ' %{{http_code}}\\n' http://$page; done\n\
         curl -s 127.0.0.1:9153/metrics | grep -c '^coredns_build_info'\n\
         dig @127.0.0.1 web.default.svc.cluster.local | grep -o 'status: [A-Z]*'\n\
         kill -KILL $server"
    );
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "60", "unshare", "--mount", "--net"]);
    if !is_root() {
        command.arg("--map-root-user");
    }
    let output = command.args(["sh", "-c", &script]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = printed.lines().collect();
    let log = said(&output);
    assert_eq!(lines.first_chunk(), Some(&["OK 200", "OK 200"]), "{printed}{log}");
    assert!(printed.contains("zone cluster.local. is not served"), "{printed}{log}");
    assert!(printed.contains("\n 503\n1\nstatus: SERVFAIL\n"), "{printed}{log}");
}

/// The default Corefile of a distribution.
macro_rules! corefile {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../../../crates/import/tests/corefile/", $name, ".corefile")),
        )
    };
}

#[test]
fn real_cluster_names_are_answered_by_the_corefile_of_each_distribution() {
    let api = ApiServer::start();
    api.client().create(&namespace("shop"));
    let ports = [Port::tcp("http", 80)];
    api.client().create(&headless_service("shop", "db", &ports));
    let endpoints = [Endpoint::new("10.244.0.1").hostname("db-0")];
    api.client().create(&endpoint_slice("shop", "db-4", "db", &ports, &endpoints));
    let upstream = upstream(1);
    for (name, text) in [
        corefile!("k3s"),
        corefile!("kops"),
        corefile!("eks"),
        corefile!("aks"),
        corefile!("openshift"),
        corefile!("minikube"),
    ] {
        let folder = Folder::new(name);
        let file = folder.write("Corefile", text);
        folder.write("resolv.conf", format!("nameserver {}\n", upstream.address));
        let command = pod_command(&folder, &api, &format!("--corefile {}", file.display()));
        let server = Corefile::start(&folder, &command);
        server.await_health();
        server.await_answer("db-0.db.shop.svc.cluster.local", "10.244.0.1");
        assert_eq!(server.answer("none.shop.svc.cluster.local"), "NXDOMAIN", "{name}");
        assert_eq!(server.answer("1-2-3-4.shop.pod.cluster.local"), "1.2.3.4", "{name}");
        assert_eq!(server.answer("a.example"), address(1), "{name}");
        let name_of_address = Question::new("1.0.244.10.in-addr.arpa", "PTR").recursive();
        let names = ask(server.dns, &name_of_address).unwrap().answer;
        assert_eq!(names[0].data.text, "db-0.db.shop.svc.cluster.local.", "{name}");
    }
}

/// The command that serves in what looks like a pod of a cluster, with the `resolv.conf` of a
/// folder.
fn pod_command(folder: &Folder, api: &ApiServer, arguments: &str) -> Command {
    folder.write("token", api.token());
    let ca = api.ca_file().display();
    let (here, account) = (folder.path().display(), "/run/secrets/kubernetes.io/serviceaccount");
    // Mounts of this process alone: the account of the pod, and its resolv.conf.
    let script = format!(
        "mount -t tmpfs pod /run && mkdir -p {account} && cp {here}/token {account}/token && \
         cp {ca} {account}/ca.crt && echo default > {account}/namespace && \
         mount --bind {here}/resolv.conf /etc/resolv.conf && \
         exec {BINARY} serve --listen DNS {arguments}"
    );
    let mut command = Command::new("unshare");
    if !is_root() {
        command.arg("--map-root-user");
    }
    command.args(["--mount", "sh", "-c", &script]);
    let api_address = api.address();
    command.env("KUBERNETES_SERVICE_HOST", api_address.ip().to_string());
    command.env("KUBERNETES_SERVICE_PORT", api_address.port().to_string());
    command
}

/// Whether the test runs as root.
fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().unwrap();
    output.stdout.trim_ascii() == b"0"
}

#[test]
fn server_blocks_at_different_ports_answer_each_at_its_own() {
    let folder = Folder::new("ports");
    folder.write("example.org.zone", crate::server::zone(1));
    let (first, second) = (upstream(1), upstream(2));
    let ports = [(); 3].map(|()| free_port());
    let text = format!(
        ".:{0} {{\n  bind 127.0.0.1\n  forward . {first}\n  cache 30\n}}\n\
         .:{1} {{\n  bind 127.0.0.1\n  forward . {second}\n  \
         template IN A made.example.com {{\n    answer \"{{{{ .Name }}}} 60 IN A 192.0.2.5\"\n    \
         fallthrough\n  }}\n}}\n\
         example.org:{1} example.org:{2} {{\n  bind 127.0.0.1\n  file {zone}\n}}\n",
        ports[0],
        ports[1],
        ports[2],
        first = first.address,
        second = second.address,
        zone = folder.path().join("example.org.zone").display(),
    );
    let file = folder.write("Corefile", text);
    let mut command = Command::new(BINARY);
    command.args(["serve", "--corefile"]).arg(file);
    command.env("ZONDA_ADMIN_SOCKET", folder.path().join("admin.sock"));
    command.env("ZONDA_ADMIN_ADDRESS", "off").env("ZONDA_STATE", folder.path().join("state"));
    let process = Process::start(&command, &folder.path().join("log")).unwrap();
    let says = |port: u16, question: Question| {
        let reply = ask(SocketAddr::from(([127, 0, 0, 1], port)), &question);
        let Ok(reply) = reply else { return "nothing".to_owned() };
        reply.answer.last().map_or_else(|| reply.rcode_text(), |it| it.data.text.clone())
    };
    wait_until(&format!("the server is up: {}", process.log("")), || {
        says(ports[2], Question::new("ns.example.org", "A")) == "192.0.2.1"
    });
    for (name, expected) in [
        ("a.example.net", ["192.0.2.1", "192.0.2.2", "REFUSED"]),
        ("www.example.org", ["192.0.2.1", "NOERROR", "NOERROR"]),
        ("ns.example.org", ["192.0.2.1", "192.0.2.1", "192.0.2.1"]),
        ("made.example.com", ["192.0.2.1", "192.0.2.5", "REFUSED"]),
        ("missing.example.org", ["192.0.2.1", "NXDOMAIN", "NXDOMAIN"]),
    ] {
        for turn in 0..3 {
            for (port, expected) in ports.iter().zip(expected) {
                let question = Question::new(name, "A").recursive();
                assert_eq!(says(*port, question.clone()), expected, "{name} {port}, {turn}");
                assert_eq!(says(*port, question.over_tcp()), expected, "{name} {port}, {turn}");
            }
        }
    }
}
