//! Every file in `scenarios/` is a set of zones, questions about them, and the replies in full.
//!
//! ```text
//! zone example.org            a zone; its master file follows, up to a line `end`
//! cluster cluster.local pods=verified reverse=10.in-addr.arpa   the names of a cluster, whose
//!                             objects follow (see `cluster_objects`), up to a line `end`
//! set cross-zone              a setting, for the rest of the file
//! forward                     the root is forwarded
//! upstream www.example.net A  what upstreams say of a name and type; records follow, each without
//!                             its owner, up to a line `end`. No answer of theirs has TC set: one
//!                             that was truncated is had over TCP
//! steer www.example.org A servfail 192.0.2.1 | !192.0.2.2   a name of the last zone, steered to a
//!                             pool: what happens when all members are down, the data of each,
//!                             `!` before those of one that is down, `pool N` for another pool
//!
//! case its_name_is_a_sentence   rfc4592#2.2.2
//! ask b.example.org A +do       also: +tcp +size=N +edns=N +norec +cookie=HEX +subnet=HEX +nsid
//!                             +opcode=N +reason +since=N
//! > NOERROR aa                  the reply: code and flags, then a line for each record; of a
//!                             transfer, all messages
//! flood 20 h$.example.org A     asks so many times within a second, `$` being the number
//! > 20 NOERROR aa               how often each reply's first line was given
//! turns a.example.org A | b.example.org A   asks in turn, a hundred times each
//! > 50 a.example.org. 300 A 192.0.2.1       how often each record came first
//! ```
//!
//! `UPDATE=1 cargo test -p zonda-engine --test scenarios` writes the replies that are given now;
//! read the difference before you keep it.
#![allow(clippy::unwrap_used)]

mod cluster_objects;

use arc_swap::ArcSwap;
use cluster_objects::ScenarioCluster;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use zonda_balance::{Answers, Member, MemberState, Order, Pool, PoolPlan, Records, WhenAllDown};
use zonda_cache::Cache;
use zonda_engine::Reason;
use zonda_engine::access::{Access, AccessList, Network, TransferRule, TransferTerms};
use zonda_engine::counters::Counters;
use zonda_engine::gate::cookie::Secrets;
use zonda_engine::gate::rate::{RateSettings, RateTable};
use zonda_engine::steering::{PoolLabels, SteeredNames, SteeredSet, Steering};
use zonda_engine::zones::{ClusterNames, ClusterZone, Forward, Source, ZoneEntry, ZoneTable};
use zonda_engine::{
    DeferredQuery, Engine, Now, Outcome, Peer, Resumption, Settings, Snapshot, To, Transport,
    UpstreamAnswer, fetched_name,
};
use zonda_wire::message::Message;
use zonda_wire::query::flag;
use zonda_wire::rdata::from_text;
use zonda_wire::rdata::print::Presentation;
use zonda_wire::{Class, Ede, Name, Rcode, Section, Type};
use zonda_zone::{HashSeed, Zone, build, file};

const SEED: HashSeed = HashSeed(1);
const NOW: Now = Now::new(5_000_000_000, 1_000_000);

/// Checks one file.
fn check(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios").join(name);
    let expected = fs::read_to_string(&path).unwrap();
    let given = answer_all(&expected);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, given).unwrap();
    } else if given != expected {
        panic!("{}", difference(&expected, &given));
    }
}

/// The lines that differ, under the case they belong to.
fn difference(expected: &str, given: &str) -> String {
    let cases = |text: &str| -> Vec<(String, Vec<String>)> {
        let mut cases = vec![(String::new(), Vec::new())];
        for line in text.lines() {
            match line.strip_prefix("case ") {
                Some(name) => cases.push((name.to_owned(), Vec::new())),
                None => cases.last_mut().unwrap().1.push(line.to_owned()),
            }
        }
        cases
    };
    let mut text = "replies differ from the file (- file, + given):\n".to_owned();
    for ((name, before), (_, after)) in cases(expected).iter().zip(&cases(given)) {
        if before != after {
            writeln!(text, "case {name}").unwrap();
            before
                .iter()
                .filter(|it| !after.contains(it))
                .for_each(|it| writeln!(text, "- {it}").unwrap());
            after
                .iter()
                .filter(|it| !before.contains(it))
                .for_each(|it| writeln!(text, "+ {it}").unwrap());
        }
    }
    text
}

