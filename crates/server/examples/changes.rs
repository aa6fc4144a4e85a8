//! Measures what it costs to change a large zone while it is served: reloads, edits, and what the
//! admin interface's readers notice of either.
//!
//! ```text
//! cargo run --release -p zonda-server --example changes -- [RECORDS] [SECONDS] [LOADED] [STATE]
//! ```
//!
//! `RECORDS` are those of the zone, a million unless given; `SECONDS` is how long 1,000 changes a
//! second are made, 60; `LOADED` are the records of a second zone that is loaded meanwhile, none.
//! `STATE` is the directory of the journal; in memory (`/dev/shm`) unless given, so that the disk
//! costs nothing.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // a program of one developer's

use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs};
use zonda_config::Flags;
use zonda_server::client::ask;
use zonda_server::{Edit, Options, Program, Server, VersionOrigin, read_config};
use zonda_wire::{Name, Type};
use zonda_zone::SetChange;

/// Sockets of clients: enough that the kernel gives each worker some.
const CLIENTS: usize = 16;
/// Edits whose latency is measured, one after the other.
const TIMED_EDITS: u32 = 2_000;
/// Edits whose CPU time is measured, enough for a clock of ten milliseconds.
const EDITS: u32 = 20_000;
/// Time between two changes at 1,000 a second.
const INTERVAL: Duration = Duration::from_millis(1);

/// What is measured on.
struct Bench {
    server: Arc<Server>,
    folder: PathBuf,
    records: u32,
}

fn main() {
    zonda_netio::memory::map_large_allocations(); // as the binary does
    let numbers: Vec<u32> = env::args().skip(1).take(3).map(|it| it.parse().unwrap()).collect();
    let number = |at: usize, default| numbers.get(at).copied().unwrap_or(default);
    let (records, seconds, loaded) = (number(0, 1_000_000), number(1, 60), number(2, 0));
    let folder = env::temp_dir().join(format!("zonda-changes-{}", std::process::id()));
    let in_memory = PathBuf::from(format!("/dev/shm/zonda-changes-{}", std::process::id()));
    let state = env::args().nth(4).map_or(in_memory.clone(), PathBuf::from);
    fs::create_dir_all(&folder).unwrap();
    let bench = Bench::start(folder, &state, records);
    let fresh = rss();
    println!("loaded: {records} records, RSS {}", mebibytes(fresh));
    bench.reloads();
    bench.edits();
    bench.stream(seconds, fresh);
    if loaded > 0 {
        bench.load_another(loaded);
    }
    let Bench { server, folder, .. } = bench;
    Arc::into_inner(server).unwrap().stop().unwrap();
    fs::remove_dir_all(folder).unwrap();
    let _ = fs::remove_dir_all(in_memory); // was not made if another directory was given
}

impl Bench {
    /// Starts a server with a zone that can be changed.
    fn start(folder: PathBuf, state: &Path, records: u32) -> Self {
        write_zone(&folder.join("large.test"), 1, records, |_| false);
        write_zone(&folder.join("other.test"), 1, 0, |_| false);
        let config = folder.join("zonda.toml");
        let text = format!(
            "version = 1\nstate = {state:?}\nflush-interval = \"1 d\"\n\
             [admin]\naddress = \"off\"\nsocket = {:?}\n\
             [[zone]]\nname = \"large.test\"\nfile = \"large.test\"\nwritable = true\n\
             [[zone]]\nname = \"other.test\"\nfile = \"other.test\"\n",
            folder.join("admin.sock")
        );
        fs::write(&config, text).unwrap();
        let flags = Flags { listen: vec!["127.0.0.1:0".to_owned()], ..Flags::default() };
        let load = move || read_config(Some(&config), &flags, None);
        let (config, read_config) = (load().unwrap(), Box::new(load));
        let program = Program::default();
        let options = Options { config, read_config, take_over: false, program };
        Self { server: Arc::new(Server::start(options).unwrap()), folder, records }
    }

    /// Reloads the zone with few, and with many records changed.
    fn reloads(&self) {
        let part = self.records / 10;
        for (serial, changed) in [(1, 0), (2, 1), (3, part), (3, 0)] {
            let is_changed = |n: u32| match serial {
                1 => false,
                2 => n == 0,
                _ => n.is_multiple_of(self.records / part),
            };
            write_zone(&self.folder.join("large.test"), serial, self.records, is_changed);
            thread::sleep(Duration::from_millis(100));
            let (started, cpu) = (Instant::now(), cpu());
            assert!(self.server.reload().unwrap().is_empty());
            let (took, cpu) = (started.elapsed(), self::cpu() - cpu);
            thread::sleep(Duration::from_secs(3)); // memory is given back
            println!(
                "reload, {changed} records changed: {took:.2?}, CPU {cpu:.2?}, RSS {}",
                mebibytes(rss())
            );
        }
    }

    /// Gives a name an address.
    fn edit(&self, number: u32, last: u32) {
        let owner: Name = format!("h{}.large.test", number % self.records).parse().unwrap();
        let data = vec![last.to_be_bytes().into()];
        let sets = vec![SetChange::Put { owner, rtype: Type::A, ttl: 60, data }];
        let zone = "large.test".parse().unwrap();
        let edit = Edit {
            zone,
            sets,
            if_serial: None,
            if_life: None,
            is_dry_run: false,
            origin: VersionOrigin::Edit,
        };
        self.server.edit(edit).unwrap();
    }

