//! How queries are spread over members: the counts of many choices against what the weights say, by
//! Pearson's chi-square test, with a fixed seed.

#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use zonda_balance::{
    Answers, ClientNetwork, Dice, Filter, LoadMarks, Member, MemberState, Order, Outcome, Pool,
    Records, WhenAllDown, identity_of,
};
use zonda_wire::Type;

/// A pool whose members have these weights.
fn pool(order: Order, weights: &[u32]) -> Pool {
    let member = |(number, weight): (usize, &u32)| Member {
        identity: identity_of(format!("192.0.2.{number}").as_bytes()),
        weight: *weight,
        priority: 1,
        pool: None,
        site: None,
    };
    let rdata = |number: usize| Some((number as u32).to_be_bytes().to_vec().into_boxed_slice());
    Pool {
        members: weights.iter().enumerate().map(member).collect(),
        filters: Vec::new(),
        order,
        answers: Answers::Some(1),
        when_all_down: WhenAllDown::All,
        records: vec![Records { rtype: Type::A, rdatas: (0..weights.len()).map(rdata).collect() }],
    }
}

/// How often each member is the first for so many queries, each of which has a client of its own.
fn counts(pool: &Pool, states: &[MemberState], queries: u32) -> Vec<u32> {
    let (plan, mut dice) = (pool.compile(states, 30, None), Dice::new(11));
    let view = plan.view(Type::A).unwrap();
    let mut counts = vec![0; pool.members.len()];
    for query in 0..queries {
        let address: IpAddr = match query % 2 {
            0 => Ipv4Addr::from_bits(10 << 24 | query << 8).into(),
            _ => Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(query) << 72).into(),
        };
        let name = [&[8], format!("{query:08x}").as_bytes(), &[0]].concat();
        match view.choose(&ClientNetwork::of_address(address), &name, &mut dice) {
            Outcome::Members(choice) => counts[choice.member(0) as usize] += 1,
            other => panic!("{other:?}"),
        }
    }
    counts
}

/// Chi-square of the distance of counts from what these shares of their sum are, and the degrees of
/// freedom; members with a share of 0 must have no query.
fn chi_square(counts: &[u32], shares: &[f64]) -> (f64, f64) {
    let (queries, whole): (u32, f64) = (counts.iter().sum(), shares.iter().sum());
    let (mut chi, mut members) = (0.0, 0.0);
    for (count, share) in counts.iter().zip(shares) {
        if *share == 0.0 {
            assert_eq!(*count, 0, "{counts:?}");
            continue;
        }
        let expected = f64::from(queries) * share / whole;
        assert!(expected >= 5.0, "the test holds for larger counts only");
        chi += (f64::from(*count) - expected).powi(2) / expected;
        members += 1.0;
    }
    (chi, members - 1.0)
}

/// The chi-square that is exceeded once in 1,000 times, by the approximation of Wilson and Hilferty
/// (1931), which is right to 4 % for one degree of freedom and to 1 % for more.
fn bound(freedom: f64) -> f64 {
    const QUANTILE: f64 = 3.0902; // of the normal distribution, for 0.999
    let spread = 2.0 / (9.0 * freedom);
    freedom * (1.0 - spread + QUANTILE * spread.sqrt()).powi(3)
}

#[track_caller]
fn assert_shares(pool: &Pool, states: &[MemberState], shares: &[f64]) {
    let counts = counts(pool, states, 200_000);
    let (chi, freedom) = chi_square(&counts, shares);
    let bound = bound(freedom.max(1.0));
    assert!(chi < bound, "chi-square {chi:.1} of at most {bound:.1}: {counts:?} for {shares:?}");
}

#[track_caller]
fn assert_weights(order: Order, weights: &[u32]) {
    let shares: Vec<f64> = weights.iter().map(|weight| f64::from(*weight)).collect();
    assert_shares(&pool(order, weights), &vec![MemberState::UP; weights.len()], &shares);
}

const ORDERS: [Order; 4] =
    [Order::RoundRobin, Order::Weighted, Order::HashClient { v4: 24, v6: 56 }, Order::HashName];

#[test]
fn the_bound_is_that_of_tables_of_the_chi_square_distribution() {
    for (freedom, table) in [(1.0, 10.828), (2.0, 13.816), (9.0, 27.877), (99.0, 148.23)] {
        assert!((bound(freedom) / table - 1.0_f64).abs() < 0.04, "{freedom}: {}", bound(freedom));
    }
}

#[test]
fn counts_that_are_off_exceed_the_bound() {
    let (chi, freedom) = chi_square(&[10_500, 9_500], &[1.0, 1.0]);
    assert!(chi > bound(freedom), "{chi}");
    let (chi, freedom) = chi_square(&[10_050, 9_950], &[1.0, 1.0]);
    assert!(chi < bound(freedom), "{chi}");
}

#[test]
fn members_of_equal_weight_are_the_first_equally_often() {
    for order in ORDERS {
        for count in [2, 3, 7, 100] {
            assert_weights(order, &vec![1; count]);
        }
    }
}

#[test]
fn members_are_the_first_in_proportion_to_their_weights() {
    for order in [Order::Weighted, ORDERS[2], ORDERS[3]] {
        assert_weights(order, &[1, 2, 3, 4, 5]);
        assert_weights(order, &[0, 7, 0, 3]);
        assert_weights(order, &[1000, 1]);
        assert_weights(order, &[500_000, 250_000, 250_000]);
    }
    assert_weights(Order::Weighted, &[10_000, 1, 1]);
}

#[test]
fn a_member_that_has_come_back_gets_the_part_of_its_weight() {
    let quarter = MemberState { part: MemberState::WHOLE / 4, ..MemberState::UP };
    for order in ORDERS {
        assert_shares(&pool(order, &[1, 1]), &[MemberState::UP, quarter], &[4.0, 1.0]);
    }
    let weighted = pool(Order::Weighted, &[1, 2, 4]);
    assert_shares(&weighted, &[MemberState::UP, MemberState::UP, quarter], &[1.0, 2.0, 1.0]);
}

#[test]
fn a_loaded_member_gets_the_part_that_its_load_leaves_it() {
    let loaded = |load| MemberState { load: Some(load), ..MemberState::UP };
    for order in ORDERS {
        let mut pool = pool(order, &[1, 1, 1]);
        pool.filters = vec![Filter::Load(LoadMarks { low: 50, high: 90 })];
        assert_shares(&pool, &[loaded(80), MemberState::UP, loaded(40)], &[1.0, 4.0, 4.0]);
    }
}
