//! The thread that sends NOTIFY messages and takes their replies.

use super::compose::{compose, find, receivers, unix_secs};
use super::message::reply;
use super::rate::Rate;
use super::schedule::{Cause, Target};
use super::shared::Shared;
use super::tcp;
use super::tcp_queue::{TcpMessage, TcpResult};
use std::collections::HashSet;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use zonda_engine::Snapshot;
use zonda_netio::Poller;
use zonda_wire::Rcode;

/// Octets of the longest reply that is read.
const REPLY_BYTES_MAX: usize = 4096;
/// Replies that are read before messages are sent again.
const REPLIES_MAX: usize = 256;

/// Sends messages, and takes their replies.
pub struct Sender {
    shared: Arc<Shared>,
    /// The sockets for IPv4 and IPv6, where the system has them.
    sockets: [Option<UdpSocket>; 2],
    poller: Poller,
    /// How fast messages are sent.
    rate: Rate,
    /// When the thread was made.
    began: Instant,
}

impl Sender {
    /// A sender of messages about the zones of the snapshot in force.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn new(shared: Arc<Shared>) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.add(&shared.wake, 0)?;
        let v4 = socket((Ipv4Addr::UNSPECIFIED, 0).into())?;
        poller.add(&v4, 1)?;
        let v6 = socket((Ipv6Addr::UNSPECIFIED, 0).into()).ok(); // the system may have none
        v6.iter().try_for_each(|socket| poller.add(socket, 2))?;
        Ok(Self {
            shared,
            sockets: [Some(v4), v6],
            poller,
            rate: Rate::default(),
            began: Instant::now(),
        })
    }

    /// Works until the publisher ends, which is due.
    pub fn run(&mut self) -> bool {
        while !self.shared.is_closed.load(Relaxed) {
            self.announce();
            self.receive();
            self.receive_over_tcp();
            self.send();
            let due = self
                .shared
                .counts
                .schedule()
                .next_millis()
                .map(|due| due.max(self.rate.free_millis()));
            let limit = due.map(|due| Duration::from_millis(due.saturating_sub(self.millis())));
            if self.poller.wait(limit).is_err() {
                return false; // the watchdog says so
            }
            self.shared.wake.rest();
        }
        true
    }

    /// The milliseconds since the thread was made.
    fn millis(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Takes over which zones have new versions.
    fn announce(&mut self) {
        let mut zones =
            std::mem::take(&mut *self.shared.zones.lock().unwrap_or_else(PoisonError::into_inner));
        let repeated = std::mem::take(
            &mut *self.shared.repeated.lock().unwrap_or_else(PoisonError::into_inner),
        );
        if zones.is_empty() && repeated.is_empty() {
            return;
        }
        let (snapshot, now) = (self.shared.snapshot.load_full(), self.millis());
        let mut schedule = self.shared.counts.schedule();
        zones.extend(repeated.iter().map(|zone| (zone.clone(), Cause::Change)));
        for (zone, cause) in &zones {
            let Some((entry, data)) = find(&snapshot, zone) else { continue };
            for receiver in receivers(entry) {
                let target = Target { zone: zone.clone(), receiver: receiver.address };
                if repeated.contains(zone) {
                    schedule.begin_again(&target, data.serial());
                }
                if schedule.add_for(target, (data.serial(), *cause), now) {
                    self.shared.counts.superseded.fetch_add(1, Relaxed);
                }
            }
        }
        if schedule.over_tcp.is_crowded() {
            let zones = snapshot.zones.iter().flat_map(|entry| receivers(entry));
            let of_zones: HashSet<SocketAddr> = zones.map(|receiver| receiver.address).collect();
            schedule.over_tcp.retain(&of_zones);
        }
        drop(schedule);
        self.note_pending();
    }

    /// Sends what is due, as far as the rate allows it.
    fn send(&mut self) {
        let now = self.millis();
        while now >= self.rate.free_millis()
            && let Some(target) = self.next(now)
        {
            if self.postpone(&target, now) {
                continue;
            }
            let snapshot = self.shared.snapshot.load_full();
            if !self.send_to(&target, &snapshot, now) {
                self.shared.counts.schedule().remove(&target); // the zone or the receiver is gone
                self.note_pending();
            }
        }
    }

    /// What is to be sent next, if anything is due.
    fn next(&self, now: u64) -> Option<Target> {
        self.shared.counts.schedule().due(now)
    }

    /// Leaves a message for later if its receiver acknowledges over TCP alone, and too many wait to
    /// be sent so; whether it is left.
    fn postpone(&mut self, target: &Target, now: u64) -> bool {
        let counts = &self.shared.counts;
        let mut schedule = counts.schedule();
        let needs_tcp = schedule.is_told_over_tcp(target) && !schedule.is_silent(target.receiver);
        if !needs_tcp || self.shared.tcp.has_room(target) {
            return false;
        }
        schedule.postpone(target, now);
        drop(schedule);
        counts.postponed.fetch_add(1, Relaxed);
        self.rate.note_sent(now); // which bounds how often room is looked for
        true
    }

    /// Sends a message; false if there is no such zone or receiver any more.
    fn send_to(&mut self, target: &Target, snapshot: &Snapshot, now: u64) -> bool {
        let Some(message) = compose(target, snapshot, unix_secs()) else { return false };
        let socket = &self.sockets[usize::from(target.receiver.is_ipv6())];
        let sent = socket.as_ref().map(|socket| socket.send_to(&message.octets, target.receiver));
        let counts = &self.shared.counts;
        counts.sent.fetch_add(1, Relaxed);
        self.rate.note_sent(now);
        let mut schedule = counts.schedule();
        let noted = schedule.note_sent(target, (message.id, message.signature), now);
        let Some((pending, is_silent)) = noted else { return false };
        if is_silent {
            let error = match sent {
                Some(Ok(_)) => "no reply that acknowledges".to_owned(),
                Some(Err(error)) => error.to_string(),
                None => "the system has no IPv6".to_owned(),
            };
            tracing::warn!(
                zone = %target.zone,
                receiver = %target.receiver,
                serial = pending.serial,
                attempts = pending.attempts,
                error,
                "a server does not acknowledge that a zone has a new version; it is told again"
            );
        }
        counts.silent.store(schedule.silent() as u64, Relaxed);
        let is_told_over_tcp = schedule.is_told_over_tcp(target);
        let is_only = schedule.is_silent(target.receiver);
        drop(schedule);
        if is_told_over_tcp {
            let message = TcpMessage { target: target.clone(), serial: message.serial };
            if !tcp::send(&self.shared, message, is_only) {
                counts.postponed.fetch_add(1, Relaxed); // to its next time
            }
        }
        true
    }

    /// Reads the replies that have come.
    fn receive(&mut self) {
        let mut octets = [0; REPLY_BYTES_MAX];
        for family in 0..self.sockets.len() {
            for _ in 0..REPLIES_MAX {
                let Some(socket) = &self.sockets[family] else { break };
                match socket.recv_from(&mut octets) {
                    Ok((len, from)) => self.take(&octets[..len], from),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(_) => {} // of a message that was sent, which is sent again
                }
            }
        }
    }

    /// Takes a reply.
    fn take(&mut self, octets: &[u8], from: SocketAddr) {
        let Some(reply) = reply(octets) else { return };
        let from = SocketAddr::new(from.ip(), from.port()); // without the scope
        let target = Target { zone: reply.zone, receiver: from };
        let mut schedule = self.shared.counts.schedule();
        let awaited = schedule.awaiting(&target, reply.id);
        let awaited = awaited.and_then(|it| Some((it.serial, it.sent.as_ref()?.1.as_ref())));
        let (serial, signature) = match awaited {
            Some((serial, signature)) => (Some(serial), signature),
            None => match schedule.over_tcp.last_over_udp(from, &target.zone, reply.id) {
                Some(last) => (None, last.signature.as_ref()),
                None => return,
            },
        };
        let fault = signature
            .and_then(|signature| signature.check_reply(octets, unix_secs()).err())
            .map(|fault| fault.to_string());
        let error = fault.or_else(|| {
            (reply.rcode != Rcode::NOERROR).then(|| format!("the reply is {}", reply.rcode))
        });
        let Some(serial) = serial else {
            if error.is_none() {
                schedule.over_tcp.remove(from); // what it has acknowledged over TCP first
            }
            return;
        };
        drop(schedule);
        self.note_reply((&target, serial), error, false);
    }

    /// Takes the replies that have come over TCP.
    fn receive_over_tcp(&mut self) {
        for TcpResult { target, serial, refusal } in self.shared.tcp.take_results() {
            let schedule = self.shared.counts.schedule();
            let is_awaited = schedule.pending(&target).is_some_and(|it| it.serial == serial);
            drop(schedule);
            match is_awaited {
                true => self.note_reply((&target, serial), refusal, true),
                false if refusal.is_none() => self.note_answer(&target, serial),
                false => {}
            }
        }
    }

    /// Notes that a receiver acknowledges, over TCP, a version that a later one has replaced.
    fn note_answer(&self, target: &Target, serial: u32) {
        let (zone, receiver) = (&target.zone, &target.receiver);
        let was_silent =
            self.shared.counts.schedule().note_answer(*receiver, (self.millis(), true));
        if was_silent {
            let over = "TCP";
            tracing::info!(
                %zone, %receiver, serial, over, "a server acknowledges new versions again"
            );
            self.note_pending();
        }
    }

    /// Notes that a receiver acknowledges a version, or refuses it for a reason.
    fn note_reply(
        &self,
        (target, serial): (&Target, u32),
        refusal: Option<String>,
        is_over_tcp: bool,
    ) {
        let (counts, now) = (&self.shared.counts, self.millis());
        let (zone, receiver) = (&target.zone, &target.receiver);
        let mut schedule = counts.schedule();
        if let Some(error) = refusal {
            counts.refused.fetch_add(1, Relaxed);
            if schedule.note_refused(target) {
                tracing::warn!(%zone, %receiver, serial, error, "a server refuses a NOTIFY");
            }
            return;
        }
        let over = if is_over_tcp { "TCP" } else { "UDP" };
        tracing::debug!(%zone, %receiver, serial, over, "a server knows of a zone's new version");
        if schedule.note_acknowledged(target, (now, is_over_tcp)) {
            tracing::info!(
                %zone, %receiver, serial, over, "a server acknowledges new versions again"
            );
        }
        drop(schedule);
        counts.acknowledged.fetch_add(1, Relaxed);
        self.note_pending();
    }

    /// Has metrics show how much waits.
    fn note_pending(&self) {
        let counts = &self.shared.counts;
        let (pending, silent) = {
            let schedule = counts.schedule();
            (schedule.len(), schedule.silent())
        };
        counts.pending.store(pending as u64, Relaxed);
        counts.silent.store(silent as u64, Relaxed);
    }
}

