//! The list of changes of a PATCH request, as changes of RRsets.
//!
//! They are read in the order of the list, as PowerDNS does: of REPLACE and DELETE of the same
//! RRset the later one counts, and EXTEND and PRUNE start from what those before them have left.
//! Whether records go together is judged once, for what all changes leave.

use super::api_error::ApiError;
use super::content::is_same;
use super::rrset_change::{Action, RrsetChange};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::mem;
use zonda_wire::{Name, Type};
use zonda_zone::snapshot::Rdatas;
use zonda_zone::{SetChange, Zone};

/// EXTEND and PRUNE in one request at most: each looks at all records of its RRset.
const SINGLE_MAX: usize = 1000;

/// An RRset: its name and its type.
type Key = (Name, Type);
/// The content of an RRset; none where it has no records.
type Content = Option<(u32, Rdatas)>;

/// Reads the list of a body.
///
/// # Errors
/// The first element that is wrong, or that changes an RRset as another one does.
pub fn read(
    list: &[Value],
    zone: &Name,
    default: Option<&str>,
) -> Result<Vec<RrsetChange>, ApiError> {
    let mut seen = HashSet::new();
    let mut changes = Vec::with_capacity(list.len());
    for element in list {
        let change = RrsetChange::read(element, zone, default)?;
        let (owner, rtype) = (&change.owner, change.rtype);
        if let Some(changetype) = change.unique_changetype()
            && !seen.insert((owner.clone(), rtype, changetype))
        {
            return Err(ApiError::refused(format!(
                "Duplicate RRset {owner} IN {rtype} with changetype: {changetype}"
            )));
        }
        changes.push(change);
    }
    if changes.iter().filter(|change| change.is_of_one_record()).count() > SINGLE_MAX {
        return Err(ApiError::refused(format!(
            "over {SINGLE_MAX} changes are EXTEND and PRUNE: use REPLACE, or several requests"
        )));
    }
    Ok(changes)
}

/// Whether what some changes come to depends on what the zone has.
pub fn depend_on_zone(changes: &[RrsetChange]) -> bool {
    changes.iter().any(RrsetChange::is_of_one_record)
}

/// What some changes come to; `zone` is the version that they are made to.
pub fn sets(changes: &[RrsetChange], zone: &Zone) -> Vec<SetChange> {
    let (changed, emptied) = (HashMap::new(), HashMap::new());
    let mut draft = ChangeDraft { zone, sets: Vec::new(), changed, emptied };
    changes.iter().for_each(|change| draft.take(change));
    draft.sets
}

/// What the changes so far come to.
struct ChangeDraft<'z> {
    zone: &'z Zone,
    sets: Vec<SetChange>,
    /// The places among `sets` of RRsets that were changed.
    changed: HashMap<Key, usize>,
    /// The places of the changes by which names lose all their records.
    emptied: HashMap<Name, usize>,
}

