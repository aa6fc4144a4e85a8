//! What a server with a hundred thousand zones of primaries costs, counted with fewer.

#![allow(clippy::unwrap_used)]

use super::Update;
use super::secondaries::keys;
use super::secondary_followed::{Followed, Job, TermsOfFeed};
use super::secondary_memory::end_wait;
use super::secondary_state::SecondaryCounters;
use super::secondary_work::ZoneWork;
use super::secondary_zone::WaitListener;
use super::secondary_zone::{SecondaryZone, Surroundings, now_secs};
use crate::engine_counters::EngineCounters;
use crate::publish::{Publisher, PublisherHandle};
use crate::settings::SettingsBuilder;
use crate::texts::Texts;
use crate::zone_set::fed_zone::FedOwner;
use crate::zone_set::{Outcome, ZoneSet};
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Instant;
use zonda_config::{Config, Flags};
use zonda_engine::counters::Counters;
use zonda_secondary::zone_file::KeptTimers;
use zonda_secondary::{Budget, ZoneFile};
use zonda_wire::Name;
use zonda_zone::HashSeed;
use zonda_zone::file::{Options, read_text};

/// The number of zones: tables, which grow by doubling, are as full as those of 100,000 zones.
const ZONES: usize = 100_000 / 128;
/// Most octets that a zone of four records may take with all that is known of it, and its section
/// of the configuration: a tenth more than it takes.
const ZONE_BYTES_MAX: usize = 1_530;
/// Octets that an allocation takes besides those that were asked for: the allocator's own, and what
/// it rounds up.
const ALLOCATION_BYTES: usize = 16;

/// Returns the octets for each zone that are left of what a function allocates.
fn octets_of_zone(work: impl FnOnce()) -> usize {
    let allocated = allocation_counter::measure(work);
    let count = usize::try_from(allocated.count_current).unwrap();
    let bytes = usize::try_from(allocated.bytes_current).unwrap();
    (bytes + count * ALLOCATION_BYTES) / ZONES
}

/// Names of zones as they are common.
fn names() -> impl Iterator<Item = Name> {
    (0..ZONES).map(|number| format!("zone{number:06}.example").parse().unwrap())
}

/// The text of a configuration in which each zone has a section.
fn config_text() -> String {
    let mut text = "version = 1\n".to_owned();
    for name in names() {
        let _ = writeln!(text, "[[zone]]\nname = \"{name}\"\n[zone.secondary]");
        text.push_str("from = [\"192.0.2.1\"]\n");
    }
    text
}

/// The address of the primary of all zones.
fn primary() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 53))
}

/// A directory that is removed when this is dropped, also where the test fails.
struct TestDirectory(PathBuf);

impl Drop for TestDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Makes a directory with a file for each zone; in memory where that can be, as each file is
/// synced.
fn directory_of_files() -> TestDirectory {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let directory = parent.join(format!("zonda-secondary-cost-{}", std::process::id()));
    let directory = TestDirectory(directory);
    fs::create_dir_all(&directory.0).unwrap();
    let text = "$TTL 60\n@ SOA ns host 7 7200 3600 864000 60\n@ NS ns\nns A 192.0.2.1\n\
        www A 198.51.100.1\n";
    for apex in names() {
        let (records, _) =
            read_text(text.as_bytes(), Path::new("text"), &apex, &Options::default());
        let (agreed_at, expires_at) = (now_secs(), now_secs() + 864_000);
        let source = Some(primary());
        let timers = KeptTimers { serial: 7, agreed_at, expires_at, source };
        ZoneFile::new(&*directory.0, &apex).replace(&records, timers).unwrap();
    }
    directory
}

