//! What a signature is made of, and signatures of replies.

use super::key::{Key, KeyId};
use super::{
    BADSIG, FIXED_BYTES, FUDGE_SECS, MAC_BYTES_MAX, OTHER_BYTES_MAX, Parts, TIME_BYTES, hmac,
};
use crate::code::{Class, Rcode, Type};
use crate::query::HEADER_BYTES;
use std::sync::Arc;

/// Octets of a record between the names: type, class, TTL and the length of the data.
pub(super) const RECORD_FIXED_BYTES: usize = 2 + 2 + 4 + 2;

/// What is to be said of the signature of a query, in the order in which it is found out
/// (rfc8945#5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureCheck {
    /// The client has the key.
    Sound,
    /// There is no key of this name for this algorithm: BADKEY.
    UnknownKey,
    /// The signature is not the key's: BADSIG.
    WrongMac,
    /// The clocks of client and server differ by more than the client allows: BADTIME.
    WrongTime,
    /// The signature is the key's, but is not whole: BADTRUNC.
    Truncated,
}

impl SignatureCheck {
    /// Returns the error that the reply's TSIG record tells; none for a sound signature.
    #[must_use]
    pub fn error(self) -> Option<Rcode> {
        match self {
            Self::Sound => None,
            Self::UnknownKey => Some(Rcode::BADKEY),
            Self::WrongMac => Some(BADSIG),
            Self::WrongTime => Some(Rcode::BADTIME),
            Self::Truncated => Some(Rcode::BADTRUNC),
        }
    }

    /// Whether the reply is signed: the client has the key (rfc8945#5.3.2).
    #[must_use]
    pub fn is_answered_signed(self) -> bool {
        matches!(self, Self::Sound | Self::WrongTime | Self::Truncated)
    }
}

/// The signature of a query: what is to be said of it, and what that of the reply depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuerySignature {
    /// The result of the check.
    pub check: SignatureCheck,
    /// The key that the client says it has; no key's with [`SignatureCheck::UnknownKey`].
    pub key: Option<KeyId>,
    /// The MAC, which the reply's covers.
    mac: Mac,
    /// The time of the signature, seconds since 1970.
    time_secs: u64,
    /// How many seconds the time of the server may differ from that.
    fudge_secs: u16,
    /// The id that the query had when it was signed.
    id: [u8; 2],
}

/// A message authentication code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mac {
    octets: [u8; MAC_BYTES_MAX],
    len: u8,
}

impl Mac {
    /// No octets.
    const NONE: Self = Self { octets: [0; MAC_BYTES_MAX], len: 0 };

    /// The code of these octets; none when they are more than any code has.
    pub(super) fn new(octets: &[u8]) -> Option<Self> {
        let mut mac = Self { len: octets.len() as u8, ..Self::NONE };
        mac.octets.get_mut(..octets.len())?.copy_from_slice(octets);
        Some(mac)
    }

    /// The octets of the code.
    fn as_octets(&self) -> &[u8] {
        &self.octets[..usize::from(self.len)]
    }
}

impl QuerySignature {
    /// The key that the client has proven to have: that of a sound signature.
    #[must_use]
    pub fn proven_key(&self) -> Option<KeyId> {
        self.key.filter(|_| self.check == SignatureCheck::Sound)
    }

    /// The signature by a key that is not known.
    pub(super) const UNKNOWN_KEY: Self = Self {
        check: SignatureCheck::UnknownKey,
        key: None,
        mac: Mac::NONE,
        time_secs: 0,
        fudge_secs: 0,
        id: [0; 2],
    };

    /// The signature in a record, which is still to be checked.
    pub(super) fn of(key: &Key, parts: &Parts<'_>) -> Option<Self> {
        let time = parts.time.first_chunk::<TIME_BYTES>()?;
        let word = u64::from_be_bytes(*time);
        Some(Self {
            check: SignatureCheck::WrongMac,
            key: Some(key.id()),
            mac: Mac::new(parts.mac)?,
            time_secs: word >> 16,
            fudge_secs: word as u16,
            id: parts.id,
        })
    }

