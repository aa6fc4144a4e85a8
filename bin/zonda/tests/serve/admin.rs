//! What the server tells about itself, and to which clients.

use crate::server::{BINARY, Server, http, http_to, run, text, wait_until, zone};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::fs::chown;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;
use zonda_testkit::process::{Folder, Process, free_port};
use zonda_testkit::{Question, Zonda, ask};

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

/// What a client without a token asks over TCP, and the status where none is configured.
const WITHOUT_TOKEN: &[(&str, &str, u16)] = &[
    ("GET", "/metrics", 200),
    ("GET", "/health", 200),
    ("GET", "/ready", 200),
    ("GET", "/v1/version", 200),
    ("POST", "/metrics", 405),
    ("GET", "/nothing", 404),
    ("POST", "/v1/version", 401),
    ("GET", "/v1/status", 401),
    ("GET", "/v1/stats", 401),
    ("GET", "/v1/upstreams", 401),
    ("GET", "/v1/zones", 401),
    ("GET", "/v1/zones?limit=1", 401),
    ("GET", "/v1/zones/example.org", 401),
    ("PUT", "/v1/zones/example.org/rrsets/www.example.org/A", 401),
    ("PATCH", "/v1/zones/example.org/rrsets", 401),
    ("DELETE", "/v1/zones/example.org/rrsets/www.example.org", 401),
    ("GET", "/v1/zones/example.org/diff", 401),
    ("POST", "/v1/flush", 401),
    ("GET", "/v1/cache?name=example.org", 401),
    ("DELETE", "/v1/cache/example.org", 401),
    ("DELETE", "/v1/cache/example.org?tree", 401),
    ("POST", "/v1/reload", 401),
    ("POST", "/v1/reload?zone=example.org", 401),
    ("POST", "/v1/stop", 401),
    ("POST", "/%76%31/stop", 401),
    ("POST", "http://localhost/v1/stop", 401),
    ("GET", "/v1", 401),
    ("GET", "/v1/nothing", 401),
];

#[test]
fn without_a_token_tcp_tells_how_the_server_is_and_takes_no_orders() {
    let server = Server::start(&[], "");
    for (method, path, expected) in WITHOUT_TOKEN {
        let (status, body) = http(server.admin, &format!("{method} {path} HTTP/1.1\r\n"));
        assert_eq!(status, *expected, "{method} {path}: {body}");
    }
    assert_eq!(server.version(), "\"version 1\"", "the server goes on");
    assert_eq!(server.get("/nothing").0, 404);
    assert_eq!(server.get("/v1/reload").0, 405);
    assert_eq!(server.get("/v1/zones/other.test").0, 404);
}

#[test]
fn without_a_token_tcp_does_not_tell_what_is_wrong_with_a_file() {
    let server = Server::start(&[], "[[zone]]\nname = \"broken.test\"\nfile = \"missing.zone\"");
    let (status, reasons) = http(server.admin, "GET /ready HTTP/1.1\r\n");
    assert_eq!(status, 503);
    assert!(reasons.contains("broken.test.") && !reasons.contains("missing.zone"), "{reasons}");
}

#[test]
fn with_a_token_tcp_tells_nothing_to_a_client_that_lacks_it() {
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let config = format!(
        "version = 1\n[admin]\naddress = \"{address}\"\ntoken = \"correct-horse-battery\"\n"
    );
    let folder = Folder::new("token");
    let config = folder.write("zonda.toml", config);
    let first = zone(1);
    let zones = [("example.org", &*first)];
    let _zonda = Zonda::start(BINARY, &zones, &["--config", config.to_str().unwrap()]);
    let address = address.parse().unwrap();
    for (method, path, _) in WITHOUT_TOKEN {
        let (status, body) = http(address, &format!("{method} {path} HTTP/1.1\r\n"));
        assert_eq!(status, 401, "{method} {path}: {body}");
    }
    let status = |header: &str| http(address, &format!("GET /v1/zones HTTP/1.1\r\n{header}")).0;
    assert_eq!(status("authorization: Bearer wrong--horse-battery\r\n"), 401);
    assert_eq!(status("authorization: Bearer correct-horse-battery\r\n"), 200);
    assert_eq!(status("authorization: bearer correct-horse-battery\r\n"), 200);
    assert_eq!(status("authorization: Basic_ correct-horse-battery\r\n"), 401);
    let head = "GET /v1/zones HTTP/1.1\r\nauthorization: Bearer correct-horse-battery\r\n";
    let (status, _) = http_to("dns.example.com", address, head);
    assert_eq!(status, 200, "a page of that name does not know the token");
}

