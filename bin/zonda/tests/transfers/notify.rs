//! NOTIFY messages as a scripted server receives them, and history across a restart.

use crate::primary::{KEY, PLAIN, Primary, client, wait_until};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;
use zonda_wire::query::flag;
use zonda_wire::tsig::{Algorithm, Key, KeyRing, QuerySignature, SignatureCheck, SignatureRecord};
use zonda_wire::{Fault, Message, Opcode, Query, Rcode, Type};

/// The socket of a server that is notified.
pub fn receiver() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket
}

/// A server with a zone, which notifies a receiver of it with what follows the address.
fn primary(receiver: &UdpSocket, behind: &str) -> Primary {
    let address = receiver.local_addr().unwrap();
    let to = format!("\"127.0.0.1\"], notify = [\"{address}{behind}\"");
    Primary::start(&[("open.test", PLAIN, &to)], "")
}

/// Has a server load the zone with another serial.
fn publish(primary: &Primary, serial: u32) {
    let text = PLAIN.replacen("host 7 ", &format!("host {serial} "), 1);
    fs::write(primary.folder.path().join("0.zone"), text).unwrap();
    primary.reload();
}

/// The next message: its octets, the serial that it tells, and the address to reply to.
pub fn next(receiver: &UdpSocket) -> (Vec<u8>, u32, SocketAddr) {
    let mut octets = vec![0; 4096];
    let (len, from) = receiver.recv_from(&mut octets).unwrap();
    octets.truncate(len);
    let message = Message::parse(&octets).unwrap();
    assert_eq!((message.opcode(), message.has(flag::AA)), (Opcode::NOTIFY, true));
    let question = &message.questions[0];
    assert_eq!((question.name.to_string(), question.qtype), ("open.test.".into(), Type::SOA));
    let serial = serial(&octets);
    (octets, serial, from)
}

/// The serial that a message tells.
fn serial(octets: &[u8]) -> u32 {
    let message = Message::parse(octets).unwrap();
    let soa = message.records.iter().find(|record| record.rtype == Type::SOA).unwrap();
    let serial = soa.rdata[soa.rdata.len() - 20..][..4].try_into().unwrap();
    u32::from_be_bytes(serial)
}

/// The reply to a message that is not signed.
pub fn reply(octets: &[u8], rcode: Rcode) -> Vec<u8> {
    let mut reply = Message::parse(octets).unwrap();
    reply.flags |= flag::QR | rcode.0;
    reply.records.clear();
    reply.to_wire()
}

/// The value of a metric about messages.
fn count(primary: &Primary, result: &str) -> f64 {
    primary.metric(&format!("zonda_notifies_total{{result=\"{result}\"}}"))
}

/// What `zonda zone show` prints of the zone.
fn show(primary: &Primary) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
    command.args(["zone", "show", "open.test", "--socket"]);
    let output = command.arg(primary.folder.path().join("admin.sock")).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_receiver_is_told_again_until_it_acknowledges_the_version_and_then_of_the_next_one() {
    let receiver = receiver();
    let primary = primary(&receiver, "");
    assert_eq!(next(&receiver).1, 7);
    let (second, serial, from) = next(&receiver);
    assert_eq!(serial, 7);
    // Replies with the id of another message, or an error, acknowledge nothing.
    let mut other = reply(&second, Rcode::NOERROR);
    other[0] ^= 0x55;
    receiver.send_to(&other, from).unwrap();
    receiver.send_to(&reply(&second, Rcode::NOTAUTH), from).unwrap();
    wait_until("the error is counted", || count(&primary, "refused") == 1.0);
    let said = show(&primary);
    assert!(said.contains("serial 7 not acknowledged, sent 2 times, refused"), "{said}");
    assert_eq!(count(&primary, "acknowledged"), 0.0);
    assert_eq!(primary.metric("zonda_notifies_pending"), 1.0);
    let (third, _, from) = next(&receiver);
    receiver.send_to(&reply(&third, Rcode::NOERROR), from).unwrap();
    wait_until("it is acknowledged", || count(&primary, "acknowledged") == 1.0);
    assert_eq!(primary.metric("zonda_notifies_pending"), 0.0);
    let said = show(&primary);
    assert!(said.contains(&format!("{}, acknowledged", receiver.local_addr().unwrap())), "{said}");
    publish(&primary, 8);
    assert_eq!(next(&receiver).1, 8);
    publish(&primary, 9);
    assert_eq!(next(&receiver).1, 9);
    assert_eq!(count(&primary, "superseded"), 1.0);
}

