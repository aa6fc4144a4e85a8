//! A process that writes a journal is killed at any moment, or its disk is full: what it
//! acknowledged is there.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Folder, append, check_entries, name};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use zonda_journal::{Error, HistoryLimit, Journal, Recovery};

/// Names the journal of a writer: this program, started anew.
const JOURNAL: &str = "ZONDA_TEST_JOURNAL";
/// Rounds of all lanes together, each of which ends with a kill.
const KILLS: u32 = 1000;
/// Writers at the same time, each with a journal of its own.
const LANES: u32 = 4;
/// Rounds after which a lane begins a new journal.
const ROUNDS_OF_A_JOURNAL: u32 = 50;
/// Entries of a zone that a compacting writer keeps.
const VERSIONS: usize = 40;
/// Zones that a writer changes.
const ZONES: [&str; 3] = ["example.com.", "example.net.", "."];

fn bound() -> HistoryLimit {
    HistoryLimit { versions: VERSIONS, octets: u64::MAX }
}

/// Opens a journal that no process writes. Another lane may be starting its writer, which has this
/// program's descriptors, and so its locks, until it runs its own.
fn open_unlocked(path: &Path) -> Result<(Journal, Recovery), Error> {
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        match Journal::open(path, bound()) {
            Err(Error::Locked(_)) if Instant::now() < until => {
                thread::sleep(Duration::from_millis(1));
            }
            result => return result,
        }
    }
}

/// Appends groups of entries without end and writes what is acknowledged to standard output: a line
/// with the last serial of each zone.
fn write_until_killed(path: &Path, compacts: bool) -> Result<(), Error> {
    let (mut journal, _) = open_unlocked(path)?;
    let zones = ZONES.map(name);
    let mut last = zones.each_ref().map(|zone| journal.serials(zone).map_or(0, |it| it.last));
    println!("\nopened"); // behind what the test harness has begun to write
    for group in 0.. {
        for (zone, last) in zones.iter().zip(&mut last) {
            // A kill can cut the write of a group of some size only.
            let more = if group % 16 == 15 { 100 } else { (group + *last) % 5 };
            for _ in 0..=more {
                *last += 1;
                append(&mut journal, zone, *last)?;
            }
        }
        journal.commit()?;
        let [a, b, c] = last;
        println!("acknowledged {a} {b} {c}");
        let _ = io::stdout().flush(); // before anything else, as a reply would be sent
        if compacts {
            zones.iter().zip(last).for_each(|(zone, last)| assert!(journal.release(zone, last)));
            if group % 4 == 3 {
                journal.compact()?;
            }
        }
    }
    Ok(())
}

/// Not a test: the process that the tests of this file kill.
#[test]
fn writer() {
    let Some(path) = std::env::var_os(JOURNAL).map(PathBuf::from) else { return };
    let compacts = path.extension().is_some();
    let error = write_until_killed(&path, compacts).unwrap_err();
    println!("error {error}");
}

fn start_writer(journal: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["writer", "--exact", "--nocapture", "--test-threads=1"]);
    command.env(JOURNAL, journal).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Starts a writer, kills it after a time, and returns the last serials that it acknowledged.
fn write_and_kill(journal: &Path, after: Duration) -> Option<[u32; 3]> {
    let mut child = start_writer(journal);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    // The time runs from when the writer has opened the journal; every fifth is killed before.
    if !after.as_micros().is_multiple_of(5) {
        assert!(lines.any(|line| line == "opened"));
    }
    thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    let acknowledged = lines.filter_map(|line| {
        let serials = line.strip_prefix("acknowledged ")?;
        let serials: Vec<u32> = serials.split(' ').filter_map(|it| it.parse().ok()).collect();
        serials.try_into().ok() // the kill may have cut a line
    });
    acknowledged.last()
}

