//! The data of records as PowerDNS writes them.
//!
//! That is the form of master files with complete names, and with hexadecimal digits in lower case,
//! sizes of LOC with two decimals, and service parameters without quotes that are not needed.
//! Clients compare it with what they want, so that another form would have them change the same
//! records for ever.

use super::api_error::ApiError;
use std::fmt::Write as _;
use zonda_wire::rdata::print::is_expressible;
use zonda_wire::rdata::string::unescape_into;
use zonda_wire::rdata::{self, Fault, FieldText, Kind, Presentation, Token};
use zonda_wire::rdata::{schema, tokens, values};
use zonda_wire::{Name, Type};

/// Two names, in wire form, that end what is written without a final dot.
const ORIGINS: [&[u8]; 2] = [&[0], b"\x07invalid\0"];

/// Octets of one string of a TXT record at most.
const STRING_MAX: usize = u8::MAX as usize;

/// The data of a record as text.
pub fn to_text(rtype: Type, rdata: &[u8]) -> String {
    let known = schema::of(rtype).filter(|_| is_expressible(rtype, rdata));
    let Some(schema) = known else {
        return Presentation { rtype, rdata }.to_string().to_ascii_lowercase(); // `\# 2 abcd`
    };
    let mut text = String::new();
    for value in values(schema, rdata).map_while(Result::ok) {
        if !text.is_empty() && !text.ends_with(' ') {
            text.push(' ');
        }
        let start = text.len();
        let _ = write!(text, "{}", FieldText { value, rdata }); // a string takes everything
        match value.field.kind {
            Kind::Hex | Kind::HexByLength => text[start..].make_ascii_lowercase(),
            Kind::Loc => {
                let sizes = with_decimals(&text[start..]);
                text.replace_range(start.., &sizes);
            }
            Kind::SvcParams => {
                let params = without_quotes(&text[start..]);
                text.replace_range(start.., &params);
            }
            _ => {}
        }
    }
    text.truncate(text.trim_end_matches(' ').len()); // an optional field without words
    text
}

