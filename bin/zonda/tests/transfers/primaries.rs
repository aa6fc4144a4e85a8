//! Zones that Zonda transfers from primaries: scripted ones that are wrong, and real ones.

use crate::primary::{Primary, client, records, wait_until};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;
use zonda_testkit::process::{Folder, Process, free_port, start_on_free_port};

/// A server whose zones come from primaries, and that has a zone of its own besides.
pub struct Secondary {
    process: Option<Process>,
    pub address: SocketAddr,
    pub folder: Folder,
}

impl Secondary {
    /// Starts the server with more of a configuration.
    pub fn start(more: &str) -> Self {
        Self::start_with(more, &[])
    }

    /// Starts the server with more of a configuration, and files by their names.
    pub fn start_with(more: &str, files: &[(&str, &str)]) -> Self {
        let folder = Folder::new("secondary");
        files.iter().for_each(|(name, text)| _ = folder.write(name, text));
        folder.write("own.zone", "$TTL 60\n@ SOA ns host 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n");
        let state = folder.path().join("state");
        let text = format!(
            "version = 1\nstate = \"{}\"\n[[zone]]\nname = \"own.test\"\nfile = \"own.zone\"\n\
             {more}",
            state.display()
        );
        folder.write("zonda.toml", text);
        let (process, address) =
            start_on_free_port("zonda", &folder, &["own.test."], Self::command);
        Self { process: Some(process), address, folder }
    }

    /// The command that starts the server on a port.
    fn command(folder: &Folder, port: u16) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
        command.arg("serve").arg("--config").arg(folder.path().join("zonda.toml"));
        command.args(["--listen", &format!("127.0.0.1:{port}")]);
        command
    }

    /// Ends the server by a signal, and starts it again with the same configuration.
    pub fn restart(&mut self) {
        self.process = None;
        let (process, address) =
            start_on_free_port("zonda", &self.folder, &["own.test."], Self::command);
        (self.process, self.address) = (Some(process), address);
    }

    /// Kills the server, as a crash would, and starts it again with the same configuration.
    pub fn crash(&mut self) {
        self.process.iter().for_each(|process| process.signal("KILL"));
        self.restart();
    }

    /// Has the server read its configuration again.
    pub fn reload(&self) {
        reload(self.process.as_ref().unwrap());
    }

    /// The most memory that the server has had so far, KiB.
    pub fn memory_peak_kib(&self) -> u64 {
        self.status_kib("VmHWM:")
    }

    /// The memory that the server has, KiB.
    pub fn memory_kib(&self) -> u64 {
        self.status_kib("VmRSS:")
    }

    /// A line of what the system says about the server.
    fn status_kib(&self, key: &str) -> u64 {
        let leader = self.process.as_ref().unwrap().id(); // `timeout`, whose child the server is
        let child = fs::read_to_string(format!("/proc/{leader}/task/{leader}/children")).unwrap();
        let status = fs::read_to_string(format!("/proc/{}/status", child.trim())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// The serial that the server has of a zone.
    pub fn serial(&self, zone: &str) -> Option<u32> {
        let text = client("dig", self.address, &["+short", "+time=2", zone, "SOA"]);
        text.split_whitespace().nth(2)?.parse().ok()
    }

    /// What dig prints about the SOA record of a zone.
    pub fn soa_reply(&self, zone: &str) -> String {
        client("dig", self.address, &["+time=2", zone, "SOA"])
    }

    /// What the server has logged since it was started last.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }
}

/// Has a server read its zones again. The signal is for it alone: `timeout`, its group's leader,
/// would end it five seconds later.
pub fn reload(server: &Process) {
    let id = server.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    let mut kill = Command::new("kill");
    kill.args(["-s", "HUP"]).args(children.split_whitespace().next());
    assert!(kill.status().unwrap().success(), "{children}");
}

/// The section of a zone with primaries.
pub fn zone(name: &str, from: &str, more: &str) -> String {
    format!(
        "[[zone]]\nname = \"{name}\"\ntransfer = {{ to = [\"127.0.0.1\"] }}\n[zone.secondary]\n\
         from = [{from}]\nrefresh-min = \"1s\"\nretry-min = \"1s\"\nidle-timeout = \"2s\"\n{more}"
    )
}

/// A primary that tests write: it says that it has a serial, and sends what a function makes of
/// each question for a transfer.
pub struct Script {
    pub address: SocketAddr,
    pub serial: Arc<AtomicU32>,
    /// Questions for transfers so far.
    pub asked: Arc<AtomicUsize>,
}

/// A name in wire form.
pub fn name(text: &str) -> Vec<u8> {
    let labels = text.split('.').filter(|label| !label.is_empty());
    let mut wire: Vec<u8> =
        labels.flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat()).collect();
    wire.push(0);
    wire
}

