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
    /// Digest of a key of the delegated zone (rfc4034#5).
    Ds = DS, checked {
        /// Tag of the key that this is a digest of.
        key_tag: u16 = U16, u16 => key_tag;
        /// Algorithm of the key.
        algorithm: u8 = U8, u8 => algorithm;
        /// Digest type: 2 is SHA-256.
        digest_type: u8 = U8, u8 => digest_type;
        /// Digest of the key.
        digest: Vec<u8> = Octets, impl AsRef<[u8]> => digest.as_ref().to_vec();
    }
}

record! {
    /// The DS record that the parent should have (rfc7344#3.1).
    Cds = CDS, checked {
        /// Tag of the key that this is a digest of.
        key_tag: u16 = U16, u16 => key_tag;
        /// Algorithm of the key.
        algorithm: u8 = U8, u8 => algorithm;
        /// Digest type: 2 is SHA-256.
        digest_type: u8 = U8, u8 => digest_type;
        /// Digest of the key.
        digest: Vec<u8> = Octets, impl AsRef<[u8]> => digest.as_ref().to_vec();
    }
}

record! {
    /// A DS record kept elsewhere than in the parent (rfc4431).
    Dlv = DLV, checked {
        /// Tag of the key that this is a digest of.
        key_tag: u16 = U16, u16 => key_tag;
        /// Algorithm of the key.
        algorithm: u8 = U8, u8 => algorithm;
        /// Digest type: 2 is SHA-256.
        digest_type: u8 = U8, u8 => digest_type;
        /// Digest of the key.
        digest: Vec<u8> = Octets, impl AsRef<[u8]> => digest.as_ref().to_vec();
    }
}

record! {
    /// A trust anchor: a DS record of a signed root.
    Ta = TA, checked {
        /// Tag of the key that this is a digest of.
        key_tag: u16 = U16, u16 => key_tag;
        /// Algorithm of the key.
        algorithm: u8 = U8, u8 => algorithm;
        /// Digest type: 2 is SHA-256.
        digest_type: u8 = U8, u8 => digest_type;
        /// Digest of the key.
        digest: Vec<u8> = Octets, impl AsRef<[u8]> => digest.as_ref().to_vec();
    }
}

record! {
    /// A key that signs the zone (rfc4034#2).
    Dnskey = DNSKEY, checked {
        /// Flags: 256 for a key that signs the zone, 257 for one that signs keys.
        flags: u16 = U16, u16 => flags;
        /// Protocol of the key: always 3.
        protocol: u8 = U8, u8 => protocol;
        /// Algorithm of the key: 8, 13 and 15 are usual.
        algorithm: u8 = U8, u8 => algorithm;
        /// Public key in the algorithm's form.
        public_key: Vec<u8> = Octets, impl AsRef<[u8]> => public_key.as_ref().to_vec();
    }
}

record! {
    /// The key that the parent's DS record should be made of (rfc7344#3.2).
    Cdnskey = CDNSKEY, checked {
        /// Flags: 256 for a key that signs the zone, 257 for one that signs keys.
        flags: u16 = U16, u16 => flags;
        /// Protocol of the key: always 3.
        protocol: u8 = U8, u8 => protocol;
        /// Algorithm of the key: 8, 13 and 15 are usual.
        algorithm: u8 = U8, u8 => algorithm;
        /// Public key in the algorithm's form.
        public_key: Vec<u8> = Octets, impl AsRef<[u8]> => public_key.as_ref().to_vec();
    }
}

record! {
    /// A key of a host or of SIG(0) (rfc2535#3).
    Key = KEY, sound {
        /// Flags: what the key may be used for.
        flags: u16 = U16, u16 => flags;
        /// Protocol of the key: always 3.
        protocol: u8 = U8, u8 => protocol;
        /// Algorithm of the key: 8, 13 and 15 are usual.
        algorithm: u8 = U8, u8 => algorithm;
        /// Public key in the algorithm's form; may be empty.
        public_key: Vec<u8> = Octets, impl AsRef<[u8]> => public_key.as_ref().to_vec();
    }
}

record! {
    /// A key that records are encrypted with.
    Rkey = RKEY, sound {
        /// Flags: what the key may be used for.
        flags: u16 = U16, u16 => flags;
        /// Protocol of the key: always 3.
        protocol: u8 = U8, u8 => protocol;
        /// Algorithm of the key: 8, 13 and 15 are usual.
        algorithm: u8 = U8, u8 => algorithm;
        /// Public key in the algorithm's form; may be empty.
        public_key: Vec<u8> = Octets, impl AsRef<[u8]> => public_key.as_ref().to_vec();
    }
}

