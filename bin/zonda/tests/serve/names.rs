//! Servers that names are forwarded to and that are given by name themselves.

use super::server::{Server, ask_once, wait_until};
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use zonda_testkit::process::free_port;
use zonda_testkit::{Question, ask};

/// A server that answers any question for an A record with these addresses, and any other question
/// with no record; when there is no address any more, it is silent.
fn answering(own: SocketAddr, ttl: u8, first: &[[u8; 4]]) -> Arc<Mutex<Vec<[u8; 4]>>> {
    let socket = UdpSocket::bind(own).unwrap();
    let told = Arc::new(Mutex::new(first.to_vec()));
    let current = Arc::clone(&told);
    thread::spawn(move || {
        let mut query = [0; 512];
        while let Ok((len, client)) = socket.recv_from(&mut query) {
            let name = query[12..len].iter().position(|octet| *octet == 0).unwrap();
            let mut message = query[..12 + name + 5].to_vec();
            let is_a = message[12 + name + 2] == 1;
            let addresses = current.lock().unwrap().clone();
            if addresses.is_empty() {
                continue;
            }
            let count = if is_a { addresses.len() as u8 } else { 0 };
            message[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, count, 0, 0, 0, 0]);
            for address in addresses.iter().take(count.into()) {
                message.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, ttl, 0, 4]);
                message.extend_from_slice(address);
            }
            let _ = socket.send_to(&message, client);
        }
    });
    told
}

/// The data of the only record of the answer for a name that is not known yet.
fn data(server: &Server, number: u32) -> String {
    let question = Question::new(&format!("name{number}.example.net"), "A").recursive().edns(1232);
    let reply = ask(server.zonda.address, &question).unwrap();
    let [record] = &reply.answer[..] else { panic!("{number}: {reply:?}") };
    record.data.text.clone()
}

#[test]
fn a_server_is_found_by_its_name_and_followed_where_it_goes_without_loss() {
    let (port, directory) = (free_port(), SocketAddr::from(([127, 0, 0, 4], free_port())));
    answering(([127, 0, 0, 2], port).into(), 60, &[[192, 0, 2, 2]]);
    answering(([127, 0, 0, 3], port).into(), 60, &[[192, 0, 2, 3]]);
    let place = answering(directory, 1, &[[127, 0, 0, 2]]);
    let server = Server::start(
        &[],
        &format!(
            "[[zone]]\nname = \".\"\n[zone.forward]\nto = \"dns.example.net:{port}\"\n\
             bootstrap = \"{directory}\"\n"
        ),
    );
    assert_eq!(data(&server, 0), "192.0.2.2");
    *place.lock().unwrap() = vec![[127, 0, 0, 3]];
    let limit = Instant::now() + Duration::from_secs(10);
    let mut number = 1;
    while data(&server, number) == "192.0.2.2" {
        assert!(Instant::now() < limit, "it is still asked where it was");
        number += 1;
        thread::sleep(Duration::from_millis(1));
    }
    assert!((number + 1..number + 100).all(|number| data(&server, number) == "192.0.2.3"));
}

#[test]
fn a_server_whose_name_nobody_knows_yet_is_asked_once_it_is_known() {
    let (port, directory) = (free_port(), SocketAddr::from(([127, 0, 0, 4], free_port())));
    answering(([127, 0, 0, 2], port).into(), 60, &[[192, 0, 2, 2]]);
    let keys = format!(
        "[[zone]]\nname = \".\"\n[zone.forward]\nto = \"dns.example.net:{port}\"\n\
         timeout = \"1s\"\nbootstrap = \"{directory}\"\n"
    );
    let server = Server::start(&[], &keys);
    let question = Question::new("name.example.net", "A").recursive().edns(1232);
    assert_eq!(ask(server.zonda.address, &question).unwrap().rcode_text(), "SERVFAIL");
    let list = server.get("/v1/upstreams").1;
    assert!(list.contains("\"addresses\": []"), "{list}");
    answering(directory, 60, &[[127, 0, 0, 2]]);
    let limit = Instant::now() + Duration::from_secs(20);
    let other = Question::new("other.example.net", "A").recursive().edns(1232);
    while !matches!(ask_once(server.zonda.address, &other), Ok(0)) {
        assert!(Instant::now() < limit, "{}", server.get("/v1/upstreams").1);
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_server_that_falls_silent_at_one_address_is_asked_at_the_next() {
    let (port, directory) = (free_port(), SocketAddr::from(([127, 0, 0, 4], free_port())));
    let second = answering(([127, 0, 0, 3], port).into(), 60, &[[192, 0, 2, 3]]);
    answering(directory, 60, &[[127, 0, 0, 2], [127, 0, 0, 3]]);
    let keys = format!(
        "[[zone]]\nname = \".\"\n[zone.forward]\nto = \"dns.example.net:{port}\"\n\
         timeout = \"1s\"\nbootstrap = \"{directory}\"\n"
    );
    let server = Server::start(&[], &keys);
    let expect = |numbers: std::ops::Range<u32>, address: &str, within_millis: u64| {
        let start = Instant::now();
        numbers.clone().for_each(|number| assert_eq!(data(&server, number), address));
        assert!(start.elapsed() < Duration::from_millis(within_millis), "{:?}", start.elapsed());
    };
    expect(0..1, "192.0.2.3", 2000); // no server at the first address
    expect(1..50, "192.0.2.3", 1000);
    let first = answering(([127, 0, 0, 2], port).into(), 60, &[[192, 0, 2, 2]]);
    expect(50..60, "192.0.2.3", 500);
    second.lock().unwrap().clear();
    expect(60..61, "192.0.2.2", 2000);
    expect(61..110, "192.0.2.2", 1000);
    first.lock().unwrap().clear(); // both are, until all threads see it down
    let up = format!(
        "zonda_upstream_state{{zone=\".\",upstream=\"dns.example.net:{port}\",state=\"up\"}}"
    );
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut number = 0;
    wait_until("the server to be seen as down", || {
        let name = format!("lost{number}.example.net");
        number += 1;
        let query = Question::new(&name, "A").recursive().to_bytes(7);
        client.send_to(&query, server.zonda.address).unwrap();
        server.metric(&up) == 0.0
    });
    second.lock().unwrap().push([192, 0, 2, 3]);
    wait_until("an answer from the other address", || {
        number += 1;
        let name = format!("later{number}.example.net");
        let later = Question::new(&name, "A").recursive().edns(1232);
        ask_once(server.zonda.address, &later).is_ok_and(|code| code == 0)
    });
}
