//! Probes that send octets or a DNS query, and look at the reply.

#![allow(clippy::unwrap_used)]

mod common;

use std::net::SocketAddr;
use std::time::Duration;

use common::certificates::{Authority, NAME, https_server};
use common::{
    LONG, Manner, SHORT, http_server, probe, probe_within, refusing, relay, server, words,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;
use zonda_health::{
    CheckError, DnsCheck, Fault, Kind, Step, TEXT_BYTES_MAX, TcpExchange, Transport, UdpExchange,
};
use zonda_wire::{Name, Rcode, Type};

/// Returns a check over TCP.
fn tcp(send: &str, expect: &str) -> Kind {
    Kind::TcpExchange(TcpExchange::new(send.as_bytes(), expect.as_bytes()).unwrap())
}

/// Returns a check over UDP.
fn udp(send: &str, expect: &str) -> Kind {
    Kind::UdpExchange(UdpExchange::new(send.as_bytes(), expect.as_bytes()).unwrap())
}

#[tokio::test]
async fn a_target_that_speaks_first_or_answers_is_judged_by_its_text() {
    let greeting = server("127.0.0.1:0", |mut stream| async move {
        let _ = stream.write_all(b"220 mail.example.com ESMTP\r\n").await;
        tokio::time::sleep(LONG).await;
    })
    .await;
    assert_eq!(words(&probe(greeting, tcp("", "220 ")).await), "expected reply");
    assert_eq!(words(&probe(greeting, tcp("", "")).await), "expected reply");
    let outcome = probe_within(greeting, tcp("", "550 "), SHORT).await;
    assert_eq!(outcome, Err(Fault::Timeout(Step::Reply)), "the text may come yet");

    let echo = server("127.0.0.1:0", |mut stream| async move {
        let (mut from, mut to) = stream.split();
        let _ = tokio::io::copy(&mut from, &mut to).await;
    })
    .await;
    assert!(probe(echo, tcp("PING\r\n", "PING")).await.is_ok());
    let slow = relay(echo, Manner::Slow(Duration::from_millis(1))).await;
    assert!(probe(slow, tcp("PING\r\n", "PING")).await.is_ok(), "octet by octet");
    assert_eq!(probe(refusing().await, tcp("", "")).await, Err(Fault::Refused));
}

#[tokio::test]
async fn a_reply_that_ends_or_goes_on_without_the_text_is_a_failure() {
    let (short, _) = http_server("HTTP/1.1 200 OK\r\n\r\n").await;
    let request = "GET / HTTP/1.0\r\n\r\n";
    assert_eq!(probe(short, tcp(request, "ready")).await, Err(Fault::Text));
    let closing = relay(short, Manner::Close).await;
    let outcome = probe(closing, tcp(request, "ready")).await;
    assert_eq!(outcome, Err(Fault::Closed(Step::Reply)));
    let endless = server("127.0.0.1:0", |mut stream| async move {
        while stream.write_all(&[b'x'; 65_536]).await.is_ok() {}
    })
    .await;
    assert_eq!(probe(endless, tcp("", "ready")).await, Err(Fault::Text));
    let long = vec![0; TEXT_BYTES_MAX + 1];
    assert_eq!(TcpExchange::new(b"", &long).unwrap_err(), CheckError::TextTooLong);
}

#[tokio::test]
async fn octets_are_exchanged_over_tls_as_well() {
    let authority = Authority::new();
    let address = https_server(authority.sign(NAME, 2999).acceptor(b"http/1.1", None)).await;
    let check = TcpExchange::new(b"GET / HTTP/1.0\r\n\r\n", b"200 OK").unwrap();
    let check = Kind::TcpExchange(check.with_tls(authority.settings()));
    let told = words(&probe(address, check).await);
    assert!(told.starts_with("expected reply, certificate ends in"), "{told}");
}

/// Starts a server of UDP that answers each datagram, or leaves it unanswered.
async fn udp_server(
    at: &str,
    answer: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + 'static,
) -> SocketAddr {
    let socket = UdpSocket::bind(at).await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut datagram = [0; 2048];
        while let Ok((len, client)) = socket.recv_from(&mut datagram).await {
            if let Some(reply) = answer(&datagram[..len]) {
                socket.send_to(&reply, client).await.unwrap();
            }
        }
    });
    address
}

#[tokio::test]
async fn a_datagram_is_answered_or_not() {
    for at in ["127.0.0.1:0", "[::1]:0"] {
        let address = udp_server(at, |datagram| Some(datagram.to_vec())).await;
        assert_eq!(words(&probe(address, udp("status", "stat")).await), "expected reply");
        assert!(probe(address, udp("status", "")).await.is_ok());
        assert_eq!(probe(address, udp("status", "other")).await, Err(Fault::Text));
    }
    let silent = udp_server("127.0.0.1:0", |_| None).await;
    let outcome = probe_within(silent, udp("status", ""), SHORT).await;
    assert_eq!(outcome, Err(Fault::Timeout(Step::Reply)));
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let closed = socket.local_addr().unwrap();
    drop(socket);
    assert_eq!(probe(closed, udp("status", "")).await, Err(Fault::Refused));
}

