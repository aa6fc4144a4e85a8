//! The upstreams of a forward zone: what is known of each, and which one is asked.
//!
//! | policy | asks |
//! |---|---|
//! | [`Policy::Fastest`] | the one that is expected to answer first |
//! | [`Policy::RoundRobin`] | one after the other |
//! | [`Policy::Random`] | one at random |
//! | [`Policy::InOrder`] | the first that is up, in the order of the configuration |
//! | [`Policy::Hash`] | by the question's name, so that each upstream's cache holds other names |
//!
//! Every policy prefers upstreams that are up to suspects, and never asks one that is down. With
//! [`Policy::Hash`], a name keeps its upstream while that is up, whatever happens to other
//! upstreams.
//!
//! Times stay known: under [`Policy::Fastest`], an upstream that has not answered for a second gets
//! a copy of a question beside the one that is asked, within the budget of extra queries and at
//! most with every 64th question. No client waits for the slower one.
//!
//! Deliberately absent: the life of a single question ([`exchange`](crate::exchange)).

use crate::budget::Budget;
use crate::capability::{Capability, Jar};
use crate::health::{Health, State, Thresholds};
use crate::rtt::Rtt;
use crate::{MILLISECOND_NANOS, SECOND_NANOS};

/// Most upstreams of a zone: one bit each.
pub const UPSTREAMS_MAX: usize = 64;
/// An upstream that has not answered for so long gets a copy of a question, nanoseconds.
const EXPLORE_AFTER_NANOS: u64 = SECOND_NANOS;
/// Questions between two such copies.
const EXPLORE_QUESTIONS: u32 = 64;
/// Longest time between probes when no upstream is left, nanoseconds, unless the shortest is
/// longer: nothing is answered until one comes back.
const PROBE_NANOS_MAX_ALONE: u64 = SECOND_NANOS;

/// A set of upstreams by their index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Set(u64);

impl Set {
    /// Adds an upstream.
    pub fn insert(&mut self, index: usize) {
        self.0 |= 1 << index;
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether an upstream is in the set.
    #[must_use]
    pub fn contains(self, index: usize) -> bool {
        self.0 >> index & 1 == 1
    }
}

/// Which upstream is queried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The upstream that is expected to answer first.
    #[default]
    Fastest,
    /// One upstream after the other.
    RoundRobin,
    /// An upstream at random.
    Random,
    /// The first upstream that is up.
    InOrder,
    /// An upstream by the question's name.
    Hash,
}

impl Policy {
    /// All policies, and how a configuration writes them.
    pub const WORDS: [(&str, Self); 5] = [
        ("fastest", Self::Fastest),
        ("round-robin", Self::RoundRobin),
        ("random", Self::Random),
        ("in-order", Self::InOrder),
        ("hash", Self::Hash),
    ];
}

/// Which upstreams are queried, how many at a time, and how long things may take. Times are
/// nanoseconds since the question came.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Policy that chooses the upstream.
    pub policy: Policy,
    /// Time after which a stale answer is served, if one is cached, nanoseconds.
    pub stale_nanos: u64,
    /// Time after which the client gets a failure, nanoseconds.
    pub patience_nanos: u64,
    /// Time after which the fetch ends, nanoseconds; no later answer is waited for.
    pub fetch_nanos: u64,
    /// Most queries that wait for one upstream at a time.
    pub outstanding_max: u32,
    /// Extra queries that may be sent with a hundred questions.
    pub extra_percent: u8,
    /// A query is not repeated sooner, nanoseconds: less is lost in the scheduling of either side,
    /// and the repeat would be sent for nothing. At most a second.
    pub repeat_nanos_min: u64,
    /// When an upstream is suspect or down.
    pub thresholds: Thresholds,
}

impl Settings {
    /// Returns the bounds of each of `pools` pools, at least one, that together ask the same
    /// upstreams.
    #[must_use]
    pub fn share(self, pools: u32) -> Self {
        Self { outstanding_max: self.outstanding_max.div_ceil(pools), ..self }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: Policy::Fastest,
            stale_nanos: 1800 * MILLISECOND_NANOS, // resolvers of hosts wait for 2 s or more
            patience_nanos: 5 * SECOND_NANOS,
            fetch_nanos: 10 * SECOND_NANOS,
            outstanding_max: 10_000,
            extra_percent: 5,
            repeat_nanos_min: 20 * MILLISECOND_NANOS,
            thresholds: Thresholds::default(),
        }
    }
}

