//! The running server: reload, stop, hand-over, and what it tells about itself.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use zonda_testkit::process::free_port;
use zonda_testkit::{Question, Zonda, ask};

const BINARY: &str = env!("CARGO_BIN_EXE_zonda");

/// A zone whose every record tells its version.
fn zone(version: u32) -> String {
    format!(
        "$TTL 60\n@ SOA ns host {version} 7200 3600 1209600 60\n@ NS ns\nns A 192.0.2.1\n\
         www TXT \"version {version}\"\nonly{version} A 192.0.2.2\n"
    )
}

/// A server with one zone, its admin interface on a port of its own.
struct Server {
    zonda: Zonda,
    admin: SocketAddr,
}

impl Server {
    fn start(more: &[(&str, &str)], keys: &str) -> Self {
        let admin = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let folder = zonda_testkit::process::Folder::new("config");
        let socket = folder.path().join("admin.sock");
        let config = folder.write(
            "zonda.toml",
            format!("version = 1\n{keys}\n[admin]\naddress = \"{admin}\"\nsocket = {socket:?}\n"),
        );
        let first = zone(1);
        let zones = [&[("example.org", &*first)], more].concat();
        let zonda = Zonda::start(BINARY, &zones, &["--config", config.to_str().unwrap()]);
        // The configuration is read again at a reload.
        std::mem::forget(folder);
        Self { zonda, admin }
    }

    fn zone_file(&self) -> std::path::PathBuf {
        self.zonda.folder.path().join("0.zone")
    }

    /// Replaces the zone's file as an editor does.
    fn write_zone(&self, text: &str) {
        let new = self.zonda.folder.path().join("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.zone_file()).unwrap();
    }

    fn get(&self, path: &str) -> (u16, String) {
        http(self.admin, &format!("GET {path} HTTP/1.1\r\n"))
    }

    fn post(&self, path: &str) -> (u16, String) {
        http(self.admin, &format!("POST {path} HTTP/1.1\r\n"))
    }

    /// The value of a metric, labels included in its name.
    fn metric(&self, name: &str) -> f64 {
        let page = self.get("/metrics").1;
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in\n{page}")).parse().unwrap()
    }

    /// The text that `www.example.org` answers.
    fn version(&self) -> String {
        let reply = ask(self.zonda.address, &Question::new("www.example.org", "TXT")).unwrap();
        reply.answer[0].data.text.clone()
    }
}

/// Sends a request and returns status and body.
fn http(address: SocketAddr, head: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "{head}host: test\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), body.to_owned())
}

/// Asks without pause in the background; counts what is not as it should be.
struct Load {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(u64, Vec<String>)>,
}

impl Load {
    /// `wrong` says what is wrong with a pair of replies: to `www TXT` and to the zone's SOA.
    fn start(server: SocketAddr, tcp: bool) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let (mut asked, mut wrong) = (0, Vec::new());
            let question = Question::new("www.example.org", "TXT");
            let question = if tcp { question.over_tcp() } else { question };
            while !stopped.load(Relaxed) {
                asked += 1;
                match ask_once(server, &question) {
                    Ok(0) => {}
                    Ok(rcode) => wrong.push(format!("query {asked}: rcode {rcode}")),
                    Err(error) => wrong.push(format!("query {asked}: {error}")),
                }
            }
            (asked, wrong)
        });
        Self { stop, thread }
    }

    /// Ends it; every query must have been answered.
    fn finish(self, asked_min: u64) {
        self.stop.store(true, Relaxed);
        let (asked, wrong) = self.thread.join().unwrap();
        assert!(wrong.is_empty(), "of {asked} queries: {wrong:?}");
        assert!(asked >= asked_min, "only {asked} queries were asked");
    }
}

/// Sends one query without trying again; returns the response code.
fn ask_once(server: SocketAddr, question: &Question) -> std::io::Result<u16> {
    let query = question.to_bytes(7);
    if question.tcp {
        return Ok(ask(server, question)?.rcode());
    }
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(Duration::from_secs(3)))?;
    socket.send(&query)?;
    let mut reply = [0; 4096];
    let len = socket.recv(&mut reply)?;
    let answers = u16::from_be_bytes([reply[6], reply[7]]);
    assert!(len > 12 && answers <= 1);
    Ok(u16::from(reply[3] & 15) + if answers == 1 { 0 } else { 100 })
}

