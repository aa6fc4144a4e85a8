//! Catalogs of Knot and of BIND, whose members Zonda serves, and catalogs of Zonda, whose members
//! they serve.

use crate::primaries::{Secondary, reload};
use crate::primary::{Primary, client, wait_until};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use zonda_testkit::process::{Folder, Process, required, start_on_free_port};

/// The zone of each member.
const ZONE: &str = "$TTL 60\n@ SOA ns host 7 7200 3600 1209600 60\n@ NS ns\nns A 192.0.2.1\n";

/// Members that come and go while both servers run, and that are served when the primary is gone.
fn check(
    program: &str,
    configure: impl Fn(&Folder, u16, &[&str], u32),
    command: impl Fn(&Path, &Folder) -> Command,
) {
    let Some(path) = required(program) else { return };
    let folder = Folder::new(program);
    ["one.test", "two.test", "three.test"].iter().for_each(|name| {
        folder.write(&format!("{name}.zone"), format!("$ORIGIN {name}.\n{ZONE}"));
    });
    let (process, address): (Process, _) =
        start_on_free_port(program, &folder, &["one.test."], |folder, port| {
            configure(folder, port, &["one.test", "two.test"], 1);
            command(&path, folder)
        });
    let mut server = Secondary::start(&format!(
        "[[zone]]\nname = \"catalog.test\"\naccess = \"refuse any\"\n[zone.secondary]\n\
         from = [\"{address}\"]\nrefresh-min = \"1s\"\nrefresh-max = \"1s\"\nretry-min = \"1s\"\n\
         retry-max = \"1s\"\n[[catalog]]\nname = \"catalog.test\"\n"
    ));
    let is_served = |server: &Secondary, zone: &str| server.serial(zone) == Some(7);
    wait_until("the first members are served", || {
        is_served(&server, "one.test") && is_served(&server, "two.test")
    });
    configure(&folder, address.port(), &["two.test", "three.test"], 2);
    reload(&process);
    wait_until("a member is added", || is_served(&server, "three.test"));
    wait_until("a member is removed", || server.soa_reply("one.test").contains("REFUSED"));
    assert!(is_served(&server, "two.test"));
    drop(process);
    server.crash();
    wait_until("members are served without their primary", || {
        is_served(&server, "two.test") && is_served(&server, "three.test")
    });
    assert!(server.soa_reply("one.test").contains("REFUSED"));
}

#[test]
fn zonda_serves_the_members_of_a_catalog_that_knot_makes() {
    let configure = |folder: &Folder, port: u16, members: &[&str], _| {
        let own = folder.path().display();
        let zones = members.iter().map(|name| {
            format!(
                "  - domain: {name}\n    file: {own}/{name}.zone\n    acl: any\n    \
                 catalog-role: member\n    catalog-zone: catalog.test\n"
            )
        });
        let text = format!(
            "server:\n  listen: 127.0.0.1@{port}\n  rundir: {own}\n  udp-workers: 1\n  \
             tcp-workers: 1\n  background-workers: 1\nlog:\n  - target: stderr\n    any: info\n\
             database:\n  storage: {own}\nacl:\n  - id: any\n    address: 127.0.0.1\n    \
             action: transfer\ntemplate:\n  - id: default\n    storage: {own}\nzone:\n  \
             - domain: catalog.test\n    acl: any\n    catalog-role: generate\n{}",
            zones.collect::<String>()
        );
        folder.write("knot.conf", text);
    };
    check("knotd", configure, |path, folder| {
        let mut command = Command::new(path);
        command.arg("-c").arg(folder.path().join("knot.conf"));
        command
    });
}

#[test]
fn zonda_serves_the_members_of_a_catalog_of_bind() {
    let configure = |folder: &Folder, port: u16, members: &[&str], serial: u32| {
        let own = folder.path().display();
        let listed = members.iter().map(|name| format!("id-{name} PTR {name}.\n"));
        let listed: String = listed.map(|line| line.replacen(".test", "", 1)).collect();
        let catalog = format!(
            "$TTL 0\n@ SOA invalid. invalid. {serial} 3600 600 2147483646 0\n@ NS invalid.\n\
             version TXT \"2\"\n$ORIGIN zones.catalog.test.\n{listed}"
        );
        folder.write("catalog.test.zone", catalog);
        let zones = members
            .iter()
            .chain(&["catalog.test"])
            .map(|name| format!("zone \"{name}\" {{ type primary; file \"{name}.zone\"; }};\n"));
        let text = format!(
            "options {{ directory \"{own}\"; listen-on port {port} {{ 127.0.0.1; }}; \
             listen-on-v6 {{ none; }}; recursion no; pid-file \"{own}/named.pid\"; \
             session-keyfile \"{own}/session.key\"; dnssec-validation no; notify no; \
             allow-transfer {{ any; }}; empty-zones-enable no; }}; controls {{}};\n{}",
            zones.collect::<String>()
        );
        folder.write("named.conf", text);
    };
    check("named", configure, |path, folder| {
        // Debian confines `/usr/sbin/named` to its own folders (AppArmor), so a copy is run.
        let copy = folder.path().join("named");
        fs::copy(path, &copy).unwrap();
        let mut command = Command::new(copy);
        command.args(["-g", "-n", "1", "-c"]).arg(folder.path().join("named.conf"));
        command
    });
}

