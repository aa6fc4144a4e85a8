//! What a store has for a zone, as the zone wants it: records for a first load, changes of names
//! after that.
//!
//! The records are in the zone alone. Kept here is what cannot be read back from the zone: the
//! spellings that the store has of a name, and what is wrong with its records.
//!
//! # Invariants
//! - Each record was read as its type demands, so that nothing in a store can stand for more.
//! - The records of a name keep to the rules of a zone: what cannot stand together is left out.

use crate::record_set::{ReadSet, without_final_dot};
use crate::{RecordSet, StoreError};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use zonda_wire::name::is_at_or_below;
use zonda_wire::rdata::Presentation;
use zonda_wire::{Name, Type};
use zonda_zone::rules::SINGLE_TYPES;
use zonda_zone::{OwnerKind, OwnerRule, Record, Records, SetChange, owner_rules};

/// The name server of a zone whose store has no NS record at its name: `localhost.`
const NO_SERVER: &[u8] = b"\x09localhost\0";
/// RNAME of a zone whose store has no SOA record: `nobody.invalid.`
const NOBODY: &[u8] = b"\x06nobody\x07invalid\0";
/// Time to live of a SOA record that the store has not, seconds.
const SOA_TTL_SECS: u32 = 3600;
/// REFRESH, RETRY, EXPIRE and MINIMUM of such a SOA record, seconds. The last, for which it is
/// believed that a name does not exist, is short as names come and go.
const SOA_NUMBERS: [u32; 4] = [7200, 900, 1_209_600, 60];
/// Faults that are logged at a time.
const LOGGED_MAX: usize = 20;
/// Octets of a set that is served, with owners compressed: what a message has besides a header, the
/// longest question, and an OPT record.
const SET_OCTETS_MAX: usize = 65_535 - 12 - 259 - 64;
/// Why a SOA record is left out.
const NOT_APEX: &str = "only the apex of a zone has one";
/// Why a CNAME record is left out.
const CNAME_BESIDE_OTHERS: &str = "a CNAME record stands beside no other types";
/// The first octet of a key that stands for no name: no label has so many octets.
const NO_NAME: u8 = 0xff;

/// A name in wire form and lower case, or what is no name behind [`NO_NAME`].
type Key = Box<[u8]>;
/// A record of a name: type, time to live in seconds, data.
type Line<'s> = (Type, u32, &'s [u8]);

/// A zone's view of its store.
pub struct ZoneContent {
    apex: Name,
    /// The spellings of each name that the store has in another form than the normal one.
    spellings: HashMap<Key, BTreeSet<String>>,
    /// What is wrong with the records of each name.
    faults: BTreeMap<Key, Faults>,
    /// Whether the store has no SOA record of the zone, so that one was made.
    makes_soa: bool,
}

/// What is wrong with the records of a name.
#[derive(Debug, Default, PartialEq, Eq)]
struct Faults {
    /// The faults as the log tells them.
    texts: BTreeSet<String>,
    /// The number of records that are left out of the zone.
    left_out: u64,
}

impl ZoneContent {
    /// The content of a zone whose store was not read yet.
    #[must_use]
    pub fn new(apex: &Name) -> Self {
        Self {
            apex: apex.to_lowercase(),
            spellings: HashMap::new(),
            faults: BTreeMap::new(),
            makes_soa: false,
        }
    }

    /// The zone's apex, in lower case.
    #[must_use]
    pub fn apex(&self) -> &Name {
        &self.apex
    }

    /// Whether an owner of the store may be in the zone.
    #[must_use]
    pub fn concerns(&self, owner: &str) -> bool {
        self.key(owner).is_some()
    }

    /// Whether the zone's SOA record is made here, so that its serial has to rise with each change.
    #[must_use]
    pub fn makes_soa(&self) -> bool {
        self.makes_soa
    }

