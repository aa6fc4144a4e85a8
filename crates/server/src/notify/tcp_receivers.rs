//! Receivers that have acknowledged over TCP and not over UDP, and so are notified over both.
//!
//! # Invariants
//! - A receiver stays until it acknowledges over UDP, or no zone has it any more: at most twice as
//!   many are remembered as zones had the last time that they were compared, and
//!   [`UNCOMPARED_MAX`].

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use zonda_wire::Name;
use zonda_wire::tsig::ReplySignature;

/// Receivers that are remembered before they are compared with those of the zones.
const UNCOMPARED_MAX: usize = 64;

/// The last message over UDP to a receiver.
#[derive(Clone)]
pub struct UdpMessage {
    /// The zone that was announced, in lower case.
    pub zone: Name,
    /// The id of the message.
    pub id: u16,
    /// What the reply is checked with, if the message is signed.
    pub signature: Option<ReplySignature>,
}

/// Receivers that have acknowledged over TCP and not over UDP.
#[derive(Default)]
pub struct TcpReceivers {
    /// The last message over UDP to each since it acknowledges over TCP.
    all: HashMap<SocketAddr, Option<UdpMessage>>,
    /// How many there were when they were compared with the zones' last.
    compared: usize,
}

impl TcpReceivers {
    /// Whether a receiver is remembered.
    pub fn contains(&self, receiver: SocketAddr) -> bool {
        self.all.contains_key(&receiver)
    }

    /// Remembers a receiver.
    pub fn add(&mut self, receiver: SocketAddr) {
        self.all.entry(receiver).or_default();
    }

    /// Forgets a receiver.
    pub fn remove(&mut self, receiver: SocketAddr) {
        self.all.remove(&receiver);
    }

    /// Notes the last message over UDP to a receiver, if that is remembered.
    pub fn note_udp(&mut self, receiver: SocketAddr, message: impl FnOnce() -> UdpMessage) {
        if let Some(last) = self.all.get_mut(&receiver) {
            *last = Some(message());
        }
    }

    /// The last message over UDP to a receiver, if it is about a zone and has an id.
    pub fn last_over_udp(&self, receiver: SocketAddr, zone: &Name, id: u16) -> Option<&UdpMessage> {
        let last = self.all.get(&receiver)?.as_ref()?;
        (last.id == id && last.zone == *zone).then_some(last)
    }

    /// Whether so many are remembered that they are to be compared with those of the zones.
    pub fn is_crowded(&self) -> bool {
        self.all.len() > UNCOMPARED_MAX.max(2 * self.compared)
    }

    /// Forgets all but those that zones have.
    pub fn retain(&mut self, of_zones: &HashSet<SocketAddr>) {
        self.all.retain(|receiver, _| of_zones.contains(receiver));
        self.compared = self.all.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receivers_that_no_zone_has_any_more_are_forgotten_when_there_are_many() {
        let mut receivers = TcpReceivers::default();
        let address = |port: u16| SocketAddr::from(([192, 0, 2, 1], port));
        (0..64).for_each(|port| receivers.add(address(port)));
        assert!(!receivers.is_crowded());
        receivers.add(address(64));
        assert!(receivers.is_crowded());
        receivers.retain(&(60..100).map(address).collect());
        assert!(!receivers.is_crowded());
        assert!(receivers.contains(address(64)) && !receivers.contains(address(59)));
        (100..200).for_each(|port| receivers.add(address(port)));
        let of_zones = (100..200).map(address).collect();
        assert!(receivers.is_crowded());
        receivers.retain(&of_zones);
        (200..300).for_each(|port| receivers.add(address(port)));
        assert!(!receivers.is_crowded(), "twice as many as zones have");
        receivers.add(address(300));
        assert!(receivers.is_crowded());
    }
}
