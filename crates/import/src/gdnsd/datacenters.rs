//! metafo and geoip: datacenters in an order, each with a resource of another plugin.

use super::resources::{AnswerSet, Builder, Family, Scope};
use super::{addresses, geoip, text_of};
use crate::document::Effect;
use crate::error::{ImportError, Place, Problem};
use crate::steering::keys::filter;
use crate::steering::{Member, Pool, Target};
use crate::tree::{Content, Node, expected, fail};
use crate::value::{elements, get};

/// What a datacenter answers with.
struct Datacenter {
    /// Name of the datacenter, which is a site here.
    name: String,
    /// Place of the datacenter's value.
    place: Place,
    sets: Vec<AnswerSet>,
}

/// Returns what a resource of metafo answers with, or what one datacenter of it does.
pub fn metafo<'t>(
    builder: &mut Builder<'_, 't>,
    name: &str,
    scope: &Scope<'t>,
    only: Option<&str>,
    place: &Place,
) -> Result<Vec<AnswerSet>, ImportError> {
    let Some(node) = scope.0.last().copied() else { return Ok(Vec::new()) };
    let order = get(node, "datacenters")?.ok_or_else(|| expected(node, "`datacenters`"))?;
    let mut order = names(order)?;
    if scope.is_true("skip_first")? && only.is_none() && order.len() > 1 {
        order.remove(0);
    }
    let all = datacenters(builder, name, scope, &order, only, place)?;
    if only.is_some() {
        return Ok(all.into_iter().flat_map(|it| it.sets).collect());
    }
    Ok(join(builder, name, node, all, &[filter::FAILOVER]))
}

/// Returns what a resource of geoip answers with, or what one datacenter of it does.
pub fn geoip<'t>(
    builder: &mut Builder<'_, 't>,
    name: &str,
    scope: &Scope<'t>,
    only: Option<&str>,
    place: &Place,
) -> Result<Vec<AnswerSet>, ImportError> {
    let Some(node) = scope.0.last().copied() else { return Ok(Vec::new()) };
    let map = geoip::take(builder, node)?;
    let all = datacenters(builder, name, scope, &map.order, only, place)?;
    if only.is_some() {
        return Ok(all.into_iter().flat_map(|it| it.sets).collect());
    }
    if scope.is_true("skip_first")? {
        let why = "clients get the first datacenter of their location";
        builder.report.tell(&node.place, Effect::Lost, "skip_first", why);
    }
    Ok(join(builder, name, node, all, &map.choose))
}

/// Returns the names in a list.
pub fn names(node: &Node) -> Result<Vec<String>, ImportError> {
    let name = |node: &Node| match text_of(node) {
        Some(name) => Ok(name.to_owned()),
        None => Err(expected(node, "the name of a datacenter")),
    };
    elements(node).iter().map(name).collect()
}

/// Reads the datacenters of a resource in an order, or only one of them.
fn datacenters<'t>(
    builder: &mut Builder<'_, 't>,
    name: &str,
    scope: &Scope<'t>,
    order: &[String],
    only: Option<&str>,
    place: &Place,
) -> Result<Vec<Datacenter>, ImportError> {
    let Some(node) = scope.0.last().copied() else { return Ok(Vec::new()) };
    let map = get(node, "dcmap")?.ok_or_else(|| expected(node, "`dcmap`"))?;
    let mut all = Vec::new();
    for datacenter in order.iter().filter(|it| only.is_none_or(|only| only == it.as_str())) {
        let Some(value) = get(map, datacenter)? else {
            if scope.is_true("undefined_datacenters_ok")? {
                continue;
            }
            let wanted = format!("a key for the datacenter {}", datacenter.escape_debug());
            return Err(expected(map, &wanted));
        };
        let sets = one(builder, &format!("{name}-{datacenter}"), scope, value)?;
        all.push(Datacenter { name: datacenter.clone(), place: value.place.clone(), sets });
    }
    match only {
        Some(only) if all.is_empty() => {
            let wanted = "a datacenter of the resource".to_owned();
            let found = format!("`{}`", only.escape_debug());
            Err(fail(place.clone(), Problem::Expected { wanted, found }))
        }
        _ => Ok(all),
    }
}