/// The file with every reply as it is given now.
fn answer_all(text: &str) -> String {
    let mut world = World::default();
    let mut given = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("> ") || line == ">" {
            continue; // made anew
        }
        writeln!(given, "{line}").unwrap();
        match line.split_once(' ') {
            Some((kind @ ("zone" | "cluster"), name)) => {
                let body: Vec<_> = lines.by_ref().take_while(|line| *line != "end").collect();
                body.iter().for_each(|line| writeln!(given, "{line}").unwrap());
                given.push_str("end\n");
                match kind {
                    "zone" => world.add_zone(name, &body.join("\n")),
                    _ => world.add_cluster(name, &body),
                }
            }
            Some(("upstream", question)) => {
                let body: Vec<_> = lines.by_ref().take_while(|line| *line != "end").collect();
                body.iter().for_each(|line| writeln!(given, "{line}").unwrap());
                given.push_str("end\n");
                world.add_upstream_answer(question, &body);
            }
            None if line == "forward" => world.add_forward(),
            Some(("set", setting)) => world.set(setting),
            Some(("steer", rule)) => world.steer(rule),
            Some(("ask", question)) => world.ask(question).lines().for_each(|line| {
                writeln!(given, "> {line}").unwrap();
            }),
            Some(("turns", questions)) => {
                world.turns(questions).iter().for_each(|(line, times)| {
                    writeln!(given, "> {times} {line}").unwrap();
                })
            }
            Some(("flood", flood)) => world.flood(flood).iter().for_each(|(line, times)| {
                writeln!(given, "> {times} {line}").unwrap();
            }),
            _ => {}
        }
    }
    given
}

/// Zones and settings so far.
#[derive(Default)]
struct World {
    entries: Vec<Arc<ZoneEntry>>,
    settings: Settings,
    /// Whether clients may transfer the zones that follow.
    allows_transfers: bool,
    /// Replies of one kind that a client gets in a second.
    rate: Option<u32>,
    steered: Vec<SteeredSet>,
    pools: Vec<Arc<PoolPlan>>,
    upstream_answers: UpstreamAnswers,
}

/// What upstreams say: the number of records and the octets of these, by the name in wire form and
/// lower case, and the type.
type UpstreamAnswers = BTreeMap<(Vec<u8>, Type), (u16, Vec<u8>)>;

impl World {
    fn add_zone(&mut self, name: &str, text: &str) {
        let apex: Name = name.parse().unwrap();
        let source = Source::Data(Arc::new(zone_of(&apex, text)));
        self.add_source(&apex, source);
    }

    /// Adds a zone of this source.
    fn add_source(&mut self, apex: &Name, source: Source) {
        let number = self.entries.len() as u32;
        let mut access = None;
        if self.allows_transfers {
            let transfers = TransferTerms {
                to: vec![TransferRule { network: None, key: None }],
                ..TransferTerms::default()
            };
            access = Some(Arc::new(AccessList { transfers, ..AccessList::open() }));
        }
        let entry = ZoneEntry::new(apex.to_lowercase(), source, access, number);
        self.entries.push(Arc::new(entry));
    }

    /// Has upstreams answer for all names that no zone has.
    fn add_forward(&mut self) {
        let (cache, overlays) = (Arc::new(Cache::new(1 << 20)), Vec::new());
        let forward = Forward { number: 7, cache, options: None, nxdomain_cut: true, overlays };
        self.add_source(&Name::root(), Source::Forward(Arc::new(forward)));
    }