/// An upstream of a pool, with what was learnt of it.
#[derive(Clone, Debug)]
pub struct Member {
    /// Whether the upstream is queried over a stream in any case, where the network repeats what is
    /// lost.
    pub stream: bool,
    /// Round-trip times of the upstream.
    pub rtt: Rtt,
    /// Whether the upstream can be relied on.
    pub health: Health,
    /// Whether the upstream understands EDNS.
    pub edns: Capability,
    /// Whether the upstream keeps the case of a question.
    pub mixed_case: Capability,
    /// Cookies exchanged with the upstream.
    pub cookies: Jar,
    /// Queries that wait for an answer.
    pub outstanding: u32,
    /// Counters of the upstream.
    pub counters: Counters,
}

/// What happened with an upstream. Each query sent ends as answered, failed, redirected, lost or
/// abandoned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Queries sent, probes not counted.
    pub sent: u64,
    /// Answers that could be used, late ones included.
    pub answered: u64,
    /// Answers that were failures, and queries that could not be sent.
    pub failed: u64,
    /// Answers that asked for another query: over TCP, without EDNS, with a cookie.
    pub redirected: u64,
    /// Queries redirected to TCP because the answer was truncated.
    pub truncated: u64,
    /// Queries redirected to plain DNS because the upstream cannot handle EDNS.
    pub edns_failed: u64,
    /// Queries that were never answered.
    pub lost: u64,
    /// Queries whose question was dropped, or whose port was closed, before they ended.
    pub abandoned: u64,
    /// Queries sent that are copies, because another upstream was slow, or to learn the round-trip
    /// time.
    pub hedges: u64,
    /// Hedges whose answer came first.
    pub hedges_won: u64,
    /// Queries sent that repeat an overdue query.
    pub repeats: u64,
}

impl Member {
    /// Makes an upstream of which nothing is known; its cookies are made of a secret.
    #[must_use]
    pub fn new(stream: bool, secret: [u8; 16]) -> Self {
        Self {
            stream,
            rtt: Rtt::default(),
            health: Health::default(),
            edns: Capability::default(),
            mixed_case: Capability::default(),
            cookies: Jar::new(secret),
            outstanding: 0,
            counters: Counters::default(),
        }
    }

    /// Returns how long a question is expected to take, nanoseconds: the smoothed time, and what
    /// losses add to it. Those that were never heard come last and share what comes before anyone
    /// was.
    fn expected(&self, now: u64, settings: &Settings) -> u64 {
        match self.rtt.smoothed(now) {
            Some(smoothed) => {
                let overdue = self.rtt.overdue_after(now, settings.repeat_nanos_min);
                smoothed + 4 * overdue * u64::from(self.health.lost_share()) / 65_536
            }
            None => 10 * SECOND_NANOS + u64::from(self.outstanding),
        }
    }
}

/// The upstreams of a forwarded zone.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Upstreams in the order of the configuration.
    pub members: Vec<Member>,
    /// Which upstreams are queried, how many at a time, and how long things may take.
    pub settings: Settings,
    /// How many queries may be sent beside those that questions need.
    pub(crate) budget: Budget,
    /// Number of the upstream whose turn it is.
    turn: usize,
    /// Questions since one was copied to explore.
    unexplored: u32,
}

impl Pool {
    /// Makes a pool of upstreams, 1 to [`UPSTREAMS_MAX`]; what is more is left out.
    #[must_use]
    pub fn new(mut members: Vec<Member>, settings: Settings) -> Self {
        members.truncate(UPSTREAMS_MAX);
        let budget = Budget::new(settings.extra_percent);
        let mut pool = Self { members, settings, budget, turn: 0, unexplored: EXPLORE_QUESTIONS };
        pool.follow(settings);
        pool
    }

    /// Follows these settings from now on, also with questions under way; what is known of the
    /// upstreams stays.
    pub fn follow(&mut self, settings: Settings) {
        self.settings = settings;
        self.budget = Budget::new(settings.extra_percent);
        let healths = self.members.iter_mut().map(|member| &mut member.health);
        healths.for_each(|health| health.thresholds = settings.thresholds);
    }

