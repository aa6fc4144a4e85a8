//! Signatures as a client makes and checks them: of its query, and of each message of the reply.

use super::key::Key;
use super::record::is_equal;
use super::sign::{Digest, Mac, RECORD_FIXED_BYTES, append, record_bytes, time_and_fudge};
use super::{BADSIG, TIME_BYTES, has_valid_layout, split};
use crate::code::{Rcode, Type};
use crate::message::Reader;
use std::fmt;
use std::sync::Arc;

/// Most messages without a signature between two that have one (rfc8945#5.3.1).
const UNSIGNED_MAX: u32 = 99;

/// The signature of a reply that is received, message by message (rfc8945#5.3.1).
#[derive(Clone)]
pub struct ReplySignature {
    /// The key that both sides have.
    key: Arc<Key>,
    /// The digest of all messages since the last signature, behind that one.
    digest: Digest,
    /// Messages since the last signature.
    unsigned: u32,
    /// Whether no message was received yet.
    is_first: bool,
}

/// Why a message of a reply is not known to come from a holder of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureFault {
    /// The message is to be signed, and is not.
    Missing,
    /// The record is malformed, or not for the key and algorithm of the query.
    OtherKey,
    /// The signature is not the key's.
    WrongMac,
    /// The signature is truncated.
    Truncated,
    /// The clocks of the two sides differ by more than the server allows.
    WrongTime,
    /// The server says that the query's signature is wrong, by this error.
    Refused(Rcode),
}

impl fmt::Display for SignatureFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("a message that must be signed is not signed"),
            Self::OtherKey => f.write_str("a message is not signed with the key of the query"),
            Self::WrongMac => f.write_str("the signature of a message is wrong"),
            Self::Truncated => f.write_str("the signature of a message is truncated"),
            Self::WrongTime => f.write_str("the clocks differ: compare the time on both sides"),
            Self::Refused(Rcode::BADKEY) => {
                f.write_str("the server does not have the key with this algorithm (BADKEY)")
            }
            Self::Refused(error) if *error == BADSIG => {
                f.write_str("the server has another secret for the key (BADSIG)")
            }
            Self::Refused(Rcode::BADTIME) => {
                f.write_str("the clocks differ: compare the time on both sides (BADTIME)")
            }
            Self::Refused(error) => {
                write!(f, "the server refuses the signature: error {}", error.0)
            }
        }
    }
}

impl std::error::Error for SignatureFault {}

impl ReplySignature {
    /// Signs a query, which has no TSIG record yet; seconds since 1970. None when the query is no
    /// message, or too long for a signature.
    #[must_use]
    pub fn sign_query(key: Arc<Key>, query: &mut Vec<u8>, now_secs: u64) -> Option<Self> {
        let (id, len, time) = (*query.first_chunk()?, query.len(), time_and_fudge(now_secs));
        if len + record_bytes(&key) > usize::from(u16::MAX) {
            return None;
        }
        let mut digest = Digest::begin(&key, id);
        digest.message(query, 0);
        digest.variables(&key, &time, Rcode::NOERROR, &[]);
        let mac = digest.finish();
        query.resize(len + record_bytes(&key), 0);
        let end = append(&key, query, len, &mac, (&time, id, Rcode::NOERROR, &[]));
        query.truncate(end.unwrap_or(len));
        end?;
        let digest = Digest::begin_behind(&key, &Mac::new(mac.as_ref())?, id);
        Some(Self { key, digest, unsigned: 0, is_first: true })
    }

