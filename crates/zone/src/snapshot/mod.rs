//! A zone as the answer path reads it: immutable, compact, found by hash.
//!
//! ```text
//! LookupName ─ hash ─► directory ─► shard: slots ─ place ─► node | node | …
//! ```
//!
//! A name's hash says which shard holds it, and where to look there. The apex, which each change
//! touches, has a node of its own. A changed zone is a new version that shares with the old one
//! all shards in which nothing changed.
//!
//! # Invariants
//! - The apex has a node with an SOA set; so has every name between an owner and the apex have a
//!   node.
//! - Nothing changes after [`build()`] or [`Zone::with`].

mod build;
mod change;
mod cursor;
mod denial;
mod diff;
mod diff_octets;
mod digest;
mod directory;
mod directory_builder;
mod edit;
mod finish;
mod hashed_build;
mod hashed_records;
mod iterate;
mod merge;
mod name_weights;
mod node;
mod record_set;
mod record_sorter;
mod segment_words;
mod shard;
mod share;
mod slots;
mod sort_form;
mod sorted;

pub use build::{BuildError, build};
pub use change::{
    ChangeError, ChangeRule, ChangeSet, Rdatas, Serial, SerialPolicy, SetChange, is_greater,
};
pub(crate) use change::{TTL_MAX, serial_of};
pub use cursor::RecordCursor;
pub use denial::{Denial, ITERATIONS_MAX, NameHash, Nsec3};
pub use diff::Diff;
pub use digest::Digest;
pub use hashed_records::HashedRecords;
pub use iterate::ZoneRecord;
pub use merge::{Merge, NetChange};
pub use node::{Node, Set, Sets, node_flag};
pub(crate) use record_sorter::canonical;
pub use slots::Slots;
pub use sort_form::OwnerName;
pub use sorted::Sorted;

use crate::lookup_name::{HashSeed, LookupName};
use denial::Proofs;
use directory::Directory;
use shard::{ApexNode, Shard};
use std::sync::OnceLock;
use zonda_wire::{Name, Type};

/// A set, a node, a shard or the zone is larger than its form can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

/// One version of a zone.
pub struct Zone {
    /// The apex in lower case.
    apex: Name,
    /// The number of the apex's labels.
    apex_labels: u8,
    /// Whether any name has an ALIAS record, or had one since the zone was built.
    has_aliases: bool,
    /// The number of all other nodes.
    names: u32,
    /// The secret by which names are hashed.
    seed: HashSeed,
    /// The apex's node.
    apex_node: ApexNode,
    /// All other nodes.
    directory: Directory,
    /// The owners whose records prove absence; `None` when the zone is not signed, or has neither
    /// NSEC nor NSEC3 records.
    proofs: Option<Box<Proofs>>,
    /// The names of all other nodes in canonical order, once they were asked for. Later versions
    /// keep them up.
    order: OnceLock<Box<Sorted>>,
}

/// What changes the hash of a name that exists for no question, so that no lookup finds it: some of
/// the bits that a slot has, none of those that say which shard it is.
const HIDDEN: u64 = 0x5bd1_e995;

/// What lookup finds under a name (rfc1034#4.3.2 step 3). Labels are counted from the left of the
/// name that was looked up.
#[derive(Clone, Copy)]
pub enum LookupResult<'z> {
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

/// Where a lookup of a name begins: the name's shard, found before.
#[derive(Clone, Copy)]
pub struct Start<'z> {
    /// The version of the zone that the shard belongs to.
    zone: Option<&'z Zone>,
    /// The hash of the name.
    hash: u64,
    /// The shard; empty without a zone.
    shard: Shard<'z>,
}

impl<'z> Start<'z> {
    /// The start of no lookup.
    pub const NONE: Self = Self { zone: None, hash: 0, shard: Shard(&[]) };

