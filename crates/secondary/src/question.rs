//! What a secondary asks its primary.

use std::sync::Arc;
use zonda_wire::tsig::{Key, ReplySignature};
use zonda_wire::{Class, Name, Type};

/// Octets of the largest reply over UDP.
const UDP_BYTES: u16 = 1232;

/// What a secondary asks its primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question<'z> {
    /// The SOA record in force.
    Soa,
    /// All records of the zone (rfc5936).
    Axfr,
    /// What changed since the version with this SOA data (rfc1995).
    Ixfr(&'z [u8]),
}

impl Question<'_> {
    /// Returns the type that is asked for.
    #[must_use]
    pub fn qtype(self) -> Type {
        match self {
            Self::Soa => Type::SOA,
            Self::Axfr => Type::AXFR,
            Self::Ixfr(_) => Type::IXFR,
        }
    }

    /// Returns the question section of a query for the zone.
    #[must_use]
    pub fn section(self, apex: &Name) -> Vec<u8> {
        let mut section = apex.as_wire().to_vec();
        section.extend_from_slice(&self.qtype().0.to_be_bytes());
        section.extend_from_slice(&Class::IN.0.to_be_bytes());
        section
    }

    /// Returns the query with an id, signed if there is a key, and what the signatures of the reply
    /// are checked with; it asks when the zone expires at the primary (rfc7314). Seconds since
    /// 1970.
    #[must_use]
    pub fn query(
        self,
        apex: &Name,
        id: [u8; 2],
        (key, now_secs): (Option<&Arc<Key>>, u64),
    ) -> (Vec<u8>, Option<ReplySignature>) {
        let authorities = u8::from(matches!(self, Self::Ixfr(_)));
        let mut query = vec![id[0], id[1], 0, 0, 0, 1, 0, 0, 0, authorities, 0, 1];
        query.extend_from_slice(&self.section(apex));
        if let Self::Ixfr(soa) = self {
            query.extend_from_slice(&[0xc0, 12, 0, 6, 0, 1, 0, 0, 0, 0]);
            query.extend_from_slice(&(soa.len() as u16).to_be_bytes()); // an SOA record's data
            query.extend_from_slice(soa);
        }
        let [high, low] = UDP_BYTES.to_be_bytes();
        query.extend_from_slice(&[0, 0, 41, high, low, 0, 0, 0, 0, 0, 4, 0, 9, 0, 0]); // EXPIRE
        let key = key.map(Arc::clone);
        let signature = key.and_then(|key| ReplySignature::sign_query(key, &mut query, now_secs));
        (query, signature)
    }
}
