//! What clients see of upstreams that lose, fail, fall silent and come back; run with
//! `--nocapture`, the figures are printed.

#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]

mod world;

use world::{MS, Model, S, World};
use zonda_upstream::Policy;
use zonda_upstream::health::State;

const POLICIES: [Policy; 5] =
    [Policy::Fastest, Policy::RoundRobin, Policy::Random, Policy::InOrder, Policy::Hash];

#[test]
fn where_little_is_lost_no_client_waits_for_long_at_any_rate() {
    for (upstreams, rate, seconds) in [
        (1, 1, 3000),
        (1, 10, 1000),
        (1, 1000, 100),
        (1, 10_000, 20),
        (2, 10, 1000),
        (2, 1000, 100),
    ] {
        let models = vec![Model::default(); upstreams];
        let world = World::new(Policy::Fastest, models, rate, 1).run(seconds);
        let seen = world.seen(0.0..f64::MAX);
        seen.print(&format!("0.3 % lost, {upstreams} upstreams, {rate}/s"), &world);
        assert_eq!(seen.lost, 0);
        assert!(seen.ms(1.0) < 300.0);
        assert!(world.extra_percent() <= 5.0);
    }
}

#[test]
fn distant_upstreams_are_queried_no_more_often_than_near_ones() {
    for upstreams in [1, 2] {
        let models = vec![Model { delay: 150 * MS..400 * MS, ..Model::default() }; upstreams];
        let world = World::new(Policy::Fastest, models, 200, 11).run(200);
        let seen = world.seen(0.0..f64::MAX);
        seen.print(&format!("{upstreams} far upstreams"), &world);
        assert_eq!(seen.lost, 0);
        assert!(seen.ms(1.0) < 1800.0);
        assert!(world.extra_percent() <= 5.0);
    }
}

#[test]
fn when_the_server_itself_sleeps_upstreams_are_not_blamed() {
    for policy in POLICIES {
        let mut world = World::new(policy, vec![Model::default(); 2], 1000, 12);
        world.stall = 200 * MS;
        let world = world.run(60);
        let seen = world.seen(0.0..f64::MAX);
        seen.print(&format!("{policy:?}, asleep for 200 ms each 5 s"), &world);
        assert_eq!(seen.lost, 0);
        assert!(seen.ms(1.0) < 500.0);
        assert!(world.extra_percent() <= 5.0);
        assert!(world.pool.members.iter().all(|member| member.health.state() == State::Up));
    }
}

#[test]
fn every_policy_keeps_the_budget_and_loses_nothing() {
    for policy in POLICIES {
        let models = vec![Model { long_tail: true, ..Model::default() }; 3];
        let mut world = World::new(policy, models, 1000, 2);
        world.broken = 0.015;
        let world = world.run(60);
        let seen = world.seen(0.0..f64::MAX);
        seen.print(&format!("{policy:?}, long tail, 1.5 % broken names"), &world);
        assert_eq!(seen.lost, 0);
        assert!(seen.ms(1.0) < 300.0);
        let extra = world.extra_percent_of_sound();
        assert!(extra <= 5.0, "{policy:?}: {extra} % for names that are not broken");
    }
}

#[test]
fn much_loss_costs_time_but_hardly_an_answer() {
    for (loss, upstreams, p50, p99, lost_max) in [
        (0.01, 1, 10.0, 40.0, 0),
        (0.1, 1, 10.0, 200.0, 0),
        (0.3, 1, 10.0, 1000.0, 1),
        (0.5, 1, 100.0, 2000.0, 50),
        (0.1, 2, 10.0, 200.0, 0),
        (0.3, 2, 10.0, 130.0, 0),
        (0.5, 2, 100.0, 2000.0, 50),
    ] {
        let models = vec![Model { loss, ..Model::default() }; upstreams];
        let world = World::new(Policy::Fastest, models, 1000, 3).run(60);
        let seen = world.seen(0.0..f64::MAX);
        seen.print(&format!("{} % lost by {upstreams}", loss * 100.0), &world);
        assert!(seen.lost <= lost_max);
        assert!(seen.ms(0.5) < p50 && seen.ms(0.99) < p99);
    }
}

