//! What Zonda makes of each reply of a primary: scripted primaries, each with a zone of its own.

use crate::commands::json;
use crate::primaries::{Secondary, name};
use crate::primary::wait_until;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const SOA: u16 = 6;
pub const IXFR: u16 = 251;
pub const AXFR: u16 = 252;
const CNAME: u16 = 5;

/// A primary of one zone, which answers questions for the serial, and has a function answer the
/// other questions.
#[derive(Clone)]
pub struct Scripted {
    pub zone: &'static str,
    pub address: SocketAddr,
    /// The serial that it says it has.
    pub serial: Arc<AtomicU32>,
    /// The seconds until the zone expires at the primary, as it says; 0 if it does not.
    expire: Arc<AtomicU32>,
    /// Whether questions over UDP get a truncated reply.
    is_truncated: Arc<AtomicBool>,
    /// Whether a forged datagram comes before each reply over UDP.
    is_forged: Arc<AtomicBool>,
    /// Questions over UDP so far.
    pub checks: Arc<AtomicUsize>,
    /// The types of questions over TCP so far.
    pub questions: Arc<Mutex<Vec<u16>>>,
    /// Refresh, retry and expire of the SOA record.
    timers: [u32; 3],
}

/// A question over TCP.
pub struct PrimaryQuery<'q> {
    of: &'q Scripted,
    stream: &'q mut TcpStream,
    query: &'q [u8],
    pub qtype: u16,
    pub serial: u32,
}

/// Timers with which a zone is checked each second.
pub const EACH_SECOND: [u32; 3] = [1, 1, 3600];

impl Scripted {
    pub fn start(zone: &'static str, timers: [u32; 3], answer: fn(&mut PrimaryQuery<'_>)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let udp = UdpSocket::bind(address).unwrap();
        let script = Self {
            zone,
            address,
            serial: Arc::new(AtomicU32::new(1)),
            expire: Arc::default(),
            is_truncated: Arc::default(),
            is_forged: Arc::default(),
            checks: Arc::default(),
            questions: Arc::default(),
            timers,
        };
        let of_udp = script.clone();
        thread::spawn(move || {
            let mut buffer = [0; 1000];
            while let Ok((len, from)) = udp.recv_from(&mut buffer) {
                of_udp.checks.fetch_add(1, SeqCst);
                let mut reply = of_udp.reply(&buffer[..len], &[of_udp.soa(of_udp.serial())]);
                reply[2] |= 2 * u8::from(of_udp.is_truncated.load(SeqCst));
                if of_udp.is_forged.load(SeqCst) {
                    let (mut query, mut other) = (reply.clone(), reply.clone());
                    (query[2], other[13]) = (0, b'!');
                    [query, other].iter().for_each(|it| _ = udp.send_to(it, from));
                }
                let _ = udp.send_to(&reply, from);
            }
        });
        let of_tcp = script.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let script = of_tcp.clone();
                thread::spawn(move || script.serve(stream, answer));
            }
        });
        script
    }

    /// Reads one question over TCP, and has it answered.
    fn serve(&self, mut stream: TcpStream, answer: fn(&mut PrimaryQuery<'_>)) {
        let mut len = [0; 2];
        stream.read_exact(&mut len).unwrap();
        let mut query = vec![0; usize::from(u16::from_be_bytes(len))];
        stream.read_exact(&mut query).unwrap();
        let at = 12 + name(self.zone).len();
        let qtype = u16::from_be_bytes([query[at], query[at + 1]]);
        self.questions.lock().unwrap().push(qtype);
        let serial = self.serial();
        let mut asked =
            PrimaryQuery { of: self, stream: &mut stream, query: &query, qtype, serial };
        match qtype {
            SOA => asked.send(&[self.soa(serial)]),
            _ => answer(&mut asked),
        }
    }

    fn serial(&self) -> u32 {
        self.serial.load(SeqCst)
    }

    pub fn set_serial(&self, serial: u32) {
        self.serial.store(serial, SeqCst);
    }

    /// How many questions of a type there were over TCP.
    pub fn count(&self, qtype: u16) -> usize {
        self.questions.lock().unwrap().iter().filter(|it| **it == qtype).count()
    }

    /// The SOA record with a serial.
    fn soa(&self, serial: u32) -> Vec<u8> {
        let [refresh, retry, expire] = self.timers;
        let numbers = [serial, refresh, retry, expire, 60].map(u32::to_be_bytes).concat();
        record(self.zone, SOA, &[name("ns.test"), name("h.test"), numbers].concat())
    }

    /// The reply to a query with these records, as a message.
    fn reply(&self, query: &[u8], records: &[Vec<u8>]) -> Vec<u8> {
        let count = (records.len() as u16).to_be_bytes();
        let end = 12 + name(self.zone).len() + 4;
        let expire = self.expire.load(SeqCst);
        let additional = u8::from(expire > 0);
        let head = [&query[..2], &[0x84, 0, 0, 1], &count, &[0, 0, 0, additional], &query[12..end]];
        let mut reply = [head.concat(), records.concat()].concat();
        if expire > 0 {
            reply.extend_from_slice(&[0, 0, 41, 4, 0, 0, 0, 0, 0, 0, 8, 0, 9, 0, 4]);
            reply.extend_from_slice(&expire.to_be_bytes());
        }
        reply
    }

    /// The section of the zone with this primary and with further ones.
    pub fn section(&self, others: &[&Self], more: &str) -> String {
        let from = [self].into_iter().chain(others.iter().copied());
        let from: Vec<String> = from.map(|it| format!("\"{}\"", it.address)).collect();
        format!(
            "[[zone]]\nname = \"{}\"\n[zone.secondary]\nfrom = [{}]\nrefresh-min = \"1s\"\n\
             retry-min = \"1s\"\n{more}",
            self.zone,
            from.join(", ")
        )
    }

    /// Waits until a server has the zone with a serial.
    pub fn await_serial(&self, server: &Secondary, serial: u32) {
        wait_until(&format!("{} with serial {serial}: {}", self.zone, server.log()), || {
            server.serial(self.zone) == Some(serial)
        });
    }

    /// Sends NOTIFY to a server.
    pub fn notify(&self, server: &Secondary) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let head = [7, 7, 0x24, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        let message = [&head[..], &name(self.zone), &[0, 6, 0, 1]].concat();
        socket.send_to(&message, server.address).unwrap();
    }
}

