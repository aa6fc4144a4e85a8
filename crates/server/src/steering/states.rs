//! The states of all members, and the plans that follow from them.
//!
//! The state of a member comes from its probes, from the pool that it is, or from a formula of the
//! states of pools and of members. What an operator says wins over all of these.

use super::member::{MemberRecord, TimeStep};
use super::overrides::{MemberName, Overrides, matches, unix_seconds};
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use zonda_balance::explain::Explanation;
use zonda_balance::{ClientNetwork, Filter, MemberState, PoolPlan};
use zonda_config::{AddressLookup, MemberConfig, PoolConfig, StateSource, with_addresses};
use zonda_health::{Assignment, Check, FileCheck, Kind, Target, TargetId, Timing};
use zonda_wire::Type;

/// The states of all members of all pools.
#[derive(Default)]
pub struct PoolStates {
    /// A number that rises with each change of the pools; 16 bits of it are part of target ids.
    epoch: u64,
    pools: Vec<PoolState>,
    /// The pools whose members have changed since their plans were made, each once.
    stale: Vec<u32>,
    /// The pools with a member whose state changes with time alone.
    timed: BTreeSet<u32>,
    /// What operators have said about members.
    overrides: Overrides,
    /// The addresses of names that are members, by the name of the pool whose members they are.
    addresses: HashMap<String, Vec<IpAddr>>,
    /// The directory of the file that holds what operators have said.
    directory: Option<PathBuf>,
    /// When the next override ends, seconds since 1970.
    next_end: Option<u64>,
    /// The latest time that was told, nanoseconds of the monotonic clock.
    now: u64,
    /// Members without probes that went up or down, until they are taken.
    derived: Vec<MemberChange>,
}

/// A pool, and the states of its members.
struct PoolState {
    config: PoolConfig,
    members: Vec<MemberRecord>,
    plan: Arc<PoolPlan>,
    /// The members whose states depend on this pool's, or on that of one of its members: by the
    /// number of that member, none for the pool; each as the numbers of its pool and its own.
    dependents: HashMap<Option<u32>, Vec<(u32, u32)>>,
    /// Whether at least as many members are up as the pool needs.
    is_up: bool,
    /// The shortest time after which probes can change what the pool answers; known where members
    /// depend on it.
    earliest_change: Option<Duration>,
    /// Whether members have changed since the plan was made.
    is_stale: bool,
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
    /// Whether its probes, or the states that its own depends on, say that it is up.
    pub is_healthy: bool,
    /// What a choice depends on.
    pub state: MemberState,
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
    /// Whether it answers again only when an operator says so.
    pub is_resumed_by_hand: bool,
}

