//! Knot, NSD and BIND as secondaries that are notified of a chain of versions and fetch what
//! changed.

use crate::primary::{KEY, Primary, client, key_argument, records, wait_until};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use zonda_testkit::process::{Folder, Process, required, start_on_free_port};

/// The zone of all tests.
pub const ZONE: &str = "chain.test";
/// The serial of the first version.
const FIRST: u32 = 100;

/// The text of a version of the zone: names come and go, TTLs and data change, and one delegation
/// moves.
fn version(serial: u32) -> String {
    let mut text = format!(
        "$ORIGIN {ZONE}.\n$TTL 60\n@ SOA ns host {serial} 7200 3600 1209600 60\n@ NS ns\n\
         ns A 192.0.2.1\nsub NS ns{}.sub\nns{}.sub A 192.0.2.9\n",
        serial % 3,
        serial % 3
    );
    text += &format!("@ ALIAS lb{}.example.net.\nalias 30 ALIAS Lb.example.net.\n", serial / 9);
    for number in 0..300_u32 {
        let ttl = 60 + (serial / 7 + number) % 5;
        if !(number + serial).is_multiple_of(50) {
            text += &format!("h{number} {} A 10.0.{}.1\n", ttl - ttl % 4, number % 7);
        }
        if (number + serial) % 60 == 1 {
            text += &format!("h{number} TXT \"Version {serial}\"\n*.w{number} A 10.1.1.1\n");
        }
    }
    text
}

/// A primary of the first version, for clients with the key.
fn primary(more: &str) -> Primary {
    let to = format!("\"127.0.0.1 key {}\"", KEY.0);
    let primary = Primary::start(&[(ZONE, &version(FIRST), &to)], "");
    let zone = format!("\nhistory = {{ versions = 1000 }}\n{more}");
    change_config(&primary, |text| text + &zone);
    primary
}

