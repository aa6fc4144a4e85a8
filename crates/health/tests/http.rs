//! Probes by HTTP without TLS.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{
    LONG, Manner, SHORT, answer_http, http_server, probe, probe_within, refusing, relay, server,
    words,
};
use tokio::io::AsyncWriteExt;
use zonda_health::{Fault, HttpCheck, HttpVersion, Kind, Step};

/// Returns the check by GET of `/health`.
fn health() -> HttpCheck {
    HttpCheck::new("/health").unwrap()
}

/// Returns a response with a status and a body.
fn response(status: u16, body: &str) -> String {
    format!("HTTP/1.1 {status} Words\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn a_status_of_200_to_399_is_a_success_unless_the_check_says_otherwise() {
    for (status, told) in [
        (200, "HTTP status 200"),
        (204, "HTTP status 204"),
        (301, "HTTP status 301"),
        (399, "HTTP status 399"),
        (400, "FAULT HTTP status 400"),
        (503, "FAULT HTTP status 503"),
    ] {
        let (address, _) = http_server(response(status, "")).await;
        assert_eq!(words(&probe(address, Kind::Http(health())).await), told);
    }
    let (address, _) = http_server(response(301, "")).await;
    let strict = health().with_statuses(&[200..=299, 418..=418]).unwrap();
    assert_eq!(probe(address, Kind::Http(strict.clone())).await, Err(Fault::Status(301)));
    let (address, _) = http_server(response(418, "")).await;
    assert!(probe(address, Kind::Http(strict)).await.is_ok());
}

#[tokio::test]
async fn the_request_has_method_path_host_and_headers_of_the_check() {
    let (address, requests) = http_server(response(200, "")).await;
    let check = HttpCheck::new("/a?b=c").unwrap().with_method("HEAD").unwrap();
    let check = check.with_host("www.example.com").unwrap().with_header("X-Token", "7").unwrap();
    probe(address, Kind::Http(check)).await.unwrap();
    let request = requests.lock().unwrap()[0].to_lowercase();
    assert!(request.starts_with("head /a?b=c http/1.1\r\n"), "{request}");
    for line in ["host: www.example.com", "x-token: 7", "connection: close", "user-agent: zonda/"] {
        assert!(request.contains(&format!("\r\n{line}")), "{line}: {request}");
    }
    probe(address, Kind::Http(health())).await.unwrap();
    let request = requests.lock().unwrap()[1].to_lowercase();
    assert!(request.contains(&format!("\r\nhost: {address}\r\n")), "{request}");
}

#[tokio::test]
async fn a_target_of_ipv6_is_asked_for_the_path_with_its_address_in_brackets() {
    let requests = Arc::default();
    let heard = Arc::clone(&requests);
    let address = server("[::1]:0", move |stream| {
        answer_http(stream, response(200, "").into(), Arc::clone(&heard))
    })
    .await;
    probe(address, Kind::Http(health())).await.unwrap();
    let request = requests.lock().unwrap()[0].clone();
    let beginning = format!("GET /health HTTP/1.1\r\nhost: [::1]:{}\r\n", address.port());
    assert!(request.starts_with(&beginning), "{request}");
}

#[tokio::test]
async fn a_text_must_lie_in_the_first_octets_of_the_body() {
    let check = |text| Kind::Http(health().with_text(text).unwrap());
    let (address, _) = http_server(response(200, "all is ready here")).await;
    assert!(probe(address, check("ready")).await.is_ok());
    assert_eq!(probe(address, check("Ready")).await, Err(Fault::Text));
    let chunked =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nrea\r\n2\r\ndy\r\n0\r\n\r\n";
    let (address, _) = http_server(chunked).await;
    assert!(probe(address, check("ready")).await.is_ok());
    let (address, _) = http_server("HTTP/1.0 200 OK\r\n\r\nuntil the end: ready").await;
    assert!(probe(address, check("ready")).await.is_ok());
    let late = format!("{}ready", "x".repeat(5120));
    let (address, _) = http_server(response(200, &late)).await;
    assert_eq!(probe(address, check("ready")).await, Err(Fault::Text));
}

#[tokio::test]
async fn an_endless_body_costs_neither_time_nor_memory() {
    let endless = |head: &'static str| {
        server("127.0.0.1:0", move |mut stream| async move {
            let part = [b'x'; 65_536];
            if stream.write_all(head.as_bytes()).await.is_ok() {
                while stream.write_all(&part).await.is_ok() {}
            }
        })
    };
    let begun = Instant::now();
    let address = endless("HTTP/1.1 200 OK\r\n\r\n").await;
    assert!(probe(address, Kind::Http(health())).await.is_ok());
    let with_text = Kind::Http(health().with_text("ready").unwrap());
    assert_eq!(probe(address, with_text).await, Err(Fault::Text));
    for head in ["HTTP/1.1 200 OK\r\nX: ", ""] {
        let address = endless(head).await;
        let outcome = probe(address, Kind::Http(health())).await;
        assert_eq!(outcome, Err(Fault::Protocol("HTTP/1.1")), "{head:?}");
    }
    assert!(begun.elapsed() < LONG);
}

