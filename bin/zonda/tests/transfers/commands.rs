//! Commands about one zone: refreshes, NOTIFY, freezing, history and rollback.

use crate::notify::{next, receiver, reply};
use crate::primaries::{Secondary, zone};
use crate::primary::{KEY, PLAIN, Primary, client, key_argument, records, wait_until};
use crate::update_clients::ZONE;
use crate::update_messages::Update;
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use zonda_testkit::process::{Folder, Process, has_required, required, start_on_free_port};
use zonda_wire::Rcode;

/// Keys of a zone that this address may change and transfer.
const OPEN: &str =
    "update = [{ from = \"127.0.0.1\", names = \"zone\" }]\ntransfer = { to = [\"127.0.0.1\"] }";

/// What a command to the server in a folder prints, and its exit code.
fn run(folder: &Path, arguments: &[&str]) -> (String, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
    command.args(arguments).arg("--socket").arg(folder.join("admin.sock"));
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&said).into_owned(), output.status.code().unwrap())
}

/// What a command prints that succeeds.
#[track_caller]
pub fn done(folder: &Path, arguments: &[&str]) -> String {
    let (said, code) = run(folder, arguments);
    assert_eq!(code, 0, "{arguments:?}: {said}");
    said
}

/// What a command prints that fails.
#[track_caller]
fn failed(folder: &Path, arguments: &[&str]) -> String {
    let (said, code) = run(folder, arguments);
    assert_eq!(code, 1, "{arguments:?}: {said}");
    said
}

/// What a command prints as JSON.
#[track_caller]
pub fn json(folder: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&done(folder, &[arguments, &["--json"]].concat())).unwrap()
}

/// The records of a name and type, as dig prints them.
fn short(address: SocketAddr, name: &str, rtype: &str) -> String {
    client("dig", address, &["+short", "+norec", name, rtype]).trim().to_owned()
}

/// The serials of the versions that are held, and what made each.
fn history(folder: &Path, zone: &str) -> Vec<(u64, String)> {
    let answer = json(folder, &["zone", "history", zone]);
    let versions = answer["versions"].as_array().unwrap();
    let version = |version: &Value| {
        let origin = version["origin"].as_str().unwrap_or("-").to_owned();
        (version["serial"].as_u64().unwrap(), origin)
    };
    versions.iter().map(version).collect()
}

/// Gives a name of `up.test` an address by an edit.
fn set(folder: &Path, owner: &str, last: u8) {
    let data = format!("192.0.2.{last}");
    done(folder, &["zone", "set", &format!("{owner}.up.test"), "60", "A", &data]);
}

#[test]
fn a_zone_is_brought_back_to_each_version_that_is_held_with_a_greater_serial_also_after_a_crash() {
    let mut primary = Primary::start_with(&[("up.test", ZONE, "writable = true")], "");
    let folder = primary.folder.path().to_owned();
    let plain = client("dig", primary.address, &["+short", "www.up.test", "ANY"]);
    set(&folder, "www", 50);
    set(&folder, "new", 51);
    done(&folder, &["zone", "unset", "www.up.test", "TXT"]);
    let edits = |serials: &[u64]| -> Vec<(u64, String)> {
        serials.iter().map(|serial| (*serial, "edit".to_owned())).collect()
    };
    let unknown = (7, "-".to_owned());
    assert_eq!(history(&folder, "up.test"), [edits(&[10, 9, 8]), vec![unknown.clone()]].concat());
    let said = done(&folder, &["zone", "rollback", "up.test", "7", "--dry-run"]);
    assert!(said.contains("would rise from 10 to 11"), "{said}");
    assert_eq!(short(primary.address, "new.up.test", "A"), "192.0.2.51");
    let said = done(&folder, &["zone", "rollback", "up.test", "7"]);
    assert!(said.contains("- new.up.test. 60 A 192.0.2.51"), "{said}");
    assert!(said.contains("+ www.up.test. 60 TXT \"text\""), "{said}");
    primary.crash();
    assert_eq!(client("dig", primary.address, &["+short", "www.up.test", "ANY"]), plain);
    assert_eq!(short(primary.address, "new.up.test", "A"), "");
    let soa = short(primary.address, "up.test", "SOA");
    assert_eq!(soa, "ns.up.test. host.up.test. 11 7200 3600 1209600 60");
    let rollback = vec![(11, "rollback".to_owned())];
    let held = [rollback, edits(&[10, 9, 8]), vec![unknown]].concat();
    assert_eq!(history(&folder, "up.test"), held);
    done(&folder, &["zone", "rollback", "up.test", "9"]);
    assert_eq!(short(primary.address, "new.up.test", "A"), "192.0.2.51");
    let said = failed(&folder, &["zone", "rollback", "up.test", "12"]);
    assert!(said.contains("version 12 is in force"), "{said}");
    let said = failed(&folder, &["zone", "rollback", "up.test", "3"]);
    assert!(said.contains("`zonda zone history up.test.` lists"), "{said}");
    let said = done(&folder, &["zone", "history", "up.test"]);
    assert!(said.contains("serial") && said.contains("rollback"), "{said}");
}

