//! Pools, and the names that are steered to them.

use super::geo::{self, Maps, SiteStep, Sites};
use super::pool_check::{self, WrittenCheck};
use super::pool_names::{ReadPool, with_pools_of_names};
use crate::error::{
    Contradiction, DerivedMistake, GeoMistake, Origin, PoolMistake, Problem, SteerMistake,
};
use crate::keys::{CheckKeys, MemberKeys, PoolKeys, STEER};
use crate::load::Layers;
use crate::pool_value::{AllDownPolicy, ChoiceStep, ResumePolicy};
use crate::reader::{Reader, Session};
use crate::section::Keys;
use crate::unknown::nearest;
use crate::{MemberConfig, PoolCheck, PoolConfig, SteerRule};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use zonda_balance::geography::Geography;
use zonda_balance::{Filter, LoadMarks, Member, Order, Pool, Records, WhenAllDown, identity_of};
use zonda_health::{Check, Formula, Kind, PushCheck};
use zonda_wire::{Name, Type, name, rdata};

/// Bits of the IPv4 network by which the order `hash` knows a client: a usual size of a site's.
const HASH_V4_BITS: u8 = 24;
/// Bits of the IPv6 network by which the order `hash` knows a client.
const HASH_V6_BITS: u8 = 56;

/// The pools that were read, while zones are read that name them.
pub(super) struct Pools {
    pub(super) pools: Vec<NewPool>,
    pub(super) by_name: BTreeMap<String, u32>,
}

/// A pool that was read.
pub(super) struct NewPool {
    pub(super) config: PoolConfig,
    /// The data of each member, as they are written.
    data: Vec<Option<String>>,
    /// Where the pool stands.
    origin: Origin,
    /// The types whose records it has, or whose data were found to be wrong and reported.
    types: HashSet<Type>,
    /// How members are chosen by their sites, until the map of these is made.
    site_step: Option<SiteStep>,
    /// The formula of its members' states, if they are calculated, and where it stands.
    pub(super) formula: Option<(Formula<String>, Origin)>,
}

/// A member that was read.
pub(super) struct NewMember {
    pub(super) keys: MemberKeys,
    /// The number of its site.
    site: Option<u16>,
    /// Where the member stands.
    pub(super) origin: Origin,
}

impl NewPool {
    /// Makes the map of the pool's sites, if members are chosen by them.
    fn map_sites(&mut self, session: &mut Session<'_>, maps: &mut Maps) {
        let Some(step) = self.site_step.take() else { return };
        let pool = &mut self.config.pool;
        let has_wrong_site = |(member, named): (&Member, &MemberConfig)| {
            member.site.is_none() && named.site.is_some()
        };
        if pool.members.iter().zip(&self.config.members).any(has_wrong_site) {
            return; // it is reported
        }
        match maps.map(step, pool.members.iter().filter_map(|member| member.site).collect()) {
            Ok(map) => pool.filters.insert(step.place, Filter::Sites(map)),
            Err(mistake) => geo::fail(session, &self.origin, mistake),
        }
    }
}

