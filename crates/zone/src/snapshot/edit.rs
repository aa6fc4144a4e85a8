//! A zone's next version: [`Zone::with`].
//!
//! 1. *Sets*: the sets of each changed owner, and the serial.
//! 2. *Rules*: what the records of one name must keep to.
//! 3. *Nodes*: which names come to exist or to vanish, empty non-terminals among them.
//! 4. *Cuts*: what lies below a delegation or DNAME that came or went.
//! 5. *Shards*: those of the changed nodes are written anew.
//!
//! The names at work are *drafts*: nodes of the next version. A name without a draft stays as it
//! is. A change of one set makes drafts of its owner and the apex, and of what lies between them
//! if the owner comes or goes.

use super::change::{ChangeError, ChangeRule, ChangeSet, Serial, SetChange, TTL_MAX};
use super::change::{is_greater, serial_of};
use super::diff::{Diff, DiffWriter};
use super::node::{NodeWriter, node_flag};
use super::record_set::{RecordSet, sets_of, write_sets};
use super::sort_form::{OwnerName, SortForm};
use super::{HIDDEN, Node, Zone};
use crate::lookup_name::LookupName;
use crate::rules::{OwnerKind, binding_rule};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use zonda_wire::{Type, name};

/// Flags that depend on the sets of a name.
const OF_SETS: u8 = node_flag::CUT | node_flag::DNAME | node_flag::NSEC3_ONLY | node_flag::ALIAS;

/// The node of a name in the next version.
pub(super) struct NodeDraft<'a> {
    /// The hash of the name.
    pub(super) hash: u64,
    /// The node of the present version.
    pub(super) old: Option<Node<'a>>,
    /// The sets of the next version; `None` when they are those of the present one.
    pub(super) sets: Option<Vec<RecordSet<'a>>>,
    /// The number of names one label longer that exist.
    pub(super) children: u32,
    /// Whether the name exists.
    pub(super) exists: bool,
    /// The flags of the next version, but for [`node_flag::HAS_CHILDREN`].
    pub(super) flags: u8,
}

impl NodeDraft<'_> {
    /// Whether the name has records.
    fn has_records(&self) -> bool {
        match &self.sets {
            Some(sets) => !sets.is_empty(),
            None => self.old.is_some_and(|node| !node.is_empty_non_terminal()),
        }
    }

    /// Whether the name has records of a type.
    fn has(&self, rtype: Type) -> bool {
        match &self.sets {
            Some(sets) => sets.iter().any(|set| set.rtype == rtype),
            None => self.old.is_some_and(|node| node.set(rtype).is_some()),
        }
    }

    /// Whether the name has records, and all are NSEC3 records and their signatures.
    fn has_only_nsec3(&self) -> bool {
        let is_nsec3 = |set: &RecordSet<'_>| set.covered == Type::NSEC3;
        match &self.sets {
            Some(sets) => !sets.is_empty() && sets.iter().all(is_nsec3),
            None => self.has_records() && sets_of(self.old).iter().all(is_nsec3),
        }
    }

    /// Which of delegation and DNAME the name is.
    fn cut_flags(&self) -> u8 {
        self.flags & (node_flag::CUT | node_flag::DNAME)
    }

    /// Returns the flags about zone cuts of the node in the present version.
    fn old_cut_flags(&self) -> u8 {
        self.old.map_or(0, |node| node.flags() & (node_flag::CUT | node_flag::DNAME))
    }

    /// Appends the node of the next version to a buffer.
    pub(super) fn write(
        &self,
        relative_owner: &[u8],
        is_signed: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), super::TooLarge> {
        let mut writer = NodeWriter::begin(out, self.flags, relative_owner);
        match &self.sets {
            Some(sets) => write_sets(sets, is_signed, &mut writer)?,
            None => write_sets(&sets_of(self.old), is_signed, &mut writer)?,
        }
        writer.end(self.children);
        Ok(())
    }
}

/// A zone's next version while it is made.
pub(super) struct Edit<'a> {
    /// The present version.
    pub(super) zone: &'a Zone,
    /// The drafts by the labels of their names above the apex.
    pub(super) drafts: BTreeMap<Box<[u8]>, NodeDraft<'a>>,
}

