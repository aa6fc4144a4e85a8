//! Names that flags steer: `--steer NAME=ADDRESS:PORT,…` and `--check KIND:WHAT`.

use super::geo::Sites;
use super::pool_check::{self, WrittenCheck};
use super::pools::{NewMember, Pools, member};
use crate::error::{Contradiction, Origin, PoolMistake, Problem, SteerMistake};
use crate::keys::{CheckKeys, MemberKeys, PoolKeys};
use crate::load::Layers;
use crate::reader::{RawValue, Reader, Session};
use crate::section::Keys;
use crate::{PoolCheck, SteerRule, Zone};
use std::sync::Arc;
use zonda_wire::{Name, Type, name};

/// A name that a flag steers, and its pool.
pub(super) struct SteeredName {
    name: Name,
    pool: u32,
}

/// A member as a flag writes it.
#[derive(Clone, Copy)]
struct MemberText<'a> {
    address: &'a str,
    port: Option<&'a str>,
}

/// Reads the pools that flags name, behind those of the file.
pub(super) fn read<'a>(
    layers: &Layers<'a>,
    session: &mut Session<'a>,
    (pools, sites): (&mut Pools, &mut Sites),
) -> Vec<SteeredName> {
    if let Some(text) = &layers.flags.check {
        let kind = text.split(':').next().unwrap_or_default();
        if !["tcp", "http", "https"].contains(&kind) {
            fail(session, "--check", SteerMistake::CheckFlag(kind.to_owned()));
            return Vec::new();
        }
        if layers.flags.steer.is_empty() {
            fail(session, "--check", SteerMistake::CheckAlone);
        }
    }
    let mut steered = Vec::new();
    for text in &layers.flags.steer {
        let Some((name, members)) = text.split_once('=') else {
            fail(session, "--steer", SteerMistake::Flag(text.clone()));
            continue;
        };
        let members: Vec<_> = members.split(',').map(|member| split(member.trim())).collect();
        let parsed = Name::parse(name.as_bytes(), &[0]);
        let parsed =
            parsed.map_err(|error| fail(session, "--steer", SteerMistake::FlagName(error)));
        let Ok(parsed) = parsed else { continue };
        let ports: Vec<&str> = members.iter().filter_map(|member| member.port).collect();
        if ports.windows(2).any(|pair| pair[0] != pair[1]) {
            fail(session, "--steer", SteerMistake::Ports(text.clone()));
            continue;
        }
        let pool = read_pool(session, name, (&members, sites), pools);
        let check = check(layers, session, name, ports.first().copied());
        if let Some(pool) = pool {
            pools.set_check(pool, check);
            steered.push(SteeredName { name: parsed.to_lowercase(), pool });
        }
    }
    steered
}

/// Adds the rules of steered names to the zones that they lie in; returns those that lie in none,
/// each with a zone that is the name itself.
pub(super) fn place(
    session: &mut Session<'_>,
    pools: &mut Pools,
    steered: Vec<SteeredName>,
    zones: &mut [Zone],
) -> Vec<(Name, SteerRule)> {
    let mut alone = Vec::new();
    for SteeredName { name, pool } in steered {
        let holds = |zone: &&mut Zone| {
            let apex = zone.name.as_ref().map(Name::to_lowercase);
            apex.is_some_and(|apex| name::is_at_or_below(name.as_wire(), apex.as_wire()))
        };
        let depth = |zone: &&mut Zone| zone.name.as_ref().map(|name| name.as_wire().len());
        let mut zone = zones.iter_mut().filter(holds).max_by_key(depth);
        zone = zone.filter(|zone| zone.source.can_be_steered());
        for rtype in [Type::A, Type::AAAA] {
            if let Err(mistake) = pools.add_records(pool, rtype) {
                let problem = Problem::Together(Contradiction::Pool(mistake));
                session.fail(Origin::Flag("--steer"), problem);
            }
            let rule = SteerRule { name: name.clone(), rtype, pool };
            let is_same = |it: &SteerRule| (&it.name, it.rtype) == (&rule.name, rtype);
            match &mut zone {
                Some(zone) if zone.terms.steer.iter().any(is_same) => {
                    fail(session, "--steer", SteerMistake::Twice(name.clone(), rtype));
                }
                Some(zone) => Arc::make_mut(&mut zone.terms).steer.push(rule),
                None => alone.push((name.clone(), rule)),
            }
        }
    }
    alone
}

/// Reads the members of a pool that has the name of what it steers.
fn read_pool<'a>(
    session: &mut Session<'a>,
    name: &'a str,
    (members, sites): (&[MemberText<'a>], &mut Sites),
    pools: &mut Pools,
) -> Option<u32> {
    let flag = Origin::Flag("--steer");
    let given = |text| RawValue { text, origin: Origin::Flag("--steer") };
    let name = vec![("name", given(name))];
    let mut reader = Reader::new(session, &PoolKeys::SECTION, None, name, flag.clone());
    let keys = PoolKeys::read(&mut reader);
    let of_member = |text: &MemberText<'a>| {
        let address = vec![("address", given(text.address))];
        let section = &MemberKeys::SECTION;
        let mut reader = reader.nested_reader(section, (None, flag.clone()), address);
        member(&mut reader, (sites, false))
    };
    let members: Vec<NewMember> = members.iter().filter_map(of_member).collect();
    pools.add(session, keys?, members, flag)
}

/// Reads the check of the members of a pool; without `--check`, their port is one that must accept
/// connections.
fn check<'a>(
    layers: &Layers<'a>,
    session: &mut Session<'a>,
    name: &'a str,
    port: Option<&'a str>,
) -> Option<PoolCheck> {
    let given = |key, text| (key, RawValue { text, origin: Origin::Flag("--check") });
    let text = layers.flags.check.as_deref();
    let (kind, what) = match text.map(|text| text.split_once(':').unwrap_or((text, ""))) {
        Some(check) => check,
        None => ("tcp", port?),
    };
    let values = match kind {
        "tcp" => {
            let own = Some(what).filter(|text| !text.is_empty());
            vec![given("tcp", own.or(port).unwrap_or_default())]
        }
        _ => {
            let path = if what.is_empty() { "/" } else { what };
            let kind = if kind == "http" { "http" } else { "https" };
            let port = port.map(|port| given("port", port));
            let mut values = vec![given(kind, path), given("host", name)];
            values.extend(port);
            values
        }
    };
    let (section, origin) = (&CheckKeys::SECTION, Origin::Flag("--check"));
    match pool_check::read(&mut Reader::new(session, section, None, values, origin))? {
        WrittenCheck::Probe(check) => Some(check),
        WrittenCheck::Calculated(..) => None, // no flag says so
    }
}

/// The address and the port of a member: `192.0.2.1:443`, `[2001:db8::1]:443`, or an address.
fn split(text: &str) -> MemberText<'_> {
    let in_brackets = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match (in_brackets, text.split_once(':')) {
        (Some((address, rest)), _) => MemberText { address, port: rest.strip_prefix(':') },
        (None, Some((address, port))) if !port.contains(':') => {
            MemberText { address, port: Some(port) }
        }
        (None, _) => MemberText { address: text, port: None },
    }
}

/// Reports a mistake of a flag.
fn fail(session: &mut Session<'_>, flag: &'static str, mistake: SteerMistake) {
    let problem = Problem::Together(Contradiction::Pool(PoolMistake::Steer(mistake)));
    session.fail(Origin::Flag(flag), problem);
}