impl PrimaryQuery<'_> {
    /// Sends records as one message.
    pub fn send(&mut self, records: &[Vec<u8>]) {
        let message = self.of.reply(self.query, records);
        self.send_message(&message);
    }

    fn send_message(&mut self, message: &[u8]) {
        let len = (message.len() as u16).to_be_bytes();
        let _ = self.stream.write_all(&[&len[..], message].concat());
    }

    /// Sends an error.
    pub fn send_error(&mut self, rcode: u8) {
        let mut message = self.of.reply(self.query, &[]);
        message[3] |= rcode;
        self.send_message(&message);
    }

    /// Sends SERVFAIL, and that it is not ready (rfc8914#4.15), as a primary does that has no
    /// place for a transfer.
    pub fn send_not_ready(&mut self) {
        let mut message = self.of.reply(self.query, &[]);
        (message[3], message[11]) = (message[3] | 2, 1);
        message.extend_from_slice(&[0, 0, 41, 4, 0, 0, 0, 0, 0, 0, 6, 0, 15, 0, 2, 0, 14]);
        self.send_message(&message);
    }

    /// Sends nothing for some seconds.
    pub fn hang(&mut self, secs: u64) {
        thread::sleep(Duration::from_secs(secs));
    }

    pub fn soa(&self, serial: u32) -> Vec<u8> {
        self.of.soa(serial)
    }

    /// An address record of a name in the zone.
    pub fn a(&self, label: &str) -> Vec<u8> {
        record(&format!("{label}.{}", self.of.zone), 1, &[192, 0, 2, 1])
    }

    /// Sends the whole zone, which is sound: `www` and a name for the serial.
    pub fn send_zone(&mut self) {
        let serial = self.serial;
        let of_version = self.a(&format!("v{serial}"));
        self.send(&[self.soa(serial), self.a("www"), of_version, self.soa(serial)]);
    }

    /// Sends sound changes from the version before.
    pub fn send_changes(&mut self) {
        let serial = self.serial;
        let [old, new] = [serial - 1, serial].map(|it| self.a(&format!("v{it}")));
        let changes =
            [self.soa(serial), self.soa(serial - 1), old, self.soa(serial), new, self.soa(serial)];
        self.send(&changes);
    }
}

