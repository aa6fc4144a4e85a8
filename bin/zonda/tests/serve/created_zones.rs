//! Zones that clients create and remove.

use super::edits::{JSON, command, send, try_send};
use super::server::{BINARY, Server, wait_until};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;
use zonda_testkit::process::{Folder, Process};
use zonda_testkit::{Question, ask};

/// A server on which clients create zones in the folder `zones`.
fn server(folder: &Folder, more: &str) -> Server {
    let [zones, state] = ["zones", "state"].map(|name| folder.path().join(name));
    Server::start(&[], &format!("state = {state:?}\n{more}[admin]\nzones = {zones:?}\n"))
}

/// Starts the server of the same configuration anew after it was killed.
fn start_again(server: &mut Server, folder: &Folder) {
    server.zonda.process.signal("KILL");
    wait_until("the server is gone", || server.zonda.process.ended());
    let log = folder.path().join("again.log");
    server.zonda.process = Process::start(&server.command(&[]), &log).unwrap();
    let soa = Question::new("example.org", "SOA");
    wait_until("the server is back", || {
        if server.zonda.process.ended() {
            // Another test may have been given the port meanwhile, for a moment.
            server.zonda.process = Process::start(&server.command(&[]), &log).unwrap();
        }
        let socket = server.socket();
        ask(server.zonda.address, &soa).is_ok()
            && try_send(Path::new(&socket), ("GET", "/v1/status"), "", b"").is_some()
    });
}

