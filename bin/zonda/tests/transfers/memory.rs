//! The memory that all transfers from primaries have together.

use crate::commands::{done, json};
use crate::primaries::{Script, Secondary, a, reply, send, send_first, soa, soa_of, zone};
use crate::primary::{Primary, metric, wait_until};
use serde_json::Value;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use zonda_testkit::process::free_port;
use zonda_zone::file::{Options, read_text};
use zonda_zone::{HashSeed, build};

/// The least bound; a zone of 80,000 addresses counts as seven eighths of it.
const BOUND: f64 = (16 << 20) as f64;
/// Seconds after which such a zone expires.
const EXPIRE: f64 = 1_209_600.0;

/// A zone of so many addresses with a serial.
fn zone_of(addresses: u32, serial: u32) -> String {
    let hosts: String = (0..addresses).map(|it| format!("host-{it} A 192.0.2.1\n")).collect();
    format!("$TTL 60\n@ SOA ns host {serial} 1 1 1209600 60\n@ NS ns\n{hosts}ns A 1.1.1.1\n")
}

/// A zone of 80,000 addresses with a serial.
fn large(serial: u32) -> String {
    zone_of(80_000, serial)
}

/// The sections of the least bound, and of an administrative interface.
fn bounds(admin: SocketAddr) -> String {
    format!(
        "[transfers]\nmemory-max = \"16 MiB\"\n[admin]\naddress = \"{admin}\"\n\
         socket = \"admin.sock\"\n"
    )
}

/// The section of `bad.test`, whose primary may send nothing for a minute.
fn slow(script: &Script) -> String {
    let text = zone("bad.test", &format!("\"{}\"", script.address), "");
    text.replace("idle-timeout = \"2s\"", "idle-timeout = \"1m\"")
}

/// The keys of a zone whose primary keeps no changes of it, so that it sends the whole zone.
const NO_CHANGES: &str = "transfer = { to = [\"127.0.0.1\"] }\nhistory = { versions = 0 }";
/// The type of a question for changes.
const IXFR: u16 = 251;

/// Sends records of `bad.test`, and 200,000 addresses behind them, which count as 27 MiB in a zone,
/// and as 38 MiB in changes.
fn send_hosts(stream: &mut TcpStream, query: &[u8], records: Vec<Vec<u8>>) {
    send(stream, &reply(query, &records));
    send_hosts_below(stream, query, "bad.test");
}

/// Sends 200,000 addresses of a zone.
fn send_hosts_below(stream: &mut TcpStream, query: &[u8], zone: &str) {
    for message in 0..400 {
        let host = |number| a(&format!("host-{message}-{number}.{zone}"));
        let records: Vec<Vec<u8>> = (0..500).map(host).collect();
        send(stream, &reply(query, &records));
    }
}

/// Sends records of `bad.test` that take more memory than the bound, and no end of the zone until
/// that is allowed; a zone of serial 1 is small.
fn send_slowly(stream: &mut TcpStream, query: &[u8], serial: u32, is_allowed: &AtomicBool) {
    if send_first(stream, query, serial) {
        return;
    }
    send_hosts(stream, query, vec![soa(serial)]);
    while !is_allowed.load(SeqCst) {
        thread::sleep(Duration::from_millis(20));
    }
    send(stream, &reply(query, &[soa(serial)]));
}

/// The transfers that a primary sends.
fn to_clients(primary: &Primary) -> Value {
    json(primary.folder.path(), &["transfer", "ls"])["to_clients"].clone()
}

/// The transfers that wait at a server.
fn waiting(server: &Secondary) -> Vec<Value> {
    json(server.folder.path(), &["transfer", "ls"])["waiting"].as_array().unwrap().clone()
}

