//! Record data on the wire, field by field.

use super::error::{Fault, RdataError};
use super::schema::{self, Field, Kind, NameUse, Schema};
use super::{address, bitmap, gateway, loc, svcb};
use crate::{Type, name};

/// One field of a record's data.
#[derive(Clone, Copy, Debug)]
pub struct Value<'r> {
    /// The field's entry in the schema.
    pub field: &'static Field,
    /// Octets of the field, a length octet included.
    pub octets: &'r [u8],
    /// Offset of the field in the data.
    pub offset: usize,
}

/// A domain name inside record data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbeddedName {
    /// Offset of the name in the data.
    pub offset: usize,
    /// Length of the name, octets.
    pub len: usize,
    /// Treatment of the name: compression, lower case.
    pub name_use: NameUse,
}

/// Returns the fields of uncompressed data in order; ends behind the first error.
pub fn values<'r>(
    schema: &'static Schema,
    rdata: &'r [u8],
) -> impl Iterator<Item = Result<Value<'r>, RdataError>> {
    let mut offset = 0;
    let mut fields = schema.fields.iter();
    std::iter::from_fn(move || {
        let Some(field) = fields.next() else {
            let excess = offset < rdata.len();
            offset = rdata.len();
            return excess.then_some(Err(RdataError { field: "", fault: Fault::Trailing }));
        };
        match field_len(field.kind, rdata, offset) {
            Ok(len) => {
                let value = Value { field, octets: &rdata[offset..offset + len], offset };
                offset += len;
                Some(Ok(value))
            }
            Err(fault) => {
                fields = [].iter();
                offset = rdata.len();
                Some(Err(RdataError { field: field.name, fault }))
            }
        }
    })
}

/// Whether octets are uncompressed data of a type; those of a type without schema always are.
///
/// # Errors
/// The first field that is wrong.
pub fn validate(rtype: Type, rdata: &[u8]) -> Result<(), RdataError> {
    match schema::of(rtype) {
        Some(schema) => {
            values(schema, rdata).try_for_each(|value| value.map(drop))?;
            check_digest(rtype, rdata)
        }
        None => Ok(()),
    }
}

/// Returns the names in uncompressed data, in order; ends early, never panics, when the data is
/// malformed.
pub fn names(rtype: Type, rdata: &[u8]) -> impl Iterator<Item = EmbeddedName> {
    let fields = schema::of(rtype).into_iter().flat_map(|schema| values(schema, rdata));
    fields.map_while(Result::ok).flat_map(move |value| {
        let (start, name_use) = match value.field.kind {
            Kind::Name(name_use) | Kind::Names(name_use) => (0, name_use),
            Kind::Gateway | Kind::Relay if gateway::is_name(rdata) => (0, NameUse::Verbatim),
            Kind::A6 => (gateway::a6_name_at(value.octets), NameUse::Lowercased),
            _ => (value.octets.len(), NameUse::Verbatim),
        };
        let mut at = start;
        std::iter::from_fn(move || {
            let len = name::wire_len(value.octets.get(at..)?)?;
            let found = EmbeddedName { offset: value.offset + at, len, name_use };
            at += len;
            Some(found)
        })
    })
}

/// Brings uncompressed data into canonical form: some of its names in lower case (rfc4034#6.2,
/// rfc6840#5.1). Records whose canonical forms are equal are the same record.
pub fn make_canonical(rtype: Type, rdata: &mut [u8]) {
    let lowered = |name: &EmbeddedName| name.name_use != NameUse::Verbatim;
    let nth = |rdata: &[u8], index| names(rtype, rdata).filter(lowered).nth(index);
    let mut index = 0;
    while let Some(EmbeddedName { offset, len, .. }) = nth(rdata, index) {
        rdata[offset..offset + len].make_ascii_lowercase(); // length octets are below b'A'
        index += 1;
    }
}

/// Checks that a digest whose algorithm is known has that algorithm's length.
pub(super) fn check_digest(rtype: Type, rdata: &[u8]) -> Result<(), RdataError> {
    let is_simple = rdata.get(4) == Some(&1); // the one scheme that says which octets are hashed
    // Which octet names the algorithm, where the digest begins, and the lengths by algorithm.
    let (field, kind_at, digest_at, lens): (_, _, _, &[(u8, u8)]) = match rtype {
        Type::DS | Type::CDS | Type::DLV | Type::TA => {
            ("digest", 3, 4, &[(1, 20), (2, 32), (3, 32), (4, 48)]) // rfc3658, 4509, 5933, 6605
        }
        Type::SSHFP => ("fp", 1, 2, &[(1, 20), (2, 32)]), // rfc4255#3.1.2, rfc6594#2
        Type::ZONEMD if is_simple => ("hash", 5, 6, &[(1, 48), (2, 64)]), // rfc8976#2.2.3
        _ => return Ok(()),
    };
    let kind = rdata.get(kind_at).copied();
    let known = lens.iter().find(|known| Some(known.0) == kind);
    match known {
        Some(&(_, len)) if rdata.len() != digest_at + usize::from(len) => {
            Err(RdataError { field, fault: Fault::DigestLength(len) })
        }
        _ => Ok(()),
    }
}

