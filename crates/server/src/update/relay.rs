//! Updates that are forwarded to the primaries of their zone (rfc2136#6).
//!
//! ```text
//! thread `updates` ─► RelayQueue ─► a thread: TCP to one primary after the other
//!        ▲                                      │
//!        └──── queue of updates ◄── reply ◄─────┘
//! ```
//! A message leaves as it came, with its id and its signature, and so does the reply, so that the
//! client and the primary need no key that this server has.
//!
//! # Invariants
//! - No message takes longer than [`TIME_MAX`], the wait for a thread included.
//! - Messages and threads are bounded; what there is no room for is told as busy.

pub use super::relay_queue::RelayRefusal;
use super::relay_queue::{RelayQueue, RelayedMessage, THREADS_MAX};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use zonda_deferral::Deferred;
use zonda_engine::Transport;
use zonda_wire::Opcode;
use zonda_wire::query::{HEADER_BYTES, flag};

/// How long a message may take, whatever the number of primaries.
const TIME_MAX: Duration = Duration::from_secs(10);
/// How long a connection to one primary may take to be made, and its reply to come, while there is
/// another one to try.
const ATTEMPT_MAX: Duration = Duration::from_secs(3);
/// How long a thread waits for a message before it ends.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// A message that was forwarded, and what came of it.
pub struct RelayedUpdate {
    /// The message of the client.
    pub message: Deferred,
    /// The reply of a primary and its address; or why there is none, in words.
    pub result: Result<(Vec<u8>, SocketAddr), String>,
}

/// Takes the messages that were forwarded.
pub type Finish = Arc<dyn Fn(RelayedUpdate) + Send + Sync>;

/// The threads that forward messages, which come and go with them.
pub struct RelayPool {
    shared: Arc<Shared>,
    finish: Finish,
}

/// What the threads share.
#[derive(Default)]
struct Shared {
    waiting: Mutex<WaitingRelays>,
    /// Is told when a message comes, and when the pool is dropped.
    changed: Condvar,
}

/// The messages that wait for a thread, and the threads.
#[derive(Default)]
struct WaitingRelays {
    messages: RelayQueue<Deferred>,
    /// Number of threads.
    threads: usize,
    /// Number of threads that wait for a message.
    idle: usize,
    /// Whether no more messages come.
    is_closed: bool,
}

impl Shared {
    /// Locks the messages. What a panic has left behind is whole.
    fn lock(&self) -> MutexGuard<'_, WaitingRelays> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RelayPool {
    /// A pool without threads, which gives what was forwarded to a function.
    pub fn new(finish: Finish) -> Self {
        Self { shared: Arc::default(), finish }
    }

    /// Forwards a message to the primaries at these addresses.
    ///
    /// # Errors
    /// When too many wait, or the message has come back to this server; it is given back.
    pub fn forward(
        &self,
        message: Deferred,
        primaries: Vec<SocketAddr>,
    ) -> Result<(), (RelayRefusal, Box<Deferred>)> {
        let (now, octets) = (Instant::now(), octets_of(&message));
        let is_of_stream = message.peer.transport != Transport::Udp;
        let mut waiting = self.shared.lock();
        let pushed =
            waiting.messages.push(message, (&octets, is_of_stream), primaries, now + TIME_MAX);
        pushed.map_err(|(why, message)| (why, Box::new(message)))?;
        if waiting.idle < waiting.messages.ready(now) && waiting.threads < THREADS_MAX {
            let (shared, finish) = (Arc::clone(&self.shared), Arc::clone(&self.finish));
            let thread = std::thread::Builder::new().name("zonda-relay".to_owned());
            match thread.spawn(move || run(&shared, &finish)) {
                Ok(_) => waiting.threads += 1,
                Err(error) if waiting.threads == 0 => {
                    tracing::error!(%error, "updates cannot be forwarded");
                    let last = waiting.messages.take_back();
                    return last.map_or(Ok(()), |it| Err((RelayRefusal::Busy, Box::new(it))));
                }
                Err(_) => {} // the threads that there are do it later
            }
        }
        drop(waiting);
        self.shared.changed.notify_one();
        Ok(())
    }
}

impl Drop for RelayPool {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_all();
    }
}

/// Forwards messages until none has come for a while.
fn run(shared: &Shared, finish: &Finish) {
    let mut waiting = shared.lock();
    loop {
        let mut next = waiting.messages.take(Instant::now());
        if next.is_none() && !waiting.is_closed {
            waiting.idle += 1;
            let waited = shared.changed.wait_timeout(waiting, IDLE_MAX);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
            waiting.idle -= 1;
            next = waiting.messages.take(Instant::now());
        }
        // What waits for a primary that has enough threads, one of these takes on when it is done.
        let Some((RelayedMessage { message, primaries, limit, .. }, running)) = next else {
            waiting.threads -= 1;
            return;
        };
        drop(waiting);
        let mut silent = Vec::new();
        let forwarded = catch_unwind(AssertUnwindSafe(|| {
            let octets = octets_of(&message);
            forward(&octets, &primaries, limit, &mut silent)
        }));
        let result = forwarded.unwrap_or_else(|_| Err("the thread has failed; see the log".into()));
        waiting = shared.lock();
        waiting.messages.finish(running, &silent, Instant::now());
        if waiting.idle > 0 && !waiting.messages.is_empty() {
            shared.changed.notify_one(); // what waited for the primary may be more than one
        }
        drop(waiting);
        finish(RelayedUpdate { message, result });
        waiting = shared.lock();
    }
}

