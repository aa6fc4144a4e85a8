//! What a store has for a zone, as the text of a master file.
//!
//! # Invariants
//! - Each line is one record that was read and printed, so that nothing in a store can write a line
//!   of its own.
//! - The text can be built to a zone: what could not stand together is left out.

use super::record_set::{ReadSet, without_final_dot};
use super::{RecordSet, StoreError};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use zonda_wire::name::is_at_or_below;
use zonda_wire::{Name, Type};

/// What stands for the name server of a zone whose store has none.
const NO_SERVER: &str = "localhost.";
/// Time to live of a start of authority that the store has not, seconds.
const SOA_TTL_SECS: u32 = 3600;
/// Its numbers: refresh, retry, expire, and how long it is believed that a name does not exist,
/// which is short as names come and go.
const SOA_NUMBERS: &str = "7200 900 1209600 60";
/// Complaints that are logged at a time.
const LOGGED_MAX: usize = 20;
/// Types that may stand beside an alias: rfc4034#2.5, rfc3007#4.2, rfc2535#2.3.5.
const BESIDE_ALIAS: [Type; 5] = [Type::RRSIG, Type::NSEC, Type::KEY, Type::SIG, Type::NXT];

/// The records of a zone as its store had them last.
pub(super) struct ZoneText {
    apex: Name,
    /// By what the store calls them.
    owners: BTreeMap<String, Owner>,
    /// What was wrong when the text was made last.
    complaints: Complaints,
    /// The last text without the start of authority that is made here.
    body: Option<String>,
    serial: u32,
}

/// What is wrong with what a store has.
#[derive(Default)]
struct Complaints {
    /// In words.
    said: HashSet<String>,
    /// Records that are left out for it.
    left_out: usize,
}

/// What the store has of an owner.
struct Owner {
    sets: Vec<RecordSet>,
    /// Those that are in the zone and right.
    read: Vec<ReadSet>,
    /// What is wrong with others.
    wrong: Vec<String>,
}

/// Of one owner in the zone, by type: time to live and data.
type Node<'s> = BTreeMap<u16, (u32, Vec<&'s str>)>;

impl ZoneText {
    /// Of a zone whose store was not read yet.
    pub fn new(apex: &Name) -> Self {
        Self {
            apex: apex.to_lowercase(),
            owners: BTreeMap::new(),
            complaints: Complaints::default(),
            body: None,
            serial: 0,
        }
    }

    /// Whether an owner of the store may be in the zone.
    pub fn concerns(&self, owner: &str) -> bool {
        let name = owner.parse::<Name>();
        name.map_or(true, |name| is_at_or_below(name.as_wire(), self.apex.as_wire()))
    }

    /// Takes all that the store has.
    pub fn set_all(&mut self, sets: Vec<RecordSet>) {
        let mut owners: BTreeMap<String, Vec<RecordSet>> = BTreeMap::new();
        for set in sets {
            match owners.get_mut(&set.owner) {
                Some(known) => known.push(set),
                None => _ = owners.insert(set.owner.clone(), vec![set]),
            }
        }
        self.owners.retain(|owner, _| owners.contains_key(owner));
        for (owner, sets) in owners {
            self.set(owner, sets);
        }
    }

    /// Takes what the store has of an owner.
    pub fn set(&mut self, owner: String, sets: Vec<RecordSet>) {
        if sets.is_empty() || !self.concerns(&owner) {
            self.owners.remove(&owner);
        } else if self.owners.get(&owner).is_none_or(|known| known.sets != sets) {
            self.owners.insert(owner, Owner::new(sets));
        }
    }

    /// The text, if it is other than the last one; `unix_secs` is the time, and the least serial.
    pub fn render(&mut self, unix_secs: u32) -> Option<String> {
        let mut complaints = Complaints::default();
        let (body, soa) = self.lines(&mut complaints);
        log(&self.apex, &self.complaints.said, &complaints.said);
        self.complaints = complaints;
        if self.body.as_ref() == Some(&body) {
            return None;
        }
        self.serial = unix_secs.max(self.serial.wrapping_add(1));
        let text = match soa {
            Some(soa) => format!("{soa} {} {SOA_NUMBERS}\n{body}", self.serial),
            None => body.clone(),
        };
        self.body = Some(body);
        Some(text)
    }

    /// Records that the last text leaves out as they are wrong.
    pub fn left_out(&self) -> u64 {
        self.complaints.left_out as u64
    }

