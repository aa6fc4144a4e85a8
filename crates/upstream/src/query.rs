//! The query that an upstream gets.
//!
//! A query holds one question, its letters in mixed case, RD, perhaps CD, and an OPT record with
//! the upstream's cookies and the options that are configured. Nothing of the client's own message
//! is passed on, so that no option of it, such as its subnet, can leave.
//!
//! Deliberately absent: ids and randomness, which are arguments.

use crate::capability::Cookies;
use crate::check::SentQuery;
use crate::exchange::Form;
use zonda_wire::query::{HEADER_BYTES, flag, option};
use zonda_wire::{Class, Type};

/// The largest UDP answer that is asked for unless something else is wished, octets: it fits one
/// packet nearly everywhere (rfc9715).
pub const UDP_BYTES: u16 = 1232;

/// Octets of an OPT record without options.
const OPT_BYTES: usize = 11;
/// Octets of an option's code and length.
const OPTION_HEADER_BYTES: usize = 4;
/// Multiple to which queries are padded, octets (rfc8467#4.1).
const PADDED_BYTES: usize = 128;

/// A question for an upstream.
#[derive(Clone, Copy, Debug)]
pub struct Question<'n> {
    /// The name, uncompressed.
    pub name: &'n [u8],
    /// Type of the question.
    pub qtype: Type,
    /// Class of the question.
    pub qclass: Class,
    /// Whether DNSSEC records are wanted (rfc3225).
    pub dnssec_ok: bool,
    /// Whether data need not be validated (rfc4035#3.2.2).
    pub checking_disabled: bool,
}

/// A random bit for each octet of a name: if it is set and the octet a letter, its case changes.
pub type CaseBits = [u64; 4];

impl Question<'_> {
    /// Writes the query, which asks for UDP answers of up to `udp_bytes` octets, over what is in
    /// `out`. Without EDNS, that, DO and the cookies stay out.
    pub fn write(
        &self,
        (id, form): (u16, Form),
        case: &CaseBits,
        cookies: &Cookies,
        udp_bytes: u16,
        out: &mut Vec<u8>,
    ) {
        let flags = if self.checking_disabled { flag::RD | flag::CD } else { flag::RD };
        out.clear();
        put(out, &[id, flags, 1, 0, 0, u16::from(form.edns)]);
        out.extend_from_slice(self.name);
        if form.mixed_case {
            mix_case(&mut out[HEADER_BYTES..], case);
        }
        put(out, &[self.qtype.0, self.qclass.0]);
        if form.edns {
            self.write_opt(cookies, udp_bytes, out);
        }
    }

    /// Appends an OPT record with a COOKIE option (rfc6891#6.1.2, rfc7873#4).
    fn write_opt(&self, cookies: &Cookies, udp_bytes: u16, out: &mut Vec<u8>) {
        let flags = if self.dnssec_ok { 0x8000 } else { 0 };
        let (client, server) = (cookies.client(), cookies.server());
        let cookie_len = (client.len() + server.len()) as u16; // at most 40
        out.push(0); // the root's name
        put(out, &[Type::OPT.0, udp_bytes, 0, flags, 4 + cookie_len, option::COOKIE, cookie_len]);
        out.extend_from_slice(&client);
        out.extend_from_slice(server);
    }
}

/// Returns what an answer to a query written by [`Question::write`] is checked against.
#[must_use]
pub fn sent(query: &[u8], form: Form, stream: bool) -> SentQuery<'_> {
    let end = question_end(query).min(query.len());
    let cookie = if form.edns { cookie(&query[end..]) } else { None };
    SentQuery {
        id: query.first_chunk().map_or(0, |id| u16::from_be_bytes(*id)),
        question: query.get(HEADER_BYTES..end).unwrap_or_default(),
        mixed_case: form.mixed_case,
        edns: form.edns,
        cookie: cookie.map(|(client, _)| client),
        expects_cookie: cookie.is_some_and(|(_, server_len)| server_len > 0),
        client_subnet: if form.edns { client_subnet(&query[end..]) } else { &[] },
        stream,
    }
}

/// Returns where the question of a query ends.
fn question_end(query: &[u8]) -> usize {
    let mut at = HEADER_BYTES;
    while let Some(&len) = query.get(at).filter(|len| **len != 0) {
        at += 1 + usize::from(len);
    }
    at + 5 // the root, type and class
}

/// Returns the client cookie in an OPT record, of which it is the first option, and how long the
/// server cookie is behind it.
fn cookie(opt: &[u8]) -> Option<([u8; 8], usize)> {
    let (header, data) = opt.get(OPT_BYTES..)?.split_first_chunk::<OPTION_HEADER_BYTES>()?;
    let len = usize::from(u16::from_be_bytes([header[2], header[3]]));
    Some((*data.first_chunk()?, len.saturating_sub(8)))
}

/// Returns the data of the CLIENT-SUBNET option in an OPT record; none without one.
fn client_subnet(opt: &[u8]) -> &[u8] {
    let mut rest = opt.get(OPT_BYTES..).unwrap_or_default();
    while let Some((header, tail)) = rest.split_first_chunk::<OPTION_HEADER_BYTES>() {
        let len = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let Some((data, behind)) = tail.split_at_checked(len) else { break };
        if header[..2] == option::CLIENT_SUBNET.to_be_bytes() {
            return data;
        }
        rest = behind;
    }
    &[]
}

/// Sets the bit that asks whether the answer was validated (rfc6840#5.7).
pub fn want_authentic(query: &mut [u8]) {
    query[3] |= flag::AD as u8; // the lower half of the flags
}