/// A record in wire form.
fn record(owner: &str, rtype: u16, data: &[u8]) -> Vec<u8> {
    let len = (data.len() as u16).to_be_bytes();
    [&name(owner)[..], &rtype.to_be_bytes(), &[0, 1, 0, 0, 0, 60], &len, data].concat()
}

/// The SOA record of `bad.test` with a serial.
pub fn soa(serial: u32) -> Vec<u8> {
    soa_of("bad.test", serial)
}

/// The SOA record of a zone with a serial.
pub fn soa_of(zone: &str, serial: u32) -> Vec<u8> {
    let numbers = [serial, 1, 1, 3600, 60].map(u32::to_be_bytes).concat();
    record(zone, 6, &[name("ns.bad.test"), name("h.bad.test"), numbers].concat())
}

/// An address record.
pub fn a(owner: &str) -> Vec<u8> {
    record(owner, 1, &[192, 0, 2, 1])
}

/// The name that a query asks for, in wire form.
fn zone_of(query: &[u8]) -> &[u8] {
    let mut end = 12;
    while query[end] > 0 {
        end += 1 + usize::from(query[end]);
    }
    &query[12..=end]
}

/// The reply to a query with these records, as a message.
pub fn reply(query: &[u8], records: &[Vec<u8>]) -> Vec<u8> {
    let count = (records.len() as u16).to_be_bytes();
    let end = 12 + zone_of(query).len() + 4;
    let head = [&query[..2], &[0x84, 0, 0, 1], &count, &[0; 4], &query[12..end]].concat();
    [head, records.concat()].concat()
}

impl Script {
    /// Starts the primary of `bad.test`; `send` is given the connection, the query, its type and
    /// the serial.
    pub fn start(send: fn(&mut TcpStream, &[u8], u16, u32)) -> Self {
        Self::start_for("bad.test", send)
    }

    /// Starts the primary of a zone.
    pub fn start_for(zone: &'static str, send: fn(&mut TcpStream, &[u8], u16, u32)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let udp = UdpSocket::bind(address).unwrap();
        let (serial, asked) = (Arc::new(AtomicU32::new(1)), Arc::new(AtomicUsize::new(0)));
        let (of_udp, of_tcp, count) =
            (Arc::clone(&serial), Arc::clone(&serial), Arc::clone(&asked));
        thread::spawn(move || {
            let mut buffer = [0; 1000];
            while let Ok((len, from)) = udp.recv_from(&mut buffer) {
                let reply = reply(&buffer[..len], &[soa_of(zone, of_udp.load(SeqCst))]);
                let _ = udp.send_to(&reply, from);
            }
        });
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (serial, count) = (of_tcp.load(SeqCst), Arc::clone(&count));
                thread::spawn(move || {
                    let mut len = [0; 2];
                    stream.read_exact(&mut len).unwrap();
                    let mut query = vec![0; usize::from(u16::from_be_bytes(len))];
                    stream.read_exact(&mut query).unwrap();
                    count.fetch_add(1, SeqCst);
                    let at = 12 + zone_of(&query).len();
                    send(
                        &mut stream,
                        &query,
                        u16::from_be_bytes([query[at], query[at + 1]]),
                        serial,
                    );
                });
            }
        });
        Self { address, serial, asked }
    }
}

/// Sends a message behind its length.
pub fn send(stream: &mut TcpStream, message: &[u8]) -> bool {
    let len = (message.len() as u16).to_be_bytes();
    stream.write_all(&[&len[..], message].concat()).is_ok()
}