impl Pools {
    /// Reads all pools.
    pub fn read<'a>(layers: &Layers<'a>, session: &mut Session<'a>, sites: &mut Sites) -> Self {
        let mut read = Vec::new();
        for (table, origin) in layers.tables(&PoolKeys::SECTION) {
            let at = origin.clone();
            let mut reader = Reader::new(session, &PoolKeys::SECTION, Some(table), Vec::new(), at);
            let keys = PoolKeys::read(&mut reader);
            let elements = reader.nested_elements(&MemberKeys::SECTION);
            let mut members = Vec::new();
            let steps = keys.as_ref().map_or(&[][..], |keys| &keys.choose);
            let is_learned = steps.contains(&ChoiceStep::LearnedLatency);
            for (table, origin) in elements {
                let section = &MemberKeys::SECTION;
                let mut reader = reader.nested_reader(section, (Some(table), origin), Vec::new());
                members.extend(member(&mut reader, (sites, is_learned)));
            }
            let check = reader.nested(&CheckKeys::SECTION).and_then(|(table, origin)| {
                let section = &CheckKeys::SECTION;
                pool_check::read(&mut reader.nested_reader(section, (Some(table), origin), vec![]))
            });
            if members.is_empty() {
                reader.contradict(None, Contradiction::Pool(PoolMistake::Empty));
            }
            if let Some(keys) = keys {
                let has_names = members.iter().any(|member| member.keys.name.is_some());
                if !has_names && !keys.bootstrap.is_empty() {
                    let mistake = PoolMistake::from(DerivedMistake::BootstrapForNothing);
                    reader.contradict(Some("bootstrap"), Contradiction::Pool(mistake));
                }
                read.push(ReadPool { keys, check, members, origin, lookup: None });
            }
        }
        let read = with_pools_of_names(session, read);
        let mut by_name = BTreeMap::new();
        for (number, ReadPool { keys, origin, .. }) in read.iter().enumerate() {
            if by_name.insert(keys.name.clone(), number as u32).is_some() {
                fail(session, origin, PoolMistake::Twice(keys.name.clone()));
            }
        }
        let mut pools = Self { pools: Vec::new(), by_name };
        for ReadPool { keys, check, members, origin, lookup } in read {
            let mut pool = pools.pool(session, keys, members, origin);
            pool.config.lookup = lookup;
            match check {
                Some(WrittenCheck::Probe(check)) => {
                    pool.config.check = Some(named_for(check, &pool.config.name));
                }
                Some(WrittenCheck::Calculated(formula, origin)) => {
                    pool.formula = Some((formula, origin));
                }
                None => {}
            }
            pools.pools.push(pool);
        }
        pools.calculate(session);
        pools.refuse_circles(session);
        pools
    }

    /// Adds a pool behind those of the file; none after a mistake, which is then reported.
    pub fn add(
        &mut self,
        session: &mut Session<'_>,
        keys: PoolKeys,
        members: Vec<NewMember>,
        origin: Origin,
    ) -> Option<u32> {
        let number = self.pools.len() as u32; // memory ends before
        if self.by_name.insert(keys.name.clone(), number).is_some() {
            fail(session, &origin, PoolMistake::Twice(keys.name));
            return None;
        }
        let pool = self.pool(session, keys, members, origin);
        self.pools.push(pool);
        Some(number)
    }

    /// Has the members of a pool checked.
    pub fn set_check(&mut self, number: u32, check: Option<PoolCheck>) {
        if let Some(pool) = self.pools.get_mut(number as usize) {
            pool.config.check = check;
        }
    }

    /// Makes the maps of all pools whose members are chosen by their sites.
    pub fn map_sites(&mut self, session: &mut Session<'_>, sites: Sites) -> Arc<Geography> {
        let mut maps = sites.into_maps(session);
        self.pools.iter_mut().for_each(|pool| pool.map_sites(session, &mut maps));
        maps.geography()
    }

    /// Makes a pool of its keys.
    fn pool(
        &self,
        session: &mut Session<'_>,
        keys: PoolKeys,
        members: Vec<NewMember>,
        origin: Origin,
    ) -> NewPool {
        let mut number_of = |name: &str, origin: &Origin| {
            let number = self.by_name.get(name).copied();
            if number.is_none() {
                let near = nearest(name, self.by_name.keys().map(String::as_str));
                let near = near.map(str::to_owned);
                fail(session, origin, PoolMistake::Unknown(name.to_owned(), near));
            }
            number.unwrap_or_default() // it is reported
        };
        let when_all_down = match &keys.when_all_down {
            AllDownPolicy::All => WhenAllDown::All,
            AllDownPolicy::LastHealthy => WhenAllDown::LastHealthy,
            AllDownPolicy::Pool(name) => WhenAllDown::Pool(number_of(name, &origin)),
            AllDownPolicy::ServFail => WhenAllDown::ServFail,
            AllDownPolicy::NoData => WhenAllDown::NoData,
            AllDownPolicy::Refused => WhenAllDown::Refused,
        };
        let (mut configs, mut data, mut balanced) = (Vec::new(), Vec::new(), Vec::new());
        let (mut names, mut twice) = (HashSet::new(), Vec::new());
        for NewMember { keys: member, site, origin } in members {
            let name = member_name(&member);
            if !names.insert(name.clone()) {
                twice.push((origin.clone(), name.clone()));
            }
            balanced.push(Member {
                identity: identity_of(name.as_bytes()),
                weight: member.weight,
                priority: member.priority,
                pool: member.pool.as_deref().map(|name| number_of(name, &origin)),
                site,
            });
            let (address, site, calculation) = (member.address, member.site, None);
            configs.push(MemberConfig { name, address, site, calculation });
            data.push(member.data);
        }
        for (origin, name) in twice {
            fail(session, &origin, PoolMistake::MemberTwice(name));
        }
        let marks = LoadMarks { low: keys.load_low, high: keys.load_high };
        let (filters, site_step, order) = steps(&keys.choose, marks, &mut |mistake| {
            session.fail(origin.clone(), Problem::Together(mistake));
        });
        if keys.ttl_min > keys.ttl_max {
            fail(session, &origin, PoolMistake::Ttl);
        }
        if marks.low >= marks.high {
            fail(session, &origin, PoolMistake::LoadMarks);
        }
        let (members, answers) = (balanced, keys.answers.0);
        let records = Vec::new();
        let config = PoolConfig {
            name: keys.name,
            pool: Pool { members, filters, order, answers, when_all_down, records },
            members: configs,
            check: None,
            lookup: None,
            up_min: keys.up_min,
            slow_start: keys.slow_start,
            hold_down: keys.hold_down,
            is_resumed_by_hand: keys.resume == ResumePolicy::Manual,
            ttl_min: keys.ttl_min,
            ttl_max: keys.ttl_max,
        };
        NewPool { config, data, origin, types: HashSet::new(), site_step, formula: None }
    }

    /// Reports pools that would depend on themselves, or on too many pools in a row.
    fn refuse_circles(&self, session: &mut Session<'_>) {
        /// How many pools a choice in this one may go through; none if there are too many.
        fn depth(pools: &[NewPool], number: u32, left: usize) -> bool {
            let Some(left) = left.checked_sub(1) else { return false };
            let Some(pool) = pools.get(number as usize) else { return true };
            let config = &pool.config;
            let pool = &config.pool;
            let substitute = match pool.when_all_down {
                WhenAllDown::Pool(number) => Some(number),
                _ => None,
            };
            let mut next: BTreeSet<u32> =
                pool.members.iter().filter_map(|it| it.pool).chain(substitute).collect();
            for member in &config.members {
                if let Some(calculation) = &member.calculation {
                    calculation.formula.each_leaf(&mut |source| {
                        let _ = next.insert(source.pool);
                    });
                }
            }
            next.into_iter().all(|number| depth(pools, number, left))
        }
        for (number, pool) in self.pools.iter().enumerate() {
            if !depth(&self.pools, number as u32, zonda_balance::POOL_DEPTH_MAX) {
                let circle = PoolMistake::Circle(pool.config.name.clone());
                return fail(session, &pool.origin, circle);
            }
        }
    }

    /// Reads the names of a zone that are steered.
    pub fn rules(&mut self, reader: &mut Reader<'_, '_>, zone: &Name) -> Vec<SteerRule> {
        let Some((table, origin)) = reader.nested(&STEER) else { return Vec::new() };
        let mut reader = reader.nested_reader(&STEER, (Some(table), origin), Vec::new());
        let names: Vec<&str> = reader.names().collect();
        let mut rules = Vec::<SteerRule>::new();
        for key in names {
            let [described] = STEER.keys else { continue };
            let Some(pool) = reader.read_named::<String>(key, described) else { continue };
            match self.rules_of(key, &pool, zone) {
                Ok(new) => rules.extend(new),
                Err(mistake) => reader.contradict(Some(key), Contradiction::Pool(mistake)),
            }
        }
        let mut taken = Vec::<(&Name, Vec<Type>)>::new();
        let mut mistakes = Vec::new();
        for rule in &rules {
            let place = taken.iter().position(|(name, _)| *name == &rule.name);
            let place = place.unwrap_or_else(|| {
                taken.push((&rule.name, Vec::new()));
                taken.len() - 1
            });
            let types = &mut taken[place].1;
            if types.contains(&rule.rtype) {
                mistakes.push(SteerMistake::Twice(rule.name.clone(), rule.rtype));
            }
            types.push(rule.rtype);
        }
        for (name, types) in taken {
            let is_alias = types.contains(&Type::CNAME);
            if is_alias && (types.len() > 1 || *name == zone.to_lowercase()) {
                mistakes.push(SteerMistake::Alias(name.clone()));
            }
        }
        for mistake in mistakes {
            reader.contradict(None, Contradiction::Pool(mistake.into()));
        }
        rules
    }

    /// The rules that a key of `steer` makes.
    fn rules_of(
        &mut self,
        key: &str,
        pool: &str,
        zone: &Name,
    ) -> Result<Vec<SteerRule>, PoolMistake> {
        let (name, types) = key.trim().split_once(char::is_whitespace).ok_or(SteerMistake::Form)?;
        let name = match name {
            "@" => zone.clone(),
            _ => Name::parse(name.as_bytes(), zone.as_wire()).map_err(SteerMistake::Name)?,
        };
        let name = name.to_lowercase();
        if !name::is_at_or_below(name.as_wire(), zone.to_lowercase().as_wire()) {
            return Err(SteerMistake::Outside(name, zone.clone()).into());
        }
        let number = self.by_name.get(pool).copied().ok_or_else(|| {
            let near = nearest(pool, self.by_name.keys().map(String::as_str));
            PoolMistake::Unknown(pool.to_owned(), near.map(str::to_owned))
        })?;
        let mut rules = Vec::new();
        for text in types.split(',').map(str::trim) {
            let rtype: Option<Type> = text.to_ascii_uppercase().parse().ok();
            let rtype = rtype.filter(|rtype| can_be_steered(*rtype));
            let rtype = rtype.ok_or_else(|| SteerMistake::Type(text.to_owned()))?;
            self.add_records(number, rtype)?;
            rules.push(SteerRule { name: name.clone(), rtype, pool: number });
        }
        Ok(rules)
    }

    /// Has a pool, and those that it may answer with, have the records of a type. Circles end, as a
    /// pool that has them is left alone.
    pub fn add_records(&mut self, number: u32, rtype: Type) -> Result<(), PoolMistake> {
        let Some(pool) = self.pools.get(number as usize) else { return Ok(()) };
        let has =
            |member: &Member| member.pool.is_none_or(|it| has_records(&self.pools, it, rtype));
        let has: Vec<bool> = pool.config.pool.members.iter().map(has).collect();
        let Some(pool) = self.pools.get_mut(number as usize) else { return Ok(()) };
        let (config, is_new) = (&mut pool.config, pool.types.insert(rtype));
        if !is_new {
            return Ok(());
        }
        let mut rdatas = Vec::new();
        let members = config.pool.members.iter().zip(has);
        for (((member, has_records), described), data) in
            members.zip(&config.members).zip(&pool.data)
        {
            rdatas.push(match (rtype, described.address, data) {
                _ if member.pool.is_some() => (!has_records).then(Box::default),
                (Type::A, Some(IpAddr::V4(address)), None) => Some(address.octets().into()),
                (Type::AAAA, Some(IpAddr::V6(address)), None) => Some(address.octets().into()),
                (Type::A | Type::AAAA, Some(_), _) => None, // of the other family
                (_, _, Some(data)) => {
                    let rdata = rdata::from_text(rtype, data)
                        .map_err(|error| SteerMistake::Data(config.name.clone(), rtype, error))?;
                    Some(rdata.into())
                }
                (_, _, None) => {
                    let (pool, member) = (config.name.clone(), described.name.clone());
                    return Err(SteerMistake::NoData(pool, member, rtype).into());
                }
            });
        }
        config.pool.records.push(Records { rtype, rdatas });
        let substitute = match config.pool.when_all_down {
            WhenAllDown::Pool(number) => Some(number),
            _ => None,
        };
        let members = config.pool.members.iter().filter_map(|member| member.pool);
        let next: Vec<u32> = members.chain(substitute).collect();
        next.into_iter().try_for_each(|number| self.add_records(number, rtype))
    }

    /// The pools, with the records of all types that names are steered for.
    pub fn into_configs(self) -> Vec<PoolConfig> {
        self.pools.into_iter().map(|pool| pool.config).collect()
    }
}