impl Zone {
    /// The next version of the zone, which shares with this one all that does not change, and what
    /// tells it from this one. This version stays as it is.
    ///
    /// # Errors
    /// When a change breaks a rule; then none takes effect.
    pub fn with(&self, changes: &ChangeSet) -> Result<(Self, Diff), ChangeError> {
        let mut edit = Edit { zone: self, drafts: BTreeMap::new() };
        for change in &changes.sets {
            edit.change(change)?;
        }
        edit.forget_unchanged();
        edit.set_serial(changes.serial);
        edit.check()?;
        let diff = edit.diff()?;
        edit.update_existence();
        edit.update_flags();
        edit.finish().map(|zone| (zone, diff))
    }
}

impl<'a> Edit<'a> {
    /// The draft of a name.
    fn draft(&mut self, relative_owner: &[u8]) -> &mut NodeDraft<'a> {
        let zone = self.zone;
        self.drafts.entry(relative_owner.into()).or_insert_with(|| {
            let mut name = LookupName::default();
            // What has a draft is a name of the zone: at most 255 octets.
            let owner = OwnerName::new(relative_owner, zone.apex()).ok();
            name.set(owner.as_ref().map_or(&[0], OwnerName::as_wire), zone.seed);
            let old = zone.any_node(&name);
            NodeDraft {
                hash: name.hash(0),
                old,
                sets: None,
                children: old.map_or(0, |node| node.child_count()),
                exists: old.is_some(),
                flags: old.map_or(0, |node| node.flags() & !node_flag::HAS_CHILDREN),
            }
        })
    }

    /// Takes over the change of one set.
    fn change(&mut self, change: &'a SetChange) -> Result<(), ChangeError> {
        let (owner, rtype) = (change.owner(), change.rtype());
        let refuse = |rule| ChangeError { owner: owner.clone(), rtype, rule };
        let lower = owner.to_lowercase();
        if !name::is_at_or_below(lower.as_wire(), self.zone.apex()) {
            return Err(refuse(ChangeRule::OutsideZone));
        }
        let is_of_all_types = matches!(change, SetChange::RemoveName { .. });
        if !is_of_all_types && (rtype.is_meta() || rtype == Type(0)) {
            return Err(refuse(ChangeRule::NotData));
        }
        let relative = &lower.as_wire()[..lower.as_wire().len() - self.zone.apex().len()];
        let new = match change {
            SetChange::Put { ttl, .. } if *ttl > TTL_MAX => {
                return Err(refuse(ChangeRule::TtlTooLong));
            }
            SetChange::Put { ttl, data, .. } => {
                Some(RecordSet::new(rtype, *ttl, data).map_err(refuse)?)
            }
            _ => None,
        };
        let draft = self.draft(relative);
        let old = draft.old;
        let sets = draft.sets.get_or_insert_with(|| sets_of(old));
        match (new, change) {
            (Some(new), _) => match sets.binary_search_by_key(&new.key(), RecordSet::key) {
                Ok(at) => sets[at] = new,
                Err(at) => sets.insert(at, new),
            },
            (None, SetChange::RemoveName { .. }) => sets.clear(),
            (None, SetChange::RemoveSignatures { covered, .. }) => {
                sets.retain(|set| set.rtype != Type::RRSIG || set.covered != *covered);
            }
            (None, _) => sets.retain(|set| set.rtype != rtype),
        }
        Ok(())
    }

    /// Drops the drafts whose sets are what they were.
    fn forget_unchanged(&mut self) {
        self.drafts
            .retain(|_, draft| draft.sets.as_ref().is_some_and(|it| *it != sets_of(draft.old)));
    }

    /// Sets the serial in the SOA record.
    fn set_serial(&mut self, serial: Serial) {
        let is_changed = !self.drafts.is_empty();
        let present = self.zone.serial();
        if serial == Serial::Keep || (serial == Serial::Exactly(present) && !is_changed) {
            return;
        }
        if !is_changed && matches!(serial, Serial::Bump(_)) {
            return;
        }
        let apex = self.draft(&[]);
        let old = apex.old;
        let sets = apex.sets.get_or_insert_with(|| sets_of(old));
        let Some(soa) = sets.iter_mut().find(|set| set.rtype == Type::SOA) else { return };
        let put = serial_of(&soa.rdatas[0]);
        let wanted = match serial {
            Serial::Keep => return,
            Serial::Exactly(serial) => serial,
            Serial::Bump(_) if is_greater(put, present) => return,
            Serial::Bump(policy) => policy.next(present),
        };
        let mut data = soa.rdatas[0].to_vec();
        let at = data.len().saturating_sub(20);
        if let Some(octets) = data[at..].first_chunk_mut() {
            *octets = wanted.to_be_bytes();
        }
        soa.rdatas[0] = Cow::Owned(data);
    }

    /// Refuses records that may not stand together.
    fn check(&self) -> Result<(), ChangeError> {
        let apex_wire = self.zone.apex();
        for (relative, draft) in &self.drafts {
            let Some(sets) = &draft.sets else { continue };
            let is_apex = relative.is_empty();
            let owner = OwnerKind { is_apex, is_wildcard: relative.starts_with(b"\x01*") };
            let counts = sets.iter().map(|set| (set.rtype, set.rdatas.len()));
            let error =
                |rtype, rule| ChangeError::new(&[relative, apex_wire].concat(), rtype, rule);
            if let Some(rule) = binding_rule(owner, counts) {
                return Err(error(rule.rtype(), ChangeRule::Owner(rule)));
            }
            if is_apex && !draft.has(Type::SOA) {
                return Err(error(Type::SOA, ChangeRule::NoSoa));
            }
        }
        Ok(())
    }

    /// What tells the next version from the present one.
    fn diff(&self) -> Result<Diff, ChangeError> {
        let apex = self.zone.apex();
        let mut changed: Vec<_> = self.drafts.iter().collect();
        changed.sort_by(|a, b| SortForm::new(a.0).as_octets().cmp(SortForm::new(b.0).as_octets()));
        let mut writer = DiffWriter::new(self.zone.serial());
        for (relative, draft) in changed {
            let owner = [relative, apex].concat();
            let new = draft.sets.as_deref().unwrap_or_default();
            writer
                .owner(&owner, &sets_of(draft.old), new)
                .map_err(ChangeError::too_large(&owner))?;
        }
        Ok(writer.finish())
    }

    /// Has names that got records come to exist, and names without records or names below them
    /// vanish, up to the first ancestor that stays.
    fn update_existence(&mut self) {
        let changed: Vec<Box<[u8]>> = self.drafts.keys().cloned().collect();
        for relative in &changed {
            self.update_from(relative, true);
        }
        for relative in &changed {
            self.update_from(relative, false);
        }
    }

    /// Updates one name and its ancestors: the ancestors that come to exist, or those that vanish.
    fn update_from(&mut self, relative_owner: &[u8], exists: bool) {
        let mut relative = relative_owner;
        while let Some(parent) = parent(relative) {
            let draft = self.draft(relative);
            let has_cause = draft.has_records() || draft.children > 0;
            if draft.exists == exists || has_cause != exists {
                return;
            }
            draft.exists = exists;
            let above = self.draft(parent);
            above.children =
                if exists { above.children + 1 } else { above.children.saturating_sub(1) };
            if relative.starts_with(b"\x01*") {
                above.flags &= !node_flag::WILDCARD_CHILD;
                above.flags |= if exists { node_flag::WILDCARD_CHILD } else { 0 };
            }
            relative = parent;
        }
    }

    /// Sets the flags of all drafts, and makes drafts of the names below delegations and DNAMEs
    /// that came or went.
    fn update_flags(&mut self) {
        let mut are_cuts_changed = false;
        for (relative, draft) in &mut self.drafts {
            draft.flags &= !OF_SETS;
            if draft.exists {
                let is_cut = !relative.is_empty() && draft.has(Type::NS);
                draft.flags |= if is_cut { node_flag::CUT } else { 0 };
                draft.flags |= if draft.has(Type::DNAME) { node_flag::DNAME } else { 0 };
                draft.flags |= if draft.has(Type::ALIAS) { node_flag::ALIAS } else { 0 };
                let is_hidden = draft.children == 0 && draft.has_only_nsec3();
                draft.flags |= if is_hidden { node_flag::NSEC3_ONLY } else { 0 };
            }
            are_cuts_changed |= draft.cut_flags() != draft.old_cut_flags();
        }
        if are_cuts_changed {
            self.load_below_changed_cuts();
        }
        let names: Vec<Box<[u8]>> = self.drafts.keys().cloned().collect();
        for relative in names.iter().filter(|relative| !relative.is_empty()) {
            let is_new = self.draft(relative).old.is_none();
            if is_new || are_cuts_changed {
                let below = self.below_flags(relative);
                let draft = self.draft(relative);
                draft.flags &= !(node_flag::BELOW_CUT | node_flag::BELOW_DNAME);
                draft.flags |= below;
            }
        }
    }

    /// Whether a name lies below a delegation or DNAME of the next version: the topmost counts.
    fn below_flags(&self, relative_owner: &[u8]) -> u8 {
        let mut below = 0;
        let mut relative = relative_owner;
        while let Some(above) = parent(relative) {
            relative = above;
            let cut = match self.drafts.get(above) {
                Some(draft) if draft.exists => draft.cut_flags(),
                Some(_) => 0,
                None => self.zone.node_of(above).map_or(0, |node| node.flags()),
            };
            match cut & (node_flag::CUT | node_flag::DNAME) {
                0 => {}
                at if at & node_flag::CUT != 0 => below = node_flag::BELOW_CUT,
                _ => below = node_flag::BELOW_DNAME,
            }
        }
        below
    }

    /// Makes drafts of all names below changed delegations and DNAMEs.
    fn load_below_changed_cuts(&mut self) {
        // Names below which there are some without drafts.
        let mut seen: BTreeMap<&[u8], u32> = BTreeMap::new();
        for (relative, _) in self.drafts.iter().filter(|(_, draft)| draft.exists) {
            if let Some(above) = parent(relative) {
                *seen.entry(above).or_default() += 1;
            }
        }
        let mut incomplete: BTreeSet<&[u8]> = BTreeSet::new();
        for (relative, draft) in &self.drafts {
            if draft.children > seen.get(&**relative).copied().unwrap_or(0) {
                let mut name: &[u8] = relative;
                incomplete.insert(name);
                while let Some(above) = parent(name) {
                    incomplete.insert(above);
                    name = above;
                }
            }
        }
        let is_changed = |relative: &[u8], draft: &NodeDraft<'_>| {
            draft.cut_flags() != draft.old_cut_flags() && incomplete.contains(relative)
        };
        let cuts: BTreeSet<Box<[u8]>> = self
            .drafts
            .iter()
            .filter(|(relative, draft)| !relative.is_empty() && is_changed(relative, draft))
            .map(|(relative, _)| relative.clone())
            .collect();
        for relative in self.zone.names_below(&cuts) {
            self.draft(&relative);
        }
    }
}

