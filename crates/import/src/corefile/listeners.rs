//! Addresses at which queries are answered, and views: what is served there.

use super::Importer;
use super::key;
use super::table::ancestors;
use crate::document::Effect::Lost;
use crate::error::{ImportError, Place, Problem};
use crate::tree::fail;
use std::collections::{BTreeMap, BTreeSet, HashMap};
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

/// The zones of some listeners, all of which serve the same ones of the same blocks.
pub(super) struct View {
    /// Blocks by the zones of their keys.
    pub owners: HashMap<Name, usize>,
    /// Numbers of the listeners, in ascending order; at least one.
    pub listeners: Vec<usize>,
}

impl View {
    /// Returns the block whose queries those for a name are.
    pub fn owner(&self, name: &Name) -> Option<usize> {
        let mut above = std::iter::once(name.clone()).chain(ancestors(name));
        above.find_map(|name| self.owners.get(&name).copied())
    }
}

impl Importer<'_> {
    /// Decides on the listeners, and puts those that serve the same zones into one view.
    pub(super) fn listeners(&mut self) -> Result<(), ImportError> {
        let served = self.served()?;
        let served = without_covered(served);
        let mut numbers: HashMap<Vec<(Name, usize)>, usize> = HashMap::new();
        for (number, (address, zones)) in served.into_iter().enumerate() {
            let first = zones.values().map(|(_, place)| place).min_by_key(|it| position(it));
            let Some(first) = first.cloned() else { continue };
            self.listeners.push((address, first));
            let owners = zones.into_iter().map(|(name, (block, _))| (name, block));
            let mut key: Vec<(Name, usize)> = owners.collect();
            key.sort_by(|a, b| a.0.as_wire().cmp(b.0.as_wire()));
            match numbers.get(&key).and_then(|view| self.views.get_mut(*view)) {
                Some(view) => view.listeners.push(number),
                None => {
                    let owners = key.iter().cloned().collect();
                    numbers.insert(key, self.views.len());
                    self.views.push(View { owners, listeners: vec![number] });
                }
            }
        }
        for (number, view) in self.views.iter().enumerate() {
            let blocks: BTreeSet<usize> = view.owners.values().copied().collect();
            for block in blocks {
                self.block_views.entry(block).or_default().push(number);
            }
        }
        Ok(())
    }

    /// Returns the listeners of these views as `listen` has them; none if these are all views.
    pub(super) fn listen_of(&self, views: &[usize]) -> Option<Vec<String>> {
        if views.len() == self.views.len() {
            return None;
        }
        let views = views.iter().filter_map(|view| self.views.get(*view));
        let mut numbers: Vec<usize> = views.flat_map(|view| &view.listeners).copied().collect();
        numbers.sort_unstable();
        let listeners = numbers.iter().filter_map(|number| self.listeners.get(*number));
        Some(listeners.map(|(address, _)| address.to_string()).collect())
    }

    /// Returns the views in which a block has zones.
    pub(super) fn views_of(&self, block: usize) -> &[usize] {
        self.block_views.get(&block).map_or(&[], |views| views)
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

/// Leaves out the addresses that serve what all addresses of their port do.
fn without_covered(served: Vec<(SocketAddr, Served)>) -> Vec<(SocketAddr, Served)> {
    let wildcard = |address: &SocketAddr| {
        let ip = if address.is_ipv4() { ALL[0] } else { ALL[1] };
        SocketAddr::new(ip, address.port())
    };
    let positions: HashMap<SocketAddr, usize> =
        served.iter().enumerate().map(|(at, (address, _))| (*address, at)).collect();
    let is_covered = |(address, zones): &(SocketAddr, Served)| {
        let at = positions.get(&wildcard(address)).filter(|_| !address.ip().is_unspecified());
        at.and_then(|at| served.get(*at)).is_some_and(|(_, around)| {
            let has = |(name, (block, _)): (&Name, &(usize, Place))| {
                around.get(name).is_some_and(|(other, _)| other == block)
            };
            around.len() == zones.len() && zones.iter().all(has)
        })
    };
    let covered: Vec<bool> = served.iter().map(is_covered).collect();
    let with_covered = served.into_iter().zip(covered);
    with_covered.filter(|(_, is_covered)| !is_covered).map(|(served, _)| served).collect()
}

/// Returns the line and column of a place, by which places of one file are sorted.
fn position(place: &Place) -> (u32, u32) {
    (place.line, place.column)
}
