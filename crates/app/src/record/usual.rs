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
        /// The address.
        address: Ipv4Addr = Ipv4;
    }
}

record! {
    /// An IPv6 address (rfc3596#2.2).
    Aaaa = AAAA {
        /// The address.
        address: Ipv6Addr = Ipv6;
    }
}

record! {
    /// The name that this one is an alias of (rfc1035#3.3.1).
    Cname = CNAME {
        /// The name.
        target: Name = OneName;
    }
}

record! {
    /// The name that those below this one are aliases below of (rfc6672).
    Dname = DNAME, checked {
        /// The name.
        target: Name = OneName, &str => field::name("target", target)?;
    }
}

record! {
    /// A name server of the zone (rfc1035#3.3.11).
    Ns = NS {
        /// The name.
        target: Name = OneName;
    }
}

record! {
    /// The name of an address (rfc1035#3.3.12).
    Ptr = PTR {
        /// The name.
        target: Name = OneName;
    }
}

record! {
    /// Where a zone begins, and how it is kept (rfc1035#3.3.13).
    Soa = SOA, checked {
        /// The primary server.
        mname: Name = OneName, &str => field::name("mname", mname)?;
        /// The mailbox of who is responsible, its `@` a dot.
        rname: Name = OneName, &str => field::name("rname", rname)?;
        /// The version.
        serial: u32 = U32, u32 => serial;
        /// How often secondaries ask for a newer version, seconds.
        refresh: u32 = U32, u32 => refresh;
        /// How soon they ask again when that fails, seconds.
        retry: u32 = U32, u32 => retry;
        /// How long they serve the zone without, seconds.
        expire: u32 = U32, u32 => expire;
        /// For how long it holds that a name does not exist, seconds (rfc2308#4).
        minimum: u32 = U32, u32 => minimum;
    }
}

record! {
    /// Where mail is delivered (rfc1035#3.3.9).
    Mx = MX {
        /// The lower, the earlier it is tried.
        preference: u16 = U16;
        /// The mail server.
        exchange: Name = OneName;
    }
}

record! {
    /// Text (rfc1035#3.3.14).
    Txt = TXT {
        /// The strings, each of at most 255 octets; at least one.
        strings: Vec<Vec<u8>> = CharStrings;
    }
}

record! {
    /// Where a service is offered (rfc2782).
    Srv = SRV {
        /// The lower, the earlier it is tried.
        priority: u16 = U16;
        /// Its share among those of one priority.
        weight: u16 = U16;
        /// Its port.
        port: u16 = U16;
        /// Its host.
        target: Name = OneName;
    }
}

record! {
    /// Which authorities may issue certificates (rfc8659#4).
    Caa = CAA, checked {
        /// 128: who does not know the tag must not issue.
        flags: u8 = U8, u8 => flags;
        /// What is said: `issue`, `issuewild`, `iodef`; letters and digits.
        tag: String = Tag, &str => tag.to_owned();
        /// What the tag asks for, such as the authority's name.
        value: Vec<u8> = Octets, impl AsRef<[u8]> => value.as_ref().to_vec();
    }
}

record! {
    /// A rule that makes another name or a URI of a name (rfc3403#4).
    Naptr = NAPTR, checked {
        /// The lower, the earlier it is applied.
        order: u16 = U16, u16 => order;
        /// The lower, the better among those of one order.
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
        /// The lower, the earlier it is tried; 0 makes it an alias.
        priority: u16 = U16, u16 => priority;
        /// The host; the root stands for the name itself.
        target: Name = OneName, &str => field::name("target", target)?;
        /// How it is reached, each key once.
        params: Vec<SvcParam> = SvcParams, impl Into<Vec<SvcParam>> => params.into();
    }
}

record! {
    /// Where and how a web site is offered (rfc9460#9).
    Https = HTTPS, checked {
        /// The lower, the earlier it is tried; 0 makes it an alias.
        priority: u16 = U16, u16 => priority;
        /// The host; the root stands for the name itself.
        target: Name = OneName, &str => field::name("target", target)?;
        /// How it is reached, each key once.
        params: Vec<SvcParam> = SvcParams, impl Into<Vec<SvcParam>> => params.into();
    }
}

record! {
    /// The URI of a service (rfc7553).
    Uri = URI, sound {
        /// The lower, the earlier it is tried.
        priority: u16 = U16, u16 => priority;
        /// Its share among those of one priority.
        weight: u16 = U16, u16 => weight;
        /// The URI.
        target: Vec<u8> = Octets, impl AsRef<[u8]> => target.as_ref().to_vec();
    }
}

record! {
    /// What a host is (rfc1035#3.3.2), or why ANY is not answered in full (rfc8482).
    Hinfo = HINFO, checked {
        /// Its machine.
        cpu: Vec<u8> = CharString, impl AsRef<[u8]> => field::string("cpu", cpu)?;
        /// Its system.
        os: Vec<u8> = CharString, impl AsRef<[u8]> => field::string("os", os)?;
    }
}

record! {
    /// Who is responsible (rfc1183#2.2).
    Rp = RP, checked {
        /// The mailbox, its `@` a dot.
        mbox: Name = OneName, &str => field::name("mbox", mbox)?;
        /// Where TXT records say more.
        txt: Name = OneName, &str => field::name("txt", txt)?;
    }
}

record! {
    /// Where something is (rfc1876).
    Loc = LOC, checked {
        /// The place.
        location: Location = Place, Location => location;
    }
}

record! {
    /// Where a cell's database is (rfc1183#1).
    Afsdb = AFSDB, checked {
        /// 1 for AFS, 2 for DCE.
        subtype: u16 = U16, u16 => subtype;
        /// The server.
        hostname: Name = OneName, &str => field::name("hostname", hostname)?;
    }
}

record! {
    /// Prefixes of addresses (rfc3123).
    Apl = APL, checked {
        /// The prefixes.
        prefixes: Vec<AddressPrefix> = Prefixes, impl Into<Vec<AddressPrefix>> => prefixes.into();
    }
}
