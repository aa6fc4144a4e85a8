//! Secondaries that are further behind than the history of their primary reaches: they get the
//! whole zone, and follow what changes from there on.

use super::servers::Server;
use super::{FIRST, check_version, publish, transfer};
use crate::primary::{key_argument, wait_until};

/// Versions of which the primary keeps what has changed.
const KEPT: u32 = 5;
/// Versions that a secondary misses each time.
const MISSED: u32 = 40;
/// How often a secondary is away.
const TURNS: u32 = 3;

/// The records of the secondary, which are those of the primary in a version.
fn compare(primary: &Server, secondary: &Server, serial: u32) {
    secondary.wait_for(serial);
    let ours = transfer(primary.address, &["-y", &key_argument()]).unwrap();
    assert_eq!(check_version(&ours), serial);
    assert_eq!(transfer(secondary.address, &[]), Some(ours));
}

/// Has a secondary miss more versions than the primary keeps, and follow one more then.
fn check(primary: &Server, mut secondary: Server) {
    let mut serial = FIRST;
    compare(primary, &secondary, serial);
    for _ in 0..TURNS {
        secondary.restart_after(|| publish(primary, (serial, serial + MISSED)));
        serial += MISSED;
        compare(primary, &secondary, serial);
        publish(primary, (serial, serial + 1));
        serial += 1;
        compare(primary, &secondary, serial);
    }
    // A line of the log may come after the secondary serves what the line is about.
    for sent in ["fallback=\"the history does not reach back", "sent=\"changes\""] {
        let count = || primary.log().matches(sent).count();
        wait_until(&format!("{TURNS} lines with {sent}"), || count() >= TURNS as usize);
    }
}

/// A peer as the secondary.
fn check_peer(name: &'static str) {
    if !Server::has_programs_of(name) {
        return;
    }
    let [ours, theirs] = [(); 2].map(|()| Server::free_address());
    let primary = Server::zonda_primary_with_history(ours, theirs, KEPT);
    check(&primary, Server::secondary(name, theirs, ours));
}

#[test]
fn real_peers_knot_behind_a_history_that_is_too_short_gets_the_whole_zone() {
    check_peer("knot");
}

#[test]
fn real_peers_bind_behind_a_history_that_is_too_short_gets_the_whole_zone() {
    check_peer("bind");
}

#[test]
fn real_peers_zonda_behind_a_history_that_is_too_short_gets_the_whole_zone() {
    if !Server::has_programs_of("zonda") {
        return;
    }
    let [first, second] = [(); 2].map(|()| Server::free_address());
    let primary = Server::zonda_primary_with_history(first, second, KEPT);
    check(&primary, Server::zonda_secondary(second, first));
}
