//! Questions and answers that tests can make from a number and recognise again.

#![allow(dead_code, clippy::unwrap_used)]

use std::hash::{DefaultHasher, Hasher};
use zonda_cache::{Answer, Cache, Hit, Key, Kind, Lifetime};
use zonda_wire::{Class, Name, Type};

/// Returns a hash of octets, the same in every run.
pub fn hash(octets: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(octets);
    hasher.finish()
}

/// Returns a name in wire form.
pub fn name(text: &str) -> Vec<u8> {
    text.parse::<Name>().unwrap().as_wire().to_vec()
}

/// Returns the question for the A records of a name.
pub fn key(name: &[u8]) -> Key<'_> {
    let (qtype, qclass) = (Type::A, Class::IN);
    let (dnssec_ok, checking_disabled) = (false, false);
    Key {
        name,
        hash: hash(name),
        qtype,
        qclass,
        source: 0,
        dnssec_ok,
        checking_disabled,
        variant: zonda_cache::Variant::default(),
    }
}

/// Returns a body of `records` address records with a TTL, whose data follow from `version`.
pub fn addresses(records: u16, ttl_secs: u32, version: u64) -> Vec<u8> {
    let mut body = Vec::new();
    for nth in 0..records {
        body.extend_from_slice(b"\xc0\x0c\0\x01\0\x01");
        body.extend_from_slice(&ttl_secs.to_be_bytes());
        body.extend_from_slice(b"\0\x04");
        let data = hash(&[version.to_le_bytes(), u64::from(nth).to_le_bytes()].concat());
        body.extend_from_slice(&data.to_le_bytes()[..4]);
    }
    body
}

/// Returns the answer with this body of addresses.
pub fn answer(body: &[u8]) -> Answer<'_> {
    let counts = [(body.len() / 16) as u16, 0, 0];
    Answer { kind: Kind::Positive, flags: 0, onward: None, ede: None, counts, body }
}

/// Fresh for a while, stale for ten times as long.
pub fn lifetime(now_secs: u32, ttl_secs: u32) -> Lifetime {
    Lifetime { now_secs, ttl_secs, stale_secs: 10 * ttl_secs }
}

/// Returns what is found, and the body that was copied.
pub fn find(cache: &Cache, key: &Key<'_>, now_secs: u32) -> Option<(Hit, Vec<u8>)> {
    let mut body = vec![0; 65_535];
    let hit = cache.find(key, now_secs, &mut body)?;
    body.truncate(hit.body_bytes);
    Some((hit, body))
}
