//! What is answered at home although a zone around it is forwarded: special-use names, names that
//! the configuration overrides or excepts, those of hosts files.
//!
//! All of it becomes zones and overlays of the table that workers see, so that no query costs more.

use crate::forwards::KnownForward;
use crate::overrides;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use zonda_config::{Config, Override};
use zonda_engine::Reason;
use zonda_engine::zones::{Forward, Local, Overlay, Source, ZoneEntry, ZoneTableOwner};
use zonda_wire::{Name, name};
use zonda_zone::{HashSeed, Zone, build, file};

/// The records of every special zone (rfc6303#3).
const EMPTY_ZONE: &str = "$TTL 10800\n@ SOA @ nobody.invalid. 1 3600 1200 604800 10800\n@ NS @\n";

/// Records that some special zones have beside SOA and NS.
const MORE_RECORDS: [(&str, &str); 4] = [
    // rfc6761#6.3
    ("localhost.", "@ A 127.0.0.1\n@ AAAA ::1\n* A 127.0.0.1\n* AAAA ::1\n"),
    ("127.in-addr.arpa.", "1.0.0 PTR localhost.\n"),
    (LOOPBACK_V6, "@ PTR localhost.\n"),
    // rfc9462#6.4: every name exists, and has nothing. The wildcard is an empty non-terminal.
    ("resolver.arpa.", "nothing.* TXT \"\"\n"),
];

/// The reverse zone of ::1.
const LOOPBACK_V6: &str =
    "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa.";

/// Names that are answered locally, as the configuration in force has them.
#[derive(Default)]
pub struct LocalNames {
    /// The configured names of special zones.
    names: Vec<Name>,
    /// The configured overrides of names.
    overrides: Vec<Override>,
    /// Special zones by their names.
    special: Vec<(Name, Arc<Zone>)>,
    /// Overridden names, if there are any.
    overlay: Option<Overlay>,
}

impl LocalNames {
    /// Puts into force what is configured; whether anything differs from before.
    pub fn update(&mut self, config: &Config, seed: HashSeed) -> bool {
        let is_forwarding = config.forwards().next().is_some();
        let names = if is_forwarding { &config.special_names[..] } else { &[] };
        if self.names == names && self.overrides == config.overrides {
            return false;
        }
        let zone = |name: &Name| Some((name.clone(), Arc::new(special_zone(name, seed)?)));
        self.special = names.iter().filter_map(zone).collect();
        self.overlay = overrides::overlay(&config.overrides, seed);
        (self.names, self.overrides) = (names.to_vec(), config.overrides.clone());
        true
    }

    /// The names of forwarded zones and of what is not forwarded although they enclose it, with all
    /// names above. What [`Self::add_forwards`] adds depends on no zone elsewhere.
    pub fn at_or_above(&self, forwards: &[&KnownForward]) -> HashSet<Name> {
        let mut names = HashSet::new();
        if forwards.is_empty() {
            return names;
        }
        let apexes = forwards.iter().map(|forward| &forward.entry.apex);
        let excepted = forwards.iter().flat_map(|forward| forward.except());
        let special = self.special.iter().map(|(name, _)| name);
        for name in apexes.chain(excepted).chain(special) {
            let lower = name.to_lowercase();
            let all = std::iter::successors(Some(lower.as_wire()), |name| name::parent(name));
            names.extend(all.filter_map(|name| Name::from_wire(name).ok()));
        }
        names
    }