#[test]
fn a_version_that_differs_in_the_soa_record_alone_is_brought_back_with_its_times() {
    let primary = Primary::start_with(&[("up.test", ZONE, OPEN)], "");
    let folder = primary.folder.path();
    let soa = "ns.up.test. host.up.test. 7 1 2 3 4";
    done(folder, &["zone", "set", "up.test", "60", "SOA", soa]);
    done(folder, &["zone", "rollback", "up.test", "7"]);
    let soa = short(primary.address, "up.test", "SOA");
    assert_eq!(soa, "ns.up.test. host.up.test. 9 7200 3600 1209600 60");
    // Nothing but the serial told the first version from this one: there is nothing to change.
    let said = done(folder, &["zone", "rollback", "up.test", "7"]);
    assert!(said.contains("nothing differs"), "{said}");
}

#[test]
fn zones_are_frozen_and_thawed_in_one_process_while_a_successor_takes_over() {
    let primary = Primary::start_with(&[("up.test", ZONE, "writable = true")], "");
    let folder = primary.folder.path().to_owned();
    let beside = folder.join("admin.sock.hand-over");
    let successor = UnixStream::connect(beside).unwrap();
    wait_until("a successor has the sockets", || primary.log().contains("handed to a successor"));
    for command in ["freeze", "thaw"] {
        let said = failed(&folder, &["zone", command, "up.test"]);
        assert!(said.contains("another process is taking over"), "{said}");
    }
    // The successor freezes the zone, and goes away before it has taken over.
    fs::write(folder.join("state/frozen"), "up.test. 1790000000\n").unwrap();
    drop(successor);
    wait_until("the successor is gone", || primary.log().contains("the successor went away"));
    wait_until("the zone is frozen here, too", || {
        let set = ["zone", "set", "www.up.test", "60", "A", "192.0.2.1"];
        run(&folder, &set).0.contains("`zonda zone thaw up.test.`")
    });
    done(&folder, &["zone", "thaw", "up.test"]);
    set(&folder, "www", 50);
}