    /// The slot that a search looks at first; asking early brings it into the processor's cache.
    #[inline]
    #[must_use]
    pub fn touch_slot(&self) -> u64 {
        self.zone
            .map_or(0, |zone| self.shard.first_slot(zone.directory.layout().slot_mask, self.hash))
    }

    /// Some octet of the node that a search probably ends at; asking early brings the node, which
    /// rarely spans more than two cache lines, into the processor's cache.
    #[inline]
    #[must_use]
    pub fn touch_node(&self) -> u8 {
        const CACHE_LINE: usize = 64;
        let Some(zone) = self.zone else { return 0 };
        let node = self.shard.first(zone.directory.layout().slot_mask, self.hash);
        let octet = |at: usize| node.get(at).copied().unwrap_or(0);
        octet(0) | octet(CACHE_LINE - 1)
    }
}

impl Zone {
    /// A zone of its parts, in which nothing proves absence yet.
    fn new(
        (apex, seed): (Name, HashSeed),
        apex_node: ApexNode,
        (directory, names): (Directory, usize),
    ) -> Result<Self, TooLarge> {
        let apex_labels = apex.label_count() as u8; // a name has at most 127
        let names = u32::try_from(names).map_err(|_| TooLarge)?;
        let (proofs, order) = (None, OnceLock::new());
        let has_aliases = false;
        Ok(Self {
            apex,
            apex_labels,
            has_aliases,
            names,
            seed,
            apex_node,
            directory,
            proofs,
            order,
        })
    }

    /// The same zone with its proofs of absence.
    fn with_proofs(mut self) -> Result<Self, TooLarge> {
        self.proofs = Proofs::collect(self.apex_node(), self.nodes())?;
        Ok(self)
    }

    /// The same version in less memory, if the zone is small and not packed yet: its nodes in one
    /// piece, allocated now. What was allocated while the zone was built lies between what only the
    /// building needed.
    #[must_use]
    pub fn packed(mut self) -> Self {
        let apex = self.apex_node.clone();
        let Some(shard) = self.directory.only_shard() else { return self };
        // Nothing says where a shard without nodes ends.
        if self.names > 0
            && apex.bytes() > 0
            && let Ok((memory, node)) = ApexNode::behind(shard, apex.node())
        {
            (*shard, self.apex_node) = (memory, node);
        }
        self
    }

    /// The apex in lower case, wire form.
    #[inline]
    #[must_use]
    pub fn apex(&self) -> &[u8] {
        self.apex.as_wire()
    }

    /// The apex in lower case, of which a clone takes no memory.
    #[must_use]
    pub fn apex_name(&self) -> &Name {
        &self.apex
    }

    /// The number of the apex's labels.
    #[inline]
    #[must_use]
    pub fn apex_labels(&self) -> usize {
        self.apex_labels.into()
    }

