//! What a store has for a zone, as the records of that zone.
//!
//! # Invariants
//! - Each record was read as its type demands, so that nothing in a store can stand for more.
//! - The records can be built to a zone: what could not stand together is left out.

use crate::record_set::{ReadSet, without_final_dot};
use crate::{RecordSet, StoreError};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use zonda_wire::name::is_at_or_below;
use zonda_wire::rdata::Presentation;
use zonda_wire::{Name, Type};
use zonda_zone::{Record, Records};

/// What stands for the name server of a zone whose store has none: `localhost.`
const NO_SERVER: &[u8] = b"\x09localhost\0";
/// RNAME of a zone whose store has no SOA record: `nobody.invalid.`
const NOBODY: &[u8] = b"\x06nobody\x07invalid\0";
/// Time to live of a start of authority that the store has not, seconds.
const SOA_TTL_SECS: u32 = 3600;
/// Its numbers: refresh, retry, expire, and how long it is believed that a name does not exist,
/// which is short as names come and go.
const SOA_NUMBERS: [u32; 4] = [7200, 900, 1_209_600, 60];
/// Complaints that are logged at a time.
const LOGGED_MAX: usize = 20;
/// Types that may stand beside an alias: rfc4034#2.5, rfc3007#4.2, rfc2535#2.3.5.
const BESIDE_ALIAS: [Type; 5] = [Type::RRSIG, Type::NSEC, Type::KEY, Type::SIG, Type::NXT];
/// Why a start of authority is left out.
const NOT_APEX: &str = "only the name of a zone has one";
/// Why an alias is left out.
const APEX_IS_NO_ALIAS: &str = "the name of a zone is no alias";
/// What a key begins with that stands for no name: no label has so many octets.
const NO_NAME: u8 = 0xff;

/// The records of a zone as its store had them last.
pub struct ZoneRecords {
    apex: Name,
    /// By their names in lower case, or by what is no name behind [`NO_NAME`].
    nodes: BTreeMap<Box<[u8]>, Vec<Owner>>,
    /// Whether they changed since records were made of them.
    has_changed: bool,
    /// What was wrong then.
    complaints: Complaints,
    /// The last records; a start of authority that is made here comes last.
    last: Option<Arc<Records>>,
    serial: u32,
}

/// What is wrong with what a store has.
#[derive(Default)]
struct Complaints {
    /// Faults that were logged, as text.
    said: HashSet<String>,
    /// Records that are left out for it.
    left_out: usize,
}

/// What the store has of an owner.
struct Owner {
    /// What the store calls it; it may have several for the same name.
    called: String,
    sets: Vec<RecordSet>,
    /// RRsets that are valid.
    read: Vec<ReadSet>,
    /// Faults of the rest.
    wrong: Vec<String>,
}

/// A record of a name: type, time to live, data.
type Line<'s> = (Type, u32, &'s [u8]);

impl ZoneRecords {
    /// Of a zone whose store was not read yet.
    pub fn new(apex: &Name) -> Self {
        Self {
            apex: apex.to_lowercase(),
            nodes: BTreeMap::new(),
            has_changed: false,
            complaints: Complaints::default(),
            last: None,
            serial: 0,
        }
    }

    /// Whether an owner of the store may be in the zone.
    pub fn concerns(&self, owner: &str) -> bool {
        self.key(owner).is_some()
    }

    /// The key of an owner; nothing if it is the name of another zone.
    fn key(&self, owner: &str) -> Option<Box<[u8]>> {
        let Ok(name) = owner.parse::<Name>() else {
            return Some([&[NO_NAME], owner.as_bytes()].concat().into());
        };
        let name = name.to_lowercase();
        is_at_or_below(name.as_wire(), self.apex.as_wire()).then(|| name.as_wire().into())
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
        let has_changed = &mut self.has_changed;
        self.nodes.retain(|_, node| {
            let before = node.len();
            node.retain(|owner| owners.contains_key(&owner.called));
            *has_changed |= node.len() < before;
            !node.is_empty()
        });
        for (owner, sets) in owners {
            self.set(owner, sets);
        }
    }

    /// Takes what the store has of an owner.
    pub fn set(&mut self, owner: String, sets: Vec<RecordSet>) {
        let Some(key) = self.key(&owner) else { return };
        if sets.is_empty() {
            self.remove(&key, &owner);
            return;
        }
        // Nearly always there is one; a vector that grows would make room for four.
        let node = self.nodes.entry(key).or_insert_with(|| Vec::with_capacity(1));
        match node.iter().position(|known| known.called == owner) {
            Some(place) if node[place].sets == sets => return,
            Some(place) => node[place] = Owner::new(owner, sets),
            None => node.push(Owner::new(owner, sets)),
        }
        self.has_changed = true;
    }

