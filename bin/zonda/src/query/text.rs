//! A reply as text.

use super::exchange::Exchange;
use super::request::DisplayOptions;
use std::io::{self, Write};
use zonda_wire::message::{Opt, Record};
use zonda_wire::query::{flag, option};
use zonda_wire::rdata::{Presentation, print::Hex};
use zonda_wire::{ClientSubnet, Ede, Message, Section};

/// The flags of a header with their usual names.
pub const FLAGS: &[(u16, &str)] = &[
    (flag::QR, "qr"),
    (flag::AA, "aa"),
    (flag::TC, "tc"),
    (flag::RD, "rd"),
    (flag::RA, "ra"),
    (flag::AD, "ad"),
    (flag::CD, "cd"),
];

/// The sections of a message with their names.
pub const SECTIONS: &[(Section, &str)] = &[
    (Section::Answer, "answer"),
    (Section::Authority, "authority"),
    (Section::Additional, "additional"),
];

/// Prints a reply, or those parts of it that are to be shown, section by section.
///
/// # Errors
/// When `out` cannot be written to.
pub fn print(exchange: &Exchange, shown: &DisplayOptions, out: &mut impl Write) -> io::Result<()> {
    let reply = &exchange.reply;
    if shown.comments {
        let (opcode, status) = (reply.opcode(), reply.rcode());
        writeln!(out, ";; status {status}, opcode {opcode}, id {}", reply.id)?;
        writeln!(out, ";; flags {}", flags(reply).collect::<Vec<_>>().join(" "))?;
        if let Some(opt) = &reply.opt {
            print_opt(opt, out)?;
        }
        match exchange.signature {
            Some(Ok(())) => writeln!(out, ";; signature verified")?,
            Some(Err(fault)) => writeln!(out, ";; SIGNATURE NOT VERIFIED: {fault}")?,
            None => {}
        }
    }
    for question in reply.questions.iter().filter(|_| shown.question) {
        let (name, class, rtype) = (&question.name, question.qclass, question.qtype);
        let title = if shown.comments { "\n;; question\n" } else { "" };
        writeln!(out, "{title};{name}\t{class}\t{rtype}")?;
    }
    for ((section, title), is_shown) in SECTIONS.iter().zip(shown.sections) {
        let count = if is_shown { reply.section(*section).count() } else { 0 };
        if count > 0 && shown.comments {
            writeln!(out, "\n;; {title}, {count}")?;
        }
        reply.section(*section).take(count).try_for_each(|record| print_record(record, out))?;
    }
    if !shown.stats {
        return Ok(());
    }
    let Exchange { octets, server, transport, elapsed, .. } = exchange;
    let millis = elapsed.as_micros() as f64 / 1000.0;
    let gap = if shown.comments { "\n" } else { "" };
    writeln!(out, "{gap};; {octets} octets from {server} over {transport} in {millis:.1} ms")
}

/// Prints the data of the answer, a line each.
///
/// # Errors
/// When `out` cannot be written to.
pub fn print_short(exchange: &Exchange, out: &mut impl Write) -> io::Result<()> {
    let mut records = exchange.reply.section(Section::Answer);
    records.try_for_each(|record| writeln!(out, "{}", data(record)))
}

/// The names of the flags that are set.
pub fn flags(reply: &Message) -> impl Iterator<Item = &'static str> {
    FLAGS.iter().filter(|known| reply.has(known.0)).map(|known| known.1)
}

/// The data of a record in presentation format.
pub fn data(record: &Record) -> Presentation<'_> {
    Presentation { rtype: record.rtype, rdata: &record.rdata }
}

/// A record in a line.
fn print_record(record: &Record, out: &mut impl Write) -> io::Result<()> {
    let Record { owner, ttl, class, rtype, .. } = record;
    writeln!(out, "{owner}\t{ttl}\t{class}\t{rtype}\t{}", data(record))
}

/// The OPT record: a line for itself and one for each option.
fn print_opt(opt: &Opt, out: &mut impl Write) -> io::Result<()> {
    let dnssec = if opt.dnssec_ok() { ", do" } else { "" };
    writeln!(out, ";; edns {}, takes {} octets{dnssec}", opt.version, opt.udp_bytes)?;
    for (code, octets) in &opt.options {
        let hex = Hex(octets);
        match *code {
            option::NSID => writeln!(out, ";; nsid {hex} \"{}\"", printable(octets))?,
            option::COOKIE => writeln!(out, ";; cookie {hex}")?,
            option::EDE => writeln!(out, ";; error {}", extended_error(octets))?,
            option::CLIENT_SUBNET => match ClientSubnet::parse(octets) {
                Some(it) => writeln!(out, ";; client subnet {it}, scope {}", it.scope_len)?,
                None => writeln!(out, ";; client subnet {hex}")?, // of no family, or malformed
            },
            other => writeln!(out, ";; option {other} {hex}")?,
        }
    }
    Ok(())
}

/// An extended error: code, meaning, and what the server adds (rfc8914#2).
fn extended_error(octets: &[u8]) -> String {
    let Some((code, text)) = octets.split_first_chunk::<2>() else { return "malformed".into() };
    let code = u16::from_be_bytes(*code);
    let text = if text.is_empty() { String::new() } else { format!(": {}", printable(text)) };
    format!("{code} ({}){text}", Ede(code))
}

/// Text from the network, fit to be shown.
pub fn printable(octets: &[u8]) -> String {
    let text = String::from_utf8_lossy(octets);
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