#[test]
fn the_first_transfer_of_a_large_zone_takes_a_quarter_more_than_the_zone_at_most() {
    let (text, small) = (zone_of(800_000, 7), zone_of(1, 7));
    let all = "\"127.0.0.1\"";
    let primary = Primary::start(&[("large.test", &text, all), ("small.test", &small, all)], "");
    let from = format!("\"{}\"", primary.address);
    let server = Secondary::start(&zone("small.test", &from, ""));
    wait_until("a small zone", || server.serial("small.test") == Some(7));
    let before = server.memory_kib();
    let file = server.folder.path().join("zonda.toml");
    let section = zone("large.test", &from, "");
    fs::write(&file, fs::read_to_string(&file).unwrap() + "\n" + &section).unwrap();
    server.reload();
    wait_until("the zone", || server.serial("large.test") == Some(7));
    let taken = server.memory_peak_kib() - before;
    let apex = "large.test".parse().unwrap();
    let records = read_text(text.as_bytes(), "text".as_ref(), &apex, &Options::default()).0;
    let of_zone = build(&apex, &records, HashSeed::random()).unwrap().bytes() as u64 >> 10;
    assert!(taken <= of_zone + of_zone / 4, "{taken} KiB at most for a zone of {of_zone} KiB");
}

#[test]
fn transfers_that_take_more_memory_together_than_they_may_wait_for_each_other() {
    let names: Vec<String> = (0..6).map(|number| format!("z{number}.test")).collect();
    let text = large(7);
    let zones: Vec<(&str, &str, &str)> =
        names.iter().map(|name| (name.as_str(), text.as_str(), "\"127.0.0.1\"")).collect();
    let primary = Primary::start(&zones, "");
    let from = format!("\"{}\"", primary.address);
    let zones: String = names.iter().map(|name| zone(name, &from, "")).collect();
    let admin = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let own = bounds(admin);
    let server = Secondary::start(&format!("{own}{zones}"));
    let used = || metric(admin, "zonda_secondary_memory_bytes");
    let mut peak = 0.0_f64;
    for name in &names {
        wait_until(name, || {
            peak = peak.max(used());
            server.serial(name) == Some(7)
        });
    }
    // The oldest transfer goes on in any case, and has less than the rest may have.
    assert!(peak > 0.0 && peak <= f64::from(32 << 20), "{peak}");
    let waits = metric(admin, "zonda_secondary_memory_waits_total");
    assert!(waits > 0.0, "none has waited: {}", server.log());
    wait_until("all is given back", || used() == 0.0);
    assert_eq!(metric(admin, "zonda_secondary_memory_waiting"), 0.0);
}

#[test]
fn a_slow_transfer_of_a_large_zone_holds_up_no_small_one_and_a_large_one_waits_unconnected() {
    static IS_ALLOWED: AtomicBool = AtomicBool::new(false);
    let script = Script::start(|stream, query, _, serial| {
        send_slowly(stream, query, serial, &IS_ALLOWED);
    });
    let small = |serial| zone_of(1, serial);
    let (all, text) = ("\"127.0.0.1\"", small(7));
    let zones = [("large.test", large(7).leak() as &str, all), ("small.test", &text, all)];
    let primary = Primary::start(&zones, "");
    let from = format!("\"{}\"", primary.address);
    let admin = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let [large, small_zone] = ["large.test", "small.test"].map(|name| zone(name, &from, ""));
    let own = bounds(admin);
    let server = Secondary::start(&format!("{own}{large}{small_zone}{}", slow(&script)));
    let folder = server.folder.path().to_owned();
    wait_until("all zones", || {
        let serials = ["large.test", "small.test", "bad.test"].map(|name| server.serial(name));
        serials == [Some(7), Some(7), Some(1)]
    });
    script.serial.store(2, SeqCst);
    wait_until("it has all", || metric(admin, "zonda_secondary_memory_bytes") > BOUND);
    let is_sent = || primary.metric("zonda_transfers_total{result=\"completed\"}");
    let (sent, began) = (is_sent(), Instant::now());
    thread::scope(|scope| {
        let command = scope.spawn(|| done(&folder, &["zone", "retransfer", "large.test"]));
        wait_until("it waits", || !waiting(&server).is_empty());
        let wait = &waiting(&server)[0];
        let of = [&wait["zone"], &wait["primary"]].map(|it| it.as_str().unwrap().to_owned());
        assert_eq!(of, ["large.test.".to_owned(), primary.address.to_string()]);
        assert!(wait["bytes"].as_u64() > Some(5 << 20), "{wait}");
        assert!(done(&folder, &["transfer", "ls"]).contains("waits for memory"));
        assert!(done(&folder, &["zone", "show", "large.test"]).contains("waits for memory  for"));
        assert_eq!(metric(admin, "zonda_secondary_memory_waiting"), 1.0);
        fs::write(primary.folder.path().join("1.zone"), small(8)).unwrap();
        primary.reload();
        wait_until("a small zone", || server.serial("small.test") == Some(8));
        thread::sleep(Duration::from_secs(6).saturating_sub(began.elapsed()));
        assert_eq!(waiting(&server).len(), 1, "{}", server.log());
        assert!(is_sent() <= sent + 1.0, "only the small zone was asked for");
        assert_eq!(to_clients(&primary), Value::Array(Vec::new()), "it is not connected");
        IS_ALLOWED.store(true, SeqCst);
        let said = command.join().unwrap();
        assert!(said.contains("transferred"), "the command is told when it is done: {said}");
    });
    assert!(is_sent() > sent && waiting(&server).is_empty());
    let expires = metric(admin, "zonda_secondary_expires_timestamp_seconds{zone=\"large.test.\"}");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    assert!(expires - now > EXPIRE - 4.0, "the wait does not count: {}", expires - now);
    assert_eq!(server.serial("bad.test"), Some(2));
}

