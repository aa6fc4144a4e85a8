//! A primary that is killed while clients change its zone and a secondary transfers it.

use super::clients::{Client, NAME, TEXT};
use super::server::{Victim, compare, wait_for};
use super::{ROUND, kills};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;
use zonda_testkit::generate::Random;

/// The section of the zone at its primary, which tells a secondary of changes.
pub fn primary(notify: SocketAddr) -> String {
    format!(
        "[[zone]]\nname = \"{NAME}\"\nfile = \"up.zone\"\n\
         update = [{{ from = \"127.0.0.1\", names = \"zone\" }}]\nhistory = {{ versions = 50 }}\n\
         transfer = {{ to = [\"127.0.0.1\"], notify = [\"{notify}\"] }}\n"
    )
}

/// The section of the zone at its secondary.
pub fn secondary(from: SocketAddr) -> String {
    format!(
        "[[zone]]\nname = \"{NAME}\"\ntransfer = {{ to = [\"127.0.0.1\"] }}\n[zone.secondary]\n\
         from = [\"{from}\"]\nrefresh-min = \"1s\"\nrefresh-max = \"1s\"\nretry-min = \"1s\"\n\
         retry-max = \"1s\"\n"
    )
}

#[test]
fn a_primary_that_is_killed_again_and_again_loses_no_change_and_its_secondary_follows() {
    let (address, other) = (Victim::address(), Victim::address());
    let mut server = Victim::start(address, &primary(other), &[("up.zone", TEXT)]);
    let follower = Victim::start(other, &secondary(address), &[]);
    wait_for("the first version comes", &follower, || follower.serial(NAME).is_some());
    let (mut clients, mut random) = (Client::new(3), Random::new(1));
    let mut last = 7;
    for kill in 1..=kills() {
        let stop = Arc::new(AtomicBool::new(false));
        let running: Vec<_> =
            clients.into_iter().map(|client| client.run(address, &stop)).collect();
        thread::sleep(Duration::from_micros(random.below(200_000) as u64));
        let seen = server.serial(NAME).max(follower.serial(NAME)).unwrap();
        server.crash(&mut random);
        clients = running.into_iter().map(|client| client.join().unwrap()).collect();
        let now = server.serial(NAME).unwrap();
        assert!(now >= seen && seen >= last, "serials {last}, {seen} and {now} behind kill {kill}");
        assert!(follower.serial(NAME).unwrap() <= now, "the secondary has what the primary lost");
        last = now;
        let zone = server.records(NAME);
        clients.iter_mut().for_each(|client| client.check_nothing_is_lost(&zone));
        if kill % ROUND == 0 || kill == kills() {
            compare(&server, &follower, NAME);
        }
    }
    assert!(last > 7, "clients changed the zone between kills");
}