    /// Whether a time is as near to that of the signature as its fudge says.
    pub(super) fn is_in_time(&self, now_secs: u64) -> bool {
        self.time_secs.abs_diff(now_secs) <= u64::from(self.fudge_secs)
    }

    /// Takes the signature for one that comes too early or too late if it differs by more than so
    /// many seconds from the time of the server, whatever the client says.
    pub fn narrow(&mut self, fudge_secs: u16, now_secs: u64) {
        self.fudge_secs = self.fudge_secs.min(fudge_secs);
        if self.check == SignatureCheck::Sound && !self.is_in_time(now_secs) {
            self.check = SignatureCheck::WrongTime;
        }
    }

    /// Returns the octets of the MAC.
    #[must_use]
    pub fn mac(&self) -> &[u8] {
        self.mac.as_octets()
    }

    /// Returns the time of the signature, seconds since 1970.
    #[must_use]
    pub fn time_secs(&self) -> u64 {
        self.time_secs
    }

    /// Octets that the signature of a reply takes at most.
    #[must_use]
    pub fn reply_bytes(&self, key: &Key) -> usize {
        record_bytes(key) + OTHER_BYTES_MAX
    }

    /// Signs the reply of `len` octets in `buffer`; returns its length then, or none if there is no
    /// room for the signature.
    #[must_use]
    pub fn sign(&self, key: &Key, buffer: &mut [u8], len: usize, now_secs: u64) -> Option<usize> {
        let error = self.check.error().unwrap_or(Rcode::NOERROR);
        let mut server_time = [0; OTHER_BYTES_MAX];
        server_time.copy_from_slice(&now_secs.to_be_bytes()[2..]);
        let (time_secs, other): (_, &[u8]) = match self.check {
            // The client learns how far its clock is off (rfc8945#5.2.3).
            SignatureCheck::WrongTime => (self.time_secs, &server_time),
            _ => (now_secs, &[]),
        };
        let time = time_and_fudge(time_secs);
        let mut digest = Digest::begin_behind(key, &self.mac, self.id);
        digest.message(buffer.get(..len)?, 0);
        digest.variables(key, &time, error, other);
        append(key, buffer, len, &digest.finish(), (&time, self.id, error, other))
    }
}

/// Signs the messages of a reply that has several, each over the signature of the former one
/// (rfc8945#5.3.1).
#[derive(Clone, Debug)]
pub struct StreamSigner {
    /// The key that the client has.
    key: Arc<Key>,
    /// The signature of the query, then of the last message.
    former: Mac,
    /// The id of the messages.
    id: [u8; 2],
    /// Whether no message was signed yet.
    is_first: bool,
}

impl StreamSigner {
    /// Signs the reply to a query with a sound signature by `key`.
    #[must_use]
    pub fn new(key: Arc<Key>, query: &QuerySignature) -> Self {
        Self { key, former: query.mac, id: query.id, is_first: true }
    }

    /// Returns the key that the client has.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Octets that a signature takes.
    #[must_use]
    pub fn record_bytes(&self) -> usize {
        record_bytes(&self.key)
    }

    /// Signs the next message, of `len` octets in `buffer`; returns its length then, or none if
    /// there is no room for the signature.
    #[must_use]
    pub fn sign(&mut self, buffer: &mut [u8], len: usize, now_secs: u64) -> Option<usize> {
        let time = time_and_fudge(now_secs);
        let mut digest = Digest::begin_behind(&self.key, &self.former, self.id);
        digest.message(buffer.get(..len)?, 0);
        match std::mem::take(&mut self.is_first) {
            true => digest.variables(&self.key, &time, Rcode::NOERROR, &[]),
            false => digest.octets(&time),
        }
        let mac = digest.finish();
        self.former = Mac::new(mac.as_ref())?;
        append(&self.key, buffer, len, &mac, (&time, self.id, Rcode::NOERROR, &[]))
    }
}

/// A digest under way: HMAC over what a signature covers (rfc8945#4.3).
#[derive(Clone)]
pub(super) struct Digest {
    context: hmac::Context,
    /// The id that the message had when it was signed.
    pub(super) id: [u8; 2],
}

