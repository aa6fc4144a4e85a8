//! The messages of the last minutes: a message that comes once more, from a client that has lost
//! its reply or from anyone that has seen it, is not carried out again.
//!
//! A signed message is known by its key and its MAC, whatever it came by, for as long as its
//! signature may be used, and for 10 seconds at least. One that is not signed is known by its
//! octets and the port of its client, over UDP alone, for 10 seconds: over TCP no reply gets lost.
//!
//! # Invariants
//! - Messages that are not signed never displace signed ones.
//! - A signed message is carried out once. Where the memory is full, messages of a key that were
//!   signed no later than one that had to be forgotten are not carried out at all.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasher;
use zonda_deferral::Deferred;
use zonda_engine::{Now, Reason, Transport, UPDATE_FUDGE_SECS, UpdateOutcome};
use zonda_wire::Rcode;
use zonda_wire::tsig::{KeyId, SignatureCheck};

/// How long each message is remembered at least.
const REMEMBERED_NANOS: u64 = 10_000_000_000;
/// Signed messages that are remembered at most, some 150 octets each.
const SIGNED_MAX: usize = 250_000;
/// Messages without a signature that are remembered at most.
const UNSIGNED_MAX: usize = 100_000;
/// Octets of the longest explanation that is remembered; without it, a reply is as good.
const TEXT_BYTES_MAX: usize = 256;
/// Octets of a MAC that messages are told apart by; no key makes the same ones twice.
const MAC_BYTES: usize = 16;

/// The identity of a message, by which it is known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageId {
    /// A message with a sound signature: the key, and the MAC.
    Signed(KeyId, [u8; MAC_BYTES]),
    /// A message over UDP without one: a hash of its octets and of the address it came from.
    Datagram(u64),
}

/// The messages of the last minutes, and what their clients were told.
#[derive(Default)]
pub struct RecentUpdates {
    signed: Memory,
    unsigned: Memory,
    /// The time of the latest signature among forgotten messages, seconds since 1970, by key.
    forgotten: HashMap<KeyId, u64>,
    hasher: RandomState,
}

/// Messages until they expire.
#[derive(Default)]
struct Memory {
    outcomes: HashMap<MessageId, RecentUpdate>,
    /// The messages by the moment at which they expire, monotonic nanoseconds.
    by_end: BTreeSet<(u64, MessageId)>,
}

/// What became of a message.
struct RecentUpdate {
    /// The moment at which it may be forgotten, monotonic nanoseconds.
    end: u64,
    /// The time of its signature, seconds since 1970; 0 without one.
    signed_secs: u64,
    outcome: UpdateOutcome,
}

impl RecentUpdates {
    /// Returns the identity of a message; none for one that is not signed and came over TCP.
    pub fn id_of(&self, message: &Deferred) -> Option<MessageId> {
        let signature = message.deferral.history.signature.as_deref();
        let sound = signature.filter(|it| it.check == SignatureCheck::Sound);
        if let Some(signature) = sound {
            let mac = *signature.mac().first_chunk()?;
            return Some(MessageId::Signed(signature.key?, mac));
        }
        let is_datagram = message.peer.transport == Transport::Udp;
        let hash = || self.hasher.hash_one((message.peer.address, &message.query));
        is_datagram.then(hash).map(MessageId::Datagram)
    }

    /// Returns what the client of a message was told, if it came before; or why it is not carried
    /// out, if that cannot be said any more.
    pub fn find(&mut self, message: &Deferred, now: Now) -> Option<UpdateOutcome> {
        let id = self.id_of(message)?;
        self.signed.expire(now);
        self.unsigned.expire(now);
        if let Some(known) = self.memory(id).0.outcomes.get(&id) {
            return Some(known.outcome.clone());
        }
        let MessageId::Signed(key, _) = id else { return None };
        let signed = signed_secs(message);
        // It was in time when it came, and a copy may have been forgotten while it waited.
        let is_late = signed + u64::from(UPDATE_FUDGE_SECS) < now.unix_secs.into();
        let is_forgotten = self.forgotten.get(&key).is_some_and(|latest| signed <= *latest);
        (is_late || is_forgotten).then(|| UpdateOutcome {
            rcode: Rcode::SERVFAIL,
            reason: Reason::UpdateFailed,
            text: "whether this message came before is not known any more: sign it anew".to_owned(),
        })
    }

