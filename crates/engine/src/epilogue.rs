//! What is not the answer: OPT, TSIG and the response code.
//!
//! Written once, after the last source, for every reply alike.

use crate::access::{Access, AccessList};
use crate::answer::Answer;
use crate::ask::Ask;
use crate::message::Transport;
use crate::opt::{NSID_BYTES_MAX, OPT_BYTES, OPTION_HEADER, Opt, TEXT_BYTES_MAX};
use crate::reason::Reason;
use crate::snapshot::Settings;
use crate::worker::Worker;
use zonda_wire::query::{UDP_BYTES_MIN, flag, option};
use zonda_wire::{Ede, Edns, Opcode, Owner, Query, Rcode, Section, SubnetOption, Type};

/// RA, if this client may have any name looked up for questions of this type, whichever source has
/// answered for the name of this query (rfc1035#4.1.1). In replies to other messages the bit means
/// nothing (rfc2136#2.2).
#[inline(always)] // on the path of every query
pub fn recursion_available(ask: &Ask<'_>, flags: u16) -> u16 {
    let zone = ask.snapshot.zones.recursion().filter(|_| flags & flag::RA == 0);
    let Some(zone) = zone.filter(|_| ask.query.opcode() == Opcode::QUERY) else { return 0 };
    let list = zone.access.as_ref();
    let client = ask.peer.address.ip();
    let check = |list: &AccessList| list.check(client, ask.signature, ask.question_type());
    let is_for = list.is_none_or(|list| matches!(check(list), Access::Allow | Access::Filter));
    if is_for { flag::RA } else { 0 }
}

/// Octets to leave free for the OPT record, the extended error not counted: that is written if
/// there is room left.
#[inline]
pub fn reserved_bytes(
    query: &Query,
    client_subnet: &Option<SubnetOption>,
    settings: &Settings,
    transport: Transport,
) -> usize {
    let Some(edns) = &query.edns else { return 0 };
    if !edns.has_options() {
        return OPT_BYTES;
    }
    let mut bytes = OPT_BYTES;
    if let Some(subnet) = client_subnet {
        bytes += OPTION_HEADER + subnet.data().len();
    }
    if edns.cookie.1 > 0 && settings.cookies.is_some() {
        bytes += OPTION_HEADER + 24;
    }
    if edns.nsid {
        bytes += settings.nsid.as_ref().map_or(0, |nsid| OPTION_HEADER + nsid.len());
    }
    if sends_keepalive(edns, settings, transport).is_some() {
        bytes += OPTION_HEADER + 2;
    }
    if edns.expire && matches!(query.qtype, Type::SOA | Type::IXFR) {
        bytes += OPTION_HEADER + 4;
    }
    bytes
}

/// The idle timeout to tell a client (rfc7828#3.3.2).
fn sends_keepalive(edns: &Edns, settings: &Settings, transport: Transport) -> Option<u16> {
    settings.keepalive.filter(|_| edns.keepalive && transport == Transport::Tcp)
}

/// Appends what is neither question nor data: OPT, and behind it TSIG. The reply's limit must leave
/// room for [`reserved_bytes`].
#[inline(always)] // on the path of every query
pub fn write(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    (rcode, reason): (Rcode, Reason),
    room: usize,
) {
    write_opt(ask, answer, worker, (rcode, reason), room);
    if matches!(reason, Reason::UnknownKey | Reason::BadSignature)
        && ask.signature.is_none_or(|signature| !signature.check.is_answered_signed())
    {
        write_tsig(answer, worker);
    }
}

