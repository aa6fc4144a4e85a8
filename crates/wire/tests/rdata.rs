//! Record data: text of every type becomes the octets that BIND makes of it, and wrong text or
//! octets are refused with their reason.

#![allow(clippy::unwrap_used)]

use zonda_wire::rdata::{self, Fault, NameUse, RdataError, Token};
use zonda_wire::reply::Owner;
use zonda_wire::{Class, Name, NameError, Places, Query, Reply, Section, Type};

/// Records of all types, one a line: text, tab, data in hexadecimal.
const TABLE: &str = include_str!("rdata.txt");

/// Returns the lines of [`TABLE`]: type, text of the data, data.
fn table() -> impl Iterator<Item = (Type, &'static str, Vec<u8>)> {
    TABLE.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (text, hex) = line.split_once('\t').unwrap();
        let (rtype, text) = text.split_once(' ').unwrap_or((text, ""));
        (rtype.parse().unwrap(), text, unhex(hex))
    })
}

fn unhex(hex: &str) -> Vec<u8> {
    let digits = hex.trim_matches('-').as_bytes();
    digits
        .chunks(2)
        .map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap())
        .collect()
}

/// Splits at blanks and quotes; parentheses are dropped.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let octets = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < octets.len() {
        if b" ()".contains(&octets[at]) {
            at += 1;
            continue;
        }
        let glued = at > 0 && octets[at - 1] != b' ';
        let quoted = octets[at] == b'"';
        let start = at + usize::from(quoted);
        at = start;
        while at < octets.len() && octets[at] != b'"' && (quoted || octets[at] != b' ') {
            at += 1 + usize::from(octets[at] == b'\\');
        }
        let end = at.min(octets.len());
        tokens.push(Token { text: &octets[start..end], quoted, glued, at: start });
        at += usize::from(quoted);
    }
    tokens
}

fn parse(rtype: Type, text: &str) -> Result<Vec<u8>, rdata::TextError> {
    let origin: Name = "example.org".parse().unwrap();
    let mut out = b"before".to_vec();
    let result = rdata::parse(rtype, &tokens(text), origin.as_wire(), &mut out);
    let octets = out.split_off(6);
    assert_eq!(out, b"before");
    assert!(result.is_ok() || octets.is_empty(), "an error leaves the output as it was");
    result.map(|()| octets)
}

#[test]
fn text_of_every_type_becomes_the_octets_that_bind_makes_of_it() {
    for (rtype, text, octets) in table() {
        assert_eq!(parse(rtype, text).as_deref(), Ok(&octets[..]), "{rtype} {text}");
    }
}

#[test]
fn every_type_of_the_schema_stands_in_the_table() {
    for schema in rdata::schema::all() {
        assert!(table().any(|(rtype, ..)| rtype == schema.rtype), "{}", schema.rtype);
    }
}

#[test]
fn every_data_of_the_table_is_valid_and_may_be_written_as_unknown_data() {
    for (rtype, text, octets) in table() {
        assert_eq!(rdata::validate(rtype, &octets), Ok(()), "{rtype} {text}");
        let hex: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
        let generic = format!("\\# {} {hex}", octets.len());
        assert_eq!(parse(rtype, &generic).as_deref(), Ok(&octets[..]), "{rtype} {generic}");
    }
}

#[test]
fn data_of_every_type_is_printed_as_text_that_means_the_same() {
    for (rtype, text, octets) in table() {
        let printed = rdata::Presentation { rtype, rdata: &octets }.to_string();
        assert_eq!(parse(rtype, &printed).as_deref(), Ok(&octets[..]), "{rtype} {text}");
        let is_generic = printed.starts_with("\\#");
        assert_eq!(is_generic, rdata::schema::of(rtype).is_none(), "{rtype} {text}: {printed}");
    }
}

