//! What a server with a hundred thousand zones of primaries costs, counted with fewer.

#![allow(clippy::unwrap_used)]

use super::Update;
use super::secondaries::keys;
use super::secondary_followed::{Followed, Job, TermsOfFeed};
use super::secondary_state::SecondaryCounters;
use super::secondary_zone::{SecondaryZone, Surroundings, now_secs};
use super::{LoadedZone, secondary_zone::WaitListener};
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
const ZONE_BYTES_MAX: usize = 1650;
/// Octets that an allocation takes besides those that were asked for: the allocator's own, and what
/// it rounds up.
const ALLOCATION_BYTES: usize = 16;

/// The octets for each zone that are left of what a function allocates.
fn octets_of_zone(part: &str, work: impl FnOnce()) -> usize {
    let allocated = allocation_counter::measure(work);
    let count = usize::try_from(allocated.count_current).unwrap();
    let bytes = usize::try_from(allocated.bytes_current).unwrap();
    let each = (bytes + count * ALLOCATION_BYTES) / ZONES;
    println!("{part}: {each} octets, {:.2} allocations", count as f64 / ZONES as f64);
    each
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

/// A directory with a file for each zone; in memory where that can be, as each file is synced.
fn directory_of_files() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let directory = parent.join(format!("zonda-secondary-cost-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let text = "$TTL 60\n@ SOA ns host 7 7200 3600 864000 60\n@ NS ns\nns A 192.0.2.1\n\
        www A 198.51.100.1\n";
    for apex in names() {
        let (records, _) =
            read_text(text.as_bytes(), Path::new("text"), &apex, &Options::default());
        let (agreed_at, expires_at) = (now_secs(), now_secs() + 864_000);
        let source = Some(SocketAddr::from(([192, 0, 2, 1], 53)));
        let timers = KeptTimers { serial: 7, agreed_at, expires_at, source };
        ZoneFile::new(&*directory, &apex).replace(&records, timers).unwrap();
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

/// Follows all zones of a configuration, and reads their files.
fn follow(followed: &mut Followed, config: &Config, around: &Surroundings) {
    let (keys, first) = (keys(config), Arc::new(sync_channel(0).0));
    let mut terms = TermsOfFeed::new(&keys, false);
    for (zone, secondary) in config.secondaries() {
        let apex = zone.name.clone().unwrap();
        let zone = SecondaryZone::new(&apex, terms.of(secondary), &first);
        followed.zones.insert(Arc::new(zone));
    }
    let all: Vec<Name> = followed.zones.iter().map(|zone| zone.apex.clone()).collect();
    followed.add_due(&all);
    drop(all);
    let mut due = 1;
    while let Some(Job::Read(zone)) = followed.take(0, true) {
        zone.load(&mut zone.state.work(), around);
        zone.end_first();
        due += 1;
        followed.schedule.finish_reading(&zone.apex, due);
    }
}

/// Serves all zones as the publisher does when their files were read.
fn serve(zones: &mut ZoneSet, followed: &Followed, config: &Config) {
    let mut outcome = Outcome::default();
    zones.add_stores(config, &mut outcome);
    let names: Vec<Name> = followed.zones.iter().map(|zone| zone.apex.clone()).collect();
    zones.adopt_feed(&names, 1, FedOwner::Configuration);
    for zone in followed.zones.iter() {
        let work = zone.state.work();
        let (zone_of_file, records) = (Arc::clone(work.zone.as_ref().unwrap()), work.records);
        let loaded = LoadedZone { zone: zone_of_file, records, digest: None, expiry: None };
        let update = Update::Kept(loaded, Vec::new()).with_expiry(&zone.state.expiry);
        let served = zones.update_fed(&zone.apex, 1, update).unwrap();
        assert_eq!(served.loaded.len(), 1);
    }
    drop(zones.tables(true));
}

#[test]
fn a_zone_of_primaries_takes_at_most_what_it_took() {
    let directory = directory_of_files();
    let text = config_text();
    let load = || {
        let text = (Path::new("/zonda.toml"), text.clone());
        Config::load_text(text, [], &Flags::default()).unwrap().config
    };
    let (mut config, mut builder) = (None, SettingsBuilder::default());
    let mut octets = octets_of_zone("configuration", || config = Some(load()));
    let config = config.unwrap();
    octets += octets_of_zone("settings", || drop(builder.settings(&config)));
    let (around, mut followed) = (surroundings(&directory, config.clone()), Followed::default());
    octets += octets_of_zone("followed", || follow(&mut followed, &config, &around));
    let engines = vec![Arc::<Counters>::default(), Arc::default()];
    let mut zones = ZoneSet::new(HashSeed(1), EngineCounters::of(engines), &config);
    octets += octets_of_zone("served", || serve(&mut zones, &followed, &config));
    assert!(octets <= ZONE_BYTES_MAX, "{octets} octets");
    fs::remove_dir_all(directory).unwrap();
}