/// Appends the OPT record if the client sent one (rfc6891#6.1.1).
#[inline]
fn write_opt(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    (rcode, reason): (Rcode, Reason),
    room: usize,
) {
    let Some(edns) = &ask.query.edns else { return };
    let settings = &ask.snapshot.settings;
    let mut opt = Opt { octets: &mut worker.opt, len: OPT_BYTES };
    opt.octets[..OPT_BYTES].fill(0);
    opt.octets[2] = 41;
    opt.octets[3..5].copy_from_slice(&settings.udp_bytes_max.to_be_bytes());
    opt.octets[5] = (rcode.0 >> 4) as u8; // the upper eight of twelve bits, rfc6891#6.1.3
    opt.octets[7] = u8::from(edns.dnssec_ok) << 7;
    if let Some(cookie) = &answer.cookie {
        opt.option(option::COOKIE, [cookie, &[]]);
    }
    if let Some(nsid) = settings.nsid.as_ref().filter(|_| edns.nsid) {
        opt.option(option::NSID, [&nsid[..nsid.len().min(NSID_BYTES_MAX)], &[]]);
    }
    if let Some(subnet) = &ask.client_subnet {
        opt.option(option::CLIENT_SUBNET, [subnet.with_scope(answer.scope()).data(), &[]]);
    }
    if let Some(timeout) = sends_keepalive(edns, settings, ask.peer.transport) {
        opt.option(option::KEEPALIVE, [&timeout.to_be_bytes(), &[]]);
    }
    if edns.expire
        && let Some(secs) = expire_secs(ask, (rcode, reason))
    {
        opt.option(option::EXPIRE, [&secs.to_be_bytes(), &[]]);
    }
    let room = room.checked_sub(opt.len + OPTION_HEADER + 2);
    let mut ede = answer.ede.or_else(|| reason.ede(rcode));
    if edns.reason && ede.is_none() {
        ede = tell_reason(ask, answer, &mut worker.body, reason);
    }
    if let (Some(room), Some(Ede(code))) = (room, ede) {
        let text = match answer.text_bytes {
            0 => reason.text().as_bytes(),
            bytes => &worker.body[..bytes],
        };
        let text = &text[..text.len().min(room).min(TEXT_BYTES_MAX)];
        opt.option(option::EDE, [&code.to_be_bytes(), text]);
    }
    let data_len = (opt.len - OPT_BYTES) as u16; // at most OPT_BYTES_MAX
    opt.octets[9..11].copy_from_slice(&data_len.to_be_bytes());
    let written = answer.reply.raw_record(Section::Additional, &opt.octets[..opt.len]);
    debug_assert!(written.is_ok(), "room for OPT is kept free");
}

/// The seconds until a zone expires, for a client that asks for its SOA record, as it is answered
/// (rfc7314#3.2).
#[cold]
fn expire_secs(ask: &Ask<'_>, (rcode, reason): (Rcode, Reason)) -> Option<u32> {
    let is_answered = (rcode, reason) == (Rcode::NOERROR, Reason::Answered);
    let is_asked = matches!(ask.query.qtype, Type::SOA | Type::IXFR);
    let zone = ask.zone.filter(|zone| zone.apex.as_wire() == ask.name.as_wire());
    zone.filter(|_| is_answered && is_asked)?.expire_secs(ask.now.unix_secs)
}

/// Puts the reason of an answer into words, for a client that asks for it and may be told.
#[cold]
fn tell_reason(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    body: &mut [u8],
    reason: Reason,
) -> Option<Ede> {
    if !ask.wants_reason() {
        return None;
    }
    let separator = if answer.text_bytes > 0 { "; " } else { "" };
    answer.add_text(body, format_args!("{separator}{}", reason.name()));
    if let Some(zone) = ask.zone {
        answer.add_text(body, format_args!("; zone {}", zone.apex));
    }
    Some(Ede::OTHER)
}

/// Appends the TSIG record of a reply to a query that is signed, behind all other records
/// (rfc8945#5.1).
#[cold]
fn write_tsig(answer: &mut Answer<'_>, worker: &Worker) {
    let (owner, fixed, rdata) = worker.signature_record.rejection();
    if answer.reply.record(Section::Additional, Owner::Name(owner), fixed, rdata).is_err() {
        answer.flags |= flag::TC;
    }
}

/// The largest reply that may be sent (rfc6891#6.2.3 to #6.2.5).
#[inline]
pub fn reply_bytes_max(query: &Query, settings: &Settings, transport: Transport) -> usize {
    match (transport, query.edns) {
        (Transport::Tcp, _) => usize::from(u16::MAX),
        (Transport::Udp, None) => usize::from(UDP_BYTES_MIN),
        (Transport::Udp, Some(edns)) => {
            usize::from(edns.udp_bytes.min(settings.udp_bytes_max).max(UDP_BYTES_MIN))
        }
    }
}
