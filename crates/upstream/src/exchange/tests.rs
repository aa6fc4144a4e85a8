//! What follows from what becomes of queries.

use super::*;
use crate::SECOND_NANOS;
use crate::check::{Doubt, Failure};
use crate::pool::{Counters, Member, Policy, Settings};
use zonda_wire::{Ede, Rcode};

const SERVFAIL: Failure = Failure::Rcode(Rcode::SERVFAIL);

/// Returns some upstreams, asked in order.
fn pool(count: usize) -> Pool {
    let settings = Settings { policy: Policy::InOrder, ..Settings::default() };
    Pool::new(vec![Member::new(false, [0; 16]); count], settings)
}

/// Returns a question at time 0.
fn start(pool: &mut Pool) -> (Exchange, Vec<Action>) {
    let mut actions = Vec::new();
    let exchange = Exchange::start(pool, 0, 1, 2, &mut actions);
    (exchange, actions)
}

/// Returns what follows from the end of an attempt.
fn end(exchange: &mut Exchange, pool: &mut Pool, attempt: u8, outcome: Outcome) -> Vec<Action> {
    let mut actions = Vec::new();
    exchange.on_outcome(pool, MILLISECOND_NANOS, attempt, outcome, 0, &mut actions);
    actions
}

/// Returns the attempt, upstream and form of the only action.
fn sent(actions: &[Action]) -> (u8, u8, Form) {
    match actions {
        [Action::Send { attempt, upstream, form }] => (*attempt, *upstream, *form),
        other => panic!("{other:?}"),
    }
}

#[test]
fn failures_go_round_the_upstreams_until_none_is_left() {
    let mut pool = pool(3);
    let (mut exchange, actions) = start(&mut pool);
    assert_eq!(sent(&actions).1, 0);
    let actions = end(&mut exchange, &mut pool, 0, Outcome::Failed(SERVFAIL));
    assert_eq!(sent(&actions).1, 1);
    let actions = end(&mut exchange, &mut pool, 1, Outcome::Unreachable);
    assert_eq!(sent(&actions).1, 2);
    let actions = end(&mut exchange, &mut pool, 2, Outcome::Failed(Failure::Lame));
    let reason = Reason::Failed(Failure::Lame);
    assert_eq!(actions, [Action::Fail(reason)]);
    assert_eq!((exchange.timer(&pool), reason.ede()), (None, Ede::NETWORK_ERROR));
}

/// Has the first query of a question become overdue and be repeated.
fn repeat(exchange: &mut Exchange, pool: &mut Pool) -> Vec<Action> {
    let mut actions = Vec::new();
    while actions.is_empty() {
        let at = exchange.timer(pool).unwrap_or(u64::MAX);
        exchange.on_timer(pool, at, 0, &mut actions);
    }
    actions
}

#[test]
fn a_failure_counts_though_an_earlier_query_to_the_same_upstream_was_lost() {
    let mut pool = pool(1);
    let (mut exchange, _) = start(&mut pool);
    assert_eq!(sent(&repeat(&mut exchange, &mut pool)).0, 1);
    let actions = end(&mut exchange, &mut pool, 1, Outcome::Failed(SERVFAIL));
    assert_eq!(actions, [Action::Fail(Reason::Failed(SERVFAIL))]);
}

/// Returns what clients get, and when, milliseconds, for a question that the second of two
/// upstreams fails and that the first leaves without answer.
fn told_of_a_failure_and_silence(stale_millis: u64) -> Vec<(u64, Action)> {
    let mut pool = pool(2);
    pool.settings.stale_nanos = stale_millis * MILLISECOND_NANOS;
    let (mut exchange, _) = start(&mut pool);
    let mut told = Vec::new();
    while let Some(at) = exchange.timer(&pool) {
        let mut actions = Vec::new();
        exchange.on_timer(&mut pool, at, 0, &mut actions);
        let mut next = 0;
        while let Some(&action) = actions.get(next) {
            next += 1;
            match action {
                Action::Send { attempt, upstream: 1, .. } => {
                    let failed = Outcome::Failed(SERVFAIL);
                    exchange.on_outcome(&mut pool, at, attempt, failed, 0, &mut actions);
                }
                Action::Send { .. } => {}
                action => told.push((at / MILLISECOND_NANOS, action)),
            }
        }
    }
    assert_eq!(pool.members[1].counters.sent, 1, "who has failed is not asked again");
    told
}