/// Sends the whole zone of serial 1, which is sound; whether that was asked for.
pub fn send_first(stream: &mut TcpStream, query: &[u8], serial: u32) -> bool {
    if serial == 1 {
        let records = [soa(1), a("www.bad.test"), a("www.other.test"), soa(1)];
        send(stream, &reply(query, &records));
    }
    serial == 1
}

/// Starts a server whose primary sends a sound zone first and something wrong then; checks that the
/// former version stays, and that the log says why.
fn check_kept(wrong: fn(&mut TcpStream, &[u8], u16, u32), why: &str, more: &str) {
    let script = Script::start(wrong);
    let server = Secondary::start(&zone("bad.test", &format!("\"{}\"", script.address), more));
    wait_until("the first transfer", || server.serial("bad.test") == Some(1));
    let before = script.asked.load(SeqCst);
    script.serial.store(2, SeqCst);
    wait_until("two questions, for changes and for all", || script.asked.load(SeqCst) > before);
    wait_until(why, || server.log().contains(why));
    assert_eq!(server.serial("bad.test"), Some(1), "{}", server.log());
    assert_eq!(records(server.address, "bad.test", &[]).len(), 2, "with no record outside");
}

#[test]
fn soa_records_that_differ_leave_the_former_version_in_force() {
    let wrong = |stream: &mut TcpStream, query: &[u8], _: u16, serial: u32| {
        if !send_first(stream, query, serial) {
            send(stream, &reply(query, &[soa(2), a("new.bad.test"), soa(3)]));
        }
    };
    check_kept(wrong, "the SOA records at the beginning and the end differ", "");
}

#[test]
fn a_gap_between_changes_has_the_whole_zone_asked_for() {
    let script = Script::start(|stream, query, qtype, serial| {
        const IXFR: u16 = 251;
        if send_first(stream, query, serial) {
            return;
        }
        let gap = [soa(4), soa(1), soa(2), soa(3), soa(4), soa(4)];
        let whole = [soa(4), a("new.bad.test"), soa(4)];
        send(stream, &reply(query, if qtype == IXFR { &gap } else { &whole }));
    });
    let server = Secondary::start(&zone("bad.test", &format!("\"{}\"", script.address), ""));
    wait_until("the first transfer", || server.serial("bad.test") == Some(1));
    script.serial.store(4, SeqCst);
    wait_until("the whole zone", || server.serial("bad.test") == Some(4));
    let log = server.log();
    assert!(log.contains("changes are missing between serial 2 and serial 3"), "{log}");
}

#[test]
fn an_endless_transfer_ends_at_the_limit() {
    let wrong = |stream: &mut TcpStream, query: &[u8], _: u16, serial: u32| {
        if !send_first(stream, query, serial) {
            let mut records = vec![soa(2)];
            while send(stream, &reply(query, &records)) {
                records = vec![a("more.bad.test"); 500];
            }
        }
    };
    check_kept(wrong, "more than 1000 records", "records-max = 1000\n");
}

#[test]
fn a_primary_that_sends_an_octet_a_second_is_given_up() {
    let wrong = |stream: &mut TcpStream, query: &[u8], _: u16, serial: u32| {
        if !send_first(stream, query, serial) {
            for octet in [0xff, 0xff, query[0], query[1], 0x84, 0, 0, 1] {
                let _ = stream.write_all(&[octet]);
                thread::sleep(Duration::from_secs(1));
            }
        }
    };
    check_kept(wrong, "no answer within 2s", "");
}

#[test]
fn an_endless_transfer_takes_no_more_memory_than_twice_its_limit_however_often_it_is_tried() {
    const SENT_KIB_MAX: usize = 200 << 10;
    let script = Script::start(|stream, query, _, serial| {
        if send_first(stream, query, serial) {
            return;
        }
        // Names that are new each time, so that nothing is stored once for several records.
        let (mut records, mut octets) = (vec![soa(2)], 0);
        for message in 0.. {
            let names = (0..500).map(|number| a(&format!("h{message}-{number}.bad.test")));
            records.extend(names);
            let message = reply(query, &records);
            octets += message.len();
            records.clear();
            if octets >> 10 > SENT_KIB_MAX || !send(stream, &message) {
                break;
            }
        }
    });
    // 4 MiB of the zone, and as many of the records that it is made of.
    let more = "size-max = \"4 MiB\"\nretry-max = \"1s\"\n";
    let server = Secondary::start(&zone("bad.test", &format!("\"{}\"", script.address), more));
    wait_until("the first transfer", || server.serial("bad.test") == Some(1));
    let (peak, before) = (server.memory_peak_kib(), script.asked.load(SeqCst));
    script.serial.store(2, SeqCst);
    wait_until("several tries", || script.asked.load(SeqCst) > before + 4);
    let log = server.log();
    assert!(log.contains("octets: raise `size-max`"), "{log}");
    let grown = server.memory_peak_kib().saturating_sub(peak);
    // Twice the limit, what messages and the log take, and as much again for what the allocator
    // keeps for the threads of several tries: less than what five tries had sent.
    assert!(grown < 16 << 10, "{grown} KiB more: {log}");
    assert_eq!(server.serial("bad.test"), Some(1), "{log}");
}