    /// Returns the key that both sides have.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Checks the next message of the reply, whose TSIG record begins at `at`, if it has one, and
    /// ends with it.
    ///
    /// # Errors
    /// When the message is not known to come from a holder of the key; nor are those behind it.
    pub fn check(
        &mut self,
        message: &[u8],
        at: Option<usize>,
        now_secs: u64,
    ) -> Result<(), SignatureFault> {
        let Some(at) = at else { return self.add_unsigned(message) };
        let mut reader = Reader { octets: message, at };
        let mut name = Vec::new();
        let rdata = reader.name_into(&mut name).and_then(|()| {
            reader.take(RECORD_FIXED_BYTES)?;
            message.get(reader.at..)
        });
        let parts = rdata.and_then(split).ok_or(SignatureFault::OtherKey)?;
        if parts.error != Rcode::NOERROR && parts.mac.is_empty() {
            return Err(SignatureFault::Refused(parts.error)); // it proves nothing, and says so
        }
        let key = &self.key;
        let is_keys = name.eq_ignore_ascii_case(key.name().as_wire())
            && parts.algorithm.eq_ignore_ascii_case(key.algorithm().wire_name());
        if !is_keys {
            return Err(SignatureFault::OtherKey);
        }
        if parts.mac.len() != key.algorithm().mac_bytes() {
            return Err(SignatureFault::Truncated);
        }
        let time = parts.time.first_chunk::<TIME_BYTES>().ok_or(SignatureFault::OtherKey)?;
        let mac = Mac::new(parts.mac).ok_or(SignatureFault::Truncated)?;
        let next = Digest::begin_behind(key, &mac, parts.id);
        let mut digest = std::mem::replace(&mut self.digest, next);
        digest.id = parts.id;
        digest.message(message.get(..at).unwrap_or_default(), 1);
        match std::mem::take(&mut self.is_first) {
            true => digest.variables(key, parts.time, parts.error, parts.other),
            false => digest.octets(parts.time),
        }
        if !is_equal(digest.finish().as_ref(), parts.mac) {
            return Err(SignatureFault::WrongMac);
        }
        if parts.error != Rcode::NOERROR {
            return Err(SignatureFault::Refused(parts.error));
        }
        let word = u64::from_be_bytes(*time);
        if now_secs.abs_diff(word >> 16) > word & 0xffff {
            return Err(SignatureFault::WrongTime);
        }
        self.unsigned = 0;
        Ok(())
    }

    /// Adds a message without a signature, which that of a later one covers.
    fn add_unsigned(&mut self, message: &[u8]) -> Result<(), SignatureFault> {
        self.unsigned += 1;
        if self.is_first || self.unsigned > UNSIGNED_MAX {
            return Err(SignatureFault::Missing);
        }
        self.digest.id = *message.first_chunk().ok_or(SignatureFault::Missing)?;
        self.digest.message(message, 0);
        Ok(())
    }

    /// Checks a reply of one message. It may be a forged one, behind which the server's comes: what
    /// is checked next is checked as if it had not come.
    ///
    /// # Errors
    /// When the reply is not known to come from a holder of the key.
    pub fn check_reply(&self, reply: &[u8], now_secs: u64) -> Result<(), SignatureFault> {
        let mut signature = self.clone();
        signature.check(reply, signature_at(reply), now_secs)?;
        signature.finish()
    }

    /// Checks that the last message of the reply was signed.
    ///
    /// # Errors
    /// When it was not.
    pub fn finish(&self) -> Result<(), SignatureFault> {
        match self.is_first || self.unsigned > 0 {
            true => Err(SignatureFault::Missing),
            false => Ok(()),
        }
    }
}

