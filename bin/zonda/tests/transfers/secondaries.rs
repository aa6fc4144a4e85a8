//! Knot, NSD and BIND as secondaries: they have every record that the primary has.

use crate::primary::{KEY, PLAIN, Primary, RECORDS, key_argument, records};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use zonda_testkit::generate::Zone;
use zonda_testkit::process::{Folder, Process, required, start_on_free_port};
use zonda_testkit::sign::{Denial, sign};

/// Zones of each test: name, and whether transfers are signed.
const ZONES: [(&str, bool); 4] =
    [("open.test", false), ("keyed.test", true), ("nsec3.test", false), ("signed.test", true)];

/// The primary: two zones that are not signed, two with NSEC3 records; each pair with and without
/// a key.
fn primary(strings: usize) -> Primary {
    let nsec3 = |name: &str, denial| {
        let zone = Zone { name: format!("{name}."), text: origin(name), names: Vec::new() };
        sign(&zone, denial).text
    };
    let texts = [
        PLAIN.to_owned(),
        PLAIN.to_owned() + &many_names(strings),
        nsec3("nsec3.test", Denial::Nsec3),
        nsec3("signed.test", Denial::Nsec3OptOut),
    ];
    let keyed = format!("\"127.0.0.1 key {}\"", KEY.0);
    let to = |is_keyed| if is_keyed { &*keyed } else { "\"127.0.0.1\"" };
    let zones = ZONES.iter().zip(&texts).map(|((name, keyed), text)| (*name, &**text, to(*keyed)));
    Primary::start(&zones.collect::<Vec<_>>(), "")
}

/// The plain zone as a file of its own.
fn origin(name: &str) -> String {
    PLAIN.replacen("$TTL 60\n", &format!("$ORIGIN {name}.\n$TTL 60\n"), 1)
}

/// More names than fit into one message, and a record of so many strings of 250 octets.
fn many_names(strings: usize) -> String {
    let names = (0..3000).map(|number| format!("h{number} A 10.0.0.1\n")).collect::<String>();
    let strings = format!(" \"{}\"", "x".repeat(250)).repeat(strings);
    format!("{names}large TXT{strings}\n")
}

/// Starts a secondary of all zones, and compares what it has with the primary.
fn check(program: &str, command: impl Fn(&Path, &Folder, u16, SocketAddr) -> Command) {
    // NSD takes longer records, but ends its own transfers with one (NLnetLabs/nsd#273).
    let primary = primary(if program == "nsd" { 60 } else { 230 });
    let Some(path) = required(program) else { return };
    let folder = Folder::new(program);
    let names = ZONES.map(|(name, _)| format!("{name}."));
    let names = names.each_ref().map(String::as_str);
    let start = |folder: &Folder, port| command(&path, folder, port, primary.address);
    let (_process, address): (Process, _) = start_on_free_port(program, &folder, &names, start);
    for (name, is_keyed) in ZONES {
        let key = key_argument();
        let arguments: &[&str] = if is_keyed { &["-y", &key] } else { &[] };
        let (ours, theirs) =
            (records(primary.address, name, arguments), records(address, name, &[]));
        // Knot and NSD make names in data lower case.
        let plain = |records: Vec<String>| -> Vec<String> {
            let is_bind = program == "named";
            let records = records.into_iter();
            records.map(|it| if is_bind { it } else { it.to_lowercase() }).collect()
        };
        let (ours, theirs) = (plain(ours), plain(theirs));
        assert!(ours.len() >= RECORDS, "{name}: {ours:?}");
        let only = |a: &[String], b: &[String]| -> Vec<String> {
            a.iter().filter(|record| !b.contains(record)).cloned().collect()
        };
        assert_eq!(only(&ours, &theirs), only(&theirs, &ours), "{name}: ours, {program}'s");
        assert_eq!(ours.len(), theirs.len(), "{name}");
    }
    let completed = primary.metric("zonda_transfers_total{result=\"completed\"}");
    assert!(completed >= 8.0, "{completed}: {}", primary.log());
    let log = primary.log();
    assert!(log.contains(&format!("key=\"{}.\"", KEY.0)) && log.contains("key=\"none\""), "{log}");
}

