//! How many anonymous pages the server takes on one CPU. Pages of files are not counted, nor are
//! the copies of those into which the loader writes addresses: a build without optimisation has
//! other code, and more of them.

use super::server::{BINARY, wait_until, zone};
use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use zonda_testkit::process::{Folder, Process, required, start_on_free_port};
use zonda_testkit::upstream::{Reply, always, say};
use zonda_testkit::{Question, Upstream, ask};

/// The zones that are served.
const ZONES: [&str; 5] = ["a.example", "b.example", "c.example", "d.example", "e.example"];
/// Most KiB with these zones and a few answered queries: a tenth more than the 796 that a start
/// took each time. An engine more, with its tables touched, or counters for thousands of zones are
/// beyond it.
const IDLE_KIB_MAX: u64 = 880;
/// Names that are kept.
const NAMES: usize = 10_000;
/// Most KiB with as many.
const KEPT_KIB_MAX: u64 = 5 * 1024 + 256;

/// A server on one CPU.
struct Server {
    process: Process,
    address: SocketAddr,
    _folder: Folder,
}

impl Server {
    /// Starts one with the zones and these keys; nothing without `taskset`.
    fn start(keys: &str) -> Option<Self> {
        let taskset = required("taskset")?;
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
        let cpu = cpus.trim().split(['-', ',']).next().unwrap();
        let folder = Folder::new("memory");
        let admin = "[admin]\naddress = \"off\"\nsocket = \"off\"\n";
        let config = folder.write("zonda.toml", format!("version = 1\n{keys}\n{admin}"));
        let zone = folder.write("zone", zone(1));
        let (process, address) = start_on_free_port("zonda", &folder, &ZONES, |_, port| {
            let mut command = Command::new(&taskset);
            command.args(["-c", cpu, BINARY, "serve", "--config"]).arg(&config);
            command.args(["--listen", &format!("127.0.0.1:{port}")]);
            let zones = ZONES.map(|name| format!("{name}={}", zone.display()));
            command.args(zones.iter().flat_map(|zone| ["--zone", zone]));
            command
        });
        Some(Self { process, address, _folder: folder })
    }

    /// KiB of its anonymous pages that are of no file.
    fn kib(&self) -> u64 {
        let leader = self.process.id(); // `timeout`, which has the server as its only child
        let child = fs::read_to_string(format!("/proc/{leader}/task/{leader}/children")).unwrap();
        let mappings = fs::read_to_string(format!("/proc/{}/smaps", child.trim())).unwrap();
        let (mut is_of_file, mut sum) = (false, 0);
        for line in mappings.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [range, _, _, _, inode, ..] if range.contains('-') => is_of_file = inode != "0",
                ["Anonymous:", kib, "kB"] if !is_of_file => sum += kib.parse::<u64>().unwrap(),
                _ => {}
            }
        }
        sum
    }

    fn rcode(&self, name: &str, rtype: &str) -> String {
        ask(self.address, &Question::new(name, rtype).recursive()).unwrap().rcode_text()
    }
}

#[test]
fn a_handful_of_zones_takes_little_memory() {
    let Some(server) = Server::start("") else { return };
    let ask_all = || {
        for zone in ZONES {
            assert_eq!(server.rcode(&format!("www.{zone}"), "TXT"), "NOERROR");
            assert_eq!(server.rcode(&format!("no.{zone}"), "A"), "NXDOMAIN");
        }
    };
    ask_all();
    wait_until("what the start needed is given back", || server.kib() < IDLE_KIB_MAX);
    ask_all();
    let kib = server.kib();
    assert!(kib < IDLE_KIB_MAX, "{kib} KiB");
}

#[test]
fn ten_thousand_kept_names_take_what_their_answers_need() {
    let upstream = Upstream::start([always().then([say(Reply::address(7))])]);
    let forward = format!("name = \".\"\n[zone.forward]\nto = [\"{}\"]", upstream.address);
    let Some(server) = Server::start(&format!("[[zone]]\n{forward}")) else { return };
    for number in 0..NAMES {
        assert_eq!(server.rcode(&format!("host{number:05}.example.net"), "A"), "NOERROR");
    }
    assert!(upstream.asked() >= NAMES, "{}", upstream.asked());
    let asked = upstream.asked();
    assert_eq!(server.rcode("host00000.example.net", "A"), "NOERROR");
    assert_eq!(upstream.asked(), asked, "it was kept");
    let kib = server.kib();
    assert!(kib < KEPT_KIB_MAX, "{kib} KiB");
}