/// Returns how many octets the field at `at` has; `at` is not behind the data's end.
pub(crate) fn field_len(kind: Kind, rdata: &[u8], at: usize) -> Result<usize, Fault> {
    let rest = &rdata[at..];
    let all = |valid: bool| if valid { Ok(rest.len()) } else { Err(Fault::Malformed) };
    match kind {
        Kind::U8 | Kind::Algorithm | Kind::DsyncScheme | Kind::RelayType => fixed(rest, 1),
        Kind::U16 | Kind::Type | Kind::CertType => fixed(rest, 2),
        Kind::U32 | Kind::Ttl | Kind::Time | Kind::Ipv4 => fixed(rest, 4),
        Kind::Eui48 => fixed(rest, 6),
        Kind::U64 | Kind::Eui64 | Kind::NodeId => fixed(rest, 8),
        Kind::Ipv6 => fixed(rest, 16),
        Kind::Name(_) => name_len(rest),
        Kind::Names(_) => all(is_sequence(rest, name::wire_len)),
        Kind::CharString | Kind::HexByLength => prefixed(rest),
        Kind::Base32ByLength => prefixed(rest).and_then(|len| at_least(len, 2)),
        Kind::Tag => {
            let len = prefixed(rest).and_then(|len| at_least(len, 2))?;
            let valid = rest[1..len].iter().all(u8::is_ascii_alphanumeric);
            if valid { Ok(len) } else { Err(Fault::Tag) }
        }
        Kind::OptionalCharString if rest.is_empty() => Ok(0),
        Kind::OptionalCharString => prefixed(rest),
        Kind::CharStrings if rest.is_empty() => Err(Fault::Truncated),
        Kind::CharStrings => all(is_sequence(rest, |rest| prefixed(rest).ok())),
        Kind::Text | Kind::OptionalBase64 | Kind::DashBase64 => Ok(rest.len()),
        Kind::Hex | Kind::Base64 | Kind::Nsap => at_least(rest.len(), 1),
        Kind::TypeBitmap => all(bitmap::is_windowed(rest)),
        Kind::FlatTypeBitmap => all(bitmap::is_flat(rest)),
        Kind::Services => all(bitmap::is_services(rest)),
        Kind::SvcParams => svcb::check(rest).map(|()| rest.len()).map_err(Fault::Svc),
        Kind::Loc => fixed(rest, loc::LEN).and_then(|len| loc::check(&rest[..len]).map(|()| len)),
        Kind::Prefixes => all(is_sequence(rest, address::prefix_len)),
        Kind::Atma => at_least(rest.len(), 2).and_then(|_| all(address::is_atma(rest))),
        Kind::A6 => gateway::a6_len(rest),
        Kind::Gateway => gateway::len(rdata, at, gateway::IPSECKEY_TYPE),
        Kind::Relay => gateway::len(rdata, at, gateway::AMTRELAY_TYPE),
        Kind::HipIdentity => gateway::hip_len(rest),
    }
}

/// Returns the length of a field of exactly `len` octets.
fn fixed(rest: &[u8], len: usize) -> Result<usize, Fault> {
    at_least(rest.len(), len).map(|_| len)
}

/// Returns `len`, if it is no less than `least`.
fn at_least(len: usize, least: usize) -> Result<usize, Fault> {
    if len < least { Err(Fault::Truncated) } else { Ok(len) }
}

/// Returns the length of a length octet and what it counts.
fn prefixed(rest: &[u8]) -> Result<usize, Fault> {
    let &len = rest.first().ok_or(Fault::Truncated)?;
    fixed(rest, 1 + usize::from(len))
}

/// Returns the length of an uncompressed name.
pub(super) fn name_len(rest: &[u8]) -> Result<usize, Fault> {
    name::wire_len(rest).ok_or(Fault::Name(crate::NameError::Malformed))
}

/// Whether the octets are items, without a rest, as measured one after the other.
fn is_sequence(mut rest: &[u8], item_len: impl Fn(&[u8]) -> Option<usize>) -> bool {
    while !rest.is_empty() {
        match item_len(rest).and_then(|len| rest.get(len..)) {
            Some(tail) => rest = tail,
            None => return false,
        }
    }
    true
}