    /// Records of the store that are left out of the zone as they are wrong.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.faults.values().map(|faults| faults.left_out).sum()
    }

    /// The key of an owner; nothing if it is a name outside the zone, or no name and does not end
    /// as one of the zone would.
    fn key(&self, owner: &str) -> Option<Key> {
        let Ok(name) = owner.parse::<Name>() else {
            let (text, apex) = (owner.trim_end_matches('.'), without_final_dot(&self.apex));
            let apex = apex.trim_end_matches('.'); // of the root, nothing is left
            let end = text.len().checked_sub(apex.len()).and_then(|at| text.get(at..));
            if !end.is_some_and(|end| end.eq_ignore_ascii_case(apex)) {
                return None;
            }
            return Some([&[NO_NAME], owner.as_bytes()].concat().into());
        };
        let name = name.to_lowercase();
        is_at_or_below(name.as_wire(), self.apex.as_wire()).then(|| name.as_wire().into())
    }

    /// Makes the records of the zone of all that the store has. A SOA record that is made has this
    /// serial. What is wrong is logged if it was not before.
    pub fn read_all(&mut self, sets: Vec<RecordSet>, serial: u32) -> Records {
        let keyed = sets.into_iter().filter_map(|set| Some((self.key(&set.owner)?, set)));
        let mut keyed: Vec<(Key, RecordSet)> = keyed.collect();
        keyed.sort_by(|a, b| a.0.cmp(&b.0));
        self.spellings.clear();
        let (mut records, mut faults) = (Records::default(), BTreeMap::new());
        let mut has_apex = false;
        for same in keyed.chunk_by(|a, b| a.0 == b.0) {
            let key = &same[0].0;
            has_apex |= **key == *self.apex.as_wire();
            self.note_spellings(key, same.iter().map(|(_, set)| set.owner.as_str()));
            let of_name = self.push_name(key, same.iter().map(|it| &it.1), serial, &mut records);
            if of_name != Faults::default() {
                faults.insert(key.clone(), of_name);
            }
        }
        if !has_apex {
            let apex: Key = self.apex.as_wire().into();
            let of_apex = self.push_name(&apex, [].iter(), serial, &mut records);
            faults.insert(apex, of_apex);
        }
        let is_new = |key: &Key, text: &String| {
            self.faults.get(key).is_none_or(|before| !before.texts.contains(text))
        };
        let new = faults
            .iter()
            .flat_map(|(key, of_name)| of_name.texts.iter().filter(move |text| is_new(key, text)));
        log(&self.apex, &new.collect::<Vec<_>>());
        self.faults = faults;
        records
    }

    /// Pushes the records of a name, and returns what is wrong with them.
    fn push_name<'s>(
        &mut self,
        key: &Key,
        sets: impl Iterator<Item = &'s RecordSet>,
        serial: u32,
        records: &mut Records,
    ) -> Faults {
        self.with_lines(key, sets, serial, |lines, faults| {
            for &(rtype, ttl, rdata) in lines {
                if records.push(Record { owner: key, rtype, ttl, rdata }, 0).is_err() {
                    faults.add(key, rtype, "there is no room for it", 1);
                }
            }
        })
    }

    /// Reads a name that has changed, and makes the changes of the zone. `owner` is how the store
    /// spells the name, and `get` reads what the store has of a spelling. `serial` is that of the
    /// version in force. What is wrong is logged if it was not before.
    ///
    /// # Errors
    /// Those of `get`.
    pub fn read_name(
        &mut self,
        owner: &str,
        serial: u32,
        mut get: impl FnMut(&str) -> Result<Vec<RecordSet>, StoreError>,
    ) -> Result<Vec<SetChange>, StoreError> {
        let Some(key) = self.key(owner) else { return Ok(Vec::new()) };
        let mut spellings = self.spellings.get(&key).cloned().unwrap_or_default();
        spellings.insert(owner.to_owned());
        let name = Name::from_wire(&key).ok();
        spellings.extend(name.as_ref().map(without_final_dot));
        let mut sets = Vec::new();
        for spelling in &spellings {
            sets.extend(get(spelling)?);
        }
        self.note_spellings(&key, sets.iter().map(|set| set.owner.as_str()));
        let mut changes = Vec::new();
        let faults = self.with_lines(&key, sets.iter(), serial, |lines, _| {
            let Some(name) = &name else { return };
            changes.push(SetChange::RemoveName { owner: name.clone() });
            // Signatures of different types are sets of their own.
            for set in lines.chunk_by(|a, b| (a.0, covered(*a)) == (b.0, covered(*b))) {
                let (owner, (rtype, ttl, _)) = (name.clone(), set[0]);
                let data = set.iter().map(|(_, _, data)| (*data).into()).collect();
                changes.push(SetChange::Put { owner, rtype, ttl, data });
            }
        });
        let before = self.faults.remove(&key).unwrap_or_default();
        log(&self.apex, &faults.texts.difference(&before.texts).collect::<Vec<_>>());
        if faults != Faults::default() {
            self.faults.insert(key, faults);
        }
        Ok(changes)
    }

    /// Notes how the store spells a name, where that is not the normal form alone.
    fn note_spellings<'s>(&mut self, key: &Key, owners: impl Iterator<Item = &'s str>) {
        let Ok(name) = Name::from_wire(key) else { return };
        let normal = without_final_dot(&name);
        let others: BTreeSet<String> =
            owners.filter(|owner| *owner != normal).map(str::to_owned).collect();
        match others.is_empty() {
            true => _ = self.spellings.remove(key),
            false => _ = self.spellings.insert(key.clone(), others),
        }
    }

    /// Hands the records of a name that are served to `take`, in the order of types and data;
    /// returns what is wrong with the rest.
    fn with_lines<'s>(
        &mut self,
        key: &Key,
        sets: impl Iterator<Item = &'s RecordSet>,
        serial: u32,
        take: impl FnOnce(&[Line<'_>], &mut Faults),
    ) -> Faults {
        let (read, mut faults) = read_sets(sets);
        let mut lines = lines_of(&read);
        let is_apex = **key == *self.apex.as_wire();
        let soa;
        if is_apex {
            let servers = read.iter().filter(|set| set.rtype == Type::NS).flat_map(|it| &it.data);
            let server = servers.map(Vec::as_slice).next();
            if server.is_none() {
                let name = without_final_dot(&self.apex);
                let text = format!("{name} NS: there is none, localhost. stands for it");
                faults.texts.insert(text);
                lines.push((Type::NS, SOA_TTL_SECS, NO_SERVER));
            }
            self.makes_soa = !lines.iter().any(|(rtype, ..)| *rtype == Type::SOA);
            if self.makes_soa {
                soa = soa_data(server.unwrap_or(NO_SERVER), serial);
                lines.push((Type::SOA, SOA_TTL_SECS, &soa));
            }
            lines.sort_by_key(|(rtype, ..)| rtype.0);
        }
        let is_wildcard = key.starts_with(b"\x01*");
        let kind = OwnerKind { is_apex, is_wildcard };
        if key.first() != Some(&NO_NAME) {
            leave_out_large_sets(key, &mut lines, &mut faults);
            leave_out(key, kind, &mut lines, &mut faults);
        }
        take(&lines, &mut faults);
        faults
    }
}

