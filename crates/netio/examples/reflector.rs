//! A UDP reflector: the floor below every server that uses this crate, for measuring against C.
//!
//! `reflector PORT WORKERS` answers every query on 127.0.0.1 with the same A record and knows no
//! DNS.

use std::net::{Ipv4Addr, SocketAddr};
use std::{env, io, thread};

use zonda_netio::{DatagramBatch, UdpOptions, UdpSocket};

fn main() -> io::Result<()> {
    let mut numbers = env::args().skip(1).filter_map(|argument| argument.parse::<u16>().ok());
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, numbers.next().unwrap_or(5300)));
    let workers = numbers.next().unwrap_or(1);
    let workers: Vec<_> = (0..workers).map(|_| thread::spawn(move || serve(address))).collect();
    workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
}

/// Receives, answers and sends, for ever.
fn serve(address: SocketAddr) -> io::Result<()> {
    let socket = UdpSocket::bind(address, &UdpOptions::default())?;
    let mut batch = DatagramBatch::new(64, 4096);
    loop {
        for index in 0..batch.receive(&socket)? {
            let datagram = batch.get(index);
            *datagram.len = answer(datagram.buffer, *datagram.len);
        }
        batch.send(&socket);
    }
}

/// Turns a query into a reply with one A record; returns its length, 0 for what is no query.
fn answer(buffer: &mut [u8], len: usize) -> usize {
    const RECORD: [u8; 16] = [0xc0, 12, 0, 1, 0, 1, 0, 0, 14, 16, 0, 4, 127, 0, 0, 1];
    if len < 12 {
        return 0;
    }
    buffer[2] |= 0x84;
    (buffer[7], buffer[11]) = (1, 0);
    let mut end = 12;
    while end < len && buffer[end] != 0 {
        end += usize::from(buffer[end]) + 1;
    }
    let start = end + 5;
    match buffer.get_mut(start..start + RECORD.len()) {
        Some(place) => place.copy_from_slice(&RECORD),
        None => return 0,
    }
    start + RECORD.len()
}