#[test]
fn the_read_token_reads_everything_and_changes_nothing() {
    let address = format!("127.0.0.1:{}", free_port());
    let config = format!(
        "version = 1\n[admin]\naddress = \"{address}\"\ntoken = \"correct-horse-battery\"\n\
         read-token = \"staple-of-the-reader\"\n"
    );
    let folder = Folder::new("read-token");
    let config = folder.write("zonda.toml", config);
    let first = zone(1);
    let zones = [("example.org", &*first)];
    let _zonda = Zonda::start(BINARY, &zones, &["--config", config.to_str().unwrap()]);
    let address = address.parse().unwrap();
    let status = |request: &str, token: &str| {
        let head = format!("{request} HTTP/1.1\r\nauthorization: Bearer {token}\r\n");
        http(address, &head).0
    };
    for path in ["/metrics", "/ready", "/v1", "/v1/status", "/v1/zones/example.org"] {
        assert_eq!(status(&format!("GET {path}"), "staple-of-the-reader"), 200, "{path}");
    }
    for request in ["POST /v1/reload", "DELETE /v1/cache/example.org", "POST /v1/stop"] {
        assert_eq!(status(request, "staple-of-the-reader"), 403, "{request}");
    }
    assert_eq!(status("POST /v1/reload", "correct-horse-battery"), 200);
}

#[test]
fn a_web_page_whose_name_leads_here_reads_nothing() {
    let server = Server::start(&[], "");
    for (address, path) in [(server.admin, "/metrics"), (server.statistics, "/json/v1/server")] {
        for (host, expected) in [
            ("127.0.0.1", 200),
            ("127.0.0.1:9153", 200),
            ("[::1]:9153", 200),
            ("LocalHost:1", 200),
            ("evil.example", 421),
            ("evil.example:9153", 421),
            ("127.0.0.1.evil.example", 421),
            ("localhost.evil.example", 421),
            ("127.0.0.1, evil.example", 421),
            ("localhost\r\nhost: evil.example", 421),
        ] {
            let (status, body) = http_to(host, address, &format!("GET {path} HTTP/1.1\r\n"));
            assert_eq!(status, expected, "{host}{path}: {body}");
        }
    }
    let absolute = "GET http://evil.example/metrics HTTP/1.1\r\n";
    assert_eq!(http(server.admin, absolute).0, 421);
}

#[test]
fn a_refused_request_ends_its_connection() {
    let server = Server::start(&[], "");
    let mut stream = TcpStream::connect(server.admin).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.write_all(b"GET /v1/zones HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 401 "), "{reply}");
}

#[test]
fn a_client_that_takes_all_its_connections_leaves_some_to_other_clients() {
    let server = Server::start(&[], "");
    let requests = "GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(500);
    let connections: Vec<TcpStream> = (0..64)
        .map(|_| {
            let mut stream = TcpStream::connect(server.admin).unwrap();
            let _ = stream.write_all(requests.as_bytes()); // it may be closed already
            stream
        })
        .collect();
    let limit = "zonda_admin_limits_total{limit=\"connections_per_client\"}";
    wait_until("connections are refused", || server.metric(limit) >= 48.0);
    let url = format!("http://{}/health", server.admin);
    let curl = ["--silent", "--max-time", "5", "--interface", "127.0.0.2", &url];
    let output = Command::new("curl").args(curl).output().unwrap();
    assert_eq!(text(&output.stdout), "ok\n");
    drop(connections);
}

#[test]
fn idle_connections_on_all_places_keep_an_operator_from_nothing() {
    let server = Server::start(&[], "");
    let socket = server.socket();
    // The first half has asked something, the other half nothing.
    let idle: Vec<UnixStream> = (0..80)
        .map(|number| {
            let mut stream = UnixStream::connect(&socket).unwrap();
            if number < 40 {
                stream.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
                assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
            }
            stream
        })
        .collect();
    let mut operator = UnixStream::connect(&socket).unwrap();
    operator.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    operator.write_all(b"GET /health HTTP/1.0\r\nhost: localhost\r\n\r\n").unwrap();
    let mut reply = String::new();
    operator.read_to_string(&mut reply).expect("an answer before the idle ones are closed");
    assert!(reply.starts_with("HTTP/1.0 200 ") && reply.ends_with("ok\n"), "{reply}");
    assert!(server.metric("zonda_admin_limits_total{limit=\"evicted\"}") >= 17.0);
    drop(idle);
}

