//! What is explained of queries that code answers, beside what is served.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use zonda::{A, App, Message, OwnedQuery, Query, Reply, Section};
use zonda_testkit::process::Folder;

/// What the server says of a query for A that comes from 10.1.2.3, which tells a network if that
/// is given.
fn explain(socket: &Path, name: &str, subnet: Option<&str>) -> Value {
    let body = json!({ "name": name, "client": "10.1.2.3", "subnet": subnet }).to_string();
    let head = format!(
        "POST /v1/explain HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: \
         application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut connection = UnixStream::connect(socket).unwrap();
    connection.write_all((head + &body).as_bytes()).unwrap();
    let mut reply = String::new();
    connection.read_to_string(&mut reply).unwrap();
    let body = reply.split_once("\r\n\r\n").unwrap().1;
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {reply}"))
}

/// The address that is served for a name of two labels, and the scope of the reply to a query that
/// tells the network 198.51.100.0/24.
fn served(server: SocketAddr, name: &str) -> (String, u8) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let labels =
        name.split('.').flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat());
    let option = [0, 8, 0, 7, 0, 1, 24, 0, 198, 51, 100];
    let opt = [&[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, option.len() as u8][..], &option].concat();
    let name: Vec<u8> = labels.chain([0]).collect();
    let header = [0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1];
    let query = [&header[..], &name, &[0, 1, 0, 1], &opt].concat();
    socket.send_to(&query, server).unwrap();
    let mut buffer = [0; 512];
    let len = socket.recv(&mut buffer).unwrap();
    let reply = Message::parse(&buffer[..len]).unwrap();
    let record = reply.section(Section::Answer).next().unwrap();
    let address: [u8; 4] = record.rdata[..].try_into().unwrap();
    let options = &reply.opt.as_ref().unwrap().options;
    let scope = options.iter().find(|(code, _)| *code == 8).map_or(0, |(_, data)| data[3]);
    (std::net::Ipv4Addr::from(address).to_string(), scope)
}

/// The texts of the steps of a kind.
fn steps<'e>(explanation: &'e Value, kind: &str) -> Vec<&'e str> {
    let steps = explanation["steps"].as_array().unwrap().iter();
    steps.filter(|step| step["step"] == kind).map(|it| it["text"].as_str().unwrap()).collect()
}

#[test]
fn what_is_explained_of_code_is_what_it_answers() {
    let folder = Folder::new("explain");
    let socket = folder.path().join("admin.sock");
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let app = App::new()
        .config(folder.write("zonda.toml", format!("version = 1\n[admin]\nsocket = {socket:?}\n")))
        .listen("127.0.0.1:0")
        .workers(1)
        .handle("all.example", move |_: &Query, reply: &mut Reply| {
            counted.fetch_add(1, Ordering::Relaxed);
            reply.answer(A::new([192, 0, 2, 1]).ttl(60));
        })
        .handle("near.example", |query: &Query, reply: &mut Reply| {
            let is_far = query.client_subnet().is_some();
            reply.answer(A::new([192, 0, 2, if is_far { 3 } else { 2 }]));
            reply.client_subnet_scope(16);
        })
        .handle_async("slow.example", |_: OwnedQuery| async {
            let mut reply = Reply::default();
            reply.answer(A::new([192, 0, 2, 4]));
            reply
        });
    let running = app.start_blocking().unwrap();
    let server = running.addresses()[0];

    let all = explain(&socket, "all.example", Some("198.51.100.0/24"));
    let (address, scope) = served(server, "all.example");
    assert!(all["answer"][0].as_str().is_some_and(|it| it.ends_with(&address)), "{all:#}");
    assert_eq!((&all["reason"], &all["scope"]), (&json!("handled"), &json!(scope)), "{all:#}");
    let code = steps(&all, "code");
    assert_eq!(code, ["the handler of all.example is called in front of all zones"], "{all:#}");
    assert_eq!(calls.load(Ordering::Relaxed), 2, "a handler in a worker is called for it, too");

    let near = explain(&socket, "near.example", Some("198.51.100.0/24"));
    let (address, scope) = served(server, "near.example");
    assert_eq!((address.as_str(), scope), ("192.0.2.3", 16));
    assert!(near["answer"][0].as_str().unwrap().ends_with("192.0.2.3"), "{near:#}");
    assert_eq!(near["scope"], 16);
    assert!(steps(&near, "resolver")[0].contains("198.51.0.0/16"), "{near:#}");
    let without = explain(&socket, "near.example", None);
    assert!(without["answer"][0].as_str().unwrap().ends_with("192.0.2.2"), "{without:#}");

    let slow = explain(&socket, "slow.example", None);
    assert_eq!(served(server, "slow.example").0, "192.0.2.4");
    assert!(steps(&slow, "code").iter().any(|it| it.contains("in its own runtime")), "{slow:#}");
    assert!(slow["answer"].is_null(), "{slow:#}");
    running.stop_blocking().unwrap();
}