#[test]
fn what_one_upstream_fails_is_waited_for_while_another_may_answer() {
    let failed = Action::Fail(Reason::Failed(SERVFAIL));
    for stale_millis in [0, 1800] {
        let told = told_of_a_failure_and_silence(stale_millis);
        let [(stale_at, Action::ServeStale), (at, action)] = told[..] else { panic!("{told:?}") };
        assert_eq!((stale_at, action), (stale_millis, failed));
        // When the other has been silent for so long that it is down, nothing is waited for.
        assert!((3000..=5000).contains(&at), "{at} ms");
    }
}

#[test]
fn what_an_upstream_stumbles_over_is_left_out_once_each() {
    let mut pool = pool(1);
    let (mut exchange, actions) = start(&mut pool);
    let mut form = Form { over_tcp: false, edns: true, mixed_case: true };
    assert_eq!(sent(&actions), (0, 0, form));
    let redirected = |redirect| Outcome::Redirected(redirect);
    form.edns = false;
    let actions = end(&mut exchange, &mut pool, 0, redirected(Redirect::WithoutEdns));
    assert_eq!(sent(&actions), (1, 0, form));
    form.mixed_case = false;
    let actions = end(&mut exchange, &mut pool, 1, redirected(Redirect::WithoutMixedCase));
    assert_eq!(sent(&actions), (2, 0, form));
    form.over_tcp = true;
    let actions = end(&mut exchange, &mut pool, 2, redirected(Redirect::ToTcp));
    assert_eq!(sent(&actions), (3, 0, form));
    let actions = end(&mut exchange, &mut pool, 3, redirected(Redirect::ToTcp));
    assert_eq!(actions, [Action::Fail(Reason::Timeout)]);
    let (_, actions) = start(&mut pool);
    assert!(sent(&actions).2.edns, "one stumble may be chance");
}

#[test]
fn what_one_upstream_stumbles_over_is_not_left_out_for_another() {
    let mut pool = pool(2);
    let (mut exchange, _) = start(&mut pool);
    let redirected = Outcome::Redirected(Redirect::WithoutEdns);
    assert!(!sent(&end(&mut exchange, &mut pool, 0, redirected)).2.edns);
    let (_, upstream, form) = sent(&end(&mut exchange, &mut pool, 1, Outcome::Failed(SERVFAIL)));
    assert!(upstream == 1 && form.edns, "{form:?}");
}

#[test]
fn edns_is_disabled_only_for_an_upstream_that_answers_without_it() {
    let mut pool = pool(1);
    let formerr = Outcome::Failed(Failure::Rcode(Rcode::FORMERR));
    for (outcome, is_enabled) in [(formerr, true), (Outcome::Answered, false)] {
        for _ in 0..2 {
            let (mut exchange, actions) = start(&mut pool);
            assert!(sent(&actions).2.edns);
            let redirected = Outcome::Redirected(Redirect::WithoutEdns);
            assert!(!sent(&end(&mut exchange, &mut pool, 0, redirected)).2.edns);
            end(&mut exchange, &mut pool, 1, outcome);
        }
        assert_eq!(pool.members[0].edns.is_enabled(MILLISECOND_NANOS), is_enabled, "{outcome:?}");
    }
}

/// Returns what follows from a doubt about an attempt.
fn doubt(exchange: &mut Exchange, pool: &mut Pool, attempt: u8, doubt: Doubt) -> Vec<Action> {
    let mut actions = Vec::new();
    exchange.on_doubt(pool, MILLISECOND_NANOS, attempt, doubt, &mut actions);
    actions
}

const DOUBTS: [Doubt; 5] = [
    Doubt::Case,
    Doubt::NoCookie,
    Doubt::NoQuestion(Rcode::FORMERR),
    Doubt::NoQuestion(Rcode::REFUSED),
    Doubt::Forged,
];

#[test]
fn a_message_that_may_be_forged_is_retried_over_tcp_once_and_teaches_nothing() {
    for what in DOUBTS {
        for answered in [0, 1] {
            let mut pool = pool(2);
            let (mut exchange, _) = start(&mut pool);
            let form = Form { over_tcp: true, edns: true, mixed_case: true };
            assert_eq!(sent(&doubt(&mut exchange, &mut pool, 0, what)), (1, 0, form));
            assert_eq!(doubt(&mut exchange, &mut pool, 0, what), []);
            assert!(exchange.waits_for(0) && exchange.waits_for(1));
            assert_eq!(end(&mut exchange, &mut pool, answered, Outcome::Answered), []);
            assert!(exchange.is_settled());
            while let Some(at) = exchange.timer(&pool) {
                exchange.on_timer(&mut pool, at, 0, &mut Vec::new());
            }
            let (_, actions) = start(&mut pool);
            let (_, upstream, form) = sent(&actions);
            assert!(upstream == 0 && form.edns && form.mixed_case && !form.over_tcp);
            let member = &pool.members[0];
            let Counters { answered, redirected, lost, .. } = member.counters;
            assert_eq!((answered, member.outstanding), (1, 1));
            assert_eq!(redirected + lost, 1, "{what:?}");
        }
    }
}

