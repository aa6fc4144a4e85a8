//! ALIAS records that are transferred as the addresses of their targets, to scripted clients and to
//! Knot, NSD and BIND.

use crate::primary::{KEY, Primary, client, key_argument, records, wait_until};
use crate::real_peers::{ZONE, bind_secondary, knot, nsd};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use zonda_testkit::Upstream;
use zonda_testkit::process::{Folder, Process, required, start_on_free_port};
use zonda_testkit::upstream::{Record, Reply, Rule, always, say, wait, when};

/// The number of the type AAAA.
const AAAA: u16 = 28;

/// A version of the zone: targets here and elsewhere, beside other data, one that does not exist,
/// and a name below a delegation.
fn version(serial: u32) -> String {
    format!(
        "$ORIGIN {ZONE}.\n$TTL 300\n@ SOA ns host {serial} 7200 3600 1209600 60\n@ NS ns\n\
         ns A 192.0.2.1\n@ ALIAS lb.example.net.\n@ MX 10 host\nshop 20 ALIAS host\n\
         own ALIAS lb.example.net.\nown AAAA 2001:db8::9\n*.wild ALIAS lb.example.net.\n\
         gone ALIAS missing.example.net.\nhost A 192.0.2.2\nhost A 192.0.2.3\n\
         sub NS ns.elsewhere.test.\nbelow.sub ALIAS host\n\
         @ ZONEMD {serial} 1 1 {:0>96}\n",
        1
    )
}

/// The records of a version of the zone when it is sent with addresses, as dig prints them.
fn expanded(serial: u32, octet: u8, ttl: u32) -> Vec<String> {
    let soa = format!("ns.{ZONE}. host.{ZONE}. {serial} 7200 3600 1209600 60");
    let mut records = vec![
        format!("{ZONE}. 300 IN SOA {soa}"),
        format!("{ZONE}. 300 IN NS ns.{ZONE}."),
        format!("{ZONE}. 300 IN MX 10 host.{ZONE}."),
        format!("{ZONE}. {ttl} IN A 192.0.2.{octet}"),
        format!("ns.{ZONE}. 300 IN A 192.0.2.1"),
        format!("shop.{ZONE}. 20 IN A 192.0.2.2"),
        format!("shop.{ZONE}. 20 IN A 192.0.2.3"),
        format!("own.{ZONE}. {ttl} IN A 192.0.2.{octet}"),
        format!("own.{ZONE}. 300 IN AAAA 2001:db8::9"),
        format!("*.wild.{ZONE}. {ttl} IN A 192.0.2.{octet}"),
        format!("host.{ZONE}. 300 IN A 192.0.2.2"),
        format!("host.{ZONE}. 300 IN A 192.0.2.3"),
        format!("sub.{ZONE}. 300 IN NS ns.elsewhere.test."),
    ];
    records.sort();
    records
}

/// Records of which the addresses of the second script are as old as they may be: a few seconds.
fn fresh(records: Vec<String>) -> Vec<String> {
    let mut records = records;
    for record in &mut records {
        for age in 1..=5 {
            let (aged, new) = (format!(" {} IN A 192.0.2.9", 60 - age), " 60 IN A 192.0.2.9");
            *record = record.replace(&aged, new);
        }
    }
    records.sort();
    records
}

/// A script of an upstream that has this address for all names but one, for so many seconds.
fn script(octet: u8, ttl: u32) -> [Rule; 2] {
    let denial = |rcode| Reply::rcode(rcode).authority(Record::soa("example.net", 60));
    let addresses = Reply::empty().answer(Record::address(octet).ttl(ttl));
    let missing = when(|asked| asked.name.starts_with("missing.") || asked.record_type == AAAA);
    [missing.then([say(denial(0))]), always().then([say(addresses)])]
}

/// A server that transfers the first version with addresses, to clients with a key or to all.
fn primary(upstream: &Upstream, to: &str) -> Primary {
    let keys = format!("alias-transfer = \"expanded\"\ntransfer = {{ to = [{to}] }}");
    let more =
        format!("[answers]\nalias-resolver = [\"{}\"]\nalias-refresh = false", upstream.address);
    Primary::start_with(&[(ZONE, &version(7), &keys)], &more)
}

/// Changes the file of the zone, and has it loaded.
fn publish(primary: &Primary, serial: u32) {
    fs::write(primary.folder.path().join("0.zone"), version(serial)).unwrap();
    primary.reload();
}

/// The number of records in a reply to IXFR, the SOA record at its end included.
fn ixfr(primary: &Primary, serial: u32, transport: &str) -> usize {
    let question = format!("IXFR={serial}");
    let said = primary.ask("dig", &[transport, "+noall", "+answer", ZONE, &question]);
    said.lines().filter(|line| !line.starts_with(';') && !line.is_empty()).count()
}

#[test]
fn a_transfer_has_the_addresses_of_targets_in_place_of_alias_records() {
    let upstream = Upstream::start(script(7, 60));
    let primary = primary(&upstream, "\"127.0.0.1\"");
    assert_eq!(records(primary.address, ZONE, &[]), expanded(7, 7, 60));
    let said = primary.ask("dig", &["+short", ZONE, "TYPE65401"]);
    assert!(said.contains("lb") || said.contains("\\#"), "a query finds the record: {said}");
}