    /// Adds what upstreams say of a name and type.
    fn add_upstream_answer(&mut self, question: &str, records: &[&str]) {
        let (name, rtype) = question.split_once(' ').unwrap();
        let (name, mut body) = (name.parse::<Name>().unwrap().to_lowercase(), Vec::new());
        for record in records {
            let words: Vec<&str> = record.splitn(3, ' ').collect();
            let (ttl, rtype): (u32, Type) = (words[0].parse().unwrap(), words[1].parse().unwrap());
            let data = from_text(rtype, words[2]).unwrap();
            let fixed =
                [&rtype.0.to_be_bytes()[..], &Class::IN.0.to_be_bytes(), &ttl.to_be_bytes()];
            body.extend([name.as_wire(), &fixed.concat()].concat());
            body.extend((data.len() as u16).to_be_bytes());
            body.extend(data);
        }
        let key = (name.as_wire().to_vec(), rtype.parse().unwrap());
        self.upstream_answers.insert(key, (records.len() as u16, body));
    }

    /// Adds the zones of a cluster.
    fn add_cluster(&mut self, options: &str, objects: &[&str]) {
        let mut it = ScenarioCluster::new(options, SEED);
        objects.iter().filter(|line| !line.is_empty()).for_each(|line| it.add(line));
        let mut zones = it.reverse.clone();
        zones.push(it.apex.clone());
        for name in zones {
            let names = match name == it.apex {
                true => ClusterNames::Services,
                false => ClusterNames::Addresses,
            };
            let text = it.builder.data_text(&name, it.changed, Some(it.own));
            let (data, cluster) = (Arc::new(zone_of(&name, &text)), it.builder.snapshot());
            let falls_through = it.falls_through;
            let (hosts_first, is_stale) = (false, false);
            let zone = ClusterZone { data, cluster, names, falls_through, hosts_first, is_stale };
            self.add_source(&name, Source::Cluster(Arc::new(zone)));
        }
    }

    fn set(&mut self, setting: &str) {
        let settings = &mut self.settings;
        match setting.split_once(' ').unwrap_or((setting, "")) {
            ("cross-zone", _) => settings.cross_zone = true,
            ("transfers", _) => self.allows_transfers = true,
            ("rotate", _) => settings.rotate = true,
            ("nsid", text) => settings.nsid = Some(text.as_bytes().into()),
            ("version", text) => settings.version = Some(text.into()),
            ("server-id", text) => settings.server_id = Some(text.into()),
            ("keepalive", text) => settings.keepalive = Some(text.parse().unwrap()),
            ("reasons", _) => {
                settings.reasons_to = Network::new([0; 4].into(), 0).into_iter().collect();
            }
            ("cookies", _) => {
                settings.cookies = Some(Secrets { current: [7; 16], accepted: Vec::new() });
            }
            ("client-subnet", "off") => settings.client_subnet = None,
            ("client-subnet", _) => settings.client_subnet = Settings::default().client_subnet,
            ("access", access) => {
                let otherwise = match access {
                    "drop" => Access::Drop,
                    "filter" => Access::Filter,
                    _ => Access::Refuse,
                };
                settings.listener_access =
                    vec![Some(AccessList { rules: Vec::new(), otherwise, ..AccessList::open() })];
            }
            ("rate", per_second) => self.rate = Some(per_second.parse().unwrap()),
            ("unavailable", name) => self.entries.push(Arc::new(ZoneEntry::new(
                name.parse().unwrap(),
                Source::Unavailable(Reason::ZoneUnavailable),
                None,
                self.entries.len() as u32,
            ))),
            _ => panic!("unknown setting {setting}"),
        }
    }

    /// Steers a name of the last zone to a pool of its own, which answers with all members.
    fn steer(&mut self, rule: &str) {
        let words: Vec<&str> = rule.splitn(4, ' ').collect();
        let rtype: Type = words[1].parse().unwrap();
        let when_all_down = match words[2] {
            "servfail" => WhenAllDown::ServFail,
            "refused" => WhenAllDown::Refused,
            "nodata" => WhenAllDown::NoData,
            number => WhenAllDown::Pool(number.parse().unwrap()),
        };
        let (mut members, mut rdatas, mut states) = (Vec::new(), Vec::new(), Vec::new());
        for data in words[3].split(" | ") {
            let (data, is_up) = data.strip_prefix('!').map_or((data, true), |data| (data, false));
            let pool = data.strip_prefix("pool ").map(|number| number.parse().unwrap());
            let rdata = || from_text(rtype, data).unwrap().into_boxed_slice();
            rdatas.push(pool.is_none().then(rdata));
            members.push(Member { identity: 0, weight: 1, priority: 1, pool, site: None });
            states.push(if is_up { MemberState::UP } else { MemberState::DOWN });
        }
        let (records, answers) = (vec![Records { rtype, rdatas }], Answers::All);
        let (filters, order) = (Vec::new(), Order::AsConfigured);
        let pool = Pool { members, filters, order, answers, when_all_down, records };
        self.steered.push(SteeredSet {
            name: words[0].parse().unwrap(),
            zone: self.entries.last().unwrap().apex.clone(),
            rtype,
            pool: self.pools.len() as u32,
        });
        self.pools.push(Arc::new(pool.compile(&states, 30, None)));
    }

