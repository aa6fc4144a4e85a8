//! Zones that follow databases by configuration or flag alone.

use crate::server::{BINARY, Server, run, text, wait_until};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use zonda_store::{RecordSet, RedbStore, Store};
use zonda_testkit::process::{Folder, Process};
use zonda_testkit::{Postgres, Question, Redis, ask};

/// Response code and data of the answer to a question, as text.
fn told(server: &Server, name: &str, rtype: &str) -> String {
    let reply = ask(server.zonda.address, &Question::new(name, rtype).edns(1232)).unwrap();
    let mut words: Vec<_> = reply.answer.iter().map(|it| it.data.text.clone()).collect();
    words.sort();
    words.insert(0, reply.rcode_text());
    words.join(" ")
}

/// Waits until a question is answered so.
fn await_answer(server: &Server, name: &str, rtype: &str, expected: &str) {
    wait_until(&format!("{name} {rtype} is {expected}"), || told(server, name, rtype) == expected);
}

/// The sections of a zone in a database.
fn zone(name: &str, url: &str, keys: &str) -> String {
    format!("[[zone]]\nname = \"{name}\"\n[zone.store]\nurl = \"{url}\"\n{keys}\n")
}

/// A client that asks for one name over and over, and keeps the answers that are wrong.
struct Poller {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<String>>,
}

impl Poller {
    /// Asks a server for the address of a name, which exists all the time.
    fn start(server: SocketAddr, name: &'static str) -> Self {
        let is_over = Arc::<AtomicBool>::default();
        let over = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            let mut wrong = Vec::new();
            while !over.load(Ordering::SeqCst) {
                let reply = ask(server, &Question::new(name, "A"));
                let code = reply.map_or_else(|error| error.to_string(), |reply| reply.rcode_text());
                wrong.extend(Some(code).filter(|code| code != "NOERROR"));
            }
            wrong
        });
        Self { is_over, thread }
    }

    /// Ends; returns the wrong answers.
    fn wrong(self) -> Vec<String> {
        self.is_over.store(true, Ordering::SeqCst);
        self.thread.join().unwrap()
    }
}

/// A server of Redis that has a name `www` of one zone, and says nothing any more once it is told
/// so; its URL. Real servers that hang like that cannot be had at the right moment.
fn mute_redis(zone: &'static str, is_mute: &Arc<AtomicBool>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let is_mute = Arc::clone(is_mute);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let is_mute = Arc::clone(&is_mute);
            thread::spawn(move || answer_commands(stream, zone, &is_mute));
        }
    });
    url
}

/// Answers the commands of a connection until it ends.
fn answer_commands(stream: TcpStream, zone: &str, is_mute: &AtomicBool) -> Option<()> {
    let mut input = BufReader::new(stream.try_clone().ok()?);
    let mut output = stream;
    loop {
        let number = |input: &mut BufReader<TcpStream>| {
            let mut line = String::new();
            input.read_line(&mut line).ok()?;
            line.get(1..)?.trim().parse::<usize>().ok()
        };
        let mut words = Vec::new();
        for _ in 0..number(&mut input)? {
            let mut word = vec![0; number(&mut input)? + 2];
            input.read_exact(&mut word).ok()?;
            words.push(String::from_utf8_lossy(&word).trim().to_owned());
        }
        if is_mute.load(Ordering::SeqCst) {
            continue;
        }
        let reply = match words[0].as_str() {
            "SCAN" => {
                let key = format!("{zone}:www");
                format!("*2\r\n$1\r\n0\r\n*1\r\n${}\r\n{key}\r\n", key.len())
            }
            "HGETALL" => "*2\r\n$1\r\nA\r\n$13\r\n[\"192.0.2.1\"]\r\n".to_owned(),
            "SUBSCRIBE" | "PSUBSCRIBE" => "*3\r\n+subscribe\r\n+x\r\n:1\r\n".to_owned(),
            _ => "*0\r\n".to_owned(),
        };
        output.write_all(reply.as_bytes()).ok()?;
    }
}

/// What the server says of a zone.
fn about(server: &Server, zone: &str) -> Value {
    serde_json::from_str(&server.get(&format!("/v1/zones/{zone}")).1).unwrap()
}

