//! Finding the NSEC or NSEC3 record that proves an absence (rfc4035#3.1.3, rfc5155#7.2).

use super::sort_form::{OwnerName, SortForm};
use super::sorted::{Change, Sorted, Unsorted};
use super::{Node, TooLarge, Zone};
use crate::lookup_name::LookupName;
use zonda_wire::Type;

/// Most additional iterations of a hash that are computed for a question; a zone with more proves
/// nothing. A reply needs up to three hashes, of 0.2 µs for each iteration: some 100 µs at most.
/// Where validators stop, at 150 in Unbound 1.17 and BIND 9.18, below in newer ones, they take the
/// zone for unsigned (rfc9276#3.2). They refuse answers with less proven than they ask for.
pub const ITERATIONS_MAX: u16 = 150;

/// How a zone proves absence.
pub enum Denial {
    /// Proofs by NSEC: the owners that have such a record, in canonical order.
    Nsec(Sorted),
    /// Proofs by NSEC3: the chain of its records.
    Nsec3(Nsec3),
    /// Proofs by NSEC3 with more iterations than are computed: the hash of one of the records. It
    /// proves nothing, but a validator sees the number in it, and takes the answer for one of a
    /// zone that is not signed (rfc9276#3.2) instead of a forged one.
    Uncomputed(NameHash),
}

/// A chain of NSEC3 records.
pub struct Nsec3 {
    /// The hashes that are the first labels of owners with such a record.
    hashes: Sorted,
    /// Additional iterations of the hash.
    iterations: u16,
    /// The octets that each hash is taken over behind the name.
    salt: Box<[u8]>,
    /// The function that hashes are made with.
    sha1: Sha1,
}

/// A name's hash (rfc5155#5).
pub type NameHash = [u8; 20];

/// Which records prove absence, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// NSEC records alone.
    Nsec,
    /// NSEC3 records, with the additional iterations and the salt of their hashes.
    Nsec3(u16, Box<[u8]>),
}

/// The owners whose records prove absence, of one version of a zone.
pub(super) struct Proofs {
    /// What the records are.
    kind: Kind,
    /// The owners' names in the form that sorts, or their hashes.
    owners: Sorted,
    /// How the records prove absence; `None` without any of them.
    denial: Option<Denial>,
}

impl Kind {
    /// What the apex says; `None` if there are no such records, or the zone is not signed.
    fn of(apex: Node<'_>) -> Option<Self> {
        apex.set(Type::DNSKEY)?;
        if apex.set(Type::NSEC).is_some() {
            return Some(Self::Nsec);
        }
        let (iterations, salt) = parameters(apex)?;
        Some(Self::Nsec3(iterations, salt.into()))
    }

    /// Whether an owner has such a record.
    fn has(&self, node: Node<'_>) -> bool {
        match self {
            Self::Nsec => node.set(Type::NSEC).is_some(),
            Self::Nsec3(..) => {
                node.set(Type::NSEC3).is_some() && owner_hash(node.relative_owner()).is_some()
            }
        }
    }

    /// Calls a function with what the owner is sorted by.
    fn with_key<R>(&self, relative_owner: &[u8], then: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Self::Nsec => then(SortForm::new(relative_owner).as_octets()),
            Self::Nsec3(..) => then(&owner_hash(relative_owner).unwrap_or_default()),
        }
    }

    /// How the records of some owners prove absence.
    fn denial(&self, owners: &Sorted) -> Option<Denial> {
        let hashes = owners.clone();
        Some(match self {
            Self::Nsec => Denial::Nsec(hashes),
            Self::Nsec3(..) if hashes.is_empty() => return None,
            Self::Nsec3(iterations, salt) => match Sha1::new() {
                Some(sha1) if *iterations <= ITERATIONS_MAX => {
                    let (iterations, salt) = (*iterations, salt.clone());
                    Denial::Nsec3(Nsec3 { hashes, iterations, salt, sha1 })
                }
                _ => Denial::Uncomputed(hashes.iter().next()?.try_into().ok()?),
            },
        })
    }
}