#[test]
fn what_was_doubted_is_believed_when_tcp_cannot_be_had_or_is_silent() {
    for what in DOUBTS {
        for is_refused in [true, false] {
            let mut pool = pool(2);
            let (mut exchange, _) = start(&mut pool);
            assert!(sent(&doubt(&mut exchange, &mut pool, 0, what)).2.over_tcp);
            let actions = match is_refused {
                true => end(&mut exchange, &mut pool, 1, Outcome::Unreachable),
                false => repeat(&mut exchange, &mut pool),
            };
            let (attempt, upstream, form) = sent(&actions);
            assert_eq!((attempt, form.over_tcp), (2, false), "{what:?}");
            let seen = (upstream, form.edns, form.mixed_case);
            let expected = match what {
                Doubt::Case => (0, true, false),
                Doubt::NoCookie | Doubt::Forged => (0, true, true),
                Doubt::NoQuestion(Rcode::FORMERR) => (0, false, true),
                Doubt::NoQuestion(_) => (1, true, true),
            };
            assert_eq!(seen, expected, "{what:?}");
            assert!(!exchange.waits_for(0));
        }
    }
}

#[test]
fn a_cookie_that_is_refused_twice_leads_to_tcp() {
    let mut pool = pool(1);
    let (mut exchange, _) = start(&mut pool);
    for (attempt, over_tcp) in [(0, false), (1, true)] {
        let outcome = Outcome::Redirected(Redirect::WithCookie);
        let actions = end(&mut exchange, &mut pool, attempt, outcome);
        assert_eq!(sent(&actions).2.over_tcp, over_tcp);
    }
}

#[test]
fn nothing_is_learnt_about_an_upstream_from_messages_forged_in_its_name() {
    let mut pool = pool(1);
    let (mut exchange, _) = start(&mut pool);
    doubt(&mut exchange, &mut pool, 0, Doubt::Forged);
    end(&mut exchange, &mut pool, 1, Outcome::Unreachable); // so that the doubt is believed
    let member = &pool.members[0];
    let heard = (member.rtt.sampled_at(), member.counters.redirected, member.counters.lost);
    assert_eq!(heard, (None, 1, 0));
}

#[test]
fn forgery_does_not_count_against_an_upstream() {
    let mut pool = pool(1);
    for _ in 0..10 {
        let (mut exchange, mut actions) = start(&mut pool);
        actions.extend(doubt(&mut exchange, &mut pool, 0, Doubt::Forged));
        end(&mut exchange, &mut pool, 1, Outcome::Answered);
        while let Some(at) = exchange.timer(&pool) {
            exchange.on_timer(&mut pool, at, 0, &mut actions);
        }
    }
    let Counters { answered, redirected, lost, .. } = pool.members[0].counters;
    assert_eq!((answered, redirected, lost), (10, 10, 0));
    assert_eq!(pool.members[0].health.state(), State::Up);
}

#[test]
fn what_the_network_cannot_deliver_is_repeated_while_stale_data_is_served() {
    let mut pool = pool(1);
    let (mut exchange, _) = start(&mut pool);
    let actions = end(&mut exchange, &mut pool, 0, Outcome::Unreachable);
    assert_eq!(actions, [Action::ServeStale]);
    assert_eq!(sent(&repeat(&mut exchange, &mut pool)).0, 1);
    assert_eq!(end(&mut exchange, &mut pool, 1, Outcome::Answered), []);
    assert_eq!(exchange.timer(&pool), None);
}

