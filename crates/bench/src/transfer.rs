//! A client that transfers a zone (AXFR, rfc5936), counts it and keeps nothing of it.
//!
//! It looks at no more of a record than it must to find the end, so that a server on the same
//! machine does not wait for it.

use std::fmt;
use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use zonda_wire::message::{Message, Question};
use zonda_wire::query::HEADER_BYTES;
use zonda_wire::{Name, Rcode, Type};

use crate::load::check::{skip_name, skip_record};

/// Octets that one call reads at most.
const BUFFER_OCTETS: usize = 1 << 18;

/// The ID of the question: there is one on each connection.
const ID: u16 = 0x7a6f;

/// Size of a zone that was transferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferSize {
    /// Number of records, the SOA record twice.
    pub records: u64,
    /// Number of messages.
    pub messages: u64,
    /// Octets of all messages.
    pub octets: u64,
}

/// Transfers a zone, within `limit` from the first octet of the question to the last of the reply.
///
/// # Errors
/// When there is no zone, or something is wrong with it.
pub fn transfer(
    server: SocketAddr,
    zone: &Name,
    limit: Duration,
) -> Result<TransferSize, TransferError> {
    let deadline = Instant::now() + limit;
    let stream = TcpStream::connect_timeout(&server, limit)?;
    stream.set_nodelay(true)?;
    let query = question(zone);
    let mut framed = (query.len() as u16).to_be_bytes().to_vec(); // a name has 255 octets at most
    framed.extend_from_slice(&query);
    (&stream).write_all(&framed)?;
    let mut reader = BufReader::with_capacity(BUFFER_OCTETS, &stream);
    let (mut size, mut message) = (TransferSize::default(), Vec::new());
    loop {
        let left = deadline.checked_duration_since(Instant::now()).ok_or(TransferError::Late)?;
        stream.set_read_timeout(Some(left))?;
        let mut len = [0; 2];
        reader.read_exact(&mut len)?;
        message.resize(usize::from(u16::from_be_bytes(len)), 0);
        reader.read_exact(&mut message)?;
        size.messages += 1;
        size.octets += message.len() as u64;
        if take(&message, &mut size)? {
            return Ok(size);
        }
    }
}

/// Returns the query for a whole zone.
fn question(zone: &Name) -> Vec<u8> {
    Message::new(ID, 0, Question::new(zone.clone(), Type::AXFR)).to_wire()
}

/// Counts the records of a message; whether it ends the zone. The first of all records is a SOA
/// record, and the second one of that type the last.
fn take(message: &[u8], size: &mut TransferSize) -> Result<bool, TransferError> {
    let (header, mut rest) =
        message.split_first_chunk::<HEADER_BYTES>().ok_or(TransferError::Malformed)?;
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let rcode = Rcode(word(2) & 15);
    if word(0) != ID || word(2) & 0x8000 == 0 {
        return Err(TransferError::Malformed);
    }
    if rcode != Rcode::NOERROR {
        return Err(TransferError::Rcode(rcode));
    }
    for _ in 0..word(4) {
        let after = skip_name(rest).and_then(|rest| rest.get(4..));
        rest = after.ok_or(TransferError::Malformed)?;
    }
    let mut is_last = false;
    for _ in 0..word(6) {
        let (fixed, after) = skip_record(rest).ok_or(TransferError::Malformed)?;
        let is_soa = fixed[..2] == Type::SOA.0.to_be_bytes();
        if is_last || (size.records == 0 && !is_soa) {
            return Err(TransferError::Malformed);
        }
        is_last = is_soa && size.records > 0;
        size.records += 1;
        rest = after;
    }
    Ok(is_last)
}

/// Why a zone was not transferred.
#[derive(Debug)]
pub enum TransferError {
    /// A failure of the connection, or its end before that of the zone.
    System(io::Error),
    /// A response code that refuses the zone.
    Rcode(Rcode),
    /// A message that is none, or records in an order that no zone has.
    Malformed,
    /// A transfer that takes longer than it may.
    Late,
}

impl From<io::Error> for TransferError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::Late,
            _ => Self::System(error),
        }
    }
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => write!(f, "the transfer failed: {error}"),
            Self::Rcode(rcode) => write!(f, "the transfer is answered by {rcode}"),
            Self::Malformed => f.write_str("the transfer is no whole zone in DNS messages"),
            Self::Late => f.write_str("the transfer takes too long"),
        }
    }
}

impl std::error::Error for TransferError {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use zonda_wire::Section;
    use zonda_wire::message::Record;
    use zonda_wire::rdata;

    /// The SOA record of the zone.
    const SOA: (Type, &str) = (Type::SOA, "ns.a.test h.a.test 1 2 3 4 5");
    /// One of its other records.
    const ADDRESS: (Type, &str) = (Type::A, "192.0.2.1");

    fn message(flags: u16, records: &[(Type, &str)]) -> Vec<u8> {
        let name: Name = "a.test".parse().unwrap();
        let record = |(rtype, text): &(Type, &str)| {
            let rdata = rdata::from_text(*rtype, text).unwrap();
            Record::new(Section::Answer, name.clone(), *rtype, 60, rdata)
        };
        let records = records.iter().map(record).collect();
        let mut message = Message::parse(&question(&name)).unwrap();
        (message.flags, message.records) = (flags, records);
        message.to_wire()
    }

    #[test]
    fn a_zone_ends_with_its_second_soa_record_in_whatever_message() {
        let mut size = TransferSize::default();
        assert!(!take(&message(0x8400, &[SOA, ADDRESS]), &mut size).unwrap());
        assert!(!take(&message(0x8400, &[ADDRESS]), &mut size).unwrap());
        assert!(take(&message(0x8400, &[ADDRESS, SOA]), &mut size).unwrap());
        assert_eq!(size.records, 5);
        let mut one = TransferSize::default();
        assert!(take(&message(0x8400, &[SOA, ADDRESS, SOA]), &mut one).unwrap());
    }

    #[test]
    fn what_is_no_zone_is_refused_with_its_reason() {
        let said =
            |message: &[u8]| take(message, &mut TransferSize::default()).unwrap_err().to_string();
        assert_eq!(said(&message(0x8005, &[])), "the transfer is answered by REFUSED");
        let whole = message(0x8400, &[SOA, ADDRESS, SOA]);
        for wrong in [
            &whole[..whole.len() - 1],
            &message(0x8400, &[ADDRESS, SOA]),
            &message(0x8400, &[SOA, SOA, ADDRESS]),
            &message(0x0400, &[SOA]),
            b"short",
        ] {
            assert_eq!(said(wrong), "the transfer is no whole zone in DNS messages");
        }
    }
}
