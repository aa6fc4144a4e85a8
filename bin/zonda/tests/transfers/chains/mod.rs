//! A thousand versions of a zone that go from one server to another: each pair of Zonda and Knot,
//! NSD, BIND or PowerDNS. Each version that the secondary serves was one of the primary's.

mod cuts;
mod powerdns;
mod proxy;
mod servers;
mod short;
mod signed;

use crate::primary::{client, key_argument};
use crate::real_peers::ZONE;
use servers::Server;
use std::collections::BTreeSet;
use std::io::Write;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use zonda_testkit::process::{bounded, required};

/// The serial of the first version.
const FIRST: u32 = 100;
/// Versions behind the first one.
const VERSIONS: u32 = 1000;
/// Versions after which the primary pauses, and both servers must have the same.
const ROUND: u32 = 50;
/// Rounds in the middle of which the primary, and the secondary, are ended and started again.
const RESTARTS: [u32; 2] = [7, 14];

/// The records of a version, as dig prints them: names come and go, TTLs and data change, a
/// delegation moves with its glue, and another one hides names at times.
fn version(serial: u32) -> BTreeSet<String> {
    let mut records = BTreeSet::new();
    let mut add = |name: &str, ttl: u32, data: &str| {
        records.insert(format!("{name}{ZONE}. {ttl} IN {data}"));
    };
    let numbers = "7200 3600 1209600 60";
    add("", 60, &format!("SOA ns.{ZONE}. host.{ZONE}. {serial} {numbers}"));
    add("", 60, &format!("NS ns.{ZONE}."));
    add("ns.", 60, "A 192.0.2.1");
    add("version.", 60, &format!("TXT \"{serial}\""));
    let server = serial / 5 % 3;
    add("sub.", 60, &format!("NS ns{server}.sub.{ZONE}."));
    add(&format!("ns{server}.sub."), 60, &format!("A 192.0.2.{}", 10 + server));
    if serial % 20 < 10 {
        add("cut.", 300, "NS ns.elsewhere.test.");
        add("cut.", 300, "NS ns2.elsewhere.test.");
    }
    add("www.cut.", 60, "A 192.0.2.3");
    add("alias.", 60, &format!("CNAME h{}.{ZONE}.", serial / 4 % 9));
    for number in 0..200 {
        let ttl = 60 + 10 * ((serial + 7 * number) / 100 % 4);
        if !(serial + number).is_multiple_of(100) {
            add(&format!("h{number}."), ttl, &format!("A 10.0.{}.1", number % 7));
        }
        if (serial + number) % 120 < 3 {
            add(&format!("h{number}."), 30, &format!("TXT \"text of {number}\""));
            add(&format!("h{number}."), 30, "TXT \"other\"");
            add(&format!("*.w{number}."), 60, "A 10.1.1.1");
        }
    }
    records
}

/// Records that are in all versions where transfers shall have several messages.
fn bulk() -> BTreeSet<String> {
    let text = "x".repeat(200);
    (0..150).map(|number| format!("bulk{number}.{ZONE}. 60 IN TXT \"{text}\"")).collect()
}

/// The lines with which nsupdate makes a version of the one before.
fn update(serial: u32) -> String {
    let (former, new) = (version(serial - 1), version(serial));
    let lines = |what: &str, all: Vec<&String>| -> String {
        let all = all.into_iter().filter(|record| !record.contains(" IN SOA "));
        all.map(|record| format!("update {what} {record}\n")).collect()
    };
    let removed = lines("delete", former.difference(&new).collect());
    let added = lines("add", new.difference(&former).collect());
    format!("zone {ZONE}.\n{removed}{added}send\n")
}

/// Has a primary make the versions up to one, each by a message of its own, with a pause now and
/// then, in which a secondary may follow; or by its file where it takes no updates.
fn publish(primary: &Server, (from, to): (u32, u32)) {
    if primary.edit_versions((from, to)) {
        return;
    }
    let mut command = bounded(required("nsupdate").unwrap());
    command.args(["-y", &key_argument()]).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut script = child.stdin.take().unwrap();
    writeln!(script, "server 127.0.0.1 {}", primary.address.port()).unwrap();
    for serial in from + 1..=to {
        script.write_all(update(serial).as_bytes()).unwrap();
        if serial.is_multiple_of(5) {
            thread::sleep(Duration::from_millis(10));
        }
    }
    drop(script);
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "{said} {}", primary.log());
    assert_eq!(primary.serial(), Some(to), "a version for each message: {said}");
}

/// The records that a server has; none if the transfer is not whole, as that of a server that ends.
fn transfer(address: SocketAddr, options: &[&str]) -> Option<BTreeSet<String>> {
    let text = client("dig", address, &[&["+noall", "+answer", ZONE, "AXFR"], options].concat());
    let is_record = |line: &&str| !line.starts_with(';') && !line.contains("\tTSIG\t");
    let lines = text.lines().filter(is_record).filter(|line| !line.is_empty());
    let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let all: Vec<String> = words.collect();
    let is_whole = all.len() > 2 && all.first() == all.last() && !text.contains("; Transfer");
    is_whole.then(|| all.into_iter().collect())
}