/// Returns what a datacenter answers with: a reference to a resource, a resource in place, an
/// address, several of them, or a name.
fn one<'t>(
    builder: &mut Builder<'_, 't>,
    name: &str,
    scope: &Scope<'t>,
    value: &'t Node,
) -> Result<Vec<AnswerSet>, ImportError> {
    let default = |scope: &Scope<'t>| -> Result<String, ImportError> {
        Ok(scope.get("plugin")?.and_then(text_of).unwrap_or("multifo").to_owned())
    };
    if let Some((plugin, resource)) = text_of(value).and_then(|text| text.split_once('!')) {
        let plugin = match plugin.strip_prefix('%') {
            Some(plugin) => plugin.to_owned(),
            None => default(scope)?,
        };
        return builder.resource(&plugin, resource, &value.place);
    }
    // Keys of the resource itself are no parameters of what it is made of.
    let scope = scope.inside(value);
    match &value.content {
        Content::Scalar(..) => {
            let (target, family) = addresses::target(value)?;
            if family == Family::Alias {
                let member = Member::new(target, &value.place);
                let pool = Pool::new(name, &value.place, vec![member]);
                return Ok(vec![AnswerSet { family, pool }]);
            }
            let mut pool = Pool::new(name, &value.place, vec![Member::new(target, &value.place)]);
            let types = scope.0[..scope.0.len() - 1].to_vec();
            let types = Scope(types).get("service_types")?;
            pool.check = builder.resources.services.check(types, builder.report)?;
            pool.answers = None;
            Ok(vec![AnswerSet { family, pool }])
        }
        Content::List(_) => addresses::resource(builder, "multifo", name, &scope),
        Content::Map(_) => addresses::resource(builder, &default(&scope)?, name, &scope),
    }
}

/// Makes one pool of all datacenters for each family: of their addresses where these are treated
/// alike, else of a pool for each datacenter.
fn join(
    builder: &mut Builder<'_, '_>,
    name: &str,
    node: &Node,
    all: Vec<Datacenter>,
    choose: &[&'static str],
) -> Vec<AnswerSet> {
    let has = |family: Family| all.iter().any(|it| it.sets.iter().any(|set| set.family == family));
    let has_addresses = has(Family::V4) || has(Family::V6);
    let mut sets = Vec::new();
    for family in [Family::V4, Family::V6, Family::Alias] {
        if !has(family) {
            continue;
        }
        if family == Family::Alias && has_addresses {
            let of = |it: &&Datacenter| it.sets.iter().any(|set| set.family == family);
            for datacenter in all.iter().filter(of) {
                let why = "a name that has addresses has no CNAME, whatever is up: give the \
                    addresses of that name";
                builder.report.tell(&datacenter.place, Effect::Lost, &datacenter.name, why);
            }
            continue;
        }
        sets.push(join_family(builder, (name, node), &all, family, choose));
    }
    sets
}

/// Makes the pool of one family.
fn join_family(
    builder: &mut Builder<'_, '_>,
    (name, node): (&str, &Node),
    all: &[Datacenter],
    family: Family,
    choose: &[&'static str],
) -> AnswerSet {
    let mut found = Vec::new(); // rank, datacenter and pool of each
    for (datacenter, rank) in all.iter().zip(1..) {
        let sets = datacenter.sets.iter().filter(|set| set.family == family);
        found.extend(sets.map(|set| (rank, datacenter, &set.pool)));
    }
    let can_be_flat = |pool: &Pool| {
        let is_all = pool.choose == [filter::ROUND_ROBIN] && pool.answers.is_none();
        let has_pools = pool.members.iter().any(|it| matches!(it.target, Target::Pool(_)));
        (is_all || pool.members.len() == 1) && pool.up_min.is_none() && !has_pools
    };
    let check = found.first().and_then(|(_, _, pool)| pool.check.clone());
    let is_flat = found.iter().all(|(_, _, pool)| can_be_flat(pool) && pool.check == check);
    let mut members = Vec::new();
    for (rank, datacenter, pool) in found {
        let own = if is_flat {
            pool.members.clone()
        } else {
            let inner = AnswerSet { family, pool: pool.clone() };
            let made = builder.add(vec![inner], &pool.name);
            let member = |(_, pool)| Member::new(Target::Pool(pool), &datacenter.place);
            made.into_iter().map(member).collect()
        };
        members.extend(own.into_iter().map(|mut member| {
            member.weight = None;
            member.priority = Some(rank);
            member.site = Some(datacenter.name.clone());
            member
        }));
    }
    let mut pool = Pool::new(name, &node.place, members);
    pool.choose = choose.to_vec();
    pool.answers = if is_flat && family != Family::Alias { None } else { Some(1) };
    pool.check = check.filter(|_| is_flat);
    AnswerSet { family, pool }
}
