//! The thread that sends NOTIFY messages and takes their replies.

use super::message::{announcement, reply};
use super::rate::Rate;
use super::schedule::{Cause, Target};
use super::shared::Shared;
use super::tcp;
use super::tcp_queue::{TcpMessage, TcpResult};
use arc_swap::ArcSwap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use zonda_engine::Snapshot;
use zonda_engine::access::NotifyReceiver;
use zonda_engine::zones::{Source, ZoneEntry};
use zonda_netio::Poller;
use zonda_wire::Rcode;
use zonda_wire::tsig::{Key, ReplySignature};
use zonda_zone::{Zone, random_octets};

/// Octets of the longest reply that is read.
const REPLY_BYTES_MAX: usize = 4096;
/// Replies that are read before messages are sent again.
const REPLIES_MAX: usize = 256;

/// Sends messages, and takes their replies.
pub struct Sender {
    shared: Arc<Shared>,
    snapshot: Arc<ArcSwap<Snapshot>>,
    /// The sockets for IPv4 and IPv6, where the system has them.
    sockets: [Option<UdpSocket>; 2],
    poller: Poller,
    /// How fast messages are sent.
    rate: Rate,
    /// When the thread was made.
    began: Instant,
}

impl Sender {
    /// A sender of messages about the zones of snapshots.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn new(shared: Arc<Shared>, snapshot: Arc<ArcSwap<Snapshot>>) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.add(&shared.wake, 0)?;
        let v4 = socket((Ipv4Addr::UNSPECIFIED, 0).into())?;
        poller.add(&v4, 1)?;
        let v6 = socket((Ipv6Addr::UNSPECIFIED, 0).into()).ok(); // the system may have none
        v6.iter().try_for_each(|socket| poller.add(socket, 2))?;
        Ok(Self {
            shared,
            snapshot,
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
        let (snapshot, now) = (self.snapshot.load_full(), self.millis());
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
        drop(schedule);
        self.note_pending();
    }

    /// Sends what is due, as far as the rate allows it.
    fn send(&mut self) {
        let now = self.millis();
        while now >= self.rate.free_millis()
            && let Some(target) = self.next(now)
        {
            let snapshot = self.snapshot.load_full();
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

    /// Sends a message; false if there is no such zone or receiver any more.
    fn send_to(&mut self, target: &Target, snapshot: &Snapshot, now: u64) -> bool {
        let Some((entry, zone)) = find(snapshot, &target.zone) else { return false };
        let Some(receiver) = receivers(entry).iter().find(|it| it.address == target.receiver)
        else {
            return false;
        };
        let key = key(receiver, snapshot);
        if receiver.key.is_some() && key.is_none() {
            return false; // the configuration names no key that there is not
        }
        let id = u16::from_be_bytes(random_octets());
        let (soa, _) = zone.soa();
        let mut octets = announcement(id, &entry.apex, (soa.ttl, soa.first()));
        let signature = key
            .and_then(|key| ReplySignature::sign_query(Arc::clone(key), &mut octets, unix_secs()));
        let socket = &self.sockets[usize::from(target.receiver.is_ipv6())];
        let sent = socket.as_ref().map(|socket| socket.send_to(&octets, target.receiver));
        let counts = &self.shared.counts;
        counts.sent.fetch_add(1, Relaxed);
        self.rate.note_sent(now);
        let mut schedule = counts.schedule();
        let noted = schedule.note_sent(target, (id, signature.clone()), now);
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
        if schedule.is_told_over_tcp(target) {
            let (target, serial) = (target.clone(), zone.serial());
            let message = TcpMessage { target, serial, id, octets, signature };
            tcp::send(&self.shared, message);
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
        let schedule = self.shared.counts.schedule();
        let Some(pending) = schedule.awaiting(&target, reply.id) else { return };
        let serial = pending.serial;
        let signature = pending.sent.as_ref().and_then(|(_, signature)| signature.as_ref());
        let fault = signature
            .and_then(|signature| signature.check_reply(octets, unix_secs()).err())
            .map(|fault| fault.to_string());
        let error = fault.or_else(|| {
            (reply.rcode != Rcode::NOERROR).then(|| format!("the reply is {}", reply.rcode))
        });
        drop(schedule);
        self.note_reply((&target, serial), error, false);
    }

    /// Takes the replies that have come over TCP.
    fn receive_over_tcp(&mut self) {
        for TcpResult { target, serial, refusal } in self.shared.tcp.take_results() {
            let is_awaited = |serial| {
                let schedule = self.shared.counts.schedule();
                schedule.pending(&target).is_some_and(|pending| pending.serial == serial)
            };
            if is_awaited(serial) {
                self.note_reply((&target, serial), refusal, true);
            }
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

/// A zone with data of its own, and the data.
fn find<'s>(
    snapshot: &'s Snapshot,
    zone: &zonda_wire::Name,
) -> Option<(&'s ZoneEntry, &'s Arc<Zone>)> {
    let entry = snapshot.zones.get(snapshot.zones.index_of(zone)?);
    match &entry.source {
        Source::Data(zone) => Some((entry, zone)),
        Source::Local(local) => Some((entry, &local.zone)),
        Source::Cluster(names) => Some((entry, &names.data)),
        _ => None,
    }
}

/// The servers that are told of new versions of a zone.
fn receivers(entry: &ZoneEntry) -> &[NotifyReceiver] {
    entry.access.as_ref().map_or(&[], |access| &access.transfers.notify)
}

/// The key of messages to a receiver.
fn key<'s>(receiver: &NotifyReceiver, snapshot: &'s Snapshot) -> Option<&'s Arc<Key>> {
    snapshot.settings.keys.get(receiver.key?)
}

/// The seconds since 1970.
fn unix_secs() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.as_secs())
}