impl Proofs {
    /// Collects the proofs of a zone.
    pub(super) fn collect<'z>(
        apex: Node<'z>,
        nodes: impl Iterator<Item = Node<'z>>,
    ) -> Result<Option<Box<Self>>, TooLarge> {
        let Some(kind) = Kind::of(apex) else { return Ok(None) };
        let mut owners = Unsorted::default();
        for node in nodes.filter(|node| kind.has(*node)) {
            if !kind.with_key(node.relative_owner(), |key| owners.push(key)) {
                return Err(TooLarge);
            }
        }
        Ok(Some(Box::new(Self::new(kind, owners.sort()))))
    }

    /// The proofs of some owners.
    fn new(kind: Kind, owners: Sorted) -> Self {
        let denial = kind.denial(&owners);
        Self { kind, owners, denial }
    }

    /// Whether the proofs of a zone with another apex are of the same kind.
    pub(super) fn fit(proofs: Option<&Self>, apex: Node<'_>) -> bool {
        proofs.map(|proofs| &proofs.kind) == Kind::of(apex).as_ref()
    }

    /// How absence is proven.
    pub(super) fn denial(&self) -> Option<&Denial> {
        self.denial.as_ref()
    }

    /// Returns the proofs after some nodes were changed, removed or added.
    pub(super) fn with<'n>(
        &self,
        changed: impl Iterator<Item = (Option<Node<'n>>, Option<Node<'n>>)>,
    ) -> Self {
        let has = |node: Option<Node<'_>>| node.is_some_and(|node| self.kind.has(node));
        let mut changes: Vec<(Vec<u8>, Change)> = changed
            .filter_map(|(old, new)| {
                let change = match (has(old), has(new)) {
                    (false, true) => Change::Insert,
                    (true, false) => Change::Remove,
                    _ => return None,
                };
                let owner = old.or(new)?.relative_owner();
                Some((self.kind.with_key(owner, <[u8]>::to_vec), change))
            })
            .collect();
        if changes.is_empty() {
            return Self::new(self.kind.clone(), self.owners.clone());
        }
        changes.sort_by(|a, b| a.0.cmp(&b.0));
        let changes: Vec<_> = changes.iter().map(|(key, change)| (&key[..], *change)).collect();
        Self::new(self.kind.clone(), self.owners.with(&changes))
    }

    /// Octets of memory that the proofs take.
    pub(super) fn bytes(&self) -> usize {
        self.owners.bytes()
    }
}

/// The additional iterations of the hash, and the salt, if the zone has NSEC3 records.
fn parameters(apex: Node<'_>) -> Option<(u16, &[u8])> {
    let params = apex.set(Type::NSEC3PARAM)?;
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
        parameters(self.apex_node()).map_or(0, |(iterations, _)| iterations)
    }

    /// The node whose NSEC record matches or covers `owner`, a name in lower case at or below the
    /// apex, and may be two octets longer than a name.
    #[must_use]
    pub fn nsec_at_or_before(&self, owners: &Sorted, owner: &[u8]) -> Option<Node<'_>> {
        let relative = owner.get(..owner.len().checked_sub(self.apex().len())?)?;
        let found = owners.at_or_before(SortForm::new(relative).as_octets())?;
        let name = OwnerName::from_form(found, self.apex());
        self.any_node(&LookupName::new(name.as_wire(), self.seed))
    }

    /// The node whose NSEC3 record covers `hash`, or matches it (then the second value is true).
    #[must_use]
    pub fn nsec3_at_or_before(&self, nsec3: &Nsec3, hash: &NameHash) -> Option<(Node<'_>, bool)> {
        let found: &NameHash = nsec3.hashes.at_or_before(hash)?.try_into().ok()?;
        Some((self.node_of_hash(found)?, found == hash))
    }

    /// The node of a name's NSEC3 record, by the name's hash.
    #[must_use]
    pub fn node_of_hash(&self, hash: &NameHash) -> Option<Node<'_>> {
        let mut relative = [32; 33];
        relative[1..].copy_from_slice(&base32hex(hash));
        let name = OwnerName::new(&relative, self.apex()).ok()?;
        self.any_node(&LookupName::new(name.as_wire(), self.seed))
    }
}

