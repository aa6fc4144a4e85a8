//! TTLs: the time until the earliest change of state that probes could bring, of members that both
//! servers really probe.

use super::beside::{Configurations, ServerPair, ZONE};
use super::clients::Answers;
use std::net::{Ipv4Addr, TcpListener};
use std::thread;
use std::time::Duration;
use zonda_testkit::process::free_port;

/// Addresses on which connections are accepted.
const UP: [&str; 2] = ["127.0.9.1", "127.0.9.2"];
/// Addresses on which they are refused.
const DOWN: [&str; 2] = ["127.0.9.101", "127.0.9.102"];
/// Half seconds until probes must have found the states of all members.
const STEADY_TRIES: usize = 80;

/// A service type of gdnsd and the check of a pool that mean the same: three failures in a row
/// bring a member down, and two successes up, so that a member that is up may change after three
/// intervals, and one that is down after two.
#[derive(Clone, Copy)]
struct Check {
    name: &'static str,
    interval_secs: u32,
}

const FAST: Check = Check { name: "fast", interval_secs: 2 };
const SLOW: Check = Check { name: "slow", interval_secs: 4 };

impl Check {
    fn service_type(self, port: u16) -> String {
        let Self { name, interval_secs } = self;
        format!(
            "  {name} => {{ plugin => tcp_connect, port => {port}, interval => {interval_secs}, \
             timeout => 1, up_thresh => 2, down_thresh => 3, ok_thresh => 1 }}\n"
        )
    }

    fn keys(self, port: u16) -> String {
        let seconds = self.interval_secs;
        format!(
            "check = {{ tcp = {port}, interval = \"{seconds}s\", timeout = \"1s\", rise = 2, \
             fall = 3 }}"
        )
    }
}

/// A name, and the TTLs that Zonda and gdnsd must give.
struct Expected {
    name: &'static str,
    ours: u32,
    theirs: u32,
}

/// Configurations whose names have members that are probed on a port.
struct Builder {
    configurations: Configurations,
    expected: Vec<Expected>,
    port: u16,
}

impl Builder {
    fn new(port: u16) -> Self {
        let service_types = [FAST, SLOW].map(|check| check.service_type(port)).concat();
        let configurations = Configurations { service_types, ..Configurations::default() };
        Self { configurations, expected: Vec::new(), port }
    }

    /// A resource of `multifo` and the pool that means the same.
    fn multifo(&mut self, name: &str, check: Check, members: &[&str], ttls: (u32, u32)) {
        let labels = members.iter().enumerate().map(|(number, it)| format!("m{number} => {it}"));
        let labels = labels.collect::<Vec<_>>().join(", ");
        let text =
            format!("{name} => {{ service_types => {}, up_thresh => 0.01, {labels} }}", check.name);
        self.configurations.resource("multifo", &text);
        let keys = format!("answers = \"all\"\n{}", check.keys(self.port));
        let members: Vec<String> =
            members.iter().map(|it| format!("{{ address = \"{it}\" }}")).collect();
        self.configurations.pool(name, ttls, &keys, &members);
    }

    /// A name that such a resource answers for, with one TTL from both.
    fn all_up(
        &mut self,
        name: &'static str,
        check: Check,
        members: &[&str],
        (ttls, expected): ((u32, u32), u32),
    ) {
        self.multifo(name, check, members, ttls);
        self.configurations.steer(name, ttls, &format!("DYNA multifo!{name}"));
        self.expected.push(Expected { name, ours: expected, theirs: expected });
    }

    /// A name that one of two members answers for.
    fn simplefo(&mut self, name: &'static str, [first, second]: [&str; 2], expected: [u32; 2]) {
        let text = format!(
            "{name} => {{ service_types => fast, primary => {first}, secondary => {second} }}"
        );
        self.configurations.resource("simplefo", &text);
        let keys = format!("choose = [\"failover\"]\n{}", FAST.keys(self.port));
        let members = [(first, 1), (second, 2)]
            .map(|(it, rank)| format!("{{ address = \"{it}\", priority = {rank} }}"));
        self.configurations.pool(name, (60, 1), &keys, &members);
        self.configurations.steer(name, (60, 1), &format!("DYNA simplefo!{name}"));
        let [ours, theirs] = expected;
        self.expected.push(Expected { name, ours, theirs });
    }