    /// Asks a question until its answer is kept; all replies must be the same but for rotation.
    fn ask(&self, question: &str) -> String {
        let mut engine = self.engine();
        let asked = HandlerQuery::parse(question);
        let replies: Vec<_> = (0..4).map(|_| asked.send(&mut engine)).collect();
        if self.settings.rotate {
            return replies.join("--\n");
        }
        assert!(replies.iter().all(|it| *it == replies[0]), "{question}: a kept answer differs");
        replies[0].clone()
    }

    /// Asks many questions of one engine; how often each reply's first line is given.
    fn flood(&self, flood: &str) -> BTreeMap<String, u32> {
        let (times, question) = flood.split_once(' ').unwrap();
        let mut engine = self.engine();
        let mut replies = BTreeMap::new();
        for number in 0..times.parse::<u32>().unwrap() {
            let question = question.replace('$', &number.to_string());
            let reply = HandlerQuery::parse(&question).send(&mut engine);
            *replies.entry(reply.lines().next().unwrap().to_owned()).or_default() += 1;
        }
        replies
    }

    /// Asks several questions in turn, a hundred times each; how often each record comes first.
    fn turns(&self, questions: &str) -> BTreeMap<String, u32> {
        let mut engine = self.engine();
        let mut firsts = BTreeMap::new();
        for question in questions.split(" | ").cycle().take(100 * questions.split(" | ").count()) {
            let reply = HandlerQuery::parse(question).send(&mut engine);
            *firsts.entry(reply.lines().nth(1).unwrap().to_owned()).or_default() += 1;
        }
        firsts
    }

    /// An engine that knows the zones and settings so far, and no client yet.
    fn engine(&self) -> ScenarioEngine {
        let zones = ZoneTable::new(self.entries.clone(), SEED);
        let mut settings = self.settings.clone();
        settings.rate = self.rate.map(|per_second| {
            RateSettings::new(per_second, 1, 2, (24, 56), Vec::new(), RateTable::new(1024))
        });
        let snapshot = Snapshot {
            steering: (!self.pools.is_empty()).then(|| {
                let names = Arc::new(SteeredNames::new(&self.steered, SEED));
                let labels = (0..self.pools.len()).map(|number| PoolLabels {
                    pool: format!("p{number}").into(),
                    members: (0..9).map(|member| format!("m{member}").into()).collect(),
                });
                let labels = Some(labels.collect());
                Arc::new(Steering { names, pools: self.pools.clone().into(), labels })
            }),
            settings: Arc::new(settings),
            ..Snapshot::of(zones)
        };
        let snapshot = Arc::new(ArcSwap::from_pointee(snapshot));
        let engine = Engine::new(Arc::clone(&snapshot), Arc::<Counters>::default());
        ScenarioEngine { engine, snapshot, upstream_answers: self.upstream_answers.clone() }
    }
}

/// An engine, and the upstreams that it has.
struct ScenarioEngine {
    engine: Engine,
    snapshot: Arc<ArcSwap<Snapshot>>,
    upstream_answers: UpstreamAnswers,
}

