//! `zonda query` against servers that answer rightly, wrongly, late or not at all.

#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;
use zonda_wire::message::{Message, Opt, Record};
use zonda_wire::query::flag;
use zonda_wire::{Section, Type};

/// Sockets for UDP and TCP on the same free port.
fn sockets() -> (UdpSocket, TcpListener) {
    for _ in 0..100 {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        if let Ok(udp) = UdpSocket::bind(tcp.local_addr().unwrap()) {
            udp.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            return (udp, tcp);
        }
    }
    panic!("no port is free for both");
}

/// Asks a server for `www.example.org A` with these options.
fn query(server: SocketAddr, options: &str) -> Output {
    let line = format!("query @{} -p {} www.example.org {options}", server.ip(), server.port());
    let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
    command.args(line.split_ascii_whitespace()).output().unwrap()
}

/// The reply that a server should give: an address.
fn answer(query: &[u8]) -> Message {
    let mut reply = Message::parse(query).unwrap();
    reply.flags |= flag::QR | flag::AA;
    let owner = reply.questions[0].name.clone();
    reply.records.push(Record::new(Section::Answer, owner, Type::A, 60, vec![192, 0, 2, 1]));
    reply
}

/// Receives a datagram; answers with what `replies` makes of it.
fn serve_udp(udp: &UdpSocket, replies: impl FnOnce(&[u8]) -> Vec<Vec<u8>>) -> Vec<u8> {
    let mut buffer = [0; 4096];
    let (len, client) = udp.recv_from(&mut buffer).unwrap();
    for reply in replies(&buffer[..len]) {
        udp.send_to(&reply, client).unwrap();
    }
    buffer[..len].to_vec()
}

/// What a command printed.
fn text(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).unwrap()
}

#[test]
fn a_reply_is_shown_section_by_section() {
    let (udp, _tcp) = sockets();
    let server = udp.local_addr().unwrap();
    let asked = thread::spawn(move || query(server, ""));
    let question = serve_udp(&udp, |query| {
        let mut reply = answer(query);
        reply.id = 0; // the number of a wrong reply
        let wrong = reply.to_wire();
        let mut reply = answer(query);
        let mut opt = Opt::new(1232);
        opt.flags = 0x8000;
        opt.options = vec![
            (3, b"a\x1b[0m".to_vec()),
            (15, b"\0\x12no\n".to_vec()),
            (8, vec![0, 1, 24, 20, 192, 0, 2]),
            (8, vec![0; 4]),
            (99, vec![1]),
        ];
        reply.opt = Some(opt);
        vec![b"junk".to_vec(), wrong, reply.to_wire()]
    });
    let question = Message::parse(&question).unwrap();
    assert!(question.has(flag::RD));
    assert_eq!(question.opt.unwrap().udp_bytes, 1232);
    let output = asked.join().unwrap();
    let printed = text(&output.stdout);
    let (head, tail) = printed.rsplit_once(" from ").unwrap();
    let expected = format!(
        "\
;; status NOERROR, opcode QUERY, id {}
;; flags qr aa rd
;; edns 0, takes 1232 octets, do
;; nsid 611B5B306D \"a\u{fffd}[0m\"
;; error 18 (Prohibited): no\u{fffd}
;; client subnet 192.0.2.0/24, scope 20
;; client subnet 00000000
;; option 99 01

;; question
;www.example.org.\tIN\tA

;; answer, 1
www.example.org.\t60\tIN\tA\t192.0.2.1

;; 117 octets",
        question.id
    );
    assert_eq!(head, expected);
    assert!(tail.starts_with(&format!("{server} over UDP in ")), "{tail}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn the_words_of_dig_for_servers_parts_networks_and_names_are_understood() {
    let (udp, _tcp) = sockets();
    let server = udp.local_addr().unwrap();
    let asked = thread::spawn(move || {
        let line = format!("query -4 @{server} Bücher.example +noall +answer +subnet=192.0.2.7/24");
        let mut command = Command::new(env!("CARGO_BIN_EXE_zonda"));
        command.args(line.split_ascii_whitespace()).output().unwrap()
    });
    let question = serve_udp(&udp, |query| vec![answer(query).to_wire()]);
    let question = Message::parse(&question).unwrap();
    let option = (8, vec![0, 1, 24, 0, 192, 0, 2]);
    assert_eq!(question.opt.unwrap().options, [option]);
    let output = asked.join().unwrap();
    assert_eq!(text(&output.stdout), "xn--bcher-kva.example.\t60\tIN\tA\t192.0.2.1\n");
    let none = query(server, "-6");
    assert_eq!(none.status.code(), Some(2), "the server's address is of the other family");
    let said = "zonda: 127.0.0.1: not an address, nor a name that has one over IPv6\n";
    assert_eq!(text(&none.stderr), said);
}

#[test]
fn a_reply_that_was_cut_off_is_asked_for_again_over_tcp() {
    let (udp, tcp) = sockets();
    let server = udp.local_addr().unwrap();
    let asked = thread::spawn(move || query(server, "+json"));
    serve_udp(&udp, |query| {
        let mut reply = answer(query);
        reply.flags |= flag::TC;
        reply.records.clear();
        vec![reply.to_wire()]
    });
    let (mut stream, _) = tcp.accept().unwrap();
    let mut len = [0; 2];
    stream.read_exact(&mut len).unwrap();
    let mut query = vec![0; usize::from(u16::from_be_bytes(len))];
    stream.read_exact(&mut query).unwrap();
    let reply = answer(&query).to_wire();
    for piece in [&(reply.len() as u16).to_be_bytes()[..1], &[reply.len() as u8], &reply] {
        stream.write_all(piece).unwrap();
        thread::sleep(Duration::from_millis(20));
    }
    let output = asked.join().unwrap();
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["transport"], "TCP");
    assert_eq!(shown["flags"], serde_json::json!(["qr", "aa", "rd"]));
    assert_eq!(shown["answer"][0]["data"], "192.0.2.1");
}