#[test]
fn clients_are_answered_in_time_and_the_fetch_continues() {
    let mut pool = pool(1);
    let (mut exchange, mut actions) = start(&mut pool);
    let mut told = Vec::new();
    while let Some(at) = exchange.timer(&pool) {
        actions.clear();
        exchange.on_timer(&mut pool, at, 0, &mut actions);
        told.extend(
            actions.iter().filter(|it| !matches!(it, Action::Send { .. })).map(|it| (at, *it)),
        );
    }
    let expected = [
        (1800 * MILLISECOND_NANOS, Action::ServeStale),
        (5 * SECOND_NANOS, Action::Fail(Reason::Timeout)),
    ];
    assert_eq!(told, expected);
    assert_eq!(pool.members[0].outstanding, 0);
    assert!((8..=12).contains(&pool.members[0].counters.lost));
}

#[test]
fn an_answer_that_comes_late_counts_as_slow_not_as_lost() {
    let mut pool = pool(2);
    let (mut exchange, mut actions) = start(&mut pool);
    let at = exchange.timer(&pool).unwrap_or_default();
    exchange.on_timer(&mut pool, at, 0, &mut actions);
    assert_eq!(actions.len(), 2);
    assert_eq!(end(&mut exchange, &mut pool, 1, Outcome::Answered), []);
    assert!(exchange.is_settled() && exchange.timer(&pool).is_some());
    assert_eq!(end(&mut exchange, &mut pool, 0, Outcome::Answered), []);
    assert_eq!(end(&mut exchange, &mut pool, 0, Outcome::Answered), [], "a duplicate");
    assert_eq!(exchange.timer(&pool), None);
    let counters = pool.members[0].counters;
    assert_eq!((counters.answered, counters.lost), (1, 0));
}

#[test]
fn silence_over_tcp_says_nothing_about_an_upstream_of_udp() {
    let mut pool = pool(1);
    for question in 0..4 {
        let (mut exchange, mut actions) = start(&mut pool);
        let outcome = Outcome::Redirected(Redirect::ToTcp);
        assert!(sent(&end(&mut exchange, &mut pool, 0, outcome)).2.over_tcp);
        if question % 2 == 0 {
            end(&mut exchange, &mut pool, 1, Outcome::Unreachable);
        }
        while let Some(at) = exchange.timer(&pool) {
            exchange.on_timer(&mut pool, at, 0, &mut actions);
        }
    }
    assert_eq!(pool.members[0].health.state(), State::Up);
    assert!(pool.members[0].counters.lost > 8);
}

/// Returns when the first query of a question is repeated under these settings, milliseconds; the
/// upstream has always answered within a millisecond before.
fn repeated_after(extra_percent: u8, repeat_millis_min: u64) -> u64 {
    let repeat_nanos_min = repeat_millis_min * MILLISECOND_NANOS;
    let settings = Settings { extra_percent, repeat_nanos_min, ..Settings::default() };
    let mut pool = Pool::new(vec![Member::new(false, [0; 16])], settings);
    (0..100).for_each(|_| pool.members[0].rtt.sample(0, MILLISECOND_NANOS));
    let (mut exchange, _) = start(&mut pool);
    let mut actions = Vec::new();
    loop {
        let at = exchange.timer(&pool).unwrap_or(u64::MAX);
        exchange.on_timer(&mut pool, at, 0, &mut actions);
        if !actions.is_empty() {
            return at / MILLISECOND_NANOS;
        }
    }
}

#[test]
fn a_query_is_repeated_as_early_as_the_settings_say_and_only_if_the_budget_has_it() {
    assert_eq!(repeated_after(5, 20), 20);
    assert_eq!(repeated_after(5, 5), 5);
    assert_eq!(repeated_after(5, 300), 300);
    assert_eq!(repeated_after(0, 20), 150, "what is clearly overdue is repeated in any case");
}

#[test]
fn a_question_that_is_dropped_leaves_nothing_outstanding() {
    let mut pool = pool(1);
    let (mut exchange, _) = start(&mut pool);
    exchange.abandon(&mut pool);
    assert_eq!((pool.members[0].outstanding, exchange.timer(&pool)), (0, None));
    assert_eq!(end(&mut exchange, &mut pool, 0, Outcome::Answered), []);
}

