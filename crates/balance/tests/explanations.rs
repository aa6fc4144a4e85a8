//! What is explained is what is answered: pools, states and clients at random, with a fixed seed.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use zonda_balance::explain::{End, Step};
use zonda_balance::geography::{Geography, Site};
use zonda_balance::{
    Answers, ClientNetwork, Dice, Filter, LoadMarks, MapSource, Member, MemberState, Order,
    Outcome, Pool, Records, SiteMap, WhenAllDown,
};
use zonda_geo::SiteId;
use zonda_wire::Type;

const SITES: u16 = 4;

/// A map in which each half of a network 10.N.0.0/16 prefers the site N, for four sites.
fn map() -> Arc<SiteMap> {
    let site = |number| Site { name: format!("s{number}").into(), ..Site::default() };
    let network =
        |number: u16| (format!("10.{number}.0.0/17").parse().unwrap(), SiteId(number.into()));
    let geography = Arc::new(Geography {
        sites: (0..SITES).map(site).collect(),
        networks: (0..SITES).map(network).collect(),
        default_site: Some(1),
        ..Geography::default()
    });
    let sites = (0..SITES).collect();
    let (by_place, by_distance, by_latency) = (true, false, false);
    let source = MapSource { geography, sites, by_place, by_distance, by_latency };
    Arc::new(SiteMap::compile(source).unwrap())
}

/// One of these.
fn one_of<T: Clone>(dice: &mut Dice, values: &[T]) -> T {
    values[dice.below(values.len())].clone()
}

/// A pool at random; one of three members is another pool.
fn pool(dice: &mut Dice, map: &Arc<SiteMap>) -> Pool {
    let count = 1 + dice.below(6);
    let member = |number: usize, dice: &mut Dice| Member {
        identity: number as u64 * 77,
        weight: dice.below(3) as u32,
        priority: dice.below(3) as u32,
        pool: (dice.below(3) == 0).then_some(100 + number as u32),
        site: one_of(dice, &[None, Some(0), Some(1), Some(2), Some(3)]),
    };
    let members: Vec<Member> = (0..count).map(|number| member(number, dice)).collect();
    let sites = Filter::Sites(Arc::clone(map));
    let load = Filter::Load(LoadMarks { low: 50, high: 100 });
    let chains = [
        vec![],
        vec![Filter::Failover],
        vec![Filter::Latency],
        vec![sites.clone(), Filter::Latency],
        vec![sites.clone()],
        vec![Filter::Failover, sites.clone()],
        vec![sites.clone(), Filter::Failover],
        vec![load.clone()],
        vec![load.clone(), Filter::Failover],
        vec![Filter::Failover, load.clone()],
        vec![load.clone(), sites.clone()],
        vec![load.clone(), sites.clone(), Filter::Failover],
        vec![load.clone(), Filter::Failover, sites.clone()],
        vec![sites, load],
    ];
    let has_record = |dice: &mut Dice| dice.below(4) > 0;
    let rdata = |number: usize, dice: &mut Dice| {
        let octets = vec![192, 0, 2, number as u8].into_boxed_slice();
        has_record(dice).then_some(octets)
    };
    let rdatas = (0..count).map(|number| rdata(number, dice)).collect();
    let orders = [
        Order::RoundRobin,
        Order::Weighted,
        Order::HashClient { v4: 24, v6: 56 },
        Order::HashName,
        Order::AsConfigured,
    ];
    let policies = [
        WhenAllDown::All,
        WhenAllDown::LastHealthy,
        WhenAllDown::Pool(7),
        WhenAllDown::ServFail,
        WhenAllDown::NoData,
    ];
    Pool {
        members,
        filters: one_of(dice, &chains),
        order: one_of(dice, &orders),
        answers: one_of(dice, &[Answers::Some(1), Answers::Some(2), Answers::All]),
        when_all_down: one_of(dice, &policies),
        records: vec![Records { rtype: Type::A, rdatas }],
    }
}

/// Whether a filter sheds load, so that which members answer is a draw of several steps.
fn is_load(filter: &Filter) -> bool {
    matches!(filter, Filter::Load(_))
}

#[test]
fn what_is_explained_is_what_is_answered() {
    let (map, mut dice) = (map(), Dice::new(17));
    let (mut groups, mut tiers) = (0, 0);
    for _ in 0..8000 {
        let pool = pool(&mut dice, &map);
        let state = |dice: &mut Dice| MemberState {
            is_up: dice.below(3) > 0,
            was_up: dice.below(2) > 0,
            part: MemberState::WHOLE,
            latency: (dice.below(3) > 0).then(|| dice.below(20_000) as u32),
            is_held: dice.below(4) == 0,
            load: (dice.below(3) > 0).then(|| dice.below(130) as u32),
        };
        let states: Vec<MemberState> = pool.members.iter().map(|_| state(&mut dice)).collect();
        let plan = pool.compile(&states, 30, None);
        let address = Ipv4Addr::new(10, dice.below(5) as u8, dice.below(256) as u8, 1);
        let client = ClientNetwork::of_address(IpAddr::V4(address));
        let explanation = pool.explain(&states, Type::A, &client).unwrap();
        let has_sites = |step: &Step| matches!(step, Step::Sites { .. });
        tiers += usize::from(explanation.steps.iter().any(|it| has_sites(&it.step)));
        let (mut seen, mut scopes) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..60 {
            match plan.view(Type::A).unwrap().choose(&client, b"\x03www\0", &mut dice) {
                Outcome::Members(choice) => {
                    seen.extend((0..choice.count()).map(|place| choice.member(place)));
                    scopes.insert(choice.scope);
                }
                Outcome::Pool(pool, scope) if pool >= 100 => {
                    seen.insert(pool - 100);
                    scopes.insert(scope);
                }
                Outcome::Pool(pool, _) => assert_eq!(explanation.end, End::Pool(pool)),
                Outcome::Without(end) => assert_eq!(explanation.end, End::Without(end)),
            }
        }
        if let End::Group { members, order, percents, .. } = &explanation.end {
            let sum: u32 = percents.iter().map(|percent| u32::from(*percent)).sum();
            assert!(
                percents.is_empty() || percents.len() == members.len() && sum.abs_diff(100) < 4
            );
            groups += 1;
            let members: BTreeSet<u32> = members.iter().copied().collect();
            assert!(seen.is_subset(&members), "{pool:?}\n{explanation:?}\n{seen:?}");
            if matches!(order, Order::RoundRobin)
                && members.len() < 5
                && !pool.filters.iter().any(is_load)
            {
                assert_eq!(seen, members, "{explanation:?}");
            }
            let (sheds, widest) = (pool.filters.iter().any(is_load), scopes.last().copied());
            assert!(
                sheds && widest <= Some(explanation.scope)
                    || scopes.len() == 1 && widest == Some(explanation.scope),
                "{explanation:?}"
            );
        } else {
            assert!(seen.is_empty());
        }
    }
    assert!(groups > 4000 && tiers > 500, "{groups} {tiers}");
}