    /// Remembers what the client of a message is told.
    pub fn note(&mut self, message: &Deferred, outcome: &UpdateOutcome, now: Now) {
        // What has failed may succeed when it is sent again.
        let has_failed = outcome.rcode == Rcode::SERVFAIL;
        let Some(id) = self.id_of(message).filter(|_| !has_failed) else { return };
        let mut outcome = outcome.clone();
        if outcome.text.len() > TEXT_BYTES_MAX {
            outcome.text = String::new();
        }
        let signed_secs = signed_secs(message);
        let last_secs = signed_secs + u64::from(UPDATE_FUDGE_SECS) + 1;
        let last_secs = last_secs.saturating_sub(now.unix_secs.into());
        let least = REMEMBERED_NANOS.max(last_secs.saturating_mul(1_000_000_000));
        let end = now.monotonic_nanos.saturating_add(least);
        let (memory, max) = self.memory(id);
        let former = memory.outcomes.insert(id, RecentUpdate { end, signed_secs, outcome });
        if let Some(former) = former {
            memory.by_end.remove(&(former.end, id));
        }
        memory.by_end.insert((end, id));
        if memory.outcomes.len() > max
            && let Some((MessageId::Signed(key, _), signed)) = memory.pop()
        {
            let useful = |secs: u64| secs + u64::from(UPDATE_FUDGE_SECS) >= now.unix_secs.into();
            self.forgotten.retain(|_, secs| useful(*secs));
            let latest = self.forgotten.entry(key).or_default();
            *latest = signed.max(*latest);
        }
    }

    /// The memory that a message belongs to, and its bound.
    fn memory(&mut self, id: MessageId) -> (&mut Memory, usize) {
        match id {
            MessageId::Signed(..) => (&mut self.signed, SIGNED_MAX),
            MessageId::Datagram(_) => (&mut self.unsigned, UNSIGNED_MAX),
        }
    }
}

impl Memory {
    /// Forgets what has expired.
    fn expire(&mut self, now: Now) {
        while self.by_end.first().is_some_and(|(end, _)| *end < now.monotonic_nanos) {
            self.pop();
        }
    }

    /// Forgets the message that expires first; returns it with the time of its signature.
    fn pop(&mut self) -> Option<(MessageId, u64)> {
        let (_, id) = self.by_end.pop_first()?;
        Some((id, self.outcomes.remove(&id)?.signed_secs))
    }
}

