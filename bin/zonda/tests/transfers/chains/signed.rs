//! A zone with NSEC3 records that is signed elsewhere: versions of its file are followed by what
//! has changed.

use super::servers::Server;
use super::{FIRST, transfer, version};
use crate::primary::key_argument;
use crate::real_peers::ZONE;
use std::collections::BTreeSet;
use std::sync::LazyLock;
use zonda_testkit::sign::{Denial, Signer};

/// Versions behind the first one.
const VERSIONS: u32 = 30;

/// The texts of all versions, signed.
static TEXTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let signer = Signer::new(&format!("{ZONE}."));
    let text = |serial| version(serial).into_iter().collect::<Vec<_>>().join("\n") + "\n";
    let serials = FIRST..=FIRST + VERSIONS;
    serials.map(|serial| signer.sign(&text(serial), Denial::Nsec3)).collect()
});

/// The text of a version, signed.
fn text(serial: u32) -> &'static str {
    &TEXTS[(serial - FIRST) as usize]
}

/// The records of a server in lower case, as some servers keep names in data.
fn records(server: &Server, options: &[&str]) -> BTreeSet<String> {
    let records = transfer(server.address, options).expect("the transfer is whole");
    records.into_iter().map(|record| record.to_lowercase()).collect()
}

/// Has a primary read versions, each of which the secondary has then.
fn check(primary: &Server, secondary: &Server) {
    secondary.wait_for(FIRST);
    for serial in FIRST + 1..=FIRST + VERSIONS {
        primary.edit(text(serial));
        secondary.wait_for(serial);
        let (ours, theirs) = (records(primary, &["-y", &key_argument()]), records(secondary, &[]));
        assert_eq!(ours, theirs);
        let lacks: Vec<String> = version(serial).into_iter().collect();
        let lacks: Vec<_> =
            lacks.iter().filter(|record| !ours.contains(&record.to_lowercase())).collect();
        assert!(lacks.is_empty(), "{lacks:?}");
        let chain = ours.iter().filter(|record| record.contains(" in nsec3 ")).count();
        assert!(chain > 50, "{chain} NSEC3 records");
    }
}

/// A server of Zonda's as the primary.
fn check_out(name: &'static str) {
    if !Server::has_programs_of(name) {
        return;
    }
    let [ours, theirs] = [(); 2].map(|()| Server::free_address());
    let primary = Server::zonda_file_primary(ours, theirs, text(FIRST));
    let secondary = Server::secondary(name, theirs, ours);
    check(&primary, &secondary);
    let log = primary.log();
    assert!(log.matches("sent=\"changes\"").count() >= 25, "{log}");
}

#[test]
fn real_peers_knot_follows_a_zone_that_is_signed_elsewhere_by_what_has_changed() {
    check_out("knot");
}

#[test]
fn real_peers_nsd_follows_a_zone_that_is_signed_elsewhere_by_what_has_changed() {
    check_out("nsd");
}

#[test]
fn real_peers_bind_follows_a_zone_that_is_signed_elsewhere_by_what_has_changed() {
    check_out("bind");
}

/// A server of Zonda's as the secondary.
fn check_in(name: &'static str) {
    if !Server::has_programs_of(name) {
        return;
    }
    let [ours, theirs] = [(); 2].map(|()| Server::free_address());
    let primary = Server::file_primary(name, theirs, ours, text(FIRST));
    let secondary = Server::zonda_secondary(ours, theirs);
    check(&primary, &secondary);
    let log = secondary.log();
    assert!(log.matches("kind=\"IXFR\"").count() >= 25, "{log}");
}

#[test]
fn real_peers_zonda_follows_a_zone_of_knot_that_is_signed_elsewhere_by_what_has_changed() {
    check_in("knot");
}

#[test]
fn real_peers_zonda_follows_a_zone_of_bind_that_is_signed_elsewhere_by_what_has_changed() {
    check_in("bind");
}
