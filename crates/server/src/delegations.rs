//! Delegations in zones of our own that lie inside one that is forwarded: clients that want
//! recursion get a referral there, where they may expect that others are asked.

use std::collections::HashSet;
use zonda_config::Config;
use zonda_wire::{Name, Type, name};
use zonda_zone::Records;

/// All zones of a configuration that are known before files are read.
pub struct KnownZones {
    /// Those that are forwarded.
    forwarded: Vec<Name>,
    /// These and all others, in lower case and wire form.
    all: HashSet<Vec<u8>>,
}

impl KnownZones {
    /// Those of a configuration, and these.
    pub fn new<'n>(config: &Config, others: impl Iterator<Item = &'n Name>) -> Self {
        let forwarded: Vec<Name> = config.forwards.iter().map(|zone| zone.name.clone()).collect();
        let mut known = Self { forwarded, all: HashSet::new() };
        config.forwards.iter().for_each(|zone| known.add(&zone.name));
        others.for_each(|name| known.add(name));
        known
    }

    /// Adds a zone that was found in a file.
    pub fn add(&mut self, name: &Name) {
        self.all.insert(name.as_wire().to_ascii_lowercase());
    }

    /// What is to be said of the delegations of a zone: a line that begins with where the first
    /// stands. Nothing if there are none, or all of them are zones here.
    pub fn warning(&self, zone: &Name, records: &Records) -> Option<String> {
        let apex = zone.as_wire();
        let encloses = |it: &&Name| name::is_at_or_below(apex, it.as_wire());
        let around = self.forwarded.iter().filter(encloses).max_by_key(|it| it.label_count())?;
        let is_untold = |index: &usize| {
            let record = records.get(*index);
            record.rtype == Type::NS && !self.has_zone(record.owner, apex)
        };
        let mut untold = (0..records.len()).filter(is_untold);
        let first = untold.next()?;
        let (cut, position) =
            (Name::from_wire(records.get(first).owner).ok()?, records.position(first));
        let owners = untold.map(|index| records.get(index).owner.to_ascii_lowercase());
        let others = owners.filter(|owner| owner != &cut.as_wire().to_ascii_lowercase());
        let more = match others.collect::<HashSet<_>>().len() {
            0 => String::new(),
            more => format!(", and {more} more,"),
        };
        Some(format!(
            "{}:{}:1: warning: {cut}{more} is delegated, and zone {zone} lies inside {around}, \
             which is forwarded: clients get a referral unless the name is a [[zone]] with forward",
            position.file.display(),
            position.line,
        ))
    }

    /// Whether a name is an apex, or is a zone here, or one between the two is.
    fn has_zone(&self, owner: &[u8], apex: &[u8]) -> bool {
        let owner = owner.to_ascii_lowercase();
        let above = std::iter::successors(Some(&*owner), |name| name::parent(name));
        let mut below_apex = above.take_while(|name| name.len() > apex.len());
        owner.len() <= apex.len() || below_apex.any(|name| self.all.contains(name))
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

    /// What is said of the zone above, if these are forwarded.
    fn said(forwarded: &[&str], others: &[&str]) -> Option<String> {
        let names = |names: &[&str]| names.iter().map(|it| it.parse().unwrap()).collect();
        let forwarded: Vec<Name> = names(forwarded);
        let others: Vec<Name> = names(others);
        let mut known = KnownZones { forwarded: forwarded.clone(), all: HashSet::new() };
        forwarded.iter().chain(&others).for_each(|name| known.add(name));
        let apex = "example.org".parse().unwrap();
        let path = Path::new("org.zone");
        let (records, _) = file::read_text(ZONE.as_bytes(), path, &apex, &file::Options::default());
        known.warning(&apex, &records)
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