/// A record in wire form.
fn record(owner: &str, rtype: u16, data: &[u8]) -> Vec<u8> {
    let len = (data.len() as u16).to_be_bytes();
    [&name(owner)[..], &rtype.to_be_bytes(), &[0, 1, 0, 0, 0, 60], &len, data].concat()
}

/// Sends the whole zone if that was asked for; whether it was.
fn send_if_whole(asked: &mut PrimaryQuery<'_>) -> bool {
    let is_whole = asked.qtype == AXFR;
    if is_whole {
        asked.send_zone();
    }
    is_whole
}

/// What a primary answers to a question for changes, and whether it is remembered that it sends
/// none.
type Row = (&'static str, bool, fn(&mut PrimaryQuery<'_>));

/// A row of the table: what stands in place of changes.
macro_rules! row {
    ($zone:literal, $remembered:literal, |$asked:ident| $body:expr) => {
        ($zone, $remembered, |$asked| {
            if !send_if_whole($asked) {
                $body;
            }
        })
    };
}

const NO_CHANGES: [Row; 16] = [
    row!("formerr.test", true, |it| it.send_error(1)),
    row!("servfail.test", true, |it| it.send_error(2)),
    row!("no-place.test", false, |it| it.send_not_ready()),
    row!("notimp.test", true, |it| it.send_error(4)),
    row!("refused.test", true, |it| it.send_error(5)),
    row!("empty.test", true, |it| it.send(&[])),
    row!("no-soa.test", true, |it| it.send(&[it.a("www")])),
    row!("closed.test", true, |it| it.send(&[it.soa(it.serial)])),
    row!("silent.test", true, |it| it.hang(5)),
    row!("other-id.test", true, |it| {
        let mut message = it.of.reply(it.query, &[it.soa(it.serial)]);
        message[0] ^= 1;
        it.send_message(&message);
    }),
    row!("other-question.test", true, |it| {
        let mut message = it.of.reply(it.query, &[it.soa(it.serial)]);
        message[13] = b'p';
        it.send_message(&message);
    }),
    row!("absent.test", false, |it| {
        let (new, old) = (it.soa(it.serial), it.soa(it.serial - 1));
        it.send(&[new.clone(), old, it.a("none"), new.clone(), new]);
    }),
    row!("present.test", false, |it| {
        let (new, old) = (it.soa(it.serial), it.soa(it.serial - 1));
        it.send(&[new.clone(), old, new.clone(), it.a("www"), new]);
    }),
    row!("gap.test", false, |it| {
        let serial = it.serial;
        let numbers = [serial, serial - 1, serial + 5, serial + 6, serial, serial];
        it.send(&numbers.map(|serial| it.soa(serial)));
    }),
    row!("backwards.test", false, |it| {
        let serial = it.serial;
        let numbers = [serial, serial - 1, serial - 1, serial];
        it.send(&numbers.map(|serial| it.soa(serial)));
    }),
    row!("base.test", false, |it| {
        let serial = it.serial;
        it.send(&[serial, serial + 9, serial, serial].map(|serial| it.soa(serial)));
    }),
];

#[test]
fn whatever_stands_in_place_of_changes_has_the_whole_zone_taken_at_once() {
    let scripts = NO_CHANGES.map(|(zone, _, answer)| Scripted::start(zone, EACH_SECOND, answer));
    let sections: Vec<String> =
        scripts.iter().map(|it| it.section(&[], "idle-timeout = \"2s\"\n")).collect();
    let server = Secondary::start(&sections.concat());
    for serial in 1..4 {
        scripts.iter().for_each(|script| script.set_serial(serial));
        scripts.iter().for_each(|script| script.await_serial(&server, serial));
    }
    for ((zone, is_remembered, _), script) in NO_CHANGES.iter().zip(&scripts) {
        let (changes, whole) = (script.count(IXFR), script.count(AXFR));
        assert_eq!(changes, if *is_remembered { 1 } else { 2 }, "{zone}: {}", server.log());
        assert_eq!(whole, 3, "{zone}: once for each version");
    }
}

