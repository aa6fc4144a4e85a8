//! NOTIFY messages and the replies to them (rfc1996#3).

use zonda_wire::query::flag;
use zonda_wire::{Class, Message, Name, Opcode, Rcode, Type};

/// The message that announces a version of a zone by its SOA record: TTL and data.
pub fn announcement(id: u16, apex: &Name, (ttl, soa): (u32, &[u8])) -> Vec<u8> {
    let flags = u16::from(Opcode::NOTIFY.0) << 11 | flag::AA;
    let counts = [1, 1, 0, 0];
    let mut octets = Vec::with_capacity(512);
    let words = |octets: &mut Vec<u8>, words: &[u16]| {
        words.iter().for_each(|word| octets.extend_from_slice(&word.to_be_bytes()));
    };
    words(&mut octets, &[id, flags]);
    words(&mut octets, &counts);
    octets.extend_from_slice(apex.as_wire());
    words(&mut octets, &[Type::SOA.0, Class::IN.0]);
    words(&mut octets, &[0xc00c, Type::SOA.0, Class::IN.0]); // the name of the question
    octets.extend_from_slice(&ttl.to_be_bytes());
    words(&mut octets, &[soa.len() as u16]); // two names and five numbers
    octets.extend_from_slice(soa);
    octets
}

/// A reply to a message.
#[derive(Debug, PartialEq, Eq)]
pub struct NotifyReply {
    /// The id of the message.
    pub id: u16,
    /// The zone that was announced, in lower case.
    pub zone: Name,
    /// The result: no error if the receiver acknowledges the message.
    pub rcode: Rcode,
}

/// Reads a reply; none if the octets are anything else.
pub fn reply(octets: &[u8]) -> Option<NotifyReply> {
    let message = Message::parse(octets).ok()?;
    let question = message.questions.first()?;
    let is_reply = message.has(flag::QR)
        && message.opcode() == Opcode::NOTIFY
        && (question.qtype, question.qclass) == (Type::SOA, Class::IN);
    let zone = question.name.to_lowercase();
    is_reply.then(|| NotifyReply { id: message.id, zone, rcode: message.rcode() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_message_has_the_soa_record_and_is_acknowledged_by_its_own_question() {
        let apex: Name = "example.com".parse().unwrap();
        let soa = [&b"\x02ns\xc0\0\0"[..0], b"\x02ns\0\0", &[0; 20]].concat();
        let octets = announcement(0x1234, &apex, (60, &soa));
        let message = Message::parse(&octets).unwrap();
        assert_eq!((message.id, message.opcode()), (0x1234, Opcode::NOTIFY));
        assert!(message.has(flag::AA) && !message.has(flag::QR));
        assert_eq!(message.records[0].owner, apex);
        assert_eq!((message.records[0].ttl, &message.records[0].rdata), (60, &soa));
        assert_eq!(reply(&octets), None, "it is no reply");
        let mut answer = octets.clone();
        answer[2] |= 0x80;
        answer[3] |= 5;
        answer[13] = b'E';
        let expected = NotifyReply { id: 0x1234, zone: apex, rcode: Rcode::REFUSED };
        assert_eq!(reply(&answer), Some(expected));
        answer[2] &= 0x87; // a reply to a query
        assert_eq!(reply(&answer), None);
        (0..octets.len()).for_each(|end| assert_eq!(reply(&answer[..end]), None));
    }
}
