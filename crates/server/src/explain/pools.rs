//! The pools that chose the records of a reply, filter by filter.

use super::steps::{SEED, Steps};
use crate::control::Control;
use std::collections::BTreeSet;
use std::net::IpAddr;
use zonda_balance::explain::{End, Explanation, PassedStep, Step};
use zonda_balance::geography::Geography;
use zonda_balance::{
    ClientNetwork, Dice, EndWithout, Filter, Order, Outcome, POOL_DEPTH_MAX, WhenAllDown,
};
use zonda_config::PoolConfig;
use zonda_engine::steering::SteeredMatch;
use zonda_engine::{Reason, Snapshot};
use zonda_wire::message::Record;
use zonda_wire::{Name, Type};
use zonda_zone::LookupName;

/// Members that are named in a step; of more, the number is told.
const NAMES_MAX: usize = 8;

/// What it takes to walk through pools.
pub struct PoolWalk<'a> {
    pub control: &'a Control,
    pub snapshot: &'a Snapshot,
    pub qtype: Type,
}

impl PoolWalk<'_> {
    /// Tells of each name of the reply that a pool answered for; returns why the TTL of the last is
    /// what it is.
    pub fn tell(
        &self,
        steps: &mut Steps,
        (asked, answers): (&Name, &[&Record]),
        (client, reason): (&ClientNetwork, Option<Reason>),
    ) -> Option<String> {
        let (mut owners, mut ttl) = (vec![asked.to_lowercase()], None);
        for record in answers {
            let owner = record.owner.to_lowercase();
            if !owners.contains(&owner) {
                owners.push(owner);
            }
        }
        if !matches!(reason, Some(Reason::Steered | Reason::PoolDown | Reason::NoData)) {
            owners.truncate(1);
        }
        let mut dice = Dice::new(SEED);
        for owner in owners {
            let has_alias = answers.iter().any(|it| it.rtype == Type::CNAME && it.owner == owner);
            let rtype = if has_alias { Type::CNAME } else { self.qtype };
            if let Some(pool) = self.pool_of(&owner, rtype) {
                ttl = self.tell_pools(steps, (&owner, rtype, pool), (client, &mut dice)).or(ttl);
            }
        }
        ttl
    }

    /// The number of the pool that answers for a name and a type.
    fn pool_of(&self, name: &Name, rtype: Type) -> Option<u32> {
        let steering = self.snapshot.steering.as_ref()?;
        let lookup = LookupName::new(name.as_wire(), self.snapshot.zones.seed());
        let zone = self.snapshot.zones.find_answering(&lookup, rtype)?;
        let encloser = lookup.label_count().checked_sub(usize::from(zone.labels))?;
        let zone_bytes = self.snapshot.zones.get(zone.index).apex.as_wire().len();
        let pools = match steering.names.find(&lookup, zone_bytes, encloser)? {
            SteeredMatch::Exact(pools) | SteeredMatch::Wildcard(_, pools) => pools,
            SteeredMatch::Missing(_) => return None,
        };
        let of_type = |rtype| pools.iter().find(|(steered, _)| *steered == rtype);
        of_type(rtype).or_else(|| of_type(Type::CNAME)).map(|(_, pool)| *pool)
    }

    /// Tells what a pool does, and the pools that it leaves the choice to.
    fn tell_pools(
        &self,
        steps: &mut Steps,
        (name, rtype, pool): (&Name, Type, u32),
        (client, dice): (&ClientNetwork, &mut Dice),
    ) -> Option<String> {
        let checks = self.control.checks.as_ref()?;
        let steering = self.snapshot.steering.as_ref()?;
        let geography = std::sync::Arc::clone(&self.control.state().config().geography);
        let (mut pool, mut ttl) = (pool, None);
        for _ in 0..POOL_DEPTH_MAX {
            let states = checks.states.lock();
            let (config, explanation) = states.explain(pool, rtype, client)?;
            steps.add("pool", format!("{} answers for {name} {rtype}", config.name));
            let words = Words { config, geography: &geography, client };
            explanation.steps.iter().for_each(|step| words.tell(steps, step));
            let plan = steering.pools.get(pool as usize)?;
            ttl = Some(words.ttl(plan.ttl));
            let chosen = plan.view(rtype)?.choose(client, name.as_wire(), dice);
            let next = match chosen {
                Outcome::Pool(next, _) => states.name_of(next).unwrap_or_default(),
                _ => "",
            };
            words.tell_end(steps, &explanation, (&chosen, next));
            match chosen {
                Outcome::Pool(next, _) => pool = next,
                _ => return ttl,
            }
        }
        ttl
    }
}