#[test]
fn with_one_good_upstream_what_the_other_loses_is_hardly_seen() {
    for policy in POLICIES {
        let bad = Model { loss: 0.5, ..Model::default() };
        let world = World::new(policy, vec![bad, Model::default()], 1000, 4).run(60);
        let seen = world.seen(0.0..f64::MAX);
        seen.print(&format!("{policy:?}, one of two loses 50 %"), &world);
        assert_eq!(seen.lost, 0);
        assert!(seen.ms(0.99) < 32.0);
    }
}

#[test]
fn with_one_of_two_black_holed_times_are_normal_again_within_two_seconds() {
    for policy in POLICIES {
        for rate in [20, 1000] {
            let hole = Model { dead: 20 * S..60 * S, ..Model::default() };
            let world = World::new(policy, vec![hole, Model::default()], rate, 5).run(100);
            let after = world.seen(20.0..22.0);
            after.print(&format!("{policy:?}, black hole, {rate}/s, first 2 s"), &world);
            let later = world.seen(22.0..60.0);
            later.print(&format!("{policy:?}, black hole, {rate}/s, later"), &world);
            let back = world.seen(62.0..100.0);
            assert_eq!(world.seen(0.0..f64::MAX).lost, 0);
            assert!(later.ms(0.99) < 32.0 && back.ms(0.99) < 32.0);
            assert!(after.ms(1.0) < 300.0);
            let state = world.pool.members[0].health.state();
            assert_eq!(state, State::Up);
        }
    }
}

#[test]
fn when_one_of_two_fails_the_other_answers() {
    for policy in POLICIES {
        let storm = Model { failing: 20 * S..40 * S, ..Model::default() };
        let world = World::new(policy, vec![storm, Model::default()], 1000, 6).run(60);
        let seen = world.seen(20.0..40.0);
        seen.print(&format!("{policy:?}, one of two says SERVFAIL"), &world);
        assert_eq!(world.seen(0.0..f64::MAX).lost, 0);
        assert!(seen.ms(0.99) < 32.0);
    }
}

#[test]
fn when_all_were_dead_the_first_second_after_their_return_is_normal_again() {
    for upstreams in [1, 2] {
        let models = vec![Model { dead: 20 * S..50 * S, ..Model::default() }; upstreams];
        let world = World::new(Policy::Fastest, models, 100, 7).run(80);
        let dead = world.seen(20.0..50.0);
        let back = world.seen(51.5..80.0);
        back.print(&format!("{upstreams} back after 30 s"), &world);
        assert!(dead.lost > 2000);
        assert_eq!(back.lost, 0);
        assert!(back.ms(1.0) < 300.0);
        // Nothing is sent to dead upstreams but probes, once they are known to be dead.
        assert!(world.extra_percent() < 50.0);
    }
}

#[test]
fn an_upstream_that_becomes_slow_is_left_and_found_again() {
    let models = vec![
        Model { slow: 20 * S..40 * S, delay: 3 * MS..5 * MS, ..Model::default() },
        Model::default(),
    ];
    let world = World::new(Policy::Fastest, models, 1000, 8).run(60);
    for (what, span) in [("before", 5.0..20.0), ("slow", 20.0..40.0), ("after", 45.0..60.0)] {
        let seen = world.seen(span);
        seen.print(what, &world);
        assert_eq!(seen.lost, 0);
        assert!(seen.ms(0.99) < 40.0);
    }
    assert!(world.seen(50.0..60.0).ms(0.5) < 5.0, "the faster one is found again");
    assert!(world.extra_percent() <= 5.0);
}

#[test]
fn duplicated_and_reordered_answers_do_no_harm() {
    let model = Model { duplicated: 0.3, delay: MS..100 * MS, loss: 0.0, ..Model::default() };
    let world = World::new(Policy::Fastest, vec![model; 2], 1000, 9).run(60);
    let seen = world.seen(0.0..f64::MAX);
    seen.print("duplicated and reordered", &world);
    assert_eq!(seen.lost, 0);
    assert!(world.extra_percent() <= 5.0);
}

#[test]
fn at_the_start_a_dead_upstream_delays_few_questions() {
    let dead = Model { dead: 0..100 * S, ..Model::default() };
    let world = World::new(Policy::Fastest, vec![dead, Model::default()], 1000, 10).run(10);
    let seen = world.seen(0.0..f64::MAX);
    seen.print("one of two dead from the start", &world);
    assert_eq!(seen.lost, 0);
    assert!(seen.ms(0.99) < 32.0 && seen.ms(1.0) < 300.0);
}