#[test]
fn a_transfer_octet_by_octet_takes_the_memory_of_a_message() {
    const OCTETS: usize = 2000;
    // A message, and what other threads touch first meanwhile, which the kernel counts in steps of
    // some 100 KiB: less than half a KiB for each octet that was sent.
    const KIB_MAX: u64 = 768;
    static SENT: AtomicUsize = AtomicUsize::new(0);
    let script = Script::start(|stream, query, _, serial| {
        if !send_first(stream, query, serial) {
            let mut octets =
                [&[0xff, 0xff][..], &reply(query, &[soa(2), a("n.bad.test")])].concat();
            octets.resize(OCTETS, 0);
            for octet in octets {
                stream.write_all(&[octet]).unwrap();
                SENT.fetch_add(1, SeqCst);
                thread::sleep(Duration::from_millis(2));
            }
            thread::sleep(Duration::from_secs(60));
        }
    });
    let text = zone("bad.test", &format!("\"{}\"", script.address), "");
    let text = text.replace("idle-timeout = \"2s\"", "idle-timeout = \"1m\"");
    let server = Secondary::start(&text);
    wait_until("the first transfer", || server.serial("bad.test") == Some(1));
    let peak = server.memory_peak_kib();
    script.serial.store(2, SeqCst);
    wait_until("a slow transfer", || SENT.load(SeqCst) == OCTETS);
    let grown = server.memory_peak_kib().saturating_sub(peak);
    assert!(grown <= KIB_MAX, "{grown} KiB more: {}", server.log());
    assert_eq!(server.serial("bad.test"), Some(1), "{}", server.log());
}

#[test]
fn messages_of_65535_octets_that_are_cut_off_leave_the_former_version_in_force() {
    let wrong = |stream: &mut TcpStream, query: &[u8], _: u16, serial: u32| {
        if !send_first(stream, query, serial) {
            let mut long = reply(query, &[soa(2), record("t.bad.test", 16, &[1; 60_000])]);
            long.resize(65_535, 0);
            send(stream, &long);
        }
    };
    check_kept(wrong, "a message is malformed", "");
}

/// The response code of a NOTIFY message for a zone, sent from an address; with the flags.
fn notify(server: SocketAddr, from: &str, zone: &str) -> (u8, bool) {
    notify_of_class(server, from, zone, 1)
}