/// Reads a member. In a pool whose members are chosen by learned latency, one without a site is a
/// site by itself.
pub(super) fn member(
    reader: &mut Reader<'_, '_>,
    (sites, is_learned): (&mut Sites, bool),
) -> Option<NewMember> {
    let keys = MemberKeys::read(reader)?;
    let given = [keys.pool.is_some(), keys.name.is_some(), keys.data.is_some()];
    let is_sound = match (given, keys.address.is_some()) {
        ([false, false, has_data], has_address) => has_data || has_address,
        ([is_pool, is_name, false], false) => is_pool != is_name,
        _ => false,
    };
    if !is_sound {
        reader.contradict(None, Contradiction::Pool(PoolMistake::MemberKind));
    }
    let first = match given {
        [true, ..] => "pool",
        [_, true, _] => "name",
        _ => "address",
    };
    let origin = reader.origin_of(first);
    let site = match &keys.site {
        Some(name) => sites.number(reader, "site", name),
        None if is_learned && is_sound => sites.of_member(reader, &member_name(&keys)),
        None => None,
    };
    is_sound.then_some(NewMember { keys, site, origin })
}

/// A check, with the name by which values are pushed for it.
fn named_for(mut check: PoolCheck, pool: &str) -> PoolCheck {
    if let Kind::Push(push) = &check.check.kind
        && push.name.is_empty()
    {
        let kind = Kind::Push(PushCheck { name: pool.into() });
        check.check = Arc::new(Check { kind, ..(*check.check).clone() });
    }
    check
}

