//! Appending, reading back, bounds, compaction; truncation and damage at every octet.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Folder, append, check_entries, name, open, payload};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use zonda_journal::{Entry, Error, HistoryLimit, Journal, PAYLOAD_OCTETS_MAX, Serials, Torn};

#[test]
fn committed_entries_are_read_back_after_the_journal_was_closed() {
    let folder = Folder::new();
    let (mut journal, opened) = open(&folder.journal()).unwrap();
    assert_eq!((opened.sizes.entries, opened.torn), (0, None));
    let zones = [name("example.com."), name("EXAMPLE.net."), name(".")];
    for serial in 1..=20 {
        zones.iter().for_each(|zone| append(&mut journal, zone, serial).unwrap());
        assert_eq!(journal.commit().unwrap(), 3);
        assert_eq!(journal.commit().unwrap(), 0, "nothing is left to be committed");
    }
    let sizes = journal.sizes();
    assert_eq!((sizes.zones, sizes.entries), (3, 60));
    drop(journal);
    assert_eq!(fs::metadata(folder.journal()).unwrap().len(), sizes.file_octets);
    assert_eq!(fs::metadata(folder.journal()).unwrap().permissions().mode() & 0o777, 0o600);
    let (journal, opened) = open(&folder.journal()).unwrap();
    assert_eq!((opened.sizes, opened.torn), (sizes, None));
    for zone in &zones {
        assert_eq!(check_entries(&journal, zone), Some((0, 20)));
        assert_eq!(check_entries(&journal, &zone.to_lowercase()), Some((0, 20)));
    }
    let mut found: Vec<_> = journal.zones().map(|(zone, _)| zone.to_string()).collect();
    found.sort();
    assert_eq!(found, [".", "example.com.", "example.net."]);
}

#[test]
fn a_history_begins_with_the_serial_that_is_asked_for() {
    let folder = Folder::new();
    let (mut journal, _) = open(&folder.journal()).unwrap();
    let zone = name("example.com.");
    for serial in 1..=5 {
        append(&mut journal, &zone, serial).unwrap();
    }
    assert!(journal.history(&zone, 3).is_none(), "it is not committed yet");
    journal.commit().unwrap();
    let mut history = journal.history(&zone, 3).unwrap();
    assert_eq!(history.len(), 2);
    assert_eq!(history.next().unwrap().unwrap().payload, payload(&zone, 4));
    assert_eq!(history.next().unwrap().unwrap().payload, payload(&zone, 5));
    assert!(history.next().is_none() && history.is_empty());
    assert!(journal.history(&zone, 5).unwrap().is_empty());
    assert!(journal.history(&zone, 6).is_none());
    assert!(journal.history(&name("example.net."), 1).is_none());
}

#[test]
fn an_entry_that_does_not_continue_its_zone_is_refused() {
    let folder = Folder::new();
    let (mut journal, _) = open(&folder.journal()).unwrap();
    let zone = name("example.com.");
    append(&mut journal, &zone, 8).unwrap(); // any serial may be the first
    let error = append(&mut journal, &zone, 10).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the journal's last change of zone example.com. ends with serial 8, and the new one begins \
         with 9"
    );
    journal.commit().unwrap();
    assert!(matches!(append(&mut journal, &zone, 8), Err(Error::Gap { last: 8, from: 7, .. })));
    append(&mut journal, &zone, 9).unwrap();
    journal.commit().unwrap();
    assert_eq!(journal.serials(&zone), Some(Serials { first: 7, last: 9 }));
}

#[test]
fn a_zone_that_is_forgotten_begins_anew() {
    let folder = Folder::new();
    let (mut journal, _) = open(&folder.journal()).unwrap();
    let [zone, other] = ["example.com.", "example.net."].map(name);
    for serial in 1..=3 {
        append(&mut journal, &zone, serial).unwrap();
        append(&mut journal, &other, serial).unwrap();
    }
    journal.commit().unwrap();
    journal.forget(&zone).unwrap();
    append(&mut journal, &zone, 100).unwrap();
    journal.commit().unwrap();
    for _ in 0..2 {
        assert_eq!(check_entries(&journal, &zone), Some((99, 100)));
        assert_eq!(check_entries(&journal, &other), Some((0, 3)));
        drop(journal);
        journal = open(&folder.journal()).unwrap().0;
    }
    journal.forget(&zone).unwrap();
    journal.commit().unwrap();
    journal.compact().unwrap();
    drop(journal);
    let (journal, _) = open(&folder.journal()).unwrap();
    assert_eq!(journal.serials(&zone), None);
    assert_eq!(check_entries(&journal, &other), Some((0, 3)));
}