#[tokio::test]
async fn a_target_that_closes_early_is_down_wherever_it_does() {
    let (behind, _) = http_server(response(200, "ready")).await;
    let head = response(200, "ready").len() - 5;
    let check = || Kind::Http(health().with_text("ready").unwrap());
    let closed = Err(Fault::Closed(Step::Reply));
    let address = relay(behind, Manner::Close).await;
    assert_eq!(probe(address, check()).await, closed);
    for octets in [0, 1, 12, head - 1, head, head + 4] {
        let address = relay(behind, Manner::CutAfter(octets)).await;
        assert_eq!(probe(address, check()).await, closed, "after {octets} octets");
    }
    let address = relay(behind, Manner::CutAfter(head + 5)).await;
    assert!(probe(address, check()).await.is_ok());
    assert_eq!(probe(refusing().await, check()).await, Err(Fault::Refused));
}

#[tokio::test]
async fn a_silent_and_a_slow_target_are_given_up_after_the_timeout() {
    let (behind, _) = http_server(response(200, "ready")).await;
    for manner in [Manner::Silent, Manner::Slow(Duration::from_millis(100))] {
        let address = relay(behind, manner).await;
        let begun = Instant::now();
        let outcome = probe_within(address, Kind::Http(health()), SHORT).await;
        assert_eq!(outcome, Err(Fault::Timeout(Step::Reply)), "{manner:?}");
        assert!(begun.elapsed() < 4 * SHORT);
    }
    let address = relay(behind, Manner::Slow(Duration::from_millis(1))).await;
    assert!(probe(address, Kind::Http(health())).await.is_ok());
}

#[tokio::test]
async fn what_is_no_http_is_told_apart() {
    for garbage in ["SSH-2.0-OpenSSH_9.2p1\r\n", "\x15\x03\x01\0\x02\x02\x0a", "HTTP/9 x\r\n\r\n"] {
        let address = server("127.0.0.1:0", move |mut stream| async move {
            stream.write_all(garbage.as_bytes()).await.unwrap();
            tokio::time::sleep(LONG).await;
        })
        .await;
        let outcome = probe_within(address, Kind::Http(health()), 4 * SHORT).await;
        assert_eq!(outcome, Err(Fault::Protocol("HTTP/1.1")), "{garbage:?}");
    }
}

#[tokio::test]
async fn interim_responses_are_passed_over() {
    let early = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let (address, _) = http_server(format!("{early}{}", response(503, ""))).await;
    assert_eq!(probe(address, Kind::Http(health())).await, Err(Fault::Status(503)));
}

#[tokio::test]
async fn an_endless_body_of_http_2_ends_with_the_octets_that_are_looked_at() {
    let endless = |part: &'static [u8]| {
        server("127.0.0.1:0", move |stream| async move {
            let Ok(mut connection) = h2::server::handshake(stream).await else { return };
            let Some(Ok((_, mut respond))) = connection.accept().await else { return };
            let mut body = respond.send_response(http::Response::new(()), false).unwrap();
            // The second future drives the connection, the first fills it.
            let fill = async {
                while body.send_data(part.into(), false).is_ok() {
                    tokio::time::sleep(Duration::from_micros(20)).await;
                }
            };
            tokio::select! {
                () = fill => {}
                _ = std::future::poll_fn(|context| connection.poll_closed(context)) => {}
            }
        })
    };
    let check = health().with_version(HttpVersion::Http2).with_text("ready").unwrap();
    let begun = Instant::now();
    let address = endless(b"an octet and another, and so on").await;
    assert_eq!(probe(address, Kind::Http(check.clone())).await, Err(Fault::Text));
    assert!(begun.elapsed() < LONG);
}

/// Starts a server of HTTP/2 without TLS that answers with a status and a body in two parts.
async fn http2_server(status: u16) -> std::net::SocketAddr {
    server("127.0.0.1:0", move |stream| async move {
        let Ok(mut connection) = h2::server::handshake(stream).await else { return };
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            assert_eq!(request.uri(), "http://www.example.com/health");
            let response = http::Response::builder().status(status).body(()).unwrap();
            let mut body = respond.send_response(response, false).unwrap();
            body.send_data("all is rea".into(), false).unwrap();
            body.send_data("dy".into(), true).unwrap();
        }
    })
    .await
}

#[tokio::test]
async fn http_2_is_spoken_without_tls_as_well() {
    let check = health().with_version(HttpVersion::Http2).with_host("www.example.com").unwrap();
    let address = http2_server(200).await;
    assert!(probe(address, Kind::Http(check.clone())).await.is_ok());
    let with_text = |text| Kind::Http(check.clone().with_text(text).unwrap());
    assert!(probe(address, with_text("ready")).await.is_ok());
    assert_eq!(probe(address, with_text("other")).await, Err(Fault::Text));
    let address = http2_server(500).await;
    assert_eq!(probe(address, Kind::Http(check.clone())).await, Err(Fault::Status(500)));
    let (address, _) = http_server(response(400, "")).await;
    let outcome = probe_within(address, Kind::Http(check.clone()), 4 * SHORT).await;
    assert!(outcome.is_err(), "{outcome:?}");
    let silent = relay(address, Manner::Silent).await;
    let outcome = probe_within(silent, Kind::Http(check), SHORT).await;
    assert_eq!(outcome, Err(Fault::Timeout(Step::Reply)));
}
