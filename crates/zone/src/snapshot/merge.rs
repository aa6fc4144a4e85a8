//! Changes that a zone's file may lack, and the file that may have been changed as well: a
//! three-way merge, RRset by RRset.
//!
//! The common ancestor is known as far as the changes say it: by the records that they removed and
//! those that they added. A set of the file is
//! - as it was before the changes: it has all records that they removed and none that they added.
//!   The changes are made;
//! - as it is after them: it has all that they added and none that they removed. Nothing is made;
//! - anything else: the file and the changes contradict each other.
//!
//! The serial is left out, as both sides have one of their own.

use super::change::SetChange;
use super::diff::Diff;
use super::node::type_covered;
use super::record_set::{RecordSet, sets_of};
use super::{Rdatas, Zone};
use crate::lookup_name::LookupName;
use crate::order::{self, rank};
use crate::records::{Record, Records, TooManyRecords};
use std::collections::BTreeMap;
use zonda_wire::{Name, Type};

/// What several differences in a row come to, without what one of them did and another undid.
#[derive(Clone, Debug, Default)]
pub struct NetChange {
    /// The sets that differ, by owner in lower case, type and covered type.
    sets: BTreeMap<SetKey, SetDifference>,
}

/// A record: its owner, type, data and time to live.
type RecordKey<'r> = (&'r [u8], u16, &'r [u8], u32);

/// What tells sets apart: the owner, [`rank`] of the type, and the type that signatures cover.
type SetKey = (Box<[u8]>, u16, u16);

/// How often each record of a set, by its data and its time to live, was added: −1 if it was
/// removed.
type SetDifference = BTreeMap<(Box<[u8]>, u32), i32>;

/// What a zone's file lacks of some changes.
#[derive(Clone, Debug, Default)]
pub struct Merge {
    /// What has to change in the file's zone. A set in which the file contradicts the changes gets
    /// the records that they added, and keeps those of the file that they did not remove; an SOA
    /// record that contradicts them gives way.
    pub changes: Vec<SetChange>,
    /// The sets in which the file contradicts the changes: owners and types.
    pub conflicts: Vec<(Name, Type)>,
}

impl Diff {
    /// What several differences in a row come to, in canonical order.
    ///
    /// # Errors
    /// When its records take more than 4 GiB.
    pub fn of_all(diffs: &[&Self]) -> Result<Self, TooManyRecords> {
        let mut counts: BTreeMap<RecordKey<'_>, i32> = BTreeMap::new();
        for (records, count) in diffs.iter().flat_map(|it| [(&it.removed, -1), (&it.added, 1)]) {
            for Record { owner, rtype, ttl, rdata } in records.iter() {
                *counts.entry((owner, rtype.0, rdata, ttl)).or_default() += count;
            }
        }
        let records_of = |is_wanted: fn(i32) -> bool| {
            let mut records = Records::default();
            for ((owner, rtype, rdata, ttl), _) in counts.iter().filter(|(_, it)| is_wanted(**it)) {
                let (rtype, ttl) = (Type(*rtype), *ttl);
                records.push(Record { owner, rtype, ttl, rdata }, 0)?;
            }
            let mut sorted = Records::default();
            for index in order::canonical(&records) {
                sorted.push(records.get(index as usize), 0)?;
            }
            Ok(sorted)
        };
        Ok(Self {
            from: diffs.first().map_or(0, |first| first.from),
            to: diffs.last().map_or(0, |last| last.to),
            removed: records_of(|count| count < 0)?,
            added: records_of(|count| count > 0)?,
        })
    }
}

impl NetChange {
    /// Takes in the next difference.
    pub fn push(&mut self, diff: &Diff) {
        self.take_in(&diff.removed, -1);
        self.take_in(&diff.added, 1);
    }

    /// Whether the differences come to nothing but another serial.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// Counts records that were added or removed.
    fn take_in(&mut self, records: &Records, count: i32) {
        for Record { owner, rtype, ttl, rdata } in records.iter() {
            let covered = type_covered(rtype, rdata);
            let key = (owner.to_ascii_lowercase().into(), rank(rtype), covered.0);
            let set = self.sets.entry(key.clone()).or_default();
            let record = (without_serial(rtype, rdata), ttl);
            let times = set.entry(record.clone()).or_default();
            *times += count;
            if *times == 0 {
                set.remove(&record);
            }
            if set.is_empty() {
                self.sets.remove(&key);
            }
        }
    }
}

impl Zone {
    /// Finds what this zone, which was read from its file, lacks of some changes.
    #[must_use]
    pub fn merge(&self, net: &NetChange) -> Merge {
        let mut merge = Merge::default();
        for (key, difference) in &net.sets {
            let (owner, rank, covered) = key;
            let rtype = if *rank == 0 { Type::SOA } else { Type(*rank) };
            let Ok(name) = Name::from_wire(owner) else { continue }; // all were names of a zone
            let node = self.any_node(&LookupName::new(owner, self.seed));
            let present = sets_of(node).into_iter().find(|set| set.key() == (*rank, *covered));
            let (change, is_conflict) = merge_set(&name, rtype, *covered, present, difference);
            merge.changes.extend(change);
            if is_conflict {
                merge.conflicts.push((name, rtype));
            }
        }
        merge
    }
}