#[test]
fn a_zone_whose_history_was_dropped_goes_on_where_its_last_entry_ends() {
    let folder = Folder::new();
    let bound = HistoryLimit { versions: 0, octets: 0 };
    let (mut journal, _) = Journal::open(&folder.journal(), bound).unwrap();
    let zone = name("example.com.");
    for serial in 1..=3 {
        append(&mut journal, &zone, serial).unwrap();
    }
    journal.commit().unwrap();
    assert!(journal.release(&zone, 3));
    assert_eq!((journal.serials(&zone), journal.sizes().zones), (None, 0));
    // The file still has the entries: one that does not continue them could not be read back.
    assert!(matches!(append(&mut journal, &zone, 9), Err(Error::Gap { last: 3, from: 8, .. })));
    append(&mut journal, &zone, 4).unwrap();
    journal.commit().unwrap();
    assert!(journal.release(&zone, 4));
    journal.forget(&zone).unwrap();
    append(&mut journal, &zone, 9).unwrap();
    journal.commit().unwrap();
    drop(journal);
    let (mut journal, _) = Journal::open(&folder.journal(), bound).unwrap();
    assert_eq!(check_entries(&journal, &zone), Some((8, 9)));
    assert!(journal.release(&zone, 9));
    journal.compact().unwrap();
    append(&mut journal, &zone, 20).unwrap(); // nothing is left that it must continue
    journal.commit().unwrap();
    drop(journal);
    let (journal, _) = Journal::open(&folder.journal(), bound).unwrap();
    assert_eq!(check_entries(&journal, &zone), Some((19, 20)));
}

#[test]
fn a_payload_and_a_group_have_a_limit() {
    let folder = Folder::new();
    let (mut journal, _) = open(&folder.journal()).unwrap();
    let zone = name("example.com.");
    let long = vec![7; PAYLOAD_OCTETS_MAX + 1];
    let error = journal.append(Entry { zone: &zone, from: 0, to: 1, payload: &long }).unwrap_err();
    assert!(matches!(error, Error::TooLong { .. }), "{error}");
    let long = &long[1..];
    journal.append(Entry { zone: &zone, from: 0, to: 1, payload: long }).unwrap();
    assert!(matches!(append(&mut journal, &zone, 2), Err(Error::GroupFull)));
    journal.commit().unwrap();
    append(&mut journal, &zone, 2).unwrap();
    journal.commit().unwrap();
    drop(journal);
    let (journal, _) = open(&folder.journal()).unwrap();
    assert_eq!(journal.history(&zone, 0).unwrap().next().unwrap().unwrap().payload, long);
    assert_eq!(journal.history(&zone, 0).unwrap().octets(), journal.sizes().octets);
}