impl PoolStates {
    /// The number of the present pools, which no former ones have.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Replaces the pools; whether they differ. A member that stays, of a pool of the same name and
    /// check, keeps its state.
    pub fn configure(&mut self, configs: &[PoolConfig]) -> bool {
        let configs = &with_addresses(configs, |pool| self.addresses.get(pool).map(|it| &**it))[..];
        if self.pools.iter().map(|pool| &pool.config).eq(configs) {
            return false;
        }
        self.epoch = (self.epoch + 1) & 0xffff;
        (self.stale, self.timed) = (Vec::new(), (0..configs.len() as u32).collect());
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
            let (config, plan, dependents) = (config.clone(), Arc::default(), HashMap::new());
            self.stale.push(self.pools.len() as u32);
            self.pools.push(PoolState {
                config,
                members,
                plan,
                dependents,
                is_up: true,
                earliest_change: None,
                is_stale: true,
            });
        }
        self.connect();
        self.force(unix_seconds(), self.now);
        let _ = (self.take_stale(), self.take_derived());
        true
    }

    /// Makes the addresses of a name the members of the pool that looks it up; whether that has
    /// changed any pool.
    pub fn set_addresses(&mut self, pool: &str, addresses: Vec<IpAddr>) -> bool {
        self.addresses.insert(pool.to_owned(), addresses);
        let configs: Vec<PoolConfig> = self.pools.iter().map(|pool| pool.config.clone()).collect();
        self.configure(&configs)
    }

    /// The names that are looked up, with the pools whose members their addresses are.
    pub fn lookups(&self) -> HashMap<String, AddressLookup> {
        let lookup = |pool: &PoolState| {
            pool.config.lookup.clone().map(|lookup| (pool.config.name.clone(), lookup))
        };
        self.pools.iter().filter_map(lookup).collect()
    }

    /// Has pools know the members that depend on them, and these their states. Pools form no
    /// circle.
    fn connect(&mut self) {
        let mut derived = Vec::new();
        for number in 0..self.pools.len() {
            for member in 0..self.pools[number].members.len() {
                let place = (number as u32, member as u32); // memory ends before
                self.pools[number].config.each_source(member, &mut |source| {
                    derived.push((source, place));
                });
            }
            self.recount(number);
        }
        for (source, place) in &derived {
            if let Some(pool) = self.pools.get_mut(source.pool as usize) {
                pool.dependents.entry(source.member).or_default().push(*place);
            }
        }
        for pool in &mut self.pools {
            pool.earliest_change = pool.earliest_change();
        }
        // The sources of a state come before it or behind it: each round settles one step more.
        for _ in 0..zonda_balance::POOL_DEPTH_MAX {
            for (_, place) in &derived {
                self.derive(*place);
                self.derive_earliest_change(*place);
            }
        }
        let members = self.pools.iter_mut().flat_map(|pool| &mut pool.members);
        members.for_each(MemberRecord::note_known);
    }

    /// Sets the directory of the file that holds what operators have said.
    pub fn set_directory(&mut self, directory: Option<PathBuf>) {
        self.directory = directory;
    }

    /// The directory of the file that holds what operators have said.
    pub fn directory(&self) -> Option<PathBuf> {
        self.directory.clone()
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

    /// Notes loads, in percent, of the members that patterns `POOL/MEMBER` stand for, until a time
    /// in nanoseconds of the monotonic clock; returns the number of members of each pattern.
    pub fn set_loads(&mut self, loads: &[(String, u32)], until: u64) -> Vec<usize> {
        let mut places = HashMap::<String, (usize, usize)>::new();
        for (number, pool) in self.pools.iter().enumerate() {
            for (member, described) in pool.config.members.iter().enumerate() {
                let name = format!("{}/{}", pool.config.name, described.name);
                places.insert(name, (number, member));
            }
        }
        let of_load = |(pattern, load): &(String, u32)| {
            let found: Vec<(usize, usize)> = match pattern.contains(['*', '?']) {
                false => places.get(pattern).copied().into_iter().collect(),
                true => {
                    let meant = places.iter().filter(|(name, _)| matches(pattern, name));
                    meant.map(|(_, place)| *place).collect()
                }
            };
            found.iter().for_each(|place| self.set_load(*place, *load, until));
            found.len()
        };
        loads.iter().map(of_load).collect()
    }

    /// Notes the load of a member.
    fn set_load(&mut self, (number, member): (usize, usize), load: u32, until: u64) {
        let pool = &mut self.pools[number];
        let sheds = pool.config.pool.filters.iter().any(|it| matches!(it, Filter::Load(_)));
        self.timed.insert(number as u32);
        if pool.members[member].set_load(load, until) && sheds {
            self.note_stale(number);
        }
    }

    /// Notes that the plan of a pool is to be made anew.
    fn note_stale(&mut self, number: usize) {
        if !std::mem::replace(&mut self.pools[number].is_stale, true) {
            self.stale.push(number as u32);
        }
    }

    /// Has members count as operators say.
    fn force(&mut self, unix: u64, now: u64) {
        self.now = now;
        self.next_end = self.overrides.next_end(unix);
        for number in 0..self.pools.len() {
            for member in 0..self.pools[number].members.len() {
                let pool = &mut self.pools[number];
                let name = (&*pool.config.name, &*pool.config.members[member].name);
                let forced = self.overrides.of(name, unix).map(|said| said.state);
                let former = std::mem::replace(&mut pool.members[member].forced, forced);
                if former != forced {
                    self.note_stale(number);
                }
                self.refresh((number, member));
            }
        }
    }

    /// Decides what a member counts as, and all that depends on it.
    fn refresh(&mut self, (number, member): (usize, usize)) {
        let pool = &mut self.pools[number];
        let record = &mut pool.members[member];
        let before = record.state();
        record.refresh(&pool.config, self.now);
        let after = record.state();
        if record.is_timed() {
            self.timed.insert(number as u32);
        }
        if before == after {
            return;
        }
        self.note_stale(number);
        if before.is_up != after.is_up {
            self.recount(number);
            self.derive_dependents(number, Some(member as u32));
        }
    }

    /// Decides whether a pool is up, and all that depends on it.
    fn recount(&mut self, number: usize) {
        let pool = &mut self.pools[number];
        let up = pool.members.iter().filter(|member| member.is_up()).count();
        if up > 0 {
            pool.members.iter_mut().for_each(MemberRecord::note_was_up);
        }
        let is_up = up >= (pool.config.up_min as usize).min(pool.members.len()).max(1);
        if std::mem::replace(&mut pool.is_up, is_up) != is_up {
            self.derive_dependents(number, None);
        }
    }

    /// Decides the states that depend on a pool's, or on that of one of its members.
    fn derive_dependents(&mut self, number: usize, member: Option<u32>) {
        let dependents = self.pools[number].dependents.get(&member).cloned();
        dependents.into_iter().flatten().for_each(|place| self.derive(place));
    }

    /// Decides the state of a member that depends on those of pools or of members.
    fn derive(&mut self, (number, member): (u32, u32)) {
        let (number, member) = (number as usize, member as usize);
        let config = &self.pools[number].config;
        let is_healthy = match (config.pool.members[member].pool, &config.members[member]) {
            (Some(child), _) => self.is_up(&StateSource { pool: child, member: None }),
            (None, described) => {
                let Some(calculation) = &described.calculation else { return };
                calculation.formula.is_up(&|source| self.is_up(source))
            }
        };
        let record = &mut self.pools[number].members[member];
        if std::mem::replace(&mut record.is_healthy, is_healthy) != is_healthy {
            let change = self.change((number, member), is_healthy);
            self.derived.push(change);
            self.refresh((number, member));
        }
    }

    /// Whether a pool, or a member, counts as up.
    fn is_up(&self, source: &StateSource) -> bool {
        let Some(pool) = self.pools.get(source.pool as usize) else { return false };
        match source.member {
            None => pool.is_up,
            Some(member) => pool.members.get(member as usize).is_some_and(MemberRecord::is_up),
        }
    }

    /// The change of a member to up or down.
    fn change(&self, (number, member): (usize, usize), is_up: bool) -> MemberChange {
        let config = &self.pools[number].config;
        MemberChange {
            pool: config.name.clone(),
            member: config.members[member].name.clone(),
            is_up,
            is_resumed_by_hand: config.is_resumed_by_hand,
        }
    }

    /// Takes the members without probes that went up or down since the last time.
    pub fn take_derived(&mut self) -> Vec<MemberChange> {
        std::mem::take(&mut self.derived)
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
                state: record.state(),
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
        self.now = now;
        let record = self.pools.get_mut(number)?.members.get_mut(member)?;
        let former = record.earliest_change.replace(earliest_change);
        let has_changed = std::mem::replace(&mut record.is_healthy, is_up) != is_up;
        if former != Some(earliest_change) {
            self.note_stale(number);
            self.derive_earliest_changes(number, member as u32);
        }
        self.refresh((number, member));
        has_changed.then(|| self.change((number, member), is_up))
    }

    /// Has members know the shortest time after which probes can change the states that their own
    /// depend on, one of which is that of this member.
    fn derive_earliest_changes(&mut self, number: usize, member: u32) {
        if self.pools[number].dependents.is_empty() {
            return; // as of most pools, which may have thousands of members
        }
        let earliest = self.pools[number].earliest_change();
        let former = std::mem::replace(&mut self.pools[number].earliest_change, earliest);
        let of_pool = (former != earliest).then_some(None);
        for source in [Some(member)].into_iter().chain(of_pool) {
            let dependents = self.pools[number].dependents.get(&source).cloned();
            for place in dependents.into_iter().flatten() {
                self.derive_earliest_change(place);
            }
        }
    }

    /// Has a member know the shortest time after which probes can change the states that its own
    /// depends on.
    fn derive_earliest_change(&mut self, (number, member): (u32, u32)) {
        let (number, place) = (number as usize, member as usize);
        let mut earliest: Option<Duration> = None;
        self.pools[number].config.each_source(place, &mut |source| {
            let Some(pool) = self.pools.get(source.pool as usize) else { return };
            let found = match source.member {
                None => pool.earliest_change,
                Some(member) => pool.members.get(member as usize).and_then(|it| it.earliest_change),
            };
            earliest = earliest.into_iter().chain(found).min();
        });
        let record = &mut self.pools[number].members[place];
        if std::mem::replace(&mut record.earliest_change, earliest) != earliest {
            self.note_stale(number);
            self.derive_earliest_changes(number, member);
        }
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

    /// Ends overrides and loads whose time is over, and changes what changes with time of members
    /// that have come back, at a time in nanoseconds of the monotonic clock and one in seconds
    /// since 1970; returns how long until the next such step.
    pub fn pass_time(&mut self, now: u64, unix: u64) -> Option<Duration> {
        if self.next_end.is_some_and(|end| end <= unix) {
            self.force(unix, now);
        }
        let mut next = self.next_end.map(|end| Duration::from_secs(end.saturating_sub(unix)));
        for number in std::mem::take(&mut self.timed) {
            let pool = &mut self.pools[number as usize];
            let steps = pool.members.iter_mut().map(|member| member.pass_time(&pool.config, now));
            let (mut has_changed, mut of_pool) = (false, None::<Duration>);
            for TimeStep { has_changed: is_other, next } in steps {
                has_changed |= is_other;
                of_pool = of_pool.into_iter().chain(next).min();
            }
            if let Some(step) = of_pool {
                self.timed.insert(number);
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

/// The name by which the prober knows a member: the epoch of the pools, and the numbers of the pool
/// and of the member in it.
fn target_id(epoch: u64, pool: usize, member: usize) -> TargetId {
    TargetId(epoch << 48 | (pool as u64) << 24 | member as u64)
}

#[cfg(test)]
mod tests;
