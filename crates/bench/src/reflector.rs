//! The bare UDP reflector: what the kernel alone costs, the floor under every server.
//!
//! Receives a batch, puts one A record behind each question, sends the batch: no name is looked at.
//! What a server costs above this is its own doing.

use std::io;
use std::net::SocketAddr;
use std::thread;

use zonda_netio::{DatagramBatch, UdpOptions, UdpSocket};

/// Octets before the question.
const HEADER_LEN: usize = 12;
/// Owner (a pointer to the question), A, IN, TTL 3600, four octets: 127.0.0.1.
const ANSWER: [u8; 16] = [0xc0, 12, 0, 1, 0, 1, 0, 0, 14, 16, 0, 4, 127, 0, 0, 1];

/// Sockets bound to one address, each for a thread.
pub struct Reflector {
    /// Sockets of the reflector; at least one.
    sockets: Vec<UdpSocket>,
}

impl Reflector {
    /// Binds `threads` sockets (at least one); port 0 lets the kernel choose one for all.
    pub fn bind(address: SocketAddr, threads: usize) -> io::Result<Self> {
        let first = UdpSocket::bind(address, &UdpOptions::default())?;
        let address = first.address();
        let mut sockets = vec![first];
        for _ in 1..threads {
            sockets.push(UdpSocket::bind(address, &UdpOptions::default())?);
        }
        Ok(Self { sockets })
    }

    /// Returns the address of the reflector.
    pub fn address(&self) -> SocketAddr {
        self.sockets[0].address()
    }

    /// Answers until a socket fails; only the end of the process stops it otherwise.
    pub fn run(self) -> io::Result<()> {
        let threads: Vec<_> =
            self.sockets.into_iter().map(|socket| thread::spawn(move || serve(&socket))).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }
}

/// Answers queries on one socket, the work of one thread.
fn serve(socket: &UdpSocket) -> io::Result<()> {
    const WIDTH: usize = 64;
    const BUFFER_OCTETS: usize = 2048;
    let mut batch = DatagramBatch::new(WIDTH, BUFFER_OCTETS);
    loop {
        match batch.receive(socket) {
            Ok(count) => {
                for index in 0..count {
                    let datagram = batch.get(index);
                    *datagram.len = reflect(datagram.buffer, *datagram.len);
                }
                batch.send(socket);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Turns the query in the first `len` octets into its answer, whose length it returns; 0 for what
/// is no query.
fn reflect(buffer: &mut [u8], len: usize) -> usize {
    let mut position = HEADER_LEN;
    loop {
        match buffer[..len].get(position) {
            Some(0) => break,
            Some(&label) => position += usize::from(label) + 1,
            None => return 0,
        }
    }
    // The root label, type and class.
    let question_end = position + 5;
    let Some(answer) = buffer.get_mut(question_end..question_end + ANSWER.len()) else { return 0 };
    answer.copy_from_slice(&ANSWER);
    // rfc1035#4.1.1: QR and AA; one answer; no additional record, so OPT is gone.
    buffer[2] |= 0x84;
    buffer[7] = 1;
    buffer[11] = 0;
    question_end + ANSWER.len()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::net::UdpSocket as StdUdpSocket;
    use std::time::Duration;

    /// `a. A IN` with an OPT record.
    const QUERY: &[u8] =
        b"\x12\x34\x01\x00\0\x01\0\0\0\0\0\x01\x01a\0\0\x01\0\x01\0\0\x29\x04\xd0\0\0\0\0\0\0";

    #[test]
    fn a_query_comes_back_with_one_record_and_without_opt() {
        let mut buffer = [0; 100];
        buffer[..QUERY.len()].copy_from_slice(QUERY);
        let len = reflect(&mut buffer, QUERY.len());
        let mut expected = QUERY[..19].to_vec();
        (expected[2], expected[7], expected[11]) = (0x85, 1, 0);
        expected.extend(ANSWER);
        assert_eq!(&buffer[..len], expected);
    }

    #[test]
    fn what_is_no_query_gets_no_reply() {
        assert_eq!(reflect(&mut [1; 512], 5), 0);
        assert_eq!(reflect(&mut [63; 512], 512), 0);
        let mut short = QUERY[..19].to_vec();
        assert_eq!(reflect(&mut short, 19), 0);
    }

    #[test]
    fn several_threads_share_one_address() {
        let reflector = Reflector::bind("127.0.0.1:0".parse().unwrap(), 2).unwrap();
        let address = reflector.address();
        thread::spawn(|| reflector.run());
        for _ in 0..20 {
            let client = StdUdpSocket::bind("127.0.0.1:0").unwrap();
            client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            client.send_to(QUERY, address).unwrap();
            let mut reply = [0; 512];
            assert_eq!(client.recv(&mut reply).unwrap(), 35);
        }
    }
}