#[test]
fn compaction_keeps_what_is_needed_and_a_history_that_is_being_read() {
    let folder = Folder::new();
    let bound = HistoryLimit { versions: 10, octets: 1 << 20 };
    let (mut journal, _) = Journal::open(&folder.journal(), bound).unwrap();
    let zones = [name("a."), name("b.")];
    for serial in 1..=3000 {
        zones.iter().for_each(|zone| append(&mut journal, zone, serial).unwrap());
    }
    journal.commit().unwrap();
    assert!(!journal.is_compaction_due(), "no file of a zone holds any of it yet");
    assert!(journal.release(&zones[0], 3000) && journal.release(&zones[1], 2900));
    assert!(journal.is_compaction_due());
    let mut history = journal.history(&zones[1], 2990).unwrap();
    let before = journal.sizes();
    append(&mut journal, &zones[0], 3001).unwrap();
    journal.compact().unwrap();
    let after = journal.sizes();
    assert!(!journal.is_compaction_due() && after.file_octets < before.file_octets / 10);
    append(&mut journal, &zones[0], 3002).unwrap();
    journal.commit().unwrap();
    for _ in 0..2 {
        // The bound holds for what is released: 2 of the first zone's 12 entries are not.
        let (first, last) = check_entries(&journal, &zones[0]).unwrap();
        assert!(first <= 2992 && last == 3002, "{first} {last}");
        assert_eq!(check_entries(&journal, &zones[1]), Some((2900, 3000)));
        drop(journal);
        journal = Journal::open(&folder.journal(), bound).unwrap().0;
    }
    assert!(history.by_ref().all(|change| change.is_ok()), "the old file is read to its end");
    assert!(!folder.0.join("journal.new").exists());
    fs::write(folder.0.join("journal.new"), "left by a killed process").unwrap();
    drop(journal);
    Journal::open(&folder.journal(), bound).unwrap();
    assert!(!folder.0.join("journal.new").exists());
}

/// The octets of a journal with three groups, and where each record ends.
fn small() -> (Vec<u8>, Vec<u64>) {
    let folder = Folder::new();
    let (mut journal, opened) = open(&folder.journal()).unwrap();
    let mut ends = vec![opened.sizes.file_octets];
    let zones = [name("a."), name("b.")];
    for serial in 1..=3 {
        for (zone, len) in zones.iter().zip([9, 30]) {
            let payload = vec![serial as u8; len];
            journal
                .append(Entry { zone, from: serial - 1, to: serial, payload: &payload })
                .unwrap();
            ends.push(ends[ends.len() - 1] + 38 + 3 + len as u64);
        }
        journal.commit().unwrap();
        ends.push(ends[ends.len() - 1] + 38);
    }
    assert_eq!(ends[ends.len() - 1], journal.sizes().file_octets);
    drop(journal);
    (fs::read(folder.journal()).unwrap(), ends)
}

#[test]
fn a_journal_truncated_at_any_octet_keeps_all_whole_entries_and_reports_the_rest() {
    let (octets, ends) = small();
    let folder = Folder::new();
    for len in 0..=octets.len() {
        fs::write(folder.journal(), &octets[..len]).unwrap();
        let opened = open(&folder.journal());
        if len < 24 {
            let text = opened.unwrap_err().to_string();
            assert!(text.contains("journal: damaged at octet 0: the head of the file"), "{text}");
            assert_eq!(fs::read(folder.journal()).unwrap(), octets[..len], "it is unchanged");
            continue;
        }
        let (mut journal, opened) = opened.unwrap();
        let whole = ends.iter().copied().filter(|end| *end <= len as u64).max().unwrap();
        let rest = &octets[whole as usize..len];
        let rest = rest.iter().rposition(|octet| *octet != 0).map_or(0, |last| last as u64 + 1);
        let torn = (rest > 0).then_some(Torn { offset: whole, octets: rest });
        assert_eq!(opened.torn, torn, "truncated at {len}");
        let records = ends.iter().position(|end| *end == whole).unwrap();
        assert_eq!(opened.sizes.entries, (records - records / 3) as u64, "truncated at {len}");
        // It goes on from there, and is whole then.
        let zone = name("a.");
        let last = journal.serials(&zone).map_or(0, |serials| serials.last);
        journal.append(Entry { zone: &zone, from: last, to: last + 1, payload: b"x" }).unwrap();
        journal.commit().unwrap();
        drop(journal);
        let (journal, opened) = open(&folder.journal()).unwrap();
        assert_eq!(opened.torn, None);
        assert_eq!(journal.serials(&zone).unwrap().last, last + 1);
    }
}

