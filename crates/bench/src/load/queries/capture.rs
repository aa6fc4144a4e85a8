//! Questions from a capture of a network (pcap): what clients asked over UDP, port 53.
//!
//! Both byte orders, times in microseconds or nanoseconds; Ethernet with or without VLAN tags,
//! Linux's cooked captures (SLL, SLL2) and raw IP, IPv4 and IPv6. Whatever is no such question is
//! passed over. Deliberately absent: what surrounded a question, which the form says as for any
//! other query; fragments, IPv6 extension headers, TCP, whose packets are counted, and pcapng.

use std::io::{self, BufRead, ErrorKind};
use std::path::Path;

use zonda_wire::query::HEADER_BYTES;
use zonda_wire::{Class, Type, name};

use super::{Omissions, QueriesError, QueryList};

/// Octets that distinguish a capture from other files.
pub const MAGIC_OCTETS: usize = 4;

/// The magic numbers of captures with times in microseconds and in nanoseconds.
const MAGICS: [u32; 2] = [0xa1b2_c3d4, 0xa1b2_3c4d];

/// Octets of the file's header.
const FILE_HEADER_OCTETS: usize = 24;

/// Octets of a packet's header.
const PACKET_HEADER_OCTETS: usize = 16;

/// Octets of the longest packet; tcpdump's limit.
const PACKET_OCTETS_MAX: usize = 1 << 18;

/// Where DNS is asked.
const PORT: u16 = 53;

/// The protocol numbers of UDP and TCP.
const UDP: u8 = 17;
const TCP: u8 = 6;

/// EtherTypes: the two of IP, and those of VLAN tags.
const IP: [u16; 2] = [0x0800, 0x86dd];
const VLAN: [u16; 2] = [0x8100, 0x88a8];

/// Whether a file that begins so is a capture.
pub fn is_capture(start: &[u8]) -> bool {
    ByteOrder::of(start).is_some()
}

/// Adds the questions of a capture that comes from `path`. Where it ends within a packet, as what
/// wrote it was killed, that packet is left out; so are packets over TCP. Notes both.
pub fn parse(
    file: impl BufRead,
    path: &Path,
    gathering: &mut QueryList,
    left_out: &mut Omissions,
) -> Result<(), QueriesError> {
    read(file, gathering, left_out).map_err(|error| QueriesError::File(path.to_owned(), error))
}

/// Does the work of [`parse`] but for the path in errors.
fn read(
    mut file: impl BufRead,
    gathering: &mut QueryList,
    left_out: &mut Omissions,
) -> io::Result<()> {
    let wrong = |what: String| io::Error::new(ErrorKind::InvalidData, what);
    let mut header = [0; FILE_HEADER_OCTETS];
    file.read_exact(&mut header)?;
    let order = ByteOrder::of(&header).ok_or_else(|| wrong("not a capture".to_owned()))?;
    // The upper bits say something of frame check sequences.
    let link = order.u32(&header[20..]) & 0xffff;
    if !LINKS.contains(&link) {
        return Err(wrong(format!("link type {link} is not known; Ethernet, SLL and raw IP are")));
    }
    let mut packet = Vec::new();
    for number in 1_u64.. {
        if file.fill_buf()?.is_empty() {
            break;
        }
        let mut header = [0; PACKET_HEADER_OCTETS];
        if !read_completely(file.read_exact(&mut header))? {
            left_out.cut_packet = Some(number);
            break;
        }
        let len = order.u32(&header[8..]) as usize;
        if len > PACKET_OCTETS_MAX {
            return Err(wrong(format!(
                "packet {number} is longer than {PACKET_OCTETS_MAX} octets"
            )));
        }
        packet.resize(len, 0);
        if !read_completely(file.read_exact(&mut packet))? {
            left_out.cut_packet = Some(number);
            break;
        }
        match ip_packet(link, &packet).and_then(transport) {
            Some((UDP, datagram)) => {
                let question = payload(datagram).and_then(question);
                if let Some((name, qtype, qclass)) = question {
                    gathering.ask_wire(name, qtype, qclass);
                }
            }
            Some((TCP, segment)) => left_out.tcp_packets += u64::from(asks_over_tcp(segment)),
            _ => {}
        }
    }
    Ok(())
}

