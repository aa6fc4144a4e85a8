//! Measures what one change of a store costs: how long it takes until it is answered, and the CPU
//! time of the process, for stores of several sizes.
//!
//! `cargo run --release -p zonda --example store_changes -- 10000 100000 1000000`; Linux only.

use std::error::Error;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zonda::{App, MemoryStore, RecordSet, Running, Store, Type};

/// Changes of each store that are measured.
const CHANGES: usize = 15;
/// The zone.
const ZONE: &str = "example.org";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("records  answered after, ms (median, slowest)  CPU a change, ms  resident, MB");
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|it| it.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![10_000, 100_000, 1_000_000] } else { sizes };
    for size in sizes {
        measure(size).await?;
    }
    Ok(())
}

/// Measures a store of so many records, each of a name of its own.
async fn measure(size: usize) -> Result<(), Box<dyn Error>> {
    let store = Arc::new(MemoryStore::new());
    store.set(&RecordSet::new(ZONE, "NS", 3600, ["ns.example.net"]))?;
    for number in 0..size {
        store.set(&address(number, 0))?;
    }
    let app = App::new().listen("127.0.0.1:0").workers(1).store(ZONE, Arc::clone(&store));
    let running = app.start().await?;
    await_change(&running, size - 1, 0).await?;
    let mut waits = Vec::with_capacity(CHANGES);
    let mut cpu_ms = 0.0;
    for version in 1..=CHANGES {
        settle().await;
        let before = cpu_millis()?;
        let number = version * 7919 % size;
        let changed = Instant::now();
        store.set(&address(number, version as u8))?;
        await_change(&running, number, version as u8).await?;
        waits.push(changed.elapsed());
        settle().await; // the former zone is given back
        cpu_ms += cpu_millis()? - before;
    }
    waits.sort_unstable();
    let (median, slowest) = (waits[CHANGES / 2].as_millis(), waits[CHANGES - 1].as_millis());
    let resident = resident_mega_bytes()?;
    println!("{size:7}  {median:8} {slowest:8}  {:8.1}  {resident:8}", cpu_ms / CHANGES as f64);
    running.stop().await?;
    Ok(())
}

/// Returns the address of a name in a version of the store.
fn address(number: usize, version: u8) -> RecordSet {
    let owner = format!("host{number}.{ZONE}");
    RecordSet::new(owner, "A", 300, [format!("192.0.2.{version}")])
}

/// Waits until a name has its address of a version.
async fn await_change(running: &Running, number: usize, version: u8) -> Result<(), zonda::Error> {
    let name = format!("host{number}.{ZONE}");
    loop {
        let reply = running.query(&name, Type::A).await?;
        if reply.records.first().is_some_and(|record| record.rdata == [192, 0, 2, version]) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Waits until the process has used no CPU time for a while.
async fn settle() {
    let mut last = f64::NAN;
    while let Ok(now) = cpu_millis() {
        if now - last < 1.0 {
            return;
        }
        last = now;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// CPU time that the process has used, milliseconds: of all its threads, as the scheduler counts.
fn cpu_millis() -> Result<f64, Box<dyn Error>> {
    let mut nanos = 0;
    for task in fs::read_dir("/proc/self/task")? {
        let path = task?.path().join("schedstat");
        let text = fs::read_to_string(path).unwrap_or_default(); // a thread that has just ended
        nanos += text.split_whitespace().next().and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(nanos as f64 / 1e6)
}

/// Memory of the process.
fn resident_mega_bytes() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilo_bytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kilo_bytes.unwrap_or(0) / 1000)
}
