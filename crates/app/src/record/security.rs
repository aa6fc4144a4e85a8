//! Records of keys, signatures, certificates and digests.

use super::field;
use super::value::{Gateway, HostIdentity};
use super::{DataError, TTL_SECS, checked, rdata_of};
use std::fmt;
use std::str::FromStr;
use zonda_engine::code::Record;
use zonda_wire::rdata::Presentation;
use zonda_wire::{Name, Type};

record! {
    /// A digest of a key of the zone that is delegated (rfc4034#5).
    Ds = DS, checked {
        /// The tag of the key that this is a digest of.
        key_tag: u16 = U16, u16 => key_tag;
        /// Its algorithm.
        algorithm: u8 = U8, u8 => algorithm;
        /// How the digest is made: 2 is SHA-256.
        digest_type: u8 = U8, u8 => digest_type;
        /// The digest.
        digest: Vec<u8> = Octets, impl AsRef<[u8]> => digest.as_ref().to_vec();
    }
}

record! {
    /// The DS record that the parent should have (rfc7344#3.1).
    Cds = CDS, checked {
        /// The tag of the key that this is a digest of.
        key_tag: u16 = U16, u16 => key_tag;
        /// Its algorithm.
        algorithm: u8 = U8, u8 => algorithm;
        /// How the digest is made: 2 is SHA-256.
        digest_type: u8 = U8, u8 => digest_type;
        /// The digest.
        digest: Vec<u8> = Octets, impl AsRef<[u8]> => digest.as_ref().to_vec();
    }
}

record! {
    /// A DS record kept elsewhere than in the parent (rfc4431).
    Dlv = DLV, checked {
        /// The tag of the key that this is a digest of.
        key_tag: u16 = U16, u16 => key_tag;
        /// Its algorithm.
        algorithm: u8 = U8, u8 => algorithm;
        /// How the digest is made: 2 is SHA-256.
        digest_type: u8 = U8, u8 => digest_type;
        /// The digest.
        digest: Vec<u8> = Octets, impl AsRef<[u8]> => digest.as_ref().to_vec();
    }
}

record! {
    /// A trust anchor: a DS record of a signed root.
    Ta = TA, checked {
        /// The tag of the key that this is a digest of.
        key_tag: u16 = U16, u16 => key_tag;
        /// Its algorithm.
        algorithm: u8 = U8, u8 => algorithm;
        /// How the digest is made: 2 is SHA-256.
        digest_type: u8 = U8, u8 => digest_type;
        /// The digest.
        digest: Vec<u8> = Octets, impl AsRef<[u8]> => digest.as_ref().to_vec();
    }
}

record! {
    /// A key that signs the zone (rfc4034#2).
    Dnskey = DNSKEY, checked {
        /// 256: it signs the zone; 257: it signs keys.
        flags: u16 = U16, u16 => flags;
        /// Always 3.
        protocol: u8 = U8, u8 => protocol;
        /// Its algorithm: 8, 13 and 15 are usual.
        algorithm: u8 = U8, u8 => algorithm;
        /// The key.
        public_key: Vec<u8> = Octets, impl AsRef<[u8]> => public_key.as_ref().to_vec();
    }
}

record! {
    /// The key that the parent's DS record should be made of (rfc7344#3.2).
    Cdnskey = CDNSKEY, checked {
        /// 256: it signs the zone; 257: it signs keys.
        flags: u16 = U16, u16 => flags;
        /// Always 3.
        protocol: u8 = U8, u8 => protocol;
        /// Its algorithm: 8, 13 and 15 are usual.
        algorithm: u8 = U8, u8 => algorithm;
        /// The key.
        public_key: Vec<u8> = Octets, impl AsRef<[u8]> => public_key.as_ref().to_vec();
    }
}

record! {
    /// A key of a host or of SIG(0) (rfc2535#3).
    Key = KEY, sound {
        /// What it may be used for.
        flags: u16 = U16, u16 => flags;
        /// Always 3.
        protocol: u8 = U8, u8 => protocol;
        /// Its algorithm: 8, 13 and 15 are usual.
        algorithm: u8 = U8, u8 => algorithm;
        /// The key; may be empty.
        public_key: Vec<u8> = Octets, impl AsRef<[u8]> => public_key.as_ref().to_vec();
    }
}

record! {
    /// A key that records are encrypted with.
    Rkey = RKEY, sound {
        /// What it may be used for.
        flags: u16 = U16, u16 => flags;
        /// Always 3.
        protocol: u8 = U8, u8 => protocol;
        /// Its algorithm: 8, 13 and 15 are usual.
        algorithm: u8 = U8, u8 => algorithm;
        /// The key; may be empty.
        public_key: Vec<u8> = Octets, impl AsRef<[u8]> => public_key.as_ref().to_vec();
    }
}

