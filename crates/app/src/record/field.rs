//! Fields of records: between Rust's values and octets.
//!
//! One codec for each kind of field in the schema. What is written is made of sound values;
//! constructors check that they are.

use super::value::{A6Prefix, AddressPrefix, AtmAddress, Gateway, HostIdentity, Location};
use super::value::{Services, SvcParam};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use zonda_wire::rdata::print::{is_expressible, strings};
use zonda_wire::rdata::{Fault, RdataError, Value, bitmap, schema, svcb, validate, values};
use zonda_wire::{Name, Type, name};

/// Octets of a character string (rfc1035#3.3).
pub(super) const STRING_BYTES_MAX: usize = 255;
/// Types in a block of a bitmap (rfc4034#4.1.2).
const BLOCK_TYPES: u16 = 256;

/// How values of a kind of field are written and read.
pub(super) trait Codec {
    /// What a field of this kind holds.
    type Value;

    /// Appends the octets of a value.
    fn write(value: &Self::Value, out: &mut Vec<u8>);

    /// Returns the value of a field's octets, which are sound, in `rdata`, the data of the record.
    fn read(octets: &[u8], rdata: &[u8]) -> Option<Self::Value>;
}

/// The fields of sound data, one behind the other.
pub(super) struct Fields<'r> {
    values: Box<dyn Iterator<Item = Result<Value<'r>, RdataError>> + 'r>,
    rdata: &'r [u8],
}

impl<'r> Fields<'r> {
    /// Of data of a type.
    ///
    /// # Errors
    /// What is wrong with them; what no text can say is malformed, too.
    pub(super) fn of(rtype: Type, rdata: &'r [u8]) -> Result<Self, RdataError> {
        validate(rtype, rdata)?;
        let schema = schema::of(rtype).filter(|_| is_expressible(rtype, rdata)).ok_or(MALFORMED)?;
        Ok(Self { values: Box::new(values(schema, rdata)), rdata })
    }

    /// Returns the next one.
    pub(super) fn next<C: Codec>(&mut self) -> Result<C::Value, RdataError> {
        let value = self.values.next().ok_or(MALFORMED)??;
        let malformed = RdataError { field: value.field.name, fault: Fault::Malformed };
        C::read(value.octets, self.rdata).ok_or(malformed)
    }
}

/// The data as a whole are none of their type.
const MALFORMED: RdataError = RdataError { field: "", fault: Fault::Malformed };

/// Returns a name, for a constructor.
pub(super) fn name(field: &'static str, text: &str) -> Result<Name, RdataError> {
    text.parse().map_err(|error| RdataError { field, fault: Fault::Name(error) })
}

/// Names, for a constructor.
pub(super) fn names(field: &'static str, texts: &[&str]) -> Result<Vec<Name>, RdataError> {
    texts.iter().map(|text| name(field, text)).collect()
}

/// Returns a character string, for a constructor.
pub(super) fn string(field: &'static str, text: impl AsRef<[u8]>) -> Result<Vec<u8>, RdataError> {
    let text = text.as_ref();
    let too_long = RdataError { field, fault: Fault::StringTooLong };
    if text.len() > STRING_BYTES_MAX { Err(too_long) } else { Ok(text.to_vec()) }
}

/// Character strings, for a constructor.
pub(super) fn all_strings(
    field: &'static str,
    texts: &[impl AsRef<[u8]>],
) -> Result<Vec<Vec<u8>>, RdataError> {
    texts.iter().map(|text| string(field, text)).collect()
}