#[test]
fn a_frozen_zone_refuses_updates_edits_and_rollbacks_until_it_is_thawed_whatever_is_restarted() {
    let mut primary = Primary::start_with(&[("up.test", ZONE, OPEN)], "");
    let folder = primary.folder.path().to_owned();
    set(&folder, "one", 50);
    done(&folder, &["zone", "freeze", "up.test"]);
    let said = done(&folder, &["zone", "freeze", "up.test"]);
    assert!(said.contains("as before"), "{said}");
    let check = |primary: &Primary| {
        let update = Update::new("up.test").change("IN two.up.test 60 A 192.0.2.7");
        let (rcode, _, text) = update.explained(primary.address);
        assert_eq!(rcode, Rcode::REFUSED);
        assert!(text.contains("frozen"), "{text}");
        let edit = ["zone", "set", "one.up.test", "60", "A", "192.0.2.51"];
        let said = failed(&folder, &edit);
        assert!(said.contains("`zonda zone thaw up.test.`"), "{said}");
        let said = failed(&folder, &["zone", "rollback", "up.test", "7"]);
        assert!(said.contains("frozen"), "{said}");
        done(&folder, &[&edit[..], &["--dry-run"]].concat());
        assert_eq!(short(primary.address, "one.up.test", "A"), "192.0.2.50");
        assert!(json(&folder, &["zone", "show", "up.test"])["frozen"].is_string());
        let said = done(&folder, &["zone", "list"]);
        assert!(said.contains("served, frozen"), "{said}");
    };
    check(&primary);
    primary.reload();
    check(&primary);
    primary.crash();
    check(&primary);
    done(&folder, &["zone", "thaw", "up.test"]);
    let update = Update::new("up.test").change("IN two.up.test 60 A 192.0.2.7").id(0x4712);
    assert_eq!(update.send(primary.address), Rcode::NOERROR);
    let made = history(&folder, "up.test");
    assert_eq!(made[0], (9, "update".to_owned()));
    primary.restart();
    set(&folder, "one", 51);
    assert!(json(&folder, &["zone", "show", "up.test"])["frozen"].is_null());
}

#[test]
fn commands_for_zones_that_are_not_meant_say_so_and_fail() {
    let zones = [("up.test", ZONE, ""), ("plain.test", ZONE, "writable = true")];
    let primary = Primary::start_with(&zones, "");
    let folder = primary.folder.path();
    for (arguments, text) in [
        (&["refresh", "up.test"][..], "is not transferred from primaries"),
        (&["retransfer", "up.test"], "is not transferred from primaries"),
        (&["notify", "up.test"], "name them in `notify`"),
        (&["freeze", "up.test"], "takes no updates and edits in any case"),
        (&["thaw", "up.test"], "takes no updates and edits in any case"),
        (&["rollback", "up.test", "6"], "writable = true"),
        (&["rollback", "plain.test", "6"], "no version 6 of zone plain.test. is held"),
    ] {
        let said = failed(folder, &[&["zone"], arguments].concat());
        assert!(said.contains(text), "{arguments:?}: {said}");
    }
    for command in ["refresh", "retransfer", "notify", "freeze", "thaw", "history"] {
        let said = failed(folder, &["zone", command, "none.test"]);
        assert!(said.contains("no zone none.test."), "{command}: {said}");
    }
    let said = failed(folder, &["zone", "rollback", "none.test", "6"]);
    assert!(said.contains("no zone none.test."), "{said}");
    assert_eq!(history(folder, "up.test"), [(7, "file".to_owned())]);
}

#[test]
fn a_receiver_that_has_acknowledged_a_version_is_told_again_by_a_command() {
    let receiver = receiver();
    let address = receiver.local_addr().unwrap();
    let to = format!("\"127.0.0.1\"], notify = [\"{address}\"");
    let primary = Primary::start(&[("open.test", PLAIN, &to)], "");
    let acknowledge = || {
        let (octets, serial, from) = next(&receiver);
        receiver.send_to(&reply(&octets, Rcode::NOERROR), from).unwrap();
        serial
    };
    assert_eq!(acknowledge(), 7);
    wait_until("it is acknowledged", || primary.metric("zonda_notifies_pending") == 0.0);
    let said = done(primary.folder.path(), &["zone", "notify", "open.test"]);
    assert!(said.contains(&format!("{address} are told that open.test. has serial 7")), "{said}");
    assert_eq!(acknowledge(), 7);
    let acknowledged = "zonda_notifies_total{result=\"acknowledged\"}";
    wait_until("it is acknowledged again", || primary.metric(acknowledged) == 2.0);
}

/// The text of a zone with a serial.
fn version(serial: u32) -> String {
    PLAIN.replacen("host 7 ", &format!("host {serial} "), 1) + &format!("v TXT v{serial}\n")
}

