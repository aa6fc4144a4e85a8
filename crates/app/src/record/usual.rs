//! Records of the types that most zones have, and what else says where services are.

use super::field;
use super::value::{AddressPrefix, Location, SvcParam};
use super::{DataError, TTL_SECS, checked, rdata_of};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use zonda_engine::code::Record;
use zonda_wire::rdata::Presentation;
use zonda_wire::{Name, Type};

record! {
    /// An IPv4 address (rfc1035#3.4.1).
    A = A {
        /// IPv4 address of the owner.
        address: Ipv4Addr = Ipv4;
    }
}

record! {
    /// An IPv6 address (rfc3596#2.2).
    Aaaa = AAAA {
        /// IPv6 address of the owner.
        address: Ipv6Addr = Ipv6;
    }
}

record! {
    /// The name that this one is an alias of (rfc1035#3.3.1).
    Cname = CNAME {
        /// Canonical name, to which the alias leads.
        target: Name = OneName;
    }
}

record! {
    /// The name below which names below this one have their aliases (rfc6672).
    Dname = DNAME, checked {
        /// Name below which the aliases lead.
        target: Name = OneName, &str => field::name("target", target)?;
    }
}

record! {
    /// A name server of the zone (rfc1035#3.3.11).
    Ns = NS {
        /// Name of the name server.
        target: Name = OneName;
    }
}

record! {
    /// The name of an address (rfc1035#3.3.12).
    Ptr = PTR {
        /// Name of the address.
        target: Name = OneName;
    }
}

record! {
    /// Where a zone begins, and how it is kept (rfc1035#3.3.13).
    Soa = SOA, checked {
        /// The primary server.
        mname: Name = OneName, &str => field::name("mname", mname)?;
        /// Mailbox of the responsible person, its `@` a dot.
        rname: Name = OneName, &str => field::name("rname", rname)?;
        /// Serial number: the version of the zone.
        serial: u32 = U32, u32 => serial;
        /// Interval at which secondaries ask for a newer version, seconds.
        refresh: u32 = U32, u32 => refresh;
        /// Interval after a failed attempt, seconds.
        retry: u32 = U32, u32 => retry;
        /// Time for which secondaries serve the zone without its primary, seconds.
        expire: u32 = U32, u32 => expire;
        /// TTL of negative answers, seconds (rfc2308#4).
        minimum: u32 = U32, u32 => minimum;
    }
}

record! {
    /// Where mail is delivered (rfc1035#3.3.9).
    Mx = MX {
        /// Preference: the lowest is tried first.
        preference: u16 = U16;
        /// The mail server.
        exchange: Name = OneName;
    }
}

record! {
    /// Text strings (rfc1035#3.3.14).
    Txt = TXT {
        /// The strings, each of at most 255 octets; at least one.
        strings: Vec<Vec<u8>> = CharStrings;
    }
}

record! {
    /// Where a service is offered (rfc2782).
    Srv = SRV {
        /// Priority: the lowest is tried first.
        priority: u16 = U16;
        /// Share of the queries among records of one priority.
        weight: u16 = U16;
        /// Port of the service.
        port: u16 = U16;
        /// Host of the service.
        target: Name = OneName;
    }
}

record! {
    /// Which authorities may issue certificates (rfc8659#4).
    Caa = CAA, checked {
        /// 128: an authority that does not know the tag must not issue.
        flags: u8 = U8, u8 => flags;
        /// Property: `issue`, `issuewild`, `iodef`; letters and digits.
        tag: String = Tag, &str => tag.to_owned();
        /// What the tag asks for, such as the authority's name.
        value: Vec<u8> = Octets, impl AsRef<[u8]> => value.as_ref().to_vec();
    }
}

record! {
    /// A rule that makes another name or a URI of a name (rfc3403#4).
    Naptr = NAPTR, checked {
        /// Order: the lowest is applied first.
        order: u16 = U16, u16 => order;
        /// Preference among rules of one order: the lowest first.
        preference: u16 = U16, u16 => preference;
        /// What the rule leads to: `s`, `a`, `u`, `p` or nothing.
        flags: Vec<u8> = CharString, impl AsRef<[u8]> => field::string("flags", flags)?;
        /// The services that are offered.
        services: Vec<u8> = CharString, impl AsRef<[u8]> => field::string("services", services)?;
        /// How to rewrite the name; empty if `replacement` says it.
        regexp: Vec<u8> = CharString, impl AsRef<[u8]> => field::string("regexp", regexp)?;
        /// The next name; the root if `regexp` says it.
        replacement: Name = OneName, &str => field::name("replacement", replacement)?;
    }
}

record! {
    /// Where and how a service is offered (rfc9460#2).
    Svcb = SVCB, checked {
        /// Priority: the lowest is tried first; 0 makes the record an alias.
        priority: u16 = U16, u16 => priority;
        /// The host; the root stands for the name itself.
        target: Name = OneName, &str => field::name("target", target)?;
        /// Parameters of the service, each key once.
        params: Vec<SvcParam> = SvcParams, impl Into<Vec<SvcParam>> => params.into();
    }
}

record! {
    /// Where and how a web site is offered (rfc9460#9).
    Https = HTTPS, checked {
        /// Priority: the lowest is tried first; 0 makes the record an alias.
        priority: u16 = U16, u16 => priority;
        /// The host; the root stands for the name itself.
        target: Name = OneName, &str => field::name("target", target)?;
        /// Parameters of the service, each key once.
        params: Vec<SvcParam> = SvcParams, impl Into<Vec<SvcParam>> => params.into();
    }
}

record! {
    /// The URI of a service (rfc7553).
    Uri = URI, sound {
        /// Priority: the lowest is tried first.
        priority: u16 = U16, u16 => priority;
        /// Share of the queries among records of one priority.
        weight: u16 = U16, u16 => weight;
        /// URI of the service.
        target: Vec<u8> = Octets, impl AsRef<[u8]> => target.as_ref().to_vec();
    }
}

record! {
    /// What a host is (rfc1035#3.3.2), or why ANY is not answered in full (rfc8482).
    Hinfo = HINFO, checked {
        /// Machine of the host.
        cpu: Vec<u8> = CharString, impl AsRef<[u8]> => field::string("cpu", cpu)?;
        /// Operating system of the host.
        os: Vec<u8> = CharString, impl AsRef<[u8]> => field::string("os", os)?;
    }
}

record! {
    /// The person responsible for a name (rfc1183#2.2).
    Rp = RP, checked {
        /// Mailbox of the person, its `@` a dot.
        mbox: Name = OneName, &str => field::name("mbox", mbox)?;
        /// Name with TXT records that say more.
        txt: Name = OneName, &str => field::name("txt", txt)?;
    }
}

record! {
    /// Location of a host or network (rfc1876).
    Loc = LOC, checked {
        /// Position, size and precision.
        location: Location = Place, Location => location;
    }
}

record! {
    /// Database server of a cell (rfc1183#1).
    Afsdb = AFSDB, checked {
        /// Kind of cell: 1 for AFS, 2 for DCE.
        subtype: u16 = U16, u16 => subtype;
        /// Name of the server.
        hostname: Name = OneName, &str => field::name("hostname", hostname)?;
    }
}

record! {
    /// Prefixes of addresses (rfc3123).
    Apl = APL, checked {
        /// Prefixes of the list, each perhaps negated.
        prefixes: Vec<AddressPrefix> = Prefixes, impl Into<Vec<AddressPrefix>> => prefixes.into();
    }
}