#[test]
fn a_new_zone_that_proves_to_be_large_begins_anew_when_a_reload_allows_more_memory() {
    static IS_ALLOWED: AtomicBool = AtomicBool::new(false);
    let script = Script::start(|stream, query, _, serial| {
        send_slowly(stream, query, serial, &IS_ALLOWED);
    });
    script.serial.store(2, SeqCst);
    let primary = Primary::start(&[("large.test", &large(7), "\"127.0.0.1\"")], "");
    let admin = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let server = Secondary::start(&format!("{}{}", bounds(admin), slow(&script)));
    wait_until("it has all", || metric(admin, "zonda_secondary_memory_bytes") > BOUND);
    let file = server.folder.path().join("zonda.toml");
    let zone = zone("large.test", &format!("\"{}\"", primary.address), "");
    let text = fs::read_to_string(&file).unwrap() + "\n" + &zone;
    fs::write(&file, &text).unwrap();
    server.reload();
    wait_until("it is given up, and waits", || !waiting(&server).is_empty());
    let failed = "zonda_secondary_transfers_total{result=\"failed\"}";
    assert_eq!((metric(admin, failed), server.serial("large.test")), (0.0, None));
    wait_until("it is not connected", || to_clients(&primary) == Value::Array(Vec::new()));
    fs::write(&file, text.replace("16 MiB", "256 MiB")).unwrap();
    server.reload();
    wait_until("the zone", || server.serial("large.test") == Some(7));
    assert_eq!((waiting(&server).len(), server.serial("bad.test")), (0, None));
    IS_ALLOWED.store(true, SeqCst);
    wait_until("the slow zone", || server.serial("bad.test") == Some(2));
}