/// Reads what is right of some sets, and notes what is wrong.
fn read_sets<'s>(sets: impl Iterator<Item = &'s RecordSet>) -> (Vec<ReadSet>, Faults) {
    let (mut read, mut faults) = (Vec::new(), Faults::default());
    for set in sets {
        match set.read() {
            Ok((set, errors)) => {
                faults.left_out += errors.len() as u64;
                faults.texts.extend(errors.iter().map(ToString::to_string));
                if !set.data.is_empty() {
                    read.push(set);
                }
            }
            Err(error) => {
                faults.left_out += 1;
                faults.texts.insert(error.to_string());
            }
        }
    }
    (read, faults)
}

/// The records of a name, each once, in the order of their types and data; those of a type have the
/// lowest time to live of all.
fn lines_of(sets: &[ReadSet]) -> Vec<Line<'_>> {
    let line = |set: &'_ ReadSet, data| (set.rtype, set.ttl_secs, data);
    let all = sets.iter().flat_map(|set| set.data.iter().map(|data| line(set, data.as_slice())));
    let mut lines: Vec<Line<'_>> = all.collect();
    lines.sort_unstable_by_key(|(rtype, ttl_secs, data)| (rtype.0, *data, *ttl_secs));
    lines.dedup_by(|a, b| (a.0, a.2) == (b.0, b.2));
    for set in lines.chunk_by_mut(|a, b| (a.0, covered(*a)) == (b.0, covered(*b))) {
        let least = set.iter().map(|line| line.1).min().unwrap_or_default();
        set.iter_mut().for_each(|line| line.1 = least);
    }
    lines
}

/// The type that a signature covers (rfc4034#3.1); nothing for records of other types.
fn covered((rtype, _, data): Line<'_>) -> Option<[u8; 2]> {
    (rtype == Type::RRSIG).then(|| data.first_chunk().copied()).flatten()
}

