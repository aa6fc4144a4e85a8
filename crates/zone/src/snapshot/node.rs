//! How a zone's nodes lie in its arena, and views that read them.
//!
//! ```text
//! node    flags u8 | owner length u8 | number of sets u16 | link u32 | owner | sets
//! set     type u16 | records u16 | TTL u32 | octets that follow u32 | records
//! record  length u16 | rdata
//! ```
//!
//! The owner is the part of the name above the apex, in lower case, without the root's octet; empty
//! at the apex. A node begins at a multiple of four; numbers are little-endian. RRSIG records lie
//! in one set per type they cover, right behind the set of that type if the node has it; in a zone
//! without keys all in one set, before the others.

use zonda_wire::Type;

/// Nodes begin at multiples of this, so that 32 bits reach over 16 GiB.
pub(super) const ALIGNMENT: usize = 4;
/// Octets before a node's owner.
pub(super) const NODE_HEADER: usize = 8;
/// Octets before a set's records.
pub(super) const SET_HEADER: usize = 12;

/// What a node is for lookup; several may hold at once.
pub mod node_flag {
    /// NS records below the apex: a delegation (rfc1034#4.2.1).
    pub const CUT: u8 = 1;
    /// Lies below a delegation; the node's link leads to it.
    pub const BELOW_CUT: u8 = 2;
    /// Has a DNAME record (rfc6672).
    pub const DNAME: u8 = 4;
    /// Lies below a DNAME; the node's link leads to it.
    pub const BELOW_DNAME: u8 = 8;
    /// The node `*` lies below it (rfc4592#2.1.1).
    pub const WILDCARD_CHILD: u8 = 16;
    /// Any of the above that lookup has to look at.
    pub const SPECIAL: u8 = CUT | BELOW_CUT | DNAME | BELOW_DNAME;
}

/// A node of a zone.
#[derive(Clone, Copy)]
pub struct Node<'z> {
    /// The arena from the node's first octet on.
    bytes: &'z [u8],
    /// Where that is, in units of [`ALIGNMENT`].
    place: u32,
}

impl<'z> Node<'z> {
    /// The node at a place of an arena, which must be one that the builder gave.
    #[inline]
    pub(super) fn at(arena: &'z [u8], place: u32) -> Self {
        Self { bytes: &arena[place as usize * ALIGNMENT..], place }
    }

    /// A number that no other node of the zone has.
    #[inline]
    #[must_use]
    pub fn place(&self) -> u32 {
        self.place
    }

    /// Bits of [`node_flag`].
    #[inline]
    #[must_use]
    pub fn flags(&self) -> u8 {
        self.bytes[0]
    }

    /// The owner's labels above the apex, in lower case.
    #[inline]
    #[must_use]
    pub fn relative_owner(&self) -> &'z [u8] {
        &self.bytes[NODE_HEADER..NODE_HEADER + usize::from(self.bytes[1])]
    }

    /// The place of the delegation or DNAME above.
    #[inline]
    pub(super) fn link(&self) -> u32 {
        u32::from_le_bytes(*self.bytes[4..].first_chunk().expect("a node has a header"))
    }

    /// Whether the node exists only because of the names below it (rfc4592#2.2.2).
    #[inline]
    #[must_use]
    pub fn is_empty_non_terminal(&self) -> bool {
        self.bytes[2..4] == [0, 0]
    }

    /// All sets, in ascending order of types but for RRSIG sets, which follow what they cover.
    #[inline]
    #[must_use]
    pub fn sets(&self) -> Sets<'z> {
        let left = u16::from_le_bytes([self.bytes[2], self.bytes[3]]);
        Sets { bytes: &self.bytes[NODE_HEADER + usize::from(self.bytes[1])..], left }
    }

    /// The set of a type. For RRSIG, which may have several sets, use [`sets`](Self::sets).
    #[inline]
    #[must_use]
    pub fn set(&self, rtype: Type) -> Option<Set<'z>> {
        self.sets().find(|set| set.rtype == rtype)
    }

    /// The set of a type with the RRSIG set that covers it.
    #[must_use]
    pub fn signed_set(&self, rtype: Type) -> Option<(Set<'z>, Option<Set<'z>>)> {
        let mut sets = self.sets();
        let set = sets.find(|set| set.rtype == rtype)?;
        Some((set, sets.next().filter(|next| next.covers(rtype))))
    }
}

/// The sets of a node, one after the other.
pub struct Sets<'z> {
    bytes: &'z [u8],
    left: u16,
}

impl<'z> Iterator for Sets<'z> {
    type Item = Set<'z>;

    #[inline]
    fn next(&mut self) -> Option<Set<'z>> {
        self.left = self.left.checked_sub(1)?;
        let (header, rest) = self.bytes.split_first_chunk::<SET_HEADER>()?;
        let word = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let (records, behind) = rest.split_at(word(8) as usize);
        self.bytes = behind;
        Some(Set {
            rtype: Type(u16::from_le_bytes([header[0], header[1]])),
            count: u16::from_le_bytes([header[2], header[3]]),
            ttl: word(4),
            records,
        })
    }
}

/// An RRset.
#[derive(Clone, Copy)]
pub struct Set<'z> {
    /// The type of its records.
    pub rtype: Type,
    /// How many records it has; at least one.
    pub count: u16,
    /// Their time to live, seconds.
    pub ttl: u32,
    records: &'z [u8],
}

impl<'z> Set<'z> {
    /// The rdata of each record, in canonical order (rfc4034#6.3).
    #[inline]
    pub fn rdatas(&self) -> impl Iterator<Item = &'z [u8]> + use<'z> {
        let mut rest = self.records;
        std::iter::from_fn(move || {
            let (len, tail) = rest.split_first_chunk::<2>()?;
            let (rdata, tail) = tail.split_at(usize::from(u16::from_le_bytes(*len)));
            rest = tail;
            Some(rdata)
        })
    }

    /// The rdata of the first record.
    #[inline]
    #[must_use]
    pub fn first(&self) -> &'z [u8] {
        self.rdatas().next().unwrap_or_default()
    }

    /// Whether it holds the signatures of a type's set.
    #[must_use]
    pub fn covers(&self, rtype: Type) -> bool {
        self.rtype == Type::RRSIG && self.first().starts_with(&rtype.0.to_be_bytes())
    }
}