#[test]
fn a_reply_that_was_cut_off_is_shown_if_that_is_wanted() {
    let (udp, _tcp) = sockets();
    let server = udp.local_addr().unwrap();
    let asked = thread::spawn(move || query(server, "+ignore +json +norec +noedns"));
    let question = serve_udp(&udp, |query| {
        let mut reply = answer(query);
        reply.flags |= flag::TC;
        vec![reply.to_wire()]
    });
    assert_eq!(question.len(), 12 + 17 + 4);
    assert_eq!(question[2..4], [0, 0]);
    let shown: Value = serde_json::from_slice(&asked.join().unwrap().stdout).unwrap();
    assert_eq!(shown["transport"], "UDP");
    assert_eq!(shown["flags"], serde_json::json!(["qr", "aa", "tc"]));
}

#[test]
fn a_question_that_gets_no_reply_is_asked_again() {
    let (udp, _tcp) = sockets();
    let server = udp.local_addr().unwrap();
    let asked = thread::spawn(move || query(server, "+time=1 +short"));
    let first = serve_udp(&udp, |_| Vec::new());
    let second = serve_udp(&udp, |query| vec![answer(query).to_wire()]);
    assert_eq!(first, second);
    assert_eq!(text(&asked.join().unwrap().stdout), "192.0.2.1\n");
}

#[test]
fn a_server_that_stays_silent_or_answers_something_else_is_given_up() {
    let (udp, tcp) = sockets();
    let server = udp.local_addr().unwrap();
    let silent = query(server, "+time=1 +tries=1");
    assert_eq!(text(&silent.stderr), format!("zonda: {server}: no reply in time\n"));
    assert_eq!(silent.status.code(), Some(1));

    serve_udp(&udp, |_| Vec::new());
    let asked = thread::spawn(move || query(server, "+time=1 +tries=1"));
    serve_udp(&udp, |query| {
        let mut reply = answer(query);
        reply.questions[0].qtype = Type::AAAA;
        vec![reply.to_wire()]
    });
    let said = text(&asked.join().unwrap().stderr);
    let expected = "the reply is malformed or answers another question";
    assert_eq!(said, format!("zonda: {server}: {expected}\n"));

    let asked = thread::spawn(move || query(server, "+tcp"));
    drop(tcp.accept().unwrap());
    let said = text(&asked.join().unwrap().stderr);
    assert!(said.starts_with(&format!("zonda: {server}: ")), "{said}");
}

#[test]
fn a_port_where_nobody_listens_is_told_at_once() {
    let (udp, tcp) = sockets();
    let server = udp.local_addr().unwrap();
    drop((udp, tcp));
    for options in ["", "+tcp"] {
        let output = query(server, options);
        let said = text(&output.stderr);
        assert!(said.contains("refused"), "{said}");
        assert_eq!(output.status.code(), Some(1));
    }
}