/// The change that a set needs, if it needs one, and whether it contradicts the difference.
fn merge_set(
    owner: &Name,
    rtype: Type,
    covered: u16,
    present: Option<RecordSet<'_>>,
    difference: &SetDifference,
) -> (Option<SetChange>, bool) {
    let present_ttl = present.as_ref().map(|set| set.ttl);
    let has = |record: &(Box<[u8]>, u32)| {
        present.as_ref().is_some_and(|set| {
            set.ttl == record.1
                && set.rdatas.iter().any(|rdata| *without_serial(rtype, rdata) == *record.0)
        })
    };
    // Whether all, and whether none, of the removed and of the added records are there.
    let mut sides = [(true, true); 2];
    for (record, times) in difference {
        let (all, none) = &mut sides[usize::from(*times > 0)];
        *all &= has(record);
        *none &= !has(record);
    }
    let [(all_removed, none_removed), (all_added, none_added)] = sides;
    if all_added && none_removed {
        return (None, false); // the file has it already
    }
    let is_before = all_removed && none_added;
    let added = difference.iter().filter(|(_, times)| **times > 0);
    let added_ttl = added.clone().next().map(|((_, ttl), _)| *ttl);
    let is_removed = |rdata: &[u8]| {
        let data = without_serial(rtype, rdata);
        difference.iter().any(|((it, _), times)| *times < 0 && *it == data)
    };
    let present = present.iter().flat_map(|set| &set.rdatas);
    let mut data: Rdatas =
        present.filter(|rdata| !is_removed(rdata)).map(|rdata| (**rdata).into()).collect();
    let keeps_some = !data.is_empty();
    if rtype == Type::SOA && added_ttl.is_some() {
        data.clear(); // an SOA record that contradicts the changes gives way as a whole
    }
    let is_new = |rdata: &[u8]| !data.iter().any(|it| **it == *rdata);
    let new: Vec<_> = added.map(|((rdata, _), _)| rdata).filter(|it| is_new(it)).cloned().collect();
    data.extend(new);
    let ttl = added_ttl.or(present_ttl).unwrap_or_default();
    let has_other_ttl = keeps_some && added_ttl.is_some_and(|ttl| Some(ttl) != present_ttl);
    let (owner, is_conflict) = (owner.clone(), !is_before || has_other_ttl);
    let change = match data.is_empty() {
        false => SetChange::Put { owner, rtype, ttl, data },
        true if rtype == Type::RRSIG => {
            SetChange::RemoveSignatures { owner, covered: Type(covered) }
        }
        true => SetChange::Remove { owner, rtype },
    };
    (Some(change), is_conflict)
}

