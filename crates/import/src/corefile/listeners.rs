//! Addresses at which queries are answered, and what is served there.

use super::Importer;
use super::key;
use crate::document::Effect::Lost;
use crate::error::{ImportError, Place, Problem};
use crate::tree::fail;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use zonda_wire::Name;

/// Addresses that stand for all of the machine.
pub(super) const ALL: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
/// Zones of all server blocks together.
const ZONES_MAX: usize = 10_000;
/// Addresses with their zones, all together.
const SERVED_MAX: usize = 100_000;

/// Zones served at an address, each with its block and the place of its key.
type Served = HashMap<Name, (usize, Place)>;

impl Importer<'_> {
    /// Decides on the listeners and on the block of each zone. A zone that one address has and
    /// another has not, or has from another block, is reported.
    pub(super) fn listeners(&mut self) -> Result<(), ImportError> {
        let served = self.served()?;
        // The first address with the most zones is what all other addresses should be.
        let mut whole: Option<&Served> = None;
        for (_, zones) in &served {
            if whole.is_none_or(|whole| zones.len() > whole.len()) {
                whole = Some(zones);
            }
        }
        let Some(whole) = whole else { return Ok(()) };
        let mut owners: Vec<(Name, usize, Place)> = Vec::new();
        let mut reports = Vec::new();
        let all = served.iter().flat_map(|(address, zones)| {
            zones.iter().map(move |(name, (block, place))| (address, name, *block, place))
        });
        for (address, name, block, place) in all {
            match whole.get(name) {
                Some((first, _)) if *first == block => {}
                Some((_, first)) => reports.push((
                    place.clone(),
                    key::written(name),
                    format!(
                        "at {address}, the zone has another source than that of {first}: here, \
                        it has one at all addresses"
                    ),
                )),
                None => {
                    owners.push((name.clone(), block, place.clone()));
                    let why = "it is not served at all addresses: here, every zone is".to_owned();
                    reports.push((place.clone(), key::written(name), why));
                }
            }
        }
        for (name, (_, place)) in whole {
            let is_missing = |(_, zones): &(SocketAddr, Served)| !zones.contains_key(name);
            if let Some((address, _)) = served.iter().find(|it| is_missing(it)) {
                let why = format!(
                    "it is not served at {address}: here, every zone is served at \
                    every address"
                );
                reports.push((place.clone(), key::written(name), why));
            }
        }
        owners.sort_by_key(|(.., place)| (place.line, place.column));
        self.owners = whole.iter().map(|(name, (block, _))| (name.clone(), *block)).collect();
        for (name, block, _) in owners {
            self.owners.entry(name).or_insert(block);
        }
        for (place, name, why) in reports {
            self.leave_at(&place, Lost, name, why);
        }
        self.listeners = listeners(&served);
        Ok(())
    }

    /// Returns the zones that each address serves, in the order of the file.
    fn served(&mut self) -> Result<Vec<(SocketAddr, Served)>, ImportError> {
        let mut order: Vec<(SocketAddr, Served)> = Vec::new();
        let mut positions: BTreeMap<SocketAddr, usize> = BTreeMap::new();
        let mut reports = Vec::new();
        let (mut zone_count, mut count) = (0, 0);
        for (number, block) in self.blocks.iter().enumerate() {
            let addresses = if block.addresses.is_empty() { &ALL[..] } else { &block.addresses };
            for key in &block.keys {
                let place = &key.token.place;
                if key.scheme != "dns" {
                    reports.push((place.clone(), key.token.text.clone()));
                    continue;
                }
                zone_count += key.zones.len();
                count += key.zones.len() * addresses.len();
                if zone_count > ZONES_MAX || count > SERVED_MAX {
                    let problem = Problem::TooMuch("zones of server blocks", ZONES_MAX);
                    return Err(fail(place.clone(), problem));
                }
                for address in addresses {
                    let address = SocketAddr::new(*address, key.port);
                    let at = *positions.entry(address).or_insert_with(|| {
                        order.push((address, HashMap::new()));
                        order.len() - 1
                    });
                    let Some((_, served)) = order.get_mut(at) else { continue };
                    for zone in &key.zones {
                        let entry = (number, place.clone());
                        if let Some((_, first)) = served.insert(zone.clone(), entry) {
                            let what = format!("`{}` at {address}", key::written(zone));
                            return Err(fail(place.clone(), Problem::Twice(what, first)));
                        }
                    }
                }
            }
        }
        for (place, key) in reports {
            self.leave_at(&place, Lost, key, "clients are answered over UDP and TCP only");
        }
        Ok(order)
    }
}

/// Returns the addresses to listen at: none that a wildcard address has already.
fn listeners(served: &[(SocketAddr, Served)]) -> Vec<(SocketAddr, Place)> {
    let all: HashSet<SocketAddr> = served.iter().map(|(address, _)| *address).collect();
    let wildcard = |address: &SocketAddr| {
        let ip = if address.is_ipv4() { ALL[0] } else { ALL[1] };
        SocketAddr::new(ip, address.port())
    };
    let mut listeners = Vec::new();
    for (address, zones) in served {
        let first = zones.values().map(|(_, place)| place).min_by_key(|it| (it.line, it.column));
        let is_own = address.ip().is_unspecified() || !all.contains(&wildcard(address));
        if let (true, Some(place)) = (is_own, first) {
            listeners.push((*address, place.clone()));
        }
    }
    listeners
}