/// The name of a member in logs, metrics and commands.
pub(super) fn member_name(keys: &MemberKeys) -> String {
    if let Some(name) = &keys.name {
        let name = name.to_string();
        return name.strip_suffix('.').filter(|it| !it.is_empty()).unwrap_or(&name).to_owned();
    }
    match (&keys.pool, &keys.data, keys.address) {
        (Some(name), ..) | (None, Some(name), None) => name.clone(),
        (None, _, Some(address)) => address.to_string(),
        (None, None, None) => String::new(), // it is refused
    }
}

/// The filters, the step by sites and the order of the steps in `choose`.
fn steps(
    choose: &[ChoiceStep],
    marks: LoadMarks,
    fail: &mut dyn FnMut(Contradiction),
) -> (Vec<Filter>, Option<SiteStep>, Order) {
    let (mut filters, mut order) = (Vec::new(), None);
    let mut sites: Option<SiteStep> = None;
    for step in choose {
        if order.is_some() {
            fail(Contradiction::Pool(PoolMistake::OrderBefore));
        }
        let place = filters.len();
        match (step, &mut sites) {
            (ChoiceStep::Failover, _) => filters.push(Filter::Failover),
            (ChoiceStep::Latency, _) => filters.push(Filter::Latency),
            (ChoiceStep::Load, _) => filters.push(Filter::Load(marks)),
            (ChoiceStep::Geo, None) => {
                sites = Some(SiteStep { place, by_place: true, ..SiteStep::default() });
            }
            (ChoiceStep::Nearest, None) => {
                sites = Some(SiteStep { place, by_distance: true, ..SiteStep::default() });
            }
            (ChoiceStep::LearnedLatency, None) => {
                sites = Some(SiteStep { place, by_latency: true, ..SiteStep::default() });
            }
            (ChoiceStep::LearnedLatency, Some(step)) if step.is_geo_at(place) => {
                step.by_latency = true;
            }
            (ChoiceStep::Nearest, Some(step)) if step.is_geo_at(place) => {
                step.by_distance = true;
            }
            (ChoiceStep::Geo | ChoiceStep::Nearest | ChoiceStep::LearnedLatency, Some(_)) => {
                fail(Contradiction::Geo(GeoMistake::Steps));
            }
            (ChoiceStep::RoundRobin, _) => order = Some(Order::RoundRobin),
            (ChoiceStep::Weighted, _) => order = Some(Order::Weighted),
            (ChoiceStep::Hash, _) => {
                order = Some(Order::HashClient { v4: HASH_V4_BITS, v6: HASH_V6_BITS });
            }
            (ChoiceStep::HashName, _) => order = Some(Order::HashName),
            (ChoiceStep::InOrder, _) => order = Some(Order::AsConfigured),
        }
    }
    (filters, sites, order.unwrap_or(Order::RoundRobin))
}