/// Where the TSIG record of a message begins, if that is the last record, behind which nothing
/// follows.
fn signature_at(message: &[u8]) -> Option<usize> {
    let mut reader = Reader { octets: message, at: 4 };
    let [questions, answers, authorities, additionals] =
        [reader.u16()?, reader.u16()?, reader.u16()?, reader.u16()?].map(u32::from);
    let (mut name, mut last) = (Vec::new(), None);
    for number in 0..questions + answers + authorities + additionals {
        let at = reader.at;
        name.clear();
        reader.name_into(&mut name)?;
        let [high, low, ..] = *reader.take(4)? else { return None };
        if number >= questions {
            let behind_type = message.get(reader.at - 2..)?;
            reader.take(4)?;
            let len = reader.u16()?;
            reader.take(usize::from(len))?;
            let is_signature = [high, low] == Type::TSIG.0.to_be_bytes();
            last = (is_signature && has_valid_layout(behind_type)).then_some(at);
        }
    }
    last.filter(|_| additionals > 0 && reader.at == message.len())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{Algorithm, KeyRing, SignatureCheck, SignatureRecord, StreamSigner};
    use super::*;
    use crate::query::{Fault, HEADER_BYTES, Query};

    const NOW: u64 = 1_700_000_000;

    fn key(secret: &[u8]) -> Arc<Key> {
        Arc::new(Key::new(&"key.example".parse().unwrap(), Algorithm::HmacSha256, secret))
    }

    /// A client that has sent a signed query, and the server that signs the reply.
    fn exchange(key: &Arc<Key>) -> (ReplySignature, StreamSigner) {
        let mut query = b"\x12\x34\0\0\0\x01\0\0\0\0\0\0\x01a\0\0\xfc\0\x01".to_vec();
        let client = ReplySignature::sign_query(Arc::clone(key), &mut query, NOW).unwrap();
        let Err((_, Fault::Signed(at))) = Query::parse(&query) else { panic!("not signed") };
        let ring = KeyRing::new([Key::clone(key)]);
        let mut record = SignatureRecord::default();
        let signature = record.verify(&query, usize::from(at), &ring, NOW).unwrap();
        assert_eq!(signature.check, SignatureCheck::Sound);
        (client, StreamSigner::new(Arc::clone(key), &signature))
    }

    /// A message with a number in place of content.
    fn message(number: u8) -> Vec<u8> {
        let mut message = b"\x12\x34\x84\0\0\0\0\0\0\0\0\0".to_vec();
        message.push(number);
        message
    }

    /// The message with a signature.
    fn signed(signer: &mut StreamSigner, number: u8) -> Vec<u8> {
        let mut octets = message(number);
        let len = octets.len();
        octets.resize(512, 0);
        let end = signer.sign(&mut octets, len, NOW).unwrap();
        octets.truncate(end);
        octets
    }

    const AT: Option<usize> = Some(HEADER_BYTES + 1);

    #[test]
    fn each_message_is_checked_over_the_former_ones_signature() {
        let key = key(b"secret");
        let (mut client, mut server) = exchange(&key);
        assert_eq!(client.finish(), Err(SignatureFault::Missing));
        for number in 0..3 {
            assert_eq!(client.check(&signed(&mut server, number), AT, NOW), Ok(()));
            assert_eq!(client.finish(), Ok(()));
        }
        let lost = signed(&mut server, 3);
        let behind = signed(&mut server, 4);
        assert_eq!(client.check(&behind, AT, NOW), Err(SignatureFault::WrongMac), "{lost:?}");
    }

    #[test]
    fn what_is_not_the_keys_is_refused() {
        let key_a = key(b"secret");
        let (mut client, _) = exchange(&key_a);
        assert_eq!(client.check(&message(0), None, NOW), Err(SignatureFault::Missing));
        let (mut client, mut server) = exchange(&key_a);
        let mut wrong = signed(&mut server, 0);
        wrong[3] ^= 1;
        assert_eq!(client.check(&wrong, AT, NOW), Err(SignatureFault::WrongMac));
        let (mut client, mut server) = exchange(&key_a);
        let late = client.check(&signed(&mut server, 0), AT, NOW + 301);
        assert_eq!(late, Err(SignatureFault::WrongTime));
        let (mut client, mut server) = exchange(&key_a);
        let octets = signed(&mut server, 0);
        for end in HEADER_BYTES + 1..octets.len() {
            assert!(client.check(&octets[..end], AT, NOW).is_err(), "{end}");
        }
    }

    #[test]
    fn ninety_nine_messages_between_two_signatures_need_none_and_the_last_needs_one() {
        let key = key(b"secret");
        let (mut client, mut server) = exchange(&key);
        assert_eq!(client.check(&signed(&mut server, 0), AT, NOW), Ok(()));
        for number in 1..=99 {
            assert_eq!(client.check(&message(number), None, NOW), Ok(()), "{number}");
        }
        assert_eq!(client.finish(), Err(SignatureFault::Missing));
        assert_eq!(client.check(&message(100), None, NOW), Err(SignatureFault::Missing));
    }

    #[test]
    fn a_signature_covers_the_messages_without_one_before_it() {
        let key = key(b"secret");
        for changed in [false, true] {
            let (mut client, mut server) = exchange(&key);
            let first = signed(&mut server, 0);
            assert_eq!(client.check(&first, AT, NOW), Ok(()));
            let mac = Mac::new(&first[first.len() - 6 - 32..first.len() - 6]).unwrap();
            let mut digest = Digest::begin_behind(&key, &mac, [0x12, 0x34]);
            digest.message(&message(1), 0);
            digest.message(&message(2), 0);
            let time = time_and_fudge(NOW);
            digest.octets(&time);
            let mut last = message(2);
            let len = last.len();
            last.resize(512, 0);
            let parts = (&time, [0x12, 0x34], Rcode::NOERROR, &[][..]);
            let end = append(&key, &mut last, len, &digest.finish(), parts).unwrap();
            last.truncate(end);
            assert_eq!(client.check(&message(1 + 7 * u8::from(changed)), None, NOW), Ok(()));
            let expected = if changed { Err(SignatureFault::WrongMac) } else { Ok(()) };
            assert_eq!(client.check(&last, AT, NOW), expected);
        }
    }

    /// A query for `a A`, with a signature of a time, and what its reply is checked with.
    fn query(key: &Arc<Key>, at_secs: u64) -> (Vec<u8>, ReplySignature) {
        let mut message = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01".to_vec();
        let client = ReplySignature::sign_query(Arc::clone(key), &mut message, at_secs).unwrap();
        (message, client)
    }

    /// Octets of a reply in front of its TSIG record.
    const REPLY_BYTES: usize = 19;

    /// The reply of a server that has a key to a query that it has in `NOW`.
    fn reply(key: &Key, query: &[u8]) -> Vec<u8> {
        let Err((_, Fault::Signed(at))) = Query::parse(query) else { panic!("not signed") };
        let (ring, mut record) = (KeyRing::new([key.clone()]), SignatureRecord::default());
        let signature = record.verify(query, usize::from(at), &ring, NOW).unwrap();
        let mut buffer = b"\x12\x34\x81\x80\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01".to_vec();
        buffer.resize(512, 0);
        let end = signature.sign(key, &mut buffer, REPLY_BYTES, NOW).unwrap();
        buffer.truncate(end);
        buffer
    }

    #[test]
    fn a_reply_is_checked_over_the_querys_signature_by_each_algorithm() {
        for algorithm in Algorithm::ALL {
            let key = Arc::new(Key::new(&"key.example".parse().unwrap(), algorithm, b"secret"));
            let (query_octets, client) = query(&key, NOW);
            let octets = reply(&key, &query_octets);
            assert_eq!(client.check_reply(&octets, NOW + 300), Ok(()));
            let late = client.check_reply(&octets, NOW + 301);
            assert_eq!(late, Err(SignatureFault::WrongTime));
            let (_, of_another) = query(&key, NOW - 1);
            assert_eq!(of_another.check_reply(&octets, NOW), Err(SignatureFault::WrongMac));
            let unsigned = client.check_reply(&octets[..REPLY_BYTES], NOW);
            assert_eq!(unsigned, Err(SignatureFault::Missing));
            for at in 0..octets.len() {
                let mut wrong = octets.clone();
                wrong[at] ^= 1;
                // The id of the message may be a forwarder's, and names have no case.
                if client.check_reply(&wrong, NOW).is_ok() {
                    assert!(at < 2, "octet {at}");
                }
            }
            assert_eq!(client.check_reply(&octets, NOW), Ok(()), "behind forged ones");
        }
    }

    #[test]
    fn a_reply_by_another_key_or_algorithm_is_not_the_servers() {
        let key_a = key(b"secret");
        let (query_octets, client) = query(&key_a, NOW);
        let octets = reply(&key_a, &query_octets);
        for (name, algorithm) in
            [("other.example", Algorithm::HmacSha256), ("key.example", Algorithm::HmacSha1)]
        {
            let other = Arc::new(Key::new(&name.parse().unwrap(), algorithm, b"secret"));
            let client = ReplySignature { key: other, ..client.clone() };
            assert_eq!(client.check_reply(&octets, NOW), Err(SignatureFault::OtherKey));
        }
    }

    #[test]
    fn an_error_that_is_told_without_a_signature_is_the_servers() {
        let (message, client) = query(&key(b"secret"), NOW);
        let mut record = SignatureRecord::default();
        record.reject(&message, REPLY_BYTES, Rcode::BADKEY).unwrap();
        let (owner, _, rdata) = record.rejection();
        let fixed = [&[0, 250, 0, 255, 0, 0, 0, 0, 0][..], &[rdata.len() as u8]].concat();
        let head = b"\x12\x34\x81\x89\0\x01\0\0\0\0\0\x01\x01a\0\0\x01\0\x01";
        let octets = [&head[..], owner, &fixed, rdata].concat();
        let refused = Err(SignatureFault::Refused(Rcode::BADKEY));
        assert_eq!(client.check_reply(&octets, NOW), refused);
    }

    #[test]
    fn a_reply_that_tells_badtime_is_signed_with_the_clients_time_and_has_the_servers() {
        let key = key(b"secret");
        let (message, client) = query(&key, NOW - 1000);
        let octets = reply(&key, &message);
        let refused = Err(SignatureFault::Refused(Rcode::BADTIME));
        assert_eq!(client.check_reply(&octets, NOW), refused);
        assert!(octets.ends_with(&[&[0, 6][..], &NOW.to_be_bytes()[2..]].concat()));
        let client_time = time_and_fudge(NOW - 1000);
        assert!(octets.windows(TIME_BYTES).any(|it| it == client_time));
    }

    #[test]
    fn a_query_that_is_too_long_for_a_signature_has_none() {
        for len in [65_535, 1] {
            let mut octets = vec![0; len];
            assert!(ReplySignature::sign_query(key(b"secret"), &mut octets, NOW).is_none());
            assert_eq!(octets.len(), len);
        }
    }
}
