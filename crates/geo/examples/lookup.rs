//! Measures look-ups over tables of the size of a full database of cities, with their memory and
//! the time to build them: `cargo run --release -p zonda-geo --example lookup`.

use std::hint::black_box;
use std::net::IpAddr;
use std::time::Duration;

use zonda_geo::{Bias, Coordinates, Database, Orders, Prefix, PrefixTable, Site, nearest_order};

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Random, full_size};

/// Locations of a full database.
const LOCATIONS: usize = 200_000;
/// Sites of a pool that answers with the nearest.
const SITES: usize = 12;
/// Look-ups of a measurement; their addresses are made beforehand.
const LOOKUPS: usize = 1_000_000;
/// Look-ups of a batch, as many as a worker receives at once.
const BATCH: usize = 32;
/// Passes of a measurement, of which the fastest counts.
const PASSES: usize = 5;
/// Numbers of networks that the clients of clustered measurements come from.
const CLUSTERS: [usize; 2] = [1_000, 20_000];

fn main() {
    let mut random = Random::new(17);
    measure_memory(&mut random);
    let networks = full_size::networks(&mut random, 1.0, LOCATIONS);
    let started = processor_time();
    let table = PrefixTable::new(networks.iter().copied(), u32::MAX);
    let table = table.expect("the list is below the bound");
    let count = networks.len();
    println!(
        "table of {count} prefixes with {LOCATIONS} values: {}",
        cost(started, table.memory())
    );
    measure_all(&table, &networks, &mut random);
    drop(table);

    let file = full_size::database(&networks, LOCATIONS, &mut random);
    let started = processor_time();
    let database = Database::from_bytes("made up", &file).expect("the file is whole");
    let octets = file.len();
    println!(
        "database of {octets} octets, read: {} without names",
        cost(started, database.memory())
    );
    drop(file);
    let sites: Vec<Site> = (0..SITES).map(|_| site(&mut random)).collect();
    let mut orders = Orders::default();
    let started = processor_time();
    let table = PrefixTable::compile(Some(&database), &[], |location| {
        let order = location.coordinates.map(|from| nearest_order(from, &sites, 3));
        orders.number(&order.unwrap_or_default())
    });
    let table = table.expect("the database is below the bound");
    let what = format!("table of {} orders of 3 of {SITES} sites", orders.len());
    println!("{what}: {}", cost(started, table.memory()));
    measure_all(&table, &networks, &mut random);
}

/// Returns the time since a start and a number of octets as text.
fn cost(started: Duration, octets: usize) -> String {
    let seconds = (processor_time() - started).as_secs_f64();
    format!("{seconds:.2} s, {:.1} MiB", octets as f64 / f64::from(1 << 20))
}

/// Makes up a site on the northern half of the globe.
fn site(random: &mut Random) -> Site {
    let coordinates = Coordinates::new(random.below(70) as f64, random.below(360) as f64 - 180.0);
    Site { coordinates: coordinates.expect("a point"), bias: Bias::default() }
}

/// Measures look-ups of addresses of both families, spread and clustered.
fn measure_all(table: &PrefixTable, networks: &[(Prefix, u32)], random: &mut Random) {
    let v6_from = networks.partition_point(|(prefix, _)| prefix.address().is_ipv4());
    let (v4, v6) = networks.split_at(v6_from);
    for (family, networks) in [("IPv4", v4), ("IPv6", v6)] {
        for count in CLUSTERS {
            let some: Vec<_> = (0..count).map(|_| networks[random.below(networks.len())]).collect();
            let clustered = addresses(&some, random);
            measure(table, &format!("{family}, of {count} networks"), &clustered);
        }
        let spread = addresses(networks, random);
        measure(table, &format!("{family}, a random network each"), &spread);
    }
    let any: Vec<IpAddr> =
        (0..LOOKUPS).map(|_| IpAddr::V4((random.next() as u32).into())).collect();
    measure(table, "IPv4, any address", &any);
}

/// Makes a random address in a random one of the networks for each look-up.
fn addresses(networks: &[(Prefix, u32)], random: &mut Random) -> Vec<IpAddr> {
    let mut address = || {
        let (network, _) = networks[random.below(networks.len())];
        let (high, low) = (random.next(), random.next());
        match network.address() {
            IpAddr::V4(first) => {
                let within = (high as u32).checked_shr(network.length().into()).unwrap_or(0);
                IpAddr::V4((u32::from(first) | within).into())
            }
            IpAddr::V6(first) => {
                let within = u128::from(high) << 64 | u128::from(low);
                let within = within.checked_shr(network.length().into()).unwrap_or(0);
                IpAddr::V6((u128::from(first) | within).into())
            }
        }
    };
    (0..LOOKUPS).map(|_| address()).collect()
}

/// Returns the time that a processor has spent on this thread, so that programs beside this one do
/// not count.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has the file");
    let nanoseconds = text.split(' ').next().and_then(|field| field.parse().ok());
    Duration::from_nanos(nanoseconds.expect("the first field is a number"))
}

/// Prints the time of a look-up: where each begins once the one before has ended, as a query at a
/// time does; where the processor overlaps them; and where memory is touched for a batch before.
fn measure(table: &PrefixTable, what: &str, addresses: &[IpAddr]) {
    let overlapped = best(addresses.len(), || {
        let mut sum = 0u64;
        for address in addresses {
            let found = table.lookup(*address);
            sum = sum.wrapping_add(u64::from(found.value) + u64::from(found.scope));
        }
        black_box(sum);
    });
    let alone = best(addresses.len(), || {
        let mut carried = 0usize;
        for index in 0..addresses.len() {
            // The next index needs the former result, so that nothing can be done ahead.
            let found = table.lookup(black_box(addresses[index ^ (carried >> 63)]));
            carried = found.value as usize + usize::from(found.scope);
        }
        black_box(carried);
    });
    let touched = best(addresses.len(), || {
        let mut sum = 0u64;
        for batch in addresses.chunks(BATCH) {
            table.touch(batch);
            for address in batch {
                let found = table.lookup(*address);
                sum = sum.wrapping_add(u64::from(found.value) + u64::from(found.scope));
            }
        }
        black_box(sum);
    });
    println!(
        "  {what:<30} {alone:6.1} ns alone, {overlapped:6.1} overlapped, {touched:6.1} in batches"
    );
}

/// Returns the nanoseconds of a step in the fastest of several passes of so many steps.
fn best(steps: usize, mut pass: impl FnMut()) -> f64 {
    let passes = (0..PASSES).map(|_| {
        let started = processor_time();
        pass();
        (processor_time() - started).as_nanos() as f64 / steps as f64
    });
    passes.fold(f64::INFINITY, f64::min)
}

/// Prints the time to read a word at random in memory of several sizes, each place found at the one
/// before: what a look-up costs at least for each line of the table that no cache has.
fn measure_memory(random: &mut Random) {
    for kibibytes in [256, 2 << 10, 16 << 10, 64 << 10] {
        let count = kibibytes << 10 >> 3;
        // A circle through all places in random order (Sattolo).
        let mut next: Vec<usize> = (0..count).collect();
        (1..count).rev().for_each(|index| next.swap(index, random.below(index)));
        let nanoseconds = best(LOOKUPS, || {
            black_box((0..LOOKUPS).fold(0, |at, _| next[at]));
        });
        println!("memory of {kibibytes:>6} KiB: {nanoseconds:6.1} ns for a read");
    }
}
