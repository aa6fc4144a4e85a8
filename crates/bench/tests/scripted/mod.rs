//! A UDP server that does to each query what a script says, again from its beginning.

use std::collections::HashSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What is done to a query.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// Answer with an A record.
    Answer,
    /// Send no answer.
    Drop,
    /// Answer after a time, and other queries meanwhile.
    Delay(Duration),
    /// Answer after the next query that is not held was dealt with; the last one held is first.
    Hold,
    /// Answer after a time, and no query meanwhile.
    Stall(Duration),
    /// Answer two times.
    Twice,
    /// Answer, and keep the answer.
    Keep,
    /// Answer, and send the kept answers again.
    SendKept,
    /// Send only so many octets of the answer.
    Cut(usize),
    /// Answer with another name in the question.
    OtherName,
    /// Send the query back.
    NoReply,
    /// Send a reply to an ID that was never sent, then answer.
    Stray,
    /// Answer without records, TC set.
    Truncated,
}

/// A reply that waits for its time.
struct DelayedReply(Instant, Vec<u8>, SocketAddr);

/// The server; ends when it is dropped.
pub struct ScriptedServer {
    /// Address on which the server listens.
    address: SocketAddr,
    /// Flag that stops the server.
    stop: Arc<AtomicBool>,
    /// Clients that have sent queries.
    clients: Arc<Mutex<HashSet<SocketAddr>>>,
    /// Thread of the server.
    thread: Option<JoinHandle<()>>,
}

impl ScriptedServer {
    /// Starts one on a free port.
    pub fn start(script: Vec<Act>) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let address = socket.local_addr().unwrap();
        let (stop, clients) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let ends = (Arc::clone(&stop), Arc::clone(&clients));
        let thread = thread::spawn(move || serve(&socket, &script, &ends.0, &ends.1));
        Self { address, stop, clients, thread: Some(thread) }
    }

    /// Returns where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns how many clients have asked.
    pub fn clients(&self) -> usize {
        self.clients.lock().unwrap().len()
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

/// Follows the script until it is stopped.
fn serve(
    socket: &UdpSocket,
    script: &[Act],
    stop: &AtomicBool,
    clients: &Mutex<HashSet<SocketAddr>>,
) {
    let mut acts = script.iter().cycle();
    let mut delayed: Vec<DelayedReply> = Vec::new();
    let mut held: Vec<(Vec<u8>, SocketAddr)> = Vec::new();
    let mut kept: Vec<Vec<u8>> = Vec::new();
    let mut buffer = [0; 512];
    while !stop.load(Ordering::Relaxed) {
        if let Ok((len, peer)) = socket.recv_from(&mut buffer) {
            clients.lock().unwrap().insert(peer);
            let (query, send) = (&buffer[..len], |reply: &[u8]| drop(socket.send_to(reply, peer)));
            let reply = answer(query);
            match *acts.next().unwrap() {
                Act::Hold => {
                    held.push((reply, peer));
                    continue;
                }
                Act::Answer => send(&reply),
                Act::Drop => {}
                Act::Delay(time) => delayed.push(DelayedReply(Instant::now() + time, reply, peer)),
                Act::Stall(time) => {
                    thread::sleep(time);
                    send(&reply);
                }
                Act::Twice => [&reply, &reply].into_iter().for_each(|reply| send(reply)),
                Act::Keep => {
                    send(&reply);
                    kept.push(reply);
                }
                Act::SendKept => {
                    send(&reply);
                    kept.drain(..).for_each(|reply| send(&reply));
                }
                Act::Cut(len) => send(&reply[..len]),
                Act::OtherName => send(&changed(&reply, 13, b'x')),
                Act::NoReply => send(query),
                Act::Stray => {
                    send(&changed(&reply, 0, reply[0] ^ 0x80));
                    send(&reply);
                }
                Act::Truncated => send(&changed(&changed(query, 2, 0x82), 3, 0)),
            }
            for (reply, peer) in held.drain(..).rev() {
                socket.send_to(&reply, peer).unwrap();
            }
        }
        delayed.retain(|DelayedReply(due, reply, peer)| {
            let is_due = Instant::now() >= *due;
            if is_due {
                socket.send_to(reply, *peer).unwrap();
            }
            !is_due
        });
    }
}

/// Returns a query's answer: its question and an A record.
fn answer(query: &[u8]) -> Vec<u8> {
    let mut reply = changed(&changed(query, 2, 0x84), 7, 1);
    reply.extend_from_slice(b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\x7f\0\0\x01");
    reply
}

/// Returns a message with another octet in one place.
fn changed(message: &[u8], place: usize, octet: u8) -> Vec<u8> {
    let mut message = message.to_vec();
    message[place] = octet;
    message
}