#[test]
fn commands_reach_the_server_over_its_socket() {
    let server = Server::start(&[], "");
    let socket = server.socket();
    let socket = ["--socket", &socket];
    let output = |arguments: &[&str]| run(&[arguments, &socket].concat());
    assert!(text(&output(&["status", "--json"]).stdout).contains("\"zones\": 1"));
    assert!(text(&output(&["zone", "list", "--json"]).stdout).contains("\"serial\": 1"));
    assert!(text(&output(&["stats", "--json"]).stdout).contains("\"queries\""));
    let status = text(&output(&["status"]).stdout);
    assert!(status.contains("\nzones            1\n"), "{status}");
    assert!(status.ends_with("\nproblems         none\n"), "{status}");
    let zones = text(&output(&["zone", "list"]).stdout);
    let (head, row) = zones.split_once('\n').unwrap();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let columns = ["zone", "serial", "records", "memory", "state", "role", "source"];
    assert_eq!(words(head), columns);
    assert_eq!(words(row)[..3], ["example.org.", "1", "5"]);
    let zone_alone = text(&output(&["zone", "show", "example.org"]).stdout);
    assert!(zone_alone.contains("\nserial   1\n"), "{zone_alone}");
    server.rcode("www.example.org", "TXT");
    let stats = text(&output(&["stats"]).stdout);
    assert!(stats.contains("\nanswered"), "{stats}");
    assert_eq!(text(&output(&["upstream", "list"]).stdout), "no names are forwarded\n");
    wait_until("a file that is young no more is not read again", || {
        text(&output(&["reload"]).stdout) == "no zone has changed\n"
    });
    server.write_zone(&zone(2));
    let reload = output(&["zone", "reload", "example.org"]);
    assert!(reload.status.success(), "{}", text(&reload.stderr));
    assert_eq!(text(&reload.stdout), "loaded, 1: example.org.\n");
    assert_eq!(server.version(), "\"version 2\"");
    let wrong = output(&["zone", "reload", "other.test"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert_eq!(text(&wrong.stderr), "zone other.test. is not served here\n");
    server.write_zone("@ SOA");
    let broken = output(&["reload"]);
    assert_eq!(broken.status.code(), Some(1));
    assert!(text(&broken.stderr).starts_with("failed: example.org.: "), "{}", text(&broken.stderr));
    let zones = text(&output(&["zone", "list"]).stdout);
    assert!(zones.contains(" stale ") && zones.contains("\nexample.org.: "), "{zones}");
    assert!(output(&["stop"]).status.success());
    let mut server = server;
    wait_until("the server ends", || server.zonda.process.ended());
    let gone = output(&["status"]);
    assert_eq!(gone.status.code(), Some(2));
    let said = text(&gone.stderr);
    assert!(said.starts_with("zonda: no server answers on"), "{said}");
}

#[test]
fn a_container_without_a_shell_can_ask_whether_the_server_is_ready() {
    let missing = "[[zone]]\nname = \"example.net\"\nfile = \"missing\"";
    let server = Server::start(&[], missing);
    let ready = || run(&["ready", "--socket", &server.socket()]);
    let not_yet = ready();
    assert_eq!(not_yet.status.code(), Some(1));
    let reason = text(&not_yet.stdout);
    assert!(reason.starts_with("zone example.net. is not served: "), "{reason}");
    server.folder.write("missing", zone(1));
    assert_eq!(server.post("/v1/reload").0, 200);
    assert_eq!(ready().status.code(), Some(0));
    assert_eq!(text(&ready().stdout), "ready\n");
    assert_eq!(run(&["ready", "--socket", "missing.sock"]).status.code(), Some(2));
}

/// The user `nobody`.
const OTHER_USER: u32 = 65_534;

#[test]
fn a_server_of_another_user_is_believed_only_by_its_name() {
    let folder = Folder::new("other-user");
    if chown(folder.path(), Some(OTHER_USER), None).is_err() {
        return; // only root starts programs as another user
    }
    let program = folder.path().join("zonda"); // that user may not enter where it was built
    fs::copy(BINARY, &program).unwrap();
    let file = folder.write("example.org.zone", zone(1));
    let socket = folder.path().join("zonda-other.sock");
    let serve = |start: &mut Command, more: &[&str]| {
        let zone = format!("example.org={}", file.display());
        start.args(["serve", "--listen", "127.0.0.1:0", "--zone", &zone]).args(more);
        start.env("ZONDA_ADMIN_ADDRESS", "off").env("ZONDA_ADMIN_SOCKET", &socket);
    };
    let mut start = Command::new("setpriv");
    let user = OTHER_USER.to_string();
    start.args(["--reuid", &user, "--regid", &user, "--clear-groups"]).arg(&program);
    serve(&mut start, &[]);
    let _other = Process::start(&start, &folder.path().join("log")).unwrap();
    let named = || run(&["status", "--json", "--socket", socket.to_str().unwrap()]);
    wait_until("the server answers", || named().status.success());

    let status = text(&named().stdout);
    let pid = status.lines().find(|line| line.contains("\"pid\"")).unwrap().to_owned();
    let mut find = Command::new(BINARY);
    let found = find.args(["status", "--json"]).current_dir(folder.path()).output().unwrap();
    let found = [found.stdout, found.stderr].map(|said| text(&said)).concat();
    assert!(!found.contains(&pid) && !found.contains("zonda-other.sock"), "{found}");

    let mut successor = Command::new("timeout");
    successor.args(["20", BINARY]);
    serve(&mut successor, &["--take-over"]);
    let output = successor.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("a process of another user listens there"), "{said}");
}

#[test]
fn zones_that_are_not_listed_count_as_other() {
    let keys = "[metrics]\nzones = [\"example.org\"]";
    let (second, third) = (zone(1), zone(1));
    let server = Server::start(&[("example.net", &second), ("example.com", &third)], keys);
    let other = || server.metric("zonda_zone_queries_total{zone=\"other\"}");
    let before = other();
    for name in ["www.example.net", "www.example.com", "www.example.org", "www.example.test"] {
        server.rcode(name, "TXT");
    }
    assert_eq!(other() - before, 2.0);
    server.configure("[metrics]\nzones = [\"example.NET\"]");
    assert_eq!(server.post("/v1/reload").0, 200);
    let page = server.get("/metrics").1;
    assert!(page.contains("zonda_zone_queries_total{zone=\"example.net.\"}"), "{page}");
    assert!(!page.contains("zonda_zone_queries_total{zone=\"example.org.\"}"), "{page}");
}

#[test]
fn the_list_of_zones_comes_in_pages() {
    let texts = [zone(1), zone(1)];
    let more = [("a.test", &*texts[0]), ("0/25.2.0.192.in-addr.arpa", &*texts[1])];
    let server = Server::start(&more, "");
    let names = |query: &str| -> Vec<String> {
        let (status, body) = server.get(&format!("/v1/zones?{query}"));
        assert_eq!(status, 200);
        let names = body.lines().filter_map(|line| line.trim().strip_prefix("\"name\": \""));
        names.map(|name| name.trim_end_matches("\",").to_owned()).collect()
    };
    let all = ["0/25.2.0.192.in-addr.arpa.", "example.org.", "a.test."];
    assert_eq!(names(""), all);
    assert_eq!(names("limit=2"), all[..2]);
    assert_eq!(names("limit=2&after=EXAMPLE.org"), all[2..]);
    assert_eq!(names("after=0%2F25.2.0.192.in-addr.arpa&limit=1"), all[1..2]);
    assert_eq!(server.get("/v1/zones?limit=many").0, 400);
    assert_eq!(server.get("/v1/zones/%").0, 404);
    let socket = server.socket();
    for command in ["show", "reload"] {
        let output = run(&["zone", command, "0/25.2.0.192.in-addr.arpa", "--socket", &socket]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
}

#[test]
fn bash_completes_the_zones_and_names_of_the_running_server() {
    let folder = Folder::new("completed");
    let ran = folder.path().join("ran");
    // What bash would run if it took it for more than a name: a redirection makes a file.
    let hostile = format!("`:>{}`", ran.display());
    let owner: String = hostile.bytes().map(|octet| format!("\\{octet:03}")).collect();
    let small = format!(
        "$TTL 60\n@ SOA ns h 1 1 1 1 1\n NS ns\nns A 192.0.2.1\n AAAA 2001:db8::1\nnews TXT a\n\
         {owner} A 192.0.2.1\n"
    );
    let many: String = (0..1001).map(|it| format!("large{it} A 192.0.2.1\n")).collect();
    let large = format!("$TTL 60\n@ SOA ns h 1 1 1 1 1\n NS ns\n{many}");
    let empty = "@ 60 SOA ns h 1 1 1 1 1\n@ 60 NS ns\n";
    let zones = [("small.test", &*small), ("large.test", &large), (&*hostile, empty)];
    let server = Server::start(&zones, "");
    assert!(server.get("/v1/zones").1.contains(&hostile));
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_zonda")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let completed = |words: &str| {
        let script = format!(
            "source <(zonda generate completions bash); COMP_WORDS=(zonda {words}); \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _zonda zonda \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD - 1]}}\"; \
             echo \"${{COMPREPLY[@]}}\""
        );
        let mut bash = Command::new("bash");
        bash.args(["-c", &script]).env("PATH", &path);
        let output = bash.env("ZONDA_ADMIN_SOCKET", server.socket()).output().unwrap();
        assert_eq!(text(&output.stderr), "");
        text(&output.stdout)
    };
    assert_eq!(completed("zone show exa"), "example.org.\n");
    assert_eq!(completed("zone reload --json exa"), "example.org.\n");
    for command in ["get", "set", "unset", "diff", "flush"] {
        assert_eq!(completed(&format!("zone {command} exa")), "example.org.\n", "{command}");
    }
    for command in ["get", "set", "unset"] {
        let names = completed(&format!("zone {command} n"));
        assert_eq!(names, "ns.example.org. news.small.test. ns.small.test.\n", "{command}");
    }
    assert_eq!(completed("zone get large"), "large.test.\n", "it has too many names");
    assert_eq!(completed("zone show ns"), "\n");
    assert!(!ran.exists(), "a name was run as a command");
    assert_eq!(completed("zone show other"), "\n");
    assert_eq!(completed("zone li"), "list\n");
}

#[test]
fn the_records_of_a_zone_come_in_pages_that_do_not_part_a_name() {
    let zone = "$TTL 60\n@ SOA ns1 h 7 1 1 1 1\n NS ns1\nns1 A 192.0.2.1\n AAAA 2001:db8::1\n\
                *.w TXT a b\nc CNAME ns1\n";
    let server = Server::start(&[("records.test", zone)], "");
    let get = |path: &str| {
        let (status, body) = server.get(&format!("/v1/zones/records.test/rrsets{path}"));
        (status, serde_json::from_str::<Value>(&body).unwrap_or_default())
    };
    let names = |page: &Value| {
        let sets = page["rrsets"].as_array().unwrap().iter();
        let shown = |set: &Value| format!("{} {}", set["name"], set["type"]).replace('"', "");
        sets.map(shown).collect::<Vec<_>>()
    };
    let (mut all, mut after, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let (status, page) = get(&format!("?limit=3{after}"));
        assert_eq!((status, page["serial"].as_u64()), (200, Some(7)));
        all.extend(names(&page));
        pages += 1;
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    let expected = [
        "records.test SOA",
        "records.test NS",
        "c.records.test CNAME",
        "ns1.records.test A",
        "ns1.records.test AAAA",
        "*.w.records.test TXT",
    ];
    assert_eq!((all, pages), (expected.map(str::to_owned).to_vec(), 2));
    assert_eq!(names(&get("/NS1.records.test.").1), &expected[3..5]);
    assert_eq!(names(&get("/%2A.w.records.test/TXT").1), &expected[5..]);
    for (path, status) in [
        ("/none.records.test", 404),
        ("/ns1.records.test/MX", 404),
        ("/w.records.test", 404),
        ("/ns1.other.test", 400),
        ("/ns1.records.test/NOTYPE", 400),
        ("?limit=many", 400),
        ("?after=other.test", 400),
    ] {
        assert_eq!(get(path).0, status, "{path}");
    }
    assert_eq!(server.get("/v1/zones/other.test/rrsets").0, 404);
}

#[test]
fn a_web_page_cannot_stop_the_server() {
    let server = Server::start(&[], "");
    let head = "POST /v1/stop HTTP/1.1\r\norigin: http://example.test\r\n";
    assert_eq!(http(server.admin, head).0, 401);
    assert_eq!(server.version(), "\"version 1\"");
}