impl Digest {
    /// The digest of a query with this id.
    pub(super) fn begin(key: &Key, id: [u8; 2]) -> Self {
        Self { context: hmac::Context::with_key(&key.hmac), id }
    }

    /// The digest of a message with this id that follows one with a MAC.
    pub(super) fn begin_behind(key: &Key, former: &Mac, id: [u8; 2]) -> Self {
        let mut digest = Self::begin(key, id);
        digest.octets(&u16::from(former.len).to_be_bytes());
        digest.octets(former.as_octets());
        digest
    }

    /// Adds octets.
    pub(super) fn octets(&mut self, octets: &[u8]) {
        self.context.update(octets);
    }

    /// Adds a message up to its TSIG record, which its header counts if `signatures` is 1.
    pub(super) fn message(&mut self, message: &[u8], signatures: u16) {
        let Some((header, rest)) = message.split_first_chunk::<HEADER_BYTES>() else { return };
        let mut header = *header;
        header[..2].copy_from_slice(&self.id);
        let count = u16::from_be_bytes([header[10], header[11]]).saturating_sub(signatures);
        header[10..].copy_from_slice(&count.to_be_bytes());
        self.octets(&header);
        self.octets(rest);
    }

    /// Adds what the TSIG record itself says.
    pub(super) fn variables(&mut self, key: &Key, time: &[u8], error: Rcode, other: &[u8]) {
        self.octets(key.name().as_wire());
        self.octets(&Class::ANY.0.to_be_bytes());
        self.octets(&[0; 4]); // TTL
        self.octets(key.algorithm().wire_name());
        self.octets(time);
        self.octets(&error.0.to_be_bytes());
        self.octets(&(other.len() as u16).to_be_bytes());
        self.octets(other);
    }

    /// Returns the MAC.
    pub(super) fn finish(self) -> hmac::Tag {
        self.context.sign()
    }
}

/// The time of a signature, and how far the client's may differ.
pub(super) fn time_and_fudge(secs: u64) -> [u8; TIME_BYTES] {
    (secs << 16 | u64::from(FUDGE_SECS)).to_be_bytes()
}

/// Octets of a record without other data.
pub(super) fn record_bytes(key: &Key) -> usize {
    let names = key.name().as_wire().len() + key.algorithm().wire_name().len();
    names + RECORD_FIXED_BYTES + FIXED_BYTES + key.algorithm().mac_bytes()
}

