//! Pools whose members are the addresses of a name, once these are known.

use crate::{MemberConfig, PoolConfig};
use std::net::IpAddr;
use zonda_balance::{Member, POOL_DEPTH_MAX, Records, WhenAllDown, identity_of};
use zonda_wire::Type;

/// Most addresses of a name that are members: those beyond are left out.
const ADDRESSES_MAX: usize = 16;

/// Makes the addresses of names the members of the pools that look these up: `known` tells those of
/// a pool by its name. Other pools whose members they are have records of the types that they have.
#[must_use]
pub fn with_addresses<'a>(
    configs: &[PoolConfig],
    known: impl Fn(&str) -> Option<&'a [IpAddr]>,
) -> Vec<PoolConfig> {
    let mut configs = configs.to_vec();
    if configs.iter().all(|config| config.lookup.is_none()) {
        return configs;
    }
    for config in configs.iter_mut().filter(|config| config.lookup.is_some()) {
        let addresses = known(&config.name).unwrap_or_default();
        set_members(config, &addresses[..addresses.len().min(ADDRESSES_MAX)]);
    }
    let pools: Vec<Vec<bool>> = configs.iter().map(|config| has_nested(&configs, config)).collect();
    for (config, has) in configs.iter_mut().zip(pools) {
        let mut has = has.into_iter();
        for records in &mut config.pool.records {
            for (member, rdata) in config.pool.members.iter().zip(&mut records.rdatas) {
                if member.pool.is_some() {
                    let has = has.next().unwrap_or_default();
                    *rdata = (!has).then(Box::default);
                }
            }
        }
    }
    configs
}

/// Makes addresses the members of a pool.
fn set_members(config: &mut PoolConfig, addresses: &[IpAddr]) {
    let described = |address: &IpAddr| MemberConfig {
        name: address.to_string(),
        address: Some(*address),
        site: None,
        calculation: None,
    };
    config.members = addresses.iter().map(described).collect();
    let member = |described: &MemberConfig| Member {
        identity: identity_of(described.name.as_bytes()),
        weight: 1,
        priority: 1,
        pool: None,
        site: None,
    };
    config.pool.members = config.members.iter().map(member).collect();
    for records in &mut config.pool.records {
        let rtype = records.rtype;
        let rdata = |address: &IpAddr| match (rtype, address) {
            (Type::A, IpAddr::V4(address)) => Some(address.octets().into()),
            (Type::AAAA, IpAddr::V6(address)) => Some(address.octets().into()),
            _ => None,
        };
        *records = Records { rtype, rdatas: addresses.iter().map(rdata).collect() };
    }
}

/// Whether each member of a pool that is a pool has records, for each type of its own.
fn has_nested(configs: &[PoolConfig], config: &PoolConfig) -> Vec<bool> {
    let of_type = |records: &Records| {
        let children = config.pool.members.iter().filter_map(|member| member.pool);
        let has = |child| has_records(configs, (child, records.rtype), POOL_DEPTH_MAX);
        children.map(has).collect::<Vec<bool>>()
    };
    config.pool.records.iter().flat_map(of_type).collect()
}

/// Whether a pool has records of a type, itself or by way of so many pools at most.
fn has_records(configs: &[PoolConfig], (number, rtype): (u32, Type), depth: usize) -> bool {
    let Some(config) = configs.get(number as usize).filter(|_| depth > 0) else { return false };
    let substitute = match config.pool.when_all_down {
        WhenAllDown::Pool(number) => Some(number),
        _ => None,
    };
    let records = config.pool.records.iter().find(|records| records.rtype == rtype);
    let rdatas = records.map(|records| &records.rdatas[..]).unwrap_or_default();
    let mut members = config.pool.members.iter().zip(rdatas);
    members.any(|(member, rdata)| match member.pool {
        Some(child) => has_records(configs, (child, rtype), depth - 1),
        None => rdata.is_some(),
    }) || substitute.is_some_and(|it| has_records(configs, (it, rtype), depth - 1))
}