/// Whether all was read that was asked for, and the file did not end before.
fn read_completely(read: io::Result<()>) -> io::Result<bool> {
    match read {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// In which order the writer of a capture put the octets of a number.
#[derive(Clone, Copy)]
enum ByteOrder {
    /// The highest first.
    Big,
    /// The lowest first.
    Little,
}

impl ByteOrder {
    /// Returns the byte order of a capture that begins with `start`; nothing if that is no capture.
    fn of(start: &[u8]) -> Option<Self> {
        let orders = [Self::Big, Self::Little];
        let start = start.get(..MAGIC_OCTETS)?;
        orders.into_iter().find(|order| MAGICS.contains(&order.u32(start)))
    }

    /// Returns the number that the first four octets are.
    ///
    /// # Panics
    /// If there are fewer.
    fn u32(self, octets: &[u8]) -> u32 {
        let octets = *octets.first_chunk().expect("callers have a header");
        match self {
            Self::Big => u32::from_be_bytes(octets),
            Self::Little => u32::from_le_bytes(octets),
        }
    }
}

/// Link types: BSD's raw IP, Ethernet, raw IP, SLL, IPv4, IPv6, SLL2.
const LINKS: [u32; 8] = [12, 14, 1, 101, 113, 228, 229, 276];

/// Returns the IP packet in a frame of a link type of [`LINKS`].
fn ip_packet(link: u32, frame: &[u8]) -> Option<&[u8]> {
    let (mut ether_type, mut rest) = match link {
        1 => (u16_at(frame, 12)?, frame.get(14..)?),
        113 => (u16_at(frame, 14)?, frame.get(16..)?),
        276 => (u16_at(frame, 0)?, frame.get(20..)?),
        _ => return Some(frame),
    };
    while VLAN.contains(&ether_type) {
        (ether_type, rest) = (u16_at(rest, 2)?, rest.get(4..)?);
    }
    IP.contains(&ether_type).then_some(rest)
}

/// Returns the protocol in an IP packet that is whole, and what the packet carries.
fn transport(packet: &[u8]) -> Option<(u8, &[u8])> {
    let (protocol, start, end) = match packet.first()? >> 4 {
        4 => {
            let is_fragment = u16_at(packet, 6)? & 0x3fff != 0; // MF and the offset
            let start = usize::from(packet[0] & 15) * 4;
            let end = usize::from(u16_at(packet, 2)?);
            (*packet.get(9).filter(|_| !is_fragment)?, start, end)
        }
        6 => (*packet.get(6)?, 40, 40 + usize::from(u16_at(packet, 4)?)),
        _ => return None,
    };
    Some((protocol, packet.get(start..end)?))
}

/// Whether a TCP segment has octets for [`PORT`]: a query or a part of some.
fn asks_over_tcp(segment: &[u8]) -> bool {
    let data_at = segment.get(12).map(|offset| usize::from(offset >> 4) * 4);
    u16_at(segment, 2) == Some(PORT) && data_at.is_some_and(|at| at < segment.len())
}

/// Returns the message in a UDP datagram to [`PORT`].
fn payload(datagram: &[u8]) -> Option<&[u8]> {
    let is_asked = u16_at(datagram, 2)? == PORT;
    datagram.get(8..usize::from(u16_at(datagram, 4)?)).filter(|_| is_asked)
}

/// Returns the question of a message that is a query with one question.
fn question(message: &[u8]) -> Option<(&[u8], Type, Class)> {
    let is_query = message.get(2)? & 0xf8 == 0 && u16_at(message, 4)? == 1;
    let question = message.get(HEADER_BYTES..).filter(|_| is_query)?;
    let (name, rest) = question.split_at_checked(name::wire_len(question)?)?;
    Some((name, Type(u16_at(rest, 0)?), Class(u16_at(rest, 2)?)))
}

/// Returns the number at a place, the highest octet first.
fn u16_at(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*octets.get(at..)?.first_chunk()?))
}