    /// Adds the forwarded zones to a table of zones with data, and what is not forwarded although
    /// they enclose it. `hosts` has the names in front of forwarded zones, by their apex.
    ///
    /// Returns the names that were added, and the zones with data that hold excepted names: the
    /// table has copies of these.
    pub fn add_forwards(
        &self,
        table: &mut ZoneTableOwner,
        forwards: &[&KnownForward],
        hosts: &HashMap<&Name, Arc<Zone>>,
    ) -> (Vec<Name>, HashSet<Name>) {
        let mut lent = HashSet::new();
        if forwards.is_empty() {
            return (Vec::new(), lent);
        }
        let mut table = Table { zones: table, added: Vec::new() };
        for zone in forwards {
            let hosts = hosts.get(&zone.entry.apex);
            let hosts = hosts.map(|zone| Overlay { zone: zone.clone(), reason: Reason::Answered });
            let overlays = self.overlay.iter().cloned().chain(hosts).collect();
            table.add(with_overlays(&zone.entry, overlays));
        }
        // All are found before any is added: what stands for an excepted name holds no other.
        let excepted = forwards.iter().flat_map(|forward| forward.except());
        let excepted: Vec<_> =
            excepted.filter_map(|name| table.excepted(name, forwards, &mut lent)).collect();
        excepted.into_iter().for_each(|entry| table.add(entry));
        self.special.iter().for_each(|(name, zone)| table.add_special(name, zone));
        (table.added, lent)
    }
}

/// A forwarded zone with names in front of it.
fn with_overlays(entry: &Arc<ZoneEntry>, overlays: Vec<Overlay>) -> Arc<ZoneEntry> {
    let Source::Forward(forward) = &entry.source else { return Arc::clone(entry) };
    let Forward { number, cache, options, nxdomain_cut, .. } = &**forward;
    let forward = Forward {
        number: *number,
        cache: Arc::clone(cache),
        options: options.clone(),
        nxdomain_cut: *nxdomain_cut,
        overlays,
    };
    let source = Source::Forward(Arc::new(forward));
    let (apex, access) = (entry.apex.clone(), entry.access.clone());
    Arc::new(ZoneEntry::new(apex, source, access, entry.number))
}

/// Zones under way to workers.
struct Table<'t> {
    zones: &'t mut ZoneTableOwner,
    /// The names of zones that were added.
    added: Vec<Name>,
}

impl Table<'_> {
    /// Adds a zone, unless there is one of its name.
    fn add(&mut self, entry: Arc<ZoneEntry>) {
        if self.zones.get(entry.apex.as_wire()).is_none() {
            self.added.push(entry.apex.clone());
            self.zones.put(entry);
        }
    }

    /// The zone that holds what lies directly above a name.
    fn above(&self, name: &[u8]) -> Option<&Arc<ZoneEntry>> {
        let mut ancestors = std::iter::successors(name::parent(name), |name| name::parent(name));
        ancestors.find_map(|ancestor| self.zones.get(ancestor))
    }

    /// What keeps a name, and what lies below it, from being forwarded with the zone around it:
    /// they belong to the nearest zone above that does not except them. None if that is the one
    /// around.
    fn excepted(
        &self,
        name: &Name,
        forwards: &[&KnownForward],
        lent: &mut HashSet<Name>,
    ) -> Option<Arc<ZoneEntry>> {
        let excepts = |zone: &&Arc<ZoneEntry>| {
            let zone = forwards.iter().find(|it| it.entry.apex == zone.apex);
            let mut names = zone.iter().flat_map(|it| it.except());
            names.any(|it| name::is_at_or_below(name.as_wire(), it.to_lowercase().as_wire()))
        };
        let from = self.above(name.as_wire()).filter(excepts)?;
        let beyond = |zone: &&Arc<ZoneEntry>| self.above(zone.apex.as_wire());
        let mut zones = std::iter::successors(Some(from), beyond);
        let beyond = zones.find(|zone| !excepts(zone));
        let access = beyond.and_then(|beyond| beyond.access.clone());
        let number = beyond.map_or(from.number, |beyond| beyond.number);
        let source = match beyond.map(|beyond| &beyond.source) {
            Some(Source::Data(zone)) => {
                let (zone, overlays) = (Arc::clone(zone), Vec::new());
                Source::Local(Arc::new(Local { zone, overlays }))
            }
            Some(Source::Local(local)) => Source::Local(Arc::clone(local)),
            Some(Source::Forward(forward)) => Source::Forward(Arc::clone(forward)),
            Some(Source::Cluster(cluster)) => Source::Cluster(Arc::clone(cluster)),
            Some(Source::Unavailable(reason)) => Source::Unavailable(*reason),
            Some(Source::Excepted) | None => Source::Excepted,
        };
        let is_own = |zone: &&Arc<ZoneEntry>| !matches!(zone.source, Source::Forward(_));
        lent.extend(beyond.filter(is_own).map(|zone| zone.apex.clone()));
        Some(Arc::new(ZoneEntry::new(name.to_lowercase(), source, access, number)))
    }

    /// Adds a special zone if the names around it are forwarded with the root: a zone for less than
    /// all names says that its names are to be asked there.
    fn add_special(&mut self, name: &Name, zone: &Arc<Zone>) {
        let Some(around) = self.above(name.as_wire()) else { return };
        let Source::Forward(forward) = &around.source else { return };
        if around.apex != Name::root() {
            return;
        }
        let is_localhost = name.as_wire() == b"\x09localhost\0"; // no overlay may change it
        let overlays = if is_localhost { Vec::new() } else { forward.overlays.clone() };
        let source = Source::Local(Arc::new(Local { zone: Arc::clone(zone), overlays }));
        let (access, number) = (around.access.clone(), around.number);
        self.add(Arc::new(ZoneEntry::new(name.clone(), source, access, number)));
    }
}

