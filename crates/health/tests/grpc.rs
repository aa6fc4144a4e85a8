//! Probes by the gRPC health service.

#![allow(clippy::unwrap_used)]

mod common;

use std::net::SocketAddr;

use common::certificates::{Authority, NAME};
use common::{SHORT, http_server, probe, probe_within, server, words};
use http::{HeaderMap, Response};
use tokio::io::{AsyncRead, AsyncWrite};
use zonda_health::{Fault, GrpcCheck, Kind};

/// What a health service says.
#[derive(Clone, Copy)]
enum Answer {
    /// This serving status.
    Status(u8),
    /// This status of the call, without a message.
    Error(u16),
    /// These octets as message.
    Octets(&'static [u8]),
    /// A message without a status of the call.
    NoTrailers,
}

/// Answers calls of the service `example.Shop`.
async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, answer: Answer) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let (head, mut body) = request.into_parts();
        assert_eq!(head.uri.path(), "/grpc.health.v1.Health/Check");
        assert_eq!(
            (&head.headers["content-type"], &head.headers["te"]),
            (&"application/grpc".parse().unwrap(), &"trailers".parse().unwrap())
        );
        let message = body.data().await.unwrap().unwrap();
        assert_eq!(&message[..], b"\0\0\0\0\x0e\x0a\x0cexample.Shop");
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", 0.into());
        let octets = match answer {
            Answer::Error(code) => {
                let response = Response::builder().header("grpc-status", code);
                respond.send_response(response.body(()).unwrap(), true).unwrap();
                continue;
            }
            Answer::Status(status) => vec![0, 0, 0, 0, 2, 8, status],
            Answer::Octets(octets) => octets.to_vec(),
            Answer::NoTrailers => vec![0, 0, 0, 0, 2, 8, 1],
        };
        let mut body = respond.send_response(Response::new(()), false).unwrap();
        let is_end = matches!(answer, Answer::NoTrailers);
        body.send_data(octets.into(), is_end).unwrap();
        if !is_end {
            body.send_trailers(trailers).unwrap();
        }
    }
}

/// Starts a health service without TLS.
async fn service(answer: Answer) -> SocketAddr {
    server("127.0.0.1:0", move |stream| serve(stream, answer)).await
}

/// Returns the check of the service.
fn check() -> GrpcCheck {
    GrpcCheck::new("example.Shop").unwrap()
}

#[tokio::test]
async fn a_service_that_serves_is_up_and_any_other_is_down_with_its_reason() {
    const LONG: &[u8] = &[0; 2000];
    for (answer, told) in [
        (Answer::Status(1), "gRPC health: serving"),
        (Answer::Status(2), "FAULT gRPC health: not serving"),
        (Answer::Status(0), "FAULT gRPC health: unknown"),
        (Answer::Error(5), "FAULT gRPC status 5: the service is not known"),
        (Answer::Error(12), "FAULT gRPC status 12: the server has no health service"),
        (Answer::Octets(b""), "FAULT the reply breaks the rules of gRPC"),
        (Answer::Octets(b"\x01\0\0\0\x02\x08\x01"), "FAULT the reply breaks the rules of gRPC"),
        (Answer::Octets(LONG), "FAULT the reply breaks the rules of gRPC"),
        (Answer::NoTrailers, "FAULT the reply breaks the rules of gRPC"),
    ] {
        let address = service(answer).await;
        assert_eq!(words(&probe(address, Kind::Grpc(check())).await), told);
    }
    let (not_grpc, _) = http_server("HTTP/1.1 200 OK\r\n\r\n").await;
    assert!(probe_within(not_grpc, Kind::Grpc(check()), SHORT).await.is_err());
}

#[tokio::test]
async fn the_service_is_called_over_tls_as_well() {
    let authority = Authority::new();
    let acceptor = authority.sign(NAME, 2999).acceptor(b"h2", None);
    let address = server("127.0.0.1:0", move |stream| {
        let acceptor = acceptor.clone();
        async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                serve(stream, Answer::Status(1)).await;
            }
        }
    })
    .await;
    let tls = zonda_health::TlsSettings::new(authority.trust());
    let named = check().with_host(NAME).unwrap().with_tls(tls.clone());
    let told = words(&probe(address, Kind::Grpc(named)).await);
    assert!(told.starts_with("gRPC health: serving, certificate ends in"), "{told}");
    let outcome = probe(address, Kind::Grpc(check().with_tls(tls))).await;
    assert!(matches!(outcome, Err(Fault::Certificate(_))), "the address is not in it");
}