/// The number of the server's threads that follow stores.
fn store_threads(server: &Server) -> usize {
    let status: Value = serde_json::from_str(&server.get("/v1/status").1).unwrap();
    let tasks = fs::read_dir(format!("/proc/{}/task", status["pid"])).unwrap().flatten();
    let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).ok();
    tasks.filter_map(name).filter(|name| name.trim() == "zonda-store").count()
}

/// The number of connections to Redis besides the one that asks.
fn connections(redis: &Redis) -> usize {
    redis.cli(&["CLIENT", "LIST"]).lines().count() - 1
}

#[test]
fn real_peers_many_zones_follow_one_redis_by_one_thread_and_two_connections() {
    let Some(redis) = Redis::start() else { return };
    let name = |number: usize| format!("zone{number}.test");
    for number in 0..30 {
        redis.cli(&["HSET", &format!("test:zone{number}:www"), "A", "[\"192.0.2.1\"]"]);
    }
    let zones = |count| (0..count).map(|it| zone(&name(it), &redis.url(), "")).collect::<String>();
    let server = Server::start(&[], &zones(20));
    for number in [0, 7, 19] {
        assert_eq!(told(&server, &format!("www.zone{number}.test"), "A"), "NOERROR 192.0.2.1");
    }
    assert_eq!((store_threads(&server), connections(&redis)), (1, 2));
    assert_eq!(told(&server, "www.zone20.test", "A"), "REFUSED");

    redis.cli(&["HSET", "test:zone7:www", "A", "[\"192.0.2.7\"]"]);
    await_answer(&server, "www.zone7.test", "A", "NOERROR 192.0.2.7");
    redis.cli(&["HSET", "test:zone8:a:b", "TXT", "{\"ttl\":5,\"data\":[\"new\"]}"]);
    await_answer(&server, "b.a.zone8.test", "TXT", "NOERROR \"new\"");
    redis.cli(&["DEL", "test:zone9:www"]);
    await_answer(&server, "www.zone9.test", "A", "NXDOMAIN");

    let zone = about(&server, "zone7.test");
    let source = zone["source"].as_str().unwrap();
    assert!(source.starts_with("store redis://") && !source.contains("s3cret"), "{zone:#}");
    assert_eq!((&zone["file"], &zone["store"]["reachable"]), (&Value::Null, &true.into()));
    assert_eq!((&zone["store"]["changes"], &zone["store"]["loads"]), (&1.into(), &1.into()));
    assert_eq!(server.metric("zonda_store_changes_total{zone=\"zone7.test.\"}"), 1.0);

    server.configure(&zones(25));
    assert_eq!(server.post("/v1/reload").0, 200);
    await_answer(&server, "www.zone24.test", "A", "NOERROR 192.0.2.1");
    assert_eq!(told(&server, "www.zone7.test", "A"), "NOERROR 192.0.2.7");
    wait_until("one thread is left", || store_threads(&server) == 1 && connections(&redis) == 2);
    server.configure("");
    assert_eq!(server.post("/v1/reload").0, 200);
    assert_eq!(told(&server, "www.zone7.test", "A"), "REFUSED");
    wait_until("no thread is left", || store_threads(&server) == 0 && connections(&redis) == 0);
}

#[test]
fn real_peers_a_zone_expires_when_its_redis_is_away_for_too_long_and_comes_back() {
    let Some(mut redis) = Redis::start() else { return };
    redis.cli(&["HSET", "test:short:www", "A", "[\"192.0.2.1\"]"]);
    redis.cli(&["HSET", "test:long:www", "A", "[\"192.0.2.1\"]"]);
    let short = zone("short.test", &redis.url(), "expire = \"1s\"");
    let server = Server::start(&[], &(short + &zone("long.test", &redis.url(), "")));
    assert_eq!(told(&server, "www.short.test", "A"), "NOERROR 192.0.2.1");
    redis.stop();
    await_answer(&server, "www.short.test", "A", "SERVFAIL");
    assert_eq!(told(&server, "www.long.test", "A"), "NOERROR 192.0.2.1");
    let zone = about(&server, "short.test");
    assert!(zone["error"].as_str().unwrap().contains("redis://"), "{zone:#}");
    assert_eq!((&zone["served"], &zone["store"]["reachable"]), (&false.into(), &false.into()));
    let (code, reasons) = server.get("/ready");
    assert_eq!((code, reasons.lines().count()), (503, 1), "{reasons}");
    assert!(reasons.starts_with("zone short.test. is not served: redis://"), "{reasons}");
    redis.restart();
    redis.cli(&["HSET", "test:short:www", "A", "[\"192.0.2.2\"]"]);
    await_answer(&server, "www.short.test", "A", "NOERROR 192.0.2.2");
    wait_until("the error is gone", || about(&server, "short.test")["error"] == Value::Null);
}