    /// Takes an owner away that is at this key, if it is.
    fn remove(&mut self, key: &[u8], owner: &str) {
        let Some(node) = self.nodes.get_mut(key) else { return };
        let Some(place) = node.iter().position(|known| known.called == owner) else { return };
        node.remove(place);
        if node.is_empty() {
            self.nodes.remove(key);
        }
        self.has_changed = true;
    }

    /// The records, if they are other than the last ones; `unix_secs` is the time, and the least
    /// serial.
    pub fn make(&mut self, unix_secs: u32) -> Option<Arc<Records>> {
        if !std::mem::take(&mut self.has_changed) && self.last.is_some() {
            return None;
        }
        let (mut records, mut complaints) = (Records::default(), Complaints::default());
        records.begin_file(Path::new(&format!("store of {}", self.apex))); // as the log says it
        let soa_server = self.write_nodes(&mut records, &mut complaints);
        log(&self.apex, &self.complaints.said, &complaints.said);
        let count = records.len() + usize::from(soa_server.is_some());
        let is_same = |last: &Arc<Records>| last.len() == count && last.starts_with(&records);
        if self.last.as_ref().is_some_and(is_same) {
            self.complaints = complaints;
            return None;
        }
        self.serial = unix_secs.max(self.serial.wrapping_add(1));
        if let Some(server) = soa_server {
            let rdata = soa(&server, self.serial);
            let soa = (Type::SOA, SOA_TTL_SECS, &rdata[..]);
            write(&mut records, self.apex.as_wire(), soa, &mut complaints);
        }
        self.complaints = complaints;
        self.last = Some(Arc::new(records));
        self.last.clone()
    }

    /// Records of the store that the last records leave out as they are wrong.
    pub fn left_out(&self) -> u64 {
        self.complaints.left_out as u64
    }

    /// Writes all records; if the start of authority is missing, the server that it is to name is
    /// returned.
    fn write_nodes(&self, records: &mut Records, complaints: &mut Complaints) -> Option<Vec<u8>> {
        let mut lines = Vec::new();
        for (key, owners) in &self.nodes {
            for owner in owners {
                complaints.said.extend(owner.wrong.iter().cloned());
                complaints.left_out += owner.wrong.len();
            }
            if key[..] != *self.apex.as_wire() {
                gather(owners, &mut lines);
                write_node(key, &mut lines, (Type::SOA, NOT_APEX), records, complaints);
            }
        }
        let apex = self.nodes.get(self.apex.as_wire()).map_or(&[][..], Vec::as_slice);
        gather(apex, &mut lines);
        let server = first_server(apex).unwrap_or_else(|| {
            let apex = without_final_dot(&self.apex);
            complaints.said.insert(format!("{apex} NS: there is none, localhost. stands for it"));
            lines.push((Type::NS, SOA_TTL_SECS, NO_SERVER));
            NO_SERVER
        });
        let has_soa = lines.iter().any(|(rtype, ..)| *rtype == Type::SOA);
        let apex = self.apex.as_wire();
        write_node(apex, &mut lines, (Type::CNAME, APEX_IS_NO_ALIAS), records, complaints);
        (!has_soa).then(|| server.to_vec())
    }
}

/// Puts what the owners of a name have in place of `lines`, in order, each record once.
fn gather<'s>(owners: &'s [Owner], lines: &mut Vec<Line<'s>>) {
    lines.clear();
    for set in owners.iter().flat_map(|owner| &owner.read) {
        let line = |data: &'s Vec<u8>| (set.rtype, set.ttl_secs, data.as_slice());
        lines.extend(set.data.iter().map(line));
    }
    // Of the same records the one with the lowest TTL comes first, and stays.
    lines.sort_unstable_by_key(|(rtype, ttl_secs, data)| (rtype.0, *data, *ttl_secs));
    lines.dedup_by(|a, b| (a.0, a.2) == (b.0, b.2));
}

/// The name server that a store names first.
fn first_server(owners: &[Owner]) -> Option<&[u8]> {
    let sets = owners.iter().flat_map(|owner| &owner.read);
    let mut servers = sets.filter(|set| set.rtype == Type::NS).flat_map(|set| &set.data);
    servers.next().map(Vec::as_slice)
}

