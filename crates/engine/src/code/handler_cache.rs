//! The handler cache: replies of code that are given again without it.
//!
//! It belongs to the code in force, so that other code, put into force later, begins anew. A reply
//! that depends on the client is kept for a [`Variant`] of the question, which is made of the
//! client's address or network and of the network that it tells, as far as the reply's scope goes.
//!
//! # Invariants
//! - What a reply is said to depend on is part of its key, the scope itself included: a reply of
//!   scope 24 to a resolver that tells 16 bits is not that of one that tells 24 (rfc7871#7.3.1).
//! - A look-up tries what the replies of the route are said to depend on, and nothing else: at most
//!   one key for each [`Vary`] and each length of a prefix.

use super::dependence::{Dependence, NO_SCOPE};
use super::handlers::Handlers;
use super::keep::Vary;
use crate::answer::Answer;
use crate::ask::Ask;
use crate::kept_query;
use crate::upstream_options::hash;
use crate::worker::Worker;
use std::net::IpAddr;
use zonda_cache::{Key, Kind, Lifetime, VARIANT_BYTES_MAX, Variant};
use zonda_wire::Rcode;
use zonda_wire::query::flag;

/// Where a flags word has the lower four bits of the response code.
const RCODE: u16 = 0x000f;
/// The bits of a kept answer's flags.
const FLAGS: u16 = flag::AA | flag::AD;

/// Writes the answer that is kept for a query, if there is one.
pub fn lookup(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    (handlers, place): (&Handlers, usize),
) -> Option<Rcode> {
    let now_secs = ask.now.monotonic_secs();
    for dependence in handlers.dependences.get(place)?.iter() {
        let variant = variant_of(ask, dependence);
        let key = variant.key(ask);
        let found = handlers.cache.find(&key, now_secs, &mut worker.body);
        let Some(hit) = found.filter(|hit| !hit.is_stale) else { continue };
        if kept_query::may_end_with_alias(ask.query.qtype, &worker.body) {
            kept_query::keep(ask, answer, worker);
        }
        let body = &worker.body[..hit.body_bytes.min(worker.body.len())];
        answer.flags |= hit.flags & FLAGS;
        answer.ede = hit.ede; // without its text, which is not kept
        answer.note_code(match dependence {
            Dependence { scope: Some(scope), .. } => scope,
            Dependence { vary: Vary::Nothing, scope: None } => 0,
            _ => ask.told_bits(),
        });
        if answer.reply.append_body([body], hit.counts).is_err() {
            answer.flags |= flag::TC;
        }
        return Some(Rcode(hit.flags & RCODE));
    }
    None
}

/// Keeps the answer that was just written for so many seconds, as code wants it. A cut one, and a
/// failure, is not kept.
pub fn insert(
    ask: &Ask<'_>,
    answer: &Answer<'_>,
    handlers: &Handlers,
    (ttl_secs, dependence): (u32, Dependence),
    rcode: Rcode,
) {
    let Some((place, _)) = handlers.routes.find(ask.name, ask.query.qtype) else { return };
    let kind = match rcode {
        Rcode::NXDOMAIN => Kind::NxDomain,
        Rcode::NOERROR if answer.reply.counts()[0] == 0 => Kind::NoData,
        Rcode::NOERROR => Kind::Positive,
        _ => return,
    };
    if answer.flags & flag::TC != 0 || ttl_secs == 0 {
        return;
    }
    let variant = variant_of(ask, dependence);
    let key = variant.key(ask);
    let flags = answer.flags & FLAGS | rcode.0 & RCODE;
    let (counts, body) = (answer.reply.counts(), answer.reply.body());
    let cached = zonda_cache::Answer { kind, flags, onward: None, ede: answer.ede, counts, body };
    let now_secs = ask.now.monotonic_secs_nearest();
    let lifetime = Lifetime { now_secs, ttl_secs, stale_secs: 0 };
    // An answer too large for the cache is made each time.
    if handlers.cache.insert(&key, &cached, lifetime).is_ok() {
        handlers.dependences[place].insert(dependence);
    }
}