/// Declares codecs.
macro_rules! codecs {
    ($($(#[$doc:meta])* $name:ident: $value:ty,
       |$it:ident, $out:ident| $write:expr, |$octets:ident, $rdata:pat_param| $read:expr;)*) => {
        $(
            $(#[$doc])*
            pub(super) struct $name;

            impl Codec for $name {
                type Value = $value;

                #[inline]
                fn write($it: &$value, $out: &mut Vec<u8>) {
                    $write;
                }

                #[inline]
                fn read($octets: &[u8], $rdata: &[u8]) -> Option<$value> {
                    $read
                }
            }
        )*
    };
}

codecs! {
    /// A number of one octet.
    U8: u8, |it, out| out.push(*it), |octets, _| octets.first().copied();
    /// A number of two octets.
    U16: u16, |it, out| out.extend_from_slice(&it.to_be_bytes()),
        |octets, _| octets.try_into().ok().map(u16::from_be_bytes);
    /// A number of four octets.
    U32: u32, |it, out| out.extend_from_slice(&it.to_be_bytes()),
        |octets, _| octets.try_into().ok().map(u32::from_be_bytes);
    /// A number of eight octets.
    U64: u64, |it, out| out.extend_from_slice(&it.to_be_bytes()),
        |octets, _| octets.try_into().ok().map(u64::from_be_bytes);
    /// A record type's number.
    RecordType: Type, |it, out| U16::write(&it.0, out), |octets, rdata| {
        U16::read(octets, rdata).map(Type)
    };
    /// An IPv4 address, four octets.
    Ipv4: Ipv4Addr, |it, out| out.extend_from_slice(&it.octets()),
        |octets, _| <[u8; 4]>::try_from(octets).ok().map(Ipv4Addr::from);
    /// An IPv6 address, sixteen octets.
    Ipv6: Ipv6Addr, |it, out| out.extend_from_slice(&it.octets()),
        |octets, _| <[u8; 16]>::try_from(octets).ok().map(Ipv6Addr::from);
    /// A hardware address of six octets.
    Eui48: [u8; 6], |it, out| out.extend_from_slice(it), |octets, _| octets.try_into().ok();
    /// A hardware address of eight octets.
    Eui64: [u8; 8], |it, out| out.extend_from_slice(it), |octets, _| octets.try_into().ok();
    /// Four groups of two octets.
    NodeId: [u16; 4], |it, out| it.iter().for_each(|group| U16::write(group, out)),
        |octets, rdata| {
            let mut groups = octets.chunks_exact(2).map(|group| U16::read(group, rdata));
            Some([groups.next()??, groups.next()??, groups.next()??, groups.next()??])
        };
    /// A domain name in wire form.
    OneName: Name, |it, out| out.extend_from_slice(it.as_wire()),
        |octets, _| Name::from_wire(octets).ok();
    /// Names to the end.
    Names: Vec<Name>, |it, out| it.iter().for_each(|name| OneName::write(name, out)),
        |octets, _| read_names(octets);
    /// A string behind its length.
    CharString: Vec<u8>, |it, out| write_string(it, out),
        |octets, _| Some(octets.get(1..)?.to_vec());
    /// A string of letters and digits behind its length.
    Tag: String, |it, out| write_string(it.as_bytes(), out),
        |octets, _| String::from_utf8(octets.get(1..)?.to_vec()).ok();
    /// None or one string behind its length.
    OptionalString: Option<Vec<u8>>,
        |it, out| it.iter().for_each(|string| write_string(string, out)),
        |octets, _| Some(octets.get(1..).map(<[u8]>::to_vec));
    /// Strings, each behind its length, to the end.
    CharStrings: Vec<Vec<u8>>, |it, out| it.iter().for_each(|string| write_string(string, out)),
        |octets, _| Some(strings(octets).map(<[u8]>::to_vec).collect());
    /// Octets to the end.
    Octets: Vec<u8>, |it, out| out.extend_from_slice(it), |octets, _| Some(octets.to_vec());
    /// Types to the end, in blocks of 256.
    Types: Vec<Type>, |it, out| write_types(it, out),
        |octets, _| Some(bitmap::windowed_types(octets).collect());
    /// Types below 128 to the end.
    FlatTypes: Vec<Type>, |it, out| write_flat_types(it, out),
        |octets, _| Some(bitmap::flat_types(octets).collect());
    /// Service parameters to the end.
    SvcParams: Vec<SvcParam>, |it, out| write_params(it, out), |octets, _| {
        let param = |param: Result<_, _>| param.ok().and_then(|(key, v)| SvcParam::read(key, v));
        svcb::params(octets).map(param).collect()
    };
    /// A place on Earth.
    Place: Location, |it, out| it.write(out), |octets, _| Location::read(octets);
    /// Address prefixes to the end.
    Prefixes: Vec<AddressPrefix>, |it, out| it.iter().for_each(|prefix| prefix.write(out)),
        |octets, _| AddressPrefix::read_all(octets);
    /// A protocol and ports to the end.
    ProtocolPorts: Services, |it, out| it.write(out), |octets, _| Services::read(octets);
    /// An address in an ATM network.
    Atm: AtmAddress, |it, out| it.write(out), |octets, _| AtmAddress::read(octets);
    /// Prefix length, suffix and name of the prefix.
    Prefix: A6Prefix, |it, out| it.write(out), |octets, _| A6Prefix::read(octets);
    /// Nothing, an address or a name, as the data's second octet says.
    GatewayOrRelay: Gateway, |it, out| it.write(out), |octets, rdata| {
        Gateway::read(rdata.get(1)?, octets)
    };
    /// Algorithm, tag and public key.
    Identity: HostIdentity, |it, out| it.write(out), |octets, _| HostIdentity::read(octets);
}

/// Names, one behind the other.
fn read_names(octets: &[u8]) -> Option<Vec<Name>> {
    let mut rest = octets;
    let mut names = Vec::new();
    while !rest.is_empty() {
        let (name, tail) = rest.split_at_checked(name::wire_len(rest)?)?;
        names.push(Name::from_wire(name).ok()?);
        rest = tail;
    }
    Some(names)
}

/// Appends a string behind its length; what is longer than a string can be is cut off.
pub(super) fn write_string(string: &[u8], out: &mut Vec<u8>) {
    let string = &string[..string.len().min(STRING_BYTES_MAX)];
    out.push(string.len() as u8); // at most STRING_BYTES_MAX
    out.extend_from_slice(string);
}

/// Appends types in blocks of 256, blocks and types in ascending order (rfc4034#4.1.2).
fn write_types(types: &[Type], out: &mut Vec<u8>) {
    let mut blocks: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
    for rtype in types {
        blocks.entry(rtype.0 / BLOCK_TYPES).or_default().push(rtype.0 % BLOCK_TYPES);
    }
    for (block, places) in blocks {
        let bits = bits_of(&places);
        out.extend_from_slice(&[block as u8, bits.len() as u8]); // at most 255 and 32
        out.extend_from_slice(&bits);
    }
}

/// Appends types below 128, one bit for each. With a type above, more octets follow than the record
/// may have, which its check refuses.
fn write_flat_types(types: &[Type], out: &mut Vec<u8>) {
    let places: Vec<u16> = types.iter().map(|it| it.0).collect();
    out.extend_from_slice(&bits_of(&places));
}

/// Octets in which these bits are set, counted from the highest of the first octet.
pub(super) fn bits_of(places: &[u16]) -> Vec<u8> {
    let last = places.iter().max();
    let mut bits = vec![0; last.map_or(0, |last| usize::from(last / 8) + 1)];
    for place in places {
        bits[usize::from(place / 8)] |= 0x80 >> (place % 8);
    }
    bits
}

/// Appends parameters in ascending order of their keys (rfc9460#2.2).
fn write_params(params: &[SvcParam], out: &mut Vec<u8>) {
    let mut params: Vec<&SvcParam> = params.iter().collect();
    params.sort_by_key(|param| param.key());
    for param in params {
        U16::write(&param.key(), out);
        let length_at = out.len();
        out.extend_from_slice(&[0, 0]);
        param.write(out);
        let len = u16::try_from(out.len() - length_at - 2).unwrap_or(u16::MAX); // then no record is
        out[length_at..length_at + 2].copy_from_slice(&len.to_be_bytes());
    }
}
