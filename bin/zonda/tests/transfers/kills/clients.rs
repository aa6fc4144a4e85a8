//! Clients that change a zone without end, each its own names, and what must be there of them.

use crate::update_messages::Update;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use zonda_testkit::client::exchange;

/// The zone that clients change.
pub const NAME: &str = "up.test";
/// The text of the zone when it begins.
pub const TEXT: &str = "$TTL 60\n@ SOA ns host 7 1 1 1209600 60\n@ NS ns\nns A 192.0.2.1\n";
/// Names that a client has at a time: with each new one it removes the oldest.
const WINDOW: u32 = 20;

/// A client that changes a zone.
pub struct Client {
    /// Tells the clients apart.
    number: usize,
    /// The last change that was acknowledged; 0 before the first one.
    acknowledged: u32,
}

impl Client {
    /// So many clients.
    pub fn new(count: usize) -> Vec<Self> {
        (0..count).map(|number| Self { number, acknowledged: 0 }).collect()
    }

    /// Sends changes until one is not acknowledged, or it shall stop.
    pub fn run(mut self, to: SocketAddr, stop: &Arc<AtomicBool>) -> JoinHandle<Self> {
        let stop = Arc::clone(stop);
        thread::spawn(move || {
            while !stop.load(Relaxed) {
                let next = self.acknowledged + 1;
                match exchange(to, &self.change(next), true) {
                    Ok(reply) if reply[3] & 0xf == 0 => self.acknowledged = next,
                    _ => break,
                }
            }
            self
        })
    }

    /// The octets of a change: it adds a name and removes another one.
    fn change(&self, number: u32) -> Vec<u8> {
        let name = |number: u32| format!("c{}n{number}.{NAME}", self.number);
        let mut update = Update::new(NAME).id(number as u16);
        update = update.change(&format!("IN {} 60 A 192.0.2.7", name(number)));
        if let Some(oldest) = number.checked_sub(WINDOW).filter(|it| *it > 0) {
            update = update.change(&format!("ANY {} 0 ANY", name(oldest)));
        }
        update.0.to_wire()
    }

    /// Takes over what the zone has after a kill: all acknowledged changes, and the one that was
    /// not acknowledged whole or not at all.
    pub fn check_nothing_is_lost(&mut self, zone: &[String]) {
        let last = self.check_window(zone);
        let may_be = [self.acknowledged, self.acknowledged + 1];
        assert!(may_be.contains(&last), "change {last}, acknowledged {}", self.acknowledged);
        self.acknowledged = last;
    }

    /// Fails if the zone has a change of the client in part; returns the last change that it has.
    pub fn check_window(&self, zone: &[String]) -> u32 {
        let begin = format!("c{}n", self.number);
        let owners = zone.iter().filter_map(|record| record.strip_prefix(&begin));
        let mut numbers: Vec<u32> =
            owners.filter_map(|owner| owner.split('.').next()?.parse().ok()).collect();
        numbers.sort_unstable();
        let last = numbers.last().copied().unwrap_or_default();
        let wanted: Vec<u32> = (last.saturating_sub(WINDOW - 1).max(1)..=last).collect();
        assert_eq!(numbers, wanted, "client {}", self.number);
        last
    }
}