/// Returns the variant of the question that a reply to this client is kept for.
///
/// Code may have looked at the address of the client and at the network that it tells: clients that
/// differ in either have replies of their own, so that none gets the reply for another, or has
/// another get its own, by what it tells. A scope says how much of the network that is told counts,
/// and where code has not looked at the client, of the address of one that tells none.
fn variant_of(ask: &Ask<'_>, dependence: Dependence) -> ClientVariant {
    let mut variant = ClientVariant { octets: [0; VALUE_BYTES], hash: 0 };
    let Dependence { vary, scope } = dependence;
    let address = ask.peer.address.ip();
    let own_bits = match (vary, address) {
        (Vary::Nothing, _) => None,
        (Vary::Client, _) => Some(128),
        (Vary::Subnet, IpAddr::V4(_)) => Some(24),
        (Vary::Subnet, IpAddr::V6(_)) => Some(56),
    };
    if own_bits.is_none() && scope.is_none() {
        return variant;
    }
    let told = ask.client_subnet.and_then(|option| option.subnet());
    variant.octets[0] = 1 + vary as u8; // or octets of zero would be those of a reply for all
    variant.octets[1] = scope.unwrap_or(NO_SCOPE);
    let (own, of_scope) = variant.octets[2..].split_at_mut(NETWORK_BYTES);
    if let Some(bits) = own_bits {
        write_network(own, address, bits);
    }
    match (told, scope) {
        (Some(told), _) => {
            let bits = told.prefix_len.min(scope.unwrap_or(u8::MAX));
            write_network(of_scope, told.address, bits);
        }
        (None, Some(scope)) if own_bits.is_none() => write_network(own, address, scope),
        (None, _) => {}
    }
    variant.hash = hash(ask.snapshot.zones.seed(), &variant.octets);
    variant
}

/// The facts about a client that a reply of code depends on besides its question.
struct ClientVariant {
    /// How the reply varies, its scope, the client's network, and the client subnet of its query;
    /// all zero for a reply to all clients.
    octets: [u8; VALUE_BYTES],
    /// A hash of the octets; 0 for a reply to all clients.
    hash: u64,
}

/// Octets of a network: the family, the number of bits, and the address.
const NETWORK_BYTES: usize = 1 + 1 + 16;
/// Octets of a variant's value.
const VALUE_BYTES: usize = 1 + 1 + 2 * NETWORK_BYTES;
const _: () = assert!(VALUE_BYTES <= VARIANT_BYTES_MAX);

impl ClientVariant {
    /// The key of a question's reply. Code may have asked what this server answers, which depends
    /// on the view.
    fn key<'n>(&'n self, ask: &Ask<'n>) -> Key<'n> {
        let Ask { query, name, .. } = *ask;
        let value = if self.octets[0] == 0 { &[] } else { &self.octets[..] };
        Key {
            name: name.as_wire(),
            hash: name.hash(0),
            qtype: query.qtype,
            qclass: query.qclass,
            source: ask.snapshot.view,
            dnssec_ok: query.dnssec_ok(),
            checking_disabled: query.flags & flag::CD != 0,
            variant: Variant { hash: self.hash, value },
        }
    }
}

/// Writes the network of the first `bits` bits of an address.
fn write_network(out: &mut [u8], address: IpAddr, bits: u8) {
    let masked = |number: u128, width: u32| {
        let gone = width.saturating_sub(bits.into());
        number.checked_shr(gone).map_or(0, |number| number << gone)
    };
    let (family, number) = match address {
        IpAddr::V4(address) => (4, masked(address.to_bits().into(), 32)),
        IpAddr::V6(address) => (6, masked(address.to_bits(), 128)),
    };
    out[..2].copy_from_slice(&[family, bits]);
    out[2..NETWORK_BYTES].copy_from_slice(&number.to_be_bytes());
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_network_holds_the_first_bits_of_an_address_alone() {
        let network = |address: &str, bits| {
            let mut octets = [0; NETWORK_BYTES];
            write_network(&mut octets, address.parse().unwrap(), bits);
            octets
        };
        assert_eq!(network("192.0.2.65", 32)[14..], [192, 0, 2, 65]);
        assert_eq!(network("192.0.2.255", 24), network("192.0.2.1", 24));
        assert_ne!(network("192.0.3.1", 24), network("192.0.2.1", 24));
        assert_eq!(network("192.0.2.1", 0)[2..], [0; 16]);
        assert_eq!(network("2001:db8:0:ff::1", 56), network("2001:db8::", 56));
        assert_ne!(network("2001:db8:0:100::1", 56), network("2001:db8::", 56));
        assert_ne!(network("::", 24), network("0.0.0.0", 24), "families differ");
    }
}