    /// Whether no upstream is left that could be asked.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.members.iter().all(|member| member.health.state() == State::Down)
    }

    /// Returns the upstream to ask next. `key` is the hash of the question's name, `without` are
    /// those that were asked already; with `again`, one of them may be asked again rather than a
    /// suspect. `None` when all are down or have as many queries outstanding as they may.
    pub(crate) fn choose(
        &mut self,
        now: u64,
        key: u64,
        random: u64,
        without: Set,
        again: bool,
    ) -> Option<usize> {
        let tiers = [(State::Up, true), (State::Up, false), (State::Suspect, true)];
        let tiers = tiers.into_iter().chain([(State::Suspect, false)]);
        tiers
            .filter(|&(_, fresh)| fresh || again)
            .find_map(|(state, fresh)| {
                let fits = |index: usize, member: &Member| {
                    member.health.state() == state
                        && !(fresh && without.contains(index))
                        && member.outstanding < self.settings.outstanding_max
                };
                self.best(now, key, random, fits)
            })
            .inspect(|&chosen| self.turn = chosen + 1)
    }

    /// Returns the best of the upstreams that fit, by the policy.
    fn best(
        &self,
        now: u64,
        key: u64,
        random: u64,
        fits: impl Fn(usize, &Member) -> bool,
    ) -> Option<usize> {
        let count = self.members.len();
        let rank = |index: usize| match self.settings.policy {
            Policy::Fastest => self.members[index].expected(now, &self.settings),
            Policy::RoundRobin => ((index + count - self.turn % count) % count) as u64,
            Policy::Random => mix(random, index),
            Policy::InOrder => index as u64,
            Policy::Hash => mix(key, index),
        };
        let fitting = (0..count).filter(|&index| fits(index, &self.members[index]));
        fitting.min_by_key(|&index| rank(index))
    }

    /// Returns an upstream whose time should be learnt while `chosen` is asked, if the budget has
    /// it.
    pub(crate) fn explore(&mut self, now: u64, chosen: usize) -> Option<usize> {
        self.unexplored = self.unexplored.saturating_add(1);
        if self.settings.policy != Policy::Fastest || self.unexplored <= EXPLORE_QUESTIONS {
            return None;
        }
        let is_due = |index: &usize| {
            let member = &self.members[*index];
            let heard = member.rtt.sampled_at().map_or(0, |at| at + EXPLORE_AFTER_NANOS);
            let idle = member.outstanding == 0 && member.health.state() == State::Up;
            *index != chosen && idle && now >= heard
        };
        let due = (0..self.members.len()).filter(is_due);
        let index = due.min_by_key(|&index| self.members[index].rtt.sampled_at())?;
        self.budget.pay_hedge().then(|| {
            self.unexplored = 0;
            index
        })
    }

    /// Returns when a probe is due next; `None` while all upstreams are up.
    #[must_use]
    pub fn probe_at(&self) -> Option<u64> {
        self.members.iter().filter_map(|member| member.health.probe_at()).min()
    }

    /// Returns an upstream to which a probe is due; the caller sends it any question that it must
    /// be able to answer, and reports the outcome to [`probe_ended`](Self::probe_ended).
    pub fn take_probe(&mut self, now: u64) -> Option<usize> {
        let Thresholds { probe_nanos_min, probe_nanos_max, .. } = self.settings.thresholds;
        let alone = PROBE_NANOS_MAX_ALONE.clamp(probe_nanos_min, probe_nanos_max);
        let interval_max = if self.is_down() { alone } else { probe_nanos_max };
        let is_due = |member: &Member| member.health.probe_at().is_some_and(|at| now >= at);
        let index = self.members.iter().position(is_due)?;
        self.members[index].health.probed(now, interval_max);
        Some(index)
    }

    /// Records that a probe could not be sent to an upstream whose certificate is not trusted.
    pub fn probe_untrusted(&mut self, now: u64, index: usize) {
        let member = self.members.get_mut(index);
        member.into_iter().for_each(|member| member.health.untrusted(now));
    }

    /// Records that a probe sent at `sent_at` was answered, by a failure if `failure`, or was not
    /// (`None`).
    pub fn probe_ended(&mut self, now: u64, index: usize, sent_at: u64, failure: Option<bool>) {
        let Some(member) = self.members.get_mut(index) else { return };
        match failure {
            Some(failure) => {
                if !failure {
                    member.rtt.sample(now, now.saturating_sub(sent_at));
                }
                member.health.heard(now, failure);
            }
            None => {
                member.health.overdue(now, sent_at);
                member.health.lost(now);
            }
        }
    }
}