/// The octets of a message as its client has sent them.
fn octets_of(message: &Deferred) -> Vec<u8> {
    let mut octets = message.query.clone();
    if let Some(record) = &message.deferral.signature_record {
        octets.extend_from_slice(record);
        if let Some([high, low]) = octets.get_mut(10..HEADER_BYTES) {
            // It was counted before it was cut off.
            let count = u16::from_be_bytes([*high, *low]).wrapping_add(1);
            [*high, *low] = count.to_be_bytes();
        }
    }
    octets
}

/// Sends a message to one primary after the other until one replies; returns the reply and the
/// primary, and adds those that did not reply to `silent`.
fn forward(
    octets: &[u8],
    primaries: &[SocketAddr],
    limit: Instant,
    silent: &mut Vec<SocketAddr>,
) -> Result<(Vec<u8>, SocketAddr), String> {
    let mut errors = Vec::new();
    for (place, primary) in primaries.iter().enumerate() {
        let is_last = place + 1 == primaries.len();
        let now = Instant::now();
        if limit <= now {
            errors.push("no time is left".to_owned());
            break;
        }
        let attempt_limit = if is_last { limit } else { limit.min(now + ATTEMPT_MAX) };
        match exchange(octets, *primary, attempt_limit) {
            Ok(reply) => return Ok((reply, *primary)),
            Err(error) => {
                errors.push(format!("{primary}: {error}"));
                silent.push(*primary);
            }
        }
    }
    Err(errors.join("; "))
}

/// Sends a message to a primary over TCP, and returns its reply.
fn exchange(octets: &[u8], primary: SocketAddr, limit: Instant) -> io::Result<Vec<u8>> {
    let too_long = || io::Error::other("the message is too long for TCP");
    let len = u16::try_from(octets.len()).map_err(|_| too_long())?;
    let mut stream = TcpStream::connect_timeout(&primary, left(limit)?.min(ATTEMPT_MAX))?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(left(limit)?))?;
    stream.write_all(&[&len.to_be_bytes()[..], octets].concat())?;
    let mut head = [0; 2];
    read_whole(&mut stream, &mut head, limit)?;
    let mut reply = vec![0; usize::from(u16::from_be_bytes(head))];
    read_whole(&mut stream, &mut reply, limit)?;
    match is_reply(&reply, octets) {
        true => Ok(reply),
        false => Err(io::Error::other("what it has sent is no reply to the update")),
    }
}

/// Whether octets are a reply to an update, as far as the header tells.
fn is_reply(reply: &[u8], update: &[u8]) -> bool {
    /// The bits of the header's second word that have the operation.
    const OPCODE_BITS: u16 = 0x7800;
    let words = |octets: &[u8]| -> Option<[u16; 2]> {
        let head = octets.first_chunk::<HEADER_BYTES>()?;
        Some([u16::from_be_bytes([head[0], head[1]]), u16::from_be_bytes([head[2], head[3]])])
    };
    let (Some([id, flags]), Some([asked, _])) = (words(reply), words(update)) else { return false };
    let is_update = flags & OPCODE_BITS == u16::from(Opcode::UPDATE.0) << 11;
    id == asked && flags & flag::QR != 0 && is_update
}

/// The time that is left.
fn left(limit: Instant) -> io::Result<Duration> {
    let left = limit.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Fills a buffer, however slowly its octets come, but no later than a moment.
fn read_whole(stream: &mut TcpStream, buffer: &mut [u8], limit: Instant) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        stream.set_read_timeout(Some(left(limit)?))?;
        match stream.read(&mut buffer[filled..]) {
            Ok(0) => return Err(io::Error::other("it has closed the connection without a reply")),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "no reply in time"));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    /// A message with nothing but a header.
    const UPDATE: [u8; 12] = [7, 7, 0x28, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    /// The reply to it.
    const REPLY: [u8; 12] = [7, 7, 0xa8, 5, 0, 0, 0, 0, 0, 0, 0, 0];

    /// A primary that writes these octets to its first connection once it has read the message.
    fn primary(octets: Vec<u8>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut message = [0; UPDATE.len() + 2];
            stream.read_exact(&mut message).unwrap();
            assert_eq!(message[2..], UPDATE);
            stream.write_all(&octets).unwrap();
        });
        address
    }

    /// A message behind its length.
    fn framed(message: &[u8]) -> Vec<u8> {
        [&(message.len() as u16).to_be_bytes()[..], message].concat()
    }

    #[test]
    fn the_next_primary_is_asked_where_one_sends_no_reply_to_the_message() {
        let other_id = [&[7, 8], &REPLY[2..]].concat();
        let wrong = [framed(&UPDATE), framed(&other_id), framed(&REPLY)[..9].to_vec(), vec![0]];
        let mut primaries: Vec<SocketAddr> = wrong.into_iter().map(primary).collect();
        let nowhere = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        primaries.push(nowhere);
        let limit = || Instant::now() + Duration::from_secs(5);
        let error = forward(&UPDATE, &primaries[4..], limit(), &mut Vec::new()).unwrap_err();
        assert!(error.starts_with(&nowhere.to_string()), "{error}");
        let sound = primary(framed(&REPLY));
        primaries.push(sound);
        let mut silent = Vec::new();
        let forwarded = forward(&UPDATE, &primaries, limit(), &mut silent);
        assert_eq!(forwarded, Ok((REPLY.to_vec(), sound)));
        assert_eq!(silent, primaries[..5]);
    }

    #[test]
    fn a_primary_that_sends_an_octet_now_and_then_is_given_up_in_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut octets = [0x10, 0].into_iter().chain(std::iter::repeat(0)); // 4,096 announced
            while stream.write_all(&[octets.next().unwrap()]).is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
        });
        let began = Instant::now();
        let limit = began + Duration::from_millis(200);
        assert!(forward(&UPDATE, &[address], limit, &mut Vec::new()).is_err());
        let waited = began.elapsed();
        assert!(waited >= Duration::from_millis(190) && waited < Duration::from_secs(3));
    }
}