/// What threads share that read the files of a directory. The publisher has ended, so that all that
/// is allocated is allocated here.
fn surroundings(directory: &Path, config: Config) -> Surroundings {
    let (texts, stores) = (Texts::default(), Vec::new());
    let own = (Default::default(), &texts, &stores);
    let first = Publisher::load(config, own, EngineCounters::new(0), 1).unwrap();
    let publisher = PublisherHandle::of_ended(&first);
    let counters = Arc::<SecondaryCounters>::default();
    let note_wait: WaitListener = Box::new(|_, _| ());
    let waits = (Arc::new(Budget::new(1 << 20)), note_wait);
    Surroundings::new(publisher, Ok(directory.to_owned()), counters, waits)
}

/// Follows all zones of a configuration, reads their files, and has them as a refresh leaves them
/// that has found them in step.
fn follow(followed: &mut Followed, config: &Config, around: &Surroundings) {
    let (keys, first) = (keys(config), Arc::new(sync_channel(0).0));
    let mut terms = TermsOfFeed::new(&keys, false);
    for (zone, secondary) in config.secondaries() {
        let apex = zone.name.clone().unwrap();
        let zone = SecondaryZone::new(&apex, terms.of(secondary), &first);
        followed.zones.insert(Arc::new(zone));
    }
    let all: Vec<Name> = followed.zones.iter().map(|zone| zone.apex.clone()).collect();
    followed.add_due(&all, &around.addresses);
    drop(all);
    let mut due = 1;
    while let Some(Job::Read(zone)) = followed.take(0, true) {
        let mut work = zone.state.work();
        zone.load(&mut work, around);
        leave_in_step(&zone, &mut work, around);
        drop(work);
        zone.end_load_wait();
        due += 1;
        followed.schedule.finish_reading(&zone.apex, due);
    }
}

/// Leaves of a zone what a refresh does that has found it in step with its primary.
fn leave_in_step(zone: &SecondaryZone, work: &mut ZoneWork, around: &Surroundings) {
    let address = || around.addresses.shared(primary());
    let mut status = zone.state.lock();
    status.note_primary(address(), Ok(7));
    (status.primary, status.primary_serial) = (Some(address()), Some(7));
    drop(status);
    end_wait(zone, work);
    work.settle(Instant::now());
    zone.state.lock().settle();
}

/// Serves all zones as the publisher does when their files were read.
fn serve(zones: &mut ZoneSet, followed: &Followed, config: &Config) {
    let mut outcome = Outcome::default();
    zones.add_stores(config, &mut outcome);
    let names: Vec<Name> = followed.zones.iter().map(|zone| zone.apex.clone()).collect();
    zones.adopt_feed(&names, 1, FedOwner::Configuration);
    for zone in followed.zones.iter() {
        let work = zone.state.work();
        let update =
            Update::Kept(work.version().unwrap(), Vec::new()).with_expiry(&zone.state.expiry);
        let served = zones.update_fed(&zone.apex, 1, update).unwrap();
        assert_eq!(served.loaded.len(), 1);
    }
    drop(zones.tables(true));
}

#[test]
fn a_secondary_zone_takes_at_most_1530_octets_after_a_refresh_that_has_found_it_in_step() {
    let directory = directory_of_files();
    let text = config_text();
    let load = || {
        let text = (Path::new("/zonda.toml"), text.clone());
        Config::load_text(text, [], &Flags::default()).unwrap().config
    };
    let (mut config, mut builder) = (None, SettingsBuilder::default());
    let configuration = octets_of_zone(|| config = Some(load()));
    let config = config.unwrap();
    let settings = octets_of_zone(|| drop(builder.settings(&config)));
    let (around, mut followed) = (surroundings(&directory.0, config.clone()), Followed::default());
    let of_followed = octets_of_zone(|| follow(&mut followed, &config, &around));
    let engines = vec![Arc::<Counters>::default(), Arc::default()];
    let mut zones = ZoneSet::new(HashSeed(1), EngineCounters::of(engines), &config);
    let served = octets_of_zone(|| serve(&mut zones, &followed, &config));
    let parts = [configuration, settings, of_followed, served];
    let octets: usize = parts.iter().sum();
    let what = "octets: configuration, settings, followed, served:";
    assert!(octets <= ZONE_BYTES_MAX, "{octets} {what} {parts:?}");
}
