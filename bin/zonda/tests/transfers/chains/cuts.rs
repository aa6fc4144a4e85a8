//! Connections that end at random octets of a transfer: the former version stays, and the next try
//! has the new one.

use super::proxy::{AXFR, IXFR, Proxy};
use super::servers::Server;
use super::{FIRST, bulk, check_version, publish, transfer};
use crate::primary::key_argument;
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use zonda_testkit::generate::Random;
use zonda_testkit::process::bounded;

/// How often a transfer is cut off.
const TURNS: u32 = 24;
/// How long a cut, or the next version, is waited for.
const LIMIT: Duration = Duration::from_secs(60);

/// The variable with the number that the octets come of; without it, the time is.
const SEED: &str = "TEST_SEED";

/// Numbers by chance; what they come of is printed, so that a failure tells it.
fn random() -> Random {
    let given = std::env::var(SEED).ok().map(|text| text.parse().unwrap());
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let seed = given.unwrap_or(now.as_nanos() as u64);
    eprintln!("{SEED}={seed}");
    Random::new(seed)
}

/// Runs a command about the zone at a server of Zonda's. A transfer that it asks for may fail, and
/// the command then says that the zone stays as it was.
fn command(server: &Server, command: &str) {
    let mut zonda = bounded(env!("CARGO_BIN_EXE_zonda"));
    zonda.args(["zone", command, crate::real_peers::ZONE, "--socket"]);
    let output = zonda.arg(server.folder.path().join("admin.sock")).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let is_refused = output.status.code() == Some(1) && said.contains("stays as it was");
    assert!(output.status.success() || is_refused && command != "notify", "{command}: {said}");
}

/// The serial of what a secondary serves, which is a version with all that never changes.
fn served(secondary: &Server) -> u32 {
    let mut records = transfer(secondary.address, &[]).expect("it serves a version");
    let all = bulk();
    assert_eq!(all.difference(&records).count(), 0, "records are missing: {}", secondary.log());
    records.retain(|record| !all.contains(record));
    check_version(&records)
}

/// A primary makes versions, of which a secondary gets a part of each transfer first, until it has
/// asked a question of one of these types; `again` has the secondary try anew, and `whole` transfer
/// the zone by AXFR, if it can be told to.
fn check(
    proxy: &Proxy,
    primary: &Server,
    (secondary, last): (&Server, &[u16]),
    again: impl Fn(),
    whole: Option<&dyn Fn()>,
) {
    let mut random = random();
    let mut serial = FIRST;
    secondary.wait_for(serial);
    for turn in 0..TURNS {
        let next = serial + 1 + random.below(6) as u32;
        // In the changes, or anywhere in the zone.
        let most = if random.one_in(2) { 900 } else { 40_000 };
        proxy.cut_at(1 + random.below(most));
        let before = proxy.cuts(last);
        publish(primary, (serial, next));
        let limit = Instant::now() + LIMIT;
        while proxy.cuts(last) == before && secondary.serial() != Some(next) {
            assert!(Instant::now() < limit, "turn {turn}: {}", secondary.log());
            thread::sleep(Duration::from_millis(10));
        }
        if let (Some(whole), true) = (whole, turn % 3 == 0) {
            whole();
        }
        assert!((serial..=next).contains(&served(secondary)), "turn {turn}");
        proxy.cut_nothing();
        let limit = Instant::now() + LIMIT;
        while secondary.serial() != Some(next) {
            assert!(Instant::now() < limit, "turn {turn}, {next}: {}", secondary.log());
            again();
            let soon = Instant::now() + Duration::from_secs(2);
            while secondary.serial() != Some(next) && Instant::now() < soon {
                thread::sleep(Duration::from_millis(20));
            }
        }
        assert_eq!(served(secondary), next, "turn {turn}");
        serial = next;
    }
    let ours = transfer(primary.address, &["-y", &key_argument()]);
    assert_eq!(transfer(secondary.address, &[]), ours);
    for log in [primary.log(), secondary.log()] {
        assert!(!log.contains("panicked") && !log.contains("damaged"), "{log}");
    }
}

/// A peer as the primary of a server of Zonda's, which is started again at the end.
fn check_in(name: &'static str) {
    if !Server::has_programs_of(name) {
        return;
    }
    let [ours, theirs, between] = [(); 3].map(|()| Server::free_address());
    let proxy = Proxy::start(between, theirs);
    let primary = Server::primary_with_bulk(name, theirs, ours);
    let mut secondary = Server::zonda_secondary(ours, between);
    let (again, whole) = (|| command(&secondary, "refresh"), || command(&secondary, "retransfer"));
    // Where changes do not arrive, it asks for the whole zone at once, which is longer.
    check(&proxy, &primary, (&secondary, &[AXFR]), again, Some(&whole));
    assert!(proxy.cuts(&[IXFR]) >= 4 && proxy.cuts(&[AXFR]) >= 4, "too few cuts of one kind");
    let last = secondary.serial().unwrap();
    secondary.restart();
    assert_eq!(served(&secondary), last, "from the disk");
}

#[test]
fn real_peers_a_transfer_of_bind_that_ends_at_any_octet_leaves_the_former_version_in_force() {
    check_in("bind");
}

#[test]
fn real_peers_a_transfer_of_knot_that_ends_at_any_octet_leaves_the_former_version_in_force() {
    check_in("knot");
}

#[test]
fn real_peers_a_transfer_of_nsd_that_ends_at_any_octet_leaves_the_former_version_in_force() {
    check_in("nsd");
}

/// A peer as a secondary of a server of Zonda's; some of its questions of these types are cut off.
fn check_out(name: &'static str, types: &[u16]) {
    if !Server::has_programs_of(name) {
        return;
    }
    let [ours, theirs, between] = [(); 3].map(|()| Server::free_address());
    let proxy = Proxy::start(between, ours);
    let primary = Server::zonda_primary_with_bulk(ours, theirs);
    let secondary = Server::secondary(name, theirs, between);
    let again = || command(&primary, "notify");
    check(&proxy, &primary, (&secondary, &[IXFR, AXFR]), again, None);
    assert!(proxy.cuts(types) >= 4, "{} are cut off", proxy.cuts(types));
}

#[test]
fn real_peers_knot_follows_changes_though_connections_end_at_any_octet() {
    check_out("knot", &[IXFR]);
}

#[test]
fn real_peers_bind_follows_whole_zones_though_connections_end_at_any_octet() {
    check_out("bind-axfr", &[AXFR]);
}

#[test]
fn real_peers_nsd_follows_though_connections_end_at_any_octet() {
    check_out("nsd", &[IXFR, AXFR]);
}
