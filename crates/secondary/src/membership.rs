//! Which zones are members of which catalog, where several list them (rfc9432#5).
//!
//! # Invariants
//! - A zone is a member of one catalog at most: of the first that listed it, until that lists it no
//!   more, or until both agree that it moves.
//! - A zone that something else of this server stands for is no member.

use crate::catalog::{Catalog, CatalogFault, Listing, ListingChange, MemberId, push_records};
use std::collections::{HashMap, HashSet};
use zonda_wire::Name;
use zonda_zone::records::TooManyRecords;
use zonda_zone::{Records, Zone};

/// Members that a version of a catalog may always remove or reset, whatever their share, unless
/// none of several is left: a catalog that was lost is empty, and few are emptied by intent.
pub const REMOVALS_FREE: usize = 10;

/// A zone that is a member of a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The name of the catalog, in lower case.
    pub catalog: Name,
    /// The member's id in the catalog.
    pub id: MemberId,
    /// The groups of the member.
    pub groups: Vec<Box<[u8]>>,
}

/// What becomes of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberStep {
    /// The zone becomes a member.
    Add(Member),
    /// The zone is a member of another catalog or of other groups, with the state that it has.
    Change(Member),
    /// The zone is a member under another id: all that is kept of it is dropped.
    Reset(Member),
    /// No catalog lists the zone any more: all that is kept of it is dropped.
    Remove,
    /// Something else of this server stands for the zone, or the catalog is not followed any more:
    /// what is kept of the zone stays.
    Yield,
}

impl MemberStep {
    /// Returns what the zone is from then on, if it is a member.
    #[must_use]
    pub const fn member(&self) -> Option<&Member> {
        match self {
            Self::Add(next) | Self::Change(next) | Self::Reset(next) => Some(next),
            Self::Remove | Self::Yield => None,
        }
    }
}

/// The steps of some zones, each by its name in lower case.
pub type MemberSteps = Vec<(Name, MemberStep)>;

/// Why a version of a catalog is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionFault {
    /// The version is broken.
    Broken(CatalogFault),
    /// The version would remove or reset more members than it may: so many of so many.
    TooManyRemovals(usize, usize),
    /// The version lists more zones than it may: so many, and how many it may list.
    TooManyMembers(usize, usize),
}

/// The bounds on a version of a catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionLimits {
    /// The share of the members that it may remove or reset, in percent; none: any.
    pub removals_max: Option<u8>,
    /// The number of zones that it may list.
    pub members_max: usize,
}

impl std::fmt::Display for VersionFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Broken(fault) => fault.fmt(f),
            Self::TooManyRemovals(removals, members) => write!(
                f,
                "it removes or resets {removals} of {members} members: if that is right, `zonda \
                 zone confirm` takes it, as would a greater `removals-max` of the [[catalog]]"
            ),
            Self::TooManyMembers(zones, most) => write!(
                f,
                "it lists {zones} zones and may list {most}: if that is right, raise `members-max` \
                 of the [[catalog]] and reload"
            ),
        }
    }
}

impl std::error::Error for VersionFault {}

/// All catalogs, and the zones that are their members.
#[derive(Default)]
pub struct Membership {
    /// The catalogs, of which the first ones go first where several list a zone anew.
    catalogs: Vec<Catalog>,
    members: HashMap<Name, Member>,
    /// The number of members of each catalog.
    counts: HashMap<Name, usize>,
    /// The zones that a catalog lists and that are members of none: something else of this server
    /// stands for them.
    waiting: HashSet<Name>,
}

impl Membership {
    /// Puts catalogs in an order, those that are new without members; all other catalogs are
    /// forgotten, and [`steps`](Self::steps) tells what becomes of their members.
    pub fn order(&mut self, catalogs: &[Name]) {
        let mut known = std::mem::take(&mut self.catalogs);
        for apex in catalogs {
            let place = known.iter().position(|it| it.apex() == apex);
            self.catalogs
                .push(place.map_or_else(|| Catalog::new(apex), |at| known.swap_remove(at)));
        }
        for zone in std::mem::take(&mut self.waiting) {
            self.note_waiting(&zone);
        }
    }

    /// Returns the catalog of a zone, whose name is in lower case, and what it is there.
    #[must_use]
    pub fn member(&self, zone: &Name) -> Option<&Member> {
        self.members.get(zone)
    }

    /// Returns all zones that are members.
    pub fn members(&self) -> impl Iterator<Item = (&Name, &Member)> {
        self.members.iter()
    }

