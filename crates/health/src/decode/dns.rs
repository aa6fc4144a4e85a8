//! DNS queries of checks, and their responses.

use std::net::IpAddr;

use zonda_wire::query::{HEADER_BYTES, flag};
use zonda_wire::{Class, Rcode, Response, Section, Type};

use crate::check::DnsCheck;
use crate::outcome::Fault;

/// Returns the query of a check.
#[must_use]
pub fn dns_query(check: &DnsCheck, id: u16) -> Vec<u8> {
    let flags = if check.recursion_desired { flag::RD } else { 0 };
    let header = [id, flags, 1, 0, 0, 0].map(u16::to_be_bytes);
    let question = [check.qtype.0, Class::IN.0].map(u16::to_be_bytes);
    [header.as_flattened(), check.name.as_wire(), question.as_flattened()].concat()
}

/// Returns whether a message is a response to a query of [`dns_query`]: id, QR and question.
#[must_use]
pub fn dns_answers(query: &[u8], message: &[u8]) -> bool {
    let Some(question) = query.get(HEADER_BYTES..) else { return false };
    let Some(reply) = message.get(HEADER_BYTES..HEADER_BYTES + question.len()) else {
        // Some servers send an error with a bare header.
        return message.len() == HEADER_BYTES
            && message[..2] == query[..2]
            && message[2] & 0x80 != 0
            && message[4..6] == [0, 0];
    };
    message[..2] == query[..2]
        && message[2] & 0x80 != 0
        && message[4..6] == [0, 1]
        && reply.eq_ignore_ascii_case(question)
}

/// Judges a response; returns its code in words.
///
/// # Errors
/// Why it is not what the check expects.
pub fn dns_judge(check: &DnsCheck, message: &[u8]) -> Result<Box<str>, Fault> {
    let response = Response::parse(message).map_err(|_| Fault::Protocol("DNS"))?;
    let rcode = response.rcode();
    let is_expected = match check.rcodes.is_empty() {
        true => rcode == Rcode::NOERROR,
        false => check.rcodes.contains(&rcode),
    };
    if !is_expected {
        return Err(Fault::Rcode(rcode.to_string().into()));
    }
    match check.address {
        Some(address) if !has_address(&response, address) => Err(Fault::NoAddress),
        _ => Ok(rcode.to_string().into()),
    }
}

/// Returns whether an address is in the answer section, under whatever name an alias leads to.
fn has_address(response: &Response<'_>, address: IpAddr) -> bool {
    let mut rdata = Vec::new();
    response.records().filter(|record| record.section == Section::Answer).any(|record| {
        rdata.clear();
        if record.class != Class::IN || record.rdata_into(&mut rdata).is_err() {
            return false;
        }
        match address {
            IpAddr::V4(address) => record.rtype == Type::A && rdata == address.octets(),
            IpAddr::V6(address) => record.rtype == Type::AAAA && rdata == address.octets(),
        }
    })
}
