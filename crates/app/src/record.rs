//! Records of the usual types, and of any type by its text.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use zonda_engine::handlers::Record;
use zonda_wire::rdata::parse::{parse, tokens};
use zonda_wire::{Name, NameError, Type};

/// The time to live of a record that says nothing else, seconds.
const TTL_SECS: u32 = 300;

/// Declares a type of record: its number, its data, and how they are written.
macro_rules! record {
    ($(#[$doc:meta])* $name:ident = $rtype:expr;
     $($(#[$field_doc:meta])* $field:ident: $kind:ty,)*
     |$data:ident, $out:ident| $write:block) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $kind,)*
            owner: Option<Name>,
            ttl_secs: u32,
        }

        impl $name {
            /// Of the name asked for, with a time to live of 300 seconds.
            fn with($($field: $kind,)*) -> Self {
                Self { $($field,)* owner: None, ttl_secs: TTL_SECS }
            }

            /// With another time to live, seconds.
            #[must_use]
            pub fn ttl(mut self, secs: u32) -> Self {
                self.ttl_secs = secs;
                self
            }

            /// Of another name.
            #[must_use]
            pub fn of(mut self, owner: Name) -> Self {
                self.owner = Some(owner);
                self
            }
        }

        impl Record for $name {
            fn rtype(&self) -> Type {
                $rtype
            }

            fn ttl_secs(&self) -> u32 {
                self.ttl_secs
            }

            fn owner(&self) -> Option<&Name> {
                self.owner.as_ref()
            }

            fn write_rdata(&self, $out: &mut Vec<u8>) {
                let $data = self;
                $write
            }
        }
    };
}

record! {
    /// An IPv4 address (rfc1035#3.4.1).
    A = Type::A;
    /// The address.
    address: Ipv4Addr,
    |data, out| { out.extend_from_slice(&data.address.octets()); }
}

impl A {
    /// An address.
    pub fn new(address: impl Into<Ipv4Addr>) -> Self {
        Self::with(address.into())
    }
}

record! {
    /// An IPv6 address (rfc3596#2.2).
    Aaaa = Type::AAAA;
    /// The address.
    address: Ipv6Addr,
    |data, out| { out.extend_from_slice(&data.address.octets()); }
}

impl Aaaa {
    /// An address.
    pub fn new(address: impl Into<Ipv6Addr>) -> Self {
        Self::with(address.into())
    }
}