impl Nsec3 {
    /// The hash of a name in lower case, wire form (rfc5155#5).
    #[must_use]
    pub fn hash(&self, owner: &[u8]) -> NameHash {
        let once = |octets: &[u8]| self.sha1.hash([octets, &self.salt]);
        (0..self.iterations).fold(once(owner), |hash, _| once(&hash))
    }
}

/// SHA-1, the only algorithm of these hashes (rfc5155#11); there is none without the feature
/// `nsec3`.
#[cfg(feature = "nsec3")]
struct Sha1;
#[cfg(not(feature = "nsec3"))]
enum Sha1 {}

impl Sha1 {
    /// The function, if this program has it.
    #[cfg(feature = "nsec3")]
    fn new() -> Option<Self> {
        Some(Self)
    }

    /// The function, which this program lacks.
    #[cfg(not(feature = "nsec3"))]
    fn new() -> Option<Self> {
        None
    }

    /// The hash of two runs of octets, one behind the other.
    #[cfg(feature = "nsec3")]
    fn hash(&self, parts: [&[u8]; 2]) -> NameHash {
        use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};

        let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
        parts.iter().for_each(|part| context.update(part));
        context.finish().as_ref().try_into().unwrap_or_default()
    }

    /// No hash, as there is no function.
    #[cfg(not(feature = "nsec3"))]
    fn hash(&self, _parts: [&[u8]; 2]) -> NameHash {
        match *self {}
    }
}

/// The digits of base32hex, in lower case (rfc4648#7). Their order is that of the octets.
const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

/// A hash as the label it becomes: 32 digits (rfc5155#3.3).
fn base32hex(octets: &NameHash) -> [u8; 32] {
    let mut text = [0; 32];
    for (group, digits) in octets.chunks_exact(5).zip(text.chunks_exact_mut(8)) {
        let bits = group.iter().fold(0_u64, |bits, octet| bits << 8 | u64::from(*octet));
        for (place, digit) in digits.iter_mut().enumerate() {
            *digit = DIGITS[(bits >> (35 - 5 * place)) as usize & 31];
        }
    }
    text
}

/// The hash that is the only label of an owner above the apex.
fn owner_hash(relative_owner: &[u8]) -> Option<NameHash> {
    let [32, label @ ..] = relative_owner else { return None };
    let mut hash = NameHash::default();
    if label.len() != 32 {
        return None;
    }
    for (digits, group) in label.chunks_exact(8).zip(hash.chunks_exact_mut(5)) {
        let mut bits = 0_u64;
        for digit in digits {
            bits = bits << 5 | DIGITS.iter().position(|it| it == digit)? as u64; // below 32
        }
        group.copy_from_slice(&bits.to_be_bytes()[3..]);
    }
    Some(hash)
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
        let hashes = Sorted::default();
        let salt = [0xaa, 0xbb, 0xcc, 0xdd].into();
        let nsec3 = Nsec3 { hashes, iterations: 12, salt, sha1: Sha1 };
        for (owner, expected) in [
            (&b"\x07example\0"[..], b"0p9mhaveqvm6t7vbl5lop2u3t2rp3tom"),
            (b"\x01a\x07example\0", b"35mthgpgcu1qg68fab165klnsnk3dpvl"),
        ] {
            let hash = nsec3.hash(owner);
            assert_eq!(&base32hex(&hash), expected);
            assert_eq!(owner_hash(&[b"\x20", &expected[..]].concat()), Some(hash));
        }
    }
}