#[test]
fn one_zone_whose_changes_are_refused_leaves_those_of_the_primarys_other_zones() {
    let script = Scripted::start("some.test", EACH_SECOND, |asked| match asked.qtype {
        AXFR => asked.send_zone(),
        _ => asked.send_changes(),
    });
    let server = Secondary::start(&script.section(&[], ""));
    script.await_serial(&server, 1);
    script.set_serial(2);
    script.await_serial(&server, 2);
    assert_eq!((script.count(AXFR), script.count(IXFR)), (1, 1), "{}", server.log());
}

#[test]
fn one_soa_record_with_our_serial_or_a_lower_one_asks_for_no_whole_zone() {
    let same = |asked: &mut PrimaryQuery<'_>| {
        if !send_if_whole(asked) {
            asked.send(&[asked.soa(1)]);
        }
    };
    let lower = |asked: &mut PrimaryQuery<'_>| {
        if !send_if_whole(asked) {
            asked.send(&[asked.soa(0)]);
        }
    };
    let same = Scripted::start("same.test", EACH_SECOND, same);
    let lower = Scripted::start("lower.test", EACH_SECOND, lower);
    let server = Secondary::start(&(same.section(&[], "") + &lower.section(&[], "")));
    for script in [&same, &lower] {
        script.await_serial(&server, 1);
        script.set_serial(2);
    }
    wait_until("several questions", || same.count(IXFR) > 2 && lower.count(IXFR) > 2);
    assert_eq!((same.count(AXFR), lower.count(AXFR)), (1, 1));
    let log = server.log();
    assert!(log.contains("as its serial is 0: it is outdated"), "{log}");
    let is_same = |line: &str| line.contains("same.test") && line.contains("was not refreshed");
    assert!(!log.lines().any(is_same), "it is in step: {log}");
}

/// Sends the zone if all of it was asked for, and else changes of 300 records that come to nothing.
fn send_many_changes(asked: &mut PrimaryQuery<'_>) {
    if send_if_whole(asked) {
        return;
    }
    let serial = asked.serial;
    let many: Vec<_> = (0..150).map(|number| asked.a(&format!("n{number}"))).collect();
    let mut records = vec![asked.soa(serial), asked.soa(serial - 1)];
    records.extend_from_slice(&many);
    records.push(asked.soa(serial));
    records.extend_from_slice(&many);
    records.push(asked.soa(serial));
    asked.send(&records);
}

#[test]
fn changes_beyond_twice_the_limits_of_the_zone_have_the_whole_zone_taken_at_once() {
    let seldom = [3600, 3600, 36_000];
    let records = Scripted::start("records.test", seldom, send_many_changes);
    let octets = Scripted::start("octets.test", seldom, send_many_changes);
    let sections =
        records.section(&[], "records-max = 20\n") + &octets.section(&[], "size-max = \"2 KiB\"\n");
    let server = Secondary::start(&sections);
    for script in [&records, &octets] {
        script.await_serial(&server, 1);
        script.set_serial(2);
        script.notify(&server);
        script.await_serial(&server, 2);
        let counts = (script.count(IXFR), script.count(AXFR));
        assert_eq!(counts, (1, 2), "{}: {}", script.zone, server.log());
    }
    let log = server.log();
    for words in ["the changes have more than 40 records", "the changes have more than 4096 octets"]
    {
        assert!(log.contains(&format!("fallback=\"{words}\"")), "{words}: {log}");
    }
}

#[test]
fn changes_that_take_too_long_have_the_whole_zone_taken_at_the_next_attempt() {
    let script = Scripted::start("slow.test", [3600, 1, 36_000], |asked| {
        if !send_if_whole(asked) {
            asked.send(&[asked.soa(asked.serial)]);
            asked.hang(60);
        }
    });
    let server = Secondary::start(&script.section(&[], "time-max = \"1s\"\n"));
    script.await_serial(&server, 1);
    for serial in [2, 3] {
        script.set_serial(serial);
        script.notify(&server);
        script.await_serial(&server, serial);
    }
    assert_eq!((script.count(IXFR), script.count(AXFR)), (1, 3), "{}", server.log());
}

