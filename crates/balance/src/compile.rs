//! From a pool and the states of its members to a plan.

use crate::ANSWERS_MAX;
use crate::alias_table::AliasTable;
use crate::explain::{Explained, PassedStep, Step};
use crate::plan::{
    Decision, EndWithout, Group, Opt, OptKind, Options, Pick, PoolPlan, SHORT, SiteGroups, View,
};
use crate::pool::{Answers, Filter, Order, Pool, Records, WhenAllDown};
use crate::site_map::SiteMap;
use crate::slots::Slots;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Microseconds by which a latency may be above the least, besides a quarter of that.
const LATENCY_SLACK_MICROS: u32 = 1000;

/// The state of a member, as far as a choice depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberState {
    /// Whether the member may answer.
    pub is_up: bool,
    /// Whether it was up when any member of the pool last was.
    pub was_up: bool,
    /// The part of its weight that it has at present, in units of 2⁻¹⁶: less than all of it for
    /// some time after it has come back.
    pub part: u32,
    /// The latency of its checks, microseconds; none before one has succeeded.
    pub latency: Option<u32>,
}

impl MemberState {
    /// The whole of a member's weight.
    pub const WHOLE: u32 = 1 << 16;
    /// A member that is up, with all of its weight.
    pub const UP: Self = Self { is_up: true, was_up: true, part: Self::WHOLE, latency: None };
    /// A member that is down.
    pub const DOWN: Self = Self { is_up: false, was_up: false, part: Self::WHOLE, latency: None };
}

impl Pool {
    /// Compiles the pool for the states of its members, by number. What it answers has this TTL in
    /// seconds. `former` is an earlier plan of the same pool, which lends what stays the same.
    ///
    /// # Panics
    /// When there are fewer states than members.
    #[must_use]
    pub fn compile(&self, states: &[MemberState], ttl: u32, former: Option<&PoolPlan>) -> PoolPlan {
        let views = self.records.iter().map(|records| {
            let lent = former.and_then(|plan| plan.view(records.rtype));
            let options = match lent {
                Some(view) => Arc::clone(&view.options),
                None => Arc::new(self.options(records)),
            };
            let decision = self.decide(&options, states, None);
            View { rtype: records.rtype, options, decision }
        });
        let mut views: Vec<View> = views.collect();
        let first = (!views.is_empty()).then(|| views.remove(0));
        PoolPlan { ttl, first, more: views.into() }
    }

    /// The members that can answer for a type.
    pub(crate) fn options(&self, records: &Records) -> Options {
        let (mut octets, mut options) = (Vec::new(), Vec::new());
        for (number, (member, rdata)) in self.members.iter().zip(&records.rdatas).enumerate() {
            let kind = match (member.pool, rdata) {
                (Some(_), Some(_)) => continue, // a pool without such records
                (Some(pool), None) => OptKind::Pool(pool),
                (None, Some(rdata)) if rdata.len() <= SHORT => {
                    let mut octets = [0; SHORT];
                    octets[..rdata.len()].copy_from_slice(rdata);
                    OptKind::Short(rdata.len() as u8, octets)
                }
                (None, Some(rdata)) => {
                    let start = octets.len() as u32; // the configuration is far below 4 GiB
                    octets.extend_from_slice(rdata);
                    OptKind::Long(start, rdata.len() as u16) // RDATA is at most that long
                }
                (None, None) => continue,
            };
            options.push(Opt { member: number as u32, kind });
        }
        Options { octets: octets.into(), options: options.into() }
    }

