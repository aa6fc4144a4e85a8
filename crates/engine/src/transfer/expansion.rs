//! The addresses that a transfer has in place of a zone's ALIAS records.
//!
//! They are looked up before the first message, so that a transfer has all of them or is not begun.
//! Deliberately absent: the look-ups, which [`AliasLookup`](crate::AliasLookup) makes, as they need
//! what answers queries.

use super::error::TransferError;
use crate::reason::Reason;
use std::collections::VecDeque;
use zonda_wire::{Name, Type};
use zonda_zone::Zone;

/// How long addresses are waited for that are being fetched, nanoseconds: as long as a query waits
/// of which nothing is known.
const WAIT_NANOS_MAX: u64 = 5_000_000_000;

/// The addresses of a zone's ALIAS records, as far as they are known.
#[derive(Default)]
pub(crate) struct Expansion {
    /// When addresses are waited for no longer, nanoseconds of the monotonic clock; none until
    /// the names are known.
    ends_nanos: Option<u64>,
    /// What is still to be looked up.
    pending: VecDeque<PendingAddresses>,
    /// The addresses that are known.
    sets: Vec<AddressSet>,
}

/// A name with an ALIAS record, and a type of which it has no addresses of its own.
pub(crate) struct PendingAddresses {
    /// The name in wire form and lower case.
    pub(crate) owner: Box<[u8]>,
    /// The type, A or AAAA.
    pub(crate) qtype: Type,
    /// The hash of the name that was fetched last for it, if one was.
    pub(crate) fetched: Option<u64>,
    /// When that is to be fetched again, nanoseconds of the monotonic clock.
    pub(crate) fetch_nanos: u64,
}

/// The addresses of a name with an ALIAS record, of one type.
pub(super) struct AddressSet {
    /// The name in wire form and lower case.
    pub(super) owner: Box<[u8]>,
    /// The type, A or AAAA.
    pub(super) rtype: Type,
    /// The TTL in seconds.
    pub(super) ttl: u32,
    /// The addresses as record data.
    pub(super) addresses: Vec<Box<[u8]>>,
}

impl Expansion {
    /// Finds the names with ALIAS records, the first time that it is called.
    pub(crate) fn begin(&mut self, zone: &Zone, now_nanos: u64) {
        if self.ends_nanos.is_some() {
            return;
        }
        self.ends_nanos = Some(now_nanos.saturating_add(WAIT_NANOS_MAX));
        for (owner, node) in zone.aliases() {
            let lacks = |qtype: &Type| node.set(*qtype).is_none();
            for qtype in [Type::A, Type::AAAA].into_iter().filter(lacks) {
                let owner = owner.as_slice().into();
                let pending = PendingAddresses { owner, qtype, fetched: None, fetch_nanos: 0 };
                self.pending.push_back(pending);
            }
        }
    }

    /// Whether addresses that are not known yet are waited for no longer.
    pub(crate) fn is_late(&self, now_nanos: u64) -> bool {
        self.ends_nanos.is_some_and(|ends_nanos| now_nanos >= ends_nanos)
    }

    /// Returns how many look-ups are left.
    pub(crate) fn left(&self) -> usize {
        self.pending.len()
    }

    /// Takes what is to be looked up next.
    pub(crate) fn next(&mut self) -> Option<PendingAddresses> {
        self.pending.pop_front()
    }

    /// Looks addresses up later again.
    pub(crate) fn put_back(&mut self, pending: PendingAddresses) {
        self.pending.push_back(pending);
    }

    /// Takes note of addresses, none or some, with their TTL in seconds.
    pub(crate) fn note(&mut self, of: PendingAddresses, ttl: u32, addresses: Vec<Box<[u8]>>) {
        if !addresses.is_empty() {
            let PendingAddresses { owner, qtype: rtype, .. } = of;
            self.sets.push(AddressSet { owner, rtype, ttl, addresses });
        }
    }

    /// Whether all addresses are known.
    pub(super) fn is_complete(&self) -> bool {
        self.ends_nanos.is_some() && self.pending.is_empty()
    }

    /// Returns the addresses that are known; all of them if the expansion
    /// [is complete](Self::is_complete).
    pub(super) fn into_sets(self) -> Vec<AddressSet> {
        self.sets
    }
}

impl PendingAddresses {
    /// The error of a transfer that cannot have these addresses, for a reason if there is one.
    pub(crate) fn error(&self, reason: Option<Reason>) -> TransferError {
        let owner = Name::from_wire(&self.owner).unwrap_or_else(|_| Name::root());
        TransferError::UnknownAddresses { owner, qtype: self.qtype, reason }
    }
}