#[test]
fn real_peers_a_zone_is_read_again_when_an_administrator_asks_for_it() {
    let Some(redis) = Redis::start() else { return };
    redis.cli(&["CONFIG", "SET", "notify-keyspace-events", ""]);
    let keys = "prefix = \"dns:\"\ncompare-interval = \"1d\"";
    let server = Server::start(&[], &zone("a.test", &redis.url(), keys));
    assert_eq!(told(&server, "www.a.test", "A"), "NXDOMAIN");
    redis.cli(&["HSET", "dns:test:a:www", "A", "[\"192.0.2.1\"]"]);
    thread::sleep(Duration::from_millis(600));
    assert_eq!(told(&server, "www.a.test", "A"), "NXDOMAIN", "nothing announces the change");
    let reload = run(&["zone", "reload", "a.test", "--socket", &server.socket()]);
    assert!(reload.status.success(), "{}", text(&reload.stderr));
    assert_eq!(told(&server, "www.a.test", "A"), "NOERROR 192.0.2.1");
    assert_eq!(text(&reload.stdout), "loaded, 1: a.test.\n");
    let reload = run(&["zone", "reload", "a.test", "--socket", &server.socket()]);
    assert_eq!(text(&reload.stdout), "no zone has changed\n");
}

#[test]
fn real_peers_a_zone_is_served_from_postgresql_by_one_flag() {
    let Some(postgres) = Postgres::start() else { return };
    let flag = format!("a.test={}", postgres.url());
    let server = Server::start_with(&[], "", &["--store", &flag]);
    assert_eq!(told(&server, "a.test", "NS"), "NOERROR localhost.");
    let insert = |owner: &str, data: &str| {
        format!("INSERT INTO zonda_records VALUES ('{owner}', 'A', 60, '{data}');")
    };
    let both = insert("www.a.test", "192.0.2.1") + &insert("mail.a.test", "192.0.2.2");
    postgres.psql(&both);
    await_answer(&server, "www.a.test", "A", "NOERROR 192.0.2.1");
    assert_eq!(told(&server, "mail.a.test", "A"), "NOERROR 192.0.2.2", "one transaction");
    postgres.psql(&insert("www.a.test", "192.0.2.3"));
    await_answer(&server, "www.a.test", "A", "NOERROR 192.0.2.1 192.0.2.3");
    let list = run(&["zone", "list", "--socket", &server.socket()]);
    let list = text(&list.stdout);
    assert!(list.contains("a.test.") && !list.contains("s3cret"), "{list}");
    assert!(!server.get("/v1/zones/a.test").1.contains("s3cret"));
}

#[test]
fn real_peers_zones_are_served_from_databases_over_tls_by_files_beside_the_configuration() {
    let (Some(redis), Some(postgres)) =
        (Redis::start_with_tls(&["127.0.0.1"]), Postgres::start_with_tls(&["127.0.0.1"]))
    else {
        return;
    };
    redis.cli(&["HSET", "test:a:www", "A", "[\"192.0.2.1\"]"]);
    let server = Server::start(&[], "");
    let copy = |file: &Path, name: &str| {
        fs::copy(file, server.folder.path().join(name)).unwrap();
    };
    copy(&redis.certificates().authority, "redis ca.pem");
    copy(&postgres.certificates().authority, "postgres.pem");
    copy(&postgres.certificates().other_authority, "other.pem");
    let of_postgres = |file| format!("{}?sslmode=verify-full&sslrootcert={file}", postgres.url());
    server.configure(
        &(zone("a.test", &format!("{}/0?ca=redis%20ca.pem", redis.url()), "")
            + &zone("b.test", &of_postgres("postgres.pem"), "")
            + &zone("c.test", &of_postgres("other.pem"), "")),
    );
    assert_eq!(server.post("/v1/reload").0, 200);
    await_answer(&server, "www.a.test", "A", "NOERROR 192.0.2.1");
    await_answer(&server, "b.test", "NS", "NOERROR localhost.");
    wait_until("the certificate is refused", || about(&server, "c.test")["error"] != Value::Null);
    let error = about(&server, "c.test")["error"].to_string();
    assert!(error.contains("UnknownIssuer"), "{error}");
    assert_eq!(told(&server, "c.test", "NS"), "SERVFAIL");
}