#[test]
fn a_zone_is_refreshed_and_transferred_by_commands_and_its_primaries_are_shown() {
    let primary = Primary::start(&[("open.test", &version(7), "\"127.0.0.1\"")], "");
    let more = zone("open.test", &format!("\"{}\"", primary.address), "");
    let more = more.replace("-min = \"1s\"", "-min = \"1h\"");
    let server = Secondary::start(&format!("{more}[admin]\nsocket = \"admin.sock\"\n"));
    let folder = server.folder.path();
    wait_until("the first transfer", || server.serial("open.test") == Some(7));
    let publish = |text: &str| {
        fs::write(primary.folder.path().join("0.zone"), text).unwrap();
        primary.reload();
    };
    let said = done(folder, &["zone", "refresh", "open.test"]);
    assert_eq!(said, format!("open.test. is in step with {}: serial 7\n", primary.address));
    publish(&version(8));
    let said = done(folder, &["zone", "refresh", "open.test"]);
    let transferred = |from: u32, to: u32| {
        format!("open.test. was transferred from {}: serial {from} -> {to}\n", primary.address)
    };
    assert_eq!(said, transferred(7, 8));
    assert_eq!(short(server.address, "v.open.test", "TXT"), "\"v8\"");
    assert_eq!(history(folder, "open.test")[..2], [(8, "transfer".into()), (7, "-".into())]);
    // A serial that has gone back is told, and taken only if that is asked for.
    publish(&version(3));
    let said = failed(folder, &["zone", "refresh", "open.test"]);
    assert!(said.contains("stays as it was") && said.contains("outdated"), "{said}");
    let shown = json(folder, &["zone", "show", "open.test"]);
    assert_eq!(shown["role"], "secondary");
    let primaries = &shown["secondary"]["primaries"];
    assert_eq!((&primaries[0]["serial"], &primaries[1]), (&3.into(), &Value::Null));
    let said = done(folder, &["zone", "list"]);
    assert!(said.contains(&format!("3 at {}", primary.address)), "{said}");
    let said = done(folder, &["zone", "retransfer", "open.test"]);
    assert_eq!(said, transferred(8, 3));
    assert_eq!(short(server.address, "v.open.test", "TXT"), "\"v3\"");
    // The same serial with other records, as after a repair at the primary.
    let said = done(folder, &["zone", "retransfer", "open.test"]);
    assert_eq!(said, transferred(3, 3));
    let said = failed(folder, &["zone", "freeze", "open.test"]);
    assert!(said.contains("takes no updates and edits in any case"), "{said}");
    let said = failed(folder, &["zone", "thaw", "open.test"]);
    assert!(said.contains("takes no updates and edits in any case"), "{said}");
    let said = failed(folder, &["zone", "rollback", "open.test", "8"]);
    assert!(said.contains("change it at its primary") && !said.contains("writable"), "{said}");
    let said = done(folder, &["zone", "show", "open.test"]);
    assert!(said.contains("next refresh") && said.contains("expires"), "{said}");
    let log = server.log();
    assert!(log.contains("from=8 serial=3"), "{log}");
}

#[test]
fn an_edit_waits_until_the_secondaries_answer_with_it() {
    let primary = Primary::start_with(&[("up.test", ZONE, OPEN)], "");
    let folder = primary.folder.path();
    let set = |last: u8, wait: &str| {
        run(folder, &["zone", "set", "new.up.test", "60", "A", &format!("192.0.2.{last}"), wait])
    };
    let (said, code) = set(1, "--wait");
    assert!(code == 0 && said.contains("there is none to wait for"), "{said}");
    let secondary = Secondary::start(&zone("up.test", &format!("\"{}\"", primary.address), ""));
    wait_until("the first transfer", || secondary.serial("up.test") == Some(8));
    let config = fs::read_to_string(folder.join("zonda.toml")).unwrap();
    let notify = |receivers: &str| {
        let to = format!("to = [\"127.0.0.1\"], notify = [{receivers}]");
        let text = config.replacen("to = [\"127.0.0.1\"]", &to, 1);
        fs::write(folder.join("zonda.toml"), text).unwrap();
        primary.reload();
        let count = receivers.split(',').count();
        let shown = || json(folder, &["zone", "show", "up.test"])["notify"].clone();
        wait_until("they are notified", || shown().as_array().unwrap().len() == count);
    };
    notify(&format!("\"{}\"", secondary.address));
    for last in 2..6 {
        let (said, code) = set(last, "--wait");
        let serial = u32::from(last) + 7;
        let line = format!("{} has serial {serial}\n", secondary.address);
        assert!(code == 0 && said.ends_with(&line), "{said}");
        let address = format!("192.0.2.{last}");
        assert_eq!(short(secondary.address, "new.up.test", "A"), address);
    }
    let back = run(folder, &["zone", "rollback", "up.test", "9", "--wait"]);
    assert!(back.1 == 0 && back.0.contains("has serial 13\n"), "{}", back.0);
    assert_eq!(short(secondary.address, "new.up.test", "A"), "192.0.2.2");
    let silent = receiver();
    notify(&format!("\"{}\", \"{}\"", secondary.address, silent.local_addr().unwrap()));
    let (said, code) = set(6, "--wait=5");
    let (has, lacks) = (
        format!("{} has serial 14\n", secondary.address),
        format!("{} does not have it: no answer within the time\n", silent.local_addr().unwrap()),
    );
    assert!(code == 1 && said.ends_with(&format!("{has}{lacks}")), "{said}");
    assert_eq!(short(primary.address, "new.up.test", "A"), "192.0.2.6", "it is made all the same");
}