/// Writes the records of a name, and leaves out those of a type that it must not have and what
/// cannot stand together.
fn write_node(
    owner: &[u8],
    lines: &mut Vec<Line<'_>>,
    (misplaced, why): (Type, &str),
    records: &mut Records,
    complaints: &mut Complaints,
) {
    complaints.leave_out(owner, lines, misplaced, why);
    let is_company = |rtype: Type| rtype != Type::CNAME && !BESIDE_ALIAS.contains(&rtype);
    if lines.iter().any(|(rtype, ..)| is_company(*rtype)) {
        complaints.leave_out(owner, lines, Type::CNAME, "an alias has no other records");
    }
    for set in lines.chunk_by(|a, b| a.0 == b.0) {
        let (rtype, _, first) = set[0];
        let ttl_secs = set.iter().map(|(_, ttl_secs, _)| *ttl_secs).min().unwrap_or_default();
        let is_single = [Type::CNAME, Type::DNAME, Type::SOA].contains(&rtype);
        let served = if is_single { &set[..1] } else { set };
        if served.len() < set.len() {
            let first = Presentation { rtype, rdata: first };
            let why = format!("there can be only one, `{first}` is served");
            complaints.add(owner, rtype, &why, set.len() - 1);
        }
        for (_, _, data) in served {
            write(records, owner, (rtype, ttl_secs, data), complaints);
        }
    }
}

/// Writes a record.
fn write(
    records: &mut Records,
    owner: &[u8],
    (rtype, ttl, rdata): Line<'_>,
    complaints: &mut Complaints,
) {
    if records.push(Record { owner, rtype, ttl, rdata }, 0).is_err() {
        complaints.add(owner, rtype, "there is no room for it", 1);
    }
}

/// The data of a start of authority that names a server.
fn soa(server: &[u8], serial: u32) -> Vec<u8> {
    let numbers = std::iter::once(serial).chain(SOA_NUMBERS).flat_map(u32::to_be_bytes);
    server.iter().chain(NOBODY).copied().chain(numbers).collect()
}

impl Complaints {
    /// Leaves all records of a type out, for this reason.
    fn leave_out(&mut self, owner: &[u8], lines: &mut Vec<Line<'_>>, rtype: Type, why: &str) {
        let before = lines.len();
        lines.retain(|line| line.0 != rtype);
        if lines.len() < before {
            self.add(owner, rtype, why, before - lines.len());
        }
    }

    /// Notes why so many records of an owner are left out.
    fn add(&mut self, owner: &[u8], rtype: Type, why: &str, count: usize) {
        let owner = Name::from_wire(owner).map(|name| without_final_dot(&name)).unwrap_or_default();
        self.said.insert(format!("{owner} {rtype}: {why}"));
        self.left_out += count;
    }
}

