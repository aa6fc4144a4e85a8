//! Octets sent, and a text in the reply.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UdpSocket;

use super::connect::{self, Endpoint};
use crate::check::{TEXT_BYTES_MAX, TcpExchange, UdpExchange};
use crate::outcome::{Fault, Step};
use crate::text::Text;

/// Sends over a connection and looks for the text until it has come, or cannot come any more.
///
/// # Errors
/// Why the target is not healthy.
pub async fn over_tcp(
    check: &TcpExchange,
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
) -> Result<(), Fault> {
    let failed = |error| connect::fault(&error, Step::Reply);
    if !check.send.is_empty() {
        stream.write_all(&check.send).await.map_err(failed)?;
        stream.flush().await.map_err(failed)?;
    }
    let mut text = Text::new(check.expect(), TEXT_BYTES_MAX);
    let mut part = [0; 1024];
    let mut has_reply = false;
    loop {
        match stream.read(&mut part).await.map_err(failed)? {
            0 if has_reply => return Err(Fault::Text),
            0 => return Err(Fault::Closed(Step::Reply)),
            len => match text.read(&part[..len]) {
                Some(true) => return Ok(()),
                Some(false) => return Err(Fault::Text),
                None => has_reply = true,
            },
        }
    }
}

/// Sends a datagram and looks for the text in the reply.
///
/// # Errors
/// Why the target is not healthy.
pub async fn over_udp(check: &UdpExchange, endpoint: &Endpoint) -> Result<(), Fault> {
    let socket = socket(endpoint).await?;
    let failed = |error| connect::fault(&error, Step::Reply);
    socket.send(&check.send).await.map_err(failed)?;
    let mut reply = [0; TEXT_BYTES_MAX];
    let len = socket.recv(&mut reply).await.map_err(failed)?;
    let is_here = check.expect().is_empty()
        || reply[..len].windows(check.expect().len()).any(|it| it == check.expect());
    if is_here { Ok(()) } else { Err(Fault::Text) }
}

/// Returns a socket that sends to the target and receives from it alone.
///
/// # Errors
/// When the system gives none, or has no way to the target.
pub async fn socket(endpoint: &Endpoint) -> Result<UdpSocket, Fault> {
    let source = endpoint.source_or_any();
    let bound = UdpSocket::bind((source, 0)).await;
    let socket = bound.map_err(|error| match endpoint.source {
        Some(source) => connect::no_source(source, &error),
        None => connect::no_socket(&error),
    })?;
    let connected = socket.connect(endpoint.target).await;
    connected.map_err(|error| connect::fault(&error, Step::Connect))?;
    Ok(socket)
}
