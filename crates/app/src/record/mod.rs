//! Records of every type, and of any type by its text.
//!
//! Each type of record has a structure of its own, whose fields are those of its data. It is made
//! by `new`, of the text of its data as in a zone file, or of data in wire form; [`ttl`](A::ttl)
//! and [`of`](A::of) set its time to live and its owner:
//!
//! ```
//! use zonda::record::{Caa, Ds, Https, SvcParam};
//!
//! # fn main() -> Result<(), zonda::DataError> {
//! let caa = Caa::new(0, "issue", "ca.example.net")?.ttl(3600);
//! assert_eq!(caa.to_string(), r#"0 issue "ca.example.net""#);
//! let ds: Ds = "20326 8 1 2BB183AF5F22588179A53B0A98631FAD1A292118".parse()?;
//! assert_eq!((ds.key_tag, ds.digest.len()), (20326, 20));
//! let https = Https::new(1, ".", [SvcParam::alpn(["h2", "h3"]), SvcParam::Port(8443)])?;
//! assert_eq!(https, Https::from_rdata(b"\0\x01\0\0\x01\0\x06\x02h2\x02h3\0\x03\0\x02\x20\xfb")?);
//! # Ok(())
//! # }
//! ```
//!
//! A field may be changed. What then does not fit its type goes into the reply as it is: strings
//! are cut off at 255 octets, and nothing else is checked again.

use crate::into_reply::{Failure, IntoReply};
use field::{Fields, STRING_BYTES_MAX};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use zonda_engine::code::{Record, Reply};
use zonda_wire::rdata::RdataError;
use zonda_wire::rdata::from_text;
use zonda_wire::{Name, NameError, Type};

/// The time to live of a record that says nothing else, seconds.
const TTL_SECS: u32 = 300;

/// The longest time to live, seconds (rfc2181#8).
const TTL_SECS_MAX: u32 = i32::MAX as u32;