record! {
    /// The signature of the records of a name and type (rfc4034#3). Made from text or data.
    Rrsig = RRSIG {
        /// The type of the records that are signed.
        type_covered: Type = RecordType;
        /// The algorithm.
        algorithm: u8 = U8;
        /// How many labels their name has, the root and `*` not counted.
        labels: u8 = U8;
        /// Their time to live in the zone, seconds.
        original_ttl: u32 = U32;
        /// When it ceases to hold, seconds since 1970.
        expiration: u32 = U32;
        /// When it begins to hold, seconds since 1970.
        inception: u32 = U32;
        /// The tag of the key.
        key_tag: u16 = U16;
        /// The zone of the key.
        signer_name: Name = OneName;
        /// The signature.
        signature: Vec<u8> = Octets;
    }
}

record! {
    /// A signature of the DNSSEC that was (rfc2535#4), or of a message (rfc2931). Made from text or
    /// data.
    Sig = SIG {
        /// The type of the records that are signed.
        type_covered: Type = RecordType;
        /// The algorithm.
        algorithm: u8 = U8;
        /// How many labels their name has, the root and `*` not counted.
        labels: u8 = U8;
        /// Their time to live in the zone, seconds.
        original_ttl: u32 = U32;
        /// When it ceases to hold, seconds since 1970.
        expiration: u32 = U32;
        /// When it begins to hold, seconds since 1970.
        inception: u32 = U32;
        /// The tag of the key.
        key_tag: u16 = U16;
        /// The zone of the key.
        signer_name: Name = OneName;
        /// The signature.
        signature: Vec<u8> = Octets;
    }
}

record! {
    /// The next name, and which types this one has (rfc4034#4).
    Nsec = NSEC, checked {
        /// The next name of the zone that has records.
        next_name: Name = OneName, &str => field::name("next_name", next_name)?;
        /// The types of this one.
        types: Vec<Type> = Types, &[Type] => types.to_vec();
    }
}

record! {
    /// The next name's hash, and which types this one has (rfc5155#3).
    Nsec3 = NSEC3, checked {
        /// 1 is SHA-1.
        hash_algorithm: u8 = U8, u8 => hash_algorithm;
        /// 1: there may be unsigned delegations between (opt-out).
        flags: u8 = U8, u8 => flags;
        /// How often the hash is made again.
        iterations: u16 = U16, u16 => iterations;
        /// What is mixed in; at most 255 octets.
        salt: Vec<u8> = CharString, impl AsRef<[u8]> => field::string("salt", salt)?;
        /// The next hash of a name of the zone; 1 to 255 octets.
        next_hash: Vec<u8> = CharString, impl AsRef<[u8]> => field::string("next_hash", next_hash)?;
        /// The types of the name of this hash.
        types: Vec<Type> = Types, &[Type] => types.to_vec();
    }
}

record! {
    /// How the zone's names are hashed (rfc5155#4).
    Nsec3param = NSEC3PARAM, checked {
        /// 1 is SHA-1.
        hash_algorithm: u8 = U8, u8 => hash_algorithm;
        /// 1: there may be unsigned delegations between (opt-out).
        flags: u8 = U8, u8 => flags;
        /// How often the hash is made again.
        iterations: u16 = U16, u16 => iterations;
        /// What is mixed in; at most 255 octets.
        salt: Vec<u8> = CharString, impl AsRef<[u8]> => field::string("salt", salt)?;
    }
}

record! {
    /// The next name, as it was before NSEC (rfc2535#5).
    Nxt = NXT, checked {
        /// The next name of the zone that has records.
        next_name: Name = OneName, &str => field::name("next_name", next_name)?;
        /// The types of this one, all below 128; perhaps none.
        types: Vec<Type> = FlatTypes, &[Type] => types.to_vec();
    }
}

record! {
    /// What of the child's records the parent should take over (rfc7477#2).
    Csync = CSYNC, sound {
        /// The serial from which on it holds.
        soa_serial: u32 = U32, u32 => soa_serial;
        /// 1: at once; 2: not before that serial.
        flags: u16 = U16, u16 => flags;
        /// The types.
        types: Vec<Type> = Types, &[Type] => types.to_vec();
    }
}

record! {
    /// A digest of the zone (rfc8976#2).
    Zonemd = ZONEMD, checked {
        /// The serial of the zone.
        serial: u32 = U32, u32 => serial;
        /// 1: all records in canonical order.
        scheme: u8 = U8, u8 => scheme;
        /// 1 is SHA-384, 2 is SHA-512.
        algorithm: u8 = U8, u8 => algorithm;
        /// The digest; at least 12 octets.
        hash: Vec<u8> = Octets, impl AsRef<[u8]> => hash.as_ref().to_vec();
    }
}

