//! NOTIFY over TCP, for receivers that acknowledge nothing over UDP (rfc1996#3.6).
//!
//! # Invariants
//! - At most [`THREADS_MAX`] connections are open, one for a message, each for some seconds. What
//!   waits for a thread does so in order, and is bounded.
//! - A thread ends when nothing waits, and soon after the sender has ended.

use super::message::reply;
use super::shared::Shared;
use super::tcp_queue::{TcpMessage, TcpResult};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use zonda_wire::Rcode;

/// Threads that have a connection each.
const THREADS_MAX: usize = 8;
/// Messages that wait for a thread; one more is left out, and sent at its next time.
const WAITING_MAX: usize = 1024;
/// How long a connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// How long a message and its reply may take then.
const REPLY_MAX: Duration = Duration::from_secs(3);
/// How often it is looked whether the sender has ended.
const STOP_INTERVAL: Duration = Duration::from_millis(200);
/// Octets of the longest reply that is read.
const REPLY_BYTES_MAX: usize = 4096;

/// Has a message sent, in place of one about its zone that waits for its receiver, unless one is
/// being sent.
pub fn send(shared: &Arc<Shared>, message: TcpMessage) {
    let mut messages = shared.tcp.lock();
    if let Some(former) = messages.waiting.iter_mut().find(|it| it.target == message.target) {
        *former = message;
        return;
    }
    if messages.running.contains(&message.target) || messages.waiting.len() >= WAITING_MAX {
        return;
    }
    messages.waiting.push_back(message);
    if messages.running.len() >= THREADS_MAX {
        return;
    }
    let Some(first) = messages.waiting.pop_front() else { return };
    messages.running.push(first.target.clone());
    drop(messages);
    let (of_thread, target) = (Arc::clone(shared), first.target.clone());
    let named = thread::Builder::new().name("notify-tcp".to_owned());
    if let Err(error) = named.spawn(move || work(&of_thread, first)) {
        shared.tcp.lock().running.retain(|it| *it != target);
        tracing::error!(%error, "no thread sends a NOTIFY over TCP");
    }
}

/// Sends messages until none waits.
fn work(shared: &Shared, first: TcpMessage) {
    let mut next = Some(first);
    while let Some(message) = next.take() {
        let outcome = exchange(&message, shared);
        let TcpMessage { target, serial, .. } = message;
        let mut messages = shared.tcp.lock();
        messages.running.retain(|it| *it != target);
        match outcome {
            Ok(refusal) => messages.results.push(TcpResult { target, serial, refusal }),
            Err(error) => {
                let receiver = target.receiver;
                tracing::debug!(zone = %target.zone, %receiver, %error, "no reply over TCP");
            }
        }
        if !shared.is_closed.load(Relaxed) {
            next = messages.waiting.pop_front();
            messages.running.extend(next.as_ref().map(|it| it.target.clone()));
        }
        drop(messages);
        shared.wake.wake();
    }
}

/// Sends a message and waits for its reply; returns why that acknowledges nothing, if it does not.
///
/// # Errors
/// When there is no reply to the message in time.
fn exchange(message: &TcpMessage, shared: &Shared) -> io::Result<Option<String>> {
    let mut stream = TcpStream::connect_timeout(&message.target.receiver, CONNECT_MAX)?;
    let limit = Instant::now() + REPLY_MAX;
    stream.set_read_timeout(Some(STOP_INTERVAL))?;
    stream.set_write_timeout(Some(REPLY_MAX))?;
    let mut framed = (message.octets.len() as u16).to_be_bytes().to_vec(); // some hundred octets
    framed.extend_from_slice(&message.octets);
    stream.write_all(&framed)?;
    shared.counts.sent.fetch_add(1, Relaxed);
    let mut len = [0; 2];
    fill(&mut stream, &mut len, limit, shared)?;
    let len = usize::from(u16::from_be_bytes(len));
    if len > REPLY_BYTES_MAX {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut octets = vec![0; len];
    fill(&mut stream, &mut octets, limit, shared)?;
    let is_own = |id, zone: &zonda_wire::Name| id == message.id && *zone == message.target.zone;
    let reply = reply(&octets).filter(|reply| is_own(reply.id, &reply.zone));
    let reply = reply.ok_or_else(|| io::Error::from(ErrorKind::InvalidData))?;
    let now = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.as_secs());
    let fault = message.signature.as_ref().and_then(|it| it.check_reply(&octets, now).err());
    let refused = || {
        (reply.rcode != Rcode::NOERROR).then(|| format!("the reply over TCP is {}", reply.rcode))
    };
    Ok(fault.map(|fault| fault.to_string()).or_else(refused))
}

/// Fills a buffer with what comes until a moment.
fn fill(
    stream: &mut TcpStream,
    buffer: &mut [u8],
    limit: Instant,
    shared: &Shared,
) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        if Instant::now() >= limit || shared.is_closed.load(Relaxed) {
            return Err(ErrorKind::TimedOut.into());
        }
        match stream.read(&mut buffer[filled..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(len) => filled += len,
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