/// Whether a pool has a record of a type, itself or by way of its members that are pools.
fn has_records(pools: &[NewPool], number: u32, rtype: Type) -> bool {
    has_records_within(pools, (number, rtype), zonda_balance::POOL_DEPTH_MAX)
}

/// Whether it has, by way of so many pools at most: pools may form circles, which are reported.
fn has_records_within(pools: &[NewPool], (number, rtype): (u32, Type), depth: usize) -> bool {
    let Some(pool) = pools.get(number as usize).filter(|_| depth > 0) else { return false };
    let config = &pool.config;
    let members = config.pool.members.iter().zip(&config.members).zip(&pool.data);
    let substitute = match config.pool.when_all_down {
        WhenAllDown::Pool(number) => Some(number),
        _ => None,
    };
    let mut has = members.map(|((member, described), data)| match (rtype, member.pool) {
        (_, Some(child)) => has_records_within(pools, (child, rtype), depth - 1),
        (Type::A, None) => data.is_some() || matches!(described.address, Some(IpAddr::V4(_))),
        (Type::AAAA, None) => data.is_some() || matches!(described.address, Some(IpAddr::V6(_))),
        (_, None) => true,
    });
    has.any(|it| it)
        || substitute.is_some_and(|it| has_records_within(pools, (it, rtype), depth - 1))
}

/// Whether records of a type can be chosen by a pool: the structure of a zone, and proofs, cannot.
fn can_be_steered(rtype: Type) -> bool {
    let is_structure = matches!(
        rtype,
        Type::SOA
            | Type::NS
            | Type::DNAME
            | Type::DS
            | Type::DNSKEY
            | Type::RRSIG
            | Type::NSEC
            | Type::NSEC3
            | Type::NSEC3PARAM
    );
    !is_structure && rdata::schema::of(rtype).is_some()
}

/// Reports a mistake at a place.
pub(super) fn fail(session: &mut Session<'_>, origin: &Origin, mistake: PoolMistake) {
    session.fail(origin.clone(), Problem::Together(Contradiction::Pool(mistake)));
}