#[test]
fn zones_that_wait_have_no_thread_so_that_small_zones_of_their_primary_are_refreshed() {
    const ZONES: usize = 20; // more than there are threads
    static IS_ALLOWED: AtomicBool = AtomicBool::new(false);
    let script = Script::start(|stream, query, _, serial| {
        send_slowly(stream, query, serial, &IS_ALLOWED);
    });
    let names: Vec<String> = (0..ZONES).map(|number| format!("z{number}.test")).collect();
    let text = zone_of(8_000, 7);
    let all = "\"127.0.0.1\"";
    let mut zones: Vec<_> = names.iter().map(|name| (name.as_str(), text.as_str(), all)).collect();
    let small = zone_of(1, 7);
    zones.push(("small.test", &small, all));
    let primary = Primary::start(&zones, "");
    let from = format!("\"{}\"", primary.address);
    let sections: String = zones.iter().map(|(name, ..)| zone(name, &from, "")).collect();
    let admin = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let server = Secondary::start(&format!("{}{sections}{}", bounds(admin), slow(&script)));
    for (name, ..) in &zones {
        wait_until(name, || server.serial(name) == Some(7));
    }
    script.serial.store(2, SeqCst);
    wait_until("it has all", || metric(admin, "zonda_secondary_memory_bytes") > BOUND);
    thread::scope(|scope| {
        for name in &names {
            let folder = server.folder.path();
            scope.spawn(|| done(folder, &["zone", "retransfer", name]));
        }
        wait_until("all wait", || waiting(&server).len() == ZONES);
        let file = format!("{ZONES}.zone");
        fs::write(primary.folder.path().join(file), zone_of(1, 8)).unwrap();
        primary.reload();
        wait_until("a small zone", || server.serial("small.test") == Some(8));
        assert_eq!(waiting(&server).len(), ZONES, "{}", server.log());
        let running = || metric(admin, "zonda_secondary_queue{queue=\"running\"}");
        wait_until("the slow one alone has a thread", || running() == 1.0);
        IS_ALLOWED.store(true, SeqCst);
    });
    wait_until("all are done", || waiting(&server).is_empty());
}

#[test]
fn changes_that_cannot_be_taken_give_back_their_memory_before_the_whole_zone_comes() {
    let script = Script::start(|stream, query, qtype, serial| {
        if send_first(stream, query, serial) {
            return;
        }
        if qtype == IXFR {
            send_hosts(stream, query, vec![soa(4), soa(1), soa(2)]);
            send(stream, &reply(query, &[soa(3)])); // a gap
        } else {
            send_hosts(stream, query, vec![soa(4)]);
            send(stream, &reply(query, &[soa(4)]));
        }
    });
    let admin = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let server = Secondary::start(&format!("{}{}", bounds(admin), slow(&script)));
    wait_until("the first transfer", || server.serial("bad.test") == Some(1));
    script.serial.store(4, SeqCst);
    let mut peak = 0.0_f64;
    wait_until("the whole zone", || {
        peak = peak.max(metric(admin, "zonda_secondary_memory_bytes"));
        server.serial("bad.test") == Some(4)
    });
    assert!(server.log().contains("changes are missing"), "{}", server.log());
    assert!((BOUND..3.0 * BOUND).contains(&peak), "both would be 65 MiB: {peak}");
}

#[test]
fn a_whole_zone_that_comes_in_place_of_changes_waits_unconnected_and_is_asked_for_as_such_then() {
    static IS_ALLOWED: AtomicBool = AtomicBool::new(false);
    let script = Script::start(|stream, query, _, serial| {
        send_slowly(stream, query, serial, &IS_ALLOWED);
    });
    let primary = Primary::start_with(&[("large.test", &large(7), NO_CHANGES)], "");
    let section = zone("large.test", &format!("\"{}\"", primary.address), "");
    let admin = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let server = Secondary::start(&format!("{}{section}{}", bounds(admin), slow(&script)));
    wait_until("both zones", || {
        ["large.test", "bad.test"].map(|name| server.serial(name)) == [Some(7), Some(1)]
    });
    script.serial.store(2, SeqCst);
    wait_until("it has all", || metric(admin, "zonda_secondary_memory_bytes") > BOUND);
    fs::write(primary.folder.path().join("0.zone"), large(8)).unwrap();
    primary.reload();
    wait_until("the large zone waits", || !waiting(&server).is_empty());
    let wait = waiting(&server).remove(0);
    assert!(wait["bytes"].as_u64() > Some(10 << 20), "as much as the former version: {wait}");
    thread::sleep(Duration::from_secs(3));
    let later = waiting(&server).remove(0);
    assert_eq!((&wait["since"], &wait["bytes"]), (&later["since"], &later["bytes"]));
    assert_eq!(to_clients(&primary), Value::Array(Vec::new()), "it is not connected");
    IS_ALLOWED.store(true, SeqCst);
    wait_until("the large zone", || server.serial("large.test") == Some(8));
    assert_eq!(metric(admin, "zonda_secondary_fallbacks_total"), 1.0);
    let log = server.log();
    assert!(log.contains("a transfer waits for memory"), "{log}");
    let line = log.lines().rfind(|line| line.contains("the whole zone came in place of changes"));
    let line = line.unwrap_or_else(|| panic!("{log}"));
    assert!(line.contains("AXFR") && line.contains("waited"), "{line}");
    let results = ["completed", "failed"]
        .map(|it| primary.metric(&format!("zonda_transfers_total{{result=\"{it}\"}}")));
    assert_eq!(results[0] + results[1], 3.0, "one of changes, which is cut: {results:?}");
}

