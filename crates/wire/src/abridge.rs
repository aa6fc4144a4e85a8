//! Queries without what no reply depends on, for those that have to wait.

use crate::client::SubnetOption;
use crate::name::NAME_BYTES_MAX;
use crate::query::{HEADER_BYTES, Query, option};

/// Octets of an OPT record without options (rfc6891#6.1.2).
const OPT_BYTES: usize = 11;
/// Octets of an option's code and length.
const OPTION_HEADER: usize = 4;
/// The longest COOKIE option's data (rfc7873#4).
const COOKIE_BYTES_MAX: usize = 40;

/// Octets of the longest query that [`Query::abridge`] makes without other options.
pub const ABRIDGED_BYTES_MAX: usize = HEADER_BYTES
    + NAME_BYTES_MAX
    + 4
    + OPT_BYTES
    + (OPTION_HEADER + COOKIE_BYTES_MAX)
    + (OPTION_HEADER + SubnetOption::BYTES_MAX)
    + 4 * OPTION_HEADER;

impl Query {
    /// Returns the message that this query was read from, without what no reply depends on: header,
    /// question, and the OPT record with the cookie, the client's network (rfc7871) unless this
    /// query does not say where it lies, and that NSID, keepalive, the reason of the answer and the
    /// time until the zone expires are asked for.
    ///
    /// Of the other options, padding is left out (rfc7830); of the rest those stay that fit into
    /// `others_max` octets. All other records are dropped.
    #[must_use]
    pub fn abridge(&self, message: &[u8], others_max: usize) -> Vec<u8> {
        let question = message.get(..self.question_end()).unwrap_or(message);
        let mut short = Vec::with_capacity(ABRIDGED_BYTES_MAX + others_max.min(message.len()));
        short.extend_from_slice(question);
        if let Some(counts) = short.get_mut(6..HEADER_BYTES) {
            counts.copy_from_slice(&[0, 0, 0, 0, 0, u8::from(self.edns.is_some())]);
        }
        let Some(edns) = self.edns else { return short };
        short.extend([0, 0, 41]);
        short.extend(edns.udp_bytes.to_be_bytes());
        short.extend([0, edns.version, u8::from(edns.dnssec_ok) << 7, 0, 0, 0]);
        let start = short.len();
        let (at, len) = (usize::from(edns.cookie.0), usize::from(edns.cookie.1));
        if let Some(cookie) = message.get(at..at + len).filter(|cookie| !cookie.is_empty()) {
            push_option(&mut short, option::COOKIE, cookie);
        }
        for (code, is_asked_for) in [
            (option::NSID, edns.nsid),
            (option::KEEPALIVE, edns.keepalive),
            (option::EDE, edns.reason),
            (option::EXPIRE, edns.expire),
        ] {
            if is_asked_for {
                push_option(&mut short, code, &[]);
            }
        }
        if let Some(subnet) = self.subnet_option(message) {
            push_option(&mut short, option::CLIENT_SUBNET, subnet.data());
        }
        self.push_others(message, others_max, &mut short);
        let len = (short.len() - start) as u16; // at most what the message had
        short[start - 2..start].copy_from_slice(&len.to_be_bytes());
        short
    }

    /// Appends as many other options as fit.
    fn push_others(&self, message: &[u8], mut room: usize, short: &mut Vec<u8>) {
        const HAVE_OWN_PLACE: [u16; 6] = [
            option::COOKIE,
            option::NSID,
            option::KEEPALIVE,
            option::EDE,
            option::CLIENT_SUBNET,
            option::PADDING, // which has none
        ];
        for (code, data) in self.options(message) {
            let bytes = OPTION_HEADER + data.len();
            let asks_for_expiry = code == option::EXPIRE && data.is_empty(); // has one as well
            if !HAVE_OWN_PLACE.contains(&code) && !asks_for_expiry && bytes <= room {
                push_option(short, code, data);
                room -= bytes;
            }
        }
    }
}

