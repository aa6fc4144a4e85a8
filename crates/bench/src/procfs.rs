//! What the kernel knows of processes and the machine: `/proc`.
//!
//! A server is a process with all its descendants, so everything here is summed over the tree.
//! A process that ends while it is looked at counts as nothing.

use std::collections::HashSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

/// Ticks per second in `/proc`: `USER_HZ`, 100 on every architecture that Rust's std supports.
const TICKS_PER_SEC: f64 = 100.0;

/// What the processes of a tree have used since each began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// CPU time in the processes' own code.
    pub user_secs: f64,
    /// CPU time in the kernel on their behalf. The sum of both is exact to microseconds as long as
    /// no thread ends; how it is shared between them is known to 10 ms.
    pub system_secs: f64,
    /// Context switches of all threads, both kinds.
    pub context_switches: u64,
}

impl Usage {
    /// User and system time.
    pub fn cpu_secs(&self) -> f64 {
        self.user_secs + self.system_secs
    }

    /// Returns what was used since `earlier`; never negative, though processes may have ended
    /// meanwhile.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            user_secs: (self.user_secs - earlier.user_secs).max(0.0),
            system_secs: (self.system_secs - earlier.system_secs).max(0.0),
            context_switches: self.context_switches.saturating_sub(earlier.context_switches),
        }
    }
}