    /// Decides all that the states of the members decide; for an explanation, also what the client
    /// decides, and notes each step.
    pub(crate) fn decide(
        &self,
        options: &Options,
        states: &[MemberState],
        explained: Option<&RefCell<Explained>>,
    ) -> Decision {
        if options.options.is_empty() {
            return Decision::Without(EndWithout::NoData); // as for any type that a name lacks
        }
        let all = 0..options.options.len() as u32;
        let state = |option: u32| states[options.options[option as usize].member as usize];
        let up: Vec<u32> = all.clone().filter(|option| state(*option).is_up).collect();
        let compilation = Compilation { pool: self, options, states, explained };
        let all_members: Vec<u32> = all.clone().collect();
        compilation.note(Step::Up, &all_members, &up);
        let up_is_empty = up.is_empty();
        let members = match (up_is_empty, self.when_all_down) {
            (false, _) => up,
            (true, WhenAllDown::All) => all.collect(),
            (true, WhenAllDown::LastHealthy) => {
                let last: Vec<u32> = all.clone().filter(|it| state(*it).was_up).collect();
                if last.is_empty() { all.collect() } else { last }
            }
            (true, WhenAllDown::Pool(pool)) => return Decision::Pool(pool),
            (true, WhenAllDown::ServFail) => return Decision::Without(EndWithout::ServFail),
            (true, WhenAllDown::NoData) => return Decision::Without(EndWithout::NoData),
            (true, WhenAllDown::Refused) => return Decision::Without(EndWithout::Refused),
        };
        if up_is_empty {
            compilation.note(Step::AllDown(self.when_all_down), &[], &members);
        }
        compilation.decide(members)
    }
}

/// What the members that can answer for a type, and their states, are while a plan is made. Members
/// are named by their places among the options.
struct Compilation<'a> {
    pool: &'a Pool,
    options: &'a Options,
    states: &'a [MemberState],
    /// What is explained, if anything is.
    explained: Option<&'a RefCell<Explained>>,
}

