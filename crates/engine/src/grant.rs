//! Grants: what a client may change in a zone.

use crate::client_rule::TransferRule;
use std::net::IpAddr;
use zonda_wire::tsig::KeyId;
use zonda_wire::update::{NAMED_TYPES, SIGNING_TYPES};
use zonda_wire::{Name, Type, name};

/// The first label of the names that certificates are proven by.
const ACME_LABEL: &[u8] = b"_acme-challenge";

/// A right to change a zone; several add up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateGrant {
    /// The clients that have the right: those for which any of these rules is.
    pub from: Vec<TransferRule>,
    /// The names whose records may be changed: those that any of these has.
    pub names: Vec<GrantNames>,
    /// Whether the names must also be those by which certificates are proven.
    pub is_acme: bool,
    /// The types of the records that may be changed.
    pub types: GrantTypes,
    /// Most records of a type that a name may have when records of it were added; none: any number.
    pub records_max: Option<u32>,
    /// The least time to live of records that are added, seconds.
    pub ttl_min: u32,
    /// The greatest time to live of records that are added, seconds.
    pub ttl_max: u32,
}

/// Names whose records a client may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantNames {
    /// All names of the zone.
    Zone,
    /// The name of the key that the message is signed with.
    Own,
    /// The name of the key, and all below it.
    OwnAndBelow,
    /// The names below the name of the key.
    BelowOwn,
    /// One name, in lower case.
    Name(Name),
    /// A name in lower case, and all below it.
    Subdomain(Name),
    /// The names below a name in lower case.
    Below(Name),
}

/// Types of records that a client may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantTypes {
    /// All types but those that have to be named.
    Any,
    /// The types that are listed.
    Listed(Vec<Type>),
}

/// The client of an update.
#[derive(Clone, Debug)]
pub struct UpdateSender {
    /// The address of the client.
    pub client: IpAddr,
    /// The key of the message's signature, which is sound, and the key's name in lower case.
    pub key: Option<(KeyId, Name)>,
}

impl UpdateGrant {
    /// Whether a client has the right whose message has a sound signature by `key`, if by any.
    #[must_use]
    pub fn is_for(&self, client: IpAddr, key: Option<KeyId>) -> bool {
        self.from.iter().any(|rule| rule.is_for(client, key))
    }

    /// Whether a client has the right to change records of a name, in lower case, and a type.
    #[must_use]
    pub fn allows(&self, sender: &UpdateSender, owner: &Name, rtype: Type) -> bool {
        self.types.has(rtype) && self.covers(sender, owner)
    }

    /// Whether a client has the right to change records of any type of a name, in lower case.
    #[must_use]
    pub fn covers(&self, sender: &UpdateSender, owner: &Name) -> bool {
        let key = sender.key.as_ref();
        self.is_for(sender.client, key.map(|(id, _)| *id))
            && self.names.iter().any(|names| names.has(owner, key.map(|(_, name)| name)))
            && (!self.is_acme || is_acme(owner))
    }

    /// Whether records with a time to live may be added.
    #[must_use]
    pub fn allows_ttl(&self, ttl: u32) -> bool {
        (self.ttl_min..=self.ttl_max).contains(&ttl)
    }

    /// Whether a name may have as many records of a type.
    #[must_use]
    pub fn allows_count(&self, records: usize) -> bool {
        self.records_max.is_none_or(|max| records <= max as usize)
    }
}

impl GrantNames {
    /// Whether a name, in lower case, is among these, where the message is signed with a key of
    /// this name.
    fn has(&self, owner: &Name, key: Option<&Name>) -> bool {
        let owner = owner.as_wire();
        let is_at_or_below = |top: &Name| name::is_at_or_below(owner, top.as_wire());
        let is_below = |top: &Name| owner != top.as_wire() && is_at_or_below(top);
        match self {
            Self::Zone => true,
            Self::Own => key.is_some_and(|key| owner == key.as_wire()),
            Self::OwnAndBelow => key.is_some_and(is_at_or_below),
            Self::BelowOwn => key.is_some_and(is_below),
            Self::Name(name) => owner == name.as_wire(),
            Self::Subdomain(top) => is_at_or_below(top),
            Self::Below(top) => is_below(top),
        }
    }
}

impl GrantTypes {
    /// Whether a type is among these.
    #[must_use]
    pub fn has(&self, rtype: Type) -> bool {
        match self {
            _ if is_never_granted(rtype) => false,
            Self::Any => !NAMED_TYPES.contains(&rtype),
            Self::Listed(types) => types.contains(&rtype),
        }
    }
}