#[test]
fn the_place_of_an_edit_that_waits_is_free_once_its_client_has_closed() {
    const PLACES: usize = 16;
    let silent = receiver();
    let keys = format!(
        "writable = true\ntransfer = {{ to = [\"127.0.0.1\"], notify = [\"{}\"] }}",
        silent.local_addr().unwrap()
    );
    let primary = Primary::start_with(&[("up.test", ZONE, &keys)], "");
    let socket = primary.folder.path().join("admin.sock");
    let edit = |secs: u8| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        let body = r#"{"ttl": 60, "records": ["192.0.2.1"]}"#;
        let request = format!(
            "PUT /v1/zones/up.test/rrsets/new.up.test/A?wait=secondaries&wait-max={secs} \
             HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    let status = || {
        let mut head = [0; 12];
        edit(1).read_exact(&mut head).unwrap();
        head[9..].to_vec()
    };
    let clients: Vec<UnixStream> = (0..PLACES + 4).map(|_| edit(60)).collect();
    let has_answer = |mut client: &UnixStream| {
        client.set_nonblocking(true).unwrap();
        client.read(&mut [0]).is_ok()
    };
    wait_until("each place is taken", || clients.iter().filter(|it| has_answer(it)).count() == 4);
    assert_eq!(status(), b"503");
    drop(clients);
    let closed = Instant::now();
    wait_until("every place is free", || {
        let all: Vec<_> = (0..PLACES).map(|_| edit(2)).collect();
        let statuses = all.into_iter().map(|mut client| {
            let mut head = [0; 12];
            client.read_exact(&mut head).unwrap();
            head[9..].to_vec()
        });
        statuses.filter(|status| status == b"202").count() == PLACES
    });
    assert!(closed.elapsed() < Duration::from_secs(40), "{:?}", closed.elapsed());
}

#[test]
fn transfers_are_listed_while_they_run() {
    let strings = format!(" \"{}\"", "x".repeat(250)).repeat(200);
    let large: String = (0..400).map(|number| format!("t{number} TXT{strings}\n")).collect();
    let text = PLAIN.to_owned() + &large;
    let primary = Primary::start(&[("open.test", &text, "\"127.0.0.1\"")], "");
    let folder = primary.folder.path();
    assert!(done(folder, &["transfer", "ls"]).starts_with("no transfer runs\n"));
    // A client that asks for the zone and reads nothing of it: 20 MB fill all buffers.
    let mut stream = TcpStream::connect(primary.address).unwrap();
    let question = b"\x04open\x04test\0\0\xfc\0\x01";
    let query = [&b"\x12\x34\0\0\0\x01\0\0\0\0\0\0"[..], question].concat();
    let length = (query.len() as u16).to_be_bytes();
    stream.write_all(&[&length[..], &query].concat()).unwrap();
    let running = || json(folder, &["transfer", "ls"])["to_clients"].clone();
    wait_until("it runs", || running()[0]["messages"].as_u64() > Some(0));
    let one = &running()[0];
    let client = stream.local_addr().unwrap().to_string();
    assert_eq!((&one["zone"], &one["client"]), (&"open.test.".into(), &client.into()));
    assert_eq!((&one["asked"], &one["sent"]), (&"AXFR".into(), &"zone".into()));
    let said = done(folder, &["transfer", "list"]);
    assert!(said.contains("AXFR of the zone") && said.contains("open.test."), "{said}");
    drop(stream);
    wait_until("it has ended", || running() == Value::Array(Vec::new()));
    assert!(done(folder, &["transfer", "ls"]).contains("to clients so far: 0 completed, 1 failed"));
}

