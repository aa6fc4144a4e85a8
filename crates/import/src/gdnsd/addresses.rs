//! Plugins whose resources are lists of addresses or names: multifo, weighted, simplefo, static.

use super::resources::{AnswerSet, Builder, Family, Scope};
use super::text_of;
use crate::document::Effect;
use crate::error::{ImportError, Place};
use crate::steering::keys::filter;
use crate::steering::{Member, Pool, Target};
use crate::tree::{Content, Node, expected};
use crate::value::pairs;
use std::net::IpAddr;

/// Keys that are parameters and no labels of addresses or resources.
pub const PARAMETERS: &[&str] = &["up_thresh", "service_types", "ignore_health", "multi", "plugin"];
/// Highest weight of a member.
const WEIGHT_MAX: u32 = 1_000_000;

/// Returns what a resource of one of the plugins answers with.
pub fn resource<'t>(
    builder: &mut Builder<'_, 't>,
    plugin: &str,
    name: &str,
    scope: &Scope<'t>,
) -> Result<Vec<AnswerSet>, ImportError> {
    let Some(node) = scope.0.last().copied() else { return Ok(Vec::new()) };
    if plugin == "static" || text_of(node).is_some() {
        let (target, family) = target(node)?;
        let pool = Pool::new(name, &node.place, vec![Member::new(target, &node.place)]);
        return Ok(vec![AnswerSet { family, pool }]);
    }
    let mut parts = Vec::new();
    if let Content::Map(keys) = &node.content {
        let has_families = keys.iter().filter(|(key, ..)| key == "addrs_v4" || key == "addrs_v6");
        parts.extend(has_families.map(|(_, _, node)| node));
    }
    let scopes = match parts.is_empty() {
        true => vec![scope.clone()],
        false => parts.into_iter().map(|node| scope.inside(node)).collect(),
    };
    let mut sets = Vec::new();
    for scope in scopes {
        let Some(node) = scope.0.last().copied() else { continue };
        sets.extend(match plugin {
            "weighted" => weighted(builder, name, node, &scope)?,
            "simplefo" => simplefo(builder, name, node, &scope)?,
            _ => multifo(builder, name, node, &scope)?,
        });
    }
    Ok(sets)
}

/// All addresses that are up, or all if too few are.
fn multifo<'t>(
    builder: &mut Builder<'_, 't>,
    name: &str,
    node: &'t Node,
    scope: &Scope<'t>,
) -> Result<Vec<AnswerSet>, ImportError> {
    let nodes: Vec<&Node> = match &node.content {
        Content::List(nodes) => nodes.iter().collect(),
        _ => entries(node)?.map(|(_, node)| node).collect(),
    };
    let mut sets: Vec<AnswerSet> = Vec::new();
    for node in nodes {
        let (target, family) = target(node)?;
        put(&mut sets, name, family, Member::new(target, &node.place));
    }
    for set in &mut sets {
        set.pool.answers = None;
        let total = set.pool.members.len() as f64;
        set.pool.up_min = up_min(threshold(scope)? * total);
        finish(builder, set, scope)?;
        if scope.is_true("ignore_health")? {
            let why = "members that are down are left out of answers; without `check` they are not";
            builder.report.tell(&set.pool.origin, Effect::Lost, "ignore_health", why);
        }
    }
    Ok(sets)
}

/// The first address while it is up, else the second while that is up.
fn simplefo<'t>(
    builder: &mut Builder<'_, 't>,
    name: &str,
    node: &'t Node,
    scope: &Scope<'t>,
) -> Result<Vec<AnswerSet>, ImportError> {
    let mut sets: Vec<AnswerSet> = Vec::new();
    for (key, priority) in [("primary", 1), ("secondary", 2)] {
        let found = crate::value::get(node, key)?;
        let found = found.ok_or_else(|| expected(node, "`primary` and `secondary`"))?;
        let (target, family) = target(found)?;
        let mut member = Member::new(target, &found.place);
        member.priority = Some(priority);
        put(&mut sets, name, family, member);
    }
    for set in &mut sets {
        set.pool.choose = vec![filter::FAILOVER];
        finish(builder, set, scope)?;
    }
    Ok(sets)
}