#[test]
fn zeros_behind_the_last_group_are_no_torn_end_and_hide_none() {
    let folder = Folder::new();
    let zone = name("example.com.");
    let (mut journal, _) = open(&folder.journal()).unwrap();
    append(&mut journal, &zone, 1).unwrap();
    journal.commit().unwrap();
    let (left, whole) = (fs::read(folder.journal()).unwrap(), journal.sizes().file_octets);
    drop(journal);
    assert!(left.len() as u64 > whole, "the second group needs no longer file");
    assert_eq!(fs::metadata(folder.journal()).unwrap().len(), whole, "they are cut off at the end");
    // As a process leaves the file that is killed.
    fs::write(folder.journal(), &left).unwrap();
    let (journal, opened) = open(&folder.journal()).unwrap();
    assert_eq!((opened.torn, opened.sizes.file_octets), (None, whole));
    drop(journal);
    let mut torn = left;
    torn[whole as usize..][..5].copy_from_slice(b"zonda");
    fs::write(folder.journal(), &torn).unwrap();
    let (mut journal, opened) = open(&folder.journal()).unwrap();
    assert_eq!(opened.torn, Some(Torn { offset: whole, octets: 5 }));
    append(&mut journal, &zone, 2).unwrap();
    journal.commit().unwrap();
    drop(journal);
    let (journal, _) = open(&folder.journal()).unwrap();
    assert_eq!(check_entries(&journal, &zone), Some((0, 2)));
}

#[test]
fn damage_of_any_octet_is_an_error_with_file_offset_and_remedy() {
    let (octets, ends) = small();
    let folder = Folder::new();
    let last_end = ends[ends.len() - 2];
    for at in 0..octets.len() {
        let mut damaged = octets.clone();
        damaged[at] ^= 0x10;
        fs::write(folder.journal(), &damaged).unwrap();
        let opened = open(&folder.journal());
        if at as u64 >= last_end {
            // The end record itself holds no change.
            let (_, opened) = opened.unwrap();
            assert_eq!(opened.torn, Some(Torn { offset: last_end, octets: 38 }), "octet {at}");
            assert_eq!(opened.sizes.entries, 6);
            continue;
        }
        let text = opened.unwrap_err().to_string();
        let path = folder.journal();
        let path = path.display();
        if at < 8 {
            assert!(text.starts_with(&format!("{path}: not a journal of this version")), "{text}");
            continue;
        }
        let offset = ends.iter().copied().filter(|end| *end <= at as u64).max().unwrap_or(0);
        assert!(
            text.starts_with(&format!("journal {path}: damaged at octet {offset}: ")),
            "octet {at}: {text}"
        );
        assert_eq!(fs::read(folder.journal()).unwrap(), damaged, "nothing is changed");
        if offset > 0 {
            assert!(text.ends_with(&format!("run `truncate -s {offset} {path}`")), "{text}");
            fs::write(folder.journal(), &damaged[..offset as usize]).unwrap();
            let (_, opened) = open(&folder.journal()).unwrap();
            assert_eq!(opened.torn, None, "the remedy works");
        }
    }
}

#[test]
fn sectors_that_a_loss_of_power_left_unwritten_cost_the_last_commit_only() {
    const SECTOR: usize = 512;
    let folder = Folder::new();
    let (mut journal, _) = open(&folder.journal()).unwrap();
    let zone = name("example.com.");
    for serial in 1..=20 {
        append(&mut journal, &zone, serial).unwrap();
    }
    journal.commit().unwrap();
    let committed = journal.sizes().file_octets as usize;
    for serial in 21..=40 {
        append(&mut journal, &zone, serial).unwrap();
    }
    journal.commit().unwrap();
    drop(journal);
    let octets = fs::read(folder.journal()).unwrap();
    let whole = octets.len() - 38; // the end record is only written after `fdatasync`
    for start in (committed.next_multiple_of(SECTOR)..whole).step_by(SECTOR) {
        for sectors in [1, 3, 100] {
            let mut unwritten = octets[..whole].to_vec();
            unwritten[start..whole.min(start + sectors * SECTOR)].fill(0);
            fs::write(folder.journal(), unwritten).unwrap();
            let (journal, opened) = open(&folder.journal()).unwrap();
            let (first, last) = check_entries(&journal, &zone).unwrap();
            assert!(opened.torn.is_some_and(|torn| torn.offset >= committed as u64));
            assert!(first == 0 && (20..40).contains(&last), "{first} {last}");
        }
    }
}

