//! The states of all members, and the plans that follow from them.

use super::overrides::{ForcedState, MemberName, Overrides, unix_seconds};
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use zonda_balance::explain::Explanation;
use zonda_balance::{ClientNetwork, Filter, MemberState, PoolPlan};
use zonda_config::{MemberConfig, PoolConfig};
use zonda_health::{Assignment, Check, FileCheck, Kind, Start, Target, TargetId, Timing};
use zonda_wire::Type;

/// Steps in which the weight of a member rises that has come back.
const SLOW_START_STEPS: u32 = 16;

/// The states of all members of all pools.
#[derive(Default)]
pub struct PoolStates {
    /// A number that rises with each change of the pools; 16 bits of it are part of target ids.
    epoch: u64,
    pools: Vec<PoolState>,
    /// The pools whose members have changed since their plans were made, each once.
    stale: Vec<u32>,
    /// The pools with a member whose weight rises.
    rising: BTreeSet<u32>,
    /// What operators have said about members.
    overrides: Overrides,
    /// When the next override ends, seconds since 1970.
    next_end: Option<u64>,
}

/// A pool, and the states of its members.
struct PoolState {
    config: PoolConfig,
    members: Vec<MemberRecord>,
    plan: Arc<PoolPlan>,
    /// The pools of which it is a member.
    parents: Vec<u32>,
    /// Whether at least as many members are up as the pool needs.
    is_up: bool,
    /// Whether members have changed since the plan was made.
    is_stale: bool,
}

/// What is known about a member.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MemberRecord {
    /// Whether its probes, or the pool that it is, say that it is up.
    is_healthy: bool,
    /// What an operator has said in place of that.
    forced: Option<ForcedState>,
    /// Whether it counts as up.
    is_up: bool,
    /// Whether it was up when any member of the pool last was.
    was_up: bool,
    /// The shortest time after which its probes, or those of the members of the pool that it is,
    /// can change that; none if there are none.
    earliest_change: Option<Duration>,
    /// When it came back, nanoseconds of the monotonic clock, while its weight rises.
    rising_since: Option<u64>,
    /// The part of its weight that it has, as [`MemberState`] has it.
    part: u32,
    /// How long its checks take.
    latency: SmoothedLatency,
}

/// A latency whose value changes only when it has changed by much: plans are not made anew for each
/// probe, nor do members take turns at being the fastest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SmoothedLatency {
    /// The moving average, nanoseconds; none before the first probe that succeeded.
    average: Option<u64>,
    /// The value that counts, microseconds.
    published: Option<u32>,
}

impl SmoothedLatency {
    /// Takes the time of a probe into the average; whether another value counts now.
    fn take(&mut self, took: Duration) -> bool {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX / 16);
        let average = self.average.map_or(nanos, |average| average / 10 * 7 + nanos / 10 * 3);
        self.average = Some(average);
        let micros = u32::try_from(average / 1000).unwrap_or(u32::MAX);
        let is_other = |published: u32| micros.abs_diff(published) > published / 5 + 500;
        let has_changed = self.published.is_none_or(is_other);
        if has_changed {
            self.published = Some(micros);
        }
        has_changed
    }
}

/// A pool, and what is known about its members.
pub struct PoolReport<'p> {
    /// The pool as it is configured.
    pub config: &'p PoolConfig,
    /// Whether at least as many members are up as the pool needs.
    pub is_up: bool,
    /// The TTL of what it answers, seconds.
    pub ttl: u32,
    /// The members, in the order of the configuration.
    pub members: Vec<MemberReport>,
}

/// What is known about a member.
pub struct MemberReport {
    /// The name by which the prober knows it.
    pub id: TargetId,
    /// Whether its probes, or the pool that it is, say that it is up.
    pub is_healthy: bool,
    /// Whether it counts as up.
    pub is_up: bool,
    /// The part of its weight that it has at present.
    pub part: f64,
}

/// A member that went up or down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberChange {
    /// The name of the pool.
    pub pool: String,
    /// The name of the member.
    pub member: String,
    /// Whether it is up now.
    pub is_up: bool,
}