/// A random address or name by weight; of several groups, of one of them.
fn weighted<'t>(
    builder: &mut Builder<'_, 't>,
    name: &str,
    node: &'t Node,
    scope: &Scope<'t>,
) -> Result<Vec<AnswerSet>, ImportError> {
    let is_multi = scope.is_true("multi")?;
    let mut sets: Vec<AnswerSet> = Vec::new();
    for ((label, place), node) in entries(node)? {
        if !matches!(node.content, Content::Map(_)) {
            let (member, family) = weighted_member(builder, node)?;
            put(&mut sets, name, family, member);
            continue;
        }
        let mut inner: Vec<AnswerSet> = Vec::new();
        for (_, node) in entries(node)? {
            let (member, family) = weighted_member(builder, node)?;
            put(&mut inner, &format!("{name}-{label}"), family, member);
        }
        for mut group in inner {
            let weight = group.pool.members.iter().filter_map(|member| member.weight).sum();
            group.pool.choose = vec![filter::WEIGHTED];
            group.pool.answers = if is_multi { Some(1) } else { None };
            finish(builder, &mut group, scope)?;
            let family = group.family;
            let pools = builder.add(vec![group], &format!("{name}-{label}"));
            for (_, pool) in pools {
                let mut member = Member::new(Target::Pool(pool), place);
                member.weight = Some(weight);
                put(&mut sets, name, family, member);
            }
        }
    }
    for set in &mut sets {
        set.pool.choose = vec![filter::WEIGHTED];
        let is_grouped = set.pool.members.iter().any(|it| matches!(it.target, Target::Pool(_)));
        let origin = set.pool.origin.clone();
        match (is_multi && set.family != Family::Alias, is_grouped) {
            (false, false) => {}
            (true, false) => {
                set.pool.answers = None;
                let why = "an answer has all addresses that are up, the first one by weight; \
                    there, each was in it with the chance of its weight";
                builder.report.tell(&origin, Effect::Differs, "multi", why);
            }
            (false, true) => {
                let why = "of the group that was drawn, an answer has all addresses that are up, \
                    the first one by weight; there, each was in it with the chance of its weight";
                builder.report.tell(&origin, Effect::Differs, name, why);
            }
            (true, true) => {
                let why = "an answer has one address of one group; there, it had one of several \
                    groups";
                builder.report.tell(&origin, Effect::Lost, "multi", why);
            }
        }
        let weights: Vec<u32> = set.pool.members.iter().filter_map(|it| it.weight).collect();
        let total = weights.len() as f64;
        match weights.iter().all(|weight| Some(weight) == weights.first()) && !is_grouped {
            true => set.pool.up_min = up_min(threshold(scope)? * total),
            false if scope.get("up_thresh")?.is_some() => {
                let why = "it is a share of the weights there; here, members are counted, and one \
                    that is up is enough";
                builder.report.tell(&origin, Effect::Differs, "up_thresh", why);
            }
            false => {}
        }
        if !is_grouped {
            finish(builder, set, scope)?;
        }
    }
    Ok(sets)
}

/// Reads an address or a name with its weight.
fn weighted_member(
    builder: &mut Builder<'_, '_>,
    node: &Node,
) -> Result<(Member, Family), ImportError> {
    let wanted = "an address or a name, and a weight";
    let Content::List(parts) = &node.content else { return Err(expected(node, wanted)) };
    let [first, second] = &parts[..] else { return Err(expected(node, wanted)) };
    let (target, family) = target(first)?;
    let weight = text_of(second).and_then(|text| text.parse::<u32>().ok());
    let weight = weight.ok_or_else(|| expected(second, "a weight"))?;
    if weight > WEIGHT_MAX {
        let why = format!("the highest weight is {WEIGHT_MAX}");
        builder.report.tell(&second.place, Effect::Differs, &weight.to_string(), &why);
    }
    let mut member = Member::new(target, &node.place);
    member.weight = Some(weight.min(WEIGHT_MAX));
    Ok((member, family))
}

/// Adds a member to the set of its family.
fn put(sets: &mut Vec<AnswerSet>, name: &str, family: Family, member: Member) {
    match sets.iter_mut().find(|set| set.family == family) {
        Some(set) => set.pool.members.push(member),
        None => {
            let origin = member.origin.clone();
            sets.push(AnswerSet { family, pool: Pool::new(name, &origin, vec![member]) });
        }
    }
}

/// Sets how members are checked.
fn finish<'t>(
    builder: &mut Builder<'_, 't>,
    set: &mut AnswerSet,
    scope: &Scope<'t>,
) -> Result<(), ImportError> {
    let types = scope.get("service_types")?;
    if set.family == Family::Alias {
        if let Some(types) = types.filter(|types| text_of(types) != Some("up")) {
            let why = "names are not checked: members that are names are up";
            builder.report.tell(&types.place, Effect::Lost, "service_types", why);
        }
        return Ok(());
    }
    set.pool.check = builder.resources.services.check(types, builder.report)?;
    Ok(())
}

/// Returns the label with its place and the node of each entry that is no parameter.
fn entries(node: &Node) -> Result<impl Iterator<Item = ((&str, &Place), &Node)>, ImportError> {
    let is_entry = |(key, ..): &&(String, Place, Node)| !PARAMETERS.contains(&key.as_str());
    Ok(pairs(node)?.iter().filter(is_entry).map(|(key, place, node)| ((key.as_str(), place), node)))
}

/// Reads an address, or a name with its final dot.
pub fn target(node: &Node) -> Result<(Target, Family), ImportError> {
    let wanted = "an address, or a name with its final dot";
    let text = text_of(node).ok_or_else(|| expected(node, wanted))?;
    match text.parse::<IpAddr>() {
        Ok(address) if address.is_ipv4() => Ok((Target::Address(address), Family::V4)),
        Ok(address) => Ok((Target::Address(address), Family::V6)),
        Err(_) if text.ends_with('.') && text.parse::<zonda_wire::Name>().is_ok() => {
            Ok((Target::Data(text.to_owned()), Family::Alias))
        }
        Err(_) => Err(expected(node, wanted)),
    }
}

/// Returns the share of members that must be up.
fn threshold(scope: &Scope<'_>) -> Result<f64, ImportError> {
    let Some(node) = scope.get("up_thresh")? else { return Ok(0.5) };
    let share = text_of(node).and_then(|text| text.parse::<f64>().ok());
    let share = share.filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| expected(node, "a share above 0, at most 1"))
}

/// Returns the number of members that must be up, if it is more than one.
fn up_min(share: f64) -> Option<u32> {
    let count = share.ceil() as u32; // a share of the members, of which there are few
    Some(count).filter(|count| *count > 1)
}