/// Kills writers of a lane and checks each journal that they leave; how many kills, and how many of
/// them tore a group.
fn run_lane(lane: u32, until: Instant) -> (u32, u32) {
    let folder = Folder::new();
    let compacts = lane % 2 == 1;
    let (mut kills, mut torn, mut state) = (0, 0, u64::from(lane) + 1);
    let (mut path, mut acknowledged) = (folder.journal(), [0; 3]);
    while kills < KILLS / LANES && Instant::now() < until {
        if kills % ROUNDS_OF_A_JOURNAL == 0 {
            path = folder.0.join(format!("journal{kills}"));
            path.set_extension(if compacts { "compacts" } else { "" });
            acknowledged = [0; 3];
        }
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let after = Duration::from_micros((state >> 33) % 8000);
        if let Some(serials) = write_and_kill(&path, after) {
            acknowledged = serials;
        }
        kills += 1;
        let (journal, opened) = open_unlocked(&path)
            .unwrap_or_else(|error| panic!("lane {lane}, kill {kills} after {after:?}: {error}"));
        torn += u32::from(opened.torn.is_some());
        for (zone, acknowledged) in ZONES.map(name).iter().zip(acknowledged) {
            let context = format!("lane {lane}, kill {kills} after {after:?}, {zone}");
            let (first, last) = check_entries(&journal, zone).unwrap_or((0, 0));
            assert!(last >= acknowledged, "{context}: {acknowledged} was lost, {last} is the last");
            let kept = if compacts { last.saturating_sub(VERSIONS as u32) } else { 0 };
            assert!(first <= kept, "{context}: entries from {kept} on were lost, {first} is first");
        }
    }
    (kills, torn)
}

#[test]
fn a_thousand_kills_lose_no_acknowledged_entry_and_damage_none() {
    let until = Instant::now() + Duration::from_secs(60);
    let lanes: Vec<_> =
        (0..LANES).map(|lane| thread::spawn(move || run_lane(lane, until))).collect();
    let ends: Vec<_> = lanes.into_iter().map(|lane| lane.join().unwrap()).collect();
    let kills: u32 = ends.iter().map(|(kills, _)| kills).sum();
    let torn: u32 = ends.iter().map(|(_, torn)| torn).sum();
    println!("{kills} kills, {torn} of them within a write");
    assert_eq!(kills, KILLS, "a minute was not enough");
}

#[test]
fn a_journal_of_a_running_process_is_refused_unchanged_until_the_process_is_killed() {
    let folder = Folder::new();
    let mut child = start_writer(&folder.journal());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "opened"));
    for _ in 0..20 {
        assert!(matches!(Journal::open(&folder.journal(), bound()), Err(Error::Locked(_))));
        thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let acknowledged = lines.filter_map(|line| {
        line.strip_prefix("acknowledged ")?.split(' ').next()?.parse::<u32>().ok()
    });
    let (journal, _) = open_unlocked(&folder.journal()).unwrap();
    let (first, last) = check_entries(&journal, &name(ZONES[0])).unwrap();
    assert!(first == 0 && last >= acknowledged.last().unwrap_or(0), "{first} {last}");
}

/// A limit of the size of files fails a write as a full disk does.
#[test]
fn a_full_disk_refuses_a_group_and_loses_none_before_it() {
    let folder = Folder::new();
    let program = std::env::current_exe().unwrap();
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$@\"";
    let output = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(program)
        .args(["writer", "--exact", "--nocapture", "--test-threads=1"])
        .env(JOURNAL, folder.journal())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("it cannot be written: File too large"), "{text}");
    let acknowledged =
        text.lines().filter_map(|line| line.strip_prefix("acknowledged ")).next_back();
    let acknowledged: Vec<u32> =
        acknowledged.unwrap().split(' ').map(|serial| serial.parse().unwrap()).collect();
    let (mut journal, opened) = open_unlocked(&folder.journal()).unwrap();
    assert_eq!(opened.torn, None, "what was written of the group is cut off at once");
    for (zone, acknowledged) in ZONES.map(name).iter().zip(acknowledged) {
        assert_eq!(check_entries(&journal, zone), Some((0, acknowledged)));
        append(&mut journal, zone, acknowledged + 1).unwrap();
    }
    journal.commit().unwrap();
}
