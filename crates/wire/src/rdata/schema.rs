//! The table of record types: which fields their data has, and of which kind each field is.
//!
//! Text parsing, printing, JSON, validation, compression and canonical form all follow this one
//! table. A type that is not in it is known by number only, its data opaque (rfc3597).

use crate::Type;

/// The form of one type's data.
#[derive(Debug)]
pub struct Schema {
    /// The record type's number.
    pub rtype: Type,
    /// Fields of the data, in the order of both the wire and the text.
    pub fields: &'static [Field],
}

/// One field of a record's data.
#[derive(Debug)]
pub struct Field {
    /// Name of the field in JSON zones and messages.
    pub name: &'static str,
    /// Kind of the field, which sets its form on the wire and in text.
    pub kind: Kind,
}

/// How a field is written. "To the end" means that only the end of the data ends the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One octet; a decimal number.
    U8,
    /// Two octets; a decimal number.
    U16,
    /// Four octets; a decimal number.
    U32,
    /// Eight octets; a decimal number.
    U64,
    /// Four octets; seconds, which text may give with units (`1h30m`).
    Ttl,
    /// Four octets; `YYYYMMDDHHmmSS` in UTC, or seconds since 1970 (rfc4034#3.2).
    Time,
    /// Two octets; a type's mnemonic.
    Type,
    /// One octet; the number or mnemonic of a DNSSEC algorithm (rfc4034#A.1).
    Algorithm,
    /// Two octets; the number or mnemonic of a certificate's type (rfc4398#2.1).
    CertType,
    /// One octet; the number or mnemonic of a way to notify (rfc9859#2).
    DsyncScheme,
    /// Four octets; dotted decimal.
    Ipv4,
    /// Sixteen octets; rfc4291#2.2.
    Ipv6,
    /// Six octets; hexadecimal pairs with hyphens between (rfc7043#3.2).
    Eui48,
    /// Eight octets; hexadecimal pairs with hyphens between (rfc7043#4.2).
    Eui64,
    /// Eight octets; four groups of hexadecimal digits with colons between (rfc6742#2.1.1).
    NodeId,
    /// An uncompressed domain name.
    Name(NameUse),
    /// Any number of names, to the end.
    Names(NameUse),
    /// A length octet and that many octets; a quoted or plain string (rfc1035#3.3).
    CharString,
    /// A character string that holds letters and digits only, at least one (rfc8659#4.1).
    Tag,
    /// None or one character string, to the end.
    OptionalCharString,
    /// One or more character strings, to the end.
    CharStrings,
    /// The octets of one string, to the end, without a length.
    Text,
    /// One or more octets to the end; hexadecimal, in any number of pieces.
    Hex,
    /// A length octet and that many octets; hexadecimal in one piece, `-` when empty.
    HexByLength,
    /// A length octet and that many octets; base 32 with extended alphabet (rfc5155#3.3).
    Base32ByLength,
    /// One or more octets to the end; base 64, in any number of pieces.
    Base64,
    /// Any number of octets to the end; base 64, in any number of pieces.
    OptionalBase64,
    /// Any number of octets to the end; base 64 in one piece, `-` when there are none.
    DashBase64,
    /// Type mnemonics to the end, in blocks of 256 types (rfc4034#4.1.2).
    TypeBitmap,
    /// Type mnemonics to the end, one bit each from type 0 on, all below 128 (rfc2535#5.2).
    FlatTypeBitmap,
    /// Service parameters to the end (rfc9460#2).
    SvcParams,
    /// A place on Earth, sixteen octets (rfc1876).
    Loc,
    /// Address prefixes to the end (rfc3123).
    Prefixes,
    /// Protocol octet and ports, one bit each, to the end (rfc1035#3.4.2).
    Services,
    /// A network service access point to the end; `0x` and hexadecimal digits (rfc1706#5).
    Nsap,
    /// An address in an ATM network to the end: a format octet, then digits or octets.
    Atma,
    /// Prefix length, address suffix, and the name of the prefix (rfc2874#3.1).
    A6,
    /// What the gateway is, by the rdata's second octet: nothing, an address or a name
    /// (rfc4025#2.5).
    Gateway,
    /// The discovery bit and the relay's type in one octet; two numbers (rfc8777#4.2).
    RelayType,
    /// What the relay is, by the low seven bits of the rdata's second octet (rfc8777#4.2.4).
    Relay,
    /// Algorithm, host identity tag and public key, their lengths before them (rfc8005#5).
    HipIdentity,
}