/// Starts a server that is a secondary of all members of a catalog that Zonda makes; members come
/// and go while both run.
fn check_consumer(program: &str, command: impl Fn(&Path, &Folder, u16, SocketAddr) -> Command) {
    const TERMS: &str = "catalog = \"catalog.test\"\ntransfer = { to = [\"127.0.0.1\"] }";
    const MADE: &str = "[[zone]]\nname = \"catalog.test\"\ntransfer = { to = [\"127.0.0.1\"] }\n\
                        [zone.members]\nrefresh = \"1s\"\nretry = \"1s\"\n";
    let primary = Primary::start_with(
        &[("one.test", ZONE, TERMS), ("two.test", ZONE, TERMS), ("three.test", ZONE, "")],
        MADE,
    );
    let Some(path) = required(program) else { return };
    let folder = Folder::new(program);
    let start = |folder: &Folder, port| command(&path, folder, port, primary.address);
    let (_process, address): (Process, _) =
        start_on_free_port(program, &folder, &["one.test."], start);
    let is_served = |zone: &str| {
        let said = client("dig", address, &["+short", "+time=1", "+tries=1", zone, "SOA"]);
        said.split_whitespace().nth(2) == Some("7")
    };
    wait_until("all members are served", || is_served("one.test") && is_served("two.test"));
    assert!(!is_served("three.test"), "it is no member");
    let config = primary.folder.path().join("zonda.toml");
    let text = fs::read_to_string(&config).unwrap();
    let notify = format!("to = [\"127.0.0.1\"], notify = [\"{address}\"]");
    let third = format!("file = \"2.zone\"\n{TERMS}\n");
    let text = text.replacen(&format!("file = \"0.zone\"\n{TERMS}\n"), "file = \"0.zone\"\n", 1);
    let text = text.replacen("file = \"2.zone\"\n", &third, 1);
    fs::write(&config, text.replace("to = [\"127.0.0.1\"]", &notify)).unwrap();
    primary.reload();
    wait_until("a member is added", || is_served("three.test"));
    wait_until("a member is removed", || !is_served("one.test"));
    assert!(is_served("two.test"));
}

#[test]
fn knot_serves_the_members_of_a_catalog_that_zonda_makes() {
    check_consumer("knotd", |path, folder, port, primary| {
        let own = folder.path().display();
        let (address, at) = (primary.ip(), primary.port());
        let text = format!(
            "server:\n  listen: 127.0.0.1@{port}\n  rundir: {own}\n  udp-workers: 1\n  \
             tcp-workers: 1\n  background-workers: 1\nlog:\n  - target: stderr\n    any: info\n\
             database:\n  storage: {own}\nremote:\n  - id: zonda\n    address: {address}@{at}\n\
             acl:\n  - id: notify\n    address: 127.0.0.1\n    action: notify\n\
             template:\n  - id: default\n    storage: {own}\n  - id: member\n    \
             storage: {own}\n    master: zonda\n    acl: notify\nzone:\n  \
             - domain: catalog.test\n    master: zonda\n    acl: notify\n    \
             catalog-role: interpret\n    catalog-template: member\n"
        );
        let mut command = Command::new(path);
        command.arg("-c").arg(folder.write("knot.conf", text));
        command
    });
}

#[test]
fn bind_serves_the_members_of_a_catalog_that_zonda_makes() {
    check_consumer("named", |path, folder, port, primary| {
        let own = folder.path().display();
        let (address, at) = (primary.ip(), primary.port());
        let text = format!(
            "options {{ directory \"{own}\"; listen-on port {port} {{ 127.0.0.1; }}; \
             listen-on-v6 {{ none; }}; recursion no; pid-file \"{own}/named.pid\"; \
             session-keyfile \"{own}/session.key\"; dnssec-validation no; notify no; \
             empty-zones-enable no; catalog-zones {{ zone \"catalog.test\" default-primaries port \
             {at} {{ {address}; }} zone-directory \"{own}\" min-update-interval 1; }}; }}; \
             controls {{}};\nzone \"catalog.test\" {{ type secondary; primaries port {at} {{ \
             {address}; }}; file \"catalog.db\"; }};\n"
        );
        // Debian confines `/usr/sbin/named` to its own folders (AppArmor), so a copy is run.
        let copy = folder.path().join("named");
        fs::copy(path, &copy).unwrap();
        let mut command = Command::new(copy);
        command.args(["-g", "-n", "1", "-c"]).arg(folder.write("named.conf", text));
        command
    });
}
