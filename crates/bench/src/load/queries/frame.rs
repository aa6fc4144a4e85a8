//! What surrounds a question in a query: the header before it, and the OPT record behind it.

use zonda_wire::message::{Message, Opt, Question};
use zonda_wire::query::{HEADER_BYTES, flag};
use zonda_wire::{Class, Name, Opcode, Type};

use super::Form;

/// Octets of the root's question.
const ROOT_QUESTION_BYTES: usize = 5;

/// Octets that a UDP reply may have, as dnsperf says.
const UDP_BYTES: u16 = 4096;

/// Header and OPT record, ready-made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The header of a query, its ID 0.
    header: Vec<u8>,
    /// The OPT record; empty without EDNS.
    opt: Vec<u8>,
}

/// Returns the OPT record of all messages of a form; none without EDNS.
pub fn opt(form: &Form) -> Option<Opt> {
    let Form { edns, dnssec, options, .. } = form;
    (*edns || *dnssec || !options.is_empty()).then(|| {
        let mut opt = Opt::new(UDP_BYTES);
        opt.flags = if *dnssec { 0x8000 } else { 0 };
        opt.options.clone_from(options);
        opt
    })
}

impl Frame {
    /// Makes the frame of all queries of a form.
    pub fn new(form: &Form) -> Self {
        let flags = match form.operation {
            Opcode::QUERY if form.recursion => flag::RD,
            Opcode::NOTIFY => flag::AA, // rfc1996#3.6
            _ => 0,
        };
        let flags = u16::from(form.operation.0) << flag::OPCODE.trailing_zeros() | flags;
        let mut message = Message::new(0, flags, Question::new(Name::root(), Type::A));
        message.opt = opt(form);
        let mut header = message.to_wire();
        let opt = header.split_off(HEADER_BYTES + ROOT_QUESTION_BYTES);
        header.truncate(HEADER_BYTES);
        Self { header, opt }
    }

    /// Begins a message; its name comes next.
    pub fn begin(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.header);
    }

    /// Ends a message behind its name.
    pub fn end(&self, qtype: Type, qclass: Class, out: &mut Vec<u8>) {
        out.extend_from_slice(&qtype.0.to_be_bytes());
        out.extend_from_slice(&qclass.0.to_be_bytes());
        out.extend_from_slice(&self.opt);
    }
}