#[test]
fn a_serial_that_is_exactly_half_of_all_ahead_is_no_greater_one() {
    const FAR: u32 = 1 + (1 << 31); // rfc1982#3.2 leaves it undefined
    let script = Scripted::start("far.test", EACH_SECOND, |it| it.send_zone());
    let server = Secondary::start(&script.section(&[], ""));
    script.await_serial(&server, 1);
    script.set_serial(FAR);
    let words = format!("it has serial {FAR}, not greater than 1 here: it is outdated");
    wait_until("the line", || server.log().contains(&words));
    assert_eq!((server.serial("far.test"), script.count(AXFR)), (Some(1), 1));
    script.set_serial(FAR - 1);
    script.await_serial(&server, FAR - 1);
}

#[test]
fn a_truncated_reply_has_the_serial_asked_for_over_tcp() {
    let script = Scripted::start("tcp.test", EACH_SECOND, |it| it.send_zone());
    script.is_truncated.store(true, SeqCst);
    let server = Secondary::start(&script.section(&[], ""));
    script.await_serial(&server, 1);
    assert!(script.count(SOA) > 0);
}

#[test]
fn records_outside_the_zone_are_left_out_of_changes_with_one_line() {
    let script = Scripted::start("zone.test", EACH_SECOND, |asked| {
        if !send_if_whole(asked) {
            let (new, old) = (asked.soa(asked.serial), asked.soa(asked.serial - 1));
            let outside = |label: &str| record(&format!("{label}.other"), 1, &[192, 0, 2, 1]);
            let changes =
                [new.clone(), old, outside("a"), new.clone(), outside("b"), asked.a("in"), new];
            asked.send(&changes);
        }
    });
    let server = Secondary::start(&script.section(&[], ""));
    script.await_serial(&server, 1);
    script.set_serial(2);
    script.await_serial(&server, 2);
    let log = server.log();
    let lines = log.lines().filter(|line| line.contains("outside=2")).count();
    assert_eq!((lines, script.count(AXFR)), (1, 1), "{log}");
}

#[test]
fn records_of_a_set_with_different_ttls_get_the_least_one_with_one_line_a_transfer() {
    let script = Scripted::start("ttls.test", EACH_SECOND, |asked| {
        let soa = asked.soa(asked.serial);
        let address = |last: u8, ttl: u8| {
            let mut record = record("set.ttls.test", 1, &[192, 0, 2, last]);
            let at = record.len() - 7;
            record[at] = ttl;
            record
        };
        match asked.qtype {
            AXFR => asked.send(&[soa.clone(), address(1, 60), address(2, 30), soa]),
            _ => {
                let old = asked.soa(asked.serial - 1);
                asked.send(&[soa.clone(), old, soa.clone(), address(3, 20), soa]);
            }
        }
    });
    let server = Secondary::start(&script.section(&[], ""));
    script.await_serial(&server, 1);
    let said = || server.log().matches("records of a set had different TTLs").count();
    assert_eq!(said(), 1, "{}", server.log());
    script.set_serial(2);
    script.await_serial(&server, 2);
    assert_eq!((said(), script.count(AXFR)), (2, 1), "{}", server.log());
}

#[test]
fn a_version_that_cannot_be_taken_is_refused_at_growing_intervals() {
    const SELDOM: [u32; 3] = [3600, 1, 36_000];
    let large = Scripted::start("large.test", SELDOM, |asked| {
        let serial = asked.serial;
        let mut records = vec![asked.soa(serial)];
        records.extend((0..10 * serial.pow(3)).map(|it| asked.a(&format!("n{it}"))));
        records.push(asked.soa(serial));
        asked.send(&records);
    });
    let unsound = Scripted::start("unsound.test", SELDOM, |asked| {
        if asked.serial == 1 {
            return asked.send_zone();
        }
        let alias = record("www.unsound.test", CNAME, &name("x.test"));
        asked.send(&[asked.soa(asked.serial), asked.a("www"), alias, asked.soa(asked.serial)]);
    });
    let classed = Scripted::start("class.test", SELDOM, |asked| {
        let mut www = asked.a("www");
        let at = name("www.class.test").len() + 3;
        www[at] = if asked.serial == 1 { 1 } else { 3 };
        asked.send(&[asked.soa(asked.serial), www, asked.soa(asked.serial)]);
    });
    let all = [&large, &unsound, &classed];
    let sections = all.map(|it| it.section(&[], "records-max = 50\n"));
    let server = Secondary::start(&sections.concat());
    for script in all {
        script.await_serial(&server, 1);
        script.set_serial(2);
        script.notify(&server);
    }
    let began = Instant::now();
    let transfers = |script: &Scripted| script.count(AXFR) + script.count(IXFR);
    wait_until("each is refused", || all.iter().all(|it| transfers(it) > 1));
    thread::sleep(Duration::from_millis(6500).saturating_sub(began.elapsed()));
    for script in all {
        // One at the start; then at once, after 2 and after 6 seconds.
        let found = transfers(script);
        assert!((2..=4).contains(&found), "{}: {found}: {}", script.zone, server.log());
        assert_eq!(server.serial(script.zone), Some(1));
        script.set_serial(1);
    }
}

