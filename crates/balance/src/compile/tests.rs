//! What plans answer in which states.

#![allow(clippy::unwrap_used)]
use super::*;
use crate::geography::{Geography, Site};
use crate::plan::PoolPlan;
use crate::pool::{Answers, Filter, LoadMarks, Order};
use crate::site_map::MapSource;
use crate::site_map::SiteMap;
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
        records: vec![Records { rtype: Type::A, rdatas: (0..members.len()).map(rdata).collect() }],
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

/// The shares, in percent, of 100,000 queries that members get first.
fn shares(pool: &Pool, states: &[MemberState], client: &str) -> Vec<u32> {
    let (plan, mut dice) = (pool.compile(states, 30, None), Dice::new(1));
    let mut counts = vec![0; pool.members.len()];
    for _ in 0..100_000 {
        counts[usize::from(answer(&plan, client, &mut dice)[0])] += 1;
    }
    counts.iter().map(|count| (count + 500) / 1000).collect()
}

/// A member that is up, with a load in percent.
fn loaded(load: u32) -> MemberState {
    MemberState { load: Some(load), ..UP }
}

const LOAD: Filter = Filter::Load(LoadMarks { low: 60, high: 100 });

/// Shares that are off by at most one percent, which is above five standard deviations.
#[track_caller]
fn assert_shares(pool: &Pool, states: &[MemberState], wanted: &[u32]) {
    let seen = shares(pool, states, "10.0.3.4");
    let is_near = seen.iter().zip(wanted).all(|(seen, wanted)| seen.abs_diff(*wanted) <= 1);
    assert!(is_near, "seen {seen:?}, wanted {wanted:?}");
}

#[test]
fn a_loaded_member_passes_queries_on_to_the_others_in_proportion() {
    for order in [Order::RoundRobin, Order::Weighted] {
        let mut pool = pool(order, &[(1, 1), (1, 1), (1, 2)]);
        pool.filters = vec![LOAD];
        assert_shares(&pool, &[loaded(60), UP, loaded(10)], &[33, 33, 33]);
        assert_shares(&pool, &[loaded(80), UP, UP], &[20, 40, 40]);
        assert_shares(&pool, &[loaded(100), loaded(250), UP], &[0, 0, 100]);
        assert_shares(&pool, &[loaded(100), loaded(120), loaded(100)], &[33, 33, 33]);
    }
}

#[test]
fn what_a_group_sheds_goes_to_the_next_priority_or_the_next_in_order() {
    let mut pool = pool(Order::RoundRobin, &[(1, 1), (1, 1), (1, 2)]);
    pool.filters = vec![LOAD, Filter::Failover];
    assert_shares(&pool, &[UP, loaded(80), UP], &[67, 33, 0]);
    assert_shares(&pool, &[loaded(80), loaded(80), UP], &[25, 25, 50]);
    assert_shares(&pool, &[loaded(70), loaded(100), UP], &[75, 0, 25]);
    assert_shares(&pool, &[loaded(80), loaded(80), loaded(80)], &[33, 33, 33]);
    pool.filters = vec![Filter::Failover, LOAD];
    assert_shares(&pool, &[loaded(80), loaded(90), UP], &[67, 33, 0]);
    pool.order = Order::AsConfigured;
    pool.filters = vec![LOAD];
    assert_shares(&pool, &[UP, UP, UP], &[100, 0, 0]);
    assert_shares(&pool, &[loaded(80), loaded(80), UP], &[50, 25, 25]);
}

#[test]
fn what_a_site_sheds_goes_to_the_next_tier_of_the_client() {
    let mut pool = pool_at_sites(Order::RoundRobin);
    let is_near = |seen: Vec<u32>, wanted: [u32; 5]| {
        assert!(seen.iter().zip(wanted).all(|(a, b)| a.abs_diff(b) <= 1), "{seen:?} {wanted:?}");
    };
    pool.filters.insert(0, LOAD);
    let states = [loaded(80), loaded(80), UP, UP, UP];
    // There is one tier only, so that nothing takes what it sheds.
    is_near(shares(&pool, &states, "10.0.3.4"), [50, 50, 0, 0, 0]);
    is_near(shares(&pool, &states, "10.1.3.4"), [0, 0, 50, 50, 0]);
    let with_default = |site: &Filter| match site {
        Filter::Sites(map) => {
            let mut source = map.source().clone();
            let geography = Arc::make_mut(&mut source.geography);
            geography.default_site = Some(1);
            Filter::Sites(Arc::new(SiteMap::compile(source).unwrap()))
        }
        other => other.clone(),
    };
    pool.filters = pool.filters.iter().map(with_default).collect();
    is_near(shares(&pool, &states, "10.0.3.4"), [25, 25, 25, 25, 0]);
    let both = [loaded(80), loaded(80), loaded(80), loaded(90), UP];
    is_near(shares(&pool, &both, "10.0.3.4"), [38, 38, 17, 8, 0]);
}

#[test]
fn a_hash_moves_as_many_clients_as_a_member_sheds() {
    let mut pool = pool(Order::HashClient { v4: 24, v6: 56 }, &[(1, 0); 4]);
    pool.filters = vec![LOAD];
    let first = |states: &[MemberState]| {
        let (plan, mut dice) = (pool.compile(states, 30, None), Dice::new(1));
        let clients = (0..4000).map(|net| format!("10.{}.{}.1", net / 250, net % 250));
        clients.map(|client| answer(&plan, &client, &mut dice)[0]).collect::<Vec<u8>>()
    };
    let (all, shed) = (first(&[UP; 4]), first(&[loaded(80), UP, UP, UP]));
    let before = all.iter().filter(|member| **member == 0).count();
    let after = shed.iter().filter(|member| **member == 0).count();
    assert!((before * 45 / 100..before * 70 / 100).contains(&after), "{before} {after}");
    let moved = all.iter().zip(&shed).filter(|(all, shed)| **all != 0 && all != shed).count();
    assert!(moved < 200, "{moved} clients of other members moved");
}

#[test]
fn a_member_that_waits_answers_only_when_no_other_can() {
    let held = MemberState { is_held: true, ..UP };
    let mut pool = pool(Order::RoundRobin, &[(1, 1), (1, 2), (0, 3)]);
    pool.filters = vec![Filter::Failover];
    assert_eq!(seen(&pool, &[held, UP, UP]), BTreeSet::from([1]));
    assert_eq!(seen(&pool, &[held, DOWN, UP]), BTreeSet::from([2]));
    assert_eq!(seen(&pool, &[held, DOWN, DOWN]), BTreeSet::from([0]));
    assert_eq!(seen(&pool, &[held, held, DOWN]), BTreeSet::from([0]));
}

#[test]
fn a_member_that_has_come_back_gets_a_part_of_its_turns() {
    let pool = pool(Order::RoundRobin, &[(1, 0), (1, 0)]);
    let quarter = MemberState { part: MemberState::WHOLE / 4, ..UP };
    assert_shares(&pool, &[UP, quarter], &[80, 20]);
}
