//! The shards of a zone's next version.

use super::build::{BuildError, build};
use super::change::{ChangeError, ChangeRule};
use super::denial::Proofs;
use super::diff::push_sets;
use super::directory::{Directory, Layout};
use super::directory_builder::DirectoryBuilder;
use super::edit::{Edit, NodeDraft, hidden_by};
use super::node::{Node, node_flag};
use super::record_set::sets_of;
use super::shard::{ApexNode, ShardWriter, Word};
use super::sort_form::{OwnerName, SortForm};
use super::sorted::Change;
use super::{TooLarge, Zone};
use crate::lookup_name::LookupName;
use crate::records::Records;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use zonda_wire::{Name, Type};

/// A node that changes, comes or goes.
struct NodeChange<'e> {
    /// The labels of the name above the apex.
    relative_owner: &'e [u8],
    /// The hash of the name.
    hash: u64,
    /// The node of the present version.
    old: Option<Node<'e>>,
    /// The octets of the node of the next version.
    new: Option<Vec<u8>>,
}

impl NodeChange<'_> {
    /// The node of the next version, without its place.
    fn new_node(&self) -> Option<Node<'_>> {
        self.new.as_deref().map(Node::new)
    }
}

impl Edit<'_> {
    /// Makes the next version.
    pub(super) fn finish(self) -> Result<Zone, ChangeError> {
        let apex = self.zone.apex();
        let apex_draft = self.drafts.get(&[][..]);
        if apex_draft.is_some_and(|draft| self.changes_everything(draft)) {
            return self.rebuild();
        }
        self.assemble().map_err(ChangeError::too_large(apex))
    }

    /// Whether a change of the apex changes each node of the zone: what signatures stand with, or
    /// what lies below a DNAME.
    fn changes_everything(&self, apex: &NodeDraft<'_>) -> bool {
        let old = self.zone.apex_node().flags() & node_flag::DNAME;
        self.is_signed() != self.zone.is_signed() || old != apex.flags & node_flag::DNAME
    }

    /// Whether the next version's apex has a key.
    fn is_signed(&self) -> bool {
        let sets = self.drafts.get(&[][..]).and_then(|draft| draft.sets.as_ref());
        match sets {
            Some(sets) => sets.iter().any(|set| set.rtype == Type::DNSKEY),
            None => self.zone.is_signed(),
        }
    }

    /// Makes the next version as the loader does, from all of its records.
    fn rebuild(self) -> Result<Zone, ChangeError> {
        let apex = self.zone.apex();
        let mut records = Records::with_capacity(self.zone.bytes());
        let unchanged =
            self.zone.nodes().filter(|node| !self.drafts.contains_key(node.relative_owner()));
        let unchanged = unchanged.map(|node| (node.relative_owner(), sets_of(Some(node))));
        let drafts =
            self.drafts.iter().filter(|(_, draft)| draft.exists).map(|(relative, draft)| {
                (&**relative, draft.sets.clone().unwrap_or_else(|| sets_of(draft.old)))
            });
        for (relative, sets) in unchanged.chain(drafts) {
            let owner = [relative, apex].concat();
            push_sets(&mut records, &owner, &sets).map_err(ChangeError::too_large(&owner))?;
        }
        let refuse = |rtype, rule| ChangeError::new(apex, rtype, rule);
        let name = Name::from_wire(apex).map_err(|_| refuse(Type::SOA, ChangeRule::TooLarge))?;
        build(&name, &records, self.zone.seed).map_err(|error| match error {
            BuildError::NoSoa => refuse(Type::SOA, ChangeRule::NoSoa),
            BuildError::NotAlone(..) | BuildError::TooLarge => {
                refuse(Type::ANY, ChangeRule::TooLarge)
            }
            BuildError::NoNsec3 => refuse(Type::NSEC3PARAM, ChangeRule::NoNsec3),
        })
    }

    /// Makes the next version of the present one's shards and the changed nodes.
    fn assemble(self) -> Result<Zone, TooLarge> {
        let zone = self.zone;
        let is_signed = self.is_signed();
        let mut changes = Vec::with_capacity(self.drafts.len());
        let mut apex_node = zone.apex_node.clone();
        for (relative_owner, draft) in &self.drafts {
            let mut octets = Vec::new();
            if draft.exists {
                draft.write(relative_owner, is_signed, &mut octets)?;
            }
            let old = draft.old.map_or(&[][..], |node| node.octets());
            if octets == old {
                continue;
            }
            if relative_owner.is_empty() {
                apex_node = ApexNode::new(&octets);
                continue;
            }
            let new = draft.exists.then_some(octets);
            changes.push(NodeChange { relative_owner, hash: draft.hash, old: draft.old, new });
        }
        let added = changes.iter().filter(|it| it.old.is_none()).count();
        let removed = changes.iter().filter(|it| it.new.is_none()).count();
        let names = zone.names as usize + added - removed;
        let present = zone.directory.layout();
        let layout = present.after_change(names);
        let directory = match layout.shards() == present.shards() {
            true => zone.directory_with(&changes, layout)?,
            false => zone.directory_anew(&changes, layout)?,
        };
        let apex_octets = apex_node.clone();
        let apex = apex_octets.node();
        let proofs_fit = Proofs::fit(zone.proofs.as_deref(), apex);
        let proofs = zone.proofs.as_deref().filter(|_| proofs_fit).map(|proofs| {
            let below = changes.iter().map(|change| (change.old, change.new_node()));
            Box::new(proofs.with(below.chain([(Some(zone.apex_node()), Some(apex))])))
        });
        let order = match zone.order.get() {
            Some(_) => zone.order_with(&changes),
            None => OnceLock::new(),
        };
        let apex = (zone.apex.clone(), zone.seed);
        let new_alias = |draft: &NodeDraft<'_>| draft.flags & node_flag::ALIAS != 0;
        let has_aliases = zone.has_aliases || self.drafts.values().any(new_alias);
        let next = Zone::new(apex, apex_node, (directory, names))?;
        let next = Zone { proofs, order, has_aliases, ..next };
        if proofs_fit { Ok(next) } else { next.with_proofs() }
    }
}