impl PoolStates {
    /// The number of the present pools, which no former ones have.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Replaces the pools; whether they differ. A member that stays, of a pool of the same name and
    /// check, keeps its state.
    pub fn configure(&mut self, configs: &[PoolConfig]) -> bool {
        if self.pools.iter().map(|pool| &pool.config).eq(configs) {
            return false;
        }
        self.epoch = (self.epoch + 1) & 0xffff;
        (self.stale, self.rising) = (Vec::new(), BTreeSet::new());
        let former = std::mem::take(&mut self.pools);
        let mut known = HashMap::new();
        for pool in &former {
            for (described, member) in pool.config.members.iter().zip(&pool.members) {
                let key = (&*pool.config.name, &*described.name);
                known.insert(key, (&pool.config.check, member));
            }
        }
        for config in configs {
            let member =
                |described: &MemberConfig| match known.get(&(&*config.name, &*described.name)) {
                    Some((check, member)) if **check == config.check => (*member).clone(),
                    _ => MemberRecord::new(config, described),
                };
            let members: Vec<MemberRecord> = config.members.iter().map(member).collect();
            let (config, plan) = (config.clone(), Arc::default());
            let (parents, is_up, is_stale) = (Vec::new(), true, true);
            self.stale.push(self.pools.len() as u32);
            if members_rise(&members) {
                self.rising.insert(self.pools.len() as u32);
            }
            self.pools.push(PoolState { config, members, plan, parents, is_up, is_stale });
        }
        for (number, config) in configs.iter().enumerate() {
            for child in config.pool.members.iter().filter_map(|member| member.pool) {
                if let Some(pool) = self.pools.get_mut(child as usize) {
                    pool.parents.push(number as u32);
                }
            }
        }
        for number in 0..self.pools.len() {
            self.settle(number);
            self.tell_parents_earliest_change(number);
        }
        self.force(unix_seconds(), 0);
        let _ = self.take_stale();
        true
    }

    /// What operators have said about members.
    pub fn overrides(&self) -> &Overrides {
        &self.overrides
    }

    /// Replaces what operators have said, at a time in seconds since 1970 and one in nanoseconds of
    /// the monotonic clock.
    pub fn set_overrides(&mut self, overrides: Overrides, (unix, now): (u64, u64)) {
        self.overrides = overrides;
        self.force(unix, now);
    }

    /// Notes that the plan of a pool is to be made anew.
    fn note_stale(&mut self, number: usize) {
        if !std::mem::replace(&mut self.pools[number].is_stale, true) {
            self.stale.push(number as u32);
        }
    }

    /// Has members count as operators say.
    fn force(&mut self, unix: u64, now: u64) {
        self.next_end = self.overrides.next_end(unix);
        for number in 0..self.pools.len() {
            let pool = &mut self.pools[number];
            let mut has_changed = false;
            for (described, member) in pool.config.members.iter().zip(&mut pool.members) {
                let name = (&*pool.config.name, &*described.name);
                member.forced = self.overrides.of(name, unix).map(|said| said.state);
                has_changed |= member.refresh(pool.config.slow_start, now);
            }
            let rises = members_rise(&pool.members);
            if has_changed {
                self.note_stale(number);
                self.settle(number);
            }
            if rises {
                self.rising.insert(number as u32);
            }
        }
    }

    /// All members, by the names of their pools and their own.
    pub fn member_names(&self) -> impl Iterator<Item = MemberName> {
        self.pools.iter().flat_map(|pool| {
            let members = pool.config.members.iter();
            members.map(|member| (pool.config.name.clone(), member.name.clone()))
        })
    }

