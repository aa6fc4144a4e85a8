//! Python's dnspython as a client that changes and transfers zones and says that they have changed.

use crate::primaries::{Secondary, zone};
use crate::primary::{KEY, Primary};
use crate::update_clients::ZONE;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Runs a part of the script, which fails if a server does not do as it should.
#[track_caller]
fn run(part: &str, servers: &[SocketAddr]) {
    let install = format!("{ROOT}/scripts/install-python-clients");
    let installed = Command::new(install).output().unwrap();
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    let folder = String::from_utf8(installed.stdout).unwrap();
    let mut python = Command::new(Path::new(folder.trim_end()).join("python"));
    python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/transfers/dnspython.py")).arg(part);
    python.args([KEY.0, KEY.1]).args(servers.iter().map(SocketAddr::to_string));
    let ended = python.output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

/// A server whose zone `keyed.test` clients with the key may change and transfer.
fn primary() -> Primary {
    let keyed = format!(
        "update = [{{ from = \"key {0}\", names = \"zone\" }}]\n\
         transfer = {{ to = [\"key {0}\"] }}",
        KEY.0
    );
    Primary::start_with(&[("keyed.test", ZONE, &keyed), ("closed.test", ZONE, "")], "")
}

#[test]
fn real_peers_dnspython_adds_replaces_and_deletes_records_under_prerequisites_with_a_key() {
    run("updates", &[primary().address]);
}

#[test]
fn real_peers_dnspython_transfers_a_zone_whole_and_by_what_has_changed_with_a_key() {
    run("transfers", &[primary().address]);
}

#[test]
fn real_peers_dnspython_has_a_secondary_fetch_a_change_by_a_signed_notify() {
    let primary = primary();
    let from = format!("\"{} key {}\"", primary.address, KEY.0);
    let key = format!("[[key]]\nname = \"{}\"\nsecret = \"{}\"\n", KEY.0, KEY.1);
    let secondary = Secondary::start(&(key + &zone("keyed.test", &from, "")));
    run("notify", &[primary.address, secondary.address]);
}
