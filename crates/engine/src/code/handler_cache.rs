//! Answers of code that are given again without it.
//!
//! Kept in a cache of the code's own, so that other code, put into force later, begins anew. What
//! depends on the client is kept under a name of its own: that of the question behind labels made
//! of the client's address and of the network that it tells.

use super::handlers::Handlers;
use super::keep::{Keep, Vary};
use crate::answer::Answer;
use crate::ask::Ask;
use crate::worker::Worker;
use std::fmt::{self, Write};
use std::iter;
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use zonda_cache::{Key, Kind, Lifetime};
use zonda_wire::name::NAME_BYTES_MAX;
use zonda_wire::query::{flag, option};
use zonda_wire::{ClientSubnet, Query, Rcode};
use zonda_zone::LookupName;

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
    let varies = handlers.varies.get(place).map_or(0, |varies| varies.load(Relaxed));
    let now_secs = ask.now.monotonic_secs();
    for vary in Vary::ALL.into_iter().filter(|vary| varies & (1 << *vary as u8) != 0) {
        let Some(name) = kept_under(ask, answer, vary) else { continue };
        let key = name.key(ask.query, ask.name);
        let found = handlers.cache.find(&key, now_secs, &mut worker.body);
        let Some(hit) = found.filter(|hit| !hit.is_stale) else { continue };
        let body = &worker.body[..hit.body_bytes.min(worker.body.len())];
        answer.flags |= hit.flags & FLAGS;
        answer.ede = hit.ede; // without its text, which is not kept
        if answer.reply.append_body([body, &[], &[]], hit.counts).is_err() {
            answer.flags |= flag::TC;
        }
        return Some(Rcode(hit.flags & RCODE));
    }
    None
}

/// Keeps the answer that was just written, as code wants it. A cut one, and a failure, is not kept.
pub fn insert(
    ask: &Ask<'_>,
    answer: &Answer<'_>,
    handlers: &Handlers,
    (keep, name): (Keep, &Named),
    rcode: Rcode,
) {
    let Some((place, _)) = handlers.routes.find(ask.name, ask.query.qtype) else { return };
    let kind = match rcode {
        Rcode::NXDOMAIN => Kind::NxDomain,
        Rcode::NOERROR if answer.reply.counts()[0] == 0 => Kind::NoData,
        Rcode::NOERROR => Kind::Positive,
        _ => return,
    };
    if answer.flags & flag::TC != 0 || keep.ttl_secs == 0 {
        return;
    }
    let key = name.key(ask.query, ask.name);
    let flags = answer.flags & FLAGS | rcode.0 & RCODE;
    let (counts, body) = (answer.reply.counts(), answer.reply.body());
    let cached = zonda_cache::Answer { kind, flags, ede: answer.ede, counts, body };
    let now_secs = ask.now.monotonic_secs_nearest();
    let lifetime = Lifetime { now_secs, ttl_secs: keep.ttl_secs, stale_secs: 0 };
    // An answer too large for the cache is made each time.
    if handlers.cache.insert(&key, &cached, lifetime).is_ok() {
        let bit = 1 << keep.vary as u8;
        if handlers.varies[place].load(Relaxed) & bit == 0 {
            handlers.varies[place].fetch_or(bit, Relaxed);
        }
    }
}

/// The name that an answer to a query is kept under, which must not be overwritten yet. Nothing if
/// there is no room for the label, or the client tells a network that is none.
pub fn kept_under(ask: &Ask<'_>, answer: &Answer<'_>, vary: Vary) -> Option<Named> {
    Named::new(ask, answer.reply.buffer(), vary)
}

/// The name that an answer is kept under, if it is not the question's.
pub struct Named {
    /// That name.
    name: Option<LookupName>,
    /// Tells it from names that are asked for, which anybody may give labels in front.
    source: u32,
}

