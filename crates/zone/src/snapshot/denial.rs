//! Finding the NSEC or NSEC3 record that proves an absence (rfc4035#3.1.3, rfc5155#7.2).

use super::{Node, Zone};
use ring::digest;
use std::cmp::Ordering;
use zonda_wire::{Type, name};

/// Most additional iterations of a hash that are computed for a question; a zone with more proves
/// nothing. A reply needs up to three hashes, of 0.2 µs for each iteration: some 100 µs at most.
/// Where validators stop, at 150 in Unbound 1.17 and BIND 9.18, below in newer ones, they take the
/// zone for unsigned (rfc9276#3.2). They refuse answers with less proven than they ask for.
pub const ITERATIONS_MAX: u16 = 150;

/// How a zone proves absence.
pub enum Denial {
    /// By NSEC: the nodes that have one, in canonical order of their owners.
    Nsec(Box<[u32]>),
    /// By NSEC3.
    Nsec3(Nsec3),
    /// By NSEC3 with more iterations than are computed: a node that has one of the records. It
    /// proves nothing, but a validator sees the number in it, and takes the answer for one of a
    /// zone that is not signed (rfc9276#3.2) instead of a forged one.
    Uncomputed(u32),
}

/// A chain of NSEC3 records.
pub struct Nsec3 {
    /// The nodes that have one, in the order of the hashes that are their first labels.
    places: Box<[u32]>,
    /// Additional iterations of the hash.
    iterations: u16,
    salt: Box<[u8]>,
}

/// A name's hash as the label it becomes: 32 digits of base32hex in lower case (rfc5155#3.3).
pub type NameHash = [u8; 32];

impl Denial {
    /// Collects the proofs among the nodes at `places`.
    pub(super) fn index(zone: &Zone, places: &[u32]) -> Option<Box<Self>> {
        let having = |rtype: Type| {
            let nodes = places.iter().map(|&place| Node::at(&zone.arena, place));
            let mut nodes: Vec<_> = nodes.filter(|node| node.set(rtype).is_some()).collect();
            nodes.sort_by(|a, b| name::canonical_cmp(a.relative_owner(), b.relative_owner()));
            nodes.iter().map(Node::place).collect::<Box<[u32]>>()
        };
        if !zone.is_signed() {
            return None;
        }
        if zone.apex_node().set(Type::NSEC).is_some() {
            return Some(Box::new(Self::Nsec(having(Type::NSEC))));
        }
        let (iterations, salt) = parameters(zone)?;
        let places = having(Type::NSEC3);
        let first = *places.first()?;
        Some(Box::new(match iterations {
            ..=ITERATIONS_MAX => Self::Nsec3(Nsec3 { places, iterations, salt: salt.into() }),
            _ => Self::Uncomputed(first),
        }))
    }

    /// Octets of memory that the index takes.
    pub(super) fn bytes(&self) -> usize {
        let places = match self {
            Self::Nsec(places) | Self::Nsec3(Nsec3 { places, .. }) => places.len(),
            Self::Uncomputed(_) => 0,
        };
        size_of::<Self>() + places * size_of::<u32>()
    }
}

/// The additional iterations of the hash, and the salt, if the zone has NSEC3 records.
fn parameters(zone: &Zone) -> Option<(u16, &[u8])> {
    let params = zone.apex_node().set(Type::NSEC3PARAM)?;
    params.rdatas().find_map(|rdata| match rdata {
        // rfc5155#4.1: algorithm SHA-1, flags 0, iterations, length of the salt, salt
        [1, 0, high, low, _, salt @ ..] => Some((u16::from_be_bytes([*high, *low]), salt)),
        _ => None,
    })
}

impl Zone {
    /// How many additional iterations the hashes of its NSEC3 records have; the zone proves nothing
    /// if they are over [`ITERATIONS_MAX`].
    #[must_use]
    pub fn nsec3_iterations(&self) -> u16 {
        parameters(self).map_or(0, |(iterations, _)| iterations)
    }