#[test]
fn a_query_whose_port_was_closed_is_repeated_and_says_nothing_about_its_upstream() {
    let mut pool = pool(1);
    let (mut exchange, actions) = start(&mut pool);
    let (mut attempt, mut asked_at) = (sent(&actions).0, vec![0]);
    for _ in 0..5 {
        let at = asked_at[asked_at.len() - 1];
        let mut actions = Vec::new();
        exchange.on_outcome(&mut pool, at, attempt, Outcome::PortClosed, 0, &mut actions);
        assert_eq!(actions, []);
        attempt = sent(&repeat_at(&mut exchange, &mut pool, &mut asked_at)).0;
    }
    let millis: Vec<u64> = asked_at.iter().map(|at| at / MILLISECOND_NANOS).collect();
    assert_eq!(millis, [0, 50, 125, 237, 406, 659]);
    assert_eq!(end(&mut exchange, &mut pool, attempt, Outcome::Answered), []);
    let Member { counters, health, outstanding, rtt, .. } = &pool.members[0];
    let Counters { answered, abandoned, lost, failed, .. } = *counters;
    assert_eq!((answered, abandoned, lost, failed, *outstanding), (1, 5, 0, 0, 0));
    assert_eq!((health.state(), health.lost_share()), (State::Up, 0));
    assert!(rtt.sampled_at().is_some() && !pool.budget.much_is_lost());
}

/// Returns what follows from the next timer that has a query sent; notes when it was due.
fn repeat_at(exchange: &mut Exchange, pool: &mut Pool, asked_at: &mut Vec<u64>) -> Vec<Action> {
    let mut actions = Vec::new();
    while actions.is_empty() {
        let at = exchange.timer(pool).unwrap_or(u64::MAX);
        exchange.on_timer(pool, at, 0, &mut actions);
        if !actions.is_empty() {
            asked_at.push(at);
        }
    }
    actions
}

#[test]
fn a_fetch_continues_while_an_upstream_whose_port_was_closed_may_answer() {
    let mut pool = pool(2);
    let (mut exchange, _) = start(&mut pool);
    assert_eq!(sent(&repeat(&mut exchange, &mut pool)).1, 1);
    assert_eq!(end(&mut exchange, &mut pool, 1, Outcome::PortClosed), []);
    assert_eq!(end(&mut exchange, &mut pool, 0, Outcome::Failed(SERVFAIL)), []);
    assert_eq!(sent(&repeat(&mut exchange, &mut pool)).1, 1, "the one that has not failed");
}

#[test]
fn a_doubted_answer_is_accepted_though_its_port_was_closed_meanwhile() {
    let mut pool = pool(1);
    let (mut exchange, _) = start(&mut pool);
    assert!(sent(&doubt(&mut exchange, &mut pool, 0, Doubt::Case)).2.over_tcp);
    assert_eq!(end(&mut exchange, &mut pool, 0, Outcome::PortClosed), []);
    let actions = end(&mut exchange, &mut pool, 1, Outcome::Unreachable);
    assert!(!sent(&actions).2.mixed_case);
}

#[test]
fn an_upstream_that_truncates_and_refuses_two_connections_has_failed() {
    let mut pool = pool(1);
    let (mut exchange, _) = start(&mut pool);
    let actions = end(&mut exchange, &mut pool, 0, Outcome::Redirected(Redirect::ToTcp));
    assert!(sent(&actions).2.over_tcp);
    let actions = end(&mut exchange, &mut pool, 1, Outcome::Unreachable);
    assert_eq!(actions, [Action::ServeStale]);
    let actions = repeat(&mut exchange, &mut pool);
    assert!(sent(&actions).2.over_tcp);
    let actions = end(&mut exchange, &mut pool, 2, Outcome::Unreachable);
    assert_eq!(actions, [Action::Fail(Reason::Unreachable)]);
    assert_eq!(exchange.timer(&pool), None);
}

#[test]
fn an_upstream_that_refuses_connections_is_asked_again_soon_then_later_each_time() {
    let settings = Settings { policy: Policy::InOrder, ..Settings::default() };
    let mut pool = Pool::new(vec![Member::new(true, [0; 16])], settings);
    let (mut exchange, mut actions) = start(&mut pool);
    let (mut now, mut asked_at) = (0, Vec::new());
    while now < 2 * SECOND_NANOS {
        for action in std::mem::take(&mut actions) {
            let Action::Send { attempt, .. } = action else { continue };
            asked_at.push(now / MILLISECOND_NANOS);
            let mut following = Vec::new();
            let outcome = Outcome::Unreachable;
            exchange.on_outcome(&mut pool, now, attempt, outcome, 0, &mut following);
            assert!(following.iter().all(|it| *it == Action::ServeStale), "{following:?}");
        }
        now = exchange.timer(&pool).unwrap_or(u64::MAX);
        exchange.on_timer(&mut pool, now, 0, &mut actions);
    }
    assert_eq!(asked_at, [0, 50, 125, 237, 406, 659, 1039, 1608]);
}