    /// Returns the number of zones that are members of a catalog.
    #[must_use]
    pub fn count(&self, catalog: &Name) -> usize {
        self.counts.get(catalog).copied().unwrap_or(0)
    }

    /// Returns the catalog of a name.
    #[must_use]
    pub fn catalog(&self, name: &Name) -> Option<&Catalog> {
        self.catalogs.iter().find(|catalog| catalog.apex() == name)
    }

    /// Returns the zones that a catalog lists and that are members of none, since something else of
    /// this server stood for them when that was looked at last.
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = &Name> {
        self.waiting.iter()
    }

    /// Notes whether a zone is listed and is no member.
    fn note_waiting(&mut self, zone: &Name) {
        let is_listed = || self.catalogs.iter().any(|catalog| catalog.listing(zone).is_some());
        match !self.members.contains_key(zone) && is_listed() {
            true => _ = self.waiting.insert(zone.clone()),
            false => _ = self.waiting.remove(zone),
        }
    }

    /// Returns all zones that are members, or that a catalog lists.
    #[must_use]
    pub fn zones(&self) -> Vec<Name> {
        let listed = self.catalogs.iter().flat_map(Catalog::zones).cloned();
        let mut zones: Vec<Name> = listed.chain(self.members.keys().cloned()).collect();
        zones.sort_unstable_by(|one, other| one.as_wire().cmp(other.as_wire()));
        zones.dedup();
        zones
    }

    /// Takes over the members of a catalog that were kept from one start to the next, unless they
    /// are members of another one.
    pub fn restore(&mut self, catalog: &Name, records: &Records) -> MemberSteps {
        let Some(place) = self.catalogs.iter().position(|it| it.apex() == catalog) else {
            return Vec::new();
        };
        let changes = self.catalogs[place].changes_of_records(records).unwrap_or_default();
        self.catalogs[place].take(&changes);
        let zones = zones_of(&changes);
        zones.iter().for_each(|zone| self.note_waiting(zone));
        self.steps(zones, |_, _| false)
    }

    /// Takes a version of a catalog, and returns what becomes of the zones whose listing it has
    /// changed. `former` is the version that was taken last; `is_taken` tells, of a zone and
    /// whether it is a member, whether something else of this server stands for it.
    ///
    /// # Errors
    /// When the version is broken, lists more zones or removes or resets more members than its
    /// limits let it: all is as it was then. A member that `is_served` tells of is removed as well
    /// where the next version has it in groups of which `is_served` does not.
    pub fn take(
        &mut self,
        catalog: &Name,
        (former, next): (Option<&Zone>, &Zone),
        limits: VersionLimits,
        (is_taken, is_served): (impl Fn(&Name, bool) -> bool, impl Fn(&Member) -> bool),
    ) -> Result<MemberSteps, VersionFault> {
        let Some(place) = self.catalogs.iter().position(|it| it.apex() == catalog) else {
            return Ok(Vec::new());
        };
        let changes = self.catalogs[place].changes(former, next).map_err(VersionFault::Broken)?;
        let listed = self.catalogs[place].len();
        self.catalogs[place].take(&changes);
        let next = self.catalogs[place].len();
        // A version that lists no more than the former one is taken in any case.
        if next > limits.members_max.max(listed) {
            self.take_back(place, changes);
            return Err(VersionFault::TooManyMembers(next, limits.members_max));
        }
        let steps = self.steps(zones_of(&changes), is_taken);
        let members = self.count(catalog);
        let is_loss = |(zone, step): &&(Name, MemberStep)| {
            let Some(own) = self.members.get(zone) else { return false };
            let is_of = own.catalog == *catalog
                || matches!(step, MemberStep::Reset(next) if next.catalog == *catalog);
            is_of
                && match step {
                    MemberStep::Remove | MemberStep::Reset(_) => true,
                    MemberStep::Change(next) => is_served(own) && !is_served(next),
                    MemberStep::Add(_) | MemberStep::Yield => false,
                }
        };
        let removals = steps.iter().filter(is_loss).count();
        let is_emptied = removals > 0 && members > 1 && self.count_after(catalog, &steps) == 0;
        let free = if is_emptied { 0 } else { REMOVALS_FREE };
        let share = |percent: u8| members.saturating_mul(usize::from(percent)) / 100;
        if limits.removals_max.is_some_and(|it| removals > share(it).max(free)) {
            self.take_back(place, changes);
            return Err(VersionFault::TooManyRemovals(removals, members));
        }
        zones_of(&changes).iter().for_each(|zone| self.note_waiting(zone));
        Ok(steps)
    }