#[test]
fn a_receiver_is_told_of_the_version_after_a_restart_whether_it_has_acknowledged_it_or_not() {
    let receiver = receiver();
    let mut primary = primary(&receiver, "");
    let mut last = next(&receiver);
    for is_acknowledged in [false, true] {
        if is_acknowledged {
            receiver.send_to(&reply(&last.0, Rcode::NOERROR), last.2).unwrap();
            wait_until("it is acknowledged", || count(&primary, "acknowledged") == 1.0);
        }
        let port_before = last.2;
        primary.restart();
        while last.2 == port_before {
            last = next(&receiver); // what the former process has sent may still come
        }
        assert_eq!(last.1, 7);
    }
}

#[test]
fn a_message_is_signed_with_the_key_and_only_a_signed_reply_acknowledges_it() {
    let receiver = receiver();
    let primary = primary(&receiver, &format!(" key {}", KEY.0));
    let (octets, _, from) = next(&receiver);
    receiver.send_to(&reply(&octets, Rcode::NOERROR), from).unwrap();
    wait_until("the reply without a signature is refused", || count(&primary, "refused") == 1.0);
    receiver.send_to(&signed_reply(&octets), from).unwrap();
    wait_until("it is acknowledged", || count(&primary, "acknowledged") == 1.0);
}

/// Acknowledges over TCP what is signed; tells the serials.
fn acknowledge(listener: &TcpListener, serials: &Sender<u32>) {
    while let Ok((mut stream, _)) = listener.accept() {
        let mut len = [0; 2];
        stream.read_exact(&mut len).unwrap();
        let mut octets = vec![0; usize::from(u16::from_be_bytes(len))];
        stream.read_exact(&mut octets).unwrap();
        let answer = signed_reply(&octets);
        let len = (answer.len() as u16).to_be_bytes();
        stream.write_all(&[&len[..], &answer].concat()).unwrap();
        if serials.send(serial(&octets)).is_err() {
            return;
        }
    }
}

#[test]
fn a_receiver_that_gets_nothing_over_udp_is_told_over_tcp_at_once_from_the_next_version_on() {
    // Another test may have the port over TCP.
    let (udp, tcp) = std::iter::repeat_with(receiver)
        .find_map(|udp| TcpListener::bind(udp.local_addr().unwrap()).ok().map(|tcp| (udp, tcp)))
        .unwrap();
    let server = primary(&udp, &format!(" key {}", KEY.0));
    let (serials, told) = channel();
    thread::spawn(move || acknowledge(&tcp, &serials)); // ends with the process
    let first = told.recv_timeout(Duration::from_secs(60));
    assert_eq!(first, Ok(7), "it is told over TCP: {}", server.log());
    wait_until("it is acknowledged", || count(&server, "acknowledged") == 1.0);
    (0..5).for_each(|_| assert_eq!(next(&udp).1, 7, "in front of the first one over TCP"));
    assert_eq!(server.metric("zonda_notifies_pending"), 0.0);
    assert_eq!(server.metric("zonda_notify_receivers_silent"), 0.0);
    publish(&server, 8);
    assert_eq!(told.recv_timeout(Duration::from_secs(5)), Ok(8), "{}", server.log());
    wait_until("it is acknowledged", || count(&server, "acknowledged") == 2.0);
    assert_eq!(next(&udp).1, 8, "over UDP as well");
    assert_eq!(server.log().matches("does not acknowledge").count(), 1, "{}", server.log());
    publish(&server, 9);
    let (octets, serial, from) = next(&udp);
    assert_eq!(serial, 9);
    udp.send_to(&signed_reply(&octets), from).unwrap(); // whichever of both is faster
    wait_until("it is acknowledged", || count(&server, "acknowledged") == 3.0);
    thread::sleep(Duration::from_millis(500));
    publish(&server, 10);
    let (octets, serial, from) = next(&udp);
    assert_eq!(serial, 10);
    thread::sleep(Duration::from_millis(500));
    assert!(told.try_iter().all(|serial| serial == 9), "UDP works again");
    udp.send_to(&signed_reply(&octets), from).unwrap();
    wait_until("it is acknowledged", || count(&server, "acknowledged") == 4.0);
}