    /// Calls a function with each pool and what is known about its members.
    pub fn each(&self, mut visit: impl FnMut(PoolReport<'_>)) {
        for (number, pool) in self.pools.iter().enumerate() {
            let member = |(place, record): (usize, &MemberRecord)| MemberReport {
                id: target_id(self.epoch, number, place),
                is_healthy: record.is_healthy,
                is_up: record.is_up,
                part: f64::from(record.part) / f64::from(MemberState::WHOLE),
            };
            let members = pool.members.iter().enumerate().map(member).collect();
            let (is_up, ttl) = (pool.is_up, pool.plan.ttl);
            visit(PoolReport { config: &pool.config, is_up, ttl, members });
        }
    }

    /// Tells what a pool does for a client that asks for a type; none if there is no such pool, or
    /// it has no records of the type.
    pub fn explain(
        &self,
        number: u32,
        rtype: Type,
        client: &ClientNetwork,
    ) -> Option<(&PoolConfig, Explanation)> {
        let pool = self.pools.get(number as usize)?;
        let states: Vec<MemberState> = pool.members.iter().map(MemberRecord::state).collect();
        Some((&pool.config, pool.config.pool.explain(&states, rtype, client)?))
    }

    /// The name of a pool.
    pub fn name_of(&self, number: u32) -> Option<&str> {
        self.pools.get(number as usize).map(|pool| &*pool.config.name)
    }

    /// The plans of all pools, by number.
    pub fn plans(&self) -> Box<[Arc<PoolPlan>]> {
        self.pools.iter().map(|pool| Arc::clone(&pool.plan)).collect()
    }

    /// All members that are checked.
    pub fn targets(&self) -> Vec<Assignment> {
        let mut targets = Vec::new();
        for (number, pool) in self.pools.iter().enumerate() {
            let Some(check) = &pool.config.check else { continue };
            for (member, described) in pool.config.members.iter().enumerate() {
                let Some(address) = described.address else { continue };
                let (address, port) = (check.address.unwrap_or(address), check.port);
                targets.push(Assignment {
                    id: target_id(self.epoch, number, member),
                    target: Target { address, port, check: check_of(&check.check, address) },
                    timing: Timing {
                        interval: check.interval,
                        timeout: check.timeout,
                        thresholds: check.thresholds,
                    },
                });
            }
        }
        targets
    }

    /// Notes whether a target counts as up, and the shortest time after which that can change, at a
    /// time in nanoseconds of the monotonic clock. Returns the member if it went up or down; of
    /// former pools, nothing is noted.
    pub fn observe(
        &mut self,
        id: TargetId,
        (is_up, earliest_change): (bool, Duration),
        now: u64,
    ) -> Option<MemberChange> {
        let (number, member) = ((id.0 >> 24) as usize & 0xff_ffff, id.0 as usize & 0xff_ffff);
        if id != target_id(self.epoch, number, member) {
            return None;
        }
        let pool = self.pools.get_mut(number)?;
        let record = pool.members.get_mut(member)?;
        let former_ttl = record.earliest_change.replace(earliest_change);
        let mut is_stale = former_ttl != Some(earliest_change);
        let has_changed = record.is_healthy != is_up;
        record.is_healthy = is_up;
        is_stale |= record.refresh(pool.config.slow_start, now);
        let rises = record.rising_since.is_some();
        if is_stale {
            self.note_stale(number);
            self.tell_parents_earliest_change(number);
        }
        if !has_changed {
            return None;
        }
        if rises {
            self.rising.insert(number as u32);
        }
        let pool = &self.pools[number];
        let change = MemberChange {
            pool: pool.config.name.clone(),
            member: pool.config.members[member].name.clone(),
            is_up,
        };
        self.settle(number);
        Some(change)
    }

    /// Notes how long a probe took that succeeded; of former pools, nothing is noted.
    pub fn observe_latency(&mut self, id: TargetId, took: Duration) {
        let (number, member) = ((id.0 >> 24) as usize & 0xff_ffff, id.0 as usize & 0xff_ffff);
        let is_of_now = id == target_id(self.epoch, number, member);
        let Some(pool) = self.pools.get_mut(number).filter(|_| is_of_now) else { return };
        let matters = pool.config.pool.filters.contains(&Filter::Latency);
        let Some(record) = pool.members.get_mut(member) else { return };
        if record.latency.take(took) && matters {
            self.note_stale(number);
        }
    }

    /// Ends overrides whose time is over, and raises the weights of members that have come back, at
    /// a time in nanoseconds of the monotonic clock and one in seconds since 1970; returns how long
    /// until the next such step.
    pub fn pass_time(&mut self, now: u64, unix: u64) -> Option<Duration> {
        if self.next_end.is_some_and(|end| end <= unix) {
            self.force(unix, now);
        }
        let mut next = self.next_end.map(|end| Duration::from_secs(end.saturating_sub(unix)));
        for number in std::mem::take(&mut self.rising) {
            let pool = &mut self.pools[number as usize];
            let slow_start = pool.config.slow_start;
            let mut has_changed = false;
            for member in &mut pool.members {
                let Some(since) = member.rising_since else { continue };
                let part = part(now.saturating_sub(since), slow_start);
                has_changed |= part != member.part;
                member.part = part;
                if part == MemberState::WHOLE {
                    member.rising_since = None;
                }
            }
            if members_rise(&pool.members) {
                self.rising.insert(number);
                let step = slow_start / SLOW_START_STEPS;
                next = Some(next.map_or(step, |next| next.min(step)));
            }
            if has_changed {
                self.note_stale(number as usize);
            }
        }
        next
    }

    /// Takes the plans of pools whose members have changed since the last time, compiled anew.
    pub fn take_stale(&mut self) -> Vec<(u32, Arc<PoolPlan>)> {
        let numbers = std::mem::take(&mut self.stale).into_iter();
        let plans = numbers.map(|number| {
            let pool = &mut self.pools[number as usize];
            pool.is_stale = false;
            pool.compile();
            (number, Arc::clone(&pool.plan))
        });
        plans.collect()
    }

    /// Has the pools that a pool is a member of know the shortest time after which probes can
    /// change what it answers.
    fn tell_parents_earliest_change(&mut self, number: usize) {
        let parents = self.pools[number].parents.clone();
        if parents.is_empty() {
            return; // as of most pools, which may have thousands of members
        }
        let earliest = self.pools[number].earliest_change();
        for parent in parents {
            let pool = &mut self.pools[parent as usize];
            let mut has_changed = false;
            for (member, record) in pool.config.pool.members.iter().zip(&mut pool.members) {
                if member.pool == Some(number as u32) && record.earliest_change != earliest {
                    record.earliest_change = earliest;
                    has_changed = true;
                }
            }
            if has_changed {
                self.note_stale(parent as usize);
                self.tell_parents_earliest_change(parent as usize);
            }
        }
    }

    /// Decides whether a pool is up, and has those know that it is a member of. Pools form no
    /// circle.
    fn settle(&mut self, number: usize) {
        let pool = &mut self.pools[number];
        let up = pool.members.iter().filter(|member| member.is_up).count();
        if up > 0 {
            pool.members.iter_mut().for_each(|member| member.was_up = member.is_up);
        }
        let is_up = up >= (pool.config.up_min as usize).min(pool.members.len());
        let (was_up, parents) = (pool.is_up, pool.parents.clone());
        pool.is_up = is_up;
        if was_up == is_up {
            return;
        }
        for parent in parents {
            let pool = &mut self.pools[parent as usize];
            for (member, record) in pool.config.pool.members.iter().zip(&mut pool.members) {
                if member.pool == Some(number as u32) {
                    record.is_healthy = is_up;
                    record.refresh(Duration::ZERO, 0);
                }
            }
            self.note_stale(parent as usize);
            self.settle(parent as usize);
        }
    }
}

impl PoolState {
    /// The shortest time after which probes can change what the pool answers.
    fn earliest_change(&self) -> Option<Duration> {
        self.members.iter().filter_map(|member| member.earliest_change).min()
    }