/// Appends the TSIG record to a message of `len` octets, and counts it; returns the length then.
pub(super) fn append(
    key: &Key,
    buffer: &mut [u8],
    len: usize,
    mac: &hmac::Tag,
    (time, id, error, other): (&[u8; TIME_BYTES], [u8; 2], Rcode, &[u8]),
) -> Option<usize> {
    let (mac, algorithm) = (mac.as_ref(), key.algorithm().wire_name());
    let data_bytes = (algorithm.len() + FIXED_BYTES + mac.len() + other.len()) as u16; // < 200
    let pieces: [&[u8]; 13] = [
        key.name().as_wire(),
        &Type::TSIG.0.to_be_bytes(),
        &Class::ANY.0.to_be_bytes(),
        &[0; 4], // TTL
        &data_bytes.to_be_bytes(),
        algorithm,
        time,
        &(mac.len() as u16).to_be_bytes(),
        mac,
        &id,
        &error.0.to_be_bytes(),
        &(other.len() as u16).to_be_bytes(),
        other,
    ];
    let end = len + pieces.iter().map(|piece| piece.len()).sum::<usize>();
    let mut room = buffer.get_mut(len..end)?;
    for piece in pieces {
        let (place, rest) = room.split_at_mut_checked(piece.len())?;
        place.copy_from_slice(piece);
        room = rest;
    }
    let count = buffer.get_mut(10..HEADER_BYTES)?;
    let signed = u16::from_be_bytes([count[0], count[1]]).saturating_add(1);
    count.copy_from_slice(&signed.to_be_bytes());
    Some(end)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{Algorithm, KeyRing, SignatureRecord};
    use super::*;
    use crate::query::{Fault, Query};

    const NOW: u64 = 1_700_000_000;

    /// A key of this algorithm.
    fn key(algorithm: Algorithm) -> Key {
        Key::new(&"Key.Example".parse().unwrap(), algorithm, b"0123456789abcdef")
    }

    /// A query for `a A` that is signed at a time, with a MAC of so many octets at most.
    fn query(key: &Key, at_secs: u64, mac_bytes_max: usize) -> Vec<u8> {
        let mut message = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01".to_vec();
        let len = message.len();
        let (id, time) = ([0x12, 0x34], time_and_fudge(at_secs));
        let mut digest = Digest::begin(key, id);
        digest.message(&message, 0);
        digest.variables(key, &time, Rcode::NOERROR, &[]);
        let mac = digest.finish();
        message.resize(512, 0);
        let end = append(key, &mut message, len, &mac, (&time, id, Rcode::NOERROR, &[])).unwrap();
        message.truncate(end);
        let cut = mac.as_ref().len().saturating_sub(mac_bytes_max);
        if cut > 0 {
            let mac_at = end - 6 - mac.as_ref().len();
            message.drain(mac_at + mac_bytes_max..end - 6);
            message[mac_at - 1] -= cut as u8;
            let len_at = mac_at - 2 - TIME_BYTES - key.algorithm().wire_name().len() - 1;
            message[len_at] -= cut as u8;
        }
        message
    }

    /// What a server with `keys` says of a message, received in `NOW`.
    fn check(keys: &[Key], message: &[u8]) -> Option<QuerySignature> {
        let Err((_, Fault::Signed(at))) = Query::parse(message) else { panic!("not signed") };
        let ring = KeyRing::new(keys.iter().cloned());
        SignatureRecord::default().verify(message, usize::from(at), &ring, NOW)
    }

    /// The check that the server makes of a message.
    fn result(keys: &[Key], message: &[u8]) -> Option<SignatureCheck> {
        check(keys, message).map(|signature| signature.check)
    }

    #[test]
    fn a_signature_is_sound_with_each_algorithm_and_wrong_when_any_octet_differs() {
        for algorithm in Algorithm::ALL {
            let keys = [key(algorithm)];
            let message = query(&keys[0], NOW, 64);
            assert_eq!(result(&keys, &message), Some(SignatureCheck::Sound), "{algorithm:?}");
            for at in [3, 13, message.len() - 7] {
                let mut wrong = message.clone();
                wrong[at] ^= 0x40;
                assert_eq!(result(&keys, &wrong), Some(SignatureCheck::WrongMac), "{at}");
            }
            let mut with_other_id = message.clone();
            with_other_id[0] ^= 1;
            let same = result(&keys, &with_other_id);
            assert_eq!(same, Some(SignatureCheck::Sound), "forwarders may choose another id");
        }
    }

    #[test]
    fn the_signature_in_rfc8945_style_equals_one_that_was_computed_elsewhere() {
        // Python: hmac.new(b"0123456789abcdef", message + variables, sha256).hexdigest()
        let message = query(&key(Algorithm::HmacSha256), 0x0102_0304_0506, 64);
        let mac = &message[message.len() - 6 - 32..message.len() - 6];
        let hex: String = mac.iter().map(|octet| format!("{octet:02x}")).collect();
        assert_eq!(hex, "0758249e00cd69f146e4551a7479c5536b1524e8422ad7b46a8aecd480ac7a1f");
    }

    #[test]
    fn a_key_is_known_by_its_name_and_its_algorithm() {
        let message = query(&key(Algorithm::HmacSha256), NOW, 64);
        let unknown = Some(SignatureCheck::UnknownKey);
        assert_eq!(result(&[], &message), unknown);
        assert_eq!(result(&[key(Algorithm::HmacSha512)], &message), unknown);
        let other = Key::new(&"other".parse().unwrap(), Algorithm::HmacSha256, b"x");
        assert_eq!(result(&[other], &message), unknown);
    }

    #[test]
    fn a_server_may_let_the_clocks_differ_by_less_than_the_client_says() {
        let keys = [key(Algorithm::HmacSha256)];
        for (at, fudge, expected) in [
            (NOW - 100, 300, SignatureCheck::Sound),
            (NOW - 100, 100, SignatureCheck::Sound),
            (NOW - 100, 99, SignatureCheck::WrongTime),
            (NOW + 100, 99, SignatureCheck::WrongTime),
        ] {
            let mut signature = check(&keys, &query(&keys[0], at, 64)).unwrap();
            signature.narrow(fudge, NOW);
            assert_eq!(signature.check, expected, "{at} {fudge}");
            signature.narrow(u16::MAX, NOW);
            assert_eq!(signature.check, expected, "it is never made wider");
        }
    }

    #[test]
    fn the_clocks_may_differ_by_the_fudge_and_no_more() {
        let keys = [key(Algorithm::HmacSha256)];
        for (at, expected) in [
            (NOW - 300, SignatureCheck::Sound),
            (NOW + 300, SignatureCheck::Sound),
            (NOW - 301, SignatureCheck::WrongTime),
            (NOW + 301, SignatureCheck::WrongTime),
        ] {
            assert_eq!(result(&keys, &query(&keys[0], at, 64)), Some(expected));
        }
    }

    #[test]
    fn a_truncated_signature_is_refused_after_it_is_known_to_be_the_keys() {
        let keys = [key(Algorithm::HmacSha256)];
        let truncated = query(&keys[0], NOW, 16);
        assert_eq!(result(&keys, &truncated), Some(SignatureCheck::Truncated));
        let mut wrong = truncated.clone();
        wrong[13] ^= 1;
        assert_eq!(result(&keys, &wrong), Some(SignatureCheck::WrongMac));
        assert_eq!(result(&keys, &query(&keys[0], NOW, 15)), None, "less than half");
        let keys = [key(Algorithm::HmacSha1)];
        assert_eq!(result(&keys, &query(&keys[0], NOW, 10)), Some(SignatureCheck::Truncated));
        assert_eq!(result(&keys, &query(&keys[0], NOW, 9)), None, "less than ten octets");
    }

    #[test]
    fn messages_of_a_stream_are_signed_one_over_the_other() {
        let keys = [key(Algorithm::HmacSha256)];
        let signature = check(&keys, &query(&keys[0], NOW, 64)).unwrap();
        let mut signer = StreamSigner::new(Arc::new(keys[0].clone()), &signature);
        let (mut former, mut macs) = (signature.mac, Vec::new());
        for number in 0..3 {
            let mut buffer = vec![0; 512];
            buffer[..2].copy_from_slice(&[0x12, 0x34]);
            buffer[11] = number;
            let end = signer.sign(&mut buffer, HEADER_BYTES, NOW).unwrap();
            assert_eq!((end, buffer[11]), (HEADER_BYTES + signer.record_bytes(), number + 1));
            let mac = &buffer[end - 6 - 32..end - 6];
            let mut digest = Digest::begin_behind(&keys[0], &former, [0x12, 0x34]);
            digest.message(&buffer[..HEADER_BYTES], 1);
            match number {
                0 => {
                    digest.variables(&keys[0], &time_and_fudge(NOW), Rcode::NOERROR, &[]);
                }
                _ => digest.octets(&time_and_fudge(NOW)),
            }
            assert_eq!(digest.finish().as_ref(), mac, "message {number}");
            former = Mac::new(mac).unwrap();
            macs.push(former);
        }
        assert_ne!(macs[1].as_octets(), macs[2].as_octets());
    }

    #[test]
    fn a_reply_without_room_for_its_signature_has_none() {
        let keys = [key(Algorithm::HmacSha256)];
        let signature = check(&keys, &query(&keys[0], NOW, 64)).unwrap();
        let mut buffer = vec![0; 64];
        assert_eq!(signature.sign(&keys[0], &mut buffer, 20, NOW), None);
        assert_eq!(buffer[11], 0, "it is not counted");
    }
}