/// Returns the process and all its descendants.
pub fn tree(process: u32) -> Vec<u32> {
    let mut found = vec![process];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        for thread in numbers_in(&format!("/proc/{parent}/task")) {
            let children = read(&format!("/proc/{parent}/task/{thread}/children"));
            found.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
        next += 1;
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns what the tree below a process has used.
pub fn usage(process: u32) -> Usage {
    let mut usage = Usage::default();
    for process in tree(process) {
        let [user, system] = ticks(&read(&format!("/proc/{process}/stat")), OWN);
        let mut exact_secs = 0.0;
        for thread in numbers_in(&format!("/proc/{process}/task")) {
            exact_secs += run_secs(&read(&format!("/proc/{process}/task/{thread}/schedstat")));
            let status = read(&format!("/proc/{process}/task/{thread}/status"));
            usage.context_switches += field(&status, "voluntary_ctxt_switches:")
                + field(&status, "nonvoluntary_ctxt_switches:");
        }
        let (user, system) = refined(user, system, exact_secs);
        usage.user_secs += user;
        usage.system_secs += system;
    }
    usage
}

/// CPU time of the children of this process that have ended and been waited for, and of all below
/// them; known to 10 ms.
pub fn reaped_secs() -> f64 {
    ticks(&read("/proc/self/stat"), REAPED).iter().sum::<u64>() as f64 / TICKS_PER_SEC
}

/// Returns what the tree below a process has used, with its processes that have ended and been
/// waited for, of which CPU time is known to 10 ms and nothing else: some servers work in processes
/// that they begin anew.
pub fn usage_with_ended(process: u32) -> Usage {
    let mut usage = usage(process);
    for process in tree(process) {
        let [user, system] = ticks(&read(&format!("/proc/{process}/stat")), REAPED);
        usage.user_secs += user as f64 / TICKS_PER_SEC;
        usage.system_secs += system as f64 / TICKS_PER_SEC;
    }
    usage
}

/// Proportional set size of the tree: memory that forked workers share counts once.
pub fn memory_octets(process: u32) -> u64 {
    let rollup = |process| read(&format!("/proc/{process}/smaps_rollup"));
    tree(process).into_iter().map(|process| field(&rollup(process), "Pss:") * 1024).sum()
}

/// Resident set size of the tree: what processes share counts for each of them, but nothing changes
/// when other processes begin or end to share it.
pub fn resident_octets(process: u32) -> u64 {
    let status = |process| read(&format!("/proc/{process}/status"));
    tree(process).into_iter().map(|process| field(&status(process), "VmRSS:") * 1024).sum()
}

/// The most memory that the processes of the tree have had at any time, resident sets.
pub fn memory_peak_octets(process: u32) -> u64 {
    let status = |process| read(&format!("/proc/{process}/status"));
    tree(process).into_iter().map(|process| field(&status(process), "VmHWM:") * 1024).sum()
}

/// Open descriptors of the tree.
pub fn descriptors(process: u32) -> usize {
    tree(process).into_iter().map(|process| numbers_in(&format!("/proc/{process}/fd")).len()).sum()
}

/// Lists all processes.
pub fn processes() -> Vec<u32> {
    numbers_in("/proc")
}

/// Whether a process runs; one that only waits to be noticed as ended does not.
pub fn is_alive(process: u32) -> bool {
    let stat = read(&format!("/proc/{process}/stat"));
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Returns when a process began, in ticks since the machine did; [`u64::MAX`] if it has ended.
pub fn began_ticks(process: u32) -> u64 {
    let [began, _] = ticks(&read(&format!("/proc/{process}/stat")), BEGAN);
    if began > 0 { began } else { u64::MAX }
}

/// Whether a process has one of these open, such as `socket:[17]`; false for another user's
/// process.
pub fn has_open(process: u32, names: &[String]) -> bool {
    let entries = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let mut targets = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.any(|target| target.to_str().is_some_and(|target| names.iter().any(|n| n == target)))
}

/// CPU time used since the machine started, on all CPUs: by processes of the machine, or of the
/// host that it is a guest of.
pub fn busy_secs() -> f64 {
    busy_ticks(&read("/proc/stat")) as f64 / TICKS_PER_SEC
}

/// CPUs of the machine that are on.
pub fn cpus() -> usize {
    let is_cpu = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
    read("/proc/stat").lines().filter(is_cpu).count().max(1)
}

/// Datagrams for this port that the kernel dropped on sockets of the tree, mostly for want of room
/// in their receive buffers. Sockets of other processes on the same port do not count.
pub fn socket_drops(process: u32, port: u16) -> u64 {
    let inodes: HashSet<u64> = tree(process).into_iter().flat_map(sockets_of).collect();
    drops_in(&udp_table(), port, &inodes)
}

/// Returns all UDP sockets of the machine, as the kernel lists them; for [`udp_entries`].
pub fn udp_table() -> String {
    ["/proc/net/udp", "/proc/net/udp6"].map(read).concat()
}

/// A UDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpEntry {
    /// Address that the socket is bound to.
    pub local: SocketAddr,
    /// Address that the socket is connected to; port 0 if it takes datagrams from any peer.
    pub peer: SocketAddr,
    /// Number of the socket among the kernel's files.
    pub inode: u64,
    /// Datagrams that the socket has dropped.
    pub drops: u64,
}

/// Returns the sockets of a table.
pub fn udp_entries(table: &str) -> impl Iterator<Item = UdpEntry> {
    table.lines().filter_map(|row| {
        let mut columns = row.split_ascii_whitespace();
        let local = parse_address(columns.nth(1)?)?;
        let peer = parse_address(columns.next()?)?;
        let inode = columns.nth(6)?.parse().ok()?;
        let drops = columns.last()?.parse().ok()?;
        Some(UdpEntry { local, peer, inode, drops })
    })
}

/// Reads an address: words of 32 bits in hexadecimal as they lie in memory, a colon, the port.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(ip.get(at..at + 8)?, 16).ok();
    let octets = |at: usize| Some(word(at)?.to_ne_bytes());
    let ip: IpAddr = match ip.len() {
        8 => Ipv4Addr::from(octets(0)?).into(),
        32 => {
            let mut all = [0; 16];
            for part in 0..4 {
                all[part * 4..][..4].copy_from_slice(&octets(part * 8)?);
            }
            Ipv6Addr::from(all).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

/// Inodes of the sockets that a process has open.
fn sockets_of(process: u32) -> Vec<u64> {
    let descriptors = numbers_in(&format!("/proc/{process}/fd")).into_iter();
    let targets =
        descriptors.filter_map(|fd| fs::read_link(format!("/proc/{process}/fd/{fd}")).ok());
    let inode = |target: PathBuf| {
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    targets.filter_map(inode).collect()
}

/// Returns a file of `/proc`, empty if its process has ended.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Returns the entries of a folder of `/proc` whose names are numbers.
fn numbers_in(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the number behind a label at the start of a line, 0 without one.
fn field(text: &str, label: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(label)).unwrap_or_default();
    value.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// User and system time in `/proc/PID/stat`.
const OWN: usize = 14;
/// Place of the CPU times of children that were waited for.
const REAPED: usize = 16;
/// When the process began, and the size of its memory.
const BEGAN: usize = 22;

/// Two neighbours in `/proc/PID/stat`, counted from 1 as in proc(5), from 3 on.
fn ticks(stat: &str, field: usize) -> [u64; 2] {
    // The second field is the program's name in brackets and may hold anything, brackets too.
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut fields = after_name.split_whitespace().skip(field - 3);
    let mut next = || fields.next().and_then(|ticks| ticks.parse().ok()).unwrap_or_default();
    [next(), next()]
}

/// CPU time in `/proc/PID/task/TID/schedstat`; 0 if the kernel does not count it.
fn run_secs(schedstat: &str) -> f64 {
    let nanos = schedstat.split_whitespace().next().and_then(|nanos| nanos.parse::<u64>().ok());
    nanos.unwrap_or_default() as f64 / 1e9
}

/// User and system time of a process in seconds: the exact time of its threads, in the proportion
/// of the ticks. Ticks alone know of threads that have ended; they count when more is missing than
/// what two roundings of a tick explain.
fn refined(user_ticks: u64, system_ticks: u64, exact_secs: f64) -> (f64, f64) {
    let ticks = user_ticks + system_ticks;
    let (ticks_secs, rounding_secs) = (ticks as f64 / TICKS_PER_SEC, 2.0 / TICKS_PER_SEC);
    let secs = if exact_secs + rounding_secs < ticks_secs { ticks_secs } else { exact_secs };
    let user_share = if ticks == 0 { 0.5 } else { user_ticks as f64 / ticks as f64 };
    (secs * user_share, secs * (1.0 - user_share))
}

/// User, nice, system, irq, softirq and steal time in the first line of `/proc/stat`: neither idle
/// nor waiting for a disk.
fn busy_ticks(stat: &str) -> u64 {
    let fields: Vec<u64> = stat
        .lines()
        .next()
        .into_iter()
        .flat_map(str::split_whitespace)
        .skip(1)
        .map(|ticks| ticks.parse().unwrap_or_default())
        .collect();
    [0, 1, 2, 5, 6, 7].iter().filter_map(|&index| fields.get(index)).sum()
}

/// Returns what sockets on this port with these inodes have dropped.
fn drops_in(table: &str, port: u16, inodes: &HashSet<u64>) -> u64 {
    let is_ours = |entry: &UdpEntry| entry.local.port() == port && inodes.contains(&entry.inode);
    udp_entries(table).filter(is_ours).map(|entry| entry.drops).sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::net::UdpSocket;
    use std::process::{Command, Stdio, id};
    use std::time::{Duration, Instant};

    #[test]
    fn a_program_name_with_brackets_and_blanks_does_not_move_the_fields() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 10 0 0 0 123 45 6 7 20 0 1 0 99";
        assert_eq!(ticks(stat, OWN), [123, 45]);
        assert_eq!(ticks(stat, REAPED), [6, 7]);
        assert_eq!(ticks(stat, BEGAN), [99, 0]);
        assert_eq!(ticks("", OWN), [0, 0]);
    }

    #[test]
    fn exact_time_is_shared_as_ticks_are_unless_threads_have_ended() {
        assert_eq!(run_secs("2500000000 17 4\n"), 2.5);
        assert_eq!(run_secs(""), 0.0);
        assert_eq!(refined(100, 300, 4.007_812_5), (1.001_953_125, 3.005_859_375));
        assert_eq!(refined(100, 300, 3.5), (1.0, 3.0));
        assert_eq!(refined(0, 0, 0.002), (0.001, 0.001));
    }

    #[test]
    fn time_that_the_host_took_is_taken_and_waiting_is_not() {
        assert_eq!(busy_ticks("cpu  1 2 4 1000 1000 8 16 32 0 0\ncpu0 1 1"), 63);
    }

    #[test]
    fn drops_are_summed_over_sockets_with_the_port_and_the_inodes() {
        let table = "  sl  local_address rem_address   st ... drops\n\
            1: 0100007F:14B4 00000000:0000 07 0:0 0:0 0 0 0 71 2 x 5\n\
            2: 0100007F:14B4 00000000:0000 07 0:0 0:0 0 0 0 72 2 x 7\n\
            3: 00000000:14B4 00000000:0000 07 0:0 0:0 0 0 0 73 2 x 50\n\
            4: 0100007F:14B5 00000000:0000 07 0:0 0:0 0 0 0 71 2 x 100\n";
        assert_eq!(drops_in(table, 5300, &[71, 72].into()), 12);
    }

    #[test]
    fn an_address_of_six_is_read_in_words() {
        let text = "00000000000000000000000001000000:14E9";
        assert_eq!(parse_address(text), Some("[::1]:5353".parse().unwrap()));
    }

    #[test]
    fn a_socket_of_ours_is_found_with_what_it_dropped() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = receiver.local_addr().unwrap();
        let drops = || socket_drops(id(), address.port());
        assert_eq!(drops(), 0);
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let limit = Instant::now() + Duration::from_secs(10);
        while drops() == 0 && Instant::now() < limit {
            for _ in 0..1000 {
                let _ = sender.send_to(&[0; 1000], address);
            }
        }
        assert!(drops() > 0);
    }

    #[test]
    fn work_of_a_grandchild_belongs_to_the_tree() {
        let script = "sh -c 'while :; do :; done' & wait";
        let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let limit = Instant::now() + Duration::from_secs(20);
        while usage(child.id()).cpu_secs() < 0.1 && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(20));
        }
        let (processes, used) = (tree(child.id()), usage(child.id()));
        for process in processes.iter().rev() {
            let _ = Command::new("kill").args(["-KILL", &process.to_string()]).status();
        }
        child.wait().unwrap();
        assert_eq!(processes.len(), 2);
        assert!(used.cpu_secs() >= 0.1);
        assert!(busy_secs() > 0.1);
    }

    #[test]
    fn work_of_a_child_that_has_ended_belongs_to_the_tree() {
        let script = "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; read line";
        let mut command = Command::new("sh");
        let mut child = command.args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap();
        let limit = Instant::now() + Duration::from_secs(20);
        // Less than nothing if the process itself has worked between the two looks.
        let used = |id| usage_with_ended(id).cpu_secs() - usage(id).cpu_secs();
        while used(child.id()) <= 0.0 && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(20));
        }
        let used = used(child.id());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(used > 0.0);
    }

    #[test]
    fn a_child_began_after_its_parent_and_one_that_has_ended_never_did() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let (own, other) = (began_ticks(id()), began_ticks(child.id()));
        assert!(0 < own && own <= other && other < u64::MAX, "{own} {other}");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(began_ticks(child.id()), u64::MAX);
    }

    #[test]
    fn a_process_that_ended_is_not_alive_before_it_is_reaped() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert!(is_alive(child.id()) && processes().contains(&child.id()));
        child.kill().unwrap();
        let limit = Instant::now() + Duration::from_secs(10);
        while is_alive(child.id()) && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!is_alive(child.id()));
        child.wait().unwrap();
        assert!(!is_alive(child.id()));
    }

    #[test]
    fn this_process_has_memory_descriptors_and_context_switches() {
        assert!(memory_octets(id()) > 1 << 20);
        assert!(resident_octets(id()) >= memory_octets(id()));
        assert!(descriptors(id()) >= 3);
        std::thread::sleep(Duration::from_millis(1));
        assert!(usage(id()).context_switches > 0);
    }
}
