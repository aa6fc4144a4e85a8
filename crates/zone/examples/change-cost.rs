//! What a change of a zone costs: CPU time and memory, beside those of loading it.
//!
//! ```text
//! python3 bench/zonegen.py 1000000 7 > big.zone
//! export MALLOC_MMAP_THRESHOLD_=20480 MALLOC_MMAP_MAX_=1024 # as the server sets them
//! cargo run --release -p zonda-zone --example change-cost -- big.test big.zone [CHANGES]
//! ```
//!
//! Each change gives another owner of an A record another address, and the zone its next serial;
//! the version before is dropped, as it is when the publisher has swapped it.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use zonda_wire::{Name, Type};
use zonda_zone::{
    ChangeSet, HashSeed, LookupName, Serial, SerialPolicy, SetChange, Zone, build, file,
};

/// Changes when the command line does not say how many.
const CHANGES: usize = 60_000;
/// Lookups of each round.
const LOOKUPS: usize = 1_000_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, origin, path, rest @ ..] = &arguments[..] else {
        eprintln!("usage: change-cost ORIGIN FILE [CHANGES]");
        return ExitCode::from(2);
    };
    let count = rest.first().and_then(|text| text.parse().ok()).unwrap_or(CHANGES);
    let Ok(apex) = origin.parse::<Name>() else {
        eprintln!("{origin} is not a domain name");
        return ExitCode::from(2);
    };
    let start = Instant::now();
    let (records, diagnostics) = file::read(Path::new(path), &apex, &file::Options::default());
    let read = start.elapsed();
    let start = Instant::now();
    let zone = match build(&apex, &records, HashSeed(7)) {
        Ok(zone) => zone,
        Err(error) => {
            eprintln!("{error}\n{diagnostics}");
            return ExitCode::FAILURE;
        }
    };
    let built = start.elapsed();
    let owners: Vec<Name> = records
        .iter()
        .filter(|record| record.rtype == Type::A)
        .filter_map(|record| Name::from_wire(record.owner).ok())
        .collect();
    drop(records);
    println!("read {read:.3?}, built {built:.3?}: {} names", zone.name_count());
    let fresh = resident_bytes();
    println!("memory: {} of the zone, {} resident", mega(zone.bytes()), mega(fresh));
    look_up(&zone, &owners, "fresh");
    let zone = change(zone, &owners, count);
    println!(
        "memory: {} of the zone, {} resident ({:.2} x)",
        mega(zone.bytes()),
        mega(resident_bytes()),
        resident_bytes() as f64 / fresh as f64
    );
    look_up(&zone, &owners, "changed");
    ExitCode::SUCCESS
}

/// Changes one owner's address after the other, and prints what a change takes.
fn change(mut zone: Zone, owners: &[Name], count: usize) -> Zone {
    let mut times: Vec<Duration> = Vec::with_capacity(count);
    for number in 0..count {
        let owner = owners[number * 7_919 % owners.len()].clone();
        let data = vec![(number as u32).to_be_bytes().into()];
        let put = SetChange::Put { owner, rtype: Type::A, ttl: 300, data };
        let changes = ChangeSet { sets: vec![put], serial: Serial::Bump(SerialPolicy::Increment) };
        let start = Instant::now();
        match zone.with(&changes) {
            Ok((next, _)) => drop(std::mem::replace(&mut zone, next)),
            Err(error) => eprintln!("{error}"),
        }
        times.push(start.elapsed());
    }
    let total: Duration = times.iter().sum();
    times.sort_unstable();
    let at = |part: usize| times[(count * part / 1000).min(count - 1)];
    println!(
        "{count} changes: mean {:.1?}, p50 {:.1?}, p99 {:.1?}, p99.9 {:.1?}, most {:.1?}",
        total / count as u32,
        at(500),
        at(990),
        at(999),
        at(1000)
    );
    zone
}

/// Looks up names at random, by twos as a batch does, and prints what one takes.
fn look_up(zone: &Zone, owners: &[Name], what: &str) {
    let mut name = LookupName::default();
    let mut found = 0_usize;
    let start = Instant::now();
    for number in 0..LOOKUPS {
        name.set(owners[number * 104_729 % owners.len()].as_wire(), HashSeed(7));
        found += usize::from(zone.node(&name, 0).is_some());
    }
    let each = start.elapsed() / LOOKUPS as u32;
    println!("{what}: {each:.0?} a lookup of a random name, {found} found");
}

/// Octets of memory that the process has.
fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Rss:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.trim().parse().ok()).unwrap_or(0) * 1024
}

/// Octets in megabytes.
fn mega(octets: usize) -> String {
    format!("{:.1} MB", octets as f64 / 1e6)
}
