//! The filters that members pass while a plan is made.
//!
//! What remains behind a filter are members, each with its share of the queries that come to it.
//! The filter `load` alone makes a share less than the whole: the rest goes to the next members in
//! the order of `failover`, of `in-order` or of the client's sites, if one of these follows, and to
//! all members that remain otherwise.

use crate::ANSWERS_MAX;
use crate::alias_table::AliasTable;
use crate::compile::MemberState;
use crate::explain::{Explained, PassedStep, Step};
use crate::plan::{Decision, Group, Options, Pick, SiteGroups};
use crate::pool::{Answers, Filter, LoadMarks, Order, Pool};
use crate::site_map::SiteMap;
use crate::slots::Slots;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Microseconds by which a latency may be above the least, besides a quarter of that.
const LATENCY_SLACK_MICROS: u32 = 1000;
/// The unit of weights that a share is multiplied with: shares down to a thousandth count.
const SHARE_UNIT: f64 = 1024.0;

/// What the members that can answer for a type, and their states, are while a plan is made. Members
/// are named by their places among the options.
pub(crate) struct Compilation<'a> {
    pub pool: &'a Pool,
    pub options: &'a Options,
    pub states: &'a [MemberState],
    /// What is explained, if anything is.
    pub explained: Option<&'a RefCell<Explained>>,
}

/// A member that remains.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Candidate {
    /// The place of the member among the options.
    option: u32,
    /// The share that the member takes of the queries that come to it by its weight, up to 1.
    share: f64,
}

/// The members that remain behind a filter.
#[derive(Clone, Debug)]
struct Remaining {
    members: Vec<Candidate>,
    /// Whether weights and shares together are the parts of all queries that the members get, as
    /// some of them pass on what they do not take: they add up to 1, or less if all pass on some.
    is_passed_on: bool,
}

impl Remaining {
    /// Members that take all queries that come to them.
    fn whole(members: &[u32]) -> Self {
        let candidate = |option: &u32| Candidate { option: *option, share: 1.0 };
        Self { members: members.iter().map(candidate).collect(), is_passed_on: false }
    }

    /// Whether any member takes less than all queries that come to it.
    fn sheds(&self) -> bool {
        self.members.iter().any(|member| member.share < 1.0)
    }
}