#[test]
fn a_loss_of_power_that_takes_an_end_record_as_well_costs_the_last_commit_only() {
    const SECTOR: usize = 512;
    let folder = Folder::new();
    let (mut journal, _) = open(&folder.journal()).unwrap();
    let zone = name("example.com.");
    (1..=20).for_each(|serial| append(&mut journal, &zone, serial).unwrap());
    journal.commit().unwrap();
    let committed = journal.sizes().file_octets as usize;
    (21..=40).for_each(|serial| append(&mut journal, &zone, serial).unwrap());
    journal.commit().unwrap();
    drop(journal);
    let octets = fs::read(folder.journal()).unwrap();
    // The end record of the first group is on the disk with the second group, or not: no
    // `fdatasync` lies between them.
    let (end, mut unwritten) = (committed - 38, octets[..octets.len() - 38].to_vec());
    unwritten[end..committed.next_multiple_of(SECTOR)].fill(0);
    fs::write(folder.journal(), &unwritten).unwrap();
    let (journal, opened) = open(&folder.journal()).unwrap();
    assert!(opened.torn.is_some_and(|torn| torn.offset == end as u64), "{:?}", opened.torn);
    assert_eq!(check_entries(&journal, &zone), Some((0, 20)));
    drop(journal);
    // With the end record of the second group, that was committed.
    let mut damaged = octets;
    damaged[end..committed.next_multiple_of(SECTOR)].fill(0);
    fs::write(folder.journal(), &damaged).unwrap();
    let error = open(&folder.journal()).unwrap_err();
    assert!(matches!(error, Error::Damaged { offset, .. } if offset == end as u64), "{error}");
}

#[test]
fn damage_while_the_journal_is_in_use_is_an_error_of_the_history() {
    let folder = Folder::new();
    let (mut journal, _) = open(&folder.journal()).unwrap();
    let zone = name("example.com.");
    for serial in 1..=3 {
        append(&mut journal, &zone, serial).unwrap();
        journal.commit().unwrap();
    }
    let mut octets = fs::read(folder.journal()).unwrap();
    octets[24 + 30 + 13] ^= 1; // in the first payload
    fs::write(folder.journal(), octets).unwrap();
    let mut history = journal.history(&zone, 0).unwrap();
    let text = history.next().unwrap().unwrap_err().to_string();
    assert!(text.contains("damaged at octet 24: a record that was whole has changed"), "{text}");
    assert!(history.next().unwrap().is_ok());
    assert!(matches!(journal.compact(), Err(Error::Damaged { offset: 24, .. })));
    assert!(!journal.has_failed() && append(&mut journal, &zone, 4).is_ok());
    journal.commit().unwrap();
}

#[test]
fn a_journal_that_is_open_is_not_opened_twice() {
    let folder = Folder::new();
    let (mut journal, _) = open(&folder.journal()).unwrap();
    let zone = name("example.com.");
    append(&mut journal, &zone, 1).unwrap();
    let text = open(&folder.journal()).unwrap_err().to_string();
    assert!(text.contains("journal: in use by another process; stop that one"), "{text}");
    journal.compact().unwrap();
    assert!(matches!(open(&folder.journal()), Err(Error::Locked(_))), "a new file, the same lock");
    journal.commit().unwrap();
    let history = journal.history(&zone, 0).unwrap();
    drop(journal);
    let (journal, _) = open(&folder.journal()).unwrap();
    assert_eq!(check_entries(&journal, &zone), Some((0, 1)));
    assert_eq!(history.count(), 1, "a history does not hold the lock");
}

#[test]
fn nothing_is_committed_to_a_journal_whose_file_was_removed() {
    let folder = Folder::new();
    let (mut journal, _) = open(&folder.journal()).unwrap();
    let zone = name("example.com.");
    append(&mut journal, &zone, 1).unwrap();
    journal.commit().unwrap();
    fs::remove_file(folder.journal()).unwrap();
    for _ in 0..2 {
        append(&mut journal, &zone, 2).unwrap();
        let error = journal.commit().unwrap_err();
        assert!(matches!(&error, Error::Removed(path) if *path == folder.journal()), "{error}");
    }
    assert_eq!(check_entries(&journal, &zone), Some((0, 1)), "what it had can be read");
}