/// The response code of a NOTIFY message of a class, with the flags.
fn notify_of_class(server: SocketAddr, from: &str, zone: &str, class: u8) -> (u8, bool) {
    let socket = UdpSocket::bind((from, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let question = [&name(zone)[..], &[0, 6, 0, class]].concat();
    let head = [7, 7, 0x24, 0, 0, 1, 0, 1, 0, 0, 0, 0];
    let message = [&head[..], &question, &soa(2)].concat();
    socket.send_to(&message, server).unwrap();
    let mut reply = [0; 512];
    let len = socket.recv(&mut reply).unwrap();
    assert!(len >= 12 && reply[..2] == [7, 7] && reply[2] & 0xf8 == 0xa0, "{reply:?}");
    (reply[3] & 0x0f, reply[2] & 4 != 0)
}

#[test]
fn a_notify_of_a_primary_has_the_zone_refreshed_at_once_and_others_are_refused() {
    let script = Script::start(|stream, query, _, serial| {
        let records = [soa(serial), a("www.bad.test"), soa(serial)];
        send(stream, &reply(query, &records));
    });
    let text = zone("bad.test", &format!("\"{}\"", script.address), "");
    let server = Secondary::start(&text.replace("refresh-min = \"1s\"", "refresh-min = \"1h\""));
    wait_until("the first transfer", || server.serial("bad.test") == Some(1));
    script.serial.store(2, SeqCst);
    assert_eq!(notify(server.address, "127.0.0.2", "bad.test"), (5, false), "no primary");
    assert_eq!(notify(server.address, "127.0.0.1", "own.test"), (5, false), "a primary zone");
    assert_eq!(notify(server.address, "127.0.0.1", "none.test"), (9, false), "no zone");
    for (class, rcode) in [(3, 9), (254, 1), (255, 1)] {
        let reply = notify_of_class(server.address, "127.0.0.1", "bad.test", class);
        assert_eq!(reply, (rcode, false), "class {class}");
    }
    assert_eq!(server.serial("bad.test"), Some(1));
    assert_eq!(notify(server.address, "127.0.0.1", "bad.test"), (0, true));
    wait_until("the changed zone", || server.serial("bad.test") == Some(2));
}

#[test]
fn a_notify_is_taken_after_a_reload_with_so_many_zones_that_the_queue_has_another_size() {
    let script = Script::start(|stream, query, _, serial| {
        let records = [soa(serial), a("www.bad.test"), soa(serial)];
        send(stream, &reply(query, &records));
    });
    let text = zone("bad.test", &format!("\"{}\"", script.address), "");
    let server = Secondary::start(&text.replace("refresh-min = \"1s\"", "refresh-min = \"1h\""));
    wait_until("the first transfer", || server.serial("bad.test") == Some(1));
    let path = server.folder.path().join("zonda.toml");
    let nowhere = format!("\"127.0.0.1:{}\"", free_port());
    let more = (0..600).map(|number| zone(&format!("z{number}.test"), &nowhere, ""));
    fs::write(&path, fs::read_to_string(&path).unwrap() + &more.collect::<String>()).unwrap();
    server.reload();
    wait_until("the zones are there", || server.soa_reply("z599.test").contains("SERVFAIL"));
    script.serial.store(2, SeqCst);
    assert_eq!(notify(server.address, "127.0.0.1", "bad.test"), (0, true));
    wait_until("the changed zone", || server.serial("bad.test") == Some(2));
}

#[test]
fn a_zone_without_a_first_transfer_is_servfail_with_the_error_not_ready() {
    let nowhere = free_port();
    let server = Secondary::start(&zone("bad.test", &format!("\"127.0.0.1:{nowhere}\""), ""));
    let reply = server.soa_reply("bad.test");
    assert!(reply.contains("SERVFAIL") && reply.contains("EDE: 14"), "{reply}");
}

#[test]
fn a_zone_is_served_from_the_disk_and_expires_when_its_primary_stays_away() {
    let stopped = Arc::new(AtomicU32::new(0));
    // A primary that goes away: its sockets are closed. A port may be free for one of them alone.
    let (script, listener) = std::iter::repeat_with(|| UdpSocket::bind("127.0.0.1:0").unwrap())
        .find_map(|udp| Some((TcpListener::bind(udp.local_addr().unwrap()).ok()?, udp)))
        .map(|(listener, udp)| (udp, listener))
        .unwrap();
    let address = script.local_addr().unwrap();
    let soa = |serial: u32| {
        let numbers = [serial, 1, 1, 6, 60].map(u32::to_be_bytes).concat();
        record("bad.test", 6, &[name("ns.bad.test"), name("h.bad.test"), numbers].concat())
    };
    let is_over = Arc::clone(&stopped);
    script.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let udp = thread::spawn(move || {
        let mut buffer = [0; 1000];
        while is_over.load(SeqCst) == 0 {
            if let Ok((len, from)) = script.recv_from(&mut buffer) {
                let _ = script.send_to(&reply(&buffer[..len], &[soa(1)]), from);
            }
        }
    });
    let from = format!("\"{address}\"");
    let tcp = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0; 1000];
        let len = stream.read(&mut buffer).unwrap();
        send(&mut stream, &reply(&buffer[2..len], &[soa(1), a("www.bad.test"), soa(1)]));
    });
    let mut server = Secondary::start(&zone("bad.test", &from, ""));
    wait_until("the first transfer", || server.serial("bad.test") == Some(1));
    tcp.join().unwrap();
    stopped.store(1, SeqCst);
    udp.join().unwrap();
    server.restart();
    assert_eq!(server.serial("bad.test"), Some(1), "{}", server.log());
    wait_until("expiry", || server.serial("bad.test").is_none());
    let reply = server.soa_reply("bad.test");
    assert!(reply.contains("SERVFAIL") && reply.contains("EDE: 24"), "{reply}");
    server.restart();
    let reply = server.soa_reply("bad.test");
    assert!(reply.contains("SERVFAIL") && reply.contains("EDE: 24"), "kept: {reply}");
}