#[test]
fn zones_that_wait_for_memory_in_the_middle_do_not_make_their_primary_a_slow_one() {
    const ZONES: usize = 20;
    static IS_ALLOWED: AtomicBool = AtomicBool::new(false);
    let script = Script::start(|stream, query, _, serial| {
        send_slowly(stream, query, serial, &IS_ALLOWED);
    });
    script.serial.store(2, SeqCst);
    let names: Vec<String> = (0..ZONES).map(|number| format!("z{number}.test")).collect();
    let text = zone_of(16_000, 7);
    let all = "\"127.0.0.1\"";
    let zones: Vec<_> = names.iter().map(|name| (name.as_str(), text.as_str(), all)).collect();
    let primary = Primary::start(&zones, "");
    let admin = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let server = Secondary::start(&format!("{}{}", bounds(admin), slow(&script)));
    wait_until("it has all", || metric(admin, "zonda_secondary_memory_bytes") > BOUND);
    let from = format!("\"{}\"", primary.address);
    let sections: String = names.iter().map(|name| zone(name, &from, "")).collect();
    let file = server.folder.path().join("zonda.toml");
    fs::write(&file, fs::read_to_string(&file).unwrap() + "\n" + &sections).unwrap();
    server.reload();
    // They are new, so that each begins, and has waited for three seconds when it is given up.
    wait_until("the first are given up", || !waiting(&server).is_empty());
    let running = || metric(admin, "zonda_secondary_queue{queue=\"running\"}");
    wait_until("as many follow at once", || waiting(&server).len() >= 8 && running() == 9.0);
    IS_ALLOWED.store(true, SeqCst);
    for name in &names {
        wait_until(name, || server.serial(name) == Some(7));
    }
}

#[test]
fn a_zone_comes_from_its_second_primary_after_a_wait_if_the_first_has_none_to_send() {
    static IS_ALLOWED: AtomicBool = AtomicBool::new(false);
    let script = Script::start(|stream, query, _, serial| {
        send_slowly(stream, query, serial, &IS_ALLOWED);
    });
    let closes = Script::start_for("large.test", |_, _, _, _| ());
    [&script, &closes].iter().for_each(|it| it.serial.store(8, SeqCst));
    let primary = Primary::start(&[("large.test", &large(7), "\"127.0.0.1\"")], "");
    let admin = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let server = Secondary::start(&format!("{}{}", bounds(admin), slow(&script)));
    wait_until("it has all", || metric(admin, "zonda_secondary_memory_bytes") > BOUND);
    let from = format!("\"{}\", \"{}\"", closes.address, primary.address);
    let file = server.folder.path().join("zonda.toml");
    let text = fs::read_to_string(&file).unwrap() + "\n" + &zone("large.test", &from, "");
    fs::write(&file, text).unwrap();
    server.reload();
    wait_until("it waits", || !waiting(&server).is_empty());
    assert_eq!(waiting(&server)[0]["primary"], primary.address.to_string());
    let asked = closes.asked.load(SeqCst);
    thread::sleep(Duration::from_secs(2));
    assert_eq!((waiting(&server).len(), closes.asked.load(SeqCst)), (1, asked));
    IS_ALLOWED.store(true, SeqCst);
    wait_until("the zone", || server.serial("large.test") == Some(7));
    assert!(closes.asked.load(SeqCst) > asked, "the first was asked once more");
}

