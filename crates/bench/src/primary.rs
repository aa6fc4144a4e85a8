//! A primary that has every zone there may be, all with one serial.
//!
//! The other side of servers with 100,000 secondary zones: it needs no file and no memory for any
//! of them, so that what is measured is the secondary. Each zone has a SOA record, one NS record
//! and two addresses. IXFR is answered as AXFR is, but for a client that has the serial.
//!
//! Deliberately absent: TSIG, EDNS, and changes of a single zone.

use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use zonda_netio::process::pin_thread;
use zonda_wire::query::HEADER_BYTES;
use zonda_wire::{Opcode, Type, name};

/// Connections at once; a client gets no answer on one more.
const CONNECTIONS_MAX: usize = 256;
/// How long a client may be silent on its connection.
const IDLE_MAX: Duration = Duration::from_secs(10);
/// How often a thread that waits looks whether it shall end.
const WAIT: Duration = Duration::from_millis(50);
/// Octets of a question that are read; a name has 255.
const QUESTION_OCTETS_MAX: usize = 512;
/// Times of the SOA record: refresh, retry, expire and negative TTL, seconds.
const TIMES: [u32; 4] = [86_400, 86_400, 604_800, 3600];
/// TTL of all records, seconds.
const TTL: u32 = 3600;

/// A primary at work; ends when it is dropped.
pub struct Primary {
    /// Address of both sockets.
    address: SocketAddr,
    /// What its threads share.
    state: Arc<State>,
}

/// What the threads of a primary share.
struct State {
    /// Serial of all zones.
    serial: AtomicU32,
    /// Questions for serials that were answered.
    checks: AtomicU64,
    /// Zones of the present serial that were sent whole.
    transfers: AtomicU64,
    /// Connections that are open.
    connections: AtomicUsize,
    /// Flag that ends all threads.
    stop: AtomicBool,
}

impl Primary {
    /// Starts a primary on a port, both transports, its threads on these CPUs.
    ///
    /// # Errors
    /// When the port is taken.
    pub fn start(port: u16, cpus: &[usize]) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        let socket = UdpSocket::bind(address)?;
        socket.set_read_timeout(Some(WAIT))?;
        let state = Arc::new(State {
            serial: AtomicU32::new(1),
            checks: AtomicU64::new(0),
            transfers: AtomicU64::new(0),
            connections: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        });
        let (cpus, own) = (cpus.to_vec(), Arc::clone(&state));
        let pin = move || drop(pin_thread(&cpus)); // anywhere else it serves as well
        let pin_too = pin.clone();
        thread::spawn(move || {
            pin();
            answer_datagrams(&socket, &own);
        });
        let own = Arc::clone(&state);
        thread::spawn(move || {
            pin_too();
            accept(&listener, &own);
        });
        Ok(Self { address, state })
    }

    /// Returns the address of both sockets.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Gives all zones their next serial, and returns it.
    pub fn raise_serial(&self) -> u32 {
        let serial = self.state.serial.fetch_add(1, Ordering::Relaxed) + 1;
        self.state.transfers.store(0, Ordering::Relaxed);
        serial
    }

    /// Returns the serial of all zones.
    #[must_use]
    pub fn serial(&self) -> u32 {
        self.state.serial.load(Ordering::Relaxed)
    }

    /// Returns how many zones of the present serial were sent.
    #[must_use]
    pub fn transfers(&self) -> u64 {
        self.state.transfers.load(Ordering::Relaxed)
    }

    /// Returns how many questions for serials were answered over UDP.
    #[must_use]
    pub fn checks(&self) -> u64 {
        self.state.checks.load(Ordering::Relaxed)
    }
}

impl Drop for Primary {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::Relaxed);
        drop(TcpStream::connect_timeout(&self.address, WAIT)); // wakes the thread that accepts
    }
}

/// Answers questions over UDP until it is stopped.
fn answer_datagrams(socket: &UdpSocket, state: &State) {
    let (mut buffer, mut reply) = ([0; QUESTION_OCTETS_MAX], Vec::new());
    while !state.stop.load(Ordering::Relaxed) {
        let Ok((len, client)) = socket.recv_from(&mut buffer) else { continue };
        let Some(question) = ZoneQuestion::read(&buffer[..len]) else { continue };
        question.write_soa_reply(state.serial.load(Ordering::Relaxed), &mut reply);
        state.checks.fetch_add(1, Ordering::Relaxed);
        let _ = socket.send_to(&reply, client); // a secondary asks again
    }
}