/// A version of a zone, which has another name than the one before.
fn version(serial: u32) -> String {
    let head = format!("$TTL 60\n@ SOA ns host {serial} 1 1 3600 60\n@ NS ns\n");
    format!("{head}ns A 192.0.2.1\nv{serial} A 192.0.2.2\n")
}

#[test]
fn a_zone_of_a_primary_has_its_history_for_ixfr_after_a_restart() {
    let primary = Primary::start(&[("one.test", &version(1), "\"127.0.0.1\"")], "");
    let from = format!("\"{}\"", primary.address);
    let mut server = Secondary::start(&zone("one.test", &from, ""));
    for serial in 1..4 {
        fs::write(primary.folder.path().join("0.zone"), version(serial)).unwrap();
        primary.reload();
        wait_until("a version is here", || server.serial("one.test") == Some(serial));
    }
    drop(primary);
    let ixfr = |server: &Secondary| {
        client("dig", server.address, &["+noall", "+answer", "one.test", "IXFR=1"])
    };
    let before = ixfr(&server);
    assert!(before.contains("v1.one.test.") && before.contains("v3.one.test."), "{before}");
    assert!(before.lines().all(|line| !line.starts_with("ns.")), "changes alone: {before}");
    server.restart();
    wait_until("it is served again", || server.serial("one.test") == Some(3));
    let records = |text: String| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with(';')).map(str::to_owned).collect()
    };
    assert_eq!(records(ixfr(&server)), records(before));
}

mod real_peers {
    use super::{Secondary, reload, zone};
    use crate::primary::{KEY, key_argument, records, wait_until};
    use std::fs;
    use std::path::Path;
    use std::process::Command;
    use zonda_testkit::process::{Folder, Process, required, start_on_free_port};

    /// A version of the zone with a serial.
    fn text(serial: u32) -> String {
        let names: String = (0..2000).map(|number| format!("h{number} A 10.0.0.1\n")).collect();
        format!(
            "$ORIGIN peer.test.\n$TTL 60\n@ SOA ns host {serial} 1 1 3600 60\n@ NS ns\n\
             ns A 192.0.2.1\nv{serial} TXT \"version {serial}\"\nsub NS ns.sub\n\
             ns.sub A 192.0.2.9\n\
             {names}"
        )
    }

    /// Transfers a zone of a real primary, follows its changes and compares; then restarts the
    /// server. `kinds` are how the changes may come.
    fn check(program: &str, kinds: &[&str], command: impl Fn(&Path, &Folder, u16) -> Command) {
        let Some(path) = required(program) else { return };
        let folder = Folder::new(program);
        let own = folder.path().join("peer.zone");
        fs::write(&own, text(1)).unwrap();
        let start = || -> (Process, _) {
            let command = |folder: &Folder, at| command(&path, folder, at);
            start_on_free_port(program, &folder, &["peer.test."], command)
        };
        let (primary, address) = start();
        let from = format!("\"{address} key {}\"", KEY.0);
        let key = format!("[[key]]\nname = \"{}\"\nsecret = \"{}\"\n", KEY.0, KEY.1);
        let mut server = Secondary::start(&(key + &zone("peer.test", &from, "")));
        let same = |server: &Secondary| {
            let key = key_argument();
            let theirs = records(address, "peer.test", &["-y", &key]);
            let ours = records(server.address, "peer.test", &[]);
            let lower = |all: Vec<String>| -> Vec<String> {
                all.into_iter().map(|it| it.to_lowercase()).collect()
            };
            assert_eq!(lower(ours), lower(theirs), "{}", server.log());
        };
        wait_until("the first transfer", || server.serial("peer.test") == Some(1));
        same(&server);
        for serial in 2..5 {
            fs::write(&own, text(serial)).unwrap();
            reload(&primary);
            let log = server.log();
            wait_until(&format!("version {serial}: {log}"), || {
                server.serial("peer.test") == Some(serial)
            });
            same(&server);
        }
        let log = server.log();
        assert!(kinds.iter().any(|kind| log.contains(&format!("kind=\"{kind}\""))), "{log}");
        server.restart();
        assert_eq!(server.serial("peer.test"), Some(4), "from the disk");
        same(&server);
    }