/// A location whose sizes have two decimals.
fn with_decimals(location: &str) -> String {
    let words = location.split(' ').map(|word| match word.strip_suffix('m') {
        Some(number) if !number.contains('.') => format!("{number}.00m"),
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Service parameters without the quotes around values that need none.
fn without_quotes(params: &str) -> String {
    let Some(tokens) = tokens(params.as_bytes()) else { return params.to_owned() };
    let mut text = String::with_capacity(params.len());
    for Token { text: word, quoted, glued, .. } in tokens {
        let Ok(word) = std::str::from_utf8(word) else { return params.to_owned() };
        if !text.is_empty() && !glued {
            text.push(' ');
        }
        let is_plain = !word.is_empty()
            && word.bytes().all(|it| it.is_ascii_graphic() && !b"\"\\;()".contains(&it));
        match quoted && !is_plain {
            true => _ = write!(text, "\"{word}\""), // a string takes everything
            false => text.push_str(word),
        }
    }
    text
}

/// Reads the data of a record.
///
/// # Errors
/// When the text is not that of a record of the type, has a name without its final dot, or text
/// without quotes.
pub fn from_text(owner: &Name, rtype: Type, text: &str) -> Result<Vec<u8>, ApiError> {
    let refuse = |why: String| ApiError::refused(format!("Record {owner}/{rtype} '{text}': {why}"));
    let tokens = tokens(text.as_bytes()).ok_or_else(|| refuse("a quote is not closed".into()))?;
    if matches!(rtype, Type::TXT | Type::SPF) && tokens.iter().any(|it| it.text.len() > STRING_MAX)
    {
        let rdata = split_strings(&tokens).map_err(|fault| refuse(fault.to_string()))?;
        return match is_quoted(rtype, &tokens) {
            true => Ok(rdata),
            false => Err(refuse("text needs quotes around it".to_owned())),
        };
    }
    let read = |origin: &[u8]| {
        let mut rdata = Vec::new();
        let parsed = rdata::parse(rtype, &tokens, origin, &mut rdata);
        parsed.map(|()| rdata).map_err(|wrong| match wrong.error.field {
            "" => refuse(wrong.error.fault.to_string()),
            field => refuse(format!("{field}: {}", wrong.error.fault)),
        })
    };
    let [rdata, other] = ORIGINS.map(read);
    let (rdata, other) = (rdata?, other?);
    if rdata != other || !is_quoted(rtype, &tokens) {
        let parsed = to_text(rtype, &rdata);
        return Err(refuse(format!("Not in expected format (parsed as '{parsed}')")));
    }
    Ok(rdata)
}

/// The form in which the data of records is compared (rfc4034#6.2).
pub fn comparable(rtype: Type, rdata: &[u8]) -> Vec<u8> {
    let mut form = rdata.to_vec();
    rdata::make_canonical(rtype, &mut form);
    form
}

/// Whether the data of two records is the same but for the case of names.
pub fn is_same(rtype: Type, one: &[u8], two: &[u8]) -> bool {
    one == two
        || (one.eq_ignore_ascii_case(two) && comparable(rtype, one) == comparable(rtype, two))
}

/// The strings of text, those split that are longer than one may be, as clients leave that to
/// PowerDNS.
fn split_strings(tokens: &[Token<'_>]) -> Result<Vec<u8>, Fault> {
    let (mut rdata, mut string) = (Vec::new(), Vec::new());
    for token in tokens {
        string.clear();
        unescape_into(token.text, &mut string)?;
        let is_empty = string.is_empty();
        for part in string.chunks(STRING_MAX) {
            rdata.push(part.len() as u8); // at most 255
            rdata.extend_from_slice(part);
        }
        if is_empty {
            rdata.push(0);
        }
    }
    match rdata.len() > usize::from(u16::MAX) {
        true => Err(Fault::TooLong),
        false => Ok(rdata),
    }
}

/// Whether the words that are text stand in quotes: without them, blanks would make several texts
/// of one.
fn is_quoted(rtype: Type, tokens: &[Token<'_>]) -> bool {
    let Some(schema) = schema::of(rtype) else { return true };
    let is_generic = tokens.first().is_some_and(|it| it.text == br"\#" && !it.quoted);
    let mut tokens = tokens.iter();
    is_generic
        || schema.fields.iter().all(|field| match field.kind {
            Kind::CharStrings | Kind::OptionalCharString => tokens.all(|token| token.quoted),
            Kind::CharString | Kind::Text => tokens.next().is_none_or(|token| token.quoted),
            // Fields of one word: no type has text behind a field of several.
            _ => {
                tokens.next();
                true
            }
        })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// What becomes of the text of a record.
    fn read(rtype: Type, text: &str) -> Result<String, String> {
        let owner: Name = "a.test".parse().unwrap();
        let read = from_text(&owner, rtype, text);
        read.map(|rdata| to_text(rtype, &rdata)).map_err(|error| error.text)
    }

    #[test]
    fn records_that_powerdns_has_written_read_back_as_the_same_text() {
        for (rtype, text) in [
            (Type::A, "192.0.2.1"),
            (Type::AAAA, "2001:db8::1"),
            (Type::MX, "10 MAIL.example.org."),
            (Type::ALIAS, "www.Example.net."),
            (Type::SRV, "1 2 3 ."),
            (Type::TXT, r#""a b" "c""#),
            (Type::TXT, r#""""#),
            (Type::TXT, r#""v=DKIM1; p=\"x\"""#),
            (Type::CAA, r#"0 issue ";""#),
            (Type::CAA, r#"128 iodef "mailto:a@b""#),
            (Type::SSHFP, "1 1 abcdef0123456789abcdef0123456789abcdef01"),
            (Type::TLSA, "3 1 1 abcd"),
            (Type::DS, "60485 5 1 2bb183af5f22588179a53b0a98631fad1a292118"),
            (Type::LOC, "51 56 0.123 N 5 54 0.000 E 4.00m 1.00m 10000.00m 10.00m"),
            (Type::NAPTR, r#"100 10 "U" "E2U+sip" "!^.*$!sip:info@example.com!" ."#),
            (Type::HTTPS, "1 . alpn=h2,h3 port=8443"),
            (Type::HTTPS, "0 foo.example."),
            (Type::SVCB, "1 foo.example. ipv4hint=192.0.2.1,192.0.2.2"),
            (Type::HINFO, r#""i386" "Linux""#),
            (Type::NSEC3PARAM, "1 0 0 -"),
            (Type::NSEC3PARAM, "1 0 0 abcd"),
            (Type::URI, r#"10 1 "https://example.org""#),
            (Type::CERT, "PGP 2 3 AAAA"),
            (Type(65280), r"\# 2 abcd"),
        ] {
            assert_eq!(read(rtype, text).as_deref(), Ok(text), "{rtype}");
        }
    }

    #[test]
    fn other_spellings_of_the_same_data_become_the_one_that_is_shown() {
        for (rtype, text, expected) in [
            (Type::AAAA, "2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
            (Type::TXT, r#""a\;b""#, r#""a;b""#),
            (Type::TXT, r#""\065""#, r#""A""#),
            (Type::TLSA, "3 1 1 AB CD", "3 1 1 abcd"),
            (Type::HTTPS, r#"1 . alpn="h2,h3" port="8443""#, "1 . alpn=h2,h3 port=8443"),
            (Type::A, r"\# 4 C0000201", "192.0.2.1"),
        ] {
            assert_eq!(read(rtype, text).as_deref(), Ok(expected), "{rtype} {text}");
        }
    }

    #[test]
    fn names_need_their_final_dot_and_text_its_quotes() {
        for (rtype, text, parsed) in [
            (Type::MX, "10 mail.example.org", "10 mail.example.org."),
            (Type::MX, "10 @", "10 ."),
            (Type::NS, "ns", "ns."),
            (Type::SOA, "a. b 1 2 3 4 5", "a. b. 1 2 3 4 5"),
            (Type::TXT, "nonsense", r#""nonsense""#),
            (Type::TXT, r#""a" b"#, r#""a" "b""#),
            (Type::SPF, "v=spf1 -all", r#""v=spf1" "-all""#),
            (Type::CAA, "0 issue letsencrypt.org", r#"0 issue "letsencrypt.org""#),
            (Type::HINFO, "i386 Linux", r#""i386" "Linux""#),
        ] {
            let expected = format!(
                "Record a.test./{rtype} '{text}': Not in expected format (parsed as '{parsed}')"
            );
            assert_eq!(read(rtype, text), Err(expected));
        }
    }

    #[test]
    fn data_is_compared_without_the_case_of_its_names_and_with_that_of_text() {
        let owner: Name = "a.test".parse().unwrap();
        for (rtype, one, two, expected) in [
            (Type::MX, "10 MAIL.example.org.", "10 mail.Example.org.", true),
            (Type::MX, "10 mail.example.org.", "20 mail.example.org.", false),
            (Type::TXT, r#""A""#, r#""a""#, false),
            (Type::CNAME, "a.test.", "b.test.", false),
        ] {
            let [left, right] = [one, two].map(|text| from_text(&owner, rtype, text).unwrap());
            assert_eq!(is_same(rtype, &left, &right), expected, "{rtype} {one} {two}");
        }
    }

    #[test]
    fn a_string_of_text_that_is_too_long_for_one_is_split() {
        let [long, first, rest] = [600, 255, 90].map(|len| "x".repeat(len));
        let expected = format!("\"{first}\" \"{first}\" \"{rest}\" \"\"");
        assert_eq!(read(Type::TXT, &format!("\"{long}\" \"\"")), Ok(expected));
        assert!(read(Type::TXT, &long).unwrap_err().ends_with("text needs quotes around it"));
        assert!(read(Type::TXT, &format!("\"{}\"", "x".repeat(66_000))).is_err());
        assert!(read(Type::HINFO, &format!("\"{long}\" \"\"")).is_err());
    }

    #[test]
    fn what_is_wrong_with_the_data_of_a_record_is_said() {
        for (rtype, text) in [
            (Type::A, "nonsense"),
            (Type::A, ""),
            (Type::MX, "10"),
            (Type::MX, "10 a. b."),
            (Type::MX, "70000 a."),
            (Type::TXT, r#""open"#),
            (Type::TXT, ""),
        ] {
            let error = read(rtype, text).unwrap_err();
            let begins = format!("Record a.test./{rtype} '{text}': ");
            assert!(error.starts_with(&begins) && error.len() > begins.len(), "{error}");
        }
    }
}