    /// The number of members of a catalog once steps are carried out.
    fn count_after(&self, catalog: &Name, steps: &MemberSteps) -> usize {
        let of = |member: &Member| member.catalog == *catalog;
        let was = steps.iter().filter(|(zone, _)| self.members.get(zone).is_some_and(of)).count();
        let is = steps.iter().filter(|(_, step)| step.member().is_some_and(of)).count();
        (self.count(catalog) + is).saturating_sub(was)
    }

    /// Has a catalog list what it listed before it took changes.
    fn take_back(&mut self, place: usize, changes: Vec<ListingChange>) {
        let back: Vec<_> = changes.into_iter().map(reversed).collect();
        self.catalogs[place].take(&back);
    }

    /// Returns what becomes of some zones, by what the catalogs list now. Nothing is done yet.
    pub fn steps(
        &self,
        zones: impl IntoIterator<Item = Name>,
        is_taken: impl Fn(&Name, bool) -> bool,
    ) -> MemberSteps {
        let step = |zone: Name| {
            let step = self.step(&zone, &is_taken)?;
            Some((zone, step))
        };
        let mut steps: MemberSteps = zones.into_iter().filter_map(step).collect();
        steps.sort_by(|(one, _), (other, _)| one.as_wire().cmp(other.as_wire()));
        steps.dedup_by(|(one, _), (other, _)| one == other);
        steps
    }

    /// What becomes of a zone, if anything does.
    fn step(&self, zone: &Name, is_taken: &impl Fn(&Name, bool) -> bool) -> Option<MemberStep> {
        let own = self.members.get(zone);
        if is_taken(zone, own.is_some()) {
            return own.map(|_| MemberStep::Yield);
        }
        let Some(own) = own else { return self.first(zone).map(MemberStep::Add) };
        let Some(catalog) = self.catalog(&own.catalog) else {
            return Some(self.first(zone).map_or(MemberStep::Yield, MemberStep::Change));
        };
        let Some((id, listing)) = catalog.listing(zone) else {
            return Some(self.first(zone).map_or(MemberStep::Remove, MemberStep::Reset));
        };
        // Both catalogs have to agree (rfc9432#4.3.1).
        let moved = listing.new_catalog.as_ref().and_then(|to| {
            let (id, listing) = self.catalog(to)?.listing(zone)?;
            Some(member(to, id, listing))
        });
        let next = moved.unwrap_or_else(|| member(&own.catalog, id, listing));
        match () {
            () if next == *own => None,
            () if next.id != own.id => Some(MemberStep::Reset(next)), // rfc9432#5.4
            () => Some(MemberStep::Change(next)),
        }
    }

    /// What a zone is in the first catalog that lists it.
    fn first(&self, zone: &Name) -> Option<Member> {
        self.catalogs.iter().find_map(|catalog| {
            let (id, listing) = catalog.listing(zone)?;
            Some(member(catalog.apex(), id, listing))
        })
    }

    /// Does what becomes of a zone.
    pub fn carry_out(&mut self, zone: &Name, step: &MemberStep) {
        let next = step.member();
        if let Some(next) = next {
            *self.counts.entry(next.catalog.clone()).or_default() += 1;
        }
        let former = match next {
            Some(next) => self.members.insert(zone.clone(), next.clone()),
            None => self.members.remove(zone),
        };
        if let Some(count) = former.and_then(|former| self.counts.get_mut(&former.catalog)) {
            *count -= 1;
        }
        self.note_waiting(zone);
    }

    /// The records of the members of a catalog, which [`restore`](Self::restore) takes.
    ///
    /// # Errors
    /// When they take more than 4 GiB.
    pub fn records(&self, catalog: &Name) -> Result<Records, TooManyRecords> {
        let mut records = Records::default();
        for (zone, member) in self.members.iter().filter(|(_, it)| it.catalog == *catalog) {
            push_records(catalog, (&member.id, zone, &member.groups), &mut records)?;
        }
        Ok(records)
    }
}

/// What a zone is in a catalog.
fn member(catalog: &Name, id: &MemberId, listing: &Listing) -> Member {
    Member { catalog: catalog.clone(), id: id.clone(), groups: listing.groups.clone() }
}

/// The zones that changes are about.
fn zones_of(changes: &[ListingChange]) -> Vec<Name> {
    let listings = changes.iter().flat_map(|change| change.former.iter().chain(&change.now));
    listings.map(|listing| listing.zone.clone()).collect()
}

/// The change back.
fn reversed(change: ListingChange) -> ListingChange {
    let ListingChange { id, former, now } = change;
    ListingChange { id, former: now, now: former }
}
