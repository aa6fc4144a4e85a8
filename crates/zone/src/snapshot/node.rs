//! How a zone's nodes lie in memory, and views that read and write them.
//!
//! ```text
//! node    flags u8 | owner length u8 | number of sets u16 | owner | sets | number of children u32
//! set     type u16 | records u16 | TTL u32 | octets that follow u32 | records
//! record  length u16 | rdata
//! ```
//!
//! The owner is the part of the name above the apex, in lower case, without the root's octet; empty
//! at the apex. Only a node with names one label below it has the number of these, its children.
//! Numbers are little-endian. RRSIG records lie in one set per type they cover, right behind the
//! set of that type if the node has it; in a zone without keys before all other sets, so that no
//! answer takes them for its signatures.

use super::TooLarge;
use zonda_wire::Type;

/// Nodes begin at multiples of this, so that 32 bits reach over 16 GiB.
pub(super) const ALIGNMENT: usize = 4;
/// Octets before a node's owner.
const NODE_HEADER: usize = 4;
/// Octets before a set's records.
const SET_HEADER: usize = 12;

/// What a node is for lookup; several may hold at once.
pub mod node_flag {
    /// NS records below the apex: a delegation (rfc1034#4.2.1).
    pub const CUT: u8 = 1;
    /// Lies below a delegation: the topmost of those above.
    pub const BELOW_CUT: u8 = 2;
    /// Has a DNAME record (rfc6672).
    pub const DNAME: u8 = 4;
    /// Lies below a DNAME, which has no delegation above it.
    pub const BELOW_DNAME: u8 = 8;
    /// The node `*` lies below it (rfc4592#2.1.1).
    pub const WILDCARD_CHILD: u8 = 16;
    /// Other nodes lie below the node, and their number stands behind its sets.
    pub const HAS_CHILDREN: u8 = 32;
    /// Holds NSEC3 records and their signatures alone, and no name lies below it: a lookup does not
    /// find it, as such names do not exist for a question (rfc5155#7.2.8).
    pub const NSEC3_ONLY: u8 = 64;
    /// Has an ALIAS record: questions for addresses are answered with those of another name.
    pub const ALIAS: u8 = 128;
    /// Any of the above that lookup has to look at.
    pub const SPECIAL: u8 = CUT | BELOW_CUT | DNAME | BELOW_DNAME;
}

/// A node of a zone.
#[derive(Clone, Copy)]
pub struct Node<'z> {
    /// Octets from the node's first on, more than it has.
    bytes: &'z [u8],
}

impl<'z> Node<'z> {
    /// The node that begins with `bytes`.
    #[inline]
    pub(super) fn new(bytes: &'z [u8]) -> Self {
        Self { bytes }
    }

    /// Whether another one is the same node of the same version of a zone.
    #[inline]
    #[must_use]
    pub fn is(&self, other: Self) -> bool {
        self.bytes.as_ptr() == other.bytes.as_ptr()
    }

    /// The node's address in memory, which tells it from every other node.
    pub(super) fn address(&self) -> usize {
        self.bytes.as_ptr().addr()
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

    /// Whether the node exists only because of the names below it (rfc4592#2.2.2).
    #[inline]
    #[must_use]
    pub fn is_empty_non_terminal(&self) -> bool {
        self.bytes[2..4] == [0, 0]
    }

    /// The number of sets.
    pub(super) fn set_count(&self) -> u16 {
        u16::from_le_bytes([self.bytes[2], self.bytes[3]])
    }

    /// How many names one label longer exist below it.
    #[must_use]
    pub fn child_count(&self) -> u32 {
        let behind = self.behind_sets();
        let count = behind.first_chunk().filter(|_| self.flags() & node_flag::HAS_CHILDREN != 0);
        count.map_or(0, |octets| u32::from_le_bytes(*octets))
    }

    /// Whether another node has the same sets, in the same order.
    pub(super) fn has_records_of(&self, other: Self) -> bool {
        let sets = |node: &Self| &node.bytes[NODE_HEADER + usize::from(node.bytes[1])..];
        let octets = sets(self).len() - self.behind_sets().len();
        self.bytes[2..4] == other.bytes[2..4]
            && sets(&other).get(..octets) == sets(self).get(..octets)
    }

    /// The node's own octets.
    pub(super) fn octets(&self) -> &'z [u8] {
        let children = if self.flags() & node_flag::HAS_CHILDREN != 0 { 4 } else { 0 };
        &self.bytes[..self.bytes.len() - self.behind_sets().len() + children]
    }

    /// What follows the last set.
    fn behind_sets(&self) -> &'z [u8] {
        let mut sets = self.sets();
        sets.by_ref().for_each(drop);
        sets.bytes
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
    /// The octets of the sets to come, and what follows them.
    bytes: &'z [u8],
    /// The number of sets to come.
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
    /// The type of the set's records.
    pub rtype: Type,
    /// Number of records of the set; at least one.
    pub count: u16,
    /// Time to live of the records, seconds.
    pub ttl: u32,
    /// The records' octets, each behind its length.
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

