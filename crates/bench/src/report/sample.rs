//! A run with figures made up for tests of reports.

use crate::data::{
    Cell, CpusUsed, Environment, FORMAT, Latency, LoadPoint, LoadShare, Method, PublishedStandIn,
    Round, Run, Server, Setup, SkippedServer, Start, Table, Traffic,
};
use std::collections::BTreeMap;

/// Servers with their CPU time per query in microseconds.
const COSTS: [(&str, f64); 6] = [
    ("reflector", 1.05),
    ("zonda", 1.44),
    ("knot", 1.36),
    ("nsd", 1.61),
    ("bind", 6.8),
    ("coredns", 17.3),
];

/// Two workloads, the second over four sizes; the last server answers otherwise in one cell.
pub fn run() -> Run {
    let mut cells = Vec::new();
    for threads in ["1", "2"] {
        let place = BTreeMap::from([("threads".to_owned(), threads.to_owned())]);
        cells.extend(COSTS.iter().map(|(name, cost)| cell(name, "dino", &place, *cost, 1)));
    }
    for zones in [1_u64, 1_000, 100_000, 1_000_000] {
        let place = BTreeMap::from([("zones".to_owned(), zones.to_string())]);
        let more = 0.3 * (zones as f64).log10() / 6.0;
        cells.extend(
            COSTS.iter().map(|(name, cost)| cell(name, "scale", &place, cost + more, zones)),
        );
    }
    if let Some(odd) = cells.last_mut() {
        odd.unranked = Some("answers 12 % REFUSED, its peers none".to_owned());
    }
    Run {
        format: FORMAT,
        suite: "dinodns-coredns".to_owned(),
        report: None,
        title: "100 odd of 200 zones <made up for tests>".to_owned(),
        began_unix_secs: 1_780_000_000,
        took_secs: 754.2,
        environment: environment(),
        method: Method {
            seconds: 5.0,
            rounds: 5,
            warm_up_secs: 1.0,
            pace: "batch".to_owned(),
            server_cpus: vec![0],
            load_cpus: vec![1],
            foreign_cpu_max: 0.05,
        },
        servers: COSTS.iter().map(|(name, _)| server(name)).collect(),
        skipped: vec![SkippedServer {
            server: "dinodns".to_owned(),
            reason: "npm is not installed: apt-get install npm".to_owned(),
        }],
        cells,
        published: vec![published()],
        left_out: Vec::new(),
        unfinished_of: None,
    }
}

/// Makes a sample machine.
fn environment() -> Environment {
    Environment {
        cpu: "Example CPU @ 2.50 GHz".to_owned(),
        cpus: 2,
        memory_octets: 8 << 30,
        kernel: "Linux 6.1.0".to_owned(),
        system: "Debian GNU/Linux 12 (bookworm)".to_owned(),
        bench: "0.1.0".to_owned(),
        command: ["zonda", "bench", "suite", "dinodns-coredns"].map(str::to_owned).to_vec(),
    }
}

/// Returns a server and how it was started.
fn server(name: &str) -> Server {
    let setup = Setup {
        purpose: "dino threads 1".to_owned(),
        command: vec![format!("/usr/sbin/{name}"), "-c".to_owned(), format!("{name}.conf")],
        files: vec![(format!("{name}.conf"), "listen = \"127.0.0.1\" # <&>\n".repeat(4))],
    };
    Server {
        name: name.to_owned(),
        version: "1.2.3".to_owned(),
        is_floor: name == "reflector",
        setups: vec![setup],
    }
}

/// Five rounds that differ by 2 % to both sides.
fn cell(
    name: &str,
    workload: &str,
    place: &BTreeMap<String, String>,
    cost: f64,
    size: u64,
) -> Cell {
    let rounds = (0..5).map(|number| round(number, cost)).collect();
    let own = |percent| LoadShare::Own { percent };
    let common = LoadShare::Common { percent: 50, server: "knot".to_owned() };
    let shares = [(0.5, own(50)), (0.9, own(90)), (0.45, common)];
    let latency_at = shares.map(|(times, share)| LoadPoint {
        lateness: None,
        is_generator_late: false,
        share,
        rate: 600_000.0 * times,
        traffic: traffic(2_000_000),
        latency: latency(cost * (20.0 + 10.0 / (1.05 - times))),
        cpu_micros_per_query: cost * 1.1,
    });
    let memory = if name == "reflector" { 2 << 20 } else { (12 << 20) + size * 420 };
    Cell {
        server: name.to_owned(),
        workload: workload.to_owned(),
        place: place.clone(),
        unit: None,
        aims: Vec::new(),
        cpus: Some(CpusUsed { server: 1, load: 1 }),
        rounds,
        discarded: 1,
        unranked: None,
        latency_at: latency_at.to_vec(),
        start: Some(Start {
            ready_secs: 0.02 + size as f64 * 4e-6,
            cpu_secs: 0.01,
            memory_octets: memory,
            memory_peak_octets: Some(memory + (memory >> 2)),
        }),
    }
}

/// Returns a round at saturation.
fn round(number: usize, cost: f64) -> Round {
    let noise = 1.0 + (number as f64 - 2.0) * 0.01;
    let completed = (5e6 / cost / noise) as u64;
    let cpu = completed as f64 * cost * noise / 1e6;
    Round {
        number,
        seconds: 5.0,
        traffic: traffic(completed),
        latency: latency(cost * 80.0 * noise),
        cpu_user_secs: cpu * 0.3,
        cpu_system_secs: cpu * 0.7,
        load_cpu_secs: 4.2,
        context_switches: 1200,
        memory_octets: 14 << 20,
        memory_peak_octets: None,
        foreign_cpu: 0.01,
    }
}

/// Returns all answered but two.
fn traffic(completed: u64) -> Traffic {
    let rcodes = BTreeMap::from([("NOERROR".to_owned(), completed)]);
    Traffic { sent: completed + 2, completed, lost: 2, rcodes, ..Traffic::default() }
}

/// Returns a long tail over a median.
fn latency(median: f64) -> Latency {
    let shares = [(50.0, 1.0), (90.0, 1.3), (99.0, 2.1), (99.9, 4.5), (99.99, 11.0)];
    Latency {
        min: median * 0.4,
        mean: median * 1.08,
        deviation: median * 0.3,
        max: median * 30.0,
        percentiles: shares.map(|(name, times)| (name, median * times)).to_vec(),
    }
}

/// Returns a table like the one that the suite repeats.
fn published() -> Table {
    let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
    Table {
        title: "1 CPU".to_owned(),
        source: "An example, measured on nothing".to_owned(),
        columns: row(["Server", "Queries Sent", "QPS", "Average Latency (s)"]),
        rows: vec![
            row(["CoreDNS", "100", "10", "0.005"]),
            row(["DinoDNS", "90", "9 (-10 %)", "0.006 (+20 %)"]),
        ],
        beside: ["coredns", "dinodns"].map(beside).to_vec(),
    }
}

/// Returns a server with one thread.
fn beside(server: &str) -> PublishedStandIn {
    PublishedStandIn {
        server: Some(server.to_owned()),
        workload: "dino".to_owned(),
        place: BTreeMap::from([("threads".to_owned(), "1".to_owned())]),
    }
}
