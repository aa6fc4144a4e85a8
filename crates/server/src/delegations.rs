//! Delegations in zones with data that lie inside a forwarded zone: clients that want recursion get
//! a referral there, where they may expect that upstreams are asked.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use zonda_config::Config;
use zonda_wire::{Name, Type, name};
use zonda_zone::Records;

/// Finds delegations inside forwarded zones while zones are read. Which of the delegated names are
/// zones of this server is known only when all zones have been read.
pub struct Delegations {
    /// Zones that are forwarded.
    forwarded: Vec<Name>,
    /// The apexes of all zones, in lower case and wire form.
    zones: HashSet<Vec<u8>>,
    /// The zones that have delegations inside what is forwarded.
    found: Vec<ZoneDelegations>,
}

/// The delegations of a zone.
struct ZoneDelegations {
    zone: Name,
    /// The forwarded zone that the delegated name lies in.
    around: Name,
    /// The owners of the delegations, each once, and where the first record of each stands.
    cuts: Vec<(Name, Arc<Path>, u32)>,
}

impl Delegations {
    /// None yet, of a configuration.
    pub fn new(config: &Config) -> Self {
        Self::inside(config.forwards().filter_map(|(zone, _)| zone.name.clone()).collect())
    }

    /// An empty list of delegations, with these zones forwarded.
    fn inside(forwarded: Vec<Name>) -> Self {
        let mut new = Self { forwarded: Vec::new(), zones: HashSet::new(), found: Vec::new() };
        forwarded.iter().for_each(|name| new.add_zone(name));
        Self { forwarded, ..new }
    }

    /// Notes a zone that is served here.
    pub fn add_zone(&mut self, name: &Name) {
        self.zones.insert(name.as_wire().to_ascii_lowercase());
    }

    /// Notes the delegations in a zone, if it lies in one that is forwarded.
    pub fn add(&mut self, zone: &Name, records: &Records) {
        let apex = zone.as_wire();
        let encloses = |it: &&Name| name::is_at_or_below(apex, it.as_wire());
        let around = self.forwarded.iter().filter(encloses).max_by_key(|it| it.label_count());
        let Some(around) = around.cloned() else { return };
        let (mut seen, mut cuts) = (HashSet::new(), Vec::<(Name, Arc<Path>, u32)>::new());
        for index in 0..records.len() {
            let record = records.get(index);
            let is_cut = record.rtype == Type::NS && record.owner.len() > apex.len();
            if is_cut && seen.insert(record.owner.to_ascii_lowercase()) {
                let position = records.position(index);
                let same = cuts.last().filter(|(_, file, _)| **file == *position.file);
                let file =
                    same.map_or_else(|| position.file.into(), |(_, file, _)| Arc::clone(file));
                let cut = Name::from_wire(record.owner);
                cuts.extend(cut.map(|cut| (cut, file, position.line)));
            }
        }
        if !cuts.is_empty() {
            self.found.push(ZoneDelegations { zone: zone.clone(), around, cuts });
        }
    }

    /// Returns the warnings: a line for each zone with delegations that are no zones of this
    /// server, which begins with the place of the first.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        self.found.iter().filter_map(|ZoneDelegations { zone, around, cuts }| {
            let apex = zone.as_wire();
            let mut untold = cuts.iter().filter(|(cut, _, _)| !self.has_zone(cut.as_wire(), apex));
            let (cut, file, line) = untold.next()?;
            let more = match untold.count() {
                0 => String::new(),
                more => format!(", and {more} more,"),
            };
            Some(format!(
                "{}:{line}:1: warning: {cut}{more} is delegated, and zone {zone} lies inside \
                 {around}, which is forwarded: clients get a referral unless the name is a \
                 [[zone]] with forward",
                file.display(),
            ))
        })
    }

    /// Whether a name is a zone here, or one between it and the apex is.
    fn has_zone(&self, owner: &[u8], apex: &[u8]) -> bool {
        let owner = owner.to_ascii_lowercase();
        let above = std::iter::successors(Some(&*owner), |name| name::parent(name));
        let mut below_apex = above.take_while(|name| name.len() > apex.len());
        below_apex.any(|name| self.zones.contains(name))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::path::Path;
    use zonda_zone::file;

    const ZONE: &str = "$TTL 60\n@ SOA ns host 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n\
                        sub NS ns.sub\nsub NS ns2.sub\nOther NS ns.example.net.\n";

    /// Returns the warning about the zone above, if `forwarded` zones are forwarded and `others`
    /// served.
    fn said(forwarded: &[&str], others: &[&str]) -> Option<String> {
        let names = |names: &[&str]| names.iter().map(|it| it.parse().unwrap()).collect();
        let mut delegations = Delegations::inside(names(forwarded));
        let apex = "example.org".parse().unwrap();
        let path = Path::new("org.zone");
        let (records, _) = file::read_text(ZONE.as_bytes(), path, &apex, &file::Options::default());
        delegations.add_zone(&apex);
        delegations.add(&apex, &records);
        let others: Vec<Name> = names(others);
        others.iter().for_each(|name| delegations.add_zone(name)); // read later
        delegations.warnings().next()
    }

    #[test]
    fn a_delegation_inside_what_is_forwarded_is_told_of_unless_it_is_a_zone_here() {
        let line = said(&["."], &[]).unwrap();
        assert!(line.starts_with("org.zone:5:1: warning: sub.example.org., and 1 more,"), "{line}");
        assert!(line.contains(" inside ., which is forwarded"), "{line}");
        let line = said(&[".", "org"], &["sub.example.org"]).unwrap();
        assert!(
            line.starts_with("org.zone:7:1: warning: Other.example.org. is delegated"),
            "{line}"
        );
        assert!(line.contains(" inside org., which is forwarded"), "{line}");
        assert_eq!(said(&[".", "sub.example.org", "other.example.org"], &[]), None);
        assert_eq!(said(&["net", "www.example.org"], &[]), None, "nobody expects more");
        assert_eq!(said(&[], &[]), None);
    }
}
