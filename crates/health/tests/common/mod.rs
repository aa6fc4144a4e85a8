//! What tests of probes share: targets on loopback, and a relay that does to connections what
//! networks and broken servers do.

#![allow(dead_code, clippy::unwrap_used, reason = "no test file uses all of it")]

pub mod certificates;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use zonda_health::{Check, Kind, Outcome, Probe, Target};

/// Timeout of probes that are to end by themselves.
pub const LONG: Duration = Duration::from_secs(5);
/// Timeout of probes that are to run into it.
pub const SHORT: Duration = Duration::from_millis(300);

/// Returns the target of a check at an address.
pub fn target(address: SocketAddr, kind: Kind) -> Target {
    let check = Arc::new(Check::from(kind));
    Target { address: address.ip(), port: address.port(), check }
}

/// Probes once.
pub async fn probe(address: SocketAddr, kind: Kind) -> Outcome {
    probe_within(address, kind, LONG).await
}

/// Probes once, with this timeout.
pub async fn probe_within(address: SocketAddr, kind: Kind, time_max: Duration) -> Outcome {
    Probe::new(&target(address, kind)).unwrap().run(time_max).await
}

/// Returns the words of an outcome.
pub fn words(outcome: &Outcome) -> String {
    match outcome {
        Ok(success) => success.to_string(),
        Err(fault) => format!("FAULT {fault}"),
    }
}

/// Returns an address of loopback at which no process listens.
pub async fn refusing() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap()
}

/// Starts a server that treats each connection so.
pub async fn server<F>(at: &str, serve: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind(at).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    address
}

/// Starts a server of HTTP/1.1 that answers each request with these octets and closes; returns the
/// requests that came as well.
pub async fn http_server(response: impl Into<Vec<u8>>) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let (response, requests) = (response.into(), Arc::new(Mutex::new(Vec::new())));
    let heard = Arc::clone(&requests);
    let address = server("127.0.0.1:0", move |stream| {
        answer_http(stream, response.clone(), Arc::clone(&heard))
    });
    (address.await, requests)
}

/// Answers one request of HTTP/1.1.
pub async fn answer_http(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    response: Vec<u8>,
    requests: Arc<Mutex<Vec<String>>>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(octet) => head.push(octet),
            Err(_) => return,
        }
    }
    requests.lock().unwrap().push(String::from_utf8(head).unwrap());
    let _ = stream.write_all(&response).await;
    let _ = stream.shutdown().await;
}

/// What a relay does to connections.
#[derive(Clone, Copy, Debug)]
pub enum Manner {
    /// Passes everything on.
    Pass,
    /// Accepts connections and is silent.
    Silent,
    /// Closes connections as soon as they are made.
    Close,
    /// Resets connections once so many octets of the target have been passed on.
    CutAfter(usize),
    /// Passes an octet of the target on at a time, and waits in between.
    Slow(Duration),
}

/// Starts a relay in front of a target.
pub async fn relay(to: SocketAddr, manner: Manner) -> SocketAddr {
    server("127.0.0.1:0", move |stream| pass(stream, to, manner)).await
}

/// Relays one connection.
async fn pass(client: TcpStream, to: SocketAddr, manner: Manner) {
    match manner {
        Manner::Close => return,
        Manner::Silent => return sleep(Duration::from_secs(60)).await,
        _ => {}
    }
    client.set_zero_linger().unwrap();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_target, mut to_target) = TcpStream::connect(to).await.unwrap().into_split();
    let there = tokio::io::copy(&mut from_client, &mut to_target);
    let back = async {
        let mut left = usize::MAX;
        if let Manner::CutAfter(octets) = manner {
            left = octets;
        }
        while left > 0 {
            let Ok(octet) = from_target.read_u8().await else { break };
            if to_client.write_u8(octet).await.is_err() {
                break;
            }
            left -= 1;
            if let Manner::Slow(wait) = manner {
                sleep(wait).await;
            }
        }
    };
    tokio::select! {
        _ = there => {}
        () = back => {}
    }
}