/// The time of a message's signature, seconds since 1970; 0 without one.
fn signed_secs(message: &Deferred) -> u64 {
    let signature = message.deferral.history.signature.as_deref();
    signature.map_or(0, |signature| signature.time_secs())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::SocketAddr;
    use tokio::sync::mpsc;
    use zonda_deferral::ReplyTo;
    use zonda_engine::{Deferral, Peer, To};
    use zonda_wire::tsig::{Algorithm, Key, KeyRing, ReplySignature, SignatureRecord};

    /// The time of all signatures, seconds since 1970.
    const SIGNED: u32 = 1_800_000_000;

    /// A message, from a port of this number.
    fn message(octets: &[u8], port: u16, transport: Transport) -> Deferred {
        let peer = Peer::new(([192, 0, 2, 1], port).into(), transport, 0);
        let (deferral, reply_to) = (Deferral::new(To::Update, 0), mpsc::channel(1).0);
        let reply_to = ReplyTo::Connection(reply_to);
        Deferred { query: octets.to_vec(), peer, deferral, reply_to }
    }

    /// A message that is signed at a time.
    fn signed(octets: &[u8], at: u32, port: u16, transport: Transport) -> Deferred {
        let key = || Key::new(&"k.example".parse().unwrap(), Algorithm::HmacSha256, b"secret");
        let mut buffer = [&[0; 10][..], &[0, 0], octets].concat();
        let len = buffer.len();
        ReplySignature::sign_query(key().into(), &mut buffer, at.into()).unwrap();
        let keys = KeyRing::new([key()]);
        let mut record = SignatureRecord::default();
        let signature = record.verify(&buffer, len, &keys, at.into()).unwrap();
        assert_eq!(signature.check, SignatureCheck::Sound);
        let mut message = message(octets, port, transport);
        message.deferral.history.signature = Some(Box::new(signature));
        message
    }

    /// So many seconds after the time of the signatures.
    fn after(secs: u64) -> Now {
        let unix_secs = SIGNED + secs as u32;
        Now::new((secs + 1) * 1_000_000_000, unix_secs)
    }

    /// The outcome with a response code.
    fn outcome(rcode: Rcode) -> UpdateOutcome {
        UpdateOutcome { rcode, reason: Reason::Updated, text: String::new() }
    }

    #[test]
    fn a_signed_message_is_known_from_any_port_and_transport_while_its_signature_is_good() {
        let mut recent = RecentUpdates::default();
        let first = signed(b"a", SIGNED, 1, Transport::Udp);
        assert!(recent.find(&first, after(0)).is_none());
        recent.note(&first, &outcome(Rcode::NOERROR), after(0));
        for again in
            [signed(b"a", SIGNED, 2, Transport::Udp), signed(b"a", SIGNED, 1, Transport::Tcp)]
        {
            for secs in [0, 10, 299, 300] {
                let found = recent.find(&again, after(secs)).map(|it| it.rcode);
                assert_eq!(found, Some(Rcode::NOERROR), "{secs}");
            }
        }
        let anew = signed(b"a", SIGNED + 1, 1, Transport::Udp);
        assert!(recent.find(&anew, after(1)).is_none(), "another signature, another message");
        let late = recent.find(&first, after(302)).unwrap();
        assert_eq!(late.rcode, Rcode::SERVFAIL, "it was in time, and has waited since");
        assert!(recent.signed.by_end.is_empty() && recent.signed.outcomes.is_empty());
    }

    #[test]
    fn a_message_without_a_signature_is_known_from_the_same_port_over_udp_for_ten_seconds() {
        let mut recent = RecentUpdates::default();
        let first = message(b"a", 1, Transport::Udp);
        recent.note(&first, &outcome(Rcode::YXDOMAIN), after(0));
        recent.note(&message(b"b", 1, Transport::Tcp), &outcome(Rcode::NOERROR), after(0));
        assert_eq!(recent.find(&first, after(10)).unwrap().rcode, Rcode::YXDOMAIN);
        for (octets, port, transport) in
            [(b"a", 2, Transport::Udp), (b"c", 1, Transport::Udp), (b"b", 1, Transport::Tcp)]
        {
            assert!(recent.find(&message(octets, port, transport), after(0)).is_none());
        }
        assert!(recent.find(&first, after(11)).is_none());
    }

    #[test]
    fn what_has_failed_may_be_sent_again() {
        let mut recent = RecentUpdates::default();
        let first = signed(b"a", SIGNED, 1, Transport::Udp);
        recent.note(&first, &outcome(Rcode::SERVFAIL), after(0));
        assert!(recent.find(&first, after(0)).is_none());
    }

    #[test]
    fn a_flood_of_messages_without_signatures_displaces_no_signed_one() {
        let mut recent = RecentUpdates::default();
        let first = signed(b"a", SIGNED, 1, Transport::Udp);
        recent.note(&first, &outcome(Rcode::NOERROR), after(0));
        let mut datagram = message(&[0; 4], 1, Transport::Udp);
        for number in 0..UNSIGNED_MAX as u32 + 5 {
            datagram.query = number.to_be_bytes().to_vec();
            recent.note(&datagram, &outcome(Rcode::YXDOMAIN), after(0));
        }
        assert_eq!(recent.unsigned.outcomes.len(), UNSIGNED_MAX);
        assert_eq!(recent.unsigned.by_end.len(), UNSIGNED_MAX);
        assert!(recent.find(&first, after(1)).is_some());
    }

    #[test]
    fn what_had_to_be_forgotten_is_not_carried_out_again() {
        let mut recent = RecentUpdates::default();
        let first = signed(b"a", SIGNED, 1, Transport::Udp);
        recent.note(&first, &outcome(Rcode::NOERROR), after(0));
        let id = recent.id_of(&first).unwrap();
        let MessageId::Signed(key, _) = id else { panic!("{id:?}") };
        for number in 0..SIGNED_MAX as u128 {
            let id = MessageId::Signed(key, number.to_be_bytes());
            let end = after(400).monotonic_nanos;
            let outcome = outcome(Rcode::NOERROR);
            let known = RecentUpdate { end, signed_secs: u64::from(SIGNED) + 99, outcome };
            recent.signed.outcomes.insert(id, known);
            recent.signed.by_end.insert((end, id));
        }
        let next = signed(b"b", SIGNED + 100, 1, Transport::Udp);
        recent.note(&next, &outcome(Rcode::NOERROR), after(100));
        let found = recent.find(&first, after(101)).unwrap();
        assert_eq!(found.rcode, Rcode::SERVFAIL, "{}", found.text);
        let later = signed(b"c", SIGNED + 101, 1, Transport::Udp);
        assert!(recent.find(&later, after(101)).is_none(), "later ones are carried out");
    }

    #[test]
    fn addresses_are_part_of_what_tells_datagrams_apart() {
        let recent = RecentUpdates::default();
        let mut other = message(b"a", 1, Transport::Udp);
        let one = recent.id_of(&other).unwrap();
        other.peer.address = SocketAddr::from(([192, 0, 2, 2], 1));
        assert_ne!(recent.id_of(&other).unwrap(), one);
    }
}