/// A special zone.
fn special_zone(apex: &Name, seed: HashSeed) -> Option<Zone> {
    let own = apex.to_string();
    let more = MORE_RECORDS.iter().find(|(name, _)| *name == own).map_or("", |(_, more)| more);
    let text = [EMPTY_ZONE, more].concat();
    let options = file::Options::default();
    let (records, _) = file::read_text(text.as_bytes(), Path::new(""), apex, &options);
    build(apex, &records, seed).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use zonda_config::Flags;
    use zonda_wire::Type;
    use zonda_zone::{LookupName, LookupResult};

    const SEED: HashSeed = HashSeed(1);

    #[test]
    fn every_special_zone_can_be_built_and_those_with_records_have_them() {
        let has = |apex: &str, name: &str, rtype| {
            let apex: Name = apex.parse().unwrap();
            let zone = special_zone(&apex, SEED).unwrap();
            let name: Name = name.parse().unwrap();
            let name = LookupName::new(name.as_wire(), SEED);
            match zone.find(&name, false) {
                LookupResult::Exact(node) | LookupResult::Wildcard { node, .. } => {
                    node.set(rtype).is_some()
                }
                _ => false,
            }
        };
        let known = Config::load(None, [], &Flags::default()).unwrap().config.special_names;
        assert!(known.len() > 100, "{known:?}");
        for apex in known.iter().map(ToString::to_string) {
            assert!(has(&apex, &apex, Type::SOA) && has(&apex, &apex, Type::NS), "{apex}");
        }
        assert!(!has("local", "printer.local", Type::A));
        assert!(has("localhost", "localhost", Type::AAAA));
        assert!(has("localhost", "a.b.localhost", Type::A));
        assert!(has("127.in-addr.arpa", "1.0.0.127.in-addr.arpa", Type::PTR));
        assert!(has(LOOPBACK_V6, LOOPBACK_V6, Type::PTR));
    }

    #[test]
    fn every_name_below_resolver_arpa_exists_and_has_nothing() {
        let apex: Name = "resolver.arpa".parse().unwrap();
        let zone = special_zone(&apex, SEED).unwrap();
        for name in ["_dns.resolver.arpa", "a.b.c.resolver.arpa"] {
            let name = LookupName::new(name.parse::<Name>().unwrap().as_wire(), SEED);
            let LookupResult::Wildcard { node, .. } = zone.find(&name, false) else { panic!() };
            assert!(node.is_empty_non_terminal());
        }
    }
}