impl ChangeDraft<'_> {
    /// Takes the next change.
    fn take(&mut self, change: &RrsetChange) {
        let RrsetChange { owner, rtype, action } = change;
        match action {
            Action::Keep => {}
            Action::Replace(ttl, data) => self.put(owner, *rtype, Some((*ttl, data.clone()))),
            Action::Delete if *rtype == Type::ANY => {
                self.emptied.insert(owner.clone(), self.sets.len());
                self.sets.push(SetChange::RemoveName { owner: owner.clone() });
            }
            Action::Delete => self.put(owner, *rtype, None),
            Action::Extend(ttl, record) => {
                let content = self.take_content(owner, *rtype);
                let (former_ttl, mut data) = content.unwrap_or((*ttl, Rdatas::new()));
                let is_there = data.iter().any(|rdata| is_same(*rtype, rdata, record));
                if !is_there {
                    data.push(record.clone());
                }
                let ttl = if is_there { former_ttl } else { *ttl };
                self.put(owner, *rtype, Some((ttl, data)));
            }
            Action::Prune(record) => {
                let Some((ttl, mut data)) = self.take_content(owner, *rtype) else { return };
                data.retain(|rdata| !is_same(*rtype, rdata, record));
                self.put(owner, *rtype, Some((ttl, data)));
            }
        }
    }

    /// The place of the change that an RRset has its content from, if one does.
    fn place(&self, owner: &Name, rtype: Type) -> Option<usize> {
        let at = *self.changed.get(&(owner.clone(), rtype))?;
        self.emptied.get(owner).is_none_or(|emptied| *emptied < at).then_some(at)
    }

    /// Gives an RRset its content.
    fn put(&mut self, owner: &Name, rtype: Type, content: Content) {
        let owner = owner.clone();
        let place = self.place(&owner, rtype);
        let change = match content {
            Some((ttl, data)) if !data.is_empty() => {
                SetChange::Put { owner: owner.clone(), rtype, ttl, data }
            }
            _ => SetChange::Remove { owner: owner.clone(), rtype },
        };
        match place.and_then(|at| self.sets.get_mut(at)) {
            Some(former) => *former = change,
            None => {
                self.changed.insert((owner, rtype), self.sets.len());
                self.sets.push(change);
            }
        }
    }

    /// Takes the content that an RRset has after the changes so far, to be put back.
    fn take_content(&mut self, owner: &Name, rtype: Type) -> Content {
        if let Some(at) = self.place(owner, rtype) {
            return match self.sets.get_mut(at) {
                Some(SetChange::Put { ttl, data, .. }) => Some((*ttl, mem::take(data))),
                _ => None,
            };
        }
        if self.emptied.contains_key(owner) {
            return None;
        }
        let mut records =
            self.zone.records_at(owner).filter(|record| record.rtype == rtype).peekable();
        let ttl = records.peek()?.ttl;
        Some((ttl, records.map(|record| record.rdata.into()).collect()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;
    use zonda_zone::file::{Options, read_text};
    use zonda_zone::{ChangeSet, HashSeed, Serial, build};

    /// The text of the zone's version before each change.
    const TEXT: &[u8] = b"$TTL 60\n@ SOA ns host 7 1 1 1 1\n@ NS ns\nwww A 192.0.2.1\n\
        www A 192.0.2.2\nwww TXT \"x\"\n";

    /// The records of `www.example.org` after the changes of a list: type, TTL and last octet.
    fn after(list: &Value) -> Result<String, String> {
        let apex: Name = "example.org".parse().unwrap();
        let (records, _) = read_text(TEXT, "text".as_ref(), &apex, &Options::default());
        let zone = build(&apex, &records, HashSeed::random()).unwrap();
        let changes = read(list.as_array().unwrap(), &apex, None).map_err(|error| error.text)?;
        let changes = ChangeSet { sets: sets(&changes, &zone), serial: Serial::Keep };
        let (next, _) = zone.with(&changes).map_err(|error| error.to_string())?;
        let www = "www.example.org".parse().unwrap();
        let records = next.records_at(&www);
        let shown = |it: zonda_zone::ZoneRecord<'_>| {
            format!("{} {} {}", it.rtype, it.ttl, it.rdata.last().unwrap())
        };
        Ok(records.map(shown).collect::<Vec<_>>().join(", "))
    }

    /// An element about addresses of `www.example.org`.
    fn www(changetype: &str, addresses: &[&str]) -> Value {
        let records: Vec<_> = addresses.iter().map(|it| json!({ "content": it })).collect();
        json!({ "name": "www.example.org.", "type": "A", "ttl": 5, "changetype": changetype,
            "records": records })
    }

    #[test]
    fn of_replace_and_delete_of_the_same_set_the_later_one_counts() {
        let (replace, delete) = (www("REPLACE", &["192.0.2.9"]), www("DELETE", &[]));
        assert_eq!(after(&json!([replace, delete])).unwrap(), "TXT 60 120");
        assert_eq!(after(&json!([delete, replace])).unwrap(), "A 5 9, TXT 60 120");
        assert_eq!(
            after(&json!([replace, replace])).unwrap_err(),
            "Duplicate RRset www.example.org. IN A with changetype: REPLACE"
        );
    }

    #[test]
    fn extend_adds_a_record_that_is_not_there() {
        let extend = www("EXTEND", &["192.0.2.3"]);
        assert_eq!(after(&json!([extend])).unwrap(), "A 5 1, A 5 2, A 5 3, TXT 60 120");
        let there = www("EXTEND", &["192.0.2.2"]);
        assert_eq!(after(&json!([there])).unwrap(), "A 60 1, A 60 2, TXT 60 120");
    }

    #[test]
    fn prune_removes_a_record_that_is_there() {
        let first = www("PRUNE", &["192.0.2.1"]);
        assert_eq!(after(&json!([first])).unwrap(), "A 60 2, TXT 60 120");
        let second = www("PRUNE", &["192.0.2.2"]);
        assert_eq!(after(&json!([first, second, second])).unwrap(), "TXT 60 120");
        let other = www("PRUNE", &["192.0.2.7"]);
        assert_eq!(after(&json!([other])).unwrap(), "A 60 1, A 60 2, TXT 60 120");
    }

    #[test]
    fn extend_and_prune_find_a_record_whatever_the_case_of_its_names() {
        let mx = |changetype: &str, content: &str| {
            json!({ "name": "www.example.org.", "type": "MX", "ttl": 5, "changetype": changetype,
                "records": [{ "content": content }] })
        };
        let changes = |list: Value| after(&list).unwrap();
        let first = mx("REPLACE", "10 mail.example.org.");
        let mut again = mx("EXTEND", "10 MAIL.example.org.");
        again["ttl"] = json!(7);
        let before = "A 60 1, A 60 2, ";
        let both = format!("{before}MX 5 0, TXT 60 120");
        assert_eq!(changes(json!([first, again])), both);
        let none = format!("{before}TXT 60 120");
        assert_eq!(changes(json!([first, mx("PRUNE", "10 Mail.Example.org.")])), none);
    }

    #[test]
    fn extend_starts_from_what_the_changes_before_have_left() {
        let (extend, delete) = (www("EXTEND", &["192.0.2.3"]), www("DELETE", &[]));
        assert_eq!(after(&json!([delete, extend])).unwrap(), "A 5 3, TXT 60 120");
        let any = json!({ "name": "www.example.org.", "type": "ANY", "changetype": "DELETE" });
        assert_eq!(after(&json!([any, extend])).unwrap(), "A 5 3");
        assert_eq!(after(&json!([extend, any])).unwrap(), "");
        let more = www("EXTEND", &["192.0.2.4"]);
        assert_eq!(after(&json!([extend, any, more])).unwrap(), "A 5 4");
        assert_eq!(after(&json!([any, extend, more])).unwrap(), "A 5 3, A 5 4");
    }

    #[test]
    fn an_alias_takes_the_place_of_addresses_in_one_request_in_either_order() {
        let cname = json!({ "name": "www.example.org.", "type": "CNAME", "ttl": 5,
            "changetype": "REPLACE", "records": [{ "content": "a.test." }] });
        let text = json!({ "name": "www.example.org.", "type": "TXT", "changetype": "DELETE" });
        let delete = www("DELETE", &[]);
        assert_eq!(after(&json!([delete, text, cname])).unwrap(), "CNAME 5 0");
        assert_eq!(after(&json!([cname, delete, text])).unwrap(), "CNAME 5 0");
        assert!(after(&json!([cname])).unwrap_err().contains("CNAME"));
    }
}