impl Compilation<'_> {
    /// Passes members that can answer through the filters.
    pub fn decide(&self, mut members: Vec<u32>) -> Decision {
        let is_held = |member: &u32| self.states[self.number(*member)].is_held;
        self.prefer(Step::Held, &mut members, |member| !is_held(member));
        self.prefer(Step::Weight, &mut members, |member| self.weight(*member) > 0);
        let mut remaining = Remaining::whole(&members);
        let filters = &self.pool.filters;
        for (place, filter) in filters.iter().enumerate() {
            if let Filter::Sites(map) = filter {
                let behind = &filters[place + 1..];
                return match self.explained {
                    None => self.by_sites(map, &remaining, behind),
                    Some(explained) => self.sites_of_client(map, remaining, (behind, explained)),
                };
            }
            self.pass(filter, &mut remaining);
        }
        Decision::Group(self.group(remaining))
    }

    /// Leaves the members that meet a condition, if there is one.
    fn prefer(&self, step: Step, members: &mut Vec<u32>, meets: impl Fn(&u32) -> bool) {
        let found: Vec<u32> = members.iter().copied().filter(meets).collect();
        if !found.is_empty() && found.len() < members.len() {
            self.note(step, members.iter(), found.iter());
            *members = found;
        }
    }

    /// The number of a member in its pool.
    fn number(&self, option: u32) -> usize {
        self.options.options[option as usize].member as usize
    }

    /// The weight that a member has at present.
    fn weight(&self, option: u32) -> u64 {
        let number = self.number(option);
        u64::from(self.pool.members[number].weight) * u64::from(self.states[number].part)
    }

    /// The weight by which queries come to a member: the order `weighted` and those by a hash have
    /// the one that is configured, the rest of them the same for all members.
    fn weight_of_order(&self, option: u32) -> u64 {
        match self.pool.order {
            Order::RoundRobin | Order::AsConfigured => {
                u64::from(self.states[self.number(option)].part)
            }
            Order::Weighted | Order::HashClient { .. } | Order::HashName => self.weight(option),
        }
    }

    /// Passes members through a filter that does not look at the client.
    fn pass(&self, filter: &Filter, remaining: &mut Remaining) {
        let before = remaining.members.clone();
        let step = match filter {
            Filter::Failover => {
                self.pass_to_next_priority(remaining);
                Step::Failover
            }
            Filter::Latency => {
                let Some(least) = self.keep_soonest(&mut remaining.members) else { return };
                Step::Latency(least)
            }
            Filter::Load(marks) => match self.shed(*marks, &mut remaining.members) {
                Some(shares) => Step::Load(shares),
                None => return,
            },
            Filter::Sites(_) => return, // it looks at the client
        };
        let option = |it: &Candidate| it.option;
        let (before, after) = (before.iter().map(option), remaining.members.iter().map(option));
        let (before, after): (Vec<u32>, Vec<u32>) = (before.collect(), after.collect());
        self.note(step, before.iter(), after.iter());
    }

    /// Leaves the members whose latency is little above the least, which it returns; all of them if
    /// none has a latency.
    fn keep_soonest(&self, members: &mut Vec<Candidate>) -> Option<u32> {
        let latency = |member: &Candidate| self.states[self.number(member.option)].latency;
        let least = members.iter().filter_map(latency).min()?;
        let most = least.saturating_add(least / 4).saturating_add(LATENCY_SLACK_MICROS);
        members.retain(|member| latency(member).is_some_and(|latency| latency <= most));
        Some(least)
    }

    /// Has members take less that are loaded, and those nothing that have too much to do; all if
    /// all of them have. Returns the shares that are less than the whole, in percent, by the number
    /// of the member; none if there are none.
    fn shed(&self, marks: LoadMarks, members: &mut Vec<Candidate>) -> Option<Vec<(u32, u8)>> {
        let taken = |member: &Candidate| {
            let load = self.states[self.number(member.option)].load;
            load.map_or(1.0, |load| marks.share_taken(load))
        };
        if members.iter().all(|member| taken(member) >= 1.0) {
            return None;
        }
        let percent = |member: &Candidate| {
            let taken = taken(member);
            (taken < 1.0).then(|| (self.number(member.option) as u32, (taken * 100.0) as u8))
        };
        let shares = members.iter().filter_map(percent).collect();
        if members.iter().any(|member| taken(member) > 0.0) {
            members.iter_mut().for_each(|member| member.share *= taken(member));
            members.retain(|member| member.share > 0.0);
        }
        Some(shares)
    }

    /// Leaves the members of the lowest priority number. Where they do not take all queries, the
    /// next ones get the rest.
    fn pass_to_next_priority(&self, remaining: &mut Remaining) {
        let is_in_order = self.pool.order == Order::AsConfigured && remaining.sheds();
        let rank = |member: &Candidate| {
            let priority = self.pool.members[self.number(member.option)].priority;
            (priority, if is_in_order { member.option } else { 0 })
        };
        self.pass_on(remaining, rank);
    }

    /// Leaves the members of the lowest rank. As far as none of them takes all queries, the members
    /// of the next rank get the rest.
    fn pass_on<R: Ord>(&self, remaining: &mut Remaining, rank: impl Fn(&Candidate) -> R) {
        let mut groups = BTreeMap::<R, Vec<Candidate>>::new();
        for member in &remaining.members {
            groups.entry(rank(member)).or_default().push(*member);
        }
        if !remaining.sheds() {
            remaining.members = groups.into_values().next().unwrap_or_default();
            return;
        }
        let (mut left, mut members) = (1.0, Vec::new());
        for group in groups.into_values() {
            let (whole, taken) = (self.whole(&group), largest_share(&group));
            let share = |it: &Candidate| it.share * left * taken / whole;
            members.extend(group.iter().map(|it| Candidate { share: share(it), ..*it }));
            left *= 1.0 - taken;
            if left <= 0.0 {
                break;
            }
        }
        members.sort_unstable_by_key(|member| member.option); // as they are configured
        *remaining = Remaining { members, is_passed_on: true };
    }

    /// The sum of the members' weights, each as far as the member takes queries; above 0.
    fn whole(&self, members: &[Candidate]) -> f64 {
        let weights = members.iter().map(|it| self.weight_of_order(it.option) as f64 * it.share);
        let sum: f64 = weights.sum();
        if sum > 0.0 { sum } else { 1.0 } // members without a weight, of which any may answer
    }

    /// The part of the queries that members take which come to them, at most 1.
    fn part_taken(&self, remaining: &Remaining) -> f64 {
        match remaining.is_passed_on {
            true => self.whole(&remaining.members).min(1.0),
            false => largest_share(&remaining.members),
        }
    }

    /// Notes a step for an explanation.
    fn note<'m>(
        &self,
        step: Step,
        before: impl Iterator<Item = &'m u32>,
        after: impl Iterator<Item = &'m u32>,
    ) {
        let Some(explained) = self.explained else { return };
        let number = |member: &u32| self.number(*member) as u32;
        let (before, after) = (before.map(number).collect(), after.map(number).collect());
        explained.borrow_mut().steps.push(PassedStep { step, before, after });
    }

    /// Notes a step that comes before the filters.
    pub fn note_before_filters(&self, step: Step, before: &[u32], after: &[u32]) {
        self.note(step, before.iter(), after.iter());
    }

    /// The members at some sites; none if no member is there.
    fn at_sites(&self, sites: &[u16], remaining: &Remaining) -> Option<Remaining> {
        let is_there =
            |member: &&Candidate| self.site(member).is_some_and(|site| sites.contains(&site));
        let members: Vec<Candidate> = remaining.members.iter().filter(is_there).copied().collect();
        (!members.is_empty()).then_some(Remaining { members, ..*remaining })
    }

    /// The site that a member is at.
    fn site(&self, member: &Candidate) -> Option<u16> {
        self.pool.members[self.number(member.option)].site
    }

    /// Whether all members are at one site, or at none: whatever sites a client prefers.
    fn are_at_one_site(&self, members: &[Candidate]) -> bool {
        let first = members.first().and_then(|member| self.site(member));
        members.iter().all(|member| self.site(member) == first)
    }

    /// Chooses among the members at the sites that the explained client prefers.
    fn sites_of_client(
        &self,
        map: &SiteMap,
        remaining: Remaining,
        (behind, explained): (&[Filter], &RefCell<Explained>),
    ) -> Decision {
        let pass_all = |mut remaining: Remaining| {
            behind.iter().for_each(|filter| self.pass(filter, &mut remaining));
            remaining
        };
        let options = |it: &Remaining| it.members.iter().map(|it| it.option).collect::<Vec<_>>();
        let before = options(&remaining);
        if self.are_at_one_site(&remaining.members) {
            self.note(Step::OneSite, before.iter(), before.iter());
            return Decision::Group(self.group(pass_all(remaining)));
        }
        let (tiers, scope) = map.lookup(explained.borrow().client.address);
        let sites = |tier: &u32| map.tiers()[*tier as usize].to_vec();
        let found = tiers.iter().filter_map(|tier| self.at_sites(&sites(tier), &remaining));
        let mut found: Vec<Remaining> = found.collect();
        if found.is_empty() {
            found.push(remaining);
        }
        let tiers: Vec<Vec<u16>> = tiers.iter().map(sites).collect();
        let silent = Compilation { explained: None, ..*self };
        let without_notes = |mut remaining: Remaining| {
            behind.iter().for_each(|filter| silent.pass(filter, &mut remaining));
            remaining
        };
        let first = without_notes(found[0].clone());
        let percent = (self.part_taken(&first) * 100.0) as u8;
        let after = options(&found[0]);
        self.note(Step::Sites { tiers, scope, percent }, before.iter(), after.iter());
        explained.borrow_mut().note_scope(scope);
        let mut merged = pass_all(found[0].clone());
        let mut is_shed = self.part_taken(&merged) < 1.0;
        for next in found.into_iter().skip(1).map(without_notes) {
            if !is_shed {
                break;
            }
            is_shed = self.part_taken(&next) < 1.0;
            merged.members.extend(next.members);
        }
        let is_of_one = merged.members.len() == first.members.len();
        let group = self.group(merged);
        if !is_of_one {
            explained.borrow_mut().percents.clear(); // each tier has shares of its own
        }
        Decision::Group(group)
    }

    /// Groups members by the tiers of sites, each behind the filters that follow.
    fn by_sites(&self, map: &Arc<SiteMap>, remaining: &Remaining, behind: &[Filter]) -> Decision {
        let group = |mut remaining: Remaining| {
            behind.iter().for_each(|filter| self.pass(filter, &mut remaining));
            self.group(remaining)
        };
        let rest = group(remaining.clone());
        if self.are_at_one_site(&remaining.members) {
            return Decision::Group(rest);
        }
        let mut by_site = BTreeMap::<u16, Vec<Candidate>>::new();
        for member in &remaining.members {
            if let Some(site) = self.site(member) {
                by_site.entry(site).or_default().push(*member);
            }
        }
        let tier = |sites: &[u16]| {
            let of_tier = sites.iter().filter_map(|site| by_site.get(site)).flatten();
            let mut members: Vec<Candidate> = of_tier.copied().collect();
            members.sort_unstable_by_key(|member| member.option); // as they are configured
            (!members.is_empty()).then(|| group(Remaining { members, ..*remaining }))
        };
        let tiers = map.tiers().iter().map(|sites| tier(sites)).collect();
        Decision::Sites(SiteGroups { map: Arc::clone(map), tiers, rest })
    }

    /// Prepares the choice among the members that the filters have left.
    fn group(&self, mut remaining: Remaining) -> Group {
        let Self { pool, options, .. } = self;
        if pool.order == Order::AsConfigured && remaining.sheds() && !remaining.is_passed_on {
            self.pass_on(&mut remaining, |member| member.option);
        }
        let taken = (self.part_taken(&remaining) * f64::from(Group::ALL)) as u32;
        let unit = if remaining.sheds() { SHARE_UNIT } else { 1.0 };
        let members = remaining.members;
        let weight = |it: &Candidate| {
            (self.weight_of_order(it.option) as f64 * it.share * unit).round() as u64
        };
        let weights = || members.iter().map(weight).collect::<Vec<u64>>();
        let whole: u64 = members.iter().map(weight).sum();
        if let Some(explained) = self.explained.filter(|_| unit > 1.0 && whole > 0) {
            let percent = |weight: &u64| ((weight * 100 + whole / 2) / whole) as u8;
            explained.borrow_mut().percents = weights().iter().map(percent).collect();
        }
        let drawn = |weights: Vec<u64>| match weights.iter().all(|weight| *weight == weights[0]) {
            true => Pick::Turn,
            false => AliasTable::new(&weights).map_or(Pick::Turn, Pick::Weight),
        };
        let slots = || {
            let identity = |option: u32| pool.members[self.number(option)].identity;
            let all: Vec<u64> = (0..options.options.len() as u32).map(identity).collect();
            let of = |member: &Candidate| (identity(member.option), weight(member).max(1));
            Slots::new(&all, &members.iter().map(of).collect::<Vec<_>>())
        };
        let pick = match pool.order {
            _ if members.len() == 1 => Pick::First, // whatever client asks
            Order::RoundRobin => drawn(weights()),
            Order::Weighted => AliasTable::new(&weights()).map_or(Pick::Turn, Pick::Weight),
            Order::HashClient { v4, v6 } => Pick::Client(slots(), v4, v6),
            Order::HashName => Pick::Name(slots()),
            Order::AsConfigured if remaining.is_passed_on => drawn(weights()),
            Order::AsConfigured => Pick::First,
        };
        let count = match pool.answers {
            Answers::All => members.len(),
            Answers::Some(count) => usize::from(count).clamp(1, ANSWERS_MAX).min(members.len()),
        };
        let members = members.iter().map(|it| options.options[it.option as usize]).collect();
        Group { members, pick, count, taken }
    }
}

/// The largest share of members: what a group of them passes on, none of them takes.
fn largest_share(members: &[Candidate]) -> f64 {
    members.iter().map(|member| member.share).fold(0.0, f64::max).min(1.0)
}