/// What may be done to a name inside record data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameUse {
    /// Compressed in messages (rfc3597#4) and lower-cased in canonical form (rfc4034#6.2).
    Compressed,
    /// Never compressed, but lower-cased in canonical form.
    Lowercased,
    /// The name is neither compressed nor brought into lower case.
    Verbatim,
}

/// A name that may be compressed.
const COMPRESSED: Kind = Kind::Name(NameUse::Compressed);
/// A name that is lower-cased in canonical form.
const LOWERCASED: Kind = Kind::Name(NameUse::Lowercased);
/// A name that stays as it is.
const VERBATIM: Kind = Kind::Name(NameUse::Verbatim);

/// Writes the table as `TYPE | TYPE => { field: kind, … }`.
macro_rules! schemas {
    ($($($rtype:ident)|+ => $fields:tt)*) => {
        static SCHEMAS: &[Schema] =
            &[$($(Schema { rtype: crate::Type::$rtype, fields: fields!($fields) },)+)*];
    };
}

/// The fields of one row of the table.
macro_rules! fields {
    ({ $($name:ident: $kind:expr),+ $(,)? }) => {{
        #[allow(unused_imports, clippy::enum_glob_use)]
        use Kind::*;
        &[$(Field { name: stringify!($name), kind: $kind }),+]
    }};
}

