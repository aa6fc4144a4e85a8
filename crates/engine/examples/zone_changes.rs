//! Measures what one zone more or less costs among many.
//!
//! ```sh
//! cargo run --release -p zonda-engine --example zone_changes [ZONES]
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};
use zonda_engine::Reason;
use zonda_engine::zones::{Source, ZoneEntry, ZoneTableOwner};
use zonda_wire::Name;
use zonda_zone::HashSeed;

/// Changes of each kind that are measured.
const CHANGES: u32 = 1000;

/// The entry of a zone with this number.
fn entry(number: u32) -> Arc<ZoneEntry> {
    let apex: Name = format!("z{number}.example").parse().expect("a name");
    Arc::new(ZoneEntry::new(apex, Source::Unavailable(Reason::ZoneUnavailable), None, number))
}

/// Makes changes, each of which is published, and prints what they took.
fn measure(
    what: &str,
    zones: &mut ZoneTableOwner,
    mut change: impl FnMut(&mut ZoneTableOwner, u32),
) {
    let (mut published, before) = (zones.table(), zones.copied().0);
    let mut times: Vec<Duration> = (0..CHANGES)
        .map(|number| {
            let started = Instant::now();
            change(zones, number);
            published = zones.table(); // the former one is dropped, as no worker reads it
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
    let copied = (zones.copied().0 - before) / times.len();
    println!("{what}: median {median:?}, worst {worst:?}, {copied} octets copied each");
    drop(published);
}

fn main() {
    let count = std::env::args().nth(1).map_or(1_000_000, |it| it.parse().expect("a number"));
    let mut zones = ZoneTableOwner::new(HashSeed::random());
    let started = Instant::now();
    (0..count).for_each(|number| drop(zones.put(entry(number))));
    println!("{count} zones in {:?}", started.elapsed());
    measure("added", &mut zones, |zones, number| drop(zones.put(entry(count + number))));
    measure("replaced", &mut zones, |zones, number| drop(zones.put(entry(number))));
    measure("removed", &mut zones, |zones, number| drop(zones.remove(&entry(number).apex)));
}