impl Zone {
    /// The node of a name that a question may find.
    fn node_of(&self, relative_owner: &[u8]) -> Option<Node<'_>> {
        let owner = OwnerName::new(relative_owner, self.apex()).ok()?;
        self.node(&LookupName::new(owner.as_wire(), self.seed), 0)
    }

    /// The names below any of `cuts`. Reads the order of names if there is one, else all nodes.
    fn names_below(&self, cuts: &BTreeSet<Box<[u8]>>) -> Vec<Box<[u8]>> {
        if cuts.is_empty() {
            return Vec::new();
        }
        let relative =
            |owner: &OwnerName| owner.as_wire()[..owner.as_wire().len() - self.apex().len()].into();
        if let Some(order) = self.order.get() {
            let below = cuts.iter().flat_map(|cut| {
                let form = SortForm::new(cut);
                let names = order.from(form.as_octets());
                let names: Vec<Box<[u8]>> = names
                    .take_while(|name| name.starts_with(form.as_octets()))
                    .map(|name| relative(&OwnerName::from_form(name, self.apex())))
                    .collect();
                names
            });
            return below.filter(|name| !cuts.contains(name)).collect();
        }
        let is_below = |relative: &[u8]| {
            let mut name = relative;
            while let Some(above) = parent(name).filter(|above| !above.is_empty()) {
                if cuts.contains(above) {
                    return true;
                }
                name = above;
            }
            false
        };
        self.nodes()
            .map(|node| node.relative_owner())
            .filter(|it| is_below(it))
            .map(Into::into)
            .collect()
    }
}

/// The name without its first label, both as labels above the apex; `None` for the apex.
fn parent(relative_owner: &[u8]) -> Option<&[u8]> {
    let len = usize::from(*relative_owner.first()?);
    relative_owner.get(1 + len..)
}

/// What the hash of a node's name is changed by.
pub(super) fn hidden_by(flags: u8) -> u64 {
    if flags & node_flag::NSEC3_ONLY == 0 { 0 } else { HIDDEN }
}
