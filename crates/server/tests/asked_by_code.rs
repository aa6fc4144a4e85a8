//! What code that does not run in the workers asks of the server about queries it has to answer.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use zonda_config::Flags;
use zonda_engine::code::HandlerReply;
use zonda_engine::{Event, HandlerOutcome};
use zonda_runtime::RuntimeConfig;
use zonda_server::{Code, Options, OwnReply, Program, RuntimeHandle, Server, Texts, read_config};
use zonda_wire::{Message, Name, Rcode, Section, Type};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The zone `example.org`.
const ZONE: &str = "@ 300 SOA ns h 1 2 3 4 5\n@ 300 NS ns\nns 300 A 192.0.2.1\n";

/// A query for the address of a name.
fn query(name: &str) -> Vec<u8> {
    let name: Name = name.parse().unwrap();
    let header = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0";
    [&header[..], name.as_wire(), &[0, 1, 0, 1]].concat()
}

/// A server that gives every name the address 192.0.2.2.
fn upstream() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 1024];
        while let Ok((len, client)) = socket.recv_from(&mut buffer) {
            let name = buffer[12..len].iter().position(|octet| *octet == 0).unwrap();
            let mut reply = buffer[..12 + name + 5].to_vec();
            reply[2..12].copy_from_slice(b"\x81\x80\0\x01\0\x01\0\0\0\0");
            reply.extend_from_slice(b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x02");
            let _ = socket.send_to(&reply, client);
        }
    });
    address
}

/// The sum of a metric over those of its labels that hold `part`.
fn metric(server: SocketAddr, name: &str, part: &str) -> f64 {
    let mut connection = TcpStream::connect(server).unwrap();
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    connection.write_all(request.as_bytes()).unwrap();
    let mut page = String::new();
    connection.read_to_string(&mut page).unwrap();
    let lines = page.lines().filter(|line| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(['{', ' ']) && rest.contains(part))
    });
    lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum()
}

/// Has code look at what the server says to a query, and answer something else.
fn answer(server: &Server, handle: &mut RuntimeHandle) -> Vec<u8> {
    let mut waiting = Vec::new();
    handle.runtime.take(16, |ticket, _, deferred| {
        waiting.push((ticket, deferred.query.clone(), deferred.peer));
    });
    let [(ticket, query, peer)] = waiting.try_into().unwrap();
    let below = match server.query_below(&query, peer) {
        OwnReply::Now(reply) => reply,
        OwnReply::Later(mut reply) => reply.blocking_recv(),
    };
    let mut draft = HandlerReply::default();
    draft.push(Section::Answer, &[], (Type::A, 60), &[192, 0, 2, 7]).unwrap();
    draft.reply(Rcode::NOERROR);
    handle.answerer.answer(&handle.runtime, ticket, HandlerOutcome::Reply(&draft));
    handle.answerer.send();
    Message::parse(&below.unwrap().message).unwrap().records[0].rdata.clone()
}

#[test]
fn a_query_is_counted_and_logged_once_whatever_its_code_asks_about_it() {
    let admin = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let flags = Flags {
        listen: vec!["127.0.0.1:0".to_owned()],
        workers: Some("1".to_owned()),
        forward: Some(upstream().to_string()),
        ..Flags::default()
    };
    let texts = Texts::from([("example.org".parse().unwrap(), ZONE.into())]);
    let load = move || read_config(None, &flags, Some(admin));
    let (wake, woken) = mpsc::channel();
    let wake = Box::new(move || _ = wake.send(()));
    let patience_nanos = u64::try_from(PATIENCE.as_nanos()).unwrap();
    let (sender, handles) = mpsc::channel();
    let logged = Arc::<AtomicU32>::default();
    let count = Arc::clone(&logged);
    let program = Program {
        code: Code { middleware_runtime: Some(0), ..Code::default() },
        runtimes: vec![RuntimeConfig { waiting_max: 16, patience_nanos, wake }],
        start: Some(Box::new(move |handles| _ = sender.send(handles))),
        texts,
        loggers: vec![Arc::new(move |_: &Event<'_>| _ = count.fetch_add(1, Ordering::Relaxed))],
        ..Program::default()
    };
    let (config, read_config) = (load().unwrap(), Box::new(load));
    let options = Options { config, read_config, take_over: false, program };
    let server = Server::start(options).unwrap();
    let mut handle = handles.recv_timeout(PATIENCE).unwrap().remove(0);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.connect(server.addresses()[0]).unwrap();
    let mut octets = 0;
    for (name, below) in [("ns.example.org", [192, 0, 2, 1]), ("a.example.net", [192, 0, 2, 2])] {
        client.send(&query(name)).unwrap();
        woken.recv_timeout(PATIENCE).unwrap();
        assert_eq!(answer(&server, &mut handle), below, "{name}");
        let mut buffer = [0; 512];
        octets += client.recv(&mut buffer).unwrap();
    }
    assert_eq!(metric(admin, "zonda_queries_total", "handled"), 2.0);
    assert_eq!(metric(admin, "zonda_queries_total", ""), 2.0);
    assert_eq!(metric(admin, "zonda_replies_total", ""), 2.0);
    assert_eq!(metric(admin, "zonda_zone_queries_total", "example.org."), 1.0);
    assert_eq!(metric(admin, "zonda_sent_bytes_total", ""), octets as f64);
    assert_eq!(logged.load(Ordering::Relaxed), 2);
    server.stop().unwrap();
}