impl ScenarioEngine {
    /// Answers a query, of so many octets in a buffer, as often as it has to wait: the replies.
    fn answer(&mut self, peer: &Peer, buffer: &mut [u8], len: usize) -> Vec<Vec<u8>> {
        let mut outcome = self.engine.answer(NOW, peer, buffer, len);
        loop {
            let deferral = match outcome {
                Outcome::Reply(octets) => return vec![buffer[..octets].to_vec()],
                Outcome::Silence => return Vec::new(),
                Outcome::Deferred(deferral) if deferral.to == To::Transfer => {
                    return self.messages();
                }
                Outcome::Deferred(deferral) => deferral,
            };
            let qtype = deferral.query.qtype;
            let end = usize::from(deferral.query.name_end);
            let own = buffer[12..end].to_ascii_lowercase();
            let name = match deferral.is_alias {
                false => own,
                true => {
                    let fetched = fetched_name(&self.snapshot.load(), &own, (qtype, None));
                    fetched.unwrap().1.as_wire().to_vec()
                }
            };
            let (count, body) = &self.upstream_answers[&(name.clone(), qtype)];
            let answer = UpstreamAnswer {
                name: &name,
                rcode: Rcode::NOERROR,
                counts: [*count, 0, 0],
                body,
                is_authentic: false,
                goes_on: false,
                reason: Reason::Forwarded,
                text: b"",
            };
            let (history, query) = (&deferral.history, Some(&deferral.query));
            let waiting = DeferredQuery { query, peer, history, buffer: &mut *buffer, len };
            outcome = self.engine.resume(NOW, waiting, Resumption::Upstream(&answer));
        }
    }

    /// The messages of the transfer that the last query has begun.
    fn messages(&mut self) -> Vec<Vec<u8>> {
        let mut transfer = self.engine.take_transfer().unwrap();
        let mut messages = Vec::new();
        loop {
            let mut message = Vec::new();
            match transfer.next(NOW, &mut message).unwrap() {
                true => messages.push(message.split_off(2)), // behind its length
                false => return messages,
            }
        }
    }
}

/// The zone of a master file.
fn zone_of(apex: &Name, text: &str) -> Zone {
    let (options, path) = (file::Options::default(), Path::new("zone"));
    let text = format!("{text}\n");
    let (records, diagnostics) = file::read_text(text.as_bytes(), path, apex, &options);
    assert!(!diagnostics.has_errors(), "{diagnostics}");
    build(apex, &records, SEED).unwrap()
}

/// A question and how it is asked.
struct HandlerQuery {
    message: Vec<u8>,
    transport: Transport,
}

impl HandlerQuery {
    fn parse(text: &str) -> Self {
        let mut words = text.split_whitespace();
        if let Some(hex) = text.strip_prefix("octets") {
            let (hex, tcp) = hex.strip_suffix(" +tcp").map_or((hex, false), |it| (it, true));
            let transport = if tcp { Transport::Tcp } else { Transport::Udp };
            return Self { message: octets(hex), transport };
        }
        let name: Name = words.next().unwrap().parse().unwrap();
        let (mut class, mut qtype) = (Class::IN, Type::A);
        let (mut flags, mut size, mut version, mut dnssec_ok) = (flag::RD, None, 0, false);
        let (mut options, mut transport, mut since) = (Vec::new(), Transport::Udp, None);
        for word in words {
            match word.split_once('=').unwrap_or((word, "")) {
                ("+do", _) => dnssec_ok = true,
                ("+tcp", _) => transport = Transport::Tcp,
                ("+norec", _) => flags &= !flag::RD,
                ("+cd", _) => flags |= flag::CD,
                ("+size", value) => size = Some(value.parse::<u16>().unwrap()),
                ("+edns", value) => version = value.parse().unwrap(),
                ("+opcode", value) => flags |= value.parse::<u16>().unwrap() << 11,
                ("+since", serial) => since = serial.parse::<u32>().ok(),
                ("+nsid", _) => options.extend([0, 3, 0, 0]),
                ("+reason", _) => options.extend([0, 15, 0, 2, 0, 0]),
                ("+keepalive", _) => options.extend([0, 11, 0, 0]),
                ("+unknown", _) => options.extend([0xff, 0, 0, 2, 1, 2]),
                ("+subnet", hex) => {
                    let subnet = octets(hex);
                    options.extend([0, 8, 0, subnet.len() as u8]);
                    options.extend(subnet);
                }
                ("+cookie", hex) => {
                    let cookie = octets(hex);
                    options.extend([0, 10, 0, cookie.len() as u8]);
                    options.extend(cookie);
                }
                ("CH", _) => class = Class::CH,
                ("HS", _) => class = Class::HS,
                (word, _) => qtype = word.parse().unwrap(),
            }
        }
        let mut message = vec![0x12, 0x34, (flags >> 8) as u8, flags as u8, 0, 1, 0, 0, 0, 0, 0, 0];
        message.extend(name.as_wire());
        message.extend(qtype.0.to_be_bytes());
        message.extend(class.0.to_be_bytes());
        if let Some(serial) = since {
            message[9] = 1;
            message.extend(b"\xc0\x0c\0\x06\0\x01\0\0\0\0\0\x16\0\0"); // SOA, of two roots
            message.extend([serial, 0, 0, 0, 0].map(u32::to_be_bytes).concat());
        }
        let with_edns = size.is_some() || dnssec_ok || version > 0 || !options.is_empty();
        if with_edns {
            message[11] = 1;
            message.extend([0, 0, 41]);
            message.extend(size.unwrap_or(1232).to_be_bytes());
            message.extend([0, version, u8::from(dnssec_ok) << 7, 0, 0, options.len() as u8]);
            message.extend(options);
        }
        Self { message, transport }
    }