/// The reply to a signed message, signed with its key.
fn signed_reply(octets: &[u8]) -> Vec<u8> {
    let secret = b"0123456789abcdef0123456789abcdef";
    let key = Key::new(&KEY.0.parse().unwrap(), Algorithm::HmacSha256, secret);
    let (at, signature) = verify(octets, &key);
    assert_eq!(signature.check, SignatureCheck::Sound);
    let mut signed = octets[..at].to_vec();
    signed[2] |= 0x80;
    signed[11] -= 1;
    let len = signed.len();
    signed.resize(len + 512, 0);
    let end = signature.sign(&key, &mut signed, len, unix_secs()).unwrap();
    signed.truncate(end);
    signed
}

/// The seconds since 1970.
fn unix_secs() -> u64 {
    std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs()
}

/// Where the signature of a message begins, and the signature.
fn verify(octets: &[u8], key: &Key) -> (usize, QuerySignature) {
    let at = match Query::parse(octets) {
        Err((_, Fault::Signed(at))) => usize::from(at),
        other => panic!("not signed: {other:?}"),
    };
    let keys = KeyRing::new([key.clone()]);
    (at, SignatureRecord::default().verify(octets, at, &keys, unix_secs()).unwrap())
}

#[test]
fn a_writable_zone_has_its_history_after_a_restart_and_a_file_begins_anew() {
    let zones = [("open.test", PLAIN, "\"127.0.0.1\"")];
    let mut primary = Primary::start(&zones, "state = \"state\"");
    let folder = primary.folder.path().to_owned();
    let names = (0..300).map(|number| format!("h{number} A 10.0.0.1\n")).collect::<String>();
    fs::write(folder.join("write.zone"), PLAIN.to_owned() + &names).unwrap();
    let config = fs::read_to_string(folder.join("zonda.toml")).unwrap();
    let zone = "[[zone]]\nname = \"write.test\"\nfile = \"write.zone\"\nwritable = true\n\
        transfer = { to = [\"127.0.0.1\"] }\n";
    fs::write(folder.join("zonda.toml"), config + zone).unwrap();
    primary.reload();
    for number in 0..5 {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
        let (name, data) = ("new.write.test", format!("192.0.2.{number}"));
        command.args(["zone", "set", name, "60", "A", &data, "--socket"]);
        assert!(command.arg(folder.join("admin.sock")).status().unwrap().success());
    }
    publish(&primary, 8);
    let records = |primary: &Primary, zone: &str, serial: u32| {
        let said = client("dig", primary.address, &[zone, &format!("IXFR={serial}")]);
        let size = said.split("XFR size: ").nth(1).and_then(|it| it.split(' ').next());
        size.and_then(|size| size.parse().ok()).unwrap_or(0_usize)
    };
    // Two changes of one record each, with the SOA records in front, and around all.
    let changes = |primary: &Primary| [8, 11].map(|serial| records(primary, "write.test", serial));
    let before = changes(&primary);
    assert_eq!(before[1], 6, "one removed, one added");
    assert_eq!(records(&primary, "open.test", 7), 4, "another serial alone");
    primary.restart();
    assert_eq!(changes(&primary), before);
    assert!(records(&primary, "open.test", 7) > 4, "the whole zone");
}