/// A pool and a client, about which steps are told.
struct Words<'a> {
    config: &'a PoolConfig,
    geography: &'a Geography,
    client: &'a ClientNetwork,
}

impl Words<'_> {
    /// Tells of a filter: what came to it, what it has left, and why.
    fn tell(&self, steps: &mut Steps, passed: &PassedStep) {
        let PassedStep { step, before, after } = passed;
        let counts = format!("{} of {} members", after.len(), before.len());
        let left = self.names(after);
        match step {
            Step::Up => {
                let down: Vec<u32> =
                    before.iter().filter(|member| !after.contains(member)).copied().collect();
                let down = match down.len() {
                    0 => String::new(),
                    _ => format!("; down: {}", self.names(&down)),
                };
                steps.add("up", format!("{counts}: {left}{down}"));
            }
            Step::AllDown(policy) => {
                let what = match policy {
                    WhenAllDown::LastHealthy => "those count as up that were up last",
                    _ => "all count as up",
                };
                steps.add("when-all-down", format!("{what}: {left}"));
            }
            Step::Weight => steps.add("weight", format!("{counts} have a weight: {left}")),
            Step::Failover => {
                let priorities = self.priorities(after);
                steps.add("failover", format!("{priorities}: {counts}: {left}"));
            }
            Step::Latency(least) => {
                let millis = f64::from(*least) / 1e3;
                let text =
                    format!("{counts} are about as fast as the fastest, {millis:.1} ms: {left}");
                steps.add("latency", text);
            }
            Step::OneSite => {
                steps
                    .add(self.site_step(), format!("all {} members are at one site", before.len()));
            }
            Step::Held => {
                let text = format!("{counts} do not wait after they have come back: {left}");
                steps.add("hold-down", text);
            }
            Step::Load(shares) => {
                steps.add("load", format!("{counts}: {left}; {}", self.shares(shares)));
            }
            Step::Sites { tiers, scope, percent } => {
                let tier = |sites: &Vec<u16>| {
                    let name = |site: &u16| self.geography.sites.get(usize::from(*site));
                    let names = sites.iter().filter_map(name).map(|site| &*site.name);
                    names.collect::<Vec<_>>().join("+")
                };
                let mut order: Vec<String> = tiers.iter().take(NAMES_MAX).map(tier).collect();
                if tiers.is_empty() {
                    order.push("any site".to_owned());
                }
                let (place, order) = (self.place(), order.join(", then "));
                let shed = match percent {
                    100 => String::new(),
                    _ => format!("; they take {percent} %, the next site the rest"),
                };
                let text = format!("{place} → {order}: {counts}: {left}{shed} (/{scope})");
                steps.add(self.site_step(), text);
            }
        }
    }

    /// The priorities of members, of which all but the first get what it sheds.
    fn priorities(&self, members: &[u32]) -> String {
        let members = members.iter().map(|it| &self.config.pool.members[*it as usize]);
        let priorities: BTreeSet<u32> = members.map(|member| member.priority).collect();
        let mut priorities = priorities.iter().map(ToString::to_string);
        let first = priorities.next().unwrap_or_default();
        let next: Vec<String> = priorities.collect();
        match next.is_empty() {
            true => format!("priority {first}"),
            false => format!("priority {first}, and {} for what it sheds", next.join(", ")),
        }
    }

    /// How much members take of the queries that come to them.
    fn shares(&self, shares: &[(u32, u8)]) -> String {
        let share =
            |(member, percent): &(u32, u8)| format!("{} takes {percent} %", self.names(&[*member]));
        let mut shown: Vec<String> = shares.iter().take(NAMES_MAX).map(share).collect();
        if let Some(more @ 1..) = shares.len().checked_sub(NAMES_MAX) {
            shown.push(format!("{more} more take less than all"));
        }
        shown.join(", ")
    }

    /// Tells which of the members that are left answer.
    fn tell_end(
        &self,
        steps: &mut Steps,
        explanation: &Explanation,
        (chosen, next): (&Outcome<'_>, &str),
    ) {
        let (members, order, count, percents) = match &explanation.end {
            End::Group { members, order, count, percents } => (members, *order, *count, percents),
            End::Pool(_) => {
                return steps.add("when-all-down", format!("pool {next} answers in place of it"));
            }
            End::Without(end) => {
                let text = match end {
                    EndWithout::ServFail => "servfail: no member is up",
                    EndWithout::Refused => "refused: no member is up",
                    EndWithout::NoData => "nodata: no member is up, or none has such a record",
                };
                return steps.add("end", text);
            }
        };
        let weight = |member: &u32| self.config.pool.members[*member as usize].weight.to_string();
        let percent =
            |(member, percent): (&u32, &u8)| format!("{} {percent} %", self.names(&[*member]));
        let among = match order {
            _ if !percents.is_empty() && members.len() <= NAMES_MAX => {
                members.iter().zip(percents).map(percent).collect::<Vec<_>>().join(", ")
            }
            Order::Weighted if members.len() <= NAMES_MAX => {
                members.iter().map(weight).collect::<Vec<_>>().join(":")
            }
            _ => format!("{} members", members.len()),
        };
        let (word, by) = match order {
            _ if members.len() == 1 => ("only", String::new()),
            Order::RoundRobin if percents.is_empty() => {
                ("round-robin", format!("a draw among {among}, equally often"))
            }
            Order::RoundRobin => ("round-robin", format!("a draw among {among}")),
            Order::Weighted => ("weighted", format!("a draw among {among}")),
            Order::HashClient { v4, v6 } => {
                let bits = if self.client.address.is_ipv4() { v4 } else { v6 };
                ("hash", format!("the client's /{bits} among {among}"))
            }
            Order::HashName => ("hash-name", format!("the name among {among}")),
            Order::AsConfigured if percents.is_empty() => {
                ("in-order", format!("the first of {among}"))
            }
            Order::AsConfigured => ("in-order", format!("a draw among {among}")),
        };
        let answers = match chosen {
            Outcome::Members(choice) => {
                let chosen: Vec<u32> = (0..choice.count()).map(|at| choice.member(at)).collect();
                self.names(&chosen)
            }
            _ => format!("pool {next}"),
        };
        let more = if count > 1 { format!(", {count} answers") } else { String::new() };
        let arrow = if by.is_empty() { String::new() } else { format!("{by}{more} → ") };
        steps.add(word, format!("{arrow}{answers}"));
    }

    /// Why the TTL of what the pool answers is so many seconds.
    fn ttl(&self, ttl: u32) -> String {
        let PoolConfig { name, check, ttl_min, ttl_max, .. } = self.config;
        let (min, max) = (ttl_min.as_secs(), ttl_max.as_secs());
        match check {
            None => format!("`ttl-max` of {name}, as nothing is checked"),
            Some(_) if u64::from(ttl) >= max => {
                format!("`ttl-max` of {name}: its checks change nothing sooner")
            }
            Some(_) if u64::from(ttl) <= min => {
                format!("`ttl-min` of {name}: its checks may change the answer at any time")
            }
            Some(_) => format!("checks of {name} may change the answer after that time"),
        }
    }

    /// The names of members.
    fn names(&self, members: &[u32]) -> String {
        let name = |member: &u32| self.config.members[*member as usize].name.as_str();
        let shown = members.iter().take(NAMES_MAX).map(name).collect::<Vec<_>>().join(", ");
        match members.len().checked_sub(NAMES_MAX) {
            Some(more) if more > 0 => format!("{shown} and {more} more"),
            _ => shown,
        }
    }

    /// The word of the step by sites.
    fn site_step(&self) -> &'static str {
        let maps = self.config.pool.filters.iter().filter_map(|filter| match filter {
            Filter::Sites(map) => Some(map.source()),
            Filter::Failover | Filter::Latency | Filter::Load(_) => None,
        });
        match maps.map(|source| (source.by_place, source.by_distance)).next() {
            Some((true, true)) => "geo, nearest",
            Some((false, true)) => "nearest",
            _ => "geo",
        }
    }

    /// Where the client is, as far as it is known.
    fn place(&self) -> String {
        let address = self.client.address;
        let own = self.geography.networks.iter().filter(|(network, _)| network.contains(address));
        if let Some((network, site)) = own.max_by_key(|(network, _)| network.length()) {
            let site = self.geography.sites.get(site.0 as usize).map_or("", |site| &*site.name);
            return format!("{network} is at {site}");
        }
        match &self.geography.database {
            Some(database) => located(&database.locations, address),
            None => "no network of [geo]".to_owned(),
        }
    }
}

/// The location of an address in words.
fn located(database: &zonda_geo::Database, address: IpAddr) -> String {
    let (location, _) = database.locate(address);
    let mut words = Vec::new();
    words.extend(location.city.as_deref().map(str::to_owned));
    words.extend(location.subdivisions.iter().map(ToString::to_string));
    words.extend(location.country.map(|country| country.to_string()));
    words.extend(location.continent.map(|continent| continent.to_string()));
    words.extend(location.asn.map(|asn| format!("AS{asn}")));
    match words.is_empty() {
        true => "no known place".to_owned(),
        false => words.join(" "),
    }
}