/// Takes connections until it is stopped, each with a thread.
fn accept(listener: &TcpListener, state: &Arc<State>) {
    while !state.stop.load(Ordering::Relaxed) {
        let Ok((stream, _)) = listener.accept() else { continue };
        if state.connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            state.connections.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let own = Arc::clone(state);
        thread::spawn(move || {
            let _ = answer_stream(&stream, &own); // a client that goes away has what it wanted
            own.connections.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// Answers questions of a connection until the client ends it.
fn answer_stream(stream: &TcpStream, state: &State) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(IDLE_MAX))?;
    stream.set_write_timeout(Some(IDLE_MAX))?;
    let mut reader = BufReader::with_capacity(2 * QUESTION_OCTETS_MAX, stream);
    let (mut query, mut reply, mut framed) = (Vec::new(), Vec::new(), Vec::new());
    while !state.stop.load(Ordering::Relaxed) {
        let mut len = [0; 2];
        reader.read_exact(&mut len)?;
        query.resize(usize::from(u16::from_be_bytes(len)), 0);
        reader.read_exact(&mut query)?;
        let Some(question) = ZoneQuestion::read(&query) else { return Ok(()) };
        let serial = state.serial.load(Ordering::Relaxed);
        let is_whole = question.is_for_zone(serial);
        match is_whole {
            true => question.write_zone(serial, &mut reply),
            false => question.write_soa_reply(serial, &mut reply),
        }
        framed.clear();
        framed.extend_from_slice(&(reply.len() as u16).to_be_bytes()); // some 400 octets at most
        framed.extend_from_slice(&reply);
        let mut writer = stream;
        writer.write_all(&framed)?;
        if is_whole && serial == state.serial.load(Ordering::Relaxed) {
            state.transfers.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// A question about a zone.
struct ZoneQuestion<'q> {
    /// The ID of the query.
    id: [u8; 2],
    /// The question as it came: name, type and class.
    octets: &'q [u8],
    /// Type of the question: SOA, AXFR or IXFR.
    qtype: Type,
    /// The serial that the client has, in IXFR.
    serial: Option<u32>,
}

impl<'q> ZoneQuestion<'q> {
    /// Reads a query; nothing if it is none that a secondary asks.
    fn read(query: &'q [u8]) -> Option<Self> {
        let (header, body) = query.split_first_chunk::<HEADER_BYTES>()?;
        let is_query = header[2] & 0x80 == 0 && header[2] >> 3 & 15 == Opcode::QUERY.0;
        if !is_query || header[4..6] != [0, 1] {
            return None;
        }
        let name_len = name::wire_len(body)?;
        let octets = body.get(..name_len + 4)?;
        let qtype = Type(u16::from_be_bytes([octets[name_len], octets[name_len + 1]]));
        // In IXFR, the SOA record of the client stands in the authority section (rfc1995#3); its
        // serial is the first of five numbers at the end.
        let serial = match header[8..10] {
            [0, 1] => serial_of(body.get(name_len + 4..)?),
            _ => None,
        };
        let is_known = [Type::SOA, Type::AXFR, Type::IXFR].contains(&qtype);
        is_known.then_some(Self { id: [header[0], header[1]], octets, qtype, serial })
    }

    /// Whether the answer is a whole zone.
    fn is_for_zone(&self, serial: u32) -> bool {
        self.qtype == Type::AXFR || self.qtype == Type::IXFR && self.serial != Some(serial)
    }

    /// Begins a reply with so many answers: header and question.
    fn begin(&self, answers: u16, reply: &mut Vec<u8>) {
        reply.clear();
        reply.extend_from_slice(&self.id);
        reply.extend_from_slice(&[0x84, 0, 0, 1]); // QR and AA
        reply.extend_from_slice(&answers.to_be_bytes());
        reply.extend_from_slice(&[0; 4]);
        reply.extend_from_slice(self.octets);
    }

    /// Writes a reply with the SOA record.
    fn write_soa_reply(&self, serial: u32, reply: &mut Vec<u8>) {
        self.begin(1, reply);
        write_soa(serial, reply);
    }

    /// Writes the whole zone, of which `ns` and `www` have addresses.
    fn write_zone(&self, serial: u32, reply: &mut Vec<u8>) {
        self.begin(5, reply);
        write_soa(serial, reply);
        write_record(APEX, Type::NS, &[2, b'n', b's', 0xc0, 12], reply);
        write_record(&[2, b'n', b's', 0xc0, 12], Type::A, &[127, 0, 0, 1], reply);
        write_record(&[3, b'w', b'w', b'w', 0xc0, 12], Type::A, &[127, 0, 0, 2], reply);
        write_soa(serial, reply);
    }
}

/// A pointer to the name of the question.
const APEX: &[u8] = &[0xc0, 12];

/// Returns the serial of an SOA record that begins here; nothing if there is none.
fn serial_of(record: &[u8]) -> Option<u32> {
    let (fixed, after) = crate::load::check::skip_record(record)?;
    let end = record.len() - after.len();
    let numbers = record.get(..end)?.last_chunk::<20>()?;
    let serial = numbers.first_chunk::<4>()?;
    (fixed[..2] == Type::SOA.0.to_be_bytes()).then_some(u32::from_be_bytes(*serial))
}

/// Appends a record of the zone.
fn write_record(owner: &[u8], rtype: Type, rdata: &[u8], reply: &mut Vec<u8>) {
    reply.extend_from_slice(owner);
    reply.extend_from_slice(&rtype.0.to_be_bytes());
    reply.extend_from_slice(&[0, 1]);
    reply.extend_from_slice(&TTL.to_be_bytes());
    reply.extend_from_slice(&(rdata.len() as u16).to_be_bytes()); // 24 octets at most
    reply.extend_from_slice(rdata);
}

/// Appends the SOA record, both of whose names are the zone's.
fn write_soa(serial: u32, reply: &mut Vec<u8>) {
    let mut rdata = [APEX, APEX].concat();
    rdata.extend_from_slice(&serial.to_be_bytes());
    rdata.extend(TIMES.iter().flat_map(|time| time.to_be_bytes()));
    write_record(APEX, Type::SOA, &rdata, reply);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::transfer::transfer;
    use zonda_wire::message::{Question, Record};
    use zonda_wire::{Message, Name, Section, rdata};

    /// A query of a secondary that has this serial.
    fn query(qtype: Type, serial: Option<u32>) -> Vec<u8> {
        let name: Name = "z7.test".parse().unwrap();
        let soa = |serial: u32| {
            let data = format!("a. b. {serial} 1 2 3 4");
            let rdata = rdata::from_text(Type::SOA, &data).unwrap();
            Record::new(Section::Authority, name.clone(), Type::SOA, 0, rdata)
        };
        let mut query = Message::new(5, 0, Question::new(name.clone(), qtype));
        query.records.extend(serial.map(soa));
        query.to_wire()
    }

    /// The types of a reply's records.
    fn reply(query: &[u8], serial: u32) -> Vec<Type> {
        let question = ZoneQuestion::read(query).unwrap();
        let mut reply = Vec::new();
        match question.is_for_zone(serial) {
            true => question.write_zone(serial, &mut reply),
            false => question.write_soa_reply(serial, &mut reply),
        }
        let message = Message::parse(&reply).unwrap();
        assert_eq!((message.id, message.flags), (5, 0x8400));
        message.records.iter().map(|record| record.rtype).collect()
    }

    #[test]
    fn a_client_gets_the_zone_unless_it_has_the_serial() {
        let zone = [Type::SOA, Type::NS, Type::A, Type::A, Type::SOA];
        assert_eq!(reply(&query(Type::SOA, None), 3), [Type::SOA]);
        assert_eq!(reply(&query(Type::AXFR, None), 3), zone);
        assert_eq!(reply(&query(Type::IXFR, Some(2)), 3), zone);
        assert_eq!(reply(&query(Type::IXFR, Some(3)), 3), [Type::SOA]);
    }

    #[test]
    fn what_no_secondary_asks_gets_no_reply() {
        let whole = query(Type::IXFR, Some(2));
        assert!((0..whole.len()).all(|len| {
            ZoneQuestion::read(&whole[..len]).is_none_or(|question| question.serial.is_none())
        }));
        assert!(ZoneQuestion::read(&query(Type::A, None)).is_none());
    }

    #[test]
    fn zones_are_transferred_and_counted_until_the_serial_rises() {
        let primary = Primary::start(0, &[]).unwrap();
        let zone: Name = "z1.test".parse().unwrap();
        for count in 1..4 {
            let size = transfer(primary.address(), &zone, Duration::from_secs(5)).unwrap();
            assert_eq!((size.records, size.messages), (5, 1));
            // It counts when the client has all octets already.
            while primary.transfers() < count {
                thread::sleep(Duration::from_millis(1));
            }
        }
        assert_eq!((primary.raise_serial(), primary.transfers(), primary.checks()), (2, 0, 0));
    }
}