impl Named {
    /// See [`kept_under`]. Code may have looked at the address of the client and at the network
    /// that it tells: whoever differs in either has an answer of his own, so that nobody gets one
    /// for others, or has others get his, by what he tells.
    fn new(ask: &Ask<'_>, message: &[u8], vary: Vary) -> Option<Self> {
        let address = ask.peer.address.ip();
        let bits = match (vary, address) {
            (Vary::Nothing, _) => return Some(Self { name: None, source: 0 }),
            (Vary::Client, _) => 128,
            (Vary::Subnet, IpAddr::V4(_)) => 24,
            (Vary::Subnet, IpAddr::V6(_)) => 56,
        };
        let mut options = ask.query.options(message);
        let told = match options.find(|(code, _)| *code == option::CLIENT_SUBNET) {
            Some((_, data)) => Some(ClientSubnet::parse(data)?),
            None => None,
        };
        let source = vary as u32 | u32::from(told.is_some()) << 2;
        let told = told.map(|told| (told.address, told.prefix_len));
        let mut wire = Wire { octets: [0; NAME_BYTES_MAX], len: 0 };
        for (address, bits) in iter::once((address, bits)).chain(told) {
            wire.push_label(address, bits).ok()?;
        }
        wire.push(ask.name.as_wire()).ok()?;
        let name = LookupName::new(&wire.octets[..wire.len], ask.snapshot.zones.seed());
        Some(Self { name: Some(name), source })
    }

    /// The key of a question.
    fn key<'n>(&'n self, query: &Query, name: &'n LookupName) -> Key<'n> {
        let name = self.name.as_ref().unwrap_or(name);
        Key {
            name: name.as_wire(),
            hash: name.hash(0),
            qtype: query.qtype,
            qclass: query.qclass,
            source: self.source,
            dnssec_ok: query.dnssec_ok(),
            checking_disabled: query.flags & flag::CD != 0,
        }
    }
}

/// A name in wire form that is being written.
struct Wire {
    octets: [u8; NAME_BYTES_MAX],
    len: usize,
}

impl Wire {
    /// Appends octets, if there is room for them.
    fn push(&mut self, octets: &[u8]) -> fmt::Result {
        let end = self.len + octets.len();
        self.octets.get_mut(self.len..end).ok_or(fmt::Error)?.copy_from_slice(octets);
        self.len = end;
        Ok(())
    }

    /// Appends the label for the first `bits` bits of an address: in hexadecimal digits, as names
    /// are looked up in lower case, in which octets would not differ that are letters.
    fn push_label(&mut self, address: IpAddr, bits: u8) -> fmt::Result {
        let kept = |number: u128, width: u32| {
            let gone = width.saturating_sub(bits.into());
            number.checked_shr(gone).map_or(0, |number| number << gone)
        };
        let start = self.len;
        self.push(&[0])?;
        match address {
            IpAddr::V4(address) => {
                write!(self, "4-{bits}-{:08x}", kept(address.to_bits().into(), 32))?;
            }
            IpAddr::V6(address) => write!(self, "6-{bits}-{:032x}", kept(address.to_bits(), 128))?,
        }
        self.octets[start] = (self.len - start - 1) as u8; // at most 38
        Ok(())
    }
}

impl Write for Wire {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_label_holds_the_first_bits_of_an_address_alone() {
        let label = |address: &str, bits| {
            let mut wire = Wire { octets: [0; NAME_BYTES_MAX], len: 0 };
            wire.push_label(address.parse().unwrap(), bits).unwrap();
            assert_eq!(usize::from(wire.octets[0]), wire.len - 1);
            String::from_utf8(wire.octets[1..wire.len].to_vec()).unwrap()
        };
        assert_eq!(label("192.0.2.65", 32), "4-32-c0000241");
        assert_eq!(label("192.0.2.255", 24), label("192.0.2.1", 24));
        assert_ne!(label("192.0.3.1", 24), label("192.0.2.1", 24));
        assert_eq!(label("192.0.2.1", 0), "4-0-00000000");
        assert_eq!(label("2001:db8:0:ff::1", 56), label("2001:db8::", 56));
        assert_ne!(label("2001:db8:0:100::1", 56), label("2001:db8::", 56));
    }
}