/// Returns a number that depends on all bits of a key and on an index, to choose by without a
/// table.
fn mix(key: u64, index: usize) -> u64 {
    // The finishing steps of SplitMix64 (Steele, Lea and Flood, 2014).
    let mut z = key.wrapping_add((index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three upstreams that answer after 3, 1 and 2 ms.
    fn pool(policy: Policy) -> Pool {
        let members = [3, 1, 2].map(|millis| {
            let mut member = Member::new(false, [0; 16]);
            member.rtt.sample(0, millis * MILLISECOND_NANOS);
            member
        });
        Pool::new(members.to_vec(), Settings { policy, ..Settings::default() })
    }

    /// Returns the first nine choices, with the key and the random number counted up.
    fn choices(pool: &mut Pool) -> Vec<usize> {
        let one = |step| pool.choose(0, step / 3, step, Set::default(), true);
        (0..9).filter_map(one).collect()
    }

    /// Makes an upstream suspect.
    fn silence(pool: &mut Pool, index: usize) {
        (1..4).for_each(|at| pool.members[index].health.overdue(9, at));
    }

    #[test]
    fn shares_are_equal_and_rounded_up_to_one_at_least() {
        let share = |outstanding_max: u32, pools| {
            Settings { outstanding_max, ..Settings::default() }.share(pools).outstanding_max
        };
        assert_eq!(
            [share(20, 3), share(1, 4), share(8, 1), share(u32::MAX, 2)],
            [7, 1, 8, 1 << 31]
        );
    }

    #[test]
    fn each_policy_chooses_in_its_way() {
        assert_eq!(choices(&mut pool(Policy::Fastest)), [1; 9]);
        assert_eq!(choices(&mut pool(Policy::InOrder)), [0; 9]);
        assert_eq!(choices(&mut pool(Policy::RoundRobin)), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
        let hashed = choices(&mut pool(Policy::Hash));
        assert!(hashed.chunks(3).all(|same| same[0] == same[1] && same[1] == same[2]));
        for policy in [Policy::Random, Policy::Hash] {
            let mut pool = pool(policy);
            let mut counts = [0; 3];
            for step in 0..3000 {
                let chosen = pool.choose(0, step, step, Set::default(), true);
                counts[chosen.unwrap_or_default()] += 1;
            }
            assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
        }
    }

    #[test]
    fn a_suspect_is_queried_only_when_no_upstream_is_up_and_other_names_keep_theirs() {
        for policy in [Policy::Fastest, Policy::RoundRobin, Policy::InOrder, Policy::Random] {
            let mut pool = pool(policy);
            (0..2).for_each(|index| silence(&mut pool, index));
            assert_eq!(choices(&mut pool), [2; 9]);
            silence(&mut pool, 2);
            assert_eq!(choices(&mut pool).len(), 9);
        }
        let (mut whole, mut part) = (pool(Policy::Hash), pool(Policy::Hash));
        silence(&mut part, 1);
        for key in 0..100 {
            let was = whole.choose(0, key, 0, Set::default(), true);
            let is = part.choose(0, key, 0, Set::default(), true);
            assert!(was == is || was == Some(1));
        }
    }

    #[test]
    fn an_upstream_with_enough_to_do_is_passed_over() {
        let mut pool = pool(Policy::InOrder);
        pool.settings.outstanding_max = 2;
        pool.members[0].outstanding = 2;
        assert_eq!(choices(&mut pool), [1; 9]);
        pool.members.iter_mut().for_each(|member| member.outstanding = 2);
        assert_eq!(choices(&mut pool), []);
        assert!(!pool.is_down());
    }

    #[test]
    fn upstreams_already_queried_come_before_suspects_if_they_may_be_repeated() {
        let mut pool = pool(Policy::InOrder);
        silence(&mut pool, 2);
        let mut asked = Set::default();
        assert_eq!(pool.choose(0, 0, 0, asked, true), Some(0));
        asked.insert(0);
        assert_eq!(pool.choose(0, 0, 0, asked, true), Some(1));
        asked.insert(1);
        assert_eq!(pool.choose(0, 0, 0, asked, true), Some(0));
        assert_eq!(pool.choose(0, 0, 0, asked, false), Some(2));
    }

    #[test]
    fn copies_go_first_to_an_upstream_that_never_answered_then_to_those_silent_for_a_second() {
        let mut pool = pool(Policy::Fastest);
        pool.members.push(Member::new(false, [0; 16]));
        assert_eq!(pool.choose(0, 0, 0, Set::default(), true), Some(1));
        let mut explored = Vec::new();
        for question in 0..1000 {
            pool.budget.earn();
            if let Some(index) = pool.explore(SECOND_NANOS, 1) {
                pool.members[index].rtt.sample(SECOND_NANOS, MILLISECOND_NANOS);
                explored.push((question, index));
            }
        }
        assert_eq!(explored, [(22, 3), (87, 0), (152, 2)]);
    }

    #[test]
    fn a_dead_upstream_is_probed_and_comes_back() {
        let mut pool = pool(Policy::InOrder);
        for at in 1..10 {
            let at = at * SECOND_NANOS;
            pool.members[0].health.overdue(at + SECOND_NANOS / 2, at);
        }
        assert_eq!(pool.members[0].health.state(), State::Down);
        assert_eq!(pool.choose(0, 0, 0, Set::default(), true), Some(1));
        let mut now = 0;
        while pool.members[0].health.state() != State::Up {
            now = pool.probe_at().unwrap_or_default().max(now);
            assert_eq!(pool.take_probe(now), Some(0));
            assert_eq!(pool.take_probe(now), None);
            now += MILLISECOND_NANOS;
            pool.probe_ended(now, 0, now - MILLISECOND_NANOS, Some(false));
        }
        assert_eq!(pool.probe_at(), None);
    }
}