// The keys are those of dns_erlang's JSON format where it knows the type.
schemas! {
    A => { ip: Ipv4 }
    AAAA => { ip: Ipv6 }
    NS | CNAME | PTR => { dname: COMPRESSED }
    ALIAS => { dname: VERBATIM }
    DNAME | NSAP_PTR => { dname: LOWERCASED }
    MB | MG | MD | MF => { madname: COMPRESSED }
    MR => { newname: COMPRESSED }
    SOA => { mname: COMPRESSED, rname: COMPRESSED, serial: U32, refresh: Ttl, retry: Ttl,
        expire: Ttl, minimum: Ttl }
    WKS => { address: Ipv4, services: Services }
    HINFO => { cpu: CharString, os: CharString }
    MINFO => { rmailbx: COMPRESSED, emailbx: COMPRESSED }
    MX => { preference: U16, exchange: COMPRESSED }
    TXT | SPF | NINFO | AVC | CLA => { txts: CharStrings }
    RESINFO | WALLET => { data: CharStrings }
    RP => { mbox: LOWERCASED, txt: LOWERCASED }
    AFSDB => { subtype: U16, hostname: LOWERCASED }
    X25 => { address: CharString }
    ISDN => { address: CharString, subaddress: OptionalCharString }
    RT => { preference: U16, host: LOWERCASED }
    NSAP => { address: Nsap }
    KEY | RKEY => { flags: U16, protocol: U8, alg: Algorithm, public_key: OptionalBase64 }
    DNSKEY | CDNSKEY => { flags: U16, protocol: U8, alg: Algorithm, public_key: Base64 }
    SIG | RRSIG => { type_covered: Type, alg: Algorithm, labels: U8, original_ttl: Ttl,
        expiration: Time, inception: Time, keytag: U16, signers_name: LOWERCASED,
        signature: Base64 }
    PX => { preference: U16, map822: LOWERCASED, mapx400: LOWERCASED }
    GPOS => { longitude: CharString, latitude: CharString, altitude: CharString }
    LOC => { location: Loc }
    NXT => { dname: LOWERCASED, types: FlatTypeBitmap }
    EID | NIMLOC => { data: Hex }
    SRV => { priority: U16, weight: U16, port: U16, target: LOWERCASED }
    ATMA => { address: Atma }
    NAPTR => { order: U16, preference: U16, flags: CharString, services: CharString,
        regexp: CharString, replacement: LOWERCASED }
    KX => { preference: U16, exchange: LOWERCASED }
    CERT => { type: CertType, keytag: U16, alg: Algorithm, cert: Base64 }
    A6 => { prefix: A6 }
    SINK => { meaning: U8, coding: U8, subcoding: U8, data: OptionalBase64 }
    APL => { prefixes: Prefixes }
    DS | CDS | DLV | TA => { keytag: U16, alg: Algorithm, digest_type: U8, digest: Hex }
    SSHFP => { alg: U8, fptype: U8, fp: Hex }
    IPSECKEY => { precedence: U8, gateway_type: U8, alg: U8, gateway: Gateway,
        public_key: OptionalBase64 }
    NSEC => { next_dname: VERBATIM, types: TypeBitmap } // rfc6840#5.1
    DHCID | OPENPGPKEY | HHIT | BRID => { data: Base64 }
    NSEC3 => { hash_alg: U8, flags: U8, iterations: U16, salt: HexByLength, hash: Base32ByLength,
        types: TypeBitmap }
    NSEC3PARAM => { hash_alg: U8, flags: U8, iterations: U16, salt: HexByLength }
    TLSA | SMIMEA => { usage: U8, selector: U8, matching_type: U8, certificate: Hex }
    HIP => { identity: HipIdentity, rendezvous_servers: Names(NameUse::Verbatim) }
    TALINK => { previous: VERBATIM, next: VERBATIM }
    CSYNC => { soa_serial: U32, flags: U16, types: TypeBitmap }
    ZONEMD => { serial: U32, scheme: U8, algorithm: U8, hash: Hex }
    SVCB | HTTPS => { svc_priority: U16, target_name: VERBATIM, svc_params: SvcParams }
    DSYNC => { rrtype: Type, scheme: DsyncScheme, port: U16, target: VERBATIM }
    NID => { preference: U16, node_id: NodeId }
    L64 => { preference: U16, locator64: NodeId }
    L32 => { preference: U16, locator32: Ipv4 }
    LP => { preference: U16, fqdn: VERBATIM }
    EUI48 => { address: Eui48 }
    EUI64 => { address: Eui64 }
    URI => { priority: U16, weight: U16, target: Text }
    CAA => { flags: U8, tag: Tag, value: Text }
    DOA => { enterprise: U32, type: U32, location: U8, media_type: CharString, data: DashBase64 }
    AMTRELAY => { precedence: U8, relay_type: RelayType, relay: Relay }
    IPN => { number: U64 }
}

/// Types below this number are found by index, the few above it by search.
const INDEXED: usize = 272;

/// For each type number, one more than its place in the table; 0 where the type is not in it.
static INDEX: [u8; INDEXED] = {
    let mut index = [0; INDEXED];
    let mut at = 0;
    while at < SCHEMAS.len() {
        let number = SCHEMAS[at].rtype.0 as usize;
        if number < INDEXED {
            index[number] = at as u8 + 1;
        }
        at += 1;
    }
    index
};

/// Returns the schema of a type; `None` when its data is opaque (rfc3597).
#[must_use]
pub fn of(rtype: Type) -> Option<&'static Schema> {
    match INDEX.get(usize::from(rtype.0)) {
        Some(&place) => SCHEMAS.get(usize::from(place).wrapping_sub(1)),
        None => SCHEMAS.iter().find(|schema| schema.rtype == rtype),
    }
}

/// Returns all schemas, in the table's order.
pub fn all() -> impl Iterator<Item = &'static Schema> {
    SCHEMAS.iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_in_the_table_once_and_found_by_its_number() {
        assert!(SCHEMAS.len() < 255);
        for schema in all() {
            let found = of(schema.rtype).map(std::ptr::from_ref);
            assert_eq!(found, Some(std::ptr::from_ref(schema)), "{}", schema.rtype);
        }
    }

    #[test]
    fn types_without_presentation_format_have_no_schema() {
        for rtype in [Type::NULL, Type::OPT, Type::ANY, Type::NXNAME, Type(0), Type(65_535)] {
            assert!(of(rtype).is_none(), "{rtype}");
        }
    }
}
