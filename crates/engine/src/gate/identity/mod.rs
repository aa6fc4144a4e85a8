//! The server's identity: `version.bind`, `id.server` and their like in class CH (rfc4892).

use crate::answer::Answer;
use crate::ask::Ask;
use crate::reason::Reason;
use crate::reuse::NotReused;
use crate::verdict::{Flow, reply};
use std::ops::ControlFlow::Continue;
use zonda_wire::query::flag;
use zonda_wire::{Class, Full, Owner, Rcode, Section, Type};

/// Answers questions of class CH. What may not be told is refused, as are all other names.
#[inline]
pub fn answer(ask: &Ask<'_>, answer: &mut Answer<'_>) -> Flow {
    if ask.query.qclass == Class::CH { identify(ask, answer) } else { Continue(()) }
}

/// Answers a question of class CH.
fn identify(ask: &Ask<'_>, answer: &mut Answer<'_>) -> Flow {
    let settings = &ask.snapshot.settings;
    let texts = match ask.name.as_wire() {
        b"\x07version\x04bind\0" | b"\x07version\x06server\0" => settings.version.as_slice(),
        b"\x08hostname\x04bind\0" | b"\x02id\x06server\0" => settings.server_id.as_slice(),
        b"\x07authors\x04bind\0" => &settings.authors,
        _ => &[],
    };
    if texts.is_empty() {
        return reply(Rcode::REFUSED, Reason::NotServed, NotReused::Gate);
    }
    answer.flags |= flag::AA;
    if !matches!(ask.query.qtype, Type::TXT | Type::ANY) {
        return reply(Rcode::NOERROR, Reason::NoData, NotReused::Gate);
    }
    if texts.iter().any(|text| write(answer, text).is_err()) {
        answer.flags |= flag::TC;
    }
    reply(Rcode::NOERROR, Reason::Identity, NotReused::Gate)
}

/// Writes a TXT record of one string, cut to 255 octets.
fn write(answer: &mut Answer<'_>, text: &str) -> Result<(), Full> {
    let text = &text.as_bytes()[..text.len().min(255)];
    let mut rdata = [0; 256];
    rdata[0] = text.len() as u8; // cut to 255
    rdata[1..=text.len()].copy_from_slice(text);
    let fixed = (Type::TXT, Class::CH, 0);
    let owner = Owner::Question { skip: 0 };
    answer.reply.record(Section::Answer, owner, fixed, &rdata[..=text.len()])
}