#[test]
fn a_zone_with_addresses_is_sent_whole_to_clients_that_ask_for_changes() {
    let upstream = Upstream::start(script(7, 60));
    let primary = primary(&upstream, "\"127.0.0.1\"");
    publish(&primary, 8);
    let whole = expanded(8, 7, 60).len() + 1;
    assert_eq!(ixfr(&primary, 7, "+tcp"), whole);
    assert_eq!(ixfr(&primary, 8, "+tcp"), 1, "it has the version");
    assert_eq!(ixfr(&primary, 7, "+notcp"), 1, "over UDP");
    assert_eq!(primary.metric("zonda_transfers_incremental_total"), 0.0);
}

#[test]
fn a_transfer_waits_for_addresses_that_are_being_fetched() {
    let [missing, _] = script(7, 60);
    let slow = Reply::empty().answer(Record::address(7).ttl(60));
    let upstream = Upstream::start([missing, always().then([wait(1500..1501), say(slow)])]);
    let primary = primary(&upstream, "\"127.0.0.1\"");
    assert_eq!(records(primary.address, ZONE, &[]), expanded(7, 7, 60));
}

#[test]
fn a_transfer_without_addresses_in_time_is_not_begun_and_the_log_names_the_record() {
    let upstream = Upstream::start([]);
    let primary = primary(&upstream, "\"127.0.0.1\"");
    let start = Instant::now();
    let said = primary.ask("dig", &["+time=15", "+tries=1", ZONE, "AXFR"]);
    assert!(!said.contains("\tSOA\t"), "{said}");
    assert!((4..10).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    wait_until("it is counted", || {
        primary.metric("zonda_transfers_total{result=\"failed\"}") == 1.0
    });
    let log = primary.log();
    let line = log.lines().find(|line| line.contains("a transfer has ended")).unwrap();
    assert!(line.contains("ALIAS record of ") && line.contains(ZONE), "{line}");
    assert!(line.contains("upstreams have given no answer that is cached in time"), "{line}");
}

#[test]
fn a_transfer_whose_upstreams_fail_ends_at_once_and_the_log_says_why() {
    let upstream = Upstream::start([always().then([say(Reply::rcode(2))])]);
    let primary = primary(&upstream, "\"127.0.0.1\"");
    let start = Instant::now();
    let said = primary.ask("dig", &["+time=15", "+tries=1", ZONE, "AXFR"]);
    assert!(!said.contains("\tSOA\t"), "{said}");
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    wait_until("the log says so", || primary.log().contains("a transfer has ended"));
    let log = primary.log();
    let line = log.lines().find(|line| line.contains("a transfer has ended")).unwrap();
    assert!(line.contains("cached_failure"), "{line}");
}

#[test]
fn the_last_addresses_are_transferred_while_upstreams_do_not_answer() {
    let upstream = Upstream::start(script(7, 1));
    let primary = primary(&upstream, "\"127.0.0.1\"");
    assert_eq!(records(primary.address, ZONE, &[]), expanded(7, 7, 1));
    upstream.now_does([]);
    thread::sleep(Duration::from_millis(2100)); // the TTL, and the second it may last longer
    let sent = records(primary.address, ZONE, &["+time=15"]);
    assert_eq!(sent, expanded(7, 7, 30), "stale-ttl; {}", primary.log());
}

/// Starts a secondary, and compares what it has with the addresses of two versions.
fn check(program: &str, command: impl Fn(&Path, &Folder, u16, SocketAddr) -> Command) {
    let upstream = Upstream::start(script(7, 1));
    let primary = primary(&upstream, &format!("\"127.0.0.1 key {}\"", KEY.0));
    let Some(path) = required(program) else { return };
    let folder = Folder::new(program);
    let name = format!("{ZONE}.");
    let start = |folder: &Folder, port| command(&path, folder, port, primary.address);
    let (_process, address): (Process, _) = start_on_free_port(program, &folder, &[&*name], start);
    assert_eq!(records(address, ZONE, &[]), expanded(7, 7, 1));
    let notify = format!("], notify = [\"{address} key {}\"] }}", KEY.0);
    let config = primary.folder.path().join("zonda.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("] }", &notify)).unwrap();
    upstream.now_does(script(9, 60));
    thread::sleep(Duration::from_millis(2100)); // the TTL, and the second it may last longer
    publish(&primary, 8);
    let serial = || client("dig", address, &["+short", "+time=1", ZONE, "SOA"]);
    wait_until("the secondary follows", || serial().contains(" 8 7200"));
    assert_eq!(fresh(records(address, ZONE, &[])), expanded(8, 9, 60));
    let sent = records(primary.address, ZONE, &["-y", &key_argument()]);
    assert_eq!(fresh(sent), expanded(8, 9, 60));
    for (question, expected) in [([ZONE, "A"], "192.0.2.9"), ([ZONE, "MX"], "10 host")] {
        let said = client("dig", address, &[&question[..], &["+short"]].concat());
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn knot_as_a_secondary_has_the_addresses_of_alias_records() {
    check("knotd", knot);
}

#[test]
fn nsd_as_a_secondary_has_the_addresses_of_alias_records() {
    check("nsd", nsd);
}

#[test]
fn bind_as_a_secondary_has_the_addresses_of_alias_records() {
    check("named", bind_secondary);
}
