//! Records of types that are seldom, of experiments, and of the past.

use super::field;
use super::value::{A6Prefix, AtmAddress, Gateway, Services};
use super::{DataError, TTL_SECS, checked, rdata_of};
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;
use zonda_engine::code::Record;
use zonda_wire::rdata::Presentation;
use zonda_wire::{Name, Type};

record! {
    /// Where mail is delivered, before MX (rfc1035#3.3.4).
    Md = MD, checked {
        /// The host.
        host: Name = OneName, &str => field::name("host", host)?;
    }
}

record! {
    /// Where mail is forwarded, before MX (rfc1035#3.3.5).
    Mf = MF, checked {
        /// The host.
        host: Name = OneName, &str => field::name("host", host)?;
    }
}

record! {
    /// The host of a mailbox (rfc1035#3.3.3).
    Mb = MB, checked {
        /// The host.
        host: Name = OneName, &str => field::name("host", host)?;
    }
}

record! {
    /// A member of a mail group (rfc1035#3.3.6).
    Mg = MG, checked {
        /// The mailbox.
        mailbox: Name = OneName, &str => field::name("mailbox", mailbox)?;
    }
}

record! {
    /// The new name of a mailbox (rfc1035#3.3.8).
    Mr = MR, checked {
        /// The mailbox.
        new_name: Name = OneName, &str => field::name("new_name", new_name)?;
    }
}

record! {
    /// Who keeps a mailing list (rfc1035#3.3.7).
    Minfo = MINFO, checked {
        /// The mailbox of who is responsible.
        rmailbx: Name = OneName, &str => field::name("rmailbx", rmailbx)?;
        /// The mailbox for errors.
        emailbx: Name = OneName, &str => field::name("emailbx", emailbx)?;
    }
}

record! {
    /// Services of a host (rfc1035#3.4.2).
    Wks = WKS, sound {
        /// The host.
        address: Ipv4Addr = Ipv4, impl Into<Ipv4Addr> => address.into();
        /// Which.
        services: Services = ProtocolPorts, Services => services;
    }
}

record! {
    /// An address in an X.25 network (rfc1183#3.1).
    X25 = X25, checked {
        /// Its digits.
        address: Vec<u8> = CharString, impl AsRef<[u8]> => field::string("address", address)?;
    }
}

record! {
    /// An ISDN number (rfc1183#3.2).
    Isdn = ISDN, checked {
        /// The number.
        address: Vec<u8> = CharString, impl AsRef<[u8]> => field::string("address", address)?;
        /// The subaddress.
        subaddress: Option<Vec<u8>> = OptionalString, Option<&str> =>
            subaddress.map(|it| field::string("subaddress", it)).transpose()?;
    }
}

record! {
    /// A host that forwards to this one (rfc1183#3.3).
    Rt = RT, checked {
        /// The lower, the better.
        preference: u16 = U16, u16 => preference;
        /// The host.
        host: Name = OneName, &str => field::name("host", host)?;
    }
}

record! {
    /// An OSI address (rfc1706#5).
    Nsap = NSAP, checked {
        /// The address.
        address: Vec<u8> = Octets, impl AsRef<[u8]> => address.as_ref().to_vec();
    }
}

record! {
    /// The name of an OSI address (rfc1706#6).
    NsapPtr = NSAP_PTR, checked {
        /// The name.
        target: Name = OneName, &str => field::name("target", target)?;
    }
}

record! {
    /// How mail addresses of X.400 are mapped (rfc2163#4).
    Px = PX, checked {
        /// The lower, the better.
        preference: u16 = U16, u16 => preference;
        /// The name in the Internet.
        map822: Name = OneName, &str => field::name("map822", map822)?;
        /// The name in X.400.
        mapx400: Name = OneName, &str => field::name("mapx400", mapx400)?;
    }
}

record! {
    /// Where something is, before LOC (rfc1712#3).
    Gpos = GPOS, checked {
        /// Degrees, a decimal number.
        longitude: Vec<u8> = CharString, impl AsRef<[u8]> => field::string("longitude", longitude)?;
        /// Degrees, a decimal number.
        latitude: Vec<u8> = CharString, impl AsRef<[u8]> => field::string("latitude", latitude)?;
        /// Metres, a decimal number.
        altitude: Vec<u8> = CharString, impl AsRef<[u8]> => field::string("altitude", altitude)?;
    }
}

record! {
    /// An endpoint of Nimrod.
    Eid = EID, checked {
        /// What identifies it.
        data: Vec<u8> = Octets, impl AsRef<[u8]> => data.as_ref().to_vec();
    }
}

record! {
    /// A locator of Nimrod.
    Nimloc = NIMLOC, checked {
        /// The locator.
        data: Vec<u8> = Octets, impl AsRef<[u8]> => data.as_ref().to_vec();
    }
}

record! {
    /// An address in an ATM network.
    Atma = ATMA, checked {
        /// The address.
        address: AtmAddress = Atm, AtmAddress => address;
    }
}

record! {
    /// Who exchanges keys for a host (rfc2230#3).
    Kx = KX, checked {
        /// The lower, the better.
        preference: u16 = U16, u16 => preference;
        /// The host that does.
        exchange: Name = OneName, &str => field::name("exchange", exchange)?;
    }
}

record! {
    /// An IPv6 address whose prefix another name has (rfc2874#3.1).
    A6 = A6, checked {
        /// What there is of it.
        prefix: A6Prefix = Prefix, A6Prefix => prefix;
    }
}

record! {
    /// Anything.
    Sink = SINK, sound {
        /// What it means.
        meaning: u8 = U8, u8 => meaning;
        /// How it is coded.
        coding: u8 = U8, u8 => coding;
        /// How that is meant.
        subcoding: u8 = U8, u8 => subcoding;
        /// The data; may be empty.
        data: Vec<u8> = Octets, impl AsRef<[u8]> => data.as_ref().to_vec();
    }
}