#[test]
fn an_outdated_primary_is_told_and_any_serial_is_taken_once_the_zone_has_expired() {
    let script = Scripted::start("old.test", [1, 1, 4], |it| it.send_zone());
    script.set_serial(5);
    let server = Secondary::start(&script.section(&[], ""));
    script.await_serial(&server, 5);
    script.set_serial(4);
    wait_until("the line", || server.log().contains("it has serial 4, not greater than 5 here"));
    assert_eq!(server.serial("old.test"), Some(5));
    script.await_serial(&server, 4);
    assert!(server.log().contains("a zone has expired"), "{}", server.log());
}

#[test]
fn the_greatest_serial_is_taken_and_changes_only_from_the_primary_that_the_version_came_from() {
    let answer = |asked: &mut PrimaryQuery<'_>| match asked.qtype {
        AXFR => asked.send_zone(),
        _ => asked.send_changes(),
    };
    let one = Scripted::start("two.test", EACH_SECOND, answer);
    let other = Scripted::start("two.test", EACH_SECOND, answer);
    one.set_serial(5);
    other.set_serial(7);
    let server = Secondary::start(&one.section(&[&other], ""));
    one.await_serial(&server, 7);
    assert_eq!((one.count(AXFR), other.count(AXFR)), (0, 1));
    one.set_serial(8);
    one.await_serial(&server, 8);
    assert_eq!((one.count(IXFR), one.count(AXFR)), (0, 1), "another primary's version");
    one.set_serial(9);
    one.await_serial(&server, 9);
    assert_eq!((one.count(IXFR), one.count(AXFR)), (1, 1), "its own");
}

#[test]
fn a_primary_whose_newer_version_cannot_be_had_is_told_though_another_is_in_step() {
    let newer = Scripted::start("behind.test", EACH_SECOND, |asked| match asked.serial {
        1 => asked.send_zone(),
        _ => asked.send_error(2),
    });
    let other = Scripted::start("behind.test", EACH_SECOND, |it| it.send_zone());
    let server = Secondary::start(&newer.section(&[&other], ""));
    newer.await_serial(&server, 1);
    newer.set_serial(2);
    wait_until("the line", || {
        let log = server.log();
        let mut lines = log.lines().filter(|line| line.contains("a zone was not refreshed"));
        lines.any(|line| line.contains("SERVFAIL") && line.contains(&newer.address.to_string()))
    });
    assert_eq!(server.serial("behind.test"), Some(1));
}

#[test]
fn a_zone_expires_while_a_transfer_of_it_hangs() {
    let script = Scripted::start("hang.test", [1, 1, 4], |asked| match asked.serial {
        1 => asked.send_zone(),
        _ => asked.hang(60),
    });
    let server = Secondary::start(&script.section(&[], "idle-timeout = \"50s\"\n"));
    script.await_serial(&server, 1);
    script.set_serial(2);
    wait_until("the transfer", || script.questions.lock().unwrap().len() > 1);
    wait_until("expiry", || server.soa_reply("hang.test").contains("EDE: 24"));
}

#[test]
fn a_zone_that_expires_at_its_primary_before_its_refresh_time_is_checked_before() {
    let script = Scripted::start("expire.test", [3600, 3600, 36_000], |it| it.send_zone());
    script.expire.store(4, SeqCst);
    let server = Secondary::start(&script.section(&[], ""));
    script.await_serial(&server, 1);
    let checks = script.checks.load(SeqCst);
    script.expire.store(3000, SeqCst);
    wait_until("another check", || script.checks.load(SeqCst) > checks);
    thread::sleep(Duration::from_secs(5));
    assert_eq!(server.serial("expire.test"), Some(1), "{}", server.log());
}