    /// Times edits until each worker answers with them, and the CPU time of edits alone.
    fn edits(&self) {
        let clients: Vec<UdpSocket> =
            (0..CLIENTS).map(|_| client(self.server.addresses()[0])).collect();
        let mut times: Vec<Duration> = (0..TIMED_EDITS)
            .map(|edit| {
                let number = edit.wrapping_mul(2_654_435_761) % self.records;
                let started = Instant::now();
                self.edit(number, edit + 7);
                for client in &clients {
                    while ask_address(client, number) != edit + 7 {}
                }
                started.elapsed()
            })
            .collect();
        times.sort_unstable();
        print_times("edit, until each worker answers with it", &times);
        let before = cpu();
        (0..EDITS).for_each(|edit| self.edit(edit.wrapping_mul(40_503), edit + 9_000));
        println!("edit: CPU {:.1?}", (cpu() - before) / EDITS);
    }

    /// Makes 1,000 changes a second while readers read.
    fn stream(&self, seconds: u32, fresh: u64) {
        let (started, before, mut late) = (Instant::now(), cpu(), Duration::ZERO);
        let requests = self.read_meanwhile(|| {
            for edit in 0..seconds * 1_000 {
                let due = started + INTERVAL * edit;
                thread::sleep(due.saturating_duration_since(Instant::now()));
                self.edit(edit.wrapping_mul(2_654_435_761), edit + 40_000);
                late = late.max(due.elapsed());
            }
        });
        let (took, cpu) = (started.elapsed(), cpu() - before);
        println!("{seconds} s of 1,000 changes a second: {took:.2?}, latest {late:.1?}");
        println!("  CPU of a change with the readers': {:.1?}", cpu / (seconds * 1_000));
        print_times("  GET", &requests);
        thread::sleep(Duration::from_secs(3)); // memory is given back
        let part = rss() as f64 / fresh as f64;
        println!("  RSS {}, {part:.2} of that after the load", mebibytes(rss()));
    }

    /// Loads another large zone while readers read.
    fn load_another(&self, records: u32) {
        write_zone(&self.folder.join("other.test"), 2, records, |_| false);
        let started = Instant::now();
        let requests = self.read_meanwhile(|| assert!(self.server.reload().unwrap().is_empty()));
        println!("load of {records} records: {:.1?}", started.elapsed());
        print_times("  GET", &requests);
    }

    /// Asks each request that reads again and again while something is done.
    fn read_meanwhile(&self, work: impl FnOnce()) -> Vec<Duration> {
        let is_over = AtomicBool::new(false);
        let socket = self.folder.join("admin.sock");
        let list: Value = serde_json::from_str(&ask(&socket, "GET", "/v1").unwrap().body).unwrap();
        let requests = list["requests"].as_array().unwrap().iter();
        let reading = requests.filter(|it| it["method"] == "GET" && it["large"] != true);
        let paths = reading.map(|it| it["path"].as_str().unwrap());
        let paths: Vec<String> = paths.filter_map(path).collect();
        thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut times = Vec::new();
                while !is_over.load(Ordering::SeqCst) {
                    for path in &paths {
                        let started = Instant::now();
                        let answer = ask(&socket, "GET", path).unwrap();
                        times.push(started.elapsed());
                        assert!(answer.status < 500, "{path}: {}", answer.body);
                        thread::sleep(Duration::from_millis(1));
                    }
                }
                times.sort_unstable();
                times
            });
            work();
            is_over.store(true, Ordering::SeqCst);
            reader.join().unwrap()
        })
    }
}

/// A request with the names of a zone, but for one that lists a large zone.
fn path(path: &str) -> Option<String> {
    if path.ends_with("/rrsets") || path.ends_with("/diff") {
        return None;
    }
    let path = path.replace("ZONE", "large.test").replace("NAME", "h7.large.test");
    let path = path.replace("TYPE", "A");
    Some(if path == "/v1/cache" { "/v1/cache?name=a.test".to_owned() } else { path })
}

/// Writes a zone with so many names, some of which have changed.
fn write_zone(path: &Path, serial: u32, records: u32, is_changed: impl Fn(u32) -> bool) {
    let mut out = BufWriter::new(fs::File::create(path).unwrap());
    let mut text = format!("$TTL 60\n@ SOA ns h {serial} 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n");
    for number in 0..records {
        let last = if is_changed(number) { 2 } else { 1 };
        let [_, a, b, c] = number.to_be_bytes();
        writeln!(text, "h{number} A {}.{a}.{b}.{c}", 10 + last).unwrap();
        out.write_all(text.as_bytes()).unwrap();
        text.clear();
    }
    out.write_all(text.as_bytes()).unwrap();
}

/// A client of the server.
fn client(server: SocketAddr) -> UdpSocket {
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(server).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    client
}

/// Asks for the address of a name of the large zone.
fn ask_address(client: &UdpSocket, number: u32) -> u32 {
    let name: Name = format!("h{number}.large.test").parse().unwrap();
    let header = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0";
    client.send(&[&header[..], name.as_wire(), &[0, 1, 0, 1]].concat()).unwrap();
    let mut reply = [0; 512];
    let len = client.recv(&mut reply).unwrap();
    u32::from_be_bytes(*reply[..len].last_chunk().unwrap())
}

/// Prints the median, the 99th percentile and the longest of sorted times.
fn print_times(what: &str, times: &[Duration]) {
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    let (median, most, longest) = (at(50), at(99), at(100));
    println!("{what}: median {median:.1?}, p99 {most:.1?}, longest {longest:.1?}; {}", times.len());
}

/// CPU time that the process has used, threads that have ended included.
fn cpu() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit(") ").next().unwrap().split(' ').skip(11).take(2);
    let ticks: u64 = fields.map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(10 * ticks) // Linux says that there are 100 a second
}

/// Octets of the process's memory.
fn rss() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Octets as text.
fn mebibytes(octets: u64) -> String {
    format!("{} MiB", octets >> 20)
}