record! {
    /// What is known of a zone.
    Ninfo = NINFO, checked {
        /// The strings, each of at most 255 octets; at least one.
        strings: Vec<Vec<u8>> = CharStrings, &[impl AsRef<[u8]>] =>
            field::all_strings("strings", strings)?;
    }
}

record! {
    /// The hierarchical tag of a drone (rfc9886#5.1).
    Hhit = HHIT, checked {
        /// What is known of it, in CBOR.
        data: Vec<u8> = Octets, impl AsRef<[u8]> => data.as_ref().to_vec();
    }
}

record! {
    /// What a drone broadcasts (rfc9886#5.2).
    Brid = BRID, checked {
        /// What is known of it, in CBOR.
        data: Vec<u8> = Octets, impl AsRef<[u8]> => data.as_ref().to_vec();
    }
}

record! {
    /// Who may send mail, before TXT said so (rfc7208#3.1).
    Spf = SPF, checked {
        /// The strings, each of at most 255 octets; at least one.
        strings: Vec<Vec<u8>> = CharStrings, &[impl AsRef<[u8]>] =>
            field::all_strings("strings", strings)?;
    }
}

record! {
    /// The node identifier of an ILNP host (rfc6742#2.1).
    Nid = NID, sound {
        /// The lower, the better.
        preference: u16 = U16, u16 => preference;
        /// The identifier, in four groups.
        node_id: [u16; 4] = NodeId, [u16; 4] => node_id;
    }
}

record! {
    /// The 32-bit locator of an ILNP host (rfc6742#2.2).
    L32 = L32, sound {
        /// The lower, the better.
        preference: u16 = U16, u16 => preference;
        /// The locator.
        locator32: Ipv4Addr = Ipv4, impl Into<Ipv4Addr> => locator32.into();
    }
}

record! {
    /// The 64-bit locator of an ILNP host (rfc6742#2.3).
    L64 = L64, sound {
        /// The lower, the better.
        preference: u16 = U16, u16 => preference;
        /// The locator, in four groups.
        locator64: [u16; 4] = NodeId, [u16; 4] => locator64;
    }
}

record! {
    /// Where the locators of an ILNP host are (rfc6742#2.4).
    Lp = LP, checked {
        /// The lower, the better.
        preference: u16 = U16, u16 => preference;
        /// The name that has them.
        fqdn: Name = OneName, &str => field::name("fqdn", fqdn)?;
    }
}

record! {
    /// An Ethernet address (rfc7043#3).
    Eui48 = EUI48, sound {
        /// The address.
        address: [u8; 6] = Eui48, [u8; 6] => address;
    }
}

record! {
    /// An address of 64 bits (rfc7043#4).
    Eui64 = EUI64, sound {
        /// The address.
        address: [u8; 8] = Eui64, [u8; 8] => address;
    }
}

record! {
    /// What an application is, for whoever lets it pass.
    Avc = AVC, checked {
        /// The strings, each of at most 255 octets; at least one.
        strings: Vec<Vec<u8>> = CharStrings, &[impl AsRef<[u8]>] =>
            field::all_strings("strings", strings)?;
    }
}

record! {
    /// A digital object.
    Doa = DOA, checked {
        /// The number of the enterprise that says what types are.
        enterprise: u32 = U32, u32 => enterprise;
        /// The type.
        object_type: u32 = U32, u32 => object_type;
        /// Where it is: 1 here, 2 at a URI.
        location: u8 = U8, u8 => location;
        /// Its media type.
        media_type: Vec<u8> = CharString, impl AsRef<[u8]> =>
            field::string("media_type", media_type)?;
        /// The object, or its URI; may be empty.
        data: Vec<u8> = Octets, impl AsRef<[u8]> => data.as_ref().to_vec();
    }
}

record! {
    /// Where multicast is relayed from (rfc8777#4).
    Amtrelay = AMTRELAY {
        /// The lower, the earlier it is tried.
        precedence: u8 = U8;
        /// What the relay is: its [`Gateway::kind`], and 128 more if discovery is optional.
        relay_type: u8 = U8;
        /// The relay.
        relay: Gateway = GatewayOrRelay;
    }
}

impl Amtrelay {
    /// One with these fields, for a relay of any kind.
    #[must_use]
    pub fn new(precedence: u8, discovery_optional: bool, relay: Gateway) -> Self {
        let relay_type = u8::from(discovery_optional) << 7 | relay.kind();
        Self { precedence, relay_type, relay, owner: None, ttl_secs: TTL_SECS }
    }
}

record! {
    /// What a resolver can do (rfc9606#4).
    Resinfo = RESINFO, checked {
        /// The strings, each of at most 255 octets; at least one.
        strings: Vec<Vec<u8>> = CharStrings, &[impl AsRef<[u8]>] =>
            field::all_strings("strings", strings)?;
    }
}

record! {
    /// Addresses of a wallet.
    Wallet = WALLET, checked {
        /// The strings, each of at most 255 octets; at least one.
        strings: Vec<Vec<u8>> = CharStrings, &[impl AsRef<[u8]>] =>
            field::all_strings("strings", strings)?;
    }
}

record! {
    /// Which addresses clients have.
    Cla = CLA, checked {
        /// The strings, each of at most 255 octets; at least one.
        strings: Vec<Vec<u8>> = CharStrings, &[impl AsRef<[u8]>] =>
            field::all_strings("strings", strings)?;
    }
}

record! {
    /// The node of an interplanetary network.
    Ipn = IPN, sound {
        /// Its number.
        number: u64 = U64, u64 => number;
    }
}