/// A database in a file, with a zone `file.test`.
fn redb(folder: &Folder) -> String {
    let file = folder.path().join("zones.redb");
    let store = RedbStore::open(&file).unwrap();
    store.set(&RecordSet::new("www.file.test", "A", 60, ["192.0.2.1"])).unwrap();
    format!("redb:{}", file.display())
}

#[test]
fn a_database_in_a_file_is_followed_by_a_successor_once_the_former_server_is_gone() {
    let folder = Folder::new("redb");
    let mut server = Server::start(&[], &zone("file.test", &redb(&folder), ""));
    assert_eq!(told(&server, "www.file.test", "A"), "NOERROR 192.0.2.1");
    let poller = Poller::start(server.zonda.address, "www.file.test");
    let log = server.folder.path().join("successor.log");
    let successor = Process::start(&server.command(&["--take-over"]), &log).unwrap();
    wait_until("the former server ends", || server.zonda.process.ended());
    server.zonda.process = successor;
    wait_until("the successor follows the file", || {
        about(&server, "file.test")["store"]["reachable"] == true
    });
    let wrong = poller.wrong();
    assert_eq!(wrong, Vec::<String>::new(), "{}", fs::read_to_string(log).unwrap());
}

#[test]
fn a_zone_moves_from_its_file_to_a_database_and_back_without_a_wrong_answer() {
    let folder = Folder::new("moves");
    let master = "@ 60 SOA ns h 1 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.9\nwww 60 A 192.0.2.1\n";
    let file = folder.write("file.zone", master);
    let of_file = format!("root = \"/\"\n[[zone]]\nname = \"file.test\"\nfile = {file:?}\n");
    let of_store = format!("root = \"/\"\n{}", zone("file.test", &redb(&folder), ""));
    let server = Server::start(&[], &of_file);
    let poller = Poller::start(server.zonda.address, "www.file.test");
    for _ in 0..3 {
        server.configure(&of_store);
        assert_eq!(server.post("/v1/reload").0, 200);
        await_answer(&server, "ns.file.test", "A", "NXDOMAIN");
        server.configure(&of_file);
        assert_eq!(server.post("/v1/reload").0, 200);
        assert_eq!(told(&server, "ns.file.test", "A"), "NOERROR 192.0.2.9");
    }
    assert_eq!(poller.wrong(), Vec::<String>::new());
    assert_eq!(server.zonda.process.log("is left out"), "", "the zone had one source at a time");
}

#[test]
fn real_peers_a_zone_moves_from_one_database_to_another_without_a_wrong_answer() {
    let (Some(redis), Some(postgres)) = (Redis::start(), Postgres::start()) else { return };
    redis.cli(&["HSET", "test:a:www", "A", "[\"192.0.2.1\"]"]);
    let server = Server::start(&[], &zone("a.test", &redis.url(), ""));
    assert_eq!(told(&server, "www.a.test", "A"), "NOERROR 192.0.2.1");
    let store = zonda_store::PostgresStore::new(&postgres.url()).unwrap();
    store.set(&RecordSet::new("www.a.test", "A", 60, ["192.0.2.2"])).unwrap();
    let poller = Poller::start(server.zonda.address, "www.a.test");
    for _ in 0..2 {
        server.configure(&zone("a.test", &postgres.url(), ""));
        assert_eq!(server.post("/v1/reload").0, 200);
        await_answer(&server, "www.a.test", "A", "NOERROR 192.0.2.2");
        server.configure(&zone("a.test", &redis.url(), ""));
        assert_eq!(server.post("/v1/reload").0, 200);
        await_answer(&server, "www.a.test", "A", "NOERROR 192.0.2.1");
    }
    assert_eq!(poller.wrong(), Vec::<String>::new());
}