/// Declares a type of record: its number and the fields of its data, each with its type and codec.
/// With `checked` or `sound`, each field also says what `new` takes for it, and what it makes of
/// that; `checked` where not everything of that type fits.
macro_rules! record {
    ($(#[$doc:meta])* $name:ident = $rtype:ident, checked {
        $($(#[$field_doc:meta])* $field:ident: $kind:ty = $codec:ident, $arg:ty => $make:expr;)+
    }) => {
        record! { $(#[$doc])* $name = $rtype {
            $($(#[$field_doc])* $field: $kind = $codec;)+
        } }

        impl $name {
            /// Makes a record with these fields.
            ///
            /// # Errors
            /// When a value does not fit its field.
            pub fn new($($field: $arg),+) -> Result<Self, DataError> {
                checked(Self::TYPE, || {
                    Ok(Self { $($field: $make,)+ owner: None, ttl_secs: TTL_SECS })
                })
            }
        }
    };
    ($(#[$doc:meta])* $name:ident = $rtype:ident, sound {
        $($(#[$field_doc:meta])* $field:ident: $kind:ty = $codec:ident, $arg:ty => $make:expr;)+
    }) => {
        record! { $(#[$doc])* $name = $rtype {
            $($(#[$field_doc])* $field: $kind = $codec;)+
        } }

        impl $name {
            /// Makes a record with these fields.
            #[must_use]
            pub fn new($($field: $arg),+) -> Self {
                Self { $($field: $make,)+ owner: None, ttl_secs: TTL_SECS }
            }
        }
    };
    ($(#[$doc:meta])* $name:ident = $rtype:ident {
        $($(#[$field_doc:meta])* $field:ident: $kind:ty = $codec:ident;)+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $kind,)+
            pub(super) owner: Option<Name>,
            pub(super) ttl_secs: u32,
        }

        impl $name {
            /// The record type.
            pub const TYPE: Type = Type::$rtype;

            /// Reads data in uncompressed wire form, as a [`Message`](crate::Message) has them.
            ///
            /// # Errors
            /// When the data are not those of this type.
            pub fn from_rdata(rdata: &[u8]) -> Result<Self, DataError> {
                let read = || -> Result<Self, zonda_wire::rdata::RdataError> {
                    let mut fields = field::Fields::of(Type::$rtype, rdata)?;
                    Ok(Self {
                        $($field: fields.next::<field::$codec>()?,)+
                        owner: None,
                        ttl_secs: TTL_SECS,
                    })
                };
                read().map_err(|error| DataError::of(Type::$rtype, &error))
            }

            /// Returns the records of this type in the answer of a message or reply, with owner and
            /// time to live; without those whose data cannot be read.
            #[must_use]
            pub fn all_in(answers: &impl crate::record::Answers) -> Vec<Self> {
                let mut own = Vec::new();
                answers.each(Type::$rtype, &mut |owner, ttl_secs, rdata| {
                    let read = Self::from_rdata(rdata).ok();
                    own.extend(read.map(|it| Self { owner, ttl_secs, ..it }));
                });
                own
            }

            /// Returns the record as a line of a zone file; as
            /// [`Any::to_line`](crate::Any::to_line).
            #[must_use]
            pub fn to_line(&self) -> String {
                crate::record::line::to_line(self)
            }

            /// Reads a record of this type from a line of a zone file; as
            /// [`Any::parse_line`](crate::Any::parse_line).
            ///
            /// # Errors
            /// When the text is not one record of this type.
            pub fn parse_line(line: &str, origin: Option<&Name>) -> Result<Self, DataError> {
                let crate::record::Any { rtype, rdata, owner, ttl_secs } =
                    crate::record::line::read(line, origin)?;
                if rtype != Type::$rtype {
                    let what = format!("the line has a record of type {rtype}");
                    return Err(DataError::of(Type::$rtype, &what));
                }
                Ok(Self { owner, ttl_secs, ..Self::from_rdata(&rdata)? })
            }

            /// Sets the time to live, seconds; more than 2147483647 counts as that (rfc2181#8).
            #[must_use]
            pub fn ttl(mut self, secs: u32) -> Self {
                self.ttl_secs = secs.min(crate::record::TTL_SECS_MAX);
                self
            }

            /// Sets the owner; without it, the owner is the name asked for.
            #[must_use]
            pub fn of(mut self, owner: Name) -> Self {
                self.owner = Some(owner);
                self
            }
        }

        impl Record for $name {
            fn rtype(&self) -> Type {
                Type::$rtype
            }

            fn ttl_secs(&self) -> u32 {
                self.ttl_secs
            }

            fn owner(&self) -> Option<&Name> {
                self.owner.as_ref()
            }

            fn write_rdata(&self, out: &mut Vec<u8>) {
                $(<field::$codec as field::Codec>::write(&self.$field, out);)+
            }
        }

        impl crate::into_reply::IntoReply for $name {
            fn into_reply(
                self,
                reply: &mut zonda_engine::code::Reply,
            ) -> Result<(), crate::into_reply::Failure> {
                reply.answer(self);
                Ok(())
            }
        }

        impl FromStr for $name {
            type Err = DataError;

            /// Reads the text of a record's data as in a zone file; names end at the root.
            fn from_str(text: &str) -> Result<Self, DataError> {
                Self::from_rdata(&rdata_of(Type::$rtype, text)?)
            }
        }

        impl fmt::Display for $name {
            /// Writes the text of the record's data as in a zone file.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut rdata = Vec::new();
                self.write_rdata(&mut rdata);
                Presentation { rtype: Type::$rtype, rdata: &rdata }.fmt(f)
            }
        }
    };
}

mod answers;
mod field;
mod line;
mod rare;
mod security;
mod usual;
mod value;

pub use answers::Answers;
pub use rare::*;
pub use security::*;
pub use usual::*;
pub use value::*;

impl A {
    /// Makes a record of an IPv4 address.
    pub fn new(address: impl Into<Ipv4Addr>) -> Self {
        Self { address: address.into(), owner: None, ttl_secs: TTL_SECS }
    }
}

impl Aaaa {
    /// Makes a record of an IPv6 address.
    pub fn new(address: impl Into<Ipv6Addr>) -> Self {
        Self { address: address.into(), owner: None, ttl_secs: TTL_SECS }
    }
}

impl Cname {
    /// Makes a record of a name.
    ///
    /// # Errors
    /// When the text is not a domain name.
    pub fn new(target: &str) -> Result<Self, NameError> {
        Ok(Self { target: target.parse()?, owner: None, ttl_secs: TTL_SECS })
    }
}

impl Ns {
    /// Makes a record of a name.
    ///
    /// # Errors
    /// When the text is not a domain name.
    pub fn new(target: &str) -> Result<Self, NameError> {
        Ok(Self { target: target.parse()?, owner: None, ttl_secs: TTL_SECS })
    }
}

impl Ptr {
    /// Makes a record of a name.
    ///
    /// # Errors
    /// When the text is not a domain name.
    pub fn new(target: &str) -> Result<Self, NameError> {
        Ok(Self { target: target.parse()?, owner: None, ttl_secs: TTL_SECS })
    }
}

impl Mx {
    /// Makes the record of a mail server.
    ///
    /// # Errors
    /// When the text is not a domain name.
    pub fn new(preference: u16, exchange: &str) -> Result<Self, NameError> {
        Ok(Self { preference, exchange: exchange.parse()?, owner: None, ttl_secs: TTL_SECS })
    }
}

impl Srv {
    /// Makes the record of a service's host and port.
    ///
    /// # Errors
    /// When the text is not a domain name.
    pub fn new(priority: u16, weight: u16, port: u16, target: &str) -> Result<Self, NameError> {
        let target = target.parse()?;
        Ok(Self { priority, weight, port, target, owner: None, ttl_secs: TTL_SECS })
    }
}

impl Txt {
    /// Makes a record of a text, in as many strings as it needs.
    pub fn new(text: impl AsRef<[u8]>) -> Self {
        let text = text.as_ref();
        let strings = match text.is_empty() {
            true => vec![Vec::new()],
            false => text.chunks(STRING_BYTES_MAX).map(<[u8]>::to_vec).collect(),
        };
        Self { strings, owner: None, ttl_secs: TTL_SECS }
    }
}

/// A record of any type, given by the text of its data as in a zone file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Any {
    rtype: Type,
    rdata: Vec<u8>,
    owner: Option<Name>,
    ttl_secs: u32,
}

impl Any {
    /// Makes a record of a type, such as `Any::new(Type::CAA, "0 issue \"ca.example.net\"")`. Names
    /// end at the root, with or without a final dot; data of any type may be given as `\#`
    /// (rfc3597#5).
    ///
    /// # Errors
    /// When the text does not fit the type.
    pub fn new(rtype: Type, text: &str) -> Result<Self, DataError> {
        Ok(Self { rtype, rdata: rdata_of(rtype, text)?, owner: None, ttl_secs: TTL_SECS })
    }

    /// Sets the time to live, seconds; more than 2147483647 counts as that (rfc2181#8).
    #[must_use]
    pub fn ttl(mut self, secs: u32) -> Self {
        self.ttl_secs = secs.min(TTL_SECS_MAX);
        self
    }

    /// Sets the owner; without it, the owner is the name asked for.
    #[must_use]
    pub fn of(mut self, owner: Name) -> Self {
        self.owner = Some(owner);
        self
    }
}

impl Record for Any {
    fn rtype(&self) -> Type {
        self.rtype
    }

    fn ttl_secs(&self) -> u32 {
        self.ttl_secs
    }

    fn owner(&self) -> Option<&Name> {
        self.owner.as_ref()
    }

    fn write_rdata(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.rdata);
    }
}

impl IntoReply for Any {
    fn into_reply(self, reply: &mut Reply) -> Result<(), Failure> {
        reply.answer(self);
        Ok(())
    }
}

/// An error in the data of a record, or in their text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataError {
    /// Type of the record; none if a line is not a record of any type.
    rtype: Option<Type>,
    /// What is wrong.
    error: String,
}

impl DataError {
    /// Makes the error of a record of a type.
    fn of(rtype: Type, error: &dyn fmt::Display) -> Self {
        Self { rtype: Some(rtype), error: error.to_string() }
    }

    /// Returns the code of the error, `ZONDA_RECORD`, as [`Error::code`](crate::Error::code) does.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "ZONDA_RECORD"
    }
}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rtype {
            Some(rtype) => write!(f, "{rtype} record: {}", self.error),
            None => f.write_str(&self.error),
        }
    }
}

impl std::error::Error for DataError {}

/// Returns the data of a type that a text says.
fn rdata_of(rtype: Type, text: &str) -> Result<Vec<u8>, DataError> {
    from_text(rtype, text).map_err(|error| DataError::of(rtype, &error))
}

/// Returns what `make` makes, if its data fit its type.
fn checked<R: Record>(
    rtype: Type,
    make: impl FnOnce() -> Result<R, RdataError>,
) -> Result<R, DataError> {
    let check = || -> Result<R, RdataError> {
        let record = make()?;
        let mut rdata = Vec::new();
        record.write_rdata(&mut rdata);
        Fields::of(rtype, &rdata)?;
        Ok(record)
    };
    check().map_err(|error| DataError::of(rtype, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::str::FromStr;
    use zonda_wire::rdata::schema;

    /// A record of each type that the core knows, its type and data.
    const SAMPLES: &str = include_str!("../../../../tests/records.txt");

    /// Returns the samples' types and texts.
    fn samples() -> impl Iterator<Item = (Type, &'static str)> {
        let lines = SAMPLES.lines().filter(|line| !line.starts_with(';'));
        lines.map(|line| {
            let (rtype, text) = line.split_once(' ').unwrap();
            (rtype.parse().unwrap(), text)
        })
    }

    fn rdata(record: &impl Record) -> Vec<u8> {
        let mut out = Vec::new();
        record.write_rdata(&mut out);
        out
    }

    /// Returns the data of text as a typed record writes them, and the text that it is printed as;
    /// nothing if no structure is there for the type.
    fn through_the_type(rtype: Type, text: &str) -> Option<(Vec<u8>, String)> {
        macro_rules! types {
            ($($name:ident)*) => {
                match rtype {
                    $(rtype if rtype == $name::TYPE => {
                        let record: $name = text.parse().unwrap();
                        assert_eq!((record.rtype(), record.ttl_secs()), (rtype, TTL_SECS));
                        assert_eq!($name::from_rdata(&rdata(&record)).as_ref(), Ok(&record));
                        Some((rdata(&record), record.to_string()))
                    })*
                    _ => None,
                }
            };
        }
        types! {
            A Aaaa Cname Dname Ns Ptr Soa Mx Txt Srv Caa Naptr Svcb Https Uri Hinfo Rp Loc Afsdb
            Apl Ds Cds Dlv Ta Dnskey Cdnskey Key Rkey Rrsig Sig Nsec Nsec3 Nsec3param Nxt Csync
            Zonemd Tlsa Smimea Sshfp Openpgpkey Cert Dhcid Ipseckey Hip Talink Dsync Md Mf Mb Mg
            Mr Minfo Wks X25 Isdn Rt Nsap NsapPtr Px Gpos Eid Nimloc Atma Kx A6 Sink Ninfo Hhit
            Brid Spf Nid L32 L64 Lp Eui48 Eui64 Avc Doa Amtrelay Resinfo Wallet Cla Ipn
            Alias
        }
    }

    #[test]
    fn a_record_of_each_type_is_by_its_fields_what_its_text_says() {
        for (rtype, text) in samples() {
            let (octets, printed) = through_the_type(rtype, text)
                .unwrap_or_else(|| panic!("{rtype} has no structure in crates/app/src/record"));
            assert_eq!(octets, Any::new(rtype, text).unwrap().rdata, "{rtype} {text}");
            assert_eq!(printed, text, "{rtype}");
        }
    }

    #[test]
    fn every_type_of_the_schema_has_a_sample() {
        for schema in schema::all() {
            let found = samples().any(|(rtype, _)| rtype == schema.rtype);
            assert!(found, "{} has no line in tests/records.txt", schema.rtype);
        }
    }

    #[test]
    fn constructors_make_what_the_text_says() {
        fn same<R: Record + FromStr>(typed: R, text: &str)
        where
            R::Err: fmt::Debug,
        {
            assert_eq!(rdata(&text.parse::<R>().unwrap()), rdata(&typed), "{text}");
            assert_eq!(typed.ttl_secs(), 300);
        }
        same(A::new([192, 0, 2, 1]), "192.0.2.1");
        same(Aaaa::new([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]), "2001:db8::1");
        same(Cname::new("www.example.org").unwrap(), "www.example.org.");
        same(Ns::new("ns.example.org").unwrap(), "ns.example.org.");
        same(Ptr::new("host.example.org").unwrap(), "host.example.org.");
        same(Mx::new(10, "mx.example.org").unwrap(), "10 mx.example.org");
        same(Srv::new(1, 2, 53, "ns.example.org").unwrap(), "1 2 53 ns.example.org");
        same(Txt::new("two words"), "\"two words\"");
        same(
            Soa::new("ns.example", "h.example", 1, 2, 3, 4, 5).unwrap(),
            "ns.example h.example 1 2 3 4 5",
        );
        same(
            Nsec::new("b.example", &[Type::MX, Type::A, Type(1234)]).unwrap(),
            "b.example. A MX TYPE1234",
        );
        same(Csync::new(66, 3, &[Type::A, Type::NS]), "66 3 NS A");
        same(Isdn::new("150862028003217", None).unwrap(), "150862028003217");
        same(Apl::new([]).unwrap(), "");
        same(Resinfo::new(&["qnamemin"]).unwrap(), "qnamemin");
        let gateway = Gateway::Ipv4(Ipv4Addr::new(192, 0, 2, 38));
        same(Ipseckey::new(10, 2, gateway, [1, 2, 3]), "10 1 2 192.0.2.38 AQID");
        let relay = Gateway::Name("relay.example".parse().unwrap());
        same(Amtrelay::new(10, true, relay), "10 1 3 relay.example.");
        let params = [SvcParam::Port(53), SvcParam::alpn(["dot"]), SvcParam::Mandatory(vec![3, 1])];
        same(
            Svcb::new(1, "x.example", params).unwrap(),
            "1 x.example mandatory=alpn,port alpn=dot port=53",
        );
    }

    #[test]
    fn a_constructor_names_the_wrong_field() {
        let error = |error: Option<DataError>| error.unwrap().to_string();
        let too_long = error(Hinfo::new("x".repeat(256), "os").err());
        assert!(too_long.starts_with("HINFO record: cpu: "), "{too_long}");
        let no_name = error(Naptr::new(1, 1, "", "", "", "a..b").err());
        assert!(no_name.starts_with("NAPTR record: replacement: "), "{no_name}");
        let tag = error(Caa::new(0, "is sue", "").err());
        assert!(tag.starts_with("CAA record: tag: "), "{tag}");
        let digest = error(Ds::new(1, 8, 2, [0; 31]).err());
        assert!(digest.starts_with("DS record: digest: "), "{digest}");
        let twice = [SvcParam::Port(1), SvcParam::Port(2)];
        let twice = error(Https::new(1, ".", twice).err());
        assert!(twice.starts_with("HTTPS record: svc_params: "), "{twice}");
        assert!(Mx::from_rdata(&[0]).is_err());
        assert!(Nxt::new("a", &[Type::CAA]).is_err(), "it holds no type above 127");
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let place = "0 0 0 N 0 0 0 E 0m".parse::<Loc>().unwrap().location;
        assert!(Loc::new(place).is_ok());
        assert!(Loc::new(Location { latitude_arc_millis: i32::MAX, ..place }).is_err());
        assert!(Loc::new(Location { altitude_centimetres: i64::MAX, ..place }).is_err());
        assert!(Loc::new(Location { size_centimetres: u64::MAX, ..place }).is_err());
        let prefix = AddressPrefix { negated: true, address: [192, 0, 2, 0].into(), bits: 33 };
        assert!(Apl::new([prefix]).is_err());
        let identity = HostIdentity { algorithm: 2, tag: vec![0; 256], public_key: vec![0] };
        assert!(Hip::new(identity, &[]).is_err());
        let a6 = A6Prefix { bits: 129, suffix: Ipv6Addr::LOCALHOST, name: None };
        assert!(A6::new(a6).is_err());
        assert!(Atma::new(AtmAddress::Number("1a".into())).is_err());
    }

    #[test]
    fn a_long_text_is_split_and_an_empty_one_is_one_string() {
        let long = rdata(&Txt::new("x".repeat(300)));
        assert_eq!((long.len(), long[0], long[256]), (302, 255, 45));
        assert_eq!(rdata(&Txt::new("")), [0]);
    }

    #[test]
    fn a_text_that_does_not_fit_its_type_is_refused_with_the_reason() {
        let error = |rtype, text| Any::new(rtype, text).unwrap_err().to_string();
        assert!(error(Type::A, "192.0.2").starts_with("A record: "), "{}", error(Type::A, "1"));
        assert!(error(Type::TXT, "\"open").contains("quote"));
        assert!(error(Type::MX, "10").starts_with("MX record: "));
    }
}
