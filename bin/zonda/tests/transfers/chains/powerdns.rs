//! PowerDNS as the primary and as the secondary of the chain.
//!
//! It reads the SOA record of a zone before the records, each by a question of its own to its
//! database: what it sends while the zone changes may be records of two versions. So it is looked
//! at when all changes have come.

use super::{check_in, check_out};
use crate::primary::KEY;
use crate::real_peers::ZONE;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use zonda_testkit::process::{Folder, bounded, required};

/// What makes PowerDNS's database.
const SCHEMA: &str = "/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql";

/// Writes the configuration and the database of a primary that tells a secondary, whose zone is in
/// a file.
pub fn write_primary(folder: &Folder, zone: &Path, notify: SocketAddr) {
    write_config(folder, &format!("primary=yes\ndnsupdate=yes\nalso-notify={notify}\n"));
    fill(folder, "");
    let mut load = bounded(required("pdnsutil").unwrap());
    load.arg(format!("--config-dir={}", folder.path().display())).args(["load-zone", ZONE]);
    let loaded = load.arg(zone).output().unwrap();
    assert!(loaded.status.success(), "{loaded:?}");
    // The key of NOTIFY messages is that of the primaries of a secondary.
    let settings = [
        ("ALLOW-DNSUPDATE-FROM", "127.0.0.1"),
        ("TSIG-ALLOW-DNSUPDATE", KEY.0),
        ("TSIG-ALLOW-AXFR", KEY.0),
        ("AXFR-MASTER-TSIG", KEY.0),
        ("SOA-EDIT-DNSUPDATE", "INCREASE"),
        ("NOTIFY-DNSUPDATE", "1"),
    ];
    let settings = settings.map(|(kind, value)| setting(kind, value)).concat();
    fill(folder, &format!("UPDATE domains SET type = 'MASTER';\n{settings}"));
}

/// Writes the configuration and the database of a secondary, which asks for changes.
pub fn write_secondary(folder: &Folder, primary: SocketAddr) {
    write_config(folder, "secondary=yes\n");
    let zone = format!(
        "INSERT INTO domains(name, master, type) VALUES('{ZONE}', '{primary}', 'SLAVE');\n"
    );
    fill(folder, &(zone + &setting("AXFR-MASTER-TSIG", KEY.0) + &setting("IXFR", "1")));
}

/// The command that starts PowerDNS on a port.
pub fn command(folder: &Folder, port: u16) -> Command {
    let mut command = Command::new(required("pdns_server").unwrap());
    command.arg(format!("--config-dir={}", folder.path().display()));
    command.arg(format!("--local-port={port}"));
    command
}

/// Writes the configuration: nothing is cached, and work that is due is looked for each second.
fn write_config(folder: &Folder, more: &str) {
    let own = folder.path().display();
    let text = format!(
        "launch=gsqlite3\ngsqlite3-database={own}/zones.sqlite3\n\
         gsqlite3-pragma-synchronous=0\nlocal-address=127.0.0.1\n\
         socket-dir={own}\nguardian=no\ndaemon=no\nloglevel=6\nsecurity-poll-suffix=\n\
         allow-axfr-ips=127.0.0.1\ncache-ttl=0\nquery-cache-ttl=0\nnegquery-cache-ttl=0\n\
         domain-metadata-cache-ttl=0\nzone-metadata-cache-ttl=0\n\
         zone-cache-refresh-interval=0\nxfr-cycle-interval=1\nonly-notify=\n{more}"
    );
    folder.write("pdns.conf", text);
}

/// Fills the database by statements of SQL, behind the key; without any, makes it first.
fn fill(folder: &Folder, statements: &str) {
    let script = "import sqlite3, sys\n\
        sqlite3.connect(sys.argv[1]).executescript(sys.argv[2] or open(sys.argv[3]).read())\n";
    let database = folder.path().join("zones.sqlite3");
    let run = |statements: &str| {
        let mut python = bounded(required("python3").unwrap());
        python.args(["-c", script]).arg(&database).args([statements, SCHEMA]);
        let done = python.output().unwrap();
        assert!(
            done.status.success(),
            "is pdns-backend-sqlite3 installed? `make packages` installs it: {done:?}"
        );
    };
    if !database.exists() {
        run("");
        run(&format!(
            "INSERT INTO tsigkeys(name, algorithm, secret) \
             VALUES('{}', 'hmac-sha256', '{}');",
            KEY.0, KEY.1
        ));
    }
    if !statements.is_empty() {
        run(statements);
    }
}

/// The statement that gives the zone a setting.
fn setting(kind: &str, value: &str) -> String {
    format!(
        "INSERT INTO domainmetadata(domain_id, kind, content) \
         SELECT id, '{kind}', '{value}' FROM domains;\n"
    )
}

#[test]
fn real_peers_powerdns_follows_a_thousand_versions_of_zonda() {
    check_out("powerdns", false);
}

#[test]
fn real_peers_zonda_follows_a_thousand_versions_of_powerdns() {
    check_in("powerdns", "AXFR", false);
}
