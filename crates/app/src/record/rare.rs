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
        /// Name of the mail host.
        host: Name = OneName, &str => field::name("host", host)?;
    }
}

record! {
    /// Where mail is forwarded, before MX (rfc1035#3.3.5).
    Mf = MF, checked {
        /// Name of the mail host.
        host: Name = OneName, &str => field::name("host", host)?;
    }
}

record! {
    /// The host of a mailbox (rfc1035#3.3.3).
    Mb = MB, checked {
        /// Name of the mailbox's host.
        host: Name = OneName, &str => field::name("host", host)?;
    }
}

record! {
    /// A member of a mail group (rfc1035#3.3.6).
    Mg = MG, checked {
        /// Mailbox of the member.
        mailbox: Name = OneName, &str => field::name("mailbox", mailbox)?;
    }
}

record! {
    /// The new name of a mailbox (rfc1035#3.3.8).
    Mr = MR, checked {
        /// New mailbox, which replaces this one.
        new_name: Name = OneName, &str => field::name("new_name", new_name)?;
    }
}

record! {
    /// Mailboxes that keep a mailing list (rfc1035#3.3.7).
    Minfo = MINFO, checked {
        /// Mailbox of the responsible person.
        rmailbx: Name = OneName, &str => field::name("rmailbx", rmailbx)?;
        /// The mailbox for errors.
        emailbx: Name = OneName, &str => field::name("emailbx", emailbx)?;
    }
}

record! {
    /// Services of a host (rfc1035#3.4.2).
    Wks = WKS, sound {
        /// IPv4 address of the host.
        address: Ipv4Addr = Ipv4, impl Into<Ipv4Addr> => address.into();
        /// Protocol and ports of the services.
        services: Services = ProtocolPorts, Services => services;
    }
}

record! {
    /// An address in an X.25 network (rfc1183#3.1).
    X25 = X25, checked {
        /// Address in the X.121 numbering plan, as digits.
        address: Vec<u8> = CharString, impl AsRef<[u8]> => field::string("address", address)?;
    }
}

record! {
    /// An ISDN number (rfc1183#3.2).
    Isdn = ISDN, checked {
        /// ISDN number, as digits.
        address: Vec<u8> = CharString, impl AsRef<[u8]> => field::string("address", address)?;
        /// Subaddress of the number, if any.
        subaddress: Option<Vec<u8>> = OptionalString, Option<&str> =>
            subaddress.map(|it| field::string("subaddress", it)).transpose()?;
    }
}

record! {
    /// A host that forwards to this one (rfc1183#3.3).
    Rt = RT, checked {
        /// Preference: the lowest is tried first.
        preference: u16 = U16, u16 => preference;
        /// Name of the intermediate host.
        host: Name = OneName, &str => field::name("host", host)?;
    }
}

record! {
    /// An OSI address (rfc1706#5).
    Nsap = NSAP, checked {
        /// Octets of the address.
        address: Vec<u8> = Octets, impl AsRef<[u8]> => address.as_ref().to_vec();
    }
}

record! {
    /// The name of an OSI address (rfc1706#6).
    NsapPtr = NSAP_PTR, checked {
        /// Name of the address.
        target: Name = OneName, &str => field::name("target", target)?;
    }
}

record! {
    /// How mail addresses of X.400 are mapped (rfc2163#4).
    Px = PX, checked {
        /// Preference: the lowest is applied first.
        preference: u16 = U16, u16 => preference;
        /// The name in the Internet.
        map822: Name = OneName, &str => field::name("map822", map822)?;
        /// The name in X.400.
        mapx400: Name = OneName, &str => field::name("mapx400", mapx400)?;
    }
}

record! {
    /// Geographical position, before LOC (rfc1712#3).
    Gpos = GPOS, checked {
        /// Longitude in degrees, a decimal number.
        longitude: Vec<u8> = CharString, impl AsRef<[u8]> => field::string("longitude", longitude)?;
        /// Latitude in degrees, a decimal number.
        latitude: Vec<u8> = CharString, impl AsRef<[u8]> => field::string("latitude", latitude)?;
        /// Altitude in metres, a decimal number.
        altitude: Vec<u8> = CharString, impl AsRef<[u8]> => field::string("altitude", altitude)?;
    }
}

record! {
    /// An endpoint of Nimrod.
    Eid = EID, checked {
        /// Octets that identify the endpoint.
        data: Vec<u8> = Octets, impl AsRef<[u8]> => data.as_ref().to_vec();
    }
}

record! {
    /// A locator of Nimrod.
    Nimloc = NIMLOC, checked {
        /// Octets of the locator.
        data: Vec<u8> = Octets, impl AsRef<[u8]> => data.as_ref().to_vec();
    }
}

record! {
    /// An address in an ATM network.
    Atma = ATMA, checked {
        /// Address with its format.
        address: AtmAddress = Atm, AtmAddress => address;
    }
}

record! {
    /// A host that exchanges keys for this one (rfc2230#3).
    Kx = KX, checked {
        /// Preference: the lowest is tried first.
        preference: u16 = U16, u16 => preference;
        /// Name of the key exchanger.
        exchange: Name = OneName, &str => field::name("exchange", exchange)?;
    }
}

record! {
    /// An IPv6 address whose prefix is at another name (rfc2874#3.1).
    A6 = A6, checked {
        /// Suffix of the address, with the name of its prefix.
        prefix: A6Prefix = Prefix, A6Prefix => prefix;
    }
}