    /// Makes the plan anew.
    fn compile(&mut self) {
        let states: Vec<MemberState> = self.members.iter().map(MemberRecord::state).collect();
        let (min, max) = (self.config.ttl_min, self.config.ttl_max);
        let ttl = self.earliest_change().map_or(max, |earliest| earliest.clamp(min, max));
        let ttl = u32::try_from(ttl.as_secs()).unwrap_or(u32::MAX).max(1);
        let former = (!self.plan.is_empty()).then_some(&*self.plan);
        self.plan = Arc::new(self.config.pool.compile(&states, ttl, former));
    }
}

impl MemberRecord {
    /// A member of a pool before any probe.
    fn new(pool: &PoolConfig, member: &MemberConfig) -> Self {
        let check = pool.check.as_ref().filter(|_| member.address.is_some());
        let is_up = check.is_none_or(|check| check.thresholds.start == Start::Up);
        Self {
            is_healthy: is_up,
            forced: None,
            is_up,
            was_up: is_up,
            earliest_change: check.map(|_| Duration::ZERO), // the first probe may decide
            rising_since: None,
            part: MemberState::WHOLE,
            latency: SmoothedLatency::default(),
        }
    }

    /// The state, as far as a choice depends on it.
    fn state(&self) -> MemberState {
        let latency = self.latency.published;
        MemberState { is_up: self.is_up, was_up: self.was_up, part: self.part, latency }
    }