/// Waits until something is so.
fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(20);
    while !so() {
        assert!(Instant::now() < limit, "still not so: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn run(arguments: &[&str]) -> Output {
    Command::new(BINARY).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_reload_under_load_answers_every_query_from_the_old_zone_or_the_new() {
    let server = Server::start(&[], "");
    let load = [false, false, true].map(|tcp| Load::start(server.zonda.address, tcp));
    for version in 2..30 {
        server.write_zone(&zone(version));
        let (status, body) = server.post("/v1/reload");
        assert_eq!(status, 200, "{body}");
        assert_eq!(server.version(), format!("\"version {version}\""));
    }
    load.into_iter().for_each(|load| load.finish(100));
}

#[test]
fn a_zone_that_fails_to_load_keeps_its_last_good_version_and_says_so() {
    let server = Server::start(&[], "");
    server.write_zone("@ SOA broken\n");
    let (status, body) = server.post("/v1/reload");
    assert_eq!(status, 422);
    assert!(body.contains("0.zone:1:"), "{body}");
    assert_eq!(server.version(), "\"version 1\"");
    assert_eq!(server.metric("zonda_zones{state=\"stale\"}"), 1.0);
    assert_eq!(server.metric("zonda_failed_reloads_total"), 1.0);
    assert!(server.get("/v1/zones/example.org").1.contains("0.zone:1:"));
    assert_eq!(server.get("/ready").0, 200, "it is still served");
    server.write_zone(&zone(2));
    assert_eq!(server.post("/v1/reload").0, 200);
    assert_eq!(server.version(), "\"version 2\"");
    assert_eq!(server.metric("zonda_zones{state=\"stale\"}"), 0.0);
}

#[test]
fn a_zone_that_never_loaded_is_servfail_while_the_others_serve() {
    let server = Server::start(&[], "[[zone]]\nname = \"broken.test\"\nfile = \"missing.zone\"");
    assert_eq!(server.version(), "\"version 1\"");
    let reply = ask(server.zonda.address, &Question::new("www.broken.test", "A").edns(1232));
    assert_eq!(reply.unwrap().rcode_text(), "SERVFAIL");
    let (status, reasons) = server.get("/ready");
    assert_eq!(status, 503);
    assert!(reasons.contains("broken.test.") && reasons.contains("missing.zone"), "{reasons}");
}

#[test]
fn json_zones_are_served_beside_master_files() {
    let zones = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/zones");
    let json = zones.canonicalize().unwrap().join("example.net.json");
    let net = format!("example.net={}", json.display());
    let missing = format!("other.test={}", json.display());
    let first = zone(1);
    let arguments = ["--zone", &net, "--zone", &missing];
    let zonda = Zonda::start(BINARY, &[("example.org", &first)], &arguments);
    let rcode = |name: &str| ask(zonda.address, &Question::new(name, "SOA")).unwrap().rcode_text();
    assert_eq!(rcode("example.net"), "NOERROR");
    assert_eq!(rcode("example.org"), "NOERROR");
    assert_eq!(rcode("other.test"), "SERVFAIL");
    assert!(zonda.process.log("no zone other.test.").contains("example.net.json"));
}

#[test]
fn a_hangup_signal_reloads() {
    let server = Server::start(&[], "");
    server.write_zone(&zone(2));
    server.zonda.process.signal("HUP");
    wait_until("the new version is served", || server.version() == "\"version 2\"");
}

#[test]
fn a_watched_file_is_reloaded_when_it_changes() {
    let server = Server::start(&[], "watch = true\nwatch-interval = \"100 ms\"");
    server.write_zone(&zone(2));
    wait_until("the new version is served", || server.version() == "\"version 2\"");
}

#[test]
fn zones_of_a_directory_come_and_go_with_their_files() {
    let folder = zonda_testkit::process::Folder::new("zones");
    let directory = format!("[[zone]]\ndirectory = {:?}", folder.path());
    let server = Server::start(
        &[],
        &format!("root = {:?}\nwatch-interval = \"100 ms\"\n{directory}", std::env::temp_dir()),
    );
    let rcode = || {
        let question = Question::new("www.example.net", "TXT");
        ask(server.zonda.address, &question).unwrap().rcode_text()
    };
    assert_eq!(rcode(), "REFUSED");
    let file = folder.write("example.net.zone", zone(1));
    wait_until("the zone is served", || rcode() == "NOERROR");
    fs::remove_file(file).unwrap();
    wait_until("the zone is gone", || rcode() == "REFUSED");
}

#[test]
fn a_stop_answers_what_was_received() {
    let server = Server::start(&[], "");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.zonda.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    let query = Question::new("www.example.org", "TXT").to_bytes(1);
    for _ in 0..200 {
        socket.send(&query).unwrap();
    }
    assert_eq!(server.post("/v1/stop").0, 200);
    let mut reply = [0; 512];
    let answered = (0..200).take_while(|_| socket.recv(&mut reply).is_ok()).count();
    assert_eq!(answered, 200);
}

#[test]
fn a_successor_takes_over_without_losing_a_query() {
    let mut server = Server::start(&[], "");
    let load = [false, false, true].map(|tcp| Load::start(server.zonda.address, tcp));
    let zone = format!("example.org={}", server.zone_file().display());
    let listen = server.zonda.address.to_string();
    let (_, status) = server.get("/v1/status");
    assert!(status.contains("127.0.0.1"), "{status}");
    let config = config_of(&server);
    let log = server.zonda.folder.path().join("successor.log");
    let mut command = Command::new(BINARY);
    command.args([
        "serve",
        "--take-over",
        "--config",
        &config,
        "--zone",
        &zone,
        "--listen",
        &listen,
    ]);
    let successor = zonda_testkit::process::Process::start(&command, &log).unwrap();
    wait_until("the former server ends", || server.zonda.process.ended());
    assert_eq!(server.version(), "\"version 1\"", "{}", successor.log(""));
    let (status, _) = server.get("/ready");
    assert_eq!(status, 200, "the admin interface moved too");
    thread::sleep(Duration::from_millis(200));
    load.into_iter().for_each(|load| load.finish(100));
}

/// The configuration file that a server was started with.
fn config_of(server: &Server) -> String {
    let arguments = fs::read(format!("/proc/{}/cmdline", server.zonda.process.id())).unwrap();
    let arguments: Vec<_> = arguments.split(|byte| *byte == 0).map(text).collect();
    let at = arguments.iter().position(|argument| argument == "--config").unwrap();
    arguments[at + 1].clone()
}

#[test]
fn counters_add_up_to_what_was_asked() {
    let server = Server::start(&[], "");
    let before = server.metric("zonda_zone_queries_total{zone=\"example.org.\"}");
    for (name, rtype, times) in
        [("www.example.org", "TXT", 7), ("no.example.org", "A", 5), ("other.test", "A", 3)]
    {
        for _ in 0..times {
            ask(server.zonda.address, &Question::new(name, rtype)).unwrap();
        }
    }
    // A response is answered with silence, and counted.
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(&[0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0], server.zonda.address).unwrap();
    let silence = "zonda_queries_total{reason=\"not_a_query\"}";
    wait_until("the response was counted", || server.metric(silence) == 1.0);
    let sum = |name: &str| -> f64 {
        let page = server.get("/metrics").1;
        let values = page.lines().filter(|line| line.starts_with(&format!("{name}{{")));
        values.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum()
    };
    let replies = sum("zonda_replies_total");
    assert_eq!(sum("zonda_queries_total"), replies + 1.0);
    // A reply's latency is known, and counted, only after it is sent.
    wait_until("latencies are counted", || sum("zonda_query_duration_seconds_count") == replies);
    assert_eq!(server.metric("zonda_queries_total{reason=\"nxdomain\"}"), 5.0);
    assert_eq!(server.metric("zonda_queries_total{reason=\"no_zone\"}"), 3.0);
    let zone = server.metric("zonda_zone_queries_total{zone=\"example.org.\"}");
    assert_eq!(zone - before, 12.0);
    assert_eq!(
        server.metric("zonda_replies_total{transport=\"udp\",type=\"A\",rcode=\"NXDOMAIN\"}"),
        5.0
    );
}

#[test]
fn the_admin_interface_wants_its_token() {
    let server = Server::start(&[], "");
    let (status, _) = server.get("/v1/version");
    assert_eq!(status, 200, "none is configured");
    assert_eq!(server.get("/nothing").0, 404);
    assert_eq!(server.get("/v1/reload").0, 405);
    assert_eq!(server.get("/v1/zones/other.test").0, 404);
    drop(server);
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let config = format!(
        "version = 1\n[admin]\naddress = \"{address}\"\ntoken = \"correct-horse-battery\"\n"
    );
    let folder = zonda_testkit::process::Folder::new("token");
    let config = folder.write("zonda.toml", config);
    let first = zone(1);
    let zones = [("example.org", &*first)];
    let _zonda = Zonda::start(BINARY, &zones, &["--config", config.to_str().unwrap()]);
    let address = address.parse().unwrap();
    let status = |header: &str| http(address, &format!("GET /ready HTTP/1.1\r\n{header}")).0;
    assert_eq!(status(""), 401);
    assert_eq!(status("authorization: Bearer wrong--horse-battery\r\n"), 401);
    assert_eq!(status("authorization: Bearer correct-horse-battery\r\n"), 200);
}

#[test]
fn commands_reach_the_server_over_its_socket() {
    let server = Server::start(&[], "");
    let config = config_of(&server);
    let socket = config.replace("zonda.toml", "admin.sock");
    let socket = ["--socket", &socket];
    let output = |arguments: &[&str]| run(&[arguments, &socket].concat());
    assert!(text(&output(&["status"]).stdout).contains("\"zones\": 1"));
    assert!(text(&output(&["zones"]).stdout).contains("\"serial\": 1"));
    assert!(text(&output(&["stats"]).stdout).contains("\"queries\""));
    server.write_zone(&zone(2));
    let reload = output(&["reload", "example.org"]);
    assert!(reload.status.success(), "{}", text(&reload.stderr));
    assert_eq!(server.version(), "\"version 2\"");
    let wrong = output(&["reload", "other.test"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert_eq!(text(&wrong.stderr), "zone other.test. is not served here\n");
    assert!(output(&["stop"]).status.success());
    let mut server = server;
    wait_until("the server ends", || server.zonda.process.ended());
    let gone = output(&["status"]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(text(&gone.stderr).starts_with("no server answers on"), "{}", text(&gone.stderr));
}

#[test]
fn the_query_log_has_a_line_for_each_query() {
    let folder = zonda_testkit::process::Folder::new("log");
    let path = folder.path().join("queries.log");
    let server = Server::start(&[], &format!("[query-log]\noutput = {path:?}"));
    ask(server.zonda.address, &Question::new("wWw.example.org", "TXT")).unwrap();
    ask(server.zonda.address, &Question::new("other.test", "AAAA").over_tcp()).unwrap();
    let lines = || fs::read_to_string(&path).unwrap_or_default();
    wait_until("both lines are written", || lines().contains("other.test."));
    let lines = lines();
    assert!(lines.contains(" udp www.example.org. IN TXT NOERROR answered "), "{lines}");
    assert!(lines.contains(" tcp other.test. IN AAAA REFUSED no_zone "), "{lines}");
    fs::rename(&path, folder.path().join("old.log")).unwrap();
    server.zonda.process.signal("HUP");
    wait_until("the file is made anew", || path.exists());
}

#[test]
fn access_lists_of_listener_and_zone_decide_who_is_answered() {
    let keys = "[access]\nnobody = [\"refuse any\"]\n\
                [[zone]]\nname = \"private.test\"\nfile = \"0.zone\"\naccess = [\"nobody\"]\n\
                [[zone]]\nname = \"secret.test\"\nfile = \"0.zone\"\naccess = [\"drop any\"]";
    let server = Server::start(&[], keys);
    let rcode = |name: &str| {
        ask(server.zonda.address, &Question::new(name, "A").edns(1232)).map(|it| it.rcode_text())
    };
    assert_eq!(rcode("ns.example.org").unwrap(), "NOERROR");
    assert_eq!(rcode("ns.private.test").unwrap(), "REFUSED");
    assert!(rcode("ns.secret.test").is_err(), "silence");
}

#[test]
fn rate_limiting_drops_and_slips_what_one_network_asks_too_often() {
    let server =
        Server::start(&[], "[rate-limit]\nresponses-per-second = 5\nwindow = \"1s\"\nslip = 2");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.zonda.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let query = Question::new("www.example.org", "TXT").to_bytes(1);
    (0..100).for_each(|_| assert!(socket.send(&query).is_ok()));
    let (mut whole, mut truncated, mut reply) = (0, 0, [0; 512]);
    while socket.recv(&mut reply).is_ok() {
        if reply[2] & 2 == 0 { whole += 1 } else { truncated += 1 }
    }
    assert!((5..12).contains(&whole), "{whole} replies in full");
    assert!((35..50).contains(&truncated), "{truncated} truncated replies");
    assert_eq!(server.metric("zonda_queries_total{reason=\"rate_slipped\"}"), f64::from(truncated));
    let over_tcp = ask(server.zonda.address, &Question::new("www.example.org", "TXT").over_tcp());
    assert_eq!(over_tcp.unwrap().rcode_text(), "NOERROR");
}

#[test]
fn a_reply_on_a_wildcard_listener_comes_from_the_address_that_was_asked() {
    let port = free_port();
    let folder = zonda_testkit::process::Folder::new("wildcard");
    let file = folder.write("zone", zone(1));
    let mut command = Command::new(BINARY);
    command.args(["serve", "--listen", &format!("0.0.0.0:{port}"), "--zone"]);
    command.arg(format!("example.org={}", file.display()));
    let log = folder.path().join("log");
    let _process = zonda_testkit::process::Process::start(&command, &log).unwrap();
    for address in ["127.0.0.1", "127.0.0.2", "127.1.2.3"] {
        let server: SocketAddr = format!("{address}:{port}").parse().unwrap();
        // A connected socket takes datagrams from that address alone.
        wait_until(address, || ask_once(server, &Question::new("ns.example.org", "A")).is_ok());
    }
}

#[test]
fn without_anything_to_serve_it_says_what_to_do_in_three_lines() {
    let output = run(&["serve"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stderr).lines().count(), 3);
    assert!(text(&output.stderr).contains("zonda serve --zone"));
}

#[test]
fn an_address_that_is_taken_is_named_with_what_to_do() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = zonda_testkit::process::Folder::new("taken");
    let file = folder.write("zone", zone(1));
    let zone = format!("example.org={}", file.display());
    let output = run(&["serve", "--listen", &address, "--zone", &zone]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains(&format!("cannot listen on {address} (UDP)")), "{said}");
    assert!(said.contains("--listen"), "{said}");
}

#[test]
fn a_check_tells_all_errors_with_their_places() {
    let folder = zonda_testkit::process::Folder::new("check");
    folder.write("a.zone", "@ SOA ns host 1 2 3 4 5\n@ NS ns\nns A 192.0.2.256\nns AAAA x\n");
    let config = folder
        .write("zonda.toml", "version = 1\n[[zone]]\nname = \"example.org\"\nfile = \"a.zone\"\n");
    let config = config.to_str().unwrap();
    let output = run(&["check", "--config", config]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    assert!(said.contains("a.zone:3:") && said.contains("a.zone:4:"), "{said}");
    folder.write("a.zone", zone(1));
    let output = run(&["check", "--config", config]);
    assert!(output.status.success(), "{}", text(&output.stdout));
}