    /// The node whose NSEC record matches or covers `owner`, a name in lower case at or below the
    /// apex.
    #[must_use]
    pub fn nsec_at_or_before(&self, places: &[u32], owner: &[u8]) -> Option<Node<'_>> {
        let relative = owner.get(..owner.len().checked_sub(self.apex.len())?)?;
        self.at_or_before(places, |node| name::canonical_cmp(node.relative_owner(), relative))
    }

    /// The node whose NSEC3 record covers `hash`, or matches it (then the second value is true).
    #[must_use]
    pub fn nsec3_at_or_before(&self, nsec3: &Nsec3, hash: &NameHash) -> Option<(Node<'_>, bool)> {
        // The owner's first octet is the label's length.
        let label = |node: Node<'_>| node.relative_owner().get(1..33).unwrap_or_default().cmp(hash);
        let node = self.at_or_before(&nsec3.places, label)?;
        Some((node, label(node) == Ordering::Equal))
    }

    /// The last of the ordered nodes that is not greater; the very last when all are.
    fn at_or_before(
        &self,
        places: &[u32],
        order: impl Fn(Node<'_>) -> Ordering,
    ) -> Option<Node<'_>> {
        let node = |place: &u32| Node::at(&self.arena, *place);
        let behind = places.partition_point(|place| order(node(place)) != Ordering::Greater);
        places.get(behind.checked_sub(1).unwrap_or(places.len().checked_sub(1)?)).map(node)
    }
}

impl Nsec3 {
    /// The hash of a name in lower case, wire form (rfc5155#5).
    #[must_use]
    pub fn hash(&self, owner: &[u8]) -> NameHash {
        let once = |octets: &[u8]| {
            let mut context = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
            context.update(octets);
            context.update(&self.salt);
            context.finish()
        };
        let hash = (0..self.iterations).fold(once(owner), |hash, _| once(hash.as_ref()));
        base32hex(hash.as_ref())
    }
}

/// Twenty octets in base32hex, lower case (rfc4648#7).
fn base32hex(octets: &[u8]) -> NameHash {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
    let mut text = [0; 32];
    for (group, digits) in octets.chunks_exact(5).zip(text.chunks_exact_mut(8)) {
        let bits = group.iter().fold(0_u64, |bits, octet| bits << 8 | u64::from(*octet));
        for (place, digit) in digits.iter_mut().enumerate() {
            *digit = DIGITS[(bits >> (35 - 5 * place)) as usize & 31];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_that_are_iterated_too_often_are_not_computed() {
        let apex = "example".parse().expect("a name");
        let denial = |iterations: u16| {
            let text = format!(
                "$TTL 60\n@ SOA a a 1 2 3 4 5\n@ DNSKEY 256 3 15 AAAA\n\
                 @ NSEC3PARAM 1 0 {iterations} -\n\
                 0p9mhaveqvm6t7vbl5lop2u3t2rp3tom NSEC3 1 0 {iterations} - \
                 0p9mhaveqvm6t7vbl5lop2u3t2rp3tom SOA\n"
            );
            let (records, diagnostics) = crate::file::read_text(
                text.as_bytes(),
                std::path::Path::new("zone"),
                &apex,
                &crate::file::Options::default(),
            );
            assert!(!diagnostics.has_errors(), "{diagnostics}");
            let zone = crate::build(&apex, &records, crate::HashSeed(1)).expect("a zone");
            let is_computed = matches!(zone.denial(), Some(Denial::Nsec3(_)));
            (zone.nsec3_iterations(), is_computed)
        };
        assert_eq!(denial(0), (0, true));
        assert_eq!(denial(150), (150, true));
        assert_eq!(denial(151), (151, false));
    }

    #[test]
    fn hashes_are_those_of_rfc5155_appendix_a() {
        let nsec3 =
            Nsec3 { places: [].into(), iterations: 12, salt: [0xaa, 0xbb, 0xcc, 0xdd].into() };
        assert_eq!(&nsec3.hash(b"\x07example\0"), b"0p9mhaveqvm6t7vbl5lop2u3t2rp3tom");
        assert_eq!(&nsec3.hash(b"\x01a\x07example\0"), b"35mthgpgcu1qg68fab165klnsnk3dpvl");
    }
}