    /// Decides whether the member counts as up; whether that is new.
    fn refresh(&mut self, slow_start: Duration, now: u64) -> bool {
        let is_up = self.forced.map_or(self.is_healthy, ForcedState::is_up);
        if is_up == self.is_up {
            return false;
        }
        self.is_up = is_up;
        let rises = is_up && !slow_start.is_zero();
        self.rising_since = rises.then_some(now);
        self.part = if rises { part(0, slow_start) } else { MemberState::WHOLE };
        true
    }
}

/// The check of a member with an address: that of its pool, but for a file of its own.
fn check_of(check: &Arc<Check>, address: IpAddr) -> Arc<Check> {
    /// What stands for the address in a path.
    const ADDRESS: &str = "{address}";
    match &check.kind {
        Kind::File(file) if file.path.to_string_lossy().contains(ADDRESS) => {
            let path = file.path.to_string_lossy().replace(ADDRESS, &address.to_string()).into();
            Arc::new(Check { kind: Kind::File(FileCheck { path }), ..(**check).clone() })
        }
        _ => Arc::clone(check),
    }
}

/// Whether the weight of any member rises.
fn members_rise(members: &[MemberRecord]) -> bool {
    members.iter().any(|member| member.rising_since.is_some())
}

/// The part of its weight that a member has so many nanoseconds after it has come back.
fn part(nanos: u64, slow_start: Duration) -> u32 {
    let whole = u64::from(MemberState::WHOLE);
    let steps = u64::from(SLOW_START_STEPS);
    let total = u64::try_from(slow_start.as_nanos()).unwrap_or(u64::MAX).max(1);
    let step = (u128::from(nanos) * u128::from(steps) / u128::from(total)) as u64 + 1;
    (whole * step.min(steps) / steps) as u32 // at most the whole
}

/// The name by which the prober knows a member: the epoch of the pools, and the numbers of the pool
/// and of the member in it.
fn target_id(epoch: u64, pool: usize, member: usize) -> TargetId {
    TargetId(epoch << 48 | (pool as u64) << 24 | member as u64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::steering::overrides::Override;
    use zonda_balance::{Dice, Outcome};
    use zonda_config::{Config, Flags};

    const SECOND: u64 = 1_000_000_000;

    /// The pools of a configuration whose zone has `www` steered to the first one.
    fn pools(name: &str, text: &str) -> Vec<PoolConfig> {
        let first = text.split('"').nth(1).unwrap();
        let text = format!(
            "version = 1\n{text}\n[[zone]]\nname = \"example\"\nfile = \"example.zone\"\n\
             steer = {{ \"www A\" = \"{first}\" }}\n"
        );
        let directory = std::env::temp_dir().join(format!("zonda-pools-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let file = directory.join(name);
        std::fs::write(&file, text).unwrap();
        let loaded = Config::load(Some(&file), [], &Flags::default());
        std::fs::remove_file(&file).unwrap();
        loaded.unwrap().config.pools
    }

    /// The last octets of addresses that the first pool answers with, in order, each once.
    fn answers(states: &PoolStates) -> Vec<u8> {
        let (plans, mut dice) = (states.plans(), Dice::new(1));
        let client = ClientNetwork::of_address([192, 0, 2, 1].into());
        let mut octets = Vec::new();
        for _ in 0..1000 {
            let mut pool = 0;
            loop {
                match plans[pool].view(Type::A).unwrap().choose(&client, b"\0", &mut dice) {
                    Outcome::Pool(next, _) => pool = next as usize,
                    Outcome::Members(choice) => break octets.push(choice.rdata(0)[3]),
                    Outcome::Without(_) => break,
                }
            }
        }
        octets.sort_unstable();
        octets.dedup();
        octets
    }

    /// The states of pools that are probed every five seconds.
    fn configured(name: &str, text: &str) -> PoolStates {
        let mut states = PoolStates::default();
        assert!(states.configure(&pools(name, text)));
        states
    }

    const STEADY: Duration = Duration::from_secs(15);

    /// Has a member of a pool go up or down at a time in seconds.
    fn observe(states: &mut PoolStates, (pool, member): (usize, usize), is_up: bool, at: u64) {
        let id = target_id(states.epoch(), pool, member);
        states.observe(id, (is_up, STEADY), at * SECOND);
    }

    const TWO: &str = "[[pool]]\nname = \"web\"\ncheck = { tcp = 80 }\nwhen-all-down = \
        \"last-healthy\"\nmembers = [{ address = \"192.0.2.1\" }, { address = \"192.0.2.2\" }]\n";

    #[test]
    fn a_member_that_goes_down_is_answered_no_more_and_the_last_ones_up_stay() {
        let mut states = configured("down", TWO);
        assert_eq!(answers(&states), [1, 2]);
        observe(&mut states, (0, 0), false, 1);
        assert_eq!(states.take_stale().len(), 1);
        assert_eq!(answers(&states), [2]);
        observe(&mut states, (0, 1), false, 2);
        states.take_stale();
        assert_eq!(answers(&states), [2], "the one that was up last");
        observe(&mut states, (0, 0), true, 3);
        states.take_stale();
        assert_eq!(answers(&states), [1]);
    }

    #[test]
    fn the_ttl_is_the_time_until_the_earliest_change_within_its_bounds() {
        let mut states = configured("ttl", TWO);
        let ttl = |states: &mut PoolStates, earliest: u64| {
            let id = target_id(states.epoch(), 0, 0);
            states.observe(id, (true, Duration::from_secs(earliest)), 0);
            let other = target_id(states.epoch(), 0, 1);
            states.observe(other, (true, Duration::from_secs(3600)), 0);
            states.take_stale();
            states.plans()[0].ttl
        };
        assert_eq!(states.plans()[0].ttl, 5, "before the first probes");
        assert_eq!(ttl(&mut states, 15), 15);
        assert_eq!(ttl(&mut states, 1), 5);
        assert_eq!(ttl(&mut states, 600), 60);
    }

    #[test]
    fn the_ttl_of_a_pool_counts_the_members_of_the_pools_that_are_its_members() {
        let text = "[[pool]]\nname = \"top\"\nchoose = \"failover\"\nmembers = [{ pool = \
            \"all\" }]\n[[pool]]\nname = \"all\"\nchoose = \"failover\"\nmembers = [{ pool = \
            \"fra\" }, { pool = \"nyc\", priority = 2 }]\n[[pool]]\nname = \"fra\"\n\
            check = { tcp = 80 }\nmembers = [{ address = \"192.0.2.1\" }]\n[[pool]]\n\
            name = \"nyc\"\nmembers = [{ address = \"192.0.2.2\" }]\n";
        let mut states = configured("nested-ttl", text);
        let mut told = |is_up, earliest: u64| {
            let id = target_id(states.epoch(), 2, 0);
            states.observe(id, (is_up, Duration::from_secs(earliest)), 0);
            states.take_stale();
            let plans = states.plans();
            [0, 1, 3].map(|pool: usize| plans[pool].ttl)
        };
        assert_eq!(told(true, 30), [30, 30, 60]);
        assert_eq!(told(false, 10), [10, 10, 60], "it could be up again after ten seconds");
        assert_eq!(told(false, 6), [6, 6, 60]);
        assert_eq!(told(true, 15), [15, 15, 60]);
    }

    #[test]
    fn members_keep_their_states_when_the_pools_change_and_former_results_do_not_count() {
        let mut states = configured("keep", TWO);
        observe(&mut states, (0, 0), false, 1);
        let former = states.epoch();
        let more = TWO.replace("[{", "[{ address = \"192.0.2.3\" }, {");
        assert!(states.configure(&pools("keep", &more)));
        assert_eq!(answers(&states), [2, 3]);
        let change = states.observe(target_id(former, 0, 0), (false, STEADY), SECOND);
        assert_eq!(change, None);
        let same = states.configure(&pools("keep", &more));
        assert!(!same);
        let other_check = more.replace("80", "81");
        states.configure(&pools("keep", &other_check));
        assert_eq!(answers(&states), [1, 2, 3], "what another check found does not count");
    }

    #[test]
    fn a_pool_with_too_few_members_is_down_as_a_member() {
        let text = "[[pool]]\nname = \"all\"\nchoose = \"failover\"\nmembers = [{ pool = \
            \"fra\" }, { address = \"192.0.2.9\", priority = 2 }]\n[[pool]]\nname = \"fra\"\n\
            up-min = 2\ncheck = { tcp = 80 }\nmembers = [{ address = \"192.0.2.1\" }, { address = \
            \"192.0.2.2\" }, { address = \"192.0.2.3\" }]\n";
        let mut states = configured("nested", text);
        assert_eq!(answers(&states), [1, 2, 3]);
        observe(&mut states, (1, 0), false, 1);
        states.take_stale();
        assert_eq!(answers(&states), [2, 3]);
        observe(&mut states, (1, 1), false, 1);
        states.take_stale();
        assert_eq!(answers(&states), [9]);
        observe(&mut states, (1, 0), true, 1);
        states.take_stale();
        assert_eq!(answers(&states), [1, 3]);
    }

    #[test]
    fn the_weight_of_a_member_that_comes_back_rises_in_steps() {
        let mut states = configured("slow", &TWO.replace("check", "slow-start = \"32s\"\ncheck"));
        observe(&mut states, (0, 0), false, 1);
        assert_eq!(states.pass_time(2 * SECOND, 0), None);
        observe(&mut states, (0, 0), true, 10);
        let part = |states: &PoolStates| states.pools[0].members[0].part * 16 / MemberState::WHOLE;
        assert_eq!(part(&states), 1);
        assert_eq!(states.pass_time(26 * SECOND, 0), Some(Duration::from_secs(2)));
        assert_eq!(part(&states), 9);
        assert_eq!(states.pass_time(42 * SECOND, 0), None);
        assert_eq!(part(&states), 16);
    }

    #[test]
    fn the_fastest_members_answer_and_small_changes_change_nothing() {
        let text = TWO.replace("check", "choose = \"latency\"\ncheck");
        let mut states = configured("latency", &text);
        let take = |states: &mut PoolStates, member: usize, millis: u64| {
            let id = target_id(states.epoch(), 0, member);
            states.observe_latency(id, Duration::from_millis(millis));
            states.take_stale().len()
        };
        assert_eq!(take(&mut states, 0, 10), 1);
        assert_eq!(take(&mut states, 1, 40), 1);
        assert_eq!(answers(&states), [1]);
        assert_eq!(take(&mut states, 0, 12), 0, "the average has hardly changed");
        for _ in 0..20 {
            take(&mut states, 0, 90);
        }
        assert_eq!(answers(&states), [2]);
        for _ in 0..20 {
            take(&mut states, 0, 41);
        }
        assert_eq!(answers(&states), [1, 2]);
    }

    #[test]
    fn what_an_operator_says_wins_over_probes_until_it_ends() {
        let mut states = configured("forced", TWO);
        let drain = |state, until| {
            let said =
                Override { state, since: 0, until, reason: String::new(), by: String::new() };
            let mut overrides = Overrides::default();
            let members = [("web".to_owned(), "192.0.2.1".to_owned())];
            overrides.set(&members, Some(&said), serde_json::Value::Null);
            overrides
        };
        states.set_overrides(drain(ForcedState::Drained, Some(100)), (50, 0));
        states.take_stale();
        assert_eq!(answers(&states), [2]);
        assert_eq!(states.pass_time(0, 60), Some(Duration::from_secs(40)));
        states.pass_time(0, 100);
        states.take_stale();
        assert_eq!(answers(&states), [1, 2]);
        observe(&mut states, (0, 0), false, 1);
        states.set_overrides(drain(ForcedState::Up, None), (100, 0));
        states.take_stale();
        assert_eq!(answers(&states), [1, 2]);
        states.set_overrides(Overrides::default(), (100, 0));
        states.take_stale();
        assert_eq!(answers(&states), [2]);
    }
}
