//! Who the server is: `version.bind`, `id.server` and their like in class CH (rfc4892).

use crate::context::{Context, Flow, reply};
use crate::reason::Reason;
use std::ops::ControlFlow::Continue;
use zonda_wire::query::flag;
use zonda_wire::{Class, Owner, Rcode, Section, Type};

/// Answers questions of class CH. What may not be told is refused, as are all other names.
#[inline]
pub fn answer(cx: &mut Context<'_>) -> Flow {
    if cx.query.qclass == Class::CH { identify(cx) } else { Continue(()) }
}

fn identify(cx: &mut Context<'_>) -> Flow {
    let settings = &cx.snapshot.settings;
    let text = match cx.name.as_wire() {
        b"\x07version\x04bind\0" | b"\x07version\x06server\0" => &settings.version,
        b"\x08hostname\x04bind\0" | b"\x02id\x06server\0" => &settings.server_id,
        _ => &None,
    };
    let Some(text) = text else { return reply(Rcode::REFUSED, Reason::NotServed) };
    cx.flags |= flag::AA;
    if !matches!(cx.query.qtype, Type::TXT | Type::ANY) {
        return reply(Rcode::NOERROR, Reason::NoData);
    }
    let text = &text.as_bytes()[..text.len().min(255)];
    let mut rdata = [0; 256];
    rdata[0] = text.len() as u8; // cut to 255
    rdata[1..=text.len()].copy_from_slice(text);
    let fixed = (Type::TXT, Class::CH, 0);
    let written =
        cx.reply.record(Section::Answer, Owner::Question { skip: 0 }, fixed, &rdata[..=text.len()]);
    if written.is_err() {
        cx.flags |= flag::TC;
    }
    reply(Rcode::NOERROR, Reason::Identity)
}
