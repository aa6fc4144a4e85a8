//! A secondary that is killed while it transfers a zone that clients change all the time.

use super::clients::{Client, NAME, TEXT};
use super::server::{Victim, compare, wait_for};
use super::updates::{primary, secondary};
use super::{ROUND, kills};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use zonda_testkit::generate::Random;

#[test]
fn a_secondary_that_is_killed_again_and_again_serves_whole_versions_and_never_goes_back() {
    let (address, other) = (Victim::address(), Victim::address());
    let server = Victim::start(address, &primary(other), &[("up.zone", TEXT)]);
    let mut follower = Victim::start(other, &secondary(address), &[]);
    wait_for("the first version comes", &follower, || follower.serial(NAME).is_some());
    let (mut clients, mut random) = (Client::new(2), Random::new(2));
    let (mut last, mut done) = (7, 0);
    while done < kills() {
        let stop = Arc::new(AtomicBool::new(false));
        let observers = Client::new(clients.len());
        let running: Vec<_> =
            clients.into_iter().map(|client| client.run(address, &stop)).collect();
        for _ in 0..ROUND.min(kills() - done) {
            thread::sleep(Duration::from_micros(random.below(300_000) as u64));
            let seen = follower.serial(NAME).unwrap();
            follower.crash(&mut random);
            done += 1;
            wait_for("its file is read", &follower, || follower.serial(NAME).is_some());
            let now = follower.serial(NAME).unwrap();
            assert!(now >= seen && seen >= last, "serials {last}, {seen}, {now} behind {done}");
            assert!(server.serial(NAME).unwrap() >= now, "a version that the primary never had");
            last = now;
            let zone = follower.records(NAME);
            observers.iter().for_each(|client| _ = client.check_window(&zone));
        }
        stop.store(true, Relaxed);
        clients = running.into_iter().map(|client| client.join().unwrap()).collect();
        let zone = server.records(NAME);
        clients.iter_mut().for_each(|client| client.check_nothing_is_lost(&zone));
        compare(&server, &follower, NAME);
    }
    assert!(last > 7, "the secondary followed between kills");
}
