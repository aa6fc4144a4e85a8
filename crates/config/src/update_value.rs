//! Values of keys about rights to change zones.

use crate::transfer_value::TransferClient;
use crate::value::{Value, words};
use zonda_wire::{Name, Type};

words! {
    /// A right to change zones that is known by a name.
    pub enum UpdatePreset {
        /// The right to prove that certificates may be issued: TXT at `_acme-challenge`.
        Acme = "acme",
    }
}

/// Names whose records a client may change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UpdateNames {
    /// All names of the zone.
    Zone,
    /// The name of the client's key.
    Own,
    /// The name of the client's key, and all below it.
    OwnAndBelow,
    /// The names below that of the client's key.
    BelowOwn,
    /// One name, in lower case.
    Name(Name),
    /// A name, in lower case, and all below it.
    Subdomain(Name),
    /// The names below another one, in lower case.
    Below(Name),
}

impl UpdateNames {
    /// Whether the names depend on the key of the client.
    #[must_use]
    pub fn needs_key(&self) -> bool {
        matches!(self, Self::Own | Self::OwnAndBelow | Self::BelowOwn)
    }

    /// The name of the configuration that they depend on, if they do.
    #[must_use]
    pub fn name(&self) -> Option<&Name> {
        match self {
            Self::Name(name) | Self::Subdomain(name) | Self::Below(name) => Some(name),
            _ => None,
        }
    }
}

impl Value for UpdateNames {
    fn form() -> String {
        "one of \"zone\", \"self\", \"subdomain\", \"wildcard\", or \"name\", \"subdomain\" or \
         \"wildcard\" and a name, such as \"subdomain dyn.example.com\""
            .into()
    }

    fn from_text(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let name = |text: &str| Some(Name::from_text(text)?.to_lowercase());
        match words[..] {
            ["zone"] => Some(Self::Zone),
            ["self"] => Some(Self::Own),
            ["subdomain"] => Some(Self::OwnAndBelow),
            ["wildcard"] => Some(Self::BelowOwn),
            ["name", text] => name(text).map(Self::Name),
            ["subdomain", text] => name(text).map(Self::Subdomain),
            ["wildcard", text] => name(text.strip_prefix("*.").unwrap_or(text)).map(Self::Below),
            _ => None,
        }
    }
}

/// A type of records that zones have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DataType(pub Type);

impl Value for DataType {
    fn form() -> String {
        "a type of records such as \"A\", \"TXT\" or \"TYPE65280\"".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        let rtype: Type = text.to_ascii_uppercase().parse().ok()?;
        (!rtype.is_meta() && rtype != Type(0)).then_some(Self(rtype))
    }
}

/// A right to change a zone by messages.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UpdateGrant {
    /// The clients that have the right; at least one.
    pub from: Vec<TransferClient>,
    /// The names whose records may be changed; at least one kind.
    pub names: Vec<UpdateNames>,
    /// Whether the names must also be those by which certificates are proven.
    pub is_acme: bool,
    /// The types of the records; none: all that need not be named.
    pub types: Vec<Type>,
    /// Most records of a type that a name may have when one is added.
    pub records_max: Option<u32>,
    /// The least time to live of records that are added, seconds.
    pub ttl_min: u32,
    /// The greatest time to live of records that are added, seconds.
    pub ttl_max: u32,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_are_a_word_or_a_word_and_a_name() {
        let name = || "dyn.example.".parse().unwrap();
        for (text, expected) in [
            ("zone", Some(UpdateNames::Zone)),
            ("self", Some(UpdateNames::Own)),
            ("subdomain", Some(UpdateNames::OwnAndBelow)),
            ("wildcard", Some(UpdateNames::BelowOwn)),
            ("name Dyn.example", Some(UpdateNames::Name(name()))),
            ("subdomain dyn.example", Some(UpdateNames::Subdomain(name()))),
            ("wildcard dyn.example", Some(UpdateNames::Below(name()))),
            ("wildcard *.dyn.example", Some(UpdateNames::Below(name()))),
            ("", None),
            ("name", None),
            ("zone dyn.example", None),
            ("dyn.example", None),
        ] {
            assert_eq!(UpdateNames::from_text(text), expected, "{text}");
        }
    }

    #[test]
    fn types_that_no_zone_has_cannot_be_named() {
        assert_eq!(DataType::from_text("aaaa"), Some(DataType(Type::AAAA)));
        for wrong in ["ANY", "*", "AXFR", "OPT", "TYPE0", "nonsense"] {
            assert_eq!(DataType::from_text(wrong), None, "{wrong}");
        }
    }
}