    #[test]
    fn a_zone_of_knot_is_followed_by_changes() {
        check("knotd", &["IXFR"], |path, folder, port| {
            let own = folder.path().display();
            let text = format!(
                "server:\n  listen: 127.0.0.1@{port}\n  rundir: {own}\n  udp-workers: 1\n  \
                 tcp-workers: 1\n  background-workers: 1\nlog:\n  - target: stderr\n    any: info\n\
                 database:\n  storage: {own}\nkey:\n  - id: {key}\n    algorithm: hmac-sha256\n    \
                 secret: {secret}\nacl:\n  - id: any\n    address: 127.0.0.1\n    key: {key}\n    \
                 action: transfer\nzone:\n  - domain: peer.test\n    storage: {own}\n    \
                 file: peer.zone\n    acl: any\n    zonefile-load: difference\n    \
                 zonefile-sync: -1\n    journal-content: changes\n",
                key = KEY.0,
                secret = KEY.1,
            );
            let mut command = Command::new(path);
            command.arg("-c").arg(folder.write("knot.conf", text));
            command
        });
    }

    #[test]
    fn a_zone_of_nsd_is_followed() {
        check("nsd", &["AXFR", "IXFR"], |path, folder, port| {
            let own = folder.path().display();
            let text = format!(
                "server:\n  ip-address: 127.0.0.1@{port}\n  server-count: 1\n  username: \"\"\n  \
                 chroot: \"\"\n  zonesdir: {own}\n  database: \"\"\n  pidfile: {own}/nsd.pid\n  \
                 xfrdfile: {own}/xfrd.state\n  zonelistfile: {own}/zone.list\n  \
                 rrl-ratelimit: 0\n  xfrdir: {own}\n  verbosity: 2\n\
                 remote-control:\n  control-enable: no\nkey:\n  name: {key}\n  \
                 algorithm: hmac-sha256\n  secret: \"{secret}\"\nzone:\n  \
                 name: peer.test\n  zonefile: peer.zone\n  provide-xfr: 127.0.0.1 {key}\n",
                key = KEY.0,
                secret = KEY.1,
            );
            let mut command = Command::new(path);
            command.arg("-d").arg("-c").arg(folder.write("nsd.conf", text));
            command
        });
    }

    #[test]
    fn a_zone_of_bind_is_followed_by_changes() {
        check("named", &["IXFR"], |path, folder, port| {
            let own = folder.path().display();
            let text = format!(
                "options {{ directory \"{own}\"; listen-on port {port} {{ 127.0.0.1; }}; \
                 listen-on-v6 {{ none; }}; recursion no; pid-file \"{own}/named.pid\"; \
                 session-keyfile \"{own}/session.key\"; dnssec-validation no; notify no; \
                 empty-zones-enable no; }}; controls {{}};\nkey \"{key}\" {{ algorithm \
                 hmac-sha256; secret \"{secret}\"; }};\nzone \"peer.test\" {{ type primary; file \
                 \"peer.zone\"; ixfr-from-differences yes; \
                 allow-transfer {{ key \"{key}\"; }}; }};\n",
                key = KEY.0,
                secret = KEY.1,
            );
            // Debian confines `/usr/sbin/named` to its own folders (AppArmor), so a copy is run.
            let copy = folder.path().join("named");
            if !copy.exists() {
                fs::copy(path, &copy).unwrap();
            }
            let mut command = Command::new(copy);
            command.args(["-g", "-n", "1", "-c"]).arg(folder.write("named.conf", text));
            command
        });
    }
}