#[test]
fn a_zone_expires_even_while_its_database_is_waited_for() {
    let is_mute = Arc::<AtomicBool>::default();
    let url = mute_redis("test:a", &is_mute);
    let keys = "expire = \"2s\"\ncompare-interval = \"1s\"";
    let server = Server::start(&[], &zone("a.test", &url, keys));
    assert_eq!(told(&server, "www.a.test", "A"), "NOERROR 192.0.2.1");
    is_mute.store(true, Ordering::SeqCst);
    let asked = Instant::now();
    await_answer(&server, "www.a.test", "A", "SERVFAIL");
    assert!(asked.elapsed() < Duration::from_secs(7), "the feed waits ten seconds for a reply");
    let reason = server.get("/ready").1;
    assert!(reason.contains("has not been in step with it for 2s"), "{reason}");
    is_mute.store(false, Ordering::SeqCst);
    await_answer(&server, "www.a.test", "A", "NOERROR 192.0.2.1");
}

#[test]
fn the_time_until_a_zone_expires_goes_on_over_a_reload() {
    let is_mute = Arc::<AtomicBool>::default();
    let url = mute_redis("test:a", &is_mute);
    let keys = "expire = \"3s\"\ncompare-interval = \"1s\"";
    let a = zone("a.test", &url, keys);
    let server = Server::start(&[], &a);
    assert_eq!(told(&server, "www.a.test", "A"), "NOERROR 192.0.2.1");
    is_mute.store(true, Ordering::SeqCst);
    let asked = Instant::now();
    let mut reloads = 0;
    while told(&server, "www.a.test", "A") == "NOERROR 192.0.2.1" {
        // Each reload changes which zones follow the database, so that the feed begins anew.
        reloads += 1;
        server.configure(&(a.clone() + &zone(&format!("b{reloads}.test"), &url, keys)));
        assert_eq!(server.post("/v1/reload").0, 200);
        assert!(asked.elapsed() < Duration::from_secs(20), "{reloads} reloads");
        thread::sleep(Duration::from_millis(200));
    }
    assert!(reloads > 1, "the zone has expired before it could matter");
}

#[test]
fn real_peers_zones_within_zones_have_each_the_names_of_its_own() {
    let Some(redis) = Redis::start() else { return };
    redis.cli(&["HSET", "test:a:www", "A", "[\"192.0.2.1\"]"]);
    redis.cli(&["HSET", "test:a:b:www", "A", "[\"192.0.2.2\"]"]);
    let zones = zone("a.test", &redis.url(), "") + &zone("b.a.test", &redis.url(), "");
    let server = Server::start(&[], &zones);
    assert_eq!(told(&server, "www.a.test", "A"), "NOERROR 192.0.2.1");
    assert_eq!(told(&server, "www.b.a.test", "A"), "NOERROR 192.0.2.2");
    redis.cli(&["HSET", "test:a:b:www", "A", "[\"192.0.2.3\"]"]);
    await_answer(&server, "www.b.a.test", "A", "NOERROR 192.0.2.3");
    server.configure(&zone("a.test", &redis.url(), ""));
    assert_eq!(server.post("/v1/reload").0, 200);
    await_answer(&server, "www.b.a.test", "A", "NOERROR 192.0.2.3");
    redis.cli(&["DEL", "test:a:b:www"]);
    await_answer(&server, "www.b.a.test", "A", "NXDOMAIN");
}

#[test]
fn real_peers_a_database_that_is_too_large_leaves_the_last_records_in_service() {
    let Some(redis) = Redis::start() else { return };
    redis.cli(&["HSET", "test:a:www", "A", "[\"192.0.2.1\"]"]);
    let server =
        Server::start(&[], &zone("a.test", &redis.url(), "read-max = \"64 KiB\"\nexpire = \"1h\""));
    assert_eq!(told(&server, "www.a.test", "A"), "NOERROR 192.0.2.1");
    let text = format!("[\"{}\"]", "x ".repeat(20_000));
    redis.cli(&["HSET", "test:a:large", "TXT", &text, "SPF", &text]);
    wait_until("the error is seen", || {
        let error = about(&server, "a.test")["error"].to_string();
        error.contains("more than 65536 octets") && error.contains("`read-max`")
    });
    assert_eq!(told(&server, "www.a.test", "A"), "NOERROR 192.0.2.1");
    redis.cli(&["DEL", "test:a:large"]);
    wait_until("the error is gone", || about(&server, "a.test")["error"] == Value::Null);
}