#[test]
fn text_is_printed_in_one_form() {
    for (rtype, text, printed) in [
        ("SOA", "a. b. 1 2h 15m 2w 1h30m", "a. b. 1 7200 900 1209600 5400"),
        ("TXT", r#"v=spf1 "a b" "\"\\" \200\032"#, r#""v=spf1" "a b" "\"\\" "\200 ""#),
        (
            "LOC",
            "42 21 54 N 71 06 18 W -24m 30m",
            "42 21 54.000 N 71 6 18.000 W -24.00m 30m 10000m 10m",
        ),
        ("LOC", "0 S 0 W -0.01m 0m 0.05m 1.5m", "0 0 0.000 N 0 0 0.000 E -0.01m 0m 0.05m 1m"),
        ("APL", "!1:192.0.2.0/24 2:2001:db8::/32", "!1:192.0.2.0/24 2:2001:db8::/32"),
        ("APL", "", ""),
        ("WKS", "192.0.2.1 TCP smtp domain tcpmux", "192.0.2.1 6 1 25 53"),
        ("CERT", "1 2 RSASHA256 AAAA", "PKIX 2 8 AAAA"),
        ("NSEC", "a. MX A TYPE65280", "a. A MX TYPE65280"),
        (
            "NSEC3",
            "1 0 0 - 2vptu5timamqttgl4luu9kg21e0aor3s",
            "1 0 0 - 2VPTU5TIMAMQTTGL4LUU9KG21E0AOR3S",
        ),
        (
            "RRSIG",
            "A 13 2 60 1700000000 0 7 . AAAA",
            "A 13 2 60 20231114221320 19700101000000 7 . AAAA",
        ),
        (
            "HTTPS",
            "1 . port=443 alpn=h3,h2 mandatory=port,alpn",
            r#"1 . mandatory=alpn,port alpn="h3,h2" port=443"#,
        ),
        (
            "SVCB",
            r#"1 . alpn="a\\,b,c\\\\d" key667="x y""#,
            r#"1 . alpn="a\\,b,c\\\\d" key667="x y""#,
        ),
        ("SVCB", "0 a.", "0 a."),
        ("IPSECKEY", "1 0 2 . AAAA", "1 0 2 . AAAA"),
        ("KEY", "49152 3 1", "49152 3 1"),
        ("ISDN", "1", "\"1\""),
        ("HTTPS", "1 . tls-supported-groups=\"29,23\"", "1 . tls-supported-groups=29,23"),
        // The length of a digest follows from the algorithm under the scheme SIMPLE alone.
        ("ZONEMD", "1 241 1 E3AB02F7 B9C24D4C", "1 241 1 E3AB02F7B9C24D4C"),
        ("ZONEMD", "1 1 241 e3", "1 1 241 E3"),
        ("EUI48", "00-00-5E-00-53-2A", "00-00-5e-00-53-2a"),
        ("TYPE65280", "\\# 3 abcdef", "\\# 3 ABCDEF"),
        ("NULL", "\\# 0", "\\# 0"),
    ] {
        let rtype = rtype.parse().unwrap();
        let octets = parse(rtype, text).unwrap();
        assert_eq!(rdata::Presentation { rtype, rdata: &octets }.to_string(), printed);
    }
}

#[test]
fn data_that_text_cannot_say_is_printed_as_unknown_data() {
    for (rtype, hex, printed) in [
        (Type::A, "0102", "\\# 2 0102"),
        (Type::MX, "000ac00c", "\\# 4 000AC00C"),
        (Type::LOC, "00051613800000008000000000989680", "\\# 16 00051613800000008000000000989680"),
        (Type::WKS, "c0000201060000", "\\# 7 C0000201060000"),
        (Type::APL, "40000000", "\\# 4 40000000"),
        (Type::A6, "7fff00", "\\# 3 7FFF00"),
    ] {
        let octets = unhex(hex);
        assert_eq!(rdata::Presentation { rtype, rdata: &octets }.to_string(), printed);
        if rdata::validate(rtype, &octets).is_ok() {
            assert_eq!(parse(rtype, printed), Ok(octets));
        }
    }
}

#[test]
fn fields_cover_the_data_without_gaps() {
    for (rtype, text, octets) in table() {
        let Some(schema) = rdata::schema::of(rtype) else { continue };
        let mut end = 0;
        for value in rdata::values(schema, &octets) {
            let value = value.unwrap();
            assert_eq!(value.offset, end, "{rtype} {text}");
            end += value.octets.len();
        }
        assert_eq!(end, octets.len(), "{rtype} {text}");
    }
}

#[test]
fn data_cut_short_or_flipped_is_judged_without_a_panic() {
    for (rtype, _, octets) in table() {
        for len in 0..octets.len() {
            let _ = rdata::validate(rtype, &octets[..len]);
            rdata::names(rtype, &octets[..len]).count();
            for flip in [1, 0x80, 0xff] {
                let mut wrong = octets.clone();
                wrong[len] ^= flip;
                let printed = rdata::Presentation { rtype, rdata: &wrong }.to_string();
                if rdata::validate(rtype, &wrong).is_ok() {
                    assert_eq!(parse(rtype, &printed).as_deref(), Ok(&wrong[..]), "{printed}");
                }
                rdata::names(rtype, &wrong).count();
            }
        }
    }
}

#[test]
fn names_inside_data_are_found_with_what_may_be_done_to_them() {
    use rdata::NameUse::{Compressed, Lowercased, Verbatim};
    for (rtype, text, names) in [
        (Type::A, "192.0.2.1", vec![]),
        (Type::MX, "10 mx.", vec![(2, 4, Compressed)]),
        (Type::SOA, "a. b. 1 2 3 4 5", vec![(0, 3, Compressed), (3, 3, Compressed)]),
        (Type::SRV, "1 2 3 a.", vec![(6, 3, Lowercased)]),
        (Type::NAPTR, "1 2 a b c d.", vec![(10, 3, Lowercased)]),
        (Type::NSEC, "a. A", vec![(0, 3, Verbatim)]),
        (Type::HTTPS, "1 a. alpn=h2", vec![(2, 3, Verbatim)]),
        (Type::IPSECKEY, "1 3 2 a.", vec![(3, 3, Verbatim)]),
        (Type::IPSECKEY, "1 1 2 192.0.2.1", vec![]),
        (Type::AMTRELAY, "1 1 3 a.", vec![(2, 3, Verbatim)]),
        (Type::HIP, "2 aa AAAA a. b.", vec![(8, 3, Verbatim), (11, 3, Verbatim)]),
        (Type::A6, "64 ::1 a.", vec![(9, 3, Lowercased)]),
    ] {
        let octets = parse(rtype, text).unwrap();
        let found = rdata::names(rtype, &octets).map(|name| (name.offset, name.len, name.name_use));
        assert_eq!(found.collect::<Vec<_>>(), names, "{rtype} {text}");
    }
}

#[test]
fn canonical_form_has_the_names_of_old_types_in_lower_case_and_nothing_else() {
    for (rtype, text, canonical) in [
        (Type::SOA, "A. B. 1 2 3 4 5", "a. b. 1 2 3 4 5"),
        (Type::MX, "65 MX.Example.", "65 mx.example."),
        (Type::NAPTR, "1 2 S E2U \"\" Host.", "1 2 S E2U \"\" host."),
        (Type::RRSIG, "A 8 2 1 2 3 4 Example. QUJD", "A 8 2 1 2 3 4 example. QUJD"),
        (Type::NSEC, "Next. A", "Next. A"),
        (Type::SVCB, "1 Target. alpn=H2", "1 Target. alpn=H2"),
        (Type::TXT, "ABC", "ABC"),
    ] {
        let mut octets = parse(rtype, text).unwrap();
        rdata::make_canonical(rtype, &mut octets);
        assert_eq!(octets, parse(rtype, canonical).unwrap(), "{rtype} {text}");
    }
}

#[test]
fn relative_names_end_at_the_origin() {
    assert_eq!(parse(Type::MX, "1 a"), parse(Type::MX, "1 a.example.org."));
    assert_eq!(parse(Type::NS, "@"), parse(Type::NS, "example.org."));
}

/// Asserts the field, the fault and the index of the token that an error names.
fn refused(rtype: &str, text: &str, field: &'static str, fault: Fault, token: usize) {
    let error = parse(rtype.parse().unwrap(), text).unwrap_err();
    let expected = rdata::TextError { token, error: RdataError { field, fault } };
    assert_eq!(error, expected, "{rtype} {text}: {error}");
}

#[test]
fn wrong_text_is_refused_with_field_reason_and_token() {
    use rdata::svcb::SvcFault;
    for (rtype, text, field, fault, token) in [
        ("A", "", "ip", Fault::Missing, 0),
        ("A", "192.0.2.256", "ip", Fault::Ipv4, 0),
        ("A", "\"192.0.2.1\"", "ip", Fault::Quoted, 0),
        ("A", "192.0.2.1 192.0.2.2", "", Fault::Unexpected, 1),
        ("AAAA", "2001:db8::1::", "ip", Fault::Ipv6, 0),
        ("MX", "mx.example.", "preference", Fault::Number(65_535), 0),
        ("MX", "10", "exchange", Fault::Missing, 1),
        ("MX", "10 a..b", "exchange", Fault::Name(NameError::EmptyLabel), 1),
        ("SOA", "a. b. 4294967296 1 1 1 1", "serial", Fault::Number(4_294_967_295), 2),
        ("SOA", "a. b. 1 1 1 1x 1", "expire", Fault::Ttl, 5),
        ("TXT", "a \\300", "txts", Fault::Escape, 1),
        ("CAA", "0 is-sue x", "tag", Fault::Tag, 1),
        ("DS", "1 8 2 abc", "digest", Fault::Hex, 3),
        ("DS", "1 8 2 abcd", "digest", Fault::DigestLength(32), 3),
        ("DS", "1 RSA 2 abcd", "alg", Fault::Mnemonic, 1),
        ("ZONEMD", "1 1 1 abcd", "hash", Fault::DigestLength(48), 3),
        ("DNSKEY", "257 3 8 AwEA=", "public_key", Fault::Base64, 3),
        ("RRSIG", "A 8 2 1 20240230000000 1 1 a. AA==", "expiration", Fault::Time, 4),
        ("NSEC", "a. A BB", "types", Fault::Type, 2),
        ("NSEC3", "1 0 0 - xyz", "hash", Fault::Base32, 4),
        ("NXT", "a. TYPE128", "types", Fault::TypeTooHigh, 1),
        ("LOC", "91 N 0 E 0", "location", Fault::Loc, 0),
        ("LOC", "90 0 0.001 N 0 E 0", "location", Fault::Loc, 3),
        ("APL", "3:1.2.3.4/5", "prefixes", Fault::Prefix, 0),
        ("EUI48", "00-00-5e-00-53", "address", Fault::HexPairs(6), 0),
        ("NID", "1 14:4fff:ff20", "node_id", Fault::NodeId, 1),
        ("IPSECKEY", "1 4 2 . AAAA", "gateway", Fault::GatewayType, 3),
        ("IPSECKEY", "1 0 2 a. AAAA", "gateway", Fault::NoGateway, 3),
        ("HTTPS", "1 . alpn=h2 alpn=h3", "svc_params", Fault::Svc(SvcFault::Order), 3),
        ("HTTPS", "1 . alpn", "svc_params", Fault::Svc(SvcFault::Value(1)), 2),
        ("HTTPS", "1 . tls-supported-groups=1,1", "svc_params", Fault::Svc(SvcFault::Value(9)), 2),
        ("HTTPS", "1 . Port=1", "svc_params", Fault::Svc(SvcFault::Key), 2),
        ("HTTPS", "1 . key065=1", "svc_params", Fault::Svc(SvcFault::Key), 2),
        ("HTTPS", "1 . mandatory=port", "svc_params", Fault::Svc(SvcFault::Mandatory), 2),
        ("HTTPS", "1 . no-default-alpn", "svc_params", Fault::Svc(SvcFault::NoAlpn), 2),
        ("HTTPS", "1 . ipv4hint=1.2.3", "svc_params", Fault::Svc(SvcFault::Value(4)), 2),
        ("NULL", "abc", "", Fault::OpaqueType, 0),
        ("TYPE65280", "abc", "", Fault::OpaqueType, 0),
        ("TYPE65280", "\\# 2 abcdef", "", Fault::Generic, 2),
        ("TYPE65280", "\\# 3 ab", "", Fault::Generic, 2),
        ("TYPE65280", "\\# 0 ab", "", Fault::Generic, 1),
        ("TYPE65280", "\\# 65536 ab", "", Fault::Number(65_535), 1),
        ("A", "\\# 3 c00002", "ip", Fault::Truncated, 2),
        ("A", "\\# 5 c000020101", "", Fault::Trailing, 2),
        ("NS", "\\# 2 c00c", "dname", Fault::Name(NameError::Malformed), 2),
    ] {
        refused(rtype, text, field, fault, token);
    }
}

#[test]
fn strings_longer_than_255_octets_are_refused_where_a_length_octet_stands() {
    let long = "x".repeat(256);
    refused("TXT", &long, "txts", Fault::StringTooLong, 0);
    assert_eq!(parse(Type::TXT, &long[..255]).unwrap().len(), 256);
    assert_eq!(parse(Type::URI, &format!("1 1 \"{long}\"")).unwrap().len(), 260);
}

#[test]
fn data_longer_than_65535_octets_is_refused() {
    let long = "x".repeat(65_532);
    refused("URI", &format!("1 1 \"{long}\""), "", Fault::TooLong, 2);
    assert_eq!(parse(Type::URI, &format!("1 1 \"{}\"", &long[1..])).unwrap().len(), 65_535);
}

#[test]
fn replies_compress_exactly_the_names_that_the_schema_marks() {
    let owner = "owner.test".parse::<Name>().unwrap();
    let header = [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    let question = [&header, owner.as_wire(), &[0, 1, 0, 1]].concat();
    let query = Query::parse(&question).unwrap();
    for (rtype, text, octets) in table() {
        let mut buffer = question.clone();
        buffer.resize(4096, 0);
        let mut places = Places::default();
        let mut reply = Reply::new(&mut buffer, &query, 4096, &mut places);
        let mut write = || {
            let (before, fixed) = (reply.len(), (rtype, Class::IN, 1));
            reply.record(Section::Answer, Owner::Name(owner.as_wire()), fixed, &octets).unwrap();
            reply.len() - before
        };
        write();
        let second = write() - 2 - 10; // a pointer to the question; type, class, TTL, length
        let compressed = rdata::names(rtype, &octets).filter(|n| n.name_use == NameUse::Compressed);
        let saved: usize = compressed.map(|name| name.len.saturating_sub(2)).sum();
        assert_eq!(second, octets.len() - saved, "{rtype} {text}");
    }
}