/// The data of a record; those of an SOA record with 0 in the place of the serial.
fn without_serial(rtype: Type, rdata: &[u8]) -> Box<[u8]> {
    let mut data: Box<[u8]> = rdata.into();
    let at = data.len().saturating_sub(20);
    if rtype == Type::SOA
        && let Some(serial) = data[at..].first_chunk_mut::<4>()
    {
        *serial = [0; 4];
    }
    data
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::snapshot::change::{ChangeSet, Serial, SerialPolicy};
    use crate::{HashSeed, build, file};
    use std::path::Path;

    const FILE: &str = "$TTL 60\n@ SOA ns h 7 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n\
                        www A 192.0.2.2\nwww A 192.0.2.3\n";

    fn zone(text: &str) -> Zone {
        let apex: Name = "a.test".parse().unwrap();
        let (records, _) =
            file::read_text(text.as_bytes(), Path::new("-"), &apex, &file::Options::default());
        build(&apex, &records, HashSeed::random()).unwrap()
    }

    /// The change of a set of addresses, 192.0.2.N each.
    fn addresses(owner: &str, last: &[u8]) -> SetChange {
        let (owner, rtype): (Name, _) = (owner.parse().unwrap(), Type::A);
        match last {
            [] => SetChange::Remove { owner, rtype },
            last => {
                let data = last.iter().map(|last| [192, 0, 2, *last].into()).collect();
                SetChange::Put { owner, rtype, ttl: 60, data }
            }
        }
    }

    /// What changes in a row come to.
    fn net(changes: &[SetChange]) -> NetChange {
        let (mut zone, mut net) = (zone(FILE), NetChange::default());
        for change in changes {
            let serial = Serial::Bump(SerialPolicy::Increment);
            let (next, diff) =
                zone.with(&ChangeSet { sets: vec![change.clone()], serial }).unwrap();
            net.push(&diff);
            zone = next;
        }
        net
    }

    /// The zone of a file with what it lacks of some changes, as text but for the SOA record, and
    /// the conflicts.
    fn merged(text: &str, changes: &[SetChange]) -> (String, String) {
        let zone = zone(text);
        let merge = zone.merge(&net(changes));
        let set = ChangeSet { sets: merge.changes, serial: Serial::Keep };
        let (zone, _) = zone.with(&set).unwrap();
        let lines = zone.records().filter(|record| record.rtype == Type::A).map(|record| {
            let owner = Name::from_wire(record.owner.as_wire()).unwrap();
            format!("{owner} {} {}\n", record.ttl, record.rdata[3])
        });
        let conflicts = merge.conflicts.iter().map(|(owner, rtype)| format!("{owner} {rtype}\n"));
        (lines.collect(), conflicts.collect())
    }

    #[test]
    fn a_file_that_was_not_touched_gets_all_changes() {
        let changes = [
            addresses("www.a.test", &[3, 4]),
            addresses("new.a.test", &[5]),
            addresses("www.a.test", &[6]),
            addresses("ns.a.test", &[]),
        ];
        assert_eq!(
            merged(FILE, &changes),
            ("new.a.test. 60 5\nwww.a.test. 60 6\n".to_owned(), String::new())
        );
    }

    #[test]
    fn a_file_that_has_the_changes_stays() {
        let text = FILE.replace("192.0.2.2", "192.0.2.9").replace("h 7", "h 8");
        let merge = zone(&text).merge(&net(&[addresses("www.a.test", &[3, 9])]));
        assert!(merge.changes.is_empty() && merge.conflicts.is_empty(), "{merge:?}");
    }

    #[test]
    fn several_differences_come_to_that_of_the_first_and_the_last_version() {
        let (first, mut zone, mut diffs) = (zone(FILE), zone(FILE), Vec::new());
        for change in [
            addresses("www.a.test", &[3, 4]),
            addresses("new.a.test", &[5]),
            addresses("www.a.test", &[2, 3]),
            addresses("ns.a.test", &[7]),
        ] {
            let serial = Serial::Bump(SerialPolicy::Increment);
            let (next, diff) = zone.with(&ChangeSet { sets: vec![change], serial }).unwrap();
            diffs.push(diff);
            zone = next;
        }
        let diffs: Vec<&Diff> = diffs.iter().collect();
        assert_eq!(Diff::of_all(&diffs).unwrap(), first.diff(&zone).unwrap());
    }

    #[test]
    fn changes_that_come_to_nothing_are_nothing() {
        let there = addresses("new.a.test", &[5]);
        let back = addresses("new.a.test", &[]);
        assert!(net(&[there, back]).is_empty());
    }

    #[test]
    fn changes_of_the_file_and_of_others_are_brought_together() {
        let text = FILE.replace("ns A 192.0.2.1", "ns A 192.0.2.7\nmore A 192.0.2.8");
        let (text, conflicts) = merged(&text, &[addresses("www.a.test", &[3])]);
        assert_eq!(text, "more.a.test. 60 8\nns.a.test. 60 7\nwww.a.test. 60 3\n");
        assert_eq!(conflicts, "");
    }

    #[test]
    fn a_set_in_which_the_file_contradicts_the_changes_has_the_records_of_both() {
        let text = FILE.replace("ns A 192.0.2.1", "ns A 192.0.2.7");
        let (text, conflicts) = merged(&text, &[addresses("ns.a.test", &[9])]);
        assert_eq!(conflicts, "ns.a.test. A\n");
        assert!(text.contains("ns.a.test. 60 7\nns.a.test. 60 9\n"), "{text}");
    }

    #[test]
    fn another_time_to_live_in_the_file_contradicts_another_record() {
        let text = FILE.replace("www A", "www 99 A");
        let (_, conflicts) = merged(&text, &[addresses("www.a.test", &[2, 3, 4])]);
        assert_eq!(conflicts, "www.a.test. A\n");
    }

    #[test]
    fn the_fields_of_the_soa_record_are_merged_without_its_serial() {
        let soa = |text: &str| {
            let zone = zone(text);
            let soa = zone.records().next().unwrap();
            SetChange::Put {
                owner: "a.test".parse().unwrap(),
                rtype: Type::SOA,
                ttl: soa.ttl,
                data: vec![soa.rdata.into()],
            }
        };
        let change = soa(&FILE.replace("h 7 2 3", "h 8 22 3"));
        let file = zone(&FILE.replace("h 7 ", "h 40 "));
        let merge = file.merge(&net(std::slice::from_ref(&change)));
        assert!(merge.conflicts.is_empty(), "{:?}", merge.conflicts);
        assert_eq!(merge.changes.len(), 1);
        let file = zone(&FILE.replace("h 7 2 3", "h 40 2 33"));
        let merge = file.merge(&net(&[change]));
        assert_eq!(merge.conflicts.len(), 1);
    }
}
