//! Servers whose disk is full: they refuse what they cannot keep, say so, and serve what they have.

use crate::kills::catalogs::{CATALOG, consumer, producer};
use crate::kills::clients::{NAME, TEXT};
use crate::kills::server::{Victim, compare, wait_for};
use crate::kills::updates::{primary, secondary};
use crate::primaries::reload;
use crate::update_messages::Update;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use zonda_testkit::generate::Random;
use zonda_testkit::network::has_own_mounts;
use zonda_wire::Rcode;

/// The size of a disk, MiB.
const DISK_MIB: u32 = 16;
/// Changes after which a disk that had room for one file more is full.
const CHANGES_MAX: u32 = 2000;

/// Fills the disk of a server; removing the file makes room.
fn fill(server: &Victim) -> PathBuf {
    server.disk.as_ref().unwrap().fill()
}

/// A change that takes some 20 KB: a name gets records of its own.
fn large(number: u32) -> Update {
    let name = format!("n{}.{NAME}", number % 10);
    let update = Update::new(NAME).id(number as u16).change(&format!("ANY {name} 0 ANY"));
    let text = format!("{number}-{}", "x".repeat(240));
    let record = |part: u32| format!("IN {name} 60 TXT \"{part}-{text}\"");
    (0..80).fold(update, |update, part| update.change(&record(part)))
}

/// Sends changes until one is not carried out; returns the reply to that and the number of those
/// that were.
fn change_until_refused(to: SocketAddr, first: u32) -> (Rcode, u32) {
    for number in first..first + CHANGES_MAX {
        let rcode = large(number).reply(to, true).rcode();
        if rcode != Rcode::NOERROR {
            return (rcode, number - first);
        }
    }
    panic!("{CHANGES_MAX} changes, and the disk is not full");
}

#[test]
fn a_primary_with_a_full_disk_refuses_changes_and_keeps_what_it_acknowledged() {
    if !has_own_mounts(
        "disk_full::a_primary_with_a_full_disk_refuses_changes_and_keeps_what_it_acknowledged",
    ) {
        return;
    }
    let (address, config) = (Victim::address(), primary(Victim::address()));
    let files = [("up.zone", TEXT)];
    let mut server = Victim::start_on_small_disk(DISK_MIB, address, &config, &files);
    assert_eq!(large(0).reply(address, true).rcode(), Rcode::NOERROR);
    let filler = fill(&server);
    let (rcode, _) = change_until_refused(address, 1);
    assert_eq!(rcode, Rcode::SERVFAIL);
    let told = "edits could not be written to the disk and were refused";
    wait_for("the log says so", &server, || server.log().contains(told));
    let (serial, records) = (server.serial(NAME), server.records(NAME));
    for _ in 0..5 {
        assert_eq!(large(5000).reply(address, true).rcode(), Rcode::SERVFAIL);
    }
    assert_eq!((server.serial(NAME), server.records(NAME)), (serial, records.clone()));
    server.crash(&mut Random::new(4));
    assert_eq!((server.serial(NAME), server.records(NAME)), (serial, records));
    fs::remove_file(filler).unwrap();
    wait_for("changes are taken again", &server, || {
        large(6000).reply(address, true).rcode() == Rcode::NOERROR
    });
    assert!(server.serial(NAME) > serial);
}

#[test]
fn a_secondary_with_a_full_disk_serves_what_it_has_kept_and_follows_later() {
    if !has_own_mounts(
        "disk_full::a_secondary_with_a_full_disk_serves_what_it_has_kept_and_follows_later",
    ) {
        return;
    }
    let (address, other) = (Victim::address(), Victim::address());
    let server = Victim::start(address, &primary(other), &[("up.zone", TEXT)]);
    assert_eq!(large(0).reply(address, true).rcode(), Rcode::NOERROR);
    let mut follower = Victim::start_on_small_disk(DISK_MIB, other, &secondary(address), &[]);
    wait_for("the zone comes", &follower, || follower.serial(NAME) == server.serial(NAME));
    let filler = fill(&follower);
    (1..10).for_each(|number| {
        assert_eq!(large(number).reply(address, true).rcode(), Rcode::NOERROR);
    });
    let told = "a zone cannot be kept on the disk";
    wait_for("the log says so", &follower, || follower.log().contains(told));
    let kept = follower.serial(NAME);
    assert!(kept.is_some() && kept < server.serial(NAME), "it serves what it has kept");
    follower.crash(&mut Random::new(5));
    wait_for("and does after a crash", &follower, || follower.serial(NAME) >= kept);
    fs::remove_file(filler).unwrap();
    assert_eq!(large(10).reply(address, true).rcode(), Rcode::NOERROR);
    compare(&server, &follower, NAME);
}

/// Writes files of zones into the directory of a producer, and has it read them.
fn add(server: &Victim, names: &[&str]) {
    for name in names {
        let path = server.folder.path().join(format!("zones/{name}.zone"));
        fs::write(path, TEXT).unwrap();
    }
    reload(server.process());
}

#[test]
fn servers_of_a_catalog_with_full_disks_say_so_serve_on_and_follow_later() {
    if !has_own_mounts(
        "disk_full::servers_of_a_catalog_with_full_disks_say_so_serve_on_and_follow_later",
    ) {
        return;
    }
    let (address, other) = (Victim::address(), Victim::address());
    let mut server = Victim::start_on_small_disk(DISK_MIB, address, &producer(other), &[]);
    add(&server, &["one.test", "two.test"]);
    let mut follower = Victim::start_on_small_disk(DISK_MIB, other, &consumer(address), &[]);
    let has = |server: &Victim, zone: &str| server.serial(zone) == Some(7);
    wait_for("both come", &follower, || has(&follower, "one.test") && has(&follower, "two.test"));
    let filler = fill(&follower);
    let many: Vec<String> = (0..60).map(|it| format!("{it}-{}.test", "x".repeat(40))).collect();
    add(&server, &many.iter().map(String::as_str).collect::<Vec<_>>());
    wait_for("the consumer says so", &follower, || follower.log().contains("kept on the disk"));
    assert!(has(&follower, "one.test") && has(&follower, "two.test"));
    fs::remove_file(filler).unwrap();
    add(&server, &["three.test"]);
    wait_for("the consumer follows", &follower, || has(&follower, "three.test"));
    wait_for("with all", &follower, || many.iter().all(|zone| has(&follower, zone)));
    compare(&server, &follower, CATALOG);

    let filler = fill(&server);
    let last = server.serial(CATALOG);
    let more: Vec<String> = (0..60).map(|it| format!("{it}-{}.test", "y".repeat(40))).collect();
    add(&server, &more.iter().map(String::as_str).collect::<Vec<_>>());
    let told = "a catalog keeps its former version";
    wait_for("the producer says so", &server, || server.log().contains(told));
    assert_eq!(server.serial(CATALOG), last);
    wait_for("its zones are served", &server, || more.iter().all(|zone| has(&server, zone)));
    fs::remove_file(filler).unwrap();
    add(&server, &["four.test"]);
    wait_for("the catalog lists all", &follower, || more.iter().all(|it| has(&follower, it)));
    assert!(has(&follower, "one.test") && server.serial(CATALOG) > last);
    server.crash(&mut Random::new(6));
    follower.crash(&mut Random::new(7));
    wait_for("all are there after a crash", &follower, || {
        many.iter().chain(&more).all(|zone| has(&follower, zone))
    });
    compare(&server, &follower, CATALOG);
}