record! {
    /// Which certificate a server has (rfc6698#2).
    Tlsa = TLSA, checked {
        /// What the data restrict: 3 is the certificate itself.
        usage: u8 = U8, u8 => usage;
        /// What is compared: 0 the certificate, 1 its key.
        selector: u8 = U8, u8 => selector;
        /// How: 0 in full, 1 by SHA-256, 2 by SHA-512.
        matching_type: u8 = U8, u8 => matching_type;
        /// What it is compared with.
        certificate: Vec<u8> = Octets, impl AsRef<[u8]> => certificate.as_ref().to_vec();
    }
}

record! {
    /// Which certificate a mailbox has (rfc8162#2).
    Smimea = SMIMEA, checked {
        /// What the data restrict: 3 is the certificate itself.
        usage: u8 = U8, u8 => usage;
        /// What is compared: 0 the certificate, 1 its key.
        selector: u8 = U8, u8 => selector;
        /// How: 0 in full, 1 by SHA-256, 2 by SHA-512.
        matching_type: u8 = U8, u8 => matching_type;
        /// What it is compared with.
        certificate: Vec<u8> = Octets, impl AsRef<[u8]> => certificate.as_ref().to_vec();
    }
}

record! {
    /// The fingerprint of an SSH host's key (rfc4255#3).
    Sshfp = SSHFP, checked {
        /// The algorithm of the key: 4 is Ed25519.
        algorithm: u8 = U8, u8 => algorithm;
        /// How it is made: 2 is SHA-256.
        fingerprint_type: u8 = U8, u8 => fingerprint_type;
        /// The fingerprint.
        fingerprint: Vec<u8> = Octets, impl AsRef<[u8]> => fingerprint.as_ref().to_vec();
    }
}

record! {
    /// The OpenPGP key of a mailbox (rfc7929#2).
    Openpgpkey = OPENPGPKEY, checked {
        /// The key.
        data: Vec<u8> = Octets, impl AsRef<[u8]> => data.as_ref().to_vec();
    }
}

record! {
    /// A certificate (rfc4398#2).
    Cert = CERT, checked {
        /// What it is: 1 is X.509, 3 is OpenPGP.
        cert_type: u16 = U16, u16 => cert_type;
        /// The tag of its key; 0 if there is none.
        key_tag: u16 = U16, u16 => key_tag;
        /// The algorithm of its key; 0 if it is none of DNSSEC's.
        algorithm: u8 = U8, u8 => algorithm;
        /// The certificate.
        certificate: Vec<u8> = Octets, impl AsRef<[u8]> => certificate.as_ref().to_vec();
    }
}

record! {
    /// Which DHCP client has the name (rfc4701#3).
    Dhcid = DHCID, checked {
        /// What identifies it.
        data: Vec<u8> = Octets, impl AsRef<[u8]> => data.as_ref().to_vec();
    }
}

record! {
    /// The IPsec key of a host (rfc4025#2).
    Ipseckey = IPSECKEY {
        /// The lower, the earlier it is tried.
        precedence: u8 = U8;
        /// What the gateway is: its [`Gateway::kind`].
        gateway_type: u8 = U8;
        /// The format of the key: 2 is RSA.
        algorithm: u8 = U8;
        /// Through what the host is reached.
        gateway: Gateway = GatewayOrRelay;
        /// The key; may be empty.
        public_key: Vec<u8> = Octets;
    }
}

impl Ipseckey {
    /// One with these fields, for a gateway of any kind.
    pub fn new(
        precedence: u8,
        algorithm: u8,
        gateway: Gateway,
        public_key: impl AsRef<[u8]>,
    ) -> Self {
        let (gateway_type, public_key) = (gateway.kind(), public_key.as_ref().to_vec());
        let (owner, ttl_secs) = (None, TTL_SECS);
        Self { precedence, gateway_type, algorithm, gateway, public_key, owner, ttl_secs }
    }
}

record! {
    /// Who a host is, wherever it is (rfc8005#5).
    Hip = HIP, checked {
        /// Its tag and key.
        identity: HostIdentity = Identity, HostIdentity => identity;
        /// Through whom it is reached.
        rendezvous_servers: Vec<Name> = Names, &[&str] =>
            field::names("rendezvous_servers", rendezvous_servers)?;
    }
}

record! {
    /// Trust anchors before and after this one.
    Talink = TALINK, checked {
        /// The one before.
        previous: Name = OneName, &str => field::name("previous", previous)?;
        /// The one after.
        next: Name = OneName, &str => field::name("next", next)?;
    }
}

record! {
    /// Whom to notify of changes that concern the parent (rfc9859#2).
    Dsync = DSYNC, checked {
        /// The type that has changed: CDS or CSYNC.
        rrtype: Type = RecordType, Type => rrtype;
        /// How: 1 is NOTIFY.
        scheme: u8 = U8, u8 => scheme;
        /// The port.
        port: u16 = U16, u16 => port;
        /// The host.
        target: Name = OneName, &str => field::name("target", target)?;
    }
}
