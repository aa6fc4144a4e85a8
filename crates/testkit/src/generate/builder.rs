//! Collects the records of one zone and refuses those that would make it invalid.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A finished zone.
#[derive(Clone, Debug)]
pub struct Zone {
    /// Name of the zone, with the dot at the end.
    pub name: String,
    /// The master file.
    pub text: String,
    /// Every name that owns records, in full, with its types.
    pub names: Vec<(String, Vec<&'static str>)>,
}

/// Records of one owner and type.
struct RecordSet {
    ttl: u32,
    data: Vec<String>,
}

/// A zone while it is made. Names are relative to the apex unless they end with a dot.
pub struct Builder {
    apex: String,
    /// The record sets by full owner name in lower case, with the case it was first written in kept
    /// beside.
    sets: BTreeMap<String, BTreeMap<&'static str, RecordSet>>,
    written: BTreeMap<String, String>,
    /// Counts the labels that `fresh` gave.
    labels: usize,
}

impl Builder {
    /// Makes a zone with SOA and two NS, one of them inside.
    pub fn new(apex: &str) -> Self {
        let mut zone = Self {
            apex: apex.to_owned(),
            sets: BTreeMap::new(),
            written: BTreeMap::new(),
            labels: 0,
        };
        zone.add_with_ttl("", "SOA", 900, "ns1 hostmaster 1 7200 1800 1209600 300");
        zone.add("", "NS", "ns1");
        if apex != "." {
            // From the root nothing is elsewhere.
            zone.add("", "NS", "ns.elsewhere.invalid.");
        }
        zone.add("ns1", "A", "192.0.2.53");
        zone.add("ns1", "AAAA", "2001:db8::53");
        zone
    }

    /// Returns a label that no one else uses, so that shapes do not meet by accident.
    pub fn fresh(&mut self, prefix: &str) -> String {
        self.labels += 1;
        format!("{prefix}{}", self.labels)
    }

    /// Returns a name in full.
    pub fn full(&self, name: &str) -> String {
        match name {
            "" => self.apex.clone(),
            _ if name.ends_with('.') && !name.ends_with("\\.") => name.to_owned(),
            _ if self.apex == "." => format!("{name}."),
            _ => format!("{name}.{}", self.apex),
        }
    }

    /// Adds a record with the TTL of its set, an hour for a new one.
    pub fn add(&mut self, owner: &str, record_type: &'static str, data: &str) {
        self.add_with_ttl(owner, record_type, 3600, data);
    }

    /// Adds a record unless the zone would be invalid with it.
    pub fn add_with_ttl(&mut self, owner: &str, record_type: &'static str, ttl: u32, data: &str) {
        let full = self.full(owner);
        let key = full.to_ascii_lowercase();
        if !self.fits(&key, record_type) {
            return;
        }
        self.written.entry(key.clone()).or_insert(full);
        let new = RecordSet { ttl, data: Vec::new() };
        let set = self.sets.entry(key).or_default().entry(record_type).or_insert(new);
        if !set.data.iter().any(|known| known.eq_ignore_ascii_case(data)) {
            set.data.push(data.to_owned());
        }
    }

    /// Whether a record of this type may stand here, by the rules that servers check at load.
    fn fits(&self, owner: &str, record_type: &str) -> bool {
        let types = self.sets.get(owner);
        let has = |wanted: &str| types.is_some_and(|types| types.contains_key(wanted));
        let at_apex = owner == self.apex.to_ascii_lowercase();
        let wildcard = owner.starts_with("*.");
        let alone = types.is_none_or(|types| types.keys().all(|t| *t == record_type));
        let below_dname = |name: &str| {
            let above = ancestors(name);
            above.iter().any(|n| self.sets.get(n).is_some_and(|types| types.contains_key("DNAME")))
        };
        let has_descendants = || {
            let end = format!(".{owner}");
            self.sets.keys().any(|name| name.ends_with(&end))
        };
        if has("CNAME") || below_dname(owner) {
            return false;
        }
        match record_type {
            // One alias a name, and nothing beside it (rfc1034#3.6.2).
            "CNAME" => alone && types.is_none() && !at_apex,
            // Nothing below a DNAME, one a name (rfc6672#2.4); peers differ on wildcards (#2.3).
            "DNAME" => !has("DNAME") && !has("NS") && !wildcard && !has_descendants() && !at_apex,
            "NS" => at_apex || !wildcard && !has("DNAME"),
            "DS" => has("NS") && !at_apex,
            _ => true,
        }
    }

    /// Writes the master file.
    pub fn finish(self) -> Zone {
        let mut text = format!("$ORIGIN {}\n", self.apex);
        let mut names = Vec::new();
        // The apex first, so that SOA is the first record.
        let apex = self.apex.to_ascii_lowercase();
        let mut owners: Vec<&String> = self.sets.keys().collect();
        owners.sort_by_key(|owner| **owner != apex);
        for owner in owners {
            let written = &self.written[owner];
            let mut types: Vec<&'static str> = self.sets[owner].keys().copied().collect();
            types.sort_by_key(|t| *t != "SOA");
            for record_type in &types {
                let set = &self.sets[owner][record_type];
                for data in &set.data {
                    let _ = writeln!(text, "{written} {} IN {record_type} {data}", set.ttl);
                }
            }
            names.push((written.clone(), types));
        }
        Zone { name: self.apex, text, names }
    }
}

/// Returns all names above a name, up to the first label.
fn ancestors(name: &str) -> Vec<String> {
    name.match_indices('.')
        .filter(|(at, _)| at + 1 < name.len())
        .map(|(at, _)| name[at + 1..].to_owned())
        .collect()
}
