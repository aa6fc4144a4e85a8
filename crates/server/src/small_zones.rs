//! What a server with a million small zones costs, counted with a thousand.

#![allow(clippy::unwrap_used)]

use crate::engine_counters::EngineCounters;
use crate::load::load_all;
use crate::program::read_config;
use crate::unit_states::{Plan, Scope, Step, UnitStates};
use crate::zone_set::{Outcome, ZoneSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use zonda_config::{Config, Flags};
use zonda_engine::counters::Counters;
use zonda_zone::HashSeed;

/// The number of zones; few enough that one thread looks at all files.
const ZONES: usize = 1000;
/// Most octets that a zone of six records may take with all that is known of it.
const ZONE_BYTES_MAX: usize = 1000;
/// Octets that an allocation takes besides those that were asked for: the allocator's own, and what
/// it rounds up.
const ALLOCATION_BYTES: usize = 16;
/// Longer than a file has to be older than its reading, to be taken for unchanged from then on.
const SETTLED: Duration = Duration::from_millis(60);

/// A directory of zones, and what a server knows of them.
struct Zones {
    directory: PathBuf,
    config: Config,
    units: UnitStates,
    zones: ZoneSet,
}

impl Zones {
    /// Writes the files, and loads nothing yet.
    fn new(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("zonda-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        (0..ZONES).for_each(|number| write(&directory, number, 1));
        thread::sleep(SETTLED);
        let file = directory.with_extension("toml");
        fs::write(&file, format!("version = 1\n[[zone]]\ndirectory = {directory:?}\n")).unwrap();
        let config = read_config(Some(&file), &Flags::default(), None).unwrap();
        fs::remove_file(file).unwrap();
        let engines = vec![Arc::<Counters>::default(), Arc::default()];
        let zones = ZoneSet::new(HashSeed(1), EngineCounters::of(engines), &config);
        Self { directory, config, units: UnitStates::default(), zones }
    }

    /// What a reload would do.
    fn plan(&mut self) -> Plan {
        let zones = self.zones.view();
        self.units.plan(&zones, (&self.config, &self.config), Scope::Changed)
    }

    /// Does what a reload does, in one thread.
    fn reload(&mut self) -> Outcome {
        let plan = self.plan();
        let loaded = load_all(&plan.stale(), &self.config, (&self.zones.view(), HashSeed(1)), 1);
        let outcome = self.zones.apply(&mut self.units, plan, loaded);
        drop(self.zones.tables(outcome.names_changed));
        outcome
    }

    fn end(self) {
        fs::remove_dir_all(self.directory).unwrap();
    }
}

/// Writes a zone of six records.
fn write(directory: &Path, number: usize, serial: u32) {
    let text = format!(
        "$TTL 3600\n@ IN SOA ns1 hostmaster {serial} 7200 3600 1209600 3600\n@ IN NS ns1\n\
         @ IN NS ns2\nns1 IN A 192.0.2.1\nns2 IN A 192.0.2.2\nwww IN A 198.51.100.1\n"
    );
    fs::write(directory.join(format!("zone{number}.example.zone")), text).unwrap();
}

/// The number of times that this thread has read from files so far.
fn reads() -> usize {
    let counts = fs::read_to_string("/proc/thread-self/io").unwrap();
    let line = counts.lines().find_map(|line| line.strip_prefix("syscr: ")).unwrap();
    line.parse().unwrap()
}

#[test]
fn a_small_zone_takes_at_most_a_thousand_octets() {
    let mut zones = Zones::new("small-zones");
    let allocated = allocation_counter::measure(|| assert_eq!(zones.reload().loaded.len(), ZONES));
    let allocations = usize::try_from(allocated.count_current).unwrap();
    let bytes = usize::try_from(allocated.bytes_current).unwrap();
    let each = (bytes + allocations * ALLOCATION_BYTES) / ZONES;
    assert!(each <= ZONE_BYTES_MAX, "{each} octets, {allocations} allocations of {bytes} octets");
    zones.end();
}

#[test]
fn a_small_file_is_read_with_one_call() {
    let mut zones = Zones::new("small-reads");
    let before = reads();
    zones.reload();
    let read = reads() - before;
    assert!(read < ZONES + 20, "{read} calls to read {ZONES} files");
    zones.end();
}

#[test]
fn looking_at_unchanged_files_allocates_nothing_for_a_file_and_reads_none() {
    let mut zones = Zones::new("small-unchanged");
    zones.reload();
    let (mut plan, before) = (None, reads());
    let allocated = allocation_counter::measure(|| plan = Some(zones.plan()));
    let read = reads() - before;
    assert!(plan.unwrap().is_empty());
    assert!(allocated.count_total < 100, "{allocated:?} for {ZONES} files");
    assert!(read < 20, "{read} calls to read for {ZONES} files");
    zones.end();
}

#[test]
fn a_reload_finds_what_was_written_what_is_new_and_what_is_gone() {
    let mut zones = Zones::new("small-changes");
    zones.reload();
    write(&zones.directory, 7, 2);
    thread::sleep(SETTLED);
    let plan = zones.plan();
    let paths: Vec<_> = plan.units.iter().map(|(unit, _)| unit.key.path().into_owned()).collect();
    assert_eq!(paths, [zones.directory.join("zone7.example.zone")]);
    assert!(plan.units[0].1 == Step::Load && plan.gone.is_empty());
    let loaded =
        |outcome: Outcome| outcome.loaded.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(loaded(zones.reload()), ["zone7.example."]);
    fs::remove_file(zones.directory.join("zone8.example.zone")).unwrap();
    write(&zones.directory, ZONES, 1);
    let outcome = zones.reload();
    assert_eq!(outcome.removed, ["zone8.example".parse().unwrap()]);
    assert_eq!(loaded(outcome), [format!("zone{ZONES}.example.")]);
    thread::sleep(SETTLED);
    let outcome = zones.reload(); // the new file was too young
    assert!(loaded(outcome).len() <= 1);
    assert!(!zones.reload().changed);
    zones.end();
}
