//! What an entry costs at a given rate: CPU of the owner's thread, octets, commits, and how long a
//! change waits for the disk.
//!
//! `cargo run --release -p zonda-journal --example cost -- DIRECTORY [PER_SECOND [SECONDS]]`

use std::path::Path;
use std::time::{Duration, Instant};
use zonda_journal::{Entry, HistoryLimit, Journal};
use zonda_wire::Name;

/// Octets of each change: a difference of one RRset, with both SOA records.
const PAYLOAD_OCTETS: usize = 200;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u32| arguments.get(at).map_or(Ok(default), |it| it.parse());
    let directory =
        arguments.first().ok_or("name a directory on the disk that is to be measured")?;
    let (rate, secs) = (number(1, 1000)?, number(2, 10)?);
    let path = Path::new(directory).join("zonda-journal-cost");
    let (mut journal, _) =
        Journal::open(&path, HistoryLimit { versions: 1_000_000, octets: u64::MAX })?;
    let (zone, payload): (Name, _) = ("example.com.".parse()?, vec![7; PAYLOAD_OCTETS]);
    let before = journal.sizes().file_octets;
    let (start, cpu_before) = (Instant::now(), cpu()?);
    let (all, mut serial, mut commits, mut waits) = (rate * secs, 0, 0_u32, Vec::new());
    while serial < all {
        // All that came while the last group was written is the next one.
        let due_at = |serial: u32| Duration::from_secs(1) * (serial + 1) / rate;
        let elapsed = start.elapsed();
        if due_at(serial) > elapsed {
            std::thread::sleep(due_at(serial) - elapsed);
        }
        let due = (start.elapsed().as_nanos() * u128::from(rate) / 1_000_000_000) as u32;
        let first = serial;
        while serial < due.min(all) {
            let entry = Entry { zone: &zone, from: serial, to: serial + 1, payload: &payload };
            journal.append(entry)?;
            serial += 1;
        }
        journal.commit()?;
        commits += 1;
        let now = start.elapsed().as_secs_f64();
        waits.extend((first..serial).map(|it| now - f64::from(it + 1) / f64::from(rate)));
    }
    let used = cpu()? - cpu_before;
    waits.sort_by(f64::total_cmp);
    let wait_ms = |share: f64| 1000.0 * waits[(waits.len() as f64 * share) as usize];
    let octets = (journal.sizes().file_octets - before) as f64;
    let [entries, groups] = [all, commits].map(f64::from);
    println!("entries     {all}, {rate} a second, {PAYLOAD_OCTETS} octets of payload");
    println!("commits     {commits}, {:.1} entries each", entries / groups);
    println!("CPU         {:.1} µs an entry", 1e6 * used.as_secs_f64() / entries);
    println!("file        {:.1} octets an entry", octets / entries);
    println!("on disk in  {:.2} ms (median), {:.2} ms (p99)", wait_ms(0.5), wait_ms(0.99));
    let start = Instant::now();
    drop(journal);
    Journal::open(&path, HistoryLimit { versions: 1, octets: 0 })?;
    println!("opened in   {:.1} ms", 1e3 * start.elapsed().as_secs_f64());
    std::fs::remove_file(path)?;
    Ok(())
}

/// Returns the CPU time of this thread, in the kernel too.
fn cpu() -> Result<Duration, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(Duration::from_nanos(text.split(' ').next().ok_or("no time in schedstat")?.parse()?))
}