    /// Whether the set holds the signatures of a type's set.
    #[must_use]
    pub fn covers(&self, rtype: Type) -> bool {
        self.rtype == Type::RRSIG && self.first().starts_with(&rtype.0.to_be_bytes())
    }
}

/// What decides a set's place among those of its node: whether the set is of an unsigned zone's
/// signatures, the type, or for RRSIG the type covered, and whether it is of signatures.
pub(super) type SetOrder = (bool, u16, bool);

/// The place of the set that a record belongs to.
pub(super) fn set_order(rtype: Type, rdata: &[u8], is_signed: bool) -> SetOrder {
    match rtype {
        Type::RRSIG => (is_signed, type_covered(rtype, rdata).0, true),
        rtype => (true, rtype.0, false),
    }
}

/// The type of a record; for a signature that of the set it signs (rfc4034#3.1.1).
pub(super) fn type_covered(rtype: Type, rdata: &[u8]) -> Type {
    match (rtype, rdata) {
        (Type::RRSIG, [high, low, ..]) => Type(u16::from_be_bytes([*high, *low])),
        (rtype, _) => rtype,
    }
}

#[cfg(test)]
thread_local! {
    /// The number of sets that were passed over to count names.
    pub(super) static SETS_PASSED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts more names one label below the node at the beginning of some octets, which was written
/// with a number of them. Takes as long as the node has sets.
pub(super) fn count_children(octets: &mut [u8], more: u32) {
    #[cfg(test)]
    SETS_PASSED.with(|sets| sets.set(sets.get() + usize::from(Node::new(octets).set_count())));
    let behind = Node::new(octets).behind_sets().len();
    let at = octets.len() - behind;
    if let Some(count) = octets.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *count = u32::from_le_bytes(*count).saturating_add(more).to_le_bytes();
    }
}

/// Writes a node behind what is in a buffer.
pub(super) struct NodeWriter<'o> {
    /// The buffer that the node is appended to.
    out: &'o mut Vec<u8>,
    /// The place of the node's first octet in the buffer.
    start: usize,
    /// The number of sets written so far.
    sets: u16,
}

impl<'o> NodeWriter<'o> {
    /// Begins the node of an owner, which may be in upper case.
    pub(super) fn begin(out: &'o mut Vec<u8>, flags: u8, relative_owner: &[u8]) -> Self {
        let start = out.len();
        let len = relative_owner.len() as u8; // a name has at most 255 octets
        out.extend_from_slice(&[flags & !node_flag::HAS_CHILDREN, len, 0, 0]);
        debug_assert_eq!(out.len(), start + NODE_HEADER);
        out.extend(relative_owner.iter().map(u8::to_ascii_lowercase));
        Self { out, start, sets: 0 }
    }

    /// Appends a set of records, which are in canonical order and none twice.
    pub(super) fn set<'r>(
        &mut self,
        rtype: Type,
        ttl: u32,
        rdatas: impl ExactSizeIterator<Item = &'r [u8]>,
    ) -> Result<(), TooLarge> {
        let count = u16::try_from(rdatas.len()).map_err(|_| TooLarge)?;
        let header = self.out.len();
        self.out.extend_from_slice(&rtype.0.to_le_bytes());
        self.out.extend_from_slice(&count.to_le_bytes());
        self.out.extend_from_slice(&ttl.to_le_bytes());
        self.out.extend_from_slice(&[0; 4]);
        debug_assert_eq!(self.out.len(), header + SET_HEADER);
        for rdata in rdatas {
            let len = u16::try_from(rdata.len()).map_err(|_| TooLarge)?;
            self.out.extend_from_slice(&len.to_le_bytes());
            self.out.extend_from_slice(rdata);
        }
        let octets = (self.out.len() - header - SET_HEADER) as u32; // below 2¹⁶ × 2¹⁶
        self.out[header + 8..header + SET_HEADER].copy_from_slice(&octets.to_le_bytes());
        self.sets = self.sets.checked_add(1).ok_or(TooLarge)?;
        Ok(())
    }

    /// Ends the node with the number of names one label below it.
    pub(super) fn end(self, children: u32) {
        self.end_with(Some(children).filter(|children| *children > 0));
    }

    /// Ends the node with a number of names one label below it, for which there is room even if it
    /// is 0, or without one.
    pub(super) fn end_with(self, children: Option<u32>) {
        self.out[self.start + 2..self.start + 4].copy_from_slice(&self.sets.to_le_bytes());
        if let Some(children) = children {
            self.out[self.start] |= node_flag::HAS_CHILDREN;
            self.out.extend_from_slice(&children.to_le_bytes());
        }
    }
}