    /// All lines but that of a start of authority that is missing, of which this is the beginning.
    fn lines(&self, complaints: &mut Complaints) -> (String, Option<String>) {
        let mut nodes: BTreeMap<&[u8], (&Name, Node<'_>)> = BTreeMap::new();
        for owner in self.owners.values() {
            complaints.said.extend(owner.wrong.iter().cloned());
            complaints.left_out += owner.wrong.len();
            for set in &owner.read {
                let node = nodes.entry(set.owner.as_wire()).or_insert((&set.owner, Node::new()));
                let (ttl_secs, data) = node.1.entry(set.rtype.0).or_insert((u32::MAX, Vec::new()));
                *ttl_secs = set.ttl_secs.min(*ttl_secs);
                data.extend(set.data.iter().map(String::as_str));
            }
        }
        let apex = nodes.entry(self.apex.as_wire()).or_insert((&self.apex, Node::new()));
        if let std::collections::btree_map::Entry::Vacant(missing) = apex.1.entry(Type::NS.0) {
            let apex = without_final_dot(&self.apex);
            complaints.said.insert(format!("{apex} NS: there is none, {NO_SERVER} stands for it"));
            missing.insert((SOA_TTL_SECS, vec![NO_SERVER]));
        }
        let server = apex.1.get(&Type::NS.0).and_then(|(_, data)| data.first()).copied();
        let soa = (!apex.1.contains_key(&Type::SOA.0)).then(|| {
            let server = server.unwrap_or(NO_SERVER);
            format!("{}\t{SOA_TTL_SECS}\tIN\tSOA\t{server} nobody.invalid.", self.apex)
        });
        let mut text = String::new();
        for (owner, node) in nodes.into_values() {
            self.write_node(owner, node, &mut text, complaints);
        }
        (text, soa)
    }

    /// Writes what an owner has, and leaves out what cannot stand together.
    fn write_node(
        &self,
        owner: &Name,
        mut node: Node<'_>,
        text: &mut String,
        complaints: &mut Complaints,
    ) {
        let is_apex = *owner == self.apex;
        let mut leave_out = |node: &mut Node<'_>, rtype: Type, why: &str| {
            if let Some((_, data)) = node.remove(&rtype.0) {
                complaints.said.insert(format!("{} {rtype}: {why}", without_final_dot(owner)));
                complaints.left_out += data.len();
            }
        };
        if is_apex {
            leave_out(&mut node, Type::CNAME, "the name of a zone is no alias");
        } else {
            leave_out(&mut node, Type::SOA, "only the name of a zone has one");
        }
        let is_company = |rtype: &u16| !BESIDE_ALIAS.contains(&Type(*rtype));
        if node.contains_key(&Type::CNAME.0) && node.keys().filter(|it| is_company(it)).count() > 1
        {
            leave_out(&mut node, Type::CNAME, "an alias has no other records");
        }
        for (rtype, (ttl_secs, mut data)) in node {
            data.sort_unstable();
            data.dedup();
            let rtype = Type(rtype);
            if [Type::CNAME, Type::DNAME, Type::SOA].contains(&rtype) && data.len() > 1 {
                let why = format!("there can be only one, `{}` is served", data[0]);
                complaints.said.insert(format!("{} {rtype}: {why}", without_final_dot(owner)));
                complaints.left_out += data.len() - 1;
                data.truncate(1);
            }
            for data in data {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{owner}\t{ttl_secs}\tIN\t{rtype}\t{data}");
            }
        }
    }
}

impl Owner {
    /// Reads what is right, and notes what is wrong.
    fn new(sets: Vec<RecordSet>) -> Self {
        let (mut read, mut wrong) = (Vec::new(), Vec::new());
        for set in &sets {
            match set.read() {
                Ok((set, errors)) => {
                    wrong.extend(errors.iter().map(ToString::to_string));
                    if !set.data.is_empty() {
                        read.push(set);
                    }
                }
                Err(error) => wrong.push(error.to_string()),
            }
        }
        Self { sets, read, wrong }
    }
}

/// Logs what is wrong and was not before.
fn log(apex: &Name, before: &HashSet<String>, now: &HashSet<String>) {
    let mut new: Vec<_> = now.difference(before).collect();
    new.sort_unstable();
    for complaint in new.iter().take(LOGGED_MAX) {
        tracing::warn!("store of {apex}: {complaint}");
    }
    if new.len() > LOGGED_MAX {
        tracing::warn!("store of {apex}: and {} more records", new.len() - LOGGED_MAX);
    }
}

