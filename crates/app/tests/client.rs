//! What code learns of a query's client, and what then becomes of its answers.

#![allow(clippy::unwrap_used)]

use std::fmt::Debug;
use zonda::{App, Message, OwnedQuery, Query, Reply, Running, Txt, Vary};

/// Returns a query for TXT of a name, with a client's network, if it has octets, and cookie.
fn question(name: &str, subnet: &[u8], cookie: &[u8]) -> Vec<u8> {
    let name: zonda::Name = name.parse().unwrap();
    let option = |code: u16, data: &[u8]| {
        [&code.to_be_bytes(), &(data.len() as u16).to_be_bytes(), data].concat()
    };
    let network = if subnet.is_empty() { Vec::new() } else { option(8, subnet) };
    let options = [network, option(10, cookie)].concat();
    let mut message = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\x01".to_vec();
    message.extend_from_slice(name.as_wire());
    message.extend_from_slice(b"\0\x10\0\x01\0\0\x29\x04\xd0\0\0\0\0");
    message.extend_from_slice(&(options.len() as u16).to_be_bytes());
    message.extend_from_slice(&options);
    message
}

/// Returns a reply with what code has seen, marked as valid for every client.
fn saying(seen: Option<impl Debug>) -> Reply {
    let mut reply = Reply::default();
    reply.answer(Txt::new(format!("{seen:?}")).ttl(60));
    reply.cache(60, Vary::Nothing);
    reply
}

/// Returns the text of the answer to a query.
async fn text(running: &Running, query: &[u8]) -> String {
    let reply = running.query_message(query).await.unwrap();
    let reply = Message::parse(&reply).unwrap();
    String::from_utf8(reply.records[0].rdata[1..].to_vec()).unwrap()
}

/// Returns the scope of the reply to a query.
async fn scope(running: &Running, query: &[u8]) -> u8 {
    let reply = running.query_message(query).await.unwrap();
    let options = Message::parse(&reply).unwrap().opt.unwrap().options;
    options.into_iter().find(|(code, _)| *code == 8).map(|(_, data)| data[3]).unwrap()
}

#[tokio::test]
async fn a_reply_has_the_scope_that_code_says_or_that_of_all_that_it_may_have_looked_at() {
    let looks = |query: &OwnedQuery| query.client_subnet().is_some();
    let app = App::new()
        .listen("127.0.0.1:0")
        .workers(1)
        .middleware_async(move |query: OwnedQuery| async move {
            let mut reply = Reply::default();
            match query.name().to_string().as_str() {
                "middleware-looks.example." => _ = looks(&query),
                "middleware-says.example." if looks(&query) => reply.client_subnet_scope(20),
                _ => {}
            }
            reply
        })
        .handle_async("*.example", move |query: OwnedQuery| async move {
            let mut reply = saying(Some(1));
            match query.name().to_string().as_str() {
                "looks.example." => _ = looks(&query),
                "says.example." if looks(&query) => reply.client_subnet_scope(16),
                "middleware-looks.example." => reply.client_subnet_scope(8),
                "middleware-says.example." => reply.client_subnet_scope(16),
                _ => {}
            }
            reply
        })
        .handle("here.example", |_: &Query, reply: &mut Reply| {
            *reply = saying(Some(1));
            reply.client_subnet_scope(12);
        });
    let running = app.start_blocking().unwrap();
    for (name, expected) in [
        ("blind.example", 0),
        ("looks.example", 24),
        ("says.example", 16),
        ("here.example", 12),
        ("middleware-looks.example", 24),
        ("middleware-says.example", 20),
    ] {
        let query = question(name, &[0, 1, 24, 0, 192, 0, 2], b"aaaaaaaa");
        assert_eq!(scope(&running, &query).await, expected, "{name}");
    }
    running.stop_blocking().unwrap();
}

#[tokio::test]
async fn code_sees_client_subnet_and_cookie_and_such_replies_are_not_shared() {
    let app = App::new()
        .listen("127.0.0.1:0")
        .workers(1)
        .handle("subnet.example", |query: &Query, reply: &mut Reply| {
            *reply = saying(query.client_subnet().map(|it| it.to_string()))
        })
        .handle("cookie.example", |query: &Query, reply: &mut Reply| {
            *reply = saying(query.cookie().map(|it| (it.client, it.server.len())))
        })
        .handle_async("subnet.async.example", |query: OwnedQuery| async move {
            saying(query.client_subnet().map(|it| it.to_string()))
        })
        .handle_async("cookie.async.example", |query: OwnedQuery| async move {
            saying(query.cookie().map(|it| (it.client, it.server.len())))
        });
    let running = app.start_blocking().unwrap();
    let clients: [(&[u8], &[u8], [&str; 2]); 3] = [
        (
            &[0, 1, 24, 0, 192, 0, 2],
            b"aaaaaaaa",
            [r#"Some("192.0.2.0/24")"#, "Some(([97, 97, 97, 97, 97, 97, 97, 97], 0))"],
        ),
        (
            &[0, 2, 32, 0, 0x20, 1, 0xd, 0xb8],
            b"bbbbbbbbserverxx",
            [r#"Some("2001:db8::/32")"#, "Some(([98, 98, 98, 98, 98, 98, 98, 98], 8))"],
        ),
        (&[], b"cccccccc", ["None", "Some(([99, 99, 99, 99, 99, 99, 99, 99], 0))"]),
    ];
    for (subnet, cookie, [seen_subnet, seen_cookie]) in clients {
        for (name, seen) in [
            ("subnet.example", seen_subnet),
            ("subnet.async.example", seen_subnet),
            ("cookie.example", seen_cookie),
            ("cookie.async.example", seen_cookie),
        ] {
            assert_eq!(text(&running, &question(name, subnet, cookie)).await, seen, "{name}");
        }
    }
    running.stop_blocking().unwrap();
}
