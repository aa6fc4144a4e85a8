//! A zone as the answer path reads it: immutable, compact, found by hash.
//!
//! ```text
//! LookupName ─ hash ─► slots ─ place ─► arena: node | node | …
//! ```
//!
//! # Invariants
//! - The apex has a node with an SOA set; so has every name between an owner and the apex have a
//!   node.
//! - Nothing changes after [`build()`]; a changed zone is built anew and swapped in.

mod build;
mod denial;
mod node;
mod slots;

pub use build::{BuildError, build};
pub use denial::{Denial, ITERATIONS_MAX, NameHash, Nsec3};
pub use node::{Node, Set, Sets, node_flag};
pub use slots::Slots;

use crate::lookup_name::LookupName;
use zonda_wire::{Type, name};

/// A zone that can be asked.
pub struct Zone {
    /// The apex in lower case, wire form.
    apex: Box<[u8]>,
    /// The number of labels that the apex has.
    apex_labels: u8,
    slots: Slots,
    arena: Box<[u8]>,
    /// The apex's node; the first that the builder makes.
    apex_place: u32,
    /// How absence is proven; `None` when the zone is not signed, or has neither NSEC nor NSEC3
    /// records.
    denial: Option<Box<Denial>>,
}

/// What lookup finds under a name (rfc1034#4.3.2 step 3). Labels are counted from the left of the
/// name that was looked up.
#[derive(Clone, Copy)]
pub enum Found<'z> {
    /// The name itself; its node may be an empty non-terminal.
    Exact(Node<'z>),
    /// A wildcard that stands for the name (rfc4592#3.3.1); the closest encloser begins at
    /// `encloser`.
    Wildcard {
        /// The node of `*` below the closest encloser.
        node: Node<'z>,
        /// The label at which the closest encloser begins.
        encloser: usize,
    },
    /// No such name; the closest encloser begins at label `encloser`.
    Missing {
        /// The label at which the closest encloser begins.
        encloser: usize,
    },
    /// The name lies at or below this delegation.
    Referral(Node<'z>),
    /// The name lies below this node, which has a DNAME record.
    Dname(Node<'z>),
}

impl Zone {
    /// A zone of its parts; `None` when its apex has no SOA record.
    fn new(apex: Box<[u8]>, slots: Slots, arena: Vec<u8>) -> Option<Self> {
        let arena = arena.into_boxed_slice();
        let apex_labels = name::labels(&apex).count() as u8; // a name has at most 127
        let zone = Self { apex, apex_labels, slots, arena, apex_place: 0, denial: None };
        (!zone.arena.is_empty() && zone.apex_node().set(Type::SOA).is_some()).then_some(zone)
    }

    /// The apex in lower case, wire form.
    #[inline]
    #[must_use]
    pub fn apex(&self) -> &[u8] {
        &self.apex
    }

    /// How many labels the apex has.
    #[inline]
    #[must_use]
    pub fn apex_labels(&self) -> usize {
        self.apex_labels.into()
    }

    /// The apex's node.
    #[inline]
    #[must_use]
    pub fn apex_node(&self) -> Node<'_> {
        Node::at(&self.arena, self.apex_place)
    }

    /// The set of the SOA record, with its signatures.
    #[must_use]
    pub fn soa(&self) -> (Set<'_>, Option<Set<'_>>) {
        self.apex_node().signed_set(Type::SOA).expect("a zone is not built without an SOA record")
    }

    /// The serial of the SOA record (rfc1035#3.3.13).
    #[must_use]
    pub fn serial(&self) -> u32 {
        let rdata = self.soa().0.first();
        let at = rdata.len().saturating_sub(20);
        rdata[at..].first_chunk().map_or(0, |octets| u32::from_be_bytes(*octets))
    }

    /// Whether the apex has a key. In a zone without one, signatures and proofs prove nothing, and
    /// are sent only where they are asked for by their type.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.apex_node().set(Type::DNSKEY).is_some()
    }

    /// How absence is proven in this zone.
    #[must_use]
    pub fn denial(&self) -> Option<&Denial> {
        self.denial.as_deref()
    }

    /// The memory that lookups read at random: the slots and the arena.
    #[must_use]
    pub fn memory(&self) -> (&[u64], &[u8]) {
        (self.slots.as_slice(), &self.arena)
    }

    /// Octets of memory that the zone takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let denial = self.denial.as_ref().map_or(0, |denial| denial.bytes());
        size_of::<Self>() + self.apex.len() + self.slots.bytes() + self.arena.len() + denial
    }

    /// The nodes that a question can find, in no particular order.
    pub fn nodes(&self) -> impl Iterator<Item = Node<'_>> {
        self.slots.places().map(|place| Node::at(&self.arena, place))
    }

    /// The node at a place that [`Node::place`] gave.
    ///
    /// # Panics
    /// When it is a place of another zone.
    #[inline]
    #[must_use]
    pub fn node_at(&self, place: u32) -> Node<'_> {
        Node::at(&self.arena, place)
    }

    /// Where a lookup of `name` will probably look; asking early brings the slot into the cache.
    #[inline]
    #[must_use]
    pub fn probable_place(&self, name: &LookupName) -> Option<u32> {
        self.slots.first(name.hash(0))
    }

    /// Some octet at a [`probable_place`](Self::probable_place); asking early brings the node,
    /// which rarely spans more than two cache lines, into the cache.
    #[inline]
    #[must_use]
    pub fn touch(&self, place: u32) -> u8 {
        const CACHE_LINE: usize = 64;
        let at = place as usize * node::ALIGNMENT;
        let octet = |at: usize| self.arena.get(at).copied().unwrap_or(0);
        octet(at) | octet(at + CACHE_LINE - 1)
    }

    /// The node of the suffix of `name` that begins at `label`; the suffix must not be shorter than
    /// the apex.
    #[inline]
    #[must_use]
    pub fn node(&self, name: &LookupName, label: usize) -> Option<Node<'_>> {
        let suffix = name.suffix(label);
        let relative = &suffix[..suffix.len() - self.apex.len()];
        let place = self.slots.find(name.hash(label), |place| {
            Node::at(&self.arena, place).relative_owner() == relative
        });
        place.map(|place| Node::at(&self.arena, place))
    }

    /// Looks up `name`, which lies at or below the apex.
    ///
    /// At a delegation itself, `at_parent` (the question is for DS) finds the node instead of the
    /// referral (rfc4035#3.1.4.1).
    #[inline]
    #[must_use]
    pub fn find(&self, name: &LookupName, apex_labels: usize, at_parent: bool) -> Found<'_> {
        let Some(node) = self.node(name, 0) else { return self.find_absent(name, apex_labels) };
        match node.flags() {
            flags if flags & node_flag::SPECIAL == 0 => Found::Exact(node),
            flags if flags & node_flag::BELOW_CUT != 0 => Found::Referral(self.above(node)),
            flags if flags & node_flag::BELOW_DNAME != 0 => Found::Dname(self.above(node)),
            flags if flags & node_flag::CUT != 0 && !at_parent => Found::Referral(node),
            _ => Found::Exact(node),
        }
    }

    /// What stands for a name that has no node.
    fn find_absent(&self, name: &LookupName, apex_labels: usize) -> Found<'_> {
        let last = name.label_count() - apex_labels;
        let nearest = (1..=last).find_map(|label| Some((label, self.node(name, label)?)));
        let (encloser, node) = nearest.unwrap_or_else(|| (last, self.apex_node()));
        let flags = node.flags();
        if flags & node_flag::SPECIAL != 0 {
            return match flags {
                _ if flags & node_flag::BELOW_CUT != 0 => Found::Referral(self.above(node)),
                _ if flags & node_flag::BELOW_DNAME != 0 => Found::Dname(self.above(node)),
                _ if flags & node_flag::CUT != 0 => Found::Referral(node),
                _ => Found::Dname(node),
            };
        }
        if flags & node_flag::WILDCARD_CHILD == 0 {
            return Found::Missing { encloser };
        }
        match self.wildcard_below(node, name.hash(encloser)) {
            Some(node) => Found::Wildcard { node, encloser },
            None => Found::Missing { encloser },
        }
    }

    /// The delegation or DNAME that a node's link leads to.
    #[inline]
    fn above<'z>(&'z self, node: Node<'z>) -> Node<'z> {
        Node::at(&self.arena, node.link())
    }

    /// The node of `*` below a node with the hash `hash`.
    fn wildcard_below(&self, node: Node<'_>, hash: u64) -> Option<Node<'_>> {
        let parent = node.relative_owner();
        let hash = crate::lookup_name::wildcard_hash(hash);
        let place = self.slots.find(hash, |place| {
            let owner = Node::at(&self.arena, place).relative_owner();
            owner.strip_prefix(b"\x01*") == Some(parent)
        });
        place.map(|place| Node::at(&self.arena, place))
    }
}

#[cfg(test)]
mod tests;