#[test]
fn real_peers_a_table_that_is_locked_is_not_waited_for_for_long() {
    let Some(postgres) = Postgres::start() else { return };
    let server = Server::start(&[], &zone("a.test", &postgres.url(), ""));
    assert_eq!(told(&server, "a.test", "NS"), "NOERROR localhost.");
    let lock = "BEGIN; LOCK TABLE zonda_records; SELECT pg_sleep(12); COMMIT;";
    thread::scope(|scope| {
        scope.spawn(|| postgres.psql(lock));
        thread::sleep(Duration::from_millis(500));
        let reload = run(&["zone", "reload", "a.test", "--socket", &server.socket()]);
        assert_eq!(reload.status.code(), Some(1), "{}", text(&reload.stdout));
        wait_until("the error is seen", || {
            about(&server, "a.test")["error"].to_string().contains("lock timeout")
        });
        assert_eq!(told(&server, "a.test", "NS"), "NOERROR localhost.");
    });
    wait_until("the error is gone", || about(&server, "a.test")["error"] == Value::Null);
}

#[test]
fn real_peers_no_password_of_a_database_is_ever_in_the_log() {
    let (Some(redis), Some(postgres)) = (Redis::start(), Postgres::start()) else { return };
    let wrong = |url: String| url.replace("s3cret", "wr0ng");
    let zones = zone("a.test", &redis.url(), "")
        + &zone("b.test", &wrong(redis.url()), "")
        + &zone("c.test", &postgres.url(), "")
        + &zone("d.test", &wrong(postgres.url()), "");
    assert!(zones.contains("s3cret") && zones.contains("wr0ng"), "{zones}");
    let server = Server::start(&[], &(zones + "[log]\nlevel = \"trace\"\n"));
    for name in ["b.test", "d.test"] {
        wait_until("the password is refused", || about(&server, name)["error"] != Value::Null);
    }
    assert_eq!(told(&server, "c.test", "NS"), "NOERROR localhost.");
    server.configure("");
    assert_eq!(server.post("/v1/reload").0, 200);
    let log = |about| server.zonda.process.log(about);
    assert!(!log("redis://").is_empty() && !log("postgres://").is_empty(), "{}", log(""));
    assert_eq!(log("s3cret") + &log("wr0ng"), "");
}

#[test]
fn a_database_that_is_not_there_leaves_its_zone_servfail_and_all_others_served() {
    let folder = Folder::new("absent");
    let absent = format!("redb:{}", folder.path().join("absent.redb").display());
    let server = Server::start(&[], &zone("file.test", &absent, ""));
    assert_eq!(told(&server, "www.file.test", "A"), "SERVFAIL");
    assert_eq!(server.rcode("www.example.org", "TXT"), "NOERROR");
    assert!(!folder.path().join("absent.redb").exists(), "an empty database was made");
    drop(RedbStore::open(folder.path().join("absent.redb")).unwrap());
    await_answer(&server, "www.file.test", "A", "NXDOMAIN");
}

#[test]
fn a_check_of_the_configuration_tells_of_a_database_that_is_not_there() {
    let folder = Folder::new("check");
    let config =
        folder.write("zonda.toml", format!("version = 1\n{}", zone("a.test", "redb:x", "")));
    let output = Command::new(BINARY).args(["check", "--config"]).arg(&config).output().unwrap();
    let said = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("zone a.test.: redb:") && said.contains("x: no such file"), "{said}");
    let store = RedbStore::open(folder.path().join("x")).unwrap(); // as a server that runs has it
    let output = Command::new(BINARY).args(["check", "--config"]).arg(&config).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stdout) + &text(&output.stderr));
    drop(store);
}