/// Appends an option to a query whose last record is OPT.
pub fn append_option(query: &mut Vec<u8>, code: u16, data: &[u8]) {
    put(query, &[code, data.len() as u16]); // the options of a query are short
    query.extend_from_slice(data);
    let len_at = question_end(query) + OPT_BYTES - 2;
    let len = (query.len() - len_at - 2) as u16;
    query[len_at..len_at + 2].copy_from_slice(&len.to_be_bytes());
}

/// Pads a query whose last record is OPT, so that its length reveals nothing (rfc8467#4.1). Nothing
/// can be appended behind it.
pub fn pad(query: &mut Vec<u8>) {
    let unpadded = query.len() + OPTION_HEADER_BYTES;
    let padding = unpadded.next_multiple_of(PADDED_BYTES) - unpadded;
    append_option(query, option::PADDING, &[0; PADDED_BYTES][..padding]);
}

/// Appends numbers of two octets.
fn put(out: &mut Vec<u8>, words: &[u16]) {
    words.iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
}

/// Changes the case of the letters whose bits are set; length octets are no letters.
fn mix_case(name: &mut [u8], case: &CaseBits) {
    for (part, &bits) in name.chunks_mut(64).zip(case) {
        for (index, octet) in part.iter_mut().enumerate() {
            let bit = (bits >> index) as u8 & 1;
            *octet ^= (bit & u8::from(octet.is_ascii_alphabetic())) << 5;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::check::{Doubt, Verdict, check};
    use zonda_wire::query::flag::QR;
    use zonda_wire::{Message, Name, Query};

    const FORM: Form = Form { over_tcp: false, edns: true, mixed_case: true };

    /// Returns a query for `www.example AAAA` in a form, as octets.
    fn query(form: Form, server_cookie: &[u8]) -> Vec<u8> {
        let name: Name = "www.example".parse().unwrap();
        let mut cookies = Cookies::new(*b"client01");
        cookies.remember(server_cookie);
        let mut out = b"something else".to_vec();
        question(&name).write((7, form), &[0b1010_1010, 0, 0, 0], &cookies, 1400, &mut out);
        out
    }

    fn question(name: &Name) -> Question<'_> {
        Question {
            name: name.as_wire(),
            qtype: Type::AAAA,
            qclass: Class::IN,
            dnssec_ok: true,
            checking_disabled: false,
        }
    }

    #[test]
    fn a_query_has_mixed_case_do_and_both_cookies() {
        let octets = query(FORM, b"server-8");
        let read = Message::parse(&octets).unwrap();
        assert_eq!((read.id, read.flags), (7, flag::RD));
        assert_eq!(read.questions[0].name.to_string(), "WwW.ExAmple.");
        let opt = read.opt.unwrap();
        assert_eq!((opt.udp_bytes, opt.dnssec_ok()), (1400, true));
        assert_eq!(opt.option(option::COOKIE), Some(&b"client01server-8"[..]));
        assert!(Query::parse(&octets).is_ok());
    }

    #[test]
    fn options_are_appended_and_the_length_is_hidden() {
        let mut octets = query(FORM, b"server-8");
        append_option(&mut octets, option::KEEPALIVE, &[]);
        pad(&mut octets);
        assert_eq!(octets.len(), 128);
        let read = Message::parse(&octets).unwrap();
        let opt = read.opt.unwrap();
        assert_eq!(opt.option(option::COOKIE), Some(&b"client01server-8"[..]));
        assert_eq!(opt.option(option::KEEPALIVE), Some(&[][..]));
        assert!(opt.option(option::PADDING).unwrap().iter().all(|octet| *octet == 0));
    }

    #[test]
    fn the_client_subnet_of_a_query_is_what_its_answer_is_checked_against() {
        let mut octets = query(FORM, b"");
        append_option(&mut octets, 65001, &[0, 8, 0, 1, 7]);
        assert!(sent(&octets, FORM, false).client_subnet.is_empty());
        append_option(&mut octets, option::CLIENT_SUBNET, &[0, 1, 8, 0, 192]);
        assert_eq!(sent(&octets, FORM, false).client_subnet, [0, 1, 8, 0, 192]);
        let plain = Form { edns: false, ..FORM };
        assert!(sent(&octets, plain, false).client_subnet.is_empty());
    }

    #[test]
    fn what_an_upstream_does_not_understand_stays_out() {
        let plain = Form { edns: false, mixed_case: false, ..FORM };
        let read = Message::parse(&query(plain, b"")).unwrap();
        assert_eq!(read.questions[0].name.to_string(), "www.example.");
        assert_eq!(read.opt, None);
    }

    #[test]
    fn an_answer_is_checked_against_what_was_sent() {
        let name: Name = "www.example".parse().unwrap();
        for (server_cookie, expects_cookie) in [(&b""[..], false), (b"server-8", true)] {
            let octets = query(FORM, server_cookie);
            let sent = sent(&octets, FORM, false);
            assert_eq!(sent.question.len(), name.as_wire().len() + 4);
            assert_eq!((sent.id, sent.expects_cookie), (7, expects_cookie));
            assert_eq!(sent.cookie, Some(*b"client01"));
            let mut answer = octets.clone();
            answer[2] |= (QR >> 8) as u8;
            assert!(matches!(check(&sent, &answer), Verdict::Accept(_)));
            answer.truncate(12 + sent.question.len());
            answer[11] = 0; // no OPT
            answer[13] ^= 0x20;
            assert!(matches!(check(&sent, &answer), Verdict::Doubt(Doubt::Case)));
        }
        let plain = Form { edns: false, ..FORM };
        let octets = query(plain, b"server-8");
        let sent = sent(&octets, plain, true);
        assert_eq!((sent.cookie, sent.expects_cookie, sent.stream), (None, false, true));
    }
}
