//! Record data from text: the words of a record become the octets of its schema's fields.

use super::error::{Fault, RdataError, TextError};
use super::schema::{self, Field, Kind};
use super::{address, binary, bitmap, gateway, loc, number, string, svcb, wire};
use crate::{Type, name};

/// A word or a quoted string of a record, its escapes not yet resolved.
#[derive(Clone, Copy, Debug)]
pub struct Token<'t> {
    /// Text of the token, without the quotes around it.
    pub text: &'t [u8],
    /// Whether quotes stood around the text.
    pub quoted: bool,
    /// Whether no blank stood between it and the token before, as in `alpn="h2"`.
    pub glued: bool,
    /// Offset of the token, its quote included, in octets of the text that the caller split.
    pub at: usize,
}

/// The tokens of a record's data, read from left to right.
pub struct Tokens<'a, 't> {
    all: &'a [Token<'t>],
    next: usize,
}

impl<'a, 't> Tokens<'a, 't> {
    /// Reads from the first token on.
    #[must_use]
    pub fn new(all: &'a [Token<'t>]) -> Self {
        Self { all, next: 0 }
    }

    /// Returns the next token, which stays the next one.
    #[must_use]
    pub fn peek(&self) -> Option<Token<'t>> {
        self.all.get(self.next).copied()
    }

    /// Returns the next token.
    ///
    /// # Errors
    /// [`Fault::Missing`] at the end.
    pub fn take(&mut self) -> Result<Token<'t>, Fault> {
        let token = self.peek().ok_or(Fault::Missing)?;
        self.next += 1;
        Ok(token)
    }

    /// Returns the text of the next token, which must not be quoted.
    ///
    /// # Errors
    /// [`Fault::Missing`] at the end, [`Fault::Quoted`].
    pub fn word(&mut self) -> Result<&'t [u8], Fault> {
        let token = self.take()?;
        if token.quoted { Err(Fault::Quoted) } else { Ok(token.text) }
    }

    /// Returns the token that a fault is about: the last one taken, or the end.
    fn blamed(&self, fault: Fault) -> usize {
        if fault == Fault::Missing { self.all.len() } else { self.next.saturating_sub(1) }
    }
}

/// What the octets of a field depend on beside its text.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// The name, in wire form, that ends relative names.
    pub origin: &'a [u8],
    /// Offset in the output at which the record's data begins.
    pub start: usize,
}

