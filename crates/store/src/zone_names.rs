//! The names of several zones whose records are read at a time.

use std::collections::HashSet;
use zonda_wire::{Name, name};

/// The names of zones.
#[derive(Clone)]
pub(crate) struct ZoneNames {
    /// In lower case and wire form.
    names: HashSet<Box<[u8]>>,
    /// The longest name that all are at or below.
    common_ancestor: Name,
}

impl ZoneNames {
    /// The names of these zones.
    pub fn new(zones: &[Name]) -> Self {
        let lower = zones.iter().map(|zone| zone.to_lowercase().as_wire().into());
        Self { names: lower.collect(), common_ancestor: common_ancestor(zones) }
    }

    /// The longest name that all zones are at or below.
    pub fn common_ancestor(&self) -> &Name {
        &self.common_ancestor
    }

    /// Whether an owner is at or below one of the zones, or is no name, which the zones report.
    pub fn concern(&self, owner: &str) -> bool {
        let Ok(owner) = owner.parse::<Name>() else { return true };
        let owner = owner.to_lowercase();
        let mut rest = Some(owner.as_wire());
        while let Some(name) = rest {
            if self.names.contains(name) {
                return true;
            }
            rest = name::parent(name);
        }
        false
    }
}

/// The longest name that several names are at or below.
fn common_ancestor(names: &[Name]) -> Name {
    let Some((first, others)) = names.split_first() else { return Name::root() };
    let first = first.to_lowercase();
    let mut common = first.as_wire();
    for name in others {
        let name = name.to_lowercase();
        while !name::is_at_or_below(name.as_wire(), common) {
            common = name::parent(common).unwrap_or(&[0]);
        }
    }
    Name::from_wire(common).unwrap_or_else(|_| Name::root())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn names(names: &[&str]) -> ZoneNames {
        ZoneNames::new(&names.iter().map(|name| name.parse().unwrap()).collect::<Vec<_>>())
    }

    #[test]
    fn zones_have_the_nearest_name_above_all_in_common() {
        let common = |of: &[&str]| names(of).common_ancestor().to_string();
        assert_eq!(common(&["a.example.org", "b.example.org"]), "example.org.");
        assert_eq!(common(&["example.org", "b.example.org"]), "example.org.");
        assert_eq!(common(&["a.example.org", "xexample.org"]), "org.");
        assert_eq!(common(&["Example.org", "b.example.ORG"]), "example.org.");
        assert_eq!(common(&["example.org", "example.net"]), ".");
        assert_eq!(common(&[".", "example.net"]), ".");
    }

    #[test]
    fn an_owner_concerns_the_zones_that_it_is_in() {
        let zones = names(&["a.test", "B.example"]);
        for owner in ["a.test", "WWW.A.test.", "x.y.b.example", "no..name"] {
            assert!(zones.concern(owner), "{owner}");
        }
        for owner in ["test", "xa.test", "example", "a.b"] {
            assert!(!zones.concern(owner), "{owner}");
        }
        assert!(names(&["."]).concern("a.b"));
    }
}
