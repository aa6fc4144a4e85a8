//! What is not the answer: OPT, TSIG and the response code.
//!
//! Written once, after the last stage, for every reply alike.

use crate::context::Context;
use crate::message::Transport;
use crate::reason::Reason;
use crate::snapshot::Settings;
use zonda_wire::query::{flag, option};
use zonda_wire::{Ede, Edns, Owner, Query, Rcode, Section};

/// Octets of an OPT record without options.
const OPT_BYTES: usize = 11;
/// Octets of an option's code and length.
const OPTION_HEADER: usize = 4;
/// The largest OPT record we write: an identifier of 128 octets, cookie, timeout, extended error.
pub const OPT_BYTES_MAX: usize = OPT_BYTES
    + (OPTION_HEADER + NSID_BYTES_MAX)
    + (OPTION_HEADER + 24)
    + (OPTION_HEADER + 2)
    + (OPTION_HEADER + 2 + TEXT_BYTES_MAX);
/// Most octets of an extended error's text that are sent.
pub const TEXT_BYTES_MAX: usize = zonda_cache::FAILURE_TEXT_BYTES_MAX;
/// The largest name server identifier that is sent.
pub const NSID_BYTES_MAX: usize = 128;

/// Octets to leave free for the OPT record, the extended error not counted: that is written if
/// there is room left.
#[inline]
pub fn reserved_bytes(query: &Query, settings: &Settings, transport: Transport) -> usize {
    let Some(edns) = query.edns else { return 0 };
    let mut bytes = OPT_BYTES;
    if edns.cookie.1 > 0 && settings.cookies.is_some() {
        bytes += OPTION_HEADER + 24;
    }
    if edns.nsid {
        bytes += settings.nsid.as_ref().map_or(0, |nsid| OPTION_HEADER + nsid.len());
    }
    if sends_keepalive(&edns, settings, transport).is_some() {
        bytes += OPTION_HEADER + 2;
    }
    bytes
}

/// The idle timeout to tell a client (rfc7828#3.3.2).
fn sends_keepalive(edns: &Edns, settings: &Settings, transport: Transport) -> Option<u16> {
    settings.keepalive.filter(|_| edns.keepalive && transport == Transport::Tcp)
}

/// Appends what is neither question nor data: OPT, and behind it TSIG. The reply's limit must leave
/// room for [`reserved_bytes`].
#[inline]
pub fn write(cx: &mut Context<'_>, rcode: Rcode, reason: Reason, room: usize) {
    write_opt(cx, rcode, reason, room);
    if reason == Reason::UnknownKey {
        write_tsig(cx);
    }
}

/// Appends the OPT record if the client sent one (rfc6891#6.1.1).
#[inline]
fn write_opt(cx: &mut Context<'_>, rcode: Rcode, reason: Reason, room: usize) {
    let Some(edns) = cx.query.edns else { return };
    let settings = &cx.snapshot.settings;
    let mut opt = Opt { octets: &mut cx.worker.opt, len: OPT_BYTES };
    opt.octets[..OPT_BYTES].fill(0);
    opt.octets[2] = 41;
    opt.octets[3..5].copy_from_slice(&settings.udp_bytes_max.to_be_bytes());
    opt.octets[5] = (rcode.0 >> 4) as u8; // the upper eight of twelve bits, rfc6891#6.1.3
    opt.octets[7] = u8::from(edns.dnssec_ok) << 7;
    if let Some(cookie) = &cx.cookie {
        opt.option(option::COOKIE, [cookie, &[]]);
    }
    if let Some(nsid) = settings.nsid.as_ref().filter(|_| edns.nsid) {
        opt.option(option::NSID, [&nsid[..nsid.len().min(NSID_BYTES_MAX)], &[]]);
    }
    if let Some(timeout) = sends_keepalive(&edns, settings, cx.peer.transport) {
        opt.option(option::KEEPALIVE, [&timeout.to_be_bytes(), &[]]);
    }
    let room = room.checked_sub(opt.len + OPTION_HEADER + 2);
    if let (Some(room), Some(Ede(code))) = (room, cx.ede.or_else(|| reason.ede(rcode))) {
        let text = match cx.text_bytes {
            0 => reason.text().as_bytes(),
            bytes => &cx.worker.body[..bytes],
        };
        let text = &text[..text.len().min(room).min(TEXT_BYTES_MAX)];
        opt.option(option::EDE, [&code.to_be_bytes(), text]);
    }
    let data_len = (opt.len - OPT_BYTES) as u16; // at most OPT_BYTES_MAX
    opt.octets[9..11].copy_from_slice(&data_len.to_be_bytes());
    let written = cx.reply.raw_record(Section::Additional, &opt.octets[..opt.len]);
    debug_assert!(written.is_ok(), "room for OPT is kept free");
}

/// Appends the TSIG record of a reply to a query that is signed, behind all others (rfc8945#5.1).
#[cold]
fn write_tsig(cx: &mut Context<'_>) {
    let (owner, fixed, rdata) = cx.worker.unknown_key.record();
    if cx.reply.record(Section::Additional, Owner::Name(owner), fixed, rdata).is_err() {
        cx.flags |= flag::TC;
    }
}

/// An OPT record under way.
struct Opt<'o> {
    octets: &'o mut [u8; OPT_BYTES_MAX],
    len: usize,
}

impl Opt<'_> {
    /// Appends an option whose data, of at most 255 octets, is in two parts.
    fn option(&mut self, code: u16, [first, second]: [&[u8]; 2]) {
        let (start, len) = (self.len + OPTION_HEADER, first.len() + second.len());
        self.octets[self.len..self.len + 2].copy_from_slice(&code.to_be_bytes());
        self.octets[self.len + 2..start].copy_from_slice(&[0, len as u8]);
        self.octets[start..start + first.len()].copy_from_slice(first);
        self.octets[start + first.len()..start + len].copy_from_slice(second);
        self.len = start + len;
    }
}
