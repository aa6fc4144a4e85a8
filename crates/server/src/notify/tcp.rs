//! NOTIFY over TCP, for receivers that acknowledge nothing over UDP (rfc1996#3.6).
//!
//! # Invariants
//! - At most [`THREADS_MAX`] connections are open, one for a message, each for some seconds. What
//!   waits for a thread does so in order, and is bounded.
//! - A message is made and signed when its connection is there, as it may have waited for longer
//!   than signatures are good for (rfc8945#5.2.3).
//! - A thread ends when nothing waits, and soon after the sender has ended.

use super::compose::{Announcement, compose, unix_secs};
use super::message::reply;
use super::schedule::Target;
use super::shared::Shared;
use super::tcp_queue::{TcpMessage, TcpResult};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};
use zonda_wire::Rcode;

/// Threads that have a connection each.
const THREADS_MAX: usize = 8;
/// How long a connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// How long a message and its reply may take then.
const REPLY_MAX: Duration = Duration::from_secs(3);
/// How often it is looked whether the sender has ended.
const STOP_INTERVAL: Duration = Duration::from_millis(200);
/// Octets of the longest reply that is read.
const REPLY_BYTES_MAX: usize = 4096;

/// Has a receiver told of a version of a zone as soon as a thread is free; if `is_only`, in the
/// place of all that waits for the receiver. False if there is no room for that, or no thread.
pub fn send(shared: &Arc<Shared>, message: TcpMessage, is_only: bool) -> bool {
    let mut messages = shared.tcp.lock();
    if !messages.add(message, is_only) {
        return false;
    }
    if messages.running() >= THREADS_MAX {
        return true;
    }
    let Some(first) = messages.begin() else { return true }; // threads that send go on with it
    drop(messages);
    let (of_thread, target) = (Arc::clone(shared), first.target.clone());
    let named = thread::Builder::new().name("notify-tcp".to_owned());
    if let Err(error) = named.spawn(move || work(&of_thread, first)) {
        shared.tcp.lock().end(&target, None);
        tracing::error!(%error, "no thread sends a NOTIFY over TCP");
        return false;
    }
    true
}

/// Sends messages until none waits.
fn work(shared: &Shared, first: TcpMessage) {
    let mut next = Some(first);
    while let Some(TcpMessage { target, .. }) = next.take() {
        let result = tell(&target, shared);
        let mut messages = shared.tcp.lock();
        messages.end(&target, result);
        if !shared.is_closed.load(Relaxed) {
            next = messages.begin();
        }
        drop(messages);
        shared.wake.wake();
    }
}

/// Tells a receiver of the version of a zone in force; returns what it has replied. None if it does
/// not reply, or is to be told no more, or not over TCP.
fn tell(target: &Target, shared: &Shared) -> Option<TcpResult> {
    if !shared.counts.schedule().is_told_over_tcp(target) {
        return None;
    }
    let outcome = TcpStream::connect_timeout(&target.receiver, CONNECT_MAX).and_then(|stream| {
        let Some(message) = compose(target, &shared.snapshot.load(), unix_secs()) else {
            return Ok(None); // the zone or the receiver is gone
        };
        let refusal = exchange(stream, (target, &message), shared)?;
        Ok(Some(TcpResult { target: target.clone(), serial: message.serial, refusal }))
    });
    outcome.unwrap_or_else(|error| {
        let (zone, receiver) = (&target.zone, target.receiver);
        tracing::debug!(%zone, %receiver, %error, "no reply over TCP");
        None
    })
}

/// Sends a message and waits for its reply; returns why that acknowledges nothing, if it does not.
///
/// # Errors
/// When there is no reply to the message in time.
fn exchange(
    mut stream: TcpStream,
    (target, message): (&Target, &Announcement),
    shared: &Shared,
) -> io::Result<Option<String>> {
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
    let reply = reply(&octets).filter(|it| it.id == message.id && it.zone == target.zone);
    let reply = reply.ok_or_else(|| io::Error::from(ErrorKind::InvalidData))?;
    let fault =
        message.signature.as_ref().and_then(|it| it.check_reply(&octets, unix_secs()).err());
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::fixture::{
        key, read, reply, serial, shared, signed_reply, snapshot, target, write,
    };
    use super::*;
    use std::net::TcpListener;
    use zonda_wire::tsig::Key;

    /// A listener, and what threads share whose zone it is notified of and is known not to
    /// acknowledge over UDP.
    fn receiver(key: Option<&Key>) -> (TcpListener, Arc<Shared>, Target) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (shared, target) = (shared(address, key), target(address));
        let mut schedule = shared.counts.schedule();
        schedule.add_for(target.clone(), (7, super::super::Cause::Change), 0);
        schedule.over_tcp.add(address);
        drop(schedule);
        (listener, shared, target)
    }

    /// What comes of a message that is signed with a key, by the reply to it.
    fn told(by: impl Fn(&[u8], &Key) -> Vec<u8> + Send) -> Option<Option<String>> {
        let key = key(b"0123456789abcdef0123456789abcdef");
        let (listener, shared, target) = receiver(Some(&key));
        let of_receiver = &key;
        let result = thread::scope(|scope| {
            scope.spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let message = read(&mut stream);
                write(&mut stream, &by(&message, of_receiver));
            });
            tell(&target, &shared)
        });
        result.map(|result| {
            assert_eq!((result.serial, &result.target), (7, &target));
            result.refusal
        })
    }

    #[test]
    fn a_reply_with_the_right_signature_acknowledges() {
        assert_eq!(told(|message, key| signed_reply(message, key, key)), Some(None));
    }

    #[test]
    fn a_reply_with_a_wrong_signature_acknowledges_nothing() {
        let other = key(b"another secret of the same length");
        let refusal = told(|message, key| signed_reply(message, key, &other)).unwrap().unwrap();
        assert!(refusal.contains("wrong"), "{refusal}");
    }

    #[test]
    fn a_reply_without_the_signature_acknowledges_nothing() {
        let refusal = told(|message, _| reply(message));
        let refusal = refusal.unwrap().unwrap();
        assert!(refusal.contains("not signed"), "{refusal}");
    }

    #[test]
    fn a_message_that_has_waited_is_made_and_signed_when_it_is_sent() {
        let former = key(b"0123456789abcdef0123456789abcdef");
        let (listener, shared, target) = receiver(Some(&former));
        let waiting = TcpMessage { target: target.clone(), serial: 7 };
        assert!(shared.tcp.lock().add(waiting, false));
        let new = key(b"fedcba9876543210fedcba9876543210");
        shared.snapshot.store(Arc::new(snapshot(target.receiver, Some(&new), 8)));
        let receiver = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let message = read(&mut stream);
            write(&mut stream, &signed_reply(&message, &new, &new));
            serial(&message)
        });
        let first = shared.tcp.lock().begin().unwrap();
        work(&shared, first);
        assert_eq!(receiver.join().unwrap(), 8);
        let refusal = None;
        assert_eq!(shared.tcp.take_results(), [TcpResult { target, serial: 8, refusal }]);
    }

    #[test]
    fn a_message_is_not_sent_once_the_receiver_has_acknowledged_over_udp() {
        let (listener, shared, target) = receiver(None);
        listener.set_nonblocking(true).unwrap();
        shared.counts.schedule().note_acknowledged(&target, (0, false));
        assert_eq!(tell(&target, &shared), None);
        assert_eq!(listener.accept().err().unwrap().kind(), ErrorKind::WouldBlock);
    }
}