    /// A name that the first of two pools with a member that is up answers for.
    fn metafo(&mut self, name: &'static str, pools: [(Check, &str); 2], expected: [u32; 2]) {
        for ((check, member), centre) in pools.into_iter().zip(["a", "b"]) {
            self.multifo(&format!("{name}{centre}"), check, &[member], (60, 1));
        }
        let text = format!(
            "{name} => {{ datacenters => [ a, b ], dcmap => {{ a => %multifo!{name}a, \
             b => %multifo!{name}b }} }}"
        );
        self.configurations.resource("metafo", &text);
        let members = ["a", "b"]
            .iter()
            .zip(1..)
            .map(|(centre, rank)| format!("{{ pool = \"{name}{centre}\", priority = {rank} }}"));
        let members: Vec<String> = members.collect();
        self.configurations.pool(name, (60, 1), "choose = [\"failover\"]", &members);
        self.configurations.steer(name, (60, 1), &format!("DYNA metafo!{name}"));
        let [ours, theirs] = expected;
        self.expected.push(Expected { name, ours, theirs });
    }
}

/// Accepts connections on the addresses that are up, at one port.
fn listen(port: u16) {
    for address in UP {
        let listener = TcpListener::bind((address.parse::<Ipv4Addr>().unwrap(), port)).unwrap();
        thread::spawn(move || listener.incoming().for_each(drop));
    }
}

/// The TTLs of Zonda's and gdnsd's answers for the address of a name.
fn ttls(beside: &ServerPair, name: &str) -> [u32; 2] {
    let answers = Answers::of(beside, &format!("{name}.{ZONE}"), "A", None);
    [answers.ours, answers.theirs].map(|reply| reply.answer[0].ttl)
}

#[test]
fn real_peers_agree_that_a_ttl_is_the_time_until_the_earliest_change_of_state() {
    let port = free_port();
    listen(port);
    let mut builder = Builder::new(port);
    builder.all_up("both-up", FAST, &UP, ((60, 1), 6));
    builder.all_up("one-up", FAST, &[UP[0], DOWN[0]], ((60, 1), 4));
    builder.all_up("none-up", FAST, &DOWN, ((60, 1), 4));
    builder.all_up("slow-up", SLOW, &UP, ((60, 1), 12));
    builder.all_up("slow-down", SLOW, &DOWN, ((60, 1), 8));
    builder.all_up("at-most", SLOW, &UP, ((7, 1), 7));
    builder.all_up("at-least", FAST, &UP, ((60, 10), 10));
    builder.simplefo("primary", UP, [6, 6]);
    builder.simplefo("secondary", [DOWN[0], UP[0]], [4, 4]);
    builder.simplefo("neither", DOWN, [4, 4]);
    builder.metafo("first", [(FAST, UP[0]), (SLOW, UP[1])], [6, 6]);
    // The first of them is down, and could be up before the second one can be down.
    builder.metafo("next", [(FAST, DOWN[0]), (SLOW, UP[0])], [4, 4]);
    builder.metafo("later", [(SLOW, DOWN[0]), (FAST, UP[0])], [6, 6]);
    // gdnsd does not look at what comes behind the member that answers. A pool has one TTL, which
    // counts all of its members: it may be shorter than it needs to be, and never longer.
    builder.simplefo("spare-down", [UP[0], DOWN[0]], [4, 6]);
    builder.metafo("spare-fast", [(SLOW, UP[0]), (FAST, UP[1])], [6, 12]);
    let beside = ServerPair::start(&builder.configurations);
    let is_so = |it: &Expected| ttls(&beside, it.name) == [it.ours, it.theirs];
    let differing = || -> Vec<String> {
        let differing = builder.expected.iter().filter(|it| !is_so(it));
        let text = |it: &Expected| format!("{}: {:?}", it.name, ttls(&beside, it.name));
        differing.map(text).collect()
    };
    let steady = || {
        (0..10).all(|_| {
            thread::sleep(Duration::from_millis(200));
            differing().is_empty()
        })
    };
    for _ in 0..STEADY_TRIES {
        if differing().is_empty() && steady() {
            return;
        }
        thread::sleep(Duration::from_millis(500));
    }
    panic!("TTLs of Zonda and of gdnsd that are not as expected: {:?}", differing());
}