/// Leaves out sets that no message can hold (rfc1035#4.2.2): a zone with one could not be built.
fn leave_out_large_sets(key: &Key, lines: &mut Vec<Line<'_>>, faults: &mut Faults) {
    let octets = |set: &[Line<'_>]| set.iter().map(|line| 12 + line.2.len()).sum::<usize>();
    let sets = lines.chunk_by(|a, b| (a.0, covered(*a)) == (b.0, covered(*b)));
    let large = sets.filter(|set| octets(set) > SET_OCTETS_MAX);
    let large: Vec<(Type, Option<[u8; 2]>)> =
        large.map(|set| (set[0].0, covered(set[0]))).collect();
    for (rtype, of) in large {
        let before = lines.len();
        lines.retain(|line| (line.0, covered(*line)) != (rtype, of));
        faults.add(key, rtype, "the set is larger than a message", before - lines.len());
    }
}

/// Leaves out what breaks a rule that a zone holds each of its names to.
fn leave_out(key: &Key, kind: OwnerKind, lines: &mut Vec<Line<'_>>, faults: &mut Faults) {
    while let Some(rule) = first_broken(kind, lines) {
        let before = lines.len();
        let (rtype, why) = match rule {
            OwnerRule::BesideCname(_) => {
                lines.retain(|line| line.0 != Type::CNAME);
                (Type::CNAME, CNAME_BESIDE_OTHERS.to_owned())
            }
            OwnerRule::SoaNotAtApex => {
                lines.retain(|line| line.0 != Type::SOA);
                (Type::SOA, NOT_APEX.to_owned())
            }
            rule => {
                let rtype = rule.rtype();
                let mut served = None;
                lines.retain(|line| {
                    let is_served = line.0 != rtype || served.is_none();
                    if line.0 == rtype {
                        served.get_or_insert(line.2);
                    }
                    is_served
                });
                let rdata = served.unwrap_or_default();
                let first = Presentation { rtype, rdata };
                (rtype, format!("there can be only one, `{first}` is served"))
            }
        };
        faults.add(key, rtype, &why, before - lines.len());
        if lines.len() == before {
            return; // no rule that leaving out records mends
        }
    }
}

/// The first rule that these records break and that keeps them out of a zone.
fn first_broken(kind: OwnerKind, lines: &[Line<'_>]) -> Option<OwnerRule> {
    let sets =
        lines.chunk_by(|a, b| a.0 == b.0).map(|set| match SINGLE_TYPES.contains(&set[0].0) {
            true => (set[0].0, set.len()),
            false => (set[0].0, 1), // no rule asks for more
        });
    let mut broken: Option<OwnerRule> = None;
    owner_rules(kind, sets, |rule| {
        let is_misplaced = rule == OwnerRule::SoaNotAtApex;
        if is_misplaced || rule.is_binding() && broken.is_none() {
            broken = Some(rule);
        }
    });
    broken
}

/// The data of a SOA record that names a server (rfc1035#3.3.13).
fn soa_data(server: &[u8], serial: u32) -> Vec<u8> {
    let numbers = std::iter::once(serial).chain(SOA_NUMBERS).flat_map(u32::to_be_bytes);
    server.iter().chain(NOBODY).copied().chain(numbers).collect()
}

impl Faults {
    /// Notes why so many records of a name and type are left out.
    fn add(&mut self, key: &[u8], rtype: Type, why: &str, count: usize) {
        let owner = Name::from_wire(key).map(|name| without_final_dot(&name)).unwrap_or_default();
        self.texts.insert(format!("{owner} {rtype}: {why}"));
        self.left_out += count as u64;
    }
}

/// Logs what is wrong and was not before.
fn log(apex: &Name, new: &[&String]) {
    for fault in new.iter().take(LOGGED_MAX) {
        tracing::warn!(zone = %apex, fault, "a fault in the records of a store");
    }
    if new.len() > LOGGED_MAX {
        let more = new.len() - LOGGED_MAX;
        tracing::warn!(zone = %apex, more, "more faults in the records of a store");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonda_zone::print::print_record;
    use zonda_zone::{ChangeSet, HashSeed, Serial, SerialPolicy, Zone, build};

    /// An empty content of `example.org`.
    fn content() -> ZoneContent {
        ZoneContent::new(&"example.org".parse().unwrap())
    }

    /// Records as the text of a master file.
    fn text_of(records: &Records) -> String {
        let mut text = Vec::new();
        records.iter().for_each(|it| print_record(&it, &mut text).unwrap());
        String::from_utf8(text).unwrap()
    }

    /// The records of a zone with these sets, what is wrong with them, and how many are left out.
    fn made(sets: &[RecordSet]) -> (String, Vec<String>, u64) {
        let mut zone = content();
        let records = zone.read_all(sets.to_vec(), 1);
        let faults = zone.faults.values().flat_map(|faults| faults.texts.iter().cloned());
        let mut faults: Vec<_> = faults.collect();
        faults.sort();
        (text_of(&records), faults, zone.left_out())
    }

    #[test]
    fn a_store_without_records_is_a_zone_with_soa_and_ns() {
        let (text, faults, left_out) = made(&[]);
        assert_eq!(
            text,
            "example.org.\t3600\tIN\tNS\tlocalhost.\n\
             example.org.\t3600\tIN\tSOA\tlocalhost. nobody.invalid. 1 7200 900 1209600 60\n"
        );
        assert_eq!(left_out, 0);
        assert_eq!(faults, ["example.org NS: there is none, localhost. stands for it"]);
    }

    #[test]
    fn soa_and_ns_of_the_store_are_served_as_they_are() {
        let soa = "ns.example.net. hostmaster.example.net. 7 1 2 3 4";
        let (text, faults, left_out) = made(&[
            RecordSet::new("Example.org.", "NS", 60, ["ns.example.net"]),
            RecordSet::new("example.org", "SOA", 60, [soa]),
        ]);
        assert_eq!(
            text,
            format!(
                "example.org.\t60\tIN\tNS\tns.example.net.\nexample.org.\t60\tIN\tSOA\t{soa}\n"
            )
        );
        assert!(faults.is_empty() && left_out == 0, "{faults:?}");
    }

    #[test]
    fn what_cannot_stand_together_is_left_out_and_the_rest_is_served() {
        let (text, faults, left_out) = made(&[
            RecordSet::new("example.org", "NS", 60, ["ns.example.net"]),
            RecordSet::new("example.org", "CNAME", 60, ["other.example"]),
            RecordSet::new("a.example.org", "CNAME", 60, ["one.example", "two.example"]),
            RecordSet::new("b.example.org", "CNAME", 60, ["one.example"]),
            RecordSet::new("B.example.org", "A", 60, ["192.0.2.1", "192.0.2.999"]),
            RecordSet::new("c.example.org", "SOA", 60, [". . 1 2 3 4 5"]),
            RecordSet::new("d..example.org", "A", 60, ["192.0.2.1"]),
            RecordSet::new("elsewhere.example", "A", 60, ["192.0.2.1"]),
        ]);
        let mut lines: Vec<_> = text.lines().filter(|line| !line.contains("\tSOA\t")).collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            [
                "a.example.org.\t60\tIN\tCNAME\tone.example.",
                "b.example.org.\t60\tIN\tA\t192.0.2.1",
                "example.org.\t60\tIN\tNS\tns.example.net.",
            ]
        );
        assert_eq!(left_out, 6);
        let named: Vec<_> = faults.iter().map(|it| it.split(": ").next().unwrap()).collect();
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
    fn a_set_that_no_message_can_hold_is_left_out_and_the_rest_is_served() {
        let many: Vec<String> = (0..6000).map(|number| format!("text{number}")).collect();
        let sets = [
            RecordSet::new("a.example.org", "TXT", 60, many),
            RecordSet::new("a.example.org", "A", 60, ["192.0.2.1"]),
        ];
        let (text, faults, left_out) = made(&sets);
        assert!(text.contains("a.example.org.\t60\tIN\tA\t192.0.2.1") && !text.contains("TXT"));
        assert_eq!(left_out, 6000);
        assert!(faults.iter().any(|fault| fault.contains("larger than a message")), "{faults:?}");
    }

    #[test]
    fn what_is_no_name_is_a_fault_of_the_zone_that_it_ends_with_alone() {
        let zone = content();
        for (owner, expected) in [
            ("bad..Example.org.", true),
            ("1..user", false),
            ("bad..example.net", false),
            ("ä..rg", false),
        ] {
            assert_eq!(zone.concerns(owner), expected, "{owner}");
        }
    }

    #[test]
    fn spellings_of_one_owner_are_merged_with_the_lowest_ttl() {
        let (text, faults, _) = made(&[
            RecordSet::new("example.org", "NS", 60, ["ns.example.net"]),
            RecordSet::new("a.example.org", "A", 90, ["192.0.2.2", "192.0.2.1"]),
            RecordSet::new("A.Example.org.", "A", 60, ["192.0.2.1", "192.0.2.3"]),
            RecordSet::new("a.example.org", "TXT", 90, ["x"]),
        ]);
        let mut lines: Vec<_> = text.lines().filter(|line| line.starts_with("a.")).collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            [
                "a.example.org.\t60\tIN\tA\t192.0.2.1",
                "a.example.org.\t60\tIN\tA\t192.0.2.2",
                "a.example.org.\t60\tIN\tA\t192.0.2.3",
                "a.example.org.\t90\tIN\tTXT\t\"x\"",
            ]
        );
        assert!(faults.is_empty(), "{faults:?}");
    }

    /// The sets that a store has of a spelling.
    fn get(store: &[RecordSet], spelling: &str) -> Result<Vec<RecordSet>, StoreError> {
        Ok(store.iter().filter(|set| set.owner == spelling).cloned().collect())
    }

    /// The records of a zone as text, in its order.
    fn text_of_zone(zone: &Zone) -> Vec<String> {
        let mut lines: Vec<String> = zone.records().map(|record| record_text(&record)).collect();
        lines.sort_unstable();
        lines
    }

    /// A record as text.
    fn record_text(record: &zonda_zone::ZoneRecord<'_>) -> String {
        let owner = zonda_wire::name::Presentation(record.owner.as_wire());
        format!("{owner} {} {} {:?}", record.ttl, record.rtype, record.rdata)
    }

    #[test]
    fn changes_name_by_name_make_the_zone_that_a_load_of_all_makes() {
        let owners = ["example.org", "a.example.org", "A.example.org.", "b.a.example.org", "x..y"];
        let data = [
            ("A", "192.0.2.1"),
            ("A", "192.0.2.2"),
            ("A", "no address"),
            ("NS", "ns.example.net"),
            ("CNAME", "one.example"),
            ("CNAME", "two.example"),
            ("SOA", "ns.example.net. h.example.net. 7 1 2 3 4"),
            ("RRSIG", "A 8 2 60 20300101000000 20200101000000 1 example.org. AAAA"),
            ("RRSIG", "NS 8 2 60 20300101000000 20200101000000 1 example.org. AAAA"),
        ];
        let seed = HashSeed::random();
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as usize % below
        };
        for _ in 0..200 {
            let (mut store, mut zone_content) = (Vec::<RecordSet>::new(), content());
            let apex = zone_content.apex().clone();
            let records = zone_content.read_all(Vec::new(), 5);
            let mut zone = build(&apex, &records, seed).unwrap();
            for _ in 0..12 {
                let owner = owners[random(owners.len())];
                let (rtype, text) = data[random(data.len())];
                let is_same = |set: &RecordSet| set.owner == owner && set.rtype == rtype;
                let place = store.iter().position(is_same);
                match (place, random(3)) {
                    (Some(place), 0) => drop(store.remove(place)),
                    (Some(place), _) => store[place].data.push(text.into()),
                    (None, _) => store.push(RecordSet::new(owner, rtype, 60, [text])),
                }
                let sets =
                    zone_content.read_name(owner, zone.serial(), |it| get(&store, it)).unwrap();
                zone = zone.with(&ChangeSet { sets, serial: Serial::Keep }).unwrap().0;
                let mut anew = content();
                let records = anew.read_all(store.clone(), zone.serial());
                let whole = build(&apex, &records, seed).unwrap();
                assert_eq!(text_of_zone(&zone), text_of_zone(&whole), "{store:?}");
                assert_eq!(zone_content.left_out(), anew.left_out(), "{store:?}");
                assert_eq!(zone_content.spellings, anew.spellings, "{store:?}");
            }
        }
    }

    #[test]
    fn a_name_that_is_read_again_unchanged_changes_nothing() {
        let store = [RecordSet::new("a.example.org", "A", 60, ["192.0.2.1"])];
        let mut zone_content = content();
        let records = zone_content.read_all(store.to_vec(), 5);
        let zone = build(zone_content.apex(), &records, HashSeed::random()).unwrap();
        for owner in ["a.example.org", "example.org", "b.example.org", "elsewhere.example"] {
            let sets = zone_content.read_name(owner, 5, |it| get(&store, it)).unwrap();
            let serial = Serial::Bump(SerialPolicy::Increment);
            let (_, diff) = zone.with(&ChangeSet { sets, serial }).unwrap();
            assert!(diff.is_empty(), "{owner}: {diff:?}");
        }
    }
}
