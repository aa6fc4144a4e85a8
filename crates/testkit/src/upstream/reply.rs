//! What a scripted upstream says: right, or wrong on purpose.

use std::fmt;
use std::sync::Arc;

use crate::client::name_bytes;
use crate::rdata::type_number;

use super::script::ReceivedQuery;

/// Octets of a message's header.
const HEADER_BYTES: usize = 12;
/// The octet with QR, opcode, AA, TC and RD.
const TC: u8 = 0x02;

/// A change to the octets of a reply.
type Edit = Arc<dyn Fn(&mut Vec<u8>) + Send + Sync>;

/// A record of a reply.
#[derive(Clone, Debug)]
pub struct Record {
    /// Owner in wire form; none is the name asked for, as a pointer to the question.
    owner: Option<Vec<u8>>,
    /// Number of the type.
    record_type: u16,
    /// Seconds, or whatever else fits.
    ttl: u32,
    /// Data in wire form.
    data: Vec<u8>,
}

impl Record {
    /// Makes a record of the name that was asked for; its TTL is a minute.
    pub fn new(record_type: &str, data: impl Into<Vec<u8>>) -> Self {
        let record_type = type_number(record_type);
        Self { owner: None, record_type, ttl: 60, data: data.into() }
    }

    /// Returns the address 192.0.2.`octet`.
    pub fn address(octet: u8) -> Self {
        Self::new("A", [192, 0, 2, octet])
    }

    /// Returns an alias of another name.
    pub fn alias(target: &str) -> Self {
        Self::new("CNAME", name_bytes(target))
    }

    /// Says for how many seconds a zone denies.
    pub fn soa(zone: &str, minimum: u32) -> Self {
        let numbers = [1, 2, 3, 4, minimum].map(u32::to_be_bytes);
        let data = [name_bytes("ns.invalid"), name_bytes("host.invalid"), numbers.concat()];
        Self::new("SOA", data.concat()).of(zone)
    }

    /// Gives the record another owner.
    #[must_use]
    pub fn of(self, owner: &str) -> Self {
        Self { owner: Some(name_bytes(owner)), ..self }
    }

    /// Gives the record another TTL.
    #[must_use]
    pub fn ttl(self, ttl: u32) -> Self {
        Self { ttl, ..self }
    }

    /// Appends the record to a message.
    fn write(&self, message: &mut Vec<u8>) {
        match &self.owner {
            Some(owner) => message.extend_from_slice(owner),
            None => message.extend_from_slice(&[0xc0, HEADER_BYTES as u8]),
        }
        let length = u16::try_from(self.data.len()).expect("data of a test is short");
        message.extend(self.record_type.to_be_bytes());
        message.extend([0, 1]);
        message.extend(self.ttl.to_be_bytes());
        message.extend(length.to_be_bytes());
        message.extend_from_slice(&self.data);
    }
}

/// A message in reply to whatever is asked: QR, RD, RA, the query's id and question.
#[derive(Clone, Default)]
pub struct Reply {
    /// The lower four bits.
    rcode: u8,
    /// Records of the answer section.
    answer: Vec<Record>,
    /// Records of the authority section.
    authority: Vec<Record>,
    /// The server cookie in an OPT record; none sends no OPT.
    server_cookie: Option<[u8; 8]>,
    /// Changes to the octets in the end.
    edits: Vec<Edit>,
}

impl Reply {
    /// NOERROR, and nothing else.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Returns the address 192.0.2.`octet`.
    pub fn address(octet: u8) -> Self {
        Self::empty().answer(Record::address(octet))
    }

    /// Returns a response code, and nothing else.
    pub fn rcode(rcode: u8) -> Self {
        Self { rcode, ..Self::default() }
    }

    /// With another record in the answer section.
    #[must_use]
    pub fn answer(mut self, record: Record) -> Self {
        self.answer.push(record);
        self
    }

    /// With another record in the authority section.
    #[must_use]
    pub fn authority(mut self, record: Record) -> Self {
        self.authority.push(record);
        self
    }

    /// With an OPT record with the client's cookie and this one of the server.
    #[must_use]
    pub fn cookie(self, server_cookie: [u8; 8]) -> Self {
        Self { server_cookie: Some(server_cookie), ..self }
    }

    /// With its octets changed after all else.
    #[must_use]
    pub fn edited(mut self, edit: impl Fn(&mut Vec<u8>) + Send + Sync + 'static) -> Self {
        self.edits.push(Arc::new(edit));
        self
    }

    /// Sets TC in the reply.
    #[must_use]
    pub fn truncated(self) -> Self {
        self.edited(|message| message[2] |= TC)
    }

    /// Reduces the reply to a bare header, as old servers reply to what they do not understand.
    #[must_use]
    pub fn bare(self) -> Self {
        self.edited(|message| {
            message.truncate(HEADER_BYTES);
            message[4..].fill(0);
        })
    }

    /// Returns the octets, in reply to a query.
    pub fn write(&self, asked: &ReceivedQuery) -> Vec<u8> {
        let mut message = asked.question_octets().to_vec();
        message[2..4].copy_from_slice(&[0x81, 0x80 | self.rcode]);
        let opts = usize::from(self.server_cookie.is_some() && asked.cookie.len() >= 8);
        let counts = [1, self.answer.len(), self.authority.len(), opts];
        for (place, count) in counts.into_iter().enumerate() {
            let count = u16::try_from(count).expect("a section of a test has sixteen bits");
            message[4 + 2 * place..6 + 2 * place].copy_from_slice(&count.to_be_bytes());
        }
        self.answer.iter().chain(&self.authority).for_each(|record| record.write(&mut message));
        if let (Some(server), Some(client)) = (self.server_cookie, asked.cookie.get(..8)) {
            message.extend([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 20, 0, 10, 0, 16]);
            message.extend_from_slice(client);
            message.extend(server);
        }
        self.edits.iter().for_each(|edit| edit(&mut message));
        message
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rcode, answer, authority, server_cookie, edits } = self;
        write!(f, "rcode {rcode}, {answer:?}, {authority:?}, {server_cookie:?}, ")?;
        write!(f, "{} edits", edits.len())
    }
}