#[test]
fn changes_that_the_zone_file_lacks_are_counted() {
    let folder = Folder::new();
    let (mut journal, _) = open(&folder.journal()).unwrap();
    let zone = name("example.com.");
    assert_eq!(journal.unreleased_count(&zone), 0);
    (1..=3).for_each(|serial| append(&mut journal, &zone, serial).unwrap());
    assert_eq!(journal.unreleased_count(&zone), 0, "nothing is committed");
    journal.commit().unwrap();
    assert_eq!(journal.unreleased_count(&zone), 3);
    assert!(journal.release(&zone, 2));
    assert_eq!(journal.unreleased_count(&zone), 1);
}

#[test]
fn a_path_that_is_no_journal_is_refused() {
    let folder = Folder::new();
    fs::write(folder.journal(), "$ORIGIN example.com.\n").unwrap();
    let text = open(&folder.journal()).unwrap_err().to_string();
    assert!(text.contains("not a journal of this version; move the file away"), "{text}");
    let directory = folder.0.join("directory");
    fs::create_dir(&directory).unwrap();
    let text = open(&directory).unwrap_err().to_string();
    assert!(text.contains("not a journal"), "{text}");
    let text = open(&folder.0.join("missing/journal")).unwrap_err().to_string();
    assert!(text.contains("missing/journal.lock: it cannot be made: No such file"), "{text}");
}

#[test]
fn what_the_file_of_a_zone_holds_is_known_after_a_restart_and_after_a_compaction() {
    let folder = Folder::new();
    let zone = name("example.com.");
    let bound = HistoryLimit { versions: 100, octets: 1 << 20 };
    let unreleased =
        |journal: &Journal| journal.unreleased(&zone).map(|(from, history)| (from, history.len()));
    let (mut journal, _) = Journal::open(&folder.journal(), bound).unwrap();
    for serial in 1..=9 {
        append(&mut journal, &zone, serial).unwrap();
    }
    journal.commit().unwrap();
    assert_eq!(unreleased(&journal), Some((0, 9)));
    assert_eq!(journal.sizes().unreleased_zones, 1);
    assert!(journal.release(&zone, 6));
    assert_eq!(unreleased(&journal), Some((6, 3)));
    journal.commit().unwrap();
    drop(journal);
    let (mut journal, opened) = Journal::open(&folder.journal(), bound).unwrap();
    assert_eq!((unreleased(&journal), opened.sizes.entries), (Some((6, 3)), 9));
    journal.compact().unwrap();
    assert_eq!(unreleased(&journal), Some((6, 3)));
    append(&mut journal, &zone, 10).unwrap();
    journal.commit().unwrap();
    assert!(journal.release(&zone, 10));
    assert_eq!((unreleased(&journal), journal.sizes().unreleased_zones), (None, 0));
    drop(journal); // before the commit: the release is not on the disk
    let (mut journal, _) = Journal::open(&folder.journal(), bound).unwrap();
    assert_eq!(unreleased(&journal), Some((6, 4)));
    assert!(journal.release(&zone, 10));
    journal.compact().unwrap();
    drop(journal);
    let (journal, _) = Journal::open(&folder.journal(), bound).unwrap();
    assert_eq!(unreleased(&journal), None);
    assert_eq!(check_entries(&journal, &zone), Some((0, 10)));
}

#[test]
fn the_newest_change_of_a_zone_is_read_alone_also_where_the_file_of_the_zone_has_it() {
    let folder = Folder::new();
    let zone = name("example.com.");
    let (mut journal, _) = open(&folder.journal()).unwrap();
    assert!(journal.newest(&zone).is_none());
    for serial in 1..=3 {
        append(&mut journal, &zone, serial).unwrap();
    }
    assert!(journal.newest(&zone).is_none(), "nothing is committed");
    journal.commit().unwrap();
    assert!(journal.release(&zone, 3));
    let changes: Vec<_> = journal.newest(&zone).unwrap().map(|it| it.unwrap()).collect();
    assert_eq!(changes.iter().map(|it| (it.from, it.to)).collect::<Vec<_>>(), [(2, 3)]);
    journal.forget(&zone).unwrap();
    journal.commit().unwrap();
    assert!(journal.newest(&zone).is_none());
}