/// Appends an option whose data come from a message.
fn push_option(message: &mut Vec<u8>, code: u16, data: &[u8]) {
    message.extend(code.to_be_bytes());
    message.extend((data.len() as u16).to_be_bytes());
    message.extend_from_slice(data);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Type;

    /// Options of an OPT record.
    fn options(all: &[(u16, &[u8])]) -> Vec<u8> {
        let mut octets = Vec::new();
        all.iter().for_each(|(code, data)| push_option(&mut octets, *code, data));
        octets
    }

    /// Returns a query for a name, with another record and an OPT record with these options.
    fn message(name: &[u8], options: &[u8]) -> Vec<u8> {
        let header = b"\x12\x34\x01\x10\0\x01\0\0\0\0\0\x02";
        let other = b"\xc0\x0c\0\x10\0\x01\0\0\0\0\0\x02\x01x";
        let opt = b"\0\0\x29\x04\xd0\x07\0\x80\x01";
        let len = (options.len() as u16).to_be_bytes();
        [&header[..], name, &[0, 28, 0, 1], other, opt, &len, options].concat()
    }

    #[test]
    fn padding_and_other_records_go_and_what_replies_depend_on_stays() {
        let (cookie, subnet) = ([7; 24], [0, 1, 24, 0, 192, 0, 2]);
        let long = options(&[(12, &[0; 400]), (10, &cookie), (11, &[]), (3, &[]), (8, &subnet)]);
        let message = message(b"\x01A\x07example\0", &long);
        let query = Query::parse(&message).unwrap();
        let short = query.abridge(&message, 0);
        let read = Query::parse(&short).unwrap();
        assert_eq!(short[..query.question_end()][12..], message[..query.question_end()][12..]);
        assert_eq!((read.qtype, read.flags), (Type::AAAA, query.flags));
        let (edns, had) = (read.edns.unwrap(), query.edns.unwrap());
        assert_eq!((edns.udp_bytes, edns.version, edns.dnssec_ok), (1232, 0, true));
        assert!(edns.nsid && edns.keepalive);
        assert_eq!(read.cookie(&short), query.cookie(&message));
        assert_eq!(edns.cookie.1, had.cookie.1);
        assert_eq!(read.client_subnet(&short), query.client_subnet(&message));
        assert_eq!(short.len(), query.question_end() + 11 + 28 + 4 + 4 + 11);
    }

    #[test]
    fn the_longest_has_a_name_of_255_octets_a_cookie_of_40_and_an_ipv6_address() {
        let label = [&[62][..], &[b'a'; 62]].concat();
        let name = [label.repeat(4), vec![1, b'a', 0]].concat();
        assert_eq!(name.len(), NAME_BYTES_MAX);
        let subnet = [&[0, 2, 128, 0][..], &[0x20; 16]].concat();
        let longest = [
            (10, &[7; 40][..]),
            (11, &[]),
            (3, b"x"),
            (15, &[]),
            (9, &[]),
            (12, b""),
            (8, &subnet),
        ];
        let message = message(&name, &options(&longest));
        let short = Query::parse(&message).unwrap().abridge(&message, 0);
        assert_eq!(short.len(), ABRIDGED_BYTES_MAX);
    }

    #[test]
    fn a_query_that_asks_when_the_zone_expires_still_does_so_however_few_options_are_kept() {
        let message = message(b"\0", &options(&[(12, &[0; 400]), (9, &[])]));
        for others_max in [0, 100] {
            let short = Query::parse(&message).unwrap().abridge(&message, others_max);
            let read = Query::parse(&short).unwrap();
            assert!(read.edns.unwrap().expire, "{others_max}");
            let codes: Vec<u16> = read.options(&short).map(|(code, _)| code).collect();
            assert_eq!(codes, [9], "{others_max}");
        }
    }

    #[test]
    fn an_option_expire_with_data_asks_for_nothing_and_is_kept_as_other_options_are() {
        let message = message(b"\0", &options(&[(9, &[0, 0, 0, 1])]));
        let query = Query::parse(&message).unwrap();
        let codes = |short: Vec<u8>| {
            let read = Query::parse(&short).unwrap();
            assert!(!read.edns.unwrap().expire);
            read.options(&short).map(|(code, _)| code).collect::<Vec<u16>>()
        };
        assert_eq!(codes(query.abridge(&message, 0)), [0; 0]);
        assert_eq!(codes(query.abridge(&message, 100)), [9]);
    }

    #[test]
    fn other_options_are_kept_while_they_fit_and_the_client_subnet_always() {
        let subnet = [0, 1, 24, 0, 192, 0, 2];
        let long = options(&[(65_001, &[1; 80]), (65_002, &[2; 80]), (65_003, b"x"), (8, &subnet)]);
        let message = message(b"\0", &long);
        let short = Query::parse(&message).unwrap().abridge(&message, 100);
        let read = Query::parse(&short).unwrap();
        let codes: Vec<u16> = read.options(&short).map(|(code, _)| code).collect();
        assert_eq!(codes, [8, 65_001, 65_003]);
    }

    #[test]
    fn a_client_subnet_that_the_query_does_not_know_of_is_left_out() {
        let subnet = [0, 1, 24, 0, 192, 0, 2];
        let message = message(b"\0", &options(&[(8, &subnet), (65_003, b"x")]));
        let mut query = Query::parse(&message).unwrap();
        query.edns.as_mut().unwrap().subnet_at = 0;
        let short = query.abridge(&message, 100);
        let read = Query::parse(&short).unwrap();
        let codes: Vec<u16> = read.options(&short).map(|(code, _)| code).collect();
        assert_eq!((codes, read.client_subnet(&short)), (vec![65_003], None));
    }

    #[test]
    fn a_query_without_edns_stays_one() {
        let plain = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\x01\x01a\0\0\x01\0\x01\
                      \xc0\x0c\0\x10\0\x01\0\0\0\0\0\x02\x01x";
        let short = Query::parse(plain).unwrap().abridge(plain, 4096);
        assert_eq!(short, b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01");
    }
}