#[test]
fn an_expired_zone_is_asked_for_at_once_and_then_as_its_retry_time_says() {
    let script = Scripted::start("gone.test", [3600, 1, 36_000], |asked| match asked.serial {
        1 | 3 => asked.send_zone(),
        _ => asked.send_error(2),
    });
    script.expire.store(3, SeqCst);
    let server = Secondary::start(&script.section(&[], ""));
    script.await_serial(&server, 1);
    script.set_serial(2);
    wait_until("expiry", || server.soa_reply("gone.test").contains("EDE: 24"));
    let questions = script.questions.lock().unwrap().len();
    wait_until("more questions", || script.questions.lock().unwrap().len() > questions + 3);
    script.set_serial(3);
    script.await_serial(&server, 3);
}

#[test]
fn a_version_that_the_disk_does_not_take_is_not_served() {
    let script = Scripted::start("disk.test", EACH_SECOND, |it| it.send_zone());
    let server = Secondary::start(&script.section(&[], ""));
    script.await_serial(&server, 1);
    let directory = server.folder.path().join("state/secondary");
    let in_the_way = directory.join("disk.test.new");
    fs::create_dir(&in_the_way).unwrap();
    script.set_serial(2);
    wait_until("the line", || server.log().contains("cannot be kept on the disk"));
    assert_eq!(server.serial("disk.test"), Some(1), "{}", server.log());
    fs::remove_dir(&in_the_way).unwrap();
    script.await_serial(&server, 2);
}

#[test]
fn a_zone_for_which_the_disk_has_no_place_is_served_and_told_as_not_kept() {
    let script = Scripted::start("placeless.test", EACH_SECOND, |it| it.send_zone());
    let more = format!("{}[admin]\nsocket = \"admin.sock\"\n", script.section(&[], ""));
    // A file stands where the directory would.
    let server = Secondary::start_with(&more, &[("state", "")]);
    script.await_serial(&server, 1);
    let shown = json(server.folder.path(), &["zone", "show", "placeless.test"]);
    let error = shown["secondary"]["disk_error"].as_str().unwrap_or_default();
    assert!(error.contains("the state directory") && error.contains("cannot be made"), "{shown}");
}

#[test]
fn a_file_that_another_program_has_replaced_is_written_anew() {
    let script = Scripted::start("file.test", EACH_SECOND, |asked| match asked.qtype {
        AXFR => asked.send_zone(),
        _ => asked.send_changes(),
    });
    let mut server = Secondary::start(&script.section(&[], ""));
    script.await_serial(&server, 1);
    let path = server.folder.path().join("state/secondary/file.test.secondary");
    let copy = path.with_extension("copy");
    fs::copy(&path, &copy).unwrap();
    fs::rename(&copy, &path).unwrap();
    script.set_serial(2);
    script.await_serial(&server, 2);
    server.restart();
    assert_eq!(server.serial("file.test"), Some(2), "{}", server.log());
    assert_eq!((script.count(AXFR), script.count(IXFR)), (1, 1));
}