    /// The apex's node.
    #[inline]
    #[must_use]
    pub fn apex_node(&self) -> Node<'_> {
        self.apex_node.node()
    }

    /// The set of the SOA record, with its signatures.
    #[must_use]
    pub fn soa(&self) -> (Set<'_>, Option<Set<'_>>) {
        self.apex_node().signed_set(Type::SOA).expect("a zone is not built without an SOA record")
    }

    /// The serial of the SOA record (rfc1035#3.3.13).
    #[must_use]
    pub fn serial(&self) -> u32 {
        serial_of(self.soa().0.first())
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
        self.proofs.as_ref()?.denial()
    }

    /// The large pieces of memory that lookups read at random.
    pub fn memory(&self) -> impl Iterator<Item = &[u8]> {
        self.directory.memory().map(<[_]>::as_flattened)
    }

    /// Octets of memory that the zone takes; what it shares with other versions counts in full.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let order = self.order.get().map_or(0, |order| order.bytes());
        let fixed = size_of::<Self>() + self.apex().len() + self.apex_node.bytes();
        let proofs = self.proofs.as_ref().map_or(0, |proofs| proofs.bytes());
        fixed + self.directory.bytes() + proofs + order
    }

    /// How many names have a node: owners of records and what lies between them and the apex.
    #[must_use]
    pub fn name_count(&self) -> usize {
        self.names as usize + 1
    }

    /// Whether any name may have an ALIAS record that stands for addresses: has one, or has had one
    /// since the zone was loaded as a whole. In a signed zone none does.
    #[must_use]
    pub fn has_aliases(&self) -> bool {
        self.has_aliases && !self.is_signed()
    }

    /// The names with ALIAS records that stand for addresses, in wire form, and what they have, in
    /// no particular order. Reads all nodes if there may be any.
    pub fn aliases(&self) -> impl Iterator<Item = (Vec<u8>, Node<'_>)> {
        let nodes = self.has_aliases().then(|| self.nodes()).into_iter().flatten();
        let below_cut = node_flag::BELOW_CUT | node_flag::BELOW_DNAME;
        let with_alias = nodes
            .filter(move |node| node.flags() & (node_flag::ALIAS | below_cut) == node_flag::ALIAS);
        with_alias.map(|node| ([node.relative_owner(), self.apex()].concat(), node))
    }

    /// All nodes, the apex first, in no particular order; also those that no question finds.
    pub fn nodes(&self) -> impl Iterator<Item = Node<'_>> {
        let below = self.directory.shards().flat_map(|shard| shard.nodes().map(|(_, node)| node));
        std::iter::once(self.apex_node()).chain(below)
    }

    /// Where a lookup of `name` begins.
    #[inline]
    #[must_use]
    pub fn start(&self, name: &LookupName) -> Start<'_> {
        let hash = name.hash(0);
        Start { zone: Some(self), hash, shard: self.shard_for(hash) }
    }

    /// The shard of the names with a hash.
    #[inline]
    fn shard_for(&self, hash: u64) -> Shard<'_> {
        self.directory.shard(self.directory.layout().shard_of(hash))
    }

    /// The node of the suffix of `name` that begins at `label`; the suffix must not be shorter than
    /// the apex.
    #[inline]
    #[must_use]
    pub fn node(&self, name: &LookupName, label: usize) -> Option<Node<'_>> {
        if name.label_count() - label == self.apex_labels() {
            return Some(self.apex_node());
        }
        self.node_below(name, label)
    }

    /// Finds the node of a suffix that is longer than the apex.
    #[inline]
    fn node_below(&self, name: &LookupName, label: usize) -> Option<Node<'_>> {
        let suffix = name.suffix(label);
        let relative = &suffix[..suffix.len() - self.apex().len()];
        self.search(name.hash(label), |owner| owner == relative)
    }

    /// The node with a hash whose owner above the apex matches.
    #[inline]
    fn search(&self, hash: u64, matches: impl FnMut(&[u8]) -> bool) -> Option<Node<'_>> {
        self.search_in(self.shard_for(hash), hash, matches)
    }

    /// Searches the shard of a hash for the node whose owner above the apex matches.
    #[inline]
    fn search_in<'z>(
        &self,
        shard: Shard<'z>,
        hash: u64,
        mut matches: impl FnMut(&[u8]) -> bool,
    ) -> Option<Node<'z>> {
        let is_it = |node| matches(Node::new(node).relative_owner());
        shard.find(self.directory.layout().slot_mask, hash, is_it).map(Node::new)
    }

    /// The node of a name at or below the apex, also of one that no question finds.
    fn any_node(&self, name: &LookupName) -> Option<Node<'_>> {
        self.node(name, 0).or_else(|| {
            let relative = &name.as_wire()[..name.as_wire().len() - self.apex().len()];
            self.search(name.hash(0) ^ HIDDEN, |owner| owner == relative)
        })
    }

    /// Finds the records of a type at a name, which lies at or below the apex; not those of NSEC3.
    #[must_use]
    pub fn set_at(&self, owner: &[u8], rtype: Type) -> Option<Set<'_>> {
        self.node(&LookupName::new(owner, self.seed), 0)?.set(rtype)
    }

    /// Looks up `name`, which lies at or below the apex.
    ///
    /// At a delegation itself, `at_parent` (the question is for DS) finds the node instead of the
    /// referral (rfc4035#3.1.4.1).
    #[inline]
    #[must_use]
    pub fn find(&self, name: &LookupName, at_parent: bool) -> LookupResult<'_> {
        self.find_from(&Start::NONE, name, at_parent)
    }

    /// Finds a name as [`find`](Self::find) does, where the [start](Self::start) of the lookup may
    /// be known. The start of another lookup is recognized, and does no harm.
    #[inline]
    #[must_use]
    pub fn find_from<'z>(
        &'z self,
        start: &Start<'z>,
        name: &LookupName,
        at_parent: bool,
    ) -> LookupResult<'z> {
        let last = name.label_count() - self.apex_labels();
        if last == 0 {
            return LookupResult::Exact(self.apex_node());
        }
        let hash = name.hash(0);
        let is_known = start.hash == hash && start.zone.is_some_and(|it| std::ptr::eq(it, self));
        let shard = if is_known { start.shard } else { self.shard_for(hash) };
        let relative = &name.as_wire()[..name.as_wire().len() - self.apex().len()];
        let node = self.search_in(shard, hash, |owner| owner == relative);
        let Some(node) = node else { return self.find_absent(name, last) };
        match node.flags() {
            flags if flags & node_flag::SPECIAL == 0 => LookupResult::Exact(node),
            flags if flags & (node_flag::BELOW_CUT | node_flag::BELOW_DNAME) != 0 => {
                self.find_hidden(name, 0, last)
            }
            flags if flags & node_flag::CUT != 0 && !at_parent => LookupResult::Referral(node),
            _ => LookupResult::Exact(node),
        }
    }

    /// What stands for a name that has no node. The apex begins at label `last`.
    fn find_absent(&self, name: &LookupName, last: usize) -> LookupResult<'_> {
        let nearest = (1..last).find_map(|label| Some((label, self.node_below(name, label)?)));
        let (encloser, node) = nearest.unwrap_or_else(|| (last, self.apex_node()));
        let flags = node.flags();
        if flags & node_flag::SPECIAL != 0 {
            return match flags {
                _ if flags & (node_flag::BELOW_CUT | node_flag::BELOW_DNAME) != 0 => {
                    self.find_hidden(name, encloser, last)
                }
                _ if flags & node_flag::CUT != 0 => LookupResult::Referral(node),
                _ => LookupResult::Dname(node),
            };
        }
        if flags & node_flag::WILDCARD_CHILD == 0 {
            return LookupResult::Missing { encloser };
        }
        match self.wildcard_below(node, name.hash(encloser)) {
            Some(node) => LookupResult::Wildcard { node, encloser },
            None => LookupResult::Missing { encloser },
        }
    }

    /// The topmost delegation or DNAME above the node whose name begins at label `below`. The
    /// apex begins at label `last`.
    #[cold]
    fn find_hidden(&self, name: &LookupName, below: usize, last: usize) -> LookupResult<'_> {
        let above = (below + 1..=last).rev().filter_map(|label| self.node(name, label));
        for node in above {
            match node.flags() {
                flags if flags & node_flag::CUT != 0 => return LookupResult::Referral(node),
                flags if flags & node_flag::DNAME != 0 => return LookupResult::Dname(node),
                _ => {}
            }
        }
        debug_assert!(false, "a node below nothing says that it is hidden");
        LookupResult::Missing { encloser: last }
    }

    /// The node of `*` below a node with the hash `hash`.
    fn wildcard_below(&self, node: Node<'_>, hash: u64) -> Option<Node<'_>> {
        let parent = node.relative_owner();
        let hash = crate::lookup_name::wildcard_hash(hash);
        self.search(hash, |owner| owner.strip_prefix(b"\x01*") == Some(parent))
    }
}

#[cfg(test)]
mod tests;