/// The serial of these records, which must be those of a version.
fn check_version(records: &BTreeSet<String>) -> u32 {
    let soa = records.iter().find_map(|record| record.split_once(" IN SOA "));
    let serial = soa.unwrap().1.split(' ').nth(2).unwrap().parse().unwrap();
    let expected = version(serial);
    let (missing, other): (Vec<_>, Vec<_>) =
        (expected.difference(records).collect(), records.difference(&expected).collect());
    assert!(missing.is_empty() && other.is_empty(), "{serial} lacks {missing:?}, has {other:?}");
    serial
}

/// Ends what looks at a server when the test ends, also if that fails.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Transfers the zone of a secondary again and again: each time it is a version, and none is lower
/// than the one before, which is `last`.
fn observe(address: SocketAddr, is_over: &AtomicBool, last: &AtomicU32) {
    // Also if a check fails, so that the test does not wait for a version in vain.
    let _ending = Ending(is_over);
    while !is_over.load(Relaxed) {
        if let Some(records) = transfer(address, &[]) {
            let serial = check_version(&records);
            let former = last.swap(serial, Relaxed);
            assert!(serial >= former, "version {serial} behind {former}");
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Has a primary make all versions, and the secondary follow; `is_observed` if the secondary is
/// looked at in the rounds as well, each of which lasts until its last version has been seen.
fn check(primary: &mut Server, secondary: &mut Server, is_observed: bool) {
    let address = secondary.address;
    let (is_over, seen) = (&AtomicBool::new(false), &AtomicU32::new(FIRST));
    secondary.wait_for(FIRST);
    thread::scope(|scope| {
        let _ending = Ending(is_over);
        if is_observed {
            scope.spawn(move || observe(address, is_over, seen));
        }
        for round in 0..VERSIONS / ROUND {
            let from = FIRST + round * ROUND;
            publish(primary, (from, from + ROUND / 2));
            for (at, server) in RESTARTS.iter().zip([&mut *primary, &mut *secondary]) {
                if round == *at {
                    server.restart();
                }
            }
            publish(primary, (from + ROUND / 2, from + ROUND));
            secondary.wait_for(from + ROUND);
            let ours = transfer(primary.address, &["-y", &key_argument()]).unwrap();
            assert_eq!(check_version(&ours), from + ROUND);
            assert_eq!(transfer(address, &[]).as_ref(), Some(&ours));
            let limit = Instant::now() + servers::LIMIT;
            while is_observed && !is_over.load(Relaxed) && seen.load(Relaxed) != from + ROUND {
                assert!(Instant::now() < limit, "the observer has seen {seen:?}");
                thread::sleep(Duration::from_millis(10));
            }
        }
    });
}

/// Has a server of Zonda's make all versions, and a peer follow by what has changed.
fn check_out(name: &'static str, is_observed: bool) {
    if !Server::has_programs_of(name) {
        return;
    }
    let [ours, theirs] = [(); 2].map(|()| Server::free_address());
    let mut primary = Server::zonda_primary(ours, theirs);
    let mut secondary = Server::secondary(name, theirs, ours);
    check(&mut primary, &mut secondary, is_observed);
    let log = primary.log();
    let changes = log.matches("sent=\"changes\"").count();
    assert!(changes >= 10, "{changes} transfers of changes: {log}");
    // Those of a secondary that is far behind, or is started again with nothing.
    let whole = log.matches("asked=IXFR sent=\"zone\"").count();
    assert!(whole * 4 <= changes, "{whole} whole zones and {changes} transfers of changes: {log}");
}

/// Has a peer make all versions, and Zonda follow; `kind` is how the changes come.
fn check_in(name: &'static str, kind: &str, is_observed: bool) {
    if !Server::has_programs_of(name) {
        return;
    }
    let [ours, theirs] = [(); 2].map(|()| Server::free_address());
    let mut primary = Server::primary(name, theirs, ours);
    let mut secondary = Server::zonda_secondary(ours, theirs);
    check(&mut primary, &mut secondary, is_observed);
    let log = secondary.log();
    assert!(log.matches(&format!("kind=\"{kind}\"")).count() >= 5, "{log}");
}

#[test]
fn real_peers_knot_follows_a_thousand_versions_of_zonda() {
    check_out("knot", true);
}

#[test]
fn real_peers_nsd_follows_a_thousand_versions_of_zonda() {
    check_out("nsd", true);
}

#[test]
fn real_peers_bind_follows_a_thousand_versions_of_zonda() {
    check_out("bind", true);
}

#[test]
fn real_peers_zonda_follows_a_thousand_versions_of_knot() {
    check_in("knot", "IXFR", true);
}

#[test]
fn real_peers_zonda_follows_a_thousand_versions_of_nsd() {
    check_in("nsd", "AXFR", true); // it makes no changes of files
}

#[test]
fn real_peers_zonda_follows_a_thousand_versions_of_bind() {
    check_in("bind", "IXFR", true);
}

#[test]
fn real_peers_zonda_follows_a_thousand_versions_of_zonda() {
    if !Server::has_programs_of("zonda") {
        return;
    }
    let [first, second] = [(); 2].map(|()| Server::free_address());
    let mut primary = Server::zonda_primary(first, second);
    let mut secondary = Server::zonda_secondary(second, first);
    check(&mut primary, &mut secondary, true);
    let log = secondary.log();
    assert!(log.matches("kind=\"IXFR\"").count() >= 10, "{log}");
}