/// Declares a type whose data are one name.
macro_rules! name_record {
    ($(#[$doc:meta])* $name:ident = $rtype:expr) => {
        record! {
            $(#[$doc])*
            $name = $rtype;
            /// The name.
            target: Name,
            |data, out| { out.extend_from_slice(data.target.as_wire()); }
        }

        impl $name {
            /// A name.
            ///
            /// # Errors
            /// When the text is no name.
            pub fn new(target: &str) -> Result<Self, NameError> {
                Ok(Self::with(target.parse()?))
            }
        }
    };
}

name_record! {
    /// The name that this one is an alias of (rfc1035#3.3.1).
    Cname = Type::CNAME
}
name_record! {
    /// A name server of the zone (rfc1035#3.3.11).
    Ns = Type::NS
}
name_record! {
    /// The name of an address (rfc1035#3.3.12).
    Ptr = Type::PTR
}

record! {
    /// Where mail is delivered (rfc1035#3.3.9).
    Mx = Type::MX;
    /// The lower, the earlier it is tried.
    preference: u16,
    /// The mail server.
    exchange: Name,
    |data, out| {
        out.extend_from_slice(&data.preference.to_be_bytes());
        out.extend_from_slice(data.exchange.as_wire());
    }
}

impl Mx {
    /// A mail server.
    ///
    /// # Errors
    /// When the text is no name.
    pub fn new(preference: u16, exchange: &str) -> Result<Self, NameError> {
        Ok(Self::with(preference, exchange.parse()?))
    }
}

record! {
    /// Where a service is offered (rfc2782).
    Srv = Type::SRV;
    /// The lower, the earlier it is tried.
    priority: u16,
    /// Its share among those of one priority.
    weight: u16,
    /// Its port.
    port: u16,
    /// Its host.
    target: Name,
    |data, out| {
        for number in [data.priority, data.weight, data.port] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        out.extend_from_slice(data.target.as_wire());
    }
}

impl Srv {
    /// A service's host and port.
    ///
    /// # Errors
    /// When the text is no name.
    pub fn new(priority: u16, weight: u16, port: u16, target: &str) -> Result<Self, NameError> {
        Ok(Self::with(priority, weight, port, target.parse()?))
    }
}

record! {
    /// Text (rfc1035#3.3.14).
    Txt = Type::TXT;
    /// The strings, each of at most 255 octets; at least one.
    strings: Vec<Vec<u8>>,
    |data, out| {
        for string in &data.strings {
            let string = &string[..string.len().min(STRING_BYTES_MAX)];
            out.push(string.len() as u8); // at most STRING_BYTES_MAX
            out.extend_from_slice(string);
        }
    }
}

/// Octets of a string in a TXT record.
const STRING_BYTES_MAX: usize = 255;

impl Txt {
    /// A text, in as many strings as it needs.
    pub fn new(text: impl AsRef<[u8]>) -> Self {
        let text = text.as_ref();
        match text.is_empty() {
            true => Self::with(vec![Vec::new()]),
            false => Self::with(text.chunks(STRING_BYTES_MAX).map(<[u8]>::to_vec).collect()),
        }
    }
}

/// A record of any type, given by the text of its data as in a zone file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Any {
    rtype: Type,
    rdata: Vec<u8>,
    owner: Option<Name>,
    ttl_secs: u32,
}

/// The text of a record's data is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// What was asked for.
    rtype: Type,
    /// What is wrong.
    error: String,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} record: {}", self.rtype, self.error)
    }
}

impl std::error::Error for TextError {}

impl Any {
    /// A record of a type, such as `Any::new(Type::CAA, "0 issue \"ca.example.net\"")`. Names end
    /// at the root, with or without a final dot; data of any type may be given as `\#` (rfc3597#5).
    ///
    /// # Errors
    /// When the text does not fit the type.
    pub fn new(rtype: Type, text: &str) -> Result<Self, TextError> {
        let wrong = |error: String| TextError { rtype, error };
        let tokens =
            tokens(text.as_bytes()).ok_or_else(|| wrong("a quote is not closed".into()))?;
        let mut rdata = Vec::new();
        parse(rtype, &tokens, &[0], &mut rdata).map_err(|error| wrong(error.error.to_string()))?;
        Ok(Self { rtype, rdata, owner: None, ttl_secs: TTL_SECS })
    }

    /// With another time to live, seconds.
    #[must_use]
    pub fn ttl(mut self, secs: u32) -> Self {
        self.ttl_secs = secs;
        self
    }

    /// Of another name.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn rdata(record: &impl Record) -> Vec<u8> {
        let mut out = Vec::new();
        record.write_rdata(&mut out);
        out
    }

    #[test]
    fn typed_records_are_what_their_text_says() {
        let same = |typed: &dyn Record, text: &str| {
            let any = Any::new(typed.rtype(), text).unwrap();
            let mut octets = Vec::new();
            typed.write_rdata(&mut octets);
            assert_eq!(octets, any.rdata, "{text}");
            assert_eq!(typed.ttl_secs(), 300);
        };
        same(&A::new([192, 0, 2, 1]), "192.0.2.1");
        same(&Aaaa::new([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]), "2001:db8::1");
        same(&Cname::new("www.example.org").unwrap(), "www.example.org.");
        same(&Mx::new(10, "mx.example.org").unwrap(), "10 mx.example.org");
        same(&Srv::new(1, 2, 53, "ns.example.org").unwrap(), "1 2 53 ns.example.org");
        same(&Txt::new("two words"), "\"two words\"");
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