#[test]
fn a_reload_that_changes_a_zone_keeps_its_version_and_goes_on_with_changes() {
    let script = Scripted::start("same.test", EACH_SECOND, |asked| match asked.qtype {
        AXFR => asked.send_zone(),
        _ => asked.send_changes(),
    });
    let server = Secondary::start(&script.section(&[], ""));
    script.await_serial(&server, 1);
    let config = server.folder.path().join("zonda.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text + "records-max = 500\n").unwrap();
    server.reload();
    wait_until("the reload", || server.log().contains("zones reloaded"));
    script.set_serial(2);
    script.await_serial(&server, 2);
    assert_eq!((script.count(AXFR), script.count(IXFR)), (1, 1), "{}", server.log());
}

#[test]
fn forged_datagrams_in_front_of_the_reply_are_passed_over() {
    let script = Scripted::start("forged.test", EACH_SECOND, |it| it.send_zone());
    script.is_forged.store(true, SeqCst);
    let server = Secondary::start(&script.section(&[], ""));
    script.await_serial(&server, 1);
    assert!(!server.log().contains("was not refreshed"), "{}", server.log());
}

#[test]
fn a_primary_that_does_not_sign_is_told_and_the_next_one_is_asked() {
    let unsigned = Scripted::start("signed.test", EACH_SECOND, |it| it.send_zone());
    let other = Scripted::start("signed.test", EACH_SECOND, |it| it.send_zone());
    unsigned.set_serial(9);
    let section = unsigned.section(&[&other], "");
    let address = unsigned.address;
    let with_key = section.replace(&format!("\"{address}\""), &format!("\"{address} key k\""));
    let key = "[[key]]\nname = \"k\"\nsecret = \"c2VjcmV0c2VjcmV0c2VjcmV0\"\n";
    let server = Secondary::start(&(with_key + key));
    other.await_serial(&server, 1);
    assert_eq!(unsigned.questions.lock().unwrap().len(), 0, "nothing is asked for unsigned");
    let checks = unsigned.checks.load(SeqCst);
    wait_until("more checks", || unsigned.checks.load(SeqCst) > checks + 2);
    let log = server.log();
    let lines: Vec<&str> =
        log.lines().filter(|it| it.contains("a primary was passed over")).collect();
    assert_eq!(lines.len(), 1, "once as long as it is so: {log}");
    for fact in ["WARN", "zone=signed.test.", &format!("primary={address}"), "is not signed"] {
        assert!(lines[0].contains(fact), "{fact} in {}", lines[0]);
    }
    assert!(!log.contains("was not refreshed"), "{log}");
}

/// Zones of one test, each with a primary.
const MANY: [&str; 12] = [
    "a.test", "b.test", "c.test", "d.test", "e.test", "f.test", "g.test", "h.test", "i.test",
    "j.test", "k.test", "l.test",
];

#[test]
fn a_restart_leaves_the_time_of_the_next_check_as_it_was() {
    let scripts = MANY.map(|zone| Scripted::start(zone, [3600, 3600, 36_000], |it| it.send_zone()));
    let sections: Vec<String> = scripts.iter().map(|it| it.section(&[], "")).collect();
    let mut server = Secondary::start(&sections.concat());
    scripts.iter().for_each(|script| script.await_serial(&server, 1));
    let checks = || scripts.iter().map(|it| it.checks.load(SeqCst)).sum::<usize>();
    let before = checks();
    server.restart();
    thread::sleep(Duration::from_secs(6));
    assert_eq!(checks(), before, "an hour is not over");
    scripts.iter().for_each(|it| assert_eq!(server.serial(it.zone), Some(1)));
}

#[test]
fn a_zone_that_had_a_file_is_served_from_it_until_its_expire_time_is_over() {
    let server = Secondary::start("");
    let config = server.folder.path().join("zonda.toml");
    let text = fs::read_to_string(&config).unwrap();
    let zone = "$TTL 60\n@ SOA ns host 7 1 1 4 5\n@ NS ns\nns A 192.0.2.1\n";
    server.folder.write("was.zone", zone);
    let section = "[[zone]]\nname = \"was.test\"\nfile = \"was.zone\"\n";
    fs::write(&config, format!("{text}{section}")).unwrap();
    server.reload();
    wait_until("the file", || server.serial("was.test") == Some(7));
    let nowhere = zonda_testkit::process::free_port();
    let section = format!(
        "[[zone]]\nname = \"was.test\"\n[zone.secondary]\nfrom = [\"127.0.0.1:{nowhere}\"]\n\
         refresh-min = \"1s\"\nretry-min = \"1s\"\n"
    );
    fs::write(&config, format!("{text}{section}")).unwrap();
    server.reload();
    wait_until("the reload", || server.log().contains("was not refreshed"));
    assert_eq!(server.serial("was.test"), Some(7), "{}", server.log());
    wait_until("expiry", || server.soa_reply("was.test").contains("EDE: 24"));
}

#[test]
fn dead_primaries_with_many_zones_delay_no_zone_of_another() {
    let dead = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let mut text = String::new();
    for (number, socket) in dead.iter().enumerate() {
        let address = socket.local_addr().unwrap();
        for zone in 0..100 {
            text += &format!(
                "[[zone]]\nname = \"z{zone}.d{number}.test\"\n[zone.secondary]\n\
                 from = [\"{address}\"]\n"
            );
        }
    }
    let live = Scripted::start("live.test", EACH_SECOND, |it| it.send_zone());
    let began = Instant::now();
    let server = Secondary::start(&(text + &live.section(&[], "")));
    live.await_serial(&server, 1);
    live.set_serial(2);
    live.await_serial(&server, 2);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}