/// The names of the files in the directory of zones.
fn files(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(folder.path().join("zones")).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The body that creates a zone.
fn named(name: &str) -> String {
    json!({ "name": name }).to_string()
}

#[test]
fn a_zone_that_a_client_has_created_is_there_after_a_restart_with_its_edits() {
    let folder = Folder::new("created");
    let mut server = server(&folder, "watch = false\n");
    assert_eq!(send(&server, "POST", "/v1/zones", &named("New.Example")).0, 201);
    assert_eq!(files(&folder), ["new.example.zone"]);
    assert_eq!(command(&server, &["set", "www.new.example", "60", "A", "192.0.2.2"]).0, 0);
    start_again(&mut server, &folder);
    assert_eq!(server.rcode("www.new.example", "A"), "NOERROR");
    let (code, printed) = command(&server, &["flush", "new.example"]);
    assert!(code == 0 && printed.starts_with("new.example. "), "{printed}");
    assert_eq!(files(&folder), ["new.example.zone", "new.example.zone.orig"]);
    assert_eq!(send(&server, "DELETE", "/v1/zones/NEW.example", "").0, 200);
    assert_eq!(server.rcode("www.new.example", "A"), "REFUSED");
    assert_eq!(files(&folder), [""; 0], "a later zone of the name has a first version of its own");
}

#[test]
fn edits_of_a_zone_that_was_removed_do_not_come_back_with_its_name() {
    let folder = Folder::new("created");
    let mut server = server(&folder, "");
    for is_killed in [false, true] {
        assert_eq!(send(&server, "POST", "/v1/zones", &named("new.example")).0, 201);
        assert_eq!(server.rcode("old.new.example", "A"), "NXDOMAIN");
        assert_eq!(command(&server, &["set", "old.new.example", "60", "A", "192.0.2.2"]).0, 0);
        assert_eq!(send(&server, "DELETE", "/v1/zones/new.example", "").0, 200);
        if is_killed {
            start_again(&mut server, &folder);
        }
        assert_eq!(server.rcode("old.new.example", "A"), "REFUSED");
    }
    assert_eq!(send(&server, "POST", "/v1/zones", &named("new.example")).0, 201);
    assert_eq!(server.rcode("old.new.example", "A"), "NXDOMAIN");
}

#[test]
fn a_zone_of_the_configuration_is_not_removed_and_the_answer_says_where_it_is() {
    let folder = Folder::new("created");
    let server = server(&folder, "");
    let (status, problem) = send(&server, "DELETE", "/v1/zones/example.org", "");
    let detail = problem["detail"].as_str().unwrap();
    assert_eq!(status, 409);
    assert!(detail.contains("0.zone") && detail.contains("configuration"), "{detail}");
    assert_eq!(server.rcode("www.example.org", "TXT"), "NOERROR");
}

#[test]
fn of_clients_that_create_the_same_zone_one_does_and_different_ones_are_all_created() {
    const CLIENTS: usize = 12;
    let folder = Folder::new("created");
    let server = server(&folder, "");
    let create = |name: &str| send(&server, "POST", "/v1/zones", &named(name)).0;
    let all_at_once = |name: &(dyn Fn(usize) -> String + Sync)| -> Vec<u16> {
        thread::scope(|scope| {
            let clients: Vec<_> =
                (0..CLIENTS).map(|it| scope.spawn(move || create(&name(it)))).collect();
            clients.into_iter().map(|client| client.join().unwrap()).collect()
        })
    };
    let mut same = all_at_once(&|_| "same.example".to_owned());
    same.sort_unstable();
    assert_eq!((same[0], &same[1..]), (201, &[409; CLIENTS - 1][..]));
    assert_eq!(all_at_once(&|it| format!("n{it}.example")), [201; CLIENTS]);
    assert_eq!(files(&folder).len(), CLIENTS + 1);
    assert!((0..CLIENTS).all(|it| server.rcode(&format!("n{it}.example"), "SOA") == "NOERROR"));
}

/// Creates zones, each with a record, and removes every second one, until the server is away.
/// Returns for each zone that was acknowledged whether it is to be there, and the number of the
/// one of which that is not known.
fn create_and_remove(socket: &Path, first: usize) -> (Vec<(usize, bool)>, usize) {
    let mut known = Vec::new();
    for number in first.. {
        let name = format!("z{number}.example");
        let sets = json!([{ "name": name, "type": "TXT", "ttl": 60, "records": ["\"x\""] }]);
        let body = json!({ "name": name, "rrsets": sets }).to_string();
        match try_send(socket, ("POST", "/v1/zones"), JSON, body.as_bytes()) {
            Some((status, body)) => assert_eq!(status, 201, "{body}"),
            None => return (known, number),
        }
        let is_kept = number % 2 == 0;
        if !is_kept {
            let path = format!("/v1/zones/{name}");
            match try_send(socket, ("DELETE", &path), "", b"") {
                Some((status, body)) => assert_eq!(status, 200, "{body}"),
                None => return (known, number),
            }
        }
        known.push((number, is_kept));
    }
    (known, usize::MAX)
}

#[test]
fn a_server_that_is_killed_while_zones_come_and_go_has_each_whole_or_not_at_all() {
    const KILLS: usize = 30;
    let folder = Folder::new("created");
    let mut server = server(&folder, "");
    let (mut next, mut random, mut all) = (0, 1_u64, 0);
    for kill in 0..KILLS {
        let socket = PathBuf::from(server.socket());
        let client = thread::spawn(move || create_and_remove(&socket, next));
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        thread::sleep(Duration::from_micros(random >> 49)); // up to 33 ms
        start_again(&mut server, &folder);
        let (known, unknown) = client.join().unwrap();
        let has = |number: usize| server.rcode(&format!("z{number}.example"), "TXT");
        for (number, is_kept) in &known {
            let expected = if *is_kept { "NOERROR" } else { "REFUSED" };
            assert_eq!(has(*number), expected, "zone {number} after kill {kill}");
        }
        let rcode = has(unknown);
        assert!(["NOERROR", "REFUSED"].contains(&&*rcode), "{unknown} after kill {kill}: {rcode}");
        all += known.len();
        for name in files(&folder).iter().filter(|name| name.ends_with(".zone")) {
            let file = folder.path().join("zones").join(name);
            let check = Command::new(BINARY).args(["file", "check"]).arg(&file).output().unwrap();
            assert!(check.status.success(), "{name} after kill {kill}: {check:?}");
            if kill % 2 == 1 {
                let name = name.strip_suffix(".zone").unwrap();
                assert_eq!(send(&server, "DELETE", &format!("/v1/zones/{name}"), "").0, 200);
            }
        }
        next = unknown + 1;
    }
    assert!(all > KILLS, "only {all} zones in {KILLS} rounds");
}
