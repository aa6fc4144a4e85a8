//! Tests only: every server's files for every workload, read by the server's own checker.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{self, Command};
use std::sync::atomic::AtomicBool;
use std::{env, fs};

use super::bed::{listening, local, make_folder, write_zones};
use super::place::Place;
use super::spec::{Suite, Workload};
use crate::server::Kind;
use crate::server::locate::locate;

/// Commands that check the files of a server; some servers have none. `${folder}` holds the files.
const CHECKERS: &[(&str, &[&str])] = &[
    ("bind", &["named-checkconf", "${folder}/named.conf"]),
    ("nsd", &["nsd-checkconf", "${folder}/nsd.conf"]),
    ("knot", &["knotc", "-c", "${folder}/knot.conf", "conf-check"]),
    ("unbound", &["unbound-checkconf", "${folder}/unbound.conf"]),
    ("dnsdist", &["dnsdist", "--check-config", "-C", "${folder}/dnsdist.conf"]),
    ("gdnsd", &["gdnsd", "-c", "${folder}", "checkconf"]),
    ("dinodns", &["node", "--check", "${folder}/server.js"]),
];

#[test]
fn every_server_accepts_its_configuration_for_every_workload() {
    let folder = env::temp_dir().join(format!("zonda-bench-configurations-{}", process::id()));
    for suite in Suite::shipped() {
        for workload in &suite.workloads {
            // Places differ in numbers only, and the first has the smallest.
            let place = &Place::all(workload).unwrap()[0];
            for name in workload.servers.as_ref().unwrap_or(&suite.servers) {
                let _ = fs::remove_dir_all(&folder);
                check(&Kind::named(name).unwrap(), workload, place, &folder);
            }
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}

/// Writes a server's files for a place and has them checked.
fn check(kind: &Kind, workload: &Workload, place: &Place, folder: &Path) {
    let role = workload.roles.iter().find_map(|role| kind.roles.get(role));
    let Some(role) = role else { return };
    let zones = place.zones(&workload.zones).unwrap();
    let zones = write_zones(&folder.join("stock"), zones, &AtomicBool::new(false)).unwrap();
    let (stock, folder) = (folder.join("stock"), folder.join("server"));
    make_folder(&folder, &stock, false).unwrap();
    let mut values = listening(&place.values, local(53_000), place.threads, &zones);
    values.set("folder", folder.display());
    values.set("package", "/package");
    if workload.upstream.is_some() || workload.any_zone_primary {
        values.set("upstream_address", "127.0.0.1");
        values.set("upstream_port", 53_001);
    }
    if workload.cluster.is_some() {
        values.set("kubeconfig", "/kubeconfig");
    }
    role.write_files(&values, &folder).unwrap();
    for text in role.arguments.iter().chain(role.environment.values()) {
        values.fill(text).unwrap();
    }
    let checker = CHECKERS.iter().find(|(name, _)| *name == kind.name);
    let (Some((_, command)), true) = (checker, locate(kind).is_ok()) else { return };
    let command: Vec<String> = command.iter().map(|word| values.fill(word).unwrap()).collect();
    let path = format!("{}:/usr/sbin:/sbin", env::var("PATH").unwrap_or_default());
    let output = Command::new(&command[0]).args(&command[1..]).env("PATH", path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let (text, place) = (String::from_utf8_lossy(&output.stdout), place.text());
    assert!(output.status.success(), "{}, {}, {place}: {said}{text}", kind.name, workload.name);
}
