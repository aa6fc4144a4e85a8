//! Numbers of the protocol and their names: types, classes, response codes, operation codes.
//!
//! Each is a newtype over the number on the wire, so that unknown numbers are ordinary values
//! (rfc3597).

use std::fmt;
use std::str::FromStr;

/// Declares the constants of a newtype over a wire number and its table of mnemonics.
macro_rules! codes {
    ($(#[$doc:meta])* $name:ident($int:ty) {
        $($(#[$cdoc:meta])* $konst:ident = $value:literal $text:literal,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub $int);

        impl $name {
            $(#[doc = $text] pub const $konst: Self = Self($value);)*

            /// Every number that has a mnemonic, in ascending order.
            pub const KNOWN: &'static [(Self, &'static str)] = &[$((Self($value), $text),)*];

            /// Returns the mnemonic, if the number has one.
            #[must_use]
            pub fn mnemonic(self) -> Option<&'static str> {
                let found = Self::KNOWN.binary_search_by_key(&self, |known| known.0);
                found.ok().map(|at| Self::KNOWN[at].1)
            }

            /// Returns the number behind a mnemonic, case ignored.
            #[must_use]
            pub fn from_mnemonic(text: &str) -> Option<Self> {
                Self::KNOWN.iter().find(|known| known.1.eq_ignore_ascii_case(text)).map(|k| k.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

codes! {
    /// A record or question type (rfc1035#3.2.2 and the IANA registry).
    Type(u16) {
        A = 1 "A", NS = 2 "NS", MD = 3 "MD", MF = 4 "MF", CNAME = 5 "CNAME", SOA = 6 "SOA",
        MB = 7 "MB", MG = 8 "MG", MR = 9 "MR", NULL = 10 "NULL", WKS = 11 "WKS", PTR = 12 "PTR",
        HINFO = 13 "HINFO", MINFO = 14 "MINFO", MX = 15 "MX", TXT = 16 "TXT", RP = 17 "RP",
        AFSDB = 18 "AFSDB", X25 = 19 "X25", ISDN = 20 "ISDN", RT = 21 "RT", NSAP = 22 "NSAP",
        NSAP_PTR = 23 "NSAP-PTR", SIG = 24 "SIG", KEY = 25 "KEY", PX = 26 "PX", GPOS = 27 "GPOS",
        AAAA = 28 "AAAA", LOC = 29 "LOC", NXT = 30 "NXT", EID = 31 "EID", NIMLOC = 32 "NIMLOC",
        SRV = 33 "SRV", ATMA = 34 "ATMA", NAPTR = 35 "NAPTR", KX = 36 "KX", CERT = 37 "CERT",
        A6 = 38 "A6", DNAME = 39 "DNAME", SINK = 40 "SINK", OPT = 41 "OPT", APL = 42 "APL",
        DS = 43 "DS", SSHFP = 44 "SSHFP", IPSECKEY = 45 "IPSECKEY", RRSIG = 46 "RRSIG",
        NSEC = 47 "NSEC", DNSKEY = 48 "DNSKEY", DHCID = 49 "DHCID", NSEC3 = 50 "NSEC3",
        NSEC3PARAM = 51 "NSEC3PARAM", TLSA = 52 "TLSA", SMIMEA = 53 "SMIMEA", HIP = 55 "HIP",
        NINFO = 56 "NINFO", RKEY = 57 "RKEY", TALINK = 58 "TALINK", CDS = 59 "CDS",
        CDNSKEY = 60 "CDNSKEY", OPENPGPKEY = 61 "OPENPGPKEY", CSYNC = 62 "CSYNC",
        ZONEMD = 63 "ZONEMD", SVCB = 64 "SVCB", HTTPS = 65 "HTTPS", DSYNC = 66 "DSYNC",
        HHIT = 67 "HHIT", BRID = 68 "BRID", SPF = 99 "SPF", UINFO = 100 "UINFO", UID = 101 "UID",
        GID = 102 "GID", UNSPEC = 103 "UNSPEC", NID = 104 "NID", L32 = 105 "L32", L64 = 106 "L64",
        LP = 107 "LP", EUI48 = 108 "EUI48", EUI64 = 109 "EUI64", NXNAME = 128 "NXNAME",
        TKEY = 249 "TKEY", TSIG = 250 "TSIG", IXFR = 251 "IXFR", AXFR = 252 "AXFR",
        MAILB = 253 "MAILB", MAILA = 254 "MAILA", ANY = 255 "ANY", URI = 256 "URI", CAA = 257 "CAA",
        AVC = 258 "AVC", DOA = 259 "DOA", AMTRELAY = 260 "AMTRELAY", RESINFO = 261 "RESINFO",
        WALLET = 262 "WALLET", CLA = 263 "CLA", IPN = 264 "IPN", TA = 32768 "TA",
        DLV = 32769 "DLV", ALIAS = 65401 "ALIAS",
    }
}

impl Type {
    /// Whether the number can only be asked for or be carried by a message, never stored in a zone
    /// (rfc6895#3.1): OPT and the range 128–255.
    #[must_use]
    pub fn is_meta(self) -> bool {
        self == Self::OPT || (128..=255).contains(&self.0)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mnemonic() {
            Some(text) => f.pad(text),
            None => f.pad(&format!("TYPE{}", self.0)), // rfc3597#5
        }
    }
}

/// A type's or a class's text is neither a mnemonic nor of the form `TYPE123` / `CLASS123`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownMnemonic;

impl fmt::Display for UnknownMnemonic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown mnemonic")
    }
}

impl std::error::Error for UnknownMnemonic {}

/// Returns the number of `TYPE123` or `CLASS123`.
fn numbered(text: &str, prefix: &str) -> Result<u16, UnknownMnemonic> {
    let (head, digits) = text.split_at_checked(prefix.len()).ok_or(UnknownMnemonic)?;
    let digits_only = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if !head.eq_ignore_ascii_case(prefix) || !digits_only {
        return Err(UnknownMnemonic);
    }
    digits.parse().map_err(|_| UnknownMnemonic)
}

impl Type {
    /// Returns the type behind a name that other servers give it, case ignored.
    fn from_other_mnemonic(text: &str) -> Option<Self> {
        text.eq_ignore_ascii_case("ANAME").then_some(Self::ALIAS)
    }

    /// Returns the type that a mnemonic or `TYPE123` in a zone file stands for.
    ///
    /// Tries the types that fill zone files before it searches, as a load spends its time here.
    #[must_use]
    #[inline]
    pub fn from_text(text: &[u8]) -> Option<Self> {
        Some(match text {
            b"A" => Self::A,
            b"NS" => Self::NS,
            b"MX" => Self::MX,
            b"DS" => Self::DS,
            b"TXT" => Self::TXT,
            b"SOA" => Self::SOA,
            b"PTR" => Self::PTR,
            b"SRV" => Self::SRV,
            b"AAAA" => Self::AAAA,
            b"NSEC" => Self::NSEC,
            b"CNAME" => Self::CNAME,
            b"RRSIG" => Self::RRSIG,
            b"NSEC3" => Self::NSEC3,
            b"DNSKEY" => Self::DNSKEY,
            rare => {
                let rare = std::str::from_utf8(rare).ok()?;
                let known = Self::from_mnemonic(rare).or_else(|| Self::from_other_mnemonic(rare));
                return known.or_else(|| numbered(rare, "TYPE").ok().map(Self));
            }
        })
    }
}

impl FromStr for Type {
    type Err = UnknownMnemonic;

    fn from_str(text: &str) -> Result<Self, UnknownMnemonic> {
        match Self::from_text(text.as_bytes()) {
            Some(known) => Ok(known),
            None if text == "*" => Ok(Self::ANY),
            None => Err(UnknownMnemonic),
        }
    }
}

codes! {
    /// A record or question class (rfc1035#3.2.4).
    Class(u16) {
        IN = 1 "IN", CS = 2 "CS", CH = 3 "CH", HS = 4 "HS", NONE = 254 "NONE", ANY = 255 "ANY",
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mnemonic() {
            Some(text) => f.pad(text),
            None => f.pad(&format!("CLASS{}", self.0)), // rfc3597#5
        }
    }
}

impl FromStr for Class {
    type Err = UnknownMnemonic;

    fn from_str(text: &str) -> Result<Self, UnknownMnemonic> {
        Self::from_mnemonic(text).map_or_else(|| numbered(text, "CLASS").map(Self), Ok)
    }
}

codes! {
    /// A response code; values above 15 need an OPT record (rfc6891#6.1.3).
    Rcode(u16) {
        NOERROR = 0 "NOERROR", FORMERR = 1 "FORMERR", SERVFAIL = 2 "SERVFAIL",
        NXDOMAIN = 3 "NXDOMAIN", NOTIMP = 4 "NOTIMP", REFUSED = 5 "REFUSED",
        YXDOMAIN = 6 "YXDOMAIN", YXRRSET = 7 "YXRRSET", NXRRSET = 8 "NXRRSET",
        NOTAUTH = 9 "NOTAUTH", NOTZONE = 10 "NOTZONE", BADVERS = 16 "BADVERS",
        BADKEY = 17 "BADKEY", BADTIME = 18 "BADTIME", BADMODE = 19 "BADMODE",
        BADNAME = 20 "BADNAME", BADALG = 21 "BADALG", BADTRUNC = 22 "BADTRUNC",
        BADCOOKIE = 23 "BADCOOKIE",
    }
}

impl fmt::Display for Rcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mnemonic() {
            Some(text) => f.pad(text),
            None => f.pad(&format!("RCODE{}", self.0)),
        }
    }
}

codes! {
    /// An operation code, 0–15 (rfc1035#4.1.1, rfc6895#2.2).
    Opcode(u8) {
        QUERY = 0 "QUERY", IQUERY = 1 "IQUERY", STATUS = 2 "STATUS", NOTIFY = 4 "NOTIFY",
        UPDATE = 5 "UPDATE", DSO = 6 "DSO",
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mnemonic() {
            Some(text) => f.pad(text),
            None => f.pad(&format!("OPCODE{}", self.0)),
        }
    }
}

codes! {
    /// An extended error's info code (rfc8914#4).
    Ede(u16) {
        OTHER = 0 "Other Error", STALE_ANSWER = 3 "Stale Answer", FORGED_ANSWER = 4 "Forged Answer",
        CACHED_ERROR = 13 "Cached Error", NOT_READY = 14 "Not Ready", BLOCKED = 15 "Blocked",
        CENSORED = 16 "Censored",
        FILTERED = 17 "Filtered", PROHIBITED = 18 "Prohibited",
        STALE_NXDOMAIN_ANSWER = 19 "Stale NXDOMAIN Answer",
        NOT_AUTHORITATIVE = 20 "Not Authoritative",
        NOT_SUPPORTED = 21 "Not Supported", NO_REACHABLE_AUTHORITY = 22 "No Reachable Authority",
        NETWORK_ERROR = 23 "Network Error", INVALID_DATA = 24 "Invalid Data",
    }
}

impl fmt::Display for Ede {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.mnemonic().unwrap_or("Unassigned"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_mnemonics_are_in_ascending_order() {
        assert!(Type::KNOWN.is_sorted_by_key(|known| known.0));
        assert!(Rcode::KNOWN.is_sorted_by_key(|known| known.0));
        assert!(Ede::KNOWN.is_sorted_by_key(|known| known.0));
    }

    #[test]
    fn types_are_read_by_mnemonic_and_by_number() {
        assert_eq!("nsap-ptr".parse(), Ok(Type::NSAP_PTR));
        assert_eq!("type65".parse(), Ok(Type::HTTPS));
        assert_eq!("TYPE65536".parse::<Type>(), Err(UnknownMnemonic));
        assert_eq!("TYPE".parse::<Type>(), Err(UnknownMnemonic));
        assert_eq!("TYPE+1".parse::<Type>(), Err(UnknownMnemonic));
        assert_eq!(Type(4711).to_string(), "TYPE4711");
        for alias in ["ALIAS", "alias", "aname", "TYPE65401"] {
            assert_eq!(alias.parse(), Ok(Type::ALIAS));
        }
        assert_eq!(Type::ALIAS.to_string(), "ALIAS");
    }
}