/// Starts Knot as a secondary of `up.test`.
fn knot(primary: SocketAddr) -> (Process, SocketAddr, Folder) {
    let (path, folder) = (required("knotd").unwrap(), Folder::new("knotd"));
    let own = folder.path().display().to_string();
    let (process, address) = start_on_free_port("knotd", &folder, &["up.test."], |folder, port| {
        let text = format!(
            "server:\n  listen: 127.0.0.1@{port}\n  rundir: {own}\n  udp-workers: 1\n  \
                 tcp-workers: 1\n  background-workers: 1\nlog:\n  - target: stderr\n    \
                 any: info\ndatabase:\n  storage: {own}\nkey:\n  - id: {key}\n    \
                 algorithm: hmac-sha256\n    secret: {secret}\nremote:\n  - id: zonda\n    \
                 address: 127.0.0.1@{at}\n    key: {key}\nacl:\n  - id: zonda\n    \
                 address: 127.0.0.1\n    action: [transfer, notify]\nzone:\n  \
                 - domain: up.test\n    storage: {own}\n    master: zonda\n    acl: zonda\n",
            key = KEY.0,
            secret = KEY.1,
            at = primary.port(),
        );
        let mut command = Command::new(&path);
        command.arg("-c").arg(folder.write("knot.conf", text));
        command
    });
    (process, address, folder)
}

#[test]
fn real_peers_knot_follows_a_rollback_as_it_follows_any_change_and_a_notify_by_command() {
    if !has_required(&["knotd"]) {
        return;
    }
    let keys = format!(
        "writable = true\ntransfer = {{ to = [\"127.0.0.1 key {0}\"], notify = [\"NOWHERE\"] }}",
        KEY.0
    );
    let silent = keys.replace(", notify = [\"NOWHERE\"]", "");
    let primary = Primary::start_with(&[("up.test", ZONE, &silent)], "");
    let folder = primary.folder.path().to_owned();
    let (_process, knot, _folder) = knot(primary.address);
    let config = fs::read_to_string(folder.join("zonda.toml")).unwrap();
    let told = keys.replace("NOWHERE", &knot.to_string());
    fs::write(folder.join("zonda.toml"), config.replace(&silent, &told)).unwrap();
    primary.reload();
    let key = key_argument();
    let own = |primary: &Primary| records(primary.address, "up.test", &["-y", &key]);
    let is_same = || own(&primary) == records(knot, "up.test", &[]);
    let first = own(&primary);
    for number in 0..5 {
        set(&folder, &format!("n{number}"), number);
    }
    wait_until("Knot has the edits", is_same);
    done(&folder, &["zone", "rollback", "up.test", "7"]);
    wait_until("Knot has the rollback", is_same);
    let without_serial = |records: Vec<String>| -> Vec<String> {
        records.into_iter().filter(|record| !record.contains(" SOA ")).collect()
    };
    assert_eq!(without_serial(records(knot, "up.test", &[])), without_serial(first));
    let sent = "zonda_notifies_total{result=\"acknowledged\"}";
    wait_until("it is acknowledged", || primary.metric("zonda_notifies_pending") == 0.0);
    let before = primary.metric(sent);
    done(&folder, &["zone", "notify", "up.test"]);
    wait_until("Knot acknowledges the message", || primary.metric(sent) == before + 1.0);
}