/// Returns a check by a question for the address of `www.example.com`.
fn dns() -> DnsCheck {
    DnsCheck::new(Name::parse(b"www.example.com.", b"\0").unwrap(), Type::A)
}

/// Returns the response to a query with these flags and, if any, the address 192.0.2.1.
fn response(query: &[u8], flags: u16, with_address: bool) -> Vec<u8> {
    let mut response = query.to_vec();
    response[2..4].copy_from_slice(&flags.to_be_bytes());
    if with_address {
        response[7] = 1;
        response.extend(b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x01");
    }
    response
}

#[tokio::test]
async fn a_dns_response_is_judged_by_its_code_and_its_address() {
    let good = udp_server("127.0.0.1:0", |query| Some(response(query, 0x8400, true))).await;
    assert_eq!(words(&probe(good, Kind::Dns(dns())).await), "DNS response NOERROR");
    let with =
        |address: &str| Kind::Dns(DnsCheck { address: Some(address.parse().unwrap()), ..dns() });
    assert!(probe(good, with("192.0.2.1")).await.is_ok());
    assert_eq!(probe(good, with("192.0.2.2")).await, Err(Fault::NoAddress));
    assert_eq!(probe(good, with("2001:db8::1")).await, Err(Fault::NoAddress));

    let none = udp_server("127.0.0.1:0", |query| Some(response(query, 0x8403, false))).await;
    assert_eq!(probe(none, Kind::Dns(dns())).await, Err(Fault::Rcode("NXDOMAIN".into())));
    let expected = DnsCheck { rcodes: vec![Rcode::NOERROR, Rcode::NXDOMAIN], ..dns() };
    assert_eq!(words(&probe(none, Kind::Dns(expected)).await), "DNS response NXDOMAIN");
    // An error with a bare header, as some servers send it.
    let bare = udp_server("127.0.0.1:0", |query| {
        Some([&query[..2], b"\x80\x05\0\0\0\0\0\0\0\0"].concat())
    })
    .await;
    assert_eq!(probe(bare, Kind::Dns(dns())).await, Err(Fault::Rcode("REFUSED".into())));
}

#[tokio::test]
async fn what_is_no_response_to_the_query_is_passed_over() {
    for stray in [
        (|query: &[u8]| query.to_vec()) as fn(&[u8]) -> Vec<u8>, // no response
        |query| [&[query[0] ^ 1], &response(query, 0x8400, true)[1..]].concat(),
        |query| {
            let mut other = response(query, 0x8400, true);
            other[14] = b'x';
            other
        },
        |query| query[..20].to_vec(),
        |_| Vec::new(),
    ] {
        let address = udp_server("127.0.0.1:0", move |query| Some(stray(query))).await;
        let outcome = probe_within(address, Kind::Dns(dns()), SHORT).await;
        assert_eq!(outcome, Err(Fault::Timeout(Step::Reply)));
    }
    let cut = udp_server("127.0.0.1:0", |query| {
        let whole = response(query, 0x8400, true);
        Some(whole[..whole.len() - 3].to_vec())
    })
    .await;
    assert_eq!(probe(cut, Kind::Dns(dns())).await, Err(Fault::Protocol("DNS")));
}

#[tokio::test]
async fn a_truncated_dns_response_is_asked_for_over_tcp() {
    let address = server("127.0.0.1:0", |mut stream| async move {
        let len = stream.read_u16().await.unwrap();
        let mut query = vec![0; len.into()];
        stream.read_exact(&mut query).await.unwrap();
        let response = response(&query, 0x8400, true);
        stream.write_u16(response.len().try_into().unwrap()).await.unwrap();
        stream.write_all(&response).await.unwrap();
        tokio::time::sleep(LONG).await;
    })
    .await;
    let same_port = address.to_string();
    udp_server(&same_port, |query| Some(response(query, 0x8600, false))).await;
    let check = DnsCheck { address: Some("192.0.2.1".parse().unwrap()), ..dns() };
    assert!(probe(address, Kind::Dns(check.clone())).await.is_ok());
    let over_tcp = DnsCheck { transport: Transport::Tcp, ..check };
    assert!(probe(address, Kind::Dns(over_tcp.clone())).await.is_ok());
    let cut = relay(address, Manner::CutAfter(10)).await;
    assert_eq!(probe(cut, Kind::Dns(over_tcp)).await, Err(Fault::Closed(Step::Reply)));
}