record! {
    /// The signature of the records of a name and type (rfc4034#3). Made from text or data.
    Rrsig = RRSIG {
        /// Type of the signed records.
        type_covered: Type = RecordType;
        /// Algorithm of the signature.
        algorithm: u8 = U8;
        /// Labels of the signed records' owner, the root and `*` not counted.
        labels: u8 = U8;
        /// Time to live of the signed records in the zone, seconds.
        original_ttl: u32 = U32;
        /// End of the signature's validity, seconds since 1970.
        expiration: u32 = U32;
        /// Beginning of the signature's validity, seconds since 1970.
        inception: u32 = U32;
        /// Tag of the signing key.
        key_tag: u16 = U16;
        /// Zone of the signing key.
        signer_name: Name = OneName;
        /// Octets of the signature.
        signature: Vec<u8> = Octets;
    }
}

record! {
    /// A signature of the DNSSEC that was (rfc2535#4), or of a message (rfc2931). Made from text or
    /// data.
    Sig = SIG {
        /// Type of the signed records.
        type_covered: Type = RecordType;
        /// Algorithm of the signature.
        algorithm: u8 = U8;
        /// Labels of the signed records' owner, the root and `*` not counted.
        labels: u8 = U8;
        /// Time to live of the signed records in the zone, seconds.
        original_ttl: u32 = U32;
        /// End of the signature's validity, seconds since 1970.
        expiration: u32 = U32;
        /// Beginning of the signature's validity, seconds since 1970.
        inception: u32 = U32;
        /// Tag of the signing key.
        key_tag: u16 = U16;
        /// Zone of the signing key.
        signer_name: Name = OneName;
        /// Octets of the signature.
        signature: Vec<u8> = Octets;
    }
}

record! {
    /// The next name, and which types this one has (rfc4034#4).
    Nsec = NSEC, checked {
        /// The next name of the zone that has records.
        next_name: Name = OneName, &str => field::name("next_name", next_name)?;
        /// Types that the owner has.
        types: Vec<Type> = Types, &[Type] => types.to_vec();
    }
}

record! {
    /// The next name's hash, and which types this one has (rfc5155#3).
    Nsec3 = NSEC3, checked {
        /// Hash algorithm: 1 is SHA-1.
        hash_algorithm: u8 = U8, u8 => hash_algorithm;
        /// Flags: 1 if there may be unsigned delegations between (opt-out).
        flags: u8 = U8, u8 => flags;
        /// Number of additional iterations of the hash.
        iterations: u16 = U16, u16 => iterations;
        /// Salt of the hash; at most 255 octets.
        salt: Vec<u8> = CharString, impl AsRef<[u8]> => field::string("salt", salt)?;
        /// Next hash of a name of the zone; 1 to 255 octets.
        next_hash: Vec<u8> = CharString, impl AsRef<[u8]> => field::string("next_hash", next_hash)?;
        /// Types that the hashed name has.
        types: Vec<Type> = Types, &[Type] => types.to_vec();
    }
}

record! {
    /// How the zone's names are hashed (rfc5155#4).
    Nsec3param = NSEC3PARAM, checked {
        /// Hash algorithm: 1 is SHA-1.
        hash_algorithm: u8 = U8, u8 => hash_algorithm;
        /// Flags: 1 if there may be unsigned delegations between (opt-out).
        flags: u8 = U8, u8 => flags;
        /// Number of additional iterations of the hash.
        iterations: u16 = U16, u16 => iterations;
        /// Salt of the hash; at most 255 octets.
        salt: Vec<u8> = CharString, impl AsRef<[u8]> => field::string("salt", salt)?;
    }
}

record! {
    /// The next name, as it was before NSEC (rfc2535#5).
    Nxt = NXT, checked {
        /// The next name of the zone that has records.
        next_name: Name = OneName, &str => field::name("next_name", next_name)?;
        /// Types that the owner has, all below 128; perhaps none.
        types: Vec<Type> = FlatTypes, &[Type] => types.to_vec();
    }
}

record! {
    /// Types that the parent should copy from the child (rfc7477#2).
    Csync = CSYNC, sound {
        /// Serial of the child's zone from which the parent may copy.
        soa_serial: u32 = U32, u32 => soa_serial;
        /// Flags: 1 to copy at once; 2 not before that serial.
        flags: u16 = U16, u16 => flags;
        /// Types of the records to copy.
        types: Vec<Type> = Types, &[Type] => types.to_vec();
    }
}

record! {
    /// A digest of the zone (rfc8976#2).
    Zonemd = ZONEMD, checked {
        /// The serial of the zone.
        serial: u32 = U32, u32 => serial;
        /// Scheme: 1 is all records in canonical order.
        scheme: u8 = U8, u8 => scheme;
        /// Hash algorithm: 1 is SHA-384, 2 is SHA-512.
        algorithm: u8 = U8, u8 => algorithm;
        /// Digest of the zone; at least 12 octets.
        hash: Vec<u8> = Octets, impl AsRef<[u8]> => hash.as_ref().to_vec();
    }
}