    /// Sends it and prints the reply.
    fn send(&self, engine: &mut ScenarioEngine) -> String {
        let address = "192.0.2.99:4444".parse().unwrap();
        let peer = Peer::new(address, self.transport, 0);
        let mut buffer = vec![0xaa; 65_535];
        buffer[..self.message.len()].copy_from_slice(&self.message);
        let replies = engine.answer(&peer, &mut buffer, self.message.len());
        if replies.is_empty() {
            return "silence\n".to_owned();
        }
        let texts = replies.iter().map(|it| print(&Message::parse(it).unwrap(), it.len()));
        texts.collect()
    }
}

fn octets(hex: &str) -> Vec<u8> {
    let hex: String = hex.split_whitespace().collect();
    (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
}

/// Prints a reply: a line for the header, one for OPT, one for each record.
fn print(message: &Message, len: usize) -> String {
    let mut text = message.rcode().to_string();
    for (bit, name) in [
        (flag::AA, "aa"),
        (flag::TC, "tc"),
        (flag::RD, "rd"),
        (flag::RA, "ra"),
        (flag::AD, "ad"),
        (flag::CD, "cd"),
    ] {
        // RD is echoed from nearly every query; its absence is what is worth a word.
        match (bit, message.has(bit)) {
            (flag::RD, false) => text.push_str(" no-rd"),
            (flag::RD, true) | (_, false) => {}
            (_, true) => write!(text, " {name}").unwrap(),
        }
    }
    if message.opcode().0 != 0 {
        write!(text, " {}", message.opcode()).unwrap();
    }
    if message.questions.is_empty() {
        text.push_str(" no-question");
    }
    if len > 512 {
        text.push_str(" over-512");
    }
    text.push('\n');
    if let Some(opt) = &message.opt {
        write!(text, "opt {} version {}", opt.udp_bytes, opt.version).unwrap();
        if opt.dnssec_ok() {
            text.push_str(" do");
        }
        for (code, data) in &opt.options {
            match code {
                15 => {
                    let code = Ede(u16::from_be_bytes([data[0], data[1]]));
                    write!(text, " ede {} ({code})", code.0).unwrap();
                }
                _ => {
                    write!(text, " {code}=").unwrap();
                    data.iter().for_each(|octet| write!(text, "{octet:02x}").unwrap());
                }
            }
        }
        text.push('\n');
    }
    for (section, sign) in
        [(Section::Answer, ""), (Section::Authority, "auth "), (Section::Additional, "add  ")]
    {
        for record in message.section(section) {
            let data = Presentation { rtype: record.rtype, rdata: &record.rdata };
            let (owner, ttl, rtype) = (&record.owner, record.ttl, record.rtype);
            writeln!(text, "{sign}{owner} {ttl} {rtype} {data}").unwrap();
        }
    }
    text
}

/// One test for each file, so that a failure names it.
macro_rules! scenarios {
    ($($test:ident $file:literal,)*) => {
        $(#[test] fn $test() { check($file); })*

        #[test]
        fn every_file_of_scenarios_is_checked() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
            let files = fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name());
            let mut files: Vec<_> = files.map(|it| it.into_string().unwrap()).collect();
            files.sort();
            assert_eq!(files, [$($file),*]);
        }
    };
}