/// Changes the configuration of a server, and has it loaded.
fn change_config(primary: &Primary, change: impl FnOnce(String) -> String) {
    let path = primary.folder.path().join("zonda.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, change(text)).unwrap();
    primary.reload();
}

/// Has a primary load a version.
fn publish(primary: &Primary, serial: u32) {
    fs::write(primary.folder.path().join("0.zone"), version(serial)).unwrap();
    primary.reload();
}

/// The serial that a server has.
fn serial_at(address: SocketAddr) -> u32 {
    let said = client("dig", address, &["+short", "+time=1", ZONE, "SOA"]);
    said.split_whitespace().nth(2).and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// The records that two servers have, in lower case, which have to be the same.
fn compare(primary: &Primary, secondary: SocketAddr) {
    let lower = |records: Vec<String>| records.into_iter().map(|it| it.to_lowercase());
    let ours = records(primary.address, ZONE, &["-y", &key_argument()]);
    let (ours, theirs): (Vec<_>, Vec<_>) =
        (lower(ours).collect(), lower(records(secondary, ZONE, &[])).collect());
    let only = |a: &[String], b: &[String]| -> Vec<String> {
        a.iter().filter(|record| !b.contains(record)).cloned().collect()
    };
    assert_eq!(only(&ours, &theirs), only(&theirs, &ours), "the primary's, the secondary's");
    assert!(ours.len() > 250 && ours.len() == theirs.len(), "{} {}", ours.len(), theirs.len());
}

/// Starts a secondary, which is notified of 200 versions, and follows by what changed.
fn check(program: &str, command: impl Fn(&Path, &Folder, u16, SocketAddr) -> Command) {
    let primary = primary("");
    let Some(path) = required(program) else { return };
    let folder = Folder::new(program);
    let name = format!("{ZONE}.");
    let start = |folder: &Folder, port| command(&path, folder, port, primary.address);
    let (_process, address): (Process, _) = start_on_free_port(program, &folder, &[&*name], start);
    let notify = format!("], notify = [\"{address} key {}\"] }}", KEY.0);
    change_config(&primary, |text| text.replace("] }", &notify));
    let acknowledged = || primary.metric("zonda_notifies_total{result=\"acknowledged\"}");
    wait_until("the first version is acknowledged", || acknowledged() == 1.0);
    let whole = primary.metric("zonda_transfers_total{result=\"completed\"}");
    for serial in FIRST + 1..=FIRST + 200 {
        publish(&primary, serial);
        if serial.is_multiple_of(20) {
            wait_until("the secondary follows", || serial_at(address) == serial);
            compare(&primary, address);
        }
    }
    let log = primary.log();
    let changes = log.matches("sent=\"changes\"").count();
    assert!(changes >= 10, "{changes} transfers of changes: {log}");
    let axfr = log.matches("asked=AXFR").count() as f64;
    assert!(axfr <= whole + 20.0, "the secondary fell back to AXFR: {log}");
    wait_until("all is acknowledged", || primary.metric("zonda_notifies_pending") == 0.0);
    let done = acknowledged() + primary.metric("zonda_notifies_total{result=\"superseded\"}");
    assert!((100.0..=201.0).contains(&done), "{done}: several changes may be one message");
}

/// Knot as a secondary of the zone.
pub fn knot(path: &Path, folder: &Folder, port: u16, primary: SocketAddr) -> Command {
    let own = folder.path().display();
    let (address, at) = (primary.ip(), primary.port());
    let text = format!(
        "server:\n  listen: 127.0.0.1@{port}\n  rundir: {own}\n  udp-workers: 1\n  \
         tcp-workers: 1\n  background-workers: 1\nlog:\n  - target: stderr\n    any: info\n\
         database:\n  storage: {own}\nkey:\n  - id: {key}\n    algorithm: hmac-sha256\n    \
         secret: {secret}\nremote:\n  - id: primary\n    address: {address}@{at}\n    \
         key: {key}\nacl:\n  - id: any\n    address: 127.0.0.1\n    action: transfer\n  \
         - id: notify\n    address: 127.0.0.1\n    key: {key}\n    action: notify\n\
         template:\n  - id: default\n    storage: {own}\nzone:\n  - domain: {ZONE}\n    \
         master: primary\n    acl: [any, notify]\n",
        key = KEY.0,
        secret = KEY.1,
    );
    let mut command = Command::new(path);
    command.arg("-c").arg(folder.write("knot.conf", text));
    command
}

#[test]
fn knot_follows_two_hundred_versions_by_what_changed() {
    check("knotd", knot);
}

/// NSD as a secondary of the zone.
pub fn nsd(path: &Path, folder: &Folder, port: u16, primary: SocketAddr) -> Command {
    let own = folder.path().display();
    let (address, at) = (primary.ip(), primary.port());
    let text = format!(
        "server:\n  ip-address: 127.0.0.1@{port}\n  server-count: 1\n  username: \"\"\n  \
         chroot: \"\"\n  zonesdir: {own}\n  database: \"\"\n  pidfile: {own}/nsd.pid\n  \
         xfrdfile: {own}/xfrd.state\n  zonelistfile: {own}/zone.list\n  rrl-ratelimit: 0\n  \
         xfrdir: {own}\n  xfrd-reload-timeout: 0\n  verbosity: 2\nremote-control:\n  \
         control-enable: no\nkey:\n  name: {key}\n  algorithm: hmac-sha256\n  \
         secret: \"{secret}\"\nzone:\n  name: {ZONE}\n  zonefile: {ZONE}.zone\n  \
         request-xfr: {address}@{at} {key}\n  allow-notify: 127.0.0.1 {key}\n  \
         provide-xfr: 127.0.0.1 NOKEY\n",
        key = KEY.0,
        secret = KEY.1,
    );
    let mut command = Command::new(path);
    command.arg("-d").arg("-c").arg(folder.write("nsd.conf", text));
    command
}

#[test]
fn nsd_follows_two_hundred_versions_by_what_changed() {
    check("nsd", nsd);
}

/// The options of BIND in a folder, and a copy of it: Debian confines `/usr/sbin/named` to its own
/// folders (AppArmor).
pub fn bind(path: &Path, folder: &Folder, port: u16, zone: &str) -> Command {
    let own = folder.path().display();
    let text = format!(
        "options {{ directory \"{own}\"; listen-on port {port} {{ 127.0.0.1; }}; \
         listen-on-v6 {{ none; }}; recursion no; pid-file \"{own}/named.pid\"; \
         session-keyfile \"{own}/session.key\"; dnssec-validation no; notify no; \
         empty-zones-enable no; }}; controls {{}};\nkey \"{}\" {{ algorithm hmac-sha256; \
         secret \"{}\"; }};\nzone \"{ZONE}\" {{ {zone} allow-transfer {{ any; }}; }};\n",
        KEY.0, KEY.1,
    );
    let copy = folder.path().join("named");
    if !copy.exists() {
        fs::copy(path, &copy).unwrap();
    }
    let mut command = Command::new(copy);
    command.args(["-g", "-n", "1", "-c"]).arg(folder.write("named.conf", text));
    command
}

/// BIND as a secondary of the zone.
pub fn bind_secondary(path: &Path, folder: &Folder, port: u16, primary: SocketAddr) -> Command {
    bind(path, folder, port, &secondary_of(primary))
}

/// BIND as a secondary of the zone that asks for the whole zone each time.
pub fn bind_secondary_by_axfr(
    path: &Path,
    folder: &Folder,
    port: u16,
    primary: SocketAddr,
) -> Command {
    bind(path, folder, port, &(secondary_of(primary) + " request-ixfr no;"))
}

/// The section of the zone at BIND as a secondary.
fn secondary_of(primary: SocketAddr) -> String {
    let (address, at) = (primary.ip(), primary.port());
    format!(
        "type secondary; primaries port {at} {{ {address} key \"{}\"; }}; file \"z.db\";",
        KEY.0
    )
}

#[test]
fn bind_follows_two_hundred_versions_by_what_changed() {
    check("named", bind_secondary);
}

/// The records of a reply to IXFR, in their order, without TTLs of the tool's columns.
fn ixfr(address: SocketAddr, serial: u32, arguments: &[&str]) -> Vec<String> {
    let question = format!("IXFR={serial}");
    let arguments = [&["+noall", "+answer", ZONE, &question], arguments].concat();
    let text = client("dig", address, &arguments);
    let is_record = |line: &&str| !line.starts_with(';') && !line.contains("\tTSIG\t");
    let lines = text.lines().filter(is_record);
    let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    words.filter(|line| !line.is_empty()).collect()
}

#[test]
fn a_client_whose_version_is_older_than_the_history_gets_the_whole_zone() {
    let primary = primary("");
    change_config(&primary, |text| text.replace("versions = 1000", "versions = 3"));
    (FIRST + 1..=FIRST + 10).for_each(|serial| publish(&primary, serial));
    let key = key_argument();
    let whole = records(primary.address, ZONE, &["-y", &key]).len() + 1;
    let count = |serial| ixfr(primary.address, serial, &["-y", &key]).len();
    assert_eq!(count(FIRST + 6), whole);
    assert_eq!(count(FIRST + 99), 1);
    let changes = count(FIRST + 7);
    assert!(changes > 4 && changes < whole, "{changes} of {whole}");
    // A serial that does not rise begins anew.
    publish(&primary, FIRST + 9);
    publish(&primary, FIRST + 11);
    assert!(primary.log().contains("its serial has not risen"), "{}", primary.log());
    let whole = records(primary.address, ZONE, &["-y", &key]).len() + 1;
    assert_eq!((count(FIRST + 8), count(FIRST + 10)), (whole, whole));
    assert!(count(FIRST + 9) < whole);
}