impl Compilation<'_> {
    /// The number of a member in its pool.
    fn number(&self, option: u32) -> usize {
        self.options.options[option as usize].member as usize
    }

    /// The weight that a member has at present.
    fn weight(&self, option: u32) -> u64 {
        let number = self.number(option);
        u64::from(self.pool.members[number].weight) * u64::from(self.states[number].part)
    }

    /// Passes members that can answer through the filters.
    fn decide(&self, mut members: Vec<u32>) -> Decision {
        if members.iter().any(|member| self.weight(*member) > 0) {
            let before = members.clone();
            members.retain(|member| self.weight(*member) > 0);
            if members.len() < before.len() {
                self.note(Step::Weight, &before, &members);
            }
        }
        let filters = &self.pool.filters;
        for (place, filter) in filters.iter().enumerate() {
            match (filter, self.explained) {
                (Filter::Sites(map), None) => {
                    return self.by_sites(map, &members, &filters[place + 1..]);
                }
                (Filter::Sites(map), Some(explained)) => {
                    self.keep_sites_of_client(map, &mut members, explained);
                }
                (filter, _) => self.pass(filter, &mut members),
            }
        }
        Decision::Group(self.group(members))
    }

    /// Passes members through a filter that does not look at the client.
    fn pass(&self, filter: &Filter, members: &mut Vec<u32>) {
        let before = members.clone();
        let step = match filter {
            Filter::Failover => {
                self.keep_first_priority(members);
                Step::Failover
            }
            Filter::Latency => {
                let Some(least) = self.keep_soonest(members) else { return };
                Step::Latency(least)
            }
            Filter::Sites(_) => return, // it looks at the client
        };
        self.note(step, &before, members);
    }

    /// Leaves the members whose latency is little above the least, which it returns; all of them if
    /// none has a latency.
    fn keep_soonest(&self, members: &mut Vec<u32>) -> Option<u32> {
        let latency = |member: &u32| self.states[self.number(*member)].latency;
        let least = members.iter().filter_map(latency).min()?;
        let most = least.saturating_add(least / 4).saturating_add(LATENCY_SLACK_MICROS);
        members.retain(|member| latency(member).is_some_and(|latency| latency <= most));
        Some(least)
    }

    /// Notes a step for an explanation.
    fn note(&self, step: Step, before: &[u32], after: &[u32]) {
        let Some(explained) = self.explained else { return };
        let numbers = |members: &[u32]| members.iter().map(|it| self.number(*it) as u32).collect();
        let (before, after) = (numbers(before), numbers(after));
        explained.borrow_mut().steps.push(PassedStep { step, before, after });
    }

    /// Leaves the members at the sites that the explained client prefers.
    fn keep_sites_of_client(
        &self,
        map: &SiteMap,
        members: &mut Vec<u32>,
        explained: &RefCell<Explained>,
    ) {
        let before = members.clone();
        let site = |member: &u32| self.pool.members[self.number(*member)].site;
        let first = members.first().and_then(site);
        if members.iter().all(|member| site(member) == first) {
            return self.note(Step::OneSite, &before, members);
        }
        let (tiers, scope) = map.lookup(explained.borrow().client.address);
        let at = |tier: &u32| {
            let sites = &map.tiers()[*tier as usize];
            let is_there = |member: &&u32| site(member).is_some_and(|site| sites.contains(&site));
            members.iter().filter(is_there).copied().collect::<Vec<u32>>()
        };
        let found = tiers.iter().map(at).find(|members| !members.is_empty());
        if let Some(found) = found {
            *members = found;
        }
        let tiers = tiers.iter().map(|tier| map.tiers()[*tier as usize].to_vec()).collect();
        self.note(Step::Sites { tiers, scope }, &before, members);
        let mut explained = explained.borrow_mut();
        explained.scope = explained.scope.max(scope);
    }

    /// Leaves the members of the lowest priority number.
    fn keep_first_priority(&self, members: &mut Vec<u32>) {
        let priority = |member: &u32| self.pool.members[self.number(*member)].priority;
        let first = members.iter().map(priority).min();
        members.retain(|member| Some(priority(member)) == first);
    }

    /// Groups members by the tiers of sites, each behind the filters that follow.
    fn by_sites(&self, map: &Arc<SiteMap>, members: &[u32], filters: &[Filter]) -> Decision {
        let site = |member: &u32| self.pool.members[self.number(*member)].site;
        let group = |mut members: Vec<u32>| {
            filters.iter().for_each(|filter| self.pass(filter, &mut members));
            self.group(members)
        };
        let rest = group(members.to_vec());
        let first = members.first().and_then(site);
        if members.iter().all(|member| site(member) == first) {
            return Decision::Group(rest); // whatever sites a client prefers
        }
        let mut by_site = BTreeMap::<u16, Vec<u32>>::new();
        for member in members {
            if let Some(site) = site(member) {
                by_site.entry(site).or_default().push(*member);
            }
        }
        let tier = |sites: &[u16]| {
            let of_tier = sites.iter().filter_map(|site| by_site.get(site)).flatten();
            let mut members: Vec<u32> = of_tier.copied().collect();
            members.sort_unstable(); // as they are configured
            (!members.is_empty()).then(|| group(members))
        };
        let tiers = map.tiers().iter().map(|sites| tier(sites)).collect();
        Decision::Sites(SiteGroups { map: Arc::clone(map), tiers, rest })
    }

    /// Prepares the choice among the members that the filters have left.
    fn group(&self, members: Vec<u32>) -> Group {
        let Self { pool, options, .. } = self;
        let slots = || {
            let identity = |option: u32| pool.members[self.number(option)].identity;
            let all: Vec<u64> = (0..options.options.len() as u32).map(identity).collect();
            let of = |member: &u32| (identity(*member), self.weight(*member).max(1));
            Slots::new(&all, &members.iter().map(of).collect::<Vec<_>>())
        };
        let pick = match pool.order {
            _ if members.len() == 1 => Pick::First, // whatever client asks
            Order::RoundRobin => Pick::Turn,
            Order::Weighted => {
                let weights: Vec<u64> = members.iter().map(|it| self.weight(*it)).collect();
                AliasTable::new(&weights).map_or(Pick::Turn, Pick::Weight) // none: all have 0
            }
            Order::HashClient { v4, v6 } => Pick::Client(slots(), v4, v6),
            Order::HashName => Pick::Name(slots()),
            Order::AsConfigured => Pick::First,
        };
        let count = match pool.answers {
            Answers::All => members.len(),
            Answers::Some(count) => usize::from(count).clamp(1, ANSWERS_MAX).min(members.len()),
        };
        let members = members.iter().map(|member| options.options[*member as usize]).collect();
        Group { members, pick, count }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::geography::{Geography, Site};
    use crate::site_map::MapSource;
    use crate::{ClientNetwork, Dice, Member, Outcome};
    use std::collections::BTreeSet;
    use zonda_geo::SiteId;
    use zonda_wire::Type;

    /// A pool of members with these weights and priorities, whose addresses end with their numbers.
    fn pool(order: Order, members: &[(u32, u32)]) -> Pool {
        let member = |(number, (weight, priority)): (usize, &(u32, u32))| Member {
            identity: number as u64,
            weight: *weight,
            priority: *priority,
            pool: None,
            site: None,
        };
        let rdata = |number| Some(vec![192, 0, 2, number as u8].into_boxed_slice());
        Pool {
            members: members.iter().enumerate().map(member).collect(),
            filters: Vec::new(),
            order,
            answers: Answers::Some(1),
            when_all_down: WhenAllDown::All,
            records: vec![Records {
                rtype: Type::A,
                rdatas: (0..members.len()).map(rdata).collect(),
            }],
        }
    }

    /// The last octets of the addresses that one query gets.
    fn answer(plan: &PoolPlan, client: &str, dice: &mut Dice) -> Vec<u8> {
        let client = ClientNetwork::of_address(client.parse().unwrap());
        match plan.view(Type::A).unwrap().choose(&client, b"\x03www\0", dice) {
            Outcome::Members(choice) => (0..choice.count()).map(|at| choice.rdata(at)[3]).collect(),
            other => panic!("{other:?}"),
        }
    }

    /// The first members that many queries get.
    fn seen(pool: &Pool, states: &[MemberState]) -> BTreeSet<u8> {
        let (plan, mut dice) = (pool.compile(states, 30, None), Dice::new(1));
        (0..1000).map(|_| answer(&plan, "198.51.100.1", &mut dice)[0]).collect()
    }

    const UP: MemberState = MemberState::UP;
    const DOWN: MemberState = MemberState::DOWN;

    #[test]
    fn members_that_are_down_do_not_answer() {
        for order in [Order::RoundRobin, Order::Weighted] {
            let pool = pool(order, &[(1, 0), (1, 0), (1, 0)]);
            assert_eq!(seen(&pool, &[UP, DOWN, UP]), BTreeSet::from([0, 2]));
        }
    }

    #[test]
    fn a_member_without_weight_answers_only_when_no_other_is_up() {
        for order in [Order::RoundRobin, Order::Weighted, Order::HashName] {
            let pool = pool(order, &[(0, 0), (5, 0)]);
            assert_eq!(seen(&pool, &[UP, UP]), BTreeSet::from([1]));
            assert_eq!(seen(&pool, &[UP, DOWN]), BTreeSet::from([0]));
        }
    }

    #[test]
    fn members_of_the_lowest_priority_that_is_up_share_the_queries() {
        let mut pool = pool(Order::RoundRobin, &[(1, 1), (1, 1), (1, 2)]);
        pool.filters = vec![Filter::Failover];
        assert_eq!(seen(&pool, &[UP, UP, UP]), BTreeSet::from([0, 1]));
        assert_eq!(seen(&pool, &[DOWN, UP, UP]), BTreeSet::from([1]));
        assert_eq!(seen(&pool, &[DOWN, DOWN, UP]), BTreeSet::from([2]));
    }

    #[test]
    fn when_all_are_down_the_pool_does_what_its_policy_says() {
        let mut pool = pool(Order::RoundRobin, &[(1, 0), (1, 0)]);
        let states = [DOWN, MemberState { was_up: true, ..DOWN }];
        assert_eq!(seen(&pool, &states), BTreeSet::from([0, 1]));
        pool.when_all_down = WhenAllDown::LastHealthy;
        assert_eq!(seen(&pool, &states), BTreeSet::from([1]));
        for (policy, wanted) in [
            (WhenAllDown::Pool(7), "Pool(7, 0)"),
            (WhenAllDown::ServFail, "Without(ServFail)"),
            (WhenAllDown::NoData, "Without(NoData)"),
            (WhenAllDown::Refused, "Without(Refused)"),
        ] {
            pool.when_all_down = policy;
            let plan = pool.compile(&states, 30, None);
            let client = ClientNetwork::of_address([192, 0, 2, 1].into());
            let outcome = plan.view(Type::A).unwrap().choose(&client, b"\0", &mut Dice::default());
            assert_eq!(format!("{outcome:?}"), wanted);
        }
    }

    #[test]
    fn a_type_that_no_member_has_is_nodata_whatever_the_policy() {
        let mut pool = pool(Order::RoundRobin, &[(1, 0)]);
        pool.when_all_down = WhenAllDown::ServFail;
        pool.records.push(Records { rtype: Type::AAAA, rdatas: vec![None] });
        for state in [UP, DOWN] {
            let plan = pool.compile(&[state], 30, None);
            let client = ClientNetwork::of_address([192, 0, 2, 1].into());
            let view = plan.view(Type::AAAA).unwrap();
            let outcome = view.choose(&client, b"\0", &mut Dice::default());
            assert_eq!(format!("{outcome:?}"), "Without(NoData)");
        }
    }

    #[test]
    fn a_pool_without_records_of_a_type_is_no_member_for_it() {
        let mut pool = pool(Order::AsConfigured, &[(1, 0), (1, 0)]);
        pool.members[0].pool = Some(7);
        pool.records[0].rdatas[0] = Some(Box::default());
        assert_eq!(seen(&pool, &[UP, UP]), BTreeSet::from([1]));
    }

    #[test]
    fn a_client_keeps_its_member_and_its_neighbours_share_it() {
        let pool = pool(Order::HashClient { v4: 24, v6: 56 }, &[(1, 0); 8]);
        let (plan, mut dice) = (pool.compile(&[UP; 8], 30, None), Dice::new(1));
        let first = answer(&plan, "192.0.2.1", &mut dice);
        assert!((0..100).all(|last| answer(&plan, &format!("192.0.2.{last}"), &mut dice) == first));
        let all = (0..250).map(|net| answer(&plan, &format!("10.0.{net}.1"), &mut dice)[0]);
        assert_eq!(all.collect::<BTreeSet<_>>().len(), 8);
    }

    #[test]
    fn a_choice_depends_on_as_much_of_the_client_as_decides_it() {
        let pool = pool(Order::HashClient { v4: 24, v6: 56 }, &[(1, 0), (1, 0)]);
        for (states, wanted) in [([UP, UP], 24), ([UP, DOWN], 0)] {
            let plan = pool.compile(&states, 30, None);
            let client = ClientNetwork::of_address([192, 0, 2, 1].into());
            let view = plan.view(Type::A).unwrap();
            match view.choose(&client, b"\0", &mut Dice::default()) {
                Outcome::Members(choice) => assert_eq!(choice.scope, wanted),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn several_answers_are_different_members() {
        for order in [Order::RoundRobin, Order::Weighted, Order::HashName, Order::AsConfigured] {
            for (answers, wanted) in [(Answers::Some(3), 3), (Answers::Some(32), 5)] {
                let mut pool = pool(order, &[(1, 0), (1000, 0), (1, 0), (1, 0), (1, 0)]);
                pool.answers = answers;
                let (plan, mut dice) = (pool.compile(&[UP; 5], 30, None), Dice::new(1));
                for _ in 0..100 {
                    let answer = answer(&plan, "192.0.2.1", &mut dice);
                    assert_eq!(answer.len(), wanted);
                    assert_eq!(answer.iter().collect::<BTreeSet<_>>().len(), wanted);
                }
            }
        }
    }

    #[test]
    fn a_part_of_a_weight_gets_that_part_of_the_queries() {
        let pool = pool(Order::Weighted, &[(1, 0), (1, 0)]);
        let quarter = MemberState { part: MemberState::WHOLE / 4, ..UP };
        let (plan, mut dice) = (pool.compile(&[UP, quarter], 30, None), Dice::new(1));
        let second = (0..50_000).filter(|_| answer(&plan, "192.0.2.1", &mut dice) == [1]).count();
        // A binomial distribution of mean 10,000 and standard deviation 89.
        assert!((9_700..10_300).contains(&second), "{second}");
    }

    #[test]
    fn members_that_are_about_as_fast_as_the_fastest_share_the_queries() {
        let mut pool = pool(Order::RoundRobin, &[(1, 0); 4]);
        pool.filters = vec![Filter::Latency];
        let of = |latency| MemberState { latency, ..UP };
        let states = [of(Some(20_000)), of(Some(25_900)), of(Some(27_000)), of(None)];
        assert_eq!(seen(&pool, &states), BTreeSet::from([0, 1]));
        assert_eq!(seen(&pool, &[of(None); 4]).len(), 4);
        let down = [DOWN, states[1], states[2], states[3]];
        assert_eq!(seen(&pool, &down), BTreeSet::from([1, 2]));
    }

    /// A pool with two members at each of the sites 0 and 1, and one at none. The clients of
    /// 10.0.0.0/16 and 10.1.0.0/16 are at these sites.
    fn pool_at_sites(order: Order) -> Pool {
        let site = |name: &str| Site { name: name.into(), ..Site::default() };
        let network = |text: &str, site| (text.parse().unwrap(), SiteId(site));
        let geography = Arc::new(Geography {
            sites: vec![site("fra"), site("nyc")],
            networks: vec![network("10.0.0.0/16", 0), network("10.1.0.0/16", 1)],
            ..Geography::default()
        });
        let sites = vec![0, 1];
        let (by_place, by_distance, by_latency) = (true, false, false);
        let source = MapSource { geography, sites, by_place, by_distance, by_latency };
        let mut pool = pool(order, &[(1, 1), (1, 2), (1, 1), (1, 1), (1, 1)]);
        let sites = [Some(0), Some(0), Some(1), Some(1), None];
        for (member, site) in pool.members.iter_mut().zip(sites) {
            member.site = site;
        }
        pool.filters = vec![Filter::Sites(Arc::new(SiteMap::compile(source).unwrap()))];
        pool
    }

    /// The members that answer a client, and the scopes of the answers.
    fn answers_of(pool: &Pool, states: &[MemberState], client: &str) -> (BTreeSet<u32>, u8) {
        let (plan, mut dice) = (pool.compile(states, 30, None), Dice::new(1));
        let client = ClientNetwork::of_address(client.parse().unwrap());
        let (mut members, mut scope) = (BTreeSet::new(), 0);
        for _ in 0..100 {
            match plan.view(Type::A).unwrap().choose(&client, b"\0", &mut dice) {
                Outcome::Members(choice) => {
                    members.insert(choice.member(0));
                    scope = choice.scope;
                }
                other => panic!("{other:?}"),
            }
        }
        (members, scope)
    }

    #[test]
    fn a_client_gets_members_of_its_site_and_of_all_when_these_are_down() {
        let pool = pool_at_sites(Order::RoundRobin);
        assert_eq!(answers_of(&pool, &[UP; 5], "10.0.3.4"), (BTreeSet::from([0, 1]), 16));
        assert_eq!(answers_of(&pool, &[UP; 5], "10.1.3.4"), (BTreeSet::from([2, 3]), 16));
        assert_eq!(answers_of(&pool, &[UP; 5], "10.2.3.4").0.len(), 5);
        let down = [DOWN, DOWN, UP, UP, UP];
        assert_eq!(answers_of(&pool, &down, "10.0.3.4"), (BTreeSet::from([2, 3, 4]), 16));
        let one_site = [DOWN, DOWN, UP, UP, DOWN];
        assert_eq!(answers_of(&pool, &one_site, "10.0.3.4"), (BTreeSet::from([2, 3]), 0));
    }

    #[test]
    fn filters_behind_sites_pass_the_members_of_each_site() {
        let mut pool = pool_at_sites(Order::RoundRobin);
        pool.filters.push(Filter::Failover);
        assert_eq!(answers_of(&pool, &[UP; 5], "10.0.3.4").0, BTreeSet::from([0]));
        assert_eq!(
            answers_of(&pool, &[DOWN, UP, UP, UP, UP], "10.0.3.4").0,
            BTreeSet::from([1]),
            "of the client's site, whatever the others' priorities"
        );
        pool.filters.reverse();
        let states = [DOWN, UP, UP, UP, UP];
        assert_eq!(answers_of(&pool, &states, "10.0.3.4").0, BTreeSet::from([2, 3, 4]));
    }

    #[test]
    fn a_hash_among_members_of_a_site_depends_on_as_many_bits_as_either_needs() {
        let pool = pool_at_sites(Order::HashClient { v4: 24, v6: 56 });
        assert_eq!(answers_of(&pool, &[UP; 5], "10.0.3.4").1, 24);
        assert_eq!(answers_of(&pool, &[DOWN, UP, UP, UP, UP], "10.0.3.4").1, 16);
    }

    #[test]
    fn a_plan_of_other_states_shares_the_records() {
        let pool = pool(Order::RoundRobin, &[(1, 0), (1, 0)]);
        let first = pool.compile(&[UP, UP], 30, None);
        let next = pool.compile(&[UP, DOWN], 30, Some(&first));
        let options = |plan: &PoolPlan| Arc::clone(&plan.view(Type::A).unwrap().options);
        assert!(Arc::ptr_eq(&options(&first), &options(&next)));
    }
}