#[test]
fn a_reload_removes_or_changes_zones_that_wait_and_a_server_that_has_such_stops_soon() {
    static IS_ALLOWED: AtomicBool = AtomicBool::new(false);
    let script = Script::start(|stream, query, _, serial| {
        send_slowly(stream, query, serial, &IS_ALLOWED);
    });
    let names = ["gone.test", "kept.test"];
    let text = large(7);
    let primary = Primary::start_with(&names.map(|name| (name, text.as_str(), NO_CHANGES)), "");
    let from = format!("\"{}\"", primary.address);
    let [gone, kept] = names.map(|name| zone(name, &from, ""));
    let admin = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let mut server = Secondary::start(&format!("{}{gone}\n{kept}{}", bounds(admin), slow(&script)));
    wait_until("all zones", || {
        ["gone.test", "kept.test", "bad.test"].map(|name| server.serial(name))
            == [Some(7), Some(7), Some(1)]
    });
    script.serial.store(2, SeqCst);
    wait_until("it has all", || metric(admin, "zonda_secondary_memory_bytes") > BOUND);
    for file in ["0.zone", "1.zone"] {
        fs::write(primary.folder.path().join(file), large(8)).unwrap();
    }
    primary.reload();
    wait_until("both wait", || waiting(&server).len() == 2);
    let wait_of = |zone: &str| waiting(&server).into_iter().find(|it| it["zone"] == zone);
    let since = wait_of("kept.test.").unwrap()["since"].clone();
    let file = server.folder.path().join("zonda.toml");
    let changed = kept.clone() + "time-max = \"1h\"\n";
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace(&kept, &changed).replace(&gone, "")).unwrap();
    server.reload();
    wait_until("one is gone", || waiting(&server).len() == 1);
    thread::sleep(Duration::from_secs(2));
    assert_eq!(wait_of("kept.test.").unwrap()["since"], since, "{}", server.log());
    let began = Instant::now();
    server.restart();
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    IS_ALLOWED.store(true, SeqCst);
    wait_until("the rest", || {
        ["kept.test", "bad.test"].map(|name| server.serial(name)) == [Some(8), Some(2)]
    });
}

#[test]
fn a_whole_zone_after_changes_that_cannot_be_taken_is_asked_for_after_a_wait_without_those() {
    static IS_ALLOWED: AtomicBool = AtomicBool::new(false);
    static CHANGES: AtomicUsize = AtomicUsize::new(0);
    let gap = Script::start(|stream, query, qtype, serial| {
        if send_first(stream, query, serial) {
            return;
        }
        if qtype == IXFR {
            CHANGES.fetch_add(1, SeqCst);
            send(stream, &reply(query, &[soa(4), soa(1), soa(2), soa(3)]));
        } else {
            send_hosts(stream, query, vec![soa(4)]);
            send(stream, &reply(query, &[soa(4)]));
        }
    });
    let holder = Script::start_for("slow.test", |stream, query, _, _| {
        send(stream, &reply(query, &[soa_of("slow.test", 1)]));
        send_hosts_below(stream, query, "slow.test");
        while !IS_ALLOWED.load(SeqCst) {
            thread::sleep(Duration::from_millis(20));
        }
        send(stream, &reply(query, &[soa_of("slow.test", 1)]));
    });
    let admin = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let server = Secondary::start(&format!("{}{}", bounds(admin), slow(&gap)));
    wait_until("the first version", || server.serial("bad.test") == Some(1));
    let file = server.folder.path().join("zonda.toml");
    let section = slow(&holder).replace("bad.test", "slow.test");
    fs::write(&file, fs::read_to_string(&file).unwrap() + "\n" + &section).unwrap();
    server.reload();
    wait_until("it has all", || metric(admin, "zonda_secondary_memory_bytes") > BOUND);
    gap.serial.store(4, SeqCst);
    wait_until("the whole zone waits", || !waiting(&server).is_empty());
    IS_ALLOWED.store(true, SeqCst);
    wait_until("the whole zone", || server.serial("bad.test") == Some(4));
    assert_eq!(CHANGES.load(SeqCst), 1, "{}", server.log());
    assert_eq!(metric(admin, "zonda_secondary_fallbacks_total"), 1.0);
    let log = server.log();
    let line = log.lines().rfind(|line| line.contains("a zone was transferred")).unwrap();
    assert!(log.contains("changes are missing"), "{line}");
}