impl Owner {
    /// Reads what is right, and notes what is wrong.
    fn new(called: String, sets: Vec<RecordSet>) -> Self {
        let (mut read, mut wrong) = (Vec::with_capacity(sets.len()), Vec::new());
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
        Self { called, sets, read, wrong }
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
pub fn log_outage(apex: &Name, was_read: bool, error: &StoreError) {
    let served = if was_read { "its last data are served" } else { "its zone is SERVFAIL" };
    tracing::error!("store of {apex}: unavailable, retrying; meanwhile {served}: {error}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonda_zone::print::print_record;

    /// Records as the text of a master file.
    fn text_of(records: &Records) -> String {
        let mut text = Vec::new();
        records.iter().for_each(|it| print_record(&it, &mut text).unwrap());
        String::from_utf8(text).unwrap()
    }

    /// The records of a zone with these sets, and what is said about it; how many are left out.
    fn made(sets: &[RecordSet]) -> (String, Vec<String>, u64) {
        let mut zone = ZoneRecords::new(&"example.org".parse().unwrap());
        zone.set_all(sets.to_vec());
        let records = zone.make(1).unwrap();
        let left_out = zone.left_out();
        let mut complaints: Vec<_> = zone.complaints.said.into_iter().collect();
        complaints.sort();
        (text_of(&records), complaints, left_out)
    }

    #[test]
    fn a_store_without_records_is_a_zone_with_soa_and_ns() {
        let (text, complaints, left_out) = made(&[]);
        assert_eq!(
            text,
            "example.org.\t3600\tIN\tNS\tlocalhost.\n\
             example.org.\t3600\tIN\tSOA\tlocalhost. nobody.invalid. 1 7200 900 1209600 60\n"
        );
        assert_eq!(left_out, 0);
        assert_eq!(complaints, ["example.org NS: there is none, localhost. stands for it"]);
    }

    #[test]
    fn soa_and_ns_of_the_store_are_served_as_they_are() {
        let soa = "ns.example.net. hostmaster.example.net. 7 1 2 3 4";
        let (text, complaints, left_out) = made(&[
            RecordSet::new("Example.org.", "NS", 60, ["ns.example.net"]),
            RecordSet::new("example.org", "SOA", 60, [soa]),
        ]);
        assert_eq!(
            text,
            format!(
                "example.org.\t60\tIN\tNS\tns.example.net.\nexample.org.\t60\tIN\tSOA\t{soa}\n"
            )
        );
        assert!(complaints.is_empty() && left_out == 0, "{complaints:?}");
    }

    #[test]
    fn what_cannot_stand_together_is_left_out_and_the_rest_is_served() {
        let (text, complaints, left_out) = made(&[
            RecordSet::new("example.org", "NS", 60, ["ns.example.net"]),
            RecordSet::new("example.org", "CNAME", 60, ["other.example"]),
            RecordSet::new("a.example.org", "CNAME", 60, ["one.example", "two.example"]),
            RecordSet::new("b.example.org", "CNAME", 60, ["one.example"]),
            RecordSet::new("B.example.org", "A", 60, ["192.0.2.1", "192.0.2.999"]),
            RecordSet::new("c.example.org", "SOA", 60, [". . 1 2 3 4 5"]),
            RecordSet::new("d..example.org", "A", 60, ["192.0.2.1"]),
            RecordSet::new("elsewhere.example", "A", 60, ["192.0.2.1"]),
        ]);
        let lines: Vec<_> = text.lines().take(3).collect();
        assert_eq!(
            lines,
            [
                "a.example.org.\t60\tIN\tCNAME\tone.example.",
                "b.example.org.\t60\tIN\tA\t192.0.2.1",
                "example.org.\t60\tIN\tNS\tns.example.net.",
            ]
        );
        assert_eq!(left_out, 6);
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
    fn only_a_change_makes_new_records_and_their_serial_is_higher() {
        let serial = |records: Option<Arc<Records>>| {
            let text = text_of(&records.unwrap());
            let soa = text.lines().find(|line| line.contains("\tSOA\t")).unwrap();
            soa.split_whitespace().nth(6).unwrap().parse::<u32>().unwrap()
        };
        let mut zone = ZoneRecords::new(&"example.org".parse().unwrap());
        assert_eq!(serial(zone.make(100)), 100);
        assert!(zone.make(200).is_none());
        let set = |data: &str| vec![RecordSet::new("a.example.org", "A", 60, [data])];
        zone.set("a.example.org".into(), set("192.0.2.1"));
        assert_eq!(serial(zone.make(100)), 101);
        zone.set("a.example.org".into(), set("192.0.2.1"));
        zone.set("b.example.org".into(), Vec::new());
        zone.set_all(set("192.0.2.1"));
        assert!(zone.make(300).is_none());
        zone.set("bad.example.org".into(), vec![RecordSet::new("bad.example.org", "A", 60, ["?"])]);
        assert!(zone.make(300).is_none(), "nothing of it is served");
        assert_eq!(zone.left_out(), 1);
        zone.set("a.example.org".into(), Vec::new());
        assert_eq!(serial(zone.make(300)), 300);
        assert_eq!(zone.left_out(), 1);
        zone.set_all(set("192.0.2.2"));
        assert_eq!(serial(zone.make(300)), 301);
        assert_eq!(zone.left_out(), 0);
        zone.set_all(Vec::new());
        assert_eq!(serial(zone.make(300)), 302);
    }

    #[test]
    fn spellings_of_one_owner_are_merged_with_the_lowest_ttl() {
        let (text, complaints, _) = made(&[
            RecordSet::new("example.org", "NS", 60, ["ns.example.net"]),
            RecordSet::new("a.example.org", "A", 90, ["192.0.2.2", "192.0.2.1"]),
            RecordSet::new("A.Example.org.", "A", 60, ["192.0.2.1", "192.0.2.3"]),
            RecordSet::new("a.example.org", "TXT", 90, ["x"]),
        ]);
        let lines: Vec<_> = text.lines().take(4).collect();
        assert_eq!(
            lines,
            [
                "a.example.org.\t60\tIN\tA\t192.0.2.1",
                "a.example.org.\t60\tIN\tA\t192.0.2.2",
                "a.example.org.\t60\tIN\tA\t192.0.2.3",
                "a.example.org.\t90\tIN\tTXT\t\"x\"",
            ]
        );
        assert!(complaints.is_empty(), "{complaints:?}");
    }
}