/// Says that a store cannot be followed.
pub(super) fn log_outage(apex: &Name, was_read: bool, error: &StoreError) {
    let served = if was_read { "its last data are served" } else { "its zone is SERVFAIL" };
    tracing::error!("store of {apex}: it is tried again, meanwhile {served}: {error}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(sets: &[RecordSet]) -> (String, Vec<String>) {
        let mut text = ZoneText::new(&"example.org".parse().unwrap());
        text.set_all(sets.to_vec());
        let rendered = text.render(1).unwrap();
        let mut complaints: Vec<_> = text.complaints.said.into_iter().collect();
        complaints.sort();
        (rendered, complaints)
    }

    #[test]
    fn a_store_without_records_is_a_zone_with_soa_and_ns() {
        let (text, complaints) = rendered(&[]);
        assert_eq!(
            text,
            "example.org.\t3600\tIN\tSOA\tlocalhost. nobody.invalid. 1 7200 900 1209600 60\n\
             example.org.\t3600\tIN\tNS\tlocalhost.\n"
        );
        assert_eq!(complaints, ["example.org NS: there is none, localhost. stands for it"]);
    }

    #[test]
    fn soa_and_ns_of_the_store_are_served_as_they_are() {
        let soa = "ns.example.net. hostmaster.example.net. 7 1 2 3 4";
        let (text, complaints) = rendered(&[
            RecordSet::new("Example.org.", "NS", 60, ["ns.example.net"]),
            RecordSet::new("example.org", "SOA", 60, [soa]),
        ]);
        assert_eq!(
            text,
            format!(
                "example.org.\t60\tIN\tNS\tns.example.net.\nexample.org.\t60\tIN\tSOA\t{soa}\n"
            )
        );
        assert!(complaints.is_empty(), "{complaints:?}");
    }

    #[test]
    fn what_cannot_stand_together_is_left_out_and_the_rest_is_served() {
        let (text, complaints) = rendered(&[
            RecordSet::new("example.org", "NS", 60, ["ns.example.net"]),
            RecordSet::new("example.org", "CNAME", 60, ["other.example"]),
            RecordSet::new("a.example.org", "CNAME", 60, ["one.example", "two.example"]),
            RecordSet::new("b.example.org", "CNAME", 60, ["one.example"]),
            RecordSet::new("B.example.org", "A", 60, ["192.0.2.1", "192.0.2.999"]),
            RecordSet::new("c.example.org", "SOA", 60, [". . 1 2 3 4 5"]),
            RecordSet::new("d..example.org", "A", 60, ["192.0.2.1"]),
            RecordSet::new("elsewhere.example", "A", 60, ["192.0.2.1"]),
        ]);
        let lines: Vec<_> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "a.example.org.\t60\tIN\tCNAME\tone.example.",
                "b.example.org.\t60\tIN\tA\t192.0.2.1",
                "example.org.\t60\tIN\tNS\tns.example.net.",
            ]
        );
        let named: Vec<_> = complaints.iter().map(|it| it.split(": ").next().unwrap()).collect();
        assert_eq!(
            named,
            [
                "B.example.org A",
                "a.example.org CNAME",
                "b.example.org CNAME",
                "c.example.org SOA",
                "d..example.org A",
                "example.org CNAME",
            ]
        );
    }

    #[test]
    fn only_a_change_makes_a_new_text_and_its_serial_is_higher() {
        let serial = |text: &str| text.split_whitespace().nth(6).unwrap().parse::<u32>().unwrap();
        let mut text = ZoneText::new(&"example.org".parse().unwrap());
        assert_eq!(serial(&text.render(100).unwrap()), 100);
        assert_eq!(text.render(200), None);
        let set = |data: &str| vec![RecordSet::new("a.example.org", "A", 60, [data])];
        text.set("a.example.org".into(), set("192.0.2.1"));
        assert_eq!(serial(&text.render(100).unwrap()), 101);
        text.set("a.example.org".into(), set("192.0.2.1"));
        assert_eq!(text.render(300), None);
        text.set("a.example.org".into(), Vec::new());
        assert_eq!(serial(&text.render(300).unwrap()), 300);
        text.set_all(set("192.0.2.2"));
        assert_eq!(serial(&text.render(300).unwrap()), 301);
    }
}