/// Appends the data of a record to `out`. Data of any type may be given as `\#` (rfc3597#5).
///
/// # Errors
/// The first token that is wrong or missing; `out` is then as it was.
pub fn parse(
    rtype: Type,
    all: &[Token<'_>],
    origin: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), TextError> {
    let scope = Scope { origin, start: out.len() };
    let mut tokens = Tokens::new(all);
    let parsed = parse_record(rtype, &mut tokens, scope, out);
    parsed.map_err(|error| {
        out.truncate(scope.start);
        TextError { token: tokens.blamed(error.fault), error }
    })
}

/// Reads the data of a record from a text of one line, in which names are complete, with or without
/// a final dot.
///
/// # Errors
/// The first field that is wrong or missing.
pub fn from_text(rtype: Type, text: &str) -> Result<Vec<u8>, RdataError> {
    let open_quote = RdataError { field: "", fault: Fault::OpenQuote };
    let tokens = tokens(text.as_bytes()).ok_or(open_quote)?;
    let mut rdata = Vec::new();
    parse(rtype, &tokens, &[0], &mut rdata).map_err(|error| error.error)?;
    Ok(rdata)
}

/// Does the work of [`parse`] but the clean-up.
fn parse_record(
    rtype: Type,
    tokens: &mut Tokens<'_, '_>,
    scope: Scope<'_>,
    out: &mut Vec<u8>,
) -> Result<(), RdataError> {
    let whole = |fault| RdataError { field: "", fault };
    if tokens.peek().is_some_and(|first| first.text == br"\#" && !first.quoted) {
        binary::parse_generic(tokens, out).map_err(whole)?;
        return wire::validate(rtype, &out[scope.start..]);
    }
    let schema = schema::of(rtype).ok_or(whole(Fault::OpaqueType))?;
    for field in schema.fields {
        parse_field(field, tokens, scope, out)
            .map_err(|fault| RdataError { field: field.name, fault })?;
    }
    match tokens.take() {
        Ok(_) => Err(whole(Fault::Unexpected)),
        Err(_) if out.len() - scope.start > usize::from(u16::MAX) => Err(whole(Fault::TooLong)),
        Err(_) => wire::check_digest(rtype, &out[scope.start..]),
    }
}

/// Appends one field to `out`, taking as many tokens as it needs.
///
/// # Errors
/// What is wrong with the last token taken; `out` may then hold a part of the field.
pub fn parse_field(
    field: &Field,
    tokens: &mut Tokens<'_, '_>,
    scope: Scope<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    match field.kind {
        Kind::Ipv4 => address::parse_ipv4(tokens.word()?, out),
        Kind::Ipv6 => address::parse_ipv6(tokens.word()?, out),
        Kind::Name(_) => parse_name(tokens.word()?, scope.origin, out),
        Kind::U8 => number::parse_u8(tokens.word()?, out),
        Kind::U16 => number::parse_u16(tokens.word()?, out),
        Kind::U32 => number::parse_u32(tokens.word()?, out),
        Kind::CharString => string::parse_char_string(tokens.take()?, out),
        Kind::CharStrings => parse_each(tokens, |token| string::parse_char_string(token, out)),
        Kind::U64 => number::parse_u64(tokens.word()?, out),
        Kind::Ttl => number::parse_ttl_field(tokens.word()?, out),
        Kind::Time => number::parse_time(tokens.word()?, out),
        Kind::Type => bitmap::parse_type(tokens.word()?, out),
        Kind::Algorithm => number::parse_algorithm(tokens.word()?, out),
        Kind::CertType => number::parse_cert_type(tokens.word()?, out),
        Kind::DsyncScheme => number::parse_dsync_scheme(tokens.word()?, out),
        Kind::Eui48 => address::parse_hex_pairs::<6>(tokens.word()?, out),
        Kind::Eui64 => address::parse_hex_pairs::<8>(tokens.word()?, out),
        Kind::NodeId => address::parse_node_id(tokens.word()?, out),
        Kind::Names(_) => {
            while tokens.peek().is_some() {
                parse_name(tokens.word()?, scope.origin, out)?;
            }
            Ok(())
        }
        Kind::Tag => string::parse_tag(tokens.take()?, out),
        Kind::OptionalCharString => match tokens.take() {
            Ok(token) => string::parse_char_string(token, out),
            Err(_) => Ok(()),
        },
        Kind::Text => string::parse_text(tokens.take()?, out),
        Kind::Hex => binary::parse_hex(tokens, out),
        Kind::HexByLength => binary::parse_hex_by_length(tokens.word()?, out),
        Kind::Base32ByLength => binary::parse_base32_by_length(tokens.word()?, out),
        Kind::Base64 => binary::parse_base64(tokens, out),
        Kind::OptionalBase64 if tokens.peek().is_none() => Ok(()),
        Kind::OptionalBase64 => binary::parse_base64(tokens, out),
        Kind::DashBase64 => binary::parse_dash_base64(tokens.word()?, out),
        Kind::TypeBitmap => bitmap::parse_windowed(tokens, out),
        Kind::FlatTypeBitmap => bitmap::parse_flat(tokens, out),
        Kind::SvcParams => svcb::parse(tokens, out),
        Kind::Loc => loc::parse(tokens, out),
        Kind::Prefixes => address::parse_prefixes(tokens, out),
        Kind::Services => bitmap::parse_services(tokens, out),
        Kind::Nsap => address::parse_nsap(tokens.word()?, out),
        Kind::Atma => address::parse_atma(tokens.word()?, out),
        Kind::A6 => gateway::parse_a6(tokens, scope, out),
        Kind::Gateway => gateway::parse(tokens, scope, gateway::IPSECKEY_TYPE, out),
        Kind::RelayType => gateway::parse_relay_type(tokens, out),
        Kind::Relay => gateway::parse(tokens, scope, gateway::AMTRELAY_TYPE, out),
        Kind::HipIdentity => gateway::parse_hip_identity(tokens, out),
    }
}

/// Hands every token left, at least one, to `parse`.
fn parse_each(
    tokens: &mut Tokens<'_, '_>,
    mut parse: impl FnMut(Token<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    parse(tokens.take()?)?;
    while let Ok(token) = tokens.take() {
        parse(token)?;
    }
    Ok(())
}

/// Returns the words and quoted strings of a text of one line; nothing if a quote is not closed.
#[must_use]
pub fn tokens(text: &[u8]) -> Option<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if text[at].is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let quoted = text[at] == b'"';
        let glued = at > 0 && !text[at - 1].is_ascii_whitespace();
        let start = at + usize::from(quoted);
        let mut end = start;
        let is_end = |octet: u8| match quoted {
            true => octet == b'"',
            false => octet.is_ascii_whitespace() || octet == b'"',
        };
        while end < text.len() && !is_end(text[end]) {
            end += if text[end] == b'\\' { 2 } else { 1 };
        }
        let end = end.min(text.len());
        if quoted && end == text.len() {
            return None;
        }
        tokens.push(Token { text: &text[start..end], quoted, glued, at });
        at = end + usize::from(quoted);
    }
    Some(tokens)
}

/// Reads a name; `@` stands for the origin (rfc1035#5.1).
pub(super) fn parse_name(text: &[u8], origin: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    if text == b"@" {
        out.extend_from_slice(origin);
        return Ok(());
    }
    name::parse_into(text, origin, out).map_err(Fault::Name)
}