record! {
    /// Data of any kind.
    Sink = SINK, sound {
        /// Meaning of the data.
        meaning: u8 = U8, u8 => meaning;
        /// Coding of the data.
        coding: u8 = U8, u8 => coding;
        /// Subtype of the coding.
        subcoding: u8 = U8, u8 => subcoding;
        /// The data themselves; may be empty.
        data: Vec<u8> = Octets, impl AsRef<[u8]> => data.as_ref().to_vec();
    }
}

record! {
    /// Status of a zone.
    Ninfo = NINFO, checked {
        /// The strings, each of at most 255 octets; at least one.
        strings: Vec<Vec<u8>> = CharStrings, &[impl AsRef<[u8]>] =>
            field::all_strings("strings", strings)?;
    }
}

record! {
    /// The hierarchical tag of a drone (rfc9886#5.1).
    Hhit = HHIT, checked {
        /// Registration of the drone, in CBOR.
        data: Vec<u8> = Octets, impl AsRef<[u8]> => data.as_ref().to_vec();
    }
}

record! {
    /// What a drone broadcasts (rfc9886#5.2).
    Brid = BRID, checked {
        /// Broadcast data of the drone, in CBOR.
        data: Vec<u8> = Octets, impl AsRef<[u8]> => data.as_ref().to_vec();
    }
}

record! {
    /// Hosts that may send mail, before TXT held that (rfc7208#3.1).
    Spf = SPF, checked {
        /// The strings, each of at most 255 octets; at least one.
        strings: Vec<Vec<u8>> = CharStrings, &[impl AsRef<[u8]>] =>
            field::all_strings("strings", strings)?;
    }
}

record! {
    /// The node identifier of an ILNP host (rfc6742#2.1).
    Nid = NID, sound {
        /// Preference: the lowest is tried first.
        preference: u16 = U16, u16 => preference;
        /// Node identifier, in four groups.
        node_id: [u16; 4] = NodeId, [u16; 4] => node_id;
    }
}

record! {
    /// The 32-bit locator of an ILNP host (rfc6742#2.2).
    L32 = L32, sound {
        /// Preference: the lowest is tried first.
        preference: u16 = U16, u16 => preference;
        /// Locator of 32 bits.
        locator32: Ipv4Addr = Ipv4, impl Into<Ipv4Addr> => locator32.into();
    }
}

record! {
    /// The 64-bit locator of an ILNP host (rfc6742#2.3).
    L64 = L64, sound {
        /// Preference: the lowest is tried first.
        preference: u16 = U16, u16 => preference;
        /// Locator of 64 bits, in four groups.
        locator64: [u16; 4] = NodeId, [u16; 4] => locator64;
    }
}

record! {
    /// The name that has the locators of an ILNP host (rfc6742#2.4).
    Lp = LP, checked {
        /// Preference: the lowest is tried first.
        preference: u16 = U16, u16 => preference;
        /// Name with the L32 and L64 records.
        fqdn: Name = OneName, &str => field::name("fqdn", fqdn)?;
    }
}

record! {
    /// An Ethernet address (rfc7043#3).
    Eui48 = EUI48, sound {
        /// Ethernet address, six octets.
        address: [u8; 6] = Eui48, [u8; 6] => address;
    }
}

record! {
    /// An address of 64 bits (rfc7043#4).
    Eui64 = EUI64, sound {
        /// Extended address, eight octets.
        address: [u8; 8] = Eui64, [u8; 8] => address;
    }
}

record! {
    /// The kind of an application, for network devices.
    Avc = AVC, checked {
        /// The strings, each of at most 255 octets; at least one.
        strings: Vec<Vec<u8>> = CharStrings, &[impl AsRef<[u8]>] =>
            field::all_strings("strings", strings)?;
    }
}

record! {
    /// A digital object.
    Doa = DOA, checked {
        /// Number of the enterprise that defines the types.
        enterprise: u32 = U32, u32 => enterprise;
        /// Type of the object.
        object_type: u32 = U32, u32 => object_type;
        /// Location of the object: 1 in this record, 2 at a URI.
        location: u8 = U8, u8 => location;
        /// Media type of the object.
        media_type: Vec<u8> = CharString, impl AsRef<[u8]> =>
            field::string("media_type", media_type)?;
        /// Object, or the URI of it; may be empty.
        data: Vec<u8> = Octets, impl AsRef<[u8]> => data.as_ref().to_vec();
    }
}

record! {
    /// A relay for multicast (rfc8777#4).
    Amtrelay = AMTRELAY {
        /// Precedence: the lowest is tried first.
        precedence: u8 = U8;
        /// Kind of the relay: its [`Gateway::kind`], and 128 more if discovery is optional.
        relay_type: u8 = U8;
        /// Address or name of the relay.
        relay: Gateway = GatewayOrRelay;
    }
}

impl Amtrelay {
    /// Makes a record with these fields, for a relay of any kind.
    #[must_use]
    pub fn new(precedence: u8, discovery_optional: bool, relay: Gateway) -> Self {
        let relay_type = u8::from(discovery_optional) << 7 | relay.kind();
        Self { precedence, relay_type, relay, owner: None, ttl_secs: TTL_SECS }
    }
}

record! {
    /// Capabilities of a resolver (rfc9606#4).
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
    /// Addresses of clients.
    Cla = CLA, checked {
        /// The strings, each of at most 255 octets; at least one.
        strings: Vec<Vec<u8>> = CharStrings, &[impl AsRef<[u8]>] =>
            field::all_strings("strings", strings)?;
    }
}

record! {
    /// The node of an interplanetary network.
    Ipn = IPN, sound {
        /// Number of the node.
        number: u64 = U64, u64 => number;
    }
}

record! {
    /// The name whose addresses a name has (PowerDNS's type 65401).
    Alias = ALIAS, checked {
        /// Name that has the addresses.
        target: Name = OneName, &str => field::name("target", target)?;
    }
}
