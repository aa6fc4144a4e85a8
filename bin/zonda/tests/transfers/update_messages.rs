//! Messages that change zones, written octet for octet as libraries of clients do (dnspython,
//! lego), and the replies to them.

use std::net::SocketAddr;
use zonda_testkit::client::exchange;
use zonda_wire::message::{Message, Opt, Question, Record};
use zonda_wire::{Class, Name, Opcode, Rcode, Section, Type, rdata};

/// The code of the extended error among options of EDNS.
const EDE: u16 = 15;

/// A message under way.
#[derive(Clone)]
pub struct Update(pub Message);

impl Update {
    /// A message that asks for nothing, for a zone.
    pub fn new(zone: &str) -> Self {
        let flags = u16::from(Opcode::UPDATE.0) << 11;
        let mut update = Message::new(0x4711, flags, Question::new(name(zone), Type::SOA));
        update.opt = Some(Opt::new(1232));
        Self(update)
    }

    /// Gives the message another id.
    pub fn id(mut self, id: u16) -> Self {
        self.0.id = id;
        self
    }

    /// Adds a prerequisite: class, name, TTL, type and data.
    pub fn need(self, words: &str) -> Self {
        self.with(Section::Answer, words)
    }

    /// Adds an update in the form of a prerequisite.
    pub fn change(self, words: &str) -> Self {
        self.with(Section::Authority, words)
    }

    /// Adds a record to a section.
    fn with(mut self, section: Section, words: &str) -> Self {
        let mut words = words.split(' ');
        let class: Class = words.next().unwrap().parse().unwrap();
        let owner = name(words.next().unwrap());
        let ttl = words.next().unwrap().parse().unwrap();
        let rtype: Type = words.next().unwrap().parse().unwrap();
        let data = words.collect::<Vec<_>>().join(" ");
        let rdata = match &*data {
            "" => Vec::new(),
            data => rdata::from_text(rtype, data).unwrap(),
        };
        let mut record = Record::new(section, owner, rtype, ttl, rdata);
        record.class = class;
        self.0.records.push(record);
        self
    }

    /// Sends the message over UDP; returns the response code.
    #[track_caller]
    pub fn send(&self, to: SocketAddr) -> Rcode {
        self.reply(to, false).rcode()
    }

    /// Sends the message, over TCP or UDP, and returns the reply.
    #[track_caller]
    pub fn reply(&self, to: SocketAddr, tcp: bool) -> Message {
        let octets = exchange(to, &self.0.to_wire(), tcp).unwrap();
        let reply = Message::parse(&octets).unwrap();
        assert_eq!((reply.id, reply.opcode()), (self.0.id, Opcode::UPDATE));
        reply
    }

    /// Sends the message; returns the response code and the extended error: its code and text.
    #[track_caller]
    pub fn explained(&self, to: SocketAddr) -> (Rcode, u16, String) {
        let reply = self.reply(to, false);
        let opt = reply.opt.as_ref().unwrap();
        let data = opt.option(EDE).unwrap_or(&[0xff, 0xff]);
        let code = u16::from_be_bytes([data[0], data[1]]);
        (reply.rcode(), code, String::from_utf8_lossy(&data[2..]).into_owned())
    }
}

/// A name in text.
fn name(text: &str) -> Name {
    text.parse().unwrap()
}