impl Zone {
    /// The same shards but for those of some nodes.
    fn directory_with(
        &self,
        changes: &[NodeChange<'_>],
        layout: Layout,
    ) -> Result<Directory, TooLarge> {
        let mut by_shard: BTreeMap<u32, Vec<&NodeChange<'_>>> = BTreeMap::new();
        for change in changes {
            by_shard.entry(layout.shard_of(change.hash)).or_default().push(change);
        }
        let mut writer = ShardWriter::default();
        let mut shards = BTreeMap::new();
        for (index, changes) in by_shard {
            if let [change] = &changes[..]
                && let Some(shard) = self.shard_with(index, change, layout)
            {
                shards.insert(index, shard);
                continue;
            }
            let replaced: BTreeSet<usize> =
                changes.iter().filter_map(|it| Some(it.old?.address())).collect();
            let kept = self.directory.nodes_of(index);
            let kept = kept.filter(|(_, node)| !replaced.contains(&node.address()));
            let mut nodes: Vec<(u32, &[u8])> =
                kept.map(|(tag, node)| (tag, node.octets())).collect();
            for change in changes {
                if let Some(new) = &change.new {
                    nodes.push(((change.hash ^ hidden_by(new[0])) as u32, new));
                }
            }
            shards.insert(index, writer.make(layout.slot_mask, &nodes)?);
        }
        self.directory.with_replaced(shards, layout)
    }

    /// The shard of a node that comes or changes, if its slots stay where they are.
    fn shard_with(
        &self,
        index: u32,
        change: &NodeChange<'_>,
        layout: Layout,
    ) -> Option<Arc<[Word]>> {
        let new = change.new.as_deref()?;
        let tag = (change.hash ^ hidden_by(new[0])) as u32;
        let shard = self.directory.whole_shard(index);
        let is_same = layout == self.directory.layout();
        is_same.then(|| shard.with_node(layout.slot_mask, change.old, (tag, new))).flatten()
    }

    /// Shards of another layout.
    fn directory_anew(
        &self,
        changes: &[NodeChange<'_>],
        layout: Layout,
    ) -> Result<Directory, TooLarge> {
        let replaced: BTreeSet<usize> =
            changes.iter().filter_map(|change| Some(change.old?.address())).collect();
        let mut builder = DirectoryBuilder::new(layout);
        let mut name = LookupName::default();
        for node in self.nodes().skip(1).filter(|node| !replaced.contains(&node.address())) {
            let owner = OwnerName::new(node.relative_owner(), self.apex())?;
            name.set(owner.as_wire(), self.seed);
            builder.push(name.hash(0) ^ hidden_by(node.flags()), |out| {
                out.extend_from_slice(node.octets());
                Ok::<_, TooLarge>(())
            })?;
        }
        for change in changes {
            let Some(new) = &change.new else { continue };
            builder.push(change.hash ^ hidden_by(new[0]), |out| {
                out.extend_from_slice(new);
                Ok::<_, TooLarge>(())
            })?;
        }
        builder.finish()
    }

    /// The order of names after some changes.
    fn order_with(&self, changes: &[NodeChange<'_>]) -> OnceLock<Box<super::Sorted>> {
        let mut forms: Vec<(Vec<u8>, Change)> = changes
            .iter()
            .filter_map(|change| {
                let what = match (&change.old, &change.new) {
                    (None, Some(_)) => Change::Insert,
                    (Some(_), None) => Change::Remove,
                    _ => return None,
                };
                Some((SortForm::new(change.relative_owner).as_octets().to_vec(), what))
            })
            .collect();
        forms.sort_by(|a, b| a.0.cmp(&b.0));
        let forms: Vec<_> = forms.iter().map(|(form, what)| (&form[..], *what)).collect();
        match forms.is_empty() {
            true => self.order.clone(),
            false => self
                .order
                .get()
                .map(|order| Box::new(order.with(&forms)))
                .map_or_else(OnceLock::new, Into::into),
        }
    }
}