/// Whether no grant lets a client change records of a type, as signing makes them.
#[must_use]
pub fn is_never_granted(rtype: Type) -> bool {
    SIGNING_TYPES.contains(&rtype)
}

/// Whether a name is one by which certificates are proven, or lies below one.
fn is_acme(owner: &Name) -> bool {
    name::labels(owner.as_wire()).any(|label| label == ACME_LABEL)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    /// A client without a signature, or with one by the key of a name.
    fn sender(key: Option<&str>) -> UpdateSender {
        let key = key.map(name).map(|name| (KeyId::of(&name), name));
        UpdateSender { client: [192, 0, 2, 7].into(), key }
    }

    /// A grant of names to all clients with the key `host.example`, or to all addresses.
    fn grant(names: GrantNames, needs_key: bool) -> UpdateGrant {
        let key = needs_key.then(|| KeyId::of(&name("host.example")));
        UpdateGrant {
            from: vec![TransferRule { network: None, key }],
            names: vec![names],
            is_acme: false,
            types: GrantTypes::Any,
            records_max: None,
            ttl_min: 0,
            ttl_max: u32::MAX,
        }
    }

    #[test]
    fn names_are_those_of_the_zone_of_the_key_or_of_the_configuration() {
        use GrantNames::{Below, BelowOwn, Own, OwnAndBelow, Subdomain, Zone};
        let top = || name("dyn.example");
        for (names, at, below, other) in [
            (Zone, true, true, true),
            (Own, true, false, false),
            (OwnAndBelow, true, true, false),
            (BelowOwn, false, true, false),
            (GrantNames::Name(name("host.example")), true, false, false),
            (Subdomain(name("host.example")), true, true, false),
            (Below(name("host.example")), false, true, false),
            (Subdomain(top()), false, false, true),
        ] {
            let grant = grant(names, true);
            let may =
                |owner: &str| grant.allows(&sender(Some("host.example")), &name(owner), Type::A);
            let found = (may("host.example"), may("x.host.example"), may("a.dyn.example"));
            assert_eq!(found, (at, below, other), "{grant:?}");
            let unsigned = grant.allows(&sender(None), &name("host.example"), Type::A);
            assert!(!unsigned, "a client without the key has no right: {grant:?}");
        }
    }

    #[test]
    fn a_client_without_a_key_has_no_name_of_its_own() {
        for names in [GrantNames::Own, GrantNames::OwnAndBelow, GrantNames::BelowOwn] {
            assert!(!grant(names, false).allows(&sender(None), &name("host.example"), Type::A));
        }
    }

    #[test]
    fn types_that_shape_the_zone_are_granted_by_name_only_and_signatures_never() {
        let any = GrantTypes::Any;
        assert!(any.has(Type::A) && any.has(Type::CNAME) && any.has(Type(65280)));
        for rtype in NAMED_TYPES {
            let listed = GrantTypes::Listed(vec![rtype]);
            assert!(!any.has(rtype) && listed.has(rtype), "{rtype}");
        }
        let listed = GrantTypes::Listed(vec![Type::TXT, Type::CDS, Type::RRSIG]);
        assert!(listed.has(Type::TXT) && listed.has(Type::CDS) && !listed.has(Type::A));
        for rtype in SIGNING_TYPES {
            assert!(!any.has(rtype) && !listed.has(rtype), "{rtype}");
        }
    }

    #[test]
    fn the_preset_for_certificates_is_for_their_names_and_those_below() {
        let acme = UpdateGrant { is_acme: true, ..grant(GrantNames::Zone, false) };
        let may = |owner: &str| acme.allows(&sender(None), &name(owner), Type::TXT);
        assert!(may("_acme-challenge.example") && may("_acme-challenge.www.example"));
        assert!(may("x._acme-challenge.example"));
        assert!(!may("example") && !may("acme-challenge.example") && !may("_acme-challenges.a"));
    }

    #[test]
    fn bounds_on_times_and_numbers_include_what_they_say() {
        let grant = UpdateGrant {
            records_max: Some(2),
            ttl_min: 60,
            ttl_max: 300,
            ..grant(GrantNames::Zone, false)
        };
        let ttls = [59, 60, 300, 301].map(|ttl| grant.allows_ttl(ttl));
        assert_eq!(ttls, [false, true, true, false]);
        assert_eq!([2, 3].map(|count| grant.allows_count(count)), [true, false]);
    }
}