/// A socket that is never waited for.
fn socket(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::fixture::{reply, serial, shared, snapshot, target};
    use super::*;

    /// A receiver over UDP, and a sender that has version 7 of a zone for it.
    fn sender() -> (UdpSocket, Sender, Target) {
        let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let address = receiver.local_addr().unwrap();
        let sender = Sender::new(shared(address, None)).unwrap();
        sender.shared.counts.schedule().add_for(target(address), (7, Cause::Change), 0);
        (receiver, sender, target(address))
    }

    /// The next message to a receiver, and where it came from.
    fn next(receiver: &UdpSocket) -> (Vec<u8>, SocketAddr) {
        let mut octets = [0; 512];
        let (len, from) = receiver.recv_from(&mut octets).unwrap();
        (octets[..len].to_vec(), from)
    }

    /// Has a message end over TCP, whose receiver acknowledges a serial.
    fn acknowledge_over_tcp(sender: &mut Sender, target: &Target, serial: u32) {
        let (target, refusal) = (target.clone(), None);
        let result = TcpResult { target: target.clone(), serial, refusal };
        sender.shared.tcp.lock().end(&target, Some(result));
        sender.receive_over_tcp();
    }

    #[test]
    fn a_message_that_has_no_room_among_those_over_tcp_is_counted_and_left_for_later() {
        let (receiver, mut sender, target) = sender();
        sender.shared.counts.schedule().over_tcp.add(target.receiver);
        for number in 0..1024 {
            let zone = format!("z{number}.test").parse().unwrap();
            let other = Target { zone, receiver: target.receiver };
            let message = TcpMessage { target: other, serial: 1 };
            assert!(sender.shared.tcp.lock().add(message, false));
        }
        sender.send();
        let counts = Arc::clone(&sender.shared.counts);
        assert_eq!((counts.postponed.load(Relaxed), counts.sent.load(Relaxed)), (1, 0));
        let due = counts.schedule().next_millis().unwrap();
        assert!((2000..12_000).contains(&due), "{due}");
        sender.shared.tcp.lock().begin().unwrap(); // a thread has become free
        assert_eq!(counts.schedule().due(due), Some(target.clone()));
        assert!(!sender.postpone(&target, due));
        receiver.set_nonblocking(true).unwrap();
        assert!(receiver.recv_from(&mut [0; 512]).is_err(), "nothing was sent over UDP either");
    }

    #[test]
    fn an_acknowledgement_over_tcp_of_a_superseded_version_leaves_the_newer_one_to_be_sent() {
        let (receiver, mut sender, target) = sender();
        let counts = Arc::clone(&sender.shared.counts);
        while counts.schedule().silent() == 0 {
            let due = counts.schedule().next_millis().unwrap();
            counts.schedule().note_sent(&target, (1, None), due).unwrap();
        }
        sender.shared.snapshot.store(Arc::new(snapshot(target.receiver, None, 8)));
        counts.schedule().add_for(target.clone(), (8, Cause::Change), 0);
        acknowledge_over_tcp(&mut sender, &target, 7);
        assert_eq!(counts.schedule().silent(), 0, "it answers");
        assert_eq!(counts.acknowledged.load(Relaxed), 0, "not the version in force");
        sender.send();
        assert_eq!(serial(&next(&receiver).0), 8);
    }

    #[test]
    fn a_receiver_is_told_over_udp_alone_again_once_it_acknowledges_so() {
        let (receiver, mut sender, target) = sender();
        let counts = Arc::clone(&sender.shared.counts);
        counts.schedule().over_tcp.add(target.receiver);
        sender.send();
        let (message, from) = next(&receiver);
        acknowledge_over_tcp(&mut sender, &target, 7);
        assert_eq!(counts.acknowledged.load(Relaxed), 1);
        assert!(counts.schedule().over_tcp.contains(target.receiver));
        let mut other = reply(&message);
        other[0] ^= 1;
        sender.take(&other, target.receiver);
        assert!(counts.schedule().over_tcp.contains(target.receiver), "no reply to that message");
        receiver.send_to(&reply(&message), from).unwrap();
        while counts.schedule().over_tcp.contains(target.receiver) {
            sender.receive();
        }
        assert_eq!(counts.acknowledged.load(Relaxed), 1, "once for a version");
    }
}