scenarios! {
    listeners_serve_whom_they_may "access.txt",
    additional_data_helps_and_never_hurts "additional.txt",
    alias_records_are_answered_with_addresses "alias-records.txt",
    chains_are_followed_within_the_server "chains.txt",
    the_network_that_a_client_tells_is_repeated "client-subnet.txt",
    names_for_outside_of_a_cluster_are_external_addresses "cluster-external.txt",
    names_of_several_clusters_are_those_of_imports "cluster-multicluster.txt",
    names_of_a_cluster_are_those_of_coredns "cluster-names.txt",
    options_change_the_names_of_a_cluster "cluster-options.txt",
    names_of_a_cluster_follow_its_specification "cluster-specification.txt",
    clusters_are_transferred_and_their_aliases_lead_to_upstreams "cluster-transfer.txt",
    zones_are_joined_when_told "cross-zone.txt",
    delegations_are_referred_to "delegation.txt",
    chains_of_wildcards_are_proven_link_by_link "dnssec-chains.txt",
    signed_zones_prove_what_they_say_by_nsec "dnssec-nsec.txt",
    signed_zones_prove_what_they_say_by_nsec3 "dnssec-nsec3.txt",
    extensions_are_answered_as_asked "edns.txt",
    the_server_says_who_it_is_if_it_may "identity.txt",
    what_signing_left_behind_is_not_sent "leftovers.txt",
    names_are_found_or_denied "lookup.txt",
    messages_that_are_no_queries_get_what_they_deserve "messages.txt",
    replies_of_one_kind_are_limited "rate.txt",
    reasons_are_told_to_clients_that_ask "reasons.txt",
    the_root_is_a_zone_like_any_other "root.txt",
    addresses_rotate_if_told_to "rotate.txt",
    records_of_a_set_are_told_apart "sets.txt",
    pools_choose_the_records_of_steered_names "steering.txt",
    what_does_not_fit_is_left_out_in_whole_sets "truncation.txt",
    wildcards_stand_for_names_that_do_not_exist "wildcard.txt",
    the_longest_matching_zone_answers "zones.txt",
}

#[test]
fn a_zone_with_an_ambiguous_owner_is_not_built() {
    let apex: Name = "example.org".parse().unwrap();
    let error = |more: &str| {
        let text = format!("$TTL 60\n@ SOA ns host 1 2 3 4 5\n@ NS ns\n{more}\n");
        let options = file::Options::default();
        let (records, _) = file::read_text(text.as_bytes(), Path::new("zone"), &apex, &options);
        build(&apex, &records, SEED).err().map(|error| error.to_string())
    };
    let alone =
        |what: &str| Some(format!("{what} must be alone, remove it or what stands beside it"));
    assert_eq!(error("a CNAME b\na TXT x"), alone("a.example.org. CNAME"));
    assert_eq!(error("a CNAME b\na CNAME c"), alone("a.example.org. CNAME"));
    assert_eq!(error("@ SOA ns host 2 2 3 4 5"), alone("example.org. SOA"));
    assert_eq!(error("a DNAME b\na DNAME c"), alone("a.example.org. DNAME"));
    assert_eq!(error("a DNAME b\na DNAME B\na TXT x"), None);
    assert_eq!(error("a ALIAS b\na ALIAS c"), alone("a.example.org. ALIAS"));
    assert_eq!(error("a ALIAS b\na CNAME c"), alone("a.example.org. CNAME"));
    assert_eq!(error("a ALIAS b\na A 192.0.2.1"), None);
    assert_eq!(error("a CNAME b\na CNAME B\na NSEC c CNAME NSEC"), None);
}