record! {
    /// Certificate of a server (rfc6698#2).
    Tlsa = TLSA, checked {
        /// Usage: what the data restrict; 3 is the certificate itself.
        usage: u8 = U8, u8 => usage;
        /// Selector: what is compared; 0 is the certificate, 1 its key.
        selector: u8 = U8, u8 => selector;
        /// Matching: 0 in full, 1 by SHA-256, 2 by SHA-512.
        matching_type: u8 = U8, u8 => matching_type;
        /// Data that the certificate or key must match.
        certificate: Vec<u8> = Octets, impl AsRef<[u8]> => certificate.as_ref().to_vec();
    }
}

record! {
    /// Certificate of a mailbox (rfc8162#2).
    Smimea = SMIMEA, checked {
        /// Usage: what the data restrict; 3 is the certificate itself.
        usage: u8 = U8, u8 => usage;
        /// Selector: what is compared; 0 is the certificate, 1 its key.
        selector: u8 = U8, u8 => selector;
        /// Matching: 0 in full, 1 by SHA-256, 2 by SHA-512.
        matching_type: u8 = U8, u8 => matching_type;
        /// Data that the certificate or key must match.
        certificate: Vec<u8> = Octets, impl AsRef<[u8]> => certificate.as_ref().to_vec();
    }
}

record! {
    /// The fingerprint of an SSH host's key (rfc4255#3).
    Sshfp = SSHFP, checked {
        /// Algorithm of the key: 4 is Ed25519.
        algorithm: u8 = U8, u8 => algorithm;
        /// Fingerprint type: 2 is SHA-256.
        fingerprint_type: u8 = U8, u8 => fingerprint_type;
        /// Fingerprint of the key.
        fingerprint: Vec<u8> = Octets, impl AsRef<[u8]> => fingerprint.as_ref().to_vec();
    }
}

record! {
    /// The OpenPGP key of a mailbox (rfc7929#2).
    Openpgpkey = OPENPGPKEY, checked {
        /// Key in OpenPGP's form.
        data: Vec<u8> = Octets, impl AsRef<[u8]> => data.as_ref().to_vec();
    }
}

record! {
    /// A certificate (rfc4398#2).
    Cert = CERT, checked {
        /// Type of certificate: 1 is X.509, 3 is OpenPGP.
        cert_type: u16 = U16, u16 => cert_type;
        /// Tag of the certificate's key; 0 if there is none.
        key_tag: u16 = U16, u16 => key_tag;
        /// Algorithm of the certificate's key; 0 if DNSSEC has no number for it.
        algorithm: u8 = U8, u8 => algorithm;
        /// Certificate, or where to find it.
        certificate: Vec<u8> = Octets, impl AsRef<[u8]> => certificate.as_ref().to_vec();
    }
}

record! {
    /// DHCP client that has the name (rfc4701#3).
    Dhcid = DHCID, checked {
        /// Octets that identify the client.
        data: Vec<u8> = Octets, impl AsRef<[u8]> => data.as_ref().to_vec();
    }
}

record! {
    /// The IPsec key of a host (rfc4025#2).
    Ipseckey = IPSECKEY {
        /// Precedence: the lowest is tried first.
        precedence: u8 = U8;
        /// Kind of the gateway: its [`Gateway::kind`].
        gateway_type: u8 = U8;
        /// Algorithm of the key: 2 is RSA.
        algorithm: u8 = U8;
        /// Gateway through which the host is reached.
        gateway: Gateway = GatewayOrRelay;
        /// Public key of the host; may be empty.
        public_key: Vec<u8> = Octets;
    }
}

impl Ipseckey {
    /// Makes a record with these fields, for a gateway of any kind.
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
    /// Identity of a host, independent of its address (rfc8005#5).
    Hip = HIP, checked {
        /// Tag and key of the host.
        identity: HostIdentity = Identity, HostIdentity => identity;
        /// Rendezvous servers through which the host is reached.
        rendezvous_servers: Vec<Name> = Names, &[&str] =>
            field::names("rendezvous_servers", rendezvous_servers)?;
    }
}

record! {
    /// Trust anchors before and after this one.
    Talink = TALINK, checked {
        /// Name of the trust anchor before.
        previous: Name = OneName, &str => field::name("previous", previous)?;
        /// Name of the trust anchor after.
        next: Name = OneName, &str => field::name("next", next)?;
    }
}

record! {
    /// Where to send notifications of changes that concern the parent (rfc9859#2).
    Dsync = DSYNC, checked {
        /// Type that has changed: CDS or CSYNC.
        rrtype: Type = RecordType, Type => rrtype;
        /// Scheme: 1 is NOTIFY.
        scheme: u8 = U8, u8 => scheme;
        /// Port of the receiver.
        port: u16 = U16, u16 => port;
        /// Host of the receiver.
        target: Name = OneName, &str => field::name("target", target)?;
    }
}