#[test]
fn knot_as_a_secondary_has_every_record() {
    check("knotd", |path, folder, port, primary| {
        let own = folder.path().display();
        let (address, at) = (primary.ip(), primary.port());
        let zones = ZONES.map(|(name, is_keyed)| {
            let remote = if is_keyed { "keyed" } else { "open" };
            format!("  - domain: {name}\n    master: {remote}\n    acl: any\n")
        });
        let text = format!(
            "server:\n  listen: 127.0.0.1@{port}\n  rundir: {own}\n  udp-workers: 1\n  \
             tcp-workers: 1\n  background-workers: 1\nlog:\n  - target: stderr\n    any: info\n\
             database:\n  storage: {own}\nkey:\n  - id: {key}\n    algorithm: hmac-sha256\n    \
             secret: {secret}\nremote:\n  - id: open\n    address: {address}@{at}\n  \
             - id: keyed\n    address: {address}@{at}\n    key: {key}\nacl:\n  \
             - id: any\n    address: 127.0.0.1\n    action: transfer\n\
             template:\n  - id: default\n    storage: {own}\nzone:\n{zones}",
            key = KEY.0,
            secret = KEY.1,
            zones = zones.concat()
        );
        let mut command = Command::new(path);
        command.arg("-c").arg(folder.write("knot.conf", text));
        command
    });
}

#[test]
fn nsd_as_a_secondary_has_every_record() {
    check("nsd", |path, folder, port, primary| {
        let own = folder.path().display();
        let (address, at) = (primary.ip(), primary.port());
        let zones = ZONES.map(|(name, is_keyed)| {
            let key = if is_keyed { KEY.0 } else { "NOKEY" };
            format!(
                "zone:\n  name: {name}\n  zonefile: {name}.zone\n  request-xfr: \
                 AXFR {address}@{at} {key}\n  provide-xfr: 127.0.0.1 NOKEY\n"
            )
        });
        let text = format!(
            "server:\n  ip-address: 127.0.0.1@{port}\n  server-count: 1\n  username: \"\"\n  \
             chroot: \"\"\n  zonesdir: {own}\n  database: \"\"\n  pidfile: {own}/nsd.pid\n  \
             xfrdfile: {own}/xfrd.state\n  zonelistfile: {own}/zone.list\n  rrl-ratelimit: 0\n  \
             xfrdir: {own}\n  verbosity: 2\nremote-control:\n  control-enable: no\nkey:\n  \
             name: {key}\n  algorithm: hmac-sha256\n  secret: \"{secret}\"\n{zones}",
            key = KEY.0,
            secret = KEY.1,
            zones = zones.concat()
        );
        let mut command = Command::new(path);
        command.arg("-d").arg("-c").arg(folder.write("nsd.conf", text));
        command
    });
}

#[test]
fn bind_as_a_secondary_has_every_record() {
    check("named", |path, folder, port, primary| {
        let own = folder.path().display();
        let (address, at) = (primary.ip(), primary.port());
        let zones = ZONES.map(|(name, is_keyed)| {
            let key = if is_keyed { format!("key \"{}\"", KEY.0) } else { String::new() };
            format!(
                "zone \"{name}\" {{ type secondary; primaries port {at} {{ {address} {key}; }}; \
                 file \"{name}.db\"; allow-transfer {{ any; }}; }};\n"
            )
        });
        let text = format!(
            "options {{ directory \"{own}\"; listen-on port {port} {{ 127.0.0.1; }}; \
             listen-on-v6 {{ none; }}; recursion no; pid-file \"{own}/named.pid\"; \
             session-keyfile \"{own}/session.key\"; dnssec-validation no; notify no; \
             empty-zones-enable no; }}; controls {{}};\nkey \"{}\" {{ algorithm hmac-sha256; \
             secret \"{}\"; }};\n{}",
            KEY.0,
            KEY.1,
            zones.concat()
        );
        // Debian confines `/usr/sbin/named` to its own folders (AppArmor), so a copy is run.
        let copy = folder.path().join("named");
        fs::copy(path, &copy).unwrap();
        let mut command = Command::new(copy);
        command.args(["-g", "-n", "1", "-c"]).arg(folder.write("named.conf", text));
        command
    });
}
