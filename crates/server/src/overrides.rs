//! Names that have other addresses here, by the configuration.
//!
//! They become zone data, so that no query costs more for them. In zone data, a wildcard stands for
//! no name below one that exists (rfc4592#2.2.1); in the configuration it stands for all names that
//! have no line of their own. Where other lines make names exist below a wildcard, it is therefore
//! repeated.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use zonda_config::Override;
use zonda_engine::Reason;
use zonda_engine::zones::Overlay;
use zonda_wire::name::{self, NAME_BYTES_MAX};
use zonda_wire::{Name, Type};
use zonda_zone::{HashSeed, Record, Records, build, hosts};

/// TTL of the addresses, seconds: short, as what replaces them may change.
const TTL_SECS: u32 = 60;
/// The first label of a wildcard.
const ASTERISK: &[u8] = b"\x01*";

/// All lines, by their names in wire form and lower case.
type Lines<'l> = HashMap<&'l [u8], &'l [IpAddr]>;

/// The overridden names, if there are any.
pub fn overlay(overrides: &[Override], seed: HashSeed) -> Option<Overlay> {
    if overrides.is_empty() {
        return None;
    }
    let lines: Lines<'_> =
        overrides.iter().map(|line| (line.name.as_wire(), &line.addresses[..])).collect();
    let mut records = Records::default();
    hosts::push_soa(&Name::root(), &mut records).ok()?;
    for Override { name, addresses } in overrides {
        push(name.as_wire(), addresses, &mut records)?;
    }
    for (name, addresses) in repeated(&lines) {
        push(&name, addresses, &mut records)?;
    }
    let zone = Arc::new(build(&Name::root(), &records, seed).ok()?);
    Some(Overlay { zone, reason: Reason::Overridden })
}

/// Adds the addresses of a name.
fn push(owner: &[u8], addresses: &[IpAddr], records: &mut Records) -> Option<()> {
    for address in addresses {
        let (rtype, rdata) = match address {
            IpAddr::V4(v4) => (Type::A, v4.octets().to_vec()),
            IpAddr::V6(v6) => (Type::AAAA, v6.octets().to_vec()),
        };
        records.push(Record { owner, rtype, ttl: TTL_SECS, rdata: &rdata }, 0).ok()?;
    }
    Some(())
}

/// Names without a line that exist because of one below them, and the names below those that exist:
/// each with the addresses of the nearest wildcard around it.
fn repeated<'l>(lines: &Lines<'l>) -> Vec<(Vec<u8>, &'l [IpAddr])> {
    if !lines.keys().any(|name| name.starts_with(ASTERISK)) {
        return Vec::new();
    }
    let mut known = HashSet::new();
    let mut repeated = Vec::new();
    for line in lines.keys() {
        let names = std::iter::successors(Some(*line), |name| name::parent(name));
        for name in names.take_while(|name| known.insert(*name)) {
            let Some(addresses) = around(name, lines) else { continue };
            let below = [ASTERISK, name].concat();
            for name in [name.to_vec(), below] {
                if !lines.contains_key(&*name) && name.len() <= NAME_BYTES_MAX {
                    repeated.push((name, addresses));
                }
            }
        }
    }
    repeated
}

/// The addresses of the nearest wildcard that stands for names at and below a name.
fn around<'l>(name: &[u8], lines: &Lines<'l>) -> Option<&'l [IpAddr]> {
    let above = std::iter::successors(name::parent(name), |name| name::parent(name));
    above.into_iter().find_map(|name| lines.get(&*[ASTERISK, name].concat()).copied())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use zonda_zone::{LookupName, LookupResult};

    const SEED: HashSeed = HashSeed(1);

    /// The last octet of the IPv4 address that a name has with these lines, each of which has the
    /// address of its place.
    fn octet(lines: &[&str], name: &str) -> Option<u8> {
        let line = |(place, name): (u8, &&str)| {
            let addresses = vec![IpAddr::from([192, 0, 2, place])];
            Override { name: name.parse().unwrap(), addresses }
        };
        let lines: Vec<_> = (0..).zip(lines).map(line).collect();
        let zone = overlay(&lines, SEED).unwrap().zone;
        let name = LookupName::new(name.parse::<Name>().unwrap().as_wire(), SEED);
        let (LookupResult::Exact(node) | LookupResult::Wildcard { node, .. }) =
            zone.find(&name, false)
        else {
            return None;
        };
        node.set(Type::A).map(|set| set.first()[3])
    }

    #[test]
    fn a_wildcard_stands_for_all_names_below_that_have_no_line_of_their_own() {
        let lines = ["*.ads.example", "good.ads.example", "a.b.ads.example", "*.x.ads.example"];
        for (name, expected) in [
            ("ads.example", None),
            ("example", None),
            ("other.example", None),
            ("any.ads.example", Some(0)),
            ("deep.any.ads.example", Some(0)),
            ("good.ads.example", Some(1)),
            ("x.good.ads.example", Some(0)),
            ("y.x.good.ads.example", Some(0)),
            ("b.ads.example", Some(0)),
            ("a.b.ads.example", Some(2)),
            ("c.b.ads.example", Some(0)),
            ("c.a.b.ads.example", Some(0)),
            ("x.ads.example", Some(0)),
            ("y.x.ads.example", Some(3)),
            ("z.y.x.ads.example", Some(3)),
        ] {
            assert_eq!(octet(&lines, name), expected, "{name}");
        }
    }

    #[test]
    fn a_line_for_all_names_leaves_those_with_lines_alone() {
        let lines = ["*", "www.example.com", "*.example.net"];
        for (name, expected) in [
            ("com", Some(0)),
            ("example.com", Some(0)),
            ("www.example.com", Some(1)),
            ("x.www.example.com", Some(0)),
            ("example.net", Some(0)),
            ("www.example.net", Some(2)),
            (".", None),
        ] {
            assert_eq!(octet(&lines, name), expected, "{name}");
        }
    }

    #[test]
    fn names_as_long_as_can_be_are_taken() {
        let long = format!("{0}.{0}.{0}.{1}", "x".repeat(63), "y".repeat(61));
        assert_eq!(octet(&["*", &long], &long), Some(1));
    }
}
